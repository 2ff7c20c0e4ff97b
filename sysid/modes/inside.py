"""Where a posterior is largest inside its constraints: the start and scale of chains where data pull outside."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array, Bools
from ..constraints import Coordinates
from ..function_constraints import compiled_forms
from .laplace import Evaluate, Laplace, descend

COMPLEX_STEP = 1e-30
MARGINS = np.geomspace(1.0, 1e-6, 13)  # distances from the walls that are tried, in standard deviations
N_CORRECTIONS = 30  # towards one of these


class Walls(NamedTuple):
    """Constraints of positions u: normals · u ≤ offsets, and functions of the parameters that are ≥ 0.

    normals: (n, q). offsets: (n,). functions: of a tuple of q numbers.
    """

    normals: Array
    offsets: Array
    functions: Sequence[Callable[..., Any]]
    coordinates: Coordinates

    def margins(self, points: Array) -> Array:
        """By how much each constraint holds at ``points`` (n, q), (n, walls)."""
        margins = [self.offsets - points @ self.normals.T]
        for function in self.functions:
            plain, _ = compiled_forms(function)
            values = [float(plain(tuple(theta))) for theta in self.coordinates.parameters(points).tolist()]
            margins.append(np.array(values)[:, None])
        return np.concatenate(margins, axis=1)

    def slopes(self, points: Array) -> Array:
        """Slopes of the margins at ``points`` (n, q), (n, walls, q)."""
        slopes = [np.broadcast_to(-self.normals, (len(points), *self.normals.shape))]
        for function in self.functions:
            _, complex_form = compiled_forms(function)
            slopes.append(np.array([self._slope(complex_form, u) for u in points])[:, None])
        return np.concatenate(slopes, axis=1)

    def _slope(self, complex_form: Callable[..., Any], position: Array) -> Array:
        """Slope (q,) of a function in positions, by complex steps."""
        log, shift, root = self.coordinates
        steps = position + 1j * COMPLEX_STEP * np.eye(position.size)
        v = shift + steps @ root.T
        theta = np.where(log, np.exp(np.where(log, v, 0.0)), v)
        return np.array([complex(complex_form(tuple(row))).imag for row in theta.tolist()]) / COMPLEX_STEP

    def contains(self, points: Array) -> Bools:
        """Whether all constraints hold at ``points`` (n, q), strictly."""
        return np.asarray((self.margins(points) > 0.0).all(axis=1))


def point_inside(walls: Walls, start: Array) -> Array | None:
    """A point (q,) inside all walls, near ``start``: by least corrections of the constraints that do not hold yet.

    None where none is found.
    """
    for margin in MARGINS:
        point = np.array(start)
        for _ in range(N_CORRECTIONS):
            (margins,), (slopes,) = walls.margins(point[None]), walls.slopes(point[None])
            steepness = np.linalg.norm(slopes, axis=1)
            if not (np.isfinite(margins).all() and np.isfinite(slopes).all()):
                break
            if (margins > 0.5 * margin * steepness).all():
                return point
            near = margins < margin * steepness
            gaps = margin * steepness[near] - margins[near]
            point = point + np.linalg.lstsq(slopes[near], gaps, rcond=1e-9)[0]
    return None


def mode_inside(evaluate: Evaluate, walls: Walls, start: Array) -> Laplace | None:
    """The lowest point inside of energy − Σ log margin, and the root of the inverse curvature there.

    Across a wall on which the density exp(−k distance) leans, that is a distance of 1/k with a scale of 1/k: the mean
    and the deviation of that density. None where no point inside has a finite energy.
    """
    inner = point_inside(walls, start)
    if inner is None or not np.isfinite(evaluate(inner[None])[0][0]):
        return None

    def with_barrier(points: Array) -> tuple[Array, Array]:
        energies, gradients = evaluate(points)
        margins, slopes = walls.margins(points), walls.slopes(points)
        inside = (margins > 0.0).all(axis=1)
        held = np.where(margins > 0.0, margins, 1.0)
        energies = np.where(inside, energies - np.log(held).sum(axis=1), np.inf)
        return energies, gradients - (slopes / held[..., None]).sum(axis=1)

    position, _, curvature = descend(with_barrier, inner)
    return None if curvature is None else Laplace(position, curvature.root)
