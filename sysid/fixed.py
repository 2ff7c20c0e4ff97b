"""Steps of fixed length for lanes of one system, of floats or of complex numbers."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .adaptive import BLEW_UP, DONE


class FixedBlock(NamedTuple):
    """Room for the lanes that step together."""

    x: NDArray[Any]  # (dim, lane), states
    moved: NDArray[Any]  # (dim, lane), states after the step
    p: NDArray[Any]  # (n_parameters, lane)
    clock: NDArray[np.float64]  # (3, lane): time, step, and room for the step


def solve_block(advance, initial, n_steps, limit, results, block):
    """Solve a block of lanes: states (lane, n, dim) of ``results``, left alone where not reached.

    advance: behind ``slopes.ADVANCE`` or ``COMPLEX_ADVANCE``. initial: InitialValues. n_steps: of each interval of its
    times, all of one length. results: Results. block: FixedBlock, to work in.
    """
    times, start, x, moved, p = initial.times, initial.start, block.x, block.moved, block.p
    states, status, steps = results.states, results.status, results.steps
    lanes, dim = start.shape
    for lane in range(lanes):
        status[lane], results.reached[lane], steps[lane] = DONE, 0, 0
        for j in range(p.shape[0]):
            p[j, lane] = initial.parameters[lane, j]
        for d in range(dim):
            x[d, lane] = start[lane, d]
            states[lane, 0, d] = start[lane, d]
            if not abs(start[lane, d]) <= limit:
                status[lane] = BLEW_UP
    now, step = block.clock[0], block.clock[1]
    for i in range(times.size - 1):
        h = (times[i + 1] - times[i]) / n_steps[i]
        going = False
        for lane in range(lanes):
            step[lane] = h
            going = going or status[lane] == DONE
        if not going:
            return
        for s in range(n_steps[i]):
            for lane in range(lanes):
                now[lane] = times[i] + s * h
                steps[lane] += status[lane] == DONE
            advance(now, step, x, p, moved, block.clock[2])
            for d in range(dim):
                for lane in range(lanes):
                    x[d, lane] = moved[d, lane]
                    if not abs(moved[d, lane]) <= limit:
                        status[lane] = BLEW_UP
        for lane in range(lanes):
            if status[lane] == DONE:
                results.reached[lane] = i + 1
                for d in range(dim):
                    states[lane, i + 1, d] = x[d, lane]
