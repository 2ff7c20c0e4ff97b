"""Parallel tempering of MALA, HMC and BAOAB: every replica has the law of its temperature, in a domain too."""

import numpy as np
import pytest

from targets import constrained, domains, mixtures
from toolkit import boundaries, sample, samplers

SIGMAS = 4.5
LADDER = (1.0, 2.5, 6.0)
PAIR = mixtures.gaussian_mixture([[-2.0], [2.0]], 0.25, [0.3, 0.7])  # a barrier of 6 to 7 nats
LINE = np.linspace(-9.0, 9.0, 20_001)
MADE = {  # BAOAB's step is such that its bias, that of reflection included, is below the standard errors here
    "pt_mala": lambda **own: samplers.pt_mala((0.1, 0.2, 0.3), temperatures=LADDER, **own),
    "pt_hmc": lambda **own: samplers.pt_hmc((0.2, 0.3, 0.4), temperatures=LADDER, n_leapfrogs=4, **own),
    "pt_baoab": lambda **own: samplers.pt_baoab((0.005,) * 3, temperatures=LADDER, **own),
}
STATISTICS = (lambda x: x > 0.0, lambda x: x**2, lambda x: np.abs(x) < 1.0)


def expected(target, temperature, low=-np.inf, high=np.inf):
    """Means of the statistics under exp(−U/T) between ``low`` and ``high``, by sums over a fine grid."""
    energies = target.evaluate(LINE[:, None])[0]
    density = np.exp(-(energies - energies.min()) / temperature) * ((low <= LINE) & (high >= LINE))
    return np.array([(density * of(LINE)).sum() for of in STATISTICS]) / density.sum()


def means_of(run):
    """Each chain's means of the statistics, (replica, statistic, chain)."""
    places = run.replica_draws[..., 0]
    return np.array([of(places).mean(axis=2).T for of in STATISTICS]).swapaxes(0, 1)


def deviations(means, laws):
    """Standard errors that each replica's statistics are off its law's, (replica, statistic); errors from chains."""
    errors = means.std(axis=2, ddof=1) / np.sqrt(means.shape[2])
    return (means.mean(axis=2) - np.array(laws)) / errors


def run_of(name, problem=PAIR, share=1, **own):
    """A run, or one of a ``share`` of the steps."""
    return sample(
        problem, MADE[name](**own), n_steps=(12_000 if name == "pt_baoab" else 6_000) // share, burn_in=1_000,
        n_chains=400, seed=5, init=[-2.0], keep_replicas=True, progress=False,
    )  # fmt: skip


@pytest.mark.parametrize("name", MADE)
def test_every_replica_has_the_law_of_its_temperature(name):
    """From a start in the lighter mode alone."""
    means = means_of(run_of(name))
    assert np.abs(deviations(means, [expected(PAIR, t) for t in LADDER])).max() < SIGMAS
    assert np.abs(deviations(means, [expected(PAIR, 0.95 * t) for t in LADDER])).max() > SIGMAS
    assert np.abs(deviations(means, [expected(PAIR, t) for t in LADDER[::-1]])).max() > 100.0


@pytest.mark.parametrize("name", MADE)
def test_without_swaps_the_coldest_keeps_to_its_mode(name):
    alone = means_of(run_of(name, share=3, swap_every=10**9))
    assert np.abs(deviations(alone, [expected(PAIR, t) for t in LADDER]))[0].max() > 2.0 * SIGMAS


@pytest.mark.parametrize("name", MADE)
def test_in_a_domain(name):
    """Rejection is exact with a Metropolis test, and reflection for BAOAB as its step goes to 0."""
    low, high = -2.2, 3.0
    boxed = constrained(PAIR, domains.box([low], [high]))
    edge = boundaries.reflect() if name == "pt_baoab" else boundaries.reject()
    run = run_of(name, boxed, boundary=edge)
    assert low <= run.replica_draws.min() <= run.replica_draws.max() <= high
    means = means_of(run)
    assert np.abs(deviations(means, [expected(PAIR, t, low, high) for t in LADDER])).max() < SIGMAS
    assert np.abs(deviations(means, [expected(PAIR, t) for t in LADDER])).max() > SIGMAS


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize(("swap_every", "window"), [(1, 1), (3, 1), (1, 4)])
def test_even_and_odd_pairs_take_turns(name, swap_every, window):
    """One pair is tried at every attempt, and each at half of them but for the last window; step 0 swaps nothing."""
    run = sample(PAIR, MADE[name](swap_every=swap_every, window=window), n_steps=241, n_chains=3, seed=1, init=[0.0])
    attempts = run.counts.attempted
    assert (attempts.sum(axis=1) == 240 // swap_every).all()
    assert (np.abs(attempts[:, 0] - attempts[:, 1]) <= window).all()


def test_noise_of_the_energy_needs_its_correction():
    """Energy noise of standard deviation 1 in BAOAB's swaps: the law holds with the correction of 1, not without."""
    laws = [expected(PAIR, t) for t in LADDER]
    right = means_of(run_of("pt_baoab", energy_noise=1.0))
    wrong = means_of(run_of("pt_baoab", share=3, energy_noise=1.0, correction=0.0))
    assert np.abs(deviations(right, laws)).max() < SIGMAS
    assert np.abs(deviations(wrong, laws)).max() > SIGMAS
