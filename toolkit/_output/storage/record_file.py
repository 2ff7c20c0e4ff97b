"""Checked records in a binary file: a little JSON, arrays, and a SHA-256 of them and of the record before.

A record is magic, version, the lengths of its JSON and of its arrays, these two, and the digest; all numbers are
little-endian. Nothing in a file is believed, or room made for it, before lengths and digest have been seen to fit.
"""

import contextlib
import hashlib
import io
import json
import math
import os
import re
import struct
import weakref
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._engine.job import Paths

Array = NDArray[Any]

MAGIC = b"manymode"
VERSION = 1
PREFIX = struct.Struct("<8sIIQQ")  # magic, version, 0, bytes of JSON, bytes of arrays
DIGEST = 32
NO_DIGEST = bytes(DIGEST)  # before the first record
PIECE = 2**22  # bytes that are written, read or hashed at a time
KINDS = re.compile(r"<[iuf][248]|<c(8|16)|\|[biu]1|\|b1")


class DamagedError(Exception):
    """A record is torn, edited or of another kind; the message says which, to follow 'the file'."""


class Stored(NamedTuple):
    """An array to be written: its kind and shape, and its numbers in pieces along the first axis."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    pieces: Iterable[Array]


class Placed(NamedTuple):
    """An array in a file."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int


class Record(NamedTuple):
    """A record that has been found whole: its JSON, its arrays, its digest and where it ends."""

    info: dict[str, Any]
    arrays: dict[str, Placed]
    digest: bytes
    end: int


class Writer:
    """Writes to an unbuffered file in large pieces, and hashes what it writes."""

    def __init__(self, file: io.FileIO, before: bytes) -> None:
        self._file = file
        self._waiting = bytearray()
        self._hash = hashlib.sha256(before)

    def add(self, data: Any) -> None:
        """Write bytes, now or later."""
        self._waiting += data
        if len(self._waiting) >= PIECE:
            self._flush()

    def _flush(self) -> None:
        """Write what has been waiting."""
        self._hash.update(self._waiting)
        write_all(self._file, self._waiting)
        self._waiting = bytearray()

    def finish(self) -> bytes:
        """Write the rest and the digest, which is returned."""
        self._flush()
        digest = self._hash.digest()
        write_all(self._file, digest)
        return digest


def write_all(file: io.FileIO, data: bytes | bytearray) -> None:
    """Write every byte of ``data``. Raises OSError where the disk takes no more."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def store(array: Array) -> Stored:
    """A whole array, to be written."""
    contiguous = np.ascontiguousarray(array)
    return Stored(contiguous.dtype, array.shape, [contiguous])


def write_record(file: io.FileIO, info: dict[str, Any], arrays: dict[str, Stored], before: bytes = NO_DIGEST) -> bytes:
    """Write a record where the file stands, and return its digest. ``before``: that of the record before it."""
    kinds = {name: [little(stored.dtype).str, list(stored.shape)] for name, stored in arrays.items()}
    text = json.dumps({"info": info, "arrays": kinds}, allow_nan=False).encode()
    length = sum(stored.dtype.itemsize * math.prod(stored.shape) for stored in arrays.values())
    writer = Writer(file, before)
    writer.add(PREFIX.pack(MAGIC, VERSION, 0, len(text), length))
    writer.add(text)
    for stored in arrays.values():
        kind = little(stored.dtype)
        for piece in stored.pieces:
            writer.add(np.ascontiguousarray(piece, kind).data.cast("B") if piece.size else b"")
    return writer.finish()


def little(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """``dtype`` in little-endian order."""
    return dtype.newbyteorder("<")


def read_record(file: io.FileIO, offset: int, end: int, before: bytes = NO_DIGEST) -> Record:
    """The record at ``offset``, which must end by ``end``. Raises DamagedError where it is not whole."""
    file.seek(offset)
    prefix = file.read(PREFIX.size)
    if not MAGIC.startswith(prefix[: len(MAGIC)]):
        raise DamagedError("is no checkpoint of this toolkit")
    if len(prefix) < PREFIX.size:
        raise DamagedError("is torn" if end else "is empty")
    _, version, zero, text_length, length = PREFIX.unpack(prefix)
    start = offset + PREFIX.size + text_length
    if version != VERSION:
        raise DamagedError(f"has format {version}, and this version of the toolkit reads format {VERSION}")
    if zero != 0 or start + length + DIGEST > end:
        raise DamagedError(f"is torn: it has {end - offset} bytes of {start + length + DIGEST - offset}")
    digest = hashlib.sha256(before)
    digest.update(prefix)
    for piece in pieces_of(file, text_length + length):
        digest.update(piece)
    if file.read(DIGEST) != digest.digest():
        raise DamagedError("is torn or was edited: its checksum does not fit")
    file.seek(offset + PREFIX.size)
    try:
        found = json.loads(file.read(text_length).decode())
        arrays = place(found["arrays"], start)
        info = dict(found["info"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedError(f"cannot be read: {error}") from None
    if sum(placed.dtype.itemsize * math.prod(placed.shape) for placed in arrays.values()) != length:
        raise DamagedError("cannot be read: its arrays are not of its length")
    return Record(info, arrays, digest.digest(), start + length + DIGEST)


def place(kinds: dict[str, Any], offset: int) -> dict[str, Placed]:
    """Where the arrays lie that a record names. Raises ValueError for what is no plain array of numbers."""
    arrays = {}
    for name, (kind, shape) in kinds.items():
        if not isinstance(kind, str) or not KINDS.fullmatch(kind):
            raise ValueError(f"array {name} is of kind {kind!r}")
        sizes = [max(1, length) for length in shape if isinstance(length, int) and length >= 0]
        if len(sizes) != len(shape) or len(shape) > 32 or math.prod(sizes) >= 2**59:
            raise ValueError(f"array {name} has an impossible shape")
        arrays[name] = Placed(np.dtype(kind), tuple(shape), offset)
        offset += arrays[name].dtype.itemsize * math.prod(shape)
    return arrays


def pieces_of(file: io.FileIO, length: int) -> Iterator[bytes]:
    """The next ``length`` bytes. Raises DamagedError where the file ends before."""
    while length:
        piece = file.read(min(length, PIECE))
        if not piece:
            raise DamagedError("is torn")
        length -= len(piece)
        yield piece


def read_array(file: io.FileIO, placed: Placed) -> Array:
    """A whole array out of a record."""
    array = np.empty(placed.shape, placed.dtype)
    read_into(file, placed, [array])
    return array.astype(placed.dtype.newbyteorder("="))


def read_into(file: io.FileIO, placed: Placed, parts: Iterable[Array]) -> None:
    """Fill ``parts``, which along the first axis make up the array, piece by piece."""
    file.seek(placed.offset)
    width = placed.dtype.itemsize * math.prod(placed.shape[1:])
    for part in parts:
        for rows in runs(part, width):
            data = b"".join(pieces_of(file, width * len(rows)))
            rows[...] = np.frombuffer(data, placed.dtype).reshape(rows.shape)


def runs(array: Array, width: int) -> Iterator[Array]:
    """``array`` in views of rows, each of ``width`` bytes, of about a piece's length."""
    rows, count = np.atleast_1d(array), max(1, PIECE // max(1, width))
    for first in range(0, len(rows), count):
        yield rows[first : first + count]


# The journal of a checkpoint: a file of records that grows at its end alone, and that one process at a time holds.

LOCKED_BYTE = 2**60  # on Windows, where a locked byte cannot be read: far beyond the end


OPEN: "weakref.WeakSet[io.FileIO]" = weakref.WeakSet()


def close_inherited() -> None:
    """Close all journals in a process just forked off, or it would hold their locks beyond its parent's end."""
    for file in OPEN:
        file.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=close_inherited)


class LockedError(Exception):
    """Another process, or this one elsewhere, holds the journal."""


class Mark(NamedTuple):
    """How far a journal goes: bytes, records, and the digest of the last, which depends on all before it."""

    length: int
    records: int
    digest: bytes


BEGINNING = Mark(0, 0, NO_DIGEST)


class Journal:
    """An open journal, locked until it is closed; the system frees the lock of a process that dies.

    Raises LockedError where another holds it, OSError where it cannot be opened.
    """

    def __init__(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
        self._file = io.FileIO(descriptor, "r+b")
        OPEN.add(self._file)
        self.mark = BEGINNING
        try:
            self.is_locked = lock(self._file)
        except BaseException:
            self._file.close()
            raise

    def close(self) -> None:
        """Give the lock back."""
        self._file.close()

    @property
    def size(self) -> int:
        """Bytes in the file, with those beyond the last good record."""
        return os.fstat(self._file.fileno()).st_size

    def check_place(self, path: str) -> None:
        """Raise OSError where the file no longer lies at ``path``."""
        if not os.path.samestat(os.fstat(self._file.fileno()), os.stat(path)):
            raise OSError(f"{path!r} was replaced while the run used it")

    @property
    def file(self) -> io.FileIO:
        """The file, to read arrays from."""
        return self._file

    def records(self) -> Iterator[tuple[Mark, Record]]:
        """The records from the first, each with the mark after it. Raises DamagedError at the first that is not whole.

        What is read becomes the journal's good part; ``go_to`` takes some of it back.
        """
        end = self.size
        self.mark = BEGINNING
        while self.mark.length < end:
            record = read_record(self._file, self.mark.length, end, self.mark.digest)
            self.mark = Mark(record.end, self.mark.records + 1, record.digest)
            yield self.mark, record

    def first(self) -> Record:
        """The first record. Raises DamagedError where it is not whole."""
        for _, record in self.records():
            return record
        raise DamagedError("is empty")

    def go_to(self, mark: Mark) -> None:
        """Take ``mark`` as the end: what lies beyond goes when the next record is written."""
        self.mark = mark

    def append(self, info: dict[str, Any], arrays: dict[str, Stored]) -> None:
        """Write a record after the good part, onto the disk. Raises OSError, and the good part is then as it was."""
        self.cut()
        self._file.seek(self.mark.length)
        digest = write_record(self._file, info, arrays, self.mark.digest)
        os.fsync(self._file.fileno())
        self.mark = Mark(self._file.tell(), self.mark.records + 1, digest)

    def cut(self) -> None:
        """Cut off what lies beyond the good part."""
        if self.size > self.mark.length:
            self._file.truncate(self.mark.length)


def lock(file: io.FileIO) -> bool:
    """Lock a file for this opening of it alone; False where the file system has no locks. Raises LockedError."""
    try:
        if os.name == "nt":
            import msvcrt

            file.seek(LOCKED_BYTE)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
            file.seek(0)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError) as error:
        raise LockedError from error
    except OSError:
        return False
    return True


# The files of a checkpoint by name, and how one that holds the state takes the place of the one before it.


def write_state(paths: Paths, info: dict[str, Any], arrays: dict[str, Stored], *, keeps_last: bool) -> None:
    """Write the state onto the disk, whole or not at all; the last one becomes the previous where it is kept.

    Raises OSError, and has then left the last one, or where that is not kept the previous one, as it was.
    """
    try:
        with io.FileIO(paths.writing, "w") as file:
            write_record(file, info, arrays)
            os.fsync(file.fileno())
        if keeps_last and os.path.exists(paths.state):
            os.replace(paths.state, paths.previous)
        os.replace(paths.writing, paths.state)
        fsync_folder(paths.state)
    except OSError:
        with contextlib.suppress(OSError):
            os.remove(paths.writing)
        raise


def fsync_folder(path: str) -> None:
    """Have the folder's names on the disk, where the system can; both states are whole under either name."""
    if os.name == "nt":
        return
    descriptor = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # some network file systems cannot
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
