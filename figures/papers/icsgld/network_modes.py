"""Modes of a network's posterior that a chain has visited: minima below its positions, and barriers between them."""

from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.sparse.csgraph import connected_components

from figures.arrays import Array, Integers
from toolkit import Target

BETWEEN = np.linspace(0.0, 1.0, 11)[1:-1]  # places on the line between two minima


def minima(target: Target, positions: Array, n_iterations: int) -> tuple[Array, Array]:
    """The minima (n, dim) below ``positions`` (n, dim), by at most ``n_iterations`` of L-BFGS, and their energies."""

    def energy_and_gradient(position: Array) -> tuple[float, Array]:
        energy, gradient = target.evaluate(position[None])
        return float(energy[0]), gradient[0]

    found: list[Any] = [
        minimize(energy_and_gradient, each, jac=True, method="L-BFGS-B", options={"maxiter": n_iterations})
        for each in positions
    ]
    return np.array([one.x for one in found]), np.array([one.fun for one in found])


def barriers(target: Target, points: Array) -> Array:
    """Energy (n, n) that a straight line between two of ``points`` (n, dim) climbs above the higher of its ends."""
    first, second = np.triu_indices(len(points), 1)
    lines = points[first, None] + BETWEEN[:, None] * (points[second] - points[first])[:, None]
    ends, _ = target.evaluate(points)
    climbs = np.array([target.evaluate(line)[0].max() for line in lines]) - np.maximum(ends[first], ends[second])
    result = np.zeros((len(points), len(points)))
    result[first, second] = result[second, first] = np.maximum(climbs, 0.0)
    return result


def count_modes(heights: Array, levels: Array) -> Integers:
    """Number of modes (level,): groups of minima that barriers (n, n) of at most a level connect."""
    return np.array([connected_components(heights <= level, directed=False)[0] for level in levels])
