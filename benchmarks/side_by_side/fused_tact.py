"""TACT-HMC by hand: the Nosé–Hoover thermostat, tempered by a variable ξ whose bias is a running mean in bins."""

import math

from numba import int64, uint64

from toolkit._compiler.decorators import inlined
from toolkit.maths.elementary import fma, select
from toolkit.maths.philox import COUPLING, MOVE, REFRESH
from toolkit.tempering.continuous import continuous_tempering, coupling

from .fused_points import WIDTH, H, Kernel, Run, fill_noise, fused, in_blocks

NOISE, MOMENTUM, SLOPE, ENERGY, THERMOSTAT = 2 * WIDTH, 4 * WIDTH, 6 * WIDTH, 8 * WIDTH, 9 * WIDTH
XI, XI_MOMENTUM, XI_THERMOSTAT, XI_NOISE, XI_FRESH = 10 * WIDTH, 11 * WIDTH, 12 * WIDTH, 13 * WIDTH, 14 * WIDTH
SCALE, BIAS, VISITS, LEFT, BIN, TABLE = 15 * WIDTH, 16 * WIDTH, 17 * WIDTH, 18 * WIDTH, 19 * WIDTH, 20 * WIDTH
NUMBERS = continuous_tempering()
BINS, PLATEAU, GROWTH, EVERY = NUMBERS.n_bins, NUMBERS.plateau, NUMBERS.growth, NUMBERS.resample_every
FRICTION, ROOT = 0.05, math.sqrt(H)
KICK = math.sqrt(2.0 * FRICTION)


@fused
def renew_momenta(room, lanes, first, step):
    """Draw momenta afresh in the lanes where λ' is 0."""
    fill_noise(room, NOISE, lanes, first, 0, step, REFRESH)
    for lane in range(lanes):
        fresh = room[XI_FRESH + lane]
        renews = coupling(room[XI + lane], PLATEAU, GROWTH)[1] == 0.0
        room[XI_MOMENTUM + lane] = select(renews, fresh, room[XI_MOMENTUM + lane])
        for row in range(0, 2 * WIDTH, WIDTH):
            room[MOMENTUM + row + lane] = select(renews, room[NOISE + row + lane], room[MOMENTUM + row + lane])


@fused
def learn_and_look(room, lanes):
    """Write what the bins have learned, and read those where ξ is now; of each chain (bias, visits) in turn."""
    for lane in range(lanes):
        table = room[TABLE + 2 * BINS * lane :]
        table[uint64(int64(room[LEFT + lane]))] = room[BIAS + lane]
        here = int64(room[BIN + lane])
        visits = table[uint64(here + 1)] + 1.0
        table[uint64(here + 1)] = visits
        room[BIAS + lane], room[VISITS + lane] = table[uint64(here)], visits


@inlined
def heat(thermostat, square, total):
    """Half a step of the position's thermostat, whose momenta have the sum of squares ``total``; square: λ²."""
    return fma(0.5 * square * H, (1.0 - 0.5 * square * thermostat) * total / 2.0 - 1.0, thermostat)


def tact_kernel(target) -> Kernel:
    """TACT-HMC of one replica."""

    @fused
    def run(room, lanes, first, n_steps, numbers):
        for lane in range(lanes):
            room[THERMOSTAT + lane], room[XI_THERMOSTAT + lane] = FRICTION, FRICTION
            other = WIDTH + lane
            room[ENERGY + lane], room[SLOPE + lane], room[SLOPE + other] = target(room[lane], room[other])
        for step in range(n_steps):
            learn_and_look(room, lanes)
            fill_noise(room, XI_NOISE, lanes, first, 0, step, COUPLING)
            if step % EVERY == 0:
                renew_momenta(room, lanes, first, step)
            fill_noise(room, NOISE, lanes, first, 0, step, MOVE)
            for lane in range(lanes):
                xi, p, z = room[XI + lane], room[XI_MOMENTUM + lane], room[XI_THERMOSTAT + lane]
                energy = room[ENERGY + lane]
                scale, slope = coupling(xi, PLATEAU, GROWTH)
                room[SCALE + lane] = scale
                rate, share = slope * ROOT, 1.0 - 0.5 * slope * slope * z
                z += rate * rate * fma(share * p, p, -1.0)
                side, bias = select(xi < 0.0, -1.0, 1.0), room[BIAS + lane]
                room[BIAS + lane] = bias + (side * slope * energy - bias) / room[VISITS + lane]
                kick = slope * fma(KICK, room[XI_NOISE + lane], -ROOT * energy)
                p = fma(-(slope * slope * z), p, p) + fma(ROOT, side * bias, kick)
                moved = fma(ROOT, p, xi)
                inside = abs(moved) <= 1.0
                xi = select(inside, moved, xi)
                room[XI + lane], room[XI_THERMOSTAT + lane] = xi, z
                room[XI_MOMENTUM + lane] = select(inside, p, -p)
                place = math.floor(abs(xi) * BINS)
                room[LEFT + lane] = room[BIN + lane]
                room[BIN + lane] = 2.0 * select(place < BINS - 1.0, place, BINS - 1.0)
            for lane in range(lanes):
                other, scale = WIDTH + lane, room[SCALE + lane]
                p, q, square = room[MOMENTUM + lane], room[MOMENTUM + other], scale * scale
                z = heat(room[THERMOSTAT + lane], square, fma(q, q, p * p))
                keep, kick = fma(-square, z, 1.0), scale * KICK
                p = fma(keep, p, fma(-ROOT, scale * room[SLOPE + lane], kick * room[NOISE + lane]))
                q = fma(keep, q, fma(-ROOT, scale * room[SLOPE + other], kick * room[NOISE + other]))
                room[THERMOSTAT + lane] = heat(z, square, fma(q, q, p * p))
                room[MOMENTUM + lane], room[MOMENTUM + other] = p, q
                room[lane], room[other] = fma(ROOT, p, room[lane]), fma(ROOT, q, room[other])
            for lane in range(lanes):
                x, y, other = room[lane], room[WIDTH + lane], WIDTH + lane
                room[ENERGY + lane], room[SLOPE + lane], room[SLOPE + other] = target(x, y)

    return run


def tact_runs() -> dict[str, dict[str, Run]]:
    """The sampler of this module, by name, on each target."""
    return {"tact_hmc": in_blocks(tact_kernel, 20 + 2 * BINS)}
