"""Means, errors, ESS and R-hat of a stored run that does not fit into memory, from blocks of its chains."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from ..diagnostics.convergence import autocovariance, halves, initial_sequence_time, ratio_of_spreads
from ..errors import optional

if TYPE_CHECKING:
    import xarray

Floats = NDArray[np.float64]

EDGES, SAMPLED = 2**14, 2**20  # of the table of ranks; draws that its edges are quantiles of


class Source(NamedTuple):
    """Draws of a store: the path of a Zarr array (chain, draw, dim), and the chains of a block."""

    path: str
    block: int


class Sums(NamedTuple):
    """Sums over half chains (half chain, draw): their number, means, squares of means, variances, covariances."""

    chains: int
    means: float
    squares: float
    variances: float
    covariances: Floats  # (lag,)


def read(source: Source, first: int) -> Floats:
    """The block of draws from chain ``first`` on, (chain, draw, dim)."""
    array = optional("zarr", "io").open_array(source.path, mode="r")
    return np.asarray(array[first : first + source.block])


def sums_of(values: Floats) -> Sums:
    """The sums of these half chains."""
    means = values.mean(axis=1)
    return Sums(
        len(values), float(means.sum()), float((means**2).sum()), float(values.var(axis=1, ddof=1).sum()),
        autocovariance(values) * len(values),
    )  # fmt: skip


def added(sums: list[Sums]) -> Sums:
    """The sums of all blocks, in their order."""
    return Sums(*(sum(values[1:], values[0]) for values in zip(*sums, strict=True)))


class Ranks(NamedTuple):
    """Shares of the draws of one coordinate below each of its edges, (edge,), and their middle."""

    edges: Floats
    below: Floats
    median: float

    def scores(self, values: Floats, n: int) -> Floats:
        """Normal scores of the ranks among ``n`` draws, as in ``convergence.normal_scores``, to a share 1/``EDGES``."""
        return blom(np.interp(values, self.edges, self.below), n)

    def folded_scores(self, values: Floats, n: int) -> Floats:
        """Normal scores of the ranks of distances from the median."""
        apart = np.abs(values - self.median)
        upper = np.interp(self.median + apart, self.edges, self.below)
        return blom(upper - np.interp(self.median - apart, self.edges, self.below), n)


def blom(share: Floats, n: int) -> Floats:
    """Φ⁻¹((r − 3/8) / (n + 1/4)) with the rank r = share · n + ½, from 1 to n."""
    rank = np.clip(share * n + 0.5, 1.0, n)
    return np.asarray(scipy.special.ndtri((rank - 0.375) / (n + 0.25)))


def counts_and_sums(source: Source, first: int, edges: Floats, centres: Floats) -> tuple[Any, list[Sums]]:
    """Of a block: draws between the edges, (dim, edge + 1), and the sums of each coordinate less its centre."""
    draws = read(source, first)
    dim = draws.shape[2]
    counts = np.empty((dim, edges.shape[1] + 1), np.int64)
    for d in range(dim):
        cells = np.searchsorted(edges[d], draws[..., d].ravel(), side="right")
        counts[d] = np.bincount(cells, minlength=counts.shape[1])
    return counts, [sums_of(halves(draws[..., d]) - centres[d]) for d in range(dim)]


def scores_and_sums(source: Source, first: int, ranks: list[Ranks], n: int) -> list[tuple[Sums, Sums]]:
    """Of a block, for each coordinate: the sums of its scores, and of those of the distances from the median."""
    draws = read(source, first)
    split = [halves(draws[..., d]) for d in range(draws.shape[2])]
    return [(sums_of(r.scores(x, n)), sums_of(r.folded_scores(x, n))) for r, x in zip(ranks, split, strict=True)]


def summary(path: str, client: Any) -> "xarray.Dataset":
    """``StoredRun.summary`` of the draws at ``path``, a Zarr array (chain, draw, dim)."""
    xarray, zarr = optional("xarray", "io"), optional("zarr", "io")
    array = zarr.open_array(path, mode="r")
    n_chains, n_draws, dim = array.shape
    source = Source(path, array.chunks[0])
    firsts = list(range(0, n_chains, source.block))
    if n_draws < 8:
        raise ValueError(f"a summary needs at least 8 draws of each chain, got {n_draws}")
    n = 2 * (n_draws // 2) * n_chains
    sampled = sample_of(source, firsts, n_draws)
    edges = np.quantile(sampled, np.linspace(0.0, 1.0, min(EDGES, len(sampled))), axis=0).T
    centres = sampled.mean(axis=0)
    compute = computation(client)
    found = compute(counts_and_sums, [(source, first, edges, centres) for first in firsts])
    counts = sum(block[0] for block in found)
    raw = [added([block[1][d] for block in found]) for d in range(dim)]
    ranks = [ranks_of(edges[d], counts[d]) for d in range(dim)]
    scored = compute(scores_and_sums, [(source, first, ranks, n) for first in firsts])
    bulk = [added([block[d][0] for block in scored]) for d in range(dim)]
    folded = [added([block[d][1] for block in scored]) for d in range(dim)]
    sd = np.array([total_variance(s) ** 0.5 for s in raw])
    mean = centres + np.array([s.means / s.chains for s in raw])
    moves = np.where(sd > 1e-15 * np.abs(mean), 1.0, np.nan)
    mean_ess = moves * [ess_of(s) for s in raw]
    columns = {
        "mean": mean, "sd": sd, "mcse": sd / np.sqrt(mean_ess), "ess": moves * [ess_of(s) for s in bulk],
        "ess_mean": mean_ess,
        "r_hat": moves * [max(r_hat_of(a), r_hat_of(b)) for a, b in zip(bulk, folded, strict=True)],
        "median": np.array([r.median for r in ranks]),
    }  # fmt: skip
    return xarray.Dataset({name: (("x_dim",), values) for name, values in columns.items()})


def sample_of(source: Source, firsts: list[int], n_draws: int) -> Floats:
    """Draws (n, dim), some of up to 32 blocks, evenly spread."""
    some = [firsts[i] for i in np.unique(np.linspace(0, len(firsts) - 1, 32).astype(np.int64))]
    each = max(1, SAMPLED // len(some))
    parts = []
    for first in some:
        draws = read(source, first)
        draws = draws.reshape(-1, draws.shape[2])
        parts.append(draws[:: max(1, -(-len(draws) // each))])
    return np.concatenate(parts)


def ranks_of(edges: Floats, counts: Any) -> Ranks:
    """The table of ranks from the numbers of draws between the edges; those beyond the ends are as if at them."""
    total = np.cumsum(counts)[:-1] / counts.sum()
    below = np.where(np.arange(len(edges)) == 0, 0.0, total)
    below[-1] = 1.0
    distinct = np.append(True, np.diff(edges) > 0.0)
    edges, below = edges[distinct], below[distinct]
    return Ranks(edges, below, float(np.interp(0.5, below, edges)))


def computation(client: Any) -> Callable[[Callable[..., Any], list[tuple[Any, ...]]], list[Any]]:
    """Computes a function of each tuple of arguments: on a client's workers, or on threads of this process."""
    dask = optional("dask", "cluster")

    def compute(function: Callable[..., Any], arguments: list[tuple[Any, ...]]) -> list[Any]:
        tasks = [dask.delayed(function)(*each) for each in arguments]
        return list(dask.compute(*tasks, scheduler="threads" if client is None else client))

    return compute


def n_of(sums: Sums) -> int:
    """Draws of a half chain."""
    return len(sums.covariances)


def between_of(sums: Sums) -> float:
    """Variance of the half chains' means."""
    return max(0.0, (sums.squares - sums.means**2 / sums.chains) / (sums.chains - 1))


def total_variance(sums: Sums) -> float:
    """Variance of all draws."""
    n = n_of(sums)
    return sums.variances / sums.chains * (n - 1) / n + between_of(sums) * (sums.chains - 1) / sums.chains


def r_hat_of(sums: Sums) -> float:
    """R̂ of half chains."""
    return float(ratio_of_spreads(sums.variances / sums.chains, between_of(sums), n_of(sums)))


def ess_of(sums: Sums) -> float:
    """Effective sample size of the mean."""
    within, between, size = sums.variances / sums.chains, between_of(sums), sums.chains * n_of(sums)
    if within + between == 0.0:
        return float("nan")
    return size / initial_sequence_time(sums.covariances / sums.chains, within, between, size)
