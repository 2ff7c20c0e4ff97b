"""Modes: counts in balls against the binomial law, weights with their errors, on independent and sticky draws."""

import numpy as np
import pytest
from scipy import stats

from targets import mixtures
from toolkit import diagnostics as d

SIGMAS = 4.5  # a right law fails with probability 7e-6 per comparison
PAIR = mixtures.gaussian_mixture([[-3.0], [3.0]], 1.0, weights=[0.3, 0.7])


def test_coverage_in_numbers():
    draws = np.array(
        [[[0.0, 0.0], [0.2, 0.0], [1.0, 1.0], [1.0, 1.24]], [[0.0, 0.3], [0.0, 0.1], [9.0, 9.0], [9.0, 9.0]]]
    )
    centres = [[0.0, 0.0], [1.0, 1.0], [5.0, 5.0]]
    found = d.mode_coverage(draws, centres, threshold=1)
    assert found.counts.tolist() == [[2, 2, 0], [1, 0, 0]]
    assert found.covered.tolist() == [[True, True, False], [False, False, False]]  # more than 1, and not 1
    assert found.number.tolist() == [2, 0]
    weights = [[3.0, 3.0, 1.0, 1.0], [0.0, 1.0, 0.0, 0.0]]
    np.testing.assert_allclose(d.mode_coverage(draws, centres, weights=weights).counts, [[3, 1, 0], [4, 0, 0]])


def test_counts_of_independent_draws_are_binomial():
    """gaussian_grid25, 4,000 draws: each ball has 1 − exp(−r² / 2σ²) of a mode's 1/25; mean and spread."""
    problem = mixtures.gaussian_grid25()
    centres, n = problem.truth.modes.centres, 4000
    draws = problem.truth.independent_draws(300 * n, seed=2).reshape(300, n, 2)
    counts = d.mode_coverage(draws, centres).counts
    inside = (1.0 - np.exp(-0.5 * 0.25**2 / 0.03)) / 25.0
    law = stats.binom(n, inside)
    assert abs(counts.mean() - law.mean()) < SIGMAS * law.std() / np.sqrt(counts.size)
    assert abs(counts.mean() - law.mean() * (0.26 / 0.25) ** 2) > SIGMAS * law.std() / np.sqrt(counts.size)
    assert counts.var() == pytest.approx(law.var(), rel=SIGMAS * np.sqrt(2.0 / counts.size))
    covered = d.mode_coverage(draws, centres, threshold=law.median()).covered
    assert abs(covered.mean() - law.sf(law.median())) < SIGMAS * 0.5 / np.sqrt(covered.size)
    assert abs(covered.mean() - law.sf(law.median() - 1)) > SIGMAS * 0.5 / np.sqrt(covered.size)


@pytest.mark.parametrize("assign", ["memberships", "nearest"])
def test_weights_of_independent_draws(assign):
    """Estimates have the law's mean; errors are √(w (1 − w) / n); l1 has the mean that is given with it."""
    n, repeats = 2000, 300
    draws = PAIR.truth.independent_draws(repeats * n, seed=3).reshape(repeats, 1, n, 1)
    found = [d.mode_weights_error(x, PAIR.truth, assign=assign) for x in draws]
    estimated = np.array([f.estimated[0] for f in found])
    law = 0.3 if assign == "memberships" else 0.3 * stats.norm.cdf(3.0) + 0.7 * stats.norm.sf(3.0)
    error = np.sqrt(0.3 * 0.7 / n)
    assert abs(estimated.mean() - law) < SIGMAS * error / np.sqrt(repeats)
    assert abs(estimated.mean() - 0.31) > SIGMAS * error / np.sqrt(repeats)
    assert np.mean([f.standard_errors[0] ** 2 for f in found]) == pytest.approx(error**2, rel=0.08)
    l1, expected = np.array([(f.l1, f.expected_l1) for f in found]).T
    assert l1.mean() == pytest.approx(expected.mean(), rel=SIGMAS * 0.75 / np.sqrt(repeats) + 0.03)
    assert estimated.std() == pytest.approx(error, rel=SIGMAS / np.sqrt(2 * repeats))


def test_errors_of_weighted_and_sticky_draws():
    """Drawn from modes of equal weights, 25 in a row from the same, and weighted back to 0.3 and 0.7."""
    rng, repeats = np.random.default_rng(4), 200
    estimated, errors = [], []
    for _ in range(repeats):
        mode = np.repeat(rng.integers(0, 2, (4, 80)), 25, axis=1)
        draws = (6.0 * mode - 3.0 + rng.standard_normal(mode.shape))[..., None]
        found = d.mode_weights_error(draws, PAIR.truth, weights=np.where(mode, 0.7, 0.3))
        estimated.append(found.estimated[0])
        errors.append(found.standard_errors[0])
    assert np.mean(estimated) == pytest.approx(0.3, abs=SIGMAS * np.std(estimated) / np.sqrt(repeats) + 2e-3)
    spread = np.sqrt(np.mean(np.square(errors)))
    assert spread == pytest.approx(np.std(estimated), rel=SIGMAS / np.sqrt(2 * repeats) + 0.05)
    assert np.sqrt(0.21 / 8000) < 0.4 * spread  # as if draws were independent


def test_a_missing_mode_costs_twice_its_weight():
    draws = 3.0 + np.random.default_rng(5).standard_normal((2, 500, 1))
    found = d.mode_weights_error(draws, PAIR.truth, assign="nearest")
    assert found.l1 == pytest.approx(0.6, abs=0.01)
    assert found.l1 > 20 * found.expected_l1


def test_draws_that_have_diverged_are_near_nothing():
    assert d.mode_coverage(np.full((1, 5, 1), 1e200), [[0.0]], threshold=0).number.tolist() == [0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: d.mode_coverage(np.zeros((1, 5, 2)), [[0.0]]), r"centres must have shape \(mode, 2\), got \(1, 1\)"),
        (lambda: d.mode_coverage(np.zeros((5, 2)), [[0.0, 0.0]]), r"draws must have shape \(chain, draw, dim\)"),
        (lambda: d.mode_coverage(np.zeros((1, 5, 1)), [[0.0]], radius=0), "radius must be finite and > 0"),
        (lambda: d.mode_coverage(np.zeros((1, 5, 1)), [[0.0]], radius=1e200), "radius must be finite and > 1e-100"),
        (lambda: d.mode_coverage(np.zeros((1, 5, 1)), [[0.0]], threshold=-1), "threshold must be finite and ≥ 0"),
        (lambda: d.mode_weights_error(np.zeros((1, 5, 1)), None), "truth must have modes and memberships"),
        (lambda: d.mode_weights_error(np.zeros((1, 5, 2)), PAIR.truth), "centres must have shape"),
        (lambda: d.mode_weights_error(np.zeros((1, 5, 1)), PAIR.truth, assign="best"), "assign must be one of"),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()
