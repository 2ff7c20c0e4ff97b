"""Every domain: inside, distance, nearest point, normal, volume, draws; walks in it; and bad ones refused."""

import numpy as np
import pytest
from scipy.optimize import minimize

from benchmarks.evidence.domains import flat, walk
from targets import constrained, domains, mixtures, shapes
from targets.domains.convex import Convex
from tests.support.laws import SIGMAS, deviation
from toolkit import Problem, boundaries, sample, samplers

CATALOGUE = domains.catalogue()
ALL = pytest.mark.parametrize("region", CATALOGUE, ids=[f"{r.name}-{r.dim}" for r in CATALOGUE])
BOUNDED = [r for r in CATALOGUE if np.isfinite(r.volume)]
CONVEX = [r for r in CATALOGUE if isinstance(r, Convex)]


def ids(regions):
    return [f"{r.name}-{r.dim}" for r in regions]


def points_about(region, n, seed):
    """Points in and around a region; of many dimensions, beside its inner points, so that some are inside."""
    lower, upper = (np.clip(ends, -3.0, 3.0) for ends in region.bounds)
    rng = np.random.default_rng(seed)
    points = rng.uniform(lower - 0.4 * (upper - lower), upper + 0.4 * (upper - lower), (n, region.dim))
    if isinstance(region, Convex):
        points[: n // 2] = region.interior + rng.uniform(0.0, 1.0, (n // 2, 1)) * (points[: n // 2] - region.interior)
    return points


@ALL
def test_distance_nearest_point_and_normal_agree(region):
    points = points_about(region, 300, seed=1)
    distance, feet, normals = region.distance(points), region.nearest(points), region.normal(points)
    inside = region.contains(points)
    assert 10 < inside.sum() < 290
    np.testing.assert_array_equal(distance > 0, inside)
    np.testing.assert_allclose(np.linalg.norm(points - feet, axis=1), np.abs(distance), atol=1e-12)
    np.testing.assert_allclose(region.distance(feet), 0.0, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1.0, rtol=1e-13)
    np.testing.assert_allclose((normals * (feet - points)).sum(axis=1), distance, atol=1e-12)
    assert not region.contains(np.full((1, region.dim), np.nan)).any()


@pytest.mark.parametrize("region", CONVEX, ids=ids(CONVEX))
def test_nearest_points_from_outside_are_those_of_convex_analysis(region):
    """y is the point of a convex set nearest to x where (x − y)·(z − y) ≤ 0 for all z of the set; wrong: another y."""
    points = points_about(region, 100, seed=2)
    points = points[~region.contains(points)]
    feet = region.nearest(points)
    others = points_about(region, 400, seed=3)
    others = np.vstack([others[region.contains(others)], region.nearest(others), feet])
    away = points - feet
    angles = away @ others.T - (away * feet).sum(axis=1)[:, None]
    assert angles.max() <= 1e-10
    middle = 0.5 * (feet + region.interior)
    wrong = (points - middle) @ others.T - ((points - middle) * middle).sum(axis=1)[:, None]
    assert (wrong.max(axis=1) > 1e-6).mean() > 0.5


@pytest.mark.parametrize("region", [r for r in CONVEX if 1 < r.dim < 5], ids=ids([r for r in CONVEX if 1 < r.dim < 5]))
def test_nearest_points_against_a_general_optimiser(region):
    normals, offsets = region.walls
    points = points_about(region, 40, seed=4)
    points = points[~region.contains(points)][:8]
    walls = [{"type": "ineq", "fun": lambda y: offsets - normals @ y}] if len(offsets) else []
    balls = [
        {"type": "ineq", "fun": lambda y, c=c, r=r: r * r - (y - c) @ (y - c)}
        for c, r in zip(region.centres, region.radii, strict=True)
    ]
    for point, foot in zip(points, region.nearest(points), strict=True):
        found = minimize(
            lambda y, x=point: ((y - x) ** 2).sum(), region.interior, method="SLSQP", constraints=walls + balls,
            options={"ftol": 1e-15, "maxiter": 500},
        ).x  # fmt: skip
        np.testing.assert_allclose(foot, found, atol=2e-6)


@pytest.mark.parametrize("region", BOUNDED, ids=ids(BOUNDED))
def test_volume_by_rejection_from_the_bounds(region):
    """The share of uniform points of the bounding box that are inside; doubled, the volume is refused."""
    if region.dim > 6:
        assert region.volume == 2.0**64
        return
    lower, upper = region.bounds
    n, whole = 400_000 if isinstance(region, Convex) else 50_000, float(np.prod(upper - lower))
    share = region.contains(np.random.default_rng(5).uniform(lower, upper, (n, region.dim))).mean()
    error = whole * np.sqrt(max(share * (1.0 - share), 1e-9) / n) + getattr(region, "volume_error", 0.0)
    assert abs(share * whole - region.volume) < SIGMAS * error
    assert abs(share * whole - 1.1 * region.volume) > SIGMAS * error


def test_volumes_in_closed_form():
    assert domains.ball([0.0] * 3, 2.0).volume == pytest.approx(32.0 * np.pi / 3.0, rel=1e-14)
    assert domains.simplex(4).volume == 1.0 / 24.0
    assert domains.ordered(3, lower=-1.0, upper=1.0).volume == pytest.approx(8.0 / 6.0, rel=1e-14)
    assert domains.box([0.0, -np.inf], [1.0, 0.0]).volume == np.inf
    octahedron = np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T
    assert domains.half_spaces(octahedron, np.ones(8)).volume == pytest.approx(4.0 / 3.0, rel=1e-12)
    lens = domains.intersection(domains.ball([0.0, 0.0], 1.0), domains.ball([1.0, 0.0], 1.0))
    area = 2.0 * np.pi / 3.0 - np.sqrt(3.0) / 2.0
    assert abs(lens.volume - area) < SIGMAS * lens.volume_error < 0.01


@pytest.mark.cases(6)
@pytest.mark.parametrize("region", BOUNDED, ids=ids(BOUNDED))
def test_uniform_draws(region):
    """Against points of the bounding box that fall inside, or of a box's own coordinates; squared, they are refused."""
    n = 20_000 if isinstance(region, Convex) else 3_000  # distances to 8,192 edges take their time
    draws = region.uniform_draws(n, seed=6)
    assert draws.shape == (n, region.dim)
    assert region.contains(draws).all()
    np.testing.assert_array_equal(region.uniform_draws(5, seed=8), region.uniform_draws(5, seed=8))
    if region.dim <= 6:
        lower, upper = region.bounds
        box = np.random.default_rng(7).uniform(lower, upper, (20 * n, region.dim))
        other = box[region.contains(box)]
    else:
        other = np.random.default_rng(7).uniform(-1.0, 1.0, (80_000, region.dim))
    lower, upper = other.min(axis=0), other.max(axis=0)
    distance, other_distance = region.distance(draws), region.distance(other)
    for values, others in (
        (draws[:, 0], other[:, 0]),
        (draws.sum(axis=1), other.sum(axis=1)),
        (distance, other_distance),
    ):
        error = np.sqrt(values.var() / len(values) + others.var() / len(others))
        assert abs(values.mean() - others.mean()) < SIGMAS * error
    shrunk = distance * 1.2
    error = np.sqrt(shrunk.var() / len(draws) + other_distance.var() / len(other))
    assert abs(shrunk.mean() - other_distance.mean()) > SIGMAS * error


@pytest.mark.cases(2)
@pytest.mark.parametrize("region", BOUNDED, ids=ids(BOUNDED))
def test_a_reflected_walk_stays_uniform_and_a_clamped_one_does_not(region):
    n_chains = 20_000 if region.dim < 10 and isinstance(region, Convex) else 5_000
    pvalue, reflections = walk(region, n_chains=n_chains)
    assert reflections > n_chains
    assert pvalue > 1e-5
    assert walk(region, n_chains=n_chains, clamped=True)[0] < 1e-12


def one_step(region, spread, *, max_bounces):
    """Where one step of a given standard deviation leads from uniform starts or 0, with walls and without."""
    dim, n = region.dim, 2_000
    start = region.uniform_draws(n, seed=9) if region.is_bounded else np.sort(np.ones((n, dim)), axis=1)
    ends = []
    for boundary in (boundaries.reflect(max_bounces=max_bounces), boundaries.ignore()):
        sampler = samplers.sgld(spread**2 / 2, boundary=boundary)
        run = sample(Problem(flat(dim), region.domain), sampler, n_steps=1, n_chains=n, init=start, seed=10)
        ends.append(run.draws[:, 0])
        fallbacks = run.reflection_fallbacks.sum()
        assert fallbacks == 0
    return ends


def folded(values, low, high):
    """Values brought between two mirrors."""
    return low + np.abs((values - low + (high - low)) % (2.0 * (high - low)) - (high - low))


@pytest.mark.parametrize("spread", [0.1, 3.0])
@pytest.mark.parametrize("dim", [1, 2, 7])
def test_reflection_in_a_box_folds_each_coordinate(dim, spread):
    inside, free = one_step(domains.box([-1.0] * dim, [1.0] * dim), spread, max_bounces=1000)
    np.testing.assert_allclose(inside, folded(free, -1.0, 1.0), atol=1e-12)
    assert (np.abs(np.clip(free, -1.0, 1.0) - inside) > 1e-3).any()


@pytest.mark.parametrize("spread", [0.1, 3.0])
@pytest.mark.parametrize("dim", [2, 3, 8])
def test_reflection_in_ordered_coordinates_sorts_them(dim, spread):
    inside, free = one_step(domains.ordered(dim), spread, max_bounces=1000)
    np.testing.assert_allclose(inside, np.sort(free, axis=1), atol=1e-12)
    inside, free = one_step(domains.ordered(dim, lower=-1.0, upper=1.0), spread, max_bounces=1000)
    np.testing.assert_allclose(inside, np.sort(folded(free, -1.0, 1.0), axis=1), atol=1e-12)


def test_an_open_side_reflects_into_half_a_normal():
    """x ≥ 0 under N(0, 1): E x = √(2/π), to the O(h) of the step; a soft wall misses it."""
    problem = constrained(mixtures.gaussian_mixture([[0.0]], 1.0), domains.box([0.0], [np.inf]))
    law = np.sqrt(2.0 / np.pi) / np.sqrt(1.0 - 0.01)

    def off(boundary, n_chains):
        sampler = samplers.sgld(0.02, boundary=boundary)
        run = sample(problem, sampler, n_steps=400, thin=400, n_chains=n_chains, init=[0.5], seed=11)
        return deviation(run.draws[:, 0, 0], law)

    assert off(boundaries.reflect(), 40_000) < SIGMAS
    assert off(boundaries.penalise(1.0), 4_000) > SIGMAS


def test_lanes_do_not_matter():
    region = domains.intersection(domains.box([-1.0] * 5, [0.5] * 5), domains.ball([0.0] * 5, 1.0), domains.ordered(5))
    points = np.random.default_rng(12).normal(size=(5, 203))
    feet, outside = np.zeros_like(points), np.ones(203)
    region.domain.locate(points, feet, outside, region.domain.float_table, region.domain.int_table)
    for lane in range(0, 203, 7):
        foot, lost = np.zeros((5, 1)), np.ones(1)
        region.domain.locate(points[:, [lane]].copy(), foot, lost, region.domain.float_table, region.domain.int_table)
        assert lost[0] == outside[lane]
        assert lost[0] == 0 or (foot[:, 0] == feet[:, lane]).all()
    untouched = np.zeros(203)
    region.domain.locate(points, feet, untouched, region.domain.float_table, region.domain.int_table)
    assert (untouched == 0.0).all()
    far = np.array([[np.nan, np.inf, 1e300, -1e200]] * 5)
    lost = np.ones(4)
    region.domain.locate(far, np.zeros((5, 4)), lost, region.domain.float_table, region.domain.int_table)
    assert lost.tolist() == [0.0, 0.0, 1.0, 1.0]


BAD = {
    "box upside down": (lambda: domains.box([0.0, 1.0], [1.0, 1.0]), r"lower must be < upper, got 1 and 1 in coordin"),
    "box nan": (lambda: domains.box([np.nan], [1.0]), r"lower must be finite or -inf, got nan at \[0\]"),
    "box infinite the wrong way": (lambda: domains.box([0.0], [-np.inf]), "upper must be finite or inf, got -inf"),
    "box shapes": (lambda: domains.box([0.0], [1.0, 2.0]), r"must have one shape, got \(1,\) and \(2,\)"),
    "box of none": (lambda: domains.box([], []), r"lower must have shape \(dim,\) with dim ≥ 1, got \(0,\)"),
    "box of everything": (lambda: domains.box([-np.inf], [np.inf]), "box must have a finite side"),
    "box of words": (lambda: domains.box("low", [1.0]), "lower must be an array of real numbers, got 'low'"),
    "zero normal": (lambda: domains.half_spaces([[1, 0], [0, 0]], [1, 1]), r"normals must not be 0, got one at \[1\]"),
    "nan normal": (lambda: domains.half_spaces([[np.nan, 1]], [1]), r"normals must be finite, got nan at \[0, 0\]"),
    "offsets": (lambda: domains.half_spaces([[1, 0]], [1, 2]), r"offsets must have shape \(1,\), one per wall"),
    "normals' shape": (lambda: domains.half_spaces([1, 0], [1]), r"normals must have shape \(walls, dim\), got \(2,\)"),
    "empty": (lambda: domains.half_spaces([[1, 1], [-1, -1]], [0, -1]), "half_spaces must not be empty, but every"),
    "flat": (lambda: domains.half_spaces([[1, 1], [-1, -1]], [1, -1]), "half_spaces must have an interior"),
    "radius": (lambda: domains.ball([0.0], 0.0), "radius must be finite and > 0, got 0.0"),
    "centre": (lambda: domains.ball(0.0, 1.0), r"centre must have shape \(dim,\) with dim ≥ 1, got \(\)"),
    "simplex": (lambda: domains.simplex(0), "dim must be ≥ 1"),
    "ordered": (lambda: domains.ordered(1), "dim must be ≥ 2"),
    "ordered ends": (lambda: domains.ordered(2, lower=1.0, upper=0.0), "lower must be < upper, got 1 and 0"),
    "no region": (lambda: domains.intersection(), "intersection must have at least one region, got none"),
    "a shape": (lambda: domains.intersection(shapes.flower()), r"regions\[0\] must be a convex region of targets.dom"),
    "dimensions": (
        lambda: domains.intersection(domains.simplex(2), domains.simplex(3)),
        "must have one dimension, got",
    ),
    "balls apart": (
        lambda: domains.intersection(domains.ball([0.0, 0.0], 1.0), domains.ball([3.0, 0.0], 1.0)),
        "ball ∩ ball must not be empty, but every point is 0.5 or more outside of some wall",
    ),
    "balls that touch": (
        lambda: domains.intersection(domains.ball([0.0, 0.0], 1.0), domains.ball([2.0, 0.0], 1.0)),
        "ball ∩ ball must have an interior",
    ),
    "draws without an end": (lambda: domains.ordered(2).uniform_draws(1, seed=0), "uniform draws need a bounded regio"),
    "draws too rare": (
        lambda: domains.intersection(domains.box([-1.0] * 40, [1.0] * 40), domains.ball([0.0] * 40, 1.0)).uniform_draws(
            1, seed=0
        ),
        None,
    ),
    "box of strings": (lambda: domains.box(["0"], ["1"]), r"lower must be an array of real numbers, got \['0'\]"),
    "box of flags": (lambda: domains.box([False], [True]), r"lower must be an array of real numbers, got \[False\]"),
    "box of None": (lambda: domains.box([None], [1.0]), r"lower must be an array of real numbers, got \[None\]"),
    "ordered None": (lambda: domains.ordered(2, lower=None), "lower must be a number, got None of type NoneType"),
    "ordered list": (lambda: domains.ordered(2, upper=[0, 1]), r"upper must be a number, got \[0, 1\] of type list"),
    "tiny normal": (
        lambda: domains.half_spaces([[1e-300, 0]], [1e300]),
        r"offsets / \|normals\| must be finite, got inf",
    ),
    "a list": (lambda: domains.intersection([domains.simplex(2)]), r"got \[domains.simplex\(2\)\]"),
    "points of words": (lambda: domains.simplex(2).contains("a"), "points must be an array of real numbers, got 'a'"),
    "ragged points": (lambda: domains.simplex(2).distance([[0], [1, 2]]), "points must be an array of numbers, got"),
    "points": (lambda: domains.simplex(2).distance([[0.0]]), r"points must have shape \(n, 2\), got \(1, 1\)"),
    "points nan": (lambda: domains.simplex(2).nearest([[0.0, np.nan]]), r"points must be finite, got nan at \[0, 1\]"),
    "another region": (
        lambda: constrained(mixtures.cosine25(), domains.simplex(3)),
        "must have the region's dimension 3",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_domains_are_refused(name):
    make, message = BAD[name]
    if message is None:  # nested sets are no case for rejection: the ball's own draws serve
        assert make().shape == (1, 40)
        return
    with pytest.raises((TypeError, ValueError), match=message):
        make()


def test_sizes_from_1e_minus_6_to_1e6():
    """Whether there is an interior does not hang on units or on where the origin is."""
    for scale in (1e-6, 1.0, 1e6):
        centre = np.array([scale, 3.0 * scale])
        lens = domains.intersection(domains.ball(centre, scale), domains.box(centre, centre + scale))
        assert lens.contains([centre + 0.5 * scale]).all()
        assert lens.volume == pytest.approx(np.pi / 4.0 * scale**2, rel=0.01)


@pytest.mark.parametrize("size", [1e-2, 1.0])
def test_where_the_origin_is_does_not_matter(size):
    """Walls 10⁶ away from 0, as of a region of size 0.01 there; once looked for in units of 10⁶, it was not found."""
    centre = np.full(3, 1e6)
    octahedron = np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T
    region = domains.half_spaces(octahedron, octahedron @ centre + size)
    assert np.linalg.norm(region.interior - centre) < 0.5 * size
    np.testing.assert_allclose(region.bounds, [centre - size, centre + size], atol=1e-8)
    ordered = domains.ordered(4, lower=1e6 - size, upper=1e6 + size)
    assert ordered.distance([ordered.interior])[0] > 1e-3 * size


def test_walls_that_are_nearly_parallel():
    """Nearest points of a wedge of 2·10⁻⁶ radians, by its edges and its tip, known by hand; once 3·10⁻⁵ off."""
    wedge = domains.half_spaces([[1e-6, 1.0], [1e-6, -1.0], [-1.0, 0.0]], [1e-6, 1e-6, 1.0])
    feet = wedge.nearest([[2.0, 0.0], [3.0, 1e-7], [-2.0, 0.0], [0.5, 1.0], [0.5, -1.0]])
    along = np.array([1.0, -1e-6]) / np.hypot(1.0, 1e-6)
    edge = np.array([1.0, 0.0]) + (np.array([-0.5, 1.0]) @ along) * along
    law = [[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0], edge, edge * [1.0, -1.0]]
    np.testing.assert_allclose(feet, law, atol=1e-12)
    np.testing.assert_allclose(wedge.distance(feet), 0.0, atol=1e-12)


def test_balls_that_touch_from_within_and_all_but_touch():
    """A ball within another that it touches is itself; two that share a lens 10⁻⁴ thick have a nearest point too."""
    small = domains.ball([0.5, 0.0], 0.5)
    nested = domains.intersection(domains.ball([0.0, 0.0], 1.0), small)
    points = np.random.default_rng(13).uniform(-2.0, 2.0, (50, 2))
    np.testing.assert_allclose(nested.nearest(points)[~small.contains(points)],
                               small.nearest(points)[~small.contains(points)], atol=1e-12)  # fmt: skip
    lens = domains.intersection(domains.ball([0.0, 0.0], 1.0), domains.ball([2.0 - 1e-4, 0.0], 1.0))
    tip = [1.0 - 5e-5, np.sqrt(1.0 - (1.0 - 5e-5) ** 2)]
    np.testing.assert_allclose(lens.nearest([[1.0 - 5e-5, 0.5], [3.0, 0.0]]), [tip, [1.0, 0.0]], atol=1e-10)


def test_volumes_beyond_the_largest_number_are_infinite():
    for region in (domains.ball([0.0] * 64, 1e6), domains.box([0.0] * 64, [1e6] * 64),
                   domains.ordered(64, lower=0.0, upper=1e9)):  # fmt: skip
        assert region.volume == np.inf
        assert region.is_bounded
        assert region.contains(region.uniform_draws(10, seed=14)).all()


def test_balls_in_many_dimensions_have_something_in_common_or_not():
    """Two balls of radius 1 in 64 dimensions, by the distance of their centres; tangents alone take too many."""
    along = np.random.default_rng(15).normal(size=64)
    along /= np.linalg.norm(along)
    lens = domains.intersection(domains.ball(np.zeros(64), 1.0), domains.ball(1.9 * along, 1.0))
    assert lens.distance([lens.interior])[0] == pytest.approx(0.05, rel=1e-3)
    with pytest.raises(ValueError, match=r"must not be empty, but every point is 0\.05 or more outside of some wall"):
        domains.intersection(domains.ball(np.zeros(64), 1.0), domains.ball(2.1 * along, 1.0))
