"""Gradients of the trajectory likelihood per second on one processor, beside other ways to them.

Discrete adjoints with derivatives written out, or by complex steps of the right-hand side; complex steps through the
whole integration, one for each parameter; NumPy over lanes, and SciPy one by one, with forward differences.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numba import njit
from scipy.integrate import solve_ivp

from sysid import systems
from sysid.data import simulate
from sysid.libraries import polynomial
from sysid.steppers import rk4_step
from sysid.trajectory import trajectory

from .markdown import head, row

LANES = 64
STEPS = 10  # of an interval


def main() -> None:
    """Print the table."""
    head("system", "parameters", "steps", "way", "gradients a second", "µs each")
    prey = systems.lotka_volterra()
    compare("Lotka–Volterra", prey, prey, np.linspace(0.0, 10.0, 21), others=True)
    lorenz = systems.lorenz()
    compare("Lorenz", lorenz, lorenz, np.linspace(0.0, 1.0, 21))
    compare("Lorenz, all quadratic terms", lorenz, polynomial(lorenz.states, 2), np.linspace(0.0, 1.0, 21))


def compare(name: str, system: Any, model: Any, times: Any, *, others: bool = False) -> None:
    """The rows of one system."""
    data = simulate(system, times, noise=0.01, seed=1)
    step = float(times[1] - times[0]) / STEPS
    shot, start = trajectory(step=step).shot(data, model)
    thetas = start * (1.0 + 1e-3 * np.random.default_rng(2).standard_normal((LANES, start.size)))
    counts = (len(start), STEPS * (len(times) - 1))

    def tell(way: str, seconds: float, points: int) -> None:
        row(name, *counts, way, round(points / seconds), 1e6 * seconds / points)

    tell("adjoints, written out", seconds_of(lambda: shot.evaluate(thetas)), LANES)
    if model is system:
        general, _ = trajectory(step=step).shot(data, replace(system, terms=None))
        tell("adjoints, complex steps of the right-hand side", seconds_of(lambda: general.evaluate(thetas)), LANES)
    if others:
        integrate = complex_integration(rk4_step(system.rhs))
        columns = thetas.T.astype(complex)
        call = lambda: complex_gradients(integrate, columns, step, len(times))  # noqa: E731
        tell("complex steps through the integration", seconds_of(call), LANES)
        by_numpy = lambda: differences(lambda t: numpy_energy(system, data, t, step), thetas)  # noqa: E731
        tell("NumPy over lanes, differences", seconds_of(by_numpy), LANES)
        by_scipy = lambda: differences(lambda t: scipy_energy(system, data, t), thetas[:1])  # noqa: E731
        tell("SciPy's DOP853, differences", seconds_of(by_scipy), 1)


def seconds_of(call: Callable[[], Any]) -> float:
    """The least time of a call, of as many as fit into a second."""
    call()
    best, end = np.inf, time.perf_counter() + 1.0
    while time.perf_counter() < end:
        started = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - started)
    return best


def complex_integration(step: Any) -> Any:
    """Kernel: sums of squares of a system with two states and four parameters, over lanes, of complex numbers."""

    @njit(error_model="numpy", _nrt=False)
    def run(theta: Any, states: Any, squares: Any, h: Any, intervals: Any) -> None:
        for i in range(intervals):
            for j in range(STEPS):
                for lane in range(squares.size):
                    p = (theta[0, lane], theta[1, lane], theta[2, lane], theta[3, lane])
                    x = step((i * STEPS + j) * h, h, (states[0, lane], states[1, lane]), p)
                    states[0, lane], states[1, lane] = x
            for lane in range(squares.size):
                a, b = states[0, lane] - 1.0, states[1, lane] - 1.0
                squares[lane] += a * a + b * b

    return run


def complex_gradients(integrate: Any, theta: Any, h: float, n: int) -> Any:
    """One integration for each of the six parameters that move the states; the noise's slopes are in closed form."""
    for k in range(6):
        moved = theta.copy()
        moved[k] += 1e-40j
        integrate(moved[:4], moved[4:6].copy(), np.zeros(theta.shape[1], complex), h, n - 1)


def numpy_energy(system: Any, data: Any, theta: Any, h: float) -> Any:
    """The energy (lanes,) of theta (lanes, 8), up to a constant, by RK4 on arrays of lanes."""
    p, x, sd = tuple(theta[:, :4].T), theta[:, 4:6].T, theta[:, 6:].T

    def slope(y: Any) -> Any:
        return np.array(system.rhs(0.0, y, p))

    squares = ((x - data.values[0][:, None]) / sd) ** 2
    for values in data.values[1:]:
        for _ in range(STEPS):
            a = slope(x)
            b = slope(x + 0.5 * h * a)
            c = slope(x + 0.5 * h * b)
            x = x + h / 6.0 * (a + 2.0 * b + 2.0 * c + slope(x + h * c))
        squares = squares + ((x - values[:, None]) / sd) ** 2
    return (0.5 * squares + len(data) * np.log(sd)).sum(axis=0)


def scipy_energy(system: Any, data: Any, theta: Any) -> Any:
    """The same of one lane, by SciPy's adaptive integrator."""
    p, first, sd = theta[0, :4], theta[0, 4:6], theta[0, 6:]
    span = (data.times[0], data.times[-1])
    found = solve_ivp(lambda t, x: system.rhs(t, x, p), span, first, "DOP853", data.times, rtol=1e-6, atol=1e-8)
    residuals = (found.y.T - data.values) / sd
    return np.array([(0.5 * residuals**2 + np.log(sd)).sum()])


def differences(energy: Callable[[Any], Any], theta: Any) -> Any:
    """Forward differences (lanes, q)."""
    at = energy(theta)
    lengths = 1e-7 * np.abs(theta)
    return np.stack(
        [
            (energy(theta + lengths * (np.arange(theta.shape[1]) == k)) - at) / lengths[:, k]
            for k in range(theta.shape[1])
        ],
        axis=1,
    )
