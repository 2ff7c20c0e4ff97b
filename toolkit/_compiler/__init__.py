"""From a Python function to machine code: decorators, signatures, packed arguments, caches on disk, digests of code.

What other packages use is exported here.
"""

from .binding import bound
from .block_rows import CHAIN, COUNTER_ROWS, MODE, REPLICA, SEED_HIGH, SEED_LOW, STEP
from .code_walk import names_in
from .decorators import FunctionPointer, compile_part, inlined, kept, kernel, noinline
from .disk_cache import available_threads, environment, source_stamp
from .function_digest import PYTHON, describe_function
from .lowering import WideCompiler, njit_unwrapped, own_flags
from .notice import is_watched
from .per_function import cached_per_function
from .pickling import HoldsFunctions, reduced, set_recipe
from .signatures import COUNTS, CUBE, DOMAIN, FLOATS, INTEGERS, MATRIX

__all__ = [
    "CHAIN", "COUNTER_ROWS", "COUNTS", "CUBE", "DOMAIN", "FLOATS", "INTEGERS", "MATRIX", "MODE", "PYTHON", "REPLICA",
    "SEED_HIGH", "SEED_LOW", "STEP", "FunctionPointer", "HoldsFunctions", "WideCompiler",
    "available_threads", "bound", "cached_per_function", "compile_part", "describe_function", "environment", "inlined",
    "is_watched", "kept", "kernel", "names_in", "njit_unwrapped", "noinline", "own_flags", "reduced", "set_recipe",
    "source_stamp",
]  # fmt: skip
