"""Statistics for the checks of laws: functions of a draw with a mean known from the truth or Stein's identity."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..problem.definition import Problem, Truth

Floats = NDArray[np.float64]
Values = Callable[[Floats, Floats, Floats], Floats]

PROBABILITIES = (0.05, 0.25, 0.5, 0.75, 0.95)
HEAVY = 30.0  # kurtosis above which the estimated error of a variance is unreliable
ALL_PAIRS = 4  # most dimensions in which all covariances are checked; else only variances
CELL_EDGES = (0.1, 0.3, 0.5, 0.7, 0.9)  # quantiles


class Group(NamedTuple):
    """One check of a law: functions ``values`` of a draw, and their expected means."""

    name: str
    labels: list[str]
    expected: Floats  # (k,)
    scale: Floats  # (k,), approximate standard deviation of each value
    slack: Floats  # (k,), error of the truth itself
    unit: str  # of deviations in messages: 'share', 'deviations' or 'probability'
    values: Values  # points (n, dim), energies (n,), gradients (n, dim) → (n, k)
    remark: str = ""


class Unknown(NamedTuple):
    """A check that is impossible with this truth, and why; needed: whether other runs would allow it."""

    name: str
    reason: str
    needed: bool = False


def truth_groups(truth: Truth, problem: Problem, exact: Floats | None) -> Iterator[Group | Unknown]:
    """Moments, modes, cells and energies, as far as ``truth`` has them; exact: draws of it (n, dim), or None."""
    makers: list[tuple[str, Callable[[], Group | Unknown]]] = [
        ("mean", lambda: mean_group(truth)),
        ("covariance", lambda: covariance_group(truth, exact)),
        ("mode weights", lambda: mode_group(truth)),
        ("cells", lambda: cell_group(truth, exact)),
        ("energies", lambda: energy_group(truth)),
    ]
    for name, make in makers:
        try:
            yield make()
        except (AttributeError, NotImplementedError, TypeError, ValueError) as error:
            yield Unknown(name, f"the truth of {problem.name!r} does not tell: {error}")


def mean_group(truth: Truth) -> Group | Unknown:
    """The mean of every coordinate."""
    mean, spread = np.asarray(truth.mean, np.float64), np.sqrt(np.diag(truth.covariance))
    if not np.isfinite(mean).all() or not np.isfinite(spread).all():
        return Unknown("mean", "it has no mean, or a sample mean no finite error")
    labels = [f"the mean of x[{d}]" for d in range(mean.size)]
    slack = truth.accuracy * np.maximum(np.abs(mean), spread)
    return Group("mean", labels, mean, spread, slack, "deviations", lambda x, u, g: x)


def covariance_group(truth: Truth, exact: Floats | None) -> Group | Unknown:
    """Variances, and covariances in few dimensions, of coordinates whose tails are not too heavy."""
    mean, covariance = np.asarray(truth.mean, np.float64), np.asarray(truth.covariance, np.float64)
    spread = np.sqrt(np.diag(covariance))
    has_light_tails = np.isfinite(spread) & np.isfinite(mean)
    if exact is not None and has_light_tails.any():
        fourth = ((exact - exact.mean(axis=0)) ** 4).mean(axis=0) / exact.var(axis=0) ** 2
        has_light_tails &= fourth < HEAVY
    kept = np.flatnonzero(has_light_tails)
    if not kept.size:
        return Unknown("covariance", "its tails are too heavy for a sample variance to have an error to go by")
    pairs = [(i, j) for i in kept for j in kept if i == j or (i < j and mean.size <= ALL_PAIRS)]
    first, second = (np.array(side) for side in zip(*pairs, strict=True))
    labels = [
        f"the variance of x[{i}]" if i == j else f"the covariance of x[{i}] and x[{j}]" for i, j in pairs
    ]  # fmt: skip
    scale = spread[first] * spread[second]
    remark = f"{mean.size - kept.size} coordinates left out, whose tails are too heavy" if kept.size < mean.size else ""

    def values(x: Floats, u: Floats, g: Floats) -> Floats:
        deviation = x - mean
        return np.asarray(deviation[:, first] * deviation[:, second])

    slack = truth.accuracy * scale
    return Group("covariance", labels, covariance[first, second], scale, slack, "share", values, remark)


def mode_group(truth: Truth) -> Group | Unknown:
    """The weight of every mode."""
    weights = np.asarray(truth.modes.weights, np.float64)
    if weights.size < 2:
        return Unknown("mode weights", "it has one mode")
    labels = [f"the weight of the mode at {point_text(centre)}" for centre in truth.modes.centres]
    return probability_group("mode weights", labels, weights, truth, lambda x, u, g: np.asarray(truth.memberships(x)))


def cell_group(truth: Truth, exact: Floats | None) -> Group | Unknown:
    """Probabilities of cells between quantiles of the first coordinate, or of the first two."""
    if exact is None:
        return Unknown("cells", "it has no exact draws to lay cells by")
    axes = min(exact.shape[1], 2)
    edges = [np.unique(np.quantile(exact[:, d], CELL_EDGES)) for d in range(axes)]
    if any(len(ends) < 2 for ends in edges):
        return Unknown("cells", "its draws are all at one place")
    masses = np.asarray(truth.cell_masses(*edges), np.float64)
    corners = [np.unravel_index(i, masses.shape) for i in range(masses.size)]
    labels = [
        "the probability of the cell " + " × ".join(
            f"[{ends[i]:.3g}, {ends[i + 1]:.3g}]" for ends, i in zip(edges, corner, strict=True)
        )
        for corner in corners
    ]  # fmt: skip

    def values(x: Floats, u: Floats, g: Floats) -> Floats:
        inside, number = np.ones(len(x), np.bool_), np.zeros(len(x), np.int64)
        for d, ends in enumerate(edges):
            place_on_axis = np.searchsorted(ends, x[:, d], side="right") - 1
            inside &= (place_on_axis >= 0) & (place_on_axis < len(ends) - 1)
            number = number * (len(ends) - 1) + place_on_axis
        indicators = np.zeros((len(x), masses.size))
        indicators[np.flatnonzero(inside), number[inside]] = 1.0
        return indicators

    return probability_group("cells", labels, masses.ravel(), truth, values)


def energy_group(truth: Truth) -> Group:
    """Probabilities of energies below the truth's quantiles."""
    levels = np.asarray(truth.energy_quantiles(np.array(PROBABILITIES)), np.float64)
    labels = [f"the probability of an energy below {level:.4g}" for level in levels]

    def values(x: Floats, u: Floats, g: Floats) -> Floats:
        return np.asarray((u[:, None] <= levels).astype(np.float64))

    # Energy quantiles from quadrature have errors of 1e-4 in probability.
    group = probability_group("energies", labels, np.array(PROBABILITIES), truth, values)
    return group._replace(slack=np.maximum(group.slack, 1e-4))


def probability_group(name: str, labels: list[str], expected: Floats, truth: Truth, values: Values) -> Group:
    """A group of probabilities."""
    scale = np.sqrt(np.clip(expected * (1.0 - expected), 1e-12, None))
    return Group(name, labels, expected, scale, np.full(expected.size, truth.accuracy), "probability", values)


def stein_group(centre: Floats, spread: Floats, temperature: float) -> Group:
    """Stein's identities E ∂U/∂x = 0 and E (x − centre) ∂U/∂x = T for each coordinate; they need no truth.

    They hold for the law at temperature T without a domain. Both are divided by the temperature.
    """
    dim = centre.size
    labels = [f"E[∂U/∂x[{d}]] · the spread / T" for d in range(dim)]
    labels += [f"E[(x[{d}] − its centre) ∂U/∂x[{d}]] / T" for d in range(dim)]
    labels += ["the mean of these over all coordinates"] * (dim > 1)  # detects a wrong temperature better than each

    def values(x: Floats, u: Floats, g: Floats) -> Floats:
        products = (x - centre) * g
        return np.hstack([g * spread, products, products.mean(axis=1, keepdims=True)[:, : dim - 1]]) / temperature

    expected = np.concatenate([np.zeros(dim), np.ones(len(labels) - dim)])
    return Group("Stein's identity", labels, expected, np.ones(len(labels)), np.zeros(len(labels)), "share", values)


def point_text(point: Any) -> str:
    """A point in a message."""
    numbers = ", ".join(f"{x:.3g}" for x in np.asarray(point)[:4])
    return f"[{numbers}{', …' if np.size(point) > 4 else ''}]"
