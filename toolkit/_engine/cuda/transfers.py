"""Outputs on a device, and their copies to the host: in pieces of a chunk, each copied while the next one runs."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import device
from .compiling import compile_kernel, types_of
from .device import SIMULATED, cuda, launch

# The kernel that transposes draws, and what is recorded with them, to the host's order.

TILE = 4 if SIMULATED else 32  # the side of a tile, copied by TILE_ROWS rows of threads
TILE_ROWS = 2 if SIMULATED else 8


def transposition(dtype: Any) -> Callable[..., None]:
    """The kernel that transposes arrays of ``dtype`` to the host's order, uncompiled."""
    side, padded, height = TILE, TILE + 1, TILE_ROWS  # padded: a column's elements are in different banks

    def transpose(source, target, n_draws):
        """target (chain · replica · draw · field) ← the first draws of source (field, draw, replica, chain).

        By tiles in shared memory, so that neighbouring threads both read and write neighbouring addresses.
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
    blocks = -(-chains // TILE) * -(-(fields * replicas * n_draws) // TILE)  # in x: y has at most 65,535
    launch(kernel, blocks, (TILE, TILE_ROWS), stream, arguments)


Array = NDArray[Any]
Integers = NDArray[np.int64]


class Piece(NamedTuple):
    """Steps ``first`` … ``last − 1`` of a chunk, and their draws and traced times."""

    first: int
    last: int
    draw: int  # the first one's slot in the run's outputs
    n_draws: int
    moment: int
    n_moments: int


def pieces_of(slots: Integers, trace_slots: Integers, longest: int, most_draws: int, most_moments: int) -> list[Piece]:
    """The pieces of a chunk: at most ``longest`` steps, ``most_draws`` draws and ``most_moments`` traced times each."""
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
    """One of the engine's outputs: the array that the kernel writes, and two buffers for alternate copies to the host.

    fields, replicas, chains: of its shape (field, moment, replica, chain) on the device; a moment is a draw or traced
    time. moment_bytes: of one moment.
    """

    def __init__(self, fields: int, replicas: int, chains: int, dtype: Any) -> None:
        self._shape, self._dtype = (fields, replicas, chains), np.dtype(dtype)
        self.moment_bytes = fields * replicas * chains * self._dtype.itemsize
        self._moments = 1
        self.raw = device.device_array((fields, 1, replicas, chains), self._dtype)
        self._buffers: list[tuple[Any, Array]] = []

    def allocate(self, moments: int, to_host: bool) -> None:
        """Allocate arrays for so many moments, if a moment is not empty."""
        fields, replicas, chains = self._shape
        if moments > self._moments and self.moment_bytes:
            self._moments, self._buffers = moments, []
            self.raw = device.device_array((fields, moments, replicas, chains), self._dtype)
        if to_host and self.moment_bytes and not self._buffers:
            size = (fields * self._moments * replicas * chains,)
            self._buffers = [
                (device.device_array(size, self._dtype), device.pinned_array(size, self._dtype)) for _ in range(2)
            ]

    def transpose(self, turn: int, n: int, stream: Any) -> None:
        """Queue the transposition of the first ``n`` moments, after the kernel that writes them."""
        if n and self.moment_bytes:
            transpose(self.raw, self._buffers[turn][0], n, stream)

    def copy_to_host(self, turn: int, n: int, stream: Any) -> None:
        """Queue their copy to the host."""
        if n and self.moment_bytes:
            source, target = self._buffers[turn]
            size = n * self.moment_bytes // self._dtype.itemsize
            source[:size].copy_to_host(target[:size], stream=stream)

    def store(self, turn: int, n: int, target: Array) -> None:
        """Store them in ``target`` (chain, replica, moment, field) after they have been copied."""
        fields, replicas, chains = self._shape
        if n and self.moment_bytes:
            size = n * self.moment_bytes // self._dtype.itemsize
            target[...] = self._buffers[turn][1][:size].reshape(chains, replicas, n, fields)


def moments_that_fit(exports: tuple[Any, ...], n_bytes: int) -> int:
    """How many moments of these outputs fit into ``n_bytes``; at least one."""
    return int(max(1, n_bytes // max(1, sum(export.moment_bytes for export in exports))))
