"""Save a run in one of three formats, completely or not at all; and load it again."""

import contextlib
import os
import shutil
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..._engine.run_record import AnyRun, RunRecord
from ...errors import LoadError, check_path, names_removed_folder, optional, shown
from ...problem.definition import as_problem
from .description import describe_problem, differences, from_json
from .formats import read_netcdf, read_npz, read_zarr, write_netcdf, write_npz, write_zarr
from .run_contents import Contents, contents_of, placeholder_problem, run_of

SUFFIXES = (".npz", ".nc", ".zarr", ".zarr.zip")
READERS: dict[str, Callable[[Path], tuple[Contents, str]]] = {
    ".npz": read_npz,
    ".nc": read_netcdf,
    ".zarr": read_zarr,
    ".zarr.zip": read_zarr,
}
LONGEST = 500  # characters of another exception in a message
FOREIGN = "is there already and is no saved run, so it is left alone"


def save(run: RunRecord, path: "str | os.PathLike[str]") -> None:
    """Write ``run`` to ``path``, as documented in ``Run.save``."""
    place, suffix = checked_path(path)
    writers: dict[str, Callable[[RunRecord, Contents, Path], None]] = {
        ".npz": write_npz, ".nc": write_netcdf, ".zarr": write_zarr, ".zarr.zip": write_zarr,
    }  # fmt: skip
    with names_removed_folder():
        place = Path(os.path.realpath(place))
    check_replaceable(place, suffix)
    contents = contents_of(run)
    # A temporary folder beside ``place``, so that an incomplete file is never taken for a run or seen by other saves.
    work = Path(tempfile.mkdtemp(prefix=f".{place.name[:100]}.", suffix=".unfinished", dir=place.parent))
    try:
        new = work / f"run{suffix.removesuffix('.zip')}"
        writers[suffix](run, contents, new)
        if suffix == ".zarr.zip":
            new = zip_folder(new, work / "run.zarr.zip")
        flush(new)
        replace(new, place)
        with contextlib.suppress(OSError):  # not every system can flush a folder
            flush(place.parent, below=False)
    finally:
        remove(work)


def read_run(path: "str | os.PathLike[str]", problem: Any, run_class: type[AnyRun]) -> AnyRun:
    """The run in the file at ``path``, as documented in ``toolkit.load``, as a ``run_class``."""
    place, suffix = checked_path(path)
    expected = None if problem is None else as_problem(problem)
    if not place.exists():
        raise FileNotFoundError(f"path must be a saved run, and there is nothing at {shown(str(place))}")
    with name_in_errors(place):
        contents, checksum = READERS[suffix](place)
        if not contents.fits(checksum):
            raise LoadError("its contents do not fit their checksum: it was damaged or edited")
        if expected is not None:
            description = from_json(contents.header, contents.arrays)["description"]["problem"]
            placeholder_problem(description)
            lines = differences({"problem": description}, {"problem": describe_problem(expected)}, portable=True)
    if expected is not None and lines:
        raise ValueError(f"problem must be the one of the run in {str(place)!r}, but differs: {'; '.join(lines)}")
    with name_in_errors(place):
        return run_of(contents, expected, run_class)


@contextlib.contextmanager
def name_in_errors(place: Path) -> Any:
    """Convert exceptions from a malformed file to a LoadError that names the file; keep those of the system."""
    try:
        yield
    except (ImportError, PermissionError):
        raise
    except LoadError as error:
        raise LoadError(f"{str(place)!r} holds no run that can be loaded: {error}") from error
    except Exception as error:
        raise LoadError(
            f"{str(place)!r} holds no run that can be loaded: it is torn, or is none "
            f"({type(error).__name__}: {str(error)[:LONGEST]})"
        ) from error


def checked_path(path: Any, argument: str = "path") -> tuple[Path, str]:
    """``path``, an argument of this name, and its suffix.

    Raises TypeError or ValueError where it is not a path or has none of the suffixes.
    """
    name = check_path(argument, path, "a string or a path")
    if "\0" in name:
        raise ValueError(f"{argument} must be text without null characters, got {shown(name)}")
    for suffix in SUFFIXES:
        if name.endswith(suffix) and Path(name).name != suffix:
            return Path(name), suffix
    raise ValueError(f"{argument} must end in one of {', '.join(SUFFIXES)}, got {shown(name)}")


def check_save(path: Any) -> None:
    """Raise where an argument ``save`` is no place that a run can be written to; nothing for None."""
    if path is None:
        return
    place, suffix = checked_path(path, "save")
    check_replaceable(Path(os.path.realpath(place)), suffix, "save")
    for package in {".nc": ("xarray", "h5netcdf"), ".npz": ()}.get(suffix, ("xarray", "zarr")):
        optional(package, "io")


def check_replaceable(place: Path, suffix: str, argument: str = "path") -> None:
    """Raise ValueError where something other than a file or a saved run is at ``place``."""
    if not place.parent.is_dir():
        raise FileNotFoundError(f"{argument} must lie in a folder that is there, got {shown(str(place))}")
    if not place.exists():
        return
    if suffix != ".zarr" and not place.is_file():
        raise ValueError(f"{argument} must be free or a file, but {str(place)!r} {FOREIGN}")
    if suffix == ".zarr" and not (place / "run" / "checksum").is_dir():
        raise ValueError(f"{argument} must be free or a saved run, but {str(place)!r} {FOREIGN}")


def zip_folder(folder: Path, archive: Path) -> Path:
    """Write all files of ``folder`` to one ``archive``, uncompressed."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as bundle:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                bundle.write(file, file.relative_to(folder).as_posix())
    return archive


def flush(path: Path, below: bool = True) -> None:
    """Fsync a file, or a folder with everything in it."""
    for item in [*(sorted(path.rglob("*")) if below and path.is_dir() else ()), path]:
        handle = os.open(item, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def remove(folder: Path) -> None:
    """Remove a folder, retrying because Zarr's threads may still write to it shortly after one has failed."""
    for _ in range(100):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.02)


def replace(new: Path, place: Path) -> None:
    """Move ``new`` to ``place``; an existing folder is moved aside first, and removed after the new one is in place.

    If the system crashes in between, the old one is complete in a folder ``.….replaced`` beside.
    """
    if not place.is_dir():
        os.replace(new, place)
        return
    aside = Path(tempfile.mkdtemp(prefix=f".{place.name[:100]}.", suffix=".replaced", dir=place.parent))
    try:
        os.rename(place, aside / place.name)
        try:
            os.rename(new, place)
        except BaseException:
            os.rename(aside / place.name, place)
            raise
    except BaseException:
        with contextlib.suppress(OSError):  # it still holds the old one if that could not be moved back
            aside.rmdir()
        raise
    remove(aside)
