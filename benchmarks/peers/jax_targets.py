"""The two targets of the tables in JAX, float64: energies and gradients by the formulas of the project's own."""

import math
from typing import Any

import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)

TURN = 2.0 * math.pi


def cosine25(x: Any) -> tuple[Any, Any]:
    """Energy and gradient of cosine25 at points (…, 2)."""
    squared = (x * x).sum(-1)
    beyond = squared > 20.0
    energy = 0.2 * squared - 2.0 * jnp.cos(TURN * x).sum(-1) + jnp.where(beyond, squared - 20.0, 0.0)
    pull = jnp.where(beyond, 2.4, 0.4)
    return energy, pull[..., None] * x + 2.0 * TURN * jnp.sin(TURN * x)


def gaussian_grid25(x: Any) -> tuple[Any, Any]:
    """Energy and gradient at points (…, 2) of 25 Gaussians as the product of two mixtures of five, 10 exponentials."""
    nearest = 2.0 * jnp.clip(jnp.round(0.5 * x), -2.0, 2.0)
    away = x - nearest
    total, moment = 0.0, 0.0
    for centre in (-4.0, -2.0, 0.0, 2.0, 4.0):
        shift = centre - nearest
        share = jnp.exp(shift * (shift - 2.0 * away) / -0.06)
        total, moment = total + share, moment + share * (away - shift)
    energy = away * away / 0.06 + 0.5 * math.log(TURN * 0.03) - math.log(0.2) - jnp.log(total)
    return energy.sum(-1), moment / total / 0.03


TARGETS = {"cosine25": cosine25, "gaussian_grid25": gaussian_grid25}


def gradient_of(target: str) -> Any:
    """x → ∇U."""
    return lambda x: TARGETS[target](x)[1]


def log_density_of(target: str) -> Any:
    """x (2,) → −U, whose derivative is the formula's own and no second pass."""

    @jax.custom_vjp
    def log_density(x: Any) -> Any:
        return -TARGETS[target](x)[0]

    def forward(x: Any) -> tuple[Any, Any]:
        energy, gradient = TARGETS[target](x)
        return -energy, gradient

    def backward(gradient: Any, weight: Any) -> tuple[Any]:
        return (-weight * gradient,)

    log_density.defvjp(forward, backward)
    return log_density
