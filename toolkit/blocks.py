"""Lay the chains of a run out in blocks, and advance them on a pool of threads."""

import os
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .compiling import FunctionPointer, compile_part
from .engine import ADVANCE, ENGINE_ROWS, Numbers, State, advance
from .polygons import Domain
from .problem import Problem
from .samplers import Sampler
from .schedules import Factors
from .signatures import DOMAIN

Floats = NDArray[np.float64]

SIMD_LANES = 8  # blocks are padded to a multiple: a loop's scalar remainder costs more than idle lanes


class Layout(NamedTuple):
    """How a run is laid out. It moves time and memory about, and never changes a bit of a result.

    lanes: replicas × chains in a block, about. chunk_steps: steps between two looks of Python; None: about 2²¹
    lane-steps, a few megabytes of draws, to begin with; `sample` then doubles them up to a tenth of a second.
    """

    lanes: int = 128
    chunk_steps: int | None = None


class Block(NamedTuple):
    """Chains ``first`` … ``last − 1`` of a run, and all that their lanes carry."""

    first: int
    last: int
    state: State


def available_threads() -> int:
    """Processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def chunk_length(layout: Layout, n_chains: int, n_replicas: int) -> int:
    """Steps of one chunk."""
    if layout.chunk_steps is not None:
        return layout.chunk_steps
    return int(np.clip(2**21 // (n_chains * n_replicas), 16, 65536))


def make_blocks(problem: Problem, sampler: Sampler, init: Floats, layout: Layout, threads: int) -> list[Block]:
    """Blocks for ``init`` (chain, replica, dim)."""
    n_chains, n_replicas, _ = init.shape
    share = max(-(-n_chains // threads), -(-SIMD_LANES // n_replicas))
    size = max(1, min(layout.lanes // n_replicas, share))
    return [
        Block(first, min(first + size, n_chains), make_state(problem, sampler, init[first : first + size], first))
        for first in range(0, n_chains, size)
    ]


def make_state(problem: Problem, sampler: Sampler, init: Floats, first_chain: int) -> State:
    """The state of one block before its first step, for ``init`` (chain, replica, dim)."""
    n_chains, n_replicas, dim = init.shape
    used = n_chains * n_replicas
    lanes = used if used == 1 else -(-used // SIMD_LANES) * SIMD_LANES
    replica, chain = np.divmod(np.arange(lanes), n_chains)
    replica[used:], chain[used:] = 0, 0
    position = np.array(init[chain, replica].T, order="C")
    step_size = np.array(sampler.step_sizes)[replica]
    step_size[used:] = 0.0
    return State(
        position=position,
        momentum=np.zeros((dim if sampler.dynamics.has_momentum else 0, lanes)),
        status=np.zeros(lanes, np.int64),
        bounces=np.zeros(lanes, np.int64),
        fallbacks=np.zeros(lanes, np.int64),
        attempted=np.zeros((n_replicas - 1, n_chains), np.int64),
        accepted=np.zeros((n_replicas - 1, n_chains), np.int64),
        chain=(first_chain + chain).astype(np.uint64),
        replica=replica.astype(np.uint64),
        base_step_size=step_size,
        base_temperature=np.array(sampler.temperatures)[replica],
        previous=np.empty((dim, lanes)),
        gradient=np.empty((dim, lanes)),
        noise=np.empty((dim, lanes)),
        foot=np.empty((dim, lanes)),
        rows=np.zeros((ENGINE_ROWS, lanes)),
        scratch=np.empty((problem.target.scratch_rows, lanes)),
    )


def by_chain(blocks: list[Block], field: str, n_replicas: int) -> NDArray[np.int64]:
    """A per-lane integer field of the state, as (chain, replica)."""
    parts = []
    for block in blocks:
        n_chains = block.last - block.first
        parts.append(getattr(block.state, field)[: n_chains * n_replicas].reshape(n_replicas, n_chains).T)
    return np.concatenate(parts)


class Engine:
    """The compiled engine with one run's parts and numbers, ready to advance blocks."""

    def __init__(self, problem: Problem, sampler: Sampler, *, seed: int, burn_in: int, keeps_energies: bool) -> None:
        self._advance = compile_part(advance, ADVANCE)
        self._target = FunctionPointer(problem.target.compiled())
        self._move = FunctionPointer(sampler.dynamics.compiled())
        self._target_parameters = problem.target.parameters
        self._move_parameters = np.array(sampler.dynamics.parameters, np.float64)
        domain = problem.domain or no_domain(problem.target.dim)
        self._look, self._real, self._whole = FunctionPointer(domain.look), domain.real, domain.whole
        tempering, boundary = sampler.tempering, sampler.boundary
        self._numbers = Numbers(
            n_chains=0,
            n_replicas=sampler.n_replicas,
            seed=np.uint64(seed),
            burn_in=burn_in,
            swap_every=tempering.swap_every if tempering else 1,
            correction=sampler.correction,
            swap_threshold=(tempering.swap_threshold or 0.0) if tempering else 0.0,
            gradient_noise=float(sampler.gradient_noise),
            energy_noise=float(sampler.energy_noise),
            penalty=boundary.coefficient,
            max_bounces=boundary.max_bounces,
            keeps_energies=keeps_energies,
        )

    def run(
        self, pool: Executor | None, blocks: list[Block], first: int, factors: Factors, slots: NDArray[np.int64],
        draws: Floats, energies: Floats,
    ) -> None:  # fmt: skip
        """Advance all blocks by ``slots.size`` steps from step ``first`` on the pool's threads, or on this one.

        draws (chain, replica, draw, dim), energies (chain, replica, draw or 0): filled at ``slots``.
        """
        with all_arrive() as tasks:
            for block in blocks:
                chains = slice(block.first, block.last)
                numbers = self._numbers._replace(n_chains=block.last - block.first)
                arguments: tuple[Any, ...] = (
                    self._target, self._move, self._look, block.state, numbers, self._target_parameters,
                    self._move_parameters, self._real, self._whole, first, factors.step_size, factors.temperature,
                    slots, draws[chains], energies[chains],
                )  # fmt: skip
                if pool is None:
                    self._advance(*arguments)
                else:
                    tasks.append(pool.submit(self._advance, *arguments))


@contextmanager
def all_arrive() -> Iterator[list[Future[None]]]:
    """Collect tasks, and leave only when none is under way: an interruption never leaves a thread writing."""
    tasks: list[Future[None]] = []
    try:
        yield tasks
        for task in tasks:
            task.result()
    except BaseException:
        for task in tasks:
            task.cancel()
        for task in tasks:
            if not task.cancelled():
                task.exception()
        raise


def look_nowhere(position, foot, outside, real, whole):
    """A domain without an edge: every lane is inside."""
    outside[:] = 0.0


def no_domain(dim: int) -> Domain:
    """All of space."""
    return Domain("all of space", dim, compile_part(look_nowhere, DOMAIN), np.zeros(0), np.zeros(0, np.int32))
