"""Mixtures of Gaussians, and the papers' own; each with its truth."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from toolkit._compiler import kernel
from toolkit.errors import check_array, check_number, check_text, is_sequence
from toolkit.maths.elementary import exp_share, fma, log, select
from toolkit.problem import Target, recorded

from .full_covariance import check_covariances, correlated_mixture_block, correlated_numbers
from .truth import check_components, with_mixture_truth


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
            squared[lane] = exp_share(lowest[lane] - fma(precision, squared[lane], offset))
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
            difference = position[d, lane] - centre
            squared[lane] = fma(difference, difference, squared[lane])


@recorded("mixtures")
def gaussian_mixture(means: Any, variance: Any, weights: Sequence[float] | None = None, *, name: str = "") -> Target:
    """Mixture Σ w_k N(μ_k, Σ_k): means (components, dim), weights (components,), equal where not given.

    variance: a number v, Σ_k = v I; or (components,) of them; or a covariance matrix (dim, dim) for all components, or
    one for each (components, dim, dim). One number is evaluated in O(dim) per component, anything else in O(dim²).
    U includes the normalising constant, so exp(−U) integrates to 1. Weights must be positive and sum to 1, covariances
    symmetric and positive definite. Raises ValueError or TypeError naming the argument otherwise. One component gives
    a Gaussian.
    """
    centres, shares = check_components(means, weights)
    components, dim = centres.shape
    single = not is_sequence(variance) and getattr(variance, "ndim", 0) == 0
    if single:
        common = check_number("variance", variance, above=0.0)
        covariances = np.tile(common * np.eye(dim), (components, 1, 1))
    else:
        covariances = check_covariances(check_array("variance", variance), components, dim)
    name = check_text("name", name) or f"gaussian_mixture({components} in {dim}-D)"
    if single:
        offsets = 0.5 * dim * np.log(2.0 * np.pi * common) - np.log(shares)
        numbers = np.concatenate([[0.5 / common], np.hstack([offsets[:, None], centres]).ravel()])
        target = Target(name, dim, gaussian_mixture_block, numbers, scratch_rows=3)
    else:
        numbers = correlated_numbers(centres, covariances, shares)
        target = Target(name, dim, correlated_mixture_block, numbers, scratch_rows=1 + dim + components)
    return with_mixture_truth(target, centres, covariances, shares)


@recorded("mixtures")
def unequal_pair() -> Target:
    """0.4 N(−6, 1) + 0.6 N(4, 1), with a barrier of 12 nats between two modes. Source: CSGLD (2020); ICSGLD, D.5."""
    return gaussian_mixture([[-6.0], [4.0]], 1.0, [0.4, 0.6], name="unequal_pair")


@recorded("mixtures")
def three_on_a_line() -> Target:
    """0.3 N(−10, 1) + 0.4 N(0, 1.5²) + 0.3 N(11, 1): three modes on −20 … 20, density below 0.2.

    The numbers are ours, of the size of the figure's axes: TACT-HMC (2018), figure 1, prints none.
    """
    return gaussian_mixture([[-10.0], [0.0], [11.0]], [1.0, 2.25, 1.0], [0.3, 0.4, 0.3], name="three_on_a_line")


@recorded("mixtures")
def five_spots() -> Target:
    """Five Gaussians of variance 0.5, one at the origin of weight 0.2 and four at (±5, ±5), of 0.1, 0.2, 0.2 and 0.3.

    The numbers are ours: TACT-HMC (2018), figure 2, shows two mixtures in the plane and prints none.
    """
    means = [[0.0, 0.0], [-5.0, -5.0], [-5.0, 5.0], [5.0, -5.0], [5.0, 5.0]]
    return gaussian_mixture(means, 0.5, [0.2, 0.1, 0.2, 0.2, 0.3], name="five_spots")


@recorded("mixtures")
def six_petals() -> Target:
    """Six Gaussians of equal weight on the circle of radius 6, standard deviations 1.2 along the radius and 0.4 across.

    The numbers are ours: TACT-HMC (2018), figure 2, shows two mixtures in the plane and prints none.
    """
    angles = np.pi / 3.0 * np.arange(6)
    outward = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    covariances = 0.16 * np.eye(2) + 1.28 * outward[:, :, None] * outward[:, None, :]
    return gaussian_mixture(6.0 * outward, covariances, name="six_petals")
