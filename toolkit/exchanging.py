"""What changes places in a swap, and how momenta are fitted to the temperature of their new rung."""

import math

from .compiling import inlined, kernel
from .maths import fma, select

# Rows of what swaps take of a lane's rung; the last is scratch for what differs by pair or coordinate.
COLDNESS, HALF_KICK, HEAT, HEAT_OF_PAIR, RUNG_ROWS = range(5)


@kernel
def find_rungs(rungs, step_size, temperature, n_chains, has_momentum):
    """rungs (RUNG_ROWS, lane) ← 1/T, half a kick √h/2, and √(T/T') where T' is the temperature of the rung below."""
    coldness, half_kick, heat = rungs[COLDNESS], rungs[HALF_KICK], rungs[HEAT]
    for lane in range(temperature.size):
        coldness[lane] = 1.0 / temperature[lane]
    if has_momentum:
        for lane in range(temperature.size):
            half_kick[lane] = 0.5 * math.sqrt(step_size[lane])
        for lane in range(n_chains, temperature.size):
            heat[lane] = math.sqrt(temperature[lane] / temperature[lane - n_chains])


@inlined
def find_heat(heat, cold_temperature, hot_temperature, thermostats, d, cold, hot):
    """heat (chain,) ← √ of the hot momenta's variance over the cold's in coordinate d: T/(1 − z/2) under a thermostat.

    cold, hot: the slices of the rungs' lanes. Without a thermostat the variance is T.
    """
    if thermostats.shape[0] == 0:
        for c in range(heat.size):
            heat[c] = math.sqrt(hot_temperature[c] / cold_temperature[c])
    else:
        row = min(d, thermostats.shape[0] - 1)
        cold_drag, hot_drag = thermostats[row, cold], thermostats[row, hot]
        for c in range(heat.size):
            cold_share, hot_share = 1.0 - 0.5 * cold_drag[c], 1.0 - 0.5 * hot_drag[c]
            cold_heat = cold_temperature[c] / select(cold_share > 0.1, cold_share, 0.1)
            hot_heat = hot_temperature[c] / select(hot_share > 0.1, hot_share, 0.1)
            heat[c] = math.sqrt(hot_heat / cold_heat)


@kernel
def exchange_momenta(
    cold_momentum, hot_momentum, cold_gradient, hot_gradient, cold_half, hot_half, heat, swapped
):  # fmt: skip
    """Exchange momenta where ``swapped`` is not 0, fitted to their heat, with gradients still in their old places.

    A momentum is that of half a step before its position. It is brought to the position's time by half a kick, scaled
    there, and taken back by half a kick of its new rung; or it would keep a covariance with the position that belongs
    to the other temperature.
    """
    for c in range(cold_momentum.size):
        upward = fma(-cold_half[c], cold_gradient[c], cold_momentum[c]) * heat[c]
        downward = fma(-hot_half[c], hot_gradient[c], hot_momentum[c]) / heat[c]
        upward = fma(hot_half[c], cold_gradient[c], upward)
        downward = fma(cold_half[c], hot_gradient[c], downward)
        cold_momentum[c] = select(swapped[c] != 0.0, downward, cold_momentum[c])
        hot_momentum[c] = select(swapped[c] != 0.0, upward, hot_momentum[c])


@kernel
def exchange(first, second, swapped):
    """Exchange ``first`` and ``second``, each (chain,), floats or integers, where ``swapped`` is not 0."""
    for c in range(first.size):
        a, b = first[c], second[c]
        first[c] = select(swapped[c] != 0.0, b, a)
        second[c] = select(swapped[c] != 0.0, a, b)
