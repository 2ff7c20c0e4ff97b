"""Ladders against the Gaussian's closed form; round trips against a simulated index process; ratios of constants."""

import re

import numpy as np
import pytest
from scipy.special import betainc

from tests.support.simple_targets import standard_normal
from toolkit import sample, samplers, schedules
from toolkit.diagnostics.exchange import barrier, expected_round_trips, log_normaliser_ratio
from toolkit.ladders import adapted_ladder, deo_window, geometric_ladder

SIGMAS = 4.5  # a right law fails with probability 7e-6 per comparison
BAD = (1.0, 1.1, 1.2, 1.5, 16.0)


def swap_rates(sampler, dim, seed):
    """Rates (chain, pair) once the ladder has come to rest."""
    return sample(standard_normal(dim), sampler, n_steps=3000, burn_in=1000, n_chains=64, seed=seed).swap_rates


def test_a_geometric_ladder_has_equal_factors_and_its_ends():
    assert geometric_ladder(0.1, 0.7, 2) == (0.1, 0.7)
    ladder = geometric_ladder(0.1, 70.0, 6)
    assert (ladder[0], ladder[-1], len(ladder)) == (0.1, 70.0, 6)
    np.testing.assert_allclose(np.divide(ladder[1:], ladder[:-1]), 700.0**0.2, rtol=1e-14)


@pytest.mark.parametrize(
    ("n_replicas", "rate", "window"),
    [(2, 0.5, 1), (4, 0.4, 4), (16, 0.4, 8), (16, 0.01, 378), (100, 0.999, 1), (3, 1e-6, 1_192_660)],
)
def test_windows_follow_their_formula(n_replicas, rate, window):
    assert deo_window(n_replicas, rate) == window


@pytest.mark.parametrize(("dim", "scheme"), [(1, "deo"), (5, "deo"), (2, "all_pairs")])
def test_an_adapted_ladder_swaps_equally_often(dim, scheme):
    """On a Gaussian it is geometric, and its rate is known; the errors are the pilot's and the check's alike."""
    bad = samplers.resgld((0.2,) * 5, temperatures=BAD, scheme=scheme)
    good = adapted_ladder(standard_normal(dim), bad, n_steps=3000, n_chains=64, seed=dim)
    assert (good.temperatures[0], good.temperatures[-1]) == (1.0, 16.0)
    assert good.step_sizes == pytest.approx((0.2,) * 5, rel=1e-14)
    assert good.tempering == bad.tempering
    np.testing.assert_allclose(good.temperatures, geometric_ladder(1.0, 16.0, 5), rtol=0.05)
    neighbours = [0, 4, 7, 9] if scheme == "all_pairs" else [0, 1, 2, 3]
    law = 2.0 * betainc(dim / 2, dim / 2, 1 / 3)  # of N(0, T I) against N(0, 2 T I), 0.03 off as steps heat by 11 %
    for sampler, equal in ((good, True), (bad, False)):
        rates = swap_rates(sampler, dim, seed=7)[:, neighbours]
        error = 2.0 * rates.std(axis=0, ddof=1).max() / np.sqrt(len(rates))
        assert (np.ptp(rates.mean(axis=0)) < SIGMAS * error) == equal
        assert (np.abs(rates.mean(axis=0) - law).max() < SIGMAS * error + 0.03) == equal


def test_step_sizes_move_with_their_temperatures():
    sizes = tuple(0.02 * t**0.75 for t in BAD)
    sampler = samplers.resgld(sizes, temperatures=BAD)
    moved = adapted_ladder(standard_normal(2), sampler, n_steps=200, n_chains=16, seed=1, n_rounds=2)
    assert moved.temperatures != BAD
    np.testing.assert_allclose(moved.step_sizes, 0.02 * np.power(moved.temperatures, 0.75), rtol=1e-12)
    again = adapted_ladder(standard_normal(2), sampler, n_steps=200, n_chains=16, seed=1, n_rounds=2)
    assert again == moved
    assert adapted_ladder(standard_normal(2), sampler, n_steps=200, n_chains=16, seed=2, n_rounds=2) != moved


def test_the_first_round_begins_at_init():
    """A start far up a hill of equal energies decides all swaps of a short round; the later ones forget it."""
    sampler = samplers.resgld((1e-6,) * 3, temperatures=(1.0, 2.0, 9.0))

    def moved(init):
        return adapted_ladder(
            standard_normal(1), sampler, n_steps=4, n_chains=8, seed=1, n_rounds=1, init=init
        ).temperatures

    places = np.zeros((8, 3, 1))
    origin = moved([0.0])
    assert moved(places) == origin
    assert moved(None) != origin  # every replica begins elsewhere
    places[:, 2] = 50.0
    assert moved(places)[1] > origin[1]


def test_pairs_that_always_or_never_swap_leave_a_ladder_that_increases():
    sampler = samplers.resgld((0.1,) * 4, temperatures=(1.0, 1.0 + 1e-9, 1.0 + 2e-9, 1e6))
    moved = adapted_ladder(standard_normal(2), sampler, n_steps=100, n_chains=8, seed=1, n_rounds=3)
    assert (np.diff(moved.temperatures) > 0.0).all()
    assert moved.temperatures[1] > 1.5


def simulated_round_trips(rates, scheme, n_attempts, n_chains, seed, burn_in=400):
    """Round trips (chain,) of replicas whose swaps are coins with the given ``rates``, and nothing else."""
    rng = np.random.default_rng(seed)
    pairs, chains = len(rates), np.arange(n_chains)
    label = np.tile(np.arange(pairs + 1), (n_chains, 1))
    met_hot = np.zeros((n_chains, pairs + 1), np.bool_)  # by label: whether the last end met was the hottest
    met_cold = np.zeros((n_chains, pairs + 1), np.bool_)
    trips = np.zeros(n_chains, np.int64)
    for attempt in range(burn_in + n_attempts):
        parity = np.full(n_chains, attempt % 2) if scheme == "deo" else rng.integers(0, 2, n_chains)
        for pair in range(pairs):
            swap = (rng.random(n_chains) < rates[pair]) & ((parity == pair % 2) | (pairs == 1))
            label[swap, pair], label[swap, pair + 1] = label[swap, pair + 1], label[swap, pair]
        cold, hot = label[:, 0], label[:, -1]
        if attempt >= burn_in:
            trips += met_hot[chains, cold]
        met_hot[chains, cold], met_cold[chains, cold] = False, True
        met_hot[chains, hot] |= met_cold[chains, hot]
        met_cold[chains, hot] = False
    return trips


@pytest.mark.parametrize("rates", [(0.6,), (0.6, 0.3), (0.5, 0.9, 0.4, 0.7)])
@pytest.mark.parametrize("scheme", ["deo", "seo"])
def test_round_trips_of_independent_swaps(rates, scheme):
    trips = simulated_round_trips(rates, scheme, n_attempts=2000, n_chains=300, seed=len(rates))
    error = trips.std(ddof=1) / np.sqrt(trips.size)
    law = expected_round_trips(rates, 2000, scheme=scheme)
    assert abs(trips.mean() - law) < SIGMAS * error
    rejections = 1.0 - np.array(rates)
    wrong = [expected_round_trips(rejections, 2000, scheme=scheme), 0.8 * law]
    if len(rates) > 1:
        wrong.append(expected_round_trips(rates, 2000, scheme="seo" if scheme == "deo" else "deo"))
    for value in wrong:
        assert abs(trips.mean() - value) > SIGMAS * error


@pytest.mark.parametrize("temperatures", [(1.0, 4.0), (1.0, 2.0, 6.0, 7.0)])
@pytest.mark.parametrize("scheme", ["deo", "seo"])
def test_round_trips_of_a_run(temperatures, scheme):
    """A step of 1 on a Gaussian forgets where it was, so that swaps are independent of each other."""
    sampler = samplers.resgld((1.0,) * len(temperatures), temperatures=temperatures, scheme=scheme)
    run = sample(standard_normal(2), sampler, n_steps=3000, burn_in=400, n_chains=400, thin=2600, seed=3)
    error = run.round_trips.std(ddof=1) / 20
    rates = run.swap_rates.mean(axis=0)
    law = expected_round_trips(rates, 2600, scheme=scheme)
    assert abs(run.round_trips.mean() - law) < SIGMAS * error
    for wrong in (expected_round_trips(1.0 - rates, 2600, scheme=scheme), 0.9 * law):
        assert abs(run.round_trips.mean() - wrong) > SIGMAS * error


def test_barriers_and_round_trips_of_many_chains():
    rates = np.array([[0.5, 0.5], [0.9, 0.0], [1.0, 1.0]])
    np.testing.assert_allclose(barrier(rates), [1.0, 1.1, 0.0], rtol=1e-14)
    np.testing.assert_allclose(expected_round_trips(rates, 12), [2.0, 0.0, 6.0], rtol=1e-14)
    np.testing.assert_allclose(expected_round_trips(rates, 12, scheme="seo"), [1.5, 0.0, 3.0], rtol=1e-14)
    assert barrier(rates[0]) == 1.0


def test_the_barrier_does_not_depend_on_the_number_of_rungs():
    """Of a Gaussian: the closed-form rates between 1 and 16, on ladders of 8 to 64 rungs; the error falls as 1 / n²."""
    ends = {}
    for n in (8, 16, 64):
        ratio = 16.0 ** (1 / (n - 1))
        ends[n] = barrier(np.full(n - 1, 2.0 * betainc(1.0, 1.0, 1 / (1 + ratio))))
    assert ends[8] == pytest.approx(ends[64], rel=0.02)
    assert 3.5 < (ends[64] - ends[8]) / (ends[64] - ends[16]) < 5.5


TEMPERATURES = (1.0, 1.5, 2.5, 4.0)


def exact_energies(dim, n_chains, n_draws, seed):
    """U = ½ ‖x‖² of exact draws at each temperature."""
    z = np.random.default_rng(seed).standard_normal((n_chains, len(TEMPERATURES), n_draws, dim))
    return 0.5 * np.array(TEMPERATURES)[:, None] * (z**2).sum(axis=3)


@pytest.mark.parametrize("dim", [1, 3])
def test_the_ratio_of_constants_of_a_gaussian(dim):
    energies = exact_energies(dim, 50, 400, seed=dim)
    law = 0.5 * dim * np.log(TEMPERATURES[0] / TEMPERATURES[-1])
    ratio = log_normaliser_ratio(energies, TEMPERATURES)
    assert ratio.standard_error < 0.02
    assert abs(ratio.pooled - law) < SIGMAS * ratio.standard_error
    assert abs(ratio.by_chain.mean() - law) < SIGMAS * ratio.standard_error + 0.01  # its bias is of order 1 / draws
    turned_round = log_normaliser_ratio(energies[:, ::-1], TEMPERATURES).pooled
    for wrong in (-law, 2.0 * law, turned_round):
        assert abs(wrong - law) > SIGMAS * ratio.standard_error
    shifted = log_normaliser_ratio(energies - 5000.0, TEMPERATURES)
    assert shifted.pooled == pytest.approx(ratio.pooled + 5000.0 * (1 - 1 / TEMPERATURES[-1]), abs=1e-8)


def test_the_standard_error_is_that_of_the_pooled_estimate():
    ratios = [log_normaliser_ratio(exact_energies(2, 20, 50, seed), TEMPERATURES) for seed in range(200)]
    spread = np.std([ratio.pooled for ratio in ratios])
    claimed = np.sqrt(np.mean([ratio.standard_error**2 for ratio in ratios]))
    assert abs(claimed / spread - 1.0) < SIGMAS / np.sqrt(400)
    assert np.isnan(log_normaliser_ratio(exact_energies(2, 1, 50, 0), TEMPERATURES).standard_error)


def test_the_ratio_of_constants_of_a_run():
    """Within the error and the bias of the steps, which heat every rung by 1 / (1 − h/2): 1 % of each stone."""
    sampler = samplers.resgld((0.04,) * 4, temperatures=TEMPERATURES)
    run = sample(
        standard_normal(2), sampler, n_steps=6000, burn_in=1000, n_chains=64, thin=10, seed=2, keep_replicas=True,
        keep_energies=True,
    )  # fmt: skip
    ratio = log_normaliser_ratio(run.energies, sampler.temperatures)
    law = -np.log(4.0) - 0.75 * np.log(2.0 * np.pi)  # the energy is normalised: U = ½ ‖x‖² + log 2π
    assert abs(ratio.pooled - law) < SIGMAS * ratio.standard_error + 0.03
    assert abs(ratio.pooled + np.log(4.0)) > 1.0
    assert ratio.standard_error < 0.02


LADDER = samplers.resgld((0.1, 0.1), temperatures=(1.0, 2.0))


def adapt(sampler=LADDER, **changes):
    return adapted_ladder(standard_normal(1), sampler, **{"n_steps": 10, "n_chains": 2, "seed": 0, **changes})


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: geometric_ladder(1.0, 2.0, 1), ValueError, "n_replicas must be ≥ 2 and < 65536, got 1"),
        (lambda: geometric_ladder(0.0, 2.0, 3), ValueError, "coldest must be finite and > 0, got 0.0"),
        (lambda: geometric_ladder(2.0, 2.0, 3), ValueError, "hottest must be finite and > 2, got 2.0"),
        (lambda: deo_window(1, 0.4), ValueError, "n_replicas must be ≥ 2, got 1"),
        (lambda: deo_window(4, 1.0), ValueError, "rate must be finite and > 0 and < 1, got 1.0"),
        (lambda: adapt(None), TypeError, "sampler must be a Sampler, got None"),
        (lambda: adapt(samplers.sgld(0.1)), ValueError, "sampler must have replica exchange as tempering, got None"),
        (
            lambda: adapt(samplers.resgld((0.1, 0.1), temperatures=[[1.0, 2.0], [1.0, 3.0]])),
            ValueError,
            "sampler must have one ladder for all chains, got step sizes or temperatures for 2 chains",
        ),
        (lambda: adapt(n_rounds=0), ValueError, "n_rounds must be ≥ 1 and < 65536, got 0"),
        (lambda: adapt(seed=-1), ValueError, "seed must be ≥ 0"),
        (lambda: adapt(n_steps=1), ValueError, "n_steps must be ≥ 2, got 1"),
        (
            lambda: adapt(samplers.resgld((0.1, 0.1), temperatures=(1.0, 2.0), swap_every=50)),
            ValueError,
            "n_steps must be large enough for every pair to be tried, got attempts [0.0]",
        ),
        (
            lambda: barrier([]),
            ValueError,
            "swap_rates must have shape (…, pair) with at least one pair, got shape (0,)",
        ),
        (lambda: barrier([0.5, 1.5]), ValueError, "swap_rates must be ≥ 0 and ≤ 1, got 0.5 to 1.5"),
        (lambda: barrier([0.5, np.nan]), ValueError, "swap_rates must be finite, got nan at [1]"),
        (lambda: expected_round_trips([0.5], -1), ValueError, "n_attempts must be finite and ≥ 0, got -1"),
        (lambda: expected_round_trips([0.5], 1, scheme="adjacent"), ValueError, "scheme must be one of 'deo', 'seo'"),
        (lambda: log_normaliser_ratio(np.ones((2, 3, 4)), (1.0, 2.0)), ValueError, "with 2 replicas, got (2, 3, 4)"),
        (lambda: log_normaliser_ratio(np.ones((2, 2, 4)), (2.0, 1.0)), ValueError, "at least 2 and increase, got"),
        (lambda: log_normaliser_ratio(np.ones((2, 1, 4)), (2.0,)), ValueError, "at least 2 and increase, got (2.0,)"),
    ],
)
def test_bad_input_is_refused(call, error, message):
    with pytest.raises(error, match=re.escape(message)):
        call()


def test_rounds_without_kept_draws_start_from_the_same_place():
    schedule = schedules.cosine_cycles(2, exploration=0.4)
    sampler = samplers.resgld((0.1, 0.1, 0.1), temperatures=(1.0, 1.1, 9.0), schedule=schedule)
    moved = adapted_ladder(standard_normal(1), sampler, n_steps=100, n_chains=4, seed=1, n_rounds=2)
    assert moved.temperatures[1] > 1.1
