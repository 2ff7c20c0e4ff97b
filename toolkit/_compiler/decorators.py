"""Compile a part to machine code behind a fixed signature, once, and keep it on disk without ever serving it stale.

The key of every cached function holds a hash of all sources of this package, of the packages of the function and of all
compiled functions it calls, their code, and the values they read (``disk_cache``), so any edit recompiles.
``tests/toolkit/compiler/test_disk_cache.py`` edits sources in a copy and looks.
"""

import contextlib
import functools
from collections.abc import Callable
from typing import Any

from numba import config, njit, types
from numba.core.caching import FunctionCache
from numba.core.typing.templates import Signature
from numba.extending import typeof_impl

from ..errors import Unavailable
from .argument_pack import PackedCompiler, address_in, packed_address
from .disk_cache import CodeFile, cache_stamp
from .lowering import NoInlineLower, WideCompiler, compiler_with, inner

# Decorators of the functions that parts call. Without reference counts on arrays, whose atomic increments would cost
# more than the arithmetic; so a kernel cannot allocate. Division by zero gives inf or nan, as in IEEE 754.
kernel = inner(WideCompiler, error_model="numpy", _nrt=False)
inlined = inner(WideCompiler, forceinline=True, error_model="numpy", _nrt=False)
# Long, and called in many places. Numba would hand it its caller's wish to be inlined.
noinline = inner(compiler_with(NoInlineLower), forceinline=False, error_model="numpy", _nrt=False)


class StampedCache(FunctionCache):  # type: ignore[misc]
    """Numba's cache of one function, with the sources it may depend on in the key."""

    def __init__(self, function: Callable[..., Any], stamp: str) -> None:
        super().__init__(function)
        self._cache_file: Any = CodeFile(self._cache_file)
        self._stamp = stamp

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        return (*super()._index_key(sig, codegen), self._stamp)


@functools.cache
def compile_part(
    function: Callable[..., Any],
    signature: Signature,
    *,
    allocates: bool = False,
    packed: bool = False,
    from_python: bool = True,
) -> Any:
    """``function`` compiled for ``signature``, to run without the GIL; only one that ``allocates`` may make arrays.

    packed: also in the form that the engine calls, with packed arguments (``argument_pack``).
    from_python: whether Python calls it too. It is known by the function alone, which is to be ``binding.bound``.
    Functions whose sources, and those of all they call, lie in packages are cached on disk; those of a script or a
    notebook are compiled anew in each process. Raises UnavailableError for what a loaded run only names, ValueError for
    what nobody could call, RuntimeError where Numba is told not to compile.
    """
    if isinstance(function, Unavailable):
        function()
    if not (packed or from_python):
        raise ValueError("from_python must be True for a part that is not packed: nobody could call it")
    if config.DISABLE_JIT:
        raise RuntimeError("NUMBA_DISABLE_JIT is set, and parts run as machine code alone: unset it to sample")
    compiler = PackedCompiler if packed else WideCompiler
    dispatcher = njit(
        nogil=True, error_model="numpy", _nrt=allocates, no_cfunc_wrapper=not packed,
        no_cpython_wrapper=not from_python, pipeline_class=compiler,
    )(function)  # fmt: skip
    stamp = cache_stamp(function)
    if stamp is not None:
        with contextlib.suppress(RuntimeError):  # no folder to keep it in
            dispatcher._cache = StampedCache(function, f"{stamp} {allocates} {packed} {from_python}")
    dispatcher.compile(signature)
    dispatcher.disable_compile()
    return dispatcher


class FunctionPointer(types.WrapperAddressProtocol):  # type: ignore[misc]
    """A compiled function as a function-pointer argument; Numba would look its address up anew at every call."""

    def __init__(self, compiled: Any) -> None:
        (result,) = compiled.overloads.values()
        self._keeps_alive = compiled
        self._signature = result.signature
        self.type = types.FunctionType(result.signature)
        self._address = self.address_of(compiled)

    @staticmethod
    def address_of(compiled: Any) -> int:
        """Where the form of the function is that takes its arguments by value."""
        (result,) = compiled.overloads.values()
        return address_in(result, result.fndesc.llvm_cfunc_wrapper_name)

    def __wrapper_address__(self) -> int:
        return self._address

    def signature(self) -> Signature:
        """Numba's signature of the function."""
        return self._signature


class PartPointer(FunctionPointer):
    """A part, compiled to be handed its arguments, as an argument of the engine."""

    address_of = staticmethod(packed_address)


@typeof_impl.register(FunctionPointer)
def type_of_pointer(pointer: FunctionPointer, context: Any) -> types.FunctionType:
    """The pointer's type, which Numba would make anew for every block that is advanced."""
    return pointer.type
