"""Scripts side by side, each in a child process; what is said of them comes in the scripts' order."""

import contextlib
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

from toolkit._compiler import available_threads
from toolkit.errors import available_memory

MOST_MEMORY = 2**31  # bytes that a script takes at most
BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
PATIENCE = 5.0  # seconds for a child to remove its partial files before it is killed
SPAWN = multiprocessing.get_context("spawn")  # a fork of a process with threads, or a CUDA device, may hang

Work = Callable[[str], str]


class Outcome(NamedTuple):
    """What became of a script. text: its line, or a traceback. error: the exception in one line; empty: none."""

    text: str
    error: str
    printed: str  # by the script, and its warnings


def default_jobs() -> int:
    """As many scripts at a time as there are cores, and memory for."""
    return max(1, min(available_threads(), available_memory() // MOST_MEMORY))


def outcome_of(work: Work, name: str) -> Outcome:
    """What ``work`` does with a script."""
    try:
        return Outcome(work(name), "", "")
    except Exception as error:
        summary = " ".join(traceback.format_exception_only(error)[-1].split())
        return Outcome(f"{name} failed\n{traceback.format_exc()}", summary, "")


def run_side_by_side(
    work: Work,
    shared: Sequence[str],
    alone: Sequence[str],
    jobs: int,
    begins: Callable[[str], None],
    ends: Callable[[str, Outcome], None],
) -> None:
    """Do ``work`` for all scripts: up to ``jobs`` of the ``shared`` ones at a time, then those ``alone`` one by one.

    ``begins`` is called as they begin, and ``ends`` in the same order, so that a script that ends before one that has
    begun earlier waits for its turn. work: a function that can be pickled. A script whose process dies has failed. The
    children share the cores, each with as many threads of BLAS, and see no Ctrl-C; when this function is left, however
    that may be, none runs any longer.
    """
    order, waiting, outcomes = deque((*shared, *alone)), deque((*shared, *alone)), dict[str, Outcome]()
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    jobs = min(jobs, max(1, len(shared)))
    free: list[Child | None] = [None] * jobs
    slots, running = list(range(jobs)), dict[Connection, tuple[int, str, Child]]()
    threads = max(1, available_threads() // jobs)
    try:
        while order:
            while waiting and slots and (not running or waiting[0] not in alone):
                slot, name = slots.pop(0), waiting.popleft()
                child = free[slot] or Child(work, threads)
                free[slot] = child
                begins(name)
                with contextlib.suppress(OSError):  # of a process that has died, which is seen below
                    child.pipe.send((name, cores if name in alone else cores[slot::jobs]))
                running[child.pipe] = slot, name, child
            ready = wait(list(running))
            for pipe in [own for own in running if own in ready]:
                slot, name, child = running.pop(pipe)
                try:
                    outcomes[name] = child.pipe.recv()
                except (EOFError, OSError):
                    end_all([child])
                    free[slot] = None
                    why = f"its process ended with exit status {child.process.exitcode}"
                    outcomes[name] = Outcome(f"{name} failed: {why}\n", why, "")
                slots = sorted([*slots, slot])
            while order and order[0] in outcomes:
                name = order.popleft()
                ends(name, outcomes.pop(name))
    finally:
        with ctrl_c_held():
            end_all([child for child in free if child is not None])


class Child:
    """A process that does one script after another."""

    def __init__(self, work: Work, threads: int) -> None:
        self.pipe, theirs = SPAWN.Pipe()
        self.process = SPAWN.Process(target=serve, args=(theirs, work))
        with ctrl_c_held(), environment_with(dict.fromkeys(BLAS_THREADS, str(threads))):
            self.process.start()  # which inherits that Ctrl-C is held, and the environment
        theirs.close()


def end_all(children: Sequence[Child]) -> None:
    """End children, by force those that have not ended after some seconds."""
    for child in children:
        child.process.terminate()
    last = time.monotonic() + PATIENCE
    for child in children:
        child.process.join(max(0.0, last - time.monotonic()))
        child.process.kill()
        child.process.join()
        child.pipe.close()


@contextlib.contextmanager
def ctrl_c_held() -> Iterator[None]:
    """Have a Ctrl-C wait for the end of the block; not on Windows."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def environment_with(values: dict[str, str]) -> Iterator[None]:
    """Have these variables in the environment, where it does not have them."""
    new = values.keys() - os.environ.keys()
    os.environ.update({name: values[name] for name in new})
    try:
        yield
    finally:
        for name in new:
            del os.environ[name]


# In a child.


def serve(pipe: Connection, work: Work) -> None:
    """Do ``work`` for the names that come through ``pipe``, until it is closed or this process is to end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    signal.signal(signal.SIGTERM, leave)
    threading.Thread(target=exit_with_parent, daemon=True).start()
    with tempfile.TemporaryFile() as file, contextlib.suppress(EOFError):
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        for number in (1, 2):
            os.dup2(file.fileno(), number)
        while True:
            name, cores = pipe.recv()
            if cores:
                os.sched_setaffinity(0, cores)
            outcome = outcome_of(work, name)
            pipe.send(outcome._replace(printed=text_of(file)))


def leave(*signal_and_frame: Any) -> None:
    """Leave by an exception, so that partial files are removed."""
    sys.exit(1)


def text_of(file: Any) -> str:
    """What has been printed into ``file``, which is emptied."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    file.seek(0)
    text = file.read().decode(errors="replace")
    file.seek(0)
    file.truncate()
    return str(text)


def exit_with_parent() -> None:
    """Exit when the parent has gone without ending this process."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
