"""What one run was asked for, and what follows from it: its chunks, kept steps and room."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .accumulators import Accumulator
from .blocks import Layout
from .gathering import Gathers
from .problem import Problem, Spread
from .recording import STATISTICS, TRACED, TRACED_COUPLING
from .sampler import Sampler
from .schedule import Factors, evaluate
from .starts import drawn_starts
from .state import Outputs
from .tempering import ContinuousTempering, Contour

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

FEWEST_STEPS = 16  # of a chunk
MOST_FLOATS = 2**25  # of the draws of a chunk
PILOT_CHAINS = 32


class Paths(NamedTuple):
    """The files of one checkpoint: the state, the state before, the one being written, and the journal of draws."""

    state: str
    previous: str
    writing: str
    journal: str


@dataclass(frozen=True, eq=False)
class Job:
    """What ``sample`` and ``stream`` were asked for, checked and complete."""

    problem: Problem
    sampler: Sampler
    n_steps: int
    seed: int
    burn_in: int
    thin: int
    init: Floats  # (chain, replica, dim)
    threads: int
    layout: Layout
    keep_replicas: bool
    keep_energies: bool
    keep_statistics: bool  # where there is replica exchange or a boundary
    trace_every: int | None
    accumulators: dict[str, Accumulator]
    checkpoint: Paths | None
    checkpoint_every: float  # seconds
    asked: Sampler  # as it was given, where a pilot has found its partition since
    pilot_gradients: int  # gradient evaluations of that pilot
    backend: str
    dtype: str  # of what the engine computes with; draws are float64 always
    spread: Spread | None  # what ``init`` was drawn from, where that was stated
    drew_init: bool

    @property
    def pilot_init(self) -> Floats:
        """Starts (chain, replica, dim) of the pilot that finds contour's partition: the same for any number of chains.

        Those given, or, where they were drawn, those of the first replica of so many chains as the pilot has.
        """
        if not self.drew_init:
            return self.init
        return drawn_starts(self.problem, self.spread, self.seed, PILOT_CHAINS, 1)

    @property
    def n_kept(self) -> int:
        """Replicas whose draws are kept."""
        return self.sampler.n_replicas if self.keep_replicas else self.sampler.n_target_replicas

    @property
    def records_energies(self) -> bool:
        """Whether the engine fills in the draws' energies, for the run or for an accumulator."""
        return self.keep_energies or any(accumulator.needs_energies for accumulator in self.accumulators.values())

    @property
    def trace_fields(self) -> list[str]:
        """What a trace records for every replica."""
        rows = self.sampler.dynamics.memory_rows(self.problem.target.dim)
        memory = [name for name, _ in rows if not name.startswith("_")]
        coupled = isinstance(self.sampler.tempering, ContinuousTempering)
        return [*TRACED, *memory, *(TRACED_COUPLING if coupled else ())]

    @property
    def calls_python(self) -> bool:
        """Whether the target is a Python function of the user's."""
        return self.problem.target.callback is not None

    @property
    def chunk_length(self) -> int:
        """Steps of the first chunk."""
        if self.layout.chunk_steps is not None:
            return self.layout.chunk_steps
        if self.calls_python:
            return FEWEST_STEPS  # it may take a second for each
        n_chains, n_replicas, dim = self.init.shape
        most = int(np.clip(MOST_FLOATS * self.thin // (n_chains * self.n_kept * dim), FEWEST_STEPS, 2**16))
        # A block's turn costs some 50 µs besides its steps, so these must not be too few.
        return int(np.clip(2**21 // (n_chains * n_replicas), min(128, most), most))

    def chunks(self, done: int = 0) -> Iterator[tuple[int, int]]:
        """First and last step (exclusive) of the chunks of a stream after ``done`` steps, all of one length."""
        length = self.chunk_length
        for first in range(done, self.n_steps, length):
            yield first, min(first + length, self.n_steps)

    def plan(self, first: int, last: int) -> tuple[Factors, Integers]:
        """The schedule's factors of a chunk's steps, and those of its steps whose draw is kept."""
        factors = evaluate(self.sampler.schedule, np.arange(first, last), self.n_steps)
        start = max(first, self.burn_in)
        due = np.arange(start + (self.burn_in - 1 - start) % self.thin, last, self.thin)
        return factors, due[factors.keep[due - first]]

    def kept_pieces(self) -> Iterator[Integers]:
        """The steps whose draw is kept, in pieces none of which is empty. Raises ValueError where there are none."""
        length, found = 1 << 16, False
        for first in range(self.burn_in, self.n_steps, length):
            steps = self.plan(first, min(first + length, self.n_steps))[1]
            if steps.size:
                found = True
                yield steps
        if not found:
            raise ValueError(
                f"schedule {self.sampler.schedule.name} keeps none of the draws asked for by n_steps={self.n_steps}, "
                f"burn_in={self.burn_in}, thin={self.thin}"
            )

    def kept_steps(self) -> Integers:
        """All steps whose draw is kept. Raises ValueError where there are none."""
        if self.sampler.schedule.keeps_all:
            return np.arange(self.burn_in + self.thin - 1, self.n_steps, self.thin)
        return np.concatenate(list(self.kept_pieces()))

    def counts_before(self, step: int) -> tuple[int, int]:
        """Draws that are kept of the steps before ``step``, and moments of the trace."""
        if self.sampler.schedule.keeps_all:
            kept = max(0, step - self.burn_in) // self.thin
        else:
            length = 1 << 20
            kept = sum(self.plan(first, min(first + length, step))[1].size for first in range(0, step, length))
        return kept, step // self.trace_every if self.trace_every else 0

    def traced(self, first: int, last: int) -> Integers:
        """The steps from ``first`` to ``last`` (exclusive) after which the trace is recorded."""
        every = self.trace_every
        return np.arange(first + (-first - 1) % every, last, every) if every else np.zeros(0, np.int64)

    def room_of_chunk(self, first: int, last: int, outputs: Outputs) -> Outputs:
        """Room for the draws of one chunk alone, beside the trace of ``outputs``."""
        room = self.room(self.plan(first, last)[1].size, 0)
        return room._replace(trace=outputs.trace, theta=outputs.theta)

    def room(self, n_draws: int, n_traced: int) -> Outputs:
        """Arrays for ``n_draws`` draws and what is kept beside them, and for ``n_traced`` moments of the trace."""
        n_chains, n_replicas, dim = self.init.shape
        shape, tempering = (n_chains, self.n_kept), self.sampler.tempering
        bins = tempering.partition.n_bins if isinstance(tempering, Contour) and tempering.partition else 0
        return Outputs(
            draws=np.empty((*shape, n_draws, dim)),
            energies=np.empty((*shape, n_draws if self.records_energies else 0)),
            weights=np.empty((*shape, n_draws if self.sampler.is_weighted else 0)),
            statistics=np.empty((*shape, n_draws if self.keep_statistics else 0, len(STATISTICS)), np.int32),
            trace=np.empty((n_chains, n_replicas, n_traced, len(self.trace_fields))),
            theta=np.empty((n_chains, n_traced, bins)),
        )


LONGEST_NAME, LONGEST_PATH = 240, 2000  # what file systems take, less the ends of the names of the files beside it


def check_checkpoint(path: Any) -> Paths | None:
    """The files for a checkpoint at ``path``; None for None. Raises TypeError or ValueError where it cannot be one."""
    if path is None:
        return None
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        raise TypeError(f"checkpoint must be None or the path of a file, got {path!r} of type {type(path).__name__}")
    given = os.fspath(path)
    if not given or "\0" in given:
        raise ValueError(f"checkpoint must be the path of a file, got {given!r}")
    if len(os.fsencode(given)) > LONGEST_PATH or len(os.fsencode(os.path.basename(given))) > LONGEST_NAME:
        raise ValueError(
            f"checkpoint must be the path of a file, of at most {LONGEST_NAME} bytes in its name and {LONGEST_PATH} in "
            f"all, got {given!r:.80}…"
        )
    whole = os.path.realpath(given)
    if not os.path.isdir(os.path.dirname(whole)):
        raise ValueError(f"checkpoint must lie in a folder that exists, got {given!r}, and there is no such folder")
    paths = Paths(whole, f"{whole}.previous", f"{whole}.writing", f"{whole}.draws")
    for name in paths:
        if os.path.isdir(given) or given.endswith(os.sep) or (os.path.lexists(name) and not os.path.isfile(name)):
            raise ValueError(f"checkpoint must be the path of a file, got {given!r}, and {name!r} is none")
    return paths


def names_on_device(job: Job) -> list[str]:
    """Names of the accumulators that take in draws where a device writes them."""
    if job.backend == "cpu":
        return []
    return [name for name, accumulator in job.accumulators.items() if isinstance(accumulator, Gathers)]


def brings_draws(job: Job, keep_draws: bool) -> bool:
    """Whether draws leave the engine: to be kept, or for an accumulator on the host."""
    return keep_draws or job.backend == "cpu" or len(names_on_device(job)) < len(job.accumulators)
