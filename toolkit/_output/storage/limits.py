"""What a file may ask for, checked before any of it is decoded: bytes of arrays, names, JSON, kinds of file."""

import json
import math
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import LoadError, available_memory, check_regular, open_regular, shown

Values = NDArray[Any]
FREE = 256 << 20  # bytes that the arrays of any file may take
RATIO = 100  # bytes that they may take besides, for each byte of the file; the writers keep both
LONGEST_HEADER = 16 << 20  # bytes of JSON, besides two for each byte of the rest of the file
LONGEST_PLACES = 4 << 20
MOST_DIMENSIONS = 32
KINDS = re.compile(r"[<>|=]([iu][1248]|f([248]|16))|\|b1")


class StoredArray(NamedTuple):
    """An array in a file as it is declared there, and a function that reads it."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    read: Callable[[], Values]

    @property
    def n_bytes(self) -> int:
        """Bytes of its numbers."""
        return math.prod(self.shape) * self.dtype.itemsize


class Allowance:
    """How many bytes the arrays of a file of ``size`` bytes may still take.

    Compressed zeros shrink a thousandfold, so that a small file can ask for much memory.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._available = available_memory()
        self._taken = 0

    def take(self, what: str, n_bytes: int) -> None:
        """Count an array of ``n_bytes``. Raises LoadError where all together are too many."""
        self._taken += n_bytes
        limit = FREE + RATIO * self._size
        if self._taken > limit:
            raise LoadError(
                f"its arrays up to {shown(what)} take {self._taken:.4g} bytes, and a file of {self._size} bytes may "
                f"hold at most {limit:.4g}"
            )
        if self._taken > self._available:
            raise LoadError(
                f"its arrays up to {shown(what)} take {self._taken / 1e9:.4g} GB where there are "
                f"{self._available / 1e9:.4g} GB of memory"
            )


def is_within(arrays: int, file: int) -> bool:
    """Whether a file of ``file`` bytes may hold ``arrays`` bytes of arrays."""
    return arrays <= FREE + RATIO * file


def check_header_length(length: int, rest: int) -> None:
    """Raise LoadError where the header has too many bytes beside ``rest`` bytes of other contents."""
    if length > LONGEST_HEADER + 2 * rest:
        raise LoadError(f"its header has {length} bytes, and may have {LONGEST_HEADER + 2 * rest}")


def checked_shape(what: str, shape: Any) -> tuple[int, ...]:
    """``shape`` as sizes of an array. Raises LoadError where they are none."""
    if not isinstance(shape, list | tuple) or len(shape) > MOST_DIMENSIONS:
        raise LoadError(f"the shape of {shown(what)} must be at most {MOST_DIMENSIONS} sizes, got {shown(shape)}")
    if not all(type(size) is int and 0 <= size < 2**63 for size in shape):
        raise LoadError(f"the shape of {shown(what)} must be integers ≥ 0 and < 2⁶³, got {shown(shape)}")
    return tuple(shape)


def checked_count(what: str, shape: tuple[int, ...], chunks: tuple[int, ...]) -> int:
    """How many ``chunks`` an array has. Raises LoadError where it has entries and a chunk is larger than it."""
    if (
        len(chunks) != len(shape)
        or not all(chunks)
        or (0 not in shape and not all(c <= n for c, n in zip(chunks, shape, strict=True)))
    ):
        raise LoadError(f"chunks of {shown(what)} must be those of shape {shown(shape)}, got {shown(chunks)}")
    return math.prod(-(-n // c) for n, c in zip(shape, chunks, strict=True))


def put_together(
    shape: tuple[int, ...],
    chunks: tuple[int, ...],
    dtype: np.dtype[Any],
    read_chunk: Callable[[tuple[int, ...]], Values],
) -> Values:
    """The array of these ``chunks``; read_chunk: the numbers of the chunk of an index, as a row."""
    values = np.empty(shape, dtype)
    for index in np.ndindex(*(-(-n // c) for n, c in zip(shape, chunks, strict=True))):
        place = tuple(slice(i * c, (i + 1) * c) for i, c in zip(index, chunks, strict=True))
        part = values[place]
        inside = tuple(slice(n) for n in part.shape)  # chunks at the edges reach beyond it
        values[place] = read_chunk(index).reshape(chunks)[inside]
    return values


def checked_dtype(what: str, text: Any) -> np.dtype[Any]:
    """The kind of number that ``text`` says. Raises LoadError where it is none."""
    if not isinstance(text, str) or not KINDS.fullmatch(text):
        raise LoadError(f"{shown(what)} must hold numbers, got kind {shown(text)}")
    return np.dtype(text)


def check_name(name: Any) -> str:
    """``name`` where it is one of a group or variable. Raises LoadError where it is a path or no text."""
    if not isinstance(name, str) or not name or name.startswith(".") or any(c in name for c in "/\0"):
        raise LoadError(f"a group or variable must have a plain name, got {shown(name)}")
    return name


def parse_json(what: str, text: bytes) -> dict[str, Any]:
    """The JSON object in ``text``. Raises LoadError where it is none, is too deep or names a key twice."""

    def refuse(constant: str) -> Any:
        raise ValueError(f"JSON has no {constant}")

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a key is there twice")
        return dict(pairs)

    try:
        value = json.loads(text.decode(), parse_constant=refuse, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        raise LoadError(f"{shown(what)} is no valid JSON: {str(error)[:200]}") from None
    if not isinstance(value, dict):
        raise LoadError(f"{shown(what)} must be a JSON object, got {shown(value)}")
    return value


def open_file(path: Path) -> BinaryIO:
    """The regular file at ``path``. Raises LoadError where it is a folder, FIFO, socket or device."""
    try:
        return open_regular("path", path)
    except ValueError as error:
        raise LoadError(str(error)) from None


def check_file(path: Path) -> int:
    """The size of the regular file at ``path``, for libraries that open it themselves. Raises as ``open_file``."""
    status = os.stat(path)
    try:
        check_regular("path", path, status.st_mode)
    except ValueError as error:
        raise LoadError(str(error)) from None
    return status.st_size


def files_below(folder: Path, depth: int = 3) -> dict[str, int]:
    """Sizes of all files in ``folder``, by their paths in it with slashes.

    Raises LoadError where something is no file and no folder, as a link, or lies more than ``depth`` folders deep.
    """
    sizes: dict[str, int] = {}

    def scan(place: str, prefix: str, left: int) -> None:
        with os.scandir(place) as entries:
            for entry in entries:
                name, mode = f"{prefix}{entry.name}", entry.stat(follow_symlinks=False).st_mode
                if stat.S_ISLNK(mode):
                    raise LoadError(f"{shown(name)} in it is a link, and what a link leads to is not read")
                if stat.S_ISDIR(mode):
                    if left == 0:
                        raise LoadError(f"{shown(name)} in it lies too deep")
                    scan(entry.path, f"{name}/", left - 1)
                elif not stat.S_ISREG(mode):
                    raise LoadError(f"{shown(name)} in it is neither a file nor a folder")
                else:
                    sizes[name] = entry.stat(follow_symlinks=False).st_size

    scan(os.fspath(folder), "", depth)
    return sizes
