"""Running means and covariances of draws, by updates without cancellation; and batch means."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from .._compiler.decorators import kernel
from .._compiler.signatures import CUBE, FLOATS, INTEGERS, MATRIX
from ..errors import check_count
from .interface import DrawKernel, PoolableAccumulator, State, sum_by_halves

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

ANY_DRAWS = types.Array(types.float64, 3, "A")  # a chunk of a longer array need not be contiguous
ANY_WEIGHTS = types.Array(types.float64, 2, "A")
DRAWS = types.Tuple((ANY_DRAWS, ANY_WEIGHTS))
IN_PLANE = types.void(DRAWS, types.Tuple(()), types.Tuple((INTEGERS, FLOATS, FLOATS, MATRIX, MATRIX, CUBE)))
ADD_DRAWS = types.void(*IN_PLANE.args, FLOATS)


class MomentsSoFar(NamedTuple):
    """Moments of the draws of each chain, and of all chains.

    draws: (chain,), how many. weight: (chain,), their sum of weights. weighted_ess: (chain,), (Σw)² / Σw².
    mean: (chain, dim). covariance: (chain, dim, dim), Σ w (x − mean)(x − mean)ᵀ / Σw, not divided by n − 1.
    pooled_mean, pooled_covariance: (dim,) and (dim, dim), of all chains, each with the same total weight, since weights
    are known up to a factor of each chain. standard_error: (dim,), of pooled_mean, from the spread of the chains'
    means, so it knows autocorrelation; nan for one chain. nan where a chain has no weight yet; pooled without it, and
    without chains that have fewer draws than others, as a divergence leaves them: their last draws may be huge.
    """

    draws: Integers
    weight: Floats
    weighted_ess: Floats
    mean: Floats
    covariance: Floats
    pooled_mean: Floats
    pooled_covariance: Floats
    standard_error: Floats


class PooledMoments(NamedTuple):
    """Moments of the draws of all chains together, each with the same total weight.

    chains: (), how many; those without weight and those with fewer draws than others are left out, as in the pooled
    fields of ``MomentsSoFar``. draws: (), of these chains in all. mean: (dim,). covariance: (dim, dim), not divided by
    n − 1. standard_error: (dim,), of the mean, from the spread of the chains' means; nan for one chain. nan without
    chains.
    """

    chains: Integers
    draws: Integers
    mean: Floats
    covariance: Floats
    standard_error: Floats


@dataclass(frozen=True)
class Moments(PoolableAccumulator):
    """The accumulator of ``moments``."""

    needs_energies = False

    def start(self, problem: Any, n_chains: int) -> dict[str, NDArray[Any]]:
        """No draws."""
        dim = problem.target.dim
        return {
            "draws": np.zeros(n_chains, np.int64),
            "weight": np.zeros(n_chains),
            "unevenness": np.zeros(n_chains),
            "origin": np.zeros((n_chains, dim)),
            "mean": np.zeros((n_chains, dim)),
            "scatter": np.zeros((n_chains, dim, dim)),
        }

    def draw_kernel(self, dim: int) -> DrawKernel:
        """The kernel: with sums in registers in one or two dimensions, else in arrays."""
        inputs, state = ("draws", "weights"), ("draws", "weight", "unevenness", "origin", "mean", "scatter")
        if dim <= 2:
            return DrawKernel(add_draws_in_plane, IN_PLANE, inputs, (), state)
        return DrawKernel(add_draws, ADD_DRAWS, inputs, (), state, scratch=dim)

    def result(self, state: dict[str, NDArray[Any]]) -> MomentsSoFar:
        """The moments so far."""
        weight, lower = state["weight"].copy(), np.tril(state["scatter"])
        scatter = lower + np.tril(lower, -1).transpose(0, 2, 1)
        empty = weight == 0.0
        whole = ~empty & (state["draws"] == state["draws"].max(initial=0))
        mean = np.where(empty[:, None], np.nan, state["origin"] + state["mean"])
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # before a divergence draws may be huge
            covariance = scatter / weight[:, None, None]
            weighted_ess = np.where(state["unevenness"] > 0.0, 1.0 / state["unevenness"], weight)
            pooled = pool(mean[whole], covariance[whole])
        return MomentsSoFar(state["draws"].copy(), weight, weighted_ess, mean, covariance, *pooled)

    def leaves(self, state: State, first: int) -> State:
        """Mean from ``origin``, the lower half of the covariance, and no scatter between chains, of each chain."""
        weight = state["weight"]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            within = np.tril(state["scatter"]) / weight[:, None, None]
        return {
            **{name: state[name].copy() for name in ("draws", "origin", "mean")},
            "chains": (weight != 0.0).astype(np.int64),
            "within": within,
            "between": np.zeros(within.shape),
        }

    def merge(self, left: State, right: State) -> State:
        """``merge_moments``."""
        return merge_moments(left, right, ("within",))

    def pooled_result(self, node: State) -> PooledMoments:
        """The moments of all chains."""
        chains, draws, mean = mean_of_chains(node)
        lower, between = node["within"][0], node["between"][0]
        with np.errstate(divide="ignore", invalid="ignore"):
            covariance = (lower + np.tril(lower, -1).T + between) / chains
            error = np.sqrt(np.diagonal(between) / (chains - 1) / chains)
        empty = np.full(covariance.shape, np.nan)
        return PooledMoments(
            chains, draws, mean, covariance if chains else empty, error if chains > 1 else np.full(mean.shape, np.nan)
        )


def moments() -> Moments:
    """Mean and covariance of the draws, (chain, dim) and (chain, dim, dim), and of all chains: ``MomentsSoFar``.

    Weighted where draws have weights. Draws that are not finite, which a diverged replica leaves, are left out, and its
    chain is no part of what is pooled over chains.
    Accuracy: each draw moves the mean by its share of the weight, counted from the first draw, so large means lose no
    digits: with a mean of 10⁸ and a standard deviation of 10⁻³, variances of 2,000 draws are right to 10⁻¹².
    Source: West (1979), the weighted form of Welford (1962).
    """
    return Moments()


def add_draws_in_plane(inputs: Any, constants: Any, state: Any) -> None:
    """``add_draws`` in one or two dimensions, bit for bit, with all of a chain's sums in registers."""
    draws, weights = inputs
    count, weight, unevenness, origin, mean, scatter = state
    last = draws.shape[2] - 1
    weighted = weights.size > 0
    for c in range(draws.shape[0]):
        n, total, uneven = count[c], weight[c], unevenness[c]
        x_mean, y_mean = mean[c, 0], mean[c, last]
        xx, yx, yy = scatter[c, 0, 0], scatter[c, last, 0], scatter[c, last, last]
        for t in range(draws.shape[1]):
            x, y = draws[c, t, 0], draws[c, t, last]
            w = weights[c, t] if weighted else 1.0
            if (x - x) + (y - y) + (w - w) == 0.0:
                if n == 0:
                    origin[c, 0], origin[c, last] = x, y
                n += 1
                if w > 0.0:
                    total += w
                    share = w / total
                    if weighted:
                        uneven = uneven * (1.0 - share) * (1.0 - share) + share * share
                    rest = w * (1.0 - share)
                    dx, dy = (x - origin[c, 0]) - x_mean, (y - origin[c, last]) - y_mean
                    xx += rest * dx * dx
                    yx += rest * dy * dx
                    yy += rest * dy * dy
                    x_mean += share * dx
                    y_mean += share * dy
        count[c], weight[c], unevenness[c] = n, total, uneven
        mean[c, 0], mean[c, last] = x_mean, y_mean
        scatter[c, 0, 0], scatter[c, last, 0], scatter[c, last, last] = xx, yx, yy


def add_draws(inputs: Any, constants: Any, state: Any, deviation: Any) -> None:
    """Add draws (chain, draw, dim), in order: the mean, and the lower half of Σ w (x − mean)(x − mean)ᵀ.

    weights: (chain, draw), or empty. origin: (chain, dim), the first draw, from which ``mean`` counts. unevenness:
    (chain,), Σw² / (Σw)², of weights of any size; 0 without weights. deviation: (dim,) is scratch.
    """
    draws, weights = inputs
    count, weight, unevenness, origin, mean, scatter = state
    dim = draws.shape[2]
    weighted = weights.size > 0
    for c in range(draws.shape[0]):
        for t in range(draws.shape[1]):
            w = weights[c, t] if weighted else 1.0
            invalid = w - w
            for i in range(dim):
                invalid += draws[c, t, i] - draws[c, t, i]
            if invalid != 0.0:
                continue
            if count[c] == 0:
                for i in range(dim):
                    origin[c, i] = draws[c, t, i]
            count[c] += 1
            if w > 0.0:
                weight[c] += w
                share = w / weight[c]
                if weighted:
                    unevenness[c] = unevenness[c] * (1.0 - share) * (1.0 - share) + share * share
                rest = w * (1.0 - share)
                for i in range(dim):
                    deviation[i] = (draws[c, t, i] - origin[c, i]) - mean[c, i]
                    scaled = rest * deviation[i]
                    for j in range(i + 1):
                        scatter[c, i, j] += scaled * deviation[j]
                    mean[c, i] += share * deviation[i]


def pool(means: Floats, covariances: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean, covariance and the mean's standard error of chains that count alike: (chain, dim), (chain, dim, dim)."""
    chains, dim = means.shape
    if chains == 0:
        return np.full(dim, np.nan), np.full((dim, dim), np.nan), np.full(dim, np.nan)
    mean = means.mean(axis=0)
    deviation = means - mean
    covariance = covariances.mean(axis=0) + deviation.T @ deviation / chains
    error = np.full(dim, np.nan) if chains < 2 else means.std(axis=0, ddof=1) / np.sqrt(chains)
    return mean, covariance, error


def merge_moments(left: State, right: State, summed: tuple[str, ...]) -> State:
    """Nodes of chains that count alike: means from ``origin``, sums of ``summed``, and scatter between chains.

    draws: (node,), of each chain; of two sides the one with more draws a chain is taken alone, as the other's chains
    have diverged. chains: (node,); those without weight are none. origin, mean: (node, dim), whose sum is the mean of
    the chains' means: differences of large means lose no digits. between: (node, dim, dim), Σ (m − mean)(m − mean)ᵀ
    over the chains' means m; its diagonal where it is (node, dim).
    Source: Chan, Golub & LeVeque (1983).
    """
    more, fewer = left["draws"] > right["draws"], left["draws"] < right["draws"]
    left_alone = more | (~fewer & (right["chains"] == 0))
    right_alone = ~left_alone & (fewer | (left["chains"] == 0))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # of chains that are left out
        share = (right["chains"] / (left["chains"] + right["chains"]))[:, None]
        rest = left["chains"][:, None] * share
        step = (right["origin"] - left["origin"]) + (right["mean"] - left["mean"])
        if left["between"].ndim == 3:
            outer, rest = step[:, :, None] * step[:, None, :], rest[:, :, None]
        else:
            outer = step * step
        merged = {
            **{name: left[name] for name in left},
            **{name: left[name] + right[name] for name in ("chains", *summed)},
            "mean": left["mean"] + share * step,
            "between": (left["between"] + right["between"]) + rest * outer,
        }

    def chosen(name: str) -> NDArray[Any]:
        shape = (-1,) + (1,) * (merged[name].ndim - 1)
        either = np.where(right_alone.reshape(shape), right[name], merged[name])
        return np.where(left_alone.reshape(shape), left[name], either)

    return {name: chosen(name) for name in merged}


def mean_of_chains(node: State) -> tuple[Integers, Integers, Floats]:
    """Number of chains, their draws in all, and their mean, (dim,), of one node."""
    chains = np.array(node["chains"][0])
    mean = node["origin"][0] + node["mean"][0]
    return chains, np.array(chains * node["draws"][0]), mean if chains else np.full(mean.shape, np.nan)


# Batch means: running standard errors and effective sample sizes.

ADD = types.void(
    DRAWS, types.Tuple(()), types.Tuple((INTEGERS, INTEGERS, FLOATS, MATRIX, MATRIX, MATRIX, MATRIX, CUBE))
)


class BatchMeansSoFar(NamedTuple):
    """Statistics of each chain from its batch means.

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


class PooledBatchMeans(NamedTuple):
    """Statistics of all chains together from the batch means of each; every chain counts the same.

    chains: (), how many, as in ``PooledMoments``. draws: (), of these in all. batch_length: (), draws in a batch.
    mean: (dim,), of the chains' means. variance: (dim,), within chains and between them. standard_error: (dim,), of
    the mean, √(Σ s²) / chains for the chains' errors s: unlike that of ``PooledMoments`` it knows nothing of a spread
    between chains. ess: (dim,), the sum of the chains'. nan where a chain's are.
    """

    chains: Integers
    draws: Integers
    batch_length: Integers
    mean: Floats
    variance: Floats
    standard_error: Floats
    ess: Floats


@dataclass(frozen=True)
class BatchMeans(PoolableAccumulator):
    """The accumulator of ``batch_means``."""

    n_batches: int

    needs_energies = False

    def start(self, problem: Any, n_chains: int) -> dict[str, NDArray[Any]]:
        """Empty batches of length 1."""
        dim, n_slots = problem.target.dim, 2 * self.n_batches
        return {
            "draws": np.zeros(n_chains, np.int64),
            "length": np.ones(n_chains, np.int64),
            "weight": np.zeros(n_chains),
            "origin": np.zeros((n_chains, dim)),
            "mean": np.zeros((n_chains, dim)),
            "scatter": np.zeros((n_chains, dim)),
            "loads": np.zeros((n_chains, n_slots)),
            "sums": np.zeros((n_chains, n_slots, dim)),
        }

    def is_valid(self, state: dict[str, NDArray[Any]]) -> bool:
        """Whether a saved state's draws fit into its batches."""
        draws, length = state["draws"], state["length"]
        return bool((draws >= 0).all() and (length >= 1).all() and (draws // length <= 2 * self.n_batches).all())

    def draw_kernel(self, dim: int) -> DrawKernel:
        """The kernel that adds draws to their batches."""
        state = ("draws", "length", "weight", "origin", "mean", "scatter", "loads", "sums")
        return DrawKernel(add_to_batches, ADD, ("draws", "weights"), (), state)

    def result(self, state: dict[str, NDArray[Any]]) -> BatchMeansSoFar:
        """Means and errors so far; an incomplete batch counts by its share of the weight."""
        return self._statistics(state, lambda squares: squares.sum(axis=1))

    def _statistics(self, state: State, total: Callable[[Floats], Floats]) -> BatchMeansSoFar:
        """``result``, with the sum over the second axis that is to be used."""
        draws, length = state["draws"].copy(), state["length"].copy()
        weight = np.where(state["weight"] > 0.0, state["weight"], np.nan)[:, None]
        offset = np.where(np.isnan(weight), np.nan, state["mean"])
        mean = state["origin"] + offset
        batches = -(-draws // length)
        enough = (draws >= self.n_batches)[:, None]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            deviation = state["sums"] - offset[:, None] * state["loads"][:, :, None]
            variance = state["scatter"] / weight
            freedom = (batches / (batches - 1.0))[:, None]
            error = np.where(enough, np.sqrt(total(deviation**2) * freedom) / weight, np.nan)
            ess = variance / error**2
        return BatchMeansSoFar(draws, length, draws // length, mean, variance, error, ess)

    def leaves(self, state: State, first: int) -> State:
        """Mean from ``origin``, variance, squared error and ESS of each chain."""
        found = self._statistics(state, sum_by_halves)
        return {
            **{name: state[name].copy() for name in ("draws", "length", "origin", "mean")},
            "chains": (state["weight"] > 0.0).astype(np.int64),
            "within": found.variance,
            "between": np.zeros(found.variance.shape),
            "squared_error": found.standard_error * found.standard_error,
            "ess": found.ess,
        }

    def merge(self, left: State, right: State) -> State:
        """``merge_moments``."""
        return merge_moments(left, right, ("within", "squared_error", "ess"))

    def pooled_result(self, node: State) -> PooledBatchMeans:
        """The statistics of all chains."""
        chains, draws, mean = mean_of_chains(node)
        empty = np.full(mean.shape, np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = (node["within"][0] + node["between"][0]) / chains
            error = np.sqrt(node["squared_error"][0]) / chains
        statistics = (variance, error, node["ess"][0].copy()) if chains else (empty, empty.copy(), empty.copy())
        return PooledBatchMeans(chains, draws, np.array(node["length"][0]), mean, *statistics)


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


def add_to_batches(inputs: Any, constants: Any, state: Any) -> None:
    """Add draws (chain, draw, dim), in order, to the current batch; join neighbours when all batches are full.

    weights: (chain, draw), or empty. origin (chain, dim): the first draw, from which ``mean`` and ``sums``
    (chain, batch, dim) count, so that large means lose no digits. loads (chain, batch): sums of weights.
    """
    draws, weights = inputs
    count, length, weight, origin, mean, scatter, loads, sums = state
    weighted, n_slots, dim = weights.size > 0, loads.shape[1], draws.shape[2]
    for c in range(draws.shape[0]):
        batch, left = count[c] // length[c], length[c] - count[c] % length[c]
        for t in range(draws.shape[1]):
            w = weights[c, t] if weighted else 1.0
            invalid = w - w
            for d in range(dim):
                invalid += draws[c, t, d] - draws[c, t, d]
            if invalid != 0.0:
                continue
            if count[c] == 0:
                for d in range(dim):
                    origin[c, d] = draws[c, t, d]
            if batch == n_slots:
                join_neighbours(loads[c], sums[c])
                length[c] *= 2
                batch, left = n_slots // 2, length[c]
            count[c] += 1
            if w > 0.0:
                weight[c] += w
                loads[c, batch] += w
                share = w / weight[c]
                for d in range(dim):
                    x = draws[c, t, d] - origin[c, d]
                    sums[c, batch, d] += w * x
                    deviation = x - mean[c, d]
                    scatter[c, d] += w * (1.0 - share) * deviation * deviation
                    mean[c, d] += share * deviation
            left -= 1
            if left == 0:
                batch, left = batch + 1, length[c]


@kernel
def join_neighbours(loads, sums):
    """Join pairs of neighbouring batches, (batch,) and (batch, dim), into the first half, and empty the second half."""
    half = loads.size // 2
    for i in range(half):
        loads[i] = loads[2 * i] + loads[2 * i + 1]
        for d in range(sums.shape[1]):
            sums[i, d] = sums[2 * i, d] + sums[2 * i + 1, d]
    for i in range(half, loads.size):
        loads[i] = 0.0
        for d in range(sums.shape[1]):
            sums[i, d] = 0.0
