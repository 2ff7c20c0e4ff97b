"""What an engine owes: the driver advances chains chunk by chunk through it, on processors or on a device."""

from concurrent.futures import Executor
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from ..schedules import Factors
from .state import Block, Outputs

if TYPE_CHECKING:
    from .job import Job


class Engine(Protocol):
    """The compiled steps of one run, with its parts, numbers and state.

    Every random number is a function of seed, chain, replica, step and purpose alone. Results therefore depend neither
    on threads nor on how chains are split into blocks and steps into chunks.

    Attributes
    ----------
    threads : int
        Threads on which blocks advance; accumulators on the host use as many.
    counts_by_chunk : bool
        Whether the driver copies counts after each chunk, since an interrupted chunk changes them. False where a
        chunk is never interrupted, and counts are read from ``blocks`` when somebody asks.
    may_have_diverged : bool
        False only where the engine knows that no lane has diverged, so that the driver need not look.
    """

    threads: int
    counts_by_chunk: bool
    may_have_diverged: bool

    @property
    def blocks(self) -> list[Block]:
        """The chains' state after the last ``run``, on the host. What is written into it counts from the next one."""

    @property
    def made_with(self) -> dict[str, str]:
        """Entries of ``run.made_with`` besides those of every run: which engine, on which device."""

    def run(
        self, pool: Executor | None, first: int, factors: Factors, slots: NDArray[np.int64],
        trace_slots: NDArray[np.int64], outputs: Outputs,
    ) -> None:  # fmt: skip
        """Advance all chains by ``slots.size`` steps.

        Parameters
        ----------
        pool : Executor, optional
            Threads to run on; None: this one.
        first : int
            The first step.
        factors : Factors
            Step size and temperature of each step, as factors (steps,).
        slots, trace_slots : ndarray of int64, shape (steps,)
            Where in ``outputs`` a step's draws and traces go; −1: nowhere.
        outputs : Outputs
            Arrays of all chains, which are filled.
        """

    def fetch_accumulated(self) -> None:
        """Bring the accumulators' states to the host."""

    def with_problem(self, job: "Job") -> Self:
        """An engine that goes on from the present state on the problem of ``job``; this one stays as it is."""

    def close(self) -> None:
        """Stop work in the background. The state can still be read."""
