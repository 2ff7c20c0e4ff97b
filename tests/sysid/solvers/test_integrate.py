"""Solvers have the order they say, agree with SciPy, serve lanes alike, and end with a status whatever happens."""

import functools

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from sysid import systems
from sysid.solvers import runge_kutta
from sysid.solvers.integrate import BLEW_UP, DONE, STEP_LIMIT, STEP_TOO_SMALL, solve
from sysid.systems.system import System

LORENZ = systems.lorenz()
SPAN = {"lorenz": 5.0, "rossler": 20.0, "damped_pendulum": 10.0, "sir": 60.0, "fitzhugh_nagumo": 40.0}


def square_rhs(t, x, p):
    return (p[0] * x[0] * x[0],)


def forced_rhs(t, x, p):
    return (p[0] * np.cos(p[1] * t),)


def singular_rhs(t, x, p):
    return (1.0 / np.sqrt(p[0] - t),)


SQUARE = System("square", ("x",), ("a",), square_rhs, [1.0], [1.0])
FORCED = System("forced", ("x",), ("a", "w"), forced_rhs, [1.0, 2.0], [0.0])
SINGULAR = System("singular", ("x",), ("end",), singular_rhs, [1.0], [0.0])


@functools.cache
def truth(system, end, n):
    times = np.linspace(0.0, end, n)
    found = solve_ivp(
        lambda t, x: system.rhs(t, x, system.usual), (0.0, end), system.start,
        method="DOP853", rtol=1e-13, atol=1e-13, t_eval=times,
    )  # fmt: skip
    return times, found.y.T


def order(errors, steps):
    """Slope of log error over log steps."""
    return -np.polyfit(np.log(steps), np.log(errors), 1)[0]


def in_python(rhs, x, p, h, n, tableau):
    """The end of n steps of a tableau."""
    stages, weights = tableau
    for i in range(n):
        slopes = [np.array(rhs(i * h, x, p))]
        for node, row in stages:
            moved = x + h * sum(a * k for a, k in zip(row, slopes, strict=True))
            slopes.append(np.array(rhs((i + node) * h, moved, p)))
        x = x + h * sum(b * k for b, k in zip(weights, slopes, strict=True))
    return x


@pytest.mark.parametrize("method", ["rk4", "rk5"])
def test_fixed_steps_have_their_order_and_a_wrong_tableau_has_not(method):
    times, exact = truth(LORENZ, 1.0, 2)
    steps = np.array([400, 600, 900])
    errors = [np.abs(solve(LORENZ, times, method=method, step=1.0 / n).states[-1] - exact[-1]).max() for n in steps]
    assert abs(order(errors, steps) - runge_kutta.ORDERS[method]) < 0.25
    stages, weights = runge_kutta.TABLEAUS[method]
    node, row = stages[1]
    wrong = (stages[0], (node, (row[0] + 0.01, row[1])), *stages[2:])
    same = in_python(LORENZ.rhs, LORENZ.start, LORENZ.usual, 1 / 400, 400, (stages, weights))
    assert np.abs(same - exact[-1]).max() == pytest.approx(errors[0], rel=1e-3)
    errors = [
        np.abs(in_python(LORENZ.rhs, LORENZ.start, LORENZ.usual, 1.0 / n, n, (wrong, weights)) - exact[-1]).max()
        for n in steps
    ]
    assert order(errors, steps) < 3.0


def test_a_step_as_long_as_the_interval_or_shorter():
    times = np.array([0.0, 0.1, 0.35])
    one = solve(FORCED, times, method="rk4").steps
    many = solve(FORCED, times, method="rk4", step=0.1).steps
    assert one == [2]
    assert many == [4]  # 0.1, and 0.25 in three


def test_the_adaptive_error_follows_the_tolerance_with_order_five():
    times, exact = truth(LORENZ, 2.0, 2)
    tolerances = 10.0 ** -np.arange(5.0, 11.0)
    found = [solve(LORENZ, times, rtol=r, atol=r) for r in tolerances]
    errors = [np.abs(s.states[-1] - exact[-1]).max() for s in found]
    assert 4.5 < order(errors, [s.steps[0] for s in found]) < 5.8
    assert all(e < 2e4 * r for e, r in zip(errors, tolerances, strict=True))


def test_between_steps_the_dense_output_has_order_four():
    # Its own error is O(h⁵) a step; that of a cubic through states and slopes, O(h⁴), has slope 4 and is far above.
    times, exact = truth(LORENZ, 2.0, 2001)
    found = [solve(LORENZ, times, rtol=r, atol=r) for r in 10.0 ** -np.arange(5.0, 11.0)]
    errors = [np.abs(s.states - exact).max() for s in found]
    at_end = [np.abs(s.states[-1] - exact[-1]).max() for s in found]
    assert order(errors, [s.steps[0] for s in found]) > 4.5
    assert max(np.divide(errors, at_end)) < 30.0


@pytest.mark.parametrize("name", systems.catalogue())
@pytest.mark.parametrize("oracle", ["LSODA", "DOP853"])
def test_every_system_agrees_with_scipy(name, oracle):
    system = systems.catalogue()[name]
    times = np.linspace(0.0, SPAN.get(name, 15.0), 41)
    ours = solve(system, times, rtol=1e-10, atol=1e-12).check()
    theirs = solve_ivp(
        lambda t, x: system.rhs(t, x, system.usual), (0.0, times[-1]), system.start,
        method=oracle, rtol=1e-10, atol=1e-12, t_eval=times,
    ).y.T  # fmt: skip
    scale = np.abs(theirs).max(axis=0)
    assert (np.abs(ours.states - theirs) < 3e-5 * scale).all()
    other = solve(system, times, system.usual * 1.001, rtol=1e-10, atol=1e-12)
    assert (np.abs(other.states - theirs) / scale).max() > 1e-4


@pytest.mark.parametrize("name", [name for name, system in systems.catalogue().items() if system.invariant])
def test_invariants_are_kept(name):
    system = systems.catalogue()[name]
    times = np.linspace(0.0, 30.0, 301)
    for method, step in (("dopri5", None), ("rk5", 0.005)):
        found = solve(system, times, method=method, step=step).check()
        kept = system.invariant(found.states, system.usual)
        assert np.ptp(kept) < 1e-5
        assert (
            np.ptp(system.invariant(found.states * [1.01] + [0.01] * system.dim, system.usual)) > 1e-4 or name == "sir"
        )


def test_the_energy_of_a_pendulum_falls_by_its_friction():
    system = systems.damped_pendulum()
    times = np.linspace(0.0, 10.0, 2001)
    for damping in (0.0, 0.1):
        angle, velocity = solve(system, times, [damping, 9.81], rtol=1e-10).states.T
        energy = 0.5 * velocity**2 - 9.81 * np.cos(angle)
        lost = damping * np.trapezoid(velocity**2, times)
        assert energy[0] - energy[-1] == pytest.approx(lost, abs=2e-5)
        assert (energy[0] - energy[-1] > 1.0) == (damping > 0.0)


def some_lanes(n):
    draws = np.random.default_rng(0)
    return LORENZ.usual * draws.lognormal(0.0, 0.5, (n, 3)), LORENZ.start + draws.standard_normal((n, 3))


@pytest.mark.parametrize(("method", "step"), [("dopri5", None), ("rk4", 0.01), ("rk5", 0.01)])
def test_lanes_are_what_they_are_alone_for_any_number_of_threads(method, step):
    times = np.linspace(0.0, 3.0, 31)
    p, x = some_lanes(300)
    one, two = (solve(LORENZ, times, p, x, method=method, step=step, threads=n) for n in (1, 2))
    np.testing.assert_array_equal(one.states, two.states)
    for k in (0, 1, 31, 32, 255, 256, 299):
        alone = solve(LORENZ, times, p[k], x[k], method=method, step=step)
        np.testing.assert_array_equal(alone.states, one.states[k])
        assert alone.steps == one.steps[k]
    assert np.unique(one.states[:, -1, 0]).size == 300


def test_one_row_serves_all_lanes():
    times = [0.0, 1.0]
    p, x = some_lanes(3)
    np.testing.assert_array_equal(
        solve(LORENZ, times, p, x[0]).states, solve(LORENZ, times, p, np.tile(x[0], (3, 1))).states
    )
    assert solve(LORENZ, times, p[0], x).states.shape == (3, 2, 3)
    assert solve(LORENZ, times).states.shape == (2, 3)
    assert solve(LORENZ, times, np.zeros((0, 3))).states.shape == (0, 2, 3)


@pytest.mark.parametrize(("method", "step"), [("dopri5", None), ("rk4", 1e-3)])
def test_a_blow_up_ends_with_its_last_time(method, step):
    # x' = a x² from 1 is 1 / (1 − a t).
    times = np.linspace(0.0, 2.0, 201)
    found = solve(SQUARE, times, [[0.1], [1.0], [4.0]], method=method, step=step)
    assert found.status.tolist() == [DONE, BLEW_UP, BLEW_UP]
    np.testing.assert_allclose(found.reached[:1], 2.0)
    assert abs(found.reached[1] - 1.0) < 0.0101
    assert abs(found.reached[2] - 0.25) < 0.0101
    for k in range(3):
        there = times <= found.reached[k]
        assert np.isfinite(found.states[k, there]).all()
        assert np.isnan(found.states[k, ~there]).all()
    np.testing.assert_allclose(found.states[0, :, 0], 1.0 / (1.0 - 0.1 * times), rtol=1e-7)
    with pytest.raises(ArithmeticError, match=r"square was not solved in 2 of 3 lanes; lane 1: blew up after t = "):
        found.check()


def test_the_limit_is_where_a_state_has_blown_up():
    times = np.linspace(0.0, 1.0, 1001)[:-1]
    found = solve(SQUARE, times, limit=50.0)
    assert found.status == [BLEW_UP]
    assert abs(found.reached[0] - (1.0 - 1.0 / 50.0)) < 0.0011
    assert solve(SQUARE, times, limit=1e4).status == [DONE]


def test_stiff_and_singular_systems_end():
    stiff = solve(systems.van_der_pol(), [0.0, 1.0, 1e6], [1e6], max_steps=20_000)
    assert stiff.status == [STEP_LIMIT]
    assert stiff.steps == [20_000]
    assert stiff.reached[0] < 1e6
    pole = solve(SINGULAR, np.linspace(0.0, 2.0, 21))
    assert pole.status[0] in (BLEW_UP, STEP_TOO_SMALL)
    assert pole.reached == pytest.approx([1.0], abs=0.11)
    kink = solve(SQUARE, [0.0, 1.0], [1e300], [1e7])
    assert kink.status[0] in (BLEW_UP, STEP_TOO_SMALL)
    fixed = solve(LORENZ, np.linspace(0.0, 1.0, 11), method="rk4", step=1e-3, max_steps=350)
    assert fixed.status == [STEP_LIMIT]
    assert fixed.reached == pytest.approx([0.3])
    assert solve(LORENZ, np.linspace(0.0, 1.0, 11), method="rk4", step=1e-12).reached == [0.0]


@pytest.mark.cases(1)
@pytest.mark.parametrize("method", ["dopri5", "rk4"])
def test_whatever_the_numbers_every_lane_ends_and_is_nan_only_after_its_end(method):
    draws = np.random.default_rng(1)
    times = np.linspace(0.0, 10.0, 41)
    for system in systems.catalogue().values():
        size = 10.0 ** draws.uniform(-300, 300, (64, 1))
        p = draws.standard_normal((64, system.n_parameters)) * np.minimum(size, 1e300)
        x = draws.standard_normal((64, system.dim)) * 10.0 ** draws.uniform(-300, 9, (64, 1))
        found = solve(system, times, p, x, max_steps=2000, method=method)
        gone = times > found.reached[:, None]
        np.testing.assert_array_equal(np.isnan(found.states).all(axis=2), gone)
        np.testing.assert_array_equal(np.isnan(found.states).any(axis=2), gone)
        np.testing.assert_array_equal(found.status == DONE, ~gone.any(axis=1))
        assert (found.steps <= 2000).all()


@pytest.mark.cases(1)
@pytest.mark.parametrize("method", ["rk4", "rk5"])
def test_complex_steps_give_the_derivatives_of_fixed_steps(method):
    times = np.linspace(0.0, 1.0, 11)
    found = solve(LORENZ, times, LORENZ.usual + 1e-40j * np.eye(3), method=method, step=1e-3)
    slopes = found.states.imag / 1e-40

    def variation(t, x):
        """Lorenz with the derivatives of its states by each parameter."""
        sigma, rho, beta = LORENZ.usual
        u, v, w = x[:3]
        jacobian = np.array([[-sigma, sigma, 0.0], [rho - w, -1.0, -u], [v, u, -beta]])
        forcing = np.array([[v - u, 0.0, 0.0], [0.0, u, 0.0], [0.0, 0.0, -w]])
        return np.concatenate([LORENZ.rhs(t, x[:3], LORENZ.usual), (jacobian @ x[3:].reshape(3, 3) + forcing).ravel()])

    start = np.concatenate([LORENZ.start, np.zeros(9)])
    exact = solve_ivp(variation, (0.0, 1.0), start, method="DOP853", rtol=1e-12, atol=1e-12, t_eval=times).y[3:].T
    expected = exact.reshape(11, 3, 3).transpose(2, 0, 1)
    assert np.abs(slopes - expected).max() < {"rk4": 1e-5, "rk5": 1e-7}[method]
    real = solve(LORENZ, times, method=method, step=1e-3).states
    assert np.abs(found.states.real - real).max() < 1e-10


def test_time_enters():
    times = np.linspace(0.5, 3.0, 26)
    exact = 0.5 * (np.sin(2.0 * times) - np.sin(1.0))
    for method in ("dopri5", "rk4", "rk5"):
        found = solve(FORCED, times, method=method, step=None if method == "dopri5" else 0.01)
        np.testing.assert_allclose(found.states[:, 0], exact, atol=1e-8)


REFUSED = {
    "system": (lambda: solve("lorenz", [0.0, 1.0]), "system must be a System, got 'lorenz'"),
    "decreasing": (lambda: solve(LORENZ, [0.0, 1.0, 0.5]), r"times must increase, got 1 and then 0.5 at \[2\]"),
    "no times": (lambda: solve(LORENZ, []), r"times must have shape \(n,\) with n ≥ 1, got \(0,\)"),
    "nan": (lambda: solve(LORENZ, [0, 1], [1.0, np.nan, 1.0]), r"parameters must be finite, got nan at \[1\]"),
    "shape": (
        lambda: solve(LORENZ, [0, 1], [1.0, 1.0]), r"parameters must have shape \(3,\) or \(lanes, 3\), got \(2,\)",
    ),
    "lanes": (
        lambda: solve(LORENZ, [0, 1], np.ones((2, 3)), np.ones((3, 3))),
        "parameters and start must have the same lanes, or one, got 2 and 3",
    ),
    "method": (
        lambda: solve(LORENZ, [0, 1], method="euler"),
        "method must be one of 'dopri5', 'radau', 'rk4', 'rk5', got 'euler'",
    ),
    "step": (lambda: solve(LORENZ, [0, 1], step=0.1), "step must be None for the adaptive method 'dopri5', got 0.1"),
    "negative step": (lambda: solve(LORENZ, [0, 1], method="rk4", step=-0.1), "step must be finite and > 0, got -0.1"),
    "rtol": (lambda: solve(LORENZ, [0, 1], rtol=0.0), "rtol must be finite and ≥ 1e-14 and < 1, got 0.0"),
    "max_steps": (lambda: solve(LORENZ, [0, 1], max_steps=0), "max_steps must be ≥ 1, got 0"),
    "limit": (lambda: solve(LORENZ, [0, 1], limit=-1.0), "limit must be finite and > 0 and ≤ 1e\\+150, got -1.0"),
    "threads": (lambda: solve(LORENZ, [0, 1], threads=-1), "threads must be ≥ 1"),
    "no threads": (lambda: solve(LORENZ, [0, 1], threads=0), "threads must be ≥ 1"),
    "threads that are no number": (lambda: solve(LORENZ, [0, 1], threads=False), "threads must be an integer, got F"),
    "complex": (
        lambda: solve(LORENZ, [0, 1], LORENZ.usual + 1j), "method must be 'rk4' or 'rk5' for complex .*, got 'dopri5'",
    ),
    "not compiled": (
        lambda: solve(System("list", ("x",), (), lambda t, x, p: [x[0]], [], [1.0]), [0, 1]),
        "rhs must be a function .* returns a tuple of 1 numbers, but <lambda> is not: it makes arrays or lists",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_off_is_refused_with_its_value(what):
    call, words = REFUSED[what]
    with pytest.raises((TypeError, ValueError), match=f"^{words}"):
        call()


def test_a_system_without_parameters():
    free = System("decay", ("x",), (), lambda t, x, p: (-x[0],), [], [1.0])
    times = np.linspace(0.0, 2.0, 5)
    for method in ("dopri5", "rk5"):
        found = solve(free, times, method=method, step=None if method == "dopri5" else 0.01)
        np.testing.assert_allclose(found.states[:, 0], np.exp(-times), rtol=1e-8)
