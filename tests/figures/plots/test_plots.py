"""The plotting layer: what is drawn is what was given, weights count, bad input is refused before anything is drawn."""

import dataclasses
import itertools
import warnings

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
import scipy

import figures
from figures.plots import style
from figures.plots.kl_curves import interval, ratio_interval
from figures.plots.swap_paths import directions
from sysid import systems
from sysid.solvers import integrate
from targets import mixtures
from toolkit import ContourWarning, sample, samplers, tempering
from toolkit.diagnostics import theta_error

mpl.use("Agg")
RNG = np.random.default_rng(11)
DRAWS = RNG.standard_normal((4, 500, 2))
BINS = tempering.Partition(1.3, 0.25, 40)


@pytest.fixture
def axes():
    with figures.paper_style():
        yield plt.subplots()[1]
        plt.close("all")


@pytest.fixture(scope="module")
def exchange():
    ladder = samplers.resgld((0.02, 0.04, 0.08), temperatures=(1.0, 2.0, 4.0))
    settings = {"n_steps": 60, "n_chains": 2, "seed": 3, "trace_every": 1, "keep_replicas": True}
    return sample(mixtures.cosine25(), ladder, **settings)


@pytest.fixture(scope="module")
def contour():
    flat = samplers.icsgld(0.1, n_replicas=2, partition=BINS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ContourWarning)  # it is short
        return sample(mixtures.unequal_pair(), flat, n_steps=4_000, n_chains=3, seed=3, burn_in=1_000)


def pieces(artists):
    """The points of line collections."""
    return [np.asarray(segment) for artist in artists for segment in artist.get_segments()]


# Densities.


@pytest.mark.parametrize("reweighs", ["contour", "continuous"])
def test_a_density_honours_the_weights_of_a_run(axes, reweighs):
    """Each chain of contour has its own factor, so the same share; 0 and 1 of TACT-HMC count over all chains."""
    edges, cell = np.linspace(-2.5, 2.5, 21), 0.25**2
    if reweighs == "contour":
        pair = contour_in_the_plane()
        factors = np.array([1.0, 1e-200, 1e150])[:, None, None]
        run = dataclasses.replace(pair, replica_weights=pair.replica_weights * factors)
        loads = pair.weights / pair.weights.sum(axis=1, keepdims=True)
    else:
        sampler = samplers.tact_hmc(1e-2)
        run = sample(mixtures.cosine25(), sampler, n_steps=6_000, n_chains=4, thin=3, seed=2)
        loads = run.weights
        assert loads.mean() < 0.5
        assert loads.sum(axis=1).min() < loads.sum(axis=1).max()
    drawn = figures.density(run, axes, x_edges=edges, y_edges=edges).get_array()
    flat, points = loads.ravel(), run.draws.reshape(-1, 2)
    law = np.histogram2d(*points.T, bins=(edges, edges), weights=flat / flat.sum())[0] / cell
    np.testing.assert_allclose(drawn.T, law, rtol=1e-12, atol=1e-15)
    plain = figures.density(run.draws, axes, x_edges=edges, y_edges=edges).get_array()
    np.testing.assert_allclose(plain.T, np.histogram2d(*points.T, bins=(edges, edges))[0] / len(points) / cell)
    assert np.abs(plain - drawn).sum() * cell > 0.05


@pytest.mark.parametrize("sampler", [samplers.csgld(0.01, partition=BINS), samplers.tact_hmc(1e-2)])
def test_a_density_without_weight_is_refused(axes, sampler):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ContourWarning)
        run = sample(mixtures.cosine25(), sampler, n_steps=20, n_chains=2, seed=2)
    nothing = dataclasses.replace(run, replica_weights=np.zeros_like(run.replica_weights))
    with pytest.raises(ValueError, match="run must have draws of weight > 0, and"):
        figures.density(nothing, axes, x_edges=[0.0, 1.0], y_edges=[0.0, 1.0])
    assert not axes.images


def test_the_top_of_the_colours_is_as_asked(axes):
    edges = np.linspace(-3.0, 3.0, 7)
    own = figures.density(DRAWS, axes, x_edges=edges, y_edges=edges)
    assert own.get_clim() == (0.0, own.get_array().max())
    assert figures.density(DRAWS, axes, x_edges=edges, y_edges=edges, highest=0.7).get_clim() == (0.0, 0.7)


def contour_in_the_plane():
    """Three chains whose weights differ."""
    flat = samplers.icsgld(0.01, n_replicas=2, partition=tempering.Partition(-4.0, 0.5, 40))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ContourWarning)  # it is short
        return sample(mixtures.cosine25(), flat, n_steps=3_000, n_chains=3, seed=3, burn_in=1_000)


def test_a_run_that_kept_no_draws_has_no_path(axes):
    run = sample(mixtures.cosine25(), samplers.sgld(1e-3), n_steps=20, seed=1, keep_draws=False)
    for colours in (None, np.zeros(0)):
        with pytest.raises(ValueError, match="path must hold at least one step, got Run"):
            figures.trajectory(run, axes, colours=colours)
    assert not axes.lines
    assert not axes.collections


@pytest.mark.parametrize("pdf", [True, False])
def test_a_figure_is_saved_with_its_pdf_where_it_is_wanted(tmp_path, axes, pdf):
    axes.plot([0.0, 1.0])
    paths = figures.save(axes.figure, [{"x": 1.0}], tmp_path, "line", pdf=pdf)
    kinds = [".png", ".pdf", ".csv"] if pdf else [".png", ".csv"]
    assert [path.suffix for path in paths] == kinds
    assert sorted(tmp_path.iterdir()) == sorted(paths)


def test_the_layout_is_rounded_also_of_figures_in_figures(tmp_path):
    """The solver's last digits depend on addresses in memory."""
    figure = plt.figure(layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1.0, 1.7))
    left.subplots(3, 1)[0].set_title("above")
    inner = right.subfigures(2, 1)
    inner[0].subplots().set_ylabel("some label")
    before = [part.bbox_relative.get_points().copy() for part in (left, right, *inner)]
    figures.save(figure, [{"x": 1.0}], tmp_path, "parts")
    after = [part.bbox_relative.get_points() for part in (left, right, *inner)]
    after += [axes.get_position(original=True).get_points() for axes in figure.axes]
    for points in after:
        np.testing.assert_array_equal(points, points.round(9))
    np.testing.assert_allclose(after[:4], before, atol=0.2)
    assert np.ptp([points[0, 0] for points in after[4:]]) > 0.01


# Posteriors.


def test_histogram_is_that_of_the_weighted_draws_each_chain_having_the_same_share(axes):
    weights = RNG.random((4, 500)) * np.array([[1.0], [10.0], [1e6], [1e-9]])
    drawn = figures.posterior(DRAWS, axes, coordinate=1, weights=weights, method="histogram", limits=(-3, 2), bins=10)
    edges = np.linspace(-3, 2, 11)
    shares = weights / weights.sum(axis=1, keepdims=True)
    each = [np.histogram(DRAWS[i, :, 1], edges, weights=shares[i])[0] / 0.5 for i in range(4)]
    x, height = drawn.pooled.get_data()
    np.testing.assert_array_equal(x, np.repeat(edges, 2))
    np.testing.assert_allclose(height[1:-1:2], np.mean(each, axis=0), rtol=1e-12)
    for line, expected in zip(drawn.chains, each, strict=True):
        np.testing.assert_allclose(line.get_ydata()[1:-1:2], expected, rtol=1e-12)
    assert height[0] == height[-1] == 0.0


def test_kernel_density_is_the_sum_of_gaussians(axes):
    drawn = figures.posterior(DRAWS[:2, :50], axes, bandwidth=0.3, limits=(-2.0, 2.5), each_chain=False)
    x, height = drawn.pooled.get_data()
    gaps = (x[:, None] - DRAWS[:2, :50, 0].ravel()) / 0.3
    exact = np.exp(-0.5 * gaps**2).mean(axis=1) / (0.3 * np.sqrt(2 * np.pi))
    np.testing.assert_allclose(height, exact, atol=2e-3 * exact.max())  # the draws lie in cells of a 34th of 0.3
    assert drawn.chains == []


def test_bandwidth_is_silvermans_of_what_the_weights_are_worth(axes):
    """Draws of one coordinate many times over, at weights that leave half: the curve's variance is s² + h²."""
    weights = np.where(np.arange(500) < 250, 1.0, 0.0)[None]
    drawn = figures.posterior(DRAWS[:1], axes, weights=weights, limits=(-8, 8))
    values, (x, height) = DRAWS[0, :250, 0], drawn.pooled.get_data()
    step = x[1] - x[0]
    variance = (height * x**2).sum() * step - ((height * x).sum() * step) ** 2
    spread = min(values.std(), np.diff(np.quantile(values, [0.25, 0.75]))[0] / 1.34)
    assert np.sqrt(variance - values.var()) == pytest.approx(0.9 * spread * 250**-0.2, rel=0.02)


def test_weights_make_one_law_of_another(axes):
    """N(0, 1) with weights exp(x) is N(1, 1); five standard errors of the weighted mean, 4e-7 for a false alarm."""
    draws = np.random.default_rng(2).standard_normal((8, 4_000))
    weights = np.exp(draws)
    drawn = figures.posterior(draws, axes, weights=weights, limits=(-8, 8))
    plain = figures.posterior(draws, axes, limits=(-8, 8))
    step = drawn.pooled.get_xdata()[1] - drawn.pooled.get_xdata()[0]
    mean, without = (float((a.pooled.get_xdata() * a.pooled.get_ydata()).sum() * step) for a in (drawn, plain))
    error = np.sqrt(2.0 * np.e / draws.size)  # E w² (x − 1)² / (E w)² = e² · 2 / e
    assert abs(mean - 1.0) < 5.0 * error
    assert abs(without - 1.0) > 20.0 * error


def test_a_run_brings_its_weights(axes, contour):
    by_run = figures.posterior(contour, axes, method="histogram")
    by_hand = figures.posterior(contour.draws, axes, weights=contour.weights, method="histogram")
    plain = figures.posterior(contour.draws, axes, method="histogram")
    np.testing.assert_array_equal(by_run.pooled.get_ydata(), by_hand.pooled.get_ydata())
    assert abs(by_run.pooled.get_ydata() - plain.pooled.get_ydata()).max() > 0.01
    assert len(by_run.chains) == 3


def test_truth_and_true_value(axes):
    drawn = figures.posterior(DRAWS, axes, limits=(-2, 2), truth=lambda x: np.exp(-abs(x)), true_value=0.5, color="red")
    x, height = drawn.truth.get_data()
    assert (x[0], x[-1]) == (-2, 2)
    np.testing.assert_array_equal(height, np.exp(-abs(x)))
    assert drawn.mark.get_xdata() == [0.5, 0.5]
    assert drawn.pooled.get_color() == "red" == drawn.chains[0].get_color()
    table = figures.posterior(DRAWS, axes, truth=([0.0, 1.0], [0.3, 0.1])).truth
    np.testing.assert_array_equal(table.get_xydata(), [[0.0, 0.3], [1.0, 0.1]])


@pytest.mark.parametrize("value", [0.0, 3.0, -1e20, 1e-300])
def test_draws_that_do_not_vary(axes, value):
    drawn = figures.posterior(np.full((2, 5), value), axes)
    x, height = drawn.pooled.get_data()
    assert np.isfinite(height).all()
    assert x[height.argmax()] == pytest.approx(value, rel=1e-3, abs=0.01)
    assert height.sum() * (x[1] - x[0]) == pytest.approx(1.0, rel=0.02)


# Phase portraits.


def test_paths_of_arrays_and_solutions(axes):
    states = RNG.standard_normal((3, 7, 3))
    drawn = figures.phase_portrait(states, axes, coordinates=(2, 0), color="red")
    for line, lane in zip(drawn.paths, states, strict=True):
        np.testing.assert_array_equal(line.get_xydata(), lane[:, [2, 0]])
        assert line.get_color() == "red"
    assert drawn.streams is None
    (single,) = figures.phase_portrait(states[0, :, :2], axes).paths
    np.testing.assert_array_equal(single.get_xydata(), states[0, :, :2])
    with figures.paper_style():
        space = plt.figure().add_subplot(projection="3d")
    (path,) = figures.phase_portrait(states[:1], space).paths
    np.testing.assert_array_equal(np.transpose(path.get_data_3d()), states[0])


def test_a_solution_that_blows_up_ends_its_line(axes):
    escape = systems.own(lambda t, x, p: (p[0] * x[0] * x[0], 1.0 + 0.0 * x[0]), states=("x", "y"), parameters=("a",),
                         usual=[1.0], start=[1.0, 0.0])  # fmt: skip
    solution = integrate.solve(escape, np.linspace(0.0, 2.0, 21))
    drawn = figures.phase_portrait(solution, axes, field=escape, limits=((0, 5), (0, 2)))
    assert solution.n_done == 0
    assert np.isnan(drawn.paths[0].get_xdata()).sum() == 11  # from t = 1 on
    assert drawn.streams is not None


def test_streamlines_follow_the_field(axes):
    """Every piece of a streamline of x' = −y, y' = x goes round the origin, to the curve's own accuracy."""
    turning = systems.own(lambda t, x, p: (-p[0] * x[1], p[0] * x[0]), states=("x", "y"), parameters=("w",),
                          usual=[1.0], start=[1.0, 0.0])  # fmt: skip
    ends = ((-2.0, 2.0), (-1.0, 2.0))
    by_system = figures.phase_portrait(turning, axes, limits=ends, parameters=[3.0])
    by_function = figures.phase_portrait(np.ones((4, 2)), axes, field=lambda p: p[:, ::-1] * [-3.0, 3.0], limits=ends)
    assert by_system.paths == []
    lines, same = (pieces([drawn.streams.lines]) for drawn in (by_system, by_function))
    for line, other in zip(lines, same, strict=True):
        np.testing.assert_allclose(line, other)
    start, end = np.concatenate([line[:-1] for line in lines]), np.concatenate([line[1:] for line in lines])
    long = np.hypot(*(end - start).T) > 1e-3
    middle, along = 0.5 * (start + end)[long], (end - start)[long]
    cosine = (middle * along).sum(axis=1) / np.hypot(*middle.T) / np.hypot(*along.T)
    assert long.sum() > 100
    assert (abs(cosine) < 0.1).all()


def test_a_path_sets_the_field_its_limits(axes):
    states = np.array([[0.0, 0.0], [10.0, 5.0]])
    streams = figures.phase_portrait(states, axes, field=lambda points: np.ones_like(points)).streams
    points = np.concatenate(pieces([streams.lines]))
    assert (points.min(axis=0) >= [-1.0, -0.5]).all()
    assert (points.max(axis=0) <= [11.0, 5.5]).all()


# θ over the energy.


def test_mean_and_band_of_theta(axes):
    theta = np.array([[1.0, 2.0, 0.0, 1.0], [3.0, 3.0, 0.0, 6.0], [5.0, 1.0, 0.0, 4.0]])
    drawn = figures.theta_spectrum(theta, axes, edges=[0, 1, 2, 4, 8], truth=[2, 1, 1, 0])
    shares = theta / theta.sum(axis=1, keepdims=True)
    x, y = drawn.mean.get_data()
    np.testing.assert_array_equal(x, [0.5, 1.5, 3, 6])
    np.testing.assert_allclose(y, [*shares.mean(axis=0)[:2], np.nan, shares.mean(axis=0)[3]])
    top = shares.mean(axis=0) + 2 * shares.std(axis=0, ddof=1)
    corners = drawn.band.get_paths()[0].vertices
    for k in (0, 1, 3):
        assert corners[corners[:, 0] == x[k], 1].max() == pytest.approx(top[k])
    assert corners[:, 1].min() > 0.0
    np.testing.assert_allclose(drawn.truth.get_ydata(), [0.5, 0.25, 0.25, np.nan])
    assert axes.get_yscale() == "log"
    assert figures.theta_spectrum(theta[:1], axes, edges=[0, 1, 2, 4, 8]).band is None


def test_theta_of_a_run_is_what_diagnostics_say_it_estimates(axes, contour):
    assert contour.sampler.tempering.field == "theta"  # whose θ^ζ estimates the probabilities
    known = theta_error(contour)
    drawn = figures.theta_spectrum(contour, axes, truth=contour.problem.truth)
    expected = np.where(known.estimated.mean(axis=0) > 0, known.estimated.mean(axis=0), np.nan)
    np.testing.assert_allclose(drawn.mean.get_ydata(), expected, rtol=1e-12)
    np.testing.assert_allclose(drawn.truth.get_ydata(), np.where(known.true > 0, known.true, np.nan), rtol=1e-12)
    np.testing.assert_allclose(drawn.mean.get_xdata(), 1.3 + 0.25 * (np.arange(40) + 0.5))


# Index processes.


def test_lines_of_walkers(axes):
    walkers = np.array([[0, 1, 1, 2], [1, 0, 2, 1], [2, 2, 0, 0]])  # who is on each rung
    drawn = figures.swaps(walkers, axes, at=[0, 10, 20, 30])
    rungs = {0: [0, 1, 2, 2], 1: [1, 0, 0, 1], 2: [2, 2, 1, 0]}
    for walker, artist in enumerate(drawn):
        joined = np.concatenate([piece[i > 0 :] for i, piece in enumerate(pieces([artist]))])
        np.testing.assert_array_equal(joined, np.stack([[0, 10, 20, 30], rungs[walker]], axis=1))
    colours = [[mpl.colors.to_hex(c).upper() for c in artist.get_colors()] for artist in drawn]
    up, down, neither = style.MEDIUM, style.LIGHT, "#BFBFBF"
    assert colours == [[up, down], [neither, up], [down, up]]
    assert axes.get_yticks().tolist() == [0, 1, 2]
    marked = figures.swaps(walkers, axes, highlight=1)
    assert [mpl.colors.to_hex(a.get_colors()[0]).upper() for a in marked] == [neither, neither, up]
    assert pieces(marked[-1:])[0].tolist() == [[0, 1], [1, 0]]


def test_directions_change_at_the_ends_alone():
    assert directions(np.array([1, 2, 3, 2, 1, 0, 1, 2, 0]), 4).tolist() == [0, 0, -1, -1, -1, 1, 1, 1, 1]
    assert directions(np.array([1, 1, 1]), 3).tolist() == [0, 0, 0]


def test_round_trips_of_a_run_are_its_pictures(axes, exchange):
    """Of each walker, a round trip is a change from down to up: as many as the engine counts."""
    for chain in range(2):
        drawn = figures.swaps(exchange, axes, chain=chain)
        up, down = mpl.colors.to_rgba(style.MEDIUM), mpl.colors.to_rgba(style.LIGHT)
        ways = [[tuple(c) for c in artist.get_colors()] for artist in drawn]
        trips = sum((a, b) == (down, up) and up in way[:i + 1] for way in ways
                    for i, (a, b) in enumerate(itertools.pairwise(way)))  # fmt: skip
        assert trips == exchange.round_trips[chain] > 0
        by_array = figures.swaps(exchange.statistics.walker[chain], axes)
        for a, b in zip(pieces(drawn), pieces(by_array), strict=True):
            np.testing.assert_array_equal(a, b)


# Traces and trajectories.


def test_traces_are_the_runs(axes, exchange):
    fields = {"energy": exchange.trace.fields["energy"], "x[1]": exchange.replica_draws[..., 1]}
    fields["walker"] = exchange.trace.fields["walker"]
    for field, values in fields.items():
        drawn = figures.traces(exchange, axes, field=field, replica=2)
        assert len(drawn) == 2
        for line, expected in zip(drawn, values[:, 2], strict=True):
            np.testing.assert_array_equal(line.get_xdata(), np.arange(60))
            np.testing.assert_array_equal(line.get_ydata(), expected)
    (only,) = figures.traces(np.arange(6.0).reshape(2, 3), axes, at=[5, 6, 9], chains=[1], color="red")
    np.testing.assert_array_equal(only.get_xydata(), [[5, 3], [6, 4], [9, 5]])
    assert only.get_color() == "red"
    with pytest.raises(ValueError, match=r"one of x\[0\], x\[1\], energy, multiplier, walker, got 'xi'"):
        figures.traces(exchange, axes, field="xi")


def test_a_runs_path_breaks_where_it_swapped(axes, exchange):
    (line,) = figures.trajectory(exchange, axes, chain=1)
    gaps = np.isnan(line.get_xdata())
    assert gaps.sum() == (np.diff(exchange.trace.fields["walker"][1, 0], prepend=0) != 0).sum() > 5
    np.testing.assert_array_equal(line.get_xydata()[~gaps], exchange.draws[1])


def test_a_coloured_path(axes):
    points, values = RNG.standard_normal((6, 2)), np.arange(6.0)
    (lines,) = figures.trajectory(points, axes, colours=values, breaks=np.arange(6) == 3, cmap="cividis", linewidth=2.0)
    np.testing.assert_array_equal(pieces([lines]), [points[i - 1 : i + 1] for i in (1, 2, 4, 5)])
    np.testing.assert_array_equal(lines.get_array(), [1, 2, 4, 5])  # each leads to its step
    axes.figure.colorbar(lines)
    axes.figure.canvas.draw()
    assert tuple(lines.get_colors()[-1]) == mpl.colormaps["cividis"](1.0)
    assert axes.get_xlim()[0] < points[:, 0].min()


# Refusals.

WALKERS = [[0, 1], [1, 0]]
REFUSED = {
    "axes must be a Axes": lambda a: figures.posterior(DRAWS, None),
    "source must be draws": lambda a: figures.posterior(DRAWS[0, :, 0], a),
    "coordinate must be ≥ 0 and < 2": lambda a: figures.posterior(DRAWS, a, coordinate=2),
    "weights must have shape": lambda a: figures.posterior(DRAWS, a, weights=np.ones((4, 499))),
    "weights must be ≥ 0": lambda a: figures.posterior(DRAWS, a, weights=-np.ones((4, 500))),
    "method must be one of": lambda a: figures.posterior(DRAWS, a, method="kde"),
    "limits must be two": lambda a: figures.posterior(DRAWS, a, limits=(1.0, 1.0)),
    "bandwidth must be": lambda a: figures.posterior(DRAWS, a, bandwidth=-1.0),
    "truth must be densities": lambda a: figures.posterior(DRAWS, a, truth=lambda x: -x),
    "true_value must be a number": lambda a: figures.posterior(DRAWS, a, true_value="x"),
    "source must have 2 states": lambda a: figures.phase_portrait(np.ones((4, 3)), a),
    "source must be finite": lambda a: figures.phase_portrait(np.full((4, 2), np.nan), a),
    "coordinates must be 2": lambda a: figures.phase_portrait(np.ones((4, 3)), a, coordinates=(0,)),
    "limits must be given": lambda a: figures.phase_portrait(systems.lotka_volterra(), a),
    "field must be a System of 2": lambda a: figures.phase_portrait(np.ones((4, 2)), a, field=systems.lorenz()),
    "field must give finite": lambda a: figures.phase_portrait(np.ones((4, 2)), a, field=lambda x: x[:, 0]),
    "parameters must have shape": lambda a: figures.phase_portrait(
        np.ones((4, 2)), a, field=systems.lotka_volterra(), parameters=[1.0]
    ),
    "source must be θ": lambda a: figures.theta_spectrum(np.ones((2, 3)), a, edges=[0, 1, 2]),
    "edges must be an array of real": lambda a: figures.theta_spectrum(np.ones((2, 3)), a),
    "edges must be at least 2": lambda a: figures.theta_spectrum(np.ones((2, 3)), a, edges=[1, 1, 2, 3]),
    "above 0 in one": lambda a: figures.theta_spectrum(np.zeros((2, 2)), a, edges=[0, 1, 2]),
    "truth must have": lambda a: figures.theta_spectrum(np.ones((2, 2)), a, edges=[0, 1, 2], truth=[1.0]),
    "one rung at every time": lambda a: figures.swaps([[0, 1], [1, 1]], a),
    "highlight must be": lambda a: figures.swaps(WALKERS, a, highlight=2),
    "at must have shape": lambda a: figures.swaps(WALKERS, a, at=[1.0]),
    "source must be a Run or an array": lambda a: figures.traces(np.ones(3), a),
    r"chains\[0\] must be": lambda a: figures.traces(np.ones((2, 3)), a, chains=[2]),
    "colours must have shape": lambda a: figures.trajectory(np.ones((3, 2)), a, colours=[1.0]),
    "chain must be": lambda a: figures.trajectory(np.ones((3, 2)), a, chain=1),
}


@pytest.mark.parametrize("said", REFUSED)
def test_refused_before_anything_is_drawn(axes, said):
    with pytest.raises((TypeError, ValueError), match=said):
        REFUSED[said](axes)
    assert not [*axes.lines, *axes.collections, *axes.patches, *axes.images]


def test_a_run_of_another_kind_is_refused(axes, exchange, contour):
    for picture, run in ((figures.swaps, contour), (figures.theta_spectrum, exchange)):
        with pytest.raises(ValueError, match="source must be a Run of"):
            picture(run, axes)
    with pytest.raises(ValueError, match="at must be None for a Run"):
        figures.traces(exchange, axes, at=[1.0])


@pytest.fixture(scope="module")
def gallery(produced):
    """The script, and what it measures with 2,000 draws of the flower and 40,000 steps of contour."""
    product = produced("gallery_plots")
    return product.script.module, product.measured.data


def test_docstrings_name_the_panel_that_shows_them(gallery):
    module, data = gallery
    titles = [axes.get_title(loc="left").split() for axes in module.draw(data).axes if axes.get_title(loc="left")]
    assert len(titles) == 8
    for letter, name in titles:
        assert f"Picture: docs/plots.png, {letter}." in getattr(figures, name).__doc__
    plt.close("all")


def test_gallery_numbers(gallery):
    module, data = gallery
    ours = {row["panel and number"]: (row["ours"], row["error"]) for row in module.table(data)}
    reflected, exchange = ours["c: KL of reflected SGLD over its floor"], ours["c: KL of r2SGLD over its floor"]
    assert 1.0 < exchange[0] < 1.4 < reflected[0] - 4.0 * reflected[1]
    left = ours["d: weight of the left mode, 0.4 in truth"]
    assert abs(left[0] - 0.4) < 5.0 * left[1] < 0.4
    assert ours["f: sum of the differences from the truth"][0] < 0.6  # a flat θ has 1.8
    thermostat = ours["h: thermostat over the last half, 0.23 in theory"]
    assert abs(thermostat[0] - 0.23) < 0.05  # of noise 0 it has 0.05
    assert (data["cells"].sum(), data["cells"].shape) == (pytest.approx(1.0), (60, 60))
    cells = module.SHAPE.contains(np.stack(np.meshgrid(*[module.EDGES] * 2, indexing="ij"), axis=-1).reshape(-1, 2))
    corners = cells.reshape(61, 61)
    near = corners[1:, 1:] | corners[:-1, 1:] | corners[1:, :-1] | corners[:-1, :-1]
    assert data["cells"][~near].sum() < 1e-3  # cells whose corners all lie outside the flower


@pytest.mark.parametrize("chains", [4, 8, 32])
def test_the_band_of_kl_stays_on_the_axis(axes, chains):
    """KL that falls at another time in each chain, whose spread is larger than its mean; a log axis shows the band."""
    at = np.geomspace(10.0, 1e4, 40)
    path = np.where(at < np.geomspace(100.0, 6000.0, chains)[:, None], 1.5, 0.02)
    line, band = figures.kl_curve(at, path, axes, label="x")
    edges = band.get_paths()[0].vertices[:, 1]
    quantile = scipy.special.stdtrit(chains - 1, 0.975)
    assert edges.min() >= line.get_ydata().min() * np.exp(-quantile)  # a relative standard error is at most 1
    assert edges.max() <= 1.5 * np.exp(quantile)


def test_the_interval_of_kl_covers_its_mean():
    """95 % of the intervals of 8 chains that fall at random times; where the spread is small, it is the plain one."""
    times = RNG.random((4_000, 8))
    paths = np.where(times < 0.5, 1.5, 0.02)[:, :, None]
    covered = [low[0] <= 0.76 <= high[0] for _, low, high in map(ratio_interval, paths)]
    assert 0.9 < np.mean(covered) <= 1.0
    values = 1.0 + 1e-4 * RNG.standard_normal((8, 3))
    mean, low, high = ratio_interval(values)
    np.testing.assert_allclose([mean - low, high - mean], np.tile(interval(values)[1], (2, 1)), rtol=1e-3)
    assert [part.tolist() for part in ratio_interval(np.zeros((3, 1)))] == [[0.0]] * 3
