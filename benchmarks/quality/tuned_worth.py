"""Draws of samplers that nobody has set beside those of searched settings, of NUTS and of nutpie, at 10⁶ gradients."""

import statistics
import time
import warnings

from benchmarks.peers.host import Peer, opened
from benchmarks.runner.plan import Plan
from benchmarks.runner.tables import Table
from toolkit import DivergenceError, sample, stopping, tune
from toolkit.samplers.sampler import Sampler

from .comparison import over, per_gradient, per_second, settings_of, worths
from .nuts import nuts_runs
from .problems import CASES, HIGHER, Case
from .runs import Measured, measure
from .samplers import FAMILIES
from .tuned_problems import blind

BUDGET, SMALL_BUDGET = 1_000_000, 300_000
NUTPIE_BUDGET = 100_000  # whose calls into Python take 90 µs each
CHOOSING = (1, 2)  # seeds by which the best family is chosen; all numbers are of others
FIRST_SEED = 11
NUTS_SEEDS, NUTPIE_SEEDS = 4, 2
SAME = {"pt_hmc": "hmc × exchange", "hmc": "hmc", "sgnht": "sgnht"}  # families by names of tuned samplers
COLUMNS = (
    "problem", "× best searched, per gradient", "× best searched, per second", "× same searched, per gradient",
    "× NUTS, per gradient", "× NUTS, per second", "× nutpie, per gradient", "× nutpie, per second",
    "worth per 10³ gradients", "worth, spread", "of the best searched ", "of NUTS ", "of nutpie ",
    "gradients of the tuning", "seconds", "sampler", "best searched", "same searched",
)  # fmt: skip


def tuned_measured(case: Case, budget: int, seed: int) -> tuple[Measured, Sampler, int]:
    """A run that was given the problem and the seed, of so many gradients with its tuning.

    Also its sampler, and the gradients of the tuning.
    """
    problem = blind(case.problem)
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tuned = tune(problem, seed=seed, threads=1, progress=False)
        left = max(1_000, budget - tuned.cost.gradients)
        try:
            run = sample(
                problem, tuned, seed=seed, until=stopping.gradients(left), thin=1, keep_draws=False,
                keep_statistics=False, accumulators={"law": case.accumulator}, threads=1, progress=False,
            )  # fmt: skip
        except (DivergenceError, ValueError) as error:  # the latter where the tuning has left nothing beyond burn-in
            spent = tuned.cost.gradients + getattr(getattr(error, "run", None), "gradient_evaluations", 0)
            return Measured(float("inf"), spent, time.process_time() - started), tuned.sampler, tuned.cost.gradients
    seconds = time.process_time() - started
    spent = tuned.cost.gradients + run.gradient_evaluations
    error = case.error(run.accumulated["law"], tuned.sampler.is_weighted)
    return Measured(error, spent, seconds), tuned.sampler, tuned.cost.gradients


def searched(name: str, case: Case, family: str, budget: int, seeds: range | tuple[int, ...]) -> list[Measured]:
    """Runs with the settings that a search has found, every step's draw taken in."""
    values = settings_of(name, family)
    assert values is not None
    measure(case, family, values, 20_000, 0, thin=1)  # compiles
    return [measure(case, family, values, budget, seed, thin=1) for seed in seeds]


def best_family(name: str, case: Case, budget: int) -> str:
    """The family that is worth most per gradient, by the seeds for choosing."""
    rates = {
        family: per_gradient(case, searched(name, case, family, budget, CHOOSING))
        for family in FAMILIES
        if settings_of(name, family) is not None
    }
    return max(rates, key=rates.__getitem__, default="")


def peer_runs(
    name: str, case: Case, peer: Peer | None, which: str, budget: int, seeds: int
) -> tuple[list[Measured], str]:
    """A peer's runs, and why there are none."""
    results, remark = nuts_runs(name, case, peer, [budget], seeds, which)
    return results.get(budget, []), remark


def row(name: str, case: Case, peer: Peer | None, plan: Plan, table: Table) -> None:
    """Measure and print one problem."""
    budget = SMALL_BUDGET if plan.is_small else BUDGET
    seeds = range(FIRST_SEED, FIRST_SEED + 2 * plan.rounds)
    tuned_measured(case, 200_000, 0)  # compiles
    found = [tuned_measured(case, budget, seed) for seed in seeds]
    ours = [run for run, _, _ in found]
    usual = statistics.mode(sampler.name for _, sampler, _ in found)
    family = SAME.get(usual, "")
    chosen = best_family(name, case, budget)
    best = searched(name, case, chosen, budget, seeds) if chosen else []
    same = searched(name, case, family, budget, seeds) if settings_of(name, family) is not None else []
    nuts, remark = peer_runs(name, case, peer, "nuts", budget, min(NUTS_SEEDS, 2 * plan.rounds))
    pie, _ = peer_runs(name, case, peer, "nutpie", NUTPIE_BUDGET, min(NUTPIE_SEEDS, plan.rounds))
    rate, speed = per_gradient(case, ours), per_second(case, ours)
    spread = sorted(worth / run.gradients for worth, run in zip(worths(case, ours), ours, strict=True))

    def ratios(others: list[Measured]) -> tuple[str, str]:
        if not others:
            return "–", "–"
        return over(rate, per_gradient(case, others)), over(speed, per_second(case, others))

    def rates(others: list[Measured]) -> str:
        return f"{1e3 * per_gradient(case, others):.3g}" if others else remark or "–"

    table.row(
        name, *ratios(best), ratios(same)[0], *ratios(nuts), *ratios(pie), f"{1e3 * rate:.3g}",
        f"{1e3 * spread[0]:.3g} – {1e3 * spread[-1]:.3g}", rates(best), rates(nuts), rates(pie),
        f"{statistics.median(cost for _, _, cost in found):,.0f}",
        f"{statistics.median(run.seconds for run in ours):.3g}", usual, chosen or "–", family if same else "–",
    )  # fmt: skip


def print_worth(plan: Plan) -> None:
    """Print the table."""
    print("\nWorth of draws at 10⁶ gradients, tuning included, over that of searched settings and of NUTS\n")
    table = Table(plan.folder, "quality_tuned_worth", *COLUMNS)
    cases = CASES | HIGHER
    names = ("cosine25",) if plan.is_small else tuple(cases)
    peer, absent = opened("nuts_runs")
    if absent:
        print(f"no NUTS: {absent}")
    try:
        for name in names:
            row(name, cases[name], peer, plan, table)
    finally:
        if peer is not None:
            peer.close()
