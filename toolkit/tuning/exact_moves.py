"""Tuning of moves with a Metropolis test: HMC and MALA, alone or under replica exchange."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..dynamics import Dynamics, hmc, mala
from ..samplers.sampler import Sampler
from ..tempering import ReplicaExchange
from ..tempering.exchange import replica_exchange
from .exchange_rounds import Ladder, exchange_sampler, find_ladder, first_ladder, recut, rejections
from .exploration import CLEAR, Choice, Levels
from .race import Result, raced
from .step_sizes import BEST, Improvement, mean_acceptance
from .study import LANES, Floats, Study, rounded

RACE_SHARE, RACES = 0.4, 6  # of the gradients that the tuning may spend, for about so many races
SETTLING = 24  # steps of a round that fits the step size to another path length
LONGEST = 256  # leapfrogs


class Moves(NamedTuple):
    """What the sampler that is tuned moves by: "hmc" or "mala"; and its replica exchange, or None."""

    dynamics: str
    exchange: ReplicaExchange | None

    def of_length(self, n_leapfrogs: int) -> Dynamics:
        """The dynamics; a length counts for HMC alone."""
        return mala() if self.dynamics == "mala" else hmc(n_leapfrogs=max(1, n_leapfrogs))

    def step_sizes(self, leapfrogs: Floats) -> Floats:
        """Step sizes from those of a leapfrog, ε; MALA's is ε²/2."""
        return rounded(0.5 * leapfrogs**2 if self.dynamics == "mala" else leapfrogs)


class Found(NamedTuple):
    """A tuned sampler, states (chain, replica, dim) to begin from, and the steps they should be left alone first."""

    sampler: Sampler
    states: Floats
    burn_in: int
    worth: float


def plain_sampler(study: Study, levels: Levels, moves: Moves) -> Sampler:
    """One temperature, with what exploration found."""
    return Sampler(
        moves.dynamics, moves.step_sizes(levels.step_sizes[:1]), (study.temperature,),
        dynamics=moves.of_length(levels.leapfrogs), boundary=study.boundary, scale=study.scale,
    )  # fmt: skip


def settled(study: Study, sampler: Sampler, states: Floats) -> tuple[Sampler, Floats]:
    """``sampler`` with step sizes fitted to its path length, by one short round."""
    run = study.run(sampler, SETTLING, states)
    step_sizes = Improvement(sampler.dynamics.name).next(sampler.arrays["step_sizes"], mean_acceptance(run))
    return replace(sampler, step_sizes=rounded(step_sizes)), run.replica_draws[:, :, -1]


def race_lengths(study: Study, sampler: Sampler, states: Floats, allowed: int) -> Result:
    """The path length with the best score: halved as long as that rises, else doubled."""
    limit, each = study.spent + allowed, allowed // RACES
    best = raced(study, "path length", sampler, states, each)
    if sampler.dynamics.name != "hmc":
        return best
    for factor in (0.5, 2.0):
        moved = False
        while study.spent + each <= limit:
            length = round(best.sampler.dynamics.leapfrogs * factor)
            if not 1 <= length <= LONGEST:
                break
            trial, states = settled(study, replace(best.sampler, dynamics=hmc(n_leapfrogs=length)), best.states)
            other = raced(study, "path length", trial, states, each)
            if other.score <= best.score:
                break
            best, moved = other, True
        if moved:
            break
    return best


def tune_exact(study: Study, levels: Levels, choice: Choice, moves: Moves, chooses: bool) -> Found:
    """HMC or MALA, with as many rungs as pay where it has replica exchange, or where this may be chosen."""
    tempers = chooses or moves.exchange is not None
    level = 0 if not tempers else choice.level if chooses else max(choice.level, 1)
    plain = plain_sampler(study, levels, moves)
    states = np.resize(levels.positions[0], (LANES, 1, study.dim))
    if level == 0:
        return finished(study, race_lengths(study, plain, states, race_budget(study)))
    short = moves.of_length(levels.leapfrogs // 2)
    exchange = moves.exchange or replica_exchange()
    ladder = first_ladder(levels, level)
    ladder = ladder._replace(step_sizes=moves.step_sizes(ladder.step_sizes))
    ladder = find_ladder(study, ladder, short, exchange)
    tempered = exchange_sampler(study, ladder, short, exchange)
    allowed = race_budget(study)
    is_clear = np.isfinite(choice.costs[level]) and levels.between[level] < CLEAR
    if not chooses or (np.isinf(choice.costs[0]) and is_clear):
        return finished(study, race_lengths(study, tempered, ladder.states, allowed))
    with_rungs = raced(study, "with tempering", tempered, ladder.states, allowed // 4)
    draws = with_rungs.run.draws.reshape(-1, study.dim)
    spread = draws[np.linspace(0, len(draws) - 1, LANES).astype(np.int64)][:, None]
    alone = raced(study, "without tempering", plain, spread, allowed // 4)
    wins = alone.trusted and alone.score > with_rungs.score
    study.note(
        f"Without tempering, {1e3 * alone.worth:.3g} independent draws per 1,000 gradients; with it, "
        f"{1e3 * with_rungs.worth:.3g}."
    )
    best = (plain, alone.states) if wins else (tempered, with_rungs.states)
    return finished(study, race_lengths(study, *best, allowed // 2))


def race_budget(study: Study) -> int:
    """Gradients for the races: what is left, or at least ``RACE_SHARE``."""
    return max(int(RACE_SHARE * study.n_gradients), study.n_gradients - study.spent)


STUCK = 0.8  # harmonic mean of the chains' acceptances over their mean: below it some hardly move
CHECKS = 4


def finished(study: Study, best: Result) -> Found:
    """The winner with its step sizes and rungs as its own race suggests.

    Where some chains accept much less than others, in a narrow place of the target, its step sizes are halved until
    they do not: in a short run none may have been there, and a step that is too long for it is never taken into it.
    """
    sampler, run = best.sampler, best.run
    for _ in range(CHECKS):
        harmonic, mean = mean_acceptance(run), run.acceptance.mean(axis=0)
        if (harmonic > STUCK * mean).all():
            break
        sampler = replace(sampler, step_sizes=rounded(0.5 * sampler.arrays["step_sizes"]))
        best = raced(study, "narrow places", sampler, best.states, run.gradient_evaluations)
        run = best.run
    else:
        study.warn("Some chains accept few moves even at small step sizes: the target has very narrow places.")
    step_sizes, states = sampler.arrays["step_sizes"], best.states
    if mean_acceptance(run).min() < BEST[sampler.dynamics.name] - 0.1:
        step_sizes = Improvement(sampler.dynamics.name).next(step_sizes, mean_acceptance(run))
    if isinstance(sampler.tempering, ReplicaExchange):
        ladder = Ladder(sampler.arrays["temperatures"], step_sizes, states, 0.0)
        ladder = recut(ladder, rejections(run), states, may_resize=False)
        sampler = replace(sampler, temperatures=ladder.temperatures, step_sizes=ladder.step_sizes)
    else:
        sampler = replace(sampler, step_sizes=rounded(step_sizes))
    return Found(sampler, states, max(16, run.n_steps // 4), best.worth)
