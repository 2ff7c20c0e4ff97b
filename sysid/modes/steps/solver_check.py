"""Whether the draws of a run are those of the equations: they are solved again with steps half as long."""

import math
from typing import NamedTuple

import numpy as np

from ...arrays import Array
from ..laplace import in_batches
from .step_check import SolutionEnergy

MOST_CHECKED = 1_000  # draws of a run
LEAST_ESS = 0.95  # of the draws; below it, steps half as long give another posterior (Timonen et al. 2022)
TAIL_SHARE, TAIL_ROOT = 0.2, 3.0  # the largest weights: min(0.2 n, 3 √n) of n (Vehtari et al. 2024)
LEAST_TAIL = 5
PRIOR_DRAWS, PRIOR_SHAPE = 10.0, 0.5  # of the tail's shape, against noise in few draws (Vehtari et al. 2024)


class SolverCheck(NamedTuple):
    """How a run's draws would weigh in the posterior with steps of the solver half as long.

    Parameters
    ----------
    k_hat
        Shape of the generalised Pareto law of the largest importance weights. Above 0.7 the weights cannot repair the
        run. It is −inf where the largest weights are equal, and nan for too few draws.
    ess_fraction
        Effective sample size of the weights, as a share of the draws: 1 where both posteriors are the same.
    largest
        Largest difference of the two energies, in nats, from their mean difference.
    n_draws
        Number of draws that were solved again.
    """

    k_hat: float
    ess_fraction: float
    largest: float
    n_draws: int

    @property
    def is_fine(self) -> bool:
        """Whether steps half as long give the same posterior, as far as the draws tell."""
        return self.ess_fraction >= LEAST_ESS


def words_of(check: SolverCheck) -> str:
    """What the check says, and what to do, in words."""
    return (
        f"steps of the solver half as long change the energies of draws by up to {check.largest:.2g} nats, so that "
        f"{check.n_draws} draws count as {check.ess_fraction * check.n_draws:.0f} (Pareto k {check.k_hat:.2g}): sample "
        "problem.refined(), which has such steps, or call identify with a shorter step"
    )


def solver_check_of(energy: SolutionEnergy, theta: Array, shares: Array | None, temperature: float) -> SolverCheck:
    """The check of draws ``theta`` (n, q) with weights ``shares`` (n,); None: equal. Raises ValueError for no draws."""
    usable = np.flatnonzero(np.isfinite(theta).all(axis=1) & (True if shares is None else shares > 0.0))
    if not usable.size:
        raise ValueError("run must have draws that are finite and have weight, got none")
    rows = usable[:: -(-usable.size // MOST_CHECKED)]
    before = in_batches(energy.evaluate)(theta[rows])[0]
    is_solved = np.isfinite(before)
    if not is_solved.any():
        raise ValueError("run must have draws that have a solution, got none")
    rows, before = rows[is_solved], before[is_solved]
    after = in_batches(energy.with_steps(2).evaluate)(theta[rows])[0]
    log_weights = (before - np.where(np.isfinite(after), after, math.inf)) / temperature
    share = np.full(len(rows), 1.0 / len(rows)) if shares is None else shares[rows] / shares[rows].sum()
    if not np.isfinite(log_weights).any():
        return SolverCheck(math.inf, 0.0, math.inf, len(rows))
    weights = np.exp(log_weights - log_weights.max())
    ess = float((share @ weights) ** 2 / (share @ weights**2))
    middle = float(np.median(log_weights[np.isfinite(log_weights)]))
    largest = float(np.abs(log_weights - middle).max()) * temperature
    return SolverCheck(pareto_shape(log_weights), ess, largest, len(rows))


def pareto_shape(log_weights: Array) -> float:
    """Shape k̂ of the generalised Pareto law of the largest weights. Source: Vehtari et al. (2024), section 2."""
    n = log_weights.size
    n_tail = math.ceil(min(TAIL_SHARE * n, TAIL_ROOT * math.sqrt(n)))
    if n_tail < LEAST_TAIL:
        return math.nan
    ordered = np.exp(np.sort(log_weights)[-n_tail - 1 :] - log_weights.max())
    excesses = ordered[1:] - ordered[0]
    if not excesses[-1] > 0.0:
        return -math.inf
    shape = generalised_pareto_shape(excesses)
    return (n_tail * shape + PRIOR_DRAWS * PRIOR_SHAPE) / (n_tail + PRIOR_DRAWS)


def generalised_pareto_shape(excesses: Array) -> float:
    """Shape of the generalised Pareto law of sorted ``excesses`` (n,) ≥ 0. Source: Zhang & Stephens (2009)."""
    n = excesses.size
    m = 30 + int(math.sqrt(n))
    quartile = max(float(excesses[int(n / 4 + 0.5) - 1]), 1e-300)
    grid = 1.0 / excesses[-1] + (1.0 - np.sqrt(m / (np.arange(1, m + 1) - 0.5))) / (3.0 * quartile)
    grid = grid[grid != 0.0]
    shapes = np.log1p(-grid[:, None] * excesses).mean(axis=1)
    profile = n * (np.log(-grid / shapes) - shapes - 1.0)
    weights = np.exp(profile - profile.max())
    rate = float(grid @ weights / weights.sum())
    return float(np.log1p(-rate * excesses).mean())
