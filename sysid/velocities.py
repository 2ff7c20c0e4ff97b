"""Velocities of measured states: exact, or by finite differences, Savitzky–Golay filters or smoothing splines."""

from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from toolkit.checks import check_count

from .series import Series

Array = NDArray[np.float64]

METHODS = ("exact", "finite_difference", "savitzky_golay", "spline")
POLYNOMIAL = 3  # degree of the Savitzky–Golay filter
USUAL = 11  # samples under it
EVEN = 1e-6  # of the mean step: by how much the steps of evenly sampled times may differ


class Moving(NamedTuple):
    """States and their velocities, each (n, dim), at the times where both are known."""

    states: Array
    velocities: Array


def velocities_of(series: Series, method: str, window: int | None = None) -> Moving:
    """States and velocities by ``method``, one of ``METHODS``; window: samples under a Savitzky–Golay filter, None: 11.

    finite_difference: second order, also between uneven times. savitzky_golay: cubic, and the smoothed states with it;
    even times only. spline: cubic smoothing splines whose smoothness is by generalised cross-validation. Rows with
    missing values, and those that need one, are left out; a filter and a spline need complete columns.
    Raises ValueError where a method cannot be used on the data.
    """
    times, values = series.times, series.values
    if method == "exact":
        if series.velocities is None:
            raise ValueError(
                f"velocities='exact' needs a Series with velocities, which {series.name!r} has not: take "
                f"'finite_difference', 'savitzky_golay' or 'spline', or the weak or trajectory likelihood"
            )
        return present(values, series.velocities)
    if method == "finite_difference":
        if len(series) < 3:
            raise ValueError(f"velocities='finite_difference' needs at least 3 times, got {len(series)}")
        return present(values, np.asarray(np.gradient(values, times, axis=0, edge_order=2)))
    if not series.is_complete:
        raise ValueError(f"velocities={method!r} needs data without missing values: take 'finite_difference'")
    if method == "savitzky_golay":
        width = check_window(USUAL if window is None else window)
        if width > len(series):
            raise ValueError(f"window must be odd and ≤ {len(series)}, the number of times, got {width}")
        steps = np.diff(times)
        if np.ptp(steps) > EVEN * steps.mean():
            raise ValueError(
                f"velocities='savitzky_golay' needs even times, got steps from {steps.min():g} to {steps.max():g}: "
                f"take 'spline' or 'finite_difference'"
            )
        from scipy.signal import savgol_filter  # which takes a second to import

        smooth = savgol_filter(values, width, POLYNOMIAL, axis=0)
        slope = savgol_filter(values, width, POLYNOMIAL, deriv=1, delta=float(steps.mean()), axis=0)
        return Moving(np.asarray(smooth), np.asarray(slope))
    if len(series) < 5:
        raise ValueError(f"velocities='spline' needs at least 5 times, got {len(series)}")
    curves = [scipy.interpolate.make_smoothing_spline(times, column) for column in values.T]
    both = [(curve(times), curve.derivative()(times)) for curve in curves]
    return Moving(np.stack([b[0] for b in both], axis=1), np.stack([b[1] for b in both], axis=1))


def check_window(window: Any) -> int:
    """``window`` as the width of a Savitzky–Golay filter. Raises TypeError or ValueError where it is none."""
    width = check_count("window", window, at_least=POLYNOMIAL + 2, below=2**31)
    if width % 2 == 0:
        raise ValueError(f"window must be odd, got {width}")
    return width


def present(states: Array, velocities: Any) -> Moving:
    """The rows in which all states and a velocity are known; a velocity that is not stays nan."""
    known = np.isfinite(states).all(axis=1) & np.isfinite(velocities).any(axis=1)
    return Moving(states[known], np.asarray(velocities)[known])
