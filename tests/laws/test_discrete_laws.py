"""Exact laws of discrete steps: transfer operators on a grid, Lyapunov equations with their lags, transients of cycles.

No law here is that of the continuous dynamics: each is of the very step that is coded, at step sizes at which the two
differ by much.
"""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.linalg import solve_discrete_lyapunov

from targets import constrained, shapes
from tests.support.laws import SIGMAS, gaussian
from toolkit import Sampler, boundaries, dynamics, sample, samplers, tempering
from toolkit.maths.elementary import exp, fma
from toolkit.problem.definition import Target

ALARM, WRONG = 7e-6, 1e-9  # a right law's p-value falls below the first as often; a wrong law's must below the second
NORMAL = gaussian(1.0)


def tilted_block(position, energy, gradient, parameters, scratch):
    """½ x² + 4 exp(−x²) − 0.4 x: two wells, the right one lower."""
    for lane in range(position.shape[1]):
        x = position[0, lane]
        hill = 4.0 * exp(-x * x)
        energy[lane] = fma(0.5 * x, x, hill) - 0.4 * x
        gradient[0, lane] = fma(-2.0 * x, hill, x) - 0.4


TILTED = Target("tilted wells", 1, tilted_block)
EDGES = np.linspace(-9.0, 9.0, 61)
CENTRES = 0.5 * (EDGES[1:] + EDGES[:-1])
LADDER, STEPS, NOISE = (1.0, 2.0, 3.5), (0.3, 0.4, 0.5), 1.5


def energies():
    """U and its slope at the grid's places."""
    hill = 4.0 * np.exp(-(CENTRES**2))
    return 0.5 * CENTRES**2 + hill - 0.4 * CENTRES, CENTRES - 2.0 * CENTRES * hill - 0.4


def step_operator(h, temperature):
    """Probability of every cell after an Euler–Maruyama step from each cell's centre, (to, from)."""
    mean, width = CENTRES - h * energies()[1], 2.0 * h * temperature
    # What a cell's centre lacks of its breadth, Δ²/12, would come anew at every step; the kernel gives that much less.
    spread = math.sqrt(width - (EDGES[1] - EDGES[0]) ** 2 / 12.0)
    below = stats.norm.cdf((EDGES[:, None] - mean[None, :]) / spread)
    below[0], below[-1] = 0.0, 1.0
    return np.diff(below, axis=0)


def swap_chance(cold, hot, correction):
    """E min(1, S) of two rungs (cold's cell, hot's cell) with normal noise on both energies, in closed form."""
    slope, energy = 1.0 / LADDER[cold] - 1.0 / LADDER[hot], energies()[0]
    mean = slope * (energy[:, None] - energy[None, :] - slope * correction)
    spread = slope * NOISE * math.sqrt(2.0)
    return stats.norm.cdf(mean / spread) + np.exp(mean + 0.5 * spread**2) * stats.norm.cdf(-mean / spread - spread)


def exchange_law(scheme, correction):
    """Joint law (cell, cell, cell) of three rungs just after the move that follows an even attempt, and an odd one."""
    moves = [step_operator(*numbers) for numbers in zip(STEPS, LADDER, strict=True)]
    chances = {pair: swap_chance(*pair, correction) for pair in ((0, 1), (1, 2), (0, 2))}

    def swapped(law, pair):
        away = law * np.expand_dims(chances[pair], 3 - sum(pair))
        return law - away + np.swapaxes(away, *pair)

    def moved(law):
        for rung, operator in enumerate(moves):
            law = np.moveaxis(np.tensordot(operator, law, (1, rung)), 0, rung)
        return law

    law = np.full((CENTRES.size,) * 3, CENTRES.size**-3.0)
    for _ in range(60):
        before = law
        for parity in range(2):
            if scheme == "deo":
                law = swapped(law, (0, 1) if parity == 0 else (1, 2))
            elif scheme == "seo":
                law = 0.5 * (swapped(law, (0, 1)) + swapped(law, (1, 2)))
            else:
                pairs = {"adjacent": ((0, 1), (1, 2)), "all_pairs": ((0, 1), (0, 2), (1, 2))}[scheme]
                for pair in pairs:
                    law = swapped(law, pair)
            law = moved(law)
        if np.abs(law - before).sum() < 1e-6:
            return law
    raise AssertionError("the law has not settled")


def fit(draws, masses, edges):
    """p-value of independent draws against cells of one or more coordinates, by χ²; rare cells count together."""
    counts, masses = np.histogramdd(draws, edges)[0].ravel(), masses.ravel()
    often = masses * len(draws) > 20.0
    observed = np.append(counts[often], len(draws) - counts[often].sum())
    expected = len(draws) * np.append(masses[often], 1.0 - masses[often].sum())
    return stats.chisquare(observed, expected).pvalue


def coarse(law, by):
    """Masses of cells that are ``by`` as wide along every rung, and their edges."""
    shape = [n for _ in range(law.ndim) for n in (CENTRES.size // by, by)]
    return law.reshape(shape).sum(axis=tuple(range(1, 2 * law.ndim, 2))), [EDGES[::by]] * law.ndim


@pytest.mark.parametrize("scheme", ["deo", pytest.param("seo", marks=pytest.mark.slow),
    pytest.param("adjacent", marks=pytest.mark.slow), pytest.param("all_pairs", marks=pytest.mark.slow)])  # fmt: skip
def test_three_rungs_with_noisy_energies_have_the_law_of_their_transfer_operator(scheme):
    """Of SGLD at its own bias, swaps at every step: each rung, and all three together; no correction is another law."""
    n, n_steps = 30_000, 80
    start = np.random.default_rng(71).normal(0.0, 1.5, (n, 3, 1))
    found = {}
    for given in (None, 0.0):
        rule = tempering.replica_exchange(scheme=scheme, correction=given)
        sampler = Sampler("exchange", STEPS, LADDER, tempering=rule, energy_noise=NOISE)
        run = sample(
            TILTED, sampler, n_steps=n_steps, thin=n_steps, n_chains=n, seed=71, init=start, keep_replicas=True
        )
        found[given] = run.replica_draws[:, :, -1, 0]
    laws = {None: exchange_law(scheme, NOISE**2), 0.0: exchange_law(scheme, 0.0)}
    for given, law in laws.items():
        other = laws[0.0 if given is None else None]
        for rung in range(3):
            axes = tuple(i for i in range(3) if i != rung)
            draws = found[given][:, rung : rung + 1]
            assert fit(draws, *coarse(law.sum(axis=axes), 3)) > ALARM
            if rung == 0:
                assert fit(draws, *coarse(other.sum(axis=axes), 3)) < WRONG
        assert fit(found[given], *coarse(law, 6)) > ALARM


PRECISION = np.array([[2.0, 0.9], [0.9, 0.8]])


@pytest.mark.parametrize(("h", "friction", "temperature"), [(0.1, 0.1, 1.0), (0.4, 0.3, 2.5), (0.6, 1.0, 0.4)])
def test_lag_covariances_of_a_correlated_gaussian(h, friction, temperature):
    """Cov(x_0, x_k) = (M^k Σ)_xx with Σ of the Lyapunov equation of SGHMC's step M, every entry, at lags 0 to 9."""
    n, root = 40_000, math.sqrt(h)
    burn_in = 200
    identity, keep = np.eye(2), (1.0 - friction) * np.eye(2)
    step = np.block([[identity - h * PRECISION, root * keep], [-root * PRECISION, keep]])
    push = np.vstack([root * identity, identity])
    covariance = solve_discrete_lyapunov(step, 2.0 * friction * temperature * push @ push.T)
    start = np.random.default_rng(72).multivariate_normal(np.zeros(2), covariance[:2, :2], n)
    sampler = samplers.sghmc(h, friction=friction, temperature=temperature)
    options = {"n_chains": n, "seed": 72, "init": start}
    x = sample(gaussian(PRECISION), sampler, n_steps=burn_in + 10, burn_in=burn_in, **options).draws
    misses, shifted = [], []
    for lag in (0, 1, 3, 9):
        found = x[:, lag, :, None] * x[:, 0, None, :]
        error = found.std(axis=0) / math.sqrt(n)
        law, other = (np.linalg.matrix_power(step, k) @ covariance for k in (lag, lag + 1))
        misses.append((found.mean(axis=0) - law[:2, :2]) / error)
        shifted.append((found.mean(axis=0) - other[:2, :2]) / error)
    assert np.abs(misses).max() < SIGMAS
    assert np.abs(shifted).max() > 2.0 * SIGMAS


def cosine_recursion(h, n_steps, n_cycles, exploration, start):
    """Mean and variance on N(0, 1) of every step under cosine cycles: no noise in the exploration of each cycle."""
    length = math.ceil(n_steps / n_cycles)
    mean, variance, path = start, 0.0, []
    for k in range(n_steps):
        share = (k % length) / length
        size = 0.5 * h * (math.cos(math.pi * share) + 1.0)
        mean, variance = (1.0 - size) * mean, (1.0 - size) ** 2 * variance
        if share >= exploration:
            variance += 2.0 * size
        path.append((mean, variance))
    return np.array(path)


def test_mean_and_variance_of_every_step_of_cosine_cycles():
    """From a point far out; exploration draws no noise, and the cycle begins anew; shifted by a step, another law."""
    n, n_steps = 20_000, 48
    sampler = samplers.cyclical_sgld(0.5, n_cycles=3, exploration=0.25, floor=0.0)
    run = sample(NORMAL, sampler, n_steps=n_steps, n_chains=n, seed=73, init=[40.0])
    path = cosine_recursion(0.5, n_steps, 3, 0.25, 40.0)
    x, law = run.draws[:, :, 0], path[run.steps]
    assert 30 < run.steps.size < n_steps
    misses = (x.mean(axis=0) - law[:, 0]) / np.sqrt(law[:, 1] / n)
    squares = (x.var(axis=0) / law[:, 1] - 1.0) / math.sqrt(2.0 / n)
    assert np.abs([misses, squares]).max() < SIGMAS
    for wrong in (cosine_recursion(0.5, n_steps, 3, 0.0, 40.0), path[np.maximum(np.arange(n_steps) - 1, 0)]):
        misses = (x.var(axis=0) - wrong[run.steps, 1]) / law[:, 1]
        assert np.abs(misses).max() > 3.0 * SIGMAS * math.sqrt(2.0 / n)


def acceptance_to_the_wall(h, wall):
    """Share of MALA's moves on N(0, 1) cut off at ±``wall`` that are accepted and stay inside, by quadrature."""
    edges = np.linspace(-wall, wall, 1201)
    x = 0.5 * (edges[1:] + edges[:-1])
    mass = np.exp(-0.5 * x**2)
    mass /= mass.sum()
    away = x[:, None] - (1.0 - h) * x[None, :]
    propose = np.exp(-(away**2) / (4.0 * h)) * (edges[1] - edges[0]) / math.sqrt(4.0 * math.pi * h)
    odds = np.exp(0.5 * (x[None, :] ** 2 - x[:, None] ** 2) + (away**2 - away.T**2) / (4.0 * h))
    inner = float((propose * np.minimum(1.0, odds) * mass).sum())
    return inner, float((propose * mass).sum())


def test_mala_with_rejection_stays_put_as_often_as_quadrature_says():
    """In the square ±0.9 each move of both coordinates is one test: h so small that the test itself takes few."""
    n, h, wall = 40_000, 0.02, 0.9
    corners = wall * np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    problem = constrained(gaussian(np.eye(2)), shapes.polygon_of("square", corners))
    sampler = Sampler("mala", (h,), (1.0,), dynamics=dynamics.mala(), boundary=boundaries.reject())
    start = stats.truncnorm.rvs(-wall, wall, size=(n, 2), random_state=74)
    run = sample(problem, sampler, n_steps=9, n_chains=n, seed=74, init=start)
    moved = (np.diff(run.draws, axis=1) != 0.0).any(axis=2).mean(axis=1)
    accepted, inside = acceptance_to_the_wall(h, wall)
    bound, law = inside**2, accepted**2  # two independent coordinates; the joint test loses no more than both do
    error = moved.std(ddof=1) / math.sqrt(n)
    assert law - SIGMAS * error < moved.mean() < bound + SIGMAS * error
    assert bound - law < 2e-3
    assert moved.mean() < inside - 10.0 * error  # as if one wall alone were looked at
    u = stats.truncnorm.cdf(run.draws, -wall, wall)
    assert min(stats.kstest(u[:, k, d], "uniform").pvalue for k in range(8) for d in range(2)) > ALARM


def test_sgnht_has_the_lyapunov_law_of_its_mean_friction():
    """With inertia so large that z stays at c, SGNHT is SGHMC of friction c: covariance of x at lags 0, 1 and 5."""
    n, h, friction, temperature = 40_000, 0.3, 0.25, 1.7
    step = np.array([[1.0 - h, math.sqrt(h) * (1.0 - friction)], [-math.sqrt(h), 1.0 - friction]])
    push = np.array([math.sqrt(h), 1.0])
    covariance = solve_discrete_lyapunov(step, 2.0 * friction * temperature * np.outer(push, push))
    start = math.sqrt(covariance[0, 0]) * np.random.default_rng(76).standard_normal((n, 1))
    sampler = samplers.sgnht(h, friction=friction, inertia=1e9, temperature=temperature)
    x = sample(NORMAL, sampler, n_steps=106, burn_in=100, n_chains=n, seed=76, init=start).draws[:, :, 0]
    for lag in (0, 1, 5):
        products = x[:, 0] * x[:, lag]
        error = products.std() / math.sqrt(n)
        law, later = ((np.linalg.matrix_power(step, k) @ covariance)[0, 0] for k in (lag, lag + 1))
        assert abs(products.mean() - law) < SIGMAS * error
        assert abs(products.mean() - later) > SIGMAS * error
