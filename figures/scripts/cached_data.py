"""Measured data on disk, one file per script, valid while the sources and settings behind them are unchanged."""

import json
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np

from .study import Data, Record


class Measured(NamedTuple):
    """What a script's ``measure`` gave: its data, the runs behind them, and the seconds it took."""

    data: Data
    records: list[Record]
    seconds: float


def load(path: Path, key: str) -> Measured | None:
    """The data of ``path`` if its key is ``key``; None otherwise, and where the file is damaged."""
    found = read(path)
    return found[1] if found and found[0] == key else None


def read(path: Path) -> tuple[str, Measured] | None:
    """The key and the data of ``path``; None where the file does not exist or is damaged."""
    try:
        # np.load of a path would leave a damaged file open.
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            header = json.loads(str(file["about"]))
            data = {name.removeprefix("data."): file[name] for name in file.files if name != "about"}
        return header["key"], Measured(data, [Record(*record) for record in header["records"]], header["seconds"])
    except (OSError, ValueError, KeyError, TypeError, EOFError, RuntimeError, BadZipFile, zlib.error):
        return None


def store(path: Path, key: str, measured: Measured) -> None:
    """Write ``measured`` to ``path``, by an atomic replacement."""
    path.parent.mkdir(parents=True, exist_ok=True)
    header = json.dumps({"key": key, "records": measured.records, "seconds": measured.seconds})
    arrays: dict[str, Any] = {f"data.{name}": array for name, array in measured.data.items()}
    partial_file = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with partial_file.open("wb") as file:
            np.savez_compressed(file, about=np.array(header), **arrays)
        partial_file.replace(path)
    finally:
        partial_file.unlink(missing_ok=True)


def as_data(values: Mapping[str, Any]) -> Data:
    """``values`` as arrays of numbers, booleans or text, as a file gives them back."""
    data = {name: np.asarray(value) for name, value in values.items()}
    for name, array in data.items():
        if array.dtype.kind not in "biufU":
            raise TypeError(f"{name} must be an array of numbers, booleans or text, got one of {array.dtype}")
    return data
