"""What accumulators cost: SGLD on cosine25, 1,000 chains, every draw taken in and none kept.

Medians over rounds in which every row runs once; the ratio is to the run without an accumulator in the same round.
"""

import numpy as np

from benchmarks.runner.plan import Plan
from benchmarks.runner.rounds import interleaved, wall
from benchmarks.runner.tables import Table, rate_cell, ratio_cells
from targets import mixtures
from toolkit import accumulators, sample, samplers
from toolkit.accumulators import Accumulator

CHAINS, STEPS = 1_000, 10_000


def main(plan: Plan) -> None:
    """Print the table."""
    n_steps = STEPS // 10 if plan.is_small else STEPS
    target, edges = mixtures.cosine25(), np.linspace(-2.5, 2.5, 101)
    assert target.truth is not None
    masses = target.truth.cell_masses(edges, edges)
    one: dict[str, Accumulator] = {
        "moments": accumulators.moments(),
        "histogram, 100 × 100": accumulators.histogram(edges, edges),
        "kl, 100 × 100, once": accumulators.kl(masses, edges, edges, at=[n_steps]),
        "energy_histogram": accumulators.energy_histogram(np.linspace(-4.0, 20.0, 101)),
        "best_point": accumulators.best_point(),
        "batch_means": accumulators.batch_means(),
    }
    rows: dict[str, dict[str, Accumulator]] = {"none": {}, **{name: {name: a} for name, a in one.items()}, "all": one}
    columns = ("accumulator", "threads", "10⁶ draws/s", "ratio", "spread", "ns a draw beside the step")
    table = Table(plan.folder, "accumulators", *columns)
    for threads in (1, 2):

        def run(chosen: dict[str, Accumulator], threads: int = threads) -> object:
            return sample(
                target, samplers.sgld(1e-3), n_steps=n_steps, n_chains=CHAINS, seed=0, threads=threads,
                accumulators=chosen, keep_draws=False, init=np.zeros(2),
            )  # fmt: skip

        for chosen in rows.values():
            run(chosen)
        timed = {name: lambda chosen=chosen, run=run: wall(lambda: run(chosen)) for name, chosen in rows.items()}
        seen = interleaved(plan.rounds, timed)
        for name, times in seen.items():
            extra = np.median(np.subtract(times, seen["none"])) / (CHAINS * n_steps) * 1e9
            rates = [CHAINS * n_steps / time for time in times]
            table.row(name, threads, rate_cell(rates), *ratio_cells(times, seen["none"]), float(extra))
