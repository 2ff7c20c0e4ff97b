"""Replica exchange, all schemes: two states by enumeration, and independent swaps by quadrature and theory."""

from itertools import pairwise, permutations, product

import numpy as np
import pytest
from numba import types
from scipy import stats
from scipy.integrate import quad

from targets import mixtures
from tests.support.laws import standard_errors
from toolkit import sample, samplers
from toolkit._compiler.block_rows import ALIVE, ENERGY, PLACE, TEMPERATURE
from toolkit._compiler.decorators import compile_part
from toolkit._compiler.signatures import FLOATS, MATRIX
from toolkit._engine.job import make_job
from toolkit._engine.run_options import RunOptions
from toolkit._engine.settings import engine_numbers
from toolkit._engine.state import NUMBERS, STATE, make_state
from toolkit.diagnostics.exchange import expected_round_trips
from toolkit.tempering import exchange

SIGMAS = 4.5  # a right law fails with probability 7e-6 per comparison
ALARM, WRONG = 7e-6, 1e-9  # a right law's p-value falls below the first as often; a wrong law's must below the second
CHAINS = 100_000
TEMPERATURES = (1.0, 1.6, 2.6, 4.0, 7.0)
GAP = 1.5  # energy of the upper of the two states
SCHEMES = exchange.SCHEMES
NORMAL = mixtures.gaussian_mixture([[0.0]], 1.0)


def upper_share(n_replicas):
    """Probability of the upper state on each rung."""
    return 1.0 / (1.0 + np.exp(GAP / np.array(TEMPERATURES[:n_replicas])))


def occupy(n_replicas, rng):
    """Energies (replica, chain) by their law."""
    return GAP * (rng.random((n_replicas, CHAINS)) < upper_share(n_replicas)[:, None])


def attempt_swaps(rule, energy, steps, *, sign=1.0, momentum=None, gradient=None, flips=None):
    """Energies (replica, chain) after the swaps of ``steps``, and the state with its counts, by the kernel itself.

    sign −1 turns the acceptance round. flips: a generator, by which half of all states are drawn afresh in between.
    """
    n_replicas, n_chains = energy.shape
    sampler = samplers.resgld((1e-3,) * n_replicas, temperatures=TEMPERATURES[:n_replicas])
    job = make_job(NORMAL, sampler, RunOptions(n_steps=1, seed=7, n_chains=n_chains, init=np.zeros(1)))
    state = make_state(job.problem, sampler, job.init, 0)
    parts = {"momentum": momentum, "gradient": gradient}
    start = exchange.exchange_state(rule, n_replicas, state.replica.astype(np.int64), 0.0, n_chains)
    state = state._replace(exchange=start, **{name: part for name, part in parts.items() if part is not None})
    state.rows[TEMPERATURE], state.rows[ALIVE] = state.base_temperature, 1.0
    rungs = state.rows[PLACE : PLACE + exchange.RUNG_ROWS]
    find_rungs = compile_part(
        exchange.find_rungs.py_func, types.void(MATRIX, FLOATS, FLOATS, types.int64, types.boolean)
    )
    find_rungs(rungs, np.zeros(energy.size), state.rows[TEMPERATURE], n_chains, momentum is not None)
    kernel = compile_part(exchange.swap_replicas.py_func, types.void(STATE, NUMBERS, FLOATS, types.int64))
    numbers = engine_numbers(job)._replace(n_chains=n_chains)
    seen = state.rows[ENERGY]
    seen[:] = sign * energy.ravel()
    state.position[0] = seen
    for step in steps:
        kernel(state, numbers, rule.parameters(0.0, 0), step)
        np.testing.assert_array_equal(state.position[0], seen)  # energies go where positions go
        if flips is not None:
            fresh = flips.random(seen.size) < 0.5
            seen[fresh] = sign * occupy(n_replicas, flips).ravel()[fresh]
            state.position[0] = seen
    return sign * seen.reshape(energy.shape), state.exchange


def product_law(n_replicas):
    """Probability of each joint state, independent rungs; the coldest rung's is the lowest bit."""
    upper = upper_share(n_replicas)
    states = np.arange(2**n_replicas)[:, None] >> np.arange(n_replicas) & 1
    return np.where(states, upper, 1.0 - upper).prod(axis=1)


def fit(energy, law):
    """p-value of the joint occupancy of all rungs, by χ²."""
    cells = (energy > 0.0).T @ (1 << np.arange(len(energy)))
    return stats.chisquare(np.bincount(cells, minlength=law.size), law * energy.shape[1]).pvalue


@pytest.mark.cases(2)
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("n_replicas", [2, 3, 5])
def test_two_states_keep_their_law_on_every_rung_and_stay_independent(n_replicas, scheme):
    law, rng = product_law(n_replicas), np.random.default_rng(1)
    rule = exchange.replica_exchange(scheme=scheme)
    for steps, flips in (([2], None), ([3], None), (range(2, 12), None), (range(2, 12), rng)):
        energy, state = attempt_swaps(rule, occupy(n_replicas, rng), steps, flips=flips)
        assert fit(energy, law) > ALARM
        assert 0 < state.accepted.sum() < state.attempted.sum()
    start = occupy(n_replicas, rng)
    for sign, threshold in ((-1.0, None), (1.0, 0.9), (1.0, 1e-300)):  # the last swaps always
        wrong = exchange.replica_exchange(scheme=scheme, swap_threshold=threshold)
        assert fit(attempt_swaps(wrong, start, [2], sign=sign)[0], law) < WRONG


@pytest.mark.parametrize("scheme", SCHEMES)
def test_acceptance_of_every_pair_by_enumeration(scheme):
    """Σ over the four states of a pair; every attempt finds the product law, whatever was tried before it."""
    rule, rng = exchange.replica_exchange(scheme=scheme), np.random.default_rng(2)
    _, state = attempt_swaps(rule, occupy(5, rng), [2, 3] if scheme == "deo" else [2])
    upper = upper_share(5)
    tried, swapped = state.attempted.sum(axis=1), state.accepted.sum(axis=1)
    for pair, (cold, hot) in enumerate(rule.pairs(5)):
        slope = 1.0 / TEMPERATURES[cold] - 1.0 / TEMPERATURES[hot]
        shares = np.outer([1.0 - upper[cold], upper[cold]], [1.0 - upper[hot], upper[hot]])
        misses = []
        for sign in (1.0, -1.0):
            rate = sum(
                shares[a, b] * min(1.0, np.exp(sign * slope * GAP * (a - b))) for a, b in product((0, 1), repeat=2)
            )
            misses.append((swapped[pair] - tried[pair] * rate) / np.sqrt(tried[pair] * rate * (1.0 - rate)))
        assert abs(misses[0]) < SIGMAS
        assert abs(misses[1]) > SIGMAS
    if scheme == "seo":
        assert (abs(tried - 0.5 * CHAINS) < SIGMAS * np.sqrt(0.25 * CHAINS)).all()
    else:
        assert (tried == CHAINS).all()


def gated_law(n_replicas, window):
    """Joint law after one window in which a pair that has swapped rests, by enumeration of states and rests."""
    slopes = -np.diff(1.0 / np.array(TEMPERATURES[:n_replicas]))
    law = {(s, 0): p for s, p in enumerate(product_law(n_replicas))}  # (states, rests), a bit each → probability
    parity = 1
    for _ in range(window):
        for pair in range(n_replicas - 1):
            if n_replicas > 2 and pair % 2 != parity:
                continue
            moved = {}
            for (states, rests), p in law.items():
                a, b = states >> pair & 1, states >> (pair + 1) & 1
                chance = 0.0 if rests >> pair & 1 else min(1.0, np.exp(slopes[pair] * GAP * (a - b)))
                after = states ^ ((a ^ b) * (3 << pair)), rests | 1 << pair
                moved[after] = moved.get(after, 0.0) + p * chance
                moved[states, rests] = moved.get((states, rests), 0.0) + p * (1.0 - chance)
            law = moved
    joint = np.zeros(2**n_replicas)
    for (states, _), p in law.items():
        joint[states] += p
    return joint


@pytest.mark.parametrize(("n_replicas", "window"), [(2, 2), (3, 3), (5, 2)])
def test_one_swap_per_window_is_biased_and_the_window_alone_is_not(n_replicas, window):
    """Where nothing moves in between; with two rungs the gate takes p S (1 − S) from the favoured state's p."""
    law, biased = product_law(n_replicas), gated_law(n_replicas, window)
    steps = range(window, 2 * window)  # window 1 of the run, which has the odd pairs' turn
    for gated in (False, True):
        rule = exchange.replica_exchange(window=window, one_swap_per_window=gated)
        energy, state = attempt_swaps(rule, occupy(n_replicas, np.random.default_rng(3)), steps)
        assert fit(energy, biased if gated else law) > ALARM
        assert fit(energy, law if gated else biased) < WRONG
        tried = [state.attempted[pair].max() for pair in range(n_replicas - 1)]
        assert tried == [window if n_replicas == 2 or pair % 2 == 1 else 0 for pair in range(n_replicas - 1)]
        assert (state.accepted.max() == 1) == gated
        if gated:  # and in window 3, whose turn it is again, once more
            later = [*steps, *range(3 * window, 4 * window)]
            assert attempt_swaps(rule, energy, later)[1].accepted.max() == 2
    if n_replicas == 2:
        chance = np.exp(-GAP * (1.0 - 1.0 / TEMPERATURES[1]))
        favoured = law[2]  # cold rung below, hot rung above
        np.testing.assert_allclose(biased[2], favoured * (1.0 - chance * (1.0 - chance)), rtol=1e-12)


def test_momenta_keep_their_law_on_every_rung():
    """Variance T after swaps; exchanged as they are, as gradients are, they lose it."""
    rng, rule = np.random.default_rng(4), exchange.replica_exchange()
    momentum = rng.standard_normal((1, 3 * CHAINS)) * np.sqrt(np.repeat(TEMPERATURES[:3], CHAINS))
    unscaled = momentum.copy()
    attempt_swaps(rule, occupy(3, rng), range(2, 9), momentum=momentum, gradient=unscaled)
    for rung, temperature in enumerate(TEMPERATURES[:3]):
        here = slice(rung * CHAINS, (rung + 1) * CHAINS)
        assert stats.kstest(momentum[0, here] / np.sqrt(temperature), "norm").pvalue > ALARM
        assert stats.kstest(unscaled[0, here] / np.sqrt(temperature), "norm").pvalue < WRONG


def swap_chance(cold, hot):
    """E min(1, exp(δ (T_a ξ² − T_b ζ²))), the radius integrated in closed form, the angle by quadrature."""
    slope = 1.0 / cold - 1.0 / hot

    def at(angle):
        return 1.0 / (1.0 + 2.0 * slope * max(0.0, hot * np.sin(angle) ** 2 - cold * np.cos(angle) ** 2))

    kink = np.arctan(np.sqrt(cold / hot))
    return (quad(at, 0.0, kink)[0] + quad(at, kink, 0.5 * np.pi)[0]) / (0.5 * np.pi)


def independent_swaps(temperatures, scheme, *, n_steps, n_chains, seed):
    sampler = samplers.resgld((1.0,) * len(temperatures), temperatures=temperatures, scheme=scheme)
    return sample(
        NORMAL, sampler, n_steps=n_steps, burn_in=1000, thin=n_steps - 1000, n_chains=n_chains, seed=seed, threads=1
    )


def rates_by_permutations(temperatures, pairs, nodes=96):
    """Swap chances of ``pairs`` tried one after the other on fresh energies, by midpoints of |ξ| and enumeration."""
    ranks = (np.arange(nodes) + 0.5) / nodes
    squares = stats.norm.ppf(0.5 + 0.5 * ranks) ** 2
    energies = np.meshgrid(*(t * squares for t in temperatures), indexing="ij")
    mass = {order: np.zeros((nodes,) * len(temperatures)) for order in permutations(range(len(temperatures)))}
    mass[tuple(range(len(temperatures)))] += nodes ** -float(len(temperatures))
    rates = []
    for a, b in pairs:
        slope, moved, rate = 1.0 / temperatures[a] - 1.0 / temperatures[b], {}, 0.0
        for order, here in mass.items():
            other = list(order)
            other[a], other[b] = order[b], order[a]
            swaps = here * np.exp(np.minimum(0.0, slope * (energies[order[a]] - energies[order[b]])))
            rate += swaps.sum()
            moved[tuple(other)] = moved.get(tuple(other), 0.0) + swaps
            moved[order] = moved.get(order, 0.0) + here - swaps
        mass = moved
        rates.append(rate)
    return np.array(rates)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_swap_rates_of_independent_energies(scheme):
    """Under 'deo' and 'seo' a rung is tried once a step; the others' later pairs find what the earlier have left."""
    temperatures = (1.0, 2.0, 6.0)
    run = independent_swaps(temperatures, scheme, n_steps=9000, n_chains=256, seed=31)
    law = np.array([swap_chance(*pair) for pair in ((1.0, 2.0), (2.0, 6.0))])
    alone = law
    if scheme in ("adjacent", "all_pairs"):
        law = rates_by_permutations(temperatures, run.sampler.tempering.pairs(3))
        assert abs(law[0] - alone[0]) < 1e-4  # what the midpoints miss
    assert (abs(standard_errors(run.swap_rates, law)) < SIGMAS).all()
    if scheme in ("adjacent", "all_pairs"):
        assert abs(standard_errors(run.swap_rates[:, -1], alone[-1])) > SIGMAS  # as if nothing had been tried before
    tried = run.counts.attempted / 8000
    np.testing.assert_allclose(tried, 0.5 if scheme in ("deo", "seo") else 1.0, atol=0.03 if scheme == "seo" else 0.0)
    assert (abs(standard_errors(run.swap_rates, law * 1.01)) > SIGMAS).all()


@pytest.mark.parametrize("ladder", [(1.0, 3.0, 8.0), tuple(2.0 ** np.arange(6)), tuple(1.4 ** np.arange(12))], ids=len)
def test_round_trips_equal_theory(ladder):
    """1 / (2 + 2 Σ r/(1−r)) per attempt for 'deo', 1 / (2N + 2 Σ r/(1−r)) for 'seo', exact for independent swaps."""
    chances = np.array([swap_chance(*pair) for pair in pairwise(ladder)])
    odds, n_pairs = ((1.0 - chances) / chances).sum(), chances.size
    laws = {"deo": 1.0 / (2.0 + 2.0 * odds), "seo": 1.0 / (2.0 * n_pairs + 2.0 * odds)}
    found = {}
    for scheme, law in laws.items():
        run = independent_swaps(ladder, scheme, n_steps=11_000, n_chains=128, seed=32)
        found[scheme] = run.round_trips / 10_000
        assert abs(standard_errors(found[scheme], law)) < SIGMAS
        np.testing.assert_allclose(expected_round_trips(chances, 1.0, scheme=scheme), law)
        for wrong in (law * 1.1, laws["seo" if scheme == "deo" else "deo"]):
            assert abs(standard_errors(found[scheme], wrong)) > SIGMAS
    factor = laws["deo"] / laws["seo"]
    excess = found["deo"] - factor * found["seo"]  # chains of the two runs share random numbers, which does no harm
    assert abs(standard_errors(excess, 0.0)) < SIGMAS
    assert standard_errors(found["deo"] - found["seo"], 0.0) > SIGMAS
