"""Accumulators on a device give the bits they give on the CPU, and no draw travels for them."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.support.gathering_worker import (
    CASES,
    COSINE,
    MORE,
    SAMPLERS,
    SHORT,
    STEPS,
    Spans,
    asked,
    every,
    flat,
    job_of,
    raws_of,
)
from toolkit import Layout, sample

pytest.importorskip("numba_cuda", reason="needs the cuda extra")
pytestmark = pytest.mark.filterwarnings("ignore::toolkit.ContourWarning")
ROOT = Path(__file__).resolve().parents[2]
OTHERS = [name for name in SAMPLERS if name != "sgld"]
SPECIAL = ("chunks", "resumed", "streamed", "kept", "own")
FORMS = [(name, dim, weighted) for name, dim in [*((n, 2) for n in every()), ("moments", 3)] for weighted in (0, 1)]


def simulated(folder, titles):
    """What the worker leaves in ``folder``, in which the CPU has begun the runs; by name."""
    for name in set(titles) & set(SAMPLERS):
        sample(COSINE, SAMPLERS[name], keep_draws=False, checkpoint=folder / f"{name}.ckpt", **asked(SHORT))
    environment = {
        **os.environ, "NUMBA_ENABLE_CUDASIM": "1", "NUMBA_OPT": "0", "NUMBA_CACHE_DIR": str(folder / "cache"),
        "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore",
    }  # fmt: skip
    command = [sys.executable, "-m", "tests.support.gathering_worker", str(folder), *titles]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    return simulated(tmp_path_factory.mktemp("device"), [*CASES, "sgld"])


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    return simulated(tmp_path_factory.mktemp("device"), [*MORE, *OTHERS])


def host_states(case, is_replica_major=False):
    """States of a case after the host has taken in the draws; one by one of each replica where that is asked for."""
    job = job_of(case)
    folded = []
    for raw in raws_of(case):
        own = raw[:, :, : case.targets].transpose((3, 2, 1, 0) if is_replica_major else (3, 1, 2, 0))
        folded.append(own.reshape(len(own), -1, raw.shape[0]))
    draws, energies, weights = folded[0], folded[1][..., 0], folded[2][..., 0] if case.is_weighted else None
    states = {name: a.start(job.problem, len(draws)) for name, a in job.accumulators.items()}
    for name, accumulator in job.accumulators.items():
        accumulator.update(states[name], draws, weights, energies, STEPS)
    return {f"{name}.{key}": array for name, state in states.items() for key, array in state.items()}


def differences(found, expected):
    """Names of the arrays that differ in any bit."""
    assert set(found) == set(expected)
    return {name for name, array in expected.items() if found[name].tobytes() != np.asarray(array).tobytes()}


def check_case(folder, title, case):
    assert not differences(np.load(folder / f"{title}.npz"), host_states(case))


@pytest.mark.parametrize("title", CASES)
def test_states_are_the_hosts(few, title):
    check_case(few, title, CASES[title])


def test_another_order_of_the_draws_would_be_seen(few):
    """Replicas one after the other, in place of step by step, give sums, batches and best points of other bits."""
    found = np.load(few / "weighted pairs.npz")
    wrong = differences(found, host_states(CASES["weighted pairs"], is_replica_major=True))
    assert {"moments.mean", "batches.sums", "best.step", "kl.kl"} <= wrong


def check_runs(folder, name):
    whole = sample(COSINE, SAMPLERS[name], keep_draws=False, **{**asked(), "accumulators": {**every(), "own": Spans()}})
    expected = flat(whole)
    without = {key: value for key, value in expected.items() if not key.startswith("own")}
    for special in SPECIAL:
        found = dict(np.load(folder / f"{name} {special}.npz"))
        assert not differences(found, expected if special == "own" else without), special
    saved = folder / f"{name}.ckpt.device"
    resumed = sample(COSINE, SAMPLERS[name], keep_draws=False, checkpoint=saved, **asked())
    assert not differences(flat(resumed), without)
    other = sample(COSINE, SAMPLERS[name], keep_draws=False, **{**asked(), "seed": 8})
    assert len(differences(flat(other), without)) > 10


def test_runs_are_the_cpus(few):
    check_runs(few, "sgld")


def test_no_draw_travels_and_what_does_not_fit_is_refused(few):
    sent, message = np.load(few / "travels.npy")
    assert sent == "0"
    assert message.startswith("accumulators must fit into the device's 5e-06 GB, got ")
    assert "n_chains=3" in message


@pytest.mark.parametrize(("chosen", "is_refused"), [(every(), False), ({**every(), "own": Spans()}, True)])
def test_the_host_needs_room_for_draws_of_its_own_accumulators_alone(monkeypatch, chosen, is_refused):
    from toolkit._engine import job

    monkeypatch.setattr("toolkit._engine.cuda.device.check_available", lambda: None)
    monkeypatch.setattr(job, "check_room", lambda name, value, n_bytes, **more: needed.append(n_bytes))
    needed = []
    monkeypatch.setattr("toolkit._output.execution.saves_of", lambda *given: 1 / 0)  # nothing is to run
    with pytest.raises(ZeroDivisionError):
        sample(
            COSINE, SAMPLERS["sgld"], keep_draws=False, backend="cuda", layout=Layout(chunk_steps=10_000),
            n_steps=20_000, n_chains=1_000, seed=0, accumulators=chosen,
        )  # fmt: skip
    assert (max(needed) > 8 * 2 * 1_000 * 10_000) == is_refused


def check_ptx(name, dim, weighted, capability, real=np.float64):
    from toolkit._engine.cuda import compiling
    from toolkit._engine.cuda.accumulators import accumulator_ptx

    accumulator = every()[name]
    state = accumulator.start(job_of(CASES["weighted pairs"]._replace(dim=dim)).problem, 1)
    ptx = accumulator_ptx(accumulator.draw_kernel(dim), state, bool(weighted), capability, real)
    assert not compiling.contracts(ptx)
    assert not compiling.CALLED.findall(ptx)
    assert ".visible .entry" in ptx


def test_a_kernel_compiles_for_a_device():
    check_ptx("batches", 2, 1, (8, 0))


@pytest.mark.slow
@pytest.mark.parametrize("capability", [(8, 0), (9, 0)])
@pytest.mark.parametrize(("name", "dim", "weighted"), FORMS)
def test_all_kernels_compile_for_devices(name, dim, weighted, capability):
    check_ptx(name, dim, weighted, capability)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "dim", "weighted"), FORMS[::2])
def test_all_kernels_take_in_single_precision(name, dim, weighted):
    check_ptx(name, dim, weighted, (9, 0), np.float32)


@pytest.mark.slow
@pytest.mark.parametrize("title", MORE)
def test_more_states_are_the_hosts(many, title):
    check_case(many, title, MORE[title])


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_more_runs_are_the_cpus(many, name):
    check_runs(many, name)
