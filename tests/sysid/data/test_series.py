"""A series holds times and values as they are, and names the row and the value of what cannot be data."""

import numpy as np
import pytest

from sysid.data.series import Series, check_series

NAN = np.nan
GOOD = {"times": [0.0, 1.0, 3.0], "values": [[1.0, 2.0], [NAN, 4.0], [5.0, 6.0]], "states": ("x", "y")}


def test_it_holds_what_it_is_given():
    series = Series(**GOOD, noise=[0.1, 0.0], units=("m", "s"), time_unit="day", name="lake", source="here")
    np.testing.assert_array_equal(series.times, GOOD["times"])
    np.testing.assert_array_equal(series.values, GOOD["values"])
    np.testing.assert_array_equal(series.noise, [0.1, 0.0])
    assert len(series) == 3
    assert repr(series) == "<Series 'lake': x, y at 3 times 0 … 3, 1 values missing>"
    assert not series.is_complete
    assert Series([0, 1], [[1], [2]], ("x",)).is_complete
    assert series.units == ("m", "s")
    assert Series(**GOOD).units == ("", "")
    assert check_series("data", series) is series


def test_it_does_not_share_memory_with_what_it_is_given():
    times, values = np.arange(3.0), np.ones((3, 2))
    series = Series(times, values, ("x", "y"))
    times[0], values[0, 0] = -5.0, 7.0
    assert series.times[0] == 0.0
    assert series.values[0, 0] == 1.0


WRONG = {
    "one sample": (
        {"times": [0.0], "values": [[1.0, 2.0]]},
        "times must be at least 2, got 1: one sample says nothing",
    ),
    "none": ({"times": [], "values": np.zeros((0, 2))}, "times must be at least 2, got 0"),
    "repeated": ({"times": [0.0, 1.0, 1.0]}, r"times must increase, got 1 and then 1 \(repeated\) at row 2"),
    "decreasing": ({"times": [0.0, 2.0, 1.0]}, r"times must increase, got 2 and then 1 \(decreasing\) at row 2"),
    "time not a number": ({"times": [0.0, NAN, 1.0]}, r"times must be finite, got nan at \[1\]"),
    "text": ({"times": ["a", "b", "c"]}, "times must be an array of real numbers"),
    "rows": ({"times": [0.0, 1.0]}, r"values must have shape \(times, states\) = \(2, 2\), got \(3, 2\)"),
    "columns": ({"states": ("x",)}, r"values must have shape \(times, states\) = \(3, 1\), got \(3, 2\)"),
    "flat": ({"values": [1.0, 2.0, 3.0]}, r"values must have shape \(times, states\)"),
    "infinite": (
        {"values": [[1.0, 2.0], [3.0, np.inf], [5.0, 6.0]]},
        "values must be finite, or nan where missing, got inf of 'y' at row 1",
    ),
    "a state never seen": ({"values": [[NAN, 2.0]] * 3}, "values must not all be missing, but are for 'x'"),
    "names twice": ({"states": ("x", "x")}, r"states must be distinct and not empty, got 'x' at \[1\]"),
    "no sequence": ({"states": "xy"}, "states must be a sequence of names, got 'xy'"),
    "noise below 0": ({"noise": [-0.1, 0.1]}, "noise must be ≥ 0, got -0.1"),
    "noise of another shape": ({"noise": [0.1]}, r"noise must have shape \(2,\), got \(1,\)"),
    "velocities": ({"velocities": np.zeros((2, 2))}, r"velocities must have shape \(3, 2\), got \(2, 2\)"),
    "velocities missing": ({"velocities": GOOD["values"]}, r"velocities must be finite, got nan at \[1, 0\]"),
    "units": ({"units": ("m",)}, "units must name one unit per state, 2, got 1"),
    "no units": ({"units": None}, "units must be a sequence of texts, got None of type NoneType"),
    "units in one text": ({"units": "ms"}, "units must be a sequence of texts, got 'ms' of type str"),
    "a unit that is none": ({"units": ("m", 1.0)}, r"units\[1\] must be a str, got 1.0"),
    "unit of time": ({"time_unit": 3}, "time_unit must be a str, got 3"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_cannot_be_data_is_refused(what):
    change, words = WRONG[what]
    with pytest.raises((TypeError, ValueError), match=f"^{words}"):
        Series(**{**GOOD, **change})


def test_what_is_no_series_is_refused():
    with pytest.raises(TypeError, match=r"^data must be a Series \(see sysid.data\), got \[1, 2\] of type list"):
        check_series("data", [1, 2])
