"""Code that is compiled once for many functions: they call it by its symbol instead of being compiled with it.

A function with a linked form is compiled by ``compile_part`` in that form: it hands shared code pointers to the few
kernels of its own. Where all calls are inlined, in fused engines and on a device, it is compiled as it is.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .argument_pack import POINTER, define_packed, packed_address, packed_name, with_address
from .decorators import compile_part, kernel, linked_form, stamp_of
from .numba_private import Signature, global_compiler_lock
from .numba_private import llvm_binding as llvm


class SharedCode:
    """A kernel that other functions call by its symbol, compiled for one ``signature`` and cached on disk.

    pointer: an intrinsic without arguments, the function pointer for ``call_part``. ``provide`` must run before what
    calls it so is compiled, or loaded.
    """

    def __init__(self, function: Any, signature: Signature) -> None:
        self.function, self.signature = function, signature
        self._symbol = f"shared.{function.__module__}.{function.__qualname__}"
        self._compiled: Any = None
        self.pointer = pointer_by_symbol(self._symbol, signature)

    def provide(self) -> None:
        """Compile it or load it from disk, and let machine code find it."""
        with global_compiler_lock:
            if self._compiled is None:
                compiled = compile_part(self.function.py_func, self.signature, packed=True, from_python=False)
                llvm.add_symbol(self._symbol, packed_address(compiled))
                self._compiled = compiled


def pointer_by_symbol(symbol: str, signature: Signature) -> Any:
    """An intrinsic without arguments: what machine code finds by ``symbol``, as a function pointer of ``signature``."""
    kind = types.FunctionType(signature)

    @intrinsic
    def pointer(typing_context):
        def generate(context, builder, signature, args):
            # The call converts it to the type of a packed entry point.
            function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.VoidType(), []), symbol)
            return with_address(context, builder, kind, builder.bitcast(function, POINTER))

        return kind(), generate

    return pointer


def pointer_to_part(function: Any, signature: Signature, *, from_python: bool = True) -> Any:
    """As ``pointer_to``, to what ``compile_part`` makes of ``function`` with packed arguments.

    Machine code finds it by a symbol that holds its key on disk. Where it has none, it is compiled once more, with its
    caller.
    """
    options = {} if from_python else {"from_python": False}
    compiled = compile_part(function, signature, packed=True, **options)
    stamp = stamp_of(compiled)
    if stamp is None:
        return pointer_to(kernel(linked_form(function)), signature)
    symbol = f"shared.{function.__qualname__} {signature} {stamp}"
    llvm.add_symbol(symbol, packed_address(compiled))
    pointer = pointer_by_symbol(symbol, signature)
    pointer.target = compiled  # the caller holds the pointer, and so the machine code that it calls
    return pointer


def pointer_to(compiled: Any, signature: Signature, otherwise: Any = None) -> Any:
    """An intrinsic without arguments: a kernel as a function pointer of ``signature``, for ``call_part``.

    otherwise: a kernel with the same arguments that is called where this one raises.
    """
    kind = types.FunctionType(signature)

    @intrinsic
    def pointer(typing_context):
        signatures = {
            kernel: typing_context.resolve_function_type(types.Dispatcher(kernel), signature.args, {})
            for kernel in (compiled, otherwise)
            if kernel is not None
        }

        def generate(context, builder, _, args):
            results = {kernel: kernel.overloads[resolved.args] for kernel, resolved in signatures.items()}
            for result in results.values():
                context.active_code_library.add_linking_library(result.library)
            described = results[compiled].fndesc
            function = builder.module.globals.get(packed_name(described))
            if function is None:
                instead = None if otherwise is None else results[otherwise].fndesc
                function = define_packed(context, builder.module, described, instead)
                function.linkage = "internal"
            return with_address(context, builder, kind, builder.bitcast(function, POINTER))

        return kind(), generate

    return pointer
