"""A small picture of a density in the plane, for notebooks."""

import base64
import html
import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

N_CELLS = 96  # along each side
SEEN, MARGIN = 1e-3, 3  # of the highest density; cells about what is seen
INCHES, DOTS = 1.9, 90
REACH, FAR = 3.5, 4.0  # standard deviations about the mean; half a side where nothing is known


def html_of(problem: Any, words: str) -> str | None:
    """``words`` above a picture of the density; None where there is none: not in the plane, or not evaluated here."""
    if problem.target.dim != 2:
        return None
    try:
        picture = picture_of(problem)
    except Exception:  # of a user's function, or a problem that was loaded: a notebook then shows the words
        return None
    data = base64.b64encode(picture).decode("ascii")
    return f'<div><code>{html.escape(words)}</code><br><img alt="density" src="data:image/png;base64,{data}"></div>'


def picture_of(problem: Any) -> bytes:
    """The density over its window as a PNG, the outside of a domain white."""
    from matplotlib.figure import Figure

    low, high = window_of(problem)
    density = density_on(problem, low, high)
    if problem.domain is None:
        seen = np.argwhere(density > SEEN)[:, ::-1]  # (y, x) → (x, y)
        cell = (high - low) / N_CELLS
        low, high = low + (seen.min(axis=0) - MARGIN) * cell, low + (seen.max(axis=0) + 1 + MARGIN) * cell
        density = density_on(problem, low, high)
    figure = Figure(figsize=(INCHES, INCHES), dpi=DOTS, layout="constrained")
    axes = figure.add_subplot()
    extent = (low[0], high[0], low[1], high[1])
    axes.imshow(density, origin="lower", extent=extent, cmap="cividis", aspect="auto")
    axes.tick_params(labelsize=6)
    for axis, name in zip("xy", problem.target.names or ("x[0]", "x[1]"), strict=True):
        getattr(axes, f"set_{axis}label")(name, fontsize=7)
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


def density_on(problem: Any, low: Array, high: Array) -> Array:
    """The density over its highest value at the centres of cells (y, x); nan outside the domain."""
    at = [np.linspace(a, b, 2 * N_CELLS + 1)[1::2] for a, b in zip(low, high, strict=True)]
    points = np.stack(np.meshgrid(*at), axis=-1).reshape(-1, 2)
    inside, energies = problem.contains(points), problem.target.evaluate(points)[0]
    energies = np.where(np.isfinite(energies) & inside, energies, np.inf)
    density = np.where(inside, np.exp(energies.min() - energies), np.nan)
    return np.asarray(density.reshape(N_CELLS, N_CELLS))


def window_of(problem: Any) -> tuple[Array, Array]:
    """Lower and upper corner: of the region, of the truth's window, about the mean, or where chains start."""
    truth: Any = problem.truth
    bounds = np.asarray(getattr(getattr(truth, "region", None), "bounds", np.inf), np.float64)
    if bounds.shape == (2, 2) and np.isfinite(bounds).all():
        margin = 0.02 * (bounds[1] - bounds[0])
        return bounds[0] - margin, bounds[1] + margin
    window = getattr(truth, "window", None)
    if window is not None:
        return window[:, 0], window[:, 1]
    if "moments" in getattr(truth, "at_hand", ()) and np.isfinite(truth.covariance).all():
        reach = REACH * np.sqrt(np.diagonal(truth.covariance))
        return truth.mean - reach, truth.mean + reach
    if problem.target.spread is not None:
        low, high = problem.target.spread.ends(2)
        return low.reshape(-1, 2).min(axis=0), high.reshape(-1, 2).max(axis=0)
    return np.full(2, -FAR), np.full(2, FAR)
