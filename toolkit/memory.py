"""How much memory this process may have, and whether what is asked for fits into it."""

import os
from pathlib import Path
from typing import Any

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

CONTROL_GROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
UNLIMITED = 2**60


def available_memory() -> int:
    """Bytes of memory that this process may have: the machine's, or its control group's or address space's limit."""
    limits = [UNLIMITED]
    if hasattr(os, "sysconf"):
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for file in CONTROL_GROUPS:
        try:
            limits.append(int(Path(file).read_text(encoding="ascii")))
        except (OSError, ValueError):  # another system's file, or the word "max"
            continue
    if resource is not None:
        limits.append(resource.getrlimit(resource.RLIMIT_AS)[0])
    return min(limit for limit in limits if limit > 0)


def check_room(name: str, value: Any, n_bytes: float, *, hint: str = "") -> None:
    """Raise ValueError where ``n_bytes``, which ``name`` = ``value`` asks for, are more than this process may have."""
    available = available_memory()
    if n_bytes > available:
        raise ValueError(
            f"{name} must fit into memory, got {value}, which takes {n_bytes / 1e9:.4g} GB where there are "
            f"{available / 1e9:.4g} GB{hint}"
        )
