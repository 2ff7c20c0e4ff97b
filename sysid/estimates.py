"""Estimates of every parameter from draws: moments, intervals, modes and inclusion probabilities."""

from typing import Any, NamedTuple

import numpy as np
import scipy

from toolkit.diagnostics import r_hat
from toolkit.errors import check_array, check_number, optional, shown

from .arrays import Array
from .priors import Prior

N_GRID_POINTS = 200  # points at which a density is evaluated for its mode
GRID_MARGIN = 3.0  # bandwidths beyond the outermost draws
MAX_DENSITY_DRAWS = 20_000  # draws from which a density is computed
MIN_OTHER_WEIGHT = 1e-12  # of the largest weight; if all others have less together, the density is rounding


class Estimates(NamedTuple):
    """Estimates of each parameter, arrays (q,).

    lower, upper: ends of the central interval. mode: of the marginal density.
    """

    names: tuple[str, ...]
    mean: Array
    sd: Array
    median: Array
    lower: Array
    upper: Array
    mode: Array
    inclusion: Array

    def to_dataframe(self) -> Any:
        """A pandas DataFrame: a row per parameter, by name, and a column per estimate.

        Needs pandas (extra ``data``). Raises ImportError without it.
        """
        pandas = optional("pandas", "data")
        columns = dict(zip(self._fields[1:], map(np.array, self[1:]), strict=True))
        return pandas.DataFrame(columns, pandas.Index(self.names, name="parameter"))

    def __str__(self) -> str:
        """A table in Markdown."""
        head = "| parameter | mean | sd | median | from | to | mode | inclusion |"
        rows = [
            f"| {name} | " + " | ".join(f"{column[k]:.5g}" for column in self[1:]) + " |"
            for k, name in enumerate(self.names)
        ]
        return "\n".join([head, "| --- " * 8 + "|", *rows])


def estimate(
    names: tuple[str, ...], draws: Array, shares: Array | None, priors: tuple[Prior, ...], *, level: float
) -> Estimates:
    """Estimates from draws (n, q) that count by ``shares``. Raises ValueError for no draws, or one that has weight."""
    level = check_number("level", level, above=0.0, below=1.0)
    share = check_shares(draws, shares)
    mean = share @ draws
    ends = np.array([0.5, 0.5 - 0.5 * level, 0.5 + 0.5 * level])
    points = np.array([np.quantile(x, ends, weights=share, method="inverted_cdf") for x in draws.T]).T
    present = inclusion_of(draws, shares, priors)
    modes = marginal_modes(draws, shares)
    median, lower, upper = points
    return Estimates(names, mean, np.sqrt(share @ (draws - mean) ** 2), median, lower, upper, modes, present)


MAX_R_HAT = 1.01  # Vehtari et al. (2021), section 4
FEWEST_DRAWS = 8  # of a chain, to judge how it mixes
FALSE_ALARMS = 1e-3  # of R-hat, of chains with independent draws


def doubt_of_mixing(names: tuple[str, ...], draws: Array, shares: Array | None) -> str:
    """The largest R-hat of ``draws`` (chain, draw, q) in words, where it is too large; or "".

    The limit is MAX_R_HAT, or with few draws the quantile of R-hat for independent ones (``toolkit.diagnostics.r_hat``
    has its law), so that short chains are not judged by a limit made for long ones.
    """
    weights = None if shares is None else shares.reshape(draws.shape[:2])
    if weights is not None:
        counted = weights.any(axis=1)
        draws, weights = draws[counted], weights[counted]
    n_chains, n_draws, q = draws.shape
    if n_draws < FEWEST_DRAWS:
        return ""
    found = np.nan_to_num(r_hat(draws, weights=weights))
    halves, n = 2 * n_chains, n_draws // 2
    spread = float(scipy.special.fdtri(halves - 1, halves * (n - 1), 1.0 - FALSE_ALARMS / (2 * q)))
    limit = max(MAX_R_HAT, float(np.sqrt(1.0 + max(spread - 1.0, 0.0) / n)))
    worst = int(np.argmax(found))
    if found[worst] <= limit:
        return ""
    return (
        f"R-hat is {found[worst]:.3g} for {names[worst]}, above {limit:.3g}: the chains have not mixed, so that "
        "intervals are those of where the chains happen to be. Take more steps, larger ones, or sample "
        "problem.scaled(); where R-hat does not fall with more steps, the posterior may be improper: give priors"
    )


def check_shares(draws: Array, shares: Array | None) -> Array:
    """Weights of the draws (n,), with sum 1: ``shares``, or equal ones. Raises ValueError for no draws."""
    if not len(draws):
        raise ValueError("estimates need draws, and the run kept none")
    return np.full(len(draws), 1.0 / len(draws)) if shares is None else shares


def inclusion_of(draws: Array, shares: Array | None, priors: tuple[Prior, ...]) -> Array:
    """Probability (q,) that each term is present, from draws (n, q). Raises ValueError for no draws."""
    share = check_shares(draws, shares)
    return np.array([share @ law.inclusion(x) for law, x in zip(priors, draws.T, strict=True)])


def marginal_modes(draws: Any, weights: Any = None) -> Array:
    """Where the Gaussian kernel density of each column of ``draws`` (n, q) is largest, on 200 points; shape (q,).

    weights: (n,) ≥ 0, up to a factor; None: equal. Scott's bandwidth, the grid to 3 bandwidths beyond the draws, of
    at most 20,000 draws that have weight, evenly taken: as the r2SGLD paper has them. A column that does not vary gives
    its value.
    Raises TypeError or ValueError where shapes do not fit, a number is not finite, or one of several draws has all the
    weight, which leaves no density.
    """
    from scipy.stats import gaussian_kde  # which takes a second to import

    points = check_array("draws", draws)
    if points.ndim != 2 or not len(points):
        raise ValueError(f"draws must have shape (n, q) with n ≥ 1, got {points.shape}")
    if weights is not None:
        weights = check_array("weights", weights)
        if weights.shape != points.shape[:1] or weights.min() < 0.0 or weights.max() == 0.0:
            raise ValueError(f"weights must be ≥ 0, not all 0, and of shape {points.shape[:1]}, got {shown(weights)}")
        heaviest = int(np.argmax(weights))
        if len(points) > 1 and weights.sum() - weights[heaviest] <= MIN_OTHER_WEIGHT * weights[heaviest]:
            raise ValueError(f"weights must not lie on one draw, which has no density, but do on that at [{heaviest}]")
        points, weights = points[weights > 0.0], weights[weights > 0.0]
    stride = -(-len(points) // MAX_DENSITY_DRAWS)
    points, share = points[::stride], None if weights is None else weights[::stride]
    modes = points[0].copy()
    for k, column in enumerate(points.T):
        if np.ptp(column) > 1e-12 * np.abs(column).max():
            density = gaussian_kde(column, weights=share)
            margin = GRID_MARGIN * float(np.sqrt(density.covariance[0, 0]))
            grid = np.linspace(column.min() - margin, column.max() + margin, N_GRID_POINTS)
            modes[k] = grid[np.argmax(density(grid))]
    return np.asarray(modes)
