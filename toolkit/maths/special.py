"""Trigonometric, hyperbolic and inverse functions for targets, by the methods of ``elementary``.

``tests/toolkit/maths/test_elementary.py`` checks errors against 60-digit references, and edge cases.
"""

import math

import numpy as np

from .._compiler.decorators import in_float32, inlined
from .elementary import SIGN, exp, exp_reduced, fma, from_bits, log, select, sincos, to_bits

PI_HIGH, PI_LOW = 3.141592653589793, 1.2246467991473532e-16
LOW_IN_FLOAT32 = {PI_LOW: -8.742277657347586e-08}  # π less its float32


@inlined
def sin(x):
    """sin x, absolute error below 2.5e-16 for |x| ≤ 2³⁰; nan beyond."""
    return sincos(x)[0]


@inlined
def cos(x):
    """cos x, absolute error below 2.5e-16 for |x| ≤ 2³⁰; nan beyond."""
    return sincos(x)[1]


@inlined
def tan(x):
    """tan x, absolute error below 5e-16 (1 + tan² x) for |x| ≤ 2³⁰; nan beyond."""
    sine, cosine = sincos(x)
    return sine / cosine


@in_float32(LOW_IN_FLOAT32)
@inlined
def angle(y, x):
    """Angle in [0, π/2] of the point (x, y) with x, y ≥ 0; 0 at the origin.

    The smallest of |tan θ|, |tan(θ − π/4)| and |tan(θ − π/2)| is below √2 − 1, so one odd polynomial is enough.
    """
    steep, middle = y > 2.414213562373095 * x, y > 0.41421356237309503 * x
    numerator = select(steep, -x, select(middle, y - x, y))
    t = select(numerator == 0.0, 0.0, numerator / select(steep, y, select(middle, y + x, x)))
    share = select(steep, 0.5, select(middle, 0.25, 0.0))
    z = t * t
    p = fma(-0.01922662903072762, z, 0.03927443142896599)
    p = fma(p, z, -0.05087013058569286)
    p = fma(p, z, 0.058584652817290424)
    p = fma(p, z, -0.06664550141545822)
    p = fma(p, z, 0.07692186120270064)
    p = fma(p, z, -0.09090904713162325)
    p = fma(p, z, 0.1111111101883253)
    p = fma(p, z, -0.14285714284714654)
    p = fma(p, z, 0.1999999999999577)
    p = fma(p, z, -0.3333333333333333)
    return fma(share, PI_HIGH, fma(p * z, t, fma(share, PI_LOW, t)))


@inlined
def with_sign(magnitude, x):
    """``magnitude`` ≥ 0 with the sign of ``x``."""
    return from_bits(to_bits(magnitude) | (to_bits(x) & SIGN))


@inlined
def atan(x):
    """Inverse tangent in [−π/2, π/2], to 1.5 ulp."""
    return with_sign(angle(abs(x), 1.0), x)


@in_float32(LOW_IN_FLOAT32)
@inlined
def atan2(y, x):
    """Angle of the point (x, y) in [−π, π], to 2.5 ulp for coordinates below 1e307; 0 at the origin."""
    turned = angle(abs(y), abs(x))
    return with_sign(select(x < 0.0, PI_HIGH - (turned - PI_LOW), turned), y)


@inlined
def asin(x):
    """Inverse sine in [−π/2, π/2], to 3 ulp; nan for |x| > 1."""
    return atan2(x, math.sqrt((1.0 - x) * (1.0 + x)))


@inlined
def acos(x):
    """Inverse cosine in [0, π], to 3 ulp; nan for |x| > 1."""
    return atan2(math.sqrt((1.0 - x) * (1.0 + x)), x)


# Hyperbolic functions, and expm1 and log1p.


@inlined
def expm1(x):
    """eˣ − 1 to 2.5 ulp, small x included. Overflows to inf above 709.78."""
    p, exponent = exp_reduced(select(x > 710.0, 710.0, select(x < -50.0, -50.0, x)))
    half = from_bits((exponent + np.uint64(1022)) << np.uint64(52))  # 2ᵏ⁻¹: 2ᵏ itself may overflow
    return 2.0 * fma(p, half, half - 0.5)


@inlined
def log1p(x):
    """log(1 + x) to 2 ulp, small x included. log1p(−1) = −inf, log1p(x < −1) = nan, log1p(inf) = inf."""
    total = 1.0 + x
    lost = (x - (total - 1.0)) / total
    return log(total) + select(abs(lost) < 1.0, lost, 0.0)


@inlined
def sinh(x):
    """Hyperbolic sine to 3 ulp. Overflows to ±inf beyond 709.78."""
    e = expm1(abs(x))
    return with_sign(e * (0.5 + 0.5 / (e + 1.0)), x)


@inlined
def cosh(x):
    """Hyperbolic cosine to 2 ulp. Overflows to inf beyond 709.78."""
    e = exp(abs(x))
    return fma(0.5, e, 0.5 / e)


@inlined
def tanh(x):
    """Hyperbolic tangent to 3 ulp."""
    e = expm1(-2.0 * abs(x))
    return with_sign(abs(e) / (2.0 + e), x)


@inlined
def asinh(x):
    """Inverse hyperbolic sine to 3 ulp, for |x| < 8e307; ±inf beyond."""
    size = abs(x)
    inverse = 1.0 / size
    return with_sign(log1p(size + size / (inverse + math.sqrt(fma(inverse, inverse, 1.0)))), x)


@inlined
def acosh(x):
    """Inverse hyperbolic cosine to 3 ulp, for x < 8e307; inf beyond, nan for x < 1."""
    above = x - 1.0
    return log1p(above + math.sqrt(above) * math.sqrt(above + 2.0))


@inlined
def atanh(x):
    """Inverse hyperbolic tangent to 3 ulp; ±inf at ±1, nan for |x| > 1."""
    size = abs(x)
    return with_sign(0.5 * log1p(2.0 * size / (1.0 - size)), x)
