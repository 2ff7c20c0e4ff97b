"""The energy of measured states under solutions of a system, over lanes: shot forwards, its gradient backwards.

A solution may be shot in several segments, each from a state of its own; where one ends and the next begins, a kick
ties them. Source of multiple shooting: Bock (1983).
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit._compiler import inlined, kernel
from toolkit.maths.elementary import fma, log, select

from ..solvers.adjoint import backward_step
from ..solvers.lane_access import row_access
from ..solvers.runge_kutta import built, step_of

# What data and kicks add to the energy of a solution over lanes, and the slopes of that in its states.
#
# A datum is a state measured with normal or lognormal error; a kick is the like between the end of one segment of the
# solution and the start of the next.


@kernel
def measure(path, energy_squares, inverse, value, logarithmic):
    """Add the squared residual of one datum, in standard deviations."""
    if logarithmic:
        for lane in range(path.size):
            r = (log(path[lane]) - value) * inverse[lane]
            energy_squares[lane] = fma(r, r, energy_squares[lane])
    else:
        for lane in range(path.size):
            r = (path[lane] - value) * inverse[lane]
            energy_squares[lane] = fma(r, r, energy_squares[lane])


@kernel
def pull_datum(path, pull, inverse, value, logarithmic):
    """Add the slope of half that square in the state."""
    if logarithmic:
        for lane in range(path.size):
            r = (log(path[lane]) - value) * inverse[lane]
            pull[lane] += r * inverse[lane] / path[lane]
    else:
        for lane in range(path.size):
            r = (path[lane] - value) * inverse[lane]
            pull[lane] = fma(r, inverse[lane], pull[lane])


@kernel
def kick(end, start, energy, sd, logarithmic):
    """Add the energy of a kick from the end of one segment to the start of the next, but for constants."""
    if logarithmic:
        for lane in range(energy.size):
            begun = log(start[lane])
            r = (begun - log(end[lane])) / sd
            energy[lane] += fma(0.5 * r, r, begun)
    else:
        for lane in range(energy.size):
            r = (start[lane] - end[lane]) / sd
            energy[lane] = fma(0.5 * r, r, energy[lane])


@kernel
def pull_kick(end, start, pull, slope, sd, logarithmic):
    """Set ``pull`` to the slope of a kick's energy at the end, and add that at the start to ``slope``."""
    if logarithmic:
        for lane in range(pull.size):
            r = (log(start[lane]) - log(end[lane])) / (sd * sd)
            pull[lane] = -r / end[lane]
            slope[lane] += (r + 1.0) / start[lane]
    else:
        for lane in range(pull.size):
            r = (start[lane] - end[lane]) / (sd * sd)
            pull[lane] = -r
            slope[lane] += r


Array = NDArray[np.float64]

# Numbers: this head; then, each (dim,): standard deviation of kicks, of errors where known, row of θ that holds it
# where free (else −1), number of data, first state where fixed; then the rows, each: time, step, steps to the next row,
# whether a segment starts here, and for each state whether it was measured, and its value, or the logarithm of it.
N_ROWS, N_PARAMETERS, LOGARITHMIC, START_FREE, LIMIT, CONSTANT, N_HEAD = range(7)
TIME, STEP, N_STEPS, STARTS, N_ROW = range(5)
KICK, DEVIATION, FREE_ROW, N_DATA, FIRST = range(5)
INVERSE, SQUARES, STATE, PULL, N_BANDS = range(5)  # bands of dim rows in the work rows, before the path
LARGEST = 1e300


def lane_steps(rhs: Callable[..., Any], pull: Any, method: str, dim: int, n_parameters: int) -> tuple[Any, Any]:
    """One step of all lanes: ``advance`` forwards, ``retreat`` backwards."""
    step, back = step_of(rhs, method), backward_step(rhs, pull, method, dim)
    inside = " & ".join(f"(abs(y[{d}]) <= limit)" for d in range(dim))
    within = inlined(built("within", f"def within(y, limit):\n    return {inside}"))
    chosen = ", ".join(f"select(ok, y[{d}], x[{d}])" for d in range(dim))
    choose = inlined(built("choose", f"def choose(ok, y, x):\n    return ({chosen},)", select=select))
    forwards = row_access("forwards", {"theta": n_parameters, "state": dim, "path": dim, "energy": 1})
    (read_p, _), (read_x, write_x), (_, write_path), (read_u, write_u) = forwards.values()
    backwards = row_access("backwards", {"theta": n_parameters, "path": dim, "pull": dim, "slope": n_parameters})
    (read_q, _), (read_path, _), (read_w, write_w), (read_s, write_s) = backwards.values()

    @kernel
    def advance(theta, work, state, path, energy, t, h, limit):
        for lane in range(theta.shape[1]):
            x = read_x(work, state, lane)
            y = step(t, h, x, read_p(theta, 0, lane))
            ok = within(y, limit)
            x = choose(ok, y, x)
            write_x(work, state, lane, x)
            write_path(work, path, lane, x)
            write_u(energy, 0, lane, (select(ok, read_u(energy, 0, lane)[0], math.inf),))

    @kernel
    def retreat(theta, work, slope, pull, path, t, h):
        for lane in range(theta.shape[1]):
            x, w, s = read_path(work, path, lane), read_w(work, pull, lane), read_s(slope, 0, lane)
            w, s = back(t, h, x, read_q(theta, 0, lane), w, s)
            write_w(work, pull, lane, w)
            write_s(slope, 0, lane, s)

    return advance, retreat


@functools.cache
def shooting_kernel(rhs: Callable[..., Any], pull: Any, method: str, dim: int, n_parameters: int) -> Any:
    """The kernel of a ``Prepared``: energy and gradient from parameters, then starts, then standard deviations."""
    advance, retreat = lane_steps(rhs, pull, method, dim, n_parameters)

    @kernel
    def set_deviations(theta, work, numbers):
        for d in range(dim):
            row, sd = int(numbers[N_HEAD + FREE_ROW * dim + d]), numbers[N_HEAD + DEVIATION * dim + d]
            for lane in range(theta.shape[1]):
                work[INVERSE * dim + d, lane] = 1.0 / (theta[row, lane] if row >= 0 else sd)
                work[SQUARES * dim + d, lane] = 0.0

    @kernel
    def begin(theta, work, path, free, numbers):
        for d in range(dim):
            fixed = numbers[N_HEAD + FIRST * dim + d]
            for lane in range(theta.shape[1]):
                x = theta[free + d, lane] if free >= 0 else fixed
                work[STATE * dim + d, lane] = x
                work[path + d, lane] = x

    @kernel
    def finish(theta, energy, slope, numbers, work):
        for d in range(dim):
            row, n = int(numbers[N_HEAD + FREE_ROW * dim + d]), numbers[N_HEAD + N_DATA * dim + d]
            for lane in range(energy.size):
                squares, inverse = work[SQUARES * dim + d, lane], work[INVERSE * dim + d, lane]
                energy[lane] += 0.5 * squares - n * log(inverse)
                if row >= 0:
                    slope[row, lane] = (n - squares) * inverse
        for lane in range(energy.size):
            energy[lane] += numbers[CONSTANT]

    @kernel
    def forbid(energy, slope):
        for k in range(slope.shape[0]):
            for lane in range(energy.size):
                energy[lane] = select(abs(slope[k, lane]) <= LARGEST, energy[lane], math.inf)
        for lane in range(energy.size):
            energy[lane] = select(abs(energy[lane]) <= LARGEST, energy[lane], math.inf)
        for k in range(slope.shape[0]):
            for lane in range(energy.size):
                slope[k, lane] = select(energy[lane] < math.inf, slope[k, lane], 0.0)

    @kernel
    def shoot(theta, energy, slope, numbers, work):
        rows, logarithmic, lanes = int(numbers[N_ROWS]), numbers[LOGARITHMIC] != 0.0, energy.size
        table, width = N_HEAD + (FIRST + 1) * dim, N_ROW + 2 * dim
        for lane in range(lanes):
            energy[lane] = 0.0
        for k in range(slope.shape[0]):
            for lane in range(lanes):
                slope[k, lane] = 0.0
        set_deviations(theta, work, numbers)
        path, free = N_BANDS * dim, n_parameters if numbers[START_FREE] != 0.0 else n_parameters - dim
        for i in range(rows):
            row = numbers[table + i * width : table + (i + 1) * width]
            if row[STARTS] != 0.0:
                begin(theta, work, path + dim * (i > 0), free if free >= n_parameters else -1, numbers)
                if i > 0:
                    path += dim
                    for d in range(dim):
                        sd = numbers[N_HEAD + KICK * dim + d]
                        kick(work[path - dim + d], work[path + d], energy, sd, logarithmic)
                free += dim
            for d in range(dim):
                if row[N_ROW + 2 * d] != 0.0:
                    squares, inverse = work[SQUARES * dim + d], work[INVERSE * dim + d]
                    measure(work[path + d], squares, inverse, row[N_ROW + 2 * d + 1], logarithmic)
            h = row[STEP]
            for j in range(int(row[N_STEPS])):
                path += dim
                advance(theta, work, STATE * dim, path, energy, row[TIME] + j * h, h, numbers[LIMIT])
        for d in range(dim):
            for lane in range(lanes):
                work[PULL * dim + d, lane] = 0.0
        for i in range(rows - 1, -1, -1):
            row = numbers[table + i * width : table + (i + 1) * width]
            h = row[STEP]
            for j in range(int(row[N_STEPS]) - 1, -1, -1):
                path -= dim
                retreat(theta, work, slope, PULL * dim, path, row[TIME] + j * h, h)
            for d in range(dim):
                if row[N_ROW + 2 * d] != 0.0:
                    value = row[N_ROW + 2 * d + 1]
                    pull_datum(work[path + d], work[PULL * dim + d], work[INVERSE * dim + d], value, logarithmic)
            if row[STARTS] != 0.0:
                free -= dim
                if free >= n_parameters:
                    for d in range(dim):
                        for lane in range(lanes):
                            slope[free + d, lane] += work[PULL * dim + d, lane]
                if i > 0:
                    path -= dim
                    for d in range(dim):
                        sd, pull = numbers[N_HEAD + KICK * dim + d], work[PULL * dim + d]
                        pull_kick(work[path + d], work[path + dim + d], pull, slope[free + d], sd, logarithmic)
        finish(theta, energy, slope, numbers, work)
        forbid(energy, slope)

    return shoot
