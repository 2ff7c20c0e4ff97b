"""Where and when the trajectories of a problem of identification begin, as its parameters and data have it."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolkit.checks import check_real_array

from .system import System

if TYPE_CHECKING:
    from .identification import Identification

Array = NDArray[np.float64]
NEAR = 1e-9  # of the span of the data: times closer than that are one


class Initial(NamedTuple):
    """States (n, dim) at ``time``."""

    time: float
    states: Array


def initial_of(problem: "Identification", parameters: Any) -> Initial:
    """Initial states of parameters (n, q): those sampled, else as fixed, both at the data's first time.

    Of likelihoods without initial states: the first row of the data, or of the first of several series, in which no
    state is missing, at its own time. Raises ValueError where there is no such row.
    """
    theta = np.atleast_2d(check_real_array("parameters", parameters))
    series = problem.data[0] if isinstance(problem.data, list | tuple) else problem.data
    places = {
        state: problem.names.index(f"{state}(0)") for state in problem.system.states if f"{state}(0)" in problem.names
    }
    row, known = 0, {}
    if problem.prepared.first is not None:
        known = dict(zip(problem.system.states, problem.prepared.first, strict=True))
    elif len(places) < problem.system.dim:
        whole = np.flatnonzero(np.isfinite(series.values).all(axis=1))
        if not whole.size:
            raise ValueError(
                f"start must be given, as no row of {series.name!r} has all states, from which trajectories could begin"
            )
        row = int(whole[0])
        known = dict(zip(series.states, series.values[row], strict=True))
    columns = [
        theta[:, places[state]] if state in places else np.full(len(theta), known[state])
        for state in problem.system.states
    ]
    return Initial(float(series.times[row]), np.stack(columns, axis=1))


def begin(problem: "Identification | System", theta: Array, times: Array) -> tuple[Array, Array]:
    """States (dim,) or (n, dim) to solve from, and the times before ``times`` to solve over, that of the states first.

    These are the data's, so that steps of fixed length are no longer than the data's.
    """
    if isinstance(problem, System):
        return problem.start, times[:0]
    when, states = initial_of(problem, theta)
    data = problem.data[0] if isinstance(problem.data, list | tuple) else problem.data
    slack = NEAR * (data.times[-1] - data.times[0])
    if times[0] < when - slack:
        raise ValueError(
            f"start must be given where times begin before {when:.10g}, the time of the data's first state that is "
            f"whole, got {times[0]:.10g}"
        )
    return states, data.times[(data.times >= when) & (data.times < times[0] - slack)]
