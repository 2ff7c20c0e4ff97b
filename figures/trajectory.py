"""Paths of replicas through the plane."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from toolkit.checks import check_array, check_instance


def trajectory(path: Any, axes: Any, *, breaks: NDArray[np.bool_] | None = None, **line: Any) -> list[Any]:
    """Draw ``path`` (step, 2) into ``axes``, interrupted before the steps where ``breaks`` (step,); the lines.

    breaks: steps reached by a jump, a swap say, and not by a move. ``line``: settings of the lines.
    Raises TypeError or ValueError naming the argument where something is off.
    """
    check_instance("axes", axes, Axes)
    points = check_array("path", path)
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError(f"path must have shape (step, 2), got {points.shape}")
    if breaks is not None:
        jumps = np.asarray(breaks)
        if jumps.dtype != np.bool_ or jumps.shape != points.shape[:1]:
            raise ValueError(f"breaks must be booleans of shape {points.shape[:1]}, got {jumps.dtype} of {jumps.shape}")
        points = np.insert(points, np.flatnonzero(jumps), np.nan, axis=0)
    return list(axes.plot(*points.T, **line))
