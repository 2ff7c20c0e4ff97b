"""Convex domains bounded by box sides, linear walls (rows) and balls; and their point nearest to a lane.

The nearest point is found by the dual problem, which has a multiplier for each wall: s of a side, ν of a row with
normal a, μ of a ball with centre c. The point is (x − Σ s e − Σ ν a + Σ μ c) / (1 + Σ μ). In a sweep each wall in turn
gets the multiplier that puts the point on it, or 0 if the wall is inactive (Hildreth 1957, for rows), which finds the
active walls; every few sweeps conjugate gradients put the point on all active flat walls at once, until one of them
becomes inactive (as Moré & Toraldo 1991 do for bounds). Both increase the dual, so that they cannot cycle.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._compiler.decorators import kernel
from ..maths.elementary import fma, larger, select, smaller
from ..problem.definition import Domain
from ..problem.point_function import stack_array

# The table ``whole``: this header, then the bounded coordinates, the first entry of every row and their end, and the
# entries' columns. The table ``real``: lower ends, upper ends, rows' offsets, rows' entries, balls' centres and radii.
N_SIDES, N_ROWS, N_BALLS, HEADER = 0, 1, 2, 3

SWEEPS = 10_000  # over all walls, at most
SWEEPS_PER_CG = 8  # sweeps between conjugate gradients
SOLVED = 1e-30  # relative: conjugate gradients end when the sum of squared distances to the walls is this small
CONVERGED = 1e-14  # relative to the coordinates: the search ends when a sweep moves the point by less


class GradientVectors(NamedTuple):
    """Vectors of conjugate gradients: two over flat walls, and ``direction``'s sum of normals (dim,)."""

    residual: NDArray[np.float64]
    direction: NDArray[np.float64]
    push: NDArray[np.float64]


@kernel
def find_foot(position, foot, lane, scratch, real, whole):
    """foot ← the domain's point nearest to one lane's position."""
    dim, balls = position.shape[0], np.int64(whole[N_BALLS])
    flat = np.int64(whole[N_SIDES]) + np.int64(whole[N_ROWS])
    multipliers, ball_multipliers = scratch[:flat], scratch[3 * flat : 3 * flat + balls]
    vectors = GradientVectors(scratch[flat : 2 * flat], scratch[2 * flat : 3 * flat], scratch[3 * flat + balls :])
    multipliers[:], ball_multipliers[:] = 0.0, 0.0
    for d in range(dim):
        foot[d, lane] = position[d, lane]
    weight = 1.0  # 1 + Σ μ
    for sweep in range(SWEEPS):
        if sweep % SWEEPS_PER_CG == SWEEPS_PER_CG - 1:
            project_on_active_walls(foot, lane, weight, multipliers, vectors, real, whole)
        moved = project_on_flat_walls(foot, lane, weight, multipliers, real, whole)
        if balls > 0:
            weight, moved = project_on_balls(foot, lane, weight, moved, ball_multipliers, real, whole)
        size = 0.0
        for d in range(dim):
            size = larger(size, larger(abs(position[d, lane]), abs(foot[d, lane])))
        if not moved > CONVERGED * size:
            return


@kernel
def project_on_flat_walls(foot, lane, weight, multipliers, real, whole):
    """Project foot on each side and row in turn, or release it; returns its largest movement."""
    sides, rows = np.int64(whole[N_SIDES]), np.int64(whole[N_ROWS])
    moved = 0.0
    for k in range(sides):
        axis = np.int64(whole[HEADER + k])
        free = foot[axis, lane] + multipliers[k] / weight
        clamped = smaller(larger(free, real[k]), real[sides + k])
        multipliers[k] = weight * (free - clamped)
        moved = larger(moved, abs(clamped - foot[axis, lane]))
        foot[axis, lane] = clamped
    for n in range(sides, sides + rows):
        excess = excess_of(foot, lane, n, 0.0, real, whole)
        multiplier = larger(multipliers[n] + weight * excess, 0.0)
        step = (multiplier - multipliers[n]) / weight
        multipliers[n] = multiplier
        moved = larger(moved, abs(step))
        begin, end, column, entry = entries_of(n - sides, whole)
        for i in range(begin, end):
            axis = np.int64(whole[column + i])
            foot[axis, lane] = fma(-step, real[entry + i], foot[axis, lane])
    return moved


@kernel
def project_on_balls(foot, lane, weight, moved, multipliers, real, whole):
    """Project foot on each ball in turn, or release it; returns the new weight and the largest movement so far."""
    dim, balls, sides, rows = foot.shape[0], multipliers.size, np.int64(whole[N_SIDES]), np.int64(whole[N_ROWS])
    first = 2 * sides + rows + np.int64(whole[HEADER + sides + rows])
    for b in range(balls):
        start = first + b * (dim + 1)
        squared = 0.0
        for d in range(dim):
            difference = foot[d, lane] - real[start + d]
            squared = fma(difference, difference, squared)
        distance = math.sqrt(squared)
        multiplier = larger(multipliers[b] + weight * (distance / real[start + dim] - 1.0), 0.0)
        new_weight = weight + (multiplier - multipliers[b])
        share = weight / new_weight
        multipliers[b], weight = multiplier, new_weight
        moved = larger(moved, abs(share - 1.0) * distance)
        for d in range(dim):
            foot[d, lane] = fma(share, foot[d, lane] - real[start + d], real[start + d])
    return weight, moved


@kernel
def project_on_active_walls(foot, lane, weight, multipliers, vectors, real, whole):
    """Project foot on all active flat walls at once by conjugate gradients, until a multiplier becomes 0."""
    residual, direction, push = vectors.residual, vectors.direction, vectors.push
    dim, flat = foot.shape[0], multipliers.size
    total, first = 0.0, 0.0
    for step in range(flat):
        last, total = total, 0.0
        for n in range(flat):
            residual[n] = 0.0
            if multipliers[n] != 0.0:
                residual[n] = excess_of(foot, lane, n, multipliers[n], real, whole)
            total = fma(residual[n], residual[n], total)
        first = total if step == 0 else first
        slope = 0.0
        for n in range(flat):
            direction[n] = residual[n] if step == 0 else fma(total / last, direction[n], residual[n])
            slope = fma(residual[n], direction[n], slope)
        if not (total > SOLVED * first and slope > 0.0):
            return
        add_normals(push, direction, real, whole)
        steepness = 0.0
        for d in range(dim):
            steepness = fma(push[d], push[d], steepness)
        length, ended = slope / steepness, -1  # inf where the walls do not meet: until one becomes inactive
        for n in range(flat):
            if multipliers[n] * direction[n] < 0.0 and -multipliers[n] / (weight * direction[n]) <= length:
                length, ended = -multipliers[n] / (weight * direction[n]), n
        if not length < math.inf:
            return
        for n in range(flat):
            multipliers[n] = fma(weight * length, direction[n], multipliers[n])
        for d in range(dim):
            foot[d, lane] = fma(-length, push[d], foot[d, lane])
        if ended >= 0:
            multipliers[ended] = 0.0
            return


@kernel
def excess_of(foot, lane, n, multiplier, real, whole):
    """How far foot is beyond flat wall ``n``; for a side, beyond the end that the sign of ``multiplier`` selects."""
    sides = np.int64(whole[N_SIDES])
    if n < sides:
        return foot[np.int64(whole[HEADER + n]), lane] - select(multiplier > 0.0, real[sides + n], real[n])
    begin, end, column, entry = entries_of(n - sides, whole)
    excess = -real[2 * sides + (n - sides)]
    for i in range(begin, end):
        excess = fma(real[entry + i], foot[np.int64(whole[column + i]), lane], excess)
    return excess


@kernel
def add_normals(push, factors, real, whole):
    """push (dim,) ← Σ factors · normals, over flat walls."""
    sides = np.int64(whole[N_SIDES])
    push[:] = 0.0
    for n in range(factors.size):
        factor = factors[n]
        if factor == 0.0:
            continue
        if n < sides:
            push[np.int64(whole[HEADER + n])] += factor
        else:
            begin, end, column, entry = entries_of(n - sides, whole)
            for i in range(begin, end):
                axis = np.int64(whole[column + i])
                push[axis] = fma(factor, real[entry + i], push[axis])


@kernel
def entries_of(row, whole):
    """First and last entry (exclusive) of a row, and where columns and entries begin in their tables."""
    sides, rows = np.int64(whole[N_SIDES]), np.int64(whole[N_ROWS])
    firsts = HEADER + sides
    return np.int64(whole[firsts + row]), np.int64(whole[firsts + row + 1]), firsts + rows + 1, 2 * sides + rows


# Domains for reflection and penalty.
#
# A point outside is reflected across one wall at a time, the one that it violates most, until it is inside. So a corner
# reflects a momentum once per wall; and if the walls are the mirrors of a reflection group, as those of a box and of
# ordered coordinates, the result is exact for any step length. A penalty pulls to the nearest point of the whole
# domain, at which several walls may meet.

HUGE = 1.7e308  # excesses are clipped to it, so that an overflowed one counts as the largest

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
    """(worst, face) of a lane, updated by wall ``number`` if its excess is the largest so far."""
    excess = select(excess > HUGE, HUGE, excess)
    return select(excess > worst, excess, worst), select(excess > worst, number, face)


@kernel
def search_sides(position, face, worst, real, whole):
    """Update ``face`` and ``worst`` by the box's sides, numbered by bounded coordinate."""
    sides = np.int64(whole[N_SIDES])
    for k in range(sides):
        row = position[np.int64(whole[HEADER + k])]
        low, high, number = real[k], real[sides + k], float(k)
        for lane in range(worst.size):
            below, above = low - row[lane], row[lane] - high
            worst[lane], face[lane] = keep_worst(worst[lane], face[lane], select(below > above, below, above), number)


@kernel
def search_rows(position, total, face, worst, real, whole):
    """Update them by the linear walls, numbered after the sides; ``total`` (lane,) is scratch."""
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
    """Update them by the balls, numbered after the rows; ``total`` (lane,) is scratch."""
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
    """foot ← the point of wall ``number`` nearest to one lane's position."""
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
    """outside ← the largest excess beyond a wall, inf in lanes not to check; the last row of foot ← that wall's number.

    The first row of foot is scratch for rows and balls; one-dimensional domains have only a box.
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
    """Whether one lane is outside, by its excess in ``outside``, which becomes 1 or 0. The engine reports nan, inf."""
    beyond = outside[lane] > 0.0 and outside[lane] < math.inf and is_finite(position, lane)
    outside[lane] = 1.0 if beyond else 0.0
    return beyond


def look_walls(position: Any, foot: Any, outside: Any, real: Any, whole: Any) -> None:
    """The domain's function (``signatures.DOMAIN``): its foot is on the wall that the lane violates most."""
    search_walls(position, foot, outside, real, whole)
    for lane in range(outside.size):
        excess = outside[lane]
        if is_beyond(position, outside, lane):
            number = np.int64(foot[foot.shape[0] - 1, lane])
            write_foot(position, foot, lane, number, excess, real, whole)


@functools.cache
def nearest_within(dim: int, n_flat: int, n_balls: int) -> Callable[..., None]:
    """The function ``Domain.nearest`` for ``n_flat`` bounded coordinates and rows, and ``n_balls`` balls."""
    size = 3 * n_flat + n_balls + dim

    def look_nearest(position: Any, foot: Any, outside: Any, real: Any, whole: Any) -> None:
        scratch = stack_array(size)
        search_walls(position, foot, outside, real, whole)
        for lane in range(outside.size):
            if is_beyond(position, outside, lane):
                find_foot(position, foot, lane, scratch, real, whole)

    return look_nearest


def everywhere_inside(position, foot, outside, real, whole):
    """A domain without an edge: every lane is inside."""
    outside[:] = 0.0


def no_domain(dim: int) -> Domain:
    """All of space."""
    return Domain("all of space", dim, everywhere_inside, np.zeros(0), np.zeros(0, np.int32)).compiled()
