"""Chains that stand still are named, with how long they do; those that are rejected now and then are not."""

import numpy as np

from targets import constrained, domains, mixtures
from toolkit import accumulators, boundaries, sample, samplers
from toolkit.diagnostics.standstill import longest_standstill

EDGE = constrained(mixtures.gaussian_mixture([[0.0, -2.0], [0.0, 2.0]], 0.7), domains.box([-0.7, -6.0], [6.0, 6.0]))
OPTIONS = {"n_steps": 50_000, "n_chains": 16, "seed": 4}


def still(run):
    return [sentence for sentence in run.warnings if "stood still" in sentence or "not moved once" in sentence]


def test_trajectories_of_half_a_period_at_a_wall_stand_still_and_random_ones_do_not():
    """10 leapfrogs of 0.2 on modes of sd 0.7: a chain that begins beyond a mode's centre ends behind the wall."""
    fixed = sample(EDGE, samplers.hmc(0.2, random_length=False, boundary=boundaries.reject()), **OPTIONS)
    found = still(fixed)
    assert len(found) == 1
    worst, share = longest_standstill(fixed)
    assert worst.steps > 200
    assert (
        f"Chain {worst.chain} stood still for {worst.steps:,} steps in a row, from step {worst.first:,} on" in found[0]
    )
    assert "give random_length=True" in found[0]
    held = fixed.draws[worst.chain, worst.first : worst.first + worst.steps + 1]
    assert (held == held[0]).all()
    assert (fixed.draws[worst.chain, worst.first - 1] != held[0]).any()
    assert (fixed.draws[worst.chain, worst.first + worst.steps + 1] != held[0]).any()
    assert abs(share - fixed.acceptance.mean()) < 1e-4
    free = sample(EDGE, samplers.hmc(0.2, boundary=boundaries.reject()), **OPTIONS)
    assert longest_standstill(free)[0].steps < 100
    assert still(free) == []


def test_chains_that_never_move_are_named_without_draws_too():
    """One of four chains takes steps of 100 on modes of width 0.1; accumulators keep no draws."""
    sampler = samplers.mala(np.array([0.001, 0.001, 100.0, 0.001]))
    target = mixtures.gaussian_mixture([[0.0, 0.0]], 0.1)
    options = {"n_steps": 500, "n_chains": 4, "seed": 5, "init": [0.05, 0.05]}
    gathered = sample(target, sampler, keep_draws=False, accumulators={"m": accumulators.moments()}, **options)
    for run in (gathered, sample(target, sampler, **options)):
        assert "In 1 of 4 chains, such as chain 2" in still(run)[0]
        assert "500 steps" in still(run)[0]
