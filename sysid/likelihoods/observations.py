"""What is measured of a system: its states, and functions of them and of parameters."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from toolkit._compiler import HoldsFunctions, bound, inlined, kept, kernel, set_recipe
from toolkit.errors import check_text, is_a, shown
from toolkit.problem import reason

from ..arrays import Array
from ..solvers.adjoint import pullback_by_complex_steps
from ..solvers.lane_access import row_access
from ..solvers.runge_kutta import built, slope_of, weighted
from ..systems.inputs import Inputs, driven, drives_at, inputs_text
from ..systems.system import System, analytic, compiled_function, tuple_text
from ..systems.user_systems import wrong_derivative


@dataclass(frozen=True)
class Observation(HoldsFunctions):
    """Functions (t, x, p), or (t, x, p, u) where the system has inputs, whose values are measured, by name."""

    names: tuple[str, ...] = ()
    functions: tuple[Callable[..., Any], ...] = ()

    def __len__(self) -> int:
        """How many functions."""
        return len(self.names)

    @property
    def nans(self) -> tuple[float, ...]:
        """Values where there is no state."""
        return (np.nan,) * len(self.names)


NOTHING_ELSE = Observation()


def observation_of(observe: Any) -> Observation:
    """``observe``, a mapping from names to functions. Raises TypeError or ValueError where it is none."""
    if observe is None:
        return NOTHING_ELSE
    if not is_a(observe, Mapping):
        raise TypeError(f"observe must map names to functions, got {shown(observe)} of type {type(observe).__name__}")
    for name, function in observe.items():
        if not check_text("a name in observe", name).strip():
            raise ValueError("observe must have names that are not empty, got ''")
        if not callable(function):
            raise TypeError(f"observe[{name!r}] must be a function (t, x, p), got {shown(function)}")
    return Observation(tuple(observe), tuple(bound(function) for function in observe.values()))


def takes_inputs(function: Any) -> bool:
    """Whether a function has a fourth argument."""
    code = getattr(getattr(function, "py_func", function), "__code__", None)
    return code is not None and code.co_argcount > 3


@functools.lru_cache(maxsize=256)
def measuring(system: System, observation: Observation) -> Any:
    """``measure(t, x, p)``: the tuple of the functions' values, p that of ``driven``."""
    n, m = system.n_parameters, len(system.inputs)
    arguments = f"t, x, {tuple_text([f'p[{k}]' for k in range(n)])}"
    inputs = [f", {inputs_text(n, m)}" if m and takes_inputs(function) else "" for function in observation.functions]
    values = tuple_text([f"observe{k}({arguments}{more})" for k, more in enumerate(inputs)])
    space = {f"observe{k}": compiled_function(function) for k, function in enumerate(observation.functions)}
    return built("measure", f"def measure(t, x, p):\n    return {values}", **space)


def check_observation(system: System, observation: Observation, points: Array) -> None:
    """Raise TypeError or ValueError where a function is of no use.

    points: states and parameters (n, dim + n_parameters) at which they must be analytic.
    """
    if not len(observation):
        return
    for name in observation.names:
        if name in (*system.states, *system.parameters, *system.inputs):
            raise ValueError(f"observe must not name states, parameters or inputs, got {shown(name)}")
    for number in (types.float64, types.complex128):
        checked_measure(system, observation, number)
    for point in points:
        try:
            wrong = wrong_derivative(functools.partial(values_at, system, observation), point)
        except ZeroDivisionError:  # by a complex 0, of Numba
            continue
        if wrong is not None:
            raise ValueError(
                f"observe[{observation.names[wrong.value]!r}] must be analytic, but its derivative with respect to "
                f"{(system.states + system.parameters)[wrong.number]} is {wrong.exact:.6g} by a complex step and "
                f"{wrong.difference:.6g} by differences: write abs(x) as np.sqrt(x*x), and use no sign, min, max or "
                "comparisons of states"
            )


def values_at(system: System, observation: Observation, point: NDArray[Any]) -> NDArray[Any]:
    """The functions at ``point`` = states and parameters, real or complex, at time 0 with inputs of 1."""
    number = types.complex128 if np.iscomplexobj(point) else types.float64
    numbers = np.append(point, driven(system).usual[system.n_parameters :]).tolist()
    measure = checked_measure(system, observation, number)
    return np.array(measure(0.0, tuple(numbers[: system.dim]), tuple(numbers[system.dim :])))


@functools.lru_cache(maxsize=256)
def checked_measure(system: System, observation: Observation, number: Any) -> Any:
    """``measuring`` compiled for ``number``. Raises TypeError where it does not, or gives other things than numbers."""
    plain, measure = driven(system), measuring(system, observation)
    given = (types.float64, types.UniTuple(number, plain.dim), types.UniTuple(number, plain.n_parameters))
    try:
        compiled = kept(analytic(measure) if number is types.complex128 else inlined(measure))
        compiled.compile(given)
    except Exception as error:  # Numba refuses in many classes
        raise TypeError(
            f"observe must hold functions (t, x, p{', u' if system.inputs else ''}) of tuples to a number that "
            f"Numba can compile, got {', '.join(observation.names)}: {reason(error)}"
        ) from error
    returned = compiled.overloads[given].signature.return_type
    for name, kind in zip(observation.names, returned, strict=True):
        if not isinstance(types.unliteral(kind), types.Integer | types.Float | types.Complex):
            raise TypeError(f"observe[{name!r}] must give a number, got {kind}")
    return compiled


class Measurement(NamedTuple):
    """What the kernel needs of an observation: the functions' values and pullback, compiled, and how many there are."""

    measure: Any = None
    pull: Any = None
    n: int = 0


def measurement_of(system: System, observation: Observation) -> Measurement:
    """The functions of an observation, compiled."""
    if not len(observation):
        return Measurement()
    return Measurement(compiled_measure(system, observation), compiled_pullback(system, observation), len(observation))


@functools.lru_cache(maxsize=256)
def compiled_measure(system: System, observation: Observation) -> Any:
    """``measuring`` with the toolkit's functions, to be inlined."""
    slope = slope_of(measuring(system, observation))
    made = inlined(built("measure", "def measure(t, x, p):\n    return slope(t, x, p)", slope=slope))
    set_recipe(made, compiled_measure, system, observation)
    return made


@functools.lru_cache(maxsize=256)
def compiled_pullback(system: System, observation: Observation) -> Any:
    """``pull(t, x, p, w)`` of ``measuring``: slopes in the state and the parameters of Σ w_k values_k."""
    n_numbers = driven(system).n_parameters
    made = pullback_by_complex_steps(
        measuring(system, observation), system.dim, system.n_parameters, n_numbers, len(observation)
    )
    set_recipe(made, compiled_pullback, system, observation)
    return made


@kernel
def measure_none(theta, work, path, values, t):
    """``measure`` of no functions."""


@kernel
def push_none(theta, work, slope, path, weights, pulled, t):
    """``push`` of no functions."""


def lane_measures(
    measurement: Measurement, dim: int, n_parameters: int, n_drives: int, first_drive: int
) -> tuple[Any, Any]:
    """The functions of all lanes: ``measure`` writes their values, ``push`` adds slopes of their energy to the state's.

    Without functions both do nothing.
    """
    value, pull, n = measurement
    if not n:
        return measure_none, push_none
    drives = {"drive": n_drives} if n_drives else {}
    forwards = row_access("measured", {"theta": n_parameters, "path": dim, "values": n, **drives})
    (read_path, _), (_, write_values) = forwards["path"], forwards["values"]
    roles = {"theta": n_parameters, "path": dim, "weights": n, "pulled": dim, "slope": n_parameters, **drives}
    backwards = row_access("pushed", roles)
    (read_x, _), (read_weights, _) = backwards["path"], backwards["weights"]
    (read_pulled, write_pulled), (read_slope, write_slope) = backwards["pulled"], backwards["slope"]
    read_p, read_q = (parameters_and_drive(access, first_drive) for access in (forwards, backwards))
    add = inlined(built("add", "def add(x, y):\n    return weighted(x, (1.0,), (y,))", weighted=weighted))

    @kernel
    def measure(theta, work, path, values, t):
        for lane in range(theta.shape[1]):
            write_values(work, values, lane, value(t, read_path(work, path, lane), read_p(theta, work, lane)))

    @kernel
    def push(theta, work, slope, path, weights, pulled, t):
        for lane in range(theta.shape[1]):
            x, q, w = read_x(work, path, lane), read_q(theta, work, lane), read_weights(work, weights, lane)
            dx, dp = pull(t, x, q, w)
            write_pulled(work, pulled, lane, add(read_pulled(work, pulled, lane), dx))
            write_slope(slope, 0, lane, add(read_slope(slope, 0, lane), dp))

    return measure, push


def parameters_and_drive(access: dict[str, tuple[Any, Any]], first: int) -> Any:
    """``read(theta, work, lane)``: a lane's parameters, and what inputs have behind them, in rows from ``first``."""
    read_theta, _ = access["theta"]
    if "drive" not in access:

        @inlined
        def read(theta, work, lane):
            return read_theta(theta, 0, lane)

    else:
        read_drive, _ = access["drive"]

        @inlined
        def read(theta, work, lane):
            return read_theta(theta, 0, lane) + read_drive(work, first, lane)

    return read


def measured_along(
    system: System, observation: Observation, times: Array, states: Array, parameters: Array, inputs: Inputs | None
) -> Array:
    """The functions (lanes, n, functions) at states (lanes, n, dim) of parameters (lanes, n_parameters)."""
    lanes, n, _ = states.shape
    measure, drives = checked_measure(system, observation, types.float64), drives_at(system, inputs, times)
    out = np.full((lanes, n, len(observation)), np.nan)
    for lane in range(lanes):
        for i in np.flatnonzero(np.isfinite(states[lane]).all(axis=1)):
            p = (*parameters[lane].tolist(), *drives[i].tolist())
            out[lane, i] = measure(float(times[i]), tuple(states[lane, i].tolist()), p)
    return out
