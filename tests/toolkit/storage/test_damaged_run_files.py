"""What is in a file and no run of ours, torn, edited, forged, foreign or a bomb, is refused, and nothing is run."""

import json
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tests.support.saving_cases import FORMATS, NAMED, assert_same_run, files_of, run_of, saved
from toolkit import LoadError, load
from toolkit._output.storage.formats import write_npz
from toolkit._output.storage.run_contents import Contents, contents_of

pytestmark = [
    pytest.mark.usefixtures("unflushed"),
    pytest.mark.filterwarnings("ignore::toolkit.ContourWarning"),  # runs too short for θ
]


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


@pytest.mark.cases(2)
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
    from toolkit._output.storage.formats import as_bytes, as_text, read_npz

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


CHANGED = {
    "energies": lambda a: a[:, :, :-1], "init": lambda a: a[:, :1], "counts.status": lambda a: np.zeros((3, 2), int),
    "counts.accepted": lambda a: a + 10**6, "counts.attempted": lambda a: -a - 1, "statistics.swaps": lambda a: a[:1],
    "steps": lambda a: a[::-1].copy(), "replica_draws": lambda a: a[:1], "counts.correction": lambda a: a[:, :0],
    "counts.theta": lambda a: np.zeros((2, 5)), "counts.round_trips": lambda a: a[:1],
    "counts.bounces": lambda a: a + 0.5,
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGED)
def test_arrays_that_do_not_fit_each_other_are_refused(name, tmp_path):
    """Each other by shape, kind or order, with a checksum that fits."""
    run, path = saved(".npz", tmp_path)
    whole = contents_of(run)
    entry = json.loads(whole.header)
    for part in name.split("."):
        entry = entry[part]
    key = entry["$array"]
    write_npz(run, whole, path)
    load(path)
    write_npz(run, Contents(whole.header, {**whole.arrays, key: CHANGED[name](whole.arrays[key])}), path)
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
            for name in ("header", "checksum"):
                member = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()
                archive.writestr(f"{name}.npy", member)
        with pytest.raises(LoadError, match="not as long as it says"):
            load(path)


def test_a_path_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is nothing at"):
        load(tmp_path / "none.npz")
    with pytest.raises(FileNotFoundError, match="path must lie in a folder that is there"):
        run_of(NAMED["sgld"]).save(tmp_path / "no" / "run.npz")
