"""Every target of the zoo by the same laws: its gradient twice over, and each of its truths by something else."""

import functools
import subprocess
import sys

import numpy as np
import pytest

from benchmarks.evidence.truth import cell_pvalues, trapezoid
from targets import catalogue
from tests.support.complex_step import energy_and_slopes
from tests.support.laws import SIGMAS, deviation

TARGETS = {target.name: target for target in catalogue()}
LOW = [name for name, target in TARGETS.items() if target.dim <= 2]
N = 100_000
SHARES = np.array([0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98])


@functools.cache
def draws_of(name):
    return TARGETS[name].truth.independent_draws(N, seed=91)


@functools.cache
def sum_of(name):
    return trapezoid(TARGETS[name])


def test_the_catalogue_is_complete_and_its_names_differ():
    assert len(TARGETS) == len(catalogue()) >= 2
    for target in TARGETS.values():
        centres, weights = target.truth.modes
        assert centres.shape == (len(weights), target.dim)
        assert weights.sum() == pytest.approx(1.0, abs=1e-9)
        assert (weights > 0.0).all()
        assert target.truth.accuracy <= 0.05


def test_importing_the_zoo_leaves_slow_packages_alone():
    """``scipy.stats`` alone takes as long as all of ours, and SciPy's other packages are imported where first used."""
    asked = "import sys, toolkit, targets, sysid; print(*sys.modules); targets.catalogue(); print(*sys.modules)"
    said = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout
    imported, loaded = (set(line.split()) for line in said.splitlines())
    assert {"targets", "sysid"} <= imported
    packages = {"fft", "integrate", "interpolate", "linalg", "optimize", "signal", "sparse", "spatial", "special"}
    assert not imported & {f"scipy.{name}" for name in packages}
    assert not loaded & {"scipy.stats", "sympy", "shapely", "sklearn", "svgpathtools", "matplotlib.pyplot"}


@pytest.mark.cases(5)
@pytest.mark.slow_cases("logistic_regression, Heart")
@pytest.mark.parametrize("name", TARGETS)
def test_gradient_against_complex_step(name):
    target = TARGETS[name]
    points = draws_of(name)[: 6 if target.dim <= 10 else 2]
    energy, gradient = target.evaluate(points)
    values, slopes = energy_and_slopes(target, points)
    np.testing.assert_allclose(energy, values, rtol=1e-11, atol=1e-11)
    scale = 1.0 + np.abs(slopes).max(axis=1, keepdims=True)
    assert (np.abs(gradient - slopes) / scale).max() < 1e-11
    assert (np.abs(1.0001 * gradient - slopes) / scale).max() > 1e-11


@pytest.mark.cases(5)
@pytest.mark.slow_cases("logistic_regression, Heart")
@pytest.mark.parametrize("name", TARGETS)
def test_gradient_against_differences(name):
    """Along random directions, of order 6; the best of five steps, for widths differ, and slopes jump at places."""
    target = TARGETS[name]
    points = draws_of(name)[:200]
    rng = np.random.default_rng(92)
    way = rng.standard_normal(points.shape) * np.minimum(points.std(axis=0), 1.0)
    _, gradient = target.evaluate(points)
    slope, best = (gradient * way).sum(axis=1), np.full((2, len(points)), np.inf)
    for step in (1e-1, 1e-2, 1e-3, 1e-4, 1e-5):
        values = {m: target.evaluate(points + m * step * way)[0] for m in (-3, -2, -1, 1, 2, 3)}
        differences = (
            45 * (values[1] - values[-1]) - 9 * (values[2] - values[-2]) + (values[3] - values[-3])
        ) / (60 * step)  # fmt: skip
        for row, factor in enumerate((1.0, 1.001)):
            off = np.abs(differences - factor * slope) / (1.0 + np.abs(slope))
            best[row] = np.minimum(best[row], off)
    assert best[0].max() < 1e-5
    assert best[1].max() > 1e-4


@pytest.mark.cases(2)
@pytest.mark.parametrize("name", LOW)
def test_truth_against_a_trapezoidal_sum(name):
    target, sums = TARGETS[name], sum_of(name)
    truth = target.truth
    slack = 1e-6 + truth.accuracy
    assert truth.log_normaliser == pytest.approx(sums.log_normaliser, abs=5 * slack)
    scale = np.sqrt(sums.masses @ (sums.points - sums.masses @ sums.points) ** 2)
    if np.isfinite(truth.covariance).all():
        mean = sums.masses @ sums.points
        np.testing.assert_allclose(truth.mean, mean, atol=5 * slack * scale.max())
        away = sums.points - mean
        np.testing.assert_allclose(truth.covariance, (sums.masses * away.T) @ away, atol=2e-5 * scale.max() ** 2)
    masses = truth.cell_masses(*sums.edges)
    assert np.abs(masses - sums.cells).sum() < 2e-4
    assert np.abs(np.roll(masses, 1) - sums.cells).sum() > 1e-2
    # Borders between modes and levels of energy run between the grid's points.
    np.testing.assert_allclose(sums.masses @ truth.memberships(sums.points), truth.modes.weights, atol=2e-3)
    levels = truth.energy_quantiles(SHARES)
    below = [sums.masses[sums.energies <= level].sum() for level in levels]
    np.testing.assert_allclose(below, SHARES, atol=4e-3)


@pytest.mark.cases(6)
@pytest.mark.slow_cases("logistic_regression, Heart")
@pytest.mark.parametrize("name", TARGETS)
def test_moments_of_exact_draws(name):
    truth, draws = TARGETS[name].truth, draws_of(name)
    assert draws.shape == (N, TARGETS[name].dim)
    np.testing.assert_array_equal(draws[:5], truth.independent_draws(N, seed=91)[:5])
    if not np.isfinite(truth.covariance).all():
        return
    for d, column in enumerate(draws.T):
        slack = truth.accuracy * column.std()
        assert deviation(column, truth.mean[d], slack) < SIGMAS
        assert deviation(column, truth.mean[d] + 0.1 * column.std(), slack) > SIGMAS
        products = (column - truth.mean[d]) * (draws[:, 0] - truth.mean[0])
        assert deviation(products, truth.covariance[d, 0], slack * draws[:, 0].std()) < SIGMAS


@pytest.mark.parametrize("name", TARGETS)
def test_exact_draws_against_cells(name):
    truth, draws = TARGETS[name].truth, draws_of(name)
    if truth.accuracy < 1e-4:
        right, wrong = cell_pvalues(TARGETS[name], draws)
        assert right > 1e-4
        assert wrong < 1e-12
        return
    edges = np.linspace(*np.quantile(draws[:, :2], [0.001, 0.999], axis=0), 6).T
    masses, shares = truth.cell_masses(*edges), np.histogramdd(draws[:, :2], edges)[0] / N
    errors = SIGMAS * np.sqrt(masses / N) + truth.accuracy
    assert (np.abs(shares - masses) < errors).all()
    assert (np.abs(np.roll(shares, 1) - masses) > errors).any()


@pytest.mark.slow_cases("egg_box(4, 1)")
@pytest.mark.cases(6)
@pytest.mark.parametrize("name", TARGETS)
def test_energy_quantiles_against_exact_draws(name):
    target = TARGETS[name]
    energy = np.sort(target.evaluate(draws_of(name))[0])
    levels = target.truth.energy_quantiles(SHARES)
    assert levels.shape == SHARES.shape
    assert target.truth.energy_quantiles(0.5) == pytest.approx(levels[3])
    errors = np.sqrt(SHARES * (1.0 - SHARES) * (1.0 / N + 1e-6)) + (1e-4 + target.truth.accuracy) / SIGMAS
    off = np.abs(np.searchsorted(energy, levels) / N - SHARES) / errors
    assert off.max() < SIGMAS
    wrong = target.truth.energy_quantiles(np.minimum(SHARES + 0.019 + 2.0 * target.truth.accuracy, 0.999))
    assert (np.abs(np.searchsorted(energy, wrong) / N - SHARES) / errors).max() > SIGMAS


@pytest.mark.cases(6)
@pytest.mark.parametrize("name", TARGETS)
def test_memberships_mean_is_the_weights_of_the_modes(name):
    n = 20_000 if len(TARGETS[name].truth.modes.weights) > 100 else N
    truth, draws = TARGETS[name].truth, draws_of(name)[:n]
    memberships = truth.memberships(draws)
    assert memberships.shape == (n, len(truth.modes.weights))
    np.testing.assert_allclose(memberships.sum(axis=1), 1.0, atol=1e-12)
    assert memberships.min() >= 0.0
    if len(truth.modes.weights) == 1:
        return
    for column, weight in zip(memberships.T, truth.modes.weights, strict=True):
        error = np.sqrt(max(column.var(), weight * 1e-3 / n) / n) + truth.accuracy
        assert abs(column.mean() - weight) < SIGMAS * error + 10 / n
        assert abs(column.mean() - weight - 0.02) > SIGMAS * error


@pytest.mark.parametrize("name", TARGETS)
def test_results_do_not_depend_on_the_number_of_lanes(name):
    target, points = TARGETS[name], draws_of(name)[:64]
    energy, gradient = target.evaluate(points)
    for lanes in (1, 13):
        some = target.evaluate(points[:lanes])
        np.testing.assert_array_equal(some[0], energy[:lanes])
        np.testing.assert_array_equal(some[1], gradient[:lanes])
