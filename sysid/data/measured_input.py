"""Numbers and times as tables of pandas and NumPy have them: nullable columns, dates and durations."""

import re
from typing import Any

import numpy as np

from toolkit.errors import check_array, check_measured, is_sequence, shown

from ..arrays import Array

SECONDS_IN = {
    "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "second": 1.0, "seconds": 1.0, "min": 60.0, "minute": 60.0,
    "minutes": 60.0, "h": 3600.0, "hour": 3600.0, "hours": 3600.0, "d": 86400.0, "day": 86400.0, "days": 86400.0,
    "week": 604800.0, "weeks": 604800.0, "year": 31557600.0, "years": 31557600.0,
}  # fmt: skip
DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)?Z?", re.ASCII)


def is_of_pandas(value: Any) -> bool:
    """Whether ``value`` is a table, column, index or array of pandas."""
    return type(value).__module__.partition(".")[0] == "pandas" and hasattr(type(value), "to_numpy")


def kinds_of(value: Any) -> str:
    """The kinds of an object of pandas or an array, as NumPy's letters: "i", "f", "M" of dates, …; one per column."""
    dtypes = getattr(value, "dtypes", None) if getattr(value, "ndim", 1) == 2 else None
    return "".join(dtype.kind for dtype in (dtypes if dtypes is not None else [value.dtype]))


def measured_numbers(name: str, values: Any) -> Array:
    """``values`` as ``check_measured`` has them, also where pandas says that some are missing (``pd.NA``)."""
    if is_of_pandas(values) and set(kinds_of(values)) <= set("iuf"):
        values = values.to_numpy(dtype=np.float64, na_value=np.nan)
    return check_measured(name, values)


def numbers_of_times(times: Any, time_unit: str) -> tuple[Array, str]:
    """``times`` (n,) as numbers, and their unit.

    Dates become the time since the first, durations their length, in ``time_unit``, or in seconds where that is "".
    Raises ValueError where one is missing, or the unit of dates is none of ``SECONDS_IN``.
    """
    clock = times
    if is_of_pandas(times) and kinds_of(times) in ("M", "m"):
        clock = times.to_numpy(dtype=f"{kinds_of(times)}8[ns]")
    elif is_sequence(times) and len(times) and isinstance(times[0], np.datetime64 | np.timedelta64):
        clock = np.asarray(times)
    if not isinstance(clock, np.ndarray) or clock.dtype.kind not in "mM":
        return check_array("times", measured_numbers("times", times) if is_of_pandas(times) else times), time_unit
    missing = np.flatnonzero(np.isnat(clock))
    if missing.size:
        raise ValueError(f"times must be dates at every row, got none (NaT) at row {missing[0]}")
    factor = seconds_of(time_unit)
    if clock.dtype.kind == "M":
        clock = clock - clock[:1]
    return np.asarray((clock / np.timedelta64(1, "s")).astype(np.float64) / factor), time_unit or "s"


def seconds_of(time_unit: str) -> float:
    """Seconds in a unit of time; 1 of "". Raises ValueError for another word."""
    if time_unit and time_unit not in SECONDS_IN:
        raise ValueError(
            f"time_unit must be one of {', '.join(map(repr, SECONDS_IN))} where times are dates, got {shown(time_unit)}"
        )
    return SECONDS_IN[time_unit or "s"]


def date_of(word: str) -> np.datetime64 | None:
    """The date that ``word`` says as in ISO 8601, with or without a time of the day; None where it says none."""
    if not DATE.fullmatch(word):
        return None
    try:
        return np.datetime64(word.removesuffix("Z"), "ns")
    except ValueError:
        return None
