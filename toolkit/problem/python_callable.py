"""``from_callable``: a target from any Python function of arrays, which the engine calls; slower than compiled code."""

import secrets
import threading
import weakref
from collections.abc import Callable
from ctypes import CFUNCTYPE, c_double, c_int64, c_void_p, cast
from typing import Any

import numpy as np
from llvmlite import binding
from numba import types
from numpy.typing import NDArray

from .._compiler.pickling import portable, remade
from ..errors import check_count, check_text, plain_array, shown
from ..maths.philox import MAX_DIM
from .definition import Spread, Target, Truth

Array = NDArray[np.float64]
REAL = "iuf"


def from_callable(
    function: Callable[[Array], tuple[Any, Any]],
    *,
    dim: int,
    name: str | None = None,
    truth: Truth | None = None,
    spread: Spread | None = None,
) -> Target:
    """A ``Target`` from ``function``: points (lanes, dim) → energies (lanes,), gradients (lanes, dim).

    For models in PyTorch, JAX, NumPy or anything that returns what NumPy can convert: tensors with a gradient, or on
    another device, are detached and fetched. Random numbers and phases are those of every other target, so draws
    equal those of a compiled target of the same values bit for bit. A call has as many points as a block has lanes
    (``layout.lanes`` or fewer): it costs some 10 µs plus the function's own time, so larger blocks are faster. Points
    are float64; outputs of less precision, as JAX gives by default, are taken as they are. It is called from a thread
    of the toolkit's, never by two at once.

    What the function raises ends the run: it reaches the caller of ``sample`` as it is, with the ``Run`` so far as its
    attribute ``run``. Outputs of other shapes or kinds raise ValueError naming the function, what it gave and what is
    wanted; an energy that is not finite is a divergence, as with other targets. Raises TypeError where ``function``
    cannot be called.
    """
    if not callable(function):
        raise TypeError(f"function must be a function of points (lanes, dim), got {shown(function)}")
    dim = check_count("dim", dim, at_least=1, below=MAX_DIM)
    target_name = check_text("name", getattr(function, "__name__", type(function).__name__) if name is None else name)
    callback = Callback(function, dim, target_name)
    return Target(
        target_name,
        dim,
        call_back_block,
        callback.parameters,
        truth=truth,
        callback=callback,
        spread=spread,
        lane_by_lane=True,
    )


class Callback:
    """A Python function that block functions call by its handle, while a target or a run keeps this object alive."""

    def __init__(self, function: Callable[[Array], tuple[Any, Any]], dim: int, name: str, lock: Any = None) -> None:
        self.parameters = np.array([float(secrets.randbits(52))])  # the handle, random: unique to this process
        self.rounding = float(np.finfo(np.float64).eps)  # relative, of the least precise outputs so far
        self.function, self._dim, self._name = function, dim, name
        self._lock = threading.RLock() if lock is None else lock
        self._error: BaseException | None = None
        self._stopped = False
        CALLBACKS[float(self.parameters[0])] = self

    def __reduce__(self) -> Any:
        function, dim, name = self.recipe
        return remade, (Callback, portable(function, binds=False), dim, name)

    @property
    def recipe(self) -> tuple[Callable[[Array], tuple[Any, Any]], int, str]:
        """The function, dimension and name that it is made from."""
        return self.function, self._dim, self._name

    def for_run(self) -> "Callback":
        """A callback of the same function for one run, with its own stop flag and error."""
        return Callback(self.function, self._dim, self._name, self._lock)

    def evaluate(self, points: Array) -> tuple[Array, Array]:
        """Energy (n,) and gradient (n, dim) at ``points`` (n, dim); the function gets a copy of these."""
        with self._lock:
            returned = self.function(np.array(points, np.float64, order="C"))
        if not isinstance(returned, tuple | list) or len(returned) != 2:
            raise ValueError(
                f"{self._name} must return energies and gradients, two arrays; it returned {described(returned)}"
            )
        n = len(points)
        return self._checked("energies", returned[0], (n,)), self._checked("gradients", returned[1], (n, self._dim))

    def _checked(self, what: str, values: Any, shape: tuple[int, ...]) -> Array:
        """``values`` as floats of ``shape``. Raises ValueError otherwise."""
        if hasattr(values, "detach"):  # a tensor of PyTorch, with a gradient or on a device
            values = values.detach().cpu()
        try:
            array = plain_array(what, values)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"{self._name} must return {what} of shape {shape}, but they make no array: {error}"
            ) from None
        if array.dtype.kind not in REAL:
            raise ValueError(f"{self._name} must return real {what}, got an array of {array.dtype}")
        if array.shape != shape:
            raise ValueError(f"{self._name} must return {what} of shape {shape}, got {array.shape}")
        if array.dtype.kind == "f":
            self.rounding = max(self.rounding, float(np.finfo(array.dtype).eps))
        return array.astype(np.float64)

    def fill(self, places: Array, energies: Array, slopes: Array) -> None:
        """Fill ``energies`` and ``slopes`` at ``places`` (dim, lane), with nan where that fails.

        It raises nothing, because exceptions cannot pass through compiled code; ``raise_error`` raises the first one.
        The function is not called with non-finite points, which a trajectory can reach before it is rejected.
        """
        energies[:], slopes[:] = np.nan, np.nan
        with self._lock:
            if self._error is not None or self._stopped:
                return
            try:
                points = places.T
                finite = np.isfinite(points).all(axis=1)
                if finite.all():
                    energies[:], slopes.T[:] = self.evaluate(points)
                elif finite.any():
                    energies[finite], slopes.T[finite] = self.evaluate(points[finite])
            except BaseException as error:
                self._error = error

    def stop(self) -> None:
        """Make all running blocks end without further calls."""
        self._stopped = True

    def raise_error(self) -> None:
        """Raise what the function raised, if it did."""
        if self._error is not None:
            raise self._error


CALLBACKS: weakref.WeakValueDictionary[float, Callback] = weakref.WeakValueDictionary()


def described(value: Any) -> str:
    """A description of what a function returned."""
    kind = f"{type(value).__name__}"
    return f"a {kind} of {len(value)}" if isinstance(value, tuple | list) else f"an object of type {kind}"


@CFUNCTYPE(None, c_double, c_void_p, c_void_p, c_void_p, c_int64, c_int64)
def enter_python(handle: float, position: int, energy: int, gradient: int, dim: int, lanes: int) -> None:
    """The entry point for compiled code: calls the callback of the handle with views of a block's arrays."""
    callback = CALLBACKS.get(handle)
    slopes = as_array(gradient, dim, lanes)
    if callback is None:
        slopes[:] = as_array(energy, 1, lanes)[:] = np.nan
        return
    callback.fill(as_array(position, dim, lanes), as_array(energy, 1, lanes)[0], slopes)


def as_array(address: int, rows: int, columns: int) -> Array:
    """The floats at ``address`` as an array, without a copy."""
    buffer: Any = (c_double * (rows * columns)).from_address(address)
    return np.frombuffer(buffer, np.float64).reshape(rows, columns)


# By name, so that the block function can be cached on disk: an address is valid in one process only.
binding.add_symbol("manymodes_enter_python", cast(enter_python, c_void_p).value)
POINTER_TO_FLOATS = types.CPointer(types.float64)
enter = types.ExternalFunction(
    "manymodes_enter_python",
    types.void(types.float64, POINTER_TO_FLOATS, POINTER_TO_FLOATS, POINTER_TO_FLOATS, types.int64, types.int64),
)


def call_back_block(position, energy, gradient, parameters, scratch):
    """Energy and gradient of the Python function whose handle is the one parameter."""
    dim, lanes = position.shape
    enter(parameters[0], position.ctypes, energy.ctypes, gradient.ctypes, dim, lanes)
