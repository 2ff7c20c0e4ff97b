"""Rounds of replica exchange: rungs of equal rejection, their number by the barrier, and a step size for each."""

from typing import NamedTuple

import numpy as np
import scipy

from .._output.run import Run
from ..dynamics import Dynamics
from ..samplers.sampler import Sampler
from ..tempering import ReplicaExchange
from .exploration import Explored, barriers, best_pairs
from .race import finite_ends
from .step_sizes import Improvement, mean_acceptance
from .study import LANES, Floats, Study, as_tuple, rounded

FIRST_ROUND, SHARE = 16, 0.25  # steps; of the gradients that the tuning may spend
FEWEST_CHAINS = 4
SETTLED = 0.05  # change of the barrier from round to round
BELOW_DIVERGENCE = 16.0  # times cooler than the coldest rung that diverged, 1/4 as wide: runs are longer than rounds


class Ladder(NamedTuple):
    """Rungs as found so far: temperatures and step sizes (rung,), states (chain, rung, dim), and the barrier."""

    temperatures: Floats
    step_sizes: Floats
    states: Floats
    barrier: float


def chains_for(n_replicas: int) -> int:
    """Chains of so many replicas, that together fill the lanes."""
    return max(FEWEST_CHAINS, LANES // n_replicas)


def first_ladder(levels: Explored, top: int) -> Ladder:
    """Rungs up to level ``top`` by the barrier that exploration saw; states from the nearest temperatures."""
    total = barriers(levels)[: top + 1]
    log_temperatures = np.log(levels.temperatures)
    places = equal_parts(log_temperatures[: top + 1], total, best_pairs(total[-1]))
    step_sizes = np.exp(np.interp(places, log_temperatures, np.log(levels.step_sizes)))
    nearest = np.abs(places[:, None] - log_temperatures).argmin(axis=1)
    chains = chains_for(len(places))
    copies = np.arange(chains) % levels.positions.shape[1]
    states = levels.positions[nearest[None, :], copies[:, None]]
    return Ladder(rounded(np.exp(places)), rounded(step_sizes), states, float(total[-1]))


def equal_parts(places: Floats, total: Floats, n_pairs: int) -> Floats:
    """``n_pairs`` + 1 places, from the first of ``places`` to the last, between which the barrier is the same.

    total: the barrier from the first place up to each. Monotone cubic interpolation, as Syed et al. (2022).
    """
    increasing = total
    if not (np.diff(total) > 0.0).all():
        increasing = np.maximum.accumulate(total + 1e-9 * np.arange(len(total)))
    inner = np.linspace(0.0, increasing[-1], n_pairs + 1)[1:-1]
    found = (
        scipy.interpolate.PchipInterpolator(increasing, places)(inner)
        if len(places) > 2
        else np.interp(inner, increasing, places)
    )
    return np.concatenate([places[:1], found, places[-1:]])


def exchange_sampler(study: Study, ladder: Ladder, dynamics: Dynamics, tempering: ReplicaExchange) -> Sampler:
    """The sampler of a ladder."""
    return Sampler(
        f"pt_{dynamics.name}", ladder.step_sizes, ladder.temperatures, dynamics=dynamics, tempering=tempering,
        boundary=study.boundary, scale=study.scale,
    )  # fmt: skip


def rejections(run: Run) -> Floats:
    """Share of the swaps of each pair of neighbours that are rejected, of all chains, (pair,)."""
    attempted, accepted = run.counts.attempted.sum(axis=0), run.counts.accepted.sum(axis=0)
    return np.asarray(1.0 - accepted / np.maximum(attempted, 1))


def recut(ladder: Ladder, rejected: Floats, states: Floats, may_resize: bool = True) -> Ladder:
    """Rungs of equal rejection, as many as the barrier that was seen wants; the hottest stays."""
    total = np.concatenate([[0.0], np.cumsum(np.maximum(rejected, 1e-3))])
    barrier, log_temperatures = float(total[-1]), np.log(ladder.temperatures)
    pairs = len(rejected)
    if may_resize:  # a rejection near 1 hides how much more there is
        pairs = best_pairs(barrier) if rejected.max() < 0.9 else max(pairs + 1, best_pairs(barrier))
    places = equal_parts(log_temperatures, total, pairs)
    step_sizes = np.exp(np.interp(places, log_temperatures, np.log(ladder.step_sizes)))
    nearest = np.abs(places[:, None] - log_temperatures).argmin(axis=1)
    chains = chains_for(len(places))
    moved = states[np.arange(chains) % len(states)][:, nearest]
    return Ladder(rounded(np.exp(places)), rounded(step_sizes), moved, barrier)


def coldest_divergence(run: Run) -> int | None:
    """The coldest rung of which a chain diverged, where the target's own has none; None: there is no such rung."""
    diverged = np.flatnonzero((run.counts.status > 0).any(axis=0))
    return int(diverged[0]) if diverged.size and diverged[0] > 0 else None


def below_divergence(study: Study, ladder: Ladder, run: Run, rung: int) -> Ladder:
    """``ladder`` with a top ``BELOW_DIVERGENCE`` times cooler than ``rung``, of which chains of ``run`` diverged.

    Moves without a Metropolis test end where the energy is infinite, such as where a solution leaves its limits, and
    the hotter a rung is, the further it goes. The top is no cooler than the geometric mean of the two temperatures.
    """
    log_temperatures = np.log(ladder.temperatures)
    coldest, hottest = log_temperatures[0], log_temperatures[rung]
    top = max(hottest - np.log(BELOW_DIVERGENCE), 0.5 * (coldest + hottest))
    places = np.append(log_temperatures[log_temperatures < top - 1e-9], top)
    study.note(
        f"Chains at temperature {ladder.temperatures[rung]:.4g} diverged: the top of the ladder is {np.exp(top):.4g}."
    )
    step_sizes = np.exp(np.interp(places, log_temperatures, np.log(ladder.step_sizes)))
    nearest = np.minimum(np.abs(places[:, None] - log_temperatures).argmin(axis=1), rung - 1)
    states, chains = finite_ends(run, ladder.states), chains_for(len(places))
    moved = states[np.arange(chains) % len(states)][:, nearest]
    return Ladder(rounded(np.exp(places)), rounded(step_sizes), moved, ladder.barrier)


def find_ladder(study: Study, ladder: Ladder, dynamics: Dynamics, exchange: ReplicaExchange) -> Ladder:
    """Rounds of doubling length, each with what the last one showed, until the barrier settles or their share ends."""
    steps, length, before = Improvement(dynamics.name), FIRST_ROUND, np.inf
    limit = study.spent + int(SHARE * study.n_gradients)
    while True:
        lanes = ladder.states.shape[0] * ladder.states.shape[1]
        if study.spent + lanes * length * dynamics.leapfrogs > limit and np.isfinite(before):
            break
        run = study.run(exchange_sampler(study, ladder, dynamics, exchange), length, ladder.states)
        rejected, acceptance = rejections(run), mean_acceptance(run)
        study.add_round(
            "ladder", run, temperatures=as_tuple(ladder.temperatures), step_sizes=as_tuple(ladder.step_sizes),
            acceptance=as_tuple(acceptance), rejection=as_tuple(rejected),
        )  # fmt: skip
        found = ladder._replace(step_sizes=rounded(steps.next(ladder.step_sizes, acceptance)))
        ladder = recut(found, rejected, run.replica_draws[:, :, -1])
        settled = len(ladder.temperatures) == len(rejected) + 1 and abs(ladder.barrier - before) < SETTLED * before
        if settled and length >= 8 * FIRST_ROUND:
            break
        before, length = ladder.barrier, 2 * length
    return ladder
