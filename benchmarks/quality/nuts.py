"""NUTS of the peers' environment on a problem."""

import math
from typing import Any

import numpy as np

from benchmarks.peers.host import Peer, PeerError

from .problems import Case, heart
from .runs import Measured

NUTS = "NUTS"
SAME = 1e-8  # nats by which energies may differ, but for a constant


def data_of(name: str) -> dict[str, Any]:
    """What the peer needs to know of a problem besides its name."""
    if name != "linear regression":
        return {}
    data = heart()
    return {"features": data.features.tolist(), "labels": data.labels.tolist()}


def measured(case: Case, said: dict[str, Any]) -> Measured:
    """The error of what a peer gathered: counts in cells and beyond, or Σx, Σx² and n."""
    sums = np.array(said["sums"])
    if case.plane:
        return Measured(case.error_of_counts(sums[:-1], float(sums.sum())), said["gradients"], said["seconds"])
    mean = sums[: case.dim] / sums[-1]
    variance = sums[case.dim : -1] / sums[-1] - mean**2
    return Measured(case.error_of_moments(mean, np.sqrt(variance)), said["gradients"], said["seconds"])


def nuts_runs(
    name: str, case: Case, peer: Peer | None, budgets: list[int], seeds: int, which: str = "nuts"
) -> tuple[dict[int, list[Measured]], str]:
    """Runs by gradient evaluations asked for, and why there are none. The peer's energies must be ours.

    which: "nuts" of BlackJAX, or "nutpie".
    """
    if case.problem.domain is not None:
        return {}, "NUTS knows no walls"
    if case.problem.target.stochastic:
        return {}, "NUTS needs exact gradients"
    if peer is None:
        return {}, "no peers are installed"
    try:
        points = case.exact[:50]
        asked = peer.make("energies", name=name, points=points.tolist(), data=data_of(name))
        gap = float(np.ptp(np.array(asked.value) - case.problem.target.evaluate(points)[0]))
        if not gap < SAME or math.isnan(gap):
            return {}, f"the peer's energies are others, by {gap:.2g}"
        plan = [[budget, seed] for budget in budgets for seed in range(1, seeds + 1)]
        edges = [one.tolist() for one in case.edges] if case.plane else None
        run = peer.make(which, name=name, plan=plan, spread=case.spread, edges=edges, data=data_of(name))
        results: dict[int, list[Measured]] = {budget: [] for budget in budgets}
        for budget, _ in plan:
            run.seconds()
            results[budget].append(measured(case, run.value))
    except PeerError as error:
        return {}, str(error)
    return results, ""
