"""From data to a sparse posterior, with the weak likelihood's quadratic where that posterior is."""

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy

from toolkit.errors import warn_user

from ..arrays import Array
from ..data.gaps import parts_of
from ..data.residuals import ResidualPart
from ..data.series import Series
from ..likelihoods.conditions import grid_of
from ..likelihoods.path_fit import (
    FittedPath,
    PathStep,
    StateOfPath,
    WeakFit,
    WeakProblem,
    best_path,
    combined,
    negative_log,
    noise_floor,
    noise_of,
    normal_equations,
    path_step,
    residual_parts,
    state_of_path,
)
from ..likelihoods.pieces import (
    MAX_DEPARTURE,
    MIN_VALUES,
    N_DRAWS,
    Candidate,
    departures,
    equal_pieces,
    first_pieces,
    halvings_of,
)
from ..likelihoods.smoothing import smooth
from ..likelihoods.start_search import SearchProgress
from ..likelihoods.velocity import least_squares
from ..likelihoods.weak_form import Weak, attempt, warn_of_fit, weak_problem
from ..model import Model
from ..priors import Prior
from ..sparsity import SLAB, Sparse, check_finite_scales, natural_scales, sparse_posterior, sparse_prior, term_degrees

PRESENT = 0.5  # probability from which a term is in the equations (Barbieri & Berger 2004)
MAX_ROUNDS = 8  # of a sparse posterior and the likelihood near it
SWEEPS_OF_ROUNDS = 300  # of all sparse posteriors but the last
SETTLED = 0.3  # change of the mean in the last round, RMS, in standard deviations of the coefficients
FEWER = 0.7  # of the pieces: so few of those before make another round worth while
SHORT_PIECES = 16  # of each series, that a sparse posterior is compared with
UNLIKELY = 0.01  # probability of short pieces that disagree as much: another start is tried
CONTRADICTED = 1e-6  # the same after it: a warning


class Path(NamedTuple):
    """The ends of the first series: states without noise, as the likelihood or a smoother has them."""

    first: StateOfPath
    last: StateOfPath


class Law(NamedTuple):
    """What the sparse posterior needs of a likelihood."""

    names: tuple[str, ...]
    quadratic: tuple[Array, Array, float]


class SparseFit(NamedTuple):
    """A sparse posterior, its priors, the likelihood's quadratic near it, ends of the path, noise where it is known.

    parts: residuals about the path, where there is one.
    """

    sparse: Sparse
    priors: dict[str, Prior]
    law: Law
    path: Path
    noise: Array | None
    parts: tuple[ResidualPart, ...] = ()


class Settings(NamedTuple):
    """Of sparse posteriors: prior probability of a term or None, sweeps, seed, whether there is a bar.

    None: unknown, one for the terms of each degree. search: shows the search for paths, and ends it after its limit.
    """

    inclusion: float | None = None
    sweeps: int = 1000
    seed: int = 0
    progress: bool | None = None
    search: SearchProgress | None = None

    def posterior(self, law: Law, scales: Array, model: Model) -> tuple[Sparse, dict[str, Prior]]:
        """The sparse posterior of a likelihood and its priors."""
        groups, inclusion = (term_degrees(model), 0.5) if self.inclusion is None else (None, self.inclusion)
        priors = sparse_prior(law, scales, inclusion=inclusion)  # whose rate groups replace
        sparse = sparse_posterior(
            law, priors, groups=groups, sweeps=self.sweeps, seed=self.seed, progress=self.progress
        )
        return sparse, priors


def sparse_fit(likelihood: Any, data: list[Series], model: Model, settings: Settings) -> SparseFit:
    """The sparse posterior of all coefficients of ``model``, by the weak or the derivative likelihood.

    Series are cut at their gaps.
    """
    given, ends_of = data, parts_of(data[0])
    data = [*ends_of, *(part for series in data[1:] for part in parts_of(series))]
    scales = natural_scales(data, model)
    check_finite_scales(scales, model.parameters)
    if isinstance(likelihood, Weak):
        return sparse_weak_fit(likelihood, data, model, scales, settings, float(ends_of[-1].times[-1]))
    prepared = likelihood.prepare(given, model)
    law = Law(prepared.names, prepared.quadratic)
    q, dim = len(model.parameters), len(model.states)
    ends = []
    for part, k in ((ends_of[0], 0), (ends_of[-1], -1)):
        state = smooth(part, part.times)[0][k]
        ends.append(StateOfPath(float(part.times[k]), state, np.zeros(q), np.zeros((dim, q)), np.zeros((dim, dim))))
    return SparseFit(*settings.posterior(law, scales, model), law, Path(*ends), None)


def sparse_weak_fit(
    likelihood: Weak, data: list[Series], model: Model, scales: Array, settings: Settings, last_time: float
) -> SparseFit:
    """The same by the weak likelihood, whose quadratic is taken anew where the sparse posterior is, until that settles.

    With all coefficients free the most likely ones can be far from the truth, beyond where −log likelihood is
    quadratic, and the series are cut into many pieces for the widest of their combinations. The sparse posterior is
    nearer and narrower: at its mean −log likelihood has another quadratic, and its draws need fewer pieces.
    Where short pieces of the data do not agree with what it settles on, that is a local maximum: it starts again from
    the fit of short pieces, and takes what is more probable. last_time: at which the first series ends.
    """
    problem = weak_problem(likelihood, data, model, SLAB * scales)._replace(progress=settings.search)
    quick = settings._replace(sweeps=min(SWEEPS_OF_ROUNDS, settings.sweeps))
    found = settled(attempt(likelihood, data, problem), data, problem, scales, quick, likelihood.pieces)
    if likelihood.pieces is None and not (found.is_quadratic and agreement(found, data, problem) >= UNLIKELY):
        found = from_short_pieces(likelihood, data, problem, scales, quick, found)
        warn_of_disagreement(agreement(found, data, problem))
    fit, is_quadratic, law, sparse, priors = found
    warn_of_fit(fit, data, problem, is_quadratic)
    warn_of_open(fit, problem)
    times = data[0].times
    first = next(k for k, part in enumerate(fit.paths) if part.series.times[0] == times[0])
    last = next(k for k, part in enumerate(fit.paths) if part.series.times[-1] == last_time)
    path = Path(state_of_path(fit, model, first, 0), state_of_path(fit, model, last, -1))
    if settings != quick:
        sparse, priors = settings.posterior(law, scales, model)
    parts = residual_parts(fit, model, sparse.inclusion >= PRESENT)
    return SparseFit(sparse, priors, law, path, fit.noise, tuple(parts))


def n_present_of(sparse: Sparse) -> float:
    """Coefficients that are present, on average; 1 at least."""
    return max(float(sparse.inclusion.sum()), 1.0)


class Settled(NamedTuple):
    """A sparse posterior, its priors, the fit near its mean, and whether −log likelihood is nearly quadratic there."""

    fit: WeakFit
    is_quadratic: bool
    law: Law
    sparse: Sparse
    priors: dict[str, Prior]

    @property
    def schwarz(self) -> float:
        """Schwarz's approximation of −log evidence, of coefficients and the first states of all pieces."""
        fit = self.fit
        n_rows = sum(len(path.series) for path in fit.paths)
        return fit.lowest + 0.5 * (n_present_of(self.sparse) + len(fit.noise) * len(fit.paths)) * math.log(n_rows)


def settled(
    start: tuple[WeakFit, bool],
    data: list[Series],
    problem: WeakProblem,
    scales: Array,
    settings: Settings,
    n_pieces: int | None,
) -> Settled:
    """What sparse posterior and likelihood near its mean settle on, from a fit of all coefficients.

    n_pieces: equal parts of each series, where told.
    """
    model = problem.model
    fit, is_quadratic = start
    law = Law(model.parameters, fit.quadratic)
    sparse, priors = settings.posterior(law, scales, model)
    for number in range(1, MAX_ROUNDS + 1):
        problem.begin_stage(f"round {number} of the sparse posterior, of at most {MAX_ROUNDS}")
        try:
            near = fit_near(fit, data, problem, sparse, n_pieces)
        except TimeoutError as error:
            warn_user(f"discover: {error}. The equations are those of the round before")
            is_quadratic = False
            break
        if near is None:  # what there is of a quadratic does not hold at the mean of its own posterior
            is_quadratic = False
            break
        n_before, before = len(fit.paths), sparse
        fit, is_quadratic = near
        law = Law(model.parameters, fit.quadratic)
        sparse, priors = settings.posterior(law, scales, model)
        shift = (sparse.draws.mean(axis=0) - before.draws.mean(axis=0)) / before.draws.std(axis=0)
        if len(fit.paths) > FEWER * n_before and np.sqrt(np.mean(shift**2)) <= SETTLED:
            break
    else:  # nearly quadratic at draws of the posterior before, which is another
        is_quadratic = False
    return Settled(fit, is_quadratic, law, sparse, priors)


def agreement(found: Settled, data: list[Series], problem: WeakProblem) -> float:
    """The probability of short pieces of the data that disagree as much with the mean of a sparse posterior, or more.

    By the score test (Rao 1948): where these coefficients are right, the slope of −log likelihood there, in units of
    its standard deviations, is χ² of all coefficients. Under much noise a wrong path can follow long pieces. 1 where
    series are too short for such pieces, or where no path is found.
    """
    whole = whole_paths(found.fit, data)
    if min(len(t.series) for t in whole) < MIN_VALUES * SHORT_PIECES:
        return 1.0
    paths = equal_pieces(whole, SHORT_PIECES).paths(whole, substeps_of(found.fit.paths))
    try:
        there = fit_at(paths, problem, found.sparse.draws.mean(axis=0), found.fit.noise, n_present_of(found.sparse))
    except ValueError:  # terms that overflow, or values too few for short pieces
        return 1.0
    if not isinstance(there, FitAt):
        return 1.0
    slope = there.fit.descent
    pull = float(slope @ least_squares(there.fit.precision + np.diag(problem.prior_precision), slope))
    return float(scipy.special.chdtrc(len(slope), pull))


def from_short_pieces(
    likelihood: Weak, data: list[Series], problem: WeakProblem, scales: Array, settings: Settings, found: Settled
) -> Settled:
    """What is settled on from the fit of short pieces, if it is more probable than what was found; else that."""
    try:
        start = attempt(replace(likelihood, pieces=SHORT_PIECES), data, problem)
        other = settled(start, data, problem, scales, settings, None)
    except (ValueError, TimeoutError):  # no path is found from there
        return found
    return other if other.schwarz < found.schwarz else found


def fit_near(
    fit: WeakFit, data: list[Series], problem: WeakProblem, sparse: Sparse, n_pieces: int | None
) -> tuple[WeakFit, bool] | None:
    """The likelihood at a sparse posterior's mean, and whether it is nearly quadratic at draws of that posterior.

    Series are cut into as few pieces as make it so; if none do it is the cut that departs least, and where no path is
    found at these coefficients, None. n_pieces: equal parts of each series, where told.
    """
    model, centre = problem.model, sparse.draws.mean(axis=0)
    whole = whole_paths(fit, data)
    substeps = substeps_of(fit.paths)
    rows = np.linspace(0, len(sparse.draws) - 1, N_DRAWS).astype(np.int64)
    offsets = sparse.draws[rows] - centre
    n_present = n_present_of(sparse)
    limit = MAX_DEPARTURE * 0.5 * n_present
    pieces = first_pieces(whole, model, centre) if n_pieces is None else equal_pieces(whole, n_pieces)
    best: Candidate | None = None
    while True:
        problem.tell(np.inf)
        paths = pieces.paths(whole, substeps)
        found = fit_at(paths, problem, centre, fit.noise, n_present)
        if isinstance(found, FitAt):
            candidate = Candidate(found.fit, departures(*found, model, offsets))
            if best is None or candidate.total < best.total:
                best = candidate
            if candidate.total <= limit:
                break
            halvings = halvings_of(candidate.departed, limit)
        else:
            halvings = found
        finer = pieces.finer(whole, halvings)
        if finer == pieces or n_pieces is not None:
            break
        pieces = finer
    return None if best is None else (best.fit, best.total <= limit)


class FitAt(NamedTuple):
    """A fit at given coefficients, and the steps of its paths there."""

    fit: WeakFit
    steps: list[PathStep]


def fit_at(
    paths: list[FittedPath], problem: WeakProblem, parameters: Array, noise: Array, n_present: float
) -> FitAt | list[int]:
    """The best paths at given coefficients, with noise and quadratic there; else how often to halve each piece."""
    model = problem.model
    freedom = n_present / len(noise) + len(paths)
    for _ in range(2):  # the noise follows from the paths, which follow from it weakly
        found = [best_path(t, model, parameters, noise) for t in paths]
        there = [t for t in found if t is not None]
        if len(there) < len(found):
            return [int(t is None) for t in found]
        if problem.known_noise is None:
            try:
                noise = np.maximum(noise_of(there, freedom), noise_floor(there))
            except ValueError:  # more pieces than the values determine: no finer ones
                return [0] * len(paths)
        paths = there
    steps = [path_step(t, model, parameters, noise) for t in paths]
    precision, gradient = normal_equations(steps)
    return FitAt(WeakFit(parameters, precision, noise, paths, negative_log(paths, noise), 0.0, gradient), steps)


def whole_paths(fit: WeakFit, data: list[Series]) -> list[FittedPath]:
    """The pieces of a fit joined to one path for each series; straight from the last sample of one to the next."""
    left, whole = iter(fit.paths), []
    for series in data:
        parts = [next(left)]
        while parts[-1].series.times[-1] < series.times[-1]:
            parts.append(next(left))
        if len(parts) == 1:
            whole.append(parts[0])
            continue
        rows = [np.concatenate([getattr(part.series, name) for part in parts]) for name in ("times", "values")]
        joined = replace(parts[0].series, times=rows[0], values=rows[1])
        grid = grid_of(joined.times, substeps_of(parts))
        times = np.concatenate([part.grid.times for part in parts])
        columns = [np.interp(grid.times, times, column) for column in np.concatenate([part.path for part in parts]).T]
        whole.append(FittedPath(joined, grid, np.stack(columns, axis=1)))
    return whole


def substeps_of(paths: list[FittedPath]) -> int:
    """Steps of the grid between two samples, the fewest."""
    return int(min(np.diff(fitted.grid.samples).min() for fitted in paths))


def warn_of_disagreement(probability: float) -> None:
    """Warn where short pieces of the data contradict what was found."""
    if probability < CONTRADICTED:
        warn_user(
            f"discover: {SHORT_PIECES} pieces of the data, each followed by itself, contradict the equations found "
            f"(probability {probability:.1g}): the library may lack terms, or errors are not independent and Gaussian. "
            "Give another library, or closer or less noisy data",
        )


def warn_of_open(fit: WeakFit, problem: WeakProblem) -> None:
    """Warn where data leave combinations of coefficients to the prior."""
    alike = combined(fit.precision, problem.model.parameters, every=True)
    if alike:
        warn_user(
            f"discover: the data leave combinations of {alike} open, so which of these terms are there is decided by "
            "the prior: give other data of the system, or leave out terms",
        )
