"""Noise drawn ahead is the noise of its step: bit for bit that of a block which draws nothing ahead."""

import numpy as np
import pytest
from numba import types

from targets import mixtures
from toolkit import Layout, Sampler, dynamics, sample, schedules
from toolkit._compiler import signatures
from toolkit._compiler.decorators import compile_part
from toolkit._engine import noise_buffer
from toolkit.maths import philox

FILL_NOISE_BUFFER = types.void(
    signatures.MATRIX, noise_buffer.NOISE_BUFFER, types.int64, types.uint64, types.uint64, types.uint64
)
FILL = types.void(signatures.MATRIX, types.uint64, signatures.NAMES, signatures.NAMES, types.int64, types.int64)
MANY = noise_buffer.MOST_LANES + 8


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("lanes", [1, 24])
def test_each_place_holds_the_noise_of_its_step_and_lane(dim, lanes):
    chain, replica = np.arange(lanes, dtype=np.uint64) // 3, np.arange(lanes, dtype=np.uint64) % 3
    room = noise_buffer.make_noise_buffer(dim, chain, replica)
    steps = room.steps_ahead.size // lanes
    assert steps > 1
    first, places, seed = 2**32 - 2, (steps - 1) * lanes, np.uint64(2**63 + 7)
    out = np.full((dim + dim % 2, room.steps_ahead.size), np.nan)
    compile_part(noise_buffer.fill_noise_buffer.py_func, FILL_NOISE_BUFFER)(out, room, places, seed, first, philox.MOVE)
    assert np.isnan(out[:, places:]).all()
    expected, fill = np.empty((steps, dim, lanes)), compile_part(philox.fill_normals.py_func, FILL)
    for i in range(steps):
        fill(expected[i], seed, chain, replica, first + i, philox.MOVE)
    drawn = out[:dim, :places].reshape(dim, steps - 1, lanes).transpose(1, 0, 2)
    np.testing.assert_array_equal(drawn, expected[:-1])
    assert (drawn != expected[1:]).all()  # a step late


def test_a_wide_block_draws_nothing_ahead():
    names = np.zeros(MANY, np.uint64)
    assert {array.size for array in noise_buffer.make_noise_buffer(2, names, names, 8)[1:]} == {0}
    assert noise_buffer.make_noise_buffer(2, names, names, 8).normals.shape[0] == 0


def test_padding_has_room_and_no_noise_of_its_own_and_memory_is_bounded():
    names = np.arange(3, dtype=np.uint64)
    room = noise_buffer.make_noise_buffer(2, names, names, 5)
    assert room.steps_ahead.size == noise_buffer.BUFFER_SIZE // 3 * 3
    assert room.normals.shape == (4, room.steps_ahead.size + 5)
    large = noise_buffer.make_noise_buffer(10**5 // 2, names, names, 5)
    assert 0 < large.normals.nbytes <= 8 * noise_buffer.MOST_NORMALS


@pytest.mark.parametrize("dim", [1, 3])
@pytest.mark.parametrize("chunk_steps", [1, 37, None])
@pytest.mark.parametrize("n_chains", [1, 3])
def test_few_chains_are_the_same_chains_among_many(dim, chunk_steps, n_chains):
    """Over more steps than are drawn ahead, with noise of both kinds and a schedule that changes at every step."""
    target = mixtures.gaussian_mixture(np.zeros((1, dim)), 1.0)
    sampler = Sampler(
        step_sizes=(0.1,), temperatures=(1.0,), dynamics=dynamics.langevin(), gradient_noise=0.5,
        schedule=schedules.polynomial_decay(0.3),
    )  # fmt: skip
    options = {"n_steps": 2 * noise_buffer.BUFFER_SIZE + 50, "seed": 3}
    many = sample(target, sampler, n_chains=MANY, layout=Layout(lanes=MANY), threads=1, **options)
    few = sample(target, sampler, n_chains=n_chains, layout=Layout(chunk_steps=chunk_steps), threads=1, **options)
    np.testing.assert_array_equal(few.draws, many.draws[:n_chains])
