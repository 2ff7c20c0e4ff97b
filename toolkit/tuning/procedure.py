"""``tune``: from a problem and a seed to a sampler with all its numbers."""

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np

from ..boundaries.rules import Boundary, ignore, reflect, reject
from ..diagnostics import ksd
from ..errors import check_array, check_count, check_progress, shown
from ..problem.definition import Problem, Spread, Target, as_problem
from ..problem.starts import Keys, draw_starts
from ..samplers import hmc, sghmc
from ..samplers.sampler import Sampler
from .biased_moves import contour_partition, race_knobs, tune_biased, with_stable_thermostat
from .exact_moves import Found, Moves, fit_step_sizes, tune_exact
from .exploration import IMPROPER, MOVES, Choice, Explored, choose_top, descended, explore
from .gradient_noise import around_minima
from .progress import Bar
from .race import Result
from .result import Cost, Tuned
from .study import LANES, Floats, Study, rounded, study_seed

THINNEST = 1_000  # steps between draws
FEWEST = 20_000  # gradients, below which no round is long enough


def tune(
    problem: Problem | Target,
    sampler: Sampler | None = None,
    *,
    seed: int,
    n_gradients: int = 200_000,
    init: Any = None,
    threads: int | None = None,
    progress: bool | None = None,
) -> Tuned:
    """Find the numbers of ``sampler`` for ``problem``; without one, choose it too.

    problem: a Problem or a Target. sampler: of any constructor or ``Sampler(...)``, whose numbers are where the search
    begins, or are replaced: step sizes, temperatures above the coldest, rungs, path length, friction, ζ and partition,
    cycles. Its parts, its coldest temperature, its boundary, noises and schedule stay. None: HMC, with replica exchange
    where that pays, for exact gradients, and SGHMC for those of minibatches; walls reject or reflect.
    seed: 0 to 2⁶⁴ − 1; the same seed finds the same numbers, which have 4 digits. n_gradients: gradient evaluations
    that it may spend, ≥ 20,000; slow or narrow targets take half as much again. init: a ``Spread``, or points
    (n, dim), from which chains begin; None: as ``sample`` does. threads, progress: as in ``sample``.

    Rounds of doubling length; each uses what the one before showed, with random numbers of its own:
    exploration with 64 chains of HMC at 8 temperatures, whose states change places between rounds, so that a
    temperature at which chains forget where they began is told from one at which they cannot leave their mode; the
    ladder, by equal rejection (Syed et al. 2022), with the number of rungs that makes a fresh state cheapest; step
    sizes by the harmonic mean of acceptance, 0.65, or for biased moves by their bias, 2 % of a standard deviation, from
    the law of the moves where it is known, else measured over eight step sizes; path length, scales and the other
    numbers by races, judged by independent draws per gradient.
    docs/tuning.md says how, and what was measured.

    What could not be found is in ``warnings`` of the result. Raises TypeError or ValueError before anything runs,
    naming the argument, its value and what is allowed.

    >>> from targets import mixtures
    >>> from toolkit import samplers, tune
    >>> tuned = tune(mixtures.cosine25(), samplers.sgld(), seed=0)
    >>> tuned.sampler.step_sizes[0] < 0.1  # what was found; tuned.report says how
    True
    """
    problem = as_problem(problem)
    seed = check_count("seed", seed, at_least=0, below=2**64)
    n_gradients = check_count("n_gradients", n_gradients, at_least=FEWEST, below=2**50)
    check_progress(progress)
    if threads is not None:
        threads = check_count("threads", threads, at_least=1)
    check_tunable(sampler, problem)
    start, bar = time.perf_counter(), Bar(n_gradients, progress)
    begun = sampler or chosen(problem)
    study = Study(
        problem, seed, n_gradients, boundary_of(problem, begun), float(begun.arrays["temperatures"].min()),
        threads=threads,
        may_scale=begun.dynamics.scales and begun.boundary.kind != "reflect", progress=bar,
    )  # fmt: skip
    try:
        found = search(study, begun, starts_of(problem, init, seed), sampler is None)
    finally:
        bar.close()
    cost = Cost(study.spent, time.perf_counter() - start)
    sites = np.concatenate(study.sites) if study.sites else np.zeros((0, problem.target.dim))
    return Tuned(
        problem.name, found.sampler, seed, found.states, found.burn_in, thin_for(found), sites, tuple(study.rounds),
        tuple(study.reasons), tuple(study.warnings), found.worth, cost,
    )  # fmt: skip


def thin_for(found: Found) -> int:
    """Steps between draws, four of which one independent draw of a chain takes."""
    per_step = found.worth * found.sampler.gradients_per_step
    return max(1, int(min(0.25 / per_step, THINNEST))) if per_step > 0.0 else 1


def check_tunable(sampler: Any, problem: Problem) -> None:
    """Raise TypeError or ValueError for what is no sampler, has settings by chain, or is Stein's in a domain."""
    if sampler is None:
        return
    if not isinstance(sampler, Sampler):
        raise TypeError(f"sampler must be None or a Sampler, got {shown(sampler)} of type {type(sampler).__name__}")
    if sampler.n_chains is not None:
        raise ValueError(
            f"sampler must have one setting for all chains, got step sizes or temperatures of {sampler.n_chains} chains"
        )
    if sampler.tempers.comes_to_rest and problem.domain is not None:
        raise ValueError(
            f"sampler must not be {sampler.name!r} in the domain of {problem.name!r}: its step size is judged by the "
            "kernel Stein discrepancy, which has none in a domain; give it a step size, or tune another sampler"
        )


def chosen(problem: Problem) -> Sampler:
    """The sampler for a problem: by whether its gradients are exact."""
    if problem.target.stochastic:
        return sghmc(boundary=ignore() if problem.domain is None else reflect())
    return hmc(boundary=ignore() if problem.domain is None else reject())


def boundary_of(problem: Problem, sampler: Sampler) -> Boundary:
    """What exploration does at walls: reject, where the sampler keeps them."""
    keeps = problem.domain is not None and sampler.boundary.kind != "ignore"
    return reject() if keeps else ignore()


def starts_of(problem: Problem, init: Any, seed: int) -> Floats:
    """``LANES`` points (chain, dim) to begin from."""
    if init is None or isinstance(init, Spread):
        return draw_starts(problem, init, seed, Keys(np.arange(LANES)), 1)[:, 0]
    points = np.atleast_2d(check_array("init", init))
    points = points.reshape(-1, points.shape[-1]) if points.ndim == 3 else points
    if points.ndim != 2 or points.shape[1] != problem.target.dim or not len(points):
        raise ValueError(f"init must be a Spread or have shape (n, {problem.target.dim}), got shape {points.shape}")
    if not problem.contains(points).all():
        raise ValueError(f"init must lie inside the domain {problem.name!r}, got {points.tolist()!r:.80}")
    if len(points) > LANES:
        points = points[np.linspace(0, len(points) - 1, LANES).astype(np.int64)]
    return np.resize(points, (LANES, problem.target.dim))


def search(study: Study, sampler: Sampler, starts: Floats, chooses: bool) -> Found:
    """All numbers of ``sampler``. chooses: replica exchange may be added to HMC."""
    if study.problem.target.stochastic:
        study.note("Gradients are of minibatches, so no Metropolis test and no exploration at exact energies.")
        if sampler.tempers.comes_to_rest:
            points = descended(study, starts, np.full(len(starts), -math.inf))[0]
            draws = around_minima(study, points).draws
            return tune_stein(study, sampler, starts, draws.std(axis=0))
        return of_result(tune_biased(study, sampler, None, None, starts))
    levels = explore(study, starts)
    choice = choose_top(levels, study.problem.domain is not None)
    describe(study, levels, choice)
    exact = sampler.dynamics.leapfrogs > 0
    if sampler.tempers.comes_to_rest:
        return tune_stein(study, sampler, levels.positions[-1], levels.positions[0].std(axis=0))
    if exact and (sampler.tempering is None or sampler.tempers.swaps):
        exchange: Any = sampler.tempering
        moves = Moves(sampler.dynamics, exchange)
        found = tune_exact(study, levels, choice, moves, chooses)
        name = sampler.name if not chooses or found.sampler.tempering is None else "pt_hmc"
        return found._replace(
            sampler=replace(found.sampler, name=name, schedule=sampler.schedule, boundary=sampler.boundary)
        )
    if exact:
        return of_result(race_knobs(study, *exact_and_tempered(study, sampler, levels, choice)))
    return of_result(tune_biased(study, sampler, levels, choice, starts))


def of_result(best: Result) -> Found:
    """What a race found."""
    return Found(best.sampler, best.states, max(16, best.run.n_steps // 4), best.worth)


def describe(study: Study, levels: Explored, choice: Choice) -> None:
    """Sentences on what exploration saw."""
    top = levels.temperatures[choice.level] / study.temperature
    cold = levels.between[0]
    moves = levels.acceptance[0] >= MOVES  # else each draw is near its chain's mean, whatever the law
    if study.problem.domain is None and moves and levels.virial[0] <= IMPROPER:
        study.warn(
            f"E[(x − x̄) · ∂U] is {levels.virial[0]:.2f} of what a law with this energy has: chains drift away, and "
            "exp(−U) may have no finite integral; look at the energy far out."
        )
    if not np.isfinite(choice.costs).any():
        study.warn(
            "At no temperature did chains forget where they began: means and modes' weights are not to be trusted "
            "before R-hat is near 1; give tune more n_gradients, or a better scale of the starts (init)."
        )
    elif choice.level == 0:
        study.note(
            f"Chains forget where they began at the target's own temperature: {cold:.0%} of the variance is between."
        )
    else:
        study.note(
            f"At the target's own temperature {cold:.0%} of the variance is between chains; at {top:g} times it "
            f"{levels.between[choice.level]:.0%}, which is the cheapest top of a ladder, with a barrier of "
            f"{choice.barrier:.2g}."
        )


def exact_and_tempered(study: Study, sampler: Sampler, levels: Explored, choice: Choice) -> tuple[Sampler, Floats]:
    """MALA or HMC under contour or continuous tempering: step sizes by acceptance."""
    tempering: Any = sampler.tempers
    replicas = sampler.n_replicas
    top = max(1, choice.level)
    top_temperature = float(levels.temperatures[top] / study.temperature)
    size = float(levels.step_sizes[0])
    size = 0.5 * size**2 if sampler.dynamics.langevin_step else size
    if tempering.weighs_by_chain:
        tempering = replace(tempering, partition=contour_partition(levels, top, study.temperature))
    elif tempering.couples:
        tempering = with_stable_thermostat(tempering, top_temperature, size, study.temperature)
    sampler = replace(sampler, tempering=tempering, step_sizes=(size,) * replicas)
    states = np.resize(levels.positions[0], (max(4, LANES // replicas), replicas, study.dim))
    for _ in range(4):
        sampler, states = fit_step_sizes(study, sampler, states)
    if tempering.couples:
        tempering = with_stable_thermostat(tempering, top_temperature, float(sampler.step_sizes[0]), study.temperature)
        sampler = replace(sampler, tempering=tempering)
    return sampler, states


def tune_stein(study: Study, sampler: Sampler, starts: Floats, widths: Floats) -> Found:
    """The step size at which particles come closest to the target, by the kernel Stein discrepancy, in equal steps.

    starts: (n, dim). widths: of the target, (dim,). Of minibatches too, as the discrepancy takes gradients of all data.
    """
    replicas = sampler.n_replicas
    states = np.resize(starts, (1, replicas, study.dim))
    signs = np.random.default_rng([study_seed(study.seed, 0), 1]).standard_normal(states.shape)
    states = states + 1e-3 * starts.std(axis=0) * signs  # no two at one place
    scale = float(np.median(widths))
    sizes = rounded(scale * 4.0 ** np.arange(-6.0, 1.0))
    steps = max(16, (study.n_gradients - study.spent) // (len(sizes) * replicas))
    best: tuple[float, Sampler, Floats] = (math.inf, sampler, states)
    for size in sizes:
        trial = replace(sampler, step_sizes=(float(size),) * replicas)
        run = study.run(trial, steps, states, burn_in=steps - 1, on_divergence="keep")
        ends = run.replica_draws[:, :, -1]
        distance = float(ksd(ends[0], study.problem).squared) if np.isfinite(ends).all() else math.inf
        study.add_round(
            "step size", run, temperatures=(study.temperature,), step_sizes=(float(size),), figure=(distance,),
            figure_name="kernel Stein discrepancy",
        )  # fmt: skip
        if distance < best[0]:
            best = distance, trial, ends
    return Found(best[1], states, 0, math.nan)
