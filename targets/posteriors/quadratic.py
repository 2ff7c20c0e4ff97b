"""Energies that are quadratic in the position, such as those of least squares."""

from typing import Any

import numpy as np

from toolkit._compiler import kernel
from toolkit.maths.elementary import fma, select

from ..arrays import Array

LOWEST, N_NUMBERS = 0, 1  # then the mean (q,) and the precision (q, q)


@kernel
def use_quadratic(theta, energy, slope, numbers, work):
    """lowest + ½ (θ − μ)ᵀ Λ (θ − μ) and Λ (θ − μ) in every lane: O(q²), whatever the number of data."""
    q, lanes = theta.shape
    for lane in range(lanes):
        energy[lane] = numbers[LOWEST]
    if lanes == 1:
        use_quadratic_at_one(theta[:, 0], energy, slope[:, 0], numbers)
        return
    for k in range(q):
        row = numbers[N_NUMBERS + q * (k + 1) : N_NUMBERS + q * (k + 2)]
        out = slope[k]
        for lane in range(lanes):
            out[lane] = 0.0
        for j in range(q):
            mean, precision, x = numbers[N_NUMBERS + j], row[j], theta[j]
            if precision != 0.0:
                for lane in range(lanes):
                    out[lane] = fma(precision, x[lane] - mean, out[lane])
        mean, x = numbers[N_NUMBERS + k], theta[k]
        for lane in range(lanes):
            energy[lane] = fma(0.5 * out[lane], x[lane] - mean, energy[lane])


@kernel
def use_quadratic_at_one(theta, energy, slope, numbers):
    """The same to the bit for one lane; vectorised over coordinates, as the precision is symmetric."""
    q = theta.size
    for k in range(q):
        slope[k] = 0.0
    for j in range(q):
        row, difference = numbers[N_NUMBERS + q * (j + 1) : N_NUMBERS + q * (j + 2)], theta[j] - numbers[N_NUMBERS + j]
        for k in range(q):
            slope[k] = select(row[k] != 0.0, fma(row[k], difference, slope[k]), slope[k])
    for k in range(q):
        energy[0] = fma(0.5 * slope[k], theta[k] - numbers[N_NUMBERS + k], energy[0])


def quadratic_numbers(mean: Any, precision: Any, lowest: float) -> Array:
    """The numbers of ``use_quadratic``: lowest, mean (q,), precision (q, q), made symmetric to the bit."""
    symmetric = 0.5 * (np.asarray(precision) + np.transpose(precision))
    return np.concatenate([[lowest], np.ravel(mean), np.ravel(symmetric)])
