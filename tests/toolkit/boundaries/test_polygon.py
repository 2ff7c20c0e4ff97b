"""The grid look-up against Shapely: inside, distance, nearest point; holes, corners, spikes, near and far."""

import numpy as np
import pytest
import shapely

from targets import shapes
from toolkit.boundaries.polygon import CELLS, INSIDE, SIDE, polygon_domain, signed_distance

SPIKE = [[0, 0], [10, 0], [10, 1], [0.01, 0.5], [10, 2], [0, 2]]  # a gap that ends in a very sharp inner corner
COMB = [
    [0, 0],
    *[[x, y] for i in range(40) for x, y in ((i + 1, 0), (i + 1, 3), (i + 1.01, 3), (i + 1.01, 0))],
    [50, 0],
    [50, 9],
    [0, 9],
]
CASES = {
    "flower": shapes.flower(),
    "heart": shapes.heart(),
    "octagon": shapes.polygon(),
    "cross": shapes.cross(),
    "triangle": shapes.polygon_of("triangle", [[0, 0], [1e-6, 0], [0, 1e-6]]),
    "spike": shapes.polygon_of("spike", SPIKE),
    "comb": shapes.polygon_of("comb", COMB),
    "two holes": shapes.polygon_of(
        "two holes",
        [[-5, -5], [5, -5], [5, 5], [-5, 5]],
        holes=[[[-3, -3], [-1, -3], [-1, 3], [-3, 3]], shapes.flower(radius=1.0).rings[0] + [2.0, 0.0]],
    ),
    "displaced": shapes.polygon_of("displaced", shapes.cross().rings[0] + [1e6, -1e6]),
}


def points_around(shape, n, seed):
    """Points near the edge, all over, outside the grid, and very far."""
    rng = np.random.default_rng(seed)
    low, size = shape.bounds[0], np.subtract(*shape.bounds[::-1])
    ring = np.concatenate(shape.rings)
    near = ring[rng.integers(len(ring), size=n)] + rng.normal(size=(n, 2)) * size * rng.choice(
        [1e-6, 1e-3, 0.05], (n, 1)
    )
    return np.concatenate(
        [near, low + size * rng.uniform(-0.2, 1.2, (n, 2)), low + size * rng.uniform(-3, 4, (n, 2)), [low + size * 1e5]]
    )


@pytest.mark.cases(3)
@pytest.mark.parametrize("name", CASES)
def test_inside_distance_and_nearest_point(name):
    shape = CASES[name]
    oracle = shapely.Polygon(shape.rings[0], holes=shape.rings[1:])
    shapely.prepare(oracle)
    points = points_around(shape, 3000, seed=41)
    distance = shapely.distance(oracle.boundary, shapely.points(points))
    scale = np.abs(np.concatenate([points, *shape.rings])).max(axis=1).max()
    clear = distance > 1e-14 * scale
    inside = shapely.contains_xy(oracle, points)
    ours = shape.distance(points)
    np.testing.assert_allclose(np.abs(ours), distance, rtol=1e-9, atol=1e-13 * scale)
    np.testing.assert_array_equal((ours > 0)[clear], inside[clear])

    domain = shape.domain
    position, foot, outside = points.T.copy(), np.empty((2, len(points))), np.ones(len(points))
    domain.locate(position, foot, outside, domain.float_table, domain.int_table)
    np.testing.assert_array_equal((outside == 0)[clear], inside[clear])
    lost = outside != 0
    np.testing.assert_allclose(np.hypot(*(position - foot)[:, lost]), distance[lost], rtol=1e-9, atol=1e-13 * scale)
    assert (
        shapely.distance(oracle.boundary, shapely.points(foot.T[lost])) <= 1e-9 * distance[lost] + 1e-13 * scale
    ).all()


@pytest.mark.parametrize("name", ["flower", "two holes", "comb"])
def test_cells_marked_inside_are_inside(name):
    """One lookup answers for a whole cell only where the distance at its centre exceeds its half-diagonal."""
    domain = CASES[name].domain
    side = domain.int_table[SIDE]
    j, i = np.divmod(np.flatnonzero(domain.int_table[CELLS : CELLS + side**2] == INSIDE), side)
    assert i.size > 1000
    centres = domain.float_table[:2] + (np.stack([i, j], axis=1) + 0.5) / domain.float_table[2]
    assert (signed_distance(domain, centres) >= np.sqrt(0.5) / domain.float_table[2]).all()


@pytest.mark.cases(3)
@pytest.mark.parametrize("name", CASES)
def test_nearest_points_and_normals(name):
    """Against Shapely's boundary; a short way out along the normal is outside, and in is inside; |n| = 1."""
    shape = CASES[name]
    oracle = shapely.Polygon(shape.rings[0], holes=shape.rings[1:])
    points = points_around(shape, 1000, seed=42)[:-1]
    scale = np.abs(np.concatenate([points, *shape.rings])).max()
    feet, normals = shape.nearest(points), shape.normal(points)
    assert (shapely.distance(oracle.boundary, shapely.points(feet)) <= 1e-13 * scale).all()
    distance = shape.distance(points)
    np.testing.assert_allclose(np.hypot(*(points - feet).T), np.abs(distance), rtol=1e-9, atol=1e-13 * scale)
    np.testing.assert_allclose(np.hypot(*normals.T), 1.0, rtol=1e-14)
    clear = np.abs(distance) > 1e-6 * scale
    np.testing.assert_allclose((normals * (feet - points)).sum(axis=1)[clear], distance[clear], rtol=1e-9)
    width = np.sqrt(shape.area)
    corners = shapely.MultiPoint(np.concatenate(shape.rings))
    on_edge = shapely.distance(corners, shapely.points(feet)) > 1e-5 * width
    step = 1e-6 * width * normals
    if scale < 1e3 * width:  # or the step would be lost in the rounding of coordinates
        assert on_edge.sum() > 200
        assert (shape.distance(feet + step) < 0)[on_edge].all()
        assert (shape.distance(feet - step) > 0)[on_edge].all()


def test_normals_at_a_vertex_lie_between_the_edges():
    square = shapes.polygon(sides=4, radius=1.0)
    assert square.normal(square.rings[0]) == pytest.approx(square.rings[0], abs=1e-12)
    assert square.normal([[3.0, 0.0], [0.0, -4.0]]) == pytest.approx(np.array([[1.0, 0.0], [0.0, -1.0]]), abs=1e-12)


def test_lanes_not_asked_about_are_left_alone():
    domain = CASES["octagon"].domain
    position, foot = np.full((2, 3), 50.0), np.empty((2, 3))
    outside = np.array([0.0, 1.0, 0.0])
    domain.locate(position, foot, outside, domain.float_table, domain.int_table)
    assert outside.tolist() == [0.0, 1.0, 0.0]


def test_non_finite_positions_are_left_to_the_engine():
    domain = CASES["octagon"].domain
    position = np.array([[np.nan, np.inf, 0.0], [0.0, 0.0, -np.inf]])
    outside = np.ones(3)
    domain.locate(position, np.empty((2, 3)), outside, domain.float_table, domain.int_table)
    assert outside.tolist() == [0.0, 0.0, 0.0]


def test_lists_are_short():
    """Cost is a count: pieces looked at in a listed cell of the flower, on average and at most."""
    whole = polygon_domain("flower", shapes.flower().rings).int_table
    starts = whole[CELLS : CELLS + whole[SIDE] ** 2]
    lengths = whole[starts[starts != INSIDE]]
    assert lengths.mean() < 10
    assert lengths.max() < 40


def test_equal_polygons_share_one_grid_and_others_have_their_own():
    first, again, other = (
        polygon_domain("triangle", [np.array([[0.0, 0.0], [size, 0.0], [0.0, 1.0]])]) for size in (1.0, 1.0, 2.0)
    )
    assert again.int_table is first.int_table
    points = np.array([[1.2, 0.2]])
    assert signed_distance(first, points)[0] < 0.0 < signed_distance(other, points)[0]
