"""The adaptive Dormand–Prince pair 5(4) for lanes of one system, each with its own time and step.

A block of lanes steps together, stage by stage, in loops that vectorise; the slot of a finished lane is filled with the
next lane. What happens in one lane depends on no other, bit for bit.
Source: Dormand & Prince (1980); step control and dense output as in Hairer, Nørsett & Wanner (1993), II.4–6.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from toolkit._compiler import COUNTS, CUBE, FLOATS, INTEGERS, MATRIX, inlined
from toolkit.maths.elementary import exp, fma, log

from ..arrays import Array, Integers
from .right_hand_side import SLOPE

# Coefficients of the pair and of its continuous extension of order 4. Source: Dormand & Prince (1980), J. Comput. Appl.
# Math. 6, 19; dense output: Hairer, Nørsett & Wanner (1993), II.6.

STAGES = 7
NODES = np.array([0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0])
STAGE = np.array(
    [
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        [1 / 5, 0.0, 0.0, 0.0, 0.0, 0.0],
        [3 / 40, 9 / 40, 0.0, 0.0, 0.0, 0.0],
        [44 / 45, -56 / 15, 32 / 9, 0.0, 0.0, 0.0],
        [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0.0, 0.0],
        [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0.0],
        [35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
    ]
)
ERROR = np.array([71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40])
DENSE = np.array(
    [
        -12715105075 / 11282082432,
        0.0,
        87487479700 / 32700410799,
        -10690763975 / 1880347072,
        701980252875 / 199316789632,
        -1453857185 / 822651844,
        69997945 / 29380423,
    ]
)


DONE, BLEW_UP, STEP_LIMIT, STEP_TOO_SMALL = range(4)
SAFETY, SMALLEST_FACTOR, LARGEST_FACTOR = 0.9, 0.1, 5.0
PI_EXPONENT = 0.04  # exponent of the last error in the PI step control
MIN_ERROR = 1e-4

# Rows of (lane) in ``Block.clock``, and in ``Block.counters``, of integers.
TIME, STEP, OLD_ERROR, STAGE_TIME, SCRATCH, N_CLOCK = range(6)
LANE, NEXT, STEPS, REJECTED, N_COUNTERS = range(5)


class InitialValues(NamedTuple):
    """What every lane is solved from: the times (n,) of all lanes, and each lane's start and parameters."""

    times: Array
    start: NDArray[Any]  # (lane, dim)
    parameters: NDArray[Any]  # (lane, n_parameters)


class Controls(NamedTuple):
    """Tolerances of the step control, and what ends a lane: a state beyond the limit, or too many steps."""

    rtol: float
    atol: float
    limit: float
    max_steps: int


class Results(NamedTuple):
    """What is written of every lane: states where they are reached, status, index of the time reached, and steps."""

    states: NDArray[Any]  # (lane, n, dim)
    status: Integers  # (lane,)
    reached: Integers  # (lane,)
    steps: Integers  # (lane,)


class Block(NamedTuple):
    """The lanes that step together, each in a slot."""

    x: Array  # (dim, slot), states at the start of the step
    p: Array  # (n_parameters, slot)
    k: Array  # (stage, dim, slot), slopes
    trial: Array  # (dim, slot), states of a stage, at last at the end of the step
    error: Array  # (dim, slot), error per unit of time; before, room for a stage's weighted slopes
    dense: Array  # (dim, slot), slope that the dense output adds
    clock: Array  # (N_CLOCK, slot)
    counters: Integers  # (N_COUNTERS, slot)


class OneLane(NamedTuple):
    """Arguments of the slope for a single lane, at which its first step is chosen."""

    time: Array  # (1,)
    x: Array  # (dim, 1)
    p: Array  # (n_parameters, 1)


INITIAL_VALUES = types.BaseTuple.from_types((FLOATS, MATRIX, MATRIX), InitialValues)
CONTROLS = types.BaseTuple.from_types((types.float64, types.float64, types.float64, types.int64), Controls)
RESULTS = types.BaseTuple.from_types((CUBE, INTEGERS, INTEGERS, INTEGERS), Results)
BLOCK = types.BaseTuple.from_types((MATRIX, MATRIX, CUBE, MATRIX, MATRIX, MATRIX, MATRIX, COUNTS), Block)
ONE_LANE = types.BaseTuple.from_types((FLOATS, MATRIX, MATRIX), OneLane)
ADAPTIVE = types.void(types.FunctionType(SLOPE), INITIAL_VALUES, CONTROLS, RESULTS, BLOCK, ONE_LANE)


@inlined
def weighted_slopes(k, weights, n_stages, d, lanes, result):
    """Σ_j weights[j] k[j, d] of every lane."""
    for lane in range(lanes):
        result[d, lane] = weights[0] * k[0, d, lane]
    for j in range(1, n_stages):
        weight = weights[j]
        if weight != 0.0:
            for lane in range(lanes):
                result[d, lane] = fma(weight, k[j, d, lane], result[d, lane])


@inlined
def norm(error, size, other, controls):
    """One state's error over its tolerance, squared."""
    ratio = error / (controls.atol + controls.rtol * max(abs(size), abs(other)))
    return ratio * ratio


@inlined
def first_step(slope, span, controls, block, slot, one):
    """Put the slope at the start into k[0], and a first step after Hairer, Nørsett & Wanner (1993), II.4."""
    x, k, clock = block.x, block.k, block.clock
    dim = x.shape[0]
    for j in range(block.p.shape[0]):
        one.p[j, 0] = block.p[j, slot]
    for d in range(dim):
        one.x[d, 0] = x[d, slot]
    one.time[0] = clock[TIME, slot]
    slope(one.time, one.x, one.p, k[1], clock[SCRATCH])
    size, speed = 0.0, 0.0
    for d in range(dim):
        k[0, d, slot] = k[1, d, 0]
        size += norm(one.x[d, 0], one.x[d, 0], one.x[d, 0], controls)
        speed += norm(k[1, d, 0], one.x[d, 0], one.x[d, 0], controls)
    size, speed = math.sqrt(size / dim), math.sqrt(speed / dim)
    euler_step = 0.01 * size / speed if size >= 1e-5 and speed >= 1e-5 else 1e-6
    euler_step = min(euler_step, span)
    for d in range(dim):
        one.x[d, 0] = fma(euler_step, k[0, d, slot], one.x[d, 0])
    one.time[0] += euler_step
    slope(one.time, one.x, one.p, k[1], clock[SCRATCH])
    change = 0.0
    for d in range(dim):
        change += norm(k[1, d, 0] - k[0, d, slot], x[d, slot], x[d, slot], controls)
    largest = max(speed, math.sqrt(change / dim) / euler_step)
    step = exp(0.2 * log(0.01 / largest)) if largest > 1e-15 else max(1e-6, 1e-3 * euler_step)
    step = min(100.0 * euler_step, step)
    clock[STEP, slot] = min(step, span) if step > 0.0 else 1e-6 * span  # nan and inf fail the comparison, or are cut


@inlined
def write_states(times, block, slot, step, limit, states):
    """Write the states at all requested times up to the end of the step; False at the first beyond the limit."""
    x, trial, k, dense, counters = block.x, block.trial, block.k, block.dense, block.counters
    dim = x.shape[0]
    lane, i = counters[LANE, slot], counters[NEXT, slot]
    start = block.clock[TIME, slot]
    last = step >= times[-1] - start
    while i < times.size and (last or times[i] <= start + step):
        s = min((times[i] - start) / step, 1.0)
        for d in range(dim):
            rise = trial[d, slot] - x[d, slot]
            left = step * k[0, d, slot] - rise
            right = rise - step * k[6, d, slot] - left
            curve = fma(1.0 - s, step * dense[d, slot], right)
            value = fma(s, fma(1.0 - s, fma(s, curve, left), rise), x[d, slot])
            if not abs(value) <= limit:
                for e in range(d):
                    states[lane, i, e] = math.nan
                return False
            states[lane, i, d] = value
        i += 1
        counters[NEXT, slot] = i
    return True


@inlined
def control_step(times, controls, block, slot, states):
    """Accept or reject a lane's step and choose the next; the lane's status, or −1 while it is active."""
    x, trial, k, error, clock, counters = block.x, block.trial, block.k, block.error, block.clock, block.counters
    dim = x.shape[0]
    step = clock[STEP, slot]
    total = 0.0
    for d in range(dim):
        total += norm(step * error[d, slot], x[d, slot], trial[d, slot], controls)
    size = math.sqrt(total / dim)
    counters[STEPS, slot] += 1
    if size <= 1.0:
        if not write_states(times, block, slot, step, controls.limit, states):
            return BLEW_UP
        if counters[NEXT, slot] == times.size:
            return DONE
        for d in range(dim):
            if not abs(trial[d, slot]) <= controls.limit:
                return BLEW_UP
            x[d, slot] = trial[d, slot]
            k[0, d, slot] = k[6, d, slot]
        clock[TIME, slot] += step
        growth = exp(PI_EXPONENT * log(clock[OLD_ERROR, slot]) - (0.2 - 0.75 * PI_EXPONENT) * log(max(size, 1e-12)))
        growth = min(max(SAFETY * growth, SMALLEST_FACTOR), LARGEST_FACTOR)
        if counters[REJECTED, slot] == 1:
            growth = min(growth, 1.0)
        clock[OLD_ERROR, slot] = max(size, MIN_ERROR)
        counters[REJECTED, slot] = 0
    else:
        growth = SMALLEST_FACTOR
        if size < math.inf:
            growth = max(growth, SAFETY * exp(-0.2 * log(size)))
        counters[REJECTED, slot] = 1
        now = clock[TIME, slot]
        if step * growth < max(4e-15 * abs(now), 1e-25 * (times[-1] - times[0])):
            return STEP_TOO_SMALL if size < math.inf else BLEW_UP
    if counters[STEPS, slot] >= controls.max_steps:
        return STEP_LIMIT
    step *= growth
    remaining = times[-1] - clock[TIME, slot]
    clock[STEP, slot] = remaining if 1.01 * step >= remaining else step
    return -1


@inlined
def start_lane(slope, initial, controls, lane, states, block, slot, one):
    """Start a lane in a slot; its status where it ends at once, else −1."""
    times, start, clock, counters = initial.times, initial.start, block.clock, block.counters
    dim = block.x.shape[0]
    counters[LANE, slot], counters[NEXT, slot], counters[STEPS, slot], counters[REJECTED, slot] = lane, 1, 0, 0
    clock[TIME, slot], clock[OLD_ERROR, slot] = times[0], MIN_ERROR
    is_beyond = False
    for d in range(dim):
        block.x[d, slot] = start[lane, d]
        states[lane, 0, d] = start[lane, d]
        is_beyond = is_beyond or not abs(start[lane, d]) <= controls.limit
    for j in range(block.p.shape[0]):
        block.p[j, slot] = initial.parameters[lane, j]
    if times.size == 1:
        return DONE
    if is_beyond:
        return BLEW_UP
    first_step(slope, times[-1] - times[0], controls, block, slot, one)
    for d in range(dim):
        if not abs(block.k[0, d, slot]) < math.inf:
            return BLEW_UP
    return -1


def solve_lanes(slope, initial, controls, results, block, one):
    """Solve all lanes of ``initial`` by steps of ``block``; states (lane, n, dim) of the results nan where not reached.

    slope: function pointer of type ``right_hand_side.SLOPE``. one: scratch.
    """
    x, p, k, trial, error, dense = block.x, block.p, block.k, block.trial, block.error, block.dense
    clock, counters = block.clock, block.counters
    n_lanes, dim = initial.start.shape
    active, next_lane = 0, 0
    while True:
        while active < clock.shape[1] and next_lane < n_lanes:
            outcome = start_lane(slope, initial, controls, next_lane, results.states, block, active, one)
            if outcome >= 0:
                results.status[next_lane], results.reached[next_lane], results.steps[next_lane] = outcome, 0, 0
            else:
                active += 1
            next_lane += 1
        if active == 0:
            return
        now, step, stage_time = clock[TIME], clock[STEP], clock[STAGE_TIME]
        for j in range(1, STAGES):
            for lane in range(active):
                stage_time[lane] = fma(NODES[j], step[lane], now[lane])
            for d in range(dim):
                weighted_slopes(k, STAGE[j], j, d, active, error)
                for lane in range(active):
                    trial[d, lane] = fma(step[lane], error[d, lane], x[d, lane])
            slope(stage_time[:active], trial, p, k[j], clock[SCRATCH])
        for d in range(dim):
            weighted_slopes(k, ERROR, STAGES, d, active, error)
            weighted_slopes(k, DENSE, STAGES, d, active, dense)
        slot = 0
        while slot < active:
            outcome = control_step(initial.times, controls, block, slot, results.states)
            if outcome < 0:
                slot += 1
                continue
            lane = counters[LANE, slot]
            results.status[lane], results.steps[lane] = outcome, counters[STEPS, slot]
            results.reached[lane] = counters[NEXT, slot] - 1
            active -= 1  # the last active lane moves to this slot, and is controlled there
            for d in range(dim):
                x[d, slot], k[0, d, slot] = x[d, active], k[0, d, active]
                k[6, d, slot], trial[d, slot] = k[6, d, active], trial[d, active]
                error[d, slot], dense[d, slot] = error[d, active], dense[d, active]
            for j in range(p.shape[0]):
                p[j, slot] = p[j, active]
            for row in range(N_CLOCK):
                clock[row, slot] = clock[row, active]
            for row in range(N_COUNTERS):
                counters[row, slot] = counters[row, active]
