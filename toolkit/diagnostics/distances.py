"""Distances between two samples: maximum mean discrepancy, and Wasserstein-1 of each coordinate."""

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from .._compiler.decorators import compile_part
from .._compiler.signatures import FLOATS, MATRIX
from ..errors import check_flag, check_scale
from ..maths.elementary import exp_share, fma, select
from ..weighting import check_sample, rescaled

Array = NDArray[np.float64]

TILE = 512  # columns of pairs computed at a time, which fit into the fastest cache
FOR_BANDWIDTH = 1000  # points for the median distance
ADD_KERNELS = types.void(MATRIX, FLOATS, MATRIX, types.float64, MATRIX, FLOATS)


class MMD(NamedTuple):
    """Maximum mean discrepancy. squared: the estimate of MMD². bandwidth: of the kernel.

    spread: standard deviation of ``squared`` without bias for independent draws of equal laws, from the pooled sample.
    """

    squared: float
    bandwidth: float
    spread: float


def mmd(
    draws: Any,
    others: Any,
    *,
    bandwidth: float | None = None,
    weights: Any = None,
    other_weights: Any = None,
    unbiased: bool = True,
) -> MMD:
    """Squared MMD of two samples under the kernel exp(−|x − y|² / (2 b²)): E k(x, x') + E k(y, y') − 2 E k(x, y).

    draws, others: (n, dim) or (chain, draw, dim), chains then counting equally; weights, other_weights: of the same
    shape without dim. others is usually ``truth.independent_draws(...)``. bandwidth: b > 0 (None: the median distance
    of the pairs among 1,000 pooled points, evenly picked; give it to compare runs). unbiased=False counts each point's
    pair with itself too, so the result is never negative, and too large by about (1 − E k) (1/n + 1/m).
    Law: for independent draws of equal laws the mean is 0 and the standard deviation ``spread``; it is a weighted sum
    of centred χ², skewed to the right. Autocorrelated draws are too large by about their autocorrelation time over n
    and vary more. A bandwidth much wider than a mode does not see what is in it, one of the size of a mode hardly sees
    where modes far apart have the wrong weights. Costs (n + m)² kernels, and little memory.
    Raises TypeError or ValueError where shapes do not fit. Source: Gretton et al. (2012), eq. 3 and 5, theorem 12.
    """
    x, v = check_sample("draws", draws, "weights", weights)
    y, w = check_sample("others", others, "other_weights", other_weights)
    if x.shape[1] != y.shape[1]:
        raise ValueError(f"others must have the dimension of draws, {x.shape[1]}, got {y.shape[1]}")
    check_flag("unbiased", unbiased)
    width = median_distance(x, y) if bandwidth is None else check_scale("bandwidth", bandwidth)
    points, n = np.concatenate([x, y]), len(x)
    v_squares, w_squares = float((v**2).sum()), float((w**2).sum())
    if unbiased and min(1.0 - v_squares, 1.0 - w_squares) < 1e-12:
        raise ValueError(f"draws and others must have at least 2 points each of weight > 0, got {n} and {len(y)}")
    share = n / len(points)
    pooled = np.append(share * v, (1.0 - share) * w)
    rate, columns = np.sqrt(0.5) / width, points.T.copy()
    add, scratch = compile_part(add_kernels, ADD_KERNELS), np.empty(TILE)
    with_x, with_y = np.zeros((2, 2, len(points)))  # means of the kernel, and of its square, of every point with both
    add(x, v, columns, rate, with_x, scratch)
    add(y, w, columns, rate, with_y, scratch)
    (of_x, x_squares), (of_y, y_squares) = with_x, with_y
    means = share * of_x + (1.0 - share) * of_y
    squares = float(pooled @ (share * x_squares + (1.0 - share) * y_squares))
    within = np.array([v @ of_x[:n], w @ of_y[n:]])
    if unbiased:
        within = (within - [v_squares, w_squares]) / (1.0 - np.array([v_squares, w_squares]))
    mean, same = float(pooled @ means), float((pooled**2).sum())
    centred = squares - 2.0 * float(pooled @ means**2) + mean**2
    centred -= float(pooled**2 @ (1.0 - 2.0 * means + mean) ** 2)  # each point's pair with itself
    spread = np.sqrt(2.0 * max(centred, 0.0) / (1.0 - same)) * (v_squares + w_squares)
    return MMD(float(within.sum() - 2.0 * (w @ of_x[n:])), width, float(spread))


def add_kernels(rows: Any, loads: Any, columns: Any, rate: Any, sums: Any, scratch: Any) -> None:
    """Add Σ_i load_i k_ij and Σ_i load_i k_ij² to the rows of sums, k = exp(−(rate |x_i − y_j|)²), or 0 below e⁻⁷⁰⁰.

    rows: (row, dim); loads: (row,); columns: (dim, column); sums: (2, column); scratch: (tile,).
    """
    for start in range(0, columns.shape[1], TILE):
        first = max(start, 0)  # tells the compiler that it is ≥ 0, without which it does not vectorise
        size = min(TILE, columns.shape[1] - first)
        for i in range(rows.shape[0]):
            load = loads[i]
            for j in range(size):
                scratch[j] = 0.0
            for d in range(columns.shape[0]):
                x = rows[i, d]
                for j in range(size):
                    difference = (columns[d, first + j] - x) * rate
                    scratch[j] = fma(difference, difference, scratch[j])
            for j in range(size):
                square = scratch[j]
                kernel = select(square < 700.0, exp_share(-square), 0.0)
                sums[0, first + j] = fma(load, kernel, sums[0, first + j])
                sums[1, first + j] = fma(load * kernel, kernel, sums[1, first + j])


def median_distance(x: Array, y: Array) -> float:
    """Median distance of the pairs among 1,000 points evenly picked from both; 1 where it is 0."""
    points = np.concatenate([x, y])
    points = points[np.linspace(0, len(points) - 1, min(FOR_BANDWIDTH, len(points))).astype(int)]
    a, b = np.triu_indices(len(points), 1)
    gaps = points[a] - points[b]
    if not gaps.any():
        return 1.0
    scaled = rescaled(gaps)
    distance = float(np.median(np.linalg.norm(scaled, axis=1))) * float(np.abs(gaps).max() / np.abs(scaled).max())
    return distance if distance > 0.0 else 1.0


class Wasserstein(NamedTuple):
    """Wasserstein-1 of each coordinate. distance: (dim,). expected: (dim,), its mean for independent draws."""

    distance: Array
    expected: Array


def wasserstein(draws: Any, others: Any, *, weights: Any = None, other_weights: Any = None) -> Wasserstein:
    """Wasserstein-1 distance of two samples in each coordinate alone, ∫ |F − G|, in that coordinate's units.

    draws, others: (n, dim) or (chain, draw, dim), chains then counting equally; weights, other_weights: of the same
    shape without dim. others is usually ``truth.independent_draws(...)``.
    Law: for independent draws of equal laws the mean is √(2/π) √(1/n + 1/m) ∫ √(F (1 − F)), ``expected``, to first
    order, with F of both samples pooled and Kish's numbers where weights are uneven; autocorrelation comes on top. Says
    nothing of how coordinates go together: the modes (−1, −1), (1, 1) look like (−1, 1), (1, −1). Infinite or slow
    where the law has no second moment. Raises TypeError or ValueError where shapes do not fit.
    """
    x, v = check_sample("draws", draws, "weights", weights)
    y, w = check_sample("others", others, "other_weights", other_weights)
    if x.shape[1] != y.shape[1]:
        raise ValueError(f"others must have the dimension of draws, {x.shape[1]}, got {y.shape[1]}")
    distance, expected = np.empty(x.shape[1]), np.empty(x.shape[1])
    factor = np.sqrt(2.0 / np.pi * ((v**2).sum() + (w**2).sum()))
    share = len(x) / (len(x) + len(y))
    for d in range(x.shape[1]):
        values = np.append(x[:, d], y[:, d])
        order = np.argsort(values)
        gaps = np.diff(values[order])
        difference = np.cumsum(np.append(v, -w)[order])[:-1]
        pooled = np.clip(np.cumsum(np.append(share * v, (1.0 - share) * w)[order])[:-1], 0.0, 1.0)
        distance[d] = np.abs(difference) @ gaps
        expected[d] = factor * (np.sqrt(pooled * (1.0 - pooled)) @ gaps)
    return Wasserstein(distance, expected)
