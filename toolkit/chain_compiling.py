"""A run's kernel compiled: once for all runs that differ only in numbers it takes as arguments, and kept on disk."""

import functools
import hashlib
from typing import Any

import numpy as np
from numba import types
from numba.np.numpy_support import from_dtype

from .chain_columns import Shape
from .chain_kernel import Kinds, chain_kernel
from .device_compiling import compile_kernel
from .engine import advance
from .job_parts import Parts, settled
from .stamps import cache_stamp
from .state import Numbers


def argument_types(kinds: Kinds) -> tuple[Any, ...]:
    """Numba's types of the kernel's arguments."""
    exact, integer, whole = types.float64, types.int64, types.int32
    number, working, drawn = (from_dtype(np.dtype(kind)) for kind in kinds)

    def array(kind: Any, n: int) -> Any:
        return types.Array(kind, n, "C")

    return (
        types.uint64, integer, number, number, number, integer, integer, array(working, 1), array(number, 1),
        array(exact, 1), array(exact, 1), array(whole, 1), integer, array(number, 1), array(number, 1),
        array(integer, 1), array(integer, 1), array(exact, 2), array(integer, 2), array(exact, 2), array(exact, 3),
        array(working, 3), array(number, 2), array(drawn, 4), array(drawn, 4), array(drawn, 4), array(whole, 4),
        array(number, 4), array(exact, 4), array(integer, 1),
    )  # fmt: skip


def compiled_chain_kernel(parts: Parts, shape: Shape, numbers: Numbers, kinds: Kinds) -> Any:
    """``chain_kernel`` compiled, once for all runs that differ only in numbers that it takes as arguments."""
    return compiled(parts, shape, settled(numbers), kinds)


@functools.lru_cache(maxsize=256)
def compiled(parts: Parts, shape: Shape, constants: Numbers, kinds: Kinds) -> Any:
    """The kernel. Raises what Numba does where it does not compile; ``device_causes`` says which part it is."""
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
