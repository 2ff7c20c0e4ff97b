"""Stage float32: its speed beside float64 on the device, and its error: of trajectories, and of the law.

Trajectories: the same random numbers, so the distance of a chain from its float64 twin is float32's own error until
chaos takes over; medians and largest over chains. Law: E x² of the first coordinate in both, from the same starts.
"""

import numpy as np

from benchmarks.tables import Table, rate_cell, ratio_cells

from .cases import MAKERS, case_of
from .floors import floor_here
from .measure import Plan, rate, rounds_of, run, steps_for
from .speed import shares

TIMES = (1, 10, 100, 1000)  # steps after which twins are compared


def errors(plan: Plan) -> None:
    """Distances of twins, and the law of both."""
    n_chains, times = (2, TIMES[:2]) if plan.is_dry else (4096, TIMES)
    columns = (f"after {n} steps: median, largest" for n in times)
    table = Table(plan.folder, "float32_error", "case", *columns, "E x₁² in float32", "in float64", "standard error")
    for name in (name for name in MAKERS if name in plan.names):
        if plan.is_late(name):
            continue
        case, cells = case_of(name), []
        for n_steps in times:
            last = [
                run(case, "cuda", n_chains, n_steps, "draws", dtype=dtype).replica_draws[:, :, -1]
                for dtype in ("float32", "float64")
            ]
            apart = np.abs(last[0] - last[1]).max(axis=(1, 2))
            cells.append(f"{np.median(apart):.2g}, {apart.max():.2g}")
        squares = []
        for dtype in ("float32", "float64"):
            done = run(case, "cuda", n_chains, times[-1], "draws", dtype=dtype)
            values, weights = done.draws[..., 0] ** 2, done.weights
            squares.append((values * weights).sum(axis=1) / weights.sum(axis=1))
        error = float(np.std(squares[0] - squares[1]) / np.sqrt(n_chains))
        table.row(name, *cells, *(float(np.mean(values)) for values in squares), error)


def main(plan: Plan) -> None:
    """Print both tables."""
    errors(plan)
    print()
    table = Table(
        plan.folder, "float32", "case", "chains", "beside float64", "spread", "share of the flops floor",
        "share of the floor", "limit", "float32, 10⁶/s", "float64, 10⁶/s",
    )  # fmt: skip
    for name in (name for name in MAKERS if name in plan.names):
        case, floor = case_of(name), floor_here(name, np.float32)
        for n_chains in plan.sizes:
            if plan.is_late(f"{name}, {n_chains} chains"):
                continue
            steps = {dtype: steps_for(case, "cuda", n_chains, plan, dtype=dtype) for dtype in ("float32", "float64")}
            seen = rounds_of(
                plan,
                **{
                    dtype: lambda dtype=dtype, n=n, case=case, m=n_chains: rate(case, "cuda", m, n, dtype=dtype)
                    for dtype, n in steps.items()
                },
            )
            table.row(
                name, n_chains, *ratio_cells(seen["float32"], seen["float64"]), *shares(case, floor, seen["float32"]),
                *(rate_cell(rates) for rates in seen.values()),
            )  # fmt: skip
