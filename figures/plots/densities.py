"""Picture of where draws, or true probability, lie in the plane."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from targets.shapes import Shape
from toolkit import Run
from toolkit.diagnostics import cell_counts
from toolkit.errors import check_array, check_edges, check_instance, check_number, is_a
from toolkit.weighting import shares_of

from ..arrays import Array
from .named_draws import is_identified, names_of, parameters_of


def density(
    source: Any,
    axes: Any,
    *,
    x_edges: Array,
    y_edges: Array,
    shape: Shape | None = None,
    highest: float | None = None,
) -> Any:
    """Draw the density of ``source`` on a grid into ``axes``, and return the image.

    source: a Run, whose weights are honoured (contour's within each chain, which then count alike; TACT-HMC's over all
    chains), of an identification as parameters, whose names label the axes; draws of shape (..., 2), which count alike;
    or cell probabilities of shape (nx, ny). shape: outline to draw. highest: density (per unit area) at the top of the
    colour scale; None: the largest of this picture. Units of both axes have the same length, but for an identification.
    Raises TypeError or ValueError naming the argument where something is off.
    Picture: docs/plots.png, (a).
    """
    check_instance("axes", axes, Axes)
    if shape is not None:
        check_instance("shape", shape, Shape)
    if highest is not None:
        check_number("highest", highest, above=0.0)
    x_edges, y_edges = check_edges("x_edges", x_edges), check_edges("y_edges", y_edges)
    names = names_of(source)
    array = check_array("source", parameters_of(source, source.draws) if is_a(source, Run) else source)
    if array.shape == (x_edges.size - 1, y_edges.size - 1):
        masses = array
    elif array.ndim >= 2 and array.shape[-1] == 2:
        points = array.reshape(-1, 2)
        if not len(points):
            raise ValueError(f"source must hold at least one draw, got shape {array.shape}")
        shares = shares_of(source) if is_a(source, Run) else None
        masses = cell_counts(points, x_edges, y_edges, weights=shares) / len(points)
    else:
        raise ValueError(f"source must be draws (..., 2) or masses of the grid, got an array of shape {array.shape}")
    heights = masses / np.outer(np.diff(x_edges), np.diff(y_edges))
    extent = (x_edges[0], x_edges[-1], y_edges[0], y_edges[-1])
    image = axes.imshow(heights.T, origin="lower", extent=extent, vmin=0.0, vmax=highest or heights.max())
    if shape is not None:
        for ring in shape.rings:
            axes.plot(*np.vstack([ring, ring[:1]]).T, color="white", linewidth=0.8)
    if names:
        axes.set(xlabel=axes.get_xlabel() or names[0], ylabel=axes.get_ylabel() or names[1])
    axes.set_aspect("auto" if is_identified(source) else "equal")
    return image
