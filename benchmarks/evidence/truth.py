"""Truth of the catalogue: beside a plain trapezoidal sum over the energy, or exact draws, and those by χ².

In one and two dimensions the sum is over 1,201 points across (in one, 60,001), evenly spaced, or in sinh⁻¹ x
where the tails are heavy; cells are by Simpson's rule. The mean is also that of 200,000 exact draws, in their errors.
A second table has the problems in a box, with the evidences that the literature prints.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chisquare

from benchmarks.runner.plan import Plan
from benchmarks.runner.tables import Table
from targets import catalogue, classics
from toolkit import Problem, Target

Array = NDArray[np.float64]

CELLS, PARTS = 30, 40
DRAWS = 200_000


class Sum(NamedTuple):
    """A trapezoidal sum of exp(−U) over a grid."""

    points: Array  # (n, dim), those that count
    masses: Array  # (n,), normalised
    energies: Array  # (n,)
    log_normaliser: float
    edges: list[Array]  # of cells, for each coordinate
    cells: Array  # probability of each, by Simpson's rule


def axis(draws: Array, parts: int, *, heavy: bool) -> tuple[Array, Array]:
    """Evenly spaced places from far below one coordinate of ``draws`` to far above, and dx/dt there, each (n,)."""
    n = CELLS * parts + 1
    if not heavy:
        low, high = draws.min(), draws.max()
        places = np.linspace(low - 0.6 * (high - low), high + 0.6 * (high - low), n)
        return places, np.full(n, places[1] - places[0])
    centre, scale = np.median(draws), 0.02 * np.subtract(*np.quantile(draws, [0.75, 0.25]))
    t = np.linspace(-18.0, 18.0, n)
    return centre + scale * np.sinh(t), scale * np.cosh(t) * (t[1] - t[0])


def trapezoid(target: Target) -> Sum:
    """The sum for a target of one or two dimensions, by nothing but its energy and where its draws lie."""
    assert target.truth is not None
    draws = target.truth.independent_draws(20_000, seed=3)
    parts = PARTS if target.dim == 2 else 50 * PARTS
    for heavy in (False, True):
        axes, steps = zip(*[axis(column, parts, heavy=heavy) for column in draws.T], strict=True)
        points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, target.dim)
        energies = target.evaluate(points)[0]
        shape = [len(a) for a in axes]
        lowest = energies.min()
        density = np.exp(lowest - energies).reshape(shape)
        rim = max(density[0].max(), density[-1].max(), density[..., 0].max(), density[..., -1].max())
        if rim < 1e-12:
            break
    simpson = np.tile([2.0, 4.0], parts // 2 + 1)[: parts + 1] / 3.0
    simpson[0] = simpson[-1] = 1.0 / 3.0
    masses, cells = density, density
    for d, step in enumerate(steps):
        masses = np.moveaxis(np.moveaxis(masses, d, -1) * step, -1, d)
        scaled = np.moveaxis(cells, d, -1) * step
        windows = np.lib.stride_tricks.sliding_window_view(scaled, parts + 1, axis=-1)[..., ::parts, :]
        cells = np.moveaxis(windows @ simpson, -1, d)
    whole = masses.sum()
    counts = masses.ravel() > (0.0 if heavy else 1e-12) * whole
    return Sum(
        points[counts], masses.ravel()[counts] / whole, energies[counts], float(np.log(whole) - lowest),
        [a[::parts] for a in axes], cells / whole,
    )  # fmt: skip


def cell_pvalues(target: Target, draws: Array) -> tuple[float, float]:
    """χ² p-value of ``draws`` in a grid of cells of the first two coordinates, and of the counts moved one cell on."""
    assert target.truth is not None
    first = draws[:, :2]
    edges = [
        np.unique(np.quantile(column, np.linspace(0.001, 0.999, 25 if target.dim > 1 else 61))) for column in first.T
    ]
    masses = target.truth.cell_masses(*edges)
    counts = np.histogramdd(first, edges)[0]
    n = len(draws)
    full = masses * n > 5
    observed = np.append(counts[full], n - counts[full].sum())
    expected = np.append(n * masses[full], n * (1.0 - masses[full].sum()))
    right, wrong = (chisquare(seen, expected).pvalue for seen in (observed, np.roll(observed, 1)))
    return float(right), float(wrong)


# Problems in a box, and the log Z that is printed: Pigeons' and dynesty's examples; none for our box of the dual moon.
BOXED: tuple[tuple[Problem, str], ...] = (
    (classics.coin_flip(), "-11.8"), (classics.egg_crate(), "235.856"), (classics.gaussian_shells(), "-1.746"),
    (classics.dual_moon(), "–"),
)  # fmt: skip


def boxed(plan: Plan) -> None:
    """Print the table of the problems in a box."""
    columns = ("stated accuracy", "log Z", "log Z printed", "mean of draws off by, σ", "χ² p of draws", "one cell on")
    table = Table(plan.folder, "truth_boxed", "problem", *columns)
    for problem, printed in BOXED[: 1 if plan.is_small else None]:
        truth = problem.truth
        assert truth is not None
        draws = truth.independent_draws(DRAWS, seed=5)
        sigmas = float(np.abs((draws.mean(axis=0) - truth.mean) / (draws.std(axis=0) / np.sqrt(DRAWS))).max())
        pvalues = cell_pvalues(replace(problem.target, truth=truth), draws)
        table.row(problem.target.name, truth.accuracy, f"{truth.log_normaliser:.6f}", printed, sigmas, *pvalues)


def main(plan: Plan) -> None:
    """Print the tables."""
    table = Table(
        plan.folder, "truth", "target", "dimension", "stated accuracy", "log Z off by", "cells off by, summed",
        "mean off by", "mean of draws off by, σ", "χ² p of draws", "the same, one cell on",
    )  # fmt: skip
    for target in list(catalogue())[: 4 if plan.is_small else None]:
        truth = target.truth
        assert truth is not None
        draws = truth.independent_draws(DRAWS, seed=5)
        off = ["–", "–", "–"]
        if target.dim <= 2:
            sums = trapezoid(target)
            off = [
                f"{abs(sums.log_normaliser - truth.log_normaliser):.1e}",
                f"{np.abs(truth.cell_masses(*sums.edges) - sums.cells).sum():.1e}",
                f"{np.abs(sums.masses @ sums.points - truth.mean).max():.1e}",
            ]
        error = draws.std(axis=0) / np.sqrt(DRAWS)
        sigmas = float(np.abs((draws.mean(axis=0) - truth.mean) / error).max())
        pvalues = cell_pvalues(target, draws) if truth.accuracy < 1e-3 else ("–", "–")  # else its own errors show
        table.row(target.name, target.dim, truth.accuracy, *off, sigmas, *pvalues)
    print()
    boxed(plan)
