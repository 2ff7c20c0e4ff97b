"""A forecast of the end of the data by equations that were found without it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array
from ..data.series import Series

FEWEST_ROWS = 8  # of the first part


class ForecastCheck(NamedTuple):
    """A forecast of held-out values, beside the values.

    Attributes
    ----------
    states : tuple of str
        Names of the states.
    times : ndarray, shape (n,)
        Times of the held-out rows.
    values : ndarray, shape (n, dim)
        Held-out values, nan where missing.
    bands : ndarray, shape (3, n, dim)
        Lower end, median and upper end of the interval of a measured value, with its error.
    level : float
        Probability of the interval.
    diverged : float
        Share of the posterior draws whose trajectories did not reach the end.
    spread : ndarray, shape (dim,)
        Standard deviations of the values of the first part.
    """

    states: tuple[str, ...]
    times: Array
    values: Array
    bands: Array
    level: float
    diverged: float
    spread: Array

    @property
    def coverage(self) -> Array:
        """Share of each state's held-out values inside their intervals (dim,); ``level`` is expected."""
        inside = (self.bands[0] <= self.values) & (self.values <= self.bands[2])
        known = ~np.isnan(self.values)
        return np.asarray((inside & known).sum(axis=0) / known.sum(axis=0))

    @property
    def error(self) -> Array:
        """RMS of each state's held-out values less the medians (dim,)."""
        return np.asarray(np.sqrt(np.nanmean((self.values - self.bands[1]) ** 2, axis=0)))

    def __str__(self) -> str:
        """Coverage and error of each state."""
        n, times = self.times.size, f"{self.times[0]:.6g} to {self.times[-1]:.6g}"
        lines = [f"Forecast of the last {n} rows, {times}, by equations found without them:"]
        rows = zip(self.states, self.coverage, self.error, self.spread, strict=True)
        lines += [
            f"{state}: {share:.0%} inside {self.level:.0%} intervals, error {error:.3g} (RMS; spread of data {sd:.3g})"
            for state, share, error, sd in rows
        ]
        return "\n".join([*lines, *([f"{self.diverged:.0%} of the trajectories diverged"] if self.diverged else [])])


def forecast_check(
    data: Sequence[Series],
    fraction: float,
    level: float,
    refit: Callable[[list[Series]], Any],
    *,
    n_draws: int | None,
    seed: int,
) -> ForecastCheck:
    """The last ``fraction`` of the first series' rows, forecast by what ``refit`` finds in the rest of the data.

    n_draws, seed: of ``Discovery.forecast``. Raises ValueError where the first part would have fewer than 8 rows, or
    the last no value of a state.
    """
    first = data[0]
    kept = len(first) - max(1, round(fraction * len(first)))
    held_out = first.values[kept:]
    if kept < FEWEST_ROWS or np.isnan(held_out).all(axis=0).any():
        raise ValueError(
            f"fraction must leave {FEWEST_ROWS} rows or more, and hold out a value of each state, got {fraction:g} of "
            f"{len(first)} rows"
        )
    velocities = None if first.velocities is None else first.velocities[:kept]
    part = replace(first, times=first.times[:kept], values=first.values[:kept], velocities=velocities)
    found = refit([part, *data[1:]])
    ensemble = found.forecast(first.times[kept:], noise=found.noise, n_draws=n_draws, seed=seed)
    bands = ensemble.bands([0.5 - 0.5 * level, 0.5, 0.5 + 0.5 * level])
    spread = np.nanstd(part.values, axis=0)
    return ForecastCheck(first.states, first.times[kept:], held_out, bands, level, ensemble.diverged, spread)
