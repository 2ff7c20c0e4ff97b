"""nutpie's NUTS on the problems of ``nuts_runs``, its log density and gradient by JAX through a Python function.

With nutpie's own settings: 400 draws of warm-up for the diagonal metric, 4 chains one after the other. A gradient
evaluation is a leapfrog step. A call from nutpie into Python and JAX costs some 90 µs of processor time, so seconds say
little of it.
"""

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import nutpie
from nutpie.compiled_pyfunc import from_pyfunc

from .nuts_runs import CHAINS, energies, energy_of

PILOT = 200  # draws of a run that shows how many leapfrogs a draw takes


def model_of(name: str, spread: float, data: Any) -> Any:
    """nutpie's model of a problem, begun within 0.1 ``spread`` of the origin."""
    dim, energy = energy_of(name, data or {})
    both = jax.jit(jax.value_and_grad(lambda x: -energy(x)))

    def make_logp() -> Callable[[Any], Any]:
        def logp(x: Any) -> Any:
            value, gradient = both(jnp.asarray(x))
            return float(value), np.asarray(gradient)

        return logp

    def make_expand(*_: Any) -> Callable[[Any], Any]:
        return lambda x: {"x": np.asarray(x)}

    def begin(seed: int) -> Any:
        return 0.1 * spread * np.random.default_rng(seed).standard_normal(dim)

    return from_pyfunc(
        dim, make_logp, make_expand, [np.dtype("float64")], [(dim,)], ["x"], make_initial_point_fn=begin
    )  # fmt: skip


def nutpie_nuts(
    name: str, plan: list[list[int]], spread: float, edges: Any = None, data: Any = None
) -> Callable[[], Any]:
    """Runs of about (gradient evaluations, seed) as ``plan`` lists them, one a call; the first call is for a pilot."""
    model = model_of(name, spread, data)
    grid = [np.asarray(one) for one in edges or []]
    per_draw = [0.0]
    runs = iter([(0, 0), *plan])

    def drawn(draws: int, seed: int) -> Any:
        return nutpie.sample(model, draws=draws, chains=CHAINS, cores=1, seed=seed, progress_bar=False)

    def call() -> Any:
        gradients, seed = next(runs)
        started = time.process_time()
        n_draws = PILOT if not gradients else max(PILOT, int(gradients / CHAINS / per_draw[0]) - 400)
        trace = drawn(n_draws, seed)
        steps = float(trace.sample_stats.n_steps.sum())
        per_draw[0] = per_draw[0] or steps / CHAINS / n_draws
        x = np.asarray(trace.posterior.x).reshape(-1, trace.posterior.x.shape[-1])
        spent = steps + float(trace.warmup_sample_stats.n_steps.sum())
        if grid:
            counts = np.histogramdd(x[:, : len(grid)], bins=grid)[0].ravel()
            sums = [*counts.tolist(), float(len(x) - counts.sum())]
        else:
            sums = [*x.sum(axis=0).tolist(), *(x * x).sum(axis=0).tolist(), float(len(x))]
        return {"sums": sums, "gradients": int(spent), "seconds": time.process_time() - started}

    return call


CASES = {"nuts": nutpie_nuts, "energies": energies}
