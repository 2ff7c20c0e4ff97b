"""Lay the chains of a run out in blocks, and advance them on a pool of threads."""

import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .ahead import room_ahead
from .compiling import PartPointer, compile_part
from .continuous import KICKS, ContinuousTempering
from .contour import Contour, contour_state
from .domain import Domain
from .engine import advance
from .exchange import ReplicaExchange, exchange_state
from .problem import Problem
from .proposals import propose, propose_nothing
from .sampler import Sampler
from .schedule import Factors
from .state import (
    ADVANCE,
    CONTINUOUS,
    CONTOUR,
    ENGINE_ROWS,
    EXCHANGE,
    LAMBDA,
    MASSES,
    NO_TEMPERING,
    PROPOSE,
    STEIN,
    TEMPER,
    ContinuousState,
    Numbers,
    Outputs,
    State,
)
from .stein import Stein, distances_room
from .tempers import TEMPERS

if TYPE_CHECKING:
    from .job import Job

Floats = NDArray[np.float64]

USUAL_LANES, CHAINS_THAT_SWAP = 512, 32  # the loops of swaps run over chains, and shorter ones cost more than cache
SIMD_LANES = 8  # blocks are padded to a multiple: a loop's scalar remainder costs more than idle lanes


class Layout(NamedTuple):
    """How a run is laid out. It moves time and memory about, and never changes a bit of a result.

    lanes: replicas × chains in a block, about; None: 512, or 32 chains of replica exchange, whichever is more.
    chunk_steps: steps between two looks of Python; None: 2²¹ lane-steps or 128 steps, whichever is more, of at most
    256 MiB of draws, to begin with; `sample` then doubles them up to a tenth of a second.
    """

    lanes: int | None = None
    chunk_steps: int | None = None


class Block(NamedTuple):
    """Chains ``first`` … ``last − 1`` of a run, and all that their lanes carry."""

    first: int
    last: int
    state: State


def available_threads() -> int:
    """Processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def make_blocks(problem: Problem, sampler: Sampler, init: Floats, layout: Layout, threads: int) -> list[Block]:
    """Blocks for ``init`` (chain, replica, dim)."""
    n_chains, n_replicas, _ = init.shape
    share = max(-(-n_chains // threads), -(-SIMD_LANES // n_replicas))
    lanes = usual_lanes(sampler) if layout.lanes is None else layout.lanes
    size = max(1, min(lanes // n_replicas, share))
    return [
        Block(first, min(first + size, n_chains), make_state(problem, sampler, init[first : first + size], first))
        for first in range(0, n_chains, size)
    ]


def usual_lanes(sampler: Sampler) -> int:
    """Lanes of a block whose layout leaves them open."""
    chains = CHAINS_THAT_SWAP if isinstance(sampler.tempering, ReplicaExchange) else 1
    return max(USUAL_LANES, chains * sampler.n_replicas)


def make_state(problem: Problem, sampler: Sampler, init: Floats, first_chain: int) -> State:
    """The state of one block before its first step, for ``init`` (chain, replica, dim)."""
    n_chains, n_replicas, dim = init.shape
    used = n_chains * n_replicas
    lanes = used if used == 1 else -(-used // SIMD_LANES) * SIMD_LANES
    replica, chain = np.divmod(np.arange(lanes), n_chains)
    replica[used:], chain[used:] = 0, 0
    tempering, dynamics = sampler.tempering, sampler.dynamics
    step_size = sampler.per_chain("step_sizes", first_chain + chain, replica)
    step_size[used:] = 0.0
    temperature = sampler.per_chain("temperatures", first_chain + chain, replica)
    rows = np.zeros((ENGINE_ROWS, lanes))
    names = ((first_chain + chain).astype(np.uint64), replica.astype(np.uint64))
    rows[LAMBDA] = 1.0
    memory = np.array([value for _, value in dynamics.memory_rows(dim)])
    exchange = tempering if isinstance(tempering, ReplicaExchange) else None
    return State(
        position=np.array(init[chain, replica].T, order="C"),
        momentum=np.zeros((dim if dynamics.has_momentum else 0, lanes)),
        memory=np.repeat(memory[:, None], lanes, axis=1),
        status=np.zeros(lanes, np.int64),
        bounces=np.zeros(lanes, np.int64),
        fallbacks=np.zeros(lanes, np.int64),
        accepted=np.zeros(lanes, np.int64),
        chain=names[0],
        replica=names[1],
        base_step_size=step_size,
        base_temperature=temperature,
        exchange=exchange_state(exchange, n_replicas, replica, sampler.energy_noise, n_chains),
        contour=contour_state(tempering if isinstance(tempering, Contour) else None, n_chains),
        continuous=continuous_state(tempering, temperature),
        previous=np.empty((dim, lanes)),
        gradient=np.empty((dim, lanes)),
        curvature=np.empty((dim if dynamics.needs_curvature else 0, lanes)),
        noise=np.empty((dim, lanes)),
        foot=np.empty((dim, lanes)),
        distances=np.empty(distances_room(n_replicas) if isinstance(tempering, Stein) else 0),
        rows=rows,
        masses=np.empty((masses_rows(tempering), lanes)),
        scratch=np.zeros((problem.target.scratch_rows, lanes)),
        ahead=room_ahead(dim, *names),
    )


def masses_rows(tempering: object) -> int:
    """Rows of scratch that are float64 whatever the engine computes with."""
    return MASSES if isinstance(tempering, Contour) else KICKS if isinstance(tempering, ContinuousTempering) else 0


def continuous_state(tempering: object, temperature: Floats) -> ContinuousState:
    """The tempering variables before the first step, which renews their momenta: ξ = 0."""
    if not isinstance(tempering, ContinuousTempering):
        return ContinuousState(*(np.zeros((0, 0)) for _ in range(3)))
    return ContinuousState(*tempering.start(temperature, np.zeros_like(temperature)))


class Engine:
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
        self._temper = PartPointer(compile_part(TEMPERS[kind], TEMPER, handed=True))
        proposal = propose if dynamics.leapfrogs else propose_nothing
        self._propose = PartPointer(compile_part(proposal, PROPOSE, handed=True))
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


def tempering_numbers(sampler: Sampler, burn_in: int) -> tuple[int, Floats]:
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


def look_nowhere(position, foot, outside, real, whole):
    """A domain without an edge: every lane is inside."""
    outside[:] = 0.0


def no_domain(dim: int) -> Domain:
    """All of space."""
    return Domain("all of space", dim, look_nowhere, np.zeros(0), np.zeros(0, np.int32)).compiled()
