"""Ctrl-C is held until a block of work is whole; a second one is not."""

import os
import signal
import threading

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from targets import mixtures
from toolkit import InterruptedWarning, Layout, sample, samplers
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
