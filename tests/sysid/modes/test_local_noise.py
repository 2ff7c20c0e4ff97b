"""The local noise of data: right for independent errors about any smooth signal, and its law."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.stats

from sysid import identify, systems
from sysid.data import simulate
from sysid.modes.local_noise import (
    DIFFERENCE_ORDERS,
    FALSE_ALARMS,
    Fitted,
    excess_words,
    excesses_of,
    local_noise,
    noise_by_differences,
)


@pytest.mark.parametrize("order", DIFFERENCE_ORDERS)
def test_the_square_has_the_mean_and_the_degrees_of_freedom_that_are_said(order):
    times = np.sort(np.random.default_rng(1).uniform(0.0, 10.0, 60))
    rng = np.random.default_rng(2)
    found = [noise_by_differences(times, 3.0 * rng.standard_normal(60), order) for _ in range(2000)]
    squares = np.array([one.sd**2 for one in found]) / 9.0
    freedom = found[0].freedom
    error = np.sqrt(2.0 / freedom / 2000)
    assert abs(squares.mean() - 1.0) < 4.5 * error
    assert abs(squares.var() * freedom / 2.0 - 1.0) < 4.5 * np.sqrt(12.0 / freedom + 2.0) / np.sqrt(2000.0)


def test_a_smooth_signal_does_not_count_and_a_fast_one_only_adds():
    rng, times = np.random.default_rng(0), np.linspace(0.0, 20.0, 300)
    noise = 0.1 * rng.standard_normal(300)
    assert local_noise(times, 5.0 * np.sin(2.0 * times) + noise).sd == pytest.approx(0.1, rel=0.15)
    assert local_noise(times, 5.0 * np.sin(40.0 * times) + noise).sd > 0.1
    assert local_noise(times, times**2).sd < 1e-10


def test_independent_errors_seldom_look_larger_than_their_local_noise():
    rng = np.random.default_rng(3)
    for n in (8, 30):
        times = np.arange(float(n))
        alarms = 0
        for _ in range(500):
            values = rng.standard_normal(n)
            local = local_noise(times, values)
            least = max(3.0, np.sqrt(scipy.stats.f.isf(FALSE_ALARMS, n, local.freedom)))
            alarms += values.std() > least * local.sd
        assert alarms <= 2


def test_a_quantity_of_several_experiments_is_named_with_its_experiment():
    rng, times = np.random.default_rng(4), np.linspace(0.0, 10.0, 50)
    noise, which = rng.standard_normal(50), np.zeros(50, np.int64)
    good, bad = (Fitted(times, which, noise, noise + off, ("x",), np.zeros(1)) for off in (0.1, 50.0))
    assert [one.quantity for one in excesses_of([good, bad, bad], above=3.0)] == [
        "x of experiment 1",
        "x of experiment 2",
    ]
    assert [one.quantity for one in excesses_of([bad], above=3.0)] == ["x"]
    words = excess_words(excesses_of([good, bad, bad], above=3.0))
    assert "the residuals of x of experiment 1" in words
    assert "likewise for x of experiment 2" in words


def test_what_looks_wrong_in_one_of_several_data_is_said_with_its_number():
    predators = systems.lotka_volterra()
    good = simulate(predators, np.linspace(0.0, 10.0, 101), noise=0.01, seed=0)
    values = good.values.copy()
    values[40, 0] *= 100.0
    bad = replace(good, values=values)
    with pytest.warns(UserWarning, match=r"identify: experiment '.*' \(1\): ") as caught:
        identify([good, bad], predators, likelihood="trajectory", n_searches=0)
    assert not any("(0)" in str(one.message) for one in caught)
