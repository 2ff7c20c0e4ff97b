"""Kernels compiled exactly: no product is fused with a sum but by our own ``fma``, so that bits are those of the CPU.

The compiler is told so, and what it wrote is read (``compiling.contracts``). In the simulator nothing is compiled but
what a kernel calls.
"""

import contextlib
import importlib.metadata
import re
from collections.abc import Callable, Iterator
from types import FunctionType, SimpleNamespace
from typing import Any, NamedTuple

from numba import types
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaError
from numba.core.extending import _Intrinsic

from ..._compiler.argument_pack import pack_arguments
from ..._compiler.decorators import inlined
from ..._compiler.disk_cache import CodeFile
from ..._compiler.function_digest import stored_name
from .device import SIMULATED, cuda

# What the compiler wrote for a device, read: operations that may be fused, calls, functions that are CUDA's own.

CONTRACTIBLE = re.compile(r"\b(?:add|sub|mul)\.f(?:32|64)\b")  # without ".rn", which an assembler may fuse
CALLED = re.compile(r"\bcall(?:\.uni)?\s+(?:\([^)]*\),\s*)?([^\s,;]+)")
LOCAL = re.compile(r"\b(?:ld|st)\.local\b")
OWN = re.compile(r"\bcall\b[^@\n]*@\"?__nv_(\w+)")
DEFINED = re.compile(r"^define [^\n]*(.*?)^}", re.M | re.S)
POWER = "int_power_impl"  # Numba's products for integer exponents, a CPU's too; only those above 65,536 are left to pow
# Those of CUDA's functions that have one right result: the one that a CPU has.
EXACT = frozenset(
    name + suffix
    for name in ("sqrt", "fabs", "floor", "ceil", "trunc", "rint", "fma", "copysign", "fmod", "isnan", "isinf",
                 "finite", "isfinited", "signbit", "abs", "llabs")
    for suffix in ("", "f", "d")
)  # fmt: skip


class Code(NamedTuple):
    """A kernel as text for one kind of device, and which of CUDA's own functions it calls."""

    ptx: str
    functions: tuple[str, ...]


def contracts(ptx: str) -> bool:
    """Whether an assembler may fuse operations of ``ptx`` as it likes."""
    return CONTRACTIBLE.search(ptx) is not None


def functions_called(ir: str) -> tuple[str, ...]:
    """CUDA's own functions that ``ir`` calls, without those that are exact, whose bits may not be a CPU's."""
    bodies = (found.group(1) for found in DEFINED.finditer(ir) if POWER not in found.group().partition("\n")[0])
    return tuple(sorted({name for body in bodies for name in OWN.findall(body)} - EXACT))


REFUSALS = (NumbaError, TypeError, ValueError, NotImplementedError)  # of what cannot be compiled


@contextlib.contextmanager
def unfused() -> Iterator[list[Any]]:
    """Kernels compiled meanwhile keep products and sums apart, of which Numba has no option of its own.

    Yields the libraries of what is compiled, in the order of their ends: a kernel's comes after those it calls.
    """
    libraries: list[Any] = []
    modules = [module for module in (getattr(cuda, "dispatcher", None), getattr(cuda, "compiler", None)) if module]
    plain = {module: module.compile_cuda for module in modules if hasattr(module, "compile_cuda")}

    def exactly(compile_cuda: Callable[..., Any]) -> Callable[..., Any]:
        def compiled(*arguments: Any, **options: Any) -> Any:
            options["nvvm_options"] = {**(options.get("nvvm_options") or {}), "fma": False}
            result = compile_cuda(*arguments, **options)
            libraries.append(result.library)
            return result

        return compiled

    for module, compile_cuda in plain.items():
        module.compile_cuda = exactly(compile_cuda)
    try:
        yield libraries
    finally:
        for module, compile_cuda in plain.items():
            module.compile_cuda = compile_cuda


def compile_kernel(function: Callable[..., Any], kinds: tuple[Any, ...], stamp: str | None = None) -> Any:
    """``function`` as a kernel, compiled where there is a device for arguments of these types (``types_of``).

    stamp: a hash of all that it is made of, under which it is kept on disk; None: it is not.
    """
    if SIMULATED:
        return cuda.jit(function)
    kernel = cuda.jit(function, lto=False)  # optimised again while it is linked, it would fuse what we keep apart
    with contextlib.suppress(RuntimeError):  # no folder to keep it in
        kernel._cache = stamped_cache(function, stamp) if stamp is not None else kernel._cache
    with unfused():
        kernel.compile(kinds)
    return kernel


def stamped_cache(function: Callable[..., Any], stamp: str) -> Any:
    """Numba's cache of a kernel on disk, by ``stamp``: its own key holds addresses, which another process has not."""
    kept: Any = cuda.dispatcher.CUDACache

    class StampedCache(kept):  # type: ignore[misc]
        """The cache of one kernel."""

        def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
            return (sig, codegen.magic_tuple(), importlib.metadata.version("numba-cuda"), stamp)

    cache = StampedCache(function)
    cache._cache_file = CodeFile(cache._cache_file)
    return cache


def types_of(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Numba's types of a kernel's arguments; none in the simulator, which compiles nothing."""
    if SIMULATED:
        return ()
    from numba.core.typing.typeof import Purpose, typeof

    return tuple(typeof(argument, Purpose.argument) for argument in arguments)


def ptx_of(function: Callable[..., Any], signature: Any, capability: tuple[int, int]) -> str:
    """``function`` as PTX for a device of ``capability``, such as (9, 0); no such device need be there."""
    return codes_of(function, signature, (capability,))[0].ptx


def codes_of(
    function: Callable[..., Any], signature: Any, capabilities: tuple[tuple[int, int], ...]
) -> tuple[Code, ...]:
    """``function`` as code for devices of ``capabilities``, of which none need be there; Numba's part is done once."""
    module: Any = cuda.dispatcher
    there = module.get_current_device
    module.get_current_device = lambda: SimpleNamespace(compute_capability=capabilities[0])
    try:
        with unfused() as libraries:
            cuda.compile_ptx(function, types.void(*signature), cc=capabilities[0])
    finally:
        module.get_current_device = there
    called = functions_called(libraries[-1].get_llvm_str())
    return tuple(Code("".join(libraries[-1].get_asm_strs(cc=capability)), called) for capability in capabilities)


def code_of(kernel: Any, kinds: tuple[Any, ...]) -> Code | None:
    """The code of a compiled kernel; None in the simulator, which has none."""
    if SIMULATED:
        return None
    library = kernel.overloads[kinds].library
    return Code(library.get_asm_str(), functions_called(library.get_llvm_str()))


def why_not(function: Callable[..., Any], signature: Any) -> Exception | None:
    """What Numba says where CUDA cannot compile ``function``, a part, by itself; None where it can."""
    try:
        ptx_of(getattr(function, "py_func", function), signature, (8, 0))
    except REFUSALS as error:
        return error
    return None


def strided(n: int) -> Any:
    """Numba's type of an array of ``n`` dimensions with the chain as last index, as a thread sees its part of it."""
    return types.Array(types.float64, n, "A")


def lazily(function: Callable[..., Any]) -> Any:
    """A part that CUDA kernels can call: uncompiled by the CPU, so that each device compiles its own."""
    from numba import njit

    return njit(error_model="numpy", _nrt=False)(getattr(function, "py_func", function))


def interpreted(function: Callable[..., Any], inner: frozenset[str]) -> Any:
    """``function`` as Python runs it, as also those it calls whose ``stored_name`` is in ``inner``.

    What these call is compiled. A function and its float32 twin have one name.
    For the simulator, which is Python: compiling the engine's whole loop for it would take a minute.
    """
    plain: Any = getattr(function, "py_func", function)
    known = {name: plain.__globals__[name] for name in plain.__code__.co_names if name in plain.__globals__}
    called = {name: interpreted(value, inner) for name, value in known.items() if is_one_of(value, inner)}
    called |= {name: compiled_call(value) for name, value in known.items() if isinstance(value, _Intrinsic)}
    called |= {name: pack_by_value for name, value in known.items() if value is pack_arguments}
    return FunctionType(plain.__code__, {**plain.__globals__, **called}, plain.__name__)


def is_one_of(value: Any, names: frozenset[str]) -> bool:
    """Whether ``value`` is a function, compiled or not, of one of these stored names."""
    return isinstance(value, Dispatcher | FunctionType) and stored_name(value) in names


def pack_by_value(part: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """``argument_pack.pack_arguments`` where calls are by value."""
    return arguments


def compiled_call(function: Any) -> Any:
    """An intrinsic as Python can call it."""

    def call(*arguments: Any) -> Any:
        return function(*arguments)

    return lazily(call)


if SIMULATED:

    def raw_array(array: Any) -> Any:
        """The NumPy array behind one of the simulator's, which compiled functions take."""
        return array._item._ary

else:

    @inlined
    def raw_array(array: Any) -> Any:
        """The array itself; the simulator has another meaning."""
        return array


def inside(function: Callable[..., Any]) -> Any:
    """``function`` as kernels call it: compiled with them, or in the simulator as Python runs it."""
    return function if SIMULATED else lazily(function)
