"""What the host does with a device, through numba-cuda itself, on a driver that pretends: no call of it is refused."""

import inspect
import threading
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from targets import mixtures
from tests.support.device_cases import box, made
from tests.support.pretended_device import pretend
from toolkit import CudaError, Layout, sample, samplers, stopping
from toolkit._engine.run_options import RunOptions

pytest.importorskip("numba_cuda")
LINE = mixtures.gaussian_mixture([[0.0]], 1.0)


def idle(real):
    """A maker of kernels that take the arguments of those that ``real`` makes, and do nothing."""

    def make(*given):
        found = {}
        exec(f"def kernel({', '.join(inspect.signature(real(*given)).parameters)}):\n    pass", found)
        return found["kernel"]

    return make


@pytest.fixture
def launches(monkeypatch):
    """The launches on a device whose kernels are idle, and none of them kept on disk."""
    from toolkit._engine.cuda import accumulators, kernel

    monkeypatch.setattr(kernel, "chain_kernel", idle(kernel.chain_kernel))
    monkeypatch.setattr(kernel, "kernel_stamp", lambda *given: None)
    monkeypatch.setattr(accumulators, "accumulator_kernel", idle(accumulators.accumulator_kernel))
    monkeypatch.setattr(accumulators, "cache_stamp", lambda function: None)
    caches = kernel.compiled, accumulators.compiled_accumulator
    for cache in caches:
        cache.cache_clear()
    yield pretend(monkeypatch)
    for cache in caches:
        cache.cache_clear()


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


@pytest.mark.parametrize("keep_draws", [True, False])
def test_a_condition_ends_a_run_on_a_device(launches, tmp_path, keep_draws):
    """The outputs grow, moments are fetched, and copies are made for a checkpoint, through the same driver."""
    given = {"n_chains": 5, "seed": 3, "keep_draws": keep_draws, "trace_every": 4, "backend": "cuda"}
    until = (stopping.ess(10) & stopping.round_trips(1)) | stopping.gradients(2_000)
    run = sample(LINE, samplers.resgld((0.1, 0.2), temperatures=(1.0, 2.0)), until=until, on_divergence="keep",
                 checkpoint=tmp_path / "run.ckpt", **given)  # fmt: skip
    assert run.n_steps == 200
    assert run.draws.shape == (5, 200 * keep_draws, 1)
    assert run.stopping.reason.startswith("gradients(2000) holds")


def test_the_kernel_is_compiled_once(launches):
    """A launch finds what was compiled for the types that are written down."""
    from toolkit._engine.cuda import kernel

    for n_chains in (1, 5):
        sample(LINE, samplers.sgld(0.1), n_steps=3, n_chains=n_chains, seed=3, backend="cuda")
    assert kernel.compiled.cache_info().currsize == 1
    engine = engine_of(LINE, samplers.sgld(0.1), 5)
    assert len(engine._kernel.overloads) == 1


def test_accumulators_are_launched_with_what_they_are_compiled_for(launches, monkeypatch):
    """Other types would be compiled anew where they are launched, and fused."""
    from toolkit import accumulators
    from toolkit._engine.cuda import accumulators as on_device

    compiled, kernels = on_device.compiled_accumulator, []

    def noted(*given):
        kernels.append(compiled(*given))
        return kernels[-1]

    monkeypatch.setattr(on_device, "compiled_accumulator", noted)
    edges = np.linspace(-1.0, 1.0, 4)
    chosen = {
        "moments": accumulators.moments(), "cells": accumulators.histogram(edges), "best": accumulators.best_point(),
        "energies": accumulators.energy_histogram(edges), "batches": accumulators.batch_means(4),
    }  # fmt: skip
    run = sample(LINE, samplers.sgld(0.1), n_steps=6, n_chains=5, burn_in=2, seed=3, backend="cuda", keep_draws=False,
                 accumulators=chosen, layout=Layout(chunk_steps=2))  # fmt: skip
    assert set(run.accumulated) == set(chosen)
    assert [len(kernel.overloads) for kernel in kernels] == [1] * len(chosen)
    assert len(launches) == 3 + 2 * len(chosen)  # chunks, of which two have draws


class Heard:
    """An accumulator of the host that knows which threads have called it."""

    needs_energies = False

    def __init__(self):
        self.threads = set()

    def start(self, problem, n_chains):
        return {"n": np.zeros(n_chains, np.int64)}

    def update(self, state, draws, weights, energies, steps):
        self.threads.add(threading.current_thread().name)
        state["n"] += draws.shape[1]

    def result(self, state):
        return state["n"].copy()


@pytest.mark.parametrize(("threads", "names"), [(1, "MainThread"), (2, "toolkit_")])
def test_accumulators_of_the_host_have_its_threads(launches, threads, names):
    heard = Heard()
    run = sample(LINE, samplers.sgld(0.1), n_steps=6, n_chains=4, seed=3, backend="cuda", keep_draws=False,
                 accumulators={"heard": heard}, threads=threads)  # fmt: skip
    assert run.accumulated["heard"].tolist() == [6] * 4
    assert {name[: len(names)] for name in heard.threads} == {names}


def test_what_is_not_asked_for_takes_no_room(launches):
    """Energies, weights, statistics: one number of each, whatever the draws of a piece."""
    from toolkit._engine.cuda.transfers import Export

    export = Export(0, 2, 3, np.float64)
    export.allocate(1000, True)
    assert export.raw.shape == (1, 1, 2, 3)


def engine_of(problem, sampler, n_chains):
    """The engine of a run."""
    from toolkit._engine.driver import Driver
    from toolkit._engine.job import make_job
    from toolkit._engine.run_record import RunRecord

    options = RunOptions(n_steps=10, seed=0, n_chains=n_chains, backend="cuda", threads=1)
    job = make_job(problem, sampler, options)
    return Driver(job, False, RunRecord)._engine


@pytest.mark.parametrize("name", ["r2sghmc", "icsgld", "tact_hmc"])
def test_a_state_comes_home_as_it_went(launches, name):
    """All that snapshots keep of a chain, to its place."""
    from toolkit._engine.state import STORED, by_chain

    sampler = made(name)
    engine = engine_of(box(), sampler, 7)
    (block,) = engine.blocks
    views = {field: by_chain(block.state, field, 7, sampler.n_replicas) for field in STORED}
    sent, count = {}, 1
    for field, view in views.items():
        view[...] = np.arange(count, count + view.size).reshape(view.shape)
        sent[field], count = view.copy(), count + view.size
    engine._state.send()
    for view in views.values():
        view[...] = 0
    engine._state.fetch()
    assert count > 100
    for field, view in views.items():
        np.testing.assert_array_equal(view, sent[field], err_msg=field)


def test_a_device_without_room_is_told_before_anything_runs(launches, monkeypatch):
    from toolkit._engine.cuda import device

    context = device.cuda.current_context()
    monkeypatch.setattr(context, "get_memory_info", lambda: SimpleNamespace(free=10_000, total=20_000))
    with pytest.raises(ValueError, match=r"n_chains must be < \d+ for the device's 1e-05 GB, got 1000, whose state"):
        sample(LINE, samplers.sgld(0.1), n_steps=3, n_chains=1000, seed=3, backend="cuda")
    assert launches == []


def test_many_replicas_are_refused_where_their_threads_do_not_fit(launches, monkeypatch):
    from toolkit._engine.cuda import device

    context = device.cuda.current_context()
    monkeypatch.setattr(context, "get_memory_info", lambda: SimpleNamespace(free=10**7, total=10**9))
    with pytest.raises(ValueError, match=r"'cpu' for chains of 1 replicas in 1 dim.* takes 0.0173 GB, of 0.01 GB"):
        sample(LINE, samplers.sgld(0.1), n_steps=3, seed=3, backend="cuda")
    assert launches == []


def test_a_device_that_fails_is_told(launches, monkeypatch):
    from toolkit._engine.cuda import device

    def fail():
        raise OSError("CUDA initialized before forking")

    monkeypatch.setattr(device.cuda.current_context(), "get_memory_info", fail)
    with pytest.raises(CudaError, match=r"cannot use the GPU \(CUDA initialized before forking\); use backend=.cpu"):
        sample(LINE, samplers.sgld(0.1), n_steps=3, seed=3, backend="cuda")
