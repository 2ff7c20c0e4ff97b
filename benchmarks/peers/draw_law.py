"""Whether draws have the right law: their moments beside those of exact draws, with standard errors and a bias."""

from typing import Any

import numpy as np

ALLOWED = 5.0  # standard errors


def deviation(values: Any, weights: Any, exact: Any, bias: float) -> float:
    """The largest |estimate − truth| / allowed of all moments: right below 1.

    values: (draw, chain, moment) with weights (draw, chain), of chains that are independent. exact: (n, moment), of
    independent draws of the truth. bias: the share of a moment that the step size may cost.
    """
    sums, totals = (weights[..., None] * values).sum(0), weights.sum(0)[:, None]
    estimate = sums.sum(0) / totals.sum(0)
    error = np.std(sums - estimate * totals, axis=0) / totals.mean() / np.sqrt(len(sums))
    truth, of_truth = exact.mean(0), exact.std(0) / np.sqrt(len(exact))
    found = np.abs(estimate - truth) / (ALLOWED * np.hypot(error, of_truth) + bias * truth)
    return float(found.max()) if np.isfinite(found).all() else np.inf
