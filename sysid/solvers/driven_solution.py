"""Solutions of systems with known inputs or doses: from one time at which an input changes, or a dose is given, on."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array
from ..systems.inputs import Inputs, driven, schedule_of
from ..systems.system import System
from .adaptive import DONE, STEP_LIMIT
from .solution import Solution

SolveLanes = Callable[[System, Array, NDArray[Any], NDArray[Any]], Solution]  # (system, times, parameters, start)


def solve_driven(
    solve_lanes: SolveLanes,
    system: System,
    times: Array,
    parameters: NDArray[Any],
    start: NDArray[Any],
    inputs: Inputs | None,
    max_steps: int,
) -> Solution:
    """States (lanes, n, dim) at ``times`` (n,) of parameters (lanes, n_parameters) and starts (lanes, dim).

    solve_lanes: solves a system without inputs. A state at the time of a dose is that before it.
    """
    schedule, plain = schedule_of(system, inputs, times), driven(system)
    lanes = len(start)
    states = np.full((lanes, schedule.times.size, system.dim), np.nan, start.dtype)
    status, reached, steps = np.full(lanes, DONE), np.full(lanes, times[0]), np.zeros(lanes, np.int64)
    active, x = np.arange(lanes), np.array(start)
    states[:, 0] = start
    for a, b in itertools.pairwise(np.flatnonzero(schedule.is_break).tolist()):
        drive = np.tile(schedule.drives[a], (active.size, 1))
        p = np.concatenate([parameters[active], drive], axis=1)
        found = solve_lanes(plain, schedule.times[a : b + 1], p, x + schedule.doses[a])
        states[active, a + 1 : b + 1] = found.states[:, 1:]
        steps[active] += found.steps
        ended = np.where((found.status == DONE) & (steps[active] > max_steps), STEP_LIMIT, found.status)
        status[active], reached[active] = ended, found.reached
        x, active = found.states[ended == DONE, -1], active[ended == DONE]
        if not active.size:
            break
    asked = np.isin(schedule.times, times)
    last = np.searchsorted(times, reached, "right") - 1
    return Solution(system, times, states[:, asked], status, times[last], steps)
