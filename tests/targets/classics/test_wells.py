"""Egg box, Müller–Brown, Himmelblau, double wells: formulas, published numbers, truth by other routes, draws by χ²."""

import numpy as np
import pytest
from scipy.integrate import dblquad, quad
from scipy.spatial import KDTree

from targets.classics.wells import double_well, egg_box, himmelblau, muller_brown
from tests.support.oracles import agrees, held

RNG = np.random.default_rng(71)
FAR = np.array([[1e6, 0.0], [0.0, 1e6], [-1e6, 3.0], [1e6, -1e6]])
EGGS, BROWN, BLAU = egg_box(), muller_brown(), himmelblau()  # each with one truth for all tests
LEVELS = np.array([0.001, 0.1, 0.5, 0.9, 0.999])


def egg_box_energy(x, barrier=4.0, spread=1.0):
    height = (2 + np.cos(np.pi * x[:, 0]) * np.cos(np.pi * x[:, 1])) ** 5
    return barrier * (243 - height) / 211 + (x**2).sum(axis=1) / (2 * spread**2)


def muller_brown_energy(x, scale=0.05):
    total = 0.0
    for height, a, b, c, x0, y0 in zip(
        (-200, -100, -170, 15), (-1, -1, -6.5, 0.7), (0, 0, 11, 0.6), (-10, -10, -6.5, 0.7),
        (1, 0, -0.5, -1), (0, 0.5, 1.5, 1), strict=True,
    ):  # fmt: skip
        dx, dy = x[:, 0] - x0, x[:, 1] - y0
        total = total + height * np.exp(a * dx**2 + b * dx * dy + c * dy**2)
    return scale * total


def himmelblau_energy(x, scale=0.1):
    return scale * ((x[:, 0] ** 2 + x[:, 1] - 11) ** 2 + (x[:, 0] + x[:, 1] ** 2 - 7) ** 2)


def double_well_energy(x, barrier=4.0, tilt=0.5):
    return (barrier * (x**2 - 1) ** 2 + tilt * x).sum(axis=1)


@pytest.mark.parametrize(
    ("target", "energy", "reach"),
    [
        (egg_box(), egg_box_energy, 6),
        (egg_box(barrier=9.0, spread=0.7), lambda x: egg_box_energy(x, 9.0, 0.7), 3),
        (muller_brown(), muller_brown_energy, 2),
        (muller_brown(scale=0.2), lambda x: muller_brown_energy(x, 0.2), 4),
        (himmelblau(), himmelblau_energy, 6),
        (himmelblau(scale=0.02), lambda x: himmelblau_energy(x, 0.02), 6),
        (double_well(), double_well_energy, 2),
        (double_well(dim=64, barrier=2.0, tilt=-1.0), lambda x: double_well_energy(x, 2.0, -1.0), 2),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_energy_and_gradient_are_those_of_the_formula(target, energy, reach):
    agrees(target, energy, RNG.uniform(-reach, reach, (200, target.dim)), atol=1e-10)


@pytest.mark.parametrize(("target", "energy"), [(egg_box(), egg_box_energy), (himmelblau(), himmelblau_energy)])
def test_far_out(target, energy):
    agrees(target, energy, FAR, rtol=1e-11, atol=1e-7)


def test_muller_brown_goes_on_along_its_tangent():
    target = muller_brown(scale=1.0)
    energy, gradient = target.evaluate(np.vstack([FAR, [[-1.0, 7.5]], [[-1.0, 7.6]], [[1e150, 1e150]]]))
    assert np.isfinite(energy).all()
    assert np.isfinite(gradient[:-1]).all()
    edge = 0.7 * 6.5**2 - 30.0  # < 0: not yet beyond; 0.7 · 6.6² is beyond by 0.492
    assert energy[4] == pytest.approx(15 * np.exp(30.0 + edge), rel=1e-12)
    assert energy[5] == pytest.approx(15 * np.exp(30.0) * (1 + 0.7 * 6.6**2 - 30.0), rel=1e-12)
    assert gradient[5, 1] == pytest.approx(15 * np.exp(30.0) * 1.4 * 6.6, rel=1e-12)
    assert target.evaluate(np.array([[-1.0, 1e6]]))[0][0] == pytest.approx(15 * np.exp(30) * 0.7e12, rel=1e-4)


def test_published_numbers():
    brown = muller_brown(scale=1.0)
    wells = np.array([[-0.558, 1.442], [0.623, 0.028], [-0.050, 0.467]])
    np.testing.assert_allclose(brown.truth.modes.centres, wells, atol=6e-4)
    np.testing.assert_allclose(brown.evaluate(brown.truth.modes.centres)[0], [-146.70, -108.17, -80.77], atol=5e-3)
    saddles = np.array([[-0.822, 0.624], [0.212, 0.293]])
    np.testing.assert_allclose(brown.evaluate(saddles)[0], [-40.66, -72.25], atol=1e-2)
    blau = himmelblau(scale=1.0)
    np.testing.assert_allclose(blau.evaluate(blau.truth.modes.centres)[0], 0.0, atol=1e-20)
    exact = [[3.0, 2.0], [-2.805118, 3.131312], [-3.779310, -3.283186], [3.584428, -1.848126]]
    np.testing.assert_allclose(blau.truth.modes.centres, exact, atol=1e-6)
    saddles = np.array([[3.385, 0.074], [0.087, 2.884], [-3.073, -0.081], [-0.128, -1.954]])
    np.testing.assert_allclose(0.1 * blau.evaluate(saddles)[0], [1.3, 6.8, 10.4, 17.8], atol=0.05)


@pytest.mark.cases(2)
@pytest.mark.parametrize("target", [EGGS, BROWN, BLAU, double_well(dim=3)], ids=lambda t: t.name)
def test_centres_are_minima(target):
    centres = target.truth.modes.centres
    energy, gradient = target.evaluate(centres)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-9)
    for _ in range(8):
        nearby = centres + RNG.normal(size=centres.shape) * 1e-3
        assert (target.evaluate(nearby)[0] > energy).all()


def test_egg_box_lists_only_wells_that_are_there():
    assert len(EGGS.truth.centres) == 25
    np.testing.assert_array_equal(egg_box(barrier=0.5, spread=0.3).truth.modes.centres, [[0.0, 0.0]])


def test_egg_box_barrier_is_that_between_wells():
    target = egg_box(barrier=6.0, spread=2.0)
    along = np.linspace(0, 1, 101)[:, None] * [[1.0, 1.0]]
    assert np.ptp(target.evaluate(along)[0] - (along**2).sum(axis=1) / 8) == pytest.approx(6.0, rel=1e-12)


EDGES = {
    "egg": [np.linspace(-5, 5, 41)] * 2,
    "mul": [np.linspace(-1.6, 1.2, 29), np.linspace(-0.6, 2.2, 29)],
    "him": [np.linspace(-5, 5, 41)] * 2,
}


@pytest.mark.slow_cases("himmelblau(0.1)")
@pytest.mark.cases(1)
@pytest.mark.parametrize("target", [EGGS, BROWN, BLAU], ids=lambda t: t.name)
def test_draws_agree_with_cells_energies_moments_and_modes(target):
    held(target, EDGES[target.name[:3]], n=50_000, scale=1.1)


@pytest.mark.slow_cases("2")
@pytest.mark.parametrize("dim", [1, 2, 8])
def test_double_well_draws_agree_with_cells_energies_moments_and_modes(dim):
    target = double_well(dim=dim, barrier=2.0, tilt=0.7)
    held(target, [np.linspace(-2, 2, 33)] * min(dim, 2), n=20_000, scale=1.1)


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    ("target", "energy", "window"),
    [
        (EGGS, egg_box_energy, (-9, 9, -9, 9)),
        (BROWN, muller_brown_energy, (-4, 3, -3, 4.5)),
        (BLAU, himmelblau_energy, (-7, 7, -7, 7)),
    ],
    ids=["egg_box", "muller_brown", "himmelblau"],
)
def test_truth_against_the_trapezoidal_rule(target, energy, window):
    """Exponentially exact where the integrand is smooth and nothing of it is on the rim."""
    truth = target.truth
    x, y = np.linspace(*window[:2], 801) + 0.1234e-2, np.linspace(*window[2:], 801) + 0.2718e-2
    points = np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1).reshape(-1, 2)
    values = np.real(energy(points))
    density = np.exp(-values)
    some = density > 1e-14 * density.max()
    points, values, density = points[some], values[some], density[some]
    total = density.sum() * (x[1] - x[0]) * (y[1] - y[0])
    assert truth.log_normaliser == pytest.approx(np.log(total), abs=1e-6)
    mean = density @ points / density.sum()
    np.testing.assert_allclose(truth.mean, mean, atol=1e-6)
    np.testing.assert_allclose(
        truth.covariance, (points - mean).T * density @ (points - mean) / density.sum(), atol=1e-5
    )
    order = np.argsort(values)
    below = np.cumsum(density[order]) / density.sum()
    np.testing.assert_allclose(
        np.interp(truth.energy_quantiles(LEVELS), values[order], below), LEVELS, atol=2e-3
    )  # the rule's own error where the integrand has a step
    nearest = KDTree(truth.modes.centres).query(points)[1]
    weights = np.bincount(nearest, density) / density.sum()
    np.testing.assert_allclose(truth.modes.weights, weights, atol=1e-3)
    low = np.array([0.1, 0.2])
    mass = dblquad(lambda v, u: np.exp(-energy(np.array([[u, v]])))[0], *(low[0], low[0] + 0.4), low[1], low[1] + 0.7)[
        0
    ]
    cell = truth.cell_masses([low[0], low[0] + 0.4], [low[1], low[1] + 0.7]).item()
    assert cell == pytest.approx(mass / total, abs=1e-6)


def test_double_well_against_adaptive_quadrature():
    target = double_well(dim=2, barrier=3.0, tilt=0.8)

    def one(x):
        return 3.0 * (x * x - 1) ** 2 + 0.8 * x

    def integral(function, low=-3.0, high=3.0):
        return quad(lambda x: function(x) * np.exp(-one(x)), low, high, limit=400, epsabs=1e-13, points=[-1, 0, 1])[0]

    z = integral(lambda x: 1.0)
    truth = target.truth
    assert truth.log_normaliser == pytest.approx(2 * np.log(z), abs=1e-6)
    mean = integral(lambda x: x) / z
    np.testing.assert_allclose(truth.mean, [mean, mean], atol=1e-6)
    np.testing.assert_allclose(truth.covariance, np.eye(2) * (integral(lambda x: x * x) / z - mean**2), atol=1e-5)
    border = np.sort(np.roots([12.0, 0.0, -12.0, 0.8]).real)[1]
    left = quad(lambda x: np.exp(-one(x)), -3, border)[0] / z
    weights = [left * left, left * (1 - left), left * (1 - left), (1 - left) ** 2]
    np.testing.assert_allclose(truth.modes.weights, weights, atol=1e-6)
    np.testing.assert_array_equal(truth.memberships([[-1.0, 1.0], [border + 1e-6, border - 1e-6]]), np.eye(4)[[1, 2]])

    grid = np.linspace(-2.6, 2.6, 20_001)
    energies, density = one(grid), np.exp(-one(grid))
    order = np.argsort(energies)
    below = np.cumsum(density[order]) - 0.5 * density[order]
    of_the_other = np.interp(truth.energy_quantiles(LEVELS)[:, None] - energies, energies[order], below, 0.0)
    np.testing.assert_allclose(of_the_other @ density / density.sum() ** 2, LEVELS, atol=2e-5)


def test_double_well_in_64_dimensions():
    target = double_well(dim=64, barrier=2.0, tilt=0.3)
    with pytest.raises(ValueError, match=r"^2\^64 modes are too many to list, and at most 4096 are: "):
        target.truth.modes  # noqa: B018
    with pytest.raises(ValueError, match=r"^2\^64 modes are too many to list"):
        target.truth.memberships(np.zeros((1, 64)))
    n = 20_000
    energies = target.evaluate(target.truth.independent_draws(n, seed=3))[0]
    levels = target.truth.energy_quantiles(LEVELS)
    error = np.sqrt(LEVELS * (1 - LEVELS) / n)
    assert (np.abs((energies[:, None] <= levels).mean(axis=0) - LEVELS) < 4.5 * error + 1e-4).all()
    wrong = double_well(dim=64, barrier=2.1, tilt=0.3).truth.energy_quantiles(0.5)
    assert abs((energies <= wrong).mean() - 0.5) > 4.5 * np.sqrt(0.25 / n)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: egg_box(barrier=0.0), r"^barrier must be finite and > 0, got 0\.0$"),
        (lambda: egg_box(spread=np.inf), "^spread must be finite and > 0 and ≤ 2, got inf$"),
        (lambda: egg_box(spread=2.5), r"^spread must be finite and > 0 and ≤ 2, got 2\.5$"),
        (lambda: muller_brown(scale=-0.05), r"^scale must be finite and > 0, got -0\.05$"),
        (lambda: himmelblau(scale=0.0), r"^scale must be finite and > 0, got 0\.0$"),
        (lambda: double_well(dim=0), "^dim must be ≥ 1 and < 131072, got 0$"),
        (lambda: double_well(barrier=-1.0), r"^barrier must be finite and > 0, got -1\.0$"),
        (lambda: double_well(tilt=6.2), r"^tilt must be finite and > -6\.1584 and < 6\.1584, got 6\.2$"),
    ],
)
def test_bad_numbers_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
