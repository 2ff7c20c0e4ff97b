"""Compile parts in two processes: this one, and another that writes them to disk, where this one finds them."""

import pickle
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import Any, NamedTuple

from .decorators import compile_part, is_compiled, is_kept
from .lowering import import_by_name, is_found_by_name
from .numba_private import Signature, dumps
from .other_process import OtherProcess, answering, has_idle_core, may_start_processes, program

LEAST = 3  # parts to compile, from which on another process is worth its start, a second of a core
LOOKS_EVERY = 0.01  # seconds between two looks at the other process


class Wanted(NamedTuple):
    """A part, as ``compile_part`` takes it; ``is_packed``: as the engine calls it, and not Python."""

    function: Callable[..., Any]
    signature: Signature
    is_packed: bool = True

    @property
    def options(self) -> dict[str, bool]:
        """Those of ``compile_part``."""
        return {"packed": True, "from_python": False} if self.is_packed else {}


def compile_parts(parts: list[Wanted], *, may_start: bool = True) -> list[Any]:
    """The parts, compiled. Those that take longest come first: the first is compiled in this process.

    Another process begins with the second, and this one takes the last ones meanwhile. may_start: whether there may be
    another process.
    """
    missing = [part for part in parts if not is_compiled(part.function, part.signature, **part.options)]
    with start_beside(missing[1:]) if may_start else nullcontext() as beside:
        if missing:
            compiled(missing[0])
        rest = missing[1:]
        while beside is not None and (left := [part for part in rest if not beside.has_begun(part)]):
            compiled(left[-1])
            rest.remove(left[-1])
        for part in rest:
            if beside is not None and not beside.wait_for(part):
                beside = None  # what it writes is not found here
            compiled(part)
    return [compiled(part) for part in parts]


def start_beside(parts: list[Wanted]) -> "Beside | nullcontext[None]":
    """Another process that compiles those of ``parts`` that it can; a context of None where there is to be none."""
    sent = [part for part in parts if is_found_by_name(part.function) and is_kept(part.function, **part.options)]
    if len(sent) + 1 >= LEAST and may_start_processes() and has_idle_core(1) and not OtherProcess.is_any_running():
        with suppress(OSError, RuntimeError):  # no interpreter, file, process or thread to be had
            return Beside(sent)
    return nullcontext()


def compiled(part: Wanted) -> Any:
    """The part, compiled or loaded from disk."""
    return compile_part(part.function, part.signature, **part.options)


class Beside:
    """Another process that compiles parts to disk, one after the other, until the ``with`` block ends."""

    def __init__(self, parts: list[Wanted]) -> None:
        self._parts, self._lines = parts, list[str]()
        names = [(part.function.__module__, part.function.__qualname__) for part in parts]
        request = dumps([(*name, *part[1:]) for name, part in zip(names, parts, strict=True)])
        self._process = OtherProcess(PROGRAM, request, in_background=False, lines=self._lines)

    def __enter__(self) -> "Beside":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.close()

    def _has_said(self, word: str, part: Wanted) -> bool:
        return part in self._parts and f"{word} {self._parts.index(part)}" in self._lines

    def has_begun(self, part: Wanted) -> bool:
        """Whether it compiles or has compiled a part."""
        return self._process.is_running() and self._has_said("begin", part)

    def wait_for(self, part: Wanted) -> bool:
        """Wait until a part is compiled, or never will be; return whether it is on disk."""
        while self._process.is_running() and self._has_said("begin", part) and not self._has_said("end", part):
            time.sleep(LOOKS_EVERY)
        return is_compiled(part.function, part.signature, **part.options)


PROGRAM = program(__name__, "answer", in_background=False)


def answer(parent: int) -> None:
    """In the other process: compile the parts asked for on stdin. parent: who has asked."""
    with answering(parent) as output:
        for number, (module, name, *rest) in enumerate(pickle.load(sys.stdin.buffer)):
            output.write(f"begin {number}\n".encode())
            output.flush()
            compiled(Wanted(import_by_name(module, name), *rest))
            output.write(f"end {number}\n".encode())
            output.flush()
