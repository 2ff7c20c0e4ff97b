"""The truth of a logistic regression's posterior: exact mode and Hessian, the rest by a long HMC run and rejection."""

import hashlib
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy

from toolkit import sample, samplers, schedules
from toolkit.errors import package_root
from toolkit.maths.seeds import TRUTH, derived_seed
from toolkit.problem import EnergyAccuracy, Modes, Target, check_finite_points

from ..arrays import Array
from ..truth.quantiles import check_probabilities, checked_edges
from ..truth.rejection import accepted, check_draws, generator

STORE = package_root(__name__) / "posteriors" / "logistic_references.npz"
CHAINS, BURN_IN, STEPS = 64, 300, 8000
PROBABILITIES = np.concatenate([[0.001, 0.005], np.arange(0.01, 0.995, 0.01), [0.995, 0.999]])
ENVELOPE_DEGREES = (
    10.0  # degrees of freedom of the envelope: at 40 the bound on the log ratio lies far out and is hard to find
)
PROPOSALS = 2**16


class Reference(NamedTuple):
    """Numbers of one posterior with their standard errors, which are those of the mean over 64 independent chains."""

    mean: Array  # (dim,)
    mean_error: Array
    covariance: Array  # (dim, dim)
    covariance_error: Array
    energies: Array  # (probabilities,): P(U ≤ energy) = PROBABILITIES
    energies_error: Array  # of the probabilities
    log_normaliser: Array  # ()
    log_normaliser_error: Array
    log_bound: Array  # () largest log ratio of exp(−U) and the envelope's density that optimisation finds
    r_hat: Array  # () largest over the coordinates
    ess: Array  # () smallest over the coordinates, of the 512,000 draws
    acceptance: Array  # () of HMC


class Envelope(NamedTuple):
    """Multivariate Student-t of a centre, a root R of its scale matrix R Rᵀ, and FREEDOM degrees of freedom."""

    centre: Array
    root: Array

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """Points (n, dim)."""
        normals = rng.standard_normal((n, self.centre.size))
        radius = np.sqrt(rng.chisquare(ENVELOPE_DEGREES, n) / ENVELOPE_DEGREES)
        return np.asarray(self.centre + (normals / radius[:, None]) @ self.root.T)

    def log_density(self, points: Array) -> Array:
        """Log density (n,) at ``points`` (n, dim)."""
        dim = self.centre.size
        whitened = scipy.linalg.solve_triangular(self.root, (points - self.centre).T, lower=True)
        constant = (
            scipy.special.gammaln((ENVELOPE_DEGREES + dim) / 2.0)
            - scipy.special.gammaln(ENVELOPE_DEGREES / 2.0)
            - 0.5 * dim * np.log(ENVELOPE_DEGREES * np.pi)
        )
        constant -= np.log(np.diag(self.root)).sum()
        return np.asarray(
            constant - 0.5 * (ENVELOPE_DEGREES + dim) * np.log1p((whitened**2).sum(axis=0) / ENVELOPE_DEGREES)
        )

    def log_density_gradient(self, point: Array) -> Array:
        """Gradient of the log density at one point."""
        whitened = scipy.linalg.solve_triangular(self.root, point - self.centre, lower=True)
        pull = scipy.linalg.solve_triangular(self.root, whitened, lower=True, trans="T")
        return np.asarray(-(ENVELOPE_DEGREES + point.size) / (ENVELOPE_DEGREES + whitened @ whitened) * pull)


def reference_key(signed: Array, prior: float) -> str:
    """Name of a posterior: hash of its prior and data, these to 6 decimals so that other processors have the same."""
    digest = hashlib.sha256(f"{signed.shape} {prior:.9g} ".encode())
    digest.update((np.round(signed, 6) + 0.0).tobytes())
    return digest.hexdigest()[:16]


def stored_reference(signed: Array, prior: float) -> Reference | None:
    """The stored reference, or None where there is none."""
    if not STORE.exists():
        return None
    name = reference_key(signed, prior)
    with np.load(STORE) as archive:
        if f"{name}.mean" not in archive:
            return None
        return Reference(*(archive[f"{name}.{field}"] for field in Reference._fields))


def find_mode(target: Target, signed: Array, prior: float) -> tuple[Array, Array]:
    """The mode of U and the Hessian there, by Newton's method; U is convex, so that each halved step goes down."""
    x = np.zeros(target.dim)
    energy = target.evaluate(x[None])[0][0]
    for _ in range(100):
        probability = 0.5 - 0.5 * np.tanh(0.5 * (signed @ x))  # 1/(1 + eᵐ)
        hessian = (signed * (probability * (1.0 - probability))[:, None]).T @ signed + np.eye(target.dim) / prior**2
        step = np.linalg.solve(hessian, x / prior**2 - signed.T @ probability)
        while (trial := target.evaluate((x - step)[None])[0][0]) > energy + 1e-12 * abs(energy):
            step *= 0.5
        x, energy = x - step, trial
        if np.abs(step).max() < 1e-11:
            break
    return x, np.asarray(hessian)


def run_chains(
    target: Target, mode: Array, hessian: Array, *, n_chains: int, burn_in: int, steps: int, seed: int
) -> tuple[Array, Array, float]:
    """HMC draws (chain, step, dim), energies (chain, step), and acceptance; started wider than the posterior.

    Step sizes differ by step, so that no direction makes half a turn, and keeps its energy, in all of them.
    """
    deviations = np.linalg.eigvalsh(hessian)[::-1] ** -0.5
    factors = np.random.default_rng(0).uniform(0.3, 0.95, burn_in + steps)
    n_leapfrogs = int(np.clip(np.ceil(2.2 * deviations[-1] / deviations[0]), 4, 200))
    sampler = samplers.hmc(
        deviations[0], n_leapfrogs=n_leapfrogs, random_length=False, schedule=schedules.custom(factors)
    )
    start = Envelope(mode, np.linalg.cholesky(np.linalg.inv(hessian))).draw(n_chains, np.random.default_rng(seed))
    run = sample(
        target, sampler, n_steps=burn_in + steps, burn_in=burn_in, n_chains=n_chains, init=start, seed=seed,
        keep_energies=True,
    )  # fmt: skip
    energies = np.asarray(run.energies).reshape(run.draws.shape[:2])
    return run.draws, energies, float(np.mean(run.acceptance))


def measure_reference(target: Target, mode: Array, hessian: Array) -> Reference:
    """Run HMC from ``mode`` and measure; raises ValueError where the chains do not agree (R-hat above 1.01)."""
    draws, energies, acceptance = run_chains(
        target, mode, hessian, n_chains=CHAINS, burn_in=BURN_IN, steps=STEPS, seed=1
    )
    means = draws.mean(axis=1)
    mean = means.mean(axis=0)
    outer = np.stack([(chain - mean).T @ (chain - mean) / STEPS for chain in draws])
    covariance, spread = outer.mean(axis=0), np.diag(outer.mean(axis=0))
    r_hat = np.sqrt(1.0 - 1.0 / STEPS + means.var(axis=0, ddof=1) / draws.var(axis=1).mean(axis=0)).max()
    if not r_hat < 1.01:
        raise ValueError(f"{target.name}: the reference chains do not agree, R-hat is {r_hat:.3f}")
    levels = np.quantile(energies, PROBABILITIES)
    below = np.stack([np.searchsorted(np.sort(chain), levels, side="right") / STEPS for chain in energies])
    envelope = Envelope(mean, np.linalg.cholesky(covariance))
    log_normaliser, log_normaliser_error = bridge(target, envelope, draws[:, ::16], energies[:, ::16])
    error = standard_error(means)
    return Reference(
        mean, error, covariance, standard_error(outer), levels, standard_error(below),
        *map(np.array, (log_normaliser, log_normaliser_error, log_bound(target, envelope), r_hat)),
        *map(np.array, ((spread / error**2).min(), acceptance)),
    )  # fmt: skip


def standard_error(values: Array) -> Array:
    """Of the mean over the first axis."""
    return np.asarray(values.std(axis=0, ddof=1) / np.sqrt(len(values)))


def bridge(target: Target, envelope: Envelope, draws: Array, energies: Array) -> tuple[float, float]:
    """log ∫ exp(−U) and its standard error, from draws of the posterior and of the envelope, in 16 independent parts.

    Source: Meng & Wong (1996), "Simulating ratios of normalizing constants", the optimal bridge by iteration.
    """
    proposals = envelope.draw(2 * PROPOSALS, np.random.default_rng(2))
    envelope_ratios = -target.evaluate(proposals)[0] - envelope.log_density(proposals)
    target_ratios = -energies - envelope.log_density(draws.reshape(-1, target.dim)).reshape(energies.shape)
    pairs = zip(np.split(target_ratios, 16), np.split(envelope_ratios, 16), strict=True)
    parts = np.array([solve_bridge(a.ravel(), b) for a, b in pairs])
    return float(parts.mean()), float(standard_error(parts))


def solve_bridge(target_ratios: Array, envelope_ratios: Array) -> float:
    """log Z from the log ratios of exp(−U) and the envelope at draws of the one and of the other."""
    shift, share = float(np.median(target_ratios)), target_ratios.size / (target_ratios.size + envelope_ratios.size)
    log_ratio = 0.0
    for _ in range(200):
        r = np.exp(log_ratio)
        a, b = np.exp(target_ratios - shift), np.exp(envelope_ratios - shift)
        new = np.log((b / (share * b + (1.0 - share) * r)).mean() / (1.0 / (share * a + (1.0 - share) * r)).mean())
        if abs(new - log_ratio) < 1e-10:
            break
        log_ratio = float(new)
    return log_ratio + shift


def log_bound(target: Target, envelope: Envelope) -> float:
    """Largest log ratio of exp(−U) and the envelope's density, plus 0.01, by L-BFGS from 32 + 6 dim starts.

    The starts are the largest of 2¹⁶ proposals, and points 2, 4 and 8 deviations out along each axis of the envelope.
    Where several maxima exist it may miss one; a proposal that shows so makes ``independent_draws`` raise.
    """
    from scipy.optimize import minimize

    def negative(x: Array) -> tuple[float, Array]:
        energy, gradient = target.evaluate(x[None])
        return float(energy[0] + envelope.log_density(x[None])[0]), gradient[0] + envelope.log_density_gradient(x)

    proposals = envelope.draw(PROPOSALS, np.random.default_rng(3))
    ratio = -target.evaluate(proposals)[0] - envelope.log_density(proposals)
    axes = np.concatenate([sign * far * envelope.root.T for far in (2.0, 4.0, 8.0) for sign in (-1.0, 1.0)])
    starts = np.concatenate([proposals[np.argsort(ratio)[-32:]], envelope.centre + axes])
    found = [minimize(negative, start, jac=True, method="L-BFGS-B", options={"maxiter": 1000}).fun for start in starts]
    return 0.01 - float(min(found))


def importance_moments(
    target: Target, mode: Array, hessian: Array, *, temperature: float = 1.0, n: int = PROPOSALS
) -> tuple[Array, Array, float]:
    """Mean and variance (dim,) of exp(−U / temperature), and the effective share of ``n`` weighted points.

    By importance sampling from a Student-t at the mode, so in seconds and for features of any scale, where HMC would
    need a step for each scale.
    """
    envelope = Envelope(mode, np.linalg.cholesky(1.2 * temperature * np.linalg.inv(hessian)))
    points = envelope.draw(n, np.random.default_rng(11))
    log_weights = -target.evaluate(points)[0] / temperature - envelope.log_density(points)
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    mean = weights @ points
    return mean, weights @ (points - mean) ** 2, float(1.0 / (weights**2).sum() / n)


MIN_ACCEPTANCE = 1e-3
MIN_WEIGHT_SHARE = 0.3
DRAW_STEPS = 60  # HMC steps before a draw: twenty autocorrelation times of the breast-cancer posterior


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
        found = stored_reference(self.signed, self.prior)
        return measure_reference(self.target, *self.mode_and_hessian) if found is None else found

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
        gaussian_energies = np.concatenate([[0.0], scipy.special.gammaincinv(half, PROBABILITIES)])
        energies = np.concatenate([[lowest], self.reference.energies])
        at = scipy.special.gammaincinv(half, wanted)
        slope = (energies[-1] - energies[-2]) / (gaussian_energies[-1] - gaussian_energies[-2])
        beyond = energies[-1] + slope * (at - gaussian_energies[-1])
        return np.asarray(np.where(at > gaussian_energies[-1], beyond, np.interp(at, gaussian_energies, energies)))

    @property
    def energy_accuracy(self) -> EnergyAccuracy:
        """Of energy quantiles, from 0.001 to 0.999: 4.5 standard errors of the worst."""
        return EnergyAccuracy(0.0, 4.5 * float(self.reference.energies_error.max()))

    @property
    def draws_are_exact(self) -> bool:
        """Whether rejection accepts at least one proposal in 1000; else the draws are the ends of HMC chains."""
        return float(self.reference.log_bound) - self.log_normaliser < -math.log(MIN_ACCEPTANCE)

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
            ends = run_chains(self.target, *self.mode_and_hessian, n_chains=n, burn_in=DRAW_STEPS, steps=1, seed=seed)[
                0
            ]
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
        if size < MIN_WEIGHT_SHARE * len(points):
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
