"""Start values for trajectories: states by smoothing, parameters by matching the right-hand side to them."""

import functools
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from .conditioning import descend
from .model import Model
from .search_progress import SearchProgress
from .shots import Shot

Array = NDArray[np.float64]
PARTS = 4  # of each interval between data, for its integral by Simpson's rule, twice
SIMPSON = np.array([1.0, 4.0, 2.0, 4.0, 1.0]) / 12.0
FEW, MANY = 6, 200  # data, below which a spline is none, and above which it has fewer knots than data
SPACINGS = (2, 3, 4, 6, 9, 13, 20, 30, 45)


def smoothed_states(times: Array, values: Array, fallback: Array, *, logarithmic: bool) -> tuple[Array, Array]:
    """States at ``times`` (n, dim) and at five points of every interval (n − 1, 5, dim), by smoothing splines.

    The splines' roughness is that of generalised cross-validation; with few data they are straight lines. A state that
    was never measured is taken to stay at ``fallback``.
    """
    fine = times[:-1, None] + np.diff(times)[:, None] * np.linspace(0.0, 1.0, PARTS + 1)
    at, between = np.empty(values.shape), np.empty((*fine.shape, values.shape[1]))
    for d in range(values.shape[1]):
        there = ~np.isnan(values[:, d])
        if not there.any():
            at[:, d], between[..., d] = fallback[d], fallback[d]
            continue
        t = (times - times[0]) / (times[-1] - times[0]) * len(times)
        inner = (fine - times[0]) / (times[-1] - times[0]) * len(times)
        known = np.log(values[there, d]) if logarithmic else values[there, d]
        curve = smooth_curve(t[there], known)
        change = np.exp if logarithmic else np.asarray
        at[:, d], between[..., d] = change(curve(t)), change(curve(inner))
    return at, between


def smooth_curve(t: Array, known: Array) -> Any:
    """A curve near ``known`` (n,) at ``t`` (n,), as smooth as generalised cross-validation has it (Wahba 1990)."""
    if t.size < FEW:
        return functools.partial(np.interp, xp=t, fp=known)
    if t.size <= MANY:
        return scipy.interpolate.make_smoothing_spline(t, known)
    curves: list[tuple[float, int, Any]] = []
    for (
        apart
    ) in SPACINGS:  # of knots: fewer of them are smoother, and cost n, where a smoothing spline's choice costs more
        knots = np.concatenate([np.full(4, t[0]), t[apart:-apart:apart], np.full(4, t[-1])])
        curve = scipy.interpolate.make_lsq_spline(t, known, knots)
        misfit = float(((curve(t) - known) ** 2).sum())
        curves.append((misfit / (1.0 - (knots.size - 4) / t.size) ** 2, len(curves), curve))
    return min(curves)[2]


def matched_parameters(model: Model, times: Array, between: Array) -> Array:
    """Parameters (n,) whose right-hand side, integrated over each interval, comes nearest to the states' increments."""
    n_intervals, points, dim = between.shape
    terms = model.library.evaluate(between.reshape(-1, dim)).reshape(n_intervals, points, -1)
    integrals = np.einsum("ijk,j->ik", terms, SIMPSON) * np.diff(times)[:, None]
    increments = between[:, -1] - between[:, 0] - integrals @ model.constant
    design = np.einsum("ik,pke->iep", integrals, model.directions)
    scale = 1.0 / np.maximum(np.abs(increments).mean(axis=0), 1e-300)
    rows = (design * scale[:, None]).reshape(-1, len(model.parameters))
    size = np.maximum(np.abs(rows).max(axis=0), 1e-300)
    solution = np.linalg.lstsq(rows / size, (increments * scale).ravel(), rcond=1e-10)[0]
    return np.asarray(solution / size)


def polished(
    shot: Shot, theta: Array, least: Array, *, n_iterations: int, progress: SearchProgress | None = None
) -> tuple[Array, float]:
    """A θ of lower energy than ``theta`` where one is found, and its energy.

    Parameters that must be positive are moved by logarithms.
    progress: what counts the evaluations, and may end them.
    least: where > 0, what that parameter does not come far below, though the energy has no lower bound.
    """
    positive = np.array(shot.positive)

    def evaluate(points: Array) -> tuple[Array, Array]:
        at = np.where(positive, np.exp(np.clip(points, -300.0, 300.0)), points)
        energy, slope = shot.evaluate(at)
        if progress is not None:
            progress.count(energy)
        barrier = (np.divide(least, at, out=np.zeros_like(at), where=least > 0.0)) ** 2
        barrier = np.where(np.isfinite(energy)[:, None], barrier * len(shot.numbers), 0.0)
        return energy + barrier.sum(axis=1), np.where(positive, at * slope, slope) - 2.0 * barrier

    start = np.where(positive, np.log(np.where(positive, theta, 1.0)), theta)
    position, _, _ = descend(evaluate, start, n_iterations=n_iterations)
    found = np.where(positive, np.exp(np.where(positive, position, 0.0)), position)
    (before, after), _ = shot.evaluate(np.array([theta, found]))
    return (found, float(after)) if np.isfinite(after) else (theta, float(before))
