"""Combine the cycles of a cyclical run: weights in proportion to the masses of the regions that they explored."""

from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from ..errors import check_array, check_choice, check_count, check_integers, check_scale

__all__ = ["combine_cycles", "cycle_of"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

METHODS = ("truncated", "harmonic")
DEGENERATE = 1e-10  # smallest eigenvalue of a correlation matrix that still counts as spanning the space


def cycle_of(steps: Any, n_cycles: int, n_steps: int) -> Integers:
    """The cycle, from 0, in which each of ``steps`` (draw,) lies: cycles are ⌈n_steps / n_cycles⌉ long.

    steps: integers 0 to n_steps − 1, as in ``run.steps``; n_cycles and n_steps: those of the schedule and of the run.
    Raises TypeError or ValueError otherwise. The lengths are those of ``schedules.cosine_cycles``.
    """
    check_count("n_steps", n_steps, at_least=1)
    check_count("n_cycles", n_cycles, at_least=1, below=n_steps + 1)
    given = check_integers("steps", steps)
    if given.ndim != 1:
        raise ValueError(f"steps must have shape (draw,), got shape {given.shape}")
    if given.size and not (given.min() >= 0 and given.max() < n_steps):
        raise ValueError(f"steps must be ≥ 0 and < n_steps = {n_steps}, got {given.min()} to {given.max()}")
    return np.asarray(given.astype(np.int64) // -(-n_steps // n_cycles))


def combine_cycles(
    draws: Any, energies: Any, cycles: Any, *, method: str = "truncated", separation: float = 2.0
) -> Floats:
    """Weights (chain, draw) of the draws of a cyclical run, which sum to 1 in every chain.

    draws: (chain, draw, dim). energies: (chain, draw), −log of the unnormalised density the draws follow, in nats
    (at a temperature T other than 1: U / T). cycles: (draw,), the cycle each draw belongs to (``cycle_of``).
    Within its cycle a draw must follow the target restricted to the region the cycle explored.

    method 'truncated': cycles that explored the same region are joined, and each such group counts by an estimate of
    its region's mass Z: 1 / Z is the mean of f exp(U) over the group's draws, with f a normal cut to an ellipsoid
    (Geweke 1999; Robert & Wraith 2009). Every other draw gives f its mean and covariance, and the ellipsoid that holds
    half of those draws; the mean is over the rest; then the halves change places. f exp(U) is bounded, so Z's relative
    error is about 1 / √draws for independent draws, and 1 / Z is unbiased for them. Joined are cycles whose means
    are less than ``separation`` > 0 standard deviations apart (Mahalanobis, under the mean of the two covariances),
    and cycles linked through others. A cycle that visits two regions of which another visits only one leaves the
    shares of that group to the draws; cycles in different groups should not overlap.

    method 'harmonic': the paper's; each cycle counts by the harmonic mean of exp(−U) over its draws. Known weakness:
    the mean of exp(U) is dominated by the few draws of largest energy, and has infinite variance, and without a
    bounded region an infinite mean, so that more draws do not help; what it estimates is the mean density of a
    region, not its mass, so that wide regions count too little; and a region counts once for every cycle there.
    Source: cyclical SG-MCMC (2020), eq. 33 and appendix F.

    Raises TypeError or ValueError where shapes do not fit, where a number is out of range, and for 'truncated' where
    a cycle has fewer than 2 (dim + 2) draws or does not span the space.
    """
    points, energy, labels = check_cycles(draws, energies, cycles)
    check_choice("method", method, METHODS)
    check_scale("separation", separation)
    names, index = np.unique(labels, return_inverse=True)
    counts = np.bincount(index)
    chains, n_draws, dim = points.shape
    if method == "truncated" and counts.min() < 2 * (dim + 2):
        scarce = int(counts.argmin())
        raise ValueError(
            f"every cycle must have at least 2 (dim + 2) = {2 * (dim + 2)} draws, got {counts[scarce]} in cycle "
            f"{names[scarce]}"
        )
    log_weights = np.empty((chains, n_draws))
    for chain in range(chains):
        x, u = points[chain], energy[chain]
        group = linked_cycles(x, index, separation, chain, names)[index] if method == "truncated" else index
        for g in range(group.max() + 1):
            own = group == g
            where = f"the group of cycles {', '.join(map(str, np.unique(labels[own])))} in chain {chain}"
            log_mass = log_truncated_mass(x[own], u[own], where) if method == "truncated" else log_harmonic_mean(u[own])
            log_weights[chain, own] = log_mass - np.log(own.sum())
    return np.asarray(np.exp(log_weights - scipy.special.logsumexp(log_weights, axis=1, keepdims=True)))


def check_cycles(draws: Any, energies: Any, cycles: Any) -> tuple[Floats, Floats, Integers]:
    """The three as arrays. Raises TypeError or ValueError where their shapes do not fit."""
    points, energy = check_array("draws", draws), check_array("energies", energies)
    labels = check_integers("cycles", cycles)
    if points.ndim != 3 or points.size == 0:
        raise ValueError(f"draws must have shape (chain, draw, dim) and not be empty, got shape {points.shape}")
    if energy.shape != points.shape[:2]:
        raise ValueError(f"energies must have shape (chain, draw) = {points.shape[:2]}, got {energy.shape}")
    if labels.shape != points.shape[1:2]:
        raise ValueError(f"cycles must have shape (draw,) = {points.shape[1:2]}, got {labels.shape}")
    return points, energy, labels.astype(np.int64)


def linked_cycles(draws: Floats, index: Integers, separation: float, chain: int, names: Integers) -> Integers:
    """The group of each cycle, (cycle,): single linkage of the Mahalanobis distances between their means."""
    from scipy.sparse.csgraph import connected_components  # slow import, needed only here

    n_cycles = names.size
    means, covariances = np.empty((n_cycles, draws.shape[1])), np.empty((n_cycles, draws.shape[1], draws.shape[1]))
    for cycle in range(n_cycles):
        where = f"cycle {names[cycle]} of chain {chain}"
        means[cycle], covariances[cycle] = mean_and_covariance(draws[index == cycle], where)
    near = np.zeros((n_cycles, n_cycles), np.bool_)
    for cycle in range(n_cycles - 1):
        gaps = means[cycle + 1 :] - means[cycle]
        solved = np.linalg.solve(0.5 * (covariances[cycle + 1 :] + covariances[cycle]), gaps[:, :, None])[:, :, 0]
        near[cycle, cycle + 1 :] = (gaps * solved).sum(axis=1) < separation**2
    return np.asarray(connected_components(near, directed=False)[1], np.int64)


def mean_and_covariance(draws: Floats, where: str) -> tuple[Floats, Floats]:
    """Mean and covariance of ``draws`` (draw, dim), named ``where`` in errors. Raises ValueError for a singular one."""
    mean, scale = draws.mean(axis=0), draws.std(axis=0)
    spans = bool((scale > 1e-12 * np.abs(draws).max(axis=0)).all())
    if spans:
        standard = (draws - mean) / scale
        spans = bool(np.linalg.eigvalsh(standard.T @ standard / len(draws))[0] > DEGENERATE)
    if not spans:
        raise ValueError(
            f"the draws of {where} must span all {draws.shape[1]} dimensions, but their covariance is singular: too "
            "few of them differ, or a coordinate is a linear function of others"
        )
    return mean, np.atleast_2d(np.cov(draws, rowvar=False))


def log_truncated_mass(draws: Floats, energies: Floats, where: str) -> float:
    """log Z of the region that ``draws`` (draw, dim) explored, by the truncated reciprocal estimate."""
    dim = draws.shape[1]
    terms = []
    for first, second in ((0, 1), (1, 0)):
        mean, covariance = mean_and_covariance(draws[first::2], where)
        root = np.linalg.cholesky(covariance)
        squared = (np.linalg.solve(root, (draws - mean).T) ** 2).sum(axis=0)
        limit = float(np.median(squared[first::2]))
        log_share = np.log(scipy.special.chdtr(dim, limit))
        log_normaliser = 0.5 * dim * np.log(2.0 * np.pi) + np.log(np.diag(root)).sum() + log_share
        log_ratio = (energies - 0.5 * squared - log_normaliser)[second::2]
        terms.append(log_ratio[squared[second::2] <= limit])
    ratios = np.concatenate(terms)
    if ratios.size == 0:
        raise ValueError(f"{where} has too few draws in {dim} dimensions: {len(draws)}, none of them near their middle")
    return float(np.log(len(draws)) - scipy.special.logsumexp(ratios))


def log_harmonic_mean(energies: Floats) -> float:
    """Logarithm of the harmonic mean of exp(−U)."""
    return float(np.log(energies.size) - scipy.special.logsumexp(energies))
