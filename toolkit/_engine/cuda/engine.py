"""The engine on a CUDA device: the state goes there once, chunks run there in pieces, and what is wanted comes home."""

from collections.abc import Iterator
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...accumulators.interface import State as AccumulatorState
from ...schedules import Factors
from .. import settings
from ..recording import STATISTICS
from ..state import Block, Outputs, by_chain
from . import device
from .accumulators import DeviceAccumulation
from .inspection import made_of, one_block
from .kernel import Kinds, Plan, Scalars, Shape, Stored, Tables, Written, float_columns, integer_columns
from .refusals import chain_kernel_of
from .transfers import Export, Piece, pieces_of, room_for

if TYPE_CHECKING:
    from ..job import Job

# All chains' state on a CUDA device: where each field of the host's lies there, and its way there and home.

Array = NDArray[Any]


class StateOnDevice:
    """Room on the device for the state of the host's ``block``, which holds all chains.

    arrays: as the kernel takes them. is_there: the state is on the device. is_home: and the host's is the same.
    """

    def __init__(self, block: Block, shape: Shape, kinds: Kinds, n_chains: int) -> None:
        self._block, self._shape, self._n_chains = block, shape, n_chains
        self.is_there, self.is_home = False, True
        n, far_scratch = n_chains, shape.scratch > 0 and not shape.scratch_is_local
        self.arrays = (
            device.device_array((total(float_columns(shape)), n), np.float64),
            device.device_array((total(integer_columns(shape)), n), np.int64),
            device.device_array((4 * shape.bins, n if shape.bins else 1), np.float64),
            device.device_array((2 * shape.coupling_bins, shape.replicas, n if shape.coupling_bins else 1), np.float64),
            device.device_array((shape.scratch, shape.replicas, n if far_scratch else 1), kinds.target),
            device.device_array((shape.distances, n if shape.distances else 1), kinds.real),
        )

    def _columns(self) -> Iterator[tuple[int, str, slice]]:
        """Number of the state's array, name and rows of every field of a chain."""
        for number, places in enumerate((float_columns(self._shape), integer_columns(self._shape))):
            for name, column in places.items():
                if column.size:
                    yield number, name, slice(column.first, column.first + column.size)

    def _by_chain(self, name: str) -> Array:
        """A view of a field of the host's state, chains first."""
        return by_chain(self._block.state, name, self._n_chains, self._shape.replicas)

    def _tables(self) -> Iterator[tuple[int, str, slice]]:
        """Number of the state's array, name and rows of every large field."""
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
        """The host's state to the device."""
        hosts = [np.zeros(array.shape, array.dtype) for array in self.arrays[:5]]
        for number, name, rows in self._columns():
            hosts[number][rows] = self._by_chain(name).reshape(self._n_chains, -1).T
        for number, name, rows in self._tables():
            hosts[number][rows] = np.moveaxis(self._by_chain(name), 0, -1)
        for array, host in zip(self.arrays, hosts, strict=False):
            array.copy_to_device(host)
        self.is_there = True

    def fetch(self) -> None:
        """The device's state to the host."""
        hosts = [array.copy_to_host() for array in self.arrays[:5]]
        for number, name, rows in self._columns():
            values = self._by_chain(name)
            values[...] = hosts[number][rows].T.reshape(values.shape)
        for number, name, rows in self._tables():
            self._by_chain(name)[...] = np.moveaxis(hosts[number][rows], -1, 0)
        self.is_home = True


def state_size(shape: Shape) -> int:
    """Numbers, of 8 bytes each, that a chain's state takes on the device."""
    size = total(float_columns(shape)) + total(integer_columns(shape)) + 4 * shape.bins + shape.distances
    size += 2 * shape.coupling_bins * shape.replicas
    return size + (0 if shape.scratch_is_local else shape.scratch * shape.replicas)


def total(columns: dict[str, Any]) -> int:
    """Numbers in a chain's column."""
    return sum(int(column.size) for column in columns.values())


Integers = NDArray[np.int64]

ROOM = 2**28  # bytes, at most, of what goes home of a piece: draws with what is beside them, or the trace
SHARE = 8  # of the device's free memory, for a piece's draws
PIECES = 4  # of a chunk whose draws go home: those of one travel while the next runs


class DeviceEngine:
    """The compiled kernel with one run's parts, numbers and state, ready to advance all chains at once.

    wants_draws: whether draws go home. states: of the job's accumulators, on the host. Raises TypeError where a part
    does not compile for CUDA, ValueError where the state, or those of accumulators, do not fit into the device's
    memory.
    """

    counts_by_chunk = False

    def __init__(self, job: "Job", wants_draws: bool, states: dict[str, AccumulatorState]) -> None:
        problem, sampler = job.problem, job.sampler
        self._n_replicas, self._wants_draws = sampler.n_replicas, wants_draws
        self.n_chains = len(job.init)
        self.threads = job.threads  # for accumulators on the host
        self._block = one_block(job, self.n_chains)
        parts, self._shape, numbers, kinds = made_of(job, self._block)
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
        tables = (np.zeros(0), np.zeros(0, np.int32)) if domain is None else (domain.real, domain.whole)
        own = problem.target.parameters.astype(kinds.target), np.array(sampler.dynamics.parameters, self._real)
        arrays: list[Array] = [*own, tempering_parameters, *tables]
        given = Tables(*device.argument_tuple(device.to_device(values) for values in arrays))
        self._given = (Scalars(*scalars), given)
        self._exports = self._make_exports(job)
        self._free = device.free_memory() - self._accumulation.n_bytes
        self._compute, self._copies = device.stream(), device.stream()
        self._events = [(device.event(), device.event()) for _ in range(2)]

    def _check_room(self, job: "Job") -> None:
        """Raise ValueError where the chains' state does not fit into the device's memory."""
        draw = (3 if self._wants_draws else 1) * job.n_kept * self._shape.dim  # and its two buffers on the way home
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
            Export(len(job.trace_fields) * traces, replicas, n, self._real),
            Export(self._shape.bins * traces, 1, n, np.float64),
        )

    def _arguments(self, first: int, plan: tuple[Any, ...]) -> tuple[Any, ...]:
        """The kernel's arguments for steps from ``first`` on; plan: two factors and two slots of each."""
        written = Written(*device.argument_tuple(export.raw for export in self._exports))
        stored = Stored(*device.argument_tuple(self._state.arrays))
        return (*self._given, Plan(np.int64(first), *device.argument_tuple(plan)), stored, written, self._diverged)

    @property
    def blocks(self) -> list[Block]:
        """All chains in one block, as they stand after the last chunk."""
        if not self._state.is_home:
            self._state.fetch()
        return [self._block]

    def fetch_accumulated(self) -> None:
        """Bring the host's states of accumulators up to date."""
        self._accumulation.fetch(self._compute)

    def run(
        self, pool: Executor | None, first: int, factors: Factors, slots: Integers, trace_slots: Integers,
        outputs: Outputs,
    ) -> None:  # fmt: skip
        """As ``CpuEngine.run``."""
        if not self._state.is_there:
            self._state.send()
        goes_home = self._wants_draws
        draws, moments = self._exports[:4], self._exports[4:]
        longest = -(-slots.size // PIECES) if goes_home and (slots >= 0).any() else slots.size
        most = self._free // SHARE
        home = min(ROOM, most)
        most_draws, most_moments = room_for(draws, home if goes_home else most), room_for(moments, home)
        pieces = pieces_of(slots, trace_slots, longest, most_draws, most_moments)
        kept = first + np.flatnonzero(slots >= 0)
        for export in draws:
            export.make_room(max(piece.n_draws for piece in pieces), goes_home)
        for export in moments:
            export.make_room(max(piece.n_moments for piece in pieces), True)
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
        self._state.is_home = False
        raws, filled = (draws[0].raw, draws[1].raw, draws[2].raw), 0
        under_way: tuple[int, Piece] | None = None
        for number, piece in enumerate(pieces):
            self._launch(first, piece, plan)
            if piece.n_draws:
                own = slice(filled, filled + piece.n_draws)
                self._accumulation.add_draws(raws, kept[own], device_kept[own], self._compute)
                filled = own.stop
            self._leave(number % 2, piece, goes_home)
            if under_way is not None:
                self._arrive(*under_way, outputs, goes_home)
            under_way = (number % 2, piece)
        if under_way is not None:
            self._arrive(*under_way, outputs, goes_home)
        self._compute.synchronize()
        self.may_have_diverged = bool(self._diverged.copy_to_host()[0])

    def _launch(self, first: int, piece: Piece, plan: list[Any]) -> None:
        """Begin a piece."""
        own = tuple(values[piece.first : piece.last] for values in plan)
        blocks, threads = device.blocks_of(self.n_chains)
        device.launch(self._kernel, blocks, threads, self._compute, self._arguments(first + piece.first, own))

    def _leave(self, turn: int, piece: Piece, goes_home: bool) -> None:
        """Send home what a piece will have filled."""
        computed, copied = self._events[turn]
        counts = [piece.n_draws * goes_home] * 4 + [piece.n_moments] * 2
        for export, n in zip(self._exports, counts, strict=True):
            export.leave(turn, n, self._compute)
        computed.record(self._compute)
        computed.wait(self._copies)
        for export, n in zip(self._exports, counts, strict=True):
            export.travel(turn, n, self._copies)
        copied.record(self._copies)

    def _arrive(self, turn: int, piece: Piece, outputs: Outputs, goes_home: bool) -> None:
        """Wait for what a piece has sent home, and put it where it belongs."""
        self._events[turn][1].synchronize()
        n, m = piece.n_draws * goes_home, piece.n_moments
        draws, moments = slice(piece.draw, piece.draw + n), slice(piece.moment, piece.moment + m)
        targets: tuple[Array, ...] = (
            outputs.draws[:, :, draws], outputs.energies[:, :, draws, None], outputs.weights[:, :, draws, None],
            outputs.statistics[:, :, draws], outputs.trace[:, :, moments], outputs.theta[:, None, moments],
        )  # fmt: skip
        for export, target, count in zip(self._exports, targets, [n] * 4 + [m] * 2, strict=True):
            export.arrive(turn, count, target)


def check_threads(job: "Job", kernel: Any) -> None:
    """Raise ValueError where what threads keep besides their registers does not fit into the device's memory."""
    need, free = device.memory_of_threads(kernel), device.free_memory()
    if need > free:
        n, dim = job.sampler.n_replicas, job.problem.target.dim
        raise ValueError(
            f"backend must be 'cpu' for chains of {n} replicas in {dim} dimensions: what a GPU's threads keep takes "
            f"{need / 1e9:.3g} GB, of {free / 1e9:.3g} GB that are free"
        )
