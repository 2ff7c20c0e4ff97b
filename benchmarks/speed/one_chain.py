"""One chain: processor seconds for 10⁶ steps (--small: 12,800) of 1 to 16 chains, beside others; and block widths.

All are bound to one core; draws are kept in memory, or not. A step of one chain waits for the one before, so vectors
help only where there are lanes: in chains, replicas, and steps whose noise is drawn ahead. Peers run a tenth of the
steps, with more chains a fiftieth, ours then a twentieth, and seconds are multiplied. "Fused" is ours with
``Layout(fused=True)``. The peers are those of the table "engine", right draws alone. The second table is the rate by
lanes in a block (``Layout(lanes=…)``), relative to the default; the third has two replicas side by side on the lanes of
one block, beside the same in blocks of half that width, which is what a loop for each replica would cost. The floor is
one chain's target and move alone, each step waiting for the one before, as it does in every sampler.
"""

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.ceilings.langevin import drift_seconds
from benchmarks.peers.host import PeerError, PeerRun
from benchmarks.runner.plan import Plan
from benchmarks.runner.rounds import interleaved, one_core
from benchmarks.runner.tables import Table, ratio_cells
from toolkit import Layout
from toolkit._engine.state import USUAL_LANES

from .chain_cases import PEERS, SAMPLERS, TARGETS, PeerCase, our_seconds, scalar_seconds
from .peer_chains import PeerChains, Timed

NAMES = ("sgld", "sghmc", "csgld", "resgld × 2", "resgld × 5")
CHAINS = {("sgld", "cosine25"): (1, 2, 4, 8, 16)}
FEW = (1, 16)  # chains of the others
KEPT = ("sgld", "resgld × 5")  # on cosine25, draws are kept, too
WIDTHS = (8, 32, 128, 256, 512, 1024, 4096)
MOST_ROUNDS = 3
PACKAGES = ("JAX by hand", "BlackJAX")


def rows(is_small: bool) -> list[tuple[str, str, int, bool]]:
    """Sampler, target, chains, and whether draws are kept."""
    if is_small:
        return [("sgld", "cosine25", 1, False), ("sgld", "cosine25", 1, True), ("resgld × 5", "cosine25", 1, False)]
    named = [(n, target, chains) for n in NAMES for target in TARGETS for chains in CHAINS.get((n, target), FEW)]
    return [(*row, False) for row in named] + [(name, "cosine25", 1, True) for name in KEPT]


def main(plan: Plan) -> None:
    """Print the tables."""
    n_steps = 12_800 if plan.is_small else 1_000_000
    with one_core() as core:
        peers = PeerChains(core, plan.seconds, plan.is_small)
        try:
            latency_table(plan, peers, n_steps)
            floor_table(plan, peers, n_steps)
        finally:
            peers.close()
        width_table(plan)
        replica_table(plan)


def latency_table(plan: Plan, peers: PeerChains, n_steps: int) -> None:
    """Few chains for many steps."""
    table = Table(
        plan.folder, "one_chain", "sampler", "target", "chains", "draws", "× best peer", "× scalar loop",
        "× fused", "× best peer, fused", "× scalar loop, fused", "spread, peer", "spread, scalar", "spread, fused",
        "ours, s", "fused, s", "ns a replica-step", "the same, fused", "scalar loop, s", "JAX by hand, s",
        "BlackJAX, s", "remark",
    )  # fmt: skip
    rounds = min(plan.rounds, MOST_ROUNDS)
    for name, target, n_chains, keeps in rows(plan.is_small):
        calls = {
            "ours": ours(name, target, n_chains, n_steps, keeps, Layout()),
            "fused": ours(name, target, n_chains, n_steps, keeps, Layout(fused=True)),
        }
        if scalar := scalar_seconds(name, target):
            calls["scalar"] = scalar_call(scalar, n_chains, n_steps, keeps)
        remarks = []
        for peer in PEERS[name]:
            if peer.package in PACKAGES:
                try:
                    if peers.law(peer, target) >= 1.0:
                        remarks.append(f"{peer.package}: wrong draws")
                        continue
                    calls[peer.package] = peer_call(peers, peer, target, n_chains, n_steps, keeps)
                except PeerError as error:
                    remarks.append(f"{peer.package}: {error}")
        seen = interleaved(rounds, calls)
        middle = {key: sorted(values)[rounds // 2] for key, values in seen.items()}
        fastest = min((key for key in PACKAGES if key in middle), key=lambda key: middle[key], default=None)
        pairs = [
            (fastest, "ours"), ("scalar", "ours"), ("ours", "fused"), (fastest, "fused"), ("scalar", "fused"),
        ]  # fmt: skip
        compared = [ratio_cells(seen.get(str(other), []), seen[own]) for other, own in pairs]
        absolute = [f"{middle[key]:.3g}" if key in middle else "–" for key in ("scalar", *PACKAGES)]
        replica_steps = n_steps * n_chains * SAMPLERS[name].n_replicas
        table.row(
            name, target, n_chains, "kept" if keeps else "not", *(one for one, _ in compared),
            *(spread for _, spread in compared[:3]), *(f"{middle[own]:.3g}" for own in ("ours", "fused")),
            *(f"{1e9 * middle[own] / replica_steps:.0f}" for own in ("ours", "fused")), *absolute, "; ".join(remarks),
        )  # fmt: skip


def floor_table(plan: Plan, peers: PeerChains, n_steps: int) -> None:
    """SGLD of one chain, ours and the best peer's, beside the target and the move alone."""
    print("\nThe floor of one chain\n")
    table = Table(
        plan.folder, "one_chain_floor", "target", "ns a step: floor", "ours, fused", "JAX by hand",
        "floor × JAX", "ours × JAX",
    )  # fmt: skip
    rounds = min(plan.rounds, MOST_ROUNDS)
    for target in TARGETS:
        calls = {
            "floor": partial(drift_seconds, target, n_steps),
            "fused": ours("sgld", target, 1, n_steps, False, Layout(fused=True)),
        }
        with contextlib.suppress(PeerError):
            jax = next(peer for peer in PEERS["sgld"] if peer.package == "JAX by hand")
            calls["JAX"] = peer_call(peers, jax, target, 1, n_steps, False)
        seen = interleaved(rounds, calls)
        middle = {key: sorted(values)[rounds // 2] for key, values in seen.items()}
        nanoseconds = {key: f"{1e9 * seconds / n_steps:.3g}" for key, seconds in middle.items()}
        ratios = [ratio_cells(seen.get("JAX", []), seen[key])[0] for key in ("floor", "fused")]
        table.row(target, *(nanoseconds.get(key, "–") for key in ("floor", "fused", "JAX")), *ratios)


def ours(name: str, target: str, n_chains: int, n_steps: int, keeps: bool, layout: Layout) -> Callable[[], float]:
    """Our seconds for ``n_steps``, of many chains by a twentieth of them."""
    share = 1 if n_chains == 1 else 20
    our_seconds(target, SAMPLERS[name], n_chains, 64, keeps, layout)
    return lambda: share * our_seconds(target, SAMPLERS[name], n_chains, n_steps // share, keeps, layout)


def share_of(n_chains: int) -> int:
    """Peers run one in so many of the steps."""
    return 10 if n_chains == 1 else 50


def scalar_call(scalar: Callable[..., float], n_chains: int, n_steps: int, keeps: bool) -> Callable[[], float]:
    """The scalar loop's seconds for ``n_steps``."""
    share = share_of(n_chains)
    return lambda: share * scalar(n_chains, n_steps // share, keeps)


def peer_call(
    peers: PeerChains, peer: PeerCase, target: str, n_chains: int, n_steps: int, keeps: bool
) -> Callable[[], float]:
    """A peer's seconds for ``n_steps``. Raises PeerError."""
    fewer = n_steps // share_of(n_chains) // 64 * 64
    extra: dict[str, Any] = {**peers.generator(peer, n_chains), **({"keeps": True} if keeps else {})}
    run: PeerRun = peers.make(peer, target, n_chains, fewer, **extra)
    timed = Timed(run, fewer)
    return lambda: timed.seconds() * n_steps / fewer


def width_table(plan: Plan) -> None:
    """Rate by the width of a block."""
    print("\nLanes in a block\n")
    usual = USUAL_LANES
    widths = (64, usual) if plan.is_small else WIDTHS
    table = Table(
        plan.folder, "one_chain_widths", "sampler", "target", "chains", *(f"× with {width} lanes" for width in widths),
        "best width",
    )  # fmt: skip
    for name in ("sgld",) if plan.is_small else ("sgld", "resgld × 5"):
        for target in TARGETS:
            for n_chains in (64,) if plan.is_small else (64, 512, 4096):
                n_steps = max(64, int(plan.seconds * 1e7 / (n_chains * SAMPLERS[name].n_replicas)))
                calls = {width: width_call(name, target, n_chains, n_steps, width) for width in widths}
                seen = interleaved(min(plan.rounds, MOST_ROUNDS), {str(one): call for one, call in calls.items()})
                cells = {width: ratio_cells(seen[str(usual)], seen[str(width)])[0] for width in widths}
                table.row(name, target, n_chains, *cells.values(), max(cells, key=lambda width: float(cells[width])))


def width_call(name: str, target: str, n_chains: int, n_steps: int, width: int) -> Callable[[], float]:
    """Seconds with blocks of ``width`` lanes."""
    return lambda: our_seconds(target, SAMPLERS[name], n_chains, n_steps, layout=Layout(lanes=width, fused=False))


def replica_table(plan: Plan) -> None:
    """Two replicas of few chains on the lanes of one block, and in blocks of half that width."""
    print("\nTwo replicas in one block\n")
    table = Table(plan.folder, "one_chain_replicas", "chains", "× a loop for each replica", "spread")
    for n_chains in (10,) if plan.is_small else (5, 10, 20, 50, 100):
        n_steps = max(64, int(plan.seconds * 5e6 / n_chains))
        lanes = {"one loop": 2 * n_chains, "two loops": n_chains}
        calls = {one: width_call("resgld × 2", "cosine25", n_chains, n_steps, width) for one, width in lanes.items()}
        calls["one loop"]()
        seen = interleaved(min(plan.rounds, MOST_ROUNDS), calls)
        table.row(n_chains, *ratio_cells(seen["two loops"], seen["one loop"]))
