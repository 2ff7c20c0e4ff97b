"""The engine fused: compiled whole for one target, one sampler and one size of block, every call taken in.

The general engine (``cpu_engine``) calls parts by their addresses, so that it compiles once for all of them. A fused
one knows them, the sizes of its arrays, and which of the engine's features are wanted, and has code for nothing else.
Its bits are the same, as nothing may be reordered.
"""

import contextlib
import functools
import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import llvmlite.binding as llvm
from numba import njit, types
from numba.core.codegen import JITCodeLibrary
from numba.core.errors import NumbaError

from .blocks import Block
from .compiling import StampedCache, kernel
from .engine import advance
from .fused_state import Shape, shapes_of, views
from .handing import told
from .job_parts import Parts, parts_of, settled
from .stamps import cache_stamp
from .state import ADVANCE, Numbers
from .vectors import WideLower, compiler_with

if TYPE_CHECKING:
    from .job import Job


class FusedLibrary(JITCodeLibrary):  # type: ignore[misc]
    """A function and all it calls, taken into it before anything is optimised."""

    def _optimize_final_module(self) -> None:
        """As Numba's, with the wish to be inlined for all that is not to stay apart (``compiling.apart``).

        LLVM takes in nearly all by itself; the wish makes 64 lanes 1.08 times as fast, and one no faster. It is left
        out where llvmlite cannot express it.
        """
        for function in self._final_module.functions if takes_wishes() else ():
            is_called = function.linkage == llvm.Linkage.linkonce_odr and not function.is_declaration
            if is_called and not any(b"noinline" in attribute for attribute in function.attributes):
                function.add_function_attribute("alwaysinline")
        super()._optimize_final_module()


@functools.cache
def takes_wishes() -> bool:
    """Whether llvmlite gives an attribute to a function; versions before 0.48 give it to what the function returns."""
    module = llvm.parse_assembly("define void @f() {\n  ret void\n}")
    function = module.get_function("f")
    function.add_function_attribute("alwaysinline")
    return any(b"alwaysinline" in attribute for attribute in function.attributes)


FusedCompiler = compiler_with(WideLower, FusedLibrary)


def can_be_fused(job: "Job") -> bool:
    """Whether all that a run calls can be taken in: not what Python or C does, nor what makes arrays."""
    allocates = job.problem.target.compiled().targetoptions["_nrt"]
    return not (job.calls_python or allocates)


def fused_engines(job: "Job", blocks: list[Block], numbers: Numbers) -> list[Callable[..., None]]:
    """For each block its engine: ``engine.advance`` less the parts.

    Raises TypeError where it does not compile, though its parts do.
    """
    parts = parts_of(job)
    try:
        return [compiled(parts, shapes_of(b.state), settled(numbers, b.last - b.first)) for b in blocks]
    except NumbaError as error:
        raise TypeError(
            f"layout.fused must be False for {job.problem.name!r} by {job.sampler.name!r}, whose parts compile one "
            f"by one, but not into one: {error}"
        ) from error


@functools.lru_cache(maxsize=256)
def compiled(parts: Parts, shapes: tuple[Shape, ...], constants: Numbers) -> Any:
    """A fused engine, made once for all runs that differ only in numbers that it is told; kept on disk."""
    function = fused(parts, shapes, constants)
    dispatcher = njit(error_model="numpy", _nrt=False, nogil=True, pipeline_class=FusedCompiler)(function)
    stamp = fused_stamp(parts, shapes, constants)
    if stamp is not None:
        with contextlib.suppress(RuntimeError):  # no folder to keep it in
            dispatcher._cache = FusedCache(function, stamp)
    dispatcher.compile(types.void(*ADVANCE.args[len(parts) :]))
    dispatcher.disable_compile()
    return dispatcher


def fused(parts: Parts, shapes: tuple[Shape, ...], constants: Numbers) -> Callable[..., None]:
    """The fused engine, uncompiled."""
    run, (own_target, move, look, temper, propose) = taken_in(advance), map(taken_in, parts)
    call = told(own_target)
    taken, put_back, settled_numbers = views(shapes, constants)

    @kernel
    def target(position, energy, gradient, parameters, scratch):
        call((position, energy, gradient, parameters, scratch))

    def advance_fused(
        state, numbers, target_parameters, move_parameters, tempering_parameters, real, whole, first_step,
        step_factors, temperature_factors, slots, trace_slots, outputs,
    ):  # fmt: skip
        own = taken(state)
        run(
            target, move, look, temper, propose, own, settled_numbers(numbers), target_parameters, move_parameters,
            tempering_parameters, real, whole, first_step, step_factors, temperature_factors, slots, trace_slots,
            outputs,
        )  # fmt: skip
        put_back(own, state)

    return advance_fused


@functools.lru_cache(maxsize=4096)
def taken_in(part: Callable[..., None]) -> Any:
    """A part for compiled code to call, once for each."""
    return kernel(part)


class FusedCache(StampedCache):
    """Numba's cache of one fused engine, whose own key has addresses in it that another process has not."""

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        return (sig, codegen.magic_tuple(), self._stamp)


def fused_stamp(parts: Parts, shapes: tuple[Shape, ...], constants: Numbers) -> str | None:
    """Hash of all that a fused engine is made of; None where a part is of a script or a notebook."""
    stamps = [cache_stamp(part) for part in (*parts, advance)]
    if None in stamps:
        return None
    made_for = (stamps, shapes, [float(number) for number in constants])
    return hashlib.sha256(repr(made_for).encode()).hexdigest()
