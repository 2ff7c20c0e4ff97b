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
from numba import types
from numpy.typing import NDArray

from toolkit.checks import check_array, check_count, check_number
from toolkit.compiling import compile_part
from toolkit.polygons import Domain, polygon_domain, signed_distance
from toolkit.signatures import MATRIX

from .rejection import accepted, generator

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
        return signed_distance(self.domain, check_points(points))

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


def check_points(points: Any) -> Array:
    """``points`` as finite floats of shape (n, 2). Raises ValueError otherwise."""
    array = check_array("points", points)
    if array.ndim != 2 or array.shape[1] != 2:
        raise ValueError(f"points must have shape (n, 2), got {array.shape}")
    return array


def ring_area(ring: Array) -> float:
    """Signed area of a ring, positive counter-clockwise."""
    x, y = (ring - ring[0]).T
    return 0.5 * float(x @ np.roll(y, -1) - np.roll(x, -1) @ y)


def polygon_of(name: str, outer: Any, holes: Sequence[Any] = ()) -> Shape:
    """The polygon with the given outer ring and holes, each (vertices, 2), in either direction, first point once.

    Raises ValueError for fewer than 3 vertices, repeated neighbours, no area, or an edge that meets another.
    """
    rings = []
    for place, given in enumerate([outer, *holes]):
        label = "outer" if place == 0 else f"holes[{place - 1}]"
        ring = check_array(label, given)
        if ring.ndim != 2 or ring.shape[1] != 2 or len(ring) < 3:
            raise ValueError(f"{label} must have shape (vertices, 2) with at least 3 vertices, got {ring.shape}")
        repeats = np.flatnonzero((ring == np.roll(ring, -1, axis=0)).all(axis=1))
        if repeats.size:
            raise ValueError(f"{label} must not repeat a vertex, got {ring[repeats[0]].tolist()} twice in a row")
        area = ring_area(ring)
        if not abs(area) > 0.0:
            raise ValueError(f"{label} must enclose an area, got {area}")
        rings.append(ring if (area > 0) == (place == 0) else ring[::-1].copy())
    segments = np.concatenate([np.hstack([ring, np.roll(ring, -1, axis=0)]) for ring in rings])
    following = np.concatenate(
        [np.roll(np.arange(len(r)), -1) + n for r, n in zip(rings, np.cumsum([0, *map(len, rings)]), strict=False)]
    )
    find = compile_part(
        find_crossing, types.UniTuple(types.int64, 2)(MATRIX, types.Array(types.int64, 1, "C")), allocates=True
    )
    first, second = find(segments, following)
    if first >= 0:
        raise ValueError(
            f"{name} must not cross or touch itself, but its edges from {segments[first, :2].tolist()} and from "
            f"{segments[second, :2].tolist()} meet"
        )
    outlines = [Shape(name, (ring if place == 0 else ring[::-1],)) for place, ring in enumerate(rings)]
    for place, ring in enumerate(rings[1:]):
        if not outlines[0].contains(ring[:1])[0]:
            raise ValueError(f"holes[{place}] must lie inside the outer ring, got a vertex at {ring[0].tolist()}")
        for other, outline in enumerate(outlines[1:]):
            if other != place and outline.contains(ring[:1])[0]:
                raise ValueError(
                    f"holes[{place}] must not lie inside holes[{other}], got a vertex at {ring[0].tolist()}"
                )
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


def find_crossing(segments: Any, following: Any) -> Any:
    """The first two edges (rows x1, y1, x2, y2) that meet other than as neighbours in a ring; (−1, −1) for none."""
    for i in range(len(segments)):
        ax, ay, bx, by = segments[i]
        for j in range(i + 1, len(segments)):
            cx, cy, dx, dy = segments[j]
            if max(ax, bx) < min(cx, dx) or max(cx, dx) < min(ax, bx):
                continue
            if max(ay, by) < min(cy, dy) or max(cy, dy) < min(ay, by):
                continue
            c_side = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
            d_side = (bx - ax) * (dy - ay) - (by - ay) * (dx - ax)
            a_side = (dx - cx) * (ay - cy) - (dy - cy) * (ax - cx)
            b_side = (dx - cx) * (by - cy) - (dy - cy) * (bx - cx)
            if following[i] == j or following[j] == i:
                turns_back = (bx - ax) * (dx - cx) + (by - ay) * (dy - cy) < 0.0
                if c_side == 0.0 and d_side == 0.0 and turns_back:
                    return i, j
                continue
            if c_side * d_side <= 0.0 and a_side * b_side <= 0.0:
                return i, j
    return np.int64(-1), np.int64(-1)
