"""Digits, small: scores against their definitions, equal cost of all methods, and claims that say why."""

import numpy as np
import pytest

from figures import Study
from figures.papers.csgmcmc import digits

NAMES = ("csgmcmc_table1_digits", "icsgld_fig2")


def test_scores_by_their_definitions():
    rng = np.random.default_rng(1)
    answers = rng.integers(0, 10, 60)
    said = rng.dirichlet(np.ones(10), (2, 60))
    correct, confidence, loss = digits.classified(said, answers)
    entropy = digits.entropies(rng.dirichlet(np.ones(5), (2, 60)))
    scores = digits.Scores(correct[None], confidence[None], loss[None], entropy[None], answers)
    found = digits.metrics(scores, np.ones((1, 60)))[..., 0]
    assert found[0, 0] == pytest.approx((said.argmax(axis=2) == answers).mean(axis=1))
    assert found[1, 0] == pytest.approx(-np.log(said[:, np.arange(60), answers]).mean(axis=1))
    low, high = entropy[:, answers < 5], entropy[:, answers >= 5]
    assert found[3, 0] == pytest.approx((high[:, :, None] > low[:, None]).mean(axis=(1, 2)))
    by_hand = 0.0
    for k in range(digits.BINS):
        inside = (confidence[0] * digits.BINS >= k) & (confidence[0] * digits.BINS < k + 1)
        by_hand += abs((correct[0] - confidence[0])[inside].sum()) / 60
    assert found[2, 0, 0] == pytest.approx(by_hand)


def test_all_methods_cost_the_same(produced):
    records = [r for r in produced("csgmcmc_table1_digits").measured.records if "large steps" not in r.label]
    assert len(records) == 2 * len(digits.METHODS)
    for record in records:
        members = digits.METHODS[record.label.split(", ", 1)[1].rpartition(", ")[0]].members
        assert record.gradient_evaluations == 80 * record.chains // members


@pytest.mark.slow
def test_reflected_methods_are_those_without_with_walls():
    """Same sampler and step sizes, all weights in [−4, 4]; far from the walls the same draws."""
    part = digits.split(*(values[:60] for values in digits.digits()))
    target, study = digits.network(part), Study(quick=True, seed=3)
    pairs = {name: method.steps_of for name, method in digits.METHODS.items() if method.reflects}
    assert pairs == {"R-SGD": "SGD", "R-SGHMC": "SGHMC", "R-cSGHMC": "cSGHMC", "r2SGHMC ×4": "reSGHMC ×4"}
    for name, free in pairs.items():
        found = [digits.run_method(study, each, target, digits.METHODS[each], np.array([0.1 / 42]), 40)
                 for each in (name, free)]  # fmt: skip
        np.testing.assert_array_equal(found[0].draws, found[1].draws)
        assert (found[0].reflections.sum(), found[0].sampler.boundary.kind) == (0, "reflect")
    wild = digits.run_method(study, "R-SGD", target, digits.METHODS["R-SGD"], np.array([10.0 / 42]), 40)
    assert wild.reflections.sum() > 0
    assert np.abs(wild.draws).max() <= digits.WALL


def test_energies_go_down(produced):
    energies = produced("icsgld_fig2").measured.data["energies"]
    assert (energies[:, :, -1] < 0.5 * energies[:, :, 0]).all()


@pytest.mark.parametrize("name", NAMES)
def test_claims_and_files(produced, name):
    product = produced(name)
    claims = product.script.compare(product.measured.data)
    assert len(claims) >= 3
    assert all(claim.why for claim in claims)
    assert [path.suffix for path in product.paths] == [".png", ".csv"]
    assert product.script.differs
    assert product.script.caption


def test_a_run_of_which_all_chains_diverge_knows_nothing():
    """Its error's run takes the place of a run, with a draw or without."""
    part = digits.split(*(values[:60] for values in digits.digits()))
    target = digits.network(part)
    study = Study(quick=True, seed=3)
    for name in ("SGHMC", "SGD"):
        run = digits.run_method(study, name, target, digits.METHODS[name], np.array([1e6, 1e7]), 40)
        assert run.diverged.all()
        said = digits.predictions(run, digits.ONE_LAYER, target, 1, part.asked)
        assert said.shape == (2, 18, 10)
        assert np.isnan(said).all()
        assert digits.classified(said, part.answers)[2] == pytest.approx(np.log(10.0))
        assert np.isfinite(digits.about(run)[1:]).all()
    assert len(study.records) == 2
