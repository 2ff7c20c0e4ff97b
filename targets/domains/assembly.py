"""Convex regions from their walls, and checks of the ends of boxes."""

import math
from typing import Any, NamedTuple

import numpy as np

from toolkit.errors import check_number, plain_array, shown
from toolkit.maths.philox import MAX_DIM

from ..arrays import Array
from .convex import Convex, Draw


class Walls(NamedTuple):
    """The walls of a convex region as in ``Convex``; None: none of that kind."""

    lower: Array | None = None
    upper: Array | None = None
    normals: Array | None = None
    offsets: Array | None = None
    centres: Array | None = None
    radii: Array | None = None


def convex_region(
    name: str, dim: int, walls: Walls, *, closed: tuple[float, Draw] | None = None, part_of: Convex | None = None
) -> Convex:
    """The convex region of ``walls``; in one dimension all walls become an interval."""
    empty = (
        np.full(dim, -np.inf),
        np.full(dim, np.inf),
        np.empty((0, dim)),
        np.empty(0),
        np.empty((0, dim)),
        np.empty(0),
    )
    lower, upper, normals, offsets, centres, radii = (
        default if given is None else given for given, default in zip(walls, empty, strict=True)
    )
    if len(radii) and dim == 1:
        lower = np.maximum(lower, (centres[:, 0] - radii).max(keepdims=True))
        upper = np.minimum(upper, (centres[:, 0] + radii).min(keepdims=True))
        centres, radii = np.empty((0, 1)), np.empty(0)
    along = (normals != 0.0).sum(axis=1) == 1  # walls normal to an axis are sides of the box
    for row, offset in zip(normals[along], offsets[along], strict=True):
        (d,) = np.flatnonzero(row)
        if row[d] > 0.0:
            upper = np.where(np.arange(dim) == d, np.minimum(upper, offset / row[d]), upper)
        else:
            lower = np.where(np.arange(dim) == d, np.maximum(lower, offset / row[d]), lower)
    normals, offsets = normals[~along], offsets[~along]
    if closed is None and not len(normals) and not len(radii) and np.isfinite([lower, upper]).all():
        with np.errstate(over="ignore"):
            volume = float(np.prod(upper - lower))
        closed = volume, lambda n, rng: lower + (upper - lower) * rng.random((n, dim))
    return Convex(name, lower, upper, normals, offsets, centres, radii, closed, part_of)


def check_ends(name: str, values: Any, open_end: float) -> Array:
    """Ends of a box (dim,), finite or ``open_end``. Raises TypeError or ValueError otherwise."""
    ends = plain_array(name, values)
    if ends.size and ends.dtype.kind not in "iuf":
        raise TypeError(f"{name} must be an array of real numbers, got {shown(values)}")
    if ends.ndim != 1 or not 0 < ends.size < MAX_DIM:
        raise ValueError(f"{name} must have shape (dim,) with dim ≥ 1, got {ends.shape}")
    bad = np.flatnonzero(~np.isfinite(ends) & (ends != open_end))
    if bad.size:
        raise ValueError(f"{name} must be finite or {open_end:g}, got {ends[bad[0]]} at [{bad[0]}]")
    with np.errstate(over="ignore"):  # a longdouble beyond float64 is an open end
        return ends.astype(np.float64)


def check_end(name: str, value: Any, open_end: float) -> float:
    """One end, finite or ``open_end``. Raises TypeError or ValueError otherwise."""
    return open_end if isinstance(value, float) and value == open_end else check_number(name, value)


def exponential(logarithm: float) -> float:
    """exp, inf where that overflows."""
    return math.exp(logarithm) if logarithm < 709.0 else math.inf
