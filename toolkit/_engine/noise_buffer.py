"""Buffer of noise for several steps of a block with few lanes: one vectorised loop instead of a short loop a step.

A random number is a function of its counters (``philox``), so results do not depend on when it is drawn. The buffer is
refilled at every call of the engine.
"""

from typing import NamedTuple

import numpy as np
from numba import uint64
from numpy.typing import NDArray

from .._compiler import signatures as s
from .._compiler.decorators import inlined, kernel
from ..maths.philox import GRADIENT_NOISE, MOVE, fill_normals, to_normals, uniform_pair

MOST_LANES = 32  # of a block with a buffer; a wider one has long loops anyway
BUFFER_SIZE = 128
MOST_NORMALS = 2**20  # in a buffer: 8 MiB


class NoiseBuffer(NamedTuple):
    """Noise of the next steps, and its counters; place = (steps from the first) · used lanes + lane.

    Lanes that are padding have no place: of one chain in eight lanes, seven eighths of the noise would be theirs.

    All sizes are 0 in a block without a buffer, as on CUDA.
    """

    # scratch (2 × dim rounded up to even, or 0; place, and room for padding): for moves, then for noisy gradients
    normals: s.Matrix
    chain: s.NameVector  # (place,)
    replica: s.NameVector  # (place,)
    steps_ahead: s.NameVector  # (place,): steps from the first


NOISE_BUFFER = s.tuple_type(NoiseBuffer)


def make_noise_buffer(
    dim: int, chain: NDArray[np.uint64], replica: NDArray[np.uint64], padding: int = 0
) -> NoiseBuffer:
    """An empty buffer for a block whose used lanes have these ``chain`` and ``replica`` numbers (lane,)."""
    used = chain.size
    places = min(BUFFER_SIZE, MOST_NORMALS // (2 * dim) - padding)
    steps = max(places // used, 0) if used <= MOST_LANES else 0
    steps_ahead = np.repeat(np.arange(steps, dtype=np.uint64), used)
    normals = np.zeros((2 * (dim + dim % 2) if steps else 0, steps_ahead.size + padding))
    return NoiseBuffer(normals, np.tile(chain, steps), np.tile(replica, steps), steps_ahead)


@inlined
def refill_noise_buffer(state, numbers, step, steps):
    """Draw the noise of ``step`` and at most ``steps − 1`` steps after it."""
    noise_buffer, used = state.noise_buffer, numbers.n_chains * numbers.n_replicas
    places, half = min(noise_buffer.steps_ahead.size, steps * used), noise_buffer.normals.shape[0] // 2
    if numbers.draws_noise:
        fill_noise_buffer(noise_buffer.normals[:half], noise_buffer, places, numbers.seed, uint64(step), uint64(MOVE))
    if numbers.gradient_noise > 0.0:
        fill_noise_buffer(
            noise_buffer.normals[half:], noise_buffer, places, numbers.seed, uint64(step), uint64(GRADIENT_NOISE)
        )


@kernel
def fill_noise_buffer(out, noise_buffer, places, seed, step, purpose):
    """Fill the first ``places`` of ``out`` (row, place) with what ``fill_normals`` would draw step by step.

    The number of rows is even; with an odd dimension the last row is unused.
    """
    chain, replica, steps_ahead = noise_buffer.chain, noise_buffer.replica, noise_buffer.steps_ahead
    for pair in range(out.shape[0] // 2):
        first, second = out[2 * pair], out[2 * pair + 1]
        for i in range(places):
            first[i], second[i] = uniform_pair(seed, chain[i], replica[i], step + steps_ahead[i], purpose, uint64(pair))
        to_normals(first[:places], second[:places])


@inlined
def draw_noise(state, seed, step, purpose):
    """The state's noise ← standard normals of this step, in a block without a buffer."""
    fill_normals(state.noise, seed, state.chain, state.replica, uint64(step), purpose)


@inlined
def take_noise(state, half, place):
    """The state's noise ← standard normals of this step, from the first or second half of the buffer.

    Padding gets what comes next there: whole vectors are copied faster than the used lanes alone.
    """
    noise, normals = state.noise, state.noise_buffer.normals
    for d in range(noise.shape[0]):
        drawn, out = normals[half * (normals.shape[0] // 2) + d, place : place + noise.shape[1]], noise[d]
        for lane in range(out.size):
            out[lane] = drawn[lane]
