"""Polygons with corners and holes, and closed parametric curves, as domains.

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

from toolkit._compiler import INTEGERS, MATRIX, compile_part
from toolkit.boundaries.polygon import nearest_points, polygon_domain, signed_distance
from toolkit.errors import check_array, check_count, check_number, check_text, is_sequence, shown
from toolkit.problem import Domain, check_points, is_inside, shows_call

from ..arrays import Array, Bools
from ..truth.rejection import accepted, generator

MIN_RELATIVE_AREA = 1e-14  # area, as a share of its extent's square, below which a ring encloses nothing but rounding


def ring_area(ring: Array) -> float:
    """Signed area of a ring, positive counter-clockwise."""
    x, y = (ring - ring[0]).T
    return 0.5 * float(x @ np.roll(y, -1) - np.roll(x, -1) @ y)


def check_ring(label: str, given: Any, *, clockwise: bool) -> Array:
    """``given`` as a ring (vertices, 2) in the direction asked for.

    Raises TypeError or ValueError for anything but 3 or more finite vertices without repeats that enclose an area.
    """
    ring = check_array(label, given)
    if ring.ndim != 2 or ring.shape[1] != 2 or len(ring) < 3:
        raise ValueError(f"{label} must have shape (vertices, 2) with at least 3 vertices, got {ring.shape}")
    repeats = np.flatnonzero((ring == np.roll(ring, -1, axis=0)).all(axis=1))
    if repeats.size:
        raise ValueError(f"{label} must not repeat a vertex, got {ring[repeats[0]].tolist()} twice in a row")
    with np.errstate(over="ignore", invalid="ignore"):
        area = ring_area(ring)
    if not 0.0 < abs(area) < np.inf:
        raise ValueError(f"{label} must enclose an area, got {area}")
    return ring if (area < 0) == clockwise else ring[::-1].copy()


def check_area(label: str, ring: Array) -> None:
    """Raise ValueError where a ring's area is rounding; called after the check of crossings."""
    area, extent = ring_area(ring), float(np.ptp(ring, axis=0).max())
    if abs(area) <= MIN_RELATIVE_AREA * extent * extent:
        raise ValueError(f"{label} must enclose an area, got {area} of vertices {extent} apart")


def check_crossings(name: str, rings: Sequence[Array]) -> None:
    """Raise ValueError where an edge of the rings meets another that is not its neighbour."""
    segments = np.concatenate([np.hstack([ring, np.roll(ring, -1, axis=0)]) for ring in rings])
    firsts = np.cumsum([0, *map(len, rings)])
    following = np.concatenate([np.roll(np.arange(len(r)), -1) + n for r, n in zip(rings, firsts, strict=False)])
    order = np.argsort(segments[:, ::2].min(axis=1), kind="stable")
    signature = types.UniTuple(types.int64, 2)(MATRIX, INTEGERS, INTEGERS)
    first, second = compile_part(find_crossing, signature, allocates=True)(segments, following, order)
    if first >= 0:
        raise ValueError(
            f"{name} must not cross or touch itself, but its edges from {segments[first, :2].tolist()} and from "
            f"{segments[second, :2].tolist()} meet"
        )


def find_crossing(segments: Any, following: Any, order: Any) -> Any:
    """Two edges (rows x1, y1, x2, y2) that meet other than as neighbours in a ring; (−1, −1) for none.

    ``order``: by the smaller x, so that only edges that overlap in x are compared.
    """
    for n in range(len(order)):
        i = order[n]
        ax, ay, bx, by = segments[i]
        for m in range(n + 1, len(order)):
            j = order[m]
            cx, cy, dx, dy = segments[j]
            if max(ax, bx) < min(cx, dx):
                break
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


VERTICES = 8192
MAX_VERTICES = 2**24


@dataclass(frozen=True, eq=False)
class Shape:
    """A polygon: rings (vertices, 2), the outer ones counter-clockwise, holes clockwise.

    curve_area: area of the curve it stands for, where that is known in closed form; else None.
    """

    name: str
    rings: tuple[Array, ...]
    curve_area: float | None = None

    def __post_init__(self) -> None:
        check_text("name", self.name)
        if not is_sequence(self.rings) or not self.rings:
            raise TypeError(f"rings must be a sequence of at least one ring, got {shown(self.rings)}")
        for place, ring in enumerate(self.rings):
            shape = check_array(f"rings[{place}]", ring).shape
            if len(shape) != 2 or shape[1] != 2 or shape[0] < 3:
                raise ValueError(f"rings[{place}] must have shape (vertices, 2), 3 or more, got {shape}")
        if self.curve_area is not None:
            check_number("curve_area", self.curve_area, above=0.0)

    @shows_call
    def __repr__(self) -> str:
        """Its name and size: some have 8,192 vertices."""
        return f"<Shape {self.name!r} of {sum(map(len, self.rings))} vertices>"

    @property
    def area(self) -> float:
        """Area of the polygon, holes left out."""
        return float(sum(ring_area(ring) for ring in self.rings))

    @property
    def volume(self) -> float:
        """Its area."""
        return self.area

    @property
    def dim(self) -> int:
        """2, the dimension of the plane."""
        return 2

    @property
    def bounds(self) -> tuple[Array, Array]:
        """Lowest and highest value of each coordinate, each (2,)."""
        points = np.concatenate(self.rings)
        return points.min(axis=0), points.max(axis=0)

    @cached_property
    def domain(self) -> Domain:
        """The shape as a domain of the engine."""
        return polygon_domain(self.name, self.rings)

    def distance(self, points: Any) -> Array:
        """Distance of ``points`` (n, 2) to the boundary, positive inside, negative outside; shape (n,)."""
        return signed_distance(self.domain, check_array("points", check_points(points, 2)))

    def contains(self, points: Any) -> Bools:
        """Whether each of ``points`` (n, 2) is finite and inside or on the boundary; shape (n,)."""
        return is_inside(self.domain, check_points(points, 2))

    def nearest(self, points: Any) -> Array:
        """The boundary point nearest to each of ``points`` (n, 2); shape (n, 2)."""
        return nearest_points(self.domain, check_array("points", check_points(points, 2)))[0]

    def normal(self, points: Any) -> Array:
        """The outward unit normal at the boundary point nearest to each of ``points`` (n, 2); shape (n, 2).

        At a vertex: along the line from it to the point; where the point is the vertex, between both edges' normals.
        """
        return nearest_points(self.domain, check_array("points", check_points(points, 2)))[1]

    def uniform_draws(self, n: int, *, seed: int) -> Array:
        """Independent uniform points (n, 2) inside the shape."""
        rng = generator(seed)
        lower, upper = self.bounds

        def propose(batch: int) -> Array:
            points = rng.uniform(lower, upper, size=(batch, 2))
            return np.asarray(points[self.contains(points)])

        return accepted(n, 2, propose, name=f"uniform draws in {self.name!r}")


def polygon_of(name: str, outer: Any, holes: Sequence[Any] = ()) -> Shape:
    """The polygon with the given outer ring and holes, each (vertices, 2), in either direction, first point once.

    Raises ValueError for fewer than 3 vertices, repeated neighbours, no area, an edge that meets another, or a hole
    outside the outer ring or inside another hole.
    """
    if not is_sequence(holes) and not (isinstance(holes, np.ndarray) and holes.ndim):
        raise TypeError(f"holes must be a sequence of rings, got {shown(holes)} of type {type(holes).__name__}")
    rings = [check_ring("outer", outer, clockwise=False)]
    rings += [check_ring(f"holes[{i}]", hole, clockwise=True) for i, hole in enumerate(holes)]
    check_crossings(name, rings)
    for place, ring in enumerate(rings):
        check_area(f"holes[{place - 1}]" if place else "outer", ring)
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
    n_vertices = check_count("n_vertices", n_vertices, at_least=3, below=MAX_VERTICES)
    t = np.arange(n_vertices + 1) / n_vertices
    if not callable(function):
        raise TypeError(f"function must be callable, got {shown(function)}")
    if area is not None:
        area = check_number("area", area, above=0.0)
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
