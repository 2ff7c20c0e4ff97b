"""A sweep of 10⁴ settings: seconds beside a loop of `sample`, and killed at random times and resumed, to equal tables.

The loop runs one setting in fifty, and is scaled up. All alternate in one process each round but for the sweep that is
killed, which runs in processes of its own, whose start and compiled code count in its seconds.
"""

import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import toolkit
from benchmarks.runner.plan import Plan
from benchmarks.runner.tables import Table
from targets import mixtures
from toolkit import samplers
from toolkit.diagnostics import ess, r_hat

PROBLEM = mixtures.gaussian_mixture([[0.0, 0.0], [3.0, 3.0]], 1.0)
RUN: dict[str, Any] = {"n_steps": 500, "n_chains": 4, "burn_in": 100}
SHAPE, SMALL = (25, 20, 20), (5, 5, 4)
ONE_IN, KILLS = 50, 3


def grid_of(shape: tuple[int, int, int]) -> toolkit.Grid:
    """Step sizes × temperatures × frictions; only the last are other parts."""
    axes = {
        "step_size": np.geomspace(1e-3, 0.1, shape[0]),
        "temperature": np.linspace(0.5, 3.0, shape[1]),
        "friction": np.geomspace(0.05, 1.0, shape[2]),
    }
    return toolkit.grid(samplers.sghmc, axes)


def loop(grid: toolkit.Grid, *, summarised: bool) -> float:
    """Seconds of a loop of ``sample`` over the grid. summarised: with the numbers that a sweep has of each run."""
    places = range(0, len(grid), ONE_IN)
    started = time.perf_counter()
    for index in places:
        draws = toolkit.sample(PROBLEM, grid.sampler(index), seed=0, **RUN).draws
        if summarised:
            draws.reshape(-1, 2).mean(axis=0), draws.reshape(-1, 2).std(axis=0)
            ess(draws), ess(draws, method="mean"), r_hat(draws)
    return (time.perf_counter() - started) * len(grid) / len(places)


def swept(grid: toolkit.Grid) -> tuple[float, Any]:
    """Seconds of the sweep, and its table."""
    started = time.perf_counter()
    table = toolkit.sweep(PROBLEM, grid, seeds=[0], **RUN)
    return time.perf_counter() - started, table


SCRIPT = """
import sys, toolkit
from benchmarks.speed.sweeps import PROBLEM, RUN, grid_of
toolkit.sweep(PROBLEM, grid_of(tuple(map(int, sys.argv[2:]))), seeds=[0], checkpoint=sys.argv[1], **RUN)
"""


def killed(shape: tuple[int, int, int], path: Path, latest: float) -> tuple[float, list[int]]:
    """Seconds of a sweep that is killed at random times and resumed, and the bytes of its file after each kill."""
    command = [sys.executable, "-c", SCRIPT, str(path), *map(str, shape)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    started, sizes = time.perf_counter(), []
    for kill in range(KILLS + 1):
        process = subprocess.Popen(command, env=environment)
        try:
            process.wait(None if kill == KILLS else random.uniform(0.3, 1.0) * latest)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        sizes.append(path.stat().st_size if path.exists() else 0)
    return time.perf_counter() - started, sizes


def main(plan: Plan) -> None:
    """Print the table."""
    shape = SMALL if plan.is_small else SHAPE
    grid = grid_of(shape)
    for index in range(0, len(grid), max(1, len(grid) // 4)):
        toolkit.sample(PROBLEM, grid.sampler(index), seed=0, **RUN)
    toolkit.sweep(PROBLEM, grid_of((2, 2, 2)), seeds=[0], **RUN)  # imports xarray
    seconds: dict[str, list[float]] = {}
    whole: Any = None
    for _ in range(plan.rounds):
        own, whole = swept(grid)
        seconds.setdefault("a loop of `sample`", []).append(loop(grid, summarised=False))
        seconds.setdefault("a loop of `sample`, with ESS and R-hat", []).append(loop(grid, summarised=True))
        seconds.setdefault("`sweep`", []).append(own)
    name = f"`sweep`, killed {KILLS} times"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sweep.ckpt"
        total, sizes = killed(shape, path, statistics.median(seconds["`sweep`"]))
        seconds[name] = [total]
        reopened = time.perf_counter()
        equal = toolkit.sweep(PROBLEM, grid, seeds=[0], checkpoint=path, **RUN).equals(whole)
        seconds["`sweep`, all of it in the file"] = [time.perf_counter() - reopened]
    middle = statistics.median(seconds["`sweep`"])
    if not equal:
        raise AssertionError("the sweep that was killed has another table")
    table = Table(
        plan.folder, "sweeps", "what", "settings", "seconds", "ratio to `sweep`", "bytes at kills and the end"
    )
    for what, values in seconds.items():
        took = statistics.median(values)
        bytes_then = ", ".join(f"{size:,}" for size in sizes) if what == name else "–"
        table.row(what, f"{len(grid):,}", f"{took:.1f}", f"{took / middle:.2f}", bytes_then)
