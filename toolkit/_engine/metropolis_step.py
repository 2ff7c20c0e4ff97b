"""A Metropolis step for the tempered energy."""

from .._compiler.block_rows import (
    ACCEPTED,
    CONTINUOUS,
    CONTOUR,
    ENERGY,
    LAMBDA,
    LENGTH,
    LOG_PSI,
    POTENTIAL,
    PROPOSED,
    TEMPERATURE,
)
from .._compiler.decorators import inlined
from ..dynamics.metropolis import accept, begin_trajectory, end_trajectory, kick_and_drift, trajectory_length
from ..maths.elementary import fma
from ..tempering.contour_tempering import ZETA, find_multipliers
from ..tempering.interface import scale_gradients
from .phases import Evaluated, evaluate, reuses_trajectory_end


def propose(state, constants, steps, callees, step, changes):
    """A trajectory of leapfrog steps and its Metropolis test, for the law of the tempered energy."""
    follow_trajectory(state, constants, callees, step, changes, None)


def propose_by_contour(state, constants, steps, callees, step, changes):
    """The same for contour, whose look-ups take a quarter of the time to compile."""
    follow_trajectory(state, constants, callees, step, changes, True)


@inlined
def follow_trajectory(state, constants, callees, step, changes, by_contour):
    """The step of ``propose``. by_contour: None without contour, so that Numba leaves it out."""
    rows, numbers, tempering_parameters = state.rows, constants.numbers, constants.tempering
    length, potential = rows[LENGTH], rows[POTENTIAL]
    energy = rows[ENERGY]
    ends = Evaluated(state.position, potential, state.gradient)
    temper_potential(energy, state, numbers, tempering_parameters)
    begin_trajectory(state, numbers.is_mala, reuses_trajectory_end(numbers), changes)
    leapfrogs = numbers.leapfrogs
    if numbers.random_length:
        leapfrogs = trajectory_length(numbers.leapfrogs, numbers.seed, step)
    for leapfrog in range(leapfrogs):
        if leapfrog > 0:
            kick_and_drift(state.position, state.momentum, state.gradient, length, state.scale)
        evaluate(callees.target, callees.at_end, callees.locate, callees.at_locate, ends, state, numbers)
        if by_contour is not None:
            find_multipliers(potential, rows[PROPOSED], state, numbers, tempering_parameters)
            scale_gradients(state, rows[PROPOSED])
        elif numbers.tempering == CONTINUOUS:
            scale_gradients(state, rows[LAMBDA])
    temper_potential(potential, state, numbers, tempering_parameters)
    end_trajectory(state.momentum, state.gradient, potential, length, rows[ACCEPTED], state.scale)
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
