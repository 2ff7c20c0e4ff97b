"""The modes of a target inside a region of one or two dimensions: minima within it, and those that its walls hold."""

from typing import Any

import numpy as np
import scipy

from toolkit.errors import UnavailableError
from toolkit.problem import Target

from ..arrays import Array, Integers
from .descent import PlaneRegion, descend
from .own_targets import HALF, LATTICE, SEEN, peaks_of, valleys_of

MOST_NARROWINGS = 50  # of the window about the density: each leaves at most half of it in some coordinate


def region_places(
    target: Target, low: Array, high: Array, walls: PlaneRegion | None, centres: Array
) -> tuple[Array, Array, Integers]:
    """The window (dim, 2) of a target in a region, its minima there by rising energy, and the mode of each, 0, 1, ….

    low, high: ends of the region, (dim,). walls: the region, where it is of the plane. centres: (modes, dim), inside,
    from which minima are looked for besides those of a lattice. Raises UnavailableError where no energy on the lattice
    inside is finite.
    """
    window = narrowed(target, low, high, walls)
    axes, density = density_inside(target, window, walls)
    starts = np.concatenate([peaks_of(axes, density), centres])
    cell = np.array([axis[1] - axis[0] for axis in axes])
    if walls is None:
        places = np.array([lowest_between(target, start, window[0], cell) for start in starts])
    else:
        ends = descend(target, starts, 2.0 * cell, walls)
        places = np.array([polished(target, end, cell, walls) for end in ends])
    energies = target.evaluate(places)[0]
    order = np.argsort(energies, kind="stable")
    places, energies = places[order], energies[order]
    is_new = [not (np.abs(places[:k] - place) < cell).all(axis=1).any() for k, place in enumerate(places)]
    places, energies = places[is_new], energies[is_new]
    inside = None if walls is None else walls.contains
    lowest = valleys_of(target, places, energies, inside)
    return window, places, np.unique(lowest, return_inverse=True)[1]


def density_inside(target: Target, window: Array, walls: PlaneRegion | None) -> tuple[list[Array], Array]:
    """The axes of a lattice over ``window`` (dim, 2), and the density on it over its highest, 0 outside the region."""
    axes = [np.linspace(low, high, LATTICE[target.dim]) for low, high in window]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, target.dim)
    energies = target.evaluate(points)[0]
    is_out = ~np.isfinite(energies)
    if walls is not None:
        is_out |= ~walls.contains(points)
    energies = np.where(is_out, np.inf, energies)
    if is_out.all():
        raise UnavailableError(
            f"the modes of {target.name!r} in its region are unknown: none of {len(points)} points from "
            f"{window[:, 0].tolist()} to {window[:, 1].tolist()} is inside and has a finite energy; give the target "
            "its truth by targets.with_truth(target, window=..., centres=...)"
        )
    return axes, np.exp(energies.min() - energies).reshape([len(axis) for axis in axes])


def narrowed(target: Target, low: Array, high: Array, walls: PlaneRegion | None) -> Array:
    """The part (dim, 2) of a region's ends outside which the density is negligible."""
    window = np.stack([low, high], axis=1)
    for _ in range(MOST_NARROWINGS):
        axes, density = density_inside(target, window, walls)
        ends = []
        for d, axis in enumerate(axes):
            seen = np.flatnonzero((density > SEEN).any(axis=tuple(k for k in range(target.dim) if k != d)))
            ends.append([axis[max(0, seen[0] - 1)], axis[min(len(axis) - 1, seen[-1] + 1)]])
        smaller = np.array(ends)
        if (np.diff(smaller) > HALF * np.diff(window)).all():
            return window
        window = smaller
    return window


def lowest_between(target: Target, start: Array, ends: Array, cell: Array) -> Array:
    """The place (1,) of lowest energy within a cell of ``start`` and between ``ends``, which count too."""
    low, high = max(ends[0], start[0] - cell[0]), min(ends[1], start[0] + cell[0])

    def energy(x: float) -> float:
        return float(target.evaluate(np.array([[x]]))[0][0])

    found = scipy.optimize.minimize_scalar(energy, bounds=(low, high), method="bounded", options={"xatol": 1e-10})
    return np.array([min((low, high, start[0], float(found.x)), key=energy)])


def polished(target: Target, place: Array, cell: Array, walls: PlaneRegion) -> Array:
    """The place of lowest energy near the end of a descent: in the region, or along its wall."""

    def energy(x: Array) -> float:
        return float(target.evaluate(x[None])[0][0])

    def energy_and_gradient(x: Array) -> tuple[float, Array]:
        found, gradient = target.evaluate(x[None])
        return float(found[0]), gradient[0]

    limits: Any = np.stack([place - cell, place + cell], axis=1)
    free = scipy.optimize.minimize(energy_and_gradient, place, jac=True, method="L-BFGS-B", bounds=limits).x
    if walls.contains(free[None])[0]:
        return free if energy(free) < energy(place) else place
    normal = walls.normal(place[None])[0]
    along = np.array([-normal[1], normal[0]])

    def at(shift: float) -> Array:
        return np.asarray(walls.nearest((place + shift * along)[None])[0])

    reach = float(cell.min())
    found = scipy.optimize.minimize_scalar(
        lambda shift: energy(at(shift)), bounds=(-reach, reach), method="bounded", options={"xatol": 1e-9 * reach}
    )
    return min((place, at(float(found.x))), key=energy)
