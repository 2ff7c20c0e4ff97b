"""Weighted draws: how many equal ones they are worth, and equally weighted draws made of them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .checks import check_array, check_count, check_flag
from .memory import check_room

__all__ = ["resample"]

Array = NDArray[np.float64]


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
    picked = np.empty((len(points), size, points.shape[2]))
    for chain, share in enumerate(shares):
        # Draw i gets the whole numbers between its two ends of the running sum, moved by one random number for all.
        ends = np.floor(np.cumsum(share) * size + rng.random())
        ends[np.flatnonzero(share)[-1] :] = size  # rounding must not lose one, nor give it to a draw of weight 0
        picked[chain] = np.repeat(points[chain], np.diff(ends, prepend=0.0).astype(np.int64), axis=0)
    return picked


def check_weights(weights: Any, name: str = "weights") -> Array:
    """``weights`` (chain, draw) as shares of their chain's sum. Raises ValueError where they are no such weights."""
    values = check_array(name, weights)
    if values.ndim != 2 or values.size == 0:
        raise ValueError(f"{name} must have shape (chain, draw), got {values.shape}")
    if (values < 0.0).any():
        raise ValueError(f"{name} must be ≥ 0, got {values.min()}")
    largest = values.max(axis=1, keepdims=True)
    if (largest == 0.0).any():
        raise ValueError(f"{name} must not all be 0, got that for chain {int(np.argmin(largest))}")
    scaled = values / largest  # first, or the sum of large ones is inf
    return np.asarray(scaled / scaled.sum(axis=1, keepdims=True))
