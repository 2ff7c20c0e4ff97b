"""A write that fails, is killed or meets another's file leaves what was there; bad paths are refused before any."""

import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from targets import mixtures
from tests.support.saving_cases import BOX, FORMATS, NAMED, ROOT, assert_same_run, run_of, saved
from toolkit import load, sample, samplers

pytestmark = [
    pytest.mark.usefixtures("unflushed"),
    pytest.mark.filterwarnings("ignore::toolkit.ContourWarning"),  # runs too short for θ
]


@pytest.mark.parametrize(
    ("suffix", "step"),
    [
        (".npz", "os.replace"), (".npz", "numpy.lib.format.write_array"), (".npz", "zlib.compress"),
        (".nc", "zlib.compress"), (".zarr", "os.rename"), (".zarr.zip", "os.replace"),
    ],
)  # fmt: skip
def test_a_write_that_fails_leaves_what_was_there(suffix, step, tmp_path, monkeypatch):
    run, path = saved(suffix, tmp_path)
    before = sorted(item.name for item in tmp_path.iterdir())
    calls = []

    def full(*arguments, **keywords):
        calls.append(arguments)
        if len(calls) == (2 if step == "os.rename" else 1):
            raise OSError(28, "No space left on device")
        return real(*arguments, **keywords)

    module, _, name = step.rpartition(".")
    real = getattr(sys.modules[module], name)
    with monkeypatch.context() as patch:
        patch.setattr(sys.modules[module], name, full)
        other = run_of(NAMED["r2sgld"], seed=7, n_steps=3000)
        failed = False
        try:
            other.save(path)
        except OSError:
            failed = True
    assert sorted(item.name for item in tmp_path.iterdir()) == before
    assert_same_run(run if failed else other, load(path))


def test_a_run_that_cannot_be_moved_back_is_left_beside(tmp_path, monkeypatch):
    """The second of two renames fails, and so does the one that would undo the first."""
    run, path = saved(".zarr", tmp_path)
    real, calls = os.rename, []

    def fails_later(source, target):
        calls.append(source)
        if len(calls) > 1:
            raise OSError(5, "Input/output error")
        real(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", fails_later)
        with pytest.raises(OSError, match="Input/output error"):
            run_of(NAMED["sgld"]).save(path)
    (aside,) = tmp_path.glob(".*.replaced")
    assert_same_run(run, load(aside / path.name))


def test_saving_again_replaces_the_run(tmp_path):
    for suffix in FORMATS:
        _, path = saved(suffix, tmp_path)
        other = run_of(NAMED["sgld"], seed=5)
        other.save(str(path))
        assert_same_run(other, load(str(path)))


def test_other_peoples_files_are_not_replaced(tmp_path):
    run = run_of(NAMED["sgld"])
    for suffix in FORMATS:
        folder = tmp_path / f"data{suffix}"
        folder.mkdir()
        (folder / "precious").write_text("years of work")
        with pytest.raises(ValueError, match="is no saved run, so it is left alone"):
            run.save(folder)
        assert (folder / "precious").read_text() == "years of work"
    file = tmp_path / "file.zarr"
    file.write_text("years of work")
    with pytest.raises(ValueError, match="is no saved run, so it is left alone"):
        run.save(file)


@pytest.mark.parametrize(
    ("path", "kind", "words"),
    [
        ("run.pkl", ValueError, "path must end in one of .npz, .nc, .zarr, .zarr.zip, got 'run.pkl'"),
        ("run", ValueError, "path must end in one of"),
        (".npz", ValueError, "path must end in one of"),
        ("run.NPZ", ValueError, "path must end in one of"),
        ("ru\0n.npz", ValueError, "path must be text without null"),
        (3, TypeError, "path must be a string or a path, got 3 of type int"),
        (None, TypeError, "path must be a string or a path"),
        (b"run.npz", TypeError, "path must be a string or a path"),
    ],
)
def test_bad_paths_are_refused_before_anything_is_written(path, kind, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = run_of(NAMED["sgld"])
    for use in (run.save, load):
        with pytest.raises(kind, match=words.replace(".", r"\.")):
            use(path)
    assert not list(tmp_path.iterdir())


def test_the_core_alone_saves_npz_and_names_the_extra_for_the_others(tmp_path, monkeypatch):
    run = run_of(NAMED["sgld"])
    run.save(tmp_path / "run.nc")
    run.save(tmp_path / "run.zarr")
    for name in ("xarray", "h5netcdf", "h5py", "zarr"):
        monkeypatch.setitem(sys.modules, name, None)
    run.save(tmp_path / "run.npz")
    assert_same_run(run, load(tmp_path / "run.npz", BOX))
    for use in (
        run.to_datatree, lambda: run.save(tmp_path / "other.nc"), lambda: run.save(tmp_path / "other.zarr"),
        lambda: load(tmp_path / "run.nc"),
    ):  # fmt: skip
        with pytest.raises(ImportError, match=r'pip install .*\[io\]"'):
            use()
    assert_same_run(run, load(tmp_path / "run.zarr", BOX))  # nothing in it is compressed, which numcodecs would undo
    assert not list(tmp_path.glob("other*")) + list(tmp_path.glob(".*"))


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".npz", ".nc", ".zarr.zip"])
def test_a_process_killed_while_it_saves_leaves_a_whole_run(suffix, tmp_path):
    """Two runs in turn at one path, until the process is killed: one of the two is there."""
    path = tmp_path / f"run{suffix}"
    program = (
        "import sys\nfrom targets import mixtures\nfrom toolkit import sample, samplers\n"
        "made = lambda seed: sample(mixtures.cosine25(), samplers.sgld(0.01), n_steps=20_000, n_chains=2, seed=seed)\n"
        "runs = [made(1), made(2)]\n"
        "print('ready', flush=True)\n"
        "while True:\n    for run in runs:\n        run.save(sys.argv[1])\n"
    )
    rng = np.random.default_rng(3)
    runs = [sample(mixtures.cosine25(), samplers.sgld(0.01), n_steps=20_000, n_chains=2, seed=s) for s in (1, 2)]
    for _ in range(8):
        process = subprocess.Popen(
            [sys.executable, "-c", program, str(path)], cwd=ROOT, stdout=subprocess.PIPE, env=os.environ
        )
        assert process.stdout.readline() == b"ready\n"
        while not path.exists():
            time.sleep(0.01)
        time.sleep(rng.uniform(0.0, 0.5))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        back = load(path)
        assert any(back.seed == run.seed and np.array_equal(back.draws, run.draws) for run in runs)
        path.unlink()
    for rest in tmp_path.iterdir():
        assert rest.name.endswith(".unfinished")
        shutil.rmtree(rest)
