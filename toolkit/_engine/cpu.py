"""The engine on the CPU: the compiled parts, numbers and blocks of one run, and the threads that advance them."""

import functools
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._compiler.beside import Wanted, compile_parts
from .._compiler.block_rows import NOISY_ENERGY
from .._compiler.decorators import NO_PART, PartPointer, part_pointer
from ..boundaries.convex import everywhere_inside, no_domain
from ..dynamics.interface import check_move
from ..dynamics.metropolis import no_move
from ..schedules import Factors
from ..tempering.interface import no_tempering
from .fused import can_be_fused, fused_engines, specifications
from .loop import advance
from .phases import no_calling_phase, no_phase
from .settings import engine_numbers, parts_of, tempering_parameters
from .state import (
    ADVANCE,
    PARTS,
    Block,
    Constants,
    Outputs,
    State,
    Steps,
    make_blocks,
    own_scratch,
    with_scratch,
    with_target,
)
from .tiers import Engines, Tiers, known_engines

if TYPE_CHECKING:
    from .job import Job

Task = tuple[Block, Callable[..., None]]  # a block and its engine


class CpuEngine:
    """The compiled engine with one run's parts and numbers, ready to advance its blocks.

    blocks: those of a run under way; None: of the job's start. last: that run's engine so far.
    """

    counts_by_chunk = True  # a chunk may be interrupted, so the counts before it are kept
    may_have_diverged = True

    def __init__(self, job: "Job", blocks: list[Block] | None = None, last: "CpuEngine | None" = None) -> None:
        problem, sampler = job.problem, job.sampler
        self._callback = None if problem.target.callback is None else problem.target.callback.for_run()
        domain = problem.domain or no_domain(problem.target.dim)
        self._numbers = engine_numbers(job)
        self._constants = Constants(
            self._numbers,
            problem.target.parameters if self._callback is None else self._callback.parameters,
            np.array(sampler.dynamics.parameters, np.float64),
            tempering_parameters(job),
            domain.float_table,
            domain.int_table,
        )
        self.blocks = (
            make_blocks(problem, sampler, job.init, job.layout, job.threads, job.keys) if blocks is None else blocks
        )
        self.threads = min(job.threads, len(self.blocks))
        self._scratch: list[dict[int, State]] = [{} for _ in range(self.threads)]  # by lanes, of each thread
        self._general: GeneralEngine | None = None
        self._tiers: Tiers | None = None
        self._fused_from: int | None = 0  # the first step of fused engines; None: there are none
        engines = self._fused_engines(job)
        if engines is None:
            self._fused_from = None
            self._general = general_engine(job, None if last is None else last._general)
            engines = {block.last - block.first: self._general.advance for block in self.blocks}
        self._engines = engines

    def _fused_engines(self, job: "Job") -> Engines | None:
        """The fused engines, where the run begins with them; else it may go on with them, by ``self._tiers``."""
        if job.layout.fused is False or not can_be_fused(job):
            return None
        if job.layout.fused:
            return fused_engines(job, self.blocks, self._numbers)
        engines = known_engines(job, self.blocks, self._numbers)
        if engines is None:
            wanted = functools.partial(specifications, job, self.blocks, self._numbers)
            self._tiers = Tiers(job, wanted, self.threads)
        return engines

    @property
    def made_with(self) -> dict[str, str]:
        """Entries besides those of every run: which engine it has, and from which step on."""
        if self._fused_from is None:
            return {"engine": "general"}
        return {"engine": f"general, fused from step {self._fused_from}" if self._fused_from else "fused"}

    def close(self) -> None:
        """Compile no fused engine any more."""
        if self._tiers is not None:
            self._tiers.close()
            self._tiers = None

    def _look_for_fused(self, step: int) -> None:
        """Go on from ``step`` with fused engines, where there are some now."""
        if self._tiers is None:
            return
        engines = self._tiers.engines(step)
        if engines is not None:
            self._engines, self._fused_from = engines, step
            self.close()

    def with_problem(self, job: "Job") -> "CpuEngine":
        """An engine that goes on with the present state on the job's problem; this one stays as it is."""
        return CpuEngine(job, [with_target(block, job.problem.target, job.seed) for block in self.blocks], self)

    def fetch_accumulated(self) -> None:
        """Does nothing: accumulators are on the host."""

    def run(
        self, pool: Executor | None, first: int, factors: Factors, slots: NDArray[np.int64],
        trace_slots: NDArray[np.int64], outputs: Outputs,
    ) -> None:  # fmt: skip
        """Advance all blocks by ``slots.size`` steps from step ``first`` on the pool's threads, or on this one.

        outputs: arrays of all chains, filled at ``slots`` and ``trace_slots``.
        """
        self._look_for_fused(first)
        started = time.perf_counter()
        queue = deque((block, self._engines[block.last - block.first]) for block in self.blocks)

        def work(thread: int) -> None:
            for block, advance_block in take_tasks(queue):
                own = outputs.of_chains(block.first, block.last)
                numbers = self._numbers._replace(n_chains=block.last - block.first)
                constants = self._constants._replace(numbers=numbers)
                steps = Steps(first, factors.step_size, factors.temperature, slots, trace_slots, own)
                advance_block(self._for_thread(block.state, thread), constants, steps)

        if pool is None:
            work(0)
        else:
            with wait_for_all(queue, self._callback) as tasks:
                tasks += [pool.submit(work, thread) for thread in range(self.threads)]
        if self._callback is not None:
            self._callback.raise_error()
        if self._tiers is not None:
            self._tiers.note(slots.size, time.perf_counter() - started)

    def _for_thread(self, state: State, thread: int) -> State:
        """``state`` with the scratch of a thread. That of the first is the one which all blocks have."""
        if thread == 0:
            return state
        lanes = state.status.size
        own = self._scratch[thread]
        if lanes not in own:
            own[lanes] = own_scratch(state)
        return with_scratch(state, own[lanes])


def present_energies(job: "Job", blocks: list[Block], step: int) -> list[NDArray[np.float64]]:
    """The energies (chain, replica) of each block before ``step``, as contour reads them: with penalty and noise.

    The engine evaluates them in no steps, which changes nothing that it would not do again in the next.
    """
    apart = [block._replace(state=own_scratch(block.state)) for block in blocks]  # the energies are in it
    engine = CpuEngine(replace(job, layout=job.layout._replace(fused=False)), apart)
    none, no_factors = np.zeros(0, np.int64), Factors(np.zeros(0), np.zeros(0), np.zeros(0, np.bool_))
    engine.run(None, step, no_factors, none, none, job.empty_outputs(0, 0))
    n_replicas, energies = job.sampler.n_replicas, []
    for block in apart:
        n_chains = block.last - block.first
        row = block.state.rows[NOISY_ENERGY, : n_chains * n_replicas]
        energies.append(row.reshape(n_replicas, n_chains).T.copy())
    return energies


class GeneralEngine(NamedTuple):
    """The engine that is compiled for all runs, with one run's parts: those that a problem brings, and the engine."""

    target: Any  # compiled
    locate: Callable[..., None]  # uncompiled
    advance: Callable[..., None]
    pointers: list[PartPointer]  # whose addresses it calls


# Parts for what a run lacks, which the engine then does not call. A user's sampler may name the first or the third:
# without a call they do as little.
NOTHING = (no_move, everywhere_inside, no_tempering, no_phase, no_calling_phase)


def general_engine(job: "Job", last: GeneralEngine | None = None) -> GeneralEngine:
    """``loop.advance``, compiled once for all runs, with this run's parts as its first argument.

    last: of the same sampler; it is returned where its parts are the same.
    """
    parts, problem = parts_of(job), job.problem
    target, domain = problem.target.compiled(), problem.domain
    if last is not None and last.target is target and last.locate is parts.locate:
        return last
    check_move(job.sampler.dynamics)
    compiled = {parts.target: target}
    if domain is not None and parts.locate is domain.locate.py_func:
        compiled[parts.locate] = domain.locate
    kinds = dict(zip(parts.functions, PARTS.types[1:], strict=True))
    longest_first = dict.fromkeys((parts.temper, parts.propose, *kinds))
    wanted = [Wanted(p, kinds[p].signature) for p in longest_first if p not in compiled and p not in NOTHING]
    run, *others = compile_parts([Wanted(advance, ADVANCE, is_packed=False), *wanted], may_start=not job.is_part)
    compiled |= {one.function: other for one, other in zip(wanted, others, strict=True)}
    pointers = {part: part_pointer(one) for part, one in compiled.items()}
    for part, pointer in pointers.items():
        if pointer.type != kinds[part]:
            raise TypeError(f"{part.__qualname__} must be compiled as {kinds[part]}, got {pointer.type}")
    addresses = [pointers[part].address if part in pointers else NO_PART for part in parts.functions]
    called = np.array([parts.tempering, *addresses], np.int64)
    return GeneralEngine(target, parts.locate, functools.partial(run, called), list(pointers.values()))


def take_tasks(queue: deque[Task]) -> Iterator[Task]:
    """Take blocks and their engines from the queue until it is empty; each goes to one thread only."""
    while True:
        try:
            task = queue.popleft()
        except IndexError:
            return
        yield task


@contextmanager
def wait_for_all(queue: deque[Task], callback: Any) -> Iterator[list[Future[None]]]:
    """Collect tasks, and exit only when all have ended, so that no thread still writes after an interruption."""
    tasks: list[Future[None]] = []
    try:
        yield tasks
        for task in tasks:
            task.result()
    except BaseException:
        if callback is not None:
            callback.stop()
        queue.clear()
        for task in tasks:
            task.exception()
        raise
