"""Constraints of parameters: linear inequalities as text, convex regions, or a user's function."""

import itertools
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from targets import domains
from targets.domains.convex import Convex
from toolkit.errors import shown

from .arrays import Array, Bools


class Coordinates(NamedTuple):
    """How positions u become parameters: v = shift + root u, θ_k = exp(v_k) where log[k], else v_k."""

    log: Bools  # (q,)
    shift: Array  # (q,)
    root: Array  # (q, q)

    @property
    def is_scaled(self) -> bool:
        """Whether v is not u itself."""
        return bool(self.shift.any()) or not np.array_equal(self.root, np.eye(len(self.shift)))

    def parameters(self, positions: Any) -> Array:
        """θ (…, q) of positions (…, q)."""
        with np.errstate(invalid="ignore"):  # of draws that diverged
            v = self.shift + np.asarray(positions, np.float64) @ self.root.T
        return np.where(self.log, np.exp(np.where(self.log, np.minimum(v, 700.0), 0.0)), v)

    def positions(self, parameters: Any) -> Array:
        """u (…, q) of parameters (…, q)."""
        theta = np.asarray(parameters, np.float64)
        v = np.where(self.log, np.log(np.where(self.log, theta, 1.0)), theta)
        return np.asarray(np.linalg.solve(self.root, (v - self.shift)[..., None])[..., 0])


class Linear(NamedTuple):
    """normal · θ ≤ offset; normal (q,)."""

    normal: Array
    offset: float


def region_of(constraints: Any, names: tuple[str, ...], coordinates: Coordinates, positive: Bools) -> Convex | None:
    """The region of positions in which all constraints hold that are no functions; None where there are none.

    constraints: "sigma > 1 + beta" and the like, linear in the parameters named; several; or a convex region of the
    parameters. positive: parameters (q,) that must be > 0 for their prior. A bound of a parameter that is sampled as
    its logarithm becomes one of the logarithm. Raises TypeError or ValueError for what cannot be read, names no
    parameter, is not linear, or joins parameters of which one is sampled as its logarithm.
    """
    walls = [Linear(-row, 0.0) for row in np.eye(len(names))[positive & ~coordinates.log]]
    for constraint in as_list(constraints):
        if isinstance(constraint, str):
            walls += parse_inequalities(constraint, names)
        elif isinstance(constraint, Convex):
            if constraint.dim != len(names):
                raise ValueError(
                    f"constraints must have dimension {len(names)}, one per parameter, got {constraint.dim}"
                )
            if len(constraint.radii):
                raise ValueError(f"constraints must be linear, and {constraint.name!r} has balls")
            walls += [Linear(normal, float(offset)) for normal, offset in zip(*constraint.walls, strict=True)]
        elif not callable(constraint):
            raise TypeError(
                f"constraints must be texts such as 'sigma > 1 + beta', regions or functions, got {shown(constraint)}"
            )
    check_bounds(walls, names)
    walls = [moved for wall in walls for moved in to_logarithms(wall, names, coordinates.log)]
    if not walls:
        return None
    normals = np.array([wall.normal for wall in walls])
    offsets = np.array([wall.offset for wall in walls]) - normals @ coordinates.shift
    return box_or_half_spaces(normals @ coordinates.root, offsets)


def as_list(constraints: Any) -> list[Any]:
    """One constraint or several as a list."""
    if constraints is None:
        return []
    if isinstance(constraints, str | Convex) or not isinstance(constraints, Sequence):
        return [constraints]
    return list(constraints)


def check_bounds(walls: list[Linear], names: tuple[str, ...]) -> None:
    """Raise ValueError naming a parameter whose own bounds, also that of a prior > 0, leave no interval."""
    for k, name in enumerate(names):
        single = [wall for wall in walls if np.flatnonzero(wall.normal).tolist() == [k]]
        lower = max((wall.offset / wall.normal[k] for wall in single if wall.normal[k] < 0.0), default=-np.inf)
        upper = min((wall.offset / wall.normal[k] for wall in single if wall.normal[k] > 0.0), default=np.inf)
        if not lower < upper:
            raise ValueError(
                f"constraints must leave {name} an interval with an interior, got {name} > {lower + 0.0:g} and "
                f"{name} < {upper:g}"
            )


def box_or_half_spaces(normals: Array, offsets: Array) -> Convex:
    """The region normals · u ≤ offsets: a box where every wall is along an axis, whose reflection is exact."""
    single = (normals != 0.0).sum(axis=1) == 1
    if not single.all():
        return domains.half_spaces(normals, offsets)
    lower, upper = np.full(normals.shape[1], -np.inf), np.full(normals.shape[1], np.inf)
    for normal, offset in zip(normals, offsets, strict=True):
        k = int(np.argmax(np.abs(normal)))
        if normal[k] > 0.0:
            upper[k] = min(upper[k], offset / normal[k])
        else:
            lower[k] = max(lower[k], offset / normal[k])
    return domains.box(lower, upper)


def to_logarithms(wall: Linear, names: tuple[str, ...], log: Bools) -> list[Linear]:
    """The wall in v: unchanged, or as a bound of the logarithm; none where it always holds."""
    used = np.flatnonzero(wall.normal)
    if not log[used].any():
        return [wall]
    if used.size > 1:
        joined = ", ".join(names[k] for k in used)
        raise ValueError(
            f"constraints must not join {joined}, of which {names[used[log[used]][0]]} is sampled as its logarithm: "
            f"give log=() to identify, or bounds of single parameters"
        )
    k = int(used[0])
    bound = wall.offset / wall.normal[k]
    is_lower_bound = bool(wall.normal[k] < 0.0)  # θ ≥ bound
    if bound <= 0.0:
        if is_lower_bound:
            return []
        raise ValueError(f"constraints must leave positive values of {names[k]}, got {names[k]} <= {bound:g}")
    sign = -1.0 if is_lower_bound else 1.0
    return [Linear(sign * np.eye(len(names))[k], sign * float(np.log(bound)))]


MAX_CHARACTERS = 10_000  # of one constraint
MAX_DEPTH = 50  # of brackets within brackets
EXAMPLE = "inequalities such as 'sigma > 1 + beta'"
NUMBER = r"(?:[0-9]+(?:_[0-9]+)*\.?(?:[0-9]+(?:_[0-9]+)*)?|\.[0-9]+(?:_[0-9]+)*)(?:[eE][-+]?[0-9]+(?:_[0-9]+)*)?"


class Token(NamedTuple):
    """A piece of a constraint: its kind ("name", "number", "sign" or "end"), its text, and where it begins."""

    kind: str
    text: str
    column: int  # from 1


def parse_inequalities(text: str, names: tuple[str, ...]) -> list[Linear]:
    """The walls of "a < b", "a < b < c" and so on; < and <= mean the same.

    Sums, differences, products and quotients of numbers and parameters, in brackets or not. Raises ValueError naming
    the column for anything else, and for above ``MAX_CHARACTERS`` or brackets deeper than ``MAX_DEPTH``.
    """
    if len(text) > MAX_CHARACTERS:
        raise ValueError(
            f"constraints must be texts of at most {MAX_CHARACTERS} characters, got {len(text)}: {shown(text)}"
        )
    reader = Reader(text, names)
    sides, signs = [reader.sum()], []
    while reader.token.text in ("<", "<=", ">", ">="):
        signs.append(reader.take())
        sides.append(reader.sum())
    if reader.token.kind != "end" or not signs:
        raise reader.error(f"must be {EXAMPLE}")
    walls = []
    for (left, right), sign in zip(itertools.pairwise(sides), signs, strict=True):
        low, high = (left, right) if sign.text.startswith("<") else (right, left)
        with np.errstate(all="ignore"):
            normal, offset = (low - high)[:-1], float((high - low)[-1])
        if not np.isfinite([*normal, offset]).all():
            raise reader.error("must have coefficients that are finite", sign)
        if not normal.any():
            raise reader.error(f"must hold a parameter ({listed(names)})", sign)
        walls.append(Linear(normal, offset))
    return walls


def listed(names: Sequence[str]) -> str:
    """The first names in a message."""
    return ", ".join(names[:20]) + (", …" if len(names) > 20 else "")


class Reader:
    """Reads a constraint from left to right: each method reads one part of it, as its coefficients (q + 1,).

    Those of the parameters, and the constant last.
    """

    def __init__(self, text: str, names: tuple[str, ...]) -> None:
        longest_first = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
        self.text, self.names = text, names
        self.index_of = {name: k for k, name in enumerate(names)}
        self.pattern = re.compile(
            rf"(?P<name>(?<!\w)(?:{longest_first})(?!\w))|(?P<number>{NUMBER})(?!\w)|(?P<sign><=|>=|[-+*/()<>])"
        )
        self.depth, self.place, self.end = 0, len(text) - len(text.lstrip()), len(text.rstrip())
        self.token = self.next()

    def error(self, what: str, token: Token | None = None) -> ValueError:
        """The error that the constraints ``what``, at a token or the next."""
        column = (token or self.token).column
        return ValueError(f"constraints {what}, got {shown(self.text)}, column {column}")

    def next(self) -> Token:
        """The token at ``place``. Raises ValueError where there is none."""
        while self.place < len(self.text) and self.text[self.place] in (" \t\f\r\n" if self.depth else " \t\f"):
            self.place += 1  # Python's rule for lines within brackets
        start = self.place
        if start >= self.end:
            return Token("end", "", start + 1)
        found = self.pattern.match(self.text, start)
        if found is None:
            token = Token("sign", self.text[start], start + 1)
            word = re.compile(r"\w+").match(self.text, start)
            if word and not token.text.isdigit():
                raise ValueError(
                    f"constraints must name parameters ({listed(self.names)}), got {shown(word[0])} in "
                    f"{shown(self.text)}, column {token.column}"
                )
            if token.text == "#":
                raise self.error("must not hold '#'", token)
            raise self.error(f"must be {EXAMPLE}", token)
        self.place = found.end()
        return Token(found.lastgroup or "", found[0], start + 1)

    def take(self) -> Token:
        """The token; the next takes its place."""
        token = self.token
        self.depth += {"(": 1, ")": -1}.get(token.text, 0)
        self.token = self.next()
        return token

    def sum(self) -> Array:
        """Products between + and −."""
        total = self.product()
        while self.token.text in ("+", "-"):
            sign = self.take()
            other = self.product()
            with np.errstate(all="ignore"):
                total = total + other if sign.text == "+" else total - other
        return total

    def product(self) -> Array:
        """Factors between * and /, of which at most one has parameters."""
        left = self.factor()
        while self.token.text in ("*", "/"):
            sign = self.take()
            right = self.factor()
            divides = sign.text == "/"
            if right[:-1].any() and (divides or left[:-1].any()):
                raise self.error("must be linear in the parameters", sign)
            if divides and right[-1] == 0.0:
                raise self.error("must not divide by 0", sign)
            with np.errstate(all="ignore"):
                scaled = right * left[-1] if right[:-1].any() else left * right[-1]
                left = left / right[-1] if divides else scaled
        return left

    def factor(self) -> Array:
        """A number, a parameter or a bracket, after any number of signs."""
        is_negative = False
        while self.token.kind == "sign" and self.token.text in ("+", "-"):
            is_negative ^= self.take().text == "-"
        token = self.token
        value = np.zeros(len(self.names) + 1)
        if token.kind == "name":
            value[self.index_of[self.take().text]] = 1.0
        elif token.kind == "number":
            number = float(self.take().text)
            if not np.isfinite(number):
                raise self.error(f"must be finite, got {number} of {shown(token.text)}", token)
            value[-1] = number
        elif token.text == "(":
            if self.depth >= MAX_DEPTH:
                raise self.error(f"must have brackets at most {MAX_DEPTH} deep")
            self.take()
            value = self.sum()
            if self.token.text != ")":
                raise self.error("must close the bracket")
            self.take()
        else:
            raise self.error(f"must be {EXAMPLE}")
        return -value if is_negative else value
