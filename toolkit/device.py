"""The one door to ``numba.cuda``: whether it is there, kernels compiled exactly, arrays and streams of the device.

What a thread does is in ``chain_kernel`` and ``device_kernels``, which take ``cuda`` from here, as the simulator wants
it among a kernel's globals; what the host does is in ``device_engine``. No product is fused with a sum but by our own
``fma``: the compiler is told so, and what it wrote is read (``contracts``), so that bits are those of the CPU.
"""

import contextlib
import importlib.metadata
import warnings
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
from numba import config, cuda, types
from numba.core.errors import NumbaError
from numba.core.extending import _Intrinsic
from numpy.typing import NDArray

from .compiling import inlined
from .device_code import Code, contracts, functions_called
from .errors import CudaError

SIMULATED = bool(config.ENABLE_CUDASIM)
MOST_THREADS = 2048  # that a multiprocessor holds at a time
REFUSALS = (NumbaError, TypeError, ValueError, NotImplementedError)  # of what cannot be compiled

Array = NDArray[Any]
__all__ = ["contracts", "cuda"]  # for the modules of kernels


def check_available() -> None:
    """Raise CudaError where kernels cannot be compiled, or there is no device to run them on."""
    if SIMULATED:
        return
    from numba.cuda.cudadrv import nvvm

    if not nvvm.is_available():
        raise CudaError('backend "cuda" needs NVIDIA\'s compiler: pip install "manymodes[cuda]"; or use backend="cpu"')
    if not cuda.is_available():
        raise CudaError(
            'backend "cuda" needs an NVIDIA GPU and its driver, and none is found; use backend="cpu", or set '
            "NUMBA_ENABLE_CUDASIM=1 before Python starts to try a small run in Numba's simulator"
        )
    try:
        cuda.current_context().get_memory_info()
    except Exception as error:  # of the driver's own kinds: a fork of a process that has used it, a device in use, …
        raise CudaError(f'backend "cuda" cannot use the GPU ({error}); use backend="cpu"') from error


def is_here() -> bool:
    """Whether there is a GPU that can be used; the simulator is none."""
    try:
        check_available()
    except CudaError:
        return False
    return not SIMULATED


def name() -> str:
    """What the device calls itself."""
    if SIMULATED:
        return "simulator"
    called = cuda.get_current_device().name
    return called.decode() if isinstance(called, bytes) else str(called)


def free_memory() -> int:
    """Bytes free on the device; as good as endless in the simulator, which has the host's."""
    if SIMULATED:
        return 2**62
    context = cuda.current_context()
    context.deallocations.clear()  # what earlier runs have left is given back late
    return int(context.get_memory_info().free)


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


def launch(kernel: Any, blocks: Any, threads: Any, stream: Any, arguments: tuple[Any, ...]) -> None:
    """Queue a compiled kernel; few blocks, of which Numba would warn, are what few chains make."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        configured = kernel[blocks, threads, stream]
    configured(*arguments)


def stamped_cache(function: Callable[..., Any], stamp: str) -> Any:
    """Numba's cache of a kernel on disk, by ``stamp``: its own key holds addresses, which another process has not."""
    from numba.cuda.dispatcher import CUDACache

    class StampedCache(CUDACache):  # type: ignore[misc]
        """The cache of one kernel."""

        def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
            return (sig, codegen.magic_tuple(), importlib.metadata.version("numba-cuda"), stamp)

    return StampedCache(function)


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


def interpreted(function: Callable[..., Any], inner: tuple[str, ...]) -> Any:
    """``function`` as Python runs it, as also those it calls that ``inner`` names; what these call is compiled.

    For the simulator, which is Python: compiling the engine's whole loop for it would take a minute.
    """
    plain: Any = getattr(function, "py_func", function)
    known = {name: plain.__globals__[name] for name in plain.__code__.co_names if name in plain.__globals__}
    called = {name: interpreted(value, inner) for name, value in known.items() if name in inner}
    called |= {name: compiled_call(value) for name, value in known.items() if isinstance(value, _Intrinsic)}
    return FunctionType(plain.__code__, {**plain.__globals__, **called}, plain.__name__)


def compiled_call(function: Any) -> Any:
    """An intrinsic as Python can call it."""

    def call(*arguments: Any) -> Any:
        return function(*arguments)

    return lazily(call)


if SIMULATED:

    def bare(array: Any) -> Any:
        """The NumPy array behind one of the simulator's, which compiled functions take."""
        return array._item._ary

else:

    @inlined
    def bare(array: Any) -> Any:
        """The array itself; the simulator has another meaning."""
        return array


def inside(function: Callable[..., Any]) -> Any:
    """``function`` as kernels call it: compiled with them, or in the simulator as Python runs it."""
    return function if SIMULATED else lazily(function)


def together(arrays: Iterable[Any]) -> tuple[Any, ...]:
    """Arrays of the device as one argument of a kernel, who sees them bare, as the simulator would not."""
    return tuple(array._ary if SIMULATED and not np.isscalar(array) else array for array in arrays)


def device_array(shape: Any, dtype: Any) -> Any:
    """An array on the device, of at least one element, uninitialised."""
    return cuda.device_array(tuple(max(1, n) for n in np.atleast_1d(shape)), dtype)


def to_device(array: Array) -> Any:
    """A copy of ``array`` on the device; one element where it has none."""
    given = np.ascontiguousarray(array)
    return cuda.to_device(given if given.size else np.zeros([max(1, n) for n in given.shape], given.dtype))


def pinned_array(shape: Any, dtype: Any) -> Array:
    """An array on the host to which the device copies while it computes."""
    return np.asarray(cuda.pinned_array(tuple(max(1, n) for n in np.atleast_1d(shape)), dtype))


def stream() -> Any:
    """A queue of work for the device."""
    return cuda.stream()


def event() -> Any:
    """A mark in a stream to wait for."""
    return cuda.event()


def n_processors() -> int:
    """Multiprocessors of the device."""
    return 1 if SIMULATED else int(cuda.get_current_device().MULTIPROCESSOR_COUNT)


def memory_of_threads(kernel: Any) -> int:
    """Bytes that the device sets aside for what a kernel's threads keep in memory, all that can be there at a time."""
    if SIMULATED:
        return 0
    (compiled,) = kernel.overloads.values()
    return int(compiled.local_mem_per_thread) * n_processors() * MOST_THREADS


def blocks_of(n_threads: int) -> tuple[int, int]:
    """Blocks, and threads in each, for ``n_threads``: small blocks where large ones would leave processors idle."""
    if SIMULATED:
        return n_threads, 1
    size = 128 if n_threads >= 4 * 128 * n_processors() else 32
    return -(-n_threads // size), size
