"""The adaptive Dormand–Prince pair 5(4) for lanes of one system, each with its own time and step.

A block of lanes takes its steps together, stage by stage, in loops that vectorise; a lane that is done makes room for
the next. What happens in one lane depends on no other, bit for bit.
Source: Dormand & Prince (1980); step control and dense output as in Hairer, Nørsett & Wanner (1993), II.4–6.
"""

import math

from toolkit.compiling import inlined
from toolkit.maths import exp, fma, log

from .dormand_prince import DENSE, ERROR, NODES, STAGE, STAGES

DONE, BLEW_UP, STEP_LIMIT, STEP_TOO_SMALL = range(4)
SAFETY, SMALLEST_FACTOR, LARGEST_FACTOR = 0.9, 0.1, 5.0
MEMORY = 0.04  # of the last error, in the exponent of the new step
LEAST_ERROR = 1e-4

# Rows of (lane) in ``clock``, and of whole numbers in ``tally``.
TIME, STEP, OLD_ERROR, STAGE_TIME, SPARE, N_CLOCK = range(6)
LANE, NEXT, STEPS, REJECTED, N_TALLY = range(5)


@inlined
def weighted(k, weights, n_stages, d, lanes, out):
    """Σ_j weights[j] k[j, d] of every lane."""
    for lane in range(lanes):
        out[d, lane] = weights[0] * k[0, d, lane]
    for j in range(1, n_stages):
        weight = weights[j]
        if weight != 0.0:
            for lane in range(lanes):
                out[d, lane] = fma(weight, k[j, d, lane], out[d, lane])


@inlined
def norm(error, size, other, rtol, atol):
    """One state's error over its tolerance, squared."""
    share = error / (atol + rtol * max(abs(size), abs(other)))
    return share * share


@inlined
def first_step(slope, span, rtol, atol, slot, x, p, k, clock, one, one_x, one_p):
    """Put the slope at the start into k[0], and a first step after Hairer, Nørsett & Wanner (1993), II.4."""
    dim = x.shape[0]
    for j in range(p.shape[0]):
        one_p[j, 0] = p[j, slot]
    for d in range(dim):
        one_x[d, 0] = x[d, slot]
    one[0] = clock[TIME, slot]
    slope(one, one_x, one_p, k[1], clock[SPARE])
    size, speed = 0.0, 0.0
    for d in range(dim):
        k[0, d, slot] = k[1, d, 0]
        size += norm(one_x[d, 0], one_x[d, 0], one_x[d, 0], rtol, atol)
        speed += norm(k[1, d, 0], one_x[d, 0], one_x[d, 0], rtol, atol)
    size, speed = math.sqrt(size / dim), math.sqrt(speed / dim)
    trial = 0.01 * size / speed if size >= 1e-5 and speed >= 1e-5 else 1e-6
    trial = min(trial, span)
    for d in range(dim):
        one_x[d, 0] = fma(trial, k[0, d, slot], one_x[d, 0])
    one[0] += trial
    slope(one, one_x, one_p, k[1], clock[SPARE])
    bend = 0.0
    for d in range(dim):
        bend += norm(k[1, d, 0] - k[0, d, slot], x[d, slot], x[d, slot], rtol, atol)
    largest = max(speed, math.sqrt(bend / dim) / trial)
    step = exp(0.2 * log(0.01 / largest)) if largest > 1e-15 else max(1e-6, 1e-3 * trial)
    step = min(100.0 * trial, step)
    clock[STEP, slot] = min(step, span) if step > 0.0 else 1e-6 * span  # nan and inf fail the comparison, or are cut


@inlined
def put_states(times, x, trial, k, dense, clock, tally, slot, step, limit, states):
    """Write the states at all requested times up to the end of the step; False at the first beyond the limit."""
    dim = x.shape[0]
    lane, i = tally[LANE, slot], tally[NEXT, slot]
    start = clock[TIME, slot]
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
        tally[NEXT, slot] = i
    return True


@inlined
def judge(times, x, trial, k, error, dense, clock, tally, slot, rtol, atol, max_steps, limit, states):
    """Accept or reject a lane's step and choose the next; the lane's status, or −1 where it goes on."""
    dim = x.shape[0]
    step = clock[STEP, slot]
    total = 0.0
    for d in range(dim):
        total += norm(step * error[d, slot], x[d, slot], trial[d, slot], rtol, atol)
    size = math.sqrt(total / dim)
    tally[STEPS, slot] += 1
    if size <= 1.0:
        if not put_states(times, x, trial, k, dense, clock, tally, slot, step, limit, states):
            return BLEW_UP
        if tally[NEXT, slot] == times.size:
            return DONE
        for d in range(dim):
            if not abs(trial[d, slot]) <= limit:
                return BLEW_UP
            x[d, slot] = trial[d, slot]
            k[0, d, slot] = k[6, d, slot]
        clock[TIME, slot] += step
        growth = exp(MEMORY * log(clock[OLD_ERROR, slot]) - (0.2 - 0.75 * MEMORY) * log(max(size, 1e-12)))
        growth = min(max(SAFETY * growth, SMALLEST_FACTOR), LARGEST_FACTOR)
        if tally[REJECTED, slot] == 1:
            growth = min(growth, 1.0)
        clock[OLD_ERROR, slot] = max(size, LEAST_ERROR)
        tally[REJECTED, slot] = 0
    else:
        growth = SMALLEST_FACTOR
        if size < math.inf:
            growth = max(growth, SAFETY * exp(-0.2 * log(size)))
        tally[REJECTED, slot] = 1
        now = clock[TIME, slot]
        if step * growth < max(4e-15 * abs(now), 1e-25 * (times[-1] - times[0])):
            return STEP_TOO_SMALL if size < math.inf else BLEW_UP
    if tally[STEPS, slot] >= max_steps:
        return STEP_LIMIT
    step *= growth
    left = times[-1] - clock[TIME, slot]
    clock[STEP, slot] = left if 1.01 * step >= left else step
    return -1


@inlined
def fill(
    slope, times, start, parameters, lane, slot, rtol, atol, limit, states, x, p, k, clock, tally, one, one_x, one_p
):
    """Put a lane's start into a slot; its status where that is the end already, else −1."""
    dim = x.shape[0]
    tally[LANE, slot], tally[NEXT, slot], tally[STEPS, slot], tally[REJECTED, slot] = lane, 1, 0, 0
    clock[TIME, slot], clock[OLD_ERROR, slot] = times[0], LEAST_ERROR
    beyond = False
    for d in range(dim):
        x[d, slot] = start[lane, d]
        states[lane, 0, d] = start[lane, d]
        beyond = beyond or not abs(start[lane, d]) <= limit
    for j in range(p.shape[0]):
        p[j, slot] = parameters[lane, j]
    if times.size == 1:
        return DONE
    if beyond:
        return BLEW_UP
    first_step(slope, times[-1] - times[0], rtol, atol, slot, x, p, k, clock, one, one_x, one_p)
    for d in range(dim):
        if not abs(k[0, d, slot]) < math.inf:
            return BLEW_UP
    return -1


def solve_lanes(
    slope, times, start, parameters, controls, max_steps, states, status, reached, steps, work, matrices, clock, tally,
    one, one_x, one_p,
):  # fmt: skip
    """Solve all lanes: states (lane, n, dim), nan where not reached; status, index of the time reached, and steps.

    start: (lane, dim). parameters: (lane, n_parameters). controls: rtol, atol, limit. work: (7 + 4, dim, block).
    matrices: parameters of the block. clock, tally: by block. one, one_x, one_p: a single lane's.
    """
    rtol, atol, limit = controls[0], controls[1], controls[2]
    n_lanes, dim = start.shape
    k, x, trial, error, dense = work[:STAGES], work[STAGES], work[STAGES + 1], work[STAGES + 2], work[STAGES + 3]
    active, waiting = 0, 0
    while True:
        while active < clock.shape[1] and waiting < n_lanes:
            verdict = fill(
                slope, times, start, parameters, waiting, active, rtol, atol, limit, states, x, matrices, k, clock,
                tally, one, one_x, one_p,
            )  # fmt: skip
            if verdict >= 0:
                status[waiting], reached[waiting], steps[waiting] = verdict, 0, 0
            else:
                active += 1
            waiting += 1
        if active == 0:
            return
        now, step, stage_time = clock[TIME], clock[STEP], clock[STAGE_TIME]
        for j in range(1, STAGES):
            for lane in range(active):
                stage_time[lane] = fma(NODES[j], step[lane], now[lane])
            for d in range(dim):
                weighted(k, STAGE[j], j, d, active, error)
                for lane in range(active):
                    trial[d, lane] = fma(step[lane], error[d, lane], x[d, lane])
            slope(stage_time[:active], trial, matrices, k[j], clock[SPARE])
        for d in range(dim):
            weighted(k, ERROR, STAGES, d, active, error)
            weighted(k, DENSE, STAGES, d, active, dense)
        slot = 0
        while slot < active:
            verdict = judge(
                times, x, trial, k, error, dense, clock, tally, slot, rtol, atol, max_steps, limit, states
            )  # fmt: skip
            if verdict < 0:
                slot += 1
                continue
            lane = tally[LANE, slot]
            status[lane], reached[lane], steps[lane] = verdict, tally[NEXT, slot] - 1, tally[STEPS, slot]
            active -= 1  # the last lane takes the place, and is judged there
            for d in range(dim):
                x[d, slot], k[0, d, slot] = x[d, active], k[0, d, active]
                k[6, d, slot], trial[d, slot] = k[6, d, active], trial[d, active]
                error[d, slot], dense[d, slot] = error[d, active], dense[d, active]
            for j in range(matrices.shape[0]):
                matrices[j, slot] = matrices[j, active]
            for row in range(N_CLOCK):
                clock[row, slot] = clock[row, active]
            for row in range(N_TALLY):
                tally[row, slot] = tally[row, active]
