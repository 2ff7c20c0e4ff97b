"""Stiff systems by implicit steps: how long a search for a start takes, what it finds, and how far the grid is right.

Van der Pol's oscillator with μ = 100, 200 samples in two periods, both states or x alone, and Robertson's kinetics,
40 samples even in log t, with log-normal errors; noise of 2 %. Searches: the second in the process, so without
compilation. Energies are compared with those of SciPy's Radau at a tolerance of 1e-11 and initial states and noise as
found. ``rk4``: the same energy with equal explicit steps.
"""

import time
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm

from benchmarks.runner.plan import Plan
from benchmarks.runner.tables import Table
from sysid import Series, systems
from sysid.likelihoods.trajectories import trajectory
from sysid.likelihoods.trajectory_kernel import Segments, equations_of, trajectory_energy
from sysid.modes.laplace import curvature_at, in_batches
from sysid.solvers.integrate import solve
from sysid.systems.inputs import schedule_of

NOISE = 0.02  # of the standard deviation of each state, or of logarithms
MU, SPAN, N_SAMPLES = 100.0, 330.0, 200  # two periods
RATES = np.array([0.04, 3e7, 1e4])
DIVISIONS = (1_600, 3_200)  # between two samples


def robertson(_: Any, x: Any, p: Any) -> Any:
    """Robertson's autocatalytic reaction."""
    first, second, third = p[0] * x[0], p[1] * x[1] * x[1], p[2] * x[1] * x[2]
    return third - first, first - third - second, second


class Case(NamedTuple):
    """Data, the system that they are of, and the law of their errors."""

    name: str
    system: Any
    data: Series
    errors: str = "gaussian"


def solved(system: Any, times: Any, parameters: Any, start: Any) -> Any:
    """States (n, dim)."""
    return solve(system, times, parameters, start, method="radau", rtol=1e-11, atol=1e-13).check().states


def noisy(system: Any, times: Any, parameters: Any, errors: str) -> Series:
    """States with errors; the solution begins at time 0."""
    states = solved(system, np.append(0.0, times), parameters, system.start)[1:]
    error = NOISE * np.random.default_rng(0).standard_normal(states.shape)
    values = states * np.exp(error) if errors == "lognormal" else states + states.std(axis=0) * error
    return Series(times, values, system.states)


def cases() -> list[Case]:
    """All cases."""
    oscillator = systems.van_der_pol()
    kinetics = systems.own(
        robertson, states=["a", "b", "c"], parameters=["k1", "k2", "k3"], usual=[0.1, 1e7, 1e3], start=[1.0, 0.0, 0.0]
    )
    whole = noisy(oscillator, np.linspace(SPAN / N_SAMPLES, SPAN, N_SAMPLES), [MU], "gaussian")
    alone = Series(whole.times, whole.values[:, :1], ("x",))
    rates = noisy(kinetics, np.geomspace(0.01, 1e4, 40), RATES, "lognormal")
    return [
        Case("Van der Pol", oscillator, whole),
        Case("Van der Pol, x alone", oscillator, alone),
        Case("Robertson", kinetics, rates, "lognormal"),
    ]


def seconds_of_gradient(energy: Any, theta: Any) -> float:
    """The fastest of five gradients of one lane, after one."""
    energy.evaluate(theta[None])
    taken = []
    for _ in range(5):
        started = time.perf_counter()
        energy.evaluate(theta[None])
        taken.append(time.perf_counter() - started)
    return min(taken)


def energy_by_radau(case: Case, theta: Any) -> float:
    """−log density of the data at θ = parameters, initial state, standard deviations."""
    _, system, data, errors = case
    q, dim = system.n_parameters, system.dim
    states = solved(system, data.times, theta[:q], theta[q : q + dim])
    expected = states[:, [system.states.index(state) for state in data.states]]
    if errors == "lognormal":
        logs = norm(np.log(expected), theta[q + dim :]).logpdf(np.log(data.values))
        return float(np.log(data.values).sum() - logs.sum())
    return float(-norm(expected, theta[q + dim :]).logpdf(data.values).sum())


def found_with_sd(energy: Any, theta: Any, q: int) -> str:
    """The parameters with Laplace's standard deviations."""
    curvature = curvature_at(in_batches(energy.evaluate), theta, 1e-6 * np.maximum(np.abs(theta), 1e-6))
    if curvature is None:
        return ", ".join(f"{value:.6g}" for value in theta[:q])
    sds = np.sqrt((curvature.root**2).sum(axis=1))
    return ", ".join(f"{value:.6g} ± {sd:.2g}" for value, sd in zip(theta[:q], sds, strict=False))


def main(plan: Plan) -> None:
    """Print the table."""
    table = Table(plan.folder, "stiff", "data", "steps", "s of search", "found", "energy − exact", "ms a gradient")
    for case in cases()[2:] if plan.is_small else cases():
        likelihood = trajectory(method="sdirk4", errors=case.errors)
        for _ in range(2):
            started = time.perf_counter()
            energy, theta = likelihood.energy_and_start(case.data, case.system)
            seconds = time.perf_counter() - started
        apart = float(energy.evaluate(theta[None])[0][0]) - energy_by_radau(case, theta)
        found = found_with_sd(energy, theta, case.system.n_parameters)
        milliseconds = 1e3 * seconds_of_gradient(energy, theta)
        steps = energy.evaluate_with_path(theta[None])[2].shape[1] - 1
        table.row(case.name, steps, seconds, found, apart, milliseconds)
        if case.name == "Van der Pol":
            for divisions in DIVISIONS:
                table.row(*explicit_row(case, theta, divisions))


def explicit_row(case: Case, theta: Any, divisions: int) -> tuple[Any, ...]:
    """The same energy by equal rk4 steps, so many between two samples."""
    _, system, data, _ = case
    step = float(np.diff(data.times).max()) / divisions
    errors = trajectory().error_model(np.ones(system.dim), True, np.ones(system.dim, np.bool_))
    energy = trajectory_energy(
        equations_of(system), schedule_of(system, None, data.times), data.values, errors,
        Segments(np.zeros(1, np.int64), np.ones(system.dim), None), method="rk4", step=step, limit=1e6,
    )  # fmt: skip
    apart = float(energy.evaluate(theta[None])[0][0]) - energy_by_radau(case, theta)
    return f"{case.name}, rk4", divisions * (len(data) - 1), "–", "–", apart, 1e3 * seconds_of_gradient(energy, theta)
