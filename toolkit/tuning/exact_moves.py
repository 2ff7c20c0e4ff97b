"""Tuning of moves with a Metropolis test: HMC and MALA, alone or under replica exchange."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from .._output.run import Run
from ..dynamics import Dynamics
from ..samplers.sampler import Sampler, scale_matrix
from ..schedules import constant
from ..tempering import ReplicaExchange
from ..tempering.exchange import replica_exchange
from .exchange_rounds import Ladder, exchange_sampler, find_ladder, first_ladder, recut, rejections
from .exploration import CLEAR, WORTH_SCALING, Choice, Explored
from .race import Result, climbed, finite_ends, raced
from .step_sizes import BEST, Improvement, harmonic_mean, mean_acceptance
from .study import LANES, Floats, Study, geometric_mean, mean_outer_product, rounded

RACE_SHARE, RACES = 0.4, 6  # of the gradients that the tuning may spend, for about so many races
FITTING = 24  # steps of a round that fits the step size to another path length
LONGEST = 256  # leapfrogs
FLATTEST = 1e-6  # of the largest curvature
SCALED_LEAPFROGS, SCALED_ROUNDS = 2, 2  # at first, with another scale; rounds of step sizes
FEWEST_FOR_SCALES, MOST_FOR_SCALES = 4, 1024  # draws for each coordinate; draws


class Moves(NamedTuple):
    """Trajectories with a Metropolis test by which the tuned sampler moves; and its replica exchange, or None."""

    dynamics: Dynamics
    exchange: ReplicaExchange | None

    def of_length(self, n_leapfrogs: int) -> Dynamics:
        """The dynamics, of that many leapfrogs where their number is free."""
        return self.dynamics.with_leapfrogs(max(1, n_leapfrogs)) if self.dynamics.has_path_length else self.dynamics

    def step_sizes(self, leapfrogs: Floats) -> Floats:
        """Step sizes from those of a leapfrog, ε: the same, or ε²/2."""
        return np.asarray(rounded(0.5 * leapfrogs**2 if self.dynamics.langevin_step else leapfrogs))


class Found(NamedTuple):
    """A tuned sampler, states (chain, replica, dim) to begin from, and the steps they should be left alone first."""

    sampler: Sampler
    states: Floats
    burn_in: int
    worth: float


def plain_sampler(study: Study, levels: Explored, moves: Moves) -> Sampler:
    """One temperature, with what exploration found."""
    return Sampler(
        moves.dynamics.name, moves.step_sizes(levels.step_sizes[:1]), (study.temperature,),
        dynamics=moves.of_length(levels.leapfrogs), boundary=study.boundary, scale=study.scale,
    )  # fmt: skip


def fit_step_sizes(study: Study, sampler: Sampler, states: Floats) -> tuple[Sampler, Floats]:
    """``sampler`` with step sizes fitted to its path length, by one short round."""
    run = study.run(sampler, FITTING, states)
    step_sizes = Improvement(sampler.dynamics.name).next(sampler.arrays["step_sizes"], mean_acceptance(run))
    return replace(sampler, step_sizes=rounded(step_sizes)), finite_ends(run, states)


def mean_curvature(study: Study, best: Result) -> Floats | None:
    """E[∂U ∂Uᵀ]/T of the draws in z, (dim, dim), x = L z: the mean of the Hessian; None where draws are too few."""
    points = np.unique(best.run.draws.reshape(-1, study.dim), axis=0)
    points = points[:: -(-len(points) // MOST_FOR_SCALES)]
    if not study.may_scale or study.dim == 1 or len(points) < FEWEST_FOR_SCALES * study.dim:
        return None
    gradients = study.evaluate(points)[1]
    found = mean_outer_product(gradients, scale_matrix(best.sampler, study.dim), study.temperature)
    return found if np.isfinite(found).all() and (np.diag(found) > 0.0).all() else None


def diagonal_scale(sampler: Sampler, curvature: Floats) -> Floats | None:
    """Scales s of the coordinates with s² times the mean curvature equal, (dim,); None where they hardly change.

    curvature: ``mean_curvature`` of a race of ``sampler``.
    """
    change = 1.0 / np.sqrt(np.diag(curvature))
    if change.max() < WORTH_SCALING * change.min():
        return None
    return np.asarray(rounded(np.diag(scale_matrix(sampler, len(change))) * change / geometric_mean(change)))


def dense_scale(sampler: Sampler, curvature: Floats) -> Floats | None:
    """A lower triangular L with L Lᵀ the inverse of the mean curvature, (dim, dim), to a factor.

    None where directions differ by less than ``WORTH_SCALING``. curvature: ``mean_curvature`` of a race of ``sampler``.
    """
    values, directions = np.linalg.eigh(curvature)
    if values[-1] < WORTH_SCALING**2 * values[0]:
        return None
    values = np.maximum(values, FLATTEST * values[-1])
    root = np.linalg.cholesky((directions / values) @ directions.T)
    return np.asarray(rounded(scale_matrix(sampler, len(root)) @ root / geometric_mean(np.diag(root))))


def race_scales(study: Study, best: Result, each: int) -> Result:
    """``best``, or the same with a scale of each coordinate, and then with a matrix, where the score rises."""
    curvature = mean_curvature(study, best)
    for name, find in (("scale of each coordinate", diagonal_scale), ("dense scale", dense_scale)):
        scale = None if curvature is None else find(best.sampler, curvature)
        if scale is None:
            continue
        before = scale_matrix(best.sampler, study.dim)
        after = replace(best.sampler, scale=scale)
        factor = float(np.linalg.norm(np.linalg.solve(scale_matrix(after, study.dim), before), 2))  # of a leapfrog
        factor = factor**2 if after.dynamics.langevin_step else factor
        if after.dynamics.has_path_length:
            shorter = min(SCALED_LEAPFROGS, after.dynamics.leapfrogs)
            after = replace(after, dynamics=after.dynamics.with_leapfrogs(shorter))
        after = replace(after, step_sizes=rounded(factor * best.sampler.arrays["step_sizes"]))
        states = best.states
        for _ in range(SCALED_ROUNDS):
            after, states = fit_step_sizes(study, after, states)
        other = raced(study, name, after, states, each)
        if other.score > best.score:
            study.note(f"A {name}, from the mean of ∂U ∂Uᵀ, was found to pay.")
            best = other
            curvature = mean_curvature(study, best) if name != "dense scale" else None
    return best


def race_lengths(study: Study, sampler: Sampler, states: Floats, allowed: int) -> Result:
    """The path length with the best score: halved as long as that rises, else doubled; and a dense scale if it pays."""
    limit, each = study.spent + allowed, allowed // RACES
    if not sampler.dynamics.has_path_length:  # its step size is that of a leapfrog so far
        sampler, states = fit_step_sizes(study, sampler, states)
    best = raced(study, "path length", sampler, states, each)
    best = race_scales(study, best, each)
    if not sampler.dynamics.has_path_length:
        return best

    def trial(found: Result, way: int) -> tuple[Sampler, Floats] | None:
        length = round(found.sampler.dynamics.leapfrogs * (0.5, 2.0)[way])
        if not 1 <= length <= LONGEST:
            return None
        return fit_step_sizes(
            study, replace(found.sampler, dynamics=found.sampler.dynamics.with_leapfrogs(length)), found.states
        )

    return climbed(study, "path length", best, trial, (each, limit))


def tune_exact(study: Study, levels: Explored, choice: Choice, moves: Moves, chooses: bool) -> Found:
    """HMC or MALA, with as many rungs as pay where it has replica exchange, or where this may be chosen."""
    tempers = chooses or moves.exchange is not None
    level = 0 if not tempers else choice.level if chooses else choice.top
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
    study.note(
        f"Without tempering, {1e3 * alone.worth:.3g} independent draws per 1,000 gradients; with it, "
        f"{1e3 * with_rungs.worth:.3g}."
    )
    best = (plain, alone.states) if alone.score > with_rungs.score else (tempered, with_rungs.states)
    return finished(study, race_lengths(study, *best, allowed // 2))


def race_budget(study: Study) -> int:
    """Gradients for the races: what is left, or at least ``RACE_SHARE``."""
    return max(int(RACE_SHARE * study.n_gradients), study.n_gradients - study.spent)


STUCK = 0.8  # harmonic mean of the chains' acceptances over their mean: below it some hardly move
NARROW = 0.75  # acceptance at the most extreme draws over that of all: below it places are too narrow for the step
EXTREME, EXTREME_STEPS = 0.01, 4  # share of the draws; steps
CHECKS = 5


def moves_from_extremes(sampler: Sampler, lanes: int) -> int:
    """Evaluations of the moves of ``acceptance_at_extremes``, beside one for each of the draws."""
    return 2 * lanes * (1 + EXTREME_STEPS * max(1, sampler.dynamics.leapfrogs))


def acceptance_at_extremes(study: Study, sampler: Sampler, draws: Floats, lanes: int = LANES) -> float:
    """Acceptance of the first moves from draws of the highest energies, or of the steepest gradients, if smaller.

    draws: (n, dim). lanes: chains that start from each kind. A step that is too long for a narrow place is rarely taken
    into it, nor out of it: what is lost shows at its edge.
    """
    points = np.unique(draws[np.isfinite(draws).all(axis=1)], axis=0)
    points = points[:: -(-len(points) // 2**14)]
    energy, gradient = study.evaluate(points)
    alone = replace(
        sampler, name="extremes", step_sizes=sampler.step_sizes[:1], temperatures=sampler.temperatures[:1],
        tempering=None, schedule=constant(),
    )  # fmt: skip
    found = []
    for extremity in (energy, ((gradient @ scale_matrix(sampler, study.dim)) ** 2).sum(axis=1)):
        last = np.argsort(extremity, kind="stable")[-max(lanes, int(EXTREME * len(points))) :]
        states = points[np.resize(last[np.linspace(0, len(last) - 1, min(lanes, len(last))).astype(np.int64)], lanes)]
        run = study.run(alone, EXTREME_STEPS, states[:, None], burn_in=0)
        found.append(float(run.acceptance.mean()))
    return min(found)


def is_too_long(study: Study, sampler: Sampler, run: Run) -> bool:
    """Whether steps are too long for some places, by the chains that hardly move or by the most extreme draws."""
    cold = run.acceptance[:, 0]
    if harmonic_mean(cold, max(1, run.sampling_steps)) < STUCK * cold.mean():
        return True
    draws = run.draws.reshape(-1, study.dim)
    return acceptance_at_extremes(study, sampler, draws) < NARROW * float(cold.mean())


def halved(sampler: Sampler, is_first: bool) -> Sampler:
    """``sampler`` with half its step sizes; where that is not the first time, of the same path length and no scale.

    Where one halving is not enough, curvature differs so much from place to place that a scale by its mean fits none.
    """
    after = replace(sampler, step_sizes=rounded(0.5 * sampler.arrays["step_sizes"]))
    if is_first:
        return after
    if after.dynamics.has_path_length:
        longer = min(LONGEST, 2 * after.dynamics.leapfrogs)
        after = replace(after, dynamics=after.dynamics.with_leapfrogs(longer))
    return replace(after, scale=None)


def finished(study: Study, best: Result) -> Found:
    """The winner with its step sizes and rungs as its own race suggests, halved until they fit narrow places too."""
    sampler, run = best.sampler, best.run
    for halvings in range(CHECKS + 1):
        if not is_too_long(study, sampler, run):
            break
        if halvings == CHECKS:
            study.warn(
                "Moves are seldom accepted in some places even at small step sizes: the target has very narrow ones."
            )
            break
        sampler = halved(sampler, is_first=halvings == 0)
        best = raced(study, "narrow places", sampler, best.states, run.gradient_evaluations)
        run = best.run
    if halvings:
        study.note(f"Step sizes halved {halvings} times, for places that are narrower than others.")
    step_sizes, states = sampler.arrays["step_sizes"], best.states
    if mean_acceptance(run).min() < BEST[sampler.dynamics.name] - 0.1:
        step_sizes = Improvement(sampler.dynamics.name).next(step_sizes, mean_acceptance(run))
    if sampler.tempers.swaps:
        ladder = Ladder(sampler.arrays["temperatures"], step_sizes, states, 0.0)
        ladder = recut(ladder, rejections(run), states, may_resize=False)
        sampler = replace(sampler, temperatures=ladder.temperatures, step_sizes=ladder.step_sizes)
    else:
        sampler = replace(sampler, step_sizes=rounded(step_sizes))
    states, steps = burn_in_until_stationary(study, sampler, states)
    return Found(sampler, states, steps, best.worth)


SHORTEST_BURN_IN, LONGEST_BURN_IN = 16, 2048  # steps
BURN_IN_SHARE = 0.2  # of the gradients that the tuning may spend, at least
LEFT_OUT = 4  # times the tuning's gradients: the most that a burn-in is made, where drift does not end
DRIFT, OUTLYING = 4.0, 8.0  # standard errors; times the middle spread of the chains' means


def burn_in_until_stationary(study: Study, sampler: Sampler, states: Floats) -> tuple[Floats, int]:
    """States after runs of doubling length, until a run shows no drift; and the steps of that one, which to leave out.

    A drift: the halves of the chains differ in the mean of a coordinate, its square or the energy by more than
    ``DRIFT`` standard errors, or one chain's mean of them is ``OUTLYING``. Where that does not end within what the
    tuning may spend, up to ``LONGEST_BURN_IN`` steps are left out.
    """
    length, limit = SHORTEST_BURN_IN, max(study.n_gradients, study.spent + int(BURN_IN_SHARE * study.n_gradients))
    while True:
        run = study.run(sampler, length, states, burn_in=0, keep_energies=True)
        states = run.replica_draws[:, :, -1]
        assert run.energies is not None
        values = np.concatenate([run.draws, run.draws**2, run.energies[:, 0, :, None]], axis=2)
        if not is_drifting(values):
            return states, length
        if study.spent + 2 * run.gradient_evaluations > limit or 2 * length > LONGEST_BURN_IN:
            break
        length *= 2
    study.warn("The chains' means still drift at the end of the tuning: leave out more steps at first (burn_in).")
    most = LEFT_OUT * study.n_gradients // (len(states) * sampler.gradients_per_step)
    return states, max(length, min(LONGEST_BURN_IN, most))


def is_drifting(values: Floats) -> bool:
    """Whether chains' means of ``values`` (chain, draw, n) drift or lie apart, as ``burn_in_until_stationary`` says."""
    half = values.shape[1] // 2
    change = values[:, half:].mean(axis=1) - values[:, :half].mean(axis=1)
    error = change.std(axis=0, ddof=1) / np.sqrt(len(values))
    means = values.mean(axis=1)
    low, middle, high = np.quantile(means, [0.25, 0.5, 0.75], axis=0)
    drifts = np.abs(change.mean(axis=0)) > DRIFT * error
    return bool(drifts.any() or (np.abs(means - middle) > OUTLYING * (high - low)).any())
