"""Implicit solutions and steps: against published values, matrix exponentials, other methods, and differences."""

import numpy as np
import pytest
import scipy
from scipy.integrate import solve_ivp

from sysid import systems
from sysid.likelihoods.trajectory_kernel import equations_of
from sysid.solvers.implicit import GAMMA, NODES, STAGES, linear_solver, steps_of
from sysid.solvers.integrate import BLEW_UP, DONE, STEP_LIMIT, solve
from sysid.systems.system import System
from toolkit._compiler import kept, kernel


def robertson_rhs(t, x, p):
    slow, fast, back = p[0] * x[0], p[1] * x[1] * x[1], p[2] * x[1] * x[2]
    return (-slow + back, slow - back - fast, fast)


def linear_rhs(t, x, p):
    return (-p[0] * x[0] + p[0] * x[1], -x[1])


def square_rhs(t, x, p):
    return (p[0] * x[0] * x[0],)


def pendulum_rhs(t, x, p):
    return (x[1], -p[0] * np.sin(x[0]) - p[1] * x[1] + p[2] * np.exp(-t))


ROBERTSON = System("robertson", ("a", "b", "c"), ("k1", "k2", "k3"), robertson_rhs, [0.04, 3e7, 1e4], [1.0, 0.0, 0.0])
LINEAR = System("linear", ("x", "y"), ("rate",), linear_rhs, [1e6], [2.0, 1.0])
SQUARE = System("square", ("x",), ("a",), square_rhs, [1.0], [1.0])
PENDULUM = System("pendulum", ("angle", "speed"), ("k", "b", "push"), pendulum_rhs, [4.0, 0.2, 0.5], [1.0, 0.3])
VAN_DER_POL = systems.van_der_pol()


def test_robertsons_kinetics_are_the_published_ones_and_keep_their_mass():
    times = np.array([0.0, 0.4, 4.0, 40.0, 400.0, 4000.0, 40000.0])
    found = solve(ROBERTSON, times, method="radau", rtol=1e-9, atol=1e-13).check()
    # Hairer & Wanner II, IV.10, and the example of CVODE, to the digits printed there.
    published = [0.98517, 0.90552, 0.71583, 0.45052, 0.18320, 0.038983]
    assert np.abs(found.states[1:, 0] / published - 1.0).max() < 2e-4
    assert abs(found.states[1, 1] / 3.3864e-5 - 1.0) < 1e-4
    assert np.abs(found.states.sum(axis=1) - 1.0).max() < 1e-12
    other = solve_ivp(
        lambda t, x: robertson_rhs(t, x, ROBERTSON.usual), (0.0, 40.0), ROBERTSON.start, "BDF", [0.4, 40.0],
        rtol=1e-10, atol=1e-14,
    )  # fmt: skip
    assert np.abs(found.states[[1, 3]] / other.y.T - 1.0).max() < 1e-6


@pytest.mark.slow_cases("1000.0")
@pytest.mark.cases(1)
@pytest.mark.parametrize("mu", [100.0, 1000.0])
def test_van_der_pol_is_that_of_another_method(mu):
    times = np.linspace(0.0, 0.9 * mu, 10)  # its first fast change is at 0.81 mu
    found = solve(VAN_DER_POL, times, [mu], method="radau", rtol=1e-9, atol=1e-9).check()
    other = solve_ivp(
        lambda t, x: VAN_DER_POL.rhs(t, x, (mu,)), (0.0, times[-1]), VAN_DER_POL.start, "LSODA", times,
        rtol=1e-12, atol=1e-12,
    )  # fmt: skip
    assert found.states[-1, 0] < -1.0
    assert np.abs(found.states - other.y.T).max() < 1e-6


def test_a_linear_stiff_system_is_the_matrix_exponential_in_every_lane():
    times, rates = np.array([0.0, 1e-6, 1e-3, 1.0, 3.0]), np.array([1e2, 1e6])
    found = solve(LINEAR, times, rates[:, None], method="radau", rtol=1e-9, atol=1e-12, threads=2).check()
    for rate, states in zip(rates, found.states, strict=True):
        exact = [scipy.linalg.expm(t * np.array([[-rate, rate], [0.0, -1.0]])) @ LINEAR.start for t in times]
        assert np.abs(states - exact).max() < 1e-7
    alone = solve(LINEAR, times, rates[1:], method="radau", rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(alone.states, found.states[1])
    assert found.steps[1] < 1000  # explicit steps: a million


def test_every_lane_ends_with_a_status():
    found = solve(SQUARE, [0.0, 0.5, 0.9, 1.5], method="radau")
    assert found.status.tolist() == [BLEW_UP]
    assert found.reached.tolist() == [0.9]
    assert np.isnan(found.states[3]).all()
    assert abs(found.states[1, 0] - 2.0) < 1e-6
    assert solve(SQUARE, [0.0, 0.5], start=[1e9], method="radau").status.tolist() == [BLEW_UP]
    assert solve(LINEAR, [0.0, 1.0], method="radau", max_steps=5).status.tolist() == [STEP_LIMIT]
    assert solve(LINEAR, [0.0], method="radau").status.tolist() == [DONE]


def test_complex_parameters_and_steps_of_the_user_are_refused():
    with pytest.raises(ValueError, match="method must be 'rk4' or 'rk5' for complex parameters or starts, got 'radau'"):
        solve(LINEAR, [0.0, 1.0], [1.0 + 1e-40j], method="radau")
    with pytest.raises(ValueError, match="step must be None for the adaptive method 'radau'"):
        solve(LINEAR, [0.0, 1.0], method="radau", step=0.1)


def compiled_steps(system):
    """The implicit step and its adjoint, from Python."""
    step, back = steps_of(system.rhs, equations_of(system).pullback, "sdirk4", system.dim)

    @kernel
    def forwards(t, h, n, x, p):
        for i in range(n):
            x = step(t + i * h, h, x, p)
        return x

    @kernel
    def backwards(t, h, x, p, w, s):
        return back(t, h, x, p, w, s)

    return kept(forwards), kept(backwards)


def test_the_tableau_is_stiffly_accurate_and_l_stable_of_order_4():
    a = np.zeros((5, 5))
    for i, row in enumerate(STAGES):
        a[i, : i + 1] = (*row, GAMMA)
    b, c, one = a[-1], a.sum(axis=1), np.ones(5)
    assert np.abs(c - NODES).max() < 1e-15
    conditions = [
        b @ one - 1, b @ c - 1 / 2, b @ c**2 - 1 / 3, b @ a @ c - 1 / 6,
        b @ c**3 - 1 / 4, b @ (c * (a @ c)) - 1 / 8, b @ a @ c**2 - 1 / 12, b @ a @ a @ c - 1 / 24,
    ]  # fmt: skip
    assert np.abs(conditions).max() < 1e-14
    z = np.concatenate([1j * np.geomspace(1e-2, 1e3, 200), -np.geomspace(1e-2, 1e8, 50)])
    stability = np.array([1.0 + v * b @ np.linalg.solve(np.eye(5) - v * a, one) for v in z])
    assert np.abs(stability).max() <= 1.0 + 1e-12
    assert abs(stability[-1]) < 1e-7


def test_one_implicit_step_of_a_linear_system_is_its_stability_function():
    a = np.zeros((5, 5))
    for i, row in enumerate(STAGES):
        a[i, : i + 1] = (*row, GAMMA)
    forwards, _ = compiled_steps(LINEAR)
    m = 0.3 * np.array([[-1e6, 1e6], [0.0, -1.0]])
    inner = np.linalg.solve(np.eye(10) - np.kron(a, m), np.tile(LINEAR.start, 5))
    exact = LINEAR.start + m @ (a[-1] @ inner.reshape(5, 2))
    found = forwards(0.0, 0.3, 1, tuple(LINEAR.start), (1e6,))
    assert np.abs(np.array(found) - exact).max() < 1e-9  # both round to some 1e-10, as the rate is 1e6


def test_the_error_of_implicit_steps_falls_with_the_fourth_power():
    forwards, _ = compiled_steps(PENDULUM)
    x, p = tuple(PENDULUM.start), tuple(PENDULUM.usual)
    exact = solve(PENDULUM, [0.0, 2.0], method="radau", rtol=1e-13, atol=1e-14).states[-1]
    errors = [np.abs(np.array(forwards(0.0, 2.0 / n, n, x, p)) - exact).max() for n in (16, 32, 64)]
    assert np.abs(np.log2(np.divide(errors[:-1], errors[1:])) - 4.0).max() < 0.2


@pytest.mark.parametrize(("system", "h"), [(ROBERTSON, 0.1), (PENDULUM, 0.4)], ids=lambda given: str(given))
def test_the_adjoint_of_an_implicit_step_is_its_derivative(system, h):
    forwards, backwards = compiled_steps(system)
    x, p = forwards(0.0, h, 1, tuple(system.start), tuple(system.usual)), tuple(system.usual)
    weights = tuple((1.0 / np.maximum(np.abs(x), 1e-9)).tolist())
    found = np.concatenate(backwards(0.2, h, x, p, weights, (0.0,) * len(p)))
    point = np.array([*x, *p])
    for k, value in enumerate(point):
        moved = np.tile(point, (6, 1))
        moved[:, k] += 1e-3 * value * np.array([-3, -2, -1, 1, 2, 3])
        ends = [
            np.dot(weights, forwards(0.2, h, 1, tuple(m[: len(x)].tolist()), tuple(m[len(x) :].tolist())))
            for m in moved
        ]
        differences = np.dot(ends, [-1, 9, -45, 45, -9, 1]) / (60.0 * 1e-3 * value)
        assert abs(found[k] - differences) * abs(value) < 1e-8 * np.abs(found * point).max()


def test_a_step_that_has_no_solution_is_nan():
    forwards, _ = compiled_steps(SQUARE)
    assert np.isfinite(forwards(0.0, 0.1, 1, (1.0,), (1.0,))[0])
    assert np.isnan(forwards(0.0, 10.0, 1, (1.0,), (1.0,))[0])  # x = 1 + 2.5 x² has no real root


@pytest.mark.cases(2)
@pytest.mark.parametrize("dim", [1, 2, 3, 5])
def test_linear_equations_are_solved_with_pivots(dim):
    solver = linear_solver(dim)

    @kept
    @kernel
    def solve_it(a, b):
        return solver(a, b)

    rng = np.random.default_rng(dim)
    matrix = rng.standard_normal((dim, dim)) * 10.0 ** rng.uniform(-6, 6, (dim, 1))
    matrix[0, 0] *= 1e-18 if dim > 1 else 1.0
    wanted = rng.standard_normal(dim)
    found = solve_it(tuple(tuple(row) for row in matrix.tolist()), tuple((matrix @ wanted).tolist()))
    scale = np.linalg.cond(matrix / np.abs(matrix).max(axis=1, keepdims=True))
    assert np.abs(found - wanted).max() < 1e-13 * scale
