"""The fixed signatures behind which parts are passed to the engine by their addresses.

A lane is one replica of one chain. A block function works on all lanes of a block; its arguments are not shared with
other threads. Arrays are C-contiguous; ``(dim, lane)`` means shape ``(dim, lanes)``.

Target   (position (dim, lane), energy (lane), gradient (dim, lane), parameters (any,), scratch (rows, lane))
         writes energy and gradient of every lane; it may use scratch freely.
Dynamics (lanes: ``Lanes``, memory (rows, lane), parameters (any,), changes)
         moves position (and momentum) one step; memory is private to it and kept from step to step. changes: 2 where
         step size or temperature may differ from the previous call, also at the start of a chunk; 1 where only the
         coupling may differ; else 0. So values computed from them can be kept in memory.
Domain   (position (dim, lane), mirror_point (dim, lane), outside (lane), float_table (any,), int_table (any,))
         checks lanes whose ``outside`` is not 0: sets it to 0 where the lane is inside, else to 1, and writes to
         mirror_point the point at which a reflection mirrors it: the nearest boundary point or, where walls meet, the
         nearest point of one wall that the lane has crossed. The tables are the domain's. For a penalty that pulls to
         the nearest point of the domain, the engine gets another function (``Domain.nearest``), which writes that
         point to mirror_point.
"""

from typing import Annotated, Any, NamedTuple, get_type_hints

import numpy as np
from numba import types
from numpy.typing import NDArray

FLOATS = types.Array(types.float64, 1, "C")
MATRIX = types.Array(types.float64, 2, "C")
CUBE = types.Array(types.float64, 3, "C")
TESSERACT = types.Array(types.float64, 4, "C")
INTEGERS = types.Array(types.int64, 1, "C")
COUNTS = types.Array(types.int64, 2, "C")
TABLE = types.Array(types.int32, 1, "C")
TALLIES = types.Array(types.int32, 4, "C")
NAMES = types.Array(types.uint64, 1, "C")

# The same types as annotations of fields; ``tuple_type`` reads Numba's type of a named tuple from them.
Vector = Annotated[NDArray[np.float64], FLOATS]
Matrix = Annotated[NDArray[np.float64], MATRIX]
Cube = Annotated[NDArray[np.float64], CUBE]
Tesseract = Annotated[NDArray[np.float64], TESSERACT]
IntVector = Annotated[NDArray[np.int64], INTEGERS]
IntMatrix = Annotated[NDArray[np.int64], COUNTS]
Int32Vector = Annotated[NDArray[np.int32], TABLE]
Int32Tesseract = Annotated[NDArray[np.int32], TALLIES]
NameVector = Annotated[NDArray[np.uint64], NAMES]
NUMBER_TYPES = {int: types.int64, float: types.float64, bool: types.boolean, np.uint64: types.uint64}


def tuple_type(kind: type) -> Any:
    """Numba's type of a named tuple whose fields are annotated with the names above, numbers, or such tuples."""
    fields = [field_type(hint) for hint in get_type_hints(kind, include_extras=True).values()]
    if len(set(fields)) == 1:  # Numba has another type for tuples whose fields all have one type
        return types.NamedUniTuple(fields[0], len(fields), kind)
    return types.NamedTuple(fields, kind)


def field_type(hint: Any) -> Any:
    """Numba's type of one field."""
    if hint in NUMBER_TYPES:
        return NUMBER_TYPES[hint]
    return hint.__metadata__[0] if hasattr(hint, "__metadata__") else tuple_type(hint)


class Lanes(NamedTuple):
    """Arguments of a dynamics step: the state that it changes and what it reads, for all lanes of a block."""

    position: Matrix  # (dim, lane)
    momentum: Matrix  # (dim or 0, lane)
    gradient: Matrix  # (dim, lane), scaled by tempering
    curvature: Matrix  # (dim or 0, lane): an estimate of the diagonal of the Hessian, where requested
    noise: Matrix  # (dim, lane): fresh standard normals
    step_size: Vector  # (lane,)
    temperature: Vector  # (lane,)
    coupling: Vector  # (lane,): the λ by which continuous tempering scaled the gradient, else 1
    scale: Vector  # (dim,): the scale s of each coordinate, which a move in z = x / s must know; 1 where none is given


LANES = tuple_type(Lanes)
TARGET = types.void(MATRIX, FLOATS, MATRIX, FLOATS, MATRIX)
DYNAMICS = types.void(LANES, MATRIX, FLOATS, types.int64)
DOMAIN = types.void(MATRIX, MATRIX, FLOATS, FLOATS, TABLE)
