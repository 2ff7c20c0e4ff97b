"""The engine on a CUDA device: the state is copied to it once, chunks run in pieces, outputs are copied back."""

from collections.abc import Iterator
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...accumulators.interface import State as AccumulatorState
from ...samplers.sampler import coordinate_scales
from ...schedules import Factors
from .. import settings
from ..recording import STATISTICS
from ..state import Block, Outputs, by_chain, copy_stored, put_back, with_target
from . import device
from .accumulators import DeviceAccumulation
from .inspection import kernel_inputs, one_block
from .kernel import Kinds, Plan, Scalars, Shape, Stored, Tables, Written, float_columns, integer_columns
from .refusals import chain_kernel_of
from .transfers import Export, Piece, moments_that_fit, pieces_of

if TYPE_CHECKING:
    from ..job import Job

# All chains' state on a CUDA device, and its copies to and from the host.

Array = NDArray[Any]


class StateOnDevice:
    """Arrays on the device for the state of the host's ``block``, which holds all chains.

    arrays: as the kernel takes them. is_sent: the state is on the device. host_is_current: and the host's is the same.
    """

    def __init__(self, block: Block, shape: Shape, kinds: Kinds, n_chains: int) -> None:
        self._block, self._shape, self._n_chains = block, shape, n_chains
        self.is_sent, self.host_is_current = False, True
        n, global_scratch = n_chains, shape.scratch > 0 and not shape.scratch_is_local
        self.arrays = (
            device.device_array((total(float_columns(shape)), n), np.float64),
            device.device_array((total(integer_columns(shape)), n), np.int64),
            device.device_array((4 * shape.bins, n if shape.bins else 1), np.float64),
            device.device_array((2 * shape.coupling_bins, shape.replicas, n if shape.coupling_bins else 1), np.float64),
            device.device_array((shape.scratch, shape.replicas, n if global_scratch else 1), kinds.target),
            device.device_array((shape.distances, n if shape.distances else 1), kinds.real),
        )

    def _columns(self) -> Iterator[tuple[int, str, slice]]:
        """Index of the array, name and rows of every small field."""
        for number, places in enumerate((float_columns(self._shape), integer_columns(self._shape))):
            for name, column in places.items():
                if column.size:
                    yield number, name, slice(column.first, column.first + column.size)

    def _by_chain(self, name: str) -> Array:
        """A view of a field of the host's state, chains first."""
        return by_chain(self._block.state, name, self._n_chains, self._shape.replicas)

    def _tables(self) -> Iterator[tuple[int, str, slice]]:
        """Index of the array, name and rows of every large field."""
        shape = self._shape
        if shape.bins:
            yield 2, "contour.table", slice(0, 2 * shape.bins)
            yield 2, "contour.late", slice(2 * shape.bins, 3 * shape.bins)
            yield 2, "contour.early", slice(3 * shape.bins, 4 * shape.bins)
        if shape.coupling_bins:
            yield 3, "continuous.bias", slice(0, shape.coupling_bins)
            yield 3, "continuous.visits", slice(shape.coupling_bins, 2 * shape.coupling_bins)
        if shape.scratch and not shape.scratch_is_local:
            yield 4, "scratch", slice(0, shape.scratch)

    def send(self) -> None:
        """Copy the host's state to the device."""
        hosts = [np.zeros(array.shape, array.dtype) for array in self.arrays[:5]]
        for number, name, rows in self._columns():
            hosts[number][rows] = self._by_chain(name).reshape(self._n_chains, -1).T
        for number, name, rows in self._tables():
            hosts[number][rows] = np.moveaxis(self._by_chain(name), 0, -1)
        for array, host in zip(self.arrays, hosts, strict=False):
            array.copy_to_device(host)
        self.is_sent = True

    def fetch(self) -> None:
        """Copy the device's state to the host."""
        hosts = [array.copy_to_host() for array in self.arrays[:5]]
        for number, name, rows in self._columns():
            values = self._by_chain(name)
            values[...] = hosts[number][rows].T.reshape(values.shape)
        for number, name, rows in self._tables():
            self._by_chain(name)[...] = np.moveaxis(hosts[number][rows], -1, 0)
        self.host_is_current = True


def state_size(shape: Shape) -> int:
    """Numbers, of 8 bytes each, that a chain's state takes on the device."""
    size = total(float_columns(shape)) + total(integer_columns(shape)) + 4 * shape.bins + shape.distances
    size += 2 * shape.coupling_bins * shape.replicas
    return size + (0 if shape.scratch_is_local else shape.scratch * shape.replicas)


def total(columns: dict[str, Any]) -> int:
    """Numbers in a chain's column."""
    return sum(int(column.size) for column in columns.values())


Integers = NDArray[np.int64]

HOST_BYTES = 2**28  # at most, of a piece's draws with what is recorded with them, or of its trace, for the host
SHARE = 8  # a piece's draws take at most this part of the device's free memory
PIECES = 4  # of a chunk whose draws the host needs: one is copied while the next runs


class DeviceEngine:
    """The compiled kernel with one run's parts, numbers and state, ready to advance all chains at once.

    wants_draws: whether the host needs draws. states: of the job's accumulators, on the host. Raises TypeError where a
    part does not compile for CUDA, ValueError where the state, or those of accumulators, do not fit into the device's
    memory.
    """

    counts_by_chunk = False

    def __init__(self, job: "Job", wants_draws: bool, states: dict[str, AccumulatorState]) -> None:
        problem, sampler = job.problem, job.sampler
        self._n_replicas, self._wants_draws = sampler.n_replicas, wants_draws
        self.n_chains = len(job.init)
        self.threads = job.threads  # for accumulators on the host
        self._block = one_block(job, self.n_chains)
        parts, self._shape, numbers, kinds = kernel_inputs(job, self._block)
        self._real, self._drawn = kinds.real, kinds.draws
        self.made_with = {"backend": "cuda", "dtype": job.dtype, "device": device.name()}
        self._accumulation = DeviceAccumulation(job, states, self._drawn)
        self._check_room(job)
        tempering_parameters = settings.tempering_parameters(job)
        self._kernel = chain_kernel_of(job, parts, self._shape, numbers, kinds)
        check_threads(job, self._kernel)
        self._state = StateOnDevice(self._block, self._shape, kinds, self.n_chains)
        self._diverged = device.to_device(np.zeros(1, np.int64))
        self.may_have_diverged = False
        domain = problem.domain
        scalars = (
            numbers.seed, np.int64(numbers.burn_in), self._real(numbers.gradient_noise),
            self._real(numbers.energy_noise), self._real(numbers.penalty), np.int64(numbers.max_bounces),
            np.int64(numbers.leapfrogs),
        )  # fmt: skip
        tables = (np.zeros(0), np.zeros(0, np.int32)) if domain is None else (domain.float_table, domain.int_table)
        own = problem.target.parameters.astype(kinds.target), np.array(sampler.dynamics.parameters, self._real)
        scale = coordinate_scales(sampler, problem.target.dim).astype(self._real)
        arrays: list[Array] = [*own, tempering_parameters, *tables, scale]
        given = Tables(*device.argument_tuple(device.to_device(values) for values in arrays))
        self._fixed = (Scalars(*scalars), given)
        self._exports = self._make_exports(job)
        self._free = device.free_memory() - self._accumulation.n_bytes
        self._compute, self._copies = device.stream(), device.stream()
        self._events = [(device.event(), device.event()) for _ in range(2)]

    def _check_room(self, job: "Job") -> None:
        """Raise ValueError where the chains' state does not fit into the device's memory."""
        draw = (3 if self._wants_draws else 1) * job.n_kept * self._shape.dim  # with two buffers for copies
        need = self.n_chains * 8 * (state_size(self._shape) + draw)
        free = device.free_memory() - self._accumulation.n_bytes
        if need > free:
            raise ValueError(
                f"n_chains must be < {self.n_chains * free // need} for the device's {free / 1e9:.3g} GB, got "
                f"{self.n_chains}, whose state takes {need / 1e9:.3g} GB"
            )

    def _make_exports(self, job: "Job") -> tuple[Export, ...]:
        """What the kernel fills, in the order of ``Outputs``."""
        n, kept, replicas, sampler = self.n_chains, job.n_kept, self._n_replicas, job.sampler
        traces = job.trace_every is not None
        return (
            Export(self._shape.dim, kept, n, self._drawn),
            Export(int(job.records_energies), kept, n, self._drawn),
            Export(int(sampler.is_weighted), kept, n, self._drawn),
            Export(len(STATISTICS) * job.keep_statistics, kept, n, np.int32),
            Export(job.n_trace_fields * traces, replicas, n, self._real),
            Export(self._shape.bins * traces, 1, n, np.float64),
        )

    def _arguments(self, first: int, plan: tuple[Any, ...]) -> tuple[Any, ...]:
        """The kernel's arguments for steps from ``first`` on; plan: the factors and slots of each step."""
        written = Written(*device.argument_tuple(export.raw for export in self._exports))
        stored = Stored(*device.argument_tuple(self._state.arrays))
        return (
            *self._fixed,
            Plan(np.int64(first), *device.argument_tuple(plan)),
            stored,
            written,
            self._diverged,
        )

    def with_problem(self, job: "Job") -> "DeviceEngine":
        """As ``CpuEngine.with_problem``; accumulators begin anew."""
        states = {name: a.start(job.problem, len(job.init)) for name, a in job.accumulators.items()}
        engine, copies = DeviceEngine(job, self._wants_draws, states), copy_stored(self.blocks, self._n_replicas)
        copies.pop("scratch", None)
        put_back([engine._block], self._n_replicas, copies)
        scratch = with_target(engine._block, job.problem.target, job.seed).state.scratch
        engine._block.state.scratch[...] = scratch
        engine.may_have_diverged = self.may_have_diverged
        return engine

    @property
    def blocks(self) -> list[Block]:
        """All chains in one block, after the last chunk."""
        if not self._state.host_is_current:
            self._state.fetch()
        return [self._block]

    def close(self) -> None:
        """Does nothing: the device's memory is freed with the engine."""

    def fetch_accumulated(self) -> None:
        """Copy the accumulators' states to the host."""
        self._accumulation.fetch(self._compute)

    def run(
        self, pool: Executor | None, first: int, factors: Factors, slots: Integers, trace_slots: Integers,
        outputs: Outputs,
    ) -> None:  # fmt: skip
        """As ``Engine.run`` has it."""
        if not self._state.is_sent:
            self._state.send()
        to_host = self._wants_draws
        draws, moments = self._exports[:4], self._exports[4:]
        longest = -(-slots.size // PIECES) if to_host and (slots >= 0).any() else slots.size
        most = self._free // SHARE
        host_bytes = min(HOST_BYTES, most)
        most_draws, most_moments = (
            moments_that_fit(draws, host_bytes if to_host else most),
            moments_that_fit(moments, host_bytes),
        )
        pieces = pieces_of(slots, trace_slots, longest, most_draws, most_moments)
        kept = first + np.flatnonzero(slots >= 0)
        for export in draws:
            export.allocate(max(piece.n_draws for piece in pieces), to_host)
        for export in moments:
            export.allocate(max(piece.n_moments for piece in pieces), True)
        own_slots, own_moments = slots.copy(), trace_slots.copy()
        for piece in pieces:
            steps = slice(piece.first, piece.last)
            own_slots[steps] -= np.where(slots[steps] >= 0, piece.draw, 0)
            own_moments[steps] -= np.where(trace_slots[steps] >= 0, piece.moment, 0)
        plan = [
            device.to_device(values)
            for values in (
                factors.step_size.astype(self._real), factors.temperature.astype(self._real), own_slots, own_moments,
            )
        ]  # fmt: skip
        device_kept = device.to_device(kept)
        self._state.host_is_current = False
        raws, filled = (draws[0].raw, draws[1].raw, draws[2].raw), 0
        in_flight: tuple[int, Piece] | None = None
        for number, piece in enumerate(pieces):
            self._launch(first, piece, plan)
            if piece.n_draws:
                own = slice(filled, filled + piece.n_draws)
                self._accumulation.add_draws(raws, kept[own], device_kept[own], self._compute)
                filled = own.stop
            self._start_copies(number % 2, piece, to_host)
            if in_flight is not None:
                self._finish_copies(*in_flight, outputs, to_host)
            in_flight = (number % 2, piece)
        if in_flight is not None:
            self._finish_copies(*in_flight, outputs, to_host)
        self._compute.synchronize()
        self.may_have_diverged = bool(self._diverged.copy_to_host()[0])

    def _launch(self, first: int, piece: Piece, plan: list[Any]) -> None:
        """Queue the kernel of a piece."""
        own = tuple(values[piece.first : piece.last] for values in plan)
        blocks, threads = device.blocks_of(self.n_chains)
        device.launch(self._kernel, blocks, threads, self._compute, self._arguments(first + piece.first, own))

    def _start_copies(self, turn: int, piece: Piece, to_host: bool) -> None:
        """Queue the copies of a piece's outputs to the host."""
        computed, copied = self._events[turn]
        counts = [piece.n_draws * to_host] * 4 + [piece.n_moments] * 2
        for export, n in zip(self._exports, counts, strict=True):
            export.transpose(turn, n, self._compute)
        computed.record(self._compute)
        computed.wait(self._copies)
        for export, n in zip(self._exports, counts, strict=True):
            export.copy_to_host(turn, n, self._copies)
        copied.record(self._copies)

    def _finish_copies(self, turn: int, piece: Piece, outputs: Outputs, to_host: bool) -> None:
        """Wait for the copies of a piece, and put them into ``outputs``."""
        self._events[turn][1].synchronize()
        n, m = piece.n_draws * to_host, piece.n_moments
        draws, moments = slice(piece.draw, piece.draw + n), slice(piece.moment, piece.moment + m)
        targets: tuple[Array, ...] = (
            outputs.draws[:, :, draws], outputs.energies[:, :, draws, None], outputs.weights[:, :, draws, None],
            outputs.statistics[:, :, draws], outputs.trace[:, :, moments], outputs.theta[:, None, moments],
        )  # fmt: skip
        for export, target, count in zip(self._exports, targets, [n] * 4 + [m] * 2, strict=True):
            export.store(turn, count, target)


def check_threads(job: "Job", kernel: Any) -> None:
    """Raise ValueError where the threads' local memory does not fit into the device's memory."""
    need, free = device.memory_of_threads(kernel), device.free_memory()
    if need > free:
        n, dim = job.sampler.n_replicas, job.problem.target.dim
        raise ValueError(
            f"backend must be 'cpu' for chains of {n} replicas in {dim} dimensions: what a GPU's threads keep takes "
            f"{need / 1e9:.3g} GB, of {free / 1e9:.3g} GB that are free"
        )
