"""Convex regions of any dimension: box faces, linear walls and balls, with distances, volumes and uniform draws."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from toolkit._compiler import HoldsFunctions
from toolkit.boundaries.convex import convex_domain
from toolkit.errors import check_array
from toolkit.problem import Domain, check_points, is_inside, shows_call

from ..arrays import Array, Bools
from ..truth.rejection import accepted, check_draws, generator
from .interiors import inner_point, outer_bounds, project_to_part, project_to_polytope

Draw = Callable[[int, np.random.Generator], Array]

HULL_DIM = 6  # up to which a polytope's volume is that of the hull of its vertices
N_VOLUME_DRAWS = 1_000_000  # draws behind a volume without a closed form


@dataclass(frozen=True, eq=False)
class Convex(HoldsFunctions):
    """{x: lower ≤ x ≤ upper, normals · x ≤ offsets, |x − centres| ≤ radii}; normals of length 1, (walls, dim).

    lower, upper: (dim,), infinite where there is no side. offsets: (walls,). centres: (balls, dim). radii: (balls,).
    closed: volume and uniform draws where known in closed form. part_of: a region that contains this one and has them.
    """

    name: str
    lower: Array
    upper: Array
    normals: Array
    offsets: Array
    centres: Array
    radii: Array
    closed: tuple[float, Draw] | None = None
    part_of: "Convex | None" = None

    @shows_call
    def __repr__(self) -> str:
        """Its name and dimension."""
        return f"<Convex {self.name!r} of {self.dim} dimensions>"

    @property
    def dim(self) -> int:
        """Dimension of the space."""
        return len(self.lower)

    @cached_property
    def domain(self) -> Domain:
        """The region as a domain of the engine."""
        return convex_domain(self.name, self.lower, self.upper, self.normals, self.offsets, self.centres, self.radii)

    @cached_property
    def walls(self) -> tuple[Array, Array]:
        """Unit normals and offsets of all flat walls, finite sides of the box first."""
        low, high = np.isfinite(self.lower), np.isfinite(self.upper)
        normals = np.vstack([-np.eye(self.dim)[low], np.eye(self.dim)[high], self.normals])
        return normals, np.concatenate([-self.lower[low], self.upper[high], self.offsets])

    @cached_property
    def interior(self) -> Array:
        """A point (dim,) inside, away from all walls. Raises ValueError where there is none."""
        ends = np.stack([self.lower, self.upper])
        return inner_point(self.name, self.walls, ends, self.centres, self.radii)

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        """Lowest and highest value of each coordinate, each (dim,), inf where there is none.

        Where there are both walls and balls they may be wider than need be.
        """
        ends = np.stack([self.lower, self.upper])
        if len(self.normals) or len(self.radii):
            ends = outer_bounds(self.walls, ends, self.centres, self.radii, self.interior)
        return ends[0], ends[1]

    def contains(self, points: Any) -> Bools:
        """Whether each of ``points`` (n, dim) is finite and inside or on the boundary; shape (n,)."""
        return is_inside(self.domain, check_points(points, self.dim))

    def _margins(self, points: Array) -> Array:
        """How far inside of each wall, then of each ball, points (n, dim) are; shape (n, walls + balls)."""
        normals, offsets = self.walls
        distances = np.linalg.norm(points[:, None] - self.centres, axis=2)
        return np.hstack([offsets - points @ normals.T, self.radii - distances])

    def nearest(self, points: Any) -> Array:
        """The boundary point nearest to each of ``points`` (n, dim), exact to some 1e-14; shape (n, dim)."""
        points = check_array("points", check_points(points, self.dim))
        margins = self._margins(points)
        nearest_points = points + margins.min(axis=1)[:, None] * self._outward(points, margins)
        for n in np.flatnonzero((margins < 0.0).any(axis=1)):
            nearest_points[n] = project_to_part(points[n], self._project_to_walls, self.centres, self.radii)
        return np.asarray(nearest_points)

    def _project_to_walls(self, point: Array) -> Array:
        """The point nearest to ``point`` of the polytope alone, the balls left out."""
        return project_to_polytope(point, *self.walls) if len(self.normals) else np.clip(point, self.lower, self.upper)

    def _outward(self, points: Array, margins: Array) -> Array:
        """The outward unit normal, at each point, of the wall or ball with the smallest margin."""
        normals, _ = self.walls
        face = margins.argmin(axis=1)
        ball = face >= len(normals)
        outward = np.empty_like(points)
        outward[~ball] = normals[face[~ball]]
        offset = points[ball] - self.centres[face[ball] - len(normals)]
        length = np.linalg.norm(offset, axis=1, keepdims=True)
        outward[ball] = np.where(length > 0.0, offset / np.where(length > 0.0, length, 1.0), np.eye(self.dim)[0])
        return outward

    def distance(self, points: Any) -> Array:
        """Distance of ``points`` (n, dim) to the boundary, positive inside, negative outside; shape (n,)."""
        points = check_array("points", check_points(points, self.dim))
        margins = self._margins(points).min(axis=1)
        outside = margins < 0.0
        margins[outside] = -np.linalg.norm(points[outside] - self.nearest(points[outside]), axis=1)
        return np.asarray(margins)

    def normal(self, points: Any) -> Array:
        """The outward unit normal at the boundary point nearest to each of ``points`` (n, dim); shape (n, dim).

        Where several walls meet it is, for points outside, along the shortest way out; else that of one of them.
        """
        points = check_array("points", check_points(points, self.dim))
        nearest_points, margins = self.nearest(points), self._margins(points)
        outward = self._outward(nearest_points, margins)
        offset = points - nearest_points
        length = np.linalg.norm(offset, axis=1)
        is_outside = (margins.min(axis=1) < 0.0) & (
            length > 1e-8 * np.maximum(np.abs(nearest_points), np.abs(points)).max(axis=1)
        )
        outward[is_outside] = offset[is_outside] / length[is_outside, None]
        return outward

    @property
    def is_bounded(self) -> bool:
        """Whether all of it lies within finite bounds."""
        return bool(np.isfinite(self.bounds).all())

    @cached_property
    def _volume_and_error(self) -> tuple[float, float]:
        """Volume and its standard error."""
        if self.closed is not None:
            return self.closed[0], 0.0
        if not self.is_bounded:
            return np.inf, 0.0
        if not len(self.radii) and self.dim <= HULL_DIM:
            normals, offsets = self.walls
            vertices = scipy.spatial.HalfspaceIntersection(
                np.column_stack([normals, -offsets]), self.interior
            ).intersections
            return float(scipy.spatial.ConvexHull(vertices).volume), 0.0
        draw, volume = self._proposals()
        share = float(self.contains(draw(N_VOLUME_DRAWS, np.random.default_rng(0))).mean())
        return volume * share, volume * float(np.sqrt(share * (1.0 - share) / N_VOLUME_DRAWS))

    @property
    def volume(self) -> float:
        """Its volume: inf where unbounded; exact, or else by a share of 10⁶ draws, see ``volume_error``.

        Exact are boxes, balls, simplices, ordered coordinates with ends, and polytopes of up to 6 dimensions.
        """
        return self._volume_and_error[0]

    @property
    def volume_error(self) -> float:
        """Standard error of ``volume``; 0 where that is exact, to rounding."""
        return self._volume_and_error[1]

    def _proposals(self) -> tuple[Draw, float]:
        """Uniform draws from a region that contains this one, the smallest of known volume; and that volume."""
        lower, upper = self.bounds
        volume = float(np.prod(upper - lower))
        if self.part_of is not None and self.part_of.closed is not None and self.part_of.closed[0] < volume:
            return self.part_of.closed[1], self.part_of.closed[0]
        return lambda n, rng: lower + (upper - lower) * rng.random((n, self.dim)), volume

    def uniform_draws(self, n: int, *, seed: int) -> Array:
        """Independent uniform points (n, dim), exact. Raises ValueError where unbounded, or where hardly any fit."""
        n, rng = check_draws(n, self.dim), generator(seed)
        if not self.is_bounded:
            raise ValueError(f"uniform draws need a bounded region, and {self.name!r} reaches to infinity")
        if self.closed is not None:
            return self.closed[1](n, rng)
        draw, _ = self._proposals()

        def propose(batch: int) -> Array:
            points = draw(batch, rng)
            return np.asarray(points[self.contains(points)])

        return accepted(n, self.dim, propose, name=f"uniform draws in {self.name!r}")
