"""Times that are dates: of NumPy, pandas, xarray and Python, and as words; read as dates, or refused as such."""

import datetime
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolkit.errors import check_text, is_a, is_sequence, shown

from ..arrays import Array
from .units import check_time_units, seconds_of

CLOCK = r"\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?"
ISO = re.compile(rf"(\d{{4}}-\d{{2}}(?:-\d{{2}}(?:[T ]{CLOCK})?)?)(Z|[-+]\d{{2}}:?\d{{2}})?", re.ASCII)
DAY_OR_MONTH_FIRST = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})(?:([T ])(\d{1,2}:\d{2}(:\d{2})?))?", re.ASCII)
YEAR_FIRST = re.compile(r"\d{4}([./-])\d{1,2}\1\d{1,2}(?:([T ])(\d{1,2}:\d{2}(:\d{2})?))?", re.ASCII)
PARTS = re.compile(
    r"(\d{1,4})([./-])(\d{1,2})\2(\d{1,4})"
    r"(?:([T ])(\d{1,2}:\d{2})(:\d{2})?([.,]\d{1,6})?( ?)([AaPp][Mm])?)?([-+]\d{2}:?\d{2}|Z)?", re.ASCII
)  # fmt: skip
CLOCK_ALONE = re.compile(r"\d{1,3}:\d{2}(:\d{2}([.,]\d+)?)?( ?[AaPp][Mm])?", re.ASCII)
MONTH_NAME = re.compile(r"(?i)\b\d*(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)", re.ASCII)
OTHER_DATE = re.compile(
    r"(?i)\d{1,4}([./-])\d{1,2}\1\d{1,4}\b.*|\d{4}-?w\d{2}(-?\d)?|\d{8}t\d{4,6}z?|\d{4}-\d{3}", re.ASCII
)
DIGITS = {"Y": 4, "y": 2, "m": 2, "d": 2, "j": 3, "H": 2, "M": 2, "S": 2}  # of fields in numbers that are dates
FIELDS_ALONE = re.compile("(%[YymdjHMS])+")


class ReadTimes(NamedTuple):
    """Times as numbers (n,), their unit, and the date at which they are 0, where they were dates."""

    numbers: Array
    time_unit: str
    origin: Any


def is_of_package(value: Any, package: str) -> bool:
    """Whether the class of ``value`` comes from a package."""
    return type(value).__module__.partition(".")[0] == package


class DateReader:
    """Reads the words of one column as dates, after ``decide`` has found how they are written.

    date_format: as of ``datetime.strptime``; "": found from the words.
    """

    def __init__(self, date_format: str = "") -> None:
        self.date_format = check_text("date_format", date_format)
        self.has_offset = False

    def decide(self, words: Sequence[str]) -> bool:
        """Whether the words are dates; finds how they are written. Raises ValueError where that is open."""
        first = next((word for word in words if word), "")
        if self.date_format:
            return True
        iso = ISO.fullmatch(first)
        if iso:
            self.has_offset = iso[2] is not None
            return True
        if match := YEAR_FIRST.fullmatch(first):
            self.date_format = f"%Y{match[1]}%m{match[1]}%d" + clock_format(match[2], match[4])
            return True
        if match := DAY_OR_MONTH_FIRST.fullmatch(first):
            orders = order_of_days(words)
            clock = clock_format(match[5], match[7])
            formats = [f"%{a}{match[2]}%{b}{match[2]}%Y{clock}" for a, b in ("dm", "md")]
            if len(orders) != 1:
                why = "some rows have the day first, others the month" if orders else "no row tells day from month"
                raise ValueError(
                    f"times must be dates that can be read in one way, got {first!r}, and {why}: give "
                    f"date_format={formats[0]!r} or {formats[1]!r}"
                )
            self.date_format = formats[0] if orders == {"dm"} else formats[1]
            return True
        hint = hint_of(first, words)
        if hint:
            raise ValueError(f"times must be numbers or dates, as 2020-12-31T23:59:59, got {first[:80]!r}, {hint}")
        return False

    def read(self, word: str) -> np.datetime64 | None:
        """The date that ``word`` says, in UTC where it has a zone; None where it says none."""
        if not self.date_format:
            match = ISO.fullmatch(word)
            if match is None or (match[2] is not None) != self.has_offset:
                return None
            return iso_date(match[1], match[2])
        if FIELDS_ALONE.fullmatch(self.date_format) and word.isdecimal():  # numbers have lost their first zeros
            word = word.zfill(sum(DIGITS[letter] for letter in self.date_format[1::2]))
        try:
            found = datetime.datetime.strptime(word, self.date_format)
        except ValueError:
            return None
        return in_utc(found)

    @property
    def example(self) -> str:
        """How a date is written, in words."""
        if self.date_format:
            return f"date as {shown(self.date_format)} says"
        zone = "+01:00" if self.has_offset else ""
        return f"date as 2020-12-31 or 2020-12-31T23:59:59{zone}, as that of the first row is"


def clock_format(separator: str | None, seconds: str | None) -> str:
    """The format of a time of the day behind a date; "" where there is none."""
    return "" if separator is None else f"{separator}%H:%M" + (":%S" if seconds else "")


def order_of_days(words: Sequence[str]) -> set[str]:
    """Which of the orders day, month ("dm") and month, day ("md") the words prove, by a number above 12."""
    found = set()
    for word in words:
        match = DAY_OR_MONTH_FIRST.fullmatch(word)
        if match and int(match[1]) > 12:
            found.add("dm")
        if match and int(match[3]) > 12:
            found.add("md")
    return found


def formats_of(words: Sequence[str]) -> list[str]:
    """Formats in day, month and year by which all words can be read; none where they have another form."""
    match = PARTS.fullmatch(next((word for word in words if word), ""))
    if match is None:
        return []
    clock = ""
    if match[5]:
        clock = f"{match[5]}{'%I' if match[10] else '%H'}:%M" + (":%S" if match[7] else "")
        clock += (f"{match[8][0]}%f" if match[8] else "") + (f"{match[9]}%p" if match[10] else "")
    clock += "%z" if match[11] else ""
    long = [len(match[1]) == 4, len(match[4]) == 4]
    orders = ("Ymd", "Ydm") if long[0] else ("dmY", "mdY") if long[1] else ("dmy", "mdy", "ymd")
    formats = [match[2].join(f"%{field}" for field in order) + clock for order in orders]
    readers = [DateReader(date_format) for date_format in formats]
    return [one.date_format for one in readers if all(one.read(word) is not None for word in words if word)]


def hint_of(word: str, words: Sequence[str]) -> str:
    """What to do with words that look like dates or times of the day in no known form; "" for other words.

    word: the first that is not empty.
    """
    if CLOCK_ALONE.fullmatch(word):
        shape = "%I:%M" if word[-1] in "mM" else "%H:%M"
        shape += (":%S" if word.count(":") == 2 else "") + (" %p" if word[-1] in "mM" else "")
        return (
            f"a time of the day without its date: give date_format={shape!r}, by which all are times of one day, or "
            "numbers, or dates"
        )
    if MONTH_NAME.search(word) and re.search(r"\d", word):
        return "which looks like a date: give date_format, as '%d %b %Y' for 30 Jan 2021"
    formats = formats_of(words)
    if formats:
        return f"which looks like a date: give date_format={' or '.join(map(repr, formats))}"
    if OTHER_DATE.fullmatch(word):
        return "which looks like a date: give date_format, as '%d/%m/%y' for 30/01/21"
    return ""


def iso_date(date: str, offset: str | None) -> np.datetime64 | None:
    """A date as of ISO 8601, in UTC; None where there is no such day."""
    try:
        found = np.datetime64(date.replace(",", "."))  # in the unit that it needs: nanoseconds reach from 1678 to 2262
    except ValueError:
        return None
    found = found.astype("M8[D]") if np.datetime_data(found)[0] == "M" else found
    if offset in (None, "Z"):
        return found
    minutes = 60 * int(offset[1:3]) + int(offset[-2:])
    return found - np.timedelta64(minutes if offset[0] == "+" else -minutes, "m")


def in_utc(date: Any) -> np.datetime64:
    """A date of Python or pandas; those with a time zone in UTC."""
    if getattr(date, "tzinfo", None) is not None:
        date = date.astimezone(datetime.UTC).replace(tzinfo=None)
    return np.datetime64(date)


def dates_of(name: str, times: Any, date_format: str = "") -> Any:
    """``times`` (n,) as datetime64 or timedelta64 where they are dates or durations; None where they are numbers.

    Raises ValueError, naming ``name``, for words and objects that are dates in no known form.
    """
    if is_of_package(times, "xarray") and hasattr(times, "values"):
        times = times.values
    if is_of_package(times, "pandas") and hasattr(type(times), "to_numpy"):
        times = of_pandas(times, date_format)
    if isinstance(times, np.ndarray) and times.dtype.kind in "mM":
        return times
    is_words_or_objects = isinstance(times, np.ndarray) and times.dtype.kind in "UTO"
    if not (is_words_or_objects or is_sequence(times) or (date_format and isinstance(times, np.ndarray))):
        return None
    entries = list(times)
    if date_format and entries and all(is_whole(one) for one in entries):
        entries = [str(int(one)) for one in entries]
    if not entries:
        return None
    if is_of_package(entries[0], "cftime"):
        raise ValueError(f"{name} must be dates of the usual calendar, got {shown(entries[0])} of cftime")
    kinds = (np.datetime64, np.timedelta64, datetime.date, datetime.timedelta, datetime.time, str)
    if not is_a(entries[0], kinds):
        return None
    return dates_of_entries(name, entries, date_format)


def is_whole(number: Any) -> bool:
    """Whether it is a whole number, of Python or NumPy."""
    return is_a(number, int | float | np.number) and bool(np.isfinite(number)) and number == int(number)


def of_pandas(times: Any, date_format: str) -> Any:
    """A column or index of pandas as an array of NumPy: periods by their beginning, dates with a zone in UTC."""
    kind = getattr(times.dtype, "kind", "O")
    if kind in "mM":
        return times.to_numpy(dtype=f"{kind}8[ns]")
    if type(times.dtype).__name__ == "PeriodDtype":
        periods = times if hasattr(times, "to_timestamp") and not hasattr(times, "dt") else times.dt
        return periods.to_timestamp().to_numpy(dtype="M8[ns]")
    if kind in "iufbc":
        return np.asarray(times) if date_format else times
    return np.asarray(times, dtype=object)


def dates_of_entries(name: str, entries: list[Any], date_format: str) -> NDArray[Any] | None:
    """Words, dates or durations as an array; None for other words. Raises ValueError naming the row of what is none."""
    first = entries[0]
    if is_a(first, datetime.time):
        raise ValueError(f"{name} must be numbers or dates, got {first}, a time of the day without its date")
    if is_a(first, np.datetime64 | np.timedelta64):
        return np.asarray(entries)
    if is_a(first, datetime.timedelta):
        return np.asarray(entries, dtype="timedelta64[ns]")
    found = []
    if is_a(first, str):
        words = [one.strip() if is_a(one, str) else "" for one in entries]
        reader = DateReader(date_format)
        if not reader.decide(words):
            return None
        found = [reader.read(word) for word in words]
        what = reader.example
    else:
        zoned = getattr(first, "tzinfo", None) is not None
        what = "date with a time zone, as the first is" if zoned else "date without a time zone, as the first is"
        for one in entries:
            fits = is_a(one, datetime.date) and (getattr(one, "tzinfo", None) is not None) == zoned
            found.append(in_utc(one) if fits else None)
    for row, date in enumerate(found):
        if date is None:
            raise ValueError(f"{name} must be dates at every row, got {shown(entries[row])} at row {row}, no {what}")
    return np.array(found, dtype="datetime64")


def since(name: str, clock: NDArray[Any], time_unit: str, origin: Any = None) -> ReadTimes:
    """Dates (n,) as the time since ``origin``, or the first of them, in ``time_unit``; durations as their length."""
    missing = np.flatnonzero(np.isnat(clock))
    if missing.size:
        raise ValueError(f"{name} must be dates at every row, got none (NaT) at row {missing[0]}")
    factor = seconds_of(time_unit)
    if np.datetime_data(clock.dtype)[0] in ("M", "Y"):  # months and years are not all equally long
        clock = clock.astype(f"{clock.dtype.kind}8[D]")
    if clock.dtype.kind == "M":
        origin = clock.ravel()[0] if origin is None else origin
        clock = clock - origin
    return ReadTimes(np.asarray((clock / np.timedelta64(1, "s")).astype(np.float64) / factor), time_unit or "s", origin)


def checked_origin(origin: Any) -> Any:
    """``origin`` as a datetime64 in UTC, or None. Raises TypeError or ValueError for what is no date."""
    if origin is None:
        return None
    read = dates_of("origin", [origin] if not isinstance(origin, np.ndarray) else origin.ravel())
    if read is None or read.dtype.kind != "M" or read.size != 1 or np.isnat(read[0]):
        raise ValueError(f"origin must be None or a date, got {shown(origin)}")
    return read[0]


def label_of_attributes(times: Any, time_unit: str) -> str:
    """The unit of times that a DataArray of xarray names in ``attrs``, where ``time_unit`` is ""; else that.

    Raises ValueError where both are there and differ.
    """
    attributes = getattr(times, "attrs", None) if is_of_package(times, "xarray") else None
    named = attributes.get("units") if isinstance(attributes, dict) else None
    if not isinstance(named, str) or not named.strip():
        return time_unit
    label = named.split(" since ")[0].strip()
    check_time_units(("the argument", time_unit), ("attrs['units']", label), "give times in the unit of the argument")
    return time_unit or label
