"""Batch means so far: the standard error and ESS of an autoregression, of weights; batches join and forget nothing."""

import numpy as np

from tests.support.accumulator_cases import autoregression, gathered, mean_variance
from toolkit import accumulators


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
