"""The truth of a target of one or two dimensions whose mass lies in a window, all of it by quadrature."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from toolkit._compiler import HoldsFunctions
from toolkit.errors import check_array, check_count, check_numbers, shown
from toolkit.problem import EnergyAccuracy, Modes, Target, check_finite_points

from ..arrays import Array, Integers
from .basins import PlaneBasins
from .cells import axis_edges, closed_lattice, with_midpoints
from .energy_levels import EnergyLaw, EnergyTable, WithEnergyLaw
from .panels import BATCH, Label, Panels, adaptive_panels, energies_of
from .quantiles import checked_edges, nearest_index, one_hot
from .rejection import accepted, check_draws, generator

Draw = Callable[[int, int], Array]

PANELS_ACROSS = {1: 1024, 2: 64}  # at first; a mode that is not at a centre must be 1/500 of the window wide
MAX_PANEL_MASS = 1e-4  # share of the mass in a panel, so that the nodes' energies give quantiles
MAX_RIM_DENSITY = 1e-9  # largest density at the window's rim, as a share of the highest
ENVELOPE_MARGIN = 1.1  # factor of the envelope over the density on its lattice
LATTICE = 8


def window_truth(
    target: Target, dim: int, window: Any, centres: Any, *, label: Label | None, draw: Draw | None, has_walls: bool
) -> "WindowTruth":
    """The truth of ``target`` in ``window`` (2 · dim,): low and high of each coordinate in turn; all checked."""
    if not isinstance(target, Target):
        raise TypeError(f"target must be a Target, got {shown(target)} of type {type(target).__name__}")
    if target.dim != dim:
        raise ValueError(f"target must have dimension {dim}, got {target.dim}")
    edges = check_numbers("window", window)
    if len(edges) != 2 * dim or any(low >= high for low, high in zip(edges[::2], edges[1::2], strict=False)):
        raise ValueError(f"window must be low < high for each of {dim} coordinates, got {list(edges)}")
    places = check_array("centres", centres)
    if places.ndim != 2 or places.shape[1] != dim or len(places) == 0:
        raise ValueError(f"centres must have shape (modes, {dim}), got {places.shape}")
    for name, function in (("label", label), ("draw", draw)):
        if function is not None and not callable(function):
            raise TypeError(f"{name} must be None or a function, got {shown(function)}")
    return WindowTruth(target, np.reshape(edges, (dim, 2)), places, label, draw, has_walls)


@dataclass(frozen=True, eq=False)
class WindowTruth(HoldsFunctions, WithEnergyLaw):
    """Truth by quadrature over panels (``panels.adaptive_panels``), computed when first asked for.

    accuracy holds for cells, mode weights and moments. Energy quantiles and tails are by ``energy_levels``, to 1e-6 of
    the smaller tail, the mass beyond the window included. Where a target of two dimensions has walls, or ``label``
    gives points outside, they are from the sorted energies of the nodes, to 1e-4 in probability. Draws are by rejection
    under an envelope that is constant on each panel, or the target's own.
    A point belongs to the mode that ``basins`` gives, or else ``label``, or else to the nearest centre.
    """

    target: Target
    window: Array  # (dim, 2)
    centres: Array
    label: Label | None = None
    draw: Draw | None = None
    has_walls: bool = False
    accuracy: float = 1e-6
    basins: Label | None = None

    at_hand: ClassVar[tuple[str, ...]] = ("memberships",)  # ``toolkit._output.report.warnings``

    @cached_property
    def _panels(self) -> Panels:
        """Panels over the window, without regard to modes."""
        return self._inside(self._cut(self.centres.T, self._outside, largest=MAX_PANEL_MASS))

    @cached_property
    def _by_mode(self) -> Panels:
        """Panels over the window with labels of modes, small about the borders between modes."""
        if len(self.centres) == 1:
            return self._panels
        return self._inside(self._cut([with_midpoints(places) for places in self.centres.T], self._labels))

    def _inside(self, panels: Panels) -> Panels:
        """``panels``. Raises ValueError where the density at the window's rim is not negligible."""
        if not self.has_walls:
            along = np.linspace(self.window[:, 0], self.window[:, 1], 1025)
            lines = np.eye(self.target.dim, dtype=np.bool_)
            rim = [np.where(line, end, along) for line, ends in zip(lines, self.window, strict=True) for end in ends]
            share = float(np.exp(panels.energies.min() - energies_of(self.target, np.concatenate(rim)).min()))
            if share > MAX_RIM_DENSITY:
                raise ValueError(
                    f"the window must hold the mass of {self.target.name!r}, but at the rim of {self.window.tolist()} "
                    f"the density is {share:.1e} of the highest, and it must be < {MAX_RIM_DENSITY:g}"
                )
        return panels

    def _cut(self, breaks: Any, label: Label, *, largest: float = 1.0) -> Panels:
        """Panels over the window with edges at ``breaks`` of each coordinate."""
        across = PANELS_ACROSS[self.target.dim]
        axes = [
            axis_edges(low, high, across, breaks_inside)
            for (low, high), breaks_inside in zip(self.window, breaks, strict=True)
        ]
        return adaptive_panels(self.target, axes, label, largest=largest, peaks=self.centres)

    def _labels(self, points: Array) -> Integers:
        """The mode of each of ``points``: by ``basins``, or ``label``, or of the nearest centre; −1: outside."""
        if self.basins is not None:
            outside = self._outside(points)
            inside = outside == 0
            if inside.any():
                outside[inside] = self.basins(points[inside])
            return outside
        return self._regions(points)

    def _regions(self, points: Array) -> Integers:
        """As ``_labels``, without regard to basins."""
        if self.label is not None:
            labels = np.asarray(self.label(points), np.int64)
            if labels.shape != points.shape[:1] or (labels < -1).any() or (labels >= len(self.centres)).any():
                raise ValueError(
                    f"label must give one of {len(self.centres)} modes for each of {len(points)} points, or −1 outside"
                )
            return labels
        return nearest_index(self.centres, points)

    def _outside(self, points: Array) -> Integers:
        """−1 for points outside, else 0: labels for cells, which need no modes."""
        return np.minimum(self._regions(points), 0) if self.label is not None else np.zeros(len(points), np.int64)

    @property
    def log_normaliser(self) -> float:
        """log ∫ exp(−U), in nats."""
        return self._panels.log_normaliser

    @cached_property
    def mean(self) -> Array:
        """Mean (dim,)."""
        return np.asarray(self._panels.weights @ self._panels.points)

    @cached_property
    def covariance(self) -> Array:
        """Covariance (dim, dim)."""
        centred = self._panels.points - self.mean
        return np.asarray((self._panels.weights * centred.T) @ centred)

    @cached_property
    def modes(self) -> Modes:
        """Centres as given, and the probability of each one's region."""
        if isinstance(self.basins, PlaneBasins):
            return Modes(self.centres, self.basins.weights(self.cell_masses(*self.basins.edges)))
        panels = self._by_mode
        weights = np.bincount(panels.labels, panels.weights, minlength=len(self.centres))
        return Modes(self.centres, np.asarray(weights, np.float64))

    def memberships(self, points: Any) -> Array:
        """1 for the mode in whose region a point lies, else 0; shape (n, modes)."""
        return one_hot(self._labels(check_finite_points(points, self.target.dim)), len(self.centres))

    @cached_property
    def law_of_energy(self) -> EnergyLaw | EnergyTable:
        """By quadrature over level sets, with panels as small about the centres as theirs here; or ``energy_table``."""
        if (self.has_walls and self.target.dim > 1) or (self._outside(self._panels.lows) < 0).any():
            return self.energy_table
        law = EnergyLaw.within if self.has_walls else EnergyLaw.about
        return law(partial(energies_of, self.target), self.window[:, 0], self.window[:, 1], self.breaks)

    @cached_property
    def breaks(self) -> list[Array]:
        """Of each coordinate, the centres, and twice as far about them as the panels there are wide."""
        lows, widths = self._panels.lows, self._panels.widths
        near = [np.argmin(((lows + 0.5 * widths - centre) ** 2).sum(axis=1)) for centre in self.centres]
        return [
            np.unique(np.concatenate([places + far * widths[near, d] for far in (-2.0, 0.0, 2.0)]).round(12))
            for d, places in enumerate(self.centres.T)
        ]

    @cached_property
    def energy_table(self) -> EnergyTable:
        """Energies of the nodes in order, and the probability up to the middle of each."""
        order = np.argsort(self._panels.energies)
        weights = self._panels.weights[order]
        below = np.cumsum(weights) - 0.5 * weights
        return EnergyTable(self._panels.energies[order], below, EnergyAccuracy(0.0, 1e-4))

    def cell_masses(self, x_edges: Any, y_edges: Any = None) -> Array:
        """Probability of each cell, shape (nx, ny), or (nx,) in one dimension; panels with edges at the cells'."""
        edges = checked_edges(x_edges, y_edges, self.target.dim)
        panels = self._inside(self._cut(edges, self._outside))
        return np.asarray(np.histogramdd(panels.lows + 0.5 * panels.widths, edges, weights=panels.masses)[0])

    def independent_draws(self, n: int, *, seed: int) -> Array:
        """Exact draws (n, dim). Raises ValueError where the density rises above its envelope between lattice points."""
        if self.draw is not None:
            return np.asarray(
                self.draw(check_draws(n, self.target.dim), check_count("seed", seed, at_least=0, below=2**64))
            )
        rng, (lows, widths, heights, shares) = generator(seed), self._envelope
        offset = -self.log_normaliser

        def propose(batch: int) -> Array:
            panel = np.searchsorted(shares, rng.random(batch), side="right")
            points = lows[panel] + widths[panel] * rng.random((batch, self.target.dim))
            density = np.exp(offset - energies_of(self.target, points)) * (self._outside(points) >= 0)
            if (density > heights[panel]).any():
                worst = points[np.argmax(density / heights[panel])]
                raise ValueError(f"the density of {self.target.name!r} rises above its envelope at {worst.tolist()}")
            return np.asarray(points[rng.random(batch) * heights[panel] < density])

        return accepted(n, self.target.dim, propose, name=f"draws of {self.target.name!r}")

    @cached_property
    def _envelope(self) -> tuple[Array, Array, Array, Array]:
        """Lows, widths and heights of the panels, and the cumulative shares of proposals.

        A height is the greatest of the values at a lattice, each raised by its slope over half a lattice step, which
        bounds a density whose logarithm is concave; a margin allows for the rest.
        """
        panels, volume = self._panels, float(np.diff(self.window).prod())
        heights = np.empty(len(panels.lows))
        for start in range(0, len(heights), BATCH):
            lows, widths = panels.lows[start : start + BATCH], panels.widths[start : start + BATCH]
            points = closed_lattice(lows, widths, LATTICE)
            energy, gradient = self.target.evaluate(points.reshape(-1, self.target.dim))
            rise = (np.abs(gradient).reshape(points.shape) * widths[:, None]).sum(axis=2) / (2 * LATTICE)
            level = (np.minimum(rise, 2.0) - energy.reshape(rise.shape)).max(axis=1)
            heights[start : start + BATCH] = np.exp(level - self.log_normaliser)
        heights = ENVELOPE_MARGIN * heights + 0.01 / volume
        shares = np.cumsum(heights * panels.widths.prod(axis=1))
        return panels.lows, panels.widths, heights, shares / shares[-1]


def line_truth(
    target: Target,
    low: float,
    high: float,
    centres: Any,
    *,
    label: Label | None = None,
    draw: Draw | None = None,
    has_walls: bool = False,
) -> WindowTruth:
    """Truth of a target of one dimension whose mass lies in [low, high].

    centres: of its modes, (modes,) or (modes, 1). label: points (n, 1) → mode (n,); None: the nearest centre. draw:
    (n, seed) → exact draws (n, 1); None: rejection. has_walls: the target ends at low and high, where its density
    need not vanish.
    Accuracy 1e-6, of energy quantiles 1e-6 of the smaller tail; exp(−U) may have any scale. Raises ValueError or
    TypeError naming the argument; and when the truth is asked for, where the density at the ends is above 1e-9 of the
    highest.
    """
    places = check_array("centres", centres).reshape(-1, 1)
    return window_truth(target, 1, (low, high), places, label=label, draw=draw, has_walls=has_walls)


def plane_truth(
    target: Target,
    window: Sequence[float],
    centres: Any,
    *,
    label: Label | None = None,
    draw: Draw | None = None,
    has_walls: bool = False,
) -> WindowTruth:
    """Truth of a target of two dimensions whose mass lies in ``window`` = (x_low, x_high, y_low, y_high).

    centres: of its modes, (modes, 2). label: points (n, 2) → mode (n,), −1 for points outside, where the density is
    taken as 0; None: the nearest centre. draw: (n, seed) → exact draws (n, 2); None: rejection. has_walls: the target
    ends at the window, where its density need not vanish.
    Accuracy 1e-6; of energy quantiles 1e-6 of the smaller tail, or where the target has walls or has an outside 1e-4 in
    probability (``energy_accuracy``); exp(−U) may have any scale. Raises ValueError or TypeError naming the
    argument; and when the truth is asked for, where the density at the window's rim is above 1e-9 of the highest.
    """
    return window_truth(target, 2, window, centres, label=label, draw=draw, has_walls=has_walls)
