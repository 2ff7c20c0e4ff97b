"""``gaussian_grid25``: a grid of Gaussians as the product of two combs."""

import math
from typing import Any

import numpy as np

from toolkit._compiler import inlined
from toolkit.maths.elementary import exp_share, fma, log_of_normal, select
from toolkit.problem import Target, recorded

from .truth import with_mixture_truth


@recorded("mixtures")
def gaussian_grid25() -> Target:
    """25 Gaussians of equal weight and variance 0.03, at {−4, −2, 0, 2, 4}², normalised.

    Evaluated as the product it is, of one 5-component mixture per axis: 10 exponentials in place of 25.
    Source: cyclical SG-MCMC (2020), section 5.1 (the variance is 0.03, not its square root).
    """
    places = np.arange(-4.0, 5.0, 2.0)
    means = np.stack(np.meshgrid(places, places, indexing="ij"), axis=-1).reshape(-1, 2)
    target = Target("gaussian_grid25", 2, gaussian_grid_block)
    return with_mixture_truth(target, means, np.tile(0.03 * np.eye(2), (25, 1, 1)), np.full(25, 0.04))


def gaussian_grid_block(position: Any, energy: Any, gradient: Any, parameters: Any, scratch: Any) -> None:
    """Energy and gradient of ``gaussian_grid25``."""
    for lane in range(position.shape[1]):
        energy_x, gradient[0, lane] = axis_mixture(position[0, lane])
        energy_y, gradient[1, lane] = axis_mixture(position[1, lane])
        energy[lane] = energy_x + energy_y


@inlined
def axis_mixture(x):
    """Energy and slope of Σ 0.2 N(c, 0.03) over c = −4, −2, 0, 2, 4, by log-sum-exp about the nearest centre."""
    inner = select(x > 4.0, 4.0, select(x < -4.0, -4.0, x))
    nearest = 2.0 * math.floor(0.5 * inner + 0.5)
    offset = x - nearest
    total, moment = 0.0, 0.0
    for n in range(5):
        shift = (2.0 * n - 4.0) - nearest
        # ‖x − c‖² − ‖x − nearest‖² = shift (shift − 2 away), without the cancellation far out; 16.7 = 1 / (2 · 0.03)
        share = exp_share(-16.666666666666668 * shift * (shift - 2.0 * offset))
        total += share
        moment = fma(share, offset - shift, moment)
    # log(0.2) − ½ log(2π 0.03) = −0.775097497; the total is at least 1, or nan as ``offset`` is or infinite
    energy = fma(16.666666666666668 * offset, offset, 0.7750974969787822 - log_of_normal(total))
    return energy, moment / total * 33.333333333333336
