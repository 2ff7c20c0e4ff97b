"""The edge of a polygon nearest to a point, found by its pieces, and the side of it on which the point lies.

A piece is a run of up to 16 edges with its chord and its sag, the largest distance of the run from the chord, so a
point's distance to the piece is its distance to the chord within ± sag: most pieces are ruled out by their chord.

The sign of the distance comes from the nearest edge's side, or at a vertex from the sum of both edges' normals
(Bærentzen & Aanæs 2005), so rings need only be oriented: outer ones counter-clockwise, holes clockwise.
"""

import math
from typing import Any

import numpy as np

from .compiling import inlined, kernel
from .maths import fma, from_bits, larger, select, smaller, to_bits

PIECE_EDGES = 16  # a power of 2
INSIDE = -1

# The real table: this header, then for each of these fields a column of all edges, then rows of pieces:
# start, direction, 1 / length²; an edge's normals at start and end; a piece's sag, first edge and number of edges.
CORNER_X, CORNER_Y, SCALE, HEADER = 0, 1, 2, 3
EDGE_FIELDS, PIECE_FIELDS = 9, 8
INDEX_BITS = np.int64(PIECE_EDGES - 1)  # of an edge's number in its piece
# The whole table: this header, then the cells, then lists (length first).
SIDE, N_EDGES, ALL_PIECES, CELLS = 0, 1, 2, 3


@inlined
def segment_distance(x, y, ax, ay, dx, dy, inverse):
    """Squared distance of (x, y) to a segment, and the place of the nearest point along it in [0, 1]."""
    along = smaller(larger(fma(x - ax, dx, (y - ay) * dy) * inverse, 0.0), 1.0)
    away_x, away_y = x - fma(along, dx, ax), y - fma(along, dy, ay)
    return fma(away_x, away_x, away_y * away_y), along


@inlined
def chord_distance(x, y, real, row):
    """Squared distance of (x, y) to the chord of the piece whose row begins at ``row``."""
    return segment_distance(x, y, real[row], real[row + 1], real[row + 2], real[row + 3], real[row + 4])[0]


@kernel
def nearest_in_piece(x, y, real, n_edges, row):
    """(squared distance, edge) of a piece's edge nearest to (x, y).

    Branch-free: the bits of floats ≥ 0 order as integers, and the lowest bits make room for the edge's number.
    """
    first, count = np.int64(real[row + 6]), np.int64(real[row + 7])
    ax = real[HEADER + first : HEADER + first + count]
    ay = real[HEADER + n_edges + first : HEADER + n_edges + first + count]
    dx = real[HEADER + 2 * n_edges + first : HEADER + 2 * n_edges + first + count]
    dy = real[HEADER + 3 * n_edges + first : HEADER + 3 * n_edges + first + count]
    inverse = real[HEADER + 4 * n_edges + first : HEADER + 4 * n_edges + first + count]
    smallest = np.int64(0x7FF0000000000000)
    for n in range(count):
        squared, _ = segment_distance(x, y, ax[n], ay[n], dx[n], dy[n], inverse[n])
        smallest = min(smallest, (np.int64(to_bits(squared)) & ~INDEX_BITS) | n)
    return from_bits(np.uint64(smallest & ~INDEX_BITS)), first + (smallest & INDEX_BITS)


@kernel
def nearest_edge(x, y, real, n_edges, table, start, count):
    """(squared distance, edge, place along it) of the boundary point nearest to (x, y), among the listed pieces."""
    pieces = HEADER + EDGE_FIELDS * n_edges
    lowest, likely = math.inf, pieces
    for n in range(count):
        row = pieces + PIECE_FIELDS * table[start + n]
        squared = chord_distance(x, y, real, row)
        if squared < lowest:
            lowest, likely = squared, row
    best, best_edge = nearest_in_piece(x, y, real, n_edges, likely)
    for n in range(count):
        row = pieces + PIECE_FIELDS * table[start + n]
        reach = math.sqrt(best) + real[row + 5]
        if row != likely and chord_distance(x, y, real, row) <= reach * reach * (1.0 + 1e-9):
            squared, edge = nearest_in_piece(x, y, real, n_edges, row)
            if squared < best:
                best, best_edge = squared, edge
    e = HEADER + best_edge
    squared, along = segment_distance(
        x, y, real[e], real[e + n_edges], real[e + 2 * n_edges], real[e + 3 * n_edges], real[e + 4 * n_edges]
    )
    return squared, best_edge, along


@kernel
def is_outside(x, y, real, n_edges, edge, along):
    """Whether (x, y) lies outside, given its nearest edge and the place of the nearest point along it."""
    e = HEADER + edge
    ax, ay, dx, dy = real[e], real[e + n_edges], real[e + 2 * n_edges], real[e + 3 * n_edges]
    if along <= 0.0:
        return fma(x - ax, real[e + 5 * n_edges], (y - ay) * real[e + 6 * n_edges]) > 0.0
    if along >= 1.0:
        return fma(x - (ax + dx), real[e + 7 * n_edges], (y - (ay + dy)) * real[e + 8 * n_edges]) > 0.0
    return fma(x - ax, dy, -(y - ay) * dx) > 0.0


@inlined
def grid_cell(x, y, x0, y0, scale, side):
    """Number of the grid's cell at (x, y), as a float; −1 beyond the grid and for what is not finite."""
    i, j = (x - x0) * scale, (y - y0) * scale
    in_grid = (i >= 0.0) & (j >= 0.0) & (i < side) & (j < side)
    return select(in_grid, math.floor(j) * side + math.floor(i), -1.0)


def look_polygon(position: Any, foot: Any, outside: Any, real: Any, whole: Any) -> None:
    """The polygon's function behind ``signatures.DOMAIN``."""
    side, n_edges = whole[SIDE], np.int64(whole[N_EDGES])
    x0, y0, scale = real[CORNER_X], real[CORNER_Y], real[SCALE]
    cells = foot[0]
    for lane in range(position.shape[1]):
        cells[lane] = grid_cell(position[0, lane], position[1, lane], x0, y0, scale, side)
    for lane in range(position.shape[1]):
        if outside[lane] == 0.0:
            continue
        cell = np.int64(cells[lane])
        beyond = cell < 0
        start = whole[ALL_PIECES] if beyond else whole[CELLS + cell]
        x, y = position[0, lane], position[1, lane]
        if start == INSIDE or not (abs(x) < math.inf and abs(y) < math.inf):  # the engine reports what is not finite
            outside[lane] = 0.0
            continue
        _, edge, along = nearest_edge(x, y, real, n_edges, whole, start + 1, np.int64(whole[start]))
        outside[lane] = 1.0 if beyond or is_outside(x, y, real, n_edges, edge, along) else 0.0
        e = HEADER + edge
        foot[0, lane] = fma(along, real[e + 2 * n_edges], real[e])
        foot[1, lane] = fma(along, real[e + 3 * n_edges], real[e + n_edges])
