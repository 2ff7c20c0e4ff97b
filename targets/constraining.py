"""``constrained``: a target inside a shape, with the truth of both together."""

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.checks import check_count
from toolkit.problem import Problem, Target

from .quadrature import cell_integrals
from .rejection import accepted
from .shapes import Shape

Array = NDArray[np.float64]


def constrained(target: Target, shape: Shape) -> Problem:
    """The problem of ``target`` restricted to ``shape``: density ∝ exp(−U) inside, 0 outside; two dimensions.

    Raises TypeError for other kinds of arguments, ValueError for a target of another dimension.
    """
    if not isinstance(target, Target):
        raise TypeError(f"target must be a Target, got {target!r} of type {type(target).__name__}")
    if not isinstance(shape, Shape):
        raise TypeError(f"shape must be a Shape, got {shape!r} of type {type(shape).__name__}")
    if target.dim != 2:
        raise ValueError(f"target must have dimension 2 to lie in a shape, got {target.dim}")
    return Problem(target, shape.domain, ConstrainedTruth(target, shape))


@dataclass(frozen=True, eq=False)
class ConstrainedTruth:
    """Truth of a target inside a shape, by quadrature over the shape's own polygon (``quadrature.cell_integrals``)."""

    target: Target
    shape: Shape

    @cached_property
    def log_normaliser(self) -> float:
        """log ∫ exp(−U) over the shape, in nats."""
        x_min, y_min, x_max, y_max = self.shape.bounds
        whole = cell_integrals(self.target, self.shape.rings, [x_min, x_max], [y_min, y_max], self._offset)
        return float(np.log(whole[0, 0]) - self._offset)

    @cached_property
    def _offset(self) -> float:
        """An energy near the smallest inside, so that exp(offset − U) neither under- nor overflows."""
        return float(self.target.evaluate(self.shape.uniform_draws(1000, seed=0))[0].min())

    def cell_masses(self, x_edges: Any, y_edges: Any) -> Array:
        """Probability of the part of each cell inside the shape, shape (nx, ny)."""
        integrals = cell_integrals(self.target, self.shape.rings, x_edges, y_edges, self._offset)
        return np.asarray(integrals * np.exp(-self._offset - self.log_normaliser))

    def independent_draws(self, n: int, *, seed: int) -> Array:
        """Exact draws (n, 2): the target's own that fall inside. Raises ValueError where the target has no truth."""
        truth = self.target.truth
        if truth is None:
            raise ValueError(
                f"independent draws need a target that can draw them, and {self.target.name!r} has no truth"
            )
        attempts = itertools.count()
        first = check_count("seed", seed, at_least=0, below=2**64)

        def propose(batch: int) -> Array:
            points = truth.independent_draws(batch, seed=(first + (next(attempts) << 32)) % 2**64)
            return np.asarray(points[self.shape.contains(points)])

        return accepted(n, 2, propose, name=f"draws of {self.target.name!r} in {self.shape.name!r}")

    def distance(self, points: Any) -> Array:
        """Distance of ``points`` (n, 2) to the boundary, positive inside."""
        return self.shape.distance(points)
