"""KL of weighted and dependent draws on a grid: its bias, the effective number, what remains without the bias."""

import numpy as np
import pytest
from scipy import stats

from targets import mixtures
from tests.support.laws import deviation
from toolkit import diagnostics as d

SIGMAS = 4.5  # a right law fails with probability 7e-6 per comparison
EDGES = np.linspace(-4.0, 4.0, 41)
MASSES = np.diff(stats.norm.cdf(EDGES))
GRID = np.linspace(-4.0, 4.0, 9)


def independent(rng):
    return rng.standard_normal((4, 1000, 1)), None


def repeated(rng):
    """Every draw five times."""
    return np.repeat(rng.standard_normal((4, 200, 1)), 5, axis=1), None


def weighted(rng):
    """From N(0, 1.5²)."""
    draws = 1.5 * rng.standard_normal((4, 1000, 1))
    return draws, 7.0 * np.exp(-0.5 * draws[..., 0] ** 2 * (1.0 - 1.0 / 1.5**2))


@pytest.mark.parametrize("way", [independent, repeated, weighted])
def test_debiased_kl_of_exact_draws_is_0_on_average(way):
    """Over 200 repeats, with 3 % of the bias as slack, 15 % for weights; what is not corrected so is rejected."""
    rng = np.random.default_rng(21)
    found = [d.grid_kl(x, MASSES, EDGES, weights=w) for x, w in (way(rng) for _ in range(200))]
    kl, number, expected, debiased = np.array(found).T
    error = np.std(debiased, ddof=1) / np.sqrt(200)
    assert abs(debiased.mean()) < SIGMAS * error + 0.06 * expected.mean()
    assert (
        abs((kl - d.expected_kl(MASSES, 4000)).mean()) > SIGMAS * error + 0.06 * expected.mean() or way is independent
    )
    assert kl.mean() > SIGMAS * error + 0.06 * expected.mean()
    law = {independent: 4000.0, repeated: 800.0}.get(way)
    if law:
        assert np.mean(1.0 / number) == pytest.approx(1.0 / law, rel=0.02)


def test_debiased_kl_of_biased_draws_is_the_kl_of_their_law():
    """Draws of N(0.3, 1): 0.045, over the cells; with the bias of 4,000 draws it is 10 % more."""
    rng = np.random.default_rng(22)
    q = np.diff(stats.norm.cdf(EDGES - 0.3))
    law = np.sum(MASSES * np.log(MASSES / q))
    found = np.array([d.grid_kl(rng.standard_normal((2, 2000, 1)) + 0.3, MASSES, EDGES) for _ in range(100)])
    error = found[:, 3].std(ddof=1) / 10.0
    assert abs(found[:, 3].mean() - law) < SIGMAS * error + 0.01 * law
    assert abs(found[:, 0].mean() - law) > SIGMAS * error + 0.01 * law


def test_cell_ess_in_two_dimensions_of_chains_that_remember():
    """Each state stays with probability 0.8, else a new draw: (1 + 0.8) / (1 − 0.8) = 9 draws are worth one.

    Batches of 250 miss 2 Σ k 0.8^k / 250 of the 9.
    """
    rng = np.random.default_rng(23)
    masses = np.outer(*[np.diff(stats.norm.cdf(GRID))] * 2)
    numbers = []
    for _ in range(40):
        fresh = rng.standard_normal((4, 5000, 2))
        last = np.maximum.accumulate(np.where(rng.random((4, 5000)) < 0.2, np.arange(5000), 0), axis=1)
        numbers.append(d.cell_ess(np.take_along_axis(fresh, last[..., None], axis=1), masses, GRID, GRID))
    assert deviation(1.0 / np.array(numbers), 9.0 / 20_000 * (1.0 - 2.0 * 20.0 / 9.0 / 250)) < SIGMAS
    assert deviation(1.0 / np.array(numbers), 9.5 / 20_000) > SIGMAS


def test_grid_kl_is_kl_divergence_of_all_chains():
    problem = mixtures.gaussian_grid25()
    edges = np.linspace(-5.0, 5.0, 51)
    draws = problem.truth.independent_draws(4000, seed=1).reshape(2, 2000, 2)
    found = d.grid_kl(draws, problem.truth, edges, edges)
    counts = d.cell_counts(draws.reshape(-1, 2), edges, edges)
    assert found.kl == pytest.approx(
        d.kl_divergence(counts, problem.truth.cell_masses(edges, edges), total=4000), rel=1e-13
    )
    assert found.expected == d.expected_kl(problem.truth.cell_masses(edges, edges), round(found.n_effective))
    fixed = d.grid_kl(draws, problem.truth, edges, edges, n_effective=4000)
    assert fixed.debiased == pytest.approx(fixed.kl - fixed.expected, rel=1e-12)
    many = np.repeat(draws.reshape(1000, 4, 2), 2, axis=0)  # more chains than batches
    assert d.grid_kl(many, problem.truth, edges, edges).kl > 0.0


@pytest.mark.parametrize("pseudo_count", [0.05, 4.0])
def test_the_pseudo_count_is_that_of_kl_divergence(pseudo_count):
    """In ``kl`` and ``expected`` of a grid, and all along a path; with its default they are others."""
    draws, _ = independent(np.random.default_rng(26))
    found = d.grid_kl(draws, MASSES, EDGES, pseudo_count=pseudo_count, n_effective=4000)
    counts = d.cell_counts(draws.reshape(-1, 1), EDGES)
    kl = d.kl_divergence(counts, MASSES, total=4000, pseudo_count=pseudo_count)
    expected = d.expected_kl(MASSES, 4000, pseudo_count=pseudo_count)
    np.testing.assert_allclose(found, [kl, 4000, expected, kl - expected], rtol=1e-12)
    plain = np.array(d.grid_kl(draws, MASSES, EDGES, n_effective=4000))
    assert (abs(plain / found - 1.0)[[0, 2, 3]] > 1e-3).all()
    path = d.kl_path(draws, MASSES, EDGES, checkpoints=[50, 1000], pseudo_count=pseudo_count)
    first = d.cell_counts(draws[2, :50], EDGES)
    assert path[2, 0] == pytest.approx(d.kl_divergence(first, MASSES, total=50, pseudo_count=pseudo_count), rel=1e-12)
    assert (abs(path / d.kl_path(draws, MASSES, EDGES, checkpoints=[50, 1000]) - 1.0) > 1e-3).all()


def test_cell_ess_of_weighted_draws():
    """That of ``grid_kl``; of weights that are all one number, that of none."""
    draws, weights = weighted(np.random.default_rng(27))
    number = d.cell_ess(draws, MASSES, EDGES, weights=weights)
    assert number == d.grid_kl(draws, MASSES, EDGES, weights=weights).n_effective
    plain = d.cell_ess(draws, MASSES, EDGES)
    assert d.cell_ess(draws, MASSES, EDGES, weights=np.full((4, 1000), 3.0)) == pytest.approx(plain, rel=1e-12)
    assert abs(number / plain - 1.0) > 0.2


def test_weighted_counts_are_numpy_s():
    rng = np.random.default_rng(24)
    x, w = rng.standard_normal((500, 2)), rng.random(500)
    x[:3] = [[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]]  # on the edges, the last ones included
    edges = np.linspace(-1.0, 1.0, 6)
    theirs = np.histogram2d(x[:, 0], x[:, 1], bins=[edges, edges], weights=w * 500 / w.sum())[0]
    np.testing.assert_allclose(d.cell_counts(x, edges, edges, weights=3e5 * w), theirs, rtol=1e-12)
    np.testing.assert_array_equal(d.cell_counts(x, edges, edges), np.histogram2d(*x.T, bins=[edges, edges])[0])
    np.testing.assert_array_equal(d.cell_counts(x[:, :1], edges), np.histogram(x[:, 0], edges)[0])


def test_kl_path_of_weighted_draws_in_one_dimension():
    rng = np.random.default_rng(25)
    draws, weights = weighted(rng)
    path = d.kl_path(draws, MASSES, EDGES, checkpoints=[100, 1000], weights=weights)
    for chain in range(4):
        for i, n in enumerate((100, 1000)):
            counts = d.cell_counts(draws[chain, :n], EDGES, weights=weights[chain, :n])
            assert path[chain, i] == pytest.approx(d.kl_divergence(counts, MASSES, total=n), rel=1e-10)
    np.testing.assert_allclose(d.kl_path(draws, MASSES, EDGES, weights=weights)[:, 0], path[:, 1], rtol=1e-10)
    wrong = d.kl_path(draws, MASSES, EDGES)[:, 0]
    assert (wrong > 2.0 * path[:, 1]).all()


def test_one_cell_and_one_draw():
    assert d.cell_ess(np.zeros((1, 10, 1)), [1.0], [-1.0, 1.0]) == 10.0
    assert np.isnan(d.cell_ess(np.zeros((1, 1, 1)), [1.0], [-1.0, 1.0]))
    assert d.grid_kl(np.zeros((1, 1, 1)), [1.0], [-1.0, 1.0]).kl == 0.0


def test_batches_that_are_all_the_same():
    draws = np.tile([-0.5, 0.5], 200)[None, :, None]
    assert d.cell_ess(draws, [0.5, 0.5], [-1, 0, 1]) == np.inf
    assert d.grid_kl(draws, [0.5, 0.5], [-1, 0, 1]).kl == 0.0


def test_first_draws_without_weight_have_no_kl():
    path = d.kl_path(np.zeros((1, 4, 1)), [0.5, 0.5], [-1, 0.5, 1], checkpoints=[1, 4], weights=[[0, 0, 1, 1]])
    assert np.isnan(path[0]).tolist() == [True, False]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: d.grid_kl(np.zeros((5, 1)), MASSES, EDGES), r"draws must have shape \(chain, draw, dim\)"),
        (
            lambda: d.grid_kl(np.zeros((1, 5, 1)), MASSES, EDGES, EDGES),
            "truth must have the masses of the grid's cells",
        ),
        (lambda: d.grid_kl(np.zeros((1, 5, 1)), np.ones((1, 1)), [0, 1], [0, 1]), "at least 2 coordinates"),
        (lambda: d.grid_kl(np.zeros((1, 5, 1)), MASSES[:-1], EDGES), "truth must have the masses of the grid's cells"),
        (lambda: d.grid_kl(np.zeros((1, 5, 1)), MASSES, EDGES, n_effective=0), "n_effective must be finite and > 0"),
        (lambda: d.grid_kl(np.zeros((1, 5, 1)), "truth", EDGES), "masses must be an array of real numbers"),
        (lambda: d.cell_counts(np.zeros((5, 1)), [0, 0]), "x_edges must be at least 2 numbers that increase"),
        (lambda: d.cell_counts(np.zeros((5, 1)), [0, 1], weights=np.ones(4)), "weights must have shape"),
        (
            lambda: d.kl_path(np.zeros((1, 5, 1)), [1.0], [0, 1], weights=np.ones((2, 5))),
            "weights must have the chains",
        ),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()
