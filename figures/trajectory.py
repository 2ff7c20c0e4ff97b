"""Paths of replicas through the plane."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def trajectory(path: Any, axes: Any, *, breaks: NDArray[np.bool_] | None = None, **line: Any) -> list[Any]:
    """Draw ``path`` (step, 2) into ``axes``, interrupted before the steps where ``breaks`` (step,); the lines.

    breaks: steps reached by a jump, a swap say, and not by a move. ``line``: settings of the lines.
    """
    points = np.asarray(path, np.float64)
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError(f"path must have shape (step, 2), got {points.shape}")
    if breaks is not None:
        points = np.insert(points, np.flatnonzero(breaks), np.nan, axis=0)
    return list(axes.plot(*points.T, **line))
