"""Truth in the plane by quadrature: against closed forms, another quadrature, and what it refuses."""

import numpy as np
import pytest
from scipy.stats import chi2, norm

from targets import mixtures
from targets.truth.cells import cell_integrals
from targets.truth.window import plane_truth
from tests.support.laws import SIGMAS, deviation
from toolkit import Target

COVARIANCE = np.array([[1.0, 0.6], [0.6, 0.5]])
MEAN = np.array([2.0, -1.0])


def truth_of(**arguments):
    return plane_truth(mixtures.gaussian_mixture([MEAN], COVARIANCE), (-7.0, 11.0, -8.0, 6.0), [MEAN], **arguments)


def constant_block(position, energy, gradient, parameters, scratch):
    for lane in range(energy.size):
        energy[lane], gradient[0, lane], gradient[1, lane] = parameters[0], 0.0, 0.0


def nan_block(position, energy, gradient, parameters, scratch):
    for lane in range(energy.size):
        energy[lane], gradient[0, lane], gradient[1, lane] = np.nan, 0.0, 0.0


@pytest.mark.slow
def test_a_correlated_gaussian():
    truth = truth_of()
    assert truth.log_normaliser == pytest.approx(0.0, abs=1e-8)
    np.testing.assert_allclose(truth.mean, MEAN, atol=1e-8)
    np.testing.assert_allclose(truth.covariance, COVARIANCE, atol=1e-7)
    shares = np.linspace(0.01, 0.99, 99)
    least = np.log(2.0 * np.pi) + 0.5 * np.log(np.linalg.det(COVARIANCE))
    below = chi2.cdf(2.0 * (truth.energy_quantiles(shares) - least), 2)
    assert np.abs(below - shares).max() < 1e-4


def test_cells_against_the_triangles_of_another_quadrature():
    target = mixtures.cosine25()
    edges = np.linspace(-1.0, 0.7, 12)
    square = 12.0 * np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    other = cell_integrals(target, [square], edges, edges, offset=-target.truth.log_normaliser)
    assert np.abs(target.truth.cell_masses(edges, edges) - other).sum() < 1e-6


def test_weights_on_both_sides_of_a_slanted_border():
    """The border half-way between two centres cuts N(μ, Σ) at a distance known in closed form."""
    centres = np.array([MEAN, MEAN + np.array([0.5, 0.8])])
    truth = plane_truth(mixtures.gaussian_mixture([MEAN], COVARIANCE), (-7.0, 11.0, -8.0, 6.0), centres)
    way = centres[1] - centres[0]
    share = norm.cdf(0.5 * way @ way / np.sqrt(way @ COVARIANCE @ way))
    np.testing.assert_allclose(truth.modes.weights, [share, 1.0 - share], atol=1e-6)
    draws = truth.independent_draws(100_000, seed=5)
    assert deviation(truth.memberships(draws)[:, 0], share) < SIGMAS
    for d in range(2):
        assert deviation(draws[:, d], MEAN[d]) < SIGMAS
        assert deviation(draws[:, d], MEAN[d] + 0.02) > SIGMAS


def test_what_lies_outside_counts_for_nothing():
    """A quarter of a disc, by a label of −1: area π/4, centroid 4/(3π)."""
    flat = Target("flat", 2, constant_block, np.array([-2e4]))

    def label(points):
        return np.where((points**2).sum(axis=1) < 1.0, 0, -1)

    truth = plane_truth(flat, (0.0, 1.0, 0.0, 1.0), [[0.5, 0.5]], label=label, has_walls=True)
    assert truth.log_normaliser == pytest.approx(2e4 + np.log(np.pi / 4.0), abs=1e-5)
    np.testing.assert_allclose(truth.mean, 4.0 / (3.0 * np.pi), atol=1e-5)
    assert truth.cell_masses([0.0, 0.6], [0.0, 0.6]).item() == pytest.approx(0.36 * 4.0 / np.pi, abs=1e-5)
    assert ((truth.independent_draws(2000, seed=2) ** 2).sum(axis=1) < 1.0).all()


@pytest.mark.cases(1)
@pytest.mark.parametrize("variance", [1e-4, 1e-8, 1e-12])
def test_a_mode_at_a_centre_is_met_however_narrow(variance):
    """One of 4·10⁻⁸ of the window's width; without a look at the centres its mass is missed and log Z is −log 2."""
    centres = np.array([[0.0, 0.0], [3.0, 0.1]])
    truth = plane_truth(mixtures.gaussian_mixture(centres, [1.0, variance]), (-10.0, 13.0, -10.0, 10.0), centres)
    assert truth.log_normaliser == pytest.approx(0.0, abs=1e-8)
    near = norm.cdf(0.5 * np.sqrt(9.01))
    np.testing.assert_allclose(truth.modes.weights, [0.5 * near, 1.0 - 0.5 * near], atol=1e-6)
    half = 8.0 * np.sqrt(variance)
    cell = truth.cell_masses([3.0 - half, 3.0 + half], [0.1 - half, 0.1 + half]).item()
    thin = truth.cell_masses([3.0 - 100.0 * half, 3.0 + 100.0 * half], [0.0, 1.0]).item()  # long as the window's share
    assert 0.499 < thin < 0.501 + half**0.5
    left, right = truth.cell_masses([-10.0, 3.0 - 0.1 * half, 13.0], [-10.0, 10.0])[:, 0]
    assert left == pytest.approx(0.5 * norm.cdf(3.0) + 0.5 * norm.cdf(-0.8), abs=half)  # an edge beside its centre
    assert left + right == pytest.approx(1.0, abs=1e-12)
    assert cell == pytest.approx(0.5 + 2.0 * half**2 * np.exp(-4.505) / (2.0 * np.pi), abs=1e-5)


def test_draws_may_be_given():
    truth = truth_of(draw=lambda n, seed: np.full((n, 2), float(seed)))
    np.testing.assert_array_equal(truth.independent_draws(2, seed=4), np.full((2, 2), 4.0))


def test_what_is_refused():
    gaussian = mixtures.gaussian_mixture([MEAN], COVARIANCE)
    with pytest.raises(ValueError, match="window must hold the mass of 'gaussian_mixture"):
        plane_truth(gaussian, (1.0, 11.0, -8.0, 6.0), [MEAN]).mean  # noqa: B018
    with pytest.raises(ValueError, match=r"centres must have shape \(modes, 2\), got \(2,\)"):
        plane_truth(gaussian, (-7.0, 11.0, -8.0, 6.0), MEAN)
    with pytest.raises(ValueError, match="window must be low < high for each of 2 coordinates"):
        plane_truth(gaussian, (-7.0, 11.0, -8.0), [MEAN])
    with pytest.raises(TypeError, match="window must be a sequence of numbers, got 3 of type int"):
        plane_truth(gaussian, 3, [MEAN])
    with pytest.raises(TypeError, match="label must be None or a function, got 3"):
        truth_of(label=3)
    with pytest.raises(ValueError, match=r"y_edges must be given in 2 dimensions, got None"):
        truth_of().cell_masses([0.0, 1.0])
    with pytest.raises(ValueError, match="target must have dimension 2, got 1"):
        plane_truth(mixtures.unequal_pair(), (0.0, 1.0, 0.0, 1.0), [[0.0, 0.0]])
    lost = Target("lost", 2, nan_block)
    with pytest.raises(ValueError, match="the energy of 'lost' must not be nan, got it at"):
        plane_truth(lost, (0.0, 1.0, 0.0, 1.0), [[0.0, 0.0]], has_walls=True).mean  # noqa: B018
