"""Laws: wrong samplers and truths fail, biased ones pass and are told their bias, and the unclear is not judged."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from targets import mixtures
from tests.support.faults import BOX, NORMAL, PAIR, RIGHT, WRONG
from toolkit import boundaries, samplers, schedules
from toolkit.problem.definition import as_problem
from toolkit.schedules import evaluate
from toolkit.tempering import continuous_tempering
from toolkit.tempering.contour_tempering import Partition
from toolkit.verification.law_runs import by_chain, halved, pooled
from toolkit.verification.laws import check_laws, excuse_of, stays_exact, without_skewness
from toolkit.verification.report import setting_of

LADDER = {"temperatures": (1.0, 3.0)}


def laws(problem, sampler, n_steps=6_000, n_chains=128, init=None, seed=0):
    setting = setting_of(as_problem(problem), sampler, n_steps, n_steps // 4, n_chains, init, seed)
    return dict(check_laws(setting))


# Enough chains and steps for each fault; what finds it must be among the checks named.
FOUND_BY = {
    "half the noise": ("covariance", {}),
    "temperature 5 % high": ("Stein's identity", {"n_chains": 256, "n_steps": 40_000}),
    "temperature 5 % low": ("covariance", {"n_chains": 256, "n_steps": 40_000}),
    "one noise for all coordinates": ("covariance", {}),
    "swaps without a random number": ("energies", {}),
    "energy noise 1 without correction": ("cells", {}),
    "truth of 10 % more variance": ("covariance", {"n_chains": 256}),
    "truth of weights 0.34 in place of 0.3": ("mode weights", {"n_chains": 256}),
}


@pytest.mark.cases(2)
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_law_fails(name):
    check, size = FOUND_BY[name]
    verdict = laws(*WRONG[name], **size)[check]
    assert verdict.passed is False, verdict
    assert "standard errors off" in verdict.words


@pytest.mark.parametrize("name", ["sgld", "sgld with gradient noise 3", "resgld with energy noise 1", "mala"])
def test_a_right_law_passes(name):
    found = laws(*RIGHT[name])
    assert all(verdict.passed is not False for verdict in found.values()), found
    assert all(found[check].passed for check in ("mean", "covariance", "cells", "energies", "Stein's identity"))


def test_modes_in_which_too_few_chains_begin_are_not_judged():
    """Of two modes of weights 0.3 and 0.7 with 12 chains neither, with 20 one; the other laws are judged."""
    few, some = (laws(PAIR, samplers.sgld(0.05), n_steps=400, n_chains=n) for n in (12, 20))
    assert few["mode weights"].passed is None
    assert "fewer than 10 of 12 chains begin in any mode; give more chains" in few["mode weights"].words
    assert "fewer than 10" not in some["mode weights"].words
    assert few.keys() == some.keys() >= {"mean", "energies"}


def test_bias_of_the_step_size_is_told_and_no_failure():
    """At h = 0.1 the variance is 1 / (1 − h/2), 5.3 % too large; the sample's error is some 0.6 %."""
    words = laws(NORMAL, samplers.sgld(0.1), n_chains=256, n_steps=10_000)["covariance"].words
    said = words.rpartition("at this step size ")[2]
    amount = float(said.partition(" is ")[2].partition("%")[0])
    assert "too large" in said
    assert 5.3 - 3.0 < amount < 5.3 + 3.0
    coarse = laws(NORMAL, samplers.sgld(0.5))  # variance 4/3; extrapolated 0.952, within a quarter of the bias
    assert coarse["covariance"].passed
    assert "too large" in coarse["covariance"].words


def test_a_bias_that_a_metropolis_test_should_have_taken_away_fails():
    biased = replace(samplers.sgld(0.1), dynamics=samplers.sgld(0.1).dynamics._replace(name="claims to be exact"))
    assert laws(NORMAL, biased)["covariance"].passed
    setting = setting_of(as_problem(NORMAL), biased, 6_000, 1_500, 256, None, 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("toolkit.verification.laws.is_exact", lambda sampler: True)
        assert dict(check_laws(setting))["covariance"].passed is False


def test_moves_that_are_taken_back_at_a_wall_are_biased_in_proportion_to_the_step_size():
    """The variance is too large by 0.0102 at h = 0.2 and 0.0046 at 0.1, ± 0.0004 each (4,096 chains)."""
    found = laws(BOX, samplers.sgld(0.2, boundary=boundaries.reject()), n_chains=256, n_steps=20_000)
    assert all(verdict.passed is not False for verdict in found.values()), found
    assert "the variance of x[0] is 2." in found["covariance"].words  # 0.0102 of 0.4157


def test_half_the_step_size_comes_with_the_schedule_at_half_its_pace():
    cycles = samplers.cyclical_sgld(0.2, n_cycles=2, exploration=0.5)
    slow = halved(cycles)
    assert slow.step_sizes == (0.1,)
    whole = evaluate(cycles.schedule, np.arange(20), 20)
    half = evaluate(slow.schedule, np.arange(40), 40)
    for there, here in zip(whole, half, strict=True):
        np.testing.assert_array_equal(np.repeat(there, 2), here)
    coupled = replace(samplers.tact_hmc(0.1), tempering=continuous_tempering(top_temperature=2.0, step_size=0.3))
    assert halved(coupled).tempering.step_size == 0.15


def test_a_ratio_over_chains_is_theirs_to_first_order_and_contours_loses_its_bias():
    rng = np.random.default_rng(1)
    weights = rng.gamma(1.0, size=(2, 40_000, 8))
    values = weights + rng.standard_normal(weights.shape)  # the weighted mean is E w² / E w = 2
    numerators, denominators = (weights * values).sum(axis=2)[..., None], weights.sum(axis=2)
    shares, drift = pooled(numerators, denominators)
    np.testing.assert_allclose(shares.mean(), numerators.sum() / denominators.sum(), rtol=1e-12)
    assert abs(shares.mean() - 2.0) < 4.5 * shares.std() / 200.0
    assert abs(drift.mean()) < 4.5 * drift.std() / 200.0
    own, _ = by_chain(numerators, denominators)  # 16 draws a chain: a plain ratio is off by 1/8, about
    plain = numerators.sum(axis=0)[:, 0] / denominators.sum(axis=0)
    assert abs(plain.mean() - 2.0) > 0.09
    assert abs(own.mean() - 2.0) < 0.03


@pytest.mark.slow
def test_a_step_too_long_to_extrapolate_from_fails_and_is_told():
    """And is no excuse, as what depends on the step may be wrong as well."""
    verdict = laws(mixtures.cosine25(), samplers.sghmc(0.047, friction=0.3))["Stein's identity"]
    assert verdict.passed is False
    assert "too far to extrapolate: take smaller ones" in verdict.words
    verdict = laws(*WRONG["half the noise"])["covariance"]
    assert verdict.passed is False
    assert "extrapolate" not in verdict.words


def test_means_of_skewed_values_alarm_no_more_often_than_they_should():
    """Of 256 values of which one in 16 is small; by Student's t they do so 16 times as often, all on one side."""
    rng = np.random.default_rng(3)
    values = np.where(rng.random((256, 20_000)) < 1.0 / 16.0, rng.uniform(-8.0, 0.0, (256, 20_000)), 0.0)
    error, nothing = values.std(axis=0, ddof=1) / 16.0, np.zeros(20_000)
    expected = np.full(20_000, -0.25)
    student = (values.mean(axis=0) - expected) / error
    normal = without_skewness(values, expected, nothing, error)
    quantile = 3.0902  # 1 in 1000 on each side
    assert (student > quantile).mean() > 1e-2
    assert (np.abs(normal) > quantile).mean() < 2e-3
    assert (normal < -2.3263).mean() > 5e-3  # of 1 in 100
    within = without_skewness(values, expected, np.full(20_000, 1.0), error)
    assert np.abs(within).max() < 0.2  # nothing is off by more than the margin


def test_a_start_that_chains_never_leave_is_not_judged():
    distant = replace_pair()
    stuck = laws(distant, samplers.sgld(0.05), n_chains=64, init=[-8.0])
    assert stuck["mode weights"].passed is None
    assert "changed its mode 0 times on average" in stuck["mode weights"].words
    assert stuck["mean"].passed is None
    exact = laws(distant, samplers.sgld(0.05), n_chains=64)
    assert exact["mode weights"].passed is None
    assert "the weights are those of the exact draws it began at" in exact["mode weights"].words
    assert exact["energies"].passed is None  # those of the modes differ by log(0.7 / 0.3)
    assert "too few effective draws" in exact["Stein's identity"].words  # which holds within each mode
    slow = laws(NORMAL, samplers.sgld(1e-4), init=np.random.default_rng(1).normal(0.0, 3.0, (128, 2)))
    assert "R-hat is" in slow["mean"].words
    assert slow["mean"].passed is None


def replace_pair():
    from targets import mixtures

    return mixtures.gaussian_mixture([[-8.0], [8.0]], 1.0, [0.3, 0.7])


def test_a_run_that_still_moves_is_told_so():
    """From far away, SGLD with relaxation time 1/h = 200 of 1,000 steps, without burn-in."""
    setting = setting_of(as_problem(NORMAL), samplers.sgld(5e-3), 1_000, 0, 256, [3.0, 3.0], 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("toolkit.verification.laws.MIXED", np.inf)
        verdict = dict(check_laws(setting))["mean"]
    assert verdict.passed is None
    assert "it still moves" in verdict.words


def test_weights_that_contour_itself_doubts_excuse_a_failure():
    contour = samplers.icsgld(0.1, n_replicas=2, partition=Partition(3.0, 0.5, 8))  # most energies lie below
    setting = setting_of(as_problem(NORMAL), contour, 2_000, 500, 64, None, 0)
    found = dict(check_laws(setting))
    assert "not to be trusted yet: " in found["weights"].words
    assert "of the energies lie below the partition" in found["weights"].words
    assert excuse_of(setting, [], ["θ has not settled"]) == "contour's weights are not to be trusted yet"
    assert excuse_of(setting, [np.array([1.0, -1.0, 0.5])], []) == ""


def test_chains_with_temperatures_of_their_own_run_several_times():
    sampler = samplers.mala(np.linspace(0.3, 0.6, 16))
    setting = setting_of(as_problem(NORMAL), sampler, 4_000, 1_000, 64, None, 5)
    assert setting.plan.seeds[0] == 5
    assert len(set(setting.plan.seeds)) == 4
    assert setting.plan.init.shape == (64, 1, 2)
    assert len(np.unique(setting.plan.init[:, 0, 0])) == 64
    assert dict(check_laws(setting))["covariance"].passed


def test_schedules_that_keep_every_second_step_leave_draws():
    keeping = samplers.mala(0.5, schedule=schedules.custom(keep=lambda steps: steps % 2 == 0))
    assert laws(NORMAL, keeping, n_steps=12_000)["mean"].passed
    exploring = laws(PAIR, samplers.cyclical_sgld(0.2, n_cycles=10))
    assert "combine_cycles" in exploring["truth"].words


def test_scratch_of_a_move_is_no_memory_that_excuses_a_drift():
    begins = {name: getattr(samplers, name)(0.1) for name in ("sgld", "sghmc", "sgnht", "psgld")}
    exact = {name: stays_exact(SimpleNamespace(sampler=s, starts_exact=True)) for name, s in begins.items()}
    assert exact == {"sgld": True, "sghmc": False, "sgnht": False, "psgld": False}
    assert not stays_exact(SimpleNamespace(sampler=begins["sgld"], starts_exact=False))
