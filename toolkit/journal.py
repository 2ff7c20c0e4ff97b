"""The journal of a checkpoint: a file of records that grows at its end alone, and that one process at a time holds."""

import io
import os
import weakref
from collections.abc import Iterator
from typing import Any, NamedTuple

from .records import NO_DIGEST, DamagedError, Record, Stored, read_record, write_record

LOCKED_BYTE = 2**60  # on Windows, where a locked byte cannot be read: far beyond the end


OPEN: "weakref.WeakSet[io.FileIO]" = weakref.WeakSet()


def let_go() -> None:
    """Close all journals in a process just forked off, or it would hold their locks beyond its parent's end."""
    for file in OPEN:
        file.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=let_go)


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
