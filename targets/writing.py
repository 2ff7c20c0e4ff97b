"""Functions of our own text, which tracebacks and ``inspect`` find."""

import hashlib
import linecache
from typing import Any


def written(kind: str, name: str, source: str, space: dict[str, Any]) -> Any:
    """The function ``name`` that ``source`` defines with the names of ``space``, in a file named by its contents."""
    file = f"<{kind} {hashlib.sha256(source.encode()).hexdigest()[:16]}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(compile(source, file, "exec"), space)  # our own text, of numbers, operators and the functions of ``space``
    return space[name]
