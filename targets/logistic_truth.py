"""What is known of a logistic regression's posterior: mode and Hessian exactly, the rest by HMC and exact rejection."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from toolkit.problem import EnergyAccuracy, Modes, Target, check_finite_points
from toolkit.seeds import TRUTH, derived_seed

from .logistic_reference import (
    BURN_IN,
    CHAINS,
    PROBABILITIES,
    PROPOSALS,
    STEPS,
    Envelope,
    Reference,
    find_mode,
    reference,
    run_chains,
    stored,
)
from .rejection import accepted, check_draws, generator
from .truth_checks import check_probabilities, checked_edges

Array = NDArray[np.float64]

LEAST_ACCEPTANCE = 1e-3
LEAST_WEIGHTS = 0.3
SETTLING = 60  # HMC steps before a draw: twenty autocorrelation times of the breast-cancer posterior


@dataclass(frozen=True, eq=False)
class LogisticTruth:
    """Truth of ``logistic_regression``: numbers of a long HMC run with their errors, and exact draws by rejection.

    Stored for the default data sets with the prior of deviation √10; for others the same run is made when one of its
    numbers is first asked for (64 chains of 8,300 HMC steps, some 30 s for 1000 data in 25 dimensions). ``reference``
    holds the standard errors, R-hat and effective sample size; ``accuracy`` is 4.5 of the largest standard error.
    """

    target: Target  # of all data
    signed: Array  # features times the labels' signs, (data, dim)
    prior: float

    @cached_property
    def mode_and_hessian(self) -> tuple[Array, Array]:
        """The mode and the Hessian of U there, to rounding."""
        return find_mode(self.target, self.signed, self.prior)

    @cached_property
    def reference(self) -> Reference:
        """The numbers of the HMC run, stored or made now."""
        found = stored(self.signed, self.prior)
        return reference(self.target, *self.mode_and_hessian) if found is None else found

    @cached_property
    def envelope(self) -> Envelope:
        """Student-t of the posterior's mean, with its covariance as scale."""
        return Envelope(self.mean, np.asarray(np.linalg.cholesky(self.covariance), np.float64))

    @property
    def accuracy(self) -> float:
        """4.5 standard errors of the worst of: probabilities, log Z, means and covariances in deviations."""
        ref, spread = self.reference, np.sqrt(np.diag(self.covariance))
        errors = (
            ref.energies_error.max(), ref.log_normaliser_error, (ref.mean_error / spread).max(),
            (ref.covariance_error / np.outer(spread, spread)).max(), self.weighted_plane[2],
        )  # fmt: skip
        return 4.5 * float(max(errors))

    @property
    def log_normaliser(self) -> float:
        """log ∫ exp(−U), by bridge sampling."""
        return float(self.reference.log_normaliser)

    @property
    def log_evidence(self) -> float:
        """log p(y): the log normaliser with the constant of the prior, −dim/2 log(2π prior²)."""
        return self.log_normaliser - 0.5 * self.target.dim * float(np.log(2.0 * np.pi * self.prior**2))

    @property
    def mean(self) -> Array:
        """Mean (dim,)."""
        return self.reference.mean

    @property
    def covariance(self) -> Array:
        """Covariance (dim, dim)."""
        return self.reference.covariance

    @property
    def modes(self) -> Modes:
        """The one mode."""
        return Modes(self.mode_and_hessian[0][None], np.ones(1))

    def memberships(self, points: Any) -> Array:
        """Ones, shape (n, 1)."""
        return np.ones((len(check_finite_points(points, self.target.dim)), 1))

    def energy_quantiles(self, probabilities: Any) -> Array:
        """Energies u with P(U ≤ u) = p: measured, and between and beyond (0.001, 0.999) along ½ χ²'s quantiles.

        They would be the lowest energy plus ½ χ²'s of dim degrees of freedom, were the posterior Gaussian.
        """
        half, wanted = 0.5 * self.target.dim, check_probabilities(probabilities)
        lowest = self.target.evaluate(self.mode_and_hessian[0][None])[0][0]
        across = np.concatenate([[0.0], scipy.special.gammaincinv(half, PROBABILITIES)])
        energies = np.concatenate([[lowest], self.reference.energies])
        place = scipy.special.gammaincinv(half, wanted)
        slope = (energies[-1] - energies[-2]) / (across[-1] - across[-2])
        beyond = energies[-1] + slope * (place - across[-1])
        return np.asarray(np.where(place > across[-1], beyond, np.interp(place, across, energies)))

    @property
    def energy_accuracy(self) -> EnergyAccuracy:
        """Of energy quantiles, from 0.001 to 0.999: 4.5 standard errors of the worst."""
        return EnergyAccuracy(0.0, 4.5 * float(self.reference.energies_error.max()))

    @property
    def draws_are_exact(self) -> bool:
        """Whether rejection accepts at least one proposal in 1000; else the draws are the ends of HMC chains."""
        return float(self.reference.log_bound) - self.log_normaliser < -math.log(LEAST_ACCEPTANCE)

    def independent_draws(self, n: int, *, seed: int) -> Array:
        """Independent draws (n, dim): exact by rejection under the envelope, as far as its bound is found.

        Raises RuntimeError where a proposal lies above the bound. Where ``draws_are_exact`` is False each is the end of
        a chain of its own after 60 HMC steps, exact but for what is left of the start.
        """
        n = check_draws(n, self.target.dim)
        if not self.draws_are_exact:
            generator(seed)
            if n == 0:
                return np.empty((0, self.target.dim))
            ends = run_chains(self.target, *self.mode_and_hessian, n_chains=n, burn_in=SETTLING, steps=1, seed=seed)[0]
            return np.ascontiguousarray(ends[:, 0])
        rng, bound = generator(seed), float(self.reference.log_bound)

        def propose(batch: int) -> Array:
            points = self.envelope.draw(batch, rng)
            log_keep = -self.target.evaluate(points)[0] - self.envelope.log_density(points) - bound
            if (log_keep > 0.0).any():
                raise RuntimeError(f"{self.target.name}: a proposal lies e^{log_keep.max():.3f} above the envelope")
            return np.asarray(points[np.log(rng.random(batch)) < log_keep])

        return accepted(n, self.target.dim, propose, name=self.target.name)

    @cached_property
    def weighted_plane(self) -> tuple[Array, Array, float]:
        """The first two coordinates of a sample (n, 2), weights that sum to 1, and the largest error of a probability.

        By importance sampling from the envelope, or where its weights are too uneven from the HMC run made anew.
        """
        points = self.envelope.draw(4 * PROPOSALS, np.random.default_rng(derived_seed(4, TRUTH)))
        log_weights = -self.target.evaluate(points)[0] - self.envelope.log_density(points)
        weights = np.exp(log_weights - log_weights.max())
        weights /= weights.sum()
        size = 1.0 / (weights**2).sum()
        if size < LEAST_WEIGHTS * len(points):
            draws = run_chains(
                self.target, *self.mode_and_hessian, n_chains=CHAINS, burn_in=BURN_IN, steps=STEPS, seed=1
            )[0]
            points, size = draws.reshape(-1, self.target.dim), float(self.reference.ess)
            weights = np.full(len(points), 1.0 / len(points))
        return np.ascontiguousarray(points[:, :2]), weights, 0.5 / np.sqrt(size)

    def cell_masses(self, x_edges: Any, y_edges: Any = None) -> Array:
        """Probability of each cell in the first two coordinates, shape (nx, ny); in one dimension (nx,)."""
        edges = checked_edges(x_edges, y_edges, self.target.dim)
        points, weights, _ = self.weighted_plane
        return np.asarray(np.histogramdd(points, edges, weights=weights)[0])
