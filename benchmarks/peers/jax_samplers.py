"""Samplers as one would write them in JAX: a step of one chain, to be vectorised over chains, on a CPU or a GPU."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from .jax_targets import TARGETS


class Chain(NamedTuple):
    """One chain: start: points (replica, dim) → state; step: (state, normals, uniforms, step, all steps) → state.

    draws: state → (points (draw, dim), weights). normals: (replica, dim), uniforms: as many as it says.
    """

    replicas: int
    uniforms: int
    start: Callable[[Any], Any]
    step: Callable[..., Any]
    draws: Callable[[Any], tuple[Any, Any]]
    dim: int = 2


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


def reflected_resgld(target: str, h: list[float], temperatures: list[float]) -> Chain:
    """r2SGLD in the flower: two replicas swap, then move, then are reflected."""
    free = resgld(target, h, temperatures)

    def step(x: Any, normals: Any, uniforms: Any, k: Any, n: Any) -> Any:
        return jax.vmap(reflected)(free.step(x, normals, uniforms, k, n))

    return free._replace(step=step)


def quadratic_windows(matrices: Any, sides: Any, h: float) -> Chain:
    """SGLD on minibatches whose normal equations A x = b are tabulated: A (window, q, q), b (window, q)."""
    tables = jnp.asarray(matrices), jnp.asarray(sides)

    def step(x: Any, normals: Any, uniforms: Any, k: Any, n: Any) -> Any:
        window = jnp.floor(uniforms[0] * len(sides)).astype(jnp.int32)
        return x - h * (tables[0][window] @ x[0] - tables[1][window]) + math.sqrt(2.0 * h) * normals

    return Chain(1, 1, lambda x: x, step, of_weight_one, len(sides[0]))


SAMPLERS: dict[str, Callable[..., Chain]] = {
    "sgld": sgld,
    "cyclical_sgld": cyclical_sgld,
    "sghmc": sghmc,
    "sgnht": sgnht,
    "resgld": resgld,
    "contour": contour,
}
