"""Times that are dates are read as dates wherever times are given, or refused as dates."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest

from sysid import Inputs, Series, data, discover, likelihoods, simulate, systems
from sysid.systems.numeric_dates import formats_of_numbers

DAYS = pd.date_range("2021-01-30", periods=3, freq="D")
X = np.array([[1.0], [2.0], [3.0]])
ZONE = "Europe/Berlin"


def loaded(folder, words, **options):
    path = folder / "a.csv"
    path.write_text("date,x\n" + "".join(f"{word},1\n" for word in words), encoding="utf-8")
    return data.load(path, time="date", time_unit="day", **options)


READ = {
    "year first": ("%Y/%m/%d", {}),
    "day first": ("%d.%m.%Y", {}),
    "month first": ("%m/%d/%Y", {}),
    "day first with a clock": ("%d-%m-%Y %H:%M", {}),
    "a zone": ("%Y-%m-%dT%H:%M:%S+01:00", {}),
    "UTC": ("%Y-%m-%d %H:%MZ", {}),
    "numbers": ("%Y%m%d", {"date_format": "%Y%m%d"}),
    "names of months": ("%d %b %Y", {"date_format": "%d %b %Y"}),
    "basic": ("%Y%m%dT%H%M%S", {"date_format": "%Y%m%dT%H%M%S"}),
}


@pytest.mark.parametrize("what", READ)
def test_text_is_read(tmp_path, what):
    """From January to February is one day, however it is written."""
    shape, options = READ[what]
    words = [day.strftime(shape) for day in DAYS]
    made = loaded(tmp_path, words, **options)
    np.testing.assert_allclose(made.times, [0.0, 1.0, 2.0], rtol=1e-12)
    made = data.from_arrays(words, X, ("x",), time_unit="h", **options)
    np.testing.assert_allclose(made.times, [0.0, 24.0, 48.0], rtol=1e-12)
    made = data.from_dataframe(pd.DataFrame({"when": words, "x": [1, 2, 3]}), time="when", time_unit="h", **options)
    np.testing.assert_allclose(made.times, [0.0, 24.0, 48.0], rtol=1e-12)


def test_offsets_that_change_are_those_of_one_clock(tmp_path):
    words = ["2021-03-28T01:00:00+01:00", "2021-03-28T03:00:00+02:00", "2021-03-28T04:00:00+02:00"]
    np.testing.assert_allclose(24.0 * loaded(tmp_path, words).times, [0.0, 1.0, 2.0], rtol=1e-12)


def test_times_of_a_day_and_months(tmp_path):
    made = loaded(tmp_path, ["06:00:00", "18:00:00"], date_format="%H:%M:%S")
    np.testing.assert_array_equal(made.times, [0.0, 0.5])
    np.testing.assert_array_equal(loaded(tmp_path, ["2021-01", "2021-02", "2021-04"]).times, [0.0, 31.0, 90.0])


def test_years_beyond_nanoseconds(tmp_path):
    np.testing.assert_array_equal(loaded(tmp_path, ["1500-01-01", "2000-01-01"]).times, [0.0, 182621.0])


REFUSED = {
    "numbers": (["20210130", "20210131", "20210201"], r"look like dates .* give date_format='%Y%m%d'"),
    "numbers with minutes": (["202101300600", "202101300700"], "give date_format='%Y%m%d%H%M'"),
    "months as numbers": (["202011", "202012", "202101"], "give date_format='%Y%m'"),
    "days of years": (["2020365", "2020366", "2021001"], "give date_format='%Y%j'"),
    "no row tells": (["01.02.2021", "02.02.2021"], r"no row tells .* date_format='%d.%m.%Y' or '%m.%d.%Y'"),
    "rows disagree": (["13/01/2021", "01/14/2021"], "some rows have the day first, others the month"),
    "a clock": (["06:00:00", "07:00:00"], "time of the day without its date: give date_format='%H:%M:%S'"),
    "an American clock": (["6:00 PM", "7:00 PM"], "time of the day without its date: give date_format='%I:%M %p'"),
    "names of months": (["Jan 30 2021", "Jan 31 2021"], "looks like a date: give date_format, as '%d %b %Y'"),
    "years of two digits": (["30/01/21", "31/01/21"], "looks like a date: give date_format"),
    "weeks": (["2021-W04", "2021-W05"], "looks like a date: give date_format"),
    "one zone is lacking": (["2021-01-30T00:00Z", "2021-01-31T00:00"], r"no date as .*\+01:00, as that of the first"),
    "no such day": (["2021-02-30", "2021-03-01"], "'2021-02-30' is no date as"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_text_is_refused_as_dates(tmp_path, what):
    words, message = REFUSED[what]
    with pytest.raises(ValueError, match=message):
        loaded(tmp_path, words)


def test_numbers_that_are_no_dates():
    """Years, counters, days since 1900, seconds since 1970: none is taken for a date."""
    for times in ([1900, 1901], [202101, 202102, 202103], [2021001, 2021002], [44226, 44227], [1611964800, 1611964860],
                  [20210130.5, 20210131.5], [20210130, 20210132], [0, 20210130]):  # fmt: skip
        assert formats_of_numbers(np.array(times, np.float64)) == []
    rng = np.random.default_rng(0)
    for _ in range(200):
        times = np.unique(rng.integers(18_000_101, 21_991_231, 12))
        assert formats_of_numbers(times.astype(np.float64)) == []


OBJECTS = {
    "dates of pandas with a zone": DAYS.tz_localize(ZONE),
    "a list of them": list(DAYS.tz_localize(ZONE)),
    "periods": DAYS.to_period("D"),
    "dates of Python": [day.date() for day in DAYS],
    "datetimes of Python": [dt.datetime(2021, 1, 30, 6, tzinfo=dt.UTC) + dt.timedelta(days=k) for k in range(3)],
    "days of NumPy": DAYS.values.astype("M8[D]"),
    "durations of Python": [dt.timedelta(days=k) for k in range(3)],
    "text": np.array(["2021-01-30", "2021-01-31", "2021-02-01"]),
}


@pytest.mark.parametrize("what", OBJECTS)
def test_objects_are_read(what):
    np.testing.assert_array_equal(Series(OBJECTS[what], X, ("x",), time_unit="h").times, [0.0, 24.0, 48.0])


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ([20210130, 20210131, 20210201], "look like dates written as numbers"),
        (pd.Series([20210130, 20210131, 20210201]), "look like dates written as numbers"),
        ([dt.time(6), dt.time(7), dt.time(8)], "a time of the day without its date"),
        ([DAYS[0], DAYS[1].tz_localize(ZONE), DAYS[2]], "at row 1, no date without a time zone, as the first is"),
        (["2021-01-30", "2021-01-31", "tomorrow"], "got 'tomorrow' at row 2, no date as 2020-12-31"),
    ],
)
def test_objects_are_refused_as_dates(times, message):
    with pytest.raises(ValueError, match=message):
        Series(times, X, ("x",), time_unit="day")
    with pytest.raises(ValueError, match=message):
        Inputs(doses={"x": (times, [1.0, 2.0, 3.0])})


def test_times_of_xarray():
    xarray = pytest.importorskip("xarray")
    np.testing.assert_array_equal(Series(xarray.DataArray(DAYS.values), X, ("x",), time_unit="h").times, [0, 24, 48])
    undecoded = xarray.DataArray([0.0, 1.0, 2.0], attrs={"units": "days since 2021-01-30"})
    assert Series(undecoded, X, ("x",)).time_unit == "days"
    with pytest.raises(ValueError, match=r"'h' of the argument and 'days' of attrs\['units'\], 1 days being 24 h"):
        Series(undecoded, X, ("x",), time_unit="h")


def test_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"text": ["2021-01-30", "2021-01-31"], "number": [20210131, 20210201], "x": [1.0, 2.0]})
    frame["clock"] = [dt.time(6), dt.time(7)]
    frame.to_parquet(tmp_path / "a.parquet")
    options = {"states": ("x",), "time_unit": "day"}
    np.testing.assert_array_equal(data.load(tmp_path / "a.parquet", time="text", **options).times, [0.0, 1.0])
    made = data.load(tmp_path / "a.parquet", time="number", date_format="%Y%m%d", **options)
    np.testing.assert_array_equal(made.times, [0.0, 1.0])
    with pytest.raises(ValueError, match="look like dates written as numbers"):
        data.load(tmp_path / "a.parquet", time="number", **options)
    with pytest.raises(ValueError, match="times of the day without a date"):
        data.load(tmp_path / "a.parquet", time="clock", **options)


def test_inputs_and_doses_count_from_the_first_date_of_the_series():
    inputs = Inputs({"u": (list(DAYS), [1.0, 2.0, 3.0]), "v": 7.0}, doses={"x": (["2021-01-31T12:00"], [5.0])})
    assert (inputs.time_unit, str(inputs.origin)[:10]) == ("s", "2021-01-30")
    early = pd.date_range("2021-01-29", periods=4, freq="D")
    series = Series(early, np.ones((4, 1)), ("x",), time_unit="h", inputs=inputs)
    np.testing.assert_array_equal(series.inputs.values["u"].times, [24.0, 48.0, 72.0])
    np.testing.assert_array_equal(series.inputs.doses["x"].times, [60.0])
    np.testing.assert_array_equal(series.inputs.at([36.0], ("u", "v")), [[1.5, 7.0]])
    np.testing.assert_array_equal(series.with_time_unit("day").inputs.doses["x"].times, [2.5])
    numbers = Series([0.0, 24.0], np.ones((2, 1)), ("x",), time_unit="h", origin="2021-01-29", inputs=inputs)
    np.testing.assert_array_equal(numbers.inputs.doses["x"].times, [60.0])
    with pytest.raises(ValueError, match="inputs must have times as the series 'data' has them, numbers, got dates"):
        Series([0.0, 24.0], np.ones((2, 1)), ("x",), inputs=inputs)
    with pytest.raises(ValueError, match="must all be dates or all be numbers"):
        Inputs({"u": (list(DAYS), [1.0, 2.0, 3.0])}, doses={"x": ([1.0], [5.0])})
    with pytest.raises(ValueError, match="origin must be None or a date, got 3"):
        Inputs(origin=3)


def test_forecasts_take_dates_as_the_data_do():
    days = pd.date_range("2021-01-30", periods=40, freq="D")
    series = data.from_arrays(days, 10.0 * np.exp(-0.05 * np.arange(40.0)), "x", time_unit="day")
    found = discover(series, degree=1, likelihood=likelihoods.derivative(velocities="finite_difference"))
    ahead = found.forecast(pd.to_datetime(["2021-03-12", "2021-03-20"]), n_draws=5)
    np.testing.assert_array_equal(ahead.times, [41.0, 49.0])
    with pytest.raises(ValueError, match="times must be numbers, as times of the data are, got dates"):
        discover(
            data.from_arrays(np.arange(40.0), series.values, ("x",)), degree=1,
            likelihood=likelihoods.derivative(velocities="finite_difference"),
        ).forecast(days)  # fmt: skip


def test_durations_of_inputs_have_a_unit_and_are_not_mixed_with_numbers():
    minutes = np.array([0, 60], "m8[m]")
    inputs = Inputs({"u": (minutes, [1.0, 2.0])})
    assert inputs.time_unit == "s"
    with pytest.raises(ValueError, match="time_unit"):
        Series([0.0, 1.0], np.ones((2, 1)), ("x",), time_unit="h", inputs=inputs)
    in_hours = Inputs({"u": (minutes, [1.0, 2.0])}, time_unit="h")
    np.testing.assert_array_equal(in_hours.values["u"].times, [0.0, 1.0])
    with pytest.raises(ValueError, match="must all be durations or all be numbers"):
        Inputs({"u": (minutes, [1.0, 2.0])}, doses={"x": ([1.0], [5.0])})


def test_a_system_alone_has_no_date_for_dated_inputs():
    system = systems.own(
        lambda t, x, p, u: (p[0] * u[0],), states=("x",), parameters=("k",), usual=[1.0], start=[0.0], inputs=("u",),
        time_unit="day",
    )  # fmt: skip
    dated = Inputs({"u": (list(DAYS), [1.0, 1.0, 1.0])})
    with pytest.raises(ValueError, match="inputs must have times as the system 'model' has them, numbers, got dates"):
        simulate(np.ones((3, 1)), [0.0, 1.0], problem=system, inputs=dated)


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_numbers_that_are_no_dates_are_named(number):
    with pytest.raises(ValueError, match="times"):
        data.from_arrays([20210130.0, number], X[:2], "x", time_unit="day", date_format="%Y%m%d")
