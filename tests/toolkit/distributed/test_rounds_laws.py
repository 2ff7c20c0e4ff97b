"""Laws of a contour in groups: θ and weighted means against quadrature for any K, and θ's variance.

The oracles are those of ``tests/toolkit/tempering/test_contour_laws.py``: the bins' probabilities of N(0, 1), and for
two modes far apart their weights.
"""

import dataclasses
import math

import numpy as np
import pytest
from scipy.special import erf

from targets import mixtures
from toolkit import dynamics, sample, sample_in_rounds, samplers
from toolkit._distributed import rounds
from toolkit.tempering import Partition, step_decay
from toolkit.tempering.contour_groups import averaged

NORMAL = mixtures.gaussian_mixture([[0.0]], 1.0)
LOWEST = 0.5 * math.log(2.0 * math.pi)  # energy of N(0, 1) at its mode
SIGMAS = 4.5  # a right law fails with probability 7e-6 per comparison
CELLS = Partition(LOWEST, 0.5, 6)


def bin_masses(cells, temperature=1.0):
    """Probabilities of the bins under N(0, T), given that the energy is inside the partition."""
    mass = np.diff(erf(np.sqrt(np.maximum(cells.edges - LOWEST, 0.0) / temperature)))
    return mass / mass.sum()


def estimated_masses(run):
    """The bins' probabilities that θ (chain, bin) stands for."""
    power = run.theta**run.sampler.tempering.zeta
    return power / power.sum(axis=1, keepdims=True)


def deviation(values, law):
    """Deviation of the mean over independent chains, in standard errors."""
    return (values.mean(axis=0) - law) / (values.std(axis=0, ddof=1) / math.sqrt(len(values)))


def weighted_mean(run, values):
    """Each chain's own weighted mean of ``values`` (chain, draw)."""
    return (run.weights * values).sum(axis=1) / run.weights.sum(axis=1)


# K → chains and steps. A round costs a third of a millisecond a group, so with K = 1 chains are many and steps few.
SIZES = {1: (96, 5_000), 10: (96, 15_000), 100: (64, 60_000), 1000: (64, 60_000)}


def run_of(length, sampler, n_groups=2, seed=1):
    n_chains, n_steps = SIZES[length]
    start = np.random.default_rng(seed).standard_normal((n_chains, sampler.n_replicas, 1))
    return sample_in_rounds(
        NORMAL, sampler, n_groups=n_groups, steps_per_round=length, n_steps=n_steps, n_chains=n_chains,
        burn_in=n_steps // 2, thin=5, seed=seed, init=start, threads=1,
    )  # fmt: skip


@pytest.mark.slow_cases("1", "100")  # rounds of one step give the bits of `sample` (test_rounds.py)
@pytest.mark.parametrize("length", SIZES)
def test_theta_and_weighted_means_of_the_normal(length):
    """Bins' probabilities, each to 4 % for the step and 4.5 standard errors; weighted E x² and E x⁴ within 3 % and so.

    Not of another T, nor a bin further, nor the means of the draws without their weights.
    """
    run = run_of(length, samplers.icsgld(0.01, n_replicas=4, partition=CELLS, decay=step_decay(cap=1.0)))
    found, law = estimated_masses(run), bin_masses(CELLS)
    spread = found.std(axis=0, ddof=1) / math.sqrt(len(found))

    def agrees(masses):
        return (np.abs(found.mean(axis=0) - masses) < SIGMAS * spread + 0.04 * masses).all()

    assert agrees(law)
    assert not agrees(bin_masses(CELLS, 1.2))
    assert not agrees(np.roll(law, 1))
    x = run.draws[..., 0]
    for power, moment in ((2, 1.0), (4, 3.0)):
        values = weighted_mean(run, x**power)
        slack = 0.03 * moment / (values.std(ddof=1) / math.sqrt(len(values)))
        assert abs(deviation(values, moment)) < SIGMAS + slack
        assert abs(deviation((x**power).mean(axis=1), moment)) > SIGMAS + slack


@pytest.mark.slow_cases("underdamped")
@pytest.mark.parametrize(
    ("moves", "h"),
    [(dynamics.mala(), 0.05), (dynamics.underdamped_langevin(friction=1.0), 0.02)],
    ids=["mala", "underdamped"],
)
def test_the_law_does_not_depend_on_the_dynamics(moves, h):
    """Under a Metropolis test a group's step compares energies that its own θ has flattened."""
    plain = samplers.icsgld(h, n_replicas=4, partition=CELLS, decay=step_decay(cap=1.0))
    run = run_of(100, dataclasses.replace(plain, dynamics=moves))
    found, law = estimated_masses(run), bin_masses(CELLS)
    spread = found.std(axis=0, ddof=1) / math.sqrt(len(found))
    assert (np.abs(found.mean(axis=0) - law) < SIGMAS * spread + 0.06 * law).all()
    assert (np.abs(found.mean(axis=0) - bin_masses(CELLS, 1.3)) > SIGMAS * spread + 0.06 * law).any()
    values = weighted_mean(run, run.draws[..., 0] ** 2)
    slack = 0.03 / (values.std(ddof=1) / math.sqrt(len(values)))
    assert abs(deviation(values, 1.0)) < SIGMAS + slack


TWO = mixtures.gaussian_mixture([[-6.0], [4.0]], 1.0, [0.4, 0.6])


@pytest.mark.filterwarnings("ignore::toolkit.ContourWarning")
@pytest.mark.parametrize("length", [pytest.param(100, marks=pytest.mark.slow), 1000])
def test_two_modes_far_apart(length):
    """0.4 N(−6, 1) + 0.6 N(4, 1): replicas cross, and weights give 0.4 to the left; draws without weights do not."""
    start = np.where(np.arange(32) % 2 == 0, -6.0, 4.0)[:, None]
    run = sample_in_rounds(
        TWO, samplers.icsgld(0.1, n_replicas=4, partition=Partition(1.4, 0.5, 26)), n_groups=4, steps_per_round=length,
        n_steps=200_000, burn_in=50_000, thin=10, n_chains=32, seed=2, init=start,
    )  # fmt: skip
    left = run.draws[:, :, 0] < -1.0
    assert abs(deviation(weighted_mean(run, left), 0.4)) < SIGMAS
    assert abs(deviation(weighted_mean(run, left), 0.5)) > SIGMAS  # of where they start
    assert abs(deviation(left.mean(axis=1), 0.4)) > SIGMAS


# The variance of θ is that of all replicas: increments that are added up, or those of one group, have more.


def summed(shared, groups):
    """Increments added up."""
    right = averaged(shared, groups)
    theta = np.maximum(right.theta + (len(groups) - 1) * (right.theta - shared.theta), 1e-200)
    return right._replace(theta=np.where(right.visits > 0.0, theta / theta.sum(axis=1, keepdims=True), 0.0))


def first_alone(shared, groups):
    """The first group's θ."""
    own = {"theta": groups[0].theta, "scale": groups[0].scale}
    return averaged(shared, [group._replace(**own) for group in groups])


def spread_of(theta):
    """Squared distances of the chains' θ from their mean, (chain,)."""
    return ((theta - theta.mean(axis=0)) ** 2).sum(axis=1)


def log_ratio(one, many):
    """Logarithm of the ratio of two variances, and its standard error."""
    relative = [values.std(ddof=1) / values.mean() / math.sqrt(len(values)) for values in (one, many)]
    return math.log(one.mean() / many.mean()), math.hypot(*relative)


@pytest.mark.filterwarnings("ignore::toolkit.ContourWarning")
def test_the_variance_of_theta_is_that_of_all_replicas(monkeypatch):
    """8 replicas in 4 groups against 8 in one: the ratio is 1 to 10 % and 4.5 standard errors; about 4 where wrong."""
    sampler = samplers.icsgld(0.1, n_replicas=8, partition=CELLS, decay=step_decay(cap=1.0))
    n_chains, n_steps = 500, 6_000
    start = np.random.default_rng(1).standard_normal((n_chains, 8, 1))
    arguments = {"n_steps": n_steps, "burn_in": n_steps - 1}
    whole = spread_of(sample(NORMAL, sampler, seed=1, n_chains=n_chains, init=start, **arguments).theta)

    def in_groups(n_chains):
        grouped = {"n_groups": 4, "steps_per_round": 50, "seed": 2, "n_chains": n_chains, "init": start[:n_chains]}
        return spread_of(sample_in_rounds(NORMAL, sampler, **grouped, **arguments).theta)

    found, error = log_ratio(in_groups(n_chains), whole)
    assert abs(found) < SIGMAS * error + 0.1
    for wrong in (summed, first_alone):
        monkeypatch.setattr(rounds, "averaged", wrong)
        found, error = log_ratio(in_groups(100), whole)  # few are enough to tell
        assert found > SIGMAS * error + 0.1
