"""Stage jax: chain-steps per second on the device beside JAX's on the same device, for draws that have the right law.

JAX's chains begin at exact draws of the truth (of contour: at the origin, and learn) and must still have its moments
when they end; only then are they timed. Of three ways to draw random numbers the fastest is compared. Float64.
"""

import functools
import importlib.util
import os
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.identification.numpy_energies import EQUATIONS, window_table
from benchmarks.peers import draw_law
from benchmarks.runner.tables import Table, rate_cell, ratio_cells
from toolkit.problem.definition import as_problem

from .cases import PARTITION, STEP_SIZE, case_of
from .measure import THIN, Plan, rate, rounds_of, steps_for

Array = NDArray[np.float64]
CHAINS, TIMES = 2048, {"sgld": 2000, "r2sgld": 1000, "icsgld": 20_000, "lorenz": 2000}  # of the check
LOOKS, BETWEEN = 16, 100  # of these last steps, each chain gives so many draws, so many steps apart
BIAS = {"sgld": 0.06, "r2sgld": 0.06, "icsgld": 0.08, "lorenz": 0.02}  # share of a moment, for the step size
MOST_BYTES = 2**31  # of draws that JAX keeps


@functools.cache
def chain_of(name: str) -> Any:
    """The case as a chain in JAX, in float64."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    from benchmarks.peers import jax_samplers  # which asks JAX for float64

    if name == "sgld":
        return jax_samplers.sgld("cosine25", STEP_SIZE)
    if name == "r2sgld":
        sampler = case_of(name).sampler
        return jax_samplers.reflected_resgld("cosine25", list(sampler.step_sizes), list(sampler.temperatures))
    if name == "icsgld":
        bins = {"u_min": PARTITION.u_min, "width": PARTITION.width, "bins": PARTITION.n_bins}
        return jax_samplers.contour("cosine25", STEP_SIZE, replicas=5, rest=0.25, **bins)
    data, step_size = case_of("lorenz").problem.data, case_of("lorenz").sampler.step_sizes[0]
    features, known = EQUATIONS["lorenz"](data.values)
    table, q = window_table(features, data.velocities - known, 4096), features.shape[2]
    return jax_samplers.quadratic_windows(table[:, : q * q].reshape(-1, q, q), table[:, q * q :], step_size)


def statistics_of(name: str, points: Array) -> Array:
    """What is compared of points (…, dim): squares, and for cosine25 squared distances to the nearest mode."""
    if name == "lorenz":
        law = case_of(name).problem.posterior
        return np.square(np.linalg.solve(np.linalg.cholesky(law.covariance), (points - law.mean)[..., None])[..., 0])
    return np.concatenate([points**2, (points - np.round(points)) ** 2], axis=-1)


def exact_draws(name: str, n: int, seed: int) -> Array:
    """Independent draws (n, dim) of the truth."""
    problem = as_problem(case_of(name).problem)
    if name == "lorenz":
        law = case_of(name).problem.posterior
        return np.random.default_rng(seed).multivariate_normal(law.mean, law.covariance, n)
    assert problem.truth is not None
    return problem.truth.independent_draws(n, seed=seed)


def check(name: str, way: str, n_chains: int = CHAINS) -> float:
    """``draw_law.deviation`` of JAX's chains; right below 1."""
    import jax

    from benchmarks.peers.jax_loops import key_of, scanned

    chain, steps = chain_of(name), TIMES[name]
    start = exact_draws(name, n_chains * chain.replicas, 1).reshape(n_chains, chain.replicas, -1)
    if name == "icsgld":
        start = np.zeros_like(start)
    key = key_of(way, 3)
    states = scanned(chain, way, steps)(jax.vmap(chain.start)(start), key, 0)[0]
    looks, onwards = [], scanned(chain, way, BETWEEN)
    for look in range(LOOKS):
        states = onwards(states, jax.random.fold_in(key, look), steps + BETWEEN * look)[0]
        looks.append([np.asarray(values).swapaxes(0, 1) for values in jax.vmap(chain.draws)(states)])
    points, weights = (np.concatenate(values) for values in zip(*looks, strict=True))
    exact = statistics_of(name, exact_draws(name, 400_000, 7))
    return draw_law.deviation(statistics_of(name, points), weights, exact, BIAS[name])


def jax_rate(name: str, way: str, n_chains: int, n_steps: int, keeps: bool) -> Any:
    """A function that runs JAX's chains, compiled before, and returns chain-steps per second, draws brought home."""
    import jax

    from benchmarks.peers.jax_loops import key_of, scanned

    chain = chain_of(name)
    advance = scanned(chain, way, n_steps, THIN if keeps else 0)
    init = case_of(name).init
    places = np.broadcast_to(0.0 if init is None else init, (n_chains, chain.replicas, chain.dim))
    states, key = jax.vmap(chain.start)(places), key_of(way, 1)

    def timed() -> float:
        started = time.perf_counter()
        after, draws = advance(states, key, 0)
        jax.block_until_ready(after)
        if keeps:
            np.asarray(draws)
        return n_chains * n_steps * chain.replicas / (time.perf_counter() - started)

    timed()
    return timed


def jax_steps(name: str, way: str, n_chains: int, plan: Plan, keeps: bool) -> int:
    """Steps of a run of about ``plan.seconds``."""
    if plan.is_dry:
        return 2 * THIN
    chain = chain_of(name)
    rate_at_first = jax_rate(name, way, n_chains, 10 * THIN, keeps)()
    steps = rate_at_first * plan.seconds / (n_chains * chain.replicas)
    most = MOST_BYTES * THIN // (n_chains * chain.replicas * chain.dim * 8) if keeps else 2**20
    return max(1, int(min(steps, most)) // THIN) * THIN


def main(plan: Plan) -> None:
    """Print the table, where JAX is installed."""
    if importlib.util.find_spec("jax") is None:
        print("jax: it is not installed")
        return
    table = Table(
        plan.folder, "cuda_jax", "case", "chains", "kept", "beside JAX", "spread", "ours, 10⁶/s", "JAX, 10⁶/s",
        "JAX's way", "its ways at first, 10⁶/s", "its worst deviation, 1 being allowed",
    )  # fmt: skip
    for name in (name for name in TIMES if name in plan.names):
        if plan.is_late(name):
            continue
        way, rates, worst = fastest_way(name, plan)
        if way is None:
            table.row(name, *["–"] * 7, rates, f"{worst:.3g}: wrong, and so not timed")
            continue
        case = case_of(name)
        for n_chains in plan.sizes:
            for keeps in ("nothing", "draws"):
                if plan.is_late(f"{name}, {n_chains} chains, {keeps}"):
                    continue
                stores = keeps == "draws"
                ours = steps_for(case, "cuda", n_chains, plan, keeps)
                theirs = jax_rate(name, way, n_chains, jax_steps(name, way, n_chains, plan, stores), stores)
                timed = {"ours": lambda a=(n_chains, ours, keeps), c=case: rate(c, "cuda", *a), "theirs": theirs}
                seen = rounds_of(plan, **timed)
                cells = (rate_cell(each) for each in seen.values())
                table.row(name, n_chains, keeps, *ratio_cells(*seen.values()), *cells, way, rates, worst)


def fastest_way(name: str, plan: Plan) -> tuple[str | None, str, float]:
    """The fastest of JAX's ways whose draws are right; the rates of all that are, and the worst deviation of it."""
    from benchmarks.peers.jax_loops import WAYS

    n_chains = 3 if plan.is_dry else 100_000
    worst = {way: check(name, way) for way in WAYS}
    right = [way for way in WAYS if worst[way] < 1.0]
    if not right:
        return None, "–", min(worst.values())
    rates = {way: jax_rate(name, way, n_chains, 10 * THIN, False)() for way in right}
    fastest = max(right, key=lambda way: rates[way])
    return fastest, ", ".join(f"{way}: {rate_cell([rates[way]])}" for way in right), worst[fastest]
