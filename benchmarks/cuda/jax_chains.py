"""The cases as one would write them in JAX: one step of one chain, vectorised over chains, scanned over steps.

Random numbers are JAX's own, drawn in three ways, of which the fastest is the rival: a key of each chain, folded with
the step (threefry, ``vmap`` of ``scan``); one key for all chains at a step (``scan`` of ``vmap``), by threefry or by
the generator of the device's own library ("rbg", Philox on a GPU). Float64 throughout.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.peers import jax_samplers
from benchmarks.peers.jax_samplers import Chain
from benchmarks.peers.jax_targets import cosine25

from .cases import PARTITION, STEP_SIZE, case_of

WAYS = ("threefry, a key each", "threefry, one key", "rbg, one key")


class Rival(NamedTuple):
    """A case: normals and uniforms of a step, the state of chains at ``points``, a step of one chain.

    start: (points (chain, replica, dim)) → state, chains first. step: (state, normals, uniforms, number) → state, of
    one chain. draws: a chain's state → (points (draw, dim), weights (draw,)).
    """

    normals: tuple[int, ...]
    uniforms: int
    start: Callable[[Any], Any]
    step: Callable[..., Any]
    draws: Callable[[Any], tuple[Any, Any]]


def of_peers(chain: Chain) -> Rival:
    """A sampler of ``benchmarks.peers.jax_samplers`` on a plane."""
    return Rival(
        (chain.replicas, 2), chain.uniforms, lambda points: jax.vmap(chain.start)(jnp.asarray(points)),
        lambda state, normals, uniforms, number: chain.step(state, normals, uniforms, number, 0), chain.draws,
    )  # fmt: skip


def points_of_chain(x: Any) -> tuple[Any, Any]:
    """A chain's points, all of weight 1."""
    return x, jnp.ones(len(x))


def sgld() -> Rival:
    """SGLD on cosine25."""
    return of_peers(jax_samplers.sgld("cosine25", STEP_SIZE))


def lorenz() -> Rival:
    """SGLD for Lorenz's parameters from windows of 4,096 of the data, whose normal equations are tables of means."""
    matrices, sides = (jnp.asarray(table) for table in window_tables())
    h = 5e-6

    def step(x: Any, normals: Any, uniforms: Any, number: Any) -> Any:
        k = jnp.floor(uniforms[0] * len(sides)).astype(jnp.int32)
        gradient = matrices[k] @ x[0] - sides[k]
        return x - h * gradient + math.sqrt(2.0 * h) * normals

    return Rival((1, 3), 1, jnp.asarray, step, points_of_chain)


def window_tables() -> tuple[Any, Any]:
    """Means of A = ΦᵀΦ (n, 3, 3) and Φᵀ(v − fixed) (n, 3) over each window of 4,096 of the data in a random order."""
    data = case_of("lorenz").problem.data
    (x, y, z), velocities = data.values.T, data.velocities
    features = np.zeros((len(x), 3, 3))  # (datum, state, parameter): σ (y − x), ρ x, −β z
    features[:, 0, 0], features[:, 1, 1], features[:, 2, 2] = y - x, x, -z
    rest = velocities - np.stack([np.zeros_like(x), -y - x * z, x * y], axis=1)
    order, window = np.random.default_rng(0).permutation(len(x)), 4096
    tables = []
    for values in (np.einsum("nsi,nsj->nij", features, features), np.einsum("nsi,ns->ni", features, rest)):
        twice = np.concatenate([values[order], values[order]])  # after the last of the data comes the first
        sums = np.concatenate([np.zeros_like(values[:1]), np.cumsum(twice, axis=0)])
        tables.append((sums[window : window + len(x)] - sums[: len(x)]) / window)
    return tables[0], tables[1]


def nearest_of_flower(x: Any) -> Any:
    """The nearest point of the flower's edge: the best of nine angles about the point's own, then Newton's method."""
    scale, offset, petals = 2.0 / 3.5, 3.0, 5.0

    def parts(angle: Any) -> tuple[Any, Any, Any]:
        radius = scale * (jnp.sin(petals * angle) + offset)
        slope = scale * petals * jnp.cos(petals * angle)
        bend = -scale * petals**2 * jnp.sin(petals * angle)
        cosine, sine = jnp.cos(angle), jnp.sin(angle)
        along, across = jnp.stack([cosine, sine], -1), jnp.stack([-sine, cosine], -1)
        r, s, b = radius[..., None], slope[..., None], bend[..., None]
        return r * along, s * along + r * across, (b - r) * along + 2.0 * s * across

    angles = jnp.arctan2(x[1], x[0]) + jnp.linspace(-0.4, 0.4, 9)
    gaps = ((parts(angles)[0] - x) ** 2).sum(-1)
    angle = angles[jnp.argmin(gaps)]
    for _ in range(4):
        point, first, second = parts(angle)
        gap = point - x
        angle = angle - (gap @ first) / jnp.maximum(first @ first + gap @ second, 0.1 * first @ first)
    return parts(angle)[0]


def is_outside(x: Any) -> Any:
    """Whether a point is outside the flower."""
    radius = 2.0 / 3.5 * (jnp.sin(5.0 * jnp.arctan2(x[1], x[0])) + 3.0)
    return (x * x).sum() > radius * radius


def reflected(x: Any) -> Any:
    """``x`` mirrored in the flower's edge until it is inside."""
    return lax.while_loop(is_outside, lambda y: 2.0 * nearest_of_flower(y) - y, x)


def r2sgld() -> Rival:
    """r2SGLD on cosine25 in the flower: two replicas swap, then move, then are reflected."""
    sizes, temperatures = np.array([[5e-4], [1.5e-3]]), np.array([[1.0], [10.0]])
    kicks, gap = np.sqrt(2.0 * sizes * temperatures), 1.0 / 1.0 - 1.0 / 10.0

    def step(x: Any, normals: Any, uniforms: Any, number: Any) -> Any:
        energy, gradient = cosine25(x)
        swaps = jnp.log(uniforms[0]) < gap * (energy[0] - energy[1])
        x, gradient = jnp.where(swaps, x[::-1], x), jnp.where(swaps, gradient[::-1], gradient)
        return jax.vmap(reflected)(x - sizes * gradient + kicks * normals)

    return Rival((2, 2), 1, jnp.asarray, step, lambda x: points_of_chain(x[:1]))


def icsgld() -> Rival:
    """ICSGLD on cosine25: five replicas that share θ; a draw is where a step began, with its weight Ψ^ζ."""
    bins = {"u_min": PARTITION.u_min, "width": PARTITION.width, "bins": PARTITION.n_bins}
    return of_peers(jax_samplers.contour("cosine25", STEP_SIZE, replicas=5, rest=0.25, **bins))


RIVALS = {"sgld": sgld, "r2sgld": r2sgld, "icsgld": icsgld, "lorenz": lorenz}


def scanned(rival: Rival, way: str, n_steps: int, keeps_every: int = 0) -> Callable[..., Any]:
    """(states, key, number of the first step) → (states, draws or None), compiled; keeps_every: 0 keeps none."""

    def random(key: Any, *shape: int) -> tuple[Any, Any]:
        one, other = jax.random.split(key)
        uniforms = jax.random.uniform(other, (*shape, rival.uniforms)) if rival.uniforms else jnp.zeros((*shape, 0))
        return jax.random.normal(one, (*shape, *rival.normals)), uniforms

    def scan(body: Callable[..., Any], kept: Callable[[Any], Any], states: Any, first: Any) -> Any:
        if not keeps_every:
            return lax.scan(lambda now, k: (body(now, k), None), states, first + jnp.arange(n_steps))

        def stretch(now: Any, begin: Any) -> Any:
            now = lax.scan(lambda s, k: (body(s, k), None), now, begin + jnp.arange(keeps_every))[0]
            return now, kept(now)

        return lax.scan(stretch, states, first + jnp.arange(0, n_steps, keeps_every))

    def points(state: Any) -> Any:
        return rival.draws(state)[0]

    @jax.jit
    def advance(states: Any, key: Any, first: Any) -> Any:
        n_chains = len(jax.tree.leaves(states)[0])
        if way == WAYS[0]:

            def chain(state: Any, own: Any) -> Any:
                return scan(lambda s, k: rival.step(s, *random(jax.random.fold_in(own, k)), k), points, state, first)

            return jax.vmap(chain)(states, jax.random.split(key, n_chains))
        together = jax.vmap(rival.step, in_axes=(0, 0, 0, None))

        def body(states: Any, k: Any) -> Any:
            return together(states, *random(jax.random.fold_in(key, k), n_chains), k)

        return scan(body, jax.vmap(points), states, first)

    return advance


def key_of(way: str, seed: int) -> Any:
    """A key for the generator of ``way``."""
    return jax.random.key(seed, impl="rbg" if way.startswith("rbg") else "threefry2x32")
