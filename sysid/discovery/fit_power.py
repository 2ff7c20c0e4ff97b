"""How probably the test of the residuals would tell that a library lacks the truth."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..arrays import Array, Bools
from ..data.gaps import parts_of
from ..data.residuals import FALSE_ALARMS, ResidualPart, memory_test
from ..data.series import Series
from ..likelihoods.smoothing import smooth

N_SIMULATIONS = 100  # of data: ± 5 % of a probability of one half
MOST_NUMBERS = 2**22  # simulated at a time
FACTORS = 2.0 ** np.arange(-3.0, 7.1, 0.5)  # departures that are tried for the one that is told in half of the cases


class Power(NamedTuple):
    """The power of the test of residuals against a truth outside the library.

    Attributes
    ----------
    probability : float
        Probability that data would contradict the equations, were the smoothed data their truth.
    departure : float
        Distance of the smoothed data from the equations' path, RMS in standard deviations of the noise, less what other
        coefficients and initial states make up for.
    noticed : float
        The departure of this shape that data would contradict in half of the cases; inf beyond 128 times ``departure``.
    """

    probability: float
    departure: float
    noticed: float


def power_of(parts: Sequence[ResidualPart], data: Sequence[Series], noise: Array) -> Power:
    """The power of the test of residuals, by data simulated from smooth paths with this noise.

    Parameters
    ----------
    parts
        Residuals about the equations' path, in units of noise.
    data
        The series they are from.
    noise
        Standard deviations of the errors (dim,).

    Notes
    -----
    The smoothed data are the best path that knows of no library. Data about them are fitted by the equations to first
    order: coefficients and initial states move as the residuals' ``shared`` and ``own`` directions have them.
    """
    lacks = without_fit(parts, [one[None] for one in smooth_departures(parts, data, noise)])
    squares, counts = (sum(float(np.nansum(f(one))) for one in lacks) for f in (np.square, np.isfinite))
    departure = float(np.sqrt(squares / counts))
    below, above = -1, len(FACTORS)  # of the factors: told in less than half of the cases, and in more
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (below, middle) if told(parts, lacks, FACTORS[middle]) >= 0.5 else (middle, above)
    factor = FACTORS[above] if above < len(FACTORS) else np.inf
    return Power(told(parts, lacks, 1.0), departure, float(factor * departure))


def told(parts: Sequence[ResidualPart], lacks: Sequence[Array], factor: float) -> float:
    """The share of simulated data that contradict the equations, of errors and ``factor`` times what these lack."""
    generator, size = np.random.default_rng(0), sum(part.scores.size for part in parts)
    batch, found = max(1, min(N_SIMULATIONS, MOST_NUMBERS // size)), 0
    for first in range(0, N_SIMULATIONS, batch):
        n = min(batch, N_SIMULATIONS - first)
        errors = without_fit(parts, [generator.standard_normal((n, *part.scores.shape)) for part in parts])
        found += int(contradicted(parts, [e + factor * lack for e, lack in zip(errors, lacks, strict=True)]).sum())
    return found / N_SIMULATIONS


def contradicted(parts: Sequence[ResidualPart], residuals: Sequence[Array]) -> Bools:
    """Whether the test of memory contradicts residuals (k, n, dim) of each part, (k,)."""
    dim, smallest = parts[0].scores.shape[1], np.ones(len(residuals[0]))
    for d in range(dim):
        test = memory_test(parts, d)
        if test is not None:
            smallest = np.minimum(smallest, test.of([each[..., d] for each in residuals])[1])
    return np.asarray(smallest * dim < FALSE_ALARMS)


def smooth_departures(parts: Sequence[ResidualPart], data: Sequence[Series], noise: Array) -> list[Array]:
    """Smoothed data less the equations' path (n, dim), in units of noise, at the rows of each part."""
    departures, left = [], iter(parts)
    for piece in (piece for series in data for piece in parts_of(series)):
        path = smooth(piece, piece.times)[0]
        last = -np.inf
        while last < piece.times[-1]:
            part = next(left)
            there = np.stack([np.interp(part.times, piece.times, column) for column in path.T], axis=1)
            departures.append((there - part.values) / noise + part.scores)
            last = part.times[-1]
    return departures


def without_fit(parts: Sequence[ResidualPart], errors: Sequence[Array]) -> list[Array]:
    """What a fit leaves of errors (k, n, dim) of each part, to first order; nan where nothing was measured."""
    measured = [np.isfinite(part.scores) for part in parts]
    known = [np.where(m, e, 0.0) for m, e in zip(measured, errors, strict=True)]
    moved = sum(np.tensordot(e, part.shared, 2) for e, part in zip(known, parts, strict=True))
    left = []
    for e, m, part in zip(known, measured, parts, strict=True):
        fitted = np.tensordot(moved, part.shared, (1, 2)) + np.tensordot(np.tensordot(e, part.own, 2), part.own, (1, 2))
        left.append(np.where(m, e - fitted, np.nan))
    return left
