"""``python -m benchmarks SUITE [TABLE …] [options]``: print the tables named, or all of the suite.

In place of a suite: ``bench``, all tables beside peers, as ``make bench`` runs them; ``others``, all others, as
``make bench-all`` does; ``compare [NEW] [COMMITTED]``, the ratios that fell, as ``make bench-compare`` has it.
Marked *: runs only where it is named. Marked >: has options of its own, which its ``--help`` lists.
"""

import argparse
import importlib
import platform
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import numba
import numpy as np

from benchmarks.peers.host import versions

from . import compare
from .plan import Plan
from .suites import BENCH, COMMAND, NAMED, OTHERS, SUITES, listing

GROUPS = (BENCH, OTHERS)


def parser() -> argparse.ArgumentParser:
    """The command line of tables."""
    described = f"{__doc__}\n{listing()}"
    whole = argparse.ArgumentParser(
        prog="python -m benchmarks", description=described, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    whole.add_argument("suite", metavar="SUITE", help=f"one of {', '.join((*SUITES, *GROUPS))}, compare")
    whole.add_argument("tables", nargs="*", metavar="TABLE", help="of the suite; none: all but those that take longest")
    whole.add_argument("--small", action="store_true", help="few rows and rounds, to see that all works")
    whole.add_argument("--out", type=Path, help="a folder for the tables, as Markdown and CSV")
    whole.add_argument("--rounds", type=int, help="how often all that is compared runs (default 5; 1 with --small)")
    return whole


def parsed(arguments: list[str]) -> argparse.Namespace:
    """The command line of tables, checked."""
    whole = parser()
    given = whole.parse_args(arguments)
    if given.suite not in (*SUITES, *GROUPS):
        whole.error(f"the suite must be one of {', '.join((*SUITES, *GROUPS))}, compare, got {given.suite!r}")
    known = SUITES.get(given.suite, {})
    if unknown := sorted(set(given.tables) - set(known)):
        there = f"of {', '.join(known)}" if known else "left out"
        whole.error(f"tables of {given.suite} must be {there}, got {unknown}")
    if alone := [name for name in given.tables if known[name].kind == COMMAND]:
        whole.error(f"{alone[0]} is a command of its own, to be named right after {given.suite} and alone")
    if given.rounds is not None and given.rounds < 1:
        whole.error(f"--rounds must be at least 1, got {given.rounds}")
    return given


def chosen(suite: str, tables: list[str]) -> dict[str, str]:
    """Modules of the tables that are wanted, by name."""
    if suite in GROUPS:
        return {f"{s} {n}": t.module for s, some in SUITES.items() for n, t in some.items() if t.kind == suite}
    known = SUITES[suite]
    names = tables or [name for name, table in known.items() if table.kind in GROUPS]
    return {f"{suite} {name}": known[name].module for name in names}


def print_tables(given: argparse.Namespace) -> int:
    """Print the tables; the exit status, 1 where one failed."""
    rounds = given.rounds or (1 if given.small else 5)
    plan = Plan(rounds, 0.02 if given.small else 0.3, given.out, given.small)
    print(
        f"Python {platform.python_version()}, Numba {numba.__version__}, NumPy {np.__version__}, {platform.machine()}"
    )
    print("peers: " + (", ".join(f"{name} {what}" for name, what in versions().items()) or "none installed"))
    began, failed = time.perf_counter(), []
    for name, module_name in chosen(given.suite, given.tables).items():
        module = importlib.import_module(f"benchmarks.{module_name}")
        print(f"\n## {name}. {(module.__doc__ or '').partition(chr(10))[0]}\n", flush=True)
        started = time.perf_counter()
        try:
            module.main(plan)
        except Exception:  # one table that fails must not cost the others, which take half an hour
            traceback.print_exc()
            failed.append(name)
        print(f"\n{name}: {time.perf_counter() - started:.0f} s", flush=True)
    print(f"\nall: {(time.perf_counter() - began) / 60.0:.1f} minutes")
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


def run_stages(arguments: list[str]) -> int:
    """The stages of a GPU, which have options of their own."""
    from benchmarks.cuda import stages

    stages.main(arguments)
    return 0


def main(arguments: list[str]) -> int:
    """Do what the command line says; the exit status."""
    if not arguments:
        parser().print_help()
        return 0
    suite, *rest = arguments
    if suite == "compare":
        return compare.main(rest)
    table: Any = SUITES.get(suite, {}).get(rest[0] if rest else "")
    if table and table.kind == COMMAND:
        return int(importlib.import_module(f"benchmarks.{table.module}").main(rest[1:]) or 0)
    if suite == "cuda" and not (table and table.kind == NAMED):
        return run_stages(rest)
    given = parsed(arguments)
    status = print_tables(given)
    if suite == OTHERS:
        folder = ["--out", str(given.out / "cuda")] if given.out else []
        status |= run_stages([*(["--small"] if given.small else []), *folder])
    return status
