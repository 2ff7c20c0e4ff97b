"""Single values that fit neither the one before nor the one after: what a typing error or a glitch looks like."""

from typing import NamedTuple

import numpy as np
import scipy

from ..arrays import Array, Integers
from .residuals import FALSE_ALARMS, NORMAL_MAD

MIN_VALUES = 30  # of a state; fewer say too little of its course
NEIGHBOURS = 4  # values through which a cubic is drawn
ENDS = 2  # values at each end that are named only as slips of the decimal point: a transient begins with one value
SLIPS = 10.0 ** np.array([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0])  # factors by which a decimal point slips
SLIP_DEVIATIONS = 3.0  # between the value without the slip and the course of its neighbours
SLIP_TOLERANCES = np.array([0.3, 0.3, 0.1, 0.1, 0.3, 0.3])  # of the value: transients of 100 in one step are rarer
FAR_OUT = 20.0  # ranges of all other values within which a last value is left alone: growth to it takes several rows
WINDOW = 4  # values on each side whose own distances say how even the course is there
PROMINENT = 3.0  # an isolated value is so many times as far off as any other value
FAST = 0.9  # quantile of a state's changes: where another state changes faster than this, a spike is the system's own
MOST_SHARE = 0.02  # of the values: more isolated ones are a feature of the system
REGULAR = 0.25  # standard deviation of the gaps between such values, over their mean: below it they recur
MIN_RECURRING = 4
RESOLUTION = 1e-5  # of the spread of the values: smaller distances are rounding or interpolation


class IsolatedValue(NamedTuple):
    """A value beside its neighbours. row, state: its place. deviations: from their course, in robust sds of all."""

    row: int
    state: int
    deviations: float


def isolated_values(times: Array, values: Array) -> list[IsolatedValue]:
    """The values that fit neither the one before nor the one after.

    Parameters
    ----------
    times, values
        Times (n,) and values (n, dim), nan where missing.

    Returns
    -------
    list of IsolatedValue
        State by state, the farthest first; none of a state with fewer than 30 values.

    Notes
    -----
    A value is compared with the cubic through two neighbours on each side. It is isolated if its distance is beyond
    the law of the largest of n normal ones, at a rate of 1 in 1,000 series, and 3 times that of all other values of its
    state once the isolated ones are left out. Systems spike, too. A spike that is sampled more than once
    leaves values on both sides as far off. One that is sampled once is taken for the system's own if another state
    changes fast about that time, if such values recur at regular intervals, or if they are more than 2 % of all.

    The two values at each end have neighbours on one side, where a fast transient looks like an error. They are named
    only if a power of ten between 0.001 and 1,000 brings them back to their neighbours' course within 3 standard
    deviations, which must be less than 30 % of the value there (10 % for a factor of 10), or, at the last row, if they
    are 20 times the range of all other values away from these.
    """
    found = []
    for d, column in enumerate(values.T):
        known = np.flatnonzero(~np.isnan(column))
        if known.size < MIN_VALUES:
            continue
        others = [other for e, other in enumerate(values.T) if e != d]
        distances, scale = distances_and_scale(times[known], column[known])
        rows = isolated_rows(times[known], column[known], distances, scale)
        around = [(k, known[max(k - 1, 0)], known[min(k + 1, known.size - 1)]) for k in rows]
        rows = np.array([k for k, *of in around if not changes_fast(times, others, *of)], np.int64)
        rows = prominent_rows(times[known], column[known], distances, rows)
        if rows.size > max(MOST_SHARE * known.size, 1.0) or recurs(times[known[rows]]):
            continue
        rows = rows[np.argsort(-np.abs(distances[rows]))]
        found += [IsolatedValue(int(known[k]), d, float(distances[k] / scale)) for k in rows]
    return found


def distances_and_scale(times: Array, values: Array) -> tuple[Array, float]:
    """Distances (n,) from the neighbours' course, and their robust standard deviation, at least a resolution."""
    distances, steps = cubic_distances(times, values), np.diff(np.unique(values))
    spread = float(np.median(np.abs(values - np.median(values)))) / NORMAL_MAD
    floor = max(RESOLUTION * spread, float(steps.min()) if steps.size else 1.0)
    return distances, max(float(np.median(np.abs(distances))) / NORMAL_MAD, floor)


def isolated_rows(times: Array, values: Array, distances: Array, scale: float) -> Integers:
    """Rows far from their neighbours' course, whose neighbours are not far from theirs without them."""
    freedom = 0.25 * times.size  # of a median of distances that are correlated
    limit = -scipy.special.stdtrit(freedom, 0.5 * FALSE_ALARMS / times.size)
    far = np.flatnonzero(np.abs(distances) > limit * scale)
    found = []
    for row in far:
        if min(row, times.size - 1 - row) < ENDS and not is_slip(times, values, int(row)):
            continue
        margin = WINDOW + NEIGHBOURS // 2
        about = np.arange(max(int(row) - margin, 0), min(int(row) + margin + 1, times.size))
        about = about[about != row]
        nearby = cubic_distances(times[about], values[about])[np.abs(about - row) <= WINDOW]
        if abs(distances[row]) > PROMINENT * np.abs(nearby).max():
            found.append(row)
    return np.array(found, np.int64)


def is_slip(times: Array, values: Array, row: int) -> bool:
    """Whether a value near an end is on its neighbours' course with its decimal point moved, or is last and far out."""
    others = np.delete(values, row)
    if row == values.size - 1 and np.abs(values[row] - others).min() > FAR_OUT * np.ptp(others) > 0.0:
        return True
    near = slice(0, 3 * NEIGHBOURS) if row < ENDS else slice(-3 * NEIGHBOURS, None)
    known = np.arange(times.size)[near]
    known = known[known != row]
    t = (times[known] - times[row]) / np.ptp(times[known])
    design = np.vander(t, NEIGHBOURS)
    coefficients, *_ = np.linalg.lstsq(design, values[known])
    course = float(coefficients[-1])
    freedom = known.size - NEIGHBOURS
    errors = values[known] - design @ coefficients
    shares = np.linalg.pinv(design)[-1]  # of each neighbour in the course
    gain = 1.0 + float(shares @ shares)
    sd = float(np.sqrt(errors @ errors / freedom * gain))
    tolerance = SLIP_DEVIATIONS * sd
    is_known = tolerance < SLIP_TOLERANCES * abs(course)
    return bool((is_known & (np.abs(values[row] * SLIPS - course) < tolerance)).any())


def changes_fast(times: Array, others: list[Array], before: int, after: int) -> bool:
    """Whether one of the other states changes as it seldom does from the row ``before`` to the row ``after``."""
    for other in others:
        known = ~np.isnan(other)
        course = np.interp(times, times[known], other[known])
        usual = np.abs(course[2:] - course[:-2])
        if abs(course[after] - course[before]) > np.quantile(usual, FAST):
            return True
    return False


def prominent_rows(times: Array, values: Array, distances: Array, rows: Integers) -> Integers:
    """Those of ``rows`` whose distances are far larger than all others, once they are left out."""
    while rows.size:
        rest = np.delete(np.arange(times.size), rows)
        largest = np.abs(cubic_distances(times[rest], values[rest])[1:-1]).max()
        prominent = np.abs(distances[rows]) > PROMINENT * largest
        if prominent.all():
            break
        rows = rows[prominent]
    return rows


def recurs(times: Array) -> bool:
    """Whether events come at regular intervals."""
    gaps = np.diff(np.sort(times))
    return times.size >= MIN_RECURRING and bool(gaps.std() < REGULAR * gaps.mean())


def cubic_distances(times: Array, values: Array) -> Array:
    """Each value less the cubic through its four nearest neighbours, two on each side, over its sd for unit errors."""
    n = times.size
    first = np.clip(np.arange(n) - NEIGHBOURS // 2, 0, n - NEIGHBOURS - 1)
    columns = first[:, None] + np.arange(NEIGHBOURS + 1)
    others = columns[columns != np.arange(n)[:, None]].reshape(n, NEIGHBOURS)
    knots = times[others]
    weights = np.ones((n, NEIGHBOURS))
    for j in range(NEIGHBOURS):
        for k in range(NEIGHBOURS):
            if k != j:
                weights[:, j] *= (times - knots[:, k]) / (knots[:, j] - knots[:, k])
    gain = np.sqrt(1.0 + (weights**2).sum(axis=1))
    return np.asarray((values - (weights * values[others]).sum(axis=1)) / gain)
