"""The truth of a user's own target of one or two dimensions: its window and its modes are looked for."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from toolkit.errors import check_array, check_instance
from toolkit.problem import Target

from ..arrays import Array, Bools, Integers
from .basins import PlaneBasins, line_basins
from .descent import PlaneRegion, descend
from .panels import Label
from .quantiles import nearest_index
from .window import WindowTruth, line_truth, plane_truth

LATTICE = {1: 8193, 2: 257}  # points along each side
WIDER = 4.0  # the first window, over where chains start
MOST_LOOKS = 200  # at windows: each is half as wide again, or narrower
NEGLIGIBLE = 1e-9  # mass, and share of the second moment, beyond a side
SEEN, HALF = 1e-13, 0.5  # density that a window holds; a window that is narrowed by less is right
DEEP = 1e-8  # density of a mode, over the highest
MOST_MODES, BARRIER = 200, 0.05  # looked at; nats between two places that are one mode
EDGE = 1e-3  # of a cell of the lattice
HOPELESS = 10  # doublings after which a density that still has no second moment has none
HEAVY_TAILED = 1e-5  # accuracy where a power law's tails make the window wide: panels of no mass are left out
MOST_DOUBLINGS, RIM_POINTS = 40, 2_049  # of a window whose tails are heavy; points along each of its sides
MOST_TURNS = 2  # times that a coordinate is widened right after it was narrowed, before it is left as wide as it is


def with_truth(target: Target, *, window: Any = None, centres: Any = None) -> Target:
    """``target`` with its truth by quadrature, for any target of one or two dimensions whose mass lies in a window.

    The truth has moments, mode weights, cells, energies and exact draws, to 1e-6, as ``Problem.truth`` explains.
    ``constrained`` derives the truth of a region from it, also of a region that is open on a side.

    Parameters
    ----------
    target
        A target of one or two dimensions.
    window
        Holds the mass: (low, high), or (x_low, x_high, y_low, y_high), or (low, high) of each coordinate,
        [[x_low, x_high], [y_low, y_high]]. None: the window is looked for, from where chains start (four times
        ``target.spread``, or ±8), as far as the density reaches. Mass that lies apart from there, with nothing
        between, or that is narrower than 1/100 of the window, is not found: then give the window and the centres.
    centres
        Of the modes, (modes, dim). None: the minima of the energy on a lattice, refined; minima with less than 0.05
        nats between them are one mode.

    Returns
    -------
    Target
        ``target`` with its truth.

    Raises
    ------
    TypeError, ValueError
        For another dimension or shape; where the density does not fall fast enough for a second moment, or reaches
        further than can be followed; where it is above 1e-9 of its highest at the window's rim.

    Notes
    -----
    The weight of a mode is the probability of its basin of attraction: of all points from which steepest descent of
    the energy, in the target's own coordinates, ends at the mode. Two modes are thus divided along the crest between
    them. Of ``centres`` that are given, a descent counts for the one that is nearest to its end.

    Examples
    --------
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
    edges = found_window(target) if window is None else checked_window(window, target.dim)
    if centres is None:
        places, lowest = found_places(target, edges.reshape(-1, 2))
        modes, of_place = np.unique(lowest, return_inverse=True)
    else:
        places = check_array("centres", centres).reshape(-1, target.dim)
        modes = of_place = np.arange(len(places))
    basins = basins_of(target, edges.reshape(-1, 2), places, of_place)
    truth = truth_within(target, edges.reshape(-1, 2), places[modes], may_widen=window is None)
    return replace(target, truth=replace(truth, basins=basins))


def truth_within(target: Target, window: Array, centres: Array, *, may_widen: bool) -> WindowTruth:
    """The truth by quadrature over ``window`` (dim, 2), or a wider one that holds the second moment to its accuracy.

    Raises ValueError where none does, or where it may not be widened.
    """
    for doubling in range(MOST_DOUBLINGS if may_widen else 1):
        seen = window
        truth: WindowTruth = (
            line_truth(target, window[0, 0], window[0, 1], centres)
            if target.dim == 1
            else plane_truth(target, window.ravel().tolist(), centres)
        )
        beyond = moment_beyond(target, window, truth)
        if np.isinf(beyond).any() and doubling >= HOPELESS:
            break
        if beyond.max() <= truth.accuracy:
            return replace(truth, accuracy=HEAVY_TAILED) if doubling else truth
        width = np.diff(window, axis=1)
        window = window + np.where(beyond > truth.accuracy, 0.5 * width * [-1.0, 1.0], 0.0)
    where = f"at {seen[:, 0].tolist()} to {seen[:, 1].tolist()}"
    if may_widen:
        raise ValueError(no_window(target, where))
    if np.isinf(beyond).any():
        raise ValueError(
            f"window must hold the second moment of {target.name!r}, but {where} its density does not yet fall fast "
            "enough for one; give a wider window, if the target has a second moment"
        )
    raise ValueError(
        f"window must hold the second moment of {target.name!r} to {truth.accuracy:g}, but {where} a share of "
        f"{beyond.max():.1e} of it lies beyond; give a wider window"
    )


def no_window(target: Target, where: str) -> str:
    """The message by which a target is refused whose mass is in no window."""
    return (
        f"target {target.name!r} must have its mass in a window, and none was found: {where} its density does not yet "
        "fall fast enough for a second moment; give the window, if it has one"
    )


def moment_beyond(target: Target, window: Array, truth: WindowTruth) -> Array:
    """The share of each coordinate's second moment that lies beyond each side, (dim, 2), by the energy at the rim.

    Beyond a side the density falls as a power of the distance from the mean, with the exponent that it has there: of a
    law with lighter tails that is too much, but then next to nothing is there. inf: there is no second moment.
    """
    mean, variance = truth.mean, np.diag(truth.covariance)
    shares = np.zeros((target.dim, 2))
    along = np.linspace(window[:, 0], window[:, 1], RIM_POINTS)
    for d, side in np.ndindex(target.dim, 2):
        points = along.copy()
        points[:, d] = window[d, side]
        points = points[:1] if target.dim == 1 else points
        energies, gradients = target.evaluate(points)
        density = np.exp(-truth.log_normaliser - energies)
        length = 1.0 if target.dim == 1 else (window[1 - d, 1] - window[1 - d, 0]) / RIM_POINTS
        marginal = float(density.sum()) * length
        if not marginal > 0.0:
            continue
        reach = window[d, side] - mean[d]
        exponent = reach * float(density @ gradients[:, d]) / float(density.sum())
        room = exponent - 3.0  # the integral of x² x^−a from R is R³ R^−a / (a − 3)
        shares[d, side] = marginal * abs(reach) ** 3 / (room * variance[d]) if room > 0.0 else np.inf
    return shares


def basins_of(
    target: Target, window: Array, places: Array, modes: Integers, walls: PlaneRegion | None = None
) -> Label | None:
    """Which mode each point belongs to; places: minima (places, dim), modes: of each. None: there is one mode."""
    firsts = np.unique(modes, return_index=True)[1]
    if len(firsts) == 1:
        return None
    if target.dim == 1:
        return line_basins(target, places[firsts])
    return PlaneBasins(target, window, places, modes, walls)


def checked_window(window: Any, dim: int) -> Array:
    """Low and high of each coordinate in turn (2 · dim,). Raises TypeError or ValueError for another shape."""
    edges = check_array("window", window)
    if edges.shape not in ((2 * dim,), (dim, 2)):
        shapes = "(low, high) or [[low, high]]" if dim == 1 else (
            "(x_low, x_high, y_low, y_high) or [[x_low, x_high], [y_low, y_high]]"
        )  # fmt: skip
        raise ValueError(f"window must be {shapes}, got shape {edges.shape}")
    return edges.ravel()


def found_window(target: Target) -> Array:
    """Low and high of each coordinate (2 · dim,), about all of the mass that can be reached from where chains start."""
    ends = np.array([np.full(target.dim, -2.0), np.full(target.dim, 2.0)])
    if target.spread is not None:
        low, high = (end.reshape(-1, target.dim) for end in target.spread.ends(target.dim))
        ends = np.array([low.min(axis=0), high.max(axis=0)])
    middle, reach = ends.mean(axis=0), 0.5 * WIDER * (ends[1] - ends[0])
    low, high = middle - reach, middle + reach
    was_narrowed, turns = False, np.zeros(target.dim, np.int64)
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
            turns += was_narrowed & wider.any(axis=0)
            was_narrowed = False
            low, high = low - 0.5 * wider[0] * width, high + 0.5 * wider[1] * width
            continue
        seen = [np.flatnonzero((density > SEEN).any(axis=tuple(k for k in range(target.dim) if k != d)))
                for d in range(target.dim)]  # fmt: skip
        first = np.array([axis[max(0, s[0] - 1)] for axis, s in zip(axes, seen, strict=True)])
        last = np.array([axis[min(len(axis) - 1, s[-1] + 1)] for axis, s in zip(axes, seen, strict=True)])
        settled = turns >= MOST_TURNS  # what is narrowed there is widened again, for ever
        if (settled | (last - first > HALF * width)).all():
            return np.stack([low, high], axis=1).ravel()
        low, high, was_narrowed = np.where(settled, low, first), np.where(settled, high, last), True
    raise ValueError(no_window(target, f"at {low.tolist()} to {high.tolist()}"))


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


def found_places(target: Target, window: Array) -> tuple[Array, Integers]:
    """Minima of a lattice over ``window`` (dim, 2), refined, by rising energy; and the lowest of the valley of each."""
    axes, density = density_on(target, *window.T)
    starts = peaks_of(axes, density)
    cell = np.array([axis[1] - axis[0] for axis in axes])
    found = [lowest_near(target, start, cell) for start in starts]
    is_inside = [k == 0 or inside for k, (_, _, inside) in enumerate(found)]
    energies = np.array([energy for _, energy, _ in found])[is_inside]
    places = np.array([place for place, _, _ in found])[is_inside][np.argsort(energies, kind="stable")]
    lowest = valleys_of(target, places, np.sort(energies))
    if target.dim == 2:
        merge_unstable(target, places, lowest, 2.0 * cell)
    return places, lowest


def peaks_of(axes: list[Array], density: Array) -> Array:
    """Points (n, dim) of a lattice that are no lower than all beside them, the highest first."""
    inner = np.pad(density, 1, constant_values=-1.0)
    is_peak = density > DEEP
    for shift in np.ndindex(*(3,) * density.ndim):
        is_peak &= density >= inner[tuple(slice(s, s + n) for s, n in zip(shift, density.shape, strict=True))]
    at = np.argwhere(is_peak)[np.argsort(-density[is_peak], kind="stable")][:MOST_MODES]
    return np.stack([axis[k] for axis, k in zip(axes, at.T, strict=True)], axis=1)


def merge_unstable(target: Target, places: Array, lowest: Integers, cell: Array) -> None:
    """Let valleys join the one that a descent from their lowest place ends in: a narrow ridge has false minima."""
    roots = np.unique(lowest)
    ends = descend(target, places[roots], cell, None)
    moved = (np.abs(ends - places[roots]) > cell).any(axis=1)
    if moved.all():
        return
    reached = roots[~moved][nearest_index(places[roots[~moved]] / cell, ends / cell)]
    for root, end in zip(roots[moved], reached[moved], strict=True):
        lowest[lowest == root] = end


def valleys_of(
    target: Target, places: Array, energies: Array, inside: Callable[[Array], Bools] | None = None
) -> Integers:
    """The lowest place of each one's valley: places by rising energy, joined where the way is flat.

    A place joins the valley that it reaches most easily, within ``BARRIER`` above its own energy, and joins two valleys
    where it lies less than that above the lowest place of the higher one. A way that leaves ``inside`` is closed.
    """
    lowest = np.arange(len(places))
    steps = np.linspace(0.0, 1.0, 33)[:, None, None]
    for k in range(1, len(places)):
        paths = places[k] + steps * (places[:k] - places[k])  # (step, place, coordinate)
        heights = target.evaluate(paths.reshape(-1, target.dim))[0].reshape(len(steps), k)
        if inside is not None:
            heights[1:-1] = np.where(inside(paths[1:-1].reshape(-1, target.dim)).reshape(-1, k), heights[1:-1], np.inf)
        barriers = heights.max(axis=0) - energies[k]
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
