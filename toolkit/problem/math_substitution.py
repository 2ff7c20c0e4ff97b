"""Compile a plain function of floats with our functions in place of ``math``'s, so that loops of it vectorise."""

import builtins
import functools
import math
import types as python_types
from collections.abc import Callable
from typing import Any

import numpy as np

from .._compiler.code_walk import instructions_in, names_in
from .._compiler.decorators import inlined
from .._compiler.lowering import WideCompiler, njit_unwrapped
from .._compiler.numba_private import Dispatcher
from ..maths import elementary, powers, special

Function = python_types.FunctionType
PACKAGE = __name__.partition(".")[0]


@inlined
def where(condition, if_true, if_false):
    """``np.where`` of three scalars."""
    return if_true if condition else if_false


@inlined
def maximum(a, b):
    """The larger of ``a`` and ``b``; nan where either is."""
    return a if a >= b or a != a else b


@inlined
def minimum(a, b):
    """The smaller of ``a`` and ``b``; nan where either is."""
    return a if a <= b or a != a else b


IN_BOTH = {
    "exp": elementary.exp, "log": elementary.log, "expm1": special.expm1, "log1p": special.log1p, "sqrt": math.sqrt,
    "sin": special.sin, "cos": special.cos, "tan": special.tan,
    "sinh": special.sinh, "cosh": special.cosh, "tanh": special.tanh,
}  # fmt: skip
INVERSE = {
    "asin": special.asin, "acos": special.acos, "atan": special.atan, "atan2": special.atan2,
    "asinh": special.asinh, "acosh": special.acosh, "atanh": special.atanh,
}  # fmt: skip
OURS = {
    math: IN_BOTH | INVERSE,
    np: IN_BOTH
    | {name.replace("a", "arc", 1): function for name, function in INVERSE.items()}
    | {"where": where, "maximum": maximum, "minimum": minimum, "abs": abs, "absolute": abs},
}


@functools.cache
def replacements(*, products: bool = False) -> dict[int, Any]:
    """Replacements of functions of ``math`` and ``numpy``, by identity; products: of their powers alone."""
    by_id: dict[int, Any] = {id(pow): powers.power} if products else {}
    for module, functions in (powers.FUNCTIONS if products else OURS).items():
        by_id |= {id(getattr(module, name)): ours for name, ours in functions.items() if hasattr(module, name)}
    return by_id


@functools.lru_cache(maxsize=4096)
def raises(code: python_types.CodeType | None) -> bool:
    """Whether ``code`` (None: of no Python function) or a function inside it has a statement that raises."""
    return code is not None and any(i.opname == "RAISE_VARARGS" for i in instructions_in(code))


def rebind(
    function: Callable[..., Any],
    *,
    allocates: bool,
    ours: bool,
    products: bool = False,
    done: dict[Any, Any] | None = None,
) -> Any:
    """A copy of ``function`` for Numba to inline; ours: with our maths, also in the user's functions that it calls.

    products: instead of our maths, integer powers of complex numbers become products (``powers``).
    The copy has its own globals and closure. What it reads from them is frozen when it is compiled, as always in Numba.
    Raises TypeError where one of the functions raises.
    """
    done = {} if done is None else done
    if function in done:
        return done[function]
    plain: Any = function.py_func if isinstance(function, Dispatcher) else function
    if raises(plain.__code__):
        raise TypeError(
            f"{plain.__name__} must not raise or assert, which compiled code cannot pass on; where there is no "
            "density, return an energy of math.inf"
        )
    space: dict[str, Any] = {"__builtins__": builtins, "__name__": plain.__module__}
    cells = tuple(python_types.CellType() for _ in plain.__closure__ or ())
    code = powers.with_pairs(plain.__code__) if products else plain.__code__
    bound = Function(code, space, plain.__name__, plain.__defaults__, cells)
    bound.__qualname__, bound.__module__ = plain.__qualname__, plain.__module__
    bound.__kwdefaults__ = plain.__kwdefaults__
    compiled = done[function] = njit_unwrapped(WideCompiler, forceinline=True, error_model="numpy", _nrt=allocates)(
        bound
    )
    # After ``done`` is set, because a function may call itself.
    names = names_in(plain.__code__)
    replace = functools.partial(substituted, names=names, allocates=allocates, ours=ours, products=products, done=done)
    space |= {"pow": powers.power} if products and "pow" in names else {}
    space |= {name: replace(plain.__globals__[name]) for name in sorted(names & plain.__globals__.keys())}
    for cell, given in zip(cells, plain.__closure__ or (), strict=True):
        cell.cell_contents = replace(given.cell_contents)
    return compiled


def substituted(
    value: Any, *, names: set[str], allocates: bool, ours: bool, products: bool, done: dict[Any, Any]
) -> Any:
    """``value`` or its replacement: our maths for ``math``'s, products for powers, copies of the user's functions.

    names: those that the function looks up. The copy of a module has no other members: the cache on disk describes all.
    """
    if isinstance(value, python_types.ModuleType):
        replaced = (powers.FUNCTIONS if products else OURS if ours else {}).get(value, {})
        if not replaced and not is_users(value.__name__):
            return value
        copy = python_types.ModuleType(value.__name__)
        for name in sorted(names & (vars(value).keys() | replaced.keys())):
            member = replaced[name] if name in replaced else vars(value)[name]
            if not replaced and not isinstance(member, python_types.ModuleType):
                member = substituted(member, names=names, allocates=allocates, ours=ours, products=products, done=done)
            vars(copy)[name] = member
        return copy
    if (ours or products) and id(value) in replacements(products=products):
        return replacements(products=products)[id(value)]
    if isinstance(value, Function | Dispatcher) and is_users(value.__module__):
        return rebind(value, allocates=allocates, ours=ours, products=products, done=done)
    return value


def is_users(module: str | None) -> bool:
    """Whether a function of ``module`` is compiled with the function that calls it."""
    return str(module).partition(".")[0] not in (PACKAGE, "numpy", "numba", "math")
