"""Describe what a function's results depend on: its code, that of the functions it calls, and the values they read.

Code is the bytecode in memory, which differs between versions of Python. Functions of installed packages and of
Python's library are described by the package and its version, functions of this distribution by package and name, in
whichever module they are, and by the number ``BITS``. Everything else is followed as far as it can be read.
"""

import dataclasses
import functools
import hashlib
import sys
from collections.abc import Callable
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from ..errors import Unavailable
from .code_walk import (
    PACKAGES,
    code_parts,
    constant,
    is_filled,
    is_foreign,
    is_ours,
    names_read,
    public_name,
    with_members,
)
from .numba_private import Dispatcher

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
MOST_VALUES = 10_000
# Version of the numbers that this distribution computes. Raise it with every change that alters a bit of any run, which
# tests/laws/test_golden_bits.py detects. Checkpoints resume only while it is the same.
BITS = 1
LONG = 64  # longer sequences of numbers are described by a digest
SCALARS = int | float | str | bool | None


def describe_function(function: Any) -> dict[str, Any]:
    """A description that identifies ``function``: names, digests of code, values read, and what could not be read.

    function: its ``stored_name``. python: the Python version of the bytecode. code: stored name → digest, of all
    functions it calls, at any depth; for packages of this distribution, ``BITS``. values: name → number, string, or
    digest of an array, of every global, closure and default they read, with the current values of mutable ones.
    packages: name → version of the installed packages they use. unknown: what could not be described. references, where
    there are some: name → the C or NumPy function it stands for; and what is read from a module in a closure.
    """
    if isinstance(function, Unavailable):
        return function.description
    walk = Walk()
    walk.follow("", function)
    code = {
        name: f"bits {BITS}" if name in PACKAGES else combined(digests) for name, digests in sorted(walk.code.items())
    }
    return {
        "function": stored_name(function),
        "python": PYTHON,
        "code": code,
        "values": dict(sorted(walk.values.items())),
        "packages": dict(sorted(walk.packages.items())),
        "unknown": sorted(walk.unknown),
    } | ({"references": dict(sorted(walk.references.items()))} if walk.references else {})


class Walk:
    """Collects the code and values that a function reaches."""

    is_closed = staticmethod(is_foreign)  # the modules whose functions and values are not followed

    @staticmethod
    def named(value: Any) -> str:
        """The name under which a function or class is recorded."""
        return stored_name(value)

    def __init__(self) -> None:
        self.code: dict[str, list[str]] = {}
        self.values: dict[str, Any] = {}
        self.packages: dict[str, str] = {}
        self.references: dict[str, Any] = {}
        self.unknown: list[str] = []
        self._functions: set[int] = set()
        self._seen: dict[int, Any] = {}  # keeps what it has seen alive, so that no other object can get its id

    def follow(self, path: str, value: Any) -> None:
        """Record ``value``, read under the name ``path``, and all that it reaches."""
        if isinstance(value, SCALARS):
            self.values[path] = value
        elif isinstance(value, np.generic | complex | bytes):
            self.values[path] = f"{type(value).__name__} {value!r}"
        elif id(value) not in self._seen:
            self._seen[id(value)] = value
            if len(self._seen) > MOST_VALUES:
                self.unknown = [*self.unknown[:9], f"more than {MOST_VALUES} values"]
                return
            self._follow_object(path, value)
        elif callable(value):
            self.values[path] = self.named(value)

    def _follow_object(self, path: str, value: Any) -> None:
        """As ``follow``, for anything but numbers and strings."""
        if isinstance(value, Dispatcher | FunctionType):
            if path:
                self.values[path] = self.named(value)
            self._follow_function(value.py_func if isinstance(value, Dispatcher) else value)
        elif isinstance(value, ModuleType):
            self._note_package(value.__name__)
        elif isinstance(value, np.ndarray) or hasattr(value, "__array__"):
            self.values[path] = digest_of_array(value)
        elif isinstance(value, type):
            self.values[path] = self.named(value)
            self._note_package(value.__module__)
        elif isinstance(value, MethodType):
            self.follow(path, value.__func__)
            self.follow(f"{path}.self", value.__self__)
        elif isinstance(value, functools.partial):
            for name in ("func", "args", "keywords"):
                self.follow(f"{path}.{name}", getattr(value, name))
        elif isinstance(value, tuple | list | dict | set | frozenset):
            self._follow_items(path, value)
        elif is_foreign(type(value).__module__) and not hasattr(value, "__wrapped__"):
            self._note_package(type(value).__module__)
            if callable(value) and public_name(value):
                self.references[path] = public_name(value)
            fields = vars(value) if hasattr(value, "__dict__") and callable(value) else {}
            self._follow_attributes(path, value, fields)
        else:
            self._follow_attributes(path, value, vars(value) if hasattr(value, "__dict__") else {})

    def _follow_items(self, path: str, value: Any) -> None:
        """As ``follow``, for containers."""
        if isinstance(value, set | frozenset):
            self.values[path] = f"{type(value).__name__} {sorted(map(repr, value))}"
        elif isinstance(value, dict):
            for key, item in value.items():
                self.follow(f"{path}[{key!r}]", item)
        elif len(value) > LONG and np.asarray(value).dtype.kind in "biufc":
            self.values[path] = digest_of_array(value)
        else:
            for i, item in enumerate(value):
                self.follow(f"{path}[{i}]", item)

    def _follow_attributes(self, path: str, value: Any, fields: dict[str, Any]) -> None:
        """As ``follow``, for an object: its class's functions, and its fields."""
        kind = type(value)
        self.values[f"{path}.type" if path else "type"] = self.named(kind)
        inner = getattr(value, "__wrapped__", None)
        if inner is not None:
            self.follow(f"{path}.wrapped" if path else "wrapped", inner)
        elif not fields and not dataclasses.is_dataclass(value) and not is_ours(kind.__module__):
            self.unknown.append(f"{path or 'the function'}: an object of type {qualified_name(kind)}")
        for owner in kind.__mro__:
            if not is_foreign(owner.__module__) and not is_ours(owner.__module__):
                for method in vars(owner).values():
                    if isinstance(method, FunctionType):
                        self._follow_function(method)
        for name, item in fields.items():
            if name[:2] != "__":
                self.follow(f"{path}.{name}" if path else name, item)

    @staticmethod
    def _module_of(function: FunctionType) -> str:
        """The module that a function belongs to."""
        return function.__module__ or "__main__"

    def _follow_function(self, function: FunctionType) -> None:
        """Record ``function`` unless it has been or its module is not followed."""
        module = self._module_of(function)
        if self.is_closed(module):
            self._note_package(module)
        elif id(function) not in self._functions:
            self._functions.add(id(function))
            self._record_function(function, module)

    def _record_function(self, function: FunctionType, module: str) -> None:
        """Record the code of ``function`` and follow all that it reads."""
        name, ours = self.named(function), is_ours(module)
        code = function.__code__
        contents = [*code_parts(code, function.__doc__)]
        defaults = function.__defaults__ or ()
        arguments = code.co_varnames[: code.co_argcount]
        reads = {**dict(zip(arguments[len(arguments) - len(defaults) :], defaults, strict=True))}
        names, attributes = names_read(code)
        present = {key: function.__globals__[key] for key in sorted(names & function.__globals__.keys())}
        reads |= {**(function.__kwdefaults__ or {}), **with_members(present, attributes, self.is_closed)}
        if ours:  # this distribution's constants are part of its code; numbers from users are in closures
            contents += [f"{key}={constant(value)}" for key, value in reads.items() if constant(value)]
            reads = {key: value for key, value in reads.items() if isinstance(value, Dispatcher | FunctionType)}
        cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
        enclosed = {key: cell.cell_contents for key, cell in cells if is_filled(cell)}
        reads |= enclosed
        self.code.setdefault(module.partition(".")[0] if ours else name, []).append(combined([name, *contents]))
        for key, value in reads.items():
            if ours and isinstance(value, Dispatcher | FunctionType) and is_ours(value.__module__):
                self._follow_function(value.py_func if isinstance(value, Dispatcher) else value)
            elif not ours or not is_known_by_name(value):
                self.follow(f"{name}.{key}", value)
        modules = {key: value for key, value in enclosed.items() if isinstance(value, ModuleType) and not ours}
        members = with_members(modules, attributes, self.is_closed)
        for key in sorted(members.keys() - modules.keys()):
            self._follow_reference(f"{name}.{key}", members[key])

    def _follow_reference(self, path: str, value: Any) -> None:
        """As ``follow``, into ``references``, which descriptions of earlier versions do not have."""
        values, self.values = self.values, self.references
        try:
            self.follow(path, value)
        finally:
            self.values = values

    def _note_package(self, module: str) -> None:
        """Record an installed package and its version; Python's own library has Python's version."""
        package = module.partition(".")[0]
        if is_foreign(module) and package not in sys.stdlib_module_names:
            self.packages[package] = str(getattr(sys.modules.get(package), "__version__", ""))


def qualified_name(function: Any) -> str:
    """Module and name of a function, class or callable object."""
    plain = function.py_func if isinstance(function, Dispatcher) else function
    if not hasattr(plain, "__qualname__"):
        plain = type(plain)
    return f"{plain.__module__}.{plain.__qualname__}"


# Functions that files know by an earlier name; packages above add theirs.
NAMES_IN_FILES = {
    "toolkit.no_move": "toolkit.move_not",
    "toolkit.locate_walls": "toolkit.look_walls",
    "toolkit.locate_polygon": "toolkit.look_polygon",
}
# How packages above bring descriptions from older files to the present form, once names are those without modules.
CONVERSIONS: list[Callable[[dict[str, Any]], dict[str, Any]]] = []


def stored_name(function: Any) -> str:
    """``qualified_name`` without the modules of this distribution, so that files stay valid when modules move."""
    plain = function.py_func if isinstance(function, Dispatcher) else function
    if not hasattr(plain, "__qualname__"):
        plain = type(plain)
    module = str(plain.__module__)
    name = f"{module.partition('.')[0] if is_ours(module) else module}.{plain.__qualname__}"
    return NAMES_IN_FILES.get(name, name)


def name_without_modules(name: str) -> str:
    """Convert a name of this distribution that was stored with its modules to a ``stored_name``; keep other names.

    The modules are everything before the last part, or before the name of the enclosing function.
    """
    package, _, rest = name.partition(".")
    if not is_ours(package) or not rest:
        return name
    outer, inside, inner = rest.partition(".<locals>")
    return f"{package}.{outer.rpartition('.')[2]}{inside}{inner}"


def as_described_now(description: dict[str, Any]) -> dict[str, Any]:
    """Convert a function's description from older files, which held our modules and code, to the present form.

    Their code is that of ``BITS`` = 1.
    """
    code = dict(description["code"])
    if not all(str(code.get(name, "bits")).startswith("bits") for name in PACKAGES):
        values = {
            name_without_modules(key) if ".<locals>" in key else key: name_without_modules(value)
            if isinstance(value, str)
            else value
            for key, value in description["values"].items()
        }
        converted = {"function": name_without_modules(description["function"]), "values": values}
        description = {**description, **converted, "code": code | {name: "bits 1" for name in PACKAGES if name in code}}
    for convert in CONVERSIONS:
        description = convert(description)
    return description


def is_known_by_name(value: Any) -> bool:
    """Whether a value read by this distribution's code counts as code: an intrinsic, a class, a module."""
    return not isinstance(value, SCALARS | np.ndarray | np.generic | tuple | list | dict | Dispatcher | FunctionType)


def digest_of_array(value: Any) -> str:
    """Type, shape and digest of an array or tensor, or why there is no digest."""
    try:
        array = np.ascontiguousarray(value.detach().cpu() if hasattr(value, "detach") else value)
    except Exception as error:
        return f"an object of type {qualified_name(type(value))} that gives no array: {error}"
    return constant(array) if array.dtype != object else f"objects of shape {array.shape}"


def combined(texts: list[str]) -> str:
    """One short digest of ``texts``, in order."""
    return hashlib.sha256("\0".join(texts).encode(errors="surrogatepass")).hexdigest()[:32]
