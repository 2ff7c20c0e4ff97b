"""Contour in groups that share θ every K steps: errors of θ and of a mode's weight, bytes moved, time of a round.

Bytes are those of arrays that go through the client, for each chain: θ and visits, to the groups and back, with counts;
states of the groups, every 32 rounds to the client and back; and draws. The cluster has two processes here.
"""

import math
import time
import warnings
from typing import Any

import numpy as np

from benchmarks.runner.plan import Plan
from benchmarks.runner.tables import Table
from targets import mixtures
from toolkit import ContourWarning, Run, sample_in_rounds, samplers
from toolkit._distributed import round_workers
from toolkit.tempering import Partition

TARGET = mixtures.gaussian_mixture([[-4.0], [3.0]], 1.0, [0.4, 0.6])
LEFT, MIDDLE = 0.4, -0.5
CELLS = Partition(1.4, 0.5, 18)
REPLICAS, CHAINS, STEPS, THIN = 4, 128, 40_000, 10
LENGTHS, GROUPS = (1, 10, 100, 1000, 10_000), (1, 2, 4)
EARLY = 4_000  # steps, after which θ has hardly settled
TIMED = {1000: 32, 10_000: 4}  # rounds on the cluster; 64 of others
COLUMNS = (
    "groups", "K", "error of θ, %", "± %", "after 4,000 steps, %", "± %", "error of the left mode's weight", "±",
    "θ, bytes per 1,000 steps",
    "states, bytes per 1,000 steps", "draws, bytes per 1,000 steps", "ms a round, one thread",
    "ms a round, cluster of 2", "chains",
)  # fmt: skip


def masses() -> Any:
    """Probabilities of the bins under the mixture, given that the energy is inside the partition, by quadrature."""
    x = np.linspace(-16.0, 15.0, 1_000_001)
    density = 0.4 * np.exp(-0.5 * (x + 4.0) ** 2) + 0.6 * np.exp(-0.5 * (x - 3.0) ** 2)
    energy = 0.5 * math.log(2.0 * math.pi) - np.log(density)
    inside = (energy >= CELLS.u_min) & (energy < CELLS.u_max)
    j = np.floor((energy[inside] - CELLS.u_min) / CELLS.width).astype(int)
    mass = np.bincount(j, density[inside], CELLS.n_bins)
    return mass / mass.sum()


def run_of(groups: int, length: int, seed: int, n_steps: int, client: Any = None) -> Run:
    """A run, from starts on both sides."""
    start = np.where(np.arange(CHAINS) % 2 == 0, -4.0, 3.0)[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ContourWarning)
        return sample_in_rounds(
            TARGET, samplers.icsgld(0.1, n_replicas=REPLICAS, partition=CELLS), n_groups=groups, steps_per_round=length,
            n_steps=n_steps, n_chains=CHAINS, burn_in=n_steps // 4, thin=min(THIN, n_steps // 2), seed=seed, init=start,
            threads=1, client=client, progress=False,
        )  # fmt: skip


def errors_of(runs: list[Run], law: Any) -> tuple[Any, Any]:
    """Squared errors of θ's probabilities, relative to their own square, and of the left mode's weight, (chain,)."""
    theta, weight = [], []
    for run in runs:
        power = run.theta ** samplers.icsgld().tempering.zeta  # type: ignore[union-attr]
        found = power / power.sum(axis=1, keepdims=True)
        theta.append(((found - law) ** 2).sum(axis=1) / (law**2).sum())
        left = run.draws[:, :, 0] < MIDDLE
        weight.append(((run.weights * left).sum(axis=1) / run.weights.sum(axis=1) - LEFT) ** 2)
    return np.concatenate(theta), np.concatenate(weight)


def root_mean(squares: Any) -> tuple[float, float]:
    """The root of the mean, and its standard error."""
    root = math.sqrt(squares.mean())
    return root, float(squares.std(ddof=1) / math.sqrt(squares.size) / (2.0 * root))


def on_the_cluster(client: Any, groups: int, length: int, n_rounds: int) -> tuple[float, round_workers.MovedGroup]:
    """Milliseconds of a round, and the bytes moved in all rounds."""
    made, advance, seconds = [], round_workers.ClusterWorkers.advance, []

    def timing(self: round_workers.ClusterWorkers, *given: Any) -> Any:
        made.append(self)
        started = time.perf_counter()
        found = advance(self, *given)
        seconds.append(time.perf_counter() - started)
        return found

    round_workers.ClusterWorkers.advance = timing  # type: ignore[method-assign]
    try:
        run_of(groups, length, 1, n_rounds * length, client)
    finally:
        round_workers.ClusterWorkers.advance = advance  # type: ignore[method-assign]
    return 1e3 * float(np.median(seconds)), made[0].moved


def main(plan: Plan) -> None:
    """Print the table."""
    import distributed

    law = masses()
    table = Table(plan.folder, "contour_rounds", *COLUMNS)
    n_steps = 2_000 if plan.is_small else STEPS
    run_of(2, 100, 1, 400)  # compiles
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        on_the_cluster(client, 2, 100, 4)
        for groups in GROUPS:
            for length in LENGTHS if not plan.is_small else (10, 100):
                runs = [run_of(groups, length, seed, n_steps) for seed in range(1, 1 + plan.rounds)]
                theta, weight = (root_mean(squares) for squares in errors_of(runs, law))
                early = root_mean(errors_of([run_of(groups, length, run.seed, EARLY) for run in runs], law)[0])
                here = 1e3 * float(np.median([run.elapsed for run in runs])) / (n_steps / length)
                n_rounds = TIMED.get(length, 64)
                there, moved = on_the_cluster(client, groups, length, n_rounds)
                share = 1000.0 / (n_rounds * length * CHAINS)
                shared = share * (moved.reports + moved.shared)
                # Draws of the short run on the cluster are kept with another thinning; those of a long one are these.
                draws = 1000 / THIN * REPLICAS * 2 * 8
                table.row(
                    groups, length, f"{100 * theta[0]:.2f}", f"{100 * theta[1]:.2f}", f"{100 * early[0]:.1f}",
                    f"{100 * early[1]:.1f}", f"{weight[0]:.4f}",
                    f"{weight[1]:.4f}", f"{shared:,.0f}", f"{share * moved.states:,.0f}",
                    f"{draws:,.0f}", f"{here:.3g}", f"{there:.3g}", plan.rounds * CHAINS,
                )  # fmt: skip
