"""How contour learns θ, the masses of its bins, from the energies where a block's lanes are."""

import math

import numpy as np
from numba import uint64

from .block_rows import (
    ADDED,
    BIN,
    LEFT,
    LOG_WEIGHT,
    MULTIPLIER,
    NOISY_ENERGY,
    PLACE,
    SHARE,
    TOP,
)
from .compiling import apart, inlined
from .contour import (
    COUNT_FROM,
    FIELD_POWER,
    LEARN_UNTIL,
    OMEGA_CAP,
    OMEGA_EXPONENT,
    OMEGA_GAIN,
    OMEGA_OFFSET,
    ZETA,
)
from .flattening import flatten_block, nearest_visited
from .maths import exp, fma, larger, power, select, smaller
from .tempers import scale_gradients

SMALLEST_SCALE = 1e-100
SMALLEST_THETA = 1e-200  # of a visited bin, about; times the smallest scale it is still above 0, as its log needs
SMALLEST_REST = 1e-16  # what a step leaves of θ, also where ω c = 1


@inlined
def learn(bins, place, log_top, log_weight, share, added, left, state, parameters, step, n_chains, n_replicas):
    """One step of stochastic approximation, θ ← θ + ω/P Σ_p c_p (e_{J_p} − θ); share, added, left (lane) are scratch.

    Only the visited entries and the common scale change, so the cost does not grow with the number of bins.
    """
    omega = parameters[OMEGA_GAIN] / (power(float(step + 1), parameters[OMEGA_EXPONENT]) + parameters[OMEGA_OFFSET])
    omega = smaller(omega, parameters[OMEGA_CAP]) / n_replicas
    zeta, rest, n_bins = parameters[ZETA], parameters[FIELD_POWER], state.table.shape[1] // 2
    beyond = float(n_bins)
    learns = step < parameters[LEARN_UNTIL]
    for lane in range(share.size):
        field = zeta * log_weight[lane] if rest == 0.0 else fma(zeta, log_weight[lane], rest * log_top[lane])
        inside = (place[lane] >= 0.0) & (place[lane] < beyond)  # false for nan: a lane that has diverged
        share[lane] = omega * exp(field)
        share[lane] = select(inside & learns, share[lane], 0.0)
    if step >= parameters[COUNT_FROM]:
        count_outside(state, place, beyond, n_chains, n_replicas)
    divide_shares(share, added, left, state.scale, n_chains, n_replicas)
    teach(bins, share, added, left, state.table, state.scale, n_chains, n_replicas)
    sampled = step + 1 - np.int64(parameters[COUNT_FROM])
    if sampled >= state.mark[0]:  # the first step that learns since then
        for c in range(n_chains):
            while state.mark[c] <= sampled:
                state.mark[c] *= 2
            for j in range(n_bins):
                state.early[c, j] = state.late[c, j]
                state.late[c, j] = state.scale[c] * state.table[c, 2 * j]


@inlined
def divide_shares(share, added, left, scale, n_chains, n_replicas):
    """left (chain) ← the scale that a step leaves; added (lane) ← what its shares of θ are in the table's units."""
    for c in range(n_chains):
        left[c] = 0.0
    for r in range(n_replicas):
        own = share[r * n_chains : (r + 1) * n_chains]
        for c in range(n_chains):
            left[c] += own[c]
    for c in range(n_chains):
        left[c] = scale[c] * larger(1.0 - left[c], SMALLEST_REST)
    for r in range(n_replicas):
        own, divided = share[r * n_chains : (r + 1) * n_chains], added[r * n_chains : (r + 1) * n_chains]
        for c in range(n_chains):
            divided[c] = own[c] / left[c]


@apart
def teach(bins, share, added, left, table, scale, n_chains, n_replicas):
    """Put what a step adds into the table, and what it leaves of the scale into its place."""
    for r in range(n_replicas):
        for c in range(n_chains):
            lane = r * n_chains + c
            if share[lane] > 0.0:
                visits = uint64(2 * int(bins[lane]) + 1)
                if table[c, visits] == 0.0:
                    open_bin(table, scale, c, int(bins[lane]))
                    left[c] = 0.0
                table[c, visits] += 1.0
    ends = 0
    for c in range(n_chains):
        ends += int(left[c] < SMALLEST_SCALE)
    if ends > 0:
        for c in range(n_chains):
            if left[c] == 0.0:
                divide_again(share, added, left, scale, c, n_chains, n_replicas)
    for r in range(n_replicas):
        for c in range(n_chains):
            lane = r * n_chains + c
            table[c, uint64(2 * int(bins[lane]))] += added[lane]
    for c in range(n_chains):
        scale[c] = left[c]
    if ends > 0:
        for c in range(n_chains):
            if scale[c] < SMALLEST_SCALE:
                rescale(table, scale, c)


@apart
def divide_again(share, added, left, scale, c, n_chains, n_replicas):
    """``divide_shares`` of one chain, whose scale has changed."""
    left[c] = 0.0
    for r in range(n_replicas):
        left[c] += share[r * n_chains + c]
    left[c] = scale[c] * larger(1.0 - left[c], SMALLEST_REST)
    for r in range(n_replicas):
        added[r * n_chains + c] = share[r * n_chains + c] / left[c]


@inlined
def count_outside(state, place, beyond, n_chains, n_replicas):
    """Count the energies below the partition, above it, and all."""
    low, high, seen = state.outside[0], state.outside[1], state.outside[2]
    for r in range(n_replicas):
        own = place[r * n_chains : (r + 1) * n_chains]
        for c in range(n_chains):
            low[c] += int(own[c] < 0.0)
            high[c] += int(own[c] >= beyond)
            seen[c] += 1


@apart
def rescale(table, scale, c):
    """Bring the scale of chain ``c`` back to 1."""
    for j in range(table.shape[1] // 2):
        if table[c, 2 * j + 1] > 0.0:
            table[c, 2 * j] = larger(scale[c] * table[c, 2 * j], SMALLEST_THETA)
    scale[c] = 1.0


@apart
def open_bin(table, scale, c, j):
    """Give the bin ``j`` of chain ``c`` the θ of the nearest visited bin, and let θ sum to 1 as before."""
    nearest = nearest_visited(table[c], j)
    if nearest < 0:
        table[c, 2 * j] = 1.0
        return
    table[c, 2 * j] = table[c, 2 * nearest]
    scale[c] /= fma(scale[c], table[c, 2 * j], 1.0)


def temper_by_contour(state, numbers, parameters, step, samples, changes):
    """Learn θ from the energies, and multiply the gradients by what they gave before it."""
    rows, masses = state.rows, state.masses
    if samples:
        place = rows[PLACE]
        for lane in range(place.size):
            place[lane] = select(state.status[lane] == 0, place[lane], math.nan)  # the diverged teach nothing
        learn(
            rows[BIN], place, masses[TOP], rows[LOG_WEIGHT], masses[SHARE], masses[ADDED], masses[LEFT], state.contour,
            parameters, step, numbers.n_chains, numbers.n_replicas,
        )  # fmt: skip
    if numbers.leapfrogs > 0:  # the Metropolis test compares energies that one θ has flattened
        flatten_block(rows[NOISY_ENERGY], rows[MULTIPLIER], state, numbers, parameters)
    scale_gradients(state, rows[MULTIPLIER])
