"""The engine fused: compiled whole for one target, one sampler and one size of block, every call taken in.

The general engine (``cpu_engine``) calls parts by their addresses, so that it compiles once for all of them. A fused
one knows them, the sizes of its arrays, and which of the engine's features are wanted, and has code for nothing else.
Its bits are the same, as nothing may be reordered.
"""

import functools
import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import llvmlite.binding as llvm
from numba import njit, types
from numba.core.codegen import JITCodeLibrary
from numba.core.errors import NumbaError

from .blocks import Block
from .chain_columns import first_of, second_of
from .compiling import StampedCache, cache_stamp, kernel
from .engine import advance
from .fused_state import Shape, shapes_of, views
from .job_parts import Parts, parts_of, settled
from .state import ADVANCE, Numbers
from .vectors import WideLower, compiler_with

if TYPE_CHECKING:
    from .job import Job


class FusedLibrary(JITCodeLibrary):  # type: ignore[misc]
    """A function and all it calls, taken into it before anything is optimised."""

    def _optimize_final_module(self) -> None:
        """As Numba's, with the wish to be inlined for all that is not to stay apart (``compiling.apart``).

        LLVM takes in nearly all by itself; the wish makes 64 lanes 1.08 times as fast, and one no faster.
        """
        for function in self._final_module.functions:
            is_called = function.linkage == llvm.Linkage.linkonce_odr and not function.is_declaration
            if is_called and not any(b"noinline" in attribute for attribute in function.attributes):
                function.add_function_attribute("alwaysinline")
        super()._optimize_final_module()


FusedCompiler = compiler_with(WideLower, FusedLibrary)


def fused_engines(job: "Job", blocks: list[Block], numbers: Numbers, target: Any) -> list[Callable[..., None]]:
    """For each block its engine: ``engine.advance`` less the parts. target: compiled, as a pointer.

    Raises TypeError where it does not compile, though its parts do.
    """
    parts = parts_of(job)
    by_address = job.calls_python or bool(job.problem.target.compiled().targetoptions["_nrt"])
    engines: list[Callable[..., None]] = []
    for block in blocks:
        constants = settled(numbers, block.last - block.first)
        try:
            engine = compiled(parts, by_address, shapes_of(block.state), constants)
        except NumbaError as error:
            raise TypeError(
                f"layout.fused must be False for {job.problem.name!r} by {job.sampler.name!r}, whose parts compile one "
                f"by one, but not into one: {error}"
            ) from error
        engines.append(functools.partial(engine, target))
    return engines


@functools.lru_cache(maxsize=256)
def compiled(parts: Parts, by_address: bool, shapes: tuple[Shape, ...], constants: Numbers) -> Any:
    """A fused engine, made once for all runs that differ only in numbers that it is told; kept on disk.

    by_address: the target is called by its address, which is the first argument, and not taken in.
    """
    function = fused(parts, by_address, shapes, constants)
    dispatcher = njit(error_model="numpy", _nrt=False, nogil=True, pipeline_class=FusedCompiler)(function)
    stamp = fused_stamp(parts, by_address, shapes, constants)
    if stamp is not None:
        dispatcher._cache = FusedCache(function, stamp)
    dispatcher.compile(types.void(ADVANCE.args[0], *ADVANCE.args[len(parts) :]))
    dispatcher.disable_compile()
    return dispatcher


def fused(parts: Parts, by_address: bool, shapes: tuple[Shape, ...], constants: Numbers) -> Callable[..., None]:
    """The fused engine, uncompiled."""
    run, (own_target, move, look, temper, propose) = taken_in(advance), map(taken_in, parts)
    taken, put_back, settled_numbers = views(shapes, constants)
    choose = second_of if by_address else first_of

    def advance_fused(
        target, state, numbers, target_parameters, move_parameters, tempering_parameters, real, whole, first_step,
        step_factors, temperature_factors, slots, trace_slots, outputs,
    ):  # fmt: skip
        own = taken(state)
        run(
            choose(own_target, target), move, look, temper, propose, own, settled_numbers(numbers), target_parameters,
            move_parameters, tempering_parameters, real, whole, first_step, step_factors, temperature_factors, slots,
            trace_slots, outputs,
        )  # fmt: skip
        put_back(own, state)

    return advance_fused


@functools.cache
def taken_in(part: Callable[..., None]) -> Any:
    """A part for compiled code to call, once for each."""
    return kernel(getattr(part, "py_func", part))


class FusedCache(StampedCache):
    """Numba's cache of one fused engine, whose own key has addresses in it that another process has not."""

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        return (sig, codegen.magic_tuple(), self._stamp)


def fused_stamp(parts: Parts, by_address: bool, shapes: tuple[Shape, ...], constants: Numbers) -> str | None:
    """Hash of all that a fused engine is made of; None where a part is of a script or a notebook."""
    stamps = [cache_stamp(getattr(part, "py_func", part)) for part in (*parts, advance)]
    if None in stamps:
        return None
    made_for = (stamps, by_address, shapes, [float(number) for number in constants])
    return hashlib.sha256(repr(made_for).encode()).hexdigest()
