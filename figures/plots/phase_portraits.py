"""Phase portraits of dynamical systems: paths through their states, and streamlines of their field."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.streamplot import StreamplotSet

from sysid import System
from sysid.solvers.solution import Solution
from toolkit.errors import (
    check_array,
    check_count,
    check_instance,
    check_measured,
    check_numbers,
    is_a,
    is_sequence,
    shown,
)

from ..arrays import Array

N_ARROWS = 30  # points of the field's grid along each axis


class PortraitArtists(NamedTuple):
    """What ``phase_portrait`` drew: a line for each path, and the field's streamlines."""

    paths: list[Any]
    streams: StreamplotSet | None


def phase_portrait(
    source: Any,
    axes: Any,
    *,
    coordinates: Any = None,
    field: Any = None,
    parameters: Any = None,
    limits: Any = None,
    **line: Any,
) -> PortraitArtists:
    """Draw paths of states, and streamlines of the field that moves them, into ``axes``; the artists.

    source: states (times, dim) or (lanes, times, dim), or a Solution, whose missing states end its lines; or a System
    of two states, of which the field alone is drawn. In 3-D where ``axes`` are.
    coordinates: which states, one for each axis; None: the first ones, which must be all.
    field: a System of two states, at time 0 with ``parameters`` (None: its usual ones), or a function of points
    (n, 2) to velocities (n, 2); of two-dimensional axes. limits: ((low, high), (low, high)) of the field; None: those
    of the paths, a tenth beyond. ``line``: settings of the paths.
    Raises TypeError or ValueError naming the argument where something is off.
    Picture: docs/plots.png, (e).
    """
    check_instance("axes", axes, Axes)
    n_axes = 3 if axes.name == "3d" else 2
    if is_a(source, System) and field is None:
        field, states = source, None
    else:
        states = states_of(source, coordinates, n_axes)
    streams = None
    if parameters is not None and not is_a(field, System):
        raise ValueError(f"parameters must be None without a System as field, got {shown(parameters)}")
    if field is not None:
        if n_axes == 3:
            raise ValueError(f"field must be None in axes of three dimensions, got {shown(field)}")
        velocities = field_of(field, parameters)
        streams = draw_streams(axes, velocities, ends_of(limits, states))
    paths: list[Any] = []
    if states is not None:
        settings = {"linestyle": "-", "zorder": 2.5} | line
        paths = [axes.plot(*lane.T, **settings)[0] for lane in states]
    return PortraitArtists(paths, streams)


def states_of(source: Any, coordinates: Any, n_axes: int) -> Array:
    """States (lanes, times, axis); nan where a solution has none."""
    solved = is_a(source, Solution)
    states = np.asarray(source.states, dtype=np.float64) if solved else check_array("source", source)
    if states.ndim not in (2, 3) or states.size == 0:
        raise ValueError(f"source must be states (times, dim) or (lanes, times, dim), got an array of {states.shape}")
    states = states.reshape(-1, *states.shape[-2:])
    dim = states.shape[-1]
    if coordinates is None:
        if dim != n_axes:
            raise ValueError(f"source must have {n_axes} states for these axes, or coordinates be given, got {dim}")
        return states
    if not is_sequence(coordinates) or len(coordinates) != n_axes:
        raise ValueError(f"coordinates must be {n_axes} numbers of states, got {shown(coordinates)}")
    return states[..., [check_count(f"coordinates[{i}]", k, at_least=0, below=dim) for i, k in enumerate(coordinates)]]


def field_of(field: Any, parameters: Any) -> Callable[[Array], Any]:
    """Velocities (n, 2) as a function of points (n, 2)."""
    if not is_a(field, System):
        if not callable(field):
            raise TypeError(f"field must be a System or a function of points, got {shown(field)}")
        given: Callable[[Array], Any] = field
        return given
    if field.dim != 2:
        raise ValueError(f"field must be a System of 2 states, got {shown(field)}")
    numbers = field.usual if parameters is None else check_array("parameters", parameters)
    if numbers.shape != field.usual.shape:
        raise ValueError(f"parameters must have shape {field.usual.shape}, got {numbers.shape}")
    fixed = tuple(map(float, numbers))
    return lambda points: [field.rhs(0.0, (float(x), float(y)), fixed) for x, y in points]


def ends_of(limits: Any, states: Array | None) -> Array:
    """Ends (axis, 2) of the field's rectangle."""
    if limits is not None:
        if not is_sequence(limits) or len(limits) != 2:
            raise ValueError(f"limits must be ((low, high), (low, high)), got {shown(limits)}")
        ends = [check_numbers(f"limits[{i}]", pair) for i, pair in enumerate(limits)]
        if any(len(pair) != 2 or not pair[0] < pair[1] for pair in ends):
            raise ValueError(f"limits must be ((low, high), (low, high)), each increasing, got {shown(limits)}")
        return np.array(ends)
    if states is None or not np.isfinite(states).any():
        raise ValueError("limits must be given where there is no path, got None")
    low, high = np.nanmin(states, axis=(0, 1)), np.nanmax(states, axis=(0, 1))
    margin = np.where(high > low, 0.1 * (high - low), 0.5)
    return np.stack([low - margin, high + margin], axis=1)


def draw_streams(axes: Axes, velocities: Callable[[Array], Any], ends: Array) -> StreamplotSet:
    """Streamlines of the field over a rectangle; none where it is not finite."""
    x, y = (np.linspace(low, high, N_ARROWS) for low, high in ends)
    points = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    with np.errstate(all="ignore"):
        values = check_measured("field(points)", velocities(points))
    if values.shape != points.shape or not np.isfinite(values).any():
        raise ValueError(f"field must give finite velocities (n, 2) at points (n, 2), got an array of {values.shape}")
    grid = np.ma.masked_invalid(values).reshape(N_ARROWS, N_ARROWS, 2)
    return axes.streamplot(x, y, grid[..., 0], grid[..., 1], color="0.72", linewidth=0.5, arrowsize=0.6, density=0.9)
