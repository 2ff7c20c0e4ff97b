"""A step of all chains, looped: to be timed, to keep draws, and to look at them, so that their law can be checked.

``run_of`` is for a package on one core, as a worker times it; ``scanned`` for chains of ``jax_samplers`` on a GPU.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .jax_samplers import Chain

# How ``scanned`` draws random numbers: a key of each chain, folded with the step (``vmap`` of ``scan``); one key for
# all chains at a step (``scan`` of ``vmap``), by threefry or by the device's own library, which is Philox on a GPU.
WAYS = ("threefry, a key each", "threefry, one key", "rbg, one key")


class Loop(NamedTuple):
    """Chains of a package that may be begun and advanced.

    start: (points (chain, replica, 2), key) → state. advance: (state, key, first step, steps, all steps) → state, in
    compiled code that serves any number of steps. draws: state → (points (draw, 2), weights). keep: (state, key,
    steps) → all draws, where that is not a scan over single steps; each: so many steps are one to the package.
    """

    start: Callable[..., Any]
    advance: Callable[..., Any]
    draws: Callable[[Any], tuple[Any, Any]]
    replicas: int
    keep: Callable[..., Any] | None = None
    each: int = 1


def stepped(step: Callable[[Any, Any, Any, Any], Any]) -> Callable[..., Any]:
    """``advance`` of a step of all chains, (state, key of the step, step, all steps) → state."""

    @jax.jit
    def advance(state: Any, key: Any, first: Any, n_steps: Any, n_all: Any) -> Any:
        def body(k: Any, now: Any) -> Any:
            return step(now, jax.random.fold_in(key, first + k), first + k, n_all)

        return lax.fori_loop(0, n_steps, body, state)

    return advance


def run_of(
    loop: Loop,
    n_chains: int,
    n_steps: int,
    starts: list[list[float]] | None,
    looks: int,
    keeps: bool,
    impl: str = "threefry2x32",
) -> Callable[[], Any]:
    """The function that the worker times: ``n_steps`` from ``starts`` (chain · replica, 2), None: from the origin.

    looks: how often in all, ``n_steps`` apart, the draws are looked at and returned. keeps: the draws of the coldest
    replica after each step are kept, in memory, as an array.
    """
    key = jax.random.key(1, impl=impl)
    shape = (n_chains, loop.replicas, 2)
    points = np.zeros(shape) if starts is None else np.reshape(starts, shape)
    state = starting(loop)(jax.numpy.asarray(points), key)

    def run() -> None:
        jax.block_until_ready(loop.advance(state, key, 0, n_steps, n_steps))

    def kept() -> None:
        np.asarray(keeping(loop, n_steps)(state, key))

    def looked() -> list[Any]:
        now, seen = state, []
        for look in range(looks):
            now = loop.advance(now, key, look * n_steps, n_steps, looks * n_steps)
            seen.append([np.asarray(values).tolist() for values in loop.draws(now)])
        return seen

    return looked if looks else kept if keeps else run


@functools.cache
def starting(loop: Loop) -> Callable[..., Any]:
    """``start``, compiled."""
    return jax.jit(loop.start)


@functools.cache
def keeping(loop: Loop, n_steps: int) -> Callable[..., Any]:
    """The same steps as a scan that keeps every draw."""

    def scanned(state: Any, key: Any) -> Any:
        def body(now: Any, k: Any) -> tuple[Any, Any]:
            now = loop.advance(now, key, k, loop.each, n_steps)
            return now, loop.draws(now)[0]

        if loop.keep is not None:
            return loop.keep(state, key, n_steps)
        return lax.scan(body, state, jax.numpy.arange(0, n_steps, loop.each))[1]

    return jax.jit(scanned)


def scanned(chain: Chain, way: str, n_steps: int, keeps_every: int = 0) -> Callable[..., Any]:
    """(states, key, number of the first step) → (states, draws or None), compiled; keeps_every: 0 keeps none.

    Not for samplers whose step depends on the number of all steps.
    """

    def random(key: Any, *shape: int) -> tuple[Any, Any]:
        first_key, other = jax.random.split(key)
        uniforms = jax.random.uniform(other, (*shape, chain.uniforms)) if chain.uniforms else jnp.zeros((*shape, 0))
        return jax.random.normal(first_key, (*shape, chain.replicas, chain.dim)), uniforms

    def scan(body: Callable[..., Any], kept: Callable[[Any], Any], states: Any, first: Any) -> Any:
        if not keeps_every:
            return lax.scan(lambda now, k: (body(now, k), None), states, first + jnp.arange(n_steps))

        def stretch(now: Any, begin: Any) -> Any:
            now = lax.scan(lambda s, k: (body(s, k), None), now, begin + jnp.arange(keeps_every))[0]
            return now, kept(now)

        return lax.scan(stretch, states, first + jnp.arange(0, n_steps, keeps_every))

    def points(state: Any) -> Any:
        return chain.draws(state)[0]

    @jax.jit
    def advance(states: Any, key: Any, first: Any) -> Any:
        n_chains = len(jax.tree.leaves(states)[0])
        if way == WAYS[0]:

            def one(state: Any, own: Any) -> Any:
                return scan(lambda s, k: chain.step(s, *random(jax.random.fold_in(own, k)), k, 0), points, state, first)

            return jax.vmap(one)(states, jax.random.split(key, n_chains))
        together = jax.vmap(chain.step, in_axes=(0, 0, 0, None, None))

        def body(states: Any, k: Any) -> Any:
            return together(states, *random(jax.random.fold_in(key, k), n_chains), k, 0)

        return scan(body, jax.vmap(points), states, first)

    return advance


def key_of(way: str, seed: int) -> Any:
    """A key for the generator of ``way``."""
    return jax.random.key(seed, impl="rbg" if way.startswith("rbg") else "threefry2x32")
