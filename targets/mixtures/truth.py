"""The truth of mixtures of Gaussians, of any covariances and in any dimension."""

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
import scipy

from toolkit.errors import check_array, shown
from toolkit.problem import Modes, Spread, Target, check_finite_points, check_points

from ..arrays import Array
from ..truth.energy_law import energy_law
from ..truth.energy_levels import EnergyLaw, EnergyTable, WithEnergyLaw
from ..truth.gaussian import HalfChi2, gaussian_cells
from ..truth.panels import energies_of
from ..truth.quantiles import checked_edges
from ..truth.rejection import check_draws, generator

MAX_COMPONENTS_BY_QUADRATURE = 64  # components


def with_mixture_truth(target: Target, means: Array, covariances: Array, weights: Array) -> Target:
    """``target`` with the truth of Σ w_k N(μ_k, Σ_k), whose normalised energy it has."""
    sds = np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))
    return replace(
        target, truth=MixtureTruth(target, means, covariances, weights), spread=Spread.around(means, 2.0 * sds)
    )


@dataclass(frozen=True, eq=False)
class MixtureTruth(WithEnergyLaw):
    """Truth of Σ w_k N(μ_k, Σ_k), whose normalised energy is that of ``target``; closed forms but for two things.

    Cells of components correlated in the first two coordinates are by quadrature, to 1e-10. Energy quantiles and tails:
    of one component, ½ χ²(dim); of more, in one and two dimensions, by quadrature, to 1e-6 of the smaller tail; else by
    ``energy_law``, to 1e-4 in probability, to 1e-3 where components overlap in many dimensions.
    A mode is a component, and the memberships of a point are the components' posterior probabilities.
    """

    target: Target
    means: Array  # (components, dim)
    covariances: Array  # (components, dim, dim)
    weights: Array  # (components,)

    at_hand: ClassVar[tuple[str, ...]] = ("memberships", "moments")  # ``toolkit._output.report.warnings``

    @property
    def accuracy(self) -> float:
        """Of the cells; the rest is to rounding, but for energy quantiles."""
        uncorrelated = self.target.dim == 1 or not self.covariances[:, 0, 1].any()
        return 0.0 if uncorrelated else 1e-10

    @property
    def log_normaliser(self) -> float:
        """0: the energy is normalised."""
        return 0.0

    @cached_property
    def mean(self) -> Array:
        """Σ w_k μ_k."""
        return np.asarray(self.weights @ self.means)

    @cached_property
    def covariance(self) -> Array:
        """Σ w_k (Σ_k + (μ_k − μ)(μ_k − μ)ᵀ)."""
        centred = self.means - self.mean
        return np.asarray(np.tensordot(self.weights, self.covariances, axes=1) + (self.weights * centred.T) @ centred)

    @property
    def modes(self) -> Modes:
        """The components."""
        return Modes(self.means, self.weights)

    @cached_property
    def _roots(self) -> Array:
        """Cholesky factors of the covariances, (components, dim, dim)."""
        return np.asarray(np.linalg.cholesky(self.covariances))

    def log_densities(self, points: Any) -> Array:
        """Log of each component's weighted density at ``points`` (n, dim); shape (n, components)."""
        points, dim = check_points(points, self.target.dim), self.target.dim
        columns = []
        for mean, root, weight in zip(self.means, self._roots, self.weights, strict=True):
            white = np.linalg.solve(root, (points - mean).T)
            constant = np.log(weight) - np.log(np.diag(root)).sum() - 0.5 * dim * np.log(2.0 * np.pi)
            columns.append(constant - 0.5 * (white**2).sum(axis=0))
        return np.stack(columns, axis=1)

    def log_density(self, points: Any) -> Array:
        """Log density at ``points`` (n, dim): an oracle for the block function."""
        return np.asarray(scipy.special.logsumexp(self.log_densities(points), axis=1))

    def memberships(self, points: Any) -> Array:
        """Posterior probability of each component at ``points`` (n, dim); shape (n, components)."""
        log_densities = self.log_densities(check_finite_points(points, self.target.dim))
        return np.asarray(np.exp(log_densities - scipy.special.logsumexp(log_densities, axis=1, keepdims=True)))

    @cached_property
    def law_of_energy(self) -> HalfChi2 | EnergyLaw | EnergyTable:
        """½ χ² of one component; by quadrature in one and two dimensions; else by quasi-random points."""
        dim = self.target.dim
        if len(self.weights) == 1:
            return HalfChi2(float(-self.log_density(self.means[:1])[0]), dim)
        if dim <= 2 and len(self.weights) <= MAX_COMPONENTS_BY_QUADRATURE:
            spread = np.sqrt(np.diagonal(self.covariances, axis1=1, axis2=2))
            breaks = [
                np.unique(np.concatenate([mean + far * width for far in (-4.0, -1.0, 0.0, 1.0, 4.0)]).round(12))
                for mean, width in zip(self.means.T, spread.T, strict=True)
            ]
            low, high = (self.means - 8.0 * spread).min(axis=0), (self.means + 8.0 * spread).max(axis=0)
            return EnergyLaw.about(partial(energies_of, self.target), low, high, breaks)

        def radius(shares: Array) -> Array:
            return np.asarray(np.sqrt(2.0 * scipy.special.gammaincinv(0.5 * dim, shares)))

        def placement(mean: Array, root: Array, offset: Array) -> Array:
            return np.asarray(mean + offset @ root.T)

        placements = [partial(placement, mean, root) for mean, root in zip(self.means, self._roots, strict=True)]
        return energy_law(self.target, self.weights, radius, placements)

    def cell_masses(self, x_edges: Any, y_edges: Any = None) -> Array:
        """Probability of each cell in the first two coordinates, shape (nx, ny); in one dimension (nx,)."""
        edges = checked_edges(x_edges, y_edges, self.target.dim)
        masses = np.zeros([len(e) - 1 for e in edges])
        for mean, covariance, weight in zip(self.means, self.covariances, self.weights, strict=True):
            masses += weight * gaussian_cells(mean, covariance, edges)
        return masses

    def independent_draws(self, n: int, *, seed: int) -> Array:
        """Exact draws (n, dim)."""
        n, rng = check_draws(n, self.target.dim), generator(seed)
        component = rng.choice(len(self.weights), size=n, p=self.weights)
        normals = rng.standard_normal((n, self.target.dim))
        draws = np.empty_like(normals)
        for k, root in enumerate(self._roots):
            draws[component == k] = self.means[k] + normals[component == k] @ root.T
        return draws


def check_components(means: Any, weights: Any) -> tuple[Array, Array]:
    """Means (components, dim) and weights (components,) with sum 1, equal for None. Raises TypeError or ValueError."""
    centres = check_array("means", means)
    if centres.ndim != 2 or centres.size == 0:
        raise ValueError(f"means must have shape (components, dim), got {centres.shape}")
    n = len(centres)
    shares = np.full(n, 1.0 / n) if weights is None else check_array("weights", weights)
    if shares.shape != (n,) or (shares <= 0).any() or abs(shares.sum() - 1.0) > 1e-9:
        raise ValueError(f"weights must be {n} positive numbers that sum to 1, got {shown(weights)}")
    return centres, shares / shares.sum()
