"""Replica exchange by hand, without momenta and with; the lane of (replica r, chain c) is r · width + c."""

import functools
import math

import numpy as np
from numba import uint64

from toolkit._compiler.decorators import inlined
from toolkit.maths.elementary import exp, fma, select
from toolkit.maths.philox import MOVE, START, SWAP, uniform_pair

from .blocks import SEED, WIDTH, H, Kernel, Run, fill_noise, fused, in_blocks

SLOPE, ENERGY, NOISE, MOMENTUM = 2 * WIDTH, 4 * WIDTH, 5 * WIDTH, 7 * WIDTH
DEO, SEO, ADJACENT, ALL_PAIRS = range(4)

# Of r2SGHMC on two rungs: half a kick of each, and what a swap multiplies momenta by.
GAP, FRICTION, SIZES, TEMPERATURES = WIDTH // 2, 0.1, (5e-4, 1.5e-3), (1.0, 10.0)
COLD, HOT = 0.5 * math.sqrt(SIZES[0]), 0.5 * math.sqrt(SIZES[1])
HEAT, BETA = math.sqrt(TEMPERATURES[1] / TEMPERATURES[0]), 1.0 / TEMPERATURES[0] - 1.0 / TEMPERATURES[1]


@inlined
def exchanged(room, first, second, swaps):
    """Exchange two places of ``room`` where ``swaps``."""
    a, b = room[first], room[second]
    room[first], room[second] = select(swaps, b, a), select(swaps, a, b)


def swap_kernel(gap: int) -> Kernel:
    """Swaps of one pair of rungs in every chain, whose lanes are ``gap`` apart: a constant, which SIMD needs."""

    @fused
    def swap(room, lanes, first, step, pair, slope, coin_side):
        for lane in range(lanes):
            a, b = lane, gap + lane
            u = uniform_pair(SEED, first + uint64(lane), uint64(pair), uint64(step), uint64(SWAP), uint64(0))[0]
            swaps = exp(slope * (room[ENERGY + a] - room[ENERGY + b])) >= u
            if coin_side >= 0:
                coin = uniform_pair(SEED, first + uint64(lane), uint64(0), uint64(step), uint64(SWAP), uint64(1))[0]
                swaps = swaps & ((coin < 0.5) == (coin_side == 0))
            exchanged(room, a, b, swaps)
            exchanged(room, WIDTH + a, WIDTH + b, swaps)
            exchanged(room, SLOPE + a, SLOPE + b, swaps)
            exchanged(room, SLOPE + WIDTH + a, SLOPE + WIDTH + b, swaps)
            exchanged(room, ENERGY + a, ENERGY + b, swaps)

    return swap


def exchange_kernel(target, sizes: tuple[float, ...], temperatures: tuple[float, ...], scheme: int) -> Kernel:
    """Langevin dynamics of a ladder, with a swap of each pair that ``scheme`` tries before every step but the first."""
    rungs = len(sizes)
    width = WIDTH // rungs // 8 * 8
    swap = swap_kernel(width)
    swap_second, swap_third, swap_fourth = swap_kernel(2 * width), swap_kernel(3 * width), swap_kernel(4 * width)
    kicks = tuple(float(np.sqrt(2.0 * h * t)) for h, t in zip(sizes, temperatures, strict=True))

    @fused
    def run(room, lanes, first, n_steps, numbers):
        for step in range(n_steps):
            for rung in range(rungs):
                own = room[rung * width :]
                for lane in range(lanes):
                    own[ENERGY + lane], own[SLOPE + lane], own[SLOPE + WIDTH + lane] = target(
                        own[lane], own[WIDTH + lane]
                    )
            pair = np.int64(0)
            for cold in range(rungs - 1):
                for hot in range(cold + 1, rungs if scheme == ALL_PAIRS else cold + 2):
                    if step > 0 and (scheme != DEO or rungs == 2 or cold % 2 == step % 2):
                        slope = 1.0 / temperatures[cold] - 1.0 / temperatures[hot]
                        side = np.int64(cold % 2 if scheme == SEO else -1)
                        own = room[cold * width :]
                        if hot == cold + 1:
                            swap(own, lanes, first, step, pair, slope, side)
                        elif hot == cold + 2:
                            swap_second(own, lanes, first, step, pair, slope, side)
                        elif hot == cold + 3:
                            swap_third(own, lanes, first, step, pair, slope, side)
                        else:
                            swap_fourth(own, lanes, first, step, pair, slope, side)
                    pair += 1
            for rung in range(rungs):
                h, kick, own = sizes[rung], kicks[rung], room[rung * width :]
                fill_noise(own, NOISE, lanes, first, rung, step, MOVE)
                for lane in range(lanes):
                    own[lane] = fma(-h, own[SLOPE + lane], fma(kick, own[NOISE + lane], own[lane]))
                    at = WIDTH + lane
                    own[at] = fma(-h, own[SLOPE + at], fma(kick, own[NOISE + at], own[at]))

    return run


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


def exchange_runs() -> dict[str, dict[str, Run]]:
    """The samplers of this module, by name, on each target."""

    def ladder(sizes: tuple[float, ...], temperatures: tuple[float, ...], scheme: int = DEO) -> dict[str, Run]:
        make = functools.partial(exchange_kernel, sizes=sizes, temperatures=temperatures, scheme=scheme)
        return in_blocks(make, 7, width=WIDTH // len(sizes) // 8 * 8)

    five = (H,) * 5, (1.0, 2.0, 3.0, 4.0, 5.0)
    return {
        "resgld × 2": ladder((H, 2 * H), (1.0, 3.0)),
        "resgld × 5": ladder(*five),
        "resgld × 5, seo": ladder(*five, SEO),
        "resgld × 5, adjacent": ladder(*five, ADJACENT),
        "resgld × 5, all pairs": ladder(*five, ALL_PAIRS),
        "r2sgld without a domain": ladder(SIZES, TEMPERATURES),
        "r2sghmc without a domain": in_blocks(underdamped_exchange_kernel, 9, width=GAP),
    }
