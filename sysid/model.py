"""Models linear in their parameters: which coefficients of a library's terms are free, fixed or tied to others."""

import functools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from targets.symbolic.source import compile_source
from toolkit.errors import (
    check_array,
    check_choice,
    check_count,
    check_instance,
    check_number,
    check_real_array,
    check_text,
    is_a,
    optional,
    shown,
)

from .arrays import Array, Integers
from .libraries import Library, polynomial
from .systems.system import System, check_names, compiled_function, factors_of, tuple_text

if TYPE_CHECKING:
    from .libraries import Term

SIGNS = {1.0: "", -1.0: "-"}  # factors that are written as a sign


def right_hand_side(model: "Model") -> Any:
    """The function (t, x, p), or (t, x, p, u), of a model as generated Python, without terms of coefficient 0."""
    namespace: dict[str, Any] = {"sin": np.sin, "cos": np.cos, "__name__": "generated"}
    used = np.flatnonzero(model.constant.any(axis=1) | model.directions.any(axis=(0, 2)))
    lines = ["def rhs(t, x, p):"]
    if model.library.inputs:
        values = [f"y[{d}]" for d in range(len(model.states))] + [f"u[{k}]" for k in range(len(model.library.inputs))]
        lines = ["def rhs(t, y, p, u):", f"    x = {tuple_text(values)}"]
    for k in used:
        term: Term = model.library.terms[k]
        if term.own is not None:
            namespace[f"own{k}"] = compiled_function(term.own)
        lines.append(f"    v{k} = {term.text.replace('own(', f'own{k}(')}")
    sums = []
    for e in range(len(model.states)):
        parts = []
        for k in used:
            factors = [
                SIGNS.get(c, f"{c!r}*") + f"p[{j}]" for j, c in enumerate(model.directions[:, k, e].tolist()) if c
            ]
            factors += [repr(model.constant[k, e].item())] if model.constant[k, e] else []
            if factors:
                parts.append(f"({' + '.join(factors)})*v{k}")
        sums.append(" + ".join(parts) or "0.0*x[0]")
    source = "\n".join([*lines, f"    return ({', '.join(sums)},)", ""])
    return compile_source("model", "rhs", source, namespace)


LINE_LENGTH = 100  # of an equation in text, beyond which a term goes to the next line
MOST_DECIMALS = 6  # of a number that is written out; beyond it has an exponent


def in_text(library: Library, values: Array, errors: Array, digits: int, notes: Any = None) -> str:
    """Equations of coefficients and their errors (terms, states), a line per state; long ones go on, indented.

    notes: (terms, states) texts to put behind each term; None: none.
    """
    lines = []
    for e, (state, column, spread) in enumerate(zip(library.states, values.T.tolist(), errors.T.tolist(), strict=True)):
        terms = [
            (f"+({with_error(c, error)}) {name}" if error else f"{c:+.{digits}g} {name}")
            + ("" if notes is None else notes[k][e])
            for k, (c, error, name) in enumerate(zip(column, spread, library.names, strict=True))
            if c
        ]
        lines += broken(f"d{state}/dt =", terms or ["0"])
    return "\n".join(lines)


def broken(head: str, terms: list[str]) -> list[str]:
    """Lines of ``head`` and the terms after it, of at most some ``LINE_LENGTH`` columns, the later ones indented."""
    lines = [head]
    for k, term in enumerate(terms):
        if k and len(lines[-1]) + len(term) >= LINE_LENGTH:
            lines.append("   ")
        lines[-1] += f" {term}"
    return lines


def in_latex(library: Library, values: Array, errors: Array, digits: int) -> str:
    """Equations of coefficients and their errors (terms, states) in LaTeX's ``aligned``."""
    rows = []
    for state, column, spread in zip(library.states, values.T.tolist(), errors.T.tolist(), strict=True):
        parts, length = [], 0
        for c, error, term in zip(column, spread, library.terms, strict=True):
            if not c:
                continue
            number = latex_number(f"({with_error(c, error)})" if error else f"{abs(c):.{digits}g}")
            sign = "+ " if error else "- " if c < 0.0 else "+ "
            factor = latex_of(term, library.variables)
            product = factor if number == "1" else number if factor == "1" else rf"{number}\, {factor}"
            part = sign + product
            length += len(number) + len(term.name) + 3
            if length > LINE_LENGTH:
                part, length = "\\\\\n&\\quad " + part, len(part)
            parts.append(part)
        right = " ".join(parts).removeprefix("+ ") or "0"
        rows.append(rf"\frac{{\mathrm{{d}} {latex_name(state)}}}{{\mathrm{{d}} t}} &= {right}")
    return "\\begin{aligned}\n" + "\\\\\n".join(rows) + "\n\\end{aligned}"


def with_error(value: float, error: float) -> str:
    """``value`` ± ``error``, both with the decimals that give the error two digits; far from 1 times a power of ten."""
    if not (math.isfinite(value) and math.isfinite(error)):
        return f"{value:g} ± {error:g}"
    last = int(f"{error:.1e}".partition("e")[2]) - 1  # the power of ten of the error's second digit
    if -MOST_DECIMALS <= last <= 0:
        return f"{value:.{-last}f} ± {error:.{-last}f}"
    power = int(f"{max(abs(value), error):e}".partition("e")[2])
    decimals = max(power - last, 1)
    scaled = [f"{Decimal(number).scaleb(-power):.{decimals}f}e{power}" for number in (value, error)]
    return " ± ".join(scaled)


def latex_number(text: str) -> str:
    """A number or a value with its error as LaTeX has it."""
    return re.sub(r"e([-+]?\d+)", lambda m: rf" \times 10^{{{int(m[1])}}}", text).replace("±", r"\pm")


def latex_name(name: str) -> str:
    """A state's name: one letter, with an index where digits follow, in italics; others upright."""
    index = re.fullmatch(r"([A-Za-z])_?(\d+)", name)
    if index:
        return f"{index[1]}_{{{index[2]}}}"
    return name if re.fullmatch("[A-Za-z]", name) else rf"\mathrm{{{escaped(name)}}}"


def escaped(text: str) -> str:
    """``text`` without meaning of its own in LaTeX's mathematics."""
    named = {"\\": r"\backslash ", "^": r"\hat{}", "~": r"\sim ", " ": r"\ "}
    return "".join(named.get(c, "\\" + c if c in "_%&#${}" else c) for c in text)


def latex_of(term: "Term", states: tuple[str, ...]) -> str:
    """A term in LaTeX: powers of states and inputs, sines and cosines; a user's own by its name."""
    if term.powers is not None:
        factors = [
            latex_name(state) + (f"^{{{power}}}" if power > 1 else "")
            for state, power in zip(states, term.powers, strict=True)
            if power
        ]
        return r" \, ".join(factors) or "1"
    wave = re.fullmatch(r"(sin|cos)\((?:(\S+) )?(.*)\)", term.name)
    if term.own is None and wave:
        angle = f"{latex_number(wave[2])} " if wave[2] else ""
        return rf"\{wave[1]}({angle}{latex_name(wave[3])})"
    return rf"\mathrm{{{escaped(term.name)}}}"


def in_sympy(sympy: Any, term: "Term", symbols: list[Any]) -> Any:
    """A term as an expression of SymPy's."""
    if term.powers is not None:
        return sympy.Mul(*(symbol**power for symbol, power in zip(symbols, term.powers, strict=True)))
    namespace = {
        "sin": sympy.sin,
        "cos": sympy.cos,
        "x": symbols,
        "own": lambda _: sympy.Function(term.name)(*symbols),
    }
    return eval(term.text, {"__builtins__": {}}, namespace)  # checked by ``libraries.check_expression``


MAX_DEGREE = 6


@dataclass(frozen=True, eq=False)
class Model:
    """dx_e/dt = Σ_t Ξ_te θ_t(x, u), with Ξ = constant + Σ_k β_k directions_k in the free parameters β.

    parameters: the names of β. constant: (terms, states). directions: (parameters, terms, states).
    """

    library: Library
    parameters: tuple[str, ...]
    constant: Array
    directions: Array
    name: str = "model"

    def __post_init__(self) -> None:
        check_instance("library", self.library, Library)
        check_text("name", self.name)
        names = check_names("parameters", self.parameters)
        shape = (len(self.library), len(self.library.states))
        for label, wanted in (("constant", shape), ("directions", (len(names), *shape))):
            array = check_array(label, getattr(self, label))
            if array.shape != wanted:
                raise ValueError(f"{label} must have shape {wanted}, got {array.shape}")
            object.__setattr__(self, label, array)
        object.__setattr__(self, "parameters", names)
        unused = np.flatnonzero(~self.directions.any(axis=(1, 2)))
        if unused.size:
            raise ValueError(f"parameters must each stand at a term, but {shown(names[unused[0]])} stands at none")

    def __repr__(self) -> str:
        """Its name and parameters."""
        first = ", ".join(self.parameters[:8]) + (", …" if len(self.parameters) > 8 else "")
        return f"<Model {self.name!r}: {len(self.parameters)} free of {self.constant.size} coefficients: {first}>"

    @property
    def states(self) -> tuple[str, ...]:
        """Names of the states."""
        return self.library.states

    def coefficients(self, parameters: Any) -> Array:
        """Ξ (…, terms, states) of ``parameters`` (…, n). Raises ValueError for another last axis."""
        beta = check_real_array("parameters", parameters)
        if beta.ndim == 0 or beta.shape[-1] != len(self.parameters):
            raise ValueError(f"parameters must have shape (…, {len(self.parameters)}), got {beta.shape}")
        rows = beta.reshape(math.prod(beta.shape[:-1]), len(self.parameters))
        sums = np.dot(rows, self.directions.reshape(len(self.parameters), -1))  # as tensordot, in a fourth of its time
        return np.asarray(self.constant + sums.reshape(*beta.shape[:-1], *self.constant.shape))

    def equations(self, parameters: Any, errors: Any = None, *, style: str = "text", digits: int = 4) -> str:
        """The equations with the coefficients of ``parameters`` (n,); terms whose coefficient is 0 are left out.

        errors: (n,) ≥ 0, standard deviations of the parameters: each coefficient that has one is written
        "(value ± error)", the error with two digits and the value with as many decimals; that of a coefficient of
        several parameters is of independent ones. None: values alone, with ``digits`` digits, as are those without an
        error. style: "text", a line per state, broken at about 100 columns; "latex", an ``aligned`` environment for
        between dollar signs.
        Raises TypeError or ValueError for another shape or style, errors < 0, or digits that are not from 1 to 100.
        """
        digits = check_count("digits", digits, at_least=1, below=101)
        check_choice("style", style, ("text", "latex"))
        values = self.coefficients(self._one_row("parameters", parameters))
        spreads = np.zeros_like(values)
        if errors is not None:
            sds = self._one_row("errors", errors)
            if not (sds >= 0.0).all():
                raise ValueError(f"errors must be ≥ 0, got {shown(errors)}")
            spreads = np.sqrt(np.tensordot(sds**2, self.directions**2, axes=1))
        write = in_text if style == "text" else in_latex
        return write(self.library, values, spreads, digits)

    def sympy_equations(self, parameters: Any) -> dict[Any, Any]:
        """State → its slope for ``parameters`` (n,), as SymPy's Symbol and expression: what ``from_sympy`` takes.

        A user's own term is an undefined function of all states, of the term's name. Terms with coefficient 0 are left
        out. Needs the extra ``symbolic``. Raises ImportError without it; TypeError or ValueError for another shape.
        """
        sympy = optional("sympy", "symbolic")
        values = self.coefficients(self._one_row("parameters", parameters))
        symbols = [sympy.Symbol(name) for name in self.library.variables]
        return {
            symbol: sympy.Add(*(c * in_sympy(sympy, self.library.terms[k], symbols) for k, c in enumerate(column) if c))
            for symbol, column in zip(symbols, values.T.tolist(), strict=False)  # the inputs have no slope
        }

    def _one_row(self, name: str, value: Any) -> Array:
        """``value`` as numbers (n,), one for each parameter. Raises TypeError or ValueError otherwise."""
        row = check_real_array(name, value)
        if row.shape != (len(self.parameters),):
            raise ValueError(f"{name} must have shape ({len(self.parameters)},), got {row.shape}")
        return row

    @functools.cached_property
    def single_terms(self) -> tuple[Integers, Array] | None:
        """The one term of each parameter in each equation, and its factor or 0: (states, parameters).

        None where a parameter stands at several terms of one equation.
        """
        present = self.directions != 0.0
        if (present.sum(axis=1) > 1).any():
            return None
        return np.argmax(present, axis=1).T.copy(), self.directions.sum(axis=1).T.copy()

    @functools.cached_property
    def system(self) -> System:
        """The model as a system to solve, with generated code for its right-hand side."""
        n = len(self.parameters)
        return System(
            self.name, self.states, self.parameters, right_hand_side(self), np.zeros(n), np.zeros(len(self.states)),
            inputs=self.library.inputs,
        )  # fmt: skip


def all_free(library: Library) -> Model:
    """Every coefficient of every equation free: parameters "dx:xy" for term xy in dx/dt, equation by equation."""
    n, dim = len(library), len(library.states)
    names = tuple(f"d{state}:{term}" for state in library.states for term in library.names)
    directions = np.zeros((n * dim, n, dim))
    for k in range(n * dim):
        directions[k, k % n, k // n] = 1.0
    return Model(library, names, np.zeros((n, dim)), directions, f"all of {n} terms")


def model_of(
    library: Library,
    *,
    free: Sequence[str] | None = None,
    fixed: Mapping[str, float] | None = None,
    tied: Mapping[str, Mapping[str, float]] | None = None,
    name: str = "model",
) -> Model:
    """The model of ``library`` whose coefficients, named "dx:xy" for term xy in dx/dt, are free, fixed or tied.

    free: those that are parameters by themselves; None: all that are neither fixed nor tied. fixed: coefficient → its
    number. tied: parameter → coefficient → factor; the coefficient is Σ factor × parameter, plus its fixed number
    where it has one. What is none of these is 0. Lorenz' σ is tied={"sigma": {"dx:x": -1, "dx:y": 1}}.
    Raises TypeError or ValueError naming a coefficient that the library does not have, or that is free and fixed.
    """
    check_instance("library", library, Library)
    full = all_free(library)
    index_of = {label: (k % len(library), k // len(library)) for k, label in enumerate(full.parameters)}

    def check_index(argument: str, label: Any) -> tuple[int, int]:
        if not is_a(label, str) or label not in index_of:
            known = ", ".join(list(index_of)[:12]) + (", …" if len(index_of) > 12 else "")
            raise ValueError(f"{argument} must name coefficients ({known}), got {shown(label)}")
        return index_of[label]

    fixed = check_mapping("fixed", fixed)
    tied = check_mapping("tied", tied)
    constant = np.zeros(full.constant.shape)
    for label, value in fixed.items():
        constant[check_index("fixed", label)] = check_number(f"fixed[{shown(label)}]", value)
    names, directions = [], []
    assigned = set(fixed)
    for parameter, factors in tied.items():
        direction = np.zeros(constant.shape)
        where = f"tied[{check_text('a name in tied', parameter)!r}]"
        for label, factor in check_mapping(where, factors).items():
            direction[check_index(where, label)] = check_number(f"{where}[{shown(label)}]", factor)
            assigned.add(label)
        names.append(parameter)
        directions.append(direction)
    chosen = (
        [label for label in index_of if label not in assigned]
        if free is None
        else list(check_names("free", free, at_least=0))
    )
    for label in chosen:
        check_index("free", label)
        if label in assigned:
            raise ValueError(f"free must not hold what is fixed or tied, got {shown(label)}")
        names.append(label)
        directions.append(full.directions[full.parameters.index(label)])
    if not names:
        raise ValueError("free and tied must name a parameter, got none")
    return Model(library, tuple(names), constant, np.array(directions), name)


def check_mapping(name: str, value: Any) -> Mapping[Any, Any]:
    """``value`` as a mapping; None as an empty one. Raises TypeError otherwise."""
    if value is None:
        return {}
    if not is_a(value, Mapping):
        raise TypeError(f"{name} must be a mapping, got {shown(value)} of type {type(value).__name__}")
    return value  # type: ignore[no-any-return]


def model_of_system(system: System, library: Library | None = None) -> Model:
    """The model of a system that is linear in its parameters, in the library of its own terms unless one is given.

    Raises ValueError where it is not, or where the library lacks a term.
    """
    check_instance("system", system, System)
    if system.terms is None:
        raise ValueError(
            f"system must be linear in its parameters, and {system.name!r} is not known to be: give systems.own its "
            "terms, or the library of them (sysid.model_of), or take likelihood='trajectory'"
        )
    if library is None:
        needed = {label for row in system.terms.values() for label in row}
        for degree in range(1, MAX_DEGREE + 1):
            library = polynomial(system.states, degree, inputs=system.inputs)
            if needed <= set(library.names):
                break
        else:
            raise ValueError(f"library must be given: {system.name!r} has terms that are no monomials of its states")
        library = library.subset([label for label in library.names if label in needed])
    fixed: dict[str, float] = {}
    tied: dict[str, dict[str, float]] = {parameter: {} for parameter in system.parameters}
    for state, row in system.terms.items():
        for label, coefficient in row.items():
            for parameter, factor in factors_of(coefficient).items():
                if parameter == "":
                    fixed[f"d{state}:{label}"] = float(factor)
                else:
                    tied[parameter][f"d{state}:{label}"] = float(factor)
    return model_of(library, free=(), fixed=fixed, tied=tied, name=system.name)


def as_model(model: Any) -> Model:
    """A ``Model`` from a model, a library (all coefficients free) or a system linear in its parameters."""
    if is_a(model, Library):
        return all_free(model)
    if is_a(model, System):
        return model_of_system(model)
    if not is_a(model, Model):
        raise TypeError(f"model must be a System, Library or Model, got {shown(model)} of type {type(model).__name__}")
    return model  # type: ignore[no-any-return]
