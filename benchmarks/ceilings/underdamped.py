"""Dynamics with a momentum by hand: SGHMC and its cycles, the Nosé–Hoover thermostat, TACT-HMC, MALA and HMC.

TACT-HMC is the thermostat tempered by a variable ξ whose bias is a running mean in bins. MALA and HMC keep what was
evaluated where a trajectory ends for the next one, so a step needs one evaluation less.
"""

import functools
import math

from numba import int64, uint64

from toolkit._compiler.decorators import inlined
from toolkit.maths.elementary import exp, fma, select
from toolkit.maths.philox import ACCEPT, COUPLING, MOVE, REFRESH, START, uniform_pair
from toolkit.schedules import cosine_cycles
from toolkit.tempering.continuous import continuous_tempering, coupling

from .blocks import SEED, WIDTH, H, Kernel, Run, fill_noise, fused, in_blocks, schedule_of

# Places of a block's room. All:
MOMENTUM, NOISE, THERMOSTAT, SLOPE, ENERGY = 2 * WIDTH, 4 * WIDTH, 6 * WIDTH, 8 * WIDTH, 10 * WIDTH
# Of TACT-HMC, whose table is of twice the bins a lane:
XI, XI_MOMENTUM, XI_THERMOSTAT, XI_NOISE, XI_FRESH = 11 * WIDTH, 12 * WIDTH, 13 * WIDTH, 14 * WIDTH, 15 * WIDTH
SCALE, BIAS, VISITS, LEFT, BIN, TABLE = 16 * WIDTH, 17 * WIDTH, 18 * WIDTH, 19 * WIDTH, 20 * WIDTH, 21 * WIDTH
# Of MALA and HMC, the proposal:
NEW, NEW_SLOPE, NEW_ENERGY, FIRST_ENERGY = 11 * WIDTH, 13 * WIDTH, 15 * WIDTH, 16 * WIDTH

FRICTION, DRAG = 0.5, 0.05  # of SGHMC, and the level at which a thermostat begins
TACT = continuous_tempering()
BINS, PLATEAU, GROWTH, EVERY = TACT.n_bins, TACT.plateau, TACT.growth, TACT.resample_every
ROOT, KICK = math.sqrt(H), math.sqrt(2.0 * DRAG)  # of TACT-HMC


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
def tempered_heat(thermostat, square, total):
    """Half a step of the position's thermostat, whose momenta have the sum of squares ``total``; square: λ²."""
    return fma(0.5 * square * H, (1.0 - 0.5 * square * thermostat) * total / 2.0 - 1.0, thermostat)


def tact_kernel(target) -> Kernel:
    """TACT-HMC of one replica."""

    @fused
    def run(room, lanes, first, n_steps, numbers):
        for lane in range(lanes):
            room[THERMOSTAT + lane], room[XI_THERMOSTAT + lane] = DRAG, DRAG
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
                z = tempered_heat(room[THERMOSTAT + lane], square, fma(q, q, p * p))
                keep, kick = fma(-square, z, 1.0), scale * KICK
                p = fma(keep, p, fma(-ROOT, scale * room[SLOPE + lane], kick * room[NOISE + lane]))
                q = fma(keep, q, fma(-ROOT, scale * room[SLOPE + other], kick * room[NOISE + other]))
                room[THERMOSTAT + lane] = tempered_heat(z, square, fma(q, q, p * p))
                room[MOMENTUM + lane], room[MOMENTUM + other] = p, q
                room[lane], room[other] = fma(ROOT, p, room[lane]), fma(ROOT, q, room[other])
            for lane in range(lanes):
                x, y, other = room[lane], room[WIDTH + lane], WIDTH + lane
                room[ENERGY + lane], room[SLOPE + lane], room[SLOPE + other] = target(x, y)

    return run


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
                room[FIRST_ENERGY + lane] = fma(0.5 * q, q, fma(0.5 * p, p, room[ENERGY + lane]))
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
                keeps = exp(room[FIRST_ENERGY + lane] - end) > u
                room[lane] = select(keeps, room[NEW + lane], room[lane])
                room[other] = select(keeps, room[NEW + other], room[other])
                room[ENERGY + lane] = select(keeps, room[NEW_ENERGY + lane], room[ENERGY + lane])
                room[SLOPE + lane] = select(keeps, room[NEW_SLOPE + lane], room[SLOPE + lane])
                room[SLOPE + other] = select(keeps, room[NEW_SLOPE + other], room[SLOPE + other])

    return run


def underdamped_runs() -> dict[str, dict[str, Run]]:
    """The samplers of this module, by name, on each target."""
    cycles = schedule_of(cosine_cycles(30, exploration=0.25))
    return {
        "sghmc": in_blocks(sghmc_kernel, 6),
        "sgnht": in_blocks(sgnht_kernel, 7),
        "sgnht by coordinate": in_blocks(sgnht_by_coordinate_kernel, 8),
        "cyclical_sghmc": in_blocks(functools.partial(sghmc_kernel, cycles=True), 6, cycles),
        "tact_hmc": in_blocks(tact_kernel, 21 + 2 * BINS),
        "mala": in_blocks(functools.partial(leapfrog_kernel, leapfrogs=1, length=math.sqrt(2.0 * H)), 17),
        "hmc, 10 leapfrogs": in_blocks(functools.partial(leapfrog_kernel, leapfrogs=10, length=0.03), 17),
    }
