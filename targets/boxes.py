"""Boxes of any dimension: where rules have their nodes in them, how they are cut, and what lies between edges."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def rule(order: int, dim: int) -> tuple[Array, Array]:
    """Places (order^dim, dim) in the unit cube and weights of the tensor Gauss–Legendre rule."""
    nodes, weights = np.polynomial.legendre.leggauss(order)
    places = np.stack(np.meshgrid(*[0.5 * (nodes + 1.0)] * dim, indexing="ij"), axis=-1).reshape(-1, dim)
    products = np.stack(np.meshgrid(*[0.5 * weights] * dim, indexing="ij"), axis=-1).reshape(-1, dim)
    return places, products.prod(axis=1)


def halved(lows: Array, widths: Array, scale: Array) -> tuple[Array, Array]:
    """The panels, each halved in every coordinate in which, in units of ``scale``, it is more than half its longest."""
    sides = widths / scale
    splits = sides > 0.5 * sides.max(axis=1, keepdims=True)
    for d in range(lows.shape[1]):
        which = splits[:, d]
        half = np.where(which, 0.5, 1.0) * widths[:, d]
        widths = np.column_stack([widths[:, :d], half, widths[:, d + 1 :]])
        upper = lows[which].copy()
        upper[:, d] += half[which]
        lows = np.concatenate([lows, upper])
        widths, splits = np.concatenate([widths, widths[which]]), np.concatenate([splits, splits[which]])
    return lows, widths


def corners(dim: int) -> Array:
    """The 2^dim corners of the unit cube, moved in a little, for a border may run along a side."""
    ends = [1e-6, 1.0 - 1e-6]
    return np.stack(np.meshgrid(*[ends] * dim, indexing="ij"), axis=-1).reshape(-1, dim)


def closed_lattice(lows: Array, widths: Array, steps: int) -> Array:
    """(steps + 1)^dim evenly spaced points of each panel, its corners among them; shape (panels, points, dim)."""
    dim = lows.shape[1]
    ticks = np.arange(steps + 1) / steps
    places = np.stack(np.meshgrid(*[ticks] * dim, indexing="ij"), axis=-1).reshape(-1, dim)
    return np.asarray(lows[:, None] + widths[:, None] * places)


def refined_axis(low: float, high: float, across: int, breaks: Any) -> Array:
    """Edges from ``low`` to ``high``, at every one of ``breaks`` between them and at ``across`` even intervals."""
    inner = np.asarray(breaks, np.float64).ravel()
    inner = inner[(inner > low) & (inner < high)]
    edges = np.unique(np.concatenate([np.linspace(low, high, across + 1), inner]))
    slivers = np.diff(edges) < 1e-12 * (high - low)  # an even edge that rounding has set beside a break
    return np.asarray(edges[np.append(True, ~slivers)])


def with_middles(places: Array) -> Array:
    """``places`` in order, and the middles between them: where the borders are between modes on a grid."""
    ordered = np.sort(places)
    apart = ordered[np.append(True, np.diff(ordered) > 1e-9 * np.abs(ordered).max())]
    return np.concatenate([apart, 0.5 * (apart[1:] + apart[:-1])])
