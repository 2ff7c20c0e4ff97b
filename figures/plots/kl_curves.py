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


def ratio_interval(values: Array, level: float = 0.95) -> tuple[Array, Array, Array]:
    """Mean over the first axis, and the lower and upper end of its interval on the logarithm of the mean.

    The interval is mean · exp(±t s), by Student's t and the relative standard error s of the mean (delta method). It
    agrees with ``interval`` where s is small, and both ends are positive: s is at most 1 for numbers ≥ 0. Where the
    mean is not positive, all three are the mean.
    """
    mean, half_width = interval(values, level)
    factor = np.exp(np.divide(half_width, mean, out=np.zeros_like(mean), where=mean > 0.0))
    return mean, mean / factor, mean * factor


def kl_curve(at: Any, path: Any, axes: Any, *, label: str, level: float = 0.95, **line: Any) -> tuple[Any, Any]:
    """Draw the mean of KL over chains as draws accumulate, with a band for its confidence interval.

    Parameters
    ----------
    at : array_like, shape (checkpoint,)
        Abscissae, such as draws or gradient evaluations.
    path : array_like, shape (chain, checkpoint)
        KL in nats, as ``toolkit.diagnostics.kl_path`` gives it, of at least two chains.
    axes : matplotlib.axes.Axes
        The axes to draw into.
    label : str
        Name of the curve in a legend.
    level : float, default 0.95
        Probability that the interval of the mean has, between 0 and 1.
    **line
        Settings of the line, as ``Axes.plot`` has them.

    Returns
    -------
    tuple
        The line of the mean, and the band.

    Raises
    ------
    TypeError, ValueError
        Where an argument is off; the message names it.

    Notes
    -----
    The interval is of the logarithm of the mean (``ratio_interval``), so that both edges are positive on a logarithmic
    axis, also where KL falls at different times in the chains and its spread is larger than its mean.

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
    mean, low, high = ratio_interval(values, level)
    (drawn,) = axes.plot(at, mean, label=label, **line)
    band = axes.fill_between(at, low, high, color=drawn.get_color(), alpha=0.18, linewidth=0)
    return drawn, band
