"""Libraries of candidate terms: polynomials, Fourier modes, and a user's own functions of the states."""

import ast
import functools
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import types

from toolkit._compiler import HoldsFunctions, bound, compile_part, kernel
from toolkit.errors import (
    check_array,
    check_count,
    check_flag,
    check_instance,
    check_real_array,
    check_scale,
    check_text,
    is_a,
    is_sequence,
    shown,
)

from .arrays import Array, Integers
from .systems.system import check_names

__all__ = ["Library", "Term", "fourier", "functions", "polynomial"]

MAX_TERMS = 2000
MAX_TEXT = 1000  # characters of a term
MAX_POWER = 64
LARGEST = 1e300  # number in a term


@dataclass(frozen=True)
class Term(HoldsFunctions):
    """One candidate: its name, and either powers of the states and inputs, or a function of them.

    text: the term as an expression of numbers and x[0], x[1], … (states, then inputs) with + − * / **, which may call
    ``sin``, ``cos`` and ``own``, its function; of at most 1,000 characters, powers of x[k] up to 64. It becomes code:
    other text is refused.
    """

    name: str
    text: str
    powers: tuple[int, ...] | None = None
    own: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        check_text("name", self.name)
        check_text("text", self.text)
        if self.powers is not None:
            if not is_sequence(self.powers):
                raise TypeError(f"powers must be None or a sequence of integers, got {shown(self.powers)}")
            for d, power in enumerate(self.powers):
                check_count(f"powers[{d}]", power, at_least=0, below=2**6)
        if self.own is not None and not callable(self.own):
            raise TypeError(f"own must be None or a function of a state, got {shown(self.own)}")
        object.__setattr__(self, "own", bound(self.own))
        object.__setattr__(self, "text", str.__str__(self.text))  # without methods of one's own
        check_expression(self.text)
        if self.powers is not None and self.text != monomial_text(tuple(self.powers)):
            raise ValueError(
                f"text must be {monomial_text(tuple(self.powers))!r}, as the powers, got {shown(self.text)}"
            )


def check_expression(text: str) -> None:
    """Raise ValueError unless ``text`` is an expression that a term may have; it is parsed, not run."""
    try:
        if len(text) > MAX_TEXT:
            raise ValueError(f"it has {len(text)} characters")
        for node in ast.walk(ast.parse(text, mode="eval")):
            if not is_allowed(node):
                raise ValueError(
                    f"{type(node).__name__} at column {getattr(node, 'col_offset', 0) + 1} is none of these"
                )
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(
            f"text must be an expression of numbers, x[0], x[1], …, + - * / **, sin, cos and own(x) of at most "
            f"{MAX_TEXT} characters, got {shown(text)}: {error!s:.200}"
        ) from None


def is_allowed(node: ast.AST) -> bool:
    """Whether a part of an expression may be in a term."""
    match node:
        case ast.Constant(value=value):
            return isinstance(value, int | float) and not isinstance(value, bool) and value < LARGEST
        case ast.Call(func=ast.Name(id="sin" | "cos" | "own"), args=[_], keywords=[]):
            return True
        case ast.Subscript(value=ast.Name(id="x"), slice=ast.Constant(value=int())):
            return True
        case ast.BinOp(
            op=ast.Pow(), left=left, right=ast.Constant(value=int(power)) | ast.Constant(value=float(power))
        ):
            return isinstance(left, ast.Subscript) and power <= MAX_POWER
        case ast.BinOp(op=ast.Pow()):
            return False
        case ast.Name(id=name):
            return name in ("x", "sin", "cos", "own")
    return isinstance(node, (ast.Expression, ast.BinOp, ast.UnaryOp, ast.operator, ast.USub, ast.UAdd, ast.Load)) and (
        not isinstance(node, ast.operator) or isinstance(node, ast.Add | ast.Sub | ast.Mult | ast.Div | ast.Pow)
    )


@dataclass(frozen=True, eq=False)
class Library:
    """Candidate terms θ_1(x, u), θ_2(x, u), … of the right-hand sides, of states x and known inputs u.

    Libraries of the same states and inputs add up with ``+``. An input "t" is the time where ``Series.inputs`` has no
    values of that name.
    """

    states: tuple[str, ...]
    terms: tuple[Term, ...]
    inputs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "states", check_names("states", self.states))
        object.__setattr__(self, "inputs", check_names("inputs", self.inputs, at_least=0))
        check_names("states and inputs", self.variables)
        if not is_sequence(self.terms):
            raise TypeError(f"terms must be a sequence of terms, got {shown(self.terms)}")
        if not self.terms or len(self.terms) > MAX_TERMS:
            raise ValueError(f"terms must be 1 to {MAX_TERMS}, got {len(self.terms)}")
        for k, term in enumerate(self.terms):
            check_instance(f"terms[{k}]", term, Term)
            if term.powers is not None and len(term.powers) != len(self.variables):
                raise ValueError(
                    f"terms[{k}] must have {len(self.variables)} powers, one of each state and input, "
                    f"got {len(term.powers)}"
                )
        check_names("terms", [term.name for term in self.terms])

    def __repr__(self) -> str:
        """Its terms."""
        first = ", ".join(self.names[:12]) + (", …" if len(self) > 12 else "")
        return f"<Library of {len(self)} terms: {first}>"

    def __len__(self) -> int:
        """Number of terms."""
        return len(self.terms)

    def __add__(self, other: "Library") -> "Library":
        """The terms of both; those of one name are taken once."""
        if not isinstance(other, Library):
            return NotImplemented
        if (other.states, other.inputs) != (self.states, self.inputs):
            raise ValueError(
                f"libraries must have the same states and inputs, got {self.states} with inputs {self.inputs} and "
                f"{other.states} with inputs {other.inputs}"
            )
        terms = self.terms + tuple(t for t in other.terms if t.name not in self.names)
        return Library(self.states, terms, self.inputs)

    @property
    def variables(self) -> tuple[str, ...]:
        """What the terms are functions of: the states, then the inputs."""
        return self.states + self.inputs

    @property
    def names(self) -> tuple[str, ...]:
        """The terms' names."""
        return tuple(term.name for term in self.terms)

    def evaluate(self, states: Any) -> Array:
        """Θ (n, terms) at ``states`` (n, dim), with the inputs in further columns; nan where one is.

        Raises TypeError where they are no real numbers; ValueError for another shape, masked entries, and where a
        function of the user's gives a complex number.
        """
        x = check_real_array("states", states)
        if x.ndim != 2 or x.shape[1] != len(self.variables):
            raise ValueError(f"states must have shape (n, {len(self.variables)}), got {x.shape}")
        out, columns = np.empty((len(x), len(self.terms))), tuple(x.T)
        self.monomials.multiply(columns, out)
        for k, term in enumerate(self.terms):
            if term.powers is None:
                out[:, k] = values_of(term, columns)
        return out

    @functools.cached_property
    def monomials(self) -> "Monomials":
        """The terms that are products of powers."""
        powers = np.array([term.powers or (0,) * len(self.variables) for term in self.terms], np.int64)
        used = [(column, power) for column in range(powers.shape[1]) for power in np.unique(powers[:, column]) if power]
        places = np.full(powers.shape, -1)
        for place, (column, power) in enumerate(used):
            places[powers[:, column] == power, column] = place
        return Monomials(tuple(used), places)

    def subset(self, names: Any) -> "Library":
        """The terms of these names, in this order. Raises ValueError for a name it does not have."""
        wanted = check_names("names", names)
        for name in wanted:
            if name not in self.names:
                raise ValueError(f"names must be of the library's terms {', '.join(self.names)}, got {shown(name)}")
        return Library(self.states, tuple(self.terms[self.names.index(name)] for name in wanted), self.inputs)


class Monomials(NamedTuple):
    """How a library's monomials are made of powers, without Python's cost for each of them.

    used: the column and power of every factor. places: (terms, columns), each factor's place in ``used``, −1 for none.
    """

    used: tuple[tuple[int, int], ...]
    places: Integers

    def factors(self, columns: tuple[Array, ...]) -> Array:
        """The factors (factors, n) of columns, each (n,)."""
        out = np.empty((len(self.used), len(columns[0])))
        for place, (column, power) in enumerate(self.used):
            out[place] = columns[column] ** power
        return out

    def multiply(self, columns: tuple[Array, ...], out: Array) -> None:
        """out (n, terms) ← the monomials of columns, each (n,); 1 for a term that is none."""
        compiled_product()(self.factors(columns), self.places, out)


@kernel
def multiply_factors(factors: Any, places: Any, out: Any) -> None:
    """out (n, terms) ← products of factors (factors, n), the first column's first; ``places`` as in ``Monomials``."""
    for k in range(places.shape[0]):
        for i in range(out.shape[0]):
            out[i, k] = 1.0
        for column in range(places.shape[1]):
            place = places[k, column]
            if place >= 0:
                for i in range(out.shape[0]):
                    out[i, k] *= factors[place, i]


@functools.cache
def compiled_product() -> Any:
    """``multiply_factors`` as machine code; rows and columns of any stride."""
    floats = types.Array(types.float64, 2, "A")
    return compile_part(multiply_factors.py_func, types.void(types.float64[:, ::1], types.int64[:, ::1], floats))


def values_of(term: Term, columns: tuple[Any, ...]) -> Any:
    """A term that is no monomial (n,), from the columns of states and inputs, each (n,)."""
    if term.own is not None:
        values = np.array([complex(term.own(point)) for point in zip(*columns, strict=True)])
        if (np.abs(values.imag) > 0.0).any():
            first = values[np.abs(values.imag) > 0.0][0]
            raise ValueError(f"term {term.name!r} must give real numbers at real states, got {first}")
        return values.real
    namespace = {"sin": np.sin, "cos": np.cos, "x": columns}
    return eval(term.text, {"__builtins__": {}}, namespace)  # checked by ``check_expression``


def polynomial(states: Any, degree: int, *, constant: bool = True, inputs: Any = ()) -> Library:
    """All monomials of ``states`` and ``inputs`` up to ``degree`` ≥ 1: 1, x, y, xx, xy, yy, …; 1 only if ``constant``.

    A monomial is named by its factors: "xy", "xxz" for one-letter states, "prey prey predator" for longer names.
    Raises TypeError or ValueError for names that are not distinct texts, a degree out of range, or above 2,000 terms.
    """
    states, inputs = check_names("states", states), check_names("inputs", inputs, at_least=0)
    names = check_names("states and inputs", states + inputs)
    degree = check_count("degree", degree, at_least=1, below=2**6)
    check_flag("constant", constant)
    terms = []
    for total in range(0 if constant else 1, degree + 1):
        for factors in itertools.combinations_with_replacement(range(len(names)), total):
            powers = tuple(factors.count(d) for d in range(len(names)))
            terms.append(Term(monomial_name(names, powers), monomial_text(powers), powers))
            if len(terms) > MAX_TERMS:
                raise ValueError(f"degree must leave at most {MAX_TERMS} terms, got {degree} for {len(names)} states")
    return Library(states, tuple(terms), inputs)


def monomial_name(states: tuple[str, ...], powers: tuple[int, ...]) -> str:
    """The factors' names in a row."""
    factors = [name for name, power in zip(states, powers, strict=True) for _ in range(power)]
    return ("" if all(len(name) == 1 for name in states) else " ").join(factors) or "1"


def monomial_text(powers: tuple[int, ...]) -> str:
    """The monomial as a product, without powers: those of complex numbers would be logarithms."""
    return "*".join(f"x[{d}]" for d, power in enumerate(powers) for _ in range(power)) or "1.0"


def fourier(states: Any, n_frequencies: int, *, frequency: float = 1.0, inputs: Any = ()) -> Library:
    """sin(k f x) and cos(k f x) of each state and input x, k = 1 … n_frequencies; f = frequency > 0, per unit of x.

    Raises TypeError or ValueError for names that are not distinct texts, numbers out of range, or above 2,000 terms.
    """
    states, inputs = check_names("states", states), check_names("inputs", inputs, at_least=0)
    names = check_names("states and inputs", states + inputs)
    n = check_count("n_frequencies", n_frequencies, at_least=1, below=2**10)
    frequency = check_scale("frequency", frequency)
    if 2 * n * len(names) > MAX_TERMS:
        raise ValueError(f"n_frequencies must leave at most {MAX_TERMS} terms, got {n} for {len(names)} states")
    terms = []
    for d, name in enumerate(names):
        for k in range(1, n + 1):
            label = f"{k * frequency:g} {name}" if k * frequency != 1.0 else name
            terms += [Term(f"{wave}({label})", f"{wave}({k * frequency!r}*x[{d}])") for wave in ("sin", "cos")]
    return Library(states, tuple(terms), inputs)


def functions(states: Any, named: Mapping[str, Callable[..., Any]], *, inputs: Any = ()) -> Library:
    """A user's own terms: name → function of a tuple of states, then inputs, to a number; Numba must compile it.

    For ``trajectory`` and ``weak`` likelihoods they are called with complex numbers too: they must be analytic there,
    which these check at states of the data, as ``systems.own`` does. Integer powers may be of both signs. What they
    read, such as global numbers, is what it is when they are given.
    Raises TypeError where one is no function, or does not give a number at a state of ones.
    """
    states, inputs = check_names("states", states), check_names("inputs", inputs, at_least=0)
    names = check_names("states and inputs", states + inputs)
    if not is_a(named, Mapping) or not named:
        raise TypeError(f"named must map names to functions, got {shown(named)}")
    terms = []
    for label, function in named.items():
        check_text("a name in named", label)
        if not callable(function):
            raise TypeError(f"named[{shown(label)}] must be a function of a state, got {shown(function)}")
        try:
            value = complex(function((1.0,) * len(names)))
            if value.imag != 0.0:
                raise ValueError(f"it gives the complex number {value}")
            check_array(f"named[{shown(label)}](ones)", value.real)
        except Exception as error:
            raise TypeError(f"named[{shown(label)}] must give a number at a state of ones: {error}") from error
        terms.append(Term(label, "own(x)", own=function))
    return Library(states, tuple(terms), inputs)
