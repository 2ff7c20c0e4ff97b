"""Stage speed: chain-steps per second on the device, beside one processor core, all of them, float32, and the floor."""

import os
from typing import Any

import numpy as np

from benchmarks.runner.tables import Table, rate_cell, ratio_cells
from toolkit import Layout
from toolkit._engine.cuda import device

from .cases import MAKERS, Case, case_of
from .floors import Floor, floor_here
from .measure import THIN, Plan, rate, rounds_of, run, side_by_side, steps_for

COLUMNS = (
    "card", "case", "chains", "kept", "beside one core", "spread, one core", "beside all cores", "spread, all cores",
    "float32 beside float64", "spread, float32", "share of the float64 floor", "share of the floor", "limit",
    "device, 10⁶/s", "one core, 10⁶/s", "all cores, 10⁶/s", "float32, 10⁶/s", "steps",
)  # fmt: skip
REALS = ("float64", "float32")
CPU_CHAINS = 1024  # for each core
MANY = 10**7  # chains whose state takes the host many seconds to lay out
FUSED = Layout(fused=True)  # the CPU's engine for long runs
ONE_CORE: dict[str, Any] = {"threads": 1, "layout": FUSED}


def shares(case: Case, floor: Floor | None, rates: list[float]) -> tuple[str, str, str]:
    """Shares of the floors that the median rate comes to, and what limits."""
    if floor is None:
        return "–", "–", "–"
    steps = float(np.median(rates)) / case.sampler.n_replicas
    return f"{steps * floor.flops:.1%}", f"{steps * floor.seconds:.1%}", floor.limit


def compile_and_count(names: list[str], plan: Plan) -> dict[str, Floor | None]:
    """The floors of cases; afterwards the cache on disk holds all that the rows need."""
    if plan.is_dry:
        return {name: floor_here(name, np.float64) for name in names}
    work = [(floor_here, name, np.float64) for name in names] + [(compile_for_cpu, name) for name in names]
    work += [(compile_for_device, name, keeps, real) for name in names for keeps in plan.kept for real in REALS]
    return dict(zip(names, side_by_side(work)[: len(names)], strict=True))


def compile_for_cpu(name: str) -> None:
    """Compile the CPU's engine for a case."""
    run(case_of(name), "cpu", 8, 2, layout=FUSED)


def compile_for_device(name: str, keeps: str, dtype: str) -> None:
    """Compile the kernels of a case."""
    run(case_of(name), "cuda", 8, 2 * THIN, keeps, dtype=dtype)


def main(plan: Plan) -> None:
    """Print the table."""
    cores = len(os.sched_getaffinity(0))
    chains = 2 if plan.is_dry else CPU_CHAINS
    table = Table(plan.folder, "cuda_speed", *COLUMNS)
    if plan.is_late("all"):
        return
    names = [name for name in MAKERS if name in plan.names]
    floors = compile_and_count(names, plan)
    for name in names:
        if plan.is_late(name):
            continue
        case, floor = case_of(name), floors[name]
        cpu_steps = steps_for(case, "cpu", chains, plan, **ONE_CORE)
        run(case, "cpu", chains * cores, cpu_steps, layout=FUSED)
        known: dict[str, float] = {}
        for n_chains in plan.sizes:
            for keeps in plan.kept:
                if plan.is_late(f"{name}, {n_chains} chains, {keeps}"):
                    continue
                n_steps = steps_for(case, "cuda", n_chains, plan, keeps, known_rate=known.get(keeps, 0.0))
                run(case, "cuda", min(n_chains, 8), THIN, keeps, dtype="float32")  # which compiles
                seen = rounds_of(
                    plan if n_chains < MANY else plan._replace(rounds=min(2, plan.rounds)),
                    device=lambda at=(n_chains, n_steps, keeps), case=case: rate(case, "cuda", *at),
                    one=lambda case=case, n=cpu_steps: rate(case, "cpu", chains, n, **ONE_CORE),
                    all=lambda c=case, n=cpu_steps: rate(c, "cpu", chains * cores, n, threads=cores, layout=FUSED),
                    float32=lambda at=(n_chains, n_steps, keeps), case=case: rate(case, "cuda", *at, dtype="float32"),
                )
                known[keeps] = float(np.median(seen["device"]))
                table.row(
                    device.name(), name, n_chains, keeps, *ratio_cells(seen["device"], seen["one"]),
                    *ratio_cells(seen["device"], seen["all"]),
                    *ratio_cells(seen["float32"], seen["device"]), *shares(case, floor, seen["device"]),
                    *(rate_cell(rates) for rates in seen.values()), n_steps,
                )  # fmt: skip
