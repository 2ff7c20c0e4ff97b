"""Numbers with standard errors, from independent chains."""

from typing import Any

import numpy as np


def mean_and_error(values: Any) -> tuple[float, float]:
    """Mean over the chains, (chain,), and its standard error."""
    return float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values)))


def root_mean_square(errors: Any) -> tuple[Any, Any]:
    """Root of the mean square over the chains, (chain, …) → (…), and its standard error."""
    squares = np.square(errors)
    root = np.sqrt(squares.mean(axis=0))
    with np.errstate(invalid="ignore"):
        return root, squares.std(axis=0, ddof=1) / np.sqrt(len(squares)) / (2.0 * root)


def ratio_and_error(above: tuple[float, float], below: tuple[float, float]) -> tuple[float, float]:
    """Ratio of two independent numbers given with errors, and its error to first order."""
    value = above[0] / below[0]
    return float(value), float(abs(value) * np.hypot(above[1] / above[0], below[1] / below[0]))
