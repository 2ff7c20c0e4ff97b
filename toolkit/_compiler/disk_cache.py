"""What a function's machine code is made of: the code and values of all that a compiler reads of it, and sources.

Numba's disk cache knows a function's own file only: after an edit of a function it calls in another file, it returns
the old machine code without a word.
"""

import contextlib
import enum
import functools
import hashlib
import hmac
import os
import pickle
import platform
import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import llvmlite
import numba
import numpy as np
from numba import config, types
from numba.core.dispatcher import Dispatcher
from numba.core.extending import _Intrinsic
from numba.core.registry import cpu_target

from ..errors import package_root
from .code_walk import constant, interfaces, is_compilers, is_filled, is_ours, names_in, names_missing, public_name
from .function_digest import SCALARS, Walk, qualified_name

# Machine code on disk, each in a file of its own, which says what it is and holds a hash of all its bytes.
#
# Numba numbers a function's files and keeps a list of them. Of two processes that add to the list at once one may write
# over the other's file, and a process that ends between the list and the file leaves what was there before; a later one
# then runs code of other types, or of another target, without a word. Nor does Numba look whether a disk gave back what
# was written: one bit of machine code that is another ends the process, or changes its numbers.

MADE_BY = (
    numba.__version__, llvmlite.__version__, np.__version__, config.OPT, config.LOOP_VECTORIZE, config.SLP_VECTORIZE,
    config.BOUNDSCHECK, config.DEBUGINFO_DEFAULT,
)  # fmt: skip
HASH = hashlib.sha256
SIZE = HASH().digest_size  # bytes, with which a file begins


class CodeFile:
    """What Numba's ``Cache`` keeps its code with: in files named by their key, which they hold too."""

    def __init__(self, files: Any) -> None:
        self._files = files  # Numba's, which knows the folder

    def save(self, key: Any, data: Any) -> None:
        """Keep ``data``, where there is room for it: what is compiled serves this process all the same."""
        content = self._files._dump((MADE_BY, key, data))
        with contextlib.suppress(OSError), self._files._open_for_write(str(self._path(key))) as file:
            file.write(HASH(content).digest() + content)

    def load(self, key: Any) -> Any:
        """What was kept under ``key``; None where there is nothing, or what is there is something else, or damaged."""
        try:
            found = self._path(key).read_bytes()
        except OSError:
            return None
        content = found[SIZE:]
        if not hmac.compare_digest(HASH(content).digest(), found[:SIZE]):
            return None
        try:
            made_by, kept, data = pickle.loads(content)  # of this user's own folder, as Numba's
        except Exception:  # pickle raises nearly anything, as where a module is gone
            return None
        return data if (made_by, kept) == (MADE_BY, key) else None

    def flush(self) -> None:
        """Nothing is listed, so nothing is to be forgotten."""

    def _path(self, key: Any) -> Path:
        digest = HASH(repr((MADE_BY, key)).encode()).digest()
        return Path(self._files._data_path(self._files._data_name(int.from_bytes(digest[:12]))))


START = time.time()


@functools.cache
def source_stamp(folder: Path) -> str:
    """Hash of the names and contents of all Python sources below ``folder``."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(folder)}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


OWN_STAMP = source_stamp(package_root(__name__))  # at import: what is in memory, not what is edited later


@functools.cache
def is_edited(folder: Path) -> bool:
    """Whether a Python source below ``folder`` changed after this process began, so that memory may hold another."""
    return any(path.stat().st_ctime > START for path in folder.rglob("*.py"))


def package_folder(module: str) -> Path | None:
    """The folder of the top-level package of ``module``; None for a script, notebook or lone module."""
    try:
        return package_root(module)
    except RuntimeError:
        return None


def is_users(module: str | None) -> bool:
    """Whether a function of ``module`` is neither of this distribution nor known to the compiler by its name."""
    return not is_ours(str(module)) and not is_compilers(str(module))


def is_overloaded(function: Any) -> bool:
    """Whether Numba has an implementation of a plain function, by ``numba.extending.overload``: known by identity."""
    context = cpu_target.typing_context
    context.refresh()
    return context._lookup_global(function) is not None


class Reads(Walk):
    """All that a compiler reads of a function, which is more than the function's values depend on.

    The code is that in memory, which an edit after the import has not reached, with the names it looks up and what
    these stand for: numbers, arrays, functions and how they are to be compiled. modules: where its functions are from.
    objects: what can be told by its identity alone. missing: global names that have no value yet.
    """

    is_closed = staticmethod(is_compilers)

    @staticmethod
    def named(value: Any) -> str:
        """With its module: machine code is that of one file."""
        return qualified_name(value)

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.modules: set[str] = set()
        self.objects: list[Any] = []
        self.missing: set[str] = set()
        self._order: dict[int, int] = {}
        self.follow("", function)

    @property
    def contents(self) -> list[str]:
        """Texts that tell what a compiler reads from what it would read of another function."""
        found = {**self.values, **{f"{name}()": codes for name, codes in self.code.items()}, **self.references}
        return sorted(f"{name}={type(value).__name__} {value!r}" for name, value in found.items())

    def follow(self, path: str, value: Any) -> None:
        """Note ``value``, also where it has been met by another name: which of two alike it is."""
        if isinstance(value, FunctionType) and is_users(value.__module__) and path and is_overloaded(value):
            self._note_object(path, value)
            return
        if not isinstance(value, SCALARS | np.generic | complex | bytes):
            self.values[f"{path} is"] = self._order.setdefault(id(value), len(self._order))
        super().follow(path, value)

    def _follow_object(self, path: str, value: Any) -> None:
        if isinstance(value, Dispatcher):
            self.values[f"{path} compiled"] = options_of(value)
            super()._follow_object(path, value)
        elif isinstance(value, _Intrinsic):
            self.values[path] = qualified_name(value._defn)
            self._follow_function(value._defn)
        elif isinstance(value, np.ndarray) and value.dtype.hasobject:
            self._note_object(path, value)
        elif isinstance(value, np.ndarray):
            self.values[path] = f"{constant(value)} {value.dtype.descr} {value.strides} {value.flags.writeable}"
        elif isinstance(value, tuple) and hasattr(value, "_fields"):
            self.follow(f"{path} type", type(value))
            self._follow_items(path, value)
        elif isinstance(value, FunctionType | ModuleType | tuple | list | dict | set | frozenset):
            super()._follow_object(path, value)
        elif isinstance(value, types.Type | np.dtype):
            self.values[path] = f"{type(value).__name__} {value}"
        elif public_name(value) and (isinstance(value, type) or is_compilers(str(type(value).__module__))):
            self.values[path] = public_name(value)
            if isinstance(value, type) and is_users(value.__module__):
                self._follow_class(path, value)
        else:
            self._note_object(path, value)

    def _follow_class(self, path: str, value: type) -> None:
        """Note what a compiler reads of a user's class: the fields of a named tuple, or an enumeration's members."""
        if issubclass(value, enum.Enum):
            self.values[f"{path} members"] = {name: repr(member.value) for name, member in value.__members__.items()}
        elif issubclass(value, tuple) and hasattr(value, "_fields"):
            self.values[f"{path} fields"] = value._fields
            self.follow(f"{path} defaults", tuple(getattr(value, "_field_defaults", {}).items()))
        elif not issubclass(value, BaseException):
            self._note_object(path, value)

    def _note_object(self, path: str, value: Any) -> None:
        """Note what can be told by its identity alone."""
        self.objects.append(value)
        self.values[path] = f"object {id(value)}"
        self.unknown.append(f"{path}: an object of type {qualified_name(type(value))}")

    def _names_read(self, code: CodeType) -> tuple[set[str], set[str]]:
        names = names_in(code)  # a name too many does no harm, and instructions take long to read
        return names, names

    def _further_parts(self, function: FunctionType) -> list[str]:
        module = function.__module__ or "__main__"
        self.modules.add(module)
        if is_users(module):
            self.missing |= names_missing(function)
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        empty = [name for name, cell in cells if not is_filled(cell)]
        return [module, *interfaces(function.__code__), f"{empty}"]

    def _note_package(self, module: str) -> None:
        self.modules.add(module)


def options_of(dispatcher: Any) -> str:
    """How a function is to be compiled: options, types of locals, and signatures where these are all it has."""
    compiler = dispatcher._compiler.pipeline_class
    signatures = [] if dispatcher._can_compile else sorted(map(str, dispatcher.overloads))
    options = sorted((name, repr(value)) for name, value in dispatcher.targetoptions.items())
    return f"{type(dispatcher).__qualname__} {compiler.__module__}.{compiler.__qualname__} {options} {signatures} " + (
        f"{sorted((name, str(kind)) for name, kind in (dispatcher._compiler.locals or {}).items())}"
    )


def cache_stamp(function: Callable[..., Any]) -> str | None:
    """Hash of everything the machine code of ``function`` is made from; None where that cannot be known."""
    if "<locals>" in getattr(function, "__qualname__", "<locals>"):
        return None
    reads = Reads(function)
    if reads.objects or reads.unknown:
        return None
    stamps = {OWN_STAMP}
    for module in reads.modules:
        folder = package_folder(module)
        if is_compilers(module):
            continue
        if folder is None or is_edited(folder):
            return None
        stamps.add(source_stamp(folder))
    return hashlib.sha256("\0".join([*sorted(stamps), *reads.contents]).encode(errors="surrogatepass")).hexdigest()


def environment() -> dict[str, str]:
    """Versions of what computes, a digest of the toolkit's sources (``sources``), and the machine."""
    found = {"python": platform.python_version(), "sources": OWN_STAMP[:32]}
    for package in ("manymodes", "numpy", "numba", "llvmlite", "scipy"):
        try:
            found[package] = installed_version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return {**found, "machine": machine(), "byte_order": sys.byteorder}


@functools.cache
def installed_version(package: str) -> str:
    """The version of an installed distribution."""
    return version(package)


@functools.cache
def machine() -> str:
    """Processor, operating system and number of processors."""
    name = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), name)
    except OSError:
        pass
    return f"{name}, {platform.machine()}, {platform.system()}"


def available_threads() -> int:
    """Processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
