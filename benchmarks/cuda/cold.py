"""Stage cold: whole processes, from launch to the end of a first run, compiling included.

The CPU's machine code and the device's kernels are in no cache at first; then, once more, whatever a process leaves.
"""

import os
import subprocess
import sys
import tempfile
import time

from benchmarks.runner.tables import Table

from .cases import MAKERS
from .measure import Plan

CALL = (
    "import time; started = time.perf_counter(); from benchmarks.cuda.measure import run; "
    "from benchmarks.cuda.cases import case_of; run(case_of({name!r}), {backend!r}, {n}, 20); "
    "print(time.perf_counter() - started)"
)


def seconds(name: str, backend: str, n_chains: int, cache: str) -> tuple[float, float]:
    """From import to the end of the run, and of the whole process."""
    started = time.perf_counter()
    command = [sys.executable, "-c", CALL.format(name=name, backend=backend, n=n_chains)]
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    return float(said.split()[-1]), time.perf_counter() - started


def main(plan: Plan) -> None:
    """Print the table."""
    columns = ("import to the end of a run, s", "whole process, s")
    table = Table(plan.folder, "cold", "case", "backend", "process", *columns)
    n_chains = 2 if plan.is_dry else 1000
    for name in (name for name in MAKERS if name in plan.names):
        for backend in ("cuda", "cpu"):
            if not plan.is_late(f"{name}, {backend}"):
                with tempfile.TemporaryDirectory() as cache:
                    table.row(name, backend, "first", *seconds(name, backend, n_chains, cache))
                    table.row(name, backend, "second", *seconds(name, backend, n_chains, cache))
