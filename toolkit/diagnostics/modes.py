"""Modes: which ones the draws cover, and their weights."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import check_array, check_choice, check_number, check_scale, shown
from ..weighting import batch_numbers, check_draw_weights, check_draws, ratio

Array = NDArray[np.float64]

AT_ONCE = 2**16  # numbers computed at a time, which fit into the cache


class ModeCoverage(NamedTuple):
    """Modes found. number: (chain,). covered: (chain, mode). counts: (chain, mode), draws near each."""

    number: NDArray[np.int64]
    covered: NDArray[np.bool_]
    counts: Array


def mode_coverage(
    draws: Any, centres: Any, *, radius: float = 0.25, threshold: float = 100.0, weights: Any = None
) -> ModeCoverage:
    """Modes that each chain covers: those with more than ``threshold`` of its draws within ``radius`` of the centre.

    draws: (chain, draw, dim); centres: (mode, dim), as ``truth.modes.centres``; weights: (chain, draw), scaled to sum
    to the number of draws. radius > 0, threshold ≥ 0. For chains together, give them as one:
    ``draws.reshape(1, -1, dim)``. Says nothing of weights: one draw above the threshold will do.
    Law: of n independent draws each count is binomial, with the mass of the ball.
    Raises TypeError or ValueError where shapes do not fit. Source: cSG-MCMC (2020), A.1, with its radius and threshold.
    """
    points = check_draws(draws)
    places = check_places(centres, points.shape[2])
    check_scale("radius", radius)
    check_number("threshold", threshold, at_least=0.0)
    scale = check_draw_weights(weights, points)
    counts = np.zeros((len(points), len(places)))
    for chain, chain_draws in enumerate(points):
        for start in pieces(len(chain_draws), len(places)):
            near = squared_distances(chain_draws[start], places) <= radius * radius
            counts[chain] += near.sum(axis=0) if scale is None else scale[chain, start] @ near
    covered = counts > threshold
    return ModeCoverage(covered.sum(axis=1), covered, counts)


class ModeWeights(NamedTuple):
    """Weights of the modes among the draws.

    estimated, standard_errors: (mode,), of all chains together, errors by batch means. true: (mode,).
    l1: Σ |estimated − true|. expected_l1: what the standard errors alone make of it, √(2/π) Σ of them.
    """

    estimated: Array
    standard_errors: Array
    true: Array
    l1: float
    expected_l1: float


def mode_weights_error(draws: Any, truth: Any, *, weights: Any = None, assign: str = "memberships") -> ModeWeights:
    """Weights of the modes by the draws, against the truth's: l1 distance, and that of sampling error alone.

    draws: (chain, draw, dim); weights: (chain, draw), up to a factor of each chain. truth: with ``modes`` and
    ``memberships``. assign: 'memberships', whose mean is the modes' weights under the truth; or 'nearest', each draw to
    the nearest centre, right where modes lie far apart and wrong where components overlap or differ in width.
    Standard errors are from 20 batches a chain, at most 200, and too small where a chain changes modes more rarely than
    once a batch. Law: of n independent draws the standard error is √(w (1 − w) / n), or less where memberships are
    shared. Raises TypeError or ValueError where shapes do not fit.
    """
    points = check_draws(draws)
    check_choice("assign", assign, ("memberships", "nearest"))
    if not (hasattr(truth, "modes") and hasattr(truth, "memberships")):
        raise TypeError(f"truth must have modes and memberships, as a problem's truth, got {shown(truth)}")
    true, places = truth.modes.weights, check_places(truth.modes.centres, points.shape[2])
    scale = check_draw_weights(weights, points)
    batches = batch_numbers(*points.shape[:2])
    flat = points.reshape(-1, points.shape[2])
    sums = np.zeros((int(batches[-1]) + 1, len(true)))
    for piece in pieces(len(flat), len(true)):
        if assign == "memberships":
            shares = truth.memberships(flat[piece])
        else:
            nearest = squared_distances(flat[piece], places).argmin(axis=1)
            shares = (nearest[:, None] == np.arange(len(true))).astype(np.float64)
        if scale is not None:
            shares = shares * scale.ravel()[piece, None]
        np.add.at(sums, batches[piece], shares)
    estimated, variances = ratio(sums)
    errors = np.sqrt(variances)
    l1, expected = np.abs(estimated - true).sum(), np.sqrt(2.0 / np.pi) * errors.sum()
    return ModeWeights(estimated, errors, np.asarray(true), float(l1), float(expected))


def check_places(centres: Any, dim: int) -> Array:
    """``centres`` (mode, dim). Raises ValueError for another shape."""
    places = check_array("centres", centres)
    if places.ndim != 2 or places.shape[1] != dim or not len(places):
        raise ValueError(f"centres must have shape (mode, {dim}), got {places.shape}")
    return places


def pieces(n: int, columns: int) -> list[slice]:
    """Slices of n rows, each with at most 2¹⁶ numbers in ``columns`` columns, and at least one row."""
    size = max(1, AT_ONCE // columns)
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def squared_distances(points: Array, places: Array) -> Array:
    """|x − c|² of all pairs, (n, mode), coordinate by coordinate."""
    squares = np.zeros((len(points), len(places)))
    with np.errstate(over="ignore"):  # for very distant draws, after a divergence
        for d in range(points.shape[1]):
            squares += (points[:, d, None] - places[:, d]) ** 2
    return squares
