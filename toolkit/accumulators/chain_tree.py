"""Results of all chains together, merged along a fixed binary tree over the chains' numbers.

Node (level, index) holds chains index · 2^level … (index + 1) · 2^level − 1, as far as there are so many. Two children
are merged, the left one first; a node without a right sibling, at the right edge of the tree, is passed up unchanged.
So each node depends on its own chains alone, and any division of the chains into contiguous pieces, each reduced by
itself and merged in any order, gives the same bits as all chains at once.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import shown
from .cells import PooledHistogram
from .energies import PooledBestPoint, PooledEnergies
from .grid_kl import Kl, KlCounts, PooledKl
from .interface import DrawKernel, KernelAccumulator, PoolableAccumulator, State
from .running_moments import PooledBatchMeans, PooledMoments

Integers = NDArray[np.int64]
Nodes = dict[tuple[int, int], State]  # (level, index) → arrays, whose first axis has length 1

POOLED_RESULTS: tuple[type[NamedTuple], ...] = (
    PooledMoments, PooledBatchMeans, PooledHistogram, PooledEnergies, PooledKl, PooledBestPoint,
)  # fmt: skip
BYTES_AT_ONCE = 2**24  # of the state that is reduced at a time


@dataclass(frozen=True)
class Pooled(KernelAccumulator):
    """The accumulator of ``pooled``: the state of ``accumulator``, chain by chain, and a result of all chains."""

    accumulator: PoolableAccumulator

    @property
    def needs_energies(self) -> bool:
        """Whether the draws' energies are needed."""
        return self.accumulator.needs_energies

    def start(self, problem: Any, n_chains: int) -> State:
        """The state before the first draw."""
        return self.accumulator.start(problem, n_chains)

    def draw_kernel(self, dim: int) -> DrawKernel:
        """The kernel that adds draws."""
        return self.accumulator.draw_kernel(dim)

    def parts(self, state: State, steps: Integers) -> Iterator[tuple[int, int, bool]]:
        """Segments of ``steps``."""
        return self.accumulator.parts(state, steps)

    def is_valid(self, state: State) -> bool:
        """Whether a saved state is valid."""
        check = getattr(self.accumulator, "is_valid", None)
        return check is None or bool(check(state))

    def advance_to(self, state: State, step: int) -> None:
        """Say that all draws of steps before ``step`` have been added."""
        if hasattr(self.accumulator, "advance_to"):
            self.accumulator.advance_to(state, step)

    def result(self, state: State) -> Any:
        """The result of all chains of ``state``."""
        n_chains = chains_of(state)
        return result_of_nodes(self, nodes_of(self, state, 0, n_chains), n_chains)


@dataclass(frozen=True)
class PooledPart(Pooled):
    """Of the chains ``first``, ``first`` + 1, … of a run of ``n_chains``: the result is their ``nodes_of``."""

    first: int
    n_chains: int

    def result(self, state: State) -> Nodes:
        """The nodes of the chains of ``state``."""
        return nodes_of(self, state, self.first, self.n_chains)


def pooled(accumulator: Any) -> Pooled:
    """``accumulator`` with a result of all chains together, whose size does not grow with the number of chains.

    accumulator: one of ``moments``, ``batch_means``, ``histogram``, ``energy_histogram``, ``kl`` and ``best_point``.
    The result is a ``PooledMoments``, ``PooledBatchMeans``, ``PooledHistogram``, ``PooledEnergies``, ``PooledKl`` or
    ``PooledBestPoint``. While the run lasts, memory is that of ``accumulator``; ``kl`` needs one more grid of counts
    for each chain and each of ``at`` but one.
    Chains are merged along a fixed binary tree, so the bits do not depend on threads, chunks or devices.
    Raises TypeError for anything else.
    """
    if isinstance(accumulator, Kl):
        return Pooled(KlCounts(accumulator))
    if not isinstance(accumulator, PoolableAccumulator):
        raise TypeError(
            "accumulator must be moments(), batch_means(), histogram(), energy_histogram(), kl() or best_point() of "
            f"toolkit.accumulators, got {shown(accumulator)}"
        )
    return Pooled(accumulator)


def chains_of(state: State) -> int:
    """The number of chains of a state."""
    return len(next(iter(state.values())))


def width(level: int, n_chains: int) -> int:
    """The number of nodes of a level."""
    return -(-n_chains >> level)


def root_of(n_chains: int) -> tuple[int, int]:
    """The node that holds all chains."""
    return (n_chains - 1).bit_length(), 0


def nodes_of(pooled: Pooled, state: State, first: int, n_chains: int) -> Nodes:
    """The fewest nodes that hold the chains of ``state``: ``first``, ``first`` + 1, … of a run of ``n_chains``.

    There are at most 2 log₂(n_chains). Raises ValueError where the run has no such chains.
    """
    last = first + chains_of(state)
    if not 0 <= first < last <= n_chains:
        raise ValueError(f"chains {first} … {last - 1} must be chains of a run of n_chains={n_chains}")
    chain_bytes = sum(values[0].nbytes for values in state.values())
    at_once = 1 << max(0, (BYTES_AT_ONCE // chain_bytes).bit_length() - 1)
    nodes: Nodes = {}
    ends = [first, *range((first // at_once + 1) * at_once, last, at_once), last]
    for begin, end in itertools.pairwise(ends):
        part = {name: values[begin - first : end - first] for name, values in state.items()}
        more = sums(pooled.accumulator, part, begin, n_chains)
        if more is None:
            more = subtrees(pooled.accumulator, part, begin, n_chains)
        nodes = merge_nodes(pooled, nodes, more, n_chains)
    return nodes


def sums(accumulator: PoolableAccumulator, state: State, first: int, n_chains: int) -> Nodes | None:
    """``nodes_of`` by ``exact_sum``; None where the tree must be followed."""
    nodes = Nodes()
    for key in fewest(first, first + chains_of(state), n_chains):
        begin, end = chains_in(key, n_chains)
        node = accumulator.exact_sum({name: values[begin - first : end - first] for name, values in state.items()})
        if node is None:
            return None
        nodes[key] = node
    return nodes


def fewest(first: int, last: int, n_chains: int) -> Iterator[tuple[int, int]]:
    """The fewest nodes that hold the chains first … last − 1."""
    while first < last:
        level, top = 0, root_of(n_chains)[0]
        while level < top and first % (2 << level) == 0 and min(first + (2 << level), n_chains) <= last:
            level += 1
        yield level, first >> level
        first = chains_in((level, first >> level), n_chains)[1]


def subtrees(accumulator: PoolableAccumulator, state: State, first: int, n_chains: int) -> Nodes:
    """``nodes_of``, level by level, with all nodes of a level at once."""
    nodes, level = Nodes(), 0
    low, high = first, first + chains_of(state)  # the indices of the nodes that are left at this level
    values = accumulator.leaves(state, first)
    while low < high:
        if width(level, n_chains) == 1:
            nodes[level, 0] = values
            break
        if low % 2:  # its left sibling is of another piece
            nodes[level, low] = take(values, slice(0, 1))
            values, low = {name: array[1:] for name, array in values.items()}, low + 1
        at_edge = high == width(level, n_chains)
        if low < high and high % 2 and not at_edge:  # its right sibling is of another piece
            nodes[level, high - 1] = take(values, slice(-1, None))
            values, high = {name: array[:-1] for name, array in values.items()}, high - 1
        even = (high - low) // 2 * 2
        single = {name: array[even:] for name, array in values.items()}  # at the right edge
        values = accumulator.merge(*({name: array[i:even:2] for name, array in values.items()} for i in (0, 1)))
        if even < high - low:
            values = {name: np.concatenate([array, single[name]]) for name, array in values.items()}
        low, high, level = low // 2, (high + 1) // 2, level + 1
    return nodes


def take(values: State, part: slice) -> State:
    """A copy of some nodes, which does not keep the others in memory."""
    return {name: array[part].copy() for name, array in values.items()}


def merge_nodes(pooled: Pooled, nodes: Nodes, more: Nodes, n_chains: int) -> Nodes:
    """The nodes of both, with siblings merged as far as possible.

    Of pieces that come in order at most 2 log₂(n_chains) are left at any time. Raises ValueError where a chain is in
    both, or a node is none of a run of ``n_chains``.
    """
    check_apart([*nodes, *more], n_chains)
    merged: Nodes = {}
    for key, node in [*nodes.items(), *more.items()]:
        (level, index), values = key, node
        while (level, index) != root_of(n_chains):
            if index % 2 == 0 and index == width(level, n_chains) - 1:
                pass  # at the right edge
            elif (level, index ^ 1) in merged:
                sibling = merged.pop((level, index ^ 1))
                values = pooled.accumulator.merge(*((sibling, values) if index % 2 else (values, sibling)))
            else:
                break
            level, index = level + 1, index // 2
        merged[level, index] = values
    return merged


def chains_in(key: tuple[int, int], n_chains: int) -> tuple[int, int]:
    """The first and the last chain (exclusive) of a node."""
    level, index = key
    return index << level, min((index + 1) << level, n_chains)


def check_apart(keys: list[tuple[int, int]], n_chains: int) -> None:
    """Raise ValueError where two nodes share a chain, or one is none of the tree."""
    done = 0
    for key in sorted(keys, key=lambda key: chains_in(key, n_chains)):
        level, index = key
        if not (0 <= level <= root_of(n_chains)[0] and 0 <= index < width(level, n_chains)):
            raise ValueError(f"node {key} is none of a run of n_chains={n_chains}")
        first, last = chains_in(key, n_chains)
        if first < done:
            raise ValueError(f"chains {first} … {min(done, last) - 1} are there twice")
        done = last


def result_of_nodes(pooled: Pooled, nodes: Nodes, n_chains: int, *, partial: bool = False) -> Any:
    """The result of all chains. Raises ValueError, which names the first that are missing, where some are.

    partial: chains may be missing, as those of a run that was interrupted; nodes are then merged in order.
    """
    merged = merge_nodes(pooled, nodes, {}, n_chains)
    if partial and merged:
        values, *others = (merged[key] for key in sorted(merged, key=lambda key: chains_in(key, n_chains)))
        for other in others:
            values = pooled.accumulator.merge(values, other)
        return without_signed_nan(pooled.accumulator.pooled_result(values))
    done = 0
    for first, last in [*sorted(chains_in(key, n_chains) for key in merged), (n_chains, n_chains)]:
        if first > done:
            raise ValueError(f"nodes must hold all {n_chains} chains: chains {done} … {first - 1} are missing")
        done = last
    return without_signed_nan(pooled.accumulator.pooled_result(merged[root_of(n_chains)]))


def without_signed_nan(found: Any) -> Any:
    """A result with nan of one kind."""
    return type(found)(*(one_nan(value) for value in found))


def one_nan(value: Any) -> Any:
    """``value`` with nan of one kind: the sign of nan + nan may depend on how many numbers are added at once."""
    if value is None or value.dtype.kind != "f":
        return value
    return np.where(np.isnan(value), np.nan, value)
