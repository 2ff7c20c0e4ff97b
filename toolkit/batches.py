"""Standard errors of weighted frequencies by batch means: draws cut into batches much longer than their memory."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

PER_CHAIN, ALL = 20, 200


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

    The cells are all there are, so a batch's weight is the sum of its row.
    """
    loads, total = sums.sum(axis=1), sums.sum()
    shares = sums.sum(axis=0) / total
    if len(sums) < 2:
        return shares, np.full(shares.shape, np.nan)
    away = sums - loads[:, None] * shares
    return shares, np.asarray((away**2).sum(axis=0) / total**2 * (len(sums) / (len(sums) - 1.0)))
