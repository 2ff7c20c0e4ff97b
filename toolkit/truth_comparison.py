"""A run beside the truth of its problem, where that costs next to nothing: modes that no draw has found, mean and sd.

A truth says by its attribute ``at_hand`` what can be asked of it without a quadrature: "memberships" of points, or
"moments" too, which are ``mean``, ``covariance`` and the modes' weights.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .coordinates import Coordinates, Table
from .result import RunRecord

Floats = NDArray[np.float64]

MOST_POINTS = 20_000  # draws whose mode is looked up
SELDOM = 0.01  # of a mode's probability: where the draws have less of it, the mode was not found
EXPECTED = 20  # independent draws in a mode, of which hardly ever none is there: e⁻²⁰


class Comparison(NamedTuple):
    """What was found of the truth's modes.

    modes, found: how many there are, and how many have draws. missed: how many have none, although as many independent
    draws would have had ``EXPECTED`` in each; missed_probability: theirs together. words: a line.
    """

    modes: int
    found: int
    missed: int
    missed_probability: float
    words: str


def compared(run: RunRecord, tables: list[Table]) -> Comparison | None:
    """``run`` beside the truth; None where this is not at hand, or is not the law that is sampled."""
    truth, known = run.problem.truth, getattr(run.problem.truth, "at_hand", ())
    cold = run.sampler.arrays["temperatures"][..., : run.sampler.n_target_replicas]
    walled = run.problem.domain is None or run.sampler.boundary.kind in ("reflect", "reject")
    if truth is None or not known or not walled or (cold != 1.0).any():
        return None
    points = some_points(run)
    if len(points) == 0:
        return None
    shares = truth.memberships(points).mean(axis=0)
    found, missed, probability = shares > 0.0, 0, 0.0
    if "moments" in known:
        weights = truth.modes.weights
        found = shares > SELDOM * weights
        lost = ~found & (weights * len(points) >= EXPECTED)
        missed, probability = int(lost.sum()), float(weights[lost].sum())
    parts = [f"{int(found.sum())} of {found.size} modes found"] if found.size > 1 else []
    if "moments" in known and len(tables) == 1 and tables[0].coordinates is not None:
        parts += moment_words(tables[0].coordinates, truth.mean, truth.covariance)
    return Comparison(found.size, int(found.sum()), missed, probability, "; ".join(parts))


def some_points(run: RunRecord) -> Floats:
    """Draws (n, dim) of whole chains, evenly spaced, ``MOST_POINTS`` at most, about."""
    whole = np.flatnonzero((run.counts.status == 0).all(axis=1))
    targets, moments, dim = run.sampler.n_target_replicas, *run.replica_draws.shape[2:]
    if whole.size == 0 or moments == 0:
        return np.zeros((0, dim))
    chains = whole[:: -(-whole.size * targets // MOST_POINTS)]
    stride = -(-moments * chains.size * targets // MOST_POINTS)
    return run.replica_draws[chains, :targets, ::stride].reshape(-1, dim)


def moment_words(coordinates: Coordinates, mean: Floats, covariance: Floats) -> list[str]:
    """Mean and sd of the table beside the truth's; nothing where the truth has none."""
    rows = len(coordinates.mean)
    sd = np.sqrt(np.diagonal(covariance)[:rows])
    if not np.isfinite(mean[:rows]).all() or not np.isfinite(sd).all() or not (sd > 0.0).all():
        return []
    off = np.abs(coordinates.mean - mean[:rows])
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = off / coordinates.mcse
    ratio = coordinates.sd / sd
    standard = f" ({errors.max():.2g} standard errors)" if np.isfinite(errors).all() else ""
    low, high = f"{ratio.min():.3g}", f"{ratio.max():.3g}"
    return [
        f"mean off by {'at most ' if rows > 1 else ''}{(off / sd).max():.2g} sd{standard}",
        f"sd {low if low == high else f'{low} to {high}'} of the truth's",
    ]
