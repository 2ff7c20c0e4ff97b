"""Integrals of exp(−U) over the cells of a grid, and over their parts inside a polygon, by Gauss–Legendre."""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import njit, types

from toolkit._compiler import INTEGERS, MATRIX, compile_part
from toolkit.errors import check_edges
from toolkit.problem import Target

from ..arrays import Array, Integers

ORDER, LOWER_ORDER = 10, 6
TOLERANCE = 1e-6  # largest difference between the two orders, summed over cells, as a share of the whole
CELLS_ACROSS, MAX_CELLS_ACROSS = (
    100,
    400,
)  # cells across the overlap of grid and rings, doubled until the orders agree
READ_ONLY = types.Array(types.float64, 2, "C", readonly=True)
BATCH = 400  # triangles evaluated at a time, so that arrays stay in the processor's caches


def split_edges(edges: Array, low: float, high: float, width: float) -> Array:
    """The part of ``edges`` from ``low`` to ``high``, both included, intervals split evenly to at most ``width``."""
    inner = np.unique(np.clip(edges, low, high))
    parts = np.maximum(1, np.ceil(np.diff(inner) / width - 1e-9)).astype(int)
    pieces = [np.linspace(a, b, n, endpoint=False) for a, b, n in zip(inner, inner[1:], parts, strict=False)]
    return np.append(np.concatenate(pieces), inner[-1])


def cell_integrals(target: Target, rings: Sequence[Array], x_edges: Any, y_edges: Any, offset: float) -> Array:
    """∫ exp(offset − U) over each cell's part inside the polygon of ``rings``; shape (nx, ny).

    rings: outer counter-clockwise, holes clockwise. Cells are split until Gauss–Legendre
    rules of order 6 and 10 agree to 1e-6 of the whole; the result is the latter's, whose own error is far smaller
    where the energy is smooth. Raises ValueError where 400 cells across the grid are not enough.
    """
    if target.dim != 2:
        raise ValueError(f"cells need a target of dimension 2, and {target.name!r} has {target.dim}")
    x_edges, y_edges = check_edges("x_edges", x_edges), check_edges("y_edges", y_edges)
    points = np.concatenate(list(rings))
    low = np.maximum(points.min(axis=0), [x_edges[0], y_edges[0]])
    high = np.minimum(points.max(axis=0), [x_edges[-1], y_edges[-1]])
    integrals = np.zeros((x_edges.size - 1, y_edges.size - 1))
    if (low >= high).any():
        return integrals
    common = cut_rings(rings, np.array([low[0], high[0]]), np.array([low[1], high[1]]))
    if sum(twice_areas(triangles).sum() for triangles, _ in common) <= 1e-13 * np.prod(high - low):
        return integrals  # the grid lies beside the polygon, or in a hole
    extent = float(max(high - low))
    across = CELLS_ACROSS
    while across <= MAX_CELLS_ACROSS:
        fine_x = split_edges(x_edges, low[0], high[0], extent / across)
        fine_y = split_edges(y_edges, low[1], high[1], extent / across)
        totals, rough = fine_integrals(target, rings, fine_x, fine_y, offset)
        if 0 < totals.sum() < np.inf and np.abs(totals - rough).sum() <= TOLERANCE * totals.sum():
            totals[totals <= 1e-18 * totals.sum()] = 0.0  # empty cells are 0 to rounding only
            i, j = (
                np.searchsorted(edges, 0.5 * (fine[1:] + fine[:-1]), side="right") - 1
                for edges, fine in ((x_edges, fine_x), (y_edges, fine_y))
            )
            np.add.at(integrals, (i[:, None], j[None, :]), totals)
            return integrals
        across *= 2
    raise ValueError(
        f"the grid must resolve the target: {MAX_CELLS_ACROSS} cells across {extent:g} do not integrate "
        f"{target.name!r} to {TOLERANCE:g}; give edges closer about where its mass is"
    )


@functools.cache
def legendre_rule(order: int) -> tuple[Array, Array]:
    """Nodes (order,) and weights (order,) of the Gauss–Legendre rule on [−1, 1], not to be written to."""
    rule = np.polynomial.legendre.leggauss(order)
    for array in rule:
        array.flags.writeable = False
    return rule


def triangle_rule(order: int) -> tuple[Array, Array, Array]:
    """Places s, t in [0, 1] and weights of the Gauss–Legendre rule on a triangle c + s ((1 − t) a + t b)."""
    nodes, weights = legendre_rule(order)
    s, t = np.repeat(0.5 * (nodes + 1.0), order), np.tile(0.5 * (nodes + 1.0), order)
    return s, t, 0.25 * np.outer(weights, weights).ravel() * s


def fine_integrals(
    target: Target, rings: Sequence[Array], x_edges: Array, y_edges: Array, offset: float
) -> tuple[Array, Array]:
    """The integrals over the cells of one grid, of the higher and of the lower order, each (nx, ny).

    A cell's part inside a ring is cut into triangles that meet in the cell's centre and count with their
    orientation, so parts need not be convex, nor connected.
    """
    shape = x_edges.size - 1, y_edges.size - 1
    results = []
    pieces = cut_rings(rings, x_edges, y_edges)
    for s, t, weight in map(triangle_rule, (ORDER, LOWER_ORDER)):
        totals = np.zeros(shape[0] * shape[1])
        for triangles, cells in pieces:
            for start in range(0, len(cells), BATCH):
                batch = triangles[start : start + BATCH]
                points = points_in(batch, s, t)
                with np.errstate(over="ignore"):  # an infinity fails the comparison of the orders
                    density = np.exp(offset - target.evaluate(points)[0]).reshape(len(batch), -1)
                np.add.at(totals, cells[start : start + BATCH], twice_areas(batch) * (density @ weight))
        results.append(totals.reshape(shape))
    return results[0], results[1]


def points_in(triangles: Array, s: Array, t: Array) -> Array:
    """The points c + s ((1 − t) a + t b), (n · places, 2), of the rows (c, a, b) of ``triangles`` (n, 6) in turn."""
    points = np.empty((len(triangles), s.size, 2))
    for d in range(2):  # each coordinate by itself, so that NumPy's loops are long
        centre = triangles[:, d, None]
        place = (1.0 - t) * (triangles[:, 2 + d, None] - centre)
        place += t * (triangles[:, 4 + d, None] - centre)
        place *= s
        place += centre
        points[:, :, d] = place
    return points.reshape(-1, 2)


def cut_rings(rings: Sequence[Array], x_edges: Array, y_edges: Array) -> list[tuple[Array, Integers]]:
    """For each ring, the triangles (n, 6) of its parts in the cells of a grid, and the cell of each (n,)."""
    cut = compile_part(cut_triangles, types.Tuple((MATRIX, INTEGERS))(MATRIX, MATRIX, MATRIX), allocates=True)
    return [cut(np.array(ring, order="C"), x_edges[:, None].copy(), y_edges[:, None].copy()) for ring in rings]


def twice_areas(triangles: Array) -> Array:
    """Twice the signed area of each row (centre, a, b) of ``triangles`` (n, 6)."""
    centre, a, b = np.split(triangles, 3, axis=1)
    a, b = a - centre, b - centre
    return np.asarray(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0])


@njit
def clip(ring, n, axis, bound, keeps_above, out):
    """Clip a ring of ``n`` vertices to one side of a line, into ``out``; its length (Sutherland & Hodgman 1974)."""
    m = 0
    for i in range(n):
        j = (i + 1) % n
        a, b = ring[i, axis] - bound, ring[j, axis] - bound
        if not keeps_above:
            a, b = -a, -b
        if a >= 0.0:
            out[m, 0], out[m, 1] = ring[i, 0], ring[i, 1]
            m += 1
        if (a > 0.0 and b < 0.0) or (a < 0.0 and b > 0.0):
            share = a / (a - b)
            out[m, 1 - axis] = ring[i, 1 - axis] + share * (ring[j, 1 - axis] - ring[i, 1 - axis])
            out[m, axis] = bound
            m += 1
    return m


def cut_triangles(ring: Any, x_edges: Any, y_edges: Any) -> Any:
    """Rows (centre, a, b) of the triangles of a ring's part in each cell, shape (n, 6), and the cell of each."""
    n_x, n_y = x_edges.shape[0] - 1, y_edges.shape[0] - 1
    rows = np.empty((4 * len(ring) + 8 * n_x * n_y, 6))
    cells = np.empty(len(rows), np.int64)
    used = 0
    first, strip = np.empty((2 * len(ring) + 8, 2)), np.empty((4 * len(ring) + 16, 2))
    half, part = np.empty((8 * len(ring) + 32, 2)), np.empty((16 * len(ring) + 64, 2))
    for i in range(n_x):
        n = clip(ring, len(ring), 0, x_edges[i, 0], True, first)
        n = clip(first, n, 0, x_edges[i + 1, 0], False, strip)
        if n < 3:
            continue
        for j in range(n_y):
            m = clip(strip, n, 1, y_edges[j, 0], True, half)
            m = clip(half, m, 1, y_edges[j + 1, 0], False, part)
            if m < 3:
                continue
            if used + m > len(rows):
                longer_rows, longer_cells = np.empty((2 * used + m, 6)), np.empty(2 * used + m, np.int64)
                for row in range(used):  # loops, because Numba takes seconds to compile an assignment of arrays
                    longer_cells[row] = cells[row]
                    for field in range(rows.shape[1]):
                        longer_rows[row, field] = rows[row, field]
                rows, cells = longer_rows, longer_cells
            centre_x, centre_y = 0.5 * (x_edges[i, 0] + x_edges[i + 1, 0]), 0.5 * (y_edges[j, 0] + y_edges[j + 1, 0])
            for k in range(m):
                next_vertex = (k + 1) % m
                rows[used, 0], rows[used, 1] = centre_x, centre_y
                rows[used, 2], rows[used, 3] = part[k, 0], part[k, 1]
                rows[used, 4], rows[used, 5] = part[next_vertex, 0], part[next_vertex, 1]
                cells[used] = i * n_y + j
                used += 1
    return rows[:used].copy(), cells[:used].copy()


# Panels: boxes of any dimension, on which the integrals of ``panels`` and ``energy_levels`` are computed.


@functools.cache
def tensor_rule(order: int, dim: int) -> tuple[Array, Array]:
    """Places (order^dim, dim) in the unit cube and weights of the tensor Gauss–Legendre rule, not to be written to."""
    nodes, weights = legendre_rule(order)
    places = np.stack(np.meshgrid(*[0.5 * (nodes + 1.0)] * dim, indexing="ij"), axis=-1).reshape(-1, dim)
    products = np.stack(np.meshgrid(*[0.5 * weights] * dim, indexing="ij"), axis=-1).reshape(-1, dim)
    rule = places, products.prod(axis=1)
    for array in rule:
        array.flags.writeable = False
    return rule


def points_in_panels(lows: Array, widths: Array, places: Array) -> Array:
    """The points of each panel at ``places`` (places, dim) of the unit cube, panel by panel; (panels · places, dim)."""
    points = np.empty((len(lows) * len(places), lows.shape[1]))
    place = compile_part(place_points, types.void(MATRIX, MATRIX, READ_ONLY, MATRIX))
    place(np.ascontiguousarray(lows), np.ascontiguousarray(widths), places, points)
    return points


def place_points(lows: Any, widths: Any, places: Any, points: Any) -> None:
    """points ← low + width · place."""
    n = places.shape[0]
    for i in range(lows.shape[0]):
        for d in range(lows.shape[1]):
            low, width = lows[i, d], widths[i, d]
            for j in range(n):
                points[i * n + j, d] = low + width * places[j, d]


def halve_panels(lows: Array, widths: Array, scale: Array) -> tuple[Array, Array]:
    """The panels, each halved in every coordinate in which, in units of ``scale``, it is more than half its longest."""
    sides = widths / scale
    splits = sides > 0.5 * sides.max(axis=1, keepdims=True)
    for d in range(lows.shape[1]):
        which = splits[:, d]
        half = np.where(which, 0.5, 1.0) * widths[:, d]
        widths = np.column_stack([widths[:, :d], half, widths[:, d + 1 :]])
        upper = lows[which].copy()
        upper[:, d] += half[which]
        lows = np.concatenate([lows, upper])
        widths, splits = np.concatenate([widths, widths[which]]), np.concatenate([splits, splits[which]])
    return lows, widths


def inner_corners(dim: int) -> Array:
    """The 2^dim corners of the unit cube, moved inwards by 1e-6, as a border between modes may run along a side."""
    ends = [1e-6, 1.0 - 1e-6]
    return np.stack(np.meshgrid(*[ends] * dim, indexing="ij"), axis=-1).reshape(-1, dim)


def closed_lattice(lows: Array, widths: Array, steps: int) -> Array:
    """(steps + 1)^dim evenly spaced points of each panel, its corners among them; shape (panels, points, dim)."""
    dim = lows.shape[1]
    ticks = np.arange(steps + 1) / steps
    places = np.stack(np.meshgrid(*[ticks] * dim, indexing="ij"), axis=-1).reshape(-1, dim)
    return points_in_panels(lows, widths, places).reshape(len(lows), -1, dim)


def axis_edges(low: float, high: float, across: int, breaks: Any) -> Array:
    """Edges from ``low`` to ``high``, at every one of ``breaks`` between them and at ``across`` even intervals."""
    inner = np.asarray(breaks, np.float64).ravel()
    inner = inner[(inner > low) & (inner < high)]
    edges = np.unique(np.concatenate([np.linspace(low, high, across + 1), inner]))
    slivers = np.diff(edges) < 1e-12 * (high - low)  # an even edge that rounding has set beside a break
    return np.asarray(edges[np.append(True, ~slivers)])


def with_midpoints(places: Array) -> Array:
    """``places`` in order, and the midpoints between them, which are the borders between modes on a grid."""
    ordered = np.sort(places)
    distinct = ordered[np.append(True, np.diff(ordered) > 1e-9 * np.abs(ordered).max())]
    return np.concatenate([distinct, 0.5 * (distinct[1:] + distinct[:-1])])
