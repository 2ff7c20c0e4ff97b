"""Records and their journal: every bit comes back, what is torn or edited is refused, one process holds a journal."""

import io
import itertools
import json
import os
import re
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from toolkit._output.storage import checkpoint_file
from toolkit._output.storage.checkpoint_file import (
    BEGINNING,
    DIGEST,
    MAGIC,
    PREFIX,
    DamagedError,
    Journal,
    LockedError,
    Mark,
    Stored,
    Writer,
    read_array,
    read_record,
    store,
)

ARRAYS = {
    "floats": np.array([[0.1, -0.0, np.nan], [np.inf, 5e-324, 1.7e308]]),
    "counts": np.arange(-3, 4, dtype=np.int64),
    "names": np.arange(4, dtype=np.uint64)[::-1] + 2**63,
    "tallies": np.arange(6, dtype=np.int32).reshape(1, 2, 3),
    "halves": np.array([0.5], np.float32),
    "flags": np.array([True, False]),
    "bytes": np.arange(3, dtype=np.uint8),
    "pairs": np.array([1.0 + 2.0j]),
    "nothing": np.zeros((0, 4)),
    "one": np.array(7.0),
    "big-endian": np.array([1.0, 2.0], ">f8"),
}
INFO = {"steps": 3, "elapsed": 0.1 + 0.2, "name": "τ"}


def written(path, info=None, arrays=None, before=bytes(32)):
    """The bytes of a record."""
    with io.FileIO(path, "w") as file:
        stored = {name: store(array) for name, array in (ARRAYS if arrays is None else arrays).items()}
        checkpoint_file.write_record(file, INFO if info is None else info, stored, before)
    return path.read_bytes()


def read(path, before=bytes(32)):
    """A record's JSON and arrays."""
    with io.FileIO(path) as file:
        record = read_record(file, 0, path.stat().st_size, before)
        return record.info, {name: read_array(file, placed) for name, placed in record.arrays.items()}


@pytest.mark.parametrize("piece", [16, 2**22])
def test_every_bit_comes_back(piece, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint_file, "PIECE", piece)
    content = written(tmp_path / "a")
    info, arrays = read(tmp_path / "a")
    assert info == INFO
    assert list(arrays) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert arrays[name].shape == array.shape
        assert arrays[name].dtype == array.dtype.newbyteorder("=")
        assert arrays[name].tobytes() == array.astype(array.dtype.newbyteorder("=")).tobytes()
    assert content[:8] == MAGIC
    monkeypatch.undo()
    assert written(tmp_path / "b") == content


def test_pieces_are_what_they_make_up(tmp_path):
    array = np.arange(60.0).reshape(10, 6)
    with io.FileIO(tmp_path / "a", "w") as file:
        pieces = (array[i : i + 3] for i in range(0, 10, 3))
        checkpoint_file.write_record(file, {}, {"x": Stored(array.dtype, array.shape, pieces)})
    assert (tmp_path / "a").read_bytes() == written(tmp_path / "b", {}, {"x": array})
    parts = [np.zeros((4, 6)), np.zeros((12, 6))[::2]]
    with io.FileIO(tmp_path / "a") as file:
        record = read_record(file, 0, (tmp_path / "a").stat().st_size)
        checkpoint_file.read_into(file, record.arrays["x"], parts)
    np.testing.assert_array_equal(np.concatenate(parts), array)


def test_any_bit_turned_round_is_seen(tmp_path):
    content = written(tmp_path / "a")
    for place in range(len(content)):
        torn = bytearray(content)
        torn[place] ^= 1 << place % 8
        (tmp_path / "b").write_bytes(torn)
        with pytest.raises(DamagedError):
            read(tmp_path / "b")


def test_any_other_length_is_seen(tmp_path):
    content = written(tmp_path / "a")
    for length in range(len(content)):
        (tmp_path / "b").write_bytes(content[:length])
        with pytest.raises(DamagedError, match=r"is torn|is empty"):
            read(tmp_path / "b")


def test_the_record_before_counts(tmp_path):
    written(tmp_path / "a", before=b"x" * 32)
    assert read(tmp_path / "a", b"x" * 32)[0] == INFO
    with pytest.raises(DamagedError, match="checksum"):
        read(tmp_path / "a", b"y" * 32)


def forge(path, text, length=0, body=b"", version=1, magic=MAGIC):
    """A record with a checksum that fits, whatever it says."""
    with io.FileIO(path, "w") as file:
        writer = Writer(file, bytes(32))
        writer.add(PREFIX.pack(magic, version, 0, len(text), length))
        writer.add(text + body)
        writer.finish()


HOSTILE = {
    "another format": ((b"{}", 0, b"", 2), "has format 2, and this version of the toolkit reads format 1"),
    "another kind of file": ((b"{}", 0, b"", 1, b"PK\3\4\0\0\0\0"), "is no checkpoint of this toolkit"),
    "arrays beyond the file": ((b"{}", 2**62), "is torn"),
    "a text that is none": ((b"\xff\xfe",), "cannot be read"),
    "no JSON": ((b"{",), "cannot be read"),
    "another JSON": ((b"[1, 2]",), "cannot be read"),
    "nothing of a record": ((b"{}",), "cannot be read"),
    "JSON without end": ((b"[" * 100_000,), "cannot be read"),
    "objects": ((json.dumps({"info": {}, "arrays": {"x": ["|O", [1]]}}).encode(), 8, bytes(8)), "kind '|O'"),
    "big-endian": ((json.dumps({"info": {}, "arrays": {"x": [">f8", [1]]}}).encode(), 8, bytes(8)), "kind '>f8'"),
    "a kind that is none": ((json.dumps({"info": {}, "arrays": {"x": [3, [1]]}}).encode(), 8, bytes(8)), "kind 3"),
    "text": ((json.dumps({"info": {}, "arrays": {"x": ["<U2", [1]]}}).encode(), 8, bytes(8)), "kind '<U2'"),
    "a negative length": ((json.dumps({"info": {}, "arrays": {"x": ["<f8", [-1]]}}).encode(),), "impossible shape"),
    "a broken length": ((json.dumps({"info": {}, "arrays": {"x": ["<f8", [1.5]]}}).encode(),), "impossible shape"),
    "a length of no end": ((json.dumps({"info": {}, "arrays": {"x": ["<f8", [0, 10**30]]}}).encode(),), "impossible"),
    "too many axes": ((json.dumps({"info": {}, "arrays": {"x": ["<f8", [0] * 99]}}).encode(),), "impossible shape"),
    "fewer numbers": ((json.dumps({"info": {}, "arrays": {"x": ["<f8", [9]]}}).encode(), 8, bytes(8)), "of its length"),
    "more numbers": ((json.dumps({"info": {}, "arrays": {"x": ["<f8", [2**40]]}}).encode(),), "of its length"),
    "arrays by number": ((json.dumps({"info": {}, "arrays": [1, 2]}).encode(),), "cannot be read"),
    "an array of one word": ((json.dumps({"info": {}, "arrays": {"x": ["<f8"]}}).encode(),), "cannot be read"),
}  # fmt: skip


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_files_are_refused_without_a_fuss(what, tmp_path):
    forged, message = HOSTILE[what]
    forge(tmp_path / "a", *forged)
    tracemalloc.start()
    with pytest.raises(DamagedError, match=re.escape(message)):
        read(tmp_path / "a")
    assert tracemalloc.get_traced_memory()[1] < 1e7
    tracemalloc.stop()


def test_a_forged_file_that_says_nothing_wrong_is_read(tmp_path):
    """So that what is refused above is refused for what it says."""
    forge(tmp_path / "a", json.dumps({"info": {"a": 1}, "arrays": {"x": ["<f8", [2]]}}).encode(), 16, bytes(16))
    info, arrays = read(tmp_path / "a")
    assert info == {"a": 1}
    assert arrays["x"].tolist() == [0.0, 0.0]
    assert (tmp_path / "a").stat().st_size == PREFIX.size + 49 + 16 + DIGEST


def add(journal, number):
    """A record of one array."""
    journal.append({"number": number}, {"x": store(np.full(3, float(number)))})


def numbers(journal):
    return [record.info["number"] for _, record in journal.records()]


@pytest.fixture
def path(tmp_path):
    """A journal of three records."""
    journal = Journal(str(tmp_path / "journal"))
    for number in range(3):
        add(journal, number)
    journal.close()
    return str(tmp_path / "journal")


def test_records_come_back_in_order_and_more_follow(path):
    journal = Journal(path)
    assert numbers(journal) == [0, 1, 2]
    assert journal.mark.length == journal.size
    assert journal.mark.records == 3
    add(journal, 3)
    assert numbers(journal) == [0, 1, 2, 3]
    journal.close()


def test_what_lies_beyond_goes_when_more_is_written(path):
    journal = Journal(path)
    marks = [mark for mark, _ in journal.records()]
    journal.go_to(marks[0])
    assert journal.size == marks[2].length
    add(journal, 7)
    assert numbers(journal) == [0, 7]
    assert journal.size == marks[1].length
    journal.go_to(BEGINNING)
    add(journal, 9)
    assert numbers(journal) == [9]
    journal.close()


def test_a_torn_end_is_seen_where_it_is(path):
    journal = Journal(path)
    marks = [mark for mark, _ in journal.records()]
    os.truncate(path, marks[2].length - 1)
    with pytest.raises(DamagedError, match="is torn"):
        numbers(journal)
    assert journal.mark == marks[1]
    add(journal, 5)
    assert numbers(journal) == [0, 1, 5]
    journal.close()


def test_records_of_another_journal_do_not_fit(path, tmp_path):
    """Each hangs on the one before: a record moved, repeated or left out is seen."""
    journal = Journal(path)
    marks = [BEGINNING, *(mark for mark, _ in journal.records())]
    with open(path, "rb") as file:
        content = file.read()
    parts = [content[a.length : b.length] for a, b in itertools.pairwise(marks)]
    for order in ((0, 2), (1, 0), (0, 0), (0, 1, 1)):
        with open(path, "wb") as file:
            file.write(b"".join(parts[i] for i in order))
        with pytest.raises(DamagedError, match="checksum"):
            numbers(journal)
    journal.close()


def test_a_write_that_fails_leaves_the_good_part(path, monkeypatch):
    journal = Journal(path)
    assert numbers(journal) == [0, 1, 2]
    mark = journal.mark

    def full(descriptor):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            add(journal, 3)
    assert journal.mark == mark
    assert journal.size > mark.length
    journal.cut()
    assert journal.size == mark.length
    journal.close()


def test_one_holds_it_at_a_time(path):
    journal = Journal(path)
    assert journal.is_locked
    with pytest.raises(LockedError):
        Journal(path)
    code = "from toolkit._output.storage.checkpoint_file import Journal, LockedError"
    code += f"\ntry:\n Journal({path!r})\nexcept LockedError:\n print('no')"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=here())
    assert said.stdout.strip() == "no"
    journal.close()
    Journal(path).close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_process_forked_off_does_not_hold_it(path):
    """A worker of a pool outlives its parent at times; here it waits while the journal is opened again."""
    journal = Journal(path)
    (reading, writing), (heard, say) = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(writing)
        os.write(say, b"x")
        os.read(reading, 1)
        os._exit(0)
    assert os.read(heard, 1) == b"x"
    journal.close()
    Journal(path).close()
    os.close(writing)
    os.waitpid(pid, 0)
    for descriptor in (reading, heard, say):
        os.close(descriptor)


def here():
    """The environment of a process that finds this toolkit."""
    root = str(Path(__file__).resolve().parents[3])
    return {**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}


def test_without_locks_it_says_so(path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")

    def no_locks(file, operation):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    journal = Journal(path)
    assert not journal.is_locked
    journal.close()


def test_a_journal_that_was_replaced_is_known(path):
    journal = Journal(path)
    journal.check_place(path)
    os.remove(path)
    with pytest.raises(OSError, match=r"No such file|cannot find"):
        journal.check_place(path)
    with open(path, "wb"):
        pass
    with pytest.raises(OSError, match="was replaced while the run used it"):
        journal.check_place(path)
    journal.close()


def test_an_empty_journal_has_no_first(tmp_path):
    journal = Journal(str(tmp_path / "journal"))
    assert journal.mark == Mark(0, 0, bytes(32))
    with pytest.raises(DamagedError, match="is empty"):
        journal.first()
    journal.close()
