"""Which sampler to use when: the best of ``comparison``'s rows for each kind of problem, by what draws are worth."""

import math
import statistics

from benchmarks.runner.plan import Plan
from benchmarks.runner.tables import Table

from .nuts import NUTS
from .problems import CASES
from .runs import Measured

LEAST = 1e-6  # share of the best that a sampler is counted with where its draws are worth nothing
AS_GOOD = 0.8  # share of the best from which on a sampler is named beside it: less is within the noise of the seeds

Measurements = dict[str, dict[str, dict[int, list[Measured]]]]  # by problem and sampler
Rates = dict[str, dict[str, float]]  # of independent draws, by problem and sampler


def half(runs: list[Measured], choosing: bool) -> list[Measured]:
    """Every other run: by some a sampler is chosen, by the others its numbers are told; all where there is but one."""
    return runs if len(runs) == 1 else runs[int(not choosing) :: 2]


def rates(measured: Measurements, by_second: bool, budget: int, choosing: bool) -> Rates:
    """Independent draws per processor second, or per gradient evaluation, at ``budget`` or the most below."""
    found: Rates = {}
    for name, samplers in measured.items():
        found[name] = {}
        for sampler, results in samplers.items():
            runs = half(results[max(b for b in results if b <= budget)], choosing)
            costs = [run.seconds if by_second else run.gradients for run in runs]
            worth = [CASES[name].worth(run.error) for run in runs]
            found[name][sampler] = statistics.median(w / cost for w, cost in zip(worth, costs, strict=True))
    return found


def scores(some: Rates) -> dict[str, float]:
    """Geometric mean, over problems, of each sampler's rate over the best one's; of those that ran on all of them."""
    names = set.intersection(*(set(samplers) for samplers in some.values()))
    shares: dict[str, list[float]] = {name: [] for name in names}
    for samplers in some.values():
        best = max(samplers.values()) or 1.0
        for name in names:
            shares[name].append(max(samplers[name] / best, LEAST))
    return {name: math.exp(statistics.fmean(map(math.log, values))) for name, values in shares.items()}


def kinds(measured: Measurements, untuned: Measurements) -> dict[str, Measurements]:
    """Measurements by kind of problem."""
    grouped: dict[str, Measurements] = {}
    for name, samplers in measured.items():
        for kind in CASES[name].kinds:
            grouped.setdefault(kind, {})[name] = samplers
    return {**grouped, "unknown energy scale: many modes, nothing tuned": untuned}


def geometric(some: Rates, sampler: str) -> float:
    """Geometric mean of a sampler's rate over the problems; 0 where it is nothing on one of them, or did not run."""
    values = [samplers.get(sampler, 0.0) for samplers in some.values()]
    return math.exp(statistics.fmean(map(math.log, values))) if min(values) > 0.0 else 0.0


def print_advice(plan: Plan, measured: Measurements, untuned: Measurements) -> None:
    """One row for each kind."""
    budget = 1_000_000
    print("\nWhich sampler to use when, by independent draws a second at 10⁶ gradient evaluations (geometric means),")
    print("of samplers with their settings searched for; chosen by runs of some seeds, told by those of others.")
    print(f"As good: those of {AS_GOOD:.0%} or more of the chosen one's rate, which other seeds may turn round.\n")
    table = Table(
        plan.folder, "quality_advice", "kind of problem", "× SGLD, per second", "× NUTS, per second", "sampler to use",
        "as good", "next", "its share", "independent draws a second", "per 10³ gradients", "best per gradient",
        "measured on",
    )  # fmt: skip
    for kind, some in kinds(measured, untuned).items():
        ours = {name: score for name, score in scores(rates(some, True, budget, True)).items() if name != NUTS}
        first, *others = sorted(ours, key=ours.__getitem__, reverse=True)
        as_good = [name for name in others if ours[name] >= AS_GOOD * ours[first]]
        after = next((name for name in others if name not in as_good), None)
        thrifty = scores(rates(some, False, budget, True))
        seconds, gradients = (rates(some, by_second, budget, False) for by_second in (True, False))
        table.row(
            kind, ratio(seconds, first, "sgld"), ratio(seconds, first, NUTS), first, ", ".join(as_good) or "–",
            after or "–", f"{ours[after] / ours[first]:.2f}" if after else "–", f"{geometric(seconds, first):.3g}",
            f"{1e3 * geometric(gradients, first):.3g}", max(thrifty, key=thrifty.__getitem__), ", ".join(some),
        )  # fmt: skip


def ratio(some: Rates, first: str, other: str) -> str:
    """Rate of the first over the other's, over the problems that both ran on."""
    both = {name: samplers for name, samplers in some.items() if other in samplers}
    if not both:
        return "–"
    under = geometric(both, other)
    return f"{geometric(both, first) / under:.3g}" if under > 0.0 else "∞"
