"""Malformed targets of a user's own, at each of the four doors: what is wrong, and a function that must be refused."""

import math
from collections.abc import Callable

import numpy as np

from targets import from_sympy, mixtures
from toolkit import Target, check_gradient, from_callable, sample, samplers, target

SGLD = samplers.sgld(0.1)


def normal(points):
    """A right function of arrays."""
    return 0.5 * (points**2).sum(axis=1), points


def bowl(x):
    """A right function of one point."""
    return 0.5 * (x[0] ** 2 + x[1] ** 2), (x[0], x[1])


def asserts(x):
    """A function of one point that asserts."""
    assert x[0] > 0.0
    return x[0], (1.0, 0.0)


def half_filled(position, energy, gradient, parameters, scratch):
    """A block function that leaves a row of the gradient as it is."""
    for lane in range(position.shape[1]):
        energy[lane] = 0.5 * position[0, lane] ** 2
        gradient[0, lane] = position[0, lane]


def run(made):
    """One step."""
    return sample(made, SGLD, n_steps=1, seed=0, init=np.zeros(made.dim))


def sympy_energy(make):
    """``from_sympy`` of what ``make`` gives, and SymPy only then."""

    def thunk():
        import sympy

        x, y = sympy.symbols("x y")
        return from_sympy(*make(sympy, x, y))

    return thunk


def arrays(function):
    """One step on a function of arrays."""
    return lambda: run(from_callable(function, dim=2, name="mine"))


DOORS: list[tuple[str, Callable[[], object]]] = [
    ("@target without dim", lambda: target(bowl)),
    ("@target on a number", lambda: target(dim=2)(3.0)),
    ("@target, three arguments for two dimensions", lambda: target(lambda x, y, z: (x, (1.0, 1.0)), dim=2)),
    ("@target, parameters forgotten", lambda: target(lambda x, numbers: (x[0], x), dim=3)),
    ("@target, energy only", lambda: target(lambda x: x[0] ** 2, dim=2)),
    ("@target, nothing returned on some path", lambda: target(lambda x: (x[0], x) if x[0] > 0.0 else None, dim=2)),
    ("@target, gradient too short", lambda: target(lambda x: (x[0], (1.0,)), dim=2)),
    ("@target, gradient an array", lambda: target(lambda x: (x[0], np.array([x[0], x[1]])), dim=2)),
    ("@target, complex energy", lambda: target(lambda x: (1j * x[0], x), dim=1)),
    ("@target, a tuple taken for an array", lambda: target(lambda x: (0.5 * x * x, x), dim=2)),
    ("@target, assert", lambda: target(asserts, dim=2)),
    ("@target, math of a tuple", lambda: target(lambda x: (math.exp(x), x), dim=2)),
    ("block function, row not filled", lambda: run(Target("mine", 2, half_filled))),
    ("block function, not callable", lambda: Target("mine", 2, "half_filled")),
    ("from_sympy, text", sympy_energy(lambda sp, x, y: ("x**2", x))),
    ("from_sympy, no number for y", sympy_energy(lambda sp, x, y: (y * x**2, x))),
    ("from_sympy, idle coordinate", sympy_energy(lambda sp, x, y: (x**2, (x, y)))),
    ("from_sympy, complex", sympy_energy(lambda sp, x, y: (sp.sqrt(-1 - x**2), x))),
    ("from_sympy, integral left to do", sympy_energy(lambda sp, x, y: (sp.Integral(sp.exp(x * y), (y, 0, 1)), x))),
    ("from_sympy, function not known", sympy_energy(lambda sp, x, y: (sp.gamma(x), x))),
    ("from_sympy, number beyond floats", sympy_energy(lambda sp, x, y: (sp.exp(1000) * x**2, x))),
    ("from_sympy, parameter nan", sympy_energy(lambda sp, x, y: (y * x**2, x, {y: math.nan}))),
    ("from_callable, not callable", lambda: from_callable(3, dim=2)),
    ("from_callable, one array", arrays(lambda p: p)),
    ("from_callable, scalar energy", arrays(lambda p: (p.sum(), p))),
    ("from_callable, gradient transposed", arrays(lambda p: (p[:, 0], p.T))),
    ("from_callable, complex gradient", arrays(lambda p: (p[:, 0], p + 0j))),
    ("from_callable, ragged gradient", arrays(lambda p: (p[:, 0], [[1.0], [1.0, 2.0]]))),
    ("from_callable, nan gradient at the start", arrays(lambda p: (p[:, 0], p * math.nan))),
    (
        "from_callable, divergence by nan",
        lambda: sample(
            from_callable(lambda p: (np.where(np.abs(p[:, 0]) < 0.5, 0.0, math.nan), 0.0 * p), dim=2, name="mine"),
            SGLD,
            n_steps=1000,
            seed=0,
            init=[0.0, 0.0],
        ),
    ),
    (
        "check_gradient, wrong sign",
        lambda: check_gradient(from_callable(lambda p: (normal(p)[0], -p), dim=2, name="mine")),
    ),
    (
        "check_gradient, coordinates exchanged",
        lambda: check_gradient(
            from_callable(
                lambda p: (mixtures.cosine25().evaluate(p)[0], mixtures.cosine25().evaluate(p)[1][:, ::-1]),
                dim=2,
                name="mine",
            )
        ),
    ),
    (
        "check_gradient, coordinate missing",
        lambda: check_gradient(from_callable(lambda p: (normal(p)[0], p * [1.0, 0.0]), dim=2, name="mine")),
    ),
    (
        "check_gradient, noise",
        lambda: check_gradient(
            from_callable(
                lambda p: (normal(p)[0] + 1e-3 * np.random.default_rng().normal(size=len(p)), p), dim=2, name="mine"
            )
        ),
    ),
]
