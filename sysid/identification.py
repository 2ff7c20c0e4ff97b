"""``identify``, and the ``Identification`` it makes: a problem for ``sample``, and named parameters of its draws."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from targets import constrained
from targets.domains.convex import Convex
from targets.truth.gaussian import GaussianTruth
from toolkit import Run
from toolkit._compiler import describe_function
from toolkit.errors import (
    check_array,
    check_count,
    check_flag,
    check_instance,
    check_number,
    check_progress,
    check_real_array,
    check_room,
    check_text,
    is_a,
    shown,
    warn_user,
)
from toolkit.maths.seeds import EVIDENCE, STARTS, derived_seed
from toolkit.problem import Named, Problem, Spread, Target
from toolkit.weighting import shares_of

from . import likelihoods
from .arrays import Array, Bools, Integers
from .block_function import N_HEADER, SCALED, block_of, quadratic_block
from .constraints import Coordinates, as_list, region_of
from .data.checks import check
from .data.residuals import ResidualCheck, residual_check
from .data.series import Series
from .estimates import Estimates, doubt_of_mixing, estimate, inclusion_of
from .function_constraints import check_compiles, implicit_domain
from .likelihoods.experiments import JointEnergy
from .likelihoods.interface import Prepared
from .likelihoods.start_search import TIME_LIMIT, SearchProgress, progress_of_paths
from .likelihoods.trajectories import Trajectory
from .likelihoods.trajectory_kernel import TrajectoryEnergy
from .likelihoods.weak_form import Weak
from .model import Model, as_model
from .modes.bridge import Evidence, check_overlap, check_temperature, evidence_of, usable_draws
from .modes.checks import (
    ONE_SIDE,
    Posterior,
    doubts_of_residuals,
    doubts_of_tails,
    no_mode_in_words,
    symmetries_in_words,
    values_in_words,
    with_frequencies,
    with_images,
    without_periods,
)
from .modes.evidence import check_proper, log_evidence_of
from .modes.fit_residuals import residuals_at
from .modes.inside import Walls, mode_inside
from .modes.laplace import Evaluate, laplace
from .modes.leave_one_out import LOG_LIKELIHOOD, log_likelihood_group, loo_of
from .modes.search import N_PLACES, SAME, Mode, mode_from, search_modes
from .modes.steps.solver_check import SolverCheck, solver_check_of, words_of
from .modes.steps.step_check import SolutionEnergy
from .modes.steps.step_refinement import SteppedPosterior, checked_steps, steps_in_words
from .modes.table import ModeTable, doubts_of_modes
from .modes.time_left import TimeLeft, timed
from .priors import GAUSSIAN, LAPLACE, LOG_NORMAL, Prior, check_priors, prior_table
from .solvers.step_length import MAX_STEPS
from .systems.system import System, check_names

TIME_TOLERANCE = 1e-9  # of the span of the data: times closer than this are equal


def rows_of_parameters(parameters: Any, q: int) -> Array:
    """``parameters`` (q,) or (n, q) as rows (n, q), nan included. Raises TypeError or ValueError otherwise."""
    theta = check_real_array("parameters", parameters)
    if theta.ndim not in (1, 2) or theta.shape[-1] != q:
        raise ValueError(f"parameters must have shape ({q},) or (n, {q}), got {theta.shape}")
    return np.atleast_2d(theta)


class Initial(NamedTuple):
    """States (n, dim) at ``time``; root: what they are off by has the covariance root rootᵀ (dim, dim)."""

    time: float
    states: Array
    root: Array | None = None


def experiment_number(problem: "Identification", experiment: Any) -> int:
    """The place among the data of an experiment, given by its number, or by its series' name; None: the first.

    Raises TypeError or ValueError where there is no such experiment, or where several have the name.
    """
    if experiment is None:
        return 0
    every = series_of(problem)
    if is_a(experiment, str):
        found = [k for k, series in enumerate(every) if series.name == experiment]
        if len(found) != 1:
            known = ", ".join(repr(series.name) for series in every[:8])
            why = "is the name of several series: give its number" if found else "is none"
            raise ValueError(f"experiment must name one of the data's series ({known}), got {shown(experiment)}, {why}")
        return found[0]
    return check_count("experiment", experiment, at_least=0, below=len(every))


def series_of(problem: "Identification") -> list[Series]:
    """The series of the data."""
    return list(problem.data) if isinstance(problem.data, list | tuple) else [problem.data]


def initial_states(problem: "Identification", parameters: Any, experiment: Any = None) -> Initial:
    """Initial states of parameters (n, q): those sampled, else as fixed, both at the data's first time.

    experiment: its number or its series' name, of several; None: the first.
    Of the weak likelihood: the expected first state of its path. Of others without initial states: the first row of the
    experiment's data in which no state is missing, at its own time. Raises ValueError where there is no such row, or
    no such experiment.
    """
    theta = rows_of_parameters(parameters, problem.dim)
    number = experiment_number(problem, experiment)
    series = series_of(problem)[number]
    if problem.prepared.first_states:
        first = problem.prepared.first_states[number]
        return Initial(first.time, first.draws(theta, np.zeros((len(theta), len(first.state)))), first.root)
    if problem.prepared.experiments:
        one = problem.prepared.experiments[number]
        return Initial(float(series.times[0]), columns_or_numbers(theta, one.start_rows, one.initial))
    columns_of = {
        state: problem.names.index(f"{state}(0)") for state in problem.system.states if f"{state}(0)" in problem.names
    }
    row, known = 0, {}
    if problem.prepared.initial is not None:
        known = dict(zip(problem.system.states, problem.prepared.initial, strict=True))
    elif len(columns_of) < problem.system.dim:
        complete = np.flatnonzero(np.isfinite(series.values).all(axis=1))
        if not complete.size:
            raise ValueError(
                f"start must be given, as no row of {series.name!r} has all states, from which trajectories could begin"
            )
        row = int(complete[0])
        known = dict(zip(series.states, series.values[row], strict=True))
    columns = [
        theta[:, columns_of[state]] if state in columns_of else np.full(len(theta), known[state])
        for state in problem.system.states
    ]
    return Initial(float(series.times[row]), np.stack(columns, axis=1))


def columns_or_numbers(theta: Array, rows: Integers, numbers: Array) -> Array:
    """Columns (n, k) of ``theta`` (n, q) at ``rows`` (k,); where a row is −1, that one of ``numbers`` (k,)."""
    return np.where(rows >= 0, theta[:, np.maximum(rows, 0)], numbers)


def start_and_lead_times(
    problem: "Identification | System", theta: Array, times: Array, experiment: Any, seed: int
) -> tuple[Array, Array]:
    """States (dim,) or (n, dim) to solve from, and the data's times from that of the states up to ``times``.

    With the data's times between, steps of fixed length are no longer than in the likelihood. seed: of what states of
    paths are off by.
    """
    if isinstance(problem, System):
        return problem.start, times[:0]
    when, states, root = initial_states(problem, theta, experiment)
    if root is not None:
        states = states + np.random.default_rng(derived_seed(seed, STARTS)).standard_normal(states.shape) @ root.T
    data = series_of(problem)[experiment_number(problem, experiment)]
    slack = TIME_TOLERANCE * (data.times[-1] - data.times[0])
    if times[0] < when - slack:
        raise ValueError(
            f"start must be given where times begin before {when:.10g}, the time of the data's first state that is "
            f"whole, got {times[0]:.10g}"
        )
    return states, data.times[(data.times >= when) & (data.times < times[0] - slack)]


@dataclass(frozen=True, eq=False)
class Gaussian:
    """N(mean, covariance) of the parameters."""

    mean: Array  # (q,)
    covariance: Array  # (q, q)

    @property
    def sd(self) -> Array:
        """Standard deviations (q,)."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))


@dataclass(frozen=True, eq=False)
class Identification(Problem):
    """The posterior of a model's parameters, for ``sample``; made by ``identify``.

    Draws are positions u (q,), from which ``parameters`` makes what they stand for. names: of the parameters.
    posterior: their law in closed form, without constraints, where it is Gaussian; else None.
    """

    names: tuple[str, ...] = field(kw_only=True)
    model: Model | System = field(kw_only=True)
    data: Any = field(kw_only=True)
    prepared: Prepared = field(kw_only=True)
    priors: tuple[Prior, ...] = field(kw_only=True)
    constraints: Any = field(kw_only=True)
    coordinates: Coordinates = field(kw_only=True)
    posterior: Gaussian | None = field(kw_only=True)
    found: tuple[Mode, ...] = field(kw_only=True, default=())  # in positions that are not scaled; the start's first
    symmetries: str = field(kw_only=True, default="")  # of the energy, in words, where modes lack their mirror images

    def __repr__(self) -> str:
        """Its name and parameters."""
        shown = ", ".join(self.names[:8]) + (", …" if len(self.names) > 8 else "")
        return f"<Identification {self.name!r} of {len(self.names)} parameters: {shown}>"

    @property
    def dim(self) -> int:
        """Number of parameters q."""
        return len(self.names)

    def parameters(self, draws: Any) -> Array:
        """Parameters (…, q) of a run's draws (chain, draw, q), or of positions (…, q).

        Raises ValueError for another last axis, or for a run of other coordinates, such as those before ``scaled``.
        """
        self._check_run(draws)
        return self.coordinates.parameters(positions_of(draws, self.dim))

    def _named(self) -> Named:
        """Names of the parameters, and how they are made of positions."""
        is_plain = not self.coordinates.is_scaled and not self.coordinates.log.any()
        return Named(self.names, None if is_plain else self.coordinates.parameters)

    def _check_run(self, run: Any) -> None:
        """Raise ValueError where ``run`` was sampled in other coordinates."""
        coordinate_numbers = slice(SCALED, N_HEADER + (2 + self.dim) * self.dim)
        if is_a(run, Run) and not np.array_equal(
            run.problem.target.parameters[coordinate_numbers], self.target.parameters[coordinate_numbers]
        ):
            raise ValueError(
                f"run must be one of this problem, {self.name!r}, but is of {run.problem.name!r} in other positions: "
                "ask the problem that was sampled, as what scaled() gave"
            )

    def positions(self, parameters: Any) -> Array:
        """Positions (…, q) of parameters (…, q). Raises ValueError for another last axis, or a log of a number ≤ 0."""
        theta = check_array("parameters", parameters)
        if theta.ndim == 0 or theta.shape[-1] != self.dim:
            raise ValueError(f"parameters must have shape (…, {self.dim}), got {theta.shape}")
        bad = (theta <= 0.0) & self.coordinates.log
        if bad.any():
            k = int(np.argwhere(bad)[0][-1])
            raise ValueError(f"parameters must be > 0 for {self.names[k]}, got {theta[bad][0]:g}")
        return self.coordinates.positions(theta)

    @cached_property
    def system(self) -> System:
        """The system to solve."""
        return self.model.system if isinstance(self.model, Model) else self.model

    def system_parameters_of(self, parameters: Any, experiment: Any = None) -> Array:
        """The system's own parameters (n, n_parameters) of parameters (n, q); usual ones for those not sampled.

        experiment: its number or its series' name, of several that have own or known parameters; None: the first.
        Raises TypeError or ValueError for another shape, or where there is no such experiment.
        """
        theta = rows_of_parameters(parameters, self.dim)
        number = experiment_number(self, experiment)
        if self.prepared.experiments:
            one = self.prepared.experiments[number]
            return columns_or_numbers(theta, one.parameter_rows, one.known)
        columns = [
            theta[:, self.names.index(name)] if name in self.names else np.full(len(theta), usual)
            for name, usual in zip(self.system.parameters, self.system.usual, strict=True)
        ]
        return np.stack(columns, axis=1)

    def start_of(self, parameters: Any, experiment: Any = None) -> Array:
        """Initial states (n, dim) of parameters (n, q): those sampled, else as fixed, or the data's first whole row.

        Of the weak likelihood: the expected first state of its path. experiment: its number or its series' name, of
        several; None: the first.
        Raises TypeError or ValueError for another shape, where no row of the data is whole, or there is no such
        experiment.
        """
        return initial_states(self, parameters, experiment).states

    def scaled(self, mode: Any = None, root: Any = None) -> "Identification":
        """The same posterior in other positions: parameters at ``mode`` for u = 0, with unit covariance, about, there.

        Samplers whose step suits all parameters alike need it where these have different sizes or are correlated. mode:
        parameters (q,); root: (q, q), whose square root·rootᵀ is a covariance of them, or of their logarithms where
        these are sampled. None: the posterior in closed form, or else by Laplace's approximation at its mode.
        Raises TypeError or ValueError where one is given alone, has another shape or is not finite, a mode is not > 0
        whose logarithm is sampled, a root is singular, or the energy is infinite where Laplace's approximation starts.
        """
        return assembled(replace(self, coordinates=scaled_coordinates(self, mode, root)))

    def usual_start(self) -> Array:
        """The likelihood's start (q,); where it must be > 0 and is not, the prior's median or the absolute value."""
        theta = np.array(self.prepared.start)
        for k, law in enumerate(self.priors):
            if theta[k] <= 0.0 and (self.coordinates.log[k] or law.is_positive):
                theta[k] = np.exp(law.location) if law.is_positive else abs(theta[k]) or 1.0
        return theta

    @property
    def modes(self) -> ModeTable:
        """The modes that ``identify`` found, for trajectory likelihoods, and their weights by Laplace's approximation.

        Raises ValueError where it did not search, or found none inside the constraints.
        """
        if not self.found:
            raise ValueError(f"modes are known where identify(n_searches=) found some, but not of {self.name!r}")
        modes = self._modes_by_weight
        values = self._plain.parameters(np.array([mode.position for mode in modes]))
        sds = np.array([mode.sd for mode in modes]) * np.where(self.coordinates.log, values, 1.0)
        energies, weights = (np.array([getattr(mode, name) for mode in modes]) for name in ("energy", "weight"))
        return ModeTable(self.names, values, sds, energies, weights, self.symmetries)

    @cached_property
    def log_evidence(self) -> float:
        """log of the evidence ∫ likelihood × prior dθ, in nats, by Laplace's approximation at the modes found.

        Models of the same data compare by it: a difference of 3 is a factor of 20 between their probabilities. It is
        exact for Gaussian posteriors, else good where data leave each mode narrow; noise that a likelihood estimates
        before (``derivative``, ``weak``) is taken as known, so give it for comparisons.
        Raises ValueError where a prior is flat, a constraint cuts the posterior, or no mode is found.
        Source: Kass & Raftery (1995).
        """
        self._check_has_evidence()
        modes = self._known_modes()
        if not modes:
            raise ValueError(f"problem {self.name!r} must have a mode, but none was found from its usual start")
        return log_evidence_of(modes, self.priors)

    def _check_has_evidence(self) -> None:
        """Raise ValueError where a prior is flat, or a constraint cuts the posterior."""
        check_proper(self.priors, self.names)
        if self.constraints is not None:
            raise ValueError(f"constraints must be none for an evidence, got {shown(self.constraints)}")

    def _known_modes(self) -> tuple[Mode, ...]:
        """The modes that ``identify`` found, or else the one that a search from the usual start finds, if any."""
        plain = replace(self, coordinates=self._plain)
        start = plain.coordinates.positions(self.usual_start())
        return self.found or search_modes(target_of(plain, None).evaluate, start, start[None], n_searches=0)

    def evidence(self, run: Run, *, seed: int = 0) -> Evidence:
        """The log of the evidence ∫ likelihood × prior dθ, in nats, with its standard error, from a run of it.

        By the multistate Bennett acceptance ratio, which with one temperature is bridge sampling: draws of the run are
        compared with exact ones of a mixture of Student's t's, half of it at the modes by Laplace's approximation, half
        with the moments of the first half of the draws; the second half is compared. Of a ladder of replica exchange
        whose replicas were all kept (``keep_replicas=True``), draws at all temperatures T are used, as of exp(−U/T).
        The posterior need not be near its Laplace approximation, which ``log_evidence`` takes for exact; a mode that
        neither the draws nor the mixture have is missed by both. Each mode counts by itself, so that chains need not
        go from one to another. seed: 0 to 2⁶⁴ − 1, of the exact draws.
        The error is from sums over chains, or over parts of them with fewer than 8 chains. It knows nothing of the bias
        of moves without a Metropolis test (SGLD, SGHMC), which the estimate inherits: take short steps, or HMC.
        Warns where reference and draws hardly overlap, so that the error means little, and where the exact draws alone
        give another evidence, as the run's draws are not those of the posterior.
        Raises ValueError where a prior is flat or a constraint cuts the posterior, as ``log_evidence``; for a run of
        another problem, weighted, of minibatches or with noise added to gradients, of SVGD, with fewer than 8 draws a
        chain, or without draws at T = 1; TypeError for what is no run.
        Source: Meng & Wong (1996); Shirts & Chodera (2008).
        """
        check_instance("run", run, Run)
        seed = derived_seed(seed, EVIDENCE)
        self._check_has_evidence()
        self._check_same_problem(run)
        draws, temperatures = usable_draws(run)
        inverse = np.asarray(np.linalg.inv(self.coordinates.root))
        modes = tuple(mode.moved(self.coordinates.shift, inverse) for mode in self._known_modes())
        bridge = evidence_of(self.target.evaluate, modes, draws, temperatures, np.random.default_rng(seed))
        check_overlap(bridge)
        constant = float(np.linalg.slogdet(self.coordinates.root)[1]) - sum(law.constant for law in self.priors)
        return bridge._replace(log_evidence=bridge.log_evidence + constant)

    def _check_same_problem(self, run: Run) -> None:
        """Raise ValueError where ``run`` is of other data, another model or other coordinates."""
        self._check_run(run)
        target = run.problem.target
        is_same_function = own_code(target.energy_gradient) == own_code(self.target.energy_gradient)
        if not np.array_equal(target.parameters, self.target.parameters) or not is_same_function:
            raise ValueError(
                f"run must be one of this problem, {self.name!r}, but is of {run.problem.name!r} with other data, "
                "another model, or other priors or settings"
            )

    def log_likelihood(self, run: Run) -> Array:
        """Log density (chain, draw, value), in nats, of each measured value at each draw of the target, from a run.

        Values are those that are not missing, series by series, at each time all that was measured, states in the order
        of the system, then functions of ``observe``; all constants are there, and −inf where there is no solution.
        Likelihoods: ``trajectory``, in whose own discretised solutions the sum over values is −energy but for the prior
        (with segments, kicks belong to the prior of their initial states); and ``derivative`` of all data with noise,
        whose values are velocities, the noise taken as known. Weights of a run are not used.
        Raises ValueError for ``weak``, whose path is fitted to all values together, so that these are not independent
        given the coefficients; for a run of another problem, or with draws that are not finite; TypeError for what is
        no run.
        """
        check_instance("run", run, Run)
        self.prepared.values.measured()  # or an error before others
        self._check_same_problem(run)
        return self._log_densities(self.coordinates.parameters(run.draws))

    def _log_densities(self, theta: Array) -> Array:
        """Log densities (…, values) at parameters (…, q)."""
        n_values = sum(len(measured.times) for measured in self.prepared.values.measured())
        rows = theta.reshape(-1, self.dim)
        if not len(rows) or not np.isfinite(rows).all():
            raise ValueError(f"run must have draws that are all finite, got {'none' if not len(rows) else 'some not'}")
        check_room("run", len(rows), 8.0 * 3.0 * len(rows) * n_values, hint="Keep fewer draws: give sample(thin=).")
        return self.prepared.values.log_densities(rows).reshape(*theta.shape[:-1], n_values)

    def loo(self, run: Run) -> Any:
        """Leave-one-out cross-validation by Pareto-smoothed importance sampling: what ArviZ's ``loo`` returns.

        ``elpd_loo`` (``elpd`` from ArviZ 1) is the sum over values of log p(value | all others), with its standard
        error; ``pareto_k`` (value,) says where it can be trusted: below 0.7. Values as in ``log_likelihood``. What
        leaving out one value means is up to the data: values close in time predict each other. To compare models:
        ``arviz.compare`` of the trees of ``to_datatree(run, log_likelihood=True)``. Draws of a weighted run are those
        that ``to_datatree`` resamples. Needs ArviZ (extra ``arviz``).
        Raises as ``log_likelihood``; also ValueError where draws are at another temperature than 1 or have no solution,
        ImportError without ArviZ. Source: Vehtari, Gelman & Gabry (2017).
        """
        return loo_of(self.to_datatree(run, log_likelihood=True))

    @property
    def _modes_by_weight(self) -> tuple[Mode, ...]:
        """The modes that were found, the weightiest first."""
        return tuple(sorted(self.found, key=lambda mode: -mode.weight))

    def _centre(self) -> Array:
        """The position (q,), not scaled, about which chains start: the start's, or that of the weightiest mode.

        The start's where its search ended at that mode, where no mode is known, and where its search ended at none and
        its energy is lower than the mode's, as where data leave a direction open.
        """
        start = self._plain.positions(self.usual_start())
        if not self.found or self._modes_by_weight[0].is_of_start:
            return start
        best = self._modes_by_weight[0]
        if not any(mode.is_of_start for mode in self.found):
            energy = target_of(replace(self, coordinates=self._plain), None).evaluate(start[None])[0][0]
            return start if energy < best.energy else best.position
        return best.position

    @property
    def _plain(self) -> Coordinates:
        """Positions that are not scaled."""
        return Coordinates(self.coordinates.log, np.zeros(self.dim), np.eye(self.dim))

    def starts(self, n_chains: int, *, seed: int, spread: float = 1.0) -> Array:
        """Positions (n_chains, q) to start from: about the likelihood's best parameters, inside all constraints.

        Scaled problems: normal with standard deviation ``spread``; others: all at the same place. Where ``identify``
        found several modes, chains are shared among them by their weights, with the standard deviations there. Points
        outside the constraints are moved halfway to one inside until they obey. seed: 0 to 2⁶⁴ − 1.
        Raises TypeError or ValueError for numbers out of range, or where no point inside is known.
        """
        n_chains = check_count("n_chains", n_chains, at_least=1)
        spread = check_number("spread", spread, at_least=0.0)
        check_room("n_chains", n_chains, 8.0 * n_chains * self.dim * 3)  # normals, positions, and those inside
        rng = np.random.default_rng(derived_seed(seed, STARTS))  # other normals than those of exact draws
        is_scaled = self.coordinates.is_scaled
        centre = np.zeros(self.dim) if is_scaled else self._centre()
        normals = rng.standard_normal((n_chains, self.dim))
        points = centre + (spread if is_scaled else 0.0) * normals
        if len(self.found) > 1:
            boxes = spread_of_modes(self.found, self.coordinates, 1.0)
            mode = boxes.box_of(np.arange(n_chains), np.zeros(n_chains))
            points = boxes.center[mode] + spread * boxes.scale[mode] * normals
        if self.domain is None:
            return np.asarray(points)
        region = getattr(self.truth, "region", None)
        inner = centre if region is None else np.asarray(region.interior)
        if not self.contains(inner[None])[0]:
            raise ValueError(f"starts needs a point inside, and {self.parameters(inner)} is not: give init to sample")
        for _ in range(60):
            outside = ~self.contains(points)
            if not outside.any():
                break
            points[outside] = 0.5 * (points[outside] + inner)
        return np.asarray(points)

    def estimates(self, run: Run, *, level: float = 0.9) -> Estimates:
        """Mean, sd, median, central interval, mode and inclusion probability of every parameter, from a run of it.

        level: of the interval, within (0, 1). Contour's chains count equally, as their weights hold up to a factor.
        Warns where ``identify`` found several modes and chains do not reach one, or do not go from one to another, and
        where R-hat of a parameter is above 1.01, or above the value that so few independent draws may have. Also warns
        where steps half as long give another posterior (``solver_check``), and of what ``residual_check`` finds: errors
        that are correlated in time, equations that lack something, outliers.
        Raises ValueError for a run of other positions, without draws, with chains of different temperatures, with
        weights that are all 0 or lie on one draw, and for a level out of range; TypeError for what is no run.
        """
        theta, shares = self._weighted(run)
        found = estimate(self.names, theta, shares, self.priors, level=level)
        doubts = self._doubts_of_modes(run)
        if not doubts:
            mixing = doubt_of_mixing(self.names, self.parameters(run), shares)
            doubts = [mixing] if mixing else []
        for doubt in doubts + self._doubts_of_steps(run) + self._doubts_of_residuals():
            warn_user(f"estimates: {doubt}")
        return found

    @cached_property
    def residual_check(self) -> ResidualCheck | None:
        """The test of the residuals at the best mode: whether they are correlated in time, and outliers.

        Returns
        -------
        ResidualCheck or None
            Correlations, probabilities and outliers, with ``doubts()`` in words; None for ``derivative`` and for
            likelihoods of users, which have no residuals of states. Each test warns of 1 in 1,000 right fits.

        Notes
        -----
        Of a trajectory likelihood the residuals are about the weightiest mode that ``identify`` found, or else about
        its start; of ``weak`` about the most likely path.
        """
        values = self.prepared.values
        if not hasattr(values, "normal_scores"):
            return self.prepared.residual_check
        plain, modes = self._plain, self._modes_by_weight
        position = modes[0].position if modes else plain.positions(self.usual_start())
        sds = modes[0].sd if modes else 1e-3 * np.maximum(np.abs(position), 1.0)
        moves = np.array([not name.startswith(("sd(", "dispersion(")) for name in self.names])
        parts = residuals_at(values, series_of(self), plain.parameters, position, sds, moves)
        states = tuple(dict.fromkeys(name for one in values.measured() for name in one.quantities))
        return residual_check(states, parts)

    def _doubts_of_modes(self, run: Run) -> list[str]:
        """What is wrong with how the chains of a run share the modes, in words; each replica of the target is one."""
        if len(self.found) < 2:
            return []
        values, sds = self.modes.parameters, self.modes.sd
        apart = int(np.argmax(np.ptp(values, axis=0) / np.maximum(sds.max(axis=0), np.finfo(float).tiny)))
        labels = [f"{self.names[apart]} = {value:.4g}" for value in values[:, apart]]
        replicas = run.replica_draws[:, : run.sampler.n_target_replicas]
        chains = self._plain.positions(self.parameters(replicas)).reshape(-1, replicas.shape[2], self.dim)
        return doubts_of_modes(self._modes_by_weight, chains, labels)

    def solver_check(self, run: Run) -> SolverCheck:
        """Solve up to 1,000 draws of a run again with steps half as long, and compare the energies.

        Parameters
        ----------
        run
            A run of this problem, whose likelihood is ``trajectory``.

        Returns
        -------
        SolverCheck
            Pareto k̂ and effective sample size of the importance weights exp(U − U′) between the energies U with the
            steps of the likelihood and U′ with steps half as long, and the largest difference in nats. ``estimates``
            warns where the effective sample size is below 0.95 of the draws.

        Raises
        ------
        TypeError
            For what is no run.
        ValueError
            For another likelihood, a run of other positions, or one without draws that have a solution.

        Notes
        -----
        Weights near 1 say that the posterior does not depend on the solver where the draws are. Parts of the posterior
        without draws are not seen.

        References
        ----------
        Timonen, Siccha, Bales, Lähdesmäki & Vehtari (2022), An importance sampling approach for reliable and efficient
        inference in Bayesian ordinary differential equation models.
        Vehtari, Simpson, Gelman, Yao & Gabry (2024), Pareto smoothed importance sampling.
        """
        energy = self._solution_energy()
        theta, shares = self._weighted(run)
        temperature = float(run.sampler.arrays["temperatures"].flat[0])
        return solver_check_of(energy, theta, shares, temperature)

    def refined(self) -> "Identification":
        """The same posterior with steps of the solver half as long, in the same positions.

        Returns
        -------
        Identification
            For ``sample``, whose draws may be compared with those of this problem.

        Raises
        ------
        ValueError
            For another likelihood than ``trajectory``, or where the steps become too many.
        """
        energy = self._solution_energy()
        if 2 * energy.n_steps > MAX_STEPS:
            raise ValueError(f"step must leave at most {MAX_STEPS} steps, and half of it leaves {2 * energy.n_steps}")
        return assembled(with_energy(self, energy.with_steps(2)))

    def _solution_energy(self) -> SolutionEnergy:
        """The energy of a trajectory likelihood. Raises ValueError for others."""
        energy = self.prepared.values
        if not isinstance(energy, TrajectoryEnergy | JointEnergy):
            raise ValueError(f"likelihood must be trajectory, whose solutions have steps, in {self.name!r}")
        return energy

    def _doubts_of_steps(self, run: Run) -> list[str]:
        """In words, that steps half as long give another posterior, where they do."""
        if not isinstance(self.prepared.values, TrajectoryEnergy | JointEnergy):
            return []
        try:
            check = self.solver_check(run)
        except ValueError as error:  # of draws that have no solution
            return [str(error)]
        return [] if check.is_fine else [words_of(check)]

    def _doubts_of_residuals(self) -> list[str]:
        """What the residuals contradict, in words."""
        return [] if self.residual_check is None else self.residual_check.doubts()

    def _weighted(self, run: Run) -> tuple[Array, Array | None]:
        """Parameters (n, q) of all draws, and their weights (n,), where there are any."""
        check_instance("run", run, Run)
        theta = self.parameters(run).reshape(-1, self.dim)
        cold = run.sampler.arrays["temperatures"][..., : run.sampler.n_target_replicas]
        if (cold != cold.flat[0]).any():
            raise ValueError(
                f"run must have one temperature for all chains, got {cold.min():g} to {cold.max():g}: their draws have "
                "different laws"
            )
        return theta, shares_of(run)

    def to_datatree(self, run: Run, *, log_likelihood: bool = False) -> Any:
        """A run of it, or one that was loaded, as ``run.to_datatree``, with parameters by name. Needs the extra ``io``.

        log_likelihood: adds the group of this name, which ``arviz.loo`` and ``arviz.compare`` read: ``y`` (chain, draw,
        value), the log densities of ``log_likelihood`` at the draws of ``posterior``, with each value's series, time
        and quantity. These draws must be at temperature 1.
        Raises ValueError for a run of other positions, and with log_likelihood=True as that method does; TypeError for
        what is no run.
        """
        check_instance("run", run, Run)
        check_flag("log_likelihood", log_likelihood)
        if log_likelihood:
            self.prepared.values.measured()  # or an error before others
            self._check_same_problem(run)
            check_temperature(run)
        self._check_run(run)
        tree = replace(run, problem=self).to_datatree()
        if log_likelihood:
            if "posterior" not in tree.children:
                raise ValueError("run must have draws, each chain one with a weight above 0")
            tree[LOG_LIKELIHOOD] = self._log_likelihood_group(tree["posterior"])
        return tree

    def _log_likelihood_group(self, posterior: Any) -> Any:
        """The group of log densities at the draws of the group ``posterior``."""
        measured = self.prepared.values.measured()
        labels = [
            name
            for series, one in zip(series_of(self), measured, strict=True)
            for name in [series.name] * len(one.times)
        ]
        times = np.concatenate([one.times for one in measured])
        quantities = [name for one in measured for name in one.quantities]
        densities = self._log_densities(np.asarray(posterior["x"].values))
        return type(posterior)(log_likelihood_group(densities, labels, times, quantities, posterior.attrs))

    def inclusion(self, run: Run) -> Array:
        """Probability (q,) that each term is present, from a run of it: of priors with a spike; 1 for the others.

        Weights as in ``estimates``. Raises ValueError for a run of other positions, without draws, or whose weights are
        all 0; TypeError for what is no run.
        """
        return inclusion_of(*self._weighted(run), self.priors)


def positions_of(draws: Any, q: int) -> Array:
    """Positions (…, q) of a run or an array."""
    positions = check_real_array("draws", draws.draws if is_a(draws, Run) else draws)
    if positions.ndim == 0 or positions.shape[-1] != q:
        raise ValueError(f"draws must have shape (…, {q}), got {positions.shape}")
    return positions


MIN_EIGENVALUE = 1e-13  # smallest eigenvalue of the posterior's precision, scaled to a unit diagonal


def identify(
    data: Any,
    model: Any,
    *,
    likelihood: Any = "derivative",
    prior: Any = None,
    constraints: Any = None,
    log: Sequence[str] | None = None,
    name: str = "",
    progress: bool | None = None,
    time_limit: float = TIME_LIMIT,
    n_searches: int = 8,
) -> Identification:
    """The posterior of a model's parameters given time series, as a problem for ``sample``.

    data: a ``Series``, or several: experiments, of a trajectory likelihood. model: a ``System``, a ``Library`` (all
    coefficients free) or a ``Model``. likelihood: "derivative", "weak", "trajectory", or one made by
    ``sysid.likelihoods`` with options. prior: one of ``sysid.priors`` for all parameters, or a mapping from names;
    others are flat. constraints: texts such as "sigma > 1 + beta", linear in the parameters, convex regions of them, or
    analytic functions of a tuple of all parameters, ≥ 0 inside: the problem's domain, at whose walls r2SGLD and r2SGHMC
    reflect draws; other samplers ignore it unless given a ``boundary``: ``reflect()``, or ``reject()`` for MALA and
    HMC. log: names of parameters sampled as logarithms; None: those with log-normal priors, and noise scales.
    progress: a line on stderr while a trajectory likelihood searches for start values, or the weak one for paths; None:
    only on a terminal. time_limit: seconds > 0 of that search, less compilation, after which TimeoutError says how far
    it has come; where the fit from the usual parameters has ended by then, that is the start, with a warning. Searches
    for modes and checks that have not ended by then are left out, and a warning names them.
    n_searches: of a trajectory likelihood, how many searches for further modes begin at the best of 256 places drawn
    from the priors and about the likelihood's start; 0: none. Where the residuals are more than twice the data's local
    noise, further searches begin with each parameter at frequencies of the data. Images of modes under changes of sign,
    swaps and periods of the parameters are tried, too. ``Identification.modes`` has what they
    find, and chains start at all of them.
    Law: density ∝ likelihood × prior inside the constraints; at other temperatures T, to the power 1/T.
    The steps of ``trajectory(step=None)`` become shorter until steps half as long change the energy by less than 0.1
    nats, at the modes and at 256 draws about them and of the priors. Where a draw of the priors, or a mode, needs
    shorter steps of rk4 or rk5 than the posterior does, the energy is infinite at parameters for which a step is too
    long.
    Warns of what ``data.check`` finds in the data, and where steps stay too long. With n_searches also where the
    residuals of the best mode are more than three times the data's local noise; where changes of sign or swaps of
    parameters leave the energy as it is; where a parameter with a flat prior has a period; and where the posterior of a
    parameter without a proper prior levels off, so that it is no density.
    Raises TypeError or ValueError before anything runs, naming what is off: also where data and prior together leave a
    direction of parameters undetermined, or a user's function is not analytic at the data.

    >>> import numpy as np
    >>> import sysid
    >>> predators = sysid.systems.lotka_volterra()
    >>> series = sysid.data.simulate(predators, np.linspace(0.0, 10.0, 101), noise=0.01, seed=0)
    >>> problem = sysid.identify(series, predators, likelihood="weak")  # for sample(problem, seed=0)
    >>> problem.names
    ('alpha', 'beta', 'delta', 'gamma')
    """
    chosen = likelihoods.of(likelihood)
    model = model if is_a(model, System) else as_model(model)
    check_progress(progress)
    time_limit = check_number("time_limit", time_limit, above=0.0)
    n_searches = check_count("n_searches", n_searches, at_least=0, below=N_PLACES + 1)
    search_progress = SearchProgress(progress, time_limit)
    with doubts_told("identify", data):
        if isinstance(chosen, Trajectory):
            prepared = chosen.prepare(data, model, search_progress, prior)
        elif isinstance(chosen, Weak):
            prepared = chosen.prepare(data, model, progress_of_paths(progress, time_limit))
        else:
            prepared = chosen.prepare(data, model)
        check_names("parameters", prepared.names)
        priors = check_priors(prior, prepared.names)
        posterior = closed_form(prepared, priors)
    logs = check_log(log, prepared, priors)
    label = check_text("name", name) or f"{model.name} by {likelihood_name(likelihood)}"
    q = len(prepared.names)
    coordinates = Coordinates(logs, np.zeros(q), np.eye(q))
    draft = Identification(
        placeholder(q, label), names=prepared.names, model=model, data=data, prepared=prepared, priors=priors,
        constraints=constraints, coordinates=coordinates, posterior=posterior,
    )  # fmt: skip
    for function in region_and_functions(draft)[1]:
        check_compiles(function, q)
    if isinstance(chosen, Trajectory):
        with search_progress.display():
            search_progress.begin_stage("the search for further modes")
            draft, doubts = searched(draft, chosen, n_searches, search_progress)
        for doubt in doubts:
            warn_user(f"identify: {doubt}")
    return assembled(draft)


def searched(
    draft: Identification, chosen: Trajectory, n_searches: int, progress: SearchProgress
) -> tuple[Identification, list[str]]:
    """``draft`` with the modes that are found and steps that suit them, and what looks wrong with these, in words."""
    has_modes = n_searches > 0 and not any(law.spikes for law in draft.priors)
    time_left = TimeLeft(progress.count)
    draft, doubts = with_checked_steps(draft, chosen, n_searches if has_modes else None, progress, time_left)
    if not has_modes:
        return draft, doubts + time_left.words(progress.time_limit)
    posterior, found = posterior_of(draft, progress), draft.found
    found, periods = time_left.run("periods of angles", lambda: without_periods(posterior, found), (found, ""))
    words = time_left.run("symmetries", lambda: symmetries_in_words(posterior, found), "")
    doubts += [f"{words}. {ONE_SIDE}"] if words else []
    doubts += [periods] if periods else []
    draft = replace(draft, found=found, symmetries=". ".join(filter(None, (words, periods))))
    doubts += doubt_of_no_mode(draft, n_searches, time_left)
    doubts += doubts_of_residuals(posterior, found)
    doubts += time_left.run("tails of the posterior", lambda: doubts_of_tails(posterior, found), [])
    return draft, doubts + time_left.words(progress.time_limit)


def posterior_of(draft: Identification, progress: SearchProgress) -> Posterior:
    """What checks of the posterior need, in positions that are not scaled."""
    theta = draft.usual_start()
    movable = movable_of(draft)
    usual = np.array(theta)
    for k in np.flatnonzero(movable):
        value = draft.system.usual[draft.system.parameters.index(draft.names[k].split("[")[0])]
        usual[k] = value if value > 0.0 or not draft.coordinates.log[k] else theta[k]
    energy = draft.prepared.values
    assert isinstance(energy, TrajectoryEnergy | JointEnergy)
    evaluate = timed(target_of(draft, None).evaluate, TimeLeft(progress.count).check)
    return Posterior(
        evaluate, energy.fitted, draft.coordinates.parameters, draft.names, draft.priors,
        draft.coordinates.log, movable, draft.coordinates.positions(theta), draft.coordinates.positions(usual),
        None if draft.constraints is None else walls_of(draft).contains, progress.count,
    )  # fmt: skip


N_LADDER, N_LADDER_DRAWS = 64, 1_024  # values of one parameter, from so many draws: all but a thousandth of its prior


def prior_ladders(draft: Identification) -> Array:
    """Positions (N_LADDER, q) of each parameter of the system at even quantiles of its prior; nan where it has none."""
    rng, ladders = np.random.default_rng(2), np.full((N_LADDER, draft.dim), np.nan)
    for k in np.flatnonzero(movable_of(draft)):
        law, is_log = draft.priors[k], draft.coordinates.log[k]
        if not law.is_flat and not law.spikes:
            values = law.draws(N_LADDER_DRAWS, rng)
            values = np.log(values[values > 0.0]) if is_log else values
            ladders[:, k] = np.quantile(values, np.linspace(0.0, 1.0, N_LADDER)) if values.size else np.nan
    return ladders


def movable_of(draft: Identification) -> Bools:
    """Which entries (q,) are parameters of the system."""
    return np.array([name.split("[")[0] in draft.system.parameters for name in draft.names])


def doubt_of_no_mode(draft: Identification, n_searches: int, time_left: TimeLeft) -> list[str]:
    """In words, that no mode was found.

    Nothing is said where constraints alone exclude the minimum, as chains then start at the walls.
    """
    if draft.found:
        return []
    if time_left.is_up:
        return [f"no mode was found within time_limit: {STARTS_HERE}"]
    evaluate = timed(target_of(draft, None).evaluate, time_left.check)
    start = draft.coordinates.positions(draft.usual_start())

    def words() -> list[str]:
        contains = None if draft.constraints is None else walls_of(draft).contains
        beyond = None if contains is None else mode_from(evaluate, start, None)
        if beyond is not None:
            coordinates = Coordinates(draft.coordinates.log, beyond.position, beyond.root)
            if coordinates_inside(draft, coordinates) is not None:
                return []
        return [no_mode_in_words(evaluate, start, draft.names, contains=contains, n_searches=n_searches)]

    return time_left.run("why no mode was found", words, [f"no mode was found: {STARTS_HERE}"])


STARTS_HERE = "chains start about the fit from which the search began. Give a larger time_limit"


def with_checked_steps(
    draft: Identification, chosen: Trajectory, n_searches: int | None, progress: SearchProgress, time_left: TimeLeft
) -> tuple[Identification, list[str]]:
    """``draft`` with the modes that searches find (None: no search), and with steps of the solver that suit them.

    Also says, in words, where steps half as long change energies that matter.
    """
    places, first = places_of(draft), draft.coordinates.positions(draft.usual_start())
    contains = None if draft.constraints is None else walls_of(draft).contains
    is_proper = not all(law.is_flat for law in draft.priors)

    def find_modes(evaluate: Evaluate, energy: SolutionEnergy) -> tuple[Mode, ...]:
        if n_searches is None:
            return ()
        found = search_modes(evaluate, first, places, n_searches=n_searches, contains=contains, count=progress.count)
        posterior = posterior_of(with_energy(draft, energy), progress)._replace(evaluate=evaluate)
        found = time_left.run("the search for further modes", lambda: with_frequencies(posterior, found), found)
        return with_images(posterior, found, progress.evaluations) if found else found

    energy: Any = draft.prepared.values
    posterior = SteppedPosterior(
        energy, lambda energy: target_of(with_energy(draft, energy), None).evaluate,
        draft.coordinates.parameters, draft.coordinates.positions, find_modes, first,
        places[: N_PLACES // 2 if is_proper else 0], places[N_PLACES // 2 :], prior_ladders(draft),
        movable_of(draft), time_left.check,
    )  # fmt: skip
    checked = checked_steps(posterior, may_refine=chosen.step is None)
    at = draft.coordinates.parameters(checked.at)
    if checked.is_late:
        time_left.left_out.append("the comparison of steps")
    is_fine = checked.is_fine or math.isnan(checked.change)  # nan: nothing was compared
    doubts = [] if is_fine else [steps_in_words(checked, draft.names, at, chosen.step)]
    return replace(with_energy(draft, checked.energy), found=checked.modes), doubts


def with_energy(draft: Identification, energy: Any) -> Identification:
    """``draft`` with another energy of its likelihood, a ``SolutionEnergy``."""
    prepared = draft.prepared._replace(
        kernel=energy.kernel, numbers=energy.numbers, work_rows=energy.work_rows, values=energy
    )
    return replace(draft, prepared=prepared)


def places_of(draft: Identification) -> Array:
    """Positions (n, q) at which searches may begin, half of them drawn from the priors, half about the usual start.

    Parameters without a prior are drawn as the usual ones times a log-normal factor, of sd 1. Initial states and noise
    without a prior stay as they are: they follow parameters in a few steps.
    """
    rng, other_rng = (np.random.default_rng(stream) for stream in range(2))
    usual = draft.usual_start()
    center, half_widths = draft.coordinates.positions(usual), spread_about(draft, usual)
    moves = np.array([not law.is_flat or "(" not in name for law, name in zip(draft.priors, draft.names, strict=True)])
    places = center + moves * half_widths * rng.uniform(-1.0, 1.0, (N_PLACES, draft.dim))
    for k, law in enumerate(draft.priors):
        if not law.is_flat:
            values = law.draws(N_PLACES // 2, rng)
            allowed = values > 0.0 if draft.coordinates.log[k] else np.isfinite(values)
            values = np.log(np.where(allowed, values, 1.0)) if draft.coordinates.log[k] else values
            places[: N_PLACES // 2, k] = np.where(allowed, values, places[: N_PLACES // 2, k])
        elif moves[k] and center[k] != 0.0:
            factors = other_rng.standard_normal(N_PLACES // 2)
            places[: N_PLACES // 2, k] = (
                center[k] + factors if draft.coordinates.log[k] else center[k] * np.exp(factors)
            )
    return np.asarray(places)


@contextmanager
def doubts_told(function: str, data: Any) -> Iterator[None]:
    """Add what ``data.check`` finds to a ValueError within; where none is raised, warn of it in the function's name."""
    doubts = doubts_of(data)
    try:
        yield
    except ValueError as error:
        if not doubts:
            raise
        raise ValueError(f"{error}. What looks wrong in the data: {'; '.join(doubts)}") from error
    for doubt in doubts:
        warn_user(f"{function}: {doubt}")


def own_code(function: Any) -> tuple[Any, Any]:
    """Digests of what a target's function runs and reads, but for this distribution's own code, whose bits may change.

    Two models may have the same numbers.
    """
    described = describe_function(function)
    own = {name: digest for name, digest in described["code"].items() if not digest.startswith("bits ")}
    return own, described["values"]


def doubts_of(data: Any) -> list[str]:
    """What ``data.check`` finds in the series, in words."""
    given = list(data) if isinstance(data, list | tuple) else [data]
    series = [one for one in given if is_a(one, Series)]
    many = len(series) > 1
    labels = [f"experiment {one.name!r} ({e}): " if many else "" for e, one in enumerate(series)]
    return [f"{label}{doubt}" for label, one in zip(labels, series, strict=True) for doubt in check(one)]


def likelihood_name(likelihood: Any) -> str:
    """The name of a likelihood."""
    return likelihood if isinstance(likelihood, str) else type(likelihood).__name__.lower()


def placeholder(q: int, name: str) -> Target:
    """A target that only carries its name and dimension, until ``assembled`` makes the real one."""
    return Target(name, q, quadratic_block)


def must_be_positive(prepared: Prepared, priors: tuple[Prior, ...]) -> Bools:
    """Which parameters (q,) are > 0, for the likelihood or for their prior."""
    return np.array([p or law.is_positive for p, law in zip(prepared.positive, priors, strict=True)])


def check_log(log: Any, prepared: Prepared, priors: tuple[Prior, ...]) -> Bools:
    """Which parameters are sampled as logarithms (q,). Raises ValueError for names that are none."""
    if log is None:
        return must_be_positive(prepared, priors)
    chosen = check_names("log", log, at_least=0)
    for label in chosen:
        if label not in prepared.names:
            raise ValueError(f"log must name parameters ({', '.join(prepared.names)}), got {shown(label)}")
    wanted = np.array([label in chosen for label in prepared.names])
    return np.asarray(wanted | np.array(prepared.positive))


def closed_form(prepared: Prepared, priors: tuple[Prior, ...]) -> Gaussian | None:
    """The posterior where it is Gaussian. Raises ValueError where data and priors leave a direction undetermined."""
    if prepared.quadratic is None:
        return None
    mean, precision, _ = prepared.quadratic
    prior_precision = np.array([law.scale**-2 if law.kind == GAUSSIAN else 0.0 for law in priors])
    proper = np.array([not law.is_flat for law in priors])
    total = precision + np.diag(
        np.where(proper & (prior_precision == 0.0), np.diag(precision).max() * 1e-6 + 1e-300, prior_precision)
    )
    scale = np.sqrt(np.where(np.diag(total) > 0.0, np.diag(total), 1.0))
    values, vectors = np.linalg.eigh(total / np.outer(scale, scale))
    if values[0] < MIN_EIGENVALUE:
        involved = np.flatnonzero(np.abs(vectors[:, 0]) > 0.1)
        joined = ", ".join(prepared.names[k] for k in involved[:8])
        raise ValueError(
            f"data and prior must determine all parameters, but leave a direction of {joined} free (eigenvalue "
            f"{values[0]:.1e} of the scaled precision, which must be > {MIN_EIGENVALUE:g}): leave out terms that are "
            f"alike or constant, or give them a proper prior"
        )
    if not all(law.is_quadratic for law in priors):
        return None
    total = precision + np.diag(prior_precision)
    covariance = np.linalg.inv(total / np.outer(scale, scale)) / np.outer(scale, scale)
    location = np.array([law.location for law in priors])
    centre = mean + covariance @ (prior_precision * (location - mean))
    return Gaussian(centre, 0.5 * (covariance + covariance.T))


def assembled(draft: Identification) -> Identification:
    """``draft`` with the target, domain and truth that its parts make in its coordinates."""
    target = target_of(draft, spread_of(draft))
    region, functions = region_and_functions(draft)
    if functions:
        walls = (np.zeros((0, draft.dim)), np.zeros(0)) if region is None else region.walls
        domain = implicit_domain(functions, draft.names, draft.coordinates, walls)
        return replace(draft, target=target, domain=domain, truth=None)
    if region is None:
        return replace(draft, target=target, domain=None, truth=target.truth)
    problem = constrained(target, region)
    return replace(draft, target=target, domain=problem.domain, truth=problem.truth)


def target_of(draft: Identification, spread: Spread | None) -> Target:
    """The target in the coordinates of ``draft``."""
    q, prepared, coordinates = draft.dim, draft.prepared, draft.coordinates
    table = prior_table(draft.priors)
    first = N_HEADER + 2 * q + q * q
    header = [
        first,
        first + table.size,
        float(coordinates.is_scaled),
        *coordinates.log.astype(float),
        *coordinates.shift,
    ]
    numbers = np.concatenate([header, coordinates.root.ravel(), table, prepared.numbers])
    return Target(
        draft.target.name, q, block_of(prepared.kernel), numbers, prepared.work_rows + 2 * q,
        truth_of(draft), stochastic=prepared.stochastic, spread=spread,
    )  # fmt: skip


def region_and_functions(draft: Identification) -> tuple[Convex | None, list[Any]]:
    """The constraints that are linear, as a region of positions, and those that are functions of parameters."""
    positive = must_be_positive(draft.prepared, draft.priors)
    region = region_of(draft.constraints, draft.names, draft.coordinates, positive)
    return region, [c for c in as_list(draft.constraints) if callable(c) and not isinstance(c, Convex)]


def walls_of(draft: Identification) -> Walls:
    """All constraints, in positions."""
    region, functions = region_and_functions(draft)
    normals, offsets = (np.zeros((0, draft.dim)), np.zeros(0)) if region is None else region.walls
    return Walls(normals, offsets, functions, draft.coordinates)


def spread_of(draft: Identification) -> Spread:
    """Where chains start, in positions: within two standard deviations of the modes, where these are known.

    Scaled: ±2, as the covariance is about the identity. Else about the Gaussian posterior's mean; or about the
    likelihood's start, half as far as a parameter is large (a logarithm: ½), and at most two of its prior's sds.
    Where that middle is outside the constraints: about the mode inside.
    """
    coordinates, truth = draft.coordinates, truth_of(draft)
    if len(draft.found) > 1:
        return spread_of_modes(draft.found, coordinates, 2.0)
    if coordinates.is_scaled:
        return Spread(2.0)
    if draft.found and draft._centre() is draft.found[0].position:
        return spread_of_modes(draft.found, coordinates, 2.0)
    usual = draft.usual_start()
    spread = Spread(spread_about(draft, usual), coordinates.positions(usual)) if truth is None else truth.spread
    if draft.constraints is None or walls_of(draft).contains(np.array([spread.center]))[0]:
        return spread
    inner = coordinates_inside(draft, unconstrained_coordinates(draft))
    if inner is None:
        return spread
    return Spread(2.0 * np.linalg.norm(inner.root, axis=1), inner.shift)


def spread_about(draft: Identification, usual: Array) -> Array:
    """Half widths (q,) of a box about usual parameters, in positions that are not scaled."""
    coordinates = draft.coordinates
    half_widths = np.where(coordinates.log | (usual == 0.0), 0.5, 0.5 * np.abs(usual))
    for k, law in enumerate(draft.priors):
        if law.kind in ((LOG_NORMAL,) if coordinates.log[k] else (GAUSSIAN, LAPLACE)):
            half_widths[k] = min(half_widths[k], 2.0 * law.scale)
    return np.asarray(half_widths)


def spread_of_modes(modes: tuple[Mode, ...], coordinates: Coordinates, n_sds: float) -> Spread:
    """Boxes of so many standard deviations about each mode, shared by the modes' weights, in positions."""
    inverse = np.linalg.inv(coordinates.root)
    centres = np.array([inverse @ (mode.position - coordinates.shift) for mode in modes])
    sds = np.array([np.linalg.norm(inverse @ mode.root, axis=1) for mode in modes])
    return Spread(n_sds * sds, centres, [mode.weight for mode in modes])


def truth_of(draft: Identification) -> GaussianTruth | None:
    """The truth in positions, without constraints, where the posterior is Gaussian."""
    posterior, coordinates = draft.posterior, draft.coordinates
    if posterior is None or coordinates.log.any() or draft.prepared.quadratic is None:
        return None
    mean, precision, lowest = draft.prepared.quadratic
    gap = posterior.mean - mean
    lowest += 0.5 * float(gap @ precision @ gap)
    lowest += sum(
        0.5 * float((m - law.location) / law.scale) ** 2
        for m, law in zip(posterior.mean, draft.priors, strict=True)
        if law.kind == GAUSSIAN
    )
    inverse = np.linalg.inv(coordinates.root)
    covariance = inverse @ posterior.covariance @ inverse.T
    log_determinant = float(np.linalg.slogdet(2.0 * np.pi * covariance)[1])
    covariance = 0.5 * (covariance + covariance.T)
    return GaussianTruth(coordinates.positions(posterior.mean), covariance, 0.5 * log_determinant - lowest, lowest)


def scaled_coordinates(problem: Identification, mode: Any, root: Any) -> Coordinates:
    """Coordinates about ``mode`` with the square root ``root``, as ``Identification.scaled`` has them.

    Raises ValueError where one is given alone, or does not fit.
    """
    if (mode is None) != (root is None):
        given = shown(root if mode is None else mode)
        raise ValueError(f"mode and root must be given both or neither, got {given} alone")
    q, plain = problem.dim, problem._plain
    if mode is not None:
        return Coordinates(plain.log, plain.positions(checked_mode(mode, plain.log)), checked_root(root, q))
    coordinates = unconstrained_coordinates(problem)
    if problem.constraints is None:
        return coordinates
    walls = walls_of(replace(problem, coordinates=coordinates))
    if walls.contains(np.zeros((1, q)))[0]:
        return coordinates
    return coordinates_inside(problem, coordinates) or coordinates


def unconstrained_coordinates(problem: Identification) -> Coordinates:
    """Coordinates about the posterior's mode, whatever the constraints: in closed form, or by Laplace."""
    plain = problem._plain
    if problem.posterior is not None and not plain.log.any():
        return Coordinates(
            plain.log, problem.posterior.mean, np.asarray(np.linalg.cholesky(problem.posterior.covariance))
        )
    start, target = problem._centre(), target_of(replace(problem, coordinates=plain), None)
    if not np.isfinite(target.evaluate(start[None])[0][0]):
        raise ValueError(
            f"mode must be given for {problem.name!r}, whose energy is infinite at its start, "
            f"{values_in_words(problem.names, plain.parameters(start))}, and of which no mode is known: give mode and "
            "root, or a System with usual parameters nearer to the data's"
        )
    found = laplace(target, start, names=problem.names)
    if problem.found:
        best = problem._modes_by_weight[0]
        if best.is_of_start and found_elsewhere(best, found.position):
            found = laplace(target, best.position, names=problem.names)
    return Coordinates(plain.log, *found)


def found_elsewhere(mode: Mode, position: Array) -> bool:
    """Whether a search that began where the one to ``mode`` did ended at another minimum, SAME sds away or more."""
    return bool(mode.distances(position[None])[0] > SAME)


def coordinates_inside(problem: Identification, coordinates: Coordinates) -> Coordinates | None:
    """Coordinates about the mode inside the constraints, sought from the middle of ``coordinates``; None: not found."""
    scaled = replace(problem, coordinates=coordinates)
    inner = mode_inside(target_of(scaled, None).evaluate, walls_of(scaled), np.zeros(problem.dim))
    if inner is None:
        return None
    shift, root = coordinates.shift + coordinates.root @ inner.position, coordinates.root @ inner.root
    return Coordinates(coordinates.log, shift, np.asarray(np.linalg.cholesky(root @ root.T)))


def checked_mode(mode: Any, log: Bools) -> Array:
    """``mode`` as parameters (q,), > 0 where ``log``."""
    values = check_array("mode", mode)
    if values.shape != log.shape or (values[log] <= 0.0).any():
        raise ValueError(f"mode must have shape {log.shape}, and > 0 where logarithms are sampled, got {shown(mode)}")
    return values


def checked_root(root: Any, q: int) -> Array:
    """``root`` as an invertible matrix (q, q)."""
    factor = check_array("root", root)
    if factor.shape != (q, q) or np.linalg.matrix_rank(factor) < q:
        raise ValueError(f"root must be an invertible matrix ({q}, {q}), got {shown(root)}")
    size = float(np.abs(factor).max())
    if not 1e-100 < size < 1e100:  # else its inverse or a covariance is none in floats
        raise ValueError(f"root must have a largest entry > 1e-100 and < 1e+100, got {size:g}")
    return factor
