"""Mean, standard deviation, ESS and R-hat of many short runs at a time: those of ``diagnostics``, row by row.

Of runs of some thousand draws the calls of NumPy take longer than its work, and both longer than sampling; here a call
is for the rows of many runs. Sums run along the last axis, so that no bit of a row depends on the others.
"""

from collections.abc import Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from ..._engine.run_record import RunRecord
from ...diagnostics.convergence import (
    correlation_time,
    halves,
    mean_ess,
    median,
    moves,
    normal_scores,
    ratio_of_spreads,
    split_weights,
    spread_ratio,
)
from ...weighting import check_draw_weights, rescaled

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

N_STATISTICS = 5  # mean, sd, mcse, ess, r_hat
FEWEST_DRAWS = 4  # of a chain, for ESS and R-hat
AT_ONCE = 2**16  # numbers, which fit into the cache


def statistics_of(runs: Sequence[RunRecord]) -> Array:
    """mean, sd, mcse, ess and r_hat of each run, (run, statistic, coordinate), of equal shapes and without divergence.

    ess and r_hat are those of ``diagnostics``, mcse is sd over the root of the ESS for means. nan where a draw is not
    finite, or a chain has no weight.
    """
    dim = runs[0].replica_draws.shape[3]
    found = np.full((len(runs), N_STATISTICS, dim), np.nan)
    if runs[0].replica_weights is not None:
        for i, run in enumerate(runs):
            found[i] = weighted_statistics(run.draws, run.weights)
        return found
    size = runs[0].draws.size
    length = max(1, AT_ONCE // max(1, size))
    for first in range(0, len(runs), length):
        draws = np.stack([run.draws for run in runs[first : first + length]])
        rows = np.ascontiguousarray(draws.transpose(0, 3, 1, 2)).reshape(-1, *draws.shape[1:3])
        is_finite = np.isfinite(draws).all(axis=(1, 2, 3))
        rows[~np.repeat(is_finite, dim)] = 0.0
        own = row_statistics(rows).reshape(len(draws), dim, N_STATISTICS)
        own[~is_finite] = np.nan
        found[first : first + length] = own.transpose(0, 2, 1)
    return found


def row_statistics(values: Array) -> Array:
    """The statistics (row, statistic) of values (row, chain, draw), contiguous and finite."""
    with np.errstate(over="ignore", invalid="ignore"):  # squares of numbers above 1e154
        means, variances = values.mean(axis=2), values.var(axis=2)
        mean = means.mean(axis=1)
        sd = np.sqrt(variances.mean(axis=1) + ((means - mean[:, None]) ** 2).mean(axis=1))
    found = np.full((len(values), N_STATISTICS), np.nan)
    found[:, 0], found[:, 1] = mean, sd
    if values.shape[2] < FEWEST_DRAWS:
        return found
    usable = np.isfinite(sd) & rows_move(values)
    if not usable.any():
        return found
    values, sd = values[usable], sd[usable]
    half = values.shape[2] // 2
    split = np.concatenate([values[:, :, :half], values[:, :, -half:]], axis=1)
    scores = row_scores(split)
    largest = np.abs(split).max(axis=(1, 2), keepdims=True)
    for_mean = row_ess(np.ldexp(split, 1 - np.frexp(largest)[1]))
    middle = np.median(split.reshape(len(split), -1), axis=1)[:, None, None]
    r_hat = np.maximum(row_spread_ratio(scores), row_spread_ratio(row_scores(np.abs(split - middle))))
    found[usable, 2:] = np.transpose(
        [sd / np.sqrt(for_mean), row_ess(scores), np.where(rows_move(split), r_hat, np.nan)]
    )
    return found


def rows_move(values: Array) -> Flags:
    """``convergence.moves`` of each row (row, …)."""
    axes = tuple(range(1, values.ndim))
    low, high = values.min(axis=axes), values.max(axis=axes)
    return np.asarray(high - low > 1e-15 * np.maximum(np.abs(low), np.abs(high)))


def row_scores(values: Array) -> Array:
    """``convergence.normal_scores`` of each row (row, chain, draw)."""
    flat = values.reshape(len(values), -1)
    count = flat.shape[1]
    order = np.argsort(flat, axis=1)
    arranged = np.take_along_axis(flat, order, axis=1)
    is_first = np.ones(flat.shape, np.bool_)
    np.not_equal(arranged[:, 1:], arranged[:, :-1], out=is_first[:, 1:])
    places = np.flatnonzero(is_first)
    repeats = np.diff(places, append=flat.size)  # of a value in its row
    middles = 0.5 * (places % count + (places % count + repeats)) + 0.5
    ranks = np.empty(flat.shape)
    np.put_along_axis(ranks, order, np.repeat(middles, repeats).reshape(flat.shape), axis=1)
    return np.asarray(scipy.special.ndtri((ranks - 0.375) / (count + 0.25)).reshape(values.shape))


def row_ess(values: Array) -> Array:
    """``convergence.mean_ess`` of each row (row, half chain, draw)."""
    within, between = values.var(axis=2, ddof=1).mean(axis=1), values.mean(axis=2).var(axis=1, ddof=1)
    found = np.full(len(values), np.nan)
    for row in np.flatnonzero(rows_move(values)):
        own = values[row]
        found[row] = own.size / correlation_time(own, float(within[row]), float(between[row]))
    return found


def row_spread_ratio(values: Array) -> Array:
    """``convergence.spread_ratio`` of each row (row, half chain, draw)."""
    n = values.shape[2]
    share = 1.0 / n
    means = (share * values).sum(axis=2)
    within = (share * (values - means[:, :, None]) ** 2).sum(axis=2).mean(axis=1) * n / (n - 1)
    between = means.var(axis=1, ddof=1)
    return ratio_of_spreads(within, between, n)


def weighted_statistics(draws: Array, weights: Array) -> Array:
    """The statistics (statistic, coordinate) of draws (chain, draw, dim) with weights (chain, draw)."""
    found = np.full((N_STATISTICS, draws.shape[2]), np.nan)
    if not np.isfinite(draws).all() or not weights.any(axis=1).all():
        return found
    scale = check_draw_weights(weights, draws)
    shares = (weights / weights.sum(axis=1, keepdims=True))[..., None]
    means = (shares * draws).sum(axis=1)
    variances = (shares * (draws - means[:, None]) ** 2).sum(axis=1)
    found[0] = means.mean(axis=0)
    found[1] = np.sqrt(variances.mean(axis=0) + means.var(axis=0))
    if draws.shape[1] >= FEWEST_DRAWS:
        for d in range(draws.shape[2]):
            found[2:, d] = weighted_convergence(draws[..., d], scale, float(found[1, d]))
    return found


def weighted_convergence(values: Array, weights: Array | None, sd: float) -> tuple[float, float, float]:
    """mcse, ess and r_hat of one coordinate (chain, draw), which share the ranks of the draws."""
    shares, split = split_weights(weights), halves(values)
    if not moves(values, weights):
        return np.nan, np.nan, np.nan
    for_mean = mean_ess(rescaled(split), shares)
    scores = normal_scores(split, shares)
    ess, r_hat = mean_ess(scores, shares), np.nan
    if moves(split, shares):
        folded = normal_scores(np.abs(split - median(split, shares)), shares)
        r_hat = max(spread_ratio(scores, shares), spread_ratio(folded, shares))
    return sd / np.sqrt(for_mean), ess, r_hat
