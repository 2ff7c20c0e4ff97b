"""Samplers as one would write them in JAX: a step of one chain, vectorised over chains, in a compiled loop.

Normals and uniforms are drawn for many steps of all chains at a time, by JAX's threefry or by its "rbg", of which the
faster is the rival; a key for each step, or for each step and chain, is slower everywhere.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from .jax_loops import Loop, run_of
from .jax_targets import TARGETS

GENERATORS = ("threefry2x32", "rbg")


class Chain(NamedTuple):
    """One chain: start: points (replica, 2) → state; step: (state, normals, uniforms, step, all steps) → state."""

    replicas: int
    uniforms: int
    start: Callable[[Any], Any]
    step: Callable[..., Any]
    draws: Callable[[Any], tuple[Any, Any]]


def of_weight_one(x: Any) -> tuple[Any, Any]:
    """The coldest replica's point."""
    return x[:1], jnp.ones(1)


def sgld(target: str, h: float) -> Chain:
    """SGLD."""

    def step(x: Any, normals: Any, uniforms: Any, k: Any, n: Any) -> Any:
        return x - h * TARGETS[target](x)[1] + math.sqrt(2.0 * h) * normals

    return Chain(1, 0, lambda x: x, step, of_weight_one)


def cyclical_sgld(target: str, h: float, cycles: int) -> Chain:
    """Cyclical SGLD, without noise in the first quarter of a cycle."""

    def step(x: Any, normals: Any, uniforms: Any, k: Any, n: Any) -> Any:
        turn = (k * cycles / n) % 1.0
        size = 0.5 * h * (jnp.cos(jnp.pi * turn) + 1.0)
        return x - size * TARGETS[target](x)[1] + jnp.sqrt(jnp.where(turn < 0.25, 0.0, 2.0 * size)) * normals

    return Chain(1, 0, lambda x: x, step, of_weight_one)


def sghmc(target: str, h: float, friction: float) -> Chain:
    """SGHMC with momenta of unit mass."""
    root, kick = math.sqrt(h), math.sqrt(2.0 * friction)

    def step(state: Any, normals: Any, uniforms: Any, k: Any, n: Any) -> Any:
        x, p = state
        p = (1.0 - friction) * p - root * TARGETS[target](x)[1] + kick * normals
        return x + root * p, p

    return Chain(1, 0, lambda x: (x, jnp.zeros_like(x)), step, lambda state: of_weight_one(state[0]))


def sgnht(target: str, h: float, friction: float) -> Chain:
    """SGNHT with momenta of unit mass and one thermostat."""
    root, kick = math.sqrt(h), math.sqrt(2.0 * friction)

    def step(state: Any, normals: Any, uniforms: Any, k: Any, n: Any) -> Any:
        x, p, z = state
        p = (1.0 - z) * p - root * TARGETS[target](x)[1] + kick * normals
        return x + root * p, p, z + h * ((p * p).mean() - 1.0)

    def start(x: Any) -> Any:
        return x, jnp.zeros_like(x), jnp.full((), friction)

    return Chain(1, 0, start, step, lambda state: of_weight_one(state[0]))


def resgld(target: str, h: list[float], temperatures: list[float]) -> Chain:
    """Replica exchange SGLD: neighbours swap, pairs in even and odd turns, then all move."""
    count = len(h)
    sizes, cold = jnp.asarray(h)[:, None], 1.0 / jnp.asarray(temperatures)
    kicks = jnp.sqrt(2.0 * sizes / cold[:, None])
    turns = [[r + 1 - 2 * ((r + turn) % 2) for r in range(count)] for turn in (0, 1)]
    partners = jnp.asarray([[r if not 0 <= one < count else one for r, one in enumerate(turn)] for turn in turns])

    def step(x: Any, normals: Any, uniforms: Any, k: Any, n: Any) -> Any:
        energy, gradient = TARGETS[target](x)
        other = partners[0] if count == 2 else partners[k % 2]
        u = uniforms[jnp.minimum(other, jnp.arange(count))]
        swaps = (jnp.log(u) < (cold - cold[other]) * (energy - energy[other]))[:, None]
        x, gradient = jnp.where(swaps, x[other], x), jnp.where(swaps, gradient[other], gradient)
        return x - sizes * gradient + kicks * normals

    return Chain(count, count, lambda x: x, step, of_weight_one)


def contour(target: str, h: float, replicas: int, u_min: float, width: float, bins: int, rest: float) -> Chain:
    """CSGLD (one replica, rest 0) and ICSGLD (many, rest 1 − ζ): a draw is where a step began, with its weight Ψ^ζ."""
    zeta = 0.75

    def start(x: Any) -> Any:
        return x, jnp.zeros(bins), jnp.zeros(bins, bool), x, jnp.ones(replicas)

    def step(state: Any, normals: Any, uniforms: Any, k: Any, n: Any) -> Any:
        x, theta, visited, _, _ = state
        energy, gradient = TARGETS[target](x)
        place = (energy - u_min) / width
        here = jnp.clip(jnp.floor(place), 0, bins - 1).astype(jnp.int32)
        ahead = jnp.arange(bins) - here[:, None]
        nearest = jnp.argmin(jnp.where(visited, 2 * jnp.abs(ahead) + (ahead > 0), 4 * bins), axis=1)
        top = jnp.where(visited.any(), theta[nearest], 1.0)
        below = jnp.maximum(here - 1, 0)
        slopes = visited[here] & (here > 0) & (place < bins) & visited[below]
        bottom = jnp.where(slopes, theta[below], top)
        rise = jnp.log(top) - jnp.log(bottom)
        log_psi = jnp.log(top) - (here + 1.0 - place) * rise
        after = x - h * (1.0 + zeta * rise / width)[:, None] * gradient + math.sqrt(2.0 * h) * normals
        omega = jnp.minimum(1.0 / ((k + 1.0) ** 0.6 + 100.0), 3e-3) / replicas
        inside = (place >= 0.0) & (place < bins)
        share = jnp.where(inside, omega * jnp.exp(zeta * log_psi + rest * jnp.log(top)), 0.0)
        for p in range(replicas):
            opens = inside[p] & ~visited[here[p]]
            theta = jnp.where(opens, theta.at[here[p]].set(jnp.where(visited.any(), top[p], 1.0)), theta)
            theta = jnp.where(opens, theta / theta.sum(), theta)
            visited = visited.at[here[p]].set(visited[here[p]] | opens)
        theta = (1.0 - share.sum()) * theta
        for p in range(replicas):
            theta = theta.at[here[p]].add(share[p])
        return after, theta, visited, x, jnp.exp(zeta * log_psi)

    return Chain(replicas, 0, start, step, lambda state: (state[3], state[4]))


def loop_of(chain: Chain, n_chains: int) -> Loop:
    """The chain as a loop over all chains, with random numbers drawn for 64 steps, or 65,536 chain-steps, at a time."""
    unit = 2 ** int(math.log2(max(1, min(64, 65_536 // n_chains))))
    together = jax.vmap(chain.step, in_axes=(0, 0, 0, None, None))

    def drawn(key: Any, k: Any) -> tuple[Any, Any]:
        one, other = jax.random.split(jax.random.fold_in(key, k))
        normals = jax.random.normal(one, (unit, n_chains, chain.replicas, 2))
        if not chain.uniforms:
            return normals, normals[..., 0, :0]
        return normals, jax.random.uniform(other, (unit, n_chains, chain.uniforms))

    @jax.jit
    def advance(states: Any, key: Any, first: Any, n_steps: Any, n_all: Any) -> Any:
        def stretch(block: Any, now: Any) -> Any:
            k = first + unit * block
            normals, uniforms = drawn(key, k)
            return lax.fori_loop(0, unit, lambda i, s: together(s, normals[i], uniforms[i], k + i, n_all), now)

        return lax.fori_loop(0, n_steps // unit, stretch, states)

    def keep(states: Any, key: Any, n_steps: int) -> Any:
        def stretch(now: Any, k: Any) -> Any:
            normals, uniforms = drawn(key, k)

            def one(s: Any, i: Any) -> Any:
                s = together(s, normals[i], uniforms[i], k + i, n_steps)
                return s, jax.vmap(chain.draws)(s)[0]

            return lax.scan(one, now, jnp.arange(unit))

        return lax.scan(stretch, states, jnp.arange(0, n_steps, unit))[1]

    def start(points: Any, key: Any) -> Any:
        return jax.vmap(chain.start)(points)

    def draws(states: Any) -> tuple[Any, Any]:
        points, weights = jax.vmap(chain.draws)(states)
        return points.reshape(-1, 2), weights.reshape(-1)

    return Loop(start, advance, draws, chain.replicas, keep)


@functools.cache
def made(name: str, n_chains: int, numbers: tuple[tuple[str, Any], ...]) -> Loop:
    """The loop of a case, compiled once for all its runs."""
    chain = CHAINS[name](**{key: list(value) if isinstance(value, tuple) else value for key, value in numbers})
    return loop_of(chain, n_chains)


def case(name: str) -> Callable[..., Callable[[], Any]]:
    """The case of ``CHAINS`` as the worker makes it; n_steps: a multiple of 64, with 10,000 chains of 4."""

    def of(
        n_chains: int, n_steps: int, generator: str, starts: Any = None, looks: int = 0, keeps: bool = False,
        **numbers: Any,
    ) -> Callable[[], Any]:  # fmt: skip
        fixed = tuple((key, tuple(value) if isinstance(value, list) else value) for key, value in numbers.items())
        return run_of(made(name, n_chains, fixed), n_chains, n_steps, starts, looks, keeps, generator)

    return of


CHAINS = {
    "sgld": sgld,
    "cyclical_sgld": cyclical_sgld,
    "sghmc": sghmc,
    "sgnht": sgnht,
    "resgld": resgld,
    "contour": contour,
}
CASES = {name: case(name) for name in CHAINS}
