"""Constraints of parameters: linear inequalities as text, convex regions, or a user's function."""

import ast
import itertools
import re
import unicodedata
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from targets import domains
from targets.domains.convex import Convex
from toolkit.errors import check_number, shown

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


def parse_inequalities(text: str, names: tuple[str, ...]) -> list[Linear]:
    """The walls of "a < b", "a < b < c" and so on; < and <= mean the same. Raises ValueError otherwise."""
    longest_first = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    prefix = "parameter_"
    while prefix in unicodedata.normalize("NFKC", text):  # as Python reads names; none of the user's may stand for one
        prefix += "_"
    index_of = {f"{prefix}{k}": k for k in range(len(names))}
    renamed = re.sub(  # "dx:xy" is no name to Python
        rf"(?<!\w)(?:{longest_first})(?!\w)", lambda found: f" {prefix}{names.index(found[0])} ", text
    )
    if "#" in renamed:
        raise ValueError(f"constraints must not hold '#', after which nothing would be read, got {shown(text)}")
    try:
        tree = ast.parse(renamed.strip(), mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"constraints must be inequalities such as 'sigma > 1 + beta', got {shown(text)}") from error
    if not isinstance(tree, ast.Compare) or not all(
        isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for op in tree.ops
    ):
        raise ValueError(f"constraints must be inequalities such as 'sigma > 1 + beta', got {shown(text)}")
    sides = [linear_form(node, index_of, names, text) for node in (tree.left, *tree.comparators)]
    walls = []
    for (left, right), op in zip(itertools.pairwise(sides), tree.ops, strict=True):
        low, high = (left, right) if isinstance(op, ast.Lt | ast.LtE) else (right, left)
        normal, offset = (low - high)[:-1], float((high - low)[-1])
        if not normal.any():
            raise ValueError(f"constraints must hold a parameter ({', '.join(names)}), got {shown(text)}")
        walls.append(Linear(normal, offset))
    return walls


def linear_form(node: Any, index_of: dict[str, int], names: tuple[str, ...], text: str) -> Array:
    """An expression of the identifiers ``index_of`` (→ 0 … q − 1) as its coefficients (q + 1,), the constant last."""
    constant = np.zeros(len(names) + 1)
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        constant[-1] = check_number(f"a number of the constraint {text!r}", node.value)
        return constant
    if isinstance(node, ast.Name):
        if node.id not in index_of:
            raise ValueError(f"constraints must name parameters ({', '.join(names)}), got {node.id!r} in {shown(text)}")
        constant[index_of[node.id]] = 1.0
        return constant
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        value = linear_form(node.operand, index_of, names, text)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BinOp):
        left, right = linear_form(node.left, index_of, names, text), linear_form(node.right, index_of, names, text)
        if isinstance(node.op, ast.Add | ast.Sub):
            return left + right if isinstance(node.op, ast.Add) else left - right
        if isinstance(node.op, ast.Mult) and not (left[:-1].any() and right[:-1].any()):
            return np.asarray(left * right[-1] if not right[:-1].any() else right * left[-1])
        if isinstance(node.op, ast.Div) and not right[:-1].any() and right[-1] != 0.0:
            return np.asarray(left / right[-1])
    raise ValueError(f"constraints must be linear in the parameters, got {shown(text)}")
