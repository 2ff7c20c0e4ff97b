"""TensorFlow Probability's replica exchange on JAX, with its MALA steps: it takes no steps without a Metropolis test.

A replica of step size h and temperature T is one of step 2hT at U/T, with as many gradients as replica exchange SGLD.
NumPyro has no replica exchange.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import tensorflow_probability.substrates.jax as tfp

from .jax_loops import Loop, run_of, stepped
from .jax_targets import log_density_of


@functools.cache
def made(target: str, h: tuple[float, ...], temperatures: tuple[float, ...]) -> Loop:
    """The loop of a ladder."""
    log_density = jax.vmap(log_density_of(target))
    sizes = 2.0 * jnp.asarray([[[size * heat]] for size, heat in zip(h, temperatures, strict=True)])

    def langevin(target_log_prob_fn: Any) -> Any:
        return tfp.mcmc.MetropolisAdjustedLangevinAlgorithm(target_log_prob_fn, sizes)

    def flat_log_density(x: Any) -> Any:
        return log_density(x.reshape(-1, 2)).reshape(x.shape[:-1])

    kernel = tfp.mcmc.ReplicaExchangeMC(
        flat_log_density, 1.0 / jnp.asarray(temperatures), langevin,
        swap_proposal_fn=tfp.mcmc.even_odd_swap_proposal_fn(1.0),
    )  # fmt: skip

    def start(points: Any, key: Any) -> Any:
        return points[:, 0], kernel.bootstrap_results(points[:, 0])

    def step(state: Any, key: Any, k: Any, n: Any) -> Any:
        after, results = kernel.one_step(*state, seed=key)
        return after, results

    return Loop(start, stepped(step), lambda state: (state[0], jnp.ones(len(state[0]))), len(h))


def resgld(
    target: str, h: list[float], temperatures: list[float], n_chains: int, n_steps: int, starts: Any = None,
    looks: int = 0, keeps: bool = False,
) -> Callable[[], Any]:  # fmt: skip
    """A run of the ladder."""
    return run_of(made(target, tuple(h), tuple(temperatures)), n_chains, n_steps, starts, looks, keeps)


CASES = {"resgld": resgld}
