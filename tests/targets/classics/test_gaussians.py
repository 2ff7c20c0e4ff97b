"""Correlated and badly scaled Gaussians: formulas, SciPy's normal law, draws by χ²."""

import numpy as np
import pytest
from scipy.stats import chi2, multivariate_normal

from targets.classics.gaussians import badly_scaled_gaussian, correlated_gaussian
from tests.support.oracles import agrees, held

RNG = np.random.default_rng(72)
TARGETS = [
    correlated_gaussian(),
    correlated_gaussian(dim=1),
    correlated_gaussian(dim=64, correlation=-0.6),
    correlated_gaussian(dim=3, correlation=0.0),
    badly_scaled_gaussian(),
    badly_scaled_gaussian(dim=1),
    badly_scaled_gaussian(dim=64, condition=1e6),
]


def covariance_of(target):
    """Σ anew, from the definition."""
    if target.name.startswith("correlated"):
        rho = float(target.name.split("(")[1].split(")")[0])
        return np.array([[rho ** abs(i - j) for j in range(target.dim)] for i in range(target.dim)])
    condition = float(target.name.split("(")[1].split(")")[0])
    return np.diag([condition ** (-i / max(target.dim - 1, 1)) for i in range(target.dim)])


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
def test_energy_gradient_and_normaliser_are_those_of_the_normal_law(target):
    covariance = covariance_of(target)
    precision = np.linalg.inv(covariance)
    points = np.vstack([RNG.normal(size=(100, target.dim)), np.full((1, target.dim), 1e6), np.eye(target.dim) * -1e6])
    agrees(target, lambda x: 0.5 * ((x @ precision) * x).sum(axis=1), points, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(target.truth.covariance, covariance, rtol=1e-12)
    peak = multivariate_normal(np.zeros(target.dim), covariance).logpdf(np.zeros(target.dim))
    assert target.truth.log_normaliser == pytest.approx(-peak, rel=1e-10)
    levels = np.array([0.001, 0.5, 0.999])
    np.testing.assert_allclose(chi2.cdf(2 * target.truth.energy_quantiles(levels), target.dim), levels, rtol=1e-10)


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
def test_draws_agree_with_cells_energies_moments_and_modes(target):
    deviations = np.sqrt(np.diag(covariance_of(target)))[:2]
    held(target, [np.linspace(-3 * s, 3 * s, 25) for s in deviations])


@pytest.mark.parametrize("correlation", [0.95, -0.3, 0.9999])
def test_cells_against_scipy(correlation):
    target = correlated_gaussian(dim=3, correlation=correlation)
    law = multivariate_normal([0, 0], [[1, correlation], [correlation, 1]])
    edges = np.array([-0.7, 0.4, 0.9]), np.array([-2.0, 0.1, 0.5])
    below = np.array([[law.cdf([x, y]) for y in edges[1]] for x in edges[0]])
    exact = np.diff(np.diff(below, axis=0), axis=1)
    np.testing.assert_allclose(target.truth.cell_masses(*edges), exact, atol=1e-6)
    total = target.truth.cell_masses([-50.0, 0.0, 50.0], [-50.0, 0.0, 50.0])
    quarter = 0.25 + np.arcsin(correlation) / (2 * np.pi)  # Sheppard's
    np.testing.assert_allclose(total, [[quarter, 0.5 - quarter], [0.5 - quarter, quarter]], atol=1e-9)


def test_condition_number_is_what_was_asked_for():
    assert np.linalg.cond(badly_scaled_gaussian(dim=5, condition=300.0).truth.covariance) == pytest.approx(300.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: correlated_gaussian(dim=0), "^dim must be ≥ 1 and < 131072, got 0$"),
        (lambda: correlated_gaussian(correlation=1.0), r"^correlation must be finite and > -1 and < 1, got 1\.0$"),
        (lambda: correlated_gaussian(correlation=-1), r"^correlation must be finite and > -1 and < 1, got -1$"),
        (lambda: badly_scaled_gaussian(condition=0.5), r"^condition must be finite and ≥ 1, got 0\.5$"),
        (lambda: correlated_gaussian(dim=1).truth.cell_masses([0, 1], [0, 1]), "^y_edges must be left out in one"),
        (lambda: correlated_gaussian().truth.cell_masses([0, 1]), "^y_edges must be given in 2 dimensions, got None$"),
    ],
)
def test_bad_numbers_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
