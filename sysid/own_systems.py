"""A user's own system, from a function or from SymPy expressions, checked before anything is solved with it."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from targets.writing import written
from toolkit.extras import optional
from toolkit.rebinding import raises

from .slopes import checked_rhs
from .system import System
from .terms import check_equations

Array = NDArray[np.float64]
STEP = 1e-40
AGREEMENT = 1e-4  # of the derivative by a complex step with central differences, which are right to some 1e-9
FUNCTIONS = {"sin", "cos", "tan", "exp", "log", "sinh", "cosh", "tanh"}


def own(
    function: Callable[..., Any],
    *,
    states: Any,
    parameters: Any,
    usual: Any,
    start: Any,
    name: str = "",
    time_unit: str = "",
    units: Any = (),
    terms: Any = None,
    invariant: Callable[[Array, Array], Array] | None = None,
    lyapunov: float | None = None,
    source: str = "",
) -> System:
    """The system dx/dt = function(t, x, p), with the fields of ``System``, checked at ``start`` and ``usual``.

    function: of a number t and tuples x and p, to a tuple of as many numbers as ``states``. It is compiled for floats
    and for complex numbers, and its derivatives by complex steps are compared with differences.
    terms, where given, are compared with it at ``start`` and points about it.
    Raises TypeError where it does not compile or may raise; ValueError where it is not finite at ``start``, or is not
    analytic there (abs, min, max, comparisons of states), saying in which slope and by what, and where terms are of
    names unknown, or another function's.
    """
    made = System(
        name or getattr(function, "__name__", "system"), states, parameters, function, usual, start,
        time_unit, units, terms, invariant, lyapunov, source,
    )  # fmt: skip
    if raises(getattr(getattr(function, "py_func", function), "__code__", None)):
        raise TypeError(f"function must not raise or assert, which a solver cannot pass on, but {made.name} does")
    check_derivatives(made)
    if made.terms is not None:
        check_equations(made, slopes_at)
    return made


def slopes_at(system: System, point: NDArray[Any], time: float = 0.0) -> NDArray[Any]:
    """The right-hand side at ``point`` = states and parameters, compiled, for floats or complex numbers."""
    number = types.complex128 if np.iscomplexobj(point) else types.float64
    compiled = checked_rhs(system.rhs, system.dim, system.n_parameters, number)
    values = point.tolist()
    return np.array(compiled(time, tuple(values[: system.dim]), tuple(values[system.dim :])))


def check_derivatives(system: System) -> None:
    """Raise TypeError or ValueError where the right-hand side does not compile, is not finite, or is not analytic."""
    for number in (types.float64, types.complex128):
        checked_rhs(system.rhs, system.dim, system.n_parameters, number)
    point = np.concatenate([system.start, system.usual])
    names = system.states + system.parameters
    here = slopes_at(system, point)
    bad = np.flatnonzero(~np.isfinite(here))
    if bad.size:
        raise ValueError(
            f"function must be finite at start = {system.start.tolist()} and usual = {system.usual.tolist()}, but "
            f"d{system.states[bad[0]]}/dt is {here[bad[0]]}"
        )
    for k, name in enumerate(names):
        move = np.zeros(point.size)
        move[k] = 6e-6 * max(abs(point[k]), 1e-3)
        differences = (slopes_at(system, point + move) - slopes_at(system, point - move)) / (2.0 * move[k])
        exact = slopes_at(system, point + STEP * 1j * (np.arange(point.size) == k)).imag / STEP
        scale = np.abs(differences) + 1e-6 * (np.abs(here) / max(abs(point[k]), 1e-3) + 1.0)
        wrong = np.flatnonzero(~(np.abs(exact - differences) <= AGREEMENT * scale))
        if wrong.size:
            e = int(wrong[0])
            raise ValueError(
                f"function must be analytic at start and usual, but the derivative of d{system.states[e]}/dt with "
                f"respect to {name} is {exact[e]:.6g} by a complex step and {differences[e]:.6g} by differences. "
                "Write abs(x) as np.sqrt(x*x), min, max and comparisons of states as smooth functions of them, and "
                "use sin, cos, exp, log, sqrt of NumPy"
            )


def from_sympy(
    expressions: Mapping[Any, Any],
    *,
    parameters: Any,
    usual: Any,
    start: Any,
    time: Any = None,
    name: str = "from_sympy",
    time_unit: str = "",
    units: Any = (),
    terms: Any = None,
    invariant: Callable[[Array, Array], Array] | None = None,
    lyapunov: float | None = None,
    source: str = "",
) -> System:
    """The system of SymPy expressions: state (a Symbol) → its slope, of these states, ``parameters`` and ``time``.

    parameters: Symbols. time: the Symbol of time, where a slope depends on it. The rest: as for ``own``, which checks
    the system. Functions that are known: sin, cos, tan, exp, log, sqrt, sinh, cosh, tanh and powers.
    ``inspect.getsource(system.rhs)`` is the code.
    Raises ImportError without SymPy (extra ``symbolic``); TypeError or ValueError naming what is wrong.
    """
    sympy = optional("sympy", "symbolic")
    if not isinstance(expressions, Mapping) or not expressions:
        raise TypeError(f"expressions must map states to their slopes, got {expressions!r:.200}")
    words = {symbol: f"x[{d}]" for d, symbol in enumerate(expressions)}
    given = [parameters] if isinstance(parameters, sympy.Symbol) else list(parameters)
    for symbol in [*expressions, *given, *([] if time is None else [time])]:
        if not isinstance(symbol, sympy.Symbol):
            raise TypeError(f"states, parameters and time must be SymPy symbols, got {symbol!r}")
    for k, symbol in enumerate(given):
        if symbol in words:
            raise ValueError(f"parameters must be distinct and no states, got {symbol}")
        words[symbol] = f"p[{k}]"
    if time is not None:
        words[time] = "t"
    formulas = [sympy.sympify(formula) for formula in expressions.values()]
    for state, formula in zip(expressions, formulas, strict=True):
        unknown = sorted(str(s) for s in getattr(formula, "free_symbols", set()) - set(words))
        if not isinstance(formula, sympy.Expr) or unknown:
            raise ValueError(
                f"expressions[{state}] must be of the states, parameters and time, got {formula}"
                + (f", which has {', '.join(unknown)}" if unknown else "")
            )
    shared, reduced = sympy.cse(formulas, symbols=sympy.numbered_symbols("shared", cls=sympy.Dummy))
    lines = ["def rhs(t, x, p):"]
    for k, (symbol, formula) in enumerate(shared):
        lines.append(f"    v{k} = {text_of(sympy, formula, words)}")
        words[symbol] = f"v{k}"
    slopes = "".join(f"{text_of(sympy, formula, words)}, " for formula in reduced)
    text = "\n".join([*lines, f"    return ({slopes.strip()})", ""])
    rhs = written("system", "rhs", text, {"np": np, "__name__": "generated"})
    return own(
        rhs, states=[str(s) for s in expressions], parameters=[str(s) for s in given], usual=usual,
        start=start, name=name, time_unit=time_unit, units=units, terms=terms, invariant=invariant, lyapunov=lyapunov,
        source=source,
    )  # fmt: skip


def text_of(sympy: Any, formula: Any, words: Mapping[Any, str]) -> str:
    """An expression in Python, with integer powers as products: those of complex numbers would be logarithms."""
    if formula in words:
        return words[formula]
    if formula.is_number:
        if not formula.is_finite or not formula.is_real:
            raise ValueError(f"expressions must hold finite real numbers only, got {formula}")
        return f"({float(formula)!r})"
    parts = [text_of(sympy, part, words) for part in formula.args]
    if formula.is_Add:
        return f"({' + '.join(parts)})"
    if formula.is_Mul:
        return f"({'*'.join(parts)})"
    if formula.is_Pow:
        power = formula.args[1]
        if power.is_Integer and abs(int(power)) <= 16:
            product = "*".join([parts[0]] * abs(int(power)))
            return f"({product})" if power > 0 else f"(1.0/({product}))"
        if power in (sympy.S.Half, -sympy.S.Half):
            return f"np.sqrt({parts[0]})" if power > 0 else f"(1.0/np.sqrt({parts[0]}))"
        return f"np.exp({parts[1]}*np.log({parts[0]}))"
    called = type(formula).__name__
    if called in FUNCTIONS and len(parts) == 1:
        return f"np.{called}({parts[0]})"
    known = ", ".join(sorted(FUNCTIONS))
    raise ValueError(f"expressions must be of sums, products, powers and {known}, got {formula}")
