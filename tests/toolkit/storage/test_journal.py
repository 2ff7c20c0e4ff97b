"""The journal grows at its end alone, knows where it is torn, and belongs to one process at a time."""

import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from toolkit._output.storage.record_file import BEGINNING, DamagedError, Journal, LockedError, Mark, store


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
    code = "from toolkit._output.storage.record_file import Journal, LockedError"
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
