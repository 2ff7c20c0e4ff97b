"""What plain Python needs to follow one chain of the engine: a problem, its random numbers by name, a schedule."""

import math

import numpy as np
from numba import types

from targets import constrained, mixtures, shapes
from toolkit import schedules
from toolkit._compiler.decorators import compile_part
from toolkit._compiler.signatures import MATRIX
from toolkit.maths import philox

MOVE, GRADIENT_NOISE, ENERGY_NOISE, SWAP = 1, 2, 3, 4
SEED, CHAIN = 2**63 + 11, 5
SQUARE = shapes.polygon_of("square", [[-0.7, -0.7], [0.7, -0.7], [0.7, 0.7], [-0.7, 0.7]])
PROBLEM = constrained(mixtures.cosine25(), SQUARE)


def fill_draws(seed, chain, replica, step, purpose, uniforms, normals):
    """Both uniforms and both normals of each lane; all arguments but the outputs are arrays (lane,)."""
    index = np.uint64(0)
    for lane in range(chain.size):
        key = seed[lane], chain[lane], replica[lane], step[lane], purpose[lane], index
        uniforms[0, lane], uniforms[1, lane] = philox.uniform_pair(*key)
        normals[0, lane], normals[1, lane] = philox.normal_pair(*key)


def philox_draws(n, **names):
    """Uniforms and normals, each (2, n); names: seed, chain, replica, step, purpose, as numbers or arrays (n,)."""
    columns = [
        np.broadcast_to(np.asarray(names.get(key, 0), np.uint64), n)
        for key in ("seed", "chain", "replica", "step", "purpose")
    ]
    uniforms, normals = np.empty((2, n)), np.empty((2, n))
    fill = compile_part(fill_draws, types.void(*[types.Array(types.uint64, 1, "A", readonly=True)] * 5, MATRIX, MATRIX))
    fill(*columns, uniforms, normals)
    return uniforms, normals


def factors(steps, total_steps):
    """Step size and temperature that change at different steps."""
    return schedules.Factors(1.0 / (1.0 + 0.1 * (steps // 7)), np.where(steps % 11 < 8, 1.0, 0.5), steps % 2 == 0)


def random(replica, step, purpose):
    """(uniforms, normals) of one counter, two of each."""
    uniforms, normals = philox_draws(1, seed=SEED, chain=CHAIN, replica=replica, step=step, purpose=purpose)
    return uniforms[:, 0], normals[:, 0]


def cosine25(x, y):
    energy = 0.2 * (x * x + y * y) - 2.0 * (math.cos(2 * math.pi * x) + math.cos(2 * math.pi * y))
    slope = [0.4 * v + 4 * math.pi * math.sin(2 * math.pi * v) for v in (x, y)]
    return energy, slope
