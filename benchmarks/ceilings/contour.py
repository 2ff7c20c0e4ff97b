"""Contour by hand: CSGLD, and its interacting replicas; the lane of (replica r, chain c) is r · lanes + c.

A bin counts as visited where its θ is not 0. What a step learns is written just before the next one reads, so a step
has one scalar loop, for the tables, beside those of noise, arithmetic and target.
"""

import functools
import math

from numba import int64, uint64

from benchmarks.speed.chain_cases import PARTITION
from toolkit._compiler.decorators import inlined
from toolkit.maths.elementary import exp, fma, larger, log, power, select, smaller
from toolkit.maths.philox import MOVE, START, uniform_pair
from toolkit.tempering.contour_tempering import SMALLEST_REST, SMALLEST_SCALE, SMALLEST_THETA

from .blocks import SEED, WIDTH, H, Kernel, Run, fill_noise, fused, in_blocks, make_normal

NOISE, SLOPE, MOMENTUM, PLACE, BIN, LEFT = 2 * WIDTH, 4 * WIDTH, 6 * WIDTH, 8 * WIDTH, 9 * WIDTH, 10 * WIDTH
TOP, BOTTOM, SHARE, ADDED = 11 * WIDTH, 12 * WIDTH, 13 * WIDTH, 14 * WIDTH
SCALE, REST, OMEGA, CHAIN, REPLICA = 15 * WIDTH, 16 * WIDTH, 17 * WIDTH, 18 * WIDTH, 19 * WIDTH
TABLE, BINS = 20 * WIDTH, PARTITION.n_bins  # a chain's bins lie together
U_MIN, BIN_WIDTH, ZETA, FRICTION = PARTITION.u_min, PARTITION.width, 0.75, 0.1


@inlined
def find_bin(room, lane, energy):
    """Note the place of ``energy`` in units of bins, and its bin."""
    place = (energy - U_MIN) / BIN_WIDTH
    number = math.floor(place)
    number = select(number > 0.0, number, 0.0)
    room[PLACE + lane], room[BIN + lane] = place, select(number < BINS - 1.0, number, BINS - 1.0)


@fused
def nearest_visited(room, base, j):
    """The visited bin nearest to ``j``, the lower one of two; −1 where none has been visited."""
    for away in range(BINS):
        if j - away >= 0 and room[base + j - away] > 0.0:
            return j - away
        if j + away < BINS and room[base + j + away] > 0.0:
            return j + away
    return -1


@fused
def open_bins(room, base, chain, lanes, replicas):
    """Open the bins that the chain's replicas are the first to visit; then what they add, anew."""
    scale = room[SCALE + chain]
    for lane in range(chain, replicas * lanes, lanes):
        j = int64(room[LEFT + lane])
        if room[SHARE + lane] > 0.0 and room[base + j] == 0.0:
            nearest = nearest_visited(room, base, j)
            if nearest < 0:
                room[base + j] = 1.0
            else:
                room[base + j] = room[base + nearest]
                scale /= fma(scale, room[base + j], 1.0)
    room[SCALE + chain] = scale * room[REST + chain]
    for lane in range(chain, replicas * lanes, lanes):
        room[ADDED + lane] = room[SHARE + lane] / room[SCALE + chain]


@fused
def rescale(room, base, chain):
    """Bring θ's scale back to 1."""
    for j in range(BINS):
        if room[base + j] > 0.0:
            room[base + j] = larger(room[SCALE + chain] * room[base + j], SMALLEST_THETA)
    room[SCALE + chain] = 1.0


def contour_kernel(target, replicas: int, has_momentum: bool, power_of_theta: float) -> Kernel:
    """Langevin dynamics, or with a momentum, of replicas that share θ; a step of θ is weighed by its power besides."""
    kick = math.sqrt(2.0 * FRICTION) if has_momentum else math.sqrt(2.0 * H)
    root = math.sqrt(H)

    @fused
    def learn_and_look(room, lanes):
        for chain in range(lanes):
            base, opens = TABLE + chain * BINS, False
            bins = room[base - 1 :]
            for r in range(replicas):
                lane = r * lanes + chain
                opens |= (room[SHARE + lane] > 0.0) & (bins[uint64(int64(room[LEFT + lane]) + 1)] == 0.0)
            if opens:
                open_bins(room, base, chain, lanes, replicas)
            else:
                room[SCALE + chain] *= room[REST + chain]
            for r in range(replicas):
                lane = r * lanes + chain
                bins[uint64(int64(room[LEFT + lane]) + 1)] += room[ADDED + lane]
            if room[SCALE + chain] < SMALLEST_SCALE:
                rescale(room, base, chain)
            scale = room[SCALE + chain]
            for r in range(replicas):
                lane = r * lanes + chain
                here = int64(room[BIN + lane])
                value, below = bins[uint64(here + 1)], bins[uint64(here)]
                if value > 0.0:
                    slopes = (here > 0) & (room[PLACE + lane] < BINS) & (below > 0.0)
                    room[TOP + lane], room[BOTTOM + lane] = scale * value, scale * select(slopes, below, value)
                else:
                    here = nearest_visited(room, base, here)
                    mass = scale * room[base + here] if here >= 0 else 1.0
                    room[TOP + lane], room[BOTTOM + lane] = mass, mass

    @fused
    def run(room, lanes, first, n_steps, numbers):
        used = -(-replicas * lanes // 8) * 8
        for chain in range(lanes):
            room[SCALE + chain] = 1.0
        for r in range(replicas if has_momentum else 0):
            fill_noise(room[r * lanes :], MOMENTUM, lanes, first, r, 0, START)
        for r in range(replicas):
            own = room[r * lanes :]
            for chain in range(lanes):
                own[CHAIN + chain], own[REPLICA + chain] = chain, r
        for lane in range(used):
            energy, room[SLOPE + lane], room[SLOPE + WIDTH + lane] = target(room[lane], room[WIDTH + lane])
            find_bin(room, lane, energy)
            room[TOP + lane], room[BOTTOM + lane] = 1.0, 1.0
        for step in range(n_steps):
            if step % WIDTH == 0:
                for k in range(WIDTH):
                    room[OMEGA + k] = smaller(1.0 / (power(float(step + k + 1), 0.6) + 100.0), 3e-3) / replicas
            omega = room[OMEGA + step % WIDTH]
            for lane in range(used):
                chain, replica = first + uint64(room[CHAIN + lane]), uint64(room[REPLICA + lane])
                room[NOISE + lane], room[NOISE + WIDTH + lane] = uniform_pair(
                    SEED, chain, replica, uint64(step), uint64(MOVE), uint64(0)
                )
            make_normal(room, NOISE, used)
            for lane in range(used):
                place = room[PLACE + lane]
                log_top = log(room[TOP + lane])
                rise = log_top - log(room[BOTTOM + lane])
                multiplier = 1.0 + ZETA * rise / BIN_WIDTH
                log_psi = log_top - (room[BIN + lane] + 1.0 - place) * rise
                if power_of_theta == 0.0:
                    share = omega * exp(ZETA * log_psi)
                else:
                    share = omega * exp(fma(ZETA, log_psi, power_of_theta * log_top))
                room[SHARE + lane] = select((place >= 0.0) & (place < BINS), share, 0.0)
                room[LEFT + lane] = room[BIN + lane]
                room[TOP + lane] = multiplier
            for lane in range(used):
                other, multiplier = WIDTH + lane, room[TOP + lane]
                slope_x, slope_y = multiplier * room[SLOPE + lane], multiplier * room[SLOPE + other]
                if has_momentum:
                    p = fma(1.0 - FRICTION, room[MOMENTUM + lane], fma(-root, slope_x, kick * room[NOISE + lane]))
                    q = fma(1.0 - FRICTION, room[MOMENTUM + other], fma(-root, slope_y, kick * room[NOISE + other]))
                    room[MOMENTUM + lane], room[MOMENTUM + other] = p, q
                    x, y = fma(root, p, room[lane]), fma(root, q, room[other])
                else:
                    x = fma(-H, slope_x, fma(kick, room[NOISE + lane], room[lane]))
                    y = fma(-H, slope_y, fma(kick, room[NOISE + other], room[other]))
                room[lane], room[other] = x, y
            for lane in range(used):
                x, y, other = room[lane], room[WIDTH + lane], WIDTH + lane
                energy, room[SLOPE + lane], room[SLOPE + other] = target(x, y)
                find_bin(room, lane, energy)
            for chain in range(lanes):
                room[REST + chain] = room[SHARE + chain]
            for r in range(1, replicas):
                own = room[r * lanes :]
                for chain in range(lanes):
                    room[REST + chain] += own[SHARE + chain]
            for chain in range(lanes):
                room[REST + chain] = larger(1.0 - room[REST + chain], SMALLEST_REST)
            for r in range(replicas):
                own = room[r * lanes :]
                for chain in range(lanes):
                    own[ADDED + chain] = own[SHARE + chain] / (room[SCALE + chain] * room[REST + chain])
            learn_and_look(room, lanes)

    return run


def contour_runs() -> dict[str, dict[str, Run]]:
    """The samplers of this module, by name, on each target."""

    def of(replicas: int, has_momentum: bool, power_of_theta: float) -> dict[str, Run]:
        numbers = {"replicas": replicas, "has_momentum": has_momentum, "power_of_theta": power_of_theta}
        make, width = functools.partial(contour_kernel, **numbers), WIDTH // replicas // 8 * 8
        return in_blocks(make, 20 + BINS, width=width, packs=True)

    return {
        "csgld": of(1, False, 0.0),
        "icsgld × 5": of(5, False, 1.0 - ZETA),
        "icsghmc × 5": of(5, True, 1.0 - ZETA),
    }
