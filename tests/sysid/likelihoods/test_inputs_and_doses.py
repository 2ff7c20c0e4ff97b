"""Likelihoods of systems with known inputs and doses: exact energies and gradients, and what they find."""

import functools
import pickle

import numpy as np
import pytest

import sysid
from sysid import Inputs, Series, data, libraries, likelihoods, systems
from sysid.likelihoods.trajectories import trajectory
from tests.sysid.likelihoods.test_trajectories import slopes_by_differences
from toolkit import sample, samplers


def kinetics(t, x, p, u):
    return (-p[0] * x[0], p[0] * x[0] - p[1] * (1.0 + u[0]) * x[1])


KINETICS = systems.own(
    kinetics, states=["gut", "blood"], parameters=["ka", "ke"], usual=[1.0, 0.3], start=[0.0, 0.0], inputs=["exercise"]
)
GIVEN = Inputs(
    {"exercise": ([0.0, 6.0], [0.0, 1.0])}, held=("exercise",), doses={"gut": ([0.0, 8.0, 12.3], [10.0, 10.0, 5.0])}
)
TIMES = np.linspace(0.0, 24.0, 25)
SD = 0.1


def blood(ka, ke, times):
    """The blood's content by the closed form, interval by interval of the doses and of exercise."""
    gut, now, x = 0.0, 0.0, 0.0
    doses = dict(zip(*GIVEN.doses["gut"], strict=True))
    found = {}
    for time in np.unique(np.concatenate([times, list(doses), [6.0]])):
        rate, span = ke * (2.0 if now >= 6.0 else 1.0), time - now
        x = x * np.exp(-rate * span) + gut * ka / (ka - rate) * (np.exp(-rate * span) - np.exp(-ka * span))
        gut, now = gut * np.exp(-ka * span), time
        found[time] = x
        gut += doses.get(time, 0.0)
    return np.array([found[time] for time in times])


@functools.cache
def measured(seed=0):
    """The blood alone, with Gaussian errors."""
    values = blood(1.0, 0.3, TIMES) + SD * np.random.default_rng(seed).standard_normal(TIMES.size)
    return Series(TIMES, values[:, None], ("blood",), inputs=GIVEN)


def test_the_energy_is_that_of_the_closed_form():
    prepared = trajectory(start=[0.0, 0.0], noise=SD, step=0.01).energy_and_start(measured(), KINETICS)[0]
    theta = np.array([[1.0, 0.3], [0.8, 0.35], [1.3, 0.2]])
    energy, _ = prepared.evaluate(theta)
    values = measured().values[:, 0]
    expected = [
        0.5 * np.sum(((values - blood(*row, TIMES)) / SD) ** 2) + TIMES.size * np.log(np.sqrt(2.0 * np.pi) * SD)
        for row in theta
    ]
    np.testing.assert_allclose(energy, expected, rtol=1e-8)


LIBRARY = libraries.polynomial(("x", "y"), 2, inputs=("u", "t")) + libraries.functions(
    ("x", "y"), {"shaken": lambda x: np.sin(x[0]) * x[2]}, inputs=("u", "t")
)
DRIVEN = sysid.model_of(LIBRARY, free=["dx:y", "dx:xu", "dy:x", "dy:y", "dy:t", "dy:shaken"])
BETA = np.array([1.0, -0.2, -1.5, -0.3, 0.1, 0.4])
DRIVE = Inputs({"u": (np.linspace(0.0, 6.0, 31), np.sin(np.linspace(0.0, 6.0, 31)))})


def driven_series(inputs=DRIVE, noise=0.02, seed=0, n=61):
    """A simulated series of the driven model."""
    return data.simulate(
        DRIVEN.system, np.linspace(0.0, 6.0, n), parameters=BETA, start=[1.0, 0.0], noise=noise, seed=seed,
        inputs=inputs,
    )  # fmt: skip


@pytest.mark.slow_cases("student", "rk5")
@pytest.mark.parametrize("case", ["system", "model", "segments", "student", "experiments", "rk5"])
def test_gradients_are_those_of_differences(case):
    dosed = Inputs({"u": DRIVE.values["u"]}, doses={"y": ([0.55, 3.0], [0.5, -0.4])})
    series, options, model = driven_series(dosed), {"step": 0.05}, DRIVEN
    if case == "system":
        series, model, options = measured(), KINETICS, {"step": 0.1, "noise": SD}
    elif case == "segments":
        options |= {"segments": 4}
    elif case == "student":
        options |= {"errors": "student"}
    elif case == "experiments":  # of which one has doses
        series = [series, driven_series(noise=0.03, seed=1, n=41)]
    elif case == "rk5":
        options |= {"method": "rk5"}
    energy, theta = trajectory(**options).energy_and_start(series, model)
    theta = theta * 1.03 + 0.01
    _, slope = energy.evaluate(theta[None])
    np.testing.assert_allclose(slope[0], slopes_by_differences(energy.evaluate, theta, 1e-3), rtol=2e-5, atol=2e-4)


def test_rates_are_found_from_the_blood_alone_and_kept_by_a_run():
    problem = sysid.identify(measured(), KINETICS, likelihood=trajectory(start=[0.0, 0.0]), n_searches=2)
    again = pickle.loads(pickle.dumps(problem))
    points = problem.starts(4, seed=0)
    np.testing.assert_array_equal(again.target.evaluate(points)[0], problem.target.evaluate(points)[0])
    scaled = problem.scaled()
    run = sample(scaled, samplers.hmc(0.5, n_leapfrogs=3), n_steps=300, burn_in=50, n_chains=8, seed=1)
    table = scaled.estimates(run)
    assert ((table.lower < [1.0, 0.3, SD]) & (table.upper > [1.0, 0.3, SD])).sum() >= 2
    paths = sysid.simulate(run, TIMES, problem=scaled, n_draws=20)
    assert np.abs(paths.bands()[1][:, 1] - blood(1.0, 0.3, TIMES)).max() < 3.0 * SD
    later = Inputs(GIVEN.values, GIVEN.held, {"gut": ([0.0], [1.0])})
    less = sysid.simulate(run, TIMES, problem=scaled, n_draws=5, inputs=later)
    assert less.states[:, :, 1].max() < 0.2 * paths.states[:, :, 1].max()


def test_doses_before_the_data_are_refused():
    late = Series(TIMES[1:], measured().values[1:], ("blood",), inputs=GIVEN)
    with pytest.raises(ValueError, match="add a row there"):
        trajectory().prepare(late, KINETICS)


def test_velocities_with_held_inputs_give_their_coefficients():
    held = Inputs({"u": DRIVE.values["u"]}, held=("u",))
    series = driven_series(held, noise=0.0)
    prepared = likelihoods.derivative().prepare(series, DRIVEN)
    np.testing.assert_allclose(prepared.quadratic[0], BETA, atol=1e-6)


def test_the_weak_form_finds_coefficients_of_inputs_and_time():
    """Errors in posterior standard deviations over noise draws have a mean square of 1."""
    apart = []
    for seed in range(6):
        prepared = likelihoods.weak().prepare(driven_series(seed=seed, noise=0.03, n=241), DRIVEN)
        mean, precision, _ = prepared.quadratic
        apart.append((mean - BETA) @ precision @ (mean - BETA) / len(BETA))
    assert 0.4 < np.mean(apart) < 1.9, apart  # χ² of 36 degrees of freedom: within 1e-4


def test_the_weak_form_takes_inputs_that_jump_between_samples_too():
    """Errors in posterior standard deviations have a mean square of 1; without noise they are the quadrature's."""
    held = Inputs({"u": ([0.0, 1.234, 2.5, 4.0, 5.1], [0.0, 2.0, -1.0, 1.5, 0.0])}, held=("u",))
    apart = []
    for seed in range(6):
        mean, precision, _ = likelihoods.weak().prepare(driven_series(held, 0.03, seed, 241), DRIVEN).quadratic
        apart.append((mean - BETA) @ precision @ (mean - BETA) / len(BETA))
    assert 0.4 < np.mean(apart) < 1.9, apart
    fine = likelihoods.weak(noise=1e-5, pieces=1, substeps=4).prepare(driven_series(held, 1e-6, 0, 241), DRIVEN)
    np.testing.assert_allclose(fine.quadratic[0], BETA, atol=3e-5)
    with pytest.raises(ValueError, match="substeps must be 2 or more"):
        likelihoods.weak(substeps=1).prepare(driven_series(held), DRIVEN)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (Inputs({"u": DRIVE.values["u"]}, doses={"x": ([1.0], [1.0])}), "without doses"),
        (Inputs({"u": ([0.0, 3.0], [0.0, 1.0])}), "inputs must have values of 'u' at all times"),
        (None, "inputs must have values of 'u'"),
    ],
)
def test_the_weak_form_refuses_doses_and_inputs_that_are_not_known(inputs, message):
    series = driven_series()
    with pytest.raises(ValueError, match=message):
        likelihoods.weak().prepare(Series(series.times, series.values, series.states, inputs=inputs), DRIVEN)


def test_discover_finds_terms_with_inputs_and_forecasts_with_those_to_come():
    times = np.linspace(0.0, 20.0, 401)
    drive = Inputs({"u": (times, np.sin(0.7 * times) + np.cos(2.3 * times))})
    library = libraries.polynomial(("x", "v"), 2, inputs=("u",))
    truth = sysid.model_of(library, free=["dx:v", "dv:x", "dv:v", "dv:u"])
    beta, start = [1.0, -1.0, -0.5, 2.0], [0.5, 0.0]
    series = data.simulate(truth.system, times, parameters=beta, start=start, noise=0.02, seed=2, inputs=drive)
    found = sysid.discover(series, sweeps=200, progress=False)
    assert found.library.inputs == ("u",)
    assert set(found.sparse.support) == set(truth.parameters)
    assert found.score().min() > 0.98
    with pytest.raises(ValueError, match="inputs must have values of 'u' at all times"):
        found.forecast([21.0])
    more = np.linspace(0.0, 25.0, 501)
    longer = Inputs({"u": (more, np.sin(0.7 * more) + np.cos(2.3 * more))})
    paths = found.forecast([22.0, 25.0], inputs=longer, n_draws=50)
    expected = data.simulate(
        truth.system, [0.0, 22.0, 25.0], parameters=beta, start=start, seed=0, inputs=longer
    ).values[1:]
    low, high = paths.bands((0.0005, 0.9995))
    assert ((low - 0.02 < expected) & (expected < high + 0.02)).all()
    assert np.abs(found.simulate().bands()[1] - series.values).max() < 0.3
