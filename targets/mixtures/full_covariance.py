"""Mixtures of Gaussians with any covariances: the block function and its numbers."""

import math
from typing import Any

import numpy as np

from toolkit._compiler import kernel
from toolkit.maths.elementary import exp_share, fma, log, select

from ..arrays import Array


def correlated_mixture_block(position: Any, energy: Any, gradient: Any, parameters: Any, scratch: Any) -> None:
    """Energy and gradient of a mixture; parameters: of each component offset, mean, and L row by row, P = L Lᵀ.

    Log-sum-exp in two passes, as of ``mixtures.gaussian_mixture_block``. scratch: the sum of shares, Lᵀ(x − μ) of one
    component (dim rows), and each component's exponent.
    """
    dim, lanes = position.shape
    stride = 1 + dim + dim * (dim + 1) // 2
    total, white = scratch[0], scratch[1 : 1 + dim]
    for lane in range(lanes):
        energy[lane] = math.inf
        total[lane] = 0.0
    for d in range(dim):
        slope = gradient[d]
        for lane in range(lanes):
            slope[lane] = 0.0
    for k in range(parameters.size // stride):
        numbers, share = parameters[k * stride : (k + 1) * stride], scratch[1 + dim + k]
        whiten(position, numbers, white)
        offset = numbers[0]
        for lane in range(lanes):
            share[lane] = offset
        for d in range(dim):
            row = white[d]
            for lane in range(lanes):
                share[lane] = fma(0.5 * row[lane], row[lane], share[lane])
        for lane in range(lanes):
            energy[lane] = select(share[lane] < energy[lane], share[lane], energy[lane])
    for k in range(parameters.size // stride):
        numbers, share = parameters[k * stride : (k + 1) * stride], scratch[1 + dim + k]
        whiten(position, numbers, white)
        for lane in range(lanes):
            share[lane] = exp_share(energy[lane] - share[lane])
            total[lane] += share[lane]
        for i in range(dim):
            slope = gradient[i]
            for j in range(i + 1):
                factor, row = numbers[1 + dim + i * (i + 1) // 2 + j], white[j]
                for lane in range(lanes):
                    slope[lane] = fma(factor * share[lane], row[lane], slope[lane])
    for lane in range(lanes):
        energy[lane] -= log(total[lane])
        total[lane] = 1.0 / total[lane]
    for d in range(dim):
        slope = gradient[d]
        for lane in range(lanes):
            slope[lane] *= total[lane]


@kernel
def whiten(position, numbers, white):
    """white (dim, lane) ← Lᵀ (position − mean), for the numbers of one component."""
    dim, lanes = position.shape
    for j in range(dim):
        row = white[j]
        for lane in range(lanes):
            row[lane] = 0.0
        for i in range(j, dim):
            mean, factor, x = numbers[1 + i], numbers[1 + dim + i * (i + 1) // 2 + j], position[i]
            for lane in range(lanes):
                row[lane] = fma(factor, x[lane] - mean, row[lane])


def correlated_numbers(means: Array, covariances: Array, weights: Array) -> Array:
    """The parameters of ``correlated_mixture_block`` for covariances (components, dim, dim)."""
    dim = means.shape[1]
    factors = np.linalg.cholesky(np.linalg.inv(covariances))
    log_roots = np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
    offsets = 0.5 * dim * np.log(2.0 * np.pi) - log_roots - np.log(weights)
    lower = factors[:, *np.tril_indices(dim)]
    return np.hstack([offsets[:, None], means, lower]).ravel()


def check_covariances(variance: Any, components: int, dim: int) -> Array:
    """Covariances (components, dim, dim) of what ``mixtures.gaussian_mixture`` takes as ``variance``; else ValueError.

    variance: (components,) variances, (dim, dim) for all components, or (components, dim, dim).
    """
    given = np.asarray(variance)
    if given.shape == (components,):
        matrices = given[:, None, None] * np.eye(dim)
    elif given.shape == (dim, dim):
        matrices = np.broadcast_to(given, (components, dim, dim)).copy()
    elif given.shape == (components, dim, dim):
        matrices = given
    else:
        raise ValueError(
            f"variance must be a number or have shape ({components},), ({dim}, {dim}) or ({components}, {dim}, {dim}), "
            f"got {given.shape}"
        )
    for k, matrix in enumerate(matrices):
        symmetric = np.abs(matrix - matrix.T).max() <= 1e-12 * np.abs(matrix).max()
        if not symmetric or np.linalg.eigvalsh(matrix).min() <= 0.0:
            raise ValueError(
                f"variance must be positive, or symmetric positive definite matrices, got {matrix.tolist()} for "
                f"component {k}"
            )
    return np.asarray(0.5 * (matrices + np.swapaxes(matrices, 1, 2)), np.float64)
