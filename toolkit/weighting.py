"""Weighted draws: their effective sample size, and resampling to equally weighted draws."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import check_array, check_count, check_flag, check_room

__all__ = ["resample"]

# Standard errors of weighted frequencies by batch means; batches must be longer than the autocorrelation time.

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

PER_CHAIN, ALL = 20, 200  # batches of a chain, and of all chains


def batch_numbers(n_chains: int, n_draws: int) -> Integers:
    """The batch of every draw, (chain · draw,): 20 to a chain, fewer above 10 chains, whole chains above 200."""
    per_chain = min(PER_CHAIN, n_draws, max(1, ALL // n_chains))
    within = np.arange(n_draws) * per_chain // n_draws
    numbers = np.arange(n_chains)[:, None] * per_chain + within
    total = n_chains * per_chain
    return np.asarray((numbers if total <= ALL else numbers * ALL // total).ravel())


def cell_sums(cells: Integers, n_cells: int, weights: Array, batches: Integers) -> Array:
    """Sum of ``weights`` in each batch and cell, (batch, cell); all arguments (n,)."""
    n_batches = int(batches[-1]) + 1
    sums = np.bincount(batches * n_cells + cells, weights, minlength=n_batches * n_cells)
    return np.asarray(sums.reshape(n_batches, n_cells))


def ratio(sums: Array) -> tuple[Array, Array]:
    """Shares of the cells, (batch, cell) → (cell,), and the variances of these estimates; nan for one batch.

    The cells must include all draws, because a batch's weight is the sum of its row.
    """
    batch_weights, total = sums.sum(axis=1), sums.sum()
    shares = sums.sum(axis=0) / total
    if len(sums) < 2:
        return shares, np.full(shares.shape, np.nan)
    deviations = sums - batch_weights[:, None] * shares
    return shares, np.asarray((deviations**2).sum(axis=0) / total**2 * (len(sums) / (len(sums) - 1.0)))


def weighted_ess(weights: Any) -> Array:
    """Equally weighted draws that the weighted ones of each chain are worth, (Σw)² / Σw²; shape (chain,).

    weights: (chain, draw), ≥ 0, up to a factor of each chain. It is the number of draws where all weights are equal,
    and 1 where all weight lies on one. It knows nothing of the draws' autocorrelation, which comes on top.
    Raises TypeError or ValueError where they are no such weights. Source: Kish (1965), section 11.7.
    """
    shares = check_weights(weights)
    return np.asarray(1.0 / (shares**2).sum(axis=1))


def resample(
    draws: Any, weights: Any, *, n: int | None = None, seed: int, without_duplicates: bool = False
) -> Array | list[Array]:
    """Equally weighted draws of each chain, (chain, n, dim), by systematic resampling of weighted ones.

    draws: (chain, draw, dim), as ``run.draws``; weights: (chain, draw), as ``run.weights``. n ≥ 1: draws per chain
    (None: as many as there are). Draw i of a chain comes n w_i / Σw times, rounded up or down at random, and so that
    on average it is right; copies follow each other, in the order of the chain. For pictures and histograms.
    Copies have distance 0, so no estimate by nearest neighbours, of KL or of entropy, survives them: for these
    without_duplicates=True keeps each draw at most once, with probability w / max w of its chain. Fewer are left,
    Σw / max w on average and as many as it happens, so it returns a list of (kept, dim), one per chain, and takes no n.
    Raises TypeError or ValueError where shapes do not fit or numbers are out of range.
    Source: Kitagawa (1996), appendix; von Neumann (1951) for the other.
    """
    points, shares = check_array("draws", draws), check_weights(weights)
    if points.ndim != 3 or points.shape[:2] != shares.shape:
        raise ValueError(
            f"draws must have shape (chain, draw, dim) with the chains and draws of weights {shares.shape}, got "
            f"{points.shape}"
        )
    rng = np.random.default_rng(check_count("seed", seed, at_least=0, below=2**64))
    if check_flag("without_duplicates", without_duplicates):
        if n is not None:
            raise ValueError(f"n must be None with without_duplicates=True, which leaves as many as it does, got {n}")
        kept = rng.random(shares.shape) * shares.max(axis=1, keepdims=True) < shares
        return [chain[which] for chain, which in zip(points, kept, strict=True)]
    size = points.shape[1] if n is None else check_count("n", n, at_least=1)
    check_room("n", size, 8.0 * size * len(points) * (points.shape[2] + 1))
    return systematic(points, shares, size, rng)


def systematic(points: Array, shares: Array, size: int, rng: np.random.Generator) -> Array:
    """``size`` draws of each chain, (chain, size, dim), each of ``points`` by its share; one random number a chain."""
    picked = np.empty((len(points), size, points.shape[2]))
    for chain, share in enumerate(shares):
        # Draw i gets as many copies as there are integers between its two ends of the running sum plus a random number.
        ends = np.floor(np.cumsum(share) * size + rng.random())
        ends[np.flatnonzero(share)[-1] :] = size  # or rounding could lose a copy, or give it to weight 0
        picked[chain] = np.repeat(points[chain], np.diff(ends, prepend=0.0).astype(np.int64), axis=0)
    return picked


def check_weights(weights: Any, name: str = "weights") -> Array:
    """``weights`` (chain, draw) as shares of their chain's sum. Raises ValueError where they are invalid."""
    values = check_array(name, weights)
    if values.ndim != 2 or values.size == 0:
        raise ValueError(f"{name} must have shape (chain, draw), got {values.shape}")
    if (values < 0.0).any():
        raise ValueError(f"{name} must be ≥ 0, got {values.min()}")
    largest = values.max(axis=1, keepdims=True)
    if (largest == 0.0).any():
        raise ValueError(f"{name} must not all be 0, got that for chain {int(np.argmin(largest))}")
    scaled = values / largest  # before the sum, which could overflow
    return np.asarray(scaled / scaled.sum(axis=1, keepdims=True))


# Checks of the draws and weights of diagnostics.


def check_draws(draws: Any, *, dim: int | None = None) -> Array:
    """``draws`` (chain, draw, dim), at least one of each. Raises TypeError or ValueError otherwise."""
    points = check_array("draws", draws)
    if points.ndim != 3 or points.size == 0 or dim not in (None, points.shape[2]):
        raise ValueError(f"draws must have shape (chain, draw, {'dim' if dim is None else dim}), got {points.shape}")
    return points


def check_draw_weights(weights: Any, draws: Array) -> Array | None:
    """``weights`` (chain, draw) scaled to mean 1 in each chain; None where all of a chain's are equal.

    Raises ValueError for another shape.
    """
    if weights is None:
        return None
    shares = check_weights(weights)
    if shares.shape != draws.shape[:2]:
        raise ValueError(f"weights must have the chains and draws of draws, {draws.shape[:2]}, got {shares.shape}")
    return None if (shares == shares[:, :1]).all() else np.asarray(shares * shares.shape[1])


def rescaled(values: Array) -> Array:
    """``values`` times the power of 2 that puts the largest in [1, 2), so that no square of a difference overflows."""
    return np.asarray(np.ldexp(values, 1 - np.frexp(np.abs(values).max())[1]))


def check_sample(name: str, draws: Any, weights_name: str, weights: Any) -> tuple[Array, Array]:
    """Points (n, dim) and shares (n,) with sum 1 of draws (n, dim) or (chain, draw, dim); chains count equally."""
    points = check_array(name, draws)
    if points.ndim not in (2, 3) or points.size == 0:
        raise ValueError(f"{name} must have shape (n, dim) or (chain, draw, dim), got {points.shape}")
    flat = np.ascontiguousarray(points.reshape(-1, points.shape[-1]))
    if weights is None:
        return flat, np.full(len(flat), 1.0 / len(flat))
    values = check_array(weights_name, weights)
    if values.shape != points.shape[:-1]:
        raise ValueError(f"{weights_name} must have shape {points.shape[:-1]}, that of {name}, got {values.shape}")
    shares = check_weights(values.reshape(-1, values.shape[-1]), weights_name)
    return flat, np.asarray(shares.ravel() / len(shares))


def shares_of(run: Any) -> Array | None:
    """The share of each draw of a run, (chain · draw,), with sum 1; None where all are equal.

    Contour's weights are known up to a factor of each chain, so its chains count equally; other weights are normalised
    over all chains. Raises ValueError where no draw has weight, or with contour no draw of a chain.
    """
    if run.replica_weights is None:
        return None
    by_chain = run.sampler.tempers.weighs_by_chain
    weights = run.weights if by_chain else run.weights.reshape(1, -1)
    if not weights.size:
        return np.zeros(0)
    empty = ~(weights > 0.0).any(axis=1)
    if empty.any():
        who = f"chain {int(np.argmax(empty))}" if by_chain else "the run"
        raise ValueError(f"run must have draws of weight > 0, and {who} has none: a longer one has some that count")
    shares = check_weights(weights, "weights of the run")
    return np.asarray(shares.ravel() / len(shares))
