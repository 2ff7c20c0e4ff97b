"""Overdamped Langevin dynamics: no momentum."""

import math

from ..maths.elementary import fma
from .interface import Dynamics, Heating, Knowledge


def move_langevin(lanes, memory, parameters, changes):
    """x ← x − h s² ∂U + √(2hT) s ξ for every coordinate, of scale s, and every lane."""
    position, gradient, noise, scale = lanes.position, lanes.gradient, lanes.noise, lanes.scale
    step_size, temperature, kick = lanes.step_size, lanes.temperature, memory[0]
    if changes:
        for lane in range(position.shape[1]):
            kick[lane] = math.sqrt(2.0 * step_size[lane] * temperature[lane])
    for d in range(position.shape[0]):
        s = scale[d]
        square = s * s
        for lane in range(position.shape[1]):
            kicked = fma(s * kick[lane], noise[d, lane], position[d, lane])
            position[d, lane] = fma(-square * step_size[lane], gradient[d, lane], kicked)


def heating(parameters: tuple[float, ...]) -> Heating:
    """The unit in which the heating of other dynamics is given."""
    return Heating(1.0)


def own_width(parameters: tuple[float, ...]) -> float:
    """A variance of T/(1 − h k/2) in a direction of curvature k, where T/k is right, is a width of 1 + h k/4."""
    return 0.25


def langevin() -> Dynamics:
    """Overdamped Langevin dynamics dx = −∇U dt + √(2T) dW by the Euler–Maruyama step x ← x − h ∇U + √(2hT) ξ.

    Biased at finite step: on N(0, 1) its stationary variance is T / (1 − h/2), exactly. Gradient noise of standard
    deviation s raises it to (T + h s²/2) / (1 − h/2).
    Source: Welling & Teh (2011), eq. 4, with h = ε/2; r2SGLD (2024), algorithm 1, sampling step.
    """
    return Dynamics(
        "langevin",
        move_langevin,
        memory=("_kick",),
        memory_start=(0.0,),
        scales=True,
        known=Knowledge((), heating, own_width),
    )
