"""Tuned samplers beside numbers of others: Pigeons' restarts on the coin flip, dynesty and tempering in a box."""

import statistics
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.peers.host import Peer, PeerError, opened
from benchmarks.runner.plan import Plan
from benchmarks.runner.tables import Table
from targets import classics, constrained, domains, mixtures
from toolkit import sample
from toolkit.diagnostics import barrier
from toolkit.tempering import ReplicaExchange

from .comparison import over, per_gradient, per_second
from .nuts import SAME, measured
from .problems import WALLS, Case
from .runs import Measured
from .tuned_problems import blind
from .tuned_worth import tuned_measured

BUDGET = 1_000_000
EVALUATIONS = 300_000  # of the tempering packages, which loop in Python
METHODS = {"dynesty": 2, "ptemcee": 3, "reddemcee": 3, "eryn": 3}  # seeds
CASES = {
    "egg_crate": Case((WALLS,), classics.egg_crate),
    "gaussian_shells": Case((WALLS,), classics.gaussian_shells),
    "dual_moon": Case((WALLS,), classics.dual_moon),
    "cosine25": Case((WALLS,), lambda: constrained(mixtures.cosine25(), domains.box([-6.0, -6.0], [6.0, 6.0]))),
}
COLUMNS = (
    "problem", "package", "× the package, per evaluation", "× the package, per second", "worth per 10³ evaluations",
    "of ours", "KL", "evaluations", "seconds", "runs",
)  # fmt: skip
COIN_COLUMNS = (
    "who", "× restarts per 1,024 scans, of Pigeons", "restarts per 1,024 scans of a ladder", "Λ", "rungs",
    "per 10⁶ evaluations", "evaluations with tuning", "ended with", "runs",
)  # fmt: skip
PIGEONS = {"restarts": 77.0, "barrier": 3.55, "rungs": 10}  # its paper's example: defaults, last round of 1,024 scans


def peer_measured(peer: Peer, name: str, case: Case, method: str, seeds: int) -> tuple[list[Measured], str]:
    """A package's runs, and why there are none."""
    try:
        points = case.exact[:50]
        asked = peer.make("energies", name=name, points=points.tolist())
        gap = float(np.ptp(np.array(asked.value) - case.problem.target.evaluate(points)[0]))
        if not gap < SAME:
            return [], f"the peer's energies are others, by {gap:.2g}"
        edges = [one.tolist() for one in case.edges]
        run = peer.make("tempered", name=name, method=method, edges=edges, evaluations=EVALUATIONS)
        found = [measured(case, run.value)] if method == "dynesty" else []  # the first run of the others is short
        while len(found) < seeds:
            run.seconds()
            found.append(measured(case, run.value))
    except PeerError as error:
        return [], str(error)
    return found, ""


def print_boxes(plan: Plan) -> None:
    """Print what draws in a box of the plane are worth, ours and others'."""
    print("\nIn a box: worth per evaluation of ours, tuning included, over that of other packages\n")
    table = Table(plan.folder, "quality_tuned_boxes", *COLUMNS)
    peer, absent = opened("numpy_runs")
    try:
        for name in ("dual_moon",) if plan.is_small else tuple(CASES):
            case = CASES[name]
            tuned_measured(case, 200_000, 0)  # compiles
            ours = [tuned_measured(case, BUDGET, seed)[0] for seed in range(11, 11 + 2 * plan.rounds)]
            rate, speed = per_gradient(case, ours), per_second(case, ours)
            for method, seeds in METHODS.items():
                few = 1 if plan.is_small else seeds
                theirs, why = peer_measured(peer, name, case, method, few) if peer is not None else ([], absent)
                if not theirs:
                    table.row(name, method, *["–"] * (len(COLUMNS) - 3), why)
                    continue
                other = per_gradient(case, theirs)
                table.row(
                    name, method, over(rate, other), over(speed, per_second(case, theirs)), f"{1e3 * other:.3g}",
                    f"{1e3 * rate:.3g}", f"{statistics.median(run.error for run in theirs):.3g}",
                    f"{statistics.median(run.gradients for run in theirs):,.0f}",
                    f"{statistics.median(run.seconds for run in theirs):.3g}", len(theirs),
                )  # fmt: skip
    finally:
        if peer is not None:
            peer.close()


def coin_rows(runs: list[Any]) -> list[str]:
    """Cells of runs on the coin flip."""
    tempered = [run for run in runs if isinstance(run.sampler.tempering, ReplicaExchange)]
    if not tempered:
        return ["–"] * (len(COIN_COLUMNS) - 2) + [str(len(runs))]

    def middle(of: Callable[[Any], float]) -> float:
        return statistics.median(map(of, tempered))

    scans = middle(lambda run: 1024.0 * run.round_trips.sum() / (run.n_chains * run.sampling_steps))
    each = middle(lambda run: 1e6 * run.round_trips.sum() / run.gradient_evaluations)
    rungs = middle(lambda run: float(run.sampler.n_replicas))
    total = middle(lambda run: float(run.tuning.gradients + run.gradient_evaluations))
    satisfied = sum(run.stopping.satisfied for run in runs)
    return [
        f"{scans / PIGEONS['restarts']:.3g}", f"{scans:.3g}",
        f"{middle(lambda run: float(barrier(run.swap_rates.mean(axis=0)))):.3g}", f"{rungs:g}", f"{each:,.0f}",
        f"{total:,.0f}", f"all asked for in {satisfied}", f"{len(tempered)} of {len(runs)} with tempering",
    ]  # fmt: skip


def print_coin(plan: Plan) -> None:
    """Print restarts on the coin flip."""
    print("\nCoin flip: 50,000 heads of 100,000 by two probabilities; round trips coldest → hottest → coldest\n")
    table = Table(plan.folder, "quality_tuned_coin", *COIN_COLUMNS)
    problem = blind(classics.coin_flip())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runs = [sample(problem, seed=seed, threads=1, progress=False) for seed in range(1, 1 + 2 * plan.rounds)]
    table.row("sample(problem, seed)", *coin_rows(runs))
    known = [f"{PIGEONS['restarts']:g}", f"{PIGEONS['barrier']:g}", str(PIGEONS["rungs"])]
    table.row("Pigeons, as printed", "1", *known, "–", "–", "1,024 scans", "1")


def print_anchors(plan: Plan) -> None:
    """Print both."""
    print_coin(plan)
    print_boxes(plan)
