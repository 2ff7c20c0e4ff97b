"""Time series from files of text and of Parquet, with a check of what they hold."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.checks import check_text, is_sequence
from toolkit.extras import optional

from .delimited import read_delimited
from .series import Series
from .system import check_names

Array = NDArray[np.float64]


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
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be the path of a file, got {path!r:.200} of type {type(path).__name__}")
    file = Path(path)
    if not file.exists():
        raise FileNotFoundError(f"{file}: no such file")
    if not file.is_file():
        raise ValueError(f"{file}: is a folder")
    check_text("time", time)
    if not is_sequence(missing):
        raise TypeError(f"missing must be a sequence of words, got {missing!r:.200} of type {type(missing).__name__}")
    words = [check_text(f"missing[{i}]", word) for i, word in enumerate(missing)]
    if file.suffix.lower() == ".parquet":
        names, table, first = *read_parquet(file, time, states), 0
    else:
        names, table, first = read_delimited(file, lambda columns: chosen(file, columns, time, states), words)
    gone = np.flatnonzero(~np.isfinite(table[:, 0]))
    if gone.size:
        where = f"line {gone[0] + first}" if first else f"row {gone[0]}"
        raise ValueError(f"{file}, {where}, column {time!r}: a time must be finite, got {table[gone[0], 0]}")
    try:
        return Series(
            table[:, 0], table[:, 1:], names[1:], time_unit=time_unit, units=units, name=name or file.stem,
            source=source,
        )  # fmt: skip
    except ValueError as error:
        raise ValueError(f"{file}: {error}; row 0 is line {first}" if first else f"{file}: {error}") from error


def chosen(file: Path, columns: Sequence[str], time: str, states: Any) -> tuple[str, ...]:
    """Time and states, among ``columns``. Raises ValueError where one is repeated or not there."""
    for k, column in enumerate(columns):
        if column in columns[:k]:
            raise ValueError(f"{file}: columns must have different names, got {column!r} at {k + 1} again")
    wanted = [column for column in columns if column != time] if states is None else check_names("states", states)
    if time in wanted:
        raise ValueError(f"states must not hold the time, got {time!r}")
    for column in (time, *wanted):
        if column not in columns:
            raise ValueError(f"{file}: has no column {column!r}; its columns are {', '.join(map(repr, columns))}")
    if not wanted:
        raise ValueError(f"{file}: must have a column beside the time {time!r}")
    return (time, *wanted)


def read_parquet(file: Path, time: str, states: Any) -> tuple[tuple[str, ...], Array]:
    """Names and the numbers (n, columns) of a Parquet file."""
    pyarrow, parquet = optional("pyarrow", "data"), optional("pyarrow.parquet", "data")
    try:
        schema = parquet.read_schema(file)
        names = chosen(file, schema.names, time, states)
        for column in names:
            kind = schema.field(column).type
            if not (pyarrow.types.is_floating(kind) or pyarrow.types.is_integer(kind)):
                raise ValueError(f"{file}, column {column!r}: must hold numbers, got {kind}")
        read = parquet.read_table(file, columns=list(names))
    except pyarrow.ArrowException as error:
        raise ValueError(f"{file}: is not a Parquet file that can be read: {error}") from error
    table = np.empty((read.num_rows, len(names)))
    for k, column in enumerate(names):
        table[:, k] = read.column(column).cast(pyarrow.float64()).to_numpy(zero_copy_only=False)
    return names, table
