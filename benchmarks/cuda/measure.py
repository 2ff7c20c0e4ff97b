"""Runs, their rates, and rounds in which all that is compared runs once."""

import multiprocessing
import os
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.runner import rounds
from toolkit import Run, accumulators, sample
from toolkit._engine.job import Job, make_job
from toolkit._engine.run_options import RunOptions
from toolkit.problem.definition import as_problem

from .cases import Case

THIN = 10  # steps between draws, where draws are kept or gathered
MOST_BYTES = 2**31  # of draws kept in a run
WHAT = ("nothing", "moments", "draws")  # what may be kept


class Plan(NamedTuple):
    """How much is measured.

    sizes: numbers of chains. kept: of ``WHAT``. seconds: of one timed run, about. deadline: when to begin nothing more,
    by ``time.monotonic``. folder: where tables go; None: nowhere. is_dry: to see that the script works, not for times.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    kept: tuple[str, ...]
    rounds: int
    seconds: float
    deadline: float
    folder: Path | None
    is_dry: bool

    def is_late(self, what: str) -> bool:
        """Whether time is up, in which case it is said that ``what`` is left out."""
        late = time.monotonic() > self.deadline
        if late:
            print(f"left out, as time is up: {what}")
        return late


def run(case: Case, backend: str, n_chains: int, n_steps: int, keeps: str = "nothing", **options: Any) -> Run:
    """A run that keeps ``keeps``, without the warnings that short runs deserve; options: of ``sample``."""
    gathered = {"moments": accumulators.moments()} if keeps == "moments" else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sample(
            case.problem, case.sampler, n_steps=n_steps, n_chains=n_chains, init=case.init, seed=1, backend=backend,
            thin=n_steps if keeps == "nothing" else min(THIN, n_steps), keep_draws=keeps == "draws",
            accumulators=gathered, progress=False, **options,
        )  # fmt: skip


def rate(*arguments: Any, **options: Any) -> float:
    """Chain-steps per second of ``run``: gradient evaluations over the time from the first step to the last."""
    done = run(*arguments, **options)
    return done.gradient_evaluations / done.elapsed


def steps_for(
    case: Case, backend: str, n_chains: int, plan: Plan, keeps: str = "nothing", known_rate: float = 0.0, **options: Any
) -> int:
    """Steps of a run of about ``plan.seconds``, by shorter ones; the first of these compiles.

    known_rate: gradients per second of another number of chains, where known.
    """
    if plan.is_dry:
        return 2 * THIN
    most = 2**22
    if keeps == "draws":
        numbers = n_chains * case.sampler.n_replicas * as_problem(case.problem).target.dim
        most = max(THIN, MOST_BYTES * THIN // (8 * numbers))
    per_step = n_chains * case.sampler.gradients_per_step
    first = min(most, max(256, THIN * int(0.8 * plan.seconds * known_rate / per_step / THIN)))
    if not known_rate:
        run(case, backend, n_chains, first, keeps, **options)
    return rounds.steps_for(
        lambda n: run(case, backend, n_chains, n, keeps, **options).elapsed, plan.seconds, most, first
    )


def rounds_of(plan: Plan, **timed: Callable[[], float]) -> dict[str, list[float]]:
    """What each of ``timed`` returns, once a round."""
    return rounds.interleaved(plan.rounds, timed)


def job_of(case: Case, **options: Any) -> Job:
    """The checked arguments of a run, of one chain unless ``options`` say more, for what is read off a kernel."""
    chosen = RunOptions(n_steps=1000, seed=0, thin=1000, init=case.init, **{"keep_statistics": False, **options})
    return make_job(case.problem, case.sampler, chosen)


def side_by_side(work: Sequence[tuple[Any, ...]]) -> list[Any]:
    """What each of (function, arguments …) returns, called in processes of their own: for what compiles."""
    workers = min(len(work), len(os.sched_getaffinity(0)))
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        return [done.result() for done in [pool.submit(*call) for call in work]]
