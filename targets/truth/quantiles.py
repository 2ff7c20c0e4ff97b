"""Checks of probabilities and edges, nearest mode centres, and one-hot memberships."""

from typing import Any

import numpy as np
from numba import types

from toolkit._compiler import INTEGERS, MATRIX, compile_part
from toolkit.errors import check_array, check_edges, shown

from ..arrays import Array, Integers


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
    find = compile_part(find_nearest, types.void(MATRIX, MATRIX, INTEGERS))
    find(np.ascontiguousarray(points), np.ascontiguousarray(centres), nearest)
    return nearest


def one_hot(labels: Integers, modes: int) -> Array:
    """Memberships (n, modes): 1 for each point's mode in ``labels`` (n,), else 0; all 0 for the label −1."""
    return np.asarray(labels[:, None] == np.arange(modes), np.float64)


def find_nearest(points: Any, centres: Any, nearest: Any) -> None:
    """nearest (n,) ← which of ``centres`` is nearest to each of ``points``."""
    for i in range(points.shape[0]):
        least, best = np.inf, 0
        for k in range(centres.shape[0]):
            squared = 0.0
            for d in range(centres.shape[1]):
                squared += (points[i, d] - centres[k, d]) ** 2
            if squared < least:
                least, best = squared, k
        nearest[i] = best
