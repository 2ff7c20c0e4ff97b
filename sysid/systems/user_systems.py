"""Systems from a user's function or SymPy expressions, checked when they are made."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from targets.symbolic.expressions import check_parts
from targets.symbolic.source import compile_source
from toolkit._compiler import names_in
from toolkit.errors import check_number, check_text, is_sequence, optional, shown
from toolkit.problem import raises

from ..arrays import Array, Bools
from .inputs import driven
from .system import System, check_equations, checked_rhs, name_of_function

COMPLEX_STEP = 1e-40
AGREEMENT = 1e-4  # of the derivative by a complex step with central differences, which are right to some 1e-9
MAX_SIGN_FLIPS = 16  # states whose sign is changed one at a time
NOT_ANALYTIC = {"abs", "absolute", "sign", "real", "imag", "conj", "conjugate", "angle", "maximum", "minimum"}
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
    inputs: Any = (),
) -> System:
    """The system dx/dt = function(t, x, p), with the fields of ``System``, checked at ``start`` and ``usual``.

    function: of a number t and tuples x and p, to a tuple of as many numbers as ``states``; where there are ``inputs``,
    known at each time, their names, it has a fourth argument, the tuple u of their values. It is compiled for floats
    and for complex numbers, and its derivatives by complex steps are compared with differences, also at states of the
    other sign where it is finite there, with inputs of 1. Powers with integer exponents (x**3, x**n, pow,
    np.power) are products, whose derivatives are exact at states of both signs; other powers are those of real numbers,
    nan where x < 0.
    terms, where given, are compared with it at ``start`` and points about it. name: "": the function's, or "model"
    where it has none, as a lambda.
    Raises TypeError where it does not compile or may raise; ValueError where it is not finite at ``start``, or is not
    analytic there or at states of another sign (abs, sign, min, max, comparisons of states), saying in which slope and
    by what, and where terms are of names unknown, or another function's.
    """
    made = System(
        check_text("name", name) or name_of_function(function, "model"), states, parameters, function, usual, start,
        time_unit, units, terms, invariant, lyapunov, source, inputs,
    )  # fmt: skip
    if raises(getattr(getattr(function, "py_func", function), "__code__", None)):
        raise TypeError(f"function must not raise or assert, which a solver cannot pass on, but {made.name} does")
    check_derivatives(made)
    if made.terms is not None:
        check_equations(made, slopes_at)
    return made


def slopes_at(system: System, point: NDArray[Any], time: float = 0.0) -> NDArray[Any]:
    """The right-hand side at ``point`` = states and parameters, real or complex, with inputs of 1, compiled."""
    number = types.complex128 if np.iscomplexobj(point) else types.float64
    plain = driven(system)
    compiled = checked_rhs(plain.rhs, plain.dim, plain.n_parameters, number)
    values = np.append(point, plain.usual[system.n_parameters :]).tolist()
    return np.array(compiled(time, tuple(values[: system.dim]), tuple(values[system.dim :])))


def check_derivatives(system: System) -> None:
    """Raise TypeError or ValueError where the right-hand side does not compile, is not finite, or is not analytic.

    At ``start`` and ``usual``, and about them with states of both signs, where it is finite there.
    """
    plain = driven(system)
    for number in (types.float64, types.complex128):
        checked_rhs(plain.rhs, plain.dim, plain.n_parameters, number)
    point = np.concatenate([system.start, system.usual])
    slopes = slopes_at(system, point)
    infinite = np.flatnonzero(~np.isfinite(slopes))
    if infinite.size:
        raise ValueError(
            f"function must be finite at start = {system.start.tolist()} and usual = {system.usual.tolist()}, but "
            f"d{system.states[infinite[0]]}/dt is {slopes[infinite[0]]}"
        )
    message = disagreement(system, point, must_be_smooth=True)
    if message:
        raise ValueError(f"function must be analytic at start and usual, but {message}")
    check_analytic(system, points_about(system))


def check_analytic(system: System, points: Array) -> None:
    """Raise ValueError at the first of ``points`` (n, dim + n_parameters) where derivatives are not differences'."""
    for point in points:
        try:
            message = disagreement(system, point, time=1.0)
        except ZeroDivisionError:  # by a complex 0, of Numba
            continue
        if message:
            x, p = point[: system.dim].tolist(), point[system.dim :].tolist()
            raise ValueError(f"function must be analytic, also at x = {x} and p = {p}, but {message}")


def points_about(system: System) -> Array:
    """Points (n, dim + n_parameters) of states with either sign, and parameters of which none is 0."""
    size = float(np.abs(system.start).max()) or 1.0
    x = np.where(system.start == 0.0, size, system.start)
    flips = 1.0 - 2.0 * np.eye(system.dim)[:MAX_SIGN_FLIPS]
    p = np.where(system.usual == 0.0, 1.0, system.usual)
    states = np.concatenate([[x, -x, 0.7 * x, -0.7 * x], 0.9 * x * flips])
    return np.concatenate([states, np.tile(p, (len(states), 1))], axis=1)


def disagreement(system: System, point: Array, *, time: float = 0.0, must_be_smooth: bool = False) -> str:
    """A message of the first slope whose derivatives by a complex step and by differences differ at ``point``; or "".

    Differences are trusted where they are finite and change little with their length; must_be_smooth: always.
    """
    wrong = wrong_derivative(lambda at: slopes_at(system, at, time), point, must_be_smooth=must_be_smooth)
    if wrong is None:
        return ""
    name = (system.states + system.parameters)[wrong.number]
    return (
        f"the derivative of d{system.states[wrong.value]}/dt with respect to {name} is {wrong.exact:.6g} by a complex "
        f"step and {wrong.difference:.6g} by differences{likely_cause(system.rhs, wrong.difference)}"
    )


class WrongDerivative(NamedTuple):
    """A derivative by a complex step that is not that of differences: of which value, with respect to which number."""

    value: int
    number: int
    exact: float
    difference: float


def wrong_derivative(
    evaluate: Callable[[NDArray[Any]], NDArray[Any]], point: Array, *, must_be_smooth: bool = False
) -> WrongDerivative | None:
    """The first wrong derivative at ``point`` (n,) of a function of it, real or complex, to several values; or None."""
    values = evaluate(point)
    sizes = np.maximum(np.abs(point), 1e-3)
    for k in range(point.size):
        unit = np.arange(point.size) == k
        with np.errstate(all="ignore"):
            differences, longer = (
                central_difference(evaluate, point, unit * factor * sizes[k]) for factor in (6e-6, 1.2e-5)
            )
            exact = evaluate(point + COMPLEX_STEP * 1j * unit).imag / COMPLEX_STEP
            if must_be_smooth:
                scale = np.abs(differences) + 1e-6 * (np.abs(values) / sizes[k] + 1.0)
                wrong = ~(np.abs(exact - differences) <= AGREEMENT * scale)
                if (wrong & np.isnan(differences)).any():
                    right = right_at_edge(evaluate, point, unit * sizes[k], values, exact)
                    wrong &= ~(np.isnan(differences) & right)
            else:
                wrong = np.isfinite(values) & derivatives_differ(
                    exact, differences, longer, point, np.abs(values).max() / sizes[k]
                )
        if wrong.any():
            e = int(np.flatnonzero(wrong)[0])
            return WrongDerivative(e, k, float(exact[e]), float(differences[e]))
    return None


def derivatives_differ(exact: Any, near: Any, far: Any, point: Array, relative: float) -> Any:
    """Whether a slope at ``point`` by a complex step is not that of central differences, ``far`` over twice the length.

    relative: the function's size there over the point's, whose rounding differences show. Where they change with their
    length, or are not finite, they say nothing.
    """
    doubt = 20.0 * np.abs(far - near) + 1e-6 * relative + 1e-9 * (1.0 + np.abs(point).max())
    return np.isfinite(doubt) & ~(np.abs(exact - near) <= AGREEMENT * np.abs(near) + doubt)


def central_difference(evaluate: Callable[[NDArray[Any]], NDArray[Any]], point: Array, move: Array) -> Array:
    """The change of a function's values with one of its numbers, by a central difference over ±move, of one entry."""
    after, before = evaluate(point + move), evaluate(point - move)
    return np.asarray((after - before) / (2.0 * move.sum()))


EDGE_LENGTHS = (6e-6, 6e-4, 6e-2)  # of one-sided differences, relative to the point, in geometric progression
EDGE_AGREEMENT = 0.1  # of the limit of one-sided differences with the derivative, relative to the nearest difference
INNER_LENGTH = 0.1  # of central differences inside the edge, relative to the distance from 0
INNER_AGREEMENT = 1e-3  # of their extrapolation, whose own error is of order INNER_LENGTH⁴


def right_at_edge(
    evaluate: Callable[[NDArray[Any]], NDArray[Any]], point: Array, unit: Array, values: Array, exact: Array
) -> Bools:
    """Whether derivatives ``exact`` at the edge of a function's domain, or close to it, are the limits of differences.

    unit: the direction, as long as the number is large. Inside the edge 0 central differences over a part of the
    distance to 0 decide. At the edge one-sided differences do: that of x**p at 0 over a length h is of order
    h**(p − 1), which converges to the derivative where p > 1, and diverges where p < 1. Three lengths in geometric
    progression give the limit of a power law by Aitken's formula.
    """
    distance = abs(float(point[unit > 0.0][0]))
    if distance > 0.0:
        move = np.asarray(INNER_LENGTH * distance * (unit > 0.0))
        wide, narrow = (central_difference(evaluate, point, np.asarray(part * move)) for part in (1.0, 0.5))
        inner = (4.0 * narrow - wide) / 3.0
        doubt = INNER_AGREEMENT * np.abs(inner) + 1e-14 * np.abs(values).max() / move.sum()
        if np.isfinite(inner).all():
            return np.asarray(np.abs(exact - inner) <= doubt)
    for side in (1.0, -1.0):
        near, middle, far = (
            one_sided_difference(evaluate, point, side * length * unit, values) for length in EDGE_LENGTHS
        )
        if np.isfinite(near).all():
            break
    scale = np.abs(near) + 1e-5 * (np.abs(values) / unit.sum() + 1.0)
    agrees = np.abs(exact - near) <= AGREEMENT * scale
    limit = near - (near - middle) ** 2 / (near - 2.0 * middle + far)
    gap = np.abs(near - exact)
    converges = (gap < np.abs(far - exact)) & (np.abs(limit - exact) <= EDGE_AGREEMENT * gap)
    return np.asarray(np.isfinite(exact) & (agrees | converges))


def one_sided_difference(
    evaluate: Callable[[NDArray[Any]], NDArray[Any]], point: Array, move: Array, values: Array
) -> Array:
    """The change of a function's ``values`` at ``point`` with one number, by a difference of order 2 over 2 move."""
    after, beyond = evaluate(point + move), evaluate(point + 2.0 * move)
    return np.asarray((4.0 * after - beyond - 3.0 * values) / (2.0 * move.sum()))


def likely_cause(function: Callable[..., Any], difference: float) -> str:
    """The likely cause of differing derivatives, and what to write instead; the end of a message."""
    if not np.isfinite(difference):
        return (
            ": it is not finite right beside this point, as roots, logarithms and powers below 1 at 0 are not. Let "
            "start be inside the function's domain, as 1e-6 in place of 0"
        )
    called = sorted(names_called(function) & NOT_ANALYTIC)
    return (
        (f", as of {', '.join(called)}, which it calls" if called else "")
        + ". Write abs(x) as np.sqrt(x*x), min, max and comparisons of states as smooth functions of them, and "
        "use sin, cos, exp, log, sqrt of NumPy"
    )


def names_called(function: Any, seen: frozenset[Any] = frozenset()) -> set[str]:
    """The names that a function looks up, and the functions it calls."""
    plain = getattr(function, "py_func", function)
    code = getattr(plain, "__code__", None)
    if code is None or code in seen:
        return set()
    found = set(names_in(code))
    values = [plain.__globals__[name] for name in found & plain.__globals__.keys()]
    values += [cell.cell_contents for cell in plain.__closure__ or ()]
    return found.union(*(names_called(value, seen | {code}) for value in values))


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
    inputs: Any = (),
) -> System:
    """The system of SymPy expressions: state (a Symbol) → its slope, of states, ``parameters``, ``time``, ``inputs``.

    Slopes are expressions or numbers; texts are refused, because SymPy reads a text by running it as Python code.
    parameters, inputs: Symbols. time: the Symbol of time, where a slope depends on it. The rest: as for ``own``, which
    checks the system. Functions that are known: sin, cos, tan, exp, log, sqrt, sinh, cosh, tanh and powers.
    ``inspect.getsource(system.rhs)`` is the code.
    Raises ImportError without SymPy (extra ``symbolic``); TypeError or ValueError naming what is wrong.
    """
    sympy = optional("sympy", "symbolic")
    if not isinstance(expressions, Mapping) or not expressions:
        raise TypeError(f"expressions must map states to their slopes, got {shown(expressions)}")
    if not isinstance(parameters, sympy.Symbol) and not is_sequence(parameters):
        raise TypeError(f"parameters must be a sequence of SymPy symbols, got {shown(parameters)}")
    if not isinstance(inputs, sympy.Symbol) and not is_sequence(inputs):
        raise TypeError(f"inputs must be a sequence of SymPy symbols, got {shown(inputs)}")
    given = [parameters] if isinstance(parameters, sympy.Symbol) else list(parameters)
    known = [inputs] if isinstance(inputs, sympy.Symbol) else list(inputs)
    for symbol in [*expressions, *given, *known, *([] if time is None else [time])]:
        if not isinstance(symbol, sympy.Symbol):
            raise TypeError(f"states, parameters, inputs and time must be SymPy symbols, got {shown(symbol)}")
    words = {symbol: f"x[{d}]" for d, symbol in enumerate(expressions)}
    for k, symbol in enumerate(given):
        if symbol in words:
            raise ValueError(f"parameters must be distinct and no states, got {shown(symbol)}")
        words[symbol] = f"p[{k}]"
    for k, symbol in enumerate(known):
        if symbol in words:
            raise ValueError(f"inputs must be distinct and no states or parameters, got {shown(symbol)}")
        words[symbol] = f"u[{k}]"
    if time is not None:
        words[time] = "t"
    real = {symbol: sympy.Dummy() for symbol in words}  # the names of the user's are not printed
    try:
        formulas = [expression_of(sympy, state, formula, real) for state, formula in expressions.items()]
        named = {real[symbol]: word for symbol, word in words.items()}
        text = source_of(sympy, formulas, named, "(t, x, p, u)" if known else "(t, x, p)")
    except RecursionError:
        raise ValueError(
            "expressions must be nested less deeply: SymPy's own functions call themselves too often"
        ) from None
    rhs = compile_source("system", "rhs", text, {"np": np, "__name__": "generated"})
    return own(
        rhs, states=[s.name for s in expressions], parameters=[s.name for s in given], usual=usual,
        start=start, name=name, time_unit=time_unit, units=units, terms=terms, invariant=invariant, lyapunov=lyapunov,
        source=source, inputs=[s.name for s in known],
    )  # fmt: skip


def expression_of(sympy: Any, state: Any, formula: Any, real: Mapping[Any, Any]) -> Any:
    """A slope with the symbols ``real`` in place of the user's, which are of SymPy's own classes throughout."""
    label = f"expressions[{state.name}]"
    if isinstance(formula, int | float | np.integer | np.floating) and not isinstance(formula, bool | np.bool_):
        return sympy.Float(check_number(label, formula))
    if not isinstance(formula, sympy.Expr):
        hint = ": text is not read, as SymPy would run it as code" if isinstance(formula, str) else ""
        raise TypeError(
            f"{label} must be a SymPy expression or a number, got {shown(formula)} of type "
            f"{type(formula).__name__}{hint}"
        )
    check_parts(label, formula, real)
    unknown = sorted(s.name for s in formula.free_symbols - set(real))
    if unknown:
        raise ValueError(
            f"{label} must be of the states, parameters and time, got {shown(formula)}, which has "
            f"{', '.join(unknown)[:200]}"
        )
    replaced = formula.xreplace(dict(real))
    check_parts(label, replaced)
    return replaced


def source_of(sympy: Any, formulas: list[Any], words: dict[Any, str], arguments: str) -> str:
    """Source of the right-hand side, with what occurs twice computed once. Raises ValueError for unknown functions."""
    shared, reduced = sympy.cse(formulas, symbols=sympy.numbered_symbols("shared", cls=sympy.Dummy))
    lines = [f"def rhs{arguments}:"]
    for k, (symbol, formula) in enumerate(shared):
        lines.append(f"    v{k} = {text_of(sympy, formula, words)}")
        words[symbol] = f"v{k}"
    slopes = "".join(f"{text_of(sympy, formula, words)}, " for formula in reduced)
    return "\n".join([*lines, f"    return ({slopes.strip()})", ""])


def text_of(sympy: Any, formula: Any, words: Mapping[Any, str]) -> str:
    """An expression in Python, with integer powers as products: those of complex numbers would be logarithms."""
    if formula in words:
        return words[formula]
    if formula.is_number:
        if not formula.is_finite or not formula.is_real:
            raise ValueError(f"expressions must hold finite real numbers only, got {shown(formula)}")
        try:
            number = float(formula)
        except OverflowError:
            number = np.inf
        if not np.isfinite(number):
            raise ValueError(f"expressions must hold numbers within the range of floats, got {shown(formula)}")
        return f"({number!r})"
    parts = [text_of(sympy, part, words) for part in formula.args]
    if formula.is_Add:
        return f"({' + '.join(parts)})"
    if formula.is_Mul:
        return f"({'*'.join(parts)})"
    if formula.is_Pow:
        power = formula.args[1]
        if power.is_number and power.is_real and float(power).is_integer():
            n = int(float(power))
            if abs(n) > 16:
                return f"({parts[0]}**{n})" if n > 0 else f"(1.0/({parts[0]}**{-n}))"
            product = "*".join([parts[0]] * abs(n))
            return f"({product})" if n > 0 else f"(1.0/({product}))"
        if power in (sympy.S.Half, -sympy.S.Half):
            return f"np.sqrt({parts[0]})" if power > 0 else f"(1.0/np.sqrt({parts[0]}))"
        return f"np.exp({parts[1]}*np.log({parts[0]}))"
    called = type(formula).__name__
    if called in FUNCTIONS and type(formula) is getattr(sympy, called) and len(parts) == 1:
        return f"np.{called}({parts[0]})"
    known = ", ".join(sorted(FUNCTIONS))
    raise ValueError(f"expressions must be of sums, products, powers and {known}, got {shown(formula)}")
