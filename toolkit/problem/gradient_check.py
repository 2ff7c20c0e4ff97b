"""``check_gradient``: whether a target's gradient is that of its energy; and if not, where and probably why."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from ..errors import check_array, check_count, check_number, check_room
from .definition import Problem, as_problem

# Why a gradient is off: the usual mistakes, recognised by what got and expected slopes have in common.

Array = NDArray[np.float64]


def likely_cause(expected: Array, got: Array, clear: NDArray[np.bool_], allowed: Array) -> str:
    """A sentence on the cause; empty where it is none of the usual. All of shape (points, dim).

    Only entries that are ``clear`` count; two slopes are equal where they differ by less than ``allowed``.
    """
    factor = common_factor(expected, got, clear, allowed)
    if factor is not None:
        return factor_sentence(factor)
    order = exchange(expected, got, clear, allowed)
    if order is not None:
        moved = np.flatnonzero(order != np.arange(order.size))
        pairs = ", ".join(f"gradient[{d}] is the slope in coordinate {order[d]}" for d in moved[:4])
        return f"Coordinates are exchanged: {pairs}"
    found = []
    for d in range(expected.shape[1]):
        column = np.s_[:, d : d + 1]
        if is_same(expected[column], got[column], clear[column], allowed[column]):
            continue
        factor = common_factor(expected[column], got[column], clear[column], allowed[column])
        if factor is None:
            return ""
        if factor == 0.0:
            found.append(f"gradient[{d}] is always 0: coordinate {d} is missing")
        elif np.isclose(factor, -1.0, rtol=1e-4):
            found.append(f"gradient[{d}] has the wrong sign")
        else:
            found.append(f"gradient[{d}] is {factor:.6g} times the slope")
    return "; ".join(found[:4])


def is_same(expected: Array, got: Array, clear: NDArray[np.bool_], allowed: Array) -> bool:
    """Whether all clear entries agree."""
    return bool((np.abs(got - expected) <= allowed)[clear].all())


def common_factor(expected: Array, got: Array, clear: NDArray[np.bool_], allowed: Array) -> float | None:
    """The number that ``got`` is of ``expected`` in all clear entries; None where there is none, or too few entries."""
    x, y, w = expected[clear], got[clear], 1.0 / np.maximum(allowed[clear], 1e-300)
    if x.size < 3 or not np.abs(x * w).max() > 1.0:
        return None
    factor = float((x * w) @ (y * w) / ((x * w) @ (x * w)))
    same = np.abs(y - factor * x) <= max(1.0, abs(factor)) * allowed[clear]
    if not same.all():
        return None
    return 0.0 if not y.any() else factor


def factor_sentence(factor: float) -> str:
    """What a common factor of all slopes suggests."""
    if factor == 0.0:
        return "The gradient is 0 everywhere"
    if factor < 0.0:
        times = "" if np.isclose(factor, -1.0, rtol=1e-4) else f", and {-factor:.6g} times the length"
        return (
            f"The gradient has the wrong sign{times}: a step along −gradient raises the energy. Both are to be those "
            "of U = −log density"
        )
    return (
        f"The gradient is {factor:.6g} times the slope of the energy everywhere: a factor is in only one of the two, "
        "such as ½, a temperature, or N/n of a minibatch"
    )


def exchange(expected: Array, got: Array, clear: NDArray[np.bool_], allowed: Array) -> NDArray[np.intp] | None:
    """Which coordinate's slope each entry of the gradient is, where that is a permutation; else None."""
    rows = clear.all(axis=1)
    if rows.sum() < 2 or expected.shape[1] < 2:
        return None
    x, y, room = expected[rows], got[rows], allowed[rows]
    apart = np.abs(y[:, :, None] - x[:, None, :]) / np.maximum(room[:, :, None] + room[:, None, :], 1e-300)
    distance = np.minimum(apart.max(axis=0), 1e6)
    mine, theirs = scipy.optimize.linear_sum_assignment(distance)
    return theirs if distance[mine, theirs].max() <= 1.0 else None


# First derivatives of an energy by central differences, with the error of each.

OFFSETS = np.array([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0])
SIXTH_ORDER = np.array([-1.0, 9.0, -45.0, 45.0, -9.0, 1.0]) / 60.0
FOURTH_ORDER = np.array([0.0, 1.0, -8.0, 8.0, -1.0, 0.0]) / 12.0
SIXTH_DIFFERENCE = np.array([1.0, -6.0, 15.0, 15.0, -6.0, 1.0])  # and −20 in the middle
NOISE_GAIN = 28.0  # the sixth difference of noise over the noise of the derivative times the step
FIRST, RATIO, STEPS = 0.7310585786300049, 0.2689414213699951, 22  # no step is a simple fraction of a period
ROOM = 2**21  # numbers in the points of one call


class Derivatives(NamedTuple):
    """Slopes of an energy, (points, dim), and what each may be off by; inf where no step served."""

    values: Array
    errors: Array


def differentiate(
    energy: Callable[[Array], Array], points: Array, scale: Array, rounding: float = 2.0**-52
) -> Derivatives:
    """Derivatives of ``energy`` (points (n, dim) → (n,)) at ``points`` in every coordinate.

    Differences of sixth order at 22 steps from 1e-12 to 0.7 times ``scale`` (dim,), from the shortest on; the one of
    least error is taken, and the search ends where the error has grown thirtyfold beyond it: a longer step may jump
    over a period or a whole mode, and agree with itself on something else. The error is the difference from fourth
    order, plus what the energy's noise makes of the slope: noise is seen in the sixth difference, and is at least
    ``rounding`` relative of the energy, and the least change seen, as that may be all rounding: log(1 + x²) has more of
    it than its value shows, and not in every sixth difference. Across a kink both terms are of the size of its jump.
    """
    n, dim = points.shape
    centre = energy(points)
    values, errors = np.full((n, dim), np.nan), np.full((n, dim), np.inf)
    quantum, resting = np.full((n, dim), np.inf), np.full((n, dim), np.inf)
    ended = np.zeros((n, dim), bool)
    for k in reversed(range(STEPS)):
        # The step as the sum of floats makes it, so that it is what the points differ by.
        step = (points + FIRST * RATIO**k * scale) - points
        around = surroundings(energy, points, step)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            change = np.abs(around - centre[:, None, None])
            quantum = np.minimum(quantum, np.where(change > 0.0, change, np.inf).min(axis=2))
            sixth, fourth = around @ SIXTH_ORDER / step, around @ FOURTH_ORDER / step
            floor = rounding * (np.abs(around).max(axis=2) + np.abs(points * sixth)) / np.abs(step)
            noise = np.abs(around @ SIXTH_DIFFERENCE - 20.0 * centre[:, None]) / NOISE_GAIN
            error = np.abs(sixth - fourth) + (noise + quantum) / np.abs(step) + floor
        flat = np.isinf(quantum) & np.isfinite(floor)
        resting[flat] = floor[flat]
        fits = np.isfinite(error) & ~ended
        better = fits & (error < errors)
        values[better], errors[better] = sixth[better], error[better]
        ended |= np.isfinite(errors) & ~(error < 30.0 * errors)
    # Flat as far as that is known: everywhere, or up to a step from which no slope could be told.
    level = np.isfinite(resting) & ~(errors < 1e-3 * np.abs(values))
    values[level], errors[level] = 0.0, resting[level] + np.where(np.isinf(quantum), 0.0, 1e300)[level]
    return Derivatives(values, errors)


def surroundings(energy: Callable[[Array], Array], points: Array, step: Array) -> Array:
    """Energies (points, dim, offsets) at the points moved along each coordinate; a few coordinates at a time."""
    n, dim = points.shape
    around = np.empty((n, dim, OFFSETS.size))
    batch = max(1, ROOM // (n * OFFSETS.size * dim))
    for first in range(0, dim, batch):
        chosen = np.arange(first, min(first + batch, dim))
        moved = np.repeat(points[:, None, None], chosen.size, axis=1).repeat(OFFSETS.size, axis=2)
        moved[:, np.arange(chosen.size), :, chosen] += (step[:, chosen, None] * OFFSETS).transpose(1, 0, 2)
        around[:, chosen] = energy(moved.reshape(-1, dim)).reshape(n, chosen.size, OFFSETS.size)
    return around


UNCLEAR = 1e-2  # a difference this uncertain, beside the slope, says nothing: at a kink, in noise


@dataclass(frozen=True, eq=False)
class GradientReport:
    """What ``check_gradient`` found: the largest error, relative to the slope, and where it is."""

    name: str
    error: float  # |got − expected| / slope, the largest beside what is allowed
    point: Array  # (dim,)
    coordinate: int
    got: float
    expected: float  # by differences
    n_points: int
    compared: int
    unclear: int  # comparisons left out, as differences cannot tell: at kinks, or in rounding

    def __str__(self) -> str:
        left_out = f"; {self.unclear} left out, where differences cannot tell" if self.unclear else ""
        return (
            f"gradient of {self.name!r} agrees with differences at {self.n_points} points ({self.compared} slopes"
            f"{left_out}): largest relative error {self.error:.1e}, at {place(self.point)}, coordinate "
            f"{self.coordinate}: got {self.got:.10g}, expected {self.expected:.10g}"
        )


class GradientError(ValueError):
    """A gradient is not that of its energy.

    point (dim,), coordinate, got, expected: where it is worst, and the slope by differences (nan where an output is
    not finite or changes from call to call); cause: a sentence on the likely cause, empty where none is known.
    """

    def __init__(self, message: str, *, point: Array, coordinate: int, got: float, expected: float, cause: str) -> None:
        super().__init__(message)
        self.point = point
        self.coordinate = coordinate
        self.got = got
        self.expected = expected
        self.cause = cause


def check_gradient(
    problem: Any,
    points: Any = None,
    *,
    n_points: int = 16,
    init: Any = None,
    tolerance: float = 1e-6,
    seed: int = 0,
) -> GradientReport:
    """Compare the gradient of a Problem or Target with differences of its energy, in every coordinate.

    points: where, (n, dim). None: ``n_points`` exact draws where there is truth, else points around ``init`` (dim,)
    (None: the origin) at distances 1e-3 to 10, inside the domain. tolerance: the error allowed relative to the slope,
    beside ten times what the difference itself may be off by (``gradient_check.differentiate``; 1e-9 relative on smooth
    energies). Minibatches: all data are used. Print the report, or look at its attributes.

    Raises GradientError, a ValueError, where the gradient is off: with the worst place, coordinate and numbers, and
    the cause where it is a wrong sign (then a step along −gradient raises the energy), a constant factor, coordinates
    exchanged or missing; where an energy or gradient is not finite; where two calls at one point differ. Raises
    ValueError where no point can be found, or all comparisons drown in rounding.
    """
    problem = as_problem(problem)
    tolerance = check_number("tolerance", tolerance, above=0.0, below=1.0)
    seed = check_count("seed", seed, at_least=0, below=2**64)
    n_points = check_count("n_points", n_points, at_least=1)
    check_room("n_points", n_points, 512.0 * n_points * (problem.target.dim + 1))
    places = given_points(problem, points) if points is not None else own_points(problem, n_points, init, seed)
    energy, gradient = problem.target.evaluate(places)
    check_outputs(problem, places, energy, gradient)
    callback = problem.target.callback
    rounding = 2.0**-52 if callback is None else callback.rounding
    check_again(problem, places, energy, gradient, max(1e-9, 100.0 * rounding))
    tolerance = max(tolerance, 100.0 * rounding)
    spread = np.abs(places).max(axis=0) if len(places) == 1 else places.std(axis=0)
    scale = np.where(spread > 0.0, spread, np.maximum(np.abs(places).max(axis=0), 1.0) * 1e-3)
    slopes = differentiate(lambda x: problem.target.evaluate(x)[0], places, scale, rounding)
    return judge(problem, places, gradient, slopes, tolerance)


def judge(problem: Problem, places: Array, gradient: Array, slopes: Derivatives, tolerance: float) -> GradientReport:
    """The report of the comparison. Raises GradientError where it is off."""
    values, errors = slopes
    usual = np.nanmedian(np.where(np.isfinite(errors), np.abs(values), np.nan), axis=0)
    size = np.fmax(np.abs(values), 1e-3 * usual)
    wrong_size = np.maximum(size, np.abs(gradient))
    clear = 10.0 * errors < UNCLEAR * wrong_size + 10.0 * tolerance * size
    exact = (values == gradient) & np.isfinite(errors)
    clear |= exact
    if not clear.any():
        raise ValueError(
            f"the energy of {problem.name!r} is too noisy for differences at all {len(places)} points; give others as "
            "points=..., or an init=... where its slope is of the size of the energy"
        )
    allowed = tolerance * size + 10.0 * errors
    with np.errstate(invalid="ignore", divide="ignore"):
        excess = np.where(clear & ~exact, np.abs(gradient - values) / allowed, 0.0)
    n, d = (int(i) for i in np.unravel_index(np.argmax(excess), excess.shape))
    got, expected = float(gradient[n, d]), float(values[n, d])
    relative = abs(got - expected) / max(float(size[n, d]), 1e-300)
    if excess[n, d] > 1.0:
        cause = likely_cause(values, gradient, clear, allowed)
        off = int((excess > 1.0).sum())
        raise GradientError(
            f"gradient of {problem.name!r} is off at {place(places[n])}, coordinate {d}: got {got:.10g}, but "
            f"differences of the energy give {expected:.10g} ± {10.0 * errors[n, d]:.1g}; {off} of "
            f"{int(clear.sum())} slopes are off{'. ' + cause if cause else ''}",
            point=places[n],
            coordinate=d,
            got=got,
            expected=expected,
            cause=cause,
        )
    return GradientReport(
        problem.name, relative, places[n], d, got, expected, len(places), int(clear.sum()), int((~clear).sum())
    )


def given_points(problem: Problem, points: Any) -> Array:
    """The user's points, checked."""
    places = check_array("points", points)
    if places.ndim != 2 or places.shape[1] != problem.target.dim or len(places) == 0:
        raise ValueError(f"points must have shape (n, {problem.target.dim}), got {places.shape}")
    return places


def own_points(problem: Problem, n_points: int, init: Any, seed: int) -> Array:
    """Exact draws of the problem or its target; else points around ``init`` where the energy is finite."""
    dim = problem.target.dim
    if init is None:
        for truth in (problem.truth, problem.target.truth if problem.domain is None else None):
            if truth is not None:
                return np.asarray(truth.independent_draws(n_points, seed=seed), np.float64)
    start = np.zeros(dim) if init is None else check_array("init", init)
    if start.shape != (dim,):
        raise ValueError(f"init must have shape ({dim},), got {start.shape}")
    rng = np.random.default_rng(seed)
    distance = np.geomspace(1e-3, 10.0, 64 * n_points)[:, None]
    candidates = start + distance * rng.standard_normal((64 * n_points, dim))
    candidates = candidates[problem.contains(candidates)]
    if len(candidates):
        candidates = candidates[np.isfinite(problem.target.evaluate(candidates)[0])]
    if not len(candidates):
        raise ValueError(
            f"found no point around {start.tolist()} in {problem.name!r} where its energy is finite; give points=..."
        )
    chosen = np.linspace(0, len(candidates) - 1, min(n_points, len(candidates))).astype(int)
    return np.asarray(candidates[chosen])


def check_outputs(problem: Problem, places: Array, energy: Array, gradient: Array) -> None:
    """Raise GradientError where outputs are not finite, or another call gives others."""
    bad = ~(np.isfinite(energy) & np.isfinite(gradient).all(axis=1))
    if bad.any():
        n = int(np.argmax(bad))
        d = int(np.argmin(np.isfinite(gradient[n])))
        what = f"gradient[{d}] of {problem.name!r} is {gradient[n, d]} at {place(places[n])}, of energy {energy[n]:.6g}"
        cause = f"It is so at {int(bad.sum())} of {len(places)} points"
        if np.isfinite(gradient[n]).all():
            what = f"energy of {problem.name!r} is {energy[n]} at {place(places[n])}"
        elif np.isnan(gradient[:, d]).all():
            cause = "It is nan everywhere: the target does not fill it"
        raise GradientError(
            f"{what}. {cause}", point=places[n], coordinate=d, got=float(gradient[n, d]), expected=np.nan, cause=cause
        )


def check_again(problem: Problem, places: Array, energy: Array, gradient: Array, tolerance: float) -> None:
    """Raise GradientError where a call with half the points, in other lanes, gives other numbers."""
    half = slice(len(places) // 2, None)
    first = np.column_stack([gradient, energy])[half]
    again, slopes = problem.target.evaluate(places[half][::-1])
    second = np.column_stack([slopes, again])[::-1]
    apart = ~(np.abs(second - first) <= tolerance * np.maximum(np.abs(first), np.abs(first).max(axis=0)))
    if not apart.any():
        return
    n, column = (int(i) for i in np.argwhere(apart)[0])
    point, is_energy = places[half][n], column == gradient.shape[1]
    cause = "It is noisy, or depends on the other points of a call, or on calls before"
    raise GradientError(
        f"{'energy' if is_energy else f'gradient[{column}]'} of {problem.name!r} differs between two calls at "
        f"{place(point)}: {first[n, column]:.10g}, then {second[n, column]:.10g}. {cause}",
        point=point,
        coordinate=0 if is_energy else column,
        got=float(second[n, column]),
        expected=np.nan,
        cause=cause,
    )


def place(point: Array) -> str:
    """A point in a message: its first coordinates."""
    shown = ", ".join(f"{x:.6g}" for x in point[:6])
    return f"[{shown}{', …' if point.size > 6 else ''}]"
