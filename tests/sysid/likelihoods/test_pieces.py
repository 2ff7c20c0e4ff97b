"""Pieces of series: a long chaotic path is cut until the likelihood is nearly Gaussian, and no other is."""

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import solve_ivp

from sysid.data.series import Series
from sysid.libraries import polynomial
from sysid.likelihoods import pieces as module
from sysid.likelihoods import weak_form
from sysid.likelihoods.pieces import MIN_VALUES, halves, rows_by_growth
from sysid.likelihoods.weak_form import weak
from sysid.model import as_model

STATES = ("x", "y", "z")
LIBRARY = polynomial(STATES, 2)
DADRAS = {
    ("x", 0): -3,
    ("y", 0): 1,
    ("yz", 0): 2.7,
    ("y", 1): 1.7,
    ("xz", 1): -1,
    ("z", 1): 1,
    ("xy", 2): 2,
    ("z", 2): -9,
}
LORENZ = {("x", 0): -10, ("y", 0): 10, ("x", 1): 28, ("y", 1): -1, ("xz", 1): -1, ("xy", 2): 1, ("z", 2): -8 / 3}


def coefficients_of(terms):
    """Ξ (terms, states) of coefficients by (term, state)."""
    coefficients = np.zeros((len(LIBRARY), 3))
    for (name, state), value in terms.items():
        coefficients[LIBRARY.names.index(name), state] = value
    return coefficients


def path(terms, start, times):
    """A solution, to rounding."""
    coefficients, powers = coefficients_of(terms), np.array([term.powers for term in LIBRARY.terms])
    ends = (times[0], times[-1])
    return solve_ivp(
        lambda _, x: np.prod(x**powers, axis=1) @ coefficients, ends, start, "DOP853", times, rtol=1e-11, atol=1e-11
    ).y.T


def noisy(times, states, level, seed):
    sds = level * np.sqrt(np.mean(states**2, axis=0))
    return Series(times, states + sds * np.random.default_rng(seed).standard_normal(states.shape), STATES)


@pytest.fixture(scope="module")
def dadras():
    times = 0.032886 * np.arange(1001)
    return times, path(DADRAS, [-2.354173397, -7.167965633, 1.463998233], times)


@pytest.mark.slow_cases("0.01")
@pytest.mark.parametrize("level", [0.0, 0.01, 0.1])
def test_good_data_of_sixteen_lyapunov_times_are_not_refused(dadras, level):
    times, states = dadras
    mean, precision, _ = weak().prepare(noisy(times, states, level, 0), LIBRARY).quadratic
    truth = coefficients_of(DADRAS).T.ravel()
    assert np.linalg.norm(mean - truth) < max(0.3 * level, 1e-4) * np.linalg.norm(truth)
    if level:
        assert (mean - truth) @ precision @ (mean - truth) < stats.chi2(30).isf(1e-4)


@pytest.mark.filterwarnings("ignore:weak. the likelihood is not nearly")
def test_joint_gaussians_hold_the_truth_where_one_piece_is_too_narrow():
    times = np.linspace(0.0, 10.0, 501)
    states, truth = path(LORENZ, [-8.0, 7.0, 27.0], times), coefficients_of(LORENZ).T.ravel()
    totals = np.zeros(2)
    for seed in (0, 3):
        series = noisy(times, states, 0.1, seed)
        for k, pieces in enumerate((None, 1)):
            mean, precision, _ = weak(pieces=pieces).prepare(series, LIBRARY).quadratic
            totals[k] += (mean - truth) @ precision @ (mean - truth) / 30.0
    found, whole = totals / 2.0
    assert found < 1.6
    assert whole > 2.5


def test_a_series_without_chaos_is_left_in_one_piece():
    times = np.linspace(0.0, 20.0, 201)
    states = np.stack([np.cos(times), -np.sin(times)], axis=1)
    series = Series(times, states + 0.05 * np.random.default_rng(0).standard_normal(states.shape), ("x", "v"))
    library = polynomial(("x", "v"), 1)
    found, whole = (weak(pieces=pieces).prepare(series, library).quadratic for pieces in (None, 1))
    np.testing.assert_array_equal(found[0], whole[0])
    np.testing.assert_array_equal(found[1], whole[1])


def test_so_many_pieces_are_cut_as_asked(dadras):
    series = noisy(*dadras, 0.01, 0)
    fit = weak(pieces=20, substeps=1).fit([series], as_model(LIBRARY))
    assert len(fit.paths) == 20
    assert np.array_equal(np.concatenate([path.series.times for path in fit.paths]), series.times)
    with pytest.raises(ValueError, match="pieces must have two rows each: at most 500 of 'data', got 501"):
        weak(pieces=501).prepare(series, LIBRARY)


def test_growth_ends_a_piece_and_every_row_is_in_one():
    times = 0.1 * np.arange(200.0)
    growing = np.zeros((200, 2, 2))
    growing[:, 0, 0] = 4.0  # by e^0.4 a row: 1e4 after 24 rows
    rows = rows_by_growth(times, np.ones((200, 2), bool), growing)
    assert [part.stop - part.start for part in rows[:-1]] == [25] * (len(rows) - 1)
    assert np.concatenate([np.arange(200)[part] for part in rows]).tolist() == list(range(200))
    assert rows_by_growth(times, np.ones((200, 2), bool), -growing) == [slice(0, 200)]
    rare = np.zeros((200, 2), bool)
    rare[::10] = True
    assert all(rare[part].sum(axis=0).min() >= MIN_VALUES for part in rows_by_growth(times, rare, growing))


def test_halves_hold_as_many_values_and_none_too_few():
    present = np.ones((100, 2), bool)
    present[:90, 1] = False
    assert halves(slice(20, 100), np.ones((100, 2), bool)) == [slice(20, 60), slice(60, 100)]
    assert halves(slice(0, 100), present) == [slice(0, 100)]
    assert halves(slice(0, 2 * MIN_VALUES), np.ones((100, 2), bool)) == [slice(0, 8), slice(8, 16)]
    assert halves(slice(0, 2 * MIN_VALUES - 1), np.ones((100, 2), bool)) == [slice(0, 15)]


def test_where_no_cut_is_fine_enough_the_fit_that_departs_least_is_kept(monkeypatch, dadras):
    times, states = dadras
    series, model = noisy(times[:401], states[:401], 0.05, 1), as_model(LIBRARY)
    monkeypatch.setattr(weak_form, "MAX_DEPARTURE", 1e-9)
    seen = []

    def departures(fit, *arguments):
        departed = original(fit, *arguments)
        seen.append((float(module.of_most(departed.sum(axis=1))), len(fit.paths)))
        return departed

    original = module.departures
    monkeypatch.setattr(module, "departures", departures)
    with pytest.warns(UserWarning, match="not nearly Gaussian"):
        fit = weak(substeps=1).fit([series], model)
    totals = [total for total, _ in seen]
    assert len(fit.paths) == seen[int(np.argmin(totals))][1]
    assert len(seen) > 2
    assert int(np.argmin(totals)) < len(seen) - 1  # what came last is not what is kept
    assert fit.last_step <= 0.1


def test_a_fit_whose_steps_are_used_up_while_they_shrink_is_near_the_converged_one(dadras):
    times, states = dadras
    series, model = noisy(times[:201], states[:201], 0.05, 1), as_model(LIBRARY)
    converged = weak(substeps=1, pieces=1).fit([series], model)
    assert converged.last_step == 0.0
    for iterations in range(1, 40):
        try:
            fit = weak(substeps=1, pieces=1, iterations=iterations).fit([series], model)
        except ValueError:  # none was found in so few
            continue
        change = fit.parameters - converged.parameters
        assert 0.0 < fit.last_step <= 0.1
        assert change @ converged.precision @ change <= 0.3**2 * len(change)
        break
    assert 1 < iterations < 12


def test_departures_are_infinite_where_no_path_is_found(monkeypatch):
    times = np.linspace(0.0, 4.0, 41)
    data = [Series(times, np.exp(-times)[:, None] + 0.01 * np.cos(50.0 * times)[:, None], ("x",))]
    model = as_model(polynomial(("x",), 1))
    fit = weak().fit(data, model)
    offsets = module.gaussian_offsets(fit.precision)
    steps = [module.path_step(path, model, fit.parameters, fit.noise) for path in fit.paths]
    assert (module.departures(fit, steps, model, offsets) < 0.1).all()
    monkeypatch.setattr(module, "misfit_of", lambda *_: np.inf)
    candidate = module.Candidate(fit, module.departures(fit, steps, model, offsets))
    assert candidate.total == np.inf
    assert module.halvings_of(candidate.departed, 1.0) == [2]
