"""What ``identify`` and ``estimates`` say of modes, residuals, tails and chains that have not mixed."""

import warnings

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from sysid import Series, identify, likelihoods, priors, systems
from sysid.estimates import doubt_of_mixing
from tests.sysid.right_hand_sides import decay_by_product, decay_by_square, relaxation

TIMES = np.linspace(0.0, 8.0, 41)
DECAY = 1.7 * np.exp(-0.45 * TIMES) + 0.02 * np.random.default_rng(2).standard_normal(41)
DATA = Series(TIMES, DECAY[:, None], ("x",))


def two_rates(t, x, p):
    return (-p[0] * x[0], -p[1] * x[1])


PRODUCT = systems.own(decay_by_product, states=("x",), parameters=("a", "b"), usual=(1.0, 0.4), start=(1.5,))
SQUARE = systems.own(decay_by_square, states=("x",), parameters=("c",), usual=(1.0,), start=(1.5,))
TWO_RATES = systems.own(two_rates, states=("u", "v"), parameters=("k1", "k2"), usual=(0.2, 1.0), start=(1.0, 1.0))


def identified(data, system, **asked):
    """The problem, and what was said."""
    asked = {"likelihood": "trajectory", "progress": False} | asked
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        problem = identify(data, system, **asked)
    return problem, [str(warning.message) for warning in caught]


def test_a_product_that_alone_is_known_is_said_by_the_names_of_its_factors():
    _, said = identified(DATA, PRODUCT)
    assert len(said) == 2
    assert "no mode was found" in said[0]
    assert "the posterior is improper, or nearly so" in said[1]
    assert " a from " in said[1]
    assert " b from " in said[1]
    _, said = identified(DATA, PRODUCT, prior={"a": priors.lognormal(0.0, 0.3)})
    assert said == []


def test_the_sign_of_a_square_is_said_and_a_prior_or_constraint_settles_it():
    problem, said = identified(DATA, SQUARE)
    assert len(said) == 1
    assert "unchanged by c → −c: modes come in pairs" in said[0]
    assert "unchanged by c → −c" in str(problem.modes)
    for asked in ({"prior": {"c": priors.lognormal(0.0, 1.0)}}, {"constraints": "c > 0"}):
        assert identified(DATA, SQUARE, **asked)[1] == []


@pytest.mark.slow
def test_two_compartments_have_two_modes_or_are_said_to_be_exchangeable():
    values = 3.0 * np.exp(-0.3 * TIMES) + 2.0 * np.exp(-2.0 * TIMES)
    values += 0.02 * np.random.default_rng(5).standard_normal(41)
    likelihood = likelihoods.trajectory(observe={"sum": lambda t, x, p: x[0] + x[1]})
    problem, said = identified(Series(TIMES, values[:, None], ("sum",)), TWO_RATES, likelihood=likelihood)
    assert len(problem.modes.weights) == 2 or "k1 ↔ k2, u(0) ↔ v(0)" in said[0]


def test_residuals_that_are_no_noise_are_said_with_their_size():
    """A decay cannot follow an oscillation."""
    values = np.cos(3.0 * TIMES) + 0.03 * np.random.default_rng(1).standard_normal(41)
    data, prior = Series(TIMES, values[:, None], ("x",)), {"c": priors.lognormal(0.0, 1.0)}
    _, said = identified(data, SQUARE, prior=prior, likelihood=likelihoods.trajectory(step=0.05))
    assert any("times the data's local noise of 0.0" in text for text in said)


def colony(t, x, p):
    return (p[0] * x[0] * (1.0 - x[0] / (1e3 * p[1])), 0.3 * x[0])


@pytest.mark.parametrize(
    "errors",
    [
        "poisson",
        pytest.param("negative_binomial", marks=pytest.mark.slow),
        pytest.param("lognormal", marks=pytest.mark.slow),
    ],
)
def test_an_unmeasured_state_may_begin_at_zero(errors):
    """A colony is counted; its waste begins at 0, is never measured, and enters no other equation."""
    times, start = np.arange(0.0, 30.0), [20.0, 0.0]
    truth = solve_ivp(lambda t, x: colony(t, x, (0.4, 1.5)), (0.0, 30.0), start, t_eval=times, rtol=1e-9).y[0]
    seen = np.random.default_rng(6).poisson(truth)
    system = systems.own(colony, states=("n", "w"), parameters=("rate", "capacity"), usual=(0.3, 1.0), start=start)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        likelihood = likelihoods.trajectory(errors=errors, start=start)
        problem = identify(Series(times, seen[:, None], ("n",)), system, likelihood=likelihood, progress=False)
    modes = problem.modes
    assert np.abs(modes.parameters[0, :2] - (0.4, 1.5)).max() < 0.1
    assert (np.abs(modes.parameters[0, :2] - (0.4, 1.5)) < 4.5 * modes.sd[0, :2]).all()


def test_r_hat_of_chains_that_have_not_mixed_is_said_by_name_and_that_of_short_ones_is_not():
    rng = np.random.default_rng(0)
    mixed = rng.standard_normal((4, 1000, 2))
    assert doubt_of_mixing(("a", "b"), mixed, None) == ""
    apart = mixed + np.array([0.0, 0.5])[None, None] * np.arange(4)[:, None, None]
    assert "for b, above 1.01" in doubt_of_mixing(("a", "b"), apart, None)
    alarms = sum(bool(doubt_of_mixing(("a",), rng.standard_normal((8, 12, 1)), None)) for _ in range(200))
    assert alarms <= 2
    shares = np.where(np.arange(4)[:, None] == 3, 0.0, np.ones((4, 1000))).ravel()
    assert doubt_of_mixing(("a", "b"), mixed, shares) == ""


RELAXING = systems.own(relaxation, states=("x",), parameters=("k", "A"), usual=(0.5, 5.0), start=(0.0,))
FROM_0 = likelihoods.trajectory(start=[0.0])


@pytest.mark.cases(1)
@pytest.mark.parametrize("seed", range(3))
def test_a_rate_that_is_over_before_the_data_has_no_posterior_under_a_flat_prior(seed):
    """The energy is level from k of 5 on, to where steps of the solver end."""
    values = np.append(np.nan, 7.0 + 0.2 * np.random.default_rng(seed).standard_normal(8))
    _, said = identified(Series(np.arange(9.0), values[:, None], ("x",)), RELAXING, likelihood=FROM_0)
    assert any("the posterior is improper" in text and "levels off with k from" in text for text in said)


@pytest.mark.cases(1)
@pytest.mark.parametrize("seed", range(3))
def test_a_line_has_no_rate_and_level_but_their_product(seed):
    times = np.linspace(0.0, 3.0, 13)
    values = 2.0 * times + 0.1 * np.random.default_rng(seed).standard_normal(13)
    _, said = identified(Series(times, values[:, None], ("x",)), RELAXING, likelihood=FROM_0)
    assert any("the posterior is improper" in text and "levels off with" in text for text in said)
