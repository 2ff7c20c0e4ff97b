"""Compile functions that compiled code calls without entry points for Python, until Python calls them.

Numba compiles every function that it meets to separate machine code with a wrapper for Python. Neither is used if the
function is inlined, and the wrapper is long: a block's state has hundreds of numbers to unpack.
"""

import gc
import importlib
import itertools
import os
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, NamedTuple

from numba import types
from numba.core.errors import UnsupportedError

from .numba_private import (
    CompilerBase,
    CompileResult,
    ConfigStack,
    CPUContext,
    CPUDispatcher,
    DefaultPassBuilder,
    Environment,
    Flags,
    FunctionIdentity,
    JITCodeLibrary,
    JITCPUCodegen,
    Linkage,
    Lower,
    NativeLowering,
    NullCache,
    ObjectRef,
    RuntimeLinker,
    _dynamic_modname,
    _dynamic_module,
    address_of_symbol,
    global_compiler_lock,
    lookup_environment,
    newpassmanagers,
    normalize_signature,
    parse_bitcode,
    register_pass,
    rtsys,
    target_override,
)
from .numba_private import numba_ir as ir


def is_found_by_name(value: Any) -> bool:
    """Whether module and name of a function, plain or compiled, lead to it in every process."""
    return value.__module__ != "__main__" and found_by_name(value.__module__, value.__qualname__) is value


def found_by_name(module: str, name: str) -> Any:
    """The member of a module; None where there is none."""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def import_by_name(module: str, name: str) -> Any:
    """The member of a module, which is imported."""
    importlib.import_module(module)
    return found_by_name(module, name)


def number_anew() -> None:
    """Let Numba number functions from a number that no other process has: it is part of their symbols.

    It begins with 1 in each process, and some code comes from other processes, where it names other functions.
    """
    FunctionIdentity._unique_ids = itertools.count(secrets.randbits(62))


number_anew()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=number_anew)


def load_without_linear_algebra() -> None:
    """Let Numba load what it compiles from without importing SciPy's linear algebra, only to see that it is there.

    That took 0.13 s of each new process. Where matrices are multiplied, Numba imports it as before.
    """
    load = CPUContext.load_additional_registries

    def load_once(context: CPUContext) -> None:
        linalg: Any = importlib.import_module("numba.np.linalg")
        check = linalg.ensure_blas
        CPUContext.load_additional_registries, linalg.ensure_blas = load, lambda: None
        try:
            load(context)
        finally:
            linalg.ensure_blas = check

    CPUContext.load_additional_registries = load_once


load_without_linear_algebra()

UNWRAPPED = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


# Pass managers of LLVM that are freed. From version 0.45 on, llvmlite defines how to free them, in a base class that
# another one hides, and never does: 60 kB for each module that is compiled. Empty where that is mended.
FREED = (
    {
        kind: type(kind.__name__, (kind,), {"_dispose": newpassmanagers.NewPassManager._dispose})
        for kind in (newpassmanagers.ModulePassManager, newpassmanagers.FunctionPassManager)
        if kind._dispose is ObjectRef._dispose
    }
    if newpassmanagers is not None
    else {}
)


class FrugalCodegen:
    """Numba's code generator, whose pass managers are freed."""

    def __init__(self, codegen: Any) -> None:
        self._its = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._its, name)

    def _module_pass_manager(self, *arguments: Any, **options: Any) -> Any:
        return self._freed(self._its._module_pass_manager(*arguments, **options))

    def _function_pass_manager(self, *arguments: Any, **options: Any) -> Any:
        return self._freed(self._its._function_pass_manager(*arguments, **options))

    @staticmethod
    def _freed(made: Any) -> Any:
        """``made``, a pass manager or a pair with one, which will be freed with its last reference."""
        manager = made[0] if isinstance(made, tuple) else made
        if type(manager) in FREED:
            manager.__class__ = FREED[type(manager)]
        return made


class FrugalLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Numba's library with ``FrugalCodegen``."""

    def __init__(self, codegen: Any, name: str) -> None:
        super().__init__(FrugalCodegen(codegen), name)


ENVIRONMENT = "_ZN08NumbaEnv"  # the name of a function's environment begins so


def with_own_engine(library: type[JITCodeLibrary]) -> type[JITCodeLibrary]:
    """A kind of ``library`` of which each has an LLVM engine of its own, whose machine code is freed with it.

    Numba's one engine keeps all machine code until the process ends, and in it a name means one function.
    """

    class OwnEngineLibrary(library):  # type: ignore[misc]
        def __init__(self, codegen: Any, name: str) -> None:
            super().__init__(JITCPUCodegen(name), name)
            self._numbas = codegen

        def _finalize_final_module(self) -> None:
            """As Numba's; in Numba's engine where functions call each other in a ring, whose addresses it has."""
            if any(variable.name.startswith(RuntimeLinker.PREFIX) for variable in self._final_module.global_variables):
                self._codegen = FrugalCodegen(self._numbas)
            super()._finalize_final_module()

        def _finalize_specific(self) -> None:
            """As Numba's, and give the environments of inlined functions, which only the other engine has."""
            super()._finalize_specific()
            for variable in self._final_module.global_variables:
                environment = lookup_environment(variable.name) if variable.name.startswith(ENVIRONMENT) else None
                if environment is not None:
                    self._codegen.set_env(variable.name, environment)

    return OwnEngineLibrary


OwnLibrary = with_own_engine(FrugalLibrary)


class LoadedLibrary(OwnLibrary):  # type: ignore[misc,valid-type]
    """A function that another process has compiled, with an engine of its own.

    Numba numbers functions anew in each process. So two functions that one factory has made, of which one is loaded and
    one was compiled here, can have the same name, and in one engine either could call the other's code.
    """

    def __init__(self, codegen: Any, name: str, stored: "StoredCode", entry: str) -> None:
        super().__init__(codegen, name)
        self._bitcode, self._entry = stored.bitcode, entry
        self._taken_in: Any = None
        if stored.begins:
            self._reload_init.update(stored.begins)
        self.enable_object_caching()
        self._set_compiled_object(stored.machine_code)
        self._finalize_final_module()
        self._codegen._engine._defined_symbols.update(stored.symbols)

    def _get_module_for_linking(self) -> Any:
        """The function for others to take in, read when the first one does; its callees have no names outside.

        LLVM may remove arguments of these callees. The linker looks functions up by name, internal ones too, and must
        not find them for what is compiled later, so they get other names.
        """
        if self._taken_in is None:
            self._taken_in = parse_bitcode(self._bitcode)
            for function in self._taken_in.functions:
                if function.name != self._entry and function.linkage == Linkage.linkonce_odr:
                    function.linkage = Linkage.internal
                    function.name = f"{function.name}.taken_in.{self._entry}"
        return self._taken_in


class StoredCode(NamedTuple):
    """What is stored of a library: machine code, LLVM IR as bitcode, and what begins a process with it.

    symbols: what it defines. needs: what it calls that is defined elsewhere.
    """

    machine_code: bytes
    symbols: frozenset[str]
    needs: frozenset[str]
    bitcode: bytes
    begins: tuple[Any, ...]


def reduce_compiled(compiled: CompileResult) -> tuple[Any, ...]:
    """What ``load_compiled`` needs of a compiled function, in another process, too.

    Not its annotated source, which Numba would look for in a file that may have been edited meanwhile, and fail.
    """
    described = compiled._replace(type_annotation=None, environment=with_module(compiled.environment))
    (name, _, (machine_code, bitcode)), *rest, _ = described._reduce()
    module = compiled.library._final_module
    symbols: dict[bool, set[str]] = {True: set(), False: set()}
    for one in (*module.functions, *module.global_variables):
        symbols[one.is_declaration].add(one.name)
    needs = frozenset(name for name in symbols[True] if not name.startswith("llvm."))
    begins = tuple(getattr(compiled.library, "_reload_init", ()))  # not in Numba 0.61
    environments = (lookup_environment(one.name) for one in module.global_variables)
    referenced = tuple(with_module(one) for one in environments if one is not None)
    code = StoredCode(machine_code, frozenset(symbols[False]), needs, bitcode, begins)
    return name, code, [*rest, referenced]


# By this name Numba stores the module of a function that a text defined, and looks for it when it loads the function.
sys.modules.setdefault(_dynamic_modname, _dynamic_module)


def with_module(environment: Environment) -> Environment:
    """``environment``, or its like of a module that can be imported: a text need not have been run in one."""
    if environment.globals.get("__name__") in sys.modules:
        return environment
    like = Environment(vars(_dynamic_module))
    like.consts[:] = environment.consts
    like.env_name = environment.env_name
    return like


def is_unknown(symbol: str) -> bool:
    """Whether machine code that calls ``symbol`` cannot be loaded yet."""
    return address_of_symbol(symbol) is None


def load_compiled(context: Any, reduced: tuple[Any, ...]) -> CompileResult | None:
    """The compiled function of ``reduce_compiled``; None where it calls what this process does not have.

    Numba would first import all that it compiles from, which takes 0.12 s of a new process; here, only where that is
    needed.
    """
    name, stored, rest = reduced
    further = [rtsys.initialize, type(context).refresh]
    while any(map(is_unknown, stored.needs)):
        if not further:
            return None
        further.pop(0)(context)

    def library(_: None) -> LoadedLibrary:  # made by Numba once it has begun what the code needs, such as threads
        return LoadedLibrary(context.codegen(), name, stored, rest[0].llvm_func_name)

    loader = SimpleNamespace(
        codegen=lambda: SimpleNamespace(unserialize_library=library),
        get_executable=context.get_executable,
        typing_context=context.typing_context,
    )
    return CompileResult._rebuild(loader, None, *rest)._replace(target_context=context)


def holds_addresses(library: JITCodeLibrary) -> bool:
    """Whether machine code holds addresses of this process, so that no other one can run it."""
    variables = library._final_module.global_variables
    return library.has_dynamic_globals or any(one.name.startswith(RuntimeLinker.PREFIX) for one in variables)


class UncompiledLibrary(FrugalLibrary):
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

    def __reduce__(self) -> Any:
        """By name where that finds it; else as Numba's, which keeps no pipeline."""
        if is_found_by_name(self):
            return import_by_name, (self.__module__, self.__qualname__)
        return super().__reduce__()

    def lacks_wrapper(self, args: tuple[Any, ...]) -> bool:
        """Whether the overload for these types has no wrapper, so that only compiled code can call it."""
        return args in self._without_wrapper

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Numba's type of a call from compiled code, for which the function is compiled without a wrapper."""
        with global_compiler_lock, self._unwrapped():
            return super().get_call_template(args, kws)

    @contextmanager
    def _unwrapped(self) -> Iterator[None]:
        before, cache = dict(self.targetoptions), vars(self)["_cache"]
        self.targetoptions.update(UNWRAPPED)
        self._cache = NullCache()  # the other one is for what Python calls
        try:
            yield
        finally:
            self.targetoptions.clear()
            self.targetoptions.update(before)
            self._cache = cache

    def _is_unwrapped(self) -> bool:
        return bool(UNWRAPPED.items() <= self.targetoptions.items())

    def compile_unwrapped(self, sig: Any) -> None:
        """Compile for ``sig``, for calls from compiled code only."""
        with global_compiler_lock, self._unwrapped():
            self.compile(sig)

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
        forget_source(self)


@contextmanager
def own_flags() -> Iterator[None]:
    """Compile for the CPU in this context, also inside the compilation of a kernel for a device.

    Numba would let the function inherit the kernel's flags, of another kind, and take overloads for the device.
    """
    outer = ConfigStack.top_or_none()
    if outer is None or isinstance(outer, Flags):
        yield
        return
    with target_override("cpu"), ConfigStack().enter(Flags()):
        yield


def forget_source(dispatcher: Any) -> None:
    """Drop the intermediate code of what was compiled, by which Numba would keep the function for good.

    A dispatcher's finaliser, which a global registry holds, refers to its overloads, and these to the function.
    """
    for args, compiled in dispatcher.overloads.items():
        dispatcher.overloads[args] = compiled._replace(type_annotation=None)


@contextmanager
def without_collections() -> Iterator[None]:
    """Python's garbage collector off in this context, for all threads: it takes a tenth of Numba's compiling time."""
    with global_compiler_lock:
        was_on = gc.isenabled()
        gc.disable()
        try:
            yield
        finally:
            if was_on:
                gc.enable()


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


def calls_itself(state: Any) -> bool:
    """Whether a function calls itself, by an address that only machine code of its own has."""
    return any(isinstance(kind, types.RecursiveCall) for kind in state.typemap.values())


def check_mutual_recursion(state: Any) -> None:
    """Raise UnsupportedError for mutual recursion of two or more functions."""
    for kind in state.typemap.values():
        if isinstance(kind, types.RecursiveCall):
            other = kind.dispatcher_type.dispatcher.py_func
            if other is not state.func_id.func:
                names = f"{state.func_id.func_qualname} and {other.__qualname__}"
                raise UnsupportedError(f"{names} call each other: a function may call itself, but not in a ring")


class OwnFlags(Flags):  # type: ignore[misc]
    """Numba's flags of a compilation, which it copies when it begins."""

    def copy(self) -> "SettledFlags":
        """What the compilation of inner functions is looked up by."""
        return SettledFlags(self)


class SettledFlags(Flags):  # type: ignore[misc]
    """Flags that no longer change. Numba compares them in thousands of look-ups, by new dictionaries each time."""

    def __init__(self, flags: Flags) -> None:
        super().__init__(flags)
        self._all: dict[str, Any] = super().values()
        self._hash: int = super().__hash__()

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or bool(super().__eq__(other))

    def values(self) -> dict[str, Any]:
        """All options with their values."""
        return self._all


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
            is_whole = prints(state.func_ir) or calls_itself(state)
            if is_whole or not (state.flags.no_cpython_wrapper and state.flags.no_cfunc_wrapper):
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
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self.state.flags = OwnFlags(self.state.flags)

        def define_pipelines(self) -> list[Any]:
            passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
            passes.passes = [(Lowering if p is NativeLowering else p, description) for p, description in passes.passes]
            passes.finalize()
            return [passes]

    return Compiler


WideCompiler = compiler_with(WideLower)
