"""Checkpoints of a run on a cluster: a folder of the results of its chains that are done."""

import contextlib
import io
import json
import os
import time
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._output.storage.checkpoint_file import LockedError, fsync_folder, lock
from .._output.storage.description import describe_call, differences, first_of, from_json, to_json
from ..errors import CheckpointError, CheckpointWarning, check_path, shown
from .collection import ByChain, PooledResults
from .part import Part

Arrays = dict[str, NDArray[Any]]

HEADER, RUN, POOLED, PART = "header", "run.npz", "pooled.npz", "chains-"
DAMAGED = (OSError, EOFError, ValueError, KeyError, TypeError, zipfile.BadZipFile, zlib.error)


def write_file(path: Path, header: Any, arrays: Arrays) -> None:
    """Write ``header``, as JSON, and arrays under any names; the file is whole, or not there."""
    names = list(arrays)
    text = json.dumps([header, names], ensure_ascii=False).encode()
    numbered = {str(i): arrays[name] for i, name in enumerate(names)}
    unfinished = path.with_name(f"{path.name}.writing")
    with io.FileIO(unfinished, "w") as file:
        contents: dict[str, Any] = {HEADER: np.frombuffer(text, np.uint8), **numbered}
        np.savez(file, **contents)
        os.fsync(file.fileno())
    os.replace(unfinished, path)
    fsync_folder(str(path))


def read_file(path: Path) -> tuple[Any, Arrays]:
    """The inverse of ``write_file``. Raises one of ``DAMAGED``."""
    with open(path, "rb") as content, np.load(content, allow_pickle=False) as file:
        header, names = json.loads(file[HEADER].tobytes().decode())
        return header, {name: file[str(i)] for i, name in enumerate(names)}


class PartsFolder:
    """The folder at ``path``, made where it is not there; None: nothing is kept. A context manager that locks it.

    description: all that determines the run's results. every: seconds between writes of pooled results; results by
    chain are written as each task ends.
    """

    def __init__(self, path: Any, description: Any, every: float) -> None:
        self._folder = None
        if path is not None:
            self._folder = Path(os.path.realpath(check_path("checkpoint", path, "None or the path of a folder")))
        self._description, self._every = description, every
        self._lock: Any = None
        self._last, self._has_warned = time.monotonic(), False

    def __enter__(self) -> "PartsFolder":
        if self._folder is None:
            return self
        if not self._folder.parent.is_dir():
            raise ValueError(f"checkpoint must lie in a folder that is there, got {shown(str(self._folder))}")
        if self._folder.exists() and not self._folder.is_dir():
            raise ValueError(
                f"checkpoint must be a folder where there is a client, got the file {shown(str(self._folder))}"
            )
        self._folder.mkdir(exist_ok=True)
        entries = [entry.name for entry in self._folder.iterdir()]
        if entries and RUN not in entries and not all(name.startswith((RUN, "lock")) for name in entries):
            raise ValueError(f"checkpoint must be free or a folder of a run, and {shown(str(self._folder))} is neither")
        self._lock = io.FileIO(self._folder / "lock", "a+")
        try:
            with name_where_locked(self._folder):
                lock(self._lock)
            self._compare()
        except BaseException:
            self._lock.close()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        if self._lock is not None:
            self._lock.close()

    def _compare(self) -> None:
        """Raise CheckpointError where the folder is of another run; write what this one is where it is new."""
        assert self._folder is not None
        if not (self._folder / RUN).exists():
            write_file(self._folder / RUN, *to_json(self._description))
            return
        try:
            lines = differences(from_json(*read_file(self._folder / RUN)), self._description)
        except DAMAGED as error:
            raise CheckpointError(f"checkpoint {shown(str(self._folder))} cannot be read: {shown(error)}") from None
        if lines:
            raise CheckpointError(
                f"checkpoint {shown(str(self._folder))} is of another run: {first_of(lines)}. There is "
                "the checkpoint, here is this call; ask for the same run, or give another path"
            )

    def restore(self, collection: ByChain | PooledResults) -> None:
        """Take what is there; a file that is damaged is left out, with a warning, and its chains are computed again."""
        if self._folder is None:
            return
        for path in sorted(self._folder.glob(f"{PART}*.npz" if isinstance(collection, ByChain) else POOLED)):
            try:
                header, arrays = read_file(path)
                if isinstance(collection, ByChain):
                    collection.add(part_of(header, arrays, len(collection.done)))
                else:
                    collection.restore(header, arrays)
            except DAMAGED as error:
                warnings.warn(
                    f"{str(path)!r} is damaged ({shown(error)}); its chains are computed again",
                    CheckpointWarning,
                    stacklevel=6,
                )
                with contextlib.suppress(OSError):
                    path.unlink()

    def after(self, part: Part, collection: ByChain | PooledResults) -> None:
        """Save the part that has been added to ``collection``, or its pooled results if it is time to."""
        if self._folder is None:
            return
        if isinstance(collection, ByChain):
            header = {"chains": [part.first, part.last], "gradients": part.gradients, "made_with": part.made_with}
            self._write(f"{PART}{part.first:012d}-{part.last:012d}.npz", header, part.arrays)
        elif time.monotonic() - self._last >= self._every:
            self.save(collection)

    def save(self, collection: ByChain | PooledResults) -> None:
        """Save pooled results now."""
        if self._folder is not None and isinstance(collection, PooledResults) and collection.done.any():
            self._write(POOLED, *collection.stored())
            self._last = time.monotonic()

    def _write(self, name: str, header: Any, arrays: Arrays) -> None:
        """Write a file; where that fails warn once, and go on."""
        assert self._folder is not None
        try:
            write_file(self._folder / name, header, arrays)
        except OSError as error:
            with contextlib.suppress(OSError):
                (self._folder / f"{name}.writing").unlink()
            if not self._has_warned:
                self._has_warned = True
                warnings.warn(
                    f"checkpoint {str(self._folder)!r} could not be written: {error}; the run goes on",
                    CheckpointWarning,
                    stacklevel=6,
                )


@contextlib.contextmanager
def name_where_locked(folder: Path) -> Iterator[None]:
    """Convert a LockedError to a CheckpointError."""
    try:
        yield
    except LockedError:
        raise CheckpointError(f"checkpoint {shown(str(folder))} is in use by another run") from None


def part_of(header: Any, arrays: Arrays, n_chains: int) -> Part:
    """The part of a file. Raises one of ``DAMAGED`` where it is none."""
    first, last = (int(number) for number in header["chains"])
    if not 0 <= first < last <= n_chains or any(len(a) not in (0, last - first) for a in arrays.values()):
        raise ValueError(f"chains {first} to {last} of {n_chains}")
    return Part(first, last, arrays, {}, None, int(header["gradients"]), 0.0, dict(header["made_with"]))


def described(job: Any, n_chains: int) -> Any:
    """What determines the results of a run of ``n_chains`` chains of which ``job`` has some."""
    description = describe_call(job, "sample with a client")
    return {**description, "n_chains": n_chains, "n_steps": job.n_steps}
