"""Stage speed: chain-steps per second on the device, beside one processor core, all of them, float32, and the floor."""

import os

import numpy as np

from benchmarks.runner.tables import Table, rate_cell, ratio_cells

from .cases import MAKERS, Case, case_of
from .floors import Floor, floor_here
from .measure import THIN, WHAT, Plan, rate, rounds_of, run, steps_for

COLUMNS = (
    "case", "chains", "kept", "beside one core", "spread, one core", "beside all cores", "spread, all cores",
    "float32 beside float64", "spread, float32", "share of the float64 floor", "share of the floor", "limit",
    "device, 10⁶/s", "one core, 10⁶/s", "all cores, 10⁶/s", "float32, 10⁶/s", "steps",
)  # fmt: skip
CPU_CHAINS = 1024  # for each core
MANY = 10**7  # chains whose state takes the host many seconds to lay out


def shares(case: Case, floor: Floor | None, rates: list[float]) -> tuple[str, str, str]:
    """Shares of the floors that the median rate comes to, and what limits."""
    if floor is None:
        return "–", "–", "–"
    steps = float(np.median(rates)) / case.sampler.n_replicas
    return f"{steps * floor.flops:.1%}", f"{steps * floor.seconds:.1%}", floor.limit


def main(plan: Plan) -> None:
    """Print the table."""
    cores = len(os.sched_getaffinity(0))
    chains = 2 if plan.is_dry else CPU_CHAINS
    table = Table(plan.folder, "speed", *COLUMNS)
    for name in (name for name in MAKERS if name in plan.names):
        if plan.is_late(name):
            continue
        case, floor = case_of(name), floor_here(name, np.float64)
        cpu_steps = steps_for(case, "cpu", chains, plan, threads=1)
        run(case, "cpu", chains * cores, cpu_steps)
        for n_chains in plan.sizes:
            for keeps in WHAT:
                if plan.is_late(f"{name}, {n_chains} chains, {keeps}"):
                    continue
                n_steps = steps_for(case, "cuda", n_chains, plan, keeps)
                run(case, "cuda", n_chains, min(n_steps, THIN), keeps, dtype="float32")  # which compiles
                seen = rounds_of(
                    plan if n_chains < MANY else plan._replace(rounds=min(2, plan.rounds)),
                    device=lambda at=(n_chains, n_steps, keeps), case=case: rate(case, "cuda", *at),
                    one=lambda case=case, n=cpu_steps: rate(case, "cpu", chains, n, threads=1),
                    all=lambda case=case, n=cpu_steps: rate(case, "cpu", chains * cores, n, threads=cores),
                    float32=lambda at=(n_chains, n_steps, keeps), case=case: rate(case, "cuda", *at, dtype="float32"),
                )
                table.row(
                    name, n_chains, keeps, *ratio_cells(seen["device"], seen["one"]),
                    *ratio_cells(seen["device"], seen["all"]),
                    *ratio_cells(seen["float32"], seen["device"]), *shares(case, floor, seen["device"]),
                    *(rate_cell(rates) for rates in seen.values()), n_steps,
                )  # fmt: skip
