"""float32 versions of the elementary functions, uniforms and other functions that work on bits; names as in float64.

They are written with plain numbers. ``float32`` converts these to float32, and ``float(x)`` too, and puts the functions
in the place of the float64 ones.
Errors against float64, over all float32, are held in ``tests/cuda/test_float32.py``; polynomials as in ``maths``.
"""

import math

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ..._compiler.decorators import inlined
from ...maths.elementary import fma, select

ROUNDER = 12582912.0  # 1.5 · 2²³
LOG2_E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 0.6931471824645996, -1.904654212782042e-09
TWO_OVER_PI = 0.6366197723675814
HALF_PI_HIGH, HALF_PI_MIDDLE, HALF_PI_LOW = 1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15
SIGN = np.uint64(1 << 31)
WORD = np.uint64(0xFFFFFFFF)


@intrinsic
def to_word(typing_context, value):
    """The 32 bits of a float32 as an unsigned integer."""

    def generate(context, builder, signature, arguments):
        return builder.zext(builder.bitcast(arguments[0], ir.IntType(32)), ir.IntType(64))

    return types.uint64(types.float32), generate


@intrinsic
def from_word(typing_context, value):
    """The float32 whose bits are the 32 low ones of an unsigned integer."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(builder.trunc(arguments[0], ir.IntType(32)), ir.FloatType())

    return types.float32(types.uint64), generate


@intrinsic
def of_word(typing_context, value):
    """The float32 nearest to the 32 low bits of an unsigned integer."""

    def generate(context, builder, signature, arguments):
        return builder.uitofp(builder.trunc(arguments[0], ir.IntType(32)), ir.FloatType())

    return types.float32(types.uint64), generate


@inlined
def exp_reduced(x):
    """(eʳ − 1, m) where x = k ln 2 + r with |r| ≤ ½ ln 2, and k is in the low bits of m, in two's complement."""
    shifted = fma(x, LOG2_E, ROUNDER)
    k = shifted - ROUNDER
    r = fma(-k, LN2_LOW, fma(-k, LN2_HIGH, x))
    p = fma(0.0013941122451797128, r, 0.008363180793821812)
    p = fma(p, r, 0.04166637361049652)
    p = fma(p, r, 0.16666576266288757)
    p = fma(p, r, 0.5)
    return fma(p, r * r, r), to_word(shifted)


@inlined
def exp(x):
    """eˣ, subnormal results included. Overflows to inf above 88.72, underflows to 0 below −103.97."""
    x = float(x)
    p, exponent = exp_reduced(select(x > 89.0, 89.0, select(x < -105.0, -105.0, x)))
    half = from_word((((exponent + np.uint64(256)) >> np.uint64(1)) - np.uint64(1)) << np.uint64(23))
    rest = from_word((exponent - ((exponent + np.uint64(256)) >> np.uint64(1)) + np.uint64(255)) << np.uint64(23))
    return fma(p, half, half) * rest


@inlined
def exp_share(x):
    """eˣ for x ≤ 80, bit for bit as ``exp``, but e⁻⁸⁶ below −86: for terms of a sum whose largest term is 1."""
    x = float(x)
    p, exponent = exp_reduced(select(x < -86.0, -86.0, x))
    scale = from_word((exponent + np.uint64(127)) << np.uint64(23))
    return fma(p, scale, scale)


@inlined
def expm1(x):
    """eˣ − 1, small x included. Overflows to inf above 88.72."""
    x = float(x)
    p, exponent = exp_reduced(select(x > 89.0, 89.0, select(x < -25.0, -25.0, x)))
    half = from_word((exponent + np.uint64(126)) << np.uint64(23))
    return 2.0 * fma(p, half, half - 0.5)


@inlined
def log(x):
    """Natural logarithm, subnormals included. log(±0) = -inf, log(x < 0) = nan, log(inf) = inf."""
    x = float(x)
    tiny = x < 1.1754943508222875e-38
    bits = to_word(select(tiny, x * 8388608.0, x))
    offset = (bits - np.uint64(0x3F3504F3)) & WORD  # the bits of √½
    k = from_word((offset >> np.uint64(23)) ^ np.uint64(0x4B000100)) - 8388864.0
    m = from_word((offset & np.uint64(0x7FFFFF)) + np.uint64(0x3F3504F3))
    k = select(tiny, k - 23.0, k)
    f = m - 1.0
    p = fma(0.07332449406385422, f, -0.11659882217645645)
    p = fma(p, f, 0.11634670943021774)
    p = fma(p, f, -0.12396708130836487)
    p = fma(p, f, 0.14251156151294708)
    p = fma(p, f, -0.16669151186943054)
    p = fma(p, f, 0.2000068873167038)
    p = fma(p, f, -0.24999980628490448)
    p = fma(p, f, 0.3333333134651184)
    result = fma(f * f, fma(f, p, -0.5), fma(k, LN2_LOW, f))
    result = fma(k, LN2_HIGH, result)
    result = select(x < math.inf, result, x)  # inf and nan return themselves
    return select(x > 0.0, result, select(x == 0.0, -math.inf, math.nan))


@inlined
def sincos_reduced(r, quadrant):
    """(sin, cos) of r + quadrant · π/2 for |r| ≤ π/4; only the quadrant's two lowest bits count."""
    z = r * r
    s = fma(-0.0001958548673428595, z, 0.008332737721502781)
    s = fma(s, z, -0.166666641831398)
    s = fma(s * z, r, r)
    c = fma(2.4545513952034526e-05, z, -0.0013888292014598846)
    c = fma(c, z, 0.0416666641831398)
    c = fma(c, z * z, fma(-0.5, z, 1.0))
    odd = (quadrant & np.uint64(1)) != np.uint64(0)
    sine = to_word(select(odd, c, s)) ^ ((quadrant << np.uint64(30)) & SIGN)
    cosine = to_word(select(odd, s, c)) ^ (((quadrant + np.uint64(1)) << np.uint64(30)) & SIGN)
    return from_word(sine), from_word(cosine)


@inlined
def sincos(x):
    """(sin x, cos x) for |x| ≤ 2¹⁸; nan beyond; sin(−0) = +0."""
    x = float(x)
    shifted = fma(x, TWO_OVER_PI, ROUNDER)
    k = shifted - ROUNDER
    r = fma(-k, HALF_PI_LOW, fma(-k, HALF_PI_MIDDLE, fma(-k, HALF_PI_HIGH, x)))
    r = select(abs(x) <= 262144.0, r, math.nan)
    return sincos_reduced(r, to_word(shifted))


@inlined
def sincos_turns(t):
    """(sin 2πt, cos 2πt) for |t| ≤ 2²⁰ with t taken as exact; nan beyond."""
    t = float(t)
    shifted = fma(t, 4.0, ROUNDER)
    r = fma(shifted - ROUNDER, -0.25, t)
    r = select(abs(t) <= 1048576.0, r, math.nan)
    return sincos_reduced(6.283185307179586 * r, to_word(shifted))


@inlined
def with_sign(magnitude, x):
    """``magnitude`` ≥ 0 with the sign of ``x``."""
    return from_word(to_word(float(magnitude)) | (to_word(float(x)) & SIGN))


@inlined
def to_uniform(bits):
    """A float32 in (0, 1), never 0, never 1: the nearest to an odd multiple of 2⁻³², from the 32 high bits."""
    u = of_word((bits >> np.uint64(32)) | np.uint64(1)) * 2.0**-32
    return select(u < 1.0, u, 1.0 - 2.0**-24)


@inlined
def neighbours(values, bound):
    """The largest value below ``bound``, or 0; the smallest of the others, or inf; and how many are not nan."""
    before, after, numbers = 0.0, math.inf, 0
    for value in values:
        before = select((value < bound) & (value > before), value, before)
        after = select((value >= bound) & (value < after), value, after)
        numbers += int(value == value)
    return before, after, numbers
