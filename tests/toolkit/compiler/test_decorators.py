"""What compiled code calls is compiled for it alone, until Python calls it, and then for both."""

import os
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest
from numba import njit, types
from numba.core.codegen import JITCodeLibrary
from numba.core.errors import TypingError, UnsupportedError

from toolkit._compiler.decorators import inlined, kernel

ALL_FORMS = """
import gc, warnings
import numpy as np
from targets import constrained, mixtures, shapes
from toolkit import sample, samplers
from toolkit._compiler.lowering import UnwrappedDispatcher

warnings.simplefilter("ignore")  # runs this short settle nothing
problem = constrained(mixtures.cosine25(), shapes.flower(petals=5, offset=3.0, radius=2.0))
for sampler in (
    samplers.r2sgld((5e-4, 1.5e-3)), samplers.r2sghmc((5e-4, 1.5e-3)), samplers.icsgld(1e-3), samplers.tact_hmc(1e-3),
    samplers.sgnht(1e-3), samplers.sgnht(1e-3, by_coordinate=True), samplers.hmc(1e-3), samplers.psgld(1e-3),
    samplers.svgd(1e-3, n_replicas=10),
):
    start = np.random.default_rng(0).uniform(-0.2, 0.2, (2, len(sampler.temperatures), 2))
    sample(problem, sampler, n_steps=20, n_chains=2, seed=0, init=start)
for function in gc.get_objects():
    if isinstance(function, UnwrappedDispatcher):
        for form in function.overloads:
            print(function.py_func.__module__, function.py_func.__qualname__, form, sep="\\t")
"""


def made(decorator):
    """A function of two arguments, new each time."""

    @decorator
    def scaled(x, factor):
        for i in range(x.size):
            x[i] *= factor
        return x[0]

    return scaled


def forms_for_code(function):
    """Of each form of a function, in the order of their making, whether it is for compiled code alone."""
    return [function.lacks_wrapper(args) for args in function.overloads]


def caller_of(function):
    return njit(_nrt=False, error_model="numpy")(lambda x, factor: function(x, factor) + 1.0)


@pytest.mark.parametrize("decorator", [kernel, inlined])
def test_code_first_and_then_python(decorator):
    scaled, x = made(decorator), np.ones(3)
    assert caller_of(scaled)(x, 2.0) == 3.0
    (compiled,) = scaled.overloads.values()
    assert forms_for_code(scaled) == [True]
    assert not [f.name for f in compiled.library.get_defined_functions() if "cpython" in f.name]
    assert scaled(x, 2.0) == 4.0
    assert forms_for_code(scaled) == [False]
    assert caller_of(scaled)(x, 2.0) == 9.0
    np.testing.assert_array_equal(x, 8.0)


def test_python_first_and_then_code():
    scaled, x = made(kernel), np.ones(3)
    assert scaled(x, 2.0) == 2.0
    (compiled,) = scaled.overloads.values()
    assert caller_of(scaled)(x, 2.0) == 5.0
    assert list(scaled.overloads.values()) == [compiled]


def test_other_types_are_other_forms():
    scaled, x = made(kernel), np.ones(3)
    assert caller_of(scaled)(x, 2.0) == 3.0
    assert scaled(x, 2) == 4.0
    assert forms_for_code(scaled) == [True, False]


def test_what_does_not_compile_leaves_python_its_form():
    scaled = made(kernel)
    with pytest.raises(TypingError):
        caller_of(scaled)("text", 2.0)
    assert scaled(np.ones(3), 2.0) == 2.0
    assert forms_for_code(scaled) == [False]


def test_one_that_another_takes_in_is_told_apart_by_its_caller_alone():
    """A function compiled for Python calls one that it takes in; each keeps the form its caller needs."""
    scaled, x = made(inlined), np.ones(3)
    outer = kernel(lambda x: scaled(x, 3.0))
    assert outer(x) == 3.0
    assert forms_for_code(outer) + forms_for_code(scaled) == [False, True]


@pytest.mark.filterwarnings("ignore:First-class function")
def test_one_whose_address_is_taken_has_machine_code():
    """A function that is given by its address has one, though it was first taken in by another."""
    floats, scaled, x = types.float64[::1], made(kernel), np.ones(3)
    by_address = types.FunctionType(types.float64(floats, types.float64))
    calls = njit(types.float64(by_address, floats))(lambda function, x: function(x, 2.0))
    assert caller_of(scaled)(x, 2.0) == 3.0
    assert calls(scaled, x) == 4.0


def test_one_that_was_taken_in_gives_no_address():
    scaled = made(kernel)
    caller_of(scaled)(np.ones(3), 2.0)
    (compiled,) = scaled.overloads.values()
    with pytest.raises(RuntimeError, match="has no address"):
        compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)


def test_one_that_is_taken_in_is_made_into_no_machine_code(monkeypatch):
    made_code, finalize = [], JITCodeLibrary._finalize_specific

    def noted(library):
        made_code.append(library.name)
        finalize(library)

    monkeypatch.setattr(JITCodeLibrary, "_finalize_specific", noted)
    scaled = made(kernel)
    assert caller_of(scaled)(np.ones(3), 2.0) == 3.0
    assert len([name for name in made_code if "lambda" in name]) == 1
    assert not [name for name in made_code if "scaled" in name]


def test_one_that_prints_does(capfd):
    @kernel
    def told(x):
        print("given", x)
        return x

    assert njit(lambda x: told(x))(2.0) == 2.0
    assert told(3.0) == 3.0
    assert capfd.readouterr().out.split() == ["given", "2.0", "given", "3.0"]


def test_what_cannot_be_compiled_again_keeps_its_form_for_code():
    scaled, x = made(kernel), np.ones(3)
    assert caller_of(scaled)(x, 2.0) == 3.0
    scaled.disable_compile()
    with pytest.raises(RuntimeError, match="compilation disabled"):
        scaled.compile((types.float64[::1], types.float64))
    assert caller_of(scaled)(x, 2.0) == 5.0


def test_a_ring_of_functions_is_refused():
    with pytest.raises(UnsupportedError, match="call each other"):
        njit(lambda n: even(n))(4)


@kernel
def even(n):
    return True if n == 0 else odd(n - 1)


@kernel
def odd(n):
    return False if n == 0 else even(n - 1)


def test_a_pickled_one_serves_code_and_python():
    """In another process, where Numba makes it anew."""
    code = (
        "import pickle, sys, numpy as np; from numba import njit; f = pickle.load(sys.stdin.buffer); x = np.ones(3); "
        "print(njit(lambda x, factor: f(x, factor) + 1.0)(x, 2.0), f(x, 2.0))"
    )
    command, given = [sys.executable, "-c", code], pickle.dumps(made(kernel))
    done = subprocess.run(command, input=given, capture_output=True, check=False)
    assert done.stdout.split() == [b"3.0", b"4.0"], done


@pytest.mark.slow
def test_no_function_of_ours_is_compiled_anew_for_a_number_that_is_a_literal(tmp_path):
    """Or that is narrower: each form costs a part of a first call. Literals that choose code are bool, not numbers."""
    result = subprocess.run(
        [sys.executable, "-c", ALL_FORMS], env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    forms = [line.split("\t") for line in result.stdout.splitlines()]
    assert len({tuple(form[:2]) for form in forms}) > 80
    alike = [(*form[:2], re.sub(r"(Literal\[int\]\(-?\d+\)|\bu?int\d+)(?=[,)])", "integer", form[2])) for form in forms]
    assert sorted(form[:2] for form in set(alike) if alike.count(form) > 1) == []
