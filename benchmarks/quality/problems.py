"""What is sampled: problems that stand for kinds, and how far a run's draws are from their truth."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from targets import classics, constrained, datasets, mixtures, posteriors, shapes
from toolkit import accumulators
from toolkit.accumulators import Accumulator, HistogramSoFar, MomentsSoFar
from toolkit.diagnostics import equivalent_draws, expected_kl, kl_divergence
from toolkit.problem.definition import Problem, as_problem

Array = NDArray[np.float64]

CELLS = 20  # a direction, each of equal probability


@dataclass(frozen=True)
class Case:
    """A problem with its measure of error: KL over cells of the first one or two coordinates, or the worst coordinate.

    kinds: what it stands for. plane: whether KL is the measure; else the error is the largest, over coordinates, of
    |mean − truth's| and |sd − truth's|, in units of the truth's sd. tuned_for: gradient evaluations of the runs by
    which settings were found.
    """

    kinds: tuple[str, ...]
    make: Callable[[], Any]
    plane: bool = True
    tuned_for: int = 200_000

    @cached_property
    def problem(self) -> Problem:
        """The problem, made when first asked for."""
        return as_problem(self.make())

    @property
    def truth(self) -> Any:
        """The problem's truth."""
        return self.problem.truth

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return self.problem.target.dim

    @cached_property
    def exact(self) -> Array:
        """Independent draws (20000, dim), for scales and cells."""
        return np.asarray(self.truth.independent_draws(20_000, seed=1))

    @cached_property
    def edges(self) -> tuple[Array, ...]:
        """Edges of cells of equal probability in each of the first one or two coordinates."""
        directions = min(self.dim, 2)
        shares = np.linspace(0.0, 1.0, CELLS + 1)
        return tuple(np.quantile(self.exact[:, d], shares) for d in range(directions))

    @cached_property
    def masses(self) -> Array:
        """True probabilities of the cells."""
        return np.asarray(self.truth.cell_masses(*self.edges))

    @cached_property
    def moments(self) -> tuple[Array, Array]:
        """True means and standard deviations."""
        return self.truth.mean, np.sqrt(np.diag(self.truth.covariance))

    @cached_property
    def curvature(self) -> float:
        """0.9 quantile, over exact draws, of the largest curvature |eigenvalue of ∇²U|: the scale of step sizes."""
        points, size = self.exact[:400], 1e-5
        target = regression() if self.problem.target.stochastic else self.problem.target
        slopes = [
            (target.evaluate(points + size * unit)[1] - target.evaluate(points - size * unit)[1]) / (2.0 * size)
            for unit in np.eye(self.dim)
        ]
        hessians = np.stack(slopes, axis=-1)
        largest = np.abs(np.linalg.eigvalsh(0.5 * (hessians + hessians.transpose(0, 2, 1)))).max(axis=1)
        return float(np.quantile(largest, 0.9))

    @property
    def spread(self) -> float:
        """Median standard deviation of the coordinates."""
        return float(np.median(self.exact.std(axis=0)))

    @property
    def accumulator(self) -> Accumulator:
        """What a run must gather for ``error``."""
        return accumulators.histogram(*self.edges) if self.plane else accumulators.moments()

    def error(self, gathered: Any, by_chain: bool) -> float:
        """The error of what a run gathered; by_chain: weights hold up to a factor of each chain."""
        if isinstance(gathered, HistogramSoFar):
            weight = gathered.counts.reshape(len(gathered.counts), -1).sum(axis=1) + gathered.beyond
            if not weight.sum() > 0.0:
                return np.inf
            draws = gathered.draws.sum()
            scale = (draws / len(weight) / np.where(weight > 0.0, weight, np.inf)) if by_chain else draws / weight.sum()
            counts = np.tensordot(np.broadcast_to(scale, weight.shape), gathered.counts, 1)
            return self.error_of_counts(counts, max(float(draws), float(counts.sum())))
        assert isinstance(gathered, MomentsSoFar)
        used = gathered.weight > 0.0
        if not used.any():
            return np.inf
        shares = np.where(used, 1.0 if by_chain else gathered.weight, 0.0)
        shares = (shares / shares.sum())[used]
        mean = shares @ gathered.mean[used]
        second = np.diagonal(gathered.covariance[used], axis1=1, axis2=2) + gathered.mean[used] ** 2
        return self.error_of_moments(mean, np.sqrt(np.maximum(shares @ second - mean**2, 0.0)))

    def error_of_counts(self, counts: Any, total: float) -> float:
        """KL(truth ‖ draws) in nats; counts: of the cells, total: of all draws."""
        return kl_divergence(np.asarray(counts, np.float64).reshape(self.masses.shape), self.masses, total=total)

    def error_of_moments(self, mean: Any, deviation: Any) -> float:
        """The worst coordinate's error, in standard deviations."""
        centre, spread = self.moments
        away = np.abs(np.asarray(mean) - centre) / spread
        return float(np.maximum(away, np.abs(np.asarray(deviation) / spread - 1.0)).max())

    @cached_property
    def error_of_one_draw(self) -> float:
        """Median of error · √n of n independent draws, where the error is the worst coordinate's."""
        n = 500
        draws = self.exact.reshape(-1, n, self.dim)
        errors = [self.error_of_moments(some.mean(axis=0), some.std(axis=0)) for some in draws]
        return float(np.median(errors) * np.sqrt(n))

    @cached_property
    def scale(self) -> tuple[Array, Array]:
        """Logarithms of KLs, increasing, and of the independent draws that have them; up to the worst KL there is."""
        errors = np.geomspace(1e-8, 1e3, 4000)
        draws = equivalent_draws(errors, self.masses)
        last = int(np.argmax(draws <= draws[-1]))
        return np.log(errors[: last + 1]), np.log(draws[: last + 1])

    def worth(self, error: float) -> float:
        """The number of independent draws whose error is as large; 0 where draws of no number have such an error."""
        if not np.isfinite(error):
            return 0.0
        if self.plane:
            errors, draws = self.scale
            return float(np.exp(np.interp(np.log(error), errors, draws))) if np.log(error) < errors[-1] else 0.0
        return float((self.error_of_one_draw / max(error, 1e-300)) ** 2)

    def floor(self, n: int) -> float:
        """The error of n independent draws."""
        return expected_kl(self.masses, n) if self.plane else self.error_of_one_draw / n**0.5


@cache
def heart() -> datasets.DataSet:
    """The data of the regression: the stand-in, for which settings were searched and tables measured."""
    return datasets.stand_in("heart")


def regression(**batches: int) -> Any:
    """Bayesian linear regression of the stand-in for the Heart data, 14 coefficients."""
    data = heart()
    return posteriors.linear_regression(data.features, data.labels, noise=0.5, prior=1.0, **batches)


def in_flower() -> Any:
    """The problem of r2SGLD (2024), figure 5."""
    return constrained(mixtures.cosine25(), shapes.flower(petals=5, offset=3.0, radius=2.0))


ONE, NEAR, FAR, WALLS, NOISY, HIGH = (
    "one mode", "many modes near", "many modes far apart", "walls", "noisy gradients", "high dimension",
)  # fmt: skip

CASES = {
    "cosine25": Case((NEAR,), mixtures.cosine25),
    "gaussian_grid25": Case((FAR,), mixtures.gaussian_grid25),
    "five_spots": Case((FAR,), mixtures.five_spots),
    "muller_brown": Case((NEAR,), classics.muller_brown),
    "banana": Case((ONE,), classics.banana),
    "funnel, 10-D": Case((HIGH,), lambda: classics.funnel(dim=10)),
    "correlated, 16-D": Case((HIGH,), lambda: classics.correlated_gaussian(dim=16), plane=False),
    "double well, 10-D": Case((HIGH,), lambda: classics.double_well(dim=10), plane=False),
    "linear regression": Case((HIGH, ONE), regression, plane=False),
    "linear regression by 32": Case((NOISY,), lambda: regression(batch_size=32), plane=False, tuned_for=50_000),
    "cosine25 in flower": Case((WALLS,), in_flower),
    "cosine25 in heart": Case((WALLS,), lambda: constrained(mixtures.cosine25(), shapes.heart())),
}
HIGHER = {  # no settings were searched for them
    "correlated, 100-D": Case((HIGH, ONE), lambda: classics.correlated_gaussian(dim=100), plane=False),
    "badly scaled, 100-D": Case((HIGH, ONE), lambda: classics.badly_scaled_gaussian(dim=100), plane=False),
}
