"""Numbers that are dates or times of the day are refused as such; plain numbers are not."""

import numpy as np
import pandas as pd
import pytest

from sysid import Inputs, Series, data
from sysid.systems.numeric_dates import epoch_of, formats_of_numbers

DAYS = pd.date_range("2021-01-25", periods=14, freq="D")
VISITS = pd.to_datetime(["2020-11-03", "2020-11-17", "2020-12-29", "2021-02-02", "2021-05-11"])
FIVE = ["2021-01-30 23:30", "2021-01-30 23:45", "2021-01-31 00:00", "2021-01-31 00:15", "2021-01-31 00:30"]


def written(dates, date_format):
    return np.array([float(date.strftime(date_format)) for date in dates])


@pytest.mark.parametrize("dates", [DAYS, VISITS, DAYS[:4]], ids=["days", "visits", "one month"])
@pytest.mark.parametrize("date_format", ["%d%m%Y", "%m%d%Y", "%y%m%d", "%d%m%y", "%m%d%y"])
def test_dates_in_other_orders_are_refused_with_their_format(dates, date_format):
    times = written(dates, date_format)
    found = formats_of_numbers(times)
    if np.ptp(np.diff(times)) == 0 and not date_format.endswith("Y"):
        assert found == []  # within a month they count on as numbers do
        return
    assert date_format in found
    with pytest.raises(ValueError, match=r"look like dates written as numbers: give date_format=.*" + date_format):
        Series(times, np.ones((len(times), 1)), ("x",), time_unit="day")
    with pytest.raises(ValueError, match="look like dates written as numbers"):
        Inputs(doses={"x": (times, np.ones(len(times)))})


@pytest.mark.parametrize("date_format", ["%y%m%d%H%M", "%d%m%Y%H%M", "%m%d%Y%H%M%S"])
def test_dates_with_a_clock_are_refused_with_their_format(date_format):
    assert date_format in formats_of_numbers(written(pd.to_datetime(FIVE), date_format))


CLOCKS = {
    "quarters": ("%H%M", [930 + 0, 945, 1000, 1015, 1030, 1045, 1100]),
    "every 45 minutes": ("%H%M", [930, 1015, 1100, 1145, 1230]),
    "half-hours from midnight": ("%H%M", [0, 30, 100, 130, 200, 230]),
    "uneven": ("%H%M", [801, 813, 834, 842, 905, 917, 958, 1004, 1023, 1039, 1047, 1108, 1126, 1151, 1209, 1229, 1256]),
    "seconds": ("%H%M%S", [93000, 93020, 93040, 93100, 93120, 93140, 93200]),
}


@pytest.mark.parametrize("what", CLOCKS)
def test_times_of_the_day_are_refused_with_their_format(what):
    date_format, times = CLOCKS[what]
    assert formats_of_numbers(np.array(times, float)) == [date_format]
    with pytest.raises(ValueError, match=r"look like times of the day .* 60 minutes an hour: give date_format"):
        Series(times, np.ones((len(times), 1)), ("x",), time_unit="h")


@pytest.mark.parametrize("date_format", ["%d%m%Y", "%m%d%Y", "%y%m%d", "%H%M"])
def test_first_zeros_that_are_lost_are_put_back(tmp_path, date_format):
    """1022021 is the first of February, and 30 is half past midnight."""
    dates = pd.date_range("2001-02-01T00:00", periods=4, freq="30min" if date_format == "%H%M" else "D")
    times = written(dates, date_format).astype(int)
    expected = (dates - dates[0]) / pd.Timedelta(hours=1)
    options = {"time_unit": "h", "date_format": date_format}
    np.testing.assert_allclose(data.from_arrays(times, np.ones((4, 1)), ("x",), **options).times, expected)
    path = tmp_path / "a.csv"
    path.write_text("when,x\n" + "".join(f"{time},1\n" for time in times), encoding="utf-8")
    np.testing.assert_allclose(data.load(path, time="when", **options).times, expected)


PLAIN = {
    "samples": np.arange(300.0),
    "odd steps": 7.0 * np.arange(100.0) + 3.0,
    "hundreds": 100.0 * np.arange(1.0, 21.0),
    "doubling": np.array([0, 1, 2, 4, 8, 15, 30, 60, 120, 240, 480, 1440]),
    "hours of visits": np.array([0, 30, 100, 300]),
    "minutes": np.array([0, 5, 10, 20, 30, 45, 60, 90, 120, 180, 240, 360, 480, 600]),
    "bursts": (100.0 * np.arange(8)[:, None] + [0.0, 10.0, 20.0, 30.0]).ravel(),
    "years": np.arange(1900.0, 1921.0),
    "decimal years": 1990.0 + np.arange(60) / 12.0,
    "days of spreadsheets": 44197.0 + np.cumsum([0, 1, 2, 2, 1, 5, 1, 1, 3, 7]),
    "MATLAB's days": 738000.0 + np.cumsum([0, 1, 2, 2, 1, 5, 1, 1, 3, 7]),
    "Julian days": 2459215.5 + np.arange(30.0),
    "counter": 210101.0 + np.cumsum([0, 1, 3, 1, 1, 2, 5, 4]),
    "late counter": 1012021.0 + np.cumsum([0, 1, 3, 1, 1, 2, 5, 4]),
    "seconds since 1970": 1611964800.0 + 60.0 * np.arange(50),
}


@pytest.mark.parametrize("what", PLAIN)
def test_plain_numbers_are_left_alone(what):
    assert formats_of_numbers(PLAIN[what].astype(float)) == []


def test_plain_numbers_are_taken_for_dates_in_fewer_than_1_of_500_columns():
    """Even and uneven integers from counters, in steps of 1, 5, 10 and 100, that begin at 0 or late."""
    rng = np.random.default_rng(1)
    found = 0
    for _ in range(1500):
        unit, n = rng.choice([1, 5, 10, 100]), int(rng.integers(4, 40))
        first = rng.choice([0, rng.integers(1, 10**4), rng.integers(10**4, 10**6), rng.integers(10**6, 10**8)])
        steps = rng.integers(1, 2 + 10 ** rng.integers(0, 4), n)
        times = unit * (first // unit + np.cumsum(steps if rng.random() < 0.7 else np.full(n, steps[0])))
        found += bool(formats_of_numbers(times.astype(float)))
    assert found <= 3


def test_counts_since_1970_in_a_longer_unit_are_refused():
    seconds = 1611964800.0 + 86400.0 * np.arange(5)
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6), ("ns", 1e9)):
        with pytest.raises(ValueError, match=f"look like {unit} since 1970, the first being 2021-01-30T00:00:00"):
            Series(factor * seconds, np.ones((5, 1)), ("x",), time_unit="day")
        assert Series(factor * seconds, np.ones((5, 1)), ("x",), time_unit=unit).times[0] == factor * seconds[0]
        assert epoch_of(factor * seconds, "") is None
    assert epoch_of(np.linspace(1e9, 1.2e9, 5), "ns") is None  # a second
    assert epoch_of(np.linspace(1e9, 1.2e9, 5), "year") is None  # of rocks
    assert epoch_of(np.linspace(0.0, 3e9, 5), "min") is None


@pytest.mark.parametrize(
    ("words", "formats"),
    [
        (["1-2-21", "2-2-21"], r"'%d-%m-%y' or '%m-%d-%y'"),
        (["30.1.21", "31.1.21"], r"'%d.%m.%y'"),
        (["1-2-2021 6:00 PM", "1-2-2021 7:00 PM"], r"'%d-%m-%Y %I:%M %p' or '%m-%d-%Y %I:%M %p'"),
        (["13/2/2021 06:00:00.5", "13/2/2021 07:00:00.5"], r"'%d/%m/%Y %H:%M:%S.%f'"),
    ],
)
def test_words_are_refused_with_formats_that_read_them(words, formats):
    with pytest.raises(ValueError, match=f"looks like a date: give date_format={formats}"):
        data.from_arrays(words, np.ones((2, 1)), ("x",), time_unit="day")
    read = data.from_arrays(
        words, np.ones((2, 1)), ("x",), time_unit="h", date_format=formats.split(" or ")[0].strip("'")
    )
    assert read.times[1] > 0.0


def test_dates_with_the_year_first_need_no_zeros():
    words = ["2021-9-30", "2021-10-1", "2021-10-2"]
    np.testing.assert_array_equal(data.from_arrays(words, np.ones((3, 1)), ("x",), time_unit="day").times, [0, 1, 2])
