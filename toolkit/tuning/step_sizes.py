"""Step sizes of moves with a Metropolis test: first from the starts, then by the acceptance that a round shows."""

from typing import Any

import numpy as np
from scipy.special import ndtri

from .study import Floats, Study

BEST = {"mala": 0.574, "hmc": 0.651}  # Roberts & Rosenthal (1998), Beskos et al. (2013)
POWER = {"mala": 1.5, "hmc": 2.0}
SMALLEST, LARGEST = 2.0**-40, 2.0**20
FIRST_ERROR = 0.3  # nats over the temperature by which one leapfrog may raise the energy at a start
DOWN, UP = 0.25, 1.7  # the most that one round changes a step size


def first_step_sizes(study: Study, points: Floats, temperatures: Floats) -> Floats:
    """The largest power of 2, for each of ``points`` (n, dim), at which one leapfrog step raises H/T by ≤ 0.3.

    Momenta are ±√T by the seed. Source: as in Hoffman & Gelman (2014), algorithm 4.
    """
    signs = np.random.default_rng(study.seed).integers(0, 2, points.shape) * 2.0 - 1.0
    momentum = np.sqrt(temperatures)[:, None] * signs
    energy, gradient = study.evaluate(points)
    step = np.full(len(points), 1.0)
    shrinks: Any = None
    active = np.ones(len(points), np.bool_)
    while active.any():
        size = step[active, None]
        half = momentum[active] - 0.5 * size * gradient[active]
        with np.errstate(all="ignore"):
            ends = points[active] + size * half
            inside = study.problem.contains(ends)
            ends = np.where(inside[:, None], ends, points[active])
            end_energy, end_gradient = study.evaluate(ends)
            last = half - 0.5 * size * end_gradient
            kinetic = 0.5 * ((last**2).sum(axis=1) - (momentum[active] ** 2).sum(axis=1))
            good = inside & (end_energy - energy[active] + kinetic <= FIRST_ERROR * temperatures[active])
        if shrinks is None:
            shrinks = ~good
        falls = shrinks[active]
        index = np.flatnonzero(active)
        step[index[falls & ~good]] *= 0.5
        step[index[~falls & good]] *= 2.0
        step[index[~falls & ~good]] *= 0.5
        active[index[(falls & good) | (~falls & ~good)]] = False
        active &= (step > SMALLEST) & (step < LARGEST)
    return step


class Improvement:
    """Step sizes from round to round, one for each rung or temperature, by the acceptance that the last one showed.

    Acceptance is taken as 2 Φ(−c h^power), c of the target, as for Gaussian errors of the energy: power 2 for a
    leapfrog's length, 3/2 for MALA's h; a change is at most by ``DOWN`` or ``UP``. Where the last two rounds were on
    both sides of the best, the next is between them, as near the edge of stability acceptance falls at once.
    Source: Roberts & Rosenthal (1998); Beskos et al. (2013).
    """

    def __init__(self, dynamics: str) -> None:
        self.best, self.power = BEST[dynamics], POWER[dynamics]
        self._last: tuple[Floats, Floats] | None = None

    def next(self, step_sizes: Floats, acceptance: Floats) -> Floats:
        """The step sizes of the next round, from those of the last one, and from what it accepted."""
        seen = np.clip(acceptance, 0.02, 0.98)
        factor = (ndtri(1.0 - 0.5 * self.best) / ndtri(1.0 - 0.5 * seen)) ** (1.0 / self.power)
        found = step_sizes * np.clip(factor, DOWN, UP)
        if self._last is not None and len(self._last[0]) == len(step_sizes):
            before, accepted = self._last
            brackets = (accepted > self.best) != (acceptance > self.best)
            found = np.where(brackets, np.sqrt(before * step_sizes), found)
        self._last = np.array(step_sizes), np.array(acceptance)
        return np.asarray(found)


def harmonic_mean(acceptance: Floats, n_steps: int) -> Floats:
    """Harmonic mean over chains, (chain, …) → (…), of shares of ``n_steps`` moves; none counts as half a move.

    Chains that hardly move, in a narrow place of the target perhaps, count much. Source: Hoffman, Radul & Sountsov
    (2021), section 3.3.
    """
    return np.asarray(1.0 / (1.0 / np.maximum(acceptance, 0.5 / n_steps)).mean(axis=0))


def mean_acceptance(run: Any) -> Floats:
    """``harmonic_mean`` of a run's acceptance, (replica,)."""
    return harmonic_mean(run.acceptance, max(1, run.sampling_steps))
