"""Shapes from Shapely, GeoJSON and SVG, and their intersections: areas, holes, and bad ones refused with the reason."""

import importlib
import json

import numpy as np
import pytest
import shapely

from targets import shapes

SQUARE = [[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]
HOLE = [[1, 1], [2, 1], [2, 2], [1, 2], [1, 1]]
POINTS = np.random.default_rng(1).uniform(-1.0, 5.0, (500, 2))


def test_shapely_polygons_with_holes():
    oracle = shapely.Polygon(SQUARE, [HOLE])
    shape = shapes.from_shapely(oracle, name="frame")
    assert (shape.name, shape.area) == ("frame", 15.0)
    np.testing.assert_array_equal(shape.contains(POINTS), shapely.contains_xy(oracle, POINTS))
    repeated = shapely.Polygon([SQUARE[0], *SQUARE])
    assert shapes.from_shapely(repeated).area == 16.0
    assert shapes.from_shapely(shapely.MultiPolygon([oracle])).area == 15.0
    assert shapes.from_shapely(shapely.GeometryCollection([oracle])).area == 15.0


def test_geojson_as_dict_text_file_feature_and_collection(tmp_path):
    polygon = {"type": "Polygon", "coordinates": [SQUARE, HOLE[::-1]]}
    feature = {"type": "Feature", "properties": None, "geometry": polygon}
    collection = {"type": "FeatureCollection", "features": [feature]}
    file = tmp_path / "frame.json"
    file.write_text(json.dumps(collection))
    for source in (polygon, feature, collection, json.dumps(feature), file, str(file)):
        shape = shapes.from_geojson(source)
        assert shape.area == 15.0
        assert shape.contains([[1.5, 1.5], [0.5, 0.5]]).tolist() == [False, True]
    heights = {"type": "Polygon", "coordinates": [[[*p, 9.0 + i] for i, p in enumerate(SQUARE)]]}
    assert shapes.from_geojson(heights).area == 16.0
    several = {"type": "MultiPolygon", "coordinates": [[SQUARE, HOLE]]}
    assert shapes.from_geojson(several).area == 15.0
    mapped = shapely.geometry.mapping(shapely.Polygon(SQUARE, [HOLE]))  # of tuples
    assert shapes.from_geojson(mapped).area == 15.0


def test_svg_lines_curves_holes_and_files(tmp_path):
    assert shapes.from_svg("M 0 0 H 4 V 4 H 0 Z M 1 1 h 1 v 1 h -1 z").area == 15.0
    assert shapes.from_svg("M 1 1 h 1 v 1 h -1 z M 0 0 H 4 V 4 H 0 Z").area == 15.0
    disc = "M -1 0 A 1 1 0 0 1 1 0 A 1 1 0 0 1 -1 0 Z"
    assert shapes.from_svg(disc).area == pytest.approx(np.pi, rel=1e-4)
    assert shapes.from_svg(disc, n_vertices=4096).area == pytest.approx(np.pi, rel=1e-6)
    bezier = shapes.from_svg("M 0 0 C 0 1 1 1 1 0 Z", n_vertices=2000)  # ∫ 3t(1 − t) · 6t(1 − t) dt
    assert bezier.area == pytest.approx(0.6, rel=1e-5)
    file = tmp_path / "disc.svg"
    file.write_text(f'<svg xmlns="http://www.w3.org/2000/svg"><path transform="scale(2)" d="{disc}"/></svg>')
    assert shapes.from_svg(file).area == pytest.approx(4.0 * np.pi, rel=1e-4)


def test_intersections_in_the_plane():
    flower, heart = shapes.flower(), shapes.heart()
    both = shapes.intersection(flower, heart)
    points = np.random.default_rng(2).uniform(-3.0, 3.0, (2000, 2))
    clear = np.minimum(np.abs(flower.distance(points)), np.abs(heart.distance(points))) > 1e-9
    expected = flower.contains(points) & heart.contains(points)
    np.testing.assert_array_equal(both.contains(points)[clear], expected[clear])
    assert both.name == "flower ∩ heart"
    ring = shapes.intersection(shapes.annulus(), shapes.polygon(radius=3.0))
    assert ring.contains([[0.0, 0.0], [1.5, 0.0]]).tolist() == [False, True]
    assert shapes.intersection(flower, name="same").area == pytest.approx(flower.area, rel=1e-11)


def geojson(*rings):
    return shapes.from_geojson({"type": "Polygon", "coordinates": list(rings)})


EIGHT = [[0, 0], [2, 2], [2, 0], [0, 3], [0, 0]]


def nowhere():
    with np.errstate(invalid="ignore"):
        return shapes.from_shapely(shapely.Polygon([[0, 0], [1, np.nan], [1, 1]]))


BAD = {
    "shapely: no geometry": (lambda: shapes.from_shapely("POLYGON"), TypeError, "geometry must be a Shapely geometry"),
    "shapely: empty": (lambda: shapes.from_shapely(shapely.Polygon()), ValueError, "must not be empty, got an empty"),
    "shapely: line": (
        lambda: shapes.from_shapely(shapely.LineString(SQUARE)), ValueError, "got a LineString",
    ),
    "shapely: parts": (
        lambda: shapes.from_shapely(shapely.MultiPolygon([shapely.box(0, 0, 1, 1), shapely.box(2, 2, 3, 3)])),
        ValueError, "must be one Polygon, got a MultiPolygon of 2 parts",
    ),
    "shapely: eight": (lambda: shapes.from_shapely(shapely.Polygon(EIGHT)), ValueError, "must be simple, got Self"),
    "shapely: flat": (
        lambda: shapes.from_shapely(shapely.Polygon([[0, 0], [1, 1], [2, 2]])), ValueError, "must enclose an area",
    ),
    "shapely: nan": (nowhere, ValueError, "geometry must be finite, got nan"),
    "geojson: type": (lambda: shapes.from_geojson(3), TypeError, "source must be a path, a text or a dict, got 3"),
    "geojson: text": (lambda: shapes.from_geojson("{nothing"), ValueError, "source must be GeoJSON, but Expecting"),
    "geojson: file": (lambda: shapes.from_geojson("nowhere.json"), OSError, "nowhere.json"),
    "geojson: kind": (
        lambda: shapes.from_geojson({"type": "MultiPolygon", "coordinates": []}), ValueError,
        "geometry must be one Polygon, got 'MultiPolygon'",
    ),
    "geojson: features": (
        lambda: shapes.from_geojson({"type": "FeatureCollection", "features": []}), ValueError,
        "FeatureCollection must hold one polygon, got 0",
    ),
    "geojson: no rings": (lambda: geojson(), ValueError, r"coordinates must be a list of rings, got \[\]"),
    "geojson: open": (lambda: geojson(SQUARE[:4]), ValueError, r"coordinates\[0\] must be closed, got \[0, 0\] first"),
    "geojson: few": (lambda: geojson(SQUARE[:3]), ValueError, r"coordinates\[0\] must have at least 4 positions"),
    "geojson: words": (lambda: geojson([["a", "b"]] * 4), ValueError, r"\[0\]\[0\] must be numbers, got \['a', 'b'\]"),
    "geojson: flat list": (lambda: geojson([1, 2, 3, 4]), ValueError, r"\[0\]\[0\] must be a position \[x, y\], got 1"),
    "geojson: eight": (lambda: geojson([[0, 0], [2, 2], [2, 0], [0, 3], [0, 0]]), ValueError, "not cross or touch"),
    "geojson: no area": (lambda: geojson([[0, 0], [1, 1], [2, 2], [0, 0]]), ValueError, "must enclose an area"),
    "geojson: point": (lambda: geojson([[1, 1]] * 4), ValueError, "at least 3 vertices"),
    "geojson: nan": (lambda: geojson([[0, 0], [1, np.nan], [1, 1], [0, 0]]), ValueError, r"\[0\]\[1\] must be finite"),
    "geojson: no text": (lambda: shapes.from_geojson(" "), ValueError, "must be a path, a text or a dict, got ' '"),
    "geojson: digits": (
        lambda: geojson([[0, 0], [10**400, 0], [1, 1], [0, 0]]), ValueError, r"coordinates\[0\]\[1\] must be finite",
    ),
    "geojson: parts": (
        lambda: shapes.from_geojson({"type": "MultiPolygon", "coordinates": [[SQUARE], [SQUARE]]}), ValueError,
        "geometry must be one Polygon, got 'MultiPolygon'",
    ),
    "geojson: hole outside": (
        lambda: geojson(SQUARE, [[9, 9], [9, 8], [8, 8], [9, 9]]), ValueError, r"holes\[0\] must lie inside",
    ),
    "svg: type": (lambda: shapes.from_svg(3), TypeError, "source must be path data or a path, got 3"),
    "svg: open": (lambda: shapes.from_svg("M 0 0 H 4 V 4"), ValueError, "part 0 of the path must be closed"),
    "svg: empty": (lambda: shapes.from_svg(""), ValueError, "must be SVG path data with at least 3 points, got ''"),
    "svg: nonsense": (lambda: shapes.from_svg("M 0 zero Z"), ValueError, "2 numbers or a multiple after 'M', got 1"),
    "svg: infinite": (lambda: shapes.from_svg("M 0 0 L 1e999 0 L 0 1 Z"), ValueError, "data of finite numbers, got"),
    "svg: no file": (lambda: shapes.from_svg("nowhere.svg"), OSError, "must be path data that begin with M, or a file"),
    "svg: crosses": (lambda: shapes.from_svg("M 0 0 L 2 2 L 2 0 L 0 3 Z"), ValueError, "not cross or touch"),
    "svg: apart": (
        lambda: shapes.from_svg("M 0 0 h 1 v 1 h -1 Z M 5 5 h 1 v 1 h -1 Z"), ValueError,
        r"holes\[0\] must lie inside",
    ),
    "svg: vertices": (lambda: shapes.from_svg("M 0 0 h 1 v 1 Z", n_vertices=1), ValueError, "n_vertices must be ≥ 2"),
    "intersection: none": (lambda: shapes.intersection(), ValueError, "must have at least one shape, got none"),
    "intersection: type": (lambda: shapes.intersection(shapes.cross(), 3), TypeError, r"shapes\[1\] must be a Sh"),
    "intersection: apart": (
        lambda: shapes.intersection(shapes.cross(), shapes.from_svg("M 9 9 h 1 v 1 Z", name="far")), ValueError,
        "cross ∩ far must not be empty, but the shapes have no area in common",
    ),
    "intersection: parts": (
        lambda: shapes.intersection(shapes.annulus(), shapes.from_svg("M -3 -0.1 h 6 v 0.2 h -6 Z", name="bar")),
        ValueError, "annulus ∩ bar must be one polygon, got 2 parts",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_outlines_are_refused(name):
    make, error, message = BAD[name]
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    "make",
    [lambda: shapes.from_shapely(None), lambda: shapes.from_svg("M"), lambda: shapes.intersection(shapes.cross())],
)
def test_without_the_extra_it_says_what_to_install(make, monkeypatch):
    def refuse(name, *arguments):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", refuse)
    with pytest.raises(ImportError, match=r'is needed for this: pip install .*\[shapes\]"'):
        make()
