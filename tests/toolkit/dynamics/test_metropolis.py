"""MALA and HMC are exact at step sizes at which SGLD is far off; acceptance, domains, temperature 0 and cost."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from targets import constrained, domains, mixtures, shapes
from tests.support.laws import SIGMAS, deviation, evaluations_per_step, gaussian, variance_deviation
from toolkit import Layout, boundaries, sample, samplers, schedules, tempering
from toolkit.dynamics.metropolis import total_leapfrogs
from toolkit.maths.elementary import exp, fma
from toolkit.problem.definition import Target
from toolkit.tempering.contour_tempering import Partition

CHAINS = 30_000
NORMAL = gaussian(1.0)


def well_block(position, energy, gradient, parameters, scratch):
    """½ x² + 4 exp(−x²): wells at ±√log 8, a barrier of 2.5 between them, and no steeper than x far out."""
    for lane in range(position.shape[1]):
        x = position[0, lane]
        hill = 4.0 * exp(-x * x)
        energy[lane] = fma(0.5 * x, x, hill)
        gradient[0, lane] = fma(-2.0 * x, hill, x)


TARGETS = {
    "normal": NORMAL,
    "double well": Target("double well", 1, well_block),
    "mixture": mixtures.gaussian_mixture([[-1.0], [2.0]], 0.5, (0.3, 0.7)),
    "mixture in 2-D": mixtures.gaussian_mixture([[-1.0, 0.0], [1.0, 1.0]], 0.5, (0.3, 0.7)),
}
STEPS = {"normal": 1.3, "double well": 0.3, "mixture": 0.6, "mixture in 2-D": 0.5}


def grid_law(target, temperature):
    """Places (n,), the mass exp(−U/T) of a cell about each point of a grid of them, (n,) × dim."""
    places = np.linspace(-14.0, 14.0, 28_001 if target.dim == 1 else 701)
    points = np.stack(np.meshgrid(*[places] * target.dim, indexing="ij"), axis=-1).reshape(-1, target.dim)
    energy = target.evaluate(points)[0]
    mass = np.exp((energy.min() - energy) / temperature).reshape((places.size,) * target.dim)
    return places, mass / mass.sum()


def exact_draws(places, mass, n, seed):
    """Draws (n, dim) of the grid's law, spread over the cells."""
    rng = np.random.default_rng(seed)
    index = np.unravel_index(rng.choice(mass.size, size=n, p=mass.ravel()), mass.shape)
    width = places[1] - places[0]
    return np.stack([places[i] for i in index], axis=1) + width * (rng.random((n, mass.ndim)) - 0.5)


def p_values(draws, places, mass):
    """By Kolmogorov and Smirnov, of every coordinate of independent draws (n, dim)."""
    edges, values = places + 0.5 * (places[1] - places[0]), []
    for d in range(mass.ndim):
        other = tuple(i for i in range(mass.ndim) if i != d)
        cumulative = np.cumsum(mass.sum(axis=other))
        values.append(stats.kstest(draws[:, d], lambda x, c=cumulative: np.interp(x, edges, c)).pvalue)
    return np.array(values)


def sampler_of(kind, h, temperature):
    """MALA or SGLD with step size h, or HMC with leapfrogs as long as MALA's."""
    if kind == "hmc":
        return samplers.hmc(math.sqrt(2.0 * h), n_leapfrogs=2, temperature=temperature)
    return getattr(samplers, kind)(h, temperature=temperature)


@pytest.mark.cases(4)
@pytest.mark.parametrize("temperature", [0.25, 1.0, 4.0])
@pytest.mark.parametrize("name", TARGETS)
def test_the_law_is_exact_at_any_step_size(name, temperature):
    """False alarms: 1e-5 for each coordinate of each sampler."""
    target = TARGETS[name]
    places, mass = grid_law(target, temperature)
    start = exact_draws(places, mass, CHAINS, seed=51)
    assert p_values(start, places, mass).min() > 1e-5
    options = {"n_steps": 60, "thin": 60, "n_chains": CHAINS, "init": start, "seed": 51}
    for kind in ("mala", "hmc"):
        run = sample(target, sampler_of(kind, STEPS[name], temperature), **options)
        assert p_values(run.draws[:, 0], places, mass).min() > 1e-5
    biased = sample(target, sampler_of("sgld", STEPS[name], temperature), **options).draws[:, 0]
    assert p_values(biased, places, mass).max() < 1e-9


def quadrature():
    """Points z, w of two independent standard normals on a grid, and its weights."""
    axis = np.linspace(-8.0, 8.0, 2001)
    mass = stats.norm.pdf(axis)
    return axis[:, None], axis[None, :], np.outer(mass, mass) / mass.sum() ** 2


def mala_acceptance(h, *, proposes_alike=False):
    """E min(1, π(y) q(y→x) / (π(x) q(x→y))) on N(0, T), the same for all T; ``proposes_alike`` leaves out q."""
    x, z, weight = quadrature()
    y = (1.0 - h) * x + math.sqrt(2.0 * h) * z
    log_ratio = 0.5 * (x**2 - y**2)
    if not proposes_alike:
        log_ratio = log_ratio + ((y - (1.0 - h) * x) ** 2 - (x - (1.0 - h) * y) ** 2) / (4.0 * h)
    return float((weight * np.minimum(1.0, np.exp(log_ratio))).sum())


def hmc_acceptance(length, n_leapfrogs):
    """E min(1, exp(−ΔH / T)) on N(0, T), the same for all T."""
    x, p, weight = quadrature()
    start = 0.5 * (x**2 + p**2)
    for _ in range(n_leapfrogs):
        p = p - 0.5 * length * x
        x = x + length * p
        p = p - 0.5 * length * x
    return float((weight * np.minimum(1.0, np.exp(start - 0.5 * (x**2 + p**2)))).sum())


@pytest.mark.cases(2)
@pytest.mark.parametrize("temperature", [0.25, 4.0])
@pytest.mark.parametrize("step_size", [0.3, 0.7, 1.7])
def test_acceptance_and_variance_from_far_away(step_size, temperature):
    """All chains begin at 2 √T, so that a sampler that hardly moves would not pass."""
    start = np.full((CHAINS, 1), 2.0 * math.sqrt(temperature))
    options = {"n_steps": 100, "burn_in": 50, "thin": 50, "n_chains": CHAINS, "init": start, "seed": 52}
    mala = sample(NORMAL, samplers.mala(step_size, temperature=temperature), **options)
    length = math.sqrt(2.0 * step_size)
    fixed = samplers.hmc(length, n_leapfrogs=3, temperature=temperature, random_length=False)
    hmc = sample(NORMAL, fixed, **options)
    rate, wrong = mala_acceptance(step_size), mala_acceptance(step_size, proposes_alike=True)
    assert deviation(mala.acceptance[:, 0], rate) < SIGMAS
    for other in (wrong, mala_acceptance(0.8 * step_size), hmc_acceptance(step_size, 1)):
        assert deviation(mala.acceptance[:, 0], other) > SIGMAS
    assert deviation(hmc.acceptance[:, 0], hmc_acceptance(length, 3)) < SIGMAS
    for other in (hmc_acceptance(length, 4), hmc_acceptance(0.85 * length, 3)):
        assert deviation(hmc.acceptance[:, 0], other) > SIGMAS
    for draws in (mala.draws.ravel(), hmc.draws.ravel()):
        assert variance_deviation(draws, temperature) < SIGMAS
        for other in (1.0, 0.9 * temperature, temperature / (1.0 - 0.5 * step_size)):
            assert variance_deviation(draws, other) > SIGMAS


def chi_square(problem, draws, cells=12):
    """p-value of independent draws (n, 2) against the problem's masses of cells; rare cells count together."""
    low, high = draws.min(axis=0) - 1e-9, draws.max(axis=0) + 1e-9
    edges = [np.linspace(low[d], high[d], cells + 1) for d in range(2)]
    law = len(draws) * problem.truth.cell_masses(*edges)
    found = np.histogram2d(*draws.T, bins=edges)[0]
    common = law >= 10.0
    law, found = np.append(law[common], law[~common].sum()), np.append(found[common], found[~common].sum())
    law = np.append(law[:-1], max(len(draws) - law[:-1].sum(), 1e-9))
    return float(stats.chi2.sf(((found - law) ** 2 / law).sum(), law.size - 1))


@pytest.mark.cases(1)
@pytest.mark.parametrize("temperature", [0.25, 4.0])
@pytest.mark.parametrize("kind", ["mala", "hmc"])
def test_rejection_keeps_the_law_of_a_normal_in_a_square(kind, temperature):
    square = shapes.polygon(sides=4, radius=1.2)
    problem, truth = (constrained(mixtures.gaussian_mixture([[0.5, 0.0]], v), square) for v in (0.2, 0.2 * temperature))
    check_domain(problem, truth, kind, 0.1, temperature)


@pytest.mark.cases(1)
@pytest.mark.parametrize("kind", ["mala", "hmc"])
def test_rejection_keeps_the_law_of_25_modes_in_a_flower(kind):
    problem = constrained(mixtures.cosine25(), shapes.flower())
    check_domain(problem, problem, kind, 0.02, 1.0)


def check_domain(problem, truth, kind, h, temperature):
    """χ² of the last draws of chains that begin in the law; SGLD with the same boundary fails it."""
    options = {"n_steps": 80, "thin": 80, "n_chains": CHAINS, "seed": 53}
    options["init"] = truth.truth.independent_draws(CHAINS, seed=53)
    for name in (kind, "sgld"):
        sampler = replace(sampler_of(name, h, temperature), boundary=boundaries.reject())
        run = sample(problem, sampler, **options)
        assert problem.contains(run.draws[:, 0]).all()
        assert run.reflections.sum() > 1000
        p_value = chi_square(truth, run.draws[:, 0])
        assert p_value < 1e-9 if name == "sgld" else p_value > 1e-5


@pytest.mark.parametrize("kind", ["mala", "hmc"])
def test_at_temperature_0_the_energy_never_rises(kind):
    """… and every chain ends in a mode, from wherever, where steps are short enough; SGLD's rises where they are not.

    The energy alone decides: with the kinetic energy that the leapfrogs gain, no move is ever kept where U is concave.
    """
    target, start = mixtures.cosine25(), np.random.default_rng(54).uniform(-2.0, 2.0, (50, 2))

    def rises_and_slope(name, h):
        cold = replace(sampler_of(name, h, 1.0), schedule=schedules.custom(temperature=np.zeros(400)))
        run = sample(target, cold, n_steps=400, n_chains=50, init=start, seed=54, keep_energies=True)
        rises = (np.diff(run.energies[:, 0]) > 1e-12).sum()
        return rises, np.abs(target.evaluate(run.draws[:, -1])[1]).max()

    rises, slope = rises_and_slope(kind, {"mala": 0.022, "hmc": 0.005}[kind])
    assert rises == 0
    assert slope < 1e-4
    assert rises_and_slope(kind, 0.03)[0] == 0  # too long a step, of which the test keeps what it may
    rises, slope = rises_and_slope("sgld", 0.03)
    assert rises > 1000
    assert slope > 1.0


@pytest.mark.parametrize("kind", ["mala", "hmc"])
def test_energies_are_those_of_the_draws(kind):
    """Also where the test has just put a chain back."""
    target = TARGETS["mixture in 2-D"]
    run = sample(target, sampler_of(kind, 1.0, 1.0), n_steps=30, n_chains=40, seed=55, keep_energies=True)
    assert 0.1 < run.acceptance.mean() < 0.9
    np.testing.assert_allclose(run.energies.ravel(), target.evaluate(run.draws.reshape(-1, 2))[0], rtol=1e-14)
    stays = (run.draws[:, 1:] == run.draws[:, :-1]).all(axis=2)
    assert 1.0 - stays.mean() == pytest.approx(run.acceptance.mean(), abs=0.05)


@pytest.mark.parametrize("tempers", [None, tempering.replica_exchange()])
@pytest.mark.parametrize("kind", ["mala", "hmc"])
def test_what_a_trajectory_leaves_is_what_an_evaluation_gives(kind, tempers):
    """A chunk begins with an evaluation, so in chunks of one step nothing is taken over from the step before."""
    problem, temperatures = constrained(mixtures.cosine25(), shapes.flower()), (1.0, 3.0)
    sampler = replace(
        sampler_of(kind, 0.02, 1.0), step_sizes=(0.2 if kind == "hmc" else 0.02,) * 2, tempering=tempers,
        temperatures=temperatures if tempers else (1.0, 1.0), boundary=boundaries.reject(),
    )  # fmt: skip
    options = {"n_steps": 40, "n_chains": 40, "seed": 56, "keep_energies": True, "keep_replicas": True}
    whole, anew = (sample(problem, sampler, layout=Layout(chunk_steps=n), **options) for n in (40, 1))
    np.testing.assert_array_equal(whole.replica_draws, anew.replica_draws)
    np.testing.assert_array_equal(whole.energies, anew.energies)
    assert 0.1 < whole.acceptance.mean() < 0.9
    assert whole.reflections.sum() > 0


@pytest.mark.filterwarnings("ignore::toolkit.ContourWarning")  # 200 steps are few for θ
def test_cost():
    """The end of a trajectory serves the next, unless tempering has scaled its gradient."""
    flattens = tempering.contour(partition=Partition(0.0, 0.5, 10))
    for n_leapfrogs in (1, 4):
        sampler = samplers.hmc(0.1, n_leapfrogs=n_leapfrogs, random_length=False)
        assert evaluations_per_step(sampler) == (n_leapfrogs, n_leapfrogs)
        assert evaluations_per_step(replace(sampler, tempering=flattens)) == (n_leapfrogs + 1, n_leapfrogs + 1)
    assert evaluations_per_step(samplers.mala(0.1)) == (1.0, 1.0)


def flat_block(position, energy, gradient, parameters, scratch):
    """No force: a trajectory of L leapfrogs of length ε goes L ε p far."""
    for lane in range(position.shape[1]):
        energy[lane], gradient[0, lane] = 0.0, 0.0


def test_lengths_of_trajectories_are_uniform_and_those_of_all_chains():
    """Displacements of free chains over the normals of one step are all ε L; χ² of L with a false alarm of 1e-5."""
    mean, n_steps, n_chains = 4, 1200, 400
    flat = Target("flat", 1, flat_block)
    moved = {}
    for random_length in (False, True):
        sampler = samplers.hmc(0.5, n_leapfrogs=mean, random_length=random_length)
        run = sample(flat, sampler, n_steps=n_steps, n_chains=n_chains, seed=57, init=np.zeros(1))
        moved[random_length] = np.diff(run.draws[:, :, 0], axis=1, prepend=0.0)
    ratio = moved[True] / moved[False] * mean  # the normals are the same
    lengths = np.rint(np.median(ratio, axis=0)).astype(int)
    np.testing.assert_allclose(ratio, np.broadcast_to(lengths, ratio.shape), rtol=1e-6)
    counts = np.bincount(lengths, minlength=2 * mean)[1:]
    assert counts.size == 2 * mean - 1
    assert stats.chisquare(counts).pvalue > 1e-5
    correlation = np.corrcoef(lengths[1:], lengths[:-1])[0, 1]
    assert abs(correlation) < SIGMAS / math.sqrt(n_steps)
    assert run.gradient_evaluations == n_chains * lengths.sum()
    assert total_leapfrogs(mean, 57, 100, 300) == lengths[100:300].sum()
    assert total_leapfrogs(1, 57, 0, 300) == 300


def test_half_a_period_leaves_chains_at_their_radius_only_where_lengths_are_fixed():
    """A trajectory of half a period turns the sign of x on N(0, 1): all chains from 2 then stay near ±2 together.

    The leapfrog's frequency is arccos(1 − ε²/2)/ε, by which 10 steps are exactly half a period.
    """
    length = math.sqrt(2.0 - 2.0 * math.cos(math.pi / 10.0))
    options = {"n_steps": 300, "burn_in": 200, "thin": 100, "n_chains": CHAINS, "init": [2.0], "seed": 58}
    fixed = sample(NORMAL, samplers.hmc(length, n_leapfrogs=10, random_length=False), **options)
    np.testing.assert_allclose(np.abs(fixed.draws), 2.0, rtol=1e-9)
    free = sample(NORMAL, samplers.hmc(length, n_leapfrogs=10), **options)
    assert variance_deviation(free.draws.ravel(), 1.0) < SIGMAS
    assert variance_deviation(free.draws.ravel(), 1.05) > SIGMAS
    assert abs(free.draws.mean()) < SIGMAS / math.sqrt(CHAINS)


@pytest.mark.parametrize("kind", ["mala", "hmc"])
def test_moves_taken_back_at_a_wall_are_no_accepted_ones(kind):
    """Acceptance is the share of steps after which a chain is elsewhere, counted from the draws."""
    problem = constrained(mixtures.gaussian_mixture([[0.0, 0.0]], 1.0), domains.box([-0.5, -0.5], [1.0, 1.0]))
    sampler = replace(sampler_of(kind, 0.3, 1.0), boundary=boundaries.reject())
    run = sample(problem, sampler, n_steps=400, n_chains=40, seed=59)
    places = np.concatenate([np.broadcast_to(run.init, (40, 1, 2)), run.draws], axis=1)
    moved = (places[:, 1:] != places[:, :-1]).any(axis=2)
    np.testing.assert_allclose(run.acceptance[:, 0] * 400, moved.sum(axis=1), rtol=1e-14)
    assert run.reflections.sum() > 0.1 * moved.size
    late = sample(problem, sampler, n_steps=400, burn_in=100, n_chains=40, seed=59)
    np.testing.assert_allclose(late.acceptance[:, 0] * 300, moved[:, 100:].sum(axis=1), rtol=1e-14)
