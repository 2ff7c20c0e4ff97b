"""A block's state and numbers as a fused engine sees them: of sizes the compiler knows, and on the stack where small.

LLVM then unrolls what is short, knows which arrays do not overlap, and keeps in registers what fits there.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

from .state import Numbers

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
    settled: Any


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
    """The intrinsics for blocks whose arrays have these shapes; constants: as of ``job_parts.settled``."""
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
    def settled(typing_context, numbers):
        def generate(context, builder, signature, given):
            value = given[0]
            for i, (name, number) in enumerate(constants._asdict().items()):
                if name not in WITH_THE_RUN and (name not in WHERE_THERE or number == 0):
                    known = context.get_constant(numbers.types[i], number)
                    value = builder.insert_value(value, known, i)
            return value

        return numbers(numbers), generate

    return Views(taken, put_back, settled)


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
