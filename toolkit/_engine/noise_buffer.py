"""Noise drawn ahead where lanes are few: one vectorised loop serves many steps, instead of a short loop for each.

A random number is a function of its name (``philox``), so nothing depends on when it is drawn. What is drawn ahead
serves one call of the engine alone.
"""

from typing import NamedTuple

import numpy as np
from numba import uint64
from numpy.typing import NDArray

from .._compiler import signatures as s
from .._compiler.decorators import inlined, kernel
from ..maths.philox import GRADIENT_NOISE, MOVE, fill_normals, to_normals, uniform_pair

MOST_LANES = 32  # of a block that draws ahead; a wider one has long loops already
PLACES = 128


class NoiseBuffer(NamedTuple):
    """Noise of the next steps, and its names; place = (steps from the first) · lanes + lane.

    All sizes are 0 in a block that draws nothing ahead, as on CUDA.
    """

    normals: s.Matrix  # scratch (2 × dim made even, or 0; place): for moves, then for noisy gradients
    chain: s.NameVector  # (place,)
    replica: s.NameVector  # (place,)
    steps_ahead: s.NameVector  # (place,): steps from the first


NOISE_BUFFER = s.tuple_type(NoiseBuffer)


def make_noise_buffer(dim: int, chain: NDArray[np.uint64], replica: NDArray[np.uint64]) -> NoiseBuffer:
    """Room for a block of the lanes that ``chain`` and ``replica`` (lane,) name."""
    lanes = chain.size
    steps = PLACES // lanes if lanes <= MOST_LANES else 0
    steps_ahead = np.repeat(np.arange(steps, dtype=np.uint64), lanes)
    normals = np.empty((2 * (dim + dim % 2) if steps else 0, steps_ahead.size))
    return NoiseBuffer(normals, np.tile(chain, steps), np.tile(replica, steps), steps_ahead)


@inlined
def refill_noise_buffer(state, numbers, step, steps):
    """Draw the noise of ``step`` and of those after it, ``steps`` at most."""
    noise_buffer, lanes = state.noise_buffer, state.noise.shape[1]
    places, half = min(noise_buffer.steps_ahead.size, steps * lanes), noise_buffer.normals.shape[0] // 2
    if numbers.draws_noise:
        fill_noise_buffer(noise_buffer.normals[:half], noise_buffer, places, numbers.seed, uint64(step), uint64(MOVE))
    if numbers.gradient_noise > 0.0:
        fill_noise_buffer(
            noise_buffer.normals[half:], noise_buffer, places, numbers.seed, uint64(step), uint64(GRADIENT_NOISE)
        )


@kernel
def fill_noise_buffer(out, noise_buffer, places, seed, step, purpose):
    """Fill the first ``places`` of ``out`` (row, place) with what ``fill_normals`` would draw step by step.

    The rows are an even number, the last of them to spare where coordinates are odd.
    """
    chain, replica, steps_ahead = noise_buffer.chain, noise_buffer.replica, noise_buffer.steps_ahead
    for pair in range(out.shape[0] // 2):
        first, second = out[2 * pair], out[2 * pair + 1]
        for i in range(places):
            first[i], second[i] = uniform_pair(seed, chain[i], replica[i], step + steps_ahead[i], purpose, uint64(pair))
        to_normals(first[:places], second[:places])


@inlined
def fill_noise(state, seed, step, purpose, half, place):
    """The state's noise ← standard normals of this step: fresh ones, or of those at hand, the first half or second."""
    noise, normals = state.noise, state.noise_buffer.normals
    if normals.shape[0] == 0:
        fill_normals(noise, seed, state.chain, state.replica, uint64(step), purpose)
        return
    for d in range(noise.shape[0]):
        drawn, out = normals[half * (normals.shape[0] // 2) + d, place : place + noise.shape[1]], noise[d]
        for lane in range(out.size):
            out[lane] = drawn[lane]
