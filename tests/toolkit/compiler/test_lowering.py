"""Every target of the catalogue is SIMD in the generated machine code, and calls no library; vectors are wide; flags are read once."""

import platform

import pytest
from numba import njit
from numba.core.compiler import Flags

from targets import catalogue
from tests.support.machine_code import packed_instructions
from toolkit._compiler import signatures
from toolkit._compiler.decorators import compile_part, inlined, kernel
from toolkit._compiler.lowering import WIDTH, OwnFlags
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
    monkeypatch.setattr("toolkit._compiler.decorators.cache_stamp", lambda function: None)
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


def test_flags_are_listed_a_few_times_for_each_function(monkeypatch):
    """Not in each look-up of an operator's type, which took a tenth of the time to compile."""
    listed = []
    own = Flags.values
    monkeypatch.setattr(Flags, "values", lambda self: listed.append(1) or own(self))

    @inlined
    def inner(x):
        return (x + 1.0) * (x - 2.0) / (x * x + 3.0)

    @kernel
    def outer(x):
        return inner(x) + inner(2.0 * x) * x

    assert outer(2.0) == 0.0 + inner.py_func(4.0) * 2.0
    n_passes = 30  # each of which lists them for Numba's events
    assert len(listed) < 2 * n_passes + 20
