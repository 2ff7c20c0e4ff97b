"""``@target``: a target from a plain function of one point, compiled and looped over lanes."""

import functools
import inspect
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.cgutils import alloca_once, pack_array
from numba.extending import intrinsic

from .._compiler.binding import bound
from .._compiler.decorators import is_compiled
from .._compiler.numba_private import Dispatcher
from .._compiler.per_function import cached_per_function
from .._compiler.pickling import set_recipe
from .._compiler.signatures import TARGET
from ..errors import check_array, check_count, check_instance, check_text, names_removed_folder, shown
from ..maths.philox import MAX_DIM
from .definition import Spread, Target, Truth, check_names, check_truth
from .math_substitution import rebind

# Accesses to array rows that are declared not to overlap, so that loops over many rows vectorise.
#
# LLVM otherwise checks at run time that the rows of a loop do not overlap, and does not vectorise loops of more than
# some ten rows. Here the metadata ``alias.scope`` and ``noalias`` declare it (LLVM language reference).


def declare_no_alias(module: Any, instruction: Any, scope: int) -> None:
    """Declare that an access of row ``scope`` (0: rows that are only read) does not overlap rows of smaller numbers."""
    domain = module.add_metadata(["rows of a block"])
    scopes = [module.add_metadata([f"row {i}", domain]) for i in range(scope + 1)]
    instruction.set_metadata("alias.scope", module.add_metadata(scopes[-1:]))
    if scope:
        instruction.set_metadata("noalias", module.add_metadata(scopes[:-1]))


@intrinsic
def with_item(typing_context, values, place, value):
    """The tuple ``values`` of floats with ``value`` at index ``place``, which must be a valid index."""

    def generate(context, builder, signature, arguments):
        tuple_type = arguments[0].type
        slot = alloca_once(builder, tuple_type)
        builder.store(arguments[0], slot)
        builder.store(arguments[2], builder.gep(slot, [arguments[1].type(0), arguments[1]], inbounds=True))
        return builder.load(slot)

    return values(values, types.intp, values.dtype), generate


@intrinsic(prefer_literal=True)
def stack_array(typing_context, size):
    """An uninitialised array of ``size`` floats, a constant, on the stack of the calling function."""
    if not isinstance(size, types.IntegerLiteral):
        return None
    count, kind = size.literal_value, types.Array(types.float64, 1, "C")

    def generate(context, builder, signature, arguments):
        number = context.get_value_type(types.float64)
        array = context.make_array(kind)(context, builder)
        word, width = array.itemsize.type, context.get_abi_sizeof(number)
        array.data = builder.bitcast(alloca_once(builder, ir.ArrayType(number, count)), number.as_pointer())
        array.itemsize, array.nitems = ir.Constant(word, width), ir.Constant(word, count)
        array.meminfo, array.parent = (ir.Constant(kept.type, None) for kept in (array.meminfo, array.parent))
        array.shape = pack_array(builder, [ir.Constant(word, count)], word)
        array.strides = pack_array(builder, [ir.Constant(word, width)], word)
        return array._getvalue()

    return kind(size), generate


@functools.cache
def lane_access(dim: int) -> tuple[Any, Any]:
    """``load(position, lane)``, a point as a tuple, and ``store(energy, gradient, lane, value, slope)``."""

    @intrinsic
    def load(typing_context, position, lane):
        matrix = array_like(position, 2)
        kind = types.UniTuple(matrix.dtype, dim)

        def generate(context, builder, signature, arguments):
            pointers = row_pointers(context, builder, matrix, arguments[0], arguments[1], dim)
            values = [builder.load(pointer) for pointer in pointers]
            for value in values:
                declare_no_alias(builder.module, value, 0)
            return context.make_tuple(builder, kind, values)

        return kind(matrix, types.intp), generate

    @intrinsic
    def store(typing_context, energy, gradient, lane, value, slope):
        row, matrix = array_like(energy, 1), array_like(gradient, 2)

        def generate(context, builder, signature, arguments):
            kinds = list(signature.args[4]) if isinstance(signature.args[4], types.BaseTuple) else [signature.args[4]]
            is_tuple = isinstance(signature.args[4], types.BaseTuple)
            for d, pointer in enumerate(row_pointers(context, builder, matrix, arguments[1], arguments[2], dim)):
                element = builder.extract_value(arguments[4], d) if is_tuple else arguments[4]
                number = context.cast(builder, element, kinds[d], matrix.dtype)
                declare_no_alias(builder.module, builder.store(number, pointer), d + 1)
            number = context.cast(builder, arguments[3], signature.args[3], row.dtype)
            pointer = builder.gep(context.make_array(row)(context, builder, arguments[0]).data, [arguments[2]])
            declare_no_alias(builder.module, builder.store(number, pointer), dim + 1)
            return context.get_dummy_value()

        return types.void(row, matrix, types.intp, value, slope), generate

    return load, store


def reshaped_to(shape: tuple[int, ...]) -> Any:
    """``reshaped(numbers)``: a contiguous array viewed in ``shape``; NumPy's reshape does not compile for devices."""

    @intrinsic
    def reshaped(typing_context, numbers):
        kind = types.Array(array_like(numbers, 1).dtype, len(shape), "C")

        def generate(context, builder, signature, arguments):
            flat = context.make_array(signature.args[0])(context, builder, arguments[0])
            array = context.make_array(kind)(context, builder)
            word, size = flat.itemsize.type, context.get_abi_sizeof(context.get_value_type(kind.dtype))
            steps = [size * math.prod(shape[d + 1 :]) for d in range(len(shape))]
            array.data, array.itemsize, array.nitems = flat.data, flat.itemsize, flat.nitems
            array.meminfo, array.parent = (ir.Constant(kept.type, None) for kept in (flat.meminfo, flat.parent))
            array.shape = pack_array(builder, [ir.Constant(word, n) for n in shape], word)
            array.strides = pack_array(builder, [ir.Constant(word, step) for step in steps], word)
            return array._getvalue()

        return kind(array_like(numbers, 1)), generate

    return reshaped


def array_like(array: Any, dim: int) -> Any:
    """The type of a contiguous array of ``array``'s floats, float64 if it has no floats."""
    kind = array.dtype if isinstance(array, types.Array) and isinstance(array.dtype, types.Float) else types.float64
    return types.Array(kind, dim, "C")


def row_pointers(context: Any, builder: Any, kind: Any, array: Any, lane: Any, dim: int) -> list[Any]:
    """Pointers to ``array[d, lane]`` for every d, the array being of type ``kind``."""
    matrix = context.make_array(kind)(context, builder, array)
    lanes = builder.extract_value(matrix.shape, 1)
    word = lane.type
    return [builder.gep(matrix.data, [builder.add(builder.mul(ir.Constant(word, d), lanes), lane)]) for d in range(dim)]


@overload
def target(
    function: None = None,
    /,
    *,
    dim: int,
    parameters: Any = None,
    name: str | None = None,
    truth: Truth | None = None,
    spread: Spread | None = None,
    names: Sequence[str] | None = None,
) -> Callable[[Callable[..., Any]], Target]: ...


@overload
def target(
    function: Callable[..., Any],
    /,
    *,
    dim: int,
    parameters: Any = None,
    name: str | None = None,
    truth: Truth | None = None,
    spread: Spread | None = None,
    names: Sequence[str] | None = None,
) -> Target: ...


def target(
    function: Callable[..., Any] | None = None,
    /,
    *,
    dim: int | None = None,
    parameters: Any = None,
    name: str | None = None,
    truth: Truth | None = None,
    spread: Spread | None = None,
    names: Sequence[str] | None = None,
) -> Any:
    """A ``Target`` from a function of one point, put above it as ``@target(dim=2)``.

    The function takes the point as a tuple of ``dim`` floats, or as ``dim`` ≥ 2 floats where it has as many arguments,
    and returns the energy and the gradient, a tuple of ``dim`` floats (in one dimension also a float). parameters:
    an array, given to the function as one argument more. name: None for the function's own. truth: where it is known.
    spread, names: where chains start, and names of the coordinates, as ``Target`` has them.

    It is compiled together with the functions it calls, which need no decorator, and inlined into a loop over lanes.
    The loop vectorises where the function has arithmetic, branches that LLVM can turn into selections, short loops of
    fixed length, and exponentials, logarithms, roots, trigonometric and hyperbolic functions and their inverses from
    ``math`` or NumPy, or ``np.where, maximum, minimum, abs``: these become the toolkit's (sin, cos and tan are nan
    beyond 2³⁰). With other functions, arrays or long loops it is right, and slower. Global numbers and defaults are
    those of the moment of decoration. What raises only at some points (an index, a singular matrix) ends the run.

    Raises TypeError or ValueError at once, naming the function and what to mend: where it is no function, has other
    arguments, does not compile, or does not return a real energy with a gradient of ``dim`` real numbers.

    >>> from toolkit import target
    >>> @target(dim=2)
    ... def bowl(x):
    ...     return 0.5 * (x[0] ** 2 + x[1] ** 2), (x[0], x[1])
    >>> bowl.evaluate([[3.0, 4.0]])
    (array([12.5]), array([[3., 4.]]))
    """
    if function is not None:
        check_function(function)
    if dim is None:
        where = f" above {name_of(function)}" if function is not None else ""
        raise TypeError(f"target needs the dimension of the point: write @target(dim=...){where}, got {shown(dim)}")
    dim = check_count("dim", dim, at_least=1, below=MAX_DIM)
    numbers = None if parameters is None else check_array("parameters", parameters)
    if name is not None:
        check_text("name", name)
    check_truth(truth)
    if spread is not None:
        check_instance("spread", spread, Spread)
    labels = None if names is None else check_names(names, dim)

    def decorate(function: Callable[..., Any]) -> Target:
        """The target of ``function``."""
        check_function(function)
        function = bound(function)
        block = block_of(function, dim, None if numbers is None else numbers.shape)
        target_name = name_of(function) if name is None else name
        given = np.zeros(0) if numbers is None else numbers
        return Target(target_name, dim, block, given, truth=truth, spread=spread, names=labels)

    return decorate if function is None else decorate(function)


def check_function(function: Any) -> None:
    """Raise TypeError where ``function`` is neither a Python function nor one of Numba."""
    if not isinstance(function, Dispatcher) and not inspect.isfunction(function):
        kind = type(function).__name__
        raise TypeError(f"target is put above a function of one point, got {shown(function)} of type {kind}")


def name_of(function: Any) -> str:
    """The name of a function."""
    return str(getattr(function, "__name__", function))


ATTEMPTS = ((False, True), (True, True), (True, False))  # whether a function allocates, and has our maths


@cached_per_function
def block_of(
    function: Callable[..., Any], dim: int, parameters_shape: tuple[int, ...] | None = None, point: Any = None
) -> Callable[..., None]:
    """The block function of ``function``, as described in ``target``; parameters_shape: None without parameters.

    One and the same while it is in use, for the same function. point: ``function`` for one point, compiled and checked;
    None to do so here, unless a block is on disk, which was made of a function that had been checked.
    """
    spreads = takes_scalars(function, dim, parameters_shape is not None)
    if point is None:
        make: Any = block_of.__wrapped__  # type: ignore[attr-defined]
        for allocates, ours in ATTEMPTS:
            found = make(function, dim, parameters_shape, rebind(function, allocates=allocates, ours=ours))
            if any(is_compiled(found, TARGET, allocates=counts, packed=True) for counts in {False, allocates}):
                return found  # type: ignore[no-any-return]
        compiled = compile_point(function, dim, parameters_shape, spreads=spreads)
        return make(function, dim, parameters_shape, compiled)  # type: ignore[no-any-return]
    load, store = lane_access(dim)
    # nan first: an exception at run time (an index, a singular matrix) would leave the energies of the previous step.
    if parameters_shape is None:

        def block(position, energy, gradient, parameters, scratch):
            for lane in range(energy.size):
                energy[lane] = math.nan
            for lane in range(position.shape[1]):
                value, slope = point(*load(position, lane)) if spreads else point(load(position, lane))
                store(energy, gradient, lane, value, slope)

    else:
        reshaped = reshaped_to(parameters_shape)

        def block(position, energy, gradient, parameters, scratch):
            given = reshaped(parameters)
            for lane in range(energy.size):
                energy[lane] = math.nan
            for lane in range(position.shape[1]):
                x = load(position, lane)
                value, slope = point(*(*x, given)) if spreads else point(x, given)
                store(energy, gradient, lane, value, slope)

    set_recipe(block, block_of, function, dim, parameters_shape)
    return block


def takes_scalars(function: Callable[..., Any], dim: int, has_parameters: bool) -> bool:
    """Whether ``function`` takes the point as ``dim`` floats, not a tuple. Raises TypeError where it takes neither."""
    signature = inspect.signature(function.py_func if isinstance(function, Dispatcher) else function)
    arguments = signature.parameters.values()
    needed = sum(p.default is p.empty for p in arguments) - has_parameters
    if any(p.kind not in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in arguments) or needed not in (1, dim):
        further = ", and the array of parameters" if has_parameters else ""
        scalars = f" or {dim} floats" if dim > 1 else ""
        hint = "" if has_parameters or needed != 2 else "; give parameters=... where the second is an array of numbers"
        raise TypeError(
            f"{function.__name__} must take one point, {tuple_of(dim)}{scalars}{further}; its arguments are "
            f"{signature}{hint}"
        )
    return needed == dim and dim > 1


def compile_point(
    function: Callable[..., Any], dim: int, parameters_shape: tuple[int, ...] | None, *, spreads: bool
) -> Any:
    """``function`` compiled for one point, with our maths, and its output types checked."""
    signature: list[Any] = [types.float64] * dim if spreads else [types.UniTuple(types.float64, dim)]
    if parameters_shape is not None:
        signature.append(types.Array(types.float64, len(parameters_shape), "C"))
    plain = function.py_func if isinstance(function, Dispatcher) else function
    arguments = inspect.signature(plain).parameters.values()
    signature += [types.Omitted(p.default) for p in arguments if p.default is not p.empty]
    # Numba raises many exception classes, mostly because arrays are allocated, or because our maths takes no arrays.
    for allocates, ours in ATTEMPTS:
        compiled = rebind(function, allocates=allocates, ours=ours)
        try:
            with names_removed_folder():
                compiled.compile_unwrapped(tuple(signature))
            break
        except FileNotFoundError:
            raise
        except Exception as error:
            refused = error
    else:
        raise TypeError(
            f"{function.__name__} does not compile: {reason(refused)}; where it needs what Numba lacks, give a "
            "function of arrays of points to toolkit.from_callable"
        ) from refused
    (result,) = compiled.overloads.values()
    check_outputs(function.__name__, result.signature.return_type, dim)
    return compiled


def check_outputs(name: str, returned: types.Type, dim: int) -> None:
    """Raise TypeError or ValueError where ``returned``, a Numba type, is not a real energy with ``dim`` real slopes."""
    expected = f"(energy, gradient), a float and {tuple_of(dim)}"
    if isinstance(returned, types.NoneType | types.Optional):
        raise TypeError(f"{name} must return {expected}, on every path; on some it returns None")
    if not isinstance(returned, types.BaseTuple) or len(returned) != 2:
        raise TypeError(f"{name} must return {expected}; it returns {described(returned)}")
    energy, gradient = returned
    if not is_real(energy):
        raise TypeError(f"{name} must return {expected}; its energy is {described(energy)}")
    if dim == 1 and is_real(gradient):
        return
    if not isinstance(gradient, types.BaseTuple):
        raise TypeError(f"{name} must return {expected}; its gradient is {described(gradient)}")
    if len(gradient) != dim:
        raise ValueError(f"{name} must return {expected}; its gradient has {len(gradient)}")
    for d, kind in enumerate(gradient):
        if not is_real(kind):
            raise TypeError(f"{name} must return {expected}; gradient[{d}] is {described(kind)}")


def tuple_of(dim: int) -> str:
    """A point or gradient in words."""
    return f"a tuple of {dim} float{'s' if dim > 1 else ''}"


def is_real(kind: types.Type) -> bool:
    """Whether ``kind`` becomes a float without loss."""
    return isinstance(types.unliteral(kind), types.Float | types.Integer | types.Boolean)


def described(kind: types.Type) -> str:
    """A Numba type in words."""
    if isinstance(kind, types.BaseTuple):
        return f"a tuple of {len(kind)}"
    if isinstance(kind, types.Array):
        return "an array"
    if isinstance(kind, types.List | types.ListType):
        return "a list"
    if isinstance(kind, types.Complex):
        return "complex"
    return "a float" if is_real(kind) else f"an object of type {types.unliteral(kind)}"


def reason(error: Exception) -> str:
    """The part of Numba's message that says where and why, on one line."""
    lines = [line.strip() for line in re.sub(r"\x1b\[[0-9;]*m", "", str(error)).splitlines()]
    locations = re.findall(r'File "([^"]*)", line (\d+)', str(error))
    empty = ("Failed in", "During:", "File ", "^", "<source", "There are", "- Of which", "Overload", "Rejected", ">>>")
    message = next((line for line in lines if line and not line.startswith(empty)), type(error).__name__)
    call = next((line[4:] for line in lines if line.startswith(">>> ") and message.endswith("signature:")), "")
    where = f", in line {locations[-1][1]} of {Path(locations[-1][0]).name}" if locations else ""
    return f"{message.rstrip(':. ')} {call}".rstrip() + where
