"""Dynamics without a momentum: Langevin, preconditioned Langevin, and the descent that Stein's particles make."""

import math

from .checks import check_flag, check_number
from .maths import fma
from .moving import Dynamics


def move_langevin(
    position, momentum, gradient, curvature, noise, step_size, temperature, coupling, memory, parameters, changes
):  # fmt: skip
    """x ← x − h ∇U + √(2hT) ξ for every lane."""
    kick = memory[0]
    if changes:
        for lane in range(position.shape[1]):
            kick[lane] = math.sqrt(2.0 * step_size[lane] * temperature[lane])
    for d in range(position.shape[0]):
        for lane in range(position.shape[1]):
            kicked = fma(kick[lane], noise[d, lane], position[d, lane])
            position[d, lane] = fma(-step_size[lane], gradient[d, lane], kicked)


def langevin() -> Dynamics:
    """Overdamped Langevin dynamics dx = −∇U dt + √(2T) dW by the Euler–Maruyama step x ← x − h ∇U + √(2hT) ξ.

    Biased at finite step: on N(0, 1) its stationary variance is T / (1 − h/2), exactly. Gradient noise of standard
    deviation s raises it to (T + h s²/2) / (1 − h/2).
    Source: Welling & Teh (2011), eq. 4, with h = ε/2; r2SGLD (2024), algorithm 1, sampling step.
    """
    return Dynamics("langevin", move_langevin, memory=("_kick",), memory_start=(0.0,))


def move_descent(
    position, momentum, gradient, curvature, noise, step_size, temperature, coupling, memory, parameters, changes
):  # fmt: skip
    """V ← αV + (1−α) g², x ← x − h g / (λ + √V) for every lane; x ← x − h g where λ is 0."""
    decay, floor = parameters[0], parameters[1]
    for d in range(position.shape[0]):
        if floor == 0.0:
            for lane in range(position.shape[1]):
                position[d, lane] = fma(-step_size[lane], gradient[d, lane], position[d, lane])
        else:
            for lane in range(position.shape[1]):
                g = gradient[d, lane]
                memory[d, lane] = fma(decay, memory[d, lane], (1.0 - decay) * g * g)
            for lane in range(position.shape[1]):
                scaled = gradient[d, lane] / (floor + math.sqrt(memory[d, lane]))
                position[d, lane] = fma(-step_size[lane], scaled, position[d, lane])


def descent(*, decay: float = 0.9, floor: float = 1e-6, preconditioned: bool = True) -> Dynamics:
    """Steps downhill without noise, each coordinate scaled by the running size of its gradient (RMSProp).

    For the particles of ``tempering.stein``, whose repulsion takes the place of noise; alone it would end in a mode.
    decay α in [0, 1), floor λ > 0; preconditioned=False: plain x ← x − h g. Raises ValueError where out of range.
    Source: Liu & Wang (2016), algorithm 1, with the step of the ICSGLD (2022) baseline.
    """
    check_number("decay", decay, at_least=0.0, below=1.0)
    check_number("floor", floor, above=0.0)
    if not check_flag("preconditioned", preconditioned):
        return Dynamics("descent", move_descent, (0.0, 0.0), draws_noise=False)
    return Dynamics(
        "descent", move_descent, (decay, floor), memory=("square[]",), memory_start=(0.0,), draws_noise=False
    )
