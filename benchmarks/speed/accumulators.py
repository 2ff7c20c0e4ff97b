"""What accumulators cost: SGLD on cosine25, 1,000 chains, every draw taken in and none kept.

Medians over rounds in which every row runs once; the ratio is to the run without an accumulator in the same round.
"""

import numpy as np

from targets import mixtures
from toolkit import accumulators, sample, samplers
from toolkit.accumulators import Accumulator

from .markdown import head, row
from .rounds import wall

CHAINS, STEPS, ROUNDS = 1_000, 10_000, 7


def main() -> None:
    """Print the table."""
    target, edges = mixtures.cosine25(), np.linspace(-2.5, 2.5, 101)
    assert target.truth is not None
    masses = target.truth.cell_masses(edges, edges)
    one: dict[str, Accumulator] = {
        "moments": accumulators.moments(),
        "histogram, 100 × 100": accumulators.histogram(edges, edges),
        "kl, 100 × 100, once": accumulators.kl(masses, edges, edges, at=[STEPS]),
        "energy_histogram": accumulators.energy_histogram(np.linspace(-4.0, 20.0, 101)),
        "best_point": accumulators.best_point(),
        "batch_means": accumulators.batch_means(),
    }
    rows: dict[str, dict[str, Accumulator]] = {"none": {}, **{name: {name: a} for name, a in one.items()}, "all": one}
    head("accumulator", "threads", "10⁶ draws/s", "ratio", "spread", "ns a draw beside the step")
    for threads in (1, 2):

        def run(chosen: dict[str, Accumulator], threads: int = threads) -> object:
            return sample(
                target, samplers.sgld(1e-3), n_steps=STEPS, n_chains=CHAINS, seed=0, threads=threads,
                accumulators=chosen, keep_draws=False, init=np.zeros(2),
            )  # fmt: skip

        for chosen in rows.values():
            run(chosen)
        times = np.array([[wall(lambda c=chosen: run(c)) for chosen in rows.values()] for _ in range(ROUNDS)])
        for i, name in enumerate(rows):
            ratios = np.sort(times[:, i] / times[:, 0])
            extra = np.median(times[:, i] - times[:, 0]) / (CHAINS * STEPS) * 1e9
            rate = CHAINS * STEPS / np.median(times[:, i]) / 1e6
            row(
                name,
                threads,
                f"{rate:.0f}",
                f"{ratios[ROUNDS // 2]:.2f}",
                f"{ratios[0]:.2f} – {ratios[-1]:.2f}",
                float(extra),
            )
