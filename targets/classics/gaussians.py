"""Gaussians that are hard on a sampler with one step size: correlated, and badly scaled."""

from typing import Any

import numpy as np

from toolkit.errors import check_count, check_number, check_room
from toolkit.maths.elementary import fma
from toolkit.maths.philox import MAX_DIM
from toolkit.problem import Target, recorded

from ..truth.gaussian import GaussianTruth


def correlated_gaussian_block(position: Any, energy: Any, gradient: Any, parameters: Any, scratch: Any) -> None:
    """Energy and gradient of ``correlated_gaussian``; parameters: correlation, 1 / (1 − correlation²)."""
    correlation, precision = parameters[0], parameters[1]
    first, slope_first = position[0], gradient[0]
    for lane in range(energy.size):
        x = first[lane]
        energy[lane], slope_first[lane] = 0.5 * x * x, x
    for d in range(1, position.shape[0]):
        before, row, slope_before, slope = position[d - 1], position[d], gradient[d - 1], gradient[d]
        for lane in range(energy.size):
            residual = fma(-correlation, before[lane], row[lane])
            scaled_residual = precision * residual
            energy[lane] = fma(0.5 * scaled_residual, residual, energy[lane])
            slope[lane] = scaled_residual
            slope_before[lane] = fma(-correlation, scaled_residual, slope_before[lane])


@recorded("classics")
def correlated_gaussian(*, dim: int = 2, correlation: float = 0.95) -> Target:
    """U(x) = ½ x₁² + ½ Σ_{i>1} (x_i − ρ x_{i−1})² / (1 − ρ²): N(0, Σ) with Σ_ij = ρ^|i − j|.

    dim: ≥ 1. correlation: −1 < ρ < 1, of neighbours; at ±1 the law would lie on a line. Raises TypeError or ValueError
    otherwise. Law: U is ½ χ²(dim). Source: Ornstein & Uhlenbeck (1930), at whole times; Σ has condition number below
    ((1 + |ρ|) / (1 − |ρ|))², and for large dim next to it without the square.
    """
    dim = check_count("dim", dim, at_least=1, below=MAX_DIM)
    check_room("dim", dim, 24.0 * dim * dim)
    correlation = check_number("correlation", correlation, above=-1.0, below=1.0)
    places = np.arange(dim)
    covariance = correlation ** np.abs(places[:, None] - places).astype(np.float64)
    precision = 1.0 / ((1.0 - correlation) * (1.0 + correlation))
    truth = GaussianTruth(
        np.zeros(dim), covariance, 0.5 * dim * np.log(2.0 * np.pi) - 0.5 * (dim - 1) * np.log(precision)
    )
    numbers = np.array([correlation, precision])
    name = f"correlated_gaussian({correlation:g}) in {dim}-D"
    return Target(name, dim, correlated_gaussian_block, numbers, truth=truth, spread=truth.spread)


def badly_scaled_gaussian_block(position: Any, energy: Any, gradient: Any, parameters: Any, scratch: Any) -> None:
    """Energy and gradient of ``badly_scaled_gaussian``; parameters: 1 / variance of each coordinate."""
    for lane in range(energy.size):
        energy[lane] = 0.0
    for d in range(position.shape[0]):
        precision, row, slope = parameters[d], position[d], gradient[d]
        for lane in range(energy.size):
            x = row[lane]
            slope[lane] = precision * x
            energy[lane] = fma(0.5 * precision * x, x, energy[lane])


@recorded("classics")
def badly_scaled_gaussian(*, dim: int = 8, condition: float = 1e4) -> Target:
    """U(x) = ½ Σ x_i² / v_i with variances v falling evenly in logarithm from 1 to 1 / condition.

    dim: ≥ 1; in one dimension the variance is 1. condition: ≥ 1, of the covariance. Raises TypeError or ValueError
    otherwise. Law: independent N(0, v_i); U is ½ χ²(dim). Source: Neal (2011), there in 100 dimensions with
    standard deviations evenly spaced.
    """
    dim = check_count("dim", dim, at_least=1, below=MAX_DIM)
    check_room("dim", dim, 24.0 * dim * dim)
    condition = check_number("condition", check_number("condition", condition, at_least=1.0), below=1e100)
    variances = np.geomspace(1.0, 1.0 / condition, dim)
    truth = GaussianTruth(np.zeros(dim), np.diag(variances), 0.5 * float(np.log(2.0 * np.pi * variances).sum()))
    name = f"badly_scaled_gaussian({condition:g}) in {dim}-D"
    return Target(name, dim, badly_scaled_gaussian_block, 1.0 / variances, truth=truth, spread=truth.spread)
