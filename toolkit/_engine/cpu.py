"""The engine on the processors of this machine: one run's compiled parts, numbers and blocks, and threads for them."""

import functools
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._compiler.decorators import PartPointer, compile_part
from .._compiler.signatures import DOMAIN
from ..boundaries.convex import no_domain
from ..schedules import Factors
from .fused import can_be_fused, fused_engines
from .loop import advance
from .settings import engine_numbers, parts_of, tempering_parameters
from .state import ADVANCE, PROPOSE, TEMPER, Block, Constants, Outputs, Steps, make_blocks

if TYPE_CHECKING:
    from .job import Job

Turn = tuple[Block, Callable[..., None]]  # of a block, and its engine


class CpuEngine:
    """The compiled engine with one run's parts and numbers, ready to advance its blocks."""

    counts_by_chunk = True  # a chunk may be broken off, so what was counted before it is kept
    may_have_diverged = True
    made_with: ClassVar[dict[str, str]] = {}  # besides what any run is made with

    def __init__(self, job: "Job") -> None:
        problem, sampler = job.problem, job.sampler
        self._callback = None if problem.target.callback is None else problem.target.callback.of_a_run()
        domain = problem.domain or no_domain(problem.target.dim)
        self._numbers = engine_numbers(job)
        self._constants = Constants(
            self._numbers,
            problem.target.parameters if self._callback is None else self._callback.parameters,
            np.array(sampler.dynamics.parameters, np.float64),
            tempering_parameters(job),
            domain.real,
            domain.whole,
        )
        self.blocks = make_blocks(problem, sampler, job.init, job.layout, job.threads)
        if job.layout.fused and can_be_fused(job):
            self._engines = fused_engines(job, self.blocks, self._numbers)
        else:
            self._engines = [general_engine(job)] * len(self.blocks)
        self.threads = min(job.threads, len(self.blocks))

    def fetch_accumulated(self) -> None:
        """Nothing is elsewhere: accumulators take in draws on the host."""

    def run(
        self, pool: Executor | None, first: int, factors: Factors, slots: NDArray[np.int64],
        trace_slots: NDArray[np.int64], outputs: Outputs,
    ) -> None:  # fmt: skip
        """Advance all blocks by ``slots.size`` steps from step ``first`` on the pool's threads, or on this one.

        outputs: arrays of all chains, filled at ``slots`` and ``trace_slots``.
        """
        waiting = deque(zip(self.blocks, self._engines, strict=True))

        def work() -> None:
            for block, advance_block in take_blocks(waiting):
                own = outputs.of_chains(block.first, block.last)
                numbers = self._numbers._replace(n_chains=block.last - block.first)
                constants = self._constants._replace(numbers=numbers)
                steps = Steps(first, factors.step_size, factors.temperature, slots, trace_slots, own)
                advance_block(block.state, constants, steps)

        if pool is None:
            work()
        else:
            with wait_for_all(waiting, self._callback) as tasks:
                tasks += [pool.submit(work) for _ in range(self.threads)]
        if self._callback is not None:
            self._callback.raise_error()


def general_engine(job: "Job") -> Callable[..., None]:
    """``loop.advance``, compiled once for all runs, less this run's parts."""
    parts, domain = parts_of(job), job.problem.domain or no_domain(job.problem.target.dim)
    temper = compile_part(parts.temper, TEMPER, packed=True, from_python=False)
    propose = compile_part(parts.propose, PROPOSE, packed=True, from_python=False)
    look = domain.look if parts.look is domain.look.py_func else compile_part(parts.look, DOMAIN, packed=True)
    compiled = (job.problem.target.compiled(), job.sampler.dynamics.compiled(), look, temper, propose)
    return functools.partial(compile_part(advance, ADVANCE), *map(PartPointer, compiled))


def take_blocks(waiting: deque[Turn]) -> Iterator[Turn]:
    """Blocks that wait for a thread, with their engines, each given to one thread alone, until there are none."""
    while True:
        try:
            turn = waiting.popleft()
        except IndexError:
            return
        yield turn


@contextmanager
def wait_for_all(waiting: deque[Turn], callback: Any) -> Iterator[list[Future[None]]]:
    """Collect tasks, and leave only when none is under way: an interruption never leaves a thread writing."""
    tasks: list[Future[None]] = []
    try:
        yield tasks
        for task in tasks:
            task.result()
    except BaseException:
        if callback is not None:
            callback.stop()
        waiting.clear()
        for task in tasks:
            task.exception()
        raise
