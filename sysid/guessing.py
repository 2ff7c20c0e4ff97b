"""Start values for trajectories: states by smoothing, parameters by matching the right-hand side to them."""

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import make_smoothing_spline

from .conditioning import descend
from .model import Model
from .shots import Shot

Array = NDArray[np.float64]
PARTS = 4  # of each interval between data, for its integral by Simpson's rule, twice
SIMPSON = np.array([1.0, 4.0, 2.0, 4.0, 1.0]) / 12.0
FEW = 6  # data, below which a spline is none


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
        if there.sum() < FEW:
            curve: Any = functools.partial(np.interp, xp=t[there], fp=known)
        else:
            curve = make_smoothing_spline(t[there], known)
        change = np.exp if logarithmic else np.asarray
        at[:, d], between[..., d] = change(curve(t)), change(curve(inner))
    return at, between


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


def polished(shot: Shot, theta: Array, *, n_iterations: int) -> tuple[Array, float]:
    """A θ of lower energy than ``theta``, and its energy; parameters that must be positive are moved by logarithms."""
    positive = np.array(shot.positive)

    def evaluate(points: Array) -> tuple[Array, Array]:
        at = np.where(positive, np.exp(np.clip(points, -300.0, 300.0)), points)
        energy, slope = shot.evaluate(at)
        return energy, np.where(positive, at * slope, slope)

    start = np.where(positive, np.log(np.where(positive, theta, 1.0)), theta)
    position, energy, _ = descend(evaluate, start, n_iterations=n_iterations)
    return np.where(positive, np.exp(np.where(positive, position, 0.0)), position), energy
