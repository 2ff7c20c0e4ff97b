"""A Metropolis step for the tempered energy."""

from .._compiler.argument_pack import pack_arguments
from .._compiler.block_rows import (
    ACCEPTED,
    CONTINUOUS,
    CONTOUR,
    ENERGY,
    EXCHANGE,
    LAMBDA,
    LENGTH,
    LOG_PSI,
    NO_TEMPERING,
    OUTSIDE,
    POTENTIAL,
    PROPOSED,
    TEMPERATURE,
)
from .._compiler.decorators import inlined
from ..dynamics.metropolis import accept, begin_trajectory, end_trajectory, kick_and_drift, trajectory_length
from ..maths.elementary import fma, select
from ..tempering.contour_tempering import ZETA, find_multipliers
from ..tempering.interface import scale_gradients
from .energies import Evaluated, evaluate


def propose_nothing(state, constants, target, look, step, changes):
    """Does nothing: for dynamics without a Metropolis test."""


def propose(state, constants, target, look, step, changes):
    """A trajectory of leapfrog steps and its Metropolis test, for the law of the tempered energy."""
    rows, numbers, tempering_parameters = state.rows, constants.numbers, constants.tempering
    length, potential = rows[LENGTH], rows[POTENTIAL]
    energy = rows[ENERGY]
    at_target = pack_arguments(target, (state.position, potential, state.gradient, constants.target, state.scratch))
    at_look = pack_arguments(look, (state.position, state.foot, rows[OUTSIDE], constants.real, constants.whole))
    ends = Evaluated(state.position, potential, state.gradient)
    temper_potential(energy, state, numbers, tempering_parameters)
    begin_trajectory(state, numbers.is_mala, reuses_trajectory_end(numbers), changes)
    leapfrogs = numbers.leapfrogs
    if numbers.random_length:
        leapfrogs = trajectory_length(numbers.leapfrogs, numbers.seed, step)
    for leapfrog in range(leapfrogs):
        if leapfrog > 0:
            kick_and_drift(state.position, state.momentum, state.gradient, length)
        evaluate(target, at_target, look, at_look, ends, state, numbers)
        if numbers.tempering == CONTOUR:
            find_multipliers(potential, rows[PROPOSED], state, numbers, tempering_parameters)
            scale_gradients(state, rows[PROPOSED])
        elif numbers.tempering == CONTINUOUS:
            scale_gradients(state, rows[LAMBDA])
    temper_potential(potential, state, numbers, tempering_parameters)
    end_trajectory(state.momentum, state.gradient, potential, length, rows[ACCEPTED])
    accept(state, numbers.seed, step, step >= numbers.burn_in)


@inlined
def temper_potential(energy, state, numbers, tempering_parameters):
    """The energy of the law that is sampled: flattened by contour, scaled by λ, or the target's own."""
    rows = state.rows
    potential, log_psi, temperature, scale = rows[POTENTIAL], rows[LOG_PSI], rows[TEMPERATURE], rows[LAMBDA]
    if numbers.tempering == CONTOUR:
        for lane in range(potential.size):
            potential[lane] = fma(tempering_parameters[ZETA] * temperature[lane], log_psi[lane], energy[lane])
    else:
        for lane in range(potential.size):
            potential[lane] = scale[lane] * energy[lane]


@inlined
def reuses_trajectory_end(numbers):
    """Whether a step starts from the energy and gradient at the end of the last step, which only its move changed.

    Contour and continuous tempering scale a trajectory's gradients, so a step evaluates them again.
    ``Sampler.gradients_per_step`` counts by the same rule.
    """
    return numbers.leapfrogs > 0 and (numbers.tempering == NO_TEMPERING or numbers.tempering == EXCHANGE)


@inlined
def use_trajectory_end(state, rejects):
    """Energy and gradient at each lane's position: at the end of its trajectory, or at its start if it was reset.

    A lane was reset if its test failed, if it ended outside a boundary that ``rejects``, or if it diverged. The noise
    array holds the gradient at the start.
    """
    rows, status = state.rows, state.status
    energy, potential, moved, outside = rows[ENERGY], rows[POTENTIAL], rows[ACCEPTED], rows[OUTSIDE]
    if rejects:
        for lane in range(moved.size):
            moved[lane] = select(outside[lane] != 0.0, 0.0, moved[lane])
    for lane in range(moved.size):
        moved[lane] = select(status[lane] != 0, 0.0, moved[lane])
        energy[lane] = select(moved[lane] != 0.0, potential[lane], energy[lane])
    for d in range(state.gradient.shape[0]):
        for lane in range(moved.size):
            state.gradient[d, lane] = select(moved[lane] != 0.0, state.gradient[d, lane], state.noise[d, lane])
