"""``check_step_size`` finds the bias that theory knows, and none where a Metropolis test takes it away."""

import numpy as np
import pytest

from targets import constrained, datasets, domains, mixtures, posteriors
from tests.support.laws import SIGMAS, gaussian
from toolkit import boundaries, check_step_size, sample, samplers
from toolkit.maths.seeds import STEP_SIZE, derived_seed

NORMAL = gaussian(1.0)
PARTICLES, PLACES = samplers.svgd(n_replicas=2), [[[0.0], [1.0]]] * 64


def run_of(sampler, **options):
    return sample(NORMAL, sampler, **{"n_steps": 3_000, "n_chains": 64, "seed": 3} | options)


def test_the_bias_of_sgld_is_that_of_its_law():
    """Variance 1 / (1 − h/2) at h, so sds √(4/3) and √(8/7), and twice their difference by extrapolation."""
    report = check_step_size(run_of(samplers.sgld(0.5)))
    sds, errors = report.sds[:, 0], report.sd_errors[:, 0]
    for sd, error, variance in zip(sds, errors, (4.0 / 3.0, 8.0 / 7.0), strict=True):
        assert abs(sd - np.sqrt(variance)) < SIGMAS * error
        assert abs(sd - np.sqrt(variance + 0.1)) > SIGMAS * error
    expected = 2.0 * (np.sqrt(4.0 / 3.0) - np.sqrt(8.0 / 7.0))
    assert abs(report.sd_bias[0] - expected) < SIGMAS * report.sd_bias_errors[0]
    assert np.abs(report.means).max() < SIGMAS * report.mean_errors.max()
    assert report.is_biased
    assert report.verdict.startswith("BIASED by the step size in 1 of 1 coordinates: most surely the sd of x[0]")
    assert "too large" in report.verdict
    assert str(report).splitlines()[-1] == report.verdict
    second = check_step_size(run_of(samplers.sgld(0.5)), order=2)
    np.testing.assert_allclose(second.sd_bias, report.sd_bias * (4.0 / 3.0) / 2.0, rtol=1e-12)


def test_a_metropolis_test_leaves_none_and_a_short_run_says_so():
    report = check_step_size(run_of(samplers.mala(0.5)))
    assert not report.is_biased
    assert report.is_settled
    assert report.verdict.startswith("No bias of the step size stands out; one of more than 0.0")
    short = check_step_size(run_of(samplers.sgld(0.02)), n_steps=200, n_chains=16)
    assert not short.is_settled
    assert short.verdict.startswith("NOT SETTLED")


def test_it_runs_as_the_run_did():
    """Steps of its own number, the domain kept, the draws of a seed; another seed, others."""
    box = constrained(mixtures.gaussian_mixture([[0.0]], 1.0), domains.box([-1.0], [1.5]))
    run = sample(
        box, samplers.sgld(0.2, boundary=boundaries.reject()), n_steps=800, burn_in=200, n_chains=70, init=[1.0], seed=5
    )
    one, again, other = (check_step_size(run, seed=seed) for seed in (None, derived_seed(5, STEP_SIZE), 7))
    assert (one.n_chains, one.n_steps) == (70, 800)
    np.testing.assert_array_equal(one.sds, again.sds)
    assert (one.sds != other.sds).all()
    assert one.sds.max() < 0.8  # of 1 without the walls


@pytest.mark.slow
def test_the_bias_of_sgnht_with_minibatches_is_found():
    """Its sds at h = 1e-3 are 12 to 23 % too small beside those of HMC."""
    data = datasets.breast_cancer()
    problem = posteriors.logistic_regression(data.features, data.labels, batch_size=64)
    run = sample(problem, samplers.sgnht(1e-3), n_steps=20_000, burn_in=5_000, n_chains=64, seed=1)
    report = check_step_size(run)
    assert report.is_biased
    assert report.sd_bias[np.argmax(np.abs(report.sd_bias) / report.sd_bias_errors)] < 0.0


BAD = {
    "run": (lambda: check_step_size(3), TypeError, "run must be a Run, got 3"),
    "order": (lambda: check_step_size(run_of(samplers.sgld(0.1)), order=3), ValueError, "order must be ≥ 1 and < 3"),
    "n_chains": (lambda: check_step_size(run_of(samplers.sgld(0.1)), n_chains=4), ValueError, "n_chains must be ≥ 8"),
    "particles": (lambda: check_step_size(run_of(PARTICLES, init=PLACES)), ValueError, "Stein's particles"),
    "sweep": (
        lambda: check_step_size(run_of(samplers.sgld(np.linspace(0.1, 0.2, 64)))), ValueError,
        "run must have one setting for all chains, got step_sizes that differ",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_says_nothing_is_refused(name):
    call, error, message = BAD[name]
    with pytest.raises(error, match=message):
        call()


def test_the_printed_run_says_that_its_draws_are_biased():
    assert "toolkit.check_step_size(run)" in str(run_of(samplers.sgld(0.1), n_steps=100))
    assert "check_step_size" not in str(run_of(samplers.mala(0.1), n_steps=100))
