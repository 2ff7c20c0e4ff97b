"""Means of a run's coordinates with their errors, ESS and R-hat, for a table that takes a second."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .autocorrelations import ess
from .batch_means import BatchMeansSoFar
from .convergence import r_hat
from .moments import MomentsSoFar, pool
from .result import Run, fold

Floats = NDArray[np.float64]

MOST_NUMBERS = 10**6  # ranked and transformed for one table, which takes about a second
MOST_ROWS = 10


class Coordinates(NamedTuple):
    """Numbers of coordinates, each (row,), of the first few; nan where they cannot be known.

    ess is bulk ESS of all chains together, mcse the standard error of the mean. source: what they were made of. chains:
    how many that was.
    """

    mean: Floats
    sd: Floats
    mcse: Floats
    ess: Floats
    r_hat: Floats
    source: str
    chains: int


def coordinates_of(run: Run) -> Coordinates | None:
    """Numbers of the coordinates, from stored draws or, where there are none, from accumulators; else None."""
    if run.replica_draws.shape[2] > 0:
        return from_draws(run)
    for name, result in run.accumulated.items():
        if isinstance(result, MomentsSoFar) and (result.weight > 0.0).any():
            return from_moments(name, result)
    for name, result in run.accumulated.items():
        if isinstance(result, BatchMeansSoFar) and np.isfinite(result.mean).all(axis=1).any():
            return from_batches(name, result)
    return None


def from_draws(run: Run) -> Coordinates | None:
    """Numbers of stored draws: of all, or of as many chains, and then of as many last draws, as a second allows."""
    targets, weighted = run.sampler.n_target_replicas, run.replica_weights is not None
    moments, dim = run.replica_draws.shape[2], min(MOST_ROWS, run.replica_draws.shape[3])
    whole = np.flatnonzero((run.counts.status == 0).all(axis=1))
    wanted = max(4, MOST_NUMBERS // (moments * targets * dim))
    chains = whole[np.linspace(0, whole.size - 1, min(wanted, whole.size)).astype(int)]
    n = min(moments, max(4, MOST_NUMBERS // (max(1, chains.size) * targets * dim)))
    points = fold(run.replica_draws[chains, :targets, -n:, :dim]) if chains.size else np.zeros((0, n, dim))
    given = None
    if weighted and chains.size:
        given = fold(run.replica_weights[chains, :targets, -n:])  # type: ignore[index]
        loaded = given.any(axis=1)
        chains, points, given = chains[loaded], points[loaded], given[loaded]
    if chains.size == 0:
        return None
    loads = np.ones(points.shape[:2]) if given is None else given
    shares = (loads / loads.sum(axis=1, keepdims=True))[..., None]
    means = (shares * points).sum(axis=1)
    within = (shares * (points - means[:, None]) ** 2).sum(axis=1)
    mean, covariance, _ = pool(means, within[:, :, None] * np.eye(within.shape[1]))
    sd = np.sqrt(np.diagonal(covariance))
    worth, ratio, mcse = (np.full(dim, np.nan) for _ in range(3))
    if points.shape[1] >= 4:
        worth, ratio = ess(points, weights=given), r_hat(points, weights=given)
        with np.errstate(divide="ignore", invalid="ignore"):
            mcse = sd / np.sqrt(ess(points, weights=given, method="mean"))
    parts = [f"{chains.size:,} of {run.n_chains:,} chains"] if chains.size < run.n_chains else []
    if n < moments:
        parts.append(f"the last {n:,} of {moments:,} draws")
    return Coordinates(mean, sd, mcse, worth, ratio, " and ".join(parts), chains.size)


def from_moments(name: str, result: MomentsSoFar) -> Coordinates:
    """Numbers by the spread between the chains' means."""
    used = result.weight > 0.0
    within = np.diagonal(result.covariance[used], axis1=1, axis2=2)[:, :MOST_ROWS].mean(axis=0)
    variance = np.diagonal(result.pooled_covariance)[:MOST_ROWS]
    error, chains = result.standard_error[:MOST_ROWS], int(used.sum())
    with np.errstate(divide="ignore", invalid="ignore"):
        worth = variance / error**2
        ratio = np.sqrt(1.0 + error**2 * chains / within)
    source = f"accumulated[{name!r}], by the spread between chains"
    return Coordinates(result.pooled_mean[:MOST_ROWS], np.sqrt(variance), error, worth, ratio, source, chains)


def from_batches(name: str, result: BatchMeansSoFar) -> Coordinates:
    """Numbers by the spread between the batches of each chain."""
    used = np.isfinite(result.mean).all(axis=1)
    mean, variance = result.mean[used, :MOST_ROWS], result.variance[used, :MOST_ROWS]
    pooled, covariance, spread = pool(mean, variance[:, :, None] * np.eye(mean.shape[1]))
    error = np.sqrt((result.standard_error[used, :MOST_ROWS] ** 2).sum(axis=0)) / len(mean)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.sqrt(1.0 + spread**2 * len(mean) / variance.mean(axis=0))
    sd, worth = np.sqrt(np.diagonal(covariance)), result.ess[used, :MOST_ROWS].sum(axis=0)
    return Coordinates(pooled, sd, error, worth, ratio, f"accumulated[{name!r}], by batches", len(mean))
