"""What a problem says where no mode was found: which parameters stay open, the energy reached, and what to do."""

import math
from collections.abc import Sequence

import numpy as np

from ..arrays import Array
from .laplace import MIN_CURVATURE, Contains, Curvature, Evaluate, descend
from .search import FEW_DAMPINGS, N_ITERATIONS, mode_from

SMALL_PART = 0.3  # of a direction of length 1: a parameter with less is not named
MOST_NAMES = 4


def along(curvature: Curvature, names: Sequence[str]) -> str:
    """The parameters along the direction of lowest curvature, by their part in it."""
    parts = np.abs(curvature.vectors[:, 0])
    order = [int(k) for k in np.argsort(-parts, kind="stable") if parts[k] >= SMALL_PART]
    return ", ".join(names[k] for k in order[:MOST_NAMES]) + (", …" if len(order) > MOST_NAMES else "")


def values_in_words(names: Sequence[str], values: Array) -> str:
    """Parameters with their values, the first eight."""
    shown = ", ".join(f"{name} = {value:.4g}" for name, value in zip(names[:8], values, strict=False))
    return shown + (", …" if len(names) > 8 else "")


def no_mode_in_words(
    evaluate: Evaluate, start: Array, names: Sequence[str], *, contains: Contains | None, n_searches: int
) -> str:
    """Why the search from ``start`` (q,) ends at no mode, with the energy that it reaches, and what to do.

    n_searches: how many others there were.
    """
    others = f" and {n_searches} from other places" if n_searches else ""
    (energy,), _ = evaluate(start[None])
    if not math.isfinite(energy):
        return (
            f"no mode was found: the energy is infinite at the start, and searches from other places ({n_searches}) "
            "ended at none. Give a System with usual parameters and a start nearer to the data's, priors, or a shorter "
            "step"
        )
    if mode_from(evaluate, start, contains) is not None:
        return "no mode was found within time_limit, though there is one near the start: give a larger time_limit"
    _, energy, curvature = descend(evaluate, start, contains=contains, n_iterations=N_ITERATIONS, dampings=FEW_DAMPINGS)
    found = f"no mode was found: the search from the start{others} ended at none, the first at energy {energy:.6g}"
    if curvature is None or not np.isfinite(curvature.values).all():
        return f"{found}, beside which it is infinite. Give a shorter step, or usual parameters nearer to the data's"
    if curvature.values[0] < MIN_CURVATURE:
        return (
            f"{found}, where it does not rise along {along(curvature, names)}: data and priors leave these open there. "
            "Give priors for them, fix one, or give usual parameters nearer to the data's"
        )
    return (
        f"{found}, from which it still falls, along {along(curvature, names)} least steeply. Give usual parameters "
        "nearer to the data's, or priors"
    )
