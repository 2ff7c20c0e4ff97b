"""Compiled kernels are kept on disk under a hash of all they are made of, and no other is ever served."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from targets import mixtures
from toolkit import samplers
from toolkit._engine.run_options import RunOptions
from toolkit.tempering import Partition
from toolkit.tempering.interface import no_tempering

ROOT = Path(__file__).resolve().parents[2]

# What another process does, with a device that is not there as far as compiling wants to know of one.
COMPILE = """
import sys
from types import SimpleNamespace
import numba.cuda.codegen as codegen, numba.cuda.dispatcher as dispatcher
from numba import types
from tests.cuda.test_compiling import kernel_of
from toolkit._engine.cuda import compiling

there = SimpleNamespace(compute_capability=(9, 0))
dispatcher.get_current_device = lambda: there
dispatcher._Kernel.bind = lambda self: None
codegen.devices = SimpleNamespace(get_context=lambda: SimpleNamespace(device=there))
codegen.JITCUDACodegen.magic_tuple = lambda self: (13, 0)
kernel = compiling.compile_kernel(kernel_of(float(sys.argv[1])), (types.float64[::1],), *map(eval, sys.argv[2:]))
(compiled,) = kernel.overloads.values()
ptx = compiled._codelibrary.get_asm_str(cc=(9, 0))
print(sum(kernel._cache_hits.values()), "0d4008000000000000" in ptx.lower(), compiling.contracts(ptx))
"""


def kernel_of(factor):
    """A kernel that multiplies by ``factor``, which is part of its code."""

    def kernel(x):
        x[0] *= factor

    return kernel


def compiled(factor, stamp, folder, most_registers=None):
    """Hits of the cache in a process that compiles ``x *= factor``, whether the factor is 3, and what may be fused."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": str(ROOT)}
    environment.pop("NUMBA_ENABLE_CUDASIM", None)
    done = subprocess.run(
        [sys.executable, "-c", COMPILE, str(factor), repr(stamp), repr(most_registers)],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.slow
def test_another_process_finds_a_kernel_by_its_stamp_alone(tmp_path):
    pytest.importorskip("numba_cuda", reason="needs the cuda extra")
    assert compiled(3.0, "a", tmp_path) == ["0", "True", "False"]
    assert compiled(3.0, "a", tmp_path) == ["1", "True", "False"]
    assert compiled(5.0, "b", tmp_path) == ["0", "False", "False"]
    assert compiled(3.0, "a", tmp_path, 128) == ["0", "True", "False"], "of so many registers it is another"
    assert compiled(3.0, "a", tmp_path, 128) == ["1", "True", "False"]
    for file in tmp_path.rglob("*.nbc"):
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
    assert compiled(3.0, "a", tmp_path) == ["0", "True", "False"], "a damaged file is not read"


def test_kernels_of_few_replicas_take_few_registers(monkeypatch):
    pytest.importorskip("numba_cuda", reason="needs the cuda extra")
    from toolkit._engine.cuda import inspection, kernel
    from toolkit._engine.job import make_job

    asked = []
    monkeypatch.setattr(kernel, "compile_kernel", lambda *given: asked.append(given[3]))
    kernel.compiled.cache_clear()
    for sampler in (samplers.sgld(1e-3), samplers.resgld(), samplers.icsgld(1e-3, partition=Partition(-4.0, 0.5, 8))):
        job = make_job(mixtures.cosine25(), sampler, RunOptions(n_steps=2, seed=0))
        kernel.compiled(*inspection.kernel_of(job))
    kernel.compiled.cache_clear()
    assert asked == [128, 128, None]


def test_the_stamp_knows_parts_sizes_and_features():
    pytest.importorskip("numba_cuda", reason="needs the cuda extra")
    from toolkit._engine.cuda.kernel import Kinds, Shape, kernel_stamp
    from toolkit._engine.phases import no_phase
    from toolkit._engine.settings import compile_time_constants
    from toolkit._engine.state import Numbers, Parts

    target, other = mixtures.cosine25(), mixtures.gaussian_grid25()
    numbers = Numbers(*[0] * len(Numbers._fields))
    shape = Shape(*[0] * len(Shape._fields))
    dynamics = samplers.sgld(1e-3).dynamics
    none = Parts(0, *[no_phase] * (len(Parts._fields) - 1))
    parts = none._replace(target=target.energy_gradient, move=dynamics.move, locate=no_tempering, temper=no_tempering)

    def stamp(parts=parts, shape=shape, numbers=numbers, kinds=Kinds()):
        return kernel_stamp(parts, shape, compile_time_constants(numbers), kinds)

    others = [
        stamp(parts._replace(target=other.energy_gradient)),
        stamp(parts._replace(move=samplers.sghmc(1e-3).dynamics.move)),
        *(stamp(shape=shape._replace(**{field: 1})) for field in Shape._fields),
        *(stamp(kinds=Kinds()._replace(**{field: np.float32})) for field in Kinds._fields),
        stamp(numbers=numbers._replace(tempering=1)),
        stamp(numbers=numbers._replace(gradient_noise=0.5)),
    ]
    assert len({stamp(), *others}) == 1 + len(others)
    # Numbers that are arguments of the kernel are none of its business, and a part of a notebook has no stamp.
    assert stamp(numbers=numbers._replace(seed=np.uint64(7), burn_in=3, n_chains=9)) == stamp()
    assert stamp(numbers=numbers._replace(gradient_noise=0.25)) == stamp(numbers=numbers._replace(gradient_noise=0.5))
    assert stamp(parts._replace(target=lambda position, energy, gradient, parameters, scratch: None)) is None
