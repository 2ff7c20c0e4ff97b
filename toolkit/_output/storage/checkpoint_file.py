"""Binary files of checked records: JSON, arrays, and a SHA-256 of them and of the previous record's digest.

A record consists of magic, version, the lengths of JSON and arrays, both of these, and the digest; all numbers are
little-endian. Lengths and digest are checked before any content is used or memory allocated for it.
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
from ...errors import available_memory, shown

Array = NDArray[Any]

MAGIC = b"manymode"
VERSION = 1
PREFIX = struct.Struct("<8sIIQQ")  # magic, version, 0, bytes of JSON, bytes of arrays
DIGEST = 32
NO_DIGEST = bytes(DIGEST)  # before the first record
LONGEST_TEXT = 2**26  # bytes of JSON, besides as many as its arrays have
PIECE = 2**22  # bytes written, read or hashed at a time
KINDS = re.compile(r"<[iuf][248]|<c(8|16)|\|[biu]1|\|b1")


class DamagedError(Exception):
    """A record is torn, edited or of another kind; the message is a predicate of 'the file'."""


class TornError(DamagedError):
    """A record ends before its end, as a kill leaves it."""


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
    """A complete record: its JSON, arrays, digest and end in the file."""

    info: dict[str, Any]
    arrays: dict[str, Placed]
    digest: bytes
    end: int


class Writer:
    """Writes to an unbuffered file in large pieces, and hashes what it writes."""

    def __init__(self, file: io.FileIO, before: bytes) -> None:
        self._file = file
        self._buffer = bytearray()
        self._hash = hashlib.sha256(before)

    def add(self, data: Any) -> None:
        """Write bytes, buffered."""
        self._buffer += data
        if len(self._buffer) >= PIECE:
            self._flush()

    def _flush(self) -> None:
        """Write the buffer."""
        self._hash.update(self._buffer)
        write_all(self._file, self._buffer)
        self._buffer = bytearray()

    def finish(self) -> bytes:
        """Write the buffer and the digest, and return the digest."""
        self._flush()
        digest = self._hash.digest()
        write_all(self._file, digest)
        return digest


def write_all(file: io.FileIO, data: bytes | bytearray) -> None:
    """Write every byte of ``data``. Raises OSError where the disk is full."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def store(array: Array) -> Stored:
    """An array as one piece, to be written."""
    contiguous = np.ascontiguousarray(array)
    return Stored(contiguous.dtype, array.shape, [contiguous])


def write_record(file: io.FileIO, info: dict[str, Any], arrays: dict[str, Stored], before: bytes = NO_DIGEST) -> bytes:
    """Write a record at the file's position, and return its digest. before: the previous record's digest."""
    kinds = {name: [little_endian(stored.dtype).str, list(stored.shape)] for name, stored in arrays.items()}
    text = json.dumps({"info": info, "arrays": kinds}, allow_nan=False).encode()
    length = sum(stored.dtype.itemsize * math.prod(stored.shape) for stored in arrays.values())
    writer = Writer(file, before)
    writer.add(PREFIX.pack(MAGIC, VERSION, 0, len(text), length))
    writer.add(text)
    for stored in arrays.values():
        kind = little_endian(stored.dtype)
        for piece in stored.pieces:
            writer.add(np.ascontiguousarray(piece, kind).data.cast("B") if piece.size else b"")
    return writer.finish()


def little_endian(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """``dtype`` in little-endian order."""
    return dtype.newbyteorder("<")


def read_record(file: io.FileIO, offset: int, end: int, before: bytes = NO_DIGEST) -> Record:
    """The record at ``offset``, which must end by ``end``. Raises DamagedError where it is incomplete."""
    file.seek(offset)
    prefix = file.read(PREFIX.size)
    if not MAGIC.startswith(prefix[: len(MAGIC)]):
        raise DamagedError("is no checkpoint of this toolkit")
    if len(prefix) < PREFIX.size:
        raise TornError("is torn" if end else "is empty")
    _, version, zero, text_length, length = PREFIX.unpack(prefix)
    start = offset + PREFIX.size + text_length
    if version != VERSION:
        raise DamagedError(f"has format {version}, and this version of the toolkit reads format {VERSION}")
    if zero != 0:
        raise DamagedError("is torn or was edited: it has a number where 0 must be")
    if start + length + DIGEST > end:
        raise TornError(f"is torn: it has {end - offset} bytes of {start + length + DIGEST - offset}")
    if text_length > LONGEST_TEXT + length or length > available_memory():
        raise DamagedError(f"cannot be read: it says {text_length} bytes of JSON and {length} bytes of arrays")
    digest = hashlib.sha256(before)
    digest.update(prefix)
    for piece in pieces_of(file, text_length + length):
        digest.update(piece)
    if file.read(DIGEST) != digest.digest():
        raise DamagedError("is torn or was edited: its checksum does not fit")
    file.seek(offset + PREFIX.size)
    try:
        content = json.loads(file.read(text_length).decode())
        arrays = locate_arrays(content["arrays"], start)
        info = dict(content["info"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedError(f"cannot be read: {error}") from None
    if sum(placed.dtype.itemsize * math.prod(placed.shape) for placed in arrays.values()) != length:
        raise DamagedError("cannot be read: its arrays are not of its length")
    return Record(info, arrays, digest.digest(), start + length + DIGEST)


def locate_arrays(kinds: dict[str, Any], offset: int) -> dict[str, Placed]:
    """The places of a record's arrays in the file. Raises ValueError for anything but plain arrays of numbers."""
    arrays = {}
    for name, (kind, shape) in kinds.items():
        if not isinstance(kind, str) or not KINDS.fullmatch(kind):
            raise ValueError(f"array {name} is of kind {shown(kind)}")
        sizes = [max(1, length) for length in shape if isinstance(length, int) and length >= 0]
        if len(sizes) != len(shape) or len(shape) > 32 or math.prod(sizes) >= 2**59:
            raise ValueError(f"array {name} has an impossible shape")
        arrays[name] = Placed(np.dtype(kind), tuple(shape), offset)
        offset += arrays[name].dtype.itemsize * math.prod(shape)
    return arrays


def pieces_of(file: io.FileIO, length: int) -> Iterator[bytes]:
    """The next ``length`` bytes, in pieces. Raises DamagedError where the file ends before."""
    while length:
        piece = file.read(min(length, PIECE))
        if not piece:
            raise TornError("is torn")
        length -= len(piece)
        yield piece


def read_array(file: io.FileIO, placed: Placed) -> Array:
    """An array of a record."""
    array = np.empty(placed.shape, placed.dtype)
    read_into(file, placed, [array])
    return array.astype(placed.dtype.newbyteorder("="))


def read_arrays(file: io.FileIO, record: Record) -> dict[str, Array]:
    """All arrays of a record, by name."""
    return {name: read_array(file, placed) for name, placed in record.arrays.items()}


def read_into(file: io.FileIO, placed: Placed, parts: Iterable[Array]) -> None:
    """Read an array into ``parts``, which together are the array along its first axis."""
    file.seek(placed.offset)
    width = placed.dtype.itemsize * math.prod(placed.shape[1:])
    for part in parts:
        for rows in row_batches(part, width):
            data = b"".join(pieces_of(file, width * len(rows)))
            rows[...] = np.frombuffer(data, placed.dtype).reshape(rows.shape)


def row_batches(array: Array, width: int) -> Iterator[Array]:
    """Views of ``array`` of about ``PIECE`` bytes; a row has ``width`` bytes."""
    rows, count = np.atleast_1d(array), max(1, PIECE // max(1, width))
    for first in range(0, len(rows), count):
        yield rows[first : first + count]


# The journal of a checkpoint: a file to which records are appended, locked by one process at a time.

LOCKED_BYTE = 2**60  # on Windows, where a locked byte cannot be read: far beyond the end of the file


OPEN: "weakref.WeakSet[io.FileIO]" = weakref.WeakSet()


def close_inherited() -> None:
    """Close all journals in a forked process, which would otherwise keep their locks after its parent has ended."""
    for file in OPEN:
        file.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=close_inherited)


class LockedError(Exception):
    """Another process, or another run of this one, has locked the journal."""


class Mark(NamedTuple):
    """An end of a journal: bytes, records, and the last digest, which depends on all records."""

    length: int
    records: int
    digest: bytes


BEGINNING = Mark(0, 0, NO_DIGEST)


class Journal:
    """An open journal, locked until it is closed; the operating system releases the lock of a process that dies.

    Raises LockedError where it is locked already, OSError where it cannot be opened.
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
        """Release the lock."""
        self._file.close()

    @property
    def size(self) -> int:
        """Bytes in the file, including those after the last valid record."""
        return os.fstat(self._file.fileno()).st_size

    def check_place(self, path: str) -> None:
        """Raise OSError where the file is no longer at ``path``."""
        if not os.path.samestat(os.fstat(self._file.fileno()), os.stat(path)):
            raise OSError(f"{path!r} was replaced while the run used it")

    @property
    def file(self) -> io.FileIO:
        """The file, to read arrays from."""
        return self._file

    def records(self) -> Iterator[tuple[Mark, Record]]:
        """The records from the first, each with the mark after it. Raises DamagedError at the first incomplete one.

        ``mark`` becomes the end of the records read; ``go_to`` can set it back.
        """
        end = self.size
        self.mark = BEGINNING
        while self.mark.length < end:
            record = read_record(self._file, self.mark.length, end, self.mark.digest)
            self.mark = Mark(record.end, self.mark.records + 1, record.digest)
            yield self.mark, record

    def first(self) -> Record:
        """The first record. Raises DamagedError where it is incomplete."""
        for _, record in self.records():
            return record
        raise TornError("is empty")

    def go_to(self, mark: Mark) -> None:
        """Set ``mark`` as the end; the next record that is written overwrites what follows."""
        self.mark = mark

    def append(self, info: dict[str, Any], arrays: dict[str, Stored]) -> None:
        """Append a record at ``mark`` and fsync. Raises OSError, and then leaves all before ``mark`` unchanged."""
        self.cut()
        self._file.seek(self.mark.length)
        digest = write_record(self._file, info, arrays, self.mark.digest)
        os.fsync(self._file.fileno())
        self.mark = Mark(self._file.tell(), self.mark.records + 1, digest)

    def cut(self) -> None:
        """Truncate the file at ``mark``."""
        if self.size > self.mark.length:
            self._file.truncate(self.mark.length)


def lock(file: io.FileIO) -> bool:
    """Lock an open file exclusively; False where the file system has no locks. Raises LockedError."""
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


# Replacing the state's file.


def write_state(paths: Paths, info: dict[str, Any], arrays: dict[str, Stored], *, keeps_last: bool) -> None:
    """Write the state to the disk, completely or not at all; keeps_last: the last one becomes the previous.

    Raises OSError, and then leaves the last state unchanged, or, without keeps_last, the previous one.
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
    """Fsync the folder, where the system can; both states are complete under either name."""
    if os.name == "nt":
        return
    descriptor = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # some network file systems cannot
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
