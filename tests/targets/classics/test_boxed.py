"""Coin flip, egg crate, Gaussian shells, dual moon: formulas, printed evidences, truth by other routes, draws by χ²."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import dblquad, quad
from scipy.special import gammaln
from scipy.stats import kstest, norm

from targets.classics import coin_flip, dual_moon, egg_crate, gaussian_shells
from targets.truth.running_integral import RunningIntegral
from tests.support.oracles import RIGHT, WRONG, agrees, cells_p_values, energies_p_values, held
from toolkit import boundaries, sample, samplers
from toolkit.ladders import geometric_ladder

RNG = np.random.default_rng(83)
COINS, CRATE, SHELLS, MOONS = coin_flip(), egg_crate(), gaussian_shells(), dual_moon()  # with one truth for all tests
FEW = coin_flip(n=7, heads=2)
SIDE = 10.0 * np.pi


def binomial(n, k):
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)


def coin_flip_energy(x, n=100_000, k=50_000):
    product = x[:, 0] * x[:, 1]
    return -binomial(n, k) - k * np.log(product) - (n - k) * np.log(1 - product)


def egg_crate_energy(x):
    return 2 * np.log(SIDE) - (2 + np.cos(x[:, 0] / 2) * np.cos(x[:, 1] / 2)) ** 5


def gaussian_shells_energy(x, distance=3.5, radius=2.0, width=0.1):
    total = 0.0
    for centre in (-distance, distance):
        length = np.sqrt((x[:, 0] - centre) ** 2 + x[:, 1] ** 2)
        total = total + np.exp(-(((length - radius) / width) ** 2) / 2) / (np.sqrt(2 * np.pi) * width)
    return np.log(144) - np.log(total)


def dual_moon_energy(x):
    length = np.sqrt(x[:, 0] ** 2 + x[:, 1] ** 2)
    sides = sum(np.exp(-(((x[:, 0] - 2 * sign) / 0.6) ** 2) / 2) for sign in (-1, 1))
    return np.log(64) + ((length - 2) / 0.4) ** 2 / 2 - np.log(sides)


CASES = [
    (COINS, coin_flip_energy, (0.02, 0.98), 1e-9),
    (FEW, lambda x: coin_flip_energy(x, 7, 2), (0.02, 0.98), 1e-11),
    (CRATE, egg_crate_energy, (0.0, SIDE), 1e-11),
    (SHELLS, gaussian_shells_energy, (-5.5, 5.5), 1e-10),
    (MOONS, dual_moon_energy, (-4.0, 4.0), 1e-11),
]
PROBLEMS = {problem.target.name: problem for problem, *_ in CASES}


def with_own_truth(problem):
    """The target with the problem's truth, as ``held`` takes it."""
    return replace(problem.target, truth=problem.truth)


@pytest.mark.parametrize(("problem", "energy", "ends", "atol"), CASES, ids=PROBLEMS)
def test_energy_and_gradient_are_those_of_the_formula(problem, energy, ends, atol):
    points = RNG.uniform(*ends, (400, 2))
    if problem is SHELLS:  # where the formula's exponential is not 0
        points = problem.truth.independent_draws(400, seed=1) + RNG.uniform(-0.5, 0.5, (400, 2))
    agrees(problem.target, energy, points, rtol=1e-9, atol=atol)
    draws = problem.truth.independent_draws(400, seed=2)
    scale = 1e3 if problem is COINS else 1.0  # slopes of 10⁵ that cancel on the curve
    agrees(problem.target, energy, draws, rtol=1e-9, atol=scale * atol)


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_no_energy_is_nan_and_none_in_the_domain_is_infinite(problem):
    """Beyond the walls too, where a trajectory may go before it is rejected."""
    places = (0.0, 1.0, 0.5, -3.0, 40.0)
    corners = np.array([[a, b] for a in places for b in places])
    energy, gradient = problem.target.evaluate(corners)
    assert np.isfinite(energy).all()
    assert np.isfinite(gradient).all()
    middles = np.array([[0.0, 0.0], [3.5, 0.0], [-3.5, 0.0]])  # where a distance is 0
    assert np.isfinite(problem.target.evaluate(middles)[1]).all()


def test_evidences_are_those_of_the_literature():
    """Of dynesty's examples, and of Pigeons' by its own formula; each with the uniform prior."""
    assert COINS.truth.log_normaliser == pytest.approx(-11.8794, abs=1e-4)
    assert CRATE.truth.log_normaliser == pytest.approx(235.856, abs=5e-4)
    assert SHELLS.truth.log_normaliser == pytest.approx(-1.746, abs=5e-4)
    assert SHELLS.truth.log_normaliser == pytest.approx(np.log(4 * np.pi * 2.0 / 144), abs=1e-7)
    assert MOONS.truth.log_normaliser == pytest.approx(-2.2814, abs=1e-4)


@pytest.mark.parametrize(("n", "k"), [(7, 2), (2, 1), (40, 39), (1000, 1), (100_000, 50_000)])
def test_coin_flip_against_quadrature_over_the_product(n, k):
    """Density ∝ u^k (1 − u)^(n − k) (−log u) of u; p₁ given u has moments (1 − u^m) / (−m log u)."""
    truth = coin_flip(n=n, heads=k).truth
    sd = np.sqrt(k * (n - k) / n**3)
    ends = np.unique(np.clip(k / n + sd * np.arange(-40, 41), 0.0, 1.0))

    def integral(function):
        def integrand(u):
            return function(u) * np.exp(binomial(n, k) + k * np.log(u) + (n - k) * np.log1p(-u))

        return sum(quad(integrand, a, b, epsabs=0.0, epsrel=1e-11)[0] for a, b in itertools.pairwise(ends))

    z = integral(lambda u: -np.log(u))
    assert truth.log_normaliser == pytest.approx(np.log(z), abs=1e-8)
    mean = integral(lambda u: 1 - u) / z
    np.testing.assert_allclose(truth.mean, mean, rtol=1e-8)
    square, product = integral(lambda u: (1 - u**2) / 2) / z, integral(lambda u: -u * np.log(u)) / z
    expected = np.array([[square, product], [product, square]]) - mean**2
    np.testing.assert_allclose(truth.covariance, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("n", "k"), [(7, 2), (100_000, 50_000)])
def test_coin_flip_energies_in_both_tails(n, k):
    truth = coin_flip(n=n, heads=k).truth
    sd = np.sqrt(k * (n - k) / n**3)

    def excess(u):
        return -k * np.log1p((u - k / n) * n / k) - (n - k) * np.log1p((k / n - u) * n / (n - k))

    def mass(low, high):
        ends = np.unique(np.clip([low, *np.clip(k / n + sd * np.arange(-40, 41), low, high), high], 1e-300, 1 - 1e-16))
        parts = itertools.pairwise(ends)
        return sum(quad(lambda u: -np.log(u) * np.exp(-excess(u)), a, b, epsabs=0, epsrel=1e-11)[0] for a, b in parts)

    whole = mass(0.0, 1.0)
    for shift in (1e-3, 0.1, 1.0, 3.0):
        high = k / n + shift * sd * (1.0 if n > 100 else 0.3)
        level = excess(high)
        gaps = np.linspace(0.0, k / n, 200_001)[1:-1]
        low = np.interp(-level, -excess(gaps), gaps)
        for _ in range(60):  # Newton, for the other side
            low -= (excess(low) - level) / ((n - k) / (1 - low) - k / low)
        below, above = truth.energy_tails(truth.lowest_energy + level)
        assert below == pytest.approx(mass(low, high) / whole, rel=1e-6)
        assert above == pytest.approx((mass(0.0, low) + mass(high, 1.0)) / whole, rel=1e-6)
    shares = np.array([1e-5, 1e-3, 0.3, 0.999, 1 - 1e-8])
    tails = truth.energy_tails(truth.energy_quantiles(shares))
    np.testing.assert_allclose(tails[0], shares, rtol=2e-6)
    np.testing.assert_allclose(tails[1], 1.0 - shares, rtol=2e-6)


@pytest.mark.parametrize("shift", [1e-6, 1e-3, 0.5, 0.99, 1.01, 3.0, 20.0, 600.0])
def test_coin_flip_excess_is_smooth_and_exact(shift):
    """Against arithmetic with 600 digits."""
    mpmath = pytest.importorskip("mpmath")
    truth = COINS.truth
    with mpmath.workdps(600):
        for logit in (shift, -shift):
            u = 1 / (1 + mpmath.exp(-mpmath.mpf(logit)))
            exact = -50_000 * (mpmath.log(2 * u) + mpmath.log(2 * (1 - u)))
            assert truth.excess(np.array([logit]))[0] == pytest.approx(float(exact), rel=1e-9)


def test_coin_flip_cells_against_adaptive_quadrature():
    energy = CASES[1][1]
    edges = [0.1, 0.35, 0.8, 1.0]
    masses = FEW.truth.cell_masses(edges, edges)
    for i, j in ((0, 0), (0, 2), (1, 1), (2, 1)):
        box = edges[i], edges[i + 1], edges[j], edges[j + 1]
        mass = dblquad(lambda y, x: np.exp(-energy(np.array([[x, y]])))[0], *box, epsabs=1e-10)[0]
        assert masses[i, j] == pytest.approx(mass / np.exp(FEW.truth.log_normaliser), abs=1e-8)
    grid = np.linspace(-0.5, 1.5, 41)
    for problem in (FEW, COINS):
        masses = problem.truth.cell_masses(grid, grid)
        assert masses.sum() == pytest.approx(1.0, abs=1e-12)
        np.testing.assert_allclose(masses, masses.T, atol=1e-14)
        assert (masses[:10] == 0.0).all()


def test_coin_flip_given_the_product_is_uniform_in_the_logarithm():
    draws = COINS.truth.independent_draws(20_000, seed=4)
    share = np.log(draws[:, 0]) / np.log(draws.prod(axis=1))
    assert kstest(share, "uniform").pvalue > RIGHT
    assert kstest(draws[:, 0], "uniform").pvalue < WRONG


def test_egg_crate_is_a_sum_over_quarters_of_peaks():
    """Weights are counts of quarters; log Z by the trapezoidal rule on one period, where it is exact to rounding."""
    truth = CRATE.truth
    steps = np.round(truth.modes.centres / (2.0 * np.pi)).astype(int)
    assert len(steps) == 18
    quarters = np.prod(np.where((steps == 0) | (steps == 5), 1, 2), axis=1)
    assert quarters.sum() == 50
    np.testing.assert_allclose(truth.modes.weights, quarters / 50, atol=1e-7)
    x = 4.0 * np.pi * np.arange(400) / 400
    height = (2.0 + np.cos(x / 2)[:, None] * np.cos(x / 2)) ** 5
    assert truth.log_normaliser == pytest.approx(243.0 + np.log(np.exp(height - 243.0).mean()), abs=1e-8)
    np.testing.assert_allclose(truth.mean, SIDE / 2, rtol=1e-8)
    barrier = CRATE.target.evaluate(np.array([[np.pi, np.pi]]))[0] - CRATE.target.evaluate(np.array([[0.0, 0.0]]))[0]
    assert barrier[0] == pytest.approx(211.0)


def test_gaussian_shells_have_the_moments_of_their_radius():
    truth = SHELLS.truth
    square = 2.0**2 + 3.0 * 0.1**2  # E r² under r N(r; 2, 0.1²)
    np.testing.assert_allclose(truth.covariance, np.diag([0.5 * square + 3.5**2, 0.5 * square]), atol=1e-5)
    np.testing.assert_allclose(truth.modes.weights, [0.5, 0.5], atol=1e-8)
    mass = dblquad(lambda y, x: np.exp(-gaussian_shells_energy(np.array([[x, y]])))[0], 1.4, 1.9, -0.3, 0.2)[0]
    cell = truth.cell_masses([1.4, 1.9], [-0.3, 0.2]).item()
    assert cell == pytest.approx(mass / np.exp(truth.log_normaliser), abs=1e-7)


def test_dual_moon_in_polar_coordinates():
    truth = MOONS.truth

    def ring(length):
        angle = 2.0 * np.pi * np.arange(400) / 400
        x = length * np.cos(angle)
        sides = np.exp(-(((x - 2) / 0.6) ** 2) / 2) + np.exp(-(((x + 2) / 0.6) ** 2) / 2)
        return 2.0 * np.pi * length * sides.mean() * np.exp(-(((length - 2) / 0.4) ** 2) / 2)

    in_the_plane = quad(ring, 0.0, 8.0, points=[1.0, 2.0, 3.0], epsabs=1e-12)[0]
    assert truth.log_normaliser == pytest.approx(np.log(in_the_plane / 64), abs=2e-6)
    assert np.log(in_the_plane) == pytest.approx(1.8775, abs=1e-4)
    np.testing.assert_allclose(truth.modes.weights, [0.5, 0.5], atol=1e-8)
    at = MOONS.target.evaluate(np.array([[2.0, 0.0], [0.0, 2.0], [0.0, 0.0]]))[0] - np.log(64)
    np.testing.assert_allclose(at, [0.0, 4.862, 17.362], atol=1e-3)


EDGES = {
    "coin_flip(100000, 50000)": [np.linspace(0.5, 1.0, 26)] * 2,
    "coin_flip(7, 2)": [np.linspace(0.0, 1.0, 21)] * 2,
    "egg_crate": [np.linspace(0.0, SIDE, 31)] * 2,
    "gaussian_shells(3.5, 2, 0.1)": [np.linspace(-6.0, 6.0, 41)] * 2,
    "dual_moon": [np.linspace(-4.0, 4.0, 41)] * 2,
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_draws_agree_with_cells_energies_moments_and_modes(name):
    problem = PROBLEMS[name]
    assert problem.contains(problem.truth.independent_draws(5_000, seed=9)).all()
    held(with_own_truth(problem), EDGES[name], n=50_000, scale=1.1)


@pytest.mark.parametrize(("name", "step"), [("coin_flip(7, 2)", 0.02), ("gaussian_shells(3.5, 2, 0.1)", 0.005)])
def test_mala_that_rejects_moves_over_the_walls_keeps_the_law(name, step):
    """From exact draws; without the walls coins leave the square, and the shells, 5 widths from it, do not."""
    problem = PROBLEMS[name]
    start = problem.truth.independent_draws(8_000, seed=3)

    def last(boundary):
        run = sample(
            problem, samplers.mala(step, boundary=boundary), n_steps=40, n_chains=8_000, seed=4, init=start,
            burn_in=39, progress=False,
        )  # fmt: skip
        return run.draws[:, 0]

    kept = last(boundaries.reject())
    assert energies_p_values(with_own_truth(problem), kept)[0] > RIGHT
    walled, free = cells_p_values(problem.truth, EDGES[name], kept, last(boundaries.ignore()))
    assert walled > RIGHT
    assert free < WRONG if problem is FEW else free > RIGHT


LADDERS = {  # step size on every replica, leapfrogs, hottest of ten temperatures
    "coin_flip(100000, 50000)": (0.0008, 60, 30_000.0),
    "egg_crate": (0.05, 16, 200.0),
    "gaussian_shells(3.5, 2, 0.1)": (0.1, 16, 300.0),
    "dual_moon": (0.2, 8, 10.0),
}


@pytest.mark.parametrize("name", LADDERS)
def test_parallel_tempering_of_hmc_finds_the_law_from_one_end(name):
    """Mean, median of the energy and weights of modes, from chains in one place; not at 1.2 times the temperature.

    HMC alone finds neither crate nor shells.
    """
    problem, (step, leapfrogs, hottest) = PROBLEMS[name], LADDERS[name]
    truth, edge = problem.truth, boundaries.reject()
    start = truth.modes.centres[0] if len(truth.modes.weights) > 1 else np.array([0.99, 0.505])
    median = truth.energy_quantiles(0.5)
    law = np.concatenate([truth.mean, [0.5], truth.modes.weights[:-1]])

    def deviation(sampler, n_steps=5_000, burn_in=2_000):
        run = sample(
            problem, sampler, n_steps=n_steps, burn_in=burn_in, n_chains=48, seed=7, init=start, progress=False
        )
        found = []
        for draws in run.draws:
            below = (problem.target.evaluate(draws)[0] <= median).mean()
            found.append([*draws.mean(axis=0), below, *truth.memberships(draws).mean(axis=0)[:-1]])
        error = np.maximum(np.std(found, axis=0, ddof=1), 1e-4) / np.sqrt(len(found))
        return np.abs((np.mean(found, axis=0) - law) / error).max()

    def tempered(coldest):
        ladder = geometric_ladder(coldest, hottest, 10)
        return samplers.pt_hmc((step,) * 10, temperatures=ladder, n_leapfrogs=leapfrogs, boundary=edge)

    assert deviation(tempered(1.0)) < 4.5
    assert deviation(tempered(1.2), 1_500, 500) > 4.5
    if problem in (CRATE, SHELLS):
        assert deviation(samplers.hmc(step, n_leapfrogs=leapfrogs, boundary=edge), 1_500, 500) > 4.5


def test_a_running_integral_from_either_end():
    normal = RunningIntegral(lambda x: np.exp(-0.5 * x**2) / np.sqrt(2 * np.pi), np.linspace(-38.0, 38.0, 300))
    places = np.array([[-30.0, -8.0, -0.3], [0.0, 5.0, 37.0]])
    np.testing.assert_allclose(normal.below(places), norm.cdf(places), rtol=1e-12)
    np.testing.assert_allclose(normal.above(places), norm.sf(places), rtol=1e-12)
    assert normal.whole == pytest.approx(1.0, abs=1e-14)
    np.testing.assert_array_equal(normal.below(np.array([-99.0, 99.0])), [0.0, normal.whole])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: coin_flip(n=1), "^n must be ≥ 2, got 1$"),
        (lambda: coin_flip(n=10, heads=10), "^heads must be ≥ 1 and < 10, got 10$"),
        (lambda: coin_flip(n=10, heads=0), "^heads must be ≥ 1 and < 10, got 0$"),
        (lambda: gaussian_shells(radius=-1.0), r"^radius must be finite and > 0, got -1\.0$"),
        (lambda: gaussian_shells(width=0.5), r"^width must be ≤ radius / 10 = 0\.2, got 0\.5$"),
        (
            lambda: gaussian_shells(distance=2.0),
            r"^distance must be ≥ radius \+ 5 width = 2\.5 and ≤ .* = 3\.5, got 2$",
        ),
        (
            lambda: gaussian_shells(distance=4.0),
            r"^distance must be ≥ radius \+ 5 width = 2\.5 and ≤ .* = 3\.5, got 4$",
        ),
    ],
)
def test_bad_numbers_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
