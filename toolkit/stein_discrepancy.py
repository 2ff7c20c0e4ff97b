"""Kernel Stein discrepancy: how far draws are from a target, by its gradient alone."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .checks import check_flag, check_number, check_scale
from .given_draws import check_sample
from .problem import as_problem

Array = NDArray[np.float64]

AT_ONCE = 2**16  # pairs held at a time, which caches hold too


class SteinDiscrepancy(NamedTuple):
    """Kernel Stein discrepancy. squared: the estimate of KSD².

    spread: standard deviation of ``squared`` without bias for independent draws of the target, from the same pairs.
    """

    squared: float
    spread: float


def ksd(
    draws: Any,
    problem: Any,
    *,
    weights: Any = None,
    scale: float = 1.0,
    beta: float = -0.5,
    temperature: float = 1.0,
    unbiased: bool = True,
) -> SteinDiscrepancy:
    """Squared kernel Stein discrepancy of ``draws`` from exp(−U / T), with the kernel (c² + |x − y|²)^β.

    draws: (n, dim) or (chain, draw, dim), chains then counting equally; weights: of the same shape without dim.
    problem: a Problem or Target, whose gradient is taken once at each draw, from all data where it draws minibatches;
    its normalising constant is not needed, nor its truth. scale: c > 0, a length; beta in (−1, 0); temperature: T > 0.
    unbiased=False counts each draw's pair with itself too: never negative, and too large by E u(x, x) / n.
    Law: for independent draws of the target the mean is 0 and the standard deviation ``spread``, √2 ‖u‖ / n; for draws
    of a law q it is E_q E_q of (s_p − s_q)(x) k(x, y) (s_p − s_q)(y), s the gradients of the logarithms. Blind to the
    weights of modes far apart, since it is local: all draws in one mode have a KSD as small as exact ones.
    Autocorrelated draws are too large by about E u(x, x) times their autocorrelation time over n.
    A problem with a domain is refused: where the density ends at a wall, Stein's identity lacks a term at the boundary,
    and exact draws would not have 0. Costs n² kernels, with memory for 2¹⁶ pairs at a time.
    Raises ValueError for a domain, where shapes do not fit or a gradient is not finite; TypeError where it is no
    problem. Source: Liu, Lee & Jordan (2016), eq. 8 and 14; Gorham & Mackey (2017), section 4, for the kernel.
    """
    problem = as_problem(problem)
    if problem.domain is not None:
        raise ValueError(
            f"problem must have no domain, got {problem.name!r}: Stein's identity lacks the term of its boundary; "
            "compare with truth.independent_draws by mmd instead"
        )
    x, w = check_sample("draws", draws, "weights", weights)
    c, b = check_scale("scale", scale), check_number("beta", beta, above=-1.0, below=0.0)
    check_scale("temperature", temperature)
    check_flag("unbiased", unbiased)
    loads = float((w**2).sum())
    if unbiased and 1.0 - loads < 1e-12:
        raise ValueError(f"draws must have at least 2 points of weight > 0, got {len(x)}")
    gradient = problem.target.evaluate(x)[1]
    if not np.isfinite(gradient).all():
        n = int(np.argmin(np.isfinite(gradient).all(axis=1)))
        raise ValueError(f"draws must be where the gradient of {problem.name!r} is finite, got {x[n].tolist()}")
    score = -gradient / temperature
    total, squares = 0.0, 0.0
    step = max(1, AT_ONCE // len(x))
    for start in range(0, len(x), step):
        rows = slice(start, start + step)
        values = stein_kernel(x[rows], score[rows], x, score, c, b)
        if unbiased:
            values[np.arange(len(values)), np.arange(start, start + len(values))] = 0.0
        total += float(w[rows] @ (values @ w))
        squares += float(w[rows] ** 2 @ (values**2 @ w**2))
    norm = 1.0 - loads if unbiased else 1.0
    return SteinDiscrepancy(total / norm, float(np.sqrt(2.0 * squares)) / norm)


def stein_kernel(x: Array, s: Array, y: Array, t: Array, scale: float, beta: float) -> Array:
    """s·t k + s·∇_y k + t·∇_x k + tr ∇_x ∇_y k of all pairs of points x, y with scores s, t."""
    dim = x.shape[1]
    square, along, product = (np.zeros((len(x), len(y))) for _ in range(3))
    for d in range(dim):
        away = x[:, d, None] - y[:, d]
        square += away**2
        along += (t[:, d] - s[:, d, None]) * away
        product += s[:, d, None] * t[:, d]
    base = scale**2 + square
    power = np.exp(beta * np.log(base))  # faster than a power
    inner = product + 2.0 * beta / base * (along - dim - 2.0 * (beta - 1.0) * square / base)
    return np.asarray(power * inner)
