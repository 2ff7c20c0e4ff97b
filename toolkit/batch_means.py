"""Standard errors and effective sample sizes of draws as they come, by batch means."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from .checks import check_count
from .compiling import kernel
from .gathering import Gathering, Gathers
from .moments import ANY_DRAWS, ANY_WEIGHTS
from .signatures import CUBE, FLOATS, INTEGERS, MATRIX

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

ADD = types.void(ANY_DRAWS, ANY_WEIGHTS, INTEGERS, INTEGERS, FLOATS, MATRIX, MATRIX, MATRIX, MATRIX, CUBE)


class BatchMeansSoFar(NamedTuple):
    """What the means of batches of draws say of each chain.

    draws: (chain,), how many. batch_length: (chain,), draws in a batch. n_batches: (chain,), full batches.
    mean, variance: (chain, dim), weighted, the variance divided by Σw. standard_error: (chain, dim), of the mean.
    ess: (chain, dim), variance / standard_error². nan with fewer than ``n_batches`` draws, or without weight.
    """

    draws: Integers
    batch_length: Integers
    n_batches: Integers
    mean: Floats
    variance: Floats
    standard_error: Floats
    ess: Floats


@dataclass(frozen=True)
class BatchMeans(Gathers):
    """The accumulator of ``batch_means``."""

    n_batches: int

    needs_energies = False

    def start(self, problem: Any, n_chains: int) -> dict[str, NDArray[Any]]:
        """Batches of one draw, and none of them begun."""
        dim, room = problem.target.dim, 2 * self.n_batches
        return {
            "draws": np.zeros(n_chains, np.int64),
            "length": np.ones(n_chains, np.int64),
            "weight": np.zeros(n_chains),
            "origin": np.zeros((n_chains, dim)),
            "mean": np.zeros((n_chains, dim)),
            "scatter": np.zeros((n_chains, dim)),
            "loads": np.zeros((n_chains, room)),
            "sums": np.zeros((n_chains, room, dim)),
        }

    def is_possible(self, state: dict[str, NDArray[Any]]) -> bool:
        """Whether a saved state has its draws in batches that there is room for."""
        draws, length = state["draws"], state["length"]
        return bool((draws >= 0).all() and (length >= 1).all() and (draws // length <= 2 * self.n_batches).all())

    def gathering(self, dim: int) -> Gathering:
        """Draws go to their batches."""
        own = ("draws", "length", "weight", "origin", "mean", "scatter", "loads", "sums")
        return Gathering(add_to_batches, ADD, ("draws", "weights"), (), own)

    def result(self, state: dict[str, NDArray[Any]]) -> BatchMeansSoFar:
        """Means and errors as they stand; the batch under way counts by its share of the weight."""
        draws, length = state["draws"].copy(), state["length"].copy()
        weight = np.where(state["weight"] > 0.0, state["weight"], np.nan)[:, None]
        offset = np.where(np.isnan(weight), np.nan, state["mean"])
        mean = state["origin"] + offset
        batches = -(-draws // length)
        enough = (draws >= self.n_batches)[:, None]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            away = state["sums"] - offset[:, None] * state["loads"][:, :, None]
            variance = state["scatter"] / weight
            freedom = (batches / (batches - 1.0))[:, None]
            error = np.where(enough, np.sqrt((away**2).sum(axis=1) * freedom) / weight, np.nan)
            ess = variance / error**2
        return BatchMeansSoFar(draws, length, draws // length, mean, variance, error, ess)


def batch_means(n_batches: int = 50) -> BatchMeans:
    """Standard error of each chain's means, and the ESS that follows, without stored draws: ``BatchMeansSoFar``.

    n_batches ≥ 4: there are so many batches of equal length up to twice that; then neighbours are joined. Weighted
    where draws have weights: the error is that of Σ w x / Σ w, so it holds the loss by uneven weights too.
    Law: the squared error's relative standard deviation is about √(2 / number of batches). It is too small by about
    τ / L of itself for batches of L draws that forget each other over τ, so trust it where L is much more than
    draws / ess. Says nothing of modes that no draw has found. Draws that are not finite are left out.
    Raises TypeError or ValueError where n_batches is wrong. Source: Geyer (1992), section 3.2.
    """
    return BatchMeans(check_count("n_batches", n_batches, at_least=4, below=2**20))


def add_to_batches(
    draws: Any, weights: Any, count: Any, length: Any, weight: Any, origin: Any, mean: Any, scatter: Any, loads: Any,
    sums: Any,
) -> None:  # fmt: skip
    """Add draws (chain, draw, dim), in order, to the batch under way; join neighbours where there is no room left.

    weights: (chain, draw), or empty. origin (chain, dim): the first draw, from which ``mean`` and ``sums``
    (chain, batch, dim) count, so that large means lose no digits. loads (chain, batch): sums of weights.
    """
    weighted, room, dim = weights.size > 0, loads.shape[1], draws.shape[2]
    for c in range(draws.shape[0]):
        batch, left = count[c] // length[c], length[c] - count[c] % length[c]
        for t in range(draws.shape[1]):
            w = weights[c, t] if weighted else 1.0
            flaw = w - w
            for d in range(dim):
                flaw += draws[c, t, d] - draws[c, t, d]
            if flaw != 0.0:
                continue
            if count[c] == 0:
                for d in range(dim):
                    origin[c, d] = draws[c, t, d]
            if batch == room:
                join_neighbours(loads[c], sums[c])
                length[c] *= 2
                batch, left = room // 2, length[c]
            count[c] += 1
            if w > 0.0:
                weight[c] += w
                loads[c, batch] += w
                share = w / weight[c]
                for d in range(dim):
                    x = draws[c, t, d] - origin[c, d]
                    sums[c, batch, d] += w * x
                    away = x - mean[c, d]
                    scatter[c, d] += w * (1.0 - share) * away * away
                    mean[c, d] += share * away
            left -= 1
            if left == 0:
                batch, left = batch + 1, length[c]


@kernel
def join_neighbours(loads, sums):
    """Add every second of the batches (batch,) and (batch, dim) to the one before, and empty the later half."""
    half = loads.size // 2
    for i in range(half):
        loads[i] = loads[2 * i] + loads[2 * i + 1]
        for d in range(sums.shape[1]):
            sums[i, d] = sums[2 * i, d] + sums[2 * i + 1, d]
    for i in range(half, loads.size):
        loads[i] = 0.0
        for d in range(sums.shape[1]):
            sums[i, d] = 0.0
