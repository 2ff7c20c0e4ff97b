"""Modes and curvatures against Gaussians in closed form and a density with a known mode."""

import math
import warnings

import numpy as np
import pytest

from sysid.modes.laplace import laplace
from targets.classics.curved import banana
from tests.support.laws import gaussian
from toolkit.problem.definition import Target

RNG = np.random.default_rng(5)


def log_gamma_block(position, energy, gradient, parameters, scratch):
    """U = Σ_d a_d (eˣ − x), infinite above 3: of mode 0 and curvature a."""
    for lane in range(energy.size):
        energy[lane] = 0.0
        for d in range(position.shape[0]):
            x, a = position[d, lane], parameters[d]
            energy[lane] += a * (math.exp(x) - x) if x < 3.0 else math.inf
            gradient[d, lane] = a * (math.exp(x) - 1.0) if x < 3.0 else 0.0


def flat_block(position, energy, gradient, parameters, scratch):
    """½ x₀², whatever x₁."""
    for lane in range(energy.size):
        energy[lane] = 0.5 * position[0, lane] ** 2
        gradient[0, lane], gradient[1, lane] = position[0, lane], 0.0


@pytest.mark.parametrize("condition", [1.0, 1e4, 1e9])
def test_a_gaussian_is_its_own_laplace(condition):
    basis = np.linalg.qr(RNG.standard_normal((6, 6)))[0]
    precision = (basis * np.geomspace(1.0, condition, 6)) @ basis.T
    found = laplace(gaussian(0.5 * (precision + precision.T)), RNG.standard_normal(6) * 30.0)
    covariance = (basis / np.geomspace(1.0, condition, 6)) @ basis.T
    assert np.abs(found.position).max() < 1e-3
    # The gradient's rounding, 1e-16 × position, over differences of 1e-3 of the narrowest deviation.
    whitened = np.linalg.solve(np.linalg.cholesky(covariance), found.root)
    assert np.abs(whitened @ whitened.T - np.eye(6)).max() < 1e-5 * max(1.0, condition / 1e6)
    assert np.allclose(found.root, np.tril(found.root))
    assert (np.diag(found.root) > 0.0).all()


@pytest.mark.parametrize("start", [-40.0, -1.0, 2.99])
def test_mode_and_curvature_of_a_skewed_density_beside_a_wall(start):
    curvature = np.array([0.01, 1.0, 1e4])
    target = Target("log gamma", 3, log_gamma_block, curvature)
    found = laplace(target, np.full(3, start))
    assert np.abs(found.position * np.sqrt(curvature)).max() < 1e-3
    assert np.abs(found.root * np.sqrt(curvature)[:, None] - np.eye(3)).max() < 2e-3


def test_the_mode_is_sought_where_parameters_are_allowed():
    target = gaussian(np.diag([1.0, 4.0]))
    found = laplace(target, [3.0, 3.0], contains=lambda points: points[:, 0] > 1.0)
    assert found.position[0] > 1.0
    with pytest.raises(ValueError, match="start must lie where parameters are allowed"):
        laplace(target, [0.0, 3.0], contains=lambda points: points[:, 0] > 1.0)


def test_a_flat_direction_is_warned_of_and_a_curved_one_is_not():
    with pytest.warns(UserWarning, match=r"1 of 2 directions .* along coordinate 1"):
        laplace(Target("flat", 2, flat_block), [1.0, 1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        laplace(gaussian(np.diag([1.0, 1e-6])), [1.0, 1.0])


def test_a_curved_valley_is_followed_to_its_end():
    target = banana()
    found = laplace(target, np.array([15.0, 9.0]))
    assert np.abs(target.evaluate(found.position[None])[1]).max() < 1e-4


def test_wrong_arguments_are_named():
    target = Target("log gamma", 1, log_gamma_block, np.ones(1))
    with pytest.raises(ValueError, match="start must have a finite energy, got inf"):
        laplace(target, [5.0])
    with pytest.raises(ValueError, match=r"start must have shape \(1,\), got \(2,\)"):
        laplace(target, [0.0, 0.0])
    with pytest.raises(TypeError, match="target must be a Target"):
        laplace("target", [0.0])
