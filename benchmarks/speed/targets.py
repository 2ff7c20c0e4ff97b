"""The catalogue's targets: SGLD's speed on one core, float64, 1,024 chains, beside what its random numbers alone cost.

The ceiling is the block-Philox one: as many normals as a step draws, filled block by block, and nothing else. Targets
and ceiling are interleaved; ratios are medians over rounds.
"""

import time

import numpy as np
from numba import types

from benchmarks.runner.plan import Plan
from benchmarks.runner.rounds import interleaved
from benchmarks.runner.tables import Table, ratio_cells
from targets import catalogue
from toolkit import Target, sample, samplers
from toolkit._compiler.decorators import compile_part
from toolkit._compiler.signatures import MATRIX, NAMES
from toolkit._engine.state import USUAL_LANES
from toolkit.maths.philox import MOVE, fill_normals

CHAINS = 1024


def fill_many(noise, chain, replica, n_steps):
    """``n_steps`` blocks of normals."""
    for step in range(n_steps):
        fill_normals(noise, np.uint64(1), chain, replica, step, MOVE)


def ceiling(dim: int, n_steps: int) -> float:
    """Chain-steps per second of the random numbers alone."""
    fill = compile_part(fill_many, types.void(MATRIX, NAMES, NAMES, types.int64))
    lanes = USUAL_LANES
    noise, names = np.empty((dim, lanes)), np.arange(lanes, dtype=np.uint64)
    started = time.perf_counter()
    for _ in range(CHAINS // lanes):
        fill(noise, names, names, n_steps)
    return CHAINS * n_steps / (time.perf_counter() - started)


def rate(target: Target, n_steps: int) -> float:
    """Chain-steps per second of SGLD, from exact draws and with steps too short to lead anywhere bad."""
    assert target.truth is not None
    run = sample(
        target, samplers.sgld(1e-12), n_steps=n_steps, thin=n_steps, n_chains=CHAINS, seed=1, threads=1,
        init=target.truth.independent_draws(CHAINS, seed=1),
    )  # fmt: skip
    return run.gradient_evaluations / run.elapsed


def main(plan: Plan) -> None:
    """Print the table."""
    columns = ("SGLD, 10⁶ chain-steps/s", "random numbers alone, 10⁶/s", "share of that ceiling", "spread")
    table = Table(plan.folder, "targets", "target", "dim", *columns)
    for target in list(catalogue())[: 3 if plan.is_small else None]:
        ceiling(target.dim, 1), rate(target, 1)  # which compile
        n_steps = max(10, int(0.5 * plan.seconds * rate(target, 20) / CHAINS))
        timed = {
            "sgld": lambda one=target, n=n_steps: rate(one, n),
            "ceiling": lambda d=target.dim, n=n_steps: ceiling(d, n),
        }
        seen = interleaved(plan.rounds, timed)
        speeds = (f"{np.median(values) / 1e6:.3g}" for values in seen.values())
        table.row(target.name, target.dim, *speeds, *ratio_cells(*seen.values()))
