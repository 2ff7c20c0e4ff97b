"""Convex regions of any dimension: boxes, half-spaces, balls, simplices, ordered coordinates and intersections.

``constrained`` restricts a target to such a region, or to a shape, and gives it the truth of both together.
"""

from .convex import Convex
from .convex_regions import ball, box, catalogue, half_spaces, intersection, ordered, simplex

__all__ = ["Convex", "ball", "box", "catalogue", "half_spaces", "intersection", "ordered", "simplex"]
