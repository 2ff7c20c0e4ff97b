"""Checks of probabilities and edges, nearest mode centres, and one-hot memberships."""

from typing import Any

import numpy as np
from numba import types

from toolkit._compiler import INTEGERS, MATRIX, compile_part
from toolkit.errors import check_array, check_edges, shown

from ..arrays import Array, Integers

POINTS_AT_A_TIME = 1024  # whose distances stay in the processor's caches


def check_probabilities(probabilities: Any) -> Array:
    """``probabilities`` as floats from 0 to 1, of any shape. Raises TypeError or ValueError otherwise."""
    array = check_array("probabilities", probabilities)
    outside = array[(array < 0.0) | (array > 1.0)]
    if outside.size:
        raise ValueError(f"probabilities must be ≥ 0 and ≤ 1, got {outside[0]}")
    return array


def checked_edges(x_edges: Any, y_edges: Any, dim: int) -> list[Array]:
    """The edges of cells in the first one or two coordinates of a target of dimension ``dim``, each checked."""
    if (y_edges is None) != (dim == 1):
        raise ValueError(
            f"y_edges must be {'left out in one dimension' if dim == 1 else f'given in {dim} dimensions'}, "
            f"got {shown(y_edges)}"
        )
    return [check_edges("x_edges", x_edges)] + ([] if dim == 1 else [check_edges("y_edges", y_edges)])


def nearest_index(centres: Array, points: Array) -> Integers:
    """Which of ``centres`` (modes, dim) is nearest to each of ``points`` (n, dim), the first of equally near ones."""
    nearest = np.empty(len(points), np.int64)
    find = compile_part(find_nearest, types.void(MATRIX, MATRIX, INTEGERS, MATRIX))
    find(
        np.ascontiguousarray(points),
        np.ascontiguousarray(centres),
        nearest,
        np.empty((3 + points.shape[1], POINTS_AT_A_TIME)),
    )
    return nearest


def one_hot(labels: Integers, modes: int) -> Array:
    """Memberships (n, modes): 1 for each point's mode in ``labels`` (n,), else 0; all 0 for the label −1."""
    return np.asarray(labels[:, None] == np.arange(modes), np.float64)


def find_nearest(points: Any, centres: Any, nearest: Any, scratch: Any) -> None:
    """nearest (n,) ← which of ``centres`` is nearest to each of ``points``; scratch: (3 + dim, points at a time)."""
    least, squared, best, coordinates = scratch[0], scratch[1], scratch[2], scratch[3:]
    for start in range(0, points.shape[0], least.size):
        n = min(least.size, points.shape[0] - start)
        for i in range(n):
            least[i], best[i] = np.inf, 0.0
            for d in range(centres.shape[1]):
                coordinates[d, i] = points[start + i, d]
        for k in range(centres.shape[0]):
            for i in range(n):
                squared[i] = 0.0
            for d in range(centres.shape[1]):
                centre, coordinate = centres[k, d], coordinates[d]
                for i in range(n):
                    squared[i] += (coordinate[i] - centre) ** 2
            index = float(k)  # as float64, so that the loop vectorises
            for i in range(n):
                is_nearer = squared[i] < least[i]
                best[i] = index if is_nearer else best[i]
                least[i] = squared[i] if is_nearer else least[i]
        for i in range(n):
            nearest[start + i] = int(best[i])
