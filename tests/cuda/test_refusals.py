"""``backend="cuda"`` where it cannot run, what it refuses, and what the rest of the package has to do with it."""

import importlib.metadata
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from targets import mixtures
from toolkit import CudaError, Layout, from_callable, sample, samplers, stream
from toolkit.errors import how_to_install

pytest.importorskip("numba_cuda")
ROOT = Path(__file__).resolve().parents[2]
NORMAL = mixtures.gaussian_mixture([[0.0, 0.0]], 1.0)
SGLD = samplers.sgld(0.1)
RUN = {"n_steps": 20, "n_chains": 2, "seed": 0, "backend": "cuda"}


def is_here():
    """Whether there is a GPU."""
    from numba import cuda

    return cuda.is_available()


def in_python(source):
    """What a fresh interpreter says to ``source``."""
    code = [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", "-c", textwrap.dedent(source)]
    done = subprocess.run(code, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_numba_cuda_that_numpy_has_left_behind_is_named():
    """NumPy 2.5 has no ``row_stack``, which numba-cuda 0.30 reads when the first kernel is compiled."""
    said = in_python(
        """
        import numpy as np
        from toolkit import CudaError
        from toolkit._engine.cuda.device import check_available
        np.__dict__.pop("row_stack", None)
        try:
            check_available()
        except CudaError as error:
            print(error)
        """
    )
    if importlib.metadata.version("numba-cuda").startswith("0.30."):  # a later one may do without it
        assert f"runs with NumPy {np.__version__}" in said
        assert "row_stack" in said
        assert "pip install" in said


def test_what_runs_is_what_was_read(monkeypatch):
    """Linked with optimisation, as Numba would by itself, sums and products are fused however they were compiled."""
    from numba import types
    from numba.cuda.cudadrv import devices

    from toolkit._engine.cuda import compiling, device

    here = SimpleNamespace(device=SimpleNamespace(compute_capability=(9, 0), id=0))
    monkeypatch.setattr(device.cuda.dispatcher, "get_current_device", lambda: here.device)
    monkeypatch.setattr(devices, "get_context", lambda *given: here)
    monkeypatch.setattr(device.cuda.dispatcher._Kernel, "bind", lambda kernel: None)

    def sums(x):
        x[0] = x[1] * x[2] + x[3]

    kinds = (types.Array(types.float64, 1, "C"),)
    (ours,) = compiling.compile_kernel(sums, kinds).overloads.values()
    assert not ours._codelibrary._lto
    read = ours._codelibrary.get_asm_str()
    assert not compiling.contracts(read)
    assert "fma" not in read
    plain = device.cuda.jit(sums, lto=True)
    with compiling.without_fusion():
        plain.compile(kinds)
    (linked,) = plain.overloads.values()
    assert "fma" in linked._codelibrary.get_lto_ptx()


def test_few_blocks_are_no_reason_to_warn(monkeypatch):
    from toolkit._engine.cuda import device

    def kernel(x):
        x[0] = 1.0

    asked = []
    monkeypatch.setattr(device.cuda.dispatcher._LaunchConfiguration, "__call__", lambda *given: asked.append(given[1:]))
    jitted = device.cuda.jit(kernel)
    with pytest.warns(Warning, match="under-utilization"):
        jitted[3, 32](1)
    device.launch(jitted, 4, 32, 0, (2,))
    assert asked == [(1,), (2,)]


def test_without_numba_cuda_the_cpu_is_as_before_and_cuda_says_what_to_install():
    said = in_python("""
        import sys
        sys.meta_path[:] = [finder for finder in sys.meta_path if "NumbaCuda" not in type(finder).__name__]
        sys.modules["numba_cuda"] = None
        from targets import mixtures
        from toolkit import sample, samplers
        given = mixtures.gaussian_mixture([[0.0, 0.0]], 1.0), samplers.sgld(0.1)
        assert sample(*given, n_steps=20, seed=0).draws.shape == (1, 20, 2)
        try:
            sample(*given, n_steps=20, seed=0, backend="cuda")
        except ImportError as error:
            print(error)
    """)
    assert said == f"numba_cuda is needed for this: {how_to_install('cuda')}"


def test_nothing_but_the_backend_imports_cuda():
    """Not an import of any package, and no run on the CPU, a stream, or a check."""
    said = in_python("""
        import sys
        import figures, sysid, targets, toolkit
        from targets import mixtures
        from toolkit import samplers
        given = mixtures.gaussian_mixture([[0.0, 0.0]], 1.0), samplers.sgld(0.1)
        toolkit.sample(*given, n_steps=20, seed=0)
        list(toolkit.stream(*given, n_steps=20, seed=0))
        print([name for name in sys.modules if name.startswith(("numba.cuda", "numba_cuda", "cuda"))])
    """)
    assert said == "[]"


def test_without_a_device_it_says_so():
    if is_here():
        pytest.skip("there is a GPU")
    with pytest.raises(CudaError, match='needs an NVIDIA GPU and its driver, and none is found; use backend="cpu"'):
        sample(NORMAL, SGLD, **RUN)
    with pytest.raises(CudaError, match="none is found"):
        stream(NORMAL, SGLD, **RUN)


def bowl(points):
    return 0.5 * (points**2).sum(axis=1), points


REFUSED = {
    "unknown": ({"backend": "gpu"}, ValueError, "backend must be one of 'cpu', 'cuda', got 'gpu'"),
    "none": ({"backend": None}, ValueError, "backend must be"),
    "a device": ({"backend": 0}, ValueError, "backend must be"),
    "capitals": ({"backend": "CUDA"}, ValueError, "backend must be"),
    "python": ({"problem": from_callable(bowl, dim=2)}, ValueError, "backend must be 'cpu' for 'bowl', a Python func"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_come_before_the_device_is_looked_for(name):
    changes, kind, words = REFUSED[name]
    arguments = {"problem": NORMAL, "sampler": SGLD, **RUN, **changes}
    for call in (sample, stream):
        with pytest.raises(kind, match=words):
            call(**arguments)


def test_wrong_numbers_are_refused_alike(monkeypatch):
    """Whatever the backend, by the same words; a device is found for once."""
    from toolkit._engine.cuda import device

    monkeypatch.setattr(device, "check_available", lambda: None)
    wrong = [
        {"n_chains": -1}, {"n_chains": 2**33}, {"n_steps": 0}, {"threads": 0}, {"threads": -3}, {"burn_in": 20},
        {"layout": Layout(lanes=0)}, {"layout": Layout(chunk_steps=0)}, {"layout": None}, {"init": [np.nan, 0.0]},
        {"seed": -1}, {"thin": 0}, {"trace_every": 21}, {"n_chains": 10**9, "n_steps": 10**9}, {"progress": 3},
    ]  # fmt: skip
    for changes in wrong:
        said = []
        for backend in ("cpu", "cuda"):
            with pytest.raises((TypeError, ValueError)) as caught:
                sample(NORMAL, SGLD, **RUN | {"backend": backend} | changes)
            said.append((type(caught.value), str(caught.value)))
        assert said[0] == said[1]
