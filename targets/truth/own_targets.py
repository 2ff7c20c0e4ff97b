"""The truth of a user's own target of one or two dimensions: its window and its modes are looked for."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from toolkit.errors import check_array, check_instance
from toolkit.problem import Target

from ..arrays import Array, Integers
from .window import WindowTruth, line_truth, plane_truth

LATTICE = {1: 8193, 2: 257}  # points along each side
WIDER = 4.0  # the first window, over where chains start
MOST_LOOKS = 200  # at windows: each is half as wide again, or narrower
NEGLIGIBLE = 1e-9  # mass, and share of the second moment, beyond a side
SEEN, HALF = 1e-13, 0.5  # density that a window holds; a window that is narrowed by less is right
DEEP = 1e-8  # density of a mode, over the highest
MOST_MODES, BARRIER = 200, 0.05  # looked at; nats between two places that are one mode
EDGE = 1e-3  # of a cell of the lattice


def with_truth(target: Target, *, window: Sequence[float] | None = None, centres: Any = None) -> Target:
    """``target`` with its truth by quadrature, for any target of one or two dimensions whose mass lies in a window.

    window: (low, high), or (x_low, x_high, y_low, y_high), which holds the mass; None: it is looked for, from where
    chains start (four times ``target.spread``, or ±8), as far as the density reaches. What lies apart from there, with
    nothing between, or is narrower than a 1/100 of the window, is not found: then give the window and the centres.
    centres: of the modes, (modes, dim); None: the minima of the energy on a lattice, refined; minima with less than
    0.05 nats between them are one mode. A mode's weight is the probability of all that is nearest to its centre.
    The truth has moments, mode weights, cells, energies and exact draws, to 1e-6, as ``Problem.truth`` explains; by
    ``constrained`` a region's truth comes of it, also of a region that is open on a side.
    Raises TypeError or ValueError: for another dimension; where the density does not fall fast enough for a second
    moment, or reaches further than can be followed; where it is above 1e-9 of its highest at the window's rim.

    >>> from targets import with_truth
    >>> from toolkit import target
    >>> @target(dim=1)
    ... def wells(x):
    ...     return (x[0] ** 2 - 1.0) ** 2 / 0.1, (40.0 * x[0] * (x[0] ** 2 - 1.0),)
    >>> with_truth(wells).truth.modes.weights.round(6).tolist()
    [0.5, 0.5]
    """
    check_instance("target", target, Target)
    if target.dim not in LATTICE:
        raise ValueError(f"target must have one or two dimensions, got {target.dim}")
    edges = found_window(target) if window is None else check_array("window", window)
    if edges.shape != (2 * target.dim,):
        raise ValueError(f"window must be low and high of each of {target.dim} coordinates, got shape {edges.shape}")
    places = found_centres(target, edges.reshape(-1, 2)) if centres is None else check_array("centres", centres)
    truth: WindowTruth = (
        line_truth(target, edges[0], edges[1], places)
        if target.dim == 1
        else plane_truth(target, edges.tolist(), places)
    )
    truth.log_normaliser  # noqa: B018 - which looks at the rim
    return replace(target, truth=truth)


def found_window(target: Target) -> Array:
    """Low and high of each coordinate (2 · dim,), about all of the mass that can be reached from where chains start."""
    ends = np.array([np.full(target.dim, -2.0), np.full(target.dim, 2.0)])
    if target.spread is not None:
        low, high = (end.reshape(-1, target.dim) for end in target.spread.ends(target.dim))
        ends = np.array([low.min(axis=0), high.max(axis=0)])
    middle, reach = ends.mean(axis=0), 0.5 * WIDER * (ends[1] - ends[0])
    low, high = middle - reach, middle + reach
    for _ in range(MOST_LOOKS):
        axes, density = density_on(target, low, high)
        width, wider = high - low, np.zeros((2, target.dim))
        for d in range(target.dim):
            along = density.sum(axis=tuple(k for k in range(target.dim) if k != d))
            centre = along @ axes[d] / along.sum()
            sd = max(np.sqrt(along @ (axes[d] - centre) ** 2 / along.sum()), width[d] / len(axes[d]))
            beyond = np.array([np.take(density, end, axis=d).max() for end in (0, -1)])
            wider[:, d] = beyond * (width[d] / sd) ** (target.dim + 2) > NEGLIGIBLE
        if wider.any():
            low, high = low - 0.5 * wider[0] * width, high + 0.5 * wider[1] * width
            continue
        seen = [np.flatnonzero((density > SEEN).any(axis=tuple(k for k in range(target.dim) if k != d)))
                for d in range(target.dim)]  # fmt: skip
        first = np.array([axis[max(0, s[0] - 1)] for axis, s in zip(axes, seen, strict=True)])
        last = np.array([axis[min(len(axis) - 1, s[-1] + 1)] for axis, s in zip(axes, seen, strict=True)])
        if (last - first > HALF * width).all():
            return np.stack([low, high], axis=1).ravel()
        low, high = first, last
    raise ValueError(
        f"target {target.name!r} must have its mass in a window, and none was found: at {low.tolist()} to "
        f"{high.tolist()} its density does not yet fall fast enough for a second moment; give the window, if it has one"
    )


def density_on(target: Target, low: Array, high: Array) -> tuple[list[Array], Array]:
    """The axes of a lattice over a window, and the density on it over its highest."""
    axes = [np.linspace(a, b, LATTICE[target.dim]) for a, b in zip(low, high, strict=True)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, target.dim)
    energies = target.evaluate(points)[0]
    energies = np.where(np.isfinite(energies), energies, np.inf)
    lowest = energies.min()
    if not np.isfinite(lowest):
        raise ValueError(f"target {target.name!r} must have a finite energy from {low.tolist()} to {high.tolist()}")
    return axes, np.exp(lowest - energies).reshape([len(axis) for axis in axes])


def found_centres(target: Target, window: Array) -> Array:
    """The modes (modes, dim) of a target in ``window`` (dim, 2): minima of a lattice, refined, one of each valley."""
    axes, density = density_on(target, *window.T)
    inner = np.pad(density, 1, constant_values=-1.0)
    is_peak = density > DEEP
    for shift in np.ndindex(*(3,) * target.dim):
        is_peak &= density >= inner[tuple(slice(s, s + n) for s, n in zip(shift, density.shape, strict=True))]
    at = np.argwhere(is_peak)
    at = at[np.argsort(-density[is_peak], kind="stable")][:MOST_MODES]
    cell = np.array([axis[1] - axis[0] for axis in axes])
    found = [lowest_near(target, np.array([axis[k] for axis, k in zip(axes, one, strict=True)]), cell) for one in at]
    is_inside = [k == 0 or inside for k, (_, _, inside) in enumerate(found)]
    energies = np.array([energy for _, energy, _ in found])[is_inside]
    places = np.array([place for place, _, _ in found])[is_inside][np.argsort(energies, kind="stable")]
    return places[sorted(set(valleys_of(target, places, np.sort(energies)).tolist()))]


def valleys_of(target: Target, places: Array, energies: Array) -> Integers:
    """The lowest place of each one's valley: places by rising energy, joined where the way is flat.

    A place joins the valley that it reaches most easily, within ``BARRIER`` above its own energy, and joins two valleys
    where it lies less than that above the lowest place of the higher one.
    """
    lowest = np.arange(len(places))
    steps = np.linspace(0.0, 1.0, 33)[:, None, None]
    for k in range(1, len(places)):
        paths = places[k] + steps * (places[:k] - places[k])  # (step, place, coordinate)
        barriers = target.evaluate(paths.reshape(-1, target.dim))[0].reshape(len(steps), k).max(axis=0) - energies[k]
        reached = np.argsort(barriers, kind="stable")[: np.count_nonzero(barriers < BARRIER)]
        for j in reached:
            first, second = sorted((lowest[j], lowest[k]))
            if energies[k] - energies[second] < BARRIER or lowest[k] == k:
                lowest[lowest == second] = first
    return lowest


def lowest_near(target: Target, start: Array, cell: Array) -> tuple[Array, float, bool]:
    """The place of lowest energy within a cell of ``start``, its energy, and whether that is not at the edge."""
    import scipy.optimize

    def energy_and_gradient(x: Array) -> tuple[float, Array]:
        energy, gradient = target.evaluate(x[None])
        return float(energy[0]), gradient[0]

    limits = np.stack([start - cell, start + cell], axis=1)
    found = scipy.optimize.minimize(energy_and_gradient, start, jac=True, method="L-BFGS-B", bounds=limits)
    place = np.asarray(found.x)
    is_inside = bool((np.abs(place[:, None] - limits) > EDGE * cell[:, None]).all())
    return place, energy_and_gradient(place)[0], is_inside
