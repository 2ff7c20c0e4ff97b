"""Layout: two replicas side by side on the lanes of one block, or in blocks of their own; one core, cosine25.

The state is (dim, lane) with lane = replica × chain, padded to a multiple of 8, so one loop serves all replicas. "One
loop per replica" runs the two replicas' worth of lanes as two half-width blocks: what separate loops per replica cost.
"""

import numpy as np

from targets import mixtures
from toolkit import Layout, sample, samplers

from .markdown import head, row


def rate(n_chains: int, lanes: int) -> float:
    """Median of five runs of about 0.1 s, in 10⁶ chain-steps per second."""
    sampler = samplers.resgld((1e-3, 3e-3), temperatures=(1.0, 3.0))
    n_steps = 2_000_000 // n_chains
    arguments = {
        "n_steps": n_steps,
        "thin": n_steps,
        "n_chains": n_chains,
        "seed": 1,
        "threads": 1,
        "init": np.zeros(2),
    }
    runs = [sample(mixtures.cosine25(), sampler, layout=Layout(lanes=lanes), **arguments) for _ in range(6)][1:]
    return float(np.median([run.gradient_evaluations / run.elapsed for run in runs])) / 1e6


def main() -> None:
    """Print the table."""
    head("chains", "2 replicas side by side, 10⁶/s", "one loop per replica, 10⁶/s", "ratio")
    for chains in (5, 10, 20, 50, 100):
        together, apart = rate(chains, 2 * chains), rate(chains, chains)
        row(chains, together, apart, together / apart)
