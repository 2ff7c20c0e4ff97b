"""Minima that a target's own list of modes leaves out: those that walls make, or whose centre is outside a region."""

from collections.abc import Callable
from typing import Protocol

import numpy as np

from toolkit.problem import Target

from ..arrays import Array, Bools
from ..truth.descent import PlaneRegion
from ..truth.own_targets import peaks_of, valleys_of
from ..truth.quantiles import nearest_index
from ..truth.region_modes import density_inside, narrowed

# A choice: a minimum at a wall with a smaller share of the probability is counted to the nearest of the target's own
# modes, by which it defines them. Shares are of the points nearest to a minimum, which is not its basin, so a limit
# near 0 would find minima where there is but the tail of another.
LEFT_OUT = 0.05
STARTS = 128  # draws from which minima are looked for: with a share of LEFT_OUT none is near in 0.14 % of cases
STEPS = 200  # of a descent, which need not arrive: what is compared is whether the way between two ends has a barrier
ARRIVED = 1e-4  # of the starts' spread: a step so short ends a descent
SHRINKS, GROWS, ENOUGH = 0.25, 1.5, 1e-4  # of a step's length; of the decrease that the gradient promises (Armijo)


class Region(Protocol):
    """A region of any dimension."""

    def contains(self, points: Array) -> Bools:
        """Whether each point is inside."""

    def nearest(self, points: Array) -> Array:
        """The nearest point of the boundary."""


def share_left_out(
    target: Target, known: Array, others: Array, points: Array, weights: Array, inside: Callable[[Array], Bools] | None
) -> float:
    """The largest probability of a valley of ``others`` (n, dim) in which none of ``known`` (modes, dim) lies.

    points, weights: the law in the region. A point counts for the place that it is nearest to. Valleys are those of
    ``valleys_of``: two places are in one where the way between them does not rise by its ``BARRIER``.
    """
    places = np.concatenate([known, others])
    energies = target.evaluate(places)[0]
    order = np.argsort(energies, kind="stable")
    lowest = valleys_of(target, places[order], energies[order], inside)
    is_known = np.isin(lowest, lowest[order < len(known)])
    shares = np.bincount(lowest[nearest_index(places[order], points)], weights, len(places)) / weights.sum()
    return float(shares[~np.isin(np.arange(len(places)), lowest[is_known])].max(initial=0.0))


def lattice_minima(target: Target, low: Array, high: Array, walls: PlaneRegion | None) -> Array:
    """Points (n, dim) of a lattice over a region of one or two dimensions that are no higher than all beside them."""
    return peaks_of(*density_inside(target, narrowed(target, low, high, walls), walls))


def descended(target: Target, starts: Array, region: Region) -> Array:
    """Where projected descents from ``starts`` (n, dim) in a convex region come to, (n, dim)."""
    ends, reach = starts.copy(), np.ptp(starts, axis=0).max()  # of one step, at most
    length, active = np.full(len(ends), np.inf), np.arange(len(ends))
    with np.errstate(all="ignore"):
        energy, gradient = target.evaluate(ends)
        for _ in range(STEPS):
            steep = np.linalg.norm(gradient[active], axis=1).clip(1e-300)
            length[active] = np.minimum(length[active], reach / steep)
            moved = ends[active] - length[active, None] * gradient[active]
            outside = ~region.contains(moved)
            if outside.any():
                moved[outside] = region.nearest(moved[outside])
            energies, slopes = target.evaluate(moved)
            way = np.linalg.norm(moved - ends[active], axis=1)
            falls = energies <= energy[active] - ENOUGH * way**2 / length[active]
            lower = active[falls]
            ends[lower], energy[lower], gradient[lower] = moved[falls], energies[falls], slopes[falls]
            length[active] *= np.where(falls, GROWS, SHRINKS)
            active = active[way > ARRIVED * reach]
            if not len(active):
                break
    return ends
