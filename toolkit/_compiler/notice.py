"""A line that says that Numba compiles, where a person waits for it: on a terminal or in a notebook."""

import os
import sys
import threading
import time
from typing import Any

from .numba_private import event

AFTER = 2.0  # seconds of compiling in this process, then it is said, once
WORDS = "compiling: what has not run here before takes some seconds, at most a minute; it is kept on disk for next time"


def is_watched() -> bool:
    """Whether a person sees stderr: a terminal's or a notebook's, unless the variable TQDM_DISABLE has a value."""
    if os.environ.get("TQDM_DISABLE") or sys.stderr is None:
        return False
    return is_notebook() or sys.stderr.isatty()


def is_notebook() -> bool:
    """Whether this is the process of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


class CompileNotice(event.Listener):  # type: ignore[misc]
    """Says ``WORDS`` on stderr once ``AFTER`` seconds have been spent in compiling."""

    def __init__(self) -> None:
        self._depth, self._spent, self._started = 0, 0.0, 0.0
        self._timer: threading.Timer | None = None
        self.has_said = False

    def on_start(self, _event: Any) -> None:
        """Wait for what is left of the seconds."""
        self._depth += 1
        if self._depth == 1 and not self.has_said:
            self._started = time.perf_counter()
            self._timer = threading.Timer(max(0.0, AFTER - self._spent), self.say)
            self._timer.daemon = True
            self._timer.start()

    def on_end(self, _event: Any) -> None:
        """Wait no longer, and count the seconds."""
        self._depth -= 1
        if self._depth == 0 and self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._spent += time.perf_counter() - self._started

    def say(self) -> None:
        """Say it, where stderr is still there."""
        self.has_said = True
        if sys.stderr is not None:
            print(WORDS, file=sys.stderr, flush=True)


def give_notice() -> None:
    """Have it said in this process, where somebody watches."""
    if is_watched():
        event.register("numba:compile", CompileNotice())
