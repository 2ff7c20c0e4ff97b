"""The swap's correction for noisy energies: fixed, estimated and adapted, each by the law it must keep or reach."""

import numpy as np
import pytest
from scipy import stats

from targets import mixtures
from tests.support.laws import standard_errors
from tests.support.simple_targets import FLAT
from toolkit import Sampler, sample, samplers, schedules, tempering
from toolkit.tempering import exchange

SIGMAS = 4.5  # a right law fails with probability 7e-6 per comparison
ALARM, WRONG = 7e-6, 1e-9  # a right law's p-value falls below the first as often; a wrong law's must below the second
NORMAL = mixtures.gaussian_mixture([[0.0]], 1.0)
NOISE = 2.5


def run_noisy(temperatures, seed, *, n_chains=40_000, n_steps=40, step_size=1e-3, burn_in=None, **options):
    """A run from exact draws of N(0, T) on every rung, with noisy energies; all rungs' last draws are kept."""
    start = np.random.default_rng(seed).standard_normal((n_chains, len(temperatures), 1))
    start *= np.sqrt(temperatures)[:, None]
    sampler = samplers.resgld(
        [step_size * t for t in temperatures], temperatures=temperatures, energy_noise=NOISE, **options
    )
    burn_in = n_steps - 1 if burn_in is None else burn_in
    return sample(
        NORMAL, sampler, n_steps=n_steps, burn_in=burn_in, thin=n_steps - burn_in, n_chains=n_chains, init=start,
        seed=seed, keep_replicas=True, threads=1,
    )  # fmt: skip


def pvalues(run):
    """Of every rung's draws being N(0, T), by Kolmogorov and Smirnov."""
    rungs = zip(run.sampler.temperatures, run.replica_draws[:, :, -1, 0].T, strict=True)
    return np.array([stats.kstest(draws / np.sqrt(temperature), "norm").pvalue for temperature, draws in rungs])


@pytest.mark.cases(1)
@pytest.mark.parametrize("scheme", exchange.SCHEMES)
def test_noisy_energies_need_their_correction_under_every_scheme(scheme):
    ladder = (1.0, 3.0, 9.0)
    run = run_noisy(ladder, seed=41, scheme=scheme)
    assert (pvalues(run) > ALARM).all()
    np.testing.assert_array_equal(run.corrections, NOISE**2)
    for wrong in (0.0, 0.5 * NOISE**2):
        assert pvalues(run_noisy(ladder, seed=41, scheme=scheme, correction=wrong))[0] < WRONG


def estimates_law(corrections, every, evaluations, n_steps):
    """p-values, one per pair, of the estimates' being s² χ²/ν, ν = 2 (evaluations − 1) for each time of estimating."""
    freedom = 2 * (evaluations - 1) * ((n_steps - 1) // every)
    scaled = corrections / NOISE**2 * freedom
    return np.array([stats.kstest(pair, stats.chi2(freedom).cdf).pvalue for pair in scaled.T])


@pytest.mark.parametrize("scheme", ["deo", "all_pairs"])
@pytest.mark.parametrize(("every", "evaluations", "n_steps"), [(1, 2, 4), (3, 5, 31), (7, 4, 29), (40, 10, 200)])
def test_estimates_follow_their_law(every, evaluations, n_steps, scheme):
    """Sample variances of normal noise, two for each pair and time, averaged with equal weights."""
    correction = exchange.estimated_correction(every=every, evaluations=evaluations)
    run = run_noisy((1.0, 2.0, 5.0), 42, n_chains=4000, n_steps=n_steps, correction=correction, scheme=scheme)
    assert run.corrections.shape == (4000, 3 if scheme == "all_pairs" else 2)
    assert (estimates_law(run.corrections, every, evaluations, n_steps) > ALARM).all()
    biased = run.corrections * (evaluations - 1) / evaluations
    assert (estimates_law(biased, every, evaluations, n_steps) < WRONG).all()
    assert (estimates_law(run.corrections, every, evaluations, (n_steps - 1) // 2 + 1) < WRONG).all()  # half as many
    fewer = 1 + (evaluations - 1) / 2  # of one replica alone
    assert (estimates_law(run.corrections, every, fewer, n_steps) < WRONG).all()


def test_estimates_follow_their_law_where_half_the_run_explores():
    schedule = schedules.cosine_cycles(2, exploration=0.5)
    correction = exchange.estimated_correction(every=10, evaluations=5)
    run = run_noisy((1.0, 2.0, 5.0), 42, n_chains=4000, n_steps=200, correction=correction, schedule=schedule)
    assert (estimates_law(run.corrections, 10, 5, 200) > ALARM).all()


def test_the_first_estimate_comes_after_its_time():
    correction = exchange.estimated_correction(every=10, evaluations=3)
    run = run_noisy((1.0, 2.0), 43, n_chains=50, n_steps=11, correction=correction)
    assert (run.corrections > 0.0).all()
    with pytest.raises(ValueError, match="n_steps must be > 10, at which the correction is estimated first, got 10"):
        run_noisy((1.0, 2.0), 43, n_chains=50, n_steps=10, correction=correction)


def test_an_estimated_correction_keeps_the_cold_law():
    """Right after burn-in; with F = 0 the law is lost."""
    ladder, options = (1.0, 4.0), {"n_chains": 15_000, "n_steps": 400, "step_size": 0.02}
    estimated = exchange.estimated_correction(every=4, evaluations=5)
    run = run_noisy(ladder, 44, correction=estimated, **options)
    assert (pvalues(run) > ALARM).all()
    assert pvalues(run_noisy(ladder, 44, correction=0.0, **options))[0] < WRONG


def adapt(problem, rate, *, burn_in, n_steps, n_chains=200, ladder=(1.0, 2.0, 5.0), noise=0.0, scheme="deo", **options):
    sampler = Sampler(
        "adapted", (0.5,) * len(ladder), ladder, energy_noise=noise,
        tempering=tempering.replica_exchange(correction=exchange.adapted_correction(rate, **options), scheme=scheme),
    )  # fmt: skip
    return sample(
        problem, sampler, n_steps=n_steps, burn_in=burn_in, thin=n_steps - burn_in, n_chains=n_chains, seed=45,
        threads=1,
    )  # fmt: skip


@pytest.mark.parametrize("scheme", exchange.SCHEMES)
@pytest.mark.parametrize("rate", [0.2, 0.6])
def test_energies_that_are_equal_swap_at_the_target_rate(rate, scheme):
    """Their chance is exp(−δ² F) exactly, so F must go to −log(rate) / δ²."""
    run = adapt(FLAT, rate, burn_in=8000, n_steps=16_000, scheme=scheme)
    ladder = run.sampler.temperatures
    slopes = np.array([1.0 / ladder[a] - 1.0 / ladder[b] for a, b in run.sampler.tempering.pairs(3)])
    chances = np.exp(-(slopes**2) * run.corrections)
    assert (abs(standard_errors(run.swap_rates, rate)) < SIGMAS).all()
    assert (abs(standard_errors(run.swap_rates - chances, 0.0)) < SIGMAS).all()
    assert (abs(standard_errors(run.swap_rates, 1.05 * rate)) > SIGMAS).all()


@pytest.mark.parametrize(("rate", "gain"), [(0.05, 20.0), (0.25, 1.0)])
def test_noisy_energies_swap_at_the_target_rate(rate, gain):
    """A small rate needs a large gain: F goes to its place as fast as rate · gain is large."""
    run = adapt(NORMAL, rate, burn_in=8000, n_steps=24_000, ladder=(1.0, 4.0), noise=NOISE, gain=gain)
    assert abs(standard_errors(run.swap_rates, rate)) < SIGMAS
    assert (run.corrections >= 0.0).all()
    for wrong in (1.1 * rate, rate / 1.1):
        assert abs(standard_errors(run.swap_rates, wrong)) > SIGMAS


def test_an_adapted_correction_is_frozen_after_burn_in():
    short = adapt(NORMAL, 0.2, burn_in=500, n_steps=501, n_chains=20)
    long = adapt(NORMAL, 0.2, burn_in=500, n_steps=1500, n_chains=20)
    np.testing.assert_array_equal(short.corrections, long.corrections)
    longer = adapt(NORMAL, 0.2, burn_in=502, n_steps=1500, n_chains=20)
    assert (longer.corrections != long.corrections).all()  # each pair has been tried once more
    assert (long.corrections >= 0.0).all()
    with pytest.raises(ValueError, match="burn_in must be ≥ 1 for an adapted correction"):
        adapt(NORMAL, 0.2, burn_in=0, n_steps=50, n_chains=20, start=3.5)


def test_a_rate_out_of_reach_leaves_no_correction():
    """Without a correction these energies swap in seven of ten attempts; steps up are a ninth of the steps down."""
    run = adapt(NORMAL, 0.9, burn_in=4000, n_steps=8000)
    plain = adapt(NORMAL, 0.9, burn_in=1, n_steps=4000)  # F = 0 all along: nothing is tried before step 1
    assert (plain.corrections == 0.0).all()
    assert (abs(standard_errors(run.swap_rates - plain.swap_rates.mean(axis=0), 0.0)) < SIGMAS).all()
    slopes = np.array((1.0 - 0.5, 0.5 - 0.2))
    assert (run.corrections * slopes**2).max() < 40 * 0.1 * 4000**-0.6  # 40 swaps more than they need, in a row
    assert (run.corrections == 0.0).mean() > 0.1
    reached = adapt(NORMAL, 0.5, burn_in=4000, n_steps=8000)
    assert (reached.corrections * slopes**2).min() > 40 * 0.1 * 4000**-0.6


@pytest.mark.parametrize("gain", [0.5, 1.5])
def test_the_first_two_steps_of_the_adaptation_in_numbers(gain):
    """δ² F = 0.5, then plus a_n (swap − 0.3) with a_1 = gain and a_2 = gain / 2^0.6, not below 0."""
    options = {"ladder": (1.0, 2.0), "gain": gain, "start": 2.0, "n_steps": 10}
    first, second = (adapt(FLAT, 0.3, burn_in=burn_in, **options).corrections.ravel() for burn_in in (2, 3))
    swapped = first > 2.0
    assert 0.5 < swapped.mean() < 0.7  # exp(−0.5) = 0.61
    exponent = np.maximum(0.0, 0.5 + gain * (swapped - 0.3))
    np.testing.assert_allclose(0.25 * first, exponent, rtol=1e-14, atol=1e-15)
    after = [np.maximum(0.0, exponent + gain / 2**0.6 * (swap - 0.3)) for swap in (0.0, 1.0)]
    np.testing.assert_allclose(0.25 * second, np.where(0.25 * second > exponent, after[1], after[0]), rtol=1e-14)
    assert (0.25 * second > exponent).any()
    assert (0.25 * second < exponent).any()
