"""The truth of a target inside a region of many dimensions, from exact draws by rejection."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from toolkit.errors import UnavailableError
from toolkit.maths.seeds import TRUTH, derived_seed
from toolkit.problem import EnergyAccuracy, Modes, Target, check_finite_points

from ..arrays import Array
from ..shapes.planar import Shape
from ..truth.quantiles import check_probabilities, checked_edges, nearest_index, one_hot
from .convex import Convex
from .left_out import LEFT_OUT, STARTS, descended, share_left_out

MAX_NUMBERS = 1 << 23  # coordinates of the target's draws, all together
MAX_TRIALS = 400_000  # draws of the target
MIN_DRAWS_INSIDE = 1_000  # draws that must fall inside
SEED = derived_seed(0, TRUTH)  # reserved, so that exact draws by a user's seed are independent of the truth


@dataclass(frozen=True, eq=False)
class SampledTruth:
    """Truth of a target inside a region, from exact draws of the target that fall inside.

    draws: (target, region, n, seed) → exact draws inside. Raises ValueError, when asked, where the target has no
    truth of its own, or fewer than 1,000 of some 400,000 draws fall inside.
    """

    target: Target
    region: Shape | Convex
    draws: Callable[[Target, Any, int, int], Array]

    @cached_property
    def _sample(self) -> tuple[Array, int]:
        """Exact draws inside, and how many were tried."""
        if self.target.truth is None:
            raise ValueError(f"the truth inside a region needs that of the target, and {self.target.name!r} has none")
        tried = min(MAX_TRIALS, MAX_NUMBERS // self.target.dim)
        points = self.target.truth.independent_draws(tried, seed=SEED)
        inside = points[self.region.contains(points)]
        if len(inside) < MIN_DRAWS_INSIDE:
            raise ValueError(
                f"the truth of {self.target.name!r} in {self.region.name!r} needs {MIN_DRAWS_INSIDE} of its draws "
                f"inside, got {len(inside)} of {tried}"
            )
        return inside, tried

    @property
    def accuracy(self) -> float:
        """4.5 standard errors of a second moment of a normal law: 4.5 √(2 / draws); of probabilities, a third of it."""
        return float(4.5 * np.sqrt(2.0 / len(self._sample[0])))

    @cached_property
    def log_normaliser(self) -> float:
        """log ∫ exp(−U) over the region, in nats: the target's own, and the logarithm of the share inside."""
        inside, tried = self._sample
        assert self.target.truth is not None
        return float(self.target.truth.log_normaliser + np.log(len(inside) / tried))

    @cached_property
    def mean(self) -> Array:
        """Mean (dim,)."""
        return np.asarray(self._sample[0].mean(axis=0))

    @cached_property
    def covariance(self) -> Array:
        """Covariance (dim, dim)."""
        return np.cov(self._sample[0].T)

    @cached_property
    def _centres(self) -> Array:
        """The target's modes inside; of a target with one mode, which is outside, the draw of lowest energy.

        Raises UnavailableError where the target has several modes, none of them inside; and where descents from draws
        end in a minimum that these leave out, with more than 5 % of the draws (``left_out``).
        """
        drawn, truth = self._sample[0], self.target.truth
        assert truth is not None  # or there were no draws
        centres = truth.modes.centres
        inside = centres[self.region.contains(centres)]
        if not len(inside) and len(centres) > 1:
            raise UnavailableError(
                f"the modes of {self.target.name!r} in {self.region.name!r} are unknown: none of its {len(centres)} "
                "is inside, and those at walls are looked for in one and two dimensions only"
            )
        known = inside if len(inside) else drawn[[np.argmin(self._energies)]]
        ends = descended(self.target, drawn[:STARTS], self.region)
        share = share_left_out(self.target, known, ends, drawn, np.ones(len(drawn)), self.region.contains)
        if share > LEFT_OUT:
            raise UnavailableError(
                f"the modes of {self.target.name!r} in {self.region.name!r} are unknown: a minimum that is none of "
                f"{len(known)} known holds {share:.0%} of its draws there, and minima at walls are listed in one and "
                "two dimensions only"
            )
        return known

    @cached_property
    def _energies(self) -> Array:
        """Energies of the draws."""
        return self.target.evaluate(self._sample[0])[0]

    @cached_property
    def modes(self) -> Modes:
        """The target's mode centres inside, and the probability of all points nearest to each."""
        return Modes(self._centres, self.memberships(self._sample[0]).mean(axis=0))

    def memberships(self, points: Any) -> Array:
        """1 for the nearest mode centre inside, else 0; shape (n, modes)."""
        nearest = nearest_index(self._centres, check_finite_points(points, self.target.dim))
        return one_hot(nearest, len(self._centres))

    def energy_quantiles(self, probabilities: Any) -> Array:
        """Energies u with P(U ≤ u) = p."""
        return np.asarray(np.quantile(self._energies, check_probabilities(probabilities)))

    @property
    def energy_accuracy(self) -> EnergyAccuracy:
        """Of energy quantiles: 4.5 standard errors of a share of the draws."""
        return EnergyAccuracy(0.0, float(2.25 / np.sqrt(len(self._sample[0]))))

    def cell_masses(self, x_edges: Any, y_edges: Any = None) -> Array:
        """Probability of each cell in the first two coordinates, shape (nx, ny)."""
        edges = checked_edges(x_edges, y_edges, self.target.dim)
        inside, _ = self._sample
        return np.asarray(np.histogramdd(inside[:, :2], edges)[0] / len(inside))

    def independent_draws(self, n: int, *, seed: int) -> Array:
        """Exact draws (n, dim): the target's own that fall inside."""
        return self.draws(self.target, self.region, n, seed)

    def distance(self, points: Any) -> Array:
        """Distance of ``points`` (n, dim) to the boundary, positive inside."""
        return self.region.distance(points)
