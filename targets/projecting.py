"""Nearest points of convex sets: of polytopes by non-negative least squares, of their parts in balls by multipliers."""

from collections.abc import Callable

import numpy as np
import scipy
from numpy.typing import NDArray

Array = NDArray[np.float64]

ROUNDS = 100  # over the balls, until no multiplier moves


def onto_polytope(point: Array, normals: Array, offsets: Array) -> Array:
    """The point of {x: normals · x ≤ offsets} nearest to ``point`` (dim,): least distance programming.

    The walls that hold it come from non-negative least squares, the point from these walls alone, to rounding.
    Source: Lawson & Hanson (1974), "Solving Least Squares Problems", chapter 23.
    """
    excess = normals @ point - offsets
    largest = excess.max(initial=0.0)
    if largest <= 0.0:
        return point
    aim = np.zeros(len(point) + 1)
    aim[-1] = 1.0
    multipliers, _ = scipy.optimize.nnls(np.vstack([-normals.T, excess / largest]), aim)
    holding = normals[multipliers > 0.0]
    return np.asarray(point - np.linalg.lstsq(holding, excess[multipliers > 0.0], rcond=None)[0])


def onto_part(point: Array, project: Callable[[Array], Array], centres: Array, radii: Array) -> Array:
    """The point of a convex set and of balls nearest to ``point``; ``project``: nearest point of the set alone.

    With multipliers μ of the balls it is the set's point nearest to (x + Σ μ c) / (1 + Σ μ), and a ball's multiplier
    is the root of |y − c| = r, which falls as μ grows; one ball after the other until none moves, or where they all
    but touch, one root within the other. Raises ValueError where that takes too long, with four balls or more.
    """
    multipliers = np.zeros(len(radii))
    scale = float(np.abs(point).max() + np.abs(centres).max(initial=0.0) + radii.max(initial=0.0))

    def nearest() -> Array:
        return project((point + multipliers @ centres) / (1.0 + multipliers.sum()))

    def beyond(multiplier: float, ball: int, nested: bool) -> float:
        multipliers[ball] = multiplier
        if nested and ball > 0:
            settle(ball - 1, nested=True)
        return float(np.linalg.norm(nearest() - centres[ball]) - radii[ball])

    def settle(ball: int, *, nested: bool = False) -> None:
        if beyond(0.0, ball, nested) > 0.0:
            high = 1.0
            while beyond(high, ball, nested) > 0.0 and high < 1e18:
                high *= 8.0
            root = scipy.optimize.brentq(beyond, 0.0, high, (ball, nested), xtol=1e-300, rtol=1e-15, maxiter=500)
            beyond(root, ball, nested)

    for ball in range(len(radii)):  # where one ball alone decides, as where others touch it from outside
        multipliers[:] = 0.0
        settle(ball)
        found = nearest()
        if (np.linalg.norm(found - centres, axis=1) - radii).max() <= 1e-14 * scale:
            return found
    found = nearest()
    for _ in range(ROUNDS):
        for ball in range(len(radii)):
            settle(ball)
        before, found = found, nearest()
        if len(radii) < 2 or np.abs(found - before).max() <= 1e-14 * scale:
            return found
    if len(radii) < 4:
        settle(len(radii) - 1, nested=True)
        return nearest()
    raise ValueError(f"the nearest point to {point.tolist()} was not found in {ROUNDS} rounds over {len(radii)} balls")
