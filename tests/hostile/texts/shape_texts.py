"""Hostile SVG and GeoJSON."""

import itertools
import json
from pathlib import Path

from targets import shapes
from tests.hostile.texts.cases import Case, special

OS = (OSError,)
SQUARE = "M 0 0 H 4 V 4 H 0 Z"
RING = [[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]


def drawn(body, *, head="", encoding="utf-8", area=None):
    """A call of ``from_svg`` on a file with this body."""

    def call(folder):
        path = folder / "a.svg"
        text = head + f'<svg xmlns="http://www.w3.org/2000/svg">{body}</svg>'
        path.write_bytes(text.encode(encoding))
        return shapes.from_svg(path)

    return call


def raw(content, read=shapes.from_svg, name="a.svg"):
    """A call of ``read`` on a file with these bytes, repeated where (bytes, times)."""

    def call(folder):
        path = folder / name
        path.write_bytes(content)
        return read(path)

    return call


def path(data):
    """A call of ``from_svg`` on path data."""
    return lambda folder: shapes.from_svg(data)


def of_area(area):
    """Whether a shape has this area."""
    return lambda shape: abs(shape.area - area) < 1e-9 * area


def entities(*declared):
    """A document type with these entities."""
    return f"<!DOCTYPE svg [{''.join(f'<!ENTITY {line}>' for line in declared)}]>"


LAUGHS = entities('a "ha"', *[f'{b} "{10 * f"&{a};"}"' for a, b in itertools.pairwise("abcdefghij")])
IN_FILE, IN_DATA = ("source", r"line \d+, column \d+"), ("source", r"character \d+")

SVG = [
    *[
        Case(f"svg path: {name}", path(data), says=IN_DATA)
        for name, data in {
            "nan": "M 0 0 L 4 nan L 4 4 L 0 4 Z",
            "inf": "M 0 0 L inf 0 L 4 4 Z",
            "1e400": "M 0 0 L 1e400 0 L 4 4 Z",
            "a curve to 1e400": "M 0 0 C 1e400 0 1 1 4 4 L 0 4 Z",
            "a word": "M 0 0 L 4 0 foo 4 4 L 0 4 Z",
            "a comment": "M 0 0 L 4 0 # 4 4 L 0 4 Z",
            "a semicolon": "M 0 0 H 4; V 4 H 0 Z",
            "one number": "M 0 0 L 4 0 4 Z",
            "no numbers": "M 0 0 L Z",
            "numbers after Z": "M 0 0 H 4 V 4 Z 5 5",
            "six of an arc": "M 0 0 A 1 1 0 0 1 4 Z",
            "flag 2": "M 0 0 A 1 1 0 2 1 4 4 Z",
            "4,000,000 M": "M" * 4_000_000,
            "an underscore": "M 0 0 L 1_0 0 L 4 4 Z",
            "hexadecimal": "M 0 0 L 0x10 0 L 4 4 Z",
            "other digits": "M 0 0 L \u0664 0 L 4 4 Z",
            "a NUL": "M 0 0 L 4 0\0L 4 4 Z",
            "a surrogate": "M 0 0 L 4 0 \ud800 L 4 4 Z",
            "spaces without end": "M" + " " * 4_000_000 + "x",
            "4,000,000 digits": "M 0 0 L " + "9" * 4_000_000 + " 0 Z",
            "exponent only": "M 0 0 L e5 0 L 4 4 Z",
        }.items()
    ],
    Case(
        "svg path: 12 million characters", path("M 0 0" + " l 1 0" * 2_000_000), says=("source", "4194304 characters")
    ),
    Case("svg path: 60,000 segments", path("M 0 0" + " l 1 0" * 60_000 + "z"), says=("source", "50000 segments")),
    Case("svg path: 2,000 arcs", path("M 0 0" + " a 1 2 0 0 1 3 4" * 2000 + "z"), says=("n_vertices", "262144 points")),
    Case("svg path: beyond floats", path("M 1e308 0 l 1e308 0 l 0 1 Z"), says=("source", "finite")),
    Case("svg path: area beyond floats", path("M 0 0 L 1e300 0 L 1e300 1e300 Z"), says=("outer must enclose an area",)),
    Case("svg path: not closed", path("M 0 0 H 4 V 4"), says=("part 0 of the path",)),
    Case("svg path: nothing", path(""), says=("source",)),
    Case("svg path: a point after a point", path("M 0 0" * 9), says=("source",)),
    Case("svg path: a point without digits after it", path("M 0 0 L 1.e1 0 L 10 10 0 1.e1 Z"), holds=of_area(100.0)),
    Case(
        "svg path: flags without spaces",
        path("M -1 0 A1 1 0 011 0 A 1 1 0 01-1 0 Z"),
        holds=lambda s: abs(s.area - 3.1416) < 1e-3,
    ),
    *[
        Case(f"svg: {name}", call, says=IN_FILE)
        for name, call in {
            "empty": raw(b""),
            "no XML": raw(b"M 0 0"),
            "cut": raw(b'<svg xmlns="http://www.w3.org/2000/svg"><path d="M'),
            "tags that cross": drawn("<g><a></g></a>"),
            "two roots": raw(b"<svg/><svg/>"),
            "an attribute twice": drawn(f'<path d="{SQUARE}" d="M 0 0"/>'),
            "no d": drawn("<path/>"),
            "an entity that no one declared": drawn(f'<path d="{SQUARE} &what;"/>'),
            "a control character": drawn("\x01"),
            "a NUL": raw(b"<svg>\0</svg>"),
            "UTF-7": drawn(f'<path d="{SQUARE}"/>', head='<?xml version="1.0" encoding="utf-7"?>'),
            "unknown encoding": drawn(f'<path d="{SQUARE}"/>', head='<?xml version="1.0" encoding="nonsense"?>'),
            "rot13": drawn(f'<path d="{SQUARE}"/>', head='<?xml version="1.0" encoding="rot13"?>'),
            "idna": drawn(f'<path d="{SQUARE}"/>', head='<?xml version="1.0" encoding="idna"?>'),
            "shift_jis": drawn(f'<path d="{SQUARE}"/>', head='<?xml version="1.0" encoding="shift_jis"?>'),
            "no UTF-8": raw(b'<svg xmlns="http://www.w3.org/2000/svg">\xff</svg>'),
            "UTF-16 that says UTF-8": drawn(
                f'<path d="{SQUARE}"/>', encoding="utf-16-le", head='<?xml encoding="utf-8"?>'
            ),
            "billion laughs": drawn("<path d='&j;'/>", head=LAUGHS),
            "laughs outside of attributes": drawn("<text>&j;</text>", head=LAUGHS),
            "a long entity": drawn("<path d='" + "&a;" * 100_000 + "'/>", head=entities('a "' + "1 " * 5000 + '"')),
            "an entity of a file": drawn("<text>&e;</text>", head=entities('e SYSTEM "file:///etc/passwd"')),
            "an entity of the net": drawn("<text>&e;</text>", head=entities('e SYSTEM "http://localhost:9/"')),
            "a parameter entity": drawn("<a/>", head=entities('% p "x"')),
            "an entity of a parameter's file": drawn(
                "<a/>", head='<!DOCTYPE s [<!ENTITY % p SYSTEM "/dev/zero"> %p;]>'
            ),
            "entities in 3 MB": drawn("<a/>" + " " * 3_000_000, head=entities('a "b"')),
            "100,000 deep": drawn("<g>" * 100_000),
            "3,000,000 elements": drawn("<a/>" * 3_000_000),
            "a transform unknown": drawn(f'<path transform="scale(2) twist(3)" d="{SQUARE}"/>'),
            "a transform with a unit": drawn(f'<path transform="rotate(30deg)" d="{SQUARE}"/>'),
            "a transform without brackets": drawn(f'<path transform="scale 2" d="{SQUARE}"/>'),
            "a transform not closed": drawn(f'<path transform="scale(2" d="{SQUARE}"/>'),
            "a transform of nan": drawn(f'<path transform="scale(nan)" d="{SQUARE}"/>'),
            "a transform of 1e400": drawn(f'<path transform="scale(1e400)" d="{SQUARE}"/>'),
            "a transform of five": drawn(f'<path transform="matrix(1 0 0 1 0)" d="{SQUARE}"/>'),
            "a transform in a group": drawn(f'<g transform="junk"><path d="{SQUARE}"/></g>'),
            "10,000 transforms": drawn(f'<path transform="{"scale(1)" * 10_000}" d="{SQUARE}"/>'),
            "a transform of spaces": drawn(f'<path transform="scale{" " * 200_000}" d="{SQUARE}"/>'),
            "a transform in style": drawn(f'<path style="transform: scale(2)" d="{SQUARE}"/>'),
            "a polygon of nan": drawn('<polygon points="0,0 1,nan 1,0 1,1"/>'),
            "a polygon of five numbers": drawn('<polygon points="0,0 1,0 1"/>'),
            "a circle with a unit": drawn('<circle r="2px"/>'),
            "a circle of nan": drawn('<circle r="nan"/>'),
            "a rectangle of percents": drawn('<rect width="100%" height="2"/>'),
            "an underscore": drawn('<circle r="1_0"/>'),
            "junk in d": drawn('<path d="M 0 0 L 4 0 foo 4 4 L 0 4 Z"/>'),
        }.items()
    ],
    Case("svg: two paths", drawn(f'<path d="{SQUARE}"/><g><path d="{SQUARE}"/></g>'), says=("source", "got 2")),
    Case("svg: none", drawn("<g/>"), says=("source", "got 0")),
    Case(
        "svg: an entity of another file",
        drawn('<path d="M 0 0 L 4 0 &q; 4 4 0 4 Z"/>', head='<!DOCTYPE s PUBLIC "x" "http://localhost:9">'),
        says=("source", "line 1", "&q;"),
    ),
    Case("svg: 17 MB", raw(b"<a>" + b" " * 17_000_000), says=("source", "16777216 bytes")),
    Case("svg: sparse", special("sparse", shapes.from_svg), says=("source", "16777216 bytes")),
    *[
        Case(f"svg: {kind}", special(kind, shapes.from_svg), says=("source", "regular file"))
        for kind in ("fifo", "folder", "/dev/zero", "/dev/tty0" if Path("/dev/tty0").exists() else "/dev/null")
    ],
    Case("svg: nowhere", special("locked", shapes.from_svg), OS, ("source",)),
    Case("svg: NUL in the path", path("a\0b"), says=("source",)),
    Case("svg: a long path", path("a" * 5000), OS, ()),
    Case("svg: bytes", path(b"M 0 0"), (TypeError,), ("source",)),
    Case("svg: UTF-16 with a mark", drawn(f'<path d="{SQUARE}"/>', encoding="utf-16"), holds=of_area(16.0)),
    Case("svg: an entity of its own", drawn('<path d="&p;"/>', head=entities(f'p "{SQUARE}"')), holds=of_area(16.0)),
    Case(
        "svg: what is not drawn", drawn(f'<defs><rect width="100%"/></defs><path d="{SQUARE}"/>'), holds=of_area(16.0)
    ),
]


def geo(source):
    """A call of ``from_geojson``."""
    return lambda folder: shapes.from_geojson(source)


def polygon(*rings):
    """A Polygon."""
    return {"type": "Polygon", "coordinates": list(rings)}


def nested(kind, key, n):
    """Collections of collections."""
    found = polygon(RING)
    for _ in range(n):
        found = {"type": kind, key: [found]}
    return found


def ring_of(position):
    """A ring that has ``position`` as its second."""
    return [[0, 0], position, [4, 4], [0, 4], [0, 0]]


CYCLE: dict = {"type": "Feature"}
CYCLE["geometry"] = CYCLE
LOOP: list = []
LOOP.append(LOOP)


class Endless(list):
    """A list that goes on for ever."""

    def __iter__(self):
        """The same position."""
        return itertools.repeat([0.0, 0.0])


IN_RING = ("source", r"coordinates\[0\]\[1\]")
TEXT = '{"type": "Polygon", "coordinates": [[[0, 0], [4, %s], [4, 4], [0, 4], [0, 0]]]}'
GEOJSON = [
    *[
        Case(f"geojson text: {name}", geo(text), says=("source", r"line \d+,? column \d+"))
        for name, text in {
            "100,000 deep": '{"a":' + "[" * 100_000,
            "objects 100,000 deep": '{"a":' * 100_000,
            "cut": '{"type": "Polygon"',
            "a comma too many": '{"type": "Polygon",}',
            "a comment": "{/* */}",
            "single quotes": "{'type': 'Polygon'}",
            "two values": "{} {}",
            "a word": TEXT % "four",
            "a sign": TEXT % "+4",
            "a point first": TEXT % ".4",
            "hexadecimal": TEXT % "0x4",
            "a line end in a string": '{"ty\npe": 1}',
            "an escape": '{"\\x": 1}',
        }.items()
    ],
    *[
        Case(f"geojson text: {name}", geo(TEXT % word), says=IN_RING)
        for name, word in {
            "NaN": "NaN",
            "Infinity": "Infinity",
            "1e400": "1e400",
            "5,000,000 digits": "9" * 5_000_000,
            "a string": '"4"',
            "null": "null",
            "true": "true",
            "a list": "[4]",
            "1e100": "1e100",
        }.items()
    ],
    Case("geojson text: a key twice", geo('{"type": "Polygon", "type": "Point"}'), says=("source", "'type' twice")),
    Case("geojson text: 12 million commas", geo("[" + "1," * 12_000_000), says=("source", "commas")),
    Case("geojson text: 12 million lists", geo("[" + "[]," * 12_000_000), says=("source", "brackets")),
    Case("geojson text: blank", geo("  "), says=("source",)),
    *[
        Case(f"geojson: {name}", geo(polygon(ring_of(p))), says=IN_RING)
        for name, p in {
            "nan": [4, float("nan")],
            "huge": [10**400, 0],
            "one number": [4],
            "four numbers": [4, 0, 0, 0],
            "a word": ["4", 0],
            "no list": 4,
            "a dict": {"x": 4},
            "true": [True, 0],
            "complex": [4j, 0],
            "a height that is a word": [4, 0, "up"],
            "a long height": [4, 0, "9" * 10**6],
            "None": None,
        }.items()
    ],
    Case("geojson: itself", geo(CYCLE), says=("source", "at most 16 deep", r"geometry\.geometry")),
    Case("geojson: a list in itself", geo(polygon(LOOP)), says=("source", r"coordinates\[0\]\[0\]")),
    Case(
        "geojson: collections 17 deep", geo(nested("GeometryCollection", "geometries", 17)), says=("at most 16 deep",)
    ),
    Case("geojson: collections 20,000 deep", geo(nested("FeatureCollection", "features", 20_000)), says=("source",)),
    Case("geojson: a list without end", geo(polygon(Endless([[0, 0]] * 5))), says=("outer|coordinates",)),
    Case(
        "geojson: rings without end",
        geo({"type": "Polygon", "coordinates": itertools.repeat(RING)}),
        says=("source.coordinates",),
    ),
    Case(
        "geojson: features without end",
        geo({"type": "FeatureCollection", "features": itertools.repeat({})}),
        says=("source.features",),
    ),
    Case("geojson: a generator", geo(x for x in "{}"), (TypeError,), ("source",)),
    *[
        Case(f"geojson: {name}", geo(source), says=("source", "got"))
        for name, source in {
            "nothing": {},
            "a type of list": {"type": []},
            "a type of dict": {"type": {}},
            "no type": {"coordinates": [RING]},
            "a point": {"type": "Point", "coordinates": [0, 0]},
            "no geometry": {"type": "Feature"},
            "null": "null {",
            "features that are a word": {"type": "FeatureCollection", "features": "Polygon"},
            "features that are a dict": {"type": "FeatureCollection", "features": {0: polygon(RING)}},
            "a feature that is a word": {"type": "FeatureCollection", "features": ["Polygon"]},
            "two": {"type": "FeatureCollection", "features": [polygon(RING)] * 2},
            "coordinates of a word": polygon("abcd"),
            "no coordinates": {"type": "Polygon"},
            "coordinates of None": {"type": "Polygon", "coordinates": None},
            "a word for them": {"type": "Polygon", "coordinates": "abcd"},
            "three": polygon(RING[:3]),
            "open": polygon(RING[:4]),
            "flat": polygon([0, 1, 2, 3]),
            "two parts": {"type": "MultiPolygon", "coordinates": [[RING], [RING]]},
            "an array": {"type": "array"},
            "a list": "[1, 2]",
        }.items()
        if name != "null"
    ],
    Case(
        "geojson: not UTF-8",
        raw(b'{"type": \xff}', shapes.from_geojson, "a.json"),
        says=("source", "line 1, column 10"),
    ),
    Case(
        "geojson: UTF-16",
        raw("{}".encode("utf-16"), shapes.from_geojson, "a.json"),
        says=("source", "line 1, column 1"),
    ),
    Case("geojson: NULs", raw(b"{\n\0}", shapes.from_geojson, "a.json"), says=("source", "line 2, column 1")),
    Case("geojson: sparse", special("sparse", shapes.from_geojson, "a.json"), says=("source", "67108864 bytes")),
    *[
        Case(f"geojson: {kind}", special(kind, shapes.from_geojson, "a.json"), says=("source", "regular file"))
        for kind in ("fifo", "folder", "/dev/zero")
    ],
    Case("geojson: nowhere", special("locked", shapes.from_geojson, "a.json"), OS, ("source",)),
    Case("geojson: NUL in the path", geo("a\0b"), says=("source",)),
    Case("geojson: a surrogate in the path", geo("a\ud800"), says=("source",)),
    Case(
        "geojson: a mark first",
        raw(b"\xef\xbb\xbf" + json.dumps(polygon(RING)).encode(), shapes.from_geojson, "a.json"),
        holds=of_area(16.0),
    ),
]
CASES = SVG + GEOJSON
