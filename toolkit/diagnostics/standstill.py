"""Stuck chains: their moves are rejected, or undone at a wall, for longer than chance explains."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from .._engine.run_record import RunRecord

LONG = 100  # fewest steps at one place that are reported
BEYOND = 5.0  # times the longest standstill expected for independent moves at the run's rate


class Standstill(NamedTuple):
    """The longest stretch of kept draws at one place: its chain and replica, its first step, and its steps."""

    chain: int
    replica: int
    first: int
    steps: int


def can_get_stuck(run: RunRecord) -> bool:
    """Whether a replica can stay at its place, because moves can be rejected."""
    return run.sampler.dynamics.leapfrogs > 0 or (
        run.sampler.boundary.kind == "reject" and run.sampler.dynamics.draws_noise
    )


def longest_standstill(run: RunRecord) -> tuple[Standstill, float]:
    """The longest standstill of kept draws, and the share of draws that differ from the previous one.

    A replica with two equal draws has not moved between them, except for a return to exactly the same place.
    """
    worst, moved, pairs = Standstill(0, 0, 0, 0), 0, 0
    for chain, replica in np.ndindex(run.replica_draws.shape[:2]):
        draws = run.replica_draws[chain, replica]
        moves = (draws[1:] != draws[:-1]).any(axis=1)  # true for nan, after a divergence
        moved, pairs = moved + int(moves.sum()), pairs + moves.size
        ends = np.concatenate([[-1], np.flatnonzero(moves), [moves.size]])
        firsts, lasts = ends[:-1] + 1, ends[1:]
        steps = run.steps[lasts] - run.steps[firsts]
        k = int(np.argmax(steps))
        if steps[k] > worst.steps:
            worst = Standstill(chain, replica, int(run.steps[firsts[k]]), int(steps[k]))
    return worst, moved / max(1, pairs)


def standstills(run: RunRecord) -> Iterator[str]:
    """A sentence on the chain with the longest standstill, or on those that have never moved."""
    if not can_get_stuck(run):
        return
    remedy = remedy_of(run)
    never_moved = (run.counts.accepted_moves == 0) & (run.counts.status == 0)
    if run.sampler.dynamics.leapfrogs and run.sampling_steps >= LONG and never_moved.any():
        chain, replica = np.argwhere(never_moved)[0]
        yield (
            f"In {int(never_moved.any(axis=1).sum())} of {run.n_chains} chains, such as chain {chain}, a replica (here "
            f"{replica}) has not moved once in {run.sampling_steps:,} steps after burn-in: {remedy}."
        )
        return
    if run.replica_draws.shape[2] < 2:
        return
    worst, share = longest_standstill(run)
    pairs = run.replica_draws.shape[0] * run.replica_draws.shape[1] * (run.replica_draws.shape[2] - 1)
    chance = math.log(max(2, pairs)) / -math.log1p(-share) if 0.0 < share < 1.0 else 0.0  # in draws
    per_draw = max(1.0, float(run.steps[-1] - run.steps[0]) / (run.steps.size - 1))
    if worst.steps >= LONG and worst.steps > BEYOND * chance * per_draw:
        of = f" (replica {worst.replica})" if run.replica_draws.shape[1] > 1 else ""
        yield (
            f"Chain {worst.chain}{of} stood still for {worst.steps:,} steps in a row, from step {worst.first:,} on, "
            f"where chance explains some {max(1.0, chance * per_draw):,.0f}: {remedy}."
        )


def remedy_of(run: RunRecord) -> str:
    """The cause and the remedy, in words."""
    dynamics = run.sampler.dynamics
    cause = "its moves were rejected" + (" or taken back at the wall" if run.sampler.boundary.kind == "reject" else "")
    if dynamics.leapfrogs > 1 and not dynamics.random_length:
        return f"{cause}; give random_length=True, fewer leapfrogs or a smaller step size"
    return f"{cause}; make the step size smaller" + (", or give fewer leapfrogs" if dynamics.leapfrogs > 1 else "")
