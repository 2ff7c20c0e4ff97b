"""From a Python function to machine code: decorators, signatures, packed arguments, caches on disk, digests of code.

What other packages use is exported here.
"""

from .argument_pack import call_part, pack_arguments
from .binding import bound
from .block_rows import CHAIN, COUNTER_ROWS, MODE, REPLICA, SEED_HIGH, SEED_LOW, STEP
from .code_walk import names_in
from .decorators import (
    INLINE,
    FunctionPointer,
    compile_part,
    has_linked_form,
    in_float32,
    inlined,
    kept,
    kernel,
    noinline,
    set_linked_form,
)
from .disk_cache import available_threads, environment, source_stamp
from .function_digest import CONVERSIONS, NAMES_IN_FILES, PYTHON, describe_function
from .lowering import WideCompiler, njit_unwrapped, own_flags
from .notice import is_watched
from .per_function import cached_per_function
from .pickling import HoldsFunctions, reduced, set_recipe
from .shared_code import SharedCode, pointer_to, pointer_to_part
from .signatures import COUNTS, CUBE, DOMAIN, FLOATS, INTEGERS, MATRIX, tuple_type

__all__ = [
    "CHAIN", "CONVERSIONS", "COUNTER_ROWS", "COUNTS", "CUBE", "DOMAIN", "FLOATS", "INLINE", "INTEGERS", "MATRIX",
    "MODE", "NAMES_IN_FILES", "PYTHON", "REPLICA", "SEED_HIGH", "SEED_LOW", "STEP", "FunctionPointer",
    "HoldsFunctions", "SharedCode", "WideCompiler", "available_threads", "bound", "cached_per_function",
    "call_part", "compile_part", "describe_function", "environment", "has_linked_form", "in_float32", "inlined",
    "is_watched", "kept", "kernel", "names_in", "njit_unwrapped", "noinline", "own_flags", "pack_arguments",
    "pointer_to", "pointer_to_part", "reduced", "set_linked_form", "set_recipe", "source_stamp", "tuple_type",
]  # fmt: skip
