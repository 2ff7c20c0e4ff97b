"""Interior points, bounds and nearest points of convex regions, by linear and least-squares programming."""

import itertools
from collections.abc import Callable

import numpy as np
import scipy

from ..arrays import Array

MIN_DEPTH = 1e-7  # distance from all walls, in units of the region's size, below which there is no interior
MIN_RELATIVE_SIZE = 1e-9  # of a region, as a share of its distance from 0 or from its walls


def inner_point(name: str, walls: tuple[Array, Array], ends: Array, centres: Array, radii: Array) -> Array:
    """A point (dim,) inside, away from all walls; ends: (2, dim), of the box. Raises ValueError where there is none.

    The search is in units of the walls' distances, and is repeated about the point found where these are large.
    """
    normals, offsets = walls
    finite = ends[np.isfinite(ends)]
    middle = float(finite.mean()) if finite.size else 0.0
    origin = centres[0] if len(centres) else np.where(np.isfinite(ends[0]), ends[0], middle)
    sizes: list[float] = []
    while len(sizes) < 2 or sizes[-1] < 0.1 * sizes[-2]:
        shifted, shifted_centres = offsets - normals @ origin, centres - origin
        extent = float(np.abs(np.concatenate([shifted, shifted_centres.ravel(), radii])).max())
        size = float(min(np.append(ends[1] - ends[0], radii).min(), extent)) or 1.0
        sizes.append(max(size, MIN_RELATIVE_SIZE * max([*sizes[:1], float(np.abs(origin).max())])))
        point, depth, bound = interior_point(
            normals, shifted / sizes[-1], shifted_centres / sizes[-1], radii / sizes[-1]
        )
        origin = origin + sizes[-1] * point
        if depth > MIN_DEPTH:
            return np.asarray(origin)
        if bound < -MIN_DEPTH:
            raise ValueError(
                f"{name} must not be empty, but every point is {-bound * sizes[-1]:.2g} or more outside of some wall"
            )
    raise ValueError(
        f"{name} must have an interior, but no point is more than {MIN_DEPTH * sizes[-1]:.2g} inside all walls"
    )


def outer_bounds(walls: tuple[Array, Array], ends: Array, centres: Array, radii: Array, interior: Array) -> Array:
    """Lowest and highest value of each coordinate, (2, dim), walls by linear programming and each ball by itself."""
    lower, upper = ends.copy()
    for centre, radius in zip(centres, radii, strict=True):
        lower, upper = np.maximum(lower, centre - radius), np.minimum(upper, centre + radius)
    normals, offsets = walls
    if ((normals != 0.0).sum(axis=1) < 2).all():
        return np.stack([lower, upper])
    distances = offsets - normals @ interior
    size = float(distances.min())
    for d, sign in itertools.product(range(len(interior)), (1.0, -1.0)):
        found = scipy.optimize.linprog(sign * np.eye(len(interior))[d], normals, distances / size, bounds=(None, None))
        if found.status == 0:
            end = interior[d] + sign * size * found.fun
            if sign > 0.0:
                lower[d] = max(lower[d], end)
            else:
                upper[d] = min(upper[d], end)
    return np.stack([lower, upper])


def interior_point(normals: Array, offsets: Array, centres: Array, radii: Array) -> tuple[Array, float, float]:
    """A point of the polytope and balls far from every wall, its distance to them, and a bound on that of any point.

    Distances above 1 count as 1. Ends where the distance exceeds half the bound, or is within a tolerance of it. By
    linear programming, each ball replaced by its tangents at the trial points (Kelley 1960). The first trial point is
    that of a general optimiser; if that has converged, the first bound is already its distance.
    """
    dim = normals.shape[1]
    units = np.vstack([np.eye(dim), -np.eye(dim)])
    rows = np.vstack([normals, *[units] * len(radii)])
    limits = np.concatenate([offsets, *[units @ c + r for c, r in zip(centres, radii, strict=True)]])
    objective, free = np.append(np.zeros(dim), -1.0), [(None, None)] * dim + [(None, 1.0)]
    point, depth, bound = np.zeros(dim), -np.inf, np.inf
    trial = slsqp_start(normals, offsets, centres, radii) if len(radii) else point
    for _ in range(200):
        distances = np.linalg.norm(trial - centres, axis=1)
        margin = float(np.concatenate([offsets - normals @ trial, radii - distances]).min())
        if margin > depth:
            point, depth = trial, margin
        if depth > 0.5 * bound or bound < -MIN_DEPTH or bound - depth < 0.1 * MIN_DEPTH:
            break
        off_centre = distances > 0.0
        tangents = (trial - centres)[off_centre] / distances[off_centre, None]
        rows = np.vstack([rows, tangents])
        limits = np.append(limits, (tangents * centres[off_centre]).sum(axis=1) + radii[off_centre])
        solution = scipy.optimize.linprog(objective, np.column_stack([rows, np.ones(len(rows))]), limits, bounds=free)
        trial, bound = solution.x[:dim], float(solution.x[dim])
    return point, depth, bound


def slsqp_start(normals: Array, offsets: Array, centres: Array, radii: Array) -> Array:
    """The point with the largest distance to all walls that sequential quadratic programming finds."""
    start = centres.mean(axis=0)
    depth = np.concatenate([offsets - normals @ start, radii - np.linalg.norm(start - centres, axis=1), [1.0]]).min()
    jacobian = np.column_stack([-normals, -np.ones(len(normals))])
    walls = {"type": "ineq", "fun": lambda y: offsets + jacobian @ y, "jac": lambda y: jacobian}
    balls = {
        "type": "ineq",
        "fun": lambda y: (radii - y[-1]) ** 2 - ((y[:-1] - centres) ** 2).sum(axis=1),
        "jac": lambda y: np.column_stack([2.0 * (centres - y[:-1]), 2.0 * (y[-1] - radii)]),
    }
    objective = np.append(np.zeros(len(start)), -1.0)
    found = scipy.optimize.minimize(
        lambda y: -y[-1], np.append(start, depth), jac=lambda y: objective, method="SLSQP",
        bounds=[(None, None)] * len(start) + [(None, min(1.0, float(radii.min())))],
        constraints=[walls, balls] if len(normals) else [balls], options={"ftol": 1e-14, "maxiter": 200},
    ).x  # fmt: skip
    return np.asarray(found[:-1] if np.isfinite(found).all() else start)


MAX_ROUNDS = 100  # over the balls


def project_to_polytope(point: Array, normals: Array, offsets: Array) -> Array:
    """The point of {x: normals · x ≤ offsets} nearest to ``point`` (dim,): least distance programming.

    The walls that hold it come from non-negative least squares, the point from these walls alone, to rounding.
    Source: Lawson & Hanson (1974), "Solving Least Squares Problems", chapter 23.
    """
    excess = normals @ point - offsets
    largest = excess.max(initial=0.0)
    if largest <= 0.0:
        return point
    target = np.zeros(len(point) + 1)
    target[-1] = 1.0
    multipliers, _ = scipy.optimize.nnls(np.vstack([-normals.T, excess / largest]), target)
    active = normals[multipliers > 0.0]
    return np.asarray(point - np.linalg.lstsq(active, excess[multipliers > 0.0], rcond=None)[0])


def project_to_part(point: Array, project: Callable[[Array], Array], centres: Array, radii: Array) -> Array:
    """The point of a convex set and of balls nearest to ``point``; ``project``: nearest point of the set alone.

    With multipliers μ of the balls it is the set's point nearest to (x + Σ μ c) / (1 + Σ μ), and a ball's multiplier
    is the root of |y − c| = r, which falls as μ grows. One ball is solved after the other until none changes. Where
    that converges slowly, as for balls that almost touch, the roots are nested. Raises ValueError where four or more
    balls converge slowly.
    """
    multipliers = np.zeros(len(radii))
    scale = float(np.abs(point).max() + np.abs(centres).max(initial=0.0) + radii.max(initial=0.0))

    def nearest() -> Array:
        return project((point + multipliers @ centres) / (1.0 + multipliers.sum()))

    def beyond(multiplier: float, ball: int, nested: bool) -> float:
        multipliers[ball] = multiplier
        if nested and ball > 0:
            solve_multiplier(ball - 1, nested=True)
        return float(np.linalg.norm(nearest() - centres[ball]) - radii[ball])

    def solve_multiplier(ball: int, *, nested: bool = False) -> None:
        if beyond(0.0, ball, nested) > 0.0:
            high = 1.0
            while beyond(high, ball, nested) > 0.0 and high < 1e18:
                high *= 8.0
            root = scipy.optimize.brentq(beyond, 0.0, high, (ball, nested), xtol=1e-300, rtol=1e-15, maxiter=500)
            beyond(root, ball, nested)

    for ball in range(len(radii)):  # where a single ball is active
        multipliers[:] = 0.0
        solve_multiplier(ball)
        found = nearest()
        if (np.linalg.norm(found - centres, axis=1) - radii).max() <= 1e-14 * scale:
            return found
    found = nearest()
    for _ in range(MAX_ROUNDS):
        for ball in range(len(radii)):
            solve_multiplier(ball)
        previous, found = found, nearest()
        if len(radii) < 2 or np.abs(found - previous).max() <= 1e-14 * scale:
            return found
    if len(radii) < 4:
        solve_multiplier(len(radii) - 1, nested=True)
        return nearest()
    raise ValueError(
        f"the nearest point to {point.tolist()} was not found in {MAX_ROUNDS} rounds over {len(radii)} balls"
    )
