"""The engine fused: compiled whole for one target, one sampler and one size of block, every call taken in.

The general engine (``cpu.general_engine``) calls parts by their addresses, so that it compiles once for all of them. A
fused one is compiled for given parts, sizes of arrays and features, and has code for nothing else. Its bits are the
same, because no arithmetic is reordered.
"""

import contextlib
import functools
import hashlib
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import llvmlite.binding as llvm
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.codegen import JITCodeLibrary
from numba.core.errors import NumbaError
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

from .._compiler.argument_pack import call_reporting
from .._compiler.decorators import StampedCache, kernel
from .._compiler.disk_cache import cache_stamp
from .._compiler.lowering import WideLower, compiler_with
from .loop import advance
from .settings import Parts, compile_time_constants, parts_of
from .state import ADVANCE, Block, Constants, Numbers

if TYPE_CHECKING:
    from .job import Job

# A block's state and numbers as a fused engine sees them: of sizes the compiler knows, and on the stack where small.
#
# LLVM then unrolls what is short, knows which arrays do not overlap, and keeps in registers what fits there.

Shape = tuple[int, ...]

STACK, ARRAY = 2**18, 2**16  # bytes that a thread's stack is asked for, and that one array may have of them
ITEM = 8  # bytes of a number of the state, whatever its kind
WITH_THE_RUN = ("seed", "burn_in")  # numbers that are told when a run begins
WHERE_THERE = ("gradient_noise", "energy_noise", "penalty", "max_bounces", "leapfrogs")  # the same, unless they are 0


class Views(NamedTuple):
    """Intrinsics for one shape of a block and one kind of run.

    taken(state): the state, of sizes that are constants, small arrays of it copied to the stack of the caller.
    put_back(own, state): what was copied there, back. settled(numbers): the numbers, those that are known constants.
    """

    taken: Any
    put_back: Any
    compile_time_constants: Any


def shapes_of(state: Any) -> tuple[Shape, ...]:
    """The shapes of all arrays of a state, in the order in which ``each`` meets them."""
    parts = (shapes_of(part) if isinstance(part, tuple) else (part.shape,) for part in state)
    return tuple(shape for shapes in parts for shape in shapes)


def on_stack(shapes: tuple[Shape, ...]) -> tuple[bool, ...]:
    """Which arrays of these shapes go onto the stack: the smallest first, while there is room."""
    sizes = [ITEM * math.prod(shape) for shape in shapes]
    chosen, room = [False] * len(sizes), STACK
    for i in sorted(range(len(sizes)), key=sizes.__getitem__):
        room -= sizes[i]
        chosen[i] = 0 < sizes[i] <= ARRAY and room >= 0
    return tuple(chosen)


def each(builder: Any, kind: Any, value: Any, change: Callable[[Any, Any], Any]) -> Any:
    """The ``value`` of a tuple of the type ``kind``, with ``change(kind, value)`` in place of every array in it."""
    if not isinstance(kind, types.BaseTuple):
        return change(kind, value)
    for i, part in enumerate(kind.types):
        changed = each(builder, part, builder.extract_value(value, i), change)
        value = builder.insert_value(value, changed, i)
    return value


def views(shapes: tuple[Shape, ...], constants: Numbers) -> Views:
    """The intrinsics for blocks whose arrays have these shapes; see ``settings.compile_time_constants``."""
    local = on_stack(shapes)

    @intrinsic
    def taken(typing_context, state):
        def generate(context, builder, signature, given):
            own: Iterator[tuple[Shape, bool]] = zip(shapes, local, strict=True)
            return each(builder, state, given[0], lambda kind, value: fixed(context, builder, kind, value, *next(own)))

        return state(state), generate

    @intrinsic
    def put_back(typing_context, own, state):
        def generate(context, builder, signature, given):
            sources: list[Any] = []

            def find(kind: Any, value: Any) -> Any:
                sources.append(value)
                return value

            each(builder, own, given[0], find)
            rest = zip(sources, shapes, local, strict=True)

            def copy(kind: Any, value: Any) -> Any:
                source, shape, is_local = next(rest)
                if is_local:
                    here, there = (make_array(kind)(context, builder, array).data for array in (source, value))
                    copy_numbers(builder, here, there, shape)
                return value

            each(builder, state, given[1], copy)
            return context.get_dummy_value()

        return types.void(own, state), generate

    @intrinsic
    def compile_time_constants(typing_context, numbers):
        def generate(context, builder, signature, given):
            value = given[0]
            for i, (name, number) in enumerate(constants._asdict().items()):
                if name not in WITH_THE_RUN and (name not in WHERE_THERE or number == 0):
                    known = context.get_constant(numbers.types[i], number)
                    value = builder.insert_value(value, known, i)
            return value

        return numbers(numbers), generate

    return Views(taken, put_back, compile_time_constants)


def fixed(context: Any, builder: Any, kind: Any, value: Any, shape: Shape, is_local: bool) -> Any:
    """An array's ``value``, C-contiguous, with ``shape`` as constants; on the stack, a copy."""
    data = make_array(kind)(context, builder, value).data
    if is_local:
        with builder.goto_entry_block():
            room = builder.alloca(ir.ArrayType(context.get_data_type(kind.dtype), math.prod(shape)))
            room.align = 64
        there = builder.bitcast(room, data.type)
        copy_numbers(builder, data, there, shape)
        data = there
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
    """Copy as many numbers as an array of ``shape`` has."""
    cgutils.raw_memcpy(builder, target, source, ir.Constant(ir.IntType(64), math.prod(shape)), ITEM)


class FusedLibrary(JITCodeLibrary):  # type: ignore[misc]
    """A function and all it calls, taken into it before anything is optimised."""

    def _optimize_final_module(self) -> None:
        """As Numba's, with the wish to be inlined for all that is not to stay apart (``decorators.apart``).

        LLVM takes in nearly all by itself; the wish makes 64 lanes 1.08 times as fast, and one no faster. It is left
        out where llvmlite cannot express it.
        """
        for function in self._final_module.functions if takes_wishes() else ():
            is_called = function.linkage == llvm.Linkage.linkonce_odr and not function.is_declaration
            if is_called and not any(b"noinline" in attribute for attribute in function.attributes):
                function.add_function_attribute("alwaysinline")
        super()._optimize_final_module()


@functools.cache
def takes_wishes() -> bool:
    """Whether llvmlite gives an attribute to a function; versions before 0.48 give it to what the function returns."""
    module = llvm.parse_assembly("define void @f() {\n  ret void\n}")
    function = module.get_function("f")
    function.add_function_attribute("alwaysinline")
    return any(b"alwaysinline" in attribute for attribute in function.attributes)


FusedCompiler = compiler_with(WideLower, FusedLibrary)


def can_be_fused(job: "Job") -> bool:
    """Whether all that a run calls can be taken in: not what Python or C does, nor what makes arrays."""
    allocates = job.problem.target.compiled().targetoptions["_nrt"]
    return not (job.calls_python or allocates)


def fused_engines(job: "Job", blocks: list[Block], numbers: Numbers) -> list[Callable[..., None]]:
    """For each block its engine: ``loop.advance`` less the parts.

    Raises TypeError where it does not compile, though its parts do.
    """
    parts = parts_of(job)
    try:
        return [compiled(parts, shapes_of(b.state), compile_time_constants(numbers, b.last - b.first)) for b in blocks]
    except NumbaError as error:
        raise TypeError(
            f"layout.fused must be False for {job.problem.name!r} by {job.sampler.name!r}, whose parts compile one "
            f"by one, but not into one: {error}"
        ) from error


@functools.lru_cache(maxsize=256)
def compiled(parts: Parts, shapes: tuple[Shape, ...], constants: Numbers) -> Any:
    """A fused engine, made once for all runs that differ only in numbers that it is told; kept on disk."""
    function = fused(parts, shapes, constants)
    dispatcher = njit(error_model="numpy", _nrt=False, nogil=True, pipeline_class=FusedCompiler)(function)
    stamp = fused_stamp(parts, shapes, constants)
    if stamp is not None:
        with contextlib.suppress(RuntimeError):  # no folder to keep it in
            dispatcher._cache = FusedCache(function, stamp)
    dispatcher.compile(types.void(*ADVANCE.args[len(parts) :]))
    dispatcher.disable_compile()
    return dispatcher


def fused(parts: Parts, shapes: tuple[Shape, ...], constants: Numbers) -> Callable[..., None]:
    """The fused engine, uncompiled."""
    run, (own_target, move, look, temper, propose) = as_internal(advance), map(as_internal, parts)
    call = call_reporting(own_target)
    taken, put_back, settled_numbers = views(shapes, constants)

    @kernel
    def target(position, energy, gradient, parameters, scratch):
        call((position, energy, gradient, parameters, scratch))

    def advance_fused(state, constants, steps):
        own = taken(state)
        own_constants = Constants(
            settled_numbers(constants.numbers), constants.target, constants.move, constants.tempering, constants.real,
            constants.whole,
        )  # fmt: skip
        run(target, move, look, temper, propose, own, own_constants, steps)
        put_back(own, state)

    return advance_fused


@functools.lru_cache(maxsize=4096)
def as_internal(part: Callable[..., None]) -> Any:
    """A part for compiled code to call, once for each."""
    return kernel(part)


class FusedCache(StampedCache):
    """Numba's cache of one fused engine, whose own key has addresses in it that another process has not."""

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        return (sig, codegen.magic_tuple(), self._stamp)


def fused_stamp(parts: Parts, shapes: tuple[Shape, ...], constants: Numbers) -> str | None:
    """Hash of all that a fused engine is made of; None where a part is of a script or a notebook."""
    stamps = [cache_stamp(part) for part in (*parts, advance)]
    if None in stamps:
        return None
    made_for = (stamps, shapes, [float(number) for number in constants])
    return hashlib.sha256(repr(made_for).encode()).hexdigest()
