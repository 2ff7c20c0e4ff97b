"""Nested R-hat, for many chains that are each too short for R-hat, and its use on chains grouped by their starts."""

import math
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from ..errors import check_count
from ..weighting import check_draws, rescaled

Array = NDArray[np.float64]


def nested_r_hat(draws: Any, n_superchains: int) -> Array:
    """Nested R-hat of each coordinate: the spread between groups of chains over the spread within them.

    Parameters
    ----------
    draws : array_like, shape (chain, draw, dim)
        Draws without burn-in, as ``run.draws``. Chains of a group ("superchain") are consecutive.
    n_superchains : int
        Number K of groups, at least 2, which divides the number of chains. A group has M = chains / K chains.

    Returns
    -------
    ndarray, shape (dim,)
        √(1 + B / W). B is the variance of the means of the groups, W the mean over groups of the variance of the means
        of the chains in the group plus the mean variance within these chains. nan where all draws are equal, inf where
        nothing moves within groups that are in different places.

    Raises
    ------
    TypeError, ValueError
        Where ``draws`` has another shape, or ``n_superchains`` does not divide the number of chains.

    Notes
    -----
    R-hat compares means of single chains, so that it exceeds 1.01 where the draws of a chain are correlated and worth
    less than some 50 independent ones, however many chains there are. Nested R-hat compares means of M chains. Let a
    chain be worth e independent draws. For chains that have reached their law, B / W is 1 / (M e) on average, and
    (M e) B / W follows an F law with K − 1 and K (M − 1) degrees of freedom to first order. So it comes near 1 with
    more chains as with longer ones.

    It only sees what the starts leave behind if the chains of a group start at one point, or near each other, and
    groups apart. If all chains have independent starts from one law, sort them by their starts first. With M = 1 it is
    R-hat without ranks and without split chains. Weights do not enter.

    References
    ----------
    Margossian, Hoffman, Sountsov, Riou-Durand, Vehtari & Gelman (2024), "Nested R-hat: assessing the convergence of
    Markov chain Monte Carlo when running many short chains", Bayesian Analysis, definition 2.2.

    Examples
    --------
    >>> import numpy as np
    >>> from toolkit import diagnostics
    >>> rng = np.random.default_rng(0)
    >>> draws = rng.normal(size=(512, 1, 1)) + rng.normal(size=(512, 8, 1))  # a chain is worth some two draws
    >>> float(diagnostics.r_hat(draws)[0]) > 1.1, float(diagnostics.nested_r_hat(draws, 8)[0]) < 1.01
    (True, True)
    """
    points = check_draws(draws)
    chains = len(points)
    k = check_count("n_superchains", n_superchains, at_least=2)
    if chains % k:
        raise ValueError(f"n_superchains must divide the number of chains, {chains}, got {k}")
    points = np.stack([rescaled(points[..., d]) for d in range(points.shape[2])], axis=2)
    means, variances = points.mean(axis=1), np.zeros((chains, points.shape[2]))
    if points.shape[1] > 1:
        variances = points.var(axis=1, ddof=1)
    between, within, _ = spreads(means, variances, k)
    return ratio(between, within)


class Spreads(NamedTuple):
    """Variances by coordinate: of the means of superchains, within superchains, and of the means of their chains."""

    between: Array
    within: Array
    of_chains: Array


def spreads(means: Array, variances: Array, k: int) -> Spreads:
    """The variances of ``nested_r_hat`` from chains' means and variances (chain, dim), ``k`` superchains in order."""
    grouped = means.reshape(k, -1, means.shape[1])
    of_chains = np.zeros(means.shape[1])
    if grouped.shape[1] > 1:
        of_chains = grouped.var(axis=1, ddof=1).mean(axis=0)
    return Spreads(grouped.mean(axis=1).var(axis=0, ddof=1), of_chains + variances.mean(axis=0), of_chains)


def ratio(between: Array, within: Array) -> Array:
    """√(1 + between / within); nan where both are 0, inf where ``within`` is."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.sqrt(1.0 + between / within))


# Chains of a run, grouped by where they started.

SUPERCHAINS = 16
LIMIT = 1.01  # of R-hat: Vehtari et al. (2021), section 4
ENOUGH = 1.0 / (LIMIT**2 - 1.0)  # 50 independent draws of a half chain, or of a superchain, for R-hat ≤ LIMIT
FEWEST_CHAINS = math.ceil(SUPERCHAINS * ENOUGH)  # with at least one independent draw each: nested R-hat can be ≤ LIMIT
LARGEST = math.sqrt(2.0)  # R-hat of half chains that are worth two independent draws
FALSE_ALARMS = 1e-4  # chance that independent starts are reported as remembered


class ByStart(NamedTuple):
    """Nested R-hat of chains that are grouped by their starts.

    value: nested R-hat, 1 where all draws are equal. excess: the spread of the superchains' means beyond chance, in
    standard deviations; 0 where chance explains it, inf where nothing moves within the superchains. is_met: nested
    R-hat is at most ``LIMIT``, and chance explains the spread.
    """

    value: float
    excess: float
    is_met: bool


def can_judge(n_chains: int, worst_r_hat: float) -> bool:
    """Whether nested R-hat can say more than R-hat, which is above its limit: there are many chains.

    Half chains of many correlated draws, worth e independent ones, have variances 1/e between and 1 − 1/e within them.
    So R-hat is near √(1 + 1/(e − 1)), above ``LIMIT`` for e < 50. With ``SUPERCHAINS`` groups of 50 or more chains
    nested R-hat is below it from e = 1 on.
    """
    return n_chains >= FEWEST_CHAINS and worst_r_hat > LIMIT


def by_starts(means: Array, variances: Array, starts: Array) -> ByStart:
    """Nested R-hat of one coordinate, its chains in ``SUPERCHAINS`` groups by their starts in each of several.

    means, variances: of each chain's draws, (chain,). starts: (chain, n). The finding is that of the coordinate by
    which groups differ most: where a chain ends up may depend on another coordinate than the one that is judged.
    """
    size = len(means) // SUPERCHAINS
    limit = scipy.stats.f.isf(FALSE_ALARMS / starts.shape[1], SUPERCHAINS - 1, SUPERCHAINS * (size - 1))
    found = [by_start(means, variances, row, size, limit) for row in starts.T]
    return max(found, key=lambda one: (not one.is_met, one.value))


def by_start(means: Array, variances: Array, starts: Array, size: int, limit: float) -> ByStart:
    """``by_starts`` of one coordinate of the starts, (chain,). size: of a group. limit: of the F ratio, by chance."""
    used = np.argsort(starts, kind="stable")[: size * SUPERCHAINS]
    found = spreads(means[used, None], variances[used, None], SUPERCHAINS)
    between, within, of_chains = (float(value[0]) for value in found)
    if between == 0.0 and within == 0.0:  # nothing moves, and all chains are in one place
        return ByStart(1.0, 0.0, True)
    value = float(ratio(np.array(between), np.array(within)))
    chance = of_chains / size
    is_chance = between <= limit * chance
    excess = 0.0 if is_chance else math.inf if within == 0.0 else math.sqrt(max(0.0, between - chance) / within)
    return ByStart(value, excess, is_chance and value <= LIMIT)
