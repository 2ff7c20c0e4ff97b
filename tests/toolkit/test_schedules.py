"""Schedules against their formulas, whatever the chunk, and bad numbers refused."""

import re

import numpy as np
import pytest
from numba import njit

from targets import mixtures
from toolkit import sample, samplers, schedules
from toolkit.maths.elementary import sincos_turns
from toolkit.schedules import evaluate

NORMAL = mixtures.gaussian_mixture([[0.0]], 1.0)
cosine = njit(error_model="numpy", _nrt=False)(lambda turns: sincos_turns(turns)[1])


def test_cosine_cycles_follow_their_formula():
    schedule = schedules.cosine_cycles(4, exploration=0.25, floor=0.1)
    steps = np.arange(1000)
    factors = schedule.factors(steps, 1000)
    r = (steps % 250) / 250
    np.testing.assert_allclose(factors.step_size, np.maximum(0.5 * (np.cos(np.pi * r) + 1), 0.1), rtol=1e-14)
    np.testing.assert_array_equal(factors.keep, r >= 0.25)
    np.testing.assert_array_equal(factors.temperature, np.where(r >= 0.25, 1.0, 0.0))
    assert factors.step_size[0] == 1.0
    cosines = np.array([cosine(0.5 * turns) for turns in r])
    np.testing.assert_array_equal(factors.step_size, np.maximum(0.5 * (cosines + 1.0), 0.1))
    mixed = np.random.default_rng(0).permutation(steps).astype(np.int32)[::3]
    mixed.flags.writeable = False
    for whole, part in zip(factors, schedule.factors(mixed, 1000), strict=True):
        np.testing.assert_array_equal(part, whole[mixed])


def test_cycle_length_is_rounded_up():
    factors = schedules.cosine_cycles(3).factors(np.arange(10), 10)
    assert (np.flatnonzero(factors.step_size == 1.0) == [0, 4, 8]).all()
    assert (schedules.cosine_cycles(10).factors(np.arange(10), 10).step_size == 1.0).all()


def test_numbers_of_any_precision_are_taken():
    made = (
        lambda number: schedules.cosine_cycles(4, exploration=number, floor=number),
        schedules.exponential_decay,
        lambda number: schedules.polynomial_decay(number, offset=number),
    )
    for schedule in made:
        expected = schedule(0.25).factors(np.arange(40), 40)
        for kind in (np.longdouble, np.float32):
            for values, ours in zip(expected, schedule(kind(0.25)).factors(np.arange(40), 40), strict=True):
                np.testing.assert_array_equal(ours, values)


def test_exponential_decay_follows_its_formula():
    factors = schedules.exponential_decay(0.99, start=100, every=3).factors(np.arange(400), 400)
    expected = [0.99 ** (max(0, k - 100) // 3) for k in range(400)]
    np.testing.assert_allclose(factors.step_size, expected, rtol=1e-13)
    assert factors.keep.all()
    assert (factors.temperature == 1.0).all()


@pytest.mark.parametrize(("offset", "start"), [(0.0, 0), (0.0, 100), (10.0, 0), (2.5, 100)])
def test_polynomial_decay_follows_its_formula(offset, start):
    factors = schedules.polynomial_decay(0.55, offset=offset, start=start).factors(np.arange(400), 400)
    expected = [1.0] * start + [(offset + k) ** -0.55 for k in range(1, 401 - start)]
    np.testing.assert_allclose(factors.step_size, expected, rtol=1e-14)
    assert factors.keep.all()
    assert (factors.temperature == 1.0).all()


def test_polynomial_decay_of_exponent_0_is_constant():
    assert (schedules.polynomial_decay(0.0, offset=3.0).factors(np.arange(50), 50).step_size == 1.0).all()


STEPS = np.arange(1000)
OWN = {
    "step_size": lambda steps: 1.0 / (1.0 + steps % 70),
    "temperature": lambda steps: 1.0 + 0.25 * (steps // 100),
    "keep": lambda steps: steps % 3 == 0,
}
OWN_ARRAYS = {name: function(STEPS) for name, function in OWN.items()}


@pytest.mark.parametrize("given", [{"step_size"}, {"temperature"}, {"keep"}, {"step_size", "temperature", "keep"}])
def test_arrays_and_functions_of_ones_own_are_the_same(given):
    """What is not given is 1, and every step kept; a run has the same bits either way, and others without them."""
    runs = []
    for source in (OWN, OWN_ARRAYS):
        schedule = schedules.custom(**{name: source[name] for name in given})
        factors = evaluate(schedule, STEPS, 1000)
        for name, values in zip(("step_size", "temperature", "keep"), factors, strict=True):
            np.testing.assert_array_equal(values, OWN_ARRAYS[name] if name in given else np.ones(1000))
        runs.append(sample(NORMAL, samplers.sgld(0.1, schedule=schedule), n_steps=900, n_chains=2, seed=4))
    np.testing.assert_array_equal(runs[0].draws, runs[1].draws)
    np.testing.assert_array_equal(runs[0].steps, runs[1].steps)
    plain = sample(NORMAL, samplers.sgld(0.1), n_steps=900, n_chains=2, seed=4)
    assert not np.array_equal(runs[0].draws, plain.draws)


def test_the_name_of_ones_own_says_what_is_given_and_which_function():
    def melting(steps):
        return 1.0 / (1.0 + steps)

    assert schedules.custom().name == "custom()"
    assert schedules.custom(np.ones(5), temperature=melting).name == "custom(step_size, temperature=melting)"
    assert schedules.custom(keep=lambda steps: steps > 3).name == "custom(keep)"


def test_an_array_of_ones_own_is_copied():
    values = np.ones(10)
    schedule = schedules.custom(values)
    values[:] = 7.0
    assert (schedule.factors(np.arange(10), 10).step_size == 1.0).all()


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"step_size": np.ones(99)}, "step_size must have a value for each of n_steps = 100, got 99"),
        ({"keep": [True] * 99}, "keep must have a value for each of n_steps = 100, got 99"),
        ({"temperature": lambda steps: steps - 5.0}, "temperature of schedule 'custom(temperature)' must be ≥ 0"),
        ({"step_size": lambda steps: 1.0}, "step_size of schedule 'custom(step_size)' must be ≥ 0 and of shape"),
        ({"keep": lambda steps: steps}, "keep of schedule 'custom(keep)' must be booleans"),
    ],
)
def test_bad_ones_of_ones_own_are_refused_where_the_run_begins(own, message):
    sampler = samplers.sgld(0.1, schedule=schedules.custom(**own))
    with pytest.raises(ValueError, match=re.escape(message)):
        sample(NORMAL, sampler, n_steps=100, seed=1)


@pytest.mark.parametrize(
    "schedule",
    [
        schedules.cosine_cycles(7, exploration=0.3),
        schedules.exponential_decay(0.999),
        schedules.polynomial_decay(0.55, offset=1.5, start=40),
        schedules.custom(**OWN),
        schedules.custom(**OWN_ARRAYS),
    ],
    ids=lambda schedule: schedule.name,
)
def test_factors_do_not_depend_on_the_chunk(schedule):
    whole = schedule.factors(np.arange(1000), 1000)
    for length in (1, 7, 333):
        parts = [schedule.factors(np.arange(a, min(a + length, 1000)), 1000) for a in range(0, 1000, length)]
        for field, values in enumerate(whole):
            np.testing.assert_array_equal(np.concatenate([part[field] for part in parts]), values)


def test_one_cycle_without_exploration_and_a_floor_of_1_is_sgld():
    """One cycle with β = 0 and constant step = SGLD, bit for bit."""
    arguments = {"n_steps": 300, "n_chains": 5, "seed": 4}
    cyclical = sample(NORMAL, samplers.cyclical_sgld(0.1, n_cycles=1, exploration=0.0, floor=1.0), **arguments)
    np.testing.assert_array_equal(cyclical.draws, sample(NORMAL, samplers.sgld(0.1), **arguments).draws)


def test_kept_steps_under_cycles_burn_in_and_thin():
    sampler = samplers.cyclical_sgld(0.1, n_cycles=2, exploration=0.5)
    run = sample(NORMAL, sampler, n_steps=40, burn_in=5, thin=3, seed=1)
    assert run.steps.tolist() == [10, 13, 16, 19, 31, 34, 37]


def test_variance_follows_the_schedule():
    """From a point, the variance of each step follows var ← (1 − h)² var + 2h with the step's own h."""
    sampler = samplers.sgld(1.6, schedule=schedules.exponential_decay(0.5, start=20, every=20))
    draws = sample(NORMAL, sampler, n_steps=60, thin=60, n_chains=60_000, seed=5).draws
    variances = {}
    for change in (40, 20):  # the first decay, at step 40, and a wrong one
        variance = 0.0
        for step in range(60):
            h = 1.6 * 0.5 ** max(0, (step - change) // 20 + 1)
            variance = (1.0 - h) ** 2 * variance + 2.0 * h
        variances[change] = draws.var() / variance - 1.0
    assert abs(variances[40]) < 4.5 * np.sqrt(2 / 60_000)
    assert abs(variances[20]) > 4.5 * np.sqrt(2 / 60_000)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: schedules.cosine_cycles(0), "n_cycles must be ≥ 1, got 0"),
        (lambda: schedules.cosine_cycles(2.5), "n_cycles must be an integer, got 2.5"),
        (lambda: schedules.cosine_cycles(2, exploration=1.0), "exploration must be finite and ≥ 0 and < 1, got 1.0"),
        (lambda: schedules.cosine_cycles(2, floor=-0.1), "floor must be finite and ≥ 0 and ≤ 1, got -0.1"),
        (lambda: schedules.exponential_decay(0.0), "rate must be finite and > 0 and ≤ 1, got 0.0"),
        (lambda: schedules.exponential_decay(0.9, start=-1), "start must be ≥ 0, got -1"),
        (lambda: schedules.exponential_decay(0.9, every=True), "every must be an integer, got True"),
        (lambda: schedules.polynomial_decay(-0.5), "exponent must be finite and ≥ 0, got -0.5"),
        (lambda: schedules.polynomial_decay("1"), "exponent must be a number, got '1' of type str"),
        (lambda: schedules.polynomial_decay(0.5, offset=-1), "offset must be finite and ≥ 0, got -1"),
        (lambda: schedules.polynomial_decay(0.5, start=1.0), "start must be an integer, got 1.0"),
        (lambda: schedules.custom(np.ones((2, 3))), "step_size must be numbers of shape (n_steps,), got shape (2, 3)"),
        (lambda: schedules.custom([1.0, -2.0]), "step_size must be ≥ 0, got -2.0"),
        (lambda: schedules.custom(temperature=[1.0, np.nan]), "temperature must be finite, got nan at [1]"),
        (lambda: schedules.custom("fast"), "step_size must be an array of real numbers, got 'fast'"),
        (lambda: schedules.custom(keep=[1, 0]), "keep must be booleans of shape (n_steps,), got shape (2,) of int64"),
    ],
)
def test_bad_numbers_are_refused(make, message):
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        make()
