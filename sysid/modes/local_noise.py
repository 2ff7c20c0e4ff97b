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

from ..arrays import Array, Integers

DIFFERENCE_ORDERS = (2, 3, 4)  # of the polynomials' degree plus 1; the smallest noise counts
FEWEST_DATA = 8
FALSE_ALARMS = 1e-4  # of a quantity with independent normal errors
LARGE_RATIO = 3.0  # AR(1) errors of correlation 0.8 between neighbours reach it; independent ones are at 1
DOUBTFUL_RATIO = 2.0  # above which frequencies are searched
LEAST_SHARE = 0.01  # of the data's spread: smaller residuals are no missed mode, but errors of steps or rounding


class Excess(NamedTuple):
    """Residuals of a quantity that are larger than its local noise: both as standard deviations.

    quantity: its name, and its experiment where there are several.
    """

    quantity: str
    residual: float
    local: float

    @property
    def ratio(self) -> float:
        """How many times larger."""
        return self.residual / self.local


class Fitted(NamedTuple):
    """Measured values of one series beside a solution: time, quantity and value of each datum (n,), the solution there.

    Values are such that all of a quantity have errors of about one standard deviation: logarithms with log-normal
    errors, twice the square roots of counts. names: of the quantities. known_sds: of their errors, 0 where unknown.
    """

    times: Array
    quantities: Integers
    data: Array
    solution: Array
    names: tuple[str, ...]
    known_sds: Array


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


def excesses_of(fits: Sequence[Fitted], *, above: float) -> list[Excess]:
    """Quantities whose residuals are more than ``above`` times the local noise, worst first."""
    found = []
    for e, fit in enumerate(fits):
        of_experiment = f" of experiment {e}" if len(fits) > 1 else ""
        for d in np.unique(fit.quantities):
            own = fit.quantities == d
            if own.sum() < FEWEST_DATA or not np.isfinite(fit.solution[own]).all():
                continue
            data = fit.data[own]
            residual = math.sqrt(float(np.mean((data - fit.solution[own]) ** 2)))
            local = local_noise(fit.times[own], data)
            sd = max(local.sd, float(fit.known_sds[d]))
            least = max(above, math.sqrt(float(scipy.special.fdtri(own.sum(), local.freedom, 1.0 - FALSE_ALARMS))))
            if sd > 0.0 and residual > least * sd and residual > LEAST_SHARE * float(data.std()):
                found.append(Excess(f"{fit.names[d]}{of_experiment}", residual, sd))
    return sorted(found, key=lambda excess: -excess.ratio)


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
