"""Whether an explicit step is too long for a solution: two stages at one time show the rate of its fast component.

A step h multiplies a component of rate λ by R(hλ). With RK4, R falls from 1 at hλ = 0 to its minimum at −1.60, and
rises beyond; with Dormand & Prince's method the minimum is at −2.02. Where steps are longer, a fast rate gives the same
solution as a slow one.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array, Bools
from .right_hand_side import slope_pointer
from .runge_kutta import STAGE_PAIRS, TABLEAUS

MAX_STEPS = 1_000_000
LONGEST_STEP = 1.5  # of step × rate: below both minima, with a margin
# A smaller difference between the two stages leaves no error that matters, and may be rounding. It is a hundred times
# the error that the search for a start allows a step.
SMALLEST_JUDGED = 1e-4  # of the states' spread


class Steps(NamedTuple):
    """Steps of solutions: times (n,), lengths (n,), states before them (n, dim), and parameters (n, n_parameters)."""

    times: Array
    lengths: Array
    states: Array
    parameters: Array


def too_long(rhs: Callable[..., Any], method: str, steps: Steps, spread: Array) -> Bools:
    """Which explicit steps (n,) are too long for their solutions.

    Two stages at one time differ by d in their states, and by s in their slopes times h. A step is too long where
    ‖s‖ > LONGEST_STEP ‖d‖, in the norm max |x| / ``spread`` (dim,), unless ‖s‖ is below SMALLEST_JUDGED. As
    ‖s‖ ≤ h‖∂f/∂x‖‖d‖, a step is never too long because a slope happens to vanish.
    """
    times, lengths, states, parameters = steps
    stages, weights = TABLEAUS[method]
    of_states, of_slopes = STAGE_PAIRS[method]
    nodes = [0.0, *(node for node, _ in stages), 1.0]
    rows: list[tuple[float, ...]] = [(), *(row for _, row in stages), weights]
    x, p = np.ascontiguousarray(states.T), np.ascontiguousarray(parameters.T)
    slope = slope_pointer(rhs, len(x), len(p)).compiled
    slopes = np.zeros((len(of_slopes), *x.shape))
    for i in range(len(of_slopes)):
        stage = np.array(x)
        for weight, earlier in zip(rows[i], slopes, strict=False):
            stage += weight * lengths * earlier
        slope(times + nodes[i] * lengths, stage, p, slopes[i], np.empty(len(times)))
    apart, change = (
        np.abs(lengths * np.tensordot(of, slopes[: len(of)], 1) / spread[:, None]).max(axis=0)
        for of in (of_states, of_slopes)
    )
    return np.asarray(change > np.maximum(LONGEST_STEP * apart, SMALLEST_JUDGED))
