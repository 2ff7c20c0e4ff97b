"""Which data a minibatch has: a pure function of seed, chain, replica and step."""

import math

from numba import uint64

from .._compiler.block_rows import CHAIN, REPLICA, SEED_HIGH, SEED_LOW, STEP
from .._compiler.decorators import kernel
from ..maths.philox import BATCH, WORD, uniform_pair


@kernel
def draw_pair(picks, scratch, pair, n_data):
    """Two data of this step's minibatch in every lane, uniform on 0 … n_data − 1, with replacement."""
    for lane in range(picks.shape[1]):
        seed = (uint64(scratch[SEED_HIGH, lane]) << WORD) | uint64(scratch[SEED_LOW, lane])
        u, v = uniform_pair(
            seed, uint64(scratch[CHAIN, lane]), uint64(scratch[REPLICA, lane]), uint64(scratch[STEP, lane]),
            uint64(BATCH), uint64(pair),
        )  # fmt: skip
        picks[0, lane], picks[1, lane] = math.floor(u * n_data), math.floor(v * n_data)
