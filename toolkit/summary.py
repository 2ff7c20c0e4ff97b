"""What a person wants to know first of a run, as labelled lines and a table; ``reporting`` prints it."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .autocorrelations import ess
from .batch_means import BatchMeansSoFar
from .continuous import ContinuousTempering
from .contour import Contour
from .convergence import r_hat
from .exchange import AdaptedCorrection, EstimatedCorrection, ReplicaExchange
from .moments import MomentsSoFar, pool
from .result import Run, fold
from .stein import Stein
from .weighting import weighted_ess

Floats = NDArray[np.float64]

MOST_NUMBERS = 10**6  # ranked and transformed for one table, which takes about a second
MOST_ROWS, MOST_PAIRS = 10, 8


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


def coordinates_of(run: Run) -> Coordinates | None:
    """Numbers of the coordinates, from stored draws or, where there are none, from accumulators; else None."""
    if run.replica_draws.shape[2] > 0:
        return from_draws(run)
    for name, result in run.accumulated.items():
        if isinstance(result, MomentsSoFar) and (result.weight > 0.0).any():
            return from_moments(name, result)
    for name, result in run.accumulated.items():
        if isinstance(result, BatchMeansSoFar) and np.isfinite(result.mean).all(axis=1).any():
            return from_batches(name, result)
    return None


def from_draws(run: Run) -> Coordinates | None:
    """Numbers of stored draws: of all, or of as many chains, and then of as many last draws, as a second allows."""
    targets, weighted = run.sampler.n_target_replicas, run.replica_weights is not None
    moments, dim = run.replica_draws.shape[2], min(MOST_ROWS, run.replica_draws.shape[3])
    whole = np.flatnonzero((run.counts.status == 0).all(axis=1))
    wanted = max(4, MOST_NUMBERS // (moments * targets * dim))
    chains = whole[np.linspace(0, whole.size - 1, min(wanted, whole.size)).astype(int)]
    n = min(moments, max(4, MOST_NUMBERS // (max(1, chains.size) * targets * dim)))
    points = fold(run.replica_draws[chains, :targets, -n:, :dim]) if chains.size else np.zeros((0, n, dim))
    given = None
    if weighted and chains.size:
        given = fold(run.replica_weights[chains, :targets, -n:])  # type: ignore[index]
        loaded = given.any(axis=1)
        chains, points, given = chains[loaded], points[loaded], given[loaded]
    if chains.size == 0:
        return None
    loads = np.ones(points.shape[:2]) if given is None else given
    shares = (loads / loads.sum(axis=1, keepdims=True))[..., None]
    means = (shares * points).sum(axis=1)
    within = (shares * (points - means[:, None]) ** 2).sum(axis=1)
    mean, covariance, _ = pool(means, within[:, :, None] * np.eye(within.shape[1]))
    sd = np.sqrt(np.diagonal(covariance))
    worth, ratio, mcse = (np.full(dim, np.nan) for _ in range(3))
    if points.shape[1] >= 4:
        worth, ratio = ess(points, weights=given), r_hat(points, weights=given)
        with np.errstate(divide="ignore", invalid="ignore"):
            mcse = sd / np.sqrt(ess(points, weights=given, method="mean"))
    parts = [f"{chains.size:,} of {run.n_chains:,} chains"] if chains.size < run.n_chains else []
    if n < moments:
        parts.append(f"the last {n:,} of {moments:,} draws")
    return Coordinates(mean, sd, mcse, worth, ratio, " and ".join(parts), chains.size)


def from_moments(name: str, result: MomentsSoFar) -> Coordinates:
    """Numbers by the spread between the chains' means."""
    used = result.weight > 0.0
    within = np.diagonal(result.covariance[used], axis1=1, axis2=2)[:, :MOST_ROWS].mean(axis=0)
    variance = np.diagonal(result.pooled_covariance)[:MOST_ROWS]
    error, chains = result.standard_error[:MOST_ROWS], int(used.sum())
    with np.errstate(divide="ignore", invalid="ignore"):
        worth = variance / error**2
        ratio = np.sqrt(1.0 + error**2 * chains / within)
    source = f"accumulated[{name!r}], by the spread between chains"
    return Coordinates(result.pooled_mean[:MOST_ROWS], np.sqrt(variance), error, worth, ratio, source, chains)


def from_batches(name: str, result: BatchMeansSoFar) -> Coordinates:
    """Numbers by the spread between the batches of each chain."""
    used = np.isfinite(result.mean).all(axis=1)
    mean, variance = result.mean[used, :MOST_ROWS], result.variance[used, :MOST_ROWS]
    pooled, covariance, spread = pool(mean, variance[:, :, None] * np.eye(mean.shape[1]))
    error = np.sqrt((result.standard_error[used, :MOST_ROWS] ** 2).sum(axis=0)) / len(mean)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.sqrt(1.0 + spread**2 * len(mean) / variance.mean(axis=0))
    sd, worth = np.sqrt(np.diagonal(covariance)), result.ess[used, :MOST_ROWS].sum(axis=0)
    return Coordinates(pooled, sd, error, worth, ratio, f"accumulated[{name!r}], by batches", len(mean))


def lines_of(run: Run) -> list[tuple[str, str]]:
    """The parts of the sampler, what was done, and what was counted: a label and a text each."""
    sampler, problem = run.sampler, run.problem
    draws = run.replica_draws.shape[2]
    replicas = f" × {sampler.n_target_replicas} replicas" if sampler.n_target_replicas > 1 else ""
    rate = f", {run.gradient_evaluations / run.elapsed:,.3g} a second" if run.elapsed > 0.0 else ""
    sizes = {"gradient": sampler.gradient_noise, "energy": sampler.energy_noise}
    noise = [f"{name} {size:g}" for name, size in sizes.items() if size]
    noise += ["minibatches of data"] * problem.target.stochastic
    return [
        ("dynamics", f"{sampler.dynamics.name}, {spelled('step size', sampler.arrays['step_sizes'])}"),
        ("schedule", sampler.schedule.name),
        ("tempering", f"{tempering_words(run)}, {spelled('temperature', sampler.arrays['temperatures'])}"),
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
        *counted(run),
    ]


def counted_out(number: int, what: str) -> str:
    """A number of things, of one or of several."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def spelled(name: str, values: Floats) -> str:
    """Step sizes or temperatures, (R,) or (chain, R), in words."""
    if values.ndim == 2 and (values != values[0]).any():
        return f"{name}s {values.min():g} to {values.max():g} by chain"
    row = np.atleast_2d(values)[0]
    if (row == row[0]).all():
        return f"{name} {row[0]:g}"
    if row.size > 6:
        return f"{row.size} {name}s {row[0]:g} to {row[-1]:g}"
    return f"{name}s " + ", ".join(f"{value:g}" for value in row)


def tempering_words(run: Run) -> str:
    """The tempering with its important numbers."""
    match run.sampler.tempering:
        case ReplicaExchange() as exchange:
            kind = {EstimatedCorrection: "estimated", AdaptedCorrection: "adapted"}.get(
                type(exchange.correction), "fixed"
            )
            swaps = (
                f"swap tried every {exchange.swap_every} steps" if exchange.swap_every > 1 else "swap tried every step"
            )
            return f"replica exchange ({exchange.scheme}, {swaps}, {kind} correction)"
        case Contour() as contour:
            bins = contour.partition
            grid = f", {bins.n_bins} bins of {bins.width:.4g} nats from {bins.u_min:.4g}" if bins else ""
            return f"contour (ζ = {contour.zeta:g}{grid})"
        case ContinuousTempering() as continuous:
            return f"continuous tempering to temperature {continuous.top_temperature:g} ({continuous.bias})"
        case Stein():
            return f"Stein's repulsion of {run.sampler.n_replicas} particles"
    return "none"


def boundary_words(run: Run) -> str:
    """What happens at the edge, and where that is."""
    boundary, domain = run.sampler.boundary, run.problem.domain
    number = f" (λ = {boundary.coefficient:g})" if boundary.kind == "penalise" else ""
    return f"{boundary.kind}{number}" + (f", at the edge of {domain.name}" if domain is not None else "")


def counted(run: Run) -> list[tuple[str, str]]:
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


def weight_share(run: Run) -> Floats | None:
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
