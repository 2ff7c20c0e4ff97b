"""Labels of units: data, systems and inputs that meet have the same, or are refused with the factor between them."""

from dataclasses import replace

import numpy as np
import pytest

from sysid import Ensemble, Inputs, Series, discover, identify, integrate, likelihoods, systems
from sysid.data import check
from tests.sysid.right_hand_sides import decay

TIMES = np.linspace(0.0, 5.0, 26)
VALUES = 10.0 * np.exp(-0.5 * TIMES)[:, None]
DECAY = systems.own(
    decay, states=("c",), parameters=("k",), usual=[0.5], start=[10.0], time_unit="h",
    units=("g/L",), name="decay", terms={"c": {"c": {"k": -1.0}}},
)  # fmt: skip
HOURS = Series(TIMES, VALUES, ("c",), time_unit="h", units=("g/L",), name="a")
MINUTES = replace(HOURS, times=60.0 * TIMES, time_unit="min", name="b")
MILLIGRAMS = replace(HOURS, values=1000.0 * VALUES, units=("mg/L",), name="c")
ONE_HOUR = "1 h being 60 min"
DOSES = {"c": ([60.0], [1.0])}


@pytest.mark.parametrize("likelihood", ["trajectory", "weak", likelihoods.derivative(velocities="finite_difference")])
def test_series_in_different_units_are_refused(likelihood):
    words = rf"'h' of the system 'decay' and 'min' of data\[1\] 'b', {ONE_HOUR}: give data\[1\].with_time_unit\('h'\)"
    with pytest.raises(ValueError, match=words):
        identify([HOURS, MINUTES], DECAY, likelihood=likelihood)
    with pytest.raises(ValueError, match=r"'min' of data 'b', 1 h being 60 min: give data.with_time_unit\('h'\)"):
        identify(MINUTES, DECAY, likelihood=likelihood)
    words = r"units of 'c' .* 'g/L' of the system 'decay' and 'mg/L' of data 'c': give data.with_units\({'c': 'g/L'}"
    with pytest.raises(ValueError, match=words):
        identify(MILLIGRAMS, DECAY, likelihood=likelihood)


def test_series_of_discover_are_compared_with_each_other():
    with pytest.raises(ValueError, match=rf"'h' of data\[0\] 'a' and 'min' of data\[1\] 'b', {ONE_HOUR}"):
        discover([HOURS, MINUTES], degree=1)
    with pytest.raises(ValueError, match=r"units of 'c' .* 'g/L' of data\[0\] 'a' and 'mg/L' of data\[1\] 'c'"):
        discover([HOURS, MILLIGRAMS], degree=1)
    unlabelled = replace(MILLIGRAMS, units=("",))
    with pytest.raises(ValueError, match=r"'mg/L' of data\[1\] 'c' and 'g/L' of data\[2\] 'a'"):
        discover([unlabelled, MILLIGRAMS, HOURS], degree=1)


def test_synonyms_and_empty_labels_fit():
    labels = ("h", " hours ", "Hr", "")
    for label in labels:
        likelihoods.weak().prepare([HOURS, replace(HOURS, time_unit=label, units=(" g / L",))], DECAY)
    likelihoods.weak().prepare([HOURS, replace(HOURS, units=("",))], DECAY)


def test_a_factor_brings_series_together():
    hours = MINUTES.with_time_unit("h")
    np.testing.assert_allclose(hours.times, TIMES, rtol=1e-15)
    np.testing.assert_allclose(hours.with_time_unit("week").times * 168.0, TIMES, rtol=1e-14)
    alone = likelihoods.weak().prepare([HOURS, HOURS], DECAY)
    both = likelihoods.weak().prepare([HOURS, MILLIGRAMS.with_units({"c": "g/L"}, factor=1e-3)], DECAY)
    np.testing.assert_allclose(both.start, alone.start, rtol=1e-9)
    np.testing.assert_allclose(likelihoods.weak().prepare([HOURS, hours], DECAY).start, alone.start, rtol=1e-9)


def test_all_that_has_a_unit_is_multiplied():
    """A rate per h is 1/60 per min; doses have the unit of their state; noise of logarithms has none."""
    full = Series(
        TIMES, VALUES, ("c",), -0.5 * VALUES, [0.1], "h", ("g/L",), inputs=Inputs({"u": (TIMES, TIMES), "v": 2.0},
        doses={"c": ([1.0], [3.0])}),
    )  # fmt: skip
    minutes = full.with_time_unit("min")
    np.testing.assert_allclose(minutes.velocities, full.velocities / 60.0, rtol=1e-15)
    np.testing.assert_array_equal(minutes.inputs.values["u"].times, 60.0 * TIMES)
    np.testing.assert_array_equal(minutes.inputs.at([60.0], ("u", "v")), [[1.0, 2.0]])
    np.testing.assert_array_equal(minutes.inputs.doses["c"].times, [60.0])
    heavy = full.with_units({"c": "mg/L"}, factor={"c": 1000.0}, errors="gaussian")
    assert heavy.units == ("mg/L",)
    np.testing.assert_array_equal(heavy.values, 1000.0 * full.values)
    np.testing.assert_array_equal(heavy.velocities, 1000.0 * full.velocities)
    np.testing.assert_array_equal(heavy.noise, [100.0])
    np.testing.assert_array_equal(heavy.inputs.doses["c"].values, [3000.0])
    np.testing.assert_array_equal(full.with_units({"c": "mg/L"}, factor=1e3, errors="lognormal").noise, [0.1])


REFUSED = {
    "no factor": (lambda: replace(HOURS, time_unit="").with_time_unit("h"), "factor must be given .* in '' .* in 'h'"),
    "unknown unit": (lambda: HOURS.with_time_unit("generations"), "factor must be given for times in 'h'"),
    "another factor": (lambda: HOURS.with_time_unit("min", factor=24.0), "factor must be 60 from 'h' to 'min', .* 24"),
    "a synonym": (lambda: HOURS.with_time_unit("hours", factor=2.0), "factor must be 1 from 'h' to 'hours'"),
    "another state": (lambda: HOURS.with_units({"x": "m"}, factor=2.0), r"units must name states \(c\), got 'x'"),
    "no factor of a state": (lambda: HOURS.with_units({"c": "m"}, factor={}), "factor of 'c' must be a number"),
    "noise of what": (
        lambda: replace(HOURS, noise=[0.1]).with_units({"c": "mg/L"}, factor=1e3), "errors must be 'gaussian' or"
    ),
    "inputs of a series": (
        lambda: replace(HOURS, inputs=Inputs(doses=DOSES, time_unit="min")), "'min' of inputs and 'h' of the series 'a'"
    ),
    "doses of a system": (
        lambda: integrate.solve(DECAY, TIMES, inputs=Inputs(doses=DOSES, time_unit="min")),
        r"'min' of inputs and 'h' of the system 'decay', 1 h being 60 min: give inputs.with_time_unit\('h'\)",
    ),
    "truth of a forecast": (
        lambda: Ensemble(DECAY, TIMES, VALUES[None], [0], [5.0], [[0.5]], [[10.0]], VALUES[None]).valid_time(
            replace(HOURS, time_unit="min"), lyapunov=1.0
        ),
        "'h' of the system 'decay' and 'min' of truth 'a'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused(what):
    call, words = REFUSED[what]
    with pytest.raises((TypeError, ValueError), match=words):
        call()


def test_a_factor_may_be_given_for_any_unit():
    np.testing.assert_allclose(HOURS.with_time_unit("generations", factor=3.0).times, 3.0 * TIMES)
    assert replace(HOURS, time_unit="").with_time_unit("h", factor=1.0).time_unit == "h"
    doses = Inputs(doses=DOSES, time_unit="min").with_time_unit("h")
    np.testing.assert_array_equal(replace(HOURS, inputs=doses).inputs.doses["c"].times, [1.0])


def test_check_tells_of_a_system_in_another_unit():
    assert any("'h' of the system 'decay' and 'min' of series 'b'" in line for line in check(MINUTES, DECAY))
    assert check(HOURS, DECAY) == []
