"""The weak likelihood: right to its quadrature's order, unbiased by noise, and as precise as it says."""

import functools

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import solve_ivp

from sysid.data.series import Series
from sysid.libraries import fourier, functions, polynomial
from sysid.likelihoods import conditions
from sysid.likelihoods.causes import causes_in
from sysid.likelihoods.path_fit import state_of_path
from sysid.likelihoods.smoothing import smooth
from sysid.likelihoods.term_derivatives import term_jacobian
from sysid.likelihoods.weak_form import weak
from sysid.model import all_free, as_model, model_of
from targets.posteriors.quadratic import quadratic_numbers, use_quadratic

NAMES = ("u", "v")
TRUTH = np.array([1.0, 0.5, 0.8, 0.3])
PREY = model_of(
    polynomial(NAMES, 2),
    free=(),
    tied={"a": {"du:u": 1}, "b": {"du:uv": -1}, "c": {"dv:v": -1}, "d": {"dv:uv": 1}},
)


def hunt(times):
    """Prey and predators, to rounding."""
    a, b, c, d = TRUTH

    def rhs(t, x):
        return [a * x[0] - b * x[0] * x[1], -c * x[1] + d * x[0] * x[1]]

    return solve_ivp(rhs, (times[0], times[-1]), [3.0, 1.0], "DOP853", times, rtol=1e-12, atol=1e-12).y.T


TIMES = np.linspace(0.0, 15.0, 151)
CLEAN = hunt(TIMES)
NOISE = 0.1 * np.sqrt(np.mean(CLEAN**2, axis=0))


def noisy(seed, times=TIMES, clean=CLEAN, missing=0.0, part=1.0):
    rng = np.random.default_rng(seed)
    values = clean + part * NOISE * rng.standard_normal(clean.shape)
    values[rng.random(values.shape) < missing] = np.nan
    return Series(times, values, NAMES)


def errors_of_exact_data():
    """Largest error of the coefficients from exact data, with 51 and 101 samples and no steps between them."""
    largest = []
    for every in (2, 1):
        series = Series(TIMES[::every][: 100 // every + 1], CLEAN[::every][: 100 // every + 1], NAMES)
        mean = weak(noise=1.0, substeps=1).prepare(series, PREY).quadratic[0]
        largest.append(np.abs(mean - TRUTH).max())
    return largest


def test_error_of_exact_data_falls_as_the_fourth_power_of_the_step(monkeypatch):
    coarse, fine = errors_of_exact_data()
    assert 3.5 < np.log2(coarse / fine) < 4.5
    monkeypatch.setattr(
        "sysid.likelihoods.conditions.INTEGRAL", np.array([[0.5, 1.0, 0.5], [0.25, 0.0, -0.25]])
    )  # trapezoids
    monkeypatch.setattr("sysid.likelihoods.conditions.INTEGRAL", conditions.INTEGRAL)
    coarse, fine = errors_of_exact_data()
    assert np.log2(coarse / fine) < 2.5


def test_steps_are_halved_until_they_do_not_matter():
    mean, precision, _ = weak(noise=1e-5).prepare(Series(TIMES, CLEAN, NAMES), PREY).quadratic
    assert (np.abs(mean - TRUTH) * np.sqrt(np.diag(precision)) < 0.3).all()
    mean, precision, _ = weak(noise=1e-5, substeps=1).prepare(Series(TIMES, CLEAN, NAMES), PREY).quadratic
    assert (np.abs(mean - TRUTH) * np.sqrt(np.diag(precision)) > 1.0).any()


def distance(mean, precision):
    """(mean − truth)ᵀ precision (mean − truth)."""
    return (mean - TRUTH) @ precision @ (mean - TRUTH)


UNEVEN = np.sort(np.random.default_rng(5).uniform(0.0, 15.0, 120))


@functools.cache
def path_of(kind):
    """Times and the path without noise."""
    return (TIMES, CLEAN) if kind == "even" else (UNEVEN, hunt(UNEVEN))


@functools.cache
def fitted(seed, kind):
    """The fit of noisy data; three tests ask for the same ones."""
    return weak().fit([noisy(seed, *path_of(kind), 0.4 if kind == "missing" else 0.0)], PREY)


@pytest.mark.slow_cases("uneven")
@pytest.mark.parametrize(
    ("kind", "draws"), [("even", 80), ("uneven", 30), ("missing", 30)], ids=["even", "uneven", "missing"]
)
def test_precision_is_that_of_the_spread_over_noise(kind, draws):
    """Squared distances are χ² of 4 degrees each; their sum leaves this range once in 10⁴."""
    fits = [fitted(seed, kind) for seed in range(draws)]
    total = sum(distance(fit.parameters, fit.precision) for fit in fits)
    low, high = stats.chi2(4 * draws).ppf([5e-5, 1.0 - 5e-5])
    assert low < total < high
    assert total * 2.0 > high  # precision taken 2 times too large
    assert total / 2.0 < low


def terms_at_noisy_states(series):
    """Least squares of the same integrals with the terms taken at the data: what errors in variables spoil."""
    grid = conditions.grid_of(series.times, 1)
    terms = np.einsum("nt,kte->nek", PREY.library.evaluate(series.values), PREY.directions)
    design = grid.half_widths[:, None, None, None] * conditions.by_windows(terms, conditions.INTEGRAL)
    change = conditions.by_windows(series.values, conditions.CHANGE)
    return np.linalg.lstsq(design[:, 0].reshape(-1, 4), change[:, 0].ravel(), rcond=None)[0]


def test_noise_in_the_terms_leaves_no_bias():
    ours = np.array([fitted(seed, "even").parameters for seed in range(80)])
    spoilt = np.array([terms_at_noisy_states(noisy(seed)) for seed in range(80)])
    scores = [np.abs(x.mean(axis=0) - TRUTH) / (x.std(axis=0, ddof=1) / np.sqrt(80)) for x in (ours, spoilt)]
    limit = stats.t(79).isf(1e-4 / 8)
    assert (scores[0] < limit).all()
    assert (scores[1] > limit).any()


def test_noise_is_estimated_or_taken_as_told():
    fit = weak().fit([noisy(1)], PREY)
    assert np.allclose(fit.noise, NOISE, rtol=4.0 / np.sqrt(2 * 148))  # 4 standard errors
    told = Series(TIMES, noisy(1).values, NAMES, noise=3.0 * NOISE)
    wide, narrow = weak().prepare(told, PREY).quadratic[1], weak(noise=NOISE).prepare(told, PREY).quadratic[1]
    assert np.allclose(9.0 * wide, narrow, rtol=1e-2)


def test_several_series_add_their_information_and_share_noise():
    one, two = noisy(1), noisy(2)
    parts = [weak(noise=NOISE, substeps=1).prepare(series, PREY).quadratic for series in (one, two)]
    mean, precision, lowest = weak(noise=NOISE, substeps=1).prepare([one, two], PREY).quadratic
    together = np.linalg.solve(sum(p for _, p, _ in parts), sum(p @ m for m, p, _ in parts))
    sds = np.sqrt(np.diag(np.linalg.inv(precision)))
    assert (np.abs(mean - together) < 0.5 * sds).all()  # to second order in the noise
    assert np.allclose(np.linalg.inv(precision), np.linalg.inv(sum(p for _, p, _ in parts)), rtol=0.1, atol=1e-6)
    assert lowest >= sum(p[2] for p in parts)


def test_lowest_energy_is_that_of_normal_residuals():
    fit = weak(noise=NOISE).fit([noisy(3)], PREY)
    tracked = fit.paths[0]
    density = stats.norm(tracked.path[tracked.grid.samples], NOISE).logpdf(tracked.series.values)
    assert fit.lowest == pytest.approx(-density.sum(), rel=1e-12)


def test_prepared_holds_the_quadratic_for_the_kernel():
    prepared = weak().prepare(noisy(1), PREY)
    assert prepared.names == ("a", "b", "c", "d")
    assert prepared.kernel is use_quadratic
    assert np.array_equal(prepared.numbers, quadratic_numbers(*prepared.quadratic))
    assert np.array_equal(prepared.start, prepared.quadratic[0])
    assert not any(prepared.positive)
    assert not prepared.stochastic


def test_free_coefficients_hold_the_truth():
    model = as_model(polynomial(NAMES, 2))
    mean, precision, _ = weak().prepare(noisy(4, part=0.1), model).quadratic
    truth = all_free(model.library).parameters
    told = dict(zip(("du:u", "du:uv", "dv:v", "dv:uv"), (1.0, -0.5, -0.8, 0.3), strict=True))
    apart = mean - [told.get(name, 0.0) for name in truth]
    assert apart @ precision @ apart < stats.chi2(12).isf(1e-5)


def test_slopes_are_derivatives_of_every_kind_of_term():
    library = polynomial(NAMES, 3) + fourier(NAMES, 2, frequency=0.7) + functions(NAMES, {"own": lambda x: x[0] / x[1]})
    path = np.random.default_rng(0).uniform(0.5, 2.0, (6, 2))
    step = 1e-6
    for d in range(2):
        up, down = path.copy(), path.copy()
        up[:, d] += step
        down[:, d] -= step
        expected = (library.evaluate(up) - library.evaluate(down)) / (2.0 * step)
        assert np.allclose(term_jacobian(library, path)[:, :, d], expected, atol=1e-7)


@pytest.mark.parametrize("jumps", [False, True], ids=["", "slopes jump at the end of a window"])
def test_path_steps_are_least_under_their_conditions(jumps):
    rng = np.random.default_rng(0)
    grid = conditions.grid_of(np.array([0.0, 0.1, 0.2, 0.5]), 1)
    nodes, windows_, dim = len(grid.times), len(grid.half_widths), 2
    assert nodes == 2 * windows_ + 1 == 5
    weights, jacobian = rng.uniform(1.0, 2.0, (nodes, dim)), rng.standard_normal((nodes, dim, dim))
    pull, targets = rng.standard_normal((nodes, dim, 3)), rng.standard_normal((windows_, 2, dim, 3))
    ends = rng.standard_normal(jacobian.shape) if jumps else None
    step, multipliers = conditions.solve_path_step(grid, weights, jacobian, pull, targets, ends)
    slopes, at_ends = (None if j is None else np.einsum("ned,ndm->nem", j, step) for j in (jacobian, ends))
    integrals = grid.half_widths[:, None, None, None] * conditions.by_windows(slopes, conditions.INTEGRAL, at_ends)
    moved = conditions.by_windows(step, conditions.CHANGE) - integrals
    assert np.allclose(moved, targets, atol=1e-12)
    other, _ = conditions.solve_path_step(grid, weights, jacobian, 0.0 * pull, targets, ends)
    push = np.einsum("ndm,ndm->m", weights[..., None] * step - pull, step - other)
    assert np.allclose(push, 0.0, atol=1e-12)  # the gradient is at right angles to what the conditions leave free
    assert multipliers.shape == targets.shape


def test_windows_hold_every_sample_at_a_node():
    times = np.array([0.0, 1.0, 2.0, 2.5, 4.0, 5.5, 7.0])
    for substeps in (1, 2, 8):
        grid = conditions.grid_of(times, substeps)
        assert len(grid.times) % 2 == 1
        assert np.allclose(grid.times[grid.samples], times)
        assert np.allclose(np.diff(grid.times)[::2], np.diff(grid.times)[1::2])
    assert len(conditions.grid_of(times[:3], 1).times) == 3


def test_smoothing_takes_most_of_the_noise_away():
    path, velocities = smooth(noisy(1), TIMES)
    assert (np.std(path - CLEAN, axis=0) < 0.6 * NOISE).all()
    assert np.corrcoef(velocities[:, 0], np.gradient(CLEAN[:, 0], TIMES))[0, 1] > 0.95


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"noise": 0.0}, "noise must be one or one per state, each > 0"),
        ({"noise": [0.1, -1.0]}, "each > 0"),
        ({"substeps": 3}, "substeps must be a power of 2, got 3"),
        ({"substeps": 0}, "substeps must be ≥ 1"),
        ({"iterations": 0}, "iterations must be ≥ 1"),
    ],
)
def test_bad_settings_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        weak(**arguments)


def test_samples_too_far_apart_for_fast_changes_are_named():
    times = np.linspace(0.0, 40.0, 60)
    values = np.stack([np.where(times % 20.0 < 10.0, 2.0, -2.0) - 0.02 * (times % 10.0), np.cos(times)], axis=1)
    series = Series(times, values, NAMES, name="jumps")
    with pytest.raises(
        ValueError, match=r"must.*likely cause: 'jumps' is sampled too coarsely: 'u' changes by 2.1 times"
    ):
        weak(iterations=1, substeps=1, pieces=1).prepare(series, polynomial(NAMES, 2))
    assert causes_in(noisy(1)) == []


def test_bad_data_are_refused():
    with pytest.raises(ValueError, match="noise must be one or one per state, 2, got 3"):
        weak(noise=[0.1] * 3).prepare(noisy(1), PREY)
    still = CLEAN.copy()
    still[:, 1] = 2.0
    with pytest.raises(ValueError, match=r"du:1, du:v, du:vv are one combination.*cause: 'v' is constant, 2, so terms"):
        weak().prepare(Series(TIMES, still, NAMES), model_of(polynomial(NAMES, 2), free=["du:1", "du:v", "du:vv"]))
    with pytest.raises(ValueError, match=r"values of each state|one combination"):
        weak().prepare(Series(TIMES[:3], CLEAN[:3], NAMES), polynomial(NAMES, 2))
    with pytest.raises(ValueError, match=r"data must have states of the model, .*, got 'a'"):
        weak().prepare(Series(TIMES, CLEAN, ("a", "b")), PREY)
    noise = np.random.default_rng(0).standard_normal(CLEAN.shape)
    with pytest.raises(ValueError, match="data must"):
        weak().prepare(Series(TIMES, 100.0 * noise, NAMES), polynomial(NAMES, 3))


def test_so_many_steps_are_taken_as_it_says():
    """Of as many as are needed nothing changes; of one the path is not there yet, nor guessed."""
    usual = weak(substeps=1).prepare(noisy(1), PREY).quadratic[0]
    np.testing.assert_array_equal(weak(substeps=1, iterations=80).prepare(noisy(1), PREY).quadratic[0], usual)
    with pytest.raises(ValueError, match="data must be near a path of the model, but none was found in 1 iterations"):
        weak(substeps=1, iterations=1).prepare(noisy(1), PREY)


def test_too_many_rows_are_refused_before_any_work():
    n = 200_001
    with pytest.raises(ValueError, match="average or thin"):
        weak().prepare(Series(np.arange(n) * 1.0, np.ones((n, 2)), NAMES), PREY)


def test_a_path_that_tells_nothing_of_the_data_is_warned_of():
    noise = np.random.default_rng(0).standard_normal(CLEAN.shape)
    decay = model_of(polynomial(NAMES, 1), free=["du:u", "dv:v"])
    with pytest.warns(UserWarning, match="noise of 'u' is estimated as .* or there is too much noise"):
        weak().prepare(Series(TIMES, noise, NAMES), decay)


@pytest.mark.parametrize("sample", [0, 7, -1])
def test_states_of_a_path_have_the_covariance_of_its_least_squares(sample):
    """x′ = θ x: the path is x0 exp(θ t), and its Fisher information is in closed form."""
    times = np.linspace(0.0, 2.0, 21)
    rng = np.random.default_rng(4)
    values = 2.0 * np.exp(-0.8 * times) + 0.01 * rng.standard_normal(21)
    model = model_of(polynomial(("x",), 1), free=["dx:x"])
    fit = weak(noise=0.01, substeps=2).fit([Series(times, values[:, None], ("x",))], model)
    state = state_of_path(fit, model, 0, sample)
    theta, start = fit.parameters[0], fit.paths[0].path[0, 0]
    path = start * np.exp(theta * times)
    slopes = np.stack([path / start, times * path], axis=1) / 0.01  # in x0 and θ
    covariance = np.linalg.inv(slopes.T @ slopes)
    direction = 0.01 * slopes[sample]
    assert state.time == times[sample]
    np.testing.assert_allclose(state.state, path[sample], rtol=1e-5)
    given_theta = direction[0] ** 2 / (slopes[:, 0] @ slopes[:, 0])
    np.testing.assert_allclose(state.root @ state.root.T, given_theta, rtol=1e-3)
    along = direction[1] - direction[0] * (slopes[:, 0] @ slopes[:, 1]) / (slopes[:, 0] @ slopes[:, 0])
    np.testing.assert_allclose(state.slopes[0, 0], along, rtol=1e-3, atol=1e-4)
    total = state.root @ state.root.T + state.slopes @ np.linalg.inv(fit.precision) @ state.slopes.T
    np.testing.assert_allclose(total, direction @ covariance @ direction, rtol=1e-3)


def test_states_of_a_path_hold_the_truth():
    """Ends of predators' and prey's path over 40 draws of the noise: squared distances are χ² of two degrees."""
    squares = []
    for seed in range(40):
        fit = fitted(seed, "even")
        for sample in (0, -1):
            state = state_of_path(fit, PREY, 0, sample)
            covariance = state.root @ state.root.T + state.slopes @ np.linalg.inv(fit.precision) @ state.slopes.T
            apart = CLEAN[sample] - state.state
            squares.append(apart @ np.linalg.solve(covariance, apart))
    assert abs(np.mean(squares) - 2.0) < 4.0 * 2.0 / np.sqrt(len(squares))


@pytest.mark.parametrize("progress", [0, True, object()])
def test_progress_that_is_none_is_refused(progress):
    data = Series(np.arange(5.0), np.zeros((5, 1)), ("x",))
    with pytest.raises(TypeError, match="progress must be"):
        weak().prepare(data, polynomial(("x",), 1), progress)
