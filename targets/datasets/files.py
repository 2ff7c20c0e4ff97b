"""Files of the UCI data sets in their documented formats; errors name file, line and column."""

import gzip
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from toolkit.errors import check_exists, check_path, decoded, package_root, read_bytes, shown

from ..arrays import Array, Integers

FOLDER = package_root(__name__) / "datasets" / "uci_files"  # the files of the repository, packed; ATTRIBUTION.md
MAX_BYTES = 2**20  # of a file; the largest, of Mushroom, has 373,704


class Layout(NamedTuple):
    """The layout of a file of numbers, whose last column is the class."""

    name: str
    file: str
    title: str
    doi: str
    rows: int
    columns: int
    classes: Mapping[float, int]  # class as written → label
    meaning: str
    similar_files: Mapping[int, str]  # columns of another file it is taken for → that file


AUSTRALIAN = Layout(
    "Australian", "australian.dat", "Statlog (Australian Credit Approval)", "10.24432/C59012", 690, 15,
    {0.0: 0, 1.0: 1}, "0 or 1", {16: "crx.data, which has commas, letters and missing values"},
)  # fmt: skip
GERMAN = Layout(
    "German", "german.data-numeric", "Statlog (German Credit Data)", "10.24432/C5NC77", 1000, 25,
    {1.0: 0, 2.0: 1}, "1 (good) or 2 (bad)", {21: "german.data, which has codes such as A11"},
)  # fmt: skip
HEART = Layout(
    "Heart", "heart.dat", "Statlog (Heart)", "10.24432/C57303", 270, 14,
    {1.0: 0, 2.0: 1}, "1 (absence) or 2 (presence)",
    {14: "processed.cleveland.data, which has commas, '?' and classes 0 to 4"},
)  # fmt: skip
MUSHROOM_FILE, MUSHROOM_ROWS, MUSHROOM_DOI = "agaricus-lepiota.data", 8124, "10.24432/C5959T"
DIGITS_FILE, DIGITS_DOI = "digits.csv", "10.24432/C50P49"

# The codes that occur in the file, attribute by attribute; 117 in all. The names are those of its documentation.
MUSHROOM_CODES: dict[str, str] = {
    "cap-shape": "bcfksx", "cap-surface": "fgsy", "cap-color": "bcegnpruwy", "bruises": "ft",
    "odor": "acflmnpsy", "gill-attachment": "af", "gill-spacing": "cw", "gill-size": "bn",
    "gill-color": "beghknopruwy", "stalk-shape": "et", "stalk-root": "?bcer", "stalk-surface-above-ring": "fksy",
    "stalk-surface-below-ring": "fksy", "stalk-color-above-ring": "bcegnopwy", "stalk-color-below-ring": "bcegnopwy",
    "veil-type": "p", "veil-color": "nowy", "ring-number": "not", "ring-type": "eflnp",
    "spore-print-color": "bhknoruwy", "population": "acnsvy", "habitat": "dglmpuw",
}  # fmt: skip


def shipped(file: str) -> str:
    """The text of a file of ``uci_files``."""
    return gzip.decompress((FOLDER / f"{file}.gz").read_bytes()).decode("ascii")


def source_of(file: str, title: str, doi: str, path: Any) -> str:
    """Where the data of a file come from: the user's path, or the shipped file with its credit."""
    return (
        f"{file}, {title}, UCI Machine Learning Repository, doi {doi}, CC BY 4.0" if path is None else os.fspath(path)
    )


def read_lines(path: Any, file: str, expected: str) -> Iterator[tuple[str, str]]:
    """(place, line) of every line up to the blank ones at the end; ``place`` names file and line.

    path: of the user's file; None: the shipped ``file``. Raises TypeError for what is no path, FileNotFoundError, and
    ValueError for a folder, a file that is empty, no text in UTF-8 or above ``MAX_BYTES``, and for a blank line between
    others.
    """
    label, text = (file, shipped(file)) if path is None else read_text(path, expected)
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines:
        raise ValueError(f"{label}: is empty; expected {expected}")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            raise ValueError(f"{label}, line {number}: is blank, with data after it")
        yield f"{label}, line {number}", line


def read_text(path: Any, expected: str) -> tuple[str, str]:
    """Name and text of a user's file. Raises as ``read_lines`` does."""
    given = check_path("path", path, f"None or the path of {expected}")
    file = Path(given)
    if not check_exists("path", given, f"None or the path of {expected}"):
        raise FileNotFoundError(f"{file}: no such file; expected {expected}")
    try:
        return str(file), decoded(str(file), read_bytes("path", file, at_most=MAX_BYTES).removeprefix(b"\xef\xbb\xbf"))
    except ValueError as error:
        raise ValueError(f"{error}; expected {expected}") from None


def read_numbers(path: Any, layout: Layout) -> tuple[Array, Integers]:
    """Attributes (rows, columns − 1) and labels (rows,), 0 or 1, of a file of numbers between runs of blanks.

    Raises as ``read_lines`` does, and ValueError naming file, line and column for a wrong number of columns or rows,
    for what is no finite number and for a class that is none.
    """
    expected = f"{layout.file} of {layout.title}, {layout.rows} rows of {layout.columns} numbers between spaces"
    table, labels = [], []
    for place, line in read_lines(path, layout.file, expected):
        words = line.split()
        if len(words) != layout.columns:
            by_commas = len(line.split(","))
            other = layout.similar_files.get(by_commas if by_commas > 1 else len(words))
            hint = f"; is it {other}?" if other else ""
            found = f"{by_commas} columns between commas" if by_commas > 1 else f"{len(words)} columns"
            raise ValueError(f"{place}: {found}; expected {expected}{hint}")
        values = [read_number(word, f"{place}, column {c}") for c, word in enumerate(words, 1)]
        if values[-1] not in layout.classes:
            raise ValueError(f"{place}, column {layout.columns}: class {shown(words[-1])}; expected {layout.meaning}")
        table.append(values[:-1])
        labels.append(layout.classes[values[-1]])
    check_rows(path, len(table), layout.rows, expected)
    return np.array(table), np.array(labels, np.int64)


def read_number(word: str, place: str) -> float:
    """``word`` as a finite float. Raises ValueError naming the place otherwise."""
    try:
        number = float(word)
    except ValueError:
        missing = ", a missing mark that this file does not have" if word == "?" else ""
        raise ValueError(f"{place}: {shown(word[:80])} is not a number{missing}") from None
    if not math.isfinite(number) or "_" in word or not word.isascii():
        raise ValueError(f"{place}: {shown(word[:80])} is not a finite number")
    return number


def check_rows(path: Any, found: int, rows: int, expected: str) -> None:
    """Raise ValueError unless the file has the rows it must have."""
    if found != rows:
        raise ValueError(f"{Path(path)}: {found} rows; expected {expected}")


def read_mushroom(path: Any) -> tuple[list[str], Integers]:
    """The 22 codes of every row, as one string, and labels, 1 for poisonous, of agaricus-lepiota.data.

    Raises as ``read_numbers`` does, and ValueError naming file, line and column for an unknown code.
    """
    codes = list(MUSHROOM_CODES.items())
    expected = (
        f"{MUSHROOM_FILE} of Mushroom, {MUSHROOM_ROWS} rows of {len(codes) + 1} letters between commas, no header"
    )
    rows, labels = [], []
    for place, line in read_lines(path, MUSHROOM_FILE, expected):
        words = [word.strip() for word in line.split(",")]
        if len(words) != len(codes) + 1:
            raise ValueError(f"{place}: {len(words)} columns between commas; expected {expected}")
        if words[0] not in ("e", "p"):
            raise ValueError(f"{place}, column 1: class {shown(words[0])}; expected e (edible) or p (poisonous)")
        for c, (word, (name, known)) in enumerate(zip(words[1:], codes, strict=True), 2):
            if len(word) != 1 or word not in known:
                raise ValueError(
                    f"{place}, column {c}: unknown code {shown(word[:80])} of {name}; known are {', '.join(known)}"
                )
        rows.append("".join(words[1:]))
        labels.append(int(words[0] == "p"))
    check_rows(path, len(rows), MUSHROOM_ROWS, expected)
    return rows, np.array(labels, np.int64)


def read_digits() -> tuple[Array, Integers]:
    """Grey levels (1797, 64), whole numbers from 0 to 16, and digits (1797,) of the shipped file."""
    table = np.array([line.split(",") for line in shipped(DIGITS_FILE).split()], np.int64)
    return table[:, :-1].astype(np.float64), table[:, -1]
