"""From data to the start of a trajectory's sampler, by way of shots that are ever more like the one wanted."""

import functools
import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from toolkit.errors import check_array, check_choice, check_count, check_number

from ..data.series import Series, check_series
from ..laplace import descend
from ..libraries import Library
from ..model import Model, all_free, model_of_system
from ..solvers.adjoint import pullback_of_model, pullback_of_system
from ..solvers.runge_kutta import TABLEAUS
from ..systems.system import System
from ..systems.user_systems import check_analytic
from .interface import Prepared
from .trajectory_kernel import N_BANDS, shooting_kernel

# How far a search for start values has come: a line on stderr, and an end to it after a time.

Array = NDArray[np.float64]
TIME_LIMIT = 600.0  # s


class SearchProgress:
    """Evaluations of a search, and the seconds since the first ended.

    wanted: a line on stderr; None: only on a terminal. time_limit: seconds, > 0.
    """

    def __init__(self, wanted: bool | None = False, time_limit: float = TIME_LIMIT) -> None:
        self._wanted = wanted is True or (wanted is None and sys.stderr is not None and sys.stderr.isatty())
        self._time_limit, self._began = time_limit, math.inf
        self._bar: Any = None
        self._evaluations, self._lowest = 0, math.inf
        self._stage = ""

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the line, where it is wanted, and take it away at the end."""
        if self._wanted:
            from tqdm import tqdm

            self._bar = tqdm(desc="start values", unit=" evaluations", leave=False)
        try:
            yield
        finally:
            if self._bar is not None:
                self._bar.close()

    def enter(self, stage: str) -> None:
        """Begin a stage of the search, in words; its lowest energy is not comparable with that of another."""
        self._stage, self._lowest = stage, math.inf
        if self._bar is not None:
            self._bar.set_description_str(f"start values, {stage}")

    def count(self, energies: Array) -> None:
        """Count evaluations with ``energies`` (n,). Raises TimeoutError, with how far it has come, after the limit."""
        now = time.perf_counter()
        self._began = min(self._began, now)
        self._evaluations += len(energies)
        finite = energies[np.isfinite(energies)]
        self._lowest = min(self._lowest, *finite.tolist(), math.inf)
        if self._bar is not None:
            self._bar.set_postfix_str(f"lowest energy {self._lowest:.6g}", refresh=False)
            self._bar.update(len(energies))
        if now - self._began > self._time_limit:
            found = f"the lowest energy is {self._lowest:.6g}" if self._lowest < math.inf else "no energy is finite yet"
            raise TimeoutError(
                f"the search for start values has not ended within time_limit = {self._time_limit:g} s, after "
                f"{self._evaluations} evaluations: it is in {self._stage}, where {found}. Give a larger time_limit, "
                "or a System with usual parameters nearer to the data's, or a longer step, segments, or fewer data"
            )


# What is shot: a system's equations with data, as the numbers and rows that ``shooting`` works on.

MOST_STEPS = 1_000_000


class Equations(NamedTuple):
    """A system with the pullback of its right-hand side, and the model where it is linear in its parameters."""

    system: System
    pull: Any
    model: Model | None


@functools.cache
def equations_of(model: System | Library | Model) -> Equations:
    """The equations of a system, model or library: their derivatives written out where linear in the parameters."""
    if isinstance(model, Library):
        model = all_free(model)
    if isinstance(model, Model):
        return Equations(model.system, pullback_of_model(model), model)
    if model.terms is not None:
        try:
            linear = model_of_system(model)
            return Equations(model, pullback_of_model(linear), linear)
        except ValueError:  # of terms that are in no library, or parameters that stand at none
            pass
    return Equations(model, pullback_of_system(model), None)


class Errors(NamedTuple):
    """How data differ from states.

    logarithmic: whether their logarithms do. sd: (dim,), where known; free: whether they are parameters instead.
    observed: which states have data at all.
    """

    logarithmic: bool
    sd: Array
    free: bool
    observed: NDArray[np.bool_]


class Segments(NamedTuple):
    """How a solution is cut: where segments begin, and how what follows may differ from what went before.

    first_rows: rows of the data at which segments begin. kicks: standard deviations (dim,) of the kicks between them.
    first: the first state (dim,) where it is fixed.
    """

    first_rows: NDArray[np.int64]
    kicks: Array
    first: Array | None


@dataclass(frozen=True, eq=False)
class Shot:
    """The energy of data as a function of θ = parameters, free initial states, free standard deviations."""

    names: tuple[str, ...]
    positive: tuple[bool, ...]
    kernel: Any
    numbers: Array
    work_rows: int
    dim: int
    first: Array | None  # (dim,), the initial state where it is fixed

    def evaluate(self, theta: Array) -> tuple[Array, Array]:
        """Energy (n,) and dU/dθ (n, q) at ``theta`` (n, q)."""
        energy, slope, _ = self.follow(theta)
        return energy, slope

    def follow(self, theta: Array) -> tuple[Array, Array, Array]:
        """The same, with the states at every start and after every step, (n, starts and steps, dim)."""
        columns = np.array(np.atleast_2d(theta).T, order="C")
        energy, slope = np.empty(columns.shape[1]), np.empty_like(columns)
        work = np.zeros((self.work_rows, columns.shape[1]))
        self.kernel(columns, energy, slope, self.numbers, work)
        path = work.T.reshape(len(energy), -1, self.dim)[:, N_BANDS:]
        return energy, np.ascontiguousarray(slope.T), path


def values_in_order(data: Series, states: tuple[str, ...]) -> Array:
    """The data (n, dim) with columns in the order of ``states``; nan for those that were not measured."""
    unknown = [name for name in data.states if name not in states]
    if unknown:
        raise ValueError(f"data must have states of the model, {', '.join(states)}, got {unknown[0]!r}")
    values = np.full((len(data), len(states)), np.nan)
    for k, name in enumerate(data.states):
        values[:, states.index(name)] = data.values[:, k]
    return values


def steps_between(times: Array, step: float) -> NDArray[np.int64]:
    """Number of steps from each time to the next, none longer than ``step``, and 0 after the last."""
    counts = np.ceil(np.diff(times) / step * (1.0 - 1e-12)).astype(np.int64)
    return np.append(np.maximum(counts, 1), 0)


def shot_of(
    equations: Equations,
    times: Array,
    values: Array,
    errors: Errors,
    segments: Segments,
    *,
    method: str,
    step: float,
    limit: float,
) -> Shot:
    """The shot at ``values`` (n, dim), nan where missing, by ``segments``."""
    first_rows, kicks, first = segments
    system = equations.system
    dim, n_segments = system.dim, len(first_rows)
    steps = steps_between(times, step)
    if steps.sum() > MOST_STEPS:
        raise ValueError(f"step must leave at most {MOST_STEPS} steps, got {step:g} and so {steps.sum()} steps")
    there = ~np.isnan(values)
    kept = np.where(there, values, 1.0)
    free = np.flatnonzero(errors.observed) if errors.free else np.zeros(0, np.int64)
    names = list(system.parameters)
    names += [f"{s}({k})" for k in range(first is not None, n_segments) for s in system.states]
    free_rows = np.full(dim, -1.0)
    free_rows[free] = len(names) + np.arange(len(free))
    names += [f"sd({system.states[d]})" for d in free]
    counts = there.sum(axis=0)
    constant = 0.5 * np.log(2.0 * np.pi) * (counts.sum() + dim * (n_segments - 1))
    constant += (n_segments - 1) * float(np.log(kicks).sum())
    if errors.logarithmic:
        kept = np.log(kept)
        constant += float(kept.sum())
    head = [len(times), system.n_parameters, errors.logarithmic, first is None, limit, constant]
    start = np.zeros(dim) if first is None else first
    sd = np.where(errors.observed & ~np.full(dim, errors.free), errors.sd, 1.0)
    table = np.zeros((len(times), 4 + 2 * dim))
    table[:, 0], table[:, 2] = times, steps
    table[:-1, 1] = np.diff(times) / steps[:-1]
    table[first_rows, 3] = 1.0
    table[:, 4::2], table[:, 5::2] = there, kept
    numbers = np.concatenate([head, kicks, sd, free_rows, counts, start, table.ravel()]).astype(np.float64)
    positive = [False] * system.n_parameters
    positive += [errors.logarithmic] * (len(names) - len(free) - system.n_parameters) + [True] * len(free)
    kernel = shooting_kernel(system.rhs, equations.pull, method, dim, system.n_parameters)
    rows = dim * (N_BANDS + int(steps.sum()) + n_segments)
    return Shot(tuple(names), tuple(positive), kernel, numbers, rows, dim, first)


# Start values for trajectories: states by smoothing, parameters by matching the right-hand side to them.

PARTS = 4  # of each interval between data, for its integral by Simpson's rule, twice
SIMPSON = np.array([1.0, 4.0, 2.0, 4.0, 1.0]) / 12.0
FEW, MANY = 6, 200  # data, below which a spline is none, and above which it has fewer knots than data
SPACINGS = (2, 3, 4, 6, 9, 13, 20, 30, 45)


def smoothed_states(times: Array, values: Array, fallback: Array, *, logarithmic: bool) -> tuple[Array, Array]:
    """States at ``times`` (n, dim) and at five points of every interval (n − 1, 5, dim), by smoothing splines.

    The splines' roughness is that of generalised cross-validation; with few data they are straight lines. A state that
    was never measured is taken to stay at ``fallback``.
    """
    fine = times[:-1, None] + np.diff(times)[:, None] * np.linspace(0.0, 1.0, PARTS + 1)
    at, between = np.empty(values.shape), np.empty((*fine.shape, values.shape[1]))
    for d in range(values.shape[1]):
        there = ~np.isnan(values[:, d])
        if not there.any():
            at[:, d], between[..., d] = fallback[d], fallback[d]
            continue
        t = (times - times[0]) / (times[-1] - times[0]) * len(times)
        inner = (fine - times[0]) / (times[-1] - times[0]) * len(times)
        known = np.log(values[there, d]) if logarithmic else values[there, d]
        curve = smooth_curve(t[there], known)
        change = np.exp if logarithmic else np.asarray
        at[:, d], between[..., d] = change(curve(t)), change(curve(inner))
    return at, between


def smooth_curve(t: Array, known: Array) -> Any:
    """A curve near ``known`` (n,) at ``t`` (n,), as smooth as generalised cross-validation has it (Wahba 1990)."""
    if t.size < FEW:
        return functools.partial(np.interp, xp=t, fp=known)
    if t.size <= MANY:
        return scipy.interpolate.make_smoothing_spline(t, known)
    curves: list[tuple[float, int, Any]] = []
    for (
        apart
    ) in SPACINGS:  # of knots: fewer of them are smoother, and cost n, where a smoothing spline's choice costs more
        knots = np.concatenate([np.full(4, t[0]), t[apart:-apart:apart], np.full(4, t[-1])])
        curve = scipy.interpolate.make_lsq_spline(t, known, knots)
        misfit = float(((curve(t) - known) ** 2).sum())
        curves.append((misfit / (1.0 - (knots.size - 4) / t.size) ** 2, len(curves), curve))
    return min(curves)[2]


def matched_parameters(model: Model, times: Array, between: Array) -> Array:
    """Parameters (n,) whose right-hand side, integrated over each interval, comes nearest to the states' increments."""
    n_intervals, points, dim = between.shape
    terms = model.library.evaluate(between.reshape(-1, dim)).reshape(n_intervals, points, -1)
    integrals = np.einsum("ijk,j->ik", terms, SIMPSON) * np.diff(times)[:, None]
    increments = between[:, -1] - between[:, 0] - integrals @ model.constant
    design = np.einsum("ik,pke->iep", integrals, model.directions)
    scale = 1.0 / np.maximum(np.abs(increments).mean(axis=0), 1e-300)
    rows = (design * scale[:, None]).reshape(-1, len(model.parameters))
    size = np.maximum(np.abs(rows).max(axis=0), 1e-300)
    solution = np.linalg.lstsq(rows / size, (increments * scale).ravel(), rcond=1e-10)[0]
    return np.asarray(solution / size)


def polished(
    shot: Shot, theta: Array, least: Array, *, n_iterations: int, progress: SearchProgress | None = None
) -> tuple[Array, float]:
    """A θ of lower energy than ``theta`` where one is found, and its energy.

    Parameters that must be positive are moved by logarithms.
    progress: what counts the evaluations, and may end them.
    least: where > 0, what that parameter does not come far below, though the energy has no lower bound.
    """
    positive = np.array(shot.positive)

    def evaluate(points: Array) -> tuple[Array, Array]:
        at = np.where(positive, np.exp(np.clip(points, -300.0, 300.0)), points)
        energy, slope = shot.evaluate(at)
        if progress is not None:
            progress.count(energy)
        barrier = (np.divide(least, at, out=np.zeros_like(at), where=least > 0.0)) ** 2
        barrier = np.where(np.isfinite(energy)[:, None], barrier * len(shot.numbers), 0.0)
        return energy + barrier.sum(axis=1), np.where(positive, at * slope, slope) - 2.0 * barrier

    start = np.where(positive, np.log(np.where(positive, theta, 1.0)), theta)
    position, _, _ = descend(evaluate, start, n_iterations=n_iterations)
    found = np.where(positive, np.exp(np.where(positive, position, 0.0)), position)
    (before, after), _ = shot.evaluate(np.array([theta, found]))
    return (found, float(after)) if np.isfinite(after) else (theta, float(before))


AGREEMENT = 1e-6  # of a step and half of it, over one interval, in units of the states' spread
LEAST_NOISE = 1e-6  # of a guess, in the same units
FIRST_NOISE = 3e4  # in units of the least
GUESSED_SEGMENTS = 10
CHECKED = 24  # rows of the data at which derivatives are compared with differences


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
    limit: float


class Search:
    """The way from data to a shot and a start: smoothed states, matched parameters, a step, ever fewer segments."""

    def __init__(
        self, law: TrajectorySettings, equations: Equations, data: Series, values: Array, progress: SearchProgress
    ) -> None:
        self.progress = progress
        self.law, self.equations, self.times = law, equations, data.times
        self.system = equations.system
        self.observed: NDArray[np.bool_] = np.asarray(~np.isnan(values).all(axis=0))
        self.logarithmic = law.errors == "lognormal"
        self.first = self._first_state(values)
        self.values = np.array(values)
        if law.start == "fixed":
            self.values[0] = np.nan  # what is taken for exact is no datum
        self.states, between = smoothed_states(self.times, values, self.system.start, logarithmic=self.logarithmic)
        self.spread = np.maximum(self.states.std(axis=0), 1e-3 * np.abs(self.states).max(axis=0))
        self.spread = np.where(self.spread > 0.0, self.spread, 1.0)
        self.sd = self._known_deviations(data)
        if equations.model is not None and self.observed.all():
            self.parameters = matched_parameters(equations.model, self.times, between)
        else:
            self.parameters = self.system.usual
        self._check_derivatives()
        self.step = self._agreeing_step() if law.step is None else law.step

    def shot(self) -> tuple[Shot, Array]:
        """The shot, and where the way ends."""
        # Few data may be smoothed to lie on their curve; from too small a noise the way down is a long one.
        least = self._least_noise()
        parameters, noise = self.parameters, np.maximum(self._guessed_noise(), FIRST_NOISE * least)[self.observed]
        free = self.law.noise == "free"
        count, theta = 0, np.zeros(0)
        stages = self._stages()
        for k, (segments, gap) in enumerate(stages, 1):
            self.progress.enter(f"stage {k} of {len(stages)} ({segments} segment{'s' * (segments > 1)})")
            shot, rows = self._shot(segments, gap)
            if segments != count:
                starts = self.states[rows[self.first is not None :]].ravel()
                theta = self._first_finite(shot, parameters, np.concatenate([starts, noise if free else []]))
            count = segments
            floor = np.zeros(theta.size)
            if free:
                floor[-noise.size :] = least[self.observed]
            theta, energy = polished(shot, theta, floor, n_iterations=60, progress=self.progress)
            if not np.isfinite(energy):
                raise ValueError(
                    "data must be near a solution from some parameters, but those found from the data's smoothed "
                    f"slopes ({', '.join(f'{v:.3g}' for v in parameters)}) give none within ±{self.law.limit:g}: take "
                    "more segments, or a higher limit"
                )
            parameters = theta[: self.system.n_parameters]
        return shot, theta

    def _check_derivatives(self) -> None:
        """Raise ValueError where a user's function is not analytic at the data, which would look like bad data."""
        model = self.equations.model
        if model is not None and all(term.own is None for term in model.library.terms):
            return
        rows = np.unique(np.linspace(0.0, len(self.times) - 1, CHECKED).round().astype(np.int64))
        points = np.concatenate([self.states[rows], np.tile(self.parameters, (len(rows), 1))], axis=1)
        check_analytic(self.system, points[np.isfinite(points).all(axis=1)])

    def _first_finite(self, shot: Shot, parameters: Array, rest: Array) -> Array:
        """A θ of finite energy with ``parameters`` or else others that are to hand; where none has it, the first."""
        guesses = (parameters, self.parameters, self.system.usual, np.zeros(parameters.size))
        places = [np.concatenate([guess, rest]) for guess in guesses]
        return next((place for place in places if is_finite(shot, place)), places[0])

    def _stages(self) -> list[tuple[int, float | None]]:
        """Segments and gaps, from many and wide (None: as wide as the noise) to those asked for."""
        few, gap = self.law.segments, self.law.gap
        stages: list[tuple[int, float | None]] = [(min(max(few, GUESSED_SEGMENTS), len(self.times) - 1), None)]
        if few > 1:
            narrower = [10.0**-k for k in range(2, 12) if 10.0**-k > 1.5 * gap]
            stages += [(few, width) for width in narrower]
        return [*stages, (few, gap)]

    def _shot(self, segments: int, gap: float | None) -> tuple[Shot, NDArray[np.int64]]:
        """The shot by ``segments``, and the rows they begin at."""
        rows = np.linspace(0.0, len(self.times) - 1, segments + 1)[:-1].round().astype(np.int64)
        kicks = np.full(len(self.spread), gap or self.law.gap) * (1.0 if self.logarithmic else self.spread)
        errors = Errors(self.logarithmic, self.sd, self.law.noise == "free", self.observed)
        if gap is None:
            kicks = np.maximum(kicks, self._guessed_noise())
        return self._shot_by(rows, kicks, errors, self.step, self.first), rows

    def _shot_by(self, rows: NDArray[np.int64], kicks: Array, errors: Errors, step: float, first: Array | None) -> Shot:
        """The shot of segments that begin at ``rows``."""
        segments = Segments(rows, kicks, first)
        return shot_of(
            self.equations, self.times, self.values, errors, segments, method=self.law.method, step=step,
            limit=self.law.limit,
        )  # fmt: skip

    def _first_state(self, values: Array) -> Array | None:
        """The initial state where it is fixed."""
        if self.law.start == "free":
            return None
        if self.law.start == "fixed":
            if np.isnan(values[0]).any():
                raise ValueError("data must have all states in the first row for start='fixed', but one is missing")
            return np.array(values[0])
        first = np.array(self.law.start)
        if first.shape != (self.system.dim,):
            raise ValueError(f"start must have {self.system.dim} states, got {first.size}")
        return first

    def _known_deviations(self, data: Series) -> Array:
        """The errors' standard deviations where they are known, else ones."""
        dim, noise = self.system.dim, self.law.noise
        if noise == "free":
            return np.ones(dim)
        if noise == "known":
            if data.noise is None or not (data.noise > 0.0).all():
                raise ValueError(f"noise='known' needs data with noise > 0, got {data.noise}")
            sd = np.ones(dim)
            sd[[self.system.states.index(name) for name in data.states]] = data.noise
            return sd
        given = np.array(noise)
        if given.size not in (1, dim):
            raise ValueError(f"noise must be one number or {dim}, one for each state, got {given.size}")
        return np.broadcast_to(given, (dim,)).copy()

    def _guessed_noise(self) -> Array:
        """The data's deviations from the smoothed states, as standard deviations (dim,)."""
        change = np.log if self.logarithmic else np.asarray
        there = ~np.isnan(self.values)
        left = np.where(there, change(self.values) - change(self.states), 0.0)
        return np.asarray(
            np.maximum(np.sqrt((left**2).sum(axis=0) / np.maximum(there.sum(axis=0), 1)), self._least_noise())
        )

    def _least_noise(self) -> Array:
        """Standard deviations (dim,) below which no guess goes, though the data lie on a solution."""
        return np.full(len(self.spread), LEAST_NOISE) * (1.0 if self.logarithmic else self.spread)

    def _agreeing_step(self) -> float:
        """A step so short that half of it changes the solutions from one datum to the next by less than AGREEMENT."""
        rows = np.arange(len(self.times) - 1)
        errors = Errors(self.logarithmic, np.ones(self.system.dim), False, self.observed)
        theta = np.concatenate([self.parameters, self.states[:-1].ravel()])
        step, ends = float(np.diff(self.times).max()), None
        self.progress.enter("the choice of a step")
        for _ in range(14):
            shot = self._shot_by(rows, self.spread, errors, step, None)
            energy, _, path = shot.follow(theta)
            self.progress.count(energy)
            last = np.cumsum(steps_between(self.times, step)[:-1] + 1) - 1
            before, ends = ends, path[0, last]
            if before is not None and np.isfinite(energy[0]) and (abs(ends - before) < AGREEMENT * self.spread).all():
                return 2.0 * step
            step *= 0.5
        return float(np.diff(self.times).min()) / 10.0


def is_finite(shot: Shot, theta: Array) -> bool:
    """Whether the energy is finite; not where the right-hand side divides by a complex 0, at which Numba raises."""
    try:
        return bool(np.isfinite(shot.evaluate(theta)[0][0]))
    except ZeroDivisionError:
        return False


# The trajectory likelihood: measured states are those of a solution, with errors of a stated law.

WORDS = {"noise": ("free", "known"), "start": ("free", "fixed")}


@dataclass(frozen=True)
class Trajectory(TrajectorySettings):
    """What ``trajectory`` makes: how states become data."""

    def prepare(
        self, data: Series, model: System | Library | Model, progress: SearchProgress | None = None
    ) -> Prepared:
        """The energy of ``data`` under solutions of ``model``, with a start found from the data.

        progress: of the search for the start; None: nothing is shown, and it ends after ten minutes.

        θ: parameters, then free initial states, "x(0)" of the first segment, "x(1)" of the next, then free standard
        deviations "sd(x)". Raises TypeError or ValueError naming what does not fit, TimeoutError where the search
        takes too long.
        """
        shot, theta = self.shot(data, model, progress)
        return Prepared(shot.names, shot.kernel, shot.numbers, shot.work_rows, shot.positive, theta, first=shot.first)

    def shot(
        self, data: Series, model: System | Library | Model, progress: SearchProgress | None = None
    ) -> tuple[Shot, Array]:
        """The energy, with a θ (q,) near its lowest."""
        check_series("data", data)
        if not isinstance(model, System | Library | Model):
            raise TypeError(f"model must be a System, Library or Model, got {model!r:.200}")
        equations = equations_of(model)
        values = values_in_order(data, equations.system.states)
        logarithmic = self.errors == "lognormal"
        below = np.argwhere(values <= 0.0)
        if logarithmic and below.size:
            row, d = below[0]
            raise ValueError(
                f"data must be > 0 for log-normal errors, got {values[row, d]:g} of {equations.system.states[d]!r} "
                f"at row {row}"
            )
        if self.segments >= len(data):
            raise ValueError(f"segments must be fewer than the {len(data)} times of the data, got {self.segments}")
        progress = SearchProgress() if progress is None else progress
        with progress.shown():
            return Search(self, equations, data, values, progress).shot()


def trajectory(
    *,
    errors: str = "gaussian",
    noise: Any = "free",
    start: Any = "free",
    method: str = "rk4",
    step: float | None = None,
    segments: int = 1,
    gap: float = 1e-2,
    limit: float = 1e6,
) -> Trajectory:
    """The likelihood of data whose states are those of a solution at their times, each with an error of its own.

    errors: "gaussian", y ~ N(x, sd²), or "lognormal", log y ~ N(log x, sd²); y is left out where missing (nan).
    noise: the standard deviations of y or of log y: "free", one parameter a state; "known", those of the data; or
    numbers > 0, one or one a state. start: the state at the first time: "free", parameters; "fixed", the first row of
    the data, then taken for exact; or an array (dim,). method: "rk4" or "rk5". step: the longest, > 0; None: so short
    that half of it changes the solution from one datum to the next by less than 1e-6 of the spread of states.
    segments: 1: one solution. More: as many solutions, one after another, each from a free state of its own, with kicks
    where they meet, N(0, (gap × spread of the state)²), or for log-normal errors N(0, gap²) on logarithms. Chaotic
    systems need it: the energy of one long solution has a minimum for each way to miss. limit: where a state leaves
    ±limit, the energy is infinite.
    Law: −log density of the data, with all constants; with segments that of data and states at their starts, under a
    system that is kicked there, which for gap → 0 leaves parameters and initial state the posterior of one solution.
    Its gradient is exact for the discretised solution. Source of multiple shooting: Bock (1983).
    Raises TypeError or ValueError naming the argument where something is off.
    """
    check_choice("errors", errors, ("gaussian", "lognormal"))
    check_choice("method", method, tuple(TABLEAUS))
    return Trajectory(
        errors,
        word_or_numbers("noise", noise, above=0.0),
        word_or_numbers("start", start),
        method,
        None if step is None else check_number("step", step, above=0.0),
        check_count("segments", segments, at_least=1, below=2**16),
        check_number("gap", gap, above=0.0, below=1e6),
        check_number("limit", limit, above=0.0, below=1e100),
    )


def word_or_numbers(name: str, value: Any, **limits: float) -> str | tuple[float, ...]:
    """``value`` as one of the words allowed for ``name``, or as numbers."""
    if isinstance(value, str):
        return check_choice(name, value, WORDS[name])
    numbers = tuple(np.atleast_1d(check_array(name, value)).ravel().tolist())
    return tuple(check_number(f"{name}[{i}]", number, **limits) for i, number in enumerate(numbers))
