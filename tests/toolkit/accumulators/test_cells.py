"""Histograms so far: NumPy's, on any edges, weighted or not."""

import numpy as np
import pytest

from tests.support.accumulator_cases import EDGES, UNEVEN, gathered
from toolkit import accumulators


@pytest.mark.parametrize("x_edges", [EDGES, UNEVEN, np.linspace(0.1, 0.7, 8), np.array([-1.0, 1.0])], ids=len)
@pytest.mark.parametrize("scale", [1.0, 1e-300, 1e300])
def test_histograms_are_numpys(x_edges, scale):
    """Draws on edges and beside them are in the cells that comparison says."""
    rng = np.random.default_rng(7)
    x_edges, y_edges = scale * x_edges, scale * UNEVEN
    near = np.concatenate([x_edges, np.nextafter(x_edges, np.inf), np.nextafter(x_edges, -np.inf), [np.inf, -np.inf]])
    x = np.concatenate([scale * rng.standard_normal(2_000), rng.permutation(np.tile(near[:-2], 20))])
    y = np.concatenate([rng.choice(y_edges, 1_000), scale * rng.standard_normal(x.size - 1_000)])
    draws = np.stack([np.stack([x, y], axis=1), np.stack([y, x], axis=1)])
    result = gathered(accumulators.histogram(x_edges, y_edges), draws)
    line = gathered(accumulators.histogram(x_edges, coordinates=(1, 0)), draws)
    for chain in range(2):
        expected = np.histogram2d(draws[chain, :, 0], draws[chain, :, 1], bins=[x_edges, y_edges])[0]
        np.testing.assert_array_equal(result.counts[chain], expected)
        np.testing.assert_array_equal(line.counts[chain], np.histogram(draws[chain, :, 1], bins=x_edges)[0])
    np.testing.assert_array_equal(result.beyond, x.size - result.counts.sum(axis=(1, 2)))
    np.testing.assert_array_equal(line.beyond, x.size - line.counts.sum(axis=1))


def test_an_endless_grid_is_searched():
    edges = np.array([-1.7e308, -1.0, 0.0, 2.0, 1.7e308])
    draws = np.array([[-3.0, -1.0, 0.5, 1.9, 1e300]])[..., None]
    np.testing.assert_array_equal(gathered(accumulators.histogram(edges), draws).counts, [[1, 1, 2, 1]])


def test_weighted_histograms():
    rng = np.random.default_rng(8)
    draws, weights = rng.standard_normal((2, 3_000, 2)), rng.random((2, 3_000))
    result = gathered(accumulators.histogram(EDGES, UNEVEN), draws, weights)
    for chain in range(2):
        x, y = draws[chain].T
        expected = np.histogram2d(x, y, bins=[EDGES, UNEVEN], weights=weights[chain])[0]
        np.testing.assert_allclose(result.counts[chain], expected, rtol=1e-12)
    np.testing.assert_allclose(result.counts.sum(axis=(1, 2)) + result.beyond, weights.sum(axis=1), rtol=1e-12)
    np.testing.assert_array_equal(result.draws, 3_000)
