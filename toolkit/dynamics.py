"""Dynamics: how a replica moves in one step, as block functions behind ``signatures.DYNAMICS``."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from .compiling import compile_part
from .maths import fma
from .signatures import DYNAMICS


class Dynamics(NamedTuple):
    """A way to move: its block function, its numbers, and whether it carries a momentum of shape (dim, lane)."""

    name: str
    move: Callable[..., Any]
    parameters: tuple[float, ...] = ()
    has_momentum: bool = False

    def compiled(self) -> Any:
        """The block function compiled for the engine."""
        return compile_part(self.move, DYNAMICS)


def move_langevin(position, momentum, gradient, noise, step_size, temperature, parameters):
    """x ← x − h ∇U + √(2 h T) ξ for every lane."""
    for d in range(position.shape[0]):
        for lane in range(position.shape[1]):
            h = step_size[lane]
            kick = math.sqrt(2.0 * h * temperature[lane])
            position[d, lane] = fma(-h, gradient[d, lane], fma(kick, noise[d, lane], position[d, lane]))


def langevin() -> Dynamics:
    """Overdamped Langevin dynamics dx = −∇U dt + √(2T) dW by the Euler–Maruyama step x ← x − h ∇U + √(2hT) ξ.

    Biased at finite step: on N(0, 1) its stationary variance is T / (1 − h/2), exactly. Gradient noise of standard
    deviation s raises it to (T + h s²/2) / (1 − h/2).
    Source: Welling & Teh (2011), eq. 4, with h = ε/2; r2SGLD (2024), algorithm 1, sampling step.
    """
    return Dynamics("langevin", move_langevin)
