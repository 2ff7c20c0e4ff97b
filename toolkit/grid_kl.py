"""KL of a run's draws against its truth on a grid, with the bias that their finite number leaves, and without it."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .batches import batch_numbers, cell_sums, ratio
from .checks import check_number
from .given_draws import check_draw_weights, check_draws
from .kl import cell_numbers, check_grid, check_masses, expected_kl, kl_divergence

Array = NDArray[np.float64]


class GridKL(NamedTuple):
    """KL(truth ‖ draws) in nats over the cells of a grid.

    kl: ``kl_divergence`` of all chains' draws together. n_effective: the independent draws whose frequencies vary as
    theirs do. expected: ``expected_kl`` at that number, which as many exact draws have. debiased: about KL(truth ‖ law
    of the draws); 0 on average, and so as often negative, where that law is the truth.
    """

    kl: float
    n_effective: float
    expected: float
    debiased: float


def grid_kl(
    draws: Any,
    truth: Any,
    x_edges: Any,
    y_edges: Any = None,
    *,
    weights: Any = None,
    pseudo_count: float = 0.5,
    n_effective: float | None = None,
) -> GridKL:
    """KL of ``draws`` against ``truth`` on the grid of the edges, and its bias for their finite number.

    draws: (chain, draw, dim), of which the first two coordinates count, or the first with y_edges None; weights:
    (chain, draw), up to a factor of each chain. truth: a problem's or target's ``truth``, which has masses, by
    quadrature, of its one coordinate or its first two; or masses, which one of several coordinates needs.
    pseudo_count: of ``kl_divergence``. n_effective: None for ``cell_ess``.
    debiased is the KL with counts scaled to n_effective less ``expected_kl`` at that number: exact where the law is the
    truth and each draw came several times or weighed alike, to first order in 1 / n_effective elsewhere.
    Raises TypeError or ValueError where shapes do not fit.
    """
    points, edges = check_draws(draws), check_grid(x_edges, y_edges)
    masses = masses_on(truth, edges)
    cells, scale = cells_of(points, edges, weights)
    n = scale.size
    counts = np.bincount(cells, scale, minlength=masses.size + 1)[:-1].reshape(masses.shape)
    if n_effective is None:
        number = effective_number(cells, scale, masses, points.shape)
    else:
        number = check_number("n_effective", n_effective, above=0.0)
    whole = max(1, round(number)) if number < 1e15 else n
    expected = expected_kl(masses, whole, pseudo_count=pseudo_count)
    kl = kl_divergence(counts, masses, total=n, pseudo_count=pseudo_count)
    scaled = kl_divergence(counts * (whole / n), masses, total=whole, pseudo_count=pseudo_count)
    return GridKL(kl, number, expected, scaled - expected)


def cell_ess(draws: Any, truth: Any, x_edges: Any, y_edges: Any = None, *, weights: Any = None) -> float:
    """The independent draws whose cell frequencies vary as those of all chains together, from batches of draws.

    Arguments as ``grid_kl`` takes them. With V_i the variance of the frequency q_i by batch means (20 batches a chain,
    at most 200), Σ q_i (1 − q_i) / (p_i + 1/n) over Σ V_i / (p_i + 1/n), n the draws. It holds uneven weights and
    autocorrelation both, as far as these are forgotten within a batch and between chains: a chain that changes its mode
    once in several batches comes out too good. nan for one draw alone, inf where all batches are the same.
    Law: n for independent draws. Raises as ``grid_kl``.
    Source: the mean design effect of Rao & Scott (1981); batch means.
    """
    points, edges = check_draws(draws), check_grid(x_edges, y_edges)
    masses = masses_on(truth, edges)
    cells, scale = cells_of(points, edges, weights)
    return effective_number(cells, scale, masses, points.shape)


def effective_number(cells: NDArray[np.int64], scale: Array, masses: Array, shape: tuple[int, ...]) -> float:
    """``cell_ess`` of numbered cells."""
    p = np.append(masses.ravel(), max(0.0, 1.0 - float(masses.sum())))
    batches = batch_numbers(*shape[:2])
    q, variances = ratio(cell_sums(cells, p.size, scale, batches))
    share = 1.0 / (p + 1.0 / scale.size)
    spread, variance = float((q * (1.0 - q)) @ share), float(variances @ share)
    if spread == 0.0 < scale.size - 1:
        return float(scale.size)  # all draws are in one cell
    return spread / variance if variance != 0.0 else math.inf


def cells_of(points: Array, edges: list[Array], weights: Any) -> tuple[NDArray[np.int64], Array]:
    """The cell and the weight, of mean 1, of every draw, each (chain · draw,)."""
    if points.shape[2] < len(edges):
        raise ValueError(f"draws must have at least {len(edges)} coordinates for this grid, got {points.shape}")
    scale = check_draw_weights(weights, points)
    flat = np.ones(points.shape[0] * points.shape[1]) if scale is None else scale.ravel()
    return cell_numbers(points.reshape(-1, points.shape[2]), edges), flat


def masses_on(truth: Any, edges: list[Array]) -> Array:
    """Cell masses of a truth, or those given, on the grid."""
    given = truth.cell_masses(*edges) if hasattr(truth, "cell_masses") else truth
    check_masses(given)
    masses = np.asarray(given, np.float64)
    shape = tuple(e.size - 1 for e in edges)
    if masses.shape != shape:
        raise ValueError(f"truth must have the masses of the grid's cells, shape {shape}, got {masses.shape}")
    return masses
