"""A target inside a shape: its truth against independent quadrature, Shapely and χ²."""

import functools

import numpy as np
import pytest
import shapely
from scipy.integrate import quad
from scipy.stats import chisquare, norm

from targets import classics, constrained, domains, mixtures, shapes, with_truth
from targets.domains.constrained import clipped_outline
from toolkit import UnavailableError, target

SHAPES = {"flower": shapes.flower(), "heart": shapes.heart(), "polygon": shapes.polygon(), "cross": shapes.cross()}
COSINE = mixtures.cosine25()


@functools.cache
def inside(name):
    """The target in a shape, with one truth for all tests."""
    return constrained(COSINE, SHAPES[name])


def polar_integral(target):
    """∫ exp(−U) over the flower's own curve, in polar coordinates: no polygon, no grid."""
    angle = 2 * np.pi * np.arange(4000) / 4000
    radius = 2.0 * (np.sin(5 * angle) + 3.0) / 3.5
    nodes, weights = np.polynomial.legendre.leggauss(120)
    r = radius[:, None] * (nodes + 1) / 2
    points = np.stack([r * np.cos(angle)[:, None], r * np.sin(angle)[:, None]], axis=-1)
    density = np.exp(-target.evaluate(points.reshape(-1, 2))[0]).reshape(r.shape)
    return (density * r * weights * radius[:, None] / 2).sum() * 2 * np.pi / 4000


def test_normaliser_of_the_flower():
    problem = inside("flower")
    assert np.exp(problem.truth.log_normaliser) == pytest.approx(polar_integral(problem.target), rel=1e-6)


@pytest.mark.parametrize("low", [-0.5, 0.0, 0.25])
@pytest.mark.parametrize("high", [0.5, 1.0, 2.0])
def test_an_outline_has_no_vertex_twice(low, high):
    """Where a wall goes through a vertex, its neighbours have no direction between them."""
    ring = clipped_outline(domains.simplex(2), np.full(2, low), np.full(2, high))
    assert len(np.unique(ring, axis=0)) == len(ring) >= 3
    region = shapely.Polygon([(0, 0), (1, 0), (0, 1)]).intersection(shapely.box(low, low, high, high))
    assert shapely.Polygon(ring).symmetric_difference(region).area < 1e-15


@pytest.mark.cases(2)
@pytest.mark.slow_cases("flower")
@pytest.mark.parametrize("name", SHAPES)
def test_cell_masses_against_shapely(name):
    """Cells cut by the edge, by Shapely's intersection and triangles and a quadrature of another kind."""
    problem = inside(name)
    edges = np.linspace(-2.5, 2.5, 11)
    masses = problem.truth.cell_masses(edges, edges)
    polygon = shapely.Polygon(SHAPES[name].rings[0])
    cut = [
        (i, j)
        for i in range(10)
        for j in range(10)
        if shapely.intersects(polygon.boundary, shapely.box(edges[i], edges[j], edges[i + 1], edges[j + 1]))
    ]
    assert len(cut) > 5
    for i, j in cut[:: max(1, len(cut) // 6)]:
        part = polygon.intersection(shapely.box(edges[i], edges[j], edges[i + 1], edges[j + 1]))
        integral = sum(triangle_integral(problem.target, t) for t in triangles(part))
        assert masses[i, j] == pytest.approx(integral / np.exp(problem.truth.log_normaliser), rel=1e-6, abs=1e-12)


def triangles(part):
    return [np.array(t.exterior.coords)[:3] for t in shapely.constrained_delaunay_triangles(part).geoms]


def triangle_integral(target, corners, depth=4):
    """By the midpoint of 4^depth congruent triangles, extrapolated once (Richardson)."""

    def midpoint(level):
        n = 2**level
        a, b = (corners[1] - corners[0]) / n, (corners[2] - corners[0]) / n
        places = [(i + 1 / 3, j + 1 / 3) for i in range(n) for j in range(n - i)]
        places += [(i + 2 / 3, j + 2 / 3) for i in range(n - 1) for j in range(n - 1 - i)]
        points = corners[0] + np.array(places) @ np.stack([a, b])
        return np.exp(-target.evaluate(points)[0]).sum() * abs(a[0] * b[1] - a[1] * b[0]) / 2

    coarse, middle, fine = midpoint(depth), midpoint(depth + 1), midpoint(depth + 2)
    first, second = (4 * middle - coarse) / 3, (4 * fine - middle) / 3
    return (16 * second - first) / 15


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", SHAPES)
def test_masses_sum_to_one_on_any_grid(name):
    problem = inside(name)
    for n in (3, 40):
        masses = problem.truth.cell_masses(np.linspace(-3.5, 3.5, n + 1), np.linspace(-4, 4, n + 4))
        assert masses.sum() == pytest.approx(1.0, abs=1e-9)
        assert (masses >= 0).all()
    fine = problem.truth.cell_masses(np.linspace(-3.5, 3.5, 71), np.linspace(-4, 4, 81))
    coarse = problem.truth.cell_masses(np.linspace(-3.5, 3.5, 8), np.linspace(-4, 4, 9))
    np.testing.assert_allclose(fine.reshape(7, 10, 8, 10).sum(axis=(1, 3)), coarse, rtol=1e-8, atol=1e-12)


def test_holes_are_left_out():
    hole = shapes.flower(radius=1.0).rings[0]
    ring = shapes.polygon_of("ring", shapes.flower().rings[0], holes=[hole])
    parts = (inside("flower"), constrained(COSINE, shapes.polygon_of("hole", hole)), constrained(COSINE, ring))
    whole, inner, rest = (np.exp(problem.truth.log_normaliser) for problem in parts)
    assert rest == pytest.approx(whole - inner, rel=1e-9)


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", SHAPES)
def test_independent_draws(name):
    problem = inside(name)
    n = 100_000
    draws = problem.truth.independent_draws(n, seed=61)
    assert draws.shape == (n, 2)
    assert problem.contains(draws).all()
    assert (problem.truth.distance(draws) >= 0).all()
    edges = np.linspace(-3.5, 3.5, 36)
    masses = problem.truth.cell_masses(edges, edges)
    counts = np.histogram2d(*draws.T, bins=[edges, edges])[0]
    full = masses * n > 5
    observed = np.append(counts[full], n - counts[full].sum())
    expected = np.append(n * masses[full], n * (1 - masses[full].sum()))
    assert chisquare(observed, expected).pvalue > 1e-4


@pytest.mark.cases(0)
def test_a_domain_much_larger_than_the_target():
    """All but everything is inside a large octagon, and the grid is refined until it says so."""
    large = constrained(COSINE, shapes.polygon(radius=12.0)).truth.log_normaliser
    assert large == pytest.approx(COSINE.truth.log_normaliser, abs=1e-6)


@pytest.mark.cases(0)
def test_a_target_too_sharp_for_the_grid_is_refused():
    sharp = constrained(mixtures.gaussian_mixture([[0.1, 0.2]], 1e-8), shapes.flower())
    with pytest.raises(ValueError, match=r"the grid must resolve the target: 400 cells across .* do not integrate"):
        sharp.truth.cell_masses([-2.5, 0.0, 2.5], [-2.5, 2.5])


def test_draws_of_a_target_that_is_elsewhere_end_with_an_error():
    normal = mixtures.gaussian_mixture([[0.0, 0.0]], 1.0)
    far = constrained(normal, shapes.polygon_of("far", [[9, 9], [10, 9], [10, 10]]))
    with pytest.raises(ValueError, match="rejection accepts"):
        far.truth.independent_draws(100_000, seed=0)


def test_points_that_are_nowhere_are_not_inside():
    problem = inside("flower")
    points = [[0, 0], [np.nan, 0], [np.inf, 0], [1e16, 3e16], [-1e300, 1e300]]
    assert problem.contains(points).tolist() == [True, False, False, False, False]
    assert (shapes.flower().distance([[1e16, 3e16], [1e20, 0]]) < 0).all()
    with pytest.raises(ValueError, match=r"points must have shape \(n, 2\), got \(4, 3\)"):
        problem.contains(np.zeros((4, 3)))


def test_cells_of_any_size():
    """Cells far larger than the domain, cells beside it, and a grid that misses it."""
    truth = inside("flower").truth
    huge = truth.cell_masses([-1000, 0, 1000], [-1000, 0, 1000])
    np.testing.assert_allclose(huge, truth.cell_masses([-3, 0, 3], [-3, 0, 3]), rtol=1e-9)
    assert truth.cell_masses([5, 6, 7], [0, 1]).tolist() == [[0.0], [0.0]]
    assert truth.cell_masses([2.0, 2.1, 2.18], [-1.9, -1.5]).tolist() == [[0.0], [0.0]]  # between bounds and petals
    free = COSINE.truth.cell_masses([-1000, 0, 1000], [-1000, 1000])
    np.testing.assert_allclose(free.ravel(), 0.5, rtol=1e-6)


def test_neighbouring_seeds_share_no_draw():
    truth = inside("flower").truth
    first, second = (set(truth.independent_draws(20_000, seed=s)[:, 0].tolist()) for s in (0, 1))
    assert len(first) == 20_000
    assert not first & second


def test_bad_arguments_are_refused():
    with pytest.raises(TypeError, match="target must be a Target"):
        constrained("cosine25", shapes.flower())
    with pytest.raises(TypeError, match="region must be a Shape or a convex region"):
        constrained(COSINE, "flower")
    with pytest.raises(ValueError, match="target must have the region's dimension 2, got 1"):
        constrained(mixtures.gaussian_mixture([[0.0]], 1.0), shapes.flower())


def test_half_a_normal():
    """x ≥ 0 under N(0, 1): Z = √(π/2), mean √(2/π), variance 1 − 2/π; energies ½x²."""
    truth = constrained(mixtures.gaussian_mixture([[0.0]], 1.0), domains.box([0.0], [np.inf])).truth
    whole = mixtures.gaussian_mixture([[0.0]], 1.0).truth.log_normaliser
    assert truth.log_normaliser == pytest.approx(whole + np.log(0.5), abs=1e-6)
    assert truth.mean[0] == pytest.approx(np.sqrt(2.0 / np.pi), abs=1e-6)
    assert truth.covariance[0, 0] == pytest.approx(1.0 - 2.0 / np.pi, abs=1e-6)
    assert truth.cell_masses([0.0, 1.0])[0] == pytest.approx(0.6826894921370859, abs=1e-6)
    spread = np.diff(truth.energy_quantiles([0.5, 0.9]))[0]
    assert spread == pytest.approx((1.6448536269514722**2 - 0.6744897501960817**2) / 2.0, abs=1e-3)


REGIONS = [
    domains.ball([0.5, 0.0], 1.0),
    domains.box([0.2, -np.inf], [np.inf, 1.0]),
    domains.simplex(2),
    shapes.cross(),
]


@pytest.mark.cases(2)
@pytest.mark.slow_cases("ball", "simplex")
@pytest.mark.parametrize("region", REGIONS, ids=[region.name for region in REGIONS])
def test_moments_modes_and_quantiles_against_exact_draws(region):
    truth = constrained(COSINE, region).truth
    draws = truth.independent_draws(30_000, seed=62)
    energies = COSINE.evaluate(draws)[0]
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert (np.abs(draws.mean(axis=0) - truth.mean) < 4.5 * error).all()
    assert not (np.abs(draws.mean(axis=0) - truth.mean - 0.1) < 4.5 * error).any()
    away = np.prod(draws - truth.mean, axis=1)
    assert abs(away.mean() - truth.covariance[0, 1]) < 4.5 * away.std() / np.sqrt(len(draws))
    weights = truth.modes.weights
    assert weights.sum() == pytest.approx(1.0, abs=1e-9)
    assert region.contains(truth.modes.centres).all()
    shares = truth.memberships(draws).mean(axis=0)
    assert (np.abs(shares - weights) <= 4.5 * np.sqrt(weights * (1 - weights) / len(draws)) + 1e-6).all()
    for p in (0.1, 0.5, 0.9):
        below = (energies <= truth.energy_quantiles([p])).mean()
        assert abs(below - p) < 4.5 * np.sqrt(p * (1 - p) / len(draws)) + 1e-4


def test_an_orthant_of_four_dimensions():
    """By exact draws: a normal's 16th part, each mean √(2/π), to the stated accuracy."""
    normal = mixtures.gaussian_mixture(np.zeros((1, 4)), 1.0)
    truth = constrained(normal, domains.box([0.0] * 4, [np.inf] * 4)).truth
    assert truth.accuracy < 0.05
    assert abs(truth.log_normaliser - normal.truth.log_normaliser + np.log(16.0)) < truth.accuracy
    np.testing.assert_allclose(truth.mean, np.sqrt(2.0 / np.pi), rtol=truth.accuracy)
    np.testing.assert_allclose(np.diag(truth.covariance), 1.0 - 2.0 / np.pi, rtol=truth.accuracy)
    assert truth.cell_masses([0.0, 1.0], [0.0, 1.0])[0, 0] == pytest.approx(0.68269**2, abs=truth.accuracy)
    with pytest.raises(ValueError, match="needs 1000 of its draws inside, got"):
        _ = constrained(normal, domains.box([4.0] * 4, [5.0] * 4)).truth.mean


@target(dim=2)
def own_wells(x):
    """Two wells at x = ±1 with 8 nats between them, as a user writes them, without a truth."""
    g = x[0] ** 2 - 1.0
    return 8.0 * g * g + 0.1 * x[0] + 2.0 * x[1] ** 2, (32.0 * g * x[0] + 0.1, 4.0 * x[1])


@target(dim=2)
def own_hill(x):
    return -2.0 * (x[0] ** 2 + x[1] ** 2), (-4.0 * x[0], -4.0 * x[1])


@target(dim=1)
def own_line(x):
    return 0.3 * x[0] - 2.0 * x[0] ** 2, (0.3 - 4.0 * x[0],)


LEFT = 0.54847779  # of ∫ exp(−8 (x² − 1)² − x/10) from −2 to the top at 0.0016, of all to 2 (``scipy.integrate.quad``)
SQUARE = shapes.polygon_of("square", [[-2, -2], [2, -2], [2, 2], [-2, 2]])


@pytest.mark.parametrize("region", [domains.box([-2.0, -2.0], [2.0, 2.0]), SQUARE], ids=["box", "polygon"])
def test_modes_of_a_target_without_any_are_found_in_a_region(region):
    truth = constrained(own_wells, region).truth
    np.testing.assert_allclose(truth.modes.centres, [[-1.0016, 0.0], [0.9984, 0.0]], atol=1e-3)
    np.testing.assert_allclose(truth.modes.weights, [LEFT, 1.0 - LEFT], atol=1e-6)
    assert truth.memberships([[1.0, 0.0], [-1.0, 0.0]]).tolist() == [[0.0, 1.0], [1.0, 0.0]]


@pytest.mark.slow
def test_modes_at_corners_are_found():
    modes = constrained(own_hill, domains.box([-1.0, -1.0], [1.0, 1.0])).truth.modes
    assert {tuple(centre) for centre in modes.centres.round(3).tolist()} == {(a, b) for a in (-1, 1) for b in (-1, 1)}
    np.testing.assert_allclose(modes.weights, 0.25, atol=1e-6)


def test_modes_at_walls_are_found():
    """At both ends of a line, whose border is the top at 0.075."""
    line = constrained(own_line, domains.box([-2.0], [1.5])).truth.modes
    x = np.linspace(-2.0, 1.5, 2_000_001)
    density = np.exp(2.0 * x * x - 0.3 * x)
    np.testing.assert_allclose(line.weights[0], density[x < 0.075].sum() / density.sum(), atol=1e-5)
    assert line.centres[:, 0].tolist() == [-2.0, 1.5]


def test_modes_that_cannot_be_found_are_refused():
    nowhere = target(lambda x: (np.inf, (0.0,)), dim=1, name="nowhere")
    with pytest.raises((UnavailableError, ValueError), match="nowhere"):
        constrained(nowhere, domains.box([0.0], [1.0])).truth.modes  # noqa: B018


def same_modes(found, wanted):
    """Whether two lists of modes are the same."""
    np.testing.assert_allclose(found.centres, wanted.centres, atol=1e-3)
    np.testing.assert_allclose(found.weights, wanted.weights, atol=1e-6)


@target(dim=1)
def own_pair(x):
    """Two wells at ±1, the left one deeper and narrower, so that its basin is not what is nearest to it."""
    shift = 0.3 * x[0]
    return 4.0 * (x[0] ** 2 - 1.0) ** 2 + 2.0 * shift, (16.0 * x[0] * (x[0] ** 2 - 1.0) + 0.6,)


@pytest.mark.parametrize("high", [2.0, 0.8])
def test_a_target_has_the_same_modes_in_a_region_with_its_truth_as_without(high):
    """Basins, cut at the barrier; a well whose minimum is outside has its mode at the wall."""
    region = domains.box([-2.0], [high])
    found = constrained(with_truth(own_pair), region).truth
    same_modes(found.modes, constrained(own_pair, region).truth.modes)
    top = np.sort(np.roots([16.0, 0.0, -16.0, 0.6]).real)[1]
    left, all_of_it = (
        quad(lambda x: np.exp(-(4.0 * (x * x - 1.0) ** 2 + 0.6 * x)), -2.0, end)[0] for end in (top, high)
    )
    np.testing.assert_allclose(found.modes.weights, [left / all_of_it, 1.0 - left / all_of_it], atol=1e-6)
    assert found.memberships([[top - 0.01], [top + 0.01]]).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_centres_that_were_given_are_looked_at_in_a_region():
    """A mode that is narrower than the lattice can see."""

    @target(dim=1)
    def needle(x):
        wide, thin = np.exp(-0.5 * x[0] * x[0]), 2e4 * np.exp(-0.5e8 * (x[0] - 1.00013) ** 2)
        return -np.log(wide + thin), ((x[0] * wide + 1e8 * (x[0] - 1.00013) * thin) / (wide + thin),)

    own = with_truth(needle, window=[-9.0, 9.0], centres=[[0.0], [1.00013]])
    modes = constrained(own, domains.box([-8.0], [8.0])).truth.modes
    np.testing.assert_allclose(np.sort(modes.centres[:, 0]), [0.0, 1.00013], atol=1e-4)
    left = norm.cdf(1.0) / 3.0  # what lies to the right of the needle descends into it
    np.testing.assert_allclose(modes.weights.min(), left, atol=1e-3)


@pytest.mark.parametrize(("centre", "wall", "n_modes"), [(1.5, 1.2, 2), (1.3, 1.0, 2), (1.5, 4.0, 2), (1.5, 0.2, 1)])
def test_a_component_whose_centre_is_outside_has_a_mode_at_the_wall(centre, wall, n_modes):
    pair, sd = mixtures.gaussian_mixture([[-centre], [centre]], 0.5), np.sqrt(0.5)
    modes = constrained(pair, domains.box([-4.0], [wall])).truth.modes
    assert len(modes.centres) == n_modes
    right, left = (norm.cdf([0.0, wall], c, sd) - norm.cdf(-4.0, c, sd) for c in (centre, -centre))
    share = (right[0] + left[0]) / (right[1] + left[1])  # the crest between two equal components is at 0
    if n_modes == 2:
        np.testing.assert_allclose(modes.weights, [share, 1.0 - share], atol=1e-5)
        np.testing.assert_allclose(modes.centres[1], [min(centre, wall)], atol=1e-3)


def test_a_component_outside_the_plane_likewise():
    pair = mixtures.gaussian_mixture([[-1.5, 0.0], [1.5, 0.0]], 0.5)
    truth = constrained(pair, domains.box([-4.0, -3.0], [1.2, 3.0])).truth
    line = constrained(mixtures.gaussian_mixture([[-1.5], [1.5]], 0.5), domains.box([-4.0], [1.2])).truth
    np.testing.assert_allclose(truth.modes.weights, line.modes.weights, atol=1e-5)
    assert truth.memberships([[1.0, 0.0], [-1.0, 1.0]]).tolist() == [[0.0, 1.0], [1.0, 0.0]]


NORMAL3 = mixtures.gaussian_mixture(np.zeros((1, 3)), 1.0)
PAIR3 = mixtures.gaussian_mixture([[-1.5, 0.0, 0.0], [1.5, 0.0, 0.0]], 0.5)


@pytest.mark.parametrize(
    ("own", "region"),
    [
        (classics.banana(dim=3), domains.box([-9.0, -30.0, -4.0], [9.0, 1.0, 4.0])),
        (PAIR3, domains.box([-4.0] * 3, [1.2, 4.0, 4.0])),
    ],
    ids=["one centre, outside, and two arms inside", "one of two centres inside"],
)
def test_minima_at_walls_of_three_dimensions_are_refused(own, region):
    truth = constrained(own, region).truth
    with pytest.raises(UnavailableError, match=r"a minimum that is none of 1 known holds \d\d% of its draws"):
        _ = truth.modes
    assert truth.mean.shape == (3,)


@pytest.mark.parametrize(
    ("own", "region", "n_modes"),
    [
        (NORMAL3, domains.box([0.5, 0.5, -1.0], [9.0] * 3), 1),
        (NORMAL3, domains.ball([1.5, 0.0, 0.0], 1.4), 1),
        (classics.banana(dim=3), domains.box([0.5, -30.0, -4.0], [9.0, 30.0, 4.0]), 1),
        (PAIR3, domains.box([-4.0] * 3, [4.0] * 3), 2),
    ],
    ids=["a corner", "a ball", "one arm", "both centres inside"],
)
def test_modes_of_three_dimensions_that_are_right_are_given(own, region, n_modes):
    assert len(constrained(own, region).truth.modes.weights) == n_modes
