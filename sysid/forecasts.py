"""Trajectories of many draws: bands, how many diverge, and for how long they predict."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from toolkit import Run
from toolkit.errors import (
    check_array,
    check_choice,
    check_count,
    check_instance,
    check_number,
    check_real_array,
    check_room,
    is_a,
    shown,
)
from toolkit.weighting import shares_of

from .arrays import Array, Integers
from .data.labels import check_labels
from .data.series import Series, in_order
from .identification import Identification, experiment_number, series_of, start_and_lead_times
from .likelihoods.error_laws import ERRORS, with_errors
from .likelihoods.observations import NOTHING_ELSE, measured_along
from .likelihoods.start_search import MAX_LIMIT, SIZES_TO_LIMIT
from .solvers.integrate import DONE, STATUS_WORDS, check_times, rows_of, solve
from .systems.dates import dates_of, since
from .systems.inputs import Inputs, on_clock
from .systems.system import System

__all__ = ["NOT_FINITE", "Ensemble", "Exponent", "Histograms", "histograms", "largest_lyapunov", "simulate"]

NOT_FINITE = len(STATUS_WORDS)
MIN_LIMIT = 1e8  # of states, where no limit is given
WORDS = (*STATUS_WORDS, "parameters or start not finite")


@dataclass(frozen=True, eq=False)
class Ensemble:
    """A trajectory for each of some draws.

    times: (n,). states: (draws, n, dim), nan from where a trajectory ended, and of those never begun. status: (draws,)
    as of ``integrate.Solution``, or 4 where a draw is not finite. reached: (draws,) the last time that is there.
    parameters: (draws, n_parameters) of the system; start: (draws, dim), solved from. observed: (draws, n, quantities),
    of the states, and of the functions of them that the problem observes, with errors where asked for. quantities:
    their names.
    """

    system: System
    times: Array
    states: Array
    status: Integers
    reached: Array
    parameters: Array
    start: Array
    observed: Array
    quantities: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "quantities", self.quantities or self.system.states)

    def __repr__(self) -> str:
        """Its size, and how many diverged."""
        return f"<Ensemble of {len(self.status)} trajectories of {self.system.name!r}: {self.diverged:.1%} diverged>"

    @property
    def diverged(self) -> float:
        """Share of trajectories that did not reach the last time, whatever the reason."""
        return float((self.status != DONE).mean())

    @property
    def reasons(self) -> dict[str, int]:
        """How many trajectories ended in which way, in words; only what occurs."""
        return {WORDS[k]: int(n) for k, n in enumerate(np.bincount(self.status, minlength=len(WORDS))) if n}

    def bands(self, probabilities: Any = (0.05, 0.5, 0.95)) -> Array:
        """Quantiles (probabilities, n, quantities) of ``observed`` over trajectories that did not diverge; nan without.

        With n draws the quantile to p is that to p ± √(p (1 − p)/n) of the posterior.
        """
        p = check_array("probabilities", probabilities)
        if p.ndim != 1 or ((p < 0.0) | (p > 1.0)).any():
            raise ValueError(f"probabilities must be within [0, 1], of shape (n,), got {shown(probabilities)}")
        done = self.observed[self.status == DONE]
        if not len(done):
            return np.full((p.size, *self.observed.shape[1:]), np.nan)
        return np.asarray(np.quantile(done, p, axis=0))

    def valid_time(self, truth: Any, *, threshold: float = 0.4, lyapunov: float | None = None) -> Array:
        """Time (draws,) until each trajectory's error is above ``threshold``, in Lyapunov times 1/λ.

        truth: a ``Series`` at the same times, or states (n, dim). The error is |x − truth| over the root mean
        square of |truth| at all times. Times count from the first; their span where the error stays below. lyapunov: λ;
        None: that of the system. Source: Pathak et al. (2018), Phys. Rev. Lett. 120, 024102.
        Raises ValueError for another shape, other times, or without a λ > 0.
        """
        threshold = check_number("threshold", threshold, above=0.0)
        rate = self.system.lyapunov if lyapunov is None else lyapunov
        if rate is None:
            raise ValueError(f"lyapunov must be given, as it is not known of {self.system.name!r}")
        rate = check_number("lyapunov", rate, above=0.0)
        if is_a(truth, Series):
            truth = in_order("truth", truth, self.system.states)
            check_labels(["truth"], [truth], self.system)
        exact = truth.values if is_a(truth, Series) else check_array("truth", truth)
        if exact.shape != self.states.shape[1:]:
            raise ValueError(f"truth must have shape {self.states.shape[1:]}, got {exact.shape}")
        if is_a(truth, Series) and not np.allclose(truth.times, self.times):
            raise ValueError("truth must be at the times of the ensemble")
        size = np.sqrt(np.nanmean((exact**2).sum(axis=1)))
        if not size > 0.0:
            raise ValueError("truth must not be 0 at all times, which leaves no size to compare with")
        error = np.sqrt(((self.states - exact) ** 2).sum(axis=2)) / size
        invalid = (error > threshold) | np.isnan(self.states).any(axis=2)
        first = np.where(invalid.any(axis=1), invalid.argmax(axis=1), self.times.size - 1)
        return np.asarray((self.times[first] - self.times[0]) * rate)


def simulate(
    draws: Any,
    times: Any,
    *,
    problem: Any = None,
    n_draws: int | None = 200,
    start: Any = None,
    seed: int = 0,
    method: str = "dopri5",
    step: float | None = None,
    noise: Any = None,
    errors: str = "gaussian",
    rtol: float = 1e-8,
    max_steps: int = 100_000,
    limit: float | None = None,
    threads: int | None = None,
    experiment: Any = None,
    dof: float = 4.0,
    inputs: Inputs | None = None,
) -> Ensemble:
    """Trajectories at ``times`` of ``n_draws`` of the ``draws``, chosen at random by their weights; None: of all.

    times: (n,), increasing; dates where the data's times were dates.
    draws: the ``Run`` of an ``Identification``; or parameters, (…, q) of the Identification that is the ``problem``,
    or (…, n_parameters) of a ``System``. start: the state at times[0], (dim,) or (draws, dim) of all draws; None: of a
    System its usual one; of an Identification its initial states at the data's first time, from which it is solved up
    to times[0]: those that were sampled or fixed; of the weak likelihood drawn from the law of its path's first state
    for each draw's parameters; of ``derivative`` the first row of the data in which no state is missing, at that row's
    own time, whose error is then in no band.
    experiment: of several series, the number or name of that whose parameters and initial states are taken; None: the
    first.
    noise: standard deviations of errors, a number, one a state (and function that the problem observes), or (draws,
    quantities); None: none; ``errors``: "gaussian", "lognormal", where they are of the logarithms, "student", times
    Student's t with ``dof``; or counts about the states: "negative_binomial", with dispersions as noise, "poisson",
    without noise. Those about a state < 0 are nan.
    inputs: known inputs and doses; None: of an Identification those of the experiment's series.
    limit: a state beyond it has blown up; None: 1000 times the largest value among the problem's data, its usual
    initial state and ``start``, and at least 1e8.
    method, step, rtol, max_steps, threads: as for ``solve``. Draws that are not finite have no trajectory, and
    those that blow up or become stiff end early: see ``Ensemble.status``. Nothing depends on threads.
    Raises TypeError or ValueError naming the argument where something is off: also where ``start`` is not given, and
    times begin before that of the data's row, or no row is whole.
    """
    clock = dates_of("times", times)
    times = check_times(times if clock is None else np.arange(float(clock.size)))
    seed = check_count("seed", seed, at_least=0, below=2**64)
    generator = np.random.default_rng(seed)
    check_choice("errors", errors, ERRORS)
    if (errors == "poisson" and noise is not None) or (errors == "negative_binomial" and noise is None):
        raise ValueError(
            f"noise must be dispersions for 'negative_binomial', and None for 'poisson', got {shown(noise)}"
        )
    dof = check_number("dof", dof, above=0.0, below=1e6)
    rtol = check_number("rtol", rtol, at_least=1e-14, below=1.0)
    if problem is not None and not is_a(problem, Identification | System):
        raise TypeError(f"problem must be the System or Identification of the draws, got {shown(problem)}")
    system, rows, theta, weights, source = unpack_draws(draws, problem, experiment)
    series = None if isinstance(source, System) else series_of(source)[experiment_number(source, experiment)]
    if clock is not None:
        times = check_times(times_of_dates(clock, series))
    if start is None:
        initial, lead = start_and_lead_times(source, theta, times, experiment, seed=seed)
    else:
        initial, lead = check_real_array("start", start), times[:0]
    if initial.shape not in ((system.dim,), (len(rows), system.dim)):
        raise ValueError(f"start must have shape ({system.dim},) or ({len(rows)}, {system.dim}), got {initial.shape}")
    if inputs is None and series is not None:
        inputs = series.inputs
    elif series is not None and inputs is not None and is_a(inputs, Inputs):
        inputs = on_clock(inputs, f"the series {series.name!r}", series.time_unit, series.origin)
    elif inputs is not None and is_a(inputs, Inputs):
        inputs = on_clock(inputs, f"the system {system.name!r}", system.time_unit, None)
    if limit is None:
        limit = limit_of(source, None if start is None else initial)
    starts = np.broadcast_to(initial, (len(rows), system.dim))
    observation = source.prepared.observation if isinstance(source, Identification) else NOTHING_ELSE
    deviations = deviations_of(noise, len(rows), system.dim + len(observation))
    wanted = len(rows) if n_draws is None else check_count("n_draws", n_draws, at_least=1, below=2**31)
    size = 8.0 * wanted * ((times.size + lead.size) * system.dim * (2 if noise is None else 4) + 4)
    check_room("draws" if n_draws is None else "n_draws", wanted, size)
    chosen = np.arange(len(rows)) if n_draws is None else choose_draws(generator, weights, len(rows), wanted)
    p, x = rows[chosen], starts[chosen]
    is_finite = np.isfinite(p).all(axis=1) & np.isfinite(x).all(axis=1)
    states = np.full((len(p), times.size, system.dim), np.nan)
    status, reached = np.full(len(p), NOT_FINITE), np.full(len(p), np.nan)
    found = solve(
        system, np.append(lead, times), p[is_finite], x[is_finite], method=method, step=step, rtol=rtol,
        atol=1e-2 * rtol, max_steps=max_steps, limit=limit, threads=threads, inputs=inputs,
    )  # fmt: skip
    states[is_finite], status[is_finite], reached[is_finite] = found.states[:, lead.size :], found.status, found.reached
    observed = states
    if len(observation):
        functions = measured_along(system, observation, times, states, p, inputs)
        observed = np.concatenate([states, functions], axis=2)
    if noise is not None or errors == "poisson":
        observed = with_errors(observed, deviations[chosen][:, None, :], errors, dof, generator)
    return Ensemble(system, times, states, status, reached, p, x, observed, system.states + observation.names)


def times_of_dates(clock: Any, series: Series | None) -> Array:
    """Dates as times of a series, whose times were dates. Raises ValueError where they were not."""
    if series is None or series.origin is None:
        raise ValueError(f"times must be numbers, as times of the data are, got dates from {clock.ravel()[:1]}")
    return since("times", clock, series.time_unit, series.origin).numbers


def limit_of(source: Identification | System, start: Array | None) -> float:
    """The limit of states, relative to what is known of their size."""
    known = [source.system.start if isinstance(source, Identification) else source.start]
    if isinstance(source, Identification):
        known += [series.values for series in series_of(source)]
    if start is not None:
        known.append(start)
    finite = [np.abs(one[np.isfinite(one)]).max(initial=0.0) for one in known]
    return min(max(MIN_LIMIT, SIZES_TO_LIMIT * float(max(finite))), MAX_LIMIT)


def unpack_draws(
    draws: Any, problem: Any, experiment: Any
) -> tuple[System, Array, Array, Array | None, Identification | System]:
    """System, its parameters (n, n_parameters), draws (n, q), their shares (n,) or None, and the problem or system."""
    weights = None
    if is_a(draws, Run):
        problem = draws.problem if problem is None else problem
        if not is_a(problem, Identification):
            raise TypeError(
                f"draws must be the run of an Identification, got that of {shown(problem)}: "
                "give problem with a loaded run"
            )
        theta = problem.parameters(draws).reshape(-1, problem.dim)
        weights = shares_of(draws)
    else:
        if is_a(draws, System | Identification):
            raise TypeError(
                f"draws must be a run or parameters, got {shown(draws)}: sysid.data.simulate makes data of a system"
            )
        theta = check_real_array("draws", draws)
        if not is_a(problem, Identification | System):
            raise TypeError(f"problem must be the System or Identification of the draws, got {shown(problem)}")
        width = problem.dim if is_a(problem, Identification) else problem.n_parameters
        if theta.ndim == 0 or theta.shape[-1] != width:
            raise ValueError(f"draws must have shape (…, {width}), got {theta.shape}")
        theta = theta.reshape(-1, width) if width else theta.reshape(int(np.prod(theta.shape[:-1])), 0)
    if not len(theta):
        raise ValueError("draws must be at least one, got none")
    if is_a(problem, System):
        if experiment is not None:
            raise ValueError(f"experiment must be None for draws of a System, got {shown(experiment)}")
        return problem, theta, theta, weights, problem
    return problem.system, problem.system_parameters_of(theta, experiment), theta, weights, problem


def choose_draws(generator: np.random.Generator, weights: Array | None, n: int, n_draws: int) -> Integers:
    """Indices of the draws taken by weight; without replacement where weights are equal and draws are enough."""
    if weights is None:
        return np.sort(generator.choice(n, n_draws, replace=n_draws > n))
    return np.sort(generator.choice(n, n_draws, p=weights / weights.sum()))


def deviations_of(noise: Any, n: int, dim: int) -> Array:
    """Standard deviations (n, dim) of errors."""
    given = check_array("noise", 0.0 if noise is None else noise)
    if given.shape not in ((), (dim,), (n, dim)):
        raise ValueError(f"noise must be a number, or of shape ({dim},) or ({n}, {dim}), got {given.shape}")
    if (given < 0.0).any():
        raise ValueError(f"noise must be ≥ 0, got {given.min():g}")
    return np.broadcast_to(given, (n, dim))


MAX_INTERVALS = 1e7  # after each of which tangents are made unit vectors again
MAX_STEPS = 1e9  # of the solver, of each path
COMPLEX_STEP = 1e-40  # of the tangent as an imaginary part of the state


class Exponent(NamedTuple):
    """A Lyapunov exponent, in 1 / the unit of time, with its standard error. paths: (n,) that of each path."""

    value: float
    standard_error: float
    paths: Array


def largest_lyapunov(
    system: System,
    parameters: Any = None,
    start: Any = None,
    *,
    time: float = 250.0,
    burn_in: float = 50.0,
    interval: float = 1.0,
    step: float = 0.01,
    n_paths: int = 16,
    seed: int = 0,
    method: str = "rk4",
) -> Exponent:
    """Largest Lyapunov exponent: the mean growth of log |tangent| over ``time`` after ``burn_in``, of several paths.

    The tangent is carried as an imaginary part, so its growth is that of the solver's own steps to rounding; it is
    made a unit vector again after each ``interval``. parameters (n_parameters,), start (dim,): None: the usual ones;
    each path starts from there with 1 % noise, and a tangent of random direction. step: of "rk4" or "rk5".
    time + burn_in: at most 1e7 intervals and 1e9 steps, which take hours.
    The standard error is of the mean of paths, and true where these forget their starts within burn_in. Law: 0 for
    limit cycles, but for O(1/time). Source: Benettin et al. (1980), Meccanica 15, 9.
    Raises TypeError or ValueError naming the argument; ArithmeticError where a path blows up.
    """
    check_instance("system", system, System)
    if system.inputs:
        raise ValueError(f"system must be without inputs, got {shown(system)}")
    time, interval = check_number("time", time, above=0.0), check_number("interval", interval, above=0.0)
    burn_in = check_number("burn_in", burn_in, at_least=0.0)
    n_paths = check_count("n_paths", n_paths, at_least=2, below=2**16)
    draws = np.random.default_rng(check_count("seed", seed, at_least=0, below=2**64))
    check_choice("method", method, ("rk4", "rk5"))
    check_steps(time, burn_in, interval, check_number("step", step, above=0.0))
    p = rows_of("parameters", system.usual if parameters is None else parameters, system.n_parameters, False)
    x = rows_of("start", system.start if start is None else start, system.dim, False)
    if len(p) > 1 or len(x) > 1:
        raise ValueError(f"parameters and start must be of one system, got {len(p)} and {len(x)}")
    states = x * (1.0 + 0.01 * draws.standard_normal((n_paths, system.dim)))
    tangents = draws.standard_normal(states.shape)
    tangents /= np.linalg.norm(tangents, axis=1, keepdims=True)
    n_burn_in, n_kept = int(np.ceil(burn_in / interval)), int(np.ceil(time / interval))
    log_growth = np.zeros(n_paths)
    for k in range(n_burn_in + n_kept):
        times = [k * interval, (k + 1) * interval]
        found = solve(system, times, p[0], states + 1j * COMPLEX_STEP * tangents, method=method, step=step)
        if (found.status != DONE).any():
            lost = int(np.flatnonzero(found.status != DONE)[0])
            raise ArithmeticError(
                f"{system.name} has no exponent: path {lost} {STATUS_WORDS[found.status[lost]]} near t = {times[0]:g}"
            )
        states, tangents = found.states[:, 1].real, found.states[:, 1].imag / COMPLEX_STEP
        growth = np.linalg.norm(tangents, axis=1)
        if not (np.isfinite(growth) & (growth > 0.0)).all():
            raise ArithmeticError(
                f"{system.name}: tangents grow by {growth.max():g} in interval = {interval:g}: shorten it"
            )
        tangents /= growth[:, None]
        if k >= n_burn_in:
            log_growth += np.log(growth)
    paths = log_growth / (n_kept * interval)
    return Exponent(float(paths.mean()), float(paths.std(ddof=1) / np.sqrt(n_paths)), paths)


def check_steps(time: float, burn_in: float, interval: float, step: float) -> None:
    """Raise ValueError where an exponent would take more than ``MAX_INTERVALS`` or ``MAX_STEPS``: hours to days."""
    total = time + burn_in
    for name, length, most in (("interval", interval, MAX_INTERVALS), ("step", min(step, interval), MAX_STEPS)):
        if not total <= most * length:
            raise ValueError(
                f"time + burn_in must be at most {most:.0e} times {name}, got time = {time:g}, burn_in = {burn_in:g} "
                f"and {name} = {length:g}"
            )


class Histograms(NamedTuple):
    """Histograms of each state. edges: (dim, bins + 1). shares: (dim, bins + 2), the outermost beyond the edges."""

    edges: Array
    shares: Array

    def distance(self, other: "Histograms") -> Array:
        """Total variation (dim,) between the shares of both: 0 where equal, 1 where they have no bin in common.

        Of n independent states in each it is some √(bins / (2 n)) by chance; those of one path are fewer than n.
        Raises ValueError for other edges, TypeError for what is no Histograms.
        """
        check_instance("other", other, Histograms)
        if not np.array_equal(self.edges, other.edges):
            raise ValueError(
                f"other must have the same edges, got some of shape {other.edges.shape}: give those of one to the other"
            )
        return np.asarray(0.5 * np.abs(self.shares - other.shares).sum(axis=1))


def histograms(states: Any, *, edges: Any = None, bins: int = 40) -> Histograms:
    """How often states (…, dim) are in each of some bins; states that are nan are left out.

    edges: (dim, bins + 1), as of the truth's histograms; None: ``bins`` equal ones over the range of the states.
    Raises ValueError where no state is finite, or the edges have another shape or do not increase.
    """
    points = check_real_array("states", states)
    if points.ndim < 2:
        raise ValueError(f"states must have shape (…, dim), got {points.shape}")
    points = points.reshape(-1, points.shape[-1])
    points = points[np.isfinite(points).all(axis=1)]
    if not len(points):
        raise ValueError(f"states must be finite at some time, and are at none of {shown(states)}")
    if edges is None:
        bins = check_count("bins", bins, at_least=1, below=2**20)
        low, high = points.min(axis=0), points.max(axis=0)
        high = np.where(high > low, high, low + np.maximum(np.abs(low), 1.0))
        table = np.linspace(low, high, bins + 1).T
    else:
        table = check_array("edges", edges)
        if table.ndim != 2 or len(table) != points.shape[1] or table.shape[1] < 2 or (np.diff(table) <= 0.0).any():
            raise ValueError(f"edges must increase and have shape ({points.shape[1]}, bins + 1), got {table.shape}")
    shares = np.empty((len(table), table.shape[1] + 1))
    for d, (row, column) in enumerate(zip(table, points.T, strict=True)):
        bin_number = np.searchsorted(row, column, side="right")
        bin_number[column == row[-1]] = row.size - 1  # the last bin has its right edge
        shares[d] = np.bincount(bin_number, minlength=row.size + 1) / len(points)
    return Histograms(table, shares)
