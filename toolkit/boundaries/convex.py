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
from numba import types
from numpy.typing import NDArray

from .._compiler.argument_pack import call_part, pack_arguments
from .._compiler.decorators import kernel, set_linked_form
from .._compiler.shared_code import SharedCode
from .._compiler.signatures import DOMAIN, FLOATS
from ..maths.elementary import fma, larger, select, smaller
from ..problem.definition import Domain
from ..problem.point_function import stack_array

# The domain's int_table: this header, then the bounded coordinates, the first entry of every row and their end, and the
# entries' columns. Its float_table: lower ends, upper ends, rows' offsets, rows' entries, balls' centres and radii.
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
def find_mirror_point(position, mirror_point, lane, scratch, floats, ints):
    """mirror_point ← the domain's point nearest to one lane's position."""
    dim, balls = position.shape[0], np.int64(ints[N_BALLS])
    flat = np.int64(ints[N_SIDES]) + np.int64(ints[N_ROWS])
    multipliers, ball_multipliers = scratch[:flat], scratch[3 * flat : 3 * flat + balls]
    push = scratch[3 * flat + balls : 3 * flat + balls + dim]
    vectors = GradientVectors(scratch[flat : 2 * flat], scratch[2 * flat : 3 * flat], push)
    multipliers[:], ball_multipliers[:] = 0.0, 0.0
    for d in range(dim):
        mirror_point[d, lane] = position[d, lane]
    weight = 1.0  # 1 + Σ μ
    for sweep in range(SWEEPS):
        if sweep % SWEEPS_PER_CG == SWEEPS_PER_CG - 1:
            project_on_active_walls(mirror_point, lane, weight, multipliers, vectors, floats, ints)
        moved = project_on_flat_walls(mirror_point, lane, weight, multipliers, floats, ints)
        if balls > 0:
            weight, moved = project_on_balls(mirror_point, lane, weight, moved, ball_multipliers, floats, ints)
        size = 0.0
        for d in range(dim):
            size = larger(size, larger(abs(position[d, lane]), abs(mirror_point[d, lane])))
        if not moved > CONVERGED * size:
            return


@kernel
def project_on_flat_walls(mirror_point, lane, weight, multipliers, floats, ints):
    """Project mirror_point on each side and row in turn, or release it; returns its largest movement."""
    sides, rows = np.int64(ints[N_SIDES]), np.int64(ints[N_ROWS])
    moved = 0.0
    for k in range(sides):
        axis = np.int64(ints[HEADER + k])
        free = mirror_point[axis, lane] + multipliers[k] / weight
        clamped = smaller(larger(free, floats[k]), floats[sides + k])
        multipliers[k] = weight * (free - clamped)
        moved = larger(moved, abs(clamped - mirror_point[axis, lane]))
        mirror_point[axis, lane] = clamped
    for n in range(sides, sides + rows):
        excess = excess_of(mirror_point, lane, n, 0.0, floats, ints)
        multiplier = larger(multipliers[n] + weight * excess, 0.0)
        step = (multiplier - multipliers[n]) / weight
        multipliers[n] = multiplier
        moved = larger(moved, abs(step))
        begin, end, column, entry = entries_of(n - sides, ints)
        for i in range(begin, end):
            axis = np.int64(ints[column + i])
            mirror_point[axis, lane] = fma(-step, floats[entry + i], mirror_point[axis, lane])
    return moved


@kernel
def project_on_balls(mirror_point, lane, weight, moved, multipliers, floats, ints):
    """Project mirror_point on each ball in turn, or release it; the new weight and the largest movement so far."""
    dim, balls, sides, rows = (
        mirror_point.shape[0],
        multipliers.size,
        np.int64(ints[N_SIDES]),
        np.int64(ints[N_ROWS]),
    )
    first = 2 * sides + rows + np.int64(ints[HEADER + sides + rows])
    for b in range(balls):
        start = first + b * (dim + 1)
        squared = 0.0
        for d in range(dim):
            difference = mirror_point[d, lane] - floats[start + d]
            squared = fma(difference, difference, squared)
        distance = math.sqrt(squared)
        multiplier = larger(multipliers[b] + weight * (distance / floats[start + dim] - 1.0), 0.0)
        new_weight = weight + (multiplier - multipliers[b])
        share = weight / new_weight
        multipliers[b], weight = multiplier, new_weight
        moved = larger(moved, abs(share - 1.0) * distance)
        for d in range(dim):
            mirror_point[d, lane] = fma(share, mirror_point[d, lane] - floats[start + d], floats[start + d])
    return weight, moved


@kernel
def project_on_active_walls(mirror_point, lane, weight, multipliers, vectors, floats, ints):
    """Project mirror_point on all active flat walls at once by conjugate gradients, until a multiplier becomes 0."""
    residual, direction, push = vectors.residual, vectors.direction, vectors.push
    dim, flat = mirror_point.shape[0], multipliers.size
    total, first = 0.0, 0.0
    for step in range(flat):
        last, total = total, 0.0
        for n in range(flat):
            residual[n] = 0.0
            if multipliers[n] != 0.0:
                residual[n] = excess_of(mirror_point, lane, n, multipliers[n], floats, ints)
            total = fma(residual[n], residual[n], total)
        first = total if step == 0 else first
        slope = 0.0
        for n in range(flat):
            direction[n] = residual[n] if step == 0 else fma(total / last, direction[n], residual[n])
            slope = fma(residual[n], direction[n], slope)
        if not (total > SOLVED * first and slope > 0.0):
            return
        add_normals(push, direction, floats, ints)
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
            mirror_point[d, lane] = fma(-length, push[d], mirror_point[d, lane])
        if ended >= 0:
            multipliers[ended] = 0.0
            return


@kernel
def excess_of(mirror_point, lane, n, multiplier, floats, ints):
    """How far mirror_point is beyond flat wall ``n``; of a side, beyond the end that ``multiplier``'s sign selects."""
    sides = np.int64(ints[N_SIDES])
    if n < sides:
        return mirror_point[np.int64(ints[HEADER + n]), lane] - select(multiplier > 0.0, floats[sides + n], floats[n])
    begin, end, column, entry = entries_of(n - sides, ints)
    excess = -floats[2 * sides + (n - sides)]
    for i in range(begin, end):
        excess = fma(floats[entry + i], mirror_point[np.int64(ints[column + i]), lane], excess)
    return excess


@kernel
def add_normals(push, factors, floats, ints):
    """push (dim,) ← Σ factors · normals, over flat walls."""
    sides = np.int64(ints[N_SIDES])
    push[:] = 0.0
    for n in range(factors.size):
        factor = factors[n]
        if factor == 0.0:
            continue
        if n < sides:
            push[np.int64(ints[HEADER + n])] += factor
        else:
            begin, end, column, entry = entries_of(n - sides, ints)
            for i in range(begin, end):
                axis = np.int64(ints[column + i])
                push[axis] = fma(factor, floats[entry + i], push[axis])


@kernel
def entries_of(row, ints):
    """First and last entry (exclusive) of a row, and where columns and entries begin in their tables."""
    sides, rows = np.int64(ints[N_SIDES]), np.int64(ints[N_ROWS])
    firsts = HEADER + sides
    return np.int64(ints[firsts + row]), np.int64(ints[firsts + row + 1]), firsts + rows + 1, 2 * sides + rows


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
    ints = np.concatenate([[sides.size, len(normals), len(centres)], sides, firsts, column]).astype(np.int32)
    balls = np.column_stack([centres, radii]).ravel()
    floats = np.concatenate([lower[sides], upper[sides], offsets, normals[row, column], balls])
    nearest = nearest_within(scratch_size(len(lower), sides.size + len(normals), len(centres)))
    return Domain(name, len(lower), locate_walls, floats, ints, nearest).compiled()


def smallest_ball(domain: Domain) -> float:
    """The radius of the smallest ball among the walls of a convex domain; inf where there is none, or of another."""
    if getattr(domain.locate, "py_func", None) is not locate_walls or domain.int_table[N_BALLS] == 0:
        return np.inf
    balls = domain.float_table[-int(domain.int_table[N_BALLS]) * (domain.dim + 1) :]
    return float(balls.reshape(-1, domain.dim + 1)[:, -1].min())


@kernel
def keep_worst(worst, face, excess, number):
    """(worst, face) of a lane, updated by wall ``number`` if its excess is the largest so far."""
    excess = select(excess > HUGE, HUGE, excess)
    return select(excess > worst, excess, worst), select(excess > worst, number, face)


@kernel
def search_sides(position, face, worst, floats, ints):
    """Update ``face`` and ``worst`` by the box's sides, numbered by bounded coordinate."""
    sides = np.int64(ints[N_SIDES])
    for k in range(sides):
        row = position[np.int64(ints[HEADER + k])]
        low, high, number = floats[k], floats[sides + k], float(k)
        for lane in range(worst.size):
            below, above = low - row[lane], row[lane] - high
            worst[lane], face[lane] = keep_worst(worst[lane], face[lane], select(below > above, below, above), number)


@kernel
def search_rows(position, total, face, worst, floats, ints):
    """Update them by the linear walls, numbered after the sides; ``total`` (lane,) is scratch."""
    sides, rows = np.int64(ints[N_SIDES]), np.int64(ints[N_ROWS])
    firsts, columns = HEADER + sides, HEADER + sides + rows + 1
    for r in range(rows):
        offset, number = floats[2 * sides + r], float(sides + r)
        for lane in range(worst.size):
            total[lane] = -offset
        for n in range(np.int64(ints[firsts + r]), np.int64(ints[firsts + r + 1])):
            row, entry = position[np.int64(ints[columns + n])], floats[2 * sides + rows + n]
            for lane in range(worst.size):
                total[lane] = fma(entry, row[lane], total[lane])
        for lane in range(worst.size):
            worst[lane], face[lane] = keep_worst(worst[lane], face[lane], total[lane], number)


@kernel
def search_balls(position, total, face, worst, floats, ints):
    """Update them by the balls, numbered after the rows; ``total`` (lane,) is scratch."""
    sides, rows = np.int64(ints[N_SIDES]), np.int64(ints[N_ROWS])
    dim = position.shape[0]
    first = 2 * sides + rows + np.int64(ints[HEADER + sides + rows])
    for b in range(np.int64(ints[N_BALLS])):
        start, number = first + b * (dim + 1), float(sides + rows + b)
        radius = floats[start + dim]
        for lane in range(worst.size):
            total[lane] = 0.0
        for d in range(dim):
            row, centre = position[d], floats[start + d]
            for lane in range(worst.size):
                total[lane] = fma(row[lane] - centre, row[lane] - centre, total[lane])
        for lane in range(worst.size):
            excess = math.sqrt(total[lane]) - radius
            worst[lane], face[lane] = keep_worst(worst[lane], face[lane], excess, number)


@kernel
def write_mirror_point(position, mirror_point, lane, number, excess, floats, ints):
    """mirror_point ← the point of wall ``number`` nearest to one lane's position."""
    sides, rows, dim = np.int64(ints[N_SIDES]), np.int64(ints[N_ROWS]), position.shape[0]
    for d in range(dim):
        mirror_point[d, lane] = position[d, lane]
    if number < sides:
        axis = np.int64(ints[HEADER + number])
        mirror_point[axis, lane] = floats[number] if position[axis, lane] < floats[number] else floats[sides + number]
        return
    if number < sides + rows:
        firsts, columns = HEADER + sides, HEADER + sides + rows + 1
        r = number - sides
        for n in range(np.int64(ints[firsts + r]), np.int64(ints[firsts + r + 1])):
            axis = np.int64(ints[columns + n])
            mirror_point[axis, lane] = fma(-excess, floats[2 * sides + rows + n], position[axis, lane])
        return
    start = 2 * sides + rows + np.int64(ints[HEADER + sides + rows]) + (number - sides - rows) * (dim + 1)
    share = floats[start + dim] / (floats[start + dim] + excess)
    for d in range(dim):
        mirror_point[d, lane] = fma(share, position[d, lane] - floats[start + d], floats[start + d])


@kernel
def is_finite(position, lane):
    """Whether all of one lane's coordinates are finite."""
    total = 0.0
    for d in range(position.shape[0]):
        total += position[d, lane] - position[d, lane]
    return total == 0.0


@kernel
def search_walls(position, mirror_point, outside, floats, ints):
    """outside ← the largest excess beyond a wall, inf in lanes not to check; mirror_point's last row ← the wall.

    The first row of mirror_point is scratch for rows and balls; one-dimensional domains have only a box.
    """
    face = mirror_point[mirror_point.shape[0] - 1]
    for lane in range(outside.size):
        outside[lane] = select(outside[lane] != 0.0, 0.0, math.inf)
        face[lane] = 0.0
    search_sides(position, face, outside, floats, ints)
    search_rows(position, mirror_point[0], face, outside, floats, ints)
    search_balls(position, mirror_point[0], face, outside, floats, ints)


@kernel
def is_beyond(position, outside, lane):
    """Whether one lane is outside, by its excess in ``outside``, which becomes 1 or 0. The engine reports nan, inf."""
    beyond = outside[lane] > 0.0 and outside[lane] < math.inf and is_finite(position, lane)
    outside[lane] = 1.0 if beyond else 0.0
    return beyond


def locate_walls(position: Any, mirror_point: Any, outside: Any, floats: Any, ints: Any) -> None:
    """The domain's function (``signatures.DOMAIN``): its mirror_point is on the wall that the lane violates most."""
    search_walls(position, mirror_point, outside, floats, ints)
    for lane in range(outside.size):
        excess = outside[lane]
        if is_beyond(position, outside, lane):
            number = np.int64(mirror_point[mirror_point.shape[0] - 1, lane])
            write_mirror_point(position, mirror_point, lane, number, excess, floats, ints)


def scratch_size(dim: int, n_flat: int, n_balls: int) -> int:
    """Numbers of scratch for ``n_flat`` bounded coordinates and rows and ``n_balls`` balls, to a power of two.

    So domains of similar sizes share one compiled function.
    """
    return 1 << (3 * n_flat + n_balls + dim - 1).bit_length()


@kernel
def find_nearest_points(position, mirror_point, outside, floats, ints, scratch):
    """The domain's function ``Domain.nearest``, with scratch of ``scratch_size`` numbers."""
    search_walls(position, mirror_point, outside, floats, ints)
    for lane in range(outside.size):
        if is_beyond(position, outside, lane):
            find_mirror_point(position, mirror_point, lane, scratch, floats, ints)


FIND_NEAREST = SharedCode(find_nearest_points, types.void(*DOMAIN.args, FLOATS))


@functools.cache
def nearest_within(size: int) -> Callable[..., None]:
    """The function ``Domain.nearest`` with ``size`` numbers of scratch."""

    def locate_nearest(position: Any, mirror_point: Any, outside: Any, floats: Any, ints: Any) -> None:
        find_nearest_points(position, mirror_point, outside, floats, ints, stack_array(size))

    set_linked_form(locate_nearest, functools.partial(linked_nearest, size))
    return locate_nearest


def linked_nearest(size: int) -> Callable[..., None]:
    """``locate_nearest`` of ``nearest_within`` by shared code."""
    FIND_NEAREST.provide()
    shared = FIND_NEAREST.pointer

    def locate_nearest(position: Any, mirror_point: Any, outside: Any, floats: Any, ints: Any) -> None:
        part = shared()
        given = (position, mirror_point, outside, floats, ints, stack_array(size))
        call_part(part, pack_arguments(part, given))

    return locate_nearest


def everywhere_inside(position, mirror_point, outside, floats, ints):
    """A domain without an edge: every lane is inside."""
    outside[:] = 0.0


def no_domain(dim: int) -> Domain:
    """All of space."""
    return Domain("all of space", dim, everywhere_inside, np.zeros(0), np.zeros(0, np.int32))
