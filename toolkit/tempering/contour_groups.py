"""Contour whose replicas are in groups that learn θ apart for K steps, and then share what they have learned."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from .._compiler import signatures as s
from .._compiler.decorators import compile_part
from ..maths.elementary import exp
from .contour_tempering import (
    CONTOUR_STATE,
    SMALLEST_THETA,
    ZETA,
    Contour,
    ContourState,
    Levels,
    contour_multiplier,
    contour_state,
    forget_visited_range,
    theta_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

Floats = NDArray[np.float64]
Visited = NDArray[np.bool_]


class SharedTheta(NamedTuple):
    """What all groups know: θ, which sums to 1 in every chain once a bin has been visited, and the visits of all."""

    theta: Floats  # (chain, bin)
    visits: Floats  # (chain, bin), whole numbers


class GroupTheta(NamedTuple):
    """What a group has made of the shared θ in some steps."""

    theta: Floats  # (chain, bin)
    visits: Floats  # (chain, bin)
    # (chain,): of the table that ``set_theta`` gave scale 1: what the steps have left of the θ before them, over the
    # mass that bins seen for the first time have added to it.
    scale: Floats


def no_theta(n_chains: int, n_bins: int) -> SharedTheta:
    """Nothing visited."""
    return SharedTheta(np.zeros((n_chains, n_bins)), np.zeros((n_chains, n_bins)))


def set_theta(state: ContourState, shared: SharedTheta) -> None:
    """Give the chains of a block the shared θ and visits; their table is θ itself then, and its scale 1."""
    state.table[:, ::2] = shared.theta
    state.table[:, 1::2] = shared.visits
    state.scale[:] = 1.0
    forget_visited_range(state)


def group_theta(states: "Sequence[ContourState]") -> GroupTheta:
    """What the blocks of a group, which together have all chains, have made of the θ that they were given."""
    return GroupTheta(
        np.concatenate([theta_of(state) for state in states]),
        np.concatenate([state.table[:, 1::2] for state in states]),
        np.concatenate([state.scale for state in states]),
    )


def averaged(shared: SharedTheta, groups: "Sequence[GroupTheta]") -> SharedTheta:
    """θ + the mean over groups of their increments θ_g − θ, and the visits of all groups.

    Each group has stepped by ω/(R/G) Σ c_p (e_{J_p} − θ) over its own R/G replicas, so the mean of the increments of
    one step is the step ω/R Σ c_p (e_{J_p} − θ) of all R. As Σ (θ_g − θ)/G + θ = Σ θ_g / G, it is taken as the mean of
    θ_g, in the order of the groups: a bin whose θ falls by 20 orders in a round would lose all its digits in a
    difference. What is averaged is θ and not the engine's table, whose scale differs from group to group.

    A bin that a group sees for the first time takes the θ of its nearest neighbour there, and all of θ is divided by
    what it has become. The other groups are given the bin as if they had seen it when the round began: θ_g + a_g
    (θ' − θ), where θ' is θ with the new bins of all groups, θ that with the group's own, and a_g the share of the first
    θ that the group's steps have left. So with one step a round the average is the step of all replicas to rounding,
    where bins are new too (but for the order of the new bins of one step, which matters between two visited ones).
    """
    visits = shared.visits + sum(group.visits - shared.visits for group in groups)
    seen = shared.visits > 0.0
    is_new = np.zeros(len(seen), np.bool_)
    for group in groups:
        is_new |= ((group.visits > 0.0) != seen).any(axis=1)
    theta = sum((group.theta for group in groups[1:]), groups[0].theta.copy()) / len(groups)
    for c in np.flatnonzero(is_new):
        theta[c] = averaged_with_new_bins(
            shared.theta[c], seen[c], [GroupTheta(g.theta[c], g.visits[c], g.scale[c]) for g in groups]
        )
    return SharedTheta(np.where(visits > 0.0, np.maximum(theta, SMALLEST_THETA), 0.0), visits)


def averaged_with_new_bins(theta: Floats, seen: Visited, groups: "Sequence[GroupTheta]") -> Floats:
    """``averaged`` for one chain, (bin,), where groups have visited bins that were not ``seen``."""
    masses, visited = theta, seen
    for group in groups:
        masses = with_bins(masses, visited, group.visits > 0.0)
        visited = visited | (group.visits > 0.0)
    whole = masses / masses.sum()  # θ' above
    total = np.zeros_like(theta)
    for group in groups:
        own = with_bins(theta, seen, group.visits > 0.0)
        if not own.any():  # nothing was visited before, and nothing by this group
            total += whole
            continue
        mass = own.sum()
        there = own > 0.0
        # No more than what is left of any bin, so that θ stays positive: the scale begins anew where it becomes tiny.
        left = min(float(group.scale) * mass, float((group.theta[there] / own[there]).min()) * mass)
        total += group.theta + left * (whole - own / mass)
    return np.asarray(total / len(groups))


def with_bins(masses: Floats, seen: Visited, visited: Visited) -> Floats:
    """``masses`` (bin,) with those that are ``visited`` and not ``seen``, each as its nearest neighbour, not divided.

    In the order of the bins; of two neighbours equally near, the lower; 1 for the first of all.
    """
    new = np.flatnonzero(visited & ~seen)
    if new.size == 0:
        return masses
    masses, known = masses.copy(), list(np.flatnonzero(seen))
    for j in new:
        masses[j] = masses[min(known, key=lambda i: (abs(i - j), i))] if known else 1.0
        known.append(j)
    return masses


WEIGHED_ROWS = 10


def weigh(rows, state, parameters, n_chains, n_replicas):
    """rows[9] ← the weights of the energies rows[0], (lane,), at ``state``; the other rows are scratch."""
    levels = Levels(rows[1], rows[2], rows[3], rows[4], rows[5], rows[6], rows[7])
    contour_multiplier(rows[0], rows[8], levels, state, parameters, n_chains, n_replicas)
    log_weight, weight = rows[7], rows[9]
    for lane in range(weight.size):
        weight[lane] = exp(parameters[ZETA] * log_weight[lane])


def weights_at(energies: Floats, shared: SharedTheta, contour: Contour) -> Floats:
    """The weights, (chain, replica), of draws with these (noisy) energies at the shared θ, with the engine's bits."""
    state = contour_state(contour, len(energies))
    set_theta(state, shared)
    return weights_in(energies, state, contour)


def weights_in(energies: Floats, state: ContourState, contour: Contour) -> Floats:
    """As ``weights_at``, at the θ of a block's ``state``."""
    n_chains, n_replicas = energies.shape
    rows = np.ones((WEIGHED_ROWS, energies.size))
    rows[0] = energies.T.ravel()
    compiled = compile_part(weigh, types.void(s.MATRIX, CONTOUR_STATE, s.FLOATS, types.int64, types.int64))
    compiled(rows, state, contour.parameters(), n_chains, n_replicas)
    return np.ascontiguousarray(rows[9].reshape(n_replicas, n_chains).T)
