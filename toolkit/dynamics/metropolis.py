"""Exact yardsticks: MALA and HMC, whose Metropolis test removes the bias of the step size."""

import math

import numpy as np
from numba import types, uint64

from .._compiler.block_rows import (
    ACCEPTED,
    EXTENDED,
    LENGTH,
    POTENTIAL,
    SQRT_TEMPERATURE,
    STEP_SIZE,
    TEMPERATURE,
    UNIFORM,
)
from .._compiler.decorators import compile_part, inlined
from ..errors import check_count, check_flag
from ..maths.elementary import exp, fma, select
from ..maths.philox import ACCEPT, TRAJECTORY, WORD, random_bits, uniform_pair
from .interface import Dynamics


def no_move(lanes, memory, parameters, changes):
    """Nothing: the engine moves by ``metropolis_step.propose``."""
    return


def mala() -> Dynamics:
    """Metropolis-adjusted Langevin: propose x − h ∇U + √(2hT) ξ, and accept by the Metropolis test.

    Exact for any step size that ever accepts: the draws' law is exp(−U/T), and inside a domain that law cut off at
    the edge, with ``rules.reject()``. One gradient evaluation per step, at the proposal, and two under contour
    and continuous tempering. The test needs the exact energy, so gradient noise is refused.
    Source: Roberts & Tweedie (1996); here as ``hmc`` with one leapfrog of length √(2h), which is the same.
    """
    return Dynamics("mala", no_move, has_momentum=True, gradients=2, leapfrogs=1, scales=True, langevin_step=True)


def hmc(*, n_leapfrogs: int = 10, random_length: bool = True) -> Dynamics:
    """Hamiltonian Monte Carlo: momenta N(0, T), leapfrog steps of length h, and the Metropolis test.

    The step size is the leapfrog's own ε, as is usual for HMC (``mala`` has ε = √(2h)). Exact as ``mala`` is.
    random_length: the number of leapfrogs of each step is drawn uniformly from 1 … 2 n_leapfrogs − 1, the same for all
    chains; else it is n_leapfrogs, and where that times h is near half a period of the target, chains come back to the
    same places, or stand still at a wall. A step takes n_leapfrogs gradient evaluations on average, and one more under
    contour and continuous tempering. Raises TypeError or ValueError unless n_leapfrogs ≥ 1 and random_length is a bool.
    Source: Duane et al. (1987); Neal (2011), figure 2, and section 3.2 on random lengths.
    """
    count = check_count("n_leapfrogs", n_leapfrogs, at_least=1, below=2**31)
    varies = check_flag("random_length", random_length)
    return Dynamics(
        "hmc", no_move, has_momentum=True, gradients=count + 1, leapfrogs=count, random_length=varies, scales=True
    )  # fmt: skip


@inlined
def trajectory_length(mean, seed, step):
    """Leapfrogs of a step, uniform on 1 … 2 · mean − 1 to within 2⁻³² of each probability, the same for all chains."""
    bits = random_bits(seed, uint64(0), uint64(0), uint64(step), uint64(TRAJECTORY), uint64(0))[0]
    return np.int64(1) + np.int64(((bits >> WORD) * uint64(2 * mean - 1)) >> WORD)


def add_lengths(mean, seed, first, last):
    """Leapfrogs of all steps from ``first`` to ``last`` (exclusive) together."""
    total = np.int64(0)
    for step in range(first, last):
        total += trajectory_length(mean, seed, step)
    return total


def total_leapfrogs(mean: int, seed: int, first: int, last: int) -> int:
    """Leapfrogs, of one replica, in steps from ``first`` to ``last`` (exclusive) with trajectories of random length."""
    add = compile_part(add_lengths, types.int64(types.int64, types.uint64, types.int64, types.int64))
    return int(add(mean, np.uint64(seed), first, last))


# A matrix L as scale, which is lower triangular and lies flat, row by row: x = L z, and the gradient in z is Lᵀ ∂U.


@inlined
def is_dense(scale, rows):
    """Whether ``scale`` is a matrix: with more numbers than ``rows`` has rows."""
    return scale.size > rows.shape[0]


@inlined
def dense_kick(momentum, gradient, length, scale, share):
    """p ← p + share ε Lᵀ ∂U."""
    dim = momentum.shape[0]
    for d in range(dim):
        p = momentum[d]
        for i in range(d, dim):
            slope, entry = gradient[i], share * scale[i * dim + d]
            for lane in range(p.size):
                p[lane] = fma(entry * length[lane], slope[lane], p[lane])


@inlined
def dense_drift(position, momentum, length, scale):
    """x ← x + ε L p."""
    dim = position.shape[0]
    for d in range(dim):
        x = position[d]
        for i in range(d + 1):
            p, entry = momentum[i], scale[d * dim + i]
            for lane in range(x.size):
                x[lane] = fma(entry * length[lane], p[lane], x[lane])


@inlined
def begin_dense_trajectory(state, keeps):
    """What ``begin_trajectory`` does with momenta, for a matrix as scale."""
    position, momentum, gradient, noise, rows = state.position, state.momentum, state.gradient, state.noise, state.rows
    start, length, sqrt_temperature = rows[EXTENDED], rows[LENGTH], rows[SQRT_TEMPERATURE]
    for d in range(position.shape[0]):
        p, slope, normal = momentum[d], gradient[d], noise[d]
        for lane in range(start.size):
            fresh = sqrt_temperature[lane] * normal[lane]
            start[lane] = fma(0.5 * fresh, fresh, start[lane])
            p[lane] = fresh
        if keeps:
            for lane in range(start.size):
                normal[lane] = slope[lane]
    dense_kick(momentum, gradient, length, state.scale, -0.5)
    dense_drift(position, momentum, length, state.scale)


@inlined
def begin_trajectory(state, is_mala, keeps, changes):
    """Fresh momenta √T ξ, in EXTENDED the energy of the extended system, and the first half kick and drift.

    Momenta are those of z = x / s, s the scale of a coordinate: p ← p − ε/2 s ∂U, x ← x + ε s p; or of z = L⁻¹ x.
    LENGTH ← the leapfrog's own, and HEAT ← √T, where ``changes``. keeps: the noise becomes the gradient.
    """
    position, momentum, gradient, noise, rows = state.position, state.momentum, state.gradient, state.noise, state.rows
    potential, start, length, sqrt_temperature = rows[POTENTIAL], rows[EXTENDED], rows[LENGTH], rows[SQRT_TEMPERATURE]
    if changes > 1:
        for lane in range(start.size):
            length[lane] = math.sqrt(2.0 * rows[STEP_SIZE, lane]) if is_mala else rows[STEP_SIZE, lane]
            sqrt_temperature[lane] = math.sqrt(rows[TEMPERATURE, lane])
    for lane in range(start.size):
        start[lane] = potential[lane]
    if is_dense(state.scale, position):
        begin_dense_trajectory(state, keeps)
        return
    for d in range(position.shape[0]):
        x, p, slope, normal, s = position[d], momentum[d], gradient[d], noise[d], state.scale[d]
        half = -0.5 * s
        for lane in range(start.size):
            fresh = sqrt_temperature[lane] * normal[lane]
            start[lane] = fma(0.5 * fresh, fresh, start[lane])
            kicked = fma(half * length[lane], slope[lane], fresh)
            p[lane] = kicked
            x[lane] = fma(s * length[lane], kicked, x[lane])
        if keeps:
            for lane in range(start.size):
                normal[lane] = slope[lane]


@inlined
def kick_and_drift(position, momentum, gradient, length, scale):
    """p ← p − ε s ∂U, then x ← x + ε s p."""
    if is_dense(scale, position):
        dense_kick(momentum, gradient, length, scale, -1.0)
        dense_drift(position, momentum, length, scale)
        return
    for d in range(position.shape[0]):
        x, p, slope, s = position[d], momentum[d], gradient[d], scale[d]
        for lane in range(x.size):
            kicked = fma(-s * length[lane], slope[lane], p[lane])
            p[lane] = kicked
            x[lane] = fma(s * length[lane], kicked, x[lane])


@inlined
def end_trajectory(momentum, gradient, potential, length, end, scale):
    """The last half kick, and in ``end`` the energy of the extended system."""
    for lane in range(end.size):
        end[lane] = potential[lane]
    if is_dense(scale, momentum):
        dense_kick(momentum, gradient, length, scale, -0.5)
        for d in range(momentum.shape[0]):
            p = momentum[d]
            for lane in range(end.size):
                end[lane] = fma(0.5 * p[lane], p[lane], end[lane])
        return
    for d in range(momentum.shape[0]):
        p, slope = momentum[d], gradient[d]
        half = -0.5 * scale[d]
        for lane in range(end.size):
            kicked = fma(half * length[lane], slope[lane], p[lane])
            p[lane] = kicked
            end[lane] = fma(0.5 * kicked, kicked, end[lane])


@inlined
def accept(state, seed, step, counts):
    """Put back ``previous`` where the Metropolis test fails; a non-finite end fails it.

    ACCEPTED: the energy at the end, and then 1 where it passes and 0 where not. At temperature 0 a move is kept where
    the potential does not rise. Counts acceptances where ``counts``.
    """
    position, previous, rows = state.position, state.previous, state.rows
    potential, start, accepted_move = rows[POTENTIAL], rows[EXTENDED], rows[ACCEPTED]
    temperature, draw, accepted = rows[TEMPERATURE], rows[UNIFORM], state.accepted
    lanes = start.size
    for lane in range(lanes):
        draw[lane] = uniform_pair(
            seed, state.chain[lane], state.replica[lane], uint64(step), uint64(ACCEPT), np.uint64(0)
        )[0]
    for lane in range(lanes):
        cold = temperature[lane] == 0.0
        odds = exp((start[lane] - accepted_move[lane]) / select(cold, 1.0, temperature[lane]))
        odds = select(cold, select(potential[lane] <= start[lane], 1.0, 0.0), odds)  # it began at rest
        accepted_move[lane] = select(odds > draw[lane], 1.0, 0.0)  # false for nan
    if counts:
        for lane in range(lanes):
            accepted[lane] += np.int64(accepted_move[lane])
    for d in range(position.shape[0]):
        x, back = position[d], previous[d]
        for lane in range(lanes):
            x[lane] = select(accepted_move[lane] != 0.0, x[lane], back[lane])
