"""The point of a convex domain of walls that is nearest to a lane, where one wall or several hold it.

The dual of that problem has a multiplier for each wall: s of a side, ν of a row with normal a, μ of a ball with centre
c, and the point is (x − Σ s e − Σ ν a + Σ μ c) / (1 + Σ μ). One wall after the other is given the multiplier that puts
the point on it, or 0 where it is not needed (Hildreth 1957, there for rows), which finds the walls that hold; every few
sweeps conjugate gradients put the point on all flat walls that hold at once, until one of them lets go (as Moré &
Toraldo 1991 do for bounds). Both raise the dual, so that they cannot go round in a circle.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .compiling import kernel
from .maths import fma, larger, select, smaller

# The whole table: this header, then the bounded coordinates, the first entry of every row and their end, and the
# entries' columns. The real table: lower ends, upper ends, rows' offsets, rows' entries, balls' centres and radii.
N_SIDES, N_ROWS, N_BALLS, HEADER = 0, 1, 2, 3

SWEEPS = 10_000  # over all walls, at most
APART = 8  # sweeps between conjugate gradients
SOLVED = 1e-30  # of the squares of the distances to the walls that conjugate gradients began with
STILL = 1e-14  # of the coordinates' size: the point is found where a sweep moves it by less


class GradientVectors(NamedTuple):
    """The vectors of conjugate gradients: two over flat walls, and the second one's sum of normals (dim,)."""

    residual: NDArray[np.float64]
    direction: NDArray[np.float64]
    push: NDArray[np.float64]


@kernel
def find_foot(position, foot, lane, scratch, real, whole):
    """foot ← the point behind all walls that is nearest to one lane's position."""
    dim, balls = position.shape[0], np.int64(whole[N_BALLS])
    flat = np.int64(whole[N_SIDES]) + np.int64(whole[N_ROWS])
    multipliers, of_balls = scratch[:flat], scratch[3 * flat : 3 * flat + balls]
    vectors = GradientVectors(scratch[flat : 2 * flat], scratch[2 * flat : 3 * flat], scratch[3 * flat + balls :])
    multipliers[:], of_balls[:] = 0.0, 0.0
    for d in range(dim):
        foot[d, lane] = position[d, lane]
    weight = 1.0  # 1 + Σ μ
    for sweep in range(SWEEPS):
        if sweep % APART == APART - 1:
            hold_together(foot, lane, weight, multipliers, vectors, real, whole)
        moved = hold_flat(foot, lane, weight, multipliers, real, whole)
        if balls > 0:
            weight, moved = hold_balls(foot, lane, weight, moved, of_balls, real, whole)
        size = 0.0
        for d in range(dim):
            size = larger(size, larger(abs(position[d, lane]), abs(foot[d, lane])))
        if not moved > STILL * size:
            return


@kernel
def hold_flat(foot, lane, weight, multipliers, real, whole):
    """Put foot on each side and row in turn, or off it; the longest way it went."""
    sides, rows = np.int64(whole[N_SIDES]), np.int64(whole[N_ROWS])
    moved = 0.0
    for k in range(sides):
        axis = np.int64(whole[HEADER + k])
        free = foot[axis, lane] + multipliers[k] / weight
        held = smaller(larger(free, real[k]), real[sides + k])
        multipliers[k] = weight * (free - held)
        moved = larger(moved, abs(held - foot[axis, lane]))
        foot[axis, lane] = held
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
def hold_balls(foot, lane, weight, moved, multipliers, real, whole):
    """Put foot on each ball in turn, or off it: the weight after that, and the longest way so far."""
    dim, balls, sides, rows = foot.shape[0], multipliers.size, np.int64(whole[N_SIDES]), np.int64(whole[N_ROWS])
    first = 2 * sides + rows + np.int64(whole[HEADER + sides + rows])
    for b in range(balls):
        start = first + b * (dim + 1)
        squared = 0.0
        for d in range(dim):
            apart = foot[d, lane] - real[start + d]
            squared = fma(apart, apart, squared)
        away = math.sqrt(squared)
        multiplier = larger(multipliers[b] + weight * (away / real[start + dim] - 1.0), 0.0)
        heavier = weight + (multiplier - multipliers[b])
        share = weight / heavier
        multipliers[b], weight = multiplier, heavier
        moved = larger(moved, abs(share - 1.0) * away)
        for d in range(dim):
            foot[d, lane] = fma(share, foot[d, lane] - real[start + d], real[start + d])
    return weight, moved


@kernel
def hold_together(foot, lane, weight, multipliers, vectors, real, whole):
    """Put foot on all flat walls that hold it, by conjugate gradients that end where a multiplier becomes 0."""
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
        length, ended = slope / steepness, -1  # inf where the walls do not meet: until one lets go
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
    """How far foot is beyond flat wall ``n``: of a side, the end at which its ``multiplier`` holds."""
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
