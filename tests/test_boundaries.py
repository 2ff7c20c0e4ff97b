"""Reflection keeps the uniform law on every shape, which clamping does not; the penalty; what is counted."""

import numpy as np
import pytest
from numba import types
from scipy.stats import chi2_contingency

from targets import constrained, mixtures, shapes
from toolkit import Problem, Target, boundaries, sample, samplers, signatures
from toolkit.compiling import compile_part
from toolkit.polygons import Domain

SHAPES = {"flower": shapes.flower(), "heart": shapes.heart(), "polygon": shapes.polygon(), "cross": shapes.cross()}
CHAINS = 100_000
FALSE_ALARM = 1e-5
BIN = 0.25


def flat_block(position, energy, gradient, parameters, scratch):
    for d in range(position.shape[0]):
        for lane in range(position.shape[1]):
            energy[lane] = 0.0
            gradient[d, lane] = 0.0


FLAT = Target("flat", 2, flat_block)


def walk(problem, shape, seed, step_size=2e-4, n_steps=50):
    """Last points of many short reflected walks from uniform starts."""
    sampler = samplers.sgld(step_size, boundary=boundaries.reflect())
    start = shape.uniform_draws(CHAINS, seed=seed)
    return sample(problem, sampler, n_steps=n_steps, thin=n_steps, n_chains=CHAINS, init=start, seed=seed)


def pvalue(cells, other_cells):
    """That two samples of cell numbers have one law; cells with few counts are pooled."""
    size = int(max(cells.max(), other_cells.max())) + 1
    table = np.stack([np.bincount(cells, minlength=size), np.bincount(other_cells, minlength=size)])
    rare = table.sum(axis=0) < 40
    table = np.column_stack([table[:, ~rare], table[:, rare].sum(axis=1)])
    return chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue


def square_cells(points, shape):
    """Which cell of a grid of squares of equal area each point is in."""
    i, j = np.floor((points - np.array(shape.bounds[:2])) / BIN).astype(int).T
    return i * 1000 + j


def edge_cells(points, shape):
    """Cells along the edge: 4 thin bands of distance times 16 directions from the centre; the interior is one more."""
    distance = shape.distance(points)
    assert (distance >= 0).all()
    band = np.minimum((distance / 0.02).astype(int), 4)
    sector = ((np.arctan2(points[:, 1], points[:, 0]) / np.pi + 1.0) * 8.0).astype(int) % 16
    return np.where(band < 4, band * 16 + sector, 64)


@pytest.mark.parametrize("name", SHAPES)
def test_a_reflected_walk_stays_uniform_and_a_clamped_one_does_not(name):
    shape = SHAPES[name]
    problem = Problem(FLAT, shape.domain)
    uniform = shape.uniform_draws(4 * CHAINS, seed=99)
    run = walk(problem, shape, seed=31)
    assert run.reflections.sum() > 1000
    reflected = run.draws[:, 0]
    assert pvalue(square_cells(reflected, shape), square_cells(uniform, shape)) > FALSE_ALARM
    assert pvalue(edge_cells(reflected, shape), edge_cells(uniform, shape)) > FALSE_ALARM
    clamped = walk(Problem(FLAT, clamping(shape.domain)), shape, seed=31).draws[:, 0]
    assert pvalue(edge_cells(clamped, shape), edge_cells(uniform, shape)) < 1e-12


def clamping(domain):
    """The same domain, except that a reflection ends at the nearest boundary point instead of behind it."""
    look = domain.look

    def clamp(position, foot, outside, real, whole):
        look(position, foot, outside, real, whole)
        for lane in range(position.shape[1]):
            if outside[lane] != 0.0:
                for d in range(2):
                    foot[d, lane] = 0.5 * (foot[d, lane] + position[d, lane]) * (1 + 1e-12) - 1e-9 * position[d, lane]

    return Domain("clamped", 2, compile_part(clamp, signatures.DOMAIN), domain.real, domain.whole)


@pytest.mark.parametrize("name", SHAPES)
def test_no_draw_is_ever_outside(name):
    shape = SHAPES[name]
    sampler = samplers.r2sgld(step_sizes=(1e-3, 2e-2), temperatures=(1.0, 10.0))
    run = sample(
        constrained(mixtures.cosine25(), shape), sampler, n_steps=500, n_chains=500, seed=32, keep_replicas=True
    )
    assert shape.contains(run.replica_draws.reshape(-1, 2)).all()
    assert run.reflections[:, 1].mean() > 50


def test_many_bounces_and_the_fallback_are_counted():
    """Steps far larger than a thin strip: one bounce is rarely enough, and the replica never leaves."""
    strip = shapes.polygon_of("strip", [[0.0, 0.0], [1.0, 0.0], [1.0, 0.01], [0.0, 0.01]])
    runs = {}
    for max_bounces in (1, 16):
        sampler = samplers.sgld(1e-3, boundary=boundaries.reflect(max_bounces=max_bounces))
        runs[max_bounces] = sample(
            Problem(FLAT, strip.domain), sampler, n_steps=200, n_chains=200, init=[0.5, 0.005], seed=33
        )
        assert strip.contains(runs[max_bounces].draws.reshape(-1, 2)).all()
    assert runs[1].reflection_fallbacks.sum() > 0.3 * 200 * 200
    assert runs[16].reflection_fallbacks.sum() < 0.01 * runs[1].reflection_fallbacks.sum() + 50
    assert runs[16].reflections.sum() > 2 * runs[1].reflections.sum()


def test_fallback_is_the_last_inside_point():
    """With no bounce to spare, a step that leaves again puts the replica where it was."""
    strip = shapes.polygon_of("strip", [[0.0, 0.0], [1.0, 0.0], [1.0, 0.01], [0.0, 0.01]])
    sampler = samplers.sgld(1e-2, boundary=boundaries.reflect(max_bounces=1))
    run = sample(Problem(FLAT, strip.domain), sampler, n_steps=100, init=[0.5, 0.005], seed=34)
    stays = (np.diff(run.draws[0], axis=0) == 0).all(axis=1).sum() + (run.draws[0, 0] == [0.5, 0.005]).all()
    assert stays == run.reflection_fallbacks.item() > 0


def test_momentum_turns_with_the_reflection():
    def reflect_one(position, momentum, foot):
        boundaries.mirror(position, momentum, foot, 0)

    position, momentum = np.array([[3.0], [1.0]]), np.array([[2.0], [5.0]])
    foot = np.array([[1.0], [1.0]])  # so the normal is along the first axis
    compile_part(reflect_one, types.void(*[signatures.MATRIX] * 3))(position, momentum, foot)
    assert position.ravel().tolist() == [-1.0, 1.0]
    np.testing.assert_allclose(momentum.ravel(), [-2.0, 5.0], rtol=1e-15)
    position, momentum, foot = np.array([[0.3], [0.4]]), np.array([[1.0], [-2.0]]), np.array([[0.0], [0.0]])
    compile_part(reflect_one, types.void(*[signatures.MATRIX] * 3))(position, momentum, foot)
    normal = np.array([0.6, 0.8])
    np.testing.assert_allclose(momentum.ravel(), np.array([1.0, -2.0]) - 2 * (1.0 * 0.6 - 2.0 * 0.8) * normal)


def test_penalty_acts_outside_only_and_enters_the_energy():
    shape, coefficient = shapes.polygon(sides=4, radius=1.0), 3.0
    problem = constrained(mixtures.cosine25(), shape)
    sampler = samplers.sgld(5e-3, boundary=boundaries.penalise(coefficient))
    run = sample(problem, sampler, n_steps=300, n_chains=50, seed=35, keep_energies=True)
    points = run.draws.reshape(-1, 2)
    outside = ~shape.contains(points)
    assert 0.05 < outside.mean() < 0.95
    energy = problem.target.evaluate(points)[0] + 0.5 * coefficient * (points**2).sum(axis=1) * outside
    np.testing.assert_allclose(run.energies.ravel(), energy, rtol=1e-12, atol=1e-12)
    # The drift of a step from x is −h (∇U + λ x) outside: recover it from a pair of runs that differ in λ alone.
    free = sample(problem, samplers.sgld(5e-3), n_steps=300, n_chains=50, seed=35)
    first = np.argmax(outside.reshape(50, 300), axis=1)
    for chain in np.flatnonzero((first > 0) & (first < 299))[:20]:
        step = first[chain]
        np.testing.assert_array_equal(run.draws[chain, : step + 1], free.draws[chain, : step + 1])
        pull = run.draws[chain, step + 1] - free.draws[chain, step + 1]
        np.testing.assert_allclose(pull, -5e-3 * coefficient * run.draws[chain, step], rtol=1e-9)


def test_ignore_is_the_free_target():
    shape = shapes.flower()
    sampler = samplers.sgld(1e-3)
    arguments = {"n_steps": 200, "n_chains": 3, "seed": 36}
    inside = sample(constrained(mixtures.cosine25(), shape), sampler, **arguments)
    free = sample(mixtures.cosine25(), sampler, **arguments)
    np.testing.assert_array_equal(inside.draws, free.draws)


def test_a_domain_that_is_never_left_is_no_boundary():
    far = shapes.polygon(sides=4, radius=100.0)
    arguments = {"n_steps": 200, "n_chains": 3, "seed": 37}
    reflected = sample(
        constrained(mixtures.cosine25(), far), samplers.sgld(1e-3, boundary=boundaries.reflect()), **arguments
    )
    assert reflected.reflections.sum() == 0
    np.testing.assert_array_equal(reflected.draws, sample(mixtures.cosine25(), samplers.sgld(1e-3), **arguments).draws)
