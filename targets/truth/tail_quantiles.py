"""Quantiles of the energy from its two tails, each found by the smaller one, in as few evaluations as can be."""

import bisect
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
import scipy

from ..arrays import Array

Tails = Callable[..., tuple[float, float]]

LEVEL_ROUNDING = 4e-16  # difference of two energies that is rounding, as a share of their size
LOG_TAIL_TOLERANCE, MIN_TAIL = 1e-7, 1e-300
MAX_STEPS, MAX_SOLVED = 60, 200
ROUGH_STEP, FIRST_STEP = 1e-4, 1e-3  # as shares of the whole interval
SLOPE_RISE = 0.05  # smallest difference of log tails that the slope is taken from
BEYOND = 2.0  # how much farther than to the expected root the second place is set


class Place(NamedTuple):
    """A place, and the logarithm of the tail there."""

    at: float
    log_tail: float


def tails_at(tails: Tails, levels: Array) -> tuple[Array, Array]:
    """P(U ≤ u) and P(U > u) for each u of ``levels``, of its shape."""
    found = np.array([tails(float(level)) for level in levels.ravel()]).reshape(-1, 2)
    return found[:, 0].reshape(levels.shape), found[:, 1].reshape(levels.shape)


def quantiles_from_tails(
    tails: Tails, probabilities: Array, low: float, high: float, nearest: float | None = None, **rough: float
) -> Array:
    """Energies u with P(U ≤ u) = p, each found by the smaller of the two ``tails``, from ``low`` for 0 to inf for 1.

    tails: level → P(U ≤ level), P(U > level), where both are right relative to themselves. high: an energy above
    which there is nothing but rounding. nearest: to ``low``, where a quantile is looked for; None: what float64 tells
    from it. rough: what ``tails`` takes to be fast and right to a percent. Of more than
    200 probabilities, 200 are solved for, and the others are between them by a monotone cubic in log p / (1 − p), to
    1e-3 of the tail.
    """
    wanted = np.unique(probabilities)
    inner = wanted[(wanted > 0.0) & (wanted < 1.0)]
    knots = inner
    if inner.size > MAX_SOLVED:
        odds = np.linspace(scipy.special.logit(inner[0]), scipy.special.logit(inner[-1]), MAX_SOLVED)
        knots = scipy.special.expit(odds)
    nearest = LEVEL_ROUNDING * max(1.0, abs(low)) if nearest is None else nearest
    cached = cache(tails)
    lower, upper = (Search(cached, side, low, high, nearest, rough) for side in (0, 1))
    solved = np.array([upper.quantile(1.0 - p) if p > 0.5 else lower.quantile(p) for p in map(float, knots)])
    if knots is not inner:
        solved = scipy.interpolate.PchipInterpolator(scipy.special.logit(knots), solved)(
            np.clip(scipy.special.logit(inner), *scipy.special.logit(knots[[0, -1]]))
        )
    levels = np.concatenate([np.full((wanted <= 0.0).sum(), low), solved, np.full((wanted >= 1.0).sum(), np.inf)])
    return np.asarray(levels[np.searchsorted(wanted, probabilities)])


class Search:
    """Quantiles of one tail, ``side`` 0 the lower and 1 the upper one; the places of one make the next ones quicker.

    The lower tail falls to 0 as a power of u − low, so its places are log(u − low), those of the upper one u itself.
    """

    def __init__(
        self, tails: Tails, side: int, low: float, high: float, nearest: float, rough: dict[str, float]
    ) -> None:
        self._tails, self._side, self._low, self._high, self._rough = tails, side, low, high, rough
        widest = max(high - low, 2.0 * nearest)
        self._ends = (low, high) if side else (float(np.log(nearest)), float(np.log(widest)))
        self._known: list[Place] = []  # of rough tails, in order

    def quantile(self, tail: float) -> float:
        """The energy at which the tail is ``tail``; an end where it lies outside of both, or the tail is rounding."""
        goal = float(np.log(tail))
        if not self._known:
            self._known = [Place(end, self._log_tail(end, **self._rough)) for end in self._ends]
        if self._is_before(self._known[0], goal) == self._is_before(self._known[-1], goal):
            return self._high if self._side else self._low
        return self._level(self._root(goal, self._rough_root(goal)))

    def _level(self, place: float) -> float:
        return place if self._side else self._low + float(np.exp(place))

    def _log_tail(self, place: float, **options: float) -> float:
        return float(np.log(max(self._tails(self._level(place), **options)[self._side], MIN_TAIL)))

    def _is_before(self, place: Place, goal: float) -> bool:
        """Whether the root lies to the right: the upper tail falls with the level, the lower one rises."""
        return (place.log_tail > goal) == bool(self._side)

    def _rough_root(self, goal: float) -> float:
        """Where the rough tail is the wanted one, between two of the places that are known."""
        after = next(i for i, place in enumerate(self._known) if not self._is_before(place, goal))

        def excess(place: float) -> float:
            found = Place(place, self._log_tail(place, **self._rough))
            if found not in self._known:
                bisect.insort(self._known, found)
            return found.log_tail - goal

        one, other = self._known[after - 1].at, self._known[after].at
        tolerance = ROUGH_STEP * (self._ends[1] - self._ends[0])
        return float(scipy.optimize.brentq(excess, one, other, xtol=tolerance, rtol=ROUGH_STEP))

    def _root(self, goal: float, start: float) -> float:
        """Where the tail is the wanted one: by secants, once two places are known with the root between them."""
        left, right = self._ends

        def excess(place: float) -> float:
            return self._log_tail(place) - goal

        here, at_here = start, excess(start)
        goes_right = (at_here > 0.0) == bool(self._side)
        step = BEYOND * abs(at_here) / self._slope(start, goal) or FIRST_STEP * (right - left)
        while abs(at_here) > LOG_TAIL_TOLERANCE and step < 4.0 * (right - left):
            there = min(here + step, right) if goes_right else max(here - step, left)
            at_there = excess(there)
            if (at_there > 0.0) != (at_here > 0.0):
                return secant_root(excess, (here, at_here), (there, at_there))
            here, at_here, step = there, at_there, 4.0 * step
        return here

    def _slope(self, place: float, log_tail: float) -> float:
        """How fast the logarithm of the tail changes there, by rough tails some percent apart; inf: unknown."""
        apart = [known for known in self._known if abs(known.log_tail - log_tail) > SLOPE_RISE]
        before = [known for known in apart if known.at < place]
        after = [known for known in apart if known.at > place]
        rise = abs(after[0].log_tail - before[-1].log_tail) if before and after else 0.0
        return rise / (after[0].at - before[-1].at) if rise > 0.0 else np.inf


def secant_root(excess: Callable[[float], float], *between: tuple[float, float]) -> float:
    """The root of ``excess`` between two places, with values of opposite signs, by secants through the best two.

    The last secant, from a place where the value is as small as it must be, is taken without another evaluation.
    """
    ends, places = {value > 0.0: place for place, value in between}, list(between)
    for _ in range(MAX_STEPS):
        (far, at_far), (near, at_near) = sorted(places, key=lambda place: -abs(place[1]))[-2:]
        middle = near - at_near * (near - far) / (at_near - at_far) if at_near != at_far else near
        left, right = sorted(ends.values())
        if abs(at_near) < LOG_TAIL_TOLERANCE:
            return min(max(middle, left), right)
        if not left < middle < right:
            middle = 0.5 * (left + right)
        if middle in (left, right):
            break
        at_middle = excess(middle)
        ends[at_middle > 0.0] = middle
        places = [(far, at_far), (near, at_near), (middle, at_middle)]
    return middle
