"""The files of a checkpoint by name, and how one that holds the state takes the place of the one before it."""

import contextlib
import io
import os
from typing import Any

from .job import Paths
from .records import Stored, write_record


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
