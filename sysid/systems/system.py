"""A dynamical system: a right-hand side of one state, with its names and usual numbers, and whether it compiles."""

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import is_jitted

from toolkit._compiler import HoldsFunctions, bound, inlined, kept
from toolkit.errors import check_number, check_row, check_text, entries, is_a, is_sequence, shown
from toolkit.problem import reason, rebind

from ..arrays import Array

Terms = Mapping[str, Mapping[str, float | str | Mapping[str, float]]]
POINT_SPREAD = 0.1  # of the points at which terms and function are compared
N_POINTS = 4
WAVE_NUMBER = r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[-+]?[0-9]+)?"
AGREEMENT = 1e-4  # of the terms' sizes; names of waves have six digits of their frequency


def check_terms(terms: Any, states: tuple[str, ...], parameters: tuple[str, ...]) -> None:
    """Raise TypeError or ValueError unless ``terms`` is a mapping of these names as in ``System``."""
    for state, row in mapping("terms", terms).items():
        if state not in states:
            raise ValueError(f"terms must name states ({', '.join(states)}), got {shown(state)}")
        for label, coefficient in mapping(f"terms[{state!r}]", row).items():
            where = f"terms[{state!r}][{check_text(f'a name in terms[{state!r}]', label)!r}]"
            for name, factor in factors_of(coefficient).items():
                if name not in ("", *parameters):
                    raise ValueError(f"{where} must name parameters ({', '.join(parameters)}), got {name!r}")
                check_number(where, factor)


def mapping(name: str, value: Any) -> Mapping[Any, Any]:
    """``value`` where it is a mapping. Raises TypeError otherwise."""
    if not is_a(value, Mapping):
        raise TypeError(f"{name} must be a mapping, got {shown(value)} of type {type(value).__name__}")
    return value  # type: ignore[no-any-return]


def factors_of(coefficient: Any) -> Mapping[str, Any]:
    """A term's coefficient as parameter → factor, "" for 1."""
    if isinstance(coefficient, Mapping):
        return coefficient
    return {coefficient: 1.0} if isinstance(coefficient, str) else {"": coefficient}


def check_equations(system: Any, slopes: Callable[..., Any]) -> None:
    """Raise ValueError where a state's terms are not its slope, at the start and points about it, at several times.

    slopes: function of (system, states and parameters, time), with inputs of 1. Equations with terms of a
    user's own are left out, as are points where the function is not finite.
    """
    draws, names = np.random.default_rng(0), system.states + system.inputs
    usual = np.concatenate([system.start, system.usual])
    for k in range(N_POINTS):
        point = usual + (
            POINT_SPREAD * np.maximum(np.abs(usual), 1.0) * draws.standard_normal(usual.size) if k else 0.0
        )
        x = np.append(point[: system.dim], np.ones(len(system.inputs)))
        p = dict(zip(system.parameters, point[system.dim :], strict=True))
        found = slopes(system, point, float(k))
        for state, slope in zip(system.states, found, strict=True):
            values = [term_value(label, names, x) for label in system.terms.get(state, {})]
            if None in values or not np.isfinite(slope):
                continue
            parts = [
                value * sum(factor * p.get(name, 1.0) for name, factor in factors_of(coefficient).items())
                for value, coefficient in zip(values, system.terms.get(state, {}).values(), strict=True)
            ]
            if not abs(sum(parts) - slope) <= AGREEMENT * (np.abs(parts).sum() + abs(slope)):
                raise ValueError(
                    f"terms must be those of function, but d{state}/dt is {sum(parts):.6g} by terms and {slope:.6g} by "
                    f"function, {sum(parts) - slope:+.3g}, at t = {k}, x = {x.tolist()}, p = {list(p.values())}"
                )


def term_value(label: str, states: tuple[str, ...], x: Array) -> float | None:
    """A monomial or wave of ``libraries`` at states and inputs (dim,), by its name; None for other names."""
    if label == "1":
        return 1.0
    factors = list(label) if all(len(state) == 1 for state in states) else label.split(" ")
    if factors and all(factor in states for factor in factors):
        return float(np.prod([x[states.index(factor)] for factor in factors]))
    wave = re.fullmatch(rf"(sin|cos)\((?:({WAVE_NUMBER}) )?(.*)\)", label)
    if wave and wave[3] in states:
        angle = float(wave[2] or 1.0) * x[states.index(wave[3])]
        return float(np.sin(angle) if wave[1] == "sin" else np.cos(angle))
    return None


@dataclass(frozen=True, eq=False)
class System(HoldsFunctions):
    """dx/dt = rhs(t, x, p), of states x and parameters p.

    rhs: function (t, x, p) → tuple of dim numbers; t a number, x a tuple of dim, p a tuple of n_parameters.
    Numba compiles it, for floats and for complex numbers: derivatives are taken by complex steps, so it must be
    analytic where it is used (no abs, sign, min, max, comparisons), with sin, cos, exp, log, sqrt from NumPy, which
    take both; powers with integer exponents are products, right for both signs (docs/identification.md has the list).
    Global numbers and functions that it reads are those of the moment when the system is made.
    states, parameters: names. usual: parameters (n_parameters,) of textbooks; start: a usual state (dim,).
    time_unit, units: of time and of each state, "" where without. terms: where the system is linear in its parameters,
    state → term of a library → what its coefficient is: a number, a parameter's name, or parameter → factor, "" for 1
    (see ``model.model_of``).
    invariant: function (states (n, dim), parameters (n_parameters,)) → (n,), conserved along solutions, where known.
    lyapunov: largest Lyapunov exponent at ``usual``, in 1 / time_unit, where known. source: where its numbers are from.
    inputs: names of known inputs u(t); where there are some, rhs is a function (t, x, p, u), u a tuple of their values.
    """

    name: str
    states: tuple[str, ...]
    parameters: tuple[str, ...]
    rhs: Callable[..., Any]
    usual: Array
    start: Array
    time_unit: str = ""
    units: tuple[str, ...] = ()
    terms: Terms | None = None
    invariant: Callable[[Array, Array], Array] | None = None
    lyapunov: float | None = None
    source: str = ""
    inputs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_text("name", self.name)
        object.__setattr__(self, "states", check_names("states", self.states))
        object.__setattr__(self, "parameters", check_names("parameters", self.parameters, at_least=0))
        object.__setattr__(self, "inputs", check_names("inputs", self.inputs, at_least=0))
        both = sorted(set(self.states) & set(self.parameters))
        if both:
            raise ValueError(f"parameters must not be named as states, got {shown(both[0])}")
        both = sorted(set(self.inputs) & set(self.states + self.parameters))
        if both:
            raise ValueError(f"inputs must not be named as states or parameters, got {shown(both[0])}")
        if not callable(self.rhs):
            raise TypeError(f"rhs must be a function (t, x, p), got {shown(self.rhs)}")
        object.__setattr__(self, "rhs", bound(self.rhs))
        for name, length in (("usual", len(self.parameters)), ("start", len(self.states))):
            object.__setattr__(self, name, check_row(name, getattr(self, name), length))
        object.__setattr__(self, "units", check_units(self.units, len(self.states)))
        for label in ("time_unit", "source"):
            check_text(label, getattr(self, label))
        if self.invariant is not None and not callable(self.invariant):
            raise TypeError(f"invariant must be None or a function (states, parameters), got {shown(self.invariant)}")
        if self.lyapunov is not None:
            check_number("lyapunov", self.lyapunov)
        if self.terms is not None:
            check_terms(self.terms, self.states, self.parameters)

    def __repr__(self) -> str:
        """Its name, states and parameters."""
        driven = f"; inputs {', '.join(self.inputs)}" if self.inputs else ""
        parameters = ", ".join(self.parameters) or "no parameters"
        return f"<System {self.name!r}: {', '.join(self.states)}; {parameters}{driven}>"

    @property
    def dim(self) -> int:
        """Number of states."""
        return len(self.states)

    @property
    def n_parameters(self) -> int:
        """Number of parameters."""
        return len(self.parameters)


def check_names(argument: str, names: Any, *, at_least: int = 1) -> tuple[str, ...]:
    """``names`` as a tuple of distinct texts that are not empty. Raises TypeError or ValueError otherwise."""
    if not is_sequence(names):
        raise TypeError(f"{argument} must be a sequence of names, got {shown(names)} of type {type(names).__name__}")
    listed = entries(argument, names, "names")
    given = tuple(check_text(f"{argument}[{i}]", name) for i, name in enumerate(listed))
    if len(given) < at_least:
        raise ValueError(f"{argument} must be at least {at_least}, got none")
    seen: set[str] = set()
    for i, name in enumerate(given):
        if name.strip() and name not in seen:
            seen.add(name)
        else:
            raise ValueError(f"{argument} must be distinct and not empty, got {shown(name)} at [{i}]")
    return given


def check_units(units: Any, n: int) -> tuple[str, ...]:
    """``units`` as texts, one of each of ``n`` states; "" where there are none. Raises TypeError or ValueError."""
    if not is_sequence(units):
        raise TypeError(f"units must be a sequence of texts, got {shown(units)} of type {type(units).__name__}")
    given = tuple(check_text(f"units[{i}]", unit) for i, unit in enumerate(units)) or ("",) * n
    if len(given) != n:
        raise ValueError(f"units must name one unit per state, {n}, got {len(given)}")
    return given


def tuple_text(entries: list[str]) -> str:
    """The text of a tuple."""
    return f"({', '.join(entries)}{',' if len(entries) == 1 else ''})"


def name_of_function(function: Any, otherwise: str) -> str:
    """A function's own name; ``otherwise`` where it has none, as a lambda."""
    name = str(getattr(function, "__name__", otherwise))
    return otherwise if name == "<lambda>" else name


def compiled_function(function: Any) -> Any:
    """A user's function as other compiled functions call it."""
    return function if is_jitted(function) else njit(error_model="numpy")(function)


def analytic(function: Callable[..., Any]) -> Any:
    """A user's function for complex steps: integer powers, also in functions it calls, become products."""
    return rebind(function, allocates=True, ours=False, products=True)


@functools.lru_cache(maxsize=256)
def checked_rhs(rhs: Callable[..., Any], dim: int, n_parameters: int, number: Any) -> Any:
    """A right-hand side compiled for ``number``. Raises TypeError where it does not, or gives no ``dim`` of them."""
    kind = "complex numbers, by which derivatives are taken," if number is types.complex128 else "floats"
    given = (types.float64, types.UniTuple(number, dim), types.UniTuple(number, n_parameters))
    try:
        compiled = rhs if is_jitted(rhs) else inlined(rhs)
        compiled = kept(analytic(rhs) if number is types.complex128 else compiled)
        compiled.compile(given)
    except Exception as error:  # Numba refuses in many classes
        raise rhs_error(rhs, dim, kind, reason(error)) from error
    returned = compiled.overloads[given].signature.return_type
    if not isinstance(returned, types.BaseTuple) or len(returned) != dim:
        found = f"a tuple of {len(returned)}" if isinstance(returned, types.BaseTuple) else str(returned)
        raise rhs_error(rhs, dim, kind, f"it returns {found}")
    allowed = (types.Integer, types.Float, types.Boolean, *((types.Complex,) if number is types.complex128 else ()))
    for d, entry in enumerate(returned):
        if not isinstance(types.unliteral(entry), allowed):
            raise rhs_error(rhs, dim, kind, f"its slope [{d}] is {entry}")
    return compiled


def rhs_error(rhs: Callable[..., Any], dim: int, kind: str, why: str) -> TypeError:
    """The error of a right-hand side that does not compile or returns other things."""
    why = "it makes arrays or lists; let it return a tuple" if why.startswith("NRT") else why
    return TypeError(
        f"rhs must be a function (t, x, p) of tuples that Numba can compile{kind and ' for ' + kind} and that returns "
        f"a tuple of {dim} numbers, but {getattr(rhs, '__name__', rhs)} is not: {why}"
    )
