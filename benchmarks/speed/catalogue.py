"""The catalogue's targets: SGLD's speed on one core, float64, 1,024 chains, beside what its random numbers alone cost.

The ceiling is the block-Philox one: as many normals as a step draws, filled block by block, and nothing else. Targets
and ceiling are interleaved; ratios are medians over rounds.
"""

import time

import numpy as np
from numba import types

from targets import catalogue
from toolkit import Target, sample, samplers
from toolkit._compiler.decorators import compile_part
from toolkit._compiler.signatures import MATRIX, NAMES
from toolkit._engine.state import USUAL_LANES
from toolkit.maths.philox import MOVE, fill_normals

from .markdown import head, row

CHAINS, ROUNDS, SECONDS = 1024, 5, 0.15


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


def main() -> None:
    """Print the table."""
    head("target", "dim", "SGLD, 10⁶ chain-steps/s", "random numbers alone, 10⁶/s", "share of that ceiling", "spread")
    for target in catalogue():
        n_steps = max(10, int(SECONDS * rate(target, 20) / CHAINS))
        pairs = np.array([(rate(target, n_steps), ceiling(target.dim, n_steps)) for _ in range(ROUNDS)])
        share = np.sort(pairs[:, 0] / pairs[:, 1])
        speeds = np.median(pairs, axis=0) / 1e6
        row(
            target.name, target.dim, f"{speeds[0]:.3g}", f"{speeds[1]:.3g}", f"{np.median(share):.2f}",
            f"{share[0]:.2f} – {share[-1]:.2f}",
        )  # fmt: skip
