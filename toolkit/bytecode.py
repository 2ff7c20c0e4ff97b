"""A function's code in memory: its digest, the globals it reads, and whose it is."""

import dis
import functools
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

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


def code_parts(code: CodeType, docstring: str | None = None) -> Iterator[str]:
    """Texts that tell one code from another, with the codes inside it; without docstring, files, lines and locals."""
    yield f"{code.co_code.hex()} {code.co_exceptiontable.hex()} {code.co_names} {code.co_argcount}"
    for value in code.co_consts:
        if isinstance(value, CodeType):
            yield from code_parts(value)
        elif docstring is None or value != docstring:
            yield literal(value)


def literal(value: Any) -> str:
    """A constant as text, that of a set in an order of its own."""
    if isinstance(value, frozenset):
        return f"{{{', '.join(sorted(map(literal, value)))}}}"
    return f"({', '.join(map(literal, value))})" if isinstance(value, tuple) else repr(value)


def globals_read(function: FunctionType) -> dict[str, Any]:
    """Globals that ``function`` and the functions inside it read; of a module that is followed, what they take from it.

    Names that are not there, or are Python's own, are left out.
    """
    names, attributes = set(), set()
    for code in codes_in(function.__code__):
        for instruction in dis.get_instructions(code):
            if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                names.add(instruction.argval)
            elif instruction.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                attributes.add(instruction.argval)
    found: dict[str, Any] = {}
    waiting = {name: function.__globals__[name] for name in sorted(names & function.__globals__.keys())}
    while waiting:
        name, value = waiting.popitem()
        found[name] = value
        if isinstance(value, ModuleType) and not is_foreign(value.__name__) and name.count(".") < 8:
            members = vars(value)
            waiting |= {f"{name}.{inner}": members[inner] for inner in sorted(attributes & members.keys())}
    return dict(sorted(found.items()))


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """``code`` and those of the functions inside it."""
    yield code
    for value in code.co_consts:
        if isinstance(value, CodeType):
            yield from codes_in(value)
