"""Numbers and times as tables of pandas and NumPy have them: nullable columns, dates and durations."""

from typing import Any

import numpy as np

from toolkit.errors import check_array, check_measured, shown

from ..arrays import Array
from ..systems.dates import ReadTimes, dates_of, label_of_attributes, since
from ..systems.numeric_dates import check_no_dates


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


def read_times(name: str, times: Any, time_unit: str, origin: Any = None, date_format: str = "") -> ReadTimes:
    """``times`` (n,) as numbers, with their unit, and the date at which they are 0 where they are dates.

    Dates become the time since ``origin``, or the first, durations their length, in ``time_unit``, or in seconds where
    that is "". Raises ValueError where one is missing, the unit of dates is none of ``SECONDS_IN``, or numbers look
    like dates.
    """
    time_unit = label_of_attributes(times, time_unit)
    clock = dates_of(name, times, date_format)
    if clock is not None:
        return since(name, clock, time_unit, origin)
    if date_format:
        raise ValueError(f"{name} must be dates, as date_format={shown(date_format)} says, got {shown(times)}")
    numbers = check_array(name, measured_numbers(name, times) if is_of_pandas(times) else times)
    if numbers.ndim == 1:
        check_no_dates(name, numbers, time_unit)
    return ReadTimes(numbers, time_unit, origin)
