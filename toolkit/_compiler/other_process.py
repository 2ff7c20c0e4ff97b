"""Other processes that compile: a Python that imports the toolkit and installed packages alone, never a user's script.

Each is killed when it is closed, and at the latest when the interpreter exits; a thread inside LLVM could not be.
"""

import atexit
import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, ClassVar

from numba import config

from ..errors import package_root
from .disk_cache import available_threads

PATIENCE = 1.0  # seconds to wait for the last lines of a process that is killed; others may hold their file open
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
# On Windows; elsewhere the process lowers its priority itself.
IN_BACKGROUND = getattr(subprocess, "IDLE_PRIORITY_CLASS", 0)


def program(module: str, answer: str, *, in_background: bool) -> str:
    """The program of a process that calls ``module.answer`` with this process's number.

    The toolkit's folder stands behind Python's own modules and before installed packages.
    """
    return f"""
import os, sys
if {in_background} and hasattr(os, "nice"):
    os.nice(10)
place = next((i for i, path in enumerate(sys.path) if path.endswith("-packages")), len(sys.path))
sys.path.insert(place, sys.argv[1])
from {module} import {answer}
{answer}(int(sys.argv[2]))
"""


class OtherProcess:
    """A process that runs a ``program``, gets ``request`` on stdin, and writes its answer to a file without a name.

    lines: a list to which the lines that it writes are added as they come, in place of the file.
    """

    is_this_process = False
    _running: ClassVar["set[OtherProcess]"] = set()

    def __init__(self, program: str, request: bytes, *, in_background: bool, lines: list[str] | None = None) -> None:
        self._answer = None if lines is not None else tempfile.TemporaryFile()  # noqa: SIM115 - closed by ``close``
        self._reader: threading.Thread | None = None
        flags = getattr(subprocess, "CREATE_NO_WINDOW", 0) | (IN_BACKGROUND if in_background else 0)
        folder = {"NUMBA_CACHE_DIR": config.CACHE_DIR} if config.CACHE_DIR else {}
        with tempfile.TemporaryFile() as question:
            question.write(request)
            question.seek(0)
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", program, str(package_root(__name__).parent), str(os.getpid())],
                stdin=question, stdout=self._answer or subprocess.PIPE, stderr=subprocess.DEVNULL,
                env=os.environ | ONE_THREAD | folder, creationflags=flags,
            )  # fmt: skip
        self._running.add(self)
        if lines is not None:
            self._reader = threading.Thread(target=read_lines, args=(self._process.stdout, lines), daemon=True)
            self._reader.start()

    @classmethod
    def is_any_running(cls) -> bool:
        """Whether this process has started another that is not closed."""
        return bool(cls._running)

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def answer(self) -> bytes:
        """What it has written to the file; it must have ended, as both share the place in the file."""
        assert self._answer is not None
        self._answer.seek(0)
        return self._answer.read()

    def close(self) -> None:
        """Kill it, and wait for that."""
        self._process.kill()
        self._process.wait()
        if self._answer is not None:
            self._answer.close()
        if self._reader is not None:
            self._reader.join(PATIENCE)
        self._running.discard(self)

    @classmethod
    def close_all(cls) -> None:
        """Kill all."""
        for process in list(cls._running):
            process.close()


atexit.register(OtherProcess.close_all)


def read_lines(source: BinaryIO, lines: list[str]) -> None:
    """Add each line of ``source`` to ``lines`` as it comes, until its end."""
    with source:
        for line in source:
            lines.append(line.decode().rstrip())


def has_idle_core(threads: int) -> bool:
    """Whether a core is idle beside a run of so many threads, by the machine's load of the last minute if known."""
    cores = available_threads()
    try:
        load = os.getloadavg()[0] * cores / (os.cpu_count() or cores)  # about that of the cores of this process
    except (AttributeError, OSError):
        load = 0.0
    return max(threads, load) <= cores - 0.5


def may_start_processes() -> bool:
    """Whether a Python can be started beside this one, which is itself no worker of a pool or cluster."""
    multiprocessing = sys.modules.get("multiprocessing.process")  # imported in every process that it has started
    is_worker = multiprocessing is not None and multiprocessing.parent_process() is not None
    is_python = "python" in Path(sys.executable or "").stem.lower() and not getattr(sys, "frozen", False)
    return is_python and not is_worker and not OtherProcess.is_this_process


@contextlib.contextmanager
def answering(parent: int) -> Iterator[BinaryIO]:
    """In the other process: its output, a binary file; what modules print goes nowhere. parent: who has asked."""
    OtherProcess.is_this_process = True
    with os.fdopen(os.dup(1), "wb") as output, open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 1)  # for what modules print when they are imported
        with contextlib.suppress(OSError):  # where memory is short, Linux is to end this process, not its parent
            Path("/proc/self/oom_score_adj").write_text("1000")
        if os.name == "posix":
            threading.Thread(target=exit_after, args=(parent,), daemon=True).start()
        yield output


def exit_after(parent: int) -> None:
    """Exit soon after the parent has ended without killing this process; not on Windows, which has no sign of that."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)
