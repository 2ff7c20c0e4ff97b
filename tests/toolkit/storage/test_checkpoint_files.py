"""Torn, edited and missing files, a full disk, two runs on one file: the right bits or a clear error, nothing else."""

import errno
import io
import os
import random
import shutil
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from tests.support.checkpoint_cases import COSINE, PAIR, Sums, assert_same, run_case, stopped
from toolkit import CheckpointError, CheckpointWarning, Layout, sample, samplers, stream
from toolkit._engine.driver import Driver
from toolkit._output.storage import checkpoint_file
from toolkit._output.storage.checkpoint_file import Journal, read_record

SAMPLER = samplers.resgld(**PAIR, energy_noise=0.5)
RUN = {"n_steps": 100, "seed": 3, "n_chains": 3, "trace_every": 3, "accumulators": {"sums": Sums()}}
RUN["layout"] = Layout(chunk_steps=10)
STATE, PREVIOUS, JOURNAL = "run.ckpt", "run.ckpt.previous", "run.ckpt.draws"


def run(path=None, **options):
    return sample(COSINE, SAMPLER, checkpoint=path, **{**RUN, **options})


@pytest.fixture(scope="module")
def whole():
    return run()


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The folder of a run stopped after step 60, which was saved after each chunk."""
    folder = tmp_path_factory.mktemp("saved")
    with pytest.MonkeyPatch.context() as patch:
        stopped(patch, 60, run, folder / STATE)
    assert sorted(os.listdir(folder)) == [STATE, JOURNAL, PREVIOUS]
    return folder


def marks(folder):
    """Where the journal's head ends, and how much of it the previous state and the last need."""
    journal = Journal(str(folder / JOURNAL))
    head = next(mark.length for mark, _ in journal.records())
    journal.close()
    needed = []
    for name in (PREVIOUS, STATE):
        with io.FileIO(folder / name) as file:
            needed.append(read_record(file, 0, (folder / name).stat().st_size).info["journal"][0])
    return head, *needed


@pytest.fixture
def copy(saved, tmp_path):
    """A copy of those files, and the steps from which runs of theirs go on."""
    shutil.copytree(saved, tmp_path / "copy")
    seen, resume = [], Driver.resume
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Driver, "resume", lambda self, *given: (seen.append(given[0]), resume(self, *given)))
        yield tmp_path / "copy", seen


def go_on(folder):
    """The run from there, and the checkpoint's warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = run(folder / STATE)
    return result, [str(w.message) for w in caught]


def damages(content, n, seed):
    """``n`` pairs of where a file is first changed and what it becomes: a bit, some bytes, its end, its length."""
    draw = random.Random(seed)
    for i in range(n):
        place = draw.randrange(len(content))
        torn = bytearray(content)
        if i % 3 == 0:
            torn[place] ^= 1 << draw.randrange(8)
        elif i % 3 == 1:
            del torn[place:]
        else:
            length = min(draw.randrange(1, 400), len(torn) - place)
            torn[place : place + length] = draw.randbytes(length)
        if bytes(torn) != content:
            yield next((k for k, (a, b) in enumerate(zip(torn, content, strict=False)) if a != b), len(torn)), torn


def test_the_previous_state_is_used_where_the_last_is_damaged(copy, whole):
    folder, seen = copy
    files = {name: (folder / name).read_bytes() for name in os.listdir(folder)}
    for n, (_, torn) in enumerate(damages(files[STATE], 45, seed=1), start=1):
        for name, content in files.items():
            (folder / name).write_bytes(torn if name == STATE else content)
        result, (message,) = go_on(folder)
        assert f"{STATE}' " in message
        assert f"goes on from '{folder / PREVIOUS}', saved after step 50" in message
        assert_same(result, whole)
        assert seen == [50] * n


def test_a_damaged_previous_state_is_never_looked_at(copy, whole):
    folder, seen = copy
    files = {name: (folder / name).read_bytes() for name in os.listdir(folder)}
    for n, (_, torn) in enumerate(damages(files[PREVIOUS], 15, seed=2), start=1):
        for name, content in files.items():
            (folder / name).write_bytes(torn if name == PREVIOUS else content)
        result, messages = go_on(folder)
        assert messages == []
        assert_same(result, whole)
        assert seen == [60] * n


def test_the_journal_is_used_as_far_as_it_is_whole(copy, whole):
    folder, seen = copy
    head, previous, last = marks(folder)
    files = {name: (folder / name).read_bytes() for name in os.listdir(folder)}
    assert head < previous < last == len(files[JOURNAL])
    outcomes = []
    for place, torn in damages(files[JOURNAL], 90, seed=3):
        for name, content in files.items():
            (folder / name).write_bytes(torn if name == JOURNAL else content)
        if place < previous:
            with pytest.raises(CheckpointError, match=f"{JOURNAL}.*remove the files .* to begin anew"):
                run(folder / STATE)
            assert (folder / JOURNAL).read_bytes() == torn
            outcomes.append("head" if place < head else "refused")
            continue
        result, (message,) = go_on(folder)
        assert JOURNAL in message
        assert "saved after step 50" in message
        assert_same(result, whole)
        outcomes.append("previous")
    assert set(outcomes) == {"head", "refused", "previous"}
    assert seen == [50] * outcomes.count("previous")


def test_a_torn_end_beyond_what_the_state_needs_is_cut_off(copy, whole):
    folder, seen = copy
    with open(folder / JOURNAL, "ab") as file:
        file.write(b"manymode, and then the lights went out")
    result, messages = go_on(folder)
    assert messages == []
    assert seen == [60]
    assert_same(result, whole)
    assert go_on(folder)[1] == []


def test_where_both_states_are_damaged_both_reasons_are_named(copy):
    folder, _ = copy
    (folder / STATE).write_bytes((folder / STATE).read_bytes()[:-1])
    (folder / PREVIOUS).write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"ckpt' is torn.*; .*previous' is empty; give another path, or remove"):
        run(folder / STATE)


@pytest.mark.parametrize(
    ("gone", "step"),
    [
        ([STATE], 50),  # killed between the changes of two names
        ([PREVIOUS], 60),
        ([STATE, PREVIOUS], None),  # killed before the first save
        ([STATE, PREVIOUS, JOURNAL], None),
        ([JOURNAL], "journal"),
        ([STATE, JOURNAL], "journal"),
    ],
)
def test_missing_files(gone, step, copy, whole):
    folder, seen = copy
    for name in gone:
        os.remove(folder / name)
    if step == "journal":
        with pytest.raises(CheckpointError, match=r"run.ckpt.draws', which holds its draws, is empty"):
            run(folder / STATE)
        return
    result, messages = go_on(folder)
    assert messages == []
    assert_same(result, whole)
    assert seen == ([step] if step else [])


def test_a_state_of_another_run_does_not_fit_this_journal(copy, tmp_path):
    """The same arguments but for the seed: its files are whole, and their draws are others."""
    folder, _ = copy
    with pytest.MonkeyPatch.context() as patch:
        stopped(patch, 60, run, tmp_path / STATE, seed=4)
    for name in (STATE, PREVIOUS):
        shutil.copy(tmp_path / name, folder / name)
    with pytest.raises(CheckpointError, match="does not belong to"):
        run(folder / STATE)


def test_a_damaged_state_never_takes_the_place_of_the_previous_one(copy, monkeypatch):
    """Until there is a new last one: a kill in between would leave nothing."""
    folder, _ = copy
    (folder / STATE).write_bytes(b"")
    before = (folder / PREVIOUS).read_bytes()
    with pytest.warns(CheckpointWarning, match="is empty"):
        stopped(monkeypatch, 60, run, folder / STATE)
    assert (folder / PREVIOUS).read_bytes() == before
    assert (folder / STATE).stat().st_size > 100


FORGED = {
    "no such draws": ("sgld", "info", "draws", 500),
    "other draws": ("sgld", "info", "draws", 1),
    "another trace": ("sghmc", "info", "traced", 1),
    "more steps than asked for": ("sgld", "info", "steps", 10**9),
    "negative steps": ("sgld", "info", "steps", -5),
    "steps that are none": ("sgld", "info", "steps", "many"),
    "another journal": ("sgld", "info", "journal", [0, 0, "00"]),
    "an array of another shape": ("sgld", "position", None, np.zeros((5, 2))),
    "an array of another kind": ("sgld", "position", None, np.zeros((5, 2, 1), np.int64)),
    "an array too few": ("sgld", "bounces", None, None),
    "a mark of 0": ("csgld", "contour.mark", 0, 0),
    "a tempering variable of nan": ("tact_hmc", "continuous.rows", (3, 0, 0), np.nan),
    "a tempering variable beyond its wall": ("tact_hmc", "continuous.rows", (3, 0, 0), 1e300),
    "batches of no draws": ("accumulators of the toolkit", "accumulators['means']['length']", 2, 0),
    "batches beyond all room": ("accumulators of the toolkit", "accumulators['means']['draws']", 2, 2**60),
    "a time before the first": ("accumulators of the toolkit", "accumulators['kl']['reached']", 0, -3),
}


@pytest.mark.filterwarnings("ignore::toolkit.ContourWarning")
@pytest.mark.parametrize("what", FORGED)
def test_a_forged_state_is_refused_though_its_checksum_fits(what, tmp_path, monkeypatch):
    """What would be a place in memory, or an endless loop, is looked at; the previous state is used."""
    case, name, place, value = FORGED[what]
    path = tmp_path / STATE
    stopped(monkeypatch, 250, run_case, case, 0, checkpoint=path)
    with io.FileIO(path) as file:
        record = read_record(file, 0, path.stat().st_size)
        info, arrays = (
            record.info,
            {key: checkpoint_file.read_array(file, placed) for key, placed in record.arrays.items()},
        )
    if name == "info":
        info[place] = value
    elif place is not None:
        arrays[name][place] = value
    elif value is None:
        del arrays[name]
    else:
        arrays[name] = value
    with io.FileIO(path, "w") as file:
        checkpoint_file.write_record(file, info, {key: checkpoint_file.store(array) for key, array in arrays.items()})
    with pytest.warns(CheckpointWarning, match=r"run.ckpt' (cannot be read|does not belong).*goes on from"):
        result = run_case(case, 1, checkpoint=path)
    assert_same(result, run_case(case))


class Disk:
    """A disk that takes so many bytes and no more, or none for a while."""

    def __init__(self, room, frees_after=None):
        self.room, self.refusals, self.frees_after = room, 0, frees_after

    def write(self, file, data):
        """As ``records.write_all``."""
        if self.frees_after is not None and self.refusals >= self.frees_after:
            return WRITE_ALL(file, data)
        taken = min(len(data), self.room)
        self.room -= taken
        WRITE_ALL(file, data[:taken])
        if taken < len(data):
            self.refusals += 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return None


WRITE_ALL = checkpoint_file.write_all


def test_a_full_disk_ends_no_run_and_spoils_no_checkpoint(tmp_path, whole, monkeypatch):
    """Full from the n-th byte on, for n's all over: one warning, the right draws, and the last good save goes on."""
    disk = Disk(2**40)
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint_file, "write_all", disk.write)
        run(tmp_path / STATE, checkpoint_every=1e-9)
    total = 2**40 - disk.room
    with io.FileIO(tmp_path / JOURNAL) as file:
        head = read_record(file, 0, (tmp_path / JOURNAL).stat().st_size).end
    resumed, resume = [], Driver.resume
    monkeypatch.setattr(Driver, "resume", lambda self, *given: (resumed.append(given[0]), resume(self, *given)))
    for n in range(0, total - 100, total // 60):  # a save's bytes differ by some, as seconds have more or fewer digits
        folder = tmp_path / str(n)
        folder.mkdir()
        with monkeypatch.context() as patch:
            patch.setattr(checkpoint_file, "write_all", Disk(n).write)
            if n < head:
                with pytest.warns(
                    CheckpointWarning, match="No space left.*nothing is saved yet, and sampling"
                ) as caught:
                    assert_same(run(folder / STATE, checkpoint_every=1e-9), whole)
                assert len(caught) == 1
                assert os.listdir(folder) == []
                continue
            with pytest.warns(CheckpointWarning, match=rf"{STATE}' could not be written.*No space left") as caught:
                assert_same(run(folder / STATE, checkpoint_every=1e-9), whole)
            assert len(caught) == 1
        assert not (folder / "run.ckpt.writing").exists()
        result, messages = go_on(folder)
        assert messages == []
        assert_same(result, whole)
    assert len(set(resumed)) == 9  # every chunk but the last was the last good one once


def test_a_disk_that_frees_up_again_has_the_whole_run(tmp_path, whole, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint_file, "write_all", Disk(20_000, frees_after=3).write)
        with pytest.warns(CheckpointWarning, match="could not be written") as caught:
            assert_same(run(tmp_path / STATE, checkpoint_every=1e-9), whole)
    assert len(caught) == 1
    monkeypatch.setattr(Driver, "advance", None)
    assert_same(run(tmp_path / STATE), whole)


@pytest.mark.skipif(os.name == "nt", reason="has no limit on the size of a file")
def test_a_limit_on_the_size_of_files(tmp_path, whole):
    """The system's own refusal, in the middle of a write to the journal."""
    import resource

    run(tmp_path / "other.ckpt")  # what is still to compile would be written too
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((tmp_path / "other.ckpt.draws").stat().st_size - 3000, hard))
    try:
        with pytest.warns(CheckpointWarning, match="File too large"):
            assert_same(run(tmp_path / STATE, checkpoint_every=1e-9), whole)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    result, messages = go_on(tmp_path)
    assert messages == []
    assert_same(result, whole)


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_other_refusals_of_the_disk(call, tmp_path, whole, monkeypatch):
    """Each third call fails, at its end or between the changes of two names."""
    calls, plain = [], getattr(os, call)

    def failing(*given):
        calls.append(1)
        if len(calls) % 3 == 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return plain(*given)

    with monkeypatch.context() as patch:
        patch.setattr(os, call, failing)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CheckpointWarning)
            assert_same(run(tmp_path / STATE, checkpoint_every=1e-9), whole)
    result, messages = go_on(tmp_path)
    assert messages == []
    assert_same(result, whole)


def test_a_folder_that_goes_away_ends_no_run(tmp_path, whole, monkeypatch):
    folder = tmp_path / "folder"
    folder.mkdir()
    advance = Driver.advance

    def remove(self, first, *given, **named):
        if first == 50:
            shutil.rmtree(folder)
        advance(self, first, *given, **named)

    monkeypatch.setattr(Driver, "advance", remove)
    with pytest.warns(CheckpointWarning, match="could not be written after step 60.*stands at step 50"):
        assert_same(run(folder / STATE, checkpoint_every=1e-9), whole)


def test_two_runs_on_one_file(tmp_path, whole):
    """In one process by a stream under way, in another by a process that holds it; free again after both."""
    path = tmp_path / STATE
    chunks = stream(COSINE, SAMPLER, checkpoint=path, **RUN)
    next(chunks)
    started = time.monotonic()
    for call in (sample, stream):
        with pytest.raises(CheckpointError, match="is in use by another run"):
            call(COSINE, SAMPLER, checkpoint=path, **RUN)
    assert time.monotonic() - started < 10.0  # at once: it does not wait for its turn
    chunks.close()
    for name in os.listdir(tmp_path):
        os.remove(tmp_path / name)
    code = "import sys\nfrom toolkit._output.storage.checkpoint_file import Journal\n"
    code += f"j = Journal({str(path) + '.draws'!r})\n"
    code += "print('held', flush=True)\nsys.stdin.read()"
    root = str(Path(__file__).resolve().parents[3])
    holder = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])},
    )  # fmt: skip
    try:
        assert holder.stdout.readline().strip() == b"held"
        with pytest.raises(CheckpointError, match="is in use by another run, of this process or another"):
            run(path)
    finally:
        holder.kill()  # as by SIGKILL: the system gives the lock back
        holder.communicate()
    assert_same(run(path), whole)


def test_without_locks_there_is_a_warning(tmp_path, whole, monkeypatch):
    monkeypatch.setattr("toolkit._output.storage.checkpoint_file.lock", lambda file: False)
    with pytest.warns(CheckpointWarning, match="cannot be locked there; see that no second run uses it"):
        assert_same(run(tmp_path / STATE), whole)
