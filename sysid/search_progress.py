"""How far a search for start values has come: a line on stderr, and an end to it after a time."""

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
TIME_LIMIT = 600.0  # s


class SearchProgress:
    """Evaluations of a search, and the seconds since the first ended.

    wanted: a line on stderr; None: only on a terminal. time_limit: seconds, > 0.
    """

    def __init__(self, wanted: bool | None = False, time_limit: float = TIME_LIMIT) -> None:
        self._wanted = wanted is True or (wanted is None and sys.stderr is not None and sys.stderr.isatty())
        self._time_limit, self._began = time_limit, math.inf
        self._bar: Any = None
        self._evaluations, self._lowest = 0, math.inf
        self._stage = ""

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the line, where it is wanted, and take it away at the end."""
        if self._wanted:
            from tqdm import tqdm

            self._bar = tqdm(desc="start values", unit=" evaluations", leave=False)
        try:
            yield
        finally:
            if self._bar is not None:
                self._bar.close()

    def enter(self, stage: str) -> None:
        """Begin a stage of the search, in words; its lowest energy is not comparable with that of another."""
        self._stage, self._lowest = stage, math.inf
        if self._bar is not None:
            self._bar.set_description_str(f"start values, {stage}")

    def count(self, energies: Array) -> None:
        """Count evaluations with ``energies`` (n,). Raises TimeoutError, with how far it has come, after the limit."""
        now = time.perf_counter()
        self._began = min(self._began, now)
        self._evaluations += len(energies)
        finite = energies[np.isfinite(energies)]
        self._lowest = min(self._lowest, *finite.tolist(), math.inf)
        if self._bar is not None:
            self._bar.set_postfix_str(f"lowest energy {self._lowest:.6g}", refresh=False)
            self._bar.update(len(energies))
        if now - self._began > self._time_limit:
            found = f"the lowest energy is {self._lowest:.6g}" if self._lowest < math.inf else "no energy is finite yet"
            raise TimeoutError(
                f"the search for start values has not ended within time_limit = {self._time_limit:g} s, after "
                f"{self._evaluations} evaluations: it is in {self._stage}, where {found}. Give a larger time_limit, "
                "or a System with usual parameters nearer to the data's, or a longer step, segments, or fewer data"
            )
