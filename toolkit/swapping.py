"""The swaps of replica exchange, attempted; ``exchange`` holds their law, ``exchanging`` makes them."""

import numpy as np
from numba import uint64

from .block_rows import ALIVE, ENERGY, LOG_WEIGHT, PLACE, POTENTIAL, STEP_SIZE, TEMPERATURE, WEIGHT
from .compiling import apart, inlined, kernel
from .exchange import (
    ADAPT_UNTIL,
    ALL_PAIRS,
    DEO,
    ESTIMATE_EVERY,
    ESTIMATES,
    GAIN,
    GATED,
    NOISE,
    SCHEME,
    SEO,
    SWAP_EVERY,
    TARGET_RATE,
    THRESHOLD,
    WINDOW,
)
from .exchanging import COLDNESS, HALF_KICK, HEAT, HEAT_OF_PAIR, exchange, exchange_momenta, find_heat, find_rungs
from .maths import exp, power, select
from .philox import ENERGY_NOISE, SWAP, normal_pair, uniform_pair


@inlined
def swap_replicas(
    position, momentum, thermostats, gradient, curvature, rungs, energy, temperature, alive, swapped, difference,
    state, parameters, step, seed, chain, n_chains, n_replicas, counts,
):  # fmt: skip
    """Attempt the swaps of one step in a block whose lane of (replica r, chain c) is r · n_chains + c.

    rungs: as ``find_rungs`` leaves them. A lane whose ``alive`` is 0 never swaps. ``swapped`` and ``difference``
    (lane) are scratch; the state's counts grow where ``counts``.
    """
    attempt = step // np.int64(parameters[SWAP_EVERY])
    window = np.int64(parameters[WINDOW])
    scheme = np.int64(parameters[SCHEME])
    if attempt % window == 0 and parameters[GATED] != 0.0:
        for gate in range(state.rests.shape[0]):
            for c in range(n_chains):
                state.rests[gate, c] = 0.0
    pair = np.int64(0)
    for cold in range(n_replicas - 1):
        last = n_replicas if scheme == ALL_PAIRS else cold + 2
        for hot in range(cold + 1, last):
            if scheme != DEO or n_replicas == 2 or cold % 2 == (attempt // window) % 2:
                for c in range(n_chains):
                    swapped[c] = 1.0
                if scheme == SEO and n_replicas > 2:
                    for c in range(n_chains):
                        coin = uniform_pair(seed, chain[c], uint64(0), uint64(step), uint64(SWAP), np.uint64(1))[0]
                        swapped[c] = select((coin < 0.5) == (cold % 2 == 0), 1.0, 0.0)
                attempt_pair(
                    position, momentum, thermostats, gradient, curvature, rungs, energy, temperature, alive, swapped,
                    difference, state, parameters, cold, hot, pair, attempt, step, seed, chain, n_chains, counts,
                )  # fmt: skip
            pair += 1
    turn_round(state, n_chains, n_replicas, counts)


@inlined
def attempt_pair(
    position, momentum, thermostats, gradient, curvature, rungs, energy, temperature, alive, swapped, difference,
    state, parameters, first, second, pair, attempt, step, seed, chain, n_chains, counts,
):  # fmt: skip
    """Attempt one pair in the chains where ``swapped`` is 1, which it is afterwards where they have swapped."""
    cold = slice(first * n_chains, (first + 1) * n_chains)
    hot = slice(second * n_chains, (second + 1) * n_chains)
    cold_energy, hot_energy, cold_alive, hot_alive = energy[cold], energy[hot], alive[cold], alive[hot]
    coldness, hotter = rungs[COLDNESS, cold], rungs[COLDNESS, hot]
    correction, rests, uniform = state.correction[pair], state.rests[pair], difference[n_chains : 2 * n_chains]
    noise, threshold, gated = parameters[NOISE], parameters[THRESHOLD], parameters[GATED]
    for c in range(n_chains):
        difference[c] = cold_energy[c] - hot_energy[c]
        swapped[c] *= cold_alive[c] * hot_alive[c]
    if noise > 0.0:
        for c in range(n_chains):
            a, b = normal_pair(seed, chain[c], uint64(pair), uint64(step), uint64(ENERGY_NOISE), np.uint64(0))
            difference[c] += noise * (a - b)
    if gated != 0.0:
        for c in range(n_chains):
            swapped[c] *= 1.0 - rests[c]
    if threshold > 0.0:
        for c in range(n_chains):
            uniform[c] = threshold
    else:
        draw_for_pair(uniform, seed, chain, pair, uint64(step))
    swaps = 0
    for c in range(n_chains):
        slope = coldness[c] - hotter[c]
        exponent = slope * (difference[c] - slope * correction[c])
        tried = swapped[c]
        swaps_here = select(exp(exponent) >= uniform[c], tried, 0.0)
        difference[c], swapped[c] = tried, swaps_here
        swaps += int(swaps_here != 0.0)
    if parameters[TARGET_RATE] > 0.0 and step < np.int64(parameters[ADAPT_UNTIL]):
        gain = parameters[GAIN] / power(float(attempt), 0.6)
        for c in range(n_chains):
            slope = coldness[c] - hotter[c]
            moved = correction[c] + gain * (swapped[c] - parameters[TARGET_RATE]) / (slope * slope) * difference[c]
            correction[c] = select(moved > 0.0, moved, 0.0)
    if counts:
        attempted, accepted = state.attempted[pair], state.accepted[pair]
        for c in range(n_chains):
            attempted[c] += np.int64(difference[c])
            accepted[c] += np.int64(swapped[c])
    if swaps == 0:
        return
    if gated != 0.0:
        for c in range(n_chains):
            rests[c] += swapped[c]
    exchange(cold_energy, hot_energy, swapped)
    for d in range(position.shape[0]):
        exchange(position[d, cold], position[d, hot], swapped)
    for d in range(curvature.shape[0]):
        exchange(curvature[d, cold], curvature[d, hot], swapped)
    of_pair = thermostats.shape[0] > 0 or second > first + 1
    heat = rungs[HEAT_OF_PAIR if of_pair else HEAT, hot]
    for d in range(momentum.shape[0]):
        if of_pair and (d == 0 or thermostats.shape[0] > 1):
            find_heat(heat, temperature[cold], temperature[hot], thermostats, d, cold, hot)
        exchange_momenta(
            momentum[d, cold], momentum[d, hot], gradient[d, cold], gradient[d, hot], rungs[HALF_KICK, cold],
            rungs[HALF_KICK, hot], heat, swapped,
        )  # fmt: skip
    for d in range(position.shape[0]):
        exchange(gradient[d, cold], gradient[d, hot], swapped)
    exchange(state.walker[cold], state.walker[hot], swapped)
    exchange(state.last_end[cold], state.last_end[hot], swapped)


@apart
def draw_for_pair(uniform, seed, chain, pair, step):
    """uniform (chain,) ← the random numbers by which one step's swaps of one pair are decided."""
    for c in range(uniform.size):
        uniform[c] = uniform_pair(seed, chain[c], uint64(pair), step, uint64(SWAP), uint64(0))[0]


@inlined
def turn_round(state, n_chains, n_replicas, counts):
    """Note which walkers have met an end of the ladder, and count the round trips completed at the coldest rung."""
    cold, hot = state.last_end[:n_chains], state.last_end[(n_replicas - 1) * n_chains : n_replicas * n_chains]
    for c in range(n_chains):
        if counts:
            state.round_trips[c] += int(cold[c] == 2)
        cold[c] = 1
    for c in range(n_chains):
        hot[c] = 2 if hot[c] == 1 else hot[c]


@kernel
def estimate_corrections(variance, state, parameters, step, seed, chain, replica, n_chains, n_replicas, all_pairs):
    """Move each pair's correction towards the variance seen in fresh noisy energies; ``variance`` (lane) is scratch."""
    count = np.int64(parameters[ESTIMATES])
    weight = 1.0 / (step // np.int64(parameters[ESTIMATE_EVERY]))
    for lane in range(n_chains * n_replicas):
        total, squares = 0.0, 0.0
        for i in range(count):
            z = normal_pair(seed, chain[lane], replica[lane], uint64(step), uint64(ENERGY_NOISE), uint64(i + 1))[0]
            total += parameters[NOISE] * z
            squares += parameters[NOISE] * z * parameters[NOISE] * z
        variance[lane] = (squares - total * total / count) / (count - 1)
    pair = 0
    for cold in range(n_replicas - 1):
        for hot in range(cold + 1, n_replicas if all_pairs else cold + 2):
            for c in range(n_chains):
                seen = 0.5 * (variance[cold * n_chains + c] + variance[hot * n_chains + c])
                state.correction[pair, c] += weight * (seen - state.correction[pair, c])
            pair += 1


def temper_by_exchange(state, numbers, parameters, step, samples, changes):
    """Estimate corrections, where the schedule explores too, and attempt swaps, where they are due."""
    rows = state.rows
    energy, alive, rungs = rows[ENERGY], rows[ALIVE], rows[PLACE : LOG_WEIGHT + 1]
    if changes > 1:
        find_rungs(rungs, rows[STEP_SIZE], rows[TEMPERATURE], numbers.n_chains, state.momentum.shape[0] > 0)
    if step == 0:
        return
    if parameters[ESTIMATE_EVERY] > 0.0 and step % int(parameters[ESTIMATE_EVERY]) == 0:
        estimate_corrections(
            rows[POTENTIAL], state.exchange, parameters, step, numbers.seed, state.chain, state.replica,
            numbers.n_chains, numbers.n_replicas, parameters[SCHEME] == ALL_PAIRS,
        )  # fmt: skip
    if samples and step % int(parameters[SWAP_EVERY]) == 0:
        for lane in range(energy.size):
            alive[lane] = 1.0 if state.status[lane] == 0 and energy[lane] - energy[lane] == 0.0 else 0.0
        swap_replicas(
            state.position, state.momentum, state.memory[: numbers.n_thermostats], state.gradient, state.curvature,
            rungs, energy, rows[TEMPERATURE], alive, rows[WEIGHT], rows[POTENTIAL], state.exchange, parameters,
            step, numbers.seed, state.chain, numbers.n_chains, numbers.n_replicas, step >= numbers.burn_in,
        )  # fmt: skip
