"""What the host does with a device, through numba-cuda itself, on a driver that pretends: no call of it is refused."""

import inspect
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from device_cases import box, made
from pretended_device import pretend

from targets import mixtures
from toolkit import CudaError, Layout, sample, samplers

pytest.importorskip("numba_cuda")
LINE = mixtures.gaussian_mixture([[0.0]], 1.0)


@pytest.fixture
def launches(monkeypatch):
    """The launches on a device of which each kernel takes the arguments of a real one, and does nothing."""
    from toolkit import chain_kernel

    real = chain_kernel.chain_kernel

    def idle(*given):
        found = {}
        exec(f"def kernel({', '.join(inspect.signature(real(*given)).parameters)}):\n    pass", found)
        return found["kernel"]

    monkeypatch.setattr(chain_kernel, "chain_kernel", idle)
    monkeypatch.setattr(chain_kernel, "kernel_stamp", lambda *given: None)
    chain_kernel.compiled.cache_clear()
    yield pretend(monkeypatch)
    chain_kernel.compiled.cache_clear()


def of_chains(launches):
    """The launches of the chains' kernel, which has the most arguments."""
    most = max(len(launch[3]) for launch in launches)
    return [launch for launch in launches if len(launch[3]) == most]


@pytest.mark.parametrize("n_chains", [1, 33, 70_000])
def test_every_chain_has_a_thread_and_nothing_warns(launches, n_chains):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = sample(
            LINE, samplers.sgld(0.1), n_steps=24, n_chains=n_chains, seed=3, trace_every=4, keep_energies=True,
            backend="cuda", layout=Layout(chunk_steps=12),
        )  # fmt: skip
    assert run.draws.shape == (n_chains, 24, 1)
    kernels = of_chains(launches)
    assert len(kernels) == 8  # two chunks of four pieces
    for blocks, threads, _, _ in kernels:
        assert n_chains <= blocks[0] * threads[0] < n_chains + threads[0]
    assert len({stream for _, _, stream, _ in launches}) == 1
    assert all(blocks[1:] == (1, 1) for blocks, _, _, _ in launches)


def test_the_kernel_is_compiled_once(launches):
    """A launch finds what was compiled for the types that are written down."""
    from toolkit import chain_kernel

    for n_chains in (1, 5):
        sample(LINE, samplers.sgld(0.1), n_steps=3, n_chains=n_chains, seed=3, backend="cuda")
    assert chain_kernel.compiled.cache_info().currsize == 1
    engine = engine_of(LINE, samplers.sgld(0.1), 5)
    assert len(engine._kernel.overloads) == 1


def engine_of(problem, sampler, n_chains):
    """The engine of a run."""
    from toolkit.driver import Driver
    from toolkit.job import make_job

    job = make_job(
        problem, sampler, n_steps=10, seed=0, n_chains=n_chains, burn_in=0, thin=1, init=None, backend="cuda",
        threads=1, keep_replicas=False, keep_energies=False, keep_statistics=True, trace_every=None, accumulators=None,
        checkpoint=None, checkpoint_every=60.0, layout=Layout(), dtype="float64",
    )  # fmt: skip
    return Driver(job, progress=False)._engine


@pytest.mark.parametrize("name", ["r2sghmc", "icsgld", "tact_hmc"])
def test_a_state_comes_home_as_it_went(launches, name):
    """All that snapshots keep of a chain, to its place."""
    from toolkit.snapshots import STORED, by_chain

    sampler = made(name)
    engine = engine_of(box(), sampler, 7)
    (block,) = engine.blocks
    views = {field: by_chain(block.state, field, 7, sampler.n_replicas) for field in STORED}
    sent, count = {}, 1
    for field, view in views.items():
        view[...] = np.arange(count, count + view.size).reshape(view.shape)
        sent[field], count = view.copy(), count + view.size
    engine._send()
    for view in views.values():
        view[...] = 0
    engine._fetch()
    assert count > 100
    for field, view in views.items():
        np.testing.assert_array_equal(view, sent[field], err_msg=field)


def test_a_device_without_room_is_told_before_anything_runs(launches, monkeypatch):
    from toolkit import device

    context = device.cuda.current_context()
    monkeypatch.setattr(context, "get_memory_info", lambda: SimpleNamespace(free=10_000, total=20_000))
    with pytest.raises(ValueError, match=r"n_chains must be < \d+ for the device's 1e-05 GB, got 1000, whose state"):
        sample(LINE, samplers.sgld(0.1), n_steps=3, n_chains=1000, seed=3, backend="cuda")
    assert launches == []


def test_many_replicas_are_refused_where_their_threads_do_not_fit(launches, monkeypatch):
    from toolkit import device

    context = device.cuda.current_context()
    monkeypatch.setattr(context, "get_memory_info", lambda: SimpleNamespace(free=10**7, total=10**9))
    with pytest.raises(ValueError, match=r"'cpu' for chains of 1 replicas in 1 dim.* takes 0.0173 GB, of 0.01 GB"):
        sample(LINE, samplers.sgld(0.1), n_steps=3, seed=3, backend="cuda")
    assert launches == []


def test_a_device_that_fails_is_told(launches, monkeypatch):
    from toolkit import device

    def fail():
        raise OSError("CUDA initialized before forking")

    monkeypatch.setattr(device.cuda.current_context(), "get_memory_info", fail)
    with pytest.raises(CudaError, match=r"cannot use the GPU \(CUDA initialized before forking\); use backend=.cpu"):
        sample(LINE, samplers.sgld(0.1), n_steps=3, seed=3, backend="cuda")
