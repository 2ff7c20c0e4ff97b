"""Machine code on disk, each in a file of its own, which says what it is.

Numba numbers a function's files and keeps a list of them. Of two processes that add to the list at once one may write
over the other's file, and a process that ends between the list and the file leaves what was there before; a later one
then runs code of other types, or of another target, without a word.
"""

import contextlib
import hashlib
from typing import Any

import llvmlite
import numba
from numba import config

MADE_BY = (
    numba.__version__, llvmlite.__version__, config.OPT, config.LOOP_VECTORIZE, config.SLP_VECTORIZE,
    config.BOUNDSCHECK, config.DEBUGINFO_DEFAULT,
)  # fmt: skip


class KeptCode:
    """What Numba's ``Cache`` keeps its code with: in files named by their key, which they hold too."""

    def __init__(self, files: Any) -> None:
        self._files = files  # Numba's, which reads and writes

    def save(self, key: Any, data: Any) -> None:
        """Keep ``data``, where there is room for it: what is compiled serves this process all the same."""
        with contextlib.suppress(OSError):
            self._files._save_data(self._name(key), (MADE_BY, key, data))

    def load(self, key: Any) -> Any:
        """What was kept under ``key``; None where there is nothing, or what is there is something else, or torn."""
        try:
            made_by, kept, data = self._files._load_data(self._name(key))
        except Exception:  # pickle raises nearly anything for a file that is torn
            return None
        return data if (made_by, kept) == (MADE_BY, key) else None

    def flush(self) -> None:
        """Nothing is listed, so nothing is to be forgotten."""

    def _name(self, key: Any) -> str:
        digest = hashlib.sha256(repr((MADE_BY, key)).encode()).digest()
        return str(self._files._data_name(int.from_bytes(digest[:12])))
