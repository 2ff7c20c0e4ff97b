"""Mixtures of Student-t laws in any dimension: modes with heavy tails."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
import scipy

from toolkit.errors import check_number, check_scale, check_text
from toolkit.maths.elementary import exp_share, fma, log, select
from toolkit.problem import Modes, Spread, Target, check_finite_points, recorded

from ..arrays import Array
from ..mixtures.gaussian import square_distances
from ..mixtures.truth import MAX_COMPONENTS_BY_QUADRATURE, check_components
from ..truth.energy_law import energy_law
from ..truth.energy_levels import EnergyLaw, EnergyTable, WithEnergyLaw
from ..truth.panels import energies_of
from ..truth.quantiles import checked_edges
from ..truth.rejection import check_draws, generator
from ..truth.strips import strip_masses

MIN_DEGREES, MAX_DEGREES = 0.1, 1e6  # radii leave float64 below; the law is normal above, and its peak loses digits


def student_mixture_block(position: Any, energy: Any, gradient: Any, parameters: Any, scratch: Any) -> None:
    """Energy and gradient of ``student_mixture``; parameters: 1 / (ν s²), (ν + dim) / 2, then rows (offset, mean).

    Log-sum-exp in two passes over the components, the smallest exponent first; scratch keeps for each component its
    exponent and its 1 / (1 + q), and has two rows besides.
    """
    dim, lanes = position.shape
    precision, power = parameters[0], parameters[1]
    components = (parameters.size - 2) // (dim + 1)
    lowest, total = scratch[2 * components], scratch[2 * components + 1]
    for lane in range(lanes):
        lowest[lane], total[lane] = math.inf, 0.0
    for d in range(dim):
        slope = gradient[d]
        for lane in range(lanes):
            slope[lane] = 0.0
    for k in range(components):
        start = 2 + k * (dim + 1)
        offset, exponent, inverse = parameters[start], scratch[2 * k], scratch[2 * k + 1]
        square_distances(position, parameters[start + 1 : start + 1 + dim], inverse)
        for lane in range(lanes):
            stretch = fma(precision, inverse[lane], 1.0)
            inverse[lane] = 1.0 / stretch
            value = fma(power, log(stretch), offset)
            exponent[lane] = value
            lowest[lane] = select(value < lowest[lane], value, lowest[lane])
    for k in range(components):
        start = 3 + k * (dim + 1)
        exponent, inverse = scratch[2 * k], scratch[2 * k + 1]
        for lane in range(lanes):
            share = exp_share(lowest[lane] - exponent[lane])
            total[lane] += share
            inverse[lane] *= share
        for d in range(dim):
            centre, row, slope = parameters[start + d], position[d], gradient[d]
            for lane in range(lanes):
                slope[lane] = fma(inverse[lane], row[lane] - centre, slope[lane])
    for lane in range(lanes):
        energy[lane] = lowest[lane] - log(total[lane])
        total[lane] = 2.0 * precision * power / total[lane]
    for d in range(dim):
        slope = gradient[d]
        for lane in range(lanes):
            slope[lane] *= total[lane]


@recorded("classics")
def student_mixture(
    means: Any, scale: float, degrees: float, weights: Sequence[float] | None = None, *, name: str = ""
) -> Target:
    """U(x) = −log Σ_k w_k t_ν(x; μ_k, s²), each density ∝ (1 + ‖x − μ_k‖² / (ν s²))^(−(ν + dim)/2).

    means: (components, dim). scale: s > 0. degrees: 0.1 ≤ ν ≤ 10⁶; no mean for ν ≤ 1, no covariance for ν ≤ 2. weights:
    (components,), positive with sum 1; None: equal. exp(−U) integrates to 1. Raises TypeError or ValueError otherwise.
    Source: Kotz & Nadarajah (2004), "Multivariate t Distributions", eq. 1.1.
    """
    centres, shares = check_components(means, weights)
    scale = check_scale("scale", scale)
    degrees = check_number("degrees", degrees, at_least=MIN_DEGREES, at_most=MAX_DEGREES)
    components, dim = centres.shape
    log_peak = (
        scipy.special.gammaln(0.5 * (degrees + dim))
        - scipy.special.gammaln(0.5 * degrees)
        - 0.5 * dim * np.log(np.pi * degrees * scale**2)
    )
    rows = np.hstack([(-log_peak - np.log(shares))[:, None], centres])
    numbers = np.concatenate([[1.0 / (degrees * scale**2), 0.5 * (degrees + dim)], rows.ravel()])
    name = check_text("name", name) or f"student_mixture({components} in {dim}-D, {degrees:g} degrees)"
    truth = StudentTruth(centres, scale, degrees, shares, numbers)
    spread = Spread.around(centres, 3.0 * scale)
    return Target(name, dim, student_mixture_block, numbers, 2 * components + 2, truth, spread=spread)


@dataclass(frozen=True, eq=False)
class StudentTruth(WithEnergyLaw):
    """Truth of ``student_mixture``: closed forms; cells to 1e-10.

    Energy quantiles and tails: in one and two dimensions, for ν ≥ 2, by ``energy_levels``, to 1e-6 of the smaller tail;
    else by ``energy_law``, to 1e-4 in probability where components lie apart or dimensions are few, which is what
    ``accuracy`` says.
    """

    means: Array
    scale: float
    degrees: float
    weights: Array
    parameters: Array
    accuracy: float = 1e-4

    at_hand: ClassVar[tuple[str, ...]] = ("memberships", "moments")  # ``toolkit._output.report.warnings``

    @property
    def log_normaliser(self) -> float:
        """0: the energy is normalised."""
        return 0.0

    @property
    def mean(self) -> Array:
        """Mean (dim,); inf for ν ≤ 1."""
        return self.weights @ self.means if self.degrees > 1.0 else np.full(self.means.shape[1], np.inf)

    @property
    def covariance(self) -> Array:
        """Covariance (dim, dim); inf for ν ≤ 2."""
        dim = self.means.shape[1]
        if self.degrees <= 2.0:
            return np.full((dim, dim), np.inf)
        centred = self.means - self.mean
        within = self.scale**2 * self.degrees / (self.degrees - 2.0)
        return np.asarray(np.eye(dim) * within + (self.weights * centred.T) @ centred)

    @property
    def modes(self) -> Modes:
        """The components."""
        return Modes(self.means, self.weights)

    def memberships(self, points: Any) -> Array:
        """Responsibilities of the components, (n, components)."""
        points = check_finite_points(points, self.means.shape[1])
        shares = np.empty((len(points), len(self.weights)))
        power = -0.5 * (self.degrees + self.means.shape[1])
        for k, mean in enumerate(self.means):
            squared = ((points - mean) ** 2).sum(axis=1) / (self.degrees * self.scale**2)
            shares[:, k] = np.log(self.weights[k]) + power * np.log1p(squared)
        shares = np.exp(shares - shares.max(axis=1, keepdims=True))
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    @cached_property
    def law_of_energy(self) -> EnergyLaw | EnergyTable:
        """By quadrature, with panels that double in length away from the means; or by quasi-random points."""
        dim = self.means.shape[1]
        target = Target("", dim, student_mixture_block, self.parameters, 2 * len(self.means) + 2)
        if dim <= 2 and self.degrees >= 2.0 and len(self.weights) <= MAX_COMPONENTS_BY_QUADRATURE:
            reach = 10.0 ** (17.0 / self.degrees) * np.sqrt(max(1.0, self.degrees))
            far = self.scale * np.exp2(np.arange(-1.0, np.log2(reach) + 1.0))
            distances = np.concatenate([-far, [0.0], far])
            breaks = [np.unique((column[:, None] + distances).round(12)) for column in self.means.T]
            low, high = self.means.min(axis=0) - far[-1], self.means.max(axis=0) + far[-1]
            return EnergyLaw.within(partial(energies_of, target), low, high, breaks)

        def radius(shares: Array) -> Array:
            """‖x − μ‖² / (ν s²) = 1/b − 1, b of the beta law of (ν/2, dim/2)."""
            stretch = scipy.special.betaincinv(0.5 * self.degrees, 0.5 * dim, shares)
            return np.asarray(self.scale * np.sqrt(self.degrees * (1.0 - stretch) / stretch))

        return energy_law(target, self.weights, radius, [partial(np.add, mean) for mean in self.means])

    def cell_masses(self, x_edges: Any, y_edges: Any = None) -> Array:
        """Probability of each cell in the first two coordinates, (nx, ny); in one dimension (nx,).

        Marginals are Student-t with the same ν; x = μ + s sinh r, and y given x is Student-t with ν + 1.
        """
        if self.means.shape[1] == 1:
            x = checked_edges(x_edges, y_edges, 1)[0]
            below_x = scipy.special.stdtr(self.degrees, (x[:, None] - self.means[:, 0]) / self.scale)
            return np.asarray(np.diff(below_x, axis=0) @ self.weights)
        x, y = checked_edges(x_edges, y_edges, 2)
        nu = self.degrees
        log_peak = scipy.special.gammaln(0.5 * (nu + 1.0)) - scipy.special.gammaln(0.5 * nu) - 0.5 * np.log(np.pi * nu)

        def density(r: Array) -> Array:
            return np.asarray(np.exp(log_peak - 0.5 * (nu + 1.0) * np.log1p(np.sinh(r) ** 2 / nu)) * np.cosh(r))

        def below(r: Array, y: Array) -> Array:
            return np.asarray(scipy.special.stdtr(nu + 1.0, y * np.sqrt((nu + 1.0) / (nu + np.sinh(r) ** 2))))

        total = np.zeros((x.size - 1, y.size - 1))
        for mean, weight in zip(self.means, self.weights, strict=True):
            r, scaled_y = np.arcsinh((x - mean[0]) / self.scale), (y - mean[1]) / self.scale
            total += weight * strip_masses(r, scaled_y, density=density, below=below, window=(r[0], r[-1]))
        return total

    def independent_draws(self, n: int, *, seed: int) -> Array:
        """Exact draws (n, dim): a normal over the root of an independent χ²_ν / ν."""
        n, rng = check_draws(n, self.means.shape[1]), generator(seed)
        component = rng.choice(len(self.weights), size=n, p=self.weights)
        normals = rng.standard_normal((n, self.means.shape[1]))
        shrink = np.sqrt(2.0 * rng.standard_gamma(0.5 * self.degrees, (n, 1)) / self.degrees)
        return np.asarray(self.means[component] + self.scale * normals / shrink)
