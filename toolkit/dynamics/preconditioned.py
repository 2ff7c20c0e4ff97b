"""Preconditioned Langevin dynamics (pSGLD): steps scaled by the running size of each coordinate's gradient."""

import math

from .._compiler.decorators import in_float32
from ..errors import check_flag, check_number
from ..maths.elementary import fma, select
from .interface import Dynamics, Knob, Knowledge


@in_float32({1e-300: 1e-37})
def move_preconditioned(lanes, memory, parameters, changes):
    """V ← αV + (1−α) g², G = 1/(λ + √V), x ← x − h G g + h T Γ + √(2hTG) ξ, coordinate by coordinate."""
    decay, floor = parameters[0], parameters[1]
    position, gradient, curvature, noise = lanes.position, lanes.gradient, lanes.curvature, lanes.noise
    step_size, temperature = lanes.step_size, lanes.temperature
    dim, n_lanes = position.shape
    corrects = curvature.shape[0] > 0
    root = memory[memory.shape[0] - 1]
    for d in range(dim):
        square, scale = memory[d], memory[dim + d]
        if corrects:  # what the step before leaves of the tangent, with that step's G
            tangent = memory[2 * dim + d]
            for lane in range(n_lanes):
                left = 1.0 - step_size[lane] * scale[lane] * curvature[d, lane]
                tangent[lane] *= decay * select(left > 0.0, select(left < 2.0, left, 2.0), 0.0)
        if corrects:  # V begins at what g² is in equilibrium, T H on average, or a start in a mode would be thrown far
            for lane in range(n_lanes):
                usual = temperature[lane] * abs(curvature[d, lane])
                square[lane] = select(square[lane] > 0.0, square[lane], usual)
        for lane in range(n_lanes):
            squared = gradient[d, lane] * gradient[d, lane]
            square[lane] = select(square[lane] > 0.0, fma(decay, square[lane], (1.0 - decay) * squared), squared)
            root[lane] = math.sqrt(square[lane])
            scale[lane] = 1.0 / (floor + root[lane])
        for lane in range(n_lanes):
            h = step_size[lane]
            kick = math.sqrt(2.0 * h * temperature[lane] * scale[lane])
            drift = fma(-h * scale[lane], gradient[d, lane], kick * noise[d, lane])
            position[d, lane] += drift
        if corrects:
            for lane in range(n_lanes):  # beyond |h G H| = 1 it is a jump of the gradient, not a slope
                limit = 1.0 / (step_size[lane] * scale[lane] + 1e-300)
                bend = curvature[d, lane]
                bend = select(bend > limit, limit, select(bend < -limit, -limit, bend))
                tangent[lane] = fma(2.0 * (1.0 - decay) * gradient[d, lane] * bend, scale[lane], tangent[lane])
            for lane in range(n_lanes):
                gamma = -0.5 * tangent[lane] * scale[lane] / root[lane]
                correction = step_size[lane] * temperature[lane] * gamma
                position[d, lane] += select(square[lane] > 1e-300, correction, 0.0)


def preconditioned_langevin(*, decay: float = 0.99, floor: float = 1e-5, drift_correction: bool = True) -> Dynamics:
    """Langevin dynamics with each coordinate's step scaled by G = 1/(λ + √V), V the running mean of its gradient².

    V ← αV + (1−α) g²; x ← x − h G g + h T Γ + √(2hTG) ξ. V begins at T |H|, what g² is on average, with the drift
    correction, and at the first g² without it, which throws a start in a mode far off: give ``init`` elsewhere.
    decay: α in [0, 1). floor: λ > 0, the gradient below which steps no longer grow. The step size h has the unit
    of x, about.
    drift_correction: Γ, at the cost of a second gradient evaluation per step, for the curvature H (one probe with
    random signs). Without it the draws' law is too wide, by G's dependence on x, and that at any step size: E x² of
    N(0, 1) is 1 + 2√(2/π) over 1 + √(2/π) = 1.44 at α = 0, λ = 1, and 1.42 at α = 0.99, λ = 0.1.
    Γ as printed counts the newest gradient in V alone, a share 1 − α of it all, and mends next to nothing (1.41).
    Here Γ = −E G/(2√V), E ← α (1 − h G H)₊ E + 2 (1−α) g H G, the tangent of all of V along the path: probability
    stands still where Γ is d/dx of the mean of G given x. Then E x² is 1.007 in that case, and 1.001 at α = 0.999.
    Biased: by hGH/2 as Langevin is, and in several correlated coordinates by some 5 % of the variance, since each G
    is taken to depend on its own coordinate; α near 1 keeps both small.
    Source: Li et al. (2016), algorithm 1 and eq. 6 for G, with Γ rederived as said. Raises where out of range.
    """
    check_number("decay", decay, at_least=0.0, below=1.0)
    check_number("floor", floor, above=0.0)
    corrects = check_flag("drift_correction", drift_correction)
    names = ("square[]", "scale[]", *(("tangent[]",) if corrects else ()), "_root")
    return Dynamics(
        "preconditioned_langevin",
        move_preconditioned,
        (decay, floor),
        memory=names,
        memory_start=(0.0,) * len(names),
        needs_curvature=corrects,
        gradients=2 if corrects else 1,
        known=Knowledge(knobs=(Knob("floor", 1, is_for_noise=True),), normalises=True),
    )
