"""NUTS of BlackJAX on the problems of `quality` without walls and noise, with its window adaptation, in float64.

Chains run one after the other, each until its share of the gradient evaluations is spent, warm-up included; a gradient
evaluation is a leapfrog step. Draws are not kept: they are counted in cells, or added to sums, as they come, and all
chains count alike.

Also nutpie's, with its own settings: 400 draws of warm-up for the diagonal metric, chains one after the other, its log
density and gradient by JAX through a Python function. A call from nutpie into that costs some 90 µs of processor time,
so seconds say little of it.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

from .jax_targets import log_density_of

jax.config.update("jax_enable_x64", True)

CHAINS, WARM_UP = 4, 1000  # WARM_UP: steps of the window adaptation
PILOT = 200  # draws of a run that shows how many leapfrogs a draw takes
MULLER_BROWN = ((-200.0, -1.0, 0.0, -10.0, 1.0, 0.0), (-100.0, -1.0, 0.0, -10.0, 0.0, 0.5),
                (-170.0, -6.5, 5.5, -6.5, -0.5, 1.5), (15.0, 0.7, 0.3, 0.7, -1.0, 1.0))  # fmt: skip


def five_spots(x: Any) -> Any:
    """Five Gaussians of variance 0.5."""
    means = jnp.array([[0.0, 0.0], [-5.0, -5.0], [-5.0, 5.0], [5.0, -5.0], [5.0, 5.0]])
    weights = jnp.array([0.2, 0.1, 0.2, 0.2, 0.3])
    return -logsumexp(-jnp.sum((x - means) ** 2, axis=1) + jnp.log(weights))


def muller_brown(x: Any) -> Any:
    """Three wells along a bent path."""
    energy = 0.0
    for height, a, b, c, x_centre, y_centre in MULLER_BROWN:
        dx, dy = x[0] - x_centre, x[1] - y_centre
        energy += 0.05 * height * jnp.exp(jnp.minimum(a * dx * dx + 2.0 * b * dx * dy + c * dy * dy, 300.0))
    return energy


def banana(x: Any) -> Any:
    """A normal law bent along a parabola."""
    return x[0] ** 2 / 200.0 + 0.5 * (x[1] + 0.03 * (x[0] ** 2 - 100.0)) ** 2


def funnel(x: Any) -> Any:
    """Neal's funnel, with scale 3."""
    return x[0] ** 2 / 18.0 + 0.5 * (x.size - 1) * x[0] + 0.5 * jnp.exp(-x[0]) * jnp.sum(x[1:] ** 2)


def correlated(x: Any) -> Any:
    """Gaussian with correlation 0.95 of neighbours."""
    return 0.5 * x[0] ** 2 + 0.5 * jnp.sum((x[1:] - 0.95 * x[:-1]) ** 2) / (1.0 - 0.95**2)


def badly_scaled(x: Any) -> Any:
    """Normal laws whose variances fall from 1 to 1e-4, evenly in logarithm."""
    return 0.5 * jnp.sum(x * x * jnp.logspace(0.0, 4.0, x.size))


def double_well(x: Any) -> Any:
    """Two wells in every coordinate."""
    return jnp.sum(4.0 * (x * x - 1.0) ** 2 + 0.5 * x)


def linear_regression(x: Any, features: Any, labels: Any) -> Any:
    """Noise 0.5, prior 1; from sufficient statistics."""
    precision = features.T @ features / 0.25 + jnp.eye(x.size)
    return 0.5 * x @ precision @ x - x @ (features.T @ labels) / 0.25


ENERGIES: dict[str, tuple[int, Callable[..., Any]]] = {
    **{
        name: (2, lambda x, log_density=log_density_of(name): -log_density(x))
        for name in ("cosine25", "gaussian_grid25")
    },
    "five_spots": (2, five_spots),
    "muller_brown": (2, muller_brown),
    "banana": (2, banana),
    "funnel, 10-D": (10, funnel),
    "correlated, 16-D": (16, correlated),
    "double well, 10-D": (10, double_well),
    "correlated, 100-D": (100, correlated),
    "badly scaled, 100-D": (100, badly_scaled),
    "linear regression": (14, linear_regression),
}


def energy_of(name: str, data: Any) -> tuple[int, Callable[[Any], Any]]:
    """Dimension and energy of a problem, with its data where it has some."""
    dim, function = ENERGIES[name]
    return dim, partial(function, **{key: jnp.asarray(value, jnp.float64) for key, value in data.items()})


def add_to_cells(edges: list[Any], counts: Any, x: Any) -> Any:
    """One more draw in its cell; in the last where it is in none."""
    cell, inside = 0, True
    for d, edge in enumerate(edges):
        place = jnp.searchsorted(edge, x[d], side="right") - 1
        inside &= (place >= 0) & (place < edge.size - 1)
        cell = cell * (edge.size - 1) + place
    return counts.at[jnp.where(inside, cell, counts.size - 1)].add(1.0)


def alike(sums: Any, draws: Any) -> Any:
    """Sums (chain, …) over chains that count alike: short trees give a badly adapted chain many draws per gradient."""
    some = draws > 0.0
    share = jnp.where(some, draws.sum() / jnp.maximum(some.sum(), 1) / jnp.where(some, draws, 1.0), 0.0)
    return share @ sums


def nuts(name: str, plan: list[list[int]], spread: float, edges: Any = None, data: Any = None) -> Callable[[], Any]:
    """Runs of (gradient evaluations, seed) as ``plan`` lists them, one a call; the first call compiles, for a warm-up.

    Each gives counts by cell of its draws (edges given) or Σx, Σx² and n, gradient evaluations and processor seconds.
    """
    dim, energy = energy_of(name, data or {})
    grid = [jnp.asarray(one) for one in edges or []]
    cells = 1
    for edge in grid:
        cells *= edge.size - 1

    def log_density(x: Any) -> Any:
        return -energy(x)

    adaptation = blackjax.window_adaptation(blackjax.nuts, log_density)

    def gather(sums: Any, x: Any) -> Any:
        return add_to_cells(grid, sums, x) if grid else sums + jnp.concatenate([x, x * x, jnp.ones(1)])

    @jax.jit
    def run(key: Any, budget: Any) -> Any:
        def chain(key: Any) -> Any:
            start, warm, walk = jax.random.split(key, 3)
            begin = 0.1 * spread * jax.random.normal(start, (dim,))
            (state, tuned), info = adaptation.run(warm, begin, WARM_UP)
            spent = info.info.num_integration_steps.sum()
            step = blackjax.nuts(log_density, **tuned).step

            def go(carry: Any) -> Any:
                state, sums, spent, key = carry
                key, own = jax.random.split(key)
                state, info = step(own, state)
                return state, gather(sums, state.position), spent + info.num_integration_steps, key

            nothing = jnp.zeros(cells + 1 if grid else 2 * dim + 1)
            _, sums, spent, _ = jax.lax.while_loop(lambda c: c[2] < budget, go, (state, nothing, spent, walk))
            return sums, spent

        sums, spent = jax.lax.map(chain, jax.random.split(key, CHAINS))
        return alike(sums, sums.sum(axis=1) if grid else sums[:, -1]), spent.sum()

    runs = iter([(0, 0), *plan])

    def call() -> Any:
        gradients, seed = next(runs)
        started = time.process_time()
        sums, spent = jax.block_until_ready(run(jax.random.key(seed), gradients // CHAINS))
        return {"sums": sums.tolist(), "gradients": int(spent), "seconds": time.process_time() - started}

    return call


def energies(name: str, points: Any, data: Any = None) -> Callable[[], Any]:
    """Energies at ``points``, to be compared with ours."""
    _, energy = energy_of(name, data or {})
    return lambda: jax.vmap(energy)(jnp.asarray(points)).tolist()


def model_of(name: str, spread: float, data: Any) -> Any:
    """nutpie's model of a problem, begun within 0.1 ``spread`` of the origin."""
    from nutpie.compiled_pyfunc import from_pyfunc

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
    import nutpie

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


CASES = {"nuts": nuts, "nutpie": nutpie_nuts, "energies": energies}
