"""Read a function's code object in memory: its digest, the globals it reads, and the package it belongs to."""

import builtins
import dis
import functools
import hashlib
import sys
import sysconfig
from collections.abc import Callable, Iterator, Set
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

PACKAGES = ("toolkit", "targets", "sysid", "figures")
ROOT = Path(__file__).resolve().parents[2]


def is_ours(module: str) -> bool:
    """Whether ``module`` belongs to this distribution, and not to somebody's package of the same name."""
    package = module.partition(".")[0]
    return package in PACKAGES and is_beside_toolkit(package, getattr(sys.modules.get(package), "__file__", None))


@functools.cache
def is_beside_toolkit(package: str, file: str | None) -> bool:
    """Whether a package's ``__init__.py`` lies where ours does; True for one that is not imported."""
    return file is None or Path(file).resolve().parent == ROOT / package


@functools.cache
def is_foreign(module: str) -> bool:
    """Whether ``module`` is of Python's library or of an installed package."""
    package = module.partition(".")[0]
    if package == "__main__" or is_ours(module):
        return False
    file = getattr(sys.modules.get(package), "__file__", None)
    installed = file is not None and bool({"site-packages", "dist-packages"} & set(Path(file).parts))
    return installed or package in sys.stdlib_module_names


@functools.cache
def is_known_to_compiler(module: str) -> bool:
    """Whether ``module`` is of Python's library, NumPy or Numba, whose functions Numba identifies by name."""
    package = module.partition(".")[0]
    if package in ("numpy", "numba", "llvmlite", "builtins", "math"):
        return True
    file = getattr(sys.modules.get(package), "__file__", None)
    if package == "__main__" or package not in sys.stdlib_module_names:
        return False
    return file is None or Path(file).resolve().is_relative_to(Path(sysconfig.get_path("stdlib")).resolve())


def code_parts(code: CodeType, docstring: str | None = None) -> Iterator[str]:
    """Texts that identify ``code`` and the codes inside it; without docstring, file, lines and names of locals."""
    yield f"{code.co_code.hex()} {code.co_exceptiontable.hex()} {code.co_names} {code.co_argcount}"
    for value in code.co_consts:
        if isinstance(value, CodeType):
            yield from code_parts(value)
        elif docstring is None or value != docstring:
            yield literal(value)


def interfaces(code: CodeType) -> Iterator[str]:
    """What a compiler reads of ``code`` and the codes inside it besides ``code_parts``: names, counts and flags."""
    for nested in codes_in(code):
        counts = (nested.co_flags, nested.co_posonlyargcount, nested.co_kwonlyargcount)
        yield f"{nested.co_varnames} {nested.co_freevars} {nested.co_cellvars} {counts}"


def literal(value: Any) -> str:
    """A constant as text; sets are sorted."""
    if isinstance(value, frozenset):
        return f"{{{', '.join(sorted(map(literal, value)))}}}"
    return f"({', '.join(map(literal, value))})" if isinstance(value, tuple) else repr(value)


@functools.lru_cache(maxsize=4096)
def names_read(code: CodeType) -> tuple[frozenset[str], frozenset[str]]:
    """Global names, and names of attributes, that ``code`` and the codes inside it read.

    The last ones are kept: a run's description reads the code of a problem's functions each time, and takes most of its
    time so.
    """
    names, attributes = set(), set()
    for instruction in instructions_in(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            names.add(instruction.argval)
        elif instruction.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            attributes.add(instruction.argval)
    return frozenset(names), frozenset(attributes)


def names_in(code: CodeType) -> set[str]:
    """All names that ``code`` and the codes inside it look up, as globals or as attributes."""
    return {name for nested in codes_in(code) for name in nested.co_names}


def instructions_in(code: CodeType) -> Iterator[dis.Instruction]:
    """The instructions of ``code`` and of the codes inside it."""
    return (instruction for nested in codes_in(code) for instruction in dis.get_instructions(nested))


def constants_in(code: CodeType) -> Iterator[Any]:
    """The constants of ``code`` and of the codes inside it, tuples flattened; without code objects."""
    pending = [value for nested in codes_in(code) for value in nested.co_consts]
    for value in pending:
        if isinstance(value, tuple):
            pending.extend(value)
        elif not isinstance(value, CodeType):
            yield value


def transformed(code: CodeType, change: Callable[[CodeType], CodeType]) -> CodeType:
    """``code`` with ``change`` applied to it and to all codes inside it, innermost first."""
    constants = (transformed(value, change) if isinstance(value, CodeType) else value for value in code.co_consts)
    return change(code.replace(co_consts=tuple(constants)))


def names_missing(function: FunctionType) -> frozenset[str]:
    """Global names that ``function`` reads, and that have no value yet."""
    return names_read(function.__code__)[0] - function.__globals__.keys() - vars(builtins).keys()


def with_members(values: dict[str, Any], attributes: Set[str], is_closed: Callable[[str], bool]) -> dict[str, Any]:
    """``values``, plus the members named ``attributes`` of each module among them that is not closed, at any depth."""
    collected: dict[str, Any] = {}
    pending, seen = dict(values), set()
    while pending:
        name, value = pending.popitem()
        collected[name] = value
        is_open = isinstance(value, ModuleType) and not is_closed(value.__name__)
        if is_open and (name.count(".") < 8 or value not in seen):
            seen.add(value)
            members = vars(value)
            pending |= {f"{name}.{inner}": members[inner] for inner in sorted(attributes & members.keys())}
    return dict(sorted(collected.items()))


def is_filled(cell: Any) -> bool:
    """Whether a closure's cell has a value yet."""
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def public_name(value: Any) -> str:
    """The module and name under which a C function, a ufunc or a class can be imported; empty if it cannot."""
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    for module in (getattr(value, "__module__", None), "numpy"):
        found: Any = sys.modules.get(module) if isinstance(module, str) else None
        for part in str(name).split("."):
            found = getattr(found, part, None)
        if found is value and value is not None:
            return f"{module}.{name}"
    return ""


def constant(value: Any) -> str:
    """A text that identifies a constant; empty for anything else."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}{hashlib.sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, tuple):
        return "".join(f"{constant(v)}," for v in value)
    return repr(value) if isinstance(value, int | float | complex | str | np.generic) else ""


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """``code`` and the code objects inside it."""
    yield code
    for value in code.co_consts:
        if isinstance(value, CodeType):
            yield from codes_in(value)
