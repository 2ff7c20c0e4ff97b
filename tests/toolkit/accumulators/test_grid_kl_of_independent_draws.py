"""KL on a grid: known answers, its floor for independent draws, and what draws are worth."""

import numpy as np
import pytest
from scipy import stats

from targets import constrained, mixtures, shapes
from toolkit import diagnostics as d

EDGES = np.linspace(-2.5, 2.5, 101)


@pytest.fixture(scope="module")
def flower():
    return constrained(mixtures.cosine25(), shapes.flower())


@pytest.fixture(scope="module")
def masses(flower):
    return flower.truth.cell_masses(EDGES, EDGES)


def test_kl_in_numbers():
    masses, counts = [0.5, 0.25, 0.25, 0.0], [6, 0, 2, 2]
    q = np.array([6.5, 0.5, 2.5]) / (10 + 1.5)
    expected = sum(p * np.log(p / r) for p, r in zip(masses[:3], q, strict=True))
    assert d.kl_divergence(counts, masses) == pytest.approx(expected, rel=1e-14)
    assert d.kl_divergence(counts, masses, pseudo_count=1e-9) > 3.0  # the empty cell costs without smoothing
    worse = d.kl_divergence(counts, masses, total=20.0)  # ten more draws, all beyond the grid
    assert worse == pytest.approx(expected + np.log(21.5 / 11.5), rel=1e-14)


def test_mass_beyond_the_grid_is_one_more_cell():
    inside = d.kl_divergence([30, 30], [0.3, 0.3], total=100)
    assert inside == pytest.approx(d.kl_divergence([30, 30, 40], [0.3, 0.3, 0.4]), rel=1e-14)


def test_kl_of_proportional_counts_vanishes(masses):
    assert abs(d.kl_divergence(masses * 1e12, masses)) < 1e-6


def test_wrong_draws_cost_what_the_formula_says():
    """Draws from q instead of p: KL(p ‖ q), once there are enough of them."""
    p, q = np.array([0.7, 0.2, 0.1]), np.array([0.1, 0.2, 0.7])
    counts = np.random.default_rng(71).multinomial(10**7, q)
    assert d.kl_divergence(counts, p) == pytest.approx(np.sum(p * np.log(p / q)), rel=2e-3)


@pytest.mark.parametrize("n", [50, 3_000, 50_000, 2_000_000])
def test_expected_kl_is_the_mean_over_independent_draws(masses, n):
    rng = np.random.default_rng(72)
    flat = masses.ravel() / masses.sum()
    values = [d.kl_divergence(rng.multinomial(n, flat), masses.ravel()) for _ in range(40)]
    error = np.std(values, ddof=1) / np.sqrt(40)
    assert abs(np.mean(values) - d.expected_kl(masses, n)) < 4.5 * error
    assert abs(np.mean(values) - d.expected_kl(masses, n + n // 5)) > 4.5 * error


def test_expected_kl_joins_its_two_formulas_smoothly():
    """A cell's mean count passes 150: the sum over the binomial law meets the expansion."""
    below, above = (d.expected_kl([0.5, 0.5], n) for n in (299, 301))
    assert abs(below - above) < 2e-5
    masses = np.full(100, 0.01)
    sum_formula, expansion = d.expected_kl(masses, 14_999), d.expected_kl(masses, 15_001)
    assert abs(sum_formula - expansion) < 1e-6


def test_equivalent_draws_invert_expected_kl(masses):
    numbers = np.array([10, 333, 4_000, 50_000, 700_000])
    kl = [d.expected_kl(masses, int(n)) for n in numbers]
    np.testing.assert_allclose(d.equivalent_draws(kl, masses), numbers, rtol=2e-3)
    low, high = d.equivalent_draws([1e-9, 50.0], masses)
    assert low == pytest.approx(1e7)
    assert high == pytest.approx(1.0)


def test_mass_beyond_the_grid_counts_in_the_expectation(flower):
    edges = np.linspace(-1.5, 1.5, 61)
    masses = flower.truth.cell_masses(edges, edges)
    assert masses.sum() < 0.95
    values = []
    for seed in range(20):
        draws = flower.truth.independent_draws(5000, seed=seed)
        values.append(d.kl_divergence(d.cell_counts(draws, edges, edges), masses, total=5000))
    assert abs(np.mean(values) - d.expected_kl(masses, 5000)) < 4.5 * np.std(values, ddof=1) / np.sqrt(20)


def test_few_even_cells():
    """One draw can look better than two: what draws are worth is read beyond the table's maximum."""
    assert d.expected_kl([1.0], 10) == 0.0
    even = np.full(4, 0.25)
    assert d.equivalent_draws(d.expected_kl(even, 1000), even) == pytest.approx(1000, rel=2e-3)
    other = d.expected_kl(even, 1000, pseudo_count=3.0)
    assert d.equivalent_draws(other, even, pseudo_count=3.0) == pytest.approx(1000, rel=2e-3)
    assert d.equivalent_draws(other, even) != pytest.approx(1000, rel=2e-3)


def test_kl_path_is_kl_of_every_prefix(flower, masses):
    draws = np.stack([flower.truth.independent_draws(3000, seed=s) for s in (1, 2)])
    path = d.kl_path(draws, masses, EDGES, EDGES, [10, 1000, 3000])
    assert path.shape == (2, 3)
    for chain in range(2):
        for i, n in enumerate((10, 1000, 3000)):
            counts = d.cell_counts(draws[chain, :n], EDGES, EDGES)
            assert path[chain, i] == pytest.approx(d.kl_divergence(counts, masses, total=n), rel=1e-14)


def test_cell_counts():
    counts = d.cell_counts([[0.5, 1.5], [0.5, 1.5], [9.0, 0.0]], [0, 1, 2], [0, 1, 2])
    assert counts.tolist() == [[0, 2], [0, 0]]


@pytest.mark.parametrize("n", [10**9, 10**12])
def test_expected_kl_of_very_many_draws(n):
    """(K − 1) / (2n), and with a cell of few draws the binomial sum, which is that of Poisson's law there."""
    assert d.expected_kl([0.3, 0.3, 0.4], n) == pytest.approx(1.0 / n, rel=1e-2 if n < 1e10 else 0.5)
    mean = 40.0
    k = np.arange(200)
    law = mean / n * (np.log(mean) + 1.5 / n - stats.poisson.pmf(k, mean) @ np.log(k + 0.5)) + 0.5 / n
    rest = (0.5 + 2 * 0.25) / n - 0.5 / n  # of the other two cells, and of their pseudo-counts: (K − 1) / (2n) less
    found = d.expected_kl([mean / n, 0.5, 0.5 - mean / n], n)
    assert found == pytest.approx(law + rest, abs=0.1 / n + 4e-15)


def test_expected_kl_of_a_cell_that_holds_all():
    """Its binomial law has no second outcome; the number of cells does not matter to the memory."""
    assert d.expected_kl([1.0, 1e-7], 10) == pytest.approx(np.log(11.0 / 10.5), abs=1e-5)
    masses = np.random.default_rng(73).random(2500)
    masses /= masses.sum()
    counts = stats.binom(1000, masses[:, None]).pmf(np.arange(60))
    law = np.sum(masses * (np.log(masses * (1000 + 1250)) - counts @ np.log(np.arange(60) + 0.5)))
    assert d.expected_kl(masses, 1000) == pytest.approx(law, rel=1e-10)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: d.kl_divergence([1, 2], [0.5, 0.25, 0.25]),
            r"counts must have the shape of masses, \(3,\), got \(2,\)",
        ),
        (lambda: d.kl_divergence([-1, 2], [0.5, 0.5]), "counts must be ≥ 0, got -1"),
        (lambda: d.kl_divergence([1, 2], [0.5, 0.5], pseudo_count=0), "pseudo_count must be finite and > 0"),
        (lambda: d.kl_divergence([1, 2], [0.5, 0.5], total=1), "total must be finite and ≥ 3"),
        (lambda: d.kl_divergence([np.nan, 2], [0.5, 0.5]), "counts must be finite"),
        (lambda: d.cell_counts(np.zeros(3), EDGES, EDGES), r"draws must have shape \(n, 2\), got \(3,\)"),
        (
            lambda: d.kl_path(np.zeros((5, 2)), [[1.0]], [0, 1], [0, 1], [1]),
            r"draws must have shape \(chain, draw, 2\)",
        ),
        (lambda: d.kl_path(np.zeros((1, 5, 2)), [[1.0]], [0, 1], [0, 1], [3, 9]), "checkpoints must increase"),
        (lambda: d.kl_path(np.zeros((1, 5, 2)), [[1.0]], [0, 1], [0, 1], [1.5]), "checkpoints must be integers"),
        (lambda: d.kl_path(np.zeros((1, 5, 2)), [1.0], [0, 1], [0, 1], [1]), r"masses must have the shape of the grid"),
        (lambda: d.expected_kl([1.0], 0), "n_draws must be ≥ 1"),
        (lambda: d.expected_kl([0.5, -0.1], 10), "masses must be ≥ 0"),
        (lambda: d.kl_divergence([1, 1], [25.0, 25.0]), "masses must be ≥ 0 and sum to at most 1"),
        (lambda: d.equivalent_draws([0.1], [1.0]), "masses must spread over cells"),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()
