"""The kernel that brings draws, and what is kept beside them, into the host's order."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .device import SIMULATED, cuda, launch
from .device_compiling import compile_kernel, types_of

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
