"""Time series from delimited text and from Parquet files; errors name file, line and column."""

import csv
import io
import math
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from toolkit.errors import (
    available_memory,
    check_choice,
    check_exists,
    check_path,
    check_text,
    decoded,
    is_sequence,
    open_regular,
    optional,
    shown,
)

from ..arrays import Array
from ..systems.dates import DateReader, ReadTimes
from ..systems.inputs import check_held
from ..systems.system import check_names
from ..systems.units import seconds_of
from .measured_input import read_times
from .series import Series, inputs_of_table

SEPARATORS = (",", ";", "\t")
CHUNK = 2**20  # bytes read at a time
MAX_ROW = 2**22  # bytes of a row
MAX_COLUMNS = 20_000
MAX_COMMENTS = 100_000  # lines before that of the names
MAX_NAMED = 20  # columns in a message
MAX_FIELD = 131_072  # characters of a field, the limit of Python's csv


class Header(NamedTuple):
    """The first lines of a CSV file: names of its columns, their separator, decimal sign, and number of lines."""

    columns: tuple[str, ...]
    separator: str
    decimal: str
    lines: int


SWAPPED = str.maketrans(",.", ".,")  # decimal commas become points, and points what no number may have


class TextTable(NamedTuple):
    """What was read of a file: names of columns, numbers (n, columns), line of the first, unit and origin of times."""

    names: tuple[str, ...]
    numbers: Array
    first_line: int
    time_unit: str
    origin: Any


def read_delimited(
    file: Path,
    choose: Callable[[Sequence[str]], tuple[str, ...]],
    missing: Sequence[str],
    decimal: str,
    dates: "Dates",
) -> TextTable:
    """The columns that ``choose`` takes from all; dates in the first of them as the time since the first date."""
    with open_regular("path", file) as stream:
        rows = Rows(file, stream)
        header = read_header(file, rows, decimal)
        names = choose(header.columns)
        place_of = {column: k for k, column in enumerate(header.columns)}
        places = [place_of[name] for name in names]
        table = np.empty((0, len(names)))
        filled = 0
        for text, first in rows.chunks(header.separator):
            chunk = dates.as_numbers(text, header, places[0], first)
            numbers = parse_chunk(file, chunk, header, places, missing, first)
            not_finite = np.flatnonzero(~np.isfinite(numbers[:, 0]))
            if not_finite.size:
                row = int(not_finite[0])
                line = next(number for k, (number, _) in enumerate(numbered(file, chunk, header, first)) if k == row)
                raise ValueError(
                    f"{file}, line {line}, column {shown(names[0])}: a time must be finite, got {numbers[row, 0]}"
                )
            if filled + len(numbers) > len(table):  # as many more as the rest of the file would give
                share = max(stream.tell(), 1) / max(os.fstat(stream.fileno()).st_size, 1)
                size = max(filled + len(numbers), int(1.01 * (filled + len(numbers)) / min(share, 1.0)))
                table.resize((size, len(names)), refcheck=False)
            table[filled : filled + len(numbers)] = numbers
            filled += len(numbers)
    table.resize((filled, len(names)), refcheck=False)
    return TextTable(names, table, header.lines + 1, dates.time_unit, dates.origin)


class Dates:
    """The times of a text file where they are dates: the first row decides, and time counts from its date."""

    def __init__(self, file: Path, time_unit: str, date_format: str) -> None:
        self.file, self.time_unit, self.reader = file, time_unit, DateReader(date_format)
        self.origin: np.datetime64 | None = None
        self.is_first = True

    def as_numbers(self, chunk: str, header: Header, place: int, first: int) -> str:
        """The chunk with decimal points, and with numbers in place of the dates in its column ``place``."""
        if self.is_first:
            self.is_first = False
            self._decide(chunk, header, place, first)
        if self.origin is None:
            return chunk.translate(SWAPPED) if header.decimal == "," else chunk
        text = io.StringIO()
        written = csv.writer(text, delimiter=header.separator, lineterminator="\n")
        for line, row in numbered(self.file, chunk, header, first):
            fields = [word.translate(SWAPPED) for word in row] if header.decimal == "," else row
            if place < len(row):
                date = self._date(line, row[place], header.columns[place])
                fields[place] = repr(float((date - self.origin) / np.timedelta64(1, "s")) / self.factor)
            written.writerow(fields)
        return text.getvalue().removesuffix("\n")

    def _decide(self, chunk: str, header: Header, place: int, first: int) -> None:
        """Find out from the first rows whether times are dates, and how they are written."""
        rows = ((line, row) for line, row in numbered(self.file, chunk, header, first) if row)
        line, row = next(rows, (first, []))
        word = row[place].strip() if place < len(row) else ""
        if not self.reader.date_format and is_number(word.translate(SWAPPED) if header.decimal == "," else word):
            return
        words = [word, *(other[place].strip() for _, other in rows if place < len(other))]
        try:
            if not self.reader.decide(words):
                return
        except ValueError as error:
            where = f"{self.file}, line {line}, column {shown(header.columns[place])}"
            raise ValueError(f"{where}: {error}") from None
        self.origin = self._date(line, word, header.columns[place])
        self.factor = seconds_of(self.time_unit)
        self.time_unit = self.time_unit or "s"

    def _date(self, line: int, word: str, column: str) -> np.datetime64:
        """The date that a word says. Raises ValueError where it says none."""
        date = self.reader.read(word.strip())
        if date is None:
            raise ValueError(
                f"{self.file}, line {line}, column {shown(column)}: {word[:80]!r} is no {self.reader.example}"
            )
        return date


class Rows:
    """The lines of a file, with any ends, decoded; a field in quotes may hold line ends.

    Raises ValueError naming line and column where the text is not UTF-8 or holds a NUL, and for a row above
    ``MAX_ROW`` bytes.
    """

    def __init__(self, file: Path, stream: BinaryIO) -> None:
        self.file, self.stream = file, stream
        self.rest = b""
        self.line = 1  # number of the line with which the rest begins
        self.at_end = False
        self.last = b""  # byte of the piece before
        self.begin = 0  # of the rest, of which the lines before were taken

    def read(self) -> None:
        """Read on, with line ends as Unix has them."""
        piece = self.stream.read(CHUNK)
        self.at_end = not piece
        kept = piece
        if not self.last:
            kept = kept.removeprefix(b"\xef\xbb\xbf")
        elif self.last == b"\r":
            kept = kept.removeprefix(b"\n")
        self.last = piece[-1:]
        if b"\r" in kept:
            kept = kept.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if b"\0" in kept:
            decoded(str(self.file), self.rest + kept[: kept.index(b"\0") + 1], first_line=self.line)
        self.rest += kept

    def error(self) -> ValueError:
        """The error of a row that is too long."""
        return ValueError(
            f"{self.file}, line {self.line}: must have rows of at most {MAX_ROW} bytes, got a longer one that "
            f"begins with {shown(self.rest[:40].decode('utf-8', 'replace'))} …"
        )

    def next_line(self) -> str | None:
        """The next line; None at the end."""
        while (end := self.rest.find(b"\n", self.begin)) < 0 and not self.at_end:
            self.rest, self.begin = self.rest[self.begin :], 0
            if len(self.rest) > MAX_ROW:
                raise self.error()
            self.read()
        line = self.rest[self.begin : end if end >= 0 else None]
        if not line and end < 0:
            return None
        self.begin += len(line) + 1
        text = decoded(str(self.file), line, first_line=self.line)
        self.line += 1
        return text

    def chunks(self, separator: str) -> Iterator[tuple[str, int]]:
        """Chunks of whole rows, some ``CHUNK`` bytes, and the line of the first; no blank lines at the end."""
        self.rest, self.begin = self.rest[self.begin :], 0
        blank_line = 0  # the first blank one, which is an error only before data
        while not self.at_end or self.rest:
            end = len(self.rest) if self.at_end else self.rest.rfind(b"\n") + 1
            whole = self.rest[:end]
            if b'"' in whole:
                whole = whole[: self.end_of_rows(whole, separator)]
            if not whole:
                if len(self.rest) > MAX_ROW:
                    raise self.error()
                self.read()
                continue
            text = decoded(str(self.file), whole, first_line=self.line)
            self.rest = self.rest[len(whole) :]
            first, self.line = self.line, self.line + whole.count(b"\n")
            rows = text.rstrip("\n")
            if not rows.strip() and self.at_end and not self.rest:
                return
            if rows:
                yield ("\n" + rows, blank_line) if blank_line else (rows, first)
            if text[len(rows) :].count("\n") > bool(rows) and (rows or not blank_line):
                blank_line = first + rows.count("\n") + bool(rows)

    def end_of_rows(self, whole: bytes, separator: str) -> int:
        """Bytes of the rows in ``whole`` that end there. Raises ValueError where a quote is open at the file's end."""
        lines = whole.removesuffix(b"\n").split(b"\n")
        reader = csv.reader([*(line.decode("utf-8", "replace") for line in lines), "end"], delimiter=separator)
        begun = 0  # lines before the row that is read
        try:
            for _ in reader:
                if reader.line_num > len(lines):
                    break
                begun = reader.line_num
        except csv.Error:
            raise long_field(self.file, self.line + begun) from None
        if begun < len(lines) and self.at_end:
            raise ValueError(f"{self.file}, line {self.line + begun}: has a quote that does not close")
        return len(whole) if begun == len(lines) else sum(len(line) + 1 for line in lines[:begun])


def long_field(file: Path, line: int) -> ValueError:
    """The error of a field that is too long in a row that begins with the ``line``."""
    return ValueError(
        f"{file}, line {line}: must have fields of at most {MAX_FIELD} characters; does a quote not close?"
    )


def read_header(file: Path, rows: Rows, decimal: str) -> Header:
    """The names of the columns, from the first line that is no comment."""
    while (line := rows.next_line()) is not None:
        number = rows.line - 1
        if line.startswith("#"):
            if number > MAX_COMMENTS:
                raise ValueError(f"{file}, line {number}: must name the columns after at most {MAX_COMMENTS} comments")
            continue
        separator = max((s for s in SEPARATORS if s != decimal), key=line.count)
        if line.count(separator) >= MAX_COLUMNS:
            raise ValueError(
                f"{file}, line {number}: must name at most {MAX_COLUMNS} columns, got {line.count(separator) + 1}"
            )
        try:
            reader = csv.reader([line, "end"], delimiter=separator)
            columns = tuple(word.strip() for word in next(reader, []))
        except csv.Error:
            raise long_field(file, number) from None
        if reader.line_num > 1:
            raise ValueError(f"{file}, line {number}: has a quote that does not close")
        if len(columns) < 2:
            allowed = "; or tabs, as decimal is ','" if decimal == "," else ", ; or tabs"
            raise ValueError(f"{file}, line {number}: must name columns between {allowed}, got {shown(line[:80])}")
        if all(is_number(word) for word in columns):
            raise ValueError(f"{file}, line {number}: must name the columns, got numbers: {shown(line[:80].strip())}")
        return Header(columns, separator, decimal, number)
    raise ValueError(f"{file}: must begin with a line that names the columns, but is empty")


def parse_chunk(file: Path, chunk: str, header: Header, places: list[int], missing: Sequence[str], first: int) -> Array:
    """The numbers in a chunk of whole lines; first: the number of its first line."""
    reason: Any = "lines do not all have the columns of the header"
    may_be_nan = "nan" in {word.lower() for word in missing} or not re.search("nan", chunk, re.IGNORECASE)
    if is_rectangular(file, chunk, header, first):
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


def numbered(file: Path, chunk: str, header: Header, first: int) -> Iterator[tuple[int, list[str]]]:
    """The line and the fields of every row in a chunk that begins with the line ``first``."""
    reader = csv.reader(io.StringIO(chunk), delimiter=header.separator)
    line = first
    try:
        for row in reader:
            yield line, row
            line = first + reader.line_num
    except csv.Error:
        raise long_field(file, line) from None


def is_rectangular(file: Path, chunk: str, header: Header, first: int) -> bool:
    """Whether all rows have the columns of the header."""
    wanted = len(header.columns) - 1
    if '"' in chunk:
        return all(len(row) == wanted + 1 for _, row in numbered(file, chunk, header, first))
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
    before, after = rf"(?:(?<={re.escape(separator)})|^)[ ]*", rf"(?={re.escape(separator)}|$)"
    allowed = [rf"(?:{word}|\"{word}\")[ ]*" for word in map(re.escape, words)]
    allowed += [r"\"\"[ ]*", ""] * empty  # no spaces beside those before: one way to read them, so time grows linearly
    return re.sub(rf"{before}(?:{'|'.join(allowed)}){after}", "nan", chunk, flags=re.MULTILINE)


def first_error(
    file: Path, chunk: str, header: Header, places: list[int], missing: Sequence[str], first: int
) -> ValueError | None:
    """The error of the first bad line; None where no line is bad."""
    wanted = len(header.columns)
    for number, row in numbered(file, chunk, header, first):
        if len(row) != wanted:
            what = "is blank, with data after it" if not row else f"has {len(row)} columns, but the header has {wanted}"
            return ValueError(f"{file}, line {number}: {what}")
        for place in places:
            word = row[place].strip()
            if word not in missing and (not is_number(word) or math.isnan(float(word))):
                where = f"{file}, line {number}, column {shown(header.columns[place])}"
                return ValueError(f"{where}: {not_a_number(word[:80], header.decimal, missing)}")
    return None


def not_a_number(word: str, decimal: str, missing: Sequence[str]) -> str:
    """What is said of a ``word``, where that of the file, with decimal commas, has been turned into one with points."""
    has_comma = re.fullmatch(r"[-+]?\d+,\d*", word)
    if decimal == ",":
        word, missing = word.translate(SWAPPED), [one.translate(SWAPPED) for one in missing]
        hint = "numbers have a decimal comma, as decimal is ','"
    else:
        hint = "numbers have a decimal point, or give decimal=','"
    if not has_comma:
        hint = f"missing values are written {', '.join(map(repr, missing)) or 'in no way'}"
    return f"{word!r} is not a number; {hint}"


def is_number(word: str) -> bool:
    """Whether Python reads ``word`` as a float, without underscores and digits of other scripts."""
    try:
        float(word)
    except ValueError:
        return False
    return "_" not in word and word.isascii()


def load(
    path: Any,
    *,
    time: str,
    states: Any = None,
    missing: Sequence[str] = ("", "NA", "nan"),
    decimal: str = ".",
    time_unit: str = "",
    units: Any = (),
    name: str = "",
    source: str = "",
    inputs: Any = (),
    held: Any = (),
    date_format: str = "",
) -> Series:
    """The columns ``time`` and ``states`` (None: all others) of a file of text, or of Parquet (``….parquet``).

    Text: UTF-8; a line of at most 20,000 column names, before which up to 100,000 lines may begin with "#"; columns
    between commas, semicolons or tabs, in quotes or not; numbers with a decimal point, or, where ``decimal`` is ",",
    with a comma, and then columns between semicolons or tabs; rows of at most 4 MiB, fields in quotes of at most
    131,072 characters. Times may be dates, as 2020-12-31, 2020-12-31T23:59:59+01:00 or 2020/12/31, in Parquet
    timestamps: they become the time since the first, in ``time_unit`` ("s", "min", "h", "day" and the like; "":
    seconds). Those as 31.12.2020 or 12/31/2020 are read where a row in the first MiB has a day above 12, which tells
    their order. date_format: how ``datetime.strptime`` reads others, as "%d/%m/%Y", "%Y%m%d" or "%H:%M:%S". missing:
    what stands for a missing state, apart from spaces and quotes. Read in pieces of 1 MiB, so that memory holds little
    more than the numbers. Parquet needs pyarrow (extra ``data``); its nulls are missing, and integers must be below
    2**53. inputs, held: as in ``from_dataframe``. The rest: as in ``Series``.
    Raises TypeError for arguments of another kind; OSError where the file cannot be read, such as FileNotFoundError;
    ValueError naming file, line and column for what is no regular file, no UTF-8, text in place of numbers, ragged
    lines, repeated or unknown columns, times that do not increase, and more numbers than memory holds.
    """
    given = check_path("path", path, "the path of a file")
    file = Path(given)
    if not check_exists("path", given, "the path of a file"):
        raise FileNotFoundError(f"path {shown(given)}: no such file")
    check_text("time", time)
    check_text("name", name)
    if not is_sequence(missing):
        raise TypeError(f"missing must be a sequence of words, got {shown(missing)} of type {type(missing).__name__}")
    words = [check_text(f"missing[{i}]", word) for i, word in enumerate(missing)]
    driving = check_names("inputs", inputs, at_least=0)
    held = check_held(held, driving)
    check_choice("decimal", decimal, (".", ","))
    check_text("time_unit", time_unit)
    check_text("date_format", date_format)
    if file.suffix.lower() == ".parquet":
        names, table, first, time_unit, origin = read_parquet(file, time, states, driving, (time_unit, date_format))
    else:
        words = [word.translate(SWAPPED) for word in words] if decimal == "," else words
        names, table, first, time_unit, origin = read_delimited(
            file, lambda columns: choose_columns(file, columns, time, states, driving), words, decimal,
            Dates(file, time_unit, date_format),
        )  # fmt: skip
    try:
        n = len(names) - len(driving)
        known = inputs_of_table(table[:, 0], table[:, n:], driving, held) if driving else None
        return Series(
            table[:, 0], table[:, 1:n], names[1:n], time_unit=time_unit, units=units, name=name or file.stem,
            source=source, inputs=known, origin=origin,
        )  # fmt: skip
    except ValueError as error:
        raise ValueError(f"{file}: {error}; row 0 is line {first}" if first else f"{file}: {error}") from error


def choose_columns(
    file: Path, columns: Sequence[str], time: str, states: Any, inputs: tuple[str, ...]
) -> tuple[str, ...]:
    """Time, states and inputs, among ``columns``. Raises ValueError where one is repeated or not there."""
    seen: set[str] = set()
    for k, column in enumerate(columns):
        if column in seen:
            raise ValueError(f"{file}: columns must have different names, got {shown(column)} at {k + 1} again")
        seen.add(column)
    others = [column for column in columns if column != time and column not in inputs]
    wanted = others if states is None else check_names("states", states)
    if time in (*wanted, *inputs):
        raise ValueError(f"states and inputs must not hold the time, got {shown(time)}")
    for column in (time, *wanted, *inputs):
        if column not in seen:
            named = ", ".join(map(shown, columns[:MAX_NAMED])) + (", …" if len(columns) > MAX_NAMED else "")
            raise ValueError(f"{file}: has no column {shown(column)}; its columns are {named}")
    if not wanted:
        raise ValueError(f"{file}: must have a column beside the time {shown(time)}")
    check_names("states and inputs", (*wanted, *inputs))
    return (time, *wanted, *inputs)


def read_parquet(file: Path, time: str, states: Any, inputs: tuple[str, ...], of_times: tuple[str, str]) -> TextTable:
    """What is read of a Parquet file. of_times: unit and format of dates, as they are given."""
    (time_unit, date_format), origin = of_times, None
    pyarrow, parquet = optional("pyarrow", "data"), optional("pyarrow.parquet", "data")
    with open_regular("path", file) as stream:
        try:
            content = parquet.ParquetFile(stream, page_checksum_verification=True)
            schema, rows = content.schema_arrow, content.metadata.num_rows
        except (pyarrow.ArrowException, OSError, ValueError, MemoryError) as error:
            raise not_parquet(file, error) from error
        names = choose_columns(file, schema.names, time, states, inputs)
        for column in names:
            kind = schema.field(column).type
            is_date = column == time and (
                pyarrow.types.is_timestamp(kind) or pyarrow.types.is_date(kind) or pyarrow.types.is_string(kind)
                or pyarrow.types.is_large_string(kind)
            )  # fmt: skip
            if column == time and pyarrow.types.is_time(kind):
                raise ValueError(
                    f"{file}, column {shown(column)}: times must be numbers or dates, got {kind!s:.200}, times of the "
                    "day without a date"
                )
            if not (pyarrow.types.is_floating(kind) or pyarrow.types.is_integer(kind) or is_date):
                raise ValueError(f"{file}, column {shown(column)}: must hold numbers, got {kind!s:.200}")
        n_bytes = 24 * rows * len(names)  # as read, as floats, and as a table
        if n_bytes > available_memory():
            raise ValueError(
                f"{file}: must fit into memory, got {rows} rows of {len(names)} columns, which take "
                f"{n_bytes / 1e9:.4g} GB where there are {available_memory() / 1e9:.4g} GB"
            )
        try:
            read = content.read(columns=list(names))
            read.validate(full=True)
        except (pyarrow.ArrowException, OSError, ValueError, MemoryError) as error:
            raise not_parquet(file, error) from error
    if read.num_rows != rows:
        raise ValueError(f"{file}: must hold the {rows} rows that it says, got {read.num_rows}")
    table = np.empty((rows, len(names)))
    for k, column in enumerate(names):
        kind = schema.field(column).type
        if pyarrow.types.is_timestamp(kind) or pyarrow.types.is_date(kind):
            dates = read.column(column).cast(pyarrow.timestamp("ns", getattr(kind, "tz", None)))
            dates = dates.to_numpy(zero_copy_only=False).astype("M8[ns]")
            table[:, k], time_unit, origin = read_times("times", dates, time_unit)
            continue
        if k == 0 and (date_format or not (pyarrow.types.is_floating(kind) or pyarrow.types.is_integer(kind))):
            table[:, k], time_unit, origin = times_of_words(file, time, read.column(column), of_times)
            continue
        try:
            table[:, k] = read.column(column).cast(pyarrow.float64()).to_numpy(zero_copy_only=False)
        except pyarrow.ArrowInvalid as error:
            where = f"{file}, column {shown(column)}"
            raise ValueError(f"{where}: must hold integers below 2**53, got {error!s:.200}") from error
    not_finite = np.flatnonzero(~np.isfinite(table[:, 0]))
    if not_finite.size:
        raise ValueError(
            f"{file}, row {not_finite[0]}, column {shown(time)}: a time must be finite, got {table[not_finite[0], 0]}"
        )
    return TextTable(names, table, 0, time_unit, origin)


def times_of_words(file: Path, time: str, column: Any, of_times: tuple[str, str]) -> ReadTimes:
    """Times of a column of words, or of numbers that are read by a format of dates."""
    time_unit, date_format = of_times
    try:
        return read_times("times", column.to_pylist(), time_unit, None, date_format)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{file}, column {shown(time)}: {error!s:.500}") from error


def not_parquet(file: Path, error: Exception) -> Exception:
    """The error of a file that pyarrow cannot read; the system's own as it is."""
    if isinstance(error, OSError) and error.errno is not None:
        return error
    return ValueError(f"{file}: is not a Parquet file that can be read: {error!s:.500}")
