"""The engine on the processors of this machine: one run's compiled parts, numbers and blocks, and threads for them."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .blocks import Block, make_blocks
from .compiling import PartPointer, compile_part
from .continuous import ContinuousTempering
from .contour import Contour
from .engine import advance
from .exchange import ReplicaExchange
from .proposals import propose, propose_nothing
from .sampler import Sampler
from .schedule import Factors
from .state import ADVANCE, CONTINUOUS, CONTOUR, EXCHANGE, NO_TEMPERING, PROPOSE, STEIN, TEMPER, Numbers, Outputs
from .stein import Stein
from .tempers import TEMPERS
from .walls import no_domain

if TYPE_CHECKING:
    from .job import Job


class CpuEngine:
    """The compiled engine with one run's parts and numbers, ready to advance its blocks."""

    counts_by_chunk = True  # a chunk may be broken off, so what was counted before it is kept
    may_have_diverged = True
    made_with: ClassVar[dict[str, str]] = {}  # besides what any run is made with

    def __init__(self, job: "Job") -> None:
        problem, sampler = job.problem, job.sampler
        dynamics = sampler.dynamics
        self._advance = compile_part(advance, ADVANCE)
        self._target = PartPointer(problem.target.compiled())
        self._move = PartPointer(dynamics.compiled())
        self._target_parameters = problem.target.parameters
        self._callback = None if problem.target.callback is None else problem.target.callback.of_a_run()
        if self._callback is not None:
            self._target_parameters = self._callback.parameters
        self._move_parameters = np.array(dynamics.parameters, np.float64)
        kind, self._tempering_parameters = tempering_numbers(sampler, job.burn_in)
        self._temper = PartPointer(compile_part(TEMPERS[kind], TEMPER, handed=True, from_python=False))
        proposal = propose if dynamics.leapfrogs else propose_nothing
        self._propose = PartPointer(compile_part(proposal, PROPOSE, handed=True, from_python=False))
        domain = problem.domain or no_domain(problem.target.dim)
        self._look, self._real, self._whole = PartPointer(domain.look), domain.real, domain.whole
        self._numbers = engine_numbers(job)
        self.blocks = make_blocks(problem, sampler, job.init, job.layout, job.threads)
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
        waiting = deque(self.blocks)

        def work() -> None:
            for block in taken(waiting):
                own = outputs.of_chains(block.first, block.last)
                numbers = self._numbers._replace(n_chains=block.last - block.first)
                self._advance(
                    self._target, self._move, self._look, self._temper, self._propose, block.state, numbers,
                    self._target_parameters, self._move_parameters, self._tempering_parameters, self._real,
                    self._whole, first, factors.step_size, factors.temperature, slots, trace_slots, own,
                )  # fmt: skip

        if pool is None:
            work()
        else:
            with all_arrive(waiting, self._callback) as tasks:
                tasks += [pool.submit(work) for _ in range(self.threads)]
        if self._callback is not None:
            self._callback.raise_error()


def engine_numbers(job: "Job") -> Numbers:
    """What the engine needs to know of a run besides its arrays; n_chains is each block's own."""
    problem, sampler = job.problem, job.sampler
    dynamics, boundary = sampler.dynamics, sampler.boundary
    memory = [name for name, _ in dynamics.memory_rows(problem.target.dim)]
    return Numbers(
        n_chains=0,
        n_replicas=sampler.n_replicas,
        seed=np.uint64(job.seed),
        burn_in=job.burn_in,
        tempering=tempering_numbers(sampler, job.burn_in)[0],
        gradient_noise=float(sampler.gradient_noise),
        energy_noise=float(sampler.energy_noise),
        penalty=boundary.coefficient,
        max_bounces=boundary.max_bounces,
        rejects=boundary.kind == "reject",
        draws_batches=problem.target.stochastic,
        draws_noise=dynamics.draws_noise,
        needs_curvature=dynamics.needs_curvature,
        n_thermostats=sum(name.startswith("thermostat") for name in memory),
        leapfrogs=dynamics.leapfrogs,
        is_mala=dynamics.name == "mala",
        keeps_energies=job.records_energies,
        keeps_weights=sampler.is_weighted,
        keeps_statistics=job.keep_statistics,
        keeps_trace=job.trace_every is not None,
        n_kept=job.n_kept,
        n_traced_memory=sum(not name.startswith("_") for name in memory),
    )


def taken(waiting: deque[Block]) -> Iterator[Block]:
    """Blocks that wait for a thread, each given to one thread alone, until there are none."""
    while True:
        try:
            block = waiting.popleft()
        except IndexError:
            return
        yield block


def tempering_numbers(sampler: Sampler, burn_in: int) -> tuple[int, NDArray[np.float64]]:
    """Which tempering the engine is to do, and its numbers."""
    match sampler.tempering:
        case ReplicaExchange() as exchange:
            return EXCHANGE, exchange.parameters(sampler.energy_noise, burn_in)
        case Contour() as contour:
            return CONTOUR, contour.parameters(burn_in)
        case ContinuousTempering() as continuous:
            return CONTINUOUS, continuous.parameters()
        case Stein() as stein:
            return STEIN, np.array([stein.bandwidth or 0.0])
    return NO_TEMPERING, np.zeros(1)


@contextmanager
def all_arrive(waiting: deque[Block], callback: Any) -> Iterator[list[Future[None]]]:
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
