"""Which of some places is nearest, and the memberships that come of it."""

from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from toolkit.compiling import compile_part
from toolkit.signatures import INTEGERS, MATRIX

Array = NDArray[np.float64]


def nearest_of(centres: Array, points: Array) -> NDArray[np.int64]:
    """Which of ``centres`` (modes, dim) is nearest to each of ``points`` (n, dim), the first where some are equally."""
    nearest = np.empty(len(points), np.int64)
    find = compile_part(find_nearest, types.void(MATRIX, MATRIX, INTEGERS))
    find(np.ascontiguousarray(points), np.ascontiguousarray(centres), nearest)
    return nearest


def one_hot(labels: NDArray[np.int64], modes: int) -> Array:
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
