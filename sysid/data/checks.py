"""Warnings about series that look wrong without being impossible."""

from typing import Any

import numpy as np

from toolkit.errors import check_instance, check_row

from ..arrays import Array
from ..solvers.right_hand_side import slopes_along
from ..systems.system import System
from .gaps import cut_text, gaps_of, left_out_text
from .isolated_values import isolated_values
from .labels import check_labels
from .residuals import in_brief
from .series import Series, check_series, has_doses, in_order

MIN_CORRELATED_VALUES = 100  # fewer values give no warning of correlations
GAP_FACTOR = 20.0  # times the median step
FAR_FROM_ZERO = 1e6  # spans from time 0
UNIT_RATIO = 1.5  # ratio of speeds from which on another unit of time is likelier than noise


def check(series: Series, system: System | None = None, parameters: Any = None) -> list[str]:
    """Warnings about ``series``, in words; none where nothing looks wrong.

    They tell of states that are constant, equal to another, or mostly missing; of values that repeat or change by
    less than rounding from row to row (times too close); of neighbours that are no more alike than any two values
    (times too far apart, or noise alone); of gaps, and of times so far from 0 that their steps are lost to rounding.
    They name single values that fit neither the one before nor the one after, as typing errors and glitches do, in
    series without doses.
    system: then also whether speeds between rows are those of the system with ``parameters`` (None: the usual ones)
    but for one factor, which is what a wrong unit of time does. parameters: (n_parameters,).
    Law: 100 or more independent values are told as such in all but 1e-3 of series.
    Raises TypeError or ValueError for what is no Series or System, a state that only one of them has, or parameters of
    another shape.
    """
    check_series("series", series)
    found = [*time_warnings(series)]
    for d, state in enumerate(series.states):
        found += state_warnings(state, series.times, series.values[:, d])
        for e in range(d):
            if np.array_equal(series.values[:, d], series.values[:, e], equal_nan=True):
                found.append(f"{state!r} is equal to {series.states[e]!r} at all times")
    found += outlier_warnings(series)
    if system is not None:
        check_instance("system", system, System)
        try:
            check_labels(["series"], [series], system)
        except ValueError as error:
            found.append(str(error))
        p = check_row("parameters", system.usual if parameters is None else parameters, system.n_parameters)
        found += unit_warnings(series, system, p)
    return found


def time_warnings(series: Series) -> list[str]:
    """Warnings about the times."""
    times, found = series.times, []
    gaps = gaps_of(series)
    if gaps:
        found.append(
            f"there {'is' if len(gaps) == 1 else 'are'} {cut_text(gaps)}, more than its states can be interpolated "
            "over: discover, weak and derivative follow the parts before and after by themselves"
        )
        left_out = left_out_text(series, gaps)
        found += [left_out] if left_out else []
    steps = np.diff(times)
    longest = int(steps.argmax())
    beside = float(np.delete(steps, longest)[max(longest - 1, 0) : longest + 1].min(initial=steps[longest]))
    usual = max(float(np.median(steps)), beside)  # times even in their logarithms have no gap
    if steps[longest] > GAP_FACTOR * usual and not gaps:
        found.append(
            f"there is a gap from {times[longest]:.6g} to {times[longest + 1]:.6g}, {steps[longest] / usual:.3g} times "
            "the usual step"
        )
    largest, span = float(np.abs(times).max()), float(times[-1] - times[0])
    if np.spacing(largest) > 1e-3 * float(steps.min()):
        found.append(
            f"times near {largest:.6g} are rounded to {np.spacing(largest):.3g}, too much for their steps: count them "
            "from the first before they are floats"
        )
    elif largest > FAR_FROM_ZERO * span:
        found.append(
            f"times are near {largest:.6g} but span {span:.6g}: count them from the first, if time is no input"
        )
    return found


def state_warnings(state: str, times: Array, values: Array) -> list[str]:
    """Warnings about one state."""
    measured = ~np.isnan(values)
    known = values[measured]
    found = []
    if measured.mean() < 0.5:
        found.append(f"{state!r} is missing at {1.0 - measured.mean():.0%} of the times")
    if np.ptp(known) == 0.0:
        return [
            *found,
            f"{state!r} is constant, {known[0]:.6g}: nothing can be learnt from it, and terms that differ by factors "
            "of it alone are one combination",
        ]
    if known.size < MIN_CORRELATED_VALUES:
        return found
    changes = np.abs(np.diff(known))
    share = float((changes <= 4.0 * np.spacing(np.abs(known[1:]))).mean())
    if share > 0.5:
        return [
            *found,
            f"{state!r} does not change beyond rounding in {share:.0%} of the steps: times too close, or a sensor that "
            "sticks",
        ]
    centred = known - known.mean()
    correlation = float((centred[1:] * centred[:-1]).sum() / (centred**2).sum())
    if correlation < 3.1 / np.sqrt(known.size):  # standard errors of independent values
        found.append(
            f"{state!r} at one time says nothing of the next (correlation {correlation:.2f}): times too far apart, or "
            "in another unit, or noise alone"
        )
    return found


def outlier_warnings(series: Series) -> list[str]:
    """A warning that names the values that fit neither the one before nor the one after."""
    if has_doses(series):  # at which states jump
        return []
    found = sorted(isolated_values(series.times, series.values), key=lambda one: -abs(one.deviations))
    if not found:
        return []
    named = [
        f"{series.values[row, d]:.6g} of {series.states[d]!r} at {series.times[row]:.6g} (row {row}, {size:+.3g} sd)"
        for row, d, size in found
    ]
    return [
        f"values that fit neither the one before nor the one after, as outliers do: {in_brief(named)}. Replace "
        "mistakes by nan; if large errors belong to the data, take likelihoods.trajectory(errors='student')"
    ]


def unit_warnings(series: Series, system: System, parameters: Array) -> list[str]:
    """A warning where velocities are those of the system times a factor, as by a wrong unit of time."""
    series = in_order("series", series, system.states)
    complete = np.asarray(~np.isnan(series.values).any(axis=1))
    pairs = np.asarray(complete[1:] & complete[:-1])
    change = np.diff(series.values, axis=0)[pairs]
    steps = np.diff(series.times)[pairs]
    whole = np.where(complete[:, None], series.values, 1.0)
    slopes = slopes_along(system, series.times, whole, parameters, series.inputs)
    expected = 0.5 * (slopes[1:] + slopes[:-1])[pairs]
    measured = change / steps[:, None]
    scale = np.abs(expected).mean(axis=0) + np.finfo(float).tiny
    a, b = (expected / scale).ravel(), (measured / scale).ravel()
    if a.size < MIN_CORRELATED_VALUES or not np.isfinite(a).all() or not a.any() or not b.any():
        return []
    correlation = float(a @ b / np.sqrt((a @ a) * (b @ b)))
    ratio = float(a @ b / (a @ a))
    if correlation < 0.8 or 1.0 / UNIT_RATIO < ratio < UNIT_RATIO:
        return []
    return [
        f"speeds are {ratio:.3g} times those of {system.name} (correlation {correlation:.2f}): times look "
        f"{ratio:.3g} times too short, as in another unit"
    ]
