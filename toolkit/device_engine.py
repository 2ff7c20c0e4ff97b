"""The engine on a CUDA device: the state goes there once, chunks run there in pieces, and what is wanted comes home."""

from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from . import device
from .blocks import Block
from .device_causes import chain_kernel_of
from .device_exports import Export, Piece, pieces_of, room_for
from .device_gathering import DeviceGathering
from .device_state import StateOnDevice, state_size
from .gathering import State as AccumulatorState
from .job_kernels import made_of, one_block
from .job_parts import tempering_numbers
from .recording import STATISTICS
from .schedule import Factors
from .state import Outputs

if TYPE_CHECKING:
    from .job import Job

Array = NDArray[Any]
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
        self._gathering = DeviceGathering(job, states, self._drawn)
        self._check_room(job)
        tempering_parameters = tempering_numbers(sampler, job.burn_in)[1]
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
        self._given = (*scalars, *(device.to_device(values) for values in arrays))
        self._exports = self._make_exports(job)
        self._free = device.free_memory() - self._gathering.n_bytes
        self._compute, self._copies = device.stream(), device.stream()
        self._events = [(device.event(), device.event()) for _ in range(2)]

    def _check_room(self, job: "Job") -> None:
        """Raise ValueError where the chains' state does not fit into the device's memory."""
        draw = (3 if self._wants_draws else 1) * job.n_kept * self._shape.dim  # and its two buffers on the way home
        need = self.n_chains * 8 * (state_size(self._shape) + draw)
        free = device.free_memory() - self._gathering.n_bytes
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
        raws = (export.raw for export in self._exports)
        return (*self._given, np.int64(first), *plan, *self._state.arrays, *raws, self._diverged)

    @property
    def blocks(self) -> list[Block]:
        """All chains in one block, as they stand after the last chunk."""
        if not self._state.is_home:
            self._state.fetch()
        return [self._block]

    def fetch_accumulated(self) -> None:
        """Bring the host's states of accumulators up to date."""
        self._gathering.fetch(self._compute)

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
                self._gathering.take_in(raws, kept[own], device_kept[own], self._compute)
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
