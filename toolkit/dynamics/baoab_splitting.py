"""Underdamped Langevin dynamics by the BAOAB splitting, whose positions have no bias on a Gaussian target."""

import math

from ..errors import check_number
from ..maths.elementary import fma
from .interface import FRICTION, Dynamics, Heating, Knowledge

ROOT, KICK = 0, 1  # rows of memory: √h, and the standard deviation √(T (1 − (1 − η)²)) of the noise


def move_baoab(lanes, memory, parameters, changes):
    """B: p ← p − √h s ∂U. A: x ← x + √h/2 s p. O: p ← (1 − η) p + √(T (1 − (1 − η)²)) ξ. A again.

    s is the scale of the coordinate. B is the last half kick of the step before and the first one of this step, which
    have the same gradient.
    """
    position, momentum, gradient, noise = lanes.position, lanes.momentum, lanes.gradient, lanes.noise
    scale = lanes.scale
    keep, root, kick = 1.0 - parameters[0], memory[ROOT], memory[KICK]
    if changes > 1:
        for lane in range(root.size):
            root[lane] = math.sqrt(lanes.step_size[lane])
            kick[lane] = math.sqrt(lanes.temperature[lane] * (1.0 - keep * keep))
    for d in range(position.shape[0]):
        x, p, slope, normal, s = position[d], momentum[d], gradient[d], noise[d], scale[d]
        half = 0.5 * s
        for lane in range(root.size):
            kicked = fma(-s * root[lane], slope[lane], p[lane])
            middle = fma(half * root[lane], kicked, x[lane])
            p[lane] = fma(keep, kicked, kick[lane] * normal[lane])
            x[lane] = fma(half * root[lane], p[lane], middle)


def heating(parameters: tuple[float, ...]) -> Heating:
    """The variance that gradient noise adds over that of Langevin dynamics: (2 − η)/(2 η)."""
    friction = parameters[0]
    return Heating((2.0 - friction) / (2.0 * friction))


def baoab(*, friction: float = 0.1) -> Dynamics:
    """Underdamped Langevin dynamics, one step split into B (kick), A (drift), O (friction and noise), A and B.

    friction: η in (0, 1], the share of momentum lost per step, e^(−γ√h) = 1 − η; 1 is the method of Leimkuhler &
    Matthews for overdamped dynamics, x ← x − h/2 ∇U + √(hT)/2 (ξ + ξ'), ξ' the noise of the step before. √h is the time
    step, so the step size h is that of ``underdamped_langevin``.
    Law, at constant h: on N(0, 1) the positions have variance T exactly, at every stable step size, h < 4; with
    gradient noise of standard deviation s, T + h s² (2 − η) / (η (4 − h)). A step size that jumps adds a bias, since
    the two half kicks of B then differ. The momenta between steps are those of half a kick before the position, as in
    ``underdamped_langevin``; at the position's time they have variance T (1 − h/4). On other targets steps are stable
    for h < 4 / largest curvature, and the bias of the positions is of second order in √h. While a schedule holds the
    temperature at 0, gradient descent with momentum.
    Source: Leimkuhler & Matthews (2013), "Rational construction of stochastic numerical methods for molecular
    sampling". Raises TypeError or ValueError where out of range.
    """
    check_number("friction", friction, above=0.0, at_most=1.0)
    return Dynamics(
        "baoab", move_baoab, (friction,), has_momentum=True, memory=("_root", "_kick"), memory_start=(0.0, 0.0),
        scales=True, friction_parameter=0, known=Knowledge((FRICTION,), heating),
    )  # fmt: skip
