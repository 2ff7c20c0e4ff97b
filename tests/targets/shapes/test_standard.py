"""Shapes: areas in closed form, and bad ones refused with the reason."""

import dataclasses

import numpy as np
import pytest
import shapely

from targets import shapes


@pytest.mark.parametrize("radius", [0.5, 2.0])
@pytest.mark.parametrize("name", ["flower", "heart", "polygon", "cross", "star", "annulus", "ell"])
def test_area(name, radius):
    sizes = {"radius": radius, "inner": 0.3} if name == "annulus" else {"radius": radius}
    shape = getattr(shapes, name)(**sizes)
    assert shape.volume == shape.area
    assert shape.area == pytest.approx(shape.curve_area, rel=6e-7)
    assert shape.area == pytest.approx(shapely.Polygon(shape.rings[0], shape.rings[1:]).area, rel=1e-11)


def test_sizes_are_those_of_the_released_code():
    np.testing.assert_allclose(np.ravel(shapes.flower().bounds), (-2.1895, -1.9138, 2.1895, 2.2857), atol=5e-5)
    np.testing.assert_allclose(np.ravel(shapes.heart().bounds), (-3.2, -3.4, 3.2, 2.385), atol=1e-3)
    np.testing.assert_allclose(np.ravel(shapes.polygon().bounds), (-2, -2, 2, 2), atol=1e-12)
    np.testing.assert_allclose(np.ravel(shapes.cross().bounds), (-1.9021, -1.9021, 1.9021, 1.9021), atol=5e-5)
    assert len(shapes.cross().rings[0]) == 12


def test_star_annulus_and_ell():
    corners = shapes.star(points=5, depth=(np.sqrt(5.0) - 1.0) / 2.0).rings[0][::-1]  # tips and notches in turn
    for tip in range(0, 10, 2):  # the line between a tip and the next but one holds the two notches between them
        line = corners[(tip + 4) % 10] - corners[tip]
        for notch in (corners[(tip + 1) % 10], corners[(tip + 3) % 10]):
            assert line[0] * (notch - corners[tip])[1] == pytest.approx(line[1] * (notch - corners[tip])[0], abs=1e-12)
    inside = [[0, 0], [1.5, 0], [0, -1.5], [1, 1]]
    assert shapes.annulus().contains(inside).tolist() == [False, True, True, True]
    assert shapes.ell().contains(inside).tolist() == [True, True, True, False]


def test_integer_points_inside_are_as_many_as_reported():
    grid = np.stack(np.meshgrid(np.arange(-4.0, 5.0), np.arange(-4.0, 5.0)), axis=-1).reshape(-1, 2)
    counts = {name: int(getattr(shapes, name)().contains(grid).sum()) for name in ("flower", "polygon", "cross")}
    assert counts["flower"] == 8
    assert counts["cross"] == 5
    assert 9 <= counts["polygon"] <= 13  # four of the octagon's vertices are integer points, to rounding


def test_uniform_draws():
    shape = shapes.flower()
    points = shape.uniform_draws(50_000, seed=1)
    assert points.shape == (50_000, 2)
    assert shape.contains(points).all()
    (x_min, y_min), (x_max, y_max) = shape.bounds
    counts = np.histogram2d(*points.T, bins=6, range=[[x_min, x_max], [y_min, y_max]])[0]
    polygon = shapely.Polygon(shape.rings[0])
    xs, ys = np.linspace(x_min, x_max, 7), np.linspace(y_min, y_max, 7)
    areas = np.array(
        [
            [polygon.intersection(shapely.box(xs[i], ys[j], xs[i + 1], ys[j + 1])).area for j in range(6)]
            for i in range(6)
        ]
    )
    expected = 50_000 * areas / shape.area
    full = expected > 5
    assert ((counts - expected)[full] ** 2 / expected[full]).sum() < 36 + 6 * np.sqrt(2 * 36)
    np.testing.assert_array_equal(shape.uniform_draws(10, seed=2), shape.uniform_draws(10, seed=2))


SQUARE = [[0, 0], [1, 0], [1, 1], [0, 1]]
BAD = {
    "too few": (SQUARE[:2], (), "at least 3 vertices"),
    "wrong shape": ([[0, 0, 0]] * 4, (), r"outer must have shape \(vertices, 2\)"),
    "no numbers": ("circle", (), "outer must be an array of real numbers"),
    "not finite": ([[0, 0], [1, np.nan], [1, 1]], (), "outer must be finite, got nan at"),
    "repeated vertex": ([[0, 0], [1, 0], [1, 0], [1, 1]], (), "repeat a vertex"),
    "closed twice": ([*SQUARE, SQUARE[0]], (), "repeat a vertex"),
    "no area": ([[0, 0], [1, 1], [2, 2]], (), "enclose an area"),
    "no area but rounding": (
        [[0, 0], [0.1, 0.3], [3 * 0.1, 3 * 0.3]],
        (),
        "outer must enclose an area, got -?[0-9.]+e-",
    ),
    "too large": ([[0, 0], [1e200, 0], [0, 1e200]], (), "enclose an area, got inf"),
    "holes of none": (SQUARE, None, "holes must be a sequence of rings, got None of type NoneType"),
    "figure of eight": ([[0, 0], [2, 2], [2, 0], [0, 3]], (), "must not cross or touch itself"),
    "folds back": ([[0, 0], [2, 0], [1, 0], [1, 1]], (), "must not cross or touch itself"),
    "hole crosses": (SQUARE, [[[0.5, 0.5], [2, 0.5], [0.5, 0.6]]], "must not cross or touch itself"),
    "nested holes": (
        SQUARE,
        [[[0.1, 0.1], [0.9, 0.1], [0.1, 0.9]], [[0.2, 0.2], [0.3, 0.2], [0.2, 0.3]]],
        r"holes\[1\] must not lie inside holes\[0\]",
    ),
    "hole outside": (SQUARE, [[[5, 5], [6, 5], [5, 6]]], r"holes\[0\] must lie inside"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_polygons_are_refused(name):
    outer, holes, message = BAD[name]
    with pytest.raises((TypeError, ValueError), match=message):
        shapes.polygon_of("bad", outer, holes)


def test_bad_curves_and_numbers_are_refused():
    with pytest.raises(ValueError, match="must be closed"):
        shapes.curve("open", lambda t: (t, t**2))
    with pytest.raises(ValueError, match="must not cross or touch itself"):
        shapes.curve("eight", lambda t: (np.sin(4 * np.pi * t), np.sin(2 * np.pi * t + 0.1)), n_vertices=64)
    for make, argument in (
        (lambda: shapes.flower(petals=0), "petals"),
        (lambda: shapes.flower(offset=1.0), "offset"),
        (lambda: shapes.heart(radius=-1.0), "radius"),
        (lambda: shapes.polygon(sides=2), "sides"),
        (lambda: shapes.cross(radius=np.nan), "radius"),
        (lambda: shapes.star(points=2), "points"),
        (lambda: shapes.star(depth=1.0), "depth"),
        (lambda: shapes.annulus(inner=2.0), "inner"),
        (lambda: shapes.ell(radius=0.0), "radius"),
        (lambda: shapes.flower(petals=8192), "n_vertices"),
        (lambda: shapes.flower(petals=4095), "radius|n_vertices|flower"),
    ):
        with pytest.raises(ValueError, match=f"{argument} must be"):
            make()


def test_curves_that_are_none():
    with pytest.raises(TypeError, match="function must be callable, got 3"):
        shapes.curve("three", 3)
    with pytest.raises(TypeError, match=r"function\(t\) must be an array of real numbers"):
        shapes.curve("none", lambda t: None)
    with pytest.raises(ValueError, match="area must be finite and > 0, got 0"):
        shapes.curve("area", lambda t: (np.cos(2 * np.pi * t), np.sin(2 * np.pi * t)), area=0)
    with pytest.raises(ValueError, match=r"function must return \(x, y\)"):
        shapes.curve("short", lambda t: (t[:5], t[:5]))


def test_draws_by_rejection_end():
    sliver = shapes.polygon_of("sliver", [[0, 0], [1, 1], [1 - 1e-9, 1 + 1e-9]])
    with pytest.raises(ValueError, match="uniform draws in 'sliver': rejection accepts"):
        sliver.uniform_draws(10, seed=0)
    assert shapes.flower().uniform_draws(0, seed=0).shape == (0, 2)
    with pytest.raises(TypeError, match="seed must be an integer, got None"):
        shapes.flower().uniform_draws(1, seed=None)


def test_direction_of_rings_does_not_matter():
    hole = [[0.2, 0.2], [0.4, 0.2], [0.4, 0.4]]
    shape, other = (shapes.polygon_of("s", SQUARE[::d], [hole[::d]]) for d in (1, -1))
    assert shape.area == pytest.approx(0.98)
    assert other.area == pytest.approx(0.98)
    points = np.random.default_rng(3).random((500, 2))
    np.testing.assert_array_equal(shape.contains(points), other.contains(points))


def test_distances_of_what_is_nowhere_are_refused():
    for points in ([[np.nan, 0.0]], [[0.0, np.inf]]):
        with pytest.raises(ValueError, match="points must be finite, got"):
            shapes.cross().distance(points)
    with pytest.raises(TypeError, match="points must be an array of real numbers, got 'here'"):
        shapes.cross().contains("here")
    assert repr(dataclasses.replace(shapes.flower(), name="mine")) == "<Shape 'mine' of 8192 vertices>"


def test_a_polygon_of_many_vertices():
    """Crossings by a sweep: 100,000 edges of a coast, in far fewer than their 5·10⁹ pairs; and one that crosses."""
    t = 2 * np.pi * np.arange(100_000) / 100_000
    r = 1.0 + 0.01 * np.random.default_rng(4).random(t.size)
    ring = np.stack([r * np.cos(t), r * np.sin(t)], axis=1)
    coast = shapes.polygon_of("coast", ring)
    assert coast.area == pytest.approx(np.pi * np.mean(r) ** 2, rel=1e-4)
    assert coast.contains([[0.99, 0.0], [1.02, 0.0]]).tolist() == [True, False]
    ring[1000] *= -1.5
    with pytest.raises(ValueError, match="coast must not cross or touch itself"):
        shapes.polygon_of("coast", ring)


def test_crossings_are_those_that_shapely_finds():
    """Random polygons of 12 vertices around the origin, with two vertices exchanged in half of them."""
    rng, refused = np.random.default_rng(5), 0
    for trial in range(200):
        angle = 2 * np.pi * (np.arange(12) + 0.8 * rng.random(12)) / 12
        ring = rng.uniform(0.3, 1.0, (12, 1)) * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        if trial % 2:
            i, j = rng.choice(12, 2, replace=False)
            ring[[i, j]] = ring[[j, i]]
        try:
            shapes.polygon_of("random", ring)
            message = ""
        except ValueError as error:
            message = str(error)
        assert shapely.Polygon(ring).is_valid == (message == "")
        assert "must not cross or touch itself" in message or message == ""
        refused += message != ""
    assert 50 < refused < 150
