"""Data of a script on disk: they come back as they were, and what is damaged, foreign or cut off is none."""

import json
import random

import numpy as np
import pytest

from figures.scripts import cached_data
from figures.scripts.cached_data import Measured, as_data, load, store
from figures.scripts.study import Record

RECORD = Record("a", "sgld", "pair", 4, 1, 1_000, 100, 10, 7, 4_000, 0.5)
DATA = as_data({"numbers": np.arange(12.0).reshape(3, 4), "flag": True, "names": ["a", "β"], "n": 3})
MEASURED = Measured(DATA, [RECORD], 1.25)


def same(one, other):
    return one.records == other.records and one.seconds == other.seconds and all(
        one.data[name].dtype == array.dtype and (one.data[name] == array).all() for name, array in other.data.items()
    )  # fmt: skip


def test_data_come_back_as_they_were(tmp_path):
    path = tmp_path / "data" / "x.npz"
    store(path, "key", MEASURED)
    assert same(load(path, "key"), MEASURED)
    assert load(path, "other key") is None
    assert load(tmp_path / "nowhere.npz", "key") is None
    assert [file.name for file in path.parent.iterdir()] == ["x.npz"]


def foreign(path, kind):
    """Something else in the file's place."""
    if kind == "folder":
        path.mkdir()
    elif kind == "array":
        with path.open("wb") as file:
            np.save(file, np.zeros(3))
    elif kind in ("empty", "text"):
        path.write_text("" if kind == "empty" else "not a zip file")
    else:
        about = {"no about": None, "no JSON": "{", "a list": "[]", "no key": "{}",
                 "odd records": json.dumps({"key": "key", "records": [[1]], "seconds": 1.0})}[kind]  # fmt: skip
        np.savez(path, **({"x": np.zeros(2)} if about is None else {"about": np.array(about)}))


@pytest.mark.parametrize(
    "kind", ["folder", "array", "empty", "text", "no about", "no JSON", "a list", "no key", "odd records"]
)
def test_a_foreign_file_is_no_data(tmp_path, kind):
    path = tmp_path / "x.npz"
    foreign(path, kind)
    assert load(path, "key") is None


def test_objects_are_not_unpickled(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, about=np.array(json.dumps({"key": "key", "records": [], "seconds": 1.0})), x=np.array([{}], object))
    assert load(path, "key") is None


def test_a_damaged_file_is_no_data_or_whole(tmp_path):
    """Every tenth byte changed or the file cut there: never an error, and never other numbers."""
    path = tmp_path / "x.npz"
    store(path, "key", MEASURED)
    whole, rng, lost = path.read_bytes(), random.Random(0), 0
    for place in range(0, len(whole), 10):
        cut = whole[:place]
        for damaged in (cut, cut + bytes([whole[place] ^ rng.randrange(1, 256)]) + whole[place + 1 :]):
            path.write_bytes(damaged)
            found = load(path, "key")
            lost += found is None
            assert found is None or same(found, MEASURED)
    assert lost > len(whole) // 10  # cut files are, at least


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_what_fails_to_be_written_leaves_what_was_there(tmp_path, monkeypatch, error):
    path = tmp_path / "x.npz"
    store(path, "key", MEASURED)
    before = path.read_bytes()

    def half(file, **arrays):
        file.write(b"half")
        raise error

    monkeypatch.setattr(cached_data.np, "savez_compressed", half)
    with pytest.raises(type(error)):
        store(path, "new key", MEASURED)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["x.npz"]


@pytest.mark.parametrize("value", [None, {"a": 1}, [1, "a", None], 1j, np.datetime64("2020-01-01")])
def test_data_are_numbers_booleans_or_text(value):
    with pytest.raises(TypeError, match="x must be an array of numbers, booleans or text"):
        as_data({"x": value})
