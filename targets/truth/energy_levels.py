"""The law of the energy of a target in one or two dimensions: both tails, by quadrature over the sets {U ≤ u}."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy
from numba import types

from toolkit._compiler import FLOATS, MATRIX, compile_part
from toolkit.errors import check_array
from toolkit.problem import EnergyAccuracy

from ..arrays import Array
from .cells import axis_edges, halve_panels, points_in_panels, tensor_rule
from .quantiles import check_probabilities
from .tail_quantiles import LEVEL_ROUNDING, quantiles_from_tails, tails_at

Energies = Callable[[Array], Array]  # (n, dim) → (n,)

BOTH_TAILS = EnergyAccuracy(1e-6, 0.0)  # of quantiles solved from tails with a small relative error

ORDER, LOWER_ORDER, ORDER_WITHIN = 8, 5, 5
# Largest difference of the two orders on a panel, as a share of its mass, or of the smaller tail at its energy over the
# number of panels. The error of the higher order is far smaller.
PANEL_TOLERANCE = 1e-6
NEGLIGIBLE_MASS = 1e-20  # share of the whole below which a panel is left as it is
# Largest relative change of a tail, and sum of the absolute changes of all cells, when the cells that the edge of
# {U ≤ u} cuts are split once more; the remaining error is a tenth of it. Rough: for the start of a quantile's search.
TAIL_TOLERANCE, ROUGH_TOLERANCE = {1: 1e-9, 2: 1e-6}, 1e-2
# Rounding of energies in a small tail; number of splits without progress, and the change that is then accepted.
TAIL_ROUNDING, MAX_STALLED_SPLITS, STALLED_TOLERANCE = 1e-14, 3, 1e-4
MAX_PANELS, MAX_CUT_PANELS, MAX_DEPTH = 1 << 18, 1 << 19, 60
ENERGY_ROUNDING = {
    1: LEVEL_ROUNDING,
    2: 1e-14,
}  # range of energies in a panel, as a share of their size, that is rounding
MAX_STEPS, MAX_SPLIT = 60, 1 << 12
PANELS_ACROSS, WINDOW_DEPTH, MAX_WIDENINGS = {1: 256, 2: 32}, 60.0, 40
MIN_SLOPE, MAX_EXPONENT = 1e-9, 50.0
SIMPSON = np.array([1.0, 4.0, 1.0]) / 6.0
SIMPSON_RANGE, SIMPSON_BEND = (
    0.08,
    1e-3,
)  # range of energies in a cell, and how they bend, where Simpson's rule is right to 1e-8


class WithEnergyLaw:
    """Quantiles and tails of the energy, and their accuracy, from a truth's ``law_of_energy``."""

    law_of_energy: Any

    def energy_quantiles(self, probabilities: Any) -> Array:
        """Energies u with P(U ≤ u) = p."""
        found: Array = self.law_of_energy.quantiles(check_probabilities(probabilities))
        return found

    def energy_tails(self, energies: Any) -> tuple[Array, Array]:
        """P(U ≤ u) and P(U > u) for each u of ``energies``, of its shape."""
        found: tuple[Array, Array] = self.law_of_energy.tails_at(check_array("energies", energies))
        return found

    @property
    def energy_accuracy(self) -> EnergyAccuracy:
        """Of energy quantiles."""
        found: EnergyAccuracy = self.law_of_energy.accuracy
        return found


@dataclass(frozen=True, eq=False)
class EnergyTable:
    """The law of the energy by a table: sorted energies, the probability up to each, and the accuracy."""

    energies: Array
    below: Array
    accuracy: EnergyAccuracy

    def quantiles(self, probabilities: Array) -> Array:
        """Energies u with P(U ≤ u) = p, of any shape."""
        return np.asarray(np.interp(probabilities, self.below, self.energies))

    def tails_at(self, levels: Array) -> tuple[Array, Array]:
        """P(U ≤ u) and P(U > u) for each u of ``levels``, of its shape."""
        share = np.asarray(np.interp(levels, self.energies, self.below, 0.0, 1.0))
        return share, 1.0 - share


@dataclass(frozen=True, eq=False)
class EnergyLaw:
    """P(U ≤ u) and P(U > u) for density ∝ exp(−U) in a box, each to some 1e-7 of itself, as far down as 1e-12.

    energies: (n, dim) → (n,). axes: edges of the first panels, one increasing array per coordinate, the box's ends
    included; every mode must lie in a panel no wider than a few of its widths. The density beyond the box counts as
    nothing. Panels that lie on one side of {U ≤ u} have their mass by Gauss–Legendre; those that its edge cuts are
    split, and where U is as good as quadratic, have both parts in closed form.
    """

    energies: Energies
    axes: tuple[Array, ...]

    accuracy: ClassVar[EnergyAccuracy] = BOTH_TAILS

    @classmethod
    def within(cls, energies: Energies, low: Any, high: Any, breaks: Sequence[Any]) -> "EnergyLaw":
        """The law in the box from ``low`` to ``high``, each (dim,).

        breaks: of each coordinate, edges of panels, so that every mode lies at one and is no narrower than a part of
        them.
        """
        sides = zip(low, high, breaks, strict=True)
        return cls(energies, tuple(axis_edges(a, b, PANELS_ACROSS[len(breaks)], inner) for a, b, inner in sides))

    @classmethod
    def about(cls, energies: Energies, low: Any, high: Any, breaks: Sequence[Any]) -> "EnergyLaw":
        """The law in that box made wider, until its rim lies 60 nats above the lowest energy where breaks meet."""
        low, high = np.array(low, np.float64), np.array(high, np.float64)
        along = np.linspace(0.0, 1.0, 257)[:, None]
        places = np.stack(np.meshgrid(*breaks, indexing="ij"), axis=-1).reshape(-1, len(breaks))
        least = float(energies(places).min())
        for _ in range(MAX_WIDENINGS):
            sides = []
            for d in range(low.size):
                for corner, end in ((low, 0), (high, 1)):
                    rim = low + (high - low) * along
                    rim[:, d] = corner[d]
                    sides.append((d, end, float(energies(rim).min()) < least + WINDOW_DEPTH))
            if not any(is_narrow for *_, is_narrow in sides):
                break
            step = 0.125 * (high - low)
            for d, end, is_narrow in sides:
                if is_narrow:
                    (high if end else low)[d] += step[d] if end else -step[d]
        return cls.within(energies, low, high, breaks)

    @property
    def dim(self) -> int:
        """1 or 2."""
        return len(self.axes)

    @property
    def _scale(self) -> Array:
        """Lengths of the box, (dim,)."""
        return np.array([axis[-1] - axis[0] for axis in self.axes])

    @cached_property
    def _panels(self) -> tuple[Array, Array, Array, tuple[Array, Array], float]:
        """Lows, widths and masses of the panels, which sum to 1, bounds of their energies, (panels, 2), and log Z."""
        scale = self._scale
        lows = np.stack(np.meshgrid(*[a[:-1] for a in self.axes], indexing="ij"), axis=-1).reshape(-1, self.dim)
        widths = np.stack(np.meshgrid(*map(np.diff, self.axes), indexing="ij"), axis=-1).reshape(-1, self.dim)
        offset = float(self.energies(lows + 0.5 * widths).min())
        kept: list[tuple[Array, Array, Array]] = []
        done_mass, count = 0.0, 0
        while len(lows):
            fine, coarse = (self._masses(lows, widths, offset, order) for order in (ORDER, LOWER_ORDER))
            whole = done_mass + float(fine.sum())
            _, sizes, masses = (np.concatenate(part) for part in zip(*kept, (lows, widths, fine), strict=True))
            tail = smaller_tails(masses, sizes.prod(axis=1))[-len(fine) :]
            allowed = PANEL_TOLERANCE * np.maximum(fine, tail / len(masses))
            splits = (np.abs(fine - coarse) > allowed) & (np.maximum(fine, coarse) > NEGLIGIBLE_MASS * whole)
            count += int((~splits).sum())
            if count + 2**self.dim * int(splits.sum()) > MAX_PANELS:
                raise ValueError(f"{MAX_PANELS} panels do not resolve the density over the window {scale.tolist()}")
            kept.append((lows[~splits], widths[~splits], fine[~splits]))
            done_mass += float(fine[~splits].sum())
            lows, widths = halve_panels(lows[splits], widths[splits], scale)
        all_lows, all_widths, masses = (np.concatenate(part) for part in zip(*kept, strict=True))
        heavy = masses > NEGLIGIBLE_MASS * done_mass
        all_lows, all_widths, masses = all_lows[heavy], all_widths[heavy], masses[heavy]
        lattice = self._lattice(all_lows, all_widths)
        return all_lows, all_widths, masses / done_mass, bounds(lattice)[:2], float(np.log(done_mass) - offset)

    def _masses(self, lows: Array, widths: Array, offset: float, order: int) -> Array:
        """∫ exp(offset − U) over each panel."""
        places, weights = tensor_rule(order, self.dim)
        points = points_in_panels(lows, widths, places)
        with np.errstate(under="ignore"):
            density = np.exp(offset - self.energies(points).reshape(len(lows), -1))
        return np.asarray(widths.prod(axis=1) * (density @ weights))

    def _lattice(self, lows: Array, widths: Array) -> Array:
        """Energies at the corners, middles of sides and middle of each panel, (panels, 3, 3), or (panels, 3)."""
        ticks = np.stack(np.meshgrid(*[[0.0, 0.5, 1.0]] * self.dim, indexing="ij"), axis=-1).reshape(-1, self.dim)
        points = points_in_panels(lows, widths, ticks)
        return self.energies(points).reshape(len(lows), *[3] * self.dim)

    def tails(self, level: float, tolerance: float | None = None) -> tuple[float, float]:
        """P(U ≤ level) and P(U > level); tolerance: when to stop, by the change of the smaller one."""
        tolerance = TAIL_TOLERANCE[self.dim] if tolerance is None else tolerance
        lows, widths, masses, (lowest, highest), log_normaliser = self._panels
        below, above = float(masses[highest <= level].sum()), float(masses[lowest > level].sum())
        cut = (lowest <= level) & (level < highest)
        lows, widths = lows[cut], widths[cut]
        guess = np.stack([masses[cut], masses[cut]])  # for both parts: whole panels do not agree with their first split
        smallest_change, stalled, agreements = np.inf, 0, 0
        size = max(1.0, abs(level))
        noise, level = TAIL_ROUNDING * size / max(level - self.lowest, TAIL_ROUNDING), level + log_normaliser
        for _ in range(MAX_DEPTH):
            if not len(lows):
                break
            lows, widths = split_in_four(lows, widths, self._scale)
            lattice = self._lattice(lows, widths) + log_normaliser
            low, high, bends = bounds(lattice)
            is_below, is_above = high <= level, low > level
            uncut = is_below | is_above
            parts, volumes = np.zeros((2, len(lows))), widths.prod(axis=1)
            parts[:, ~uncut] = cut_panel_masses(lattice[~uncut], level) * volumes[~uncut]
            if uncut.any():
                whole = volumes[uncut] * simpson_mean(np.exp(-lattice[uncut]), None)
                not_smooth = ((high - low)[uncut] > SIMPSON_RANGE) | (bends[uncut] > SIMPSON_BEND)
                to_integrate = np.flatnonzero(uncut)[not_smooth]
                if to_integrate.size:
                    whole[not_smooth] = self._masses(
                        lows[to_integrate], widths[to_integrate], -log_normaliser, ORDER_WITHIN
                    )
                parts[0, is_below], parts[1, is_above] = whole[is_below[uncut]], whole[~is_below[uncut]]
            parent_parts = parts.reshape(2, len(guess[0]), -1).sum(axis=2)
            change = np.abs(parent_parts - guess).max(axis=0)
            tail = min(below + float(parts[0].sum()), above + float(parts[1].sum()))
            total_change = float(change.sum())
            stalled = stalled + 1 if total_change > 0.7 * smallest_change else 0
            smallest_change = min(total_change, smallest_change)
            agreements = agreements + 1 if total_change <= max(tolerance, 0.3 * noise) * tail else 0
            ends = (
                agreements > 1
                or len(lows) > MAX_CUT_PANELS
                or (stalled > MAX_STALLED_SPLITS and total_change < max(noise, STALLED_TOLERANCE) * tail)
            )
            is_rounding = high - low <= ENERGY_ROUNDING[self.dim] * size
            done = uncut | is_rounding | ends
            if self.dim > 1 and total_change < 0.1 * tail:  # only where the tail is known well enough to be a tolerance
                both_present = (parent_parts > 0.0).all(
                    axis=0
                )  # a part of 0: the edge of {U ≤ u} has not been found in it yet
                done |= np.repeat(both_present & (change <= 0.25 * tolerance * tail / len(change)), 2**self.dim)
            below, above = below + float(parts[0, done].sum()), above + float(parts[1, done].sum())
            lows, widths, guess = lows[~done], widths[~done], parts[:, ~done]
        return below + float(guess[0].sum() * len(lows[:1])), above + float(guess[1].sum() * len(lows[:1]))

    def quantiles(self, probabilities: Array) -> Array:
        """Energies u with P(U ≤ u) = p, of any shape."""
        highest = float(self._panels[3][1].max())  # above which there is no mass but for rounding
        return quantiles_from_tails(self.tails, probabilities, self.lowest, highest, tolerance=ROUGH_TOLERANCE)

    def tails_at(self, levels: Array) -> tuple[Array, Array]:
        """P(U ≤ u) and P(U > u) for each u of ``levels``, of its shape."""
        return tails_at(self.tails, levels)

    @cached_property
    def lowest(self) -> float:
        """The lowest energy: panels that may contain a lower one than the best are split until none does."""
        lows, widths, _, (low, _), _ = self._panels
        found = float(self._lattice(lows, widths).min())
        for _ in range(MAX_STEPS):
            best = np.flatnonzero(low < found - LEVEL_ROUNDING * max(1.0, abs(found)))
            if not best.size:
                break
            best = best[np.argsort(low[best], kind="stable")[:MAX_SPLIT]]
            lows, widths = split_in_four(lows[best], widths[best], self._scale)
            lattice = self._lattice(lows, widths)
            low, found = bounds(lattice)[0], min(found, float(lattice.min()))
        return found


def smaller_tails(masses: Array, volumes: Array) -> Array:
    """The smaller of the masses up to and from the energy of each panel, −log of its mean density, (panels,)."""
    with np.errstate(divide="ignore"):
        order = np.argsort(np.log(volumes) - np.log(masses))
    below, above = np.cumsum(masses[order]), np.cumsum(masses[order][::-1])[::-1]
    tails = np.empty(len(masses))
    tails[order] = np.minimum(below, above)
    return tails


def split_in_four(lows: Array, widths: Array, scale: Array) -> tuple[Array, Array]:
    """Every panel cut into 2^dim equal parts, in order: halved in each coordinate, or a long one along its length.

    Long: more than twice as long as wide, in units of ``scale`` (dim,).
    """
    dim, sides = lows.shape[1], widths / scale
    pieces = np.full(widths.shape, 2)
    if dim > 1:
        pieces[sides[:, 0] > 2.0 * sides[:, 1]] = 4, 1
        pieces[sides[:, 1] > 2.0 * sides[:, 0]] = 1, 4
    number = np.arange(2**dim)
    which = np.stack([number % pieces[:, :1], number // pieces[:, :1]], axis=-1)[:, :, :dim]
    widths = widths / pieces
    return (lows[:, None] + widths[:, None] * which).reshape(-1, dim), np.repeat(widths, 2**dim, axis=0)


def bounds(lattice: Array) -> tuple[Array, Array, Array]:
    """Bounds of the energies in panels with values (panels, 3, 3) or (panels, 3), and how they bend, each (panels,).

    The bounds are twice as wide as seen: a function that a parabola resembles leaves the range of its three values by
    a quarter of their second difference at most in each coordinate. Bend: the sum over the coordinates of the largest
    second difference.
    """
    low, high, bends = np.empty((3, len(lattice)))
    measure = compile_part(measure_lattices, types.void(MATRIX, FLOATS, FLOATS, FLOATS))
    measure(np.ascontiguousarray(lattice.reshape(len(lattice), 3 ** (lattice.ndim - 1))), low, high, bends)
    slack = np.nan_to_num(0.5 * bends, nan=np.inf)
    with np.errstate(invalid="ignore"):
        return low - slack, high + slack, bends


def measure_lattices(lattices: Any, low: Any, high: Any, bends: Any) -> None:
    """Lowest and highest value and bend of each row of 3^dim values; nan where a value is."""
    n = lattices.shape[1]
    for i in range(lattices.shape[0]):
        values = lattices[i]
        least, most, total, stride = values[0], values[0], 0.0, n // 3
        for j in range(1, n):
            least = values[j] if values[j] < least or values[j] != values[j] else least
            most = values[j] if values[j] > most or values[j] != values[j] else most
        while stride > 0:  # of each coordinate
            largest = 0.0
            for j in range(n):
                if j // stride % 3 == 0:
                    first, middle, last = values[j], values[j + stride], values[j + 2 * stride]
                    bend = abs((last - middle) - (middle - first))
                    largest = bend if bend > largest or bend != bend else largest
            total += largest
            stride //= 3
        low[i], high[i], bends[i] = least, most, total


def cut_panel_masses(lattice: Array, level: float) -> Array:
    """Mean of exp(−U) over the parts U ≤ level and U > level of panels with values ``lattice``, (2, panels).

    For U linear in a panel, of mean m and rises a_d across it, in closed form: with s_k = Σ ± a_d / 2 the part up to
    ``level`` is e^−m / Π a_d · Σ_k ± e^−s_k P(dim, level − m − s_k), P the regularised incomplete gamma function. What
    U bends moves the edge, by the integral of its second-order part along the straight edge, to first order.
    """
    dim = lattice.ndim - 1
    mean = simpson_mean(lattice, None)
    rises = [simpson_mean(np.diff(lattice[(slice(None), *end_slices(d, dim))], axis=d + 1), d) for d in range(dim)]
    signs = [np.where(rise < 0.0, -1.0, 1.0) for rise in rises]
    rises = [np.abs(rise) for rise in rises]
    largest = np.maximum(np.max(rises, axis=0), MIN_SLOPE)
    rises = [np.maximum(rise, 1e-5 * largest) for rise in rises]
    reach = level - mean
    below, whole = np.zeros(len(lattice)), np.ones(len(lattice))
    for corner in np.ndindex(*[2] * dim):
        start = sum((which - 0.5) * rise for which, rise in zip(corner, rises, strict=True))
        below += (-1.0) ** sum(corner) * np.exp(-start) * scipy.special.gammainc(dim, np.maximum(reach - start, 0.0))
    for rise in rises:
        below /= rise
        whole *= np.sinh(0.5 * rise) / (0.5 * rise)
    curves = [4.0 * simpson_mean(np.diff(lattice, 2, axis=d + 1), d) for d in range(dim)]
    if dim == 1:
        place = reach / rises[0]
        edge_shift = np.where(np.abs(place) < 0.5, 0.5 * curves[0] * (place**2 - 1.0 / 12.0) / rises[0], 0.0)
    else:
        mixed_difference = lattice[:, 2, 2] - lattice[:, 2, 0] - lattice[:, 0, 2] + lattice[:, 0, 0]
        mixed_difference = mixed_difference * signs[0] * signs[1]
        edge_shift = edge_correction(reach, rises[0], rises[1], curves[0], curves[1], mixed_difference)
    below = np.clip(below - np.exp(-np.clip(reach, -MAX_EXPONENT, MAX_EXPONENT)) * edge_shift, 0.0, whole)
    below = np.where(reach >= 0.5 * sum(rises), whole, below)
    return np.exp(-mean) * np.stack([below, whole - below])


def end_slices(d: int, dim: int) -> tuple[slice, ...]:
    """Slices that take the two ends of a lattice in coordinate ``d``."""
    return tuple(slice(None, None, 2) if other == d else slice(None) for other in range(dim))


def simpson_mean(lattice: Array, without: int | None) -> Array:
    """Means (panels,) by Simpson's rule, but in the coordinate ``without``, which has one value."""
    for d in reversed(range(lattice.ndim - 1)):
        lattice = lattice[..., 0] if d == without else lattice @ SIMPSON
    return lattice


def edge_correction(
    reach: Array, a: Array, b: Array, second_a: Array, second_b: Array, mixed_difference: Array
) -> Array:
    """∫ q δ(reach − a ξ − b η) over the unit square about 0.

    q = ½ bend_a (ξ² − 1/12) + ½ bend_b (η² − 1/12) + twist ξη. All (panels,), a and b > 0. Along the edge, by the
    coordinate in which U rises less, two nodes of Gauss are exact.
    """
    swap_axes = a > b
    a, b = np.where(swap_axes, b, a), np.where(swap_axes, a, b)
    second_a, second_b = np.where(swap_axes, second_b, second_a), np.where(swap_axes, second_a, second_b)
    low, high = np.clip((reach - 0.5 * b) / a, -0.5, 0.5), np.clip((reach + 0.5 * b) / a, -0.5, 0.5)
    total = np.zeros(len(a))
    for node in (-1.0, 1.0):
        x = 0.5 * (low + high) + node / np.sqrt(12.0) * (high - low)
        y = (reach - a * x) / b
        total += 0.5 * second_a * (x**2 - 1.0 / 12.0) + 0.5 * second_b * (y**2 - 1.0 / 12.0) + mixed_difference * x * y
    return np.where(high > low, 0.5 * (high - low) * total / b, 0.0)
