"""Reflection keeps the uniform law on every shape, which clamping does not; billiards keep |p|²; what is counted."""

import numpy as np
import pytest
from numba import types

from benchmarks.evidence.domains import energy_drift, fill, flat
from targets import constrained, domains, mixtures, shapes
from tests.support.laws import SIGMAS, deviation
from tests.support.walks import FLAT, SHAPES, pvalues
from toolkit import Problem, boundaries, sample, samplers
from toolkit._compiler import signatures
from toolkit._compiler.decorators import compile_part
from toolkit.boundaries import rules


@pytest.mark.cases(1)
@pytest.mark.slow_cases("cross", "heart", "polygon")
@pytest.mark.parametrize("name", SHAPES)
def test_a_reflected_walk_stays_uniform_and_a_clamped_one_does_not(name):
    squares, along_the_edge, reflections = pvalues(name, clamped=False)
    assert reflections > 1000
    assert min(squares, along_the_edge) > 1e-5
    assert pvalues(name, clamped=True)[1] < 1e-12


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
        rules.mirror(position, momentum, foot, 0)

    position, momentum = np.array([[3.0], [1.0]]), np.array([[2.0], [5.0]])
    foot = np.array([[1.0], [1.0]])  # so the normal is along the first axis
    compile_part(reflect_one, types.void(*[signatures.MATRIX] * 3))(position, momentum, foot)
    assert position.ravel().tolist() == [-1.0, 1.0]
    np.testing.assert_allclose(momentum.ravel(), [-2.0, 5.0], rtol=1e-15)
    position, momentum, foot = np.array([[0.3], [0.4]]), np.array([[1.0], [-2.0]]), np.array([[0.0], [0.0]])
    compile_part(reflect_one, types.void(*[signatures.MATRIX] * 3))(position, momentum, foot)
    normal = np.array([0.6, 0.8])
    np.testing.assert_allclose(momentum.ravel(), np.array([1.0, -2.0]) - 2 * (1.0 * 0.6 - 2.0 * 0.8) * normal)


@pytest.mark.parametrize("penalise", [boundaries.penalise, boundaries.penalise_as_printed])
def test_penalty_acts_outside_only_and_enters_the_energy(penalise):
    """It pulls to the nearest point, which in |x₁| + |x₂| ≤ 1 has a closed form; as printed, to the origin."""
    shape, coefficient = shapes.polygon(sides=4, radius=1.0), 3.0
    problem = constrained(mixtures.cosine25(), shape)
    sampler = samplers.sgld(5e-3, boundary=penalise(coefficient))
    run = sample(problem, sampler, n_steps=300, n_chains=50, seed=35, keep_energies=True)
    points = run.draws.reshape(-1, 2)
    outside = ~shape.contains(points)
    assert 0.05 < outside.mean() < 0.95
    # |x₁| + |x₂| ≤ 1: soft thresholding by the excess, shared by the coordinates, or by what leaves the larger one.
    large, small = np.abs(points).max(axis=1), np.abs(points).min(axis=1)
    threshold = np.where(large - small > 1.0, large - 1.0, 0.5 * (large + small - 1.0))[:, None]
    nearest = np.sign(points) * np.maximum(np.abs(points) - threshold, 0.0)
    away = points - (nearest if penalise is boundaries.penalise else 0.0)
    energy = problem.target.evaluate(points)[0] + 0.5 * coefficient * (away**2).sum(axis=1) * outside
    np.testing.assert_allclose(run.energies.ravel(), energy, rtol=1e-12, atol=1e-12)
    # The drift of a step from x is −h (∇U + λ away) outside: recover it from a pair of runs that differ in λ alone.
    free = sample(problem, samplers.sgld(5e-3), n_steps=300, n_chains=50, seed=35)
    first = np.argmax(outside.reshape(50, 300), axis=1)
    for chain in np.flatnonzero((first > 0) & (first < 299))[:20]:
        step = first[chain]
        np.testing.assert_array_equal(run.draws[chain, : step + 1], free.draws[chain, : step + 1])
        pull = run.draws[chain, step + 1] - free.draws[chain, step + 1]
        expected = -5e-3 * coefficient * away.reshape(50, 300, 2)[chain, step]
        np.testing.assert_allclose(pull, expected, rtol=1e-9, atol=1e-14)


def test_ignore_is_the_free_target():
    shape = shapes.flower()
    sampler = samplers.sgld(1e-3)
    arguments = {"n_steps": 200, "n_chains": 3, "seed": 36, "init": [0.0, 0.0]}
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


@pytest.mark.filterwarnings("ignore:θ has not settled:toolkit.ContourWarning")  # after 100 steps
@pytest.mark.parametrize("boundary", [boundaries.penalise(1.0), boundaries.ignore()])
def test_a_pilot_behind_soft_walls_ends_outside_and_the_run_begins_inside(boundary):
    """Contour's pilot goes on from where its heat ended, which soft walls do not keep inside."""
    problem = constrained(mixtures.cosine25(), shapes.flower())
    run = sample(problem, samplers.csgld(5e-3, boundary=boundary), n_steps=100, n_chains=2, seed=38)
    assert np.isfinite(run.draws).all()


def test_a_penalty_as_printed_away_from_the_origin_is_refused():
    """It would pull chains out of the domain: to 0."""
    far = Problem(FLAT, shapes.polygon_of("far", [[9, 9], [10, 9], [10, 10]]).domain)
    sampler = samplers.sgld(1e-3, boundary=boundaries.penalise_as_printed(1.0))
    with pytest.raises(
        ValueError, match=r"boundary must not be 'penalise_as_printed' in 'flat in far', which does not hold the or"
    ):
        sample(far, sampler, n_steps=10, init=[9.6, 9.3], seed=39)


BOUNDED = [region for region in domains.catalogue() if np.isfinite(region.volume)]
STRAIGHT = [shapes.cross(), shapes.ell(), *(r for r in BOUNDED[7:] if not len(r.radii) and r.dim < 10)]


def names(regions):
    return [f"{region.name}-{region.dim}" for region in regions]


@pytest.mark.cases(6)
@pytest.mark.parametrize("region", BOUNDED, ids=names(BOUNDED))
def test_squared_momentum_keeps_to_rounding(region):
    """10⁻¹³ is 500 roundings; momentum that lost 10⁻¹⁵ at every bounce would show after 10³ bounces."""
    n_bounces = 5_000 if region.dim < 10 else 1_000
    drift, bounces = energy_drift(region, n_bounces=n_bounces)
    assert bounces > 0.8 * n_bounces
    assert drift < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("region", [r for r in BOUNDED if r.dim < 10], ids=names([r for r in BOUNDED if r.dim < 10]))
def test_squared_momentum_keeps_over_100_000_bounces(region):
    drift, bounces = energy_drift(region, n_bounces=100_000)
    assert bounces > 80_000
    assert drift < 1e-11


@pytest.mark.cases(1)
@pytest.mark.parametrize("region", STRAIGHT, ids=names(STRAIGHT))
def test_a_billiard_fills_its_domain_and_a_clamped_one_does_not(region):
    """Straight walls keep the uniform law without friction; a curved one does as its bounces are few and shallow."""
    assert fill(region, n_chains=12_000) > 1e-4
    assert fill(region, clamped=True, n_chains=12_000) < 1e-12


CURVED = [region for region in BOUNDED if region not in STRAIGHT and region.name in ("ball", "box ∩ ball", "polygon")]


@pytest.mark.parametrize("region", CURVED, ids=names(CURVED))
def test_curved_walls_fill_it_in_short_strides(region):
    assert fill(region, stride=0.01, n_chains=20_000) > 1e-4


def second_moment(domain):
    """E x₁² of each of many chains of SGHMC without energy, at h = 0.04 and T = 3."""
    sampler = samplers.sghmc(0.04, friction=0.1, temperature=3.0, boundary=boundaries.reflect())
    run = sample(Problem(flat(2), domain), sampler, n_steps=1_500, burn_in=100, n_chains=4_000, thin=2, seed=12)
    return (run.draws[:, :, 0] ** 2).mean(axis=1)


def test_a_corner_turns_a_momentum_once_per_wall():
    """In a box coordinates never meet, so x₁ is uniform, exactly; the same square as a polygon is 0.8 % off."""
    box = second_moment(domains.box([-1.0, -1.0], [1.0, 1.0]).domain)
    assert deviation(box, 1.0 / 3.0) < SIGMAS
    square = shapes.polygon_of("square", [[-1, -1], [1, -1], [1, 1], [-1, 1]])
    polygon = second_moment(square.domain)
    assert deviation(polygon, 1.0 / 3.0) > SIGMAS
    assert polygon.mean() == pytest.approx(0.3360, abs=5e-4)
