"""SVG text checked before svgpathtools reads it, which leaves out what it does not know, so that shapes would be wrong.

Path data, transforms and attributes come out in one form: commands and numbers between spaces.
"""

import itertools
import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element, SubElement
from xml.parsers import expat

from toolkit.errors import shown

MAX_BYTES = 2**24  # of a file
MAX_BYTES_WITH_ENTITIES = 2**21  # of a file that declares entities
MAX_ENTITY = 200  # characters of an entity
MAX_DEPTH = 200  # of elements within elements
MAX_ELEMENTS = 100_000
MAX_DATA = 2**22  # characters of path data
MAX_SEGMENTS = 50_000  # of a path
MAX_TRANSFORMS = 100  # of an element

SVG = "{http://www.w3.org/2000/svg}"
NUMBER = r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
NUMBERS = {"M": 2, "Z": 0, "L": 2, "H": 1, "V": 1, "C": 6, "S": 4, "Q": 4, "T": 2, "A": 7}  # of each command
TOKEN = re.compile(rf"[\s,]*(?:(?P<command>[MmZzLlHhVvCcSsQqTtAa])|(?P<number>{NUMBER}))")
FLAG = re.compile(r"[\s,]*([01])")
TRANSFORM = re.compile(r"[\s,]*([A-Za-z]+)\s*\(([^()]*)\)")
TRANSFORMS = {"matrix": (6,), "translate": (1, 2), "scale": (1, 2), "rotate": (1, 3), "skewX": (1,), "skewY": (1,)}
SHAPES = {
    "path": (), "circle": ("cx", "cy", "r"), "ellipse": ("cx", "cy", "rx", "ry"), "line": ("x1", "y1", "x2", "y2"),
    "rect": ("x", "y", "width", "height", "rx", "ry"), "polyline": (), "polygon": (),
}  # fmt: skip


def checked_path(where: str, data: str) -> str:
    """Path data in one form. Raises ValueError, which begins with ``where``, naming the character at fault."""
    if len(data) > MAX_DATA:
        raise ValueError(f"{where} must be SVG path data of at most {MAX_DATA} characters, got {len(data)}")
    words: list[str] = []
    segments = 0
    for command, begin, end in commands(where, data):
        numbers = list(arguments(where, data, command, begin, end))
        size = NUMBERS[command.upper()]
        n, rest = divmod(len(numbers), size) if size else (1, len(numbers))
        if rest or not n:
            each = f"{size} numbers or a multiple" if size else "no numbers"
            raise ValueError(
                f"{where} must be SVG path data with {each} after {command!r}, got {len(numbers)} at character {begin}"
            )
        segments += n
        if segments > MAX_SEGMENTS:
            raise ValueError(f"{where} must be SVG path data of at most {MAX_SEGMENTS} segments, got more")
        words += [command, *numbers]
    return " ".join(words)


def commands(where: str, data: str) -> Iterator[tuple[str, int, int]]:
    """(letter, where its arguments begin, where they end) of each command. Raises ValueError where there is none."""
    found = TOKEN.match(data)
    if data.strip() and (found is None or found["command"] not in ("M", "m")):
        raise ValueError(f"{where} must be SVG path data that begin with M, got {shown(data)}")
    places = (match.start() for match in re.finditer("[MmZzLlHhVvCcSsQqTtAa]", data))
    for place, end in itertools.pairwise(itertools.chain(places, [len(data)])):
        yield data[place], place + 1, end


def arguments(where: str, data: str, command: str, begin: int, end: int) -> Iterator[str]:
    """The numbers of a command as texts; flags of arcs are one digit. Raises ValueError naming the character."""
    place, n = begin, 0
    stop = len(data[begin:end].rstrip(" \t\r\n\f\v,")) + begin
    while place < stop:
        is_flag = command in "Aa" and n % 7 in (3, 4)
        found = (FLAG if is_flag else TOKEN).match(data, place, end)
        if found is None:
            what = "a flag 0 or 1" if is_flag else "a number"
            got = data[place:stop].lstrip(" \t\r\n\f\v,")
            raise ValueError(
                f"{where} must be SVG path data, got {shown(got[:40])} for {what} after {command!r} at character "
                f"{stop - len(got) + 1}"
            )
        if not is_flag and not math.isfinite(float(found["number"])):
            raise ValueError(
                f"{where} must be SVG path data of finite numbers, got {found['number'][:40]} at character "
                f"{found.end() - len(found['number']) + 1}"
            )
        yield found[1] if is_flag else repr(float(found["number"]))
        place, n = found.end(), n + 1


def checked_numbers(where: str, text: str) -> list[float]:
    """Finite numbers between spaces and commas. Raises ValueError, which begins with ``where``, for anything else."""
    words = re.split(r"[\s,]+", text.strip(" \t\r\n,"))
    for k, word in enumerate(words):
        if not re.fullmatch(NUMBER, word) or not math.isfinite(float(word)):
            raise ValueError(f"{where} must be finite numbers, got {shown(word[:40])} at [{k}]")
    return [float(word) for word in words]


def checked_transform(where: str, text: str) -> str:
    """A transform in one form. Raises ValueError, which begins with ``where``, for one that SVG does not know."""
    words: list[str] = []
    place = 0
    text = "" if text.strip() == "none" else text.rstrip(" \t\r\n,")
    while place < len(text):
        found = TRANSFORM.match(text, place)
        if found is None or found[1] not in TRANSFORMS or len(words) == MAX_TRANSFORMS:
            known = ", ".join(TRANSFORMS)
            raise ValueError(
                f"{where} must be at most {MAX_TRANSFORMS} of {known}, got {shown(text[place : place + 40])} at "
                f"character {place + 1}"
            )
        numbers = checked_numbers(f"{where}: {found[1]}", found[2])
        if len(numbers) not in TRANSFORMS[found[1]]:
            count = " or ".join(map(str, TRANSFORMS[found[1]]))
            raise ValueError(f"{where}: {found[1]} must have {count} numbers, got {len(numbers)}")
        words.append(f"{found[1]}({' '.join(map(repr, numbers))})")
        place = found.end()
    return " ".join(words)


class Document(NamedTuple):
    """What is drawn of a file: groups and shapes alone, checked; the place of each shape, as file and line."""

    root: Element
    places: list[str]


class Reader:
    """Handlers of an XML parser that keep what is drawn: shapes in the root, or in groups of groups in it."""

    def __init__(self, label: str, content: bytes) -> None:
        self.label, self.content = label, content
        self.parser = expat.ParserCreate(namespace_separator="}")
        self.parser.StartElementHandler = self.begin
        self.parser.EndElementHandler = self.end
        self.parser.EntityDeclHandler = self.declare
        self.parser.StartDoctypeDeclHandler = self.doctype
        self.open: list[Element | None] = []  # None: what is not drawn
        self.root: Element | None = None
        self.places: list[str] = []
        self.elements = 0
        self.entities = {"amp", "lt", "gt", "quot", "apos"}
        self.has_external = False

    @property
    def place(self) -> str:
        """Where the parser is."""
        return f"{self.label}, line {self.parser.CurrentLineNumber}, column {self.parser.CurrentColumnNumber + 1}"

    def doctype(self, _name: str, system: str | None, public: str | None, _has_internal: int) -> None:
        """Note whether a document type lies in another file, which is not read."""
        self.has_external = system is not None or public is not None

    def declare(self, name: str, is_parameter: int, value: str | None, *_others: Any) -> None:
        """Refuse entities but short ones, such as drawing programs use for namespaces."""
        if is_parameter or value is None or len(value) > MAX_ENTITY or "&" in value:
            raise ValueError(
                f"{self.place}: must have no entities but texts of at most {MAX_ENTITY} characters, got {shown(name)}"
            )
        if len(self.content) > MAX_BYTES_WITH_ENTITIES:
            raise ValueError(f"{self.place}: must be at most {MAX_BYTES_WITH_ENTITIES} bytes to declare entities")
        self.entities.add(name)

    def begin(self, tag: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        self.elements += 1
        if len(self.open) >= MAX_DEPTH or self.elements > MAX_ELEMENTS:
            raise ValueError(
                f"{self.place}: must have at most {MAX_ELEMENTS} elements, at most {MAX_DEPTH} deep, got more"
            )
        parent = self.open[-1] if self.open else None
        name = f"{{{tag}" if "}" in tag else tag
        kind = name.removeprefix(SVG) if name.startswith(SVG) else ""
        if not self.open:
            self.root = element = Element(name, self.transform_of(attributes))
        elif parent is None or (kind != "g" and kind not in SHAPES):
            self.open.append(None)
            return
        else:
            checked = self.transform_of(attributes)
            if kind in SHAPES:
                self.places.append(self.place)
                checked |= self.shape_of(kind, attributes)
            element = SubElement(parent, name, checked)
        self.open.append(element if kind == "g" or len(self.open) == 0 else None)

    def end(self, _tag: str) -> None:
        """An element ends."""
        self.open.pop()

    def transform_of(self, attributes: dict[str, str]) -> dict[str, str]:
        """An element's transform as an attribute; none where there is none."""
        if re.search(r"(?<![\w-])transform\s*:", attributes.get("style", "")):
            raise ValueError(f"{self.place}: must have its transform as an attribute, got one in style")
        text = checked_transform(f"{self.place}: transform", attributes.get("transform", ""))
        return {"transform": text} if text else {}

    def shape_of(self, kind: str, attributes: dict[str, str]) -> dict[str, str]:
        """The attributes that draw a shape. Raises ValueError naming line, column and attribute."""
        checked = {}
        if kind in ("path", "polyline", "polygon"):
            name = "d" if kind == "path" else "points"
            if name not in attributes:
                raise ValueError(
                    f"{self.place}: {kind} must have the attribute {name}, got {sorted(attributes)!s:.200}"
                )
            where, text = f"{self.place}: {name}", attributes[name]
            checked[name] = checked_path(where, text) if kind == "path" else checked_points(where, text)
        for name in SHAPES[kind]:
            if name in attributes:
                numbers = checked_numbers(f"{self.place}: {name}", attributes[name])
                if len(numbers) != 1:
                    raise ValueError(f"{self.place}: {name} must be one number, got {shown(attributes[name])}")
                checked[name] = repr(numbers[0])
        return checked

    def read(self) -> Document:
        """Read it all. Raises ValueError naming line and column for what is no XML, or not to be read."""
        try:
            self.parser.Parse(self.content, True)
        except expat.ExpatError as error:
            raise ValueError(
                f"{self.label}, line {error.lineno}, column {error.offset + 1}: must be XML, got "
                f"{expat.ErrorString(error.code)}"
            ) from None
        except LookupError as error:  # an encoding that Python does not know
            raise ValueError(f"{self.place}: must have an encoding that can be read, got {error}") from None
        except ValueError as error:
            if str(error).startswith(self.label):
                raise
            raise ValueError(f"{self.place}: must have an encoding that can be read, got {error}") from None
        if self.has_external:  # the parser leaves out entities that may be declared in the other file
            for found in re.finditer(rb"&([A-Za-z_:][\w:.-]*);", self.content):
                if found[1].decode() not in self.entities:
                    line = self.content.count(b"\n", 0, found.start()) + 1
                    raise ValueError(f"{self.label}, line {line}: must use entities that it declares, got {found[0]!r}")
        assert self.root is not None
        return Document(self.root, self.places)


def checked_points(where: str, text: str) -> str:
    """Points of a polygon in one form. Raises ValueError, which begins with ``where``, for anything else."""
    numbers = checked_numbers(where, text)
    if len(numbers) % 2 or len(numbers) > 2 * MAX_SEGMENTS:
        raise ValueError(f"{where} must be at most {MAX_SEGMENTS} pairs of numbers, got {len(numbers)} numbers")
    return " ".join(f"{x!r},{y!r}" for x, y in zip(numbers[::2], numbers[1::2], strict=True))


def read_document(label: str, content: bytes) -> Document:
    """What is drawn of the SVG file ``content``.

    Raises ValueError, which begins with ``label`` and names line and column, for what is no XML, path data, numbers or
    transforms that SVG does not know, entities that are long, made of others or in other files, and for files above the
    bounds of this module.
    """
    return Reader(label, content).read()
