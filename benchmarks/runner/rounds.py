"""Runs that are timed: how long they are, on which core, and rounds in which all that is compared runs once."""

import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


def wall(call: Callable[[], object]) -> float:
    """Wall time of one call, in seconds."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def processor_seconds(call: Callable[[], object]) -> float:
    """Processor time of one call."""
    started = time.process_time()
    call()
    return time.process_time() - started


def interleaved(rounds: int, timed: dict[str, Callable[[], float]]) -> dict[str, list[float]]:
    """What each of ``timed`` returns once a round, each round beginning with another of them."""
    seen: dict[str, list[float]] = {name: [] for name in timed}
    names = list(timed)
    for k in range(rounds):
        turn = k % len(names)
        for name in names[turn:] + names[:turn]:
            seen[name].append(timed[name]())
    return seen


def steps_for(took: Callable[[int], float], seconds: float, most: int, first: int = 16, unit: int = 1) -> int:
    """How many steps, a multiple of ``unit``, take about ``seconds``; at most ``most``. took: (steps) → seconds."""
    n_steps = min(first, most)
    while (last := took(n_steps)) < 0.4 * seconds and n_steps < most:
        more = min(16.0, max(2.0, 0.8 * seconds / max(last, 1e-6)))
        n_steps = min(most, unit * math.ceil(n_steps * more / unit))
    return n_steps


@contextmanager
def one_core() -> Iterator[int]:
    """Bind this process to one core, whose number it gives, till the end."""
    if not hasattr(os, "sched_getaffinity"):
        yield 0
        return
    before = os.sched_getaffinity(0)
    core = min(before)
    os.sched_setaffinity(0, {core})
    try:
        yield core
    finally:
        os.sched_setaffinity(0, before)
