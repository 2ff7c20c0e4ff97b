"""Parts compiled by another process: found on disk, whatever becomes of that process."""

import gc
import os
import subprocess
import sys

import numpy as np
import pytest
from numba import types
from numba.core import event

from targets import mixtures
from toolkit import samplers
from toolkit._compiler import beside, per_function
from toolkit._compiler.beside import Beside, Wanted
from toolkit._compiler.decorators import compile_part
from toolkit._compiler.other_process import OtherProcess
from toolkit._compiler.signatures import DOMAIN
from toolkit._engine import cpu
from toolkit._engine.job import make_job
from toolkit._engine.run_options import RunOptions
from toolkit.boundaries.convex import everywhere_inside
from toolkit.dynamics.metropolis import no_move
from toolkit.problem.starts import Keys
from toolkit.tempering.interface import no_tempering

THREE = """
import sys, time
from numba.core import event
from toolkit._compiler import beside
from toolkit._compiler.beside import Wanted, compile_parts
from toolkit._compiler.other_process import OtherProcess
from toolkit._compiler.signatures import DOMAIN, DYNAMICS
from toolkit._engine.state import TEMPER
from toolkit.boundaries.convex import everywhere_inside
from toolkit.dynamics.metropolis import no_move
from toolkit.tempering.interface import no_tempering

beside.has_idle_core = lambda threads: True
names, started, said, compiled_here, begin = [], [], [], beside.compiled, OtherProcess.__init__


class Counting(event.Listener):
    def on_start(self, begun):
        names.append(begun.data["dispatcher"].py_func.__name__)

    def on_end(self, ended):
        pass


def begin_and_note(self, *arguments, **options):
    begin(self, *arguments, **options)
    started.append(self)
    said.append(options["lines"])


def wait_for_all():
    while any(process.is_running() for process in started):
        time.sleep(0.01)


def wait_for_the_first():
    while not said[0]:
        time.sleep(0.01)


def wait_and_compile(part):
    if part.function is no_move:
        wait()
    return compiled_here(part)


OtherProcess.__init__, beside.compiled, wait = begin_and_note, wait_and_compile, wait_for_all
CHANGES
parts = [Wanted(no_move, DYNAMICS), Wanted(everywhere_inside, DOMAIN), Wanted(no_tempering, TEMPER)][FIRST:]
with event.install_listener("numba:compile", Counting()):
    results = compile_parts(parts)
assert [result.py_func for result in results] == [part.function for part in parts]
assert all(len(result.overloads) == 1 for result in results)
assert not OtherProcess._running
print(len(started), *sorted(names))
"""
COMPILED = ["everywhere_inside", "no_move", "no_tempering"]
ASSIGNED = [
    *((beside, name) for name in ("PROGRAM", "compiled", "has_idle_core", "is_kept", "may_start_processes")),
    *((OtherProcess, name) for name in ("__init__", "_running")),
    (sys, "executable"),
]


@pytest.fixture
def compiling_here(nothing_kept, monkeypatch, capfd):
    """As ``compiling_three``, in this process, where nothing of the three is compiled yet."""
    for owner, name in ASSIGNED:  # the script assigns to these; what they were is put back at the end of the test
        monkeypatch.setattr(owner, name, getattr(owner, name))
    monkeypatch.setitem(beside.compile_parts.__kwdefaults__, "may_start", True)
    for part in (everywhere_inside, no_move, no_tempering):
        monkeypatch.setattr(part, per_function.ATTRIBUTE, per_function.Results(part), raising=False)

    def compiling(changes="", first=0):
        exec(THREE.replace("CHANGES", changes).replace("FIRST", str(first)), {})
        said, errors = capfd.readouterr()
        assert errors == ""
        number, *names = said.split()
        return int(number), names

    return compiling


def compiling_three(cache, changes="", first=0):
    """The number of other processes that are started, and the names of what is compiled in a new process."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([os.getcwd(), *sys.path]), "NUMBA_CACHE_DIR": str(cache)}
    script = THREE.replace("CHANGES", changes).replace("FIRST", str(first))
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    number, *names = done.stdout.split()
    return int(number), names


def test_what_the_other_process_compiles_is_loaded_and_never_compiled_again(tmp_path):
    assert compiling_three(tmp_path) == (1, ["no_move"])
    assert compiling_three(tmp_path) == (0, [])  # all is on disk


SLOW = """
import toolkit._compiler.beside as b, time
compiled = b.compiled
b.compiled = lambda part: (time.sleep(1.0), compiled(part))
"""
SLOWLY = f"wait, beside.PROGRAM = wait_for_the_first, beside.PROGRAM.replace('answer(int', {SLOW!r} + 'answer(int')"


def test_both_compile_and_a_part_that_the_other_has_begun_is_waited_for(tmp_path):
    assert compiling_three(tmp_path, SLOWLY) == (1, ["no_move", "no_tempering"])


def test_the_folder_of_the_cache_may_be_chosen_in_python(tmp_path):
    chosen = f"import numba; numba.config.CACHE_DIR = {str(tmp_path / 'chosen')!r}"
    assert compiling_three(tmp_path, chosen) == (1, ["no_move"])


def test_two_parts_are_not_worth_a_process(compiling_here):
    assert compiling_here(first=1) == (0, COMPILED[::2])


@pytest.mark.parametrize(
    "program", ["raise SystemExit(1)", "print('begin 0', flush=True)", "print('begin 1', flush=True); print('begin')"]
)
def test_a_process_that_fails_leaves_its_parts_to_this_one(program, compiling_here):
    assert compiling_here(f"beside.PROGRAM = {program!r}") == (1, COMPILED)


@pytest.mark.parametrize(
    "changes",
    [
        "beside.has_idle_core = lambda threads: False",
        "beside.may_start_processes = lambda: False",
        "beside.compile_parts.__kwdefaults__['may_start'] = False",
        "beside.is_kept = lambda function, **options: False",
        "OtherProcess._running = {None}; wait = OtherProcess._running.clear",
        "sys.executable = '/nonexistent/python'",
    ],
    ids=["no idle core", "a worker", "part of a run", "no cache", "another one runs", "no interpreter"],
)
def test_no_process_where_none_may_or_can_be_started(changes, compiling_here):
    assert compiling_here(changes) == (0, COMPILED)


def test_parts_of_a_run_on_a_cluster_start_none(monkeypatch):
    asked = []

    def note(parts, *, may_start):
        asked.append(may_start)
        raise InterruptedError

    monkeypatch.setattr(cpu, "compile_parts", note)
    for keys in (None, Keys(np.arange(2))):
        job = make_job(mixtures.cosine25(), samplers.sgld(0.1), RunOptions(n_steps=2, n_chains=2, seed=0), keys=keys)
        with pytest.raises(InterruptedError):
            cpu.general_engine(job)
    assert asked == [True, False]


def test_an_interrupt_ends_the_other_process(monkeypatch):
    def interrupt(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(beside, "PROGRAM", "import time; print('begin 0', flush=True); time.sleep(600)")
    part = Wanted(everywhere_inside, DOMAIN)
    with Beside([part]) as process:
        (other,) = OtherProcess._running
        while not process.has_begun(part):
            assert other.is_running()
        monkeypatch.setattr(beside.time, "sleep", interrupt)
        with pytest.raises(KeyboardInterrupt):
            process.wait_for(part)
    assert not other.is_running()
    assert not OtherProcess._running


class Looking(event.Listener):
    """Notes whether garbage is collected when a function begins to compile."""

    def __init__(self):
        self.seen = []

    def on_start(self, begun):
        self.seen.append(gc.isenabled())

    def on_end(self, ended):
        pass


@pytest.mark.usefixtures("nothing_kept")
def test_no_garbage_is_collected_while_a_part_compiles():
    looking = Looking()
    with event.install_listener("numba:compile", looking):
        compile_part(lambda values: None, types.void(types.float64[::1]))
    assert looking.seen == [False]
    assert gc.isenabled()
    gc.disable()
    try:
        compile_part(lambda values: None, types.void(types.float64[::1]))
        assert not gc.isenabled()
    finally:
        gc.enable()
