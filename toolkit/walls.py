"""Convex domains in any dimension: what lies between box faces, behind linear walls and inside balls.

A point outside is folded across one wall at a time, the one it violates most, until it is inside. So a corner turns a
momentum once per wall, as walls do; and where the walls are the mirrors of a reflection group, as those of a box and
of ordered coordinates are, the fold is exact whatever the length of the step. A penalty pulls to the nearest point of
the whole domain, at which several walls may meet.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .compiling import kernel
from .domain import Domain
from .lanes import room
from .maths import fma, select
from .nearest_walls import HEADER, N_BALLS, N_ROWS, N_SIDES, find_foot

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
    nearest = nearest_within(len(lower), sides.size + len(normals), len(centres))
    return Domain(name, len(lower), look_walls, real, whole, nearest).compiled()


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


@kernel
def search_walls(position, foot, outside, real, whole):
    """outside ← the largest excess beyond a wall, inf in lanes not asked about; the last row of foot ← its number.

    In one dimension there is a box only: the first row of foot holds the sum of a wall meanwhile.
    """
    face = foot[foot.shape[0] - 1]
    for lane in range(outside.size):
        outside[lane] = select(outside[lane] != 0.0, 0.0, math.inf)
        face[lane] = 0.0
    search_sides(position, face, outside, real, whole)
    search_rows(position, foot[0], face, outside, real, whole)
    search_balls(position, foot[0], face, outside, real, whole)


@kernel
def is_beyond(position, outside, lane):
    """Whether one lane is outside, by the excess in ``outside``, which becomes 1 or 0. The engine reports nan, inf."""
    beyond = outside[lane] > 0.0 and outside[lane] < math.inf and is_finite(position, lane)
    outside[lane] = 1.0 if beyond else 0.0
    return beyond


def look_walls(position: Any, foot: Any, outside: Any, real: Any, whole: Any) -> None:
    """The function behind ``signatures.DOMAIN``: its foot is on the wall that the lane is farthest beyond."""
    search_walls(position, foot, outside, real, whole)
    for lane in range(outside.size):
        excess = outside[lane]
        if is_beyond(position, outside, lane):
            number = np.int64(foot[foot.shape[0] - 1, lane])
            write_foot(position, foot, lane, number, excess, real, whole)


@functools.cache
def nearest_within(dim: int, n_flat: int, n_balls: int) -> Callable[..., None]:
    """The function behind ``Domain.nearest`` for ``n_flat`` bounded coordinates and rows, and ``n_balls`` balls."""
    size = 3 * n_flat + n_balls + dim

    def look_nearest(position: Any, foot: Any, outside: Any, real: Any, whole: Any) -> None:
        scratch = room(size)
        search_walls(position, foot, outside, real, whole)
        for lane in range(outside.size):
            if is_beyond(position, outside, lane):
                find_foot(position, foot, lane, scratch, real, whole)

    return look_nearest


def look_nowhere(position, foot, outside, real, whole):
    """A domain without an edge: every lane is inside."""
    outside[:] = 0.0


def no_domain(dim: int) -> Domain:
    """All of space."""
    return Domain("all of space", dim, look_nowhere, np.zeros(0), np.zeros(0, np.int32)).compiled()
