"""Paths and velocities of noisy states without a model: least squares with a penalty on second differences."""

import math

import numpy as np
import scipy

from ..arrays import Array
from ..data.series import Series

PENALTY_WEIGHTS = 10.0 ** np.arange(-2.0, 12.1, 0.5)  # in units of nodes: lengths from 0.3 to 1000 nodes
N_PROBES = 4  # of the trace


def smooth(series: Series, times: Array) -> tuple[Array, Array]:
    """Path and velocities (nodes, dim) of the values present: least squares with a penalty on second differences.

    The penalty's weight is that of least generalised cross-validation error, state by state.
    """
    samples = np.searchsorted(times, series.times - 1e-9 * np.diff(series.times).min())
    scaled = (times - times[0]) / (times[-1] - times[0]) * (times.size - 1)
    penalty = curvature_penalty(scaled)
    probes = np.random.default_rng(0).choice([-1.0, 1.0], (times.size, N_PROBES))
    path = np.empty((times.size, len(series.states)))
    for d, column in enumerate(series.values.T):
        present = ~np.isnan(column)
        weights, values = np.zeros(times.size), np.zeros(times.size)
        weights[samples[present]], values[samples[present]] = 1.0, column[present]
        right_side = weights[:, None] * np.column_stack([values, probes])
        best = math.inf
        for weight in PENALTY_WEIGHTS:
            banded = weight * penalty
            banded[-1] += weights
            try:
                smoothed = scipy.linalg.solveh_banded(banded, right_side, check_finite=False)
            except np.linalg.LinAlgError:
                continue
            freedom = weights.sum() - np.mean(np.sum(right_side[:, 1:] * smoothed[:, 1:], axis=0))
            score = np.sum(weights * (values - smoothed[:, 0]) ** 2) / max(freedom, 1e-6 * times.size) ** 2
            if score < best:
                best, path[:, d] = score, smoothed[:, 0]
        if best == math.inf:
            path[:, d] = np.interp(series.times, series.times[present], column[present])
    return path, np.asarray(np.gradient(path, times, axis=0))


def curvature_penalty(times: Array) -> Array:
    """Σ of squared second divided differences, weighted by their spans, as an upper band (3, nodes)."""
    gaps = np.diff(times)
    spans = times[2:] - times[:-2]
    rows = np.stack([1.0 / gaps[:-1], -1.0 / gaps[:-1] - 1.0 / gaps[1:], 1.0 / gaps[1:]]) / np.sqrt(0.5 * spans)
    band = np.zeros((3, times.size))
    for i in range(3):
        for j in range(i, 3):
            band[2 - (j - i), j : j + spans.size] += rows[i] * rows[j]
    return band
