"""The kernel of a run: a thread loads its chain's state from device memory, runs the engine, and stores the state.

The loop is ``loop.advance``, as on the CPU, for a block of one chain, whose lanes are its replicas. Small arrays are
local, of fixed size, and the compiler keeps as many as possible in registers; large ones (θ, biases, the target's
scratch, draws) stay in device memory. There the chain is always the last index, so that neighbouring threads access
neighbouring addresses.
"""

import functools
import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import types

from ..._compiler.block_rows import ENGINE_ROWS, LAMBDA, MASSES
from ..._compiler.decorators import inlined
from ..._compiler.disk_cache import cache_stamp
from ..._compiler.function_digest import stored_name
from ..._compiler.numba_private import from_dtype
from ...boundaries.convex import everywhere_inside
from ...tempering.continuous import KICKS, renew_momenta
from ...tempering.contour_tempering import ContourState, find_multipliers, levels_of
from ...tempering.exchange import ExchangeState
from ...tempering.interface import scale_gradients
from ..loop import advance, has_diverged
from ..metropolis_step import follow_trajectory, temper_potential
from ..noise_buffer import NoiseBuffer, draw_noise, refill_noise_buffer, take_noise
from ..phases import find_non_finite
from ..recording import record_statistics, record_trace
from ..settings import compile_time_constants
from ..state import VISITED_RANGE, Constants, ContinuousState, Numbers, Outputs, Parts, State, Steps
from .compiling import compile_kernel, device_function, interpreted
from .device import SIMULATED, cuda
from .float32 import twin

# A chain's state on a device: its sizes, and the places of its fields in its columns of floats and integers.


class Shape(NamedTuple):
    """The sizes of one chain's state, which the kernel is compiled for."""

    dim: int
    replicas: int
    momenta: int  # rows: dim, or 0 without a momentum
    memory: int  # rows
    curvature: int  # rows: dim, or 0
    pairs: int
    walkers: int  # replicas, or 0 without replica exchange
    bins: int  # of contour
    coupling: int  # rows of continuous tempering
    coupling_bins: int
    scratch: int  # rows
    distances: int
    scratch_is_local: bool
    scale_is_local: bool  # one number for every coordinate; else a matrix


class Column(NamedTuple):
    """First index and size of a field in a chain's column."""

    first: int
    size: int


def float_columns(shape: Shape) -> dict[str, Column]:
    """Columns of a chain's floats, by the names of ``state.STORED``, and the two that the sampler sets."""
    replicas = shape.replicas
    return columns(
        {
            "position": shape.dim * replicas,
            "momentum": shape.momenta * replicas,
            "memory": shape.memory * replicas,
            "exchange.correction": shape.pairs,
            "exchange.rests": shape.pairs,
            "contour.scale": 1 if shape.bins else 0,
            "continuous.rows": shape.coupling * replicas,
            "scratch": shape.scratch * replicas if shape.scratch_is_local else 0,
            "base_step_size": replicas,
            "base_temperature": replicas,
        }
    )


def integer_columns(shape: Shape) -> dict[str, Column]:
    """Columns of a chain's integers, by the names of ``state.STORED``, its status, and contour's range."""
    replicas, walkers = shape.replicas, shape.walkers
    return columns(
        {
            "status": replicas,
            "bounces": replicas,
            "fallbacks": replicas,
            "accepted": replicas,
            "exchange.walker": walkers,
            "exchange.last_end": walkers,
            "exchange.attempted": shape.pairs,
            "exchange.accepted": shape.pairs,
            "exchange.round_trips": 1 if shape.walkers else 0,
            "contour.outside": 3 if shape.bins else 0,
            "contour.mark": 1 if shape.bins else 0,
            VISITED_RANGE: 2 if shape.bins else 0,
        }
    )


def columns(sizes: dict[str, int]) -> dict[str, Column]:
    """Columns of these sizes, one after the other."""
    firsts = np.cumsum([0, *sizes.values()])
    return {name: Column(int(first), size) for (name, size), first in zip(sizes.items(), firsts, strict=False)}


@inlined
def load_matrix(local, source, first, thread):
    """Load a matrix from a chain's column."""
    for i in range(local.shape[0]):
        for j in range(local.shape[1]):
            local[i, j] = source[first + i * local.shape[1] + j, thread]


@inlined
def load_row(local, source, first, thread):
    """Load a row from a chain's column."""
    for j in range(local.shape[0]):
        local[j] = source[first + j, thread]


@inlined
def store_matrix(local, target, first, thread):
    """Store a matrix in a chain's column."""
    for i in range(local.shape[0]):
        for j in range(local.shape[1]):
            target[first + i * local.shape[1] + j, thread] = local[i, j]


@inlined
def store_row(local, target, first, thread):
    """Store a row in a chain's column."""
    for j in range(local.shape[0]):
        target[first + j, thread] = local[j]


@inlined
def first_of(a, b):
    """The first of two arguments; a kernel is compiled with ``first_of`` or ``second_of``."""
    return a


@inlined
def second_of(a, b):
    """The second of two."""
    return b


# Functions that take the whole state, which the simulator would compile again for every new type of state.
INTERPRETED = frozenset(map(stored_name, (
    has_diverged, find_non_finite, record_statistics, record_trace, find_multipliers, levels_of, scale_gradients,
    renew_momenta, temper_potential, refill_noise_buffer, draw_noise, take_noise, follow_trajectory,
)))  # fmt: skip


class Scalars(NamedTuple):
    """Numbers of a run that are arguments of its kernel."""

    seed: Any
    burn_in: Any
    gradient_noise: Any
    energy_noise: Any
    penalty: Any
    max_bounces: Any
    leapfrogs: Any


class Tables(NamedTuple):
    """Numbers that the parts read, each (any,)."""

    target: Any
    move: Any
    tempering: Any
    float_table: Any  # of the domain
    int_table: Any
    scale: Any  # of each coordinate


class Plan(NamedTuple):
    """The steps of one launch, as ``state.Steps`` has them."""

    first: Any
    step_factors: Any
    temperature_factors: Any
    slots: Any
    trace_slots: Any


class Stored(NamedTuple):
    """The state of all chains on the device; the chain is the last index."""

    floats: Any
    integers: Any
    theta_tables: Any
    biases: Any
    scratches: Any
    distances: Any


class Written(NamedTuple):
    """What a launch writes; the chain is the last index."""

    draws: Any
    energies: Any
    weights: Any
    statistics: Any
    traces: Any
    thetas: Any


class Kinds(NamedTuple):
    """Number types that a kernel computes with and writes; what needs more than 24 bits is always float64."""

    real: Any = np.float64
    target: Any = np.float64  # its parameters and scratch
    draws: Any = np.float64  # and of their energies and weights


@functools.cache
def cached_device_function(part: Callable[..., None]) -> Any:
    """``device_function``, made once for each part."""
    return device_function(part)


def part_for(real: Any, part: Callable[..., None]) -> Any:
    """A part as kernels can call it, computing in ``real``. Raises PrecisionError where it cannot."""
    return cached_device_function(part) if real is np.float64 else twin(part)


def state_part(real: Any, part: Callable[..., None]) -> Any:
    """A part that takes the whole state, as a kernel can call it."""
    if not SIMULATED:
        return part_for(real, part)
    plain = interpreted(part_for(real, part), INTERPRETED)

    def without_warnings(*arguments: Any) -> None:
        with np.errstate(all="ignore"):
            plain(*arguments)

    return without_warnings


def chain_kernel(parts: Parts, shape: Shape, constants: Numbers, kinds: Kinds = Kinds()) -> Callable[..., None]:
    """The kernel of a run, uncompiled. constants: numbers it is compiled for.

    Of these, seed, burn_in and every float and count that is not 0 are read from the arguments instead, so that other
    numbers need no compilation; 0 means that the run lacks a feature, whose code is left out.
    """
    real, working = kinds.real, kinds.target
    target, move, locate = (
        part_for(working, parts.target),
        part_for(real, parts.move),
        cached_device_function(parts.locate),
    )
    run = state_part(real, advance)
    on_device = Parts(
        parts.tempering, target, move, locate, *(state_part(real, part) for part in (parts.temper, *parts.phases))
    )
    # One by one: Numba finds the device's version of a function that is a name, not of one in a tuple.
    temper, propose, penalise = on_device.temper, on_device.propose, on_device.penalise
    provide_noise, add_gradient_noise = on_device.provide_noise, on_device.add_gradient_noise
    start_momenta, use_trajectory_end = on_device.start_momenta, on_device.use_trajectory_end
    read_energies, estimate_curvature = on_device.read_energies, on_device.estimate_curvature
    after_move, record_traces = on_device.after_move, on_device.record_traces
    freeze_diverged = on_device.freeze_diverged
    dim, replicas, momenta, memory_rows = shape.dim, shape.replicas, shape.momenta, shape.memory
    curvature_rows, pairs, walkers, bins = shape.curvature, shape.pairs, shape.walkers, shape.bins
    coupled, coupling_bins, distances_size = shape.coupling, shape.coupling_bins, shape.distances
    scratch_rows = shape.scratch
    local_scratch = scratch_rows if shape.scratch_is_local else 0
    choose = first_of if shape.scratch_is_local else second_of
    choose_scale = first_of if shape.scale_is_local else second_of
    # Local arrays need at least one element; the engine gets a slice of the right size.
    momenta_or_1, memory_or_1, curvature_or_1 = max(1, momenta), max(1, memory_rows), max(1, curvature_rows)
    pairs_or_1, coupled_or_1, scratch_or_1 = max(1, pairs), max(1, coupled), max(1, local_scratch)
    marks = 1 if bins else 0
    floats_at, integers_at = float_columns(shape), integer_columns(shape)
    (
        at_position, at_momentum, at_memory, at_correction, at_rests, at_scale, at_coupling, at_scratch, at_step_size,
        at_temperature,
    ) = (column.first for column in floats_at.values())  # fmt: skip
    (
        at_status, at_bounces, at_fallbacks, at_moves, at_walker, at_end, at_attempted, at_accepted, at_trips,
        at_outside, at_mark, at_range,
    ) = (column.first for column in integers_at.values())  # fmt: skip
    (
        _, _, _, _, tempering, gradient_noise, energy_noise, penalty, max_bounces, from_origin, rejects, draws_batches,
        draws_noise, needs_curvature, n_thermostats, leapfrogs, random_length, is_mala, keeps_energies, keeps_weights,
        keeps_statistics, keeps_trace, n_kept, n_traced_memory,
    ) = constants  # fmt: skip
    has_gradient_noise, has_energy_noise, has_penalty = gradient_noise != 0.0, energy_noise != 0.0, penalty != 0.0
    has_bounces, has_leapfrogs = max_bounces != 0, leapfrogs != 0
    masses_rows = MASSES if bins else KICKS if coupled else 1
    engine_rows, lambda_row, zero = ENGINE_ROWS, LAMBDA, real(0.0)
    # float64 as the domain's tables, or rounding could cross edges
    mirror_type = real if parts.locate is everywhere_inside else np.float64

    def kernel(scalars, tables, plan, stored, written, diverged):
        thread = cuda.grid(1)
        floats, integers, biases, scratches = stored.floats, stored.integers, stored.biases, stored.scratches
        if thread >= floats.shape[1]:
            return
        position = cuda.local.array((dim, replicas), real)
        momentum = cuda.local.array((momenta_or_1, replicas), real)[:momenta]
        memory = cuda.local.array((memory_or_1, replicas), real)[:memory_rows]
        status = cuda.local.array(replicas, np.int64)
        bounces = cuda.local.array(replicas, np.int64)
        fallbacks = cuda.local.array(replicas, np.int64)
        moves = cuda.local.array(replicas, np.int64)
        chain = cuda.local.array(replicas, np.uint64)
        replica = cuda.local.array(replicas, np.uint64)
        attempted = cuda.local.array((pairs_or_1, 1), np.int64)[:pairs]
        accepted = cuda.local.array((pairs_or_1, 1), np.int64)[:pairs]
        correction = cuda.local.array((pairs_or_1, 1), real)[:pairs]
        swapped_in_window = cuda.local.array((pairs_or_1, 1), real)[:pairs]
        walker = cuda.local.array(replicas, np.int64)[:walkers]
        last_end = cuda.local.array(replicas, np.int64)[:walkers]
        round_trips = cuda.local.array(1, np.int64)[: min(1, walkers)]
        scale = cuda.local.array(1, np.float64)[:marks]
        outside = cuda.local.array((3, 1), np.int64)[: 3 * marks]
        next_mark = cuda.local.array(1, np.int64)[:marks]
        visited_range = cuda.local.array((2, 1), np.int64)[: 2 * marks]
        coupling = cuda.local.array((coupled_or_1, replicas), np.float64)[:coupled]
        own_scratch = cuda.local.array((scratch_or_1, replicas), working)[:local_scratch]
        previous = cuda.local.array((dim, replicas), real)
        gradient = cuda.local.array((dim, replicas), real)
        curvature = cuda.local.array((curvature_or_1, replicas), real)[:curvature_rows]
        noise = cuda.local.array((dim, replicas), real)
        mirror_point = cuda.local.array((dim, replicas), mirror_type)
        coordinate_scale = cuda.local.array(dim, real)
        rows = cuda.local.array((engine_rows, replicas), real)
        masses = cuda.local.array((masses_rows, replicas), np.float64)
        for r in range(replicas):
            chain[r] = thread
            replica[r] = r
            for row in range(engine_rows):
                rows[row, r] = 0.0
            rows[lambda_row, r] = 1.0
        load_matrix(position, floats, at_position, thread)
        load_matrix(momentum, floats, at_momentum, thread)
        load_matrix(memory, floats, at_memory, thread)
        load_matrix(correction, floats, at_correction, thread)
        load_matrix(swapped_in_window, floats, at_rests, thread)
        load_row(scale, floats, at_scale, thread)
        load_matrix(coupling, floats, at_coupling, thread)
        load_matrix(own_scratch, floats, at_scratch, thread)
        # Read only when the schedule changes, so they stay in device memory.
        step_size = floats[at_step_size : at_step_size + replicas, thread]
        temperature = floats[at_temperature : at_temperature + replicas, thread]
        for d in range(dim):
            coordinate_scale[d] = tables.scale[d]
        load_row(status, integers, at_status, thread)
        load_row(bounces, integers, at_bounces, thread)
        load_row(fallbacks, integers, at_fallbacks, thread)
        load_row(moves, integers, at_moves, thread)
        load_row(walker, integers, at_walker, thread)
        load_row(last_end, integers, at_end, thread)
        load_matrix(attempted, integers, at_attempted, thread)
        load_matrix(accepted, integers, at_accepted, thread)
        load_row(round_trips, integers, at_trips, thread)
        load_matrix(outside, integers, at_outside, thread)
        load_row(next_mark, integers, at_mark, thread)
        load_matrix(visited_range, integers, at_range, thread)
        own = slice(thread, thread + 1)
        theta_table = stored.theta_tables.T[own]
        bias = biases[:, :, min(thread, biases.shape[2] - 1)]  # arrays that a run does not use have one chain
        global_scratch = scratches[:scratch_rows, :, min(thread, scratches.shape[2] - 1)]
        pair_distances = stored.distances[:distances_size, min(thread, stored.distances.shape[1] - 1)]
        state = State(
            position, momentum, memory, status, bounces, fallbacks, moves, chain, replica, step_size, temperature,
            choose_scale(coordinate_scale, tables.scale),
            ExchangeState(attempted, accepted, correction, swapped_in_window, walker, last_end, round_trips),
            ContourState(
                theta_table[:, : 2 * bins], scale, theta_table[:, 2 * bins : 3 * bins],
                theta_table[:, 3 * bins : 4 * bins], outside, next_mark, visited_range,
                noise[0, :0], noise[0, :0],
            ),
            ContinuousState(coupling, bias[:coupling_bins], bias[coupling_bins : 2 * coupling_bins]),
            previous, gradient, curvature, noise, mirror_point, pair_distances, rows, masses,
            choose(own_scratch, global_scratch), NoiseBuffer(noise[:0], chain[:0], replica[:0], chain[:0]),
        )  # fmt: skip
        numbers = Numbers(
            1, replicas, scalars.seed, scalars.burn_in, tempering,
            scalars.gradient_noise if has_gradient_noise else zero,
            scalars.energy_noise if has_energy_noise else zero,
            scalars.penalty if has_penalty else zero,
            scalars.max_bounces if has_bounces else 0,
            from_origin, rejects, draws_batches, draws_noise, needs_curvature, n_thermostats,
            scalars.leapfrogs if has_leapfrogs else 0,
            random_length, is_mala, keeps_energies, keeps_weights, keeps_statistics, keeps_trace, n_kept,
            n_traced_memory,
        )  # fmt: skip
        outputs = Outputs(
            written.draws.T[own], written.energies.T[own][:, :, :, 0], written.weights.T[own][:, :, :, 0],
            written.statistics.T[own], written.traces.T[own], written.thetas.T[own][:, 0],
        )  # fmt: skip
        constants = Constants(
            numbers, tables.target, tables.move, tables.tempering, tables.float_table, tables.int_table
        )  # fmt: skip
        steps = Steps(
            plan.first, plan.step_factors, plan.temperature_factors, plan.slots, plan.trace_slots, outputs
        )  # fmt: skip
        called = Parts(
            tempering=tempering, target=target, move=move, locate=locate, temper=temper, propose=propose,
            penalise=penalise, provide_noise=provide_noise, add_gradient_noise=add_gradient_noise,
            start_momenta=start_momenta, use_trajectory_end=use_trajectory_end, read_energies=read_energies,
            estimate_curvature=estimate_curvature, after_move=after_move, record_traces=record_traces,
            freeze_diverged=freeze_diverged,
        )  # fmt: skip
        run(called, state, constants, steps)
        store_matrix(position, floats, at_position, thread)
        store_matrix(momentum, floats, at_momentum, thread)
        store_matrix(memory, floats, at_memory, thread)
        store_matrix(correction, floats, at_correction, thread)
        store_matrix(swapped_in_window, floats, at_rests, thread)
        store_row(scale, floats, at_scale, thread)
        store_matrix(coupling, floats, at_coupling, thread)
        store_matrix(own_scratch, floats, at_scratch, thread)
        store_row(status, integers, at_status, thread)
        store_row(bounces, integers, at_bounces, thread)
        store_row(fallbacks, integers, at_fallbacks, thread)
        store_row(moves, integers, at_moves, thread)
        store_row(walker, integers, at_walker, thread)
        store_row(last_end, integers, at_end, thread)
        store_matrix(attempted, integers, at_attempted, thread)
        store_matrix(accepted, integers, at_accepted, thread)
        store_row(round_trips, integers, at_trips, thread)
        store_matrix(outside, integers, at_outside, thread)
        store_row(next_mark, integers, at_mark, thread)
        store_matrix(visited_range, integers, at_range, thread)
        for r in range(replicas):
            if status[r] != 0:
                diverged[0] = 1

    return kernel


# Compilation: once for all runs that differ only in the kernel's arguments; cached on disk.

# At most 128 registers, so that a multiprocessor holds 512 threads, not 256. On an H200 r2SGLD gained 10 %, although it
# spills; ICSGLD, of five replicas, lost 11 to 19 % (docs/cuda.md).
MOST_REGISTERS, FEW_REPLICAS = 128, 2


def argument_types(kinds: Kinds) -> tuple[Any, ...]:
    """Numba's types of the kernel's arguments."""
    exact, integer, whole = types.float64, types.int64, types.int32
    number, working, drawn = (from_dtype(np.dtype(kind)) for kind in kinds)

    def array(kind: Any, n: int) -> Any:
        return types.Array(kind, n, "C")

    return (
        types.NamedTuple((types.uint64, integer, number, number, number, integer, integer), Scalars),
        types.NamedTuple(
            (array(working, 1), array(number, 1), array(exact, 1), array(exact, 1), array(whole, 1), array(number, 1)),
            Tables,
        ),
        types.NamedTuple((integer, array(number, 1), array(number, 1), array(integer, 1), array(integer, 1)), Plan),
        types.NamedTuple(
            (array(exact, 2), array(integer, 2), array(exact, 2), array(exact, 3), array(working, 3), array(number, 2)),
            Stored,
        ),
        types.NamedTuple(
            (array(drawn, 4), array(drawn, 4), array(drawn, 4), array(whole, 4), array(number, 4), array(exact, 4)),
            Written,
        ),
        array(integer, 1),
    )


def compiled_chain_kernel(parts: Parts, shape: Shape, numbers: Numbers, kinds: Kinds) -> Any:
    """``chain_kernel`` compiled, once for all runs that differ only in its arguments."""
    return compiled(parts, shape, compile_time_constants(numbers), kinds)


@functools.lru_cache(maxsize=256)
def compiled(parts: Parts, shape: Shape, constants: Numbers, kinds: Kinds) -> Any:
    """The kernel. Raises Numba's exception where it does not compile; ``refusals`` finds the part that causes it."""
    stamp = kernel_stamp(parts, shape, constants, kinds)
    most_registers = MOST_REGISTERS if shape.replicas <= FEW_REPLICAS else None
    return compile_kernel(chain_kernel(parts, shape, constants, kinds), argument_types(kinds), stamp, most_registers)


def kernel_stamp(parts: Parts, shape: Shape, constants: Numbers, kinds: Kinds) -> str | None:
    """Hash of all that a kernel depends on; None where a part is defined in a script or notebook."""
    stamps = [cache_stamp(part) for part in (*parts.functions, advance)]
    valid_stamps = [stamp for stamp in stamps if stamp is not None]
    if len(valid_stamps) < len(stamps):
        return None
    made_for = (tuple(shape), tuple(float(number) for number in constants), [np.dtype(kind).name for kind in kinds])
    return hashlib.sha256(repr((valid_stamps, made_for)).encode()).hexdigest()
