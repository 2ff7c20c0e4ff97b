"""Functions bound to the values that they read now, so that what is compiled of them later is what they are now.

Numba freezes the global numbers that a function reads when it compiles it, which is when it is called first, by the
function alone: what has changed since is not seen, nor what has changed between two calls.
"""

import builtins
import hashlib
import threading
from types import CellType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np
from numba import cloudpickle
from numba.core.dispatcher import Dispatcher
from numba.core.registry import CPUDispatcher
from numba.core.typeconv import Conversion

from .code_walk import is_filled, names_in
from .disk_cache import Reads, is_overloaded, is_users
from .lowering import UNWRAPPED, Inner

BOUND: dict[str, tuple[Any, Reads]] = {}  # by a hash of all that is read; the latter holds what is told by identity
COPIES: set[Any] = set()
LOCK = threading.RLock()


def bound(function: Any, *, waits: bool = False) -> Any:
    """``function`` with the values that it reads now: globals, those of modules, of closures, defaults and arrays.

    Plain functions and compiled ones that it calls are bound too. One and the same function is returned for the same
    code and values. What is no function, or of this distribution, is returned as it is. waits: also one that reads a
    name which has no value yet.
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
        told = [*reads.contents, code.co_filename, str(code.co_firstlineno), type(function).__name__]
        key = hashlib.sha256("\0".join(told).encode(errors="surrogatepass")).hexdigest()
        if key not in BOUND:
            made = Copies().of(function, frozenset())
            COPIES.add(made)
            BOUND[key] = made, reads
        return BOUND[key][0]


def is_bindable(value: Any) -> bool:
    """Whether ``value`` is a user's function, plain or compiled, that can be made anew."""
    kinds = (CPUDispatcher, Inner, FunctionType)
    return type(value) in kinds and is_users(value.__module__)


class HoldsFunctions:
    """A dataclass whose bound functions are pickled by what they are: by their names they would be others."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: Parcel(cloudpickle.dumps(v)) if is_copy(v) else v for name, v in vars(self).items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            opened = bound(cloudpickle.loads(value.content)) if isinstance(value, Parcel) else value
            object.__setattr__(self, name, opened)


class Parcel(NamedTuple):
    """A bound function on its way."""

    content: bytes


def is_copy(value: Any) -> bool:
    """Whether ``value`` was made by ``bound``."""
    return isinstance(value, FunctionType | Dispatcher) and value in COPIES


class ModuleCopy(ModuleType):
    """What a function reads of a module, as it was."""

    def __reduce__(self) -> Any:
        return restored, (self.__name__, {name: item for name, item in vars(self).items() if name[:2] != "__"})


def restored(name: str, members: dict[str, Any]) -> ModuleCopy:
    """A ``ModuleCopy`` of these members."""
    made = ModuleCopy(name)
    vars(made).update(members)
    return made


class Copies:
    """Copies of one function, and of all that it reads and that could change."""

    def __init__(self) -> None:
        self._done: dict[Any, Any] = {}

    def of(self, value: Any, names: frozenset[str]) -> Any:
        """What stands in for ``value``; names: of a module, those that are copied."""
        key = (id(value), names if isinstance(value, ModuleType) else None)
        if key in self._done:
            return self._done[key]
        if is_bindable(value):
            plain = isinstance(value, FunctionType)
            return value if plain and is_overloaded(value) else self._function(value, key)
        if isinstance(value, ModuleType) and is_users(value.__name__):
            made = self._done[key] = ModuleCopy(value.__name__)
            there = names & vars(value).keys()
            vars(made).update({name: self.of(vars(value)[name], names) for name in sorted(there)})
            return made
        if isinstance(value, np.ndarray):
            array = self._done[key] = value.copy(order="K")
            array.flags.writeable = value.flags.writeable
            return array
        if isinstance(value, tuple):
            items = [self.of(item, names) for item in value]
            same = all(a is b for a, b in zip(items, value, strict=True))
            return value if same else type(value)(*items) if hasattr(value, "_fields") else tuple(items)
        return value

    def _function(self, function: Any, key: Any) -> Any:
        """A function, plain or compiled, bound."""
        plain: FunctionType = function.py_func if isinstance(function, Dispatcher) else function
        names = frozenset(names_in(plain.__code__))
        space: dict[str, Any] = {"__builtins__": builtins, "__name__": plain.__module__}
        cells = tuple(CellType() for _ in plain.__closure__ or ())
        made = FunctionType(plain.__code__, space, plain.__name__, self.of(plain.__defaults__, names), cells)
        made.__qualname__, made.__module__, made.__doc__ = plain.__qualname__, plain.__module__, plain.__doc__
        made.__dict__.update(plain.__dict__)
        made.__annotations__ = plain.__annotations__
        if plain.__kwdefaults__ is not None:
            made.__kwdefaults__ = {name: self.of(value, names) for name, value in plain.__kwdefaults__.items()}
        again = made if plain is function else like(function, made)
        self._done[key] = again  # only now the rest, as a function may call itself
        there = names & plain.__globals__.keys()
        space |= {name: self.of(plain.__globals__[name], names) for name in sorted(there)}
        for cell, given in zip(cells, plain.__closure__ or (), strict=True):
            if is_filled(given):
                cell.cell_contents = self.of(given.cell_contents, names)
        if plain is not function and not function._can_compile:
            compile_for(again, [result.signature for result in function.overloads.values()])
        return again


def like(dispatcher: Any, function: FunctionType) -> Any:
    """``function``, to be compiled as ``dispatcher`` is."""
    options = {name: value for name, value in dispatcher.targetoptions.items() if name not in UNWRAPPED}
    compiler = dispatcher._compiler
    return type(dispatcher)(
        function, locals=compiler.locals, targetoptions=options, pipeline_class=compiler.pipeline_class
    )


def compile_for(dispatcher: Any, signatures: list[Any]) -> None:
    """Compile ``dispatcher`` for ``signatures`` alone, which may have been declared or inferred.

    Raises TypeError where one would now return what does not fit into what it returned.
    """
    for signature in signatures:
        dispatcher.compile(signature.args)
        found = dispatcher.overloads[tuple(signature.args)].signature.return_type
        if found != signature.return_type:
            if dispatcher.typingctx.can_convert(found, signature.return_type) in (None, Conversion.unsafe):
                raise TypeError(
                    f"{dispatcher.__name__} was compiled for {signature} when it was defined, and with the values that "
                    f"it reads now it returns {found}: define it again"
                )
            dispatcher.overloads.clear()
            dispatcher.compile(signature)
    dispatcher.disable_compile()
