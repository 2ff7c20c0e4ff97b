"""Integral conditions that a model's equations put on a path, and the step of a path to them."""

from typing import NamedTuple

import numpy as np
import scipy

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
    stacked = np.stack([values[:-1:2], values[1::2], (values if ends is None else ends)[2::2]])
    return np.asarray(np.moveaxis(np.tensordot(weights, stacked, axes=1), 0, 1))


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
    windows = len(targets)
    size = 2 * dim * nodes - dim
    at_node = 2 * dim * np.arange(nodes)[:, None] + np.arange(dim)
    at_window = (2 * dim * np.arange(2 * windows)[:, None] + dim + np.arange(dim)).reshape(windows, 2, dim)
    width = 4 * dim - 1
    band = np.zeros((2 * width + 1, size))
    band[width, at_node] = weights
    slopes = (jacobian, jacobian, jacobian if ends is None else ends)
    for row in range(2):
        for j in range(3):
            block = (
                CHANGE[row, j] * np.eye(dim)
                - (grid.half_widths * INTEGRAL[row, j])[:, None, None] * slopes[j][j : j + 2 * windows : 2]
            )
            window_index, node_index = at_window[:, row, :, None], at_node[j : j + 2 * windows : 2, None, :]
            band[width + window_index - node_index, node_index + 0 * window_index] = block
            band[width + node_index - window_index, window_index + 0 * node_index] = block
    right_side = np.zeros((size, columns))
    right_side[at_node] = gradient
    right_side[at_window] = targets
    solution = scipy.linalg.solve_banded(
        (width, width), band, right_side, overwrite_ab=True, overwrite_b=True, check_finite=False
    )
    return solution[at_node], solution[at_window]
