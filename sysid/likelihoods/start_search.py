"""Start values of the trajectory likelihood: smoothed states, matched parameters, then energies of fewer segments."""

import functools
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy

from toolkit._compiler import is_watched
from toolkit.errors import warn_user

from ..arrays import Array, Bools, Integers
from ..data.series import Series, with_inputs
from ..model import Model
from ..modes.guess_fit import Guesses
from ..modes.laplace import descend
from ..modes.steps.step_check import searched_with_short_steps, settled_with_short_steps
from ..solvers.implicit import IMPLICIT_ORDERS
from ..solvers.integrate import solve
from ..solvers.step_length import MAX_STEPS
from ..solvers.stiff import jacobian_pointer
from ..systems.inputs import Inputs, Schedule, driven, schedule_of
from ..systems.user_systems import check_analytic
from .error_laws import NORMAL, ErrorModel
from .observations import NOTHING_ELSE, Observation, check_observation
from .trajectory_kernel import Equations, Segments, TrajectoryEnergy, steps_between, trajectory_energy

TIME_LIMIT = 600.0  # s


class SearchProgress:
    """Evaluations of a search, and the seconds since the first ended.

    enabled: a line on stderr; None: only on a terminal. time_limit: seconds, > 0. what: is searched for. advice: what
    to give where the time is up.
    """

    def __init__(
        self,
        enabled: bool | None = False,
        time_limit: float = TIME_LIMIT,
        *,
        what: str = "start values",
        advice: str = "a larger time_limit, or a System with usual parameters nearer to the data's, or a longer step, "
        "segments, or fewer data",
    ) -> None:
        self._what, self._advice = what, advice
        self._enabled = enabled is True or (enabled is None and is_watched())
        self.time_limit, self._start_time = time_limit, math.inf
        self._bar: Any = None
        self.evaluations, self._lowest = 0, math.inf
        self._stage, self._experiment = "", ""

    @contextmanager
    def display(self) -> Iterator[None]:
        """Show the line, where it is wanted, and take it away at the end."""
        if self._enabled:
            from tqdm import tqdm

            self._bar = tqdm(desc=self._what, unit=" evaluations", leave=False)
        try:
            yield
        finally:
            if self._bar is not None:
                self._bar.close()

    def begin_experiment(self, experiment: str) -> None:
        """Begin the search for one of several experiments, in words; "" for all together."""
        self._experiment = f"{experiment}, " if experiment else ""

    def begin_stage(self, stage: str) -> None:
        """Begin a stage of the search, in words; its lowest energy is not comparable with that of another."""
        self._stage, self._lowest = self._experiment + stage, math.inf
        if self._bar is not None:
            self._bar.set_description_str(f"{self._what}, {self._stage}")

    def count(self, energies: Array) -> None:
        """Count evaluations with ``energies`` (n,). Raises TimeoutError, with how far it has come, after the limit."""
        now = time.perf_counter()
        self._start_time = min(self._start_time, now)
        self.evaluations += len(energies)
        finite = energies[np.isfinite(energies)]
        self._lowest = min(self._lowest, *finite.tolist(), math.inf)
        if self._bar is not None:
            self._bar.set_postfix_str(f"lowest energy {self._lowest:.6g}", refresh=False)
            self._bar.update(len(energies))
        if now - self._start_time > self.time_limit:
            found = f"the lowest energy is {self._lowest:.6g}" if self._lowest < math.inf else "no energy is finite yet"
            raise TimeoutError(
                f"the search for {self._what} has not ended within time_limit = {self.time_limit:g} s, after "
                f"{self.evaluations} evaluations: it is in {self._stage}, where {found}. Give {self._advice}"
            )


def progress_of_paths(enabled: bool | None, time_limit: float) -> SearchProgress:
    """The progress of a search by the weak likelihood."""
    advice = "a larger time_limit, fewer terms, or fewer data"
    return SearchProgress(enabled, time_limit, what="coefficients and paths", advice=advice)


N_SUBINTERVALS = 4  # of each interval between data, for its integral by Simpson's rule
SIMPSON = np.array([1.0, 4.0, 2.0, 4.0, 1.0]) / 12.0
MIN_SPLINE_DATA, MAX_SMOOTHED_DATA = (
    6,
    200,
)  # fewer data: linear interpolation; more: a least-squares spline
KNOT_SPACINGS = (2, 3, 4, 6, 9, 13, 20, 30, 45)


def smoothed_states(times: Array, values: Array, fallback: Array, *, logarithmic: bool) -> tuple[Array, Array]:
    """States at ``times`` (n, dim) and at five points of every interval (n − 1, 5, dim), by smoothing splines.

    The splines' roughness is that of generalised cross-validation; with few data they are straight lines. A state that
    was never measured is taken to stay at ``fallback``.
    """
    fine = times[:-1, None] + np.diff(times)[:, None] * np.linspace(0.0, 1.0, N_SUBINTERVALS + 1)
    at_times, between = np.empty(values.shape), np.empty((*fine.shape, values.shape[1]))
    for d in range(values.shape[1]):
        measured = ~np.isnan(values[:, d])
        if not measured.any():
            at_times[:, d], between[..., d] = fallback[d], fallback[d]
            continue
        t = (times - times[0]) / (times[-1] - times[0]) * len(times)
        fine_times = (fine - times[0]) / (times[-1] - times[0]) * len(times)
        data = np.log(values[measured, d]) if logarithmic else values[measured, d]
        curve = smooth_curve(t[measured], data)
        change = np.exp if logarithmic else np.asarray
        at_times[:, d], between[..., d] = change(curve(t)), change(curve(fine_times))
    return at_times, between


def smooth_curve(t: Array, data: Array) -> Any:
    """A curve near ``data`` (n,) at ``t`` (n,), as smooth as generalised cross-validation has it (Wahba 1990)."""
    if t.size < MIN_SPLINE_DATA:
        return functools.partial(np.interp, xp=t, fp=data)
    if t.size <= MAX_SMOOTHED_DATA:
        return scipy.interpolate.make_smoothing_spline(t, data)
    curves: list[tuple[float, int, Any]] = []
    # A wider spacing of the knots is a smoother curve. This costs O(n), less than a smoothing spline's own choice.
    for spacing in KNOT_SPACINGS:
        knots = np.concatenate([np.full(4, t[0]), t[spacing:-spacing:spacing], np.full(4, t[-1])])
        curve = scipy.interpolate.make_lsq_spline(t, data, knots)
        misfit = float(((curve(t) - data) ** 2).sum())
        curves.append((misfit / (1.0 - (knots.size - 4) / t.size) ** 2, len(curves), curve))
    return min(curves)[2]


def matched_parameters(model: Model, schedule: Schedule, data: Series, between: Array, known: Array) -> Array:
    """Parameters (n,) whose right-hand side, integrated over each interval, comes nearest to the states' increments.

    between: states at five points of each interval (intervals, 5, dim). known: (n,) values of those that are not free,
    else nan.
    """
    n_intervals, points, dim = between.shape
    times = schedule.times
    fine = times[:-1, None] + np.diff(times)[:, None] * np.linspace(0.0, 1.0, points)
    variables = with_inputs(data, model.library.inputs, fine.ravel(), between.reshape(-1, dim))
    terms = model.library.evaluate(variables).reshape(n_intervals, points, -1)
    integrals = np.einsum("ijk,j->ik", terms, SIMPSON) * np.diff(times)[:, None]
    increments = between[:, -1] - between[:, 0] - schedule.doses[:-1] - integrals @ model.constant
    design = np.einsum("ik,pke->iep", integrals, model.directions)
    scale = 1.0 / np.maximum(np.abs(increments).mean(axis=0), 1e-300)
    rows = (design * scale[:, None]).reshape(-1, len(model.parameters))
    wanted, is_known = (increments * scale).ravel(), ~np.isnan(known)
    if is_known.any():
        wanted, rows = wanted - rows[:, is_known] @ known[is_known], rows[:, ~is_known]
    size = np.maximum(np.abs(rows).max(axis=0), 1e-300)
    solution = np.linalg.lstsq(rows / size, wanted, rcond=1e-10)[0]
    found = np.array(known)
    found[~is_known] = solution / size
    return found


class EnergyFunction(Protocol):
    """What is minimised: the energy of one series, or of several experiments."""

    @property
    def positive(self) -> tuple[bool, ...]:
        """Which θ must be > 0."""

    @property
    def numbers(self) -> Array:
        """The data and what else the kernel reads."""

    def evaluate(self, theta: Array) -> tuple[Array, Array]:
        """Energy (n,) and dU/dθ (n, q) at ``theta`` (n, q)."""


def minimised(
    energy_function: EnergyFunction,
    theta: Array,
    floor: Array,
    *,
    n_iterations: int,
    fixed: Bools | None = None,
    progress: SearchProgress | None = None,
) -> tuple[Array, float]:
    """A θ of lower energy than ``theta`` where one is found, and its energy.

    Parameters that must be positive are moved by logarithms.
    floor: where > 0, a soft lower limit of that parameter, for energies without a lower bound. fixed: (q,) which do not
    move.
    progress: counts the evaluations, and raises TimeoutError after its limit.
    """
    positive = np.array(energy_function.positive)

    def evaluate(points: Array) -> tuple[Array, Array]:
        theta_at = np.where(positive, np.exp(np.clip(points, -300.0, 300.0)), points)
        energy, slope = energy_function.evaluate(theta_at)
        if progress is not None:
            progress.count(energy)
        barrier = (np.divide(floor, theta_at, out=np.zeros_like(theta_at), where=floor > 0.0)) ** 2
        barrier = np.where(np.isfinite(energy)[:, None], barrier * len(energy_function.numbers), 0.0)
        return energy + barrier.sum(axis=1), np.where(positive, theta_at * slope, slope) - 2.0 * barrier

    start = np.where(positive, np.log(np.where(positive, theta, 1.0)), theta)
    if fixed is None or not fixed.any():
        position, _, _ = descend(evaluate, start, n_iterations=n_iterations)
    else:
        free = ~fixed

        def evaluate_free(points: Array) -> tuple[Array, Array]:
            every = np.tile(start, (len(points), 1))
            every[:, free] = points
            energy, slope = evaluate(every)
            return energy, slope[:, free]

        position = np.array(start)
        position[free], _, _ = descend(evaluate_free, start[free], n_iterations=n_iterations)
    found = np.where(positive, np.exp(np.where(positive, position, 0.0)), position)
    (energy_before, energy_after), _ = energy_function.evaluate(np.array([theta, found]))
    return (found, float(energy_after)) if np.isfinite(energy_after) else (theta, float(energy_before))


STEP_TOLERANCE = 1e-6  # of a step and half of it, over one interval, in units of the states' spread
MIN_NOISE = 1e-6  # of a guess, in the same units
FIRST_NOISE_FACTOR = 3e4  # in units of the least
GUESSED_SEGMENTS = 10
SMALLEST_COUNT = 0.5  # in place of a count of 0, where its logarithm is taken for a guess
MIN_DISPERSION = 1e-2  # of a guess
MANY_STEPS, MANY_STABLE_STEPS = 100_000, 10_000  # more steps, and more for stability alone: a stiff system
STABILITY_LIMIT = 2.8  # of step × rate, for explicit methods of order 4
MIN_LIMIT = 1e6  # of states, where no limit is given
SIZES_TO_LIMIT = 1e3  # no law of errors has such values beside the data, and overshoots of good solutions are less
MAX_LIMIT = 1e100  # whose squares are still numbers
N_CHECKED = 24  # rows of the data at which derivatives are compared with differences


@dataclass(frozen=True)
class TrajectorySettings:
    """How states become data, and how a solution is computed: the arguments of ``trajectory``, checked."""

    errors: str
    noise: str | tuple[float, ...]
    start: str | tuple[float, ...]
    method: str
    step: float | None
    segments: int
    gap: float
    limit: float | None
    own: tuple[str, ...] = ()
    known: tuple[tuple[str, tuple[float, ...]], ...] = ()
    dof: float = 4.0
    observation: Observation = NOTHING_ELSE

    @property
    def counts(self) -> bool:
        """Whether data are counts."""
        return self.errors in ("poisson", "negative_binomial")

    @property
    def free_scale(self) -> bool:
        """Whether each state has a free standard deviation or dispersion."""
        return self.noise == "free" and self.errors != "poisson"

    def error_model(self, sd: Array, free: bool, observed: Bools) -> ErrorModel:
        """The law of the errors, with standard deviations or dispersions ``sd`` (dim,) where these are not free."""
        law = NORMAL if self.errors in ("gaussian", "lognormal") else self.errors
        return ErrorModel(self.errors == "lognormal" or self.counts, sd, free, observed, law, self.dof)


class StartSearch:
    """A search for start values: smoothed states, matched parameters, a step size, then fewer and fewer segments.

    known: (n_parameters,) values of the parameters that are not free, else nan; None: all are free.
    is_dosed: whether this experiment, or one with the same kernel, has doses.
    """

    told = False  # of stiffness

    def __init__(
        self,
        settings: TrajectorySettings,
        equations: Equations,
        data: Series,
        values: Array,
        progress: SearchProgress,
        known: Array | None = None,
        *,
        is_dosed: bool = False,
    ) -> None:
        self.progress, self.is_dosed = progress, is_dosed
        self.known = np.full(equations.system.n_parameters, np.nan) if known is None else known
        self.settings, self.equations = settings, equations
        self.system = equations.system
        self.schedule = schedule_of(self.system, data.inputs, data.times)
        self.times = self.schedule.times
        self.is_of_data: Bools = np.isin(self.times, data.times)
        dim = self.system.dim
        self.observed: Bools = np.asarray(~np.isnan(values).all(axis=0))
        self.logarithmic = settings.errors == "lognormal" or settings.counts
        self.initial = self._first_state(values)
        self.inputs = data.inputs
        self.values = np.full((len(self.times), values.shape[1]), np.nan)
        self.values[self.is_of_data] = values
        if settings.start == "fixed":
            self.values[0] = np.nan  # what is taken for exact is not data
        unmeasured = np.append(self.system.start, np.ones(len(equations.observation)))
        self.smoothed, between = smoothed_states(
            self.times, self._without_zeros(self.values), unmeasured, logarithmic=self.logarithmic
        )
        self.states, between = self.smoothed[:, :dim], between[..., :dim]
        usual_path = None
        if len(equations.observation):  # states that are seen through functions alone follow the usual solution
            usual_path = self._usual_path(data.inputs)
            self.states = np.where(self.observed[:dim], self.states, usual_path)
        self.limit = self._limit(values, usual_path)
        self.signed = self._follow_usual_path(data.inputs)
        self.scale = np.maximum(self.smoothed.std(axis=0), 1e-3 * np.abs(self.smoothed).max(axis=0))
        self.scale = np.where(self.scale > 0.0, self.scale, 1.0)
        self.spread = self.scale[:dim]
        self.sd = self._known_deviations(data)
        if equations.model is not None and self.observed[:dim].all():
            self.parameters = matched_parameters(equations.model, self.schedule, data, between, self.known)
        else:
            self.parameters = self._with_known(self.system.usual)
        self._check_derivatives()
        self.step = self._converged_step() if settings.step is None else settings.step

    def run(self) -> tuple[TrajectoryEnergy, Array]:
        """The energy asked for, and the θ (q,) of lowest energy that was found; a step that is not given is checked."""
        return self.searched() if self.settings.step is not None else searched_with_short_steps(self)

    def searched(self) -> tuple[TrajectoryEnergy, Array]:
        """The energy with this step, and the θ (q,) of lowest energy that was found."""
        # Few data may lie on their smoothed curve; a search that starts from too small a noise takes many steps.
        floor = self._noise_floor()
        parameters = self.parameters
        noise = self._guessed_scales(np.maximum(self._guessed_noise(), FIRST_NOISE_FACTOR * floor)[self.observed])
        free = self.settings.free_scale
        n_segments, theta = 0, np.zeros(0)
        stages = self._stages()
        for k, (segments, gap) in enumerate(stages, 1):
            self.progress.begin_stage(f"stage {k} of {len(stages)} ({segments} segment{'s' * (segments > 1)})")
            energy_function, rows = self._energy_of_segments(segments, gap)
            if segments != n_segments:
                starts = self.states[rows[self.initial is not None :]].ravel()
                theta = self._first_finite(energy_function, parameters, np.concatenate([starts, noise if free else []]))
            n_segments = segments
            theta, energy = self._minimised(energy_function, theta, 60)
            if not np.isfinite(energy):
                raise ValueError(
                    "data must be near a solution from some parameters, but those found from the data's smoothed "
                    f"slopes ({', '.join(f'{v:.3g}' for v in parameters)}) give none within ±{self.limit:g}: "
                    "take more segments, or a higher limit"
                )
            parameters = theta[: self.system.n_parameters]
        return energy_function, theta

    def stand_in(self) -> tuple[TrajectoryEnergy, Array]:
        """The energy asked for, and the usual parameters with starts at the data, where no search ends."""
        energy_function, _ = self._energy_of_segments(self.settings.segments, self.settings.gap)
        return energy_function, self._usual_thetas()[-1]

    def guesses(self) -> Guesses:
        """The usual parameters with the system's start, and with smoothed data as the start of measured states.

        Only one of them is tried where all states are measured: that of lower energy.
        """
        self.progress.begin_stage("the fit from the usual parameters")
        energy_function, _ = self._energy_of_segments(self.settings.segments, self.settings.gap)
        thetas = [theta for theta in self._usual_thetas() if is_finite(energy_function, theta)]
        if self.observed[: self.system.dim].all() and len(thetas) > 1:
            thetas = [min(thetas, key=lambda theta: energy_function.evaluate(theta)[0][0])]
        floor = self.lower_limits(thetas[0].size) if thetas else np.zeros(0)
        return Guesses(energy_function, thetas, floor)

    def settled(self, guesses: Guesses, theta: Array) -> tuple[TrajectoryEnergy, Array]:
        """The energy with steps that suit θ, where no step is given, and θ at its minimum."""
        if self.settings.step is not None:
            return guesses.energy, theta
        return settled_with_short_steps(guesses.energy, theta, self._minimised)

    def energy_for(self, theta: Array) -> TrajectoryEnergy:
        """The energy asked for, whose steps of fixed length do not depend on θ."""
        return self._energy_of_segments(self.settings.segments, self.settings.gap)[0]

    def _usual_thetas(self) -> list[Array]:
        """θ (q,) of the usual parameters: from the system's start, and for one segment from the data where measured.

        Further segments begin on the solution from the system's start.
        """
        noise = np.maximum(self._guessed_noise(), FIRST_NOISE_FACTOR * self._noise_floor())[self.observed]
        scales = self._guessed_scales(noise) if self.settings.free_scale else np.zeros(0)
        rows, dim = self._first_rows(self.settings.segments), self.system.dim
        starts = [self._usual_path(self.inputs)[rows]] if len(rows) > 1 else [self.system.start[None]]
        if len(rows) == 1 and self.initial is None:
            starts.append(np.where(self.observed[:dim], self.states[0], self.system.start)[None])
        usual = self._with_known(self.system.usual)
        return [np.concatenate([usual, path[int(self.initial is not None) :].ravel(), scales]) for path in starts]

    def _minimised(self, energy_function: TrajectoryEnergy, theta: Array, n_iterations: int) -> tuple[Array, float]:
        """θ of lower energy, and that energy; parameters that are known stay."""
        fixed = np.append(~np.isnan(self.known), np.zeros(theta.size - len(self.known), np.bool_))
        return minimised(
            energy_function, theta, self.lower_limits(theta.size), n_iterations=n_iterations, fixed=fixed,
            progress=self.progress,
        )  # fmt: skip

    def _guessed_scales(self, noise: Array) -> Array:
        """Standard deviations, or dispersions of counts: the variance of logarithms, less that of Poisson's law."""
        if not self.settings.counts:
            return noise
        poisson = (1.0 / self.smoothed[:, self.observed]).mean(axis=0)
        return np.asarray(np.maximum(noise**2 - poisson, MIN_DISPERSION))

    def lower_limits(self, q: int) -> Array:
        """Soft lower limits (q,) of θ: of free standard deviations, else 0."""
        limits = np.zeros(q)
        if self.settings.free_scale:
            limits[q - self.observed.sum() :] = self._noise_floor()[self.observed]
        return limits

    def _with_known(self, parameters: Array) -> Array:
        """``parameters`` (n_parameters,) with those that are known at their values."""
        return np.where(np.isnan(self.known), parameters, self.known)

    def _check_derivatives(self) -> None:
        """Raise ValueError where a user's function is not analytic at the data, which would look like bad data."""
        model, observation = self.equations.model, self.equations.observation
        is_ours = model is not None and all(term.own is None for term in model.library.terms)
        if is_ours and not len(observation):
            return
        rows = np.unique(np.linspace(0.0, len(self.times) - 1, N_CHECKED).round().astype(np.int64))
        points = np.concatenate([self.states[rows], np.tile(self.parameters, (len(rows), 1))], axis=1)
        points = points[np.isfinite(points).all(axis=1)]
        if not is_ours:
            check_analytic(self.system, points)
        if len(observation):
            check_observation(self.system, observation, points)

    def _first_finite(self, energy_function: TrajectoryEnergy, parameters: Array, other_parameters: Array) -> Array:
        """A θ of finite energy with ``parameters`` or other guesses; the first guess where no energy is finite."""
        guesses = (parameters, self.parameters, self.system.usual, np.zeros(parameters.size))
        candidates = [np.concatenate([self._with_known(guess), other_parameters]) for guess in guesses]
        return next((candidate for candidate in candidates if is_finite(energy_function, candidate)), candidates[0])

    def _stages(self) -> list[tuple[int, float | None]]:
        """Segments and gaps of each stage, from many and wide (None: the noise) to those asked for."""
        few, gap = self.settings.segments, self.settings.gap
        if self.signed.any():  # kicks would be of their logarithms
            return [(few, gap)]
        stages: list[tuple[int, float | None]] = [(min(max(few, GUESSED_SEGMENTS), len(self.times) - 1), None)]
        if few > 1:
            narrower = [10.0**-k for k in range(2, 12) if 10.0**-k > 1.5 * gap]
            stages += [(few, width) for width in narrower]
        return [*stages, (few, gap)]

    def _energy_of_segments(self, segments: int, gap: float | None) -> tuple[TrajectoryEnergy, Integers]:
        """The energy with that number of segments, and the rows at which they begin."""
        rows = self._first_rows(segments)
        kicks = np.full(len(self.spread), gap or self.settings.gap) * self._unit(self.spread)
        errors = self.settings.error_model(self.sd, self.settings.free_scale, self.observed)
        if gap is None:
            kicks = np.maximum(kicks, self._guessed_noise()[: self.system.dim])
        return self._energy_from_rows(rows, kicks, errors, self.step, self.initial), rows

    def _first_rows(self, segments: int) -> Integers:
        """The rows at which as many segments begin."""
        return np.linspace(0.0, len(self.times) - 1, segments + 1)[:-1].round().astype(np.int64)

    def _unit(self, sizes: Array) -> Array:
        """The unit of errors and kicks of states or quantities of some sizes: these, or 1 of logarithms."""
        return np.ones(len(sizes)) if self.logarithmic else sizes

    def _energy_from_rows(
        self, rows: Integers, kicks: Array, errors: ErrorModel, step: float, initial: Array | None
    ) -> TrajectoryEnergy:
        """The energy with segments that begin at ``rows``."""
        segments = Segments(rows, kicks, initial, self.signed)
        return trajectory_energy(
            self.equations, self.schedule, self.values, errors, segments, method=self.settings.method, step=step,
            limit=self.limit, is_dosed=self.is_dosed,
        )  # fmt: skip

    def _usual_path(self, inputs: Inputs | None) -> Array:
        """States (n, dim) of the solution at usual parameters; the initial state where there is none."""
        start = self.system.start if self.initial is None else self.initial
        parameters = self._with_known(self.system.usual)
        limit = MAX_LIMIT if self.settings.limit is None else self.settings.limit
        found = solve(self.system, self.times, parameters, start, limit=limit, inputs=inputs)
        return np.where(np.isfinite(found.states), found.states, start)

    def _limit(self, values: Array, usual_path: Array | None) -> float:
        """The limit of states: as given, or relative to the largest known value of data and initial states."""
        if self.settings.limit is not None:
            return self.settings.limit
        known = [values, self.system.start, *(one for one in (self.initial, usual_path) if one is not None)]
        size = max(float(np.nanmax(np.abs(one))) for one in known)
        return min(max(MIN_LIMIT, SIZES_TO_LIMIT * size), MAX_LIMIT)

    def _follow_usual_path(self, inputs: Inputs | None) -> Bools:
        """Let unmeasured states that are ≤ 0 somewhere follow the usual solution, where errors are of logarithms.

        Returns which states (dim,) are 0 or below after the first time. Only measured states need a logarithm, but
        kicks between segments are of the logarithms of all states.
        """
        dim = self.system.dim
        chosen = ~self.observed[:dim] & (self.states <= 0.0).any(axis=0) & self.logarithmic
        signed = np.zeros(dim, np.bool_)
        if not chosen.any():
            return signed
        path = self._usual_path(inputs)
        signed[chosen] = (path[1:, chosen] <= 0.0).any(axis=0)
        if signed.any() and self.settings.segments > 1:
            names = ", ".join(name for name, is_signed in zip(self.system.states, signed, strict=True) if is_signed)
            raise ValueError(
                f"segments must be 1 for errors={self.settings.errors!r} where a state is not > 0, got "
                f"{self.settings.segments}: kicks between segments are of logarithms, and at usual parameters the "
                f"solution of {names} is 0 or below"
            )
        rising = chosen & ~signed & (path[0] <= 0.0) & (self.initial is None)
        path[0, rising] = path[1:, rising].min(axis=0)  # a guess > 0 of a free initial state
        self.states = np.where(chosen, path, self.states)
        if not len(self.equations.observation):
            self.smoothed[:, :dim] = self.states
        return signed

    def _first_state(self, values: Array) -> Array | None:
        """The initial state where it is fixed."""
        if self.settings.start == "free":
            return None
        if self.settings.start == "fixed":
            if np.isnan(values[0, : self.system.dim]).any():
                raise ValueError("data must have all states in the first row for start='fixed', but one is missing")
            return np.array(values[0, : self.system.dim])
        initial = np.array(self.settings.start)
        if initial.shape != (self.system.dim,):
            raise ValueError(f"start must have {self.system.dim} states, got {initial.size}")
        return initial

    def _known_deviations(self, data: Series) -> Array:
        """The errors' standard deviations (quantities,) where they are known, else ones."""
        quantities, noise = self.equations.quantities, self.settings.noise
        n = len(quantities)
        if noise == "free":
            return np.ones(n)
        if noise == "known":
            if data.noise is None or not (data.noise > 0.0).all():
                raise ValueError(f"noise='known' needs data with noise > 0, got {data.noise}")
            sd = np.ones(n)
            sd[[quantities.index(name) for name in data.states]] = data.noise
            return sd
        given = np.array(noise)
        if given.size not in (1, n):
            what = "state, then each function in observe" if n > self.system.dim else "state"
            raise ValueError(f"noise must be one number or {n}, one for each {what}, got {given.size}")
        return np.broadcast_to(given, (n,)).copy()

    def _without_zeros(self, values: Array) -> Array:
        """``values`` (n, quantities) whose logarithms may be taken, where these are counts."""
        return np.maximum(values, SMALLEST_COUNT) if self.settings.counts else values

    def _guessed_noise(self) -> Array:
        """The data's deviations from the smoothed ones, as standard deviations (quantities,)."""
        change = np.log if self.logarithmic else np.asarray
        measured = ~np.isnan(self.values)
        values, smoothed = (np.where(measured, of, 1.0) for of in (self._without_zeros(self.values), self.smoothed))
        residual = change(values) - change(smoothed)
        return np.asarray(
            np.maximum(np.sqrt((residual**2).sum(axis=0) / np.maximum(measured.sum(axis=0), 1)), self._noise_floor())
        )

    def _noise_floor(self) -> Array:
        """Lower limit (quantities,) of guessed standard deviations, also for data that lie exactly on a solution."""
        return MIN_NOISE * self._unit(self.scale)

    def _converged_step(self) -> float:
        """A step of which half changes the solutions from one datum to the next by less than STEP_TOLERANCE."""
        rows = np.arange(len(self.times) - 1)
        errors = self.settings.error_model(np.ones(len(self.scale)), False, self.observed)
        errors = errors._replace(logarithmic=self.logarithmic and not self.signed.any())
        theta = np.concatenate([self.parameters, self.states[:-1].ravel()])
        step, ends = float(np.diff(self.times).max()), None
        self.progress.begin_stage("the choice of a step")
        for _ in range(14):
            self._tell_of_stiffness(int(steps_between(self.times, step).sum()))
            energy_function = self._energy_from_rows(rows, self.spread, errors, step, None)
            energy, _, path = energy_function.evaluate_with_path(theta)
            self.progress.count(energy)
            last = np.cumsum(steps_between(self.times, step)[:-1] + 1 + self.schedule.is_dosed[:-1]) - 1
            before, ends = ends, path[0, last]
            if (
                before is not None
                and np.isfinite(energy[0])
                and (abs(ends - before) < STEP_TOLERANCE * self.spread).all()
            ):
                return 2.0 * step
            step *= 0.5
        step = float(np.diff(self.times).min()) / 10.0
        self._tell_of_stiffness(max(int(steps_between(self.times, step).sum()), MANY_STEPS + 1))
        return step

    def _tell_of_stiffness(self, n: int) -> None:
        """Warn once where ``n`` steps are so many that the system looks stiff; raise ValueError where too many are."""
        if n <= MANY_STEPS or self.settings.method in IMPLICIT_ORDERS:
            return
        stable = self._stable_steps()
        if stable <= MANY_STABLE_STEPS:
            return
        n = max(n, int(min(stable, 2.0 * MAX_STEPS)))
        found = (
            f"method={self.settings.method!r} needs more than {MAX_STEPS if n > MAX_STEPS else MANY_STEPS:.0e} "
            "steps from the first datum to the last: the system looks stiff at the data. Take method='sdirk4', "
            "whose steps are long where the solution is smooth"
        )
        if n > MAX_STEPS:
            raise ValueError(f"trajectory: {found}, or give a step")
        if not self.told:
            self.told = True
            warn_user(f"trajectory: {found}")

    def _stable_steps(self) -> float:
        """The number of explicit steps that stability alone asks for, at the smoothed states and parameters found."""
        plain = driven(self.system)
        compiled = jacobian_pointer(plain.rhs, plain.dim, plain.n_parameters).compiled
        rows = np.unique(np.linspace(0.0, len(self.times) - 1, N_CHECKED).round().astype(np.int64))
        rates, matrix = [], np.empty((self.system.dim, self.system.dim))
        for row in rows:
            try:
                parameters = np.concatenate([self.parameters, self.schedule.drives[row]])
                compiled(float(self.times[row]), np.array(self.states[row]), parameters, matrix)
            except ZeroDivisionError:  # by a complex 0, of Numba
                continue
            if np.isfinite(matrix).all():
                rates.append(float(-np.linalg.eigvals(matrix).real.min()))
        return float(np.median(rates or [0.0]) * (self.times[-1] - self.times[0]) / STABILITY_LIMIT)


def is_finite(energy_function: EnergyFunction, theta: Array) -> bool:
    """Whether the energy is finite; not where the right-hand side divides by a complex 0, at which Numba raises."""
    try:
        return bool(np.isfinite(energy_function.evaluate(theta)[0][0]))
    except ZeroDivisionError:
        return False
