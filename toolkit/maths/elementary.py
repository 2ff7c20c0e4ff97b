"""Elementary functions on float64 that vectorise inside a loop over lanes.

Each is branch-free arithmetic with explicit fused multiply-adds, so LLVM vectorises loops of them, and every bit
of a result depends on its argument alone: the same for any vector width, loop remainder
or thread. Numba's own ``math.exp`` is a scalar library call that stops a loop from vectorising.

``tests/toolkit/maths/test_elementary.py`` checks errors against 60-digit references, and edge cases.
Polynomials: minimax fits on the reduced interval (Remez exchange at 60 digits, ``tests/fit_polynomials.py``).
Argument reduction: Cody & Waite (1980), "Software Manual for the Elementary Functions".

All functions are lazily compiled and call no library, so CPU loops and CUDA kernels use the same source.
"""

import math

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .._compiler.decorators import inlined

SIGN = np.uint64(1 << 63)
ROUNDER = 6755399441055744.0  # 1.5 · 2⁵²: adding it rounds |x| < 2⁵¹ to an integer in the low bits
LOG2_E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10  # the high part has 32 bits, so k · high is exact
TWO_OVER_PI = 0.6366197723675814
HALF_PI_HIGH, HALF_PI_MIDDLE, HALF_PI_LOW = 1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33
SINCOS_RANGE = 2.0**30


def kind_of(*kinds):
    """float32 where the floats among these types are float32, else float64."""
    floats = {kind for kind in kinds if isinstance(kind, types.Float)}
    return types.float32 if floats == {types.float32} else types.float64


@intrinsic
def fma(typing_context, a, b, c):
    """a · b + c with one rounding; in float32 if all floats among them are float32."""
    kind = kind_of(a, b, c)

    def generate(context, builder, signature, arguments):
        number = context.get_value_type(kind)
        function = builder.module.declare_intrinsic("llvm.fma", [number], ir.FunctionType(number, [number] * 3))
        return builder.call(function, arguments)

    return kind(kind, kind, kind), generate


@intrinsic
def to_bits(typing_context, value):
    """The 64 bits of a float64 as an unsigned integer."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.uint64(types.float64), generate


@intrinsic
def from_bits(typing_context, value):
    """The float64 whose 64 bits are given as an unsigned integer."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.uint64), generate


@intrinsic
def select(typing_context, condition, if_true, if_false):
    """``if_true if condition else if_false`` without a branch; both are evaluated and converted to one type.

    The type is int64 if both are, float32 if all floats among them are, else float64.
    """

    def generate(context, builder, signature, arguments):
        return builder.select(*arguments)

    kind = types.int64 if if_true == types.int64 and if_false == types.int64 else kind_of(if_true, if_false)
    return kind(types.boolean, kind, kind), generate


@inlined
def smaller(a, b):
    """The smaller of two floats, ``a`` if they are equal or one is nan: as Python's ``min``, unlike CUDA's."""
    return select(b < a, b, a)


@inlined
def larger(a, b):
    """The larger of two floats, ``a`` if they are equal or one is nan."""
    return select(b > a, b, a)


@inlined
def exp_reduced(x):
    """(eʳ − 1, m) where x = k ln 2 + r with |r| ≤ ½ ln 2, and k is in the low bits of m, in two's complement."""
    shifted = fma(x, LOG2_E, ROUNDER)
    k = shifted - ROUNDER
    r = fma(-k, LN2_LOW, fma(-k, LN2_HIGH, x))
    p = fma(2.511006749795799e-08, r, 2.76200891637639e-07)
    p = fma(p, r, 2.7557242292789278e-06)
    p = fma(p, r, 2.480152129434e-05)
    p = fma(p, r, 0.00019841269886625805)
    p = fma(p, r, 0.001388888891721482)
    p = fma(p, r, 0.008333333333322198)
    p = fma(p, r, 0.04166666666662413)
    p = fma(p, r, 0.16666666666666674)
    p = fma(p, r, 0.5000000000000001)
    return fma(p, r * r, r), to_bits(shifted)


@inlined
def exp(x):
    """eˣ to 1.1 ulp, subnormal results included. Overflows to inf above 709.78, underflows to 0 below -745.13."""
    p, exponent = exp_reduced(select(x > 710.0, 710.0, select(x < -750.0, -750.0, x)))
    half = from_bits((((exponent + np.uint64(2048)) >> np.uint64(1)) - np.uint64(1)) << np.uint64(52))
    rest = from_bits((exponent - ((exponent + np.uint64(2048)) >> np.uint64(1)) + np.uint64(2047)) << np.uint64(52))
    return fma(p, half, half) * rest


@inlined
def exp_share(x):
    """eˣ for x ≤ 700, bit for bit as ``exp``, but e⁻⁷⁰⁰ below −700: for terms of a sum whose largest term is 1.

    It needs two thirds of the time, and has no results near or below the smallest normal number, which are slow.
    """
    p, exponent = exp_reduced(select(x < -700.0, -700.0, x))
    scale = from_bits((exponent + np.uint64(1023)) << np.uint64(52))
    return fma(p, scale, scale)


@inlined
def log_reduced(x, bias):
    """log x − k log 2 for a normal x > 0, where bias is 2⁵² + 2048 + k."""
    # Subtracting the bits of √½ splits x = 2ᵏ m with m in [√½, √2).
    offset = to_bits(x) - np.uint64(0x3FE6A09E667F3BCD)
    k = from_bits((offset >> np.uint64(52)) ^ np.uint64(0x4330000000000800)) - bias
    m = from_bits((offset & np.uint64(0xFFFFFFFFFFFFF)) + np.uint64(0x3FE6A09E667F3BCD))
    f = m - 1.0
    s = f / (2.0 + f)
    z = s * s
    p = fma(0.14617869685851995, z, 0.15331597195236973)
    p = fma(p, z, 0.18182893211959592)
    p = fma(p, z, 0.22222211072930448)
    p = fma(p, z, 0.2857142862639866)
    p = fma(p, z, 0.39999999999898445)
    p = fma(p, z, 0.666666666666667)
    # log m = f - s (f - z p), from log((1+s)/(1-s)) = 2s + s z p(z)
    return fma(k, LN2_HIGH, fma(k, LN2_LOW, fma(-s, fma(-z, p, f), f)))


@inlined
def log_of_normal(x):
    """``log``, bit for bit, of a positive normal number, in three quarters of the time."""
    return log_reduced(x, 4503599627372544.0)


@inlined
def log(x):
    """Natural logarithm to 1.1 ulp, subnormals included. log(±0) = -inf, log(x < 0) = nan, log(inf) = inf."""
    tiny = x < 2.2250738585072014e-308  # scaled by 2⁵⁴
    result = log_reduced(select(tiny, x * 18014398509481984.0, x), select(tiny, 4503599627372598.0, 4503599627372544.0))
    result = select(x < math.inf, result, x)  # inf and nan return themselves
    return select(x > 0.0, result, select(x == 0.0, -math.inf, math.nan))


@inlined
def sincos_reduced(r, quadrant):
    """(sin, cos) of r + quadrant · π/2 for |r| ≤ π/4, to 2.3e-16; only the quadrant's two lowest bits count."""
    z = r * r
    s = fma(1.5918114541086487e-10, z, -2.5051131660569062e-08)
    s = fma(s, z, 2.7557316101789313e-06)
    s = fma(s, z, -0.00019841269836757405)
    s = fma(s, z, 0.008333333333330948)
    s = fma(s, z, -0.16666666666666666)
    s = fma(s * z, r, r)
    c = fma(-1.1382622268792726e-11, z, 2.0876146138726392e-09)
    c = fma(c, z, -2.755731727117521e-07)
    c = fma(c, z, 2.4801587298764784e-05)
    c = fma(c, z, -0.0013888888888887398)
    c = fma(c, z, 0.041666666666666664)
    c = fma(c, z * z, fma(-0.5, z, 1.0))
    odd = (quadrant & np.uint64(1)) != np.uint64(0)
    sine = to_bits(select(odd, c, s)) ^ ((quadrant << np.uint64(62)) & SIGN)
    cosine = to_bits(select(odd, s, c)) ^ (((quadrant + np.uint64(1)) << np.uint64(62)) & SIGN)
    return from_bits(sine), from_bits(cosine)


@inlined
def sincos(x):
    """(sin x, cos x), absolute error below 2.5e-16 for |x| ≤ 2³⁰; nan beyond; sin(−0) = +0."""
    shifted = fma(x, TWO_OVER_PI, ROUNDER)
    k = shifted - ROUNDER
    r = fma(-k, HALF_PI_LOW, fma(-k, HALF_PI_MIDDLE, fma(-k, HALF_PI_HIGH, x)))
    r = select(abs(x) <= SINCOS_RANGE, r, math.nan)
    return sincos_reduced(r, to_bits(shifted))


@inlined
def sincos_bounded_turns(t):
    """``sincos_turns``, bit for bit, where |t| ≤ 2⁴⁹ is known."""
    shifted = fma(t, 4.0, ROUNDER)
    r = fma(shifted - ROUNDER, -0.25, t)
    return sincos_reduced(6.283185307179586 * r, to_bits(shifted))


@inlined
def sincos_turns(t):
    """(sin 2πt, cos 2πt), absolute error below 3.5e-16 for |t| ≤ 2⁴⁹ with t taken as exact; nan beyond."""
    return sincos_bounded_turns(select(abs(t) <= 562949953421312.0, t, math.nan))


@inlined
def power(x, y):
    """xʸ = exp(y log x) for x > 0, with a relative error below (1 + |y log x|) · 3.3e-16.

    0ʸ is 0 for y > 0, inf for y < 0 and nan for y = 0; x < 0 gives nan.
    """
    return exp(y * log(x))
