"""A saved run comes back bit for bit from every format; whatever else lies in a file is refused, and nothing is run."""

import dataclasses
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from test_describing import NAMED

from targets import constrained, domains, mixtures
from toolkit import (
    DivergenceError,
    LoadError,
    Run,
    Sampler,
    Target,
    UnavailableError,
    boundaries,
    dynamics,
    from_callable,
    load,
    sample,
    samplers,
    saving,
    schedules,
)

pytestmark = pytest.mark.filterwarnings("ignore::toolkit.ContourWarning")  # runs too short for θ
ROOT = Path(__file__).resolve().parents[1]
NORMAL = mixtures.gaussian_mixture([[0.0, 0.0]], 1.0)
BOX = constrained(NORMAL, domains.box([-2.0, -2.0], [2.0, np.inf]))
FORMATS = (".npz", ".nc", ".zarr", ".zarr.zip")
SEED = 2**64 - 1


@pytest.fixture(autouse=True)
def unflushed(monkeypatch):
    """Leave it to the system when to write to the disk, which tests need not wait for."""
    monkeypatch.setattr(saving, "flush", lambda *_, **__: None)


def run_of(sampler, problem=BOX, **options):
    spread = {"init": np.arange(12.0).reshape(2, 3, 2) / 20} if sampler.name == "svgd" else {}
    given = {"n_steps": 60, "burn_in": 20, "thin": 2, "n_chains": 2, "seed": SEED, **spread, **options}
    return sample(problem, sampler, **given)


def assert_same(a, b):
    """Equal in type, numbers of equal bits."""
    if isinstance(a, np.ndarray):
        assert isinstance(b, np.ndarray)
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        assert a.tobytes() == b.tobytes()
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            assert_same(a[key], b[key])
    elif isinstance(a, tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_same(x, y)
    else:
        assert type(a) is type(b)
        assert a == b


def assert_same_run(a, b):
    """All fields of two runs, but the problem."""
    for name in Run.__dataclass_fields__:
        if name != "problem":
            assert_same(getattr(a, name), getattr(b, name))


def quick_or_slow(names, quick):
    """Each name with all formats; those that are not ``quick`` with the slower formats go to the slow tests."""
    for name in names:
        yield pytest.param(name, (".npz",), id=f"{name}-.npz")
        marks = () if name in quick else pytest.mark.slow
        yield pytest.param(name, FORMATS[1:], id=f"{name}-others", marks=marks)


@pytest.mark.parametrize(("name", "suffixes"), quick_or_slow(NAMED, {"icsgld", "r2sghmc", "tact_hmc"}))
def test_every_constructors_run_comes_back_from_every_format(name, suffixes, tmp_path):
    run = run_of(NAMED[name], keep_energies=True, trace_every=7, keep_replicas=True)
    for suffix in suffixes:
        path = tmp_path / f"läuft Δ{suffix}"
        run.save(path)
        back = load(path, BOX)
        assert_same_run(run, back)
        assert back.problem is BOX
        assert back.seed == SEED
    assert {path.name for path in tmp_path.iterdir()} == {f"läuft Δ{suffix}" for suffix in suffixes}


OPTIONS = {
    "nothing": {}, "energies": {"keep_energies": True}, "trace": {"trace_every": 1},
    "no statistics": {"keep_statistics": False}, "replicas": {"keep_replicas": True}, "no draws": {"keep_draws": False},
    "one chain": {"n_chains": 1}, "one draw": {"thin": 40},
}  # fmt: skip


@pytest.mark.parametrize(("kept", "suffixes"), quick_or_slow(OPTIONS, {"no draws"}))
def test_whatever_was_kept_comes_back(kept, suffixes, tmp_path):
    """Of a weighted run of three replicas that sample the target, and of an exchange."""
    for name in ("icsgld", "r2sgld"):
        run = run_of(NAMED[name], **OPTIONS[kept])
        for suffix in suffixes:
            run.save(tmp_path / f"run{suffix}")
            assert_same_run(run, load(tmp_path / f"run{suffix}"))


def odd_numbers(run):
    """The run with draws of every kind of bits: infinite, of either zero, nan with a payload, subnormal."""
    payload = np.array([0x7FF8000000000123, 0xFFF0000000000000, 0x8000000000000000, 1], np.uint64).view(np.float64)
    draws = np.resize(payload, run.replica_draws.shape)
    return dataclasses.replace(run, replica_draws=draws)


@pytest.mark.parametrize("suffix", FORMATS)
def test_every_bit_of_a_number_comes_back(suffix, tmp_path):
    run = odd_numbers(run_of(NAMED["mala"]))
    run.save(tmp_path / f"run{suffix}")
    assert_same_run(run, load(tmp_path / f"run{suffix}"))
    zeros = dataclasses.replace(run, replica_draws=np.full(run.replica_draws.shape, -0.0))
    zeros.save(tmp_path / f"run{suffix}")
    assert_same_run(zeros, load(tmp_path / f"run{suffix}"))


class Moments(NamedTuple):
    mean: np.ndarray
    total: int
    nothing: None
    inner: tuple


class Means:
    """An accumulator of the user's own, with a result of several kinds."""

    needs_energies = False

    def start(self, problem, n_chains):
        return {"sum": np.zeros((n_chains, problem.target.dim))}

    def update(self, state, draws, weights, energies, steps):
        for i in range(draws.shape[1]):
            state["sum"] += draws[:, i]

    def result(self, state):
        return Moments(state["sum"].copy(), 7, None, (np.arange(3), np.float64(0.5)))


@pytest.mark.parametrize("suffix", FORMATS)
def test_results_of_accumulators_come_back(suffix, tmp_path):
    run = run_of(NAMED["sgld"], accumulators={"a/b ü": Means(), "a|b ü": Means()}, keep_draws=False)
    run.save(tmp_path / f"run{suffix}")
    back = load(tmp_path / f"run{suffix}")
    assert list(back.accumulated) == ["a/b ü", "a|b ü"]
    for found in back.accumulated.values():
        assert isinstance(found, SimpleNamespace)  # a class of the user's own is not made by a file
        assert_same(run.accumulated["a/b ü"].mean, found.mean)
        assert (found.total, found.nothing) == (7, None)
        assert_same(found.inner[0], np.arange(3))
        assert found.inner[1] == 0.5
    back.save(tmp_path / f"again{suffix}")
    assert load(tmp_path / f"again{suffix}").accumulated.keys() == back.accumulated.keys()


@pytest.mark.parametrize("suffix", FORMATS)
def test_without_the_problem_a_stand_in_takes_its_place(suffix, tmp_path):
    path = tmp_path / f"run{suffix}"
    run = run_of(NAMED["sgld"])
    run.save(path)
    back = load(path)
    assert back.problem.name == BOX.name
    assert back.problem.target.dim == 2
    np.testing.assert_array_equal(back.problem.target.parameters, NORMAL.parameters)
    np.testing.assert_array_equal(back.problem.domain.real, BOX.domain.real)
    for use in (
        lambda: back.problem.target.evaluate(np.zeros((1, 2))),
        lambda: back.problem.contains(np.zeros((1, 2))),
        lambda: sample(back.problem, back.sampler, n_steps=10, seed=1),
    ):
        with pytest.raises(UnavailableError, match="the file holds the name of"):
            use()
    back.save(path)  # and again, without having it
    assert_same_run(run, load(path, BOX))
    again = sample(BOX, load(path).sampler, n_steps=60, burn_in=20, thin=2, n_chains=2, seed=back.seed)
    assert_same(again.draws, run.draws)


def test_another_problem_is_refused_with_the_difference_named(tmp_path):
    run = run_of(NAMED["sgld"])
    run.save(tmp_path / "run.npz")
    others = {
        "problem.domain: box": NORMAL,
        "problem.domain.real": constrained(NORMAL, domains.box([-2.0, -2.0], [2.5, np.inf])),
        "problem.target.parameters[": constrained(
            mixtures.gaussian_mixture([[0.0, 0.5]], 1.0), domains.box([-2.0, -2.0], [2.0, np.inf])
        ),
    }
    for words, other in others.items():
        with pytest.raises(ValueError, match="problem must be the one of the run") as caught:
            load(tmp_path / "run.npz", other)
        assert words in str(caught.value)
        assert not isinstance(caught.value, LoadError)
    with pytest.raises(TypeError, match="problem must be"):
        load(tmp_path / "run.npz", 3)


def own_block(position, energy, gradient, parameters, scratch):
    for lane in range(energy.size):
        energy[lane] = 0.5 * parameters[0] * position[0, lane] ** 2
        gradient[0, lane] = parameters[0] * position[0, lane]


def own_move(position, momentum, gradient, curvature, noise, step_size, temperature, coupling, memory, parameters):
    for lane in range(position.shape[1]):
        position[0, lane] -= step_size[lane] * gradient[0, lane]


@pytest.mark.parametrize("suffix", FORMATS)
def test_what_is_ones_own_is_saved_by_its_name(suffix, tmp_path):
    """A target of a Python function, with another handle now; a schedule and dynamics of functions."""
    python = from_callable(lambda x: (0.5 * (x**2).sum(axis=1), x), dim=1, name="Pythons ∇")
    own = Sampler(
        "mine", (0.1,), dynamics=dynamics.Dynamics("mine", own_move),
        schedule=schedules.custom(lambda steps: np.ones(steps.size)),
    )  # fmt: skip
    for target, sampler in ((python, samplers.sgld(0.1)), (Target("own", 1, own_block, [2.0]), own)):
        run = sample(target, sampler, n_steps=20, n_chains=2, seed=1, init=[0.5])
        run.save(tmp_path / f"run{suffix}")
        back = load(tmp_path / f"run{suffix}", target)
        assert_same(run.draws, back.draws)
        assert back.sampler.name == sampler.name
        stand_in = load(tmp_path / f"run{suffix}").problem.target
        assert stand_in.name == target.name
        with pytest.raises(UnavailableError):
            stand_in.evaluate(np.zeros((1, 1)))
        back.to_datatree()
    with pytest.raises(UnavailableError):
        sample(target, back.sampler, n_steps=5, seed=1)


def test_a_run_that_diverged_is_saved(tmp_path):
    with pytest.raises(DivergenceError) as caught:
        sample(NORMAL, samplers.sgld(5.0), n_steps=20_000, n_chains=2, seed=1, init=[1.0, 1.0])
    run = caught.value.run
    assert np.isnan(run.draws).any()
    for suffix in (".npz", ".nc"):
        run.save(tmp_path / f"run{suffix}")
        assert_same_run(run, load(tmp_path / f"run{suffix}", NORMAL))


SAVED = {}


def saved(suffix, tmp_path):
    """A small run on disk, made once for each format."""
    if suffix not in SAVED:
        run = run_of(NAMED["r2sgld"], keep_energies=True)
        run.save(tmp_path / f"first{suffix}")
        SAVED[suffix] = run
    run = SAVED[suffix]
    path = tmp_path / f"run{suffix}"
    run.save(path)
    return run, path


def files_of(path):
    return sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]


def loaded_or_refused(path, run):
    """Whether ``path`` is refused by its name; else it must give ``run``."""
    try:
        back = load(path)
    except LoadError as error:
        return path.name in str(error)
    assert_same_run(run, back)
    return False


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_torn_file_is_refused(suffix, tmp_path):
    """Cut anywhere, or in a folder of files one of them; what is cut must matter to the run."""
    run, path = saved(suffix, tmp_path)
    files = [path / "run" / name / "0" for name in ("header", "checksum", "places")] if suffix == ".zarr" else [path]
    if suffix == ".zarr":
        files.append(path / "posterior" / "x" / "0.0.0")
    for file in files:
        whole = file.read_bytes()
        for length in (0, 1, len(whole) // 3, len(whole) // 2, len(whole) - 1):
            file.write_bytes(whole[:length])
            assert loaded_or_refused(path, run), (file, length)
        file.unlink()
        with pytest.raises((LoadError, FileNotFoundError), match=path.name):
            load(path)
        file.write_bytes(whole)
    assert_same_run(run, load(path))


@pytest.mark.parametrize("suffix", FORMATS)
def test_an_edited_file_never_gives_another_run(suffix, tmp_path):
    """A changed byte is found, or lies where it changes nothing of the run."""
    run, path = saved(suffix, tmp_path)
    rng = np.random.default_rng(1)
    refused = 0
    for _ in range(80):
        file = files_of(path)[rng.integers(len(files_of(path)))]
        whole = file.read_bytes()
        if not whole:
            continue
        changed = bytearray(whole)
        changed[rng.integers(len(whole))] ^= 1 << int(rng.integers(8))
        file.write_bytes(changed)
        refused += loaded_or_refused(path, run)
        file.write_bytes(whole)
    assert refused >= 5


def with_header(path, edit):
    """An NPZ whose header ``edit`` has changed, with a checksum that fits again."""
    from toolkit.formats import as_bytes, as_text, read_npz

    contents, _ = read_npz(path)
    contents = contents._replace(header=json.dumps(edit(json.loads(contents.header))))
    with np.load(path, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    arrays["header"], arrays["checksum"] = as_bytes(contents.header), as_bytes(contents.checksum)
    assert as_text(arrays["checksum"]) == contents.checksum
    np.savez(path, **arrays)


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2}, {"seed": "1"}, {"seed": -1}, {"n_steps": 1.5}, {"n_steps": None}, {"counts": {}}, {"trace": 3},
        {"description": {}}, {"description": None}, {"replica_draws": None}, {"steps": {"$array": "init"}},
        {"replica_draws": {"$array": "nowhere"}}, {"accumulated": {"names": ["a"], "results": []}},
        {"statistics": {"walker": None}}, {"made_with": 1}, {"elapsed": "long"},
    ],
    ids=str,
)  # fmt: skip
def test_a_forged_header_is_refused(change, tmp_path):
    _, path = saved(".npz", tmp_path)
    with_header(path, lambda header: header)
    load(path)
    with_header(path, lambda header: {**header, **change})
    with pytest.raises(LoadError, match=r"run\.npz"):
        load(path)


class Marker:
    """What writes a file when a pickle of it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (Path.touch, (Path(self.path),))


@pytest.mark.parametrize("suffix", FORMATS)
def test_foreign_files_are_refused_and_nothing_is_executed(suffix, tmp_path):
    path, mark = tmp_path / f"run{suffix}", tmp_path / "executed"
    hostile = np.array([Marker(str(mark))], dtype=object)
    np.savez(tmp_path / "pickled.npz", header=hostile, checksum=hostile, **{"run/header": hostile})
    contents = [
        b"", b"hello", pickle.dumps(Marker(str(mark))), (tmp_path / "pickled.npz").read_bytes(),
        b"\x89HDF\r\n\x1a\n" + bytes(2000), b"PK\x03\x04" + bytes(100),
    ]  # fmt: skip
    for content in contents:
        path.write_bytes(content)
        with pytest.raises(LoadError, match=path.name):
            load(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(LoadError, match=path.name):
        load(path)
    assert not mark.exists()
    np.load(tmp_path / "pickled.npz", allow_pickle=True)["header"]  # the marker works
    assert mark.exists()


def test_a_bomb_is_not_unpacked(tmp_path):
    """A header that promises 2⁶⁰ bytes, and one that promises more than there are."""
    path = tmp_path / "run.npz"
    for shape in ((2**57,), (10,), (2**40, 2**40)):
        header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}".ljust(117) + "\n"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("header.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode())
        with pytest.raises(LoadError, match="not as long as it says"):
            load(path)


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


def test_a_path_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is nothing at"):
        load(tmp_path / "none.npz")
    with pytest.raises(FileNotFoundError, match="path must lie in a folder that is there"):
        run_of(NAMED["sgld"]).save(tmp_path / "no" / "run.npz")


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
        lambda: load(tmp_path / "run.nc"), lambda: load(tmp_path / "run.zarr"),
    ):  # fmt: skip
        with pytest.raises(ImportError, match=r'pip install "manymodes\[io\]"'):
            use()
    assert not list(tmp_path.glob("other*")) + list(tmp_path.glob(".*"))


def test_counts_are_compressed_and_draws_are_not(tmp_path):
    run = run_of(NAMED["r2sgld"], n_steps=20_000, burn_in=0, thin=1)
    run.save(tmp_path / "run.npz")
    with zipfile.ZipFile(tmp_path / "run.npz") as archive:
        kinds = {
            item.filename: (item.compress_type, item.compress_size / item.file_size) for item in archive.infolist()
        }
    assert kinds["replica_draws.npy"][0] == zipfile.ZIP_STORED
    assert kinds["steps.npy"][0] == kinds["statistics.swaps.npy"][0] == zipfile.ZIP_DEFLATED
    assert kinds["statistics.swaps.npy"][1] < 0.7


def test_draws_are_stored_once(tmp_path):
    run = run_of(NAMED["sgld"], n_steps=50_000, burn_in=0, thin=1)
    for suffix in (".nc", ".zarr"):
        path = tmp_path / f"run{suffix}"
        run.save(path)
        size = sum(file.stat().st_size for file in files_of(path))
        energies = run.draws.nbytes / 2
        assert run.draws.nbytes + energies < size < 1.25 * (run.draws.nbytes + energies)


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


def test_penalties_and_boundaries_come_back(tmp_path):
    for boundary in (boundaries.reject(), boundaries.penalise(2.0), boundaries.reflect(max_bounces=3)):
        run = run_of(samplers.sgld(0.1, boundary=boundary))
        run.save(tmp_path / "run.npz")
        assert load(tmp_path / "run.npz").sampler == run.sampler
