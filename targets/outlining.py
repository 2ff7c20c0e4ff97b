"""The part of a convex region of the plane inside a window, as a polygon: for integrals by cells."""

import numpy as np
from numpy.typing import NDArray

from .convex import Convex

Array = NDArray[np.float64]

VERTICES = 8192  # of a circle, whose area is then short by a share of 1e-7


def outline(region: Convex, lower: Array, upper: Array) -> Array:
    """Its part between ``lower`` and ``upper``, each (2,), as a ring (vertices, 2), counter-clockwise."""
    ring = np.array([lower, [upper[0], lower[1]], upper, [lower[0], upper[1]]])
    normals, offsets = region.walls
    angle = 2.0 * np.pi * np.arange(VERTICES) / VERTICES
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    if len(region.radii):
        between = np.stack([np.cos(angle + np.pi / VERTICES), np.sin(angle + np.pi / VERTICES)], axis=1)
        ring = region.centres[0] + region.radii[0] * circle
        box = np.vstack([np.eye(2), -np.eye(2)])
        normals, offsets = np.vstack([normals, box]), np.concatenate([offsets, upper, -lower])
        for centre, radius in zip(region.centres[1:], region.radii[1:], strict=True):
            normals = np.vstack([normals, between])
            offsets = np.append(offsets, between @ centre + radius * np.cos(np.pi / VERTICES))
    for normal, offset in zip(normals, offsets, strict=True):
        ring = clipped(ring, normal, offset)
    return ring


def clipped(ring: Array, normal: Array, offset: float) -> Array:
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
