"""How much is measured, and rounds in which everything that is compared runs once."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple


class Plan(NamedTuple):
    """rounds: how often all that is compared runs. seconds: of one timed run, about. folder: of tables; None: none.

    is_small: few rows, to see that all works.
    """

    rounds: int
    seconds: float
    folder: Path | None
    is_small: bool


def wall(call: Callable[[], object]) -> float:
    """Wall time of one call, in seconds."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def interleaved(rounds: int, timed: dict[str, Callable[[], float]]) -> dict[str, list[float]]:
    """What each of ``timed`` returns once a round, each round beginning with another of them."""
    seen: dict[str, list[float]] = {name: [] for name in timed}
    names = list(timed)
    for k in range(rounds):
        turn = k % len(names)
        for name in names[turn:] + names[:turn]:
            seen[name].append(timed[name]())
    return seen


def repeats_for(call: Callable[[int], float], seconds: float, most: int, first: int = 16) -> int:
    """How many steps take about ``seconds``; call: (steps) → seconds."""
    n_steps = min(first, most)
    while (took := call(n_steps)) < 0.3 * seconds and n_steps < most:
        n_steps = int(min(most, n_steps * min(16.0, max(2.0, 0.6 * seconds / max(took, 1e-6)))))
    return n_steps
