"""pSGLD: its drift correction against exact laws, what the draws are without it, and what it costs."""

import numpy as np
import pytest
from numba import types
from scipy.integrate import quad

from tests.support.laws import SIGMAS, deviation, evaluations_per_step, gaussian, variance_deviation
from toolkit import sample, samplers
from toolkit._compiler import signatures
from toolkit._compiler.decorators import compile_part
from toolkit._engine import phases

NORMAL = gaussian(1.0)
CHAINS = 2048


def run_psgld(target, temperature, covariance, seed, *, step_size=0.02, **options):
    """A run from N(0, T · covariance), of which every 20th step of the last two thirds is kept."""
    rng = np.random.default_rng(seed)
    start = np.sqrt(temperature) * rng.multivariate_normal(np.zeros(len(covariance)), covariance, size=CHAINS)
    sampler = samplers.psgld(step_size, temperature=temperature, **options)
    return sample(target, sampler, n_steps=6000, burn_in=2000, thin=20, n_chains=CHAINS, init=start, seed=seed)


def squares(temperature, seed, **options):
    """Mean of x²/T of every chain over its draws of N(0, 1)."""
    run = run_psgld(NORMAL, temperature, [[1.0]], seed, **options)
    return (run.draws[:, :, 0] ** 2).mean(axis=1) / temperature


def test_without_memory_the_correction_is_exact_and_without_it_the_law_is_another():
    """α = 0, λ = 1: G = 1/(1 + |x|), so that the law is exp(−x²/2)/G without Γ, and exp(−x²/2) with it.

    Both to some hGH/2, which is at most 0.01; the next orders get as much again.
    """
    mass, second = (quad(lambda x, k=k: (1 + x) * x**k * np.exp(-0.5 * x * x), 0, 30)[0] for k in (0, 2))
    uncorrected = second / mass
    assert uncorrected == pytest.approx(1.4438, abs=1e-4)
    right = squares(1.0, 41, decay=0.0, floor=1.0)
    plain = squares(1.0, 41, decay=0.0, floor=1.0, drift_correction=False)
    assert deviation(right, 1.0, slack=0.02) < SIGMAS
    assert deviation(plain, uncorrected, slack=0.02 * uncorrected) < SIGMAS
    assert deviation(right, uncorrected, slack=0.02 * uncorrected) > SIGMAS
    assert deviation(plain, 1.0, slack=0.02) > SIGMAS


@pytest.mark.parametrize(("temperature", "none", "printed"), [(0.25, 0.16, 0.15), (1.0, 0.27, 0.25), (4.0, 0.41, 0.39)])
def test_with_memory_the_correction_holds_the_variance(temperature, none, printed):
    """α = 0.97, λ = 1: too wide by the share ``none`` without Γ, and hardly less with Γ as printed."""
    options = {"decay": 0.97, "floor": 1.0}
    right = squares(temperature, 42, **options)
    assert deviation(right, 1.0, slack=0.02) < SIGMAS
    for wrong in (none, printed):
        assert deviation(right, 1.0 + wrong, slack=0.02) > SIGMAS
    plain = squares(temperature, 42, drift_correction=False, **options)
    assert deviation(plain, 1.0 + none, slack=0.02) < SIGMAS


@pytest.mark.parametrize("temperature", [0.25, 4.0])
def test_uncorrected_draws_are_right_when_weighted_by_the_step(temperature):
    """What Γ mends: the law without it is the target's over the mean of G given x, so weights G bring it back."""
    rng, n = np.random.default_rng(43), 512
    sampler = samplers.psgld(0.02, decay=0.97, floor=1.0, drift_correction=False, temperature=temperature)
    start = np.sqrt(temperature) * rng.standard_normal((n, 1))
    run = sample(NORMAL, sampler, n_steps=4000, n_chains=n, init=start, seed=43, trace_every=1)
    square = run.draws[:, 1000:-1, 0] ** 2 / temperature
    weight = run.trace.fields["scale[0]"][:, 0, 1001:]  # a step's G comes from the position that the step before left
    weight = weight / weight.mean()
    weighted, plain = (weight * (square - 1.0)).mean(axis=1), square.mean(axis=1)
    assert deviation(weighted, 0.0, slack=0.02) < SIGMAS
    assert deviation(plain, 1.0, slack=0.02) > SIGMAS
    assert deviation((square / weight).mean(axis=1) / (1.0 / weight).mean(), 1.0, slack=0.02) > SIGMAS


@pytest.mark.parametrize("temperature", [0.25, 1.0, 4.0])
def test_a_frozen_preconditioner_is_langevin(temperature):
    """λ = 10⁴ ≫ √V: G = 1/λ to 2·10⁻⁴, so the variance is T/(1 − h/(2λ)), as for Langevin with h/λ."""
    h, floor, n = 2000.0, 1e4, 40_000
    law = temperature / (1.0 - 0.5 * h / floor)
    start = np.sqrt(law) * np.random.default_rng(44).standard_normal((n, 1))
    sampler = samplers.psgld(h, decay=0.99, floor=floor, temperature=temperature)
    draws = sample(NORMAL, sampler, n_steps=40, thin=40, n_chains=n, init=start, seed=44).draws.ravel()
    assert variance_deviation(draws, law) < SIGMAS
    for wrong in (temperature, temperature / (1.0 - h / floor), 0.5 * law):
        assert variance_deviation(draws, wrong) > SIGMAS


def test_two_correlated_coordinates():
    """Correlation 0.8, α = 0.99, λ = 0.1: 5 % too narrow, since a G is taken to depend on its own coordinate alone.

    Without Γ the variance is 29 % too wide.
    """
    covariance = np.array([[1.0, 0.8], [0.8, 1.0]])
    target, options = gaussian(np.linalg.inv(covariance)), {"step_size": 0.01, "decay": 0.99, "floor": 0.1}
    right, plain = (
        run_psgld(target, 1.0, covariance, 45, drift_correction=corrects, **options).draws for corrects in (True, False)
    )
    for i, j in ((0, 0), (1, 1), (0, 1)):
        law, slack = covariance[i, j], 0.07
        assert deviation((right[:, :, i] * right[:, :, j]).mean(axis=1), law, slack) < SIGMAS
        assert deviation((plain[:, :, i] * plain[:, :, j]).mean(axis=1), law, slack) > SIGMAS


def estimates(precision, seed, n=20_000):
    """The estimate of the Hessian's diagonal, (dim, lane), at ``n`` places; and the signs of its probe."""
    dim = len(precision)
    rng = np.random.default_rng(seed)
    position, noise = rng.standard_normal((2, dim, n))
    probe, sizes = np.zeros((dim, n)), rng.uniform(1e-4, 1e-1, n)
    matrix, floats = signatures.MATRIX, signatures.FLOATS
    compile_part(set_probe, types.void(matrix, matrix, matrix, floats, floats))(
        position, probe, noise, sizes, np.ones(dim)
    )
    away = np.abs(probe - position)
    np.testing.assert_allclose(away, np.broadcast_to(phases.PROBE_LENGTH * sizes, away.shape), rtol=1e-7)
    gradient, curvature = precision @ position, precision @ probe
    compile_part(divide_differences, types.void(matrix, matrix, matrix, matrix))(position, probe, gradient, curvature)
    return curvature


def set_probe(position, probe, noise, sizes, scale):
    phases.set_probe(position, probe, noise, sizes, scale)


def divide_differences(position, probe, gradient, curvature):
    phases.divide_differences(position, probe, gradient, curvature)


def test_the_curvature_is_exact_for_a_diagonal_hessian_and_unbiased_for_any():
    diagonal = np.array([0.5, 2.0, -7.0])
    np.testing.assert_allclose(estimates(np.diag(diagonal), 46), np.tile(diagonal[:, None], 20_000), rtol=1e-6)
    precision = np.array([[3.0, 1.0, -0.5], [1.0, 2.0, 0.8], [-0.5, 0.8, 1.0]])
    curvature = estimates(precision, 47)
    for d in range(3):
        assert deviation(curvature[d], precision[d, d]) < SIGMAS
        assert deviation(curvature[d], precision[d].sum()) > SIGMAS  # signs all alike
        others = np.sqrt((precision[d] ** 2).sum() - precision[d, d] ** 2)
        assert curvature[d].std() == pytest.approx(others, rel=0.05)


def test_cost():
    assert evaluations_per_step(samplers.psgld(0.1)) == (2.0, 2.0)
    assert evaluations_per_step(samplers.psgld(0.1, drift_correction=False)) == (1.0, 1.0)


def test_a_start_in_a_mode_is_not_thrown_far():
    """V begins at T |H|, what g² is on average; begun at g², which is 0 in a mode, a first step would be √(2h/λ)."""
    from targets import mixtures

    start = {"n_steps": 200, "thin": 200, "n_chains": 4000, "seed": 31, "init": [0.0]}
    far = sample(mixtures.gaussian_mixture([[0.0]], 1.0), samplers.psgld(0.02, drift_correction=False), **start)
    near = sample(mixtures.gaussian_mixture([[0.0]], 1.0), samplers.psgld(0.02), **start)
    assert far.draws.std() > 30.0
    assert 0.8 < near.draws.std() < 1.2
