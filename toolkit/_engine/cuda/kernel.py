"""The kernel of a run: a thread takes its chain's state out of the device's memory, runs the engine, puts it back.

The loop is ``loop.advance``, as on the CPU, on a block of one chain whose lanes are its replicas. What a step touches
lies in local arrays of fixed size, which the compiler keeps in registers as far as they go; what is large (θ, biases,
the target's scratch, draws) stays in the device's memory. There the chain is always the last index, so that
neighbouring threads read and write neighbouring places.
"""

import functools
import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.np.numpy_support import from_dtype

from ..._compiler.block_rows import ENGINE_ROWS, LAMBDA, MASSES
from ..._compiler.decorators import inlined
from ..._compiler.disk_cache import cache_stamp
from ..._compiler.function_digest import stored_name
from ...boundaries.convex import everywhere_inside
from ...tempering.continuous import KICKS, renew_momenta
from ...tempering.contour_tempering import ContourState, find_multipliers, levels_of
from ...tempering.exchange import ExchangeState
from ...tempering.interface import scale_gradients
from ..loop import advance, find_non_finite, freeze_diverged, read_energies, record_energies, start_momenta
from ..metropolis_step import temper_potential
from ..noise_buffer import NoiseBuffer, fill_noise, refill_noise_buffer
from ..recording import record_statistics, record_trace
from ..settings import Parts, compile_time_constants
from ..state import Constants, ContinuousState, Numbers, Outputs, State, Steps
from .compiling import compile_kernel, interpreted, lazily
from .device import SIMULATED, cuda
from .float32 import twin

# A chain's state on a device: which sizes it has, and where its fields lie in its columns of floats and integers.


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


class Column(NamedTuple):
    """Where a field of a chain's state begins in its column, and how many numbers it has."""

    first: int
    size: int


def float_columns(shape: Shape) -> dict[str, Column]:
    """Floats of a chain, by the names of ``state.STORED``, and the two that the sampler gives."""
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
    """Integers of a chain, by the names of ``state.STORED``, and its status."""
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
        }
    )


def columns(sizes: dict[str, int]) -> dict[str, Column]:
    """``sizes`` one after the other."""
    firsts = np.cumsum([0, *sizes.values()])
    return {name: Column(int(first), size) for (name, size), first in zip(sizes.items(), firsts, strict=False)}


@inlined
def take(local, source, first, thread):
    """Copy a matrix out of a chain's column."""
    for i in range(local.shape[0]):
        for j in range(local.shape[1]):
            local[i, j] = source[first + i * local.shape[1] + j, thread]


@inlined
def take_row(local, source, first, thread):
    """Copy a row out of a chain's column."""
    for j in range(local.shape[0]):
        local[j] = source[first + j, thread]


@inlined
def put(local, target, first, thread):
    """Copy a matrix into a chain's column."""
    for i in range(local.shape[0]):
        for j in range(local.shape[1]):
            target[first + i * local.shape[1] + j, thread] = local[i, j]


@inlined
def put_row(local, target, first, thread):
    """Copy a row into a chain's column."""
    for j in range(local.shape[0]):
        target[first + j, thread] = local[j]


@inlined
def first_of(a, b):
    """The first of two, where a kernel is compiled for one of them."""
    return a


@inlined
def second_of(a, b):
    """The second of two."""
    return b


# What takes the whole state, for every new type of which the simulator would compile it anew; and what returns views,
# for which Python would get the whole array, as compiled code here counts no references.
INTERPRETED = frozenset(map(stored_name, (
    read_energies, record_energies, start_momenta, freeze_diverged, find_non_finite, record_statistics, record_trace,
    find_multipliers, levels_of, scale_gradients, renew_momenta, temper_potential, refill_noise_buffer, fill_noise,
)))  # fmt: skip


class Scalars(NamedTuple):
    """Numbers of a run that a kernel is told when it begins."""

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
    real: Any  # of the domain
    whole: Any


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
    """What a kernel computes with and writes, each float64 or float32; what 24 bits cannot hold is float64 always."""

    real: Any = np.float64
    target: Any = np.float64  # its parameters and scratch
    draws: Any = np.float64  # and their energies and weights, where it writes them


@functools.cache
def lazy(part: Callable[..., None]) -> Any:
    """``lazily``, once for each part."""
    return lazily(part)


def part_in(real: Any, part: Callable[..., None]) -> Any:
    """A part that kernels can call, which computes in ``real``. Raises PrecisionError where it cannot."""
    return lazy(part) if real is np.float64 else twin(part)


def whole_state(real: Any, part: Callable[..., None]) -> Any:
    """A part that takes the whole state, for a kernel to call."""
    if not SIMULATED:
        return part_in(real, part)
    plain = interpreted(part_in(real, part), INTERPRETED)

    def quietly(*arguments: Any) -> None:
        with np.errstate(all="ignore"):
            plain(*arguments)

    return quietly


def chain_kernel(parts: Parts, shape: Shape, constants: Numbers, kinds: Kinds = Kinds()) -> Callable[..., None]:
    """The kernel of a run, uncompiled. constants: numbers it is compiled for.

    Of these, seed, burn_in and every float and count that is not 0 are taken from the arguments instead, so that other
    numbers do not recompile it; 0 means that a feature is not there, and leaves its code out.
    """
    real, working = kinds.real, kinds.target
    target, move, look = part_in(working, parts.target), part_in(real, parts.move), lazy(parts.look)
    run, temper, propose = (whole_state(real, part) for part in (advance, parts.temper, parts.propose))
    dim, replicas, momenta, memory_rows = shape.dim, shape.replicas, shape.momenta, shape.memory
    curvature_rows, pairs, walkers, bins = shape.curvature, shape.pairs, shape.walkers, shape.bins
    coupled, coupling_bins, distances_size = shape.coupling, shape.coupling_bins, shape.distances
    scratch_rows = shape.scratch
    local_scratch = scratch_rows if shape.scratch_is_local else 0
    choose = first_of if shape.scratch_is_local else second_of
    # Local arrays have at least one element, and are then cut to the size that the engine sees.
    some_momenta, some_memory, some_curvature = max(1, momenta), max(1, memory_rows), max(1, curvature_rows)
    some_pairs, some_coupled, some_scratch = max(1, pairs), max(1, coupled), max(1, local_scratch)
    marks = 1 if bins else 0
    floats_at, integers_at = float_columns(shape), integer_columns(shape)
    (
        at_position, at_momentum, at_memory, at_correction, at_rests, at_scale, at_coupling, at_scratch, at_step_size,
        at_temperature,
    ) = (column.first for column in floats_at.values())  # fmt: skip
    (
        at_status, at_bounces, at_fallbacks, at_moves, at_walker, at_end, at_attempted, at_accepted, at_trips,
        at_outside, at_mark,
    ) = (column.first for column in integers_at.values())  # fmt: skip
    (
        _, _, _, _, tempering, gradient_noise, energy_noise, penalty, max_bounces, from_origin, rejects, draws_batches,
        draws_noise, needs_curvature, n_thermostats, leapfrogs, random_length, is_mala, keeps_energies, keeps_weights,
        keeps_statistics, keeps_trace, n_kept, n_traced_memory,
    ) = constants  # fmt: skip
    has_gradient_noise, has_energy_noise, has_penalty = gradient_noise != 0.0, energy_noise != 0.0, penalty != 0.0
    has_bounces, has_leapfrogs = max_bounces != 0, leapfrogs != 0
    masses_rows = MASSES if bins else KICKS if coupled else 1
    engine_rows, whole_one, zero = ENGINE_ROWS, LAMBDA, real(0.0)
    of_foot = (
        real if parts.look is everywhere_inside else np.float64
    )  # as the domain's tables, or rounding crosses edges

    def kernel(scalars, tables, plan, stored, written, diverged):
        thread = cuda.grid(1)
        floats, integers, biases, scratches = stored.floats, stored.integers, stored.biases, stored.scratches
        if thread >= floats.shape[1]:
            return
        position = cuda.local.array((dim, replicas), real)
        momentum = cuda.local.array((some_momenta, replicas), real)[:momenta]
        memory = cuda.local.array((some_memory, replicas), real)[:memory_rows]
        status = cuda.local.array(replicas, np.int64)
        bounces = cuda.local.array(replicas, np.int64)
        fallbacks = cuda.local.array(replicas, np.int64)
        moves = cuda.local.array(replicas, np.int64)
        chain = cuda.local.array(replicas, np.uint64)
        replica = cuda.local.array(replicas, np.uint64)
        attempted = cuda.local.array((some_pairs, 1), np.int64)[:pairs]
        accepted = cuda.local.array((some_pairs, 1), np.int64)[:pairs]
        correction = cuda.local.array((some_pairs, 1), real)[:pairs]
        swapped_in_window = cuda.local.array((some_pairs, 1), real)[:pairs]
        walker = cuda.local.array(replicas, np.int64)[:walkers]
        last_end = cuda.local.array(replicas, np.int64)[:walkers]
        round_trips = cuda.local.array(1, np.int64)[: min(1, walkers)]
        scale = cuda.local.array(1, np.float64)[:marks]
        outside = cuda.local.array((3, 1), np.int64)[: 3 * marks]
        next_mark = cuda.local.array(1, np.int64)[:marks]
        coupling = cuda.local.array((some_coupled, replicas), np.float64)[:coupled]
        own_scratch = cuda.local.array((some_scratch, replicas), working)[:local_scratch]
        previous = cuda.local.array((dim, replicas), real)
        gradient = cuda.local.array((dim, replicas), real)
        curvature = cuda.local.array((some_curvature, replicas), real)[:curvature_rows]
        noise = cuda.local.array((dim, replicas), real)
        foot = cuda.local.array((dim, replicas), of_foot)
        rows = cuda.local.array((engine_rows, replicas), real)
        masses = cuda.local.array((masses_rows, replicas), np.float64)
        for r in range(replicas):
            chain[r] = thread
            replica[r] = r
            for row in range(engine_rows):
                rows[row, r] = 0.0
            rows[whole_one, r] = 1.0
        take(position, floats, at_position, thread)
        take(momentum, floats, at_momentum, thread)
        take(memory, floats, at_memory, thread)
        take(correction, floats, at_correction, thread)
        take(swapped_in_window, floats, at_rests, thread)
        take_row(scale, floats, at_scale, thread)
        take(coupling, floats, at_coupling, thread)
        take(own_scratch, floats, at_scratch, thread)
        # Read where a schedule moves, and so left where they are.
        step_size = floats[at_step_size : at_step_size + replicas, thread]
        temperature = floats[at_temperature : at_temperature + replicas, thread]
        take_row(status, integers, at_status, thread)
        take_row(bounces, integers, at_bounces, thread)
        take_row(fallbacks, integers, at_fallbacks, thread)
        take_row(moves, integers, at_moves, thread)
        take_row(walker, integers, at_walker, thread)
        take_row(last_end, integers, at_end, thread)
        take(attempted, integers, at_attempted, thread)
        take(accepted, integers, at_accepted, thread)
        take_row(round_trips, integers, at_trips, thread)
        take(outside, integers, at_outside, thread)
        take_row(next_mark, integers, at_mark, thread)
        own = slice(thread, thread + 1)
        theta_table = stored.theta_tables.T[own]
        bias = biases[:, :, min(thread, biases.shape[2] - 1)]  # what a run does not have is of one chain
        far_scratch = scratches[:scratch_rows, :, min(thread, scratches.shape[2] - 1)]
        pair_distances = stored.distances[:distances_size, min(thread, stored.distances.shape[1] - 1)]
        state = State(
            position, momentum, memory, status, bounces, fallbacks, moves, chain, replica, step_size, temperature,
            ExchangeState(attempted, accepted, correction, swapped_in_window, walker, last_end, round_trips),
            ContourState(
                theta_table[:, : 2 * bins], scale, theta_table[:, 2 * bins : 3 * bins],
                theta_table[:, 3 * bins : 4 * bins], outside, next_mark,
            ),
            ContinuousState(coupling, bias[:coupling_bins], bias[coupling_bins : 2 * coupling_bins]),
            previous, gradient, curvature, noise, foot, pair_distances, rows, masses,
            choose(own_scratch, far_scratch), NoiseBuffer(noise[:0], chain[:0], replica[:0], chain[:0]),
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
            numbers, tables.target, tables.move, tables.tempering, tables.real, tables.whole
        )  # fmt: skip
        steps = Steps(
            plan.first, plan.step_factors, plan.temperature_factors, plan.slots, plan.trace_slots, outputs
        )  # fmt: skip
        run(target, move, look, temper, propose, state, constants, steps)
        put(position, floats, at_position, thread)
        put(momentum, floats, at_momentum, thread)
        put(memory, floats, at_memory, thread)
        put(correction, floats, at_correction, thread)
        put(swapped_in_window, floats, at_rests, thread)
        put_row(scale, floats, at_scale, thread)
        put(coupling, floats, at_coupling, thread)
        put(own_scratch, floats, at_scratch, thread)
        put_row(status, integers, at_status, thread)
        put_row(bounces, integers, at_bounces, thread)
        put_row(fallbacks, integers, at_fallbacks, thread)
        put_row(moves, integers, at_moves, thread)
        put_row(walker, integers, at_walker, thread)
        put_row(last_end, integers, at_end, thread)
        put(attempted, integers, at_attempted, thread)
        put(accepted, integers, at_accepted, thread)
        put_row(round_trips, integers, at_trips, thread)
        put(outside, integers, at_outside, thread)
        put_row(next_mark, integers, at_mark, thread)
        for r in range(replicas):
            if status[r] != 0:
                diverged[0] = 1

    return kernel


# A run's kernel compiled: once for all runs that differ only in numbers it takes as arguments, and kept on disk.


def argument_types(kinds: Kinds) -> tuple[Any, ...]:
    """Numba's types of the kernel's arguments."""
    exact, integer, whole = types.float64, types.int64, types.int32
    number, working, drawn = (from_dtype(np.dtype(kind)) for kind in kinds)

    def array(kind: Any, n: int) -> Any:
        return types.Array(kind, n, "C")

    return (
        types.NamedTuple((types.uint64, integer, number, number, number, integer, integer), Scalars),
        types.NamedTuple(
            (array(working, 1), array(number, 1), array(exact, 1), array(exact, 1), array(whole, 1)), Tables
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
    """``chain_kernel`` compiled, once for all runs that differ only in numbers that it takes as arguments."""
    return compiled(parts, shape, compile_time_constants(numbers), kinds)


@functools.lru_cache(maxsize=256)
def compiled(parts: Parts, shape: Shape, constants: Numbers, kinds: Kinds) -> Any:
    """The kernel. Raises what Numba does where it does not compile; ``refusals`` says which part it is."""
    stamp = kernel_stamp(parts, shape, constants, kinds)
    return compile_kernel(chain_kernel(parts, shape, constants, kinds), argument_types(kinds), stamp)


def kernel_stamp(parts: Parts, shape: Shape, constants: Numbers, kinds: Kinds) -> str | None:
    """Hash of all that a kernel is made of; None where a part is of a script or a notebook."""
    stamps = [cache_stamp(part) for part in (*parts, advance)]
    known = [stamp for stamp in stamps if stamp is not None]
    if len(known) < len(stamps):
        return None
    made_for = (tuple(shape), tuple(float(number) for number in constants), [np.dtype(kind).name for kind in kinds])
    return hashlib.sha256(repr((known, made_for)).encode()).hexdigest()
