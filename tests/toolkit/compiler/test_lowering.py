"""Targets are SIMD in the generated machine code, and call no library; vectors are wide; flags are listed once."""

import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import njit, types
from numba.core.compiler import Flags

from targets import catalogue, mixtures
from tests.support.machine_code import packed_instructions
from toolkit import sample, samplers
from toolkit._compiler import signatures
from toolkit._compiler.decorators import compile_part, kernel
from toolkit._compiler.lowering import WIDTH, OwnFlags, SettledFlags, WideCompiler, load_compiled, reduce_compiled
from toolkit.dynamics.overdamped import move_langevin

reads_assembly = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="reads x86-64 assembly")
BLOCKS = {target.energy_gradient.__name__: target.energy_gradient for target in catalogue()}


@pytest.mark.cases(2)
@reads_assembly
@pytest.mark.parametrize("name", BLOCKS)
def test_block_functions_are_vectorised(name):
    packed, library = packed_instructions(BLOCKS[name], signatures.TARGET)
    assert len(packed) >= 3
    assert not library


def test_vectors_of_512_bits_are_asked_for(monkeypatch):
    """In parts, and not in what else Numba compiles; code out of the cache on disk cannot be read."""
    monkeypatch.setattr("toolkit._compiler.decorators.cache_of_part", lambda function, **options: None)
    (ours,) = compile_part.__wrapped__(move_langevin, signatures.DYNAMICS).inspect_llvm().values()
    (others,) = njit(signatures.DYNAMICS)(move_langevin).inspect_llvm().values()
    assert WIDTH in ours
    assert WIDTH not in others


def test_settled_flags_equal_those_they_were_copied_from():
    """Numba finds by them what it compiled under its own flags, and the other way round."""
    flags = Flags()
    flags.nrt, flags.error_model = True, "numpy"
    settled = OwnFlags(flags).copy()
    assert settled == flags
    assert flags == settled
    assert {flags: "found"}[settled] == {settled: "found"}[flags] == "found"
    flags.nrt = False
    assert settled != flags
    assert not {flags: "found"}.get(settled)
    assert settled.nrt
    assert settled.copy() == settled


def test_flags_are_listed_once(monkeypatch):
    """And not in each look-up of an operator's type, which took 2 to 9 % of the time to compile."""

    def function(x, a):
        return (x - a[0]) * (x + a[1]) / (x * a[2] - 3.0) + (2.0 * x - a[1]) * a[0] + a[2] / x - x * a[1]

    x, a = 2.0, np.array([1.0, 2.0, 4.0])
    value = njit(function)(x, a)  # so that all that is looked up is there for other flags already
    listed = []
    own = Flags.values
    monkeypatch.setattr(Flags, "values", lambda self: listed.append(self) or own(self))
    assert kernel(function)(x, a) == value == 1.0 * 4.0 / 5.0 + 2.0 + 2.0 - 4.0
    assert [type(flags) for flags in listed].count(SettledFlags) == 1


def test_code_is_kept_and_loaded_where_numba_does_not_list_what_begins_a_process(monkeypatch):
    """As Numba 0.61, whose libraries lack ``_reload_init``."""

    def twice(x):
        return 2.0 * x

    compiled = njit(types.float64(types.float64), pipeline_class=WideCompiler)(twice)
    (result,) = compiled.overloads.values()
    monkeypatch.delattr(result.library, "_reload_init", raising=False)
    loaded = load_compiled(result.target_context, reduce_compiled(result))
    assert loaded.entry_point(3.0) == 6.0


FIRST_DRAW = """
import sys, threading
from targets import mixtures
from toolkit import Layout, sample, samplers

in_threads = []

def note_import(event, arguments):
    if event == "import" and threading.current_thread() is not threading.main_thread():
        in_threads.append(arguments[0])

assert "numba.experimental.function_type" in sys.modules
sys.addaudithook(note_import)
sample(mixtures.cosine25(), samplers.sgld(1e-3), n_steps=1, n_chains=2, seed=0, threads=2, layout=Layout(lanes=1))
assert not in_threads, in_threads
assert "numba.np.npyimpl" not in sys.modules and "scipy.linalg" not in sys.modules

import numpy as np
from numba import types
from tests.toolkit.compiler.test_lowering import product
from toolkit._compiler import compile_part

square = types.float64[:, ::1]
a, out = np.array([[2.0, 1.0], [0.5, 3.0]]), np.empty((2, 2))
loaded = compile_part(product, types.void(square, square), allocates=True)
loaded(a, out)
np.testing.assert_allclose(out, [[4.5, 5.0], [2.5, 9.5]])

from numba import njit
from numba.core.cpu import CPUContext
from numba.np import linalg

np.testing.assert_allclose(njit(lambda a, b: np.dot(a, b))(a, a), out)
assert "numba.np.npyimpl" in sys.modules and "scipy.linalg" in sys.modules
assert CPUContext.load_additional_registries.__module__ == "numba.core.cpu"
assert linalg.ensure_blas.__module__ == "numba.np.linalg"
"""


def product(a, out):
    np.dot(a, a.copy(), out)  # it allocates, and calls BLAS


def test_a_first_draw_does_without_what_numba_compiles_from_and_what_code_needs_is_there():
    """Numba would import 63 modules to load a function, and SciPy's linear algebra to see that it is there.

    A run's threads import nothing: what registers types there would change a dictionary that another reads.
    """
    sample(mixtures.cosine25(), samplers.sgld(1e-3), n_steps=1, seed=0)
    square = types.float64[:, ::1]
    compile_part(product, types.void(square, square), allocates=True)  # on disk from now on
    subprocess.run([sys.executable, "-c", FIRST_DRAW], check=True, cwd=Path(__file__).parents[3])


def test_code_that_calls_an_unknown_symbol_is_not_loaded(monkeypatch):
    """Even after all that Numba compiles from: the process would crash."""
    compiled = njit(types.float64(types.float64), pipeline_class=WideCompiler)(lambda x: 2.0 * x)
    (result,) = compiled.overloads.values()
    name, stored, rest = reduce_compiled(result)
    refreshed = []
    monkeypatch.setattr(type(result.target_context), "refresh", lambda context: refreshed.append(True))
    assert load_compiled(result.target_context, (name, stored, rest)).entry_point(3.0) == 6.0
    assert not refreshed
    unknown = stored._replace(needs=stored.needs | {"a_symbol_of_nobody"})
    assert load_compiled(result.target_context, (name, unknown, rest)) is None
    assert refreshed
