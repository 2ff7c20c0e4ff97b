"""Exact yardsticks: MALA and HMC, whose Metropolis test removes the bias of the step size."""

import math

import numpy as np
from numba import uint64

from .checks import check_count
from .compiling import kernel
from .maths import exp, fma, select
from .moving import Dynamics
from .philox import ACCEPT, uniform_pair


def move_not(
    position, momentum, gradient, curvature, noise, step_size, temperature, coupling, memory, parameters, changes
):  # fmt: skip
    """Nothing: the engine moves by ``proposals.propose``."""


def mala() -> Dynamics:
    """Metropolis-adjusted Langevin: propose x − h ∇U + √(2hT) ξ, and accept by the Metropolis test.

    Exact for any step size that ever accepts: the draws' law is exp(−U/T), and inside a domain that law cut off at
    the edge, with ``boundaries.reject()``. One gradient evaluation per step, at the proposal, and two under contour
    and continuous tempering. The test needs the exact energy, so gradient noise is refused.
    Source: Roberts & Tweedie (1996); here as ``hmc`` with one leapfrog of length √(2h), which is the same.
    """
    return Dynamics("mala", move_not, has_momentum=True, gradients=2, leapfrogs=1)


def hmc(*, n_leapfrogs: int = 10) -> Dynamics:
    """Hamiltonian Monte Carlo: momenta N(0, T), ``n_leapfrogs`` leapfrog steps of length h, and the Metropolis test.

    The step size is the leapfrog's own ε, as is usual for HMC (``mala`` has ε = √(2h)). Exact as ``mala`` is. A step
    takes n_leapfrogs gradient evaluations, and one more under contour and continuous tempering. Raises ValueError
    unless n_leapfrogs ≥ 1.
    Source: Duane et al. (1987); Neal (2011), figure 2.
    """
    count = check_count("n_leapfrogs", n_leapfrogs, at_least=1, below=2**31)
    return Dynamics("hmc", move_not, has_momentum=True, gradients=count + 1, leapfrogs=count)


@kernel
def begin_trajectory(position, momentum, noise, step_size, temperature, potential, start, length, is_mala):
    """Fresh momenta √T ξ, the leapfrog's ``length``, and in ``start`` the energy of the extended system."""
    for lane in range(start.size):
        length[lane] = math.sqrt(2.0 * step_size[lane]) if is_mala else step_size[lane]
        start[lane] = potential[lane]
    for d in range(position.shape[0]):
        for lane in range(start.size):
            momentum[d, lane] = math.sqrt(temperature[lane]) * noise[d, lane]
    for d in range(position.shape[0]):
        for lane in range(start.size):
            start[lane] = fma(0.5 * momentum[d, lane], momentum[d, lane], start[lane])


@kernel
def kick(momentum, gradient, length, share):
    """p ← p − share · ε ∇U."""
    for d in range(momentum.shape[0]):
        for lane in range(length.size):
            momentum[d, lane] = fma(-share * length[lane], gradient[d, lane], momentum[d, lane])


@kernel
def drift(position, momentum, length):
    """x ← x + ε p."""
    for d in range(momentum.shape[0]):
        for lane in range(length.size):
            position[d, lane] = fma(length[lane], momentum[d, lane], position[d, lane])


@kernel
def accept(
    position, previous, momentum, potential, start, temperature, kept, seed, chain, replica, step, accepted, counts
):
    """Put back ``previous`` where the Metropolis test fails; a non-finite end fails it. ``kept`` (lane) is scratch.

    At temperature 0 a move is kept where the potential does not rise. Counts acceptances where ``counts``.
    """
    lanes = start.size
    for lane in range(lanes):
        kept[lane] = potential[lane]
    for d in range(position.shape[0]):
        for lane in range(lanes):
            kept[lane] = fma(0.5 * momentum[d, lane], momentum[d, lane], kept[lane])
    for lane in range(lanes):
        u = uniform_pair(seed, chain[lane], replica[lane], uint64(step), uint64(ACCEPT), np.uint64(0))[0]
        cold = temperature[lane] == 0.0
        odds = exp((start[lane] - kept[lane]) / select(cold, 1.0, temperature[lane]))
        odds = select(cold, select(potential[lane] <= start[lane], 1.0, 0.0), odds)  # it began at rest
        kept[lane] = select(odds > u, 1.0, 0.0)  # false for nan
    if counts:
        for lane in range(lanes):
            accepted[lane] += np.int64(kept[lane])
    for d in range(position.shape[0]):
        for lane in range(lanes):
            position[d, lane] = select(kept[lane] != 0.0, position[d, lane], previous[d, lane])
