"""KL divergence as draws accumulate: mean and confidence interval over chains."""

from typing import Any

import numpy as np
import scipy
from matplotlib.axes import Axes

from toolkit.errors import check_array, check_instance, check_number, check_text

from ..arrays import Array


def interval(values: Array, level: float = 0.95) -> tuple[Array, Array]:
    """Mean over the first axis, and the half-width of its Student-t interval, each of the remaining shape."""
    n = len(values)
    half_width = scipy.special.stdtrit(n - 1, 0.5 + 0.5 * level) * values.std(axis=0, ddof=1) / np.sqrt(n)
    return values.mean(axis=0), half_width


def kl_curve(at: Any, path: Any, axes: Any, *, label: str, level: float = 0.95, **line: Any) -> tuple[Any, Any]:
    """Draw the mean of ``path`` (chain, checkpoint) over ``at`` (checkpoint,) with its interval; (line, band).

    path: KL in nats, as ``toolkit.diagnostics.kl_path`` gives it. ``line``: settings of the line.
    Raises TypeError or ValueError naming the argument where something is off.
    Picture: docs/plots.png, (c).
    """
    check_instance("axes", axes, Axes)
    check_text("label", label)
    check_number("level", level, above=0.0, below=1.0)
    values, places = check_array("path", path), check_array("at", at)
    if values.ndim != 2 or len(values) < 2 or values.shape[1:] != places.shape:
        raise ValueError(
            f"path must have shape (chain, checkpoint), at least 2 chains, and at (checkpoint,), "
            f"got {values.shape} and {places.shape}"
        )
    mean, half_width = interval(values, level)
    (drawn,) = axes.plot(at, mean, label=label, **line)
    band = axes.fill_between(
        at, np.maximum(mean - half_width, 1e-12), mean + half_width, color=drawn.get_color(), alpha=0.18, linewidth=0
    )
    return drawn, band
