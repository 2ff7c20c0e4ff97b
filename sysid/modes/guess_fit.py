"""The fit from the guess: least squares from the usual parameters, which the result of a search must not exceed.

A search for start values smooths the data first, and so has no good start for states that are not measured. The fit
from the guess needs no smoothing: it moves the one solution at the usual parameters and the system's start to the data,
by the trust-region method of Levenberg and Marquardt on standardised residuals with a row for each Gaussian or
log-normal prior, then by Newton steps on the energy itself.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy
from numba import types

from toolkit._compiler import FLOATS, MATRIX, compile_part
from toolkit.errors import warn_user

from ..arrays import Array, Bools, Integers
from ..priors import GAUSSIAN, LOG_NORMAL, Prior, add_priors, prior_table
from .laplace import descend

MOST_EVALUATIONS = 100  # of the residuals, in a least-squares fit
N_ITERATIONS = 60  # of the Newton steps after it
DIFFERENCE = 1e-6  # of a parameter's scale: forward differences of residuals, right to some 1e-6 of their slope
SAME_ENERGY = 1e-3  # nats: two searches that end so near each other found the same minimum, up to their tolerances
MOST_LOGARITHM = 300.0

LawsOf = Callable[[tuple[str, ...]], tuple[Prior, ...]]
Count = Callable[[Array], None]


class FittedEnergy(Protocol):
    """The energy of data as a function of θ, with residuals where its errors are normal about one solution."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of θ (q,)."""

    @property
    def positive(self) -> tuple[bool, ...]:
        """Which θ must be > 0."""

    @property
    def numbers(self) -> Array:
        """The data and what else the kernel reads."""

    @property
    def scale_rows(self) -> Integers | None:
        """The row of θ with the standard deviation of each value (values,), −1 where known; None: no residuals."""

    def residuals(self, theta: Array) -> Array:
        """Residuals (n, values) in standard deviations at ``theta`` (n, q); nan where there is no solution."""

    def evaluate(self, theta: Array) -> tuple[Array, Array]:
        """Energy (n,) and dU/dθ (n, q) at ``theta`` (n, q)."""


class Guesses(NamedTuple):
    """Where fits begin: the energy, some θ (q,), and soft lower limits (q,) of θ."""

    energy: Any
    thetas: Sequence[Array]
    floor: Array


class SearchFromGuess(Protocol):
    """A search for start values."""

    def guesses(self) -> Guesses:
        """Where fits begin."""

    def settled(self, guesses: Guesses, theta: Array) -> tuple[Any, Array]:
        """The final energy function and θ, from the θ (q,) of a fit. Raises ValueError where no steps suit it."""

    def run(self) -> tuple[Any, Array]:
        """The energy function and the θ that the search finds."""


class Fit(NamedTuple):
    """An energy function, a θ (q,), and the energy there with priors."""

    energy: Any
    theta: Array
    value: float


@functools.cache
def compiled_priors() -> Any:
    """``add_priors`` as machine code."""
    return compile_part(add_priors.py_func, types.void(MATRIX, FLOATS, MATRIX, FLOATS))


class Objective:
    """Energy and priors as a function of v: log θ where θ or its prior is positive, else θ.

    A parameter with a log-normal prior has the density of its logarithm, as it has where it is sampled. floor: where
    > 0, a soft lower limit of θ, for energies without a lower bound.
    """

    def __init__(self, energy: FittedEnergy, laws: tuple[Prior, ...], floor: Array, count: Count | None = None) -> None:
        self.energy, self.laws, self.floor, self.count = energy, laws, floor, count
        self.by_log_prior: Bools = np.array([law.kind == LOG_NORMAL for law in laws])
        self.log: Bools = np.array(energy.positive) | self.by_log_prior
        self.table = None if all(law.is_flat for law in laws) else prior_table(laws)

    def parameters(self, points: Array) -> Array:
        """θ of v."""
        return np.where(self.log, np.exp(np.clip(points, -MOST_LOGARITHM, MOST_LOGARITHM)), points)

    def point(self, theta: Array) -> Array:
        """The v of θ, of which those with logarithms are > 0."""
        return np.where(self.log, np.log(np.where(self.log, theta, 1.0)), theta)

    def allows(self, theta: Array) -> bool:
        """Whether θ (q,) is > 0 where it must be."""
        return bool((theta[self.log] > 0.0).all())

    def evaluate(self, points: Array) -> tuple[Array, Array]:
        """Energy (n,) and its slope (n, q) at ``points`` v (n, q)."""
        theta = self.parameters(points)
        energy, slope = self.energy.evaluate(theta)
        if self.count is not None:
            self.count(energy)
        barrier = (np.divide(self.floor, theta, out=np.zeros_like(theta), where=self.floor > 0.0)) ** 2
        barrier = np.where(np.isfinite(energy)[:, None], barrier * len(self.energy.numbers), 0.0)
        extra, pull = self._of_priors(theta)
        slope = np.where(self.log, theta * (slope + pull), slope + pull) - 2.0 * barrier - self.by_log_prior
        return energy + barrier.sum(axis=1) + extra, slope

    def _of_priors(self, theta: Array) -> tuple[Array, Array]:
        """The priors' energy (n,), that of log θ where the prior is log-normal, and its slope in θ (n, q)."""
        if self.table is None:
            return np.zeros(len(theta)), np.zeros_like(theta)
        energy, slope = np.zeros(len(theta)), np.zeros((theta.shape[1], len(theta)))
        compiled_priors()(np.ascontiguousarray(theta.T), energy, slope, self.table)
        return energy - np.log(theta[:, self.by_log_prior]).sum(axis=1), np.ascontiguousarray(slope.T)

    def value(self, theta: Array) -> float:
        """The energy at θ (q,); infinite where the right-hand side divides by a complex 0, at which Numba raises."""
        if not self.allows(theta):
            return np.inf
        try:
            energy = float(self.evaluate(self.point(theta)[None])[0][0])
        except ZeroDivisionError:
            return np.inf
        return energy if np.isfinite(energy) else np.inf

    def prior_residuals(self, points: Array) -> Array:
        """Residuals (n, priors) of Gaussian and log-normal priors at ``points`` v (n, q)."""
        rows = [k for k, law in enumerate(self.laws) if law.kind in (GAUSSIAN, LOG_NORMAL)]
        location = np.array([self.laws[k].location for k in rows])
        scale = np.array([self.laws[k].scale for k in rows])
        # The logarithm enters where it is moved; a Gaussian prior of a positive θ is of θ itself.
        values = np.where(self.by_log_prior[rows], points[:, rows], self.parameters(points)[:, rows])
        return np.asarray((values - location) / scale)


def least_squares_from(objective: Objective, theta: Array) -> Array:
    """The θ (q,) at which least squares from ``theta`` ends; standard deviations stay."""
    energy, start = objective.energy, objective.point(theta)
    moves: Bools = np.ones(len(theta), np.bool_)
    moves[own_scale_rows(energy)] = False
    if not moves.any():
        return theta
    sizes = np.where(objective.log, 1.0, np.abs(start))[moves]
    sizes = np.where(sizes > 0.0, sizes, np.median(sizes[sizes > 0.0]) if sizes.any() else 1.0)

    def residuals(points: Array) -> Array:
        every = np.tile(start, (len(points), 1))
        every[:, moves] = points
        found = np.concatenate(
            [energy.residuals(objective.parameters(every)), objective.prior_residuals(every)], axis=1
        )
        if objective.count is not None:
            objective.count(0.5 * (found**2).sum(axis=1))
        return found

    def jacobian(point: Array) -> Array:
        steps, middle = DIFFERENCE * np.diag(sizes), residuals(point[None])
        changes = residuals(point + steps) - middle
        beyond = np.flatnonzero(~np.isfinite(changes).all(axis=1))
        if beyond.size:
            changes[beyond] = middle - residuals(point - steps[beyond])
        changes[~np.isfinite(changes).all(axis=1)] = 0.0
        return np.asarray((changes / np.diag(steps)[:, None]).T)

    first = start[moves]
    if not np.isfinite(residuals(first[None])).all():
        return theta
    found = scipy.optimize.least_squares(
        lambda point: residuals(point[None])[0], first, jac=jacobian, x_scale=sizes, max_nfev=MOST_EVALUATIONS
    )
    end = np.array(start)
    end[moves] = found.x
    return np.where(moves, objective.parameters(end), theta)


def own_scale_rows(energy: FittedEnergy) -> Integers:
    """The rows of θ with standard deviations that are free."""
    rows = energy.scale_rows
    return np.zeros(0, np.int64) if rows is None else np.unique(rows[rows >= 0])


def with_own_scales(objective: Objective, theta: Array) -> Array:
    """``theta`` with the free standard deviations as the residuals' root mean squares there."""
    rows, found = objective.energy.scale_rows, np.array(theta)
    squares = objective.energy.residuals(theta[None])[0] ** 2
    if rows is not None and np.isfinite(squares).all():
        for row in own_scale_rows(objective.energy):
            found[row] *= np.sqrt(np.mean(squares[rows == row]))
            found[row] = max(found[row], objective.floor[row], np.finfo(np.float64).tiny)
    return found


def fit_from(objective: Objective, theta: Array) -> Fit | None:
    """The minimum that is reached from ``theta`` (q,), of no higher energy; None where the energy is infinite there."""
    if not np.isfinite(objective.value(theta)):
        return None
    places = [theta]
    if objective.energy.scale_rows is not None:
        places.append(with_own_scales(objective, theta))
        places.append(least_squares_from(objective, theta))
        places.append(with_own_scales(objective, places[-1]))
    best = min(places, key=objective.value)
    value = objective.value(best)
    try:
        position, _, _ = descend(objective.evaluate, objective.point(best), n_iterations=N_ITERATIONS)
        found = objective.parameters(position)
        if objective.value(found) < value:
            best, value = found, objective.value(found)
    except (TimeoutError, ZeroDivisionError, np.linalg.LinAlgError):  # least squares are a result of their own
        pass
    return Fit(objective.energy, best, value)


def fit_of_guesses(guesses: Guesses, laws_of: LawsOf, count: Count) -> Fit | None:
    """The lowest of the fits from all guesses; None where there is none, or the time is up before one ends."""
    if not guesses.thetas:
        return None
    objective = Objective(guesses.energy, laws_of(guesses.energy.names), guesses.floor, count)
    fits: list[Fit] = []
    for theta in guesses.thetas:
        try:
            fit = fit_from(objective, theta)
        except TimeoutError:
            break
        except (ZeroDivisionError, np.linalg.LinAlgError):  # another guess may do
            continue
        if fit is not None:
            fits.append(fit)
    return min(fits, key=lambda fit: fit.value, default=None)


def lowest_start(search: SearchFromGuess, laws_of: LawsOf, count: Count) -> tuple[Any, Array]:
    """The energy function and the θ (q,) of lowest energy with priors: from the search, or from the guess.

    The result of the search stays, to the bit, unless the fit from the guess is lower by more than SAME_ENERGY. Where
    the search fails or its time is up, the fit from the guess is the result. Raises what the search raises where there
    is none.
    """
    try:
        guesses = search.guesses()
    except (ValueError, ZeroDivisionError):  # no solution at the usual parameters
        return search.run()
    guess = fit_of_guesses(guesses, laws_of, count)
    try:
        energy, theta = search.run()
    except (ValueError, TimeoutError) as error:
        if guess is None:
            raise
        if not isinstance(error, TimeoutError):
            return search.settled(guesses, guess.theta)
        warn_user(f"identify: {error}. The result is the fit from the usual parameters")
        return guesses.energy, guess.theta  # nothing more is evaluated once the time is up
    if guess is None:
        return energy, theta
    found = Objective(energy, laws_of(energy.names), guesses.floor).value(theta)
    if not guess.value < found - SAME_ENERGY:
        return energy, theta
    try:
        other, moved = search.settled(guesses, guess.theta)
    except ValueError:  # no steps suit the fit from the guess
        return energy, theta
    value = Objective(other, laws_of(other.names), guesses.floor).value(moved)
    return (other, moved) if value < found - SAME_ENERGY else (energy, theta)
