"""``constrained``: a target inside a region of any dimension, with the truth of both together."""

import itertools
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from toolkit.errors import check_count, shown
from toolkit.maths.seeds import EXACT_DRAWS, derived_seed
from toolkit.problem import EnergyAccuracy, Modes, Problem, Target, Truth, check_finite_points, recorded

from ..arrays import Array, Integers
from ..shapes import Shape
from ..truth.cells import cell_integrals
from ..truth.own_targets import basins_of
from ..truth.quantiles import nearest_index, one_hot
from ..truth.region_modes import region_places
from ..truth.rejection import accepted
from ..truth.window import WindowTruth, line_truth, plane_truth
from .convex import Convex
from .left_out import LEFT_OUT, lattice_minima, share_left_out
from .sampled_truth import SampledTruth

CIRCLE_VERTICES = 8192  # of a circle; the polygon's area is smaller by a share of 1e-7


def clipped_outline(region: Convex, lower: Array, upper: Array) -> Array:
    """The part of a region between ``lower`` and ``upper``, each (2,), as a ring (vertices, 2), counter-clockwise."""
    ring = np.array([lower, [upper[0], lower[1]], upper, [lower[0], upper[1]]])
    normals, offsets = region.walls
    angle = 2.0 * np.pi * np.arange(CIRCLE_VERTICES) / CIRCLE_VERTICES
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    if len(region.radii):
        between = np.stack([np.cos(angle + np.pi / CIRCLE_VERTICES), np.sin(angle + np.pi / CIRCLE_VERTICES)], axis=1)
        ring = region.centres[0] + region.radii[0] * circle
        box = np.vstack([np.eye(2), -np.eye(2)])
        normals, offsets = np.vstack([normals, box]), np.concatenate([offsets, upper, -lower])
        for centre, radius in zip(region.centres[1:], region.radii[1:], strict=True):
            normals = np.vstack([normals, between])
            offsets = np.append(offsets, between @ centre + radius * np.cos(np.pi / CIRCLE_VERTICES))
    for normal, offset in zip(normals, offsets, strict=True):
        ring = clip_half_plane(ring, normal, offset)
    repeats = (ring == np.roll(ring, 1, axis=0)).all(axis=1)  # where a wall goes through a vertex
    return np.asarray(ring[~repeats])


def clip_half_plane(ring: Array, normal: Array, offset: float) -> Array:
    """The part of a convex ring where normal · x ≤ offset (Sutherland & Hodgman 1974)."""
    side = ring @ normal - offset
    inside = side <= 0.0
    if inside.all():
        return ring
    following, next_side = np.roll(ring, -1, axis=0), np.roll(side, -1)
    crosses = inside != np.roll(inside, -1)
    share = np.where(crosses, side / np.where(crosses, side - next_side, 1.0), 0.0)[:, None]
    both = np.stack([ring, ring + share * (following - ring)], axis=1)
    return np.asarray(both[np.stack([inside, crosses], axis=1)])


N_BOUND_DRAWS = 100_000  # draws whose range bounds an unbounded region


@recorded("")
def constrained(target: Target, region: Shape | Convex) -> Problem:
    """The problem of ``target`` restricted to ``region``: density ∝ exp(−U) inside, 0 outside.

    Its truth is by quadrature in one and two dimensions (``ConstrainedTruth``), in more by exact draws
    (``SampledTruth``). Raises TypeError for other kinds of arguments, ValueError where dimensions differ.

    >>> from targets import constrained, domains, mixtures
    >>> problem = constrained(mixtures.cosine25(), domains.box([0.0, 0.0], [2.0, 2.0]))
    >>> problem.contains([[1.0, 1.0], [3.0, 1.0]])
    array([ True, False])
    """
    if not isinstance(target, Target):
        raise TypeError(f"target must be a Target, got {shown(target)} of type {type(target).__name__}")
    if not isinstance(region, Shape | Convex):
        raise TypeError(
            f"region must be a Shape or a convex region of targets.domains, got {shown(region)} of type "
            f"{type(region).__name__}"
        )
    if target.dim != region.dim:
        raise ValueError(f"target must have the region's dimension {region.dim}, got {target.dim}")
    truth: Truth = ConstrainedTruth(target, region) if target.dim <= 2 else SampledTruth(target, region, inner_draws)
    return Problem(target, region.domain, truth)


def inner_draws(target: Target, region: Shape | Convex, n: int, seed: int) -> Array:
    """Exact draws (n, dim): the target's own that fall inside. Raises ValueError where the target has no truth."""
    truth = target.truth
    if truth is None:
        remedy = "; targets.with_truth gives it one" if target.dim <= 2 else ""
        raise ValueError(
            f"independent draws, and the extent of an open region, need a target that can draw, and {target.name!r} "
            f"has no truth{remedy}"
        )
    attempts = itertools.count()
    first = check_count("seed", seed, at_least=0, below=2**64)

    def propose(batch: int) -> Array:
        attempt = next(attempts)
        draw_seed = first if attempt == 0 else derived_seed(first, EXACT_DRAWS, attempt)
        points = truth.independent_draws(batch, seed=draw_seed)
        return np.asarray(points[region.contains(points)])

    return accepted(n, target.dim, propose, name=f"draws of {target.name!r} in {region.name!r}")


@dataclass(frozen=True, eq=False)
class ConstrainedTruth:
    """Truth of a target inside a region of one or two dimensions, by quadrature.

    In the plane, normaliser and cells are integrals over the region's own polygon (``cells.cell_integrals``),
    a circle having 8,192 sides; the rest is by panels that are split along the edge (``window.WindowTruth``). An
    unbounded region is cut at twice the range of 10⁵ draws of the target inside it. The modes are the minima of the
    energy in the region, those at its walls included, and a mode is its basin of attraction, under a descent that
    slides along walls (``region_modes``): what ``with_truth`` finds of a target, and with the same limits. A target
    that lists modes of its own without basins keeps these: a mode is all that is nearest to a centre inside. It has
    the minima of the region in their place where no centre is inside, or where a minimum that the list leaves out
    holds more than 5 % of the probability (``left_out``).
    """

    target: Target
    region: Shape | Convex
    accuracy: float = 1e-6

    @cached_property
    def _limits(self) -> tuple[Array, Array]:
        """Lower and upper bounds of the region, or of the part that is used."""
        lower, upper = (np.array(ends) for ends in self.region.bounds)
        if not np.isfinite([lower, upper]).all():
            draws = inner_draws(self.target, self.region, N_BOUND_DRAWS, 0)
            low, high = draws.min(axis=0), draws.max(axis=0)
            lower = np.where(np.isfinite(lower), lower, 2.0 * low - high)
            upper = np.where(np.isfinite(upper), upper, 2.0 * high - low)
        return lower, upper

    @cached_property
    def _points(self) -> Array:
        """Points inside: uniform, or exact draws where the region is unbounded."""
        if np.isfinite(self.region.volume):
            return self.region.uniform_draws(N_BOUND_DRAWS, seed=0)
        return inner_draws(self.target, self.region, N_BOUND_DRAWS, 0)

    @cached_property
    def _rings(self) -> tuple[Array, ...]:
        """The region of the plane, as a polygon."""
        return self.region.rings if isinstance(self.region, Shape) else (clipped_outline(self.region, *self._limits),)

    @cached_property
    def _known_centres(self) -> Array:
        """The centres of the target's own modes that lie inside."""
        truth = self.target.truth
        centres = np.empty((0, self.target.dim)) if truth is None else truth.modes.centres
        return centres[self.region.contains(centres)]

    @cached_property
    def _centres(self) -> Array:
        """The target's modes inside, or else one point of low energy, about which panels are small."""
        if len(self._known_centres):
            return self._known_centres
        return self._points[[np.argmin(self.target.evaluate(self._points)[0])]]

    @cached_property
    def _walls(self) -> Shape | None:
        """The region of the plane, as a polygon."""
        return Shape(self.region.name, self._rings) if self.target.dim == 2 else None

    @cached_property
    def _keeps_known(self) -> bool:
        """Whether the modes are the target's own inside, each with all that is nearest to it."""
        known = self._known_centres
        if not len(known) or getattr(self.target.truth, "basins", None) is not None:
            return False
        points = self._points
        weights = np.ones(len(points))
        if np.isfinite(self.region.volume):  # they are uniform
            weights = np.exp(self._offset - self.target.evaluate(points)[0])
        places = lattice_minima(self.target, *self._limits, self._walls)
        inside = None if self._walls is None else self._walls.contains
        if share_left_out(self.target, known, places, points, weights, inside) <= LEFT_OUT:
            return True  # nearly always, and in less time than it takes to find the minima themselves
        has_known = self._in_region.memberships(known).any(axis=0)
        return bool(self._in_region.modes.weights[~has_known].max(initial=0.0) <= LEFT_OUT)

    @cached_property
    def _in_region(self) -> WindowTruth:
        """The truth by panels whose modes are the minima that are found in the region."""
        window, places, modes = region_places(self.target, *self._limits, self._walls, self._known_centres)
        firsts = np.unique(modes, return_index=True)[1]
        return replace(
            self._panels, centres=places[firsts], basins=basins_of(self.target, window, places, modes, self._walls)
        )

    @property
    def _by_mode(self) -> WindowTruth:
        """The truth by panels whose modes are the target's inside, or else those that are found in the region."""
        return self._panels if self._keeps_known else self._in_region

    @cached_property
    def _panels(self) -> WindowTruth:
        """The truth by panels."""
        lower, upper = self._limits
        draw = None if self.target.truth is None else self._draw  # None: by rejection from the panels
        if self.target.dim == 1:
            return line_truth(self.target, lower[0], upper[0], self._centres, draw=draw, has_walls=True)
        window = lower[0], upper[0], lower[1], upper[1]
        return plane_truth(self.target, window, self._centres, label=self._label, draw=draw, has_walls=True)

    def _draw(self, n: int, seed: int) -> Array:
        """Exact draws."""
        return inner_draws(self.target, self.region, n, seed)

    def _label(self, points: Array) -> Integers:
        """The nearest centre to each point; −1 outside."""
        return np.where(self.region.contains(points), nearest_index(self._centres, points), -1)

    @cached_property
    def log_normaliser(self) -> float:
        """log ∫ exp(−U) over the region, in nats."""
        if self.target.dim == 1:
            return self._panels.log_normaliser
        (x_min, y_min), (x_max, y_max) = self._limits
        integral = cell_integrals(self.target, self._rings, [x_min, x_max], [y_min, y_max], self._offset)
        return float(np.log(integral[0, 0]) - self._offset)

    @cached_property
    def _offset(self) -> float:
        """An energy near the smallest inside, so that exp(offset − U) neither under- nor overflows."""
        return float(self.target.evaluate(self._points[:1000])[0].min())

    @property
    def mean(self) -> Array:
        """Mean (dim,)."""
        return self._panels.mean

    @property
    def covariance(self) -> Array:
        """Covariance (dim, dim)."""
        return self._panels.covariance

    @property
    def modes(self) -> Modes:
        """Centres and probabilities of the minima that are found inside, or of the target's own modes there.

        Raises UnavailableError where none can be found.
        """
        return self._by_mode.modes

    def memberships(self, points: Any) -> Array:
        """1 for a point's mode, else 0; shape (n, modes)."""
        if not self._keeps_known:
            return self._by_mode.memberships(points)
        nearest = nearest_index(self._centres, check_finite_points(points, self.target.dim))
        return one_hot(nearest, len(self._centres))

    def energy_quantiles(self, probabilities: Any) -> Array:
        """Energies u with P(U ≤ u) = p."""
        return self._panels.energy_quantiles(probabilities)

    def energy_tails(self, energies: Any) -> tuple[Array, Array]:
        """P(U ≤ u) and P(U > u) for each u of ``energies``, of its shape."""
        return self._panels.energy_tails(energies)

    @property
    def energy_accuracy(self) -> EnergyAccuracy:
        """Of energy quantiles: 1e-6 of the smaller tail in one dimension, 1e-4 in probability in two."""
        return self._panels.energy_accuracy

    def cell_masses(self, x_edges: Any, y_edges: Any = None) -> Array:
        """Probability of the part of each cell inside, shape (nx, ny), or (nx,) in one dimension."""
        if self.target.dim == 1 or y_edges is None:
            return self._panels.cell_masses(x_edges, y_edges)
        integrals = cell_integrals(self.target, self._rings, x_edges, y_edges, self._offset)
        return np.asarray(integrals * np.exp(-self._offset - self.log_normaliser))

    def independent_draws(self, n: int, *, seed: int) -> Array:
        """Exact draws (n, dim): the target's own that fall inside; of a target without a truth, by rejection."""
        return self._panels.independent_draws(n, seed=seed) if self.target.truth is None else self._draw(n, seed)

    def distance(self, points: Any) -> Array:
        """Distance of ``points`` (n, dim) to the boundary, positive inside."""
        return self.region.distance(points)
