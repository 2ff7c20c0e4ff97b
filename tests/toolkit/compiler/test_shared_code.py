"""Code that many functions call by its symbol: the same numbers as compiled with each, and compiled once."""

import secrets

import numpy as np
import pytest
from numba import types
from numba.core import event

from toolkit._compiler import (
    SharedCode,
    call_part,
    compile_part,
    kernel,
    pack_arguments,
    pointer_to,
    pointer_to_part,
    set_linked_form,
)
from toolkit._compiler.signatures import FLOATS

SCALE = types.void(FLOATS, types.float64)
SUM = types.void(FLOATS, FLOATS, types.FunctionType(SCALE))


@kernel
def scaled_sum(row, out, scale):
    """out[0] ← the sum of a row, which ``scale`` has multiplied by 2."""
    call_part(scale, pack_arguments(scale, (row,)), 2.0)
    out[0] = 0.0
    for i in range(row.size):
        out[0] += row[i]


@kernel
def negative_sum(row, out, scale):
    """The same, with the other sign."""
    scaled_sum(row, out, scale)
    out[0] = -out[0]


SHARED, OTHER = SharedCode(scaled_sum, SUM), SharedCode(negative_sum, SUM)


def scaling(plus):
    """A kernel for ``scale``, which adds ``plus``."""

    @kernel
    def scale(row, factor):
        for i in range(row.size):
            row[i] = factor * row[i] + plus

    return scale


def summing(scale, shared_code=SHARED, pointer_of=pointer_to, times=1.0):
    """A function of two rows with the kernel ``scale``, and its linked form."""

    def whole(row, out):
        scaled_sum(row, out, scale)
        out[0] *= times

    def link():
        shared_code.provide()
        shared, pointer = shared_code.pointer, pointer_of(scale, SCALE)

        def linked(row, out):
            part = shared()
            call_part(part, pack_arguments(part, (row, out, pointer())))
            out[0] *= times

        return linked

    set_linked_form(whole, link)
    return whole


@pytest.fixture
def compiled_names():
    """The names of what Numba compiles meanwhile."""
    names = []

    class Listener(event.Listener):
        def on_start(self, begun):
            names.append(begun.data["dispatcher"].py_func.__qualname__)

        def on_end(self, ended):
            pass

    with event.install_listener("numba:compile", Listener()):
        yield names


def test_functions_that_share_code_give_each_its_own_numbers(compiled_names):
    SHARED.provide()
    compiled_names.clear()
    for plus in (secrets.randbits(50), secrets.randbits(50)):  # on no disk yet
        row, out = np.array([1.0, 2.0, 4.0]), np.zeros(1)
        compile_part(summing(scaling(plus)), types.void(FLOATS, FLOATS))(row, out)
        assert out[0] == 14.0 + 3.0 * plus
    assert "scaled_sum" not in compiled_names
    assert len([name for name in compiled_names if name.endswith("linked")]) == 2


def test_each_shared_code_has_a_symbol_of_its_own():
    row, out = np.array([1.0, 2.0, 4.0]), np.zeros(1)
    for code in (OTHER, SHARED):
        code.provide()
    for code, sign in ((SHARED, 1.0), (OTHER, -1.0)):
        compile_part(summing(scaling(secrets.randbits(20)), code), types.void(FLOATS, FLOATS))(row.copy(), out)
        assert np.sign(out[0]) == sign


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_kernel_that_python_calls_too_is_compiled_once_where_its_contents_are_known(
    compiled_names, monkeypatch, is_kept
):
    if not is_kept:
        monkeypatch.setattr("toolkit._compiler.shared_code.stamp_of", lambda compiled: None)
    kernels = {plus: scaling(plus) for plus in (secrets.randbits(50), secrets.randbits(50))}
    for plus, scale in kernels.items():
        row = np.array([1.0, 2.0, 4.0])
        compile_part(scale.py_func, SCALE, packed=True)(row, 3.0)
        assert row[0] == 3.0 + plus
    pointers = {scale: pointer_to_part(scale.py_func, SCALE) for scale in kernels.values()}
    for plus, scale in kernels.items():
        for times in (2.0, 4.0):
            row, out = np.array([1.0, 2.0, 4.0]), np.zeros(1)
            compile_part(summing(scale, SHARED, lambda scale, _: pointers[scale], times), types.void(FLOATS, FLOATS))(
                row, out
            )
            assert out[0] == times * (14.0 + 3.0 * plus)
    n_compiled = len([name for name in compiled_names if name.endswith("scale")])
    assert n_compiled == (2 if is_kept else 4)
