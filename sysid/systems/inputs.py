"""What is done to a system from outside, and known: inputs u(t), and doses that are added to its states."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from targets.symbolic.source import compile_source
from toolkit.errors import check_array, check_flag, check_number, check_text, is_sequence, shown

from ..arrays import Array, Bools
from .dates import checked_origin, dates_of, since
from .numeric_dates import check_no_dates
from .system import System, check_names, compiled_function, mapping, tuple_text
from .units import check_time_units, factor_between, time_factor

TIME = "t"  # an input of this name that has no values is time itself
SAME_TIME = 1e-9  # of the span of times: nearer ones are equal


class Course(NamedTuple):
    """Numbers (n,) at increasing times (n,)."""

    times: Array
    values: Array


@dataclass(frozen=True, eq=False)
class Inputs:
    """Known inputs u(t) of a system, and doses.

    values: name → (times, values), both (n,), of increasing times: linear between them, or, for the names in ``held``,
    constant until the next time and after the last; or a number, for all times. doses: state → (times, amounts), both
    (n,): what is added to the state at these times; a state that is measured at the time of a dose is that before it.
    An input "t" of a system or library that has no values here is the time.
    Times may be dates, as those of a ``Series``; then all are, and they become the time since ``origin``, None: the
    earliest of them, in ``time_unit``, "": seconds. A Series of dates counts them from its own first date. time_unit:
    of the times; "" where that of the series is meant.
    Raises TypeError or ValueError naming what is off: the name and the value.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    held: tuple[str, ...] = ()
    doses: Mapping[str, Any] = field(default_factory=dict)
    time_unit: str = field(default="", kw_only=True)
    origin: Any = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        given = {f"values[{name!r}]": one for name, one in mapping("values", self.values).items() if is_table(one)}
        given |= {f"doses[{state!r}]": one for state, one in mapping("doses", self.doses).items()}
        unit, origin, clocks = clocks_of(given, check_text("time_unit", self.time_unit), checked_origin(self.origin))
        courses = {}
        for name, one in self.values.items():
            label = f"values[{name!r}]"
            courses[name] = course_of(label, one, clocks[label], unit) if is_table(one) else always(label, one)
        check_names("values", list(courses), at_least=0)
        held = check_held(self.held, tuple(courses))
        doses = {
            state: course_of(f"doses[{state!r}]", one, clocks[f"doses[{state!r}]"], unit)
            for state, one in self.doses.items()
        }
        check_names("doses", list(doses), at_least=0)
        for label, value in (("values", courses), ("held", held), ("doses", doses)):
            object.__setattr__(self, label, value)
        object.__setattr__(self, "time_unit", unit)
        object.__setattr__(self, "origin", origin)

    def __repr__(self) -> str:
        """What it holds."""
        doses = [f"{course.times.size} doses to {state}" for state, course in self.doses.items()]
        held = [f"{name} (held)" if name in self.held else name for name in self.values]
        return f"<Inputs: {', '.join([*held, *doses]) or 'none'}>"

    def at(self, times: Any, names: Any = None, *, before: bool = False) -> Array:
        """Inputs (n, inputs) at ``times`` (n,), those of ``names``, None: all; where one jumps, after the jump.

        before: before it. Raises ValueError for a name that it does not have, times of another shape, and one at which
        an input is not known; TypeError for what is no flag.
        """
        when = check_array("times", times)
        if when.ndim != 1:
            raise ValueError(f"times must have shape (n,), got {when.shape}")
        wanted = tuple(self.values) if names is None else check_names("names", names, at_least=0)
        check_flag("before", before)
        columns = [self._column(name, when, before) for name in wanted]
        return np.stack(columns, axis=1) if columns else np.zeros((when.size, 0))

    def with_time_unit(self, time_unit: str, *, factor: float | None = None) -> "Inputs":
        """The same inputs and doses with times in another unit.

        Parameters
        ----------
        time_unit
            The unit that is wanted.
        factor
            What a time is multiplied by, > 0. None: as known for "s", "min", "h", "day", "week", "year" and their
            synonyms.

        Returns
        -------
        Inputs
            With the same values and amounts.

        Raises
        ------
        ValueError
            Where ``factor`` is needed and not given, or is not the known one.
        """
        factor = time_factor(self.time_unit, check_text("time_unit", time_unit), factor)
        return moved(self, factor, 0.0, time_unit, self.origin)

    def _column(self, name: str, when: Array, before: bool) -> Array:
        """One input at ``when``."""
        if name == TIME and name not in self.values:
            return when
        if name not in self.values:
            known = ", ".join(self.values) or "none"
            raise ValueError(f"inputs must have values of {shown(name)}, got those of {known}")
        times, values = self.values[name]
        if np.isinf(times[0]):  # a number
            return np.full(when.size, values[0])
        slack = SAME_TIME * (times[-1] - times[0])
        last = np.inf if name in self.held else times[-1] + slack
        unknown = when[~((when >= times[0] - slack) & (when <= last))]
        if unknown.size:
            raise ValueError(
                f"inputs must have values of {name!r} at all times that are asked for, got some from {times[0]:.10g} "
                f"to {times[-1]:.10g} and none for {unknown[0]:.10g}"
            )
        if name not in self.held:
            return np.asarray(np.interp(when, times, values))
        n_begun = np.searchsorted(times + slack, when) if before else np.searchsorted(times - slack, when, "right")
        return np.asarray(values[np.maximum(n_begun - 1, 0)])


def on_clock(inputs: Inputs, whose: str, time_unit: str, origin: Any) -> Inputs:
    """Inputs with times as a series or system counts them, in ``time_unit`` from ``origin``; themselves if they do.

    Raises ValueError where the units of time differ, or the inputs have dates and the series has none.
    """
    if inputs.origin is None:
        remedy = f"give inputs.with_time_unit({time_unit!r})"
        check_time_units(("inputs", inputs.time_unit), (whose, time_unit), remedy)
        return inputs
    if origin is None:
        raise ValueError(
            f"inputs must have times as {whose} has them, numbers, got dates from {inputs.origin}: give the series "
            "dates, too, or origin, the date of its time 0"
        )
    factor = factor_between(inputs.time_unit, time_unit or "s")
    if factor is None:
        raise ValueError(f"time_unit of {whose} must be known where inputs have dates, got {time_unit!r}")
    if factor == 1.0 and origin == inputs.origin:
        return inputs
    shift = since("origin", np.array([inputs.origin]), time_unit, origin).numbers[0]
    return moved(inputs, factor, float(shift), time_unit or "s", origin)


def moved(inputs: Inputs, factor: float, shift: float, time_unit: str, origin: Any) -> Inputs:
    """Inputs with each time times ``factor``, plus ``shift``."""
    doses = {state: (factor * course.times + shift, course.values) for state, course in inputs.doses.items()}
    tables = tables_of(inputs, factor, shift)
    return Inputs(tables, inputs.held, doses, time_unit=time_unit, origin=origin)


def with_amounts(inputs: Inputs, factors: Mapping[str, float]) -> Inputs:
    """Inputs with doses to each state times its factor."""
    doses = {s: (course.times, factors.get(s, 1.0) * course.values) for s, course in inputs.doses.items()}
    tables = tables_of(inputs, 1.0, 0.0)
    return Inputs(tables, inputs.held, doses, time_unit=inputs.time_unit, origin=inputs.origin)


def tables_of(inputs: Inputs, factor: float, shift: float) -> dict[str, Any]:
    """Values as they are given to ``Inputs``, at each time times ``factor``, plus ``shift``."""
    return {
        name: course.values[0] if np.isinf(course.times[0]) else (factor * course.times + shift, course.values)
        for name, course in inputs.values.items()
    }


def check_held(held: Any, inputs: tuple[str, ...]) -> tuple[str, ...]:
    """``held`` as names, all of them of ``inputs``. Raises TypeError or ValueError otherwise."""
    names = check_names("held", held, at_least=0)
    for name in names:
        if name not in inputs:
            raise ValueError(f"held must name inputs ({', '.join(inputs) or 'none'}), got {shown(name)}")
    return names


def is_table(given: Any) -> bool:
    """Whether ``given`` has entries, as numbers have not."""
    return is_sequence(given) or (isinstance(given, np.ndarray) and given.ndim > 0)


def clocks_of(given: Mapping[str, Any], time_unit: str, origin: Any) -> tuple[str, Any, dict[str, Any]]:
    """The unit of time and the origin of dates, and label → times as numbers; None where they are numbers already.

    Raises ValueError where some tables have dates and others numbers.
    """
    dates = {}
    for label, table in given.items():
        if not is_table(table) or len(table) != 2:
            raise TypeError(f"{label} must be (times, numbers), both (n,), got {shown(table)}")
        dates[label] = dates_of(f"{label}[0]", table[0])
    dated = [label for label, clock in dates.items() if clock is not None and clock.dtype.kind == "M"]
    if not dated:
        durations = [label for label, clock in dates.items() if clock is not None]
        if durations and len(durations) < len(dates):
            other = next(label for label in dates if label not in durations)
            raise ValueError(
                f"times of inputs must all be durations or all be numbers, got durations in {durations[0]}, none in "
                f"{other}"
            )
        found = {
            label: None if clock is None else since(f"{label}[0]", clock, time_unit).numbers
            for label, clock in dates.items()
        }
        return (time_unit or "s") if durations else time_unit, origin, found
    if len(dated) < len(dates):
        other = next(label for label in dates if label not in dated)
        raise ValueError(
            f"times of inputs must all be dates or all be numbers, got dates in {dated[0]}, none in {other}"
        )
    if origin is None:
        origin = min(clock.min() for clock in dates.values())
    read = {label: since(f"{label}[0]", clock, time_unit, origin) for label, clock in dates.items()}
    return time_unit or "s", origin, {label: one.numbers for label, one in read.items()}


def course_of(label: str, given: Any, clock: Array | None, time_unit: str) -> Course:
    """``given`` as increasing times with numbers; clock: times that were dates. Raises TypeError or ValueError."""
    times = check_array(f"{label}[0]", given[0]) if clock is None else clock
    values = check_array(f"{label}[1]", given[1])
    if times.ndim == 1 and clock is None:
        check_no_dates(f"{label}[0]", times, time_unit)
    if times.ndim != 1 or not times.size or values.shape != times.shape:
        raise ValueError(f"{label} must be (times, numbers), both (n,), got shapes {times.shape} and {values.shape}")
    back = np.flatnonzero(~(np.diff(times) > 0.0))
    if back.size:
        k = int(back[0])
        raise ValueError(f"{label} must have increasing times, got {times[k]:.15g} and then {times[k + 1]:.15g}")
    return Course(times, values)


def always(label: str, given: Any) -> Course:
    """A number for all times."""
    return Course(np.array([-np.inf]), np.array([check_number(label, given)]))


NO_INPUTS = Inputs()


def is_driven(system: System, inputs: Inputs | None) -> bool:
    """Whether a solution of ``system`` has inputs or doses."""
    return bool(system.inputs) or (inputs is not None and bool(inputs.doses))


def knots_of(inputs: Inputs, names: Sequence[str]) -> Array:
    """Times (n,) at which inputs of these names have a kink or jump, or a dose is given; in order."""
    courses = [inputs.values[name] for name in names if name in inputs.values] + list(inputs.doses.values())
    every = np.concatenate([np.zeros(0), *(course.times for course in courses)])
    return np.unique(every[np.isfinite(every)])


class Schedule(NamedTuple):
    """Times between which inputs are linear, with the doses given at them.

    times: (n,). drives: (n, 1 + 2 inputs), for the interval after each: its beginning, inputs there, and their slopes,
    as ``driven`` has them behind the parameters; (n, 0) without inputs. doses: (n, dim). is_break: (n,), whether a
    solver has to begin anew there.
    """

    times: Array
    drives: Array
    doses: Array
    is_break: Bools

    @property
    def is_dosed(self) -> Bools:
        """Whether a dose is given, (n,)."""
        return np.asarray(self.doses.any(axis=1))


def schedule_of(system: System, inputs: Inputs | None, times: Array) -> Schedule:
    """``times`` (n,) and what happens at and between them; further times where an input changes or a dose is given.

    Raises ValueError where an input of the system is not known at all times, or a dose is of no state.
    """
    given = NO_INPUTS if inputs is None else inputs
    remedy = f"give inputs.with_time_unit({system.time_unit!r})"
    check_time_units(("inputs", given.time_unit), (f"the system {system.name!r}", system.time_unit), remedy)
    for state in given.doses:
        if state not in system.states:
            raise ValueError(f"doses must be of states ({', '.join(system.states)}), got {shown(state)}")
    if system.inputs and inputs is None and system.inputs != (TIME,):
        raise ValueError(f"inputs must be given for {system.name!r}, which has {', '.join(system.inputs)}, got none")
    knots = among(times, knots_of(given, system.inputs))
    every = np.unique(np.concatenate([times, knots]))
    doses = np.zeros((every.size, system.dim))
    for state, course in given.doses.items():
        inside = is_within(times, course.times)
        np.add.at(doses[:, system.states.index(state)], nearest_of(every, course.times[inside]), course.values[inside])
    drives = np.zeros((every.size, 0))
    if system.inputs:
        begins = given.at(every, system.inputs)
        ends = given.at(every[1:], system.inputs, before=True)
        slopes = np.zeros_like(begins)
        slopes[:-1] = (ends - begins[:-1]) / np.diff(every)[:, None]
        drives = np.concatenate([every[:, None], begins, slopes], axis=1)
    is_break = np.isin(every, knots)
    is_break[[0, -1]] = True
    return Schedule(every, drives, doses, is_break)


def is_within(times: Array, wanted: Array) -> Bools:
    """Which of ``wanted`` (k,) are between the first and the last of ``times`` (n,), or equal to one of these."""
    slack = SAME_TIME * (times[-1] - times[0])
    return np.asarray((wanted >= times[0] - slack) & (wanted <= times[-1] + slack))


def among(times: Array, wanted: Array) -> Array:
    """Those of ``wanted`` (k,) within ``times`` (n,), as these have them where they are nearly equal."""
    inside = wanted[is_within(times, wanted)]
    nearest = times[nearest_of(times, inside)]
    return np.where(np.abs(nearest - inside) <= SAME_TIME * (times[-1] - times[0]), nearest, inside)


def nearest_of(times: Array, wanted: Array) -> Any:
    """The index of the nearest of increasing ``times`` (n,) to each of ``wanted`` (k,)."""
    after = np.minimum(np.searchsorted(times, wanted), times.size - 1)
    before = np.maximum(after - 1, 0)
    return np.where(wanted - times[before] < times[after] - wanted, before, after)


def inputs_text(n_parameters: int, n_inputs: int) -> str:
    """The text of the tuple of inputs at time t, from what ``driven`` has behind the parameters p."""
    t0, first, slopes = n_parameters, n_parameters + 1, n_parameters + 1 + n_inputs
    return tuple_text([f"p[{first + k}] + p[{slopes + k}]*(t - p[{t0}])" for k in range(n_inputs)])


@functools.cache
def driven(system: System) -> System:
    """``system`` without inputs: as further parameters, a time t0, the inputs there, and their constant slopes."""
    if not system.inputs:
        return system
    n, m = system.n_parameters, len(system.inputs)
    arguments = f"{tuple_text([f'p[{k}]' for k in range(n)])}, {inputs_text(n, m)}"
    source = f"def rhs(t, x, p):\n    return of_inputs(t, x, {arguments})\n"
    rhs = compile_source("driven", "rhs", source, {"of_inputs": compiled_function(system.rhs), "__name__": "generated"})
    names = ["t0 of inputs", *(f"{u} at t0" for u in system.inputs), *(f"slope of {u}" for u in system.inputs)]
    usual = np.concatenate([system.usual, [0.0], np.ones(m), np.zeros(m)])
    return System(
        system.name, system.states, system.parameters + tuple(names), rhs, usual, system.start, system.time_unit,
        system.units,
    )  # fmt: skip


def drives_at(system: System, inputs: Inputs | None, times: Array) -> Array:
    """What ``driven`` has behind the parameters at each of ``times`` (n,): (n, 1 + 2 inputs), or (n, 0) without."""
    if not system.inputs:
        return np.zeros((times.size, 0))
    values = (inputs or NO_INPUTS).at(times, system.inputs)
    return np.concatenate([times[:, None], values, np.zeros_like(values)], axis=1)
