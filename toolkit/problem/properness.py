"""Whether an energy is that of a probability law: whether it rises far away, and whether float64 resolves it.

exp(−U) has a finite integral only if, for almost all values of the other coordinates, its integral along each single
coordinate is finite (Fubini). The tail of such an integral is infinite where U rises no faster than log r with the
distance r. So a few energies far out along the coordinates show what no number of draws can: that there is no law to
sample. The two usual causes have a remedy each: a log density given for the energy, and an angle without a box.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .definition import Problem

Array = NDArray[np.float64]

MOST_EVALUATIONS = 2_000  # at which an energy is looked at, however long the run
SHARE = 0.01  # of the gradients of a run, at most, likewise
DECADES = (2, 4, 6, 8)  # distances 10^k in units of the scale; a law that is 10^6 times wider than the starts passes
FEWEST_DECADES = 2  # in which energies must be known: sin and cos of the compiled maths are nan above 2³⁰
PERIODS = (2.0 * math.pi, 360.0)  # distances are whole multiples of these, so that angles return to their energies,
FRACTIONS = (0.7310585786300049, 0.3819660112501051)  # and these parts of a decade, which no simple period divides
SIGNS = (1.0, -1.0)
A_COORDINATE = len(SIGNS) * len(DECADES) * (len(PERIODS) + len(FRACTIONS))  # evaluations
EQUAL = 1e-6  # relative difference of energies a period apart; multiples of 2π have rounding errors of 1e-10 and more

RESOLUTION = 0.01  # nats between neighbouring energies: the law of rounded energies is off by half of that, 0.5 %
HOPELESS = 1.0  # nats: above it no energy difference of interest is seen


class Tails(NamedTuple):
    """What an energy does far out, by coordinate and sign (dim, 2).

    tested: the coordinate was looked at, and the domain reaches that far. falls: U decreases from decade to decade.
    low: in each decade U is nowhere as high as log r above its value here, so exp(−U) has an infinite integral.
    """

    tested: NDArray[np.bool_]
    falls: NDArray[np.bool_]
    low: NDArray[np.bool_]


def budget_of(gradients: float) -> int:
    """Evaluations that a look at the energy may cost after a run with so many gradients."""
    return int(min(MOST_EVALUATIONS, SHARE * gradients))


def improper_words(problem: Problem, points: Array, scale: Array, budget: int = MOST_EVALUATIONS) -> str:
    """A sentence where exp(−U) has no finite integral, with the likely cause and the remedy; "" elsewhere.

    points: (n, dim), inside the domain, where the energy is finite. scale: (dim,), lengths of the coordinates. budget:
    of evaluations; where it is too small for all coordinates, those of the largest scale are looked at, from one point.
    """
    if A_COORDINATE * problem.target.dim * len(points) > budget - len(points):
        points = points[:1]
    most = (budget - len(points)) // (A_COORDINATE * max(1, len(points)))
    if most < 1 or len(points) == 0:
        return ""
    coordinates = np.sort(np.argsort(-scale, kind="stable")[:most])
    tails = tails_of(problem, points, scale, coordinates)
    names = problem.target.names or [str(d) for d in range(problem.target.dim)]
    if tails.tested.any() and tails.falls[tails.tested].all():
        return (
            f"The energy of {problem.name!r} falls without end in every direction that was looked at, so exp(−energy) "
            "has no finite integral and there is nothing to sample. Did you return the log density? Return its "
            "negative, U = −log density, with the gradient of that."
        )
    if tails.falls.any():
        d, side = (int(i) for i in np.argwhere(tails.falls)[0])
        return (
            f"The energy of {problem.name!r} falls without end as coordinate {names[d]} goes to {'+-'[side]}∞, so "
            "exp(−energy) has no finite integral, and no number of a run holds; check the sign of that term, or give "
            f"the coordinate a prior, or walls by targets.constrained."
        )
    if not tails.low.any():
        return ""
    d, side = (int(i) for i in np.argwhere(tails.low)[0])
    others = f" (and of {int(tails.low.any(axis=1).sum()) - 1} more)" if tails.low.any(axis=1).sum() > 1 else ""
    what = (
        f"The energy of {problem.name!r} does not rise as coordinate {names[d]}{others} goes to {'+-'[side]}∞, so "
        "exp(−energy) has no finite integral, and a run walks away for ever"
    )
    period = period_of(problem, points, d)
    if period:
        name, ends = ("2π", "-pi, pi") if period == PERIODS[0] else (f"{period:g}", f"0, {period:g}")
        return f"{what}. It repeats every {name}: for an angle, give walls, by targets.constrained(…, box({ends}))."
    return (
        f"{what}; give the coordinate a prior, or walls by targets.constrained: of a periodic one, such as an angle, "
        "those of one period, box(-pi, pi)."
    )


def endless_fall(problem: Problem, points: Array) -> str:
    """The sentence of ``improper_words`` where the energy falls without end from the starts of a run; "" elsewhere.

    For the message of a run that diverged. points: (n, dim). Not for minibatches, of which an energy needs all data.
    """
    if problem.target.stochastic:
        return ""
    with np.errstate(all="ignore"):
        try:
            words = improper_words(problem, *places_of(problem, points[:1], points))
        except Exception:  # of a user's function: the divergence is reported
            return ""
    return words if "falls without end" in words else ""


def places_of(problem: Problem, points: Array, wide: Array) -> tuple[Array, Array]:
    """The ``points`` (n, dim) with finite energy inside the domain, and the scale of each coordinate.

    wide: (n, dim), points of which the spread is the scale; where there is none, their size, or 1.
    """
    inside = points[np.isfinite(points).all(axis=1)]
    inside = inside[problem.contains(inside)] if len(inside) else inside
    if len(inside):
        inside = inside[np.isfinite(problem.target.evaluate(inside)[0])]
    finite = wide[np.isfinite(wide).all(axis=1)]
    spread = finite.std(axis=0) if len(finite) else np.zeros(problem.target.dim)
    size = np.abs(finite).max(axis=0, initial=0.0) if len(finite) else spread
    scale = np.where(spread > 0.0, spread, np.where(size > 0.0, size, 1.0))
    return inside, np.clip(scale, 1e-100, 1e100)


def tails_of(problem: Problem, points: Array, scale: Array, coordinates: Sequence[int] | NDArray[np.int64]) -> Tails:
    """The tails along some coordinates, at all ``points`` (n, dim) together: what does not hold at one is no finding.

    Almost all conditional laws of a proper law are proper, so a single point would do; several guard against an
    energy that is special at one, such as the saddle of a symmetric one.
    """
    dim, k, m = problem.target.dim, len(DECADES), len(PERIODS) + len(FRACTIONS)
    tested, falls, low = (np.zeros((dim, 2), bool) for _ in range(3))
    here = problem.target.evaluate(points)[0]
    for d in coordinates:
        lengths = distances(float(scale[d]))  # (decade, place)
        for side, sign in enumerate(SIGNS):
            far = np.repeat(points[:, None], k * m, axis=1)  # (point, decade · place, dim)
            far[:, :, d] += sign * lengths.ravel()
            flat = far.reshape(-1, dim)
            inside = problem.contains(flat).reshape(len(points), k, m)
            if not inside.any(axis=2).all():
                continue
            with np.errstate(all="ignore"):
                energy = problem.target.evaluate(flat)[0].reshape(len(points), k, m)
            lowest = np.where(inside & ~np.isnan(energy), energy, np.inf).min(axis=2)
            known = ~np.isnan(energy).all(axis=(0, 2))
            if known.sum() < FEWEST_DECADES:
                continue
            levels = np.concatenate([here[:, None], lowest[:, known]], axis=1)
            rise = levels[:, 1:] - here[:, None]
            drops = (np.diff(levels, axis=1) < 0.0) | (levels[:, 1:] == -np.inf)
            tested[d, side] = True
            falls[d, side] = drops.all() and (rise[:, -1] < -1.0).all()
            low[d, side] = (rise < np.log(lengths.min(axis=1) / scale[d])[known]).all()
    return Tails(tested, falls, low)


def distances(scale: float) -> Array:
    """Distances (decade, place) at which energies are looked at: whole periods, and parts of a decade."""
    tens = scale * 10.0 ** np.array(DECADES)
    whole = [period * np.maximum(1.0, np.round(tens / period)) for period in PERIODS]
    return np.stack([*whole, *(fraction * tens for fraction in FRACTIONS)], axis=1)


def period_of(problem: Problem, points: Array, d: int) -> float:
    """The one of ``PERIODS`` after which the energy repeats along coordinate ``d``, without being constant; else 0."""
    here = problem.target.evaluate(points)[0]
    for period in PERIODS:
        shifts = period * np.array([1.0, 3.0, 0.4142135623730951, 0.2679491924311227])
        moved = np.repeat(points[:, None], len(shifts), axis=1)
        moved[:, :, d] += shifts
        energies = problem.target.evaluate(moved.reshape(-1, points.shape[1]))[0].reshape(moved.shape[:2])
        apart = np.abs(energies - here[:, None]) / np.maximum(1.0, np.abs(here[:, None]))
        if (apart[:, :2] < EQUAL).all() and (apart[:, 2:] > EQUAL).any():
            return period
    return 0.0


def resolution_words(problem: Problem, energies: Array, *, are_used: bool) -> str:
    """A sentence where neighbouring floats are too far apart for the differences of ``energies``; "" elsewhere.

    are_used: whether the sampler accepts, swaps or weights by energies. A target in float32 has its own precision.
    """
    finite = np.abs(energies[np.isfinite(energies)])
    if not finite.size:
        return ""
    largest = float(np.median(finite))
    callback = problem.target.callback
    rounding = 2.0**-52 if callback is None else callback.rounding
    gap = max(float(np.spacing(largest)), 0.5 * rounding * largest)
    if gap <= (RESOLUTION if are_used else HOPELESS):
        return ""
    kind = "float64" if rounding == 2.0**-52 else "the precision of its outputs"
    effect = "moves and swaps are accepted by rounding" if are_used else "no difference of energies means anything"
    near = energies[np.isfinite(energies)][0]
    return (
        f"Energies of {problem.name!r} are near {near:.3g}, where neighbouring numbers in {kind} are "
        f"{gap:.2g} nats apart, so {effect}; leave out the constant of the energy, or sum in float64."
    )
