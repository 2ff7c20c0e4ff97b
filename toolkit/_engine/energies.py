"""Energies and gradients of a step: the target's, the boundary's penalty and, if needed, the curvature."""

from typing import Any, NamedTuple

from .._compiler.argument_pack import call_part
from .._compiler.block_rows import CHAIN, MODE, OUTSIDE, REPLICA, SEED_HIGH, SEED_LOW, STEP
from .._compiler.decorators import inlined, kernel
from ..boundaries.rules import add_penalty
from ..maths.elementary import select
from ..maths.philox import LOW, WORD

PROBE_LENGTH = 1e-3  # of the step size: short compared with a step, long compared with rounding


class Evaluated(NamedTuple):
    """Input and outputs of an evaluation: position (dim, lane), energy (lane,), gradient (dim, lane)."""

    position: Any
    energy: Any
    gradient: Any


@inlined
def evaluate(target, at_target, look, at_look, at, state, numbers):
    """Energy and gradient of all lanes, penalty included. at_target, at_look: the packed arguments of both."""
    call_part(target, at_target)
    if numbers.penalty > 0.0:
        outside = state.rows[OUTSIDE]
        for lane in range(outside.size):
            outside[lane] = 1.0
        call_part(look, at_look)
        add_penalty(
            at.position, state.foot, at.energy, at.gradient, outside, numbers.penalty, numbers.from_origin
        )  # fmt: skip


@kernel
def set_counters(scratch, mode, step, chain, replica, seed):
    """Set mode and random-number counters for a target that draws minibatches."""
    for lane in range(chain.size):
        scratch[MODE, lane] = mode
        scratch[STEP, lane] = float(step)
        scratch[CHAIN, lane] = float(chain[lane])
        scratch[REPLICA, lane] = float(replica[lane])
        scratch[SEED_HIGH, lane] = float(seed >> WORD)
        scratch[SEED_LOW, lane] = float(seed & LOW)


@kernel
def set_probe(position, probe, signs, base_step_size):
    """probe ← position ± δ in every coordinate, with δ much shorter than the step size."""
    for d in range(position.shape[0]):
        for lane in range(base_step_size.size):
            length = select(base_step_size[lane] > 1e-9, PROBE_LENGTH * base_step_size[lane], 1e-12)
            probe[d, lane] = position[d, lane] + select(signs[d, lane] > 0.0, length, -length)


@kernel
def divide_differences(position, probe, gradient, curvature):
    """curvature ← (curvature − gradient) / (probe − position), where curvature holds the gradient at ``probe``.

    For independent signs its mean is the diagonal of the Hessian; for a diagonal Hessian it is exactly that.
    Source: Hutchinson (1990); Bekas, Kokiopoulou & Saad (2007).
    """
    for d in range(position.shape[0]):
        for lane in range(position.shape[1]):
            curvature[d, lane] = (curvature[d, lane] - gradient[d, lane]) / (probe[d, lane] - position[d, lane])
