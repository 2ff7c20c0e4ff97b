"""The truth of laws that are Gaussian about a ridge: one coordinate of any law, the others normal given it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy

from toolkit._compiler import HoldsFunctions
from toolkit.errors import check_array
from toolkit.problem import EnergyAccuracy, Modes, check_finite_points

from ..arrays import Array
from .energy_levels import BOTH_TAILS, TAIL_ROUNDING
from .quantiles import check_probabilities, one_hot
from .rejection import check_draws, generator
from .strips import gauss_legendre, refine_edges, strip_masses
from .tail_quantiles import quantiles_from_tails, tails_at

N_PANELS = 400
PANELS_PER_INTERVAL, TOLERANCE = 8, 1e-9  # panels at first, and their largest error, as a share of a tail
MIN_TAIL, MAX_ENERGY_ABOVE = 1e-290, 750.0


@dataclass(frozen=True, eq=False)
class RidgeTruth(HoldsFunctions):
    """Truth of U(x) = h(x₁) + ½ ‖(x₂ − c(x₁), x₃, …)‖² / s(x₁)², by quadrature over x₁.

    Given x₁ the others are independent normals, so x₁ has density ∝ e^−h s^(dim − 1) and U = h(x₁) + ½ χ²(dim − 1).
    level, centre, width: h, c and s, functions (n,) → (n,). window: where x₁ has its mass. draw_first: (n, generator)
    → exact draws of x₁. centres: of the modes, (modes, dim). borders: between them, in x₁ (modes − 1,). breaks: where
    h, c or s change faster than elsewhere, by which no narrow part is missed.
    All to 1e-10, by Gauss–Legendre of order 12 on 400 panels, halved until they agree with their halves; energy
    quantiles and tails to 1e-6 of the smaller tail.
    """

    dim: int
    level: Callable[[Array], Array]
    centre: Callable[[Array], Array]
    width: Callable[[Array], Array]
    window: tuple[float, float]
    draw_first: Callable[[int, np.random.Generator], Array]
    centres: Array
    borders: tuple[float, ...] = ()
    breaks: tuple[float, ...] = ()
    accuracy: float = 1e-10

    at_hand: ClassVar[tuple[str, ...]] = ("memberships", "moments")  # ``toolkit._output.report.warnings``

    @cached_property
    def nodes(self) -> tuple[Array, Array, float]:
        """Nodes in x₁, their probabilities, and log Z."""
        edges = np.unique(
            np.clip([*np.linspace(*self.window, N_PANELS + 1), *self.borders, *self.breaks], *self.window)
        )
        highest = self.log_density(np.append(edges, gauss_legendre(edges[:-1], edges[1:])[0])).max()

        def density(x: Array) -> Array:
            return np.asarray(np.exp(self.log_density(x) - highest)[:, None])

        x, weights = gauss_legendre(edges[:-1], edges[1:])
        whole = float(weights.ravel() @ density(x.ravel())[:, 0])
        edges = refine_edges(edges, density, 1e-13 * whole)
        x, weights = gauss_legendre(edges[:-1], edges[1:])
        log_share = np.log(weights.ravel()) + self.log_density(x.ravel())
        log_total = float(np.logaddexp.reduce(log_share))
        return x.ravel(), np.exp(log_share - log_total), log_total + 0.5 * (self.dim - 1) * np.log(2.0 * np.pi)

    def log_density(self, x: Array) -> Array:
        """−h + (dim − 1) log s: the log density of x₁, not normalised."""
        return (self.dim - 1) * np.log(self.width(x)) - self.level(x)

    @property
    def log_normaliser(self) -> float:
        """log ∫ exp(−U)."""
        return self.nodes[2]

    @cached_property
    def mean(self) -> Array:
        """Mean (dim,)."""
        x, share, _ = self.nodes
        mean = np.zeros(self.dim)
        mean[0], mean[1] = share @ x, share @ self.centre(x)
        return mean

    @cached_property
    def covariance(self) -> Array:
        """Covariance (dim, dim)."""
        x, share, _ = self.nodes
        covariance = np.eye(self.dim) * (share @ self.width(x) ** 2)
        first_centred, ridge_centred = x - self.mean[0], self.centre(x) - self.mean[1]
        covariance[0, 0] = share @ first_centred**2
        covariance[0, 1] = covariance[1, 0] = share @ (first_centred * ridge_centred)
        covariance[1, 1] += share @ ridge_centred**2
        return covariance

    @cached_property
    def modes(self) -> Modes:
        """Modes, which are intervals of x₁ between the borders."""
        x, share, _ = self.nodes
        which = np.searchsorted(np.array(self.borders), x)
        return Modes(self.centres, np.bincount(which, share, len(self.centres)).astype(np.float64))

    def memberships(self, points: Any) -> Array:
        """One-hot rows (n, modes)."""
        which = np.searchsorted(np.array(self.borders), check_finite_points(points, self.dim)[:, 0])
        return one_hot(which, len(self.centres))

    def energy_quantiles(self, probabilities: Any) -> Array:
        """Quantiles of U."""
        level = self.level(self._level_nodes[0])
        highest = float(level.max()) + MAX_ENERGY_ABOVE
        return quantiles_from_tails(self._tails, check_probabilities(probabilities), float(level.min()), highest)

    def energy_tails(self, energies: Any) -> tuple[Array, Array]:
        """P(U ≤ u) and P(U > u) for each u of ``energies``, of its shape."""
        return tails_at(self._tails, check_array("energies", energies))

    @property
    def energy_accuracy(self) -> EnergyAccuracy:
        """Of energy quantiles."""
        return BOTH_TAILS

    @cached_property
    def _level_nodes(self) -> tuple[Array, Array]:
        """Sorted points in x₁ at which h is known; and those of them where h turns or the law may change."""
        x = np.unique(np.clip([*self.window, *self.nodes[0], *self.borders, *self.breaks], *self.window))
        rises = np.sign(np.diff(self.level(x)))
        turns = []
        for i in np.flatnonzero(rises[1:] != rises[:-1]):

            def height(z: float, sign: float = 1.0 if rises[i] < rises[i + 1] else -1.0) -> float:
                return sign * float(self.level(np.array([z]))[0])

            turns.append(scipy.optimize.minimize_scalar(height, bounds=x[[i, i + 2]], method="bounded").x)
        cuts = np.unique(np.clip([*self.window, *turns, *self.borders, *self.breaks], *self.window))
        return np.union1d(x, cuts), cuts

    def _tails(self, u: float) -> tuple[float, float]:
        """P(½ χ²(dim − 1) ≤ u − h(x₁)), and of >, both averaged over x₁.

        Between two places where h turns or is u, x₁ goes as a cosine, so that what ends like a root is smooth.
        """
        x, cuts = self._level_nodes
        is_above = self.level(x) > u
        crossings = [
            scipy.optimize.brentq(lambda z: float(self.level(np.array([z]))[0]) - u, x[i], x[i + 1], xtol=1e-300)
            for i in np.flatnonzero(is_above[1:] != is_above[:-1])
        ]
        cuts = np.union1d(cuts, crossings)
        half = 0.5 * (self.dim - 1)
        constant = self.log_normaliser - half * np.log(2.0 * np.pi)

        def parts(place: Array) -> Array:
            """Both integrands at ``place``, whose whole part is the number of the interval between cuts, (n, 2)."""
            i = np.minimum(place.astype(np.int64), len(cuts) - 2)
            angle, length = np.pi * (place - i), cuts[i + 1] - cuts[i]
            z = cuts[i] + 0.5 * length * (1.0 - np.cos(angle))
            share = np.exp(self.log_density(z) - constant) * 0.5 * np.pi * length * np.sin(angle)
            remaining = np.maximum(u - self.level(z), 0.0)
            both = scipy.special.gammainc(half, remaining), scipy.special.gammaincc(half, remaining)
            return np.asarray(share[:, None] * np.column_stack(both))

        def integrate(edges: Array) -> Array:
            place, weights = gauss_legendre(edges[:-1], edges[1:])
            return np.asarray(weights.ravel() @ parts(place.ravel()))

        edges = np.linspace(0.0, len(cuts) - 1.0, PANELS_PER_INTERVAL * (len(cuts) - 1) + 1)
        rough = np.maximum(integrate(edges), MIN_TAIL)
        noise = TAIL_ROUNDING * max(1.0, abs(u)) / max(u - float(self.level(x).min()), TAIL_ROUNDING)
        below, above = integrate(refine_edges(edges, lambda place: parts(place) / rough, max(TOLERANCE, noise)))
        return float(below), float(above)

    def cell_masses(self, x_edges: Any, y_edges: Any = None) -> Array:
        """Probability of each cell in the first two coordinates, shape (nx, ny)."""
        constant = self.log_normaliser - 0.5 * (self.dim - 1) * np.log(2.0 * np.pi)
        return strip_masses(
            x_edges,
            y_edges,
            density=lambda x: np.exp(self.log_density(x) - constant),
            below=lambda x, y: scipy.special.ndtr((y - self.centre(x)) / self.width(x)),
            window=self.window,
            breaks=self.breaks,
        )

    def independent_draws(self, n: int, *, seed: int) -> Array:
        """Exact draws (n, dim)."""
        rng = generator(seed)
        first = self.draw_first(check_draws(n, self.dim), rng)
        rest = self.width(first)[:, None] * rng.standard_normal((n, self.dim - 1))
        rest[:, 0] += self.centre(first)
        return np.hstack([first[:, None], rest])
