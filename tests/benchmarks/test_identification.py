"""What is compared in the table of identification: NumPy's energies are ours, and what tells wrong peers."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from benchmarks.identification import numpy_energies as by_numpy
from benchmarks.identification.agreement import check_squares, checked
from benchmarks.identification.cases import Case
from benchmarks.identification.fits import TRUE, error
from benchmarks.peers.host import PeerError
from sysid import identify, likelihoods, systems
from sysid.data import simulate

RNG = np.random.default_rng(5)


@pytest.mark.parametrize("name", ["lorenz", "lotka_volterra"])
def test_equations_in_numpy_are_those_of_the_system(name):
    system = systems.catalogue()[name]
    data = simulate(system, np.linspace(0.0, 1.0, 40), seed=0)
    features, known = by_numpy.EQUATIONS[name](data.values)
    np.testing.assert_allclose(features @ system.usual + known, data.velocities, rtol=1e-9, atol=1e-9)
    problem = identify(data, system, likelihood=likelihoods.derivative(noise="mean"))
    numbers = {"features": features, "rest": data.velocities - known, "batch_size": 7}
    found = checked(Case("derivative", name, "", problem, ("windows", numbers), {}), None)
    assert found.allowed == ["NumPy"]
    assert checked(Case("derivative", name, "", problem, ("independent", numbers), {}), None).allowed == ["NumPy"]
    wrong = numbers | {"rest": numbers["rest"] + 1e-3}
    refused = checked(Case("derivative", name, "", problem, ("independent", wrong), {}), None)
    assert refused.allowed == []
    assert "NumPy's gradient is off by" in refused.remarks[0]


@pytest.mark.parametrize("kind", ["windows", "independent"])
def test_minibatches_in_numpy_are_unbiased(kind):
    features, rest = RNG.standard_normal((30, 2, 3)), RNG.standard_normal((30, 2))
    drawn, exact = by_numpy.ENERGIES[kind](features, rest, 5)
    x, rng = np.tile(RNG.standard_normal(3), (20_000, 1)), np.random.default_rng(1)
    gradients = drawn(x, rng)
    error_of_mean = gradients.std(axis=0) / np.sqrt(len(x))
    assert (np.abs(gradients.mean(axis=0) - exact(x[:1])[0]) < 5.0 * error_of_mean).all()
    assert (error_of_mean > 0.0).all()


@pytest.mark.parametrize("name", ["lorenz", "lotka_volterra"])
def test_sensitivities_are_the_slopes_of_solutions(name):
    system, times = systems.catalogue()[name], np.linspace(0.0, 0.5, 6)
    values, point = RNG.standard_normal((6, system.dim)), np.concatenate([system.usual, system.start])

    def energy(at):
        p, x = at[: system.n_parameters], at[system.n_parameters :]
        found = solve_ivp(lambda t, y: system.rhs(t, y, p), (0.0, 0.5), x, "DOP853", times, rtol=1e-12, atol=1e-12)
        return 0.5 * (((found.y.T - values) / 0.7) ** 2).sum()

    _, exact = by_numpy.trajectory(name, times, values, 0.7)
    moves = np.diag(1e-4 * point)
    slopes = [(energy(point + move) - energy(point - move)) / (2.0 * move.sum()) for move in moves]
    np.testing.assert_allclose(exact(point[None])[0], slopes, rtol=1e-5, atol=1e-5 * np.abs(slopes).max())


def test_draws_that_spread_wrongly_are_told():
    """NumPy's own have the law; with noise too small by a tenth they have not."""
    root = RNG.standard_normal((3, 3))
    precision, n = root @ root.T + np.eye(3), 4000
    case = SimpleNamespace(numpy=("quadratic", {"precision": precision}))
    gradient, _ = by_numpy.quadratic(precision, np.zeros(3))
    squares = (by_numpy.sgld(gradient, np.zeros((n, 3)), 0.05)(25) ** 2).mean(axis=0)
    check_squares(case, 0.05, n, {"steps": 25, "squares": squares})
    with pytest.raises(PeerError, match="standard errors off"):
        check_squares(case, 0.05, n, {"steps": 25, "squares": 0.81 * squares})
    with pytest.raises(PeerError, match="standard errors off"):
        check_squares(case, 0.05, n, {"steps": 12, "squares": squares})


def test_the_error_of_the_truth_is_0_and_of_nothing_1():
    terms = ["1", "x", "y", "z", "xx", "xy", "xz", "yy", "yz", "zz"]
    assert error([TRUE.get(name, (0, 0, 0)) for name in terms]) == 0.0
    assert error(np.zeros((10, 3))) == 1.0
