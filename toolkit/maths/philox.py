"""Random numbers as a pure function of (seed, chain, replica, step, purpose), without state or order.

Philox4x32-10 of Salmon et al. (2011), "Parallel random numbers: as easy as 1, 2, 3", checked by its published known
answers (``tests/toolkit/maths/test_philox.py``). The 64 bits of the seed are the key; the 128 bits of the counter are

    word 0: step, low 32 bits     word 1: purpose (16 bits) and step, high 16 bits
    word 2: chain (32 bits)       word 3: index (16 bits) and replica (16 bits)

so that no two draws of one run share a counter, and the bits of a chain do not depend on which other chains run.
"""

import math
from types import FunctionType

import numpy as np
from llvmlite import ir
from numba import types, uint64
from numba.extending import intrinsic

from .._compiler.decorators import inlined, noinline
from .._compiler.numba_private import CPUContext
from .elementary import from_bits, log_of_normal, select, sincos_bounded_turns

# Purposes. Each has a stream of its own; a number must never change its meaning.
MOVE, GRADIENT_NOISE, ENERGY_NOISE, SWAP, ACCEPT, PROBE, START, COUPLING, REFRESH, BATCH, TRAJECTORY = range(1, 12)
INITIAL = 32  # random starts

MAX_STEPS, MAX_CHAINS, MAX_REPLICAS, MAX_DIM = 2**48, 2**32, 2**16, 2**17

LOW = np.uint64(0xFFFFFFFF)
HALF_WORD = np.uint64(16)
WORD = np.uint64(32)
MULTIPLIER_0, MULTIPLIER_1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
WEYL_0, WEYL_1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
ONE_BITS = np.uint64(0x3FF0000000000000)
MANTISSA_SHIFT = np.uint64(12)


@intrinsic
def multiply_words(typing_context, a, b):
    """The product of two uint64 that hold 32 bits; CUDA's compiler would multiply their high halves as well."""

    def generate(context, builder, signature, arguments):
        if isinstance(context, CPUContext):
            return builder.mul(*arguments)
        word, number = ir.IntType(32), ir.IntType(64)
        instruction = ir.InlineAsm(ir.FunctionType(number, [word, word]), "mul.wide.u32 $0, $1, $2;", "=l,r,r")
        return builder.call(instruction, [builder.trunc(argument, word) for argument in arguments])

    return types.uint64(types.uint64, types.uint64), generate


@inlined
def philox4x32(c0, c1, c2, c3, k0, k1):
    """The four output words of Philox4x32-10 for a counter and a key; all are uint64 that hold 32 bits."""
    for _ in range(10):
        product_0 = multiply_words(MULTIPLIER_0, c0)
        product_1 = multiply_words(MULTIPLIER_1, c2)
        c0 = (product_1 >> WORD) ^ c1 ^ k0
        c1 = product_1 & LOW
        c2 = (product_0 >> WORD) ^ c3 ^ k1
        c3 = product_0 & LOW
        k0 = (k0 + WEYL_0) & LOW
        k1 = (k1 + WEYL_1) & LOW
    return c0, c1, c2, c3


# The same for arrays in Python, which cannot call an intrinsic.
philox4x32_of_arrays = FunctionType(philox4x32.py_func.__code__, {**globals(), "multiply_words": np.multiply})


@inlined
def random_bits(seed, chain, replica, step, purpose, index):
    """Two uint64 of random bits; every argument is a uint64 within the limits of the module's docstring."""
    high_step = (step >> WORD) & np.uint64(0xFFFF)
    w0, w1, w2, w3 = philox4x32(
        step & LOW,
        (high_step | (purpose << HALF_WORD)) & LOW,  # masked, so that LLVM multiplies words of 32 bits
        chain & LOW,
        (replica | (index << HALF_WORD)) & LOW,
        seed & LOW,
        seed >> WORD,
    )
    return (w0 << WORD) | w1, (w2 << WORD) | w3


@inlined
def to_uniform(bits):
    """A float64 uniform on the 2⁵² midpoints (2m + 1) 2⁻⁵³ of the open interval (0, 1): never 0, never 1."""
    return from_bits((bits >> MANTISSA_SHIFT) | ONE_BITS) - (1.0 - 2.0**-53)


@inlined
def uniform_pair(seed, chain, replica, step, purpose, index):
    """Two independent uniforms on (0, 1)."""
    first, second = random_bits(seed, chain, replica, step, purpose, index)
    return to_uniform(first), to_uniform(second)


@inlined
def box_muller(u, turns):
    """Two independent standard normals (Box & Muller 1958) of two uniforms; |value| is at most √(106 ln 2) = 8.57."""
    radius = math.sqrt(-2.0 * log_of_normal(u))
    sine, cosine = sincos_bounded_turns(turns)
    return radius * cosine, radius * sine


@inlined
def normal_pair(seed, chain, replica, step, purpose, index):
    """Two independent standard normals."""
    u, turns = uniform_pair(seed, chain, replica, step, purpose, index)
    return box_muller(u, turns)


@noinline
def fill_uniforms(first, second, seed, chain, replica, step, purpose, index):
    """Fill ``first`` and ``second`` (lane,) with uniforms of the lanes' ``chain`` and ``replica`` (lane,)."""
    for lane in range(first.size):
        first[lane], second[lane] = uniform_pair(seed, chain[lane], replica[lane], step, purpose, index)


@noinline
def to_normals(first, second):
    """Convert uniforms to standard normals, in place. A separate loop is faster than one loop for all of it."""
    for lane in range(first.size):
        first[lane], second[lane] = box_muller(first[lane], second[lane])


@noinline
def fill_normals(out, seed, chain, replica, step, purpose):
    """Fill ``out`` (dim, lane) with standard normals of the lanes' ``chain`` and ``replica`` (lane,)."""
    dim, lanes = out.shape
    step, purpose = uint64(step), uint64(purpose)
    if dim == 1:
        for lane in range(lanes):
            out[0, lane] = normal_pair(seed, chain[lane], replica[lane], step, purpose, uint64(0))[0]
        return
    for pair in range((dim - 1) // 2, -1, -1):  # odd dim: the last pair's second goes to row 0, for now
        first, second = out[2 * pair], out[(2 * pair + 1) % dim]
        fill_uniforms(first, second, seed, chain, replica, step, purpose, uint64(pair))
        to_normals(first, second)


@noinline
def fill_signs(out, seed, chain, replica, step, purpose):
    """Fill ``out`` (dim, lane) with 1 and −1: the signs of ``fill_normals``' draws, read from their angle."""
    dim, lanes = out.shape
    step, purpose = uint64(step), uint64(purpose)
    for pair in range((dim - 1) // 2, -1, -1):
        for lane in range(lanes):
            turns = uniform_pair(seed, chain[lane], replica[lane], step, purpose, uint64(pair))[1]
            if 2 * pair + 1 < dim:
                out[2 * pair + 1, lane] = select(turns < 0.5, 1.0, -1.0)
            out[2 * pair, lane] = select((turns < 0.25) | (turns > 0.75), 1.0, -1.0)
