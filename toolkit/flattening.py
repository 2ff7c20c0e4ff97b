"""Contour's two kernels: what a flattened energy does to a block's gradients, and how θ is learned from where it is."""

import math

import numpy as np

from .compiling import inlined, kernel
from .contour import (
    COUNT_FROM,
    FIELD_POWER,
    INTERPOLATED,
    LEARN_UNTIL,
    OMEGA_CAP,
    OMEGA_EXPONENT,
    OMEGA_GAIN,
    OMEGA_OFFSET,
    U_MIN,
    WIDTH,
    ZETA,
)
from .maths import exp, fma, larger, log, power, select, smaller
from .state import BIN, BOTTOM, LOG_PSI, LOG_WEIGHT, PLACE, TEMPERATURE, TOP

SMALLEST_SCALE = 1e-100
SMALLEST_THETA = 1e-200  # of a visited bin, about; times the smallest scale it is still above 0, as its log needs
SMALLEST_REST = 1e-16  # what a step leaves of θ, also where ω c = 1


@kernel
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

    place: the energy in units of bins from u_min; bins: its bin, from 0; top, bottom: Ψ at the bin's two ends;
    log_weight: the logarithm whose multiples weigh draws and steps, log Ψ or the bin's log θ.
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
    for r in range(n_replicas):
        for c in range(n_chains):
            lane = r * n_chains + c
            here = int(bins[lane])
            visited = state.table[c, 2 * here + 1] > 0.0
            j = here if visited else nearest_visited(state.table[c], here)
            if j >= 0:
                mass = state.scale[c] * state.table[c, 2 * j]
                top[lane] = mass
                slopes = visited and j > 0 and place[lane] < highest + 1.0 and state.table[c, max(2 * j - 1, 0)] > 0.0
                bottom[lane] = state.scale[c] * state.table[c, max(2 * j - 2, 0)] if slopes else mass
    for lane in range(energy.size):
        log_top = log(top[lane])
        rise = log_top - log(bottom[lane])
        multiplier[lane] = 1.0 + zeta * temperature[lane] * rise / width
        log_psi[lane] = log_top - (bins[lane] + 1.0 - place[lane]) * rise
        log_weight[lane] = select(interpolated, log_psi[lane], log_top)


@inlined
def flatten_block(energy, multiplier, state, numbers, parameters):
    """``flatten`` of the rows where the engine keeps them; inlined, as a block is large to pass."""
    rows, masses = state.rows, state.masses
    flatten(
        energy, rows[TEMPERATURE], rows[PLACE], rows[BIN], masses[TOP], masses[BOTTOM], multiplier, rows[LOG_PSI],
        rows[LOG_WEIGHT], state.contour, parameters, numbers.n_chains, numbers.n_replicas,
    )  # fmt: skip


@kernel
def learn(bins, place, top, log_weight, share, state, parameters, step, n_chains, n_replicas):
    """One step of stochastic approximation, θ ← θ + ω/P Σ_p c_p (e_{J_p} − θ); ``share`` (lane) is scratch.

    Only the visited entries and the common scale change, so the cost does not grow with the number of bins.
    """
    omega = parameters[OMEGA_GAIN] / (power(float(step + 1), parameters[OMEGA_EXPONENT]) + parameters[OMEGA_OFFSET])
    omega = smaller(omega, parameters[OMEGA_CAP]) / n_replicas
    zeta, rest, n_bins = parameters[ZETA], parameters[FIELD_POWER], state.table.shape[1] // 2
    beyond = float(n_bins)
    learns = step < parameters[LEARN_UNTIL]
    if rest == 0.0:
        for lane in range(share.size):
            share[lane] = omega * exp(zeta * log_weight[lane])
    else:
        for lane in range(share.size):
            share[lane] = omega * exp(fma(zeta, log_weight[lane], rest * log(top[lane])))
    for lane in range(share.size):
        inside = (place[lane] >= 0.0) & (place[lane] < beyond)  # false for nan: a lane that has diverged
        share[lane] = select(inside & learns, share[lane], 0.0)
    for c in range(n_chains):
        total = 0.0
        for r in range(n_replicas):
            lane = r * n_chains + c
            total += share[lane]
            if share[lane] > 0.0:
                j = int(bins[lane])
                if state.table[c, 2 * j + 1] == 0.0:
                    open_bin(state, c, j)
                state.table[c, 2 * j + 1] += 1.0
            if step >= parameters[COUNT_FROM]:
                state.outside[0, c] += int(place[lane] < 0.0)
                state.outside[1, c] += int(place[lane] >= beyond)
                state.outside[2, c] += 1
        state.scale[c] *= larger(1.0 - total, SMALLEST_REST)
        for r in range(n_replicas):
            lane = r * n_chains + c
            if share[lane] > 0.0:
                state.table[c, 2 * int(bins[lane])] += share[lane] / state.scale[c]
        if state.scale[c] < SMALLEST_SCALE:
            for j in range(n_bins):
                if state.table[c, 2 * j + 1] > 0.0:
                    state.table[c, 2 * j] = larger(state.scale[c] * state.table[c, 2 * j], SMALLEST_THETA)
            state.scale[c] = 1.0
    sampled = step + 1 - np.int64(parameters[COUNT_FROM])
    if sampled >= state.mark[0]:  # the first step that learns since then
        for c in range(n_chains):
            while state.mark[c] <= sampled:
                state.mark[c] *= 2
            for j in range(n_bins):
                state.early[c, j] = state.late[c, j]
                state.late[c, j] = state.scale[c] * state.table[c, 2 * j]


@kernel
def open_bin(state, c, j):
    """Give the bin ``j`` of chain ``c`` the θ of the nearest visited bin, and let θ sum to 1 as before."""
    nearest = nearest_visited(state.table[c], j)
    if nearest < 0:
        state.table[c, 2 * j] = 1.0
        return
    state.table[c, 2 * j] = state.table[c, 2 * nearest]
    state.scale[c] /= fma(state.scale[c], state.table[c, 2 * j], 1.0)
