"""The samplers of ``jax_samplers`` in a compiled loop over all chains.

Normals and uniforms are drawn for many steps of all chains at a time, by JAX's threefry or by its "rbg", of which the
faster is compared; a key for each step, or for each step and chain, is slower everywhere.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from .jax_loops import Loop, run_of
from .jax_samplers import SAMPLERS, Chain


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
    chain = SAMPLERS[name](**{key: list(value) if isinstance(value, tuple) else value for key, value in numbers})
    return loop_of(chain, n_chains)


def case(name: str) -> Callable[..., Callable[[], Any]]:
    """The case of ``SAMPLERS`` as the worker makes it; n_steps: a multiple of 64, with 10,000 chains of 4."""

    def of(
        n_chains: int, n_steps: int, generator: str, starts: Any = None, looks: int = 0, keeps: bool = False,
        **numbers: Any,
    ) -> Callable[[], Any]:  # fmt: skip
        fixed = tuple((key, tuple(value) if isinstance(value, list) else value) for key, value in numbers.items())
        return run_of(made(name, n_chains, fixed), n_chains, n_steps, starts, looks, keeps, generator)

    return of


CASES = {name: case(name) for name in SAMPLERS}
