"""Paths of replicas through the plane."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from toolkit import Run
from toolkit.errors import check_array, check_count, check_instance, is_a, plain_array, shown

from ..arrays import Bools


def trajectory(
    path: Any,
    axes: Any,
    *,
    chain: int = 0,
    breaks: Bools | None = None,
    colours: Any = None,
    **line: Any,
) -> list[Any]:
    """Draw ``path`` into ``axes``, interrupted before the steps where ``breaks`` (step,); the lines.

    path: (step, 2), or a Run of two dimensions, of whose ``chain`` the first replica is drawn. breaks: steps reached by
    a jump, a swap say, and not by a move; None: none, or those of a Run that a swap came before.
    colours: (step,), a value for each step, as a gradient's multiplier: the piece that leads to a step takes its colour
    from ``line``'s cmap and norm, and the lines are one LineCollection, of which ``figure.colorbar`` makes a bar.
    ``line``: settings of the lines. Raises TypeError or ValueError naming the argument where something is off.
    Picture: docs/plots.png, (b).
    """
    check_instance("axes", axes, Axes)
    points = check_array("path", points_of(path, chain))
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError(f"path must have shape (step, 2), got {points.shape}")
    if not len(points):
        raise ValueError(f"path must hold at least one step, got {shown(path)}")
    try:
        given = swapped(path, chain) if breaks is None and is_a(path, Run) else breaks
        jumps = np.asarray(None) if given is None else plain_array("breaks", given, "booleans")
    except (TypeError, ValueError):
        raise ValueError(f"breaks must be booleans of shape {points.shape[:1]}, got {shown(breaks)}") from None
    if breaks is not None and (jumps.dtype != np.bool_ or jumps.shape != points.shape[:1]):
        raise ValueError(f"breaks must be booleans of shape {points.shape[:1]}, got {jumps.dtype} of {jumps.shape}")
    where = jumps if jumps.ndim else np.zeros(len(points), bool)
    if colours is None:
        return list(axes.plot(*np.insert(points, np.flatnonzero(where), np.nan, axis=0).T, **line))
    values = check_array("colours", colours)
    if values.shape != points.shape[:1]:
        raise ValueError(f"colours must have shape {points.shape[:1]}, one for each step, got {values.shape}")
    pieces, kept = np.stack([points[:-1], points[1:]], axis=1), ~where[1:]
    lines = LineCollection(list(pieces[kept]), array=values[1:][kept], **line)
    axes.add_collection(lines)
    axes.autoscale_view()
    return [lines]


def points_of(path: Any, chain: Any) -> Any:
    """Places (step, dim) of one chain of a run, or what was given."""
    number = check_count("chain", chain, at_least=0, below=path.n_chains if is_a(path, Run) else 1)
    return path.replica_draws[number, 0] if is_a(path, Run) else path


def swapped(run: Run, chain: int) -> Bools:
    """Draws (draw,) of the first replica of a chain that a swap came before."""
    if run.statistics is None:
        return np.zeros(run.steps.size, bool)
    return np.asarray(np.diff(run.statistics.swaps[chain, 0], prepend=0) > 0)
