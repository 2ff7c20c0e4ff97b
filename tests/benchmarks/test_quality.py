"""The logic of `make bench`'s table of quality: errors, what they are worth, the search for settings, the advice."""

import math

import numpy as np
import pytest

from benchmarks.quality.advice import half, kinds, rates, ratio, scores
from benchmarks.quality.nuts import measured
from benchmarks.quality.problems import CASES, FAR, HIGH, Case
from benchmarks.quality.runs import Measured, measure, shrunk
from benchmarks.quality.samplers import FAMILIES, Knob
from benchmarks.quality.search import block, search
from benchmarks.quality.settings import SETTINGS
from targets import classics, mixtures
from toolkit.accumulators import HistogramSoFar, MomentsSoFar
from toolkit.diagnostics import cell_counts, equivalent_draws

SPOTS = Case((FAR,), mixtures.five_spots)
TIED = Case((HIGH,), lambda: classics.correlated_gaussian(dim=4), plane=False)


def counts_of(draws):
    return cell_counts(draws, *SPOTS.edges), float(len(draws))


def test_independent_draws_are_worth_their_number_and_draws_of_another_law_are_not():
    draws = SPOTS.truth.independent_draws(40_000, seed=3)
    assert SPOTS.worth(SPOTS.error_of_counts(*counts_of(draws))) == pytest.approx(40_000, rel=0.25)
    assert SPOTS.worth(SPOTS.error_of_counts(*counts_of(draws + np.array([0.4, 0.0])))) < 4_000
    assert SPOTS.worth(SPOTS.error_of_counts(*counts_of(draws[draws[:, 0] > 0.0]))) == 0.0
    assert SPOTS.worth(math.inf) == 0.0
    assert SPOTS.worth(1e-3) == pytest.approx(float(equivalent_draws(1e-3, SPOTS.masses)), rel=1e-3)
    assert SPOTS.worth(SPOTS.floor(100_000)) == pytest.approx(100_000, rel=0.01)


def test_the_worst_coordinate_is_worth_as_many_independent_draws():
    sets = TIED.truth.independent_draws(200_000, seed=4).reshape(50, 4_000, 4)
    worth = [TIED.worth(TIED.error_of_moments(x.mean(axis=0), x.std(axis=0))) for x in sets]
    assert np.median(worth) == pytest.approx(4_000, rel=0.4)
    mean, deviation = np.zeros(4), np.ones(4)
    assert TIED.error_of_moments(mean + np.array([0.0, 0.1, 0.0, -0.3]), deviation) == pytest.approx(0.3)
    assert TIED.error_of_moments(mean, deviation + np.array([0.0, -0.4, 0.1, 0.0])) == pytest.approx(0.4)


def test_weights_that_hold_up_to_a_factor_of_each_chain_count_every_chain_alike():
    """Two chains, each with half of the truth, the second with weights a thousand times as large."""
    left, right = np.zeros((2, *SPOTS.masses.shape))
    left[:10], right[10:] = SPOTS.masses[:10] / SPOTS.masses[:10].sum(), SPOTS.masses[10:] / SPOTS.masses[10:].sum()
    counts = 1e6 * np.stack([left, 1e3 * right])
    gathered = HistogramSoFar(counts, np.zeros(2), np.full(2, 10**6), *SPOTS.edges)
    assert SPOTS.error(gathered, by_chain=True) < 0.01 < 0.1 < SPOTS.error(gathered, by_chain=False)
    mean = np.array([[1.0] * 4, [-1.0] * 4])
    spread = np.tile(np.eye(4) * 1e-12, (2, 1, 1))
    weight = np.array([1.0, 1e3])
    nothing = np.zeros(4)
    moments = MomentsSoFar(np.full(2, 9), weight, weight, mean, spread, nothing, spread[0], nothing)
    assert TIED.error(moments, by_chain=True) < 1e-6 < 0.9 < TIED.error(moments, by_chain=False)


def test_a_run_makes_the_gradients_asked_for_and_its_step_shrinks_with_them():
    run = measure(TIED, "sgld", {"step": 0.2}, 20_000, seed=1)
    assert 0.99 * 20_000 < run.gradients <= 20_000
    assert 0.0 < run.error < 0.5
    assert shrunk(TIED, "sgld", {"step": 0.2}, 8 * TIED.tuned_for)["step"] == pytest.approx(0.1)
    assert shrunk(TIED, "sgld", {"step": 0.2}, TIED.tuned_for // 8)["step"] == 0.2
    assert shrunk(TIED, "mala", {"step": 0.2}, 8 * TIED.tuned_for)["step"] == 0.2


def test_a_peers_sums_are_its_draws_moments_and_cells():
    draws = np.array([[1.0, 2.0, 0.0, -1.0], [3.0, -2.0, 1.0, 0.0], [0.5, 0.5, 0.5, 0.5]])
    sums = [*draws.sum(axis=0), *(draws**2).sum(axis=0), 3.0]
    said = {"sums": sums, "gradients": 7, "seconds": 0.5}
    assert measured(TIED, said) == pytest.approx((TIED.error_of_moments(draws.mean(axis=0), draws.std(axis=0)), 7, 0.5))
    counts, total = counts_of(SPOTS.exact[:500])
    said["sums"] = [*counts.ravel(), total - counts.sum()]
    assert measured(SPOTS, said).error == pytest.approx(SPOTS.error_of_counts(counts, total))


def test_the_search_spends_what_it_may_and_finds_the_valley():
    knobs = {"a": Knob(1.0, 3.0, 1e-3, 1e3), "b": Knob(1.0, 3.0, 0.5, 1e3)}
    tried = []

    def loss(values):
        tried.append(tuple(values.values()))
        return math.log(values["a"] / 20.0) ** 2 + math.log(values["b"] / 0.1) ** 2

    best = search(loss, knobs, 30)
    assert len(tried) == len(set(tried)) == 30
    assert best["a"] == pytest.approx(20.0, rel=0.2)
    assert best["b"] == 0.5
    steep = search(lambda values: math.inf if values["a"] > 0.05 else values["a"] + values["b"], knobs, 12)
    assert steep["a"] < 0.05  # from where all is infinite, and so are all neighbours


def test_settings_are_of_the_families_and_problems_that_there_are():
    assert set(SETTINGS) == set(CASES)
    for name, settings in SETTINGS.items():
        assert set(settings) <= set(FAMILIES), name
        assert all(len(values) == len(FAMILIES[family].knobs) for family, values in settings.items())
    entry = block("a, b", {"resgld, r2sgld": (0.1, 2.0), "mala × exchange": (3.0,)})
    assert eval("{" + entry + "}") == {"a, b": {"resgld, r2sgld": (0.1, 2.0), "mala × exchange": (3.0,)}}


def run_worth(n, seconds):
    return {1_000_000: [Measured(SPOTS.floor(n), 1_000_000, seconds)]}


def test_the_advice_is_the_best_by_seconds_over_all_problems_of_a_kind():
    even = {"sgld": run_worth(2_000, 1.0), "NUTS": run_worth(20_000, 20.0), "hmc": run_worth(8_000, 1.0)}
    odd = {"sgld": run_worth(8_000, 1.0), "NUTS": run_worth(20_000, 20.0), "hmc": run_worth(4_000, 1.0)}
    some = {"five_spots": even, "gaussian_grid25": odd}
    by_second = {"five_spots": {"sgld": 2e3, "NUTS": 1e3, "hmc": 8e3}}
    found = rates({"five_spots": even}, True, 1_000_000, True)
    assert found["five_spots"] == pytest.approx(by_second["five_spots"], rel=0.02)
    shares = scores({**by_second, "gaussian_grid25": {"sgld": 8e3, "NUTS": 1e3, "hmc": 4e3}})
    assert shares == pytest.approx({"sgld": 0.5, "NUTS": 0.125, "hmc": 0.5**0.5})
    assert ratio(by_second, "hmc", "NUTS") == "8"
    assert ratio(by_second, "hmc", "mala") == "–"
    assert ratio({"five_spots": {"hmc": 1.0, "sgld": 0.0}}, "hmc", "sgld") == "∞"
    assert list(kinds(some, {})[FAR]) == ["five_spots", "gaussian_grid25"]


def test_what_is_told_of_a_sampler_is_not_of_the_runs_by_which_it_is_chosen():
    lucky, usual = run_worth(20_000, 1.0)[1_000_000][0], run_worth(2_000, 1.0)[1_000_000][0]
    some = {"five_spots": {"sgld": {1_000_000: [lucky, usual, lucky, usual]}}}
    assert rates(some, True, 1_000_000, True)["five_spots"]["sgld"] == pytest.approx(2e4, rel=0.02)
    assert rates(some, True, 1_000_000, False)["five_spots"]["sgld"] == pytest.approx(2e3, rel=0.02)
    assert half([lucky], True) == half([lucky], False) == [lucky]
