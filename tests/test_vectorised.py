"""Every target of the catalogue is SIMD in the generated machine code, and calls no library."""

import platform

import pytest
from test_maths import packed_instructions

from targets import catalogue
from toolkit import signatures

pytestmark = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="reads x86-64 assembly")
BLOCKS = {target.energy_gradient.__name__: target.energy_gradient for target in catalogue()}


@pytest.mark.parametrize("name", BLOCKS)
def test_block_functions_are_vectorised(name):
    packed, library = packed_instructions(BLOCKS[name], signatures.TARGET)
    assert len(packed) >= 3
    assert not library
