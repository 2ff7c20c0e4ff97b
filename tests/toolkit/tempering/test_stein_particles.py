"""Stein's gradients against their definition, their points of rest in closed form, and what wrong ones would give."""

import numpy as np
import pytest
from numba import types

from toolkit._compiler.decorators import compile_part
from toolkit._compiler.signatures import FLOATS, MATRIX
from toolkit.tempering.stein_particles import Particles, Scratch, Stein, distances_room, stein, stein_gradients

SHAPES = [(2, 1, 1), (2, 13, 3), (3, 1, 2), (4, 1, 2), (5, 13, 1), (6, 8, 2), (7, 13, 20), (12, 5, 3), (50, 1, 2)]
ROUNDING = 1e-13  # of the sum of the terms' sizes; the wrong laws below are off by more than 1e-3


def descend(position, gradient, temperature, direction, weight, distances, bandwidths, n_chains, n_replicas, bandwidth):
    scratch = Scratch(direction, weight, distances, bandwidths)
    stein_gradients(Particles(position, gradient, temperature), scratch, bandwidth, n_chains, n_replicas)


@pytest.fixture(scope="module")
def kernel():
    """The kernel as a function of (replica, chain, dim) arrays; scratch and padding are nan beforehand."""
    whole = (types.int64, types.int64)
    signature = types.void(MATRIX, MATRIX, FLOATS, MATRIX, *(FLOATS,) * 3, *whole, types.float64)
    compiled = compile_part(descend, signature)

    def run(position, gradient, temperature, bandwidth):
        n_replicas, n_chains, dim = position.shape
        used = n_replicas * n_chains
        lanes = -(-used // 8) * 8 + 8
        x, g, t = np.full((dim, lanes), np.nan), np.full((dim, lanes), np.nan), np.full(lanes, np.nan)
        x[:, :used], g[:, :used], t[:used] = position.reshape(used, dim).T, gradient.reshape(used, dim).T, temperature
        room = np.full(distances_room(n_replicas), np.nan)
        scratch = np.full((dim, lanes), np.nan), np.full(lanes, np.nan), room, np.full(lanes, np.nan)
        before = np.vstack((x, t))
        compiled(x, g, t, *scratch, n_chains, n_replicas, bandwidth or 0.0)
        np.testing.assert_array_equal(np.vstack((x, t)), before)
        assert np.isnan(g[:, used:]).all()
        return g[:, :used].T.reshape(position.shape)

    return run


def definition(position, gradient, temperature, bandwidth, repulsion=1.0, widening=1.0, own=1.0):
    """−φ of every particle, and the mean size of its terms; other numbers than 1 make it wrong."""
    n_replicas, n_chains, _ = position.shape
    result, size = np.empty_like(position), np.empty_like(position)
    temperature = np.asarray(temperature).reshape(n_replicas, n_chains)
    for c in range(n_chains):
        x, g = position[:, c], gradient[:, c]
        apart = x[:, None] - x[None]  # x_i − x_j
        squares = (apart**2).sum(axis=2)
        b = bandwidth or np.median(squares[np.triu_indices(n_replicas, 1)]) / np.log(n_replicas + 1)
        k = np.exp(-squares / (widening * b))
        np.fill_diagonal(k, own)
        push = temperature[:, c, None, None] * repulsion * 2.0 / (widening * b) * apart
        terms = k[:, :, None] * (g[None] - push)
        result[:, c], size[:, c] = terms.mean(axis=1), abs(terms).mean(axis=1) + (k[:, :, None] * abs(g)).mean(axis=1)
    return result, size


def draw(shape, seed):
    rng = np.random.default_rng(seed)
    position = rng.standard_normal(shape) + 3.0
    return position, 4.0 * rng.standard_normal(shape), rng.uniform(0.5, 2.0, shape[0] * shape[1])


def error(got, expected):
    return (abs(got - expected[0]) / expected[1]).max()


@pytest.mark.parametrize("per_dim", [None, 0.7, 5.0])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_gradients_are_those_of_the_definition(kernel, shape, per_dim):
    given = (*draw(shape, seed=1), per_dim and per_dim * shape[2])
    got = kernel(*given)
    assert error(got, definition(*given)) < ROUNDING
    for wrong in ({"repulsion": 0.0}, {"repulsion": -1.0}, {"repulsion": 2.0}, {"widening": 2.0}, {"own": 0.0}):
        assert error(got, definition(*given, **wrong)) > 1e-3
    # Another rule for the bandwidth is seen where it differs by one part in a hundred.
    assert error(got, definition(*given, widening=1.01)) > 100 * ROUNDING


def test_one_particle_keeps_its_gradient(kernel):
    for bandwidth in (None, 0.3):
        position, gradient, temperature = draw((1, 13, 2), seed=2)
        np.testing.assert_array_equal(kernel(position, gradient, temperature, bandwidth), gradient)


@pytest.mark.parametrize("bandwidth", [None, 0.7])
@pytest.mark.parametrize("n_replicas", [2, 5, 12])
def test_a_chain_does_not_depend_on_those_beside_it(kernel, n_replicas, bandwidth):
    position, gradient, temperature = draw((n_replicas, 13, 3), seed=3)
    together = kernel(position, gradient, temperature, bandwidth)
    temperature = temperature.reshape(n_replicas, 13)
    for c in range(13):
        one = slice(c, c + 1)
        alone = kernel(position[:, one], gradient[:, one], temperature[:, c], bandwidth)
        np.testing.assert_array_equal(alone[:, 0], together[:, c])


def rest(descent, temperature, bandwidth, step_size=0.1, n_steps=1500):
    """a² of two particles at rest on N(0, T), one chain for each temperature."""
    position = np.random.default_rng(4).standard_normal((2, temperature.size, 1))
    for _ in range(n_steps):
        position -= step_size * descent(position, position, np.tile(temperature, 2), bandwidth)
    np.testing.assert_allclose(position[0], -position[1], rtol=1e-6)
    return position[0, :, 0] ** 2


@pytest.mark.parametrize("bandwidth", [None, 0.8, 6.0])
def test_two_particles_rest_where_they_must(kernel, bandwidth):
    temperature = np.array([0.5, 1.0, 2.0])
    law = 0.5 * np.log(3.0) * temperature
    if bandwidth is not None:
        law = 0.25 * bandwidth * np.log(1.0 + 4.0 * temperature / bandwidth)
    np.testing.assert_allclose(rest(kernel, temperature, bandwidth), law, rtol=1e-6)
    for wrong in ({"repulsion": 0.9}, {"own": 0.9}):
        found = rest(lambda *given, wrong=wrong: definition(*given, **wrong)[0], temperature, bandwidth)
        assert (abs(found / law - 1.0) > 1e-2).all()


def test_particles_at_one_place_descend_together(kernel):
    position, gradient, temperature = draw((5, 3, 2), seed=5)
    position[:] = position[0]
    np.testing.assert_allclose(kernel(position, gradient, temperature, None), np.tile(gradient.mean(axis=0), (5, 1, 1)))


def test_the_mean_takes_the_place_of_a_median_of_0(kernel):
    position, gradient, temperature = draw((5, 1, 2), seed=6)
    position[:4] = position[0]  # six of ten pairs
    b = 0.4 * ((position[4] - position[0]) ** 2).sum() / np.log(6.0)
    given = position, gradient, temperature
    got = kernel(*given, None)
    assert error(got, definition(*given, b)) < ROUNDING
    assert error(got, definition(*given, 0.5 * b)) > 1e-3


def test_a_particle_that_is_not_finite_does_not_hang(kernel):
    position, gradient, temperature = draw((6, 2, 2), seed=7)
    position[:3, 0] = np.nan
    got = kernel(position, gradient, temperature, None)
    assert np.isnan(got[:, 0]).all()
    assert np.isfinite(got[:, 1]).all()


def test_bandwidth_must_be_positive():
    assert stein() == Stein(None)
    assert stein(bandwidth=2.0).bandwidth == 2.0
    for bad in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="bandwidth must be finite and > 0"):
            stein(bandwidth=bad)
    with pytest.raises(TypeError, match="bandwidth must be a number"):
        stein(bandwidth="wide")
