"""Most likely coefficients and paths: Gauss–Newton steps on noisy states under the integral conditions of a model."""

import functools
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy
from numba.core.dispatcher import Dispatcher

from targets.posteriors.quadratic import quadratic_numbers, use_quadratic
from toolkit.errors import check_array, check_count, check_instance, shown

from ..arrays import Array, Integers
from ..data.series import Series
from ..libraries import Library, column_of
from ..model import Model, as_model
from ..systems.system import analytic
from .interface import Prepared
from .velocity import check_data, least_squares

__all__ = ["Weak", "weak"]

# Integral conditions of a path on windows of its nodes. On a window of nodes a, b, c, a half width h apart, the test
# functions are the box and the Haar step. Integrated against dx/dt = f, with the parabola through f(a), f(b), f(c):
#     x_c − x_a = h/3 (f_a + 4 f_b + f_c)     and     x_b − ½ (x_a + x_c) = h/4 (f_a − f_c),
# of order 4 in h (the three-stage Lobatto IIIA method; Hairer, Nørsett & Wanner 1993, II.7).

COMPLEX_STEP = 1e-40  # of complex steps: its square is 0 beside any state
CHANGE = np.array([[-1.0, 0.0, 1.0], [-0.5, 1.0, -0.5]])  # of x, by the box and by the Haar step
INTEGRAL = np.array([[1.0, 4.0, 1.0], [0.75, 0.0, -0.75]]) / 3.0  # of f, in half widths
PENALTY_WEIGHTS = 10.0 ** np.arange(-2.0, 12.1, 0.5)  # in units of nodes: lengths from 0.3 to 1000 nodes
N_PROBES = 4  # of the trace
N_CHECKED = 24  # states at which derivatives are compared with differences


class Grid(NamedTuple):
    """Nodes in time, an odd number; window k has nodes 2k, 2k + 1, 2k + 2, equally far apart.

    times: (nodes,). samples: (n,), the node of each sample.
    """

    times: Array
    samples: Integers

    @property
    def half_widths(self) -> Array:
        """Half widths (windows,)."""
        return np.asarray(self.times[1::2] - self.times[:-1:2])


def grid_of(times: Array, substeps: int) -> Grid:
    """Nodes at ``times`` (n,) and, evenly, between them, ``substeps`` intervals for one; a power of 2.

    Where ``substeps`` is 1, two equal intervals in a row make a window; other intervals are halved.
    """
    gaps = np.diff(times)
    parts = np.full(gaps.size, substeps)
    if substeps == 1:
        k = 0
        while k < gaps.size:
            paired = k + 1 < gaps.size and abs(gaps[k + 1] - gaps[k]) <= 1e-6 * gaps[k]
            parts[k] = 1 if paired else 2
            k += 2 if paired else 1
    samples = np.concatenate([[0], np.cumsum(parts)])
    nodes = np.interp(np.arange(samples[-1] + 1), samples, times)
    return Grid(nodes, samples)


def smooth(series: Series, times: Array) -> tuple[Array, Array]:
    """Path and velocities (nodes, dim) of the values present: least squares with a penalty on second differences.

    The penalty's weight is that of least generalised cross-validation error, state by state.
    """
    samples = np.searchsorted(times, series.times - 1e-9 * np.diff(series.times).min())
    scaled = (times - times[0]) / (times[-1] - times[0]) * (times.size - 1)
    penalty = curvature_penalty(scaled)
    probes = np.random.default_rng(0).choice([-1.0, 1.0], (times.size, N_PROBES))
    path = np.empty((times.size, len(series.states)))
    for d, column in enumerate(series.values.T):
        present = ~np.isnan(column)
        weights, values = np.zeros(times.size), np.zeros(times.size)
        weights[samples[present]], values[samples[present]] = 1.0, column[present]
        right_side = weights[:, None] * np.column_stack([values, probes])
        best = math.inf
        for weight in PENALTY_WEIGHTS:
            banded = weight * penalty
            banded[-1] += weights
            try:
                smoothed = scipy.linalg.solveh_banded(banded, right_side, check_finite=False)
            except np.linalg.LinAlgError:
                continue
            freedom = weights.sum() - np.mean(np.sum(right_side[:, 1:] * smoothed[:, 1:], axis=0))
            score = np.sum(weights * (values - smoothed[:, 0]) ** 2) / max(freedom, 1e-6 * times.size) ** 2
            if score < best:
                best, path[:, d] = score, smoothed[:, 0]
        if best == math.inf:
            path[:, d] = np.interp(series.times, series.times[present], column[present])
    return path, np.asarray(np.gradient(path, times, axis=0))


def curvature_penalty(times: Array) -> Array:
    """Σ of squared second divided differences, weighted by their spans, as an upper band (3, nodes)."""
    gaps = np.diff(times)
    spans = times[2:] - times[:-2]
    rows = np.stack([1.0 / gaps[:-1], -1.0 / gaps[:-1] - 1.0 / gaps[1:], 1.0 / gaps[1:]]) / np.sqrt(0.5 * spans)
    band = np.zeros((3, times.size))
    for i in range(3):
        for j in range(i, 3):
            band[2 - (j - i), j : j + spans.size] += rows[i] * rows[j]
    return band


def term_jacobian(library: Library, path: Array) -> Array:
    """∂θ_t/∂x_d (nodes, terms, dim) at a path (nodes, dim), by complex steps."""
    out = np.empty((len(path), len(library), path.shape[1]))
    for d in range(path.shape[1]):
        columns: tuple[Any, ...] = tuple(
            path[:, e] + (1j * COMPLEX_STEP if e == d else 0.0) for e in range(path.shape[1])
        )
        for k, term in enumerate(library.terms):
            if term.own is None:
                value = column_of(term, columns)
            else:
                own = cached_analytic(term.own) if isinstance(term.own, Dispatcher) else term.own
                value = np.array([complex(own(point)) for point in zip(*columns, strict=True)])
            out[:, k, d] = np.imag(value) / COMPLEX_STEP
    return out


def check_term_derivatives(library: Library, states: Array) -> None:
    """Raise ValueError where a user's own term is not analytic at some of ``states`` (n, dim): by differences."""
    if all(term.own is None for term in library.terms):
        return
    checked = states[np.unique(np.linspace(0.0, len(states) - 1, N_CHECKED).round().astype(np.int64))]
    exact, sizes = term_jacobian(library, checked), np.maximum(np.abs(checked), 1e-3)
    for d, state in enumerate(library.states):
        moves, size = np.where(np.arange(checked.shape[1]) == d, 6e-6 * sizes, 0.0), sizes[:, d, None]
        with np.errstate(all="ignore"):
            difference, longer_difference = (
                (library.evaluate(checked + f * moves) - library.evaluate(checked - f * moves)) / (1.2e-5 * f * size)
                for f in (1.0, 2.0)
            )
            rounding = 1e-6 * np.abs(library.evaluate(checked)) / size + 1e-9 * (1.0 + np.abs(checked).max())
            doubt = 20.0 * np.abs(longer_difference - difference) + rounding
            wrong = ~(np.abs(exact[:, :, d] - difference) <= 1e-4 * np.abs(difference) + doubt) & np.isfinite(doubt)
        if wrong.any():
            row, k = np.argwhere(wrong)[0]
            raise ValueError(
                f"functions must be analytic, but at {library.states} = {checked[row].tolist()} the derivative of "
                f"{shown(library.names[k])} with respect to {state} is {exact[row, k, d]:.6g} by a complex step and "
                f"{difference[row, k]:.6g} by differences: write abs(x) as np.sqrt(x*x), and use no sign, min or max"
            )


@functools.cache
def cached_analytic(function: Any) -> Any:
    """``analytic`` of a function that Numba has compiled, whose globals are frozen already."""
    return analytic(function)


def by_windows(values: Array, weights: Array) -> Array:
    """Σ_j weights_rj values_(2k+j): (windows, 2, …) of values (nodes, …), for the box and the Haar step r."""
    stacked = np.stack([values[:-1:2], values[1::2], values[2::2]])
    return np.asarray(np.moveaxis(np.tensordot(weights, stacked, axes=1), 0, 1))


def defects(grid: Grid, path: Array, velocity: Array) -> Array:
    """Defects (windows, 2, dim) of a path (nodes, dim) in the conditions, given f on it (nodes, dim)."""
    return by_windows(path, CHANGE) - grid.half_widths[:, None, None] * by_windows(velocity, INTEGRAL)


def solve_path_step(
    grid: Grid, weights: Array, jacobian: Array, gradient: Array, targets: Array
) -> tuple[Array, Array]:
    """The path step δ (nodes, dim, m) least in ½ δᵀWδ − pullᵀδ under Aδ = targets, and the multipliers.

    weights: W (nodes, dim). jacobian: df/dx (nodes, dim, dim). gradient: (nodes, dim, m). targets and
    multipliers: (windows, 2, dim, m). Banded, nodes and windows in order of time. Raises LinAlgError where singular.
    """
    nodes, dim, columns = gradient.shape
    windows = len(targets)
    size = 2 * dim * nodes - dim
    at_node = 2 * dim * np.arange(nodes)[:, None] + np.arange(dim)
    at_window = (2 * dim * np.arange(2 * windows)[:, None] + dim + np.arange(dim)).reshape(windows, 2, dim)
    width = 4 * dim - 1
    band = np.zeros((2 * width + 1, size))
    band[width, at_node] = weights
    for row in range(2):
        for j in range(3):
            block = (
                CHANGE[row, j] * np.eye(dim)
                - (grid.half_widths * INTEGRAL[row, j])[:, None, None] * jacobian[j : j + 2 * windows : 2]
            )
            window_index, node_index = at_window[:, row, :, None], at_node[j : j + 2 * windows : 2, None, :]
            band[width + window_index - node_index, node_index + 0 * window_index] = block
            band[width + node_index - window_index, window_index + 0 * node_index] = block
    right_side = np.zeros((size, columns))
    right_side[at_node] = gradient
    right_side[at_window] = targets
    solution = scipy.linalg.solve_banded(
        (width, width), band, right_side, overwrite_ab=True, overwrite_b=True, check_finite=False
    )
    return solution[at_node], solution[at_window]


MAX_NODES = 300_000  # times states: some 3 GiB of band
MIN_NOISE_SHARE = 1e-7  # of a state's RMS: smaller noise is rounding and quadrature error
MIN_EIGENVALUE = 1e-11  # of the terms' correlation matrix; below it the terms are linearly dependent
CONVERGED = 1e-3  # length of the last step in posterior standard deviations
MIN_STEP_FRACTION = 2.0**-12  # part of a Gauss–Newton step


class FittedPath(NamedTuple):
    """A series, and the estimate of its path without noise."""

    series: Series
    grid: Grid
    path: Array  # (nodes, dim)


class WeakFit(NamedTuple):
    """Most likely coefficients (q,) with their precision (q, q), noise (dim,), paths, and −log likelihood."""

    parameters: Array
    precision: Array
    noise: Array
    paths: list[FittedPath]
    lowest: float


Guess = tuple[list[FittedPath], Array, Array]


def initial_guess(data: list[Series], model: Model, substeps: int, known: Array | None) -> Guess:
    """Smoothed paths, least-squares coefficients of their velocities, and the noise that was smoothed away."""
    q = len(model.parameters)
    gram, cross, paths, all_terms, all_velocities = np.zeros((q, q)), np.zeros(q), [], [], []
    for series in data:
        if len(series) * substeps * len(model.states) > MAX_NODES:
            raise ValueError(f"data must have at most {MAX_NODES:.0e} values, got {shown(series)}: average or thin it")
        grid = grid_of(series.times, substeps)
        path, velocities = smooth(series, grid.times)
        paths.append(FittedPath(series, grid, path))
        all_terms.append(check_array("the library's terms", model.library.evaluate(path)))
        check_term_derivatives(model.library, path)
        all_velocities.append(velocities)
    speed = np.sqrt(np.mean(np.concatenate(all_velocities) ** 2, axis=0))
    speed[speed == 0.0] = 1.0
    for terms, velocities in zip(all_terms, all_velocities, strict=True):
        design = np.einsum("nt,kte->nek", terms, model.directions) / speed[:, None]
        gram += np.einsum("nek,nel->kl", design, design)
        cross += np.einsum("nek,ne->k", design, (velocities - terms @ model.constant) / speed)
    check_distinct(gram, model.parameters)
    noise = noise_of(paths, 0) if known is None else known
    return paths, least_squares(gram, cross), np.maximum(noise, noise_floor(paths))


def check_distinct(gram: Array, names: tuple[str, ...]) -> None:
    """Raise ValueError naming the terms of a ``gram`` matrix of which one is a combination of the others."""
    scale = np.sqrt(np.diag(gram))
    empty = np.flatnonzero(~(scale > 0.0))
    if empty.size:
        raise ValueError(f"data must tell of every parameter, but the terms of {names[empty[0]]!r} are 0 throughout")
    values, vectors = np.linalg.eigh(gram / np.outer(scale, scale))
    if values[0] <= MIN_EIGENVALUE:
        alike = [names[k] for k in np.flatnonzero(np.abs(vectors[:, 0]) > 0.05)]
        raise ValueError(
            f"data must tell the terms apart, but those of {', '.join(alike[:12])} are one combination: "
            "fix or drop one of them (a constant state, duplicate terms, or too few data)"
        )


def residuals(fitted: FittedPath) -> Array:
    """Values less path at the samples (n, dim), 0 where missing."""
    return np.nan_to_num(fitted.series.values - fitted.path[fitted.grid.samples])


def noise_of(paths: list[FittedPath], freedom: float) -> Array:
    """Standard deviations of the residuals (dim,), each with ``freedom`` degrees of freedom spent on the fit."""
    counts = sum((~np.isnan(t.series.values)).sum(axis=0) for t in paths)
    squares = sum((residuals(t) ** 2).sum(axis=0) for t in paths)
    if (counts <= freedom).any():
        raise ValueError(f"data must have more than {math.ceil(freedom)} values of each state, got {np.min(counts)}")
    return np.asarray(np.sqrt(squares / (counts - freedom)))


def noise_floor(paths: list[FittedPath]) -> Array:
    """The smallest noise (dim,) that an estimate takes."""
    values = np.concatenate([t.series.values for t in paths])
    size = np.sqrt(np.nanmean(values**2, axis=0))
    return np.asarray(MIN_NOISE_SHARE * np.where(size > 0.0, size, 1.0))


def gauss_newton(guess: Guess, model: Model, known: Array | None, iterations: int) -> WeakFit:
    """Gauss–Newton steps from a guess, each shortened until a merit of misfit and defects decreases."""
    paths, parameters, noise = guess
    floor = noise_floor(paths)
    freedom = (len(parameters) + len(paths) * len(noise)) / len(noise)
    for _ in range(iterations):
        path_steps = [path_step(t, model, parameters, noise) for t in paths]
        design = np.concatenate([s.design for s in path_steps])
        precision, gradient = design.T @ design, design.T @ np.concatenate([s.residual for s in path_steps])
        check_distinct(precision, model.parameters)
        change = least_squares(precision, gradient)
        penalty = 2.0 * max(np.abs(s.multipliers[..., 0] + s.multipliers[..., 1:] @ change).max() for s in path_steps)
        merit_before = sum(merit_of(t, model, parameters, noise, penalty) for t in paths)
        fraction = 1.0
        while True:
            trial_paths = [
                t._replace(path=t.path + fraction * (s.path_change[..., 0] + s.path_change[..., 1:] @ change) * noise)
                for t, s in zip(paths, path_steps, strict=True)
            ]
            trial_merit = sum(merit_of(t, model, parameters + fraction * change, noise, penalty) for t in trial_paths)
            if trial_merit <= merit_before * (1.0 + 1e-9) or fraction < MIN_STEP_FRACTION:
                break
            fraction *= 0.5
        paths, parameters, noise_before = trial_paths, parameters + fraction * change, noise
        if known is None:
            noise = np.maximum(noise_of(paths, freedom), floor)
        if (
            fraction == 1.0
            and change @ precision @ change <= CONVERGED**2
            and np.allclose(noise, noise_before, rtol=1e-3)
        ):
            break
    else:
        raise ValueError(
            f"data must be near a path of the model, but none was found in {iterations} iterations: "
            "try a model with fewer or other terms, or a shorter series"
        )
    counts = sum((~np.isnan(t.series.values)).sum(axis=0) for t in paths)
    squares = sum((residuals(t) ** 2).sum(axis=0) for t in paths)
    lowest = float(0.5 * np.sum(squares / noise**2) + np.sum(counts * np.log(np.sqrt(2.0 * np.pi) * noise)))
    return WeakFit(parameters, precision, noise, paths, lowest)


class PathStep(NamedTuple):
    """The step of a path to the conditions, in units of noise: at fixed parameters (column 0), and per parameter.

    path_change: (nodes, dim, 1 + q). multipliers: (windows, 2, dim, 1 + q). residual: (n dim,), after the step of
    column 0. design: (n dim, q), the decrease of the residuals per parameter.
    """

    path_change: Array
    multipliers: Array
    residual: Array
    design: Array


def path_step(fitted: FittedPath, model: Model, parameters: Array, noise: Array) -> PathStep:
    """The conditions linearised at a path and parameters, and solved for the path nearest to the data."""
    series, grid, path = fitted
    terms = model.library.evaluate(path)
    coefficients = model.coefficients(parameters)
    jacobian = np.einsum("ntd,te->ned", term_jacobian(model.library, path), coefficients) * noise / noise[:, None]
    present = ~np.isnan(series.values)
    weights = np.zeros(path.shape)
    weights[grid.samples] = present
    gradient = np.zeros((*path.shape, 1 + len(parameters)))
    gradient[grid.samples, :, 0] = residuals(fitted) / noise
    targets = np.empty((len(grid.half_widths), 2, len(noise), 1 + len(parameters)))
    targets[..., 0] = -defects(grid, path, terms @ coefficients) / noise
    term_velocities = np.einsum("nt,kte->nek", terms, model.directions) / noise[:, None]
    targets[..., 1:] = grid.half_widths[:, None, None, None] * by_windows(term_velocities, INTEGRAL)
    if not np.isfinite(targets).all():
        raise ValueError("data must be near a path of the model, but its terms overflow on the way there")
    try:
        path_change, multipliers = solve_path_step(grid, weights, jacobian, gradient, targets)
    except np.linalg.LinAlgError:
        raise ValueError("data must determine the path, but too many values are missing") from None
    at_samples = path_change[grid.samples][present]
    residual = gradient[grid.samples, :, 0][present] - at_samples[:, 0]
    return PathStep(path_change, multipliers, residual, at_samples[:, 1:])


def merit_of(fitted: FittedPath, model: Model, parameters: Array, noise: Array, penalty: float) -> float:
    """Half the squared residuals and ``penalty`` × the defects, in units of noise; infinite where terms overflow."""
    with np.errstate(all="ignore"):
        velocity = model.library.evaluate(fitted.path) @ model.coefficients(parameters)
        total_defect = np.abs(defects(fitted.grid, fitted.path, velocity) / noise).sum()
        value = 0.5 * np.sum((residuals(fitted) / noise) ** 2) + penalty * total_defect
    return float(value) if np.isfinite(value) else math.inf


def refine(fitted: FittedPath, substeps: int, model: Model, parameters: Array) -> FittedPath:
    """The same path with more nodes, by cubic Hermite interpolation."""
    velocity = model.library.evaluate(fitted.path) @ model.coefficients(parameters)
    spline = scipy.interpolate.CubicHermiteSpline(fitted.grid.times, fitted.path, velocity)
    grid = grid_of(fitted.series.times, substeps)
    return FittedPath(fitted.series, grid, np.asarray(spline(grid.times)))


SUBSTEP_TOLERANCE = 0.1  # of a standard deviation: largest change when the steps are halved
MAX_SUBSTEPS = 64
MAX_NOISE_SHARE = 0.85  # of a state's spread: more noise leaves less than a quarter of its variance


@dataclass(frozen=True)
class Weak:
    """See ``weak``."""

    noise: tuple[float, ...] | None
    substeps: int | None
    iterations: int

    def prepare(self, data: Any, model: Any) -> Prepared:
        """The Gaussian likelihood of the coefficients of ``model``, a System, Library or Model, at ``data``."""
        model = as_model(model)
        given = check_data(data, model)
        fit = self.fit(given, model)
        mean, precision = fit.parameters, fit.precision
        numbers = quadratic_numbers(mean, precision, fit.lowest)
        quadratic = (mean, precision, fit.lowest)
        return Prepared(model.parameters, use_quadratic, numbers, 0, (False,) * len(mean), mean, quadratic=quadratic)

    def fit(self, data: list[Series], model: Model) -> WeakFit:
        """The most likely coefficients and paths, with steps between samples halved until they change no more."""
        check_instance("model", model, Model)
        data = check_data(data, model)
        known = self._known(data)
        substeps = 1 if self.substeps is None else self.substeps
        fit = gauss_newton(initial_guess(data, model, substeps, known), model, known, self.iterations)
        while self.substeps is None and substeps < MAX_SUBSTEPS:
            substeps *= 2
            if max(len(s) for s in data) * substeps * len(model.states) > MAX_NODES:
                break
            guess = [refine(path, substeps, model, fit.parameters) for path in fit.paths]
            coarse, fit = fit, gauss_newton((guess, fit.parameters, fit.noise), model, known, self.iterations)
            change = fit.parameters - coarse.parameters
            if change @ fit.precision @ change <= SUBSTEP_TOLERANCE**2 * len(change):
                break
        if known is None:
            warn_of_noise(fit, data)
        return fit

    def _known(self, data: list[Series]) -> Array | None:
        """Standard deviations of the noise (dim,), where they are given."""
        if self.noise is not None:
            dim = len(data[0].states)
            if len(self.noise) not in (1, dim):
                raise ValueError(f"noise must be one or one per state, {dim}, got {len(self.noise)}")
            return np.resize(np.array(self.noise), dim)
        noises = [series.noise for series in data if series.noise is not None]
        return np.sqrt(np.mean(np.square(noises), axis=0)) if len(noises) == len(data) else None


def warn_of_noise(fit: WeakFit, data: list[Series]) -> None:
    """Warn where the noise found is almost all of a state's spread: a wrong path, or too much noise."""
    spread = np.nanstd(np.concatenate([series.values for series in data]), axis=0)
    lost = np.flatnonzero((fit.noise > MAX_NOISE_SHARE * spread) & (spread > 0.0))
    if lost.size:
        state = data[0].states[lost[0]]
        warnings.warn(
            f"weak: noise of {state!r} is estimated as {fit.noise[lost[0]]:.3g}, of a spread of {spread[lost[0]]:.3g}: "
            "the path found is not that of the data, or there is too much noise. Give noise, closer samples or another "
            "model",
            stacklevel=4,
        )


def weak(*, noise: float | Sequence[float] | None = None, substeps: int | None = None, iterations: int = 40) -> Weak:
    """States with independent Gaussian errors of a path that obeys the integrated equations in every window.

    The equations hold in weak form, for a box and a Haar step on each window of three nodes, so that no data are
    differentiated. Path and coefficients are found together, by Gauss–Newton steps on
    Σ (y − x)² / (2 noise²) under all conditions, and the path is eliminated to first order: its covariance under the
    conditions weights the coefficients. No term is evaluated at noisy states, so no bias has to be corrected.
    noise: standard deviation of the states' errors, one or one per state; None: ``Series.noise``, else estimated from
    the residuals, by which it is plugged in. substeps: steps between two samples, a power of 2; None: as many as it
    takes that halving them moves the mean by less than 0.1 standard deviations. iterations: at most so many steps.
    Missing values and uneven times are no approximation: a missing value weighs 0. Several series share coefficients
    and noise.
    Law: the quadratic of the profile likelihood at its maximum; exact for exact quadrature, as noise → 0.
    Lorenz, 5,001 samples, all 30 coefficients free: 90 % intervals hold 88 to 90 % of them at 1, 5 and 10 % noise
    (docs/identification_weak.md, with what holds and where it ends). Test functions on noisy states, as WENDy has them,
    need a correction of bias and lose what is between the windows.
    Warns where the noise found leaves next to nothing of a state.
    Raises ValueError naming terms that the data cannot tell apart, or where no path of the model is near the data.
    Source: errors in variables as in Bortz, Messenger & Dukic (2023); collocation as in Ramsay et al. (2007).
    """
    if noise is not None:
        sds = check_array("noise", noise)
        if sds.ndim > 1 or sds.size == 0 or (sds <= 0.0).any():
            raise ValueError(f"noise must be one or one per state, each > 0, got {shown(noise)}")
        noise = tuple(sds.ravel().tolist())
    if substeps is not None:
        substeps = check_count("substeps", substeps, at_least=1, below=2**12)
        if substeps & (substeps - 1):
            raise ValueError(f"substeps must be a power of 2, got {substeps}")
    return Weak(noise, substeps, check_count("iterations", iterations, at_least=1, below=10**4))
