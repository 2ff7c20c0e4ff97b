"""Lorenz on the grid of lengths and levels of noise that ODR-BINDy was shown on: how often the terms are exactly right.

From (−8, 8, 27), dt = 0.01, all 30 coefficients of a quadratic library free; Gaussian noise in % of the standard
deviation of all states together, its size unknown to ``discover``. ODR-BINDy (Fung 2025, arXiv 2507.23426) is told it,
takes 128 draws a cell, and is called reliable up to 30 %. Right: the terms of inclusion probability ≥ ½ are the seven
of Lorenz. Told: the share of draws whose true coefficients are ≥ 4 standard deviations from 0 for one who knows which
terms there are.
"""

import numpy as np

from benchmarks.identification.field import Flow, Result, fitted
from benchmarks.identification.weak_form import STATES, clean, truth
from benchmarks.runner.plan import Plan
from benchmarks.runner.tables import Table
from sysid.data.series import Series
from sysid.libraries import polynomial

STEP = 0.01
START = (-8.0, 8.0, 27.0)
LENGTHS = (4.0, 6.0, 8.0, 10.0)
LEVELS = (0.025, 0.05, 0.10, 0.20, 0.30)
DRAWS = 16


def lorenz(length: float) -> Flow:
    """The path without noise."""
    times = STEP * np.arange(round(length / STEP) + 1)
    return Flow("Lorenz", polynomial(STATES, 2), truth(), times, clean(times, START))


def one(flow: Flow, level: float, draw: int) -> Result:
    """A fit."""
    noise = level * flow.states.std() * np.random.default_rng(1000 + draw).standard_normal(flow.states.shape)
    return fitted(flow, Series(flow.times, flow.states + noise, STATES))


def main(plan: Plan) -> None:
    """Print the table."""
    table = Table(
        plan.folder, "lorenz_grid", "noise", "T", "draws", "answered", "terms right", "told", "median error",
        "inside 90 %", "distance", "seconds each",
    )  # fmt: skip
    n_draws = 1 if plan.is_small else DRAWS
    for level in LEVELS[:1] if plan.is_small else LEVELS:
        for length in LENGTHS[:1] if plan.is_small else LENGTHS:
            flow = lorenz(length)
            found = [one(flow, level, draw) for draw in range(n_draws)]
            there = np.array([each for each in found if each.answered])
            if not there.size:
                table.row(f"{level:.1%}", length, n_draws, 0, *["–"] * 7)
                continue
            _, error, right, inside, distance, told, seconds = there.T
            shares = [f"{each.sum() / n_draws:.0%}" for each in (right, told)]
            table.row(
                f"{level:.1%}", length, n_draws, len(there), *shares,
                float(np.median(error)), f"{inside.mean():.0%}", float(distance.mean()), float(seconds.mean()),
            )  # fmt: skip
