"""Faults of the kind that peers ship, put into a copy one by one; the tests must fail for every one.

``make mutants`` runs all (some 20 s each: the engine compiles anew), ``python -m tests.mutants NAME …`` those whose
names contain a NAME. Exits with 1 where a mutant lives. ``test_mutants.py`` sees that each still applies.
"""

import argparse
import concurrent.futures
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
# What the process of a fault in memory may end with.
CRASHES = {-one: "killed" for one in (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)}
LIMIT = 600  # seconds; a mutant that hangs is dead


class Mutant(NamedTuple):
    """A fault: in ``file``, ``old`` becomes ``new``; ``tests`` are the pytest arguments that must fail."""

    name: str
    file: str
    old: str
    new: str
    tests: str


def run(mutant: Mutant) -> tuple[Mutant, str, float]:
    """'killed', 'LIVES' or 'does not apply', and the seconds it took."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "tree"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".*", "__pycache__", "out", "*.egg-info"))
        path = copy / mutant.file
        source = path.read_text(encoding="utf-8")
        if source.count(mutant.old) != 1:
            return mutant, "does not apply", 0.0
        path.write_text(source.replace(mutant.old, mutant.new), encoding="utf-8")
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(Path(folder) / "cache"), "PYTHONPATH": str(copy)}
        environment["ALL_CASES"] = "1"
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "--no-header",
            "-p",
            "no:cacheprovider",
            *mutant.tests.split(),
        ]
        try:
            result = subprocess.run(
                command, cwd=copy, env=environment, capture_output=True, text=True, timeout=LIMIT, check=False
            )
            verdict = {0: "LIVES", 1: "killed", **CRASHES}.get(
                result.returncode, f"pytest exits with {result.returncode}"
            )
        except subprocess.TimeoutExpired:
            verdict = "killed"
    return mutant, verdict, time.perf_counter() - started


def main(mutants: list[Mutant], arguments: list[str]) -> int:
    """Run the mutants, two at a time, and print what became of each."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="faults whose names contain one of these; none: all")
    wanted = parser.parse_args(arguments).names
    chosen = [mutant for mutant in mutants if not wanted or any(word in mutant.name for word in wanted)]
    if not chosen:
        parser.error(f"no fault has a name that contains one of {wanted}")
    tests = " ".join(sorted({name for mutant in chosen for name in mutant.tests.split() if "tests/" in name}))
    line = chosen[0].old
    _, verdict, seconds = run(Mutant("no fault", chosen[0].file, line, line, tests))
    print(f"{verdict:15s} {seconds:5.0f} s  no fault at all, which must live")
    if verdict != "LIVES":
        return 1
    alive = 0
    with concurrent.futures.ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        for mutant, verdict, seconds in pool.map(run, chosen):
            alive += verdict != "killed"
            print(f"{verdict:15s} {seconds:5.0f} s  {mutant.name}  ({mutant.file})", flush=True)
    print(f"{len(chosen) - alive} of {len(chosen)} killed")
    return int(alive > 0)
