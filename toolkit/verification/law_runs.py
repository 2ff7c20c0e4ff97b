"""Runs for the checks of laws: at the step size and at half of it, reduced to one number per chain."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._engine.run_options import RunOptions
from .._output.execution import run_sampler
from .._output.run import Run
from ..errors import ContourWarning
from ..maths.seeds import HALF_STEP, derived_seed
from ..problem.definition import Problem
from ..samplers.sampler import Sampler
from ..schedules import Factors, Schedule, evaluate
from .law_statistics import Group

Floats = NDArray[np.float64]
Steps = NDArray[np.int64]

SLICE = 2**15  # draws evaluated at a time


class Plan(NamedTuple):
    """Lengths, starts and seeds of the runs."""

    n_steps: int
    burn_in: int
    thin: int
    n_chains: int  # of one run
    init: Floats  # (run · chain, replica, dim)
    seeds: list[int]


class Measured(NamedTuple):
    """Results of the runs of one sampler, by group: one row per chain, whose mean is the estimate."""

    values: list[Floats]  # (chain, k) each
    drifts: list[Floats]  # the values of the first half of the draws minus those of the second
    hops: float  # changes of mode per chain
    n_draws: int  # of weight above 0, all chains
    n_places: int  # draws, all chains
    outside: int  # draws outside the domain
    fallbacks: int
    doubts: list[str]  # contour's warnings
    run: Run  # the last


class Setting(NamedTuple):
    """Problem, sampler and plan of the checks of laws."""

    problem: Problem  # without its domain if the sampler ignores it
    given: Problem
    sampler: Sampler
    plan: Plan
    starts_exact: bool  # from independent draws of the truth
    exact: Floats | None  # independent draws of the truth (n, dim)


def halved(sampler: Sampler) -> Sampler:
    """``sampler`` with half its step sizes, and its schedule stretched to twice the steps."""
    steps = (0.5 * sampler.arrays["step_sizes"]).tolist()
    tempering = None if sampler.tempering is None else sampler.tempering.with_half_step()
    return replace(sampler, step_sizes=steps, schedule=stretched(sampler.schedule), tempering=tempering)


def stretched(schedule: Schedule) -> Schedule:
    """``schedule`` at half the pace: every step's factors serve two steps."""

    def factors(steps: Steps, total_steps: int) -> Factors:
        return schedule.factors(steps // 2, total_steps // 2)

    return Schedule(f"{schedule.name} at half the pace", factors, schedule.keeps_all)


def at_half_pace(plan: Plan) -> Plan:
    """The plan for half the step size: the same time and number of draws, with other random numbers."""
    seeds = [derived_seed(seed, HALF_STEP) for seed in plan.seeds]
    return plan._replace(n_steps=2 * plan.n_steps, burn_in=2 * plan.burn_in, thin=2 * plan.thin, seeds=seeds)


def measure(
    given: Problem,
    problem: Problem,
    sampler: Sampler,
    plan: Plan,
    groups: Sequence[Group],
    memberships: Callable[[Floats], Floats] | None,
) -> Measured:
    """Run and reduce; ``given`` has the domain even if the sampler ignores it. Raises DivergenceError."""
    parts, doubts = [], []
    hops, n_draws, n_places, outside, fallbacks = 0.0, 0, 0, 0, 0
    for i, seed in enumerate(plan.seeds):
        init = plan.init[i * plan.n_chains : (i + 1) * plan.n_chains]
        options = RunOptions(
            n_steps=plan.n_steps, burn_in=plan.burn_in, thin=plan.thin, progress=False, n_chains=plan.n_chains,
            init=init, seed=seed, on_divergence="stop",
        )  # fmt: skip
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ContourWarning)
            run = run_sampler(problem, sampler, options)
        doubts += [str(w.message) for w in caught if issubclass(w.category, ContourWarning)]
        draws, weights = judged_draws(run, plan.n_steps)
        parts.append(sums(problem, groups, draws, weights))
        hops += mode_changes(memberships, draws, run.sampler.n_target_replicas) / len(plan.seeds)
        n_draws += int((weights > 0.0).sum())
        n_places += weights.size
        outside += int((~given.contains(draws.reshape(-1, draws.shape[2]))).sum())
        fallbacks += int(run.reflection_fallbacks.sum())
    numerators, denominators = (np.concatenate(side, axis=1) for side in zip(*parts, strict=True))
    reduce = by_chain if sampler.tempers.weighs_by_chain else pooled
    values, drifts = reduce(numerators, denominators)
    cuts = np.cumsum([len(group.labels) for group in groups])[:-1]
    return Measured(
        np.split(values, cuts, axis=1),
        np.split(drifts, cuts, axis=1),
        hops,
        n_draws,
        n_places,
        outside,
        fallbacks,
        doubts,
        run,
    )


def judged_draws(run: Run, n_steps: int) -> tuple[Floats, Floats]:
    """Draws (chain, draw, dim) and weights (chain, draw); for cyclic schedules, of the later half of each cycle."""
    factors = evaluate(run.sampler.schedule, np.arange(n_steps), n_steps)
    if (factors.temperature > 0.0).all():
        return run.draws, run.weights
    begins = np.flatnonzero(factors.keep & ~np.concatenate([[False], factors.keep[:-1]]))
    ends = np.flatnonzero(factors.keep & ~np.concatenate([factors.keep[1:], [False]])) + 1
    cycle = np.searchsorted(begins, run.steps, side="right") - 1
    is_late = 2 * (run.steps - begins[cycle]) >= ends[cycle] - begins[cycle]
    is_late = np.repeat(is_late, run.sampler.n_target_replicas)
    return run.draws[:, is_late], run.weights[:, is_late]


def sums(problem: Problem, groups: Sequence[Group], draws: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Weighted sums of all values (half, chain, k) and of the weights (half, chain), of both halves of the draws."""
    n_chains, n_draws, _ = draws.shape
    k = sum(len(group.labels) for group in groups)
    numerators, denominators = np.zeros((2, n_chains, k)), np.zeros((2, n_chains))
    for chain in range(n_chains):
        for half, part in enumerate((slice(0, n_draws // 2), slice(n_draws // 2, n_draws))):
            denominators[half, chain] = weights[chain, part].sum()
            for first in range(part.start, part.stop, SLICE):
                rows = slice(first, min(first + SLICE, part.stop))
                points, w = draws[chain, rows], weights[chain, rows]
                energies, gradients = problem.target.evaluate(points)
                values = np.hstack([group.values(points, energies, gradients) for group in groups])
                numerators[half, chain] += w @ values
    return numerators, denominators


def pooled(numerators: Floats, denominators: Floats) -> tuple[Floats, Floats]:
    """Each chain's contribution to the ratio of all sums, to first order, whose mean is that ratio; and its drift."""

    def shares(upper: Floats, lower: Floats) -> Floats:
        total = lower.sum()
        if total == 0.0:
            return np.full_like(upper, np.nan)
        ratio = upper.sum(axis=0) / total
        return np.asarray(ratio + (upper - ratio * lower[:, None]) / (total / len(lower)))

    first, second = (shares(numerators[half], denominators[half]) for half in (0, 1))
    return shares(numerators.sum(axis=0), denominators.sum(axis=0)), first - second


def by_chain(numerators: Floats, denominators: Floats) -> tuple[Floats, Floats]:
    """Each chain's ratio, as contour's weights have a factor per chain: twice the ratio minus the mean of the halves'.

    This removes the bias of a ratio of order one over the number of draws.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        first, second = (numerators[half] / denominators[half][:, None] for half in (0, 1))
        whole = numerators.sum(axis=0) / denominators.sum(axis=0)[:, None]
    return np.asarray(2.0 * whole - 0.5 * (first + second)), np.asarray(first - second)


def mode_changes(memberships: Callable[[Floats], Floats] | None, draws: Floats, n_replicas: int) -> float:
    """How often a chain's replica changes its mode from draw to draw, on average over chains."""
    if memberships is None:
        return np.inf
    n_chains, n_draws, _ = draws.shape
    labels = np.empty((n_chains, n_draws), np.int64)
    for chain in range(n_chains):
        for first in range(0, n_draws, SLICE):
            labels[chain, first : first + SLICE] = memberships(draws[chain, first : first + SLICE]).argmax(axis=1)
    return float((labels[:, n_replicas:] != labels[:, :-n_replicas]).sum() / (n_chains * n_replicas))
