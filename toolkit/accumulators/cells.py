"""Grids of cells: the cell of a number, by the rules of NumPy's histograms, and running histograms of draws."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from .._compiler.binding import bound
from .._compiler.decorators import compile_part, kernel
from .._compiler.signatures import CUBE, FLOATS, INTEGERS, MATRIX
from ..errors import check_count, check_edges, is_a, shown
from .interface import DrawKernel, PoolableAccumulator, State, add_nodes, sum_by_halves
from .running_moments import ANY_DRAWS, ANY_WEIGHTS

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

TALLY = types.void(
    types.Tuple((ANY_DRAWS, ANY_WEIGHTS)),
    types.Tuple((types.int64, types.int64, FLOATS, FLOATS)),
    types.Tuple((MATRIX, FLOATS, INTEGERS)),
)
ADD_WHOLE = types.boolean(CUBE, MATRIX, types.Array(types.int64, 2, "C"), MATRIX)
ONE_CELL = np.array([-np.inf, np.inf])  # edges for a second coordinate that is not used
LARGEST_WHOLE = 2**53  # up to which floats hold all whole numbers


class HistogramSoFar(NamedTuple):
    """Weights of the draws in the cells of a grid, by chain.

    counts: (chain, nx) or (chain, nx, ny), sums of weights; numbers of draws where all weights are 1. beyond: (chain,),
    the weight beyond the grid. draws: (chain,), how many there were. x_edges, y_edges: the grid; y_edges None in one
    dimension.
    """

    counts: Floats
    beyond: Floats
    draws: Integers
    x_edges: Floats
    y_edges: Floats | None


class PooledHistogram(NamedTuple):
    """Weights of the draws of all chains in the cells of a grid; those of each chain are scaled to sum to its draws.

    counts: (nx,) or (nx, ny); numbers of draws where all weights are 1. beyond: (), the weight beyond the grid. draws:
    (), how many there were, of the chains with weight. x_edges, y_edges: the grid; y_edges None in one dimension.
    """

    counts: Floats
    beyond: Floats
    draws: Integers
    x_edges: Floats
    y_edges: Floats | None


@dataclass(frozen=True, eq=False)
class Histogram(PoolableAccumulator):
    """The accumulator of ``histogram``."""

    x_edges: Floats
    y_edges: Floats | None
    coordinates: tuple[int, int]

    needs_energies = False

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells of the grid, (nx,) or (nx, ny)."""
        x_cells = self.x_edges.size - 1
        return (x_cells,) if self.y_edges is None else (x_cells, self.y_edges.size - 1)

    def start(self, problem: Any, n_chains: int) -> dict[str, NDArray[Any]]:
        """Empty cells. Raises ValueError where the problem lacks the coordinates."""
        used = self.coordinates[: len(self.shape)]
        if max(used) >= problem.target.dim:
            raise ValueError(
                f"coordinates must be < {problem.target.dim}, the dimension of {problem.name!r}, got {used}"
            )
        return {
            "counts": np.zeros((n_chains, int(np.prod(self.shape)))),
            "beyond": np.zeros(n_chains),
            "draws": np.zeros(n_chains, np.int64),
        }

    def draw_kernel(self, dim: int) -> DrawKernel:
        """The kernel that adds draws to their cells."""
        x, y = self.coordinates if self.y_edges is not None else (self.coordinates[0],) * 2
        edges = (self.x_edges, ONE_CELL if self.y_edges is None else self.y_edges)
        return DrawKernel(tally, TALLY, ("draws", "weights"), (x, y, *edges), ("counts", "beyond", "draws"))

    def result(self, state: dict[str, NDArray[Any]]) -> HistogramSoFar:
        """The histogram so far."""
        counts = state["counts"].reshape(-1, *self.shape).copy()
        y_edges = None if self.y_edges is None else self.y_edges.copy()
        return HistogramSoFar(counts, state["beyond"].copy(), state["draws"].copy(), self.x_edges.copy(), y_edges)

    def leaves(self, state: State, first: int) -> State:
        """``scaled_cells`` of each chain."""
        return scaled_cells(state["counts"], state["beyond"], state["draws"])

    def merge(self, left: State, right: State) -> State:
        """The sums."""
        return add_nodes(left, right)

    def exact_sum(self, state: State) -> State | None:
        """The sums, where the counts of each chain are numbers of draws."""
        found = whole_sums(*(state[name][:, None] for name in ("counts", "beyond", "draws")))
        return None if found is None else {name: values[:, 0] for name, values in found.items()}

    def pooled_result(self, node: State) -> PooledHistogram:
        """The histogram of all chains."""
        y_edges = None if self.y_edges is None else self.y_edges.copy()
        counts = node["counts"][0].reshape(self.shape).copy()
        return PooledHistogram(
            counts, np.array(node["beyond"][0]), np.array(node["draws"][0]), self.x_edges.copy(), y_edges
        )


def scaled_cells(counts: Floats, beyond: Floats, draws: Integers) -> State:
    """Weights (chain, cell) and (chain,) scaled to sum to each chain's ``draws``; all 0 for a chain without weight."""
    weight = sum_by_halves(counts) + beyond
    if (weight == draws).all():  # all weights are 1
        return {"counts": counts, "beyond": beyond, "draws": draws}
    has_weight = weight > 0.0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        factor = np.where(has_weight, draws / weight, 0.0)
    return {
        "counts": counts * factor[:, None],
        "beyond": beyond * factor,
        "draws": np.where(has_weight, draws, 0),
    }


def whole_sums(counts: Floats, beyond: Floats, draws: Integers) -> State | None:
    """Sums over the chains of counts (chain, time, cell), and of beyond and draws (chain, time); the first axis stays.

    None unless the counts of each chain are numbers of draws, all of which they hold: ``scaled_cells`` leaves these
    unchanged, and floats add whole numbers exactly up to 2⁵³, in any order.
    """
    if int(draws.sum()) >= LARGEST_WHOLE:
        return None
    totals = np.zeros((1, *counts.shape[1:]))
    add = compile_part(bound(add_whole), ADD_WHOLE)
    if not add(*(np.ascontiguousarray(values) for values in (counts, beyond, draws)), totals[0]):
        return None
    return {"counts": totals, "beyond": beyond.sum(axis=0)[None], "draws": draws.sum(axis=0)[None]}


def histogram(x_edges: Any, y_edges: Any = None, *, coordinates: Any = (0, 1)) -> Histogram:
    """Histogram of one coordinate of the draws, or of two with ``y_edges``: ``HistogramSoFar``.

    x_edges, y_edges: increasing edges of the cells, at least 2, even or not. A cell holds its lower edge, the last one
    its upper edge too: with weights 1 counts are those of numpy.histogram and numpy.histogram2d. coordinates: which
    ones, different and ≥ 0; the first alone without y_edges. Weighted where draws have weights. Draws that are not
    finite, which a diverged replica leaves, are left out.
    Raises TypeError or ValueError where these are wrong, before anything runs.
    """
    if not is_a(coordinates, tuple | list) or len(coordinates) != 2:
        raise TypeError(f"coordinates must be two numbers of coordinates, got {shown(coordinates)}")
    x, y = (check_count(f"coordinates[{i}]", value, at_least=0) for i, value in enumerate(coordinates))
    if x == y and y_edges is not None:
        raise ValueError(f"coordinates must be different, got {shown(coordinates)}")
    return Histogram(
        np.array(check_edges("x_edges", x_edges)),
        None if y_edges is None else np.array(check_edges("y_edges", y_edges)),
        (x, y),
    )


def tally(inputs: Any, constants: Any, state: Any) -> None:
    """Add coordinates ``x`` and ``y`` of draws (chain, draw, dim) to their cells, in order.

    weights: (chain, draw), or empty. counts: (chain, nx · ny).
    """
    draws, weights = inputs
    x, y, x_edges, y_edges = constants
    counts, beyond, count = state
    weighted, columns = weights.size > 0, np.uint64(y_edges.size - 1)
    x_scale, y_scale = cells_per_unit(x_edges), cells_per_unit(y_edges)
    for c in range(draws.shape[0]):
        outside, n = beyond[c], count[c]
        for t in range(draws.shape[1]):
            w = weights[c, t] if weighted else 1.0
            first, second = draws[c, t, x], draws[c, t, y]
            if (first - first) + (second - second) + (w - w) == 0.0:
                n += 1
                row, column = cell_of(first, x_edges, x_scale), cell_of(second, y_edges, y_scale)
                if row >= 0 and column >= 0:
                    counts[c, np.uint64(row) * columns + np.uint64(column)] += w
                else:
                    outside += w
        beyond[c], count[c] = outside, n


def add_whole(counts: Any, beyond: Any, draws: Any, totals: Any) -> bool:
    """Add counts (chain, time, cell) to ``totals`` (time, cell), and say whether all are whole numbers.

    That is, whether those of each chain and time, with ``beyond`` (chain, time), are whole and sum to its ``draws``.
    """
    are_whole = True
    for c in range(counts.shape[0]):
        for t in range(counts.shape[1]):
            most = np.float64(draws[c, t])
            outside = np.int64(beyond[c, t] if beyond[c, t] <= most else -1.0)
            are_whole &= np.float64(outside) == beyond[c, t]
            n = outside
            for k in range(counts.shape[2]):
                weight = counts[c, t, k]
                totals[t, k] += weight
                whole = np.int64(weight if weight <= most else -1.0)  # no integer can hold inf and nan
                are_whole &= np.float64(whole) == weight
                n += whole
            are_whole &= n == draws[c, t]
    return are_whole


@kernel
def cells_per_unit(edges):
    """Number of cells over the length of the grid; 0 where that is infinite."""
    return (edges.size - 1.0) / (edges[edges.size - 1] - edges[0])


@kernel
def cell_of(value, edges, scale):
    """The cell that holds ``value``, by comparison with edges; −1 beyond the grid. ``scale`` gives a first guess."""
    last = edges.size - 1
    if not (value >= edges[0] and value <= edges[last]):
        return -1
    scaled = (value - edges[0]) * scale
    guess = np.uint64(scaled) if scaled < last else np.uint64(0)  # nan, from an infinite grid, gives 0 too
    above = guess + np.uint64(1)
    if edges[guess] <= value and value < edges[above]:
        return np.int64(guess)
    low, high = 0, last
    while high - low > 1:
        middle = (low + high) // 2
        if edges[middle] <= value:
            low = middle
        else:
            high = middle
    return low
