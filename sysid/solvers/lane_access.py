"""Rows of matrices as tuples, lane by lane, with alias metadata that tells LLVM which rows do not overlap.

So that loops vectorise; as ``toolkit.problem.point_function``, for functions that read and write many rows. Each role
has rows of its own, which overlap with no other; a role may be read and written.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from toolkit.problem import array_like


def row_access(purpose: str, roles: dict[str, int]) -> dict[str, tuple[Any, Any]]:
    """For every role → number of rows: ``read(matrix, first, lane)``, a tuple, and ``write(matrix, first, lane, x)``.

    purpose: one name for each function that is compiled by itself; within it, rows of one role are taken at distances
    that its number of rows divides, and no row serves two roles.
    """
    every = [(role, d) for role, rows in roles.items() for d in range(rows)]

    def promise(module: Any, instruction: Any, row: tuple[str, int]) -> None:
        """Mark an access of ``row`` as not aliasing any other row."""
        domain = module.add_metadata([purpose])
        scopes = {other: module.add_metadata([f"{other[0]} {other[1]}", domain]) for other in every}
        instruction.set_metadata("alias.scope", module.add_metadata([scopes[row]]))
        others = [scope for other, scope in scopes.items() if other != row]
        if others:
            instruction.set_metadata("noalias", module.add_metadata(others))

    def access(role: str) -> tuple[Any, Any]:
        """``read`` and ``write`` of a role."""
        rows = roles[role]

        @intrinsic
        def read(typing_context, matrix, first, lane):
            whole = matrix_like(matrix)
            kind = types.UniTuple(whole.dtype, rows) if rows else types.Tuple(())

            def generate(context, builder, signature, arguments):
                values = [builder.load(pointer) for pointer in pointers(context, builder, whole, arguments, rows)]
                for d, value in enumerate(values):
                    promise(builder.module, value, (role, d))
                return context.make_tuple(builder, kind, values)

            return kind(whole, types.intp, types.intp), generate

        @intrinsic
        def write(typing_context, matrix, first, lane, x):
            whole = matrix_like(matrix)

            def generate(context, builder, signature, arguments):
                for d, pointer in enumerate(pointers(context, builder, whole, arguments, rows)):
                    number = builder.extract_value(arguments[3], d)
                    number = context.cast(builder, number, signature.args[3][d], whole.dtype)
                    promise(builder.module, builder.store(number, pointer), (role, d))
                return context.get_dummy_value()

            return types.void(whole, types.intp, types.intp, x), generate

        return read, write

    return {role: access(role) for role in roles}


def matrix_like(matrix: Any) -> Any:
    """The type of ``matrix`` where it is one row, or its rows lie apart, as on a device, else of a contiguous one."""
    keeps_type = isinstance(matrix, types.Array) and (matrix.ndim == 1 or matrix.layout == "A")
    return matrix if keeps_type else array_like(matrix, 2)


def pointers(context: Any, builder: Any, kind: Any, arguments: Any, rows: int) -> list[Any]:
    """Pointers to ``matrix[first + d, lane]`` for every d, or to ``matrix[lane]`` of one row; kind: its type."""
    matrix = context.make_array(kind)(context, builder, arguments[0])
    word, out = arguments[1].type, []
    if kind.ndim == 1:
        offset = builder.mul(arguments[2], builder.extract_value(matrix.strides, 0))
        return [cgutils.pointer_add(builder, matrix.data, offset, matrix.data.type)]
    for d in range(rows):
        row = builder.add(arguments[1], ir.Constant(word, d))
        if kind.layout == "C":
            place = builder.mul(row, builder.extract_value(matrix.shape, 1))
            out.append(builder.gep(matrix.data, [builder.add(place, arguments[2])]))
        else:
            down, along = (builder.extract_value(matrix.strides, i) for i in range(2))
            offset = builder.add(builder.mul(row, down), builder.mul(arguments[2], along))
            out.append(cgutils.pointer_add(builder, matrix.data, offset, matrix.data.type))
    return out


def lane_number_pointer(context: Any, builder: Any, kind: Any, arguments: Any) -> Any:
    """A pointer to number ``i`` of a lane's own; arguments: work, first, width, lane, i."""
    work = context.make_array(kind)(context, builder, arguments[0])
    first, width, lane, i = arguments[1:5]
    if kind.layout == "C":
        begin = builder.mul(first, builder.extract_value(work.shape, 1))
        return builder.gep(work.data, [builder.add(begin, builder.add(builder.mul(width, lane), i))])
    down, along = (builder.extract_value(work.strides, k) for k in range(2))
    offset = builder.add(builder.mul(builder.add(first, i), down), builder.mul(lane, along))
    return cgutils.pointer_add(builder, work.data, offset, work.data.type)


@intrinsic
def lane_number(typing_context, work, first, width, lane, i):
    """Number ``i`` of the ``width`` that a lane has in the rows of ``work`` from ``first`` on.

    Contiguous in memory where the rows are; in strided rows, as on a device, a column.
    """
    kind = matrix_like(work)

    def generate(context, builder, signature, arguments):
        return builder.load(lane_number_pointer(context, builder, kind, arguments))

    return kind.dtype(kind, types.intp, types.intp, types.intp, types.intp), generate


@intrinsic
def set_lane_number(typing_context, work, first, width, lane, i, value):
    """Write what ``lane_number`` reads."""
    kind = matrix_like(work)

    def generate(context, builder, signature, arguments):
        builder.store(arguments[5], lane_number_pointer(context, builder, kind, arguments))
        return context.get_dummy_value()

    return types.void(kind, types.intp, types.intp, types.intp, types.intp, kind.dtype), generate
