"""Nested R-hat: the definition, its law, and runs of many short chains that it judges."""

import numpy as np
import pytest
import scipy.stats

from targets import mixtures
from toolkit import Spread, accumulators, sample, samplers
from toolkit.diagnostics import nested_r_hat, r_hat
from toolkit.diagnostics.superchains import FALSE_ALARMS, FEWEST_CHAINS, LIMIT, SUPERCHAINS, by_starts

RNG = np.random.default_rng(5)
LINE = mixtures.gaussian_mixture([[0.6]], 1.7)


def by_definition(draws, k):
    """Definition 2.2 in loops, of one coordinate."""
    m = len(draws) // k
    groups = [draws[i * m : (i + 1) * m] for i in range(k)]
    within = []
    for group in groups:
        means = [np.mean(chain) for chain in group]
        own = np.var(means, ddof=1) if m > 1 else 0.0
        within.append(own + (np.mean([np.var(chain, ddof=1) for chain in group]) if draws.shape[1] > 1 else 0.0))
    between = np.var([np.mean(group) for group in groups], ddof=1)
    return np.sqrt(1.0 + between / np.mean(within))


@pytest.mark.parametrize(("chains", "draws", "k"), [(12, 5, 3), (12, 5, 12), (40, 1, 4), (6, 200, 2)])
@pytest.mark.parametrize("scale", [1.0, 1e-150, 1e150])
def test_it_is_the_definition(chains, draws, k, scale):
    values = RNG.normal(size=(chains, draws, 2)) + np.linspace(0.0, 2.0, chains)[:, None, None]
    expected = [by_definition(values[..., d], k) for d in range(2)]
    np.testing.assert_allclose(nested_r_hat(scale * values, k), expected, rtol=1e-10)


def test_chains_that_r_hat_cannot_judge():
    """Chains of two independent draws' worth: R-hat is near √2; B / W has the mean of its F law."""
    draws = RNG.normal(size=(512, 1, 1)) + RNG.normal(size=(512, 50, 1))
    assert 1.3 < r_hat(draws)[0] < 1.5
    excess = nested_r_hat(draws, 16)[0] ** 2 - 1.0
    ratio = excess / (1.02 / 32 / 2.02)  # the variance of a mean of 32 chains over the variance within
    low, high = scipy.stats.chi2.ppf([1e-6, 1.0 - 1e-6], 15) / 15
    assert low < ratio < high
    apart = draws + np.repeat(RNG.normal(size=16), 32)[:, None, None]
    assert nested_r_hat(apart, 16)[0] > 1.2


def test_what_cannot_be_grouped_is_refused():
    draws = RNG.normal(size=(10, 4, 1))
    with pytest.raises(ValueError, match="n_superchains must divide the number of chains, 10, got 4"):
        nested_r_hat(draws, 4)
    with pytest.raises(ValueError, match="n_superchains must be ≥ 2, got 1"):
        nested_r_hat(draws, 1)
    assert np.isnan(nested_r_hat(np.ones((4, 3, 1)), 2)).all()
    assert np.isinf(nested_r_hat(np.repeat([0.0, 1.0], 2)[:, None, None] * np.ones((4, 3, 1)), 2)).all()


def test_chance_is_an_f_law():
    """Of independent starts the share below the limit at a level of a fifth is a fifth; memory of them is found."""
    alarms, n = 0, 2_000
    size = 50
    limit = scipy.stats.f.isf(0.2, SUPERCHAINS - 1, SUPERCHAINS * (size - 1))
    for _ in range(n):
        groups = RNG.normal(size=(SUPERCHAINS, size))
        alarms += groups.mean(axis=1).var(ddof=1) > limit * groups.var(axis=1, ddof=1).mean() / size
    assert abs(alarms - 0.2 * n) < 4.5 * np.sqrt(0.16 * n)
    assert FALSE_ALARMS == 1e-4
    starts, noise = RNG.normal(size=(2, 4_000, 1))
    free = by_starts(noise[:, 0], np.full(4_000, 0.1), starts)
    tied = by_starts(noise[:, 0] + 0.3 * starts[:, 0], np.full(4_000, 0.1), starts)
    assert free.is_met
    assert not tied.is_met
    assert 0.2 < tied.excess < 0.4


@pytest.mark.parametrize("keeps", [True, False])
def test_many_short_chains_of_the_right_law_are_not_called_wrong(keeps):
    """2,000 chains of 40 draws that have forgotten their starts; R-hat alone says that no number holds."""
    moments = {"moments": accumulators.moments()}
    run = sample(
        LINE,
        samplers.mala(0.5),
        n_steps=100,
        burn_in=60,
        n_chains=2_000,
        seed=0,
        accumulators=moments,
        keep_draws=keeps,
    )
    found = [sentence for sentence in run.warnings if "R-hat" in sentence]
    assert found == []
    assert f"of {SUPERCHAINS} groups of chains by their starts" in str(run)
    if keeps:
        assert r_hat(run.draws)[0] > 2.0 * LIMIT - 1.0
        assert abs(run.draws.mean() - 0.6) < 4.5 * np.sqrt(run.draws.mean(axis=1).var() / 2_000)


def test_starts_that_are_remembered_are_reported():
    run = sample(LINE, samplers.sgld(0.05), n_steps=40, burn_in=5, n_chains=2_000, seed=0)
    (sentence,) = [sentence for sentence in run.warnings if "R-hat" in sentence]
    assert "in different places, by their starts" in sentence


def test_chains_that_stay_in_their_modes_are_reported():
    apart = mixtures.gaussian_mixture([[-6.0], [6.0]], 1.0, [0.3, 0.7])
    run = sample(apart, samplers.mala(1.0), n_steps=100, burn_in=50, n_chains=2_000, seed=1, init=Spread(9.0))
    (sentence,) = [sentence for sentence in run.warnings if "R-hat" in sentence]
    assert "no number of the table holds for the target" in sentence
    one = sample(apart, samplers.mala(1.0), n_steps=100, burn_in=50, n_chains=2_000, seed=1, init=[0.0])
    assert "not computed, as all chains have one start" in str(one)
    assert any("R-hat is" in sentence for sentence in one.warnings)


def test_few_chains_are_judged_by_r_hat():
    run = sample(LINE, samplers.mala(0.5), n_steps=100, burn_in=60, n_chains=FEWEST_CHAINS - 1, seed=0)
    assert any(sentence.startswith("R-hat is") for sentence in run.warnings)
    assert "nested" not in str(run)


def test_groups_within_which_nothing_moves():
    """Starts in 16 equal groups, and chains that stay there: inf, as R-hat, and not a division by zero."""
    starts = np.repeat(np.arange(16.0), 60)[:, None]
    found = by_starts(starts[:, 0], np.zeros(960), starts)
    assert (found.value, found.excess, found.is_met) == (np.inf, np.inf, False)
    fixed = by_starts(np.full(960, 2.0), np.zeros(960), starts)
    assert (fixed.value, fixed.excess, fixed.is_met) == (1.0, 0.0, True)


def test_a_run_in_which_nothing_moves_says_so():
    init = np.repeat(np.arange(16.0), 60)[:, None, None] * np.ones((1, 1, 1))
    run = sample(LINE, samplers.sgld(1e-300), n_steps=100, n_chains=960, seed=0, init=init)
    (sentence,) = [sentence for sentence in run.warnings if "R-hat" in sentence]
    assert "no chain moves it" in sentence
    assert "R-hat" in str(run)
