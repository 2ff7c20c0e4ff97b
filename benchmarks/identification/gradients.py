"""Gradients per second of the three likelihoods on one core, beside NumPy, SciPy, JAX and diffrax.

A gradient is a step of SGLD, random numbers and all, of every chain. "All data": least squares, and the weak form, are
kept as normal equations, by us and by all others. "Windows": 4,096 of the data, neighbours in a random order, whose
normal equations are differences of running sums (ours) or tabulated (others); "independent": drawn with replacement.
Trajectories: 200 steps of order 5 (Dormand & Prince), parameters and initial state free; SciPy has forward
sensitivities (LSODA, tolerance 1e-9), JAX a scan of the same steps, diffrax its ``Dopri5`` with constant steps, both
by forward derivatives, which are faster than backward ones here. Before anything is timed all must give our gradient of
all data to 1e-6 of its largest entry, and 500 or more of JAX's chains must spread from a quadratic's minimum as SGLD's
do; a peer that fails has no cells, and the remark says so.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.peers.host import Peer, PeerError, opened
from benchmarks.runner.plan import Plan
from benchmarks.runner.rounds import interleaved, one_core, steps_for, wall
from benchmarks.runner.tables import Table, ratio_cells
from toolkit import sample, samplers

from . import numpy_energies as by_numpy
from .agreement import Checked, check_squares, checked, plain
from .cases import cases

Rate = Callable[[], float]

MOST_ROUNDS = 3
PEERS = ("NumPy", "JAX", "diffrax")


class Rates:
    """Runs of one case with some chains, each returning gradients per second."""

    def __init__(self, plan: Plan, peer: Peer | None) -> None:
        self.plan, self.peer = plan, peer
        self._made: dict[tuple[Any, ...], Rate] = {}  # of peers, for cases that differ in what is ours alone

    def ours(self, found: Checked, chains: int) -> Rate:
        """Of ``sample``."""
        case, sampler = found.case, samplers.sgld(found.step_size)
        fixed = {"n_chains": chains, "init": case.problem.prepared.start, "seed": 1, "threads": 1, "progress": False}

        def run(n: int) -> float:
            return wall(lambda: sample(case.problem, sampler, n_steps=n, thin=n, **fixed))

        run(1)
        n_steps = steps_for(run, 2.0 * self.plan.seconds, 10**8)  # long beside what a run takes to begin
        return lambda: n_steps * chains / run(n_steps)

    def numpy(self, found: Checked, chains: int) -> Rate:
        """Of NumPy; of SciPy's trajectories with one chain, as it has one after another."""
        chains = 1 if found.case.likelihood == "trajectory" else chains
        kind, numbers = found.case.numpy
        start = np.tile(found.case.problem.prepared.start, (chains, 1))
        loop = by_numpy.sgld(by_numpy.ENERGIES[kind](**numbers)[0], start, found.step_size)

        def run(n: int) -> float:
            return wall(lambda: loop(n))

        n_steps = steps_for(run, self.plan.seconds, 10**7, first=1)
        return lambda: n_steps * chains / run(n_steps)

    def of_peer(self, name: str, found: Checked, chains: int) -> Rate:
        """Of the fastest of a peer's ways. Raises PeerError."""
        case = found.case
        key = (name, case.likelihood, case.system.partition(",")[0], case.data, chains)
        if key not in self._made:
            start = np.tile(case.problem.prepared.start, (chains, 1)).tolist()
            rates = [
                peer_rate(self.peer, found, energy, start, way, self.plan.seconds)
                for energy in case.peers[name]
                for way in case.generators
            ]
            self._made[key] = max(rates, key=lambda rate: rate())
        return self._made[key]


def peer_rate(
    peer: Any, found: Checked, energy: tuple[str, dict[str, Any]], start: list[Any], way: str, seconds: float
) -> Rate:
    """Of one way of a peer. Raises PeerError, also where its draws are wrong."""
    numbers = {"numbers": plain(energy[1]), "start": start, "step_size": found.step_size}
    run = peer.make("sgld", energy=energy[0], way=way, seconds=seconds, **numbers)
    check_squares(found.case, found.step_size, len(start), run.value)

    def rate() -> float:
        took = run.seconds()
        return float(run.value["steps"] * len(start) / took)

    return rate


def row_of(rates: Rates, found: Checked, chains: int) -> tuple[Any, ...]:
    """A row of the table."""
    timed, remarks = {"ours": rates.ours(found, chains)}, list(found.remarks)
    if "NumPy" in found.allowed:
        timed["NumPy"] = rates.numpy(found, chains)
    for name in found.allowed:
        try:
            if name in found.case.peers:
                timed[name] = rates.of_peer(name, found, chains)
        except PeerError as error:
            remarks.append(f"{name}: {error}")
    seen = interleaved(min(rates.plan.rounds, MOST_ROUNDS), timed)
    pairs = [ratio_cells(seen["ours"], seen[name]) if name in seen else ("–", "–") for name in PEERS]
    absolute = [f"{np.median(seen[name]) / 1e3:.4g}" if name in seen else "–" for name in ("ours", *PEERS)]
    case = found.case
    cells = [case.likelihood, case.system, case.data, chains, *(p[0] for p in pairs), *(p[1] for p in pairs)]
    return (*cells, *absolute, f"{found.largest:.0e}", "; ".join(remarks))


def main(plan: Plan) -> None:
    """Print the table."""
    columns = [f"{name}, 10³/s" for name in ("ours", *PEERS)]
    spreads = [f"spread of × {name}" for name in PEERS]
    table = Table(
        plan.folder, "identification", "likelihood", "system", "data", "chains", *(f"× {name}" for name in PEERS),
        *spreads, *columns, "largest difference of gradients", "remark",
    )  # fmt: skip
    with one_core() as core:
        peer, absent = opened("identification_runs", core)
        rates = Rates(plan, peer)
        for case in cases(("lorenz",) if plan.is_small else ("lorenz", "lotka_volterra")):
            found = checked(case, peer)
            for chains in (64,) if plan.is_small else case.chains:
                table.row(*row_of(rates, found, chains))
        if peer:
            peer.close()
        if absent:
            print(f"\n{absent}")
