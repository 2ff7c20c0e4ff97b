"""Gaps in the record of a series, across which no state can be interpolated, and the parts between them.

Law: a step from one measured row to the next is a gap where it is longer than LONG_STEP times the step that three of
four do not exceed, and longer than twice the lag at which some state's values are no longer correlated. The middle of
the step is half of it away from the nearest values, which then say no more of it than the mean does; of a sine wave,
that is half its period, the longest step of sampling (Nyquist). Rows without a value are no measured rows.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..arrays import Array, Integers
from .series import Series

LONG_STEP = 10.0  # times of a Poisson process, as irregular as times may be, have one so long in 4¹⁰ = 10⁶ steps
MOST_STEPS = 0.75  # of the steps, which the usual one is not below
MIN_ROWS = 2  # of a part: one row says nothing of a change
MOST_LAGS = 20_000  # of a run, at which correlations are computed


class Gap(NamedTuple):
    """Times of the last row before a gap and of the first after it, how many usual steps it has, and these rows."""

    begin: float
    end: float
    n_steps: float
    last_row: int
    next_row: int


def gaps_of(series: Series) -> list[Gap]:
    """The gaps of a series, in order of time."""
    rows = np.flatnonzero(~np.isnan(series.values).all(axis=1))
    times = series.times[rows]
    steps = np.diff(times)
    if steps.size < 3:
        return []
    beside = np.minimum(np.append(np.inf, steps[:-1]), np.append(steps[1:], np.inf))  # which grow with even logarithms
    usual = np.maximum(np.quantile(steps, MOST_STEPS), beside)
    long = np.flatnonzero(steps > LONG_STEP * usual)
    if not long.size:
        return []
    longest_known = 2.0 * decorrelation_time(times, series.values[rows], long)
    return [
        Gap(float(times[k]), float(times[k + 1]), float(steps[k] / usual[k]), int(rows[k]), int(rows[k + 1]))
        for k in long
        if steps[k] > longest_known
    ]


def decorrelation_time(times: Array, values: Array, ends: Integers) -> float:
    """The shortest lag at which a state's values (n,) are uncorrelated or negatively so, by pairs in the same run.

    ends: the last rows of runs. Where a state is correlated at all lags within runs, the span of the longest.
    """
    starts = np.append(0, ends + 1)
    runs = [slice(a, b) for a, b in zip(starts, np.append(ends + 1, times.size), strict=True)]
    longest = max(float(times[run][-1] - times[run][0]) for run in runs)
    step = max(float(np.median(np.diff(times))), longest / MOST_LAGS)
    n_lags = int(longest / step) + 1
    found = longest
    for column in values.T:
        total, mean = np.zeros(n_lags), np.nanmean(column)
        for run in runs:
            present = ~np.isnan(column[run])
            when, deviations = times[run][present], column[run][present] - mean
            if when.size < MIN_ROWS:
                continue
            even = np.interp(when[0] + step * np.arange(int((when[-1] - when[0]) / step) + 1), when, deviations)
            transform = np.fft.rfft(even, 2 * even.size)
            total[: even.size] += np.fft.irfft(np.abs(transform) ** 2)[: even.size]
        apart = np.flatnonzero(total[1:] < 0.0)
        if apart.size:
            found = min(found, step * float(apart[0] + 1))
    return found


def rows_of_parts(series: Series, gaps: Sequence[Gap], min_rows: int = MIN_ROWS) -> list[slice]:
    """Rows of the parts between gaps, but for those with fewer than ``min_rows`` or without a value of some state."""
    begins = [0, *(gap.next_row for gap in gaps)]
    ends = [*(gap.last_row + 1 for gap in gaps), len(series)]
    measured = ~np.isnan(series.values)
    parts = [slice(a, b) for a, b in zip(begins, ends, strict=True)]
    return [part for part in parts if part.stop - part.start >= min_rows and measured[part].any(axis=0).all()]


def parts_of(series: Series, min_rows: int = MIN_ROWS) -> list[Series]:
    """The series cut at its gaps, as so many series; the series itself where it has none, or no part is long enough."""
    gaps = gaps_of(series)
    rows = rows_of_parts(series, gaps, min_rows) if gaps else []
    return [part_of(series, one) for one in rows] or [series]


def part_of(series: Series, rows: slice) -> Series:
    """Some rows of a series."""
    velocities = None if series.velocities is None else series.velocities[rows]
    return replace(series, times=series.times[rows], values=series.values[rows], velocities=velocities)


def left_out_text(series: Series, gaps: Sequence[Gap]) -> str:
    """Which rows are in no part, in words; "" where all are, or where no part is long enough."""
    rows = rows_of_parts(series, gaps)
    n = len(series) - sum(part.stop - part.start for part in rows)
    inside = sum(gap.next_row - gap.last_row - 1 for gap in gaps)  # without a value
    if not rows or n <= inside:
        return ""
    return f"{n - inside} rows between gaps are too few, or have no value of some state, and are left out"


def cut_text(gaps: Sequence[Gap]) -> str:
    """Where a series is cut, in words."""
    longest = max(gaps, key=lambda gap: gap.n_steps)
    where = f"from {longest.begin:.6g} to {longest.end:.6g}, {longest.n_steps:.3g} times the usual step"
    return f"a gap {where}" if len(gaps) == 1 else f"{len(gaps)} gaps, the longest {where}"
