"""Quality for cost: what draws are worth after equal numbers of gradient evaluations, and of seconds on one core.

Error: KL(truth ‖ draws) on 20 × 20 cells, of equal marginal probability in the first two coordinates, or the worst
coordinate's error of mean and standard deviation in units of the true one. Worth: the number of independent exact
draws whose error is as large, so that all problems have one scale; 0: worse than any number of them. A bias shows as a
worth that stops to grow.

"× independent draws": worth over gradient evaluations, 1 where every gradient buys a draw. "× NUTS": worth over that of
NUTS, per gradient evaluation and per processor second; ∞: NUTS' draws are worth nothing there. These are at 10⁶
gradient evaluations, with warm-up, burn-in and contour's pilot. Medians over seeds, with smallest and largest; one seed
at 10⁷. "Independent draws": the error that as many exact draws as gradient evaluations have on average. A run has 64
lanes (chains × replicas), started within 0.1 standard deviations of the origin; a tenth of its steps is burn-in; one
draw in four is taken in where a step is one gradient. "– × exchange" is the move under non-reversible parallel
tempering. NUTS: BlackJAX, 4 chains, 1,000 steps of window adaptation; it has no walls and needs exact gradients.

Settings are in ``settings``, found by the same effort for each of our samplers (``search``, 16 short runs
of a seed that the table has not) and, without a Metropolis test, with step sizes ∝ n^(−1/3) beyond the n they were
found for. "× NUTS" is no equal fight: the search is not charged to ours, while NUTS finds its own settings, pays for
that, and is one sampler against many.
"""

import statistics

from benchmarks.peers.host import Peer, opened
from benchmarks.runner.plan import Plan
from benchmarks.runner.rounds import one_core
from benchmarks.runner.tables import Table

from .advice import print_advice
from .nuts import NUTS, nuts_runs
from .problems import CASES, Case
from .runs import Measured, measure
from .samplers import FAMILIES, Values
from .settings import SETTINGS

BUDGETS = (100_000, 1_000_000, 10_000_000)
MIDDLE = 1_000_000  # of which ratios are
LONGEST = 1.5  # seconds of one run at 10⁷; longer ones are left out
SEEDS, UNTUNED_SEEDS = 4, 2
NUTS_SEEDS = 2  # its 10⁶ gradients take 5 s
COLUMNS = (
    "problem", "sampler", "× independent draws, per gradient", "× NUTS, per gradient", "× NUTS, per second",
    "worth, spread", "error at 10⁵", "10⁶", "10⁷", "worth at 10⁵ ", "10⁶ ", "10⁷ ", "seconds at 10⁶",
    "10³ independent draws a second", "settings",
)  # fmt: skip

Results = dict[int, list[Measured]]  # by gradient evaluations asked for, one for each seed


def results_of(case: Case, family: str, values: Values, budgets: tuple[int, ...], seeds: int) -> Results:
    """Runs of a sampler on a problem; none at 10⁷ where one would take too long, or draws are worth nothing at 10⁶."""
    results: Results = {}
    rate = 0.0
    measure(case, family, values, budgets[0], 0)  # compiles
    for budget in budgets:
        if budget > MIDDLE and (rate * budget > LONGEST or not any(worths(case, results[MIDDLE]))):
            break
        some = seeds if budget <= MIDDLE else 1
        results[budget] = [measure(case, family, values, budget, seed) for seed in range(1, some + 1)]
        rate = max(run.seconds / run.gradients for run in results[budget])
    return results


def worths(case: Case, runs: list[Measured]) -> list[float]:
    """Independent draws that the runs are worth."""
    return [case.worth(run.error) for run in runs]


def per_gradient(case: Case, runs: list[Measured]) -> float:
    """Median of worth over gradient evaluations."""
    return statistics.median(worth / run.gradients for worth, run in zip(worths(case, runs), runs, strict=True))


def per_second(case: Case, runs: list[Measured]) -> float:
    """Median of worth over processor seconds."""
    return statistics.median(worth / run.seconds for worth, run in zip(worths(case, runs), runs, strict=True))


def over(ours: float, others: float | None) -> str:
    """A ratio's cell."""
    if others is None:
        return "–"
    return f"{ours / others:.3g}" if others > 0.0 else ("∞" if ours > 0.0 else "–")


def cells(case: Case, results: Results, budgets: tuple[int, ...], nuts: Results, settings: str) -> list[str]:
    """A row without its names."""
    middle = middle_of(results)
    other = middle_of(nuts) if nuts else None
    medians = [statistics.median(run.error for run in results[b]) if b in results else None for b in budgets]
    worth = sorted(worths(case, middle))
    values = [f"{error:.3g}" if error is not None else "–" for error in medians]
    draws = [f"{case.worth(error):.3g}" if error is not None else "–" for error in medians]
    padding = ["–"] * (len(BUDGETS) - len(budgets))
    return [
        f"{per_gradient(case, middle):.3g}",
        over(per_gradient(case, middle), per_gradient(case, other) if other else None),
        over(per_second(case, middle), per_second(case, other) if other else None),
        f"{worth[0]:.3g} – {worth[-1]:.3g}", *values, *padding, *draws, *padding,
        f"{statistics.median(run.seconds for run in middle):.3g}", f"{per_second(case, middle) / 1e3:.3g}", settings,
    ]  # fmt: skip


def middle_of(results: Results) -> list[Measured]:
    """The runs that ratios are of: at 10⁶ gradient evaluations, or the most there are below."""
    return results[max(budget for budget in results if budget <= MIDDLE)]


def settings_of(name: str, family: str) -> Values | None:
    """What the search found; None where the sampler does not run on the problem."""
    found = SETTINGS.get(name, {}).get(family)
    return None if found is None else dict(zip(FAMILIES[family].knobs, found, strict=True))


def rows(name: str, case: Case, peer: Peer | None, plan: Plan, table: Table) -> dict[str, Results]:
    """Measure and print all samplers on one problem."""
    budgets = BUDGETS[:1] if plan.is_small else BUDGETS
    seeds = min(plan.rounds, SEEDS)
    named: dict[str, Results] = {}
    nuts, remark = nuts_runs(name, case, peer, [b for b in budgets if b <= MIDDLE], min(seeds, NUTS_SEEDS))
    for family in FAMILIES:
        values = settings_of(name, family)
        if values is None:
            continue
        named[family] = results_of(case, family, values, budgets, seeds)
        told = ", ".join(f"{key} {value:g}" for key, value in values.items())
        table.row(name, family, *cells(case, named[family], budgets, nuts, told))
    if nuts:
        named[NUTS] = nuts
        table.row(name, NUTS, *cells(case, nuts, budgets, nuts, "window adaptation"))
    else:
        table.row(name, NUTS, *["–"] * (len(COLUMNS) - 3), remark)
    floors = [f"{case.floor(budget):.3g}" for budget in BUDGETS]
    table.row(name, "independent draws", "1", "–", "–", "–", *floors, *(f"{b:.3g}" for b in BUDGETS), "–", "–", "exact")
    return named


def untuned(plan: Plan) -> dict[str, dict[str, Results]]:
    """Every sampler on the problems of many modes, where its search begins."""
    names = [name for name, case in CASES.items() if "many modes" in " ".join(case.kinds)]
    budget, seeds = (BUDGETS[0], 1) if plan.is_small else (MIDDLE, UNTUNED_SEEDS)
    return {
        name: {
            family: results_of(CASES[name], family, {k: v.start for k, v in parts.knobs.items()}, (budget,), seeds)
            for family, parts in FAMILIES.items()
            if settings_of(name, family) is not None
        }
        for name in (names[:1] if plan.is_small else names)
    }


def main(plan: Plan) -> None:
    """Print both tables."""
    assert __doc__ is not None
    print(__doc__.split("\n", 2)[2])
    chosen = ("cosine25", "linear regression") if plan.is_small else tuple(CASES)
    table = Table(plan.folder, "quality", *COLUMNS)
    peer, absent = opened("nuts_runs")
    if absent:
        print(f"no NUTS: {absent}")
    try:
        with one_core():
            measured = {name: rows(name, CASES[name], peer, plan, table) for name in chosen}
            print_advice(plan, measured, untuned(plan))
    finally:
        if peer is not None:
            peer.close()
