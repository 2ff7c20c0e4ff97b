"""Numbers with standard errors, from independent chains."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.problem import Truth


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


# How far the modes' weights are off, chain by chain.


def mode_weight_errors(truth: Truth, draws: Any, weights: Any = None) -> NDArray[np.float64]:
    """Σ |weight − truth| over the modes of ``truth``, (chain,); draws (chain, draw, dim), weights (chain, draw)."""
    true = truth.modes.weights
    loads = np.ones(draws.shape[:2]) if weights is None else weights
    estimated = []
    for points, load in zip(draws, loads, strict=True):
        estimated.append(load @ truth.memberships(points) / load.sum())
    return np.asarray(np.abs(np.array(estimated) - true).sum(axis=1))
