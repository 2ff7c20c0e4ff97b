"""Implicit steps with segments, experiments, all laws of errors, inputs and doses: energies by Radau, exact slopes."""

import numpy as np
import pytest
import scipy.stats

from sysid import Inputs, Series, systems
from sysid.likelihoods.step_grid import fast_changes, jumps_of, on_grid, up_to
from sysid.likelihoods.trajectories import trajectory
from sysid.solvers.integrate import solve
from sysid.systems.inputs import schedule_of
from sysid.systems.system import System
from tests.sysid.likelihoods.test_trajectories import slopes_by_differences

NOISE, TIMES = 0.02, np.unique([*np.linspace(0.0, 5.0, 21), 0.001, 0.002, 1.101, 1.102])
TRUE = np.array([1000.0, 0.4, 0.2, 2.0])
DOSED = Inputs(doses={"y": ([1.1, 2.6], [1.0, 1.0]), "x": ([0.0], [0.5])})
HELD = Inputs({"u": ([0.0, 1.3, 2.2, 3.9], [0.0, 1.0, -0.5, 2.0])}, held=("u",), doses={"x": ([3.0], [1.0])})
TABLE = Inputs({"u": (np.linspace(0.0, 5.0, 41), np.sin(3.0 * np.linspace(0.0, 5.0, 41)))})


def relaxing(t, x, p):
    return (p[0] * (x[1] - x[0]), -p[1] * x[1])


def forced(t, x, p, u):
    return (p[0] * (u[0] - x[0]), p[1] * (x[0] - x[1]))


RELAXING = System("relaxing", ("x", "y"), ("k", "d"), relaxing, [500.0, 0.5], [0.0, 2.0])
FORCED = systems.own(
    forced, states=["x", "y"], parameters=["k", "d"], usual=[500.0, 0.5], start=[0.0, 0.0], inputs=["u"]
)
LARGE = System("relaxing", ("x", "y"), ("k", "d"), relaxing, [500.0, 0.5], [10.0, 200.0])


def states_of(theta, system, inputs, times):
    """The solution by SciPy's Radau, to 1e-8: energies to 1e-6."""
    start = theta[2:4]
    return solve(system, times, theta[:2], start, method="radau", rtol=1e-8, atol=1e-10, inputs=inputs).states


def series_of(system, inputs, seed=0, times=TIMES, theta=TRUE):
    """A solution with Gaussian errors."""
    exact = states_of(theta, system, inputs, times)
    values = exact + NOISE * np.random.default_rng(seed).standard_normal(exact.shape)
    return Series(times, values, system.states, inputs=inputs)


def check_gradient(energy, theta, share=1e-2):
    """The gradient beside the energy's differences, near ``theta``."""
    moved = theta * (1.0 + share * np.random.default_rng(3).uniform(-1.0, 1.0, theta.size))
    _, slope = energy.evaluate(moved[None])
    differences = slopes_by_differences(energy.evaluate, moved, 1e-4)
    assert np.isfinite(slope).all()
    np.testing.assert_allclose(slope[0], differences, rtol=1e-6, atol=1e-7 * np.abs(slope).max())


@pytest.mark.slow_cases("table")
@pytest.mark.parametrize("name", ["doses", "held", "table"])
def test_grids_of_unequal_steps_follow_inputs_and_doses(name):
    """Steps are short after each jump, whose time is known; the energy is Radau's, and rates are found."""
    inputs, system = {"doses": (DOSED, RELAXING), "held": (HELD, FORCED), "table": (TABLE, FORCED)}[name]
    data = series_of(system, inputs)
    energy, theta = trajectory(method="sdirk4", noise=NOISE).energy_and_start(data, system)
    exact = -scipy.stats.norm(states_of(theta, system, inputs, TIMES), NOISE).logpdf(data.values).sum()
    assert abs(energy.evaluate(theta[None])[0][0] - exact) < 0.01
    assert energy.numbers.size < 10_000
    assert abs(theta[1] - 0.4) < 0.05
    check_gradient(energy, theta)


@pytest.mark.slow_cases("free")  # doses come on top of all that it has
@pytest.mark.parametrize("inputs", [None, DOSED], ids=["free", "dosed"])
def test_segments_with_kicks_that_are_small_have_the_energy_of_one_solution(inputs):
    data = series_of(RELAXING, inputs)
    settings = {"method": "sdirk4", "noise": NOISE}
    one, theta = trajectory(**settings).energy_and_start(data, RELAXING)
    several, found = trajectory(segments=3, gap=1e-3, **settings).energy_and_start(data, RELAXING)
    assert several.names[4:] == ("x(1)", "y(1)", "x(2)", "y(2)")
    first = schedule_of(RELAXING, inputs, TIMES).times
    begins = first[np.linspace(0.0, len(first) - 1, 4)[:-1].round().astype(int)]
    path = states_of(theta, RELAXING, inputs, np.unique([*begins, 5.0]))
    spread = several.numbers[6:8]  # standard deviations of the kicks
    joined = np.concatenate([theta, path[1], path[2]])
    kicks = 2 * (np.log(spread).sum() + np.log(2.0 * np.pi))
    apart = several.evaluate(joined[None])[0][0] - one.evaluate(theta[None])[0][0] - kicks
    assert abs(apart) < 0.05
    assert several.evaluate(found[None])[0][0] <= several.evaluate(joined[None])[0][0] + 0.05
    check_gradient(several, found, 1e-4)


def test_experiments_of_which_one_has_doses_share_rates_and_have_grids_of_their_own():
    data = [series_of(RELAXING, DOSED), series_of(RELAXING, None, 1, TIMES[::2], np.array([1000.0, 0.4, 1.0, 1.0]))]
    energy, theta = trajectory(method="sdirk4", noise=NOISE).energy_and_start(data, RELAXING)
    assert energy.names == ("k", "d", "x(0)[0]", "y(0)[0]", "x(0)[1]", "y(0)[1]")
    exact = 0.0
    for series, own in zip(data, (theta[:4], theta[[0, 1, 4, 5]]), strict=True):
        states = states_of(own, RELAXING, series.inputs, series.times)
        exact -= scipy.stats.norm(states, NOISE).logpdf(series.values).sum()
    assert abs(energy.evaluate(theta[None])[0][0] - exact) < 0.02
    check_gradient(energy, theta)


@pytest.mark.slow_cases("student", "negative_binomial")  # each law compiles steps of its own
@pytest.mark.parametrize("errors", ["poisson", "student", "negative_binomial"])
def test_energies_of_counts_and_outliers_are_those_of_their_laws(errors):
    rng = np.random.default_rng(4)
    system, inputs = (RELAXING, None) if errors == "student" else (LARGE, Inputs(doses={"y": ([2.6], [100.0])}))
    truth = TRUE if errors == "student" else np.array([1000.0, 0.4, 20.0, 200.0])
    exact = states_of(truth, system, inputs, TIMES)
    values = {
        "student": lambda: exact + NOISE * rng.standard_t(4.0, exact.shape),
        "poisson": lambda: rng.poisson(exact).astype(float),
        "negative_binomial": lambda: rng.poisson(exact * rng.gamma(20.0, 1.0 / 20.0, exact.shape)).astype(float),
    }[errors]()
    data = Series(TIMES, values, system.states, inputs=inputs)
    energy, theta = trajectory(method="sdirk4", errors=errors).energy_and_start(data, system)
    at, scales = states_of(theta, system, inputs, TIMES), theta[4:]
    law = {
        "student": lambda: scipy.stats.t(4.0, at, scales).logpdf(values),
        "poisson": lambda: scipy.stats.poisson(at).logpmf(values),
        "negative_binomial": lambda: scipy.stats.nbinom(1.0 / scales, 1.0 / (1.0 + scales * at)).logpmf(values),
    }[errors]()
    assert abs(energy.evaluate(theta[None])[0][0] + law.sum()) < 0.01
    check_gradient(energy, theta)


def test_schedules_on_finer_times_have_the_same_inputs_and_doses():
    schedule = schedule_of(FORCED, HELD, TIMES)
    assert schedule.times[jumps_of(schedule)].tolist() == [1.3, 2.2, 3.0, 3.9]
    assert not jumps_of(schedule_of(FORCED, TABLE, TIMES)).any()
    part = up_to(schedule, 15)
    grid = np.unique([*part.times, *np.linspace(0.0, part.times[-1], 50)])
    finer = on_grid(part, grid)
    u = finer.drives[:, 1] + finer.drives[:, 2] * (grid - finer.drives[:, 0])
    np.testing.assert_array_equal(u, HELD.at(grid, ["u"])[:, 0])
    assert finer.doses.sum() == part.doses.sum()
    assert finer.times[finer.is_break].tolist() == part.times[part.is_break].tolist()


def test_what_follows_a_jump_is_no_event_that_moves_in_time():
    schedule = schedule_of(RELAXING, DOSED, TIMES)
    found = fast_changes(RELAXING, TRUE[:2], TRUE[None, 2:], schedule, np.array([0]), np.ones(2), 1e6)
    assert not len(found.events)
    after = found.times[found.times > 1.1]
    assert after[1] - after[0] < 1e-3
    outside = fast_changes(RELAXING, TRUE[:2], TRUE[None, 2:], schedule, np.array([0]), np.ones(2), 1.0)
    np.testing.assert_array_equal(outside.times, schedule.times)  # its start is beyond the limit


def test_steps_that_are_cut_short_at_a_kink_shorten_no_others():
    """Of 2,001 kinks, some steps end 10⁻¹⁶ before theirs by rounding: lengths as that filled the memory."""
    at = np.linspace(0.0, 5.0, 2001)
    schedule = schedule_of(FORCED, Inputs({"u": (at, np.sin(3.0 * at))}), TIMES)
    start = np.array([[0.1, 0.5]])
    found = fast_changes(FORCED, np.array([300.0, 0.7]), start, schedule, np.array([0]), np.ones(2), 1e6)
    assert np.diff(found.times).min() < 1e-12
    assert found.lengths[found.times > 0.1].min() > 1e-5
