"""Tuning of moves without a Metropolis test: the largest step size whose bias is small, then the other numbers.

Bias is measured, not assumed: chains of eight step sizes, each half the one before, begin in the same states, and their
mean energies are compared. Where step size h makes coordinate d of curvature k_d too wide by a share h k_d / 4, as
Langevin's does, the mean energy is too high by Σ h k_d T / 4; so the widest error is the excess over T, times
k_max / Σ k. Energies do not see how far apart modes are, between which short runs hardly move.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy

from .._engine.partition_pilot import CHANGE_QUANTILE, partition_of
from ..errors import DivergenceError
from ..samplers.sampler import Sampler
from ..schedules import constant, make_again
from ..tempering import ContinuousTempering
from ..tempering.contour_tempering import Partition
from ..tempering.exchange import AdaptedCorrection
from .exchange_rounds import (
    Ladder,
    below_divergence,
    chains_for,
    coldest_divergence,
    equal_parts,
    first_ladder,
    recut,
    rejections,
)
from .exploration import Choice, Explored, descended
from .gradient_noise import (
    BIAS,
    Normal,
    StepSize,
    around_minima,
    most_for_noise,
    noise_covariance,
    step_at_exact_draws,
    step_by_law,
    widened,
)
from .race import Result, climbed, finite_ends, raced, shortest
from .result import numbers
from .study import LANES, Fit, Floats, Study, as_tuple, rounded

SIZES = 8  # step sizes, each half the one before
COPIES = LANES // SIZES
FIRST_ROUND, FEWEST_STEPS, SHARE = 64, 16, 0.35  # steps; of the gradients that the tuning may spend
LOOKED_AT, ENERGIES = 16, 32  # draws of a chain whose gradients, and energies with all data, are evaluated
FAR_OFF = 10.0  # times the spread of the mean energies at the smaller step sizes, or nats
NEAR, FEWEST_SIZES = 10.0, 4
FEWEST_ROUNDS, MOST_ROUNDS = 6, 16
HALVINGS = 8
BEARABLE = 6.0  # standard deviations of the thermostat of ξ
PARTITION_SHARE, HOT = 0.15, 10.0  # of the gradients that the tuning may spend; times the target's temperature
LADDER_SHARE, NOISE_SHARE, NOISE_POINTS = 0.2, 0.02, 1024  # of the gradients; energies of all data in a round
MOST_NOISY_PAIRS, NEVER = 16, 2**30  # of rungs between which noise is 1 nat; steps
SELDOM, WRONG_CORRECTION = 0.95, 0.2  # rejected; share by which a correction may be off
UNEVEN = 2.0  # largest variance of the rungs' energies over the smallest
KNOB_SHARE = 0.1  # of the gradients that the tuning may spend, for each variant


def find_step_size(
    study: Study, sampler: Sampler, states: Floats, guess: float, noisy: Floats | None = None
) -> StepSize:
    """The largest step size of one replica of ``sampler`` whose bias is at most ``BIAS``, and is stable.

    states: (chain, dim). guess: of the largest that is stable; wrong by 2⁶ both ways, it is found all the same.
    noisy: where the noise of gradients is measured, (n, dim); None: at the states.
    """
    alone = replace(
        sampler, name="bias", step_sizes=(1.0,), temperatures=(study.temperature,), tempering=None,
        schedule=constant(), energy_noise=0.0, scale=study.scale,
    )  # fmt: skip
    limit, most = (
        study.spent + int(SHARE * study.n_gradients),
        most_for_noise(study, alone, states if noisy is None else noisy),
    )
    first = first_round(study)
    largest, length = min(guess, 8.0 * most), first
    starts, found = np.resize(states, (COPIES, study.dim)), None
    for attempt in range(MOST_ROUNDS):
        if study.spent + LANES * length * alone.gradients_per_step > limit and (found or attempt >= FEWEST_ROUNDS):
            break
        sizes = rounded(largest * 2.0 ** -np.arange(SIZES))
        energies, draws = sizes_run(study, alone, sizes, starts, length)
        usable: Any = usable_sizes(energies)
        if usable[0] and found is None and largest < 8.0 * most:
            largest, length = 16.0 * largest, first
        elif not usable[-4:].all() and found is None:
            largest, length = largest / 16.0, first
        elif usable[-FEWEST_SIZES:].all():
            found = at_most(found_step(study, sizes, energies, usable, draws), most)
            is_low = found[0] < sizes[-FEWEST_SIZES + 1] and found[1] > 2.0 * found[2] and length > 2 * first
            largest, length = (NEAR * found[0], length) if is_low else (largest, 2 * length)
        if not usable.any():
            continue
        good = draws[min(int(np.argmax(usable)) + 1, SIZES - 1), :, -1]  # of the second largest size that is usable
        starts = np.where(np.isfinite(good).all(axis=1, keepdims=True), good, starts)
    is_measured = found is not None
    if found is None:
        study.warn("No step size was found at which the moves are stable.")
        found = float(rounded(guess)), math.nan, math.nan
    return StepSize(*found, starts, is_measured)


def first_round(study: Study) -> int:
    """Steps of the first rounds: where energies of all data are evaluated besides, as few as the share allows."""
    if not study.problem.target.stochastic:
        return FIRST_ROUND
    return min(FIRST_ROUND, max(FEWEST_STEPS, int(SHARE * study.n_gradients / (FEWEST_ROUNDS * LANES))))


def stable_guess(study: Study, sampler: Sampler, laws: Normal) -> float:
    """About half the largest stable step size near minima: 1/k of the largest curvature, or 1 where none is known.

    Preconditioned Langevin divides the gradient by its root mean square, in which the noise of minibatches counts.
    """
    if not len(laws.values):
        return 1.0
    largest = float(laws.values.max())
    if not sampler.dynamics.known.normalises:
        return 1.0 / largest
    noise = float(np.diagonal(noise_covariance(study, sampler, laws.draws[:LANES])).max())
    return math.sqrt(largest * study.temperature + noise) / largest


def at_most(found: tuple[float, float, float], most: float) -> tuple[float, float, float]:
    """A step size, its bias and its uncertainty, of a step of at most ``most``."""
    share = min(1.0, most / found[0])
    return float(rounded(found[0] * share)), found[1] * share, found[2] * share


def sizes_run(study: Study, alone: Sampler, sizes: Floats, starts: Floats, n_steps: int) -> tuple[Floats, Floats]:
    """Mean energies (size, copy), inf where a chain diverged, and draws (size, copy, draw, dim), of one round."""
    swept = replace(alone, step_sizes=np.repeat(sizes, COPIES)[:, None])
    try:
        run = study.run(swept, n_steps, np.tile(starts, (SIZES, 1))[:, None], keep_energies=True)
    except DivergenceError as error:  # all of them
        run = error.run
    assert run.energies is not None
    with np.errstate(over="ignore", invalid="ignore"):
        energies = exact_energies(study, run.draws) if study.problem.target.stochastic else run.energies[:, 0]
        means = energies.mean(axis=1) if energies.shape[1] else np.full(LANES, math.inf)
    means = np.where(np.isfinite(means) & ~run.diverged, means, math.inf).reshape(SIZES, COPIES)
    study.add_round(
        "step size", run, temperatures=(study.temperature,) * SIZES, step_sizes=as_tuple(sizes),
        figure=as_tuple(means.mean(axis=1)), figure_name="mean energy",
    )  # fmt: skip
    draws = run.draws if run.draws.shape[1] else np.tile(starts, (SIZES, 1))[:, None]
    return means, draws.reshape(SIZES, COPIES, -1, study.dim)


def exact_energies(study: Study, draws: Floats) -> Floats:
    """Energies with all data, (chain, some draws), nan where a draw is not finite; minibatches' are too noisy."""
    some = draws[:, :: max(1, draws.shape[1] // ENERGIES)]
    finite = np.asarray(np.isfinite(some).all(axis=2))
    points = np.where(finite[..., None], some, 0.0).reshape(-1, study.dim)
    return np.asarray(np.where(finite, study.evaluate(points)[0].reshape(finite.shape), math.nan))


def usable_sizes(energies: Floats) -> Any:
    """Whether no chain of a step size diverged, nor its mean energy is far off, nor that of a smaller one, (size,)."""
    small = energies[SIZES // 2 :]
    if not np.isfinite(small).any():
        return np.zeros(SIZES, np.bool_)
    level, spread = float(np.median(small)), float(np.subtract(*np.quantile(small[np.isfinite(small)], [0.9, 0.1])))
    fine = energies.mean(axis=1) < level + FAR_OFF * max(spread, 1.0)
    return np.logical_and.accumulate(fine[::-1])[::-1]


def found_step(study: Study, sizes: Floats, energies: Floats, usable: Any, draws: Floats) -> tuple[float, float, float]:
    """Step size, bias, uncertainty: of the line E = a + c h through the usable sizes, by weighted least squares.

    The same chains begin in the same states at all sizes, so what differs between chains is no noise of the slope.
    Sizes above ``NEAR`` times the step are left out, where energies may bend, as long as ``FEWEST_SIZES`` remain.
    """
    some = draws[SIZES // 2 :, :, :: -(-draws.shape[2] // LOOKED_AT)].reshape(-1, study.dim)
    curvature = np.nanmean(study.evaluate(some[np.isfinite(some).all(axis=1)])[1] ** 2, axis=0)
    if study.scale is not None:
        curvature = curvature * np.array(study.scale) ** 2
    share = float(curvature.max() / curvature.sum()) / study.temperature
    order, largest = np.flatnonzero(usable), 0.5 * float(sizes[usable][0])
    while True:
        slope, error, linear = fitted(sizes[order], energies[order])
        cautious = max(abs(slope), error)  # a slope that noise hides may be as large as its error
        step = min(BIAS / (share * cautious), largest) if cautious > 0.0 else largest
        if len(order) <= FEWEST_SIZES or sizes[order[0]] <= NEAR * step:
            break
        order = order[1:]
    found = float(rounded(step))
    level = linear + float(energies[order].mean())  # of which the line's values are differences
    fit = Fit(level, slope, error, BIAS / share, float(sizes[order[0]]), found)
    study.rounds[-1] = study.rounds[-1]._replace(fit=fit)
    return found, share * slope * step, share * error * step


def fitted(sizes: Floats, energies: Floats) -> tuple[float, float, float]:
    """Slope over ``sizes`` (size,) of ``energies`` (size, copy), its standard error, and the intercept.

    The intercept is of the differences from the mean of all.
    """
    values = energies - energies.mean(axis=0)
    variances = np.maximum(values.var(axis=1, ddof=1), 1e-12) / values.shape[1]
    variances = np.maximum(variances, 0.1 * variances.mean())  # of eight chains, which may agree by chance
    means, weights = values.mean(axis=1), 1.0 / variances
    centre = (weights * sizes).sum() / weights.sum()
    spread = (weights * (sizes - centre) ** 2).sum()
    slope = float((weights * (sizes - centre) * means).sum() / spread)
    return slope, float(1.0 / math.sqrt(spread)), float((weights * means).sum() / weights.sum() - slope * centre)


# The other numbers, raced one after the other.


def variants(sampler: Sampler, is_noisy: bool) -> Iterator[tuple[str, Sampler, Sampler]]:
    """Knobs of a sampler: a name, and the sampler with it smaller and larger.

    Friction is none where gradients are noisy: less of it makes chains faster, and hotter, which no race sees.
    """
    dynamics, schedule = sampler.dynamics, sampler.schedule
    tempering: Any = sampler.tempering
    for knob in dynamics.known.knobs:
        if not is_noisy or knob.is_for_noise:
            value = dynamics.parameters[knob.place]
            lower, upper = (float(rounded(min(given, knob.highest))) for given in (value / 3.0, value * 3.0))
            smaller, larger = (replace(sampler, dynamics=dynamics.with_knob(knob, given)) for given in (lower, upper))
            yield knob.name, smaller, larger
    for name, (_, factor) in sampler.tempers.raced.items():
        present: float = getattr(tempering, name)
        less, greater = ({name: float(rounded(present * f))} for f in (1.0 / factor, factor))
        smaller, larger = (replace(sampler, tempering=replace(tempering, **given)) for given in (less, greater))
        yield name, smaller, larger
    if schedule.made_by is not None and schedule.made_by[0] == "cosine_cycles":
        kind, numbers = schedule.made_by
        fewer, more = (
            make_again(kind, {**numbers, "n_cycles": max(1, round(numbers["n_cycles"] * f))}) for f in (1.0 / 3.0, 3.0)
        )
        yield "n_cycles", replace(sampler, schedule=fewer), replace(sampler, schedule=more)


def race_knobs(study: Study, sampler: Sampler, states: Floats) -> Result:
    """Each knob moved as long as the score rises, one after the other.

    Under continuous tempering all begin in ``states``: ξ begins cold, and chains of higher energies would throw it.
    """
    each = int(KNOB_SHARE * study.n_gradients)
    is_noisy = study.problem.target.stochastic or sampler.gradient_noise > 0.0
    best = raced(study, "as it is", sampler, states, each)
    for _ in range(HALVINGS):
        if not best.run.diverged.any():
            break
        rung = coldest_divergence(best.run) if sampler.tempers.swaps else None
        if rung is not None and not is_noisy:
            ladder = Ladder(sampler.arrays["temperatures"], sampler.arrays["step_sizes"], states, 0.0)
            ladder = below_divergence(study, ladder, best.run, rung)
            sampler, states = with_ladder(sampler, ladder), ladder.states
            best = raced(study, "as it is", sampler, states, each)
            continue
        sampler = replace(sampler, step_sizes=rounded(0.5 * sampler.arrays["step_sizes"]))
        study.note("Some chains diverged: step sizes halved.")
        best = raced(study, "as it is", sampler, states, each)
    if best.run.diverged.any():
        study.warn("Some chains diverge at the step sizes that were found, and at much smaller ones.")
    is_continuous = sampler.tempers.couples
    for name in [name for name, *_ in variants(sampler, is_noisy)]:

        def trial(found: Result, way: int, name: str = name) -> tuple[Sampler, Floats] | None:
            moved = next(pair[way] for called, *pair in variants(found.sampler, is_noisy) if called == name)
            if moved == found.sampler or shortest(moved) * len(states) * moved.gradients_per_step > 2 * each:
                return None  # no other, or one with more cycles than a race has steps for
            return moved, states if is_continuous else found.states

        best = climbed(study, name, best, trial, (each, study.n_gradients))
    return best._replace(states=states) if is_continuous else best


# What each tempering needs besides.


def contour_partition(levels: Explored, top: int, temperature: float) -> Partition:
    """Bins of energy from those of the target's temperature up to those of level ``top``, each T/2 to T wide.

    From the energies that exploration saw, rounded.
    """
    return rounded_partition(partition_of(levels.energies[0], levels.energies[top], 0.75 * temperature, temperature))


def rounded_partition(found: Partition) -> Partition:
    """``found`` with numbers of few digits."""
    return replace(found, u_min=float(rounded(found.u_min)), width=float(rounded(found.width)))


def noisy_partition(study: Study, sampler: Sampler, found: StepSize) -> Partition:
    """Bins of the energies of minibatches, as ``find_partition`` has them, from two short runs: at T, and at 10 T.

    Once in a tuning: a sampler without a partition makes a pilot of 128,000 gradients at every run.
    """
    steps = max(FEWEST_STEPS, int(PARTITION_SHARE * study.n_gradients / (2 * LANES)))
    states = np.resize(found.states, (LANES, 1, study.dim))
    seen = [np.tile(study.evaluate(states[:, 0])[0][:, None], 2)]  # where no chain gets anywhere
    for factor in (1.0, HOT):
        alone = replace(
            sampler, name="partition", step_sizes=(found.step_size,), temperatures=(factor * study.temperature,),
            tempering=None, schedule=constant(), energy_noise=0.0, scale=study.scale,
        )  # fmt: skip
        try:
            run = study.run(alone, steps, states, keep_energies=True)
        except DivergenceError as error:  # all chains
            run = error.run
        assert run.energies is not None
        energies = run.energies[:, 0]
        energies = energies[np.isfinite(energies).all(axis=1)]
        seen.append(energies if energies.size else seen[-1])
        study.add_round(
            "partition", run, temperatures=as_tuple(alone.temperatures), step_sizes=as_tuple(alone.step_sizes),
            figure=(float(energies.mean()) if energies.size else math.nan,), figure_name="mean energy",
        )  # fmt: skip
    _, cold, hot = seen
    width = max(0.5 * study.temperature, float(np.quantile(np.abs(np.diff(cold, axis=1)), CHANGE_QUANTILE)))
    return rounded_partition(partition_of(cold, hot, width, study.temperature))


def with_stable_thermostat(
    tempering: ContinuousTempering, top: float, step_size: float, temperature: float
) -> ContinuousTempering:
    """``tempering`` up to ``top``, at least 2, with a friction of ξ that its momentum can bear.

    The friction c is at most half of what is stable, and the inertia γ so large that only ``BEARABLE`` standard
    deviations of the thermostat, which is N(c, h T/γ), come to what is not.
    """
    found = replace(tempering, top_temperature=float(rounded(max(top, 2.0))), friction=0.0)
    limit = 1.0 / found.steepest**2
    friction = min(tempering.friction, float(rounded(0.5 * limit)))
    inertia = BEARABLE**2 * (found.step_size or step_size) * temperature / (limit - friction) ** 2
    return replace(found, friction=friction, inertia=float(rounded(max(tempering.inertia, inertia))))


def find_biased_ladder(study: Study, sampler: Sampler, ladder: Ladder) -> Ladder:
    """Rungs of equal rejection, as ``find_ladder``, with step sizes as they are; where hot ones diverge, fewer."""
    length, limit = 32, study.spent + int(LADDER_SHARE * study.n_gradients)
    first = True
    while first or study.spent + LANES * length * sampler.dynamics.gradients <= limit:
        first = False
        try:
            run = study.run(with_ladder(sampler, ladder), length, ladder.states)
        except DivergenceError as error:  # all chains
            run = error.run
            if coldest_divergence(run) is None:
                raise
            study.spent += run.gradient_evaluations
        rejected = rejections(run)
        study.add_round(
            "ladder", run, temperatures=as_tuple(ladder.temperatures), step_sizes=as_tuple(ladder.step_sizes),
            rejection=as_tuple(rejected),
        )  # fmt: skip
        rung = coldest_divergence(run)
        if rung is not None:
            ladder = below_divergence(study, ladder, run, rung)
            continue
        ladder = recut(ladder, rejected, finite_ends(run, ladder.states))
        length *= 2
    return ladder


def with_ladder(sampler: Sampler, ladder: Ladder) -> Sampler:
    """``sampler`` with the rungs of ``ladder``."""
    return replace(sampler, step_sizes=ladder.step_sizes, temperatures=ladder.temperatures)


def follows_law(sampler: Sampler, law: Any) -> bool:
    """Whether the bias of its moves follows a law: not with the force of a penalty, nor with noise taken to be known.

    law: of ``Knowledge``; None where it is unknown.
    """
    dynamics = sampler.dynamics
    heating = None if dynamics.known.heating is None else dynamics.known.heating(dynamics.parameters)
    compensates = heating is not None and heating.compensated > 0.0
    return law is not None and sampler.boundary.kind != "penalise" and not compensates


def tune_biased(
    study: Study, sampler: Sampler, levels: Explored | None, choice: Choice | None, starts: Floats
) -> Result:
    """All numbers of a sampler without a Metropolis test. levels: None for gradients that are noisy of themselves."""
    laws = None
    if levels is None:
        minima = descended(study, starts, np.full(len(starts), -math.inf))[0]
        laws = around_minima(study, minima)
        if study.problem.domain is None and follows_law(sampler, sampler.dynamics.known.heating) and len(laws.values):
            found = step_by_law(study, sampler, laws)
        else:
            begin = laws.minima if len(laws.minima) else minima
            found = find_step_size(study, sampler, begin, stable_guess(study, sampler, laws), laws.draws)
    elif follows_law(sampler, sampler.dynamics.known.own_width):
        found = step_at_exact_draws(study, sampler, levels)
    else:
        found = find_step_size(study, sampler, levels.positions[0], float(levels.step_sizes[0] ** 2))
    if found.is_measured:
        study.note(
            f"Step size {found.step_size:.4g}: its bias is {found.bias:.1%} ± {found.uncertainty:.1%} of a standard "
            f"deviation, from chains of {SIZES} step sizes; {BIAS:.0%} is allowed."
        )
    tempering: Any = sampler.tempers
    if tempering.swaps:
        if levels is None or choice is None:
            assert laws is not None
            return race_knobs(study, *noisy_exchange(study, sampler, found, laws))
        return race_knobs(study, *biased_exchange(study, sampler, levels, choice, found))
    n_replicas = sampler.n_replicas
    base = rounded(found.step_size / mean_factor(sampler))
    top = max(1, choice.level) if choice is not None else 0
    if tempering.weighs_by_chain:
        partition = (
            noisy_partition(study, sampler, found)
            if levels is None
            else contour_partition(levels, top, study.temperature)
        )
        sampler = replace(sampler, tempering=replace(tempering, partition=partition))
    if tempering.couples and levels is not None:
        top_temperature = levels.temperatures[top] / study.temperature
        sampler = replace(
            sampler, tempering=with_stable_thermostat(tempering, top_temperature, base, study.temperature)
        )
    sampler = replace(
        sampler, step_sizes=(base,) * n_replicas, scale=study.scale, temperatures=(study.temperature,) * n_replicas
    )
    chains = chains_for(n_replicas)
    return race_knobs(study, sampler, np.resize(found.states, (chains, n_replicas, study.dim)))


def mean_factor(sampler: Sampler) -> float:
    """Mean of the schedule's multiples of the step size where draws are kept; 1 for what falls off for good."""
    if sampler.schedule.made_by is None or sampler.schedule.made_by[0] != "cosine_cycles":
        return 1.0
    factors = sampler.schedule.factors(np.arange(6000), 6000)
    return float(max(factors.step_size[factors.keep].mean(), 0.05))


def biased_exchange(
    study: Study, sampler: Sampler, levels: Explored, choice: Choice, found: StepSize
) -> tuple[Sampler, Floats]:
    """A ladder of a sampler with replica exchange: step sizes in the ratios of those of HMC, squared."""
    ladder = first_ladder(levels, choice.top)
    ratios = (ladder.step_sizes / ladder.step_sizes[0]) ** 2
    ladder = ladder._replace(step_sizes=rounded(found.step_size * np.clip(ratios, 0.1, 100.0)))
    sampler = with_ladder(replace(sampler, scale=study.scale), ladder)
    ladder = find_biased_ladder(study, sampler, ladder)
    return with_ladder(sampler, ladder), ladder.states


# Replica exchange by energies of minibatches.


class NoisyRungs(NamedTuple):
    """What rungs are made of: temperatures and step sizes, between which logarithms are interpolated, and the laws."""

    temperatures: Floats
    step_sizes: Floats
    found: StepSize
    laws: Normal

    def ladder(self, temperatures: Floats) -> Ladder:
        """Rungs at ``temperatures``, with states as wide around their minima as there."""
        step_sizes = np.exp(np.interp(np.log(temperatures), np.log(self.temperatures), np.log(self.step_sizes)))
        chains, widenings = chains_for(len(temperatures)), np.sqrt(temperatures / self.temperatures[0])
        states = np.resize(self.found.states, (chains, 1, self.found.states.shape[1]))
        centres = states
        if len(self.laws.minima) and self.found.states is self.laws.draws:
            centres = np.resize(self.laws.minima, states.shape)
        states = centres + widenings[:, None] * (states - centres)
        return Ladder(rounded(temperatures), rounded(step_sizes), states, 0.0)


def noisy_exchange(study: Study, sampler: Sampler, found: StepSize, laws: Normal) -> tuple[Sampler, Floats]:
    """A ladder whose swaps are corrected by the measured variance s² of the minibatches' energies, F = s².

    A correction that is tuned to a rate of swaps mixes the laws of the rungs: where s² is large, swaps are accepted as
    if the difference δ of the inverse temperatures were δ F/s². With F = s² at most 2 Φ(−δ s/√2) of them are accepted,
    so that δ must be about 1/s. Where that takes more than ``MOST_NOISY_PAIRS`` the rungs stay as they are, their swaps
    practically never happen, and a warning says so.
    """
    tempering: Any = sampler.tempering
    temperatures = sampler.arrays["temperatures"] * (study.temperature / sampler.arrays["temperatures"][0])
    ends = temperatures[[0, -1]]
    hottest = found.step_size
    if found.states is laws.draws:
        hottest = max(hottest, step_by_law(study, sampler, widened(laws, ends[1] / ends[0]), float(ends[1])).step_size)
    rungs = NoisyRungs(ends, np.array([found.step_size, hottest]), found, laws)
    ladder, steps = rungs.ladder(temperatures), max(FEWEST_STEPS, int(NOISE_SHARE * study.n_gradients / LANES))
    sampler = replace(sampler, scale=study.scale)
    apart = replace(sampler, tempering=replace(tempering, correction=0.0, swap_every=NEVER))
    _, variances, _ = noisy_round(study, with_ladder(apart, ladder), ladder, steps)
    if isinstance(tempering.correction, AdaptedCorrection | float):
        warn_of_correction(study, tempering.correction, ladder.temperatures, variances)
        ladder = find_biased_ladder(study, with_ladder(sampler, ladder), ladder)
        return with_ladder(sampler, ladder), ladder.states
    slopes = np.sqrt(variances[1:] + variances[:-1])  # of the deviation of a swap's noise, in nats, by δ
    parts = np.concatenate([[0.0], np.cumsum(-np.diff(1.0 / ladder.temperatures) * slopes)])
    if parts[-1] > MOST_NOISY_PAIRS:
        rate = 2.0 * float(scipy.special.ndtr(-0.5 * np.diff(parts).min()))
        study.warn(
            f"Energies of minibatches have a standard deviation of {math.sqrt(variances.max()):.3g}, so that unbiased "
            f"swaps between the temperatures {numbers(ladder.temperatures)} are accepted at {rate:.1g} at most: "
            f"replica exchange does not pay here. Larger minibatches, control variates, or {math.ceil(parts[-1]) + 1} "
            "rungs would let them swap."
        )
        return with_correction(with_ladder(sampler, ladder), variances), ladder.states
    if variances.max() > UNEVEN * variances.min():
        study.warn(
            f"The noise of minibatches' energies depends on the place: its standard deviation is "
            f"{math.sqrt(variances.min()):.3g} to {math.sqrt(variances.max()):.3g} between the temperatures "
            f"{numbers(ladder.temperatures)}. No one correction leaves the laws as they are, by up to 7 % of an "
            "sd with control variates, so the rungs stay far apart and hardly swap: replica exchange does not "
            "pay here."
        )
        return with_correction(with_ladder(sampler, ladder), np.sort(variances)[::-1]), ladder.states
    if parts[-1] > len(temperatures) - 1:
        places = equal_parts(np.log(ladder.temperatures), parts, math.ceil(parts[-1]))
        ladder = rungs.ladder(np.exp(places))
        variances = np.interp(places, np.log(temperatures), variances)
    limit, is_first = study.spent + int(LADDER_SHARE * study.n_gradients), True
    while is_first or study.spent + LANES * steps + NOISE_POINTS <= limit:
        trial = with_correction(with_ladder(sampler, ladder), variances)
        rejected, variances, ends_of_run = noisy_round(study, trial, ladder, steps)
        recut_ladder = recut(ladder, rejected, ends_of_run)
        variances = np.interp(np.log(recut_ladder.temperatures), np.log(ladder.temperatures), variances)
        ladder, steps, is_first = recut_ladder, 2 * steps, False
    if rejected.max() > SELDOM:
        study.warn(
            f"Swaps of neighbouring rungs are rejected at up to {rejected.max():.1%}, for the noise of minibatches: "
            "replica exchange does not pay here."
        )
    return with_correction(with_ladder(sampler, ladder), variances), ladder.states


def noisy_round(study: Study, sampler: Sampler, ladder: Ladder, steps: int) -> tuple[Floats, Floats, Floats]:
    """Rejections of the pairs, variances (rung,) of the minibatches' energies, and states at the end of a short run."""
    run = study.run(sampler, steps, ladder.states, keep_energies=True)
    assert run.energies is not None
    rejected, n_rungs = rejections(run), len(ladder.temperatures)
    some = np.linspace(0, run.energies.shape[2] - 1, max(1, NOISE_POINTS // (n_rungs * run.n_chains))).astype(np.int64)
    points, energies = run.replica_draws[:, :, some], run.energies[:, :, some]
    finite = np.isfinite(points).all(axis=3) & np.isfinite(energies)
    exact = study.evaluate(np.where(finite[..., None], points, 0.0).reshape(-1, study.dim))[0].reshape(finite.shape)
    squares = np.where(finite, (energies - exact) ** 2, math.nan)
    variances = np.nan_to_num(np.nanmean(squares, axis=(0, 2)))
    study.add_round(
        "ladder", run, temperatures=as_tuple(ladder.temperatures), step_sizes=as_tuple(ladder.step_sizes),
        rejection=as_tuple(rejected), figure=as_tuple(np.sqrt(variances)), figure_name="noise of energies",
    )  # fmt: skip
    ends = np.where(np.isfinite(run.replica_draws[:, :, -1]), run.replica_draws[:, :, -1], ladder.states)
    return rejected, variances, ends


def warn_of_correction(study: Study, given: AdaptedCorrection | float, temperatures: Floats, variances: Floats) -> None:
    """A warning where a correction that the sampler has does not fit the noise of the energies."""
    fitting = 0.5 * (variances[1:] + variances[:-1])
    if isinstance(given, AdaptedCorrection):
        most = 2.0 * scipy.special.ndtr(np.diff(1.0 / temperatures) * np.sqrt(0.5 * fitting))
        if given.target_rate > most.min():
            study.warn(
                f"Energies of minibatches have a standard deviation of {math.sqrt(variances.max()):.3g}, with which "
                f"unbiased swaps are accepted at {most.min():.1g} at most: a correction adapted to a rate of "
                f"{given.target_rate:g} mixes the laws of the temperatures; leave out correction, and it is measured."
            )
    elif np.abs(given / np.maximum(fitting, 1e-300) - 1.0).max() > WRONG_CORRECTION:
        study.warn(
            f"correction is {given:g}, and half the variance of a difference of two energies of minibatches is "
            f"{fitting.min():.3g} to {fitting.max():.3g}: swaps mix the laws of the temperatures; leave out "
            "correction, and it is measured."
        )


def with_correction(sampler: Sampler, variances: Floats) -> Sampler:
    """``sampler`` with the mean of the two coldest rungs' ``variances`` as the correction of its swaps."""
    exchange: Any = sampler.tempering
    return replace(sampler, tempering=replace(exchange, correction=float(rounded(variances[:2].mean()))))
