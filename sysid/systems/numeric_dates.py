"""Columns of numbers that are dates, times of the day or counts since 1970 in another unit than the one given."""

import math
from typing import NamedTuple

import numpy as np
import scipy

from ..arrays import Array, Integers
from .dates import DIGITS, DateReader
from .units import SECONDS_IN, time_label

FIRST_YEAR, LAST_YEAR = 1800, 2199  # of dates written as numbers
YEAR_FIRST = ("%Y%m%d", "%Y%m%d%H", "%Y%m%d%H%M", "%Y%m%d%H%M%S", "%Y%m", "%Y%j")
OTHER_ORDERS = (
    "%d%m%Y", "%m%d%Y", "%y%m%d", "%d%m%y", "%m%d%y", "%y%m%d%H%M", "%y%m%d%H%M%S", "%d%m%Y%H%M", "%m%d%Y%H%M",
    "%d%m%Y%H%M%S", "%m%d%Y%H%M%S",
)  # fmt: skip
CLOCKS = ("%H%M", "%H%M%S")
YEAR_STEP = 10_000  # numbers in steps of this end in the same four digits
PIVOT = 69  # years of two digits from 69 on are of the twentieth century, as in strptime
FALSE_ALARMS = 1e-4  # of columns of plain numbers, for each order that is tried
N_FIRST = 1_000  # numbers that are read before all are, for memory
N_SAMPLED = 20_000  # numbers by which the share of dates among the numbers of a range is estimated
LEAST_ROLLOVERS = 2  # changes of the hour, or minute, that show a constant step of a clock
DAY = 86400.0
LEAST_EPOCH, MOST_EPOCH = 1e9, 4.1e9  # seconds since 1970 from September 2001 to December 2099
EPOCH_UNITS = ("s", "ms", "us", "ns")
LONGEST_RECORD = 0.35  # of the first number: some 18 years of records that began in 2021


class Epoch(NamedTuple):
    """Numbers that count from 1970. unit: their unit. date: what the first says."""

    unit: str
    date: np.datetime64


def check_no_dates(name: str, times: Array, time_unit: str = "") -> None:
    """Raise ValueError where times (n,) are dates written as numbers, or count from 1970 in another unit.

    Parameters
    ----------
    name
        The argument that the message names.
    times
        The numbers (n,).
    time_unit
        The unit that is given for them; "": none.
    """
    if not times.size or not np.isfinite(times).all():
        return
    formats = formats_of_numbers(times)
    got = f"{name} must be numbers or dates, got {times[0]:.15g} to {times[-1]:.15g}, "
    if formats:
        give = f"give date_format={' or '.join(map(repr, formats))} to data.load, from_dataframe or from_arrays"
        if formats[0] in CLOCKS:
            raise ValueError(
                f"{got}which look like times of the day written as numbers, with 60 minutes an hour: {give}; "
                "if they are plain numbers, give them in another unit"
            )
        raise ValueError(
            f"{got}which look like dates written as numbers: {give}, or dates of NumPy; if they are no dates, count "
            "from the first"
        )
    epoch = epoch_of(times, time_unit)
    if epoch is not None:
        raise ValueError(
            f"{got}in the unit {time_unit!r}, which look like {epoch.unit} since 1970, the first being {epoch.date}: "
            f"give time_unit={epoch.unit!r}, or dates, as times.astype('datetime64[{epoch.unit}]') of whole numbers; "
            "if they are no dates, count from the first"
        )


def formats_of_numbers(times: Array) -> list[str]:
    """The formats by which times (n,) are dates or times of the day written as numbers; none for other numbers.

    Returns
    -------
    list of str
        The likeliest first: the one by which the steps are the most even.

    Notes
    -----
    Eight digits and more with the year first are dates where all of them are: 1 in 27 integers at random is. Six and
    seven digits, months and days of years, count on by one within a year as numbers do, so rows of two years are
    needed, with several rows in one of the years.

    In the other orders, numbers in even steps are plain numbers, unless all end in the same year. Others are dates
    where they increase as dates, all are valid, and either they do not increase as numbers or plain numbers of the same
    range and greatest common divisor would all be valid in 1 of 10,000 columns. `is_clock` says when numbers are times
    of the day.
    """
    if not (times.size > 1 and (times == np.round(times)).all() and times.min() >= 0.0 and times.max() < 1e14):
        return []
    numbers = times.astype(np.int64)
    for date_format in YEAR_FIRST:
        unit = 10 ** (digits_of(date_format) - 4)
        if FIRST_YEAR * unit <= numbers[0] < (LAST_YEAR + 1) * unit and is_year_first(numbers, date_format, unit):
            return [date_format]
    found = [one for one in OTHER_ORDERS if is_date(numbers, one)]
    if found:
        return sorted(found, key=lambda one: unevenness(seconds_by(one, numbers)))
    return [one for one in CLOCKS if is_clock(numbers, one)]


def digits_of(date_format: str) -> int:
    """How many digits a number of this format has."""
    return sum(DIGITS[letter] for letter in date_format[1::2])


def is_year_first(numbers: Integers, date_format: str, unit: int) -> bool:
    """Whether numbers that begin with the year are dates, by rows of two years where they have no day of a month."""
    if not numbers[-1] < (LAST_YEAR + 1) * unit:
        return False
    steps = np.diff(numbers // unit)
    if date_format in ("%Y%m", "%Y%j") and not ((steps > 0).any() and (steps == 0).any()):
        return False
    reader = DateReader(date_format)
    return all(reader.read(str(number)) is not None for number in numbers.tolist())


def is_read(numbers: Integers, date_format: str) -> bool:
    """Whether all numbers are dates of the format, one after the other."""
    return bool((np.diff(seconds_by(date_format, numbers)) > 0.0).all())  # nan where a number is no date


def is_date(numbers: Integers, date_format: str) -> bool:
    """Whether numbers are dates of a format in which the year is not first, or has two digits."""
    n_digits = digits_of(date_format)
    if not 10 ** (n_digits - 2) <= numbers.max() < 10**n_digits:  # the first field may begin with 0
        return False
    if not (is_read(numbers[:N_FIRST], date_format) and is_read(numbers, date_format)):
        return False
    steps = np.diff(numbers)
    if np.ptp(steps) == 0:
        return date_format.endswith("%Y") and bool(steps[0] % YEAR_STEP == 0)
    if steps.min() <= 0:  # times of no other kind
        return True
    step = int(np.gcd.reduce(steps))
    n_steps = int(np.ptp(numbers)) // step
    chosen = np.random.default_rng(0).integers(0, n_steps + 1, N_SAMPLED)
    share = float(np.isfinite(seconds_by(date_format, numbers.min() + step * chosen)).mean())
    return max(share, 1.0 / N_SAMPLED) ** len(numbers) < FALSE_ALARMS


def seconds_by(date_format: str, numbers: Integers) -> Array:
    """Seconds (n,) since 1970, or since midnight for a clock; nan where a number is no date of this format."""
    rest, fields = numbers.copy(), {}
    for letter in date_format[::-2]:
        rest, fields[letter] = np.divmod(rest, 10 ** DIGITS[letter])
    valid = rest == 0
    seconds = np.zeros(len(numbers))
    for letter, size, most in (("H", 3600.0, 23), ("M", 60.0, 59), ("S", 1.0, 59)):
        if letter in fields:
            valid &= fields[letter] <= most
            seconds += size * fields[letter]
    if "d" in fields:
        year = fields["Y"] if "Y" in fields else fields["y"] + np.where(fields["y"] < PIVOT, 2000, 1900)
        valid &= (year >= FIRST_YEAR) & (year <= LAST_YEAR) & (fields["m"] >= 1) & (fields["m"] <= 12)
        month = np.array(np.where(valid, (year - 1970) * 12 + fields["m"] - 1, 0), "M8[M]")
        days = (month + 1).astype("M8[D]") - month.astype("M8[D]")
        valid &= (fields["d"] >= 1) & (fields["d"] <= days.astype(np.int64))
        seconds += DAY * (month.astype("M8[D]").astype(np.int64) + fields["d"] - 1)
    return np.where(valid, seconds, np.nan)


def unevenness(times: Array) -> float:
    """Standard deviation of the steps over their mean."""
    steps = np.diff(times)
    return float(steps.std() / steps.mean())


def is_clock(numbers: Integers, date_format: str) -> bool:
    """Whether numbers are times of one day: no minutes above 59, and steps that only a clock explains.

    Either all steps are equal on the clock and not as numbers. Or two things together are rarer than 1 in 10,000 in
    plain numbers with the same greatest common divisor g of steps: k different remainders by 100 are all below 60, and
    the steps over r full hours (minutes) are multiples of G > g on the clock, which has the probability (g/G)^r.
    """
    n_digits = digits_of(date_format)
    if not 10 ** (n_digits - 2) <= numbers.max() < 10**n_digits:
        return False
    if not is_read(numbers[:N_FIRST], date_format):  # most plain numbers go no farther
        return False
    seconds = seconds_by(date_format, numbers)
    if not (np.diff(seconds) > 0.0).all():
        return False
    in_last_unit = np.rint(seconds / (60.0 if date_format == "%H%M" else 1.0)).astype(np.int64)
    steps, on_clock = np.diff(numbers), np.diff(in_last_unit)
    rollovers = int((steps != on_clock).sum())
    if np.ptp(steps) == 0 or not rollovers:
        return False
    if np.ptp(on_clock) == 0 and rollovers >= LEAST_ROLLOVERS:
        return True
    apart, apart_on_clock = int(np.gcd.reduce(steps)), int(np.gcd.reduce(on_clock))
    of_steps = min(apart / apart_on_clock, 1.0) ** rollovers
    offered = np.unique((int(numbers[0]) + apart * np.arange(100)) % 100)
    n_allowed, n_found = int((offered < 60).sum()), len(np.unique(numbers % 100))
    of_remainders = math.exp(log_choices(n_allowed, n_found) - log_choices(len(offered), n_found))
    return of_steps * of_remainders < FALSE_ALARMS


def log_choices(n: int, k: int) -> float:
    """The logarithm of the number of ways to choose k of n."""
    return float(-math.log(n + 1) - scipy.special.betaln(n - k + 1, k + 1))


def epoch_of(times: Array, time_unit: str) -> Epoch | None:
    """The unit since 1970 of numbers whose given unit is longer; None for other numbers, and without a known unit.

    Numbers near 1.6e9 may be a short time in nanoseconds, so only longer units than that of the count are in doubt.
    In them the first number is 1,900 years or more. Years are left alone: stars and rocks have ages of 1e9 of them.
    """
    given = SECONDS_IN.get(time_label(time_unit)) if time_unit else None
    first, last = float(times[0]), float(times[-1])
    if given is None or given >= SECONDS_IN["year"] or not 0.0 <= last - first <= LONGEST_RECORD * abs(first):
        return None
    for unit in EPOCH_UNITS:
        seconds = first * SECONDS_IN[unit]
        if LEAST_EPOCH <= seconds <= MOST_EPOCH and given > SECONDS_IN[unit]:
            return Epoch(unit, np.datetime64(int(seconds), "s"))
    return None
