"""Races: variants of a sampler run from the same states, judged by independent draws per gradient."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .._output.run import Run
from ..diagnostics.convergence import ess
from ..errors import DivergenceError
from ..samplers.sampler import Sampler
from ..weighting import weighted_ess
from .step_sizes import mean_acceptance
from .study import Floats, Study, as_tuple

REMEMBERED = 0.3  # autocorrelation


class Result(NamedTuple):
    """A variant's run.

    worth: independent draws per gradient, as ``least_ess`` counts them. score: what variants are compared by. states:
    (chain, replica, dim) at the end.
    """

    sampler: Sampler
    run: Run
    worth: float
    score: float
    states: Floats


def least_ess(run: Run) -> float:
    """The smallest bulk ESS of the coordinates that move, and twice that of their squares; nan where none does.

    n independent draws leave an error of 1/√n standard deviations in a mean, and of 1/√(2 n) in a standard deviation.
    nan also where a draw is not finite.
    """
    draws = run.draws
    if not np.isfinite(draws).all():
        return math.nan
    if not run.sampler.is_weighted:
        each = run.replica_draws[:, : run.sampler.n_target_replicas]
        each = each.reshape(-1, *each.shape[2:])
        with np.errstate(all="ignore"):  # of draws that are finite, and their squares not
            values = np.concatenate([each, (each - each.mean(axis=(0, 1))) ** 2], axis=2)
            if not np.isfinite(values).all():
                return math.nan
            sizes = np.fmin(ess(values), remembered_ess(values)) * np.repeat([1.0, 2.0], draws.shape[2])
        return float(np.nanmin(sizes)) if np.isfinite(sizes).any() else math.nan
    weights = run.weights
    if not (weights.sum(axis=1) > 0.0).all():
        return math.nan
    sizes = ess(draws, weights=weights)  # by the weights as they are, which at the start of a run are far off
    if not np.isfinite(sizes).any():
        return math.nan
    return float(min(np.nanmin(sizes), weighted_ess(weights).sum(), remembered_ess(*by_lane(run)).min()))


def by_lane(run: Run) -> tuple[Floats, Floats]:
    """Draws (lane, draw, dim) and weights (lane, draw) of the replicas that sample the target, not folded.

    Weights have mean 1 over the replicas of each chain, as they are up to a factor of each chain.
    """
    n = run.sampler.n_target_replicas
    draws, weights = run.replica_draws[:, :n], run.weights.reshape(len(run.draws), -1, n).swapaxes(1, 2)
    weights = weights / weights.mean(axis=(1, 2), keepdims=True)
    return draws.reshape(-1, *draws.shape[2:]), weights.reshape(-1, weights.shape[2])


def remembered_ess(draws: Floats, weights: Floats | None = None) -> Floats:
    """ESS of each coordinate by the longest memory that is seen, (dim,); inf where none is.

    draws: (chain, draw, dim); weights: (chain, draw). Chains much shorter than their autocorrelation time seem to be
    independent of one another, and their bulk ESS is near their number. Here ρ = 1 − E[(x_{t+k} − x_t)²] / (2 var x),
    with the variance of all chains, is looked at for the longest lag k = 2^j, at most half the draws, at which it is
    ``REMEMBERED`` or more; the chains then have n (1 − r)/(1 + r) draws each, r = ρ^(1/k), as those of an
    autoregressive process of order 1. With weights, x is w (x − mean) / mean w, to first order what a draw adds to the
    weighted mean, and n is multiplied by the weighted variance over that of this.
    """
    n_chains, n, dim = draws.shape
    values, factor = draws, np.ones(dim)
    if weights is not None:
        shares = (weights / weights.mean())[..., None]
        centred = draws - (shares * draws).mean(axis=(0, 1))
        values, factor = shares * centred, (shares * centred**2).mean(axis=(0, 1))
    variance = values.reshape(-1, dim).var(axis=0)
    if weights is not None:
        factor = factor / np.where(variance > 0.0, variance, np.inf)
    sizes = np.full(dim, math.inf)
    lag = 1
    while 2 * lag <= n:
        jumps = ((values[:, lag:] - values[:, :-lag]) ** 2).mean(axis=(0, 1))
        memory = 1.0 - 0.5 * jumps / np.where(variance > 0.0, variance, np.inf)
        rate = np.clip(memory, 0.0, 1.0) ** (1.0 / lag)
        found = factor * n_chains * n * (1.0 - rate) / (1.0 + rate)
        sizes = np.where((memory >= REMEMBERED) & (variance > 0.0), found, sizes)
        lag *= 2
    return sizes


def raced(study: Study, name: str, sampler: Sampler, states: Floats, n_gradients: int) -> Result:
    """Run ``sampler`` from ``states`` (chain, replica, dim) for about so many gradients."""
    steps = max(16, shortest(sampler), n_gradients // (len(states) * sampler.gradients_per_step))
    try:
        run = study.run(sampler, steps, states, burn_in=steps // 8)
    except DivergenceError as error:  # all chains
        run = error.run
    size = least_ess(run) if run.draws.shape[1] else math.nan
    sampled = run.gradient_evaluations * run.sampling_steps / max(1, run.n_steps)
    worth = size / sampled if size > 0.0 else 0.0
    ends = finite_ends(run, states)
    score = score_of(run, worth)
    study.add_round(
        name, run, temperatures=as_tuple(np.atleast_2d(sampler.arrays["temperatures"])[0]),
        step_sizes=as_tuple(np.atleast_2d(sampler.arrays["step_sizes"])[0]),
        acceptance=as_tuple(mean_acceptance(run)), figure=(1e3 * worth,),
        figure_name="independent draws per 1,000 gradients", variant=variant_in_words(name, sampler), score=score,
    )  # fmt: skip
    return Result(sampler, run, worth, score, ends)


def finite_ends(run: Run, states: Floats) -> Floats:
    """The states (chain, replica, dim) at the end of a run; where they are not finite, those it began with."""
    ends = run.replica_draws[:, :, -1] if run.draws.shape[1] else states
    return np.where(np.isfinite(ends).all(axis=2, keepdims=True), ends, states)


def climbed(
    study: Study, name: str, best: Result, trial: Callable[[Result, int], tuple[Sampler, Floats] | None],
    budget: tuple[int, int],
) -> Result:  # fmt: skip
    """``best`` moved one way as long as its score rises; where it does not at once, the other way.

    trial: of the best so far and the way, 0 or 1, the next sampler and its states, or None where there is none. budget:
    gradients of each race, and the most that the study may have spent after one.
    """
    each, limit = budget
    for way in (0, 1):
        moved = False
        while study.spent + each <= limit:
            following = trial(best, way)
            if following is None:
                break
            other = raced(study, name, *following, each)
            if other.score <= best.score:
                break
            best, moved = other, True
        if moved:
            break
    return best


def variant_in_words(name: str, sampler: Sampler) -> str:
    """What a race is of, with the value of the number that it varies, or of all those that may be."""
    numbers = raced_numbers(sampler)
    if name in numbers:
        return numbers[name]
    return ", ".join(["as it is", *numbers.values()]) if name in ("as it is", "path length") else name


def raced_numbers(sampler: Sampler) -> dict[str, str]:
    """The numbers of ``sampler`` that are raced, in words, by their names."""
    dynamics, tempering, schedule = sampler.dynamics, sampler.tempering, sampler.schedule
    found = {}
    if dynamics.has_path_length:
        found["path length"] = f"path length {dynamics.leapfrogs} leapfrog{'s' * (dynamics.leapfrogs > 1)}"
    for knob in dynamics.known.knobs:
        found[knob.name] = f"{knob.name} {dynamics.parameters[knob.place]:.4g}"
    for name, (sign, _) in sampler.tempers.raced.items():
        found[name] = f"{sign} {getattr(tempering, name):.4g}"
    if schedule.made_by is not None and schedule.made_by[0] == "cosine_cycles":
        found["n_cycles"] = f"{schedule.made_by[1]['n_cycles']} cycles"
    return found


def score_of(run: Run, worth: float) -> float:
    """The geometric mean of worth and of new places per gradient: means want independent draws, densities many places.

    A longer trajectory gives more of the former, a shorter one more of the latter.
    """
    moves = run.acceptance[:, : run.sampler.n_target_replicas].mean() if run.sampler.dynamics.leapfrogs else 1.0
    return float((worth * moves / run.sampler.gradients_per_step) ** 0.5)


def shortest(sampler: Sampler) -> int:
    """The fewest steps that a schedule of cycles makes sense in: four a cycle."""
    made_by = sampler.schedule.made_by
    return 4 * int(made_by[1]["n_cycles"]) if made_by is not None and made_by[0] == "cosine_cycles" else 0
