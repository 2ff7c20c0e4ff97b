"""Imported shapes: polygons from Shapely, GeoJSON and SVG; and intersections of shapes.

Coordinates are taken as they are: degrees of GeoJSON as numbers in the plane, and SVG's with y pointing down.
"""

import itertools
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np

from toolkit.errors import check_count, check_text, decoded, optional, read_bytes, shown

from ..arrays import Array
from . import svg_text
from .planar import MAX_VERTICES, Shape, polygon_of, ring_area

MAX_COORDINATE = 1e100  # coordinate of GeoJSON, whose integers may have any number of digits
MAX_BYTES = 2**26  # of GeoJSON
MAX_COMMAS, MAX_BRACKETS = 2**22, 2**21  # in it: some two million positions
MAX_NESTING = 16  # of collections within collections
MAX_CURVED_POINTS = 2**18  # on the curved pieces of an SVG path


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

    Rings are closed, as RFC 7946 asks, and heights left out. Texts are UTF-8 of at most 64 MiB, 2**22 commas and 2**21
    opening brackets; collections lie in others at most 16 deep. Raises TypeError for another kind of source;
    ValueError, with the reason and the place, for text that is no JSON or names a key twice, other kinds of geometry,
    several of them, open rings, and what ``polygon_of`` refuses; OSError where there is no such file.
    """
    if isinstance(source, str | Path):
        source = parse_geojson(source)
    elif not isinstance(source, dict):
        raise TypeError(f"source must be a path, a text or a dict, got {shown(source)} of type {type(source).__name__}")
    found, place = source, "source"
    for _ in range(MAX_NESTING):
        kind = found.get("type") if isinstance(found, dict) else None
        if not isinstance(kind, str) or kind not in ("Feature", "FeatureCollection", "GeometryCollection"):
            break
        key = {"Feature": "geometry", "FeatureCollection": "features"}.get(kind, "geometries")
        inner, place = found.get(key), f"{place}.{key}"
        if kind != "Feature":
            if not isinstance(inner, list | tuple) or len(inner) != 1:
                count = len(inner) if isinstance(inner, list | tuple) else inner
                raise ValueError(f"{place}: {kind} must hold one polygon, got {shown(count)}")
            inner, place = inner[0], f"{place}[0]"
        found = inner
    else:
        raise ValueError(f"source must be nested at most {MAX_NESTING} deep, got more at {place}")
    kind = found.get("type") if isinstance(found, dict) else found
    rings = found.get("coordinates") if isinstance(found, dict) else None
    place += ".coordinates"
    if isinstance(kind, str) and kind == "MultiPolygon" and isinstance(rings, list | tuple) and len(rings) == 1:
        kind, rings, place = "Polygon", rings[0], f"{place}[0]"
    if not isinstance(kind, str) or kind != "Polygon":
        raise ValueError(f"{place.removesuffix('.coordinates')}: geometry must be one Polygon, got {shown(kind)}")
    if not isinstance(rings, list | tuple) or not rings:
        raise ValueError(f"{place}: coordinates must be a list of rings, got {shown(rings)}")
    return polygon_of(name, *split_rings(rings, place))


def parse_geojson(source: str | Path) -> Any:
    """The value of a JSON text, or of that in the file at a path. Raises as ``from_geojson``."""
    text = str(source)
    where = "source"
    if not text.strip():
        raise ValueError(f"source must be a path, a text or a dict, got {shown(source)}")
    if isinstance(source, Path) or not text.lstrip("\ufeff \t\r\n").startswith(("{", "[")):
        where = f"source {shown(text)}"
        try:
            text = decoded(where, read_bytes("source", source, at_most=MAX_BYTES))
        except OSError as error:
            raise type(error)(f"{where} cannot be read: {error.strerror}") from None
    elif len(text) > MAX_BYTES:
        raise ValueError(f"source must be a text of at most {MAX_BYTES} characters, got {len(text)}")
    commas, brackets = text.count(","), text.count("[") + text.count("{")
    if commas > MAX_COMMAS or brackets > MAX_BRACKETS:
        raise ValueError(
            f"{where} must have at most {MAX_COMMAS} commas and {MAX_BRACKETS} brackets, got {commas} and {brackets}"
        )
    try:
        return json.loads(text.removeprefix("\ufeff"), object_pairs_hook=distinct, parse_int=integer)
    except RecursionError:
        raise ValueError(f"{where} must be GeoJSON that is nested less deeply, got {deepest_place(text)}") from None
    except ValueError as error:
        raise ValueError(f"{where} must be GeoJSON, but {error}") from None


def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON. Raises ValueError where two members have one name, of which Python would take the last."""
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for k, name in enumerate(names) if name in set(names[:k]))
        raise ValueError(f"an object names {shown(twice)} twice")
    return found


def integer(digits: str) -> int | float:
    """An integer of JSON; infinite where it has so many digits that it is no coordinate, which Python may refuse."""
    return int(digits) if len(digits) < 400 else math.copysign(math.inf, -1.0 if digits[0] == "-" else 1.0)


def deepest_place(text: str, limit: int = 500) -> str:
    """Line and column where brackets of JSON are ``limit`` deep."""
    depth = 0
    for found in re.finditer(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(found[0], 0)
        if depth >= limit:
            before = text[: found.start()]
            return f"{limit} brackets at line {before.count(chr(10)) + 1}, column {len(before) - before.rfind(chr(10))}"
    return "more"


def split_rings(rings: list[Any] | tuple[Any, ...], place: str) -> tuple[Array, list[Array]]:
    """Outer ring and holes of the coordinates at ``place``. Raises ValueError naming the place at fault."""
    checked = []
    for k, ring in enumerate(rings[:MAX_VERTICES]):
        label = f"{place}[{k}]"
        if not isinstance(ring, list | tuple):
            raise ValueError(f"{label} must be a list of positions [x, y], got {shown(ring)}")
        if len(ring) > MAX_VERTICES:
            raise ValueError(f"{label} must have at most {MAX_VERTICES} positions, got {len(ring)}")
        ring = list(itertools.islice(ring, len(ring)))  # a list of one's own may go on for ever
        for n, position in enumerate(ring):
            if not isinstance(position, list | tuple) or len(position) not in (2, 3):
                raise ValueError(f"{label}[{n}] must be a position [x, y], got {shown(position)}")
            if any(isinstance(v, bool) or not isinstance(v, int | float) for v in position):
                raise ValueError(f"{label}[{n}] must be numbers, got {shown(position)}")
            if not all(abs(v) < MAX_COORDINATE for v in position[:2]):
                raise ValueError(f"{label}[{n}] must be finite and < {MAX_COORDINATE:g}, got {shown(position)}")
        if len(ring) < 4:
            raise ValueError(f"{label} must have at least 4 positions, the last like the first, got {len(ring)}")
        if tuple(ring[0][:2]) != tuple(ring[-1][:2]):
            raise ValueError(f"{label} must be closed, got {shown(ring[0])} first and {shown(ring[-1])} last")
        checked.append(without_repeats(np.array([p[:2] for p in ring], np.float64)))
    return checked[0], checked[1:]


def from_svg(source: Any, *, name: str = "polygon", n_vertices: int = 256) -> Shape:
    """The shape of SVG path data 'M … Z', or of the one path in a file; of its parts the largest is the outline.

    The others are its holes. Straight pieces give their ends, curved ones ``n_vertices`` points each, together at most
    2**18. Files: at most 16 MiB (2 MiB where they declare entities) and 100,000 elements, 200 deep; paths at most
    50,000 segments. Transforms of groups are applied. Raises TypeError for another kind of source; ValueError, with the
    reason and the place, for data that are no path, several paths, a part that is not closed, transforms and numbers
    that SVG does not know, entities in other files or made of others, and what ``polygon_of`` refuses; OSError where
    there is no such file; ImportError without svgpathtools.
    """
    svg = optional("svgpathtools", "shapes")
    n_vertices = check_count("n_vertices", n_vertices, at_least=2, below=MAX_VERTICES)
    if not isinstance(source, str | Path):
        raise TypeError(f"source must be path data or a path, got {shown(source)} of type {type(source).__name__}")
    if isinstance(source, str) and source.strip()[:1] in ("M", "m", ""):
        path = parse_svg_path(svg, "source", svg_text.checked_path("source", source))
    else:
        path = path_of_file(svg, source)
    n_curved = sum(not isinstance(segment, svg.Line) for segment in path)
    if n_curved * n_vertices > MAX_CURVED_POINTS:
        raise ValueError(
            f"n_vertices must leave at most {MAX_CURVED_POINTS} points on curved pieces, got {n_vertices} on each of "
            f"{n_curved}"
        )
    rings = []
    for place, part in enumerate(path.continuous_subpaths()):
        if not part.isclosed():
            raise ValueError(
                f"part {place} of the path must be closed, got {part.start} first and {part.end} last: end it with Z"
            )
        places = [
            np.array([segment.start]) if isinstance(segment, svg.Line) else
            segment.poly()(np.arange(n_vertices) / n_vertices) if not isinstance(segment, svg.Arc) else
            np.array([segment.point(t) for t in np.arange(n_vertices) / n_vertices])
            for segment in part
        ]  # fmt: skip
        points = np.concatenate(places)
        rings.append(without_repeats(np.stack([points.real, points.imag], axis=1)))
    with np.errstate(over="ignore", invalid="ignore"):  # polygon_of refuses what has no finite area
        rings.sort(key=lambda ring: -abs(ring_area(ring)) if len(ring) else 0.0)
    return polygon_of(name, rings[0], rings[1:])


def path_of_file(svg: Any, source: str | Path) -> Any:
    """svgpathtools' path of the one shape that a file draws. Raises as ``from_svg``."""
    label = f"source {shown(str(source))}"
    try:
        content = read_bytes("source", source, at_most=svg_text.MAX_BYTES)
    except FileNotFoundError:
        raise FileNotFoundError(
            f"source must be path data that begin with M, or a file, got {shown(str(source))}"
        ) from None
    except OSError as error:
        raise type(error)(f"{label} cannot be read: {error.strerror}") from None
    document = svg_text.read_document(label, content)
    if len(document.places) != 1:
        raise ValueError(f"{label} must hold one path, got {len(document.places)}")
    try:
        with np.errstate(all="ignore"):
            path = svg.document.flattened_paths(document.root)[0]
    except Exception as error:  # svgpathtools raises errors of many classes
        raise ValueError(f"{document.places[0]}: must be a path that can be drawn: {error!s:.200}") from error
    return checked_segments(document.places[0], path)


def parse_svg_path(svg: Any, where: str, data: str) -> Any:
    """svgpathtools' path of path data. Raises ValueError where there is none, or it cannot be read."""
    try:
        path = svg.parse_path(data)
    except Exception as error:  # the parser raises errors of many classes
        raise ValueError(f"{where} must be SVG path data, got {shown(data)}: {error!s:.200}") from error
    return checked_segments(where, path)


def checked_segments(where: str, path: Any) -> Any:
    """``path`` where it has segments between finite points. Raises ValueError otherwise."""
    if len(path) == 0:
        raise ValueError(f"{where} must be SVG path data with at least 3 points, got ''")
    for segment in path:
        if not np.isfinite([segment.start, segment.end]).all():
            raise ValueError(f"{where} must be SVG path data of finite numbers, got {segment.start} to {segment.end}")
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
