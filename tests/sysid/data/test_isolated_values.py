"""Typing errors and glitches are named; spikes of a system are not."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from sysid import Inputs, Series, data, systems
from sysid.data.isolated_values import isolated_values

TIMES = np.linspace(0.0, 20.0, 201)


def prey(seed=0):
    """Lotka and Volterra's, with errors of 0.5 and 0.4."""
    exact = data.simulate(systems.lotka_volterra(), TIMES, seed=0)
    noise = np.random.default_rng(seed).normal(size=exact.values.shape) * [0.5, 0.4]
    return Series(TIMES, exact.values + noise, exact.states)


def warnings_of(values, **more):
    return [text for text in data.check(Series(TIMES, values, ("prey", "predator"), **more)) if "outliers" in text]


@pytest.mark.parametrize(
    ("places", "factors"),
    [
        ([(20, 0), (77, 1), (130, 0)], [6.0, 8.0, 5.0]),
        ([(60, 0)], [100.0]),
        ([(35, 1), (161, 0)], [10.0, 0.0]),
        ([(99, 0), (99, 1)], [4.0, 5.0]),
    ],
)
def test_typing_errors_are_named(places, factors):
    values = prey().values
    assert warnings_of(values) == []
    for place, factor in zip(places, factors, strict=True):
        values[place] *= factor
    (text,) = warnings_of(values)
    for row, d in places:
        assert f"{values[row, d]:.6g} of {('prey', 'predator')[d]!r} at {TIMES[row]:.6g} (row {row}, " in text
    assert "nan" in text
    assert "student" in text


def relaxation(mu, n):
    times = np.linspace(0.0, 6.0 * mu + 20.0, n)
    found = solve_ivp(
        lambda _, x: [x[1], mu * (1.0 - x[0] ** 2) * x[1] - x[0]], times[[0, -1]], [2.0, 0.0], "LSODA", times, rtol=1e-8
    )
    return times, found.y.T


@pytest.mark.parametrize("n", [60, 200, 1000])
@pytest.mark.parametrize("mu", [2.0, 10.0, 30.0])
@pytest.mark.parametrize("noise", [0.0, 0.01, 0.1])
def test_spikes_of_a_relaxation_oscillator_are_its_own(mu, n, noise):
    """Its velocity is a spike of one row in many of these."""
    times, path = relaxation(mu, n)
    values = path + noise * path.std(axis=0) * np.random.default_rng(0).standard_normal(path.shape)
    assert isolated_values(times, values) == []


def test_spikes_of_one_state_that_recur_are_its_own():
    """A beat of one row in 40, with nothing else measured; four errors at irregular rows are not."""
    rng = np.random.default_rng(1)
    values = 0.1 * rng.standard_normal(400)
    beats, errors = values.copy(), values.copy()
    beats[5::80] += 5.0
    errors[[31, 50, 222, 390]] += 5.0
    assert isolated_values(np.arange(400.0), beats[:, None]) == []
    found = isolated_values(np.arange(400.0), errors[:, None])
    assert {one.row for one in found} == {31, 50, 222, 390}


def test_noise_counts_and_missing_values_have_none():
    rng = np.random.default_rng(2)
    at = np.arange(200.0)
    false = sum(bool(isolated_values(at, values[:, None])) for values in rng.standard_normal((500, 200)))
    assert false <= 3  # 1 in 1,000: more once in 600 tests
    assert isolated_values(at, rng.poisson(0.05, (200, 1)).astype(float)) == []
    assert isolated_values(at, np.full((200, 1), 3.0)) == []
    values = np.sin(at / 20.0)[:, None] + 0.01 * rng.standard_normal((200, 1))
    values[50:80] = np.nan
    values[120] += 1.0
    assert [one.row for one in isolated_values(at, values)] == [120]


def test_a_jump_a_step_of_a_dose_and_a_first_value_are_none():
    rng, at = np.random.default_rng(3), np.arange(200.0)
    step = (at > 90.0) * 5.0 + 0.05 * rng.standard_normal(200)
    assert isolated_values(at, step[:, None]) == []
    decay = 5.0 * np.exp(-4.0 * at) + 0.01 * rng.standard_normal(200)
    assert isolated_values(at, decay[:, None]) == []
    values = prey().values
    values[60, 0] *= 100.0
    assert warnings_of(values)
    assert warnings_of(values, inputs=Inputs(doses={"prey": ([6.0], [1.0])})) == []


@pytest.mark.parametrize("row", [0, 200])
@pytest.mark.parametrize("factor", [100.0, 1000.0])
def test_a_slip_of_the_decimal_point_at_an_end_is_named(row, factor):
    at, rng = np.arange(201.0), np.random.default_rng(4)
    values = (5.0 + 3.0 * np.sin(at / 20.0)) * (1.0 + 0.01 * rng.standard_normal(201))
    assert isolated_values(at, values[:, None]) == []
    values[row] *= factor
    assert [one.row for one in isolated_values(at, values[:, None])] == [row]
