"""Billiards: straight flight and mirrors keep |p|², fill the domain, and turn twice in a corner."""

import numpy as np
import pytest

from benchmarks.evidence.domains import energy_drift, fill, flat
from targets import domains, shapes
from tests.laws import SIGMAS, deviation
from toolkit import Problem, boundaries, sample, samplers

BOUNDED = [region for region in domains.catalogue() if np.isfinite(region.volume)]
STRAIGHT = [shapes.cross(), shapes.ell(), *(r for r in BOUNDED[7:] if not len(r.radii) and r.dim < 10)]


def names(regions):
    return [f"{region.name}-{region.dim}" for region in regions]


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
    run = sample(Problem(flat(2), domain), sampler, n_steps=1_500, burn_in=100, n_chains=8_000, thin=2, seed=12)
    return (run.draws[:, :, 0] ** 2).mean(axis=1)


def test_a_corner_turns_a_momentum_once_per_wall():
    """In a box coordinates never meet, so x₁ is uniform, exactly; the same square as a polygon is 0.8 % off."""
    box = second_moment(domains.box([-1.0, -1.0], [1.0, 1.0]).domain)
    assert deviation(box, 1.0 / 3.0) < SIGMAS
    square = shapes.polygon_of("square", [[-1, -1], [1, -1], [1, 1], [-1, 1]])
    polygon = second_moment(square.domain)
    assert deviation(polygon, 1.0 / 3.0) > SIGMAS
    assert polygon.mean() == pytest.approx(0.3360, abs=5e-4)
