"""``sample`` and ``stream``: same bits however it is laid out, errors before the launch, and during it."""

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest

from targets import constrained, mixtures, shapes
from toolkit import Layout, Sampler, boundaries, sample, samplers, schedules, stream, tempering

ROOT = Path(__file__).resolve().parents[2]
FLOWER = constrained(mixtures.cosine25(), shapes.flower())
R2SGLD = samplers.r2sgld(step_sizes=(2e-3, 2e-2), gradient_noise=0.05, energy_noise=0.05)
NORMAL = mixtures.gaussian_mixture([[0.0]], 1.0)


def run_flower(n_chains=7, layout=Layout(), threads=1, **options):
    options = {"n_steps": 200, "burn_in": 20, "thin": 3, "seed": 2**63 + 5, **options}
    return sample(
        FLOWER,
        R2SGLD,
        n_chains=n_chains,
        threads=threads,
        layout=layout,
        keep_replicas=True,
        keep_energies=True,
        **options,
    )


def assert_same(a, b, chains=None):
    for field in ("replica_draws", "energies", "swaps", "swap_rates", "reflections", "reflection_fallbacks"):
        first, second = getattr(a, field), getattr(b, field)
        np.testing.assert_array_equal(first[:chains], second[:chains], err_msg=field)


@pytest.fixture(scope="module")
def reference():
    return run_flower(n_chains=1000, layout=Layout(lanes=2, chunk_steps=200))


@pytest.mark.parametrize("n_chains", [1, 7, 64, 1000])
@pytest.mark.parametrize("threads", [1, 2])
def test_bits_do_not_depend_on_threads_or_on_other_chains(reference, n_chains, threads):
    run = run_flower(n_chains=n_chains, threads=threads)
    assert run.reflections.sum() > 0
    assert run.swaps.sum() > 0
    assert_same(run, reference, n_chains)


@pytest.mark.parametrize("lanes", [1, 2, 5, 26, 54, 128, 3000])
def test_bits_do_not_depend_on_the_block(reference, lanes):
    """Blocks of 1, 1, 2, 13, 27, 64 and all chains; 13 and 27 do not divide their number."""
    assert_same(run_flower(n_chains=100, layout=Layout(lanes=lanes)), reference, 100)


@pytest.mark.parametrize("chunk_steps", [1, 7, 64, 199, 10_000])
def test_bits_do_not_depend_on_the_chunk(reference, chunk_steps):
    assert_same(run_flower(n_chains=9, layout=Layout(chunk_steps=chunk_steps)), reference, 9)


@pytest.mark.parametrize("chunk_steps", [1, 13, 64])
def test_a_stream_joins_to_the_sample(chunk_steps):
    arguments = {"n_steps": 150, "burn_in": 20, "thin": 3, "n_chains": 5, "seed": 3, "keep_energies": True}
    chunks = list(stream(FLOWER, R2SGLD, layout=Layout(chunk_steps=chunk_steps), **arguments))
    whole = sample(FLOWER, R2SGLD, **arguments)
    assert len(chunks) == -(-150 // chunk_steps)
    np.testing.assert_array_equal(np.concatenate([c.draws for c in chunks], axis=1), whole.draws)
    np.testing.assert_array_equal(np.concatenate([c.energies for c in chunks], axis=2), whole.energies)
    np.testing.assert_array_equal(np.concatenate([c.steps for c in chunks]), whole.steps)
    np.testing.assert_array_equal(chunks[-1].swap_rates, whole.swap_rates)
    assert [c.n_steps for c in chunks][-1] == 150


def test_a_stream_keeps_what_a_sample_keeps():
    """Replicas, statistics and trace too; and not what it is told not to."""
    arguments = {"n_steps": 90, "n_chains": 2, "seed": 4, "threads": 1, "layout": Layout(chunk_steps=40)}
    kept = {"keep_replicas": True, "trace_every": 7}
    chunks = list(stream(FLOWER, R2SGLD, **arguments, **kept))
    whole = sample(FLOWER, R2SGLD, **arguments, **kept)
    np.testing.assert_array_equal(np.concatenate([c.replica_draws for c in chunks], axis=2), whole.replica_draws)
    for name in whole.statistics._fields:
        parts = [getattr(c.statistics, name) for c in chunks]
        np.testing.assert_array_equal(np.concatenate(parts, axis=2), getattr(whole.statistics, name))
    assert whole.statistics.swaps.max() > 0
    np.testing.assert_array_equal(np.concatenate([c.trace.steps for c in chunks]), whole.trace.steps)
    (bare, *_) = stream(FLOWER, R2SGLD, keep_statistics=False, **arguments)
    assert bare.statistics is bare.trace is None
    assert bare.replica_draws.shape == (2, 1, 40, 2)


def test_a_stream_does_not_grow():
    """Arrays handed out are of the chunk's size, whatever the number of steps."""
    sizes = set()
    for i, chunk in enumerate(stream(NORMAL, samplers.sgld(0.1), n_steps=10**12, n_chains=4, seed=1)):
        sizes.add(chunk.replica_draws.nbytes + chunk.steps.nbytes)
        if i == 4:
            break
    assert len(sizes) == 1
    assert sizes.pop() < 4e6


def test_a_stream_keeps_nothing_of_its_chunks():
    chunks = stream(NORMAL, samplers.sgld(0.1), n_steps=10**9, n_chains=4, seed=1)
    first = weakref.ref(next(chunks).replica_draws)
    elapsed = [next(chunks).elapsed for _ in range(5)]
    assert (np.diff(elapsed) > 0).all()
    gc.collect()
    assert first() is None


def test_cyclical_bits_do_not_depend_on_the_chunk():
    sampler = samplers.cyclical_sgld(0.02, n_cycles=3, exploration=0.3, boundary=boundaries.reflect())
    runs = [
        sample(FLOWER, sampler, n_steps=500, n_chains=3, seed=4, layout=Layout(chunk_steps=c)) for c in (None, 1, 37)
    ]
    for run in runs[1:]:
        np.testing.assert_array_equal(run.draws, runs[0].draws)


def test_shapes_and_counts():
    run = run_flower()
    assert run.draws.shape == (7, 60, 2)
    assert run.replica_draws.shape == (7, 2, 60, 2)
    assert run.weights.shape == (7, 60)
    assert (run.weights == 1.0).all()
    assert run.energies.shape == (7, 2, 60)
    assert run.swap_rates.shape == (7, 1)
    assert run.reflections.shape == (7, 2)
    assert run.gradient_evaluations == 200 * 7 * 2
    assert run.steps.tolist() == list(range(22, 200, 3))
    assert run.elapsed > 0
    assert "r2sgld on cosine25 in flower: 7 chains" in repr(run)
    np.testing.assert_array_equal(run.draws, run.replica_draws[:, 0])


def test_energies_are_those_of_the_draws():
    run = run_flower()
    points = run.replica_draws.reshape(-1, 2)
    np.testing.assert_array_equal(run.energies.ravel(), FLOWER.target.evaluate(points)[0])


def test_the_whole_seed_counts():
    draws = [
        sample(NORMAL, samplers.sgld(0.1), n_steps=1, seed=s).draws.item() for s in (0, 1, 2**32, 2**63, 2**64 - 1)
    ]
    assert len(set(draws)) == 5


def test_starts():
    shapes_of_start = {(2,): 1, (3, 2): 3, (3, 2, 2): 6}
    for shape, different in shapes_of_start.items():
        start = np.random.default_rng(1).uniform(-0.5, 0.5, shape)
        sampler = samplers.resgld((1e-12, 2e-12), temperatures=(1.0, 2.0), correction=1e9)
        run = sample(FLOWER, sampler, n_steps=1, n_chains=3, init=start, seed=1, keep_replicas=True)
        assert len(np.unique(run.replica_draws.round(3).reshape(-1, 2), axis=0)) == different


def test_every_combination_runs():
    """Langevin × schedule × tempering × boundary on the flower: finite draws, and the same ones again."""
    for schedule in (
        schedules.constant(),
        schedules.exponential_decay(0.99),
        schedules.cosine_cycles(2, exploration=0.2),
    ):
        for temperatures in ((1.0,), (1.0, 3.0), (1.0, 2.0, 4.0, 8.0)):
            for boundary in (boundaries.ignore(), boundaries.penalise(1.0), boundaries.reflect()):
                sampler = Sampler(
                    "combination", [1e-3 * t for t in temperatures], temperatures, schedule=schedule, boundary=boundary,
                    tempering=tempering.replica_exchange() if len(temperatures) > 1 else None, gradient_noise=0.1,
                )  # fmt: skip
                first, second = (sample(FLOWER, sampler, n_steps=60, n_chains=3, seed=5).draws for _ in range(2))
                assert np.isfinite(first).all()
                assert np.ptp(first, axis=1).min() > 0
                np.testing.assert_array_equal(first, second)


def test_no_progress_bar_where_there_is_no_terminal(capfd):
    sample(NORMAL, samplers.sgld(0.1), n_steps=1000, seed=1)
    assert capfd.readouterr().err == ""
    sample(NORMAL, samplers.sgld(0.1), n_steps=1000, seed=1, progress=True)
    assert "sgld" in capfd.readouterr().err
    sample(NORMAL, samplers.sgld(0.1), n_steps=1000, seed=1, progress=False)
    assert capfd.readouterr().err == ""


def test_threads_are_given_back():
    before = threading.active_count()
    sample(NORMAL, samplers.sgld(0.1), n_steps=100, n_chains=100, seed=1, threads=2)
    running = stream(NORMAL, samplers.sgld(0.1), n_steps=10**9, n_chains=100, seed=1, threads=2)
    next(running)
    assert any(thread.name.startswith("toolkit") for thread in threading.enumerate())
    running.close()
    assert threading.active_count() == before


INTERRUPTED = """
import itertools, json, signal, sys, warnings
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have started us with it ignored
import numpy as np
from toolkit import Layout, sample, samplers
from targets import mixtures
warnings.simplefilter("error")
arguments = dict(n_chains=3, seed=9, threads=2, layout=Layout(lanes=1, chunk_steps=1000))
sampler = samplers.resgld((1e-3, 1e-2), temperatures=(1.0, 5.0))

class Says:
    needs_energies = False

    def start(self, problem, n_chains):
        return {"nothing": np.zeros(n_chains)}

    def update(self, state, draws, weights, energies, steps):
        if next(updates) == 300:
            print("ready", flush=True)

    def result(self, state):
        return state["nothing"]

updates = itertools.count()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    says = {"says": Says()}
    run = sample(mixtures.cosine25(), sampler, n_steps=40_000_000, thin=1000, accumulators=says, **arguments)
again = sample(mixtures.cosine25(), sampler, n_steps=run.n_steps, thin=1000, **arguments)
equal = bool((run.draws == again.draws).all() and (run.swap_rates == again.swap_rates).all())
equal = equal and [w.category.__name__ for w in caught] == ["InterruptedWarning"]
print(json.dumps([run.interrupted, run.n_steps, run.draws.shape, equal, again.interrupted]))
"""


@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")
def test_interrupt_returns_the_draws_so_far():
    process = subprocess.Popen([sys.executable, "-c", INTERRUPTED], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline().strip() == "ready"  # a hundred chunks of three chains are done
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    interrupted, n_steps, shape, equal, again_interrupted = json.loads(out)
    assert interrupted
    assert not again_interrupted
    assert 0 < n_steps < 40_000_000
    assert shape == [3, n_steps // 1000, 2]
    assert equal
