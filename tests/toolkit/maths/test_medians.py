"""The median of squared distances: exact from any guess, and the same as by partition where numbers are missing."""

import numpy as np
import pytest
from numba import types

from toolkit._compiler.decorators import compile_part
from toolkit._compiler.signatures import FLOATS
from toolkit._engine.cuda import float32
from toolkit.maths.medians import median, median_by_partition

GUESSES = (0.0, -1.0, 5e-324, 1e-9, 0.7, 1e308, np.inf, np.nan)


def near(values, guess):
    return median(values, guess)


def by_partition(values):
    return median_by_partition(values)


@pytest.fixture(scope="module")
def found():
    """The median from a guess."""
    compiled = compile_part(near, types.float64(FLOATS, types.float64))

    def run(values, guess):
        kept = np.array(values)
        result = compiled(kept, guess)
        np.testing.assert_array_equal(np.sort(kept), np.sort(values))
        return result

    return run


@pytest.fixture(scope="module")
def partitioned():
    """The median by partition."""
    compiled = compile_part(by_partition, types.float64(FLOATS))
    return lambda values: compiled(np.array(values))


def samples(size, rng):
    """Values of many kinds, ``size`` of each."""
    random, ties = rng.exponential(size=size), rng.integers(0, 4, size).astype(float)
    yield from (random, np.sort(random), np.sort(random)[::-1], ties, np.sort(ties))
    yield from (np.zeros(size), np.full(size, 0.3), 1.0 + rng.integers(0, 9, size) * 2.0**-52)
    yield np.concatenate([np.arange(size // 2), np.arange(size - size // 2)[::-1]]).astype(float)
    yield rng.integers(0, 9, size) * 5e-324
    yield 10.0 ** rng.uniform(-320.0, 308.0, size)
    yield 1.0 + np.cumsum(2.0 ** -np.arange(size, dtype=float))  # all but the first few within a hair of 3
    yield np.where(rng.random(size) < 0.4, np.inf, random)
    yield np.where(rng.random(size) < 0.6, 0.0, random)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 45, 499, 500, 1999, 2000])
def test_the_median_is_that_of_numpy_from_any_guess(found, partitioned, size):
    rng = np.random.default_rng(size)
    for values in samples(size, rng):
        lower, upper = np.sort(values)[[(size - 1) // 2, size // 2]]
        law = upper if size % 2 else 0.5 * lower + 0.5 * upper
        assert partitioned(values) == law
        for guess in (*GUESSES, lower, upper, np.nextafter(upper, np.inf), 1.001 * upper):
            assert found(values, guess) == law


def test_another_rank_is_seen(found):
    values = np.random.default_rng(1).permutation(np.arange(1.0, 102.0))
    for kept, law in ((values, 51.0), (values[values > 1.0], 51.5), (values[values < 101.0], 50.5)):
        assert [found(kept, guess) for guess in (0.5, 50.0, 1e3)] == [law] * 3


@pytest.mark.parametrize("size", [1, 2, 7, 100, 1001])
@pytest.mark.parametrize("share", [0.05, 0.5, 1.0])
def test_missing_numbers_give_what_the_partition_gives_from_any_guess(found, partitioned, size, share):
    rng = np.random.default_rng(size)
    values = np.where(rng.random(size) < share, np.nan, rng.exponential(size=size))
    for guess in GUESSES:
        np.testing.assert_array_equal(found(values, guess), partitioned(values))


def test_the_median_in_float32():
    twin, rng = float32.twin(median), np.random.default_rng(2)
    for size in (1, 2, 45, 500):
        for values in (rng.exponential(size=size), rng.integers(0, 4, size)):
            given = values.astype(np.float32)
            assert twin(given.copy(), np.float32(0.5)) == np.median(given)
