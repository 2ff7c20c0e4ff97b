"""One step of each tempering, behind the signature by which the engine calls it; only those used are compiled."""

import math
from collections.abc import Callable

from numba import uint64

from .compiling import inlined, kernel
from .continuous import RENEWED
from .coupling import find_kicks, temper_continuously
from .exchange import ALL_PAIRS, ESTIMATE_EVERY, SCHEME, SWAP_EVERY
from .exchanging import find_rungs
from .flattening import flatten_block
from .learning import learn
from .maths import select
from .philox import COUPLING, REFRESH, fill_normals
from .state import (
    ADDED,
    ALIVE,
    BIN,
    CONTINUOUS,
    CONTOUR,
    ENERGY,
    EXCHANGE,
    LAMBDA,
    LEFT,
    LOG_WEIGHT,
    MULTIPLIER,
    NO_TEMPERING,
    NOISY_ENERGY,
    PLACE,
    POTENTIAL,
    SHARE,
    STEIN,
    STEP_SIZE,
    TEMPERATURE,
    TOP,
    WEIGHT,
)
from .stein import stein_gradients
from .swapping import estimate_corrections, swap_replicas


def temper_not(state, numbers, parameters, step, samples, changes):
    """No tempering."""


def temper_by_exchange(state, numbers, parameters, step, samples, changes):
    """Estimate corrections, where the schedule explores too, and attempt swaps, where they are due."""
    rows = state.rows
    energy, alive, rungs = rows[ENERGY], rows[ALIVE], rows[PLACE : LOG_WEIGHT + 1]
    if changes > 1:
        find_rungs(rungs, rows[STEP_SIZE], rows[TEMPERATURE], numbers.n_chains, state.momentum.shape[0] > 0)
    if step == 0:
        return
    if parameters[ESTIMATE_EVERY] > 0.0 and step % int(parameters[ESTIMATE_EVERY]) == 0:
        estimate_corrections(
            rows[POTENTIAL], state.exchange, parameters, step, numbers.seed, state.chain, state.replica,
            numbers.n_chains, numbers.n_replicas, parameters[SCHEME] == ALL_PAIRS,
        )  # fmt: skip
    if samples and step % int(parameters[SWAP_EVERY]) == 0:
        for lane in range(energy.size):
            alive[lane] = 1.0 if state.status[lane] == 0 and energy[lane] - energy[lane] == 0.0 else 0.0
        swap_replicas(
            state.position, state.momentum, state.memory[: numbers.n_thermostats], state.gradient, state.curvature,
            rungs, energy, rows[TEMPERATURE], alive, rows[WEIGHT], rows[POTENTIAL], state.exchange, parameters,
            step, numbers.seed, state.chain, numbers.n_chains, numbers.n_replicas, step >= numbers.burn_in,
        )  # fmt: skip


def temper_by_contour(state, numbers, parameters, step, samples, changes):
    """Learn θ from the energies, and multiply the gradients by what they gave before it."""
    rows, masses = state.rows, state.masses
    if samples:
        place = rows[PLACE]
        for lane in range(place.size):
            place[lane] = select(state.status[lane] == 0, place[lane], math.nan)  # the diverged teach nothing
        learn(
            rows[BIN], place, masses[TOP], rows[LOG_WEIGHT], masses[SHARE], masses[ADDED], masses[LEFT], state.contour,
            parameters, step, numbers.n_chains, numbers.n_replicas,
        )  # fmt: skip
    if numbers.leapfrogs > 0:  # the Metropolis test compares energies that one θ has flattened
        flatten_block(rows[NOISY_ENERGY], rows[MULTIPLIER], state, numbers, parameters)
    scale_gradients(state, rows[MULTIPLIER])


def temper_by_coupling(state, numbers, parameters, step, samples, changes):
    """Move the tempering variables, and multiply the gradients by λ where the step began."""
    rows = state.rows
    if changes > 1:
        find_kicks(state.masses, rows[STEP_SIZE], rows[TEMPERATURE], parameters)
    fill_normals(rows[PLACE : BIN + 1], numbers.seed, state.chain, state.replica, uint64(step), uint64(COUPLING))
    due = temper_continuously(
        state.continuous.rows, state.continuous.bias, state.continuous.visits, state.masses, rows[NOISY_ENERGY],
        rows[TEMPERATURE], rows[LAMBDA], rows[PLACE], rows[BIN], parameters, step,
    )  # fmt: skip
    if due:
        renew_momenta(state, numbers, step)
    scale_gradients(state, rows[LAMBDA])


def temper_by_stein(state, numbers, parameters, step, samples, changes):
    """Put Stein's direction in the gradients' place; a particle that diverges moves the others no more."""
    rows, alive = state.rows, state.rows[ALIVE]
    if samples:
        for lane in range(alive.size):
            alive[lane] = rows[ENERGY, lane] - rows[ENERGY, lane]
        for d in range(state.gradient.shape[0]):
            for lane in range(alive.size):
                alive[lane] += state.gradient[d, lane] - state.gradient[d, lane]
        for lane in range(alive.size):
            diverges = alive[lane] != 0.0 and state.status[lane] == 0  # true for nan
            state.status[lane] = select(diverges, step + 1, state.status[lane])
        for d in range(state.gradient.shape[0]):
            for lane in range(alive.size):
                state.gradient[d, lane] = select(alive[lane] == 0.0, state.gradient[d, lane], 0.0)
        stein_gradients(
            state.position, state.gradient, rows[TEMPERATURE], state.foot, rows[WEIGHT], state.distances,
            rows[POTENTIAL], numbers.n_chains, numbers.n_replicas, parameters[0],
        )  # fmt: skip


@kernel
def renew_momenta(state, numbers, step):
    """Draw momenta afresh in the lanes whose tempering variable has just had its own renewed."""
    renewed, temperature = state.continuous.rows[RENEWED], state.rows[TEMPERATURE]
    fill_normals(state.noise, numbers.seed, state.chain, state.replica, uint64(step), uint64(REFRESH))
    for d in range(state.momentum.shape[0]):
        for lane in range(temperature.size):
            fresh = math.sqrt(temperature[lane]) * state.noise[d, lane]
            state.momentum[d, lane] = select(renewed[lane] != 0.0, fresh, state.momentum[d, lane])


@inlined
def scale_gradients(state, factor):
    """Multiply gradient and curvature by ``factor`` (lane)."""
    for d in range(state.gradient.shape[0]):
        for lane in range(factor.size):
            state.gradient[d, lane] *= factor[lane]
    for d in range(state.curvature.shape[0]):
        for lane in range(factor.size):
            state.curvature[d, lane] *= factor[lane]


TEMPERS: dict[int, Callable[..., None]] = {
    NO_TEMPERING: temper_not,
    EXCHANGE: temper_by_exchange,
    CONTOUR: temper_by_contour,
    CONTINUOUS: temper_by_coupling,
    STEIN: temper_by_stein,
}
