"""The float32 twin of a part: the same code with float32 constants, and with our elementary functions for float32.

A Python literal is a float64, and Numba promotes every float32 combined with it to float64. So the constants of a
function, of the functions it calls, and of their globals and closures are converted to float32, each function is
compiled again, and our elementary functions are replaced by those of ``float32_maths``. Functions whose numbers need
more than 24 bits stay float64 (``KEPT``), and their results are combined with the rest by ordinary promotion: θ and its
visits, the tempering variable with its bias, counters of minibatches.
"""

import builtins
import math
import types as python_types
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numba import njit

from ..._compiler.code_walk import constants_in, is_ours, names_in, transformed
from ..._compiler.decorators import FLOAT32_NUMBERS
from ..._compiler.function_digest import stored_name
from ..._compiler.numba_private import Dispatcher
from ...errors import shown
from ...maths import elementary, medians, philox, special
from ...tempering import continuous, contour_tempering, exchange
from .. import phases
from . import float32_maths

Function = python_types.FunctionType
Single = np.float32

KEPT = {
    contour_tempering.contour_multiplier, contour_tempering.update_theta, contour_tempering.initialise_bin,
    contour_tempering.nearest_visited,
    continuous.coupling, continuous.find_kicks, continuous.temper_continuously, continuous.push_and_learn,
    phases.set_counters, exchange.estimate_corrections,
}  # fmt: skip
FLOAT32_VERSIONS: dict[Any, Any] = {
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
TWINS: dict[Any, Any] = {}


class PrecisionError(ValueError):
    """A part that float32 cannot hold."""


def numbers_read(function: Function) -> set[float]:
    """The floats among a function's constants, and among the globals and cells that it reads."""
    names = names_in(function.__code__)
    values = [function.__globals__[key] for key in names & function.__globals__.keys()]
    values += [cell.cell_contents for cell in function.__closure__ or ()]
    return {float(value) for value in [*constants_in(function.__code__), *values] if isinstance(value, float)}


def replacements_of(function: Function) -> dict[float, float]:
    """What ``in_float32`` gave a function. Raises LookupError where one of ours reads others of these numbers."""
    if not is_ours(str(function.__module__)):
        return {}
    name = stored_name(function)
    own = FLOAT32_NUMBERS.get(name, {})
    read = numbers_read(function) & set().union(*FLOAT32_NUMBERS.values())
    if read != own.keys():
        raise LookupError(f"in_float32 must have the numbers of {name}, which reads {read}, got {own}")
    return own


def to_single(value: float, name: str, replacements: Mapping[float, float] = MappingProxyType({})) -> Any:
    """``value``, or its replacement, as a float32.

    Raises PrecisionError where it would be 0, inf, or subnormal with fewer digits.
    """
    number = replacements.get(float(value), float(value))
    with np.errstate(over="ignore", under="ignore"):
        single = Single(number)
    if math.isfinite(number) and (np.isinf(single) or (number != 0.0 and abs(single) < np.finfo(Single).tiny)):
        raise PrecisionError(f"dtype must be 'float64' for {name}: no float32 can hold {shown(value)}")
    return single


def to_singles(values: Any, name: str) -> Any:
    """An array of floats as float32. Raises PrecisionError as ``to_single``."""
    given = np.asarray(values, np.float64)
    size = np.abs(given[np.isfinite(given) & (given != 0.0)])
    for extreme in (size.max(), size.min()) if size.size else ():
        to_single(float(extreme), name)
    return given.astype(Single)


def twin(function: Callable[..., Any]) -> Any:
    """The float32 twin of ``function``, compiled when it is called; made once.

    Raises PrecisionError where a float32 cannot hold one of its constants.
    """
    done = dict(TWINS)  # a failure leaves no half-made twins behind
    result = make_twin(function, done)
    TWINS.update(done)
    return result


def make_twin(function: Any, done: dict[Any, Any]) -> Any:
    """``twin``, including the functions it calls; done: twins by their uncompiled originals."""
    function = FLOAT32_VERSIONS.get(function, function)
    plain: Any = function.py_func if isinstance(function, Dispatcher) else function
    if plain in done:
        return done[plain]
    name, module = f"{plain.__module__}.{plain.__qualname__}", str(plain.__module__)
    space: dict[str, Any] = {"__builtins__": builtins, "__name__": module, "float": Single}
    cells = tuple(python_types.CellType() for _ in plain.__closure__ or ())
    changed = replacements_of(plain)

    def single(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(single, value))
        return to_single(value, name, changed) if isinstance(value, float) else value

    own = transformed(plain.__code__, lambda code: code.replace(co_consts=tuple(map(single, code.co_consts))))
    bound = Function(own, space, plain.__name__, to_float32(plain.__defaults__, set(), name, changed, done), cells)
    bound.__qualname__, bound.__module__ = plain.__qualname__, module
    options = getattr(function, "targetoptions", {})
    kept = {key: options[key] for key in ("forceinline", "_nrt") if key in options}
    done[plain] = njit(error_model="numpy", **{"_nrt": False, **kept})(bound)
    # After ``done`` is set, because a function may call itself.
    names = names_in(plain.__code__)
    for key in sorted(names & plain.__globals__.keys()):
        space[key] = to_float32(plain.__globals__[key], names, name, changed, done)
    for cell, given in zip(cells, plain.__closure__ or (), strict=True):
        cell.cell_contents = to_float32(given.cell_contents, names, name, changed, done)
    return done[plain]


def to_float32(value: Any, names: set[str], caller: str, changed: Mapping[float, float], done: dict[Any, Any]) -> Any:
    """The float32 form of a global or a closure's ``value``; names: the members of a module that are read."""
    if any(value is other for other in ONLY_FLOAT64):
        raise PrecisionError(f"dtype must be 'float64' for {caller}, which works on the bits of float64 numbers")
    if isinstance(value, Dispatcher):
        return value if value in KEPT else make_twin(value, done)
    if isinstance(value, float):  # a NumPy float64 too
        return to_single(value, caller, changed)
    if isinstance(value, np.ndarray) and value.dtype == np.float64:
        return to_singles(value, caller)
    if isinstance(value, tuple):
        items = [to_float32(item, names, caller, changed, done) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, python_types.ModuleType):
        copy = python_types.ModuleType(value.__name__)
        vars(copy).update({key: item for key, item in vars(value).items() if key[:2] != "__"})
        for key in sorted(names & vars(copy).keys()):
            item = vars(copy)[key]
            if not isinstance(item, python_types.ModuleType):
                vars(copy)[key] = to_float32(item, names, caller, changed, done)
        return copy
    return value
