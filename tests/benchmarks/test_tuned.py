"""The logic of the table of tuned samplers: what is wrong, what is silent, what an ESS that is reported is worth."""

import dataclasses

import numpy as np
import pytest

from benchmarks.peers import numpy_runs
from benchmarks.quality.problems import CASES
from benchmarks.quality.samplers import FAMILIES
from benchmarks.quality.stopping_rule import Ended, coverage, true_over_reported
from benchmarks.quality.tuned import failure_cells, told
from benchmarks.quality.tuned_anchors import CASES as BOXES
from benchmarks.quality.tuned_anchors import METHODS, PIGEONS
from benchmarks.quality.tuned_problems import BATCH, CATALOGUE, UNSCALED, Law, blind, law_of, logistic, tasks
from benchmarks.quality.tuned_runs import Verdict, errors, judged, mode_errors
from benchmarks.quality.tuned_worth import SAME, tuned_measured
from targets import classics, mixtures
from toolkit import sample, samplers, stopping
from toolkit.diagnostics import expected_round_trips
from toolkit.problem.definition import as_problem

SPOTS = mixtures.five_spots()
LAW = law_of(SPOTS)


def exact_draws(seed=1, chains=8, draws=500):
    return np.asarray(SPOTS.truth.independent_draws(chains * draws, seed=seed)).reshape(chains, draws, 2)


def test_a_run_is_not_told_the_truth_that_its_warnings_would_find_lost_modes_by():
    problem = blind(SPOTS)
    assert problem.truth is None
    assert problem.target.truth is None
    assert problem.target.spread is SPOTS.spread
    assert blind(SPOTS, scaled=False).target.spread is None
    walled = blind(classics.dual_moon())
    assert walled.domain is not None
    assert walled.truth is None


def test_exact_draws_are_right_and_those_of_another_law_are_not():
    off = [errors(exact_draws(seed), LAW).max() for seed in range(20)]
    assert np.max(off) < 4.5
    assert np.median(off) == pytest.approx(0.95, abs=0.4)  # the larger of two normals: median 1.05 where independent
    assert errors(exact_draws() + np.array([0.0, 1.0]), LAW).max() > 5.0
    loose = LAW._replace(error=np.full(2, 10.0))
    assert errors(exact_draws() + np.array([0.0, 1.0]), loose).max() < 1.0


def test_a_mode_that_is_lost_is_counted_where_it_was_due_and_weights_are_judged_where_it_was_not():
    draws = exact_draws()
    assert mode_errors(draws, LAW)[1] == 0
    assert mode_errors(draws, LAW)[0] < 4.5
    points = draws.reshape(-1, 2)
    home = SPOTS.truth.memberships(points).argmax(axis=1)
    without = points[home != 1][:3200].reshape(8, 400, 2)
    assert mode_errors(without, LAW)[1] == 1
    few = without[:, :20]  # 160 draws, of which 16 were due in the mode of weight 0.1
    assert mode_errors(few, LAW)[1] == 0
    fewer = np.concatenate([points[home == 1][:100], points[home != 1][:3100]])
    shuffled = np.random.default_rng(1).permutation(fewer).reshape(8, 400, 2)
    assert mode_errors(shuffled, LAW)[0] > 5.0
    assert mode_errors(shuffled, LAW)[1] == 0
    assert mode_errors(draws, LAW._replace(memberships=None)) == (0.0, 0)


def test_silent_is_wrong_without_a_warning_and_false_is_right_with_one():
    right = Verdict(off=1.0, satisfied=True)
    assert [right.is_wrong, right.is_silent, right.is_false_alarm] == [False] * 3
    for wrong in (
        right._replace(off=5.1),
        right._replace(weight_off=6.0),
        right._replace(lost=1),
        right._replace(off=np.nan),
    ):
        assert wrong.is_wrong
        assert wrong.is_silent
        assert not wrong._replace(warnings=("R-hat",)).is_silent
        assert not wrong._replace(failure="ValueError").is_silent
        assert not wrong._replace(warnings=("R-hat",)).is_false_alarm
    assert right._replace(warnings=("ESS",)).is_false_alarm
    assert not right._replace(warnings=("ESS",), satisfied=False).is_false_alarm
    named = {"a": [right, right._replace(off=9.0)], "b": [right._replace(warnings=("x",)), right]}
    assert failure_cells(named)[:8] == ["0.7500", 4, 1, 1, 4, 1, 1, "25.0"]
    assert told(named, "is_silent") == "a: 2"
    assert told(named, "is_false_alarm") == "b: 1"
    assert told({"a": [right]}, "is_silent") == "–"


def test_a_run_is_judged_by_its_own_draws_and_warnings():
    run = sample(
        blind(SPOTS), samplers.hmc(0.3, n_leapfrogs=4), n_steps=200, n_chains=8, burn_in=20, seed=1, threads=1,
        init=np.zeros(2), until=stopping.ess(1e6),
    )  # fmt: skip
    found = judged(run, LAW, 0.5)
    assert found.lost == 4  # all but the one it starts in
    assert found.sd[1] < 0.5
    assert found.warnings == tuple(run.warnings)
    assert not found.satisfied
    assert found.gradients == run.gradient_evaluations
    assert (found.tuning, found.sampler, found.seconds) == (0, "hmc", 0.5)
    nothing = judged(dataclasses.replace(run, replica_draws=run.replica_draws[:, :, :2]), LAW, 0.5)
    assert nothing.failure
    assert nothing.is_wrong


def test_an_ess_that_is_reported_twice_as_large_as_it_is_shows_in_the_ratio_and_in_the_coverage():
    rng = np.random.default_rng(2)
    mean, sd = np.array([1.0, -2.0]), np.array([2.0, 0.1])
    sizes = rng.uniform(500.0, 2_000.0, (4_000, 2))
    means = mean + sd / np.sqrt(sizes) * rng.standard_normal((4_000, 2))
    assert true_over_reported(means, sizes, mean, sd) == pytest.approx(1.0, abs=0.12)
    assert true_over_reported(means, 2.0 * sizes, mean, sd) == pytest.approx(0.5, abs=0.06)
    for factor, expected in ((1.0, 0.9), (2.0, 0.755)):
        runs = [Ended(m, factor * n, n, sd, 1, True) for m, n in zip(means, sizes, strict=True)]
        assert coverage(runs, mean).mean() == pytest.approx(expected, abs=0.02)


@pytest.mark.slow
def test_problems_have_names_of_their_own_and_laws_of_their_dimension():
    some = list(tasks())
    labels = [task.label for task in some]
    assert len(set(labels)) == len(labels) >= 50
    assert sum(task.group == CATALOGUE for task in some) == 25
    assert all(task.label.endswith("±2") for task in some if task.group == UNSCALED)
    noisy = logistic(batch_size=BATCH)
    assert noisy.stochastic
    assert law_of(noisy).mean.size == noisy.dim
    assert isinstance(law_of(SPOTS), Law)
    assert law_of(classics.banana()).memberships is None


def test_a_tuned_run_spends_what_it_may_with_its_tuning():
    run, sampler, cost = tuned_measured(CASES["five_spots"], 250_000, 3)
    assert cost < 250_000
    assert 0.8 * 250_000 < run.gradients < 1.1 * 250_000
    assert 0.0 < run.error < 0.5
    little, _, cost = tuned_measured(CASES["five_spots"], 1_000, 3)  # less than the tuning: draws of 1,000 gradients
    assert cost < little.gradients < cost + 2_000
    assert little.error > run.error
    assert sampler.name in SAME
    assert set(SAME.values()) <= set(FAMILIES)


@pytest.mark.parametrize("name", list(BOXES))
def test_a_peers_energy_in_a_box_is_ours_up_to_a_constant(name):
    rng = np.random.default_rng(5)
    _, low, high = numpy_runs.BOXES[name]
    points = rng.uniform(low, high, (200, 2))
    problem = as_problem(BOXES[name].make())
    assert problem.contains(points).all()
    gaps = np.array(numpy_runs.energies(name, points)()) - problem.target.evaluate(points)[0]
    assert np.ptp(gaps[np.abs(gaps) < 1e6]) < 1e-8
    assert set(METHODS) == set(numpy_runs.METHODS)


def test_pigeons_barrier_and_restarts_are_those_of_its_theory():
    pairs = PIGEONS["rungs"] - 1
    rates = np.full(pairs, 1.0 - PIGEONS["barrier"] / pairs)
    assert float(expected_round_trips(rates, 1_024)) == pytest.approx(PIGEONS["restarts"], rel=0.05)
