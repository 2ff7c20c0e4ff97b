"""A run's state by chain: read out of its blocks, and put into blocks that are laid out otherwise."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .continuous import XI
from .state import State

if TYPE_CHECKING:
    from .blocks import Block

Array = NDArray[Any]

# What a step reads that an earlier one has written. All else in a state is written before it is read, made anew with
# the blocks, or 0 while nothing has diverged; ``tests/test_snapshots.py`` fills it with nan.
BY_LANE = (
    "position", "momentum", "memory", "bounces", "fallbacks", "accepted", "scratch", "exchange.walker",
    "exchange.last_end", "continuous.rows", "continuous.bias", "continuous.visits",
)  # fmt: skip
CHAINS_LAST = (
    "exchange.attempted", "exchange.accepted", "exchange.correction", "exchange.rests", "contour.outside",
)  # fmt: skip
CHAINS_FIRST = (
    "exchange.round_trips", "contour.table", "contour.scale", "contour.late", "contour.early", "contour.mark",
)  # fmt: skip
STORED = (*BY_LANE, *CHAINS_LAST, *CHAINS_FIRST)


def by_chain(state: State, name: str, n_chains: int, n_replicas: int) -> Array:
    """A view, chains first, of what ``state`` holds under ``name``; of lanes (chain, …, replica), without padding."""
    part, _, field = name.rpartition(".")
    array: Array = getattr(getattr(state, part) if part else state, field)
    if name in CHAINS_FIRST:
        return array
    if name in CHAINS_LAST:
        return array.T
    lanes = array[..., : n_chains * n_replicas]
    if lanes.size == 0:
        return np.empty((n_chains, 0), array.dtype)
    shaped = lanes.reshape(*lanes.shape[:-1], n_replicas, n_chains)
    return shaped.transpose(array.ndim, *range(array.ndim))


def stored_names(blocks: "list[Block]", n_replicas: int) -> list[str]:
    """What a run of these blocks has to keep: all of the above that it has at all."""
    first = blocks[0]
    return [name for name in STORED if by_chain(first.state, name, first.last - first.first, n_replicas).size]


def views(blocks: "list[Block]", name: str, n_replicas: int) -> Iterator[Array]:
    """The views of all blocks in order; one after the other they make up all chains."""
    for block in blocks:
        yield by_chain(block.state, name, block.last - block.first, n_replicas)


def are_possible(blocks: "list[Block]") -> bool:
    """Whether numbers that the engine turns into places in memory, or counts up from, are such as it makes itself."""
    for block in blocks:
        coordinate, marks = block.state.continuous.rows[XI : XI + 1], block.state.contour.mark
        if not (np.abs(coordinate) <= 1.0).all() or not (marks >= 1).all():
            return False
    return True
