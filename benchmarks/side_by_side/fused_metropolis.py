"""MALA and HMC by hand; what was evaluated where a trajectory ends serves the next one, so a step needs one less."""

import functools
import math

from numba import uint64

from toolkit.maths.elementary import exp, fma, select
from toolkit.maths.philox import ACCEPT, MOVE, uniform_pair

from .fused_points import SEED, WIDTH, H, Kernel, Run, fill_noise, fused, in_blocks

MOMENTUM, SLOPE, ENERGY = 2 * WIDTH, 4 * WIDTH, 6 * WIDTH
NEW, NEW_SLOPE, NEW_ENERGY, START = 7 * WIDTH, 9 * WIDTH, 11 * WIDTH, 12 * WIDTH


def leapfrog_kernel(target, leapfrogs: int, length: float) -> Kernel:
    """Trajectories of ``leapfrogs`` steps of ``length``, and their Metropolis test."""

    @fused
    def run(room, lanes, first, n_steps, numbers):
        for lane in range(lanes):
            room[ENERGY + lane], room[SLOPE + lane], room[SLOPE + WIDTH + lane] = target(room[lane], room[WIDTH + lane])
        for step in range(n_steps):
            fill_noise(room, MOMENTUM, lanes, first, 0, step, MOVE)
            for lane in range(lanes):
                other = WIDTH + lane
                p, q = room[MOMENTUM + lane], room[MOMENTUM + other]
                room[START + lane] = fma(0.5 * q, q, fma(0.5 * p, p, room[ENERGY + lane]))
                room[NEW + lane], room[NEW + other] = room[lane], room[other]
                room[MOMENTUM + lane] = fma(-0.5 * length, room[SLOPE + lane], p)
                room[MOMENTUM + other] = fma(-0.5 * length, room[SLOPE + other], q)
            for leapfrog in range(leapfrogs):
                share = -0.5 * length if leapfrog == leapfrogs - 1 else -length
                for lane in range(lanes):
                    other = WIDTH + lane
                    p, q = room[MOMENTUM + lane], room[MOMENTUM + other]
                    x, y = fma(length, p, room[NEW + lane]), fma(length, q, room[NEW + other])
                    room[NEW + lane], room[NEW + other] = x, y
                    energy, slope_x, slope_y = target(x, y)
                    room[NEW_ENERGY + lane] = energy
                    room[NEW_SLOPE + lane], room[NEW_SLOPE + other] = slope_x, slope_y
                    room[MOMENTUM + lane], room[MOMENTUM + other] = fma(share, slope_x, p), fma(share, slope_y, q)
            for lane in range(lanes):
                other, chain = WIDTH + lane, first + uint64(lane)
                p, q = room[MOMENTUM + lane], room[MOMENTUM + other]
                end = fma(0.5 * q, q, fma(0.5 * p, p, room[NEW_ENERGY + lane]))
                u = uniform_pair(SEED, chain, uint64(0), uint64(step), uint64(ACCEPT), uint64(0))[0]
                keeps = exp(room[START + lane] - end) > u
                room[lane] = select(keeps, room[NEW + lane], room[lane])
                room[other] = select(keeps, room[NEW + other], room[other])
                room[ENERGY + lane] = select(keeps, room[NEW_ENERGY + lane], room[ENERGY + lane])
                room[SLOPE + lane] = select(keeps, room[NEW_SLOPE + lane], room[SLOPE + lane])
                room[SLOPE + other] = select(keeps, room[NEW_SLOPE + other], room[SLOPE + other])

    return run


def metropolis_runs() -> dict[str, dict[str, Run]]:
    """The samplers of this module, by name, on each target."""
    return {
        "mala": in_blocks(functools.partial(leapfrog_kernel, leapfrogs=1, length=math.sqrt(2.0 * H)), 13),
        "hmc, 10 leapfrogs": in_blocks(functools.partial(leapfrog_kernel, leapfrogs=10, length=0.03), 13),
    }
