"""Trajectory likelihoods of stiff systems: exact gradients, energies by other solvers, truths found from noisy data."""

import contextlib

import numpy as np
import pytest
import scipy.stats

import sysid
from sysid import Series, likelihoods, priors, systems
from sysid.likelihoods.start_search import SearchProgress, StartSearch
from sysid.likelihoods.step_grid import Changes, graded_times, step_lengths
from sysid.likelihoods.trajectory_kernel import equations_of, evaluated
from sysid.solvers.integrate import solve
from sysid.systems.system import System
from tests.sysid.solvers.test_stiff import robertson_rhs

TRUE = np.array([0.04, 3e7, 1e4])
ROBERTSON = System("robertson", ("a", "b", "c"), ("k1", "k2", "k3"), robertson_rhs, [0.1, 1e7, 3e3], [1.0, 0.0, 0.0])
NOISE = 0.02


def robertson_data(seed=0):
    """40 times, even in their logarithms, with log-normal errors."""
    times = np.geomspace(1e-2, 1e4, 40)
    states = solve(ROBERTSON, np.append(0.0, times), TRUE, method="radau", rtol=1e-10, atol=1e-14).states[1:]
    noise = NOISE * np.random.default_rng(seed).standard_normal(states.shape)
    return Series(times, states * np.exp(noise), ROBERTSON.states)


def van_der_pol_data(noise, n=200, periods=2.0, seed=0, states=("x", "y"), mu=100.0):
    """Even times; the period is that of Dorodnitsyn (1947)."""
    period = (3.0 - 2.0 * np.log(2.0)) * mu + 7.014 * mu ** (-1.0 / 3.0)
    times = np.linspace(0.0, periods * period, n)
    exact = solve(systems.van_der_pol(), times, [mu], method="radau", rtol=1e-10, atol=1e-10).states
    noisy = exact + noise * exact.std(axis=0) * np.random.default_rng(seed).standard_normal(exact.shape)
    return Series(times, noisy[:, : len(states)], states)


def test_robertsons_rates_are_found_with_an_exact_gradient_of_the_right_energy():
    data = robertson_data()
    law = {f"k{k}": priors.lognormal(np.log(rate), 3.0) for k, rate in enumerate((0.1, 1e7, 1e3), 1)}
    likelihood = likelihoods.trajectory(errors="lognormal", method="sdirk4")
    problem = sysid.identify(data, ROBERTSON, likelihood=likelihood, prior=law, n_searches=2)
    found = problem.modes
    assert (np.abs(np.log(found.parameters[0, :3] / TRUE)) < 3.5 * found.sd[0, :3] / TRUE).all()
    assert (found.sd[0, :3] / TRUE < 0.03).all()  # and is not merely wide
    prepared, theta = problem.prepared, found.parameters[0]

    def energy_at(points):
        return evaluated(prepared.kernel, prepared.numbers, prepared.work_rows, points)[:2]

    states = solve(problem.system, data.times, theta[:3], theta[3:6], method="radau", rtol=1e-11, atol=1e-15).states
    exact = -scipy.stats.lognorm(theta[6:], scale=states).logpdf(data.values).sum()
    assert abs(energy_at(theta)[0][0] - exact) < 0.02
    moved = theta * (1.0 + 0.003 * np.array([1, -1, 1, 1, -1, 1, 5, 5, 5]))
    slope = energy_at(moved)[1][0] * moved
    for k in range(theta.size):
        points = np.tile(moved, (6, 1))
        points[:, k] *= 1.0 + 3e-4 * np.array([-3, -2, -1, 1, 2, 3])
        differences = energy_at(points)[0] @ np.array([-1, 9, -45, 45, -9, 1]) / (60.0 * 3e-4)
        assert abs(slope[k] - differences) < 1e-8 * np.abs(slope).max()
    wild = np.array(theta)
    wild[:3] = -1e3, 1e12, -1e12
    energy, slope = energy_at(np.array([wild, theta]))
    assert np.isinf(energy[0])
    assert (slope[0] == 0.0).all()
    assert energy[1] == energy_at(theta)[0][0]


@pytest.mark.slow  # half a minute of compilation and search
@pytest.mark.parametrize("states", [("x", "y"), ("x",)], ids=len)
def test_the_damping_of_a_relaxation_oscillator_is_found(states):
    data = van_der_pol_data(0.05, states=states)
    likelihood = likelihoods.trajectory(method="sdirk4")
    # Speeds are high for so short a time that one says nothing of the next.
    told = pytest.warns(UserWarning, match="'y' at one time") if "y" in states else contextlib.nullcontext()
    with told:
        problem = sysid.identify(data, systems.van_der_pol(), likelihood=likelihood, n_searches=0)
    prepared = problem.prepared
    assert prepared.numbers.size / 8 < 30_000  # rows of the grid
    scaled = problem.scaled()
    mode, sd = scaled.parameters(np.zeros(scaled.dim))[0], scaled.coordinates.root[0, 0]
    assert abs(mode - 100.0) < 4.0 * max(sd, 1e-3)
    assert sd < 1.0


def test_steps_are_short_where_fast_changes_may_be_and_end_at_the_data():
    times = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    nodes = np.array([0.0, 0.5, 1.5, 2.2, 2.21, 2.22, 2.7, 4.0])
    gaps = np.diff(nodes)
    shortest = np.minimum(np.append(gaps, gaps[-1]), np.append(gaps[0], gaps))
    changes = Changes(nodes, shortest, np.array([[2.2, 2.21, 0.01, 1.0], [2.21, 2.22, 0.01, 1.0]]))
    assert np.abs(changes.places - 2.205).max() < 1e-12
    for halos, first, last in ((None, 1.2, 3.2), (np.array([0.1]), 2.1, 2.32)):
        grid = graded_times(times, *step_lengths(changes, times, halos), 1.0)
        assert np.isin(times, grid).all()
        steps, inside = np.diff(grid), (grid[:-1] >= first) & (grid[1:] <= last)
        assert steps.min() > 0.0
        assert steps[inside].max() < 0.0101
        assert steps[0] > 0.1
    halved = graded_times(times, *step_lengths(changes, times, None), 2.0)
    assert abs(len(halved) / len(graded_times(times, *step_lengths(changes, times, None), 1.0)) - 2.0) < 0.05


def test_a_step_given_by_the_user_is_taken_for_the_implicit_method_too():
    times = np.linspace(0.0, 2.0, 5)
    data = Series(times, np.exp(-times)[:, None] * [1.0, 1.0, 1.0], ROBERTSON.states)
    energy, _ = likelihoods.trajectory(method="sdirk4", step=0.1, noise=0.1).energy_and_start(data, ROBERTSON)
    table = energy.numbers[6 + 5 * 3 :].reshape(len(times), -1)
    assert table[:-1, 2].tolist() == [5.0] * 4


def relaxing_rhs(t, x, p):
    return (p[0] * (np.cos(t) - x[0]),)


@pytest.mark.slow  # compiling steps of two systems by two methods
def test_very_many_explicit_steps_are_named_stiff():
    times = np.linspace(0.0, 10.0, 11)
    data = Series(times, np.cos(times)[:, None], ("x",))
    fast, slower = (System("relaxing", ("x",), ("rate",), relaxing_rhs, [rate], [1.0]) for rate in (1e6, 1e5))
    settings = likelihoods.trajectory(noise=0.1)
    with pytest.raises(ValueError, match=r"more than 1e\+06 steps .* looks stiff at the data. Take method='sdirk4'"):
        StartSearch(settings, equations_of(fast), data, data.values, SearchProgress())
    with pytest.warns(UserWarning, match=r"more than 1e\+05 steps .* looks stiff at the data. Take method='sdirk4'"):
        StartSearch(settings, equations_of(slower), data, data.values, SearchProgress())
    implicit = likelihoods.trajectory(noise=0.1, method="sdirk4")
    energy, _ = implicit.energy_and_start(data, fast)
    assert energy.numbers.size < 1000
