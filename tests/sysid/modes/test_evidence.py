"""The evidence: against closed forms and quadrature."""

import math

import numpy as np
import pytest
from scipy import stats

from sysid import Series, identify, libraries, likelihoods, model_of, priors
from tests.sysid.modes.test_search import aliased

TIMES = np.linspace(0.0, 4.0, 41)
LAWS = {
    "gaussian": priors.gaussian(0.3, 1.2),
    "lognormal": priors.lognormal(0.2, 0.4),
    "laplace": priors.laplace(-0.5, 0.7),
    "mixture": priors.spike_and_slab(0.1, 2.0, inclusion=0.3),
    "horseshoe": priors.horseshoe(0.5),
}


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_densities_of_priors_are_normalised(law):
    """Quadrature of exp(−energy − constant), the energy as samplers see it, with one datum that tells nothing."""
    problem = one_coefficient(law, noise=1e9)
    plain = one_coefficient(priors.gaussian(0.0, 1e12), noise=1e9)
    grid = np.concatenate([-np.geomspace(1e4, 1e-9, 40_000), np.geomspace(1e-9, 1e4, 40_000)])
    positions = np.log(grid[grid > 0.0]) if law.is_positive else grid
    energy = energies(problem, positions) - energies(plain, positions)
    assert np.trapezoid(np.exp(-energy - law.constant), positions) == pytest.approx(1.0, abs=2e-3)


def one_coefficient(law, noise):
    model = model_of(libraries.polynomial(("x",), 1), free=["dx:x"])
    data = Series(TIMES, np.exp(-TIMES)[:, None], ("x",), velocities=-np.exp(-TIMES)[:, None])
    return identify(data, model, prior=law, likelihood=likelihoods.derivative(noise=noise))


def energies(problem, positions):
    return np.concatenate([problem.target.evaluate(part[:, None])[0] for part in np.array_split(positions, 2000)])


def test_a_flat_prior_has_no_constant():
    with pytest.raises(ValueError, match="a flat prior has no density"):
        _ = priors.flat().constant


@pytest.fixture(scope="module")
def measured():
    rng = np.random.default_rng(5)
    states = np.exp(-0.5 * TIMES)[:, None]
    velocities = -0.5 * states + 0.05 * rng.standard_normal(states.shape)
    return Series(TIMES, states, ("x",), velocities=velocities)


def of_degree(data, degree, **asked):
    library = libraries.polynomial(("x",), degree)
    prior = priors.gaussian(0.0, 1.0)
    return identify(data, library, prior=prior, likelihood=likelihoods.derivative(noise=0.05), **asked)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_evidence_of_a_linear_model_is_that_of_its_velocities(measured, degree):
    """v ~ N(0, noise² + Θ Θᵀ) under a standard normal prior of the coefficients."""
    terms = libraries.polynomial(("x",), degree).evaluate(measured.values)
    exact = stats.multivariate_normal(np.zeros(41), 0.05**2 * np.eye(41) + terms @ terms.T)
    problem = of_degree(measured, degree)
    assert problem.log_evidence == pytest.approx(exact.logpdf(measured.velocities[:, 0]), abs=1e-5)
    assert problem.scaled().log_evidence == pytest.approx(problem.log_evidence, abs=1e-9)


def test_terms_that_are_not_needed_lower_it(measured):
    evidences = [of_degree(measured, degree).log_evidence for degree in (1, 2, 3)]
    assert evidences[0] > evidences[1] > evidences[2]


def test_evidence_of_two_modes_is_their_sum():
    """Of the frequency of an oscillation and its alias, by quadrature over all frequencies."""
    problem = aliased()
    assert len(problem.found) == 2
    grid = np.linspace(-3.0, 9.0, 48_001)
    energy = energies(problem, grid)
    exact = math.log(np.trapezoid(np.exp(energy.min() - energy), grid)) - energy.min()
    exact -= math.log(1.5 * math.sqrt(2.0 * math.pi))
    assert problem.log_evidence == pytest.approx(exact, abs=0.02)
    alone = aliased(n_searches=0)
    assert alone.log_evidence < problem.log_evidence - 0.5


def test_what_has_no_evidence_says_so(measured):
    with pytest.raises(ValueError, match=r"prior must be proper for every parameter, .* flat for dx:1, dx:x: give"):
        _ = identify(measured, libraries.polynomial(("x",), 1)).log_evidence
    with pytest.raises(ValueError, match="constraints must be none for an evidence, got"):
        _ = of_degree(measured, 1, constraints=["dx:x < 0"]).log_evidence
