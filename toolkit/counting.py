"""What a run has counted and learned, gathered from its blocks."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .contour import theta_of, visits_of
from .sampler import Sampler

if TYPE_CHECKING:
    from .blocks import Block

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Counts(NamedTuple):
    """Copies of what the blocks hold, chains first; sizes are 0 where a part is not there."""

    status: Integers  # (chain, replica): 0, or 1 + the step of divergence
    bounces: Integers  # (chain, replica)
    fallbacks: Integers  # (chain, replica)
    accepted_moves: Integers  # (chain, replica)
    attempted: Integers  # (chain, pair)
    accepted: Integers  # (chain, pair)
    correction: Floats  # (chain, pair)
    round_trips: Integers  # (chain,)
    outside: Integers  # (chain, 3): energies below the partition, above it, and in all, after burn-in
    theta: Floats  # (chain, bin)
    earlier_theta: Floats  # (chain, bin): a quarter to half of the way from the end of burn-in to the end
    visits: Integers  # (chain, bin)


def count(blocks: "list[Block]", sampler: Sampler) -> Counts:
    """The counts of all blocks as they stand, without θ."""
    states = [block.state for block in blocks]
    exchanges, contours = [state.exchange for state in states], [state.contour for state in states]

    def by_replica(field: str) -> Integers:
        parts = []
        for block in blocks:
            n_chains = block.last - block.first
            values = getattr(block.state, field)[: n_chains * sampler.n_replicas]
            parts.append(values.reshape(sampler.n_replicas, n_chains).T)
        return np.concatenate(parts)

    return Counts(
        status=by_replica("status"),
        bounces=by_replica("bounces"),
        fallbacks=by_replica("fallbacks"),
        accepted_moves=by_replica("accepted"),
        attempted=np.concatenate([exchange.attempted.T for exchange in exchanges]),
        accepted=np.concatenate([exchange.accepted.T for exchange in exchanges]),
        correction=np.concatenate([exchange.correction.T for exchange in exchanges]),
        round_trips=np.concatenate([exchange.round_trips for exchange in exchanges]),
        outside=np.concatenate([contour.outside.T for contour in contours]),
        theta=np.zeros((0, 0)),
        earlier_theta=np.zeros((0, 0)),
        visits=np.zeros((0, 0), np.int64),
    )


def with_theta(counts: Counts, blocks: "list[Block]") -> Counts:
    """``counts`` with what contour has learned, which is too large to copy after every chunk."""
    contours = [block.state.contour for block in blocks]
    return counts._replace(
        theta=np.concatenate([theta_of(contour) for contour in contours]),
        earlier_theta=np.concatenate([contour.early for contour in contours]),
        visits=np.concatenate([visits_of(contour) for contour in contours]),
    )
