"""A function's code in memory: its digest, the globals it reads, and whose it is."""

import builtins
import dis
import functools
import hashlib
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

PACKAGES = ("toolkit", "targets", "sysid", "figures")


def is_ours(module: str) -> bool:
    """Whether ``module`` belongs to this distribution."""
    return module.partition(".")[0] in PACKAGES


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
def is_compilers(module: str) -> bool:
    """Whether ``module`` is of Python's library, NumPy or Numba, whose functions a compiler knows by their names."""
    package = module.partition(".")[0]
    if package in ("numpy", "numba", "llvmlite", "builtins", "math"):
        return True
    file = getattr(sys.modules.get(package), "__file__", None)
    if package == "__main__" or package not in sys.stdlib_module_names:
        return False
    return file is None or Path(file).resolve().is_relative_to(Path(sysconfig.get_path("stdlib")).resolve())


def code_parts(code: CodeType, docstring: str | None = None) -> Iterator[str]:
    """Texts that tell one code from another, with the codes inside it; without docstring, files, lines and locals."""
    yield f"{code.co_code.hex()} {code.co_exceptiontable.hex()} {code.co_names} {code.co_argcount}"
    for value in code.co_consts:
        if isinstance(value, CodeType):
            yield from code_parts(value)
        elif docstring is None or value != docstring:
            yield literal(value)


def interfaces(code: CodeType) -> Iterator[str]:
    """What a compiler reads of ``code``, and of the codes inside it, beside ``code_parts``: names, counts and flags."""
    for each in codes_in(code):
        counts = (each.co_flags, each.co_posonlyargcount, each.co_kwonlyargcount)
        yield f"{each.co_varnames} {each.co_freevars} {each.co_cellvars} {counts}"


def literal(value: Any) -> str:
    """A constant as text, that of a set in an order of its own."""
    if isinstance(value, frozenset):
        return f"{{{', '.join(sorted(map(literal, value)))}}}"
    return f"({', '.join(map(literal, value))})" if isinstance(value, tuple) else repr(value)


def names_read(code: CodeType) -> tuple[set[str], set[str]]:
    """Global names, and names of attributes, that ``code`` and the codes inside it read."""
    names, attributes = set(), set()
    for instruction in instructions_in(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            names.add(instruction.argval)
        elif instruction.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            attributes.add(instruction.argval)
    return names, attributes


def names_in(code: CodeType) -> set[str]:
    """All names that ``code`` and the codes inside it look up, as globals or as attributes."""
    return {name for inner in codes_in(code) for name in inner.co_names}


def instructions_in(code: CodeType) -> Iterator[dis.Instruction]:
    """The instructions of ``code`` and of the codes inside it."""
    return (instruction for inner in codes_in(code) for instruction in dis.get_instructions(inner))


def constants_in(code: CodeType) -> Iterator[Any]:
    """The constants of ``code`` and of the codes inside it, and what their tuples hold; no codes and no tuples."""
    waiting = [value for inner in codes_in(code) for value in inner.co_consts]
    for value in waiting:
        if isinstance(value, tuple):
            waiting.extend(value)
        elif not isinstance(value, CodeType):
            yield value


def transformed(code: CodeType, change: Callable[[CodeType], CodeType]) -> CodeType:
    """``change`` of ``code``, in which the codes inside it have been changed likewise."""
    constants = (transformed(value, change) if isinstance(value, CodeType) else value for value in code.co_consts)
    return change(code.replace(co_consts=tuple(constants)))


def names_missing(function: FunctionType) -> set[str]:
    """Global names that ``function`` reads, and that have no value yet."""
    return names_read(function.__code__)[0] - function.__globals__.keys() - vars(builtins).keys()


def with_members(values: dict[str, Any], attributes: set[str], is_closed: Callable[[str], bool]) -> dict[str, Any]:
    """``values``, and of each module among them that is not closed its members named ``attributes``, at any depth."""
    found: dict[str, Any] = {}
    waiting, seen = dict(values), set()
    while waiting:
        name, value = waiting.popitem()
        found[name] = value
        is_open = isinstance(value, ModuleType) and not is_closed(value.__name__)
        if is_open and (name.count(".") < 8 or value not in seen):
            seen.add(value)
            members = vars(value)
            waiting |= {f"{name}.{inner}": members[inner] for inner in sorted(attributes & members.keys())}
    return dict(sorted(found.items()))


def is_filled(cell: Any) -> bool:
    """Whether a closure's cell holds something yet."""
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def public_name(value: Any) -> str:
    """The module and name under which a function of C, a ufunc or a class is found; empty where it is not."""
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    for module in (getattr(value, "__module__", None), "numpy"):
        found: Any = sys.modules.get(module) if isinstance(module, str) else None
        for part in str(name).split("."):
            found = getattr(found, part, None)
        if found is value and value is not None:
            return f"{module}.{name}"
    return ""


def constant(value: Any) -> str:
    """A text that tells one constant from another; empty for what is none."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}{hashlib.sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, tuple):
        return "".join(f"{constant(v)}," for v in value)
    return repr(value) if isinstance(value, int | float | complex | str | np.generic) else ""


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """``code`` and those of the functions inside it."""
    yield code
    for value in code.co_consts:
        if isinstance(value, CodeType):
            yield from codes_in(value)
