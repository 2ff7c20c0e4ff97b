"""Compile functions that compiled code calls without entry points for Python, until Python calls them.

Numba compiles every function that it meets to separate machine code with a wrapper for Python. Neither is used if the
function is inlined, and the wrapper is long: a block's state has hundreds of numbers to unpack.
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
    """A function as LLVM IR only, to be inlined into others."""

    def _finalize_final_module(self) -> None:
        """As Numba's, without generating machine code."""
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Raises RuntimeError: there is no machine code, and Numba could return an address of 0."""
        raise RuntimeError(f"{name} was compiled to be taken in by other functions, and has no address")


class UnwrappedDispatcher(CPUDispatcher):  # type: ignore[misc]
    """A dispatcher that compiles without wrappers for calls from compiled code, and again with them if Python calls."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._without_wrapper: set[tuple[Any, ...]] = set()  # argument types compiled without wrappers

    def lacks_wrapper(self, args: tuple[Any, ...]) -> bool:
        """Whether the overload for these types has no wrapper, so that only compiled code can call it."""
        return args in self._without_wrapper

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
        """Compile for ``sig``; again, where the existing overload has no wrapper and this call is from Python."""
        with global_compiler_lock:
            args = tuple(normalize_signature(sig)[0])
            if self._is_unwrapped() or args not in self._without_wrapper or not self._can_compile:
                return super().compile(sig)
            unwrapped = self.overloads.pop(args)
            try:
                return super().compile(sig)
            except BaseException:
                self.overloads[args] = unwrapped
                raise

    def get_compile_result(self, sig: Any) -> Any:
        """The overload for ``sig``, with an address."""
        with global_compiler_lock:
            if tuple(sig.args) in self._without_wrapper:
                self.compile(sig)
            return super().get_compile_result(sig)

    def add_overload(self, cres: Any) -> None:
        """Store an overload, and register it with Numba only if Python can call it."""
        args = tuple(cres.signature.args)
        if self._is_unwrapped():
            self._without_wrapper.add(args)
            self.overloads[args] = cres
        else:
            self._without_wrapper.discard(args)
            super().add_overload(cres)


def njit_unwrapped(pipeline_class: Any, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """As ``njit`` with these options, for functions that compiled code calls."""

    def decorate(function: Callable[..., Any]) -> Any:
        return UnwrappedDispatcher(function, targetoptions={"nopython": True, **options}, pipeline_class=pipeline_class)

    return decorate


# Vectors of the processor's full width, only in functions of this package.
#
# By default LLVM uses 256-bit vectors on Intel processors that have 512, in favour of programs with few vector
# instructions; ours have many. No bit of a result depends on the width, as LLVM may not reorder arithmetic here.

WIDTH = '"prefer-vector-width"="512"'


class WideLower(Lower):  # type: ignore[misc]
    """Numba's lowering of one function to LLVM IR, with the attribute for wide vectors."""

    def setup_function(self, fndesc: Any) -> None:
        """Set the attribute on the function."""
        super().setup_function(fndesc)
        set.add(self.function.attributes, WIDTH)  # llvmlite's own ``add`` takes only attributes without a value


class NoInlineLower(WideLower):
    """``WideLower`` for a function that must not be inlined."""

    def setup_function(self, fndesc: Any) -> None:
        """Set the attribute on the function."""
        super().setup_function(fndesc)
        self.function.attributes.add("noinline")


def prints(function: Any) -> bool:
    """Whether a function prints, for which it needs machine code of its own."""
    return any(isinstance(statement, ir.Print) for block in function.blocks.values() for statement in block.body)


def check_mutual_recursion(state: Any) -> None:
    """Raise UnsupportedError for mutual recursion of two or more functions."""
    for kind in state.typemap.values():
        if isinstance(kind, types.RecursiveCall):
            other = kind.dispatcher_type.dispatcher.py_func
            if other is not state.func_id.func:
                names = f"{state.func_id.func_qualname} and {other.__qualname__}"
                raise UnsupportedError(f"{names} call each other: a function may call itself, but not in a ring")


def compiler_with(lower: type[WideLower], library: type[JITCodeLibrary] | None = None) -> type[CompilerBase]:
    """Numba's compiler with ``lower`` as its lowering; library: the class of its code library, None for Numba's."""

    @register_pass(mutates_CFG=True, analysis_only=False)
    class Lowering(NativeLowering):  # type: ignore[misc]
        _name = lower.__name__

        def run_pass(self, state: Any) -> bool:
            """As Numba's; without machine code where neither Python nor C is to call the function."""
            check_mutual_recursion(state)
            if library is not None:
                state.library = library(state.targetctx.codegen(), state.func_id.func_qualname)
                state.library.enable_object_caching()
            if not (state.flags.no_cpython_wrapper and state.flags.no_cfunc_wrapper) or prints(state.func_ir):
                return bool(super().run_pass(state))
            state.library = UncompiledLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
            state.flags.no_compile = True
            super().run_pass(state)
            entry = object()  # the key by which callers find it
            state.targetctx.insert_user_function(entry, state["cr"].fndesc, [state.library])
            state["cr"] = state["cr"]._replace(cfunc=entry)
            return True

        @property
        def lowering_class(self) -> type[WideLower]:
            return lower

    class Compiler(CompilerBase):  # type: ignore[misc]
        def define_pipelines(self) -> list[Any]:
            passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
            passes.passes = [(Lowering if p is NativeLowering else p, description) for p, description in passes.passes]
            passes.finalize()
            return [passes]

    return Compiler


WideCompiler = compiler_with(WideLower)
