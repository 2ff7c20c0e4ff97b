"""Steps of a trajectory likelihood that suit the whole posterior, not only the end of the search for a start.

One grid of steps serves all draws, so that the energy has no jumps. Steps become shorter until steps half as long
change the energy by less than 0.1 nats at the modes and at draws about them, and until no draw that matters needs
shorter ones. Where draws of the prior need shorter steps than the posterior does, the energy is infinite at parameters
for which a step is too long. Otherwise such parameters would have the energy of solutions that the equations do not
have.
"""

import math
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy

from ...arrays import Array, Bools, Integers
from ...solvers.implicit import IMPLICIT_ORDERS
from ..bridge import Reference
from ..laplace import Evaluate, in_batches
from ..search import Mode, is_another, mode_from, weighed
from ..time_left import timed
from .step_check import MAX_ROUNDS, SAME_ENERGY, WARNED_ENERGY, SolutionEnergy, step_factors

N_PROPOSED = 128  # draws about the modes
N_OF_PRIORS = 128  # draws of the priors
BEYOND = 1e-9  # of a normal posterior: draws farther out do not matter
N_FACTORS, LARGEST_FACTOR = 512, 100.0  # of each parameter: 0.9 % apart
FEW_STEPS = 8  # for each step: with so many at most, solutions cost less than to ask why they have no energy
DEEP_COST = 4096  # solutions with the steps of the likelihood that searches may spend on finer ones
MOST_NUMBERS = 500_000  # states of one solution with finer steps, for memory


class SteppedPosterior(NamedTuple):
    """What is known of a posterior when its steps are checked.

    energy: of its likelihood. evaluate_with: its own energy and gradient in positions, for a likelihood's energy.
    parameters: of positions. positions: of parameters. find_modes: a search for modes of an energy in positions, which
    is that of the likelihood's energy. start: a position (q,). prior_draws: positions (n, q), drawn from the priors
    where these are proper; none where none is. places: positions (n, q) about the start, which are compared where there
    are neither modes nor draws of priors. ladders: values (n, q) of each parameter of the system at even quantiles of
    its prior; nan where it has none. movable: which entries (q,) are parameters of the system.
    """

    energy: SolutionEnergy
    evaluate_with: Callable[[SolutionEnergy], Evaluate]
    parameters: Callable[[Array], Array]
    positions: Callable[[Array], Array]
    find_modes: Callable[[Evaluate, SolutionEnergy], tuple[Mode, ...]]
    start: Array
    prior_draws: Array
    places: Array
    ladders: Array
    movable: Bools
    check_time: Callable[[], None] = lambda: None


class Checked(NamedTuple):
    """The likelihood's energy with steps that were checked, and the posterior's modes.

    change: the largest change of an energy by steps half as long, in nats, over the depth of its place where that is
    above 1. nats: that change itself. at: its position (q,). is_compared: whether memory allows steps half as long.
    is_late: whether the time was up before the steps were found to suit the posterior.
    """

    energy: SolutionEnergy
    modes: tuple[Mode, ...]
    change: float
    nats: float
    at: Array
    is_compared: bool
    is_late: bool = False

    @property
    def is_fine(self) -> bool:
        """Whether steps half as long give the same posterior, but for what 1,000 draws do not show."""
        return self.is_compared and self.change <= WARNED_ENERGY


class Grids:
    """The posterior's energy with steps of the likelihood, and with finer ones where these are too long.

    is_judged: whether the energy is infinite where a step is too long.
    """

    def __init__(self, posterior: SteppedPosterior, energy: SolutionEnergy, *, is_judged: bool) -> None:
        self.posterior, self.energy, self.is_judged = posterior, energy, is_judged
        self.at = posterior.parameters(posterior.start)
        self.factors = [f for f in step_factors(energy) if f == 1 or f * energy.n_states <= MOST_NUMBERS] or [1]
        self._evaluations: dict[int, Evaluate] = {}
        self._spent = 0

    def likelihood(self, factor: int) -> SolutionEnergy:
        """The likelihood's energy with ``factor`` steps for each step; all are judged in the same units."""
        energy = self.judged if self.is_judged else self.energy
        return energy if factor == 1 else energy.with_steps(factor)

    @cached_property
    def judged(self) -> SolutionEnergy:
        """The likelihood's energy, infinite where a step is too long."""
        return self.energy.judged_at(self.at)

    def evaluate_with(self, factor: int) -> Evaluate:
        """The posterior's energy and gradient with ``factor`` steps for each step."""
        if factor not in self._evaluations:
            evaluate = self.posterior.evaluate_with(self.likelihood(factor))
            self._evaluations[factor] = in_batches(timed(evaluate, self.posterior.check_time))
        return self._evaluations[factor]

    def modes(self, former: tuple[Mode, ...]) -> tuple[Mode, ...]:
        """The modes of the posterior's energy; where a search finds none, ``former`` ones, moved."""
        evaluate = self.evaluate if self.is_judged else self.evaluate_with(1)
        found = self.posterior.find_modes(evaluate, self.likelihood(1))
        if former:
            self.posterior.check_time()  # the former modes are more than what a search has found that was cut short
        if found or not former:
            return found
        moved = [mode_from(evaluate, mode.position, None) for mode in former]
        kept: list[Mode] = []
        for mode in moved:
            if mode is not None and all(is_another(mode, known) for known in kept):
                kept.append(mode)
        return weighed(kept)

    def evaluate(self, points: Array) -> tuple[Array, Array]:
        """Energy (n,) and gradient (n, q), with finer steps where the energy is infinite with longer ones."""
        energies, slopes, _ = self.resolved(points)
        return energies, slopes

    def resolved(self, points: Array, *, is_limited: bool = True) -> tuple[Array, Array, Integers]:
        """Energy (n,), gradient (n, q), and the factor (n,) of the steps with which they are finite.

        is_limited: whether all points together may cost no more than DEEP_COST.
        """
        energies, slopes = (np.array(of) for of in self.evaluate_with(1)(points))
        factors, is_open = np.ones(len(points), np.int64), np.ones(len(points), np.bool_)
        for factor in self.factors[1:] if self.is_judged else []:
            missing = np.flatnonzero(is_open & ~np.isfinite(energies))
            if missing.size and factor > FEW_STEPS:  # no finer steps help where these are short enough
                coarser = self.energy.with_steps(factor // 2)
                is_open[missing] = coarser.unresolved(self.posterior.parameters(points[missing]), self.at)
                missing = missing[is_open[missing]]
            if not missing.size or (is_limited and self._spent + missing.size * factor > DEEP_COST):
                break
            self._spent += missing.size * factor * is_limited
            energies[missing], slopes[missing] = self.evaluate_with(factor)(points[missing])
            factors[missing] = factor
        return energies, slopes, np.where(np.isfinite(energies), factors, 1)

    def unresolved(self, points: Array) -> Bools:
        """Whether a step is too long (n,) for the solutions at ``points`` (n, q)."""
        self.posterior.check_time()
        return self.energy.unresolved(self.posterior.parameters(points), self.at)


def checked_steps(posterior: SteppedPosterior, *, may_refine: bool) -> Checked:
    """Steps so short that steps half as long change the posterior's energies little, where that is reached.

    may_refine: whether steps may be made shorter, and judged. Where the time is up, the last steps whose modes are
    known, or the first ones, are the result.
    """
    last = Checked(posterior.energy, (), math.nan, math.nan, posterior.start, is_compared=True)
    try:
        for checked in rounds_of(posterior, may_refine=may_refine):
            last = checked
    except TimeoutError:
        return last._replace(is_late=True)
    return last


def rounds_of(posterior: SteppedPosterior, *, may_refine: bool) -> Iterator[Checked]:
    """What is known with the first steps and with ever shorter ones: modes first, then how far the energies change."""
    energy = posterior.energy
    draws = posterior.prior_draws
    grids = Grids(posterior, energy, is_judged=False)
    may_judge = may_refine and energy.method not in IMPLICIT_ORDERS  # whose steps are never too long to be stable
    if may_judge and len(draws):
        # Where a solution leaves the limits the energy is infinite without being judged.
        has_energy = np.isfinite(grids.evaluate_with(1)(draws)[0])
        grids = Grids(posterior, energy, is_judged=bool((has_energy & grids.unresolved(draws)).any()))
    modes: tuple[Mode, ...] = ()
    for _ in range(MAX_ROUNDS):
        modes = grids.modes(modes)
        yield not_compared(grids, modes)
        found = np.array([mode.position for mode in modes]).reshape(-1, posterior.start.size)
        needs_judging = may_judge and not grids.is_judged and len(found) > 0
        if needs_judging and (grids.unresolved(found).any() or has_fast_twins(grids, found)):
            grids = Grids(posterior, energy, is_judged=True)
            modes = grids.modes(modes)
            yield not_compared(grids, modes)
        checked = compared(grids, modes)
        yield checked
        positions = np.array([mode.position for mode in modes]).reshape(-1, posterior.start.size)
        factor = int(grids.resolved(positions, is_limited=False)[2].max()) if len(positions) else 1
        if not may_refine or (checked.change <= SAME_ENERGY and factor == 1):
            return
        factor = max(factor, 2)
        if factor not in grids.factors:
            return
        energy = energy.with_steps(factor)
        is_judged = grids.is_judged or bool(grids.unresolved(checked.at[None])[0])
        grids = Grids(posterior, energy, is_judged=is_judged)


def not_compared(grids: Grids, modes: tuple[Mode, ...]) -> Checked:
    """The energy and the modes before steps half as long were tried."""
    return Checked(grids.likelihood(1), modes, math.nan, math.nan, grids.posterior.start, len(grids.factors) > 1)


def has_fast_twins(grids: Grids, found: Array) -> bool:
    """Whether a parameter of a mode up to 100 times larger fits as well, by steps that are too long for it.

    Such places have no prior that would show them. found: positions (n, q) of modes.
    """
    theta, q = grids.posterior.parameters(found), found.shape[1]
    moved = np.flatnonzero(grids.posterior.movable)
    factors = np.ones((moved.size, N_FACTORS, q))
    factors[np.arange(moved.size), :, moved] = np.geomspace(1.0, LARGEST_FACTOR, N_FACTORS)
    points = grids.posterior.positions((theta[:, None] * factors.reshape(1, -1, q)).reshape(-1, q))
    energies = grids.evaluate_with(1)(points)[0]
    lowest = grids.evaluate_with(1)(found)[0].min()
    near = points[energies - lowest <= 0.5 * scipy.special.chdtri(q, BEYOND)]
    return len(near) > 0 and bool(grids.unresolved(near).any())


def compared(grids: Grids, modes: tuple[Mode, ...]) -> Checked:
    """Energies at the start, the modes, draws about them and of the priors, with these steps and steps half as long.

    A draw whose energy is ``depth`` above the lowest has a density of exp(−depth), so that a change of its energy by
    depth × SAME_ENERGY matters less than one of SAME_ENERGY at the mode: x exp(−x) < 1. Depths count from the mean
    depth q/2 of a normal posterior.
    """
    posterior = grids.posterior
    q = posterior.start.size
    found = np.array([mode.position for mode in modes]).reshape(-1, q)
    others = np.concatenate([about(modes, q), posterior.prior_draws[:N_OF_PRIORS], one_by_one(posterior, modes)])
    points = np.concatenate([posterior.start[None], found, others if len(others) else posterior.places[:N_PROPOSED]])
    long = grids.evaluate_with(1)(points)[0]
    short = np.array(grids.evaluate_with(2)(points)[0]) if len(grids.factors) > 1 else long
    if grids.is_judged:
        nowhere = np.flatnonzero(~np.isfinite(short))
        for rows, is_limited in ((nowhere[nowhere <= len(found)], False), (nowhere[nowhere > len(found)], True)):
            if rows.size:
                short[rows] = grids.resolved(points[rows], is_limited=is_limited)[0]
    lower = np.fmin(np.where(np.isnan(long), np.inf, long), np.where(np.isnan(short), np.inf, short))
    with np.errstate(invalid="ignore"):  # where no energy is finite
        matters = lower - lower[: 1 + len(found)].min() <= 0.5 * scipy.special.chdtri(q, BEYOND)
    matters[: 1 + len(found)] = np.isfinite(lower[: 1 + len(found)])
    with np.errstate(invalid="ignore"):
        depth = np.maximum(lower - lower.min(initial=np.inf), 0.0) - 0.5 * q
        nats = np.abs(long - short)
        change = np.where(matters, np.where(np.isnan(nats), np.inf, nats) / np.maximum(depth, 1.0), 0.0)
    worst = int(np.argmax(change))
    return Checked(
        grids.likelihood(1), modes, float(change[worst]), float(nats[worst]), points[worst], len(grids.factors) > 1
    )


def one_by_one(posterior: SteppedPosterior, modes: tuple[Mode, ...]) -> Array:
    """Positions (n, q) at the weightiest mode but for one parameter of the system, which goes through its prior.

    Data may leave one parameter open over its whole prior, as a fast rate that is over before the first of them. Draws
    of all priors together miss such places, as the other parameters are wrong there.
    """
    moved = np.flatnonzero(~np.isnan(posterior.ladders).any(axis=0))
    if not modes or not moved.size:
        return np.zeros((0, posterior.start.size))
    best = max(modes, key=lambda mode: mode.weight).position
    points = np.tile(best, (moved.size, len(posterior.ladders), 1))
    points[np.arange(moved.size), :, moved] = posterior.ladders[:, moved].T
    return points.reshape(-1, best.size)


def about(modes: tuple[Mode, ...], q: int) -> Array:
    """Draws (n, q) of Student's t about the modes, shared by their weights; none where there are no modes."""
    if not modes:
        return np.zeros((0, q))
    centres, roots, weights = (
        np.array([getattr(mode, name) for mode in modes]) for name in ("position", "root", "weight")
    )
    return Reference(centres, roots, weights).draws(N_PROPOSED, np.random.default_rng(0))


def steps_in_words(checked: Checked, names: tuple[str, ...], parameters: Array, step: float | None) -> str:
    """That steps half as long change an energy that matters, at ``parameters`` (q,), and what to do."""
    if not checked.is_compared:
        return (
            f"the steps of method={checked.energy.method!r} are not checked, as solutions with steps half as long have "
            f"more than {MOST_NUMBERS} numbers in memory: compare with another step, or with fewer data"
        )
    shown = ", ".join(f"{name} = {value:.4g}" for name, value in zip(names[:4], parameters, strict=False))
    size = f"by {checked.nats:.2g} nats" if np.isfinite(checked.nats) else "from finite to infinite, or back,"
    what = f"step={step:g}" if step is not None else f"method={checked.energy.method!r}"
    advice = f"give step={0.5 * step:g} or shorter, or leave step out" if step is not None else "give a shorter step"
    if step is None and checked.energy.method not in IMPLICIT_ORDERS:
        advice = "take method='sdirk4', or priors that exclude such parameters"
    return f"{what} is too coarse for this posterior: steps half as long change the energy {size} at {shown}: {advice}"
