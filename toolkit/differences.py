"""First derivatives of an energy by central differences, with the error of each."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

OFFSETS = np.array([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0])
SIXTH_ORDER = np.array([-1.0, 9.0, -45.0, 45.0, -9.0, 1.0]) / 60.0
FOURTH_ORDER = np.array([0.0, 1.0, -8.0, 8.0, -1.0, 0.0]) / 12.0
SIXTH_DIFFERENCE = np.array([1.0, -6.0, 15.0, 15.0, -6.0, 1.0])  # and −20 in the middle
NOISE_GAIN = 28.0  # the sixth difference of noise over the noise of the derivative times the step
FIRST, RATIO, STEPS = 0.7310585786300049, 0.2689414213699951, 22  # no step is a simple fraction of a period
ROOM = 2**21  # numbers in the points of one call


class Derivatives(NamedTuple):
    """Slopes of an energy, (points, dim), and what each may be off by; inf where no step served."""

    values: Array
    errors: Array


def differentiate(
    energy: Callable[[Array], Array], points: Array, scale: Array, rounding: float = 2.0**-52
) -> Derivatives:
    """Derivatives of ``energy`` (points (n, dim) → (n,)) at ``points`` in every coordinate.

    Differences of sixth order at 22 steps from 1e-12 to 0.7 times ``scale`` (dim,), from the shortest on; the one of
    least error is taken, and the search ends where the error has grown thirtyfold beyond it: a longer step may jump
    over a period or a whole mode, and agree with itself on something else. The error is the difference from fourth
    order, plus what the energy's noise makes of the slope: noise is seen in the sixth difference, and is at least
    ``rounding`` relative of the energy, and the least change seen, as that may be all rounding: log(1 + x²) has more of
    it than its value shows, and not in every sixth difference. Across a kink both terms are of the size of its jump.
    """
    n, dim = points.shape
    centre = energy(points)
    values, errors = np.full((n, dim), np.nan), np.full((n, dim), np.inf)
    quantum, resting = np.full((n, dim), np.inf), np.full((n, dim), np.inf)
    ended = np.zeros((n, dim), bool)
    for k in reversed(range(STEPS)):
        # The step as the sum of floats makes it, so that it is what the points differ by.
        step = (points + FIRST * RATIO**k * scale) - points
        around = surroundings(energy, points, step)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            change = np.abs(around - centre[:, None, None])
            quantum = np.minimum(quantum, np.where(change > 0.0, change, np.inf).min(axis=2))
            sixth, fourth = around @ SIXTH_ORDER / step, around @ FOURTH_ORDER / step
            floor = rounding * (np.abs(around).max(axis=2) + np.abs(points * sixth)) / np.abs(step)
            noise = np.abs(around @ SIXTH_DIFFERENCE - 20.0 * centre[:, None]) / NOISE_GAIN
            error = np.abs(sixth - fourth) + (noise + quantum) / np.abs(step) + floor
        flat = np.isinf(quantum) & np.isfinite(floor)
        resting[flat] = floor[flat]
        fits = np.isfinite(error) & ~ended
        better = fits & (error < errors)
        values[better], errors[better] = sixth[better], error[better]
        ended |= np.isfinite(errors) & ~(error < 30.0 * errors)
    # Flat as far as that is known: everywhere, or up to a step from which no slope could be told.
    level = np.isfinite(resting) & ~(errors < 1e-3 * np.abs(values))
    values[level], errors[level] = 0.0, resting[level] + np.where(np.isinf(quantum), 0.0, 1e300)[level]
    return Derivatives(values, errors)


def surroundings(energy: Callable[[Array], Array], points: Array, step: Array) -> Array:
    """Energies (points, dim, offsets) at the points moved along each coordinate; a few coordinates at a time."""
    n, dim = points.shape
    around = np.empty((n, dim, OFFSETS.size))
    batch = max(1, ROOM // (n * OFFSETS.size * dim))
    for first in range(0, dim, batch):
        chosen = np.arange(first, min(first + batch, dim))
        moved = np.repeat(points[:, None, None], chosen.size, axis=1).repeat(OFFSETS.size, axis=2)
        moved[:, np.arange(chosen.size), :, chosen] += (step[:, chosen, None] * OFFSETS).transpose(1, 0, 2)
        around[:, chosen] = energy(moved.reshape(-1, dim)).reshape(n, chosen.size, OFFSETS.size)
    return around
