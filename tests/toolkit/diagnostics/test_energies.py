"""Histograms of energies and contour's θ, against the law of the energy."""

import dataclasses

import numpy as np
import pytest
from scipy import stats

from targets import mixtures
from toolkit import Sampler, sample, samplers, tempering
from toolkit import diagnostics as d
from toolkit.tempering.contour_tempering import Partition

SIGMAS = 4.5  # a right law fails with probability 7e-6 per comparison
NORMAL = mixtures.gaussian_mixture([[0.0, 0.0]], 1.0)
LOWEST = float(NORMAL.evaluate(np.zeros((1, 2)))[0][0])  # U − this is exponential, with mean 1
EDGES = LOWEST + np.array([0.2, 0.5, 1.0, 2.0, 4.0])
LAW = np.diff(stats.expon.cdf(EDGES - LOWEST))


def test_energy_probabilities_of_a_gaussian():
    np.testing.assert_allclose(d.energy_probabilities(NORMAL.truth, EDGES), LAW, atol=1e-5)
    everything = d.energy_probabilities(NORMAL.truth, [LOWEST - 5.0, LOWEST + 0.3, LOWEST + 60.0])
    np.testing.assert_allclose(everything, [stats.expon.cdf(0.3), stats.expon.sf(0.3)], atol=1e-5)
    tail = d.energy_probabilities(NORMAL.truth, LOWEST + np.array([15.0, 16.0]))[0]
    assert tail == pytest.approx(np.exp(-15.0) - np.exp(-16.0), rel=0.01)


def test_energy_probabilities_where_modes_have_steps():
    """Five Gaussians of several weights, as 10⁶ exact draws have them; χ²-like, within 1e-3 beside."""
    target = mixtures.five_spots()
    energies = target.evaluate(target.truth.independent_draws(10**6, seed=1))[0]
    edges = np.linspace(energies.min() - 0.1, energies.min() + 6.0, 40)
    found = d.energy_probabilities(target.truth, edges)
    counts = np.histogram(energies, edges)[0] / 1e6
    np.testing.assert_allclose(found, counts, atol=5 * np.sqrt(counts.max() / 1e6) + 3e-4)


def test_histogram_of_independent_draws():
    """Shares have the law's mean over 200 repeats, and the standard errors that are given; shifted edges do not."""
    rng = np.random.default_rng(41)
    found = [d.energy_histogram(LOWEST + rng.exponential(size=(2, 1000)), EDGES) for _ in range(200)]
    shares = np.array([f.shares for f in found])
    errors = np.array([f.standard_errors for f in found])
    law_error = np.sqrt(LAW * (1.0 - LAW) / 2000)
    assert (np.abs(shares.mean(axis=0) - LAW) < SIGMAS * law_error / np.sqrt(200)).all()
    assert (
        np.abs(shares.mean(axis=0) - np.diff(stats.expon.cdf(EDGES - LOWEST - 0.05))) > SIGMAS * law_error / 15
    ).any()
    np.testing.assert_allclose((errors**2).mean(axis=0), law_error**2, rtol=0.1)
    np.testing.assert_allclose([f.below + f.above + f.shares.sum() for f in found], 1.0, rtol=1e-12)
    assert np.mean([f.below for f in found]) == pytest.approx(stats.expon.cdf(0.2), abs=SIGMAS * 0.4 / np.sqrt(4e5))


def test_weighted_histogram_and_that_of_the_truth():
    """Draws at temperature 2 weighted with exp(−U/2) are those at 1."""
    rng = np.random.default_rng(42)
    energies = 2.0 * rng.exponential(size=(4, 50_000))
    found = d.energy_histogram(LOWEST + energies, EDGES, weights=np.exp(-0.5 * energies), truth=NORMAL.truth)
    assert (np.abs(found.shares - found.expected) < SIGMAS * found.standard_errors + 1e-5).all()
    plain = d.energy_histogram(LOWEST + energies, EDGES, truth=NORMAL.truth)
    assert (np.abs(plain.shares - plain.expected) > SIGMAS * plain.standard_errors).any()
    np.testing.assert_array_equal(found.expected, d.energy_probabilities(NORMAL.truth, EDGES))


@pytest.fixture(scope="module")
def runs():
    partition = Partition(LOWEST, 0.5, 8)
    return {
        field: sample(
            NORMAL, Sampler(step_sizes=(0.01,), tempering=tempering.contour(partition=partition, field=field)),
            n_steps=40_000, burn_in=1000, thin=1000, n_chains=32, seed=3,
        )
        for field in ("theta_zeta", "theta")
    }  # fmt: skip


@pytest.mark.parametrize("field", ["theta_zeta", "theta"])
def test_theta_against_the_truth(runs, field):
    """θ, or θ^0.75, of 32 chains together within 0.03 of the bins' probabilities; as the other field, it is not."""
    found = d.theta_error(runs[field])
    inside = np.diff(stats.expon.cdf(0.5 * np.arange(9.0)))
    np.testing.assert_allclose(found.true, inside / inside.sum(), atol=2e-5)
    np.testing.assert_allclose(found.estimated.sum(axis=1), 1.0, rtol=1e-12)
    assert found.pooled < 0.03
    assert found.pooled < found.l1.mean() < 0.3
    np.testing.assert_allclose(found.l1, np.abs(found.estimated - found.true).sum(axis=1))
    run = runs[field]
    other = dataclasses.replace(run.sampler.tempering, field="theta" if field == "theta_zeta" else "theta_zeta")
    wrong = dataclasses.replace(run, sampler=dataclasses.replace(run.sampler, tempering=other))
    assert d.theta_error(wrong).pooled > 0.06


def test_theta_against_a_truth_that_is_given(runs):
    """That of another target, whose energies lie higher, by its own probabilities of the bins."""
    other = mixtures.gaussian_mixture([[0.0, 0.0]], 1.5)
    found = d.theta_error(runs["theta"], truth=other.truth)
    lowest = float(other.evaluate(np.zeros((1, 2)))[0][0]) - LOWEST
    inside = np.diff(stats.expon.cdf(0.5 * np.arange(9.0) - lowest))
    np.testing.assert_allclose(found.true, inside / inside.sum(), atol=1e-4)
    assert d.theta_error(runs["theta"], truth=NORMAL.truth).pooled == d.theta_error(runs["theta"]).pooled
    assert found.pooled > 0.1


def test_theta_needs_contour_at_temperature_1_with_exact_energies(runs):
    run = runs["theta"]

    def changed(**changes):
        return dataclasses.replace(run, sampler=dataclasses.replace(run.sampler, **changes))

    with pytest.raises(ValueError, match="run must have contour tempering"):
        d.theta_error(sample(NORMAL, samplers.sgld(0.1), n_steps=2, seed=1))
    with pytest.raises(ValueError, match="run must be at temperature 1"):
        d.theta_error(changed(temperatures=(2.0,)))
    with pytest.raises(ValueError, match="run must have exact energies"):
        d.theta_error(changed(energy_noise=0.1))
    with pytest.raises(ValueError, match="run must have ζ > 0"):
        d.theta_error(changed(tempering=dataclasses.replace(run.sampler.tempering, zeta=0.0)))
    high = dataclasses.replace(run.sampler.tempering, partition=Partition(1e3, 0.5, 8))
    with pytest.raises(ValueError, match="run must have a partition where the truth has energies"):
        d.theta_error(changed(tempering=high))


def test_probabilities_of_one_energy_alone():
    class Flat:
        energy_quantiles = staticmethod(np.zeros_like)

    assert d.energy_probabilities(Flat, [-2.0, -1.0, 1.0, 2.0]).tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: d.energy_histogram(np.zeros(5), [0, 1]), r"energies must have shape \(chain, draw\), got \(5,\)"),
        (lambda: d.energy_histogram(np.zeros((1, 5)), [1, 0]), "edges must be at least 2 numbers that increase"),
        (lambda: d.energy_histogram(np.zeros((1, 5)), [0, 1], weights=np.ones((1, 4))), "weights must have the chains"),
        (lambda: d.energy_probabilities(None, [0, 1]), "truth must have energy_quantiles"),
        (lambda: d.theta_error(None), "run must be a Run, got None"),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()
