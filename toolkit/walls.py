"""Convex domains in any dimension: what lies between box faces, behind linear walls and inside balls.

A point outside is folded across one wall at a time, the one it violates most, until it is inside. So a corner turns a
momentum once per wall, as walls do; and where the walls are the mirrors of a reflection group, as those of a box and
of ordered coordinates are, the fold is exact whatever the length of the step.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .compiling import kernel
from .domain import Domain
from .maths import fma, select

# The whole table: this header, then the bounded coordinates, the first entry of every row and their end, and the
# entries' columns. The real table: lower ends, upper ends, rows' offsets, rows' entries, balls' centres and radii.
N_SIDES, N_ROWS, N_BALLS, HEADER = 0, 1, 2, 3
HUGE = 1.7e308  # what overflows is farther outside than anything that does not

Array = NDArray[np.float64]


def convex_domain(
    name: str, lower: Array, upper: Array, normals: Array, offsets: Array, centres: Array, radii: Array
) -> Domain:
    """The domain lower ≤ x ≤ upper, normals · x ≤ offsets (unit normals, (rows, dim)), |x − centre| ≤ radius."""
    sides = np.flatnonzero(np.isfinite(lower) | np.isfinite(upper))
    row, column = np.nonzero(normals)
    firsts = np.searchsorted(row, np.arange(len(normals) + 1))
    whole = np.concatenate([[sides.size, len(normals), len(centres)], sides, firsts, column]).astype(np.int32)
    balls = np.column_stack([centres, radii]).ravel()
    real = np.concatenate([lower[sides], upper[sides], offsets, normals[row, column], balls])
    return Domain(name, len(lower), look_walls, real, whole).compiled()


@kernel
def keep_worst(worst, face, excess, number):
    """(worst, face) of a lane after another wall, whose ``number`` counts if its excess is the largest."""
    excess = select(excess > HUGE, HUGE, excess)
    return select(excess > worst, excess, worst), select(excess > worst, number, face)


@kernel
def search_sides(position, face, worst, real, whole):
    """Sides of the box: two per bounded coordinate, numbered by the coordinate."""
    sides = np.int64(whole[N_SIDES])
    for k in range(sides):
        row = position[np.int64(whole[HEADER + k])]
        low, high, number = real[k], real[sides + k], float(k)
        for lane in range(worst.size):
            below, above = low - row[lane], row[lane] - high
            worst[lane], face[lane] = keep_worst(worst[lane], face[lane], select(below > above, below, above), number)


@kernel
def search_rows(position, total, face, worst, real, whole):
    """Linear walls, numbered after the sides; ``total`` (lane,) is scratch."""
    sides, rows = np.int64(whole[N_SIDES]), np.int64(whole[N_ROWS])
    firsts, columns = HEADER + sides, HEADER + sides + rows + 1
    for r in range(rows):
        offset, number = real[2 * sides + r], float(sides + r)
        for lane in range(worst.size):
            total[lane] = -offset
        for n in range(np.int64(whole[firsts + r]), np.int64(whole[firsts + r + 1])):
            row, entry = position[np.int64(whole[columns + n])], real[2 * sides + rows + n]
            for lane in range(worst.size):
                total[lane] = fma(entry, row[lane], total[lane])
        for lane in range(worst.size):
            worst[lane], face[lane] = keep_worst(worst[lane], face[lane], total[lane], number)


@kernel
def search_balls(position, total, face, worst, real, whole):
    """Balls, numbered after the rows; ``total`` (lane,) is scratch."""
    sides, rows = np.int64(whole[N_SIDES]), np.int64(whole[N_ROWS])
    dim = position.shape[0]
    first = 2 * sides + rows + np.int64(whole[HEADER + sides + rows])
    for b in range(np.int64(whole[N_BALLS])):
        start, number = first + b * (dim + 1), float(sides + rows + b)
        radius = real[start + dim]
        for lane in range(worst.size):
            total[lane] = 0.0
        for d in range(dim):
            row, centre = position[d], real[start + d]
            for lane in range(worst.size):
                total[lane] = fma(row[lane] - centre, row[lane] - centre, total[lane])
        for lane in range(worst.size):
            excess = math.sqrt(total[lane]) - radius
            worst[lane], face[lane] = keep_worst(worst[lane], face[lane], excess, number)


@kernel
def write_foot(position, foot, lane, number, excess, real, whole):
    """The point of wall ``number`` nearest to one lane's position."""
    sides, rows, dim = np.int64(whole[N_SIDES]), np.int64(whole[N_ROWS]), position.shape[0]
    for d in range(dim):
        foot[d, lane] = position[d, lane]
    if number < sides:
        axis = np.int64(whole[HEADER + number])
        foot[axis, lane] = real[number] if position[axis, lane] < real[number] else real[sides + number]
        return
    if number < sides + rows:
        firsts, columns = HEADER + sides, HEADER + sides + rows + 1
        r = number - sides
        for n in range(np.int64(whole[firsts + r]), np.int64(whole[firsts + r + 1])):
            axis = np.int64(whole[columns + n])
            foot[axis, lane] = fma(-excess, real[2 * sides + rows + n], position[axis, lane])
        return
    start = 2 * sides + rows + np.int64(whole[HEADER + sides + rows]) + (number - sides - rows) * (dim + 1)
    share = real[start + dim] / (real[start + dim] + excess)
    for d in range(dim):
        foot[d, lane] = fma(share, position[d, lane] - real[start + d], real[start + d])


@kernel
def is_finite(position, lane):
    """Whether all of one lane's coordinates are finite."""
    total = 0.0
    for d in range(position.shape[0]):
        total += position[d, lane] - position[d, lane]
    return total == 0.0


def look_walls(position: Any, foot: Any, outside: Any, real: Any, whole: Any) -> None:
    """The function behind ``signatures.DOMAIN``; in one dimension there is a box only.

    While it looks, ``outside`` holds the largest excess so far, inf in lanes it was not asked about; the last row of
    foot the number of that wall, and the first the sum of a wall.
    """
    face = foot[foot.shape[0] - 1]
    for lane in range(outside.size):
        outside[lane] = select(outside[lane] != 0.0, 0.0, math.inf)
        face[lane] = 0.0
    search_sides(position, face, outside, real, whole)
    search_rows(position, foot[0], face, outside, real, whole)
    search_balls(position, foot[0], face, outside, real, whole)
    for lane in range(outside.size):
        excess = outside[lane]
        outside[lane] = select((excess > 0.0) & (excess < math.inf), 1.0, 0.0)
        if outside[lane] != 0.0:
            if is_finite(position, lane):
                write_foot(position, foot, lane, np.int64(face[lane]), excess, real, whole)
            else:  # the engine reports what is not finite
                outside[lane] = 0.0


def look_nowhere(position, foot, outside, real, whole):
    """A domain without an edge: every lane is inside."""
    outside[:] = 0.0


def no_domain(dim: int) -> Domain:
    """All of space."""
    return Domain("all of space", dim, look_nowhere, np.zeros(0), np.zeros(0, np.int32)).compiled()
