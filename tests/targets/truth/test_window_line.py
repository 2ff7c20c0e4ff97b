"""Truth on a line by quadrature: against closed forms of a Gaussian and a pair, and what it refuses."""

import numpy as np
import pytest
from scipy.stats import chi2, norm

from targets import mixtures
from targets.truth.window import line_truth
from tests.support.laws import SIGMAS, deviation
from toolkit import Target

SHARES = np.linspace(0.01, 0.99, 99)


def shifted_block(position, energy, gradient, parameters, scratch):
    """½ x² + offset + slope |x|."""
    for lane in range(energy.size):
        x = position[0, lane]
        energy[lane] = 0.5 * x * x + parameters[0] + parameters[1] * abs(x)
        gradient[0, lane] = x + parameters[1] * (1.0 if x > 0.0 else -1.0)


def shifted(offset, slope=0.0):
    return Target("shifted", 1, shifted_block, np.array([offset, slope]))


@pytest.mark.parametrize("offset", [-1e5, 0.0, 1e5])
def test_a_normal_law_at_any_level_of_energy(offset):
    truth = line_truth(shifted(offset), -9.0, 9.0, [0.0])
    assert truth.log_normaliser == pytest.approx(0.5 * np.log(2.0 * np.pi) - offset, abs=1e-10)
    assert truth.mean[0] == pytest.approx(0.0, abs=1e-10)
    assert truth.covariance[0, 0] == pytest.approx(1.0, abs=1e-10)
    below = chi2.cdf(2.0 * (truth.energy_quantiles(SHARES) - offset), 1)
    assert np.abs(below - SHARES).max() < 1e-5
    edges = np.array([-20.0, -8.0, -1.0, 0.3, 2.0])
    np.testing.assert_allclose(truth.cell_masses(edges), np.diff(norm.cdf(edges)), atol=1e-10)


def test_a_slope_that_jumps():
    """∫ exp(−½x² − 2|x|) dx = 2 √2π e² Φ(−2)."""
    law = np.log(2.0 * np.sqrt(2.0 * np.pi)) + 2.0 + norm.logcdf(-2.0)
    assert line_truth(shifted(0.0, 2.0), -9.0, 9.0, [0.1]).log_normaliser == pytest.approx(law, abs=1e-8)


def test_weights_of_modes_and_memberships():
    pair = mixtures.unequal_pair()
    truth = line_truth(pair, -15.0, 13.0, [-6.0, 4.0])
    left = 0.4 * norm.cdf(5.0) + 0.6 * norm.cdf(-5.0)  # the border is half-way, at −1
    np.testing.assert_allclose(truth.modes.weights, [left, 1.0 - left], atol=1e-9)
    np.testing.assert_array_equal(truth.memberships([[-2.0], [0.0]]), np.eye(2))
    by_label = line_truth(pair, -15.0, 13.0, [-6.0, 4.0], label=lambda x: (x[:, 0] > 3.7).astype(int))
    assert by_label.modes.weights[1] == pytest.approx(0.6 * norm.cdf(0.3), abs=1e-8)


def test_a_mode_at_a_centre_is_met_however_narrow():
    pair = mixtures.gaussian_mixture([[0.0], [3.0]], [1.0, 1e-10])
    truth = line_truth(pair, -10.0, 13.0, [0.0, 3.0])
    assert truth.log_normaliser == pytest.approx(0.0, abs=1e-8)
    assert truth.modes.weights[0] == pytest.approx(0.5 * norm.cdf(1.5), abs=1e-8)
    assert line_truth(pair, -10.0, 13.0, [0.0]).log_normaliser == pytest.approx(
        -np.log(2.0), abs=1e-6
    )  # not told of it


def test_draws_under_the_envelope_have_the_law():
    truth = line_truth(shifted(0.0, 2.0), -9.0, 9.0, [0.0])
    draws = truth.independent_draws(100_000, seed=3)[:, 0]
    mean = 2.0 * np.exp(norm.logpdf(2.0) - norm.logcdf(-2.0)) / 2.0 - 2.0  # E|x| of a normal about −2 above 0
    assert deviation(np.abs(draws), mean) < SIGMAS
    assert deviation(np.abs(1.02 * draws), mean) > SIGMAS


def test_a_walled_law_may_end_at_its_walls():
    truth = line_truth(shifted(0.0), 0.0, 1.0, [0.0], has_walls=True)
    assert truth.log_normaliser == pytest.approx(np.log(np.sqrt(2.0 * np.pi) * (norm.cdf(1.0) - 0.5)), abs=1e-10)
    assert (truth.independent_draws(1000, seed=1) >= 0.0).all()


def test_what_is_refused():
    with pytest.raises(
        ValueError, match=r"window must hold the mass of 'shifted', but at the rim of .* 3\.4e-04 of the"
    ):
        line_truth(shifted(0.0), -4.0, 9.0, [0.0]).mean  # noqa: B018
    with pytest.raises(ValueError, match=r"window must be low < high for each of 1 coordinates, got \[1\.0, 0\.0\]"):
        line_truth(shifted(0.0), 1.0, 0.0, [0.0])
    with pytest.raises(ValueError, match="target must have dimension 1, got 2"):
        line_truth(mixtures.cosine25(), 0.0, 1.0, [0.0])
    with pytest.raises(TypeError, match="target must be a Target, got 3 of type int"):
        line_truth(3, 0.0, 1.0, [0.0])
    with pytest.raises(TypeError, match="x_edges must be an array of real numbers, got 'here'"):
        line_truth(shifted(0.0), -9.0, 9.0, [0.0]).cell_masses("here")
    with pytest.raises(ValueError, match=r"probabilities must be ≥ 0 and ≤ 1, got 1\.5"):
        line_truth(shifted(0.0), -9.0, 9.0, [0.0]).energy_quantiles(1.5)
    with pytest.raises(ValueError, match="y_edges must be left out in one dimension"):
        line_truth(shifted(0.0), -9.0, 9.0, [0.0]).cell_masses([0.0, 1.0], [0.0, 1.0])
    with pytest.raises(ValueError, match="label must give one of 1 modes"):
        line_truth(shifted(0.0), -9.0, 9.0, [0.0], label=lambda x: np.ones(len(x), int)).mean  # noqa: B018
