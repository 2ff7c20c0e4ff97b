"""Likely causes in the data where the weak likelihood finds no answer."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from ..data.series import Series

COARSE = 1.0  # of a state's spread: a larger change between two samples may hide a fast change
USUAL_CHANGES = 10.0  # and it is so many times the median change, as noise alone has not


@contextmanager
def causes_named(data: Sequence[Series]) -> Iterator[None]:
    """Add to a ValueError within what in the data is likely to be its cause."""
    try:
        yield
    except ValueError as error:
        causes = [cause for series in data for cause in causes_in(series)]
        if not causes:
            raise
        raise ValueError(f"{error}. The likely cause: {'; '.join(causes)}") from error


def causes_in(series: Series) -> list[str]:
    """States that are constant, or change so much between samples that what happens there is not seen, in words."""
    found = []
    for state, values in zip(series.states, series.values.T, strict=True):
        known = ~np.isnan(values)
        if not known.any():
            continue
        if np.ptp(values[known]) == 0.0:
            found.append(
                f"{state!r} is constant, {values[known][0]:.6g}, so terms that differ by factors of {state!r} alone "
                "are one combination"
            )
            continue
        changes = np.abs(np.diff(values[known])) / values[known].std()
        k = int(changes.argmax())
        if changes[k] > max(COARSE, USUAL_CHANGES * float(np.median(changes))):
            times = series.times[known][k : k + 2]
            found.append(
                f"{series.name!r} is sampled too coarsely: {state!r} changes by {changes[k]:.2g} times its spread from "
                f"t = {times[0]:.6g} to the next sample at {times[1]:.6g}. Give samples within its fast changes, or "
                "take likelihoods.trajectory(method='sdirk4')"
            )
    return found
