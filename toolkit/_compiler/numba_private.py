"""Every private name of Numba and llvmlite that this distribution uses.

Public are ``numba``, ``numba.types``, ``numba.extending``, ``numba.core.cgutils``, ``numba.core.errors`` and
``llvmlite.ir``. Everything else may change with any version of Numba, so it is imported here and nowhere else. Where a
name is missing, the error says which versions of Numba were tried.
"""

from importlib.metadata import version

__all__ = [
    "CPUContext",
    "CPUDispatcher",
    "CompileResult",
    "CompileResultCacheImpl",
    "CompilerBase",
    "ConfigStack",
    "Conversion",
    "DUFunc",
    "DefaultPassBuilder",
    "Dispatcher",
    "Environment",
    "Flags",
    "FunctionCache",
    "FunctionIdentity",
    "JITCPUCodegen",
    "JITCodeLibrary",
    "Linkage",
    "Lower",
    "NativeLowering",
    "NullCache",
    "ObjectRef",
    "Purpose",
    "RuntimeLinker",
    "Signature",
    "_Intrinsic",
    "_dynamic_modname",
    "_dynamic_module",
    "address_of_symbol",
    "cpu_target",
    "dumps",
    "event",
    "from_dtype",
    "function_type",
    "global_compiler_lock",
    "impl_ret_borrowed",
    "imputils",
    "llvm_binding",
    "lookup_environment",
    "make_array",
    "newpassmanagers",
    "normalize_signature",
    "numba_ir",
    "parse_bitcode",
    "populate_array",
    "register_pass",
    "rtsys",
    "target_override",
    "templates",
    "typeof",
]

TRIED = ("0.61", "0.68")  # the lowest and the highest minor version of Numba that the tests were run with

try:
    from llvmlite import binding as llvm_binding
    from llvmlite.binding import Linkage, address_of_symbol, parse_bitcode
    from llvmlite.binding.ffi import ObjectRef
    from numba.core import event, imputils
    from numba.core import ir as numba_ir
    from numba.core.bytecode import FunctionIdentity
    from numba.core.caching import CompileResultCacheImpl, FunctionCache, NullCache
    from numba.core.codegen import JITCodeLibrary, JITCPUCodegen, RuntimeLinker
    from numba.core.compiler import CompilerBase, CompileResult, DefaultPassBuilder, Flags
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.compiler_machinery import register_pass
    from numba.core.cpu import CPUContext
    from numba.core.dispatcher import Dispatcher
    from numba.core.environment import Environment, lookup_environment
    from numba.core.extending import _Intrinsic
    from numba.core.imputils import impl_ret_borrowed
    from numba.core.lowering import Lower
    from numba.core.registry import CPUDispatcher, cpu_target
    from numba.core.runtime import rtsys
    from numba.core.serialize import dumps
    from numba.core.sigutils import normalize_signature
    from numba.core.target_extension import target_override
    from numba.core.targetconfig import ConfigStack
    from numba.core.typeconv import Conversion
    from numba.core.typed_passes import NativeLowering
    from numba.core.typing import templates
    from numba.core.typing.templates import Signature
    from numba.core.typing.typeof import Purpose, typeof
    from numba.core.utils import _dynamic_modname, _dynamic_module
    from numba.experimental import function_type
    from numba.np.arrayobj import make_array, populate_array
    from numba.np.numpy_support import from_dtype
    from numba.np.ufunc.dufunc import DUFunc
except ImportError as error:
    raise ImportError(
        f"manymodes compiles with a name that Numba {version('numba')} does not have ({error}). Versions {TRIED[0]} to "
        f"{TRIED[1]} have been tried: pip install 'numba>={TRIED[0]},<={TRIED[1]}.*'",
        name=error.name,
    ) from error

try:
    from llvmlite.binding import newpassmanagers
except ImportError:  # before 0.44
    newpassmanagers = None
