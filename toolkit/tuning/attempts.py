"""Runs of samplers that are tuned, or chosen and tuned: where a run falls short of its aim, it is tuned once more."""

from dataclasses import replace
from typing import Any

import numpy as np

from .._engine.run_options import RunOptions
from .._output.execution import check_arguments, run_sampler
from .._output.run import Run
from ..diagnostics import stopping
from ..diagnostics.stopping import Condition
from ..errors import shown
from ..maths.seeds import TUNING, derived_seed
from ..problem.definition import Problem, Spread, as_problem
from ..samplers.exchange import pt_hmc
from ..samplers.sampler import Sampler
from .procedure import chosen, tune
from .result import Tuned
from .study import LANES, Floats
from .tuned_options import ESS, options_of
from .tuned_run import with_tuning

ATTEMPTS = ((200_000, 4_000_000), (800_000, 16_000_000))  # gradients of the tuning, and of the run


def run_tuned(problem: Any, sampler: Any, options: RunOptions) -> Run:
    """``sample`` with a Tuned, or with None. Raises TypeError for another sampler."""
    if sampler is None:
        return run_attempts(as_problem(problem), options)
    run = run_sampler(problem, *sampler_and_options(problem, sampler, options))
    return with_tuning(run, sampler, threads=options.threads)


def sampler_and_options(problem: Any, sampler: Any, options: RunOptions) -> tuple[Sampler, RunOptions]:
    """What a run of a Tuned is to do. Raises TypeError for anything else."""
    if isinstance(sampler, Tuned):
        return sampler.sampler, options_of(problem, sampler, options, ATTEMPTS[0][1])
    raise TypeError(
        f"sampler must be None, a Sampler or a Tuned, got {shown(sampler)} of type {type(sampler).__name__}; "
        "write a call that makes one, such as samplers.sgld(step_size=0.01)"
    )


def attempt_seeds(seed: int) -> list[int]:
    """The seeds of the tunings of all attempts."""
    return [derived_seed(seed, TUNING, 0, attempt) for attempt in range(len(ATTEMPTS))]


def run_seed(seed: int, attempt: int) -> int:
    """The seed of the run of an attempt: the user's own for the first."""
    return derived_seed(seed, TUNING, 1, attempt) if attempt else seed


def first_sampler(problem: Problem, until: Any) -> Sampler | None:
    """What the tuning begins with: None, or parallel tempering where the caller's condition counts its round trips."""
    if not isinstance(until, Condition) or problem.target.stochastic:
        return None
    if not any(isinstance(condition, stopping.RoundTrips) for condition in stopping.singles(until)):
        return None
    return pt_hmc(boundary=chosen(problem).boundary)


def check_call(problem: Problem, options: RunOptions) -> None:
    """Raise what a run with these options would, before a tuning."""
    n_chains = LANES if options.n_chains is None else options.n_chains
    until = stopping.ess(ESS) if options.n_steps is None and options.until is None else options.until
    init = options.init if isinstance(options.init, Spread) else None
    likely = replace(options, n_chains=n_chains, until=until, init=init).completed()
    check_arguments(problem, first_sampler(problem, options.until) or chosen(problem), likely)


def tune_once(problem: Problem, options: RunOptions, attempt: int = 0, init: Any = None) -> Tuned:
    """The tuning of an attempt, from ``init``."""
    return tune(
        problem, first_sampler(problem, options.until), seed=attempt_seeds(options.seed)[attempt],
        n_gradients=ATTEMPTS[attempt][0], init=init, threads=options.threads, progress=options.progress,
    )  # fmt: skip


def run_attempts(problem: Problem, options: RunOptions) -> Run:
    """A run of a sampler that is chosen and tuned. If it misses its aim, tune and run once more, four times as long.

    Where the caller says how long the run is to be, there is one attempt.
    """
    check_call(problem, options)
    limits = ATTEMPTS if options.until is None and options.n_steps is None else ATTEMPTS[:1]
    init, run, spent = options.init, None, 0
    for attempt, (_, most) in enumerate(limits):
        tuned = tune_once(problem, options, attempt, init)
        own = replace(options, seed=run_seed(options.seed, attempt), init=None)
        if attempt and options.checkpoint is not None:
            own = replace(own, checkpoint=f"{options.checkpoint}.again")
        run = run_sampler(problem, tuned.sampler, options_of(problem, tuned, own, most))
        run = with_tuning(run, tuned, spent, options.threads, options.seed)
        assert run.tuning is not None
        is_settled = run.stopping is None or (run.stopping.satisfied and not run.tuning.warnings)
        if run.interrupted or is_settled or attempt + 1 == len(limits):
            break
        init, spent = starts_from(problem, run, tuned), run.tuning.gradients + run.gradient_evaluations
    assert run is not None
    return run


def starts_from(problem: Problem, run: Run, tuned: Tuned) -> Floats:
    """Points (n, dim) for the next tuning: draws, and states of all rungs, where they are finite and inside."""
    draws = run.draws.reshape(-1, problem.target.dim)
    some = draws[np.linspace(0, len(draws) - 1, 32).astype(np.int64)] if len(draws) else draws
    points = np.concatenate(
        [
            some,
            tuned.sites,
            np.resize(tuned.init.swapaxes(0, 1).reshape(-1, problem.target.dim), (32, problem.target.dim)),
        ]
    )
    finite = np.isfinite(points).all(axis=1)
    return np.asarray(points[finite & problem.contains(np.where(finite[:, None], points, 0.0))])
