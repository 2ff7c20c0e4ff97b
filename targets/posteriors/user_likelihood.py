"""The posterior of any data under a user's own likelihood and prior, each one function of one point."""

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import numpy as np
from numba import njit, types
from numba.core.errors import NumbaError
from numba.extending import is_jitted

from toolkit._compiler import WideCompiler, bound, cached_per_function, inlined, njit_unwrapped, set_recipe
from toolkit.errors import check_array, check_count, check_scale, check_text, shown
from toolkit.problem import Target, Truth, with_item

from .minibatch import (
    N_DATA,
    N_DRAWN,
    N_SHARED,
    batch_rows,
    check_batch,
    evaluator,
    move_normal_prior,
    shared_numbers,
    use_normal_prior,
)

Function = Callable[..., Any]

ROW = types.Array(types.float64, 1, "C")


def posterior(
    datum: Function,
    data: Any,
    dim: int,
    *,
    prior: float | Function | None = None,
    batch_size: int | None = None,
    refresh_every: int | None = None,
    name: str = "",
    truth: Truth | None = None,
    names: Sequence[str] | None = None,
) -> Target:
    """Posterior of data: U(x) = Σ_i datum(x, data_i) + prior(x), in nats.

    datum: function (x, row) → (energy, gradient) of one point x, a tuple of ``dim`` floats, and one row of data, an
    array (columns,); gradient is a tuple of ``dim`` floats or an array (dim,). It is compiled by Numba. data: (data,
    columns), or (data,) for one column. prior: a number σ for N(0, σ² I), ‖x‖²/(2σ²); a function x → (energy,
    gradient) like datum; or None for a flat one.
    What they read, such as global numbers, is what it is now; a later change is seen by the next posterior of them.
    batch_size, refresh_every: as in ``linear.linear_regression``; the cost of all data is O(data) evaluations. names:
    of the coordinates, as ``toolkit.Target`` has them.
    Raises TypeError or ValueError naming the argument, also where a function does not compile or returns other things.
    """
    dim = check_count("dim", dim, at_least=1, below=2**10)
    rows = check_array("data", data)
    rows = rows[:, None] if rows.ndim == 1 else rows
    if rows.ndim != 2 or rows.size == 0:
        raise ValueError(f"data must have shape (data, columns) and not be empty, got {rows.shape}")
    n_drawn, refresh = check_batch(batch_size, refresh_every)
    datum, prior = bound(datum), bound(prior)
    allocates = check_function("datum", datum, dim, "(x, row)", (types.UniTuple(types.float64, dim), ROW))
    precision = 0.0
    if callable(prior):
        allocates |= check_function("prior", prior, dim, "(x)", (types.UniTuple(types.float64, dim),))
    elif prior is not None:
        precision = check_scale("prior", prior) ** -2
    block = posterior_block(datum, prior if callable(prior) else None, dim, rows.shape[1], allocates)
    name = check_text("name", name) or f"posterior({len(rows)} data in {dim}-D)"
    parameters = np.concatenate([shared_numbers(len(rows), n_drawn, refresh, precision), rows.ravel()])
    rows_needed = batch_rows(dim, n_drawn, refresh)
    return Target(name, dim, block, parameters, rows_needed, truth, stochastic=n_drawn > 0, names=names)


def check_function(name: str, function: Any, dim: int, arguments: str, kinds: tuple[Any, ...]) -> bool:
    """As ``makes_arrays``; raises TypeError also where ``function`` is none."""
    wanted = f"{name} must be a function {arguments} → (energy, gradient) that Numba can compile"
    if not (isinstance(function, FunctionType) or is_jitted(function)):
        raise TypeError(f"{wanted}, got {shown(function)}")
    return bool(makes_arrays(function, name, wanted, dim, kinds))


@cached_per_function
def makes_arrays(function: Any, name: str, wanted: str, dim: int, kinds: tuple[Any, ...]) -> bool:
    """Whether ``function`` makes arrays. Raises TypeError unless it compiles and returns an energy and a gradient."""
    try:
        compiled = njit(error_model="numpy")(function)
        compiled.compile(kinds)
    except (NumbaError, TypeError) as error:
        raise TypeError(f"{wanted}: {error}") from error
    returned = compiled.nopython_signatures[0].return_type
    if not isinstance(returned, types.BaseTuple) or len(returned.types) != 2:
        raise TypeError(f"{wanted}, got {shown(function)}: it returns {returned}")
    energy, gradient = returned.types
    if not isinstance(energy, types.Integer | types.Float):
        raise TypeError(f"{name} must return an energy that is a real number; it returns {energy}")
    is_array = isinstance(gradient, types.Array) and gradient.ndim == 1 and isinstance(gradient.dtype, types.Float)
    is_tuple = isinstance(gradient, types.UniTuple) and isinstance(gradient.dtype, types.Float)
    if not (is_array or (is_tuple and gradient.count == dim)):
        raise TypeError(
            f"{name} must return a gradient that is a tuple of {dim} floats (0.0, not 0) or an array of them; "
            f"it returns {gradient}"
        )
    return "NRT_MemInfo_alloc" in compiled.inspect_llvm(compiled.signatures[0])


@cached_per_function
def posterior_block(datum: Function, prior: Function | None, dim: int, columns: int, allocates: bool) -> Function:
    """The block function of a posterior; one and the same for the same functions, so that it compiles once."""
    # Kernels count references to arrays only where they must.
    compiler = njit_unwrapped(WideCompiler, error_model="numpy", _nrt=allocates)
    add, add_change = adders(datum, dim, compiler)
    use_prior, move_prior = use_normal_prior, move_normal_prior
    if prior is not None:
        use_prior, move_prior = prior_kernels(prior, dim, compiler)

    @compiler
    def use_all(position, energy, gradient, parameters, work):
        use_prior(position, energy, gradient, parameters)
        for i in range(int(parameters[N_DATA])):
            row = parameters[N_SHARED + i * columns : N_SHARED + (i + 1) * columns]
            for lane in range(energy.size):
                add(position, lane, row, 1.0, energy, gradient)

    @compiler
    def add_data(position, anchor, energy, gradient, parameters, pick, subtracts):
        scale = parameters[N_DATA] / parameters[N_DRAWN]
        for lane in range(energy.size):
            first = N_SHARED + int(pick[lane]) * columns
            row = parameters[first : first + columns]
            if subtracts:
                add_change(position, anchor, lane, row, scale, energy, gradient)
            else:
                add(position, lane, row, scale, energy, gradient)

    evaluate = evaluator(use_all, use_prior, move_prior, add_data, compiler)

    def block(position: Any, energy: Any, gradient: Any, parameters: Any, scratch: Any) -> None:
        evaluate(position, energy, gradient, parameters, scratch, scratch)

    set_recipe(block, posterior_block, datum, prior, dim, columns, allocates)
    return block


def prior_kernels(prior: Function, dim: int, compiler: Any) -> tuple[Any, Any]:
    """``use_prior`` and ``move_prior`` of a user's own prior."""
    compiled = compiler(prior)

    def without_data(x, row):
        return compiled(x)

    add, add_change = adders(without_data, dim, compiler)

    @compiler
    def use_prior(position, energy, gradient, parameters):
        for lane in range(energy.size):
            energy[lane] = 0.0
        for d in range(dim):
            for lane in range(energy.size):
                gradient[d, lane] = 0.0
        for lane in range(energy.size):
            add(position, lane, parameters, 1.0, energy, gradient)

    @compiler
    def move_prior(position, anchor, energy, gradient, parameters):
        for lane in range(energy.size):
            add_change(position, anchor, lane, parameters, 1.0, energy, gradient)

    return use_prior, move_prior


def adders(function: Function, dim: int, compiler: Any) -> tuple[Any, Any]:
    """Kernels that add ``scale`` times a function's energy and gradient at a lane's point, or their change."""
    zeros = (0.0,) * dim
    compiled = compiler(function)

    @inlined
    def point(position, lane):
        x = zeros
        for d in range(dim):
            x = with_item(x, d, position[d, lane])
        return x

    @compiler
    def add(position, lane, row, scale, energy, gradient):
        value, slope = compiled(point(position, lane), row)
        energy[lane] += scale * value
        for d in range(dim):
            gradient[d, lane] += scale * slope[d]

    @compiler
    def add_change(position, anchor, lane, row, scale, energy, gradient):
        value, slope = compiled(point(position, lane), row)
        before, slope_before = compiled(point(anchor, lane), row)
        energy[lane] += scale * (value - before)
        for d in range(dim):
            gradient[d, lane] += scale * (slope[d] - slope_before[d])

    return add, add_change
