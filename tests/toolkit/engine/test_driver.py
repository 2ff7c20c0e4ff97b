"""Ctrl-C waits until a block of work is whole; a replica that diverges stops, is named, and takes nobody with it."""

import os
import signal
import threading

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from targets import mixtures
from tests.support.simple_targets import QUARTIC
from toolkit import DivergenceError, InterruptedWarning, Layout, Target, sample, samplers, stream
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
    with pytest.warns(InterruptedWarning, match="interrupted after 30 of 50 steps"):
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
