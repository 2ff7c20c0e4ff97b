"""The engine's state, its constants, and the arrays that it fills."""

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from .._compiler import signatures as s
from .._compiler.argument_pack import tuple_by_address
from .._compiler.block_rows import (
    CHAIN,
    ENERGY,
    ENGINE_ROWS,
    LAMBDA,
    MODE,
    REPLICA,
    SEED_HIGH,
    SEED_LOW,
    STEP,
)
from ..maths.philox import LOW, WORD
from ..problem.definition import Problem, Target
from ..problem.starts import Keys
from ..samplers.sampler import Sampler, coordinate_scales
from ..tempering.continuous import XI
from ..tempering.contour_tempering import ContourState, contour_state, forget_visited_range
from ..tempering.exchange import ExchangeState, exchange_state
from ..tempering.stein_particles import distances_room
from .noise_buffer import NoiseBuffer, make_noise_buffer

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class ContinuousState(NamedTuple):
    """A block's tempering variables; all sizes are 0 without continuous tempering."""

    rows: s.Matrix  # (CONTINUOUS_ROWS, lane)
    bias: s.Matrix  # (bin, lane)
    visits: s.Matrix  # (bin, lane)


class State(NamedTuple):
    """The state of a block, and its scratch space. Lanes beyond the last chain are padding."""

    position: s.Matrix  # (dim, lane)
    momentum: s.Matrix  # (dim or 0, lane)
    memory: s.Matrix  # (rows, lane): the dynamics' own state
    status: s.IntVector  # (lane,): 0, or 1 + the step at which the lane diverged
    bounces: s.IntVector  # (lane,): reflections and rejections at the boundary so far
    fallbacks: s.IntVector  # (lane,): returns to the last inside point so far
    accepted: s.IntVector  # (lane,): moves since the end of burn-in that the Metropolis test and the walls let pass
    chain: s.NameVector  # (lane,)
    replica: s.NameVector  # (lane,)
    base_step_size: s.Vector  # (lane,), 0 for padding
    base_temperature: s.Vector  # (lane,)
    scale: s.Vector  # (dim,): of each coordinate, the same for all lanes; (dim²,) where it is a matrix
    exchange: ExchangeState
    contour: ContourState
    continuous: ContinuousState
    previous: s.Matrix  # scratch (dim, lane)
    gradient: s.Matrix  # scratch (dim, lane)
    curvature: s.Matrix  # scratch (dim or 0, lane)
    noise: s.Matrix  # scratch (dim, lane)
    mirror_point: s.Matrix  # scratch (dim, lane)
    distances: s.Vector  # scratch of Stein's particles
    rows: s.Matrix  # scratch (ENGINE_ROWS, lane) of the engine, by the names in ``block_rows``
    masses: s.Matrix  # scratch (MASSES, KICKS or 0, lane) of contour or continuous tempering; always float64
    scratch: s.Matrix  # scratch (rows, lane) of the target
    noise_buffer: NoiseBuffer


# What a call of the engine writes before it reads, but for the row LAMBDA without continuous tempering, which is 1: of
# blocks that are advanced one after another it is the same memory, which stays in a core's cache.
SCRATCH = ("previous", "gradient", "curvature", "noise", "mirror_point", "distances", "rows", "masses")
# What no step writes, and most blocks have alike.
CONSTANT = ("replica", "base_step_size", "base_temperature", "scale")


class Numbers(NamedTuple):
    """The scalar constants of a run."""

    n_chains: int
    n_replicas: int
    seed: np.uint64
    burn_in: int
    tempering: int  # a kind of ``block_rows``
    gradient_noise: float
    energy_noise: float
    penalty: float  # 0 without a penalty
    max_bounces: int  # 0 without reflection
    from_origin: bool  # the penalty is of the distance from the origin, as printed, instead of from the domain
    rejects: bool  # moves that end outside are rejected
    draws_batches: bool
    draws_noise: bool
    needs_curvature: bool
    n_thermostats: int  # the first rows of memory, which are frictions of a thermostat
    leapfrogs: int  # 0 for dynamics without a Metropolis test
    random_length: bool  # trajectories have random lengths with mean ``leapfrogs``
    is_mala: bool
    keeps_energies: bool
    keeps_weights: bool
    keeps_statistics: bool
    keeps_trace: bool
    n_kept: int  # replicas whose draws are recorded, coldest first
    n_traced_memory: int  # the first rows of the dynamics' memory, which a trace records


class Constants(NamedTuple):
    """What is constant during a run: the numbers, and the tables that the parts read."""

    numbers: Numbers
    target: s.Vector  # parameters of the target
    move: s.Vector  # of the dynamics
    tempering: s.Vector
    float_table: s.Vector  # tables of the domain
    int_table: s.Int32Vector


class Outputs(NamedTuple):
    """Arrays for draws and what is recorded with them; sizes are 0 for what is not recorded."""

    draws: s.Tesseract  # (chain, replica, draw, dim)
    energies: s.Cube  # (chain, replica, draw)
    weights: s.Cube  # (chain, replica, draw)
    statistics: s.Int32Tesseract  # (chain, replica, draw, field): walker, swaps so far, reflections so far
    trace: s.Tesseract  # (chain, replica, time, field)
    theta: s.Cube  # (chain, time, bin)

    def of_chains(self, first: int, last: int) -> "Outputs":
        """The part of the chains ``first`` … ``last − 1``."""
        parts: tuple[Any, ...] = tuple(array[first:last] for array in self)
        return Outputs(*parts)

    def of_draws(self, draws: int, traced: int) -> "Outputs":
        """The first ``draws`` draws, and the first ``traced`` times of the trace."""
        draws_only: tuple[Any, ...] = tuple(array[:, :, :draws] for array in self[:4])
        traces: tuple[Any, ...] = (self.trace[:, :, :traced], self.theta[:, :traced])
        return Outputs(*draws_only, *traces)


class Steps(NamedTuple):
    """The steps of one call of the loop. A slot is the index of the draw, or traced time, that a step fills, or −1."""

    first: int
    step_factors: s.Vector  # (steps,)
    temperature_factors: s.Vector  # (steps,)
    slots: s.IntVector  # (steps,)
    trace_slots: s.IntVector  # (steps,)
    outputs: Outputs


CONTINUOUS_STATE, STATE, NUMBERS = s.tuple_type(ContinuousState), s.tuple_type(State), s.tuple_type(Numbers)
CONSTANTS, STEPS = s.tuple_type(Constants), s.tuple_type(Steps)
TARGET_POINTER, DOMAIN_POINTER = types.FunctionType(s.TARGET), types.FunctionType(s.DOMAIN)


class Callees(NamedTuple):
    """What phases call, and its packed arguments (``argument_pack``)."""

    at_end: Annotated[Any, types.voidptr]  # the target at a trajectory's end: the energy is the row POTENTIAL
    at_probe: Annotated[Any, types.voidptr]  # the target at the probe, which is ``previous``
    at_locate: Annotated[Any, types.voidptr]
    at_locate_of_probe: Annotated[Any, types.voidptr]
    target: Annotated[Any, TARGET_POINTER]  # functions come last: Numba warns of tuples that begin with one
    locate: Annotated[Any, DOMAIN_POINTER]


TEMPER = types.void(STATE, NUMBERS, s.FLOATS, types.int64, types.boolean, types.int64)
PHASE = types.void(STATE, CONSTANTS, STEPS, types.int64, types.int64)
CALLING_PHASE = types.void(STATE, CONSTANTS, STEPS, s.tuple_type(Callees), types.int64, types.int64)
PHASE_POINTER, CALLING_POINTER = types.FunctionType(PHASE), types.FunctionType(CALLING_PHASE)


class Parts(NamedTuple):
    """The functions of a run, after the kind of its tempering. Uncompiled, they are the key of what is compiled for it.

    Those after ``temper`` are phases; ``phases.no_phase`` and ``no_calling_phase`` stand for what a run lacks.
    """

    tempering: int  # leads, because Numba warns of tuples that begin with a function
    target: Annotated[Any, TARGET_POINTER]
    move: Annotated[Any, types.FunctionType(s.DYNAMICS)]
    locate: Annotated[Any, DOMAIN_POINTER]
    temper: Annotated[Any, types.FunctionType(TEMPER)]
    propose: Annotated[Any, CALLING_POINTER]
    penalise: Annotated[Any, CALLING_POINTER]
    provide_noise: Annotated[Any, PHASE_POINTER]
    add_gradient_noise: Annotated[Any, PHASE_POINTER]
    start_momenta: Annotated[Any, PHASE_POINTER]
    use_trajectory_end: Annotated[Any, PHASE_POINTER]
    read_energies: Annotated[Any, PHASE_POINTER]
    estimate_curvature: Annotated[Any, CALLING_POINTER]
    after_move: Annotated[Any, CALLING_POINTER]
    record_traces: Annotated[Any, PHASE_POINTER]
    freeze_diverged: Annotated[Any, PHASE_POINTER]

    @property
    def functions(self) -> tuple[Any, ...]:
        """All of them."""
        return self[1:]

    @property
    def phases(self) -> tuple[Any, ...]:
        """Those that are phases."""
        return self[self._fields.index("propose") :]


PARTS = s.tuple_type(Parts)
ADVANCE = types.void(s.INTEGERS, STATE, CONSTANTS, STEPS)  # the integers are what ``as_parts`` reads
as_parts = tuple_by_address(PARTS)


# Blocks: groups of chains, with their state.

USUAL_LANES, CHAINS_THAT_SWAP = 512, 32  # loops of swaps run over chains: short ones cost more than cache misses
SIMD_LANES = 8  # blocks are padded to a multiple: a loop's scalar remainder costs more than idle lanes


class Layout(NamedTuple):
    """How a run is laid out. It changes time and memory, and never a bit of a result.

    lanes: approximate replicas × chains in a block; None: 512, or 32 chains of replica exchange, whichever is more.
    chunk_steps: steps of a call of the engine; None: at first 2²¹ lane-steps or 128 steps, whichever is more, of at
    most 256 MiB of draws; `sample` then doubles them while they take less than a tenth of a second.
    fused: compile the engine for this target, sampler and size of block, with all calls inlined, which is faster the
    fewer the lanes, and takes some 10 s each time (docs/engine.md); cached on disk. True: before the run. None: beside
    it, by another process, where the run lasts long enough by its speed so far; it goes on with that engine as soon as
    it is there. False: never. A target in Python, or one that allocates arrays, ignores it. CUDA's kernels are always
    so. ``run.made_with["engine"]`` says what happened.
    """

    lanes: int | None = None
    chunk_steps: int | None = None
    fused: bool | None = None


class Block(NamedTuple):
    """Chains ``first`` … ``last − 1`` of a run, and their state."""

    first: int
    last: int
    state: State


def make_blocks(
    problem: Problem, sampler: Sampler, init: Floats, layout: Layout, threads: int, keys: Keys | None = None
) -> list[Block]:
    """Blocks for ``init`` (chain, replica, dim), which share their scratch and what is constant and the same in them.

    keys: None for those of a run by itself.
    """
    n_chains, n_replicas, _ = init.shape
    target = problem.target  # a Python function is called by one thread at a time, for all lanes of a block
    least = 1 if target.lane_by_lane and target.callback is None else -(-SIMD_LANES // n_replicas)
    share = max(-(-n_chains // threads), least)
    lanes = default_lanes(sampler) if layout.lanes is None else layout.lanes
    size = max(1, min(lanes // n_replicas, share))
    blocks: list[Block] = []
    for first in range(0, n_chains, size):
        state = make_state(problem, sampler, init[first : first + size], first, keys)
        if blocks and state.rows.shape == blocks[0].state.rows.shape:
            state = with_constants(with_scratch(state, blocks[0].state), blocks[0].state)
        blocks.append(Block(first, min(first + size, n_chains), state))
    return blocks


def with_scratch(state: State, of: State) -> State:
    """``state`` with the scratch of another of the same shape, which is never advanced at the same time."""
    return state._replace(**{name: getattr(of, name) for name in SCRATCH})


def with_constants(state: State, of: State) -> State:
    """``state`` with the constant arrays of another, where they are equal, which saves 24 bytes a lane."""
    pairs = {name: (getattr(state, name), getattr(of, name)) for name in CONSTANT}
    return state._replace(**{name: other for name, (own, other) in pairs.items() if np.array_equal(own, other)})


def own_scratch(state: State) -> State:
    """``state`` with new scratch, so that it may be advanced while others with its old one are."""
    return state._replace(**{name: getattr(state, name).copy() for name in SCRATCH})


def default_lanes(sampler: Sampler) -> int:
    """Lanes of a block whose layout does not say."""
    chains = CHAINS_THAT_SWAP if sampler.tempers.swaps else 1
    return max(USUAL_LANES, chains * sampler.n_replicas)


def make_state(problem: Problem, sampler: Sampler, init: Floats, first_chain: int, keys: Keys | None = None) -> State:
    """The state of one block before its first step, for ``init`` (chain, replica, dim)."""
    n_chains, n_replicas, dim = init.shape
    used = n_chains * n_replicas
    lanes = used if used == 1 or problem.target.lane_by_lane else -(-used // SIMD_LANES) * SIMD_LANES
    replica, chain = np.divmod(np.arange(lanes), n_chains)
    replica[used:], chain[used:] = 0, 0
    tempering, dynamics = sampler.tempers, sampler.dynamics
    step_size = sampler.per_chain("step_sizes", first_chain + chain, replica)
    step_size[used:] = 0.0
    temperature = sampler.per_chain("temperatures", first_chain + chain, replica)
    rows = np.zeros((ENGINE_ROWS, lanes))
    if keys is None:
        keys = Keys(np.arange(first_chain + n_chains))
    names = (keys.chains[first_chain + chain].astype(np.uint64), (keys.first_replica + replica).astype(np.uint64))
    rows[LAMBDA] = 1.0
    memory = dynamics.memory_starts(dim)
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
        exchange=exchange_state(tempering, n_replicas, replica, sampler.energy_noise, n_chains),
        contour=contour_state(tempering, n_chains),
        continuous=continuous_state(tempering, temperature),
        previous=np.empty((dim, lanes)),
        gradient=np.empty((dim, lanes)),
        curvature=np.empty((dim if dynamics.needs_curvature else 0, lanes)),
        noise=np.empty((dim, lanes)),
        mirror_point=np.empty((dim, lanes)),
        distances=np.empty(distances_room(n_replicas) if tempering.comes_to_rest else 0),
        rows=rows,
        masses=np.empty((tempering.scratch_rows, lanes)),
        scratch=np.zeros((problem.target.scratch_rows, lanes)),
        noise_buffer=make_noise_buffer(dim, names[0][:used], names[1][:used], lanes - used),
        scale=coordinate_scales(sampler, dim),
    )


def with_target(block: Block, target: Target, seed: int) -> Block:
    """``block`` for another target, whose scratch begins anew, by an evaluation at the positions as at step 0.

    So the anchor of a target that draws minibatches about one is at the positions. Targets that work lane by lane keep
    nothing in their scratch, and are not evaluated. The old block keeps its scratch.
    """
    state = block.state
    scratch = np.zeros((target.scratch_rows, state.status.size))
    if target.stochastic:
        scratch[MODE], scratch[STEP] = 1.0, 0.0
        scratch[CHAIN], scratch[REPLICA] = state.chain, state.replica
        scratch[SEED_HIGH], scratch[SEED_LOW] = float(seed >> int(WORD)), float(seed & int(LOW))
    if target.scratch_rows and not target.lane_by_lane:
        target.compiled()(state.position, state.rows[ENERGY], state.gradient, target.parameters, scratch)
    return block._replace(state=state._replace(scratch=scratch))


def continuous_state(tempering: Any, temperature: Floats) -> ContinuousState:
    """The tempering variables before the first step: ξ = 0; the first step draws their momenta."""
    if not tempering.couples:
        return ContinuousState(*(np.zeros((0, 0)) for _ in range(3)))
    return ContinuousState(*tempering.start(temperature, np.zeros_like(temperature)))


# A run's state by chain, for checkpoints, which may be restored to other blocks.

Array = NDArray[Any]

# Fields that a step reads and an earlier step has written. All others are written before they are read, set when the
# blocks are made, or 0 while nothing has diverged; ``tests/toolkit/engine/test_state.py`` fills them with nan.
BY_LANE = (
    "position", "momentum", "memory", "bounces", "fallbacks", "accepted", "scratch", "exchange.walker",
    "exchange.last_end", "continuous.rows", "continuous.bias", "continuous.visits",
)  # fmt: skip
CHAINS_LAST = (
    "exchange.attempted", "exchange.accepted", "exchange.correction", "exchange.rests", "contour.outside",
)  # fmt: skip
CHAINS_FIRST = (
    "exchange.round_trips", "contour.table", "contour.scale", "contour.late", "contour.early", "contour.mark",
)  # fmt: skip
STORED = (*BY_LANE, *CHAINS_LAST, *CHAINS_FIRST)
VISITED_RANGE = "contour.visited_range"
DERIVED = (VISITED_RANGE, "contour.decays", "contour.decays_of")  # not stored: they follow from the rest
STATUS = "status"  # stored only where it is not all 0
# Fields whose names in files differ from their present names.
FIELD_OF = {
    "exchange.rests": "swapped_in_window", "contour.late": "theta_at_mark", "contour.early": "theta_before",
    "contour.mark": "next_mark",
}  # fmt: skip


def by_chain(state: State, name: str, n_chains: int, n_replicas: int) -> Array:
    """A view, chains first, of the field ``name`` of ``state``; by lane: (chain, …, replica), without padding."""
    part, _, field = name.rpartition(".")
    array: Array = getattr(getattr(state, part) if part else state, FIELD_OF.get(name, field))
    if name in CHAINS_FIRST:
        return array
    if name in CHAINS_LAST or name == VISITED_RANGE:
        return array.T
    lanes = array[..., : n_chains * n_replicas]
    if lanes.size == 0:
        return np.empty((n_chains, 0), array.dtype)
    shaped = lanes.reshape(*lanes.shape[:-1], n_replicas, n_chains)
    return shaped.transpose(array.ndim, *range(array.ndim))


def stored_names(blocks: "list[Block]", n_replicas: int, has_status: bool | None = None) -> list[str]:
    """The names of ``STORED`` that are not empty in these blocks, and ``STATUS`` where a lane has diverged.

    has_status: whether it is among them, where that is known of a file.
    """
    first = blocks[0]
    names = [name for name in STORED if by_chain(first.state, name, first.last - first.first, n_replicas).size]
    if has_status is None:
        has_status = any(block.state.status.any() for block in blocks)
    return [*names, STATUS] if has_status else names


def views(blocks: "list[Block]", name: str, n_replicas: int) -> Iterator[Array]:
    """The views ``by_chain`` of all blocks in order, which together hold all chains."""
    for block in blocks:
        yield by_chain(block.state, name, block.last - block.first, n_replicas)


def copy_stored(blocks: "list[Block]", n_replicas: int) -> dict[str, list[Array]]:
    """Copies of all that is kept of the state from step to step, by name and block."""
    names = stored_names(blocks, n_replicas, True)
    return {name: [view.copy() for view in views(blocks, name, n_replicas)] for name in names}


def put_back(blocks: "list[Block]", n_replicas: int, copies: dict[str, list[Array]]) -> None:
    """Write the copies of ``copy_stored`` into these blocks, which have the same chains each."""
    for name, arrays in copies.items():
        for view, array in zip(views(blocks, name, n_replicas), arrays, strict=True):
            view[...] = array
    forget_derived(blocks)


def forget_derived(blocks: "list[Block]") -> None:
    """Have what follows from stored fields found anew: they have been written."""
    for block in blocks:
        forget_visited_range(block.state.contour)


def are_valid(blocks: "list[Block]") -> bool:
    """Whether numbers that the engine uses as indices or counters are in the range that it produces itself."""
    for block in blocks:
        coordinate, marks = block.state.continuous.rows[XI : XI + 1], block.state.contour.next_mark
        if not (np.abs(coordinate) <= 1.0).all() or not (marks >= 1).all() or (block.state.status < 0).any():
            return False
    return True
