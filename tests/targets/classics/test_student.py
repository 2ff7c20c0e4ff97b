"""Student-t mixtures: SciPy's density, closed forms, draws by χ²."""

import numpy as np
import pytest
from scipy.integrate import dblquad, quad
from scipy.special import gammaln
from scipy.stats import f, multivariate_t, t

from targets.classics.student import student_mixture
from tests.support.oracles import agrees, held

RNG = np.random.default_rng(73)
MEANS = np.array([[-3.0, 0.0], [3.0, 0.0], [0.0, 4.0]])
WEIGHTS = np.array([0.3, 0.5, 0.2])
TRIPLE = student_mixture(MEANS, 0.7, 2.5, WEIGHTS)
LINE = student_mixture([[-3.0], [3.0]], 1.0, 3.0, [0.3, 0.7])
CAUCHY = student_mixture([[0.5, -0.5]], 2.0, 1.0)
WIDE = student_mixture(RNG.normal(size=(5, 64)) * 3, 0.5, 4.0)


def energy_of(means, scale, degrees, weights):
    """−log Σ w t(x), for complex points; summed without the smallest exponent first."""
    dim = means.shape[1]
    peak = gammaln((degrees + dim) / 2) - gammaln(degrees / 2) - dim / 2 * np.log(np.pi * degrees * scale**2)

    def energy(x):
        q = ((x[:, None] - means) ** 2).sum(axis=2) / (degrees * scale**2)
        terms = np.log(weights) + peak - (degrees + dim) / 2 * np.log(1 + q)
        top = terms.real.max(axis=1, keepdims=True)
        return -top[:, 0] - np.log(np.exp(terms - top).sum(axis=1))

    return energy


@pytest.mark.parametrize(
    ("target", "numbers"),
    [
        (TRIPLE, (MEANS, 0.7, 2.5, WEIGHTS)),
        (LINE, (np.array([[-3.0], [3.0]]), 1.0, 3.0, np.array([0.3, 0.7]))),
        (CAUCHY, (np.array([[0.5, -0.5]]), 2.0, 1.0, np.ones(1))),
        (WIDE, (WIDE.truth.means, 0.5, 4.0, np.full(5, 0.2))),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_energy_and_gradient_are_those_of_the_formula(target, numbers):
    far = np.vstack([np.full((1, target.dim), 1e6), np.full((1, target.dim), -1e6), 1e6 * np.eye(target.dim)])
    agrees(target, energy_of(*numbers), np.vstack([RNG.uniform(-8, 8, (200, target.dim)), far]))


def test_density_is_scipys():
    points = RNG.uniform(-8, 8, (50, 2))
    density = sum(w * multivariate_t(m, 0.49 * np.eye(2), 2.5).pdf(points) for m, w in zip(MEANS, WEIGHTS, strict=True))
    np.testing.assert_allclose(np.exp(-TRIPLE.evaluate(points)[0]), density, rtol=1e-12)


@pytest.mark.slow_cases("student_mixture(3 in 2-D, 2.5 degrees)-", "student_mixture(5 in 64-D, 4 degrees)-")
@pytest.mark.parametrize(
    ("target", "edges"),
    [
        (TRIPLE, [np.linspace(-6, 6, 25), np.linspace(-4, 8, 25)]),
        (LINE, [np.linspace(-9, 9, 61)]),
        (WIDE, [np.linspace(-6, 6, 25), np.linspace(-6, 6, 25)]),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_draws_agree_with_cells_energies_moments_and_modes(target, edges):
    held(target, edges, scale=1.1)


def test_cells_against_scipy():
    edges = np.array([-1.0, 0.5, 30.0])
    exact = sum(w * np.diff(t.cdf(edges - m, 3.0)) for m, w in ((-3.0, 0.3), (3.0, 0.7)))
    np.testing.assert_allclose(LINE.truth.cell_masses(edges), exact, rtol=1e-12)
    mass = dblquad(lambda y, x: np.exp(-TRIPLE.evaluate(np.array([[x, y]]))[0][0]), -1.0, 0.5, -0.3, 6.0)[0]
    assert TRIPLE.truth.cell_masses([-1.0, 0.5], [-0.3, 6.0]).item() == pytest.approx(mass, abs=1e-9)
    law = quad(lambda x: t.pdf(x, 1.0), -1e4, 1e4, points=[0.0], limit=500)[0]  # the marginal of a Cauchy is a Cauchy
    wide = CAUCHY.truth.cell_masses([0.5 - 2e4, 0.5 + 2e4], [-0.5 - 1e9, -0.5 + 1e9]).item()
    assert wide == pytest.approx(law, abs=1e-6)


@pytest.mark.parametrize("dim", [1, 2, 10, 64])
def test_energy_law_of_one_component_is_that_of_f(dim):
    """‖x − μ‖² / (dim s²) is F(dim, ν)."""
    target = student_mixture(np.full((1, dim), 2.0), 0.3, 3.0)
    levels = np.array([0.001, 0.1, 0.5, 0.9, 0.999])
    energies = target.truth.energy_quantiles(levels)
    least = target.evaluate(np.full((1, dim), 2.0))[0]
    ratio = (np.exp((energies - least) * 2 / (3.0 + dim)) - 1) * 3.0 / dim
    np.testing.assert_allclose(f.cdf(ratio, dim, 3.0), levels, atol=target.truth.accuracy)


def test_energy_law_of_a_mixture_against_quadrature():
    levels = np.array([0.05, 0.5, 0.95])
    x = np.tan(np.linspace(-np.pi / 2, np.pi / 2, 400_003)[1:-1])
    mass = np.exp(-LINE.evaluate(x[:, None])[0]) * (1 + x**2)
    below = [mass[LINE.evaluate(x[:, None])[0] <= u].sum() / mass.sum() for u in LINE.truth.energy_quantiles(levels)]
    np.testing.assert_allclose(below, levels, atol=LINE.truth.accuracy)


def test_moments_exist_or_are_infinite():
    within = 0.49 * 2.5 / 0.5 * np.eye(2)
    mean = WEIGHTS @ MEANS
    between = sum(w * np.outer(m - mean, m - mean) for m, w in zip(MEANS, WEIGHTS, strict=True))
    np.testing.assert_allclose(TRIPLE.truth.covariance, within + between, rtol=1e-12)
    np.testing.assert_allclose(TRIPLE.truth.mean, mean, rtol=1e-12)
    assert np.isinf(CAUCHY.truth.mean).all()
    assert np.isinf(CAUCHY.truth.covariance).all()
    between_both = student_mixture(MEANS, 1.0, 1.5).truth
    np.testing.assert_allclose(between_both.mean, MEANS.mean(axis=0), rtol=1e-12, atol=1e-15)
    assert np.isinf(between_both.covariance).all()


def test_cauchy_draws_have_heavy_tails():
    n = 100_000
    draws = CAUCHY.truth.independent_draws(n, seed=8)[:, 0]
    share, law = (np.abs(draws - 0.5) > 200.0).mean(), 2 * t.sf(100.0, 1.0)
    assert abs(share - law) < 4.5 * np.sqrt(law / n)
    assert abs(share - 2 * t.sf(100.0, 1.5)) > 4.5 * np.sqrt(law / n)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0], 1.0, 1.0), r"^means must have shape \(components, dim\), got \(1,\)$"),
        (([[np.nan]], 1.0, 1.0), "^means must be finite, got nan"),
        (([[0.0]], 0.0, 1.0), r"^scale must be finite and > 0, got 0\.0$"),
        (([[0.0]], 1.0, 0.01), r"^degrees must be finite and ≥ 0\.1 and ≤ 1e\+06, got 0\.01$"),
        (
            ([[0.0], [1.0]], 1.0, 1.0, [0.5, 0.6]),
            r"^weights must be 2 positive numbers that sum to 1, got \[0\.5, 0\.6\]$",
        ),
    ],
)
def test_bad_numbers_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        student_mixture(*arguments)
