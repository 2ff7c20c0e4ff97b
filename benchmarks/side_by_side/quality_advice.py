"""Which sampler to use when: the best of `quality`'s rows for each kind of problem, by what its draws are worth."""

import math
import statistics

from benchmarks.tables import Table

from .plan import Plan
from .quality_nuts import NUTS
from .quality_problems import CASES
from .quality_runs import Measured

LEAST = 1e-6  # share of the best that a sampler is counted with where its draws are worth nothing

Measurements = dict[str, dict[str, dict[int, list[Measured]]]]  # by problem and sampler
Rates = dict[str, dict[str, float]]  # of independent draws, by problem and sampler


def rates(measured: Measurements, by_second: bool, budget: int) -> Rates:
    """Independent draws per processor second, or per gradient evaluation, at ``budget`` or the most below."""
    found: Rates = {}
    for name, samplers in measured.items():
        found[name] = {}
        for sampler, results in samplers.items():
            runs = results[max(b for b in results if b <= budget)]
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
    print(
        "\nWhich sampler to use when, by independent draws a second at 10⁶ gradient evaluations (geometric means), of"
    )
    print("samplers with their settings searched for; the best is picked by the very runs that its numbers are of.\n")
    table = Table(
        plan.folder, "quality_advice", "kind of problem", "× SGLD, per second", "× NUTS, per second", "sampler to use",
        "independent draws a second", "per 10³ gradients", "next", "its share", "best per gradient", "measured on",
    )  # fmt: skip
    for kind, some in kinds(measured, untuned).items():
        seconds, gradients = (rates(some, by_second, budget) for by_second in (True, False))
        ours = {name: score for name, score in scores(seconds).items() if name != NUTS}
        first, *others = sorted(ours, key=ours.__getitem__, reverse=True)
        thrifty = scores(gradients)
        table.row(
            kind, ratio(seconds, first, "sgld"), ratio(seconds, first, NUTS), first, f"{geometric(seconds, first):.3g}",
            f"{1e3 * geometric(gradients, first):.3g}", others[0], f"{ours[others[0]] / ours[first]:.2f}",
            max(thrifty, key=thrifty.__getitem__), ", ".join(some),
        )  # fmt: skip


def ratio(some: Rates, first: str, other: str) -> str:
    """Rate of the first over the other's, over the problems that both ran on."""
    both = {name: samplers for name, samplers in some.items() if other in samplers}
    if not both:
        return "–"
    under = geometric(both, other)
    return f"{geometric(both, first) / under:.3g}" if under > 0.0 else "∞"
