"""What a run's replica exchange did, on a target whose states forget themselves between attempts."""

import dataclasses

import numpy as np
import pytest
from scipy import stats

from targets import mixtures
from toolkit import diagnostics as d
from toolkit import sample, samplers, schedules

NORMAL = mixtures.gaussian_mixture([[0.0]], 1.0)
TEMPERATURES = (1.0, 3.0, 9.0)


def run_of(**changes):
    """Steps of h = 1 forget the state at each; its law then has the variance 2 T, so the swaps' is that of 2 T."""
    gate = changes.pop("one_swap_per_window", False)
    settings = {"temperatures": TEMPERATURES, "scheme": "deo", **changes}
    sampler = samplers.resgld((1.0,) * len(settings["temperatures"]), **settings)
    if gate:
        gated = dataclasses.replace(sampler.tempering, one_swap_per_window=True)
        sampler = dataclasses.replace(sampler, tempering=gated)
    return sample(NORMAL, sampler, n_steps=4000, burn_in=500, thin=500, n_chains=100, seed=5)


@pytest.fixture(scope="module")
def run():
    return run_of()


def rate(cold, hot):
    """Mean of min(1, S) for independent N(0, 2 T) at the two temperatures."""
    chi2 = stats.chi2.ppf((np.arange(1000) + 0.5) / 1000, 1)
    delta = 1.0 / cold - 1.0 / hot
    return np.minimum(1.0, np.exp(delta * (cold * chi2[:, None] - hot * chi2))).mean()


def test_rates_barrier_and_round_trips_are_those_of_theory(run):
    found = d.exchange_summary(run)
    assert found.pairs == [(0, 1), (1, 2)]
    law = np.array([rate(1.0, 3.0), rate(3.0, 9.0)])
    np.testing.assert_allclose(found.swap_rates, law, atol=4.5 * found.standard_errors.max() + 4e-3)
    assert found.barrier == pytest.approx((1.0 - found.swap_rates).sum(), rel=1e-12)
    trips = run.round_trips
    error = trips.std(ddof=1) / 10.0
    assert abs(found.round_trips - found.expected_round_trips) < 4.5 * error + 0.01 * found.expected_round_trips
    seo = d.expected_round_trips(found.swap_rates, 3500, scheme="seo")
    assert abs(found.round_trips - seo) > 4.5 * error + 0.01 * seo
    np.testing.assert_array_equal(d.round_trips(run), trips)
    np.testing.assert_array_equal(d.swap_rates(run), run.swap_rates)
    pooled = run.counts.accepted.sum(axis=0) / run.counts.attempted.sum(axis=0)
    np.testing.assert_allclose(found.swap_rates, pooled, rtol=1e-13)


def test_standard_errors_are_those_of_many_runs(run):
    """Of swaps that are almost independent: √(s (1 − s) / attempts), and 1,750 attempts for each of 100 chains."""
    found = d.exchange_summary(run)
    law = np.sqrt(found.swap_rates * (1.0 - found.swap_rates) / run.counts.attempted.sum(axis=0))
    np.testing.assert_allclose(found.standard_errors, law, rtol=0.4)


def test_attempts_are_counted_with_their_distance():
    every = d.exchange_summary(run_of(swap_every=4))
    assert every.expected_round_trips == pytest.approx(float(d.expected_round_trips(every.swap_rates, 875)))
    assert every.round_trips == pytest.approx(every.expected_round_trips, rel=0.1)


@pytest.mark.parametrize(
    ("temperatures", "scheme"), [((1.0, 3.0), "deo"), (TEMPERATURES, "deo"), (TEMPERATURES, "seo")]
)
def test_attempts_are_those_made(temperatures, scheme):
    """While cycles explore, at temperature 0, there are none: a fifth of the steps is left."""
    cycles = schedules.cosine_cycles(5, exploration=0.8)
    run = run_of(temperatures=temperatures, scheme=scheme, schedule=cycles)
    found, attempts = d.exchange_summary(run), run.counts.attempted[:, :2].sum(axis=1)
    assert (attempts < 0.25 * run.sampling_steps).all()
    law = d.expected_round_trips(found.swap_rates, attempts.mean(), scheme=scheme)
    assert found.expected_round_trips == pytest.approx(float(law), rel=1e-12)
    if len(temperatures) == 2:  # of three, steps that shrink with the cycles make fewer
        assert found.round_trips == pytest.approx(found.expected_round_trips, rel=0.1)


def test_swaps_held_back_have_no_theory():
    """Two rungs try their pair every time, whatever the window; and a window of 1 holds nothing back."""
    two = {"temperatures": (1.0, 3.0)}
    for changes in ({"window": 5}, {"one_swap_per_window": True}):
        free = d.exchange_summary(run_of(**two, **changes))
        assert free.round_trips == pytest.approx(free.expected_round_trips, rel=0.05)
    held = d.exchange_summary(run_of(**two, window=5, one_swap_per_window=True))
    assert np.isnan(held.expected_round_trips)


def test_schemes_without_a_theory_have_none():
    for changes in ({"scheme": "all_pairs"}, {"scheme": "adjacent"}, {"window": 5}, {"swap_threshold": 0.5}):
        found = d.exchange_summary(run_of(**changes))
        assert np.isnan(found.expected_round_trips), changes
        assert np.isnan(found.barrier) == (changes == {"scheme": "all_pairs"})
    pair = d.exchange_summary(run_of(temperatures=(1.0, 3.0), scheme="all_pairs"))
    assert pair.round_trips == pytest.approx(pair.expected_round_trips, rel=0.05)
    seo = d.exchange_summary(run_of(scheme="seo"))
    assert seo.round_trips == pytest.approx(seo.expected_round_trips, rel=0.1)


def test_one_chain_has_no_standard_error(run):
    counts = run.counts._replace(attempted=run.counts.attempted[:1], accepted=run.counts.accepted[:1])
    alone = dataclasses.replace(run, counts=counts, replica_draws=run.replica_draws[:1])
    assert np.isnan(d.exchange_summary(alone).standard_errors).all()


@pytest.mark.parametrize("function", [d.swap_rates, d.round_trips, d.exchange_summary])
def test_a_run_without_exchange_is_refused(function):
    with pytest.raises(ValueError, match="run must have replica exchange, got sampler 'sgld' without it"):
        function(sample(NORMAL, samplers.sgld(0.1), n_steps=2, seed=1))
    with pytest.raises(TypeError, match="run must be a Run, got 3"):
        function(3)
