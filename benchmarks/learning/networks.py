"""Networks: SGLD on the weights of a network with 100 and 100 hidden units, beside PyTorch's and JAX's own loops.

Gradients per second of 1, 4 and 16 chains with minibatches of 512 of 4,096 data each, all on one core, interleaved; the
whole step, with drawing of data and noise. Ours with products in float64 and in float32, beside peers in the same. The
share of products is the time that they alone take, in pieces as ours, of a gradient's.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from benchmarks.learning.network_peers import STEP_SIZE, data
from benchmarks.peers.host import PeerError, opened
from benchmarks.runner.plan import Plan
from benchmarks.runner.rounds import interleaved, one_core
from benchmarks.runner.tables import Table, ratio_cells
from targets import posteriors
from targets.posteriors.neural_network import TILE
from toolkit import sample, samplers

N_DATA, HIDDEN, BATCH = 4096, 100, 512
ROWS = tuple((inputs, chains, real) for inputs in (22, 117) for real in ("float64", "float32") for chains in (1, 4, 16))
PEERS = ("JAX", "PyTorch, loop", "PyTorch, vmap")


@njit(nogil=True)
def multiply(a: Any, b: Any, c: Any, n: int) -> None:
    """n times the same product."""
    for _ in range(n):
        np.dot(a, b, c)


def product_seconds(inputs: int, real: str) -> float:
    """The time of all products of one gradient, each by itself in the cache, at their best of 9."""
    rng, total, n = np.random.default_rng(0), 0.0, -(-BATCH // TILE)

    def matrix(*shape: int) -> Any:
        return rng.standard_normal(shape).astype(real)

    for i, (n_in, n_out) in enumerate(((inputs, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, 2))):
        pairs = [(matrix(TILE, n_in), matrix(n_in, n_out)), (matrix(TILE, n_in).T, matrix(TILE, n_out))]
        if i > 0:
            pairs.append((matrix(TILE, n_out), matrix(n_in, n_out).T))
        for a, b in pairs:
            out = np.empty((a.shape[0], b.shape[1]), real)
            multiply(a, b, out, 1)
            best = np.inf
            for _ in range(9):
                started = time.perf_counter()
                multiply(a, b, out, n)
                best = min(best, time.perf_counter() - started)
            total += best
    return total


def ours(inputs: int, chains: int, real: str, n_steps: int) -> Callable[[], float]:
    """Seconds of sampling for each gradient; starts are given, so that none are looked for."""
    features, responses = data(N_DATA, inputs)
    target = posteriors.network(
        features, responses, hidden=(HIDDEN, HIDDEN), likelihood="normal", noise=0.5**0.5, prior=10.0,
        batch_size=BATCH, precision=real,
    )  # fmt: skip
    start = np.random.default_rng(1).uniform(-0.05, 0.05, target.dim)

    def run() -> float:
        made = sample(
            target, samplers.sgld(STEP_SIZE), n_steps=n_steps, thin=n_steps, n_chains=chains, seed=1, threads=1,
            init=start,
        )  # fmt: skip
        return made.elapsed / (n_steps * chains)

    run()
    return run


def main(plan: Plan) -> None:
    """Print the table."""
    table = Table(
        plan.folder, "networks", "inputs", "products in", "chains", "ours, gradients/s", "× best peer", "spread",
        "share of products, %", *(f"{peer}, gradients/s" for peer in PEERS), "remark",
    )  # fmt: skip
    with one_core() as core:
        peer, remark = opened("learning.network_peers", core)
        try:
            for inputs, chains, real in ROWS[:2] if plan.is_small else ROWS:
                n_steps = 4 if plan.is_small else max(4, 320 // chains)
                row(table, plan, (inputs, chains, real), n_steps, peer, remark)
        finally:
            if peer is not None:
                peer.close()


def row(table: Table, plan: Plan, case: tuple[int, int, str], n_steps: int, peer: Any, remark: str) -> None:
    """Measure and print one row."""
    inputs, chains, real = case
    calls: dict[str, Callable[[], float]] = {"ours": ours(inputs, chains, real, n_steps)}
    remarks = [remark] if remark else []
    for name in PEERS if peer is not None else ():
        try:
            run = peer.make(
                name, inputs=inputs, hidden=HIDDEN, n_data=N_DATA, batch=BATCH, chains=chains, n_steps=n_steps,
                single=real == "float32",
            )  # fmt: skip
            calls[name] = lambda run=run: run.seconds() / (n_steps * chains)
        except PeerError as error:
            remarks.append(f"{name}: {error}")
    seen = interleaved(plan.rounds, calls)
    middle = {name: float(np.median(values)) for name, values in seen.items()}
    fastest = min((name for name in PEERS if name in middle), key=lambda name: middle[name], default="")
    ratio, spread = ratio_cells(seen.get(fastest, []), seen["ours"])
    share = 100.0 * product_seconds(inputs, real) / middle["ours"]
    rates = [f"{1.0 / middle[name]:.0f}" if name in middle else "–" for name in PEERS]
    table.row(inputs, real, chains, f"{1.0 / middle['ours']:.0f}", ratio, spread, f"{share:.0f}", *rates,
              "; ".join(remarks))  # fmt: skip
