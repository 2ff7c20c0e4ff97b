"""Bayesian linear regression: minibatches of data, and the exact posterior."""

from typing import Any

import numpy as np

from toolkit._compiler import kernel
from toolkit.errors import check_scale, check_text
from toolkit.maths.elementary import fma
from toolkit.problem import Target

from ..truth.gaussian import GaussianTruth
from .minibatch import (
    N_DATA,
    N_DRAWN,
    N_SHARED,
    batch_rows,
    check_batch,
    check_table,
    evaluator,
    move_normal_prior,
    shared_numbers,
    use_normal_prior,
)
from .quadratic import quadratic_numbers, use_quadratic

# After the numbers that all families share: 1/noise², then those of ``use_quadratic``, which are U at the posterior's
# mean, that mean (p) and precision (p, p); then the features (data, p) and the response (data).
NOISE_PRECISION, LOWEST, N_NUMBERS = range(N_SHARED, N_SHARED + 3)
MAX_CONDITION = 1e14  # of the posterior's precision; from 1e16 on its inverse has no correct digit


@kernel
def use_all_data(position, energy, gradient, parameters, work):
    """U(μ) + ½ (x − μ)ᵀ Λ (x − μ) and Λ (x − μ), of the posterior's mean μ and precision Λ."""
    use_quadratic(position, energy, gradient, parameters[LOWEST:], work)


@kernel
def add_data(position, anchor, energy, gradient, parameters, pick, subtracts):
    """Add one datum's part in every lane; each lane has its own datum."""
    dim = position.shape[0]
    features = N_NUMBERS + dim + dim * dim
    n_data = int(parameters[N_DATA])
    scale = parameters[NOISE_PRECISION] * n_data / parameters[N_DRAWN]
    for lane in range(energy.size):
        i = int(pick[lane])
        first = features + i * dim
        residual = parameters[features + n_data * dim + i]
        change = 0.0
        for d in range(dim):
            residual = fma(-parameters[first + d], position[d, lane], residual)
        if subtracts:  # the residual at the anchor is residual + moved, without cancellation
            for d in range(dim):
                change = fma(parameters[first + d], position[d, lane] - anchor[d, lane], change)
            energy[lane] = fma(-0.5 * scale * change, 2.0 * residual + change, energy[lane])
            residual_change = -change
        else:
            energy[lane] = fma(0.5 * scale * residual, residual, energy[lane])
            residual_change = residual
        for d in range(dim):
            gradient[d, lane] = fma(-scale * residual_change, parameters[first + d], gradient[d, lane])


evaluate_regression = evaluator(use_all_data, use_normal_prior, move_normal_prior, add_data)


def linear_regression_block(position: Any, energy: Any, gradient: Any, parameters: Any, scratch: Any) -> None:
    """Energy and gradient of ``linear_regression``: from all data, or where the engine asks for it from a minibatch."""
    evaluate_regression(position, energy, gradient, parameters, scratch, scratch)


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
    matrix, values = check_table(features, "response", response)
    noise, prior = check_scale("noise", noise), check_scale("prior", prior)
    n_drawn, refresh = check_batch(batch_size, refresh_every)
    n_data, dim = matrix.shape
    precision = matrix.T @ matrix / noise**2 + np.eye(dim) / prior**2
    condition = float(np.linalg.cond(precision))
    if not condition < MAX_CONDITION:
        raise ValueError(
            f"features, noise and prior must give a posterior that is not flat to rounding, but its precision "
            f"has condition {condition:.1e}, which must be < {MAX_CONDITION:g}: scale or leave out columns, or take "
            f"more noise or a smaller prior"
        )
    mean = np.asarray(np.linalg.solve(precision, matrix.T @ values / noise**2), np.float64)
    constant = n_data * np.log(noise) + dim * np.log(prior) + 0.5 * (n_data + dim) * np.log(2.0 * np.pi)
    misfit = ((values - matrix @ mean) ** 2).sum() / noise**2 + (mean**2).sum() / prior**2
    lowest = float(constant + 0.5 * misfit)
    numbers = [*shared_numbers(n_data, n_drawn, refresh, prior**-2, constant), noise**-2]
    quadratic = quadratic_numbers(mean, precision, lowest)
    parameters = np.concatenate([numbers, quadratic, matrix.ravel(), values])
    rows = batch_rows(dim, n_drawn, refresh)
    name = check_text("name", name) or f"linear_regression({n_data} data in {dim}-D)"
    covariance = np.asarray(np.linalg.inv(precision), np.float64)
    log_determinant = float(np.linalg.slogdet(precision / (2.0 * np.pi))[1])
    truth = GaussianTruth(mean, 0.5 * (covariance + covariance.T), -lowest - 0.5 * log_determinant, lowest)
    return Target(
        name, dim, linear_regression_block, parameters, rows, truth, stochastic=n_drawn > 0, spread=truth.spread
    )
