"""Accumulators on a device: they add draws in device memory, without copying them to the host.

A thread adds the draws of its chain (``accumulator_kernel``), so the results are those of the CPU bit for bit. On the
device the chain is the last index of the state's arrays, so that neighbouring threads access neighbouring addresses.
"""

import functools
import hashlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from ..._compiler.binding import bound
from ..._compiler.disk_cache import cache_stamp
from ..._compiler.numba_private import Purpose, typeof
from ...accumulators.interface import INPUTS, DrawKernel, KernelAccumulator, State
from ...errors import shown
from ..job import names_on_device
from . import device
from .compiling import compile_kernel, device_function, kernel_helper, ptx_of, raw_array
from .device import blocks_of, cuda, launch

if TYPE_CHECKING:
    from ..job import Job

# Kernels: each thread adds the draws of its chain by the accumulator's own function.


class Form(NamedTuple):
    """What an accumulator's kernel is compiled for."""

    function: Callable[..., None]
    inputs: tuple[str, ...]
    scratch: int
    n_constants: int
    n_arrays: int
    is_weighted: bool


def form_of(draw_kernel: DrawKernel, is_weighted: bool) -> Form:
    """What the kernel of ``draw_kernel`` is compiled for."""
    sizes = (draw_kernel.scratch, len(draw_kernel.constants), len(draw_kernel.state))
    return Form(bound(draw_kernel.function), draw_kernel.inputs, *sizes, is_weighted)


def item_selector(places: tuple[int, ...]) -> Any:
    """A function for kernels that selects the items at ``places`` of a tuple."""
    if not places:
        return kernel_helper(lambda items: ())
    place, rest = places[0], item_selector(places[1:])

    def choose(items):
        return (items[place], *rest(items))

    return kernel_helper(choose)


def chain_views(n: int) -> Any:
    """A function for kernels that views ``n`` arrays, whose last index is the chain, for one chain."""
    if n == 0:
        return kernel_helper(lambda arrays, own: ())
    rest = chain_views(n - 1)

    def view(arrays, own):
        return (arrays[0].T[own], *rest(arrays[1:], own))

    return kernel_helper(view)


class Raws(NamedTuple):
    """Outputs of the loop, each (field, draw · replica, chain)."""

    draws: Any
    energies: Any
    weights: Any


class Bounds(NamedTuple):
    """Indices ``first`` … ``last − 1`` of draw · replica, in steps of ``stride``; replicas: that sample the target."""

    first: Any
    last: Any
    stride: Any
    replicas: Any


def accumulator_kernel(form: Form) -> Callable[..., None]:
    """The kernel of an accumulator, uncompiled."""
    add_draws = device_function(form.function)
    choose, view = item_selector(tuple(INPUTS.index(name) for name in form.inputs)), chain_views(form.n_arrays)
    scratch_size = max(1, form.scratch)
    add_scratch = item_selector((0,)) if form.scratch else item_selector(())
    is_weighted = form.is_weighted

    def kernel(raws, steps, constants, arrays, bounds):
        thread = cuda.grid(1)
        draws, energies, weights = raws.draws, raws.energies, raws.weights
        first, last, stride = bounds.first, bounds.last, bounds.stride
        if thread >= draws.shape[2]:
            return
        own = slice(thread, thread + 1)
        scratch = cuda.local.array(scratch_size, np.float64)
        end = last if is_weighted else first
        inputs = (
            draws.T[own, first:last:stride], weights.T[own, first:end:stride, 0], energies.T[own, first:last:stride, 0],
            raw_array(steps), bounds.replicas,
        )  # fmt: skip
        add_draws(choose(inputs), constants, view(arrays, own), *add_scratch((scratch,)))

    return kernel


def argument_types(draw_kernel: DrawKernel, state: State, real: Any) -> tuple[Any, ...]:
    """Numba's types of the kernel's arguments, for draws in ``real``."""
    number, steps = types.Array(types.float64 if real is np.float64 else types.float32, 3, "C"), np.zeros(1, np.int64)
    constants = tuple(np.int64(value) if isinstance(value, int) else value for value in draw_kernel.constants)
    arrays = tuple(state[name].copy() for name in draw_kernel.state)
    of_tables = tuple(typeof(values, Purpose.argument) for values in (steps, constants, arrays))
    raws, bounds = types.NamedUniTuple(number, 3, Raws), types.NamedUniTuple(types.int64, 4, Bounds)
    return (raws, *of_tables, bounds)


@functools.cache
def compiled_accumulator(form: Form, kinds: tuple[Any, ...]) -> Any:
    """The kernel of ``form`` compiled for arguments of these types."""
    stamp = cache_stamp(form.function)
    if stamp is not None:
        stamp = hashlib.sha256(repr((stamp, form[1:])).encode()).hexdigest()
    return compile_kernel(accumulator_kernel(form), kinds, stamp)


def accumulator_ptx(
    draw_kernel: DrawKernel, state: State, is_weighted: bool, capability: tuple[int, int], real: Any = np.float64
) -> str:
    """The kernel of an accumulator as PTX for devices of ``capability``, such as (9, 0); no device is needed."""
    kinds = argument_types(draw_kernel, state, real)
    return ptx_of(accumulator_kernel(form_of(draw_kernel, is_weighted)), kinds, capability)


Array = NDArray[Any]
Integers = NDArray[np.int64]

COPY_BYTES = 2**26  # bytes of a state that are copied and transposed at a time


class Folded(NamedTuple):
    """A piece's raw outputs (field, draw · replica, chain), and where the target's draws are among them.

    kept: replicas of a draw in ``raws``. targets: how many of these, from the first, sample the target: all, or one.
    """

    raws: tuple[Any, Any, Any]  # draws, energies, weights
    kept: int
    targets: int


class DeviceState:
    """An accumulator's state on the device, where draws are added to it; ``fetch`` updates the copy ``host``."""

    def __init__(self, accumulator: KernelAccumulator, host: State, dim: int, is_weighted: bool, real: Any) -> None:
        self.host = host
        self._accumulator = accumulator
        self._draw_kernel = accumulator.draw_kernel(dim)
        kinds = argument_types(self._draw_kernel, {name: array[:1] for name, array in host.items()}, real)
        self._kernel = compiled_accumulator(form_of(self._draw_kernel, is_weighted), kinds)
        self._arrays: dict[str, Any] = {}  # by name, transposed, once they are on the device
        self._constants: tuple[Any, ...] = ()
        self._host_is_current = True

    def add_draws(self, folded: Folded, steps: Integers, device_steps: Any, stream: Any) -> None:
        """Add the draws of ``steps``, the first of ``folded``, in order with the other work of ``stream``."""
        if not self._arrays:
            self._send()
        for first, last, reads_state in self._accumulator.parts(self.host, steps):
            if last > first:
                self._launch(folded, first, last, device_steps, stream)
            if reads_state:
                self.fetch(stream)

    def _launch(self, folded: Folded, first: int, last: int, device_steps: Any, stream: Any) -> None:
        """Add draws ``first`` … ``last − 1`` of ``folded``."""
        kept, targets = folded.kept, folded.targets
        self._host_is_current = False
        bounds = (np.int64(value) for value in (first * kept, last * kept, kept // targets, targets))
        arrays = device.argument_tuple(self._arrays[name] for name in self._draw_kernel.state)
        raws = Raws(*device.argument_tuple(folded.raws))
        arguments = (raws, device_steps[first:last], self._constants, arrays, Bounds(*bounds))
        launch(self._kernel, *blocks_of(folded.raws[0].shape[2]), stream, arguments)

    def _send(self) -> None:
        """Copy the host's state to the device."""
        constants = self._draw_kernel.constants
        self._constants = device.argument_tuple(
            np.int64(value) if isinstance(value, int) else device.to_device(value) for value in constants
        )
        for name in self._draw_kernel.state:
            host = self.host[name].T
            self._arrays[name] = device.device_array(host.shape, host.dtype)
            for part in parts_of(host):
                self._arrays[name][part].copy_to_device(np.ascontiguousarray(host[part]))

    def fetch(self, stream: Any) -> None:
        """Copy the device's state to the host if that is older."""
        if self._host_is_current:
            return
        stream.synchronize()
        for name in self._draw_kernel.state:
            host = self.host[name].T
            for part in parts_of(host):
                host[part] = self._arrays[name][part].copy_to_host()
        self._host_is_current = True


def parts_of(host: Array) -> Iterator[tuple[Any, ...]]:
    """Indices of parts of a transposed state (…, chain), each of ``COPY_BYTES`` bytes at most, or one row."""
    if host.ndim == 1:
        yield (slice(None),)
        return
    rows, rows_at_once = host.shape[-2], max(1, COPY_BYTES // max(1, host.shape[-1] * host.itemsize))
    for index in np.ndindex(host.shape[:-2]):
        for first in range(0, rows, rows_at_once):
            yield (*index, slice(first, min(first + rows_at_once, rows)))


class DeviceAccumulation:
    """The accumulators of a run that are updated on its device.

    states: of all accumulators, on the host. real: the type of the device's draws. Raises ValueError where they do not
    fit into the device's memory.
    """

    def __init__(self, job: "Job", states: dict[str, State], real: Any) -> None:
        names = names_on_device(job)
        self._kept, self._targets = job.n_kept, job.sampler.n_target_replicas
        dim, is_weighted = job.problem.target.dim, job.sampler.is_weighted
        accumulators = {name: job.accumulators[name] for name in names}
        on_device = {
            name: {key: states[name][key] for key in accumulator.draw_kernel(dim).state}
            for name, accumulator in accumulators.items()
            if isinstance(accumulator, KernelAccumulator)
        }
        self.n_bytes = check_room(on_device, len(job.init))
        self._states = []
        for name, accumulator in accumulators.items():
            assert isinstance(accumulator, KernelAccumulator)
            self._states.append(DeviceState(accumulator, states[name], dim, is_weighted, real))

    def add_draws(self, raws: tuple[Any, Any, Any], steps: Integers, device_steps: Any, stream: Any) -> None:
        """Add the draws of ``steps`` from ``raws``: draws, energies and weights, each (field, draw, replica, chain).

        device_steps: the same steps, on the device.
        """
        flat: Any = tuple(raw.reshape(raw.shape[0], raw.shape[1] * raw.shape[2], raw.shape[3]) for raw in raws)
        for state in self._states:
            state.add_draws(Folded(flat, self._kept, self._targets), steps, device_steps, stream)

    def fetch(self, stream: Any) -> None:
        """Copy the device's states to the host if these are older."""
        for state in self._states:
            state.fetch(stream)


def check_room(states: dict[str, State], n_chains: int) -> int:
    """Bytes of ``states``. Raises ValueError where they do not fit into the device's memory."""
    sizes = {name: sum(array.nbytes for array in state.values()) for name, state in states.items()}
    need, free = sum(sizes.values()), device.free_memory()
    if need > free:
        largest = max(sizes, key=sizes.__getitem__)
        raise ValueError(
            f"accumulators must fit into the device's {free / 1e9:.3g} GB, got {need / 1e9:.3g} GB for n_chains="
            f"{n_chains}, of which {shown(largest)} takes {sizes[largest] / 1e9:.3g} GB; give fewer chains or cells"
        )
    return need
