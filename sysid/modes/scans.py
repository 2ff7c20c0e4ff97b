"""Starts of searches where a parameter may be a frequency: each parameter at the frequencies of the data.

The energy of an unknown frequency has a minimum as narrow as 2π over the length of the record, so that neither searches
by gradients nor random places find it. The data's periodogram does. A parameter may be an angular frequency ω, a
frequency ω/2π, a period 2π/ω, or a stiffness ω²; which of them it is need not be known, as all are tried.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import scipy

from ..arrays import Array, Bools
from .laplace import Contains, Evaluate, allowed_energies, descend
from .search import FEW_DAMPINGS

MOST_PEAKS = 8  # of the periodogram of each quantity
OVERSAMPLING = 4  # frequencies per 2π over the length of the record
MOST_FREQUENCIES = 20_000
FACTORS = np.geomspace(0.01, 100.0, 17)  # of a parameter's value: other sizes than frequencies
N_STARTS = 8  # of the lowest energy that are moved
N_PEAKS_MOVED = 2  # frequencies from which each parameter is moved in any case, as others may be far off there
N_ITERATIONS = 8  # of these
N_BEST = 3  # of them that begin a search


class Record(NamedTuple):
    """Measured values (n,) of one quantity at their times (n,)."""

    times: Array
    values: Array


def frequencies_of(records: Sequence[Record]) -> Array:
    """Angular frequencies (n,) at peaks of the records' periodograms, the highest peaks first."""
    found: list[tuple[float, float]] = []
    for times, values in records:
        span = float(times[-1] - times[0]) if len(times) > 4 else 0.0
        if span <= 0.0:
            continue
        highest = math.pi / float(np.median(np.diff(times)))
        n = min(int(OVERSAMPLING * span * highest / (2.0 * math.pi)) + 2, MOST_FREQUENCIES)
        grid = np.linspace(2.0 * math.pi / span / OVERSAMPLING, highest, n)
        centred = values - np.polyval(np.polyfit(times - times[0], values, 1), times - times[0])
        power = scipy.signal.lombscargle(times - times[0], centred, grid, normalize=True)
        peaks = scipy.signal.find_peaks(np.concatenate([[0.0], power, [0.0]]))[0] - 1
        best = peaks[np.argsort(-power[peaks], kind="stable")][:MOST_PEAKS]
        found += [(-float(power[k]), float(grid[k])) for k in best]
    return np.array([frequency for _, frequency in sorted(found)])


def values_of(frequencies: Array) -> Array:
    """What a parameter may be (n,) for these frequencies: ω and its half and double, ω/2π, 2π/ω, and ω²."""
    kinds = [
        frequencies,
        0.5 * frequencies,
        2.0 * frequencies,
        frequencies / (2 * np.pi),
        2 * np.pi / frequencies,
        frequencies**2,
    ]
    return np.concatenate(kinds)


def scanned_starts(
    evaluate: Evaluate,
    bases: Array,
    movable: Bools,
    log: Bools,
    frequencies: Array,
    *,
    contains: Contains | None = None,
    count: Callable[[Array], None] | None = None,
) -> Array:
    """Positions (n, q) of low energy, each from a base with one parameter at another value.

    Parameters
    ----------
    evaluate
        Energy and gradient in positions.
    bases
        Positions (n, q) from which one parameter is moved.
    movable
        Which entries (q,) are parameters of the system.
    log
        Which entries (q,) are logarithms.
    frequencies
        Angular frequencies (n,) of the data, the strongest first.
    contains
        Which points the constraints allow.
    count
        Told of all energies that were evaluated.

    Returns
    -------
    ndarray
        At most N_BEST positions, the lowest first.
    """
    counted = allowed_energies(evaluate, contains, count)
    tried, strongest = [], []
    for base in bases:
        for k in np.flatnonzero(movable):
            own = math.exp(base[k]) if log[k] else base[k]
            values = np.concatenate([values_of(frequencies), own * FACTORS, -own * FACTORS * (not log[k])])
            values = values[values > 0.0] if log[k] else values
            points = np.tile(base, (len(values), 1))
            points[:, k] = np.log(values) if log[k] else values
            tried.append(points)
            strongest.append(points[: min(N_PEAKS_MOVED, len(frequencies))])
    points = np.concatenate(tried)
    energies = counted(points)[0]
    lowest = points[np.argsort(energies, kind="stable")[:N_STARTS]]
    moved: list[tuple[float, int, Array]] = []
    for start in np.concatenate([lowest, *strongest]):
        if not np.isfinite(counted(start[None])[0][0]):
            continue
        position, energy, _ = descend(counted, start, n_iterations=N_ITERATIONS, dampings=FEW_DAMPINGS)
        moved.append((energy, len(moved), position))
    return np.array([position for _, _, position in sorted(moved)[:N_BEST]]).reshape(-1, bases.shape[1])
