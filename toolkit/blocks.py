"""Lay the chains of a run out in blocks: groups of chains, with all that their lanes carry."""

import os
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .ahead import room_ahead
from .block_rows import ENGINE_ROWS, LAMBDA, MASSES
from .continuous import KICKS, ContinuousTempering
from .contour import Contour, contour_state
from .exchange import ReplicaExchange, exchange_state
from .problem import Problem
from .sampler import Sampler
from .state import ContinuousState, State
from .stein import Stein, distances_room

Floats = NDArray[np.float64]

USUAL_LANES, CHAINS_THAT_SWAP = 512, 32  # the loops of swaps run over chains, and shorter ones cost more than cache
SIMD_LANES = 8  # blocks are padded to a multiple: a loop's scalar remainder costs more than idle lanes


class Layout(NamedTuple):
    """How a run is laid out. It moves time and memory about, and never changes a bit of a result.

    lanes: replicas × chains in a block, about; None: 512, or 32 chains of replica exchange, whichever is more.
    chunk_steps: steps between two looks of Python; None: 2²¹ lane-steps or 128 steps, whichever is more, of at most
    256 MiB of draws, to begin with; `sample` then doubles them up to a tenth of a second.
    fused: compile the engine for this target, sampler and size of block, with all it calls taken in, which is faster
    the fewer the lanes, and takes some 10 s for each (docs/engine.md); kept on disk. A target in Python, or that makes
    arrays, runs as without. CUDA's kernels are so always.
    """

    lanes: int | None = None
    chunk_steps: int | None = None
    fused: bool = False


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
