"""``check_gradient``: whether a target's gradient is that of its energy; if not, where and the likely cause."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from ..errors import check_array, check_count, check_number, check_room, made_again
from .definition import Problem, as_problem
from .starts import Keys, draw_starts

# Likely causes of a wrong gradient: common mistakes, recognised from got and expected slopes.

Array = NDArray[np.float64]


def likely_cause(expected: Array, got: Array, clear: NDArray[np.bool_], allowed: Array) -> str:
    """A sentence on the likely cause, or an empty one. All arguments have shape (points, dim).

    Only entries that are ``clear`` count; two slopes are equal where they differ by less than ``allowed``.
    """
    factor = common_factor(expected, got, clear, allowed)
    if factor is not None:
        return factor_sentence(factor)
    order = find_permutation(expected, got, clear, allowed)
    if order is not None:
        moved = np.flatnonzero(order != np.arange(order.size))
        pairs = ", ".join(f"gradient[{d}] is the slope in coordinate {order[d]}" for d in moved[:4])
        return f"Coordinates are exchanged: {pairs}"
    causes = []
    for d in range(expected.shape[1]):
        column = np.s_[:, d : d + 1]
        if is_same(expected[column], got[column], clear[column], allowed[column]):
            continue
        factor = common_factor(expected[column], got[column], clear[column], allowed[column])
        if factor is None:
            return ""
        if factor == 0.0:
            causes.append(f"gradient[{d}] is always 0: coordinate {d} is missing")
        elif np.isclose(factor, -1.0, rtol=1e-4):
            causes.append(f"gradient[{d}] has the wrong sign")
        else:
            causes.append(f"gradient[{d}] is {factor:.6g} times the slope")
    return "; ".join(causes[:4])


def is_same(expected: Array, got: Array, clear: NDArray[np.bool_], allowed: Array) -> bool:
    """Whether all clear entries agree."""
    return bool((np.abs(got - expected) <= allowed)[clear].all())


def common_factor(expected: Array, got: Array, clear: NDArray[np.bool_], allowed: Array) -> float | None:
    """The factor f with got = f · expected in all clear entries; None where there is none, or too few entries."""
    x, y, w = expected[clear], got[clear], 1.0 / np.maximum(allowed[clear], 1e-300)
    if x.size < 3 or not np.abs(x * w).max() > 1.0:
        return None
    factor = float((x * w) @ (y * w) / ((x * w) @ (x * w)))
    same = np.abs(y - factor * x) <= max(1.0, abs(factor)) * allowed[clear]
    if not same.all():
        return None
    return 0.0 if not y.any() else factor


def factor_sentence(factor: float) -> str:
    """The cause that a common factor of all slopes suggests."""
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


def find_permutation(expected: Array, got: Array, clear: NDArray[np.bool_], allowed: Array) -> NDArray[np.intp] | None:
    """For each entry of the gradient, the coordinate whose slope it is, if that is a permutation; else None."""
    rows = clear.all(axis=1)
    if rows.sum() < 2 or expected.shape[1] < 2:
        return None
    x, y, tolerance = expected[rows], got[rows], allowed[rows]
    misfit = np.abs(y[:, :, None] - x[:, None, :]) / np.maximum(tolerance[:, :, None] + tolerance[:, None, :], 1e-300)
    distance = np.minimum(misfit.max(axis=0), 1e6)
    row, column = scipy.optimize.linear_sum_assignment(distance)
    return column if distance[row, column].max() <= 1.0 else None


# Derivatives by central differences, with their errors.

OFFSETS = np.array([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0])
SIXTH_ORDER = np.array([-1.0, 9.0, -45.0, 45.0, -9.0, 1.0]) / 60.0
FOURTH_ORDER = np.array([0.0, 1.0, -8.0, 8.0, -1.0, 0.0]) / 12.0
SIXTH_DIFFERENCE = np.array([1.0, -6.0, 15.0, 15.0, -6.0, 1.0])  # and −20 in the middle
NOISE_GAIN = 28.0  # the sixth difference of noise over the noise of the derivative times the step
# Steps in units of the scale: none is a simple fraction of a period.
FIRST, RATIO, STEPS = 0.7310585786300049, 0.2689414213699951, 22
BATCH_NUMBERS = 2**21  # in the points of one call


class Derivatives(NamedTuple):
    """Slopes of an energy, (points, dim), and the error bound of each; inf where no step was usable."""

    values: Array
    errors: Array


def differentiate(
    energy: Callable[[Array], Array], points: Array, scale: Array, rounding: float = 2.0**-52
) -> Derivatives:
    """Derivatives of ``energy`` (points (n, dim) → (n,)) at ``points`` in every coordinate.

    Sixth-order differences at 22 steps from 1e-12 to 0.7 times ``scale`` (dim,), the shortest first. The result with
    the smallest error is taken, and the search ends when the error has grown thirtyfold beyond it, because a longer
    step may jump over a period or a mode and give a consistent but wrong result. The error is the difference between
    sixth and fourth order, plus the effect of the energy's noise. The noise is estimated from the sixth difference, and
    is at least ``rounding`` times the energy, and at least the smallest change of the energy seen, which may be all
    rounding: log(1 + x²) has more rounding than its value suggests, and not in every sixth difference. Across a kink
    both terms are of the size of its jump.
    """
    n, dim = points.shape
    centre = energy(points)
    values, errors = np.full((n, dim), np.nan), np.full((n, dim), np.inf)
    quantum, flat_error = np.full((n, dim), np.inf), np.full((n, dim), np.inf)
    is_done = np.zeros((n, dim), bool)
    for k in reversed(range(STEPS)):
        # The rounded step: exactly the difference of the points.
        step = (points + FIRST * RATIO**k * scale) - points
        nearby = nearby_energies(energy, points, step)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            change = np.abs(nearby - centre[:, None, None])
            quantum = np.minimum(quantum, np.where(change > 0.0, change, np.inf).min(axis=2))
            sixth, fourth = nearby @ SIXTH_ORDER / step, nearby @ FOURTH_ORDER / step
            floor = rounding * (np.abs(nearby).max(axis=2) + np.abs(points * sixth)) / np.abs(step)
            noise = np.abs(nearby @ SIXTH_DIFFERENCE - 20.0 * centre[:, None]) / NOISE_GAIN
            error = np.abs(sixth - fourth) + (noise + quantum) / np.abs(step) + floor
        flat = np.isinf(quantum) & np.isfinite(floor)
        flat_error[flat] = floor[flat]
        is_usable = np.isfinite(error) & ~is_done
        better = is_usable & (error < errors)
        values[better], errors[better] = sixth[better], error[better]
        is_done |= np.isfinite(errors) & ~(error < 30.0 * errors)
    # Constant energies: at all steps, or up to a step from which no slope could be measured.
    is_flat = np.isfinite(flat_error) & ~(errors < 1e-3 * np.abs(values))
    values[is_flat], errors[is_flat] = 0.0, flat_error[is_flat] + np.where(np.isinf(quantum), 0.0, 1e300)[is_flat]
    return Derivatives(values, errors)


def nearby_energies(energy: Callable[[Array], Array], points: Array, step: Array) -> Array:
    """Energies (points, dim, offsets) at the points moved along each coordinate; a few coordinates at a time."""
    n, dim = points.shape
    energies = np.empty((n, dim, OFFSETS.size))
    batch = max(1, BATCH_NUMBERS // (n * OFFSETS.size * dim))
    for first in range(0, dim, batch):
        axes = np.arange(first, min(first + batch, dim))
        moved = np.repeat(points[:, None, None], axes.size, axis=1).repeat(OFFSETS.size, axis=2)
        moved[:, np.arange(axes.size), :, axes] += (step[:, axes, None] * OFFSETS).transpose(1, 0, 2)
        energies[:, axes] = energy(moved.reshape(-1, dim)).reshape(n, axes.size, OFFSETS.size)
    return energies


UNCLEAR = 1e-2  # differences with a larger relative error are not compared: at kinks, in noise


@dataclass(frozen=True, eq=False)
class GradientReport:
    """What ``check_gradient`` found: the largest error, relative to the slope, and where it is."""

    name: str
    error: float  # |got − expected| / slope, where it is largest relative to what is allowed
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
            f"{left_out}): largest relative error {self.error:.1e}, at {in_words(self.point)}, coordinate "
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

    def __reduce__(self) -> Any:
        return made_again, (type(self), self.args, vars(self))


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

    points: where, (n, dim). None: ``n_points`` exact draws where there is a truth that can draw; else points around
    ``init`` (dim,) (None: the origin) at distances 1e-3 to 10, inside the domain; or, where there are none of these and
    no ``init``, points where ``sample`` would start chains. tolerance: the error allowed relative to the slope,
    beside ten times what the difference itself may be off by (``gradient_check.differentiate``; 1e-9 relative on smooth
    energies). Minibatches: all data are used. Print the report, or look at its attributes.

    Raises GradientError, a ValueError, where the gradient is off: with the worst place, coordinate and numbers, and
    the cause where it is a wrong sign (then a step along −gradient raises the energy), a constant factor, coordinates
    exchanged or missing; where an energy or gradient is not finite; where two calls at one point differ. Raises
    ValueError where no point can be found, or all comparisons drown in rounding.

    >>> from targets import mixtures
    >>> from toolkit import check_gradient
    >>> print(check_gradient(mixtures.cosine25()))
    gradient of 'cosine25' agrees with differences at 16 points (32 slopes): ...
    """
    problem = as_problem(problem)
    tolerance = check_number("tolerance", tolerance, above=0.0, below=1.0)
    seed = check_count("seed", seed, at_least=0, below=2**64)
    n_points = check_count("n_points", n_points, at_least=1)
    check_room("n_points", n_points, 512.0 * n_points * (problem.target.dim + 1))
    places = given_points(problem, points) if points is not None else default_points(problem, n_points, init, seed)
    energy, gradient = problem.target.evaluate(places)
    check_outputs(problem, places, energy, gradient)
    callback = problem.target.callback
    rounding = 2.0**-52 if callback is None else callback.rounding
    check_repeated_call(problem, places, energy, gradient, max(1e-9, 100.0 * rounding))
    tolerance = max(tolerance, 100.0 * rounding)
    spread = np.abs(places).max(axis=0) if len(places) == 1 else places.std(axis=0)
    scale = np.where(spread > 0.0, spread, np.maximum(np.abs(places).max(axis=0), 1.0) * 1e-3)
    slopes = differentiate(lambda x: problem.target.evaluate(x)[0], places, scale, rounding)
    return judge(problem, places, gradient, slopes, tolerance)


def judge(problem: Problem, places: Array, gradient: Array, slopes: Derivatives, tolerance: float) -> GradientReport:
    """Compare the gradient with ``slopes``. Raises GradientError where it is wrong."""
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
            f"gradient of {problem.name!r} is off at {in_words(places[n])}, coordinate {d}: got {got:.10g}, but "
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


def default_points(problem: Problem, n_points: int, init: Any, seed: int) -> Array:
    """Exact draws of the problem or its target; else points around ``init`` with finite energy, or starts inside."""
    dim = problem.target.dim
    if init is None:
        for truth in (problem.truth, problem.target.truth if problem.domain is None else None):
            if truth is not None:
                try:
                    return np.asarray(truth.independent_draws(n_points, seed=seed), np.float64)
                except ValueError:  # it cannot draw: of a target without a truth in an open region, or in a small one
                    return starts_inside(problem, n_points, seed)
    start = np.zeros(dim) if init is None else check_array("init", init)
    if start.shape != (dim,):
        raise ValueError(f"init must have shape ({dim},), got {start.shape}")
    rng = np.random.default_rng(seed)
    distance = np.geomspace(1e-3, 10.0, 64 * n_points)[:, None]
    candidates = start + distance * rng.standard_normal((64 * n_points, dim))
    candidates = candidates[problem.contains(candidates)]
    if len(candidates):
        candidates = candidates[np.isfinite(problem.target.evaluate(candidates)[0])]
    if not len(candidates) and init is None:
        return starts_inside(problem, n_points, seed)
    if not len(candidates):
        raise ValueError(
            f"found no point around {start.tolist()} in {problem.name!r} where its energy is finite; give points=..."
        )
    indices = np.linspace(0, len(candidates) - 1, min(n_points, len(candidates))).astype(int)
    return np.asarray(candidates[indices])


def starts_inside(problem: Problem, n_points: int, seed: int) -> Array:
    """Points (n_points, dim) where ``sample`` would start chains. Raises ValueError where there are none."""
    return draw_starts(problem, None, seed, Keys(np.arange(n_points)), 1)[:, 0]


def check_outputs(problem: Problem, places: Array, energy: Array, gradient: Array) -> None:
    """Raise GradientError where outputs are not finite."""
    bad = ~(np.isfinite(energy) & np.isfinite(gradient).all(axis=1))
    if bad.any():
        n = int(np.argmax(bad))
        d = int(np.argmin(np.isfinite(gradient[n])))
        what = (
            f"gradient[{d}] of {problem.name!r} is {gradient[n, d]} at {in_words(places[n])}, of energy {energy[n]:.6g}"
        )
        cause = f"It is so at {int(bad.sum())} of {len(places)} points"
        if np.isfinite(gradient[n]).all():
            what = f"energy of {problem.name!r} is {energy[n]} at {in_words(places[n])}"
        elif np.isnan(gradient[:, d]).all():
            cause = "It is nan everywhere: the target does not fill it"
        raise GradientError(
            f"{what}. {cause}", point=places[n], coordinate=d, got=float(gradient[n, d]), expected=np.nan, cause=cause
        )


def check_repeated_call(problem: Problem, places: Array, energy: Array, gradient: Array, tolerance: float) -> None:
    """Raise GradientError where a call with half of the points, in other lanes, gives other numbers."""
    half = slice(len(places) // 2, None)
    first = np.column_stack([gradient, energy])[half]
    again, slopes = problem.target.evaluate(places[half][::-1])
    second = np.column_stack([slopes, again])[::-1]
    differs = ~(np.abs(second - first) <= tolerance * np.maximum(np.abs(first), np.abs(first).max(axis=0)))
    if not differs.any():
        return
    n, column = (int(i) for i in np.argwhere(differs)[0])
    point, is_energy = places[half][n], column == gradient.shape[1]
    cause = "It is noisy, or depends on the other points of a call, or on calls before"
    raise GradientError(
        f"{'energy' if is_energy else f'gradient[{column}]'} of {problem.name!r} differs between two calls at "
        f"{in_words(point)}: {first[n, column]:.10g}, then {second[n, column]:.10g}. {cause}",
        point=point,
        coordinate=0 if is_energy else column,
        got=float(second[n, column]),
        expected=np.nan,
        cause=cause,
    )


def in_words(point: Array) -> str:
    """A point in a message: its first coordinates."""
    numbers = ", ".join(f"{x:.6g}" for x in point[:6])
    return f"[{numbers}{', …' if point.size > 6 else ''}]"
