"""Targets from SymPy expressions: checked here, written out as block functions by ``targets.symbolic.source``."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from toolkit.errors import check_number, optional, shown
from toolkit.problem import Target, Truth

from .expressions import check_parts
from .source import block_of


def from_sympy(
    energy: Any,
    symbols: Any,
    parameters: Mapping[Any, float] | None = None,
    *,
    name: str = "from_sympy",
    truth: Truth | None = None,
) -> Target:
    """Target of the SymPy expression ``energy`` = U, with U's gradient by SymPy, as one compiled block function.

    symbols: the coordinates, in order. parameters: symbol → number; they become ``Target.parameters`` in this order,
    and other numbers compile nothing, nor does an equal expression. All symbols are taken as real, whatever their
    assumptions. A finite ``Sum`` or ``Product`` is written out. Subexpressions are shared between energy and gradient,
    those without coordinates leave the loop over lanes, and log Σ a exp(b) is taken about the largest b, so that it
    neither under- nor overflows. ``target.energy_gradient.__doc__`` holds the formula, and
    ``inspect.getsource(target.energy_gradient)`` the code.

    The gradient is that almost everywhere, so jumps of U do not enter it. At a kink: the mean of both sides for Abs,
    Max, Min and sign, for Piecewise the piece whose condition holds there; nan where no condition holds, and where
    real arithmetic ends (log and non-integer powers of negative numbers).
    Accuracy: each function to some 3 ulp of its value or, sin and cos, 2.5e-16; sums may cancel as written.
    Raises ImportError without SymPy (extra ``symbolic``); TypeError or ValueError naming what is wrong for an energy
    that is no real scalar expression of exactly these symbols and parameters, or holds a function not known here.
    """
    sympy = optional("sympy", "symbolic")
    if not isinstance(energy, sympy.Expr) or getattr(energy, "is_Matrix", False):
        raise TypeError(
            f"energy must be a scalar SymPy expression, got {shown(energy)} of type {type(energy).__name__}"
        )
    coordinates = check_symbols(sympy, symbols)
    numbers = check_parameters(sympy, parameters, coordinates)
    check_parts("energy", energy, [*coordinates, *numbers])
    try:
        return target_of(sympy, energy, coordinates, numbers, name, truth)
    except RecursionError:
        raise ValueError("energy must be nested less deeply: SymPy's own functions call themselves too often") from None


def target_of(
    sympy: Any, energy: Any, coordinates: list[Any], numbers: dict[Any, float], name: str, truth: Truth | None
) -> Target:
    """The target of an energy whose parts are SymPy's own. Raises as ``from_sympy``."""
    if energy.has(sympy.MatrixSymbol):
        raise TypeError(
            f"energy must be a scalar SymPy expression, got {shown(energy)} of type {type(energy).__name__}"
        )
    energy = energy.replace(lambda e: isinstance(e, sympy.Sum | sympy.Product), lambda e: e.doit())
    unevaluated = energy.atoms(sympy.Integral, sympy.Derivative, sympy.Limit, sympy.Sum, sympy.Product, sympy.Subs)
    if unevaluated:
        raise ValueError(f"energy must be evaluated, but holds {min(map(str, unevaluated))}: call .doit() on it first")
    real = {s: sympy.Symbol(f"x{i}", real=True) for i, s in enumerate(coordinates)}
    real |= {s: sympy.Symbol(f"p{i}", real=True) for i, s in enumerate(numbers)}
    unknown = energy.free_symbols - real.keys()
    if unknown:
        raise ValueError(
            f"energy contains {', '.join(sorted(map(str, unknown)))}, which is among neither symbols nor parameters, "
            f"got {tuple(coordinates)!s:.100} and {dict(numbers)!s:.100}"
        )
    formula = energy.xreplace(real)
    check_parts("energy", formula)
    if formula.has(sympy.I) or formula.is_extended_real is False:
        raise ValueError(f"energy must be real, but {energy} is complex")
    if formula.has(sympy.nan, sympy.zoo, sympy.oo, -sympy.oo):
        raise ValueError(f"energy must be finite, got {energy}; for walls, constrain the target to a domain")
    for i, symbol in enumerate(coordinates):
        if real[symbol] not in formula.free_symbols:
            raise ValueError(f"energy does not depend on symbols[{i}] = {symbol}, so exp(−U) has no finite integral")
    unused = [str(symbol) for symbol in numbers if real[symbol] not in formula.free_symbols]
    if unused:
        raise ValueError(f"parameters must be symbols of energy = {energy!s:.200}, got {', '.join(unused)} too")
    values = np.array(list(numbers.values()), np.float64)
    try:
        block = block_of(formula, len(coordinates))
    except (TypeError, ValueError) as error:  # which speaks of x0 and p0
        original_names = {str(inner): str(symbol) for symbol, inner in real.items()}
        message = re.sub(r"\b[xp]\d+\b", lambda found: original_names.get(found[0], found[0]), str(error))
        raise type(error)(message) from error
    names = tuple(map(str, coordinates))  # those of symbols that differ in their assumptions alone are equal
    return Target(
        name, len(coordinates), block, values, truth=truth, names=names if len(set(names)) == len(names) else None
    )


def check_symbols(sympy: Any, symbols: Any) -> list[Any]:
    """The coordinates: distinct symbols, at least one."""
    given = [symbols] if isinstance(symbols, sympy.Symbol) else symbols
    if not isinstance(given, Sequence) or isinstance(given, str) or len(given) == 0:
        raise TypeError(
            f"symbols must be a sequence of SymPy symbols, got {shown(symbols)} of type {type(symbols).__name__}"
        )
    for i, symbol in enumerate(given):
        if not isinstance(symbol, sympy.Symbol):
            raise TypeError(f"symbols[{i}] must be a SymPy symbol, got {shown(symbol)} of type {type(symbol).__name__}")
        if symbol in given[:i]:
            raise ValueError(f"symbols must be distinct, got {symbol} twice")
    return list(given)


def check_parameters(sympy: Any, parameters: Any, coordinates: list[Any]) -> dict[Any, float]:
    """The parameters' numbers, finite, of symbols that are no coordinates."""
    if parameters is None:
        return {}
    if not isinstance(parameters, Mapping):
        raise TypeError(f"parameters must map symbols to numbers, got {shown(parameters)}")
    numbers = {}
    for symbol, value in parameters.items():
        if not isinstance(symbol, sympy.Symbol):
            raise TypeError(f"parameters must map SymPy symbols to numbers, got the key {shown(symbol)}")
        if symbol in coordinates:
            raise ValueError(f"parameters must not hold coordinates, got {symbol}")
        exact = isinstance(value, sympy.Expr) and value.is_number and value.is_extended_real
        try:
            number = float(value) if exact else value
        except OverflowError:
            number = math.inf
        numbers[symbol] = check_number(f"parameters[{symbol}]", number)
    return numbers
