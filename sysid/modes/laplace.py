"""The mode of a posterior and its covariance there: coordinates in which it is nearly a standard normal."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from toolkit.errors import check_array, check_count, check_instance, warn_user
from toolkit.problem import Target

from ..arrays import Array, Bools

Evaluate = Callable[[Array], tuple[Array, Array]]
Contains = Callable[[Array], Bools]
DAMPINGS = np.concatenate([[0.0], np.logspace(-6.0, 9.0, 31)])  # of Newton steps; all are tried at once, one per lane
MIN_CURVATURE = 1e-9  # relative to the diagonal; below it a direction is flat to rounding
LANES = 64
MAX_GAIN = 1e6  # nats, expected of one step along a coordinate
CONVERGED = 1e-8  # nats that another step would gain


class Laplace(NamedTuple):
    """A Gaussian approximation of a posterior: its mode (q,), and a root (q, q) of its covariance, root rootᵀ."""

    position: Array
    root: Array


class Curvature(NamedTuple):
    """A Hessian as a scale and an eigendecomposition: H = S⁻¹ V diag(values) Vᵀ S⁻¹, S diagonal."""

    scale: Array
    values: Array
    vectors: Array

    @property
    def sizes(self) -> Array:
        """Absolute values of the curvatures (q,), at least MIN_CURVATURE of the diagonal's (Dauphin et al. 2014)."""
        return np.asarray(np.maximum(np.abs(self.values), MIN_CURVATURE))

    @property
    def root(self) -> Array:
        """The Cholesky root (q, q) of the inverse of the curvatures' absolute values."""
        spread = self.scale[:, None] * self.vectors / np.sqrt(self.sizes)
        # R of QR, transposed, is the Cholesky root without squaring the condition.
        root = np.asarray(np.linalg.qr(spread.T, mode="r")).T
        return np.asarray(root * np.sign(np.diag(root)))

    def newton_steps(self, gradient: Array, dampings: Array) -> Array:
        """Damped Newton steps (dampings, q) by absolute values of the curvatures (Dauphin et al. 2014)."""
        coordinates = self.vectors.T @ (self.scale * gradient)
        return np.asarray(-(coordinates / (self.sizes + dampings[:, None])) @ self.vectors.T * self.scale)


def in_batches(evaluate: Evaluate) -> Evaluate:
    """``evaluate`` for any number of points, a block of lanes at a time."""

    def evaluated(points: Array) -> tuple[Array, Array]:
        parts = [evaluate(points[k : k + LANES]) for k in range(0, len(points), LANES)]
        return np.concatenate([energy for energy, _ in parts]), np.concatenate([slope for _, slope in parts])

    return evaluated


def allowed_energies(evaluate: Evaluate, contains: Contains | None, count: Callable[[Array], None] | None) -> Evaluate:
    """``evaluate`` for any number of points, infinite where the energy is not finite or ``contains`` refuses the point.

    count: told of all energies that were evaluated.
    """
    batched = in_batches(evaluate)

    def evaluated(points: Array) -> tuple[Array, Array]:
        energies, slopes = batched(points)
        if count is not None:
            count(energies)
        allowed = np.isfinite(energies) & (True if contains is None else contains(points))
        return np.where(allowed, energies, np.inf), slopes

    return evaluated


def curvature_at(evaluate: Evaluate, position: Array, lengths: Array) -> Curvature | None:
    """The Hessian from central differences of gradients over ±lengths; None where no energy around is finite."""
    q = position.size
    lengths = np.maximum(lengths, 1e-14 * np.maximum(np.abs(position), 1e-280))
    offsets = np.diag(lengths)
    for _ in range(12):
        energy, slope = evaluate(np.concatenate([position + offsets, position - offsets]))
        if np.isfinite(energy).all():
            break
        offsets *= 0.1
    else:
        return None
    hessian = (slope[:q] - slope[q:]) / (2.0 * np.diag(offsets)[:, None])
    hessian = 0.5 * (hessian + hessian.T)
    # Where the energy is linear, the unit is the length over which it changes by MAX_GAIN.
    linear_scale = (0.5 * (slope[:q] + slope[q:])).diagonal() ** 2 / MAX_GAIN
    diagonal = np.maximum(np.abs(np.diag(hessian)), linear_scale)
    scale = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    values, vectors = np.linalg.eigh(hessian * scale * scale[:, None])
    return Curvature(scale, values, vectors)


def descend(
    evaluate: Evaluate,
    start: Array,
    *,
    contains: Contains | None = None,
    n_iterations: int = 100,
    dampings: Array = DAMPINGS,
) -> tuple[Array, float, Curvature | None]:
    """The lowest point found from ``start``, its energy and curvature, by damped Newton steps.

    All dampings are tried at once, one per lane, and the step to the lowest energy is taken. Points of infinite energy
    and points that ``contains`` refuses are never taken.
    """
    evaluate, position = in_batches(evaluate), np.array(start, np.float64)
    (lowest,), (slope,) = evaluate(position[None])
    lengths = 1e-6 * np.maximum(np.abs(position), 1e-2)
    curvature = None
    for _ in range(n_iterations):
        local = curvature_at(evaluate, position, lengths)
        if local is None:
            break
        curvature = local
        lengths = np.minimum(1e-3 * curvature.scale, 1e-2 * np.maximum(np.abs(position), 1e-2))
        steps = curvature.newton_steps(slope, dampings)
        trials = position + steps
        energy, slopes = evaluate(trials)
        energy = np.where(np.isfinite(energy), energy, math.inf)
        if contains is not None:
            energy[~contains(trials)] = math.inf
        best = int(np.argmin(energy))
        if not energy[best] < lowest:
            break
        decrease = lowest - energy[best]
        position, slope, lowest = trials[best], slopes[best], energy[best]
        if decrease < CONVERGED:
            break
    final = curvature_at(evaluate, position, lengths)
    return position, float(lowest), curvature if final is None else final


def laplace(
    target: Target,
    start: Any,
    *,
    contains: Contains | None = None,
    n_iterations: int = 100,
    names: Sequence[str] | None = None,
) -> Laplace:
    """The mode of ``target`` (q,) reached from ``start`` (q,), and the Cholesky root of its inverse Hessian there.

    contains: function of points (n, q) to whether each is allowed; None: all are. names: of the coordinates, for the
    warning; None: their numbers. The Hessian is from central differences of the exact gradient. Law: exact for a
    Gaussian; else the curvature of U at the mode.
    Warns where curvatures at the mode are not positive, or not above rounding; their absolute values are then used,
    at least 1e-9 of the diagonal's. Raises ValueError where U is not finite at ``start``, or ``contains`` forbids it.
    """
    check_instance("target", target, Target)
    point = check_array("start", start)
    if point.shape != (target.dim,):
        raise ValueError(f"start must have shape ({target.dim},), got {point.shape}")
    check_count("n_iterations", n_iterations, at_least=1)
    if contains is not None and not contains(point[None])[0]:
        raise ValueError(f"start must lie where parameters are allowed, got {point}")
    (energy,), _ = target.evaluate(point[None])
    if not math.isfinite(energy):
        raise ValueError(f"start must have a finite energy, got {energy} at {point}")
    position, _, curvature = descend(target.evaluate, point, contains=contains, n_iterations=n_iterations)
    if curvature is None:
        raise ValueError(f"target {target.name!r} must be finite around its mode, but is not around {position}")
    flat = np.flatnonzero(curvature.values < MIN_CURVATURE)
    if flat.size:
        worst = int(np.argmax(np.abs(curvature.vectors[:, flat[0]])))
        which = f"coordinate {worst}" if names is None else names[worst]
        warn_user(
            f"the energy of {target.name!r} has {flat.size} of {target.dim} directions without positive curvature at "
            f"its mode, the lowest {curvature.values[0]:.1e} of the diagonal's, mostly along {which}: data "
            "and priors leave it open there, and scaled coordinates are a guess",
        )
    return Laplace(position, curvature.root)
