"""Dynamics with a momentum: underdamped Langevin (SGHMC).

Momenta are those of unit mass, of variance T whatever the step size h: with the papers' v or r, p = r / √h. So a
schedule may change h, and a swap the temperature, without leaving momenta of another size behind.
"""

import math

import numpy as np
from numpy.typing import NDArray

from .._compiler.decorators import inlined
from ..errors import check_deviation, check_number
from ..maths.elementary import fma, select
from .interface import FRICTION, Dynamics, Heating, Knowledge, width_under_friction


@inlined
def kick_and_drift(position, momentum, gradient, noise, scale, root, keep, kick):
    """p ← keep p − √h s ∂U + kick ξ, then x ← x + √h s p; scale s is (dim,), root, keep and kick are (lane,)."""
    for d in range(position.shape[0]):
        x, p, slope, normal, s = position[d], momentum[d], gradient[d], noise[d], scale[d]
        for lane in range(x.size):
            moved = fma(keep[lane], p[lane], fma(-s * root[lane], slope[lane], kick[lane] * normal[lane]))
            p[lane] = moved
            x[lane] = fma(s * root[lane], moved, x[lane])


def move_underdamped(lanes, memory, parameters, changes):
    """p ← (1 − λ²η) p − √h s λ∂U + λ √(2ηT − h ŝ²) ξ, x ← x + √h s p; the gradient comes with its λ."""
    step_size, temperature, coupling = lanes.step_size, lanes.temperature, lanes.coupling
    friction, variance = parameters[0], parameters[1]
    root, keep, kick, strength = memory[0], memory[1], memory[2], memory[3]
    if changes > 1:
        for lane in range(root.size):
            injected = fma(2.0 * friction, temperature[lane], -step_size[lane] * variance)
            root[lane] = math.sqrt(step_size[lane])
            strength[lane] = math.sqrt(select(injected > 0.0, injected, 0.0))
    if changes > 0:
        for lane in range(root.size):
            scale = coupling[lane]
            keep[lane] = fma(-scale * scale, friction, 1.0)
            kick[lane] = scale * strength[lane]
    kick_and_drift(lanes.position, lanes.momentum, lanes.gradient, lanes.noise, lanes.scale, root, keep, kick)


def heating(parameters: tuple[float, ...]) -> Heating:
    """The variance that gradient noise adds over that of Langevin dynamics, 1/η, beyond ŝ²."""
    friction, estimate = parameters
    return Heating(1.0 / friction, estimate)


def underdamped_langevin(*, friction: float = 0.1, noise_estimate: float = 0.0) -> Dynamics:
    """Underdamped Langevin dynamics: p ← (1 − η) p − √h ∇U + √(2ηT − h ŝ²) ξ, then x ← x + √h p.

    friction: η in (0, 1], the share of momentum lost per step; 1 is ``langevin``, to rounding.
    noise_estimate: ŝ ≥ 0, the standard deviation of the gradient noise where it is known; that much less noise is
    injected (the paper's γ̂ = h ŝ²/2), and none where it exceeds 2ηT. Under a ``scale`` s of the sampler ŝ is that of
    s ∂U, the same for all coordinates. At temperature 0, gradient descent with momentum.
    Biased at finite step: on N(0, 1), with gradient noise of standard deviation s, the stationary variance is
    (T + h (s² − ŝ²)/(2η)) / (1 − h/(4 − 2η)), exactly. Raises ValueError where out of range.
    Source: cyclical SG-MCMC (2020), section 2, with v = √h p; Chen, Fox & Guestrin (2014), eq. 15.
    """
    check_number("friction", friction, above=0.0, at_most=1.0)
    check_deviation("noise_estimate", noise_estimate)
    return Dynamics(
        "underdamped_langevin",
        move_underdamped,
        (friction, noise_estimate**2),
        has_momentum=True,
        memory=("_root", "_keep", "_kick", "_strength"),
        memory_start=(0.0, 0.0, 0.0, 0.0),
        check=check_noise_estimate,
        scales=True,
        friction_parameter=0,
        known=Knowledge((FRICTION,), heating, width_under_friction),
    )


def check_noise_estimate(
    parameters: tuple[float, ...], step_sizes: NDArray[np.float64], temperatures: NDArray[np.float64]
) -> None:
    """Raise ValueError where the noise of the gradient alone exceeds what the friction takes up."""
    friction, variance = parameters
    ratio = float((step_sizes / temperatures).max())
    if variance * ratio > 2.0 * friction * (1.0 + 1e-12):
        raise ValueError(
            f"noise_estimate must be ≤ √(2 · friction · temperature / step size) = "
            f"{np.sqrt(2.0 * friction / ratio):g}, or the gradient noise alone exceeds what the friction takes up; got "
            f"{np.sqrt(variance):g}"
        )
