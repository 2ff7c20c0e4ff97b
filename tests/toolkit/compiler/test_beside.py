"""Parts compiled by another process: found on disk, whatever becomes of that process."""

import gc
import os
import subprocess
import sys

import pytest
from numba import types

from toolkit._compiler import beside, lowering
from toolkit._compiler.beside import Beside, Wanted
from toolkit._compiler.decorators import compile_part
from toolkit._compiler.other_process import OtherProcess
from toolkit._compiler.signatures import DOMAIN
from toolkit.boundaries.convex import everywhere_inside

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
names, started, compiled_here, begin = [], [], beside.compiled, OtherProcess.__init__


class Counting(event.Listener):
    def on_start(self, begun):
        names.append(begun.data["dispatcher"].py_func.__name__)

    def on_end(self, ended):
        pass


def begin_and_note(self, *arguments, **options):
    begin(self, *arguments, **options)
    started.append(self)


def wait_and_compile(part):
    while part.function is no_move and any(process.is_running() for process in started):
        time.sleep(0.01)
    return compiled_here(part)


event.register("numba:compile", Counting())
OtherProcess.__init__, beside.compiled = begin_and_note, wait_and_compile
CHANGES
parts = [Wanted(no_move, DYNAMICS), Wanted(everywhere_inside, DOMAIN), Wanted(no_tempering, TEMPER)][FIRST:]
results = compile_parts(parts)
assert [result.py_func for result in results] == [part.function for part in parts]
assert all(len(result.overloads) == 1 for result in results)
assert not OtherProcess._running
print(len(started), *sorted(names))
"""
COMPILED = ["everywhere_inside", "no_move", "no_tempering"]


def compiling_three(cache, changes="", first=0):
    """The number of other processes that are started, and the names of what is compiled in this one."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([os.getcwd(), *sys.path]), "NUMBA_CACHE_DIR": str(cache)}
    script = THREE.replace("CHANGES", changes).replace("FIRST", str(first))
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    number, *names = done.stdout.split()
    return int(number), names


def test_what_the_other_process_compiles_is_loaded_and_never_compiled_again(tmp_path):
    assert compiling_three(tmp_path) == (1, ["no_move"])
    assert compiling_three(tmp_path) == (0, [])  # all is on disk


def test_two_parts_are_not_worth_a_process(tmp_path):
    assert compiling_three(tmp_path, first=1) == (0, COMPILED[::2])


@pytest.mark.parametrize(
    "program", ["raise SystemExit(1)", "print('begin 0', flush=True)", "print('begin 1', flush=True); print('begin')"]
)
def test_a_process_that_fails_leaves_its_parts_to_this_one(program, tmp_path):
    assert compiling_three(tmp_path, f"beside.PROGRAM = {program!r}") == (1, COMPILED)


@pytest.mark.parametrize("forbidden", ["has_idle_core = lambda threads: False", "may_start_processes = lambda: False"])
def test_no_process_where_none_may_be_started(forbidden, tmp_path):
    assert compiling_three(tmp_path, f"beside.{forbidden}") == (0, COMPILED)


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


def test_garbage_is_collected_again_after_compiling():
    def one(values):
        values[0] = 1.0

    assert gc.isenabled()
    with lowering.without_collections():
        assert not gc.isenabled()
        with lowering.without_collections():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    try:
        compile_part(one, types.void(types.float64[::1]))
        assert not gc.isenabled()
    finally:
        gc.enable()
    compile_part(lambda values: None, types.void(types.float64[::1]))
    assert gc.isenabled()
