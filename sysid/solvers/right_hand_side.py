"""A system's right-hand side, or a step of it, as a block function: all lanes in one loop, behind one signature.

A solver takes it as a function pointer, so that solvers are compiled once and kept on disk, and a new system costs
the compilation of its own lines alone.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, types

from toolkit._compiler import FLOATS, MATRIX, FunctionPointer, WideCompiler, kept
from toolkit.problem import lane_access, reason

from ..arrays import Array
from ..systems.inputs import Inputs, driven, drives_at
from ..systems.system import System, checked_rhs, rhs_error
from .runge_kutta import rk4_step, rk5_step, slope_of

FIXED = {"rk4": rk4_step, "rk5": rk5_step}
COMPLEX_MATRIX = types.Array(types.complex128, 2, "C")

# The slope: (t (lane), x (dim, lane), p (n_parameters, lane), slope (dim, lane), scratch (lane)); a step of each lane:
# (t (lane), h (lane), x, p, next x, scratch). Lanes beyond those of t are not written.
SLOPE = types.void(FLOATS, MATRIX, MATRIX, MATRIX, FLOATS)
ADVANCE = types.void(FLOATS, FLOATS, MATRIX, MATRIX, MATRIX, FLOATS)
COMPLEX_ADVANCE = types.void(FLOATS, FLOATS, COMPLEX_MATRIX, COMPLEX_MATRIX, COMPLEX_MATRIX, FLOATS)


class Pointer(FunctionPointer):
    """A function pointer that can also be called from here."""

    def __init__(self, compiled: Any) -> None:
        super().__init__(compiled)
        self.compiled = compiled


@functools.lru_cache(maxsize=256)
def slope_pointer(rhs: Callable[..., Any], dim: int, n_parameters: int) -> Pointer:
    """The right-hand side of all lanes, of floats. Raises TypeError with Numba's reason where it does not compile."""
    checked_rhs(rhs, dim, n_parameters, types.float64)
    point: Any = slope_of(rhs)
    load, store = lane_access(dim)
    load_parameters, _ = lane_access(n_parameters)

    def block(t, x, p, slope, spare):
        for lane in range(t.size):
            store(spare, slope, lane, t[lane], point(t[lane], load(x, lane), load_parameters(p, lane)))

    return pointer(block, SLOPE, rhs, dim)


@functools.lru_cache(maxsize=256)
def advance_pointer(rhs: Callable[..., Any], dim: int, n_parameters: int, method: str, is_complex: bool) -> Any:
    """One step of all lanes, of floats or of complex numbers. Raises as ``slope_pointer``."""
    checked_rhs(rhs, dim, n_parameters, types.complex128 if is_complex else types.float64)
    step: Any = FIXED[method](rhs)
    if is_complex:
        x, p = (
            "".join(f"{name}[{i}, lane], " for i in range(n)) for name, n in (("x", dim), ("p", n_parameters))
        )  # fmt: skip
        lines = [f"        moved[{d}, lane] = y[{d}]" for d in range(dim)]
        source = "\n".join(
            [
                "def block(t, h, x, p, moved, spare):",
                "    for lane in range(t.size):",
                f"        y = step(t[lane], h[lane], ({x}), ({p}))",
                *lines,
            ]
        )
        space: dict[str, Any] = {"step": step, "__name__": __name__}
        exec(compile(source, "<complex block>", "exec"), space)  # our own text, of two counts
        return pointer(space["block"], COMPLEX_ADVANCE, rhs, dim)
    load, store = lane_access(dim)
    load_parameters, _ = lane_access(n_parameters)

    def block(t, h, x, p, moved, spare):
        for lane in range(t.size):
            store(spare, moved, lane, t[lane], step(t[lane], h[lane], load(x, lane), load_parameters(p, lane)))

    return pointer(block, ADVANCE, rhs, dim)


def slopes_along(system: System, times: Any, states: Any, parameters: Any, inputs: Inputs | None = None) -> Array:
    """The right-hand side (n, dim) at ``times`` (n,) and ``states`` (n, dim), nan where a state is, of one lane."""
    n, dim, when = len(times), system.dim, np.array(times, np.float64)
    slope = np.empty((dim, n))
    p = np.tile(np.asarray(parameters, np.float64)[:, None], (1, n))
    p = np.ascontiguousarray(np.concatenate([p, drives_at(system, inputs, when).T]))
    compiled = slope_pointer(driven(system).rhs, dim, len(p)).compiled
    compiled(when, np.array(np.transpose(states), np.float64, order="C"), p, slope, np.empty(n))
    return np.ascontiguousarray(slope.T)


def pointer(block: Callable[..., None], signature: Any, rhs: Callable[..., Any], dim: int) -> Pointer:
    """A block function compiled; TypeError naming the right-hand side, with Numba's reason, where it does not."""
    try:
        compiled = kept(njit(nogil=True, error_model="numpy", _nrt=False, pipeline_class=WideCompiler)(block))
        compiled.compile(signature)
        compiled.disable_compile()
        return Pointer(compiled)
    except Exception as error:  # Numba refuses in many classes
        raise rhs_error(rhs, dim, "", reason(error)) from error
