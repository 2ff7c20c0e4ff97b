"""Grids of steps for stiff systems: short where a solution changes fast, long elsewhere."""

import itertools
from typing import NamedTuple

import numpy as np

from ..arrays import Array, Bools, Integers
from ..solvers.stiff import StiffSteps
from ..systems.inputs import Schedule, driven
from ..systems.system import System

GRID_RTOL = 1e-4  # of the adaptive solution whose steps show where a solution changes fast
MOST_ADAPTIVE_STEPS = 5_000  # of one segment
MAX_GROWTH = 0.15  # of a step's length over the time to a shorter one
SAME_INPUT = 1e-9  # of the inputs' size: a larger change is a jump
EVENT = 0.3  # of the longest step before: a shorter one begins a fast change that may move in time
MOST_STEPS = 600  # between two data, where a fast change may be anywhere between


class Changes(NamedTuple):
    """Where adaptive solutions change fast: times with the lengths of steps there, and fast changes inside segments.

    times, lengths: (m,). events: (n, 4), of each short step its begin, end, length, and the number of its change.
    """

    times: Array
    lengths: Array
    events: Array

    @property
    def places(self) -> Array:
        """The time of the shortest step of each change (n_changes,)."""
        numbers = self.events[:, 3]
        shortest = [self.events[numbers == k] for k in np.unique(numbers)]
        return np.array([0.5 * (one[np.argmin(one[:, 2]), :2]).sum() for one in shortest])


def jumps_of(schedule: Schedule) -> Bools:
    """Where a dose is given or an input jumps, (n,): a solution changes fast there, whatever the parameters."""
    jumps = schedule.is_dosed
    n_inputs = (schedule.drives.shape[1] - 1) // 2
    if n_inputs > 0:
        begins, slopes = schedule.drives[:, 1 : 1 + n_inputs], schedule.drives[:, 1 + n_inputs :]
        ends = begins[:-1] + slopes[:-1] * np.diff(schedule.times)[:, None]
        jumps[1:] |= (np.abs(begins[1:] - ends) > SAME_INPUT * np.abs(begins).max(axis=0)).any(axis=1)
    return jumps


def on_grid(schedule: Schedule, grid: Array) -> Schedule:
    """``schedule`` with the times ``grid`` (m,), among which are all of its own up to the last of them."""
    rows = np.searchsorted(schedule.times, grid, "right") - 1
    is_own = schedule.times[rows] == grid
    doses = np.where(is_own[:, None], schedule.doses[rows], 0.0)
    return Schedule(grid, schedule.drives[rows], doses, schedule.is_break[rows] & is_own)


def up_to(schedule: Schedule, n_rows: int) -> Schedule:
    """The first ``n_rows`` times of ``schedule``."""
    times, drives, doses, is_break = schedule
    return Schedule(times[:n_rows], drives[:n_rows], doses[:n_rows], is_break[:n_rows])


def fast_changes(
    system: System, parameters: Array, starts: Array, schedule: Schedule, first_rows: Integers, scale: Array,
    limit: float,
) -> Changes:  # fmt: skip
    """Adaptive solutions of all segments, and where they change fast.

    starts: (segments, dim), at rows ``first_rows`` of the times (n,) of ``schedule``. scale: (dim,), the size of errors
    that matter. Where a solution ends early, the intervals between data are the lengths. A solution begins anew where
    inputs have a kink or jump, or a dose is given; what follows a jump is no event, as its time is known.
    """
    steps = StiffSteps(driven(system), GRID_RTOL, GRID_RTOL * scale, limit, MOST_ADAPTIVE_STEPS)
    times, jumps = schedule.times, jumps_of(schedule)
    last_rows = [*first_rows[1:].tolist(), len(times) - 1]
    nodes, gaps, events, number = [float(times[0])], [], [], 0
    for row, last_row, start in zip(first_rows.tolist(), last_rows, starts, strict=True):
        if last_row == row:
            continue
        rows = np.unique([row, *(row + np.flatnonzero(schedule.is_break[row:last_row])).tolist(), last_row])
        state, is_solved = start, True
        stretches: list[tuple[list[float], list[float]]] = []  # ends and lengths of steps, from one jump to the next
        for at, until in itertools.pairwise(rows.tolist()):
            ends, step = [float(times[at])], None
            if at == row or jumps[at]:
                stretches.append((ends, []))
            else:
                step = min(stretches[-1][1][-1], float(times[until] - times[at]))
            if is_solved:
                drives, solver = np.append(parameters, schedule.drives[at]), None
                for solver in steps.along(state + schedule.doses[at], drives, ends[0], float(times[until]), step):
                    ends.append(float(solver.t))
                is_solved = solver is not None and solver.status == "finished"
                state = solver.y if solver is not None else state
            ends += times[(times > ends[-1]) & (times <= times[until])].tolist()
            lengths = np.diff(ends)
            given = np.array(lengths)
            lengths[-1] = max(lengths[-1], lengths[-2] if len(lengths) > 1 else 0.0)  # the last step is cut short
            if stretches[-1][0] is not ends:
                stretches[-1][0].extend(ends[1:])
            stretches[-1][1].extend(lengths.tolist())
            nodes += ends[1:]
            gaps += (given if until == last_row else lengths).tolist()
        for ends, every in stretches:
            lengths = np.array(every)
            is_short = lengths < EVENT * np.maximum.accumulate(lengths)
            for k in np.flatnonzero(is_short):
                number += int(not is_short[k - 1])  # the first step is never short
                events.append([ends[k], ends[k + 1], lengths[k], number])
    shortest = np.minimum(np.append(gaps, gaps[-1]), np.append(gaps[0], gaps))
    return Changes(np.array(nodes), shortest, np.array(events).reshape(-1, 4))


def step_lengths(changes: Changes, times: Array, halos: Array | None) -> tuple[Array, Array]:
    """Times (m,), ``times`` (n,) of the data among them, and the lengths (m,) that steps may have there.

    halos: (n_changes,), by how much earlier or later each fast change may come at other parameters, so that steps are
    short there too; None: by an interval of the data.
    """
    begins, ends, lengths, numbers = changes.events.T
    if halos is None:
        row = np.clip(np.searchsorted(times, begins, "right") - 1, 0, len(times) - 2)
        intervals = np.append(np.diff(times), 0.0)
        around = np.maximum(intervals[row], intervals[row + 1])
    else:
        around = halos[numbers.astype(np.int64) - 1]
    low, high = np.maximum(begins - around, times[0]), np.minimum(ends + around, times[-1])
    every = np.unique(np.concatenate([changes.times, times, low, high]))
    at = np.interp(every, changes.times, changes.lengths)
    for first, last, length in zip(low, high, np.maximum(lengths, around / MOST_STEPS), strict=True):
        inside = slice(np.searchsorted(every, first), np.searchsorted(every, last, "right"))
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
