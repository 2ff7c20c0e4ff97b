"""Quantiles from distribution functions."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

HALVINGS = 60


def rising_root(below: Callable[[Array], Array], probabilities: Array, low: float, high: float) -> Array:
    """Where ``below``, a distribution function (n,) → (n,) from ``low`` to ``high``, is each of ``probabilities``."""
    wanted = probabilities.ravel()
    left, right = np.full(wanted.size, low), np.full(wanted.size, high)
    for _ in range(HALVINGS):
        middle = 0.5 * (left + right)
        short = below(middle) < wanted
        left, right = np.where(short, middle, left), np.where(short, right, middle)
    return np.asarray((0.5 * (left + right)).reshape(probabilities.shape))
