"""Energies that are quadratic in the position: what least squares leave of any number of data."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.compiling import kernel
from toolkit.maths import fma

Array = NDArray[np.float64]

LOWEST, N_NUMBERS = 0, 1  # then the mean (q,) and the precision (q, q)


@kernel
def use_quadratic(theta, energy, slope, numbers, work):
    """lowest + ½ (θ − μ)ᵀ Λ (θ − μ) and Λ (θ − μ) in every lane: O(q²), whatever the number of data."""
    q, lanes = theta.shape
    for lane in range(lanes):
        energy[lane] = numbers[LOWEST]
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


def quadratic_numbers(mean: Any, precision: Any, lowest: float) -> Array:
    """The numbers of ``use_quadratic``: lowest, mean (q,), precision (q, q)."""
    return np.concatenate([[lowest], np.ravel(mean), np.ravel(precision)])
