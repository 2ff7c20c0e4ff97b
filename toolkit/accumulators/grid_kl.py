"""KL divergence of a run's draws from its truth on a grid, and its bias due to their finite number."""

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from ..errors import (
    check_array,
    check_count,
    check_edges,
    check_integers,
    check_number,
    check_scale,
    is_a,
    is_sequence,
    shown,
)
from ..weighting import batch_numbers, cell_sums, check_draw_weights, check_draws, check_sample, ratio
from .cells import Histogram, histogram, scaled_cells, whole_sums
from .interface import DrawKernel, KernelAccumulator, PoolableAccumulator, State, add_nodes

Array = NDArray[np.float64]

CELLS_AT_ONCE = 1000  # whose binomial laws are in memory at a time


def cell_counts(draws: Any, x_edges: Any, y_edges: Any = None, *, weights: Any = None) -> Array:
    """Number of ``draws`` (n, 2) in each cell of a grid, shape (x_edges.size − 1, y_edges.size − 1).

    In one dimension, with y_edges None, draws are (n, 1) and the shape is (x_edges.size − 1,). A cell holds its lower
    edges, the last one its upper edge too. weights: (n,), ≥ 0, scaled here to sum to n; None: all 1. Raises TypeError
    or ValueError where shapes do not fit or edges do not increase.
    """
    points = check_array("draws", draws)
    edges = check_grid(x_edges, y_edges)
    if points.ndim != 2 or points.shape[1] != len(edges):
        raise ValueError(f"draws must have shape (n, {len(edges)}), got {points.shape}")
    shape = tuple(e.size - 1 for e in edges)
    cells = cell_numbers(points, edges)
    if weights is None or not len(points):
        counts = np.bincount(cells, minlength=math.prod(shape) + 1)
    else:
        _, shares = check_sample("draws", points[None], "weights", [weights])
        counts = np.bincount(cells, shares * len(points), minlength=math.prod(shape) + 1)
    return np.asarray(counts[:-1].reshape(shape), np.float64)


def check_grid(x_edges: Any, y_edges: Any) -> list[Array]:
    """The edges in one or two directions. Raises TypeError or ValueError where they do not increase."""
    named_edges = [("x_edges", x_edges)] if y_edges is None else [("x_edges", x_edges), ("y_edges", y_edges)]
    return [check_edges(name, values) for name, values in named_edges]


def cell_numbers(points: Array, edges: list[Array]) -> NDArray[np.int64]:
    """The cell of each of ``points`` (n, ≥ 1), row by row; the number of cells for those beyond the grid."""
    number, inside = np.zeros(len(points), np.int64), np.ones(len(points), bool)
    for d, e in enumerate(edges):
        along = np.searchsorted(e, points[:, d], side="right") - 1
        along[points[:, d] == e[-1]] = e.size - 2
        inside &= (along >= 0) & (along < e.size - 1)
        number = number * (e.size - 1) + along
    return np.where(inside, number, math.prod(e.size - 1 for e in edges))


def check_masses(masses: Any) -> Array:
    """``masses`` (any shape) as probabilities (cells,), with one more cell for what is missing to a sum of 1.

    Raises ValueError where one is negative or they sum to more than 1, or to 0.
    """
    p = check_array("masses", masses).ravel()
    total = float(p.sum())
    if p.size == 0 or (p < 0).any() or not 0.0 < total <= 1.0 + 1e-6:
        smallest = p.min() if p.size else "none"
        raise ValueError(f"masses must be ≥ 0 and sum to at most 1, got smallest {smallest} and sum {total}")
    return np.append(np.minimum(p, 1.0), max(0.0, 1.0 - total) if total < 1.0 - 1e-6 else 0.0)


def kl_divergence(counts: Any, masses: Any, *, total: float | None = None, pseudo_count: float = 0.5) -> float:
    """KL(truth ‖ draws) = Σ p log(p / q) over the cells of a grid, in nats, with q = (count + a) / (total + a K).

    counts: draws in each cell, any shape; masses: true probabilities p of the same shape, which need not sum to 1
    where some mass lies beyond the grid: that remainder then counts as one more cell. The K cells are those with
    p > 0; draws elsewhere count in the total alone. total: all draws, those beyond the grid included (None: the sum
    of counts). pseudo_count: a > 0, added to each of the K cells, so that an empty one costs p log(p total / a) and
    not infinity.
    Independent draws do not give 0 but about (K − 1) / (2 total) where all cells are full: see ``expected_kl``.
    Raises ValueError where shapes differ or numbers are out of range.
    """
    n, p = check_array("counts", counts), check_masses(masses)
    a = check_scale("pseudo_count", pseudo_count)
    if n.shape != np.shape(masses):
        raise ValueError(f"counts must have the shape of masses, {np.shape(masses)}, got {n.shape}")
    if (n < 0).any():
        raise ValueError(f"counts must be ≥ 0, got {n.min()}")
    everything = float(n.sum())
    if total is not None:
        everything = max(everything, check_number("total", total, at_least=everything * (1.0 - 1e-12)))
    n = np.append(n, everything - n.sum())
    n, p = n[p > 0], p[p > 0]
    return float(np.sum(p * np.log(p * (everything + a * p.size) / (n + a))))


def kl_path(
    draws: Any,
    masses: Any,
    x_edges: Any,
    y_edges: Any = None,
    checkpoints: Any = None,
    *,
    weights: Any = None,
    pseudo_count: float = 0.5,
) -> Array:
    """``kl_divergence`` of each chain's first draws, at several numbers of them; shape (chain, checkpoint), in nats.

    draws: (chain, draw, 2), or 1 with y_edges None; masses: (nx, ny), or (nx,), on the grid of the edges; checkpoints:
    increasing numbers of draws, 1 to all (None: all). weights: (chain, draw); those of the first draws are scaled to
    sum to their number, and the KL is nan where they are all 0. pseudo_count: of ``kl_divergence``. Raises TypeError
    or ValueError otherwise.
    """
    edges = check_grid(x_edges, y_edges)
    points = check_draws(draws, dim=len(edges))
    grid = tuple(e.size - 1 for e in edges)
    masses = check_array("masses", masses)
    if masses.shape != grid:
        raise ValueError(f"masses must have the shape of the grid, {grid}, got {masses.shape}")
    ends = check_integers("checkpoints", [points.shape[1]] if checkpoints is None else checkpoints)
    valid = ends.ndim == 1 and ends.size > 0 and (np.diff(ends) > 0).all()
    if not valid or ends[0] < 1 or ends[-1] > points.shape[1]:
        raise ValueError(f"checkpoints must increase from ≥ 1 to ≤ {points.shape[1]}, got {shown(checkpoints)}")
    scale = check_draw_weights(weights, points)
    path = np.full((len(points), ends.size), np.nan)
    for chain in range(len(points)):
        counts, load = np.zeros(grid), 0.0
        for i, (start, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
            piece = slice(start, end)
            shares = np.ones(end - start) if scale is None else scale[chain, piece]
            cells = cell_numbers(points[chain, piece], edges)
            counts += np.bincount(cells, shares, minlength=counts.size + 1)[:-1].reshape(grid)
            load += float(shares.sum())
            if load > 0.0:
                scaled = counts * (end / load)
                path[chain, i] = kl_divergence(scaled, masses, total=end, pseudo_count=pseudo_count)
    return path


def expected_kl(masses: Any, n_draws: int, *, pseudo_count: float = 0.5) -> float:
    """Mean of ``kl_divergence`` for ``n_draws`` independent exact draws, with an error below 1e-6 nats.

    masses, pseudo_count: as ``kl_divergence`` takes them; n_draws: an integer ≥ 1. E log(count + a) is summed over
    the binomial law where its mean is below 150, and expanded about the mean above. Raises TypeError or ValueError
    where out of range.
    """
    p = check_masses(masses)
    n = check_count("n_draws", n_draws, at_least=1)
    a = check_scale("pseudo_count", pseudo_count)
    p = np.sort(p[p > 0])
    if p.size == 1:
        return 0.0  # all draws are in the one cell there is
    expected_log = np.empty(p.size)
    few = int(np.searchsorted(p, 150.0 / n))
    for start in range(0, few, CELLS_AT_ONCE):
        some = slice(start, min(start + CELLS_AT_ONCE, few))
        most = n * p[some][-1]
        k = np.arange(min(float(n), most + 15.0 * math.sqrt(most) + 40.0) // 1 + 1)  # others: < 1e-25
        choices = np.append(0.0, np.cumsum(np.log((n - k[:-1]) / k[1:])))
        chance = np.exp(choices + np.outer(np.log(p[some]), k) + scipy.special.xlog1py(n - k, -p[some, None]))
        expected_log[some] = chance @ np.log(k + a)
    m, q = n * p[few:] + a, 1.0 - p[few:]
    variance = n * p[few:] * q
    # Central moments of the binomial: npq, npq (1 − 2p), 3 (npq)² + npq (1 − 6pq), about 10 (npq)² and 15 (npq)³.
    expected_log[few:] = (
        np.log(m)
        - variance / (2 * m**2)
        + variance * (2 * q - 1) / (3 * m**3)
        - (3 * variance**2 + variance * (1 - 6 * q * (1 - q))) / (4 * m**4)
        + 10 * variance**2 * (2 * q - 1) / (5 * m**5)
        - 15 * variance**3 / (6 * m**6)
    )
    return max(0.0, float(np.sum(p * (np.log(p) + np.log(n + a * p.size) - expected_log))))


def equivalent_draws(kl: Any, masses: Any, *, pseudo_count: float = 0.5) -> Array:
    """The numbers of independent exact draws whose expected KL is ``kl``: what draws with that KL are worth.

    kl: in nats, any shape, which is the result's. masses, pseudo_count: those it is of. ``expected_kl`` is tabled at 64
    numbers of draws from 1 to 10⁷ and interpolated in between, to about 0.1 %; the ends are returned for a ``kl``
    beyond them. Where the pseudo-count makes very few draws look better than a few more, the table begins at its
    maximum. The number says how good the cells' frequencies are, and nothing of draws whose law is biased: these can
    look good for a while. Raises ValueError where masses lie in so few cells that more draws would not help.
    """
    values = check_array("kl", kl)
    numbers = np.unique(np.geomspace(1, 1e7, 64).round().astype(int))
    table = np.array([expected_kl(masses, int(n), pseudo_count=pseudo_count) for n in numbers])
    worst = int(np.argmax(table))
    numbers, table = numbers[worst:], table[worst:]
    if table.size < 2 or not (np.diff(table) < 0).all():
        raise ValueError(
            f"masses must spread over cells, and pseudo_count be small, so that more draws help, got "
            f"{np.shape(masses)} cells and pseudo_count={pseudo_count}"
        )
    inverse = scipy.interpolate.PchipInterpolator(np.log(table[::-1]), np.log(numbers[::-1]))
    return np.asarray(np.exp(inverse(np.log(np.clip(values, table[-1], table[0])))))


class GridKL(NamedTuple):
    """KL(truth ‖ draws) in nats over the cells of a grid.

    kl: ``kl_divergence`` of all chains' draws together. n_effective: the independent draws whose frequencies vary as
    theirs do. expected: ``expected_kl`` at that number, which as many exact draws have. debiased: about KL(truth ‖ law
    of the draws); 0 on average, and so as often negative, where that law is the truth.
    """

    kl: float
    n_effective: float
    expected: float
    debiased: float


def grid_kl(
    draws: Any,
    truth: Any,
    x_edges: Any,
    y_edges: Any = None,
    *,
    weights: Any = None,
    pseudo_count: float = 0.5,
    n_effective: float | None = None,
) -> GridKL:
    """KL of ``draws`` against ``truth`` on the grid of the edges, and its bias for their finite number.

    draws: (chain, draw, dim), of which the first two coordinates count, or the first with y_edges None; weights:
    (chain, draw), up to a factor of each chain. truth: a problem's or target's ``truth``, which has masses, by
    quadrature, of its one coordinate or its first two; or masses, which one of several coordinates needs.
    pseudo_count: of ``kl_divergence``. n_effective: None for ``cell_ess``.
    debiased is the KL with counts scaled to n_effective less ``expected_kl`` at that number: exact where the law is the
    truth and each draw came several times or weighed alike, to first order in 1 / n_effective elsewhere.
    Raises TypeError or ValueError where shapes do not fit.
    """
    points, edges = check_draws(draws), check_grid(x_edges, y_edges)
    masses = masses_on(truth, edges)
    cells, scale = cells_of(points, edges, weights)
    n = scale.size
    counts = np.bincount(cells, scale, minlength=masses.size + 1)[:-1].reshape(masses.shape)
    if n_effective is None:
        number = effective_number(cells, scale, masses, points.shape)
    else:
        number = check_number("n_effective", n_effective, above=0.0)
    whole = max(1, round(number)) if number < 1e15 else n
    expected = expected_kl(masses, whole, pseudo_count=pseudo_count)
    kl = kl_divergence(counts, masses, total=n, pseudo_count=pseudo_count)
    scaled = kl_divergence(counts * (whole / n), masses, total=whole, pseudo_count=pseudo_count)
    return GridKL(kl, number, expected, scaled - expected)


def cell_ess(draws: Any, truth: Any, x_edges: Any, y_edges: Any = None, *, weights: Any = None) -> float:
    """The independent draws whose cell frequencies vary as those of all chains together, from batches of draws.

    Arguments as ``grid_kl`` takes them. With V_i the variance of the frequency q_i by batch means (20 batches a chain,
    at most 200), Σ q_i (1 − q_i) / (p_i + 1/n) over Σ V_i / (p_i + 1/n), n the draws. It holds uneven weights and
    autocorrelation both, as far as these are forgotten within a batch and between chains: a chain that changes its mode
    once in several batches comes out too good. nan for one draw alone, inf where all batches are the same.
    Law: n for independent draws. Raises as ``grid_kl``.
    Source: the mean design effect of Rao & Scott (1981); batch means.
    """
    points, edges = check_draws(draws), check_grid(x_edges, y_edges)
    masses = masses_on(truth, edges)
    cells, scale = cells_of(points, edges, weights)
    return effective_number(cells, scale, masses, points.shape)


def effective_number(cells: NDArray[np.int64], scale: Array, masses: Array, shape: tuple[int, ...]) -> float:
    """``cell_ess`` for draws in numbered cells."""
    p = np.append(masses.ravel(), max(0.0, 1.0 - float(masses.sum())))
    batches = batch_numbers(*shape[:2])
    q, variances = ratio(cell_sums(cells, p.size, scale, batches))
    share = 1.0 / (p + 1.0 / scale.size)
    spread, variance = float((q * (1.0 - q)) @ share), float(variances @ share)
    if spread == 0.0 < scale.size - 1:
        return float(scale.size)  # all draws are in one cell
    return spread / variance if variance != 0.0 else math.inf


def cells_of(points: Array, edges: list[Array], weights: Any) -> tuple[NDArray[np.int64], Array]:
    """The cell and the weight, of mean 1, of every draw, each (chain · draw,)."""
    if points.shape[2] < len(edges):
        raise ValueError(f"draws must have at least {len(edges)} coordinates for this grid, got {points.shape}")
    scale = check_draw_weights(weights, points)
    flat = np.ones(points.shape[0] * points.shape[1]) if scale is None else scale.ravel()
    return cell_numbers(points.reshape(-1, points.shape[2]), edges), flat


def masses_on(truth: Any, edges: list[Array]) -> Array:
    """Cell masses of a truth, or those given, on the grid."""
    given = truth.cell_masses(*edges) if hasattr(truth, "cell_masses") else truth
    check_masses(given)
    masses = np.asarray(given, np.float64)
    shape = tuple(e.size - 1 for e in edges)
    if masses.shape != shape:
        raise ValueError(f"truth must have the masses of the grid's cells, shape {shape}, got {masses.shape}")
    return masses


# Running KL divergence at given steps.

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class KlSoFar(NamedTuple):
    """KL(truth ‖ draws) of each chain after given numbers of steps, in nats.

    at: (time,), numbers of steps. draws: (chain, time), how many there were by then. kl: (chain, time); nan where the
    run has not come so far, or a chain has no weight. expected: (chain, time), the mean KL of as many independent draws
    of equal weight.
    """

    at: Integers
    draws: Integers
    kl: Floats
    expected: Floats


@dataclass(frozen=True, eq=False)
class Kl(KernelAccumulator):
    """The accumulator of ``kl``."""

    grid: Histogram
    masses: Floats
    at: Integers
    pseudo_count: float

    needs_energies = False

    def start(self, problem: Any, n_chains: int) -> dict[str, NDArray[Any]]:
        """Empty cells, and no step reached. Raises ValueError where the problem lacks the coordinates."""
        shape = (n_chains, self.at.size)
        return {
            **self.grid.start(problem, n_chains),
            "reached": np.zeros(n_chains, np.int64),
            "draws_at": np.zeros(shape, np.int64),
            "kl": np.full(shape, np.nan),
        }

    def is_valid(self, state: dict[str, NDArray[Any]]) -> bool:
        """Whether a saved state has reached a valid number of the steps of ``at``."""
        return bool(((state["reached"] >= 0) & (state["reached"] <= self.at.size)).all())

    def draw_kernel(self, dim: int) -> DrawKernel:
        """The kernel that adds draws to their cells."""
        return self.grid.draw_kernel(dim)

    def parts(self, state: dict[str, NDArray[Any]], steps: Integers) -> Iterator[tuple[int, int, bool]]:
        """Segments that end at the steps of ``at``, where the KL is recorded."""
        begin = 0
        while begin < steps.size:
            i = int(state["reached"][0])
            end = steps.size if i == self.at.size else int(np.searchsorted(steps, self.at[i]))
            records = i < self.at.size and bool(steps[-1] >= self.at[i] - 1)
            yield begin, end, records
            if records:
                self._record(state, i)
            begin = end

    def advance_to(self, state: dict[str, NDArray[Any]], step: int) -> None:
        """Record the KL for each time of ``at`` up to ``step``, before which all draws have been added."""
        for i in range(int(state["reached"][0]), int(np.searchsorted(self.at, step, side="right"))):
            self._record(state, i)

    def _record(self, state: dict[str, NDArray[Any]], i: int) -> None:
        """Record the KL of every chain at time ``i``."""
        for c, (counts, beyond, n) in enumerate(zip(state["counts"], state["beyond"], state["draws"], strict=True)):
            weight = counts.sum() + beyond
            if weight > 0.0:
                cells = (counts * (n / weight)).reshape(self.masses.shape)
                total = max(float(n), cells.sum())
                state["kl"][c, i] = kl_divergence(cells, self.masses, total=total, pseudo_count=self.pseudo_count)
        state["draws_at"][:, i] = state["draws"]
        state["reached"][:] = i + 1

    def result(self, state: dict[str, NDArray[Any]]) -> KlSoFar:
        """The KL at all steps reached."""
        draws = state["draws_at"].copy()
        expected = np.full(draws.shape, np.nan)
        for n in np.unique(draws[draws > 0]):
            expected[draws == n] = expected_of(self, int(n))
        return KlSoFar(self.at.copy(), draws, state["kl"].copy(), expected)


class PooledKl(NamedTuple):
    """KL(truth ‖ draws) of all chains' draws together after given numbers of steps, in nats.

    Weights of each chain are scaled to sum to its draws. at: (time,), numbers of steps. draws: (time,), how many there
    were by then, of the chains with weight. kl: (time,), ``diagnostics.kl_divergence``; nan where the run has not come
    so far. expected: (time,), the mean KL of as many independent draws of equal weight.
    """

    at: Integers
    draws: Integers
    kl: Floats
    expected: Floats


@dataclass(frozen=True, eq=False)
class KlCounts(PoolableAccumulator):
    """The counts of which ``pooled`` makes the KL of all chains' draws.

    The state holds every chain's counts at each of the kl's times but the last, (chain, time − 1, cell), on the host
    alone; at the last time counting ends, so that those of the last time are ``counts``.
    """

    by_chain: Kl

    needs_energies = False

    def start(self, problem: Any, n_chains: int) -> State:
        """Empty cells, and no step reached. Raises ValueError where the problem lacks the coordinates."""
        state = self.by_chain.grid.start(problem, n_chains)
        earlier = {
            f"earlier_{name}": np.zeros((n_chains, self.by_chain.at.size - 1, *values.shape[1:]), values.dtype)
            for name, values in state.items()
        }
        return {**state, "reached": np.zeros(n_chains, np.int64), **earlier}

    def is_valid(self, state: State) -> bool:
        """Whether a saved state has reached a valid number of times, the same in every chain."""
        reached = state["reached"]
        return bool((reached == reached[0]).all() and 0 <= reached[0] <= self.by_chain.at.size)

    def draw_kernel(self, dim: int) -> DrawKernel:
        """The kernel that adds draws to their cells."""
        return self.by_chain.draw_kernel(dim)

    def parts(self, state: State, steps: Integers) -> Iterator[tuple[int, int, bool]]:
        """Segments that end at the times, where counts are copied; none after the last."""
        at, begin = self.by_chain.at, 0
        while begin < steps.size and state["reached"][0] < at.size:
            i = int(state["reached"][0])
            end, records = int(np.searchsorted(steps, at[i])), bool(steps[-1] >= at[i] - 1)
            yield begin, end, records and i < at.size - 1
            if records:
                self._record(state, i)
            begin = end

    def advance_to(self, state: State, step: int) -> None:
        """Copy the counts for each time up to ``step``, before which all draws have been added."""
        for i in range(int(state["reached"][0]), int(np.searchsorted(self.by_chain.at, step, side="right"))):
            self._record(state, i)

    def _record(self, state: State, i: int) -> None:
        """Copy the counts of every chain at time ``i``, unless it is the last."""
        if i < self.by_chain.at.size - 1:
            for name in ("counts", "beyond", "draws"):
                state[f"earlier_{name}"][:, i] = state[name]
        state["reached"][:] = i + 1

    def leaves(self, state: State, first: int) -> State:
        """``scaled_cells`` of each chain at each time, (chain, time, cell) and (chain, time)."""
        times = self.by_chain.at.size
        if times == 1 == int(state["reached"][0]):
            scaled = scaled_cells(state["counts"], state["beyond"], state["draws"])
            return {"counts": scaled["counts"][:, None], "draws": scaled["draws"][:, None]}
        counts = np.zeros((len(state["counts"]), times, state["counts"].shape[1]))
        draws = np.zeros(counts.shape[:2], np.int64)
        for i in range(min(times, int(state["reached"][0]))):
            now = [
                state[name] if i == times - 1 else state[f"earlier_{name}"][:, i]
                for name in ("counts", "beyond", "draws")
            ]
            scaled = scaled_cells(*now)
            counts[:, i], draws[:, i] = scaled["counts"], scaled["draws"]
        return {"counts": counts, "draws": draws}

    def merge(self, left: State, right: State) -> State:
        """The sums."""
        return add_nodes(left, right)

    def exact_sum(self, state: State) -> State | None:
        """The sums at each time, where all times are reached and the counts of each chain are numbers of draws."""
        names, times = ("counts", "beyond", "draws"), self.by_chain.at.size
        if int(state["reached"][0]) < times:
            return None
        found = [whole_sums(*(state[name][:, None] for name in names))]
        if times > 1:
            found.insert(0, whole_sums(*(state[f"earlier_{name}"] for name in names)))
        sums = [each for each in found if each is not None]
        if len(sums) < len(found):
            return None
        return {name: np.concatenate([each[name] for each in sums], axis=1) for name in ("counts", "draws")}

    def pooled_result(self, node: State) -> PooledKl:
        """The KL of all chains' draws at each time."""
        kl, (counts, draws) = self.by_chain, (node["counts"][0], node["draws"][0].copy())
        found, expected = np.full(draws.shape, np.nan), np.full(draws.shape, np.nan)
        for i in np.flatnonzero(draws):
            cells, n = counts[i].reshape(kl.masses.shape), int(draws[i])
            total = max(float(n), cells.sum())
            found[i] = kl_divergence(cells, kl.masses, total=total, pseudo_count=kl.pseudo_count)
            expected[i] = expected_of(kl, n)
        return PooledKl(kl.at.copy(), draws, found, expected)


@functools.lru_cache(maxsize=1024)
def expected_of(accumulator: Kl, n_draws: int) -> float:
    """``expected_kl``, cached because it takes longer than a chunk of a stream."""
    return expected_kl(accumulator.masses, n_draws, pseudo_count=accumulator.pseudo_count)


def kl(
    truth: Any, x_edges: Any, y_edges: Any = None, *, at: Any, coordinates: Any = (0, 1), pseudo_count: float = 0.5
) -> Kl:
    """``diagnostics.kl_divergence`` of each chain's draws on a grid, after given numbers of steps: ``KlSoFar``.

    truth: a problem's truth, whose ``cell_masses`` are taken, or the masses themselves, of the grid's shape. x_edges,
    y_edges, coordinates: as in ``histogram``; a truth has masses for its one coordinate, or the first two: for another
    one, or for one of several, give masses. at: increasing numbers of steps ≥ 1, burn-in included; the KL at n is that
    of all draws whose ``run.steps`` are < n, which is known once the run has done n steps, whether it keeps the last of
    them or not. pseudo_count: that of ``kl_divergence``, > 0.
    Weights are scaled to sum to the number of draws, as in ``diagnostics.kl_path``, whose numbers of stored draws these
    are: to rounding, and without weights bit for bit.
    Raises TypeError or ValueError where these are wrong, before anything runs.
    """
    grid = histogram(x_edges, y_edges, coordinates=coordinates)
    steps = check_steps(at)
    check_number("pseudo_count", pseudo_count, above=0.0)
    if hasattr(truth, "cell_masses"):
        if grid.coordinates[: len(grid.shape)] != (0, 1)[: len(grid.shape)]:
            raise ValueError(
                f"coordinates must be (0, 1), for which a truth has masses, or give masses; got {shown(coordinates)}"
            )
        truth = (
            truth.cell_masses(grid.x_edges) if grid.y_edges is None else truth.cell_masses(grid.x_edges, grid.y_edges)
        )
    masses = np.array(check_array("truth", truth))
    if masses.shape != grid.shape:
        raise ValueError(f"truth must have masses of the grid's shape {grid.shape}, got {masses.shape}")
    kl_divergence(np.zeros(masses.shape), masses)  # raises for invalid masses
    return Kl(grid, masses, steps, pseudo_count)


def check_steps(values: Any) -> Integers:
    """``values`` as numbers of steps. Raises TypeError or ValueError where they are not increasing integers ≥ 1."""
    is_row = is_sequence(values) or (is_a(values, np.ndarray) and values.ndim == 1)
    if not is_row or len(values) == 0:
        raise TypeError(f"at must be a sequence of numbers of steps, got {shown(values)}")
    steps = np.array([check_count(f"at[{i}]", value, at_least=1) for i, value in enumerate(values)])
    if (np.diff(steps) <= 0).any():
        raise ValueError(f"at must increase, got {shown(values)}")
    return steps
