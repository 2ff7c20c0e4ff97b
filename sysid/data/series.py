"""Measured or simulated time series of a system's states."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from toolkit.errors import check_array, check_choice, check_instance, check_number, check_text, is_a, optional, shown

from ..arrays import Array
from ..systems.dates import checked_origin
from ..systems.inputs import NO_INPUTS, Inputs, among, moved, on_clock, with_amounts
from ..systems.system import check_names, check_units, mapping
from ..systems.units import time_factor
from .measured_input import measured_numbers, read_times


@dataclass(frozen=True, eq=False)
class Series:
    """States of a system at some times.

    times: (n,), increasing; dates (of NumPy, pandas, xarray or Python, with time zones or without, or words as of ISO
    8601) become the time since ``origin``, None: the first, in ``time_unit``: "s", "min", "h", "day" and the like; "":
    in seconds. values: (n, dim); nan, masked, or pandas' NA, where a value is missing.
    states: names of columns.
    velocities: (n, dim), exact time derivatives, of simulated data. noise: (dim,) standard deviations of the errors
    where known, of the values or, log-normal, of their logarithms. time_unit, units: "" where without. source: where
    it is from. inputs: known inputs and doses, at times of their own; their dates count from ``origin``, too.
    Wherever series meet each other, a system or inputs, labels of units are compared: equal ones or their synonyms
    ("h", "hours") fit, "" fits any, and others are refused until ``with_time_unit`` or ``with_units`` is called.
    Raises TypeError or ValueError naming what is off: the row and the value.
    """

    times: Array
    values: Array
    states: tuple[str, ...]
    velocities: Array | None = None
    noise: Array | None = None
    time_unit: str = ""
    units: tuple[str, ...] = field(default=())
    name: str = "data"
    source: str = ""
    inputs: Inputs | None = None
    origin: Any = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        states = check_names("states", self.states)
        unit = check_text("time_unit", self.time_unit)
        times, time_unit, origin = read_times("times", self.times, unit, checked_origin(self.origin))
        object.__setattr__(self, "time_unit", time_unit)
        object.__setattr__(self, "origin", origin)
        values = measured_numbers("values", self.values)
        if times.ndim != 1 or values.shape != (times.size, len(states)):
            raise ValueError(
                f"values must have shape (times, states) = ({times.size}, {len(states)}), got {values.shape}, "
                f"and times shape (times,), got {times.shape}"
            )
        if times.size < 2:
            raise ValueError(f"times must be at least 2, got {times.size}: one sample says nothing of a change")
        steps = np.diff(times)
        back = np.flatnonzero(~(steps > 0.0))
        if back.size:
            k = int(back[0])
            what = "repeated" if steps[k] == 0.0 else "decreasing"
            raise ValueError(
                f"times must increase, got {times[k]:.15g} and then {times[k + 1]:.15g} ({what}) at row {k + 1}"
            )
        infinite = np.argwhere(np.isinf(values))
        if infinite.size:
            row, column = infinite[0]
            raise ValueError(
                f"values must be finite, or nan where missing, got {values[row, column]} of "
                f"{shown(states[column])} at row {row}"
            )
        empty = np.flatnonzero(np.isnan(values).all(axis=0))
        if empty.size:
            raise ValueError(f"values must not all be missing, but are for {shown(states[empty[0]])}")
        for name, shape in (("velocities", values.shape), ("noise", (len(states),))):
            given = getattr(self, name)
            if given is not None:
                array = check_array(name, given)
                if array.shape != shape:
                    raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
                if name == "noise" and (array < 0.0).any():
                    raise ValueError(f"noise must be ≥ 0, got {array.min():g}")
                object.__setattr__(self, name, array)
        units = check_units(self.units, len(states))
        for label in ("name", "source"):
            check_text(label, getattr(self, label))
        if self.inputs is not None:
            check_instance("inputs", self.inputs, Inputs)
            inputs = on_clock(self.inputs, f"the series {self.name!r}", time_unit, origin)
            object.__setattr__(self, "inputs", inputs)
        for label, value in (("times", times), ("values", values), ("states", states), ("units", units)):
            object.__setattr__(self, label, value)

    def __repr__(self) -> str:
        """Its name and size."""
        missing = int(np.isnan(self.values).sum())
        lost = f", {missing} values missing" if missing else ""
        span = f"{len(self)} times {self.times[0]:g} … {self.times[-1]:g}"
        driven = "" if self.inputs is None else f", {self.inputs!r}"
        return f"<Series {self.name!r}: {', '.join(self.states)} at {span}{lost}{driven}>"

    def __len__(self) -> int:
        """Number of times."""
        return int(self.times.size)

    def to_dataframe(self) -> Any:
        """A pandas DataFrame: states as columns, by name, with nan where missing; the index "time".

        Needs pandas (extra ``data``). Raises ImportError without it.
        """
        pandas = optional("pandas", "data")
        return pandas.DataFrame(self.values.copy(), pandas.Index(self.times.copy(), name="time"), list(self.states))

    def with_time_unit(self, time_unit: str, *, factor: float | None = None) -> "Series":
        """The same series with times in another unit.

        Parameters
        ----------
        time_unit
            The unit that is wanted.
        factor
            What a time is multiplied by, > 0. None: as known for "s", "min", "h", "day", "week", "year" and their
            synonyms. 1 writes a unit beside times that have it.

        Returns
        -------
        Series
            With its inputs and doses at times in that unit, and its velocities per that unit.

        Raises
        ------
        ValueError
            Where ``factor`` is needed and not given, or is not the known one.

        Examples
        --------
        >>> from sysid import Series
        >>> Series([0.0, 60.0], [[2.0], [1.0]], ("c",), time_unit="min").with_time_unit("h").times
        array([0., 1.])
        """
        factor = time_factor(self.time_unit, check_text("time_unit", time_unit), factor)
        inputs = None if self.inputs is None else moved(self.inputs, factor, 0.0, time_unit, self.inputs.origin)
        velocities = None if self.velocities is None else self.velocities / factor
        return replace(self, times=factor * self.times, velocities=velocities, time_unit=time_unit, inputs=inputs)

    def with_units(self, units: Any, *, factor: Any, errors: str | None = None) -> "Series":
        """The same series with values of some states in other units.

        Parameters
        ----------
        units
            State → the label of the unit that is wanted.
        factor
            What values of these states are multiplied by, > 0: one number for all of ``units``, or state → number. 1
            writes a unit beside values that have it.
        errors
            What ``noise`` is of: "gaussian", of the values, whose unit it has; "lognormal", of their logarithms, which
            have none. None where the series has no noise.

        Returns
        -------
        Series
            With velocities, noise and doses in these units, too.

        Raises
        ------
        ValueError
            For other states, and where ``errors`` is needed and not given.

        Examples
        --------
        >>> from sysid import Series
        >>> series = Series([0.0, 1.0], [[2.0], [1.0]], ("c",), units=("g/L",))
        >>> series.with_units({"c": "mg/L"}, factor=1000.0).values.ravel().tolist()
        [2000.0, 1000.0]
        """
        wanted = mapping("units", units)
        for state in wanted:
            if state not in self.states:
                raise ValueError(f"units must name states ({', '.join(self.states)}), got {shown(state)}")
        given = mapping("factor", factor) if is_a(factor, dict) else dict.fromkeys(wanted, factor)
        factors = {state: check_number(f"factor of {state!r}", given.get(state), above=0.0) for state in wanted}
        if errors is not None:
            check_choice("errors", errors, ("gaussian", "lognormal"))
        row = np.array([factors.get(state, 1.0) for state in self.states])
        if self.noise is not None and errors is None and (row != 1.0).any():
            raise ValueError("errors must be 'gaussian' or 'lognormal' for a series with noise, got None")
        noise = self.noise if self.noise is None or errors == "lognormal" else self.noise * row
        labels = tuple(check_text(f"units[{s!r}]", wanted[s]) if s in wanted else u
                       for s, u in zip(self.states, self.units, strict=True))  # fmt: skip
        velocities = None if self.velocities is None else self.velocities * row
        inputs = None if self.inputs is None else with_amounts(self.inputs, factors)
        return replace(self, values=self.values * row, velocities=velocities, noise=noise, units=labels, inputs=inputs)

    @property
    def is_complete(self) -> bool:
        """Whether no value is missing."""
        return not bool(np.isnan(self.values).any())


def check_measured_states(name: str, measured: tuple[str, ...], states: tuple[str, ...], *, all_of_them: bool) -> None:
    """Raise ValueError where ``measured`` has a state that is none of ``states``, or lacks one and ``all_of_them``."""
    unknown = [state for state in measured if state not in states]
    if unknown:
        raise ValueError(f"{name} must have states of the model, {', '.join(states)}, got {shown(unknown[0])}")
    lacking = [state for state in states if state not in measured]
    if lacking and all_of_them:
        raise ValueError(
            f"{name} must have all states of the model, {', '.join(states)}, got {', '.join(measured)} without "
            f"{shown(lacking[0])}"
        )


def in_order(name: str, series: Series, states: tuple[str, ...]) -> Series:
    """``series`` with its columns in the order of ``states``; itself where they are so already.

    Raises TypeError for what is no Series, ValueError naming a state that it lacks or that is none of ``states``.
    """
    check_series(name, series)
    if series.states == states:
        return series
    check_measured_states(name, series.states, states, all_of_them=True)
    places = [series.states.index(state) for state in states]
    return replace(
        series,
        values=series.values[:, places],
        states=states,
        velocities=None if series.velocities is None else series.velocities[:, places],
        noise=None if series.noise is None else series.noise[places],
        units=tuple(series.units[place] for place in places),
    )


def has_doses(series: Series) -> bool:
    """Whether doses are given."""
    return series.inputs is not None and bool(series.inputs.doses)


def with_inputs(series: Series, names: tuple[str, ...], times: Array, states: Array, *, before: bool = False) -> Array:
    """``states`` (n, dim) at ``times`` (n,), and the series' inputs of these names beside them, (n, dim + inputs).

    before: where one jumps, before that. Raises ValueError where an input is not known there.
    """
    if not names:
        return states
    given = series.inputs or NO_INPUTS
    return np.concatenate([states, given.at(times, names, before=before)], axis=1)


def with_times(series: Series, times: Array) -> Series:
    """The series with rows of nan at those of ``times`` (k,) that lie between its own; itself where none does."""
    every = np.unique(np.concatenate([series.times, among(series.times, times)]))
    if every.size == len(series):
        return series
    values = np.full((every.size, len(series.states)), np.nan)
    values[np.searchsorted(every, series.times)] = series.values
    return replace(series, times=every, values=values, velocities=None)


def inputs_of_table(times: Array, table: Array, names: tuple[str, ...], held: Any) -> Inputs:
    """Inputs of columns (n, inputs), nan where missing."""
    known = ~np.isnan(table)
    return Inputs({u: (times[there], x[there]) for u, x, there in zip(names, table.T, known.T, strict=True)}, held)


def check_series(name: str, value: Any) -> Series:
    """``value`` where it is a ``Series``. Raises TypeError otherwise."""
    if not is_a(value, Series):
        raise TypeError(f"{name} must be a Series (see sysid.data), got {shown(value)} of type {type(value).__name__}")
    return value  # type: ignore[no-any-return]
