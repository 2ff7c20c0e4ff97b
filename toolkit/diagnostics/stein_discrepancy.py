"""Kernel Stein discrepancy: how far draws are from a target, by its gradient alone."""

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from .._compiler.decorators import compile_part
from .._compiler.signatures import FLOATS, MATRIX
from ..errors import check_flag, check_number, check_scale
from ..maths.elementary import exp_share, fma, log
from ..problem.definition import as_problem
from ..weighting import check_sample

Array = NDArray[np.float64]

TILE = 512  # pairs computed at a time, which fit into the fastest cache
ADD_STEIN_KERNELS = types.void(MATRIX, MATRIX, FLOATS, types.float64, types.float64, MATRIX, MATRIX)


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
    and exact draws would not have 0. Costs n² / 2 kernels, and little memory.
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
    with_earlier = np.zeros((2, len(x)))
    add = compile_part(add_stein_kernels, ADD_STEIN_KERNELS)
    add(x.T.copy(), score.T.copy(), w, c, b, with_earlier, np.empty((3, TILE)))
    total, squares = 2.0 * float(w @ with_earlier[0]), 2.0 * float(w**2 @ with_earlier[1])
    if not unbiased:
        own = c ** (2.0 * b) * ((score**2).sum(axis=1) - 2.0 * b * x.shape[1] / c**2)
        total, squares = total + float(w**2 @ own), squares + float(w**4 @ own**2)
    if not np.isfinite([total, squares]).all():
        raise ValueError(f"draws must be small enough for their kernels to be floats, got {np.abs(x).max()}")
    norm = 1.0 - loads if unbiased else 1.0
    return SteinDiscrepancy(total / norm, float(np.sqrt(2.0 * squares)) / norm)


def add_stein_kernels(x: Any, s: Any, loads: Any, scale: Any, beta: Any, sums: Any, scratch: Any) -> None:
    """Add Σ load_i u_ij and Σ load_i² u_ij² over i < j to the rows of sums (2, draw).

    u is s_i·s_j k + s_i·∇_j k + s_j·∇_i k + tr ∇_i ∇_j k, the kernel of points with scores x, s, (dim, draw).
    loads: (draw,); scratch: (3, tile).
    """
    dim, n = x.shape
    for first in range(0, n, TILE):
        for i in range(min(first + TILE, n)):
            load, start = loads[i], max(first, i + 1)
            size = min(first + TILE, n) - start
            for j in range(size):
                scratch[0, j], scratch[1, j], scratch[2, j] = 0.0, 0.0, 0.0
            for d in range(dim):
                coordinate, score = x[d, i], s[d, i]
                for j in range(size):
                    difference = coordinate - x[d, start + j]
                    scratch[0, j] = fma(difference, difference, scratch[0, j])
                    scratch[1, j] = fma(s[d, start + j] - score, difference, scratch[1, j])
                    scratch[2, j] = fma(score, s[d, start + j], scratch[2, j])
            for j in range(size):
                square, along, product = scratch[0, j], scratch[1, j], scratch[2, j]
                inverse = 1.0 / (scale * scale + square)
                slope = along - dim - 2.0 * (beta - 1.0) * square * inverse
                weighted = load * exp_share(-beta * log(inverse)) * fma(2.0 * beta * inverse, slope, product)
                sums[0, start + j] += weighted
                sums[1, start + j] = fma(weighted, weighted, sums[1, start + j])
