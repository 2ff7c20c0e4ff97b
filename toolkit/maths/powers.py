"""Integer powers of complex numbers as products, for functions that are differentiated by complex steps.

Numba's power of complex numbers is exp(n log z). For a negative number its imaginary part has the rounding error of
sin(nπ), about 1e-16, where the complex step is 1e-40. A product has no such error: its imaginary part is exact enough
for the derivative.
"""

import dis
import math
import operator
import types as python_types
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from .._compiler.code_walk import transformed
from .._compiler.decorators import INLINE, inlined

LARGEST_INTEGER = 1e9  # largest float exponent that is treated as an integer if it is one


def operation_number(text: str) -> int:
    """The argument of BINARY_OP in the bytecode of the expression or statement ``text``."""
    return next(i.arg for i in dis.get_instructions(compile(text, "", "exec")) if i.opname == "BINARY_OP") or 0


POWER_OPERATIONS = {operation_number("a ** b"), operation_number("a **= b")}
INVERT_PAIR = bytes([dis.opmap["BUILD_TUPLE"], 2, dis.opmap["UNARY_INVERT"], 0])


def with_pairs(code: python_types.CodeType) -> python_types.CodeType:
    """``code`` with ~(a, b) instead of a ** b and a **= b, also in the functions inside it; only for compilation.

    Python has no ~ of a tuple, so nothing else has this form; ``power_of_pair`` implements it. Both forms take four
    bytes, because every BINARY_OP is followed by a cache entry.
    """

    def changed(one: python_types.CodeType) -> python_types.CodeType:
        content = bytearray(one.co_code)
        for instruction in dis.get_instructions(one):
            if instruction.opname == "BINARY_OP" and instruction.arg in POWER_OPERATIONS:
                content[instruction.offset : instruction.offset + len(INVERT_PAIR)] = INVERT_PAIR
        return one.replace(co_code=bytes(content))

    return transformed(code, changed)


def power(base, exponent):
    """base ** exponent of numbers or arrays, for compiled code; with products for complex numbers."""
    raise NotImplementedError("it is for compiled code")


FUNCTIONS = {
    math: {"pow": power},
    np: {"power": power, "pow": power, "float_power": power},
    operator: {"pow": power, "ipow": power},
}  # fmt: skip


def is_number(kind: Any) -> bool:
    """Whether a Numba type is that of a number."""
    return isinstance(types.unliteral(kind), types.Number | types.Boolean)


@overload(operator.invert, jit_options=INLINE)
def power_of_pair(pair):
    """The implementation of ~(a, b). Not for arrays, because Numba loops over the elements of ~array."""
    if not isinstance(pair, types.BaseTuple) or len(pair) != 2:
        return None
    if not all(is_number(kind) for kind in pair):
        raise TypeError("** of arrays is not compiled for complex numbers: write np.power(array, exponent)")
    return lambda pair: power(pair[0], pair[1])


@inlined
def integer_power(z, n):
    """z to the power n, by squaring; 1 / 0 where it is so."""
    left, square, product, is_empty = abs(n), z, 1.0 + 0j, True
    while left > 0:
        if left & 1:
            product = square if is_empty else product * square  # 1 · z loses signs of zeros, is nan for infinite z
            is_empty = False
        left >>= 1
        if left > 0:
            square = square * square
    if n >= 0:
        return product
    if product.real == 0.0 and product.imag == 0.0:  # at which Numba raises
        return complex(math.inf, math.nan)
    return 1.0 / product


@inlined
def float_power(z, p):
    """z to a real power p: a product where p is an integer."""
    if abs(p) <= LARGEST_INTEGER and int(p) == p:
        return integer_power(z, int(p))
    return principal_power(z, complex(p))


@inlined
def complex_power(z, w):
    """z to a complex power w: a product where w is an integer."""
    return float_power(z, w.real) if w.imag == 0.0 else principal_power(z, w)


@inlined
def principal_power(z, w):
    """exp(w log z) if Re z > 0; else the power of real numbers, which may be nan, and its derivative."""
    x, p = z.real, w.real
    if x > 0.0:
        return z**w
    value, slope = x**p, 0.0
    if z.imag != 0.0:
        slope += p * x ** (p - 1.0) * z.imag
    if w.imag != 0.0 and value != 0.0:
        slope = math.nan  # for other w the power is not real
    return complex(value, slope)


@overload(power, jit_options=INLINE, prefer_literal=True)
def power_of_numbers(base, exponent):
    """``power`` of two numbers; of real ones, Numba's."""
    if not (is_number(base) and is_number(exponent)):
        return None
    if isinstance(exponent, types.Complex):
        return lambda base, exponent: complex_power(complex(base), exponent)
    if not isinstance(base, types.Complex):
        return lambda base, exponent: base**exponent
    if isinstance(exponent, types.Float):
        return lambda base, exponent: float_power(base, exponent)
    return lambda base, exponent: integer_power(base, int(exponent))


@overload(power)
def power_of_arrays(base, exponent):
    """``power`` of arrays: of real ones, Numba's; of complex ones, by one number."""
    arrays = [kind for kind in (base, exponent) if isinstance(kind, types.Array)]
    if not arrays:
        return None
    if not any(isinstance(getattr(kind, "dtype", kind), types.Complex) for kind in (base, exponent)):
        return lambda base, exponent: base**exponent
    if not isinstance(base, types.Array) or not is_number(exponent):
        return None

    def powers(base, exponent):
        out = np.empty(base.shape, np.complex128)
        for place, value in np.ndenumerate(base):
            out[place] = power(complex(value), exponent)
        return out

    return powers
