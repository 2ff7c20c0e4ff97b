"""A gap is a step over which no state can be interpolated; likelihoods of paths and velocities are cut there."""

from dataclasses import replace

import numpy as np
import pytest

from sysid import Series, data, discover, likelihoods, systems
from sysid.data.gaps import gaps_of, parts_of

TIMES = 0.1 * np.arange(201)
SYSTEM = systems.lotka_volterra()
WHOLE = data.simulate(SYSTEM, TIMES, noise=0.02, seed=0)
WHOLE = Series(TIMES, WHOLE.values, WHOLE.states)  # noise and velocities are not known


def with_hole(first, last, left_out=False, series=WHOLE):
    """The series without rows first … last − 1, as rows of nan or left out."""
    values = series.values.copy()
    values[first:last] = np.nan
    kept = np.r_[0:first, last : len(values)] if left_out else np.arange(len(values))
    return Series(series.times[kept], values[kept], series.states)


def parts(first, last):
    return [Series(TIMES[rows], WHOLE.values[rows], WHOLE.states) for rows in (slice(first), slice(last, None))]


@pytest.mark.parametrize("left_out", [False, True])
@pytest.mark.parametrize(("first", "last"), [(60, 110), (90, 160)])
def test_a_gap_is_as_two_series(first, last, left_out):
    """To the bit: the same pieces are fitted."""
    weak = likelihoods.weak()
    holed = with_hole(first, last, left_out)
    cut, two = weak.prepare(holed, SYSTEM), weak.prepare(parts(first, last), SYSTEM)
    np.testing.assert_array_equal(cut.numbers, two.numbers)
    assert [one.time for one in cut.first_states] == [0.0]
    assert (gaps_of(holed)[0].begin, gaps_of(holed)[0].end) == (TIMES[first - 1], TIMES[last])


@pytest.mark.parametrize("velocities", ["finite_difference", "spline", "savitzky_golay"])
def test_velocities_do_not_reach_over_a_gap(velocities):
    law = likelihoods.derivative(velocities=velocities)
    cut, two = law.prepare(with_hole(60, 110), SYSTEM), law.prepare(parts(60, 110), SYSTEM)
    np.testing.assert_array_equal(cut.numbers, two.numbers)
    assert len(cut.values.measured()) == 1  # values are told series by series


def test_discover_says_where_it_cut():
    law = likelihoods.derivative(velocities="spline")
    with pytest.warns(UserWarning, match="there is a gap from 5.9 to 11, 51 times the usual step, more than"):
        found = discover(with_hole(60, 110), likelihood=law)
    assert "Cut at a gap from 5.9 to 11, 51 times the usual step" in str(found)
    rest = found.residuals()
    assert rest.shape == WHOLE.values.shape
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(rest[:, 0])), np.arange(60, 110))
    np.testing.assert_array_equal(found.score(), discover(parts(60, 110), likelihood=law).score())
    assert (found.path.first.time, found.path.last.time) == (TIMES[0], TIMES[-1])
    assert found.forecast([21.0], n_draws=3).times == [21.0]


def test_what_can_be_interpolated_is_no_gap():
    """A tenth of a period; a long step of slow data; times even in logarithms; sparse rows on a fine grid of nan."""
    assert gaps_of(with_hole(60, 65)) == []
    assert gaps_of(WHOLE) == []
    assert gaps_of(data.simulate(SYSTEM, np.geomspace(0.01, 20.0, 80), seed=0)) == []
    slow = Series(
        np.r_[0.0:10.0:0.1, 12.0:20.0:0.1], np.exp(-0.1 * np.r_[0.0:10.0:0.1, 12.0:20.0:0.1])[:, None], ("x",)
    )
    assert gaps_of(slow) == []
    sparse = WHOLE.values.copy()
    sparse[np.arange(201) % 10 > 0] = np.nan
    series = replace(WHOLE, values=sparse)
    assert gaps_of(series) == []
    assert parts_of(series) == [series]


def test_steps_of_a_poisson_process_are_no_gaps():
    """Uncorrelated values, so that only the length counts: 4⁻¹⁰ of steps, a false alarm in 10⁵ steps in a tenth."""
    rng = np.random.default_rng(0)
    times = np.cumsum(rng.exponential(size=(10, 10_000)), axis=1)
    assert sum(len(gaps_of(Series(t, rng.normal(size=(10_000, 1)), ("x",)))) for t in times) <= 1
    assert len(gaps_of(Series(times[0] + 40.0 * (times[0] > 5000.0), rng.normal(size=(10_000, 1)), ("x",)))) == 1


def test_parts_that_say_nothing_are_left_out():
    values = WHOLE.values.copy()
    values[60:110] = np.nan
    values[140:190] = np.nan
    values[111:140] = np.nan  # one row between two gaps
    found = parts_of(Series(TIMES, values, WHOLE.states))
    assert [(part.times[0], part.times[-1]) for part in found] == [(TIMES[0], TIMES[59]), (TIMES[190], TIMES[-1])]
    assert likelihoods.weak().prepare(Series(TIMES, values, WHOLE.states), SYSTEM).first_states[0].time == 0.0


def test_pieces_that_lack_a_state_are_joined():
    """One state alone has a gap: the path is known by the other, and no piece is without a value."""
    values = WHOLE.values.copy()
    values[60:110, 0] = np.nan
    prepared = likelihoods.weak(pieces=16).prepare(Series(TIMES, values, WHOLE.states), SYSTEM)
    np.testing.assert_allclose(prepared.start, SYSTEM.usual, rtol=0.05)
