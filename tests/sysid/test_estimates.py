"""Marginal modes: of laws whose mode is known, with weights, and what is refused."""

import numpy as np
import pytest

from sysid import marginal_modes


def test_modes_of_a_normal_law_and_of_one_that_leans():
    """A gamma law of shape 3 has its mode at 2, where neither its mean, 3, nor its median is."""
    rng = np.random.default_rng(1)
    draws = np.stack([rng.normal(-1.0, 0.1, 20_000), rng.gamma(3.0, 1.0, 20_000), np.full(20_000, 7.0)], axis=1)
    modes = marginal_modes(draws)
    assert modes == pytest.approx([-1.0, 2.0, 7.0], abs=0.2)
    assert abs(modes[1] - draws[:, 1].mean()) > 0.5


def test_weights_choose_the_mode():
    """Of two peaks that as many draws make, and of every second draw of too many."""
    rng = np.random.default_rng(2)
    for n in (2_000, 30_000):
        draws = np.concatenate([rng.normal(-2.0, 0.3, n), rng.normal(3.0, 0.3, n)])[:, None]
        low = np.repeat([3.0, 1.0], n)
        assert marginal_modes(draws, low) == pytest.approx([-2.0], abs=0.2)
        assert marginal_modes(draws, low[::-1]) == pytest.approx([3.0], abs=0.2)


def test_draws_without_weight_say_nothing():
    """Of 20,001 draws that every second is left out of, those with weight are the odd ones; two values at most."""
    column = np.arange(20_001) % 2
    draws = np.stack([column, np.random.default_rng(3).normal(5.0, 1.0, column.size)], axis=1)
    assert marginal_modes(draws, column) == pytest.approx([1.0, 5.0], abs=0.3)


@pytest.mark.parametrize(
    ("draws", "weights", "words"),
    [
        ([1.0, 2.0], None, r"draws must have shape \(n, q\) with n ≥ 1, got \(2,\)"),
        (np.zeros((0, 2)), None, r"draws must have shape .*got \(0, 2\)"),
        ([[1.0], [np.nan]], None, "draws must be finite, got nan at"),
        ([[1.0], [2.0]], [1.0], r"weights must be ≥ 0, not all 0, and of shape \(2,\)"),
        ([[1.0], [2.0]], [0.0, 0.0], "weights must be ≥ 0, not all 0"),
        ([[1.0], [2.0]], [-1.0, 2.0], "weights must be ≥ 0, not all 0"),
        ([[1.0], [2.0], [4.0]], [0.0, 1.0, 0.0], r"weights must not lie on one draw, .* on that at \[1\]"),
        ([[1.0], [2.0], [4.0]], [1.0, 1e-17, 0.0], "weights must not lie on one draw"),
    ],
)
def test_what_is_refused(draws, weights, words):
    with pytest.raises(ValueError, match=words):
        marginal_modes(draws, weights)
