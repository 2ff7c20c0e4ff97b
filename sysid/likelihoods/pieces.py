"""Pieces of series, as few as make the likelihood of a model's coefficients nearly Gaussian."""

import itertools
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy

from ..arrays import Array, Bools
from ..data.series import Series
from ..model import Model
from .conditions import grid_of
from .path_fit import (
    MIN_EIGENVALUE,
    FittedPath,
    Guess,
    PathStep,
    WeakFit,
    WeakProblem,
    gauss_newton,
    misfit_of,
    path_step,
)
from .term_derivatives import term_jacobian

MAX_GROWTH = 1e4  # of a change at a piece's first sample, in units of the states' spread
MIN_VALUES = 8  # present in each state of a piece
MAX_EXPONENT = 300.0  # of one step, in each entry: beyond, exponentials overflow
MAX_FAILURES = 5  # times in a row that no path was found
N_DRAWS = 8  # at which the likelihood is compared with its quadratic
MAX_DEPARTURE = 0.25  # of the draws' expected energy q/2; three of four draws must have less
ROUGH_DEPARTURE = 4.0  # the same of a first fit, after which another is made near it
MANY_TIMES = 16.0  # a departure so many times its share is met by quarters, not halves
FEW_STEPS = 10  # most fits have converged by then


class Pieces(NamedTuple):
    """Rows of the pieces of each series."""

    rows: list[list[slice]]

    def paths(self, whole: list[FittedPath], substeps: int) -> list[FittedPath]:
        """The paths of whole series in these pieces."""
        return [piece for t, rows in zip(whole, self.rows, strict=True) for piece in cut(t, rows, substeps)]

    def finer(self, whole: list[FittedPath], times_halved: list[int]) -> "Pieces":
        """Each piece halved so many times, as far as its halves hold enough values."""
        halvings, finer = iter(times_halved), []
        for fitted, rows in zip(whole, self.rows, strict=True):
            present, parts = ~np.isnan(fitted.series.values), []
            for row in rows:
                pieces = [row]
                for _ in range(next(halvings)):
                    pieces = [half for piece in pieces for half in halves(piece, present)]
                parts += pieces
            finer.append(parts)
        return Pieces(finer)


def cut(fitted: FittedPath, rows: list[slice], substeps: int) -> list[FittedPath]:
    """A path in pieces of its series."""
    series, grid, path = fitted
    if len(rows) == 1:
        return [fitted]
    pieces = []
    for part in rows:
        piece = replace(series, times=series.times[part], values=series.values[part], velocities=None)
        piece_grid = grid_of(piece.times, substeps)
        columns = [np.interp(piece_grid.times, grid.times, column) for column in path.T]
        pieces.append(FittedPath(piece, piece_grid, np.stack(columns, axis=1)))
    return pieces


def halves(rows: slice, present: Bools) -> list[slice]:
    """The two halves of a piece's rows by number of values, or the piece, where a half would hold too few of a state.

    present: (n, dim), of the whole series.
    """
    inside = np.cumsum(present[rows], axis=0)
    middle = int(np.searchsorted(inside.sum(axis=1), 0.5 * inside[-1].sum())) + 1
    if min(inside[middle - 1].min(), (inside[-1] - inside[middle - 1]).min()) < MIN_VALUES:
        return [rows]
    return [slice(rows.start, rows.start + middle), slice(rows.start + middle, rows.stop)]


def equal_pieces(whole: list[FittedPath], n_pieces: int) -> Pieces:
    """Each series in ``n_pieces`` of as many rows; those without a value of some state are joined to one beside them.

    Raises ValueError where these would hold fewer than two rows.
    """
    rows = []
    for fitted in whole:
        n = len(fitted.series)
        if n < 2 * n_pieces:
            raise ValueError(
                f"pieces must have two rows each: at most {n // 2} of {fitted.series.name!r}, got {n_pieces}"
            )
        ends = np.linspace(0, n, n_pieces + 1).round().astype(np.int64).tolist()
        rows.append(with_every_state([slice(a, b) for a, b in itertools.pairwise(ends)], fitted.series))
    return Pieces(rows)


def with_every_state(rows: list[slice], series: Series) -> list[slice]:
    """Pieces joined to the next, or the last to the one before, until each has a value of every state."""
    measured, joined, begin = ~np.isnan(series.values), [], rows[0].start
    for piece in rows:
        if measured[begin : piece.stop].any(axis=0).all():
            joined.append(slice(begin, piece.stop))
            begin = piece.stop
    if begin < rows[-1].stop:  # the rest lacks a state
        joined[-1] = slice(joined[-1].start, rows[-1].stop)
    return joined


def first_pieces(whole: list[FittedPath], model: Model, parameters: Array) -> Pieces:
    """Pieces that end where a change of their first state would have grown by MAX_GROWTH with these parameters.

    Beyond, Gauss–Newton steps seldom converge.
    """
    spread = np.nanstd(np.concatenate([fitted.series.values for fitted in whole]), axis=0)
    spread = np.where(spread > 0.0, spread, 1.0)
    coefficients, rows = model.coefficients(parameters), []
    for fitted in whole:
        series, at_samples = fitted.series, fitted.variables(model.library)[fitted.grid.samples]
        jacobian = np.einsum("ntd,te->ned", term_jacobian(model.library, at_samples), coefficients)
        present = ~np.isnan(series.values)
        rows.append(rows_by_growth(series.times, present, jacobian * spread / spread[:, None]))
    return Pieces(rows)


def rows_by_growth(times: Array, present: Bools, jacobian: Array) -> list[slice]:
    """Rows of a series' first pieces, each with MIN_VALUES values of every state or more.

    times: (n,). present: (n, dim), whether a value was measured. jacobian: df/dx (n, dim, dim) at the samples, of
    states in units of their spread.
    """
    n, dim = present.shape
    steps = np.diff(times)[:, None, None] * 0.5 * (jacobian[1:] + jacobian[:-1])
    change = scipy.linalg.expm(np.clip(np.nan_to_num(steps), -MAX_EXPONENT, MAX_EXPONENT))
    counts = np.concatenate([np.zeros((1, dim)), np.cumsum(present, axis=0)])  # of rows before
    starts, response = [0], np.eye(dim)
    for k in range(n - 2):
        if k < starts[-1]:  # between two pieces
            response = np.eye(dim)
            continue
        with np.errstate(all="ignore"):
            response = change[k] @ response  # of sample k + 1 to the piece's first
            growth = np.abs(response).max()
        if not growth <= MAX_GROWTH and (counts[k + 2] - counts[starts[-1]]).min() >= MIN_VALUES:
            starts.append(k + 2)
    if len(starts) > 1 and (counts[n] - counts[starts[-1]]).min() < MIN_VALUES:
        starts.pop()
    return [slice(a, b) for a, b in itertools.pairwise([*starts, n])]


def gaussian_offsets(precision: Array) -> Array:
    """Draws (N_DRAWS, q) of a normal about 0."""
    normals = np.random.default_rng(0).standard_normal((N_DRAWS, len(precision)))
    scale = 1.0 / np.sqrt(np.diag(precision))
    correlations = precision * scale * scale[:, None]
    try:
        root = np.linalg.cholesky(correlations)
    except np.linalg.LinAlgError:  # a prior is lost in rounding beside precise data
        root = np.linalg.cholesky(correlations + MIN_EIGENVALUE * np.eye(len(scale)))
    return np.asarray(scipy.linalg.solve_triangular(root, normals.T, lower=True, trans="T").T * scale)


def departures(fit: WeakFit, steps: Iterable[PathStep], model: Model, offsets: Array) -> Array:
    """By how much −log likelihood departs from its quadratic at draws of the coefficients: (draws, pieces), in nats.

    Infinite where no path is found.
    steps: of the paths at the coefficients of the fit. offsets: (draws, q), of the draws from these coefficients.
    """
    out = np.empty((len(offsets), len(fit.paths)))
    for k, (fitted, step) in enumerate(zip(fit.paths, steps, strict=True)):
        lowest = misfit_of(fitted, model, fit.parameters, fit.noise)
        for i, offset in enumerate(offsets):
            moved = step.design @ offset
            expected = float(lowest + 0.5 * moved @ moved - step.residual @ moved)
            out[i, k] = abs(misfit_of(fitted, model, fit.parameters + offset, fit.noise) - expected)
    return np.where(np.isnan(out), np.inf, out)  # neither has a path


def of_most(departed: Array) -> Array:
    """What three of four draws do not exceed, the draws along the first axis."""
    return np.asarray(np.quantile(departed, 0.75, axis=0, method="lower"))


class Candidate(NamedTuple):
    """A fit, and by how much −log likelihood departs from its quadratic: (draws, pieces), in nats."""

    fit: WeakFit
    departed: Array

    @property
    def total(self) -> float:
        """The departure of all pieces, at three of four draws."""
        return float(of_most(self.departed.sum(axis=1)))


def candidate_from(guess: Guess, problem: WeakProblem, iterations: int, limit: float) -> Candidate:
    """The fit from a guess; one that departs by more than ``limit`` after FEW_STEPS is left there.

    Raises ValueError where no path is found.
    """
    fit = gauss_newton(guess, problem, min(FEW_STEPS, iterations))
    if fit.last_step > 0.0 and iterations > FEW_STEPS:
        candidate = compared(fit, problem)
        if candidate.total > limit:
            return candidate
        fit = gauss_newton(fit.guess, problem, iterations - FEW_STEPS)
    return compared(fit.check(iterations), problem)


def compared(fit: WeakFit, problem: WeakProblem) -> Candidate:
    """A fit beside its quadratic, at draws from it."""
    problem.tell(fit.lowest)
    offsets = gaussian_offsets(fit.precision + np.diag(problem.prior_precision))
    steps = (path_step(t, problem.model, fit.parameters, fit.noise) for t in fit.paths)
    return Candidate(fit, departures(fit, steps, problem.model, offsets))


def fit_in_pieces(
    guess: Guess, pieces: Pieces, problem: WeakProblem, iterations: int, substeps: int
) -> tuple[WeakFit, bool]:
    """The fit of as few pieces as make the likelihood nearly quadratic, and whether it is.

    Of each fit, −log likelihood is compared with its quadratic at draws from it, the paths fitted anew; pieces that
    depart by more than their share are halved. Where no path is found all pieces are halved. If no cut is fine enough
    it is the fit that departs least.
    guess: paths of whole series, parameters and noise, from which every fit begins.
    Raises ValueError where no pieces give a path.
    """
    whole, parameters, noise = guess
    limit, failures = problem.max_departure * 0.5 * len(parameters), 0
    best, failure = None, None
    while failures < MAX_FAILURES:
        paths = pieces.paths(whole, substeps)
        try:
            candidate = candidate_from((paths, parameters, noise), problem, iterations, limit)
        except ValueError as error:
            failure, failures = error, failures + 1
            halvings = [1] * len(paths)
        else:
            failures = 0
            if candidate.total <= limit:
                return candidate.fit, True
            if best is None or candidate.total < best.total:
                best = candidate
            halvings = halvings_of(candidate.departed, limit)
        finer = pieces.finer(whole, halvings)
        if finer == pieces:
            break
        pieces = finer
    if best is None:
        raise failure or AssertionError
    fit = best.fit
    if fit.last_step > 0.0:
        fit = gauss_newton(fit.guess, problem, iterations).check(iterations)
    return fit, False


def halvings_of(departed: Array, limit: float) -> list[int]:
    """How often each piece is to be halved that departs (draws, pieces) by more than its share of ``limit``."""
    excess = of_most(departed) / (limit / departed.shape[1])
    excess = np.maximum(excess, 2.0 * (departed.max(axis=0) >= departed.max()))
    return [1 + int(e > MANY_TIMES) if e > 1.0 else 0 for e in excess]
