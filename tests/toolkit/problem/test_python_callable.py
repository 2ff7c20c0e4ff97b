"""``from_callable``: draws of the compiled path, the user's errors with the run so far, Ctrl-C, threads, garbage."""

import gc
import os
import signal
import threading
import time
import traceback
import weakref

import numpy as np
import pytest

from targets import constrained, mixtures, shapes
from toolkit import (
    DivergenceError,
    InterruptedWarning,
    Layout,
    Problem,
    boundaries,
    from_callable,
    sample,
    samplers,
    stream,
)
from toolkit.tempering.contour_tempering import Partition

BLOCK = mixtures.cosine25()
FLOWER = constrained(BLOCK, shapes.flower())


def cosine25(points):
    squared = (points**2).sum(axis=1)
    beyond = squared > 20.0
    energies = 0.2 * squared - 2.0 * np.cos(2.0 * np.pi * points).sum(axis=1) + np.where(beyond, squared - 20.0, 0.0)
    pull = np.where(beyond, 2.4, 0.4)[:, None]
    return energies, pull * points + 4.0 * np.pi * np.sin(2.0 * np.pi * points)


def normal(points):
    return 0.5 * (points**2).sum(axis=1), points


SLOW = from_callable(cosine25, dim=2)

SAMPLERS = {
    "sgld": samplers.sgld(1e-3),
    "r2sgld, reflected": samplers.r2sgld(step_sizes=(1e-3, 3e-3), boundary=boundaries.reflect()),
    "hmc": samplers.hmc(0.01),
    "icsgld": samplers.icsgld(1e-3, n_replicas=4, partition=Partition(-4.0, 12.0, 40)),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_draws_equal_the_compiled_paths(name):
    """Bit for bit where the values are the same; to rounding, as the flow spreads it, where NumPy computes them."""
    problems = [Problem(t, FLOWER.domain) for t in (BLOCK, from_callable(BLOCK.evaluate, dim=2), SLOW)]
    runs = [
        sample(
            p, SAMPLERS[name], n_steps=1000, n_chains=6, seed=3, keep_replicas=True, keep_energies=True, init=[0.0, 0.0]
        )
        for p in problems
    ]
    np.testing.assert_array_equal(runs[0].replica_draws, runs[1].replica_draws)
    np.testing.assert_array_equal(runs[0].weights, runs[1].weights)
    np.testing.assert_array_equal(runs[0].energies, runs[1].energies)
    np.testing.assert_allclose(runs[0].replica_draws[:, :, :100], runs[2].replica_draws[:, :, :100], atol=1e-9)
    np.testing.assert_allclose(runs[0].replica_draws, runs[2].replica_draws, atol=1e-6)


@pytest.mark.parametrize("layout", [Layout(lanes=1), Layout(lanes=5, chunk_steps=7), Layout(lanes=1000)])
@pytest.mark.parametrize("threads", [1, 2])
def test_bits_do_not_depend_on_threads_or_layout(layout, threads):
    same = {"n_steps": 60, "n_chains": 11, "seed": 2, "init": [0.0, 0.0]}
    run = sample(from_callable(BLOCK.evaluate, dim=2), samplers.sgld(1e-3), threads=threads, layout=layout, **same)
    np.testing.assert_array_equal(run.draws, sample(BLOCK, samplers.sgld(1e-3), **same).draws)


def test_a_stream_joins_to_the_sample():
    chunks = list(stream(SLOW, samplers.sgld(1e-3), n_steps=100, n_chains=2, seed=5))
    assert [c.draws.shape[1] for c in chunks] == [16] * 6 + [4]
    whole = sample(SLOW, samplers.sgld(1e-3), n_steps=100, n_chains=2, seed=5)
    np.testing.assert_array_equal(np.concatenate([c.draws for c in chunks], axis=1), whole.draws)


def test_calls_are_as_wide_as_blocks_and_points_are_the_functions_own():
    seen = []

    def keeps(points):
        seen.append(points)
        energies, gradients = points[:, 0] ** 2 / 2.0, points.copy()
        points[:] = np.nan  # does not reach the engine
        return energies, gradients

    run = sample(from_callable(keeps, dim=1), samplers.sgld(0.1), n_steps=5, n_chains=32, seed=0,
                 layout=Layout(lanes=16), threads=1)  # fmt: skip
    assert np.isfinite(run.draws).all()
    assert {p.shape for p in seen[1:]} == {(16, 1)}
    assert len(seen) == 1 + 2 * 6  # the start; two blocks, five steps and a last look
    assert all(p.dtype == np.float64 and p.flags.c_contiguous for p in seen)


class Tensor:
    """What a framework's tensor offers: no array until it is detached and fetched."""

    def __init__(self, values, ready=False):
        self.values, self.ready = values, ready

    def detach(self):
        return self

    def cpu(self):
        return Tensor(self.values, True)

    def __array__(self, dtype=None, copy=None):
        if not self.ready:
            raise RuntimeError("can't convert a tensor that requires a gradient")
        return np.asarray(self.values, dtype)


def test_tensors_and_lists_and_less_precision_are_converted():
    points = np.array([[1.0, 2.0], [3.0, 0.5]])
    for convert in (Tensor, np.ndarray.tolist, lambda a: a.astype(np.float32)):
        made = from_callable(lambda p, c=convert: tuple(map(c, normal(p))), dim=2)
        energies, gradients = made.evaluate(points)
        np.testing.assert_array_equal(energies, [2.5, 4.625])
        np.testing.assert_array_equal(gradients, points)
        assert energies.dtype == gradients.dtype == np.float64


def failing(points, after, error):
    failing.calls += 1
    if failing.calls > after:
        raise error
    return normal(points)


@pytest.mark.parametrize("threads", [1, 2])
def test_what_the_function_raises_arrives_with_the_run_so_far(threads):
    failing.calls = 0
    made = from_callable(lambda p: failing(p, 300, KeyError("lost")), dim=2, name="mine")
    with pytest.raises(KeyError, match="lost") as caught:
        sample(made, samplers.sgld(0.1), n_steps=10_000, n_chains=16, seed=1, threads=threads, layout=Layout(lanes=8))
    run = caught.value.run
    assert 0 < run.draws.shape[1] <= 150
    assert caught.value.__notes__ == [
        f"'mine' raised this after step {run.n_steps}; this error's `run` holds the {run.n_steps} draws of each chain "
        "until then."
    ]
    assert "failing" in "".join(traceback.format_tb(caught.value.__traceback__))
    assert failing.calls <= 302  # nothing is called again
    fine = sample(from_callable(normal, dim=2), samplers.sgld(0.1), n_steps=run.n_steps, n_chains=16, seed=1)
    np.testing.assert_array_equal(run.draws, fine.draws)


def test_an_error_that_takes_no_attributes_arrives_as_it_is():
    class FrozenError(Exception):
        def __setattr__(self, name, value):
            raise RuntimeError("frozen")

    failing.calls = 0
    made = from_callable(lambda p: failing(p, 20, FrozenError("lost")), dim=1)
    with pytest.raises(FrozenError, match="lost"):
        sample(made, samplers.sgld(0.1), n_steps=100, seed=1)


def test_errors_in_a_stream():
    failing.calls = 0
    made = from_callable(lambda p: failing(p, 40, KeyError("lost")), dim=1)
    chunks = stream(made, samplers.sgld(0.1), n_steps=100, seed=1)
    assert next(chunks).draws.shape == (1, 16, 1)
    with pytest.raises(KeyError, match="lost"):
        list(chunks)


def test_an_interrupt_in_the_function_ends_the_run_as_ctrl_c_does():
    failing.calls = 0
    made = from_callable(lambda p: failing(p, 50, KeyboardInterrupt()), dim=2)
    with pytest.warns(InterruptedWarning, match="interrupted after 32 of 1000 steps; the run holds 32 of 1000 draws"):
        run = sample(
            made, samplers.sgld(0.1), n_steps=1000, n_chains=2, seed=1, layout=Layout(chunk_steps=16), threads=1
        )
    assert run.draws.shape == (2, 32, 2)


def test_ctrl_c_does_not_wait_for_the_chunk():
    """The signal comes while a slow function is under way, in a chunk of 10⁵ steps."""

    def slow(points):
        time.sleep(0.01)
        return normal(points)

    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    started = time.perf_counter()
    with pytest.warns(InterruptedWarning, match="interrupted after 0 of 100000 steps"):
        run = sample(
            from_callable(slow, dim=1), samplers.sgld(0.1), n_steps=100_000, seed=1, layout=Layout(chunk_steps=100_000)
        )
    timer.join()
    assert run.interrupted
    assert time.perf_counter() - started < 30.0


BAD_OUTPUTS = {
    "one array": (
        lambda p: p,
        r"mine must return energies and gradients, two arrays; it returned an object of type nd",
    ),
    "three": (lambda p: (p, p, p), "two arrays; it returned a tuple of 3"),
    "energies (n, 1)": (lambda p: (p[:, :1], p), r"mine must return energies of shape \(1,\), got \(1, 1\)"),
    "a scalar": (lambda p: (p.sum(), p), r"energies of shape \(1,\), got \(\)"),
    "transposed": (lambda p: (p[:, 0], p.T), r"mine must return gradients of shape \(1, 2\), got \(2, 1\)"),
    "complex": (lambda p: (p[:, 0], p + 0j), "mine must return real gradients, got an array of complex128"),
    "truths": (lambda p: (p[:, 0] > 0.0, p), "mine must return real energies, got an array of bool"),
    "ragged": (
        lambda p: (p[:, 0], [[1.0], [1.0, 2.0]]),
        r"mine must return gradients of shape \(1, 2\), but they make no array: ",
    ),
    "text": (lambda p: ("low", p), "mine must return real energies, got an array of <U3"),
}


@pytest.mark.parametrize("name", BAD_OUTPUTS)
def test_bad_outputs_are_refused_before_anything_runs(name):
    function, message = BAD_OUTPUTS[name]
    with pytest.raises(ValueError, match=message) as caught:
        sample(from_callable(function, dim=2, name="mine"), samplers.sgld(0.1), n_steps=1, seed=0)
    assert not hasattr(caught.value, "run")


def test_bad_outputs_under_way_are_the_same_error_with_the_run():
    failing.calls = 0

    def changes(points):
        failing.calls += 1
        energies, gradients = normal(points)
        return energies, gradients if failing.calls < 100 else gradients[:, :1]

    with pytest.raises(ValueError, match=r"changes must return gradients of shape \(8, 2\), got \(8, 1\)") as caught:
        sample(from_callable(changes, dim=2), samplers.sgld(0.1), n_steps=1000, n_chains=8, seed=0, threads=1)
    assert caught.value.run.draws.shape[1] > 0


def test_an_energy_that_is_nan_is_a_divergence():
    def bounded(points):
        return np.where(np.abs(points[:, 0]) < 1.0, 0.0, np.nan), np.zeros_like(points)

    with pytest.raises(DivergenceError, match="The energy is not finite there"):
        sample(from_callable(bounded, dim=1), samplers.sgld(0.5), n_steps=1000, n_chains=2, seed=0)


def test_a_trajectory_that_overflows_does_not_reach_the_function():
    """HMC refuses a proposal that has overflowed; the function is not shown its points."""
    shown = []

    def quartic(points):
        shown.append(np.isfinite(points).all())
        with np.errstate(over="ignore"):
            return points[:, 0] ** 4, 4.0 * points**3

    run = sample(from_callable(quartic, dim=1), samplers.hmc(2.0, n_leapfrogs=20), n_steps=210, n_chains=9, seed=0,
                 init=[1.0])  # fmt: skip
    assert all(shown)
    assert np.isfinite(run.draws).all()


@pytest.mark.parametrize("threads", [1, 4])
def test_a_function_is_called_by_one_thread_at_a_time_off_the_main_one(threads):
    """Also where two runs, and someone who evaluates, have the same target."""
    inside, most, names = [0], [0], set()

    def counts(points):
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        names.add(threading.current_thread().name)
        time.sleep(1e-4)
        inside[0] -= 1
        return normal(points)

    made = from_callable(counts, dim=1)

    def run():
        sample(made, samplers.sgld(0.1), n_steps=30, n_chains=32, seed=0, threads=threads, layout=Layout(lanes=8))

    run()
    assert names - {"MainThread"}  # which looked at the start
    assert all(name.startswith("toolkit") for name in names - {"MainThread"})
    others = [threading.Thread(target=run), threading.Thread(target=run)]
    for other in others:
        other.start()
    for _ in range(50):
        made.evaluate(np.ones((3, 1)))
    for other in others:
        other.join()
    assert most[0] == 1


def test_many_targets_at_once():
    made = [from_callable(lambda p, k=k: (0.5 * k * p[:, 0] ** 2, k * p), dim=1) for k in range(1, 40)]
    points = np.array([[2.0]])
    block = made[0].compiled()
    for k, one in enumerate(made, 1):
        energy, gradient = np.empty(1), np.empty((1, 1))
        block(points, energy, gradient, one.parameters, np.zeros((0, 1)))
        assert (energy.item(), gradient.item()) == (2.0 * k, 2.0 * k)
    chunks = [stream(one, samplers.sgld(0.01), n_steps=32, seed=1) for one in made[:3]]
    draws = [[next(c).draws for c in chunks] for _ in range(2)]
    assert not np.array_equal(draws[0][0], draws[0][1])


def test_dropped_targets_are_collected():
    def function(points):
        return normal(points)

    made = from_callable(function, dim=1)
    sample(made, samplers.sgld(0.1), n_steps=20, seed=1)
    parameters, block = made.parameters, made.compiled()
    gone = weakref.ref(function)
    del made, function
    gc.collect()
    assert gone() is None
    energy = np.zeros(1)
    block(np.ones((1, 1)), energy, np.zeros((1, 1)), parameters, np.zeros((0, 1)))
    assert np.isnan(energy).all()  # a handle that is no more is no crash


def test_bad_arguments():
    with pytest.raises(TypeError, match=r"function must be a function of points \(lanes, dim\), got 3"):
        from_callable(3, dim=1)
    with pytest.raises(ValueError, match="dim must be ≥ 1"):
        from_callable(normal, dim=0)


def test_a_start_without_a_gradient_is_refused():
    def half(points):
        return points[:, 0], np.column_stack([points[:, 0], np.full(len(points), np.nan)])

    with pytest.raises(
        ValueError,
        match=r"init must have a finite gradient, got gradient \[1.0, nan\] with energy 1 at \[1.0, 0.0\] for chain 0, "
        "replica 0; an entry that is always nan is one that the target does not fill",
    ):
        sample(from_callable(half, dim=2), samplers.sgld(0.1), n_steps=1, seed=0, init=[1.0, 0.0])
