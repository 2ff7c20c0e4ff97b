"""Reads and writes of array rows that are promised not to overlap, so that loops over many of them vectorise.

LLVM compares all rows of a loop before it enters its vector form, and gives up beyond some ten; here each access says
by metadata which others it cannot meet (LLVM language reference, ``alias.scope`` and ``noalias``).
"""

import math
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.cgutils import alloca_once, pack_array
from numba.extending import intrinsic


def promise(module: Any, instruction: Any, scope: int) -> None:
    """Mark an access of row number ``scope`` (0: rows that are only read) as meeting none of a smaller number."""
    domain = module.add_metadata(["rows of a block"])
    scopes = [module.add_metadata([f"row {i}", domain]) for i in range(scope + 1)]
    instruction.set_metadata("alias.scope", module.add_metadata(scopes[-1:]))
    if scope:
        instruction.set_metadata("noalias", module.add_metadata(scopes[:-1]))


@intrinsic
def with_item(typing_context, values, place, value):
    """The tuple ``values`` of floats with ``value`` at ``place``, which must be one of its places."""

    def generate(context, builder, signature, arguments):
        tuple_type = arguments[0].type
        room = alloca_once(builder, tuple_type)
        builder.store(arguments[0], room)
        builder.store(arguments[2], builder.gep(room, [arguments[1].type(0), arguments[1]], inbounds=True))
        return builder.load(room)

    return values(values, types.intp, values.dtype), generate


@intrinsic(prefer_literal=True)
def room(typing_context, size):
    """An array of ``size`` floats, a constant, on the stack of the function that asks; it begins with any values."""
    if not isinstance(size, types.IntegerLiteral):
        return None
    count, kind = size.literal_value, types.Array(types.float64, 1, "C")

    def generate(context, builder, signature, arguments):
        number = context.get_value_type(types.float64)
        array = context.make_array(kind)(context, builder)
        word, width = array.itemsize.type, context.get_abi_sizeof(number)
        array.data = builder.bitcast(alloca_once(builder, ir.ArrayType(number, count)), number.as_pointer())
        array.itemsize, array.nitems = ir.Constant(word, width), ir.Constant(word, count)
        array.meminfo, array.parent = (ir.Constant(kept.type, None) for kept in (array.meminfo, array.parent))
        array.shape = pack_array(builder, [ir.Constant(word, count)], word)
        array.strides = pack_array(builder, [ir.Constant(word, width)], word)
        return array._getvalue()

    return kind(size), generate


def lane_access(dim: int) -> tuple[Any, Any]:
    """``load(position, lane)``, a point as a tuple, and ``store(energy, gradient, lane, value, slope)``."""

    @intrinsic
    def load(typing_context, position, lane):
        matrix = array_like(position, 2)
        kind = types.UniTuple(matrix.dtype, dim)

        def generate(context, builder, signature, arguments):
            pointers = row_pointers(context, builder, matrix, arguments[0], arguments[1], dim)
            values = [builder.load(pointer) for pointer in pointers]
            for value in values:
                promise(builder.module, value, 0)
            return context.make_tuple(builder, kind, values)

        return kind(matrix, types.intp), generate

    @intrinsic
    def store(typing_context, energy, gradient, lane, value, slope):
        row, matrix = array_like(energy, 1), array_like(gradient, 2)

        def generate(context, builder, signature, arguments):
            kinds = list(signature.args[4]) if isinstance(signature.args[4], types.BaseTuple) else [signature.args[4]]
            is_tuple = isinstance(signature.args[4], types.BaseTuple)
            for d, pointer in enumerate(row_pointers(context, builder, matrix, arguments[1], arguments[2], dim)):
                element = builder.extract_value(arguments[4], d) if is_tuple else arguments[4]
                number = context.cast(builder, element, kinds[d], matrix.dtype)
                promise(builder.module, builder.store(number, pointer), d + 1)
            number = context.cast(builder, arguments[3], signature.args[3], row.dtype)
            pointer = builder.gep(context.make_array(row)(context, builder, arguments[0]).data, [arguments[2]])
            promise(builder.module, builder.store(number, pointer), dim + 1)
            return context.get_dummy_value()

        return types.void(row, matrix, types.intp, value, slope), generate

    return load, store


def reshaped_to(shape: tuple[int, ...]) -> Any:
    """``reshaped(numbers)``: a contiguous array seen in ``shape``; a reshape calls what no device has."""

    @intrinsic
    def reshaped(typing_context, numbers):
        kind = types.Array(array_like(numbers, 1).dtype, len(shape), "C")

        def generate(context, builder, signature, arguments):
            flat = context.make_array(signature.args[0])(context, builder, arguments[0])
            array = context.make_array(kind)(context, builder)
            word, size = flat.itemsize.type, context.get_abi_sizeof(context.get_value_type(kind.dtype))
            steps = [size * math.prod(shape[d + 1 :]) for d in range(len(shape))]
            array.data, array.itemsize, array.nitems = flat.data, flat.itemsize, flat.nitems
            array.meminfo, array.parent = (ir.Constant(kept.type, None) for kept in (flat.meminfo, flat.parent))
            array.shape = pack_array(builder, [ir.Constant(word, n) for n in shape], word)
            array.strides = pack_array(builder, [ir.Constant(word, step) for step in steps], word)
            return array._getvalue()

        return kind(array_like(numbers, 1)), generate

    return reshaped


def array_like(array: Any, dim: int) -> Any:
    """The type of a contiguous array of ``array``'s floats, float64 where it has none."""
    kind = array.dtype if isinstance(array, types.Array) and isinstance(array.dtype, types.Float) else types.float64
    return types.Array(kind, dim, "C")


def row_pointers(context: Any, builder: Any, kind: Any, array: Any, lane: Any, dim: int) -> list[Any]:
    """Pointers to ``array[d, lane]`` for every d, the array being of type ``kind``."""
    matrix = context.make_array(kind)(context, builder, array)
    lanes = builder.extract_value(matrix.shape, 1)
    word = lane.type
    return [builder.gep(matrix.data, [builder.add(builder.mul(ir.Constant(word, d), lanes), lane)]) for d in range(dim)]
