"""The loop over steps: a step of all lanes of a block is a few phases, each a block function without branches.

    energy and gradient → tempering → noise → move → boundary → record

A block is a group of chains; the lane of (replica r, chain c) is r · n_chains + c, so a phase serves all replicas
in one vectorised loop. Parts come in as function pointers (``signatures``), so this file compiles once for all.
"""

import math
from typing import Any, NamedTuple

from numba import int64, uint64

from .._compiler.argument_pack import call_part, pack_arguments
from .._compiler.block_rows import (
    ACCEPTED,
    ALIVE,
    CHAIN,
    CONTINUOUS,
    CONTOUR,
    ENERGY,
    EXCHANGE,
    LAMBDA,
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
    STEP_SIZE,
    TEMPERATURE,
    WEIGHT,
)
from .._compiler.decorators import inlined, kernel
from .._compiler.signatures import Lanes
from ..boundaries.rules import Moved, add_penalty, reflect_lanes, reject_lanes
from ..maths.elementary import exp, fma, select
from ..maths.philox import ENERGY_NOISE, GRADIENT_NOISE, LOW, MOVE, PROBE, START, WORD, fill_normals, fill_signs
from ..tempering.continuous import COUNTED, MOMENTUM, THERMOSTAT
from ..tempering.contour_tempering import ZETA, find_multipliers
from .noise_buffer import fill_noise, refill_noise_buffer
from .recording import record, record_row, record_statistics, record_theta, record_trace

# Energy and gradient: the target's, the boundary's penalty and, if needed, the curvature.

PROBE_LENGTH = 1e-3  # of the step size: short compared with a step, long compared with rounding


class Evaluated(NamedTuple):
    """Input and outputs of an evaluation: position (dim, lane), energy (lane,), gradient (dim, lane)."""

    position: Any
    energy: Any
    gradient: Any


@inlined
def evaluate(target, at_target, locate, at_locate, at, state, numbers):
    """Energy and gradient of all lanes, penalty included. at_target, at_look: the packed arguments of both."""
    call_part(target, at_target)
    if numbers.penalty > 0.0:
        outside = state.rows[OUTSIDE]
        for lane in range(outside.size):
            outside[lane] = 1.0
        call_part(locate, at_locate)
        add_penalty(
            at.position, state.mirror_point, at.energy, at.gradient, outside, numbers.penalty, numbers.from_origin
        )  # fmt: skip


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


@inlined
def reuses_trajectory_end(numbers):
    """Whether a step starts from the energy and gradient at the end of the last step, which only its move changed.

    Contour and continuous tempering scale a trajectory's gradients, so a step evaluates them again.
    ``Sampler.gradients_per_step`` counts by the same rule.
    """
    return numbers.leapfrogs > 0 and (numbers.tempering == NO_TEMPERING or numbers.tempering == EXCHANGE)


@inlined
def use_trajectory_end(state, rejects):
    """Energy and gradient at each lane's position: at the end of its trajectory, or at its start if it was reset.

    A lane was reset if its test failed, if it ended outside a boundary that ``rejects``, or if it diverged. The noise
    array holds the gradient at the start.
    """
    rows, status = state.rows, state.status
    energy, potential, moved, outside = rows[ENERGY], rows[POTENTIAL], rows[ACCEPTED], rows[OUTSIDE]
    if rejects:
        for lane in range(moved.size):
            moved[lane] = select(outside[lane] != 0.0, 0.0, moved[lane])
    for lane in range(moved.size):
        moved[lane] = select(status[lane] != 0, 0.0, moved[lane])
        energy[lane] = select(moved[lane] != 0.0, potential[lane], energy[lane])
    for d in range(state.gradient.shape[0]):
        for lane in range(moved.size):
            state.gradient[d, lane] = select(moved[lane] != 0.0, state.gradient[d, lane], state.noise[d, lane])


# Divergence: a lane that is no longer finite is reset to its last position and frozen; its step is recorded.


@inlined
def freeze_diverged(state, previous, couples, step):
    """Freeze lanes whose energy, position or, with continuous tempering, momentum or thermostat of ξ is not finite.

    From then on they stay at the position before the step.
    """
    position, energy, status = state.position, state.rows[ENERGY], state.status
    first, last = position[0], position[position.shape[0] - 1]
    n_frozen = 0  # an upper bound of the lanes to freeze; usually 0, and then nothing is written
    for lane in range(energy.size):
        difference = (energy[lane] - energy[lane]) + (first[lane] - first[lane]) + (last[lane] - last[lane])
        n_frozen += int((difference != 0.0) | (status[lane] != 0))  # true for nan
    for d in range(1, position.shape[0] - 1):
        for lane in range(energy.size):
            n_frozen += int(position[d, lane] - position[d, lane] != 0.0)
    if couples:  # ξ itself always stays within its bounds
        momentum, thermostat = state.continuous.rows[MOMENTUM], state.continuous.rows[THERMOSTAT]
        for lane in range(energy.size):
            n_frozen += int((momentum[lane] - momentum[lane]) + (thermostat[lane] - thermostat[lane]) != 0.0)
    if n_frozen > 0:
        find_non_finite(state, couples)
        restore_previous(position, previous, state.rows[ALIVE], status, step)


@inlined
def find_non_finite(state, couples):
    """alive (lane) ← 0 where all that ``freeze_diverged`` checks is finite, else nan."""
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


def advance(target, move, locate, temper, propose, state, constants, steps):
    """Run the steps of one block. state: ``State``; constants: ``Constants``; steps: ``Steps``."""
    numbers, outputs, slots, trace_slots = constants.numbers, steps.outputs, steps.slots, steps.trace_slots
    step_factors, temperature_factors = steps.step_factors, steps.temperature_factors
    position, previous, gradient, noise, rows = state.position, state.previous, state.gradient, state.noise, state.rows
    step_size, temperature = rows[STEP_SIZE], rows[TEMPERATURE]
    at_target = pack_arguments(target, (position, rows[ENERGY], gradient, constants.target, state.scratch))
    at_locate = pack_arguments(
        locate, (position, state.mirror_point, rows[OUTSIDE], constants.float_table, constants.int_table)
    )
    at_probe = pack_arguments(target, (previous, rows[POTENTIAL], state.curvature, constants.target, state.scratch))
    at_locate_of_probe = pack_arguments(
        locate, (previous, state.mirror_point, rows[OUTSIDE], constants.float_table, constants.int_table)
    )
    current = Evaluated(position, rows[ENERGY], gradient)
    probe = Evaluated(previous, rows[POTENTIAL], state.curvature)
    lane_arrays = Lanes(
        position, state.momentum, gradient, state.curvature, noise, step_size, temperature, rows[LAMBDA], state.scale
    )  # fmt: skip
    at_move = pack_arguments(move, (lane_arrays, state.memory, constants.move))
    at_temper = pack_arguments(temper, (state, numbers, constants.tempering))
    at_propose = pack_arguments(propose, (state, constants, target, locate))
    moved = Moved(
        position, previous, state.momentum, state.mirror_point, rows[OUTSIDE], state.bounces, state.fallbacks
    )  # fmt: skip
    lanes = position.shape[1]
    buffer_size = state.noise_buffer.steps_ahead.size
    place = buffer_size  # forces a refill in the first step
    slot = int64(-1)  # not a literal, for which Numba would compile functions that take it once more
    for k in range(slots.size + 1):
        step, is_last = steps.first + k, k == slots.size
        if not is_last:
            factors_change = (
                k == 0 or step_factors[k] != step_factors[k - 1] or temperature_factors[k] != temperature_factors[k - 1]
            )
            changes = 2 if factors_change else 1 if numbers.tempering == CONTINUOUS else 0
            if factors_change:
                for lane in range(lanes):
                    step_size[lane] = state.base_step_size[lane] * step_factors[k]
                    temperature[lane] = state.base_temperature[lane] * temperature_factors[k]
            if step == 0:
                start_momenta(state, numbers)

        if numbers.draws_batches:
            set_counters(state.scratch, 1.0, step, state.chain, state.replica, numbers.seed)
        if reuses_trajectory_end(numbers) and k > 0:  # the first step of a call has no previous trajectory
            use_trajectory_end(state, numbers.rejects)
        else:
            evaluate(target, at_target, locate, at_locate, current, state, numbers)
        read_energies(state, numbers, constants.tempering, step)
        if slot >= 0:
            record_energies(state, numbers, constants.tempering, slot, outputs)
        if is_last:
            break
        if buffer_size > 0 and place == buffer_size:
            refill_noise_buffer(state, numbers, step, slots.size - k)
            place = 0
        samples = temperature_factors[k] > 0.0  # at temperature 0 there is no law that tempering must leave invariant
        if numbers.needs_curvature:
            fill_signs(noise, numbers.seed, state.chain, state.replica, step, PROBE)
            set_probe(position, previous, noise, state.base_step_size, state.scale)
            if numbers.draws_batches:
                set_counters(state.scratch, 2.0, step, state.chain, state.replica, numbers.seed)
            evaluate(target, at_probe, locate, at_locate_of_probe, probe, state, numbers)
            divide_differences(position, previous, gradient, state.curvature)
        if numbers.gradient_noise > 0.0:
            fill_noise(state, numbers.seed, step, uint64(GRADIENT_NOISE), int64(1), place)
            add_noise(gradient, numbers.gradient_noise, noise)
        if numbers.tempering != NO_TEMPERING:
            call_part(temper, at_temper, step, samples, changes)

        for d in range(position.shape[0]):
            for lane in range(lanes):
                previous[d, lane] = position[d, lane]
        if numbers.draws_noise:
            fill_noise(state, numbers.seed, step, uint64(MOVE), int64(0), place)
        if numbers.leapfrogs > 0:
            call_part(propose, at_propose, step, changes)
        else:
            call_part(move, at_move, changes)
        if numbers.max_bounces > 0:
            reflect_lanes(locate, at_locate, moved, numbers.max_bounces)
        if numbers.rejects:
            reject_lanes(locate, at_locate, moved)
            if numbers.leapfrogs > 0 and step >= numbers.burn_in:
                for lane in range(lanes):  # a lane outside had passed the Metropolis test
                    state.accepted[lane] -= int64(rows[OUTSIDE, lane] != 0.0)
        freeze_diverged(state, previous, numbers.tempering == CONTINUOUS, step)

        place += numbers.n_chains * numbers.n_replicas
        slot = slots[k]
        if slot >= 0:
            record(position, state.status, numbers.n_chains, numbers.n_kept, slot, outputs.draws)
            if numbers.keeps_statistics:
                record_statistics(state, numbers.n_chains, numbers.n_replicas, numbers.n_kept, slot, outputs.statistics)
        if numbers.keeps_trace and trace_slots[k] >= 0:
            record_trace(state, numbers, trace_slots[k], outputs.trace)
            if numbers.tempering == CONTOUR:
                record_theta(state.contour, trace_slots[k], outputs.theta)
    # The last positions have been evaluated too: a position with non-finite energy must not count as a draw.
    freeze_diverged(state, position, numbers.tempering == CONTINUOUS, steps.first + slots.size)


@kernel
def start_momenta(state, numbers):
    """Draw momenta from N(0, T) before the first step."""
    fill_normals(state.momentum, numbers.seed, state.chain, state.replica, uint64(0), uint64(START))
    for d in range(state.momentum.shape[0]):
        for lane in range(state.momentum.shape[1]):
            state.momentum[d, lane] *= math.sqrt(state.rows[TEMPERATURE, lane])


@inlined
def read_energies(state, numbers, tempering_parameters, step):
    """Compute what tempering needs: the noisy energy, and contour's multiplier."""
    rows = state.rows
    energy, noisy_energy = rows[ENERGY], rows[NOISY_ENERGY]
    if numbers.tempering == CONTOUR or numbers.tempering == CONTINUOUS:
        for lane in range(energy.size):
            noisy_energy[lane] = energy[lane]
        if numbers.energy_noise > 0.0:
            fill_normals(state.noise[:1], numbers.seed, state.chain, state.replica, uint64(step), uint64(ENERGY_NOISE))
            add_noise(rows[NOISY_ENERGY : NOISY_ENERGY + 1], numbers.energy_noise, state.noise[:1])
    if numbers.tempering == CONTOUR:
        find_multipliers(noisy_energy, rows[MULTIPLIER], state, numbers, tempering_parameters)


@inlined
def record_energies(state, numbers, tempering_parameters, slot, outputs):
    """Record the last draw's energy and weight, if they are kept."""
    rows = state.rows
    if numbers.keeps_energies:
        record_row(rows[ENERGY], state.status, numbers.n_chains, numbers.n_kept, slot, outputs.energies)
    if numbers.keeps_weights:
        if numbers.tempering == CONTOUR:
            raise_to(rows[WEIGHT], rows[LOG_WEIGHT], tempering_parameters[ZETA])
            record_row(rows[WEIGHT], state.status, numbers.n_chains, numbers.n_kept, slot, outputs.weights)
        else:
            counts = state.continuous.rows[COUNTED]
            record_row(counts, state.status, numbers.n_chains, numbers.n_kept, slot, outputs.weights)


@inlined
def add_noise(values, deviation, noise):
    """values (row, lane) ← values + deviation · noise."""
    for d in range(values.shape[0]):
        for lane in range(values.shape[1]):
            values[d, lane] = fma(deviation, noise[d, lane], values[d, lane])


@inlined
def raise_to(weight, log_weight, zeta):
    """weight (lane) ← exp(ζ log_weight)."""
    for lane in range(weight.size):
        weight[lane] = exp(zeta * log_weight[lane])
