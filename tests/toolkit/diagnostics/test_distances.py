"""MMD, Wasserstein-1 and KSD: closed forms and quadrature, and the mean and spread on independent draws."""

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from targets import mixtures, shapes
from tests.support.laws import deviation
from toolkit import Problem
from toolkit import diagnostics as d
from toolkit._compiler.decorators import compile_part
from toolkit.diagnostics.stein_discrepancy import ADD_STEIN_KERNELS, add_stein_kernels

SIGMAS = 4.5  # a right law fails with probability 7e-6 per comparison
NORMAL = mixtures.gaussian_mixture([[0.0]], 1.0)
PLANE = mixtures.gaussian_mixture([[0.0, 0.0]], 1.0)


def gaussian_mmd(shift, scale, width, dim):
    """MMD² of N(0, I) and N(shift, scale² I) in closed form."""

    def mean(variance, square):
        return (width**2 / (width**2 + variance)) ** (dim / 2) * np.exp(-0.5 * square / (width**2 + variance))

    square = dim * shift**2
    return mean(2.0, 0.0) + mean(2.0 * scale**2, 0.0) - 2.0 * mean(1.0 + scale**2, square)


@pytest.mark.parametrize(("shift", "scale"), [(0.0, 1.0), (0.5, 1.0), (0.0, 1.5)])
@pytest.mark.parametrize("width", [0.3, 2.0])
def test_mmd_of_gaussians(shift, scale, width):
    """Unbiased over 200 repeats of small samples; with the pairs of a point with itself it is not."""
    rng = np.random.default_rng(31)
    pairs = [(rng.standard_normal((40, 3)), shift + scale * rng.standard_normal((60, 3))) for _ in range(200)]
    law = gaussian_mmd(shift, scale, width, 3)
    values = [d.mmd(x, y, bandwidth=width).squared for x, y in pairs]
    assert deviation(values, law) < SIGMAS
    with_itself = [d.mmd(x, y, bandwidth=width, unbiased=False).squared for x, y in pairs]
    assert deviation(with_itself, law) > SIGMAS
    assert min(with_itself) > 0.0


def test_spread_of_mmd_on_independent_draws():
    """Of equal laws: the standard deviation over 500 repeats, of a skewed law, within 15 %; also with weights."""
    rng = np.random.default_rng(32)
    found = [d.mmd(rng.standard_normal((100, 2)), rng.standard_normal((300, 2)), bandwidth=1.0) for _ in range(500)]
    squared, _, spread = np.array(found).T
    assert spread.mean() == pytest.approx(squared.std(), rel=0.15)
    assert abs(squared.mean()) < SIGMAS * squared.std() / np.sqrt(500)
    found = []
    for _ in range(500):
        x = 1.3 * rng.standard_normal((200, 1))
        weights = np.exp(-0.5 * x[:, 0] ** 2 * (1.0 - 1.0 / 1.3**2))
        found.append(d.mmd(x, rng.standard_normal((200, 1)), bandwidth=1.0, weights=weights))
    squared, _, spread = np.array(found).T
    assert abs(squared.mean()) < SIGMAS * squared.std() / np.sqrt(500) + 2e-4  # weights scaled to their sum: 1/n
    assert spread.mean() == pytest.approx(squared.std(), rel=0.2)
    unweighted = [d.mmd(1.3 * rng.standard_normal((200, 1)), rng.standard_normal((200, 1))).squared for _ in range(50)]
    assert deviation(unweighted, 0.0) > SIGMAS


def test_mmd_and_its_spread_in_tiles_are_the_sums_over_all_pairs():
    rng = np.random.default_rng(40)
    x, y, w = rng.standard_normal((700, 3)), rng.standard_normal((500, 3)) + 0.2, rng.random(500)
    found = d.mmd(x, y, other_weights=w, bandwidth=1.3)
    everything = np.concatenate([x, y])
    kernel = np.exp(-((everything[:, None] - everything) ** 2).sum(axis=2) / (2.0 * 1.3**2))
    v, w = np.full(700, 1 / 700), w / w.sum()
    within = [(a @ k @ a - a @ a) / (1.0 - a @ a) for a, k in ((v, kernel[:700, :700]), (w, kernel[700:, 700:]))]
    assert found.squared == pytest.approx(sum(within) - 2.0 * v @ kernel[:700, 700:] @ w, rel=1e-10)
    pooled = np.append(700 * v, 500 * w) / 1200
    means = kernel @ pooled
    centred = kernel - means - means[:, None] + pooled @ means
    np.fill_diagonal(centred, 0.0)
    squares = (pooled @ centred**2 @ pooled) / (1.0 - pooled @ pooled)
    assert found.spread == pytest.approx(np.sqrt(2.0 * squares) * (v @ v + w @ w), rel=1e-10)


def test_mmd_of_places_far_apart_under_a_narrow_kernel_and_at_any_size():
    """Clusters at ±1 under a bandwidth of 2⁻²⁵ are as those at ±50 under 1: no digits are lost to their distance."""
    rng = np.random.default_rng(42)
    x, y = np.round(rng.standard_normal((2, 200, 1)) * 2**20) / 2**20
    side = np.repeat([-50.0, 50.0], 100)[:, None]
    wide = d.mmd(x + side, 2.0 * y + side, bandwidth=1.0)
    h = 2.0**-25
    narrow = d.mmd(h * x + np.sign(side), 2.0 * h * y + np.sign(side), bandwidth=h)
    np.testing.assert_allclose(narrow[::2], wide[::2], rtol=1e-6)
    plain = d.mmd(x, 2.0 * y)
    for size in (2.0**600, 2.0**-600):
        scaled = d.mmd(size * x, 2.0 * size * y)
        np.testing.assert_allclose([scaled.squared, scaled.bandwidth / size], plain[:2], rtol=1e-12)


def test_mmd_in_chains_and_numbers():
    rng = np.random.default_rng(33)
    x, y, w = rng.standard_normal((2, 30, 2)), rng.standard_normal((25, 2)) + 1e6, rng.random((2, 30))
    x += 1e6  # distances far from the origin
    once = d.mmd(x, y, weights=w)
    shares = (w / w.sum(axis=1, keepdims=True) / 2.0).ravel()
    flat = x.reshape(-1, 2)

    def kernel(a, b):
        return np.exp(-((a[:, None] - b) ** 2).sum(axis=2) / (2.0 * once.bandwidth**2))

    k = kernel(flat, flat) * shares[:, None] * shares
    first = (k.sum() - np.trace(k)) / (1.0 - (shares**2).sum())
    second = (kernel(y, y).sum() - 25) / (25 * 24)
    law = first + second - 2.0 * (shares @ kernel(flat, y)).sum() / 25
    assert once.squared == pytest.approx(law, rel=1e-7)
    everything = np.concatenate([flat, y])
    lengths = np.linalg.norm(everything[:, None] - everything, axis=2)[np.triu_indices(85, 1)]
    assert once.bandwidth == pytest.approx(np.median(lengths))
    assert d.mmd(np.zeros((5, 1)), np.zeros((5, 1))).bandwidth == 1.0


@pytest.mark.parametrize("weighted", [False, True])
def test_wasserstein_is_scipy_s(weighted):
    rng = np.random.default_rng(34)
    x, y = rng.standard_normal((300, 2)), 2.0 * rng.standard_normal((170, 2)) + 1.0
    v, w = (rng.random(300), rng.random(170)) if weighted else (None, None)
    theirs = [stats.wasserstein_distance(x[:, i], y[:, i], v, w) for i in range(2)]
    np.testing.assert_allclose(d.wasserstein(x, y, weights=v, other_weights=w).distance, theirs, rtol=1e-12)


def test_wasserstein_of_gaussians():
    """N(0, 1) and N(1, 2²) lie E|1 + Z| apart, by quantiles."""
    shares = (np.arange(20_000) + 0.5) / 20_000
    x = stats.norm.ppf(shares)[:, None]
    law = quad(lambda z: abs(1.0 + z) * stats.norm.pdf(z), -10, 10, points=[-1.0])[0]
    assert d.wasserstein(x, 1.0 + 2.0 * x).distance[0] == pytest.approx(law, rel=1e-3)


def test_wasserstein_of_independent_draws_has_the_expected_mean():
    rng = np.random.default_rng(35)
    found = [d.wasserstein(rng.standard_normal((200, 1)), rng.standard_normal((800, 1))) for _ in range(500)]
    distance, expected = np.array(found)[..., 0].T
    assert abs(distance.mean() - expected.mean()) < SIGMAS * distance.std() / np.sqrt(500) + 0.01 * distance.mean()
    assert abs(distance.mean() - expected.mean() * np.sqrt(0.8)) > SIGMAS * distance.std() / np.sqrt(500)  # one of two
    law = (
        np.sqrt(2.0 / np.pi * (1 / 200 + 1 / 800))
        * quad(lambda z: np.sqrt(stats.norm.cdf(z) * stats.norm.sf(z)), -9, 9)[0]
    )
    assert expected.mean() == pytest.approx(law, rel=0.02)


@pytest.mark.parametrize(("scale", "beta", "temperature"), [(1.0, -0.5, 1.0), (0.4, -0.3, 2.0)])
def test_ksd_of_another_law_is_the_double_integral(scale, beta, temperature):
    """Nodes weighted as N(0.5, 1.2²) against exp(−U/T) of N(0, 1): ∬ q δ(x) k δ(y) q; with another T it fails."""
    x = np.linspace(-9.0, 10.0, 800)
    w = stats.norm.pdf(x, 0.5, 1.2)
    w /= w.sum()
    difference = -x / temperature + (x - 0.5) / 1.44
    kernel = (scale**2 + (x[:, None] - x) ** 2) ** beta
    law = (w * difference) @ kernel @ (w * difference)
    for t, right in ((temperature, True), (1.3, False)):
        found = d.ksd(x[:, None], NORMAL, weights=w, scale=scale, beta=beta, temperature=t, unbiased=False).squared
        assert (abs(found / law - 1.0) < 1e-6) == right


def test_stein_kernel_is_that_of_differences():
    rng = np.random.default_rng(36)
    points, scores, h = rng.standard_normal((2, 3)), rng.standard_normal((2, 3)), 1e-4
    (x, y), (s, t) = points, scores
    c, beta = 0.8, -0.4

    def k(a, b):
        return (c**2 + ((a - b) ** 2).sum()) ** beta

    steps = h * np.eye(3)
    by_x = np.array([(k(x + e, y) - k(x - e, y)) / (2 * h) for e in steps])
    by_y = np.array([(k(x, y + e) - k(x, y - e)) / (2 * h) for e in steps])
    both = sum((k(x + e, y + e) - k(x + e, y - e) - k(x - e, y + e) + k(x - e, y - e)) / (4 * h * h) for e in steps)
    law = s @ t * k(x, y) + s @ by_y + t @ by_x + both
    found = np.zeros((2, 2))
    add = compile_part(add_stein_kernels, ADD_STEIN_KERNELS)
    add(points.T.copy(), scores.T.copy(), np.array([3.0, 0.0]), c, beta, found, np.empty((3, 2)))
    np.testing.assert_allclose(found, [[0.0, 3.0 * law], [0.0, 9.0 * law**2]], rtol=1e-6)


def test_ksd_of_exact_draws():
    """Mean 0 and the spread that is given with it, over 400 repeats; draws 10 % too wide are rejected by their mean."""
    draws = PLANE.truth.independent_draws(400 * 150, seed=6).reshape(400, 150, 2)
    squared, spread = np.array([d.ksd(x, PLANE) for x in draws]).T
    assert abs(squared.mean()) < SIGMAS * squared.std() / 20.0
    assert spread.mean() == pytest.approx(squared.std(), rel=0.15)
    wide = [d.ksd(1.1 * x, PLANE).squared for x in draws]
    assert deviation(wide, 0.0) > SIGMAS
    with_itself = np.array([d.ksd(x, PLANE, unbiased=False).squared for x in draws])
    own = (draws[0] ** 2).sum() + 2 * 150  # u(x, x) = |s|² + dim at scale 1
    assert with_itself.mean() == pytest.approx(own / 150**2, rel=0.1)
    rng = np.random.default_rng(37)
    weighted = []
    for x in draws:
        y = 1.3 * rng.standard_normal((150, 2))
        weights = np.exp(-0.5 * (y**2).sum(axis=1) * (1.0 - 1.0 / 1.3**2))
        weighted.append(d.ksd(y, PLANE, weights=weights).squared)
        assert x.shape == y.shape
    assert abs(np.mean(weighted)) < SIGMAS * np.std(weighted) / 20.0 + 2e-3


@pytest.mark.parametrize("unbiased", [True, False])
def test_ksd_in_tiles_is_the_sum_over_all_pairs(unbiased):
    x = PLANE.truth.independent_draws(2 * 601, seed=7)
    w = np.random.default_rng(41).random((2, 601))
    found = d.ksd(x.reshape(2, 601, 2), PLANE, weights=w, scale=0.7, beta=-0.3, unbiased=unbiased)
    shares = (w / w.sum(axis=1, keepdims=True) / 2.0).ravel()
    square, product = ((x[:, None] - x) ** 2).sum(axis=2), x @ x.T  # the score is −x, so (t − s)·(x − y) = |x − y|²
    base = 0.49 + square
    u = base**-0.3 * product - 0.6 * base**-1.3 * (square - 2.0) - 4.0 * 0.3 * 1.3 * base**-2.3 * square
    if unbiased:
        np.fill_diagonal(u, 0.0)
    norm = 1.0 - shares @ shares if unbiased else 1.0
    law = shares @ u @ shares / norm, np.sqrt(2.0 * shares**2 @ u**2 @ shares**2) / norm
    np.testing.assert_allclose(found, law, rtol=1e-10)


def test_ksd_is_blind_to_the_weights_of_far_modes():
    pair = mixtures.gaussian_mixture([[-20.0], [20.0]], 1.0)
    one = d.ksd(20.0 + NORMAL.truth.independent_draws(500, seed=8), pair)
    assert abs(one.squared) < 5 * one.spread


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: d.mmd(np.zeros(5), np.zeros((5, 1))), r"draws must have shape \(n, dim\) or \(chain, draw, dim\)"),
        (lambda: d.mmd(np.zeros((5, 1)), np.zeros((5, 2))), "others must have the dimension of draws, 1, got 2"),
        (lambda: d.mmd(np.zeros((5, 1)), np.zeros((1, 1))), "draws and others must have at least 2 points"),
        (lambda: d.mmd(np.zeros((5, 1)), np.zeros((5, 1)), bandwidth=0), "bandwidth must be finite and > 0"),
        (lambda: d.mmd(np.zeros((5, 1)), np.zeros((5, 1)), other_weights=np.ones(4)), "other_weights must have shape"),
        (lambda: d.wasserstein(np.zeros((5, 1)), np.zeros((5, 2))), "others must have the dimension of draws"),
        (lambda: d.wasserstein(np.zeros((5, 1)), np.zeros((5, 1)), weights=-np.ones(5)), "weights must be ≥ 0"),
        (lambda: d.ksd(np.zeros((5, 2)), Problem(PLANE, shapes.cross().domain)), "must have no domain"),
        (lambda: d.ksd(np.zeros((5, 2)), None), "problem must be a Problem or a Target"),
        (lambda: d.ksd(np.zeros((5, 2)), NORMAL), r"points must have shape \(n, 1\)"),
        (lambda: d.ksd(np.zeros((1, 1)), NORMAL), "draws must have at least 2 points"),
        (lambda: d.ksd(np.zeros((5, 1)), NORMAL, beta=-1.0), "beta must be finite and > -1"),
        (lambda: d.ksd([[-1e154], [1e154]], NORMAL), "draws must be small enough"),
        (lambda: d.ksd(np.zeros((5, 1)), NORMAL, scale=0), "scale must be finite and > 0"),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()
