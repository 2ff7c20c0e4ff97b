"""SVGD by hand, of an even number of particles; the lane of (particle r, chain c) is r · chains + c.

Positions, gradients and kernels stand twice in a row, so partners s ahead and s behind are straight runs of lanes all
the way round; sums go from one row to another, so a loop may end on whole vectors. Squared distances are taken once,
and their median is found by counting from the last step's.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from toolkit.maths.elementary import exp, fma, log

from .blocks import POINTS, Array, Run, fused

STEP, DECAY, FLOOR = 3e-3, 0.9, 1e-6
MANY = 32  # chains of a block; fewer than 8 chains go one by one
LARGEST = 2**63 - 1


@fused
def count_below(values, bound):
    """How many of ``values`` are below ``bound``."""
    count = 0
    for i in range(values.size):
        count += int(values[i] < bound)
    return count


@fused
def median(values, bits, guess, out):
    """out ← the two middle ones of ``values`` ≥ 0; ``bits``: the same memory as integers, which have the same order."""
    n = values.size
    rank = n // 2
    low, high, below, until = 0.0, math.inf, 0, n
    pivot = guess
    while until - below > 1:
        count = count_below(values, pivot)
        if count <= rank:
            low, below = pivot, count
        else:
            high, until = pivot, count
        if high == math.inf:
            pivot = low * (1.0 + 2.0 * (rank + 1 - below) / n)
        elif low == 0.0 and below == 0:
            pivot = high * (1.0 - 2.0 * (until - rank) / n) if until - rank < n // 4 else 0.5 * high
        else:
            pivot = low + (high - low) * ((rank - below + 0.5) / (until - below))
            if pivot <= low or pivot >= high:
                break
    upper, lower = LARGEST, 0
    for i in range(n):
        upper = min(upper, bits[i] if values[i] >= low else LARGEST)
        lower = max(lower, bits[i] if values[i] < low else 0)
    out[0], out[1] = upper, upper if below < rank or n % 2 == 1 else lower


class Places(NamedTuple):
    """Where a block's room has what: rows begin with both coordinates of positions; the rest is of other lengths."""

    row: int  # length of a row
    slope: int
    square: int
    weight: int
    width: int  # the bandwidth
    sums: int  # twice both coordinates
    column: int  # squared distances of one chain
    found: int  # what ``median`` finds
    last: int  # medians of the last step
    distance: int
    size: int


def places_for(particles: int, chains: int) -> Places:
    """The room of a block."""
    used, pairs = particles * chains, particles * (particles - 1) // 2
    row = 2 * used + 16
    column = 12 * row
    distance = column + pairs + 2 + chains
    size = distance + particles // 2 * used + 8
    return Places(
        row, 2 * row, 4 * row, 6 * row, 7 * row, 8 * row, column, column + pairs, column + pairs + 2, distance, size
    )


def stein_kernel(target, particles: int, chains: int) -> Callable[..., None]:
    """SVGD of a block of ``chains``."""
    used, half, pairs = particles * chains, particles // 2, particles * (particles - 1) // 2
    lanes = -(-used // 8) * 8
    row, slope, square, weight, width, sums, column, found, last, distance, _ = places_for(particles, chains)

    @fused
    def repeat(room):
        for lane in range(used):
            room[used + lane] = room[lane]

    @fused
    def add(room, source, out, ahead, first, count, turns):
        """Add what partners ahead and behind give, in the other order where ``turns``."""
        x, y, k = room[first : first + count], room[row + first : row + first + count], room[weight + first :]
        fx, fy, fk = room[first + ahead :], room[row + first + ahead :], room[slope + first + ahead :]
        fl, back = room[slope + row + first + ahead :], first + used - ahead
        bx, by, bk = room[back:], room[row + back :], room[weight + back :]
        bs, bl = room[slope + back :], room[slope + row + back :]
        a, b, to_a, to_b = source[first:], source[row + first :], out[first:], out[row + first :]
        if turns:
            for i in range(count):
                to_a[i] = fma(k[i], fx[i] - x[i] + fk[i], fma(bk[i], bx[i] - x[i] + bs[i], a[i]))
            for i in range(count):
                to_b[i] = fma(k[i], fy[i] - y[i] + fl[i], fma(bk[i], by[i] - y[i] + bl[i], b[i]))
        else:
            for i in range(count):
                to_a[i] = fma(bk[i], bx[i] - x[i] + bs[i], fma(k[i], fx[i] - x[i] + fk[i], a[i]))
            for i in range(count):
                to_b[i] = fma(bk[i], by[i] - y[i] + bl[i], fma(k[i], fy[i] - y[i] + fl[i], b[i]))

    @fused
    def run(room, bits, n_steps):
        for _ in range(n_steps):
            repeat(room)
            repeat(room[row:])
            for shift in range(1, half + 1):
                x, y = room[shift * chains :], room[row + shift * chains :]
                squares = room[distance + (shift - 1) * used :]
                for lane in range(lanes):
                    across, up = room[lane] - x[lane], room[row + lane] - y[lane]
                    squares[lane] = fma(up, up, across * across)
            for chain in range(chains):
                begin = distance
                if chains > 1:
                    begin, own, out = column, room[distance + chain :], room[column:]
                    for pair in range(pairs):
                        out[pair] = own[pair * chains]
                median(room[begin : begin + pairs], bits[begin : begin + pairs], room[last + chain], bits[found:])
                middle = 0.5 * room[found] + 0.5 * room[found + 1] if pairs % 2 == 0 else room[found]
                room[last + chain] = middle
                for lane in range(chain, used, chains):
                    room[width + lane] = middle / log(particles + 1.0)
            for lane in range(lanes):
                gradient = target(room[lane], room[row + lane])[1:]
                room[slope + lane], room[slope + row + lane] = gradient
            for lane in range(lanes):
                room[slope + lane] *= 0.5 * room[width + lane]
                room[slope + row + lane] *= 0.5 * room[width + lane]
                room[sums + lane], room[sums + row + lane] = room[slope + lane], room[slope + row + lane]
                room[width + lane] = 1.0 / room[width + lane]
            repeat(room[slope:])
            repeat(room[slope + row :])
            source, out = room[sums:], room[sums + 2 * row :]
            for shift in range(1, half + 1):
                squares, ahead = room[distance + (shift - 1) * used :], shift * chains
                for lane in range(lanes):
                    room[weight + lane] = exp(-squares[lane] * room[width + lane])
                if shift < half:
                    repeat(room[weight:])
                    rest = used - ahead
                    add(room, source, out, ahead, 0, (rest + 7) // 8 * 8, False)
                    add(room, source, out, ahead, rest, (ahead + 7) // 8 * 8, True)
                else:
                    for d in range(2):
                        x, y, own = room[d * row :], room[d * row + ahead :], room[slope + d * row + ahead :]
                        a, to_a = source[d * row :], out[d * row :]
                        for lane in range(lanes):
                            to_a[lane] = fma(room[weight + lane], y[lane] - x[lane] + own[lane], a[lane])
                source, out = out, source
            for d in range(2):
                x, v, a = room[d * row :], room[square + d * row :], source[d * row :]
                for lane in range(lanes):
                    g = a[lane] * (2.0 / particles * room[width + lane])
                    v[lane] = fma(DECAY, v[lane], (1.0 - DECAY) * g * g)
                    x[lane] = fma(-STEP, g / (FLOOR + math.sqrt(v[lane])), x[lane])

    return run


def stein_run(point: Any, particles: int) -> Run:
    """(n_chains, n_steps) → last positions of each chain's first particle, (chain, 2)."""
    kernel = functools.cache(lambda chains: stein_kernel(point, particles, chains))

    def run(n_chains: int, n_steps: int) -> Array:
        start = np.random.default_rng(1).uniform(-2.0, 2.0, (n_chains, particles, 2))
        last, width = np.empty((n_chains, 2)), MANY if particles <= 16 and n_chains >= 8 else 1
        places = places_for(particles, width)
        row, room = places.row, np.empty(places.size)
        for first in range(0, n_chains, width):
            own = start[np.minimum(np.arange(first, first + width), n_chains - 1)]
            room[:] = 1.0
            room[places.square : places.weight] = 0.0
            for d in range(2):
                room[d * row : d * row + particles * width] = own[:, :, d].T.ravel()
            kernel(width)(room, room.view(np.int64), n_steps)
            there = min(width, n_chains - first)
            last[first : first + there, 0], last[first : first + there, 1] = room[:there], room[row : row + there]
        return last

    return run


def stein_runs() -> dict[str, dict[str, Run]]:
    """The samplers of this module, by name, on each target."""
    return {f"svgd × {n}": {name: stein_run(point, n) for name, point in POINTS.items()} for n in (10, 160)}
