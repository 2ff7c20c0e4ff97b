"""The scalar loop of r2SGLD within a polygon, chain by chain, np.random.normal."""

import math

import numpy as np
from numba import njit

from toolkit.boundaries.polygon import (
    ALL_PIECES,
    CELLS,
    CORNER_X,
    CORNER_Y,
    HEADER,
    INSIDE,
    N_EDGES,
    SCALE,
    SIDE,
    grid_cell,
    is_outside,
    nearest_edge,
)

from .scalar_targets import cosine25


@njit(nogil=True)
def reflect(x, y, old_x, old_y, real, whole):
    """The toolkit's own reflection, for one point: grid first, then the listed pieces, up to 256 bounces."""
    n_edges = np.int64(whole[N_EDGES])
    for _ in range(256):
        cell = np.int64(grid_cell(x, y, real[CORNER_X], real[CORNER_Y], real[SCALE], whole[SIDE]))
        start = whole[ALL_PIECES] if cell < 0 else whole[CELLS + cell]
        if start == INSIDE:
            return x, y
        _, edge, along = nearest_edge(x, y, real, n_edges, whole, start + 1, whole[start])
        if cell >= 0 and not is_outside(x, y, real, n_edges, edge, along):
            return x, y
        e = HEADER + edge
        x = 2.0 * (real[e] + along * real[e + 2 * n_edges]) - x
        y = 2.0 * (real[e + n_edges] + along * real[e + 3 * n_edges]) - y
    return old_x, old_y


@njit(nogil=True)
def r2sgld_cosine25(n_steps, n_chains, sizes, temperatures, gradient_noise, energy_noise, out, real, whole):
    """Two replicas per chain, noisy gradients and energies, random swaps with the fitting correction, reflection."""
    slope = 1.0 / temperatures[0] - 1.0 / temperatures[1]
    x, y = np.zeros(2), np.zeros(2)
    noisy = np.zeros(2)
    for c in range(n_chains):
        x[:], y[:] = 0.0, 0.0
        for _ in range(n_steps):
            for r in range(2):
                energy, slope_x, slope_y = cosine25(x[r], y[r])
                noisy[r] = energy + energy_noise * np.random.normal()
                slope_x += gradient_noise * np.random.normal()
                slope_y += gradient_noise * np.random.normal()
                kick = math.sqrt(2.0 * sizes[r] * temperatures[r])
                new_x = x[r] - sizes[r] * slope_x + kick * np.random.normal()
                new_y = y[r] - sizes[r] * slope_y + kick * np.random.normal()
                x[r], y[r] = reflect(new_x, new_y, x[r], y[r], real, whole)
            if np.random.random() < math.exp(slope * (noisy[0] - noisy[1] - slope * energy_noise**2)):
                x[0], x[1] = x[1], x[0]
                y[0], y[1] = y[1], y[0]
        out[c, 0], out[c, 1] = x[0], y[0]
