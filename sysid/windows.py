"""Integral conditions of a path on windows of its nodes: what the weak form asks, by Simpson's parabola.

On a window of nodes a, b, c, a half width h apart, the test functions are the box and the Haar step. Integrated against
dx/dt = f, with the parabola through f(a), f(b), f(c) in place of f, they give
    x_c − x_a = h/3 (f_a + 4 f_b + f_c)         and         x_b − ½ (x_a + x_c) = h/4 (f_a − f_c),
of order 4 in h (the three-stage Lobatto IIIA method; Hairer, Nørsett & Wanner 1993, II.7).
"""

import functools
import math
from typing import Any, NamedTuple

import numpy as np
import scipy
from numba.core.dispatcher import Dispatcher
from numpy.typing import NDArray

from .libraries import Library, column_of
from .series import Series
from .system import analytic

Array = NDArray[np.float64]
STEP = 1e-40  # of complex steps: its square is 0 beside any state
CHANGE = np.array([[-1.0, 0.0, 1.0], [-0.5, 1.0, -0.5]])  # of x, by the box and by the Haar step
INTEGRAL = np.array([[1.0, 4.0, 1.0], [0.75, 0.0, -0.75]]) / 3.0  # of f, in half widths
PENALTIES = 10.0 ** np.arange(-2.0, 12.1, 0.5)  # in units of nodes: lengths from 0.3 to 1000 nodes
N_PROBES = 4  # of the trace
CHECKED = 24  # states at which derivatives are compared with differences


class Grid(NamedTuple):
    """Nodes in time, an odd number; window k has nodes 2k, 2k + 1, 2k + 2, equally far apart.

    times: (nodes,). samples: (n,), the node of each sample.
    """

    times: Array
    samples: NDArray[np.int64]

    @property
    def halves(self) -> Array:
        """Half widths (windows,)."""
        return np.asarray(self.times[1::2] - self.times[:-1:2])


def grid_of(times: Array, substeps: int) -> Grid:
    """Nodes at ``times`` (n,) and, evenly, between them, ``substeps`` intervals for one; a power of 2.

    Where ``substeps`` is 1, two equal intervals in a row make a window, and an interval without its like is halved.
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


def smooth(series: Series, times: Array) -> tuple[Array, Array]:
    """Path and velocities (nodes, dim) of the values present: least squares with a penalty on second differences.

    The penalty's weight is that of least generalised cross-validation error, state by state.
    """
    samples = np.searchsorted(times, series.times - 1e-9 * np.diff(series.times).min())
    scaled = (times - times[0]) / (times[-1] - times[0]) * (times.size - 1)
    bend = bending(scaled)
    probes = np.random.default_rng(0).choice([-1.0, 1.0], (times.size, N_PROBES))
    path = np.empty((times.size, len(series.states)))
    for d, column in enumerate(series.values.T):
        there = ~np.isnan(column)
        weights, values = np.zeros(times.size), np.zeros(times.size)
        weights[samples[there]], values[samples[there]] = 1.0, column[there]
        right = weights[:, None] * np.column_stack([values, probes])
        best = math.inf
        for weight in PENALTIES:
            banded = weight * bend
            banded[-1] += weights
            try:
                smoothed = scipy.linalg.solveh_banded(banded, right, check_finite=False)
            except np.linalg.LinAlgError:
                continue
            freedom = weights.sum() - np.mean(np.sum(right[:, 1:] * smoothed[:, 1:], axis=0))
            score = np.sum(weights * (values - smoothed[:, 0]) ** 2) / max(freedom, 1e-6 * times.size) ** 2
            if score < best:
                best, path[:, d] = score, smoothed[:, 0]
        if best == math.inf:
            path[:, d] = np.interp(series.times, series.times[there], column[there])
    return path, np.asarray(np.gradient(path, times, axis=0))


def bending(times: Array) -> Array:
    """Σ of squared second divided differences, weighted by their spans, as an upper band (3, nodes)."""
    gaps = np.diff(times)
    spans = times[2:] - times[:-2]
    rows = np.stack([1.0 / gaps[:-1], -1.0 / gaps[:-1] - 1.0 / gaps[1:], 1.0 / gaps[1:]]) / np.sqrt(0.5 * spans)
    band = np.zeros((3, times.size))
    for i in range(3):
        for j in range(i, 3):
            band[2 - (j - i), j : j + spans.size] += rows[i] * rows[j]
    return band


def slopes(library: Library, path: Array) -> Array:
    """∂θ_t/∂x_d (nodes, terms, dim) at a path (nodes, dim), by complex steps."""
    out = np.empty((len(path), len(library), path.shape[1]))
    for d in range(path.shape[1]):
        columns: tuple[Any, ...] = tuple(path[:, e] + (1j * STEP if e == d else 0.0) for e in range(path.shape[1]))
        for k, term in enumerate(library.terms):
            if term.own is None:
                value = column_of(term, columns)
            else:
                own = compiled_once(term.own) if isinstance(term.own, Dispatcher) else term.own
                value = np.array([complex(own(point)) for point in zip(*columns, strict=True)])
            out[:, k, d] = np.imag(value) / STEP
    return out


def check_slopes(library: Library, states: Array) -> None:
    """Raise ValueError where a user's own term is not analytic at some of ``states`` (n, dim): by differences."""
    if all(term.own is None for term in library.terms):
        return
    some = states[np.unique(np.linspace(0.0, len(states) - 1, CHECKED).round().astype(np.int64))]
    exact, sizes = slopes(library, some), np.maximum(np.abs(some), 1e-3)
    for d, state in enumerate(library.states):
        moves, size = np.where(np.arange(some.shape[1]) == d, 6e-6 * sizes, 0.0), sizes[:, d, None]
        with np.errstate(all="ignore"):
            short, long = (
                (library.evaluate(some + f * moves) - library.evaluate(some - f * moves)) / (1.2e-5 * f * size)
                for f in (1.0, 2.0)
            )
            rounding = 1e-6 * np.abs(library.evaluate(some)) / size + 1e-9 * (1.0 + np.abs(some).max())
            doubt = 20.0 * np.abs(long - short) + rounding
            wrong = ~(np.abs(exact[:, :, d] - short) <= 1e-4 * np.abs(short) + doubt) & np.isfinite(doubt)
        if wrong.any():
            row, k = np.argwhere(wrong)[0]
            raise ValueError(
                f"functions must be analytic, but at {library.states} = {some[row].tolist()} the derivative of "
                f"{library.names[k]!r} with respect to {state} is {exact[row, k, d]:.6g} by a complex step and "
                f"{short[row, k]:.6g} by differences: write abs(x) as np.sqrt(x*x), and use no sign, min or max"
            )


@functools.cache
def compiled_once(function: Any) -> Any:
    """A compiled function as it is for complex steps, whose globals Numba has frozen already."""
    return analytic(function)


def by_windows(values: Array, weights: Array) -> Array:
    """Σ_j weights_rj values_(2k+j): (windows, 2, …) of values (nodes, …), for the box and the Haar step r."""
    stacked = np.stack([values[:-1:2], values[1::2], values[2::2]])
    return np.asarray(np.moveaxis(np.tensordot(weights, stacked, axes=1), 0, 1))


def defects(grid: Grid, path: Array, velocity: Array) -> Array:
    """By how much a path (nodes, dim) misses the conditions (windows, 2, dim), given f on it (nodes, dim)."""
    return by_windows(path, CHANGE) - grid.halves[:, None, None] * by_windows(velocity, INTEGRAL)


def solve(grid: Grid, weights: Array, jacobian: Array, pull: Array, targets: Array) -> tuple[Array, Array]:
    """The path step δ (nodes, dim, m) least in ½ δᵀWδ − pullᵀδ under Aδ = targets, and the multipliers.

    weights: W (nodes, dim). jacobian: df/dx (nodes, dim, dim). pull: (nodes, dim, m). targets: (windows, 2, dim, m).
    Multipliers: (windows, 2, dim, m). Banded, nodes and windows in order of time. Raises LinAlgError where singular.
    """
    nodes, dim, many = pull.shape
    windows = len(targets)
    size = 2 * dim * nodes - dim
    at_node = 2 * dim * np.arange(nodes)[:, None] + np.arange(dim)
    at_window = (2 * dim * np.arange(2 * windows)[:, None] + dim + np.arange(dim)).reshape(windows, 2, dim)
    width = 4 * dim - 1
    band = np.zeros((2 * width + 1, size))
    band[width, at_node] = weights
    for row in range(2):
        for j in range(3):
            block = (
                CHANGE[row, j] * np.eye(dim)
                - (grid.halves * INTEGRAL[row, j])[:, None, None] * jacobian[j : j + 2 * windows : 2]
            )
            down, along = at_window[:, row, :, None], at_node[j : j + 2 * windows : 2, None, :]
            band[width + down - along, along + 0 * down] = block
            band[width + along - down, down + 0 * along] = block
    right = np.zeros((size, many))
    right[at_node] = pull
    right[at_window] = targets
    solution = scipy.linalg.solve_banded(
        (width, width), band, right, overwrite_ab=True, overwrite_b=True, check_finite=False
    )
    return solution[at_node], solution[at_window]
