"""Most likely coefficients and paths of noisy states: Gauss–Newton steps under the integral conditions."""

import math
from typing import NamedTuple

import numpy as np
import scipy

from ..arrays import Array, Bools
from ..data.residuals import ResidualPart
from ..data.series import Series, with_inputs
from ..libraries import Library
from ..model import Model
from .conditions import Grid, defects, grid_of, integrals, solve_path_step
from .start_search import SearchProgress
from .term_derivatives import term_jacobian
from .velocity import least_squares

MIN_NOISE_SHARE = 1e-7  # of a state's RMS: smaller noise is rounding and quadrature error
MIN_RESIDUAL = 0.01  # of the noise: smaller residuals, where noise is given, are quadrature error
MIN_EIGENVALUE = 1e-11  # of the terms' correlation matrix; below it the terms are linearly dependent
MIN_PART = 0.05  # of a combination's coefficient, of length 1: terms with less are not named
MOST_NAMES = 12
CONVERGED = 1e-3  # length of the last step in posterior standard deviations
NEARLY_CONVERGED = 0.1  # RMS of the last step, where the iterations are used up: steps that shrink slowly
MIN_STEP_FRACTION = 2.0**-12  # part of a Gauss–Newton step
MAX_CORRECTIONS = 12  # of a path at given coefficients
CORRECTED = 1e-2  # standard deviations of the noise: its last change then


class FittedPath(NamedTuple):
    """A series, and the estimate of its path without noise."""

    series: Series
    grid: Grid
    path: Array  # (nodes, dim)

    def variables(self, library: Library) -> Array:
        """The path, with a library's inputs at its nodes beside it (nodes, dim + inputs)."""
        return with_inputs(self.series, library.inputs, self.grid.times, self.path)

    def variables_before(self, library: Library) -> Array | None:
        """The same before inputs jump at nodes; None where no input is held."""
        if not held_inputs(self.series, library):
            return None
        return with_inputs(self.series, library.inputs, self.grid.times, self.path, before=True)

    def velocities(self, model: Model, coefficients: Array) -> tuple[Array, Array | None]:
        """Θ Ξ (nodes, dim), and before inputs jump."""
        before = self.variables_before(model.library)
        ends = None if before is None else model.library.evaluate(before) @ coefficients
        return model.library.evaluate(self.variables(model.library)) @ coefficients, ends


def held_inputs(series: Series, library: Library) -> list[str]:
    """The library's inputs that jump."""
    return [name for name in library.inputs if series.inputs is not None and name in series.inputs.held]


class WeakProblem(NamedTuple):
    """What is fitted: a model, the noise (dim,) where it is known, and the precision (q,) of a normal prior about 0.

    A prior keeps coefficients finite of which data leave a combination open; precision 0 is a flat one. max_departure:
    of −log likelihood from its quadratic, of the draws' expected energy q/2, at three of four draws. progress: counts
    the steps, and raises TimeoutError after its limit; None: there is no limit.
    """

    model: Model
    known_noise: Array | None
    prior_precision: Array
    max_departure: float
    progress: SearchProgress | None = None

    def tell(self, merit: float) -> None:
        """Count a step to ``merit``. Raises TimeoutError where the time is up."""
        if self.progress is not None:
            self.progress.count(np.array([merit]))

    def begin_stage(self, stage: str) -> None:
        """Begin a stage of the search, in words."""
        if self.progress is not None:
            self.progress.begin_stage(stage)

    def penalty(self, parameters: Array) -> float:
        """−log prior up to a constant."""
        return 0.5 * float(parameters @ (self.prior_precision * parameters))

    def freedom(self, precision: Array) -> float:
        """Degrees of freedom that the coefficients take from data of this precision (q, q): q without a prior."""
        if not self.prior_precision.any():
            return float(len(self.prior_precision))
        sds = self.prior_precision**-0.5
        ratios = np.maximum(np.linalg.eigvalsh(precision * sds * sds[:, None]), 0.0)  # of the data's to the prior's
        return float(np.sum(ratios / (1.0 + ratios)))

    def check_determined(self, precision: Array) -> None:
        """Raise ValueError naming the parameters of which the likelihood leaves a combination undetermined.

        With a prior none is, however much more precise the data are elsewhere.
        """
        check_sensitivities(precision)
        if not self.prior_precision.all():
            check_determined(precision, self.model.parameters)


class WeakFit(NamedTuple):
    """Coefficients (q,) with the likelihood's precision there (q, q), noise (dim,), paths, and −log likelihood.

    last_step: of the coefficients, RMS in standard deviations; 0 where the steps have converged. descent: minus the
    slope of −log likelihood (q,) at the coefficients: 0 where these are the most likely, what balances the prior's
    where they are the most probable.
    """

    parameters: Array
    precision: Array
    noise: Array
    paths: list[FittedPath]
    lowest: float
    last_step: float
    descent: Array

    @property
    def quadratic(self) -> tuple[Array, Array, float]:
        """The likelihood's maximum (q,) by its quadratic at the coefficients, its precision, and −log there.

        Combinations of which the data tell nothing stay as they are.
        """
        step = least_squares(self.precision, self.descent)
        return self.parameters + step, self.precision, self.lowest - 0.5 * float(self.descent @ step)

    @property
    def guess(self) -> "Guess":
        """Where further steps begin."""
        return self.paths, self.parameters, self.noise

    def check(self, iterations: int) -> "WeakFit":
        """The fit. Raises ValueError where the last of so many steps moved the coefficients too far to stop there."""
        if not self.last_step <= NEARLY_CONVERGED:
            raise ValueError(
                f"data must be near a path of the model, but none was found in {iterations} iterations: "
                "try a model with fewer or other terms, or a shorter series"
            )
        return self


def check_distinct(gram: Array, names: tuple[str, ...]) -> None:
    """Raise ValueError naming the terms of a ``gram`` matrix of which one is a combination of the others."""
    scale = np.sqrt(np.diag(gram))
    empty = np.flatnonzero(~(scale > 0.0))
    if empty.size:
        raise ValueError(f"data must tell of every parameter, but the terms of {names[empty[0]]!r} are 0 throughout")
    alike = combined(gram, names)
    if alike:
        raise ValueError(
            f"data must tell the terms apart, but those of {alike} are one combination: "
            "fix or drop one of them (a constant state, duplicate terms, or too few data)"
        )


def check_sensitivities(precision: Array) -> None:
    """Raise ValueError where a path's sensitivities are no numbers."""
    if not np.isfinite(precision).all() or not (np.diag(precision) > 0.0).all():
        raise ValueError("data must be near a path of the model, but its sensitivities overflow on the way there")


def check_determined(precision: Array, names: tuple[str, ...]) -> None:
    """Raise ValueError naming parameters of which the path answers to one combination alone, as far as floats tell."""
    alike = combined(precision, names)
    if alike:
        raise ValueError(
            f"data must determine the parameters, but along the path they leave {alike} undetermined beside "
            "the rest: give closer samples, fewer terms, or more series"
        )


def combined(gram: Array, names: tuple[str, ...], *, every: bool = False) -> str:
    """The names of which a ``gram`` matrix has one combination that is 0; "" where it has none.

    every: those of all such combinations.
    """
    scale = np.sqrt(np.diag(gram))
    scale[scale == 0.0] = 1.0
    values, vectors = np.linalg.eigh(gram / np.outer(scale, scale))
    n_open = int((values <= MIN_EIGENVALUE).sum())
    part = vectors[:, : n_open if every else min(n_open, 1)]
    involved = np.flatnonzero((np.abs(part) > MIN_PART).any(axis=1))
    return ", ".join([names[k] for k in involved[:MOST_NAMES]]) + (", …" if len(involved) > MOST_NAMES else "")


def residuals(fitted: FittedPath) -> Array:
    """Values less path at the samples (n, dim), 0 where missing."""
    differences = fitted.series.values - fitted.path[fitted.grid.samples]
    differences[np.isnan(differences)] = 0.0
    return np.asarray(differences)


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


Guess = tuple[list[FittedPath], Array, Array]  # paths, parameters, noise


def gauss_newton(guess: Guess, problem: WeakProblem, iterations: int) -> WeakFit:
    """Gauss–Newton steps from a guess, each shortened until a merit of misfit, prior and defects decreases.

    Raises ValueError where parameters are undetermined on the way; ``WeakFit.check`` tells whether it has come near.
    """
    paths, parameters, noise = guess
    model, prior = problem.model, problem.prior_precision
    floor = noise_floor(paths)
    for _ in range(iterations):
        path_steps = [path_step(t, model, parameters, noise) for t in paths]
        precision, gradient = normal_equations(path_steps)
        problem.check_determined(precision)
        total = precision + np.diag(prior)
        change = least_squares(total, gradient - prior * parameters)
        penalty = 2.0 * max(np.abs(s.multipliers[..., 0] + s.multipliers[..., 1:] @ change).max() for s in path_steps)
        merit_before = total_merit(paths, problem, parameters, noise, penalty)
        fraction = 1.0
        while True:
            trial_paths = [
                t._replace(path=t.path + fraction * (s.path_change[..., 0] + s.path_change[..., 1:] @ change) * noise)
                for t, s in zip(paths, path_steps, strict=True)
            ]
            trial_merit = total_merit(trial_paths, problem, parameters + fraction * change, noise, penalty)
            if trial_merit <= merit_before * (1.0 + 1e-9) or fraction < MIN_STEP_FRACTION:
                break
            # A full step can raise the merit by its curvature alone, which one more step of the paths takes away.
            corrected = [corrected_path(t, model, parameters + fraction * change, noise) or t for t in trial_paths]
            trial_merit = total_merit(corrected, problem, parameters + fraction * change, noise, penalty)
            if trial_merit <= merit_before * (1.0 + 1e-9):
                trial_paths = corrected
                break
            fraction *= 0.5
        problem.tell(trial_merit)
        paths, parameters, noise_before = trial_paths, parameters + fraction * change, noise
        if problem.known_noise is None:
            freedom = (problem.freedom(precision) + len(paths) * len(noise)) / len(noise)
            noise = np.maximum(noise_of(paths, freedom), floor)
        if fraction == 1.0 and change @ total @ change <= CONVERGED**2 and np.allclose(noise, noise_before, rtol=1e-3):
            last_step = 0.0
            break
        last_step = float(np.sqrt(change @ total @ change / len(change)))
    lowest = negative_log(paths, noise)
    return WeakFit(parameters, precision, noise, paths, lowest, last_step, prior * parameters)


def negative_log(paths: list[FittedPath], noise: Array) -> float:
    """−log likelihood of paths, of Gaussian errors."""
    counts = sum((~np.isnan(t.series.values)).sum(axis=0) for t in paths)
    squares = sum((residuals(t) ** 2).sum(axis=0) for t in paths)
    return float(0.5 * np.sum(squares / noise**2) + np.sum(counts * np.log(np.sqrt(2.0 * np.pi) * noise)))


class PathStep(NamedTuple):
    """The step of a path to the conditions, in units of noise: at fixed parameters (column 0), and per parameter.

    path_change: (nodes, dim, 1 + q). multipliers: (windows, 2, dim, 1 + q). residual: (n dim,), after the step of
    column 0. design: (n dim, q), the decrease of the residuals per parameter.
    """

    path_change: Array
    multipliers: Array
    residual: Array
    design: Array


def normal_equations(steps: list[PathStep]) -> tuple[Array, Array]:
    """The precision (q, q) of the parameters by steps of all paths, and minus the slope of −log likelihood (q,)."""
    design, residual = (np.concatenate([getattr(s, name) for s in steps]) for name in ("design", "residual"))
    return design.T @ design, design.T @ residual


@np.errstate(all="ignore")  # what overflows is refused, or the step is
def path_step(
    fitted: FittedPath, model: Model, parameters: Array, noise: Array, *, with_parameters: bool = True
) -> PathStep:
    """The conditions linearised at a path and parameters, and solved for the path nearest to the data.

    Without parameters, column 0 alone.
    """
    series, grid, path = fitted
    terms, before = model.library.evaluate(fitted.variables(model.library)), fitted.variables_before(model.library)
    terms_before = None if before is None else model.library.evaluate(before)
    coefficients = model.coefficients(parameters)
    weights, jacobian, ends = weights_and_jacobian(fitted, model, coefficients, noise)
    present = ~np.isnan(series.values)
    columns = 1 + len(parameters) * with_parameters
    gradient = np.zeros((*path.shape, columns))
    gradient[grid.samples, :, 0] = residuals(fitted) / noise
    targets = np.empty((len(grid.half_widths), 2, len(noise), columns))
    velocity_before = None if terms_before is None else terms_before @ coefficients
    targets[..., 0] = -defects(grid, path, terms @ coefficients, velocity_before) / noise
    if with_parameters:
        moves_before = None if terms_before is None else moves_of(terms_before, model) / noise[:, None]
        targets[..., 1:] = integrals(grid, moves_of(terms, model) / noise[:, None], moves_before)
    if not np.isfinite(targets).all():
        raise ValueError("data must be near a path of the model, but its terms overflow on the way there")
    try:
        path_change, multipliers = solve_path_step(grid, weights, jacobian, gradient, targets, ends)
    except np.linalg.LinAlgError:
        raise ValueError("data must determine the path, but too many values are missing") from None
    at_samples = path_change[grid.samples][present]
    residual = gradient[grid.samples, :, 0][present] - at_samples[:, 0]
    return PathStep(path_change, multipliers, residual, at_samples[:, 1:])


def moves_of(terms: Array, model: Model) -> Array:
    """The change of velocities (nodes, dim, q) per parameter, of terms (nodes, terms)."""
    if model.single_terms is None:
        return np.asarray(np.einsum("nt,kte->nek", terms, model.directions))
    places, factors = model.single_terms
    return np.asarray(np.take(terms, places, axis=1) * factors)


def weights_and_jacobian(
    fitted: FittedPath, model: Model, coefficients: Array, noise: Array
) -> tuple[Array, Array, Array | None]:
    """Which values are present at each node (nodes, dim), and df/dx there (nodes, dim, dim), in units of noise.

    The last: df/dx before inputs jump, where one does.
    """
    series, grid, path = fitted

    def slopes(variables: Array) -> Array:
        every = term_jacobian(model.library, variables)
        return np.asarray(np.einsum("ntd,te->ned", every, coefficients) * noise / noise[:, None])

    weights, before = np.zeros(path.shape), fitted.variables_before(model.library)
    weights[grid.samples] = ~np.isnan(series.values)
    return weights, slopes(fitted.variables(model.library)), None if before is None else slopes(before)


class StateOfPath(NamedTuple):
    """A state of a path given the parameters θ, to first order: N(state + slopes (θ − parameters), root rootᵀ).

    state: (dim,) at ``time``, for the most likely parameters (q,). slopes: (dim, q). root: (dim, dim).
    """

    time: float
    state: Array
    parameters: Array
    slopes: Array
    root: Array

    def draws(self, theta: Array, normals: Array) -> Array:
        """States (n, dim) for parameters ``theta`` (n, q), from standard normals (n, dim)."""
        return np.asarray(self.state + (theta - self.parameters) @ self.slopes.T + normals @ self.root.T)


def state_of_path(fit: WeakFit, model: Model, piece: int, sample: int) -> StateOfPath:
    """The state of a fit's path at a sample of one of its pieces."""
    fitted, noise = fit.paths[piece], fit.noise
    grid, node = fitted.grid, fitted.grid.samples[sample]
    step = path_step(fitted, model, fit.parameters, noise)
    weights, jacobian, ends = weights_and_jacobian(fitted, model, model.coefficients(fit.parameters), noise)
    gradient = np.zeros((*fitted.path.shape, len(noise)))
    gradient[node] = np.eye(len(noise))  # the answer to a pull on a state is its covariance
    targets = np.zeros((len(grid.half_widths), 2, len(noise), len(noise)))
    covariance = solve_path_step(grid, weights, jacobian, gradient, targets, ends)[0][node]
    values, vectors = np.linalg.eigh(0.5 * (covariance + covariance.T))
    root = noise[:, None] * vectors * np.sqrt(np.maximum(values, 0.0))
    slopes = noise[:, None] * step.path_change[node][:, 1:]
    return StateOfPath(float(grid.times[node]), np.array(fitted.path[node]), fit.parameters, slopes, root)


def residual_parts(fit: WeakFit, model: Model, free: Bools) -> list[ResidualPart]:
    """The residuals of a fit for ``data.residuals``, path by path, in units of noise.

    free: (q,), which coefficients count as fitted. The residuals are those at the most likely values of these, to first
    order: at another point, as the mean of draws, they would have a part in common, and so be correlated.
    """
    steps = [path_step(fitted, model, fit.parameters, fit.noise) for fitted in fit.paths]
    precision, slope = normal_equations(steps)
    root = inverse_root(precision[np.ix_(free, free)])
    change = root @ (root.T @ slope[free])
    parts = []
    for fitted, step in zip(fit.paths, steps, strict=True):
        series, present = fitted.series, ~np.isnan(fitted.series.values)
        scores, shared = np.full(present.shape, np.nan), np.zeros((*present.shape, root.shape[1]))
        scores[present] = step.residual - step.design[:, free] @ change
        shared[present] = step.design[:, free] @ root
        scores[:, ~is_resolved(fit)] = np.nan
        own = state_directions(fitted, model, fit)
        parts.append(ResidualPart(series.name, series.times, series.values, scores, shared, own))
    return parts


def is_resolved(fit: WeakFit) -> Bools:
    """Of which states the residuals are errors of the data (dim,), and not of rounding and quadrature alone."""
    counts = sum((~np.isnan(t.series.values)).sum(axis=0) for t in fit.paths)
    sizes = np.sqrt(sum((residuals(t) ** 2).sum(axis=0) for t in fit.paths) / counts)
    return np.asarray(sizes > np.maximum(2.0 * noise_floor(fit.paths), MIN_RESIDUAL * fit.noise))


def state_directions(fitted: FittedPath, model: Model, fit: WeakFit) -> Array:
    """B (n, dim, dim), B Bᵀ the covariance of a path at the samples for given coefficients, in units of noise."""
    weights, jacobian, ends = weights_and_jacobian(fitted, model, model.coefficients(fit.parameters), fit.noise)
    middle, dim = len(fitted.path) // 2, len(fit.noise)
    gradient = np.zeros((*fitted.path.shape, dim))
    gradient[middle] = np.eye(dim)  # the answer to a pull on a state is its covariance with all others
    targets = np.zeros((len(fitted.grid.half_widths), 2, dim, dim))
    covariance = solve_path_step(fitted.grid, weights, jacobian, gradient, targets, ends)[0]
    return np.asarray(covariance[fitted.grid.samples] @ inverse_root(covariance[middle]))


def inverse_root(matrix: Array) -> Array:
    """R (n, rank) with R Rᵀ the inverse of a covariance or precision, without directions lost in rounding."""
    scale = np.sqrt(np.maximum(np.diag(matrix), np.finfo(float).tiny))
    values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T) / np.outer(scale, scale))
    kept = values > MIN_EIGENVALUE
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]) / scale[:, None])


def corrected_path(fitted: FittedPath, model: Model, parameters: Array, noise: Array) -> FittedPath | None:
    """The path after one more step to the conditions, at these parameters; None where there is none."""
    try:
        step = path_step(fitted, model, parameters, noise, with_parameters=False)
    except ValueError:
        return None
    moved = fitted.path + step.path_change[..., 0] * noise
    return fitted._replace(path=moved) if np.isfinite(moved).all() else None


def total_merit(paths: list[FittedPath], problem: WeakProblem, parameters: Array, noise: Array, weight: float) -> float:
    """The merit of all paths with that of the prior; weight: of the defects."""
    parts = [merit_of(t, problem.model, parameters, noise, weight) for t in paths]
    return sum(parts) + problem.penalty(parameters)


def merit_of(fitted: FittedPath, model: Model, parameters: Array, noise: Array, penalty: float) -> float:
    """Half the squared residuals and ``penalty`` × the defects, in units of noise; infinite where terms overflow."""
    with np.errstate(all="ignore"):
        velocities = fitted.velocities(model, model.coefficients(parameters))
        total_defect = np.abs(defects(fitted.grid, fitted.path, *velocities) / noise).sum()
        value = 0.5 * np.sum((residuals(fitted) / noise) ** 2) + penalty * total_defect
    return float(value) if np.isfinite(value) else math.inf


def refine(fitted: FittedPath, substeps: int, model: Model, parameters: Array) -> FittedPath:
    """The same path with more nodes, by cubic Hermite interpolation."""
    velocity, _ = fitted.velocities(model, model.coefficients(parameters))
    spline = scipy.interpolate.CubicHermiteSpline(fitted.grid.times, fitted.path, velocity)
    grid = grid_of(fitted.series.times, substeps)
    return FittedPath(fitted.series, grid, np.asarray(spline(grid.times)))


def best_path(fitted: FittedPath, model: Model, parameters: Array, noise: Array) -> FittedPath | None:
    """The best path of the model near a path, at these parameters; None where none is found."""
    for _ in range(MAX_CORRECTIONS):
        corrected = corrected_path(fitted, model, parameters, noise)
        if corrected is None:
            return None
        change, fitted = np.abs(corrected.path - fitted.path), corrected
        if (change <= CORRECTED * noise).all():
            return fitted
    return None


def misfit_of(fitted: FittedPath, model: Model, parameters: Array, noise: Array) -> float:
    """Half the squared residuals of the best path of the model near a path; infinite where none is found."""
    best = best_path(fitted, model, parameters, noise)
    return math.inf if best is None else float(0.5 * np.sum((residuals(best) / noise) ** 2))
