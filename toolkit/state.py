"""What the engine carries from step to step, the numbers it needs, and the arrays it fills."""

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from . import signatures as s
from .ahead import AHEAD, Ahead
from .contour import CONTOUR_STATE, ContourState
from .exchange import EXCHANGE_STATE, ExchangeState

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class ContinuousState(NamedTuple):
    """What a block knows of its tempering variables; all sizes are 0 without continuous tempering."""

    rows: Floats  # (CONTINUOUS_ROWS, lane)
    bias: Floats  # (bin, lane)
    visits: Floats  # (bin, lane)


class State(NamedTuple):
    """All that a block carries from step to step, and its scratch space. Lanes beyond the last chain are padding."""

    position: Floats  # (dim, lane)
    momentum: Floats  # (dim or 0, lane)
    memory: Floats  # (rows, lane): what the dynamics keep
    status: Integers  # (lane,): 0, or 1 + the step at which the lane diverged
    bounces: Integers  # (lane,): reflections and rejections at the boundary so far
    fallbacks: Integers  # (lane,): returns to the last inside point so far
    accepted: Integers  # (lane,): moves since the end of burn-in that the Metropolis test and the walls let pass
    chain: NDArray[np.uint64]  # (lane,)
    replica: NDArray[np.uint64]  # (lane,)
    base_step_size: Floats  # (lane,), 0 for padding
    base_temperature: Floats  # (lane,)
    exchange: ExchangeState
    contour: ContourState
    continuous: ContinuousState
    previous: Floats  # scratch (dim, lane)
    gradient: Floats  # scratch (dim, lane)
    curvature: Floats  # scratch (dim or 0, lane)
    noise: Floats  # scratch (dim, lane)
    foot: Floats  # scratch (dim, lane)
    distances: Floats  # scratch of Stein's particles
    rows: Floats  # scratch (ENGINE_ROWS, lane): the engine's own, see the names below
    masses: Floats  # scratch (MASSES, KICKS or 0, lane): contour's, or continuous tempering's, of float64 always
    scratch: Floats  # scratch (rows, lane): the target's own
    ahead: Ahead


class Numbers(NamedTuple):
    """What the engine needs to know besides the arrays."""

    n_chains: int
    n_replicas: int
    seed: np.uint64
    burn_in: int
    tempering: int  # which of the kinds above
    gradient_noise: float
    energy_noise: float
    penalty: float  # 0 where nothing is penalised
    max_bounces: int  # 0 where nothing is reflected
    from_origin: bool  # the penalty is that of the distance from the origin, as printed, not from the domain
    rejects: bool  # moves that end outside are taken back
    draws_batches: bool
    draws_noise: bool
    needs_curvature: bool
    n_thermostats: int  # rows of memory, from the first, that are frictions of a thermostat
    leapfrogs: int  # 0 where the dynamics move by themselves
    random_length: bool  # of trajectories, whose mean ``leapfrogs`` is then
    is_mala: bool
    keeps_energies: bool
    keeps_weights: bool
    keeps_statistics: bool
    keeps_trace: bool
    n_kept: int  # replicas whose draws are recorded, from the coldest
    n_traced_memory: int  # rows of the dynamics' memory that a trace shows, from the first


class Outputs(NamedTuple):
    """Where draws go, and what is kept beside them; sizes are 0 where nothing is."""

    draws: Floats  # (chain, replica, draw, dim)
    energies: Floats  # (chain, replica, draw)
    weights: Floats  # (chain, replica, draw)
    statistics: NDArray[np.int32]  # (chain, replica, draw, field): walker, swaps so far, reflections so far
    trace: Floats  # (chain, replica, time, field)
    theta: Floats  # (chain, time, bin)

    def of_chains(self, first: int, last: int) -> "Outputs":
        """The part of the chains ``first`` … ``last − 1``."""
        parts: tuple[Any, ...] = tuple(array[first:last] for array in self)
        return Outputs(*parts)

    def of_draws(self, draws: int, traced: int) -> "Outputs":
        """The first ``draws`` draws, and the first ``traced`` moments of the trace."""
        draws_only: tuple[Any, ...] = tuple(array[:, :, :draws] for array in self[:4])
        traces: tuple[Any, ...] = (self.trace[:, :, :traced], self.theta[:, :traced])
        return Outputs(*draws_only, *traces)


CONTINUOUS_STATE = types.NamedUniTuple(s.MATRIX, 3, ContinuousState)  # Numba tells tuples of one type apart
STATE = types.NamedTuple(
    (s.MATRIX,) * 3
    + (s.INTEGERS,) * 4
    + (s.NAMES,) * 2
    + (s.FLOATS,) * 2
    + (EXCHANGE_STATE, CONTOUR_STATE, CONTINUOUS_STATE)
    + (s.MATRIX,) * 5
    + (s.FLOATS,)
    + (s.MATRIX,) * 3
    + (AHEAD,),
    State,
)
NUMBERS = types.NamedTuple(
    (types.int64, types.int64, types.uint64, types.int64, types.int64)
    + (types.float64,) * 3
    + (types.int64,)
    + (types.boolean,) * 5
    + (types.int64,) * 2
    + (types.boolean,) * 6
    + (types.int64,) * 2,
    Numbers,
)
OUTPUTS = types.NamedTuple((s.TESSERACT, s.CUBE, s.CUBE, s.TALLIES, s.TESSERACT, s.CUBE), Outputs)
TEMPER = types.void(STATE, NUMBERS, s.FLOATS, types.int64, types.boolean, types.int64)
PROPOSE = types.void(
    STATE,
    NUMBERS,
    types.FunctionType(s.TARGET),
    s.FLOATS,
    s.FLOATS,
    types.FunctionType(s.DOMAIN),
    s.FLOATS,
    s.TABLE,
    types.int64,
    types.int64,
)
ADVANCE = types.void(
    types.FunctionType(s.TARGET),
    types.FunctionType(s.DYNAMICS),
    types.FunctionType(s.DOMAIN),
    types.FunctionType(TEMPER),
    types.FunctionType(PROPOSE),
    STATE,
    NUMBERS,
    s.FLOATS,
    s.FLOATS,
    s.FLOATS,
    s.FLOATS,
    s.TABLE,
    types.int64,
    s.FLOATS,
    s.FLOATS,
    s.INTEGERS,
    s.INTEGERS,
    OUTPUTS,
)
