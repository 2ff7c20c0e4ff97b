"""Draws and weights as diagnostics take them: checked, and weights scaled."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .checks import check_array
from .weighting import check_weights

Array = NDArray[np.float64]


def check_draws(draws: Any, *, dim: int | None = None) -> Array:
    """``draws`` (chain, draw, dim), at least one of each. Raises TypeError or ValueError otherwise."""
    points = check_array("draws", draws)
    if points.ndim != 3 or points.size == 0 or dim not in (None, points.shape[2]):
        raise ValueError(f"draws must have shape (chain, draw, {'dim' if dim is None else dim}), got {points.shape}")
    return points


def check_draw_weights(weights: Any, draws: Array) -> Array | None:
    """``weights`` (chain, draw) scaled to mean 1 in each chain; None where all of a chain's are equal.

    Raises ValueError for another shape.
    """
    if weights is None:
        return None
    shares = check_weights(weights)
    if shares.shape != draws.shape[:2]:
        raise ValueError(f"weights must have the chains and draws of draws, {draws.shape[:2]}, got {shares.shape}")
    return None if (shares == shares[:, :1]).all() else np.asarray(shares * shares.shape[1])


def near_one(values: Array) -> Array:
    """``values`` times the power of 2 that puts the largest in [1, 2), so that no square of a difference overflows."""
    return np.asarray(np.ldexp(values, 1 - np.frexp(np.abs(values).max())[1]))


def check_sample(name: str, draws: Any, weights_name: str, weights: Any) -> tuple[Array, Array]:
    """Points (n, dim) and shares (n,) with sum 1 of draws (n, dim) or (chain, draw, dim); chains count equally."""
    points = check_array(name, draws)
    if points.ndim not in (2, 3) or points.size == 0:
        raise ValueError(f"{name} must have shape (n, dim) or (chain, draw, dim), got {points.shape}")
    flat = np.ascontiguousarray(points.reshape(-1, points.shape[-1]))
    if weights is None:
        return flat, np.full(len(flat), 1.0 / len(flat))
    given = check_array(weights_name, weights)
    if given.shape != points.shape[:-1]:
        raise ValueError(f"{weights_name} must have shape {points.shape[:-1]}, that of {name}, got {given.shape}")
    shares = check_weights(given.reshape(-1, given.shape[-1]), weights_name)
    return flat, np.asarray(shares.ravel() / len(shares))
