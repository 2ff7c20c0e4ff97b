"""Gradients of ½ Σ ((x(tᵢ) − yᵢ)/sd)² in parameters and initial state, by fixed steps of order 5, over chains."""

from collections.abc import Callable
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

Slope = Callable[[Any, Any], tuple[Any, ...]]

STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
)
WEIGHTS = (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84)  # Dormand & Prince (1980)


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
