"""Data to identify a system from: simulated with noise, from arrays, and a table of the public record."""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import scipy
from numba import types

from toolkit.errors import (
    check_choice,
    check_count,
    check_deviation,
    check_flag,
    check_instance,
    check_number,
    check_real_array,
    check_row,
    check_text,
    is_a,
    package_root,
    shown,
)

from ..arrays import Array
from ..solvers.driven_solution import solve_driven
from ..solvers.integrate import DONE, Solution, check_times, solve
from ..solvers.right_hand_side import slopes_along
from ..systems.dates import ReadTimes, dates_of
from ..systems.inputs import Inputs, check_held, is_driven
from ..systems.system import System, check_names, checked_rhs
from .files import load
from .measured_input import is_of_pandas, kinds_of, measured_numbers, read_times
from .series import Series, inputs_of_table

ERRORS = ("gaussian", "lognormal")
SCIPY = ("DOP853", "LSODA")
RTOL, ATOL = 1e-10, 1e-12
GROWTH_LIMIT, MAX_LIMIT = 1e8, 1e150  # a state so many times the largest at the start, or 1, has blown up
MAX_EVALUATIONS = 2_000_000
PROGRESS_INTERVAL = 1000  # evaluations within which time must go on


def simulate(
    system: System,
    times: Any,
    *,
    parameters: Any = None,
    start: Any = None,
    noise: Any = 0.0,
    errors: str = "gaussian",
    relative: bool = True,
    missing: float = 0.0,
    seed: int,
    method: str = "DOP853",
    inputs: Inputs | None = None,
) -> Series:
    """States of ``system`` at ``times`` with errors: independent, of mean 0, or, lognormal, factors of median 1.

    times: (n ≥ 2,) increasing, even or not, the first that of ``start``. parameters, start: None: the usual ones.
    noise: a number or one per state: the errors' standard deviation as a share of the root mean square of the state, or
    where not ``relative`` in its unit; for "lognormal" that of the logarithm. missing: share of all values that are
    dropped, of each state at least two kept. method: "DOP853" or "LSODA" of SciPy with rtol 1e-10, or "dopri5" of
    ``solve``. inputs: known inputs and doses, which the series has, too. The series has the exact velocities f(x) at
    the exact states x, and the standard deviations.
    Law: values − states are N(0, noise²), or log(values / states) are; the same ``seed`` gives the same errors,
    whatever is dropped.
    Raises TypeError or ValueError naming the argument; ArithmeticError where the system cannot be solved.
    """
    check_instance("system", system, System)
    times = check_times(times)
    if times.size < 2:
        raise ValueError(f"times must be at least 2, got {times.size}: a Series of one sample says nothing of a change")
    check_choice("errors", errors, ERRORS)
    check_flag("relative", relative)
    missing = check_number("missing", missing, at_least=0.0, below=1.0)
    seed = check_count("seed", seed, at_least=0, below=2**64)
    generator, missing_generator = (np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(2))
    deviations = np.array([check_deviation("noise", float(v)) for v in np.ravel(check_real_array("noise", noise))])
    if deviations.size not in (1, system.dim):
        raise ValueError(f"noise must be one number, or one of each of {system.dim} states, got {deviations.size}")
    check_choice("method", method, (*SCIPY, "dopri5"))
    p = check_row("parameters", system.usual if parameters is None else parameters, system.n_parameters)
    x = check_row("start", system.start if start is None else start, system.dim)
    if inputs is not None:
        check_instance("inputs", inputs, Inputs)
    states = exact_driven_states(system, times, p, x, method, inputs)
    deviations = np.broadcast_to(deviations, (system.dim,)).copy()
    draws = generator.standard_normal(states.shape)
    if errors == "lognormal":
        not_positive = np.argwhere(states <= 0.0)
        if not_positive.size:
            row, column = not_positive[0]
            raise ValueError(
                f"errors must be 'gaussian' unless all states are > 0, but {shown(system.states[column])} is "
                f"{states[row, column]:.6g} at time {times[row]:.6g}"
            )
        values = states * np.exp(deviations * draws)
    else:
        if relative:
            deviations *= np.sqrt((states**2).mean(axis=0))
        values = states + deviations * draws
    drop_values(values, missing, missing_generator)
    return Series(
        times, values, system.states, slopes_along(system, times, states, p, inputs), deviations, system.time_unit,
        system.units, system.name, f"simulated: {method}, {errors} errors, seed {seed}", inputs,
    )  # fmt: skip


def drop_values(values: Array, share: float, generator: np.random.Generator) -> None:
    """Make a share of ``values`` (n, dim) missing, but of each state at least two remain."""
    order = generator.random(values.shape).argsort(axis=0)
    droppable = np.flatnonzero((order < len(values) - 2).ravel())
    n = min(round(share * values.size), droppable.size)
    values.ravel()[generator.permutation(droppable)[:n]] = np.nan


def exact_driven_states(
    system: System, times: Array, parameters: Array, start: Array, method: str, inputs: Inputs | None
) -> Array:
    """As ``exact_states``, of a system with inputs or doses."""
    if not is_driven(system, inputs):
        return exact_states(system, times, parameters, start, method)

    def solve_one(plain: System, when: Array, p: Array, x: Array) -> Solution:
        states = exact_states(plain, when, p[0], x[0], method)
        return Solution(plain, when, states[None], np.array([DONE]), when[-1:], np.zeros(1, np.int64))

    return np.asarray(solve_driven(solve_one, system, times, parameters[None], start[None], inputs, 10**9).states[0])


def exact_states(system: System, times: Array, parameters: Array, start: Array, method: str) -> Array:
    """States to some ten digits. Raises ArithmeticError where the system cannot be solved."""
    if method == "dopri5":
        limit = min(GROWTH_LIMIT * max(1.0, float(np.abs(start).max())), MAX_LIMIT)
        found = solve(system, times, parameters, start, rtol=RTOL, atol=ATOL, max_steps=10**7, limit=limit)
        return np.asarray(found.check().states)
    slope = checked_rhs(system.rhs, system.dim, system.n_parameters, types.float64)
    p = tuple(parameters.tolist())
    evaluations, last_time = 0, -np.inf

    def rhs(t: float, x: Array) -> Any:
        nonlocal evaluations, last_time
        evaluations += 1
        if evaluations % PROGRESS_INTERVAL == 0:
            if evaluations > MAX_EVALUATIONS or abs(t - last_time) <= 4.0 * np.spacing(abs(t)):
                raise ArithmeticError(f"{system.name} was not solved: {evaluations} evaluations, and only t = {t:.6g}")
            last_time = t
        return slope(t, tuple(x.tolist()), p)

    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # LSODA warns of what its status says
        found = scipy.integrate.solve_ivp(
            rhs, (times[0], times[-1]), start, method=method, t_eval=times, rtol=RTOL, atol=ATOL
        )
    if not found.success or not np.isfinite(found.y).all():
        last = found.t[-1] if found.t.size else times[0]
        raise ArithmeticError(f"{system.name} was not solved after t = {last:.6g}: {found.message}")
    states = np.ascontiguousarray(found.y.T)
    states[0] = start  # LSODA gives it back to rounding
    return states


def from_arrays(
    times: Any,
    values: Any,
    states: Any,
    *,
    velocities: Any = None,
    noise: Any = None,
    time_unit: str = "",
    units: Any = (),
    name: str = "data",
    source: str = "",
    inputs: Inputs | None = None,
    date_format: str = "",
) -> Series:
    """A ``Series`` of arrays: values (n, dim), or (n,) of one state; nan, or masked, where missing.

    states: names of the columns, or of the one. date_format: how ``datetime.strptime`` reads times that are words or
    numbers, as "%d/%m/%Y" or "%Y%m%d"; "": words as of ISO 8601. The rest: as in ``Series``.
    Raises TypeError or ValueError naming what is off: the row and the value.
    """
    table = measured_numbers("values", values)
    table = table[:, None] if table.ndim == 1 else table
    named = (states,) if is_a(states, str) else states
    read = read_times("times", times, check_text("time_unit", time_unit), None, check_text("date_format", date_format))
    return Series(
        read.numbers, table, named, velocities, noise, read.time_unit, units, name, source, inputs, origin=read.origin
    )


def from_dataframe(
    frame: Any,
    *,
    time: str | None = None,
    states: Any = None,
    noise: Any = None,
    time_unit: str = "",
    units: Any = (),
    name: str = "data",
    source: str = "",
    inputs: Any = (),
    held: Any = (),
    date_format: str = "",
) -> Series:
    """A ``Series`` of a DataFrame of pandas; nan, or NA, where a value is missing.

    time: the column of times; None: the index, of numbers or dates. Dates become the time since the first, in
    ``time_unit`` ("s", "min", "h", "day" and the like; "": seconds). date_format: as in ``from_arrays``.
    states: the columns of the states; None: all but the time and inputs. inputs: columns of known inputs, left out
    where missing, those in ``held`` as they are until the next row. The rest: as in ``Series``.
    Raises TypeError for what is no DataFrame; ValueError naming what is off: a column that is not there, is repeated or
    holds no numbers, or an index that only counts the rows.
    """
    if not is_of_pandas(frame) or getattr(frame, "ndim", 0) != 2:
        raise TypeError(f"frame must be a DataFrame of pandas, got {shown(frame)} of type {type(frame).__name__}")
    if time is not None:
        check_text("time", time)
    columns = list(frame.columns)
    driving = check_names("inputs", inputs, at_least=0)
    held = check_held(held, driving)
    others = tuple(c for c in columns if c != time and c not in driving)
    chosen = others if states is None else check_names("states", states)
    for column in (*chosen, *driving, *(() if time is None else (time,))):
        if columns.count(column) != 1:
            label = "time" if time is not None and column == time else "inputs" if column in driving else "states"
            found = "it twice" if column in columns else f"columns {', '.join(map(shown, columns[:12]))}"
            raise ValueError(f"{label} must name columns of frame, each there once, got {shown(column)} and {found}")
    if time is not None and time in chosen:
        raise ValueError(f"states must not hold the time, got {shown(time)}")
    check_names("states", chosen)
    if time is None and type(frame.index).__name__ == "RangeIndex" and frame.index.name is None:
        raise ValueError("time must name the column of times, got None where the index only counts the rows")
    for column in (*chosen, *driving):
        if kinds_of(frame[column]) not in ("i", "u", "f"):
            raise ValueError(f"frame must hold numbers in column {shown(column)}, got {frame[column].dtype}")
    times = frame.index if time is None else frame[time]
    read = times_of_column(time, times, check_text("time_unit", time_unit), check_text("date_format", date_format))
    made = Series(
        read.numbers, frame[list(chosen)], chosen, None, noise, read.time_unit, units, name, source, origin=read.origin
    )
    if not driving:
        return made
    table = measured_numbers("inputs", frame[list(driving)])
    return replace(made, inputs=inputs_of_table(made.times, table, driving, held))


def times_of_column(time: str | None, times: Any, time_unit: str, date_format: str) -> ReadTimes:
    """The times in a column or index. Raises ValueError where it holds neither numbers nor dates."""
    if kinds_of(times) not in ("i", "u", "f", "m", "M") and dates_of("times", times, date_format) is None:
        raise ValueError(f"time must be a column or index of numbers or dates, got {shown(time)} of {times.dtype}")
    return read_times("times", times, time_unit, None, date_format)


def lynx_hare() -> Series:
    """Pelts of hare and lynx taken in by the Hudson's Bay Company, in thousands, every year from 1900 to 1920.

    Source: public record, printed in Odum (1953); digits as in Howard (2009) and in the Stan case study of
    Carpenter (2018). Its time is the year.
    """
    return load(
        package_root(__name__) / "data" / "lynx_hare.csv", time="year", states=("hare", "lynx"), time_unit="year",
        units=("thousand pelts",) * 2, source="Hudson's Bay Company, after Odum (1953) and Howard (2009)",
    )  # fmt: skip
