"""What makes figures: what is measured anew and what is read back, verdicts, and the command line; on small scripts."""

import dataclasses
import importlib
import json
import math
import random
import sys

import numpy as np
import pytest

import figures.__main__ as command_line
from figures import cached, output, script, sources
from figures.cached import Measured, as_data, keep, load, read
from figures.claims import VERDICTS, Claim, check_claim
from figures.study import Record, Study
from targets import mixtures
from toolkit import CudaError, samplers

# Digests.

PACKAGE = {
    "figures/study.py": "from toolkit import sample\nclass Study:\n    sample = sample\n",
    "figures/style.py": 'DARK = "#000000"\n',
    "figures/rates.py": """from .deeper import DEEP
RATE = 0.5 * DEEP
UNUSED = 1
TABLE = {}
TABLE['a'] = 1
ROWS = []
ROWS.append(3)
try:
    from .fast import speed
except ImportError:
    speed = 1
""",
    "figures/deeper.py": "DEEP = 3\n",
    "figures/fast.py": "speed = 9\n",
    "figures/late.py": "def late():\n    return 4\n",
    "figures/other.py": "import numpy as np\nWIDTH = 5\ndef unused():\n    return 7\n",
    "figures/a_fig1.py": '''"""A figure."""
import numpy as np
from figures import Data, other, style
from figures.rates import RATE, ROWS, TABLE, speed
from targets import pair
COLOUR = "red"
SIZE = 100


def chosen(x):
    """Half of it."""
    return 0.5 * x


def measure(study):
    """Runs."""
    from .late import late
    return {"x": np.zeros(SIZE) + RATE + chosen(other.WIDTH) + late() + TABLE["a"] + len(ROWS) + speed + pair}


def draw(data):
    return style.DARK, COLOUR
''',
    "figures/__init__.py": "from .study import Study as Data\n",
    "toolkit/__init__.py": "sample = 1\n",
    "toolkit/table.npz": "1",
    "targets/__init__.py": "pair = 2\n",
    "targets/table.csv": "1,2\n",
    "sysid/__init__.py": "system = 3\n",
}
LEAVES = [  # file, what is there, what is put in its place
    ("a_fig1", 'COLOUR = "red"', 'COLOUR = "blue"'), ("a_fig1", "return style.DARK, COLOUR", "return COLOUR"),
    ("a_fig1", '"""Half of it."""', '"""A half of x."""'), ("a_fig1", '    """Runs."""\n', ""),
    ("a_fig1", "SIZE = 100", "SIZE = 100  # chains"), ("a_fig1", "0.5 * x", "(0.5\n            * x)"),
    ("a_fig1", '"""A figure."""', '"""Another."""'), ("style", "#000000", "#111111"),
    ("rates", "UNUSED = 1", "UNUSED = 2"), ("sysid/__init__", "3", "4"),
    ("a_fig1", "import RATE, ROWS, TABLE, speed", "import RATE, ROWS, TABLE, UNUSED, speed"),
]  # fmt: skip
CHANGES = [
    ("a_fig1", "np.zeros", "np.ones"), ("a_fig1", "SIZE = 100", "SIZE = 101"), ("a_fig1", "0.5 * x", "0.6 * x"),
    ("rates", "0.5", "0.6"), ("deeper", "3", "4"), ("late", "4", "5"), ("other", "WIDTH = 5", "WIDTH = 6"),
    ("rates", "TABLE['a'] = 1", "TABLE['a'] = 2"), ("rates", "append(3)", "append(4)"), ("fast", "9", "8"),
    ("study", "sample = sample", "sample = None"), ("toolkit/__init__", "1", "2"), ("toolkit/table.npz", "1", "2"),
    ("targets/__init__", "2", "3"), ("targets/table.csv", "1,2", "1,3"),
    ("a_fig1", "from targets import pair", "from toolkit import sample as pair"),
    ("a_fig1", "import RATE, ROWS, TABLE, speed", "import UNUSED as RATE, ROWS, TABLE, speed"),
]  # fmt: skip


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A small distribution, and its digest."""
    for name, text in PACKAGE.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    monkeypatch.setattr(sources, "HERE", tmp_path / "figures")

    def digest():
        sources.top_level.cache_clear()
        sources.stamp.cache_clear()
        sources.source_stamp.cache_clear()
        return sources.digest("a_fig1", "measure")

    yield tmp_path, digest
    sources.top_level.cache_clear()
    sources.stamp.cache_clear()


def edit(folder, name, old, new):
    path = folder / (name if "/" in name else f"figures/{name}")
    path = path if path.suffix else path.with_suffix(".py")
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.mark.parametrize(("name", "old", "new"), LEAVES)
def test_look_and_words_leave_the_digest(package, name, old, new):
    folder, digest = package
    before = digest()
    edit(folder, name, old, new)
    assert digest() == before


@pytest.mark.parametrize(("name", "old", "new"), CHANGES)
def test_whatever_numbers_are_made_of_changes_the_digest(package, name, old, new):
    folder, digest = package
    before = digest()
    edit(folder, name, old, new)
    assert digest() != before


def test_versions_of_what_computes_are_in_it(package, monkeypatch):
    _, digest = package
    before = digest()
    for package_of_others in ("numba", "numpy", "scipy"):
        monkeypatch.setattr(sources, "version", lambda name, p=package_of_others: "9" if name == p else version(name))
        assert digest() != before
    monkeypatch.setattr(sources, "version", lambda name: "9" if name == "matplotlib" else version(name))
    assert digest() == before


version = sources.version


def test_the_key_of_real_scripts_is_of_their_engine_and_settings(monkeypatch):
    found = script("r2sgld_fig1_trajectory")
    keys = {found.key(Study(quick=quick, seed=seed, backend=backend))
            for quick in (True, False) for seed in (0, 1) for backend in ("cpu", "cuda")}  # fmt: skip
    assert len(keys) == 8
    monkeypatch.setattr(sources, "stamp", lambda package: f"other {package}")
    assert found.key(Study()) not in keys
    parts = {}
    sources.follow("figures.r2sgld_fig1_trajectory", "measure", parts)
    assert {"toolkit", "targets", "figures.r2sgld_fig1_trajectory.SHAPE"} <= parts.keys()
    assert not any("style" in name or name.endswith(".draw") for name in parts)


# Data on disk.

RECORD = Record("a", "sgld", "pair", 4, 1, 1_000, 100, 10, 7, 4_000, 0.5)
DATA = as_data({"numbers": np.arange(12.0).reshape(3, 4), "flag": True, "names": ["a", "β"], "n": 3})
MEASURED = Measured(DATA, [RECORD], 1.25)


def same(one, other):
    return one.records == other.records and one.seconds == other.seconds and all(
        one.data[name].dtype == array.dtype and (one.data[name] == array).all() for name, array in other.data.items()
    )  # fmt: skip


def test_data_come_back_as_they_were(tmp_path):
    path = tmp_path / "data" / "x.npz"
    keep(path, "key", MEASURED)
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
    keep(path, "key", MEASURED)
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
    keep(path, "key", MEASURED)
    before = path.read_bytes()

    def half(file, **arrays):
        file.write(b"half")
        raise error

    monkeypatch.setattr(cached.np, "savez_compressed", half)
    with pytest.raises(type(error)):
        keep(path, "new key", MEASURED)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["x.npz"]


@pytest.mark.parametrize("value", [None, {"a": 1}, [1, "a", None], 1j, np.datetime64("2020-01-01")])
def test_data_are_numbers_booleans_or_text(value):
    with pytest.raises(TypeError, match="x must be an array of numbers, booleans or text"):
        as_data({"x": value})


# Claims.


@pytest.mark.parametrize(
    ("claim", "verdict", "ratio"),
    [
        (Claim("ESS", 100.0, 150.0, 10.0, "higher"), "better", 1.5),
        (Claim("ESS", 100.0, 50.0, 10.0, "higher"), "worse", 0.5),
        (Claim("KL", 0.5, 0.25, 0.01, "lower"), "better", 0.5),
        (Claim("KL", 0.5, 0.75, 0.01, "lower"), "worse", 1.5),
        (Claim("KL", 0.5, 0.519, 0.01, "lower"), "equal within error", 1.038),
        (Claim("KL", 0.5, 0.521, 0.01, "lower"), "worse", 1.042),
        (Claim("KL", 0.5, 0.55, 0.01, "lower", printed_error=0.03), "equal within error", 1.1),
        (Claim("rho", 9.0, 11.0, 0.1, 10.5), "better", 11.0 / 9.0),
        (Claim("rho", 10.0, 12.0, 0.1, 10.5), "worse", 1.2),
        (Claim("rho", 10.0, 12.0, 0.1, 12), "better", 1.2),
        (Claim("KL", math.nan, 0.5, 0.01, "lower"), "not printed", math.nan),
        (Claim("swaps", 0.0, 0.5, 0.01, "higher"), "better", math.nan),
        (Claim("modes", 25.0, 25.0, 0.0, "higher"), "equal within error", 1.0),
        (Claim("ratio", 1.0, 1.5, 0.1, "higher", in_words=True), "as claimed", math.nan),
        (Claim("ratio", 1.0, 0.5, 0.1, "higher", in_words=True), "not as claimed", math.nan),
        (Claim("ratio", 1.0, 0.5, 0.1, "lower", in_words=True), "as claimed", math.nan),
        (Claim("ratio", 1.0, 1.1, 0.1, "higher", in_words=True), "equal within error", math.nan),
    ],
)
def test_verdicts(claim, verdict, ratio):
    assert check_claim(claim) is claim
    assert claim.verdict == verdict in VERDICTS
    assert claim.ratio == pytest.approx(ratio, nan_ok=True)


GOOD = Claim("KL", 0.5, 0.25, 0.01, "lower")


@pytest.mark.parametrize(
    "change",
    [
        {"what": ""},
        {"aim": "more"},
        {"aim": math.nan},
        {"ours": math.nan},
        {"error": math.inf},
        {"error": -0.1},
        {"aim": 0.5, "in_words": True},
    ],
)
def test_claims_that_say_nothing_are_refused(change):
    with pytest.raises(ValueError, match="must be"):
        check_claim(GOOD._replace(**change))


# The command line.

SCRIPT = '''"""Small figure {name}.

A caption of
two lines.
"""
import matplotlib.pyplot as plt
from figures import Claim

SEED = 5


def measure(study):
    """Counts how often it is called."""
    with open({log!r}, "a") as file:
        print({name!r}, study.seed, study.quick, study.backend, file=file)
    {body}
    return {{"x": [float(study.seed)]}}


def draw(data):
    return plt.figure(figsize=(0.2, 0.1 * len(data["x"])))


def table(data):
    return [{{"x": float(data["x"][0])}}]


def compare(data):
    {compare}
    return [Claim("x", 1.0, float(data["x"][0]), 0.1, "higher")]
'''


@pytest.fixture
def scripts(tmp_path, monkeypatch):
    """Three small scripts in a folder of their own, of which the second fails; out, and who was measured so far."""
    here, log, out = tmp_path / "figures", tmp_path / "log", tmp_path / "out"
    here.mkdir()
    log.touch()
    package = importlib.import_module("figures")
    for name, body in (("csgld_fig1", ""), ("csgld_fig2", "1 / 0"), ("csgld_fig10", "")):
        (here / f"{name}.py").write_text(SCRIPT.format(name=name, log=str(log), body=body or "pass", compare="pass"))
        monkeypatch.delitem(sys.modules, f"figures.{name}", raising=False)
        monkeypatch.delattr(package, name, raising=False)
    (here / "csgld_helpers.py").write_text("1 / 0\n")  # no figure
    module = importlib.import_module("figures.script")
    monkeypatch.setattr(module, "HERE", here)
    monkeypatch.setattr(package, "__path__", [str(here), *package.__path__])
    monkeypatch.setattr(module, "digest", lambda name, function: f"digest of {name}")
    yield out, lambda: log.read_text().splitlines()
    for name in ("csgld_fig1", "csgld_fig2", "csgld_fig10"):
        sys.modules.pop(f"figures.{name}", None)


def run(out, *arguments):
    return command_line.main(["run", *arguments, "--out", str(out)])


def test_list_names_every_script_in_order(scripts, capsys):
    assert command_line.main(["list"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "csgld_fig1   Small figure csgld_fig1", "csgld_fig2   Small figure csgld_fig2",
        "csgld_fig10  Small figure csgld_fig10",
    ]  # fmt: skip


def test_one_is_run_and_then_read_back(scripts, capsys):
    out, measured = scripts
    assert run(out, "csgld_fig1") == 0
    assert "csgld_fig1: measured and drawn" in capsys.readouterr().out
    assert sorted(path.name for path in out.iterdir()) == ["csgld_fig1.csv", "csgld_fig1.pdf", "csgld_fig1.png", "data"]
    first = {path.name: path.read_bytes() for path in out.glob("csgld*")}
    assert run(out, "csgld_fig1") == 0
    assert "csgld_fig1: read back and drawn" in capsys.readouterr().out
    assert first == {path.name: path.read_bytes() for path in out.glob("csgld*")}
    assert measured() == ["csgld_fig1 5 False cpu"]
    assert run(out, "csgld_fig1", "--fresh") == 0
    assert len(measured()) == 2


def test_without_a_gpu_no_figure_is_begun(scripts, monkeypatch, capsys):
    def none_is_found():
        raise CudaError("none is found")

    out, _ = scripts
    monkeypatch.setattr(command_line, "check_cuda", none_is_found)
    with pytest.raises(SystemExit) as ended:
        run(out, "csgld_fig1", "--backend", "cuda")
    assert ended.value.code == 2
    assert "error: none is found" in capsys.readouterr().err
    assert not out.exists() or not list(out.glob("*.png"))


def test_seed_size_and_backend_reach_the_script(scripts, monkeypatch):
    monkeypatch.setattr(command_line, "check_cuda", lambda: None)
    out, measured = scripts
    assert run(out, "csgld_fig1", "--seed", "77", "--quick") == 0
    assert run(out, "csgld_fig1", "--seed", "0", "--backend", "cuda") == 0
    assert measured() == ["csgld_fig1 77 True cpu", "csgld_fig1 0 False cuda"]
    assert (out / "csgld_fig1.csv").read_text() == "x\n0\n"
    assert run(out, "csgld_fig1") == 0  # other seed, other data
    assert len(measured()) == 3


def test_damaged_data_are_measured_anew(scripts):
    out, measured = scripts
    run(out, "csgld_fig1")
    path = out / "data" / "csgld_fig1.npz"
    path.write_bytes(path.read_bytes()[:-30])
    run(out, "csgld_fig1")
    assert len(measured()) == 2
    assert read(path)[1].data["x"] == [5.0]


def test_one_that_fails_does_not_stop_the_others(scripts, capsys):
    out, measured = scripts
    assert run(out) == 1
    said = capsys.readouterr()
    assert [line.split()[0] for line in measured()] == ["csgld_fig1", "csgld_fig2", "csgld_fig10"]
    assert "csgld_fig2 failed" in said.out
    assert "ZeroDivisionError" in said.out
    assert said.err.rstrip().endswith("failed: csgld_fig2")
    assert (out / "csgld_fig10.png").exists()
    assert not (out / "csgld_fig2.png").exists()
    assert not (out / "data" / "csgld_fig2.npz").exists()


def test_all_and_report_say_at_the_end_what_failed(scripts, capsys, monkeypatch):
    out, _ = scripts
    monkeypatch.setattr(output, "OUT", out)
    assert command_line.main([]) == 1
    assert capsys.readouterr().err.rstrip().endswith("failed: csgld_fig2")
    assert (out / "report.html").exists()
    assert command_line.main(["report", "--out", str(out)]) == 0
    assert command_line.main(["report", "--out", str(out / "nowhere")]) == 1
    assert "no figure has been produced" in capsys.readouterr().err


def test_numbers_that_cannot_be_compared_are_a_failure(scripts, capsys, tmp_path):
    out, _ = scripts
    path = tmp_path / "figures" / "csgld_fig1.py"
    path.write_text(path.read_text().replace('data["x"][0]), 0.1', 'data["x"][0]), float("nan")'))
    assert run(out, "csgld_fig1") == 1
    assert "x: ours and its error must be finite" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["run", "csgld_fig3"], ["run", "csgld_helpers"], ["draw"],
                                       ["run", "--seed", "x"], ["run", "--backend", "tpu"]])  # fmt: skip
def test_what_is_not_there_is_said_before_anything_runs(scripts, capsys, arguments):
    with pytest.raises(SystemExit) as ended:
        command_line.main(arguments)
    assert ended.value.code == 2
    assert arguments[-1] in capsys.readouterr().err
    assert scripts[1]() == []


def test_a_script_by_itself_is_produced(scripts, capsys, monkeypatch, tmp_path):
    out, _ = scripts
    module = importlib.import_module("figures.script")
    monkeypatch.setattr(output, "OUT", out)
    module.run_script(str(tmp_path / "figures" / "csgld_fig1.py"))
    assert capsys.readouterr().out.split() == [str(out / f"csgld_fig1.{kind}") for kind in ("png", "pdf", "csv")]
    found = script("csgld_fig1")
    assert (found.title, found.caption, found.paper, found.differs) == (
        "Small figure csgld_fig1", "A caption of two lines.", "csgld", "",
    )  # fmt: skip
    with pytest.raises(ValueError, match=r"there is no figure 'x'; there are: csgld_fig1, csgld_fig2, csgld_fig10"):
        script("x")


def test_an_interrupted_run_ends_the_study_and_leaves_no_data():
    """Its draws are fewer than were asked for, and must not be kept as if they were all."""
    study = Study(seed=3)
    run = study.sample("whole", mixtures.unequal_pair(), samplers.sgld(0.1), n_steps=10)
    assert [record.label for record in study.records] == ["whole"]
    with pytest.raises(KeyboardInterrupt):
        study.note("part", dataclasses.replace(run, interrupted=True))
    assert len(study.records) == 1
