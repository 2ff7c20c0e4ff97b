"""The energy of measured states under solutions of a system, over lanes, and its gradient by the discrete adjoint.

Multiple shooting: a solution may have several segments, each with an initial state of its own. A kick with a normal
prior leads from the end of one segment to the start of the next. Source: Bock (1983).
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

import numpy as np
from numba import types

from toolkit._compiler import (
    CONVERSIONS,
    FLOATS,
    MATRIX,
    HoldsFunctions,
    SharedCode,
    call_part,
    compile_part,
    in_float32,
    inlined,
    kernel,
    pack_arguments,
    pointer_to,
    pointer_to_part,
    set_linked_form,
    set_recipe,
    tuple_type,
)
from toolkit.maths.elementary import fma, larger, log, select

from ..arrays import Array, Bools, Integers
from ..data.series import Series, check_measured_states
from ..libraries import Library
from ..model import Model, all_free, model_of_system
from ..modes.local_noise import Fitted
from ..solvers.adjoint import pullback_of_model, pullback_of_system
from ..solvers.implicit import steps_of
from ..solvers.integrate import equal_steps
from ..solvers.lane_access import row_access
from ..solvers.runge_kutta import TABLEAUS, built, judged_step_of
from ..solvers.step_length import LONGEST_STEP, MAX_STEPS, SMALLEST_JUDGED, Steps, too_long
from ..systems.inputs import Schedule, driven
from ..systems.system import System
from .error_laws import COUNTS, LAWS, NORMAL, ErrorModel, constant_of, constants_of_data, normal_scores
from .interface import KERNEL, Measured
from .observations import (
    NOTHING_ELSE,
    Measurement,
    Observation,
    checked_measure,
    lane_measures,
    measurement_of,
    parameters_and_drive,
)

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


# Numbers: this header; then standard deviation of kicks (dim,); that of errors where known, the row of θ with it where
# free (else −1), and number of data, of each quantity, states and functions of them (quantities,); initial state where
# fixed (dim,). Then for each time: time, step, steps to the next, whether a segment starts here, and for each quantity
# whether it was measured, and its value or the logarithm of that;
# where there are inputs, what ``driven`` has behind the parameters; where there are doses, whether one is given after
# the datum, and what is added to each state.
# Where steps are judged, the limit is negative, and 1 over the spread of each state (dim,) follows the last time. The
# last rows of work hold these numbers then.
N_ROWS, N_PARAMETERS, LOGARITHMIC, START_FREE, LIMIT, CONSTANT, N_HEAD = range(7)
TIME, STEP, N_STEPS, STARTS, N_ROW = range(5)
MAX_FINITE = 1e300


class Shape(NamedTuple):
    """Sizes that differ between systems.

    n_functions: of states, that are measured. n_drives: numbers that ``driven`` has behind the parameters. is_dosed:
    whether rows tell of doses.
    """

    dim: int
    n_parameters: int
    n_functions: int = 0
    n_drives: int = 0
    is_dosed: bool = False


class Places(NamedTuple):
    """Where bands begin: in ``numbers`` and a row of its table, and in the work rows.

    path: where the rows end that serve all times, and the path begins.
    """

    kick: int
    deviation: int
    free_row: int
    n_data: int
    first: int
    table: int
    drive_in_row: int
    dose_in_row: int
    width: int
    inverse: int
    squares: int
    state: int
    pull: int
    measured: int
    weights: int
    drive: int
    path: int


def places_of(shape: Shape) -> Places:
    """The bands of as many quantities as there are states and functions."""
    dim, m = shape.dim, shape.n_functions
    n = dim + m
    kick, deviation = N_HEAD, N_HEAD + dim
    first = deviation + 3 * n
    dose = N_ROW + 2 * n + shape.n_drives
    width = dose + (1 + dim if shape.is_dosed else 0)
    drive = 2 * n + 2 * dim + 2 * m
    return Places(
        kick, deviation, deviation + n, deviation + 2 * n, first, first + dim, N_ROW + 2 * n, dose, width,
        0, n, 2 * n, 2 * n + dim, 2 * n + 2 * dim, 2 * n + 2 * dim + m, drive, drive + shape.n_drives,
    )  # fmt: skip


find_places = inlined(places_of)


def lane_steps(
    rhs: Callable[..., Any], pull: Any, method: str, shape: Shape, *, is_judged: bool = False
) -> tuple[Any, Any]:
    """One step of all lanes: ``advance`` forwards, ``retreat`` backwards. is_judged: see ``judged_attempt``."""
    dim, n_parameters, n_drives, first_drive = shape.dim, shape.n_parameters, shape.n_drives, places_of(shape).drive
    step, back = steps_of(rhs, pull, method, dim)
    inside = " & ".join(f"(abs(y[{d}]) <= limit)" for d in range(dim))
    within = inlined(built("within", f"def within(y, limit):\n    return {inside}"))
    chosen = ", ".join(f"select(ok, y[{d}], x[{d}])" for d in range(dim))
    choose = inlined(built("choose", f"def choose(ok, y, x):\n    return ({chosen},)", select=select))
    drives = {"drive": n_drives} if n_drives else {}
    judged = {"judge": dim} if is_judged else {}
    forwards = row_access(
        "forwards", {"theta": n_parameters, "state": dim, "path": dim, "energy": 1, **drives, **judged}
    )
    (read_x, write_x), (_, write_path), (read_u, write_u) = (forwards[role] for role in ("state", "path", "energy"))
    roles = {"theta": n_parameters, "path": dim, "pull": dim, "slope": n_parameters, **drives}
    backwards = row_access("backwards", roles)
    (read_path, _), (read_w, write_w), (read_s, write_s) = (backwards[role] for role in ("path", "pull", "slope"))
    read_p, read_q = (parameters_and_drive(access, first_drive) for access in (forwards, backwards))
    attempt = judged_attempt(rhs, method, dim, forwards["judge"][0]) if is_judged else plain_attempt(step)

    @kernel
    def advance(theta, work, energy, state, path, t, h, limit):
        for lane in range(theta.shape[1]):
            x = read_x(work, state, lane)
            y, is_resolved = attempt(t, h, x, read_p(theta, work, lane), work, lane)
            ok = within(y, limit) & is_resolved
            x = choose(ok, y, x)
            write_x(work, state, lane, x)
            write_path(work, path, lane, x)
            write_u(energy, 0, lane, (select(ok, read_u(energy, 0, lane)[0], math.inf),))

    @kernel
    def retreat(theta, work, slope, pull, path, t, h):
        for lane in range(theta.shape[1]):
            x, w, s = read_path(work, path, lane), read_w(work, pull, lane), read_s(slope, 0, lane)
            w, s = back(t, h, x, read_q(theta, work, lane), w, s)
            write_w(work, pull, lane, w)
            write_s(slope, 0, lane, s)

    return advance, retreat


def plain_attempt(step: Any) -> Any:
    """``attempt(t, h, x, p, work, lane)``: the state after a step that is not judged, and True."""

    @inlined
    def attempt(t, h, x, p, work, lane):
        return step(t, h, x, p), True

    return attempt


def judged_attempt(rhs: Callable[..., Any], method: str, dim: int, read_weights: Any) -> Any:
    """``attempt(t, h, x, p, work, lane)``: the state after a step, and whether the step resolves the solution.

    The law is that of ``step_length.too_long``.
    """
    step = judged_step_of(rhs, method, dim)
    apart, change = (
        functools.reduce(lambda a, b: f"larger({a}, {b})", [f"w[{d}]*abs({name}[{d}])" for d in range(dim)])
        for name in ("states", "slopes")
    )
    source = (
        f"def resolved(w, states, slopes):\n"
        f"    return {change} <= larger({LONGEST_STEP!r}*{apart}, {SMALLEST_JUDGED!r})"
    )
    resolved = inlined(built("resolved", source, larger=larger))

    @inlined
    def attempt(t, h, x, p, work, lane):
        y, states, slopes = step(t, h, x, p)
        return y, resolved(read_weights(work, work.shape[0] - dim, lane), states, slopes)

    return attempt


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


# What differs between systems and laws of errors, called as ``advance`` calls parts: in shared code by address.
NUMBER, ROW = types.float64, types.int64
STEP_FORWARDS = types.void(MATRIX, MATRIX, FLOATS, ROW, ROW, NUMBER, NUMBER, NUMBER)
STEP_BACKWARDS = types.void(MATRIX, MATRIX, MATRIX, ROW, ROW, NUMBER, NUMBER)
MEASURE = types.void(MATRIX, MATRIX, ROW, ROW, NUMBER)
PUSH = types.void(MATRIX, MATRIX, MATRIX, ROW, ROW, ROW, NUMBER)
ADD_DATUM = types.void(FLOATS, FLOATS, FLOATS, FLOATS, NUMBER, types.boolean)
ADD_SLOPE = types.void(FLOATS, FLOATS, FLOATS, NUMBER, types.boolean)
FINISH_STATE = types.void(FLOATS, FLOATS, FLOATS, NUMBER)


class TrajectoryParts(NamedTuple):
    """The functions of ``lane_steps``, ``lane_measures`` and ``law_kernels``."""

    shape: Shape
    advance: Annotated[Any, types.FunctionType(STEP_FORWARDS)]
    retreat: Annotated[Any, types.FunctionType(STEP_BACKWARDS)]
    measure: Annotated[Any, types.FunctionType(MEASURE)]
    push: Annotated[Any, types.FunctionType(PUSH)]
    add_datum: Annotated[Any, types.FunctionType(ADD_DATUM)]
    add_slope: Annotated[Any, types.FunctionType(ADD_SLOPE)]
    finish_state: Annotated[Any, types.FunctionType(FINISH_STATE)]


@kernel
def set_deviations(theta, work, numbers, shape):
    """Write 1 over the standard deviation of each quantity, a sum of 0, and 1 over the spread of each state."""
    at = find_places(shape)
    for d in range(shape.dim + shape.n_functions):
        row, sd = int(numbers[at.free_row + d]), numbers[at.deviation + d]
        inverse, squares = work[at.inverse + d], work[at.squares + d]
        for lane in range(theta.shape[1]):
            inverse[lane] = 1.0 / (theta[row, lane] if row >= 0 else sd)
            squares[lane] = 0.0
    if numbers[LIMIT] < 0.0:
        end, first = at.table + int(numbers[N_ROWS]) * at.width, work.shape[0] - shape.dim
        for d in range(shape.dim):
            for lane in range(theta.shape[1]):
                work[first + d, lane] = numbers[end + d]


@kernel
def begin_segment(theta, work, path, free, numbers, shape):
    """Write a segment's initial state: rows of θ from ``free`` on, or the fixed one where that is −1."""
    at = find_places(shape)
    for d in range(shape.dim):
        fixed = numbers[at.first + d]
        state, start = work[at.state + d], work[path + d]
        for lane in range(theta.shape[1]):
            x = theta[free + d, lane] if free >= 0 else fixed
            state[lane] = x
            start[lane] = x


@kernel
def set_drive(work, row, shape):
    """Write a row's inputs."""
    at = find_places(shape)
    for k in range(shape.n_drives):
        for lane in range(work.shape[1]):
            work[at.drive + k, lane] = row[at.drive_in_row + k]


@kernel
def give_dose(work, path, row, shape):
    """Add a row's dose to the state."""
    at = find_places(shape)
    for d in range(shape.dim):
        for lane in range(work.shape[1]):
            x = work[at.state + d, lane] + row[at.dose_in_row + 1 + d]
            work[at.state + d, lane] = x
            work[path + d, lane] = x


@kernel
def add_functions(theta, work, path, row, energy, logarithmic, parts):
    """Add the data of functions."""
    at, shape, add_datum = find_places(parts.shape), parts.shape, parts.add_datum
    call_part(parts.measure, pack_arguments(parts.measure, (theta, work)), path, at.measured, row[TIME])
    for k in range(shape.n_functions):
        d = shape.dim + k
        if row[N_ROW + 2 * d] != 0.0:
            rows = (work[at.measured + k], energy, work[at.squares + d], work[at.inverse + d])
            call_part(add_datum, pack_arguments(add_datum, rows), row[N_ROW + 2 * d + 1], logarithmic)


@kernel
def add_function_slopes(theta, work, slope, path, row, logarithmic, parts):
    """Add the slopes of the data of functions."""
    at, shape, add_slope = find_places(parts.shape), parts.shape, parts.add_slope
    call_part(parts.measure, pack_arguments(parts.measure, (theta, work)), path, at.measured, row[TIME])
    for k in range(shape.n_functions):
        d = shape.dim + k
        for lane in range(work.shape[1]):
            work[at.weights + k, lane] = 0.0
        if row[N_ROW + 2 * d] != 0.0:
            rows = (work[at.measured + k], work[at.weights + k], work[at.inverse + d])
            call_part(add_slope, pack_arguments(add_slope, rows), row[N_ROW + 2 * d + 1], logarithmic)
    at_push = pack_arguments(parts.push, (theta, work, slope))
    call_part(parts.push, at_push, path, at.weights, at.pull, row[TIME])


@kernel
def finish_states(energy, slope, numbers, work, parts):
    """Finish the sums of all quantities, and add the constant."""
    at, shape, finish_state = find_places(parts.shape), parts.shape, parts.finish_state
    for d in range(shape.dim + shape.n_functions):
        row, n, squares = int(numbers[at.free_row + d]), numbers[at.n_data + d], work[at.squares + d]
        call_part(finish_state, pack_arguments(finish_state, (energy, squares, work[at.inverse + d])), n)
        if row >= 0:
            for lane in range(energy.size):
                slope[row, lane] = squares[lane]
    for lane in range(energy.size):
        energy[lane] += numbers[CONSTANT]


@in_float32({1e300: 1e38})
@kernel
def forbid(energy, slope):
    """Let the energy be inf, and its gradient 0, where either is not finite."""
    for k in range(slope.shape[0]):
        for lane in range(energy.size):
            energy[lane] = select(abs(slope[k, lane]) <= MAX_FINITE, energy[lane], math.inf)
    for lane in range(energy.size):
        energy[lane] = select(abs(energy[lane]) <= MAX_FINITE, energy[lane], math.inf)
    for k in range(slope.shape[0]):
        for lane in range(energy.size):
            slope[k, lane] = select(energy[lane] < math.inf, slope[k, lane], 0.0)


@kernel
def shoot_segments(theta, energy, slope, numbers, work, parts):
    """Energy and gradient from parameters, then starts, then standard deviations."""
    shape, at = parts.shape, find_places(parts.shape)
    dim, n_parameters = shape.dim, shape.n_parameters
    at_advance = pack_arguments(parts.advance, (theta, work, energy))
    at_retreat = pack_arguments(parts.retreat, (theta, work, slope))
    rows, logarithmic, lanes = int(numbers[N_ROWS]), numbers[LOGARITHMIC] != 0.0, energy.size
    for lane in range(lanes):
        energy[lane] = 0.0
    for k in range(slope.shape[0]):
        for lane in range(lanes):
            slope[k, lane] = 0.0
    set_deviations(theta, work, numbers, shape)
    path, free = at.path, n_parameters if numbers[START_FREE] != 0.0 else n_parameters - dim
    for i in range(rows):
        row = numbers[at.table + i * at.width : at.table + (i + 1) * at.width]
        if row[STARTS] != 0.0:
            begin_segment(theta, work, path + dim * (i > 0), free if free >= n_parameters else -1, numbers, shape)
            if i > 0:
                path += dim
                for d in range(dim):
                    sd = numbers[at.kick + d]
                    add_kick(work[path - dim + d], work[path + d], energy, sd, logarithmic)
            free += dim
        for d in range(dim):
            if row[N_ROW + 2 * d] != 0.0:
                given = (work[path + d], energy, work[at.squares + d], work[at.inverse + d])
                at_datum = pack_arguments(parts.add_datum, given)
                call_part(parts.add_datum, at_datum, row[N_ROW + 2 * d + 1], logarithmic)
        set_drive(work, row, shape)
        if shape.n_functions > 0:
            add_functions(theta, work, path, row, energy, logarithmic, parts)
        if shape.is_dosed and row[at.dose_in_row] != 0.0:
            path += dim
            give_dose(work, path, row, shape)
        h = row[STEP]
        for j in range(int(row[N_STEPS])):
            path += dim
            call_part(parts.advance, at_advance, at.state, path, row[TIME] + j * h, h, abs(numbers[LIMIT]))
    for d in range(dim):
        for lane in range(lanes):
            work[at.pull + d, lane] = 0.0
    for i in range(rows - 1, -1, -1):
        row = numbers[at.table + i * at.width : at.table + (i + 1) * at.width]
        set_drive(work, row, shape)
        h = row[STEP]
        for j in range(int(row[N_STEPS]) - 1, -1, -1):
            path -= dim
            call_part(parts.retreat, at_retreat, at.pull, path, row[TIME] + j * h, h)
        if shape.is_dosed and row[at.dose_in_row] != 0.0:
            path -= dim
        for d in range(dim):
            if row[N_ROW + 2 * d] != 0.0:
                at_slope = pack_arguments(parts.add_slope, (work[path + d], work[at.pull + d], work[at.inverse + d]))
                call_part(parts.add_slope, at_slope, row[N_ROW + 2 * d + 1], logarithmic)
        if shape.n_functions > 0:
            add_function_slopes(theta, work, slope, path, row, logarithmic, parts)
        if row[STARTS] != 0.0:
            free -= dim
            if free >= n_parameters:
                for d in range(dim):
                    for lane in range(lanes):
                        slope[free + d, lane] += work[at.pull + d, lane]
            if i > 0:
                path -= dim
                for d in range(dim):
                    sd, pull = numbers[at.kick + d], work[at.pull + d]
                    set_kick_slope(work[path + d], work[path + dim + d], pull, slope[free + d], sd, logarithmic)
    finish_states(energy, slope, numbers, work, parts)
    forbid(energy, slope)


PARTS = tuple_type(TrajectoryParts)


@kernel
def lose_slope(slope):
    """Set all slopes to nan."""
    for row in range(slope.shape[0]):
        for lane in range(slope.shape[1]):
            slope[row, lane] = math.nan


@kernel
def retreat_nowhere(theta, work, slope, pull, path, t, h):
    """In place of ``retreat`` where a complex step divides by 0, at which Numba raises."""
    lose_slope(slope)


@kernel
def push_nowhere(theta, work, slope, path, weights, pull, t):
    """In place of ``push`` where a complex step divides by 0."""
    lose_slope(slope)


WITHOUT_SLOPE = {STEP_BACKWARDS: retreat_nowhere, PUSH: push_nowhere}
SHOOT = SharedCode(shoot_segments, types.void(*KERNEL.args, PARTS))


# The sizes of the kernel, by the names that they had when each of its functions enclosed its own.
SHOOTING = "sysid.shooting_kernel.<locals>."
SIZES = ("shoot.dim", "shoot.n_parameters", "shoot.n_functions", "set_drive.n_drives", "shoot.is_dosed")


def with_shape(description: dict[str, Any]) -> dict[str, Any]:
    """A function's description from a file, the sizes of ``shooting_kernel`` in one tuple as today."""
    values = description["values"]
    if SHOOTING + SIZES[0] not in values:
        return description
    shape = {f"{SHOOTING}shoot.shape[{i}]": values[SHOOTING + name] for i, name in enumerate(SIZES)}
    others = {key: value for key, value in values.items() if not key.startswith(SHOOTING)}
    return {**description, "values": dict(sorted((others | shape).items()))}


CONVERSIONS.append(with_shape)


@functools.cache
def shooting_kernel(
    rhs: Callable[..., Any],
    pull: Any,
    method: str,
    shape: Shape,
    law: str = NORMAL,
    dof: float = 0.0,
    measurement: tuple[Any, ...] = (),
    is_judged: bool = False,
) -> Any:
    """The kernel of a ``Prepared``: energy and gradient from parameters, then starts, then standard deviations.

    measurement: entries of ``Measurement``. is_judged: whether the energy is infinite where a step is too long.
    """
    advance, retreat = lane_steps(rhs, pull, method, shape, is_judged=is_judged)
    measure, push = lane_measures(
        Measurement(*measurement), shape.dim, shape.n_parameters, shape.n_drives, places_of(shape).drive
    )
    add_datum, add_slope, finish_state = law_kernels(law, dof)

    @kernel
    def shoot(theta, energy, slope, numbers, work):
        parts = TrajectoryParts(shape, advance, retreat, measure, push, add_datum, add_slope, finish_state)
        shoot_segments(theta, energy, slope, numbers, work, parts)

    given = advance, retreat, measure, push, add_datum, add_slope, finish_state
    set_linked_form(shoot.py_func, functools.partial(linked_shoot, shape, *given))
    others = other_arguments(law, dof, measurement, is_judged=is_judged)
    set_recipe(shoot, shooting_kernel, rhs, pull, method, shape, *others)
    return shoot


def linked_shoot(shape: Shape, *functions: Any) -> Any:
    """``shoot`` of ``shooting_kernel`` by shared code."""
    SHOOT.provide()
    shared = SHOOT.pointer
    advance, retreat, measure, push, add_datum, add_slope, finish_state = (
        part_pointer(function, kind.signature) for function, kind in zip(functions, PARTS.types[1:], strict=True)
    )

    def shoot(theta, energy, slope, numbers, work):
        parts = TrajectoryParts(
            shape, advance(), retreat(), measure(), push(), add_datum(), add_slope(), finish_state()
        )  # fmt: skip
        part = shared()
        call_part(part, pack_arguments(part, (theta, energy, slope, numbers, work, parts)))

    return shoot


def part_pointer(function: Any, signature: Any) -> Any:
    """A part as a function pointer; those that many systems have, and that never raise, are compiled once for all."""
    if "<locals>" in function.py_func.__qualname__ or signature in WITHOUT_SLOPE:
        return pointer_to(function, signature, WITHOUT_SLOPE.get(signature))
    return pointer_to_part(function.py_func, signature, from_python=False)


def other_arguments(law: str, dof: float, measurement: tuple[Any, ...], *, is_judged: bool = False) -> tuple[Any, ...]:
    """The last arguments of ``shooting_kernel`` as short as they can be: the same kernel has one recipe."""
    if is_judged:
        return (law, dof, measurement, True)
    if measurement:
        return (law, dof, measurement)
    return () if law == NORMAL else (law, dof)


class Equations(NamedTuple):
    """A system with the pullback of its right-hand side, and the model where it is linear in its parameters."""

    system: System
    pullback: Any
    model: Model | None
    observation: Observation = NOTHING_ELSE

    @property
    def quantities(self) -> tuple[str, ...]:
        """Names of what may be measured: states, and functions of them."""
        return self.system.states + self.observation.names


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
    initial: the initial state (dim,) where it is fixed. signed: which states (dim,) may have either sign although
    errors are of logarithms; such states are not measured.
    """

    first_rows: Integers
    kick_sds: Array
    initial: Array | None
    signed: Bools | None = None


class Layout(NamedTuple):
    """What is measured and how: for the place of each datum in an energy's numbers, and its law.

    method: of the steps. pullback: of the right-hand side. is_judged: whether the energy is infinite where a step is
    too long.
    """

    system: System
    observation: Observation
    law: str
    dof: float
    shape: Shape
    method: str
    pullback: Any
    is_judged: bool = False

    @property
    def quantities(self) -> tuple[str, ...]:
        """Names of what may be measured."""
        return self.system.states + self.observation.names


class Solved(NamedTuple):
    """Measured values beside solutions: time, quantity and value of each datum (values,).

    data: logarithms where ``is_logarithmic``. solution: (n, values), nan where there is none. scales: standard
    deviations or dispersions of the errors (n, values).
    """

    times: Array
    quantities: Integers
    data: Array
    solution: Array
    scales: Array
    is_logarithmic: bool

    @property
    def errors_about(self) -> Array:
        """The solution (n, values), or its logarithm: the errors of ``data`` are about it."""
        if not self.is_logarithmic:
            return self.solution
        with np.errstate(all="ignore"):  # where there is no solution, or none > 0
            return np.log(self.solution)


ANSCOMBE = 0.375  # added to counts before the square root, whose variance is then nearly ¼ (Anscombe 1948)
LANES = 64  # draws whose solutions are in memory together
MOST_LANES = 200_000  # steps that are judged together
LEAST_SPREAD = 1e-3  # of a state's largest value: of a state that hardly changes


@dataclass(frozen=True, eq=False)
class TrajectoryEnergy(HoldsFunctions):
    """The energy of data as a function of θ = parameters, free initial states, free standard deviations."""

    names: tuple[str, ...]
    positive: tuple[bool, ...]
    kernel: Any
    numbers: Array
    work_rows: int
    dim: int
    initial: Array | None  # (dim,), the initial state where it is fixed
    begin_of_path: int  # in the work rows
    layout: Layout

    def evaluate(self, theta: Array) -> tuple[Array, Array]:
        """Energy (n,) and dU/dθ (n, q) at ``theta`` (n, q)."""
        energy, slope, _ = self.evaluate_with_path(theta)
        return energy, slope

    def evaluate_with_path(self, theta: Array) -> tuple[Array, Array, Array]:
        """Energy, gradient, and the states at every start, dose and after every step, (n, starts + …, dim)."""
        energy, slope, work = evaluated(self.kernel, self.numbers, self.work_rows, theta)
        end = self.work_rows - self.dim * self.layout.is_judged
        return energy, slope, work[self.begin_of_path : end].T.reshape(len(energy), -1, self.dim)

    @property
    def n_steps(self) -> int:
        """Steps of one solution."""
        return int(self._table()[:, N_STEPS].sum())

    @property
    def n_states(self) -> int:
        """Numbers that are in memory for one solution."""
        return self.dim * self.n_steps

    @property
    def method(self) -> str:
        """The method of the steps."""
        return self.layout.method

    def with_steps(self, factor: int) -> "TrajectoryEnergy":
        """The same energy with ``factor`` steps for each step."""
        numbers = np.array(self.numbers)
        rows = replace(self, numbers=numbers)._table()  # a view
        more = int(rows[:, N_STEPS].sum()) * (factor - 1)
        rows[:, N_STEPS] *= factor
        rows[:, STEP] /= factor
        return replace(self, numbers=numbers, work_rows=self.work_rows + self.dim * more)

    def judged_at(self, theta: Array) -> "TrajectoryEnergy":
        """The same energy, infinite where a step is too long for the solution; implicit steps are never judged.

        The spread of the states is that of the solution at ``theta`` (q,).
        """
        layout = self.layout
        if layout.method not in TABLEAUS or layout.is_judged:
            return self
        numbers = np.append(self.numbers, 1.0 / self.spread_at(theta))
        numbers[LIMIT] = -numbers[LIMIT]
        system, measurement = layout.system, measurement_of(layout.system, layout.observation)
        others = other_arguments(layout.law, layout.dof, tuple(measurement) if measurement.n else (), is_judged=True)
        kernel = shooting_kernel(driven(system).rhs, layout.pullback, layout.method, layout.shape, *others)
        return replace(
            self, kernel=kernel, numbers=numbers, work_rows=self.work_rows + self.dim,
            layout=layout._replace(is_judged=True),
        )  # fmt: skip

    def spread_at(self, theta: Array) -> Array:
        """The range (dim,) of each state of the solution at ``theta`` (q,); 1 of a state that is always 0."""
        path = self.evaluate_with_path(theta)[2][0]
        spread = np.maximum(np.ptp(path, axis=0), LEAST_SPREAD * np.abs(path).max(axis=0))
        return np.where(np.isfinite(spread) & (spread > 0.0), spread, 1.0)

    def unresolved(self, theta: Array, at: Array) -> Bools:
        """Whether a step of the solution is too long, (n,), at ``theta`` (n, q); implicit steps never are.

        at: (q,), where the spread of the solution is the unit of the states.
        """
        if self.method not in TABLEAUS:
            return np.zeros(len(theta), np.bool_)
        spread, n = self.spread_at(at), max(1, MOST_LANES // max(self.n_steps, 1))
        return np.concatenate([self._unresolved(theta[k : k + n], spread) for k in range(0, len(theta), n)])

    def _unresolved(self, theta: Array, spread: Array) -> Bools:
        """``unresolved`` of few draws."""
        at, table, shape = places_of(self.layout.shape), self._table(), self.layout.shape
        steps = table[:, N_STEPS].astype(np.int64)
        row = np.repeat(np.arange(len(table)), steps)
        j = np.arange(len(row)) - np.repeat(np.cumsum(steps) - steps, steps)
        doses = table[:, at.dose_in_row] != 0.0 if shape.is_dosed else np.zeros(len(table), np.bool_)
        first = (self._paths_of_rows(table) - at.path) // self.dim + doses
        states = self.evaluate_with_path(theta)[2][:, first[row] + j]
        drives = table[row, at.drive_in_row : at.drive_in_row + shape.n_drives]
        p = np.concatenate(
            [np.repeat(theta[:, : shape.n_parameters], len(row), axis=0), np.tile(drives, (len(theta), 1))], axis=1
        )
        times, lengths = (np.tile(of, len(theta)) for of in (table[row, TIME] + j * table[row, STEP], table[row, STEP]))
        rhs = driven(self.layout.system).rhs
        long = too_long(rhs, self.method, Steps(times, lengths, states.reshape(-1, self.dim), p), spread)
        return np.asarray(long.reshape(len(theta), -1).any(axis=1))

    @property
    def scale_rows(self) -> Integers | None:
        """The row of θ with the standard deviation of each value (values,), −1 where known.

        None where the errors are not normal about one solution's states, so that there are no residuals.
        """
        table, at = self._table(), places_of(self.layout.shape)
        _, columns = self._data_of(table)
        is_of_functions = bool((columns >= self.dim).any())
        if self.layout.law != NORMAL or is_of_functions or table[:, STARTS].sum() > 1.0:
            return None
        return self.numbers[at.free_row + columns].astype(np.int64)

    def residuals(self, theta: Array) -> Array:
        """Residuals (n, values) in standard deviations at ``theta`` (n, q), nan where there is no solution.

        Only where ``scale_rows`` is not None.
        """
        one = self.solved(theta)
        return (one.errors_about - one.data) / one.scales

    def measured(self) -> tuple[Measured, ...]:
        """What the values are: at each time all that was measured."""
        table = self._table()
        rows, columns = self._data_of(table)
        return (Measured(table[rows, TIME], tuple(self.layout.quantities[d] for d in columns)),)

    def log_densities(self, theta: Array) -> Array:
        """Log densities (n, values), with all constants, at ``theta`` (n, q), of the energy's own solutions.

        Kicks between segments are no data: they belong to the prior of the segments' initial states.
        """
        parts = [self._log_densities(theta[k : k + LANES]) for k in range(0, len(theta), LANES)]
        return np.concatenate(parts)

    def _table(self) -> Array:
        """Rows of the numbers, one for each time."""
        at = places_of(self.layout.shape)
        n_rows = int(self.numbers[N_ROWS])
        return self.numbers[at.table : at.table + n_rows * at.width].reshape(n_rows, at.width)

    def _data_of(self, table: Array) -> tuple[Integers, Integers]:
        """The row and the quantity of each datum."""
        n = len(self.layout.quantities)
        rows, columns = np.nonzero(table[:, N_ROW : N_ROW + 2 * n : 2])
        return rows, columns

    def _paths_of_rows(self, table: Array) -> Integers:
        """The first work row (rows,) of the state at each time: before a dose, and at a start that of the segment."""
        at = places_of(self.layout.shape)
        starts = (table[:, STARTS] != 0.0) & (np.arange(len(table)) > 0)
        doses = table[:, at.dose_in_row] != 0.0 if self.layout.shape.is_dosed else np.zeros(len(table), np.bool_)
        after = np.cumsum(starts + doses + table[:, N_STEPS].astype(np.int64))
        before = np.concatenate([[0], after[:-1]]) + starts
        return np.asarray(at.path + self.dim * before)

    def _log_densities(self, theta: Array) -> Array:
        """``log_densities`` of few draws."""
        at, table, law = places_of(self.layout.shape), self._table(), self.layout.law
        energy, _, work = evaluated(self.kernel, self.numbers, self.work_rows, theta)
        add_datum, _, finish_state = law_kernels(law, self.layout.dof)
        logarithmic = bool(self.numbers[LOGARITHMIC])
        paths, (rows, columns) = self._paths_of_rows(table), self._data_of(table)
        data = table[rows, N_ROW + 2 * columns + 1]
        out, sums, functions = np.zeros((len(data), len(theta))), np.zeros(len(theta)), np.zeros((0, 0))
        for k, (row, d) in enumerate(zip(rows, columns, strict=True)):
            if d >= self.dim and (k == 0 or rows[k - 1] != row or columns[k - 1] < self.dim):
                functions = self._functions_at(theta, table[row], work[paths[row] : paths[row] + self.dim])
            value = work[paths[row] + d] if d < self.dim else functions[d - self.dim]
            sums[:] = 0.0
            add_datum(value, out[k], sums, work[at.inverse + d], data[k], logarithmic)
            finish_state(out[k], sums, work[at.inverse + d], 1.0)
        out += constants_of_data(law, self.layout.dof, data, logarithmic=logarithmic)[:, None]
        return np.where(np.isfinite(energy)[:, None], -out.T, -np.inf)

    def normal_scores(self, theta: Array) -> Array:
        """Residuals (n, values) at ``theta`` (n, q), standard normal where the likelihood is right; else nan."""
        one = self.solved(theta)
        with np.errstate(all="ignore"):  # where there is no solution
            return normal_scores(self.layout.law, self.layout.dof, one.data, one.errors_about, one.scales)

    def fitted(self, theta: Array) -> tuple[Fitted, ...]:
        """The data beside the solution at ``theta`` (q,); counts by their square roots."""
        one, at, names = self.solved(theta[None]), places_of(self.layout.shape), self.layout.quantities
        data, solution = one.data, one.errors_about[0]
        is_known = self.numbers[at.free_row : at.free_row + len(names)] < 0.0
        if self.layout.law in COUNTS:
            is_known = np.zeros(len(names), np.bool_)
            with np.errstate(all="ignore"):  # where there is no solution
                data, solution = (2.0 * np.sqrt(of + ANSCOMBE) for of in (data, solution))
        known_sds = np.where(is_known, self.numbers[at.deviation : at.deviation + len(names)], 0.0)
        return (Fitted(one.times, one.quantities, data, solution, names, known_sds),)

    def solved(self, theta: Array) -> Solved:
        """The data beside the solutions at ``theta`` (n, q)."""
        parts = [self._solved(theta[k : k + LANES]) for k in range(0, len(theta), LANES)]
        table = self._table()
        rows, columns = self._data_of(table)
        data, solution, scales = table[rows, N_ROW + 2 * columns + 1], *map(np.concatenate, zip(*parts, strict=True))
        is_logarithmic = bool(self.numbers[LOGARITHMIC]) and self.layout.law == NORMAL  # kicks of counts alone are
        return Solved(table[rows, TIME], columns, data, solution, scales, is_logarithmic)

    def _solved(self, theta: Array) -> tuple[Array, Array]:
        """Solutions at the data and the errors' scales, each (n, values), of few draws; nan where there is none."""
        at, table = places_of(self.layout.shape), self._table()
        energy, _, work = evaluated(self.kernel, self.numbers, self.work_rows, theta)
        paths, (rows, columns) = self._paths_of_rows(table), self._data_of(table)
        solution = work[paths[rows] + np.minimum(columns, self.dim - 1)]
        for row in np.unique(rows[columns >= self.dim]):
            functions = self._functions_at(theta, table[row], work[paths[row] : paths[row] + self.dim])
            chosen = (rows == row) & (columns >= self.dim)
            solution[chosen] = functions[columns[chosen] - self.dim]
        return np.where(np.isfinite(energy), solution, np.nan).T, 1.0 / work[at.inverse + columns].T

    def _functions_at(self, theta: Array, row: Array, states: Array) -> Array:
        """The functions (functions, n) of ``states`` (dim, n) at a row's time and inputs."""
        at, layout = places_of(self.layout.shape), self.layout
        measure = checked_measure(layout.system, layout.observation, types.float64)
        drive = row[at.drive_in_row : at.drive_in_row + layout.shape.n_drives].tolist()
        parameters = theta[:, : layout.system.n_parameters].tolist()
        return np.array(
            [
                measure(float(row[TIME]), tuple(x), (*p, *drive)) if np.isfinite(x).all() else layout.observation.nans
                for x, p in zip(states.T.tolist(), parameters, strict=True)
            ]
        ).T.copy()


def evaluated(kernel: Any, numbers: Array, work_rows: int, theta: Array) -> tuple[Array, Array, Array]:
    """Energy (n,), gradient (n, q) and work rows (work_rows, n) of a likelihood's kernel at ``theta`` (n, q)."""
    columns = np.array(np.atleast_2d(theta).T, order="C")
    energy, slope = np.empty(columns.shape[1]), np.empty_like(columns)
    work = np.zeros((work_rows, columns.shape[1]))
    compile_part(kernel.py_func, KERNEL, packed=True)(columns, energy, slope, numbers, work)
    return energy, np.ascontiguousarray(slope.T), work


def values_in_order(data: Series, quantities: tuple[str, ...]) -> Array:
    """The data (n, quantities) with columns in the order of ``quantities``; nan for those that were not measured."""
    check_measured_states("data", data.states, quantities, all_of_them=False)
    values = np.full((len(data), len(quantities)), np.nan)
    for k, name in enumerate(data.states):
        values[:, quantities.index(name)] = data.values[:, k]
    return values


def steps_between(times: Array, step: float) -> Integers:
    """Number of steps from each time to the next, none longer than ``step``, and 0 after the last."""
    return np.append(equal_steps(np.diff(times), step).astype(np.int64), 0)


def trajectory_energy(
    equations: Equations,
    schedule: Schedule,
    values: Array,
    errors: ErrorModel,
    segments: Segments,
    *,
    method: str,
    step: float,
    limit: float,
    is_dosed: bool = False,
) -> TrajectoryEnergy:
    """The energy of ``values`` (n, quantities), nan where missing, at the times of ``schedule``, with ``segments``.

    is_dosed: whether this experiment, or one with the same kernel, has doses.
    """
    first_rows, kick_sds, initial, signed = segments
    system, times = equations.system, schedule.times
    dim, n_segments, quantities = system.dim, len(first_rows), equations.quantities
    steps = steps_between(times, step)
    if steps.sum() > MAX_STEPS:
        raise ValueError(f"step must leave at most {MAX_STEPS} steps, got {step:g} and so {steps.sum()} steps")
    measured = ~np.isnan(values)
    data = np.where(measured, values, 1.0)
    free = np.flatnonzero(errors.observed) if errors.free else np.zeros(0, np.int64)
    names = list(system.parameters)
    names += [f"{s}({k})" for k in range(initial is not None, n_segments) for s in system.states]
    free_rows = np.full(len(quantities), -1.0)
    free_rows[free] = len(names) + np.arange(len(free))
    names += [errors.scale_name(quantities[d]) for d in free]
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
    sd = np.where(errors.observed & ~np.full(len(quantities), errors.free), errors.sd, 1.0)
    table = np.zeros((len(times), N_ROW + 2 * len(quantities)))
    table[:, TIME], table[:, N_STEPS] = times, steps
    table[:-1, STEP] = np.diff(times) / steps[:-1]
    table[first_rows, STARTS] = 1.0
    table[:, N_ROW::2], table[:, N_ROW + 1 :: 2] = measured, data
    doses = [schedule.is_dosed[:, None], schedule.doses] if is_dosed else []
    table = np.concatenate([table, schedule.drives, *doses], axis=1)
    numbers = np.concatenate([header, kick_sds, sd, free_rows, counts, start, table.ravel()]).astype(np.float64)
    positive_states = [errors.logarithmic] * dim if signed is None else (errors.logarithmic & ~signed).tolist()
    positive = [False] * system.n_parameters
    positive += positive_states * (n_segments - (initial is not None)) + [True] * len(free)
    measurement = measurement_of(system, equations.observation)
    shape = Shape(dim, system.n_parameters, measurement.n, schedule.drives.shape[1], is_dosed)
    others = other_arguments(errors.law, errors.dof, tuple(measurement) if measurement.n else ())
    kernel = shooting_kernel(driven(system).rhs, equations.pullback, method, shape, *others)
    n_doses = int(schedule.is_dosed.sum()) if is_dosed else 0
    begin = places_of(shape).path
    rows = begin + dim * (int(steps.sum()) + n_segments + n_doses)
    layout = Layout(system, equations.observation, errors.law, errors.dof, shape, method, equations.pullback)
    return TrajectoryEnergy(tuple(names), tuple(positive), kernel, numbers, rows, dim, initial, begin, layout)
