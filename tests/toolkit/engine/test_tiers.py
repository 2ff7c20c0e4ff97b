"""A long run goes on with a fused engine that another process has compiled: same bits, and no trace of the process."""

import os
import pickle
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
from numba.core.codegen import RuntimeLinker

import toolkit
from benchmarks.speed.chain_cases import EVERY_SAMPLER
from targets import mixtures
from toolkit import Layout, Problem, from_callable, sample, samplers, stream, target
from toolkit._compiler import other_process
from toolkit._compiler.disk_cache import content_stamp
from toolkit._compiler.other_process import OtherProcess, may_start_processes
from toolkit._compiler.pickling import portable
from toolkit._engine import tiers
from toolkit._engine.fused import engines_of, specifications
from toolkit._engine.job import make_job
from toolkit._engine.run_options import RunOptions
from toolkit._engine.settings import engine_numbers
from toolkit._engine.state import make_blocks
from toolkit._engine.tiers import Compilation, Tiers, digest_of, load_delivered
from toolkit.verification.bits import Case, arrays_of, first_difference, joined

GRID = mixtures.gaussian_grid25()
SGLD = samplers.sgld(1e-3)
CHUNK = 20
TIERS, GENERAL = Layout(chunk_steps=CHUNK), Layout(fused=False, chunk_steps=CHUNK)
AT_ONCE = 1e-12  # seconds
SLEEPS = "import time; time.sleep(600)"
ENDS_WITH_PARENT = """
import sys
sys.path.insert(0, sys.argv[1])
from toolkit._compiler.other_process import exit_after
exit_after(int(sys.argv[2]))
"""
AFTER_COMPILING = f"general, fused from step {3 * CHUNK}"  # chunks: measure; look on disk; start to compile; go on


def case_of(problem, sampler, chains=3, steps=120):
    start = np.random.default_rng(2).uniform(-0.2, 0.2, (chains, sampler.n_replicas, problem.target.dim))
    return Case(problem, sampler, steps, steps // 3, start, 7)


GRID_CASE = case_of(Problem(GRID), SGLD, chains=1)  # with the engine of tests in `test_fused`


def bowl(stiffness):
    """A target that no disk has, as its function is a closure."""

    @target(dim=2)
    def of_closure(x):
        return 0.5 * stiffness * (x[0] ** 2 + x[1] ** 2), (stiffness * x[0], stiffness * x[1])

    return of_closure


@pytest.fixture
def soon(monkeypatch):
    """Runs of any length are long, and the first look at the other process waits for its end."""
    for name in ("MEASURED", "LOADS", "COMPILES", "COMPILES_WITHOUT_CORE"):
        monkeypatch.setattr(tiers, name, AT_ONCE)

    def has_ended(self):
        return self._process.wait() is None

    monkeypatch.setattr(Compilation, "is_running", has_ended)
    monkeypatch.setattr(Compilation, "_failed", set())
    monkeypatch.setattr(tiers, "PROGRAM", tiers.PROGRAM.replace("os.nice(10)", "0"))  # as this test waits for it
    engines_of(GRID.energy_gradient).clear()


@pytest.fixture
def started(monkeypatch):
    """The numbers of the processes that are started."""
    pids, begin = [], Compilation.__init__

    def begin_and_note(self, *arguments):
        begin(self, *arguments)
        pids.append(self.pid)

    monkeypatch.setattr(Compilation, "__init__", begin_and_note)
    return pids


@pytest.fixture
def never_on_disk(monkeypatch):
    monkeypatch.setattr(tiers, "cache_on_disk", lambda function, stamp: None)


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def difference(case, run):
    return first_difference(arrays_of(case.run(layout=GENERAL)), arrays_of(run), run.steps)


def test_a_run_goes_on_with_an_engine_that_is_on_disk(soon):
    fused_run = GRID_CASE.run(layout=Layout(fused=True))  # on disk now
    assert fused_run.made_with["engine"] == "fused"
    engines_of(GRID.energy_gradient).clear()
    run = GRID_CASE.run(layout=TIERS)
    assert run.made_with["engine"] == f"general, fused from step {CHUNK}"
    assert difference(GRID_CASE, run) is None
    assert difference(GRID_CASE, fused_run) is None
    again = GRID_CASE.run(layout=TIERS)  # this process has it
    assert again.made_with["engine"] == "fused"
    assert difference(GRID_CASE, again) is None
    assert GRID_CASE.run(layout=GENERAL).made_with["engine"] == "general"


def test_streams_and_resumed_runs_change_engines(soon, tmp_path):
    GRID_CASE.run(layout=Layout(fused=True))
    expected = GRID_CASE.run(layout=GENERAL)
    engines_of(GRID.energy_gradient).clear()
    chunks = list(stream(GRID, SGLD, **GRID_CASE.arguments(layout=TIERS)))
    assert [run.made_with["engine"] for run in chunks[:2]] == ["general", f"general, fused from step {CHUNK}"]
    assert first_difference(arrays_of(expected), joined(chunks), expected.steps) is None
    for first, second, engine in (
        (TIERS, GENERAL, "general"),
        (GENERAL, TIERS, "general, fused from step 80"),
        (TIERS, TIERS, "general, fused from step 80"),
    ):
        file = {"checkpoint": tmp_path / f"{first.fused}{second.fused}.ckpt"}
        engines_of(GRID.energy_gradient).clear()
        GRID_CASE._replace(n_steps=60).run(layout=first, **file)
        engines_of(GRID.energy_gradient).clear()
        resumed = GRID_CASE.run(layout=second, **file)
        assert resumed.made_with["engine"] == engine
        assert first_difference(arrays_of(expected), arrays_of(resumed), expected.steps) is None


@pytest.mark.filterwarnings("ignore")  # runs this short settle nothing
@pytest.mark.slow
@pytest.mark.parametrize("name", ["sgld", "resgld × 2", "csgld"])
def test_a_run_goes_on_with_what_another_process_compiles(soon, started, never_on_disk, name):
    case = case_of(Problem(bowl(1.0 + len(name))), EVERY_SAMPLER[name])
    run = case.run(layout=TIERS)
    assert run.made_with["engine"] == AFTER_COMPILING
    assert difference(case, run) is None
    (pid,) = started
    assert not is_alive(pid)


@pytest.mark.slow
def test_blocks_of_two_widths_and_functions_of_packages(soon, started, monkeypatch):
    """Five chains in blocks of two; nothing is on disk the first time it is looked at, and the process writes it."""
    monkeypatch.setattr(tiers, "load_from_disk", lambda wanted: None)
    case = case_of(Problem(GRID), SGLD, chains=5)
    run = case.run(layout=TIERS._replace(lanes=2), threads=2)
    assert run.made_with["engine"] == AFTER_COMPILING
    assert difference(case, run) is None
    assert not is_alive(*started)


@pytest.mark.parametrize(
    "program",
    ["raise SystemExit(1)", "print('x' * 99)", "import pickle, sys; pickle.dump(('', [1]), sys.stdout.buffer)"],
)
def test_a_process_that_fails_leaves_the_general_engine(soon, started, never_on_disk, monkeypatch, program):
    monkeypatch.setattr(tiers, "PROGRAM", program)
    case = case_of(Problem(bowl(2.0)), SGLD)
    run = case.run(layout=TIERS)
    assert run.made_with["engine"] == "general"
    assert difference(case, run) is None
    case.run(layout=TIERS)
    assert len(started) == 1, "what failed once is not tried again"


@pytest.mark.parametrize("end", ["whole", "error", "closed stream", "Ctrl-C"])
def test_a_process_that_hangs_ends_with_the_run(soon, started, never_on_disk, monkeypatch, capfd, end):
    monkeypatch.setattr(tiers, "PROGRAM", SLEEPS)
    monkeypatch.setattr(Compilation, "is_running", lambda self: self._process.poll() is None)
    case = case_of(Problem(bowl(3.0)), SGLD)
    if end == "whole":
        assert difference(case, case.run(layout=TIERS)) is None
    elif end == "error":
        far = samplers.sgld(1.05)  # too large a step: a number overflows after some hundred steps
        with pytest.raises(toolkit.DivergenceError):
            case._replace(sampler=far, n_steps=10**6).run(layout=TIERS)
    elif end == "closed stream":
        chunks = stream(case.problem, SGLD, **case.arguments(layout=TIERS))
        for _ in range(4):
            next(chunks)
        assert is_alive(*started)
        chunks.close()
    else:
        monkeypatch.setattr(Compilation, "is_running", lambda self: os.kill(os.getpid(), signal.SIGINT) is None)
        with pytest.warns(toolkit.InterruptedWarning):
            run = sample(case.problem, SGLD, n_steps=10**9, thin=10**7, seed=1, layout=TIERS)
        assert run.interrupted
    (pid,) = started
    assert not is_alive(pid)
    assert capfd.readouterr() == ("", "")


ABANDONED = """
import os, signal, threading, time
from toolkit import Layout, samplers, stream, target
from toolkit._engine import tiers

tiers.MEASURED = tiers.LOADS = tiers.COMPILES = tiers.COMPILES_WITHOUT_CORE = 1e-12
tiers.PROGRAM = {program!r}

@target(dim=1)
def bowl(x):
    return 0.5 * x[0] * x[0], (x[0],)

chunks = stream(bowl, samplers.sgld(0.1), n_steps=10**6, seed=1, layout=Layout(chunk_steps=5))
for _ in range(4):
    next(chunks)
(compilation,) = tiers.Compilation._running
print(compilation.pid, flush=True)
threading.Thread(target=lambda held: time.sleep(600), args=(chunks,), daemon=True).start()  # so it is never closed
{last}
"""


@pytest.mark.parametrize(
    ("program", "last"),
    [(SLEEPS, ""), (ENDS_WITH_PARENT, "os.kill(os.getpid(), signal.SIGKILL)")],
    ids=["the interpreter's exit", "a parent that is killed"],
)
def test_no_process_survives(program, last):
    script = ABANDONED.format(program=program, last=last)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([os.getcwd(), *sys.path])}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    pid, waited = int(done.stdout), time.monotonic()
    while is_alive(pid) and time.monotonic() - waited < 60.0:
        time.sleep(0.1)
    assert not is_alive(pid)


OF_A_SCRIPT = """
import hashlib
from toolkit import Layout, sample, samplers, target
from toolkit._engine import tiers

STIFFNESS = 3.0
tiers.MEASURED = tiers.LOADS = tiers.COMPILES = tiers.COMPILES_WITHOUT_CORE = 1e-12
tiers.Compilation.is_running = lambda self: self._process.wait() is None
tiers.PROGRAM = tiers.PROGRAM.replace("os.nice(10)", "0")

@target(dim=2)
def own(x, y):
    return 0.5 * (x * x + STIFFNESS * y * y), (x, STIFFNESS * y)

for fused in (None, False):
    run = sample(own, samplers.sgld(0.1), n_steps=100, seed=1, layout=Layout(chunk_steps=20, fused=fused))
    print(run.made_with["engine"], hashlib.sha256(run.draws.tobytes()).hexdigest(), sep="|")
"""


def test_functions_of_a_script_are_sent_and_the_script_is_not_run(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(OF_A_SCRIPT.replace("3.0", repr(3.0 + time.time() % 1.0)))  # which no disk has
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([os.getcwd(), *sys.path])}
    for first_engine in (AFTER_COMPILING, f"general, fused from step {CHUNK}"):  # then it is on disk
        done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=True)
        (engine, found), (general, expected) = (line.split("|") for line in done.stdout.splitlines())
        assert (engine, general) == (first_engine, "general")
        assert found == expected
        assert done.stderr == ""


# When.


def tiers_of(monkeypatch, n_steps=10**9, may_end_early=False, is_part=False, threads=1, load=1.0):
    """Those of a run on two of four cores; what it does is noted in a list. load: of the machine."""
    done = []
    monkeypatch.setattr(other_process, "available_threads", lambda: 2)
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0), raising=False)
    monkeypatch.setattr(tiers, "load_from_disk", lambda wanted: done.append("looked"))
    monkeypatch.setattr(tiers, "start_compilation", lambda wanted: done.append("compiles"))
    job = SimpleNamespace(n_steps=n_steps, may_end_early=may_end_early, is_part=is_part)
    return Tiers(job, dict, threads), done


def test_a_run_is_long_by_its_speed_so_far(monkeypatch):
    one, done = tiers_of(monkeypatch)
    one.note(1000, tiers.MEASURED / 2)
    one.engines(1000)
    assert done == [], "too early to know"
    one.note(1000, tiers.MEASURED / 2)
    for left, expected in ((0.5, []), (1.5, ["looked"]), (11.0, ["looked"]), (13.0, ["looked", "compiles"])):
        one.engines(10**9 - round(left * 2000 / tiers.MEASURED))
        assert done == expected
    one.engines(2000)
    assert done == ["looked", "compiles"], "once only"


def test_a_run_that_may_end_early_lasts_as_long_again(monkeypatch):
    one, _ = tiers_of(monkeypatch, may_end_early=True)
    one.note(1000, 30.0)
    assert one.seconds_left(1000) == 30.0
    assert one.seconds_left(10**9 - 100) == 3.0


@pytest.mark.parametrize(
    ("changes", "left", "expected"),
    [
        ({}, 30.0, ["looked", "compiles"]),
        ({"is_part": True}, 10000.0, ["looked"]),
        ({"threads": 2}, 500.0, ["looked"]),
        ({"threads": 2}, 700.0, ["looked", "compiles"]),
        ({"load": 2.9}, 30.0, ["looked", "compiles"]),
        ({"load": 3.1}, 30.0, ["looked"]),
    ],
    ids=["a core is idle", "part of a run on a cluster", "none is idle", "none for long", "some load", "others' load"],
)
def test_who_compiles(monkeypatch, changes, left, expected):
    one, done = tiers_of(monkeypatch, **changes)
    one.note(10**6, 1.0)
    for _ in range(3):
        one.engines(10**9 - round(left * 1e6))
    assert done == expected


def test_no_process_is_started_by_a_worker_or_another_program(monkeypatch):
    assert may_start_processes()
    for program in ("", "/usr/bin/blender"):
        monkeypatch.setattr(sys, "executable", program)
        assert not may_start_processes()
    monkeypatch.undo()
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert not may_start_processes()
    monkeypatch.undo()
    monkeypatch.setattr(OtherProcess, "is_this_process", True)
    assert not may_start_processes()
    monkeypatch.undo()
    assert may_start_processes()
    program = (
        "from concurrent.futures import ProcessPoolExecutor\n"
        "from multiprocessing import get_context\n"
        "from toolkit._compiler.other_process import may_start_processes\n"
        "if __name__ == '__main__':\n"
        "    with ProcessPoolExecutor(1, get_context('spawn')) as pool:\n"
        "        print(may_start_processes(), pool.submit(may_start_processes).result())\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([os.getcwd(), *sys.path])}
    out = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["True", "False"]


def test_short_runs_and_python_targets_look_for_nothing(monkeypatch):
    monkeypatch.setattr(tiers, "load_from_disk", None)
    monkeypatch.setattr(tiers, "start_compilation", None)
    engines_of(GRID.energy_gradient).clear()
    assert sample(GRID, SGLD, n_steps=1000, seed=1).made_with["engine"] == "general"
    for name in ("MEASURED", "LOADS", "COMPILES"):
        monkeypatch.setattr(tiers, name, AT_ONCE)
    called = from_callable(lambda x: (0.5 * (x**2).sum(axis=1), x), dim=2)
    assert sample(called, SGLD, n_steps=100, seed=1, layout=TIERS).made_with["engine"] == "general"


# What is loaded is what would be compiled here.


def specification_of(problem, sampler=SGLD):
    job = make_job(problem, sampler, RunOptions(n_steps=10, seed=1, n_chains=3, keep_statistics=False))
    blocks = make_blocks(job.problem, sampler, job.init, Layout(), 1)
    return specifications(job, blocks, engine_numbers(job))[3]


def test_a_digest_differs_with_all_that_is_compiled():
    one, other = specification_of(bowl(1.0)), specification_of(bowl(1.5))
    same = specification_of(bowl(1.0))
    more = [
        one._replace(shapes=(*one.shapes[:-1], (999,))),
        one._replace(constants=one.constants._replace(n_kept=2)),
        specification_of(bowl(1.0), EVERY_SAMPLER["mala"]),
    ]
    digests = [digest_of([specification]) for specification in (one, other, *more)]
    assert None not in digests
    assert len(set(digests)) == len(digests)
    assert digest_of([same]) == digests[0]


def test_what_is_known_by_its_identity_alone_has_no_digest():
    thing = object()

    def of_an_object():
        return thing

    assert content_stamp(of_an_object) is None
    assert content_stamp(bowl) is not None


def test_other_functions_than_those_asked_for_are_not_compiled():
    """The process finds another digest than this one has told, as after an edit of a file that it imports."""
    one = specification_of(GRID)
    told = "another digest"
    request = pickle.dumps((told, tuple(map(portable, one.parts)), [one[1:]]))
    compilation = Compilation(told, request)
    assert compilation._process.wait() == 0
    assert compilation.result() == []
    compilation.close()
    assert load_delivered({3: one}, []) is None


def test_machine_code_with_addresses_is_not_delivered():
    functions = [SimpleNamespace(name="known", is_declaration=False), SimpleNamespace(name="C", is_declaration=True)]
    module = SimpleNamespace(functions=functions, global_variables=[])
    library = SimpleNamespace(has_dynamic_globals=True, _final_module=module, _reload_init={"threads"})
    code = ("name", "object", (b"machine code", b"bitcode"))
    environment = SimpleNamespace(globals={"__name__": __name__})
    compiled = SimpleNamespace(library=library, environment=environment, _reduce=lambda: (code, "rest", "environments"))
    compiled._replace = lambda **changes: compiled
    engine = SimpleNamespace(overloads={(): compiled})
    with pytest.raises(ValueError, match="addresses"):
        tiers.machine_code(engine)
    library.has_dynamic_globals = False
    stored = b"machine code", {"known"}, {"C"}, b"bitcode", ("threads",)
    assert tiers.machine_code(engine) == ("name", stored, ["rest", ()])
    library._final_module.global_variables.append(SimpleNamespace(name=RuntimeLinker.PREFIX + "f", is_declaration=True))
    with pytest.raises(ValueError, match="addresses"):
        tiers.machine_code(engine)
