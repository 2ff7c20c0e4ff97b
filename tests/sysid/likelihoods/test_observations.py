"""Functions of states as data: exact energies and gradients, what is found, kept and simulated, and what is refused."""

import pickle

import numpy as np
import pytest
from matplotlib.figure import Figure
from numba import types

import figures
import sysid
from sysid import Inputs, Series, data, systems
from sysid.likelihoods.observations import checked_measure, observation_of
from sysid.likelihoods.trajectories import trajectory
from tests.sysid.likelihoods.test_trajectories import slopes_by_differences
from tests.sysid.right_hand_sides import decay
from toolkit import sample, samplers


def absorbed(t, x, p):
    return (-p[0] * x[0], p[0] * x[0] - p[1] * x[1])


DRUG = systems.own(
    absorbed, states=["gut", "blood"], parameters=["ka", "ke", "volume"], usual=[1.0, 0.3, 2.0], start=[10.0, 0.0]
)
OBSERVE = {"concentration": lambda t, x, p: x[1] / p[2], "total": lambda t, x, p: x[0] + x[1]}
TRUTH = np.array([1.0, 0.3, 3.0])
TIMES = np.linspace(0.0, 12.0, 40)
SDS = (0.05, 0.2)


def contents(ka, ke):
    """Gut and blood (n, 2) by the closed form, from a dose of 10."""
    gut = 10.0 * np.exp(-ka * TIMES)
    return np.stack([gut, 10.0 * ka / (ka - ke) * (np.exp(-ke * TIMES) - np.exp(-ka * TIMES))], axis=1)


def measured(seed=0, name="data"):
    """Concentration and total, some missing."""
    x = contents(*TRUTH[:2])
    values = np.stack([x[:, 1] / TRUTH[2], x.sum(axis=1)], axis=1)
    values += np.array(SDS) * np.random.default_rng(seed).standard_normal(values.shape)
    values[4, 0] = values[7, 1] = np.nan
    return Series(TIMES, values, ("concentration", "total"), name=name)


def chosen(**options):
    """The likelihood."""
    return trajectory(**{"start": [10.0, 0.0], "observe": OBSERVE, "step": 0.05, **options})


def test_the_energy_is_that_of_the_closed_form():
    energy, _ = chosen().energy_and_start(measured(), DRUG)
    assert energy.names == ("ka", "ke", "volume", "sd(concentration)", "sd(total)")
    theta = np.array([[1.0, 0.3, 3.0, 0.05, 0.2], [1.2, 0.25, 2.5, 0.07, 0.1]])
    expected = []
    for ka, ke, volume, *sds in theta:
        x = contents(ka, ke)
        r = (measured().values - np.stack([x[:, 1] / volume, x.sum(axis=1)], axis=1)) / sds
        expected.append(np.nansum(0.5 * r**2) + 39.0 * np.log(2.0 * np.pi * np.prod(sds)))
    np.testing.assert_allclose(energy.evaluate(theta)[0], expected, rtol=1e-6)


@pytest.mark.slow_cases("lognormal", "experiments")
@pytest.mark.parametrize("case", ["both", "beside a state", "lognormal", "student", "segments", "experiments"])
def test_gradients_are_those_of_differences(case):
    series, options = measured(), {}
    if case == "beside a state":
        x = contents(*TRUTH[:2]) + 0.05
        series = Series(TIMES, np.stack([x[:, 0], x.sum(axis=1)], axis=1), ("gut", "total"))
        options = {"start": "free"}
    elif case == "lognormal":
        series = Series(TIMES, np.maximum(measured().values, 0.01), measured().states)
        options = {"errors": "lognormal", "start": [10.0, 0.1]}
    elif case == "student":
        options = {"errors": "student"}
    elif case == "segments":
        options = {"segments": 3, "start": "free", "gap": 0.1}
    elif case == "experiments":
        series, options = [measured(), measured(1)], {"own": ["sd(total)", "ke"]}
    energy, theta = chosen(**options).energy_and_start(series, DRUG)
    theta = theta * 1.04 + 0.01
    _, slope = energy.evaluate(theta[None])
    np.testing.assert_allclose(slope[0], slopes_by_differences(energy.evaluate, theta, 1e-3), rtol=2e-5, atol=1e-3)


def test_functions_may_read_inputs_and_time():
    def relaxing(t, x, p, u):
        return (u[0] - p[0] * x[0],)

    system = systems.own(relaxing, states=["x"], parameters=["k", "a"], usual=[1.0, 2.0], start=[1.0], inputs=["u"])
    given = Inputs({"u": ([0.0, 2.0, 4.0], [0.0, 3.0, 0.0])})
    times = np.linspace(0.0, 4.0, 21)
    exact = data.simulate(system, times, inputs=given, seed=0)
    values = 1.5 * exact.values[:, 0] + given.at(times)[:, 0] + 0.1 * times
    series = Series(times, values[:, None] + 1e-4, ("y",), inputs=given)
    likelihood = trajectory(observe={"y": lambda t, x, p, u: p[1] * x[0] + u[0] + 0.1 * t}, start=[1.0], noise=0.01)
    energy, theta = likelihood.energy_and_start(series, system)
    np.testing.assert_allclose(theta, [1.0, 1.5], atol=2e-3)
    slope = energy.evaluate(theta[None] * 1.1)[1][0]
    np.testing.assert_allclose(slope, slopes_by_differences(energy.evaluate, theta * 1.1, 1e-3), rtol=1e-5, atol=1e-3)


def test_a_logarithm_is_taken_although_it_is_none_at_states_below_0():
    """Of positive states; its derivative by a complex step is right wherever it is finite."""
    x = contents(*TRUTH[:2])[1:]
    series = Series(TIMES[1:], np.log(x[:, 1:]) + 1e-3, ("log blood",))
    start = contents(*TRUTH[:2])[1]
    likelihood = trajectory(start=start, noise=0.01, observe={"log blood": lambda t, x, p: np.log(x[1]) + 0.0 * p[2]})
    _, theta = likelihood.energy_and_start(series, DRUG)
    np.testing.assert_allclose(theta[:2], TRUTH[:2], rtol=0.02)


def test_a_scale_is_found_and_the_functions_are_simulated_with_their_errors():
    problem = sysid.identify(measured(), DRUG, likelihood=chosen(step=None), n_searches=0)
    again = pickle.loads(pickle.dumps(problem))
    points = problem.starts(3, seed=0)
    np.testing.assert_array_equal(again.target.evaluate(points)[0], problem.target.evaluate(points)[0])
    scaled = problem.scaled()
    run = sample(scaled, samplers.hmc(0.5, n_leapfrogs=3), n_steps=300, burn_in=50, n_chains=8, seed=1)
    table = scaled.estimates(run)
    apart = (table.mean - [*TRUTH, *SDS]) / table.sd
    assert (np.abs(apart) < 4.0).all(), apart
    paths = sysid.simulate(run, TIMES, problem=scaled, noise=[0.0, 0.0, *SDS], n_draws=100)
    assert paths.quantities == ("gut", "blood", "concentration", "total")
    low, high = paths.bands((0.05, 0.95))[:, :, 2:]
    inside = (low < measured().values) & (measured().values < high)
    assert 0.8 < inside[np.isfinite(measured().values)].mean() < 0.98
    panels = figures.fit(measured(), paths, Figure())
    assert [panel.states.get_ylabel() for panel in panels.values()] == ["concentration", "total"]


def test_counts_of_a_reported_share_have_their_law():
    """Cases are Poisson of a share of the infected: the energy is that of the closed form."""
    system = systems.own(decay, states=["infected"], parameters=["rate", "share"], usual=[0.5, 0.5], start=[100.0])
    times = np.linspace(0.0, 4.0, 9)
    cases = np.random.default_rng(0).poisson(0.4 * 100.0 * np.exp(-0.5 * times)).astype(float)
    likelihood = trajectory(errors="poisson", start=[100.0], observe={"cases": lambda t, x, p: p[1] * x[0]}, step=0.05)
    energy, theta = likelihood.energy_and_start(Series(times, cases[:, None], ("cases",)), system)
    from scipy.stats import poisson

    expected = -poisson.logpmf(cases, 0.3 * 100.0 * np.exp(-0.6 * times)).sum()
    np.testing.assert_allclose(energy.evaluate([[0.6, 0.3]])[0], expected, rtol=1e-6)
    assert abs(theta[1] - 0.4) < 0.1


@pytest.mark.usefixtures("nothing_kept")
def test_functions_are_kept_on_disk():
    for hits in (0, 1):
        for number, x in ((types.float64, (1.0, 2.0)), (types.complex128, (1.0, 2.0 + 0.5j))):
            measure = checked_measure.__wrapped__(DRUG, observation_of(OBSERVE), number)
            assert measure(0.0, tuple(map(type(x[1]), x)), tuple(map(type(x[1]), (1, 1, 2)))) == (x[1] / 2, sum(x))
            assert sum(measure._cache_hits.values()) == hits


@pytest.mark.parametrize(
    ("observe", "message"),
    [
        ({"blood": lambda t, x, p: x[0]}, "must not name states"),
        ({"concentration": lambda t, x, p: abs(x[1]), "total": OBSERVE["total"]}, "must be analytic"),
        ({"concentration": lambda x: x[1], "total": OBSERVE["total"]}, "observe must hold functions"),
        ({"concentration": lambda t, x, p: (x[1],), "total": OBSERVE["total"]}, "must give a number"),
        ({"concentration": 3.0}, "must be a function"),
        ({"": OBSERVE["total"]}, "not empty"),
        ([("total", OBSERVE["total"])], "must map names"),
        ({"concentration": OBSERVE["concentration"]}, "must have states of the model"),
    ],
)
def test_functions_that_are_of_no_use_are_refused(observe, message):
    noisy = measured()
    series = Series(noisy.times, noisy.values - 1.0, noisy.states)
    with pytest.raises((TypeError, ValueError), match=message):
        chosen(observe=observe, start="free").prepare(series, DRUG)
