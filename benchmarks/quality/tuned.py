"""Nothing given but problem and seed: what ``sample(problem, seed=…)`` costs, finds and admits; ten seeds each.

Problems are the catalogue's, some with walls, with minibatches or noisy gradients, and identifications. A run is not
told the problem's truth, by which its warnings would find lost modes. Of "noise 1" the sampler's kind is given, as only
a sampler has noise: ``tune(problem, samplers.sgnht(gradient_noise=1.0))``.

Table ``quality_tuned``, medians over seeds. "× independent draws": ESS over gradient evaluations, tuning included.
Gradients: with tuning, whose share is beside it; of a second attempt the last one's. Seconds: of a processor, tuning
included, compiled before. ESS: bulk, of the slowest coordinate. Error: the largest |mean − truth| of all coordinates in
standard errors of the run itself; its median and largest over seeds. sd: of the coordinates that are furthest below and
above the truth's. None lost: in how many runs each mode has a draw, of the modes in which 20 of as many independent
draws would be. Satisfied: in how many ESS 1,000, R-hat 1.01 and 100 round trips were reached. Truths are exact or by
quadrature; that of the lynx and hare is a run of HMC, 64 chains × 2,000 steps, whose error is counted in.

Table ``quality_tuned_failures``, of these runs, and of the catalogue's once more without the scale that targets state,
so that chains start within ±2. Wrong: a mean, or a mode's weight of 50 independent draws or more, off by more than 5
standard errors of the run itself; or a mode without a draw where 20 were due; or an exception. Silent: wrong without a
warning in ``run.warnings``. False warning: right, all conditions met, and a warning. "× not silent": runs that are not
silent failures, over all.

Table ``quality_tuned_worth``: draws of the problems of ``samplers``, at 10⁶ gradients in all, tuning included, in
independent draws of equal error, as ``samplers`` defines it; 0 where the tuning leaves nothing beyond burn-in. "Best
searched": the family that is worth most per gradient with its settings of ``settings``, chosen by two seeds, told by
others; "same": the family of the tuned sampler. The search is not charged to them, and takes 3.2 million gradients of
each family. Every step's draw counts, for both. NUTS: BlackJAX's window adaptation, 4 seeds; nutpie with its own
settings, 2 seeds, at 10⁵ gradients and with a log density that is a call into Python and JAX.

Table ``quality_stopping``: ``sample(problem, tuned, seed=s, until=stopping.ess(n))``, 100 seeds and one tuning. True
ESS: reported ESS over the mean of ((mean of the run − truth) √(reported ESS) / true sd)², which is 1 where it is what
it says; median over coordinates. With 100 runs it is known to ± 14 % for each coordinate. Coverage: of mean ± 1.645
standard errors, over runs and coordinates.

Table ``quality_tuned_coin``: restarts on the coin flip beside Pigeons', as its paper prints them. Its ladder ends at
the prior, where it draws anew, and a scan is one of slice sampling; ours ends at the lowest temperature at which
chains forget where they began, and a scan is a step of HMC: so Λ is of another ladder, and log Z, which needs the
prior as a rung, is not computed. Table ``quality_tuned_boxes``: draws in boxes of the plane beside dynesty and
packages of parallel tempering that install, per evaluation of the likelihood, one with its gradient counting as one.
dynesty ends by itself, the others have 3·10⁵ evaluations. ptemcee and eryn run with names put back that NumPy 2
lacks. PTMCMCSampler tempers over MPI alone, zeus and emcee do not temper.
"""

import statistics

from benchmarks.runner.plan import Plan
from benchmarks.runner.tables import Table

from .stopping_rule import print_stopping
from .tuned_anchors import print_anchors
from .tuned_problems import Law, Task, law_of, tasks
from .tuned_runs import Verdict, verdict
from .tuned_worth import print_worth

SMALL = ("cosine25", "correlated_gaussian(0.95) in 2-D", "dual_moon")
COLUMNS = (
    "problem", "kind", "× independent draws, per gradient", "dim", "gradients", "share of the tuning, %",
    "seconds", "ESS", "error, median", "error, largest", "sd over the truth's", "modes", "none lost",
    "satisfied", "runs", "sampler",
)  # fmt: skip
FAILURE_COLUMNS = (
    "runs of", "× not silent", "runs", "wrong", "wrong and silent", "satisfied", "satisfied and wrong",
    "false warnings", "false warnings, %", "wrong and silent: problem, seeds", "false warnings: problem, seeds",
)  # fmt: skip

DETAIL_COLUMNS = (
    "problem", "seed", "sampler", "error", "of weights", "modes lost", "ESS", "satisfied", "warnings",
)  # fmt: skip

Verdicts = dict[str, list[Verdict]]  # by the task's label, one for each seed


def row(task: Task, law: Law, runs: list[Verdict], table: Table) -> None:
    """A problem's line."""

    def middle(*values: float) -> float:
        return statistics.median(values)

    kinds = sorted({run.sampler for run in runs})
    counted = [f"{kind} {sum(run.sampler == kind for run in runs)}" for kind in kinds]
    table.row(
        task.label, task.group, f"{middle(*(run.ess / max(run.gradients, 1) for run in runs)):.3g}", law.mean.size,
        f"{middle(*(run.gradients for run in runs)):,.0f}",
        f"{middle(*(100.0 * run.tuning / max(run.gradients, 1) for run in runs)):.0f}",
        f"{middle(*(run.seconds for run in runs)):.2g}", f"{middle(*(run.ess for run in runs)):,.0f}",
        f"{middle(*(run.off for run in runs)):.2g}", f"{max(run.off for run in runs):.2g}",
        f"{middle(*(run.sd[0] for run in runs)):.2f} – {middle(*(run.sd[1] for run in runs)):.2f}",
        law.weights.size, sum(run.lost == 0 and not run.failure for run in runs), sum(run.satisfied for run in runs),
        len(runs), ", ".join(counted) if len(kinds) > 1 else kinds[0],
    )  # fmt: skip


def told(named: Verdicts, which: str) -> str:
    """Problems and seeds of the runs that have a property."""
    found = {
        label: [str(seed) for seed, run in enumerate(runs, 1) if getattr(run, which)] for label, runs in named.items()
    }
    return "; ".join(f"{label}: {' '.join(seeds)}" for label, seeds in found.items() if seeds) or "–"


def failure_cells(named: Verdicts) -> list[str | int]:
    """A line of the failures without its name."""
    runs = [run for some in named.values() for run in some]
    silent, wrong = sum(run.is_silent for run in runs), sum(run.is_wrong for run in runs)
    good = [run for run in runs if run.satisfied]
    false = sum(run.is_false_alarm for run in runs)
    return [
        f"{1.0 - silent / len(runs):.4f}", len(runs), wrong, silent, len(good), sum(run.is_wrong for run in good),
        false, f"{100.0 * false / max(1, len(good)):.1f}", told(named, "is_silent"), told(named, "is_false_alarm"),
    ]  # fmt: skip


def print_failures(groups: dict[str, Verdicts], plan: Plan) -> None:
    """Print the table of failures."""
    print("\nFailures: wrong by more than 5 standard errors, and whether the run said so\n")
    table = Table(plan.folder, "quality_tuned_failures", *FAILURE_COLUMNS)
    for group, named in groups.items():
        table.row(group, *failure_cells(named))
    whole = {label: runs for named in groups.values() for label, runs in named.items()}
    table.row("all", *failure_cells(whole))
    print("\nRuns that are wrong, or right with a warning\n")
    details = Table(None, "quality_tuned_wrong", *DETAIL_COLUMNS)
    for label, runs in whole.items():
        for seed, run in enumerate(runs, 1):
            if run.is_wrong or run.is_false_alarm:
                details.row(
                    label, seed, run.sampler, run.off, run.weight_off, run.lost, run.ess, run.satisfied,
                    run.failure or " ".join(run.warnings)[:300],
                )  # fmt: skip


def print_tuned(plan: Plan) -> None:
    """Print the table of problems, and that of failures."""
    table = Table(plan.folder, "quality_tuned", *COLUMNS)
    groups: dict[str, Verdicts] = {}
    for task in tasks():
        if plan.is_small and task.name not in SMALL:
            continue
        problem = task.make()
        law = (task.reference or law_of)(problem)
        first = verdict(task, law, 0)  # compiles; no part of the table
        assert first is not None
        runs = [verdict(task, law, seed) for seed in range(1, 1 + 2 * plan.rounds)]
        groups.setdefault(task.group, {})[task.label] = runs
        row(task, law, runs, table)
    print_failures(groups, plan)


def main(plan: Plan) -> None:
    """Print all tables."""
    assert __doc__ is not None
    print(__doc__.split("\n", 2)[2])
    print_tuned(plan)
    print_stopping(plan)
    print_worth(plan)
    print_anchors(plan)
