"""One step of a Runge–Kutta method for one state, inlined into loops over lanes; for floats and for complex numbers."""

import functools
from collections.abc import Callable
from typing import Any

from numba import types
from numba.core.errors import NumbaError
from numba.extending import is_jitted, overload

from toolkit._compiler import INLINE, bound, inlined, own_flags
from toolkit.maths.elementary import fma
from toolkit.problem import rebind

from ..systems.system import analytic, tuple_text

RK4_STAGES = ((0.5, (0.5,)), (0.5, (0.0, 0.5)), (1.0, (0.0, 0.0, 1.0)))
RK4_WEIGHTS = (1 / 6, 1 / 3, 1 / 3, 1 / 6)
RK5_STAGES = (
    (1 / 5, (1 / 5,)),
    (3 / 10, (3 / 40, 9 / 40)),
    (4 / 5, (44 / 45, -56 / 15, 32 / 9)),
    (8 / 9, (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729)),
    (1.0, (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656)),
)
RK5_WEIGHTS = (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84)
ORDERS = {"rk4": 4, "rk5": 5}
TABLEAUS = {"rk4": (RK4_STAGES, RK4_WEIGHTS), "rk5": (RK5_STAGES, RK5_WEIGHTS)}


def is_complex(*kinds: Any) -> bool:
    """Whether one of Numba's types, or an entry of a tuple of them, is complex."""
    return any(
        is_complex(*kind) if isinstance(kind, types.BaseTuple) else isinstance(kind, types.Complex) for kind in kinds
    )


def built(name: str, source: str, **space: Any) -> Callable[..., Any]:
    """The function ``name`` of our own text ``source``."""
    space["__name__"] = __name__
    exec(compile(source, f"<{name}>", "exec"), space)
    return space[name]  # type: ignore[no-any-return]


def weighted(x, weights, slopes):
    """x + Σ_i weights[i] slopes[i] of tuples: floats with fused multiply-adds, or complex numbers."""
    raise NotImplementedError("it is for compiled code")


@overload(weighted, jit_options=INLINE)
def weighted_compiled(x, weights, slopes):
    """The sum written out for these lengths."""
    entries = []
    for d in range(len(x)):
        entry = f"x[{d}]"
        for i in range(len(slopes)):
            term = f"weights[{i}], slopes[{i}][{d}]"
            entry = f"{entry} + {term.replace(', ', '*')}" if is_complex(x, slopes) else f"fma({term}, {entry})"
        entries.append(entry + (" + 0j" if is_complex(x, slopes) else ""))
    return built("add", f"def add(x, weights, slopes):\n    return {tuple_text(entries)}", fma=fma)


@functools.cache
def slope_of(rhs: Callable[..., Any]) -> Any:
    """The right-hand side compiled to be inlined: with the toolkit's functions on floats, so that loops vectorise."""
    plain = rhs if is_jitted(rhs) else inlined(rhs)
    ours, of_complex = rebind(rhs, allocates=False, ours=True), analytic(rhs)

    def slope(t, x, p):
        raise NotImplementedError("it is for compiled code")

    @overload(slope, jit_options=INLINE)
    def slope_compiled(t, x, p):
        chosen = of_complex
        if not is_complex(t, x, p):
            try:
                with own_flags():
                    ours.compile((t, x, p))
                chosen = ours
            except NumbaError:
                chosen = plain
        return lambda t, x, p: chosen(t, x, p)

    return slope


@functools.cache
def step_of(rhs: Callable[..., Any], method: str) -> Any:
    """One step of a method of ``TABLEAUS``."""
    stages, weights = TABLEAUS[method]
    lines = ["def step(t, h, x, p):", "    k0 = slope(t, x, p)"]
    for i, (node, row) in enumerate(stages, 1):
        lines.append(f"    k{i} = slope(t + {node!r}*h, {step_text(row)}, p)")
    source = "\n".join([*lines, f"    return {step_text(weights)}"])
    return inlined(built("step", source, slope=slope_of(rhs), weighted=weighted))


# Of two stages at one time: how far apart their states are, Σ a_i h k_i, and h times their slopes, Σ b_i h k_i. The
# fifth-order method needs one slope more for it, at the state after the step.
STAGE_PAIRS = {
    "rk4": ((-0.5, 0.5), (0.0, -1.0, 1.0)),
    "rk5": (
        tuple(b - a for b, a in zip(RK5_WEIGHTS, (*RK5_STAGES[-1][1], 0.0), strict=True)),
        (0.0, 0.0, 0.0, 0.0, 0.0, -1.0, 1.0),
    ),
}


@functools.cache
def judged_step_of(rhs: Callable[..., Any], method: str, dim: int) -> Any:
    """One step of a method of ``TABLEAUS`` with two tuples (dim,) that tell how its length compares with the rates.

    The tuples are the difference between the states of two stages at one time, and that of their slopes times the step
    h. The ratio of their norms is at most h‖∂f/∂x‖, and near h|λ| for the rate λ that dominates the difference.
    Source: Collatz (1960), The Numerical Treatment of Differential Equations, II.3.4, for the stages of order 4; Hairer
    & Wanner (1996), Solving Ordinary Differential Equations II, IV.2, for those of Dormand & Prince.
    """
    stages, weights = TABLEAUS[method]
    states, slopes = STAGE_PAIRS[method]
    zeros = tuple_text(["0.0"] * dim)
    lines = ["def step(t, h, x, p):", "    k0 = slope(t, x, p)"]
    for i, (node, row) in enumerate(stages, 1):
        lines.append(f"    k{i} = slope(t + {node!r}*h, {step_text(row)}, p)")
    lines.append(f"    y = {step_text(weights)}")
    if len(slopes) > len(stages) + 1:
        lines.append(f"    k{len(stages) + 1} = slope(t + h, y, p)")
    lines.append(f"    return y, {step_text(states, zeros)}, {step_text(slopes, zeros)}")
    return inlined(built("step", "\n".join(lines), slope=slope_of(rhs), weighted=weighted))


def step_text(row: tuple[float, ...], first: str = "x") -> str:
    """The text of ``first`` + h Σ_i row[i] k_i."""
    used = [i for i, weight in enumerate(row) if weight]
    weights, slopes = "".join(f"{row[i]!r}*h, " for i in used), "".join(f"k{i}, " for i in used)
    return f"weighted({first}, ({weights}), ({slopes}))"


def rk4_step(rhs: Callable[..., Any]) -> Any:
    """``step(t, h, x, p)``: the state after ``h`` by the classical Runge–Kutta method, of order 4; for compiled code.

    rhs: of a ``System``. x, p: tuples of floats or of complex numbers; as many steps as there are lanes vectorise in
    a loop over lanes. Law: error per step O(h⁵); analytic in x and p, so that complex steps differentiate it exactly.
    Source: Kutta (1901).
    """
    return step_of(bound(rhs), "rk4")


def rk5_step(rhs: Callable[..., Any]) -> Any:
    """``step(t, h, x, p)``: as ``rk4_step``, by the six stages of order 5 of Dormand & Prince (1980), RK5(4)7M."""
    return step_of(bound(rhs), "rk5")
