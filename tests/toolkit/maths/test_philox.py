"""The random numbers: published known answers, open uniforms, moments, KS and independence at 10⁷ draws."""

import numpy as np
import pytest
from numba import types
from scipy import special, stats

from tests.support.plain_chain import philox_draws
from toolkit._compiler import signatures
from toolkit._compiler.decorators import compile_part
from toolkit.maths import philox

N = 10_000_000
NAMES = signatures.NAMES


def fill_words(counter_and_key, out):
    a, b, c, d, e, f = counter_and_key
    out[0], out[1], out[2], out[3] = philox.philox4x32(a, b, c, d, e, f)


def fill_from_bits(bits, out):
    for i in range(bits.size):
        out[i] = philox.to_uniform(bits[i])


# Counter (4 words) and key (2 words) → output: the known answers published with Random123.
KNOWN_ANSWERS = [
    ([0] * 6, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ([0xFFFFFFFF] * 6, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0],
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    ),
]


@pytest.mark.parametrize(("given", "answer"), KNOWN_ANSWERS, ids=["zeros", "ones", "digits of pi"])
def test_known_answers(given, answer):
    out = np.empty(4, np.uint64)
    compile_part(fill_words, types.void(types.UniTuple(types.uint64, 6), NAMES))(tuple(map(np.uint64, given)), out)
    assert " ".join(f"{int(word):08x}" for word in out) == answer


def test_uniforms_are_never_0_or_1():
    out = np.empty(4)
    bits = np.array([0, 2**64 - 1, 2**63, 2**12 - 1], np.uint64)
    compile_part(fill_from_bits, types.void(NAMES, signatures.FLOATS))(bits, out)
    assert out.tolist() == [2.0**-53, 1.0 - 2.0**-53, 0.5 + 2.0**-53, 2.0**-53]


# Every statistic below is compared with a bound it exceeds with probability below 1e-6; seeds are fixed, so a pass
# is a pass for good.
SIGMAS = 5.0


@pytest.fixture(scope="module")
def along_steps():
    return philox_draws(N, step=np.arange(N), seed=12345)


@pytest.mark.cases(0)
def test_moments_of_normals(along_steps):
    _, normals = along_steps
    for z in normals:
        moments = np.array([np.mean(z**k) for k in range(1, 7)])
        exact = np.array([0, 1, 0, 3, 0, 15])
        variance = np.array([1, 3, 15, 105, 945, 10395]) - exact**2
        assert (np.abs(moments - exact) < SIGMAS * np.sqrt(variance / N)).all(), moments


def kolmogorov_p_value(uniforms):
    """Of many values that should be uniform; they are sorted in place, once, where SciPy sorts four times."""
    uniforms.sort()
    ranks = np.arange(uniforms.size + 1) / uniforms.size
    return stats.kstwobign.sf(np.sqrt(uniforms.size) * max((ranks[1:] - uniforms).max(), (uniforms - ranks[:-1]).max()))


def test_distribution_of_uniforms_and_normals(along_steps):
    uniforms, normals = along_steps
    assert uniforms.min() > 0.0
    assert uniforms.max() < 1.0
    for row in (*uniforms.copy(), *special.ndtr(normals)):
        assert kolmogorov_p_value(row) > 1e-6
    tails = (np.abs(normals) > 4.0).sum(), 4 * N * stats.norm.sf(4.0)
    assert abs(tails[0] - tails[1]) < SIGMAS * np.sqrt(tails[1])


def correlation(a, b):
    """Correlation in units of its standard deviation for independent values."""
    return float(np.corrcoef(a, b)[0, 1] * np.sqrt(a.size))


def test_the_two_normals_of_a_pair_are_independent(along_steps):
    _, (first, second) = along_steps
    for a, b in ((first, second), (first**2, second**2), (np.abs(first), second)):
        assert abs(correlation(a, b)) < SIGMAS
    for lag in (1, 2, 7, 1000):
        assert abs(correlation(first[lag:], first[:-lag])) < SIGMAS
        assert abs(correlation(first[lag:], second[:-lag])) < SIGMAS


@pytest.mark.cases(1)
@pytest.mark.slow_cases("chain", "replica")
@pytest.mark.parametrize("name", ["seed", "chain", "replica", "step", "purpose"])
def test_neighbouring_names_are_independent_streams(name, along_steps):
    """Draws along steps for two neighbouring values of every name, and draws along the name itself."""
    n = N
    steps = {"step": np.arange(n) * 2} if name == "step" else {"step": np.arange(n)}
    base = {"seed": 12345, **steps}
    near = {**base, name: np.asarray(base.get(name, 0)) + 1}
    first, second = philox_draws(n, **base)[1][0], philox_draws(n, **near)[1][0]
    assert not (first == second).any()
    assert abs(correlation(first, second)) < SIGMAS
    assert abs(correlation(first**2, second**2)) < SIGMAS
    limit = {"replica": philox.MAX_REPLICAS, "purpose": 2**16}.get(name, n)
    along = philox_draws(limit, **{"seed": 7, name: np.arange(limit)})[1][0]
    assert kolmogorov_p_value(special.ndtr(along)) > 1e-6
    assert abs(correlation(along[1:], along[:-1])) < SIGMAS
    assert abs(correlation(along[1:] ** 2, along[:-1] ** 2)) < SIGMAS


def test_every_bit_of_every_name_counts():
    """Changing one bit of a name within its documented width gives another draw, and no two collide."""
    widths = {"seed": 64, "chain": 32, "replica": 16, "step": 48, "purpose": 16}
    seen = [philox_draws(1)[0][0, 0]]
    for name, width in widths.items():
        seen += [philox_draws(1, **{name: 1 << bit})[0][0, 0] for bit in range(width)]
    assert len(set(seen)) == 1 + sum(widths.values())


def test_normals_fill_each_coordinate_from_its_own_index():
    out = np.empty((5, 3))
    fill = compile_part(
        philox.fill_normals.py_func,
        types.void(signatures.MATRIX, types.uint64, NAMES, NAMES, types.int64, types.int64),
    )
    chain, replica = np.arange(3, dtype=np.uint64), np.zeros(3, np.uint64)
    fill(out, np.uint64(9), chain, replica, 4, philox.MOVE)
    assert np.unique(out).size == 15
    np.testing.assert_array_equal(out[:2], philox_draws(3, seed=9, chain=chain, step=4, purpose=philox.MOVE)[1])
    shorter = np.empty((2, 3))
    fill(shorter, np.uint64(9), chain, replica, 4, philox.MOVE)
    np.testing.assert_array_equal(out[:2], shorter)


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_signs_are_those_of_the_normals(dim):
    signature = types.void(signatures.MATRIX, types.uint64, NAMES, NAMES, types.int64, types.int64)
    normals, signs = np.empty((2, dim, 20_000))
    chain, replica = np.arange(20_000, dtype=np.uint64), np.zeros(20_000, np.uint64)
    for fill, out in ((philox.fill_normals, normals), (philox.fill_signs, signs)):
        compile_part(fill.py_func, signature)(out, np.uint64(9), chain, replica, 4, philox.PROBE)
    np.testing.assert_array_equal(signs, np.sign(normals))
