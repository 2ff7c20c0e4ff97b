"""Disk cache of machine code. Its keys hash all code, values and sources that a function's machine code depends on.

Numba's own disk cache checks a function's own file only: after an edit of a function that it calls in another file,
Numba silently loads the old machine code.
"""

import contextlib
import dis
import enum
import functools
import hashlib
import hmac
import os
import pickle
import platform
import stat
import sys
import time
from collections import Counter
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import llvmlite
import numba
import numpy as np
from numba import config, types

from ..errors import package_root, warn_user
from .code_walk import (
    code_parts,
    codes_in,
    constant,
    interfaces,
    is_filled,
    is_known_to_compiler,
    is_ours,
    names_in,
    names_missing,
    public_name,
    with_members,
)
from .function_digest import SCALARS, Walk, combined, qualified_name
from .numba_private import Dispatcher, DUFunc, _Intrinsic, imputils, templates

# Files. Each compiled function has a file of its own, which holds its key and a hash of all its bytes.
#
# Numba numbers a function's files and keeps an index of them. Two processes that add to the index at once can overwrite
# each other's file, and a process that dies between writing index and file leaves an old file; a later process then
# silently runs code of other types or of another target. Numba also does not check that the disk returns what was
# written: one wrong bit of machine code crashes the process or changes its numbers.

MADE_BY = (
    numba.__version__, llvmlite.__version__, np.__version__, config.OPT, config.LOOP_VECTORIZE, config.SLP_VECTORIZE,
    config.BOUNDSCHECK, config.DEBUGINFO_DEFAULT,
)  # fmt: skip
HASH = hashlib.sha256
SIZE = HASH().digest_size  # bytes, with which a file begins


class CodeFile:
    """Replaces the store of Numba's ``Cache``: one file per key, which contains the key and is named by its hash.

    most: how many files of functions of one name are kept, those used last; None for all.
    """

    def __init__(self, files: Any, most: int | None = None) -> None:
        self._files = files  # Numba's file store, which knows the folder
        self._most = most

    def save(self, key: Any, data: Any) -> None:
        """Write ``data``; a failure, as on a full disk, is ignored, because this process has the code in memory."""
        content = self._files._dump((MADE_BY, key, data))
        with contextlib.suppress(OSError), self._files._open_for_write(str(self._path(key))) as file:
            file.write(HASH(content).digest() + content)
        if self._most is not None:
            with contextlib.suppress(OSError):
                self._remove_unused(self._path(key), self._most)

    def has(self, key: Any) -> bool:
        """Whether there is a file for ``key``."""
        return bool(self._path(key).exists())

    def load(self, key: Any) -> Any:
        """The data stored under ``key``; None where there are none, or the file is damaged or has another key."""
        path = self._path(key)
        try:
            stored = path.read_bytes()
        except OSError:
            return None
        if self._most is not None:
            with contextlib.suppress(OSError):
                os.utime(path)  # used now
        content = stored[SIZE:]
        if not hmac.compare_digest(HASH(content).digest(), stored[:SIZE]):
            return None
        try:
            made_by, stored_key, data = pickle.loads(content)  # from the user's own cache folder, as Numba does
        except Exception:  # pickle can raise nearly any exception, for example where a module no longer exists
            return None
        return data if (made_by, stored_key) == (MADE_BY, key) else None

    def flush(self) -> None:
        """Does nothing: there is no index to clear."""

    @staticmethod
    def _remove_unused(path: Path, most: int) -> None:
        """Remove the files that were used longest ago, of functions with the name of the one in ``path``."""
        name = path.name.rpartition("-")[0]  # behind it is the line, which an edit changes
        files = [one for one in path.parent.glob("*.nbc") if one.name.rpartition("-")[0] == name]
        for old in sorted(files, key=lambda one: one.stat().st_mtime)[:-most]:
            old.unlink(missing_ok=True)

    def _path(self, key: Any) -> Path:
        digest = HASH(repr((MADE_BY, key)).encode()).digest()
        return Path(self._files._data_path(self._files._data_name(int.from_bytes(digest[:12]))))


@functools.cache
def others_who_may_write(folder: Path, source: Path) -> str:
    """Who but this user, root and the owner of ``source`` may change what is in ``folder``; "" for nobody.

    A private group of the user's own counts as the user. On Windows, whose rights are of another kind, always "".
    """
    if os.name == "nt":
        return ""
    trusted = {0, os.getuid()}
    with contextlib.suppress(FileNotFoundError):  # a notebook's cell has no file
        trusted.add(source.stat().st_uid)
    for place in (folder, *folder.parents):
        found = place.stat()
        if found.st_uid not in trusted:
            return f"user {found.st_uid}, who owns {str(place)!r}"
        is_shared = place != folder and found.st_mode & stat.S_ISVTX  # as /tmp: others cannot rename what is in it
        if found.st_mode & stat.S_IWOTH and not is_shared:
            return f"everyone, in {str(place)!r}"
        if found.st_mode & stat.S_IWGRP and not is_shared and not is_private_group(found.st_gid, found.st_uid):
            return f"group {found.st_gid}, in {str(place)!r}"
    return ""


def is_private_group(group: int, user: int) -> bool:
    """Whether nobody but ``user`` and root is in a group: root's own, or one that bears the user's name."""
    import grp
    import pwd

    if group == 0:
        return True
    try:
        members = set(grp.getgrgid(group).gr_mem)
        return grp.getgrgid(group).gr_name == pwd.getpwuid(user).pw_name and members <= {pwd.getpwuid(user).pw_name}
    except KeyError:  # of a system that this one does not know
        return False


WARNED: set[str] = set()


def check_private(folder: Path, source: Path, *, warns: bool = True) -> None:
    """Raise RuntimeError, and warn once, where others may write to a cache folder: what is in it is run as code."""
    others = others_who_may_write(folder, source)
    if not others:
        return
    if warns and others not in WARNED:
        WARNED.add(others)
        warn_user(
            f"machine code is not kept in {str(folder)!r}, because others may write there ({others}), and what is in "
            "it runs as code of this user: take their right away (chmod go-w), or set NUMBA_CACHE_DIR to a folder of "
            "your own",
            RuntimeWarning,
        )
    raise RuntimeError(f"others may write to {str(folder)!r}")


START = time.time()
IMPORT = dis.opmap["IMPORT_NAME"]


@functools.cache
def source_stamp(folder: Path) -> str:
    """Hash of the names and contents of all Python sources below ``folder``."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(folder)}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


OWN_STAMP = source_stamp(package_root(__name__))  # at import: of the code in memory, not of later edits


@functools.cache
def is_edited(folder: Path) -> bool:
    """Whether a Python source below ``folder`` changed after this process began, so that memory may hold older code."""
    return any(path.stat().st_ctime > START for path in folder.rglob("*.py"))


def package_folder(module: str) -> Path | None:
    """The folder of the top-level package of ``module``; None for a script, notebook or lone module."""
    try:
        return package_root(module)
    except RuntimeError:
        return None


def is_users(module: str | None) -> bool:
    """Whether ``module`` belongs neither to this distribution nor to what Numba identifies by name."""
    return not is_ours(str(module)) and not is_known_to_compiler(str(module))


def implementations_of(function: Any) -> list[Any]:
    """What ``numba.extending.overload`` has registered for a plain function, by its identity.

    Read in the registry: in the compiler's context it would be after an import of all that Numba compiles.
    """
    found = [kind for value, kind in templates.builtin_registry.globals if value is function]
    return [getattr(one, "_overload_func", one) for kind in found for one in getattr(kind, "templates", [kind])]


def module_of(function: FunctionType) -> str:
    """The module that a function was defined in, whatever it says of itself, as where it wraps another one."""
    return str(function.__globals__.get("__name__") or function.__module__ or "__main__")


def is_overloaded(function: Any) -> bool:
    """Whether ``numba.extending.overload`` has registered an implementation of a plain function."""
    return bool(implementations_of(function))


class Reads(Walk):
    """All that the compiler reads of a function, which is more than the function's results depend on.

    It reads the code in memory, not later edits, with the names that the code looks up and their values: numbers,
    arrays, functions and their compile options. Functions that one factory has made have one name, so each has a number
    besides, and defaults, cells and globals, which can have the same names, are told apart. This distribution's sources
    are in all keys: of its functions, cells count, defaults and overloads where other functions have made them, and
    globals that are constants or functions, or all of them where the function was made of a text. modules: those of all
    functions reached. objects: values that have no other description than their identity. missing: global names that
    have no value yet.
    """

    is_closed = staticmethod(is_known_to_compiler)

    @staticmethod
    def named(value: Any) -> str:
        """The name with its module, because machine code belongs to one file."""
        return qualified_name(value)

    @staticmethod
    def _module_of(function: FunctionType) -> str:
        """The module whose globals it reads."""
        return module_of(function)

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.modules: set[str] = set()
        self.objects: list[Any] = []
        self.missing: set[str] = set()
        self.is_by_value = False  # whether a class would come back from the disk as another one
        self._order: dict[int, int] = {}
        self._numbers: Counter[str] = Counter()  # of functions, by name
        self.follow("", function)

    @property
    def contents(self) -> list[str]:
        """Texts that are equal for two functions only if the compiler reads the same of both."""
        items = {**self.values, **{f"{name}()": codes for name, codes in self.code.items()}, **self.references}
        return sorted(f"{name}={type(value).__name__} {value!r}" for name, value in items.items())

    @property
    def is_all_known(self) -> bool:
        """Whether ``contents`` describe all of it."""
        return not (self.objects or self.unknown)

    def follow(self, path: str, value: Any) -> None:
        """Record ``value``; for an object met before, under another name, also which one it is."""
        if isinstance(value, FunctionType) and is_users(module_of(value)) and path and is_overloaded(value):
            self._note_object(path, value)
            return
        if isinstance(value, float | np.generic) and np.dtype(type(value)).kind in "fcV":  # nan has a sign, too
            as_array = np.asarray(value)
            self.values[path] = f"{type(value).__name__} {as_array.dtype!r} {as_array.tobytes().hex()}"
            return
        if isinstance(value, SCALARS | np.generic | complex | bytes):
            if isinstance(value, enum.Enum):
                self.follow(f"{path} type", type(value))
            elif type(value) not in (int, float, str, bool, type(None), complex, bytes) and not is_numpys(type(value)):
                self._note_object(path, value)  # which may be written as it likes
                return
        else:
            self.values[f"{path} is"] = self._order.setdefault(id(value), len(self._order))
        super().follow(path, value)

    def _follow_object(self, path: str, value: Any) -> None:
        if isinstance(value, Dispatcher):
            self.values[path] = f"{self.named(value)} {options_of(value)}"
            self.follow(f"{path} function", value.py_func)
        elif isinstance(value, _Intrinsic):
            self.values[path] = f"{qualified_name(value._defn)} {value._prefer_literal}"
            self.follow(f"{path} function", value._defn)
        elif isinstance(value, ModuleType):
            self._follow_module(path, value)
        elif isinstance(value, np.ndarray) and value.dtype.hasobject:
            self._note_object(path, value)
        elif isinstance(value, np.ndarray):
            self.values[path] = (
                f"{constant(value)} {value.dtype!r} {value.strides} {value.flags.writeable} {value.flags.aligned}"
            )
        elif isinstance(value, tuple) and hasattr(value, "_fields"):
            self.follow(f"{path} type", type(value))
            self._follow_items(path, value)
        elif isinstance(value, FunctionType | tuple | list | dict | set | frozenset):
            super()._follow_object(path, value)
        elif isinstance(value, types.Type | np.dtype):
            self.values[path] = f"{type(value).__name__} {value}"
            self._follow_kind(path, value)
        elif public_name(value) and (isinstance(value, type) or is_known_by_public_name(value)):
            self.values[path] = public_name(value)
            if isinstance(value, type) and is_users(value.__module__):
                self._follow_class(path, value)
        else:
            self._note_object(path, value)

    def _follow_items(self, path: str, value: Any) -> None:
        """As ``follow``, for containers: all items, and which kind of container."""
        self.values[f"{path} kind"] = f"{qualified_name(type(value))} of {len(value)}"
        if isinstance(value, dict | set | frozenset):
            if not all(type(key) in (int, float, str, bool, bytes) for key in value):
                self._note_object(path, value)  # its keys may be written as they like
                return
            items = value if isinstance(value, dict) else dict.fromkeys(sorted(value, key=repr))
            for i, (key, item) in enumerate(items.items()):
                self.follow(f"{path} key {i}", key)
                self.follow(f"{path}[{i}]", item)
            return
        for i, item in enumerate(value):
            self.follow(f"{path}[{i}]", item)

    def _follow_module(self, path: str, value: ModuleType) -> None:
        """Record which module it is, and all members of a copy; members of others are followed where they are read."""
        self.values[path] = f"module {value.__name__}"
        self._note_package(value.__name__)
        if sys.modules.get(value.__name__) is not value:
            for name, item in vars(value).items():
                if not name.startswith("__"):
                    self.follow(f"{path}.{name}", item)
        if is_users(value.__name__) and "__getattr__" in vars(value):
            self._note_object(path, value)  # its members are what this function says

    def _follow_kind(self, path: str, value: Any) -> None:
        """Record what Numba's type of a named tuple does not say: its class, with the names of its fields."""
        if hasattr(value, "instance_class"):
            self.follow(f"{path} class", value.instance_class)
        for i, part in enumerate(getattr(value, "types", ()) if isinstance(value, types.BaseTuple) else ()):
            self._follow_kind(f"{path} {i}", part)

    def _record_function(self, function: FunctionType, module: str) -> None:
        """Record the code of ``function``, and follow all that it reads."""
        self._seen[id(function)] = function  # a dispatcher's function too: no other may get its id
        name = qualified_name(function)
        self._numbers[name] += 1
        place, code = f"{name} {self._numbers[name]}", function.__code__
        ours = is_ours(module) and function.__globals__ is vars(sys.modules.get(module, sys))  # else a text's
        if "<locals>" in function.__qualname__:  # with one of a user's, ``follow`` has noted the function itself
            for i, implementation in enumerate(implementations_of(function)):
                self.follow(f"{place} implementation {i}", implementation)
        names = names_in(code)  # extra names do no harm, and reading instructions is slow
        present = {key: function.__globals__[key] for key in sorted(names & function.__globals__.keys())}
        reads = with_members(present, names, self.is_closed)
        contents = [*code_parts(code), *self._further_parts(function, module)]
        if ours:
            contents += [f"{key}={constant(value)}" for key, value in reads.items() if constant(value)]
            reads = {key: value for key, value in reads.items() if isinstance(value, Dispatcher | FunctionType)}
        self.code[place] = [combined(contents)]
        if not ours and any(IMPORT in nested.co_code[::2] for nested in codes_in(code)):
            self._note_object(place, function)  # of an intrinsic: what it imports, nobody sees
        for key, value in reads.items():
            self.follow(f"{place} global {key}", value)
        if not ours or "<locals>" in function.__qualname__:
            for i, value in enumerate(function.__defaults__ or ()):
                self.follow(f"{place} default {i}", value)
            for key, value in sorted((function.__kwdefaults__ or {}).items()):
                self.follow(f"{place} default {key}", value)
        cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
        enclosed = {key: cell.cell_contents for key, cell in cells if is_filled(cell)}
        for key, value in with_members(enclosed, names, self.is_closed).items():
            self.follow(f"{place} cell {key}", value)

    def _follow_class(self, path: str, value: type) -> None:
        """Record what the compiler reads of a user's class: a named tuple's fields, or an enumeration's members."""
        self.values[f"{path} bases"] = [qualified_name(base) for base in value.__mro__]
        self.is_by_value |= value.__module__ == "__main__" or "<locals>" in value.__qualname__
        if issubclass(value, enum.Enum):
            self.values[f"{path} members"] = {name: repr(member.value) for name, member in value.__members__.items()}
        elif issubclass(value, tuple) and hasattr(value, "_fields"):
            self.values[f"{path} fields"] = value._fields
            self.follow(f"{path} defaults", tuple(getattr(value, "_field_defaults", {}).items()))
        elif not issubclass(value, BaseException):
            self._note_object(path, value)

    def _note_object(self, path: str, value: Any) -> None:
        """Record a value that has no other description than its identity."""
        self.objects.append(value)
        self.values[path] = f"object {id(value)}"
        self.unknown.append(f"{path}: an object of type {qualified_name(type(value))}")

    def _further_parts(self, function: FunctionType, module: str) -> list[str]:
        """What is recorded of a function besides its code."""
        self.modules.add(module)
        if is_users(module):
            self.missing |= names_missing(function)
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        empty = [name for name, cell in cells if not is_filled(cell)]
        return [module, *interfaces(function.__code__), f"{empty}"]

    def _note_package(self, module: str) -> None:
        self.modules.add(module)


def is_numpys(kind: type) -> bool:
    """Whether a class of scalars is one of NumPy's."""
    return issubclass(kind, np.generic) and kind.__module__ == "numpy"


def is_known_by_public_name(value: Any) -> bool:
    """Whether an object is one of Python's library, NumPy or Numba; not a ufunc that a user's module has made."""
    package = public_name(value).partition(".")[0]
    return is_known_to_compiler(str(type(value).__module__)) and (is_known_to_compiler(package) or is_ours(package))


def options_of(dispatcher: Any) -> str:
    """A function's compile options: target options, types of locals, and its signatures if they are fixed."""
    compiler = dispatcher._compiler.pipeline_class
    signatures = [] if dispatcher._can_compile else sorted(str(one.signature) for one in dispatcher.overloads.values())
    options = sorted(
        (name, repr(sorted(map(repr, value)) if isinstance(value, set | frozenset) else value))
        for name, value in dispatcher.targetoptions.items()
    )
    return f"{type(dispatcher).__qualname__} {compiler.__module__}.{compiler.__qualname__} {options} {signatures} " + (
        f"{sorted((name, str(kind)) for name, kind in (dispatcher._compiler.locals or {}).items())}"
    )


def cache_stamp(function: Callable[..., Any]) -> str | None:
    """Hash of everything that the machine code of a package's function depends on; None where that cannot be known.

    None, too, for functions of scripts and notebooks, and for those inside others: ``own_stamp`` is for them.
    """
    if "<locals>" in getattr(function, "__qualname__", "<locals>"):
        return None
    return stamp_with_sources(Reads(function), of_scripts=False)


def own_stamp(function: Callable[..., Any]) -> str | None:
    """As ``cache_stamp``, for a function of a script or notebook, or one inside another, as it is in memory now.

    None where somebody else has told Numba how to compile something, which no function that uses it says.
    """
    if has_others_rules():
        return None
    reads = Reads(function)
    return None if reads.missing or reads.is_by_value else stamp_with_sources(reads, of_scripts=True)


def stamp_with_sources(reads: Reads, *, of_scripts: bool) -> str | None:
    """Hash of contents and of the sources of all packages reached; None where one was edited or not all is known."""
    if not reads.is_all_known:
        return None
    stamps = {OWN_STAMP}
    for module in reads.modules:
        folder = package_folder(module)
        if is_known_to_compiler(module) or (folder is None and of_scripts):
            continue
        if folder is None or is_edited(folder):
            return None
        stamps.add(source_stamp(folder))
    return digest([*sorted(stamps), *reads.contents])


class OthersRules:
    """Whether anybody but Numba and this distribution has registered how Numba types or compiles something.

    Rules for methods of a ufunc that ``vectorize`` made do not count: what reads it has no stamp.
    """

    def __init__(self) -> None:
        typing, lowering = templates.builtin_registry, imputils.builtin_registry
        self._items = (
            typing.functions, typing.attributes, lowering.functions, lowering.casts, lowering.constants,
            lowering.getattrs, lowering.setattrs,
        )  # fmt: skip
        self._seen = [0] * len(self._items)
        self._found = False

    def __call__(self) -> bool:
        """Look at what was registered since the last call."""
        for k, items in enumerate(self._items):
            new = items[self._seen[k] :]
            self._found = self._found or any(map(self._is_others, new))
            self._seen[k] += len(new)
        return self._found

    def forget(self) -> None:
        """Let what was registered so far not count."""
        self()
        self._found = False

    @staticmethod
    def _is_others(item: Any) -> bool:
        implementation = item[0] if isinstance(item, tuple) else item
        given = [getattr(implementation, "_overload_func", implementation)]
        if given[0].__module__ == DUFunc.__module__:
            return False
        if str(given[0].__module__).startswith("numba."):  # which may wrap what was given to it
            given += [cell.cell_contents for cell in getattr(given[0], "__closure__", None) or ()]
        modules = [getattr(one, "__module__", None) for one in given]
        return any(module is not None and is_users(module) for module in modules)  # some of Numba's have none


has_others_rules = OthersRules()


def content_stamp(function: Callable[..., Any]) -> str | None:
    """Hash of all that a compiler reads of ``function`` as it is in memory; None where that has only an identity.

    Two processes with equal stamps compile it to the same machine code, whatever files say.
    """
    reads = Reads(function)
    if not reads.is_all_known:
        return None
    return digest([OWN_STAMP, *reads.contents])


def digest(texts: list[str]) -> str:
    """Hash of texts in this order."""
    return hashlib.sha256("\0".join(texts).encode(errors="surrogatepass")).hexdigest()


def environment() -> dict[str, str]:
    """Versions of Python and numerical packages, a digest of the toolkit's sources (``sources``), and the machine."""
    versions = {"python": platform.python_version(), "sources": OWN_STAMP[:32]}
    for package in ("manymodes", "numpy", "numba", "llvmlite", "scipy"):
        try:
            versions[package] = installed_version(package)
        except PackageNotFoundError:
            versions[package] = "unknown"
    return {**versions, "machine": machine(), "byte_order": sys.byteorder}


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
