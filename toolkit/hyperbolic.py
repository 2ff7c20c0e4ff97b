"""Hyperbolic functions, and exponential and logarithm near 1, for targets; in the manner of ``toolkit.maths``.

Errors against 60-digit references, and the edges, are held in ``tests/test_maths.py``.
"""

import math

import numpy as np

from .compiling import inlined
from .maths import exp, exp_reduced, fma, from_bits, log, select
from .trigonometry import with_sign


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
