"""Whether an energy is that of a probability law: whether it rises far away, and whether float64 resolves it.

exp(−U) has a finite integral only if, for almost all values of the other coordinates, its integral along each single
coordinate is finite (Fubini). The tail of such an integral is infinite where U rises no faster than log r with the
distance r. So a few energies far out along the coordinates show what no number of draws can: that there is no law to
sample. The two usual causes have a remedy each: a log density given for the energy, and an angle without a box.
"""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .definition import Problem

Array = NDArray[np.float64]

MOST_EVALUATIONS = 2_000  # at which an energy is looked at, however long the run
SHARE = 0.01  # of the gradients of a run, at most, likewise
LEAST_COMPILED = 300  # of a compiled target, however short the run: four coordinates, from two points
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


class EvaluationError(Exception):
    """The target or the domain raised, as a user's own function may, or one whose code a loaded run lacks."""


def energies_at(problem: Problem, points: Array) -> Array:
    """Energies (n,) at ``points`` (n, dim). Raises EvaluationError where the target raises anything."""
    try:
        return problem.target.evaluate(points)[0]
    except Exception as error:
        raise EvaluationError from error


def contained(problem: Problem, points: Array) -> NDArray[np.bool_]:
    """Whether ``points`` (n, dim) are in the domain. Raises EvaluationError where the domain raises anything."""
    try:
        return problem.contains(points)
    except Exception as error:
        raise EvaluationError from error


def budget_of(gradients: float, *, is_compiled: bool = False) -> int:
    """Evaluations that a look at the energy may cost after a run with so many gradients.

    A compiled target is looked at however short the run was, as compiling it takes longer than ``LEAST_COMPILED``.
    """
    return int(max(min(MOST_EVALUATIONS, SHARE * gradients), LEAST_COMPILED if is_compiled else 0))


class Finding(NamedTuple):
    """Why exp(−U) has no finite integral.

    kind: U falls without end "everywhere", or "one way", or is "low": it rises no faster than log r. d, side: the
    coordinate, and 0 for +∞, 1 for −∞. others: coordinates with the same fault. period: of the energy along d; 0: none.
    """

    kind: Literal["everywhere", "one way", "low"]
    d: int
    side: int
    others: int
    period: float

    @property
    def falls(self) -> bool:
        """Whether the energy falls without end."""
        return self.kind != "low"


def improper(problem: Problem, points: Array, scale: Array, budget: int = MOST_EVALUATIONS) -> Finding | None:
    """Why exp(−U) has no finite integral; None where nothing shows that it has none.

    points: (n, dim), inside the domain, where the energy is finite. scale: (dim,), lengths of the coordinates. budget:
    of evaluations; where it is too small for all coordinates, those of the largest scale are looked at, from one point.
    Raises EvaluationError where the target or the domain raises.
    """
    if A_COORDINATE * problem.target.dim * len(points) > budget - len(points):
        points = points[:1]
    most = (budget - len(points)) // (A_COORDINATE * max(1, len(points)))
    if most < 1 or len(points) == 0:
        return None
    coordinates = np.sort(np.argsort(-scale, kind="stable")[:most])
    tails = tails_of(problem, points, scale, coordinates)
    if tails.falls.any():
        d, side = (int(i) for i in np.argwhere(tails.falls)[0])
        return Finding("everywhere" if tails.falls[tails.tested].all() else "one way", d, side, 0, 0.0)
    if not tails.low.any():
        return None
    d, side = (int(i) for i in np.argwhere(tails.low)[0])
    return Finding("low", d, side, int(tails.low.any(axis=1).sum()) - 1, period_of(problem, points, d))


def words_of(problem: Problem, finding: Finding) -> str:
    """The sentence of a finding, with the likely cause and the remedy."""
    name = (problem.target.names or [str(d) for d in range(problem.target.dim)])[finding.d]
    end = f"{'+-'[finding.side]}∞"
    if finding.kind == "everywhere":
        return (
            f"The energy of {problem.name!r} falls without end in every direction that was looked at, so exp(−energy) "
            "has no finite integral and there is nothing to sample. Did you return the log density? Return its "
            "negative, U = −log density, with the gradient of that."
        )
    if finding.kind == "one way":
        return (
            f"The energy of {problem.name!r} falls without end as coordinate {name} goes to {end}, so "
            "exp(−energy) has no finite integral, and no number of a run holds; check the sign of that term, or give "
            "the coordinate a prior, or the problem a domain that bounds it."
        )
    others = f" (and of {finding.others} more)" if finding.others else ""
    what = (
        f"The energy of {problem.name!r} does not rise as coordinate {name}{others} goes to {end}, so "
        "exp(−energy) has no finite integral, and a run walks away for ever"
    )
    if finding.period:
        number = f"{finding.period:g}"
        times, ends = ("2π", "-pi, pi") if finding.period == PERIODS[0] else (number, f"0, {number}")
        return f"{what}. It repeats every {times}: for an angle, give the problem a domain, a box over [{ends}]."
    return (
        f"{what}; give the coordinate a prior, or the problem a domain that bounds it: for a periodic one, such as an "
        "angle, a box over one period, [-pi, pi]."
    )


def improper_words(problem: Problem, points: Array, scale: Array, budget: int = MOST_EVALUATIONS) -> str:
    """The sentence of what ``improper`` finds; "" where it finds nothing."""
    finding = improper(problem, points, scale, budget)
    return "" if finding is None else words_of(problem, finding)


def endless_fall(problem: Problem, points: Array) -> str:
    """The sentence where the energy falls without end from the starts of a run; "" elsewhere.

    For the message of a run that diverged. points: (n, dim). Not for minibatches, of which an energy needs all data.
    """
    if problem.target.stochastic:
        return ""
    with np.errstate(all="ignore"):
        try:
            finding = improper(problem, *places_of(problem, points[:1], points))
        except EvaluationError:  # the divergence is reported
            return ""
    return words_of(problem, finding) if finding is not None and finding.falls else ""


def places_of(problem: Problem, points: Array, wide: Array) -> tuple[Array, Array]:
    """The ``points`` (n, dim) with finite energy inside the domain, and the scale of each coordinate.

    wide: (n, dim), points of which the spread is the scale; where there is none, their size, or 1.
    """
    inside = points[np.isfinite(points).all(axis=1)]
    inside = inside[contained(problem, inside)] if len(inside) else inside
    if len(inside):
        inside = inside[np.isfinite(energies_at(problem, inside))]
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
    here = energies_at(problem, points)
    for d in coordinates:
        lengths = distances(float(scale[d]))  # (decade, place)
        for side, sign in enumerate(SIGNS):
            far = np.repeat(points[:, None], k * m, axis=1)  # (point, decade · place, dim)
            far[:, :, d] += sign * lengths.ravel()
            flat = far.reshape(-1, dim)
            inside = contained(problem, flat).reshape(len(points), k, m)
            if not inside.any(axis=2).all():
                continue
            with np.errstate(all="ignore"):
                energy = energies_at(problem, flat).reshape(len(points), k, m)
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
    here = energies_at(problem, points)
    for period in PERIODS:
        shifts = period * np.array([1.0, 3.0, 0.4142135623730951, 0.2679491924311227])
        moved = np.repeat(points[:, None], len(shifts), axis=1)
        moved[:, :, d] += shifts
        energies = energies_at(problem, moved.reshape(-1, points.shape[1])).reshape(moved.shape[:2])
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
