"""Steepest descent of an energy in the plane, of many points at once, also inside a region."""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from toolkit.problem import Target

from ..arrays import Array, Bools, Integers

STRIDE = 0.5  # longest step, in cells of the lattice that starts or ends are on
DIFFERENCE = 1e-4  # of gradients, for the Hessian, in cells
ARRIVED, STUCK = 1e-2, 1e-9  # Newton's step at the end of a descent, in cells: at a minimum, at any other place
MOST_STEPS = 2_000


class PlaneRegion(Protocol):
    """A region of the plane, as ``shapes.Shape``; all methods take points (n, 2)."""

    def contains(self, points: Any) -> Bools:
        """Whether each point is inside."""

    def nearest(self, points: Any) -> Array:
        """The nearest point of the boundary."""

    def normal(self, points: Any) -> Array:
        """The outward unit normal there."""


def descend(
    target: Target,
    starts: Array,
    cell: Array,
    walls: PlaneRegion | None,
    known: Callable[[Array], Integers] | None = None,
) -> Array:
    """Where steepest descent from ``starts`` (n, 2) ends: at a minimum, or where ``known`` is not −1.

    Each step follows dx/dt = −∇U in the quadratic that the gradient and differences of it give (exponential Euler:
    Hochbruck & Ostermann 2010), by at most half a cell, so that a stiff direction does not shorten it. A step that
    leaves the region ends at the nearest point of its boundary; at the boundary only the part along it counts.
    """
    ends = starts.copy()
    active = np.arange(len(starts))
    at_wall, last = np.zeros(len(starts), np.bool_), np.zeros_like(starts)
    for _ in range(MOST_STEPS):
        points = ends[active]
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            step, is_over = flow_step(target, points, cell, walls, at_wall)
        moved = points + step
        if walls is not None:
            leaves = at_wall | ~walls.contains(moved)
            if leaves.any():
                moved[leaves] = walls.nearest(moved[leaves])
            turns = ((moved - points) * last).sum(axis=1) < 0.0  # it has passed the lowest place of the wall
            is_over |= at_wall & (turns | (np.abs(moved - points) < 0.1 * ARRIVED * cell).all(axis=1))
            at_wall, last = leaves, moved - points
        ends[active] = np.where(np.isfinite(moved), moved, points)
        is_over |= ~np.isfinite(moved).all(axis=1)
        if known is not None:
            is_over |= known(ends[active]) >= 0
        active, at_wall, last = active[~is_over], at_wall[~is_over], last[~is_over]
        if len(active) == 0:
            break
    return ends


def flow_step(
    target: Target, points: Array, cell: Array, walls: PlaneRegion | None, at_wall: Bools
) -> tuple[Array, Bools]:
    """One step of the descent from ``points`` (n, 2), and whether a point has arrived."""
    gradient = target.evaluate(points)[1]
    shifts = DIFFERENCE * np.diag(cell)
    first, second = (
        (target.evaluate(points + shift)[1] - gradient) / (DIFFERENCE * cell[d]) for d, shift in enumerate(shifts)
    )
    xx, yy, xy = first[:, 0], second[:, 1], 0.5 * (first[:, 1] + second[:, 0])
    if walls is not None and at_wall.any():  # at a wall: the part along it, as if the energy were flat across
        normal = walls.normal(points[at_wall])
        held = (gradient[at_wall] * normal).sum(axis=1) < 0.0
        which = np.flatnonzero(at_wall)[held]
        along = np.column_stack([-normal[held, 1], normal[held, 0]])
        gradient[which] = (gradient[which] * along).sum(axis=1)[:, None] * along
        curved = xx[which] * along[:, 0] ** 2 + 2.0 * xy[which] * along.prod(axis=1) + yy[which] * along[:, 1] ** 2
        xx[which], yy[which] = curved * along[:, 0] ** 2, curved * along[:, 1] ** 2
        xy[which] = curved * along.prod(axis=1)
        at_wall[:] = False
        at_wall[which] = True
    middle, half = 0.5 * (xx + yy), np.hypot(0.5 * (xx - yy), xy)
    time = STRIDE / (np.abs(gradient) / cell).max(axis=1)
    lowest = middle - half
    time = np.where(lowest < 0.0, np.minimum(time, -1.0 / lowest), time)
    time = np.where(np.isfinite(time), time, 0.0)
    by_eigenvalue = [time * mean_decay(time * value) for value in (middle + half, lowest)]
    across = np.where(half > 0.0, 0.5 * (by_eigenvalue[0] - by_eigenvalue[1]) / half, 0.0)
    shared = 0.5 * (by_eigenvalue[0] + by_eigenvalue[1]) - across * middle
    turned = np.column_stack([xx * gradient[:, 0] + xy * gradient[:, 1], xy * gradient[:, 0] + yy * gradient[:, 1]])
    step = -(shared[:, None] * gradient + across[:, None] * turned)
    determinant = np.abs(xx * yy - xy * xy)
    newton = np.column_stack([yy * gradient[:, 0] - xy * gradient[:, 1], xx * gradient[:, 1] - xy * gradient[:, 0]])
    newton = np.abs(newton) / determinant[:, None]
    closeness = (newton / cell).max(axis=1)
    is_over = (closeness < np.where(lowest > 0.0, ARRIVED, STUCK)) | (gradient == 0.0).all(axis=1)
    return step, is_over


def mean_decay(rate: Array) -> Array:
    """(1 − e^−r) / r, the mean of e^−rt over t from 0 to 1."""
    small = np.abs(rate) < 1e-8
    return np.asarray(np.where(small, 1.0, -np.expm1(-rate) / np.where(small, 1.0, rate)))
