"""Runs of samplers that nobody has set, judged by the law of their problem: whether they were right, and said so."""

import time
import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolkit import Run, sample, tune
from toolkit.diagnostics import ess

from .tuned_problems import UNSCALED, Law, Task, blind

Array = NDArray[np.float64]

SELDOM = 0.01  # a mode whose share of the draws is below this part of its weight has none: memberships are soft
MISSED = 5.0  # standard errors: by chance one mean in 1.7 million
EXPECTED = 20.0  # independent draws in a mode: that there are none has probability e⁻²⁰
WEIGHED = 50.0  # in one whose weight is judged: below, it has no normal law
MOST_MEMBERSHIPS = 2**22  # numbers; of more, evenly spaced draws are looked at


class Verdict(NamedTuple):
    """A run beside its law.

    sampler: its name. tuning, gradients: gradient evaluations of the tuning, and in all. seconds: of a processor.
    ess: bulk, of the slowest coordinate. off: largest |mean − truth| over coordinates, in standard errors. weight_off:
    the same of the modes' weights. lost: modes without a draw where ``EXPECTED`` were due. sd: smallest and
    largest standard deviation of a coordinate, over the truth's.
    satisfied: it came to what ``until`` asked for. warnings: of the run. failure: what it raised; "".
    """

    sampler: str = "–"
    tuning: int = 0
    gradients: int = 0
    seconds: float = 0.0
    ess: float = np.nan
    off: float = np.nan
    weight_off: float = 0.0
    lost: int = 0
    sd: tuple[float, float] = (np.nan, np.nan)
    satisfied: bool = False
    warnings: tuple[str, ...] = ()
    failure: str = ""

    @property
    def is_wrong(self) -> bool:
        """Whether it misses the truth, by means, weights or a mode."""
        return not (self.off <= MISSED and self.weight_off <= MISSED and self.lost == 0)

    @property
    def is_silent(self) -> bool:
        """Whether it is wrong and says nothing."""
        return self.is_wrong and not self.warnings and not self.failure

    @property
    def is_false_alarm(self) -> bool:
        """Whether it is right and has all that was asked for, and warns."""
        return bool(self.warnings) and not self.is_wrong and self.satisfied


def run_of(task: Task, seed: int) -> Run:
    """The run: nothing is given but the problem and the seed, and a sampler's kind where the task has one."""
    problem = blind(task.make(), scaled=task.group != UNSCALED)
    if task.sampler is None:
        return sample(problem, seed=seed, threads=1, progress=False)
    tuned = tune(problem, task.sampler(), seed=seed, threads=1, progress=False)
    return sample(problem, tuned, seed=seed, threads=1, progress=False)


def errors(draws: Any, law: Law) -> Array:
    """|mean − truth| of each coordinate, in standard errors; draws: (chain, draw, dim)."""
    points = draws.reshape(-1, draws.shape[2])
    squared = points.var(axis=0) / ess(draws, method="mean") + law.error**2
    return np.asarray(np.abs(points.mean(axis=0) - law.mean) / np.sqrt(squared))


def mode_errors(draws: Any, law: Law) -> tuple[float, int]:
    """The largest error of a weight in standard errors; and modes lost, of those due.

    Weights of modes with ``WEIGHED`` independent draws or more are judged. Standard errors are by the true weight and
    the draws' autocorrelation.
    """
    if law.memberships is None:
        return 0.0, 0
    stride = -(-draws.shape[0] * draws.shape[1] * law.weights.size // MOST_MEMBERSHIPS)
    some = draws[:, (draws.shape[1] - 1) % stride :: stride]
    shares = law.memberships(some.reshape(-1, some.shape[2])).reshape(*some.shape[:2], -1)
    found, size = shares.mean(axis=(0, 1)), float(np.nanmin(ess(draws)))
    due, empty = law.weights * size >= EXPECTED, found < SELDOM * law.weights
    judged = np.flatnonzero((law.weights * size >= WEIGHED) & ~empty)
    sizes = ess(shares[..., judged], method="mean") if judged.size else np.zeros(0)
    sizes = np.where(np.isfinite(sizes), sizes, size)
    weights = law.weights[judged]
    off = np.abs(found[judged] - weights) / np.sqrt(weights * (1.0 - weights) / sizes)
    return float(off.max(initial=0.0)), int((due & empty).sum())


def judged(run: Run, law: Law, seconds: float) -> Verdict:
    """The verdict on a run."""
    draws = run.draws[~run.diverged]
    tuning = run.tuning.gradients if run.tuning is not None else 0
    known = Verdict(
        run.sampler.name, tuning, tuning + run.gradient_evaluations, seconds, warnings=tuple(run.warnings),
        satisfied=run.stopping is not None and run.stopping.satisfied,
    )  # fmt: skip
    if draws.shape[0] == 0 or draws.shape[1] < 4 or not np.isfinite(draws).all():
        return known._replace(failure="no draws to judge")
    weight_off, lost = mode_errors(draws, law)
    ratios = draws.reshape(-1, draws.shape[2]).std(axis=0) / law.sd
    return known._replace(
        ess=float(np.nanmin(ess(draws))), off=float(np.max(errors(draws, law))), weight_off=weight_off, lost=lost,
        sd=(float(ratios.min()), float(ratios.max())),
    )  # fmt: skip


def verdict(task: Task, law: Law, seed: int) -> Verdict:
    """Run a task with a seed, and judge it; what is raised is told."""
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            run = run_of(task, seed)
        except (ArithmeticError, RuntimeError, TypeError, ValueError) as error:
            return Verdict(seconds=time.process_time() - started, failure=f"{type(error).__name__}: {error}")
        return judged(run, law, time.process_time() - started)
