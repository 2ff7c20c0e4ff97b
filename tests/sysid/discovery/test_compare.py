"""The table beside PySINDy: its numbers by hand, thresholds as promised, and a stand-in where the extra is missing."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from sysid.data.series import Series
from sysid.discovery.compare import Comparison, Row, Trial, best_threshold, compare_pysindy
from sysid.libraries import polynomial

TIMES = np.linspace(0.0, 6.0, 301)
SPIN = np.array([[0.0, 0.0], [0.0, -2.0], [2.0, 0.0]])  # of 1, u, v: du = 2 v, dv = −2 u
LIBRARY = polynomial(("u", "v"), 1)


def spiral(noise=0.02, seed=0):
    clean = np.column_stack([np.sin(2.0 * TIMES), np.cos(2.0 * TIMES)])
    return Series(TIMES, clean + noise * np.random.default_rng(seed).standard_normal(clean.shape), ("u", "v"))


def test_the_table_holds_errors_terms_and_coverage_by_hand():
    found = SPIN.copy()
    found[1, 1] = -2.3
    found[0, 0] = 0.4
    intervals = np.stack([found - 0.31, found + 0.31])
    row = Row("other", found, found != 0.0, intervals, 1.5)
    exact = Row("exact", SPIN, SPIN != 0.0, None, 0.1)
    table = Comparison(LIBRARY, (exact, row), SPIN)
    assert table.error(row) == pytest.approx(0.5 / np.sqrt(8.0))
    assert table.error(exact) == 0.0
    assert table.is_right(exact)
    assert not table.is_right(row)
    assert table.covered(row) == 1.0
    assert table.covered(row._replace(intervals=np.stack([found - 0.29, found + 0.29]))) == 0.5
    lines = str(table).splitlines()
    assert lines[0].count("|") == 7
    assert lines[2] == "| exact | 0 | 2 | yes | – | 0.1 |"
    assert lines[3] == "| other | 0.18 | 3 | no | 100% | 1.5 |"


def test_the_table_without_truth_says_what_it_cannot_know():
    table = Comparison(LIBRARY, (Row("some", SPIN, SPIN != 0.0, None, 0.1),))
    assert str(table).splitlines()[2] == "| some | – | 2 | – | – | 0.1 |"
    assert np.isnan(table.error(table.rows[0]))
    with pytest.raises(ValueError, match="truth must be given"):
        table.is_right(table.rows[0])


def test_our_row_is_the_sparse_posterior():
    table = compare_pysindy(spiral(), 1, truth=SPIN, methods=())
    (row,) = table.rows
    assert table.is_right(row)
    assert table.error(row) < 0.01
    assert table.covered(row) >= 0.5
    assert (row.intervals[0] <= row.coefficients).all()
    assert (row.coefficients <= row.intervals[1]).all()


def trial_of(truth):
    """A trial with differences that are exact, for attempts of our own."""
    velocities = spiral(0.0).values @ SPIN[1:]
    ps = SimpleNamespace(SmoothedFiniteDifference=lambda: SimpleNamespace(_differentiate=lambda x, t: velocities))
    return Trial(spiral(0.0), LIBRARY, truth, (0.1, 0.2, 0.3), 10, 0, ps)


def attempt(data, threshold):
    """Right for thresholds up to 0.2, off above."""
    return SPIN * (1.0 if threshold <= 0.2 else 1.5) + threshold * 1e-6, None


def test_thresholds_are_chosen_by_the_truth_or_by_held_out_data():
    assert np.allclose(best_threshold(trial_of(SPIN), attempt)[0], SPIN + 1e-7, atol=1e-12)
    seen = []

    def watched(data, threshold):
        seen.append(len(data[0]))
        return SPIN * (1.0 if threshold <= 0.2 else 1.5), None

    chosen = best_threshold(trial_of(None), watched)[0]
    assert np.array_equal(chosen, SPIN)
    assert seen == [240, 240, 240, 301]  # the last fifth is not seen before the choice


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pysindy", None)
    with pytest.raises(ImportError, match=r"pip install .*\[compare\]"):
        compare_pysindy(spiral(), 1, methods=("stlsq",))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"methods": ("lasso",)}, "methods must be one of 'stlsq', 'ensemble', 'weak', 'sbr', got 'lasso'"),
        ({"thresholds": []}, "thresholds must be one or more numbers"),
        ({"thresholds": [-0.1]}, "thresholds must be one or more numbers ≥ 0"),
        ({"truth": np.ones((2, 2))}, r"truth must have shape \(3, 2\)"),
        ({"degree": 0}, "degree must be ≥ 1"),
        ({"samples": 1}, "samples must be ≥ 10"),
        ({"seed": -1}, "seed must be ≥ 0, got -1"),
    ],
)
def test_bad_settings_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        compare_pysindy(spiral(), **{"degree": 1, **arguments})


def test_data_that_pysindy_cannot_take_are_refused():
    values = spiral().values.copy()
    values[3, 0] = np.nan
    with pytest.raises(ValueError, match="complete and at even times"):
        compare_pysindy(Series(TIMES, values, ("u", "v")), 1, methods=("stlsq",))
    with pytest.raises(ValueError, match="complete and at even times"):
        compare_pysindy(Series(TIMES**2 + TIMES, spiral().values, ("u", "v")), 1, methods=("stlsq",))


@pytest.mark.parametrize("truth", [SPIN, None])
def test_pysindy_finds_the_same_terms(truth):
    pytest.importorskip("pysindy")
    table = compare_pysindy(spiral(), 1, truth=truth, methods=("stlsq", "ensemble", "weak"), thresholds=(0.1, 0.5))
    assert [row.method for row in table.rows[1:]] == ["PySINDy stlsq", "PySINDy ensemble", "PySINDy weak"]
    for row in table.rows:
        assert np.allclose(row.coefficients, SPIN, atol=0.1)
        assert np.array_equal(row.present, SPIN != 0.0)


@pytest.mark.slow
def test_pysindy_s_posterior_is_near():
    pytest.importorskip("pysindy")
    pytest.importorskip("numpyro")
    row = compare_pysindy(spiral(), 1, truth=SPIN, methods=("sbr",), samples=100).rows[1]
    assert np.allclose(row.coefficients, SPIN, atol=0.2)
    assert (row.intervals[0] <= row.intervals[1]).all()
