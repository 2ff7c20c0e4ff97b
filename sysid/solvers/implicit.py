"""Implicit steps for stiff systems, and their exact adjoint: an L-stable diagonally implicit Runge–Kutta method.

Each stage is solved by Newton's method with the exact Jacobian. Source: Hairer & Wanner (1996), Solving Ordinary
Differential Equations II, IV.6; the discrete adjoint, Hager (2000).
"""

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

from toolkit._compiler import inlined, noinline
from toolkit.maths.elementary import fma, larger, select

from ..systems.system import tuple_text
from .adjoint import backward_step
from .runge_kutta import TABLEAUS, built, slope_of, step_of, weighted

# SDIRK4, table IV.6.5: order 4, five stages, L-stable, and its last stage is the state after the step.
GAMMA = 1 / 4
NODES = (1 / 4, 3 / 4, 11 / 20, 1 / 2, 1.0)
STAGES = (
    (),
    (1 / 2,),
    (17 / 50, -1 / 25),
    (371 / 1360, -137 / 2720, 15 / 544),
    (25 / 24, -49 / 48, 125 / 16, -85 / 12),
)
# A stage's increment h γ k is first guessed from those of earlier stages, by interpolation between their nodes.
GUESSES: tuple[tuple[float, ...], ...] = ((), (1.0,), (0.4, 0.6), (0.1, -0.1, 1.0), (1.0, 3.0, 0.0, -3.0))
IMPLICIT_ORDERS = {"sdirk4": 4}
STEP_METHODS = (*TABLEAUS, *IMPLICIT_ORDERS)

MAX_NEWTON = 12  # steps of Newton's method in each stage
CONVERGED = 1e-8  # a change after which the next would be below rounding, as they shrink quadratically
NEARLY, ROUNDING = 1e-6, 1e-12  # changes that rounding may leave: of a state itself, and of the largest


def steps_of(rhs: Callable[..., Any], pull: Any, method: str, dim: int) -> tuple[Any, Any]:
    """``step(t, h, x, p)`` of a method of ``STEP_METHODS`` and its adjoint ``back(t, h, x, p, w, s)``.

    pull: vector–Jacobian products of ``rhs``. See ``runge_kutta.step_of`` and ``adjoint.backward_step``.
    """
    if method in IMPLICIT_ORDERS:
        return implicit_steps(rhs, pull, dim)
    return step_of(rhs, method), backward_step(rhs, pull, method, dim)


@functools.cache
def implicit_steps(rhs: Callable[..., Any], pull: Any, dim: int) -> tuple[Any, Any]:
    """The step of SDIRK4, nan where a stage is not solved, and its adjoint at the solved stages, exact to rounding."""
    solve_stage, pull_stage = stage_kernels(rhs, pull, dim)
    lines, names = [], [f"u{i}" for i in range(len(NODES))]
    for i, (node, row) in enumerate(zip(NODES, STAGES, strict=True)):
        pairs = [(a / GAMMA, name) for a, name in zip(row, names, strict=False)]
        lines.append(f"    r{i} = {sum_text('x', pairs)}")
        guess = sum_text(zeros(dim), list(zip(GUESSES[i], names, strict=False)))
        lines.append(f"    u{i} = solve_stage(t + {node!r}*h, {GAMMA!r}*h, r{i}, {guess}, p)")
        lines.append(f"    x{i} = {sum_text(f'r{i}', [(1.0, f'u{i}')])}")
    space = {"weighted": weighted, "solve_stage": solve_stage, "pull_stage": pull_stage}
    last = len(NODES) - 1
    step = built("step", "\n".join(["def step(t, h, x, p):", *lines, f"    return x{last}"]), **space)
    for i in range(last, -1, -1):
        later = [(STAGES[j][i] / GAMMA, f"y{j}") for j in range(last, i, -1)]
        of_end = [(1.0 if i == last else STAGES[last][i] / GAMMA, "w")]
        pulled = sum_text(zeros(dim), of_end + later)
        lines.append(f"    y{i}, q{i} = pull_stage(t + {NODES[i]!r}*h, {GAMMA!r}*h, x{i}, {pulled}, p)")
    in_x, in_p = ([(1.0, f"{name}{i}") for i in range(last, -1, -1)] for name in "yq")
    lines.append(f"    return {sum_text('w', in_x)}, {sum_text('s', in_p)}")
    back = built("back", "\n".join(["def back(t, h, x, p, w, s):", *lines]), **space)
    return inlined(step), inlined(back)


def sum_text(first: str, pairs: list[tuple[float, str]]) -> str:
    """The text of first + Σ a · tuple, of pairs of a and the name of a tuple."""
    used = [(a, name) for a, name in pairs if a]
    if not used:
        return first
    factors, tuples = "".join(f"{a!r}, " for a, _ in used), "".join(f"{name}, " for _, name in used)
    return f"weighted({first}, ({factors}), ({tuples}))"


def zeros(dim: int) -> str:
    """The text of a tuple of zeros."""
    return tuple_text(["0.0"] * dim)


def stage_kernels(rhs: Callable[..., Any], pull: Any, dim: int) -> tuple[Any, Any]:
    """``solve_stage(t, g, r, u, p)`` → u = g f(t, r + u, p), from a guess u, nan where Newton's method fails.

    And ``pull_stage(t, g, y, w, p)`` → for the solution y = r + u, slopes in r and p of w·u with what u passes on.
    g: h γ. They are called, not inlined, as a step has five stages.
    """
    states = range(dim)
    units = [tuple_text([repr(float(d == e)) for e in states]) for d in states]
    rows = [f"        j{d} = pull(t, y, p, {unit})[0]" for d, unit in enumerate(units)]
    entry = [[f"{'1.0 - ' if d == e else '-'}g*j{d}[{e}]" for e in states] for d in states]
    matrix = tuple_text([tuple_text(row) for row in entry])
    transposed = tuple_text([tuple_text(list(row)) for row in zip(*entry, strict=True)])
    changes = [f"abs(c[{d}])" for d in states]
    sizes = [f"(abs(r[{d}]) + abs(u[{d}]))" for d in states]
    largest = functools.reduce(lambda a, b: f"larger({a}, {b})", sizes)
    small, near = (
        " and ".join(f"{change} <= {bound}" for change, bound in zip(changes, bounds, strict=True))
        for bounds in (
            [f"{CONVERGED!r}*{size}" for size in sizes],
            [f"{NEARLY!r}*{size} + {ROUNDING!r}*largest" for size in sizes],
        )
    )
    solve_source = [
        "def solve_stage(t, g, r, u, p):",
        "    n, is_near = 0, False",
        f"    while n < {MAX_NEWTON}:",
        f"        y = {tuple_text([f'r[{d}] + u[{d}]' for d in states])}",
        "        f = slope(t, y, p)",
        *rows,
        f"        c = solve_linear({matrix}, {tuple_text([f'fma(g, f[{d}], -u[{d}])' for d in states])})",
        f"        u = {tuple_text([f'u[{d}] + c[{d}]' for d in states])}",
        f"        if {small}:",
        "            return u",
        f"        if not ({' + '.join(changes)} < inf):",
        "            break",
        f"        largest = {largest}",
        f"        is_near = {near}",
        "        n += 1",
        f"    if is_near and n == {MAX_NEWTON}:",
        "        return u",
        f"    return {tuple_text(['nan'] * dim)}",
    ]
    pull_source = [
        "def pull_stage(t, g, y, w, p):",
        *(row[4:] for row in rows),
        f"    v = solve_linear({transposed}, w)",
        f"    return pull(t, y, p, {tuple_text([f'g*v[{d}]' for d in states])})",
    ]
    space = {
        "slope": slope_of(rhs), "pull": pull, "solve_linear": linear_solver(dim), "fma": fma,
        "inf": math.inf, "nan": math.nan, "larger": larger,
    }  # fmt: skip
    solve_stage = noinline(built("solve_stage", "\n".join(solve_source), **space))
    return solve_stage, noinline(built("pull_stage", "\n".join(pull_source), **space))


@functools.cache
def linear_solver(dim: int) -> Any:
    """``solve_linear(a, b)`` → the solution of a c = b, of tuples, by elimination with partial pivoting, written out.

    Rows are exchanged by selection, so no array is indexed and nothing allocated. Of a singular matrix: inf or nan.
    """
    lines = ["def solve_linear(a, b):"]
    lines += [f"    a{d}_{e} = a[{d}][{e}]" for d, e in itertools.product(range(dim), repeat=2)]
    lines += [f"    a{d}_{dim} = b[{d}]" for d in range(dim)]
    for k in range(dim):
        for d in range(k + 1, dim):
            lines.append(f"    swap = abs(a{d}_{k}) > abs(a{k}_{k})")
            for e in range(k, dim + 1):
                one, other = f"a{k}_{e}", f"a{d}_{e}"
                lines.append(f"    {one}, {other} = select(swap, {other}, {one}), select(swap, {one}, {other})")
        lines.append(f"    pivot = 1.0/a{k}_{k}")
        for d in range(k + 1, dim):
            lines.append(f"    factor = -a{d}_{k}*pivot")
            lines += [f"    a{d}_{e} = fma(factor, a{k}_{e}, a{d}_{e})" for e in range(k + 1, dim + 1)]
    for k in range(dim - 1, -1, -1):
        lines += [f"    a{k}_{dim} = fma(-a{k}_{e}, c{e}, a{k}_{dim})" for e in range(k + 1, dim)]
        lines.append(f"    c{k} = a{k}_{dim}/a{k}_{k}")
    lines.append(f"    return {tuple_text([f'c{d}' for d in range(dim)])}")
    return inlined(built("solve_linear", "\n".join(lines), fma=fma, select=select))
