"""Rings of vertices: their area, and whether they are simple closed polygons."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from toolkit.checks import check_array
from toolkit.compiling import compile_part
from toolkit.signatures import INTEGERS, MATRIX

Array = NDArray[np.float64]

LEAST = 1e-14  # area, as a share of its extent's square, below which a ring encloses nothing but rounding


def ring_area(ring: Array) -> float:
    """Signed area of a ring, positive counter-clockwise."""
    x, y = (ring - ring[0]).T
    return 0.5 * float(x @ np.roll(y, -1) - np.roll(x, -1) @ y)


def check_ring(label: str, given: Any, *, clockwise: bool) -> Array:
    """``given`` as a ring (vertices, 2) in the direction asked for.

    Raises TypeError or ValueError for anything but 3 or more finite vertices without repeats that enclose an area.
    """
    ring = check_array(label, given)
    if ring.ndim != 2 or ring.shape[1] != 2 or len(ring) < 3:
        raise ValueError(f"{label} must have shape (vertices, 2) with at least 3 vertices, got {ring.shape}")
    repeats = np.flatnonzero((ring == np.roll(ring, -1, axis=0)).all(axis=1))
    if repeats.size:
        raise ValueError(f"{label} must not repeat a vertex, got {ring[repeats[0]].tolist()} twice in a row")
    with np.errstate(over="ignore", invalid="ignore"):
        area = ring_area(ring)
    if not 0.0 < abs(area) < np.inf:
        raise ValueError(f"{label} must enclose an area, got {area}")
    return ring if (area < 0) == clockwise else ring[::-1].copy()


def check_area(label: str, ring: Array) -> None:
    """Raise ValueError where what a ring encloses is rounding; one that crosses itself has more to mend."""
    area, extent = ring_area(ring), float(np.ptp(ring, axis=0).max())
    if abs(area) <= LEAST * extent * extent:
        raise ValueError(f"{label} must enclose an area, got {area} of vertices {extent} apart")


def check_crossings(name: str, rings: Sequence[Array]) -> None:
    """Raise ValueError where an edge of the rings meets another that is not its neighbour."""
    segments = np.concatenate([np.hstack([ring, np.roll(ring, -1, axis=0)]) for ring in rings])
    firsts = np.cumsum([0, *map(len, rings)])
    following = np.concatenate([np.roll(np.arange(len(r)), -1) + n for r, n in zip(rings, firsts, strict=False)])
    order = np.argsort(segments[:, ::2].min(axis=1), kind="stable")
    signature = types.UniTuple(types.int64, 2)(MATRIX, INTEGERS, INTEGERS)
    first, second = compile_part(find_crossing, signature, allocates=True)(segments, following, order)
    if first >= 0:
        raise ValueError(
            f"{name} must not cross or touch itself, but its edges from {segments[first, :2].tolist()} and from "
            f"{segments[second, :2].tolist()} meet"
        )


def find_crossing(segments: Any, following: Any, order: Any) -> Any:
    """Two edges (rows x1, y1, x2, y2) that meet other than as neighbours in a ring; (−1, −1) for none.

    ``order``: by the smaller x, so that only edges that overlap in x are compared.
    """
    for n in range(len(order)):
        i = order[n]
        ax, ay, bx, by = segments[i]
        for m in range(n + 1, len(order)):
            j = order[m]
            cx, cy, dx, dy = segments[j]
            if max(ax, bx) < min(cx, dx):
                break
            if max(ay, by) < min(cy, dy) or max(cy, dy) < min(ay, by):
                continue
            c_side = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
            d_side = (bx - ax) * (dy - ay) - (by - ay) * (dx - ax)
            a_side = (dx - cx) * (ay - cy) - (dy - cy) * (ax - cx)
            b_side = (dx - cx) * (by - cy) - (dy - cy) * (bx - cx)
            if following[i] == j or following[j] == i:
                turns_back = (bx - ax) * (dx - cx) + (by - ay) * (dy - cy) < 0.0
                if c_side == 0.0 and d_side == 0.0 and turns_back:
                    return i, j
                continue
            if c_side * d_side <= 0.0 and a_side * b_side <= 0.0:
                return i, j
    return np.int64(-1), np.int64(-1)
