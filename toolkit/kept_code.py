"""Machine code on disk, each in a file of its own, which says what it is and holds a hash of all its bytes.

Numba numbers a function's files and keeps a list of them. Of two processes that add to the list at once one may write
over the other's file, and a process that ends between the list and the file leaves what was there before; a later one
then runs code of other types, or of another target, without a word. Nor does Numba look whether a disk gave back what
was written: one bit of machine code that is another ends the process, or changes its numbers.
"""

import contextlib
import hashlib
import hmac
import pickle
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from numba import config

MADE_BY = (
    numba.__version__, llvmlite.__version__, np.__version__, config.OPT, config.LOOP_VECTORIZE, config.SLP_VECTORIZE,
    config.BOUNDSCHECK, config.DEBUGINFO_DEFAULT,
)  # fmt: skip
HASH = hashlib.sha256
SIZE = HASH().digest_size  # bytes, with which a file begins


class KeptCode:
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
