"""``from_callable``: a target from any Python function of arrays, which the engine calls; slower than compiled code."""

import secrets
import threading
import traceback
import weakref
from collections.abc import Callable, Sequence
from ctypes import CFUNCTYPE, c_double, c_int64, c_void_p, cast
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from .._compiler.block_rows import COUNTER_ROWS, MODE
from .._compiler.numba_private import llvm_binding as binding
from .._compiler.pickling import portable, remade
from ..errors import check_count, check_text, plain_array, shown
from ..maths.philox import MAX_DIM
from .definition import Spread, Target, Truth
from .minibatch_draws import draw_pair

Array = NDArray[np.float64]
REAL = "iuf"


def from_callable(
    function: Callable[..., tuple[Any, Any]],
    *,
    dim: int,
    name: str | None = None,
    truth: Truth | None = None,
    spread: Spread | None = None,
    n_data: int | None = None,
    batch_size: int | None = None,
    names: Sequence[str] | None = None,
) -> Target:
    """A ``Target`` from ``function``: points (lanes, dim) → energies (lanes,), gradients (lanes, dim).

    For models in PyTorch, JAX, NumPy or anything that returns what NumPy can convert: tensors with a gradient, or on
    another device, are detached and fetched. Random numbers and phases are those of every other target, so draws
    equal those of a compiled target of the same values bit for bit. A call has as many points as a block has lanes
    (``layout.lanes`` or fewer): it costs some 10 µs plus the function's own time, so larger blocks are faster. Points
    are float64; outputs of less precision, as JAX gives by default, are taken as they are. It is called from a thread
    of the toolkit's, never by two at once.
    n_data, batch_size: both, or neither. With them the function is called as (points, picks): picks, integers (lanes,
    batch_size) from 0 to n_data − 1, are the data of each lane's minibatch, drawn anew at each step with replacement,
    by the random numbers of ``posteriors.posterior``; or None, where all data are asked for. Energies and gradients of
    a minibatch are to be N/n times those of its data, with the prior in full.

    names: of the coordinates, as ``Target`` has them.

    What the function raises ends the run: it reaches the caller of ``sample`` as it is, with the ``Run`` so far as its
    attribute ``run``. Outputs of other shapes or kinds raise ValueError naming the function, what it gave and what is
    wanted; an energy that is not finite is a divergence, as with other targets. Raises TypeError where ``function``
    cannot be called.
    """
    if not callable(function):
        raise TypeError(f"function must be a function of points (lanes, dim), got {shown(function)}")
    dim = check_count("dim", dim, at_least=1, below=MAX_DIM)
    target_name = check_text("name", getattr(function, "__name__", type(function).__name__) if name is None else name)
    sizes = checked_sizes(n_data, batch_size)
    callback = Callback(function, dim, target_name, sizes)
    block, rows = call_back_block, 0
    if sizes:
        block, rows = call_back_batch_block, COUNTER_ROWS + sizes[1] + sizes[1] % 2
    return Target(
        target_name, dim, block, callback.parameters, rows, truth, rows > 0, callback, spread, lane_by_lane=True,
        names=names,
    )  # fmt: skip


def checked_sizes(n_data: Any, batch_size: Any) -> tuple[int, ...]:
    """The numbers of data and of those of a minibatch; () where both are None. Raises otherwise."""
    if n_data is None and batch_size is None:
        return ()
    if n_data is None or batch_size is None:
        raise ValueError(
            f"n_data and batch_size must be given together, got n_data={shown(n_data)}, batch_size={shown(batch_size)}"
        )
    return (
        check_count("n_data", n_data, at_least=1, below=2**31),
        check_count("batch_size", batch_size, at_least=1, below=2**17),
    )


class Callback:
    """A Python function that block functions call by its handle, while a target or a run keeps this object alive."""

    def __init__(
        self,
        function: Callable[..., tuple[Any, Any]],
        dim: int,
        name: str,
        sizes: tuple[int, ...] = (),
        lock: Any = None,
    ) -> None:
        """sizes: the numbers of data, and of those of a minibatch, where it is called with these."""
        # The handle, random: unique to this process; and the sizes.
        self.parameters = np.array([float(secrets.randbits(52)), *map(float, sizes)])
        self._sizes = sizes
        self.rounding = float(np.finfo(np.float64).eps)  # relative, of the least precise outputs so far
        self.function, self._dim, self._name = function, dim, name
        self._lock = threading.RLock() if lock is None else lock
        self._error: BaseException | None = None
        self._stopped = False
        CALLBACKS[float(self.parameters[0])] = self

    def __reduce__(self) -> Any:
        return remade, (Callback, portable(self.function, binds=False), self._dim, self._name, self._sizes)

    @property
    def recipe(self) -> tuple[Callable[..., tuple[Any, Any]], dict[str, Any]]:
        """The arguments of ``from_callable``: the function, and those by name."""
        sizes = dict(zip(("n_data", "batch_size"), self._sizes, strict=False))
        return self.function, {"dim": self._dim, "name": self._name, **sizes}

    def for_run(self) -> "Callback":
        """A callback of the same function for one run, with its own stop flag and error."""
        return Callback(self.function, self._dim, self._name, self._sizes, self._lock)

    def evaluate(self, points: Array, picks: NDArray[np.int64] | None = None) -> tuple[Array, Array]:
        """Energy (n,) and gradient (n, dim) at ``points`` (n, dim); the function gets a copy of these.

        picks: the data of each point's minibatch, (n, batch_size); None: all data.
        """
        copied = np.array(points, np.float64, order="C")
        with self._lock:
            returned = self.function(copied, picks) if self._sizes else self.function(copied)
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

    def fill(self, places: Array, energies: Array, slopes: Array, picks: Array) -> None:
        """Fill ``energies`` and ``slopes`` at ``places`` (dim, lane), with nan where that fails.

        picks: (batch_size, lane), the data of minibatches; of size 0 for all data.

        It raises nothing, because exceptions cannot pass through compiled code; ``raise_error`` raises the first one.
        The function is not called with non-finite points, which a trajectory can reach before it is rejected.
        """
        energies[:], slopes[:] = np.nan, np.nan
        with self._lock:
            if self._error is not None or self._stopped:
                return
            try:
                points, data = places.T, None
                if picks.size:
                    data = np.array(picks[: self._sizes[1]].T, np.int64, order="C")
                finite = np.isfinite(points).all(axis=1)
                if finite.all():
                    energies[:], slopes.T[:] = self.evaluate(points, data)
                elif finite.any():
                    data = None if data is None else data[finite]
                    energies[finite], slopes.T[finite] = self.evaluate(points[finite], data)
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


def raised_in_function(error: BaseException) -> bool:
    """Whether ``error`` comes from the call of a user's function, or from the check of what it returned."""
    called = Callback.evaluate.__code__
    return any(frame.f_code is called for frame, _ in traceback.walk_tb(error.__traceback__))


def described(value: Any) -> str:
    """A description of what a function returned."""
    kind = f"{type(value).__name__}"
    return f"a {kind} of {len(value)}" if isinstance(value, tuple | list) else f"an object of type {kind}"


@CFUNCTYPE(None, c_double, c_void_p, c_void_p, c_void_p, c_void_p, c_int64, c_int64, c_int64)
def enter_python(
    handle: float, position: int, energy: int, gradient: int, picks: int, dim: int, lanes: int, n_picks: int
) -> None:
    """The entry point for compiled code: calls the callback of the handle with views of a block's arrays."""
    callback = CALLBACKS.get(handle)
    slopes = as_array(gradient, dim, lanes)
    if callback is None:
        slopes[:] = as_array(energy, 1, lanes)[:] = np.nan
        return
    callback.fill(
        as_array(position, dim, lanes), as_array(energy, 1, lanes)[0], slopes, as_array(picks, n_picks, lanes)
    )


def as_array(address: int, rows: int, columns: int) -> Array:
    """The floats at ``address`` as an array, without a copy."""
    if rows * columns == 0:
        return np.empty((rows, columns))
    buffer: Any = (c_double * (rows * columns)).from_address(address)
    return np.frombuffer(buffer, np.float64).reshape(rows, columns)


# By name, so that the block function can be cached on disk: an address is valid in one process only.
binding.add_symbol("manymodes_enter_python", cast(enter_python, c_void_p).value)
POINTER_TO_FLOATS = types.CPointer(types.float64)
enter = types.ExternalFunction(
    "manymodes_enter_python",
    types.void(types.float64, *(POINTER_TO_FLOATS,) * 4, types.int64, types.int64, types.int64),
)
N_DATA, N_DRAWN = 1, 2  # places of parameters


def call_back_block(position, energy, gradient, parameters, scratch):
    """Energy and gradient of the Python function whose handle is the one parameter."""
    dim, lanes = position.shape
    enter(parameters[0], position.ctypes, energy.ctypes, gradient.ctypes, position.ctypes, dim, lanes, 0)


def call_back_batch_block(position, energy, gradient, parameters, scratch):
    """Likewise of one that is given the data of each lane's minibatch, where the engine asks for one."""
    dim, lanes = position.shape
    n_data, n_drawn = int(parameters[N_DATA]), int(parameters[N_DRAWN])
    picks, n_picks = scratch[COUNTER_ROWS:], 0
    if scratch[MODE, 0] != 0.0:
        n_picks = picks.shape[0]
        for pair in range((n_drawn + 1) // 2):
            draw_pair(picks[2 * pair : 2 * pair + 2], scratch, pair, n_data)
    enter(parameters[0], position.ctypes, energy.ctypes, gradient.ctypes, picks.ctypes, dim, lanes, n_picks)
