"""Bind functions to the current values of what they read, so that later compilation uses these values.

Numba freezes the globals that a function reads when it compiles it, at the first call, and caches the result by the
function alone. So it uses the values at the first call, not those at the definition, and misses later changes.
"""

import builtins
import hashlib
import threading
import weakref
from types import CellType, FunctionType, ModuleType
from typing import Any

import numpy as np

from .code_walk import is_filled, names_in
from .disk_cache import Reads, is_overloaded, is_users, module_of
from .lowering import UNWRAPPED, UnwrappedDispatcher
from .numba_private import Conversion, CPUDispatcher, Dispatcher
from .per_function import results_of

BOUND: "weakref.WeakValueDictionary[str, Any]" = weakref.WeakValueDictionary()  # by a hash of all that is read
COPIES: "weakref.WeakSet[Any]" = weakref.WeakSet()
LOCK = threading.RLock()


def bound(function: Any, *, waits: bool = False) -> Any:
    """A copy of ``function`` bound to the current values of globals, module members, closures, defaults and arrays.

    Plain and compiled functions that it calls are bound too. Equal code and values give the same object. What is not a
    function, or belongs to this distribution, is returned unchanged. waits: return unchanged also a function that reads
    a name which has no value yet.
    """
    plain = function.py_func if isinstance(function, Dispatcher) else function
    if not is_bindable(function) or not isinstance(plain, FunctionType):
        return function
    with LOCK:
        if function in COPIES:
            return function
        reads = Reads(function)
        if waits and reads.missing:
            return function
        code = plain.__code__
        texts = [*reads.contents, code.co_filename, str(code.co_firstlineno), type(function).__name__]
        key = hashlib.sha256("\0".join(texts).encode(errors="surrogatepass")).hexdigest()
        copy = BOUND.get(key)
        if copy is None:
            copy = Copies().copy(function, frozenset())
            results_of(copy)[Reads] = reads  # keeps objects alive whose identity is in the key
            COPIES.add(copy)
            BOUND[key] = copy
        results_of(function)[bound] = copy  # so that it lives as long as the function
        return copy


def is_bindable(value: Any) -> bool:
    """Whether ``value`` is a user's function, plain or compiled, that can be copied."""
    kinds = (CPUDispatcher, UnwrappedDispatcher, FunctionType)
    return type(value) in kinds and is_users(module_of(value.py_func if isinstance(value, Dispatcher) else value))


def is_copy(value: Any) -> bool:
    """Whether ``value`` was made by ``bound``."""
    return isinstance(value, FunctionType | Dispatcher) and value in COPIES


class ModuleCopy(ModuleType):
    """The members of a module that a function reads, with their values when it was bound."""

    def __reduce__(self) -> Any:
        return make_module_copy, (self.__name__, {name: item for name, item in vars(self).items() if name[:2] != "__"})


def make_module_copy(name: str, members: dict[str, Any]) -> ModuleCopy:
    """A ``ModuleCopy`` with these members."""
    copy = ModuleCopy(name)
    vars(copy).update(members)
    return copy


class Copies:
    """Copies one function, and everything mutable that it reads."""

    def __init__(self) -> None:
        self._done: dict[Any, Any] = {}

    def copy(self, value: Any, names: frozenset[str]) -> Any:
        """The copy of ``value``, or ``value`` itself; names: the members of a module that are copied."""
        key = (id(value), names if isinstance(value, ModuleType) else None)
        if key in self._done:
            return self._done[key]
        if is_bindable(value):
            plain = isinstance(value, FunctionType)
            return value if plain and is_overloaded(value) else self._function(value, key)
        if isinstance(value, ModuleType) and is_users(value.__name__):
            copied = self._done[key] = ModuleCopy(value.__name__)
            present = names & vars(value).keys()
            vars(copied).update({name: self.copy(vars(value)[name], names) for name in sorted(present)})
            return copied
        if isinstance(value, np.ndarray):
            array = self._done[key] = value.copy(order="K")
            array.flags.writeable = value.flags.writeable
            return array
        if isinstance(value, tuple):
            items = [self.copy(item, names) for item in value]
            same = all(a is b for a, b in zip(items, value, strict=True))
            return value if same else type(value)(*items) if hasattr(value, "_fields") else tuple(items)
        return value

    def _function(self, function: Any, key: Any) -> Any:
        """A bound copy of a function, plain or compiled."""
        plain: FunctionType = function.py_func if isinstance(function, Dispatcher) else function
        names = frozenset(names_in(plain.__code__))
        space: dict[str, Any] = {"__builtins__": builtins, "__name__": module_of(plain)}
        cells = tuple(CellType() for _ in plain.__closure__ or ())
        copied = FunctionType(plain.__code__, space, plain.__name__, self.copy(plain.__defaults__, names), cells)
        copied.__qualname__, copied.__module__, copied.__doc__ = plain.__qualname__, plain.__module__, plain.__doc__
        copied.__dict__.update(plain.__dict__)
        copied.__annotations__ = plain.__annotations__
        if plain.__kwdefaults__ is not None:
            copied.__kwdefaults__ = {name: self.copy(value, names) for name, value in plain.__kwdefaults__.items()}
        result = copied if plain is function else recompilable(function, copied)
        self._done[key] = result  # before its globals are copied, because a function may call itself
        present = names & plain.__globals__.keys()
        space |= {name: self.copy(plain.__globals__[name], names) for name in sorted(present)}
        for cell, source in zip(cells, plain.__closure__ or (), strict=True):
            if is_filled(source):
                cell.cell_contents = self.copy(source.cell_contents, names)
        if plain is not function and not function._can_compile:
            compile_for(result, [compiled.signature for compiled in function.overloads.values()])
        return result


def recompilable(dispatcher: Any, function: FunctionType) -> Any:
    """A dispatcher of ``function`` with the options of ``dispatcher``."""
    options = {name: value for name, value in dispatcher.targetoptions.items() if name not in UNWRAPPED}
    compiler = dispatcher._compiler
    return type(dispatcher)(
        function, locals=compiler.locals, targetoptions=options, pipeline_class=compiler.pipeline_class
    )


def compile_for(dispatcher: Any, signatures: list[Any]) -> None:
    """Compile ``dispatcher`` for ``signatures`` only, declared or inferred ones.

    Raises TypeError where the type that one now returns cannot be converted to the type it returned before.
    """
    for signature in signatures:
        dispatcher.compile(signature.args)
        returned = dispatcher.overloads[tuple(signature.args)].signature.return_type
        if returned != signature.return_type:
            if dispatcher.typingctx.can_convert(returned, signature.return_type) in (None, Conversion.unsafe):
                raise TypeError(
                    f"{dispatcher.__name__} was compiled for {signature} when it was defined, and with the values that "
                    f"it reads now it returns {returned}: define it again"
                )
            dispatcher.overloads.clear()
            dispatcher.compile(signature)
    dispatcher.disable_compile()
