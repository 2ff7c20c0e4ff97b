"""The target of CSGLD (2020), figures 1 and 2: 0.4 N(−6, 1) + 0.6 N(4, 1), its partition, and statistics of its draws.

The poster prints no numbers; target and Δu = 1 are those of ICSGLD (2022), D.5, which refers to the same experiment.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from targets import mixtures
from toolkit import Run, Sampler, samplers
from toolkit.tempering import Partition, contour, step_decay

from ...arrays import Array, Integers

PROBLEM = mixtures.unequal_pair()
BARRIER = -1.042  # the highest energy between the modes
PARTITION = Partition(1.42, 1.0, 30)  # from just under the lowest energy, 1.4298; the barrier is at 13.44
STEP_SIZE, NOISE = 0.1, 0.1
DECAY = step_decay(cap=1.0)  # ω = 1/(k^0.6 + 100)


def contour_sampler(zeta: float, **settings: Any) -> Sampler:
    """CSGLD with the settings of figures 1 and 2."""
    return samplers.csgld(STEP_SIZE, zeta=zeta, partition=PARTITION, decay=DECAY, gradient_noise=NOISE, **settings)


def printed_sampler(zeta: float) -> Sampler:
    """The same by the rule as printed: θ learns by c = θ(J)^ζ, and draws weigh θ(J)^ζ of their bin."""
    rule = contour(zeta=zeta, partition=PARTITION, field="theta_zeta", decay=DECAY, interpolated=False)
    return replace(contour_sampler(zeta), tempering=rule)


def log_psi(energy: Array, theta: Array) -> Array:
    """log Ψ at ``energy``, of any shape: linear from log θ(i − 1) to log θ(i) in bin i, as the poster has it."""
    heights = np.log(np.maximum(theta, 1e-300))
    return np.asarray(np.interp(energy, PARTITION.edges, np.concatenate([heights[:1], heights])))


def bin_probabilities() -> Array:
    """The probabilities of the partition's bins, (bin,), by a sum over 10⁶ points; also where they are below 1e-5."""
    x = np.linspace(-16.0, 14.0, 1_000_001)
    energy = PROBLEM.evaluate(x[:, None])[0]
    masses = np.histogram(energy, PARTITION.edges, weights=np.exp(-energy))[0]
    return np.asarray(masses / masses.sum())


def crossings(x: Array) -> Integers:
    """How often each path of ``x`` (chain, draw) came from one mode, x < −4 or x > 2, to the other; (chain,)."""
    sides = np.where(x < -4.0, -1, np.where(x > 2.0, 1, 0))
    return np.array([np.count_nonzero(np.diff(path[path != 0])) for path in sides])


def left_weights(run: Run, ends: Integers) -> Array:
    """The left mode's weight by the draws of steps k/10 to k, for each k of ``ends``; (chain, end), nan without any."""
    weights = run.weights
    below, all_of_it = (
        np.pad(np.cumsum(values, axis=1), ((0, 0), (1, 0)))
        for values in (weights * (run.draws[..., 0] < BARRIER), weights)
    )
    first, last = np.searchsorted(run.steps, ends // 10), np.searchsorted(run.steps, ends)
    with np.errstate(invalid="ignore"):
        return np.asarray((below[:, last] - below[:, first]) / (all_of_it[:, last] - all_of_it[:, first]))
