"""Closed shapes in the plane: parametric curves and polygons, with corners and holes, as domains.

A curve is represented by the polygon through ``n_vertices`` of its points, and that polygon is the domain: what is
sampled, its truth and its tests all speak of the same polygon. Its area differs from the curve's by a few parts in
10⁷ at the default, which ``Shape.curve_area`` lets you see.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.checks import check_array, check_count, check_number
from toolkit.polygons import Domain, polygon_domain, signed_distance
from toolkit.problem import check_points

from .rejection import accepted, generator
from .rings import check_crossings, check_ring, ring_area

Array = NDArray[np.float64]

VERTICES = 8192


@dataclass(frozen=True, eq=False)
class Shape:
    """A polygon: rings (vertices, 2), the outer ones counter-clockwise, holes clockwise.

    curve_area: area of the curve it stands for, where that is known in closed form; else None.
    """

    name: str
    rings: tuple[Array, ...]
    curve_area: float | None = None

    @property
    def area(self) -> float:
        """Area of the polygon, holes left out."""
        return float(sum(ring_area(ring) for ring in self.rings))

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """(x_min, y_min, x_max, y_max)."""
        points = np.concatenate(self.rings)
        return tuple(float(v) for v in (*points.min(axis=0), *points.max(axis=0)))  # type: ignore[return-value]

    @cached_property
    def domain(self) -> Domain:
        """The shape as a domain of the engine."""
        return polygon_domain(self.name, self.rings)

    def distance(self, points: Any) -> Array:
        """Distance of ``points`` (n, 2) to the boundary, positive inside, negative outside; shape (n,)."""
        return signed_distance(self.domain, check_points(points, 2))

    def contains(self, points: Any) -> NDArray[np.bool_]:
        """Whether each of ``points`` (n, 2) is inside or on the boundary; shape (n,)."""
        return np.asarray(self.distance(points) >= 0.0)

    def uniform_draws(self, n: int, *, seed: int) -> Array:
        """Independent uniform points (n, 2) inside the shape."""
        rng = generator(seed)
        x_min, y_min, x_max, y_max = self.bounds

        def propose(batch: int) -> Array:
            points = rng.uniform((x_min, y_min), (x_max, y_max), size=(batch, 2))
            return np.asarray(points[self.contains(points)])

        return accepted(n, 2, propose, name=f"uniform draws in {self.name!r}")


def polygon_of(name: str, outer: Any, holes: Sequence[Any] = ()) -> Shape:
    """The polygon with the given outer ring and holes, each (vertices, 2), in either direction, first point once.

    Raises ValueError for fewer than 3 vertices, repeated neighbours, no area, an edge that meets another, or a hole
    outside the outer ring or inside another hole.
    """
    rings = [check_ring("outer", outer, clockwise=False)]
    rings += [check_ring(f"holes[{i}]", hole, clockwise=True) for i, hole in enumerate(holes)]
    check_crossings(name, rings)
    outlines = [Shape(name, (ring if i == 0 else ring[::-1],)) for i, ring in enumerate(rings)] if holes else []
    for place, ring in enumerate(rings[1:]):
        vertex = f"got a vertex at {ring[0].tolist()}"
        if not outlines[0].contains(ring[:1])[0]:
            raise ValueError(f"holes[{place}] must lie inside the outer ring, {vertex}")
        for other, outline in enumerate(outlines[1:]):
            if other != place and outline.contains(ring[:1])[0]:
                raise ValueError(f"holes[{place}] must not lie inside holes[{other}], {vertex}")
    return Shape(name, tuple(rings))


def curve(
    name: str,
    function: Callable[[Array], tuple[Array, Array]],
    *,
    n_vertices: int = VERTICES,
    area: float | None = None,
) -> Shape:
    """The closed curve ``function``: t (n,) in [0, 1) → (x, y), each (n,); area: the curve's, where known.

    Raises ValueError where the curve does not close or has too few vertices for its area, or as ``polygon_of``.
    """
    n_vertices = check_count("n_vertices", n_vertices, at_least=3)
    t = np.arange(n_vertices + 1) / n_vertices
    if not callable(function):
        raise TypeError(f"function must be callable, got {function!r}")
    points = check_array("function(t)", function(t)).T.copy()
    if points.shape != (t.size, 2):
        raise ValueError(f"function must return (x, y), each of shape {t.shape}, got shape {points.T.shape}")
    gap = float(np.hypot(*(points[-1] - points[0])))
    if gap > 1e-6 * float(np.ptp(points, axis=0).max()):
        raise ValueError(
            f"function must be closed, got {points[0].tolist()} at t = 0 and {points[-1].tolist()} at t = 1"
        )
    shape = Shape(name, polygon_of(name, points[:-1]).rings, area)
    if area is not None and abs(shape.area / area - 1.0) > 1e-2:
        raise ValueError(
            f"n_vertices must be enough to follow the curve, got {n_vertices}, whose polygon has area {shape.area:g} "
            f"in place of {area:g}"
        )
    return shape


def flower(*, petals: int = 5, offset: float = 3.0, radius: float = 2.0, n_vertices: int = VERTICES) -> Shape:
    """r(t) = radius (sin 2πpt + offset) / 3.5 at angle 2πt, with p = petals.

    offset > 1, so that the curve does not pass through the origin. Area π (radius/3.5)² (offset² + ½).
    Source: r2SGLD (2024), section 4.2, with the scale of its released code, which the text omits.
    """
    petals = check_count("petals", petals, at_least=1)
    offset = check_number("offset", offset, above=1.0)
    scale = check_number("radius", radius, above=0.0) / 3.5

    def function(t: Array) -> tuple[Array, Array]:
        r = scale * (np.sin(2.0 * np.pi * petals * t) + offset)
        return r * np.cos(2.0 * np.pi * t), r * np.sin(2.0 * np.pi * t)

    return curve("flower", function, n_vertices=n_vertices, area=np.pi * scale**2 * (offset**2 + 0.5))


def heart(*, radius: float = 2.0, n_vertices: int = VERTICES) -> Shape:
    """x = radius/10 · 16 sin³ 2πt, y = radius/10 · (13 cos 2πt − 5 cos 4πt − 2 cos 6πt − cos 8πt).

    Area 1.8 π radius². Source: r2SGLD (2024), A.3, with the cube of its released code, which the text omits.
    """
    scale = check_number("radius", radius, above=0.0) / 10.0

    def function(t: Array) -> tuple[Array, Array]:
        angle = 2.0 * np.pi * t
        y = 13.0 * np.cos(angle) - 5.0 * np.cos(2 * angle) - 2.0 * np.cos(3 * angle) - np.cos(4 * angle)
        return scale * 16.0 * np.sin(angle) ** 3, scale * y

    return curve("heart", function, n_vertices=n_vertices, area=180.0 * np.pi * scale**2)


def polygon(*, sides: int = 8, radius: float = 2.0) -> Shape:
    """The regular polygon with circumradius ``radius`` and its first vertex at (0, radius).

    Area ½ sides radius² sin(2π / sides). Source: r2SGLD (2024), A.3 (an octagon).
    """
    sides = check_count("sides", sides, at_least=3)
    radius = check_number("radius", radius, above=0.0)
    angle = 2.0 * np.pi * np.arange(sides) / sides
    shape = polygon_of("polygon", radius * np.stack([np.sin(angle), np.cos(angle)], axis=1))
    return Shape("polygon", shape.rings, 0.5 * sides * radius**2 * np.sin(2.0 * np.pi / sides))


def cross(*, radius: float = 2.0) -> Shape:
    """A cross of 12 vertices: arms of half-length radius · sin 72° and half-width radius · sin 18°.

    Area 4 radius² sin 18° (2 sin 72° − sin 18°). Source: r2SGLD (2024), A.3.
    """
    radius = check_number("radius", radius, above=0.0)
    long, short = radius * np.sin(np.radians(72.0)), radius * np.sin(np.radians(18.0))
    arm = np.array([[long, -short], [long, short], [short, short]])
    turns = [np.array([[np.cos(a), np.sin(a)], [-np.sin(a), np.cos(a)]]).round() for a in np.pi / 2 * np.arange(4)]
    shape = polygon_of("cross", np.concatenate([arm @ turn for turn in turns]))
    return Shape("cross", shape.rings, 4.0 * short * (2.0 * long - short))
