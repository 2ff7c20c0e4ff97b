"""Grids of steps for stiff systems: short where a solution changes fast, long elsewhere."""

import numpy as np

from ..arrays import Array, Integers
from ..solvers.stiff import StiffSteps
from ..systems.system import System

GRID_RTOL = 1e-4  # of the adaptive solution whose steps show where a solution changes fast
MOST_ADAPTIVE_STEPS = 5_000  # of one segment
MAX_GROWTH = 0.15  # of a step's length over the time to a shorter one
EVENT = 0.3  # of the longest step before: a shorter one begins a fast change that may move in time
MOST_STEPS = 600  # between two data, where a fast change may be anywhere between


def step_lengths(
    system: System, parameters: Array, starts: Array, times: Array, first_rows: Integers, scale: Array, limit: float
) -> tuple[Array, Array]:
    """Times (m,) and the lengths (m,) that steps may have there, from adaptive solutions of all segments.

    A fast change inside a segment may come by one interval of the data earlier or later at other parameters, so steps
    are short there too. starts: (segments, dim), at rows ``first_rows`` of ``times`` (n,). scale: (dim,), the size of
    errors that matter. Where a solution ends early, the intervals between data are the lengths.
    """
    steps = StiffSteps(system, GRID_RTOL, GRID_RTOL * scale, limit, MOST_ADAPTIVE_STEPS)
    last_rows = [*first_rows[1:].tolist(), len(times) - 1]
    parts, events = [], []
    for row, last_row, start in zip(first_rows.tolist(), last_rows, starts, strict=True):
        first, last = float(times[row]), float(times[last_row])
        if last_row == row:
            continue
        ends = [first, *(float(solver.t) for solver in steps.along(start, parameters, first, last))]
        ends += times[(times > ends[-1]) & (times <= last)].tolist()
        parts.append(np.array(ends[1:]))
        lengths = np.diff(ends)
        lengths[-1] = max(lengths[-1], lengths[-2] if len(lengths) > 1 else 0.0)  # the last step is cut short
        is_event = lengths < EVENT * np.maximum.accumulate(lengths)
        events.append(np.stack([ends[:-1], ends[1:], lengths])[:, is_event])
    nodes = np.concatenate([times[:1], *parts])
    every = np.unique(np.concatenate([nodes, times]))
    gaps = np.diff(nodes)
    longest = np.minimum(np.append(gaps, gaps[-1]), np.append(gaps[0], gaps))
    at = np.interp(every, nodes, longest)
    intervals = np.diff(times)
    begins, ends_of, lengths = np.concatenate(events, axis=1)
    row = np.clip(np.searchsorted(times, begins, "right") - 1, 0, len(intervals) - 1)
    around = np.maximum(intervals[row], intervals[np.minimum(row + 1, len(intervals) - 1)])
    for low, high, length in zip(begins - around, ends_of + around, np.maximum(lengths, around / MOST_STEPS), strict=True):
        inside = slice(np.searchsorted(every, low), np.searchsorted(every, high, "right"))
        at[inside] = np.minimum(at[inside], length)
    gaps = np.diff(every)
    for k in range(1, len(at)):
        at[k] = min(at[k], at[k - 1] + MAX_GROWTH * gaps[k - 1])
    for k in range(len(at) - 2, -1, -1):
        at[k] = min(at[k], at[k + 1] + MAX_GROWTH * gaps[k])
    return every, at


def graded_times(times: Array, nodes: Array, lengths: Array, fineness: float) -> Array:
    """Times (m,) with all of ``times`` among them, and between them steps that are ``lengths`` / ``fineness``.

    lengths: (k,) at ``nodes`` (k,), linear between them; all ``times`` are nodes.
    """
    growth = np.diff(lengths) / lengths[:-1]
    small = np.abs(growth) < 1e-6
    inverse = np.where(small, 1.0 - 0.5 * growth, np.log1p(growth) / np.where(small, 1.0, growth))
    counts = np.concatenate([[0.0], np.cumsum(np.diff(nodes) / lengths[:-1] * inverse)])
    at = np.interp(times, nodes, counts)
    every = [times[:1]]
    for i in range(len(times) - 1):
        n = max(1, int(np.ceil(fineness * (at[i + 1] - at[i]))))
        inner = np.interp(at[i] + (at[i + 1] - at[i]) * np.arange(1, n) / n, counts, nodes)
        every += [inner[(inner > times[i]) & (inner < times[i + 1])], times[i + 1 : i + 2]]
    return np.concatenate(every)
