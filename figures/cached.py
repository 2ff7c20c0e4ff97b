"""Measured data on disk, one file per script, valid as long as what made them is the same."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .study import Data, Record


class Measured(NamedTuple):
    """What a script's ``measure`` gave: its data, the runs behind them, and the seconds it took."""

    data: Data
    records: list[Record]
    seconds: float


def load(path: Path, key: str) -> Measured | None:
    """What ``path`` holds, if it was made by what ``key`` stands for; None where not, or where it is damaged."""
    try:
        with np.load(path, allow_pickle=False) as file:
            about = json.loads(str(file["about"]))
            if about["key"] != key:
                return None
            data = {name.removeprefix("data."): file[name] for name in file.files if name != "about"}
    except (OSError, ValueError, KeyError, EOFError):
        return None
    except Exception as error:  # zipfile has errors of its own for damaged files
        if type(error).__module__ not in ("zipfile", "zlib"):
            raise
        return None
    return Measured(data, [Record(*record) for record in about["records"]], about["seconds"])


def keep(path: Path, key: str, measured: Measured) -> None:
    """Write ``measured`` to ``path``, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    about = json.dumps({"key": key, "records": measured.records, "seconds": measured.seconds})
    arrays: dict[str, Any] = {f"data.{name}": array for name, array in measured.data.items()}
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with part.open("wb") as file:
            np.savez_compressed(file, about=np.array(about), **arrays)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def as_data(values: Mapping[str, Any]) -> Data:
    """``values`` as arrays of numbers, booleans or text, as a file gives them back."""
    data = {name: np.asarray(value) for name, value in values.items()}
    for name, array in data.items():
        if array.dtype.kind not in "biufU":
            raise TypeError(f"{name} must be an array of numbers, booleans or text, got one of {array.dtype}")
    return data


def seconds_of(path: Path) -> float | None:
    """How long the data of ``path`` took to measure, whatever made them; None where nothing is there."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return float(json.loads(str(file["about"]))["seconds"])
    except Exception:  # a bar's reckoning is worth no complaint
        return None
