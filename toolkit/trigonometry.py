"""Trigonometric functions that the engine itself does not need, for targets; in the manner of ``toolkit.maths``.

Errors against 60-digit references, and the edges, are held in ``tests/test_maths.py``.
"""

import math

from .compiling import inlined
from .maths import SIGN, fma, from_bits, select, sincos, to_bits

PI_HIGH, PI_LOW = 3.141592653589793, 1.2246467991473532e-16


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


@inlined
def angle(y, x):
    """Angle in [0, π/2] of the point (x, y) with x, y ≥ 0; 0 at the origin.

    tan θ − or tan(θ − π/4), tan(θ − π/2) where these are smaller − is below √2 − 1, so one odd polynomial serves.
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
