"""The energies of ``gradients`` as one would write them in NumPy, with all chains at once, and in SciPy.

Each is a pair: (points (chain, q), rng) → gradients (chain, q), of a minibatch where there is one, and (points) →
gradients of all data.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

Array = NDArray[np.float64]
Gradient = Callable[[Array, np.random.Generator], Array]
Exact = Callable[[Array], Array]

TOLERANCES = {"rtol": 1e-9, "atol": 1e-10}


def lorenz_equations(states: Array) -> tuple[Array, Array]:
    """Features (n, dim, q) of σ, ρ, β and what of the velocities (n, dim) is without them."""
    x, y, z = states.T
    nothing = np.zeros_like(x)
    features = np.stack([np.stack([y - x, nothing, nothing]), np.stack([nothing, x, nothing]),
                         np.stack([nothing, nothing, -z])])  # fmt: skip
    return features.transpose(2, 0, 1), np.stack([nothing, -y - x * z, x * y], axis=1)


def lotka_volterra_equations(states: Array) -> tuple[Array, Array]:
    """The same of α, β, δ, γ."""
    x, y = states.T
    nothing = np.zeros_like(x)
    features = np.stack([np.stack([x, -x * y, nothing, nothing]), np.stack([nothing, nothing, x * y, -y])])
    return features.transpose(2, 0, 1), np.zeros_like(states)


EQUATIONS = {"lorenz": lorenz_equations, "lotka_volterra": lotka_volterra_equations}


def normal_rows(features: Array, rest: Array) -> Array:
    """Each datum's part of the normal equations (n, q q + q)."""
    n, _, q = features.shape
    products = np.einsum("nsi,nsj->nij", features, features).reshape(n, q * q)
    return np.concatenate([products, np.einsum("nsi,ns->ni", features, rest)], axis=1)


def solved(sums: Array, x: Array) -> Array:
    """Gradients (chain, q) of normal equations (chain, q q + q)."""
    n, q = x.shape
    return np.asarray(np.einsum("cij,cj->ci", sums[:, : q * q].reshape(n, q, q), x) - sums[:, q * q :])


def quadratic(precision: Array, pull: Array) -> tuple[Gradient, Exact]:
    """precision · x − pull."""
    return lambda x, rng: x @ precision - pull, lambda x: x @ precision - pull


def window_table(features: Array, rest: Array, batch_size: int) -> Array:
    """Normal equations (n, q q + q) of every window of ``batch_size`` of the data in a random order, round the end."""
    rows = normal_rows(features, rest)[np.random.default_rng(0).permutation(len(rest))]
    sums = np.concatenate([np.zeros_like(rows[:1]), np.cumsum(np.concatenate([rows, rows]), axis=0)])
    return np.asarray((sums[batch_size : batch_size + len(rows)] - sums[: len(rows)]) / batch_size)


def windows(features: Array, rest: Array, batch_size: int) -> tuple[Gradient, Exact]:
    """Neighbours in a random order, whose normal equations are tabulated."""
    table = window_table(features, rest, batch_size)
    whole = table.mean(axis=0)
    return (
        lambda x, rng: solved(table[rng.integers(0, len(table), len(x))], x),
        lambda x: solved(np.broadcast_to(whole, (len(x), whole.size)), x),
    )


def independent(features: Array, rest: Array, batch_size: int) -> tuple[Gradient, Exact]:
    """Data drawn with replacement, whose rows of the normal equations are summed, one chain after another."""
    rows = normal_rows(features, rest)
    whole = rows.mean(axis=0)

    def gradient(x: Array, rng: np.random.Generator) -> Array:
        sums = [rows.take(rng.integers(0, len(rows), batch_size), axis=0).sum(axis=0) for _ in x]
        return solved(np.array(sums) / batch_size, x)

    return gradient, lambda x: solved(np.broadcast_to(whole, (len(x), whole.size)), x)


def lorenz_sensitivities(x: Array, p: Array, s: Array) -> tuple[Array, Array]:
    """Slopes (dim,) of the states, and (dim, q) of their sensitivities ``s`` to σ, ρ, β and the initial state."""
    a, b, c = x
    slope = np.array([p[0] * (b - a), a * (p[1] - c) - b, a * b - p[2] * c])
    moved = np.array([[-p[0], p[0], 0.0], [p[1] - c, -1.0, -a], [b, a, -p[2]]]) @ s
    moved[0, 0] += b - a
    moved[1, 1] += a
    moved[2, 2] -= c
    return slope, moved


def lotka_volterra_sensitivities(x: Array, p: Array, s: Array) -> tuple[Array, Array]:
    """The same for α, β, δ, γ."""
    a, b = x
    slope = np.array([p[0] * a - p[1] * a * b, p[2] * a * b - p[3] * b])
    moved = np.array([[p[0] - p[1] * b, -p[1] * a], [p[2] * b, p[2] * a - p[3]]]) @ s
    moved[0, 0] += a
    moved[0, 1] -= a * b
    moved[1, 2] += a * b
    moved[1, 3] -= b
    return slope, moved


SENSITIVITIES = {"lorenz": lorenz_sensitivities, "lotka_volterra": lotka_volterra_sensitivities}


def trajectory(system: str, times: Array, values: Array, sd: float) -> tuple[Gradient, Exact]:
    """½ Σ ((x(tᵢ) − yᵢ)/sd)² by SciPy's integrator with forward sensitivities, one chain after another."""
    slopes, dim = SENSITIVITIES[system], values.shape[1]

    def of(point: Array) -> Array:
        q = point.size
        begin = np.concatenate([point[-dim:], np.eye(dim, q, q - dim).ravel()])

        def both(_: float, y: Array) -> Array:
            slope, moved = slopes(y[:dim], point[:-dim], y[dim:].reshape(dim, q))
            return np.concatenate([slope, moved.ravel()])

        found = solve_ivp(both, (times[0], times[-1]), begin, "LSODA", times, **TOLERANCES).y
        residuals = (found[:dim].T - values) / sd**2
        return np.asarray(np.einsum("td,dqt->q", residuals, found[dim:].reshape(dim, q, -1)))

    def exact(x: Array) -> Array:
        return np.array([of(point) for point in x])

    return lambda x, rng: exact(x), exact


ENERGIES: dict[str, Callable[..., tuple[Gradient, Exact]]] = {
    "quadratic": quadratic,
    "windows": windows,
    "independent": independent,
    "trajectory": trajectory,
}


def sgld(gradient: Gradient, start: Array, step_size: float) -> Callable[[int], Any]:
    """(n) → points after n steps from ``start`` (chain, q)."""
    rng, kick = np.random.default_rng(0), np.sqrt(2.0 * step_size)

    def run(n_steps: int) -> Array:
        x = np.array(start)
        for _ in range(n_steps):
            x += kick * rng.standard_normal(x.shape) - step_size * gradient(x, rng)
        return x

    return run
