"""What an energy that contour has flattened does to a block's gradients; ``learning`` teaches it θ."""

import math

from numba import uint64

from .block_rows import BIN, BOTTOM, LOG_PSI, LOG_WEIGHT, PLACE, STEP_SIZE, TEMPERATURE, TOP
from .compiling import apart, inlined, kernel
from .contour import INTERPOLATED, U_MIN, WIDTH, ZETA
from .maths import fma, log_of_normal, select

MOST_LOST = 4.0  # nats: moves by the multiplied gradient would be accepted in 1 of 50 tests or less


@apart
def nearest_visited(table, j):
    """The visited bin nearest to ``j``, the lower one of two; −1 where none has been visited."""
    n_bins = table.size // 2
    for away in range(n_bins):
        if j - away >= 0 and table[2 * (j - away) + 1] > 0.0:
            return j - away
        if j + away < n_bins and table[2 * (j + away) + 1] > 0.0:
            return j + away
    return -1


@kernel
def flatten(
    energy, temperature, place, bins, top, bottom, multiplier, log_psi, log_weight, state, parameters, n_chains,
    n_replicas,
):  # fmt: skip
    """The gradient's multiplier and log Ψ of every lane at ``energy``; the other rows (lane) hold what led there.

    place: the energy in units of bins from u_min; bins: its bin, from 0; top: log Ψ at the bin's upper end; bottom: Ψ
    at its lower one; log_weight: the logarithm whose multiples weigh draws and steps, log Ψ or the bin's log θ.
    """
    u_min, width, zeta = parameters[U_MIN], parameters[WIDTH], parameters[ZETA]
    interpolated = parameters[INTERPOLATED] != 0.0
    highest = float(state.table.shape[1] // 2 - 1)
    for lane in range(energy.size):
        where = (energy[lane] - u_min) / width
        number = math.floor(where)
        number = select(number > 0.0, number, 0.0)
        place[lane] = where
        bins[lane] = select(number < highest, number, highest)
        top[lane] = 1.0
        bottom[lane] = 1.0
    read_masses(bins, top, bottom, state.table, state.scale, n_chains, n_replicas)
    for lane in range(energy.size):
        log_top = log_of_normal(top[lane])
        log_bottom = log_of_normal(select(place[lane] < highest + 1.0, bottom[lane], top[lane]))
        rise = log_top - log_bottom
        top[lane] = log_top
        multiplier[lane] = 1.0 + zeta * temperature[lane] * rise / width
        log_psi[lane] = log_top - (bins[lane] + 1.0 - place[lane]) * rise
        log_weight[lane] = select(interpolated, log_psi[lane], log_top)


@apart
def read_masses(bins, top, bottom, table, scale, n_chains, n_replicas):
    """top, bottom ← Ψ at the two ends of each lane's bin: θ of the bin and of the one below, where it was visited."""
    for r in range(n_replicas):
        for c in range(n_chains):
            lane = r * n_chains + c
            here = int(bins[lane])
            below = max(here - 1, 0)
            mass = table[c, uint64(2 * here)]
            if table[c, uint64(2 * here + 1)] > 0.0:
                slopes = table[c, uint64(2 * below + 1)] > 0.0
                top[lane] = scale[c] * mass
                bottom[lane] = scale[c] * select(slopes, table[c, uint64(2 * below)], mass)
            else:
                nearest = nearest_visited(table[c], here)
                if nearest >= 0:
                    top[lane] = scale[c] * table[c, 2 * nearest]
                    bottom[lane] = top[lane]


@inlined
def flatten_block(energy, multiplier, state, numbers, parameters):
    """``flatten`` of the rows where the engine keeps them; inlined, as a block is large to pass.

    Under a Metropolis test the gradient must not be multiplied yet, and a multiplier m with h (m − 1)² |∇U|²/(4T) >
    ``MOST_LOST`` becomes 1: a step of √(2hT) back against the excess drift has the logarithm of its probability density
    less by as much. The test keeps the law whatever gradient a trajectory follows, as a function of the place alone.
    """
    rows, masses = state.rows, state.masses
    flatten(
        energy, rows[TEMPERATURE], rows[PLACE], rows[BIN], masses[TOP], masses[BOTTOM], multiplier, rows[LOG_PSI],
        rows[LOG_WEIGHT], state.contour, parameters, numbers.n_chains, numbers.n_replicas,
    )  # fmt: skip
    if numbers.leapfrogs > 0:
        # A bin that is not left gains θ at every step, and its slope with it: the gradient times that slope would throw
        # proposals ever further away, and no energy that θ takes off the other bins would make up for it.
        step_size, temperature = rows[STEP_SIZE], rows[TEMPERATURE]
        for lane in range(multiplier.size):
            square = 0.0
            for d in range(state.gradient.shape[0]):
                square = fma(state.gradient[d, lane], state.gradient[d, lane], square)
            h = step_size[lane] if numbers.is_mala else 0.5 * step_size[lane] * step_size[lane]
            excess = multiplier[lane] - 1.0
            steep = 0.25 * h * excess * excess * square > MOST_LOST * temperature[lane]
            multiplier[lane] = select(steep, 1.0, multiplier[lane])
