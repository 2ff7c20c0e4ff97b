"""A driver that pretends: device memory is the host's, copies copy, and launches are noted in place of being run."""

import contextlib
import ctypes
from types import SimpleNamespace

import numpy as np


def pretend(monkeypatch):
    """Put it in the real one's place. Returns the list of launches: (blocks, threads, stream, arguments)."""
    from numba.cuda import api, codegen
    from numba.cuda.cudadrv import devices, driver

    from toolkit._engine.cuda import device

    cuda, launches, count = device.cuda, [], iter(range(1, 10**6))
    alive = []

    def memory(n_bytes):
        """So many bytes, filled with what no result should show."""
        alive.append(np.full(n_bytes, 0x7F, np.uint8))
        pointer = driver.binding.CUdeviceptr(alive[-1].ctypes.data)
        return driver.MemoryPointer(context=here, pointer=pointer, size=n_bytes, owner=alive[-1])

    def copy(target, source, n_bytes, stream=None):
        ctypes.memmove(int(target), int(source), n_bytes)

    here = SimpleNamespace(
        device=SimpleNamespace(compute_capability=(9, 0), name=b"pretended", id=0, MULTIPROCESSOR_COUNT=132),
        memalloc=memory,
        memhostalloc=lambda n_bytes: np.zeros(n_bytes, np.uint8),
        create_stream=lambda: driver.Stream(driver.binding.CUstream(next(count))),
        create_event=lambda timing=True: driver.Event(driver.binding.CUevent(next(count))),
        get_memory_info=lambda: SimpleNamespace(free=10**9, total=10**9),
        deallocations=SimpleNamespace(clear=lambda: None),
    )
    for name in ("cuMemcpyHtoD", "cuMemcpyHtoDAsync", "cuMemcpyDtoH", "cuMemcpyDtoHAsync"):
        monkeypatch.setitem(vars(driver.driver), name, copy)
    for name in ("cuEventRecord", "cuEventSynchronize", "cuStreamWaitEvent", "cuStreamSynchronize"):
        monkeypatch.setitem(vars(driver.driver), name, lambda *given: None)
    monkeypatch.setattr(devices._runtime, "ensure_context", contextlib.nullcontext)
    for module in (devices, cuda.dispatcher):
        monkeypatch.setattr(module, "get_context", lambda *given: here, raising=False)
    for module in (cuda, api):
        monkeypatch.setattr(module, "current_context", lambda *given: here)
    for module in (cuda, cuda.dispatcher):
        monkeypatch.setattr(module, "get_current_device", lambda: here.device)
    monkeypatch.setattr(cuda, "is_available", lambda: True)
    monkeypatch.setattr(cuda.dispatcher._Kernel, "bind", lambda kernel: None)

    def launch(stream, config, kernel, *arguments):
        launches.append((tuple(config.grid), tuple(config.block), int(stream.handle), arguments))

    monkeypatch.setattr(cuda.dispatcher, "launch", launch)
    monkeypatch.setattr(
        codegen.CUDACodeLibrary,
        "get_cufunc",
        lambda self: SimpleNamespace(kernel=None, attrs=SimpleNamespace(local=64)),
    )
    return launches
