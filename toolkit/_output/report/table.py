"""Means of a run's coordinates with their errors, ESS and R-hat, for a table that takes a second."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._engine.record import RunRecord, fold, settings_of, values_in_words
from ...accumulators.running_moments import BatchMeansSoFar, MomentsSoFar, pool
from ...diagnostics.convergence import ess, r_hat
from ...tempering.exchange import ReplicaExchange
from ...weighting import weighted_ess

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_NUMBERS = 10**6  # ranked and transformed for all tables, which takes about a second
MOST_SUMMED = 10**7  # where there are too many chains for ranks
MOST_ROWS = 10
MOST_SETTINGS = 300  # that are judged one by one
FEWEST = 4  # draws of a chain that R-hat needs


class Coordinates(NamedTuple):
    """Numbers of coordinates, each (row,), of the first few; nan where they cannot be known.

    ess is bulk ESS of all chains together, mcse the standard error of the mean. source: what they were made of. chains:
    how many that was.
    """

    mean: Floats
    sd: Floats
    mcse: Floats
    ess: Floats
    r_hat: Floats
    source: str
    chains: int


class Table(NamedTuple):
    """Numbers of chains (n,) of one law; None where nothing is known. words: as those of a ``Setting``."""

    words: str
    chains: Integers
    coordinates: Coordinates | None


def tables_of(run: RunRecord) -> list[Table]:
    """A table of every setting, as chains of different laws have no mean, ESS or R-hat in common.

    From stored draws or, where there are none, from accumulators. Without numbers above ``MOST_SETTINGS`` settings.
    """
    settings = settings_of(run)
    if len(settings) > MOST_SETTINGS:
        return [Table(*setting, None) for setting in settings]
    most = MOST_NUMBERS // len(settings)
    return [Table(*setting, coordinates_of(run, setting.chains, most)) for setting in settings]


def coordinates_of(run: RunRecord, chains: Integers, most: int) -> Coordinates | None:
    """Numbers of the coordinates in ``chains``; most: numbers that are ranked."""
    if run.replica_draws.shape[2] > 0:
        return from_draws(run, chains, most)
    for name, result in run.accumulated.items():
        if isinstance(result, MomentsSoFar) and (result.weight[chains] > 0.0).any():
            return from_moments(name, result, chains)
    for name, result in run.accumulated.items():
        if isinstance(result, BatchMeansSoFar) and np.isfinite(result.mean[chains]).all(axis=1).any():
            return from_batches(name, result, chains)
    return None


def from_draws(run: RunRecord, chains: Integers, most: int) -> Coordinates | None:
    """Numbers of stored draws: of all, or of as many evenly spaced ones of every chain as a second allows.

    Where four draws of every chain are too many to rank, ESS and R-hat are those of the chains' means.
    """
    targets, moments = run.sampler.n_target_replicas, run.replica_draws.shape[2]
    dim = min(MOST_ROWS, run.replica_draws.shape[3])
    whole = chains[(run.counts.status[chains] == 0).all(axis=1)]
    ranked = FEWEST * whole.size * targets * dim <= most
    stride = thinning(moments, (most if ranked else MOST_SUMMED) // max(1, whole.size * targets * dim))
    kept = slice((moments - 1) % stride, None, stride)
    points = fold(run.replica_draws[whole, :targets, kept, :dim])
    given = None
    if run.replica_weights is not None:
        given = fold(run.replica_weights[whole, :targets, kept])
        loaded = given.any(axis=1)
        whole, points, given = whole[loaded], points[loaded], given[loaded]
    if whole.size == 0:
        return None
    loads = np.ones(points.shape[:2]) if given is None else given
    shares = (loads / loads.sum(axis=1, keepdims=True))[..., None]
    means = (shares * points).sum(axis=1)
    within = (shares * (points - means[:, None]) ** 2).sum(axis=1)
    mean, covariance, error = pool(means, within[:, :, None] * np.eye(within.shape[1]))
    sd = np.sqrt(np.diagonal(covariance))
    worth, ratio, mcse = (np.full(dim, np.nan) for _ in range(3))
    parts = [f"{whole.size:,} of {chains.size:,} chains"] if whole.size < chains.size else []
    if stride > 1:
        parts.append(f"one in {stride:,} of {moments:,} draws of each chain")
    n = points.shape[1]
    if n >= FEWEST and ranked:
        worth, ratio = ess(points, weights=given), r_hat(points, weights=given)
        with np.errstate(divide="ignore", invalid="ignore"):
            mcse = sd / np.sqrt(ess(points, weights=given, method="mean"))
    elif n >= FEWEST:
        parts.append("ESS and R-hat by the spread of the chains' means")
        with np.errstate(divide="ignore", invalid="ignore"):
            mcse, worth = error, sd**2 / error**2
            ratio = np.sqrt((n - 1) / n + error**2 * len(means) / (within.mean(axis=0) * n / (n - 1)))
    return Coordinates(mean, sd, mcse, worth, ratio, " and ".join(parts), whole.size)


def thinning(moments: int, wanted: int) -> int:
    """Every how manieth of ``moments`` draws is taken, for about ``wanted`` of them, and four where there are four."""
    return max(1, min(-(-moments // max(1, wanted)), moments // FEWEST))


def from_moments(name: str, result: MomentsSoFar, chains: Integers) -> Coordinates:
    """Numbers by the spread between the chains' means."""
    used = chains[result.weight[chains] > 0.0]
    mean, covariance, spread = (values[..., :MOST_ROWS] for values in pool(result.mean[used], result.covariance[used]))
    within = np.diagonal(result.covariance[used], axis1=1, axis2=2)[:, :MOST_ROWS].mean(axis=0)
    variance = np.diagonal(covariance)
    with np.errstate(divide="ignore", invalid="ignore"):
        worth = variance / spread**2
        ratio = np.sqrt(1.0 + spread**2 * used.size / within)
    source = f"accumulated[{name!r}], by the spread between chains"
    return Coordinates(mean, np.sqrt(variance), spread, worth, ratio, source, used.size)


def from_batches(name: str, result: BatchMeansSoFar, chains: Integers) -> Coordinates:
    """Numbers by the spread between the batches of each chain."""
    used = chains[np.isfinite(result.mean[chains]).all(axis=1)]
    mean, variance = result.mean[used, :MOST_ROWS], result.variance[used, :MOST_ROWS]
    pooled, covariance, spread = pool(mean, variance[:, :, None] * np.eye(mean.shape[1]))
    error = np.sqrt((result.standard_error[used, :MOST_ROWS] ** 2).sum(axis=0)) / len(mean)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.sqrt(1.0 + spread**2 * len(mean) / variance.mean(axis=0))
    sd, worth = np.sqrt(np.diagonal(covariance)), result.ess[used, :MOST_ROWS].sum(axis=0)
    return Coordinates(pooled, sd, error, worth, ratio, f"accumulated[{name!r}], by batches", len(mean))


# The first lines of a report, each with a label; ``text`` prints them.

MOST_PAIRS = 8
BIASED = "by the step size, as no Metropolis test takes it away: toolkit.check_step_size(run) measures it"


def lines_of(run: RunRecord) -> list[tuple[str, str]]:
    """The parts of the sampler, what was done, and what was counted: a label and a text each."""
    sampler, problem = run.sampler, run.problem
    draws = run.replica_draws.shape[2]
    replicas = f" × {sampler.n_target_replicas} replicas" if sampler.n_target_replicas > 1 else ""
    rate = f", {run.gradient_evaluations / run.elapsed:,.3g} a second" if run.elapsed > 0.0 else ""
    sizes = {"gradient": sampler.gradient_noise, "energy": sampler.energy_noise}
    noise = [f"{name} {size:g}" for name, size in sizes.items() if size]
    noise += ["minibatches of data"] * problem.target.stochastic
    return [
        ("dynamics", f"{sampler.dynamics.name}, {values_in_words('step size', sampler.arrays['step_sizes'])}"),
        ("schedule", sampler.schedule.name),
        ("tempering", f"{tempering_words(run)}, {values_in_words('temperature', sampler.arrays['temperatures'])}"),
        ("boundary", boundary_words(run)),
        ("noise", ", ".join(noise) or "none"),
        (
            "draws",
            f"{counted_out(run.n_chains, 'chain')} × {counted_out(draws, 'draw')}{replicas} × "
            f"{counted_out(problem.target.dim, 'dimension')}, "
            f"burn-in {run.burn_in:,}, thin {run.thin:,}, seed {run.seed}",
        ),
        (
            "steps",
            f"{run.n_steps:,} of {run.total_steps:,} in {run.elapsed:.2f} s; {run.gradient_evaluations:,} gradient "
            f"evaluations{rate}",
        ),
        *([("bias", BIASED)] if sampler.dynamics.leapfrogs == 0 and sampler.dynamics.draws_noise else []),
        *counted(run),
    ]


def counted_out(number: int, what: str) -> str:
    """A number of things, of one or of several."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def tempering_words(run: RunRecord) -> str:
    """The tempering with its important numbers."""
    tempering = run.sampler.tempering
    return "none" if tempering is None else tempering.words(run.sampler.n_replicas)


def boundary_words(run: RunRecord) -> str:
    """What happens at the edge, and where that is."""
    boundary, domain = run.sampler.boundary, run.problem.domain
    number = f" (λ = {boundary.coefficient:g})" if boundary.coefficient else ""
    return f"{boundary.kind}{number}" + (f", at the edge of {domain.name}" if domain is not None else "")


def counted(run: RunRecord) -> list[tuple[str, str]]:
    """What the parts of the sampler counted, where they are there."""
    found, sampler, counts = [], run.sampler, run.counts
    if isinstance(sampler.tempering, ReplicaExchange):
        pairs, rates = sampler.tempering.pairs(sampler.n_replicas), run.swap_rates
        shown = [f"{a}–{b}: {spread(rates[:, i], '.3f')}" for i, (a, b) in enumerate(pairs[:MOST_PAIRS])]
        rest = f" and {len(pairs) - MOST_PAIRS} more" if len(pairs) > MOST_PAIRS else ""
        found.append(("swap rates", "; ".join(shown) + rest))
        found.append(("round trips", f"{spread(run.round_trips, ',.0f')} a chain"))
    if sampler.dynamics.leapfrogs:
        found.append(("acceptance", spread(run.acceptance.mean(axis=1), ".3f")))
    if sampler.boundary.kind in ("reflect", "reject"):
        word = "reflections" if sampler.boundary.kind == "reflect" else "moves taken back"
        steps = max(1, run.n_steps)
        text = f"{spread(run.reflections.sum(axis=1) / (steps * sampler.n_replicas), '.4g')} a step"
        found.append((word, text + f"; {int(run.reflection_fallbacks.sum()):,} given up"))
    if run.partition is not None and counts.theta.size:
        visited = (counts.visits > 0).sum(axis=1)
        found.append(("θ", f"{spread(visited, ',.0f')} of {run.partition.n_bins} bins visited"))
    share = weight_share(run)
    if share is not None:
        found.append(("weights", f"leave {spread(share, '.1%')} of the draws"))
    if counts.status.any():
        found.append(("divergences", f"{int((counts.status > 0).sum())} of {counts.status.size} replicas"))
    return found


def spread(values: Any, form: str) -> str:
    """Mean over chains, with the smallest and the largest."""
    finite = np.asarray(values)[np.isfinite(values)]
    if finite.size == 0:
        return "unknown"
    low, high, mean = (format(value, form) for value in (finite.min(), finite.max(), finite.mean()))
    return mean if low == high else f"{mean} ({low} to {high})"


def weight_share(run: RunRecord) -> Floats | None:
    """Share of each chain's draws that its weights leave, (chain,); None without weights or draws."""
    if not run.sampler.is_weighted:
        return None
    if run.replica_draws.shape[2] == 0:
        known = [r for r in run.accumulated.values() if isinstance(r, MomentsSoFar) and (r.draws > 0).all()]
        return known[0].weighted_ess / known[0].draws if known else None
    weights = run.weights
    used = np.isfinite(weights).all(axis=1) & (weights > 0.0).any(axis=1)
    share = np.zeros(len(weights))
    if used.any():
        share[used] = weighted_ess(weights[used]) / weights.shape[1]
    return share
