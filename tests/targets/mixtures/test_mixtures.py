"""Targets: gradients by complex-free differences, energies by an oracle, truth by independent quadrature and χ²."""

import mpmath
import numpy as np
import pytest
from scipy.integrate import dblquad, quad
from scipy.special import logsumexp
from scipy.stats import chisquare, multivariate_normal

from targets import mixtures
from tests.support.oracles import RIGHT, WRONG, energies_p_values
from toolkit import Target

RNG = np.random.default_rng(51)
ROOTS = np.eye(64) + 0.1 * np.random.default_rng(50).normal(size=(2, 64, 64))
COVARIANCES = ROOTS @ np.swapaxes(ROOTS, 1, 2)
TARGETS = {
    "cosine25": mixtures.cosine25(),
    "gaussian_grid25": mixtures.gaussian_grid25(),
    "one Gaussian": mixtures.gaussian_mixture([[0.5]], 2.0),
    "two in 1-D": mixtures.gaussian_mixture([[-6.0], [4.0]], 1.0, [0.4, 0.6]),
    "wide and narrow": mixtures.three_on_a_line(),
    "six petals": mixtures.six_petals(),
    "two correlated in 64-D": mixtures.gaussian_mixture(RNG.normal(size=(2, 64)), COVARIANCES, [0.3, 0.7]),
    "five of one covariance in 5-D": mixtures.gaussian_mixture(RNG.normal(size=(5, 5)), COVARIANCES[0, :5, :5]),
    "seven in 3-D": mixtures.gaussian_mixture(RNG.normal(size=(7, 3)), 0.3, [0.1, 0.2, 0.1, 0.3, 0.1, 0.15, 0.05]),
}


@pytest.mark.parametrize("name", TARGETS)
def test_gradient_against_differences(name):
    target = TARGETS[name]
    points = RNG.uniform(-6, 6, (300, target.dim))
    _, gradient = target.evaluate(points)
    for d in range(target.dim):
        step = np.zeros(target.dim)
        step[d] = 1e-3
        nearby = [target.evaluate(points + m * step)[0] for m in (-2, -1, 1, 2)]
        slope = (8 * (nearby[2] - nearby[1]) - (nearby[3] - nearby[0])) / 12e-3
        if name == "cosine25":  # the slope jumps on the circle ‖x‖² = 20
            away = np.abs((points**2).sum(axis=1) - 20) > 0.1
            slope, exact = slope[away], gradient[away, d]
        else:
            exact = gradient[:, d]
        np.testing.assert_allclose(slope, exact, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", list(TARGETS)[1:])
def test_mixture_energy_against_scipy(name):
    target = TARGETS[name]
    points = np.concatenate([RNG.uniform(-6, 6, (500, target.dim)), np.full((1, target.dim), 300.0)])
    np.testing.assert_allclose(-target.evaluate(points)[0], target.truth.log_density(points), rtol=1e-12, atol=1e-12)


def test_mixture_energy_against_multivariate_normals():
    """SciPy's own densities, which know nothing of ours; and a wrong weight is seen."""
    points = RNG.normal(size=(50, 64))
    target = TARGETS["two correlated in 64-D"]
    means = target.truth.means
    parts = [multivariate_normal(m, c).logpdf(points) for m, c in zip(means, COVARIANCES, strict=True)]
    energy = target.evaluate(points)[0]
    np.testing.assert_allclose(-energy, logsumexp(parts, axis=0, b=[[0.3], [0.7]]), rtol=1e-10)
    assert np.abs(-energy - logsumexp(parts, axis=0, b=[[0.31], [0.69]])).max() > 1e-3


def test_marginal_cells_of_a_mixture_in_many_dimensions():
    truth = TARGETS["two correlated in 64-D"].truth
    edges = np.array([-50.0, 0.3, 50.0])
    lower = sum(
        w * multivariate_normal(m[:2], c[:2, :2]).cdf([0.3, 0.3])
        for w, m, c in zip(truth.weights, truth.means, COVARIANCES, strict=True)
    )
    masses = truth.cell_masses(edges, edges)
    assert masses[0, 0] == pytest.approx(lower, abs=1e-6)
    assert masses.sum() == pytest.approx(1.0, abs=1e-9)


def test_isotropic_and_correlated_kernels_agree():
    means = RNG.normal(size=(4, 3))
    points = RNG.normal(size=(100, 3))
    one = mixtures.gaussian_mixture(means, 0.4).evaluate(points)
    for variance in (np.full(4, 0.4), 0.4 * np.eye(3), np.tile(0.4 * np.eye(3), (4, 1, 1))):
        other = mixtures.gaussian_mixture(means, variance).evaluate(points)
        np.testing.assert_allclose(other[0], one[0], rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(other[1], one[1], rtol=1e-12, atol=1e-12)


def test_one_gaussian_has_energies_by_chi_squared():
    target = mixtures.gaussian_mixture(RNG.normal(size=(1, 5)), COVARIANCES[1, :5, :5])
    energy = target.evaluate(target.truth.independent_draws(20_000, seed=1))[0]
    levels = target.truth.energy_quantiles([0.1, 0.5, 0.9])
    shares = (energy[:, None] <= levels).mean(axis=0)
    assert (np.abs(shares - [0.1, 0.5, 0.9]) < 4.5 * np.sqrt(0.25 / 20_000)).all()


@pytest.mark.slow_cases("narrow in the plane")
@pytest.mark.cases(2)
@pytest.mark.parametrize(
    "target",
    [
        mixtures.gaussian_mixture([[0.0], [3.0]], [1.0, 1e-10]),
        mixtures.gaussian_mixture([[0.0, 0.0], [100.0, 100.0]], [1e-6, 100.0]),
        mixtures.gaussian_mixture(RNG.normal(size=(300, 2)) * 30.0, 0.5),
        mixtures.gaussian_mixture(RNG.normal(size=(2, 20)), [0.5, 1.0]),
    ],
    ids=["narrow", "narrow in the plane", "many", "in 20-D"],
)
def test_energy_law_of_components_of_any_width_and_number(target):
    draws = target.truth.independent_draws(50_000, seed=6)
    right, wrong = energies_p_values(target, draws, draws + 0.3 * (draws - target.truth.means[0]))
    assert right > RIGHT
    assert wrong < WRONG


def test_cosine9_in_numbers():
    """Its nine modes have densities in the ratios 785.8 : 315.3 : 126.5, and 0.15 % lies outside the authors' box."""
    target = mixtures.cosine9()
    density = np.exp(-target.evaluate(target.truth.modes.centres)[0])
    np.testing.assert_allclose(np.sort(density)[[0, 4, 8]], [126.4, 315.0, 784.8], rtol=1.5e-3)  # those on a grid
    assert density.max() == pytest.approx(np.exp(2.0 / 0.3))
    assert 1.0 - target.truth.cell_masses([-2.5, 2.5], [-2.5, 2.5]).item() == pytest.approx(1.5e-3, abs=1e-4)


def test_gaussian_grid_far_out():
    target = TARGETS["gaussian_grid25"]
    points = np.array([[1e5, 0.0], [1e8, -1e8], [1e12, 3.0]])
    energy, gradient = target.evaluate(points)
    np.testing.assert_allclose(energy, -target.truth.log_density(points), rtol=1e-12)
    np.testing.assert_allclose(gradient[:, 0], (points[:, 0] - 4.0) / 0.03, rtol=1e-12)


def test_cosine25_in_numbers():
    energy, gradient = TARGETS["cosine25"].evaluate(np.array([[0, 0], [1, 1], [0.5, 0], [5, 0.25]]))
    np.testing.assert_allclose(energy, [-4.0, -3.6, 0.05, 0.2 * 25.0625 - 2.0 + 5.0625], atol=1e-12)
    np.testing.assert_allclose(gradient[2], [0.2, 0.0], atol=1e-14)
    np.testing.assert_allclose(gradient[3], [12.0, 0.6 + 4 * np.pi], atol=1e-12)


def test_cosine25_energy_range_is_the_published_one():
    edges = np.linspace(-2.5, 2.5, 501)
    grid = np.stack(np.meshgrid(edges, edges), axis=-1).reshape(-1, 2)
    energy = TARGETS["cosine25"].evaluate(grid)[0]
    assert energy.min() == pytest.approx(-4.0)
    assert energy.max() == pytest.approx(6.5, abs=2e-3)  # partition of the papers: [min − 1, max + 1]


def test_cosine25_normaliser_against_an_independent_quadrature():
    """By Bessel functions where the tail term is absent, and adaptive quadrature of what it takes away."""
    with mpmath.workdps(30):
        # ∫ exp(−0.2 x² + 2 cos 2πx) dx = √(5π) Σ I_n(2) exp(−5π² n²), twice over
        line = mpmath.sqrt(5 * mpmath.pi) * sum(
            mpmath.besseli(n, 2) * mpmath.exp(-5 * mpmath.pi**2 * n * n) for n in range(-3, 4)
        )

    def lost(angle, radius):
        free = -0.2 * radius**2 + 2 * (
            np.cos(2 * np.pi * radius * np.cos(angle)) + np.cos(2 * np.pi * radius * np.sin(angle))
        )
        return radius * np.exp(free) * (1 - np.exp(20 - radius**2))

    missing = sum(
        dblquad(lost, a, b, 0, np.pi / 4, epsabs=1e-10, epsrel=1e-10)[0] * 8
        for a, b in zip(np.sqrt(20) + np.arange(0, 8, 0.5), np.sqrt(20) + np.arange(0.5, 8.5, 0.5), strict=True)
    )
    assert TARGETS["cosine25"].truth.log_normaliser == pytest.approx(np.log(float(line**2) - missing), rel=1e-9)


@pytest.mark.parametrize("name", ["cosine25", "gaussian_grid25"])
def test_cells_and_independent_draws_agree(name):
    truth = TARGETS[name].truth
    edges = np.linspace(-6, 6, 49)
    masses = truth.cell_masses(edges, edges)
    n = 200_000
    draws = truth.independent_draws(n, seed=52)
    assert draws.shape == (n, 2)
    counts = np.histogram2d(*draws.T, bins=[edges, edges])[0]
    full = masses * n > 5
    observed = np.append(counts[full], n - counts[full].sum())
    expected = np.append(n * masses[full], n * (1 - masses[full].sum()))
    assert chisquare(observed, expected).pvalue > 1e-4
    assert chisquare(np.roll(observed, 1), expected).pvalue < 1e-12
    np.testing.assert_array_equal(draws[:5], truth.independent_draws(n, seed=52)[:5])


def test_cell_masses_against_adaptive_quadrature():
    truth = TARGETS["cosine25"].truth
    for cell in ([0.0, 0.3, -1.2, -0.9], [-4.0, 4.0, -0.5, 0.5]):
        mass = truth.cell_masses(cell[:2], cell[2:]).item()

        def line(x, power):
            return np.exp(-0.2 * x * x + 2 * np.cos(2 * np.pi * x)) * x**power

        exact = quad(line, *cell[:2], args=(0,), limit=200)[0] * quad(line, *cell[2:], args=(0,), limit=200)[0]
        assert mass == pytest.approx(exact / np.exp(truth.log_normaliser), rel=1e-8)


def test_bad_numbers_are_refused():
    for arguments, message in (
        (([0.0, 1.0], 1.0), r"means must have shape"),
        (([[0.0]], 0.0), "variance must be finite and > 0, got 0.0"),
        (([[0.0], [1.0]], 1.0, [0.5, 0.6]), "weights must be 2 positive numbers that sum to 1"),
        (([[np.nan]], 1.0), "means must be finite"),
        (
            ([[0.0, 1.0]], [1.0, 2.0, 3.0]),
            r"variance must be a number or have shape \(1,\), \(2, 2\) or \(1, 2, 2\), got",
        ),
        (([[0.0], [1.0]], [1.0, -1.0]), r"variance must be positive, .* got \[\[-1\.0\]\] for component 1"),
        (([[0.0, 1.0]], [[1.0, 0.5], [0.4, 1.0]]), "variance must be positive, or symmetric positive definite"),
    ):
        with pytest.raises(ValueError, match=message):
            mixtures.gaussian_mixture(*arguments)
    with pytest.raises(ValueError, match=r"points must have shape \(n, 2\), got \(3,\)"):
        TARGETS["cosine25"].evaluate(np.zeros(3))
    with pytest.raises(ValueError, match="dim must be ≥ 1"):
        Target("none", 0, mixtures.cosine25_block)
    with pytest.raises(ValueError, match="x_edges must be at least 2"):
        TARGETS["cosine25"].truth.cell_masses([1.0, 0.0], [0.0, 1.0])
