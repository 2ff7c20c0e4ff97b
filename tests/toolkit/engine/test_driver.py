"""Ctrl-C waits until a block of work is whole; a replica that diverges stops, is named, and takes nobody with it."""

import os
import re
import signal
import threading

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from targets import mixtures
from tests.support.simple_targets import QUARTIC
from toolkit import (
    DivergenceError,
    InterruptedWarning,
    Layout,
    Target,
    accumulators,
    diagnostics,
    from_callable,
    sample,
    samplers,
    stopping,
    stream,
)
from toolkit._engine import driver
from toolkit._engine.driver import defer_interrupt


def press():
    """What the terminal does at Ctrl-C."""
    os.kill(os.getpid(), signal.SIGINT)


def work(done, presses):
    """Press Ctrl-C, so many times, each time noting that work goes on."""
    with defer_interrupt():
        for i in range(presses):
            press()
            done.append(i)


def test_work_comes_to_its_end_and_then_the_interrupt_comes():
    done = []
    with pytest.raises(KeyboardInterrupt):
        work(done, 1)
    assert done == [0]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_press_does_not_wait():
    done = []
    with pytest.raises(KeyboardInterrupt):
        work(done, 2)
    assert done == [0]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_of_the_work_itself_is_the_one_that_is_raised():
    class Immovable(list):
        def append(self, value):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work(Immovable(), 1)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_nothing_is_held_under_a_users_own_handler_or_in_another_thread():
    heard = []
    before = signal.signal(signal.SIGINT, lambda number, frame: heard.append("user's"))
    try:
        with defer_interrupt():
            press()
            assert heard == ["user's"]
    finally:
        signal.signal(signal.SIGINT, before)

    def look():
        with defer_interrupt():
            heard.append(signal.getsignal(signal.SIGINT) is signal.default_int_handler)

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert heard == ["user's", True]


@pytest.mark.parametrize("keep_draws", [True, False])
def test_the_chunk_under_way_is_part_of_the_run(monkeypatch, keep_draws):
    """Pressed while the third of five chunks is under way, with blocks still to come: three chunks are whole."""
    arguments = {"n_steps": 50, "n_chains": 40, "seed": 2, "layout": Layout(lanes=8, chunk_steps=10)}
    problem, sampler = mixtures.cosine25(), samplers.sgld(1e-3)
    whole = sample(problem, sampler, **arguments | {"n_steps": 30}, threads=2)
    count, calls = driver.count, []

    def counted(*given):
        calls.append(1)
        if len(calls) == 4:  # the first is before the first chunk
            press()
        return count(*given)

    monkeypatch.setattr(driver, "count", counted)
    holds = "holds 30 of 50 draws$" if keep_draws else "holds no draws \\(keep_draws=False\\)$"
    with pytest.warns(InterruptedWarning, match=f"interrupted after 30 of 50 steps; the run {holds}"):
        run = sample(problem, sampler, **arguments, threads=2, keep_draws=keep_draws)
    assert run.interrupted
    assert run.n_steps == 30
    assert_array_equal(run.draws, whole.draws if keep_draws else np.zeros((40, 0, 2)))


def log_block(position, energy, gradient, parameters, scratch):
    """U = −log x for x > 0: −log of a negative number is nan, and 1/x grows without bound."""
    for lane in range(position.shape[1]):
        x = position[0, lane]
        energy[lane] = -np.log(x)
        gradient[0, lane] = -1.0 / x


LOG = Target("log", 1, log_block)


def test_divergence_names_the_place_and_keeps_the_draws():
    start = np.array([[0.1], [5.0], [0.2]])
    with pytest.raises(DivergenceError, match="chain 1, replica 0 diverged at step") as caught:
        sample(
            QUARTIC, samplers.sgld(0.02), n_steps=500, n_chains=3, init=start, seed=6, layout=Layout(chunk_steps=100)
        )
    error = caught.value
    assert (error.chain, error.replica) == (1, 0)
    assert np.isfinite(error.state).all()
    assert abs(error.state.item()) > 10.0
    assert "make the step size smaller" in str(error)
    draws = error.run.draws
    assert draws.shape == (3, 100, 1)
    assert np.isfinite(draws[1, : error.step]).all()
    assert np.isnan(draws[1, error.step :]).all()
    alone = sample(QUARTIC, samplers.sgld(0.02), n_steps=100, n_chains=1, init=start[:1], seed=6).draws
    np.testing.assert_array_equal(draws[0], alone[0])  # the others went on as if nothing had been
    assert np.isfinite(draws[2]).all()
    np.testing.assert_array_equal(error.state, draws[1, error.step - 1])


def test_divergence_of_the_energy_alone():
    with pytest.raises(DivergenceError, match="The energy is not finite there"):
        sample(LOG, samplers.sgld(0.5), n_steps=2000, n_chains=4, init=[1.0], seed=7)


def test_divergence_of_a_hot_replica_does_not_swap_into_the_cold_one():
    sampler = samplers.resgld((1e-4, 0.3), temperatures=(1.0, 1.5))
    with pytest.raises(DivergenceError) as caught:
        sample(QUARTIC, sampler, n_steps=300, n_chains=5, init=[1.5], seed=8, keep_replicas=True)
    error = caught.value
    assert error.replica == 1
    assert np.isfinite(error.run.draws).all()
    np.testing.assert_array_equal(error.state, error.run.replica_draws[error.chain, 1, error.step - 1])


def wall_block(position, energy, gradient, parameters, scratch):
    """U = x²/2 for |x| < ½ and infinite beyond."""
    for lane in range(position.shape[1]):
        x = position[0, lane]
        energy[lane] = 0.5 * x * x if abs(x) < 0.5 else np.inf
        gradient[0, lane] = x


WALL = Target("wall", 1, wall_block)


def test_an_infinite_energy_never_swaps():
    """Of two replicas the one that diverged is named, and its place does not pass to the other."""
    sampler = samplers.resgld((1.0, 1e-9), temperatures=(1.0, 10.0))
    with pytest.raises(DivergenceError, match=r"chain 0, replica 0 .* 1 of 2 replicas diverged") as caught:
        sample(WALL, sampler, n_steps=50, init=[0.1], seed=1, keep_replicas=True)
    assert np.isfinite(caught.value.run.replica_draws[0, 1]).all()


def test_the_first_to_diverge_is_named():
    with pytest.raises(DivergenceError) as caught:
        sample(QUARTIC, samplers.sgld(0.02), n_steps=100, n_chains=3, init=[[0.1], [5.0], [6.0]], seed=6)
    status = np.isnan(caught.value.run.draws[:, :, 0]).argmax(axis=1)
    assert status[2] < status[1]
    assert (caught.value.chain, caught.value.step) == (2, status[2])


def test_a_last_draw_of_infinite_energy_does_not_pass():
    with pytest.raises(DivergenceError) as caught:
        sample(WALL, samplers.sgld(10.0), n_steps=1, n_chains=2, seed=0, keep_energies=True)
    assert caught.value.step == 1
    assert np.isnan(caught.value.run.energies).any()


def test_divergence_in_a_stream():
    chunks = stream(QUARTIC, samplers.sgld(0.02), n_steps=500, init=[5.0], seed=6, layout=Layout(chunk_steps=1))
    with pytest.raises(DivergenceError):
        list(chunks)


# Divergence with on_divergence="keep".

STARTS = np.array([[0.1], [5.0], [0.2]])
QUARTIC_RUN = {"n_steps": 500, "n_chains": 3, "init": STARTS, "seed": 6, "layout": Layout(chunk_steps=100)}


def test_the_others_go_on_as_if_nothing_had_been():
    """One of three chains diverges in the first chunk; the two others have the bits of runs of their own."""
    run = sample(QUARTIC, samplers.sgld(0.02), on_divergence="keep", keep_energies=True, trace_every=10, **QUARTIC_RUN)
    assert run.n_steps == 500
    assert run.diverged.tolist() == [False, True, False]
    step = int(run.counts.status[1, 0]) - 1
    assert np.isfinite(run.draws[1, :step]).all()
    assert np.isnan(run.draws[1, step:]).all()
    alone = sample(QUARTIC, samplers.sgld(0.02), n_steps=500, n_chains=1, init=STARTS[:1], seed=6)
    assert_array_equal(run.draws[0], alone.draws[0])
    assert np.isfinite(run.draws[2]).all()
    assert run.warnings[0].startswith(f"1 of 3 chains diverged, the first at step {step}: ")
    assert not alone.diverged.any()


def test_a_sweep_keeps_and_other_runs_stop():
    """One bad setting of a sweep does not end the others; the same step sizes for all chains are no sweep."""
    given = QUARTIC_RUN | {"init": [0.5]}
    assert sample(QUARTIC, samplers.sgld([0.02, 20.0, 0.02]), **given).diverged.tolist() == [False, True, False]
    with pytest.raises(DivergenceError, match="With on_divergence='keep' the other chains go on"):
        sample(QUARTIC, samplers.sgld([0.02, 20.0, 0.02]), on_divergence="stop", **given)
    with pytest.raises(DivergenceError):
        sample(QUARTIC, samplers.sgld([0.02] * 3), **QUARTIC_RUN)


def test_no_chain_left_is_an_error():
    """Each way of keeping draws; the first chain to diverge is named."""
    given = QUARTIC_RUN | {"init": [[7.0], [5.0], [6.0]], "on_divergence": "keep"}
    for options in ({}, {"keep_draws": False}):
        with pytest.raises(DivergenceError, match=r"3 of 3 replicas diverged.* No chain is left to go on"):
            sample(QUARTIC, samplers.sgld(0.02), **given, **options)
    with pytest.raises(DivergenceError, match="No chain is left"):
        list(stream(QUARTIC, samplers.sgld(0.02), **given))


def test_a_stream_goes_on_without_a_diverged_chain():
    whole = sample(QUARTIC, samplers.sgld(0.02), on_divergence="keep", **QUARTIC_RUN)
    chunks = list(stream(QUARTIC, samplers.sgld(0.02), on_divergence="keep", **QUARTIC_RUN))
    assert_array_equal(np.concatenate([chunk.draws for chunk in chunks], axis=1), whole.draws)
    assert_array_equal(chunks[-1].counts.status, whole.counts.status)


def test_a_hot_replica_that_diverged_leaves_its_chain_marked():
    sampler, start = samplers.resgld((1e-4, 0.02), temperatures=(1.0, 1.5)), np.full((5, 2, 1), 0.5)
    start[3, 1] = 30.0
    run = sample(QUARTIC, sampler, n_steps=300, n_chains=5, init=start, seed=8, on_divergence="keep")
    assert run.diverged.tolist() == [False, False, False, True, False]
    assert np.isfinite(run.draws).all()
    assert_array_equal(run.counts.status[:, 0], np.zeros(5))


def test_what_is_pooled_is_of_whole_chains():
    """The last draws before a divergence are huge: with them the pooled mean would be of no use."""
    chosen = {"moments": accumulators.moments()}
    run = sample(QUARTIC, samplers.sgld(0.02), on_divergence="keep", accumulators=chosen, **QUARTIC_RUN)
    result, whole = run.accumulated["moments"], run.draws[[0, 2]]
    np.testing.assert_allclose(result.pooled_mean, whole.mean(axis=(0, 1)), rtol=1e-12)
    np.testing.assert_allclose(result.pooled_covariance[0, 0], whole.var(), rtol=1e-12)
    assert abs(result.mean.mean()) > 10.0 * abs(result.pooled_mean).max()  # all three
    bare = sample(QUARTIC, samplers.sgld(0.02), on_divergence="keep", accumulators=chosen, keep_draws=False,
                  **QUARTIC_RUN)  # fmt: skip
    row = next(line for line in str(bare).splitlines() if line.split()[:1] == ["0"])
    assert float(row.split()[2]) == pytest.approx(whole.std(), rel=1e-3)


def test_conditions_judge_the_chains_that_are_left():
    run = sample(QUARTIC, samplers.sgld(0.02), on_divergence="keep", until=stopping.ess(100),
                 **QUARTIC_RUN | {"n_steps": None})  # fmt: skip
    assert run.diverged.tolist() == [False, True, False]
    assert run.stopping.conditions[0].value == diagnostics.ess(run.draws[[0, 2]]).min() >= 100.0


def test_words_for_a_run_that_keeps_no_draws():
    """A Python function that raises, and a divergence: neither message says that there are draws."""

    def raising(x):
        raising.calls += 1
        if raising.calls > 40:
            raise KeyError("lost")
        return 0.5 * (x**2).sum(axis=1), x

    def steep(x):
        with np.errstate(all="ignore"):
            return 0.5 * (x**2).sum(axis=1), x

    none = "this error's `run` holds no draws (keep_draws=False)"
    options = {"n_steps": 5_000, "n_chains": 4, "seed": 1, "keep_draws": False}
    for held, words in (({}, "."), ({"m": accumulators.moments()}, "; its accumulators hold ")):
        raising.calls = 0
        target = from_callable(raising, dim=2, name="mine")
        with pytest.raises(KeyError) as caught:
            sample(target, samplers.sgld(0.1), accumulators=held, **options)
        (note,) = caught.value.__notes__
        assert none + words in note
    with pytest.raises(DivergenceError, match=re.escape(none)):
        sample(from_callable(steep, dim=2, name="steep"), samplers.sgld(5.0), **options)
