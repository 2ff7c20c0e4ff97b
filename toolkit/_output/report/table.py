"""Tables of a run's coordinates: mean, standard error, ESS and R-hat, computed in about a second."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._engine.run_record import RunRecord, fold, settings_of, values_in_words
from ...accumulators.running_moments import BatchMeansSoFar, MomentsSoFar, PooledMoments, pool
from ...diagnostics.convergence import ess, r_hat
from ...problem.definition import Problem
from ...weighting import weighted_ess

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_NUMBERS = 10**6  # ranked for all tables together, which takes about a second
MOST_SUMMED = 10**7  # used where there are too many chains for ranks
MOST_ROWS = 10
MOST_SETTINGS = 300  # judged one by one
FEWEST = 4  # draws of a chain, needed for R-hat


class Coordinates(NamedTuple):
    """Statistics of the first coordinates, each (row,); nan where unknown.

    ess is bulk ESS of all chains together, mcse the standard error of the mean. source: the data they are computed
    from. chains: how many chains that was. names: of the rows.
    """

    mean: Floats
    sd: Floats
    mcse: Floats
    ess: Floats
    r_hat: Floats
    source: str
    chains: int
    names: tuple[str, ...]


class Table(NamedTuple):
    """Statistics of chains (n,) of one setting; None where nothing is known. words: as those of a ``Setting``."""

    words: str
    chains: Integers
    coordinates: Coordinates | None


def tables_of(run: RunRecord) -> list[Table]:
    """A table of every setting, because chains of different laws have no common mean, ESS or R-hat.

    From stored draws or, without draws, from accumulators. Without statistics above ``MOST_SETTINGS`` settings.
    """
    settings = settings_of(run)
    if len(settings) > MOST_SETTINGS:
        return [Table(*setting, None) for setting in settings]
    most = MOST_NUMBERS // len(settings)
    return [Table(*setting, coordinates_of(run, setting.chains, most, MOST_ROWS)) for setting in settings]


def coordinates_of(run: RunRecord, chains: Integers, most: int, rows: int) -> Coordinates | None:
    """Statistics of the first ``rows`` coordinates in ``chains``; most: how many numbers are ranked at most."""
    if run.replica_draws.shape[2] > 0:
        sampled = sample_of(run, chains, most, rows)
        return None if sampled is None else from_draws(run, sampled)
    return from_accumulated(run, chains, rows)


def from_accumulated(run: RunRecord, chains: Integers, rows: int) -> Coordinates | None:
    """Statistics from the first accumulator that has some."""
    found = next(each_accumulated(run, chains, rows), None)
    return None if found is None else found._replace(names=names_of(run.problem, len(found.mean)))


def each_accumulated(run: RunRecord, chains: Integers, rows: int) -> Iterator[Coordinates]:
    """Statistics from each accumulator that has some, the rows without names."""
    all_chains = chains.size == run.n_chains
    chains = chains[~run.diverged[chains]]
    for name, result in run.accumulated.items():
        if isinstance(result, MomentsSoFar) and (result.weight[chains] > 0.0).any():
            yield from_moments(name, result, chains, rows)
    for name, result in run.accumulated.items():
        if isinstance(result, BatchMeansSoFar) and np.isfinite(result.mean[chains]).all(axis=1).any():
            yield from_batches(name, result, chains, rows)
    for name, result in run.accumulated.items():
        if isinstance(result, PooledMoments) and result.chains > 0 and all_chains:
            yield from_pooled(name, result, rows)


def names_of(problem: Problem, rows: int, *, of_values: bool = False) -> tuple[str, ...]:
    """Names of the first coordinates; numbers where they have none, or for positions that only stand for what has.

    of_values: the rows are of what positions stand for.
    """
    named = problem._named()
    if named is None or (named.values is not None and not of_values):
        return tuple(map(str, range(rows)))
    return named.names[:rows]


class Sampled(NamedTuple):
    """Draws that statistics are computed of: evenly spaced ones of chains that have not diverged and have weights.

    points: (chain, draw, row), as parameters where positions stand for some. weights: (chain, draw), or None.
    is_ranked: whether there are few enough for ranks. source: what part of all draws they are, if not all.
    """

    points: Floats
    weights: Floats | None
    is_ranked: bool
    source: tuple[str, ...]


def sample_of(run: RunRecord, chains: Integers, most: int, rows: int) -> Sampled | None:
    """Stored draws of the first ``rows`` coordinates: all, or as many as take a second; None where no chain has any."""
    named = run.problem._named()
    values = None if named is None else named.values
    targets, n_draws = run.sampler.n_target_replicas, run.replica_draws.shape[2]
    dim = min(rows, run.replica_draws.shape[3])
    undiverged = chains[(run.counts.status[chains] == 0).all(axis=1)]
    ranked = FEWEST * undiverged.size * targets * dim <= most
    stride = thinning(n_draws, (most if ranked else MOST_SUMMED) // max(1, undiverged.size * targets * dim))
    kept = slice((n_draws - 1) % stride, None, stride)
    points = fold(run.replica_draws[undiverged, :targets, kept, : dim if values is None else None])
    if values is not None:
        points = values(points)[..., :dim]
    draw_weights = None
    if run.replica_weights is not None:
        draw_weights = fold(run.replica_weights[undiverged, :targets, kept])
        has_weight = draw_weights.any(axis=1)
        undiverged, points, draw_weights = undiverged[has_weight], points[has_weight], draw_weights[has_weight]
    if undiverged.size == 0:
        return None
    parts = [f"{undiverged.size:,} of {chains.size:,} chains"] if undiverged.size < chains.size else []
    if stride > 1:
        parts.append(f"one in {stride:,} of {n_draws:,} draws of each chain")
    return Sampled(points, draw_weights, ranked, tuple(parts))


def from_draws(run: RunRecord, sampled: Sampled) -> Coordinates:
    """Statistics of stored draws.

    If even four draws of every chain are too many to rank, ESS and R-hat are computed from the chains' means.
    """
    points, draw_weights = sampled.points, sampled.weights
    chains, n, dim = points.shape
    parts = list(sampled.source)
    scale = np.ones(points.shape[:2]) if draw_weights is None else draw_weights
    shares = (scale / scale.sum(axis=1, keepdims=True))[..., None]
    means = (shares * points).sum(axis=1)
    within = (shares * (points - means[:, None]) ** 2).sum(axis=1)
    mean, covariance, error = pool(means, within[:, :, None] * np.eye(within.shape[1]))
    sd = np.sqrt(np.diagonal(covariance))
    ess_values, r_hat_values, mcse = (np.full(dim, np.nan) for _ in range(3))
    if n >= FEWEST and sampled.is_ranked:
        ess_values, r_hat_values = ess(points, weights=draw_weights), r_hat(points, weights=draw_weights)
        with np.errstate(divide="ignore", invalid="ignore"):
            mcse = sd / np.sqrt(ess(points, weights=draw_weights, method="mean"))
    elif n >= FEWEST:
        parts.append("ESS and R-hat by the spread of the chains' means")
        with np.errstate(divide="ignore", invalid="ignore"):
            mcse, ess_values = error, sd**2 / error**2
            r_hat_values = np.sqrt((n - 1) / n + error**2 * len(means) / (within.mean(axis=0) * n / (n - 1)))
    names = names_of(run.problem, dim, of_values=True)
    return Coordinates(mean, sd, mcse, ess_values, r_hat_values, " and ".join(parts), chains, names)


def thinning(n_draws: int, wanted: int) -> int:
    """The stride that takes about ``wanted`` of ``n_draws`` draws, and at least four where there are four."""
    return max(1, min(-(-n_draws // max(1, wanted)), n_draws // FEWEST))


def from_moments(name: str, result: MomentsSoFar, chains: Integers, rows: int) -> Coordinates:
    """Statistics from the spread between the chains' means."""
    used = chains[result.weight[chains] > 0.0]
    mean, covariance, spread = (values[..., :rows] for values in pool(result.mean[used], result.covariance[used]))
    within = np.diagonal(result.covariance[used], axis1=1, axis2=2)[:, :rows].mean(axis=0)
    variance = np.diagonal(covariance)
    with np.errstate(divide="ignore", invalid="ignore"):
        ess_values = variance / spread**2
        r_hat_values = np.sqrt(1.0 + spread**2 * used.size / within)
    source = f"accumulated[{name!r}], by the spread between chains"
    return Coordinates(mean, np.sqrt(variance), spread, ess_values, r_hat_values, source, used.size, ())


def from_pooled(name: str, result: PooledMoments, rows: int) -> Coordinates:
    """``from_moments`` of the moments of all chains."""
    variance, spread = np.diagonal(result.covariance)[:rows], result.standard_error[:rows]
    within = np.maximum(variance - spread**2 * (result.chains - 1), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ess_values, r_hat_values = variance / spread**2, np.sqrt(1.0 + spread**2 * result.chains / within)
    source = f"accumulated[{name!r}], by the spread between chains"
    return Coordinates(
        result.mean[:rows], np.sqrt(variance), spread, ess_values, r_hat_values, source, int(result.chains), ()
    )


def from_batches(name: str, result: BatchMeansSoFar, chains: Integers, rows: int) -> Coordinates:
    """Statistics from the spread between each chain's batches."""
    used = chains[np.isfinite(result.mean[chains]).all(axis=1)]
    mean, variance = result.mean[used, :rows], result.variance[used, :rows]
    pooled, covariance, spread = pool(mean, variance[:, :, None] * np.eye(mean.shape[1]))
    error = np.sqrt((result.standard_error[used, :rows] ** 2).sum(axis=0)) / len(mean)
    with np.errstate(divide="ignore", invalid="ignore"):
        r_hat_values = np.sqrt(1.0 + spread**2 * len(mean) / variance.mean(axis=0))
    sd, ess_values = np.sqrt(np.diagonal(covariance)), result.ess[used, :rows].sum(axis=0)
    source = f"accumulated[{name!r}], by batches"
    return Coordinates(pooled, sd, error, ess_values, r_hat_values, source, len(mean), ())


# The first lines of a report, each with a label.

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
        (
            "dynamics",
            f"{sampler.dynamics.name}, {values_in_words('step size', sampler.arrays['step_sizes'])}"
            f"{scale_words(sampler.scale)}",
        ),
        ("schedule", sampler.schedule.name),
        ("tempering", f"{tempering_words(run)}, {values_in_words('temperature', sampler.arrays['temperatures'])}"),
        ("boundary", boundary_words(run)),
        ("noise", ", ".join(noise) or "none"),
        (
            "draws",
            f"{with_unit(run.n_chains, 'chain')} × {with_unit(draws, 'draw')}{replicas} × "
            f"{with_unit(problem.target.dim, 'dimension')}, "
            f"burn-in {run.burn_in:,}, thin {run.thin:,}, seed {run.given_seed}",
        ),
        (
            "steps",
            f"{run.n_steps:,} of {run.total_steps:,} in {run.elapsed:.2f} s; {run.gradient_evaluations:,} gradient "
            f"evaluations{rate}",
        ),
        *until_lines(run),
        *([("tuning", f"{run.tuning.gradients:,} gradient evaluations; see run.tuning.report")] if run.tuning else []),
        *([("bias", BIASED)] if sampler.dynamics.leapfrogs == 0 and sampler.dynamics.draws_noise else []),
        *count_lines(run),
    ]


def until_lines(run: RunRecord) -> list[tuple[str, str]]:
    """How ``until`` ended the run: the value of each condition, and the reason."""
    if run.stopping is None:
        return []
    words = [
        f"{judged.condition}: {short_number(judged.value)}, {'met' if judged.met else 'not met'}"
        for judged in run.stopping.conditions
    ]
    return [("until", "; ".join(words)), ("ended", run.stopping.reason)]


def short_number(value: float) -> str:
    """A condition's value: a whole number where it is large, else four digits; "–" where nothing is known."""
    if not np.isfinite(value):
        return "–" if np.isnan(value) else "∞"
    return f"{value:,.0f}" if abs(value) >= 100.0 else f"{value:.4g}"


def with_unit(number: int, what: str) -> str:
    """A number with its unit, in the plural where needed."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def scale_words(scale: Any) -> str:
    """The scale of the coordinates, from the smallest to the largest; nothing where none is given."""
    if scale is None:
        return ""
    if isinstance(scale[0], tuple):
        return f", a scale of {len(scale)} × {len(scale)}"
    low, high = min(scale), max(scale)
    return f", scale {low:g}" if low == high else f", scales {low:g} to {high:g}"


def tempering_words(run: RunRecord) -> str:
    """The tempering with its important numbers."""
    tempering = run.sampler.tempering
    return "none" if tempering is None else tempering.words(run.sampler.n_replicas)


def boundary_words(run: RunRecord) -> str:
    """The boundary rule and the domain."""
    boundary, domain = run.sampler.boundary, run.problem.domain
    number = f" (λ = {boundary.coefficient:g})" if boundary.coefficient else ""
    return f"{boundary.kind}{number}" + (f", at the edge of {domain.name}" if domain is not None else "")


def count_lines(run: RunRecord) -> list[tuple[str, str]]:
    """Lines on what the sampler's parts counted."""
    lines, sampler, counts = [], run.sampler, run.counts
    if sampler.tempers.swaps:
        pairs, rates = sampler.tempers.pairs(sampler.n_replicas), run.swap_rates
        rates_shown = [f"{a}–{b}: {spread(rates[:, i], '.3f')}" for i, (a, b) in enumerate(pairs[:MOST_PAIRS])]
        rest = f" and {len(pairs) - MOST_PAIRS} more" if len(pairs) > MOST_PAIRS else ""
        lines.append(("swap rates", "; ".join(rates_shown) + rest))
        lines.append(("round trips", f"{spread(run.round_trips, ',.0f')} a chain"))
    if sampler.dynamics.leapfrogs:
        lines.append(("acceptance", spread(run.acceptance.mean(axis=1), ".3f")))
    if sampler.boundary.kind in ("reflect", "reject"):
        word = "reflections" if sampler.boundary.kind == "reflect" else "moves taken back"
        steps = max(1, run.n_steps)
        text = f"{spread(run.reflections.sum(axis=1) / (steps * sampler.n_replicas), '.4g')} a step"
        lines.append((word, text + f"; {int(run.reflection_fallbacks.sum()):,} given up"))
    if run.partition is not None and counts.theta.size:
        visited = (counts.visits > 0).sum(axis=1)
        lines.append(("θ", f"{spread(visited, ',.0f')} of {run.partition.n_bins} bins visited"))
    share = weight_share(run)
    if share is not None:
        lines.append(("weights", f"leave {spread(share, '.1%')} of the draws"))
    if counts.status.any():
        lines.append(("divergences", f"{int((counts.status > 0).sum())} of {counts.status.size} replicas"))
    return lines


def spread(values: Any, form: str) -> str:
    """Mean over chains, with the smallest and the largest."""
    finite = np.asarray(values)[np.isfinite(values)]
    if finite.size == 0:
        return "unknown"
    low, high, mean = (format(value, form) for value in (finite.min(), finite.max(), finite.mean()))
    return mean if low == high else f"{mean} ({low} to {high})"


def weight_share(run: RunRecord) -> Floats | None:
    """Each chain's weighted ESS over its draws, (chain,); None without weights or draws."""
    if not run.sampler.is_weighted:
        return None
    if run.replica_draws.shape[2] == 0:
        moments = [r for r in run.accumulated.values() if isinstance(r, MomentsSoFar) and (r.draws > 0).all()]
        return moments[0].weighted_ess / moments[0].draws if moments else None
    weights = run.weights
    used = np.isfinite(weights).all(axis=1) & (weights > 0.0).any(axis=1)
    share = np.zeros(len(weights))
    if used.any():
        share[used] = weighted_ess(weights[used]) / weights.shape[1]
    return share
