"""Recording: copy requested values from a block to the outputs; it never changes how a block moves."""

import numpy as np

from .._compiler.block_rows import CONTINUOUS, CONTOUR, ENERGY, EXCHANGE, LAMBDA, MULTIPLIER
from .._compiler.decorators import inlined, kernel

TRACED = ("energy", "multiplier", "walker")  # first fields of every trace, followed by the dynamics' memory
TRACED_COUPLING = ("xi", "xi_momentum", "xi_thermostat")  # last fields with continuous tempering: the first of its rows
N_TRACED, N_TRACED_COUPLING = len(TRACED), len(TRACED_COUPLING)
STATISTICS = ("walker", "swaps", "reflections")  # what is recorded with every draw
LARGEST_TALLY = 2**31 - 1


@kernel
def record(position, status, n_chains, n_kept, slot, draws):
    """Copy the kept replicas of every chain into ``draws``; a diverged lane leaves nan."""
    for r in range(n_kept):
        for c in range(n_chains):
            lane = r * n_chains + c
            for d in range(position.shape[0]):
                draws[c, r, slot, d] = position[d, lane] if status[lane] == 0 else np.nan


@kernel
def record_row(row, status, n_chains, n_kept, slot, out):
    """Copy a row (lane) of the kept replicas of every chain into ``out``; a diverged lane leaves nan."""
    for r in range(n_kept):
        for c in range(n_chains):
            lane = r * n_chains + c
            is_valid = status[lane] == 0 and row[lane] - row[lane] == 0.0
            out[c, r, slot] = row[lane] if is_valid else np.nan


@inlined
def record_statistics(state, n_chains, n_replicas, n_kept, slot, statistics):
    """Copy walker, and swaps and reflections so far, of the kept replicas of every chain; they stop at 2³¹ − 1."""
    exchange = state.exchange
    n_pairs, swaps = exchange.accepted.shape[0], exchange.walker.size > 0
    for r in range(n_kept):
        for c in range(n_chains):
            lane = r * n_chains + c
            statistics[c, r, slot, 0] = exchange.walker[lane] if swaps else r
            statistics[c, r, slot, 1] = 0
            statistics[c, r, slot, 2] = min(state.bounces[lane], LARGEST_TALLY)
    pair, cold = 0, 0
    while pair < n_pairs:
        for hot in range(cold + 1, n_replicas if n_pairs >= n_replicas else cold + 2):
            for c in range(n_chains):
                accepted = exchange.accepted[pair, c]
                if cold < n_kept:
                    statistics[c, cold, slot, 1] = min(statistics[c, cold, slot, 1] + accepted, LARGEST_TALLY)
                if hot < n_kept:
                    statistics[c, hot, slot, 1] = min(statistics[c, hot, slot, 1] + accepted, LARGEST_TALLY)
            pair += 1
        cold += 1


@kernel
def record_trace(state, numbers, slot, trace):
    """Copy energy, multiplier and walker, then the dynamics' memory, then ξ, its momentum and its thermostat."""
    memory, rows = state.memory, state.continuous.rows
    n_coupled = min(rows.shape[0], N_TRACED_COUPLING)
    n_memory = numbers.n_traced_memory  # the rest is scratch
    for r in range(numbers.n_replicas):
        for c in range(numbers.n_chains):
            lane = r * numbers.n_chains + c
            trace[c, r, slot, 0] = state.rows[ENERGY, lane]
            multiplier = state.rows[LAMBDA, lane] if numbers.tempering == CONTINUOUS else 1.0
            trace[c, r, slot, 1] = state.rows[MULTIPLIER, lane] if numbers.tempering == CONTOUR else multiplier
            trace[c, r, slot, 2] = float(state.exchange.walker[lane]) if numbers.tempering == EXCHANGE else float(r)
            for i in range(n_memory):
                trace[c, r, slot, N_TRACED + i] = memory[i, lane]
            for i in range(n_coupled):
                trace[c, r, slot, N_TRACED + n_memory + i] = rows[i, lane]


@kernel
def record_theta(contour, slot, theta):
    """Copy θ of every chain into ``theta``."""
    for c in range(theta.shape[0]):
        for j in range(theta.shape[2]):
            theta[c, slot, j] = contour.scale[c] * contour.table[c, 2 * j]
