"""What has diverged stays where it was: a lane that is no longer finite is put back, for good, and its step noted."""

from .block_rows import ALIVE, ENERGY
from .compiling import inlined, kernel
from .continuous import MOMENTUM, THERMOSTAT
from .maths import select


@inlined
def hold_diverged(state, previous, couples, step):
    """Note the lanes whose energy, position or, with continuous tempering, ξ's momentum is not finite.

    They stay where they were before the step, for good.
    """
    position, energy, status = state.position, state.rows[ENERGY], state.status
    first, last = position[0], position[position.shape[0] - 1]
    held = 0  # a bound on the lanes to be held, 0 where there are none: one loop that writes nothing
    for lane in range(energy.size):
        missing = (energy[lane] - energy[lane]) + (first[lane] - first[lane]) + (last[lane] - last[lane])
        held += int((missing != 0.0) | (status[lane] != 0))  # true for nan
    for d in range(1, position.shape[0] - 1):
        for lane in range(energy.size):
            held += int(position[d, lane] - position[d, lane] != 0.0)
    if couples:  # ξ itself stays between its walls, whatever becomes of its momentum and its thermostat
        momentum, thermostat = state.continuous.rows[MOMENTUM], state.continuous.rows[THERMOSTAT]
        for lane in range(energy.size):
            held += int((momentum[lane] - momentum[lane]) + (thermostat[lane] - thermostat[lane]) != 0.0)
    if held > 0:
        find_missing(state, couples)
        put_back(position, previous, state.rows[ALIVE], status, step)


@inlined
def find_missing(state, couples):
    """alive (lane) ← 0 where all that ``hold_diverged`` looks at is finite, else nan."""
    position, alive, energy = state.position, state.rows[ALIVE], state.rows[ENERGY]
    for lane in range(alive.size):
        alive[lane] = energy[lane] - energy[lane]
    for d in range(position.shape[0]):
        for lane in range(alive.size):
            alive[lane] += position[d, lane] - position[d, lane]
    if couples:
        momentum, thermostat = state.continuous.rows[MOMENTUM], state.continuous.rows[THERMOSTAT]
        for lane in range(alive.size):
            alive[lane] += (momentum[lane] - momentum[lane]) + (thermostat[lane] - thermostat[lane])


@kernel
def put_back(position, previous, alive, status, step):
    """Put back every lane that has diverged, now or before, and note the step at which it did first."""
    for lane in range(alive.size):
        diverges = alive[lane] != 0.0  # true for nan
        status[lane] = select(diverges and status[lane] == 0, step + 1, status[lane])
    for d in range(position.shape[0]):
        for lane in range(alive.size):
            position[d, lane] = select(status[lane] != 0, previous[d, lane], position[d, lane])
