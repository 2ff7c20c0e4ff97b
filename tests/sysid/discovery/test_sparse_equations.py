"""One call from data to equations: the right terms, coefficients within their errors, and what comes of them."""

import functools

import numpy as np
import pandas as pd
import pytest

import sysid
from sysid import Series, data, discover, identify, libraries, likelihoods, systems
from sysid.model import all_free, model_of_system
from sysid.sparsity import natural_scales, sparse_posterior, sparse_prior

SETTINGS = {"lorenz": np.linspace(0.0, 20.0, 2001), "lotka_volterra": np.linspace(0.0, 20.0, 401)}
CASES = [(name, level) for name in SETTINGS for level in (0.01, 0.05)]


@functools.cache
def series(name, level, seed=0):
    return data.simulate(systems.catalogue()[name], SETTINGS[name], noise=level, seed=seed)


@functools.cache
def found(name, level):
    return discover(series(name, level), progress=False)


def truth_of(name, library):
    """Ξ (terms, states) of a textbook's system."""
    system = systems.catalogue()[name]
    model = model_of_system(system)
    truth = np.zeros((len(library), system.dim))
    truth[[library.names.index(term) for term in model.library.names]] = model.coefficients(system.usual)
    return truth


@pytest.mark.slow_cases("lorenz-0.05")
@pytest.mark.parametrize(("name", "level"), CASES)
def test_terms_are_right_and_coefficients_within_their_errors(name, level):
    one = found(name, level)
    truth = truth_of(name, one.library)
    np.testing.assert_array_equal(one.coefficients != 0.0, truth != 0.0)
    table = one.estimates
    true = truth.T.ravel()
    there = true != 0.0
    assert (np.abs(table.median - true)[there] < 4.5 * table.sd[there]).all()
    wide = one.sparse.intervals(0.99)  # two of at most seven coefficients are outside once in 500 fits
    assert (~((wide[0] <= true) & (true <= wide[1])))[there].sum() <= 1
    assert (one.score() > 0.95).all()
    np.testing.assert_allclose(one.noise, one.data[0].noise, rtol=0.15)


def test_it_is_what_its_parts_are():
    given = series("lotka_volterra", 0.05)
    library = libraries.polynomial(given.states, 2)
    prepared = likelihoods.derivative(velocities="spline").prepare(given, library)
    sparse = sparse_posterior(
        prepared, sparse_prior(prepared, natural_scales(given, library), inclusion=0.3), sweeps=200, seed=7
    )
    options = {"likelihood": likelihoods.derivative(velocities="spline"), "inclusion": 0.3, "sweeps": 200}
    one = discover(given, seed=7, **options)
    np.testing.assert_array_equal(one.sparse.draws, sparse.draws)
    np.testing.assert_array_equal(one.estimates.inclusion, sparse.inclusion)
    again = discover(given, library, seed=7, **options)
    np.testing.assert_array_equal(one.sparse.draws, again.sparse.draws)
    assert not np.array_equal(one.sparse.draws, discover(given, seed=8, **options).sparse.draws)


def test_equations_in_words_latex_and_sympy():
    one = found("lotka_volterra", 0.01)
    first, second = one.equations().split("\n")
    assert first.startswith("dprey/dt = +(")
    assert first.count("[100%]") == second.count("[100%]") == 2
    assert "prey predator [100%]" in first
    assert one.latex() == one.equations(style="latex")
    assert r"\mathrm{prey} \, \mathrm{predator}" in one.latex()
    slopes = one.sympy()
    assert [str(state) for state in slopes] == ["prey", "predator"]
    assert len(slopes[next(iter(slopes))].args) == 2
    text = str(one)
    assert one.equations() in text
    for words in ("4 of 12 terms", "R² of the smoothed", "Noise, standard deviations: prey 0.2", "90% from",
                  "The other 8 terms: inclusion below 5%."):  # fmt: skip
        assert words in text
    assert repr(one) == "<Discovery of 4 of 12 terms of 'lotka_volterra'>"


def test_an_uncertain_term_says_so():
    """Few noisy rows: the probability is printed, and the error is of the draws that have the term."""
    given = data.simulate(systems.lorenz(), np.linspace(0.0, 10.0, 1001), noise=0.1, seed=1)
    one = discover(given, progress=False)
    k = one.sparse.names.index("dy:y")
    assert 0.5 < one.sparse.inclusion[k] < 0.95
    assert f"y [{one.sparse.inclusion[k]:.0%}]" in one.equations()
    _, sds = one._where_present
    assert sds[k] < 0.5 * one.estimates.sd[k]


def test_the_model_is_ready_for_identify():
    one = found("lotka_volterra", 0.01)
    assert one.model.parameters == one.sparse.support
    assert len(one.model.library) == 3
    problem = identify(one.data[0], one.model, likelihood="weak")
    np.testing.assert_allclose(
        problem.posterior.mean, one.estimates.median[one.sparse.inclusion >= 0.5], atol=3 * problem.posterior.sd.max()
    )


@pytest.mark.parametrize("name", list(SETTINGS))
def test_simulations_and_forecasts(name):
    """Bands hold the exact path while it can be known, from its first state and from the data's end."""
    one, system = found(name, 0.01), systems.catalogue()[name]
    exact = data.simulate(system, np.append(SETTINGS[name], 20.0 + 0.1 * np.arange(1, 6)), seed=0).values
    n = len(SETTINGS[name])
    paths = one.simulate(SETTINGS[name][: n // 20], seed=1)
    assert paths.diverged == 0.0
    assert (np.abs(paths.bands([0.5])[0] - exact[: n // 20]) < 8.0 * one.noise).all()
    later = one.simulate(SETTINGS[name][n // 40 : n // 20], seed=1)
    np.testing.assert_allclose(later.states, paths.states[:, n // 40 :], rtol=1e-5, atol=1e-5)
    ahead = one.forecast(20.0 + 0.1 * np.arange(1, 6), seed=1)
    assert ahead.states.shape == (200, 5, system.dim)
    assert (np.abs(ahead.bands([0.5])[0] - exact[n:]) < 8.0 * one.noise).all()
    noisy = one.forecast(20.0 + 0.1 * np.arange(1, 6), noise=one.noise, seed=1)
    assert (noisy.bands()[2] - noisy.bands()[0] > ahead.bands()[2] - ahead.bands()[0]).all()
    given = one.simulate([0.0, 0.1], start=system.start, n_draws=3)
    np.testing.assert_array_equal(given.states[:, 0], np.tile(system.start, (3, 1)))


@pytest.mark.parametrize("end", ["first", "last"])
def test_bands_of_a_state_without_noise_hold_what_the_likelihood_knows_of_it(end):
    """Simulated at one end of the path: the covariance is that of the state over posterior draws."""
    one = found("lotka_volterra", 0.05)
    state = getattr(one.path, end)
    at = np.array([state.time])
    ensemble = one.simulate(at, n_draws=None) if end == "first" else one.forecast(at, n_draws=None)
    drawn = ensemble.states[:, 0]
    theta = np.where(one.sparse.present, one.sparse.draws, 0.0)
    expected = np.cov(theta @ state.slopes.T, rowvar=False) + state.root @ state.root.T
    np.testing.assert_allclose(np.cov(drawn, rowvar=False), expected, rtol=0.25, atol=0.05 * expected.max())
    exact = data.simulate(systems.lotka_volterra(), SETTINGS["lotka_volterra"], seed=0).values
    exact = exact[0 if end == "first" else -1]
    sd = np.sqrt(np.diag(expected))
    assert (sd < one.noise).all()  # a path knows its states better than one datum does
    assert (np.abs(drawn.mean(axis=0) - exact) < 4.0 * sd).all()


def test_scores_and_residuals_are_of_velocities():
    one = found("lotka_volterra", 0.01)
    clean = data.simulate(systems.lotka_volterra(), SETTINGS["lotka_volterra"], seed=0)
    rest = one.residuals(clean)
    assert rest.shape == clean.values.shape
    assert (one.score(clean) > 0.999).all()
    turned = Series(clean.times, clean.values[:, ::-1], clean.states[::-1])
    np.testing.assert_array_equal(one.score(turned), one.score(clean))
    other = data.simulate(systems.lotka_volterra(), clean.times, parameters=[2.0, 0.1, 1.5, 0.075], seed=0)
    assert one.score(other)[0] < 0.95  # prey grow twice as fast
    assert one.residuals([clean, clean]).shape == (2 * len(clean), 2)


def test_tables_and_several_series():
    given = series("lotka_volterra", 0.05)
    one = discover(given.to_dataframe(), sweeps=100)
    np.testing.assert_array_equal(one.sparse.draws, discover(given_without_noise(given), sweeps=100).sparse.draws)
    both = discover([given, series("lotka_volterra", 0.05, seed=1).to_dataframe()], sweeps=100)
    assert len(both.data) == 2
    assert both.sparse.support == found("lotka_volterra", 0.05).sparse.support
    k = both.sparse.names.index("dprey:prey")
    assert both.estimates.sd[k] < found("lotka_volterra", 0.05).estimates.sd[k]
    frame = both.estimates.to_dataframe()
    assert frame.loc["dprey:prey", "inclusion"] > 0.99


def given_without_noise(one):
    return Series(one.times, one.values, one.states)


def test_other_likelihoods_and_libraries():
    clean = data.simulate(systems.van_der_pol(), np.linspace(0.0, 10.0, 501), seed=0)
    one = discover(clean, libraries.polynomial(clean.states, 3), likelihood=likelihoods.derivative(noise=0.01))
    assert one.noise is None
    assert "Noise" not in str(one)
    assert {"dx:y", "dy:x", "dy:y", "dy:xxy"} == set(one.sparse.support)
    assert one.simulate(clean.times[:5], n_draws=3).diverged == 0.0
    assert len(one.full.parameters) == len(all_free(one.library).parameters)


def test_what_is_refused():
    given = series("lotka_volterra", 0.05)
    for bad, words in (
        ({"series": [given, series("lorenz", 0.01)]}, r"data\[1\] must have states of the model, prey, predator"),
        ({"series": []}, "series must be a Series, a DataFrame or several, got none"),
        ({"degree": 0}, "degree must be"),
        ({"level": 1.0}, "level must be"),
        ({"inclusion": 0.0}, "inclusion must be"),
        ({"likelihood": "trajectory"}, "likelihood must be 'weak' or 'derivative'"),
        ({"series": pd.DataFrame({"t": [0, 1], "x": [1.0, 2.0]})}, "time must name the column of times"),
    ):
        with pytest.raises(ValueError, match=words):
            discover(**{"series": given, **bad})
    for bad, words in (({"series": given.values}, "series must be"), ({"library": "xy"}, "library must be a Library")):
        with pytest.raises(TypeError, match=words):
            discover(**{"series": given, **bad})
    one = found("lotka_volterra", 0.05)
    with pytest.raises(ValueError, match="times must not begin before 20, the time of the state, got 19"):
        one.forecast([19.0, 21.0])
    with pytest.raises(ValueError, match="style must be one of"):
        one.equations(style="html")


def test_noise_alone_has_no_model_and_warnings_come_through():
    times = np.linspace(0.0, 1.0, 201)
    noise = Series(times, np.random.default_rng(0).standard_normal((201, 1)), ("x",), noise=[1.0])
    with pytest.warns(UserWarning, match="discover: 'x' at one time says nothing of the next"):
        one = discover(noise, degree=1, inclusion=1e-6)
    assert one.sparse.support == ()
    assert one.equations() == "dx/dt = 0"
    assert "0 of 2 terms" in str(one)
    with pytest.raises(ValueError, match="no term of 'data' has an inclusion probability"):
        _ = one.model
    with pytest.raises(ValueError, match="no term of 'data' has an inclusion probability"):
        one.simulate()


def test_it_is_public():
    assert sysid.discover is discover
    assert sysid.Discovery is type(found("lotka_volterra", 0.05))
