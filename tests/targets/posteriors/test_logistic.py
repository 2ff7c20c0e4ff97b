"""Logistic regression: energies at any margin, minibatches against their laws, the reference against other methods."""

import itertools

import numpy as np
import pytest
from scipy import integrate, stats

from targets import datasets
from targets.posteriors.logistic import logistic_regression
from targets.posteriors.logistic_truth import (
    PROBABILITIES,
    STEPS,
    Envelope,
    importance_moments,
    reference_key,
    stored_reference,
)
from tests.support.laws import SIGMAS, estimates, has_moments
from toolkit import Layout, sample, samplers

N, DIM, DRAWN, PRIOR = 90, 5, 6, 1.5
RNG = np.random.default_rng(8)
FEATURES = np.column_stack([np.ones(N), RNG.standard_normal((N, DIM - 1))])
LABELS = (RNG.random(N) < 1.0 / (1.0 + np.exp(-FEATURES @ RNG.standard_normal(DIM)))).astype(int)
POINTS = RNG.standard_normal((7, DIM))
FILES = (datasets.australian, datasets.german, datasets.heart)


def logistic(batch_size=None, refresh_every=None):
    return logistic_regression(FEATURES, LABELS, prior=PRIOR, batch_size=batch_size, refresh_every=refresh_every)


FULL = logistic()


def parts(features, labels, x):
    """Each datum's energy (data,) and gradient (data, dim), by NumPy."""
    signed = features * (2.0 * labels - 1.0)[:, None]
    margin = signed @ x
    return np.logaddexp(0.0, -margin), -signed / (1.0 + np.exp(np.minimum(margin, 700.0)))[:, None]


def direct(features, labels, prior, x):
    energy, gradient = parts(features, labels, x)
    return energy.sum() + 0.5 * x @ x / prior**2, gradient.sum(axis=0) + x / prior**2


@pytest.mark.parametrize("n", [1, 2, 3, 5, 90, 2503])
@pytest.mark.parametrize("dim", [1, 4, 7])
def test_energy_and_gradient_are_the_formula(n, dim):
    """Also beyond 1000 data, after which the product of factors is taken to its logarithm."""
    features, labels = RNG.standard_normal((n, dim)), RNG.integers(0, 2, n)
    points = RNG.standard_normal((9, dim))
    energy, gradient = logistic_regression(features, labels, prior=PRIOR).evaluate(points)
    for i, x in enumerate(points):
        expected = direct(features, labels, PRIOR, x)
        assert energy[i] == pytest.approx(expected[0], rel=1e-13)
        np.testing.assert_allclose(gradient[i], expected[1], rtol=1e-11, atol=1e-11)
    signed = logistic_regression(features, 2 * labels - 1, prior=PRIOR).evaluate(points)
    np.testing.assert_array_equal(signed[0], energy)


@pytest.mark.parametrize("margin", [1e3, 1e6])
def test_nothing_overflows_at_any_margin(margin):
    """U is the margin itself on the wrong side, and that of the prior on the right one."""
    target = logistic_regression([[1.0], [1.0], [2.0]], [1, 1, 1], prior=1e9)
    energy, gradient = target.evaluate(np.array([[margin], [-margin]]))
    np.testing.assert_allclose(energy, [0.5 * margin**2 * 1e-18, 4.0 * margin], rtol=1e-12)
    np.testing.assert_allclose(gradient[:, 0], [margin * 1e-18, -4.0], rtol=1e-12)
    batch = logistic_regression([[1.0], [1.0], [2.0]], [1, 1, 1], prior=1e9, batch_size=3)
    values = estimates(batch, np.array([[-margin]]), lanes=4)
    assert np.isfinite(values[0]).all()


@pytest.mark.parametrize("target", [FULL, logistic(DRAWN), logistic(DRAWN, 5)], ids=["all", "batch", "anchor"])
def test_without_the_engines_word_all_data_are_used(target):
    np.testing.assert_array_equal(target.evaluate(POINTS)[0], FULL.evaluate(POINTS)[0])
    np.testing.assert_array_equal(target.evaluate(POINTS)[1], FULL.evaluate(POINTS)[1])


@pytest.mark.parametrize("drawn", [1, DRAWN, 7, N])
@pytest.mark.parametrize("anchored", [False, True])
def test_estimates_have_their_mean_and_covariance(drawn, anchored):
    """Unbiased, N²/n times the covariance over the data, of changes where anchored; so too for a batch of size N."""
    x, anchor = POINTS[0], POINTS[0] + 0.3 * POINTS[1]
    target = logistic(drawn, 10 if anchored else None)
    scratch = estimates(target, anchor[None])[2] if anchored else None
    energy, gradient, _ = estimates(target, x[None], step=3, scratch=scratch)
    values = np.vstack([energy, gradient[:, 0]])
    samples = np.column_stack(parts(FEATURES, LABELS, x))
    if anchored:
        samples = samples - np.column_stack(parts(FEATURES, LABELS, anchor))
    mean = np.concatenate([[part] if np.ndim(part) == 0 else part for part in direct(FEATURES, LABELS, PRIOR, x)])
    covariance = N**2 / drawn * np.cov(samples.T, bias=True)
    assert has_moments(values, mean, covariance)
    assert not has_moments(values, mean, 0.9 * covariance)
    assert not has_moments(values, mean + 0.05 * np.sqrt(np.diag(covariance)), covariance)
    assert energy.std() > 0.0  # a batch of all data drawn with replacement is not all data


def test_at_the_anchor_the_batch_adds_nothing_and_near_it_little():
    target = logistic(DRAWN, 10)
    scratch = estimates(target, POINTS, lanes=50)[2]
    energy, gradient, _ = estimates(target, POINTS, lanes=50, step=1, scratch=scratch)
    exact = FULL.evaluate(POINTS)
    np.testing.assert_array_equal(energy, np.repeat(exact[0][:, None], 50, axis=1))
    np.testing.assert_array_equal(gradient[:, :, 0].T, exact[1])
    spreads = []
    for far in (1e-3, 2e-3):
        values = estimates(target, POINTS + far, lanes=50, step=1, scratch=scratch.copy())[1]
        spreads.append(values.std(axis=2))
    np.testing.assert_allclose(spreads[1] / spreads[0], 2.0, rtol=0.02)
    assert (spreads[1] < 0.01 * estimates(logistic(DRAWN), POINTS, lanes=50)[1].std(axis=2)).all()


@pytest.mark.parametrize("refresh_every", [None, 3])
def test_bits_do_not_depend_on_the_layout(refresh_every):
    target, options = logistic(DRAWN, refresh_every), {"n_steps": 40, "seed": 8, "keep_energies": True}
    whole = sample(target, samplers.sgld(1e-3), n_chains=20, threads=1, **options)
    assert len(np.unique(whole.energies[:, 0, 0])) == 20  # from one place, by data of their own
    for chains, layout in ((20, Layout(chunk_steps=7, lanes=6)), (3, Layout(lanes=1))):
        run = sample(target, samplers.sgld(1e-3), n_chains=chains, threads=1, layout=layout, **options)
        np.testing.assert_array_equal(run.draws, whole.draws[:chains])
        np.testing.assert_array_equal(run.energies, whole.energies[:chains])


def within(value, law, error):
    return np.all(np.abs(value - law) < SIGMAS * error)


def test_in_one_dimension_the_truth_is_the_quadratures():
    """The same code as for the stored references, made anew; every number within its stated error."""
    features, labels = FEATURES[:30, 1:2], LABELS[:30]
    target = logistic_regression(features, labels, prior=PRIOR)
    truth, ref = target.truth, target.truth.reference
    mode = truth.modes.centres[0, 0]

    def integral(weight, low=-15.0, high=15.0):
        density = lambda x: weight(x) * np.exp(-direct(features, labels, PRIOR, np.array([x]))[0])  # noqa: E731
        return integrate.quad(density, low, high, points=[mode] if low < mode < high else None, limit=200)[0]

    whole = integral(lambda x: 1.0)
    mean = integral(lambda x: x) / whole
    variance = integral(lambda x: (x - mean) ** 2) / whole
    assert within(truth.log_normaliser, np.log(whole), ref.log_normaliser_error)
    assert not within(truth.log_normaliser + 0.05, np.log(whole), ref.log_normaliser_error)
    assert within(truth.mean, mean, ref.mean_error)
    assert not within(truth.mean + 0.05 * np.sqrt(variance), mean, ref.mean_error)
    assert within(truth.covariance, variance, ref.covariance_error)
    assert truth.log_evidence == pytest.approx(truth.log_normaliser - 0.5 * np.log(2.0 * np.pi * PRIOR**2))
    edges = mean + np.sqrt(variance) * np.array([-9.0, -1.0, 0.0, 0.5, 9.0])
    cells = [integral(lambda x: 1.0, *pair) / whole for pair in itertools.pairwise(edges)]
    np.testing.assert_allclose(truth.cell_masses(edges), cells, rtol=0, atol=truth.accuracy)
    assert truth.accuracy < 0.025
    probabilities = np.array([0.0, 0.3, 0.62, 0.995, 0.9999])
    grid = np.linspace(-15.0, 15.0, 300_001)
    energies = target.evaluate(grid[:, None])[0]
    density = np.exp(-energies) * 1e-4 / whole
    found = [density[energies <= level].sum() for level in truth.energy_quantiles(probabilities) + 1e-9]
    np.testing.assert_allclose(found, probabilities, rtol=0, atol=truth.accuracy)
    ratio = (-energies - truth.envelope.log_density(grid[:, None])).max()
    assert 0.0 <= float(ref.log_bound) - ratio <= 0.0101  # the bound is the largest ratio, and 0.01
    draws = truth.independent_draws(20_000, seed=1)[:, 0]
    cumulative = np.cumsum(density)
    assert stats.kstest(draws, lambda x: np.interp(x, grid, cumulative)).pvalue > 1e-4
    assert stats.kstest(1.05 * draws, lambda x: np.interp(x, grid, cumulative)).pvalue < 1e-5


@pytest.mark.slow_cases("german")
@pytest.mark.parametrize("load", FILES, ids=lambda load: load.__name__)
def test_stored_references_agree_with_importance_sampling(load):
    """Weights under a Student-t at the mode, which knows nothing of the HMC run; all within both errors."""
    data = load()
    target = logistic_regression(data.features, data.labels)
    truth, ref = target.truth, target.truth.reference
    assert stored_reference(truth.signed, truth.prior) is not None
    mode, hessian = truth.mode_and_hessian
    np.testing.assert_allclose(target.evaluate(mode[None])[1], 0.0, atol=1e-9)
    envelope = Envelope(mode, np.linalg.cholesky(1.2 * np.linalg.inv(hessian)))
    points = envelope.draw(100_000, np.random.default_rng(11))
    log_weights = -target.evaluate(points)[0] - envelope.log_density(points) - ref.log_normaliser
    weights = np.exp(log_weights)
    error = np.hypot(weights.std() / np.sqrt(len(weights)), ref.log_normaliser_error)
    assert within(np.log(weights.mean()), 0.0, error)
    assert not within(np.log(weights.mean()) + 0.05, 0.0, error)
    spread = np.sqrt(np.diag(ref.covariance))
    away = (points - ref.mean) / spread
    means = weights[:, None] * away / weights.mean()
    assert within(means.mean(axis=0), 0.0, np.hypot(means.std(axis=0) / np.sqrt(len(away)), ref.mean_error / spread))
    assert not within(means.mean(axis=0) + 0.05, 0.0, means.std(axis=0) / np.sqrt(len(away)))
    squares = weights[:, None] * (away**2 - 1.0) / weights.mean()
    error = np.hypot(squares.std(axis=0) / np.sqrt(len(away)), np.diag(ref.covariance_error) / spread**2)
    assert within(squares.mean(axis=0), 0.0, error)
    assert not within(squares.mean(axis=0) + 0.1, 0.0, error)


@pytest.mark.parametrize("load", FILES, ids=lambda load: load.__name__)
def test_laplaces_approximation_is_near(load):
    """log Z ≈ −U(mode) + d/2 log 2π − ½ log |H|, to order d/N: here to 0.5 nats of some 100."""
    data = load()
    truth = logistic_regression(data.features, data.labels).truth
    mode, hessian = truth.mode_and_hessian
    lowest = truth.target.evaluate(mode[None])[0][0]
    laplace = -lowest - 0.5 * np.linalg.slogdet(hessian / (2.0 * np.pi))[1]
    assert abs(truth.log_normaliser - laplace) < 0.5
    ratio = np.sqrt(np.diag(truth.covariance) * 1.0 / np.diag(np.linalg.inv(hessian)))
    assert ((ratio > 0.95) & (ratio < 1.25)).all()


def test_moments_by_importance_sampling_are_those_stored():
    """At any scale of the columns, and at another temperature those of the prior alone, as the data then vanish."""
    data, raw = datasets.heart(), datasets.heart(standardise=False)
    truth = logistic_regression(data.features, data.labels).truth
    mean, variance, share = importance_moments(truth.target, *truth.mode_and_hessian)
    spread = np.sqrt(np.diag(truth.covariance))
    assert 0.3 < share <= 1.0
    assert within((mean - truth.mean) / spread, 0.0, 1.2 / np.sqrt(share * 2**16))
    np.testing.assert_allclose(variance, spread**2, rtol=0.05)
    prior, hot = 1.0 / np.sqrt(1e6), 1e6
    truth = logistic_regression(data.features, data.labels, prior=prior).truth
    mean, variance, _ = importance_moments(truth.target, *truth.mode_and_hessian, temperature=hot)
    np.testing.assert_allclose(mean, 0.0, atol=0.05)
    np.testing.assert_allclose(variance, 1.0, rtol=0.05)
    scales = raw.features[:, 1:].std(axis=0)  # the same posterior but for the prior, which is wide in both
    wide = logistic_regression(raw.features, raw.labels, prior=1e3).truth
    narrow = logistic_regression(data.features, data.labels, prior=1e3).truth
    of_raw, of_standardised = (importance_moments(one.target, *one.mode_and_hessian)[1] for one in (wide, narrow))
    np.testing.assert_allclose(of_raw[1:] * scales**2, of_standardised[1:], rtol=0.1)


@pytest.mark.cases(1)
@pytest.mark.slow_cases("australian")
@pytest.mark.parametrize("load", [datasets.australian, datasets.heart], ids=lambda load: load.__name__)
def test_exact_draws_agree_with_the_stored_run(load):
    data = load()
    target = logistic_regression(data.features, data.labels)
    truth, n = target.truth, 8_000 if load is datasets.heart else 2_000
    assert truth.draws_are_exact
    assert truth.accuracy < 0.025
    draws = truth.independent_draws(n, seed=5)
    np.testing.assert_array_equal(draws[:9], truth.independent_draws(n, seed=5)[:9])
    standard = (draws - truth.mean) / np.sqrt(np.diag(truth.covariance))
    assert within(standard.mean(axis=0), 0.0, 1.1 / np.sqrt(n))
    assert not within(standard.mean(axis=0) + 0.2, 0.0, 1.1 / np.sqrt(n))
    assert within((standard**2).mean(axis=0), 1.0, (standard**2).std(axis=0) / np.sqrt(n))
    energies = target.evaluate(draws)[0]
    below = (energies[:, None] <= truth.energy_quantiles(PROBABILITIES)).mean(axis=0)
    error = np.hypot(np.sqrt(PROBABILITIES * (1.0 - PROBABILITIES) / n), truth.reference.energies_error)
    assert within(below, PROBABILITIES, error)
    assert not within((energies[:, None] + 0.5 <= truth.energy_quantiles(PROBABILITIES)).mean(axis=0), below, error)
    edges = [truth.mean[i] + np.sqrt(truth.covariance[i, i]) * np.array([-9.0, -0.5, 0.7, 9.0]) for i in range(2)]
    masses = truth.cell_masses(*edges)
    counts = np.histogram2d(draws[:, 0], draws[:, 1], bins=edges)[0]
    assert masses.sum() == pytest.approx(1.0, abs=1e-6)
    assert stats.chisquare(counts.ravel(), masses.ravel() / masses.sum() * counts.sum()).pvalue > 1e-4
    assert stats.chisquare(counts.ravel(), masses[::-1].ravel() / masses.sum() * counts.sum()).pvalue < 1e-12
    np.testing.assert_array_equal(truth.memberships(draws[:3]), np.ones((3, 1)))


def test_a_proposal_above_the_envelope_is_an_error():
    data = datasets.heart()
    truth = logistic_regression(data.features, data.labels).truth
    truth.__dict__["reference"] = truth.reference._replace(log_bound=truth.reference.log_bound - 3.0)
    with pytest.raises(RuntimeError, match=r"a proposal lies e.* above the envelope"):
        truth.independent_draws(10_000, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("load", [datasets.breast_cancer, datasets.german], ids=lambda load: load.__name__)
def test_draws_that_rejection_would_not_keep_are_the_ends_of_chains(load):
    """It would accept 3 in 10¹⁰ of breast cancer, 8 in 10⁷ of German; the ends of 400 chains have the stored law."""
    data = load()
    truth = logistic_regression(data.features, data.labels).truth
    assert not truth.draws_are_exact
    standard = (truth.independent_draws(400, seed=5) - truth.mean) / np.sqrt(np.diag(truth.covariance))
    assert within(standard.mean(axis=0), 0.0, 1.1 / 20.0)
    assert within((standard**2).mean(axis=0), 1.0, (standard**2).std(axis=0) / 20.0)


def test_bad_questions_to_the_truth_are_refused():
    line = logistic_regression(FEATURES[:, :1], LABELS).truth
    with pytest.raises(ValueError, match="y_edges must be left out in one dimension"):
        line.cell_masses([0.0, 1.0], [0.0, 1.0])
    with pytest.raises(ValueError, match="y_edges must be given in 5 dimensions, got None"):
        FULL.truth.cell_masses([0.0, 1.0])
    with pytest.raises(ValueError, match=r"probabilities must be ≥ 0 and ≤ 1, got 1\.5"):
        FULL.truth.energy_quantiles([0.5, 1.5])


def test_a_posterior_is_known_by_its_data_and_prior():
    name = reference_key(FEATURES, PRIOR)
    assert name == reference_key(FEATURES + 1e-13, PRIOR)
    others = ((FEATURES[::-1], PRIOR), (FEATURES, 2.0), (FEATURES[:, :4], PRIOR))
    assert len({name, *(reference_key(*other) for other in others)}) == 4
    assert stored_reference(FEATURES, PRIOR) is None
    assert STEPS == 8000  # what the stored references were made with


BAD = {
    "features": ({"features": [1.0, 2.0]}, ValueError, r"features must have shape \(data, dim\) .* got \(2,\)"),
    "labels": ({"labels": [1.0]}, ValueError, r"labels must have shape \(data,\) = \(2,\), got \(1,\)"),
    "classes": ({"labels": [1, 2]}, ValueError, r"labels must be 0 and 1, or −1 and 1, got \[1\.0, 2\.0\]"),
    "mixed": ({"labels": [0, -1]}, ValueError, r"labels must be 0 and 1, or −1 and 1, got \[-1\.0, 0\.0\]"),
    "nan": ({"features": [[1.0], [np.nan]]}, ValueError, r"features must be finite, got nan at \[1, 0\]"),
    "prior": ({"prior": 0.0}, ValueError, r"prior must be finite and > 0, got 0.0"),
    "batch": ({"batch_size": 0}, ValueError, "batch_size must be ≥ 1 and < 131072, got 0"),
    "refresh": ({"refresh_every": 2}, ValueError, "refresh_every needs a batch_size"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_regressions_are_refused(name):
    change, kind, message = BAD[name]
    arguments = {"features": [[1.0], [2.0]], "labels": [0, 1], **change}
    with pytest.raises(kind, match=message):
        logistic_regression(**arguments)
