"""The files of a checkpoint by name, and how one that holds the state takes the place of the one before it."""

import contextlib
import io
import os
from typing import Any, NamedTuple

from .records import Stored, write_record


class Paths(NamedTuple):
    """The files of one checkpoint: the state, the state before, the one being written, and the journal of draws."""

    state: str
    previous: str
    writing: str
    journal: str


LONGEST_NAME, LONGEST_PATH = 240, 2000  # what file systems take, less the ends of the names of the files beside it


def check_checkpoint(path: Any) -> Paths | None:
    """The files for a checkpoint at ``path``; None for None. Raises TypeError or ValueError where it cannot be one."""
    if path is None:
        return None
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        raise TypeError(f"checkpoint must be None or the path of a file, got {path!r} of type {type(path).__name__}")
    given = os.fspath(path)
    if not given or "\0" in given:
        raise ValueError(f"checkpoint must be the path of a file, got {given!r}")
    if len(os.fsencode(given)) > LONGEST_PATH or len(os.fsencode(os.path.basename(given))) > LONGEST_NAME:
        raise ValueError(
            f"checkpoint must be the path of a file, of at most {LONGEST_NAME} bytes in its name and {LONGEST_PATH} in "
            f"all, got {given!r:.80}…"
        )
    whole = os.path.realpath(given)
    if not os.path.isdir(os.path.dirname(whole)):
        raise ValueError(f"checkpoint must lie in a folder that exists, got {given!r}, and there is no such folder")
    paths = Paths(whole, f"{whole}.previous", f"{whole}.writing", f"{whole}.draws")
    for name in paths:
        if os.path.isdir(given) or given.endswith(os.sep) or (os.path.lexists(name) and not os.path.isfile(name)):
            raise ValueError(f"checkpoint must be the path of a file, got {given!r}, and {name!r} is none")
    return paths


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
        settle_names(paths.state)
    except OSError:
        with contextlib.suppress(OSError):
            os.remove(paths.writing)
        raise


def settle_names(path: str) -> None:
    """Have the folder's names on the disk, where the system can; both states are whole under either name."""
    if os.name == "nt":
        return
    descriptor = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # some network file systems cannot
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
