"""Runge–Kutta steps against their own polynomials, their order, and exact derivatives by complex steps."""

import platform

import numpy as np
import pytest

from sysid.solvers import runge_kutta
from sysid.solvers.runge_kutta import ORDERS, rk4_step, rk5_step
from tests.support.machine_code import packed_instructions
from toolkit._compiler.decorators import kept, kernel
from toolkit._compiler.signatures import FLOATS, MATRIX

STEPS = {"rk4": rk4_step, "rk5": rk5_step}
# R(z) of x' = λx in z = λh: the exponential series to the order, and a rest b₆a₆₅a₅₄a₄₃a₃₂c₂ = 1/600 of the fifth.
STABILITY = {
    "rk4": lambda z: 1 + z + z**2 / 2 + z**3 / 6 + z**4 / 24,
    "rk5": lambda z: 1 + z + z**2 / 2 + z**3 / 6 + z**4 / 24 + z**5 / 120 + z**6 / 600,
}


def linear(t, x, p):
    return (p[0] * x[0],)


def powers(t, x, p):
    return (p[0] * t**3, p[0] * t**4, p[0] * t**5)


def pendulum(t, x, p):
    return (x[1], -p[0] * np.sin(x[0]) - p[1] * x[1] + p[2] * np.exp(-t))


def moved(step):
    """``n`` steps as compiled code takes them."""

    @kernel
    def run(t, h, n, x, p):
        for i in range(n):
            x = step(t + i * h, h, x, p)
        return x

    return kept(run)


@pytest.mark.cases(2)
@pytest.mark.parametrize("method", STEPS)
@pytest.mark.parametrize("z", [-1.3, 0.7, 0.4 + 2.1j])
def test_one_step_of_a_linear_system_is_the_methods_polynomial(method, z):
    (x,) = moved(STEPS[method](linear))(0.0, 0.5, 1, (1.0,), (2.0 * z,))
    assert abs(x - STABILITY[method](z)) < 1e-14


@pytest.mark.parametrize("method", STEPS)
def test_quadrature_is_exact_to_the_order_less_one_and_no_further(method):
    x = moved(STEPS[method](powers))(1.0, 2.0, 1, (0.0, 0.0, 0.0), (1.0,))
    exact = np.array([3.0**k - 1.0 for k in (4, 5, 6)]) / (4.0, 5.0, 6.0)
    right = np.abs(np.array(x) / exact - 1.0) < 1e-14
    assert right.tolist() == [True, method == "rk5", False]


@pytest.mark.parametrize("method", STEPS)
def test_error_falls_with_the_order(method):
    run, x, p = moved(STEPS[method](pendulum)), (1.0, 0.3), (4.0, 0.2, 0.5)
    exact = np.array(run(0.0, 2.0 / 4096, 4096, x, p))
    errors = [np.abs(np.array(run(0.0, 2.0 / n, n, x, p)) - exact).max() for n in (64, 128, 256)]
    assert np.abs(np.log2(np.divide(errors[:-1], errors[1:])) - ORDERS[method]).max() < 0.2


@pytest.mark.parametrize("method", STEPS)
def test_complex_steps_differentiate_exactly(method):
    run, x, p = moved(STEPS[method](pendulum)), (1.0, 0.3), (4.0, 0.2, 0.5)
    real = np.array(run(0.0, 0.05, 40, x, p))
    for k in range(5):
        values = [*x, *p]

        def at(change, k=k, values=values):
            given = [v + change * (i == k) for i, v in enumerate(values)]
            return np.array(run(0.0, 0.05, 40, tuple(given[:2]), tuple(given[2:])))

        slope = at(1e-40j).imag * 1e40
        # Sixth-order differences: of error h⁶ f⁽⁷⁾ / 140 and rounding 1e-16 / h.
        differences = sum(w * (at(i * 0.01) - at(-i * 0.01)) for i, w in ((1, 0.75), (2, -0.15), (3, 1 / 60))) / 0.01
        assert np.abs(slope - differences).max() < 2e-9
        assert np.abs(at(1e-40j).real - real).max() < 1e-14


def test_a_step_is_made_once_for_a_right_hand_side():
    assert rk4_step(linear) is rk4_step(linear)
    assert rk4_step(linear) is not rk5_step(linear)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="reads x86-64 assembly")
@pytest.mark.parametrize("method", STEPS)
def test_a_loop_over_lanes_vectorises(method):
    step = STEPS[method](pendulum)

    def loop(states, parameters, times):
        for lane in range(times.size):
            x = step(times[lane], 0.01, (states[0, lane], states[1, lane]), (4.0, parameters[0], 0.5))
            states[0, lane] = x[0]
            states[1, lane] = x[1]

    packed, library = packed_instructions(loop, runge_kutta.types.void(MATRIX, FLOATS, FLOATS))
    assert len(packed) >= 3
    assert not library
