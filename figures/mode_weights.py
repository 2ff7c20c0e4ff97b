"""How far the modes' weights are off, chain by chain."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.problem import Truth


def mode_weight_errors(truth: Truth, draws: Any, weights: Any = None) -> NDArray[np.float64]:
    """Σ |weight − truth| over the modes of ``truth``, (chain,); draws (chain, draw, dim), weights (chain, draw)."""
    true = truth.modes.weights
    loads = np.ones(draws.shape[:2]) if weights is None else weights
    estimated = []
    for points, load in zip(draws, loads, strict=True):
        estimated.append(load @ truth.memberships(points) / load.sum())
    return np.asarray(np.abs(np.array(estimated) - true).sum(axis=1))
