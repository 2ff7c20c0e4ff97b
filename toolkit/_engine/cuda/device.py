"""All access to ``numba.cuda``: availability, memory, arrays, streams and launches.

The code of threads is in ``kernel``, ``transfers`` and ``accumulators``, which import ``cuda`` from here, because the
simulator needs it among a kernel's globals; ``compiling`` compiles them, and ``engine`` is the host's code.
"""

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from numba import config, cuda
from numpy.typing import NDArray

from ...errors import CudaError, how_to_install

SIMULATED = bool(config.ENABLE_CUDASIM)
MOST_THREADS = 2048  # on a multiprocessor at a time
BLOCK, SMALL_BLOCK = 128, 32  # threads in a block

Array = NDArray[Any]
__all__ = ["cuda"]  # for the modules that define kernels


def check_available() -> None:
    """Raise CudaError where kernels cannot be compiled, or there is no device to run them on."""
    if SIMULATED:
        return
    from numba.cuda.cudadrv import nvvm

    if not nvvm.is_available():
        raise CudaError(f'backend "cuda" needs NVIDIA\'s compiler: {how_to_install("cuda")}; or use backend="cpu"')
    check_numpy()
    if not cuda.is_available():
        raise CudaError(
            'backend "cuda" needs an NVIDIA GPU and its driver, and none is found; use backend="cpu", or set '
            "NUMBA_ENABLE_CUDASIM=1 before Python starts to try a small run in Numba's simulator"
        )
    try:
        cuda.current_context().get_memory_info()
    except Exception as error:  # exceptions of the driver: a fork of a process that has used it, a device in use, …
        raise CudaError(f'backend "cuda" cannot use the GPU ({error}); use backend="cpu"') from error


def check_numpy() -> None:
    """Raise CudaError where numba-cuda needs a function that NumPy no longer has, as 0.30 does of NumPy 2.5."""
    try:
        import numba.cuda.cudaimpl  # noqa: F401  # which the first compilation imports
    except ImportError:  # a later numba-cuda has it elsewhere
        return
    except AttributeError as error:
        raise CudaError(
            f'backend "cuda" needs a numba-cuda that runs with NumPy {np.__version__} ({error}), or an older NumPy: '
            f'{how_to_install("cuda")}; or use backend="cpu"'
        ) from error


def is_here() -> bool:
    """Whether there is a usable GPU; False for the simulator."""
    try:
        check_available()
    except CudaError:
        return False
    return not SIMULATED


def name() -> str:
    """The device's name."""
    if SIMULATED:
        return "simulator"
    device_name = cuda.get_current_device().name
    return device_name.decode() if isinstance(device_name, bytes) else str(device_name)


def free_memory() -> int:
    """Bytes free on the device; 2⁶² in the simulator, which uses the host's memory."""
    if SIMULATED:
        return 2**62
    context = cuda.current_context()
    context.deallocations.clear()  # memory of earlier runs is freed with a delay
    return int(context.get_memory_info().free)


def launch(kernel: Any, blocks: Any, threads: Any, stream: Any, arguments: tuple[Any, ...]) -> None:
    """Queue a compiled kernel, without Numba's warning about few blocks, which few chains need."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        configured = kernel[blocks, threads, stream]
    configured(*arguments)


def argument_tuple(arrays: Iterable[Any]) -> tuple[Any, ...]:
    """Arrays of the device as one argument of a kernel; in the simulator, as the NumPy arrays inside."""
    return tuple(array._ary if SIMULATED and not np.isscalar(array) else array for array in arrays)


def device_array(shape: Any, dtype: Any) -> Any:
    """An array on the device, of at least one element, uninitialised."""
    return cuda.device_array(tuple(max(1, n) for n in np.atleast_1d(shape)), dtype)


def to_device(array: Array) -> Any:
    """A copy of ``array`` on the device; with one element if ``array`` is empty."""
    host = np.ascontiguousarray(array)
    return cuda.to_device(host if host.size else np.zeros([max(1, n) for n in host.shape], host.dtype))


def pinned_array(shape: Any, dtype: Any) -> Array:
    """A page-locked array on the host, to which the device copies while it computes."""
    return np.asarray(cuda.pinned_array(tuple(max(1, n) for n in np.atleast_1d(shape)), dtype))


def stream() -> Any:
    """A stream: a queue of work for the device."""
    return cuda.stream()


def event() -> Any:
    """An event: a mark in a stream to wait for."""
    return cuda.event()


def n_processors() -> int:
    """Multiprocessors of the device."""
    return 1 if SIMULATED else int(cuda.get_current_device().MULTIPROCESSOR_COUNT)


def memory_of_threads(kernel: Any) -> int:
    """Bytes of local memory that the device reserves for all threads of a kernel that can run at a time."""
    if SIMULATED:
        return 0
    (compiled,) = kernel.overloads.values()
    return int(compiled.local_mem_per_thread) * n_processors() * MOST_THREADS


def blocks_of(n_threads: int) -> tuple[int, int]:
    """Blocks, and threads in each, for ``n_threads``: small blocks where large ones would leave processors idle."""
    if SIMULATED:
        return n_threads, 1
    size = BLOCK if n_threads >= 4 * BLOCK * n_processors() else SMALL_BLOCK
    return -(-n_threads // size), size
