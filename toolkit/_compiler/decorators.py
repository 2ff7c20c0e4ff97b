"""Compile a part once to machine code for a fixed signature, and cache it on disk; stale code is never loaded.

The key of a cached function holds a hash of all sources of this package and of the packages of the function and all
compiled functions it calls, their code, and the values they read (``disk_cache``), so any edit causes recompilation.
"""

import contextlib
import ctypes
import weakref
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

from numba import config, njit, types
from numba.extending import typeof_impl

from ..errors import Unavailable, names_removed_folder
from .argument_pack import PackedCompiler, PackedLower, address_in, packed_address
from .disk_cache import CodeFile, cache_stamp, check_private, own_stamp
from .function_digest import stored_name
from .lowering import (
    NoInlineLower,
    OwnLibrary,
    WideCompiler,
    WideLower,
    compiler_with,
    forget_source,
    holds_addresses,
    load_compiled,
    njit_unwrapped,
    reduce_compiled,
    without_collections,
)
from .numba_private import (
    CompileResultCacheImpl,
    FunctionCache,
    NullCache,
    Signature,
    cpu_target,
    global_compiler_lock,
)
from .per_function import cached_per_function, is_made, results_of
from .pickling import set_recipe

# Decorators of the functions that parts call. They do not count references to arrays, because the atomic increments
# would cost more than the arithmetic; so a kernel cannot allocate. Division by zero gives inf or nan, as in IEEE 754.
kernel = njit_unwrapped(WideCompiler, error_model="numpy", _nrt=False)
INLINE = {"forceinline": True, "error_model": "numpy", "_nrt": False}  # also ``jit_options`` of overloads
inlined = njit_unwrapped(WideCompiler, **INLINE)
# For long functions that are called in many places. Without it, Numba would apply the caller's ``forceinline`` to them.
noinline = njit_unwrapped(compiler_with(NoInlineLower), forceinline=False, error_model="numpy", _nrt=False)


class OwnEngines(CompileResultCacheImpl):  # type: ignore[misc]
    """How Numba's cache stores compiled functions; each that is loaded gets an engine of its own."""

    def reduce(self, cres: Any) -> Any:
        """What is stored."""
        return reduce_compiled(cres)

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        """The compiled function; None where it must be compiled again."""
        return load_compiled(target_context, payload)

    def check_cachable(self, cres: Any) -> bool:
        """Whether another process can run it; unlike Numba's, without a warning."""
        return all(one.can_cache for one in cres.lifted) and not holds_addresses(cres.library)


class StampedCache(FunctionCache):  # type: ignore[misc]
    """Numba's disk cache of one function, with a hash of all that its code depends on (``stamp``) in the key."""

    _impl_class = OwnEngines
    most: int | None = None  # files of functions of one name
    warns = True  # where others may write to the folder

    def __init__(self, function: Callable[..., Any], stamp: str) -> None:
        super().__init__(function)
        check_private(Path(self.cache_path).resolve(), Path(function.__code__.co_filename), warns=self.warns)
        self._cache_file: Any = CodeFile(self._cache_file, self.most)
        self.stamp = stamp

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function; None where it is not on disk. Numba's would first import all that it compiles from."""
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        return (*super()._index_key(sig, codegen), self.stamp)

    def holds(self, signature: Signature) -> bool:
        """Whether there is a file for ``signature``; it may be damaged."""
        return bool(self._cache_file.has(self._index_key(signature, cpu_target.target_context.codegen())))


class OwnCache(StampedCache):
    """As ``StampedCache``, for functions of scripts and notebooks, and inner ones: those of each name used last.

    Numba's own key is left out: it has the addresses of what a function encloses, which differ between processes.
    """

    most = 256
    warns = False

    def __init__(self, function: Callable[..., Any], stamp: str) -> None:
        super().__init__(with_file(function), stamp)

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        return (sig, codegen.magic_tuple(), self.stamp)


def with_file(function: Any) -> Any:
    """``function``, or what stands for one that a text defined: its machine code is kept beside this file."""
    code = function.__code__
    if not code.co_filename.startswith("<") or code.co_filename.startswith("<ipython-"):
        return function
    stand_in = FunctionType(code.replace(co_filename=__file__), {}, closure=function.__closure__)
    stand_in.__qualname__ = function.__qualname__
    return stand_in


class LaterCache(NullCache):  # type: ignore[misc]
    """The ``OwnCache`` of a function, made when it is compiled, by what it reads then."""

    def __init__(self, dispatcher: Any) -> None:
        self._dispatcher = weakref.ref(dispatcher)
        self._cache: Any = NullCache()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function; None where it is not on disk."""
        dispatcher: Any = self._dispatcher()
        stamp, self._cache = own_stamp(dispatcher), NullCache()
        if stamp is not None:
            with contextlib.suppress(RuntimeError):  # no folder to write the cache to
                self._cache = OwnCache(dispatcher.py_func, stamp)
        return self._cache.load_overload(sig, target_context)

    def save_overload(self, sig: Any, cres: Any) -> None:
        """Write what was compiled since ``load_overload``."""
        self._cache.save_overload(sig, cres)


def kept(dispatcher: Any) -> Any:
    """``dispatcher`` itself: what Python calls of it is kept on disk from now on, by all that it reads then."""
    dispatcher._cache = LaterCache(dispatcher)
    return dispatcher


# By ``stored_name`` of functions: constants that need another value in float32, and that value.
FLOAT32_NUMBERS: dict[str, dict[float, float]] = {}


def in_float32(numbers: dict[float, float]) -> Callable[[Any], Any]:
    """Decorator of a function that reads constants which its float32 twin cannot hold: ``numbers`` has their values."""

    def noted(function: Any) -> Any:
        FLOAT32_NUMBERS[stored_name(function)] = numbers
        return function

    return noted


def set_linked_form(function: Any, make: Callable[[], Callable[..., Any]]) -> None:
    """Have ``compile_part`` compile what ``make`` returns instead of ``function``: the same to the bit, and sooner.

    It calls ``shared_code``. What else is compiled takes ``function`` itself, whose calls are all inlined.
    """
    results_of(function)[set_linked_form] = make


def has_linked_form(function: Any) -> bool:
    """Whether ``set_linked_form`` gave ``function`` one."""
    return set_linked_form in results_of(function)


def linked_form(function: Any) -> Any:
    """What ``compile_part`` compiles of ``function``."""
    return results_of(function)[set_linked_form]() if has_linked_form(function) else function


# By whether arguments are packed, and whether the code belongs to no package, and is freed with its function.
COMPILERS = {
    (False, False): WideCompiler,
    (False, True): compiler_with(WideLower, OwnLibrary),
    (True, False): PackedCompiler,
    (True, True): compiler_with(PackedLower, OwnLibrary),
}


@cached_per_function
def compile_part(
    function: Callable[..., Any],
    signature: Signature,
    *,
    allocates: bool = False,
    packed: bool = False,
    from_python: bool = True,
) -> Any:
    """``function`` compiled for ``signature``, to run without the GIL; allocates: it may create arrays.

    packed: add the entry point that the engine calls, with packed arguments (``argument_pack``).
    from_python: whether Python calls it too. The function holds the result itself, so it must be ``binding.bound``.
    Functions are cached on disk, those of a script or notebook by what they read in memory, unless they read an object
    that only its identity describes; and the machine code of these is freed with them.
    Raises UnavailableError for a function that a loaded run only names, ValueError where the result would have no entry
    point, RuntimeError where NUMBA_DISABLE_JIT is set.
    """
    if isinstance(function, Unavailable):
        function()
    if not (packed or from_python):
        raise ValueError("from_python must be True for a part that is not packed: nobody could call it")
    if config.DISABLE_JIT:
        raise RuntimeError("NUMBA_DISABLE_JIT is set, and parts run as machine code alone: unset it to sample")
    with global_compiler_lock:  # until it is linked, no other thread gives a symbol of its linked form another address
        compiler = COMPILERS[packed, cache_stamp(function) is None]
        dispatcher = njit(
            nogil=True, error_model="numpy", _nrt=allocates, no_cfunc_wrapper=not packed,
            no_cpython_wrapper=not from_python, pipeline_class=compiler,
        )(linked_form(function))  # fmt: skip
        cache = cache_of_part(function, allocates=allocates, packed=packed, from_python=from_python)
        if cache is not None:
            dispatcher._cache = cache
        with names_removed_folder(), without_collections():
            dispatcher.compile(signature)
    dispatcher.disable_compile()
    forget_source(dispatcher)
    set_recipe(
        dispatcher, compile_part, function, signature, allocates=allocates, packed=packed, from_python=from_python
    )
    return dispatcher


def cache_of_part(
    function: Callable[..., Any], *, allocates: bool = False, packed: bool = False, from_python: bool = True
) -> StampedCache | None:
    """The disk cache of a part; None where nothing describes it, or there is no folder to write to."""
    stamp, cache = cache_stamp(function), StampedCache
    if stamp is None:
        cache, stamp = OwnCache, own_stamp(function)
    if stamp is not None:
        with contextlib.suppress(RuntimeError):  # no folder to write the cache to
            return cache(function, f"{stamp} {allocates} {packed} {from_python}")
    return None


def stamp_of(compiled: Any) -> str | None:
    """What says all that the code of a part depends on, as its key on disk; None where it is not kept there."""
    cache = compiled._cache
    return cache.stamp if isinstance(cache, StampedCache) else None


def is_kept(function: Callable[..., Any], **options: bool) -> bool:
    """Whether ``compile_part`` with these options keeps it on disk."""
    return cache_of_part(function, **options) is not None


def is_compiled(function: Callable[..., Any], signature: Signature, **options: bool) -> bool:
    """Whether ``compile_part`` has compiled it with these options in this process, or finds it on disk."""
    if is_made(compile_part, function, signature, **options):
        return True
    cache = None if isinstance(function, Unavailable) else cache_of_part(function, **options)
    return cache is not None and cache.holds(signature)


class FunctionPointer(types.WrapperAddressProtocol):  # type: ignore[misc]
    """A compiled function as a function-pointer argument; its ``address`` is looked up once, not at every call."""

    def __init__(self, compiled: Any) -> None:
        (result,) = compiled.overloads.values()
        self._keeps_alive = compiled
        self._signature = result.signature
        self.type = types.FunctionType(result.signature)
        self.address = self.address_of(compiled)

    @staticmethod
    def address_of(compiled: Any) -> int:
        """The address of the entry point that takes its arguments by value."""
        (result,) = compiled.overloads.values()
        return address_in(result, result.fndesc.llvm_cfunc_wrapper_name)

    def __wrapper_address__(self) -> int:
        return self.address

    def signature(self) -> Signature:
        """Numba's signature of the function."""
        return self._signature


class PartPointer(FunctionPointer):
    """A part with its packed entry point, which the engine calls by its address."""

    address_of = staticmethod(packed_address)


@cached_per_function
def part_pointer(compiled: Any) -> PartPointer:
    """The pointer to a compiled part, which the part holds itself."""
    return PartPointer(compiled)


# Stands for the address of a part that a run does not have: ``Py_IsInitialized`` could be called, as it reads no
# argument and needs no lock.
NO_PART = ctypes.cast(ctypes.pythonapi.Py_IsInitialized, ctypes.c_void_p).value or 0


@typeof_impl.register(FunctionPointer)
def type_of_pointer(pointer: FunctionPointer, context: Any) -> types.FunctionType:
    """The pointer's type, made once, not for every block that is advanced.

    Numba imports ``function_type`` in the first call with such an argument, and that registers types as this does. If
    it did so in one of several threads, another that looked a type up just then would fail; so it is imported above.
    """
    return pointer.type
