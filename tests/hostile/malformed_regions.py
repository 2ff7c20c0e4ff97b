"""Malformed shapes and domains: what is wrong, and a function that must be refused."""

from collections.abc import Callable
from typing import Any

import numpy as np

from targets import constrained, domains, mixtures, shapes

SQUARE = [[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]


def geojson(*rings: Any) -> dict[str, Any]:
    """GeoJSON of one polygon."""
    return {"type": "Polygon", "coordinates": list(rings)}


REGIONS: list[tuple[str, Callable[[], object]]] = [
    ("polygon: two vertices", lambda: shapes.polygon_of("p", [[0, 0], [1, 1]])),
    ("polygon: a figure of eight", lambda: shapes.polygon_of("p", [[0, 0], [2, 2], [2, 0], [0, 3]])),
    ("polygon: a vertex twice", lambda: shapes.polygon_of("p", [[0, 0], [1, 0], [1, 0], [1, 1]])),
    ("polygon: vertices in a line", lambda: shapes.polygon_of("p", [[0, 0], [0.1, 0.3], [0.2, 0.6]])),
    ("polygon: nan", lambda: shapes.polygon_of("p", [[0, 0], [1, np.nan], [1, 1]])),
    ("polygon: a hole outside", lambda: shapes.polygon_of("p", SQUARE[:4], [[[5, 5], [6, 5], [5, 6]]])),
    ("polygon: holes None", lambda: shapes.polygon_of("p", SQUARE[:4], None)),
    ("curve: open", lambda: shapes.curve("c", lambda t: (t, t**2))),
    (
        "curve: crosses itself",
        lambda: shapes.curve("c", lambda t: (np.sin(4 * np.pi * t), np.sin(2 * np.pi * t + 0.1))),
    ),
    ("flower: offset of 1", lambda: shapes.flower(offset=1.0)),
    ("annulus: inside out", lambda: shapes.annulus(radius=1.0, inner=2.0)),
    ("GeoJSON: open ring", lambda: shapes.from_geojson(geojson(SQUARE[:4]))),
    ("GeoJSON: words", lambda: shapes.from_geojson(geojson([["a", 0], [1, 0], [0, 1], ["a", 0]]))),
    ("GeoJSON: two features", lambda: shapes.from_geojson({"type": "FeatureCollection", "features": [1, 2]})),
    ("GeoJSON: a line", lambda: shapes.from_geojson({"type": "LineString", "coordinates": SQUARE})),
    ("GeoJSON: no JSON", lambda: shapes.from_geojson("{nothing")),
    ("GeoJSON: no file", lambda: shapes.from_geojson("nowhere.json")),
    ("SVG: open path", lambda: shapes.from_svg("M 0 0 H 4 V 4")),
    ("SVG: nonsense", lambda: shapes.from_svg("M 0 zero Z")),
    ("Shapely: no geometry", lambda: shapes.from_shapely("POLYGON")),
    ("shapes apart", lambda: shapes.intersection(shapes.cross(), shapes.from_svg("M 9 9 h 1 v 1 Z", name="far"))),
    ("box: upside down", lambda: domains.box([0.0, 1.0], [1.0, 1.0])),
    ("box: nan", lambda: domains.box([np.nan], [1.0])),
    ("box: no finite side", lambda: domains.box([-np.inf], [np.inf])),
    ("box: words", lambda: domains.box(["0"], ["1"])),
    ("half-spaces: empty", lambda: domains.half_spaces([[1, 1], [-1, -1]], [0, -1])),
    ("half-spaces: flat", lambda: domains.half_spaces([[1, 1], [-1, -1]], [1, -1])),
    ("half-spaces: a zero normal", lambda: domains.half_spaces([[1, 0], [0, 0]], [1, 1])),
    ("ball: radius 0", lambda: domains.ball([0.0], 0.0)),
    ("simplex: 2.0 dimensions", lambda: domains.simplex(2.0)),
    ("ordered: lower None", lambda: domains.ordered(3, lower=None)),
    ("balls apart", lambda: domains.intersection(domains.ball([0.0, 0.0], 1.0), domains.ball([3.0, 0.0], 1.0))),
    ("regions of two dimensions", lambda: domains.intersection(domains.simplex(2), domains.simplex(3))),
    ("a shape among regions", lambda: domains.intersection(domains.simplex(2), shapes.flower())),
    ("draws without an end", lambda: domains.ordered(2).uniform_draws(1, seed=0)),
    ("points of words", lambda: domains.simplex(2).contains("here")),
    ("points in 1-D", lambda: domains.simplex(2).distance([[0.0]])),
    ("a target of another dimension", lambda: constrained(mixtures.cosine25(), domains.simplex(3))),
    ("no region", lambda: constrained(mixtures.cosine25(), "flower")),
]
