"""The tempering variable ξ of continuous tempering as block functions; ``continuous`` holds its law and its numbers."""

import math

import numpy as np
from numba import uint64

from .block_rows import BIN, LAMBDA, NOISY_ENERGY, PLACE, STEP_SIZE, TEMPERATURE
from .compiling import inlined, kernel
from .continuous import (
    ABF,
    COUNTED,
    DEPOSITS,
    DRIFT,
    FORCE,
    INJECTED,
    METADYNAMICS,
    MOMENTUM,
    RENEWED,
    ROOT,
    SLOPE,
    THERMOSTAT,
    XI,
)
from .maths import fma, select, smaller
from .philox import COUPLING, REFRESH, fill_normals
from .tempers import scale_gradients


@inlined
def coupling(xi, plateau, growth):
    """λ(ξ) and λ'(ξ)."""
    excess = select(abs(xi) > plateau, abs(xi) - plateau, 0.0)
    scale = 1.0 / fma(growth * excess * excess, excess, 1.0)
    slope = 3.0 * growth * excess * excess * scale * scale
    return scale, select(xi > 0.0, -slope, slope)


@kernel
def find_kicks(kicks, step_size, temperature, parameters):
    """kicks (KICKS, lane) ← what step sizes and temperatures give, for ``temper_continuously``."""
    for lane in range(temperature.size):
        h = select(parameters[2] > 0.0, parameters[2], step_size[lane])
        kicks[DRIFT, lane] = math.sqrt(h)
        kicks[INJECTED, lane] = math.sqrt(2.0 * parameters[3] * temperature[lane])


@kernel
def temper_continuously(
    rows, bias, visits, kicks, noisy_energy, temperature, scale, noise, fresh, parameters, step
):  # fmt: skip
    """One step of ξ in every lane; true where momenta were due to be drawn afresh, and were where RENEWED is not 0.

    noise, fresh: (lane,), standard normals. scale: (lane,), set to λ at the ξ where the step begins. COUNTED is set
    by the ξ where it ends, which belongs to the position that the move to come will reach.
    """
    plateau, growth, inertia = parameters[0], parameters[1], parameters[4]
    lanes = scale.size
    xi, momentum, thermostat, weight, slope = rows[XI], rows[MOMENTUM], rows[THERMOSTAT], rows[COUNTED], rows[SLOPE]
    root, force, renewed, drift, injected = rows[ROOT], rows[FORCE], rows[RENEWED], kicks[DRIFT], kicks[INJECTED]
    for lane in range(lanes):
        scale[lane], slope[lane] = coupling(xi[lane], plateau, growth)
    for lane in range(lanes):
        moves = (temperature[lane] > 0.0) & (noisy_energy[lane] - noisy_energy[lane] == 0.0)
        root[lane] = select(moves, drift[lane], 0.0)

    due = step % np.int64(parameters[8]) == 0
    if due:
        for lane in range(lanes):
            renews = (slope[lane] == 0.0) & (root[lane] > 0.0)
            renewed[lane] = select(renews, 1.0, 0.0)
            momentum[lane] = select(renews, math.sqrt(temperature[lane]) * fresh[lane], momentum[lane])
    if parameters[7] != 0.0:
        for lane in range(lanes):
            rate = slope[lane] * root[lane]
            share = 1.0 - 0.5 * slope[lane] * slope[lane] * thermostat[lane]  # as in Nosé–Hoover dynamics
            heat = fma(share * momentum[lane], momentum[lane], -temperature[lane])
            thermostat[lane] += select(root[lane] > 0.0, rate * rate * heat / inertia, 0.0)
    push_and_learn(rows, bias, visits, noisy_energy, temperature, parameters[5], parameters[6])
    for lane in range(lanes):
        kick = slope[lane] * fma(injected[lane], noise[lane], -root[lane] * noisy_energy[lane])
        damping = slope[lane] * slope[lane] * thermostat[lane]
        kicked = fma(-damping, momentum[lane], momentum[lane]) + fma(root[lane], force[lane], kick)
        momentum[lane] = select(root[lane] > 0.0, kicked, momentum[lane])
    for lane in range(lanes):
        moved = fma(root[lane], momentum[lane], xi[lane])
        inside = abs(moved) <= 1.0  # false for nan, so that ξ always lies in a bin
        xi[lane] = select(inside, moved, xi[lane])
        momentum[lane] = select(inside, momentum[lane], -momentum[lane])
        weight[lane] = select(abs(xi[lane]) <= plateau, 1.0, 0.0)
    return due


@kernel
def push_and_learn(rows, bias, visits, noisy_energy, temperature, kind, height):
    """Read the bias's force on ξ at every lane into FORCE, then learn from this step; lane by lane, for its tables."""
    xi, slope, root, force, deposits = rows[XI], rows[SLOPE], rows[ROOT], rows[FORCE], rows[DEPOSITS]
    n_bins = bias.shape[0]
    for lane in range(force.size):
        place = abs(xi[lane]) * n_bins
        side = select(xi[lane] < 0.0, -1.0, 1.0)
        moves = root[lane] > 0.0
        here = min(np.int64(place), n_bins - 1)
        force[lane] = 0.0
        if moves:
            visits[here, lane] += 1.0
        if kind == ABF:
            force[lane] = side * bias[here, lane]
            if moves:
                bias[here, lane] += (side * slope[lane] * noisy_energy[lane] - bias[here, lane]) / visits[here, lane]
        elif kind == METADYNAMICS:  # linear between the bins' centres, and flat beyond the first and the last
            centre = math.floor(place - 0.5)
            lower, upper = max(np.int64(centre), 0), min(np.int64(centre) + 1, n_bins - 1)
            force[lane] = -side * (bias[upper, lane] - bias[lower, lane]) * n_bins
            if moves:
                deposits[lane] += 1.0
                added = temperature[lane] * smaller(height, n_bins / deposits[lane])
                share = place - 0.5 - centre
                bias[lower, lane] += (1.0 - share) * added
                bias[upper, lane] += share * added


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


@kernel
def renew_momenta(state, numbers, step):
    """Draw momenta afresh in the lanes whose tempering variable has just had its own renewed."""
    renewed, temperature = state.continuous.rows[RENEWED], state.rows[TEMPERATURE]
    fill_normals(state.noise, numbers.seed, state.chain, state.replica, uint64(step), uint64(REFRESH))
    for d in range(state.momentum.shape[0]):
        for lane in range(temperature.size):
            fresh = math.sqrt(temperature[lane]) * state.noise[d, lane]
            state.momentum[d, lane] = select(renewed[lane] != 0.0, fresh, state.momentum[d, lane])
