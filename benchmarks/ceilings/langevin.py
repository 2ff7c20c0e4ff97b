"""Overdamped Langevin dynamics by hand: SGLD of many chains and of one, in cycles, and pSGLD."""

import functools
import math

import numpy as np
from numba import uint64

from benchmarks.runner.rounds import processor_seconds
from toolkit._compiler.decorators import inlined
from toolkit._engine.phases import PROBE_LENGTH
from toolkit.maths.elementary import fma, select
from toolkit.maths.philox import MOVE, PROBE, box_muller, uniform_pair
from toolkit.schedules import cosine_cycles

from .blocks import POINTS, SEED, WIDTH, Array, H, Kernel, Run, fill_noise, fused, in_blocks, schedule_of

NOISE, SQUARE, SCALE, TANGENT = 2 * WIDTH, 4 * WIDTH, 6 * WIDTH, 8 * WIDTH
AHEAD = 64  # steps of one chain whose noise is drawn together
DECAY, FLOOR, LENGTH = 0.99, 1.0, PROBE_LENGTH * H  # of pSGLD


def sgld_kernel(target, cycles: bool = False) -> Kernel:
    """SGLD of many chains, a loop for the noise and one for the rest; ``cycles``: by the step sizes in ``numbers``."""

    @fused
    def run(room, lanes, first, n_steps, numbers):
        h, kick = H, math.sqrt(2.0 * H)
        for step in range(n_steps):
            if cycles:
                h = numbers[0, step]
                kick = math.sqrt(2.0 * h * numbers[1, step])
            fill_noise(room, NOISE, lanes, first, 0, step, MOVE)
            for lane in range(lanes):
                x, y = room[lane], room[WIDTH + lane]
                _, slope_x, slope_y = target(x, y)
                room[lane] = fma(-h, slope_x, fma(kick, room[NOISE + lane], x))
                room[WIDTH + lane] = fma(-h, slope_y, fma(kick, room[NOISE + WIDTH + lane], y))

    return run


def one_chain_sgld_kernel(target) -> Kernel:
    """SGLD of chain 0: the noise of many steps in one loop, whose lanes are the steps."""
    kick = math.sqrt(2.0 * H)

    @fused
    def run(last, noise, n_steps):
        x, y = 0.0, 0.0
        for start in range(0, n_steps, AHEAD):
            for i in range(AHEAD):
                noise[i], noise[AHEAD + i] = uniform_pair(
                    SEED, uint64(0), uint64(0), uint64(start) + uint64(i), uint64(MOVE), uint64(0)
                )
            for i in range(AHEAD):
                noise[i], noise[AHEAD + i] = box_muller(noise[i], noise[AHEAD + i])
            for i in range(min(AHEAD, n_steps - start)):
                _, slope_x, slope_y = target(x, y)
                x = fma(-H, slope_x, fma(kick, noise[i], x))
                y = fma(-H, slope_y, fma(kick, noise[AHEAD + i], y))
        last[0], last[1] = x, y

    return run


def drift_seconds(name: str, n_steps: int) -> float:
    """Processor time of ``n_steps`` of one chain that draw nothing: each waits for the gradient of the one before.

    No sampler that evaluates the target once a step, with this arithmetic, is faster.
    """
    run = drift_kernel(POINTS[name])
    run(1)
    return processor_seconds(lambda: run(n_steps))


@functools.cache
def drift_kernel(target) -> Kernel:
    """Steps down the gradient, with a push that keeps them from a minimum at 0, where numbers would be subnormal."""

    @fused
    def run(n_steps):
        x, y = 0.3, 0.4
        for _ in range(n_steps):
            _, slope_x, slope_y = target(x, y)
            x, y = fma(-H, slope_x, x + 0.01), fma(-H, slope_y, y + 0.01)
        return x + y

    return run


@inlined
def learn_scale(slope, square):
    """V and G after this gradient."""
    squared = slope * slope
    square = select(square > 0.0, fma(DECAY, square, (1.0 - DECAY) * squared), squared)
    return square, 1.0 / (FLOOR + math.sqrt(square))


@inlined
def moved(x, slope, noise, scale):
    """The position after the move, without correction."""
    return x + fma(-H * scale, slope, math.sqrt(2.0 * H * scale) * noise)


@inlined
def corrected_move(x, slope, bend, noise, square, scale, tangent):
    """Position, V, G and the tangent after a move with its correction."""
    left = 1.0 - H * scale * bend
    tangent *= DECAY * select(left > 0.0, select(left < 2.0, left, 2.0), 0.0)
    square, scale = learn_scale(slope, select(square > 0.0, square, abs(bend)))
    x = moved(x, slope, noise, scale)
    limit = 1.0 / (H * scale + 1e-300)
    bend = select(bend > limit, limit, select(bend < -limit, -limit, bend))
    tangent = fma(2.0 * (1.0 - DECAY) * slope * bend, scale, tangent)
    gamma = -0.5 * tangent * scale / math.sqrt(square)
    return x + select(square > 1e-300, H * gamma, 0.0), square, scale, tangent


def psgld_kernel(target, corrects: bool) -> Kernel:
    """pSGLD; a probe's signs are those of the cosine and sine of its angle, of which nothing else is needed."""

    @fused
    def run(room, lanes, first, n_steps, numbers):
        for step in range(n_steps):
            fill_noise(room, NOISE, lanes, first, 0, step, MOVE)
            if corrects:
                for lane in range(lanes):
                    x, y = room[lane], room[WIDTH + lane]
                    turns = uniform_pair(SEED, first + uint64(lane), uint64(0), uint64(step), uint64(PROBE), uint64(0))[
                        1
                    ]
                    probe_x = x + select((turns < 0.25) | (turns > 0.75), LENGTH, -LENGTH)
                    probe_y = y + select(turns < 0.5, LENGTH, -LENGTH)
                    _, slope_x, slope_y = target(x, y)
                    _, there_x, there_y = target(probe_x, probe_y)
                    room[lane], room[SQUARE + lane], room[SCALE + lane], room[TANGENT + lane] = corrected_move(
                        x, slope_x, (there_x - slope_x) / (probe_x - x), room[NOISE + lane], room[SQUARE + lane],
                        room[SCALE + lane], room[TANGENT + lane],
                    )  # fmt: skip
                    other = WIDTH + lane
                    room[other], room[SQUARE + other], room[SCALE + other], room[TANGENT + other] = corrected_move(
                        y, slope_y, (there_y - slope_y) / (probe_y - y), room[NOISE + other], room[SQUARE + other],
                        room[SCALE + other], room[TANGENT + other],
                    )  # fmt: skip
            else:
                for lane in range(lanes):
                    x, y, other = room[lane], room[WIDTH + lane], WIDTH + lane
                    _, slope_x, slope_y = target(x, y)
                    room[SQUARE + lane], scale = learn_scale(slope_x, room[SQUARE + lane])
                    room[lane] = moved(x, slope_x, room[NOISE + lane], scale)
                    room[SQUARE + other], scale = learn_scale(slope_y, room[SQUARE + other])
                    room[other] = moved(y, slope_y, room[NOISE + other], scale)

    return run


def either(one: Kernel, many: Run) -> Run:
    """``one`` for a single chain, and ``many`` for more."""

    def run(n_chains: int, n_steps: int) -> Array:
        if n_chains > 1:
            return many(n_chains, n_steps)
        last = np.empty((1, 2))
        one(last[0], np.empty(2 * AHEAD), n_steps)
        return last

    return run


def langevin_runs() -> dict[str, dict[str, Run]]:
    """The samplers of this module, by name, on each target."""
    many, cycles = in_blocks(sgld_kernel, 4), schedule_of(cosine_cycles(30, exploration=0.25))
    return {
        "sgld": {name: either(one_chain_sgld_kernel(POINTS[name]), many[name]) for name in POINTS},
        "cyclical_sgld": in_blocks(functools.partial(sgld_kernel, cycles=True), 4, cycles),
        "psgld": in_blocks(functools.partial(psgld_kernel, corrects=True), 10),
        "psgld, no Γ": in_blocks(functools.partial(psgld_kernel, corrects=False), 6),
    }
