"""Stage jax: chain-steps per second on the device beside JAX's on the same device, for draws that have the right law.

JAX's chains begin at exact draws of the truth (of contour: at the origin, and learn) and must still have its moments
when they end; only then are they timed. Of three ways to draw random numbers the fastest is the rival.
"""

import functools
import importlib.util
import os
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.tables import Table, rate_cell, ratio_cells
from toolkit.problem.definition import as_problem

from .cases import case_of
from .measure import THIN, Plan, rate, rounds_of, steps_for

Array = NDArray[np.float64]
CHAINS, TIMES = 2048, {"sgld": 2000, "r2sgld": 1000, "icsgld": 20_000, "lorenz": 2000}  # of the check
LOOKS, BETWEEN = 16, 100  # of these last steps, each chain gives so many draws, so many steps apart
ALLOWED = 5.0  # standard errors, and beside these a bias by the step size, 4 % at cosine25's modes
BIAS = {"sgld": 0.06, "r2sgld": 0.06, "icsgld": 0.08, "lorenz": 0.02}  # of each moment
MOST_BYTES = 2**31  # of draws that JAX keeps


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


def deviations(name: str, points: Array, weights: Array) -> Array:
    """(estimate − truth) / (allowed deviation) of each statistic, of points (chain, draw, dim) and weights."""
    values = statistics_of(name, points)
    sums, totals = (weights[..., None] * values).sum(1), weights.sum(1)[:, None]
    estimate = sums.sum(0) / totals.sum(0)
    error = np.std(sums - estimate * totals, axis=0) / totals.mean() / np.sqrt(len(points))
    truth = statistics_of(name, exact_draws(name, 400_000, 7))
    allowed = ALLOWED * np.hypot(error, truth.std(0) / np.sqrt(len(truth))) + BIAS[name] * truth.mean(0)
    return np.asarray((estimate - truth.mean(0)) / allowed)


@functools.cache
def rival_of(name: str) -> Any:
    """The case in JAX, in float64."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax

    jax.config.update("jax_enable_x64", True)
    from .jax_chains import RIVALS

    return RIVALS[name]()


def check(name: str, way: str, n_chains: int = CHAINS) -> float:
    """The largest of ``deviations`` of JAX's chains; right below 1."""
    import jax

    from .jax_chains import key_of, scanned

    rival, steps = rival_of(name), TIMES[name]
    replicas = rival.normals[0]
    start = exact_draws(name, n_chains * replicas, 1).reshape(n_chains, replicas, -1)
    if name == "icsgld":
        start = np.zeros_like(start)
    key = key_of(way, 3)
    states = scanned(rival, way, steps)(rival.start(start), key, 0)[0]
    looks, onwards = [], scanned(rival, way, BETWEEN)
    for look in range(LOOKS):
        states = onwards(states, jax.random.fold_in(key, look), steps + BETWEEN * look)[0]
        looks.append([np.asarray(values) for values in jax.vmap(rival.draws)(states)])
    points, weights = (np.concatenate(values, axis=1) for values in zip(*looks, strict=True))
    return float(np.abs(deviations(name, points, weights)).max())


def rival_rate(name: str, way: str, n_chains: int, n_steps: int, keeps: bool) -> Any:
    """A function that runs JAX's chains, compiled before, and returns chain-steps per second, draws brought home."""
    import jax

    from .jax_chains import key_of, scanned

    rival = rival_of(name)
    advance = scanned(rival, way, n_steps, THIN if keeps else 0)
    shape = (n_chains, *rival.normals)
    init = case_of(name).init
    states = rival.start(np.broadcast_to(0.0 if init is None else init, shape))
    key = key_of(way, 1)

    def timed() -> float:
        started = time.perf_counter()
        after, draws = advance(states, key, 0)
        jax.block_until_ready(after)
        if keeps:
            np.asarray(draws)
        return n_chains * n_steps * rival.normals[0] / (time.perf_counter() - started)

    timed()
    return timed


def rival_steps(name: str, way: str, n_chains: int, plan: Plan, keeps: bool) -> int:
    """Steps of a run of about ``plan.seconds``."""
    if plan.is_dry:
        return 2 * THIN
    rival = rival_of(name)
    rate_at_first = rival_rate(name, way, n_chains, 10 * THIN, keeps)()
    steps = rate_at_first * plan.seconds / (n_chains * rival.normals[0])
    most = MOST_BYTES * THIN // (n_chains * int(np.prod(rival.normals)) * 8) if keeps else 2**20
    return max(1, int(min(steps, most)) // THIN) * THIN


def main(plan: Plan) -> None:
    """Print the table, where JAX is installed."""
    if importlib.util.find_spec("jax") is None:
        print("jax: it is not installed")
        return
    from .jax_chains import RIVALS

    table = Table(
        plan.folder, "jax", "case", "chains", "kept", "beside JAX", "spread", "ours, 10⁶/s", "JAX, 10⁶/s", "JAX's way",
        "its ways at first, 10⁶/s", "its worst deviation, 1 being allowed",
    )  # fmt: skip
    for name in (name for name in RIVALS if name in plan.names):
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
                theirs = rival_rate(name, way, n_chains, rival_steps(name, way, n_chains, plan, stores), stores)
                timed = {"ours": lambda a=(n_chains, ours, keeps), c=case: rate(c, "cuda", *a), "theirs": theirs}
                seen = rounds_of(plan, **timed)
                cells = (rate_cell(each) for each in seen.values())
                table.row(name, n_chains, keeps, *ratio_cells(*seen.values()), *cells, way, rates, worst)


def fastest_way(name: str, plan: Plan) -> tuple[str | None, str, float]:
    """The fastest of JAX's ways whose draws are right; the rates of all that are, and the worst deviation of it."""
    from .jax_chains import WAYS

    n_chains = 3 if plan.is_dry else 100_000
    worst = {way: check(name, way) for way in WAYS}
    right = [way for way in WAYS if worst[way] < 1.0]
    if not right:
        return None, "–", min(worst.values())
    rates = {way: rival_rate(name, way, n_chains, 10 * THIN, False)() for way in right}
    fastest = max(right, key=lambda way: rates[way])
    return fastest, ", ".join(f"{way}: {rate_cell([rates[way]])}" for way in right), worst[fastest]
