"""Replica exchange of underdamped Langevin dynamics by hand, on two rungs: chain c of rung r is lane r · GAP + c."""

import math

from numba import uint64

from toolkit.maths.elementary import exp, fma, select
from toolkit.maths.philox import MOVE, START, SWAP, uniform_pair

from .fused_exchange import exchanged
from .fused_points import SEED, WIDTH, Kernel, Run, fill_noise, fused, in_blocks

MOMENTUM, SLOPE, NOISE, ENERGY = 2 * WIDTH, 4 * WIDTH, 6 * WIDTH, 8 * WIDTH
GAP, FRICTION, SIZES, TEMPERATURES = WIDTH // 2, 0.1, (5e-4, 1.5e-3), (1.0, 10.0)
COLD, HOT = 0.5 * math.sqrt(SIZES[0]), 0.5 * math.sqrt(SIZES[1])  # half a kick
HEAT, BETA = math.sqrt(TEMPERATURES[1] / TEMPERATURES[0]), 1.0 / TEMPERATURES[0] - 1.0 / TEMPERATURES[1]


def underdamped_exchange_kernel(target) -> Kernel:
    """SGHMC at two temperatures, with a swap before every step but the first."""

    @fused
    def swap(room, lanes, first, step):
        for lane in range(lanes):
            other = GAP + lane
            u = uniform_pair(SEED, first + uint64(lane), uint64(0), uint64(step), uint64(SWAP), uint64(0))[0]
            swaps = exp(BETA * (room[ENERGY + lane] - room[ENERGY + other])) >= u
            room[NOISE + lane] = select(swaps, 1.0, 0.0)
        for d in range(2):
            own = room[d * WIDTH :]
            for lane in range(lanes):
                other, swaps = GAP + lane, room[NOISE + lane] != 0.0
                p, q, f, g = own[MOMENTUM + lane], own[MOMENTUM + other], own[SLOPE + lane], own[SLOPE + other]
                up = fma(HOT, f, fma(-COLD, f, p) * HEAT)
                down = fma(COLD, g, fma(-HOT, g, q) / HEAT)
                own[MOMENTUM + lane], own[MOMENTUM + other] = select(swaps, down, p), select(swaps, up, q)
                exchanged(own, lane, other, swaps)
                exchanged(own, SLOPE + lane, SLOPE + other, swaps)

    @fused
    def run(room, lanes, first, n_steps, numbers):
        for rung in range(2):
            own, root = room[rung * GAP :], math.sqrt(TEMPERATURES[rung])
            fill_noise(own, MOMENTUM, lanes, first, rung, 0, START)
            for lane in range(lanes):
                own[MOMENTUM + lane] *= root
                own[MOMENTUM + WIDTH + lane] *= root
        for step in range(n_steps):
            for rung in range(2):
                own = room[rung * GAP :]
                for lane in range(lanes):
                    other = WIDTH + lane
                    own[ENERGY + lane], own[SLOPE + lane], own[SLOPE + other] = target(own[lane], own[other])
            if step > 0:
                swap(room, lanes, first, step)
            for rung in range(2):
                own = room[rung * GAP :]
                root, kick = math.sqrt(SIZES[rung]), math.sqrt(2.0 * FRICTION * TEMPERATURES[rung])
                fill_noise(own, NOISE, lanes, first, rung, step, MOVE)
                for lane in range(lanes):
                    other = WIDTH + lane
                    p = fma(-root, own[SLOPE + lane], kick * own[NOISE + lane])
                    q = fma(-root, own[SLOPE + other], kick * own[NOISE + other])
                    p = fma(1.0 - FRICTION, own[MOMENTUM + lane], p)
                    q = fma(1.0 - FRICTION, own[MOMENTUM + other], q)
                    own[MOMENTUM + lane], own[MOMENTUM + other] = p, q
                    own[lane], own[other] = fma(root, p, own[lane]), fma(root, q, own[other])

    return run


def underdamped_exchange_runs() -> dict[str, dict[str, Run]]:
    """The sampler of this module, by name, on each target."""
    return {"r2sghmc without a domain": in_blocks(underdamped_exchange_kernel, 9, width=GAP)}
