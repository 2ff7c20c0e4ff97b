"""Checks that stop when the time of a search is up."""

import contextlib
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from ..arrays import Array
from .laplace import Evaluate

Result = TypeVar("Result")


def timed(evaluate: Evaluate, check_time: Callable[[], None]) -> Evaluate:
    """``evaluate`` that calls ``check_time`` first, which raises TimeoutError where the time is up."""

    def evaluated(points: Array) -> tuple[Array, Array]:
        check_time()
        return evaluate(points)

    return evaluated


class TimeLeft:
    """Runs checks until the time is up, and remembers those that it cut short or left out.

    count: counts evaluations, and raises TimeoutError where the time is up.
    """

    def __init__(self, count: Callable[[Array], None]) -> None:
        self.count = count
        self.left_out: list[str] = []

    def check(self) -> None:
        """Raise TimeoutError where the time is up."""
        self.count(np.zeros(0))

    @property
    def is_up(self) -> bool:
        """Whether the time is up."""
        try:
            self.check()
        except TimeoutError:
            return True
        return False

    def run(self, what: str, call: Callable[[], Result], otherwise: Result) -> Result:
        """What ``call()`` returns, or ``otherwise`` where the time is up before it ends.

        A check that ends with what it has when the time is up counts as cut short.
        """
        found = otherwise
        if not self.is_up:
            with contextlib.suppress(TimeoutError):
                found = call()
        if self.is_up:
            self.left_out.append(what)
        return found

    def words(self, time_limit: float) -> list[str]:
        """Which checks were cut short or left out, and what to do; nothing where none was."""
        if not self.left_out:
            return []
        which = ", ".join(dict.fromkeys(self.left_out))
        return [
            f"time_limit = {time_limit:g} s was up before these had ended: {which}. What had been found by then is "
            "kept, and is not checked further. Give a larger time_limit"
        ]
