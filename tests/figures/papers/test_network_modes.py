"""Modes of networks: minima below points, barriers between them, and how many are told apart."""

import numpy as np
import pytest

from figures.papers.icsgld.network_modes import barriers, count_modes, minima
from toolkit import from_callable


@pytest.fixture(scope="module")
def wells():
    """U = (x² − 1)² + y²/2: two minima at x = ±1, with a barrier of 1 between them."""
    return from_callable(
        lambda points: (
            (points[:, 0] ** 2 - 1.0) ** 2 + 0.5 * points[:, 1] ** 2,
            np.stack([4.0 * points[:, 0] * (points[:, 0] ** 2 - 1.0), points[:, 1]], axis=1),
        ),
        dim=2,
        name="two wells",
    )


def test_minima_are_those_below(wells):
    found, energies = minima(wells, np.array([[0.4, 2.0], [-3.0, 0.1], [1.7, -1.0]]), 100)
    np.testing.assert_allclose(found, [[1.0, 0.0], [-1.0, 0.0], [1.0, 0.0]], atol=1e-4)
    np.testing.assert_allclose(energies, 0.0, atol=1e-8)


def test_barriers_and_modes(wells):
    points = np.array([[1.0, 0.0], [-1.0, 0.0], [1.0, 1.0], [0.9, 0.0]])
    heights = barriers(wells, points)
    np.testing.assert_array_equal(heights, heights.T)
    assert heights[0, 1] == pytest.approx(1.0)  # the middle of the line is one of its places
    assert heights[1, 2] == pytest.approx(0.625)  # 1 + ½ ½² at the middle, less ½ at the higher end
    assert heights[0, 2] == heights[0, 3] == 0.0
    assert count_modes(heights, np.array([1e-6, 0.6, 0.7])).tolist() == [2, 2, 1]
