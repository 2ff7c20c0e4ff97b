"""Time series from delimited text and from Parquet files; errors name file, line and column."""

import csv
import io
import math
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from toolkit.errors import check_exists, check_path, check_text, is_sequence, optional, shown

from ..arrays import Array
from ..systems.system import check_names
from .series import Series

SEPARATORS = (",", ";", "\t")
CHUNK = 2**24  # characters read at a time


class Header(NamedTuple):
    """The first lines of a CSV file: names of its columns, their separator, and the number of lines."""

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
            for chunk in read_chunks(text):
                numbers = parse_chunk(file, chunk, header, places, missing, filled + header.lines + 1)
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
            raise ValueError(f"{file}, line {number}: must name columns between , ; or tabs, got {shown(line[:80])}")
        if all(is_number(word) for word in columns):
            raise ValueError(f"{file}, line {number}: must name the columns, got numbers: {shown(line[:80].strip())}")
        return Header(columns, separator, number)
    raise ValueError(f"{file}: must begin with a line that names the columns, but is empty")


def read_chunks(text: Any) -> Iterator[str]:
    """Chunks of whole lines, some 16 MiB each, without blank lines at the end of the text."""
    rest = ""
    while piece := text.read(CHUNK):
        whole, newline, rest = (rest + piece).rpartition("\n")
        stripped = whole.rstrip("\n")
        rest = (
            whole[len(stripped) :] + newline + rest
        )  # blank lines are kept for the next chunk, as they are errors only before data
        if stripped and rest.startswith("\n"):
            rest = rest[1:]
        elif not stripped:
            continue
        yield stripped
    if rest.strip():
        yield rest.rstrip("\n")


def parse_chunk(file: Path, chunk: str, header: Header, places: list[int], missing: Sequence[str], first: int) -> Array:
    """The numbers in a chunk of whole lines; first: the number of its first line."""
    reason: Any = "lines do not all have the columns of the header"
    may_be_nan = "nan" in {word.lower() for word in missing} or not re.search("nan", chunk, re.IGNORECASE)
    if is_rectangular(chunk, header):
        text = io.StringIO(replace_missing(chunk, header.separator, missing))
        try:
            numbers = np.loadtxt(
                text, delimiter=header.separator, usecols=places, comments=None, quotechar='"', ndmin=2
            )  # fmt: skip
        except ValueError as error:
            reason = error
        else:
            if may_be_nan:
                return np.asarray(numbers, np.float64)
            reason = None  # unless the error is in a column that is read
    found = first_error(file, chunk, header, places, missing, first)
    if found or reason:
        raise found or ValueError(f"{file}: cannot be read: {reason}")
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


def replace_missing(chunk: str, separator: str, missing: Sequence[str]) -> str:
    """The text with nan where a value is missing."""
    words = [word for word in missing if word and word.lower() != "nan"]
    boundary = f'{separator}\n "'
    empty = "" in missing and (
        chunk[:1] in boundary or chunk[-1:] in boundary
        or any(pair in chunk for pair in (2 * separator, f"{separator}\n", f"\n{separator}", " ", '""'))
    )  # fmt: skip
    if not empty and not any(word in chunk for word in words):
        return chunk
    allowed = "|".join(map(re.escape, words + [""] * ("" in missing)))
    separator_pattern = re.escape(separator)
    return re.sub(
        rf'(?:(?<={separator_pattern})|^)[ ]*("?)(?:{allowed})\1[ ]*(?={separator_pattern}|$)',
        "nan",
        chunk,
        flags=re.MULTILINE,
    )


def first_error(
    file: Path, chunk: str, header: Header, places: list[int], missing: Sequence[str], first: int
) -> ValueError | None:
    """The error of the first bad line; None where no line is bad."""
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


def load(
    path: Any,
    *,
    time: str,
    states: Any = None,
    missing: Sequence[str] = ("", "NA", "nan"),
    time_unit: str = "",
    units: Any = (),
    name: str = "",
    source: str = "",
) -> Series:
    """The columns ``time`` and ``states`` (None: all others) of a file of text, or of Parquet (``….parquet``).

    Text: a line of column names, before which lines may begin with "#"; columns between commas, semicolons or tabs, in
    quotes or not; numbers with a decimal point. missing: what stands for a missing state, apart from spaces and quotes.
    Read in pieces of 16 MiB, so that memory holds little more than the numbers. Parquet needs pyarrow (extra
    ``data``); its nulls are missing. The rest: as in ``Series``.
    Raises FileNotFoundError, and ValueError naming file, line and column for text, ragged lines, repeated or unknown
    columns, and times that do not increase.
    """
    given = check_path("path", path, "the path of a file")
    file = Path(given)
    if not check_exists("path", given, "the path of a file"):
        raise FileNotFoundError(f"path {shown(given)}: no such file")
    if not file.is_file():
        raise ValueError(f"path {shown(given)}: is a folder")
    check_text("time", time)
    check_text("name", name)
    if not is_sequence(missing):
        raise TypeError(f"missing must be a sequence of words, got {shown(missing)} of type {type(missing).__name__}")
    words = [check_text(f"missing[{i}]", word) for i, word in enumerate(missing)]
    if file.suffix.lower() == ".parquet":
        names, table, first = *read_parquet(file, time, states), 0
    else:
        names, table, first = read_delimited(file, lambda columns: choose_columns(file, columns, time, states), words)
    not_finite = np.flatnonzero(~np.isfinite(table[:, 0]))
    if not_finite.size:
        where = f"line {not_finite[0] + first}" if first else f"row {not_finite[0]}"
        raise ValueError(f"{file}, {where}, column {shown(time)}: a time must be finite, got {table[not_finite[0], 0]}")
    try:
        return Series(
            table[:, 0], table[:, 1:], names[1:], time_unit=time_unit, units=units, name=name or file.stem,
            source=source,
        )  # fmt: skip
    except ValueError as error:
        raise ValueError(f"{file}: {error}; row 0 is line {first}" if first else f"{file}: {error}") from error


def choose_columns(file: Path, columns: Sequence[str], time: str, states: Any) -> tuple[str, ...]:
    """Time and states, among ``columns``. Raises ValueError where one is repeated or not there."""
    for k, column in enumerate(columns):
        if column in columns[:k]:
            raise ValueError(f"{file}: columns must have different names, got {shown(column)} at {k + 1} again")
    wanted = [column for column in columns if column != time] if states is None else check_names("states", states)
    if time in wanted:
        raise ValueError(f"states must not hold the time, got {shown(time)}")
    for column in (time, *wanted):
        if column not in columns:
            raise ValueError(f"{file}: has no column {shown(column)}; its columns are {', '.join(map(repr, columns))}")
    if not wanted:
        raise ValueError(f"{file}: must have a column beside the time {shown(time)}")
    return (time, *wanted)


def read_parquet(file: Path, time: str, states: Any) -> tuple[tuple[str, ...], Array]:
    """Names and the numbers (n, columns) of a Parquet file."""
    pyarrow, parquet = optional("pyarrow", "data"), optional("pyarrow.parquet", "data")
    try:
        schema = parquet.read_schema(file)
        names = choose_columns(file, schema.names, time, states)
        for column in names:
            kind = schema.field(column).type
            if not (pyarrow.types.is_floating(kind) or pyarrow.types.is_integer(kind)):
                raise ValueError(f"{file}, column {shown(column)}: must hold numbers, got {kind}")
        read = parquet.read_table(file, columns=list(names))
    except pyarrow.ArrowException as error:
        raise ValueError(f"{file}: is not a Parquet file that can be read: {error}") from error
    table = np.empty((read.num_rows, len(names)))
    for k, column in enumerate(names):
        table[:, k] = read.column(column).cast(pyarrow.float64()).to_numpy(zero_copy_only=False)
    return names, table
