"""Compile a part to machine code behind a fixed signature, once, and keep it on disk without ever serving it stale.

Numba's disk cache knows a function's own file only: after an edit of a function it calls in another file, it
returns the old machine code without a word. Here the key of every cached function holds a hash of all sources of
this package and of the package the function comes from, so any edit recompiles. ``tests/test_compiling.py``
edits a source in a copy of the package and looks.
"""

import functools
import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache
from numba.core.typing.templates import Signature

# Decorators of the functions that parts call. Without reference counts on arrays, whose atomic increments would cost
# more than the arithmetic; so a kernel cannot allocate. Division by zero gives inf or nan, as in IEEE 754.
kernel = njit(error_model="numpy", _nrt=False)
inlined = njit(forceinline=True, error_model="numpy", _nrt=False)


@functools.cache
def source_stamp(folder: Path) -> str:
    """Hash of the names and contents of all Python sources below ``folder``."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(folder)}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def package_folder(function: Callable[..., Any]) -> Path | None:
    """The folder of the top-level package that defines ``function``; None for a script, notebook or lone module."""
    package = sys.modules.get(function.__module__.partition(".")[0])
    file = getattr(package, "__file__", None)
    return Path(file).resolve().parent if file and hasattr(package, "__path__") else None


class StampedCache(FunctionCache):  # type: ignore[misc]
    """Numba's cache of one function, with the sources it may depend on in the key."""

    def __init__(self, function: Callable[..., Any], stamp: str) -> None:
        super().__init__(function)
        self._stamp = stamp

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        return (*super()._index_key(sig, codegen), self._stamp)


@functools.cache
def compile_part(function: Callable[..., Any], signature: Signature, *, allocates: bool = False) -> Any:
    """``function`` compiled for ``signature``, to run without the GIL; only one that ``allocates`` may make arrays.

    Functions of a package whose file can be found are cached on disk; those of a user's script or notebook, whose
    dependencies are unknown, are compiled anew in each process.
    """
    dispatcher = njit(nogil=True, error_model="numpy", _nrt=allocates)(function)
    folder = package_folder(function)
    if folder is not None and "<locals>" not in function.__qualname__:
        stamps = source_stamp(Path(__file__).resolve().parent), source_stamp(folder)
        dispatcher._cache = StampedCache(function, "".join(stamps))
    dispatcher.compile(signature)
    dispatcher.disable_compile()
    return dispatcher
