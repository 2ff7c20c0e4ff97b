"""Kernels in which each thread of a device takes in the draws of its chain, by the accumulator's own function."""

import functools
import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.core.typing.typeof import Purpose, typeof

from .binding import bound
from .device import cuda
from .device_compiling import bare, compile_kernel, inside, lazily, ptx_of
from .gathering import GIVEN, Gathering, State
from .stamps import cache_stamp


class Form(NamedTuple):
    """What a gathering kernel is compiled for."""

    function: Callable[..., None]
    given: tuple[str, ...]
    scratch: int
    n_constants: int
    n_arrays: int
    is_weighted: bool


def form_of(gathering: Gathering, is_weighted: bool) -> Form:
    """What the kernel of ``gathering`` is compiled for."""
    sizes = (gathering.scratch, len(gathering.constants), len(gathering.state))
    return Form(bound(gathering.function), gathering.given, *sizes, is_weighted)


def chosen(places: tuple[int, ...]) -> Any:
    """A function, for kernels, of the items of a tuple at ``places``."""
    if not places:
        return inside(lambda items: ())
    place, rest = places[0], chosen(places[1:])

    def choose(items):
        return (items[place], *rest(items))

    return inside(choose)


def views(n: int) -> Any:
    """A function, for kernels, of the views of a chain of ``n`` arrays whose last index is the chain."""
    if n == 0:
        return inside(lambda arrays, own: ())
    rest = views(n - 1)

    def view(arrays, own):
        return (arrays[0].T[own], *rest(arrays[1:], own))

    return inside(view)


def gathering_kernel(form: Form) -> Callable[..., None]:
    """The kernel of an accumulator, uncompiled."""
    take_in = lazily(form.function)
    choose, view = chosen(tuple(GIVEN.index(name) for name in form.given)), views(form.n_arrays)
    room = max(1, form.scratch)
    add_scratch = chosen((0,)) if form.scratch else chosen(())
    is_weighted = form.is_weighted

    def kernel(draws, energies, weights, steps, constants, arrays, first, last, stride, replicas):
        """Take in places ``first`` … ``last − 1`` of draw · replica, every ``stride``-th."""
        thread = cuda.grid(1)
        draws, energies, weights = bare(draws), bare(energies), bare(weights)
        if thread >= draws.shape[2]:
            return
        own = slice(thread, thread + 1)
        away = cuda.local.array(room, np.float64)
        end = last if is_weighted else first
        given = (
            draws.T[own, first:last:stride], weights.T[own, first:end:stride, 0], energies.T[own, first:last:stride, 0],
            bare(steps), replicas,
        )  # fmt: skip
        arguments = (*choose(given), *constants, *view(arrays, own), *add_scratch((away,)))
        take_in(*arguments)

    return kernel


def argument_types(gathering: Gathering, state: State, real: Any) -> tuple[Any, ...]:
    """Numba's types of the kernel's arguments, for draws in ``real``."""
    number, steps = types.Array(types.float64 if real is np.float64 else types.float32, 3, "C"), np.zeros(1, np.int64)
    constants = tuple(np.int64(value) if isinstance(value, int) else value for value in gathering.constants)
    arrays = tuple(state[name].copy() for name in gathering.state)
    of_tables = tuple(typeof(values, Purpose.argument) for values in (steps, constants, arrays))
    return (number, number, number, *of_tables, *(types.int64,) * 4)


@functools.cache
def compiled_gathering(form: Form, kinds: tuple[Any, ...]) -> Any:
    """The kernel of ``form`` compiled for arguments of these types."""
    stamp = cache_stamp(form.function)
    if stamp is not None:
        stamp = hashlib.sha256(repr((stamp, form[1:])).encode()).hexdigest()
    return compile_kernel(gathering_kernel(form), kinds, stamp)


def gathering_ptx(
    gathering: Gathering, state: State, is_weighted: bool, capability: tuple[int, int], real: Any = np.float64
) -> str:
    """The kernel of a gathering as PTX for devices of ``capability``, such as (9, 0); no device is needed."""
    kinds = argument_types(gathering, state, real)
    return ptx_of(gathering_kernel(form_of(gathering, is_weighted)), kinds, capability)
