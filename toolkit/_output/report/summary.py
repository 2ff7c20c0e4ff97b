"""Statistics of all coordinates of a run as a pandas DataFrame."""

from typing import Any

import numpy as np

from ..._engine.run_record import RunRecord, settings_of
from ...diagnostics.convergence import ess
from ...errors import optional
from .table import FEWEST, MOST_NUMBERS, Coordinates, Sampled, from_accumulated, from_draws, sample_of

QUANTILES = {"q05": 0.05, "median": 0.5, "q95": 0.95}


def summary_of(run: RunRecord) -> Any:
    """The summary of ``run``, as ``Run.summary`` explains it."""
    pandas = optional("pandas", "data")
    settings, dim = settings_of(run), run.problem.target.dim
    most = MOST_NUMBERS * max(1, dim // 10) // len(settings)
    frames, sources = {}, {}
    for words, chains in settings:
        sampled = sample_of(run, chains, most, dim) if run.replica_draws.shape[2] else None
        found = from_draws(run, sampled) if sampled is not None else from_accumulated(run, chains, dim)
        if found is None:
            raise ValueError(
                f"run must have draws, or an accumulator of moments, of chains that have not diverged, "
                f"but has none{f' with {words}' if words else ''}"
            )
        index = pandas.Index(found.names, name="coordinate")
        frames[words] = pandas.DataFrame(columns_of(found, sampled), index)
        sources[words] = found.source or "all draws"
    frame = frames[""] if list(frames) == [""] else pandas.concat(frames, names=["setting"])
    frame.attrs["source"] = sources.get("", sources)
    return frame


def columns_of(found: Coordinates, sampled: Sampled | None) -> dict[str, Any]:
    """The columns: mean and sd, quantiles, the error of the mean, both ESS, and R-hat."""
    unknown = np.full(len(found.mean), np.nan)
    quantiles, tail = dict.fromkeys(QUANTILES, unknown), unknown
    if sampled is not None:
        rows = sampled.points.reshape(-1, len(found.mean))
        weights = None
        if sampled.weights is not None:
            weights = (sampled.weights / sampled.weights.sum(axis=1, keepdims=True)).ravel()
        ends = np.array([np.quantile(x, [*QUANTILES.values()], weights=weights, method="inverted_cdf") for x in rows.T])
        quantiles = dict(zip(QUANTILES, ends.T, strict=True))
        if sampled.is_ranked and sampled.points.shape[1] >= FEWEST:
            tail = ess(sampled.points, weights=sampled.weights, method="tail")
    first, last = {"mean": found.mean, "sd": found.sd}, {"ess": found.ess, "ess_tail": tail, "r_hat": found.r_hat}
    return {**first, **quantiles, "mcse": found.mcse, **last}
