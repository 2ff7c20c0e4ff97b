"""SGLD on energies of dynamical systems in JAX, all chains at once; trajectories by a scan and by diffrax.

Cases: ``sgld`` runs as many steps as take ``seconds`` and returns their number, and how far the
chains went; ``gradient`` returns the gradient of all data at given points.
"""

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

jax.config.update("jax_enable_x64", True)

NOISE_BUFFER = 64  # steps whose normals are drawn at once, for few chains

Slope = Callable[[Any, Any], tuple[Any, ...]]

STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
)
WEIGHTS = (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84)  # Dormand & Prince (1980)


class Energy(NamedTuple):
    """gradient: (points (chain, q), key) → (chain, q), of a minibatch where ``draws``; exact: (points), of all data."""

    gradient: Callable[[Any, Any], Any]
    exact: Callable[[Any], Any]
    draws: bool


def without_draws(exact: Callable[[Any], Any]) -> Energy:
    """An energy of all data."""
    return Energy(lambda x, key: exact(x), exact, draws=False)


def quadratic(precision: Any, pull: Any) -> Energy:
    """precision · x − pull, of least squares or of the weak form."""
    matrix, side = jnp.asarray(precision), jnp.asarray(pull)
    return without_draws(lambda x: x @ matrix - side)


def windows(features: Any, rest: Any, batch_size: int) -> Energy:
    """Minibatches that are neighbours in a random order, with the normal equations of every window tabulated."""
    features, rest = np.asarray(features), np.asarray(rest)
    order = np.random.default_rng(0).permutation(len(rest))
    tables = []
    for values in (np.einsum("nsi,nsj->nij", features, features), np.einsum("nsi,ns->ni", features, rest)):
        twice = np.concatenate([values[order], values[order]])
        sums = np.concatenate([np.zeros_like(values[:1]), np.cumsum(twice, axis=0)])
        tables.append(jnp.asarray((sums[batch_size : batch_size + len(rest)] - sums[: len(rest)]) / batch_size))
    matrices, sides = tables

    def gradient(x: Any, key: Any) -> Any:
        k = jax.random.randint(key, x.shape[:1], 0, len(sides))
        return jnp.einsum("cij,cj->ci", matrices[k], x) - sides[k]

    return Energy(gradient, lambda x: x @ matrices.mean(0) - sides.mean(0), draws=True)


def independent_terms(features: Any, rest: Any, batch_size: int) -> Energy:
    """Minibatches drawn with replacement: residuals of their data."""
    design, side = jnp.asarray(features), jnp.asarray(rest)

    def of(x: Any, picks: Any) -> Any:
        rows = design[picks]
        return jnp.einsum("nsi,ns->i", rows, rows @ x - side[picks]) / len(picks)

    def gradient(x: Any, key: Any) -> Any:
        return jax.vmap(of)(x, jax.random.randint(key, (len(x), batch_size), 0, len(side)))

    return Energy(gradient, jax.vmap(lambda x: of(x, jnp.arange(len(side)))), draws=True)


def independent_rows(features: Any, rest: Any, batch_size: int) -> Energy:
    """The same by sums of the data's normal equations."""
    features, rest = np.asarray(features), np.asarray(rest)
    q = features.shape[2]
    products = np.einsum("nsi,nsj->nij", features, features).reshape(len(rest), q * q)
    table = jnp.asarray(np.concatenate([products, np.einsum("nsi,ns->ni", features, rest)], axis=1))

    def of(x: Any, picks: Any) -> Any:
        sums = table[picks].sum(0) / len(picks)
        return sums[: q * q].reshape(q, q) @ x - sums[q * q :]

    def gradient(x: Any, key: Any) -> Any:
        return jax.vmap(of)(x, jax.random.randint(key, (len(x), batch_size), 0, len(rest)))

    return Energy(gradient, jax.vmap(lambda x: of(x, jnp.arange(len(rest)))), draws=True)


def lorenz(x: Any, p: Any) -> tuple[Any, ...]:
    """Lorenz (1963), p = σ, ρ, β."""
    return p[0] * (x[1] - x[0]), x[0] * (p[1] - x[2]) - x[1], x[0] * x[1] - p[2] * x[2]


def lotka_volterra(x: Any, p: Any) -> tuple[Any, ...]:
    """Lotka (1925), p = α, β, δ, γ."""
    return p[0] * x[0] - p[1] * x[0] * x[1], p[2] * x[0] * x[1] - p[3] * x[1]


SYSTEMS: dict[str, Slope] = {"lorenz": lorenz, "lotka_volterra": lotka_volterra}


def step(slope: Slope, x: Any, p: Any, h: float) -> Any:
    """One step of order 5 of states (dim, chain)."""

    def moved(weights: tuple[float, ...], slopes: list[Any]) -> Any:
        return x + sum((h * w) * k for w, k in zip(weights, slopes, strict=True) if w)

    slopes = [jnp.stack(slope(x, p))]
    for row in STAGES:
        slopes.append(jnp.stack(slope(moved(row, slopes), p)))
    return moved(WEIGHTS, slopes)


def scan_gradient(system: str, values: Any, sd: float, h: float, steps: int, mode: str) -> Any:
    """(points (chain, q)) → gradients, by a scan over steps; mode: "reverse" or "forward"."""
    slope, data = SYSTEMS[system], jnp.asarray(values)
    dim = data.shape[1]

    def energies(columns: Any) -> Any:
        p, x = columns[:-dim], columns[-dim:]

        def interval(x: Any, y: Any) -> Any:
            x = lax.scan(lambda now, _: (step(slope, now, p, h), None), x, None, length=steps)[0]
            return x, (0.5 / sd**2) * ((x - y[:, None]) ** 2).sum(0)

        first = (0.5 / sd**2) * ((x - data[0][:, None]) ** 2).sum(0)
        return first + lax.scan(interval, x, data[1:])[1].sum(0)

    if mode == "reverse":
        return lambda points: jax.grad(lambda columns: energies(columns).sum())(points.T).T

    def forward(points: Any) -> Any:
        columns = points.T

        def along(direction: Any) -> Any:
            tangents = jnp.broadcast_to(direction[:, None], columns.shape)
            return jax.jvp(energies, (columns,), (tangents,))[1]

        return jax.vmap(along)(jnp.eye(len(columns))).T

    return forward


def diffrax_gradient(system: str, values: Any, sd: float, h: float, steps: int, mode: str, solver: str) -> Any:
    """The same by diffrax with constant steps; mode: its adjoint."""
    slope, data = SYSTEMS[system], jnp.asarray(values)
    dim = data.shape[1]
    times = jnp.asarray(h * steps * np.arange(len(values)))
    adjoint = {
        "checkpoints": diffrax.RecursiveCheckpointAdjoint,
        "direct": diffrax.DirectAdjoint,
        "forward": diffrax.ForwardMode,
    }[mode]()
    term = diffrax.ODETerm(lambda t, x, p: jnp.stack(slope(x, p)))

    def energy(point: Any) -> Any:
        found = diffrax.diffeqsolve(
            term, getattr(diffrax, solver)(), 0.0, times[-1], h, point[-dim:], point[:-dim],
            saveat=diffrax.SaveAt(ts=times), adjoint=adjoint, max_steps=steps * len(values) + 8,
        )  # fmt: skip
        return 0.5 * (((found.ys - data) / sd) ** 2).sum()

    return jax.vmap((jax.jacfwd if mode == "forward" else jax.grad)(energy))


ENERGIES: dict[str, Callable[..., Energy]] = {
    "quadratic": quadratic,
    "windows": windows,
    "independent terms": independent_terms,
    "independent rows": independent_rows,
    "scan": lambda **numbers: without_draws(scan_gradient(**numbers)),
    "diffrax": lambda **numbers: without_draws(diffrax_gradient(**numbers)),
}


def stepper(energy: Energy, step_size: float) -> Callable[[Any, Any, Any], Any]:
    """(points (chain, q), key, n) → points after n steps, compiled; for few chains normals of many steps at once."""
    kick = math.sqrt(2.0 * step_size)

    def one(x: Any, key: Any, normals: Any) -> Any:
        return x - step_size * energy.gradient(x, key) + kick * normals

    @jax.jit
    def single(x: Any, key: Any, n: Any) -> Any:
        def body(k: Any, x: Any) -> Any:
            batch, noise = jax.random.split(jax.random.fold_in(key, k))
            return one(x, batch, jax.random.normal(noise, x.shape))

        return lax.fori_loop(0, n, body, x)

    @jax.jit
    def many(x: Any, key: Any, n: Any) -> Any:
        def stretch(k: Any, x: Any) -> Any:
            batch, noise = jax.random.split(jax.random.fold_in(key, k))
            keys = jax.random.split(batch, NOISE_BUFFER) if energy.draws else jnp.zeros(NOISE_BUFFER)
            normals = jax.random.normal(noise, (NOISE_BUFFER, *x.shape))
            return lax.scan(lambda now, given: (one(now, *given), None), x, (keys, normals))[0]

        return lax.fori_loop(0, n // NOISE_BUFFER, stretch, x)

    return single, many


def key_of(way: str) -> Any:
    """A key of the generator that ``way`` names first."""
    return jax.random.key(0, impl=way.split(",")[0])


def advancing(energy: str, numbers: Any, start: Any, step_size: float, way: str) -> Callable[[int], Any]:
    """(n) → points (chain, q) after n steps from ``start``, a multiple of NOISE_BUFFER where ``way`` says "ahead"."""
    single, many = stepper(ENERGIES[energy](**numbers), step_size)
    run, key, x = many if way.endswith("ahead") else single, key_of(way), jnp.asarray(start)
    return lambda n: run(x, key, n).block_until_ready()


def sgld(
    energy: str, numbers: Any, start: Any, step_size: float, way: str, seconds: float
) -> Callable[[], dict[str, Any]]:
    """About ``seconds`` of SGLD; its number of steps, and mean squares (q,) of how far from ``start`` chains are."""
    advance = advancing(energy, numbers, start, step_size, way)
    unit = n_steps = NOISE_BUFFER if way.endswith("ahead") else 1
    advance(n_steps)
    for _ in range(12):
        began = time.perf_counter()
        advance(n_steps)
        took = time.perf_counter() - began
        if took > 0.5 * seconds:
            break
        n_steps = unit * math.ceil(n_steps * min(32.0, 0.8 * seconds / max(took, 1e-6)) / unit)

    def run() -> dict[str, Any]:
        away = advance(n_steps) - jnp.asarray(start)
        return {"steps": n_steps, "squares": (away * away).mean(0).tolist()}

    return run


def gradient(energy: str, numbers: Any, points: Any) -> Callable[[], Any]:
    """The gradient of all data at ``points`` (n, q)."""
    exact = jax.jit(ENERGIES[energy](**numbers).exact)
    return lambda: exact(jnp.asarray(points)).tolist()


CASES = {"sgld": sgld, "gradient": gradient}
