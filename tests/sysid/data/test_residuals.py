"""Residuals that are not independent, or too large, are told; independent ones of any size and law are not."""

import numpy as np
import pytest
from scipy.special import ndtri

from sysid.data.residuals import FALSE_ALARMS, ResidualPart, extreme_deviates, memory_test, residual_check

N_DRAWS = 4000


def part(scores, shared=None):
    scores = np.asarray(scores, float)
    n, dim = scores.shape
    shared = np.zeros((n, dim, 0)) if shared is None else shared
    return ResidualPart("data", np.arange(float(n)), scores.copy(), scores, shared, np.zeros((n, dim, 0)))


def probabilities(scores, shared=None):
    """Of memory (draws,), of scores (draws, n) of one state."""
    one = part(scores[0][:, None], shared)
    return memory_test([one], 0).of([scores])[1]


def ar1(rng, shape, phi):
    errors = rng.standard_normal(shape)
    for k in range(1, shape[-1]):
        errors[..., k] = phi * errors[..., k - 1] + np.sqrt(1.0 - phi**2) * errors[..., k]
    return errors


@pytest.mark.parametrize("n", [25, 60, 400])
@pytest.mark.parametrize("law", ["normal", "cauchy", "sizes that change"])
def test_independent_errors_are_told_as_often_as_is_said(n, law):
    """At 1 in 100, where 4,000 draws can count; heavy tails and unequal sizes do not matter."""
    rng = np.random.default_rng(n)
    errors = rng.standard_cauchy((N_DRAWS, n)) if law == "cauchy" else rng.standard_normal((N_DRAWS, n))
    if law == "sizes that change":
        errors *= np.exp(1.5 * np.sin(np.linspace(0.0, 12.0, n)))
    found = probabilities(errors)
    for level in (0.1, 0.01):
        most = 1.8 if law == "sizes that change" else 1.3
        assert (found < level).mean() < most * level + 4.5 * np.sqrt(level / N_DRAWS)
    assert (found < 0.1).mean() > 0.03


def test_what_a_fit_takes_from_the_errors_is_not_taken_for_memory():
    """Of 60 values and 15 coefficients, residuals are negatively correlated; without the directions that is told."""
    rng, n, q = np.random.default_rng(1), 60, 15
    basis = np.linalg.qr(np.cos(np.pi * np.outer(np.arange(n) + 0.5, np.arange(q)) / n))[0]
    errors = rng.standard_normal((N_DRAWS, n))
    errors -= errors @ basis @ basis.T
    known = probabilities(errors, basis[:, None])
    unknown = probabilities(errors)
    assert (known < 0.05).mean() < 0.07
    assert (unknown < 0.05).mean() > 0.15


@pytest.mark.parametrize(("phi", "n", "power"), [(0.3, 400, 0.9), (0.5, 100, 0.85), (0.8, 50, 0.9), (0.95, 100, 0.99)])
def test_correlated_errors_are_told(phi, n, power):
    rng = np.random.default_rng(2)
    assert (probabilities(ar1(rng, (400, n), phi)) < FALSE_ALARMS).mean() > power


def test_slow_departures_and_hum_are_told():
    """Below a fifth of the noise in variance, where neighbours are hardly correlated; a hum of four values, also."""
    rng, n = np.random.default_rng(3), 800
    noise, at = rng.standard_normal((200, n)), np.arange(n)
    assert (probabilities(noise + 0.4 * np.sin(at / 60.0)) < FALSE_ALARMS).mean() > 0.9
    assert (probabilities(noise + 0.6 * np.sin(0.5 * np.pi * at)) < FALSE_ALARMS).mean() > 0.9


def test_pieces_and_missing_values_count():
    rng = np.random.default_rng(4)
    errors = ar1(rng, (1, 300), 0.7)[0][:, None]
    whole = residual_check(("x",), [part(errors)])
    cut = residual_check(("x",), [part(errors[:100]), part(errors[100:])])
    assert whole.has_memory[0]
    assert cut.has_memory[0]
    assert abs(whole.correlation[0] - cut.correlation[0]) < 0.02
    every_other = errors.copy()
    every_other[::2] = np.nan
    check = residual_check(("x",), [part(every_other)])
    assert abs(check.correlation[0]) < 1e-12  # no two neighbours are there
    few = residual_check(("x",), [part(errors[:19])])
    assert np.isnan(few.correlation[0])
    assert few.doubts() == []


def test_doubts_name_the_state_and_what_to_do():
    rng = np.random.default_rng(5)
    scores = np.stack([ar1(rng, (400,), 0.8), rng.standard_normal(400)], axis=1)
    scores[7, 1], scores[40, 1] = 30.0, -12.0
    memory, outliers = residual_check(("x", "y"), [part(scores)]).doubts()
    assert "contradict independent errors: x (correlation of neighbours 0.8" in memory
    assert "y (" not in memory
    assert "30 of 'y' at 7 in 'data' (+" in outliers
    assert "-12 of 'y' at 40 in 'data' (-1" in outliers
    assert "errors='student'" in outliers


def test_outliers_that_hide_each_other_are_found():
    """Twenty of 400, each thirty times as large: the standard deviation of all is seven times too large."""
    rng = np.random.default_rng(6)
    values = rng.standard_normal(400)
    places = rng.choice(400, 20, replace=False)
    values[places] += 30.0
    found, mean, sd = extreme_deviates(values, 1e-3)
    assert set(found) == set(places)
    assert abs(mean) < 0.2
    assert abs(sd - 1.0) < 0.15


def test_a_misfit_that_lasts_has_no_outliers():
    """A bump of ten values, twelve standard deviations high, is a course; a value of that size elsewhere is not."""
    rng = np.random.default_rng(8)
    scores = rng.standard_normal((300, 1))
    scores[:, 0] += 12.0 * np.exp(-0.5 * ((np.arange(300.0) - 100.0) / 4.0) ** 2)
    check = residual_check(("x",), [part(scores)])
    assert check.outliers == ()
    assert check.has_memory[0]
    scores[200] += 12.0
    assert [one.time for one in residual_check(("x",), [part(scores)]).outliers] == [200.0]


@pytest.mark.parametrize("n", [20, 100, 1000])
def test_normal_values_have_outliers_as_often_as_is_said(n):
    """At 1 in 20; and the largest of n normal values is beyond its own law as often."""
    rng = np.random.default_rng(7)
    found = [extreme_deviates(values, 0.05)[0].size > 0 for values in rng.standard_normal((400, n))]
    assert 0.005 < np.mean(found) < 0.05 + 4.5 * np.sqrt(0.05 / 400)
    quiet = rng.standard_normal(n)
    quiet[0] = -2.5 * ndtri(0.5e-3 / n)
    assert 0 in extreme_deviates(quiet, 1e-3)[0]
