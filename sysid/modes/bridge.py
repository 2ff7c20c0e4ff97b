"""The evidence from draws: the multistate Bennett acceptance ratio between a density that is known and those of a run.

With one temperature it is bridge sampling. Source: Meng & Wong (1996), Statistica Sinica 6, 831; Shirts & Chodera
(2008), J. Chem. Phys. 129, 124105. The error is that of an estimating equation whose terms are sums of blocks.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy

from toolkit import Run
from toolkit.diagnostics import ess
from toolkit.errors import shown, warn_user
from toolkit.schedules import evaluate as schedule_factors
from toolkit.tempering import ReplicaExchange, Stein

from ..arrays import Array, Integers
from .laplace import Evaluate, in_batches
from .search import Mode
from .table import nearest_mode

DOF = 5.0  # of the reference's parts: tails heavier than a posterior's, so that few draws decide nothing
MOST_DRAWS = 20_000  # of each temperature, and of the reference
LEAST_DRAWS = 2_000  # of the reference
WHOLE_CHAINS = 8  # from so many chains on, a block is a chain
N_BLOCKS = 16  # of all chains, where these are fewer
TOLERANCE = 1e-10  # of the estimating equations, relative to the number of draws
LEAST_OVERLAP = 1e-3
MOST_DISAGREEMENT = 5.0  # standard errors
LEAST_COUNTING = 100.0  # draws of the reference that count, for its estimate alone to be known


class Evidence(NamedTuple):
    """A log evidence in nats.

    error: its standard error, from blocks of chains. overlap: of the reference and the draws, of all temperatures: 1
    where all have one law, 0 where one of them is apart from all others, and the error means nothing; it is 1 less the
    second eigenvalue of the overlap matrix (Klimovich, Shirts & Mobley 2015). disagreement: how many standard errors
    the estimate by exact draws of the reference alone, without those of the run, is off: above 5 the run's draws are
    not those of the posterior; nan where too few of the exact ones count. temperatures: those whose draws count.
    """

    log_evidence: float
    error: float
    overlap: float
    disagreement: float
    temperatures: tuple[float, ...]


class Bridge(NamedTuple):
    """Log integrals (states,) of exp(−u), the first state's 0, the others' covariance, and Σ share p pᵀ."""

    log_integrals: Array
    covariance: Array
    overlaps: Array


@dataclass(frozen=True)
class Reference:
    """A mixture of Student's t's: centres (parts, q), lower roots (parts, q, q) of their scales, weights (parts,)."""

    centres: Array
    roots: Array
    weights: Array

    def draws(self, n: int, rng: np.random.Generator) -> Array:
        """Independent draws (n, q)."""
        part = rng.choice(len(self.weights), size=n, p=self.weights / self.weights.sum())
        normals = rng.standard_normal((n, self.centres.shape[1]))
        normals /= np.sqrt(rng.chisquare(DOF, n) / DOF)[:, None]
        return np.asarray(self.centres[part] + np.einsum("nij,nj->ni", self.roots[part], normals))

    def log_density(self, points: Array) -> Array:
        """Log density (n,) at ``points`` (n, q)."""
        q = points.shape[1]
        constant = scipy.special.gammaln(0.5 * (DOF + q)) - scipy.special.gammaln(0.5 * DOF)
        constant -= 0.5 * q * math.log(DOF * math.pi)
        parts = []
        for centre, root, weight in zip(self.centres, self.roots, self.weights / self.weights.sum(), strict=True):
            offsets = scipy.linalg.solve_triangular(root, (points - centre).T, lower=True)
            square = (offsets**2).sum(axis=0)
            log_size = math.log(weight) - np.log(np.abs(np.diag(root))).sum()
            parts.append(constant + log_size - 0.5 * (DOF + q) * np.log1p(square / DOF))
        return np.asarray(scipy.special.logsumexp(parts, axis=0))


def reference_of(modes: tuple[Mode, ...], draws: Array) -> Reference:
    """A density near that of ``draws`` (n, q): Student's t's at the modes by Laplace, and of the draws' own moments.

    Draws are shared among the modes by nearness; those of each have a part with their mean and covariance. Each kind
    has half of the weight. Raises ValueError where there is no mode and too few draws for a covariance.
    """
    q = draws.shape[1]
    centres, roots, weights = [mode.position for mode in modes], [mode.root for mode in modes], []
    weights += [mode.weight for mode in modes]
    group = nearest_mode(modes, draws) if len(modes) > 1 else np.zeros(len(draws), np.int64)
    for k in range(max(len(modes), 1)):
        members = draws[group == k]
        if len(members) < 10 + 5 * q:
            continue
        covariance = np.atleast_2d(np.cov(members.T))
        try:
            root = np.linalg.cholesky(covariance)
        except np.linalg.LinAlgError:  # draws that do not vary in all directions
            continue
        centres.append(members.mean(axis=0))
        roots.append(root)
        weights.append(len(members) / len(draws))
    if not centres:
        raise ValueError(
            f"run must have at least {10 + 5 * q} draws that vary in all directions in its first half, as the problem "
            f"has no mode, got {len(draws)}"
        )
    return Reference(np.array(centres), np.array(roots), np.array(weights))


LEAST_KEPT = 8  # draws of a chain


def check_temperature(run: Run) -> None:
    """Raise ValueError where draws of the target are not all at temperature 1."""
    cold = run.sampler.arrays["temperatures"][..., : run.sampler.n_target_replicas]
    factors = schedule_factors(run.sampler.schedule, run.steps, run.total_steps).temperature
    if (cold != 1.0).any() or (factors != 1.0).any():
        of = cold if (cold != 1.0).any() else factors
        raise ValueError(f"run must have its draws at temperature 1, got {of.min():g} to {of.max():g}")


def usable_draws(run: Run) -> tuple[Array, Array]:
    """Draws (chain, rung, draw, q), and the temperatures (rungs,) whose law exp(−U/T) they have, 1 first.

    Raises ValueError for a run whose draws have no such laws.
    """
    check_temperature(run)
    sampler = run.sampler
    if run.replica_weights is not None or not (sampler.tempering is None or type(sampler.tempering) is ReplicaExchange):
        kind = "particles that repel each other" if isinstance(sampler.tempering, Stein) else "weighted"
        raise ValueError(
            f"run must be of a sampler without tempering, or of replica exchange, but {sampler.name} is {kind}"
        )
    noise = max(sampler.gradient_noise, sampler.energy_noise)
    if run.problem.target.stochastic or noise > 0.0:
        what = "minibatches" if run.problem.target.stochastic else f"noise of {noise:g}"
        raise ValueError(f"run must have exact energies and gradients, but has {what}")
    ladder = sampler.tempering
    is_ladder = isinstance(ladder, ReplicaExchange)
    if isinstance(ladder, ReplicaExchange) and (sampler.correction != 0.0 or ladder.swap_threshold is not None):
        raise ValueError(
            f"run must have swaps that leave each temperature's law as it is, without correction and swap_threshold, "
            f"got {shown(ladder)}"
        )
    temperatures = np.atleast_2d(sampler.arrays["temperatures"])
    if is_ladder and (temperatures != temperatures[0]).any():
        raise ValueError("run must have the same temperatures for all chains, got different ladders")
    draws = run.replica_draws if is_ladder else run.draws[:, None]
    if draws.shape[2] < LEAST_KEPT:
        raise ValueError(f"run must have at least {LEAST_KEPT} draws a chain, got {draws.shape[2]}")
    if not np.isfinite(draws).all():
        raise ValueError("run must have draws that are all finite, got some that are not")
    return draws, temperatures[0, : draws.shape[1]]


def blocks_of(n_chains: int, n_draws: int) -> Integers:
    """The block of each draw (chain, draw): a chain, or equal parts of one where there are few chains."""
    parts = 1 if n_chains >= WHOLE_CHAINS else min(-(-N_BLOCKS // n_chains), n_draws)
    return np.asarray(np.arange(n_chains)[:, None] * parts + np.arange(n_draws) * parts // n_draws)


def check_overlap(evidence: Evidence) -> None:
    """Warn where the overlap is so small that the error means nothing."""
    if evidence.overlap < LEAST_OVERLAP:
        warn_user(
            f"evidence: the draws hardly overlap with the density they are compared with (overlap "
            f"{evidence.overlap:.1e}), so that the error of {evidence.error:.2g} nats means little: take more draws, "
            "or a ladder of temperatures with keep_replicas=True",
        )
    elif evidence.disagreement > MOST_DISAGREEMENT:
        warn_user(
            f"evidence: draws of the run and exact draws of a density near them disagree by {evidence.disagreement:.1f}"
            " standard errors: the chains are not everywhere where the posterior is, or move in a biased way. Take "
            "more steps, shorter ones, or a ladder of temperatures",
        )


def evidence_of(
    evaluate: Evaluate, modes: tuple[Mode, ...], draws: Array, temperatures: Array, rng: np.random.Generator
) -> Evidence:
    """The log integral of exp(−U) from ``draws`` (chain, rung, draw, q) at ``temperatures`` (rungs,), the first 1.

    The first half of the draws at 1 shapes the reference; the second half of all is compared with it.
    """
    n_chains, n_rungs, n_draws, q = draws.shape
    half = n_draws // 2
    reference = reference_of(modes, draws[:, 0, :half].reshape(-1, q))
    stride = -(-n_chains * (n_draws - half) // MOST_DRAWS)
    kept = draws[:, :, half::stride]
    n_kept = kept.shape[2]
    own = reference.draws(min(max(LEAST_DRAWS, n_chains * n_kept), MOST_DRAWS), rng)
    points = np.concatenate([own, np.moveaxis(kept, 1, 0).reshape(-1, q)])
    energies = in_batches(evaluate)(points)[0]
    energies = np.where(np.isfinite(energies), energies, np.inf)
    n_own, n_rung = len(own), n_chains * n_kept
    # Each mode is a state of its own, so that the shares of draws among modes, which are those of the starts where
    # chains do not go from one to another, do not matter.
    region = nearest_mode(modes, points) if len(modes) > 1 else np.zeros(len(points), np.int64)
    cold = [np.where(region == r, energies, np.inf) for r in range(max(len(modes), 1))]
    reduced = np.array([-reference.log_density(points), *cold, *(energies / hot for hot in temperatures[1:])])
    rung = np.repeat(np.arange(n_rungs + 1), [n_own, *[n_rung] * n_rungs])
    state = np.where(rung == 0, 0, np.where(rung == 1, 1 + region, len(cold) - 1 + rung))
    block = np.concatenate([np.full(n_own, -1), np.tile(blocks_of(n_chains, n_kept).ravel(), n_rungs)])
    rungs = energies[n_own:].reshape(n_rungs, n_chains, n_kept)
    worth = np.array([1.0, *(effective_number(values) / n_rung for values in rungs)])[rung]
    bridge = bridged(reduced, state, block, worth)
    log_parts = bridge.log_integrals[1 : 1 + len(cold)]
    log_integral = float(scipy.special.logsumexp(log_parts))
    shares = np.exp(log_parts - log_integral)
    error = math.sqrt(max(float(shares @ bridge.covariance[: len(cold), : len(cold)] @ shares), 0.0))
    rung_of_state = np.array([0, *[1] * len(cold), *range(2, n_rungs + 1)])
    overlap = least_overlap(bridge.overlaps, rung_of_state)
    disagreement = importance_disagreement(reduced[0, :n_own] - energies[:n_own], log_integral, error)
    return Evidence(log_integral, error, overlap, disagreement, tuple(temperatures.tolist()))


def least_overlap(overlaps: Array, rung_of_state: Integers) -> float:
    """1 less the second eigenvalue of the overlap matrix of all rungs. overlaps: (states, states) Σ share p pᵀ."""
    merge = (np.arange(int(rung_of_state.max()) + 1)[:, None] == rung_of_state).astype(np.float64)
    matrix = merge @ overlaps @ merge.T
    values = np.linalg.eigvals(matrix / matrix.sum(axis=1, keepdims=True))
    return float(np.clip(1.0 - np.sort(values.real)[-2], 0.0, 1.0))


def importance_disagreement(log_ratios: Array, log_integral: float, error: float) -> float:
    """How many standard errors the mean of exp(``log_ratios``) (n,), of the reference alone, is off; nan: unknown."""
    weights = np.exp(log_ratios - log_ratios.max())
    mean = weights.mean()
    if not weights.sum() ** 2 >= LEAST_COUNTING * (weights**2).sum():
        return math.nan
    own_error = float(weights.std() / mean / math.sqrt(len(weights)))
    gap = float(np.log(mean) + log_ratios.max() - log_integral)
    return abs(gap) / math.hypot(own_error, error, 1e-300)


def effective_number(energies: Array) -> float:
    """How many independent draws those with ``energies`` (chain, draw) are worth."""
    found = float(np.min(ess(energies[..., None]))) if energies.shape[1] >= 4 else np.nan
    return float(np.clip(found, len(energies), energies.size)) if math.isfinite(found) else float(energies.size)


def bridged(reduced: Array, state: Integers, block: Integers, share: Array) -> Bridge:
    """The multistate Bennett acceptance ratio.

    reduced: (states, n), −log density up to a constant of each state at each point, normalised in the first. state:
    (n,) the state each point was drawn from. block: (n,) points of one block depend on each other, −1: on no other.
    share: (n,) how many independent draws each is worth, by which they weigh. A state without draws has its integral
    from those of the others.
    """
    effective = np.bincount(state, share, minlength=len(reduced))
    with np.errstate(divide="ignore"):
        log_effective = np.log(effective)[:, None]
    total = effective.sum()
    first = state == 0
    f = np.zeros(len(reduced))
    with np.errstate(invalid="ignore"):
        importance = scipy.special.logsumexp(reduced[0, first] - reduced[1:, first], axis=1) - math.log(first.sum())
    f[1:] = np.where(np.isfinite(importance), -importance, reduced[1:].min(axis=1))

    def objective(f: Array) -> tuple[float, Array, Array]:
        exponents = log_effective + f[:, None] - reduced
        norms = scipy.special.logsumexp(exponents, axis=0)
        return float(effective @ f - share @ norms), np.exp(exponents - norms), norms

    value, p, norms = objective(f)
    for _ in range(200):
        gradient = effective - p @ share
        if np.abs(gradient).max() < TOLERANCE * total:
            break
        hessian = curvature_of(p, share)
        step = np.linalg.lstsq(hessian[1:, 1:], gradient[1:], rcond=None)[0]
        step *= min(1.0, 20.0 / max(np.abs(step).max(), 1e-300))
        for _ in range(40):
            trial = f + np.append(0.0, step)
            new_value, new_p, new_norms = objective(trial)
            if new_value >= value - 1e-12 * abs(value):
                break
            step *= 0.5
        f, value, p, norms = trial, new_value, new_p, new_norms
    # What a point adds to the log integrals, to first order.
    influence = np.linalg.pinv(curvature_of(p, share)[1:, 1:]) @ p[1:]
    for k in np.flatnonzero(effective == 0.0):
        log_ratios = -reduced[k] - norms
        f[k] = -scipy.special.logsumexp(log_ratios, b=share)
        ratios = np.exp(log_ratios + f[k])
        influence[k - 1] = ratios + (p[1:] @ (share * ratios)) @ influence
    covariance = score_covariance(influence, share, state, block)
    return Bridge(-f, covariance, (p * share) @ p.T)


def curvature_of(p: Array, share: Array) -> Array:
    """Minus the second derivative of the objective: Σ share (diag p − p pᵀ)."""
    return np.asarray(np.diag(p @ share) - (p * share) @ p.T)


def score_covariance(p: Array, share: Array, state: Integers, block: Integers) -> Array:
    """The covariance of Σ share p, from sums over blocks, each state's points about their own mean."""
    counts = np.maximum(np.bincount(state), 1)
    means = np.array([np.bincount(state, row) / counts for row in p])
    centred = (p - means[:, state]) * share
    alone = block < 0
    found = centred[:, alone] @ centred[:, alone].T
    n_blocks = int(block.max()) + 1
    sums = np.array([np.bincount(block[~alone], row[~alone], minlength=n_blocks) for row in centred])
    return np.asarray(found + sums @ sums.T * (n_blocks / max(n_blocks - 1.0, 1.0)))
