"""Phases of a step that not every run needs: each is compiled when one does, and called by its address.

All have the arguments of ``no_phase`` or ``no_calling_phase``; ``settings.parts_of`` chooses those of a run.
"""

import math
from typing import Any, NamedTuple

from numba import int64, uint64

from .._compiler.argument_pack import call_part
from .._compiler.block_rows import (
    ACCEPTED,
    ALIVE,
    CHAIN,
    CONTINUOUS,
    CONTOUR,
    ENERGY,
    EXCHANGE,
    LOG_WEIGHT,
    MODE,
    MULTIPLIER,
    NO_TEMPERING,
    NOISY_ENERGY,
    OUTSIDE,
    POTENTIAL,
    REPLICA,
    SEED_HIGH,
    SEED_LOW,
    STEP,
    TEMPERATURE,
    WEIGHT,
)
from .._compiler.decorators import inlined, kernel
from ..boundaries.rules import Moved, add_penalty, reflect_lanes, reject_lanes
from ..maths.elementary import exp, fma, select
from ..maths.philox import ENERGY_NOISE, GRADIENT_NOISE, LOW, MOVE, PROBE, START, WORD, fill_normals, fill_signs
from ..tempering.continuous import COUNTED, MOMENTUM, THERMOSTAT
from ..tempering.contour_tempering import ZETA, find_multipliers
from .noise_buffer import draw_noise, refill_noise_buffer, take_noise
from .recording import record_row, record_statistics, record_theta, record_trace


def no_phase(state, constants, steps, step, number):
    """Stands for a phase that a run does not need.

    state: ``State`` of a block. constants: ``Constants``. steps: ``Steps``. number: ``slot`` of a draw or trace that is
    recorded, ``place`` in the buffer of noise, steps ``left`` of a call; others do not read it.
    """
    return


def no_calling_phase(state, constants, steps, callees, step, number):
    """Stands for a phase that calls target or domain.

    callees: ``Callees``, which other phases do without, so that fused engines of several targets share what is compiled
    of them. number: also ``changes``, as a move has them.
    """
    return


# Energy and gradient: the target's, and the boundary's penalty.


class Evaluated(NamedTuple):
    """Input and outputs of an evaluation: position (dim, lane), energy (lane,), gradient (dim, lane)."""

    position: Any
    energy: Any
    gradient: Any


@inlined
def evaluate(target, at_target, locate, at_locate, at, state, numbers):
    """Energy and gradient of all lanes, penalty included. at_target, at_locate: the packed arguments of both."""
    call_part(target, at_target)
    if numbers.penalty > 0.0:
        penalise_at(at, locate, at_locate, state, numbers)


@inlined
def penalise_at(at, locate, at_locate, state, numbers):
    """Add the boundary's penalty to energy and gradient of all lanes."""
    outside = state.rows[OUTSIDE]
    for lane in range(outside.size):
        outside[lane] = 1.0
    call_part(locate, at_locate)
    add_penalty(at.position, state.mirror_point, at.energy, at.gradient, outside, numbers.penalty, numbers.from_origin)


@kernel
def set_counters(scratch, mode, step, chain, replica, seed):
    """Set mode and random-number counters for a target that draws minibatches."""
    for lane in range(chain.size):
        scratch[MODE, lane] = mode
        scratch[STEP, lane] = float(step)
        scratch[CHAIN, lane] = float(chain[lane])
        scratch[REPLICA, lane] = float(replica[lane])
        scratch[SEED_HIGH, lane] = float(seed >> WORD)
        scratch[SEED_LOW, lane] = float(seed & LOW)


@inlined
def reuses_trajectory_end(numbers):
    """Whether a step starts from the energy and gradient at the end of the last step, which only its move changed.

    Contour and continuous tempering scale a trajectory's gradients, so a step evaluates them again.
    ``Sampler.gradients_per_step`` counts by the same rule.
    """
    return numbers.leapfrogs > 0 and (numbers.tempering == NO_TEMPERING or numbers.tempering == EXCHANGE)


@inlined
def add_noise(values, deviation, noise):
    """values (row, lane) ← values + deviation · noise."""
    for d in range(values.shape[0]):
        for lane in range(values.shape[1]):
            values[d, lane] = fma(deviation, noise[d, lane], values[d, lane])


# Before a step: its energies and gradients, and what temperings read.


def penalise(state, constants, steps, callees, step, number):
    """Add the boundary's penalty to energy and gradient."""
    at = Evaluated(state.position, state.rows[ENERGY], state.gradient)
    penalise_at(at, callees.locate, callees.at_locate, state, constants.numbers)


def provide_noise(state, constants, steps, step, left):
    """Fill the buffer of noise from ``step`` on; in a block without a buffer, draw the noise of this step's move.

    left: steps of this call, which only a buffer needs.
    """
    if state.noise_buffer.steps_ahead.size > 0:
        refill_noise_buffer(state, constants.numbers, step, left)
    else:
        draw_noise(state, constants.numbers.seed, step, uint64(MOVE))


def add_gradient_noise(state, constants, steps, step, place):
    """Add noise to the gradient; ``place``: where that of this step begins in the buffer, if there is one."""
    numbers = constants.numbers
    if state.noise_buffer.steps_ahead.size > 0:
        take_noise(state, int64(1), place)
    else:
        draw_noise(state, numbers.seed, step, uint64(GRADIENT_NOISE))
    add_noise(state.gradient, numbers.gradient_noise, state.noise)


def start_momenta(state, constants, steps, step, number):
    """Draw momenta from N(0, T) before the first step."""
    seed = constants.numbers.seed
    fill_normals(state.momentum, seed, state.chain, state.replica, uint64(0), uint64(START))
    for d in range(state.momentum.shape[0]):
        for lane in range(state.momentum.shape[1]):
            state.momentum[d, lane] *= math.sqrt(state.rows[TEMPERATURE, lane])


def read_energies(state, constants, steps, step, slot):
    """Compute what tempering needs: the noisy energy, and contour's multiplier; record the weight of a draw.

    slot: of the draw before this step; negative where there is none.
    """
    rows, numbers = state.rows, constants.numbers
    energy, noisy_energy = rows[ENERGY], rows[NOISY_ENERGY]
    for lane in range(energy.size):
        noisy_energy[lane] = energy[lane]
    if numbers.energy_noise > 0.0:
        fill_normals(state.noise[:1], numbers.seed, state.chain, state.replica, uint64(step), uint64(ENERGY_NOISE))
        add_noise(rows[NOISY_ENERGY : NOISY_ENERGY + 1], numbers.energy_noise, state.noise[:1])
    if numbers.tempering == CONTOUR:
        find_multipliers(noisy_energy, rows[MULTIPLIER], state, numbers, constants.tempering)
    if numbers.keeps_weights and slot >= 0:
        record_weights(state, numbers, constants.tempering, slot, steps.outputs.weights)


@inlined
def record_weights(state, numbers, tempering_parameters, slot, weights):
    """Record the importance weights of the draws at ``slot``."""
    rows = state.rows
    if numbers.tempering == CONTOUR:
        raise_to(rows[WEIGHT], rows[LOG_WEIGHT], tempering_parameters[ZETA])
        record_row(rows[WEIGHT], state.status, numbers.n_chains, numbers.n_kept, slot, weights)
    else:
        counts = state.continuous.rows[COUNTED]
        record_row(counts, state.status, numbers.n_chains, numbers.n_kept, slot, weights)


@inlined
def raise_to(weight, log_weight, zeta):
    """weight (lane) ← exp(ζ log_weight)."""
    for lane in range(weight.size):
        weight[lane] = exp(zeta * log_weight[lane])


# The curvature, for dynamics that use it.

PROBE_LENGTH = 1e-3  # of the step size: short compared with a step, long compared with rounding


def estimate_curvature(state, constants, steps, callees, step, number):
    """curvature ← an estimate of the diagonal of the Hessian, by gradients at two points."""
    numbers, probe = constants.numbers, state.previous
    fill_signs(state.noise, numbers.seed, state.chain, state.replica, step, PROBE)
    set_probe(state.position, probe, state.noise, state.base_step_size, state.scale)
    if numbers.draws_batches:
        set_counters(state.scratch, 2.0, step, state.chain, state.replica, numbers.seed)
    at = Evaluated(probe, state.rows[POTENTIAL], state.curvature)
    evaluate(callees.target, callees.at_probe, callees.locate, callees.at_locate_of_probe, at, state, numbers)
    divide_differences(state.position, probe, state.gradient, state.curvature)


@kernel
def set_probe(position, probe, signs, base_step_size, scale):
    """probe ← position ± s δ in every coordinate of scale s, with δ much shorter than the step size."""
    for d in range(position.shape[0]):
        s = scale[d]
        for lane in range(base_step_size.size):
            length = s * select(base_step_size[lane] > 1e-9, PROBE_LENGTH * base_step_size[lane], 1e-12)
            probe[d, lane] = position[d, lane] + select(signs[d, lane] > 0.0, length, -length)


@kernel
def divide_differences(position, probe, gradient, curvature):
    """curvature ← (curvature − gradient) / (probe − position), where curvature holds the gradient at ``probe``.

    For independent signs its mean is the diagonal of the Hessian; for a diagonal Hessian it is exactly that.
    Source: Hutchinson (1990); Bekas, Kokiopoulou & Saad (2007).
    """
    for d in range(position.shape[0]):
        for lane in range(position.shape[1]):
            curvature[d, lane] = (curvature[d, lane] - gradient[d, lane]) / (probe[d, lane] - position[d, lane])


# After the move: walls, the end of a trajectory, and what is recorded besides draws.


def confine(state, constants, steps, callees, step, slot):
    """Reflect lanes that are outside, or take their moves back."""
    confine_lanes(state, constants.numbers, callees, step)


def record_draw_statistics(state, constants, steps, callees, step, slot):
    """Record walker, swaps and reflections of the draw at ``slot``; none where that is negative."""
    record_at(state, constants.numbers, slot, steps.outputs.statistics)


def confine_and_record(state, constants, steps, callees, step, slot):
    """Both in one call."""
    confine_lanes(state, constants.numbers, callees, step)
    record_at(state, constants.numbers, slot, steps.outputs.statistics)


@inlined
def record_at(state, numbers, slot, statistics):
    """Record walker, swaps and reflections of the draw at ``slot``; none where that is negative."""
    if slot >= 0:
        record_statistics(state, numbers.n_chains, numbers.n_replicas, numbers.n_kept, slot, statistics)


@inlined
def confine_lanes(state, numbers, callees, step):
    """Reflect lanes that are outside, or take their moves back."""
    rows = state.rows
    moved = Moved(
        state.position, state.previous, state.momentum, state.mirror_point, rows[OUTSIDE], state.bounces,
        state.fallbacks,
    )  # fmt: skip
    if numbers.max_bounces > 0:
        reflect_lanes(callees.locate, callees.at_locate, moved, numbers.max_bounces)
    if numbers.rejects:
        reject_lanes(callees.locate, callees.at_locate, moved)
        if numbers.leapfrogs > 0 and step >= numbers.burn_in:
            for lane in range(state.status.size):  # a lane outside had passed the Metropolis test
                state.accepted[lane] -= int64(rows[OUTSIDE, lane] != 0.0)


def use_trajectory_end(state, constants, steps, step, number):
    """Energy and gradient at each lane's position: at the end of its trajectory, or at its start if it was reset.

    A lane was reset if its test failed, if it ended outside a boundary that rejects, or if it diverged. The noise
    array holds the gradient at the start.
    """
    rows, status = state.rows, state.status
    energy, potential, moved, outside = rows[ENERGY], rows[POTENTIAL], rows[ACCEPTED], rows[OUTSIDE]
    if constants.numbers.rejects:
        for lane in range(moved.size):
            moved[lane] = select(outside[lane] != 0.0, 0.0, moved[lane])
    for lane in range(moved.size):
        moved[lane] = select(status[lane] != 0, 0.0, moved[lane])
        energy[lane] = select(moved[lane] != 0.0, potential[lane], energy[lane])
    for d in range(state.gradient.shape[0]):
        for lane in range(moved.size):
            state.gradient[d, lane] = select(moved[lane] != 0.0, state.gradient[d, lane], state.noise[d, lane])


def record_traces(state, constants, steps, step, slot):
    """Record the trace at ``slot``, and contour's θ."""
    record_trace(state, constants.numbers, slot, steps.outputs.trace)
    if constants.numbers.tempering == CONTOUR:
        record_theta(state.contour, slot, steps.outputs.theta)


# Divergence: a lane that is no longer finite is reset to its last position and frozen; its step is recorded.


def freeze_diverged(state, constants, steps, step, number):
    """Freeze the lanes that ``loop.has_diverged`` finds: from now on they stay at the position before the step."""
    find_non_finite(state, constants.numbers.tempering == CONTINUOUS)
    restore_previous(state.position, state.previous, state.rows[ALIVE], state.status, step)


@inlined
def find_non_finite(state, couples):
    """alive (lane) ← 0 where all that ``loop.has_diverged`` checks is finite, else nan."""
    position, alive, energy = state.position, state.rows[ALIVE], state.rows[ENERGY]
    for lane in range(alive.size):
        alive[lane] = energy[lane] - energy[lane]
    for d in range(position.shape[0]):
        for lane in range(alive.size):
            alive[lane] += position[d, lane] - position[d, lane]
    if couples:
        momentum, thermostat = state.continuous.rows[MOMENTUM], state.continuous.rows[THERMOSTAT]
        for lane in range(alive.size):
            alive[lane] += (momentum[lane] - momentum[lane]) + (thermostat[lane] - thermostat[lane])


@kernel
def restore_previous(position, previous, alive, status, step):
    """Reset the position of every lane that has diverged, now or before, and record the step at which it first did."""
    for lane in range(alive.size):
        diverges = alive[lane] != 0.0  # true for nan
        status[lane] = select(diverges and status[lane] == 0, step + 1, status[lane])
    for d in range(position.shape[0]):
        for lane in range(alive.size):
            position[d, lane] = select(status[lane] != 0, previous[d, lane], position[d, lane])
