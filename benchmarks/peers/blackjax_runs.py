"""BlackJAX's samplers with the analytic gradient, in a compiled loop over all chains.

SGHMC and SGNHT are BlackJAX's with step √h and friction η/√h, which is the same recursion with momenta of unit mass.
SGLD and SGHMC move all chains as one position of that shape, which is faster than a key for each chain. SVGD's
particles stay within 0.02 of ours over 1,000 steps; its bandwidth divides by log P in place of log(P + 1).
"""

import functools
from collections.abc import Callable
from typing import Any

import blackjax
import jax
import jax.numpy as jnp
import optax
from blackjax.vi.svgd import update_median_heuristic

from .jax_loops import Loop, run_of, stepped
from .jax_targets import TARGETS, gradient_of, log_density_of

RESAMPLED = 64  # SGHMC draws its momenta anew after as many steps


def uphill(target: str) -> Callable[[Any, Any], Any]:
    """The gradient estimator as BlackJAX takes it: (position, data) → ∇ log density."""
    gradient = gradient_of(target)
    return lambda x, data: -gradient(x)


def flat(points: Any) -> Any:
    """(chain, replica, 2) → (chain · replica, 2)."""
    return points.reshape(-1, 2)


def of_weight_one(points: Any) -> tuple[Any, Any]:
    """Points (…, 2), all of weight 1."""
    return flat(points), jnp.ones(points.size // 2)


def per_chain(step: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """A step (key, state) of one chain as a step of all, with a key each."""

    def all_chains(states: Any, key: Any, k: Any, n: Any) -> Any:
        return jax.vmap(step)(jax.random.split(key, len(jax.tree.leaves(states)[0])), states)

    return all_chains


def sgld(target: str, h: float) -> Loop:
    """``blackjax.sgld``."""
    kernel = blackjax.sgld(uphill(target))

    def step(states: Any, key: Any, k: Any, n: Any) -> Any:
        return kernel.step(key, states, None, h)

    return Loop(lambda points, key: flat(points), stepped(step), of_weight_one, 1)


def sghmc(target: str, h: float, friction: float) -> Loop:
    """``blackjax.sghmc`` at T = 1, with ``RESAMPLED`` steps between fresh momenta, of which it gives back the last."""
    root = h**0.5
    kernel = blackjax.sghmc(uphill(target), RESAMPLED, friction / root)
    advance = stepped(lambda states, key, k, n: kernel.step(key, states, None, root))

    def by_trajectory(states: Any, key: Any, first: Any, n_steps: Any, n_all: Any) -> Any:
        return advance(states, key, first, n_steps // RESAMPLED, n_all)

    return Loop(lambda points, key: flat(points), by_trajectory, of_weight_one, 1, each=RESAMPLED)


def sgnht(target: str, h: float, friction: float) -> Loop:
    """``blackjax.sgnht``."""
    root = h**0.5
    kernel = blackjax.sgnht(uphill(target), friction / root)

    def start(points: Any, key: Any) -> Any:
        return jax.vmap(lambda x, own: kernel.init(x, own))(flat(points), jax.random.split(key, len(points)))

    step = per_chain(lambda key, state: kernel.step(key, state, None, root))
    return Loop(start, stepped(step), lambda state: of_weight_one(state.position), 1)


def contour(target: str, h: float, u_min: float, width: float, bins: int) -> Loop:
    """``blackjax.csgld`` with ζ = 0.75; a point's weight is θ(J)^ζ."""
    kernel = blackjax.csgld(
        lambda x, data: -TARGETS[target](x)[0], uphill(target), zeta=0.75, num_partitions=bins, energy_gap=width,
        min_energy=u_min,
    )  # fmt: skip

    def draws(states: Any) -> tuple[Any, Any]:
        return states.position, jax.vmap(lambda theta, here: theta[here] ** 0.75)(states.energy_pdf, states.energy_idx)

    step = per_chain(lambda key, state: kernel.step(key, state, None, h, 3e-3))
    return Loop(lambda points, key: jax.vmap(kernel.init)(flat(points)), stepped(step), draws, 1)


def chain_by_chain(kernel: Any) -> Loop:
    """An exact sampler, every chain with a key and a state of its own."""
    step = per_chain(lambda key, state: kernel.step(key, state)[0])
    return Loop(
        lambda points, key: jax.vmap(kernel.init)(flat(points)), stepped(step),
        lambda state: of_weight_one(state.position), 1,
    )  # fmt: skip


def mala(target: str, h: float) -> Loop:
    """``blackjax.mala``, one gradient a step."""
    return chain_by_chain(blackjax.mala(log_density_of(target), h))


def hmc(target: str, h: float, leapfrogs: int) -> Loop:
    """``blackjax.hmc`` with unit mass."""
    return chain_by_chain(blackjax.hmc(log_density_of(target), h, jnp.ones(2), leapfrogs))


def svgd(target: str, h: float, replicas: int) -> Loop:
    """``blackjax.svgd`` with RMSProp's steps and its median heuristic, each chain an ensemble of its own."""
    steps = optax.rmsprop(h, decay=0.9, eps=1e-6, eps_in_sqrt=False)
    kernel = blackjax.svgd(lambda x: -gradient_of(target)(x), steps)
    step = per_chain(lambda key, state: kernel.step(state))

    def start(points: Any, key: Any) -> Any:
        return jax.vmap(lambda x: update_median_heuristic(kernel.init(x, {"length_scale": 1.0})))(points)

    return Loop(start, stepped(step), lambda state: of_weight_one(state.particles), replicas)


@functools.cache
def made(name: str, numbers: tuple[tuple[str, Any], ...]) -> Loop:
    """The loop of a case, compiled once for all its runs of as many chains."""
    return LOOPS[name](**dict(numbers))


def case(name: str) -> Callable[..., Callable[[], Any]]:
    """The case of ``LOOPS`` as the worker makes it; n_steps: a multiple of 64."""

    def of(
        n_chains: int, n_steps: int, starts: Any = None, looks: int = 0, keeps: bool = False, **numbers: Any
    ) -> Callable[[], Any]:
        return run_of(made(name, tuple(numbers.items())), n_chains, n_steps, starts, looks, keeps)

    return of


LOOPS = {"sgld": sgld, "sghmc": sghmc, "sgnht": sgnht, "contour": contour, "mala": mala, "hmc": hmc, "svgd": svgd}
CASES = {name: case(name) for name in LOOPS}
