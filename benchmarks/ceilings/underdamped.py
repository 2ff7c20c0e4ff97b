"""Dynamics with a momentum by hand: SGHMC, its cycles, and the Nosé–Hoover thermostat."""

import functools
import math

from toolkit._compiler.decorators import inlined
from toolkit.maths.elementary import fma
from toolkit.maths.philox import MOVE, START
from toolkit.schedules import cosine_cycles

from .fused_points import WIDTH, H, Kernel, Run, fill_noise, fused, in_blocks, schedule_of

MOMENTUM, NOISE, THERMOSTAT = 2 * WIDTH, 4 * WIDTH, 6 * WIDTH
FRICTION, DRAG = 0.5, 0.05  # of SGHMC, and the level at which a thermostat begins


def sghmc_kernel(target, cycles: bool = False) -> Kernel:
    """SGHMC; ``cycles``: by the step sizes and temperatures in ``numbers``."""

    @fused
    def run(room, lanes, first, n_steps, numbers):
        root, kick = math.sqrt(H), math.sqrt(2.0 * FRICTION)
        fill_noise(room, MOMENTUM, lanes, first, 0, 0, START)
        for step in range(n_steps):
            if cycles:
                root, kick = math.sqrt(numbers[0, step]), math.sqrt(2.0 * FRICTION * numbers[1, step])
                if step == 0:
                    for lane in range(lanes):
                        room[MOMENTUM + lane] *= math.sqrt(numbers[1, 0])
                        room[MOMENTUM + WIDTH + lane] *= math.sqrt(numbers[1, 0])
            fill_noise(room, NOISE, lanes, first, 0, step, MOVE)
            for lane in range(lanes):
                x, y, other = room[lane], room[WIDTH + lane], WIDTH + lane
                _, slope_x, slope_y = target(x, y)
                p = fma(1.0 - FRICTION, room[MOMENTUM + lane], fma(-root, slope_x, kick * room[NOISE + lane]))
                q = fma(1.0 - FRICTION, room[MOMENTUM + other], fma(-root, slope_y, kick * room[NOISE + other]))
                room[MOMENTUM + lane], room[MOMENTUM + other] = p, q
                room[lane], room[other] = fma(root, p, x), fma(root, q, y)

    return run


@inlined
def heat(thermostat, total, dim):
    """Half a step of a thermostat that sees the momenta's squares ``total`` of ``dim`` coordinates."""
    return fma(0.5 * H, (1.0 - 0.5 * thermostat) * total / dim - 1.0, thermostat)


def sgnht_kernel(target) -> Kernel:
    """SGNHT with one thermostat."""
    root, kick = math.sqrt(H), math.sqrt(2.0 * DRAG)

    @fused
    def run(room, lanes, first, n_steps, numbers):
        fill_noise(room, MOMENTUM, lanes, first, 0, 0, START)
        for lane in range(lanes):
            room[THERMOSTAT + lane] = DRAG
        for step in range(n_steps):
            fill_noise(room, NOISE, lanes, first, 0, step, MOVE)
            for lane in range(lanes):
                x, y, p, q = room[lane], room[WIDTH + lane], room[MOMENTUM + lane], room[MOMENTUM + WIDTH + lane]
                _, slope_x, slope_y = target(x, y)
                z = heat(room[THERMOSTAT + lane], fma(q, q, p * p), 2.0)
                p = fma(1.0 - z, p, fma(-root, slope_x, kick * room[NOISE + lane]))
                q = fma(1.0 - z, q, fma(-root, slope_y, kick * room[NOISE + WIDTH + lane]))
                room[THERMOSTAT + lane] = heat(z, fma(q, q, p * p), 2.0)
                room[MOMENTUM + lane], room[MOMENTUM + WIDTH + lane] = p, q
                room[lane], room[WIDTH + lane] = fma(root, p, x), fma(root, q, y)

    return run


def sgnht_by_coordinate_kernel(target) -> Kernel:
    """SGNHT with a thermostat for each coordinate."""
    root, kick = math.sqrt(H), math.sqrt(2.0 * DRAG)

    @fused
    def run(room, lanes, first, n_steps, numbers):
        fill_noise(room, MOMENTUM, lanes, first, 0, 0, START)
        for lane in range(lanes):
            room[THERMOSTAT + lane] = DRAG
            room[THERMOSTAT + WIDTH + lane] = DRAG
        for step in range(n_steps):
            fill_noise(room, NOISE, lanes, first, 0, step, MOVE)
            for lane in range(lanes):
                x, y, p, q = room[lane], room[WIDTH + lane], room[MOMENTUM + lane], room[MOMENTUM + WIDTH + lane]
                _, slope_x, slope_y = target(x, y)
                z, w = heat(room[THERMOSTAT + lane], p * p, 1.0), heat(room[THERMOSTAT + WIDTH + lane], q * q, 1.0)
                p = fma(1.0 - z, p, fma(-root, slope_x, kick * room[NOISE + lane]))
                q = fma(1.0 - w, q, fma(-root, slope_y, kick * room[NOISE + WIDTH + lane]))
                room[THERMOSTAT + lane], room[THERMOSTAT + WIDTH + lane] = heat(z, p * p, 1.0), heat(w, q * q, 1.0)
                room[MOMENTUM + lane], room[MOMENTUM + WIDTH + lane] = p, q
                room[lane], room[WIDTH + lane] = fma(root, p, x), fma(root, q, y)

    return run


def underdamped_runs() -> dict[str, dict[str, Run]]:
    """The samplers of this module, by name, on each target."""
    cycles = schedule_of(cosine_cycles(30, exploration=0.25))
    return {
        "sghmc": in_blocks(sghmc_kernel, 6),
        "sgnht": in_blocks(sgnht_kernel, 7),
        "sgnht by coordinate": in_blocks(sgnht_by_coordinate_kernel, 8),
        "cyclical_sghmc": in_blocks(functools.partial(sghmc_kernel, cycles=True), 6, cycles),
    }
