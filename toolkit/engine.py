"""The loop: one step of all lanes of a block is a few phases, each a block function of straight-line arithmetic.

    energy and gradient → tempering → noise → move → boundary → record

A block is a group of chains; the lane of (replica r, chain c) is r · n_chains + c, so a phase serves all replicas
in one vectorised loop. Parts come in as function pointers (``signatures``), so this file compiles once for all.
"""

from typing import NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from . import signatures as s
from .boundaries import add_penalty, reflect_lanes
from .compiling import kernel
from .maths import fma, select
from .philox import ENERGY_NOISE, GRADIENT_NOISE, MOVE, fill_normals
from .tempering import swap_replicas

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class State(NamedTuple):
    """All that a block carries from step to step, and its scratch space. Lanes beyond the last chain are padding."""

    position: Floats  # (dim, lane)
    momentum: Floats  # (dim or 0, lane)
    status: Integers  # (lane,): 0, or 1 + the step at which the lane diverged
    bounces: Integers  # (lane,): reflections so far
    fallbacks: Integers  # (lane,): returns to the last inside point so far
    attempted: Integers  # (pair, chain): attempts to swap since the end of burn-in
    accepted: Integers  # (pair, chain): those that succeeded
    chain: NDArray[np.uint64]  # (lane,)
    replica: NDArray[np.uint64]  # (lane,)
    base_step_size: Floats  # (lane,), 0 for padding
    base_temperature: Floats  # (lane,)
    previous: Floats  # scratch (dim, lane)
    gradient: Floats  # scratch (dim, lane)
    noise: Floats  # scratch (dim, lane)
    foot: Floats  # scratch (dim, lane)
    rows: Floats  # scratch (6, lane): the engine's own, see the names below
    scratch: Floats  # scratch (rows, lane): the target's own


ENERGY, NOISY_ENERGY, STEP_SIZE, TEMPERATURE, OUTSIDE, ALIVE, ENGINE_ROWS = range(7)


class Numbers(NamedTuple):
    """What the engine needs to know besides the arrays."""

    n_chains: int
    n_replicas: int
    seed: np.uint64
    burn_in: int
    swap_every: int
    correction: float
    swap_threshold: float  # 0 for random swaps
    gradient_noise: float
    energy_noise: float
    penalty: float  # 0 where nothing is penalised
    max_bounces: int  # 0 where nothing is reflected
    keeps_energies: bool


STATE = types.NamedTuple(
    (s.MATRIX, s.MATRIX, s.INTEGERS, s.INTEGERS, s.INTEGERS, s.COUNTS, s.COUNTS, s.NAMES, s.NAMES, s.FLOATS, s.FLOATS)
    + (s.MATRIX,) * 6,
    State,
)
NUMBERS = types.NamedTuple(
    (types.int64, types.int64, types.uint64, types.int64, types.int64)
    + (types.float64,) * 5
    + (types.int64, types.boolean),
    Numbers,
)
ADVANCE = types.void(
    types.FunctionType(s.TARGET),
    types.FunctionType(s.DYNAMICS),
    types.FunctionType(s.DOMAIN),
    STATE,
    NUMBERS,
    s.FLOATS,
    s.FLOATS,
    s.FLOATS,
    s.TABLE,
    types.int64,
    s.FLOATS,
    s.FLOATS,
    s.INTEGERS,
    s.TESSERACT,
    s.CUBE,
)


def advance(
    target, move, look, state, numbers, target_parameters, move_parameters, real, whole,
    first_step, step_factors, temperature_factors, slots, draws, energies,
):  # fmt: skip
    """Run steps ``first_step`` … of one block.

    step_factors, temperature_factors, slots: (steps,); slot is the draw a step fills, or −1.
    draws: (chain, replica, draw, dim); energies: (chain, replica, draw), of the draws, where kept.
    """
    position, gradient, noise, rows = state.position, state.gradient, state.noise, state.rows
    energy, noisy_energy, step_size = rows[ENERGY], rows[NOISY_ENERGY], rows[STEP_SIZE]
    temperature, outside, alive = rows[TEMPERATURE], rows[OUTSIDE], rows[ALIVE]
    lanes = position.shape[1]
    slot = -1
    for k in range(slots.size):
        step = first_step + k
        if k == 0 or step_factors[k] != step_factors[k - 1] or temperature_factors[k] != temperature_factors[k - 1]:
            for lane in range(lanes):
                step_size[lane] = state.base_step_size[lane] * step_factors[k]
                temperature[lane] = state.base_temperature[lane] * temperature_factors[k]

        evaluate(target, look, state, numbers, target_parameters, real, whole)
        if slot >= 0 and numbers.keeps_energies:
            record_energies(energy, state.status, numbers.n_chains, slot, energies)
        if numbers.gradient_noise > 0.0:
            fill_normals(noise, numbers.seed, state.chain, state.replica, step, GRADIENT_NOISE)
            for d in range(position.shape[0]):
                for lane in range(lanes):
                    gradient[d, lane] = fma(numbers.gradient_noise, noise[d, lane], gradient[d, lane])

        tempers = numbers.n_replicas > 1 and step > 0 and step % numbers.swap_every == 0
        if tempers and temperature_factors[k] > 0.0:  # at temperature 0 a swap has no law to keep
            if numbers.energy_noise > 0.0:
                fill_normals(noise[:1], numbers.seed, state.chain, state.replica, step, ENERGY_NOISE)
            for lane in range(lanes):
                noisy_energy[lane] = energy[lane]
                if numbers.energy_noise > 0.0:
                    noisy_energy[lane] = fma(numbers.energy_noise, noise[0, lane], energy[lane])
                alive[lane] = 1.0 if state.status[lane] == 0 and energy[lane] - energy[lane] == 0.0 else 0.0
            swap_replicas(
                position, state.momentum, gradient, noisy_energy, temperature, alive, outside, state.attempted,
                state.accepted, step // numbers.swap_every, step, numbers.seed, state.chain, numbers.n_chains,
                numbers.n_replicas, numbers.correction, numbers.swap_threshold, step >= numbers.burn_in,
            )  # fmt: skip

        for d in range(position.shape[0]):
            for lane in range(lanes):
                state.previous[d, lane] = position[d, lane]
        fill_normals(noise, numbers.seed, state.chain, state.replica, step, MOVE)
        move(position, state.momentum, gradient, noise, step_size, temperature, move_parameters)
        if numbers.max_bounces > 0:
            reflect_lanes(
                look, position, state.previous, state.momentum, state.foot, outside, state.bounces, state.fallbacks,
                real, whole, numbers.max_bounces,
            )  # fmt: skip
        hold_diverged(position, state.previous, energy, alive, state.status, step)

        slot = slots[k]
        if slot >= 0:
            record(position, state.status, numbers.n_chains, slot, draws)
    # The last positions have not been evaluated: a place of non-finite energy must not pass for a draw.
    evaluate(target, look, state, numbers, target_parameters, real, whole)
    hold_diverged(position, position, energy, alive, state.status, first_step + slots.size)
    if slot >= 0 and numbers.keeps_energies:
        record_energies(energy, state.status, numbers.n_chains, slot, energies)


@kernel
def evaluate(target, look, state, numbers, target_parameters, real, whole):
    """Energy and gradient of all lanes, with the penalty where there is one."""
    energy, outside = state.rows[ENERGY], state.rows[OUTSIDE]
    target(state.position, energy, state.gradient, target_parameters, state.scratch)
    if numbers.penalty > 0.0:
        for lane in range(outside.size):
            outside[lane] = 1.0
        look(state.position, state.foot, outside, real, whole)
        add_penalty(state.position, energy, state.gradient, outside, numbers.penalty)


@kernel
def hold_diverged(position, previous, energy, alive, status, step):
    """Put back every lane whose new position or last energy is not finite, for good, and note the step."""
    dim, lanes = position.shape
    for lane in range(lanes):
        alive[lane] = (energy[lane] - energy[lane]) + (position[0, lane] - position[0, lane])
    for d in range(1, dim):
        for lane in range(lanes):
            alive[lane] += position[d, lane] - position[d, lane]
    held = 0
    for lane in range(lanes):
        diverges = alive[lane] != 0.0  # true for nan
        status[lane] = select(diverges and status[lane] == 0, step + 1, status[lane])
        held += int(status[lane] != 0)
    if held > 0:
        for d in range(dim):
            for lane in range(lanes):
                position[d, lane] = select(status[lane] != 0, previous[d, lane], position[d, lane])


@kernel
def record(position, status, n_chains, slot, draws):
    """Copy the kept replicas of every chain into ``draws``; a diverged lane leaves nan."""
    for r in range(draws.shape[1]):
        for c in range(n_chains):
            lane = r * n_chains + c
            for d in range(position.shape[0]):
                draws[c, r, slot, d] = position[d, lane] if status[lane] == 0 else np.nan


@kernel
def record_energies(energy, status, n_chains, slot, energies):
    """Copy the energies of the kept replicas of every chain into ``energies``; a diverged lane leaves nan."""
    for r in range(energies.shape[1]):
        for c in range(n_chains):
            lane = r * n_chains + c
            energies[c, r, slot] = energy[lane] if status[lane] == 0 else np.nan
