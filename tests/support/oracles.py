"""What the tests of targets share: gradients by the complex step, and draws against cells and energies by χ²."""

import numpy as np
from scipy.stats import chisquare

RIGHT, WRONG = 1e-4, 1e-12  # p-values: a right law fails with probability 1e-4 per test


def complex_step(energy, points):
    """Energies (n,) and gradients (n, dim) at ``points`` of ``energy``, a NumPy formula of complex points (n, dim)."""
    points = np.asarray(points, np.float64)
    gradient = np.empty_like(points)
    for d in range(points.shape[1]):
        moved = points.astype(np.complex128)
        moved[:, d] += 1e-40j
        gradient[:, d] = energy(moved).imag / 1e-40
    return energy(points.astype(np.complex128)).real, gradient


def agrees(target, energy, points, *, rtol=1e-12, atol=1e-11):
    """Assert that energy and gradient of ``target`` at ``points`` are those of the formula ``energy``."""
    ours, ours_gradient = target.evaluate(points)
    theirs, gradient = complex_step(energy, points)
    np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol)
    np.testing.assert_allclose(ours_gradient, gradient, rtol=rtol, atol=atol)


def cells_p_values(truth, edges, *samples):
    """p-values of the χ² tests of ``samples`` (n, dim) against the cells, and one more for all outside them."""
    masses = truth.cell_masses(*edges)
    counts = [np.histogramdd(draws[:, : len(edges)], edges)[0] for draws in samples]
    return [p_value(found.ravel(), masses.ravel(), len(draws)) for found, draws in zip(counts, samples, strict=True)]


def energies_p_values(target, *samples, bins=40):
    """p-values of the χ² tests of the energies of ``samples`` (n, dim) against bins between the truth's quantiles."""
    inner = target.truth.energy_quantiles(np.arange(1, bins) / bins)
    which = [np.searchsorted(inner, target.evaluate(draws)[0]) for draws in samples]
    return [chisquare(np.bincount(found, minlength=bins)).pvalue for found in which]


def p_value(counts, masses, n):
    """p-value of the χ² test of ``counts`` against ``masses``, cells of less than 5 and all the rest in one."""
    full = masses * n > 5
    rest, rest_mass = n - counts[full].sum(), 1.0 - masses[full].sum()
    observed, expected = counts[full].astype(float), n * masses[full]
    if n * rest_mass > 5:
        observed, expected = np.append(observed, rest), np.append(expected, n * rest_mass)
    expected = expected * (observed.sum() / expected.sum())
    return chisquare(observed, expected).pvalue


def held(target, edges, *, n=100_000, seed=5, scale=1.05):
    """Assert that exact draws agree with cells, energies, moments and modes, and draws ``scale`` as far out do not."""
    truth = target.truth
    draws = truth.independent_draws(n, seed=seed)
    assert draws.shape == (n, target.dim)
    np.testing.assert_array_equal(draws, truth.independent_draws(n, seed=seed))
    assert truth.independent_draws(0, seed=seed).shape == (0, target.dim)
    for right, wrong in (
        cells_p_values(truth, edges, draws, draws * scale),
        energies_p_values(target, draws, draws * scale),
    ):
        assert right > RIGHT
        assert wrong < WRONG
    memberships = truth.memberships(draws)
    np.testing.assert_allclose(memberships.sum(axis=1), 1.0, rtol=1e-12)
    assert truth.modes.weights.sum() == np.float64(1.0) or abs(truth.modes.weights.sum() - 1.0) < 1e-9
    often = truth.modes.weights * n > 50
    for values, law in ((memberships[:, often], truth.modes.weights[often]), (draws, truth.mean)):
        error = values.std(axis=0, ddof=1) / np.sqrt(n)
        assert (np.abs(values.mean(axis=0) - law) <= 4.5 * error + 1e-5).all()
