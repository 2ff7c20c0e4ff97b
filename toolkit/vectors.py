"""Vectors as wide as the processor has them, in the functions of this package alone.

LLVM by itself keeps to vectors of 256 bits on Intel's processors that have 512, for the sake of programs that use few
vectors. Ours do little else. Not a bit depends on the width: nothing here may be reordered.
"""

from typing import Any

from numba import types
from numba.core import ir
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.errors import UnsupportedError
from numba.core.lowering import Lower
from numba.core.typed_passes import NativeLowering

from .inner import InnerLibrary

WIDTH = '"prefer-vector-width"="512"'


class WideLower(Lower):  # type: ignore[misc]
    """Numba's translation of one function into LLVM's language, with the wish for wide vectors."""

    def setup_function(self, fndesc: Any) -> None:
        """Ask for them where the function begins."""
        super().setup_function(fndesc)
        set.add(self.function.attributes, WIDTH)  # its own ``add`` knows of attributes without a value only


class ApartLower(WideLower):
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
            state.library = InnerLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
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
