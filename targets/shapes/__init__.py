"""Shapes in the plane: standard shapes, polygons, curves, and imports from Shapely, GeoJSON and SVG."""

from .imported import from_geojson, from_shapely, from_svg, intersection
from .planar import Shape, curve, polygon_of
from .standard import annulus, cross, ell, flower, heart, polygon, star

__all__ = [
    "Shape",
    "annulus",
    "cross",
    "curve",
    "ell",
    "flower",
    "from_geojson",
    "from_shapely",
    "from_svg",
    "heart",
    "intersection",
    "polygon",
    "polygon_of",
    "star",
]
