"""Integrals of a smooth function of one variable up to any point, from either end, by Gauss–Legendre on panels."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..arrays import Array
from .cells import legendre_rule

ORDER = 16


@dataclass(frozen=True, eq=False)
class RunningIntegral:
    """∫ of ``function`` over [first edge, x] and [x, last edge], for x of any shape, each right relative to itself.

    function: ≥ 0, of an array of any shape. edges: increasing, of panels so short that Gauss–Legendre of order 16 is
    exact on each to rounding. Beyond the edges the function counts as 0.
    """

    function: Callable[[Array], Array]
    edges: Array

    @cached_property
    def _panels(self) -> Array:
        """The integral over each panel."""
        return self._over(self.edges[:-1], self.edges[1:])

    @property
    def whole(self) -> float:
        """The integral from end to end."""
        return float(self._panels.sum())

    def below(self, x: Array) -> Array:
        """∫ from the first edge to x."""
        panel, inside = self._place(x)
        sums = np.append(0.0, np.cumsum(self._panels))
        return np.asarray(sums[panel] + self._over(self.edges[panel], inside))

    def above(self, x: Array) -> Array:
        """∫ from x to the last edge."""
        panel, inside = self._place(x)
        sums = np.append(np.cumsum(self._panels[::-1])[::-1], 0.0)
        return np.asarray(sums[panel + 1] + self._over(inside, self.edges[panel + 1]))

    def _place(self, x: Array) -> tuple[Array, Array]:
        """The panel of each x, and x moved to between the edges."""
        inside = np.clip(x, self.edges[0], self.edges[-1])
        panel = np.searchsorted(self.edges, inside, side="right") - 1
        return np.clip(panel, 0, self.edges.size - 2), inside

    def _over(self, low: Array, high: Array) -> Array:
        """The integral from ``low`` to ``high``, within one panel."""
        nodes, weights = legendre_rule(ORDER)
        half = 0.5 * (high - low)
        return np.asarray(half * (self.function((0.5 * (low + high))[..., None] + half[..., None] * nodes) @ weights))
