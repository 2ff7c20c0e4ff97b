"""Numbers with standard errors, from independent chains."""

import math
from typing import Any

import numpy as np

from toolkit.problem import Truth

from ..arrays import Array


def mean_and_error(values: Any) -> tuple[float, float]:
    """Mean over the chains, (chain,), and its standard error."""
    return float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values)))


def means_and_errors(values: Any) -> tuple[Any, Any]:
    """Means over the last axis, that of the chains, and their standard errors; (…, chain) → (…)."""
    return values.mean(axis=-1), values.std(axis=-1, ddof=1) / np.sqrt(values.shape[-1])


def root_mean_square(errors: Any) -> tuple[Any, Any]:
    """Root of the mean square over the chains, (chain, …) → (…), and its standard error."""
    squares = np.square(errors)
    root = np.sqrt(squares.mean(axis=0))
    with np.errstate(invalid="ignore"):
        return root, squares.std(axis=0, ddof=1) / np.sqrt(len(squares)) / (2.0 * root)


def difference(first: Any, second: Any) -> tuple[float, float]:
    """Mean of the chains ``first`` (chain,) less that of the independent chains ``second``, and its standard error."""
    (value, error), (other, other_error) = mean_and_error(first), mean_and_error(second)
    return value - other, math.hypot(error, other_error)


def ratio_of(first: Any, second: Any) -> tuple[float, float]:
    """Mean of the chains ``first`` (chain,) over that of the independent chains ``second``, and its standard error."""
    return ratio_and_error(mean_and_error(first), mean_and_error(second))


def paired_ratio(first: Any, second: Any) -> tuple[float, float]:
    """Root mean square of ``first`` (chain,) over that of ``second``, by the same seeds, and its standard error.

    The error is the jackknife's over the pairs, as chains of the same seed share their random numbers.
    """
    squares = np.square([first, second])
    n = squares.shape[1]
    without = np.sqrt(np.divide(*((squares.sum(axis=1, keepdims=True) - squares) / (n - 1))))
    error = np.sqrt((n - 1) / n * ((without - without.mean()) ** 2).sum())
    return float(np.sqrt(np.divide(*squares.sum(axis=1)))), float(error)


def ratio_and_error(numerator: tuple[float, float], denominator: tuple[float, float]) -> tuple[float, float]:
    """Ratio of two independent numbers given with errors, and its error to first order."""
    value = numerator[0] / denominator[0]
    return float(value), float(abs(value) * np.hypot(numerator[1] / numerator[0], denominator[1] / denominator[0]))


def with_error(value: float, error: float) -> str:
    """``value ± error``, with two digits of the error; the bare value where there is next to none."""
    if not error > 1e-6 * abs(value):
        return f"{value:.6g}"
    exponent = math.floor(math.log10(max(abs(value), error)))
    if abs(exponent) >= 5:
        return f"({with_error(value / 10.0**exponent, error / 10.0**exponent)})·10^{exponent}"
    digits = max(0, 1 - math.floor(math.log10(error)))
    return f"{value:.{digits}f} ± {error:.{digits}f}"


def mode_weight_errors(truth: Truth, draws: Any, weights: Any = None) -> Array:
    """Σ |weight − truth| over the modes of ``truth``, (chain,); draws (chain, draw, dim), weights (chain, draw)."""
    true = truth.modes.weights
    shares = np.ones(draws.shape[:2]) if weights is None else weights
    estimated = [share @ truth.memberships(points) / share.sum() for points, share in zip(draws, shares, strict=True)]
    return np.asarray(np.abs(np.array(estimated) - true).sum(axis=1))
