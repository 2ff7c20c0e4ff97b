"""Integral conditions that a model's equations put on a path, and the step of a path to them."""

import functools
from typing import Any, NamedTuple

import numpy as np
import scipy
from numba import types

from toolkit._compiler import compile_part, kernel

from ..arrays import Array, Integers

# Integral conditions of a path on windows of its nodes. On a window of nodes a, b, c, a half width h apart, the test
# functions are the box and the Haar step. Integrated against dx/dt = f, with the parabola through f(a), f(b), f(c):
#     x_c − x_a = h/3 (f_a + 4 f_b + f_c)     and     x_b − ½ (x_a + x_c) = h/4 (f_a − f_c),
# of order 4 in h (the three-stage Lobatto IIIA method; Hairer, Nørsett & Wanner 1993, II.7).

CHANGE = np.array([[-1.0, 0.0, 1.0], [-0.5, 1.0, -0.5]])  # of x, by the box and by the Haar step
INTEGRAL = np.array([[1.0, 4.0, 1.0], [0.75, 0.0, -0.75]]) / 3.0  # of f, in half widths


class Grid(NamedTuple):
    """Nodes in time, an odd number; window k has nodes 2k, 2k + 1, 2k + 2, equally far apart.

    times: (nodes,). samples: (n,), the node of each sample.
    """

    times: Array
    samples: Integers

    @property
    def half_widths(self) -> Array:
        """Half widths (windows,)."""
        return np.asarray(self.times[1::2] - self.times[:-1:2])


def grid_of(times: Array, substeps: int) -> Grid:
    """Nodes at ``times`` (n,) and, evenly, between them, ``substeps`` intervals for one; a power of 2.

    Where ``substeps`` is 1, two equal intervals in a row make a window; other intervals are halved.
    """
    gaps = np.diff(times)
    parts = np.full(gaps.size, substeps)
    if substeps == 1:
        k = 0
        while k < gaps.size:
            paired = k + 1 < gaps.size and abs(gaps[k + 1] - gaps[k]) <= 1e-6 * gaps[k]
            parts[k] = 1 if paired else 2
            k += 2 if paired else 1
    samples = np.concatenate([[0], np.cumsum(parts)])
    nodes = np.interp(np.arange(samples[-1] + 1), samples, times)
    return Grid(nodes, samples)


def by_windows(values: Array, weights: Array, ends: Array | None = None) -> Array:
    """Σ_j weights_rj values_(2k+j): (windows, 2, …) of values (nodes, …), for the box and the Haar step r.

    ends: values (nodes, …) where a window ends, if they jump from one window to the next.
    """
    stacked = np.empty((3, len(values) // 2, *values.shape[1:]))
    stacked[0], stacked[1] = values[:-1:2], values[1::2]
    stacked[2] = (values if ends is None else ends)[2::2]
    summed = np.dot(weights, stacked.reshape(3, -1))
    return np.asarray(summed.reshape(2, *stacked.shape[1:]).swapaxes(0, 1))


def integrals(grid: Grid, values: Array, ends: Array | None = None) -> Array:
    """Integrals (windows, 2, …) of values (nodes, …) over the windows, against the box and the Haar step."""
    half_widths = grid.half_widths.reshape(-1, *(1,) * values.ndim)
    return np.asarray(half_widths * by_windows(values, INTEGRAL, ends))


def defects(grid: Grid, path: Array, velocity: Array, ends: Array | None = None) -> Array:
    """Defects (windows, 2, dim) of a path (nodes, dim) in the conditions, given f on it (nodes, dim)."""
    return by_windows(path, CHANGE) - integrals(grid, velocity, ends)


def solve_path_step(
    grid: Grid, weights: Array, jacobian: Array, gradient: Array, targets: Array, ends: Array | None = None
) -> tuple[Array, Array]:
    """The path step δ (nodes, dim, m) least in ½ δᵀWδ − pullᵀδ under Aδ = targets, and the multipliers.

    weights: W (nodes, dim). jacobian: df/dx (nodes, dim, dim); ends: where a window ends, if it jumps. gradient:
    (nodes, dim, m). targets and multipliers: (windows, 2, dim, m). Banded, nodes and windows in order of time. Raises
    LinAlgError where singular.
    """
    nodes, dim, columns = gradient.shape
    width = 4 * dim - 1
    band = np.zeros((2 * dim * nodes - dim, 3 * width + 1))
    slopes = np.ascontiguousarray(jacobian)
    slopes_at_ends = slopes if ends is None else np.ascontiguousarray(ends)
    compiled_band()(band, weights, slopes, slopes_at_ends, grid.half_widths)
    right_side = np.zeros((2 * nodes, dim, columns))  # states of a node, then multipliers of one test function, in turn
    right_side[::2] = gradient
    right_side[1:-1:2] = targets.reshape(nodes - 1, dim, columns)
    _, _, solution, info = scipy.linalg.lapack.dgbsv(
        width, width, band.T, right_side[:-1].reshape(-1, columns), overwrite_ab=True, overwrite_b=True
    )
    if info > 0:
        raise np.linalg.LinAlgError("singular matrix")
    by_turns = np.ascontiguousarray(solution).reshape(2 * nodes - 1, dim, columns)
    return by_turns[::2], by_turns[1::2].reshape(targets.shape)


@kernel
def fill_band(band, weights, slopes, slopes_at_ends, half_widths):
    """band ← the matrix of ``solve_path_step`` by columns, as LAPACK's ``gbsv`` takes them; it is 0 before.

    slopes: df/dx (nodes, dim, dim); slopes_at_ends: where a window ends.
    """
    nodes, dim = weights.shape
    middle = 2 * (band.shape[1] - 1) // 3  # of a column: its entry on the diagonal, after room for pivots
    for i in range(nodes):
        for d in range(dim):
            band[2 * dim * i + d, middle] = weights[i, d]
    for window in range(half_widths.shape[0]):
        for row in range(2):
            first = 2 * dim * (2 * window + row) + dim  # of the multipliers
            for j in range(3):
                node = 2 * window + j
                weight = half_widths[window] * INTEGRAL[row, j]
                for d in range(dim):
                    for e in range(dim):
                        slope = slopes_at_ends[node, d, e] if j == 2 else slopes[node, d, e]
                        entry = (CHANGE[row, j] if d == e else 0.0) - weight * slope
                        of_condition, of_state = first + d, 2 * dim * node + e
                        band[of_state, middle + of_condition - of_state] = entry
                        band[of_condition, middle + of_state - of_condition] = entry


@functools.cache
def compiled_band() -> Any:
    """``fill_band`` as machine code."""
    matrix, cube = types.float64[:, ::1], types.float64[:, :, ::1]
    return compile_part(fill_band.py_func, types.void(matrix, matrix, cube, cube, types.float64[::1]))
