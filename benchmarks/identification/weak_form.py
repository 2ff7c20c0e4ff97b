"""Lorenz from noisy states, all 30 coefficients of a quadratic library free: ``discover`` beside PySINDy.

T = 10, dt = 0.002, from (−8, 7, 27); Gaussian noise in % of each state's RMS. Error: ‖Ξ̂ − Ξ‖ / ‖Ξ‖ of posterior
medians under the sparse prior, median and 90th percentile over noise draws. PySINDy's thresholds are those of least
error against the truth (``sysid.compare_pysindy``); it is left out where it is not installed.
"""

import importlib.util
import time

import numpy as np
from scipy.integrate import solve_ivp

from benchmarks.runner.plan import Plan
from benchmarks.runner.tables import Table
from sysid import discover
from sysid.data.series import Series
from sysid.discovery.compare import compare_pysindy
from sysid.libraries import polynomial
from sysid.likelihoods.weak_form import weak

STATES = ("x", "y", "z")
TIMES = np.linspace(0.0, 10.0, 5001)
START = (-8.0, 7.0, 27.0)
LEVELS = {0.01: 30, 0.05: 100, 0.10: 30}  # noise and draws of it
DRAWS_OF_PYSINDY = 3
METHODS = ("stlsq", "ensemble", "weak")  # NUTS of "sbr" takes minutes a draw
NORMAL_90 = 1.6448536269514722


def truth() -> np.ndarray:
    """Ξ (terms, states) of Lorenz, σ = 10, ρ = 28, β = 8/3."""
    names = polynomial(STATES, 2).names
    coefficients = np.zeros((len(names), 3))
    told = [("x", 0, -10.0), ("y", 0, 10.0), ("x", 1, 28.0), ("y", 1, -1.0), ("xz", 1, -1.0), ("xy", 2, 1.0)]
    for name, state, value in [*told, ("z", 2, -8.0 / 3.0)]:
        coefficients[names.index(name), state] = value
    return coefficients


def clean(times: np.ndarray, start: tuple[float, float, float]) -> np.ndarray:
    """Lorenz at ``times`` (n,), the first 0, from ``start``: (n, 3), to rounding."""

    def rhs(_, x):
        return [10.0 * (x[1] - x[0]), x[0] * (28.0 - x[2]) - x[1], x[0] * x[1] - 8.0 / 3.0 * x[2]]

    return solve_ivp(rhs, (0.0, times[-1]), start, "DOP853", times, rtol=1e-12, atol=1e-12).y.T


def noisy(states: np.ndarray, level: float, draw: int) -> Series:
    """States with noise of a level, in RMS of each."""
    sds = level * np.sqrt(np.mean(states**2, axis=0))
    return Series(TIMES, states + sds * np.random.default_rng(1000 + draw).standard_normal(states.shape), STATES)


def one(series: Series, target: np.ndarray) -> list[float]:
    """Error, terms right, coverage of true terms by ``discover``, of all by ``weak``, d²/30, seconds of the first."""
    started = time.perf_counter()
    sparse = discover(series, polynomial(STATES, 2), progress=False).sparse
    seconds = time.perf_counter() - started
    mean, precision, _ = weak().prepare(series, polynomial(STATES, 2)).quadratic
    there = target != 0.0
    low, high = sparse.intervals(0.9)
    inside = (low <= target) & (target <= high)
    apart = mean - target
    free = np.abs(apart) <= NORMAL_90 * np.sqrt(np.diag(np.linalg.inv(precision)))
    error = np.linalg.norm(sparse.median - target) / np.linalg.norm(target)
    right = np.array_equal(sparse.inclusion >= 0.5, there)
    return [error, right, inside[there].mean(), free.mean(), apart @ precision @ apart / len(mean), seconds]


def main(plan: Plan) -> None:
    """Print both tables."""
    states, target = clean(TIMES, START), truth().T.ravel()
    columns = (
        "median error",
        "90 %",
        "terms right",
        "inside 90 %: terms there",
        "all free",
        "distance²/30",
        "seconds each",
    )
    table = Table(plan.folder, "weak_form", "noise", "draws", *columns)
    levels = {0.01: 2} if plan.is_small else LEVELS
    for level, draws in levels.items():
        results = np.array([one(noisy(states, level, draw), target) for draw in range(draws)])
        means = results.mean(axis=0)
        worse = np.quantile(results[:, 0], 0.9)
        shares = [f"{share:.1%}" for share in means[1:4]]
        table.row(
            f"{level:.0%}",
            draws,
            float(np.median(results[:, 0])),
            float(worse),
            *shares,
            float(means[4]),
            float(means[5]),
        )
    if importlib.util.find_spec("pysindy") is None:
        print("\nPySINDy is not installed (extra compare)")
        return
    n_draws = 1 if plan.is_small else DRAWS_OF_PYSINDY
    print(f"\nOver the first {n_draws} draws, medians:\n")
    columns = ("noise", "method", "error", "terms right", "inside 90 %", "seconds")
    table = Table(plan.folder, "weak_form_pysindy", *columns)
    for level in levels:
        compared = [
            compare_pysindy(noisy(states, level, draw), truth=truth(), methods=METHODS) for draw in range(n_draws)
        ]
        for k, method in enumerate(compared[0].rows):
            error = float(np.median([one.error(one.rows[k]) for one in compared]))
            right = sum(one.is_right(one.rows[k]) for one in compared)
            inside = float(np.mean([one.covered(one.rows[k]) for one in compared]))
            seconds = float(np.mean([one.rows[k].seconds for one in compared]))
            share = "–" if np.isnan(inside) else f"{inside:.0%}"
            table.row(f"{level:.0%}", method.method, error, f"{right} of {len(compared)}", share, seconds)
