"""Checks of what a truth is asked: probabilities, and edges of cells."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.checks import check_array, check_edges

Array = NDArray[np.float64]


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
            f"got {y_edges!r}"
        )
    return [check_edges("x_edges", x_edges)] + ([] if dim == 1 else [check_edges("y_edges", y_edges)])
