"""The float32 twin of a part: the same code, with float32 numbers in place of its constants and of our maths.

A literal of Python is a float64, beside which Numba takes every float32 to float64. So the constants of a function, of
the functions it calls, and of their globals and closures are put down as float32, each function is compiled anew, and
our elementary functions give way to those of ``single_maths``. What 24 bits cannot hold stays as it is (``KEPT``), and
meets the rest by ordinary promotion: θ and its visits, the tempering variable with its bias, counters of minibatches.
"""

import builtins
import math
import types as python_types
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numba.core.dispatcher import Dispatcher

from . import (
    coupling,
    evaluation,
    flattening,
    hyperbolic,
    learning,
    maths,
    medians,
    philox,
    single_maths,
    swapping,
    trigonometry,
)
from .bytecode import names_in

Function = python_types.FunctionType
Single = np.float32

KEPT = {
    flattening.flatten, learning.learn, learning.open_bin, flattening.nearest_visited, coupling.coupling,
    coupling.find_kicks, coupling.temper_continuously, coupling.push_and_learn, evaluation.set_counters,
    swapping.estimate_corrections,
}  # fmt: skip
NAMESAKES: dict[Any, Any] = {
    maths.exp: single_maths.exp,
    maths.exp_share: single_maths.exp_share,
    maths.log: single_maths.log,
    maths.log_of_normal: single_maths.log,
    maths.sincos: single_maths.sincos,
    maths.sincos_turns: single_maths.sincos_turns,
    maths.sincos_bounded_turns: single_maths.sincos_turns,
    hyperbolic.expm1: single_maths.expm1,
    trigonometry.with_sign: single_maths.with_sign,
    philox.to_uniform: single_maths.to_uniform,
    medians.neighbours: single_maths.neighbours,
}
ONLY_FLOAT64 = (maths.to_bits, maths.from_bits)
# What means something else in 24 bits: what a constant's module calls it, and what stands in for it.
INSTEAD = {
    ("toolkit.preconditioned", 1e-300): 1e-37,
    ("toolkit.stein", 1e-300): 1e-37,
    ("toolkit.trigonometry", trigonometry.PI_LOW): -8.742277657347586e-08,
    ("sysid.shooting", 1e300): 1e38,
    ("sysid.implicit", 1e-300): 1e-37,
}
TWINS: dict[Any, Any] = {}


class PrecisionError(ValueError):
    """A part that float32 cannot hold."""


def to_single(value: float, name: str, module: str = "") -> Any:
    """``value`` as a float32. Raises PrecisionError where it becomes 0 or inf, or loses digits to being subnormal."""
    number = INSTEAD.get((module, float(value)), float(value))
    with np.errstate(over="ignore", under="ignore"):
        single = Single(number)
    if math.isfinite(number) and (np.isinf(single) or (number != 0.0 and abs(single) < np.finfo(Single).tiny)):
        raise PrecisionError(f"dtype must be 'float64' for {name}: no float32 can hold {value!r}")
    return single


def to_singles(values: Any, name: str) -> Any:
    """An array of floats as float32. Raises PrecisionError as ``to_single``."""
    given = np.asarray(values, np.float64)
    size = np.abs(given[np.isfinite(given) & (given != 0.0)])
    for extreme in (size.max(), size.min()) if size.size else ():
        to_single(float(extreme), name)
    return given.astype(Single)


def twin(function: Callable[..., Any]) -> Any:
    """The float32 twin of ``function``, to be compiled where it is called; made once.

    Raises PrecisionError where one of its constants is no float32.
    """
    done = dict(TWINS)  # a failure leaves no half-made twins behind
    made = make_twin(function, done)
    TWINS.update(done)
    return made


def make_twin(function: Any, done: dict[Any, Any]) -> Any:
    """``twin``, of the functions it calls too; done: twins by their uncompiled originals."""
    function = NAMESAKES.get(function, function)
    plain: Any = function.py_func if isinstance(function, Dispatcher) else function
    if plain in done:
        return done[plain]
    name, module = f"{plain.__module__}.{plain.__qualname__}", str(plain.__module__)
    space: dict[str, Any] = {"__builtins__": builtins, "__name__": module, "float": Single}
    cells = tuple(python_types.CellType() for _ in plain.__closure__ or ())
    own = single_code(plain.__code__, name, module)
    bound = Function(own, space, plain.__name__, replaced(plain.__defaults__, set(), name, module, done), cells)
    bound.__qualname__, bound.__module__ = plain.__qualname__, module
    options = getattr(function, "targetoptions", {})
    kept = {key: options[key] for key in ("forceinline", "_nrt") if key in options}
    done[plain] = njit(error_model="numpy", **{"_nrt": False, **kept})(bound)
    # Only now, as a function may call itself.
    names = names_in(plain.__code__)
    for key in sorted(names & plain.__globals__.keys()):
        space[key] = replaced(plain.__globals__[key], names, name, module, done)
    for cell, given in zip(cells, plain.__closure__ or (), strict=True):
        cell.cell_contents = replaced(given.cell_contents, names, name, module, done)
    return done[plain]


def single_code(code: python_types.CodeType, name: str, module: str) -> python_types.CodeType:
    """``code`` with float32 constants."""

    def single(value: Any) -> Any:
        if isinstance(value, python_types.CodeType):
            return single_code(value, name, module)
        if isinstance(value, tuple):
            return tuple(map(single, value))
        return to_single(value, name, module) if isinstance(value, float) else value

    return code.replace(co_consts=tuple(map(single, code.co_consts)))


def replaced(value: Any, names: set[str], caller: str, module: str, done: dict[Any, Any]) -> Any:
    """What stands in for a global or a closure's ``value``; names: of a module, those that are looked up in it."""
    if any(value is other for other in ONLY_FLOAT64):
        raise PrecisionError(f"dtype must be 'float64' for {caller}, which works on the bits of float64 numbers")
    if isinstance(value, Dispatcher):
        return value if value in KEPT else make_twin(value, done)
    if isinstance(value, float):  # a NumPy float64 too
        return to_single(value, caller, module)
    if isinstance(value, np.ndarray) and value.dtype == np.float64:
        return to_singles(value, caller)
    if isinstance(value, tuple):
        items = [replaced(item, names, caller, module, done) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, python_types.ModuleType):
        seen = python_types.ModuleType(value.__name__)
        vars(seen).update({key: item for key, item in vars(value).items() if key[:2] != "__"})
        for key in sorted(names & vars(seen).keys()):
            item = vars(seen)[key]
            if not isinstance(item, python_types.ModuleType):
                vars(seen)[key] = replaced(item, names, caller, module, done)
        return seen
    return value
