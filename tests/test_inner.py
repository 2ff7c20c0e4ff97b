"""What compiled code calls is compiled for it alone, until Python calls it, and then for both."""

import numpy as np
import pytest
from numba import njit, types
from numba.core.errors import TypingError

from toolkit.compiling import inlined, kernel
from toolkit.inner import is_inner


def made(decorator):
    """A function of two arguments, new each time."""

    @decorator
    def scaled(x, factor):
        for i in range(x.size):
            x[i] *= factor
        return x[0]

    return scaled


def caller_of(function):
    return njit(_nrt=False, error_model="numpy")(lambda x, factor: function(x, factor) + 1.0)


@pytest.mark.parametrize("decorator", [kernel, inlined])
def test_code_first_and_then_python(decorator):
    scaled, x = made(decorator), np.ones(3)
    assert caller_of(scaled)(x, 2.0) == 3.0
    (compiled,) = scaled.overloads.values()
    assert is_inner(compiled)
    assert not [f.name for f in compiled.library.get_defined_functions() if "cpython" in f.name]
    assert scaled(x, 2.0) == 4.0
    (compiled,) = scaled.overloads.values()
    assert not is_inner(compiled)
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
    assert [is_inner(compiled) for compiled in scaled.overloads.values()] == [True, False]


def test_what_does_not_compile_leaves_python_its_form():
    scaled = made(kernel)
    with pytest.raises(TypingError):
        caller_of(scaled)("text", 2.0)
    assert scaled(np.ones(3), 2.0) == 2.0
    assert not any(map(is_inner, scaled.overloads.values()))


def test_one_that_another_takes_in_is_told_apart_by_its_caller_alone():
    """A function compiled for Python calls one that it takes in; each keeps the form its caller needs."""
    scaled, x = made(inlined), np.ones(3)
    outer = kernel(lambda x: scaled(x, 3.0))
    assert outer(x) == 3.0
    assert [is_inner(c) for f in (outer, scaled) for c in f.overloads.values()] == [False, True]


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
