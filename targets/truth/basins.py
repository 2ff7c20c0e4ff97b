"""Basins of attraction: the mode of a point is the one that steepest descent of the energy leads to."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from toolkit._compiler import HoldsFunctions
from toolkit.problem import Target

from ..arrays import Array, Bools, Integers
from .cells import points_in_panels, tensor_rule
from .descent import PlaneRegion, descend
from .quantiles import nearest_index

CELLS = 128  # of the lattice of a window, along each side
DEPTH = 3  # halvings of cells with a border: of the last ones 1,024 would lie along each side
BETWEEN = 2_049  # points between two minima of a line, among which their border is looked for
ORDER = 5  # of the rule by which the mass of a cell is divided among its halves
BISECTIONS = 12  # of a side of a last cell, to where the border crosses it
LEAST_MASS = 1e-11  # of a cell whose border is looked for
FOLLOWED = 30.0  # nats above the lowest energy: a density below 1e-13 of the highest is not followed


@dataclass(frozen=True, eq=False)
class LineBasins(HoldsFunctions):
    """The basins of an energy of one variable: intervals between the highest places that lie between minima.

    borders: increasing, (modes − 1,). order: the mode of each interval, (modes,).
    """

    borders: Array
    order: Integers

    def __call__(self, points: Array) -> Integers:
        """The mode of each of ``points`` (n, 1)."""
        return self.order[np.searchsorted(self.borders, points[:, 0])]


def line_basins(target: Target, centres: Array) -> LineBasins:
    """The basins of the modes ``centres`` (modes, 1), whose borders are the highest places between them."""
    import scipy.optimize

    order = np.argsort(centres[:, 0], kind="stable")
    borders = []

    def height(x: float) -> float:
        return -float(target.evaluate(np.array([[x]]))[0][0])

    for low, high in itertools.pairwise(centres[order, 0]):
        between = np.linspace(low, high, BETWEEN)
        top = int(np.argmax(target.evaluate(between[:, None])[0]))
        ends = between[max(0, top - 1)], between[min(BETWEEN - 1, top + 1)]
        found = scipy.optimize.minimize_scalar(height, bounds=ends, method="bounded", options={"xatol": 1e-12})
        borders.append(found.x if found.fun < height(between[top]) else between[top])
    return LineBasins(np.array(borders), order)


class Level(NamedTuple):
    """Cells of a lattice of the plane, those of one depth: their sides are ``window / (CELLS · 2^depth)``."""

    keys: Integers  # (cells,), increasing: row · CELLS · 2^depth + column
    labels: Integers  # (cells,): the mode of a cell, −1 where a border between modes is in it or beside it
    corners: Integers  # (cells, 4): the modes of its corners, row by row


@dataclass(frozen=True, eq=False)
class PlaneBasins(HoldsFunctions):
    """The basins of an energy in the plane, under dx/dt = −∇U in the target's own coordinates.

    A descent slides along ``walls``. It is followed from each node of a lattice over ``window`` (2, 2), low and high of
    each coordinate; cells with a border in them, or beside them, are halved ``DEPTH`` times. A point takes the mode of
    its cell; from one in the last cells with a border the descent is followed. places: the minima (places, 2). modes:
    of each, (places,).
    """

    target: Target
    window: Array
    places: Array
    modes: Integers
    walls: PlaneRegion | None = None

    def __call__(self, points: Array) -> Integers:
        """The mode of each of ``points`` (n, 2)."""
        labels = self._known(self._levels, points)
        unknown = labels < 0
        if unknown.any():
            labels[unknown] = self._labels_of(self._levels, points[unknown])[0]
        return labels

    @property
    def edges(self) -> tuple[Array, Array]:
        """The edges of the largest cells, in each coordinate."""
        first, second = (np.linspace(low, high, CELLS + 1) for low, high in self.window)
        return first, second

    def weights(self, masses: Array) -> Array:
        """The probability of each mode. masses: of the largest cells, (CELLS, CELLS).

        Cells with a border hand their mass on to their halves by a rule of order 5. The last ones divide theirs by
        area, along straight lines between the places where the border crosses their sides.
        """
        weights = np.zeros(self.modes.max() + 1)
        parts = masses.ravel()
        for depth, level in enumerate(self._levels):
            is_known = level.labels >= 0
            weights += np.bincount(level.labels[is_known], parts[is_known], weights.size)
            keys, parts = level.keys[~is_known], parts[~is_known]
            if depth < DEPTH:
                parts = self._halved(keys, parts, depth)
        corners = self._levels[-1].corners[~is_known]
        for mode, share in self._shares(keys, corners, parts > LEAST_MASS):
            weights[mode] += share @ parts
        return np.asarray(weights / weights.sum())

    def _shares(self, keys: Integers, corners: Integers, counts: Bools) -> Iterator[tuple[int, Array]]:
        """Each mode, and its share of the area of each of the last cells, (cells,). counts: which cells matter.

        corners: modes, (cells, 4), row by row. A mode's part is the polygon of its corners and of its ends on sides.
        """
        corners = corners[:, [0, 2, 3, 1]]  # counter-clockwise
        corner_places = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
        following = np.roll(corners, -1, axis=1)
        cell, side = np.nonzero((corners != following) & counts[:, None])
        low_corner = np.column_stack(np.divmod(keys[cell], CELLS * 2**DEPTH)) + corner_places[side]
        along = np.roll(corner_places, -1, axis=0)[side] - corner_places[side]
        low, high = np.zeros(len(cell)), np.ones(len(cell))
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            points = self.window[:, 0] + (low_corner + middle[:, None] * along) * (self._cell / 2**DEPTH)
            stays = self(points) == corners[cell, side]
            low, high = np.where(stays, middle, low), np.where(stays, high, middle)
        crossings = np.full((len(keys), 4, 2), np.nan)
        crossings[cell, side] = corner_places[side] + (0.5 * (low + high))[:, None] * along
        for mode in np.unique(corners):
            is_its = corners == mode
            ends = is_its != (following == mode)
            its_corners = np.where(is_its[..., None], corner_places, np.nan)
            its_ends = np.where(ends[..., None], crossings, np.nan)
            ring = np.stack([its_corners, its_ends], axis=2).reshape(len(keys), 8, 2)
            for k in [*range(8), *range(8)]:  # a vertex that is not there counts as the one before it
                ring[:, k] = np.where(np.isnan(ring[:, k]), ring[:, k - 1], ring[:, k])
            x, y = ring[..., 0], ring[..., 1]
            area = 0.5 * (x * np.roll(y, -1, axis=1) - y * np.roll(x, -1, axis=1)).sum(axis=1)
            yield int(mode), np.where(counts, np.nan_to_num(area), is_its.mean(axis=1))

    def _halved(self, keys: Integers, masses: Array, depth: int) -> Array:
        """The masses of the parts of cells, in the order of the next level."""
        row = CELLS * 2**depth
        cells = (2 * np.column_stack(np.divmod(keys, row))[:, None] + np.array(list(np.ndindex(2, 2)))).reshape(-1, 2)
        width = self._cell / 2 ** (depth + 1)
        places, shares = tensor_rule(ORDER, 2)
        points = points_in_panels(self.window[:, 0] + cells * width, np.tile(width, (len(cells), 1)), places)
        energies = self.target.evaluate(points)[0].reshape(len(keys), 4, -1)
        if self.walls is not None:
            energies = np.where(self.walls.contains(points).reshape(energies.shape), energies, np.inf)
        lowest = energies.min(axis=(1, 2), keepdims=True)
        with np.errstate(invalid="ignore"):
            parts = np.nan_to_num(np.exp(lowest - energies)) @ shares
        whole = parts.sum(axis=1, keepdims=True)
        parts = np.where(whole > 0.0, parts / np.where(whole > 0.0, whole, 1.0), 0.25) * masses[:, None]
        return parts.ravel()[np.argsort(cells[:, 0] * (2 * row) + cells[:, 1])]

    @property
    def _cell(self) -> Array:
        """Sides of the largest cells, (2,)."""
        return np.asarray((self.window[:, 1] - self.window[:, 0]) / CELLS)

    def _known(self, levels: list[Level], points: Array) -> Integers:
        """The mode of the cell of each point, −1 where it is not known."""
        place = (points - self.window[:, 0]) / self._cell
        labels = np.full(len(points), -1)
        unknown = np.flatnonzero(((place >= 0.0) & (place < CELLS)).all(axis=1))
        for depth, level in enumerate(levels):
            cells = np.floor(place[unknown] * 2**depth).astype(np.int64)
            at = np.searchsorted(level.keys, cells[:, 0] * (CELLS * 2**depth) + cells[:, 1])
            labels[unknown] = level.labels[at]
            unknown = unknown[level.labels[at] < 0]
        return labels

    @cached_property
    def _levels(self) -> list[Level]:
        """The cells of each depth; of those that are halved, only the parts of cells with a border."""
        cells = np.stack(np.meshgrid(*[np.arange(CELLS)] * 2, indexing="ij"), axis=-1).reshape(-1, 2)
        levels: list[Level] = []
        for depth in range(DEPTH + 1):
            levels.append(self._level(levels, cells, depth))
            keys = levels[-1].keys[levels[-1].labels < 0]
            cells = np.column_stack(np.divmod(keys, CELLS * 2**depth))
            cells = (2 * cells[:, None] + np.array(list(np.ndindex(2, 2)))).reshape(-1, 2)
        return levels

    def _level(self, levels: list[Level], cells: Integers, depth: int) -> Level:
        """The level of ``cells`` (n, 2), rows and columns; ``levels``: those above it."""
        row = CELLS * 2**depth
        cells = cells[np.argsort(cells[:, 0] * row + cells[:, 1])]
        keys = cells[:, 0] * row + cells[:, 1]
        corners = cells[:, None] + np.array(list(np.ndindex(2, 2)))
        nodes, which = np.unique(corners[..., 0] * (row + 1) + corners[..., 1], return_inverse=True)
        points = self.window[:, 0] + np.column_stack(np.divmod(nodes, row + 1)) * (self._cell / 2**depth)
        of_node, followed = self._labels_of(levels, points)
        labels, is_known = of_node[which.reshape(-1, 4)], followed[which.reshape(-1, 4)]
        low = np.where(is_known, labels, len(self.places)).min(axis=1)
        mixed = low < np.where(is_known, labels, -1).max(axis=1)
        if depth == 0:  # a basin that the lattice has missed
            at = np.floor((self.places - self.window[:, 0]) / self._cell).astype(np.int64).clip(0, CELLS - 1)
            at = at[:, 0] * row + at[:, 1]
            mixed[at[low[at] != self.modes]] = True
        beside = mixed.copy()
        for shift in (i * row + j for i, j in itertools.product((-1, 0, 1), repeat=2)):
            at = np.minimum(np.searchsorted(keys, keys + shift), len(keys) - 1)
            beside |= mixed[at] & (keys[at] == keys + shift)
        return Level(keys, np.where(beside, -1, np.where(low < len(self.places), low, labels[:, 0])), labels)

    def _labels_of(self, levels: list[Level], points: Array) -> tuple[Integers, Bools]:
        """The mode that each point leads to, and whether its descent was followed; else the nearest place's."""
        starts = points.copy()
        near = np.ones(len(points), np.bool_)
        if self.walls is not None:
            outside = ~self.walls.contains(points)
            if outside.any():
                starts[outside] = self.walls.nearest(points[outside])
                near[outside] = (np.abs(starts[outside] - points[outside]) <= self._cell).all(axis=1)
        energies = self.target.evaluate(starts)[0]
        lowest = self.target.evaluate(self.places)[0].min()
        followed = near & np.isfinite(energies) & (energies < lowest + FOLLOWED)
        ends = starts
        ends[followed] = descend(self.target, starts[followed], self._cell, self.walls, partial(self._known, levels))
        known = self._known(levels, ends)
        return np.where(known >= 0, known, self.modes[nearest_index(self.places, ends)]), followed
