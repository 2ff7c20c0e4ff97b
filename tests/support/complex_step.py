"""A block function run as plain Python on complex numbers: its energy's derivative without differences.

f(x + iε) = f(x) + iε f'(x) to rounding, for ε = 10⁻³⁰ (Squire & Trapp 1998). Comparisons act on the real part, and so
does abs; our compiled functions are replaced by NumPy's, the kernels that are called by their own source.
"""

import math
import types

import numpy as np
from numba.core.dispatcher import Dispatcher

from toolkit.maths import elementary

STEP = 1e-30


class Perturbed:
    """A complex number that compares by its real part."""

    def __init__(self, value):
        self.value = np.complex128(getattr(value, "value", value))

    def __neg__(self):
        return Perturbed(-self.value)

    def __abs__(self):
        return self if self.value.real >= 0.0 else -self

    def __int__(self):
        return int(self.value.real)

    def __float__(self):
        return float(self.value.real)

    def __pow__(self, power):
        return Perturbed(self.value**power)


def plain(value):
    return getattr(value, "value", value)


def arithmetic(name):
    def apply(self, other):
        return Perturbed(getattr(self.value, name)(np.complex128(plain(other))))

    return apply


def comparison(name):
    def apply(self, other):
        return bool(getattr(self.value.real, name)(np.float64(np.real(plain(other)))))

    return apply


for operator in ("add", "sub", "mul", "truediv"):
    for side in ("", "r"):
        setattr(Perturbed, f"__{side}{operator}__", arithmetic(f"__{side}{operator}__"))
for operator in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Perturbed, f"__{operator}__", comparison(f"__{operator}__"))
Perturbed.__hash__ = None


def of_one(function):
    return lambda x: Perturbed(function(np.complex128(plain(x))))


def fma(a, b, c):
    return Perturbed(a) * b + c


def sincos(x):
    return of_one(np.sin)(x), of_one(np.cos)(x)


MATHS = {
    "exp": of_one(np.exp),
    "exp_share": of_one(np.exp),
    "log": of_one(np.log),
    "log_of_normal": of_one(np.log),
    "sincos": sincos,
    "sincos_turns": lambda t: sincos(2.0 * math.pi * t),
    "power": lambda x, y: of_one(np.exp)(y * of_one(np.log)(x)),
    "fma": fma,
    "select": lambda condition, a, b: a if condition else b,
}
REPLACED = {id(getattr(elementary, name)): function for name, function in MATHS.items()}
SCALAR = types.SimpleNamespace(
    sqrt=of_one(np.sqrt), floor=lambda x: float(math.floor(float(x))), inf=math.inf, nan=math.nan, pi=math.pi
)


def in_complex(function, done):
    """``function`` with every compiled function it calls replaced, at any depth."""
    if id(function) in REPLACED:
        return REPLACED[id(function)]
    source = function.py_func if isinstance(function, Dispatcher) else function
    if source in done:
        return done[source]
    if source.__module__.partition(".")[0] == "toolkit" and hasattr(np, source.__name__):
        return of_one(getattr(np, source.__name__))
    space = dict(source.__globals__)
    cells = tuple(types.CellType() for _ in source.__closure__ or ())
    done[source] = types.FunctionType(source.__code__, space, source.__name__, source.__defaults__, cells)
    for cell, given in zip(cells, source.__closure__ or (), strict=True):
        content = given.cell_contents
        cell.cell_contents = in_complex(content, done) if isinstance(content, Dispatcher) else content
    for name in source.__code__.co_names:
        value = space.get(name)
        if value is math:
            space[name] = SCALAR
        elif isinstance(value, Dispatcher) or id(value) in REPLACED:
            space[name] = in_complex(value, done)
    return done[source]


def energy_and_slopes(target, points):
    """Energy (n,) and gradient (n, dim) at ``points`` (n, dim), from the energy alone; one lane per derivative."""
    n, dim = points.shape
    position = np.empty((dim, n * dim), object)
    for lane in range(n * dim):
        for d in range(dim):
            position[d, lane] = Perturbed(points[lane // dim, d] + 1j * STEP * (lane % dim == d))
    energy, gradient = np.empty(n * dim, object), np.empty((dim, n * dim), object)
    scratch = np.full((target.scratch_rows, n * dim), 0.0, object)
    with np.errstate(all="ignore"):
        in_complex(target.energy_gradient, {})(position, energy, gradient, target.parameters, scratch)
    values = np.array([plain(value) for value in energy]).reshape(n, dim)
    return values[:, 0].real, values.imag / STEP
