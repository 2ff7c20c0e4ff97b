"""Engine: replica-steps per second on one core, every constructor, beside peers, a scalar loop and a ceiling.

A replica-step is one step of one replica of one chain (of MALA and HMC a whole transition), in float64, draws not kept
but the last. Seconds are of processor time on one core, to which all are bound; rounds are interleaved. Peers are
BlackJAX, loops written by hand in JAX, and TensorFlow Probability's replica exchange, with the same formulas, step
sizes and precision. Those count whose draws have the right moments (of squares, and of squared distances to the nearest
mode), and the fastest of these is the best peer. The scalar loop is plain Numba, chain by chain. The ceiling is a
kernel fused by hand for that one case. Where no peer has a sampler there is no ratio; NumPyro has none of them.
"Fused" is ours with ``Layout(fused=True)``, compiled for the case as JAX's programs are; with 1 and 64 chains, as each
takes some 10 s to compile where it is not on disk yet.
"""

import statistics
from collections.abc import Callable, Sequence

from benchmarks.ceilings import CEILINGS
from benchmarks.peers.host import Peer, PeerError
from benchmarks.runner.plan import Plan
from benchmarks.runner.rounds import interleaved, one_core, processor_seconds, steps_for
from benchmarks.runner.tables import Table, rate_cell, ratio_cells
from toolkit import Layout, Sampler

from .chain_cases import SAMPLERS, TARGETS, our_seconds, scalar_seconds
from .peer_chains import Best, PeerChains, Timed

CHAINS = (1, 64, 1000, 10_000)
FUSED_CHAINS = (1, 64)
MOST_LANES, MOST_ROUNDS = 50_000, 3
SMALL = ("sgld", "csgld", "resgld × 2")
UNIT, MOST_STEPS = 60, 10_000_000  # 30 cycles of two steps, the last of which is kept
COMPARED = {  # ratio: of which rates
    "× best peer": ("ours", "peer"),
    "× scalar loop": ("ours", "scalar"),
    "× ceiling": ("ours", "ceiling"),
    "× fused": ("fused", "ours"),
    "× best peer, fused": ("fused", "peer"),
    "× ceiling, fused": ("fused", "ceiling"),
}
AIMS = (  # (column, number of chains fits, ratio that is the aim)
    ("× best peer", lambda chains: chains >= 64, 10.0),
    ("× best peer", lambda chains: chains == 1, 3.0),
    ("× ceiling", lambda chains: chains == 64, 0.75),
    ("× best peer, fused", lambda chains: chains == 64, 10.0),
    ("× best peer, fused", lambda chains: chains == 1, 3.0),
    ("× ceiling, fused", lambda chains: chains == 64, 0.75),
)


def timed(call: Callable[[int], float], seconds: float, work: int) -> Callable[[], float]:
    """Rate of a run of about ``seconds``; call: (steps) → seconds, work: replica-steps in a step."""
    call(UNIT)  # compiles
    n_steps = steps_for(call, seconds, MOST_STEPS, UNIT, UNIT)
    return lambda: work * n_steps / call(n_steps)


def our_rate(target: str, sampler: Sampler, n_chains: int, seconds: float, fused: bool = False) -> Callable[[], float]:
    """Ours."""
    layout = Layout(fused=fused)
    work = n_chains * sampler.n_replicas
    return timed(lambda n: our_seconds(target, sampler, n_chains, n, layout=layout), seconds, work)


def rates(
    plan: Plan, peers: PeerChains, name: str, sampler: Sampler, target: str, n_chains: int
) -> tuple[dict[str, list[float]], Best | str]:
    """Rates of a row's rounds, and its best peer."""
    seconds, work = plan.seconds / 3.0, n_chains * sampler.n_replicas
    ours = 4.0 if work >= 10_000 else 2.0  # setting up so many chains takes some 20 ms
    calls = {"ours": our_rate(target, sampler, n_chains, ours * seconds)}
    if n_chains in FUSED_CHAINS:
        calls["fused"] = our_rate(target, sampler, n_chains, ours * seconds, fused=True)
    best = peers.best(name, target, n_chains)
    if isinstance(best, Best):
        calls["peer"] = lambda: work * best.timed.n_steps / best.timed.seconds()
    if scalar := scalar_seconds(name, target):
        few = min(n_chains, 64)
        calls["scalar"] = timed(lambda n: scalar(few, n), 0.6 * seconds, few * sampler.n_replicas)
    if by_hand := CEILINGS.get((name, target)):
        calls["ceiling"] = timed(lambda n: processor_seconds(lambda: by_hand(n_chains, n)), seconds, work)
    return interleaved(min(plan.rounds, MOST_ROUNDS), calls), best


def main(plan: Plan) -> None:
    """Print the tables."""
    with one_core() as core:
        peers = PeerChains(core, plan.seconds / 3.0, plan.is_small)
        try:
            sampler_table(plan, peers)
            ensemble_table(plan, core)
        finally:
            peers.close()


def sampler_table(plan: Plan, peers: PeerChains) -> None:
    """Every sampler on both targets."""
    table = Table(
        plan.folder, "engine", "sampler", "target", "chains", *COMPARED, "spread, peer", "spread, scalar",
        "spread, ceiling", "spread, fused", "ours, 10⁶/s", "fused, 10⁶/s", "best peer, 10⁶/s", "scalar loop, 10⁶/s",
        "ceiling, 10⁶/s", "best peer", "remark",
    )  # fmt: skip
    ratios: list[tuple[int, dict[str, str]]] = []
    for name, sampler in SAMPLERS.items():
        for target in TARGETS:
            for n_chains in CHAINS:
                small = name in SMALL and n_chains == 64 and target == "cosine25"
                if n_chains * sampler.n_replicas > MOST_LANES or (plan.is_small and not small):
                    continue
                seen, best = rates(plan, peers, name, sampler, target, n_chains)
                cells = [ratio_cells(seen.get(one, []), seen.get(other, [])) for one, other in COMPARED.values()]
                medians, spreads = zip(*cells, strict=True)
                absolute = [rate_cell(seen.get(key, [])) for key in ("ours", "fused", "peer", "scalar", "ceiling")]
                words = (best.name, told(best)) if isinstance(best, Best) else ("–", best)
                table.row(name, target, n_chains, *medians, *spreads[:4], *absolute, *words)
                ratios.append((n_chains, dict(zip(COMPARED, medians, strict=True))))
    print("\nAims:\n")
    for column, fits, least in AIMS:
        values = [float(row[column]) for chains, row in ratios if fits(chains) and row[column] != "–"]
        print(aim(column, least, values, "1 chain" if fits(1) else "64 chains" if not fits(1000) else "≥ 64 chains"))


def told(best: Best) -> str:
    """What was seen of all peers at first, and what is wrong with those that are out."""
    return "; ".join(part for part in (f"at first, 10⁶/s: {best.seen}", best.remark) if part)


def aim(column: str, least: float, values: Sequence[float], chains: str) -> str:
    """A line on how many rows reach an aim."""
    if not values:
        return f"- {column} ≥ {least:g}, {chains}: no rows"
    reached = sum(value >= least for value in values)
    ends = f"{min(values):.3g} at least, {statistics.median(values):.3g} in the middle"
    return f"- {column} ≥ {least:g}, {chains}: {reached} of {len(values)} rows; {ends}"


def ensemble_table(plan: Plan, core: int) -> None:
    """emcee beside SGLD."""
    print("\nemcee's ensemble, walker-steps beside SGLD's chain-steps: without gradients, and mixing otherwise\n")
    table = Table(
        plan.folder, "engine_emcee", "target", "chains or walkers", "× emcee", "spread", "ours, 10⁶/s", "emcee, 10⁶/s",
        "remark",
    )  # fmt: skip
    for target in TARGETS:
        for n_chains in CHAINS[1 : 2 if plan.is_small else 3]:
            ours = our_rate(target, SAMPLERS["sgld"], n_chains, plan.seconds / 2.0)
            try:
                peer = Peer("numpy_runs", core)
                emcee = walker_rate(peer, target, n_chains, max(4, int(plan.seconds * 5e5 / n_chains)))
            except PeerError as error:
                table.row(target, n_chains, "–", "–", rate_cell([ours()]), "–", str(error))
                continue
            seen = interleaved(min(plan.rounds, MOST_ROUNDS), {"ours": ours, "emcee": emcee})
            peer.close()
            table.row(target, n_chains, *ratio_cells(*seen.values()), *(rate_cell(one) for one in seen.values()), "")


def walker_rate(peer: Peer, target: str, n_walkers: int, n_steps: int) -> Callable[[], float]:
    """Walker-steps per second of emcee. Raises PeerError."""
    timed_run = Timed(peer.make("stretch", target=target, n_chains=n_walkers, n_steps=n_steps), n_steps)
    return lambda: n_walkers * n_steps / timed_run.seconds()
