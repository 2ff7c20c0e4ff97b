"""The energy of measured states under solutions of a system, over lanes, and its gradient by the discrete adjoint.

Multiple shooting: a solution may have several segments, each with an initial state of its own. A kick with a normal
prior leads from the end of one segment to the start of the next. Source: Bock (1983).
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from toolkit._compiler import inlined, kernel, set_recipe
from toolkit.maths.elementary import fma, log, select

from ..arrays import Array, Integers
from ..data.series import Series, check_measured_states
from ..libraries import Library
from ..model import Model, all_free, model_of_system
from ..solvers.adjoint import pullback_of_model, pullback_of_system
from ..solvers.implicit import steps_of
from ..solvers.integrate import equal_steps
from ..solvers.lane_access import row_access
from ..solvers.runge_kutta import built
from ..systems.system import System
from .error_laws import LAWS, NORMAL, ErrorModel, constant_of

# A datum is a measured state with a normal or log-normal error. A kick is the difference, with the same kind of law,
# between the end of one segment of the solution and the start of the next.


@kernel
def add_squared_residual(path, energy, energy_squares, inverse, value, logarithmic):
    """Add the squared residual of one datum, in standard deviations; its energy follows from their sum."""
    if logarithmic:
        for lane in range(path.size):
            r = (log(path[lane]) - value) * inverse[lane]
            energy_squares[lane] = fma(r, r, energy_squares[lane])
    else:
        for lane in range(path.size):
            r = (path[lane] - value) * inverse[lane]
            energy_squares[lane] = fma(r, r, energy_squares[lane])


@kernel
def add_datum_slope(path, pull, inverse, value, logarithmic):
    """Add the derivative in the state of half the squared residual."""
    if logarithmic:
        for lane in range(path.size):
            r = (log(path[lane]) - value) * inverse[lane]
            pull[lane] += r * inverse[lane] / path[lane]
    else:
        for lane in range(path.size):
            r = (path[lane] - value) * inverse[lane]
            pull[lane] = fma(r, inverse[lane], pull[lane])


@kernel
def add_kick(end, start, energy, sd, logarithmic):
    """Add the energy of a kick from the end of one segment to the start of the next, up to constants."""
    if logarithmic:
        for lane in range(energy.size):
            log_start = log(start[lane])
            r = (log_start - log(end[lane])) / sd
            energy[lane] += fma(0.5 * r, r, log_start)
    else:
        for lane in range(energy.size):
            r = (start[lane] - end[lane]) / sd
            energy[lane] = fma(0.5 * r, r, energy[lane])


@kernel
def set_kick_slope(end, start, pull, slope, sd, logarithmic):
    """Set ``pull`` to the derivative of a kick's energy at the end; add that at the start to ``slope``."""
    if logarithmic:
        for lane in range(pull.size):
            r = (log(start[lane]) - log(end[lane])) / (sd * sd)
            pull[lane] = -r / end[lane]
            slope[lane] += (r + 1.0) / start[lane]
    else:
        for lane in range(pull.size):
            r = (start[lane] - end[lane]) / (sd * sd)
            pull[lane] = -r
            slope[lane] += r


# Numbers: this header; then, each (dim,): standard deviation of kicks; that of errors where known; the row of θ with it
# where free (else −1); number of data; initial state where fixed. Then for each time: time, step, steps to the next,
# whether a segment starts here, and for each state whether it was measured, and its value or the logarithm of that.
N_ROWS, N_PARAMETERS, LOGARITHMIC, START_FREE, LIMIT, CONSTANT, N_HEAD = range(7)
TIME, STEP, N_STEPS, STARTS, N_ROW = range(5)
KICK, DEVIATION, FREE_ROW, N_DATA, FIRST = range(5)
INVERSE, SQUARES, STATE, PULL, N_BANDS = range(5)  # bands of dim rows in the work rows, before the path
MAX_FINITE = 1e300
MAX_STEPS = 1_000_000


def lane_steps(rhs: Callable[..., Any], pull: Any, method: str, dim: int, n_parameters: int) -> tuple[Any, Any]:
    """One step of all lanes: ``advance`` forwards, ``retreat`` backwards."""
    step, back = steps_of(rhs, pull, method, dim)
    inside = " & ".join(f"(abs(y[{d}]) <= limit)" for d in range(dim))
    within = inlined(built("within", f"def within(y, limit):\n    return {inside}"))
    chosen = ", ".join(f"select(ok, y[{d}], x[{d}])" for d in range(dim))
    choose = inlined(built("choose", f"def choose(ok, y, x):\n    return ({chosen},)", select=select))
    forwards = row_access("forwards", {"theta": n_parameters, "state": dim, "path": dim, "energy": 1})
    (read_p, _), (read_x, write_x), (_, write_path), (read_u, write_u) = forwards.values()
    backwards = row_access("backwards", {"theta": n_parameters, "path": dim, "pull": dim, "slope": n_parameters})
    (read_q, _), (read_path, _), (read_w, write_w), (read_s, write_s) = backwards.values()

    @kernel
    def advance(theta, work, state, path, energy, t, h, limit):
        for lane in range(theta.shape[1]):
            x = read_x(work, state, lane)
            y = step(t, h, x, read_p(theta, 0, lane))
            ok = within(y, limit)
            x = choose(ok, y, x)
            write_x(work, state, lane, x)
            write_path(work, path, lane, x)
            write_u(energy, 0, lane, (select(ok, read_u(energy, 0, lane)[0], math.inf),))

    @kernel
    def retreat(theta, work, slope, pull, path, t, h):
        for lane in range(theta.shape[1]):
            x, w, s = read_path(work, path, lane), read_w(work, pull, lane), read_s(slope, 0, lane)
            w, s = back(t, h, x, read_q(theta, 0, lane), w, s)
            write_w(work, pull, lane, w)
            write_s(slope, 0, lane, s)

    return advance, retreat


@kernel
def finish_normal(energy, sum_of_data, inverse, n):
    """Add the energy of a state's data, but for constants, and set their sum to n − Σ r²: sd times the slope in sd."""
    for lane in range(energy.size):
        squares = sum_of_data[lane]
        energy[lane] += 0.5 * squares - n * log(inverse[lane])
        sum_of_data[lane] = (n - squares) * inverse[lane]


def law_kernels(law: str, dof: float) -> tuple[Any, Any, Any]:
    """How a datum enters the energy, its slope in the state, and what ends a state's sum, of a law of errors."""
    return (add_squared_residual, add_datum_slope, finish_normal) if law == NORMAL else LAWS[law](dof)


@functools.cache
def shooting_kernel(
    rhs: Callable[..., Any], pull: Any, method: str, dim: int, n_parameters: int, law: str = NORMAL, dof: float = 0.0
) -> Any:
    """The kernel of a ``Prepared``: energy and gradient from parameters, then starts, then standard deviations."""
    advance, retreat = lane_steps(rhs, pull, method, dim, n_parameters)
    add_datum, add_slope, finish_state = law_kernels(law, dof)

    @kernel
    def set_deviations(theta, work, numbers):
        for d in range(dim):
            row, sd = int(numbers[N_HEAD + FREE_ROW * dim + d]), numbers[N_HEAD + DEVIATION * dim + d]
            for lane in range(theta.shape[1]):
                work[INVERSE * dim + d, lane] = 1.0 / (theta[row, lane] if row >= 0 else sd)
                work[SQUARES * dim + d, lane] = 0.0

    @kernel
    def begin(theta, work, path, free, numbers):
        for d in range(dim):
            fixed = numbers[N_HEAD + FIRST * dim + d]
            for lane in range(theta.shape[1]):
                x = theta[free + d, lane] if free >= 0 else fixed
                work[STATE * dim + d, lane] = x
                work[path + d, lane] = x

    @kernel
    def finish(theta, energy, slope, numbers, work):
        for d in range(dim):
            row, n = int(numbers[N_HEAD + FREE_ROW * dim + d]), numbers[N_HEAD + N_DATA * dim + d]
            finish_state(energy, work[SQUARES * dim + d], work[INVERSE * dim + d], n)
            if row >= 0:
                for lane in range(energy.size):
                    slope[row, lane] = work[SQUARES * dim + d, lane]
        for lane in range(energy.size):
            energy[lane] += numbers[CONSTANT]

    @kernel
    def forbid(energy, slope):
        for k in range(slope.shape[0]):
            for lane in range(energy.size):
                energy[lane] = select(abs(slope[k, lane]) <= MAX_FINITE, energy[lane], math.inf)
        for lane in range(energy.size):
            energy[lane] = select(abs(energy[lane]) <= MAX_FINITE, energy[lane], math.inf)
        for k in range(slope.shape[0]):
            for lane in range(energy.size):
                slope[k, lane] = select(energy[lane] < math.inf, slope[k, lane], 0.0)

    @kernel
    def shoot(theta, energy, slope, numbers, work):
        rows, logarithmic, lanes = int(numbers[N_ROWS]), numbers[LOGARITHMIC] != 0.0, energy.size
        table, width = N_HEAD + (FIRST + 1) * dim, N_ROW + 2 * dim
        for lane in range(lanes):
            energy[lane] = 0.0
        for k in range(slope.shape[0]):
            for lane in range(lanes):
                slope[k, lane] = 0.0
        set_deviations(theta, work, numbers)
        path, free = N_BANDS * dim, n_parameters if numbers[START_FREE] != 0.0 else n_parameters - dim
        for i in range(rows):
            row = numbers[table + i * width : table + (i + 1) * width]
            if row[STARTS] != 0.0:
                begin(theta, work, path + dim * (i > 0), free if free >= n_parameters else -1, numbers)
                if i > 0:
                    path += dim
                    for d in range(dim):
                        sd = numbers[N_HEAD + KICK * dim + d]
                        add_kick(work[path - dim + d], work[path + d], energy, sd, logarithmic)
                free += dim
            for d in range(dim):
                if row[N_ROW + 2 * d] != 0.0:
                    squares, inverse = work[SQUARES * dim + d], work[INVERSE * dim + d]
                    add_datum(work[path + d], energy, squares, inverse, row[N_ROW + 2 * d + 1], logarithmic)
            h = row[STEP]
            for j in range(int(row[N_STEPS])):
                path += dim
                advance(theta, work, STATE * dim, path, energy, row[TIME] + j * h, h, numbers[LIMIT])
        for d in range(dim):
            for lane in range(lanes):
                work[PULL * dim + d, lane] = 0.0
        for i in range(rows - 1, -1, -1):
            row = numbers[table + i * width : table + (i + 1) * width]
            h = row[STEP]
            for j in range(int(row[N_STEPS]) - 1, -1, -1):
                path -= dim
                retreat(theta, work, slope, PULL * dim, path, row[TIME] + j * h, h)
            for d in range(dim):
                if row[N_ROW + 2 * d] != 0.0:
                    value = row[N_ROW + 2 * d + 1]
                    add_slope(work[path + d], work[PULL * dim + d], work[INVERSE * dim + d], value, logarithmic)
            if row[STARTS] != 0.0:
                free -= dim
                if free >= n_parameters:
                    for d in range(dim):
                        for lane in range(lanes):
                            slope[free + d, lane] += work[PULL * dim + d, lane]
                if i > 0:
                    path -= dim
                    for d in range(dim):
                        sd, pull = numbers[N_HEAD + KICK * dim + d], work[PULL * dim + d]
                        set_kick_slope(work[path + d], work[path + dim + d], pull, slope[free + d], sd, logarithmic)
        finish(theta, energy, slope, numbers, work)
        forbid(energy, slope)

    others = () if law == NORMAL else (law, dof)
    set_recipe(shoot, shooting_kernel, rhs, pull, method, dim, n_parameters, *others)
    return shoot


class Equations(NamedTuple):
    """A system with the pullback of its right-hand side, and the model where it is linear in its parameters."""

    system: System
    pullback: Any
    model: Model | None


@functools.cache
def equations_of(model: System | Library | Model) -> Equations:
    """The equations of a system, model or library: with generated derivatives where linear in the parameters."""
    if isinstance(model, Library):
        model = all_free(model)
    if isinstance(model, Model):
        return Equations(model.system, pullback_of_model(model), model)
    if model.terms is not None:
        try:
            linear = model_of_system(model)
            return Equations(model, pullback_of_model(linear), linear)
        except ValueError:  # terms that are in no library, or a parameter without a term
            pass
    return Equations(model, pullback_of_system(model), None)


class Segments(NamedTuple):
    """How a solution is cut into segments, and how large the kicks between them are.

    first_rows: rows of the data at which segments begin. kick_sds: standard deviations of the kicks (dim,).
    initial: the initial state (dim,) where it is fixed.
    """

    first_rows: Integers
    kick_sds: Array
    initial: Array | None


@dataclass(frozen=True, eq=False)
class TrajectoryEnergy:
    """The energy of data as a function of θ = parameters, free initial states, free standard deviations."""

    names: tuple[str, ...]
    positive: tuple[bool, ...]
    kernel: Any
    numbers: Array
    work_rows: int
    dim: int
    initial: Array | None  # (dim,), the initial state where it is fixed

    def evaluate(self, theta: Array) -> tuple[Array, Array]:
        """Energy (n,) and dU/dθ (n, q) at ``theta`` (n, q)."""
        energy, slope, _ = self.evaluate_with_path(theta)
        return energy, slope

    def evaluate_with_path(self, theta: Array) -> tuple[Array, Array, Array]:
        """Energy, gradient, and the states at every start and after every step, (n, starts + steps, dim)."""
        energy, slope, work = evaluated(self.kernel, self.numbers, self.work_rows, theta)
        return energy, slope, work.T.reshape(len(energy), -1, self.dim)[:, N_BANDS:]


def evaluated(kernel: Any, numbers: Array, work_rows: int, theta: Array) -> tuple[Array, Array, Array]:
    """Energy (n,), gradient (n, q) and work rows (work_rows, n) of a likelihood's kernel at ``theta`` (n, q)."""
    columns = np.array(np.atleast_2d(theta).T, order="C")
    energy, slope = np.empty(columns.shape[1]), np.empty_like(columns)
    work = np.zeros((work_rows, columns.shape[1]))
    kernel(columns, energy, slope, numbers, work)
    return energy, np.ascontiguousarray(slope.T), work


def values_in_order(data: Series, states: tuple[str, ...]) -> Array:
    """The data (n, dim) with columns in the order of ``states``; nan for those that were not measured."""
    check_measured_states("data", data.states, states, all_of_them=False)
    values = np.full((len(data), len(states)), np.nan)
    for k, name in enumerate(data.states):
        values[:, states.index(name)] = data.values[:, k]
    return values


def steps_between(times: Array, step: float) -> Integers:
    """Number of steps from each time to the next, none longer than ``step``, and 0 after the last."""
    return np.append(equal_steps(np.diff(times), step).astype(np.int64), 0)


def trajectory_energy(
    equations: Equations,
    times: Array,
    values: Array,
    errors: ErrorModel,
    segments: Segments,
    *,
    method: str,
    step: float,
    limit: float,
) -> TrajectoryEnergy:
    """The energy of ``values`` (n, dim), nan where missing, with ``segments``."""
    first_rows, kick_sds, initial = segments
    system = equations.system
    dim, n_segments = system.dim, len(first_rows)
    steps = steps_between(times, step)
    if steps.sum() > MAX_STEPS:
        raise ValueError(f"step must leave at most {MAX_STEPS} steps, got {step:g} and so {steps.sum()} steps")
    measured = ~np.isnan(values)
    data = np.where(measured, values, 1.0)
    free = np.flatnonzero(errors.observed) if errors.free else np.zeros(0, np.int64)
    names = list(system.parameters)
    names += [f"{s}({k})" for k in range(initial is not None, n_segments) for s in system.states]
    free_rows = np.full(dim, -1.0)
    free_rows[free] = len(names) + np.arange(len(free))
    names += [errors.scale_name(system.states[d]) for d in free]
    counts = measured.sum(axis=0)
    n_normal = counts.sum() if errors.law == NORMAL else 0
    constant = 0.5 * np.log(2.0 * np.pi) * (n_normal + dim * (n_segments - 1))
    constant += (n_segments - 1) * float(np.log(kick_sds).sum())
    if errors.law != NORMAL:
        constant += constant_of(errors, values[measured])
    elif errors.logarithmic:
        data = np.log(data)
        constant += float(data.sum())
    header = [len(times), system.n_parameters, errors.logarithmic, initial is None, limit, constant]
    start = np.zeros(dim) if initial is None else initial
    sd = np.where(errors.observed & ~np.full(dim, errors.free), errors.sd, 1.0)
    table = np.zeros((len(times), 4 + 2 * dim))
    table[:, 0], table[:, 2] = times, steps
    table[:-1, 1] = np.diff(times) / steps[:-1]
    table[first_rows, 3] = 1.0
    table[:, 4::2], table[:, 5::2] = measured, data
    numbers = np.concatenate([header, kick_sds, sd, free_rows, counts, start, table.ravel()]).astype(np.float64)
    positive = [False] * system.n_parameters
    positive += [errors.logarithmic] * (len(names) - len(free) - system.n_parameters) + [True] * len(free)
    others = () if errors.law == NORMAL else (errors.law, errors.dof)
    kernel = shooting_kernel(system.rhs, equations.pullback, method, dim, system.n_parameters, *others)
    rows = dim * (N_BANDS + int(steps.sum()) + n_segments)
    return TrajectoryEnergy(tuple(names), tuple(positive), kernel, numbers, rows, dim, initial)
