"""Every target of the catalogue is SIMD in the generated machine code, and calls no library; vectors are wide."""

import platform

import pytest
from numba import njit

from targets import catalogue
from tests.support.machine_code import packed_instructions
from toolkit._compiler import signatures
from toolkit._compiler.decorators import compile_part
from toolkit._compiler.lowering import WIDTH
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
