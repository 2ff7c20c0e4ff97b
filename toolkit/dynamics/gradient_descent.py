"""Gradient descent with a preconditioner: no law, a search for the best point."""

import math

from ..errors import check_flag, check_number
from ..maths.elementary import fma
from .interface import Dynamics


def move_descent(lanes, memory, parameters, changes):
    """V ← αV + (1−α) g², x ← x − h g / (λ + √V) for every lane; x ← x − h g where λ is 0."""
    position, gradient, step_size = lanes.position, lanes.gradient, lanes.step_size
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
