"""The loop over steps: a step of all lanes of a block is a few phases, each a block function without branches.

    energy and gradient → tempering → noise → move → boundary → record

A block is a group of chains; the lane of (replica r, chain c) is r · n_chains + c, so a phase serves all replicas
in one vectorised loop. Parts come in by their addresses (``as_parts``), so this file compiles once for all, and
phases that not every run needs (``phases``) are compiled when one does.
"""

from numba import int64

from .._compiler.argument_pack import call_part, pack_arguments, without_last
from .._compiler.block_rows import (
    CONTINUOUS,
    CONTOUR,
    ENERGY,
    LAMBDA,
    NO_TEMPERING,
    OUTSIDE,
    POTENTIAL,
    STEP_SIZE,
    TEMPERATURE,
)
from .._compiler.decorators import inlined
from .._compiler.signatures import Lanes
from ..tempering.continuous import MOMENTUM, THERMOSTAT
from .noise_buffer import take_noise
from .phases import reuses_trajectory_end, set_counters
from .recording import record, record_row
from .state import Callees, as_parts


@inlined
def has_diverged(state, couples):
    """Whether the energy, position or, with continuous tempering, momentum or thermostat of ξ of a lane is not finite.

    True also where a lane was frozen before.
    """
    position, energy, status = state.position, state.rows[ENERGY], state.status
    first, last = position[0], position[position.shape[0] - 1]
    n_frozen = 0  # an upper bound of the lanes to freeze; usually 0, and then ``freeze_diverged`` is not called
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
    return n_frozen > 0


def advance(called, state, constants, steps):
    """Run the steps of one block. called: what ``as_parts`` reads; the rest are the named tuples of those names."""
    parts = as_parts(called)
    target = parts.target  # one by one: Numba warns of tuples that begin with a function
    locate = parts.locate
    numbers, outputs, slots, trace_slots = constants.numbers, steps.outputs, steps.slots, steps.trace_slots
    step_factors, temperature_factors = steps.step_factors, steps.temperature_factors
    position, previous, gradient, noise, rows = state.position, state.previous, state.gradient, state.noise, state.rows
    step_size, temperature = rows[STEP_SIZE], rows[TEMPERATURE]
    at_target = pack_arguments(target, (position, rows[ENERGY], gradient, constants.target, state.scratch))
    at_end = pack_arguments(target, (position, rows[POTENTIAL], gradient, constants.target, state.scratch))
    at_probe = pack_arguments(target, (previous, rows[POTENTIAL], state.curvature, constants.target, state.scratch))
    at_locate = pack_arguments(
        locate, (position, state.mirror_point, rows[OUTSIDE], constants.float_table, constants.int_table)
    )
    at_locate_of_probe = pack_arguments(
        locate, (previous, state.mirror_point, rows[OUTSIDE], constants.float_table, constants.int_table)
    )
    callees = Callees(at_end, at_probe, at_locate, at_locate_of_probe, target, locate)
    # Phases take the same arguments, so what is packed for one is packed for all.
    at_calling_phase = pack_arguments(parts.propose, (state, constants, steps, callees))
    at_phase = without_last(at_calling_phase)
    lane_arrays = Lanes(
        position, state.momentum, gradient, state.curvature, noise, step_size, temperature, rows[LAMBDA], state.scale
    )  # fmt: skip
    at_move = pack_arguments(parts.move, (lane_arrays, state.memory, constants.move))
    at_temper = pack_arguments(parts.temper, (state, numbers, constants.tempering))
    lanes = position.shape[1]
    buffer_size = state.noise_buffer.steps_ahead.size
    place = buffer_size  # forces a refill in the first step
    slot = int64(-1)  # not a literal, for which Numba would compile functions that take it once more
    for k in range(slots.size + 1):
        step, is_last = steps.first + k, k == slots.size
        changes = 0
        if not is_last:
            factors_change = (
                k == 0 or step_factors[k] != step_factors[k - 1] or temperature_factors[k] != temperature_factors[k - 1]
            )
            changes = 2 if factors_change else 1 if numbers.tempering == CONTINUOUS else 0
            if factors_change:
                for lane in range(lanes):
                    step_size[lane] = state.base_step_size[lane] * step_factors[k]
                    temperature[lane] = state.base_temperature[lane] * temperature_factors[k]
            if step == 0 and state.momentum.shape[0] > 0:
                call_part(parts.start_momenta, at_phase, step, changes)

        if numbers.draws_batches:
            set_counters(state.scratch, 1.0, step, state.chain, state.replica, numbers.seed)
        if reuses_trajectory_end(numbers) and k > 0:  # the first step of a call has no previous trajectory
            call_part(parts.use_trajectory_end, at_phase, step, changes)
        else:
            call_part(target, at_target)
            if numbers.penalty > 0.0:
                call_part(parts.penalise, at_calling_phase, step, changes)
        if numbers.tempering == CONTOUR or numbers.tempering == CONTINUOUS:
            call_part(parts.read_energies, at_phase, step, slot)
        if slot >= 0 and numbers.keeps_energies:
            record_row(rows[ENERGY], state.status, numbers.n_chains, numbers.n_kept, slot, outputs.energies)
        if is_last:
            break
        if buffer_size > 0 and place == buffer_size:
            call_part(parts.provide_noise, at_phase, step, slots.size - k)
            place = 0
        samples = temperature_factors[k] > 0.0  # at temperature 0 there is no law that tempering must leave invariant
        if numbers.needs_curvature:
            call_part(parts.estimate_curvature, at_calling_phase, step, changes)
        if numbers.gradient_noise > 0.0:
            call_part(parts.add_gradient_noise, at_phase, step, place)
        if numbers.tempering != NO_TEMPERING:
            call_part(parts.temper, at_temper, step, samples, changes)

        for d in range(position.shape[0]):
            for lane in range(lanes):
                previous[d, lane] = position[d, lane]
        if numbers.draws_noise:
            if buffer_size > 0:
                take_noise(state, int64(0), place)
            else:
                call_part(parts.provide_noise, at_phase, step, 0)
        if numbers.leapfrogs > 0:
            call_part(parts.propose, at_calling_phase, step, changes)
        else:
            call_part(parts.move, at_move, changes)
        slot = slots[k]
        if numbers.max_bounces > 0 or numbers.rejects or numbers.keeps_statistics:
            call_part(parts.after_move, at_calling_phase, step, slot)
        if has_diverged(state, numbers.tempering == CONTINUOUS):
            call_part(parts.freeze_diverged, at_phase, step, 0)

        place += numbers.n_chains * numbers.n_replicas
        if slot >= 0:
            record(position, state.status, numbers.n_chains, numbers.n_kept, slot, outputs.draws)
        if numbers.keeps_trace and trace_slots[k] >= 0:
            call_part(parts.record_traces, at_phase, step, trace_slots[k])
    # The last positions have been evaluated too: a position with non-finite energy must not count as a draw.
    if has_diverged(state, numbers.tempering == CONTINUOUS):
        for d in range(position.shape[0]):
            for lane in range(lanes):
                previous[d, lane] = position[d, lane]
        call_part(parts.freeze_diverged, at_phase, steps.first + slots.size, 0)
