"""The tables of speed: that wrong draws are seen, aims are counted, and ours, the loop and the ceiling do the same."""

import itertools

import numpy as np
import pytest

from benchmarks.ceilings import CEILINGS, langevin
from benchmarks.speed import engine, one_chain, peer_chains, scalar_loops
from benchmarks.speed.chain_cases import EVERY_SAMPLER, PEERS, SAMPLERS, SCALAR, TARGETS, H
from toolkit import samplers


@pytest.mark.parametrize("target", TARGETS)
def test_right_draws_pass_and_wrong_ones_do_not(target):
    points = peer_chains.exact_draws(target)[:32_000].reshape(16, 2000, 2)
    weights = np.ones((16, 2000))
    assert peer_chains.deviation(target, points, weights) < 1.0
    nearest = peer_chains.SPACING[target] * np.round(points / peer_chains.SPACING[target])
    assert peer_chains.deviation(target, nearest, weights) > 1.0, "chains that never left where they began"
    hot = nearest + np.sqrt(2.0) * (points - nearest)
    assert peer_chains.deviation(target, hot, weights) > 1.0, "noise of twice its power"
    assert peer_chains.deviation(target, 0.8 * nearest + (points - nearest), weights) > 1.0, "modes in the wrong place"
    assert peer_chains.deviation(target, np.full_like(points, np.nan), weights) == np.inf


def test_weights_count():
    points = peer_chains.exact_draws("gaussian_grid25")[:32_000].reshape(16, 2000, 2)
    far = np.abs(points).max(-1) > 3.0
    thinned = np.where(far, 0.5, 1.0)
    assert peer_chains.deviation("gaussian_grid25", points, thinned) > 1.0
    kept = np.random.default_rng(1).random(far.shape) < thinned
    there = np.where(kept[..., None], points, 0.0)
    assert peer_chains.deviation("gaussian_grid25", there, kept / thinned) < 1.0


@pytest.mark.parametrize("name", ["sghmc", "resgld × 2", "hmc, 10 leapfrogs"])
def test_a_scalar_loop_has_the_law(name):
    loop, *numbers = SCALAR[name]
    out = np.zeros((1, 40_000, 2))
    arguments = [np.asarray(one) if isinstance(one, tuple) else one for one in numbers]
    scalar_loops.LOOPS[loop](scalar_loops.TARGETS["gaussian_grid25"], 1, 40_000, True, out, *arguments)
    away = out - 2.0 * np.round(out / 2.0)
    assert np.square(away[0, 1000:]).mean() == pytest.approx(0.03, rel=0.12)


@pytest.mark.parametrize("name", TARGETS)
def test_the_floor_of_one_chain_steps_down_the_targets_gradient(name):
    place = np.array([[0.3, 0.4]])
    for _ in range(30):
        place = place + 0.01 - H * TARGETS[name].evaluate(place)[1]
    assert langevin.drift_kernel(langevin.POINTS[name])(30) == pytest.approx(place.sum(), rel=1e-12)
    assert langevin.drift_seconds(name, 1000) > 0.0


def test_every_constructor_is_in_the_table():
    made_as = {sampler.name for sampler in EVERY_SAMPLER.values()}
    assert made_as == set(samplers.__all__) - {"Sampler"}
    assert set(PEERS) <= set(SAMPLERS)
    assert set(SCALAR) <= set(SAMPLERS)
    assert set(itertools.product(SAMPLERS, TARGETS)) <= set(CEILINGS)
    assert {name for name, *_ in one_chain.rows(is_small=False)} <= set(PEERS) & set(SCALAR)


def test_numbers_of_peers_are_those_of_the_samplers():
    for name, sampler in SAMPLERS.items():
        for peer in PEERS.get(name, []):
            assert peer_chains.replicas_of(peer) == sampler.n_replicas
            assert np.all(np.asarray(peer.numbers["h"]) == np.asarray(sampler.step_sizes)), name
            if "temperatures" in peer.numbers:
                assert tuple(peer.numbers["temperatures"]) == tuple(sampler.temperatures)


def test_aims_are_counted():
    assert "2 of 3 rows" in engine.aim("× ceiling", 0.75, [0.5, 0.75, 1.0], "64 chains")
    assert "no rows" in engine.aim("× ceiling", 0.75, [], "64 chains")


def test_a_run_has_the_length_that_was_asked_for():
    class Run:
        processor_seconds = 0.0
        steps = 0

        def seconds(self):
            self.processor_seconds = 1e-6 * self.steps
            return 0.0

    def make(n_steps):
        run = Run()
        run.steps = n_steps
        return run

    timed = peer_chains.sized(make, 0.1, 64)
    assert timed.n_steps % 64 == 0
    assert 0.04 < 1e-6 * timed.n_steps < 0.2
