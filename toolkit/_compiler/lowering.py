"""Functions that compiled code calls are made for compiled code alone, until Python calls them too.

Numba gives every function that it meets on its way machine code of its own and a form that Python can call. Of a
function that another one takes in neither is ever used, and a block's state has hundreds of numbers to unpack.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba import types
from numba.core import ir
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import register_pass
from numba.core.errors import UnsupportedError
from numba.core.lowering import Lower
from numba.core.registry import CPUDispatcher
from numba.core.sigutils import normalize_signature
from numba.core.typed_passes import NativeLowering

UNWRAPPED = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


class UncompiledLibrary(JITCodeLibrary):  # type: ignore[misc]
    """A function in LLVM's language, to be taken in by others."""

    def _finalize_final_module(self) -> None:
        """As Numba's, less the machine code."""
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Raises RuntimeError: there is no machine code, and Numba's answer could be an address of 0."""
        raise RuntimeError(f"{name} was compiled to be taken in by other functions, and has no address")


class Inner(CPUDispatcher):  # type: ignore[misc]
    """A function that others call, compiled for each of their types; for Python when Python calls it."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._for_code: set[tuple[Any, ...]] = set()  # the types for which there is a form for compiled code alone

    def is_for_code(self, args: tuple[Any, ...]) -> bool:
        """Whether what was compiled for these types is for compiled code alone."""
        return args in self._for_code

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Numba's type of a call from compiled code, for which the function is compiled without a wrapper."""
        with global_compiler_lock, self._unwrapped():
            return super().get_call_template(args, kws)

    @contextmanager
    def _unwrapped(self) -> Iterator[None]:
        before = dict(self.targetoptions)
        self.targetoptions.update(UNWRAPPED)
        try:
            yield
        finally:
            self.targetoptions.clear()
            self.targetoptions.update(before)

    def _is_unwrapped(self) -> bool:
        return bool(UNWRAPPED.items() <= self.targetoptions.items())

    def compile(self, sig: Any) -> Any:
        """Compile for ``sig``, anew where there is a form for compiled code and this call is from Python."""
        with global_compiler_lock:
            args = tuple(normalize_signature(sig)[0])
            if self._is_unwrapped() or args not in self._for_code or not self._can_compile:
                return super().compile(sig)
            form = self.overloads.pop(args)
            try:
                return super().compile(sig)
            except BaseException:
                self.overloads[args] = form
                raise

    def get_compile_result(self, sig: Any) -> Any:
        """What was compiled for ``sig``, whose address is wanted."""
        with global_compiler_lock:
            if tuple(sig.args) in self._for_code:
                self.compile(sig)
            return super().get_compile_result(sig)

    def add_overload(self, cres: Any) -> None:
        """Keep what was compiled, and tell Numba of what Python can call."""
        args = tuple(cres.signature.args)
        if self._is_unwrapped():
            self._for_code.add(args)
            self.overloads[args] = cres
        else:
            self._for_code.discard(args)
            super().add_overload(cres)


def inner(pipeline_class: Any, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorator of functions that compiled code calls, as ``njit`` with these options."""

    def decorate(function: Callable[..., Any]) -> Any:
        return Inner(function, targetoptions={"nopython": True, **options}, pipeline_class=pipeline_class)

    return decorate


# Vectors as wide as the processor has them, in the functions of this package alone.
#
# LLVM by itself keeps to vectors of 256 bits on Intel's processors that have 512, for the sake of programs that use few
# vectors. Ours do little else. Not a bit depends on the width: nothing here may be reordered.

WIDTH = '"prefer-vector-width"="512"'


class WideLower(Lower):  # type: ignore[misc]
    """Numba's translation of one function into LLVM's language, with the wish for wide vectors."""

    def setup_function(self, fndesc: Any) -> None:
        """Ask for them where the function begins."""
        super().setup_function(fndesc)
        set.add(self.function.attributes, WIDTH)  # its own ``add`` knows of attributes without a value only


class NoInlineLower(WideLower):
    """``WideLower`` of a function that is called, and not copied to each place that calls it."""

    def setup_function(self, fndesc: Any) -> None:
        """Say so where the function begins."""
        super().setup_function(fndesc)
        self.function.attributes.add("noinline")


def prints(function: Any) -> bool:
    """Whether a function prints, for which it needs what comes with machine code of its own."""
    return any(isinstance(statement, ir.Print) for block in function.blocks.values() for statement in block.body)


def check_ring(state: Any) -> None:
    """Raise UnsupportedError where a function calls another one that, in the end, calls it."""
    for kind in state.typemap.values():
        if isinstance(kind, types.RecursiveCall):
            other = kind.dispatcher_type.dispatcher.py_func
            if other is not state.func_id.func:
                names = f"{state.func_id.func_qualname} and {other.__qualname__}"
                raise UnsupportedError(f"{names} call each other: a function may call itself, but not in a ring")


def compiler_with(lower: type[WideLower], library: type[JITCodeLibrary] | None = None) -> type[CompilerBase]:
    """Numba's compiler with ``lower`` in place of its own translation; library: of its code, None for the usual one."""

    @register_pass(mutates_CFG=True, analysis_only=False)
    class Lowering(NativeLowering):  # type: ignore[misc]
        _name = lower.__name__

        def run_pass(self, state: Any) -> bool:
            """Numba's, or for compiled code alone where neither Python nor C is to call the function."""
            check_ring(state)
            if library is not None:
                state.library = library(state.targetctx.codegen(), state.func_id.func_qualname)
                state.library.enable_object_caching()
            if not (state.flags.no_cpython_wrapper and state.flags.no_cfunc_wrapper) or prints(state.func_ir):
                return bool(super().run_pass(state))
            state.library = UncompiledLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
            state.flags.no_compile = True
            super().run_pass(state)
            entry = object()  # by which callers find it
            state.targetctx.insert_user_function(entry, state["cr"].fndesc, [state.library])
            state["cr"] = state["cr"]._replace(cfunc=entry)
            return True

        @property
        def lowering_class(self) -> type[WideLower]:
            return lower

    class Compiler(CompilerBase):  # type: ignore[misc]
        def define_pipelines(self) -> list[Any]:
            passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
            passes.passes = [(Lowering if p is NativeLowering else p, told) for p, told in passes.passes]
            passes.finalize()
            return [passes]

    return Compiler


WideCompiler = compiler_with(WideLower)
