"""The data's local noise, by differences of neighbours, beside the residuals of a solution.

Residuals much larger than the local noise are no noise: a search has not found the best mode, or the model cannot
follow the data. The local noise needs no model: weights over a few neighbours that annihilate a polynomial leave the
errors alone. A signal that changes fast between data makes it too large, never too small. Source: Gasser, Sroka &
Jennen-Steinmetz (1986), Biometrika 73, 625; Hall, Kay & Titterington (1990), Biometrika 77, 521, for more neighbours.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy

from ..arrays import Array
from .experiments import JointEnergy
from .trajectory_kernel import TrajectoryEnergy, places_of

DIFFERENCE_ORDERS = (2, 3, 4)  # of the polynomials' degree plus 1; the smallest noise counts
FEWEST_DATA = 8
FALSE_ALARMS = 1e-4  # of a quantity with independent normal errors
LARGE_RATIO = 3.0  # AR(1) errors of correlation 0.8 between neighbours reach it; independent ones are at 1
DOUBTFUL_RATIO = 2.0  # above which frequencies are searched
ANSCOMBE = 0.375  # added to counts before the square root
LEAST_SHARE = 0.01  # of the data's spread: smaller residuals are no missed mode, but errors of steps or rounding


class Excess(NamedTuple):
    """Residuals of a quantity that are larger than its local noise: both as standard deviations."""

    quantity: str
    residual: float
    local: float

    @property
    def ratio(self) -> float:
        """How many times larger."""
        return self.residual / self.local


class LocalNoise(NamedTuple):
    """A standard deviation, and how many degrees of freedom its square has."""

    sd: float
    freedom: float


def local_noise(times: Array, values: Array) -> LocalNoise:
    """The errors' standard deviation by differences of neighbours, of ``values`` (n,) at increasing ``times`` (n,)."""
    estimates = [noise_by_differences(times, values, order) for order in DIFFERENCE_ORDERS]
    return min(estimates, key=lambda estimate: estimate.sd)


def noise_by_differences(times: Array, values: Array, order: int) -> LocalNoise:
    """The standard deviation by normed divided differences of an order, each over order + 1 neighbours."""
    windows = np.lib.stride_tricks.sliding_window_view(times, order + 1)
    gaps = windows[:, :, None] - windows[:, None, :] + np.eye(order + 1)
    weights = 1.0 / np.prod(gaps / gaps[:, :1, -1:], axis=2)
    weights /= np.linalg.norm(weights, axis=1, keepdims=True)
    residuals = (weights * np.lib.stride_tricks.sliding_window_view(values, order + 1)).sum(axis=1)
    n = len(residuals)
    total = float(n)  # of the squares of the differences' covariances, whose diagonal is 1
    for lag in range(1, min(order, n - 1) + 1):
        shared = (weights[:-lag, lag:] * weights[lag:, : order + 1 - lag]).sum(axis=1)
        total += 2.0 * float((shared**2).sum())
    return LocalNoise(math.sqrt(float(np.mean(residuals**2))), n * n / total)


def excesses_of(energy: TrajectoryEnergy | JointEnergy, theta: Array, *, above: float) -> list[Excess]:
    """Quantities whose residuals at ``theta`` (q,) are more than ``above`` times the local noise, worst first.

    Residuals are of logarithms with log-normal errors, and of twice the square roots of counts, whose variance is 1 by
    Poisson's law (Anscombe 1948).
    """
    parts = energy.with_parameters(theta) if isinstance(energy, JointEnergy) else [(energy, theta)]
    found = [excess for part, own in parts for excess in excesses_of_one(part, own, above)]
    return sorted(found, key=lambda excess: -excess.ratio)


def excesses_of_one(energy: TrajectoryEnergy, theta: Array, above: float) -> list[Excess]:
    """``excesses_of`` one series."""
    layout, one = energy.layout, energy.fitted(theta[None])
    times, quantities, data, solution = one.times, one.quantities, one.data, one.errors_about[0]
    counts = layout.law in ("poisson", "negative_binomial")
    if counts:
        with np.errstate(all="ignore"):
            data, solution = (2.0 * np.sqrt(of + ANSCOMBE) for of in (data, one.solution[0]))
    if not np.isfinite(solution).all():
        return []
    at, n = places_of(layout.shape), len(layout.quantities)
    is_known = (energy.numbers[at.free_row : at.free_row + n] < 0.0) & (not counts)
    known_sds = np.where(is_known, energy.numbers[at.deviation : at.deviation + n], 0.0)
    found = []
    for d in np.unique(quantities):
        own = quantities == d
        if own.sum() < FEWEST_DATA:
            continue
        residual = math.sqrt(float(np.mean((data[own] - solution[own]) ** 2)))
        local = local_noise(times[own], data[own])
        sd = max(local.sd, float(known_sds[d]))
        least = max(above, math.sqrt(float(scipy.stats.f.isf(FALSE_ALARMS, own.sum(), local.freedom))))
        if sd > 0.0 and residual > least * sd and residual > LEAST_SHARE * float(data[own].std()):
            found.append(Excess(layout.quantities[d], residual, sd))
    return found


def excess_words(found: Sequence[Excess]) -> str:
    """What is larger than what, and what to do, in words."""
    worst = found[0]
    others = f", and likewise for {', '.join(one.quantity for one in found[1:4])}" if len(found) > 1 else ""
    return (
        f"the residuals of {worst.quantity} have a standard deviation of {worst.residual:.3g}, {worst.ratio:.1f} times "
        f"the data's local noise of {worst.local:.3g}{others}: the search has likely not found the best mode, or the "
        f"model cannot follow the data, or errors of neighbours are alike. Give usual parameters or priors nearer to "
        f"the data's, or n_searches above its present value, and look at a forecast beside the data"
    )
