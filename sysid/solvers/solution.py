"""The result of a solver: states, and the status of every lane."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array, Integers
from ..systems.system import System
from .adaptive import DONE

STATUS_WORDS = ("done", "blew up", "step limit", "step too small (stiff or singular)")


@dataclass(frozen=True, eq=False)
class Solution:
    """States of a system at some times, for each lane: one set of parameters with one start.

    times: (n,). states: (lanes, n, dim), or (n, dim) of one lane; nan after ``reached``, and there only. status:
    (lanes,) 0 done, 1 blew up, 2 step limit, 3 step too small: stiff or singular (``STATUS_WORDS``). reached: (lanes,)
    the last time whose state is there. steps: (lanes,) tried, those rejected included.
    """

    system: System
    times: Array
    states: NDArray[Any]
    status: Integers
    reached: Array
    steps: Integers

    def __repr__(self) -> str:
        """Its size, and how many lanes are done."""
        return f"<Solution of {self.system.name!r}: {self.n_done} of {self.status.size} done, {self.times.size} times>"

    @property
    def n_done(self) -> int:
        """Number of lanes that reached the last time."""
        return int((self.status == DONE).sum())

    def check(self) -> "Solution":
        """Itself. Raises ArithmeticError where a lane is not done, naming the first, its status and where it ended."""
        bad = np.flatnonzero(self.status != DONE)
        if bad.size:
            k = int(bad[0])
            word = STATUS_WORDS[int(self.status[k])]
            raise ArithmeticError(
                f"{self.system.name} was not solved in {bad.size} of {self.status.size} lanes; lane {k}: {word} after "
                f"t = {self.reached[k]:.6g} and {self.steps[k]} steps"
            )
        return self
