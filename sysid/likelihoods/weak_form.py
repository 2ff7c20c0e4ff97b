"""The weak likelihood: coefficients of noisy states by the equations' integrals, without derivatives of data."""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from targets.posteriors.quadratic import quadratic_numbers, use_quadratic
from toolkit.errors import check_array, check_count, check_instance, shown, warn_user

from ..arrays import Array
from ..data.gaps import parts_of
from ..data.residuals import residual_check
from ..data.series import Series, with_times
from ..model import Model, as_model
from ..systems.inputs import NO_INPUTS, knots_of
from .causes import causes_named
from .conditions import grid_of
from .interface import NoValues, Prepared
from .path_fit import (
    FittedPath,
    Guess,
    WeakFit,
    WeakProblem,
    check_distinct,
    gauss_newton,
    held_inputs,
    noise_floor,
    noise_of,
    refine,
    residual_parts,
    state_of_path,
)
from .pieces import MAX_DEPARTURE, ROUGH_DEPARTURE, equal_pieces, first_pieces, fit_in_pieces
from .smoothing import smooth
from .start_search import SearchProgress
from .term_derivatives import check_term_derivatives
from .velocity import check_data, least_squares

__all__ = ["Weak", "weak"]

JOINT = NoValues(
    "weak fits its path to all values together, so that they are not independent given the coefficients: take "
    "likelihood='trajectory' on the same model, as on that of discover"
)
MAX_NODES = 300_000  # times states: some 3 GiB of band
SUBSTEP_TOLERANCE = 0.1  # of a standard deviation: largest change when the steps are halved
MAX_SUBSTEPS = 64
MAX_NOISE_SHARE = 0.85  # of a state's spread: more noise leaves less than a quarter of its variance


def initial_guess(data: list[Series], problem: WeakProblem, substeps: int) -> Guess:
    """Smoothed paths, least-squares coefficients of their velocities, and the noise that was smoothed away."""
    model = problem.model
    q = len(model.parameters)
    gram, cross, paths, all_terms, all_velocities = np.zeros((q, q)), np.zeros(q), [], [], []
    for series in data:
        if len(series) * substeps * len(model.states) > MAX_NODES:
            raise ValueError(f"data must have at most {MAX_NODES:.0e} values, got {shown(series)}: average or thin it")
        grid = grid_of(series.times, substeps)
        path, velocities = smooth(series, grid.times)
        paths.append(FittedPath(series, grid, path))
        variables = paths[-1].variables(model.library)
        all_terms.append(check_array("the library's terms", model.library.evaluate(variables)))
        check_term_derivatives(model.library, variables)
        all_velocities.append(velocities)
    speed = np.sqrt(np.mean(np.concatenate(all_velocities) ** 2, axis=0))
    speed[speed == 0.0] = 1.0
    for terms, velocities in zip(all_terms, all_velocities, strict=True):
        design = np.einsum("nt,kte->nek", terms, model.directions) / speed[:, None]
        gram += np.einsum("nek,nel->kl", design, design)
        cross += np.einsum("nek,ne->k", design, (velocities - terms @ model.constant) / speed)
    if not problem.prior_precision.all():
        check_distinct(gram, model.parameters)
    noise = noise_of(paths, 0) if problem.known_noise is None else problem.known_noise
    return paths, least_squares(gram, cross), np.maximum(noise, noise_floor(paths))


@dataclass(frozen=True)
class Weak:
    """See ``weak``."""

    noise: tuple[float, ...] | None
    substeps: int | None
    iterations: int
    pieces: int | None

    def prepare(self, data: Any, model: Any, progress: SearchProgress | None = None) -> Prepared:
        """The Gaussian likelihood of the coefficients of ``model``, a System, Library or Model, at ``data``.

        progress: shows the search, and raises TimeoutError after its limit; None: it is not shown, and has no limit.
        """
        check_progress_of_search(progress)
        given = check_data(data, as_model(model), model)
        model = as_model(model)
        parts = [parts_of(series) for series in given]
        fit = self._fit([part for each in parts for part in each], model, progress)
        quadratic = mean, precision, lowest = fit.parameters, fit.precision, fit.lowest
        numbers = quadratic_numbers(mean, precision, lowest)
        return Prepared(
            model.parameters, use_quadratic, numbers, 0, (False,) * len(mean), mean, quadratic=quadratic, values=JOINT,
            first_states=tuple(state_of_path(fit, model, k, 0) for k in first_paths(fit, parts)),
            residual_check=residual_check(model.states, residual_parts(fit, model, np.ones(len(mean), np.bool_))),
        )  # fmt: skip

    def fit(self, data: list[Series], model: Model, progress: SearchProgress | None = None) -> WeakFit:
        """The most likely coefficients and paths, with steps between samples halved until they change no more.

        Series are cut at their gaps.
        """
        check_instance("model", model, Model)
        check_progress_of_search(progress)
        parts = [part for series in check_data(data, model) for part in parts_of(series)]
        return self._fit(parts, model, progress)

    def _fit(self, data: list[Series], model: Model, progress: SearchProgress | None) -> WeakFit:
        """The fit of series without gaps."""
        problem = weak_problem(self, data, model)._replace(progress=progress)
        with nullcontext() if progress is None else progress.display():
            fit, is_quadratic = attempt(self, data, problem)
        warn_of_fit(fit, data, problem, is_quadratic)
        return fit


def check_progress_of_search(progress: Any) -> None:
    """Raise TypeError where ``progress`` is neither None nor shows a search."""
    if progress is not None:
        check_instance("progress", progress, SearchProgress)


def first_paths(fit: WeakFit, data: list[list[Series]]) -> Iterator[int]:
    """Number of the path with which each series, a list of parts, begins; its paths follow each other to its end."""
    paths = enumerate(fit.paths)
    for parts in data:
        number, path = next(paths)
        yield number
        while path.series.times[-1] != parts[-1].times[-1]:
            _, path = next(paths)


def weak_problem(likelihood: Weak, data: list[Series], model: Model, prior_sds: Array | None = None) -> WeakProblem:
    """What is fitted. prior_sds: (q,), of a normal about 0, for a first, rough fit; None: flat."""
    known = known_noise(likelihood, data)
    if prior_sds is None:
        return WeakProblem(model, known, np.zeros(len(model.parameters)), MAX_DEPARTURE)
    return WeakProblem(model, known, prior_sds**-2.0, ROUGH_DEPARTURE)


def known_noise(likelihood: Weak, data: list[Series]) -> Array | None:
    """Standard deviations of the noise (dim,), where they are given."""
    if likelihood.noise is not None:
        dim = len(data[0].states)
        if len(likelihood.noise) not in (1, dim):
            raise ValueError(f"noise must be one or one per state, {dim}, got {len(likelihood.noise)}")
        return np.resize(np.array(likelihood.noise), dim)
    noises = [series.noise for series in data if series.noise is not None]
    return np.sqrt(np.mean(np.square(noises), axis=0)) if len(noises) == len(data) else None


def attempt(likelihood: Weak, data: list[Series], problem: WeakProblem) -> tuple[WeakFit, bool]:
    """The most probable coefficients and paths, and whether the likelihood is nearly Gaussian; warns of nothing."""
    model = problem.model
    held = [held_inputs(series, model.library) for series in data]
    substeps = (2 if any(held) else 1) if likelihood.substeps is None else likelihood.substeps
    if any(held) and substeps < 2:
        raise ValueError(f"substeps must be 2 or more where inputs are held, got {substeps}")
    data = [  # a window of the conditions ends where an input jumps, since there is a node
        with_times(series, knots_of(series.inputs or NO_INPUTS, names)) if names else series
        for series, names in zip(data, held, strict=True)
    ]
    problem.begin_stage("the smoothed paths")
    problem.tell(np.inf)
    with causes_named(data):
        guess = initial_guess(data, problem, substeps)
        whole, parameters, _ = guess
        problem.begin_stage("the fit of all terms")
        if likelihood.pieces is None:
            first = first_pieces(whole, model, parameters)
            fit, is_quadratic = fit_in_pieces(guess, first, problem, likelihood.iterations, substeps)
        else:
            paths = equal_pieces(whole, likelihood.pieces).paths(whole, substeps)
            fit = gauss_newton((paths, *guess[1:]), problem, likelihood.iterations).check(likelihood.iterations)
            is_quadratic = True
        while likelihood.substeps is None and substeps < MAX_SUBSTEPS:
            substeps *= 2
            if max(len(s) for s in data) * substeps * len(model.states) > MAX_NODES:
                break
            problem.begin_stage(f"the fit with {substeps} steps between samples")
            refined = [refine(path, substeps, model, fit.parameters) for path in fit.paths]
            coarse, finer = fit, (refined, fit.parameters, fit.noise)
            fit = gauss_newton(finer, problem, likelihood.iterations).check(likelihood.iterations)
            change = fit.parameters - coarse.parameters
            total = fit.precision + np.diag(problem.prior_precision)
            if change @ total @ change <= SUBSTEP_TOLERANCE**2 * len(change):
                break
    return fit, is_quadratic


def warn_of_fit(fit: WeakFit, data: list[Series], problem: WeakProblem, is_quadratic: bool) -> None:
    """Warn where noise found leaves next to nothing of a state, or else where the likelihood is not nearly Gaussian."""
    if not (problem.known_noise is None and warn_of_noise(fit, data)) and not is_quadratic:
        warn_user(
            "weak: the likelihood is not nearly Gaussian in any pieces of the data that were tried: joint intervals "
            "may be too narrow. Give closer samples, fewer terms, or more data",
        )


def warn_of_noise(fit: WeakFit, data: list[Series]) -> bool:
    """Warn where the noise found is almost all of a state's spread: a wrong path, or too much noise; whether it is."""
    spread = np.nanstd(np.concatenate([series.values for series in data]), axis=0)
    lost = np.flatnonzero((fit.noise > MAX_NOISE_SHARE * spread) & (spread > 0.0))
    if lost.size:
        state = data[0].states[lost[0]]
        warn_user(
            f"weak: noise of {state!r} is estimated as {fit.noise[lost[0]]:.3g}, of a spread of {spread[lost[0]]:.3g}: "
            "the path found is not that of the data, or there is too much noise. Give noise, closer samples or another "
            "model",
        )
    return bool(lost.size)


def weak(
    *,
    noise: float | Sequence[float] | None = None,
    substeps: int | None = None,
    iterations: int = 40,
    pieces: int | None = None,
) -> Weak:
    """States with independent Gaussian errors of a path that obeys the integrated equations in every window.

    The equations hold in weak form, for a box and a Haar step on each window of three nodes, so that no data are
    differentiated. Path and coefficients are found together, by Gauss–Newton steps on
    Σ (y − x)² / (2 noise²) under all conditions, and the path is eliminated to first order: its covariance under the
    conditions weights the coefficients. No term is evaluated at noisy states, so no bias has to be corrected.
    noise: standard deviation of the states' errors, one or one per state; None: ``Series.noise``, else estimated from
    the residuals, by which it is plugged in. substeps: steps between two samples, a power of 2; None: as many as it
    takes that halving them moves the mean by less than 0.1 standard deviations. iterations: at most so many steps.
    pieces: equal parts that each series is cut into, whose paths do not join; None: as few as make the likelihood
    nearly Gaussian, wherever it is not. A path that magnifies small changes answers to the coefficients linearly for a
    while only: in one piece the Gaussian of a long chaotic series is far too narrow, or no path is found.
    Missing values and uneven times are no approximation: a missing value weighs 0. A series is cut at gaps longer than
    its states can be interpolated over, which ``data.check`` names: its parts are fitted as so many series. Several
    series share coefficients and noise.
    Law: the quadratic of the profile likelihood at its maximum; exact for exact quadrature, as noise → 0. At draws from
    it, −log likelihood is compared with the quadratic: at three of four it departs by less than q/8 nats.
    Lorenz, 5,001 samples, all 30 coefficients free: 90 % intervals hold 88 to 90 % of them at 1, 5 and 10 % noise
    (docs/identification_weak.md, with what holds and where it ends). Test functions on noisy states, as WENDy has them,
    need a correction of bias and lose what is between the windows.
    Warns where the noise found leaves next to nothing of a state, and where no pieces make it nearly Gaussian.
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
    if pieces is not None:
        pieces = check_count("pieces", pieces, at_least=1, below=2**20)
    return Weak(noise, substeps, check_count("iterations", iterations, at_least=1, below=10**4), pieces)
