"""Exploration: many temperatures at once, without swaps, to see at which one chains forget where they began.

Each temperature has ``COPIES`` chains of HMC. After every round the chains change places: each temperature gets one
state of every other, brought down to its energies by descent. So the cold ones begin in whatever the hot ones have
found, and one that cannot leave its start is seen.
"""

import math
from typing import NamedTuple

import numpy as np

from ..dynamics import hmc
from ..samplers.sampler import Sampler
from .step_sizes import Improvement, first_step_sizes, harmonic_mean
from .study import LANES, Floats, Study, as_tuple, geometric_mean, rounded

LEVELS = 8
EXPONENTS = tuple(range(8)), (0, 1, 2, 4, 6, 9, 12, 16)  # temperatures T to 128 T; where that is too cold, to 65,536 T
COPIES = LANES // LEVELS
LEAPFROGS = 4
FIRST_ROUND, LONG_ENOUGH, LONG_ENOUGH_IN_WALLS, LONGEST = 8, 32, 64, 64  # steps; leapfrogs
SHARE, MOST = 0.35, 0.6  # of the gradients that the tuning may spend
CLEAR, MIXED = 0.35, 0.6  # of the variance, between chains: above it nothing can be said but that they have not mixed
IMPROPER = 0.5  # of E[x ∂U] = dim · T: below it positions drift away, and there is no law
MOVES = 0.4  # acceptance from which a round's draws tell whether there is a law
UNCLEAR = 0.25  # of that: enough for a guess, where no temperature is known to mix
STUCK = 1.0  # share of the variance between chains, at most 8/7: above it each is where it began
LOOKED_AT = 16  # draws of a chain at which gradients are evaluated
SCALED_FROM, WORTH_SCALING = 16, 3.0  # steps of a round whose gradients tell; ratio of scales
DESCENT, HOPELESS = 40, 30.0  # evaluations of a descent; temperatures above what is wanted
ADDED_LEVELS = 8


class Explored(NamedTuple):
    """What a round shows of each temperature, (level,).

    between: the largest share, over coordinates and the energy, of the chains' means in the variance. virial: mean of
    (x − x̄) · ∂U over dim · T, x̄ the chain's mean; the median of the chains. steepness: mean of (∂U)² of each
    coordinate, (level, dim), the median of the chains. barrier: mean of ½ |U − U'| of two draws. energies: (level,
    draw); positions: (level, chain, dim) at the end. steps: over which it was measured, of so many ``leapfrogs``.
    """

    temperatures: Floats
    step_sizes: Floats
    acceptance: Floats
    between: Floats
    virial: Floats
    steepness: Floats
    barrier: Floats
    energies: Floats
    positions: Floats
    steps: int
    leapfrogs: int


def explore(study: Study, starts: Floats) -> Explored:
    """Rounds of doubling length, of all temperatures. starts: (chain, dim), ``LANES`` of them.

    Where no temperature mixes, trajectories are made longer instead, which is worth more on narrow valleys; between
    walls, where a longer one is rejected more often, one doubling later. Ends at ``SHARE`` where the best temperature
    is clear, else at ``MOST``.
    """
    temperatures = study.temperature * 2.0 ** np.array(EXPONENTS[0])
    of_lane = np.repeat(temperatures, COPIES)
    step_sizes = np.median(first_step_sizes(study, starts, of_lane).reshape(LEVELS, COPIES), axis=1)
    steps = Improvement("hmc")
    length, leapfrogs, states = FIRST_ROUND, LEAPFROGS, starts.reshape(LEVELS, COPIES, -1)
    before, is_bounded = study.spent, study.problem.domain is not None
    long_enough = LONG_ENOUGH_IN_WALLS if is_bounded else LONG_ENOUGH
    while True:
        levels = explore_round(study, temperatures, step_sizes, states, (length, leapfrogs))
        step_sizes = steps.next(step_sizes, levels.acceptance)
        step_sizes = step_sizes * rescale(study, levels)
        if length >= LONG_ENOUGH:
            study.sites.append(levels.positions[0])
        hotter = study.temperature * 2.0 ** np.array(EXPONENTS[1])
        tried = is_bounded or leapfrogs > LEAPFROGS or length > LONG_ENOUGH  # longer trajectories come first
        reaches = length >= SCALED_FROM and tried and hotter[-1] > temperatures[-1] and wants_hotter(levels, is_bounded)
        if reaches:
            step_sizes = np.exp(np.interp(np.log(hotter), np.log(temperatures), np.log(step_sizes)))
            temperatures, steps = hotter, Improvement("hmc")
        elif length >= long_enough and not np.isfinite(choose_top(levels, is_bounded).costs).any():
            leapfrogs *= 2
        else:
            length *= 2
        share = (study.spent - before + LANES * length * leapfrogs) / study.n_gradients
        if share > (SHARE if is_clear(levels, is_bounded) else MOST) or leapfrogs > LONGEST:
            return levels._replace(step_sizes=step_sizes)
        states = exchanged(study, levels)
        if reaches:
            step_sizes = np.maximum(step_sizes, step_sizes_above(study, levels, states, temperatures))


def step_sizes_above(study: Study, levels: Explored, states: Floats, temperatures: Floats) -> Floats:
    """Step sizes for ``temperatures`` (level,) above those of ``levels``, from ``states`` (level, chain, dim); else 0.

    Steps as of the hottest so far would be far too short at 65,536 times the temperature, and no round makes one more
    than ``UP`` times as long. In units of ``study.scale``, as those of the rounds.
    """
    above = temperatures > levels.temperatures[-1]
    found = np.zeros(len(temperatures))
    if above.any():
        points = states[above].reshape(-1, study.dim)
        sizes = first_step_sizes(study, points, np.repeat(temperatures[above], states.shape[1]))
        found[above] = np.median(sizes.reshape(-1, states.shape[1]), axis=1)
    return found


def rescale(study: Study, levels: Explored) -> float:
    """Set the scale of each coordinate to 1/√E[(∂U)²/T] at the coldest temperature, to a common factor.

    That is the mean curvature, which does not see how far apart modes are, as a standard deviation would. Left as it is
    where it would change by less than ``WORTH_SCALING``. Returns a factor of step sizes, that
    keeps the largest one stable.
    """
    steepness = levels.steepness[0]
    if not study.may_scale or study.dim == 1 or levels.steps < SCALED_FROM:
        return 1.0
    if not (np.isfinite(steepness).all() and (steepness > 0.0).all()):
        return 1.0
    widths = 1.0 / np.sqrt(steepness / study.temperature)
    before = np.ones(study.dim) if study.scale is None else np.array(study.scale)
    change = widths / before
    last, study.widths = study.widths, widths
    if change.max() < WORTH_SCALING * change.min() or last is None:
        return 1.0
    if (widths / last).max() > WORTH_SCALING * (widths / last).min():
        return 1.0  # no two rounds agree, as in a funnel
    scale = rounded(np.clip(widths / geometric_mean(widths), 1e-9, 1e9))
    study.scale = as_tuple(scale)
    return float((widths / scale).min() / change.min())


def wants_hotter(levels: Explored, is_bounded: bool) -> bool:
    """Whether the hottest level has a law, and has not mixed."""
    return bool(levels.between[-1] >= MIXED and (is_bounded or n_lawful(levels) == len(levels.between)))


def is_clear(levels: Explored, is_bounded: bool) -> bool:
    """Whether the best temperature has mixed well enough for its cost to be known."""
    choice = choose_top(levels, is_bounded)
    return bool(np.isfinite(choice.costs[choice.level]) and levels.between[choice.level] < CLEAR)


def explore_round(
    study: Study, temperatures: Floats, step_sizes: Floats, states: Floats, size: tuple[int, int]
) -> Explored:
    """One round. states: (level, chain, dim). size: steps, and leapfrogs of each."""
    n_steps, leapfrogs = size
    n_levels, copies, dim = states.shape
    sampler = Sampler(
        "exploration", np.repeat(rounded(step_sizes), copies)[:, None], np.repeat(temperatures, copies)[:, None],
        dynamics=hmc(n_leapfrogs=leapfrogs), boundary=study.boundary, scale=study.scale,
    )  # fmt: skip
    run = study.run(sampler, n_steps, states.reshape(-1, 1, dim), keep_energies=True)
    assert run.energies is not None
    draws = run.draws.reshape(n_levels, copies, -1, dim)
    energies = run.energies.reshape(n_levels, copies, -1)
    stride = -(-draws.shape[2] // LOOKED_AT)
    some = draws[:, :, ::stride]
    gradients = study.evaluate(some.reshape(-1, dim))[1].reshape(some.shape)
    centres = draws.mean(axis=2, keepdims=True)
    levels = Explored(
        temperatures=temperatures,
        step_sizes=step_sizes,
        acceptance=harmonic_mean(run.acceptance[:, 0].reshape(n_levels, copies).T, run.sampling_steps),
        between=np.array([between_share(d, e) for d, e in zip(draws, energies, strict=True)]),
        virial=np.median(((some - centres) * gradients).sum(axis=3).mean(axis=2), axis=1) / (dim * temperatures),
        steepness=np.median((gradients**2).mean(axis=2), axis=1),
        barrier=np.array([mean_difference(e.ravel()) for e in energies]) / 2.0,
        energies=energies.reshape(n_levels, -1),
        positions=draws[:, :, -1],
        steps=draws.shape[2],
        leapfrogs=leapfrogs,
    )
    study.add_round(
        "exploration", run, temperatures=as_tuple(temperatures), step_sizes=as_tuple(step_sizes),
        acceptance=as_tuple(levels.acceptance), figure=as_tuple(levels.between),
        figure_name="share of the variance between chains",
    )  # fmt: skip
    return levels


def between_share(draws: Floats, energies: Floats) -> float:
    """The largest share, over coordinates and energy, that the variance of chains' means has in the variance of all."""
    values = np.concatenate([draws, energies[..., None]], axis=2)
    total = values.reshape(-1, values.shape[2]).var(axis=0)
    means = values.mean(axis=1).var(axis=0, ddof=1)
    return float((means[total > 0.0] / total[total > 0.0]).max(initial=0.0))


def mean_difference(values: Floats) -> float:
    """Mean of |a − b| over all pairs of ``values``, by their order."""
    arranged, n = np.sort(values), len(values)
    ranks = 2.0 * np.arange(n) - n + 1.0
    return float(2.0 * (ranks * arranged).sum() / (n * (n - 1))) if n > 1 else 0.0


def exchanged(study: Study, levels: Explored) -> Floats:
    """States (level, chain, dim) of the next round: chain c of level l continues from chain c of level l + c.

    Levels without a law are left out, and continue from those that have one. A state that cannot be brought down to
    energies that its new level ever has stays where it was, and the level's own one goes on in its place.
    """
    n_levels, copies, dim = levels.positions.shape
    lawful = n_levels if study.problem.domain is not None or levels.steps < SCALED_FROM else n_lawful(levels)
    source = (np.arange(n_levels)[:, None] + np.arange(copies)) % lawful
    states = levels.positions[source, np.arange(copies)]
    ceilings = levels.energies.min() + dim * levels.temperatures
    moved, energies = descended(study, states.reshape(-1, dim), np.repeat(ceilings, copies))
    is_high = energies.reshape(n_levels, copies) > (ceilings + HOPELESS * levels.temperatures)[:, None]
    return np.where(is_high[..., None], levels.positions, moved.reshape(states.shape))


def descended(study: Study, points: Floats, ceilings: Floats) -> tuple[Floats, Floats]:
    """``points`` (n, dim) moved down their gradients until their energies are at most ``ceilings`` (n,).

    Each has a step length of its own, which doubles where the energy falls and is quartered where it does not; in the
    domain. One that stays above, in a local minimum perhaps, is left where it came to. Returns the energies too.
    """
    states = np.array(points)
    squares = np.ones(study.dim) if study.scale is None else np.array(study.scale) ** 2
    energy, gradient = study.evaluate(states)
    with np.errstate(all="ignore"):
        steepest = np.abs(squares * gradient).max(axis=1)
        size = 2.0 ** np.round(np.log2(np.maximum(np.abs(states).max(axis=1), 1.0) * 1e-2 / steepest))
    active = (energy > ceilings) & np.isfinite(size) & (size > 0.0)
    for _ in range(DESCENT):
        index = np.flatnonzero(active)
        if index.size == 0:
            break
        trial = states[index] - size[index, None] * (squares * gradient[index])
        inside = study.problem.contains(trial)
        trial = np.where(inside[:, None], trial, states[index])
        new_energy, new_gradient = study.evaluate(trial)
        falls = inside & (new_energy < energy[index]) & np.isfinite(new_gradient).all(axis=1)
        moved = index[falls]
        states[moved], energy[moved], gradient[moved] = trial[falls], new_energy[falls], new_gradient[falls]
        size[index] *= np.where(falls, 2.0, 0.25)
        active[moved] = energy[moved] > ceilings[moved]
    return states, energy


# The top temperature: that with the least expected cost of an independent draw.


class Choice(NamedTuple):
    """The top of the ladder.

    level: of the top temperature; 0: no tempering. barrier: up to it. costs: expected, of each level, in steps of
    one replica per independent draw, inf where nothing is known; where that is so of all, the level is a guess. top: of
    a ladder that there has to be, ≥ 1: the level, or where that is 0 and the target's own chains are ``STUCK``, the one
    with the smallest share between chains, where they may at least get from one mode to another.
    """

    level: int
    barrier: float
    costs: Floats
    top: int = 1


def barriers(levels: Explored) -> Floats:
    """Λ from the coldest temperature up to each, (level,): ∫ λ dβ, λ = ½ E|U − U'|, by trapezia in log β."""
    integrand = levels.barrier / levels.temperatures
    steps = 0.5 * (integrand[1:] + integrand[:-1]) * np.diff(np.log(levels.temperatures))
    return np.concatenate([[0.0], np.cumsum(steps)])


def scans_per_restart(barrier: float, n_pairs: int) -> float:
    """Scans from one arrival of a fresh state to the next, 2 + 2 Σ r/(1 − r), r = Λ / pairs; inf where r ≥ 1.

    Source: Syed et al. (2022), theorem 1 and corollary 2.
    """
    return 2.0 + 2.0 * n_pairs * barrier / (n_pairs - barrier) if n_pairs > barrier else math.inf


def best_pairs(barrier: float, most: int = 63) -> int:
    """The number of pairs at which the rungs' steps per restart, (n + 1) (2 + 2 n Λ/(n − Λ)), are fewest; near 2 Λ."""
    return min(range(1, most + 1), key=lambda n: (n + 1) * scans_per_restart(barrier, n))


def n_lawful(levels: Explored, least: float = IMPROPER) -> int:
    """Temperatures, from the coldest, up to the last that has a law: hotter ones drift away; at least 1.

    least: of the virial, which is too small where chains have not yet been everywhere.
    """
    lawful = np.flatnonzero(levels.virial > least)
    return int(lawful[-1]) + 1 if lawful.size else 1


def choose_top(levels: Explored, is_bounded: bool) -> Choice:
    """The level with the least expected cost; one has none that has no law, or where it or the next has not mixed."""
    total = barriers(levels)
    mixes = levels.between < MIXED
    lawful = len(mixes) if is_bounded else n_lawful(levels)
    mixes[lawful:] = False
    mixes[: lawful - 1] &= mixes[1:lawful].copy()  # chains that are all in one mode by chance seem to mix
    relaxation = np.maximum(1.0, levels.between / np.maximum(1.0 - levels.between, 0.05) * levels.steps)
    costs = np.full(len(total), math.inf)
    costs[0] = relaxation[0] if mixes[0] else math.inf
    for each in map(int, np.flatnonzero(mixes[1:]) + 1):
        pairs = best_pairs(total[each])
        costs[each] = (pairs + 1) * (relaxation[each] + scans_per_restart(total[each], pairs))
    if np.isfinite(costs).any():
        level: int = int(np.argmin(costs))
        return Choice(level, float(total[level]), costs, max(level, 1))
    hazy = len(mixes) if is_bounded else n_lawful(levels, UNCLEAR)
    guess = 1 + int(np.argmin(levels.between[1:hazy])) if hazy > 1 else 0
    level = guess if levels.between[guess] < MIXED else 0  # for races to judge
    top = guess if level or levels.between[0] > STUCK else 1
    return Choice(level, float(total[level]), costs, max(top, 1))
