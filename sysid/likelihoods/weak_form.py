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
from numpy.typing import NDArray

from targets.posteriors.quadratic import quadratic_numbers, use_quadratic
from toolkit.errors import check_array, check_count

from ..data.series import Series
from ..libraries import Library, column_of
from ..model import Model, as_model
from ..systems.system import analytic
from .interface import Prepared
from .velocity import check_data, minimiser

__all__ = ["Weak", "weak"]

# Integral conditions of a path on windows of its nodes: what the weak form asks, by Simpson's parabola.
#
# On a window of nodes a, b, c, a half width h apart, the test functions are the box and the Haar step. Integrated
# against dx/dt = f, with the parabola through f(a), f(b), f(c) in place of f, they give x_c − x_a = h/3 (f_a + 4 f_b +
# f_c)         and         x_b − ½ (x_a + x_c) = h/4 (f_a − f_c), of order 4 in h (the three-stage Lobatto IIIA method;
# Hairer, Nørsett & Wanner 1993, II.7).

Array = NDArray[np.float64]
STEP = 1e-40  # of complex steps: its square is 0 beside any state
CHANGE = np.array([[-1.0, 0.0, 1.0], [-0.5, 1.0, -0.5]])  # of x, by the box and by the Haar step
INTEGRAL = np.array([[1.0, 4.0, 1.0], [0.75, 0.0, -0.75]]) / 3.0  # of f, in half widths
PENALTIES = 10.0 ** np.arange(-2.0, 12.1, 0.5)  # in units of nodes: lengths from 0.3 to 1000 nodes
N_PROBES = 4  # of the trace
CHECKED = 24  # states at which derivatives are compared with differences


class Grid(NamedTuple):
    """Nodes in time, an odd number; window k has nodes 2k, 2k + 1, 2k + 2, equally far apart.

    times: (nodes,). samples: (n,), the node of each sample.
    """

    times: Array
    samples: NDArray[np.int64]

    @property
    def halves(self) -> Array:
        """Half widths (windows,)."""
        return np.asarray(self.times[1::2] - self.times[:-1:2])


def grid_of(times: Array, substeps: int) -> Grid:
    """Nodes at ``times`` (n,) and, evenly, between them, ``substeps`` intervals for one; a power of 2.

    Where ``substeps`` is 1, two equal intervals in a row make a window, and an interval without its like is halved.
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
    bend = bending(scaled)
    probes = np.random.default_rng(0).choice([-1.0, 1.0], (times.size, N_PROBES))
    path = np.empty((times.size, len(series.states)))
    for d, column in enumerate(series.values.T):
        there = ~np.isnan(column)
        weights, values = np.zeros(times.size), np.zeros(times.size)
        weights[samples[there]], values[samples[there]] = 1.0, column[there]
        right = weights[:, None] * np.column_stack([values, probes])
        best = math.inf
        for weight in PENALTIES:
            banded = weight * bend
            banded[-1] += weights
            try:
                smoothed = scipy.linalg.solveh_banded(banded, right, check_finite=False)
            except np.linalg.LinAlgError:
                continue
            freedom = weights.sum() - np.mean(np.sum(right[:, 1:] * smoothed[:, 1:], axis=0))
            score = np.sum(weights * (values - smoothed[:, 0]) ** 2) / max(freedom, 1e-6 * times.size) ** 2
            if score < best:
                best, path[:, d] = score, smoothed[:, 0]
        if best == math.inf:
            path[:, d] = np.interp(series.times, series.times[there], column[there])
    return path, np.asarray(np.gradient(path, times, axis=0))


def bending(times: Array) -> Array:
    """Σ of squared second divided differences, weighted by their spans, as an upper band (3, nodes)."""
    gaps = np.diff(times)
    spans = times[2:] - times[:-2]
    rows = np.stack([1.0 / gaps[:-1], -1.0 / gaps[:-1] - 1.0 / gaps[1:], 1.0 / gaps[1:]]) / np.sqrt(0.5 * spans)
    band = np.zeros((3, times.size))
    for i in range(3):
        for j in range(i, 3):
            band[2 - (j - i), j : j + spans.size] += rows[i] * rows[j]
    return band


def slopes(library: Library, path: Array) -> Array:
    """∂θ_t/∂x_d (nodes, terms, dim) at a path (nodes, dim), by complex steps."""
    out = np.empty((len(path), len(library), path.shape[1]))
    for d in range(path.shape[1]):
        columns: tuple[Any, ...] = tuple(path[:, e] + (1j * STEP if e == d else 0.0) for e in range(path.shape[1]))
        for k, term in enumerate(library.terms):
            if term.own is None:
                value = column_of(term, columns)
            else:
                own = compiled_once(term.own) if isinstance(term.own, Dispatcher) else term.own
                value = np.array([complex(own(point)) for point in zip(*columns, strict=True)])
            out[:, k, d] = np.imag(value) / STEP
    return out


def check_slopes(library: Library, states: Array) -> None:
    """Raise ValueError where a user's own term is not analytic at some of ``states`` (n, dim): by differences."""
    if all(term.own is None for term in library.terms):
        return
    some = states[np.unique(np.linspace(0.0, len(states) - 1, CHECKED).round().astype(np.int64))]
    exact, sizes = slopes(library, some), np.maximum(np.abs(some), 1e-3)
    for d, state in enumerate(library.states):
        moves, size = np.where(np.arange(some.shape[1]) == d, 6e-6 * sizes, 0.0), sizes[:, d, None]
        with np.errstate(all="ignore"):
            short, long = (
                (library.evaluate(some + f * moves) - library.evaluate(some - f * moves)) / (1.2e-5 * f * size)
                for f in (1.0, 2.0)
            )
            rounding = 1e-6 * np.abs(library.evaluate(some)) / size + 1e-9 * (1.0 + np.abs(some).max())
            doubt = 20.0 * np.abs(long - short) + rounding
            wrong = ~(np.abs(exact[:, :, d] - short) <= 1e-4 * np.abs(short) + doubt) & np.isfinite(doubt)
        if wrong.any():
            row, k = np.argwhere(wrong)[0]
            raise ValueError(
                f"functions must be analytic, but at {library.states} = {some[row].tolist()} the derivative of "
                f"{library.names[k]!r} with respect to {state} is {exact[row, k, d]:.6g} by a complex step and "
                f"{short[row, k]:.6g} by differences: write abs(x) as np.sqrt(x*x), and use no sign, min or max"
            )


@functools.cache
def compiled_once(function: Any) -> Any:
    """A compiled function as it is for complex steps, whose globals Numba has frozen already."""
    return analytic(function)


def by_windows(values: Array, weights: Array) -> Array:
    """Σ_j weights_rj values_(2k+j): (windows, 2, …) of values (nodes, …), for the box and the Haar step r."""
    stacked = np.stack([values[:-1:2], values[1::2], values[2::2]])
    return np.asarray(np.moveaxis(np.tensordot(weights, stacked, axes=1), 0, 1))


def defects(grid: Grid, path: Array, velocity: Array) -> Array:
    """By how much a path (nodes, dim) misses the conditions (windows, 2, dim), given f on it (nodes, dim)."""
    return by_windows(path, CHANGE) - grid.halves[:, None, None] * by_windows(velocity, INTEGRAL)


def solve(grid: Grid, weights: Array, jacobian: Array, pull: Array, targets: Array) -> tuple[Array, Array]:
    """The path step δ (nodes, dim, m) least in ½ δᵀWδ − pullᵀδ under Aδ = targets, and the multipliers.

    weights: W (nodes, dim). jacobian: df/dx (nodes, dim, dim). pull: (nodes, dim, m). targets: (windows, 2, dim, m).
    Multipliers: (windows, 2, dim, m). Banded, nodes and windows in order of time. Raises LinAlgError where singular.
    """
    nodes, dim, many = pull.shape
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
                - (grid.halves * INTEGRAL[row, j])[:, None, None] * jacobian[j : j + 2 * windows : 2]
            )
            down, along = at_window[:, row, :, None], at_node[j : j + 2 * windows : 2, None, :]
            band[width + down - along, along + 0 * down] = block
            band[width + along - down, down + 0 * along] = block
    right = np.zeros((size, many))
    right[at_node] = pull
    right[at_window] = targets
    solution = scipy.linalg.solve_banded(
        (width, width), band, right, overwrite_ab=True, overwrite_b=True, check_finite=False
    )
    return solution[at_node], solution[at_window]


MOST_NODES = 300_000  # times states: some 3 GiB of band
EXACT = 1e-7  # of a state's RMS: noise below it is taken for rounding and quadrature
ALIKE = 1e-11  # eigenvalue of a correlation of terms below which they are one
CONVERGED = 1e-3  # length of the last step in posterior standard deviations
SHORTEST = 2.0**-12  # part of a Gauss–Newton step


class Tracked(NamedTuple):
    """A series with the path that is thought to be behind it."""

    series: Series
    grid: Grid
    path: Array  # (nodes, dim)


class Fit(NamedTuple):
    """Most likely coefficients (q,) with their precision (q, q), noise (dim,), paths, and −log likelihood."""

    parameters: Array
    precision: Array
    noise: Array
    tracked: list[Tracked]
    lowest: float


Guess = tuple[list[Tracked], Array, Array]


def first_guess(data: list[Series], model: Model, substeps: int, known: Array | None) -> Guess:
    """Smoothed paths, the coefficients that fit the paths' velocities best, and the noise smoothed away."""
    q = len(model.parameters)
    gram, pull, tracked, terms_of, velocities_of = np.zeros((q, q)), np.zeros(q), [], [], []
    for series in data:
        if len(series) * substeps * len(model.states) > MOST_NODES:
            raise ValueError(f"data must have at most {MOST_NODES:.0e} values, got {series!r}: average or thin it")
        grid = grid_of(series.times, substeps)
        path, velocities = smooth(series, grid.times)
        tracked.append(Tracked(series, grid, path))
        terms_of.append(check_array("the library's terms", model.library.evaluate(path)))
        check_slopes(model.library, path)
        velocities_of.append(velocities)
    speed = np.sqrt(np.mean(np.concatenate(velocities_of) ** 2, axis=0))
    speed[speed == 0.0] = 1.0
    for terms, velocities in zip(terms_of, velocities_of, strict=True):
        design = np.einsum("nt,kte->nek", terms, model.directions) / speed[:, None]
        gram += np.einsum("nek,nel->kl", design, design)
        pull += np.einsum("nek,ne->k", design, (velocities - terms @ model.constant) / speed)
    check_distinct(gram, model.parameters)
    noise = noise_of(tracked, 0) if known is None else known
    return tracked, minimiser(gram, pull), np.maximum(noise, least_noise(tracked))


def check_distinct(gram: Array, names: tuple[str, ...]) -> None:
    """Raise ValueError naming the terms of a ``gram`` matrix of which one is a combination of the others."""
    scale = np.sqrt(np.diag(gram))
    empty = np.flatnonzero(~(scale > 0.0))
    if empty.size:
        raise ValueError(f"data must tell of every parameter, but the terms of {names[empty[0]]!r} are 0 throughout")
    values, vectors = np.linalg.eigh(gram / np.outer(scale, scale))
    if values[0] <= ALIKE:
        alike = [names[k] for k in np.flatnonzero(np.abs(vectors[:, 0]) > 0.05)]
        raise ValueError(
            f"data must tell the terms apart, but those of {', '.join(alike[:12])} are one combination: "
            "fix or drop one of them (a constant state, duplicate terms, or too few data)"
        )


def residuals(tracked: Tracked) -> Array:
    """Values less path at the samples (n, dim), 0 where missing."""
    return np.nan_to_num(tracked.series.values - tracked.path[tracked.grid.samples])


def noise_of(tracked: list[Tracked], spent: float) -> Array:
    """Standard deviations of the residuals (dim,), each with ``spent`` degrees of freedom spent on the fit."""
    counts = sum((~np.isnan(t.series.values)).sum(axis=0) for t in tracked)
    squares = sum((residuals(t) ** 2).sum(axis=0) for t in tracked)
    if (counts <= spent).any():
        raise ValueError(f"data must have more than {math.ceil(spent)} values of each state, got {np.min(counts)}")
    return np.asarray(np.sqrt(squares / (counts - spent)))


def least_noise(tracked: list[Tracked]) -> Array:
    """What counts as no noise (dim,)."""
    values = np.concatenate([t.series.values for t in tracked])
    size = np.sqrt(np.nanmean(values**2, axis=0))
    return np.asarray(EXACT * np.where(size > 0.0, size, 1.0))


def most_likely(guess: Guess, model: Model, known: Array | None, iterations: int) -> Fit:
    """Gauss–Newton steps from a guess, each as long as a merit of misfit and defects falls."""
    tracked, parameters, noise = guess
    least = least_noise(tracked)
    spent = (len(parameters) + len(tracked) * len(noise)) / len(noise)
    for _ in range(iterations):
        steps = [path_steps(t, model, parameters, noise) for t in tracked]
        response = np.concatenate([s.response for s in steps])
        precision, pull = response.T @ response, response.T @ np.concatenate([s.rest for s in steps])
        check_distinct(precision, model.parameters)
        change = minimiser(precision, pull)
        price = 2.0 * max(np.abs(s.multipliers[..., 0] + s.multipliers[..., 1:] @ change).max() for s in steps)
        merit = sum(worth(t, model, parameters, noise, price) for t in tracked)
        part = 1.0
        while True:
            moved = [
                t._replace(path=t.path + part * (s.along[..., 0] + s.along[..., 1:] @ change) * noise)
                for t, s in zip(tracked, steps, strict=True)
            ]
            reached = sum(worth(t, model, parameters + part * change, noise, price) for t in moved)
            if reached <= merit * (1.0 + 1e-9) or part < SHORTEST:
                break
            part *= 0.5
        tracked, parameters, before = moved, parameters + part * change, noise
        if known is None:
            noise = np.maximum(noise_of(tracked, spent), least)
        if part == 1.0 and change @ precision @ change <= CONVERGED**2 and np.allclose(noise, before, rtol=1e-3):
            break
    else:
        raise ValueError(
            f"data must be near a path of the model, but none was found in {iterations} iterations: "
            "try a model with fewer or other terms, or a shorter series"
        )
    counts = sum((~np.isnan(t.series.values)).sum(axis=0) for t in tracked)
    squares = sum((residuals(t) ** 2).sum(axis=0) for t in tracked)
    lowest = float(0.5 * np.sum(squares / noise**2) + np.sum(counts * np.log(np.sqrt(2.0 * np.pi) * noise)))
    return Fit(parameters, precision, noise, tracked, lowest)


class Steps(NamedTuple):
    """How a path moves to obey the conditions, by itself (column 0) and per parameter (columns 1 …), in units of noise.

    along: (nodes, dim, 1 + q). multipliers: (windows, 2, dim, 1 + q). rest: (n dim,), residuals after column 0, and
    response: (n dim, q), what a parameter takes from them.
    """

    along: Array
    multipliers: Array
    rest: Array
    response: Array


def path_steps(tracked: Tracked, model: Model, parameters: Array, noise: Array) -> Steps:
    """The conditions linearised at a path and parameters, and solved for the path nearest to the data."""
    series, grid, path = tracked
    terms = model.library.evaluate(path)
    coefficients = model.coefficients(parameters)
    jacobian = np.einsum("ntd,te->ned", slopes(model.library, path), coefficients) * noise / noise[:, None]
    present = ~np.isnan(series.values)
    weights = np.zeros(path.shape)
    weights[grid.samples] = present
    pull = np.zeros((*path.shape, 1 + len(parameters)))
    pull[grid.samples, :, 0] = residuals(tracked) / noise
    targets = np.empty((len(grid.halves), 2, len(noise), 1 + len(parameters)))
    targets[..., 0] = -defects(grid, path, terms @ coefficients) / noise
    pushes = np.einsum("nt,kte->nek", terms, model.directions) / noise[:, None]
    targets[..., 1:] = grid.halves[:, None, None, None] * by_windows(pushes, INTEGRAL)
    if not np.isfinite(targets).all():
        raise ValueError("data must be near a path of the model, but its terms overflow on the way there")
    try:
        along, multipliers = solve(grid, weights, jacobian, pull, targets)
    except np.linalg.LinAlgError:
        raise ValueError("data must determine the path, but too many values are missing") from None
    at_samples = along[grid.samples][present]
    rest = pull[grid.samples, :, 0][present] - at_samples[:, 0]
    return Steps(along, multipliers, rest, at_samples[:, 1:])


def worth(tracked: Tracked, model: Model, parameters: Array, noise: Array, price: float) -> float:
    """Half the squared residuals and ``price`` × the defects, in units of noise; infinite where terms overflow."""
    with np.errstate(all="ignore"):
        velocity = model.library.evaluate(tracked.path) @ model.coefficients(parameters)
        missed = np.abs(defects(tracked.grid, tracked.path, velocity) / noise).sum()
        value = 0.5 * np.sum((residuals(tracked) / noise) ** 2) + price * missed
    return float(value) if np.isfinite(value) else math.inf


def refined(tracked: Tracked, substeps: int, model: Model, parameters: Array) -> Tracked:
    """The same path with more nodes, by cubic Hermite interpolation."""
    velocity = model.library.evaluate(tracked.path) @ model.coefficients(parameters)
    spline = scipy.interpolate.CubicHermiteSpline(tracked.grid.times, tracked.path, velocity)
    grid = grid_of(tracked.series.times, substeps)
    return Tracked(tracked.series, grid, np.asarray(spline(grid.times)))


# The weak likelihood: noisy states of a path that obeys the equations in integral form, the path taken out.

SETTLED = 0.1  # of a standard deviation: what halving the steps may change
MOST_SUBSTEPS = 64
DROWNED = 0.85  # of a state's spread: noise that leaves no more than a quarter of its variance


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

    def fit(self, data: list[Series], model: Model) -> Fit:
        """The most likely coefficients and paths, with steps between samples halved until they change no more."""
        known = self._known(data)
        substeps = 1 if self.substeps is None else self.substeps
        fit = most_likely(first_guess(data, model, substeps, known), model, known, self.iterations)
        while self.substeps is None and substeps < MOST_SUBSTEPS:
            substeps *= 2
            if max(len(s) for s in data) * substeps * len(model.states) > MOST_NODES:
                break
            guess = [refined(tracked, substeps, model, fit.parameters) for tracked in fit.tracked]
            coarse, fit = fit, most_likely((guess, fit.parameters, fit.noise), model, known, self.iterations)
            change = fit.parameters - coarse.parameters
            if change @ fit.precision @ change <= SETTLED**2 * len(change):
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


def warn_of_noise(fit: Fit, data: list[Series]) -> None:
    """Warn where the path found tells next to nothing of a state: a wrong one, or noise that drowns it."""
    spread = np.nanstd(np.concatenate([series.values for series in data]), axis=0)
    lost = np.flatnonzero((fit.noise > DROWNED * spread) & (spread > 0.0))
    if lost.size:
        state = data[0].states[lost[0]]
        warnings.warn(
            f"weak: noise of {state!r} is estimated as {fit.noise[lost[0]]:.3g}, of a spread of {spread[lost[0]]:.3g}: "
            "the path found is not the data's, or noise drowns them. Give noise, closer samples or another model",
            stacklevel=4,
        )


def weak(*, noise: float | Sequence[float] | None = None, substeps: int | None = None, iterations: int = 40) -> Weak:
    """States with independent Gaussian errors of a path that obeys the integrated equations in every window.

    The equations are asked in weak form, against a box and a Haar step on each window of three nodes (``windows``), so
    that no data are differentiated. Path and coefficients are found together, by Gauss–Newton steps on
    Σ (y − x)² / (2 noise²) under all conditions, and the path is taken out to first order: its covariance under the
    conditions weighs the coefficients, and no term is evaluated at noisy states, so that nothing is left to debias.
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
            raise ValueError(f"noise must be one or one per state, each > 0, got {noise!r:.200}")
        noise = tuple(sds.ravel().tolist())
    if substeps is not None:
        substeps = check_count("substeps", substeps, at_least=1, below=2**12)
        if substeps & (substeps - 1):
            raise ValueError(f"substeps must be a power of 2, got {substeps}")
    return Weak(noise, substeps, check_count("iterations", iterations, at_least=1, below=10**4))
