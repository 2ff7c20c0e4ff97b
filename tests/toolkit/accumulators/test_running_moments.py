"""Moments and batch means so far: accurate for hard data, weighted, with standard errors that know autocorrelation."""

from fractions import Fraction

import numpy as np
import pytest

from tests.support.accumulator_cases import autoregression, gathered, mean_variance
from toolkit import accumulators, diagnostics


def exact_moments(draws, weights):
    """Mean and covariance of (draw, dim) in rational numbers."""
    rows = [[Fraction(x) for x in row] for row in draws.tolist()]
    shares = [Fraction(w) for w in weights.tolist()]
    total, dim = sum(shares), draws.shape[1]
    mean = [sum(w * row[i] for w, row in zip(shares, rows, strict=True)) / total for i in range(dim)]
    covariance = [
        [
            float(sum(w * (r[i] - mean[i]) * (r[j] - mean[j]) for w, r in zip(shares, rows, strict=True)) / total)
            for j in range(dim)
        ]
        for i in range(dim)
    ]
    return np.array([float(m) for m in mean]), np.array(covariance)


@pytest.mark.cases(2)
@pytest.mark.parametrize("dim", [1, 2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_moments_of_hard_data(dim, weighted):
    """Mean 10⁸, standard deviation 10⁻³, beside the sums in rational numbers; one-pass sums have no digit right."""
    rng = np.random.default_rng(dim)
    draws = 1e8 + 1e-3 * rng.standard_normal((2, 2_000, dim)) @ np.linspace(0.5, 1.5, dim * dim).reshape(dim, dim)
    weights = np.exp(5.0 * rng.standard_normal((2, 2_000))) if weighted else None
    result = gathered(accumulators.moments(), draws, weights)
    for chain in range(2):
        mean, covariance = exact_moments(draws[chain], np.ones(2_000) if weights is None else weights[chain])
        np.testing.assert_allclose(result.mean[chain], mean, rtol=3e-16)
        np.testing.assert_allclose(result.covariance[chain], covariance, rtol=1e-11)
        one_pass = np.average(draws[chain] ** 2, axis=0, weights=None if weights is None else weights[chain])
        wrong = one_pass - result.mean[chain] ** 2
        assert not np.allclose(wrong, np.diag(covariance), rtol=0.5)
    away = draws - 1e8
    plain = gathered(accumulators.moments(), away, weights)
    for chain in range(2):
        w = None if weights is None else weights[chain]
        np.testing.assert_allclose(
            plain.covariance[chain], np.cov(away[chain].T, ddof=0, aweights=w).reshape(dim, dim), rtol=1e-11
        )


def test_the_plane_has_the_bits_of_any_dimension():
    rng = np.random.default_rng(4)
    draws, weights = rng.standard_normal((3, 500, 3)) + 7.0, rng.random((3, 500))
    draws[0, 5, 1], draws[2, 9, 0], weights[1, 3] = np.nan, np.inf, 0.0
    draws[..., 2] = np.where(np.isfinite(draws[..., :2]).all(axis=2), draws[..., 2], np.nan)
    three, two = (gathered(accumulators.moments(), d, weights) for d in (draws, draws[..., :2]))
    one = gathered(accumulators.moments(), draws[1:2, :, :1], weights[1:2])
    np.testing.assert_array_equal(two.mean, three.mean[:, :2])
    np.testing.assert_array_equal(two.covariance, three.covariance[:, :2, :2])
    np.testing.assert_array_equal(one.covariance, three.covariance[1:2, :1, :1])
    np.testing.assert_array_equal(two.draws, [499, 500, 499])
    np.testing.assert_array_equal(two.weighted_ess, three.weighted_ess)
    np.testing.assert_allclose(two.weighted_ess[1:2], diagnostics.weighted_ess(weights[1:2]))


def test_chains_count_alike_in_what_is_pooled():
    """Weights are known up to a factor of each chain, so a factor changes nothing."""
    rng = np.random.default_rng(5)
    draws, weights = rng.standard_normal((3, 200, 2)) + np.arange(3)[:, None, None], rng.random((3, 200))
    a, b = (gathered(accumulators.moments(), draws, weights * f) for f in (1.0, np.array([[1.0], [64.0], [0.25]])))
    np.testing.assert_array_equal(a.pooled_mean, b.pooled_mean)
    np.testing.assert_array_equal(a.pooled_covariance, b.pooled_covariance)
    shares = (weights / weights.sum(axis=1, keepdims=True)).ravel()
    together = draws.reshape(-1, 2)
    np.testing.assert_allclose(a.pooled_mean, np.average(together, axis=0, weights=shares), rtol=1e-13)
    np.testing.assert_allclose(a.pooled_covariance, np.cov(together.T, ddof=0, aweights=shares), rtol=1e-12)
    np.testing.assert_allclose(a.standard_error, a.mean.std(axis=0, ddof=1) / np.sqrt(3.0))
    weights[1] = 0.0
    without = gathered(accumulators.moments(), draws, weights)
    assert np.isnan(without.mean[1]).all()
    np.testing.assert_allclose(without.pooled_mean, a.mean[[0, 2]].mean(axis=0))
    assert np.isnan(gathered(accumulators.moments(), draws[:1]).standard_error).all()


def test_the_standard_error_knows_autocorrelation():
    """400 chains of an AR(1): the squared error has its law to 4.5 of its own errors; that without φ is far off."""
    phi, n, chains = 0.9, 400, 400
    draws = autoregression(phi, n, chains, seed=6)
    error = gathered(accumulators.moments(), draws).standard_error[0]
    law = mean_variance(phi, n) / chains
    assert abs(error**2 / law - 1.0) < 4.5 * np.sqrt(2.0 / (chains - 1))
    assert abs(1.0 / (n * chains) / law - 1.0) > 4.5 * np.sqrt(2.0 / (chains - 1))


def test_batch_means_of_an_autoregression():
    """E of the squared error is (variance of a batch's mean − that of the whole) / (B − 1), exactly; to 4.5 errors."""
    phi, n, chains = 0.8, 12_800, 300
    result = gathered(accumulators.batch_means(50), 1e6 + 3.0 * autoregression(phi, n, chains, seed=11))
    batches, length = int(result.n_batches[0]), int(result.batch_length[0])
    assert (batches, length) == (100, 128)
    squares = result.standard_error[:, 0] ** 2
    law = 9.0 * (mean_variance(phi, length) - mean_variance(phi, n)) / (batches - 1)
    assert abs(squares.mean() / law - 1.0) < 4.5 * np.sqrt(2.0 / (batches - 1) / chains)
    assert abs(9.0 / n / law - 1.0) > 0.5  # as if the draws were independent
    worth = n * (1.0 - phi) / (1.0 + phi)
    assert abs(np.median(result.ess) / worth - 1.0) < 0.1
    np.testing.assert_allclose(result.variance[:, 0], 9.0, rtol=0.2)


def test_batch_means_hold_the_loss_by_weights():
    """Independent draws x with weights exp(s x): by the delta method, E w² (x − μ)² / (E w)² n, known for a normal."""
    s, n, chains = 0.5, 6_400, 400
    draws = np.random.default_rng(12).standard_normal((chains, n, 1))
    result = gathered(accumulators.batch_means(), draws, np.exp(s * draws[..., 0]))
    law = np.exp(s * s) * (1.0 + s * s) / n
    assert abs((result.standard_error[:, 0] ** 2).mean() / law - 1.0) < 0.06
    assert abs(1.0 / n / law - 1.0) > 0.3
    np.testing.assert_allclose(result.mean.mean(), s, atol=4.5 * np.sqrt(law / chains))


def test_batches_join_and_forget_nothing():
    rng = np.random.default_rng(13)
    draws, weights = rng.standard_normal((2, 77, 3)), rng.random((2, 77))
    result = gathered(accumulators.batch_means(4), draws, weights)
    assert (result.batch_length[0], result.n_batches[0]) == (16, 4)
    whole = gathered(accumulators.moments(), draws, weights)
    np.testing.assert_array_equal(result.mean, whole.mean)
    for chain in range(2):
        away = weights[chain, :, None] * (draws[chain] - whole.mean[chain])
        sums = np.add.reduceat(away, np.arange(0, 77, 16))
        error = np.sqrt((sums**2).sum(axis=0) * 5 / 4) / weights[chain].sum()
        np.testing.assert_allclose(result.standard_error[chain], error, rtol=1e-12)
    assert np.isnan(gathered(accumulators.batch_means(100), draws).ess).all()
