"""Residuals at a mode, of likelihoods that are a product over measured values."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..arrays import Array, Bools
from ..data.residuals import ResidualPart
from ..data.series import Series

STEP = 1e-3  # of a standard deviation, by which a parameter is moved for the slope of the residuals
NEGLIGIBLE = 1e-8  # of the largest singular value: directions below it are rounding


def residuals_at(
    values: Any,
    series: Sequence[Series],
    parameters_of: Callable[[Array], Array],
    position: Array,
    sds: Array,
    moves: Bools,
) -> list[ResidualPart]:
    """The residuals of all series at a mode, for ``data.residuals``.

    values: what tells the measured values and their normal scores at parameters (n, q). parameters_of: positions (n, q)
    → parameters. sds: (q,) standard deviations of the mode. moves: (q,), which parameters move the states. The
    residuals are those at their minimum, to first order, which takes away what the search has left.
    """
    steps = STEP * np.diag(sds)[moves]
    points = np.concatenate([position[None], position + steps, position - steps])
    found = values.normal_scores(parameters_of(points))
    scores, upper, lower = found[0], *np.split(found[1:], 2)
    slopes = (upper - lower).T
    slopes = slopes[:, np.isfinite(slopes).all(axis=0)]
    directions, sizes, _ = np.linalg.svd(slopes, full_matrices=False)
    directions = directions[:, sizes > NEGLIGIBLE * sizes.max(initial=0.0)]
    scores = scores - directions @ (directions.T @ scores)
    parts, first = [], 0
    quantities = tuple(dict.fromkeys(name for one in values.measured() for name in one.quantities))
    for one, measured in zip(series, values.measured(), strict=True):
        last = first + len(measured.times)
        rows = np.searchsorted(one.times, measured.times)
        columns = np.array([quantities.index(name) for name in measured.quantities])
        own = np.array([one.states.index(name) for name in measured.quantities])
        shape = (len(one), len(quantities))
        table, of_scores = np.full(shape, np.nan), np.full(shape, np.nan)
        shared = np.zeros((*shape, directions.shape[1]))
        table[rows, columns] = one.values[rows, own]
        of_scores[rows, columns], shared[rows, columns] = scores[first:last], directions[first:last]
        parts.append(ResidualPart(one.name, one.times, table, of_scores, shared, np.zeros((*shape, 0))))
        first = last
    return parts
