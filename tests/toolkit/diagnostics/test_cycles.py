"""Combined cycles against known masses, and the two ways in which the harmonic mean misses them."""

import re

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

from targets import mixtures
from tests.support.laws import deviation
from toolkit import sample, samplers, schedules
from toolkit.diagnostics.cycles import combine_cycles, cycle_of

SIGMAS = 4.5  # a right law fails with probability 7e-6 per comparison
APART = 12.0


def two_modes(dim, masses, widths, modes, lengths, n_chains, seed, apart=APART):
    """Exact draws of cycles that each explore one of two normals: draws, energies, cycles, and which mode each is in.

    ``modes`` says which, ``lengths`` how many draws; the energy is that of the mixture, and 7 nats off.
    """
    rng = np.random.default_rng(seed)
    cycles = np.repeat(np.arange(len(modes)), lengths)
    mode = np.asarray(modes)[cycles]
    centres = np.zeros((2, dim))
    centres[1, 0] = apart
    z = rng.standard_normal((n_chains, cycles.size, dim))
    draws = centres[mode] + np.asarray(widths)[mode][:, None] * z
    log_parts = [
        np.log(masses[k]) + norm.logpdf(draws, centres[k], widths[k]).sum(axis=2) for k in range(2)
    ]  # fmt: skip
    return draws, 7.0 - logsumexp(log_parts, axis=0), cycles, mode


def shares(data, **options):
    """Weight of the second mode, (chain,)."""
    draws, energies, cycles, mode = data
    weights = combine_cycles(draws, energies, cycles, **options)
    assert weights.shape == energies.shape
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-12)
    return weights[:, mode == 1].sum(axis=1)


@pytest.mark.cases(2)
@pytest.mark.parametrize("dim", [1, 2])
@pytest.mark.parametrize("widths", [(0.3, 1.0), (1.0, 1.0), (1.5, 0.5)])
def test_regions_count_by_their_mass(dim, widths):
    """Whatever their widths, and however many cycles of whatever lengths visit them."""
    data = two_modes(dim, (0.2, 0.8), widths, (0, 1, 1, 0, 1), (300, 500, 200, 400, 400), n_chains=150, seed=dim)
    truncated = shares(data)
    assert abs(deviation(truncated, 0.8)) < SIGMAS
    assert truncated.std() < 2.0 * 0.16 * np.sqrt(1 / 700 + 1 / 1100)  # 0.16 = 0.2 · 0.8; of independent draws
    for wrong in (1100 / 1800, 0.2):  # the draws as they come; the modes' masses exchanged
        assert abs(deviation(truncated, wrong)) > SIGMAS
    assert abs(deviation(shares(data, method="harmonic"), 0.8)) > SIGMAS


def test_harmonic_means_count_a_region_once_for_every_cycle():
    data = two_modes(2, (0.5, 0.5), (1.0, 1.0), (1, 1, 0, 1), (400,) * 4, n_chains=150, seed=3)
    assert 0.68 < np.median(shares(data, method="harmonic")) < 0.82  # 3 : 1
    assert abs(deviation(shares(data), 0.5)) < SIGMAS


def test_harmonic_means_count_a_wide_region_too_little():
    """Density in place of mass: 1 : 16 for a region of equal mass and four times the width in two dimensions."""
    data = two_modes(2, (0.5, 0.5), (0.5, 2.0), (0, 1), (1000, 1000), n_chains=150, seed=4, apart=30.0)
    assert 0.02 < np.median(shares(data, method="harmonic")) < 0.15
    assert abs(deviation(shares(data), 0.5)) < SIGMAS


def test_more_draws_do_not_help_the_harmonic_mean():
    """A hundred times the draws: a tenth of the truncated estimate's spread, and more than a third of the other's."""
    draws = [two_modes(2, (0.5, 0.5), (1.0, 1.0), (0, 1), (n, n), n_chains=60, seed=5) for n in (100, 10_000)]
    spread = {}
    for method in ("truncated", "harmonic"):
        few, many = (shares(data, method=method) for data in draws)
        spread[method] = np.log(many / (1 - many)).std() / np.log(few / (1 - few)).std()
    assert 0.06 < spread["truncated"] < 0.17
    assert spread["harmonic"] > 0.33


def test_the_largest_energy_dominates_the_harmonic_mean():
    draws, energies, cycles, _ = two_modes(2, (0.5, 0.5), (1.0, 1.0), (0, 1), (10_000,) * 2, n_chains=20, seed=6)
    extremes = np.exp(energies[:, :10_000].max(axis=1) - logsumexp(energies[:, :10_000], axis=1))
    assert np.median(extremes) > 0.05  # one draw of ten thousand; 1e-4 if all counted alike
    weights = combine_cycles(draws, energies, cycles)
    energies[np.arange(20), energies[:, :10_000].argmax(axis=1)] += 1.0
    np.testing.assert_array_equal(combine_cycles(draws, energies, cycles), weights)


def test_cycles_that_cross_between_two_modes_are_one_region():
    rng = np.random.default_rng(7)
    draws = rng.standard_normal((3, 900, 1)) + 2.5 * rng.integers(0, 2, (3, 900, 1))
    weights = combine_cycles(draws, 0.5 * draws[:, :, 0] ** 2, np.arange(900) // 300)
    np.testing.assert_allclose(weights, 1 / 900, rtol=1e-12)


def test_cycles_are_linked_through_others():
    """Means 0, 1.4 and 2.8 apart in one region of any shape; without the middle one they are two regions."""
    rng = np.random.default_rng(8)
    draws = rng.standard_normal((1, 1200, 2))
    draws[:, 400:800, 0] += 1.4
    draws[:, 800:, 0] += 2.8
    energies, cycles = rng.standard_normal((1, 1200)), np.arange(1200) // 400
    assert np.unique(combine_cycles(draws, energies, cycles)).size == 1
    ends = cycles != 1
    assert np.unique(combine_cycles(draws[:, ends], energies[:, ends], cycles[ends])).size == 2
    assert np.unique(combine_cycles(draws[:, ends], energies[:, ends], cycles[ends], separation=4.0)).size == 1
    assert np.unique(combine_cycles(draws, energies, cycles, separation=1.0)).size == 3


@pytest.mark.parametrize("method", ["truncated", "harmonic"])
def test_one_cycle_weighs_all_draws_alike(method):
    data = two_modes(2, (0.2, 0.8), (1.0, 1.0), (1,), (50,), n_chains=2, seed=9)
    np.testing.assert_allclose(combine_cycles(*data[:3], method=method), 1 / 50, rtol=1e-12)


@pytest.mark.parametrize("method", ["truncated", "harmonic"])
def test_neither_offsets_nor_scales_nor_other_chains_matter(method):
    draws, energies, cycles, _ = two_modes(2, (0.2, 0.8), (1.0, 0.4), (0, 1, 1), (90, 60, 70), n_chains=3, seed=10)
    weights = combine_cycles(draws, energies, cycles, method=method)
    np.testing.assert_array_equal(combine_cycles(draws[1:2], energies[1:2], cycles, method=method), weights[1:2])
    for offset in (1e5, -1e5):
        moved = combine_cycles(draws + np.array([100.0, -3.0]), energies + offset, cycles * 7 - 5, method=method)
        np.testing.assert_allclose(moved, weights, rtol=1e-8)
    np.testing.assert_allclose(combine_cycles(draws * [1e-9, 1e9], energies, cycles, method=method), weights, rtol=1e-8)


def test_cycles_of_a_run():
    """Two modes a cyclical run finds by turns: weights from the run itself; 1,003 steps in 4 cycles of 251."""
    assert cycle_of([0, 250, 251, 1002], 4, 1003).tolist() == [0, 0, 1, 3]
    starts = np.flatnonzero(schedules.cosine_cycles(4).factors(np.arange(1003), 1003).step_size == 1.0)
    assert cycle_of(starts, 4, 1003).tolist() == [0, 1, 2, 3]
    problem = mixtures.gaussian_mixture([[-4.0], [4.0]], 0.1, weights=[0.3, 0.7])
    sampler = samplers.cyclical_sgld(0.02, n_cycles=4, exploration=0.25)
    run = sample(
        problem, sampler, n_steps=4000, n_chains=4, init=[[-4.0], [4.0], [-4.0], [4.0]], seed=1, keep_energies=True
    )
    weights = combine_cycles(run.draws, run.energies[:, 0], cycle_of(run.steps, 4, 4000))
    np.testing.assert_allclose(weights, 1 / run.steps.size, rtol=1e-12)  # no chain left its mode


GOOD = two_modes(2, (0.2, 0.8), (1.0, 1.0), (0, 1), (20, 20), n_chains=2, seed=11)[:3]


def with_bad(**changes):
    return {**dict(zip(("draws", "energies", "cycles"), GOOD, strict=True)), **changes}


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        ({"draws": GOOD[0][0]}, ValueError, "draws must have shape (chain, draw, dim) and not be empty, got shape"),
        ({"draws": np.empty((2, 0, 2))}, ValueError, "not be empty"),
        ({"energies": GOOD[1][:1]}, ValueError, "energies must have shape (chain, draw) = (2, 40), got (1, 40)"),
        ({"energies": np.full((2, 40), np.inf)}, ValueError, "energies must be finite, got inf"),
        ({"cycles": np.zeros(39, np.int64)}, ValueError, "cycles must have shape (draw,) = (40,), got (39,)"),
        ({"cycles": np.zeros(40)}, TypeError, "cycles must be integers, got float64"),
        ({"method": "mean"}, ValueError, "method must be one of 'truncated', 'harmonic', got 'mean'"),
        ({"separation": 0.0}, ValueError, "separation must be finite and > 0, got 0.0"),
        ({"cycles": np.arange(40) // 35}, ValueError, "at least 2 (dim + 2) = 8 draws, got 5 in cycle 1"),
        ({"draws": GOOD[0] * [1.0, 0.0]}, ValueError, "cycle 0 of chain 0 must span all 2 dimensions"),
        ({"draws": GOOD[0][:, :, :1] * [1.0, 2.0]}, ValueError, "their covariance is singular"),
    ],
)
def test_bad_input_is_refused(bad, error, message):
    with pytest.raises(error, match=re.escape(message)):
        combine_cycles(**with_bad(**bad))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([0.0], 2, 10), TypeError, "steps must be integers, got float64"),
        (([10], 2, 10), ValueError, "steps must be ≥ 0 and < n_steps = 10, got 10 to 10"),
        (([-1], 2, 10), ValueError, "steps must be ≥ 0"),
        (([1], 0, 10), ValueError, "n_cycles must be ≥ 1"),
        (([1], 11, 10), ValueError, "n_cycles must be ≥ 1 and < 11, got 11"),
    ],
)
def test_bad_steps_are_refused(arguments, error, message):
    with pytest.raises(error, match=re.escape(message)):
        cycle_of(*arguments)
