"""Domains: reflected walks and a billiard in each; p-values of uniformity, drift of |p|², and speed beside no domain.

The last points of walks of 50 steps from uniform starts, in cells of sector and distance to the edge, against fresh
uniform points. The billiard is SGHMC of friction 10⁻⁴⁰ on a flat energy: straight flight, and walls. The second table
counts points of r2SGLD outside the flower, by the flower's own formula r ≤ 2 (sin 5φ + 3) / 3.5, which knows nothing of
polygons; points within 10⁻⁵ of the curve, where polygon and curve may differ, are judged by the polygon's distance.
"""

import functools
import time

import numpy as np

from benchmarks.runner.plan import Plan
from benchmarks.runner.tables import Table
from targets import constrained, domains, mixtures, shapes
from tests.support.walks import clamping, flat_block, pvalue
from toolkit import Problem, Target, boundaries, sample, samplers, stream

FRICTIONLESS = 1e-40  # 1 − η is 1, and √(2η) 10⁻²⁰: what it adds to a momentum is lost in rounding


def flat(dim):
    """The energy 0 in ``dim`` dimensions."""
    return Target("flat", dim, flat_block)


def inner_size(region):
    """A length of the region: four times the middle distance of its points to the edge."""
    return 4.0 * float(np.median(region.distance(region.uniform_draws(4_000, seed=98))))


def cells(points, region, quantiles):
    """Which cell a point is in: between which ``quantiles`` of the distance to the edge, in which sector or half."""
    band = np.searchsorted(quantiles, region.distance(points))
    away = points - region.uniform_draws(4_000, seed=98).mean(axis=0)
    sector = away[:, 0] > 0.0
    if region.dim > 1:
        sector = ((np.arctan2(away[:, 1], away[:, 0]) / np.pi + 1.0) * 4.0).astype(int) % 8
    return band * 8 + sector


@functools.lru_cache(maxsize=1)
def uniform_cells(region, n):
    """Quantiles of the distance to the edge of ``n`` fresh uniform points, and the cells that the points are in."""
    uniform = region.uniform_draws(n, seed=99)
    shares = np.concatenate([[0.01, 0.02, 0.04], np.linspace(0.1, 0.9, 9)])
    quantiles = np.quantile(region.distance(uniform), shares)
    return quantiles, cells(uniform, region, quantiles)


def uniformity(points, region):
    """χ² p-value that ``points`` (n, dim) are uniform in the region."""
    quantiles, fresh = uniform_cells(region, 4 * len(points))
    return float(pvalue(cells(points, region, quantiles), fresh))


def walk(region, *, clamped=False, n_chains=50_000, n_steps=50, seed=31):
    """p-value of the last points of reflected walks from uniform starts, and the number of reflections."""
    domain = clamping(region.domain) if clamped else region.domain
    h = (0.03 * inner_size(region)) ** 2 / 2.0
    run = sample(
        Problem(flat(region.dim), domain), samplers.sgld(h, boundary=boundaries.reflect()), n_steps=n_steps,
        thin=n_steps, n_chains=n_chains, init=region.uniform_draws(n_chains, seed=seed), seed=seed,
    )  # fmt: skip
    return uniformity(run.draws[:, 0], region), int(run.reflections.sum())


def fly(region, *, n_steps, n_chains, stride=0.1, thin=1, domain=None, start=None, seed=7):
    """Balls of a billiard, which fly some ``stride`` of the region's size a step; and the step size."""
    h = (stride * inner_size(region)) ** 2 / region.dim
    sampler = samplers.sghmc(h, friction=FRICTIONLESS, boundary=boundaries.reflect())
    start = region.uniform_draws(n_chains, seed=seed) if start is None else start
    run = sample(
        Problem(flat(region.dim), domain or region.domain), sampler, n_steps=n_steps, thin=thin, n_chains=n_chains,
        init=start, seed=seed,
    )  # fmt: skip
    return run, h


def energy_drift(region, *, n_bounces, n_chains=2):
    """Largest relative change of a ball's |p|² over some ``n_bounces`` walls, and how many each met at least.

    A step that meets no wall is √h p, and most meet none: the median of |Δx|²/h over 200 steps is |p|².
    """
    rate = fly(region, n_steps=10_000, n_chains=n_chains, thin=10_000)[0].reflections.min() / 10_000
    n_steps = int(1.3 * n_bounces / rate)
    run, h = fly(region, n_steps=n_steps, n_chains=n_chains)
    squares = (np.diff(run.draws, axis=1) ** 2).sum(axis=2) / h
    speeds = np.median(squares[:, : squares.shape[1] // 200 * 200].reshape(n_chains, -1, 200), axis=2)
    return float(np.abs(speeds / speeds[:, :1] - 1.0).max()), int(run.reflections.min())


def fill(region, *, clamped=False, stride=0.1, n_chains=30_000, n_steps=200):
    """p-value that balls from uniform starts are uniform after many bounces."""
    domain = clamping(region.domain) if clamped else None
    run, _ = fly(region, n_steps=n_steps, n_chains=n_chains, thin=n_steps, stride=stride, domain=domain)
    return uniformity(run.draws[:, 0], region)


def speed(region, *, dim, n_chains=4096, n_steps=2000):
    """Chain-steps per second of SGLD on a flat energy in the region, or without one; the best of three."""
    best = np.inf
    problem = Problem(flat(dim), None if region is None else region.domain)
    boundary = boundaries.ignore() if region is None else boundaries.reflect()
    h = 1e-4 if region is None else (0.03 * inner_size(region)) ** 2 / 2.0
    init = np.zeros(dim) if region is None else region.uniform_draws(n_chains, seed=1)
    n_steps = max(100, n_steps // dim)
    for _ in range(3):
        start = time.perf_counter()
        sample(
            problem, samplers.sgld(h, boundary=boundary), n_steps=n_steps, thin=n_steps, n_chains=n_chains, init=init,
            seed=1, threads=1,
        )  # fmt: skip
        best = min(best, time.perf_counter() - start)
    return n_chains * n_steps / best


def count_outside(plan: Plan, n_steps: int) -> None:
    """Chain-steps of r2SGLD with `reflect` that end outside the flower."""
    shape = shapes.flower()
    problem = constrained(mixtures.cosine25(), shape)
    sampler = samplers.r2sgld(gradient_noise=0.05, energy_noise=0.05)
    seen, outside, near, reflections, fallbacks = 0, 0, 0, 0, 0
    for chunk in stream(problem, sampler, n_steps=n_steps, n_chains=2_000, seed=5, init=[0.0, 0.0], keep_replicas=True):
        points = chunk.replica_draws.reshape(-1, 2)
        gap = 2.0 * (np.sin(5.0 * np.arctan2(points[:, 1], points[:, 0])) + 3.0) / 3.5 - np.hypot(*points.T)
        close = np.abs(gap) < 1e-5
        outside += int((gap[~close] < 0).sum()) + int((shape.distance(points[close]) < 0).sum())
        seen, near = seen + len(points), near + int(close.sum())
        reflections, fallbacks = int(chunk.reflections.sum()), int(chunk.reflection_fallbacks.sum())
    columns = ("chain-steps", "outside", "within 10⁻⁵ of the edge", "reflections", "fallbacks")
    table = Table(plan.folder, "domains_outside", *columns)
    table.row(f"{seen:,}", outside, f"{near:,}", f"{reflections:,}", fallbacks)


def main(plan: Plan) -> None:
    """Print both tables."""
    regions = [one for one in domains.catalogue() if np.isfinite(one.volume)][: 2 if plan.is_small else None]
    fewer = 100 if plan.is_small else 1
    free = {dim: speed(None, dim=dim) for dim in {region.dim for region in regions}}
    columns = ("dim", "volume", "walk: p", "clamped: p", "drift of p²", "bounces", "speed beside no domain")
    table = Table(plan.folder, "domains", "domain", *columns)
    for region in regions:
        n_chains = 50_000 if region.dim < 10 else 10_000
        uniform, clamped = (walk(region, n_chains=n_chains, clamped=c)[0] for c in (False, True))
        drift, bounces = energy_drift(region, n_bounces=(100_000 if region.dim < 10 else 10_000) // fewer)
        share = speed(region, dim=region.dim) / free[region.dim]
        table.row(region.name, region.dim, float(region.volume), uniform, clamped, drift, f"{bounces:,}", float(share))
    print()
    count_outside(plan, 25_000 // fewer)
