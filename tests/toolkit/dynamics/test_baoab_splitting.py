"""BAOAB against closed forms: the exact law on N(0, 1), and what other splittings would give."""

import numpy as np
import pytest
from scipy.linalg import solve_discrete_lyapunov

from tests.support.laws import SIGMAS, deviation, gaussian, variance_deviation
from toolkit import Sampler, dynamics, sample, schedules

NORMAL, CHAINS = gaussian(1.0), 40_000
SWEEP = [(h, t, eta) for h in (0.1, 0.7, 1.5) for t in (0.25, 1.0, 4.0) for eta in (0.1, 0.5, 1.0)]


def ends(h, temperature, friction, *, noise=0.0, seed=11):
    """The last two positions of chains that start at N(0, T), each (chain,), when that start is forgotten."""
    sampler = Sampler(
        "baoab", (h,), (temperature,), dynamics=dynamics.baoab(friction=friction), gradient_noise=noise
    )  # fmt: skip
    slowest = np.abs(np.linalg.eigvals(step_matrix(h, friction))).max()
    n_steps = int(np.ceil(8.0 / (1.0 - slowest)))  # the start is forgotten as exp(−16)
    start = np.sqrt(temperature) * np.random.default_rng(seed).standard_normal((CHAINS, 1))
    run = sample(NORMAL, sampler, n_steps=n_steps, burn_in=n_steps - 2, n_chains=CHAINS, init=start, seed=seed)
    return run.draws[:, :, 0].T


def step_matrix(h, friction):
    """The step on N(0, 1) without its noise, as a matrix on (x, p)."""
    root = np.sqrt(h)
    kick, drift = np.array([[1.0, 0.0], [-root, 1.0]]), np.array([[1.0, 0.5 * root], [0.0, 1.0]])
    return drift @ np.diag([1.0, 1.0 - friction]) @ drift @ kick


def stationary(h, temperature, friction, noise=0.0):
    """Variance of x by the Lyapunov equation of the step."""
    matrix, root, keep = step_matrix(h, friction), np.sqrt(h), 1.0 - friction
    fresh = np.sqrt(temperature * (1.0 - keep**2)) * np.array([0.5 * root, 1.0])
    kicked = matrix @ np.array([0.0, -root * noise])  # noise in the gradient goes the way of the kick
    return solve_discrete_lyapunov(matrix, np.outer(fresh, fresh) + np.outer(kicked, kicked))[0, 0]


@pytest.mark.parametrize(("h", "temperature", "friction"), SWEEP)
def test_positions_have_the_variance_of_the_temperature(h, temperature, friction):
    """OBABO has T / (1 − h/4), a whole drift before the noise T / (1 − h/(4 − 2η))."""
    _, x = ends(h, temperature, friction)
    assert stationary(h, temperature, friction) == pytest.approx(temperature, rel=1e-9)
    assert variance_deviation(x, temperature) < SIGMAS
    if h >= 0.7:
        for wrong in (1.0 - h / 4.0, 1.0 - h / (4.0 - 2.0 * friction)):
            assert variance_deviation(x, temperature / wrong) > SIGMAS


@pytest.mark.parametrize(("h", "friction", "noise"), [(0.5, 0.2, 0.8), (1.0, 0.5, 1.0), (1.5, 1.0, 0.5)])
def test_gradient_noise_raises_the_variance_as_documented(h, friction, noise):
    law = 2.0 + h * noise**2 * (2.0 - friction) / (friction * (4.0 - h))
    assert stationary(h, 2.0, friction, noise) == pytest.approx(law, rel=1e-9)
    _, x = ends(h, 2.0, friction, noise=noise)
    assert variance_deviation(x, law) < SIGMAS
    assert variance_deviation(x, 2.0) > SIGMAS


def test_successive_positions_have_their_covariance():
    """E x x' = (M S)₀₀ with the law S of (x, p), which momenta left out or renewed too often would change."""
    h, t, eta = 1.5, 1.0, 0.2
    before, x = ends(h, t, eta)
    law = t * (step_matrix(h, eta) @ np.array([[1.0, 0.5 * np.sqrt(h)], [0.5 * np.sqrt(h), 1.0]]))[0, 0]
    error = np.sqrt((t**2 + law**2) / CHAINS)
    assert abs((before * x).mean() - law) < SIGMAS * error
    assert abs((before * x).mean() - t * (1.0 - h / 2.0)) > SIGMAS * error  # of friction 1


def test_without_temperature_it_descends():
    sampler = Sampler("baoab", (0.5,), dynamics=dynamics.baoab(friction=0.5), schedule=cold())
    run = sample(NORMAL, sampler, n_steps=200, n_chains=8, init=np.ones(1), seed=1)
    assert np.abs(run.draws[:, -1]).max() < 1e-12


def test_with_friction_1_it_is_the_method_of_leimkuhler_and_matthews():
    """x' − (1 − h/2) x = √(hT)/2 (ξ + ξ'): noise that follows itself by one step, and not by two."""
    h, t, n = 0.8, 1.7, 60
    sampler = Sampler("baoab", (h,), (t,), dynamics=dynamics.baoab(friction=1.0))
    x = sample(NORMAL, sampler, n_steps=n, n_chains=4_000, init=np.zeros(1), seed=5).draws[:, :, 0]
    noise = (x[:, 1:] - (1.0 - 0.5 * h) * x[:, :-1]) / (0.5 * np.sqrt(h * t))
    for lag, law, wrong in ((0, 2.0, 1.0), (1, 1.0, 0.0), (2, 0.0, 1.0)):
        products = (noise[:, : n - 1 - lag] * noise[:, lag:]).mean(axis=1)
        assert deviation(products, law) < SIGMAS
        assert deviation(products, wrong) > SIGMAS


def cold():
    """A schedule at temperature 0."""
    return schedules.custom(np.ones_like, temperature=np.zeros_like, keep=lambda steps: steps >= 0)
