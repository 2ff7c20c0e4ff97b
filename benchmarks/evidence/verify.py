"""verify: false alarms of right samplers over 200 seeds, and how often each fault is found over 20.

False alarms: 64 chains of 4,000 steps (icsgld: 20,000), where normal laws are roughest; faults: ``verify``'s defaults.
Only checks of laws count; what is not judged is counted by itself.
"""

from typing import Any

from benchmarks.runner.plan import Plan
from benchmarks.runner.tables import Table
from tests.support.faults import RIGHT, WRONG
from toolkit.problem.definition import as_problem
from toolkit.samplers.sampler import Sampler
from toolkit.verification.laws import check_laws
from toolkit.verification.report import CHAINS, STEPS, setting_of

SEEDS, FAULT_SEEDS = 200, 20


def outcomes(problem: Any, sampler: Sampler, seed: int, n_steps: int, n_chains: int) -> list[bool | None]:
    """What each check of laws says."""
    setting = setting_of(as_problem(problem), sampler, n_steps, n_steps // 4, n_chains, None, seed)
    return [verdict.passed for name, verdict in check_laws(setting) if name not in ("domain", "weights")]


def main(plan: Plan) -> None:
    """Print the tables."""
    seeds, fault_seeds = (2, 1) if plan.is_small else (SEEDS, FAULT_SEEDS)
    columns = ("right sampler", "seeds", "checks judged", "not judged", "failed (false alarms)")
    table = Table(plan.folder, "verify", *columns)
    for name, (problem, sampler) in RIGHT.items():
        size = (20_000, 64) if sampler.is_weighted else (4_000, 64)
        found = [outcome for seed in range(seeds) for outcome in outcomes(problem, sampler, seed, *size)]
        table.row(name, seeds, len(found) - found.count(None), found.count(None), found.count(False))
    print()
    table = Table(plan.folder, "verify_faults", "fault", "seeds", "found")
    for name, (problem, sampler) in WRONG.items():
        found = [False in outcomes(problem, sampler, seed, STEPS, CHAINS) for seed in range(fault_seeds)]
        table.row(name, fault_seeds, sum(found))
