"""``python -m benchmarks.side_by_side [table …] [--small] [--out folder] [--rounds n]``: all tables, or those named."""

import argparse
import importlib
import platform
import sys
import time
import traceback
from pathlib import Path

import numba
import numpy as np

from benchmarks.peers.host import versions

from .plan import Plan

TABLES = ("engine", "one_chain", "first_draw", "scaling", "quality", "identification", "memory")


def parsed(arguments: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.side_by_side", description=__doc__)
    parser.add_argument("tables", nargs="*", metavar="table", help=f"of {', '.join(TABLES)}; none: all, so")
    parser.add_argument("--small", action="store_true", help="few rows and rounds, to see that all works")
    parser.add_argument("--out", type=Path, help="a folder for the tables, as Markdown and CSV")
    parser.add_argument("--rounds", type=int, help="how often all that is compared runs (default 5; 1 with --small)")
    given = parser.parse_args(arguments)
    if unknown := set(given.tables) - set(TABLES):
        parser.error(f"tables must be of {', '.join(TABLES)}, got {sorted(unknown)}")
    if given.rounds is not None and given.rounds < 1:
        parser.error(f"--rounds must be at least 1, got {given.rounds}")
    return given


def main(arguments: list[str]) -> None:
    """Print the tables."""
    given = parsed(arguments)
    rounds = given.rounds or (1 if given.small else 5)
    plan = Plan(rounds, 0.02 if given.small else 0.3, given.out, given.small)
    print(
        f"Python {platform.python_version()}, Numba {numba.__version__}, NumPy {np.__version__}, {platform.machine()}"
    )
    print("peers: " + (", ".join(f"{name} {what}" for name, what in versions().items()) or "none installed"))
    began, failed = time.perf_counter(), []
    for name in given.tables or TABLES:
        module = importlib.import_module(f"benchmarks.side_by_side.{name}")
        print(f"\n## {module.__doc__.splitlines()[0]}\n", flush=True)
        started = time.perf_counter()
        try:
            module.main(plan)
        except Exception:  # one table that fails must not cost the others, which take half an hour
            traceback.print_exc()
            failed.append(name)
        print(f"\n{name}: {time.perf_counter() - started:.0f} s", flush=True)
    print(f"\nall: {(time.perf_counter() - began) / 60.0:.1f} minutes")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main(sys.argv[1:])
