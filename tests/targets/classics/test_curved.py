"""Ring, banana, funnel and pinched: gradients by the complex step, truth by other routes, draws by χ²."""

import mpmath
import numpy as np
import pytest
from scipy.integrate import dblquad, quad
from scipy.stats import chi2, norm

from targets.classics.curved import banana, funnel, pinched, ring
from tests.support.oracles import RIGHT, WRONG, agrees, cells_p_values, held

RNG = np.random.default_rng(70)
FAR = np.array([[1e6, 0.0], [0.0, 1e6], [-1e6, 3.0], [1e6, -1e6]])


def ring_energy(x, radius=3.0, width=0.3):
    return ((x**2).sum(axis=1) - radius**2) ** 2 / (8 * radius**2 * width**2)


def banana_energy(x, curvature=0.03, scale=10.0):
    straight = x[:, 1] + curvature * (x[:, 0] ** 2 - scale**2)
    return 0.5 * (x[:, 0] / scale) ** 2 + 0.5 * straight**2 + 0.5 * (x[:, 2:] ** 2).sum(axis=1)


def funnel_energy(x, scale=3.0):
    rest = x[:, 1:]
    return (
        x[:, 0] ** 2 / (2 * scale**2) + 0.5 * rest.shape[1] * x[:, 0] + 0.5 * np.exp(-x[:, 0]) * (rest**2).sum(axis=1)
    )


def pinched_width(x, left=0.5, right=0.1, neck=0.02, reach=0.3):
    return neck + left * np.exp(-((x + 1) ** 2) / (2 * reach**2)) + right * np.exp(-((x - 1) ** 2) / (2 * reach**2))


def pinched_energy(x, barrier=2.0, **widths):
    return barrier * (x[:, 0] ** 2 - 1) ** 2 + 0.5 * (x[:, 1] / pinched_width(x[:, 0], **widths)) ** 2


@pytest.mark.parametrize(
    ("target", "energy"),
    [
        (ring(), ring_energy),
        (ring(radius=0.5, width=2.0), lambda x: ring_energy(x, 0.5, 2.0)),
        (banana(), banana_energy),
        (banana(curvature=-0.4, scale=1.5, dim=64), lambda x: banana_energy(x, -0.4, 1.5)),
        (funnel(), funnel_energy),
        (funnel(dim=2, scale=1.0), lambda x: funnel_energy(x, 1.0)),
        (funnel(dim=64, scale=0.5), lambda x: funnel_energy(x, 0.5)),
        (pinched(), pinched_energy),
        (
            pinched(left=0.1, right=0.7, neck=0.3, reach=0.2, barrier=1.0),
            lambda x: pinched_energy(x, 1.0, left=0.1, right=0.7, neck=0.3, reach=0.2),
        ),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_energy_and_gradient_are_those_of_the_formula(target, energy):
    agrees(target, energy, RNG.uniform(-3, 3, (200, target.dim)))
    if target.dim == 2:
        far = FAR if not target.name.startswith("funnel") else FAR[[0, 1, 3]]
        with np.errstate(under="ignore"):
            agrees(target, energy, far, rtol=1e-11)


def test_funnel_is_never_nan():
    points = np.array([[-1e6, 0.0], [-1e6, 1e6], [-800.0, 1e-3], [1e6, 1e6]])
    energy, gradient = funnel(dim=2).evaluate(points)
    assert not np.isnan(energy).any()
    assert not np.isnan(gradient).any()
    assert energy[0] == 1e12 / 18 - 5e5
    assert energy[2] == pytest.approx(800**2 / 18 - 400 + 0.5e-6 * np.exp(700.0))


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    ("target", "edges"),
    [
        (ring(), [np.linspace(-4, 4, 33)] * 2),
        (ring(radius=1.0, width=0.6), [np.linspace(-2, 2, 17)] * 2),
        (banana(), [np.linspace(-25, 25, 31), np.linspace(-12, 6, 37)]),
        (banana(curvature=0.5, scale=2.0, dim=5), [np.linspace(-5, 5, 31), np.linspace(-12, 6, 37)]),
        (funnel(), [np.linspace(-8, 8, 17), np.linspace(-9, 9, 37)]),
        (funnel(dim=2, scale=1.0), [np.linspace(-3, 3, 17), np.linspace(-3, 3, 37)]),
        (pinched(), [np.linspace(-1.5, 1.5, 31), np.linspace(-1.2, 1.2, 31)]),
        (pinched(neck=0.2, right=0.4, barrier=0.5), [np.linspace(-2, 2, 31), np.linspace(-1.2, 1.2, 31)]),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_draws_agree_with_cells_energies_moments_and_modes(target, edges):
    held(target, edges)


def test_ring_against_adaptive_quadrature():
    truth = ring(radius=1.0, width=0.6).truth

    def radial(power):
        return quad(lambda r: 2 * np.pi * r**power * np.exp(-((r * r - 1) ** 2) / (8 * 0.36)), 0, 6)[0]

    assert truth.log_normaliser == pytest.approx(np.log(radial(1)), rel=1e-10)
    np.testing.assert_allclose(truth.covariance, np.eye(2) * 0.5 * radial(3) / radial(1), rtol=1e-8)
    mass = dblquad(lambda y, x: np.exp(-((x * x + y * y - 1) ** 2) / (8 * 0.36)), 0.2, 0.9, -0.4, 1.3)[0]
    assert truth.cell_masses([0.2, 0.9], [-0.4, 1.3]).item() == pytest.approx(mass / radial(1), abs=1e-7)
    level = truth.energy_quantiles(0.9)
    inner, outer = (np.sqrt(max(1 + s * np.sqrt(8 * 0.36 * level), 0.0)) for s in (-1, 1))
    share = quad(lambda r: 2 * np.pi * r * np.exp(-((r * r - 1) ** 2) / (8 * 0.36)), inner, outer)[0] / radial(1)
    assert share == pytest.approx(0.9, abs=1e-9)


@pytest.mark.parametrize("dim", [2, 5])
def test_banana_energy_is_chi_square_and_moments_are_known(dim):
    truth, p = banana(curvature=0.2, scale=2.0, dim=dim).truth, np.array([[1e-3, 0.1, 0.5], [0.9, 0.99, 0.999]])
    levels = truth.energy_quantiles(p)
    np.testing.assert_allclose(chi2.cdf(2 * levels, dim), p, rtol=truth.energy_accuracy.relative)
    np.testing.assert_allclose(chi2.sf(2 * levels, dim), 1.0 - p, rtol=truth.energy_accuracy.relative)
    assert truth.log_normaliser == pytest.approx(0.5 * dim * np.log(2 * np.pi) + np.log(2.0), rel=1e-12)
    np.testing.assert_allclose(truth.mean, 0.0, atol=1e-12)
    variances = np.array([4.0, 1 + 2 * 0.04 * 16, 1.0, 1.0, 1.0])[:dim]
    np.testing.assert_allclose(truth.covariance, np.diag(variances), rtol=1e-10, atol=1e-10)
    exact = quad(lambda x: norm.pdf(x, scale=2.0) * np.ptp(norm.cdf(0.2 * (x * x - 4) + np.array([-1, 0.3]))), 0.1, 3)
    assert truth.cell_masses([0.1, 3], [-1, 0.3]).item() == pytest.approx(exact[0], abs=1e-10)


def test_funnel_against_independent_quadrature():
    truth = funnel(dim=4, scale=1.5).truth
    assert truth.log_normaliser == pytest.approx(2.0 * np.log(2 * np.pi) + np.log(1.5), rel=1e-12)
    np.testing.assert_allclose(truth.covariance, np.diag([2.25] + [np.exp(1.125)] * 3), rtol=1e-9, atol=1e-9)
    for p in (0.01, 0.5, 0.99):
        level = truth.energy_quantiles(p)
        share = quad(
            lambda v, u: norm.pdf(v, scale=1.5) * chi2.cdf(2 * (u - v * v / 4.5 - 1.5 * v), 3),
            -15, 15, args=(level,), limit=500,
        )[0]  # fmt: skip
        assert share == pytest.approx(p, rel=truth.energy_accuracy.relative)
    widest = funnel(dim=2, scale=20.0).truth
    assert widest.covariance[1, 1] == pytest.approx(np.exp(200.0), rel=1e-8)
    np.testing.assert_allclose(funnel().evaluate(funnel().truth.modes.centres)[1], 0.0, atol=1e-12)


def test_pinched_against_adaptive_quadrature():
    truth = pinched().truth
    with mpmath.workdps(20):
        root, reach = mpmath.sqrt(2 * mpmath.pi), mpmath.mpf("0.18")  # 2 · 0.3²

        def share(x):
            bulbs = mpmath.exp(-((x + 1) ** 2) / reach) / 2 + mpmath.exp(-((x - 1) ** 2) / reach) / 10
            return root * mpmath.exp(-2 * (x * x - 1) ** 2) * (mpmath.mpf("0.02") + bulbs)

        left, right = mpmath.quad(share, [-4, -1, 0]), mpmath.quad(share, [0, 1, 4])
    assert truth.log_normaliser == pytest.approx(float(mpmath.log(left + right)), abs=1e-10)
    np.testing.assert_allclose(truth.modes.weights, [float(left / (left + right)), float(right / (left + right))])
    level = truth.energy_quantiles(0.7)
    below = quad(
        lambda x: pinched_width(x) * np.exp(-2 * (x * x - 1) ** 2) * chi2.cdf(2 * (level - 2 * (x * x - 1) ** 2), 1),
        -3, 3, limit=500, points=[-1.0, 0.0, 1.0],
    )[0]  # fmt: skip
    assert below * np.sqrt(2 * np.pi) / np.exp(truth.log_normaliser) == pytest.approx(
        0.7, rel=truth.energy_accuracy.relative
    )
    np.testing.assert_array_equal(truth.memberships([[-0.1, 3.0], [0.2, 0.0]]), [[1, 0], [0, 1]])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ring(radius=0.0), r"^radius must be finite and > 0, got 0\.0$"),
        (lambda: ring(width=-1.0), r"^width must be finite and > 0, got -1\.0$"),
        (lambda: banana(curvature=np.inf), "^curvature must be finite, got inf$"),
        (lambda: banana(scale=0.0), r"^scale must be finite and > 0, got 0\.0$"),
        (lambda: banana(dim=1), "^dim must be ≥ 2 and < 131072, got 1$"),
        (lambda: funnel(dim=1), "^dim must be ≥ 2 and < 131072, got 1$"),
        (lambda: funnel(scale=21.0), r"^scale must be finite and > 0 and ≤ 20, got 21\.0$"),
        (lambda: pinched(neck=0.0), r"^neck must be finite and > 0, got 0\.0$"),
        (lambda: pinched(barrier=0.0), r"^barrier must be finite and > 0, got 0\.0$"),
        (lambda: banana().truth.cell_masses([0.0, 1.0]), "^y_edges must be given in 2 dimensions, got None$"),
        (lambda: funnel().truth.energy_quantiles([1.5]), r"^probabilities must be ≥ 0 and ≤ 1, got 1\.5$"),
        (lambda: ring().truth.independent_draws(-1, seed=0), "^n must be ≥ 0, got -1$"),
        (lambda: funnel().truth.memberships(np.zeros((1, 2))), r"^points must have shape \(n, 10\), got \(1, 2\)$"),
    ],
)
def test_bad_numbers_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_cells_beyond_the_mass_are_empty():
    np.testing.assert_array_equal(banana().truth.cell_masses([200.0, 300.0], [0.0, 1.0, 2.0]), [[0.0, 0.0]])


@pytest.mark.parametrize(("left", "reach"), [(1e3, 1e-3), (1e3, 1e-4), (1e6, 1e-6)])
def test_a_short_bulb_is_not_missed(left, reach):
    """Its share in closed form, for the well is flat over it, to 12 reach²; without it log Z is off by up to 7 nats."""
    truth = pinched(left=left, right=1e-3, neck=1e-3, reach=reach).truth
    neck = 1e-3 * quad(lambda x: np.exp(-2.0 * (x * x - 1.0) ** 2), -4.0, 4.0, epsabs=1e-13)[0]
    bulbs = (left + 1e-3) * reach * np.sqrt(2.0 * np.pi)
    law = np.log(np.sqrt(2.0 * np.pi) * (neck + bulbs))
    assert truth.log_normaliser == pytest.approx(law, abs=24.0 * reach**2 + 1e-8)
    np.testing.assert_allclose(truth.modes.weights[0], 1.0 - 0.5 * neck / (neck + bulbs), atol=1e-5)


def test_cells_of_a_long_banana():
    """So thin beside its length that panels as wide everywhere would have to be 300,000."""
    truth = banana(curvature=0.03, scale=1000.0).truth
    draws = truth.independent_draws(50_000, seed=9)
    edges = np.quantile(draws, np.linspace(0.0, 1.0, 13), axis=0).T
    right, wrong = cells_p_values(truth, edges, draws, draws * [1.0, 1.05])
    assert right > RIGHT
    assert wrong < WRONG
    assert truth.cell_masses([-1e5, 1e5], [-1e9, 1e9]).item() == pytest.approx(1.0, abs=1e-10)
