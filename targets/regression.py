"""Bayesian linear regression: a target with data, whose minibatches and whose exact posterior are both at hand."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numba import uint64
from numpy.typing import NDArray

from toolkit.checks import check_array, check_count, check_number
from toolkit.compiling import kernel
from toolkit.evaluation import CHAIN, COUNTER_ROWS, MODE, REPLICA, SEED_HIGH, SEED_LOW, STEP
from toolkit.maths import fma
from toolkit.philox import BATCH, WORD, uniform_pair
from toolkit.problem import Target

from .quadrature import cell_integrals
from .rejection import generator

Array = NDArray[np.float64]

# The parameters: these numbers, then the posterior's mean (p) and precision (p, p), the features (data, p) and the
# response (data).
N_DATA, N_DRAWN, REFRESH_EVERY, NOISE_PRECISION, PRIOR_PRECISION, LOWEST, CONSTANT, N_NUMBERS = range(8)


def linear_regression_block(position: Any, energy: Any, gradient: Any, parameters: Any, scratch: Any) -> None:
    """Energy and gradient of ``linear_regression``: from all data, or where the engine asks for it from a minibatch."""
    dim = position.shape[0]
    refresh = int(parameters[REFRESH_EVERY])
    if scratch.shape[0] == 0 or scratch[MODE, 0] == 0.0:
        use_all_data(position, energy, gradient, parameters)
        return
    picks = scratch[COUNTER_ROWS : COUNTER_ROWS + 2]
    if refresh == 0:
        use_prior(position, energy, gradient, parameters)
        add_batch(position, position, energy, gradient, parameters, scratch, picks, False)
        return
    anchor = scratch[COUNTER_ROWS + 2 : COUNTER_ROWS + 2 + dim]
    slope = scratch[COUNTER_ROWS + 2 + dim : COUNTER_ROWS + 2 + 2 * dim]
    level = scratch[COUNTER_ROWS + 2 + 2 * dim]
    if scratch[MODE, 0] == 1.0 and int(scratch[STEP, 0]) % refresh == 0:
        for d in range(dim):
            for lane in range(energy.size):
                anchor[d, lane] = position[d, lane]
        use_all_data(anchor, level, slope, parameters)
    move_prior(position, anchor, energy, gradient, level, slope, parameters)
    add_batch(position, anchor, energy, gradient, parameters, scratch, picks, True)


@kernel
def use_all_data(position, energy, gradient, parameters):
    """U(μ) + ½ (x − μ)ᵀ Λ (x − μ) and Λ (x − μ), of the posterior's mean μ and precision Λ."""
    dim, lanes = position.shape
    for lane in range(lanes):
        energy[lane] = parameters[LOWEST]
    for d in range(dim):
        row = parameters[N_NUMBERS + dim * (d + 1) : N_NUMBERS + dim * (d + 2)]
        slope = gradient[d]
        for lane in range(lanes):
            slope[lane] = 0.0
        for e in range(dim):
            mean, precision, x = parameters[N_NUMBERS + e], row[e], position[e]
            for lane in range(lanes):
                slope[lane] = fma(precision, x[lane] - mean, slope[lane])
        mean, x = parameters[N_NUMBERS + d], position[d]
        for lane in range(lanes):
            energy[lane] = fma(0.5 * slope[lane], x[lane] - mean, energy[lane])


@kernel
def use_prior(position, energy, gradient, parameters):
    """The prior's part, and the constant of the likelihood."""
    precision = parameters[PRIOR_PRECISION]
    for lane in range(energy.size):
        energy[lane] = parameters[CONSTANT]
    for d in range(position.shape[0]):
        for lane in range(energy.size):
            x = position[d, lane]
            gradient[d, lane] = precision * x
            energy[lane] = fma(0.5 * precision * x, x, energy[lane])


@kernel
def move_prior(position, anchor, energy, gradient, level, slope, parameters):
    """Energy ``level`` and gradient ``slope`` of all data at ``anchor``, the prior's part moved to ``position``."""
    precision = parameters[PRIOR_PRECISION]
    for lane in range(energy.size):
        energy[lane] = level[lane]
    for d in range(position.shape[0]):
        for lane in range(energy.size):
            x, a = position[d, lane], anchor[d, lane]
            gradient[d, lane] = fma(precision, x - a, slope[d, lane])
            energy[lane] = fma(0.5 * precision * (x - a), x + a, energy[lane])


@kernel
def add_batch(position, anchor, energy, gradient, parameters, scratch, picks, subtracts):
    """Add data / drawn times the sum of the drawn data's parts, less those at ``anchor`` where ``subtracts``."""
    n_data, n_drawn = int(parameters[N_DATA]), int(parameters[N_DRAWN])
    for pair in range((n_drawn + 1) // 2):
        for lane in range(energy.size):
            seed = (uint64(scratch[SEED_HIGH, lane]) << WORD) | uint64(scratch[SEED_LOW, lane])
            u, v = uniform_pair(
                seed, uint64(scratch[CHAIN, lane]), uint64(scratch[REPLICA, lane]), uint64(scratch[STEP, lane]),
                uint64(BATCH), uint64(pair),
            )  # fmt: skip
            picks[0, lane], picks[1, lane] = math.floor(u * n_data), math.floor(v * n_data)
        for i in range(min(2, n_drawn - 2 * pair)):
            add_data(position, anchor, energy, gradient, parameters, picks[i], n_data, n_drawn, subtracts)


@kernel
def add_data(position, anchor, energy, gradient, parameters, pick, n_data, n_drawn, subtracts):
    """Add one datum's part in every lane; lane by lane, for each has another datum."""
    dim = position.shape[0]
    features = N_NUMBERS + dim + dim * dim
    scale = parameters[NOISE_PRECISION] * n_data / n_drawn
    for lane in range(energy.size):
        i = int(pick[lane])
        first = features + i * dim
        residual = parameters[features + n_data * dim + i]
        moved = 0.0
        for d in range(dim):
            residual = fma(-parameters[first + d], position[d, lane], residual)
        if subtracts:  # the residual at the anchor is residual + moved, without cancellation
            for d in range(dim):
                moved = fma(parameters[first + d], position[d, lane] - anchor[d, lane], moved)
            energy[lane] = fma(-0.5 * scale * moved, 2.0 * residual + moved, energy[lane])
            pull = -moved
        else:
            energy[lane] = fma(0.5 * scale * residual, residual, energy[lane])
            pull = residual
        for d in range(dim):
            gradient[d, lane] = fma(-scale * pull, parameters[first + d], gradient[d, lane])


def linear_regression(
    features: Any,
    response: Any,
    *,
    noise: float,
    prior: float,
    batch_size: int | None = None,
    refresh_every: int | None = None,
    name: str = "",
) -> Target:
    """Posterior of β for y = F β + N(0, noise² I) with the prior N(0, prior² I): U = −log p(y, β), Gaussian in β.

    features: F (data, dim). response: y (data,). noise, prior: standard deviations > 0. exp(−U) integrates to the
    evidence p(y). Evaluated in O(dim²) from sufficient statistics.
    batch_size: n ≥ 1; None: all data. Each replica draws n data anew at each step, with replacement, and has energy
    and gradient both from them, N/n times their sum: unbiased, with the covariance N²/n times that over the data.
    refresh_every: q ≥ 1; None: no control variate. Else both are estimated by their change since an anchor, the
    replica's place at the last step that q divides: U(a) + N/n Σ_batch (U_i(x) − U_i(a)), unbiased too, at the cost of
    all data every q-th step. The gradient's noise is then F_i F_iᵀ (x − a) in place of F_i times the residual.
    Law: exact N(μ, T Λ⁻¹) at temperature T, Λ = FᵀF/noise² + I/prior², for all data; minibatches heat it.
    Source: conjugate; the estimator of Deng et al. (2021), as used by ICSGLD (2022), D.4, with draws with replacement.
    Raises TypeError or ValueError naming the argument where something is off.
    """
    matrix, values = check_array("features", features), check_array("response", response)
    if matrix.ndim != 2 or matrix.size == 0:
        raise ValueError(f"features must have shape (data, dim) and not be empty, got {matrix.shape}")
    if values.shape != matrix.shape[:1]:
        raise ValueError(f"response must have shape (data,) = {matrix.shape[:1]}, got {values.shape}")
    noise, prior = check_number("noise", noise, above=0.0), check_number("prior", prior, above=0.0)
    n_drawn = 0 if batch_size is None else check_count("batch_size", batch_size, at_least=1, below=2**17)
    refresh = 0 if refresh_every is None else check_count("refresh_every", refresh_every, at_least=1)
    if refresh and not n_drawn:
        raise ValueError(f"refresh_every needs a batch_size, got refresh_every={refresh} and batch_size=None")
    n_data, dim = matrix.shape
    precision = matrix.T @ matrix / noise**2 + np.eye(dim) / prior**2
    mean = np.asarray(np.linalg.solve(precision, matrix.T @ values / noise**2), np.float64)
    constant = n_data * np.log(noise) + dim * np.log(prior) + 0.5 * (n_data + dim) * np.log(2.0 * np.pi)
    misfit = ((values - matrix @ mean) ** 2).sum() / noise**2 + (mean**2).sum() / prior**2
    numbers = np.zeros(N_NUMBERS)
    numbers[N_DATA], numbers[N_DRAWN], numbers[REFRESH_EVERY] = n_data, n_drawn, refresh
    numbers[NOISE_PRECISION], numbers[PRIOR_PRECISION] = noise**-2, prior**-2
    numbers[LOWEST], numbers[CONSTANT] = constant + 0.5 * misfit, constant
    parameters = np.concatenate([numbers, mean, precision.ravel(), matrix.ravel(), values])
    rows = COUNTER_ROWS + 2 + (2 * dim + 1 if refresh else 0) if n_drawn else 0
    name = name or f"linear_regression({n_data} data in {dim}-D)"
    truth = RegressionTruth(mean, precision, parameters)
    return Target(name, dim, linear_regression_block, parameters, rows, truth, stochastic=n_drawn > 0)


@dataclass(frozen=True, eq=False)
class RegressionTruth:
    """Closed-form truth of ``linear_regression``: N(mean, precision⁻¹), and the evidence."""

    mean: Array
    precision: Array
    parameters: Array

    @cached_property
    def covariance(self) -> Array:
        """Covariance of the posterior, (dim, dim)."""
        return np.asarray(np.linalg.inv(self.precision))

    @property
    def log_normaliser(self) -> float:
        """log p(y), the evidence."""
        log_determinant = float(np.linalg.slogdet(self.precision / (2.0 * np.pi))[1])
        return -float(self.parameters[LOWEST]) - 0.5 * log_determinant

    def cell_masses(self, x_edges: Any, y_edges: Any) -> Array:
        """Probability of each cell, shape (nx, ny), to 1e-6 of the whole; two dimensions only."""
        if self.mean.size != 2:
            raise ValueError(f"cells need dimension 2, and this regression has {self.mean.size}")
        ring = self.mean + 12.0 * np.sqrt(np.diag(self.covariance)) * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
        target = Target("all data", self.mean.size, linear_regression_block, self.parameters)
        return cell_integrals(target, [ring], x_edges, y_edges, offset=-self.log_normaliser)

    def independent_draws(self, n: int, *, seed: int) -> Array:
        """Exact draws (n, dim)."""
        normals = generator(seed).standard_normal((check_count("n", n, at_least=0), self.mean.size))
        root = np.linalg.cholesky(self.precision)
        return np.asarray(self.mean + np.linalg.solve(root.T, normals.T).T)
