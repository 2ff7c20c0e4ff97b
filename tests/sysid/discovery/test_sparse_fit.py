"""The weak likelihood near a sparse posterior: a quadratic that is right there, whatever the data leave open."""

import functools
import json
import warnings

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from benchmarks.identification.field import CATALOGUE, flow_of, noisy
from sysid import Series, discover, likelihoods
from sysid.discovery import sparse_fit
from sysid.discovery.sparse_fit import Settings, fit_near, whole_paths
from sysid.libraries import polynomial
from sysid.likelihoods import pieces
from sysid.likelihoods.path_fit import misfit_of, path_step
from sysid.likelihoods.pieces import ROUGH_DEPARTURE
from sysid.likelihoods.weak_form import attempt, weak, weak_problem
from sysid.model import all_free, as_model
from sysid.sparsity import SLAB, natural_scales, sparse_posterior, sparse_prior, term_degrees


@functools.cache
def flow(name, degree=2):
    return flow_of(name, json.loads(CATALOGUE.read_text(encoding="utf-8"))[name], degree)


@functools.cache
def near(name, level, seed):
    """A first fit with its sparse posterior, and what is near it."""
    series, library = noisy(flow(name), level, seed), flow(name).library
    model = all_free(library)
    problem = weak_problem(weak(), [series], model, SLAB * natural_scales(series, library))
    fit, _ = attempt(weak(), [series], problem)

    class Law:
        names, quadratic = model.parameters, fit.quadratic

    sparse = sparse_posterior(Law, sparse_prior(Law, natural_scales(series, library)), sweeps=300, progress=False)
    return fit, problem, sparse, fit_near(fit, [series], problem, sparse, None)


def test_the_quadratic_is_that_of_the_misfit_at_the_posterior():
    """Its slope and curvature along draws of the posterior are those of the misfit, the paths fitted anew."""
    _, problem, sparse, (fit, is_quadratic) = near("SprottB", 0.02, 0)
    assert is_quadratic
    centre = sparse.draws.mean(axis=0)
    np.testing.assert_array_equal(fit.parameters, centre)
    mean, precision, lowest = fit.quadratic

    def energies(parameters):
        told = lowest + 0.5 * (parameters - mean) @ precision @ (parameters - mean)
        misfit = sum(misfit_of(path, problem.model, parameters, fit.noise) for path in fit.paths)
        return told, misfit

    at_centre = np.diff(energies(centre))[0]  # the constant of the normal law
    for draw in sparse.draws[::200]:
        told, misfit = energies(draw)
        rise = abs(told - energies(centre)[0])
        assert abs(misfit - told - at_centre) < 0.05 + 0.1 * rise
    step = 0.1 * (sparse.draws[7] - centre)
    up, down = energies(centre + step), energies(centre - step)
    np.testing.assert_allclose(up[1] - down[1], up[0] - down[0], rtol=0.02, atol=1e-3)


def test_joined_paths_are_those_of_the_pieces():
    _, _, _, (fit, _) = near("HyperBao", 0.1, 0)
    assert len(fit.paths) > 1
    (whole,) = whole_paths(fit, [noisy(flow("HyperBao"), 0.1, 0)])
    np.testing.assert_array_equal(whole.series.times, flow("HyperBao").times)
    samples = np.concatenate([part.path[part.grid.samples] for part in fit.paths])
    np.testing.assert_allclose(whole.path[whole.grid.samples], samples, rtol=1e-12)


def test_the_first_fit_is_the_most_probable_one_and_rough():
    """The slope of the misfit along its coefficients balances that of a prior so narrow that it moves them."""
    series, model = noisy(flow("SprottB"), 0.02, 0), all_free(flow("SprottB").library)
    problem = weak_problem(weak(), [series], model, 0.05 * natural_scales(series, model))
    assert problem.max_departure == ROUGH_DEPARTURE
    fit, _ = attempt(weak(), [series], problem)
    np.testing.assert_allclose(fit.descent, problem.prior_precision * fit.parameters)
    steps = [path_step(path, model, fit.parameters, fit.noise) for path in fit.paths]
    slope = sum(step.design.T @ step.residual for step in steps)
    sds = 1.0 / np.sqrt(np.diag(fit.precision))
    assert np.abs(fit.descent * sds).max() > 0.1
    np.testing.assert_allclose(slope * sds, fit.descent * sds, atol=5e-3)


@pytest.mark.slow_cases("HyperJha-0")
@pytest.mark.parametrize(("name", "seed"), [("SprottQ", 0), ("HyperJha", 0)])
def test_joint_intervals_hold_where_those_of_all_terms_free_do_not(name, seed):
    """The truth's squared distance over q: 3.5 and 2.7 at the most likely coefficients of all terms."""
    series, target = noisy(flow(name), 0.1, seed), flow(name).coefficients.T.ravel()

    def distance(mean, precision):
        return (target - mean) @ precision @ (target - mean) / len(mean)

    one = discover(series, flow(name).library, progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        free = weak().fit([series], all_free(flow(name).library))
    assert distance(free.parameters, free.precision) > 2.0
    mean, precision, _ = one.law.quadratic
    assert distance(mean, precision) < 1.4
    np.testing.assert_array_equal(one.sparse.inclusion >= 0.5, target != 0.0)


def test_a_local_maximum_that_short_pieces_do_not_agree_with_is_left():
    """From the fit of long pieces alone: 13 terms for 9, and a squared distance of 853 q."""
    series, target = noisy(flow("SprottTorus"), 0.2, 9), flow("SprottTorus").coefficients.T.ravel()
    one = discover(series, flow("SprottTorus").library, progress=False)
    np.testing.assert_array_equal(one.sparse.inclusion >= 0.5, target != 0.0)
    mean, precision, _ = one.law.quadratic
    assert (target - mean) @ precision @ (target - mean) / len(mean) < 1.5


def test_the_more_probable_of_two_starts_is_kept(monkeypatch):
    """Where nothing is wrong, another start comes to the same place, and what was found first stays, to the bit."""
    series = noisy(flow("SprottB"), 0.02, 0)
    before = discover(series, flow("SprottB").library, progress=False)
    found, answers, original = [], [], sparse_fit.from_short_pieces

    def starting(*given):
        found.append(given[-1])
        answers.append(original(*given))
        return answers[-1]

    monkeypatch.setattr(sparse_fit, "agreement", lambda *_: 0.001)
    monkeypatch.setattr(sparse_fit, "from_short_pieces", starting)
    after = discover(series, flow("SprottB").library, progress=False)
    assert answers[0].schwarz <= found[0].schwarz
    assert abs(answers[0].schwarz - found[0].schwarz) < 10.0
    np.testing.assert_array_equal(after.sparse.inclusion >= 0.5, before.sparse.inclusion >= 0.5)


def test_a_library_without_the_right_terms_is_warned_of():
    """Predators that are sated, xy / (1 + x), by terms up to degree 2: noise of 0.05 is found to be 0.11 and 0.14."""

    def velocities(_, state):
        x, y = state
        eaten = x * y / (1.0 + x)
        return [x * (1.0 - x / 10.0) - eaten, 0.5 * eaten - 0.3 * y]

    times = np.linspace(0.0, 60.0, 401)
    path = solve_ivp(velocities, (0.0, 60.0), [4.0, 2.0], "DOP853", times, rtol=1e-10, atol=1e-10).y.T
    series = Series(times, path + 0.05 * np.random.default_rng(2).standard_normal(path.shape), ("x", "y"))
    with (
        pytest.warns(UserWarning, match="the residuals contradict independent errors: x"),
        pytest.warns(UserWarning, match="contradict the equations found") as told,
    ):
        discover(series, degree=2, sweeps=100, progress=False)
    assert {warning.filename for warning in told} == {__file__}


def test_steps_that_overflow_on_the_way_are_no_ones_concern():
    """A pendulum that swings far, by terms up to degree 5: nothing is said."""
    times = np.linspace(0.0, 20.0, 401)
    path = solve_ivp(lambda _, x: [x[1], -np.sin(x[0])], (0, 20), [2.0, 0.0], "DOP853", times, rtol=1e-10, atol=1e-10).y
    series = Series(times, path.T + 0.1 * np.random.default_rng(2).standard_normal((401, 2)), ("x", "v"))
    assert discover(series, degree=5, sweeps=100, progress=False).sparse.support == ("dx:v", "dv:x", "dv:xxx")


def test_terms_that_the_data_do_not_tell_apart_are_answered():
    """y = 1 throughout: of 1 and y, x and xy, and so on, each has what the prior leaves it, and that is said."""
    times = np.linspace(0.0, 4.0, 201)
    path = solve_ivp(lambda _, x: -0.7 * x, (0.0, 4.0), [2.0], "DOP853", times, rtol=1e-11, atol=1e-11).y[0]
    values = np.stack([path + 0.01 * np.random.default_rng(0).standard_normal(201), np.ones(201)], axis=1)
    with (
        pytest.warns(UserWarning, match=r"discover: the data leave combinations of .* open"),
        pytest.warns(UserWarning, match="discover: 'y' is constant, 1") as told,
    ):
        one = discover(Series(times, values, ("x", "y"), noise=(0.01, 0.01)), degree=1, progress=False)
    assert {warning.filename for warning in told} == {__file__}
    mean, precision, _ = one.law.quadratic
    truth = np.zeros(6)
    truth[one.sparse.names.index("dx:x")] = -0.7
    assert (truth - mean) @ precision @ (truth - mean) < 20.0
    assert one.sparse.inclusion[one.sparse.names.index("dx:x")] > 0.99
    low, high = one.sparse.intervals(0.98)
    assert ((low <= truth) & (truth <= high)).all()


def test_a_prior_is_enough_where_precise_data_leave_a_state_constant():
    """At noise of 1e-6 the data's precision is 1e13 times the prior's, which rounding takes for none."""
    times = np.linspace(0.0, 4.0, 201)
    path = solve_ivp(lambda _, x: -0.7 * x, (0.0, 4.0), [2.0], "DOP853", times, rtol=1e-11, atol=1e-11).y[0]
    values = np.stack([path + 1e-6 * np.random.default_rng(0).standard_normal(201), np.full(201, 2.0)], axis=1)
    with pytest.warns(UserWarning, match=r"discover: "):
        one = discover(Series(times, values, ("x", "y")), degree=2, sweeps=200, progress=False)
    rate = one.sparse.draws @ [{"dx:x": 1.0, "dx:xy": 2.0}.get(name, 0.0) for name in one.sparse.names]
    assert abs(np.median(rate) + 0.7) < 1e-3


def test_where_no_path_is_near_the_posterior_it_is_said(monkeypatch):
    """A first fit that is rough, as all are, is not taken for a Gaussian likelihood."""
    monkeypatch.setattr(sparse_fit, "fit_near", lambda *_: None)
    with pytest.warns(UserWarning, match="weak: the likelihood is not nearly Gaussian") as told:
        discover(noisy(flow("SprottB"), 0.02, 0), flow("SprottB").library, sweeps=50, progress=False)
    assert {warning.filename for warning in told} == {__file__}


def test_equal_pieces_stay_where_they_are_asked_for():
    series = noisy(flow("SprottB"), 0.05, 0)
    one = discover(series, likelihood=likelihoods.weak(pieces=5), progress=False)
    assert np.array_equal(one.sparse.inclusion >= 0.5, flow("SprottB").coefficients.T.ravel() != 0.0)
    assert one.path.first.time == series.times[0]
    assert one.path.last.time == series.times[-1]


@pytest.mark.parametrize("noise", [1e-2, 1e-5])
def test_candidates_may_outnumber_what_the_data_determine(noise):
    """All 42 terms of degree 5, from 25 rows: however precise they are."""
    times = np.linspace(0.0, 5.0, 25)
    path = solve_ivp(lambda _, x: [x[1], -x[0]], (0.0, 5.0), [1.0, 0.0], "DOP853", times, rtol=1e-11, atol=1e-11).y.T
    values = path + noise * np.random.default_rng(1).standard_normal(path.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that combinations are open
        series = Series(times, values, ("x", "v"), noise=(noise, noise))
        one = discover(series, polynomial(("x", "v"), 5), progress=False)
    low, high = one.sparse.intervals(0.95)
    for name, value in (("dx:v", 1.0), ("dv:x", -1.0)):
        k = one.sparse.names.index(name)
        assert low[k] <= value <= high[k]


@pytest.mark.parametrize("sweeps", [60, 400])
def test_a_posterior_is_drawn_once_where_the_last_is_as_long_as_those_before(monkeypatch, sweeps):
    drawn, answers, original = [], [], sparse_fit.sparse_posterior

    def drawing(law, priors, **options):
        drawn.append((law.quadratic, options["sweeps"]))
        answers.append(original(law, priors, **options))
        return answers[-1]

    monkeypatch.setattr(sparse_fit, "sparse_posterior", drawing)
    one = discover(noisy(flow("SprottB"), 0.02, 0), flow("SprottB").library, sweeps=sweeps, progress=False)
    assert one.sparse is answers[-1]
    assert drawn[-1][1] == sweeps
    priors = dict(zip(one.sparse.names, one.priors, strict=True))
    again = sparse_posterior(one.law, priors, groups=term_degrees(one.full), sweeps=sweeps, progress=False)
    np.testing.assert_array_equal(one.sparse.draws, again.draws)
    same = [number for quadratic, number in drawn if quadratic is one.law.quadratic]
    assert same == ([sweeps] if sweeps <= sparse_fit.SWEEPS_OF_ROUNDS else [sparse_fit.SWEEPS_OF_ROUNDS, sweeps])


def test_steps_of_a_path_at_the_coefficients_are_taken_once(monkeypatch):
    """The comparison of a fit with its quadratic uses the steps from which the quadratic was made."""
    fit, problem, sparse, _ = near("SprottB", 0.02, 0)
    taken = []

    def counted(fitted, model, parameters, noise):
        taken.append(fitted)
        return path_step(fitted, model, parameters, noise)

    monkeypatch.setattr(sparse_fit, "path_step", counted)
    monkeypatch.setattr(pieces, "path_step", None)
    found, _ = fit_near(fit, [noisy(flow("SprottB"), 0.02, 0)], problem, sparse, 4)
    assert len(taken) == len(found.paths) == 4


@pytest.mark.parametrize("inclusion", [None, 0.2])
def test_settings_give_the_usual_posterior(inclusion):
    series, model = noisy(flow("SprottB"), 0.05, 0), as_model(flow("SprottB").library)
    prepared, scales = weak().prepare(series, model), natural_scales(series, model)
    sparse, priors = Settings(inclusion, sweeps=50).posterior(prepared, scales, model)
    own = {} if inclusion is None else {"inclusion": inclusion}
    groups = term_degrees(model) if inclusion is None else None
    expected = sparse_posterior(
        prepared, sparse_prior(prepared, scales, **own), groups=groups, sweeps=50, progress=False
    )
    np.testing.assert_array_equal(sparse.draws, expected.draws)
    assert list(priors) == list(prepared.names)
