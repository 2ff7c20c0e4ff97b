"""What a function's machine code is made of, as a hash: sources, code and numbers of all that it calls.

Numba's disk cache knows a function's own file only: after an edit of a function it calls in another file, it returns
the old machine code without a word.
"""

import contextlib
import functools
import hashlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher


@functools.cache
def source_stamp(folder: Path) -> str:
    """Hash of the names and contents of all Python sources below ``folder``."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(folder)}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


OWN_STAMP = source_stamp(Path(__file__).resolve().parent)  # at import: what is in memory, not what is edited later


def package_folder(module: str) -> Path | None:
    """The folder of the top-level package of ``module``; None for a script, notebook or lone module."""
    package = sys.modules.get(module.partition(".")[0])
    file = getattr(package, "__file__", None)
    return Path(file).resolve().parent if file and hasattr(package, "__path__") else None


def what_it_depends_on(function: Callable[..., Any]) -> tuple[set[str], set[str]]:
    """Modules of all compiled functions that ``function`` calls, at any depth; and their code and constants.

    The code is that in memory, which an edit after the import has not reached, and the constants are what Numba will
    freeze: numbers, strings, tuples and arrays that are global, of a function around this one, or defaults.
    """
    modules: set[str] = set()
    contents: set[str] = set()
    seen: set[int] = set()
    waiting = [function]
    while waiting:
        current = waiting.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        module = current.__module__ or "__main__"
        modules.add(module)
        found = frozen(current)
        for code in codes(current.__code__):
            contents.add(f"{module}.{code.co_qualname}={code.co_code.hex()}{[constant(c) for c in code.co_consts]}")
        for name, value in list(found.items()):
            if isinstance(value, ModuleType) and value.__name__.partition(".")[0] not in ("numpy", "math", "numba"):
                modules.add(value.__name__)
                found |= {f"{name}.{k}": v for k, v in vars(value).items() if k[:2] != "__"}
        waiting += [f.py_func for value in found.values() for f in dispatchers(value)]
        contents |= {f"{module}.{k}={constant(v)}" for k, v in found.items() if constant(v)}
    return modules, contents


def codes(code: CodeType) -> Iterator[CodeType]:
    """``code``, and that of the functions within it."""
    yield code
    for inside in code.co_consts:
        if isinstance(inside, CodeType):
            yield from codes(inside)


def frozen(function: Callable[..., Any]) -> dict[str, Any]:
    """What a function finds around itself, by name: globals, variables of functions around it, and defaults."""
    own = function.__code__
    found = {name: function.__globals__.get(name) for code in codes(own) for name in code.co_names}
    for name, cell in zip(own.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # a variable that has no value yet
            found[name] = cell.cell_contents
    given = [*enumerate(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).items()]
    return found | {f"{function.__qualname__}({name})": value for name, value in given}


def dispatchers(value: Any) -> Iterator[Dispatcher]:
    """The compiled functions that a constant is, or holds."""
    if isinstance(value, Dispatcher):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from dispatchers(part)


def constant(value: Any) -> str:
    """A text that tells one constant from another; empty for what is none."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}{hashlib.sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, tuple):
        return "".join(f"{constant(v)}," for v in value)
    return repr(value) if isinstance(value, int | float | complex | str | np.generic) else ""


@functools.lru_cache(maxsize=4096)
def when_compiled(function: Callable[..., Any]) -> set[str]:
    """Code and constants of ``function`` as they were when it was first compiled in this process, and are frozen."""
    return what_it_depends_on(function)[1]


def has_changed(function: Callable[..., Any]) -> bool:
    """Whether compiling ``function`` once more would give another one, as a number that it reads has changed."""
    return what_it_depends_on(function)[1] != when_compiled(function)


def cache_stamp(function: Callable[..., Any]) -> str | None:
    """Hash of everything the machine code of ``function`` is made from; None where that cannot be known."""
    modules, contents = what_it_depends_on(function)
    stamps = {OWN_STAMP}
    for module in modules:
        folder = package_folder(module)
        if folder is None:
            return None
        stamps.add(source_stamp(folder))
    if "<locals>" in function.__qualname__:
        return None
    return hashlib.sha256("\0".join([*sorted(stamps), *sorted(contents)]).encode()).hexdigest()
