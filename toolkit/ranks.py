"""Ranks, quantiles and normal scores of values with weights of mean 1; None are equal ones, which give the usual."""

import numpy as np
import scipy
from numpy.typing import NDArray

Array = NDArray[np.float64]


def ranks(values: Array, weights: Array | None) -> Array:
    """Ranks from 1, ties at their mean, of ``values`` with weights (same shape): ½ + the weight up to there.

    Of a value's own weight, and of that of its ties, half counts.
    """
    flat = values.ravel()
    order = np.argsort(flat)
    arranged = flat[order]
    ends = np.arange(flat.size + 1.0) if weights is None else np.append(0.0, np.cumsum(weights.ravel()[order]))
    edges = np.append(np.flatnonzero(np.append(True, arranged[1:] != arranged[:-1])), flat.size)
    middles = 0.5 * (ends[edges[:-1]] + ends[edges[1:]]) + 0.5
    result = np.empty(flat.size)
    result[order] = middles if middles.size == flat.size else np.repeat(middles, np.diff(edges))
    return result.reshape(values.shape)


def normal_scores(values: Array, weights: Array | None) -> Array:
    """Φ⁻¹((rank − 3/8) / (n + 1/4)). Source: Blom (1958); Vehtari et al. (2021), eq. 14."""
    return np.asarray(scipy.special.ndtri((ranks(values, weights) - 0.375) / (values.size + 0.25)))


def quantile(values: Array, weights: Array | None, probability: float) -> float:
    """The largest value with at most (n − 1) p of the weight below it."""
    place = (values.size - 1) * probability * (1.0 + 1e-14)
    if weights is None:
        return float(np.partition(values, int(place), axis=None)[int(place)])
    order = np.argsort(values, axis=None)
    heavy = weights.ravel()[order]
    last = np.searchsorted(np.cumsum(heavy) - heavy, place, side="right") - 1
    return float(values.ravel()[order[last]])


def median(values: Array, weights: Array | None) -> float:
    """The middle of the two values next to half of the weight."""
    if weights is None:
        return float(np.median(values))
    order = np.argsort(values, axis=None)
    ends = np.cumsum(weights.ravel()[order])
    half = 0.5 * ends[-1]
    places = [np.searchsorted(ends, half, side="left"), np.searchsorted(ends, half, side="right")]
    low, high = values.ravel()[order[np.minimum(places, values.size - 1)]]
    return float(0.5 * (low + high))
