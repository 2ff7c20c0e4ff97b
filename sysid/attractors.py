"""What a system does in the long run: its largest Lyapunov exponent, and where its states are how often."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolkit.checks import check_array, check_count, check_instance, check_number, check_real_array

from .integrate import DONE, STATUS_WORDS, rows_of, solve
from .system import System

__all__ = ["Exponent", "Histograms", "histograms", "largest_lyapunov"]

Array = NDArray[np.float64]
TINY = 1e-40  # of a tangent beside its state, as their imaginary part


class Exponent(NamedTuple):
    """A Lyapunov exponent, in 1 / the unit of time, with its standard error. paths: (n,) that of each path."""

    value: float
    standard_error: float
    paths: Array


def largest_lyapunov(
    system: System,
    parameters: Any = None,
    start: Any = None,
    *,
    time: float = 250.0,
    burn_in: float = 50.0,
    interval: float = 1.0,
    step: float = 0.01,
    n_paths: int = 16,
    seed: int = 0,
    method: str = "rk4",
) -> Exponent:
    """Largest Lyapunov exponent: the mean growth of log |tangent| over ``time`` after ``burn_in``, of several paths.

    The tangent is carried as an imaginary part, so its growth is that of the solver's own steps to rounding; it is
    made a unit vector again after each ``interval``. parameters (n_parameters,), start (dim,): None: the usual ones;
    each path starts from there with 1 % noise, and a tangent of random direction. step: of "rk4" or "rk5".
    The standard error is of the mean of paths, and true where these forget their starts within burn_in. Law: 0 for
    limit cycles, but for O(1/time). Source: Benettin et al. (1980), Meccanica 15, 9.
    Raises TypeError or ValueError naming the argument; ArithmeticError where a path blows up.
    """
    check_instance("system", system, System)
    time, interval = check_number("time", time, above=0.0), check_number("interval", interval, above=0.0)
    burn_in = check_number("burn_in", burn_in, at_least=0.0)
    n_paths = check_count("n_paths", n_paths, at_least=2, below=2**16)
    draws = np.random.default_rng(check_count("seed", seed, at_least=0, below=2**64))
    if method not in ("rk4", "rk5"):
        raise ValueError(f"method must be 'rk4' or 'rk5', got {method!r}")
    p = rows_of("parameters", system.usual if parameters is None else parameters, system.n_parameters, False)
    x = rows_of("start", system.start if start is None else start, system.dim, False)
    if len(p) > 1 or len(x) > 1:
        raise ValueError(f"parameters and start must be of one system, got {len(p)} and {len(x)}")
    states = x * (1.0 + 0.01 * draws.standard_normal((n_paths, system.dim)))
    tangents = draws.standard_normal(states.shape)
    tangents /= np.linalg.norm(tangents, axis=1, keepdims=True)
    n_burnt, n_kept = int(np.ceil(burn_in / interval)), int(np.ceil(time / interval))
    grown = np.zeros(n_paths)
    for k in range(n_burnt + n_kept):
        times = [k * interval, (k + 1) * interval]
        found = solve(system, times, p[0], states + 1j * TINY * tangents, method=method, step=step)
        if (found.status != DONE).any():
            lost = int(np.flatnonzero(found.status != DONE)[0])
            raise ArithmeticError(
                f"{system.name} has no exponent: path {lost} {STATUS_WORDS[found.status[lost]]} near t = {times[0]:g}"
            )
        states, tangents = found.states[:, 1].real, found.states[:, 1].imag / TINY
        growth = np.linalg.norm(tangents, axis=1)
        if not (np.isfinite(growth) & (growth > 0.0)).all():
            raise ArithmeticError(
                f"{system.name}: tangents grow by {growth.max():g} in interval = {interval:g}: shorten it"
            )
        tangents /= growth[:, None]
        if k >= n_burnt:
            grown += np.log(growth)
    paths = grown / (n_kept * interval)
    return Exponent(float(paths.mean()), float(paths.std(ddof=1) / np.sqrt(n_paths)), paths)


class Histograms(NamedTuple):
    """How often each state is where. edges: (dim, bins + 1). shares: (dim, bins + 2), outermost what is beyond."""

    edges: Array
    shares: Array

    def distance(self, other: "Histograms") -> Array:
        """Total variation (dim,) between the shares of both: 0 where equal, 1 where they have no bin in common.

        Of n independent states in each it is some √(bins / (2 n)) by chance; those of one path are fewer than n.
        Raises ValueError for other edges.
        """
        if not np.array_equal(self.edges, other.edges):
            raise ValueError("histograms must have the same edges: give those of one to the other")
        return np.asarray(0.5 * np.abs(self.shares - other.shares).sum(axis=1))


def histograms(states: Any, *, edges: Any = None, bins: int = 40) -> Histograms:
    """How often states (…, dim) are in each of some bins; states that are nan are left out.

    edges: (dim, bins + 1), as of the truth's histograms; None: ``bins`` equal ones over the range of the states.
    Raises ValueError where no state is finite, or the edges have another shape or do not increase.
    """
    points = check_real_array("states", states)
    if points.ndim < 2:
        raise ValueError(f"states must have shape (…, dim), got {points.shape}")
    points = points.reshape(-1, points.shape[-1])
    points = points[np.isfinite(points).all(axis=1)]
    if not len(points):
        raise ValueError("states must be finite at some time, and are at none")
    if edges is None:
        bins = check_count("bins", bins, at_least=1, below=2**20)
        low, high = points.min(axis=0), points.max(axis=0)
        high = np.where(high > low, high, low + np.maximum(np.abs(low), 1.0))
        table = np.linspace(low, high, bins + 1).T
    else:
        table = check_array("edges", edges)
        if table.ndim != 2 or len(table) != points.shape[1] or table.shape[1] < 2 or (np.diff(table) <= 0.0).any():
            raise ValueError(f"edges must increase and have shape ({points.shape[1]}, bins + 1), got {table.shape}")
    shares = np.empty((len(table), table.shape[1] + 1))
    for d, (row, column) in enumerate(zip(table, points.T, strict=True)):
        inside = np.searchsorted(row, column, side="right")
        inside[column == row[-1]] = row.size - 1  # the last bin has its right edge
        shares[d] = np.bincount(inside, minlength=row.size + 1) / len(points)
    return Histograms(table, shares)
