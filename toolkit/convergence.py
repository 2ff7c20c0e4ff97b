"""R̂: whether chains agree with each other."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .autocorrelations import halves, moves, split_weights
from .given_draws import check_draw_weights, check_draws
from .ranks import median, normal_scores

Array = NDArray[np.float64]

NOTHING = 1e-24  # a variance of normal scores that is rounding


def r_hat(draws: Any, *, weights: Any = None) -> Array:
    """R̂ of each coordinate, (dim,): the spread of all draws over that within the halves of the chains.

    draws: (chain, draw, dim), as ``run.draws``; weights: (chain, draw), as ``run.weights``, up to a factor of each
    chain; ranks, means and variances are then weighted. Of the normal scores of the ranks, and of those of the distance
    from the median; the larger of the two. One chain is compared with itself, its first half with its second.
    Law: for M halves of n independent draws each, n (R̂² − 1) + 1 is the larger of two F(M − 1, M (n − 1)), which are
    almost independent, so R̂ − 1 is of order 1/n; autocorrelation multiplies it. Above 1.01 chains have not mixed; near
    1 they agree with each other, all in one mode perhaps. inf where a coordinate stands still in every half chain, in
    different places; nan where all its draws are equal, where half a chain has no weight, or with fewer than 4 draws a
    chain. Raises TypeError or ValueError where shapes do not fit.
    Source: Vehtari et al. (2021), eq. 4, 14 and 15.
    """
    points = check_draws(draws)
    given, result = check_draw_weights(weights, points), np.full(points.shape[2], np.nan)
    if points.shape[1] < 4:
        return result
    scale = split_weights(given)
    for d in range(points.shape[2]):
        values = halves(points[..., d])
        if moves(values, scale):
            folded = np.abs(values - median(values, scale))
            result[d] = max(spread_ratio(normal_scores(v, scale), scale) for v in (values, folded))
    return result


def spread_ratio(values: Array, weights: Array | None) -> float:
    """R̂ of (half chain, draw); 1 where nothing moves."""
    n = values.shape[1]
    if weights is not None and not weights.any(axis=1).all():
        return math.nan
    shares = np.full(values.shape, 1.0 / n) if weights is None else weights / weights.sum(axis=1, keepdims=True)
    means = (shares * values).sum(axis=1)
    within = float((shares * (values - means[:, None]) ** 2).sum(axis=1).mean()) * n / (n - 1)
    between = float(means.var(ddof=1))
    if within < NOTHING:
        return math.inf if between > NOTHING else 1.0
    return math.sqrt((n - 1) / n + between / within)
