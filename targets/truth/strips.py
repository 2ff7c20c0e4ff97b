"""Cells of a law in the plane known strip by strip: by a density of x, and a distribution function of y given x."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..arrays import Array
from .cells import legendre_rule, split_edges
from .quantiles import checked_edges

ORDER = 12
N_PANELS, MAX_PANELS = 128, 1 << 17  # across the window of x to begin with, and at most
TOLERANCE = 1e-12  # by which a panel's integrals may differ from its halves'


def gauss_legendre(lows: Array, highs: Array) -> tuple[Array, Array]:
    """Nodes and weights of Gauss–Legendre rules of order 12 from each of ``lows`` to ``highs``, each (panel, 12)."""
    nodes, weights = legendre_rule(ORDER)
    half = 0.5 * (highs - lows)[:, None]
    return lows[:, None] + half * (nodes + 1.0), half * weights


def refine_edges(edges: Array, integrand: Callable[[Array], Array], tolerance: float) -> Array:
    """``edges`` with more between them, so that over each panel the rule of order 12 agrees with those over its halves.

    integrand: (n,) → (n, m). tolerance: of each of the m integrals over a panel. Raises ValueError where 131,072 panels
    do not get there.
    """

    def integrals(lows: Array, highs: Array) -> Array:
        x, weights = gauss_legendre(lows, highs)
        values = integrand(x.ravel()).reshape(len(lows), ORDER, -1)
        return np.asarray((weights[:, None] @ values)[:, 0])

    found, lows, highs = [edges], edges[:-1], edges[1:]
    wholes = integrals(lows, highs)
    while len(lows):
        middles = 0.5 * (lows + highs)
        halves = integrals(lows, middles), integrals(middles, highs)
        unresolved = np.abs(halves[0] + halves[1] - wholes).max(axis=1) > tolerance
        found.append(middles[unresolved])
        if sum(map(len, found)) > MAX_PANELS:
            raise ValueError(
                f"{MAX_PANELS} panels across [{edges[0]:g}, {edges[-1]:g}] do not give the integrals to "
                f"{tolerance:g}: the law turns or narrows too fast for its width; take less extreme numbers"
            )
        lows, highs = (
            np.append(lows[unresolved], middles[unresolved]),
            np.append(middles[unresolved], highs[unresolved]),
        )
        wholes = np.concatenate([half[unresolved] for half in halves])
    return np.sort(np.concatenate(found))


def strip_masses(
    x_edges: Any,
    y_edges: Any,
    *,
    density: Callable[[Array], Array],
    below: Callable[[Array, Array], Array],
    window: tuple[float, float],
    breaks: Any = (),
) -> Array:
    """∫ density(x) (below(x, y₂) − below(x, y₁)) dx over each cell; shape (nx, ny), to 1e-10 of the whole.

    density: of x, (n,) → (n,), nothing of it outside ``window``. below: P(Y ≤ y | x), ((n, 1), (m,)) → (n, m).
    breaks: where density or below change faster than elsewhere. Raises ValueError for edges that do not increase, or
    where the panels of ``refine_edges`` do not get there.
    """
    x_edges, y_edges = checked_edges(x_edges, y_edges, 2)
    masses = np.zeros((x_edges.size - 1, y_edges.size - 1))
    if x_edges[-1] <= window[0] or x_edges[0] >= window[1]:
        return masses

    def parts(x: Array) -> Array:
        """Of the whole below each edge, for a narrow cell is easily missed."""
        return density(x)[:, None] * np.column_stack([np.ones(x.size), below(x[:, None], y_edges)])

    inner = np.asarray(breaks, np.float64).ravel()
    start = np.union1d(x_edges, inner[(inner > x_edges[0]) & (inner < x_edges[-1])])
    fine = refine_edges(split_edges(start, *window, (window[1] - window[0]) / N_PANELS), parts, TOLERANCE)
    x, weights = gauss_legendre(fine[:-1], fine[1:])
    shares = np.diff(below(x.reshape(-1, 1), y_edges), axis=1)
    strips = ((weights * density(x.ravel()).reshape(x.shape)).reshape(-1, 1) * shares).reshape(len(x), ORDER, -1)
    np.add.at(masses, np.searchsorted(x_edges, 0.5 * (fine[1:] + fine[:-1]), side="right") - 1, strips.sum(axis=1))
    return masses
