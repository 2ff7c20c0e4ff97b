"""Replica exchange against closed forms: acceptance, invariance, noisy energies; and what wrong swaps would give."""

from itertools import pairwise

import numpy as np
import pytest
from numba import types
from scipy import stats
from scipy.special import betainc

from targets import constrained, mixtures, shapes
from tests.support.simple_targets import standard_normal
from toolkit import Layout, Problem, boundaries, sample, samplers, schedules, tempering
from toolkit._compiler import signatures
from toolkit._compiler.block_rows import ALIVE, ENERGY, PLACE, TEMPERATURE
from toolkit._compiler.decorators import compile_part
from toolkit._engine.job import make_job
from toolkit._engine.run_options import RunOptions
from toolkit._engine.settings import engine_numbers
from toolkit._engine.state import NUMBERS, STATE, make_blocks, make_state
from toolkit.tempering import exchange

CHAINS = 40_000
SIGMAS = 4.5  # a right law fails with probability 7e-6 per comparison


def equilibrium(temperatures, dim, seed):
    """Exact draws (chain, replica, dim) of N(0, T I) for each temperature."""
    z = np.random.default_rng(seed).standard_normal((CHAINS, len(temperatures), dim))
    return z * np.sqrt(temperatures)[:, None]


def run_exchange(temperatures, dim, seed, n_steps=40, step_size=1e-3, **options):
    sizes = [step_size * t for t in temperatures]
    sampler = samplers.resgld(sizes, temperatures=temperatures, **options)
    start = equilibrium(temperatures, dim, seed)
    return sample(standard_normal(dim), sampler, n_steps=n_steps, n_chains=CHAINS, thin=n_steps, init=start, seed=seed)


def acceptance(dim, cold, hot):
    """E min(1, S) for N(0, cold I) and N(0, hot I): twice the chance that the colder energy is the larger."""
    return 2.0 * betainc(dim / 2, dim / 2, cold / (cold + hot))


def rate_error(rates, law):
    """Deviation of the mean rate over independent chains in standard errors."""
    return (rates.mean() - law) / (rates.std(ddof=1) / np.sqrt(rates.size))


@pytest.mark.cases(3)
@pytest.mark.parametrize("dim", [1, 2, 5])
@pytest.mark.parametrize(("cold", "hot"), [(1.0, 1.5), (1.0, 10.0), (0.25, 1.0)])
def test_acceptance_equals_its_closed_form(dim, cold, hot):
    run = run_exchange((cold, hot), dim, seed=21)
    rates = run.swap_rates[:, 0]
    law = acceptance(dim, cold, hot)
    assert abs(rate_error(rates, law)) < SIGMAS
    energy = 0.5 * (equilibrium((cold, hot), dim, seed=5) ** 2).sum(axis=2)
    exponent = (1.0 / cold - 1.0 / hot) * (energy[:, 0] - energy[:, 1])
    for wrong in (0.8 * law, np.minimum(1.0, np.exp(-exponent)).mean()):  # the second: the sign turned round
        assert abs(rate_error(rates, wrong)) > SIGMAS


def test_every_pair_of_a_ladder_at_any_interval():
    temperatures = (1.0, 2.0, 6.0, 9.0)
    run = run_exchange(temperatures, 2, seed=22, swap_every=3, n_steps=60)
    assert run.swap_rates.shape == (CHAINS, 3)
    for pair, (cold, hot) in enumerate(pairwise(temperatures)):
        assert abs(rate_error(run.swap_rates[:, pair], acceptance(2, cold, hot))) < SIGMAS
    attempts = np.array([9, 10, 9])  # attempts 1 … 19 at steps 3, 6, … 57; the pairs (0,1), (2,3) on even numbers
    np.testing.assert_allclose(run.swap_rates * attempts, run.swaps)


def test_swaps_after_burn_in_are_counted():
    sampler = samplers.resgld((1e-3, 1e-3), temperatures=(1.0, 1.0001))  # accepts all but surely
    run = sample(standard_normal(1), sampler, n_steps=100, burn_in=60, n_chains=50, seed=1)
    assert run.swaps.max() == 40  # at steps 60 … 99
    assert run.swap_rates.mean() > 0.99


def test_rates_before_the_first_attempt_are_nan():
    run = sample(standard_normal(1), samplers.resgld((0.1, 0.1), temperatures=(1.0, 2.0)), n_steps=1, seed=1)
    assert np.isnan(run.swap_rates).all()


def swap_once(state, numbers, parameters):
    rungs = state.rows[PLACE : PLACE + exchange.RUNG_ROWS]
    exchange.find_rungs(rungs, state.base_step_size, state.rows[TEMPERATURE], 1, True)
    exchange.swap_replicas(state, numbers, parameters, 2)


@pytest.mark.cases(1)
@pytest.mark.parametrize("alive", [(1.0, 1.0), (0.0, 1.0), (1.0, 0.0)])
def test_a_swap_exchanges_positions_and_rescales_momenta(alive):
    """Momentum of temperature T has variance T, so it changes hands by √(T_new / T_old); none where one is dead."""
    swap = compile_part(swap_once, types.void(STATE, NUMBERS, signatures.FLOATS))
    rule = tempering.replica_exchange()
    step_sizes, temperatures = (0.04, 0.16), (1.0, 4.0)  # half kicks of 0.1 and 0.2 times the gradient
    sampler = samplers.r2sghmc(step_sizes, temperatures=temperatures, boundary=boundaries.ignore())
    job = make_job(standard_normal(2), sampler, RunOptions(n_steps=3, seed=1, init=np.zeros(2)))
    lanes = make_state(job.problem, sampler, job.init, 0)
    state, energy = lanes.exchange, lanes.rows[ENERGY]
    position, momentum, gradient = lanes.position, lanes.momentum, lanes.gradient
    curvature = np.zeros_like(position)
    lanes = lanes._replace(curvature=curvature)
    for k, values in ((1, position), (10, momentum), (100, gradient), (1000, curvature)):
        values[:, :2] = np.array([[1.0, 2.0], [3.0, 4.0]]) * k
    energy[:2], lanes.rows[TEMPERATURE, :2], lanes.rows[ALIVE, :2] = (50.0, 0.0), temperatures, alive
    swap(lanes, engine_numbers(job)._replace(n_chains=1), rule.parameters(0.0, 0))
    position, momentum, gradient, curvature, energy = (
        values[..., :2] for values in (position, momentum, gradient, curvature, energy)
    )
    if min(alive) == 0.0:
        assert (position.tolist(), state.accepted.item()) == ([[1.0, 2.0], [3.0, 4.0]], 0)
        return
    assert position.tolist() == [[2.0, 1.0], [4.0, 3.0]]
    assert gradient.tolist() == [[200.0, 100.0], [400.0, 300.0]]
    assert curvature.tolist() == [[2000.0, 1000.0], [4000.0, 3000.0]]
    assert energy.tolist() == [0.0, 50.0]
    # Each coordinate's p, 10 and 20 or 30 and 40, is brought to the position's time, scaled, and taken back.
    expected = [
        [(b - 0.2 * h) / 2 + 0.1 * h, (a - 0.1 * g) * 2 + 0.2 * g]
        for (a, b), (g, h) in (((10.0, 20.0), (100.0, 200.0)), ((30.0, 40.0), (300.0, 400.0)))
    ]
    np.testing.assert_allclose(momentum, expected, rtol=1e-15)
    assert (state.attempted.item(), state.accepted.item()) == (1, 1)
    assert state.walker[:2].tolist() == [1, 0]


def pvalue(run, temperature):
    """Of the cold draws' being N(0, temperature), by Kolmogorov and Smirnov."""
    return stats.kstest(run.draws.ravel() / np.sqrt(temperature), stats.norm.cdf).pvalue


def test_swaps_leave_each_temperature_as_it_is():
    run = run_exchange((1.0, 4.0), 1, seed=23)
    assert run.swap_rates.mean() > 0.4
    assert pvalue(run, 1.0) > 1e-5
    assert pvalue(run, 4.0) < 1e-9


def test_the_released_threshold_rule_is_biased():
    """The rule the paper's figure used, and what it does: it heats the cold replica, from variance 1 to about 3."""
    run = run_exchange((1.0, 4.0), 1, seed=23, swap_threshold=3e-4, correction=2.0)
    assert run.swap_rates.mean() > 0.9
    assert 2.5 < run.draws.var() < 3.5


def test_noisy_energies_need_their_correction():
    """With normal noise of sd s per energy the correction s² keeps the law; half of it, or none, does not."""
    noise = 2.5
    right = run_exchange((1.0, 4.0), 1, seed=24, energy_noise=noise)
    assert right.sampler.correction == noise**2
    assert pvalue(right, 1.0) > 1e-5
    for wrong in (0.0, 0.5 * noise**2):
        assert pvalue(run_exchange((1.0, 4.0), 1, seed=24, energy_noise=noise, correction=wrong), 1.0) < 1e-9


def test_one_replica_is_no_tempering():
    """The cold replica of a ladder that never swaps is the plain sampler, bit for bit."""
    never = samplers.resgld((0.1, 0.3), temperatures=(1.0, 5.0), correction=1e6)
    plain = samplers.sgld(0.1)
    arguments = {"n_steps": 50, "n_chains": 5, "seed": 3, "init": [0.5]}
    ladder = sample(standard_normal(1), never, **arguments)
    assert ladder.swaps.sum() == 0
    np.testing.assert_array_equal(ladder.draws, sample(standard_normal(1), plain, **arguments).draws)


def test_no_swap_is_attempted_at_temperature_0():
    flower = constrained(mixtures.cosine25(), shapes.flower())
    schedule = schedules.cosine_cycles(4, exploration=0.75, floor=0.2)
    run = sample(flower, samplers.r2sgld(schedule=schedule), n_steps=4000, n_chains=20, seed=1)
    plain = sample(flower, samplers.r2sgld(step_sizes=(1e-4, 3e-4)), n_steps=1000, n_chains=20, seed=1)
    assert run.swap_rates.mean() == pytest.approx(plain.swap_rates.mean(), abs=0.05)


def test_blocks_of_a_long_ladder_hold_chains_enough_for_the_loops_of_swaps():
    def sizes(sampler, layout=Layout()):
        blocks = make_blocks(Problem(standard_normal(1)), sampler, np.zeros((100, sampler.n_replicas, 1)), layout, 1)
        return [block.last - block.first for block in blocks]

    ladder = samplers.resgld((0.1,) * 64, temperatures=tuple(range(1, 65)))
    assert sizes(ladder) == [32, 32, 32, 4]
    assert sizes(ladder, Layout(lanes=512)) == [8] * 12 + [4]
    assert sizes(samplers.resgld((0.1, 0.1), temperatures=(1.0, 2.0))) == [100]
    assert sizes(samplers.svgd(0.1, n_replicas=64)) == [8] * 12 + [4]  # particles do not swap
