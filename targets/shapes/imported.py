"""Imported shapes: polygons from Shapely, GeoJSON and SVG; and intersections of shapes.

Coordinates are taken as they are: degrees of GeoJSON as numbers in the plane, and SVG's with y pointing down.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from toolkit.errors import check_count, check_text, optional, shown

from ..arrays import Array
from .planar import MAX_VERTICES, Shape, polygon_of, ring_area

MAX_COORDINATE = 1e100  # coordinate of GeoJSON, whose integers may have any number of digits


def without_repeats(ring: Array) -> Array:
    """A ring without vertices that repeat the one before, the last, which closes it, included."""
    return np.asarray(ring[(ring != np.roll(ring, 1, axis=0)).any(axis=1)])


def from_shapely(geometry: Any, *, name: str = "polygon") -> Shape:
    """The shape of a Shapely Polygon, or of a collection of one, with its holes; repeated vertices are taken once.

    Raises TypeError for what is no geometry; ValueError, with the reason, for one that is empty, of another kind or
    several parts, not finite, without area, or not simple; ImportError without Shapely.
    """
    shapely = optional("shapely", "shapes")
    if not isinstance(geometry, shapely.Geometry):
        raise TypeError(f"geometry must be a Shapely geometry, got {shown(geometry)} of type {type(geometry).__name__}")
    if geometry.is_empty:
        raise ValueError(f"geometry must not be empty, got an empty {geometry.geom_type}")
    parts = shapely.get_parts(geometry)
    if len(parts) > 1 or parts[0].geom_type != "Polygon":
        several = f" of {len(parts)} parts" if len(parts) > 1 else ""
        raise ValueError(f"geometry must be one Polygon, got a {geometry.geom_type}{several}")
    geometry = parts[0]
    coordinates = shapely.get_coordinates(geometry)
    if not np.isfinite(coordinates).all():
        raise ValueError(f"geometry must be finite, got {coordinates[~np.isfinite(coordinates)][0]}")
    if geometry.area == 0.0:
        raise ValueError("geometry must enclose an area, got 0")
    if not geometry.is_valid:
        raise ValueError(f"geometry must be simple, got {shapely.is_valid_reason(geometry)}")
    rings = [without_repeats(shapely.get_coordinates(r)) for r in (geometry.exterior, *geometry.interiors)]
    return polygon_of(name, rings[0], rings[1:])


def from_geojson(source: Any, *, name: str = "polygon") -> Shape:
    """The shape of a GeoJSON Polygon, of a Feature of one, or of a collection of one: a path, a text or a dict.

    A MultiPolygon of one part counts as that. Dicts may hold tuples, as ``shapely.geometry.mapping`` gives.

    Rings are closed, as RFC 7946 asks, and heights left out. Raises TypeError for another kind of source; ValueError,
    with the reason, for text that is no JSON, other kinds of geometry, several of them, open rings, and what
    ``polygon_of`` refuses; OSError where there is no such file.
    """
    if isinstance(source, str | Path):
        text = str(source)
        where = "source"
        if not text.strip():
            raise ValueError(f"source must be a path, a text or a dict, got {shown(source)}")
        if isinstance(source, Path) or not text.lstrip().startswith(("{", "[")):
            try:
                where, text = text, Path(source).read_text(encoding="utf-8")
            except OSError as error:
                raise type(error)(f"source {shown(text)} cannot be read: {error.strerror}") from None
        try:
            source = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(f"{where} must be GeoJSON, but {error}") from None
        except RecursionError:
            raise ValueError(f"{where} must be GeoJSON, but is nested too deeply: {shown(text[:80])}") from None
    elif not isinstance(source, dict):
        raise TypeError(f"source must be a path, a text or a dict, got {shown(source)} of type {type(source).__name__}")
    found = source
    while isinstance(found, dict) and found.get("type") in ("Feature", "FeatureCollection", "GeometryCollection"):
        kind = found["type"]
        inner = found.get({"Feature": "geometry", "FeatureCollection": "features"}.get(kind, "geometries"))
        if kind != "Feature":
            if not isinstance(inner, list) or len(inner) != 1:
                count = len(inner) if isinstance(inner, list) else inner
                raise ValueError(f"{kind} must hold one polygon, got {shown(count)}")
            inner = inner[0]
        found = inner
    kind = found.get("type") if isinstance(found, dict) else found
    rings = found.get("coordinates") if isinstance(found, dict) else None
    if kind == "MultiPolygon" and isinstance(rings, list | tuple) and len(rings) == 1:
        kind, rings = "Polygon", rings[0]
    if kind != "Polygon":
        raise ValueError(f"geometry must be one Polygon, got {shown(kind)}")
    if not isinstance(rings, list | tuple) or not rings:
        raise ValueError(f"coordinates must be a list of rings, got {shown(rings)}")
    return polygon_of(name, *split_rings(rings))


def split_rings(rings: list[Any] | tuple[Any, ...]) -> tuple[Array, list[Array]]:
    """Outer ring and holes of GeoJSON's coordinates. Raises ValueError or TypeError naming the place at fault."""
    checked = []
    for place, ring in enumerate(rings):
        label = f"coordinates[{place}]"
        if not isinstance(ring, list | tuple):
            raise ValueError(f"{label} must be a list of positions [x, y], got {shown(ring)}")
        for n, position in enumerate(ring):
            if not isinstance(position, list | tuple) or len(position) not in (2, 3):
                raise ValueError(f"{label}[{n}] must be a position [x, y], got {shown(position)}")
            if any(isinstance(v, bool) or not isinstance(v, int | float) for v in position[:2]):
                raise ValueError(f"{label}[{n}] must be numbers, got {shown(position)}")
            if not all(abs(v) < MAX_COORDINATE for v in position[:2]):
                raise ValueError(f"{label}[{n}] must be finite and < {MAX_COORDINATE:g}, got {position!s:.60}")
        if len(ring) < 4:
            raise ValueError(f"{label} must have at least 4 positions, the last like the first, got {len(ring)}")
        if tuple(ring[0][:2]) != tuple(ring[-1][:2]):
            raise ValueError(f"{label} must be closed, got {ring[0]} first and {ring[-1]} last")
        checked.append(without_repeats(np.array([p[:2] for p in ring], np.float64)))
    return checked[0], checked[1:]


def from_svg(source: Any, *, name: str = "polygon", n_vertices: int = 256) -> Shape:
    """The shape of SVG path data 'M … Z', or of the one path in a file; of its parts the largest is the outline.

    The others are its holes. Straight pieces give their ends, curved ones ``n_vertices`` points each. Raises
    TypeError for another kind of source; ValueError, with the reason, for data that are no path, several paths, a
    part that is not closed, and what ``polygon_of`` refuses; OSError where there is no such file; ImportError
    without svgpathtools.
    """
    svg = optional("svgpathtools", "shapes")
    n_vertices = check_count("n_vertices", n_vertices, at_least=2, below=MAX_VERTICES)
    if not isinstance(source, str | Path):
        raise TypeError(f"source must be path data or a path, got {shown(source)} of type {type(source).__name__}")
    if isinstance(source, str) and source.strip()[:1] in ("M", "m", ""):
        path = parse_svg_path(svg, source)
    else:
        if not Path(source).is_file():
            raise FileNotFoundError(f"source must be path data that begin with M, or a file, got {str(source)!r}")
        paths = svg.Document(str(source)).paths()
        if len(paths) != 1:
            raise ValueError(f"{source} must hold one path, got {len(paths)}")
        path = paths[0]
    rings = []
    for place, part in enumerate(path.continuous_subpaths()):
        if not part.isclosed():
            raise ValueError(
                f"part {place} of the path must be closed, got {part.start} first and {part.end} last: end it with Z"
            )
        places = [
            segment.poly()(np.arange(n) / n) if not isinstance(segment, svg.Arc) else
            np.array([segment.point(t) for t in np.arange(n) / n])
            for segment in part
            for n in [1 if isinstance(segment, svg.Line) else n_vertices]
        ]  # fmt: skip
        points = np.concatenate(places)
        rings.append(without_repeats(np.stack([points.real, points.imag], axis=1)))
    rings.sort(key=lambda ring: -abs(ring_area(ring)) if len(ring) else 0.0)
    return polygon_of(name, rings[0], rings[1:])


def parse_svg_path(svg: Any, data: str) -> Any:
    """svgpathtools' path of path data. Raises ValueError where there is none, or it cannot be read."""
    try:
        path = svg.parse_path(data)
    except Exception as error:  # the parser raises errors of many classes
        raise ValueError(f"source must be SVG path data, got {shown(data)}: {error}") from error
    if len(path) == 0:
        raise ValueError(f"source must be SVG path data with at least 3 points, got {shown(data)}")
    for segment in path:
        if not np.isfinite([segment.start, segment.end]).all():
            raise ValueError(f"source must be SVG path data of finite numbers, got {segment.start} to {segment.end}")
    return path


def intersection(*shapes: Shape, name: str | None = None) -> Shape:
    """What the given shapes have in common, which must be one polygon; vertices to rounding.

    Raises TypeError for what is no shape; ValueError where they have nothing, no area, or several parts in common;
    ImportError without Shapely.
    """
    shapely = optional("shapely", "shapes")
    if not shapes:
        raise ValueError("intersection must have at least one shape, got none")
    for place, shape in enumerate(shapes):
        if not isinstance(shape, Shape):
            raise TypeError(f"shapes[{place}] must be a Shape, got {shown(shape)}")
    common = shapely.intersection_all([shapely.Polygon(shape.rings[0], shape.rings[1:]) for shape in shapes])
    title = check_text("name", name) if name is not None else " ∩ ".join(shape.name for shape in shapes)
    if common.area == 0.0:
        raise ValueError(f"{title} must not be empty, but the shapes have no area in common")
    if common.geom_type != "Polygon":
        raise ValueError(f"{title} must be one polygon, got {len(shapely.get_parts(common))} parts")
    return from_shapely(common, name=title)
