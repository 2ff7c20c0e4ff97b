"""Machine code is compiled once, kept on disk, and never stale; a user's own target compiles alone."""

import compileall
import importlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from py_compile import PycInvalidationMode

import numpy as np
import pytest
from numba import config, njit, types
from numba.core.caching import IndexDataCacheFile
from numba.core.dispatcher import Dispatcher

import toolkit
from targets import mixtures
from toolkit import Layout, Target, sample, samplers
from toolkit._compiler import decorators, disk_cache
from toolkit._compiler.code_walk import constant
from toolkit._compiler.decorators import compile_part
from toolkit._compiler.disk_cache import CodeFile, Reads, cache_stamp
from toolkit._engine.loop import advance
from toolkit._engine.state import ADVANCE

ROOT = Path(__file__).resolve().parents[3]

SCRIPT = """
import time
import toolkit
from numba.core import event
compiled = []
class Listener(event.Listener):
    def on_start(self, e):
        compiled.append(str(e.data["dispatcher"].py_func.__name__))
    def on_end(self, e):
        pass
with event.install_listener("numba:compile", Listener()):
    from targets import mixtures
    from toolkit import sample, samplers
    run = sample(mixtures.gaussian_mixture([[0.0]], 1.0), samplers.sgld(0.1), n_steps=3, seed=1)
print(repr(run.draws.tolist()), ",".join(sorted(set(compiled))), toolkit.__file__, sep="\\n")
"""
PART = (
    SCRIPT.replace("samplers.sgld(0.1), n_steps=3, seed=1)", "")
    .replace(
        "run = sample(mixtures.gaussian_mixture([[0.0]], 1.0), ",
        "run = mixtures.gaussian_mixture([[0.0], [3.0]], 1.0).evaluate([[0.7]])",
    )
    .replace("run.draws.tolist()", "[part.tolist() for part in run]")
)  # one target alone, which compiles in a second; the whole engine takes half a minute


@pytest.fixture
def copy(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kept"))
    for package in ("toolkit", "targets"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
        # Processes need not do it anew, and find an edit by the text of a file.
        compileall.compile_dir(tmp_path / package, quiet=1, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
    return tmp_path


def run_in(folder, script=SCRIPT):
    """What a new process says, importing the packages of ``folder``."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    result = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    draws, compiled, file = result.stdout.strip().splitlines()
    assert Path(file).is_relative_to(folder)
    return draws, set(compiled.split(",")) - {""}


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["one target", "engine"])
def test_an_edit_of_another_file_is_never_answered_from_the_cache(copy, whole):
    """Cached code depends on files Numba does not watch: an edit of each shows in the next process."""
    script = SCRIPT if whole else PART
    first, compiled = run_in(copy, script)
    assert ({"advance"} if whole else set()) | {"gaussian_mixture_block"} <= compiled  # others perhaps beside it
    again, compiled = run_in(copy, script)
    assert again == first
    assert not compiled  # all came from the disk
    edits = {
        "toolkit/maths/philox.py": ("radius * cosine, radius * sine", "2.0 * radius * cosine, radius * sine"),
        "toolkit/maths/elementary.py": ("return fma(p, scale, scale)", "return fma(p, scale, 2.0 * scale)"),
        "targets/mixtures/gaussian.py": ("total[lane] = 2.0 * precision", "total[lane] = 3.0 * precision"),
    }
    del edits["toolkit/maths/elementary.py" if whole else "toolkit/maths/philox.py"]  # which would not show
    seen = {first}
    for file, (old, new) in edits.items():
        path = copy / file
        stamp = path.stat()
        source = path.read_text(encoding="utf-8")
        assert old in source, file
        path.write_text(source.replace(old, new), encoding="utf-8")
        os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))  # not even the time tells
        edited, compiled = run_in(copy, script)
        assert "advance" in compiled or not whole or file.startswith("targets"), file
        assert compiled, file
        assert edited not in seen, file
        seen.add(edited)
        path.write_text(source, encoding="utf-8")
    assert run_in(copy, script)[0] == first


def test_new_numbers_compile_nothing(monkeypatch):
    made = []
    monkeypatch.setattr(decorators, "cache_stamp", lambda function: made.append(function) or cache_stamp(function))
    problem = mixtures.gaussian_mixture([[0.0]], 1.0)
    sample(problem, samplers.sgld(0.1), n_steps=3, seed=1)
    sample(problem, samplers.resgld((0.1, 0.2), temperatures=(1.0, 3.0)), n_steps=3, seed=1)
    made.clear()
    for step_size in (0.2, 0.3):
        sample(mixtures.gaussian_mixture([[1.0], [2.0]], step_size), samplers.sgld(step_size), n_steps=3, seed=1)
        sample(problem, samplers.resgld((0.1, step_size), temperatures=(1.0, 2.0), energy_noise=1.0), n_steps=3, seed=1)
    assert made == []


def test_the_engine_has_one_signature_for_all_targets():
    engine = compile_part(advance, ADVANCE)
    assert len(engine.signatures) == 1

    def block(position, energy, gradient, parameters, scratch):
        for lane in range(position.shape[1]):
            energy[lane] = 0.5 * position[0, lane] ** 2
            gradient[0, lane] = position[0, lane]

    mine = Target("mine", 1, block)
    theirs = mixtures.gaussian_mixture([[0.0]], 1.0)
    runs = [sample(target, samplers.sgld(0.1), n_steps=50, n_chains=20, seed=2) for target in (mine, theirs)]
    assert compile_part(advance, ADVANCE) is engine
    assert len(engine.signatures) == 1
    np.testing.assert_allclose(runs[0].draws, runs[1].draws, rtol=1e-12, atol=1e-14)


def test_the_imported_package_is_this_checkout():
    assert Path(toolkit.__file__).resolve().parent == ROOT / "toolkit"


@pytest.mark.cases(0)
def test_an_edit_of_another_package_is_seen(tmp_path, monkeypatch):
    """A block function of one package that calls a kernel of another: an edit of either recompiles it."""
    for name, source in {
        "bb": "from toolkit._compiler.decorators import inlined\n@inlined\ndef slope(x):\n"
        "    return FACTOR * x\nFACTOR = 1.0\n",
        "aa": (
            "from bb import slope\nfrom toolkit import Target\n"
            "def block(position, energy, gradient, parameters, scratch):\n"
            "    for lane in range(position.shape[1]):\n"
            "        energy[lane] = 0.0\n        gradient[0, lane] = slope(position[0, lane])\n"
            "target = Target('t', 1, block)\n"
        ),
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(source, encoding="utf-8")
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    script = "from aa import target; print(target.evaluate([[7.0]])[1].item())"

    def gradient():
        environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
        command = [sys.executable, "-c", script]
        return float(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)

    assert [gradient(), gradient()] == [7.0, 7.0]
    assert list((tmp_path / "aa" / "__pycache__").glob("*.nbc"))
    path = tmp_path / "bb" / "__init__.py"
    path.write_text(path.read_text(encoding="utf-8").replace("FACTOR * x", "FACTOR * x * x"), encoding="utf-8")
    assert gradient() == 49.0


@pytest.mark.slow
def test_files_that_are_not_what_they_are_called_are_not_run(copy):
    first, _ = run_in(copy, PART)
    (file,) = (copy / "kept").rglob("*.gaussian_mixture_block*.nbc")
    run_in(copy, PART.replace("gaussian_mixture([[0.0], [3.0]], 1.0)", "cosine25()").replace("[[0.7]]", "[[0.7, 0.0]]"))
    (other,) = (copy / "kept").rglob("*.cosine*.nbc")
    kept = file.read_bytes()
    flipped = bytearray(kept)
    flipped[len(kept) // 2] ^= 1  # within the machine code: it would be run
    for damaged in (other.read_bytes(), kept[: len(kept) // 2], b"", bytes(flipped)):
        file.write_bytes(damaged)
        again, compiled = run_in(copy, PART)
        assert again == first
        assert "gaussian_mixture_block" in compiled
    assert not run_in(copy, PART)[1], "and a good one takes their place"


def test_whichever_bit_is_another_the_file_is_not_read(tmp_path):
    """Every byte of a file is under its SHA-256, which is looked at before anything is unpickled."""
    files = CodeFile(IndexDataCacheFile(str(tmp_path), "part", "stamp"))
    files.save("key", {"code": bytes(range(256))})
    (path,) = tmp_path.iterdir()
    kept = path.read_bytes()
    assert files.load("key") == {"code": bytes(range(256))}
    for place in range(len(kept)):
        path.write_bytes(kept[:place] + bytes([kept[place] ^ 1 << place % 8]) + kept[place + 1 :])
        assert files.load("key") is None, place
    path.write_bytes(kept + b"\0")
    assert files.load("key") is None
    path.write_bytes(kept)
    assert files.load("key") is not None


CONFIGURED = {
    "__init__": "",
    "sub/__init__": "",
    "sub/config": "K = 1.0\n",
    "other": "K = 2.0\n",
    "code": """import math
import cmath
from math import sin as wave
from numba import njit
from kin import sub, other
import kin.sub.config
import kin
FLAG = True
ROWS = (1.0, (2.0, 3.0))
f = math.sin if FLAG else math.cos
if FLAG:
    @njit
    def helper(x):
        return x + 1.0
else:
    @njit
    def helper(x):
        return x + 2.0
@njit(fastmath=False)
def plain(x, *, by=1.0):
    return by * x
def block(x, y=4.0):
    def inner(z):
        return z - 1.0
    return (
        math.sin(x) + f(x) + wave(x) + kin.sub.config.K + sub.config.K + helper(x) + plain(x, by=2.0)
        + ROWS[1][0] + inner(x) + abs(x) + y
    )
""",
}
EDITS = {  # of which a compiler makes other code
    "a function of math": ("code", "math.sin(x)", "math.cos(x)"),
    "a nested constant": ("sub/config", "1.0", "5.0"),
    "an alias": ("code", "FLAG = True", "FLAG = 0"),
    "an alias in an import": ("code", "sin as wave", "cos as wave"),
    "a helper's branch": ("code", "if FLAG:", "if not FLAG:"),
    "a builtin shadowed": ("code", "FLAG = True", "FLAG = True\nabs = math.sqrt"),
    "a builtin": ("code", "abs(x)", "int(x)"),
    "another module": ("code", "sub.config.K + sub", "sub.config.K + other.K + sub"),
    "options of a helper": ("code", "fastmath=False", "fastmath=True"),
    "a default by name": ("code", "by=1.0", "by=3.0"),
    "an argument by name": ("code", "by=2.0", "by=3.0"),
    "a number in a nested tuple": ("code", "(2.0, 3.0)", "(2.5, 3.0)"),
    "a function inside": ("code", "z - 1.0", "z - 2.0"),
}


def forget_kin():
    for name in [name for name in sys.modules if name.partition(".")[0] == "kin"]:
        del sys.modules[name]


@pytest.fixture
def kin(tmp_path, monkeypatch):
    """Writes a file of a package, and imports ``kin.code.block`` of it anew."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def imported(file, text):
        (tmp_path / "kin" / f"{file}.py").write_text(text, encoding="utf-8")
        forget_kin()
        importlib.invalidate_caches()
        return importlib.import_module("kin.code").block

    (tmp_path / "kin" / "sub").mkdir(parents=True)
    for name, content in CONFIGURED.items():
        (tmp_path / "kin" / f"{name}.py").write_text(content, encoding="utf-8")
    yield imported
    forget_kin()


@pytest.mark.parametrize("what", EDITS)
def test_whatever_a_compiler_reads_is_part_of_the_key(what, kin):
    """Of code in memory, whatever the files say: an edit between import and compilation is filed apart."""
    first, again = (Reads(kin("code", CONFIGURED["code"])) for _ in range(2))
    assert first.contents == again.contents
    assert not first.objects
    assert {"kin.code", "kin.sub.config"} <= first.modules
    file, before, after = EDITS[what]
    assert before in CONFIGURED[file]
    assert Reads(kin(file, CONFIGURED[file].replace(before, after))).contents != first.contents


def test_what_may_be_another_than_its_file_or_cannot_be_known_is_not_kept(kin, monkeypatch):
    block = kin("code", CONFIGURED["code"])
    assert cache_stamp(block) is None, "its file is younger than this process, whose memory may hold an older one"
    monkeypatch.setattr(disk_cache, "START", time.time() + 60.0)
    disk_cache.is_edited.cache_clear()
    assert cache_stamp(block) is not None
    assert cache_stamp(kin("sub/config", "K = object()\n")) is None


def test_two_functions_of_one_name_are_told_apart():
    """f, g and h are one of two functions of the same name, which differ in a constant."""

    def made(number):
        return njit(eval(f"lambda x: x + {number}"))

    def contents(order):
        helpers = [made(1.0), made(2.0)]
        f, g, h = (helpers[i] for i in order)
        return tuple(Reads(lambda x: f(x) + g(x) * h(x)).contents)

    orders = [(0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1), (1, 0, 0), (1, 1, 0), (1, 0, 1), (1, 1, 1)]
    assert len({contents(order) for order in orders}) == len(orders)


@pytest.mark.slow
def test_a_disk_without_room_is_no_error(copy):
    expected, _ = run_in(copy, PART)
    shutil.rmtree(copy / "kept")
    full = """
from numba.core import caching
def refuse(*arguments):
    raise OSError(28, "No space left on device")
caching.IndexDataCacheFile._open_for_write = refuse
"""
    assert run_in(copy, full + PART)[0] == expected


@pytest.mark.slow
def test_where_nothing_can_be_kept_it_compiles_all_the_same(copy):
    nowhere = "from numba.core.caching import FunctionCache\nFunctionCache._impl_class._locator_classes = []\n"
    expected, _ = run_in(copy, PART)
    again, compiled = run_in(copy, nowhere + PART)
    assert again == expected
    assert "gaussian_mixture_block" in compiled


@pytest.mark.cases(0)
def test_an_edit_after_the_import_is_not_filed_under_the_new_source(copy):
    """A process that imported before an edit and compiles after it leaves no old code for the next one."""
    script = PART.replace("import toolkit\n", "import toolkit, pathlib\nEDIT\n", 1)
    edit = """
path = pathlib.Path(toolkit.__file__).parent / "maths" / "elementary.py"
source = path.read_text(encoding="utf-8")
path.write_text(source.replace("return fma(p, scale, scale)", "return fma(p, scale, 2.0 * scale)"), encoding="utf-8")
"""
    before, _ = run_in(copy, script.replace("EDIT", edit))
    after, compiled = run_in(copy, PART)
    assert "gaussian_mixture_block" in compiled
    assert after != before
    shutil.rmtree(copy / "kept")
    assert run_in(copy, PART)[0] == after


def test_arrays_and_tuples_are_part_of_the_key():
    first, second = np.arange(4.0), np.arange(4.0)
    assert constant(first) == constant(second)
    second[3] = 7.0
    assert constant(first) != constant(second)
    assert constant((1.0, 2.0)) != constant((1.0, 3.0))


def test_global_numbers_are_part_of_the_key():
    from toolkit.boundaries import polygon

    before = cache_stamp(polygon.list_pieces)
    polygon.LEVELS += 1
    try:
        assert cache_stamp(polygon.list_pieces) != before
    finally:
        polygon.LEVELS -= 1
    assert cache_stamp(polygon.list_pieces) == before


def test_what_is_around_a_function_and_its_defaults_are_part_of_the_key():
    def about(around=1.0, default=1.0, named=1.0, held=1.0, within=1.0):
        @njit
        def callee(x):
            return held * x

        functions = (callee,)

        def block(x, y=default, *, z=named):
            inner = [around * a for a in (x, y, z)]
            return inner[0] + functions[0](x) + (lambda a: a * within)(x)

        return Reads(block).contents

    assert about() == about()
    for name in ("around", "default", "named", "held", "within"):
        assert about(**{name: 2.0}) != about(), name


def test_a_script_has_no_stamp_of_a_package():
    assert cache_stamp(lambda x: x) is None


def test_where_numba_may_not_compile_the_first_call_says_so(monkeypatch):
    monkeypatch.setattr(config, "DISABLE_JIT", 1)
    with pytest.raises(RuntimeError, match="NUMBA_DISABLE_JIT is set"):
        compile_part(lambda x: x, types.float64(types.float64))


def test_a_call_of_the_engine_asks_python_for_no_type_and_makes_none(monkeypatch):
    """Numba would ask for that of each part, and for its address, at every call: 60 µs for each block."""
    asked, made = [], []
    ask, make = Dispatcher.typeof_pyval, types.FunctionType.__init__

    def note_asked(self, value):
        asked.append(value)
        return ask(self, value)

    def note_made(self, *arguments):
        made.append(self)
        make(self, *arguments)

    monkeypatch.setattr(Dispatcher, "typeof_pyval", note_asked)
    monkeypatch.setattr(types.FunctionType, "__init__", note_made)
    counts = []
    for n_chains in (1, 16, 160):
        asked.clear()
        made.clear()
        sample(
            mixtures.cosine25(), samplers.sgld(1e-3), n_steps=2, n_chains=n_chains, seed=1, layout=Layout(lanes=8),
            threads=1,
        )  # fmt: skip
        counts.append((len(asked), len(made)))
    assert counts[1:] == [(0, 0), (0, 0)]


@pytest.mark.skipif(os.name == "nt", reason="has rights of another kind")
def test_a_folder_where_others_may_write_is_not_used(tmp_path, monkeypatch):
    """What is in a cache folder is run as code."""
    source, kept = tmp_path / "module.py", tmp_path / "kept"
    source.touch()
    kept.mkdir(mode=0o700)
    assert disk_cache.others_who_may_write.__wrapped__(kept, source) == ""
    for mode, who in ((0o777, "everyone"), (0o702, "everyone"), (0o1777, "everyone"), (0o770, "group 12345")):
        for folder in (kept, kept / "below"):
            folder.mkdir(exist_ok=True)
            if who != "everyone":
                monkeypatch.setattr(disk_cache, "is_private_group", lambda group, user: False)
                who = f"group {kept.stat().st_gid}"
            kept.chmod(mode)
            is_shared = mode == 0o1777 and folder != kept
            assert disk_cache.others_who_may_write.__wrapped__(folder, source).startswith("" if is_shared else who)
            assert bool(disk_cache.others_who_may_write.__wrapped__(folder, source)) is not is_shared
    kept.chmod(0o700)
    assert disk_cache.others_who_may_write.__wrapped__(kept, tmp_path / "cell.py") == ""  # of a notebook: has no file
    if os.getuid() == 0:
        os.chown(kept, 12345, -1)
        assert disk_cache.others_who_may_write.__wrapped__(kept, source).startswith("user 12345, who owns")
        os.chown(source, 12345, -1)  # who may write the sources runs code in any case
        assert disk_cache.others_who_may_write.__wrapped__(kept, source) == ""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="has rights of another kind")
def test_where_others_may_write_it_warns_once_and_keeps_nothing(tmp_path):
    code = "from targets import mixtures; print(mixtures.cosine25().evaluate([[0.5, 0.5]])[0].item())"
    said = []
    for mode in (0o700, 0o777):
        tmp_path.chmod(mode)
        done = subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}, capture_output=True,
            text=True, check=True,
        )  # fmt: skip
        files = {file for file in tmp_path.rglob("*") if file.is_file()}
        said.append((done.stdout, done.stderr.count("RuntimeWarning"), len(files)))
    assert said[0][0] == said[1][0]
    assert [count for _, count, _ in said] == [0, 1]
    assert said[0][2] == said[1][2] > 0
