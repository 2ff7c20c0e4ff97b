"""Polygons as domains: non-convex, with corners and holes, looked up in a grid.

A square grid covers the polygon with a margin. A cell is either completely inside, or lists the pieces of the boundary
that can contain the nearest point to a point in the cell; only lanes in such cells need exact computation
(``nearest_edge``). For a cell of centre c and half-diagonal r, a piece is listed if the lower bound of its distance to
c is at most 2r plus the smallest upper bound of all pieces, which by the triangle inequality misses none. For points
beyond the grid all pieces are considered.
"""

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from .._compiler.decorators import compile_part, inlined, kernel
from .._compiler.signatures import FLOATS, MATRIX, TABLE
from ..maths.elementary import fma, from_bits, larger, select, smaller, to_bits
from ..problem.definition import Domain

# The nearest edge, and the side of it on which a point is.
#
# A piece is up to 16 consecutive edges, with its chord and its sag, the largest distance of these edges from the chord.
# So a point's distance to the piece is its distance to the chord ± sag, and most pieces are excluded by their chord.
#
# The sign of the distance comes from the side of the nearest edge, or at a vertex from the sum of both edges' normals
# (Bærentzen & Aanæs 2005), so rings need only be oriented: outer ones counter-clockwise, holes clockwise.

PIECE_EDGES = 16  # a power of 2
INSIDE = -1

# The table ``floats``: this header, then for each of these fields a column of all edges, then rows of pieces:
# start, direction, 1 / length²; an edge's normals at start and end; a piece's sag, first edge and number of edges.
CORNER_X, CORNER_Y, SCALE, HEADER = 0, 1, 2, 3
EDGE_FIELDS, PIECE_FIELDS = 9, 8
INDEX_BITS = np.int64(PIECE_EDGES - 1)  # of an edge's number in its piece
# The table ``ints``: this header, then the cells, then lists (length first).
SIDE, N_EDGES, ALL_PIECES, CELLS = 0, 1, 2, 3


@inlined
def segment_distance(x, y, ax, ay, dx, dy, inverse):
    """Squared distance of (x, y) to a segment, and the position of the nearest point along it, in [0, 1]."""
    along = smaller(larger(fma(x - ax, dx, (y - ay) * dy) * inverse, 0.0), 1.0)
    offset_x, offset_y = x - fma(along, dx, ax), y - fma(along, dy, ay)
    return fma(offset_x, offset_x, offset_y * offset_y), along


@inlined
def chord_distance(x, y, floats, row):
    """Squared distance of (x, y) to the chord of the piece whose row begins at ``row``."""
    return segment_distance(x, y, floats[row], floats[row + 1], floats[row + 2], floats[row + 3], floats[row + 4])[0]


@kernel
def nearest_in_piece(x, y, floats, n_edges, row):
    """(squared distance, edge) of a piece's edge nearest to (x, y).

    Branch-free: floats ≥ 0 are ordered as their bits as integers, and the lowest bits hold the edge's number.
    """
    first, count = np.int64(floats[row + 6]), np.int64(floats[row + 7])
    ax = floats[HEADER + first : HEADER + first + count]
    ay = floats[HEADER + n_edges + first : HEADER + n_edges + first + count]
    dx = floats[HEADER + 2 * n_edges + first : HEADER + 2 * n_edges + first + count]
    dy = floats[HEADER + 3 * n_edges + first : HEADER + 3 * n_edges + first + count]
    inverse = floats[HEADER + 4 * n_edges + first : HEADER + 4 * n_edges + first + count]
    smallest = np.int64(0x7FF0000000000000)
    for n in range(count):
        squared, _ = segment_distance(x, y, ax[n], ay[n], dx[n], dy[n], inverse[n])
        smallest = min(smallest, (np.int64(to_bits(squared)) & ~INDEX_BITS) | n)
    return from_bits(np.uint64(smallest & ~INDEX_BITS)), first + (smallest & INDEX_BITS)


@kernel
def nearest_edge(x, y, floats, n_edges, table, start, count):
    """(squared distance, edge, position along it) of the boundary point nearest to (x, y), in the listed pieces."""
    pieces = HEADER + EDGE_FIELDS * n_edges
    lowest, likely = math.inf, pieces
    for n in range(count):
        row = pieces + PIECE_FIELDS * table[start + n]
        squared = chord_distance(x, y, floats, row)
        if squared < lowest:
            lowest, likely = squared, row
    best, best_edge = nearest_in_piece(x, y, floats, n_edges, likely)
    for n in range(count):
        row = pieces + PIECE_FIELDS * table[start + n]
        reach = math.sqrt(best) + floats[row + 5]
        if row != likely and chord_distance(x, y, floats, row) <= reach * reach * (1.0 + 1e-9):
            squared, edge = nearest_in_piece(x, y, floats, n_edges, row)
            if squared < best:
                best, best_edge = squared, edge
    e = HEADER + best_edge
    squared, along = segment_distance(
        x,
        y,
        floats[e],
        floats[e + n_edges],
        floats[e + 2 * n_edges],
        floats[e + 3 * n_edges],
        floats[e + 4 * n_edges],
    )
    return squared, best_edge, along


@kernel
def is_outside(x, y, floats, n_edges, edge, along):
    """Whether (x, y) is outside, given its nearest edge and the position of the nearest point along it."""
    e = HEADER + edge
    ax, ay, dx, dy = (
        floats[e],
        floats[e + n_edges],
        floats[e + 2 * n_edges],
        floats[e + 3 * n_edges],
    )
    if along <= 0.0:
        return fma(x - ax, floats[e + 5 * n_edges], (y - ay) * floats[e + 6 * n_edges]) > 0.0
    if along >= 1.0:
        return fma(x - (ax + dx), floats[e + 7 * n_edges], (y - (ay + dy)) * floats[e + 8 * n_edges]) > 0.0
    return fma(x - ax, dy, -(y - ay) * dx) > 0.0


@inlined
def grid_cell(x, y, x0, y0, scale, side):
    """Number of the grid's cell at (x, y), as a float; −1 beyond the grid and for non-finite values."""
    i, j = (x - x0) * scale, (y - y0) * scale
    in_grid = (i >= 0.0) & (j >= 0.0) & (i < side) & (j < side)
    return select(in_grid, math.floor(j) * side + math.floor(i), -1.0)


def locate_polygon(position: Any, mirror_point: Any, outside: Any, floats: Any, ints: Any) -> None:
    """The polygon's function (``signatures.DOMAIN``)."""
    side, n_edges = ints[SIDE], np.int64(ints[N_EDGES])
    x0, y0, scale = floats[CORNER_X], floats[CORNER_Y], floats[SCALE]
    cells = mirror_point[0]
    for lane in range(position.shape[1]):
        cells[lane] = grid_cell(position[0, lane], position[1, lane], x0, y0, scale, side)
    for lane in range(position.shape[1]):
        if outside[lane] == 0.0:
            continue
        cell = np.int64(cells[lane])
        beyond = cell < 0
        start = ints[ALL_PIECES] if beyond else ints[CELLS + cell]
        x, y = position[0, lane], position[1, lane]
        if start == INSIDE or not (abs(x) < math.inf and abs(y) < math.inf):  # the engine reports what is not finite
            outside[lane] = 0.0
            continue
        _, edge, along = nearest_edge(x, y, floats, n_edges, ints, start + 1, np.int64(ints[start]))
        outside[lane] = 1.0 if beyond or is_outside(x, y, floats, n_edges, edge, along) else 0.0
        e = HEADER + edge
        mirror_point[0, lane] = fma(along, floats[e + 2 * n_edges], floats[e])
        mirror_point[1, lane] = fma(along, floats[e + 3 * n_edges], floats[e + n_edges])


LEVELS = 9  # the grid has 2⁹ × 2⁹ cells
MARGIN = 0.25  # of the larger side of the bounding box, on each side


def polygon_domain(name: str, rings: Sequence[NDArray[np.float64]]) -> Domain:
    """The domain bounded by closed rings, each (vertices, 2): outer counter-clockwise, holes clockwise.

    The last ones are kept: a grid of 3 to 12 MB takes 20 to 90 ms.
    """
    return domain_of_rings(name, *(np.ascontiguousarray(ring, np.float64).tobytes() for ring in rings))


@functools.lru_cache(maxsize=4)
def domain_of_rings(name: str, *contents: bytes) -> Domain:
    """``polygon_domain`` of the bytes of rings."""
    rings = [np.frombuffer(content).reshape(-1, 2) for content in contents]
    edges = np.concatenate([ring_edges(ring) for ring in rings])
    firsts = np.cumsum([0, *map(len, rings)])
    pieces = np.concatenate([ring_pieces(ring, first) for ring, first in zip(rings, firsts, strict=False)])
    points = edges[:, :2]
    side = float(np.max(np.ptp(points, axis=0))) * (1.0 + 2.0 * MARGIN)
    corner = 0.5 * (points.min(axis=0) + points.max(axis=0)) - 0.5 * side
    floats = np.concatenate([[*corner, 2**LEVELS / side], edges.T.ravel(), pieces.ravel()])
    signature = types.Tuple((TABLE, types.int64))(FLOATS, types.int64, types.int64)
    buffer, used = compile_part(list_pieces, signature, allocates=True)(floats, len(edges), len(pieces))
    return Domain(name, 2, locate_polygon, floats, buffer[:used].copy(), locate_polygon).compiled()


def ring_edges(ring: NDArray[np.float64]) -> NDArray[np.float64]:
    """The fields of one ring's edges, shape (vertices, EDGE_FIELDS)."""
    direction = np.roll(ring, -1, axis=0) - ring
    length = np.hypot(direction[:, 0], direction[:, 1])[:, None]
    normal = np.stack([direction[:, 1], -direction[:, 0]], axis=1) / length
    at_start = normal + np.roll(normal, 1, axis=0)
    return np.hstack([ring, direction, 1.0 / length**2, at_start, np.roll(at_start, -1, axis=0)])


def ring_pieces(ring: NDArray[np.float64], first_edge: int) -> NDArray[np.float64]:
    """The rows of one ring's pieces, shape (pieces, PIECE_FIELDS); the ring's first edge has number ``first_edge``."""
    rows = []
    for start in range(0, len(ring), PIECE_EDGES):
        vertices = ring[np.arange(start, min(start + PIECE_EDGES, len(ring)) + 1) % len(ring)]
        chord = vertices[-1] - vertices[0]
        squared = chord @ chord
        inverse = 1.0 / squared if squared > 0.0 else 0.0
        along = np.clip((vertices - vertices[0]) @ chord * inverse, 0.0, 1.0)
        sag = np.hypot(*(vertices - vertices[0] - along[:, None] * chord).T).max()
        rows.append([*vertices[0], *chord, inverse, sag * (1 + 1e-9), first_edge + start, len(vertices) - 1])
    return np.array(rows)


def signed_distance(domain: Domain, points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Distance of ``points`` (n, 2) to the boundary, positive inside and negative outside."""
    distances = np.empty(len(points))
    measure = compile_part(measure_distances, types.void(MATRIX, FLOATS, FLOATS, TABLE))
    measure(np.array(points, order="C"), distances, domain.float_table, domain.int_table)
    return distances


def nearest_points(domain: Domain, points: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The boundary point nearest to each of ``points`` (n, 2), and the outward unit normal there; each (n, 2).

    At a vertex the normal is along the line to the point, or between both edges' normals if the point is on the vertex.
    """
    rows = np.empty((len(points), 3))
    find = compile_part(find_nearest, types.void(MATRIX, MATRIX, FLOATS, TABLE))
    find(np.array(points, order="C"), rows, domain.float_table, domain.int_table)
    n_edges = int(domain.int_table[N_EDGES])
    squared, edge, along = rows[:, 0], rows[:, 1].astype(np.int64), rows[:, 2]
    fields = domain.float_table[HEADER : HEADER + EDGE_FIELDS * n_edges].reshape(EDGE_FIELDS, n_edges)[:, edge].T
    feet = fields[:, :2] + along[:, None] * fields[:, 2:4]
    at_vertex = (along <= 0.0) | (along >= 1.0)
    normals = np.stack([fields[:, 3], -fields[:, 2]], axis=1)
    normals = np.where(at_vertex[:, None], np.where(along[:, None] <= 0.0, fields[:, 5:7], fields[:, 7:9]), normals)
    offset = points - feet
    is_off_vertex = at_vertex & (squared > 1e-24 * (feet**2).sum(axis=1))
    side = np.where((offset * normals).sum(axis=1) < 0.0, -1.0, 1.0)
    normals = np.where(is_off_vertex[:, None], side[:, None] * offset, normals)
    return feet, normals / np.hypot(normals[:, 0], normals[:, 1])[:, None]


def list_pieces(floats: Any, n_edges: Any, n_pieces: Any) -> Any:
    """The table ``ints`` and its length, by a quadtree in which a cell's pieces are selected from its parent's."""
    side = 1 << LEVELS
    used = CELLS + side * side
    table = np.full(used + n_pieces + 1, np.int32(INSIDE), np.int32)
    table[SIDE], table[N_EDGES], table[ALL_PIECES] = side, n_edges, used
    listed = np.empty((LEVELS + 2, n_pieces), np.int32)
    counts = np.zeros(LEVELS + 2, np.int64)
    counts[0], table[used] = n_pieces, n_pieces
    for n in range(n_pieces):  # loops, because Numba takes seconds to compile an assignment of arrays, for its messages
        listed[0, n] = n
        table[used + 1 + n] = n
    used = table.size
    lowest = np.empty(n_pieces)
    stack = np.zeros((4 * LEVELS + 4, 3), np.int64)
    height = 1
    while height > 0:
        height -= 1
        level, i, j = stack[height, 0], stack[height, 1], stack[height, 2]
        size = side / floats[SCALE] / (1 << level)
        x, y = floats[CORNER_X] + (i + 0.5) * size, floats[CORNER_Y] + (j + 0.5) * size
        reach = size * math.sqrt(0.5) * (1.0 + 1e-9)
        highest = math.inf
        for n in range(counts[level]):
            row = HEADER + EDGE_FIELDS * n_edges + PIECE_FIELDS * listed[level, n]
            distance, sag = math.sqrt(chord_distance(x, y, floats, row)), floats[row + 5]
            lowest[n] = distance - sag
            highest = min(highest, distance + sag)
        kept = 0
        for n in range(counts[level]):
            if lowest[n] <= highest + 2.0 * reach:
                listed[level + 1, kept] = listed[level, n]
                kept += 1
        counts[level + 1] = kept
        squared, edge, along = nearest_edge(x, y, floats, n_edges, listed[level + 1], np.int64(0), np.int64(kept))
        if squared > reach * reach and not is_outside(x, y, floats, n_edges, edge, along):
            continue
        if level < LEVELS:
            for child in range(4):
                stack[height, 0], stack[height, 1], stack[height, 2] = level + 1, 2 * i + child % 2, 2 * j + child // 2
                height += 1
            continue
        if used + kept + 1 > table.size:
            longer = np.empty(2 * table.size + kept, np.int32)
            for n in range(used):
                longer[n] = table[n]
            table = longer
        table[CELLS + j * side + i] = used
        table[used] = kept
        for n in range(kept):
            table[used + 1 + n] = listed[level + 1, n]
        used += kept + 1
    return table, used


def measure_distances(points: Any, distances: Any, floats: Any, ints: Any) -> None:
    """Signed distances of ``points`` (n, 2)."""
    start, n_edges = ints[ALL_PIECES], np.int64(ints[N_EDGES])
    count = np.int64(ints[start])
    for n in range(points.shape[0]):
        x, y = points[n, 0], points[n, 1]
        squared, edge, along = nearest_edge(x, y, floats, n_edges, ints, start + 1, count)
        beyond = grid_cell(x, y, floats[CORNER_X], floats[CORNER_Y], floats[SCALE], ints[SIDE]) < 0.0
        outside = beyond or is_outside(x, y, floats, n_edges, edge, along)
        distances[n] = -math.sqrt(squared) if outside else math.sqrt(squared)


def find_nearest(points: Any, rows: Any, floats: Any, ints: Any) -> None:
    """Squared distance, edge and position along it of the boundary point nearest to each of ``points`` (n, 2)."""
    start, n_edges = ints[ALL_PIECES], np.int64(ints[N_EDGES])
    count = np.int64(ints[start])
    for n in range(points.shape[0]):
        squared, edge, along = nearest_edge(points[n, 0], points[n, 1], floats, n_edges, ints, start + 1, count)
        rows[n, 0], rows[n, 1], rows[n, 2] = squared, edge, along
