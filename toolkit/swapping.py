"""The swaps of replica exchange as block functions; ``exchange`` holds their law and their numbers."""

import math

import numpy as np
from numba import uint64

from .compiling import kernel
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
from .maths import exp, fma, power, select
from .philox import ENERGY_NOISE, SWAP, normal_pair, uniform_pair


@kernel
def swap_replicas(
    position, momentum, thermostats, gradient, curvature, energy, step_size, temperature, alive, swapped, difference,
    state, parameters, step, seed, chain, n_chains, n_replicas, counts,
):  # fmt: skip
    """Attempt the swaps of one step in a block whose lane of (replica r, chain c) is r · n_chains + c.

    A lane whose ``alive`` is 0 never swaps. ``swapped`` and ``difference`` (lane) are scratch; the state's counts
    grow where ``counts``.
    """
    attempt = step // np.int64(parameters[SWAP_EVERY])
    window = np.int64(parameters[WINDOW])
    scheme = np.int64(parameters[SCHEME])
    if attempt % window == 0 and parameters[GATED] != 0.0:
        for gate in range(state.rests.shape[0]):
            for c in range(n_chains):
                state.rests[gate, c] = 0.0
    pair = np.int64(0)  # a literal 0 would have Numba compile ``attempt_pair`` for it, too
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
                    position, momentum, thermostats, gradient, curvature, energy, step_size, temperature, alive,
                    swapped, difference, state, parameters, cold, hot, pair, attempt, step, seed, chain, n_chains,
                    counts,
                )  # fmt: skip
            pair += 1
    turn_round(state, n_chains, n_replicas, counts)


@kernel
def attempt_pair(
    position, momentum, thermostats, gradient, curvature, energy, step_size, temperature, alive, swapped, difference,
    state, parameters, first, second, pair, attempt, step, seed, chain, n_chains, counts,
):  # fmt: skip
    """Attempt one pair in the chains where ``swapped`` is 1, which it is afterwards where they have swapped."""
    cold = slice(first * n_chains, (first + 1) * n_chains)
    hot = slice(second * n_chains, (second + 1) * n_chains)
    cold_temperature, hot_temperature = temperature[cold], temperature[hot]
    cold_energy, hot_energy, cold_alive, hot_alive = energy[cold], energy[hot], alive[cold], alive[hot]
    correction, rests = state.correction[pair], state.rests[pair]
    noise, threshold, gated = parameters[NOISE], parameters[THRESHOLD], parameters[GATED]
    for c in range(n_chains):
        difference[c] = cold_energy[c] - hot_energy[c]
    if noise > 0.0:
        for c in range(n_chains):
            a, b = normal_pair(seed, chain[c], uint64(pair), uint64(step), uint64(ENERGY_NOISE), np.uint64(0))
            difference[c] += noise * (a - b)
    for c in range(n_chains):
        swapped[c] *= cold_alive[c] * hot_alive[c]
    if gated != 0.0:
        for c in range(n_chains):
            swapped[c] *= 1.0 - rests[c]
    if counts:
        attempted = state.attempted[pair]
        for c in range(n_chains):
            attempted[c] += np.int64(swapped[c])
    for c in range(n_chains):
        slope = 1.0 / cold_temperature[c] - 1.0 / hot_temperature[c]
        exponent = slope * (difference[c] - slope * correction[c])
        u = uniform_pair(seed, chain[c], uint64(pair), uint64(step), uint64(SWAP), np.uint64(0))[0]
        bar = select(threshold > 0.0, threshold, u)
        difference[c] = swapped[c]  # whether the pair was tried
        swapped[c] = select(exp(exponent) >= bar, swapped[c], 0.0)
    if parameters[TARGET_RATE] > 0.0 and step < np.int64(parameters[ADAPT_UNTIL]):
        gain = parameters[GAIN] / power(float(attempt), 0.6)
        for c in range(n_chains):
            slope = 1.0 / cold_temperature[c] - 1.0 / hot_temperature[c]
            moved = correction[c] + gain * (swapped[c] - parameters[TARGET_RATE]) / (slope * slope) * difference[c]
            correction[c] = select(moved > 0.0, moved, 0.0)
    swaps = 0
    for c in range(n_chains):
        swaps += int(swapped[c] != 0.0)
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
    cold_heat, hot_heat = difference[:n_chains], difference[n_chains : 2 * n_chains]
    for d in range(momentum.shape[0]):
        heat_of_momenta(cold_heat, cold_temperature, thermostats, d, cold)
        heat_of_momenta(hot_heat, hot_temperature, thermostats, d, hot)
        exchange_momenta(
            momentum[d, cold], momentum[d, hot], gradient[d, cold], gradient[d, hot], step_size[cold], step_size[hot],
            cold_heat, hot_heat, swapped,
        )  # fmt: skip
    for d in range(position.shape[0]):
        exchange(gradient[d, cold], gradient[d, hot], swapped)
    exchange(state.walker[cold], state.walker[hot], swapped)
    exchange(state.last_end[cold], state.last_end[hot], swapped)
    if counts:
        accepted = state.accepted[pair]
        for c in range(n_chains):
            accepted[c] += np.int64(swapped[c])


@kernel
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


@kernel
def heat_of_momenta(heat, temperature, thermostats, d, lanes):
    """heat (chain,) ← the variance of a rung's momenta in coordinate d: T/(1 − z/2) under a thermostat, T without."""
    if thermostats.shape[0] == 0:
        for c in range(heat.size):
            heat[c] = temperature[c]
    else:
        drag = thermostats[min(d, thermostats.shape[0] - 1), lanes]
        for c in range(heat.size):
            share = 1.0 - 0.5 * drag[c]
            heat[c] = temperature[c] / select(share > 0.1, share, 0.1)


@kernel
def exchange_momenta(
    cold_momentum, hot_momentum, cold_gradient, hot_gradient, cold_size, hot_size, cold_heat, hot_heat, swapped
):
    """Exchange momenta where ``swapped`` is not 0, fitted to their heat, with gradients still in their old places.

    A momentum is that of half a step before its position. It is brought to the position's time by half a kick, scaled
    there, and taken back by half a kick of its new rung; or it would keep a covariance with the position that belongs
    to the other temperature.
    """
    for c in range(cold_momentum.size):
        cold_half, hot_half = 0.5 * math.sqrt(cold_size[c]), 0.5 * math.sqrt(hot_size[c])
        heat = math.sqrt(hot_heat[c] / cold_heat[c])
        upward = fma(-cold_half, cold_gradient[c], cold_momentum[c]) * heat
        downward = fma(-hot_half, hot_gradient[c], hot_momentum[c]) / heat
        upward = fma(hot_half, cold_gradient[c], upward)
        downward = fma(cold_half, hot_gradient[c], downward)
        cold_momentum[c] = select(swapped[c] != 0.0, downward, cold_momentum[c])
        hot_momentum[c] = select(swapped[c] != 0.0, upward, hot_momentum[c])


@kernel
def exchange(first, second, swapped):
    """Exchange ``first`` and ``second``, each (chain,), floats or integers, where ``swapped`` is not 0."""
    for c in range(first.size):
        a, b = first[c], second[c]
        first[c] = select(swapped[c] != 0.0, b, a)
        second[c] = select(swapped[c] != 0.0, a, b)
