"""A checkpoint in a folder: a journal to which results are appended, and the last state, with the one before."""

import contextlib
import io
import os
from collections.abc import Callable
from typing import Any, NamedTuple

from numpy.typing import NDArray

from .._engine.job import Paths
from .._output.storage.checkpoint_file import (
    BEGINNING,
    KINDS,
    Mark,
    Record,
    Stored,
    little_endian,
    read_arrays,
    read_record,
    store,
    write_state,
)
from .._output.storage.checkpoint_head import (
    Contents,
    check_suffix,
    compare_with,
    first_record,
    last_usable,
    open_journal,
)
from ..errors import CheckpointError, CheckpointWarning, check_path, warn_user

Arrays = dict[str, NDArray[Any]]
FILES = ("state", "state.previous", "state.writing", "draws")


class SavedState(NamedTuple):
    """A state that was saved: JSON, arrays, and the end of the journal at that moment."""

    info: dict[str, Any]
    arrays: Arrays
    journal: Mark


def check_folder(path: Any) -> tuple[str, Paths]:
    """The folder at ``path``, which is made, and its files. Raises TypeError, ValueError or CheckpointError."""
    given = check_path("checkpoint", path, "None or the path of a folder")
    if not given or "\0" in given:
        raise ValueError(f"checkpoint must be the path of a folder, got {given!r}")
    check_suffix(given)
    folder = os.path.realpath(given)
    if not os.path.isdir(os.path.dirname(folder)):
        raise ValueError(f"checkpoint must lie in a folder that exists, got {given!r}, and there is no such folder")
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise ValueError(f"checkpoint must be the path of a folder, got {given!r}, and that is a file")
    try:
        os.makedirs(folder, exist_ok=True)
        entries = os.listdir(folder)
    except OSError as error:
        raise ValueError(f"checkpoint must be a folder that can be made, got {given!r:.80}: {error}") from None
    paths = Paths(*(os.path.join(folder, name) for name in FILES))
    for name in paths:
        if os.path.lexists(name) and not os.path.isfile(name):
            raise CheckpointError(f"checkpoint {given!r} cannot be used: {name!r} is no file of a run")
    if entries and not set(entries) & set(FILES):
        raise ValueError(f"checkpoint must be an empty folder or that of a run, and {given!r} has other files")
    return folder, paths


class CheckpointFolder:
    """The checkpoint in the folder ``path``, which is made, and locked until ``close``.

    asked: the description of the run. head: the journal's first record; None where nothing is saved yet. new_head: the
    record to begin with then. saved: the end of what is valid in the journal.
    Raises CheckpointError where the folder is another run's, in use, or damaged beyond use.
    """

    def __init__(self, path: Any, asked: dict[str, Any]) -> None:
        self.name, self.paths = check_folder(path)
        self.new_head: Contents | None = None
        self.saved, self._keeps_last, self._has_warned = BEGINNING, True, False
        self.journal = open_journal(self.paths, name=self.name)
        try:
            self.head = self._compare(asked)
        except BaseException:
            self.journal.close()
            raise

    def close(self) -> None:
        """Release the lock, and remove the folder where nothing was saved."""
        is_empty = self.journal.size == 0
        self.journal.close()
        if is_empty:
            with contextlib.suppress(OSError):
                os.remove(self.paths.journal)
                os.rmdir(self.name)

    @property
    def has_state(self) -> bool:
        """Whether a state was saved."""
        return os.path.exists(self.paths.state) or os.path.exists(self.paths.previous)

    def _compare(self, asked: dict[str, Any]) -> Record | None:
        """The journal's first record. Raises CheckpointError where it is of another run."""
        head = first_record(self.journal, self.name)
        if head is not None:
            compare_with(self.journal.file, head, asked, self.name)
            self.saved = self.journal.mark
        elif self.has_state:
            raise self.unusable(f"{self.paths.journal!r} is torn")
        return head

    def unusable(self, why: str) -> CheckpointError:
        """The error of files that cannot be read."""
        return CheckpointError(
            f"checkpoint {self.name!r} cannot be used: {why}; give another path, or remove the folder to begin anew"
        )

    def last_state(self, take: Callable[[SavedState], str]) -> None:
        """Have ``take`` the last state or, with a warning, the one before, where the last is damaged.

        take: raises DamagedError, KeyError, TypeError or ValueError where it is; returns which one it is, in words.
        """
        found: list[SavedState] = []

        def taken(path: str) -> str:
            found.append(self._read_state(path))
            return take(found[-1])

        self._keeps_last, reasons = last_usable(self.paths, taken)
        if reasons:
            raise self.unusable("; ".join(reasons))
        self.saved = found[-1].journal

    def _read_state(self, path: str) -> SavedState:
        """One state. Raises what shows that it cannot be used."""
        with io.FileIO(path) as file:
            record = read_record(file, 0, os.fstat(file.fileno()).st_size)
            arrays = read_arrays(file, record)
        length, records, digest = record.info["journal"]
        return SavedState(record.info, arrays, Mark(int(length), int(records), bytes.fromhex(digest)))

    def save(
        self, words: str, *, results: tuple[dict[str, Any], Arrays] | None = None,
        state: tuple[dict[str, Any], Arrays] | None = None,
    ) -> bool:  # fmt: skip
        """Append ``results`` to the journal, then replace the state: all, or nothing at all; whether it was done.

        Warns, once, where it was not; words: 'after step 100'. Ctrl-C is to be deferred by the caller.
        """
        try:
            self.journal.check_place(self.paths.journal)
            self.journal.go_to(self.saved)
            if self.saved == BEGINNING:
                assert self.new_head is not None
                self.journal.append(*self.new_head)
            if results is not None:
                self.journal.append(results[0], stored(results[1]))
            mark = self.journal.mark
            if state is not None:
                info = {**state[0], "journal": [mark.length, mark.records, mark.digest.hex()]}
                write_state(self.paths, info, stored(state[1]), keeps_last=self._keeps_last)
                self._keeps_last = True
            self.saved = mark
        except OSError as error:
            self.journal.go_to(self.saved)
            with contextlib.suppress(OSError):  # to free the space on the disk
                self.journal.cut()
            if not self._has_warned:
                self._has_warned = True
                warn_user(
                    f"checkpoint {self.name!r} could not be written {words}: {error}; the run goes on",
                    CheckpointWarning,
                )
            return False
        return True


def stored(arrays: Arrays) -> dict[str, Stored]:
    """Arrays as they are written. Raises TypeError for others than of numbers, which an accumulator may hold."""
    for name, array in arrays.items():
        if not KINDS.fullmatch(little_endian(array.dtype).str):
            raise TypeError(f"accumulators must hold arrays of numbers to be saved, got {array.dtype} in {name!r}")
    return {name: store(array) for name, array in arrays.items()}
