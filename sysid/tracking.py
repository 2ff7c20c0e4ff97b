"""Most likely coefficients and paths: Gauss–Newton steps on noisy states under the integral conditions of a model."""

import math
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from toolkit.checks import check_array

from .model import Model
from .normal_equations import minimiser
from .series import Series
from .windows import INTEGRAL, Grid, by_windows, check_slopes, defects, grid_of, slopes, smooth, solve

Array = NDArray[np.float64]
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
