"""Effective numbers of weighted draws, and resampling: counts, means, seeds, errors."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from targets import mixtures
from toolkit import sample, samplers
from toolkit.weighting import resample, weighted_ess

RNG = np.random.default_rng(7)
WEIGHTS = RNG.gamma(0.5, size=(3, 400))
DRAWS = RNG.standard_normal((3, 400, 2))
SIGMAS = 4.5  # a right law fails with probability 7e-6 per comparison


def test_the_ends_of_the_effective_number():
    assert_allclose(weighted_ess(np.full((2, 50), 3.0)), 50.0, rtol=1e-14)
    assert_allclose(weighted_ess(np.eye(5)[1:3]), 1.0, rtol=1e-14)
    assert_allclose(weighted_ess([[1.0, 1.0, 0.0, 0.0], [1.0, 2.0, 0.0, 1.0]]), [2.0, 16.0 / 6.0], rtol=1e-14)
    assert weighted_ess(WEIGHTS).shape == (3,)


@pytest.mark.parametrize("factor", [1e-300, 1e-3, 1e300])
def test_a_factor_of_the_weights_changes_nothing(factor):
    assert_allclose(weighted_ess(factor * WEIGHTS), weighted_ess(WEIGHTS), rtol=1e-12)
    assert_array_equal(resample(DRAWS, 2.0**60 * WEIGHTS, seed=1), resample(DRAWS, WEIGHTS, seed=1))


def test_the_effective_number_is_that_of_the_variance():
    """A weighted mean of independent draws has the variance of that many equal ones; not of all draws."""
    weights = np.broadcast_to(WEIGHTS[0], (20_000, 400))
    means = (weights * RNG.standard_normal((20_000, 400))).sum(axis=1) / weights.sum(axis=1)
    ratio = means.var() * weighted_ess(WEIGHTS[:1])[0]
    assert abs(ratio - 1.0) < SIGMAS * np.sqrt(2.0 / 20_000)
    assert abs(means.var() * 400 - 1.0) > SIGMAS * np.sqrt(2.0 / 20_000)


def counts_of(picked, n_draws):
    """How often each of the draws 0, 1, … was picked, (chain, draw)."""
    return np.stack([np.bincount(chain[:, 0].astype(int), minlength=n_draws) for chain in picked])


NUMBERED = np.broadcast_to(np.arange(400.0)[None, :, None], (3, 400, 1))


@pytest.mark.parametrize("n", [None, 1, 37, 5000])
def test_each_draw_comes_as_often_as_its_weight_says(n):
    """To less than 1 either way, in the chain's order; where draws were picked at random it would not be so."""
    size = 400 if n is None else n
    expected = size * WEIGHTS / WEIGHTS.sum(axis=1, keepdims=True)
    for seed in range(20):
        picked = resample(NUMBERED, WEIGHTS, n=n, seed=seed)
        assert picked.shape == (3, size, 1)
        assert (np.diff(picked[:, :, 0]) >= 0.0).all()
        assert np.abs(counts_of(picked, 400) - expected).max() < 1.0 + 1e-9
    at_random = RNG.choice(400, size=5000, p=WEIGHTS[0] / WEIGHTS[0].sum())
    off = np.bincount(at_random, minlength=400) - 5000 * WEIGHTS[0] / WEIGHTS[0].sum()
    assert np.abs(off).max() > 2.0


def test_expected_counts_are_exact():
    """Over many seeds the mean count is n w / Σw; rounding to the nearest would miss it."""
    weights = np.array([[0.3, 0.3, 0.4, 2.7, 0.0, 1.3]])
    expected = 7 * weights[0] / weights.sum()
    counts = np.stack([counts_of(resample(NUMBERED[:1, :6], weights, n=7, seed=seed), 6)[0] for seed in range(4000)])
    spread = np.maximum(counts.std(axis=0), 1e-9) / np.sqrt(4000)
    assert (np.abs(counts.mean(axis=0) - expected) <= SIGMAS * spread + 1e-9).all()
    assert (np.abs(counts.mean(axis=0) - np.rint(expected)) > SIGMAS * spread).sum() >= 4
    assert counts[:, 4].max() == 0


def test_the_weighted_mean_is_kept():
    """To a spread of about 1 / n, far below that of picking at random; the unweighted mean is another."""
    weights = np.exp(DRAWS[:, :, 0])
    shares = weights / weights.sum(axis=1, keepdims=True)
    expected = (shares[:, :, None] * DRAWS).sum(axis=1)
    picked = resample(DRAWS, weights, n=20_000, seed=3)
    assert_allclose(picked.mean(axis=1), expected, atol=5e-3)
    assert np.abs(DRAWS.mean(axis=1) - expected)[:, 0].min() > 0.5


def test_without_duplicates():
    shares = WEIGHTS / WEIGHTS.max(axis=1, keepdims=True)
    counts = np.zeros((3, 400))
    for seed in range(2000):
        kept = resample(NUMBERED, WEIGHTS, seed=seed, without_duplicates=True)
        assert all((np.diff(chain[:, 0]) > 0.0).all() for chain in kept)
        counts += counts_of(kept, 400)
    spread = np.sqrt(shares * (1.0 - shares) / 2000) + 1e-9
    assert (np.abs(counts / 2000 - shares) < 5.0 * spread + 1e-3).all()  # 1,200 comparisons
    assert (np.abs(counts / 2000 - WEIGHTS / WEIGHTS.sum(axis=1, keepdims=True)) > 5.0 * spread + 1e-3).any()
    equal = resample(DRAWS, np.ones((3, 400)), seed=1, without_duplicates=True)
    assert_array_equal(np.stack(equal), DRAWS)


@pytest.mark.parametrize("without_duplicates", [False, True])
def test_seeds_reproduce(without_duplicates):
    first, again, other = (
        resample(DRAWS, WEIGHTS, seed=seed, without_duplicates=without_duplicates) for seed in (5, 5, 6)
    )
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))


def test_weights_that_are_equal_change_no_draw():
    run = sample(mixtures.cosine25(), samplers.sgld(1e-3), n_steps=60, n_chains=4, seed=1)
    assert_array_equal(resample(run.draws, run.weights, seed=2), run.draws)


def test_all_weight_on_one_draw():
    weights = np.zeros((1, 400))
    weights[0, 399] = 1e-320
    assert (resample(NUMBERED[:1], weights, n=9, seed=1) == 399.0).all()
    weights[0, [0, 399]] = 0.0
    weights[0, 3] = 2.0
    assert (resample(NUMBERED[:1], weights, n=9, seed=1) == 3.0).all()


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(4), r"weights must have shape \(chain, draw\), got \(4,\)"),
        (np.ones((0, 4)), r"weights must have shape \(chain, draw\), got \(0, 4\)"),
        ([[1.0, -0.5]], r"weights must be ≥ 0, got -0.5"),
        ([[1.0, 2.0], [0.0, 0.0]], r"weights must not all be 0, got that for chain 1"),
        ([[1.0, np.nan]], r"weights must be finite, got nan at \[0, 1\]"),
    ],
)
def test_weights_that_are_none(weights, message):
    with pytest.raises(ValueError, match=message):
        weighted_ess(weights)
    with pytest.raises(ValueError, match=message):
        resample(np.zeros((2, 2, 1)), weights, seed=1)


@pytest.mark.parametrize(
    ("draws", "options", "error", "message"),
    [
        (DRAWS[:, :, 0], {}, ValueError, r"draws must have shape \(chain, draw, dim\) .* \(3, 400\), got \(3, 400\)"),
        (DRAWS[:, :50], {}, ValueError, r"got \(3, 50, 2\)"),
        (DRAWS, {"n": 0}, ValueError, "n must be ≥ 1, got 0"),
        (DRAWS, {"n": 2.5}, TypeError, "n must be an integer, got 2.5"),
        (DRAWS, {"seed": -1}, ValueError, "seed must be ≥ 0"),
        (DRAWS, {"without_duplicates": 1}, TypeError, "without_duplicates must be True or False, got 1"),
        (DRAWS, {"without_duplicates": True, "n": 5}, ValueError, "n must be None with without_duplicates=True"),
    ],
)
def test_what_cannot_be_resampled(draws, options, error, message):
    with pytest.raises(error, match=message):
        resample(draws, WEIGHTS, **{"seed": 1, **options})
