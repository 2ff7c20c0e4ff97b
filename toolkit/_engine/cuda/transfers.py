"""What a run on a device fills, and its way home: in pieces of a chunk, whose draws travel while the next one runs."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import device
from .compiling import compile_kernel, types_of
from .device import SIMULATED, cuda, launch

# The kernel that brings draws, and what is kept beside them, into the host's order.

TILE = 4 if SIMULATED else 32  # the side of a tile, which TILE_ROWS rows of threads copy
TILE_ROWS = 2 if SIMULATED else 8


def transposition(dtype: Any) -> Callable[..., None]:
    """The kernel that brings arrays of ``dtype`` into the host's order, uncompiled."""
    side, padded, height = TILE, TILE + 1, TILE_ROWS  # padded: the places of a column lie in different banks

    def transpose(source, target, n_draws):
        """target (chain · replica · draw · field) ← the first draws of source (field, draw, replica, chain).

        By tiles in shared memory, so that neighbouring threads both read and write neighbouring places.
        """
        tile = cuda.shared.array((side, padded), dtype)
        fields, replicas, chains = source.shape[0], source.shape[2], source.shape[3]
        rows = fields * replicas * n_draws
        across = (chains + side - 1) // side
        chain, row = cuda.blockIdx.x % across * side, cuda.blockIdx.x // across * side
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        for k in range(y, side, height):
            if row + k < rows and chain + x < chains:
                place, field = (row + k) // fields, (row + k) % fields
                tile[k, x] = source[field, place % n_draws, place // n_draws, chain + x]
        cuda.syncthreads()
        for k in range(y, side, height):
            if row + x < rows and chain + k < chains:
                target[(chain + k) * rows + row + x] = tile[x, k]

    return transpose


@functools.cache
def compiled_transposition(dtype: Any, kinds: tuple[Any, ...]) -> Any:
    """``transposition`` compiled for arguments of these types."""
    return compile_kernel(transposition(dtype), kinds)


def transpose(source: Any, target: Any, n_draws: int, stream: Any) -> None:
    """Put the first ``n_draws`` draws of ``source`` (field, draw, replica, chain) into ``target``.

    target: flat; it has them as (chain, replica, draw, field) afterwards.
    """
    fields, _, replicas, chains = source.shape
    arguments = (source, target, np.int64(n_draws))
    kernel = compiled_transposition(source.dtype.type, types_of(arguments))
    blocks = -(-chains // TILE) * -(-(fields * replicas * n_draws) // TILE)  # in one row: columns are 65,535 at most
    launch(kernel, blocks, (TILE, TILE_ROWS), stream, arguments)


Array = NDArray[Any]
Integers = NDArray[np.int64]


class Piece(NamedTuple):
    """Steps ``first`` … ``last − 1`` of a chunk, and the draws and moments of the trace that fall to them."""

    first: int
    last: int
    draw: int  # the first one's slot in the run's outputs
    n_draws: int
    moment: int
    n_moments: int


def pieces_of(slots: Integers, trace_slots: Integers, longest: int, most_draws: int, most_moments: int) -> list[Piece]:
    """The pieces of a chunk: of ``longest`` steps at most, with no more draws and moments than there is room for."""
    draws, moments = np.cumsum(slots >= 0), np.cumsum(trace_slots >= 0)
    pieces, first = [], 0
    while first < slots.size:
        before = [int(counts[first - 1]) if first else 0 for counts in (draws, moments)]
        fits = min(
            int(np.searchsorted(counts, begun + most, side="right"))
            for counts, begun, most in zip((draws, moments), before, (most_draws, most_moments), strict=True)
        )
        last = max(first + 1, min(first + longest, fits, slots.size))
        filled, traced = (own[own >= 0] for own in (slots[first:last], trace_slots[first:last]))
        draw, moment = (int(own[0]) if own.size else 0 for own in (filled, traced))
        pieces.append(Piece(first, last, draw, filled.size, moment, traced.size))
        first = last
    return pieces


class Export:
    """One of the engine's outputs: where the kernel writes it, and its way home by two buffers in turn.

    fields, replicas, chains: of its shape (field, moment, replica, chain) on the device; bytes of one moment.
    """

    def __init__(self, fields: int, replicas: int, chains: int, dtype: Any) -> None:
        self._shape, self._dtype = (fields, replicas, chains), np.dtype(dtype)
        self.moment_bytes = fields * replicas * chains * self._dtype.itemsize
        self._moments = 1
        self.raw = device.device_array((fields, 1, replicas, chains), self._dtype)
        self._buffers: list[tuple[Any, Array]] = []

    def make_room(self, moments: int, goes_home: bool) -> None:
        """Room for so many moments, where there is anything of a moment."""
        fields, replicas, chains = self._shape
        if moments > self._moments and self.moment_bytes:
            self._moments, self._buffers = moments, []
            self.raw = device.device_array((fields, moments, replicas, chains), self._dtype)
        if goes_home and self.moment_bytes and not self._buffers:
            size = (fields * self._moments * replicas * chains,)
            self._buffers = [
                (device.device_array(size, self._dtype), device.pinned_array(size, self._dtype)) for _ in range(2)
            ]

    def leave(self, turn: int, n: int, stream: Any) -> None:
        """Bring the first ``n`` moments into the host's order, behind the kernel that writes them."""
        if n and self.moment_bytes:
            transpose(self.raw, self._buffers[turn][0], n, stream)

    def travel(self, turn: int, n: int, stream: Any) -> None:
        """Begin to copy them to the host."""
        if n and self.moment_bytes:
            here, there = self._buffers[turn]
            size = n * self.moment_bytes // self._dtype.itemsize
            here[:size].copy_to_host(there[:size], stream=stream)

    def arrive(self, turn: int, n: int, target: Array) -> None:
        """Put them into ``target`` (chain, replica, moment, field) once they have been copied."""
        fields, replicas, chains = self._shape
        if n and self.moment_bytes:
            size = n * self.moment_bytes // self._dtype.itemsize
            target[...] = self._buffers[turn][1][:size].reshape(chains, replicas, n, fields)


def room_for(exports: tuple[Any, ...], room: int) -> int:
    """Moments of these for which ``room`` bytes are enough; one in any case."""
    return int(max(1, room // max(1, sum(export.moment_bytes for export in exports))))
