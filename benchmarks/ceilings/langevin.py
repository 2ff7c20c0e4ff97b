"""Langevin dynamics by hand: SGLD, of many chains and of one."""

import functools
import math

import numpy as np
from numba import uint64

from toolkit.maths.elementary import fma
from toolkit.maths.philox import MOVE, box_muller, uniform_pair
from toolkit.schedules import cosine_cycles

from .fused_points import POINTS, SEED, WIDTH, Array, H, Kernel, Run, fill_noise, fused, in_blocks, schedule_of

NOISE = 2 * WIDTH
AHEAD = 64  # steps of one chain whose noise is drawn together


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


def sgld_runs() -> dict[str, Run]:
    """SGLD on each target."""
    many = in_blocks(sgld_kernel, 4)
    return {name: either(one_chain_sgld_kernel(POINTS[name]), many[name]) for name in POINTS}


def cyclical_sgld_runs() -> dict[str, Run]:
    """Cyclical SGLD on each target."""
    return in_blocks(functools.partial(sgld_kernel, cycles=True), 4, schedule_of(cosine_cycles(30, exploration=0.25)))


def either(one: Kernel, many: Run) -> Run:
    """``one`` for a single chain, and ``many`` for more."""

    def run(n_chains: int, n_steps: int) -> Array:
        if n_chains > 1:
            return many(n_chains, n_steps)
        last = np.empty((1, 2))
        one(last[0], np.empty(2 * AHEAD), n_steps)
        return last

    return run
