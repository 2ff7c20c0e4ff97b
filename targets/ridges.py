"""The truth of laws that are Gaussian about a ridge: one coordinate of any law, the others normal given it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy
from numpy.typing import NDArray

from toolkit.problem import Modes, check_finite_points

from .nearest import one_hot
from .quantiles import rising_root
from .rejection import check_draws, generator
from .strips import panels, resolved, strip_masses
from .truth_checks import check_probabilities

Array = NDArray[np.float64]

PANELS = 400


@dataclass(frozen=True, eq=False)
class RidgeTruth:
    """Truth of U(x) = h(x₁) + ½ ‖(x₂ − c(x₁), x₃, …)‖² / s(x₁)², by quadrature over x₁.

    Given x₁ the others are independent normals, so x₁ has density ∝ e^−h s^(dim − 1) and U = h(x₁) + ½ χ²(dim − 1).
    level, centre, width: h, c and s, functions (n,) → (n,). window: where x₁ has its mass. draw_first: (n, generator)
    → exact draws of x₁. centres: of the modes, (modes, dim). borders: between them, in x₁ (modes − 1,). breaks: where
    h, c or s change faster than elsewhere, by which no narrow part is missed.
    accuracy: of the energy's law, whose integrand ends like a root in two dimensions; the rest is to 1e-10, by
    Gauss–Legendre of order 12 on 400 panels, halved until they agree with their halves.
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
    accuracy: float = 5e-5

    at_hand: ClassVar[tuple[str, ...]] = ("memberships", "moments")  # ``toolkit.truth_comparison``

    @cached_property
    def places(self) -> tuple[Array, Array, float]:
        """Nodes in x₁, their probabilities, and log Z."""
        edges = np.unique(np.clip([*np.linspace(*self.window, PANELS + 1), *self.borders, *self.breaks], *self.window))
        highest = self.log_density(np.append(edges, panels(edges[:-1], edges[1:])[0])).max()

        def density(x: Array) -> Array:
            return np.asarray(np.exp(self.log_density(x) - highest)[:, None])

        x, weights = panels(edges[:-1], edges[1:])
        whole = float(weights.ravel() @ density(x.ravel())[:, 0])
        edges = resolved(edges, density, 1e-13 * whole)
        x, weights = panels(edges[:-1], edges[1:])
        log_share = np.log(weights.ravel()) + self.log_density(x.ravel())
        log_total = float(np.logaddexp.reduce(log_share))
        return x.ravel(), np.exp(log_share - log_total), log_total + 0.5 * (self.dim - 1) * np.log(2.0 * np.pi)

    def log_density(self, x: Array) -> Array:
        """−h + (dim − 1) log s: the log density of x₁, not normalised."""
        return (self.dim - 1) * np.log(self.width(x)) - self.level(x)

    @property
    def log_normaliser(self) -> float:
        """log ∫ exp(−U)."""
        return self.places[2]

    @cached_property
    def mean(self) -> Array:
        """Mean (dim,)."""
        x, share, _ = self.places
        mean = np.zeros(self.dim)
        mean[0], mean[1] = share @ x, share @ self.centre(x)
        return mean

    @cached_property
    def covariance(self) -> Array:
        """Covariance (dim, dim)."""
        x, share, _ = self.places
        covariance = np.eye(self.dim) * (share @ self.width(x) ** 2)
        away, off = x - self.mean[0], self.centre(x) - self.mean[1]
        covariance[0, 0] = share @ away**2
        covariance[0, 1] = covariance[1, 0] = share @ (away * off)
        covariance[1, 1] += share @ off**2
        return covariance

    @cached_property
    def modes(self) -> Modes:
        """Modes, told apart by x₁ alone."""
        x, share, _ = self.places
        which = np.searchsorted(np.array(self.borders), x)
        return Modes(self.centres, np.bincount(which, share, len(self.centres)).astype(np.float64))

    def memberships(self, points: Any) -> Array:
        """One-hot rows (n, modes)."""
        which = np.searchsorted(np.array(self.borders), check_finite_points(points, self.dim)[:, 0])
        return one_hot(which, len(self.centres))

    def energy_quantiles(self, probabilities: Any) -> Array:
        """Quantiles of U, by bisection of E[F(2 (u − h(x₁)))] with F the χ² law's."""
        x, share, _ = self.places
        level = self.level(x[share > 1e-15])
        share = share[share > 1e-15]

        def below(u: Array) -> Array:
            return np.array(
                [share @ scipy.special.gammainc(0.5 * (self.dim - 1), np.maximum(v - level, 0.0)) for v in u]
            )

        low, high = float(level.min()), float(level.max()) + 50.0 + self.dim
        return rising_root(below, check_probabilities(probabilities), low, high)

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
