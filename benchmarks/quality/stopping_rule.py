"""Whether ``until=stopping.ess(n)`` ends runs that are worth n: reported beside true ESS, and coverage of intervals."""

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.runner.plan import Plan
from benchmarks.runner.tables import Table
from targets import classics, mixtures
from toolkit import sample, stopping, tune
from toolkit.diagnostics import ess

from .problems import regression
from .tuned_problems import blind, law_of

Array = NDArray[np.float64]

ASKED = (400, 1_000, 10_000)
MOST = 40_000_000  # gradients of a run
Z, NOMINAL = 1.645, 0.9  # of 90 % intervals
PROBLEMS = {
    "correlated Gaussian": classics.correlated_gaussian,
    "cosine25": mixtures.cosine25,
    "ring": classics.ring,
    "linear regression": regression,
    "banana": classics.banana,
    "muller_brown": classics.muller_brown,
}
COLUMNS = (
    "problem", "ESS asked for", "× true ESS, of reported", "× coverage, of 90 %", "reported ESS", "true ESS",
    "its bulk ESS", "coverage, %", "its error", "gradients", "ended without", "runs",
)  # fmt: skip


class Ended(NamedTuple):
    """A run that ended by itself: (dim,) each. satisfied: it had the ESS asked for."""

    mean: Array
    size: Array  # ESS of the mean
    bulk: Array
    sd: Array
    gradients: int
    satisfied: bool


def ended(problem: Any, tuned: Any, n: int, seed: int) -> Ended:
    """One run until the ESS is n."""
    until = stopping.ess(n) | stopping.gradients(MOST)
    run = sample(problem, tuned, seed=seed, until=until, threads=1, progress=False, keep_statistics=False)
    points = run.draws.reshape(-1, run.draws.shape[2])
    satisfied = run.stopping is not None and run.stopping.satisfied
    return Ended(
        points.mean(axis=0), ess(run.draws, method="mean"), ess(run.draws), points.std(axis=0),
        run.gradient_evaluations, satisfied,
    )  # fmt: skip


def true_over_reported(means: Array, sizes: Array, mean: Array, sd: Array) -> Array:
    """1 / mean of ((mean of the run − truth) √ESS / sd)², (dim,); means, sizes: (run, dim).

    1 where ESS is what it says, though runs end at different sizes.
    """
    return np.asarray(1.0 / ((means - mean) ** 2 * sizes / sd**2).mean(axis=0))


def coverage(runs: list[Ended], mean: Array) -> Array:
    """Whether each interval mean ± Z · MCSE holds the truth, (run, dim)."""
    return np.array([np.abs(run.mean - mean) <= Z * run.sd / np.sqrt(run.size) for run in runs])


def print_stopping(plan: Plan) -> None:
    """Print the table."""
    print("\nStopping: until=stopping.ess(n), repeats with seeds of their own\n")
    table = Table(plan.folder, "quality_stopping", *COLUMNS)
    repeats = 20 * plan.rounds
    ratios, covers = [], []
    for name, make in list(PROBLEMS.items())[: 1 if plan.is_small else None]:
        whole = make()
        law, problem = law_of(whole), blind(whole)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tuned = tune(problem, seed=1, threads=1, progress=False)
            for n in ASKED[: 1 if plan.is_small else None]:
                runs = [ended(problem, tuned, n, 1_000 + seed) for seed in range(repeats)]
                sizes = np.array([run.size for run in runs])
                ratio = true_over_reported(np.array([run.mean for run in runs]), sizes, law.mean, law.sd)
                held = coverage(runs, law.mean)
                ratios.append(float(np.median(ratio)))
                covers.append(float(held.mean()))
                reported = float(np.median(sizes))
                by_run = held.mean(axis=1)
                table.row(
                    name, n, f"{ratios[-1]:.3f}", f"{covers[-1] / NOMINAL:.3f}", f"{reported:,.0f}",
                    f"{reported * ratios[-1]:,.0f}", f"{np.median([run.bulk.min() for run in runs]):,.0f}",
                    f"{100.0 * covers[-1]:.1f}", f"{100.0 * by_run.std() / repeats**0.5:.1f}",
                    f"{np.median([run.gradients for run in runs]):,.0f}", sum(not run.satisfied for run in runs),
                    repeats,
                )  # fmt: skip
    table.row(
        "all, median", "–", f"{np.median(ratios):.3f}", f"{np.median(covers) / NOMINAL:.3f}", "–", "–", "–",
        f"{100.0 * np.median(covers):.1f}", "–", "–", "–", repeats * len(ratios),
    )  # fmt: skip
