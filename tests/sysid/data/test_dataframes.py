"""Tables of pandas in and out: nullable numbers, dates, the index; and text with decimal commas and dates."""

import numpy as np
import pandas as pd
import pytest

from sysid import Estimates, Series, data

FRAME = pd.DataFrame({"t": [0, 1, 3], "x": [1.0, 2.0, np.nan], "y": [3, 4, 5]})
NULLABLE = FRAME.convert_dtypes().assign(y=pd.array([3, pd.NA, 5], dtype="Int64"))
DATES = pd.to_datetime(["2020-02-28 12:00", "2020-02-29 12:00", "2020-03-01 18:00"])
VALUES = np.array([[1.0, 3.0], [2.0, 4.0], [np.nan, 5.0]])
HOLES = np.array([[1.0, 3.0], [2.0, np.nan], [np.nan, 5.0]])
STATES = ("x", "y")


def test_nullable_numbers_are_missing_where_they_are_na():
    for made in (
        data.from_arrays(NULLABLE["t"], NULLABLE[list(STATES)], STATES),
        Series(NULLABLE["t"], NULLABLE[list(STATES)], STATES),
        data.from_dataframe(NULLABLE, time="t"),
    ):
        np.testing.assert_array_equal(made.times, [0.0, 1.0, 3.0])
        np.testing.assert_array_equal(made.values, HOLES)
        assert made.states == STATES
        assert made.time_unit == ""
    np.testing.assert_array_equal(data.from_arrays(NULLABLE["t"], NULLABLE["y"], "y").values[:, 0], HOLES[:, 1])
    with pytest.raises(TypeError, match="values must be an array of real numbers"):
        data.from_arrays(FRAME["t"], FRAME[list(STATES)].astype(str), STATES)
    with pytest.raises(ValueError, match="times must be finite"):
        data.from_arrays(pd.array([0, pd.NA, 2], dtype="Int64"), VALUES, STATES)


@pytest.mark.parametrize(
    "dates",
    [DATES, pd.Series(DATES), DATES.values, list(DATES.values), DATES.tz_localize("Europe/Paris"), DATES - DATES[0]],
    ids=["index", "column", "array", "list", "zone", "durations"],
)
def test_dates_become_the_time_since_the_first(dates):
    hours = np.array([0.0, 24.0, 54.0])
    made = data.from_arrays(dates, VALUES, STATES)
    np.testing.assert_allclose(made.times, 3600.0 * hours, rtol=1e-15)
    assert made.time_unit == "s"
    for unit, seconds in (("h", 3600.0), ("day", 86400.0), ("ms", 1e-3)):
        made = data.from_arrays(dates, VALUES, STATES, time_unit=unit)
        np.testing.assert_allclose(made.times, 3600.0 * hours / seconds, rtol=1e-15)
        assert made.time_unit == unit
    with pytest.raises(ValueError, match=r"time_unit must be one of 'ns', .* where times are dates, got 'moon'"):
        data.from_arrays(dates, VALUES, STATES, time_unit="moon")


def test_a_date_that_is_missing_is_named():
    with pytest.raises(ValueError, match=r"times must be dates at every row, got none \(NaT\) at row 1"):
        data.from_arrays(pd.to_datetime(["2020-01-01", None, "2020-01-03"]), VALUES, STATES)


def test_the_index_of_a_table_may_be_the_time():
    for frame in (FRAME.set_index("t"), FRAME.drop(columns="t").set_index(pd.Index([0.0, 1.0, 3.0]))):
        made = data.from_dataframe(frame, units=("m", "s"), noise=[0.1, 0.2], name="lake")
        np.testing.assert_array_equal(made.times, [0.0, 1.0, 3.0])
        np.testing.assert_array_equal(made.values, VALUES)
        assert (made.units, made.name) == (("m", "s"), "lake")
    made = data.from_dataframe(FRAME.set_index(DATES), states=("y", "x"), time_unit="h")
    np.testing.assert_array_equal(made.times, [0.0, 24.0, 54.0])
    np.testing.assert_array_equal(made.values, VALUES[:, ::-1])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "time must name the column of times, got None where the index only counts the rows"),
        ({"time": "when"}, "time must name columns of frame, each there once, got 'when' and columns 't', 'x', 'y'"),
        ({"time": "t", "states": ("x", "w")}, "states must name columns of frame, .* got 'w'"),
        ({"time": "t", "states": ("x", "t")}, "states must not hold the time, got 't'"),
        ({"time": "t", "frame": FRAME.assign(w="a")}, "frame must hold numbers in column 'w', got"),
        ({"frame": FRAME.set_index(pd.Index(["a", "b", "c"]))}, "time must be a column or index of numbers or dates"),
        ({"time": "t", "frame": FRAME[["t", "x", "x"]]}, "states must .* got 'x' and it twice"),
    ],
)
def test_what_is_refused(change, words):
    with pytest.raises(ValueError, match=words):
        data.from_dataframe(**{"frame": FRAME, **change})


def test_what_is_no_table():
    with pytest.raises(TypeError, match="frame must be a DataFrame of pandas, got"):
        data.from_dataframe(FRAME["x"])
    with pytest.raises(TypeError, match="frame must be a DataFrame of pandas, got"):
        data.from_dataframe(VALUES)


def test_tables_of_series_and_estimates():
    series = data.from_dataframe(FRAME, time="t")
    frame = series.to_dataframe()
    assert (list(frame.columns), frame.index.name) == (["x", "y"], "time")
    again = data.from_dataframe(frame)
    np.testing.assert_array_equal(again.values, series.values)
    np.testing.assert_array_equal(again.times, series.times)
    frame.iloc[0, 0] = 7.0
    assert series.values[0, 0] == 1.0
    table = Estimates(("a", "b"), *np.arange(14.0).reshape(7, 2)).to_dataframe()
    assert (list(table.index), list(table.columns)) == (["a", "b"], list(Estimates._fields[1:]))
    assert table.loc["b", "median"] == 5.0


def written(folder, text):
    path = folder / "a.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_decimal_commas(tmp_path):
    path = written(tmp_path, "t;x;n\n0,0;1,5;a.b\n0,5;-2,5e3;NA\n1,0;;c\n")
    made = data.load(path, time="t", states=("x",), decimal=",")
    np.testing.assert_array_equal(made.times, [0.0, 0.5, 1.0])
    np.testing.assert_array_equal(made.values[:, 0], [1.5, -2500.0, np.nan])
    with pytest.raises(ValueError, match=r"line 2, column 't': '0,0' is not a number; .* give decimal=','"):
        data.load(path, time="t", states=("x",))
    with pytest.raises(ValueError, match=r"line 2, column 'x': '1\.234' is not a number; numbers have a decimal comma"):
        data.load(written(tmp_path, "t;x\n0;1.234\n1;2\n"), time="t", decimal=",")  # no thousand is guessed
    with pytest.raises(ValueError, match="must name columns between ; or tabs, as decimal is ','"):
        data.load(written(tmp_path, "t,x\n0,1\n1,2\n"), time="t", decimal=",")
    with pytest.raises(ValueError, match=r"decimal must be one of '\.', ',', got ';'"):
        data.load(path, time="t", decimal=";")
    made = data.load(written(tmp_path, "t\tx\n0,5\t1\n1\t2\n"), time="t", decimal=",")
    np.testing.assert_array_equal(made.times, [0.5, 1.0])


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_files_with_dates(tmp_path, suffix):
    frame = pd.DataFrame({"when": DATES, "x": VALUES[:, 0], "y": [3, 4, 5]})
    path = tmp_path / f"a.{suffix}"
    frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)
    made = data.load(path, time="when", time_unit="h")
    np.testing.assert_array_equal(made.times, [0.0, 24.0, 54.0])
    np.testing.assert_array_equal(made.values, VALUES)
    assert data.load(path, time="when").time_unit == "s"
    with pytest.raises(ValueError, match="time_unit must be one of"):
        data.load(path, time="when", time_unit="moon")


def test_dates_in_text(tmp_path):
    many = pd.date_range("2021-01-01", periods=40_000, freq="min")
    pd.DataFrame({"t": many, "x": np.arange(40_000) / 2.0}).to_csv(
        tmp_path / "b.csv", index=False, sep=";", decimal=","
    )
    made = data.load(tmp_path / "b.csv", time="t", time_unit="min", decimal=",")  # of more than one piece
    np.testing.assert_allclose(made.times, np.arange(40_000.0), rtol=1e-15)
    np.testing.assert_array_equal(made.values[:, 0], np.arange(40_000) / 2.0)
    with pytest.raises(ValueError, match="line 3, column 't': '5' is no date as 2020-12-31"):
        data.load(written(tmp_path, "t,x\n2020-01-01,1\n5,2\n"), time="t")
    with pytest.raises(ValueError, match="line 3, column 't': '2020-01-02' is not a number"):
        data.load(written(tmp_path, "t,x\n5,1\n2020-01-02,2\n"), time="t")
    with pytest.raises(ValueError, match="line 2, column 't': '2020-13-01' is no date as"):
        data.load(written(tmp_path, "t,x\n2020-13-01,1\n2020-01-02,2\n"), time="t")
