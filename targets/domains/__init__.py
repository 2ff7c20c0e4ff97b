"""Convex regions of any dimension as domains; the public face of the modules that hold them."""

from .convex import Convex
from .convex_regions import ball, box, catalogue, half_spaces, intersection, ordered, simplex

__all__ = ["Convex", "ball", "box", "catalogue", "half_spaces", "intersection", "ordered", "simplex"]
