"""Integrals of exp(−U) over a box, by tensor Gauss–Legendre on panels that are split until two orders agree."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from toolkit.problem import Target

from ..arrays import Array, Bools, Integers
from .cells import halve_panels, inner_corners, points_in_panels, tensor_rule

Label = Callable[[Array], Integers]

ORDER, LOWER_ORDER = 8, 5
TOLERANCE = 1e-8  # difference between the two orders, summed over panels, as a share of the whole
MAX_MIXED_MASS = 2e-8  # share of the whole that a panel across two modes may have
NEGLIGIBLE = 1e-14  # share of the whole below which a panel's points are left out
MAX_PANELS = 1 << 19
MIN_DENSITY = 1e-300
BATCH = 4096  # panels evaluated at a time


@dataclass(frozen=True, eq=False)
class Panels:
    """A box cut into panels, and those of its nodes that count; all masses together sum to 1."""

    lows: Array  # (panels, dim)
    widths: Array  # (panels, dim)
    masses: Array  # (panels,)
    weights: Array  # (nodes,), the probability that each node stands for
    energies: Array  # (nodes,)
    labels: Integers  # (nodes,)
    log_normaliser: float
    heavy: tuple[Array, ...]  # lows and widths of the panels whose nodes count
    which: Bools | slice  # of the nodes of these panels, those that count

    @cached_property
    def points(self) -> Array:
        """The nodes (nodes, dim), computed when first asked for: they take as much memory as the rest."""
        lows, widths = self.heavy
        return points_in_panels(lows, widths, tensor_rule(ORDER, lows.shape[1])[0])[self.which]


class PanelEstimates(NamedTuple):
    """Estimates of some panels; integrals are of exp(offset − U)."""

    integrals: Array  # (panels,)
    errors: Array  # (panels,), difference of the two orders
    mixed: Bools  # (panels,), whether the labels of nodes and corners differ
    energies: Array  # (panels, nodes)
    labels: Integers  # (panels, nodes)


def adaptive_panels(
    target: Target, axes: Sequence[Array], label: Label, *, largest: float = 1.0, peaks: Array | None = None
) -> Panels:
    """The box with edges at ``axes`` (one increasing array per coordinate), its panels split until all is resolved.

    label: points (n, dim) → mode (n,); −1: outside, where the density is 0. Each split halves a panel where it is long.
    Ends where rules of order 5 and 8 differ by 1e-8 of the whole, summed over the panels that lie in one mode; no panel
    across a border between modes holds more than 2e-8 of it; none more than ``largest``; and none has nodes that all
    lie 1 nat above one of ``peaks`` (peaks, dim) in or beside it, so that a mode there is met, however narrow.
    Raises ValueError where 2¹⁹ panels do not get there, or where the energy is nan.
    """
    dim, scale = len(axes), np.array([a[-1] - a[0] for a in axes])
    lows = np.stack(np.meshgrid(*[a[:-1] for a in axes], indexing="ij"), axis=-1).reshape(-1, dim)
    widths = np.stack(np.meshgrid(*map(np.diff, axes), indexing="ij"), axis=-1).reshape(-1, dim)
    offset = np.inf
    for start in range(0, len(lows), BATCH):
        batch = slice(start, start + BATCH)
        middle = points_in_panels(lows[batch], widths[batch], tensor_rule(LOWER_ORDER, dim)[0])
        lowest = np.where(label(middle) >= 0, energies_of(target, middle), np.inf).min()
        offset = min(offset, float(lowest))
    peak_points, peak_energies = np.zeros((0, dim)), np.zeros(0)
    if peaks is not None:
        peak_points = peaks[label(peaks) >= 0]
        peak_energies = energies_of(target, peak_points)
        offset = min(offset, float(peak_energies.min(initial=np.inf)))
    if not np.isfinite(offset):
        raise ValueError(f"the energy of {target.name!r} must be finite somewhere in the window, got {offset}")
    kept: list[tuple[Array, Array, Array]] = []
    nodes: list[tuple[Array, Array, Integers, Array, Array]] = []
    done_mass, n_done = 0.0, 0
    while len(lows):
        if n_done + len(lows) > MAX_PANELS:
            raise ValueError(
                f"the window must resolve the target: {n_done + len(lows)} panels do not integrate "
                f"{target.name!r} to {TOLERANCE:g}; give a window closer about its mass"
            )
        all_estimates = [estimate_panels(target, lows[i : i + BATCH], widths[i : i + BATCH], label, offset)
                 for i in range(0, len(lows), BATCH)]  # fmt: skip
        whole = done_mass + sum(estimates.integrals.sum() for estimates in all_estimates)
        all_splits = []
        for start, estimates in zip(range(0, len(lows), BATCH), all_estimates, strict=True):
            batch_slice = slice(start, start + BATCH)
            allowed = TOLERANCE * whole / (n_done + len(lows))
            splits = np.where(estimates.mixed, estimates.integrals > MAX_MIXED_MASS * whole, estimates.errors > allowed)
            splits |= estimates.integrals > largest * whole
            level = offset - float(np.log(NEGLIGIBLE * max(whole, MIN_DENSITY)))
            splits |= misses_peak(
                lows[batch_slice], widths[batch_slice], estimates, peak_points, peak_energies, level, scale
            )
            all_splits.append(splits)
            done = ~splits
            kept.append((lows[batch_slice][done], widths[batch_slice][done], estimates.integrals[done]))
            counts = done & (estimates.integrals > NEGLIGIBLE * whole)
            density = np.where(estimates.labels[counts] < 0, 0.0, np.exp(offset - estimates.energies[counts]))
            heavy_lows, heavy_widths = lows[batch_slice][counts], widths[batch_slice][counts]
            weights = heavy_widths.prod(axis=1)[:, None] * tensor_rule(ORDER, dim)[1] * density
            energies, labels = estimates.energies[counts].ravel(), estimates.labels[counts].ravel()
            nodes.append((weights.ravel(), energies, labels, heavy_lows, heavy_widths))
        splits = np.concatenate(all_splits)
        done_mass += float(sum(part[2].sum() for part in kept[-len(all_estimates) :]))
        n_done += int((~splits).sum())
        lows, widths = halve_panels(lows[splits], widths[splits], scale)
    all_lows, all_widths, integrals = (np.concatenate([part[i] for part in kept]) for i in range(3))
    all_weights, all_energies, all_labels, *heavy = (np.concatenate([part[i] for part in nodes]) for i in range(5))
    total, inside = float(integrals.sum()), all_weights > 0.0
    which = slice(None) if inside.all() else inside
    return Panels(
        all_lows, all_widths, integrals / total, all_weights[which] / all_weights.sum(), all_energies[which],
        all_labels[which].astype(np.int64, copy=False), float(np.log(total) - offset), tuple(heavy), which,
    )  # fmt: skip


def estimate_panels(target: Target, lows: Array, widths: Array, label: Label, offset: float) -> PanelEstimates:
    """Estimates of the panels from ``lows`` of ``widths``, each (panels, dim)."""
    dim, volumes = lows.shape[1], widths.prod(axis=1)
    totals = []
    for order in (LOWER_ORDER, ORDER):
        places, weights = tensor_rule(order, dim)
        points = points_in_panels(lows, widths, places)
        energies = energies_of(target, points).reshape(len(lows), -1)
        density = np.exp(offset - energies)
        totals.append(volumes * (density @ weights))
    labels = label(points).reshape(len(lows), -1)
    at_corners = label(points_in_panels(lows, widths, inner_corners(dim)))
    all_labels = np.hstack([labels, at_corners.reshape(len(lows), -1)])
    mixed = all_labels.min(axis=1) != all_labels.max(axis=1)
    inside = volumes * (np.where(labels < 0, 0.0, density) @ weights)
    return PanelEstimates(inside, np.abs(totals[1] - totals[0]) * (inside > 0.0), mixed, energies, labels)


def misses_peak(
    lows: Array,
    widths: Array,
    estimates: PanelEstimates,
    peak_points: Array,
    peak_energies: Array,
    level: float,
    scale: Array,
) -> Bools:
    """Whether all nodes lie 1 nat above a peak that is in the panel, or no farther from it than the panel is long.

    level: energy at which a unit of volume has so little mass that it does not matter. scale: of lengths, (dim,).
    """
    lowest, log_volumes = estimates.energies.min(axis=1), np.log(widths.prod(axis=1))
    longest = (widths / scale).max(axis=1, keepdims=True) * scale
    start, end = lows - longest, lows + widths + longest
    found = np.zeros(len(lows), np.bool_)
    for peak, peak_energy in zip(peak_points, peak_energies, strict=True):
        high = np.flatnonzero((lowest > peak_energy + 1.0) & (log_volumes > peak_energy - level))
        found[high] |= ((start[high] <= peak) & (peak <= end[high])).all(axis=1)
    return found


def energies_of(target: Target, points: Array) -> Array:
    """Energies (n,) at ``points`` (n, dim). Raises ValueError where one is nan."""
    energies = target.evaluate(points)[0]
    bad = np.isnan(energies)
    if bad.any():
        raise ValueError(f"the energy of {target.name!r} must not be nan, got it at {points[bad][0].tolist()}")
    return energies
