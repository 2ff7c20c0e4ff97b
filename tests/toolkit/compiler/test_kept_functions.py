"""Functions of scripts, notebooks and factories are kept on disk by what they read, and none is taken for another."""

import itertools
import json
import os
import secrets
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numba import njit, types, vectorize
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import IndexDataCacheFile
from numba.core.typing import templates
from numba.extending import overload

from toolkit._compiler import kept, kernel, noinline
from toolkit._compiler.decorators import compile_part
from toolkit._compiler.disk_cache import CodeFile, OthersRules, own_stamp

ROOT = Path(__file__).resolve().parents[3]
LISTENER = """
from numba.core import event
compiled = []
class Listener(event.Listener):
    def on_start(self, e):
        compiled.append(e.data["dispatcher"].py_func.__qualname__)
    def on_end(self, e):
        pass
event.register("numba:compile", Listener())
"""


FORKING = """
import json, os, runpy, sys
import sysid, toolkit
path = sys.argv[1]
for text, *arguments in json.load(sys.stdin):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    child = os.fork()
    if child == 0:
        sys.argv = [path, *arguments]
        runpy.run_path(path, run_name="__main__")
        sys.exit()
    if os.waitpid(child, 0)[1] != 0:
        sys.exit("a script has failed")
    print(END, flush=True)
"""
END = "its end"


def run_scripts(folder, *scripts):
    """The lines that each of the scripts says, (text, *arguments), one after the other in the same file.

    Each runs in a process of its own, forked from one that has imported the packages, and compiled nothing.
    """
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}
    environment.pop("NUMBA_CACHE_DIR", None)
    command = [sys.executable, "-c", FORKING.replace("END", repr(END)), str(folder / "script.py")]
    done = subprocess.run(
        command, env=environment, input=json.dumps(scripts), stdout=subprocess.PIPE, text=True, check=True
    )
    return [said.splitlines() for said in done.stdout.split(f"{END}\n")[:-1]]


FACTORY = """
from toolkit._compiler import noinline

def line(k):
    @noinline
    def helper(x):
        return k * x
    return helper

two, three = line(2.0), line(3.0)

def with_two(x):
    return two(x)

def with_three(x):
    return three(x)
"""
CALLS = """
import itertools
import sys
from pathlib import Path
from numba import types
from numba.core.bytecode import FunctionIdentity
from toolkit._compiler.decorators import compile_part
FunctionIdentity._unique_ids = itertools.count(1)  # the same in all processes, as Numba has it
import factory
for name in sys.argv[1:]:
    print(compile_part(getattr(factory, name), types.float64(types.float64))(1.0))
print(len(list(Path(factory.__file__).parent.rglob("*.nbc"))))
"""


def test_functions_of_one_factory_keep_their_own_callees(tmp_path):
    """Two processes give both callees one symbol; in one engine, a loaded function called the other's callee."""
    (tmp_path / "factory").mkdir()
    (tmp_path / "factory" / "__init__.py").write_text(FACTORY, encoding="utf-8")
    orders = [["with_two"], ["with_three", "with_two"], ["with_two", "with_three"]]
    found = run_scripts(tmp_path, *((CALLS, *names) for names in orders))
    assert found == [["2.0", "1"], ["3.0", "2.0", "2"], ["2.0", "3.0", "2"]]


SCRIPT = (
    LISTENER
    + """
import numpy as np
from toolkit import Target
SCALE = 2.0
def block(position, energy, gradient, parameters, scratch):
    for lane in range(position.shape[1]):
        energy[lane] = 0.5 * SCALE * position[0, lane] ** 2
        gradient[0, lane] = SCALE * position[0, lane]
print(Target("mine", 1, block).evaluate([[3.0]])[0].item())
print(*compiled)
"""
)


def test_a_scripts_target_is_compiled_once_and_again_after_an_edit(tmp_path):
    texts = {
        "first": SCRIPT,
        "a global": SCRIPT.replace("SCALE = 2.0", "SCALE = 4.0"),
        "a number": SCRIPT.replace("0.5 * SCALE * position", "1.5 * SCALE * position"),
        "another line is another file": "# lines above\n\n" + SCRIPT,
        "on disk, and still there": SCRIPT,
    }
    found = dict(zip(texts, run_scripts(tmp_path, *zip(texts.values())), strict=True))
    assert [energy for energy, _ in found.values()] == ["9.0", "18.0", "27.0", "9.0", "9.0"]
    assert [what for what, (_, compiled) in found.items() if not compiled] == ["on disk, and still there"]


SYSTEM = """
import sys
import numpy as np
from sysid import Inputs, identify, likelihoods, systems
from sysid.data import simulate
from toolkit import sample, samplers
def rhs(t, x, p, u):
    return (p[0] * np.sin(x[0]) * (1.0 - x[0]) + u[0],)
growth = systems.own(rhs, states=["x"], parameters=["r"], usual=[1.0], start=[0.1], inputs=["u"])
given = Inputs({"u": ([0.0, 2.0, 5.0], [0.0, 0.1, 0.05])})
series = simulate(growth, np.linspace(0.0, 5.0, 11), noise=0.02, seed=1, inputs=given)
problem = identify(series, growth, likelihood=likelihoods.trajectory(), progress=False)
run = sample(problem, samplers.hmc(), n_steps=20, n_chains=2, seed=2)
print(np.asarray(run.draws).tobytes().hex())
print(*compiled)
compiled.clear()
"""


def test_a_right_hand_side_compiles_in_its_first_process_alone_and_gives_the_same_draws(tmp_path):
    """Also what it calls of NumPy, and the text with its inputs that the package writes, which no module has."""
    unseen, other = (SYSTEM.replace("(1.0 - ", f"({1.0 + secrets.randbits(30) * 2.0**-50!r} - ") for _ in range(2))
    other = other.replace("series = simulate", "# ")  # that of the one before
    first, second = run_scripts(tmp_path, [LISTENER + unseen], [LISTENER + unseen + other])
    draws, compiled = first  # not in an earlier run of tests
    assert {"rhs", "linked_shoot.<locals>.shoot", "with_kernel.<locals>.call"} <= set(compiled.split())
    *again, _, compiled = second
    assert again == [draws, ""]
    assert "linked_shoot.<locals>.shoot" in compiled
    assert not {"shoot_segments", "use_likelihood", "finish_energy", "forbid"} & set(compiled.split()), "shared"


TEXTS = """
from numba import njit
from toolkit._compiler import kept
space = {}
exec("def helper(x):\\n    print('inner', x)\\n    return 2.0 * x", space)
for names in ({}, {"__name__": "nowhere"}):
    names["helper"] = njit(space["helper"])
    exec("def outer(x):\\n    print('outer', x)\\n    return helper(x)", names)
    compiled.clear()
    print(kept(njit(names["outer"]))(1.5), *compiled)
"""


def test_functions_of_texts_that_are_in_no_module_are_kept(tmp_path):
    """To print, they and what they call need an object that Numba loads with their modules."""
    number = float(secrets.randbits(40))
    unseen = LISTENER + TEXTS.replace("2.0 * x", f"2.0 * x + {number} - {number}")
    first, second = run_scripts(tmp_path, [unseen], [unseen])
    assert first == ["outer 1.5", "inner 1.5", "3.0 outer helper"] * 2
    assert second == ["outer 1.5", "inner 1.5", "3.0"] * 2


def loaded_factor(k):
    """A kernel of a factory."""

    @kernel
    def scale(x):
        total = 0.0
        for i in range(x.size):
            total += k * x[i]
        return total

    return kept(scale)


def twice(scale):
    """A part that calls a kernel two times."""

    def part(x):
        return scale(x) + scale(x[1:])

    return part


@pytest.mark.usefixtures("nothing_kept")
def test_what_was_loaded_is_taken_in_by_others():
    """A kept kernel comes from the disk with its LLVM IR, so that a part which is compiled now can inline it."""
    values = np.arange(4.0)
    results = []
    for _ in range(2):
        scale = loaded_factor(2.5)
        results.append(scale(values))

        results.append(compile_part(twice(scale), types.float64(types.float64[::1]))(values))
    assert results == [15.0, 30.0, 15.0, 30.0]
    assert scale._cache_hits, "the second comes from the disk"


@pytest.mark.usefixtures("nothing_kept")
def test_a_function_whose_file_was_edited_since_is_kept(tmp_path):
    """In the file there is now something else on its line: a bracket that is never closed."""
    script = tmp_path / "script.py"
    script.write_text("add = [\n", encoding="utf-8")
    space = {"__name__": "__main__"}
    exec(compile("add = lambda x: x + 1.25", script, "exec"), space)
    assert compile_part(space["add"], types.float64(types.float64))(1.0) == 2.25
    assert len(list(tmp_path.rglob("*.nbc"))) == 1


def test_names_that_have_no_value_yet_and_objects_are_not_kept():
    space = {"__name__": "somebodys"}
    exec("def early(x):\n    return LATER * x", space)
    assert own_stamp(space["early"]) is None
    space["LATER"] = 2.0
    assert own_stamp(space["early"]) is not None
    space["LATER"] = SimpleNamespace(value=2.0)
    assert own_stamp(space["early"]) is None


def test_where_somebody_registers_rules_with_numba_nothing_is_kept(monkeypatch):
    """A function that uses such a rule does not say so: its key would be that without the rule, or with another."""

    def untold(x):
        return None

    rules = OthersRules()
    rules.forget()  # what other tests have registered
    assert not rules()
    registry = templates.builtin_registry
    kinds = ("functions", "attributes", "globals")
    before = {kind: len(getattr(registry, kind)) for kind in kinds}
    untold.__module__ = "somebodys"
    try:
        vectorize(untold)  # for methods of this ufunc: what uses them reads it, and has no stamp
        assert len(registry.attributes) > before["attributes"]
        assert not rules()
        overload(untold)(lambda x: lambda x: x)
        registry.functions[-1]._overload_func.__module__ = "somebodys"
        assert rules()
    finally:
        for kind in kinds:
            del getattr(registry, kind)[before[kind] :]
    monkeypatch.setattr("toolkit._compiler.disk_cache.has_others_rules", rules)
    assert own_stamp(njit(lambda x: x)) is None


def test_of_functions_of_one_name_the_last_ones_stay(tmp_path):
    def file_of(name, line):
        return CodeFile(IndexDataCacheFile(str(tmp_path), f"script.{name}-{line}.py311", "stamp"), 3)

    others = file_of("other", 1)
    others.save("its", 1)
    for k in range(5):
        file_of("mine", k).save("key", k)
        for age, path in enumerate(sorted(tmp_path.glob("script.mine-*"), key=lambda one: one.name, reverse=True)):
            os.utime(path, (1e9 - age, 1e9 - age))
        file_of("mine", 0).load("key")  # in use
    assert [file_of("mine", k).load("key") for k in range(5)] == [0, None, None, 3, 4]
    assert others.load("its") == 1


def test_functions_are_numbered_anew_in_each_process_and_after_a_fork():
    """A caller of a loaded and of a compiled kernel takes both in by their symbols, which must differ."""
    program = (
        "import os, toolkit\nfrom numba.core.bytecode import FunctionIdentity\n"
        "read, write = os.pipe()\nif os.fork() == 0:\n"
        "    os.write(write, str(next(FunctionIdentity._unique_ids)).encode())\n    os._exit(0)\n"
        "print(next(FunctionIdentity._unique_ids), os.read(read, 99).decode())"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", program]
    parent, child = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()
    numbers = [int(parent), int(child), next(FunctionIdentity._unique_ids)]
    assert min(abs(a - b) for a, b in itertools.combinations(numbers, 2)) > 10**9


@noinline
def third_of(first, second, third):
    """LLVM leaves the arguments that are not read out of a copy that has no name outside."""
    total = 0.0
    for i in range(first.size):
        total += third[i] * third[i]
    return total


def that_calls_it():
    """A function that each call makes anew, and whose code is kept on disk."""

    @kept
    @kernel
    def caller(x):
        return third_of(x, x, x) + x[0]

    return caller


@pytest.mark.usefixtures("nothing_kept")
def test_what_is_taken_in_of_code_from_disk_keeps_its_name_to_itself():
    """Its copies of the functions that it calls are called otherwise, so code made later must not be linked to them."""
    x = np.array([1.0, 2.0])
    assert that_calls_it()(x) == 6.0
    from_disk = that_calls_it()
    assert from_disk(x) == 6.0
    assert kernel(lambda x: from_disk(x) + 1.0)(x) == 7.0
    assert type(from_disk.overloads[from_disk.signatures[0]].library).__name__ == "LoadedLibrary"
    assert kernel(lambda x, y: third_of(x, x, y))(x, 3.0 * x) == 45.0
    other = that_calls_it()
    assert other(x) == 6.0
    both = kernel(lambda x, y: from_disk(x) + other(y))
    assert both(x, 2.0 * x) == 28.0
