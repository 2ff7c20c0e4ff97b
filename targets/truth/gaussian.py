"""The truth of one Gaussian, and the probability of cells under it."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy

from toolkit.problem import EnergyAccuracy, Modes, Spread, check_finite_points

from ..arrays import Array
from .energy_levels import BOTH_TAILS, WithEnergyLaw
from .quantiles import checked_edges
from .rejection import check_draws, generator
from .strips import strip_masses

WINDOW_SDS = 10.0  # standard deviations a quadrature goes to: all but e⁻⁵⁰


@dataclass(frozen=True, eq=False)
class GaussianTruth(WithEnergyLaw):
    """Closed-form truth of N(mean, covariance) with an energy whose least is ``lowest``; its cells to 1e-10."""

    mean: Array  # (dim,)
    covariance: Array  # (dim, dim)
    log_normaliser: float
    lowest: float = 0.0
    accuracy: float = 1e-10

    at_hand: ClassVar[tuple[str, ...]] = ("memberships", "moments")  # ``toolkit._output.report.warnings``

    @property
    def spread(self) -> Spread:
        """Two standard deviations about the mean."""
        return Spread(2.0 * np.sqrt(np.diag(self.covariance)), self.mean)

    @property
    def modes(self) -> Modes:
        """The one mode, at the mean."""
        return Modes(self.mean[None], np.ones(1))

    def memberships(self, points: Any) -> Array:
        """Ones (n, 1)."""
        return np.ones((len(check_finite_points(points, self.mean.size)), 1))

    @property
    def law_of_energy(self) -> "HalfChi2":
        """``lowest`` + ½ χ²(dim)."""
        return HalfChi2(self.lowest, self.mean.size)

    def cell_masses(self, x_edges: Any, y_edges: Any = None) -> Array:
        """Probability of each cell in the first two coordinates, shape (nx, ny); in one dimension (nx,)."""
        return gaussian_cells(self.mean, self.covariance, checked_edges(x_edges, y_edges, self.mean.size))

    def independent_draws(self, n: int, *, seed: int) -> Array:
        """Exact draws (n, dim)."""
        normals = generator(seed).standard_normal((check_draws(n, self.mean.size), self.mean.size))
        return np.asarray(self.mean + normals @ self._root.T)

    @cached_property
    def _root(self) -> Array:
        """Lower triangular root of the covariance."""
        return np.asarray(np.linalg.cholesky(self.covariance))


class HalfChi2(NamedTuple):
    """The law of ``lowest`` + ½ χ²(dim), in closed form."""

    lowest: float
    dim: int
    accuracy: EnergyAccuracy = BOTH_TAILS

    def quantiles(self, probabilities: Array) -> Array:
        """Energies u with P(U ≤ u) = p, each from the smaller of the two tails."""
        half = 0.5 * self.dim
        upper, lower = (
            scipy.special.gammainccinv(half, 1.0 - probabilities), scipy.special.gammaincinv(half, probabilities)
        )  # fmt: skip
        return np.asarray(self.lowest + np.where(probabilities > 0.5, upper, lower))

    def tails_at(self, levels: Array) -> tuple[Array, Array]:
        """P(U ≤ u) and P(U > u) for each u of ``levels``, of its shape."""
        half, above = 0.5 * self.dim, np.maximum(levels - self.lowest, 0.0)
        return np.asarray(scipy.special.gammainc(half, above)), np.asarray(scipy.special.gammaincc(half, above))


def gaussian_cells(mean: Array, covariance: Array, edges: list[Array]) -> Array:
    """Probability of N(mean, covariance) in each cell of its first one or two coordinates; 1e-10 where correlated."""
    scale = np.sqrt(np.diag(covariance))
    if len(edges) == 1 or covariance[0, 1] == 0.0:
        strips = [np.diff(scipy.special.ndtr((e - m) / s)) for e, m, s in zip(edges, mean, scale, strict=False)]
        return strips[0] if len(edges) == 1 else np.outer(*strips)
    slope = covariance[0, 1] / covariance[0, 0]
    rest = np.sqrt(covariance[1, 1] - slope * covariance[0, 1])
    return strip_masses(
        *edges,
        density=lambda x: np.exp(-0.5 * ((x - mean[0]) / scale[0]) ** 2) / (np.sqrt(2.0 * np.pi) * scale[0]),
        below=lambda x, y: scipy.special.ndtr((y - mean[1] - slope * (x - mean[0])) / rest),
        window=(mean[0] - WINDOW_SDS * scale[0], mean[0] + WINDOW_SDS * scale[0]),
    )
