"""Targets with many modes: the papers' 25-mode energy, and mixtures of Gaussians; each with its truth."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, ndtr

from toolkit.checks import check_array, check_count, check_number
from toolkit.compiling import inlined, kernel
from toolkit.maths import exp, fma, log, select, sincos_turns
from toolkit.problem import Target

from .quadrature import cell_integrals, check_edges
from .rejection import accepted, generator

Array = NDArray[np.float64]


def cosine25_block(position: Any, energy: Any, gradient: Any, parameters: Any, scratch: Any) -> None:
    """Energy and gradient of ``cosine25``."""
    for lane in range(position.shape[1]):
        x, y = position[0, lane], position[1, lane]
        sin_x, cos_x = sincos_turns(x)
        sin_y, cos_y = sincos_turns(y)
        squared = fma(x, x, y * y)
        beyond = squared > 20.0
        energy[lane] = fma(0.2, squared, fma(-2.0, cos_x + cos_y, select(beyond, squared - 20.0, 0.0)))
        pull = select(beyond, 2.4, 0.4)
        gradient[0, lane] = fma(pull, x, 12.566370614359172 * sin_x)  # 4π sin 2πx
        gradient[1, lane] = fma(pull, y, 12.566370614359172 * sin_y)


def cosine25() -> Target:
    """U(x) = 0.2 ‖x‖² − 2 (cos 2πx₁ + cos 2πx₂), plus ‖x‖² − 20 where ‖x‖² > 20.

    Modes near all integer points, one apart, with barriers of 4.05 nats; 25 of them matter. No mixture of
    Gaussians, though the papers call it one: its modes differ in weight by up to 4.9.
    Source: ICSGLD (2022), D.2; r2SGLD (2024), A.3. Truth: quadrature and exact rejection draws.
    """
    return Target("cosine25", 2, cosine25_block, truth=CosineTruth())


@dataclass(frozen=True)
class CosineTruth:
    """Truth of ``cosine25``; cell masses to 1e-6 of the whole (``quadrature.cell_integrals``)."""

    @property
    def log_normaliser(self) -> float:
        """log ∫ exp(−U) over the plane: radius split where the energy's slope jumps, angles by the trapezoidal rule."""
        nodes, weights = np.polynomial.legendre.leggauss(200)
        edge = np.sqrt(20.0)
        radius = np.concatenate([0.5 * edge * (nodes + 1.0), edge + 4.0 * (nodes + 1.0)])
        measure = np.concatenate([0.5 * edge * weights, 4.0 * weights]) * radius
        angle = 2.0 * np.pi * np.arange(1024) / 1024
        points = np.stack([np.outer(radius, np.cos(angle)), np.outer(radius, np.sin(angle))], axis=-1)
        energy = cosine25().evaluate(points.reshape(-1, 2))[0].reshape(radius.size, -1)
        return float(np.log(measure @ np.exp(-energy).mean(axis=1) * 2.0 * np.pi))

    def cell_masses(self, x_edges: Any, y_edges: Any) -> Array:
        """Probability of each cell, shape (nx, ny)."""
        square = 12.0 * np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])  # holds all but e⁻¹⁰⁰
        return cell_integrals(cosine25(), [square], x_edges, y_edges, offset=-self.log_normaliser)

    def independent_draws(self, n: int, *, seed: int) -> Array:
        """Exact draws (n, 2): the Gaussian exp(−0.2 ‖x‖²), kept with probability exp of the rest of −U minus 4."""
        rng = generator(seed)

        def propose(batch: int) -> Array:
            x = rng.standard_normal((batch, 2)) * np.sqrt(2.5)
            beyond = np.maximum((x**2).sum(axis=1) - 20.0, 0.0)
            log_keep = 2.0 * np.cos(2.0 * np.pi * x).sum(axis=1) - 4.0 - beyond
            return np.asarray(x[np.log(rng.random(batch)) < log_keep])

        return accepted(n, 2, propose, name="cosine25")


def gaussian_mixture_block(position: Any, energy: Any, gradient: Any, parameters: Any, scratch: Any) -> None:
    """Energy and gradient of ``gaussian_mixture``; parameters: ½/variance, then rows (offset, mean).

    Log-sum-exp in two passes over the components: the smallest exponent first, so that nothing under- or overflows.
    """
    dim, lanes = position.shape
    precision = parameters[0]
    lowest, total, squared = scratch[0], scratch[1], scratch[2]
    for lane in range(lanes):
        lowest[lane] = math.inf
        total[lane] = 0.0
    for d in range(dim):
        for lane in range(lanes):
            gradient[d, lane] = 0.0
    for row in range(1, parameters.size, dim + 1):
        offset = parameters[row]
        square_distances(position, parameters[row + 1 : row + 1 + dim], squared)
        for lane in range(lanes):
            exponent = fma(precision, squared[lane], offset)
            lowest[lane] = select(exponent < lowest[lane], exponent, lowest[lane])
    for row in range(1, parameters.size, dim + 1):
        offset, mean = parameters[row], parameters[row + 1 : row + 1 + dim]
        square_distances(position, mean, squared)
        for lane in range(lanes):
            squared[lane] = exp(lowest[lane] - fma(precision, squared[lane], offset))
            total[lane] += squared[lane]
        for d in range(dim):
            centre = mean[d]
            for lane in range(lanes):
                gradient[d, lane] = fma(squared[lane], position[d, lane] - centre, gradient[d, lane])
    for lane in range(lanes):
        energy[lane] = lowest[lane] - log(total[lane])
        total[lane] = 2.0 * precision / total[lane]
    for d in range(dim):
        for lane in range(lanes):
            gradient[d, lane] *= total[lane]


@kernel
def square_distances(position, mean, squared):
    """squared (lane,) ← ‖position − mean‖²."""
    for lane in range(squared.size):
        squared[lane] = 0.0
    for d in range(position.shape[0]):
        centre = mean[d]
        for lane in range(squared.size):
            away = position[d, lane] - centre
            squared[lane] = fma(away, away, squared[lane])


def gaussian_mixture(means: Any, variance: float, weights: Sequence[float] | None = None, *, name: str = "") -> Target:
    """Mixture Σ w_k N(μ_k, variance · I): means (components, dim), weights (components,), equal where not given.

    U includes the normalising constant, so exp(−U) integrates to 1. Weights must be positive and sum to 1.
    Raises ValueError or TypeError naming the argument otherwise. One component gives a Gaussian.
    """
    centres = check_array("means", means)
    if centres.ndim != 2 or centres.size == 0:
        raise ValueError(f"means must have shape (components, dim), got {centres.shape}")
    variance = check_number("variance", variance, above=0.0)
    components, dim = centres.shape
    shares = np.full(components, 1.0 / components) if weights is None else check_array("weights", weights)
    if shares.shape != (components,) or (shares <= 0).any() or abs(shares.sum() - 1.0) > 1e-9:
        raise ValueError(f"weights must be {components} positive numbers that sum to 1, got {weights!r}")
    offsets = 0.5 * dim * np.log(2.0 * np.pi * variance) - np.log(shares)
    rows = np.hstack([offsets[:, None], centres])
    return Target(
        name or f"gaussian_mixture({components} in {dim}-D)",
        dim,
        gaussian_mixture_block,
        np.concatenate([[0.5 / variance], rows.ravel()]),
        scratch_rows=3,
        truth=MixtureTruth(centres, variance, shares),
    )


def gaussian_grid25() -> Target:
    """25 Gaussians of equal weight and variance 0.03, at {−4, −2, 0, 2, 4}², normalised.

    Evaluated as the product it is, of one 5-component mixture per axis: 10 exponentials in place of 25.
    Source: cyclical SG-MCMC (2020), section 5.1 (the variance is 0.03, not its square root).
    """
    places = np.arange(-4.0, 5.0, 2.0)
    means = np.stack(np.meshgrid(places, places, indexing="ij"), axis=-1).reshape(-1, 2)
    truth = MixtureTruth(means, 0.03, np.full(25, 0.04))
    return Target("gaussian_grid25", 2, gaussian_grid_block, truth=truth)


def gaussian_grid_block(position: Any, energy: Any, gradient: Any, parameters: Any, scratch: Any) -> None:
    """Energy and gradient of ``gaussian_grid25``."""
    for lane in range(position.shape[1]):
        energy_x, gradient[0, lane] = comb(position[0, lane])
        energy_y, gradient[1, lane] = comb(position[1, lane])
        energy[lane] = energy_x + energy_y


@inlined
def comb(x):
    """Energy and slope of Σ 0.2 N(c, 0.03) over c = −4, −2, 0, 2, 4, by log-sum-exp about the nearest centre."""
    inner = select(x > 4.0, 4.0, select(x < -4.0, -4.0, x))
    nearest = 2.0 * math.floor(0.5 * inner + 0.5)
    away = x - nearest
    total, moment = 0.0, 0.0
    for n in range(5):
        shift = (2.0 * n - 4.0) - nearest
        # ‖x − c‖² − ‖x − nearest‖² = shift (shift − 2 away), without the cancellation far out; 16.7 = 1 / (2 · 0.03)
        share = exp(-16.666666666666668 * shift * (shift - 2.0 * away))
        total += share
        moment = fma(share, away - shift, moment)
    # log(0.2) − ½ log(2π 0.03) = −0.775097497
    return fma(16.666666666666668 * away, away, 0.7750974969787822 - log(total)), moment / total * 33.333333333333336


@dataclass(frozen=True, eq=False)
class MixtureTruth:
    """Closed-form truth of ``gaussian_mixture``."""

    means: Array
    variance: float
    weights: Array

    @property
    def log_normaliser(self) -> float:
        """0: the energy is normalised."""
        return 0.0

    def log_density(self, points: Any) -> Array:
        """Log density at ``points`` (n, dim), by SciPy: an oracle for the block function."""
        away = np.asarray(points, np.float64)[:, None] - self.means
        exponent = -0.5 * (away**2).sum(axis=2) / self.variance
        constant = 0.5 * self.means.shape[1] * np.log(2.0 * np.pi * self.variance)
        return np.asarray(logsumexp(exponent + np.log(self.weights), axis=1) - constant)

    def cell_masses(self, x_edges: Any, y_edges: Any) -> Array:
        """Probability of each cell, shape (nx, ny); two dimensions only."""
        if self.means.shape[1] != 2:
            raise ValueError(f"cells need dimension 2, and this mixture has {self.means.shape[1]}")
        scale = np.sqrt(self.variance)
        across = np.diff(ndtr((check_edges("x_edges", x_edges)[:, None] - self.means[:, 0]) / scale), axis=0)
        up = np.diff(ndtr((check_edges("y_edges", y_edges)[:, None] - self.means[:, 1]) / scale), axis=0)
        return np.asarray((across * self.weights) @ up.T)

    def independent_draws(self, n: int, *, seed: int) -> Array:
        """Exact draws (n, dim)."""
        n, rng = check_count("n", n, at_least=0), generator(seed)
        component = rng.choice(len(self.weights), size=n, p=self.weights)
        return np.asarray(
            self.means[component] + np.sqrt(self.variance) * rng.standard_normal((n, self.means.shape[1]))
        )
