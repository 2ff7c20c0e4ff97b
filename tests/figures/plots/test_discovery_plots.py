"""Pictures of a fit and of terms: what is drawn is what was given, with names and units, and bad input is refused."""

from dataclasses import replace

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

import figures
from sysid import Estimates, data, discover, simulate, systems

mpl.use("Agg")
SYSTEM = systems.lotka_volterra()
TIMES = np.linspace(0.0, 10.0, 101)
SERIES = replace(
    data.simulate(SYSTEM, TIMES, noise=0.05, missing=0.1, seed=0), units=("thousands", ""), time_unit="years"
)
DRAWS = SYSTEM.usual * (1.0 + 0.01 * np.random.default_rng(0).standard_normal((50, 4)))
PATHS = simulate(DRAWS, TIMES[:81], problem=SYSTEM, n_draws=None)
FOUND = discover(SERIES, sweeps=200, progress=False)


@pytest.fixture
def figure():
    with figures.paper_style():
        yield plt.figure(figsize=(6.75, 2.8))
        plt.close("all")


def test_a_fit_shows_data_band_and_residuals(figure):
    panels = figures.fit(SERIES, PATHS, figure, level=0.8)
    assert list(panels) == list(SYSTEM.states)
    low, median, high = PATHS.bands([0.5 - 0.5 * 0.8, 0.5, 0.5 + 0.5 * 0.8])
    for d, (above, below) in enumerate(panels.values()):
        lines = {line.get_label(): line.get_xydata() for line in above.lines}
        np.testing.assert_array_equal(lines["data"], np.stack([TIMES, SERIES.values[:, d]], axis=1))
        np.testing.assert_array_equal(lines["median"], np.stack([TIMES[:81], median[:, d]], axis=1))
        corners = above.collections[0].get_paths()[0].vertices
        for edge in (low, high):
            assert {*map(tuple, np.stack([TIMES[:81], edge[:, d]], axis=1))} <= {*map(tuple, corners)}
        rest = below.lines[0].get_xydata()
        np.testing.assert_allclose(rest[:, 1], SERIES.values[:81, d] - median[:, d], atol=1e-12)
        assert len(rest) == 81  # there is no residual where there is no trajectory
    above, below = panels["prey"]
    assert (above.get_ylabel(), below.get_xlabel(), below.get_ylabel()) == (
        "prey (thousands)",
        "time (years)",
        "residual",
    )
    assert panels["predator"].states.get_ylabel() == "predator"
    assert [text.get_text() for text in figure.legends[0].texts] == ["80% of trajectories", "data", "median"]


def test_residuals_are_interpolated_between_other_times(figure):
    fine = simulate(SYSTEM.usual, np.linspace(0.0, 10.0, 2001), problem=SYSTEM)
    panels = figures.fit(SERIES, fine, figure)
    exact = simulate(SYSTEM.usual, TIMES, problem=SYSTEM).states[0]
    rest = panels["prey"].residuals.lines[0].get_ydata()
    np.testing.assert_allclose(rest, SERIES.values[:, 0] - exact[:, 0], atol=1e-3)


def test_columns_of_data_are_taken_by_name(figure):
    turned = data.from_arrays(TIMES, SERIES.values[:, ::-1], SYSTEM.states[::-1])
    panels = figures.fit(turned, PATHS, figure)
    found = panels["prey"].states.lines[0].get_ydata()
    np.testing.assert_array_equal(found, SERIES.values[:, 0])


def test_terms_are_in_their_equations(figure):
    panels = figures.terms(FOUND, figure)
    assert list(panels) == ["dprey", "dpredator"]
    table = FOUND.estimates
    for name, axes in panels.items():
        rows = [k for k, label in enumerate(table.names) if label.startswith(f"{name}:")]
        assert [text.get_text() for text in axes.get_yticklabels()] == [table.names[k].partition(":")[2] for k in rows]
        marks = [line for line in axes.lines if line.get_marker() == "o"]
        bars = [line for line in axes.lines if line.get_marker() != "o"][1:]  # the first is at 0
        np.testing.assert_array_equal([mark.get_xdata()[0] for mark in marks], table.median[rows])
        np.testing.assert_array_equal([bar.get_xdata() for bar in bars], np.stack([table.lower, table.upper], 1)[rows])
        filled = np.array([mark.get_markerfacecolor() != "white" for mark in marks])
        np.testing.assert_array_equal(filled, table.inclusion[rows] >= 0.5)
        assert axes.get_title() == f"{name}/dt"
        assert axes.get_ylim()[0] > axes.get_ylim()[1]
    assert 0 < sum(table.inclusion >= 0.5) < len(table.names)


def test_values_and_probabilities_are_written_where_they_matter(figure):
    shares = np.array([1.0, 0.7, 0.3, 0.01])
    one = Estimates(("dx:1", "dx:x", "dx:xx", "dx:xxx"), *(np.full(4, -1.5) for _ in range(6)), shares)
    axes = figures.terms(one, figure)["dx"]
    assert [text.get_text() for text in axes.texts] == ["−1.5", "−1.5, 70%", "30%", ""]


def test_unlikely_terms_can_be_left_out(figure):
    panels = figures.terms(FOUND, figure, least=0.5)
    assert sum(len(axes.get_yticks()) for axes in panels.values()) == len(FOUND.sparse.support)
    others = plt.figure()
    names = Estimates(("alpha", "beta"), *np.ones((7, 2)))
    assert figures.terms(names, others)[""].get_title() == "parameters"


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda f: figures.fit(SERIES.values, PATHS, f), TypeError, "series must be a Series"),
        (lambda f: figures.fit(SERIES, SERIES, f), TypeError, "ensemble must be a Ensemble"),
        (lambda f: figures.fit(SERIES, PATHS, 3), TypeError, "figure must be a Figure or a SubFigure, got 3"),
        (lambda f: figures.fit(SERIES, PATHS, f, level=1.0), ValueError, "level must be"),
        (lambda f: figures.terms(SERIES, f), TypeError, "source must be a Discovery or Estimates"),
        (lambda f: figures.terms(FOUND, f, least=2.0), ValueError, "least must be"),
        (
            lambda f: figures.terms(FOUND.estimates._replace(inclusion=np.zeros(12)), f, least=0.5),
            ValueError,
            "least must leave a term, got 0.5 where the highest is 0",
        ),
    ],
)
def test_what_is_refused_before_anything_is_drawn(figure, call, kind, words):
    with pytest.raises(kind, match=words):
        call(figure)
    assert not figure.axes


def test_figures_must_be_empty_and_trajectories_there(figure):
    gone = replace(PATHS, status=np.ones_like(PATHS.status))
    with pytest.raises(ValueError, match="ensemble must have a trajectory that did not diverge"):
        figures.fit(SERIES, gone, figure)
    figure.subplots()
    for call in (lambda: figures.fit(SERIES, PATHS, figure), lambda: figures.terms(FOUND, figure)):
        with pytest.raises(ValueError, match="figure must be empty, got one with 1 axes"):
            call()
