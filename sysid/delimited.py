"""Tables of text between separators, in pieces; what is off in one is named by file, line and column."""

import csv
import io
import math
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
SEPARATORS = (",", ";", "\t")
CHUNK = 2**24  # characters read at a time


class Header(NamedTuple):
    """The first lines of a CSV file: names of its columns, what is between them, and how many lines they take."""

    columns: tuple[str, ...]
    separator: str
    lines: int


def read_delimited(
    file: Path, choose: Callable[[Sequence[str]], tuple[str, ...]], missing: Sequence[str]
) -> tuple[tuple[str, ...], Array, int]:
    """Names of the columns that ``choose`` takes from all, the numbers (n, columns), and the line of the first."""
    try:
        with file.open("rb") as stream:
            rows = sum(piece.count(b"\n") for piece in iter(lambda: stream.read(CHUNK), b"")) + 1
        with file.open(encoding="utf-8-sig", newline=None) as text:
            header = read_header(file, text)
            names = choose(header.columns)
            places = [header.columns.index(name) for name in names]
            table = np.empty((rows, len(names)))
            filled = 0
            for chunk in chunks(text):
                numbers = numbers_of(file, chunk, header, places, missing, filled + header.lines + 1)
                table[filled : filled + len(numbers)] = numbers
                filled += len(numbers)
    except UnicodeDecodeError as error:
        raise ValueError(f"{file}: is not a text file in UTF-8") from error
    return names, table[:filled], header.lines + 1


def read_header(file: Path, text: Any) -> Header:
    """The names of the columns, from the first line that is no comment."""
    for number, line in enumerate(text, 1):
        if line.startswith("#"):
            continue
        separator = max(SEPARATORS, key=line.count)
        columns = tuple(word.strip() for word in next(csv.reader([line.strip("\n")], delimiter=separator), []))
        if len(columns) < 2:
            raise ValueError(f"{file}, line {number}: must name columns between , ; or tabs, got {line[:80]!r}")
        if all(is_number(word) for word in columns):
            raise ValueError(f"{file}, line {number}: must name the columns, got numbers: {line[:80].strip()!r}")
        return Header(columns, separator, number)
    raise ValueError(f"{file}: must begin with a line that names the columns, but is empty")


def chunks(text: Any) -> Iterator[str]:
    """Whole lines, some 16 MiB at a time, without blank ones at the end."""
    rest = ""
    while piece := text.read(CHUNK):
        whole, newline, rest = (rest + piece).rpartition("\n")
        stripped = whole.rstrip("\n")
        rest = whole[len(stripped) :] + newline + rest  # blank lines wait for what comes after them
        if stripped and rest.startswith("\n"):
            rest = rest[1:]
        elif not stripped:
            continue
        yield stripped
    if rest.strip():
        yield rest.rstrip("\n")


def numbers_of(file: Path, chunk: str, header: Header, places: list[int], missing: Sequence[str], first: int) -> Array:
    """The numbers of whole lines, of which the first has number ``first``."""
    why: Any = "lines do not all have the columns of the header"
    may_be_nan = "nan" in {word.lower() for word in missing} or not re.search("nan", chunk, re.IGNORECASE)
    if is_rectangular(chunk, header):
        text = io.StringIO(with_nan(chunk, header.separator, missing))
        try:
            numbers = np.loadtxt(
                text, delimiter=header.separator, usecols=places, comments=None, quotechar='"', ndmin=2
            )  # fmt: skip
        except ValueError as error:
            why = error
        else:
            if may_be_nan:
                return np.asarray(numbers, np.float64)
            why = None  # unless it stands in a column that is not read
    found = fault(file, chunk, header, places, missing, first)
    if found or why:
        raise found or ValueError(f"{file}: cannot be read: {why}")
    return np.asarray(numbers, np.float64)


def is_rectangular(chunk: str, header: Header) -> bool:
    """Whether all lines have the columns of the header."""
    wanted = len(header.columns) - 1
    if '"' in chunk:
        return all(len(row) == wanted + 1 for row in csv.reader(io.StringIO(chunk), delimiter=header.separator))
    content = np.frombuffer(chunk.encode(), np.uint8)
    ends = np.append(np.flatnonzero(content == ord("\n")), content.size)
    found = np.flatnonzero(content == ord(header.separator))
    return bool((np.diff(np.searchsorted(found, ends), prepend=0) == wanted).all())


def with_nan(chunk: str, separator: str, missing: Sequence[str]) -> str:
    """The text with nan where a value is missing."""
    words = [word for word in missing if word and word.lower() != "nan"]
    around = f'{separator}\n "'
    empty = "" in missing and (
        chunk[:1] in around or chunk[-1:] in around
        or any(pair in chunk for pair in (2 * separator, f"{separator}\n", f"\n{separator}", " ", '""'))
    )  # fmt: skip
    if not empty and not any(word in chunk for word in words):
        return chunk
    allowed = "|".join(map(re.escape, words + [""] * ("" in missing)))
    apart = re.escape(separator)
    return re.sub(rf'(?:(?<={apart})|^)[ ]*("?)(?:{allowed})\1[ ]*(?={apart}|$)', "nan", chunk, flags=re.MULTILINE)


def fault(
    file: Path, chunk: str, header: Header, places: list[int], missing: Sequence[str], first: int
) -> ValueError | None:
    """What is wrong with the first of some lines that is."""
    wanted = len(header.columns)
    for number, row in enumerate(csv.reader(io.StringIO(chunk), delimiter=header.separator), first):
        if len(row) != wanted:
            what = "is blank, with data after it" if not row else f"has {len(row)} columns, but the header has {wanted}"
            return ValueError(f"{file}, line {number}: {what}")
        for place in places:
            word = row[place].strip()
            if word not in missing and (not is_number(word) or math.isnan(float(word))):
                hint = "; numbers have a decimal point" if re.fullmatch(r"[-+]?\d+,\d*", word) else ""
                hint = hint or f"; missing values are written {', '.join(map(repr, missing)) or 'in no way'}"
                column = header.columns[place]
                return ValueError(f"{file}, line {number}, column {column!r}: {word[:80]!r} is not a number{hint}")
    return None


def is_number(word: str) -> bool:
    """Whether Python reads ``word`` as a float, without underscores."""
    try:
        float(word)
    except ValueError:
        return False
    return "_" not in word
