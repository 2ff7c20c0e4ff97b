"""The float32 twin of a part: the same code, with float32 numbers in place of its constants and of our maths.

A literal of Python is a float64, beside which Numba takes every float32 to float64. So the constants of a function, of
the functions it calls, and of their globals and closures are put down as float32, each function is compiled anew, and
our elementary functions give way to those of ``float32_maths``. What 24 bits cannot hold stays as it is (``KEPT``), and
meets the rest by ordinary promotion: θ and its visits, the tempering variable with its bias, counters of minibatches.
"""

import builtins
import math
import types as python_types
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numba import njit
from numba.core.dispatcher import Dispatcher

from ..._compiler.code_walk import constants_in, is_ours, names_in, transformed
from ..._compiler.function_digest import stored_name
from ...dynamics import preconditioned
from ...maths import elementary, medians, philox, special
from ...tempering import continuous, contour_tempering, exchange, stein_particles
from .. import energies
from . import float32_maths

Function = python_types.FunctionType
Single = np.float32

KEPT = {
    contour_tempering.contour_multiplier, contour_tempering.update_theta, contour_tempering.initialise_bin,
    contour_tempering.nearest_visited,
    continuous.coupling, continuous.find_kicks, continuous.temper_continuously, continuous.push_and_learn,
    energies.set_counters, exchange.estimate_corrections,
}  # fmt: skip
NAMESAKES: dict[Any, Any] = {
    elementary.exp: float32_maths.exp,
    elementary.exp_share: float32_maths.exp_share,
    elementary.log: float32_maths.log,
    elementary.log_of_normal: float32_maths.log,
    elementary.sincos: float32_maths.sincos,
    elementary.sincos_turns: float32_maths.sincos_turns,
    elementary.sincos_bounded_turns: float32_maths.sincos_turns,
    special.expm1: float32_maths.expm1,
    special.with_sign: float32_maths.with_sign,
    philox.to_uniform: float32_maths.to_uniform,
    medians.neighbours: float32_maths.neighbours,
}
ONLY_FLOAT64 = (elementary.to_bits, elementary.from_bits)
# Numbers that mean something else in 24 bits: of our functions that read them, by ``stored_name``, what stands in for
# each. A function that reads other ones of them than it has here gets no twin (``stand_ins``).
PI_LOW = {special.PI_LOW: -8.742277657347586e-08}  # π less its float32
INSTEAD: dict[str, dict[float, float]] = {
    stored_name(special.angle): PI_LOW,
    stored_name(special.atan2): PI_LOW,
    stored_name(preconditioned.move_preconditioned): {1e-300: 1e-37},
    stored_name(stein_particles.median_bandwidth): {1e-300: 1e-37},
    "sysid.shooting_kernel.<locals>.forbid": {1e300: 1e38},
    "sysid.beyond_of.<locals>.beyond": {1e-300: 1e-37},
}
TWINS: dict[Any, Any] = {}


class PrecisionError(ValueError):
    """A part that float32 cannot hold."""


def numbers_read(function: Function) -> set[float]:
    """The floats among a function's constants, and the globals and cells that it looks up."""
    names = names_in(function.__code__)
    there = [function.__globals__[key] for key in names & function.__globals__.keys()]
    there += [cell.cell_contents for cell in function.__closure__ or ()]
    return {float(value) for value in [*constants_in(function.__code__), *there] if isinstance(value, float)}


def stand_ins(function: Function) -> dict[float, float]:
    """What ``INSTEAD`` has for a function's numbers. Raises LookupError where it does not fit a function of ours."""
    if not is_ours(str(function.__module__)):
        return {}
    name = stored_name(function)
    found = INSTEAD.get(name, {})
    known = set().union(*INSTEAD.values())
    if numbers_read(function) & known != found.keys():
        raise LookupError(
            f"INSTEAD of {__name__} must have the numbers of {name}, which reads {numbers_read(function) & known}, got "
            f"{found}"
        )
    return found


def to_single(value: float, name: str, instead: Mapping[float, float] = MappingProxyType({})) -> Any:
    """``value``, or what is there instead, as a float32.

    Raises PrecisionError where it becomes 0 or inf, or loses digits to being subnormal.
    """
    number = instead.get(float(value), float(value))
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
    instead = stand_ins(plain)

    def single(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(single, value))
        return to_single(value, name, instead) if isinstance(value, float) else value

    own = transformed(plain.__code__, lambda code: code.replace(co_consts=tuple(map(single, code.co_consts))))
    bound = Function(own, space, plain.__name__, replaced(plain.__defaults__, set(), name, instead, done), cells)
    bound.__qualname__, bound.__module__ = plain.__qualname__, module
    options = getattr(function, "targetoptions", {})
    kept = {key: options[key] for key in ("forceinline", "_nrt") if key in options}
    done[plain] = njit(error_model="numpy", **{"_nrt": False, **kept})(bound)
    # Only now, as a function may call itself.
    names = names_in(plain.__code__)
    for key in sorted(names & plain.__globals__.keys()):
        space[key] = replaced(plain.__globals__[key], names, name, instead, done)
    for cell, given in zip(cells, plain.__closure__ or (), strict=True):
        cell.cell_contents = replaced(given.cell_contents, names, name, instead, done)
    return done[plain]


def replaced(value: Any, names: set[str], caller: str, instead: Mapping[float, float], done: dict[Any, Any]) -> Any:
    """What stands in for a global or a closure's ``value``; names: of a module, those that are looked up in it."""
    if any(value is other for other in ONLY_FLOAT64):
        raise PrecisionError(f"dtype must be 'float64' for {caller}, which works on the bits of float64 numbers")
    if isinstance(value, Dispatcher):
        return value if value in KEPT else make_twin(value, done)
    if isinstance(value, float):  # a NumPy float64 too
        return to_single(value, caller, instead)
    if isinstance(value, np.ndarray) and value.dtype == np.float64:
        return to_singles(value, caller)
    if isinstance(value, tuple):
        items = [replaced(item, names, caller, instead, done) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, python_types.ModuleType):
        seen = python_types.ModuleType(value.__name__)
        vars(seen).update({key: item for key, item in vars(value).items() if key[:2] != "__"})
        for key in sorted(names & vars(seen).keys()):
            item = vars(seen)[key]
            if not isinstance(item, python_types.ModuleType):
                vars(seen)[key] = replaced(item, names, caller, instead, done)
        return seen
    return value
