"""Samplers and truths that are wrong in one place, for ``verify`` to find; and right ones, for it to pass."""

import math
from dataclasses import replace

import numpy as np

from targets import constrained, domains, mixtures
from targets.truth.gaussian import GaussianTruth
from toolkit import Sampler, boundaries, samplers
from toolkit.dynamics.interface import Dynamics
from toolkit.maths.elementary import fma
from toolkit.tempering.contour_tempering import Partition

NORMAL = mixtures.gaussian_mixture([[0.0, 1.0]], 1.0)
PAIR = mixtures.gaussian_mixture([[-1.5], [1.5]], 1.0, [0.3, 0.7])
BOX = constrained(mixtures.gaussian_mixture([[0.0]], 1.0), domains.box([-1.0], [1.5]))
BINS = Partition(1.8, 0.5, 12)


def move_with_scaled_noise(lanes, memory, parameters, changes):  # type: ignore[no-untyped-def]
    """x ← x − h ∇U + √(2 h s T) ξ; parameters: s, and 1 where all coordinates share one noise."""
    position, gradient, noise = lanes.position, lanes.gradient, lanes.noise
    step_size, temperature = lanes.step_size, lanes.temperature
    for d in range(position.shape[0]):
        row = 0 if parameters[1] == 1.0 else d
        for lane in range(position.shape[1]):
            h = step_size[lane]
            kick = math.sqrt(2.0 * h * parameters[0] * temperature[lane])
            position[d, lane] = fma(-h, gradient[d, lane], fma(kick, noise[row, lane], position[d, lane]))


def noisy(scale: float, shared: float = 0.0) -> Sampler:
    """SGLD with noise of ``scale`` times the variance."""
    return Sampler("scaled noise", (0.1,), dynamics=Dynamics("scaled", move_with_scaled_noise, (scale, shared)))


def with_covariance(factor: float) -> object:
    """NORMAL with a truth whose covariance is ``factor`` times the right one, and nothing else of it."""
    lowest = math.log(2.0 * math.pi)
    truth = GaussianTruth(np.array([0.0, 1.0]), factor * np.eye(2), NORMAL.truth.log_normaliser, lowest)
    return replace(NORMAL, truth=truth)


def with_weights(first: float) -> object:
    """PAIR with the truth of other weights."""
    return replace(PAIR, truth=mixtures.gaussian_mixture([[-1.5], [1.5]], 1.0, [first, 1.0 - first]).truth)


def steep_block(position, energy, gradient, parameters, scratch):  # type: ignore[no-untyped-def]
    """The standard normal, its gradient 3 % too large."""
    for lane in range(position.shape[1]):
        energy[lane] = 0.0
    for d in range(position.shape[0]):
        for lane in range(position.shape[1]):
            gradient[d, lane] = 1.03 * position[d, lane]
            energy[lane] += 0.5 * position[d, lane] ** 2


LADDER = {"temperatures": (1.0, 3.0)}
RIGHT = {
    "sgld": (NORMAL, samplers.sgld(0.1)),
    "sghmc": (NORMAL, samplers.sghmc(0.1)),
    "sgld with gradient noise 3": (NORMAL, samplers.sgld(0.1, gradient_noise=3.0)),
    "sgld that rejects moves out of a box": (BOX, samplers.sgld(0.05, boundary=boundaries.reject())),
    "mala": (NORMAL, samplers.mala(0.5)),
    "resgld": (PAIR, samplers.resgld((0.1, 0.3), **LADDER)),
    "resgld with energy noise 1": (PAIR, samplers.resgld((0.1, 0.3), energy_noise=1.0, **LADDER)),
    "r2sgld in a box": (BOX, samplers.r2sgld((0.05, 0.1), **LADDER)),
    "icsgld": (NORMAL, samplers.icsgld(0.05, partition=BINS)),
}
WRONG = {
    "half the noise": (NORMAL, noisy(0.5)),
    "temperature 5 % high": (NORMAL, noisy(1.05)),
    "temperature 5 % low": (NORMAL, noisy(0.95)),
    "one noise for all coordinates": (NORMAL, noisy(1.0, shared=1.0)),
    "swaps without a random number": (PAIR, samplers.resgld((0.1, 0.3), swap_threshold=3e-4, **LADDER)),
    "energy noise 1 without correction": (
        PAIR,
        samplers.resgld((0.1, 0.3), energy_noise=1.0, correction=0.0, **LADDER),
    ),
    "truth of 10 % more variance": (with_covariance(1.1), samplers.sgld(0.1)),
    "truth of weights 0.34 in place of 0.3": (with_weights(0.34), samplers.resgld((0.1, 0.3), **LADDER)),
}
