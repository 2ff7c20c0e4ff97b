"""The fused engine: compiled as one function for one target, sampler and size of block, with every call inlined.

The general engine (``cpu.general_engine``) calls parts by their addresses, so that it is compiled once for all. A fused
engine is compiled for given parts, sizes of arrays and features, without code for other ones. Its results are the same
bit for bit, because no arithmetic is reordered.
"""

import contextlib
import functools
import hashlib
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.errors import NumbaError
from numba.extending import intrinsic

from .._compiler.argument_pack import call_reporting
from .._compiler.decorators import OwnCache, kernel
from .._compiler.disk_cache import cache_stamp, own_stamp
from .._compiler.lowering import (
    FrugalLibrary,
    WideLower,
    compiler_with,
    forget_source,
    with_own_engine,
    without_collections,
)
from .._compiler.numba_private import llvm_binding as llvm
from .._compiler.numba_private import make_array, populate_array
from .._compiler.per_function import cached_per_function
from .loop import advance
from .settings import compile_time_constants, parts_of
from .state import ADVANCE, CONSTANT, Block, Constants, Numbers, Parts

if TYPE_CHECKING:
    from .job import Job

# A block's state and numbers in a fused engine: array sizes are compile-time constants, small arrays are on the stack.
#
# So LLVM can unroll short loops, knows that arrays do not overlap, and can keep values in registers.

Shape = tuple[int, ...]

STACK, ARRAY = 2**18, 2**16  # bytes on the stack: of all arrays together, and of one array
ITEM = 8  # bytes of a number of the state, whatever its kind
RUN_TIME = ("seed", "burn_in")  # numbers that are arguments, not compile-time constants
RUN_TIME_UNLESS_0 = ("gradient_noise", "energy_noise", "penalty", "max_bounces", "leapfrogs")


class Views(NamedTuple):
    """Intrinsics for one shape of a block and one kind of run.

    load_state(state): the state with constant sizes, small arrays copied to the caller's stack.
    store_state(local, state): copy those arrays back. compile_time_constants(numbers): the numbers, known ones replaced
    by constants.
    """

    load_state: Any
    store_state: Any
    compile_time_constants: Any


def shapes_of(state: Any) -> tuple[Shape, ...]:
    """The shapes of all arrays of a state, in the order of ``map_arrays``."""
    parts = (shapes_of(part) if isinstance(part, tuple) else (part.shape,) for part in state)
    return tuple(shape for shapes in parts for shape in shapes)


def on_stack(shapes: tuple[Shape, ...]) -> tuple[bool, ...]:
    """Which arrays of these shapes go on the stack: the smallest first, as long as they fit."""
    sizes = [ITEM * math.prod(shape) for shape in shapes]
    chosen, free = [False] * len(sizes), STACK
    for i in sorted(range(len(sizes)), key=sizes.__getitem__):
        free -= sizes[i]
        chosen[i] = 0 < sizes[i] <= ARRAY and free >= 0
    return tuple(chosen)


def map_arrays(builder: Any, kind: Any, value: Any, change: Callable[[Any, Any], Any]) -> Any:
    """The tuple ``value`` of type ``kind``, with ``change(kind, value)`` instead of every array in it."""
    if not isinstance(kind, types.BaseTuple):
        return change(kind, value)
    for i, part in enumerate(kind.types):
        changed = map_arrays(builder, part, builder.extract_value(value, i), change)
        value = builder.insert_value(value, changed, i)
    return value


def are_written(state: Any) -> list[bool]:
    """Of the arrays of a state of this type, in the order of ``map_arrays``, whether a step writes them."""
    fields = zip(state.fields, state.types, strict=True)
    return [name not in CONSTANT for name, part in fields for _ in range(count_arrays(part))]


def count_arrays(kind: Any) -> int:
    """The arrays in a tuple of this type."""
    return sum(map(count_arrays, kind.types)) if isinstance(kind, types.BaseTuple) else 1


def make_views(shapes: tuple[Shape, ...], constants: Numbers) -> Views:
    """The intrinsics for blocks whose arrays have these shapes; see ``settings.compile_time_constants``."""
    local = on_stack(shapes)

    @intrinsic
    def load_state(typing_context, state):
        def generate(context, builder, signature, args):
            own: Iterator[tuple[Shape, bool]] = zip(shapes, local, strict=True)
            return map_arrays(
                builder, state, args[0], lambda kind, value: constant_shape(context, builder, kind, value, *next(own))
            )

        return state(state), generate

    @intrinsic
    def store_state(typing_context, local_state, state):
        def generate(context, builder, signature, args):
            sources: list[Any] = []

            def collect(kind: Any, value: Any) -> Any:
                sources.append(value)
                return value

            map_arrays(builder, local_state, args[0], collect)
            rest = zip(sources, shapes, local, are_written(state), strict=True)

            def copy(kind: Any, value: Any) -> Any:
                source, shape, is_local, is_written = next(rest)
                if is_local and is_written:
                    from_data, to_data = (make_array(kind)(context, builder, array).data for array in (source, value))
                    copy_numbers(builder, from_data, to_data, shape)
                return value

            map_arrays(builder, state, args[1], copy)
            return context.get_dummy_value()

        return types.void(local_state, state), generate

    @intrinsic
    def compile_time_constants(typing_context, numbers):
        def generate(context, builder, signature, args):
            value = args[0]
            for i, (name, number) in enumerate(constants._asdict().items()):
                if name not in RUN_TIME and (name not in RUN_TIME_UNLESS_0 or number == 0):
                    known = context.get_constant(numbers.types[i], number)
                    value = builder.insert_value(value, known, i)
            return value

        return numbers(numbers), generate

    return Views(load_state, store_state, compile_time_constants)


def constant_shape(context: Any, builder: Any, kind: Any, value: Any, shape: Shape, is_local: bool) -> Any:
    """The C-contiguous array ``value`` with constant ``shape``; if ``is_local``, a copy on the stack."""
    data = make_array(kind)(context, builder, value).data
    if is_local:
        with builder.goto_entry_block():
            buffer = builder.alloca(ir.ArrayType(context.get_data_type(kind.dtype), math.prod(shape)))
            buffer.align = 64
        local_data = builder.bitcast(buffer, data.type)
        copy_numbers(builder, data, local_data, shape)
        data = local_data
    number = context.get_value_type(types.intp)
    strides = [ITEM * math.prod(shape[i + 1 :]) for i in range(len(shape))]

    def packed(numbers: Any) -> Any:
        return cgutils.pack_array(builder, [ir.Constant(number, n) for n in numbers], ty=number)

    array = make_array(kind)(context, builder)
    populate_array(
        array, data=data, shape=packed(shape), strides=packed(strides), itemsize=ir.Constant(number, ITEM), meminfo=None
    )
    return array._getvalue()


def copy_numbers(builder: Any, source: Any, target: Any, shape: Shape) -> None:
    """Copy the numbers of an array of ``shape``."""
    cgutils.raw_memcpy(builder, target, source, ir.Constant(ir.IntType(64), math.prod(shape)), ITEM)


class FusedLibrary(FrugalLibrary):
    """A function with everything it calls inlined before optimisation."""

    def _optimize_final_module(self) -> None:
        """As Numba's, with the attribute ``alwaysinline`` on all functions but those of ``decorators.noinline``.

        LLVM inlines nearly all of them by itself; the attribute makes 64 lanes 1.08 times as fast, and one lane no
        faster. It is omitted where llvmlite cannot set it.
        """
        for function in self._final_module.functions if can_set_attributes() else ():
            is_called = function.linkage == llvm.Linkage.linkonce_odr and not function.is_declaration
            if is_called and not any(b"noinline" in attribute for attribute in function.attributes):
                function.add_function_attribute("alwaysinline")
        super()._optimize_final_module()


@functools.cache
def can_set_attributes() -> bool:
    """Whether llvmlite can set attributes of functions; before 0.48 it sets them on the return value."""
    module = llvm.parse_assembly("define void @f() {\n  ret void\n}")
    function = module.get_function("f")
    function.add_function_attribute("alwaysinline")
    return any(b"alwaysinline" in attribute for attribute in function.attributes)


FusedCompiler = compiler_with(WideLower, FusedLibrary)
OwnFusedCompiler = compiler_with(WideLower, with_own_engine(FusedLibrary))


def can_be_fused(job: "Job") -> bool:
    """Whether all that a run calls can be inlined: not calls of Python or C, nor functions that allocate arrays."""
    target = job.problem.target
    return not (job.calls_python or target.lane_by_lane or target.compiled().targetoptions["_nrt"])


class Specification(NamedTuple):
    """All that a fused engine is compiled for; two runs with the same one share the engine."""

    parts: Parts
    shapes: tuple[Shape, ...]
    constants: Numbers


def specifications(job: "Job", blocks: list[Block], numbers: Numbers) -> dict[int, Specification]:
    """Of the engines of a run, by the number of chains in a block."""
    parts, states = parts_of(job), {block.last - block.first: block.state for block in blocks}
    return {
        n_chains: Specification(parts, shapes_of(state), compile_time_constants(numbers, n_chains))
        for n_chains, state in states.items()
    }


def fused_engines(job: "Job", blocks: list[Block], numbers: Numbers) -> dict[int, Callable[..., None]]:
    """The engines of a run, ``loop.advance`` with the parts built in, by the number of chains in a block.

    Raises TypeError where one does not compile although its parts do.
    """
    try:
        return {n_chains: compiled(*one) for n_chains, one in specifications(job, blocks, numbers).items()}
    except NumbaError as error:
        raise TypeError(
            f"layout.fused must be False for {job.problem.name!r} by {job.sampler.name!r}, whose parts compile one "
            f"by one, but not into one: {error}"
        ) from error


@cached_per_function
def engines_of(target: Any) -> dict[Specification, Any]:
    """The fused engines of a target, held by it; what the toolkit's own functions became in them stays longer."""
    return {}


def compiled(parts: Parts, shapes: tuple[Shape, ...], constants: Numbers) -> Any:
    """A fused engine, compiled once for all runs that differ only in its arguments."""
    engines, specification = engines_of(parts.target), Specification(parts, shapes, constants)
    if specification not in engines:
        engines[specification] = compile_fused(*specification)
    return engines[specification]


def compile_fused(parts: Parts, shapes: tuple[Shape, ...], constants: Numbers) -> Any:
    """A fused engine, compiled; cached on disk."""
    function = fused(parts, shapes, constants)
    stamp, is_shared = fused_stamp(parts, shapes, constants)
    cache = None if stamp is None else cache_on_disk(function, stamp)
    return dispatcher_of(function, FusedCompiler if is_shared else OwnFusedCompiler, cache)


def dispatcher_of(function: Callable[..., None], compiler: Any, cache: Any) -> Any:
    """A function of ``fused``, compiled or loaded from ``cache``, which is None where there is none."""
    dispatcher = njit(error_model="numpy", _nrt=False, nogil=True, pipeline_class=compiler)(function)
    if cache is not None:
        dispatcher._cache = cache
    with without_collections():
        dispatcher.compile(types.void(*ADVANCE.args[1:]))
    dispatcher.disable_compile()
    forget_source(dispatcher)
    return dispatcher


def fused(parts: Parts, shapes: tuple[Shape, ...], constants: Numbers) -> Callable[..., None]:
    """The fused engine, uncompiled."""
    run, internal = as_internal(advance), Parts(parts.tempering, *map(as_internal, parts.functions))
    call = call_reporting(internal.target)
    load_state, store_state, set_constants = make_views(shapes, constants)

    @kernel
    def target(position, energy, gradient, parameters, scratch):
        call((position, energy, gradient, parameters, scratch))

    called = internal._replace(target=target)

    def advance_fused(state, constants, steps):
        local_state = load_state(state)
        local_constants = Constants(
            set_constants(constants.numbers), constants.target, constants.move, constants.tempering,
            constants.float_table, constants.int_table,
        )  # fmt: skip
        run(called, local_state, local_constants, steps)
        store_state(local_state, state)

    return advance_fused


@cached_per_function
def as_internal(part: Callable[..., None]) -> Any:
    """A part as compiled code calls it, made once for each."""
    return kernel(part)


def cache_on_disk(function: Callable[..., None], stamp: str) -> OwnCache | None:
    """The cache of a fused engine; None where there is no folder to write it to."""
    with contextlib.suppress(RuntimeError):
        return OwnCache(function, stamp)
    return None


def fused_stamp(parts: Parts, shapes: tuple[Shape, ...], constants: Numbers) -> tuple[str | None, bool]:
    """Hash of all that a fused engine depends on, None where not all is known; whether all parts are packages'."""
    stamps = [cache_stamp(part) for part in (*parts.functions, advance)]
    is_shared = None not in stamps
    if not is_shared:
        stamps = [stamp or own_stamp(part) for stamp, part in zip(stamps, (*parts.functions, advance), strict=True)]
        if None in stamps:
            return None, False
    made_for = (stamps, shapes, [float(number) for number in constants])
    return hashlib.sha256(repr(made_for).encode()).hexdigest(), is_shared
