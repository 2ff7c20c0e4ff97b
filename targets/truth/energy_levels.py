"""The law of the energy of a target in one or two dimensions: both tails, by quadrature over the sets {U ≤ u}."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
import scipy
from numpy.typing import NDArray

from toolkit.errors import check_array
from toolkit.problem import EnergyAccuracy

from .cells import halved, refined_axis, rule
from .quantiles import check_probabilities

Array = NDArray[np.float64]
Energies = Callable[[Array], Array]  # (n, dim) → (n,)
Tails = Callable[..., tuple[float, float]]

BOTH_TAILS = EnergyAccuracy(1e-6, 0.0)  # of all that is solved by tails which are right relative to themselves

ORDER, LOWER_ORDER, ORDER_WITHIN = 8, 5, 5
# Difference of the two orders on a panel, as a share of its mass, or of the smaller tail at its energy by the number of
# panels; the higher one's own error is far smaller.
RESOLVED = 1e-6
LIGHT = 1e-20  # share of the whole below which a panel is left as it is
# Change of a tail, of itself and of all cells without regard to sign, when those cut by the edge of {U ≤ u} are split
# once more: what is left is a tenth of it, of which most cancels. Rough: to begin the search for a quantile.
AGREE, ROUGH = {1: 1e-9, 2: 1e-6}, 1e-2
# Rounding of energies that a small tail may show; splits without a smaller change, and how large it may then be.
NOISE, PATIENCE, STALLED = 1e-14, 3, 1e-4
MOST_PANELS, MOST_CUT, DEEPEST = 1 << 18, 1 << 19, 60
ROUNDING = {1: 4e-16, 2: 1e-14}  # range of energies in a panel, as a share of their size, that is rounding
STEPS, MOST_SPLIT, SOLVED, SMALLEST, MOST_SOLVED = 60, 1 << 12, 1e-7, 1e-300, 200
ACROSS, FAR, MOST_WIDER = {1: 256, 2: 32}, 60.0, 40
SMALLEST_SLOPE, SPAN = 1e-9, 50.0
SIMPSON = np.array([1.0, 4.0, 1.0]) / 6.0
GENTLE, STRAIGHT = 0.08, 1e-3  # range of energies in a cell, and how they bend, where Simpson's rule is right to 1e-8


class WithEnergyLaw:
    """What a truth says of energies, from its ``law_of_energy``: quantiles, both tails, and how well."""

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
    """The law of the energy by a table: energies in order, the probability up to each, and how right it is."""

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
        return cls(energies, tuple(refined_axis(a, b, ACROSS[len(breaks)], inner) for a, b, inner in sides))

    @classmethod
    def about(cls, energies: Energies, low: Any, high: Any, breaks: Sequence[Any]) -> "EnergyLaw":
        """The law in that box made wider, until its rim lies 60 nats above the lowest energy where breaks meet."""
        low, high = np.array(low, np.float64), np.array(high, np.float64)
        along = np.linspace(0.0, 1.0, 257)[:, None]
        places = np.stack(np.meshgrid(*breaks, indexing="ij"), axis=-1).reshape(-1, len(breaks))
        least = float(energies(places).min())
        for _ in range(MOST_WIDER):
            narrow = []
            for d in range(low.size):
                for ends, end in ((low, 0), (high, 1)):
                    rim = low + (high - low) * along
                    rim[:, d] = ends[d]
                    narrow.append((d, end, float(energies(rim).min()) < least + FAR))
            if not any(is_narrow for *_, is_narrow in narrow):
                break
            step = 0.125 * (high - low)
            for d, end, is_narrow in narrow:
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
        settled, count = 0.0, 0
        while len(lows):
            fine, coarse = (self._masses(lows, widths, offset, order) for order in (ORDER, LOWER_ORDER))
            whole = settled + float(fine.sum())
            _, sizes, masses = (np.concatenate(part) for part in zip(*kept, (lows, widths, fine), strict=True))
            tail = smaller_tails(masses, sizes.prod(axis=1))[-len(fine) :]
            allowed = RESOLVED * np.maximum(fine, tail / len(masses))
            splits = (np.abs(fine - coarse) > allowed) & (np.maximum(fine, coarse) > LIGHT * whole)
            count += int((~splits).sum())
            if count + 2**self.dim * int(splits.sum()) > MOST_PANELS:
                raise ValueError(f"{MOST_PANELS} panels do not resolve the density over the window {scale.tolist()}")
            kept.append((lows[~splits], widths[~splits], fine[~splits]))
            settled += float(fine[~splits].sum())
            lows, widths = halved(lows[splits], widths[splits], scale)
        all_lows, all_widths, masses = (np.concatenate(part) for part in zip(*kept, strict=True))
        heavy = masses > LIGHT * settled
        all_lows, all_widths, masses = all_lows[heavy], all_widths[heavy], masses[heavy]
        lattice = self._lattice(all_lows, all_widths)
        return all_lows, all_widths, masses / settled, bounds(lattice), float(np.log(settled) - offset)

    def _masses(self, lows: Array, widths: Array, offset: float, order: int) -> Array:
        """∫ exp(offset − U) over each panel."""
        places, weights = rule(order, self.dim)
        points = (lows[:, None] + widths[:, None] * places).reshape(-1, self.dim)
        with np.errstate(under="ignore"):
            density = np.exp(offset - self.energies(points).reshape(len(lows), -1))
        return np.asarray(widths.prod(axis=1) * (density @ weights))

    def _lattice(self, lows: Array, widths: Array) -> Array:
        """Energies at the corners, middles of sides and middle of each panel, (panels, 3, 3), or (panels, 3)."""
        ticks = np.stack(np.meshgrid(*[[0.0, 0.5, 1.0]] * self.dim, indexing="ij"), axis=-1).reshape(-1, self.dim)
        points = (lows[:, None] + widths[:, None] * ticks).reshape(-1, self.dim)
        return self.energies(points).reshape(len(lows), *[3] * self.dim)

    def tails(self, level: float, agree: float | None = None) -> tuple[float, float]:
        """P(U ≤ level) and P(U > level); agree: when to stop, by the change of the smaller one."""
        agree = AGREE[self.dim] if agree is None else agree
        lows, widths, masses, (lowest, highest), log_normaliser = self._panels
        below, above = float(masses[highest <= level].sum()), float(masses[lowest > level].sum())
        cut = (lowest <= level) & (level < highest)
        lows, widths = lows[cut], widths[cut]
        guess = np.stack([masses[cut], masses[cut]])  # of both parts: no agreement is expected of whole panels
        least, stalled, calm = np.inf, 0, 0
        size = max(1.0, abs(level))
        noise, level = NOISE * size / max(level - self.lowest, NOISE), level + log_normaliser
        for _ in range(DEEPEST):
            if not len(lows):
                break
            lows, widths = quartered(lows, widths, self._scale)
            lattice = self._lattice(lows, widths) + log_normaliser
            low, high = bounds(lattice)
            parts = cut_parts(lattice, level) * widths.prod(axis=1)
            aside = (high <= level) | (low > level)
            if aside.any():
                whole = widths[aside].prod(axis=1) * averaged(np.exp(-lattice[aside]), None)
                steep = ((high - low)[aside] > GENTLE) | (bends(lattice[aside]) > STRAIGHT)
                some = np.flatnonzero(aside)[steep]
                if some.size:
                    whole[steep] = self._masses(lows[some], widths[some], -log_normaliser, ORDER_WITHIN)
                parts[:, aside] = np.where(high[aside] <= level, [whole, 0.0 * whole], [0.0 * whole, whole])
            families = parts.reshape(2, len(guess[0]), -1).sum(axis=2)
            change = np.abs(families - guess).max(axis=0)
            tail = min(below + float(parts[0].sum()), above + float(parts[1].sum()))
            off = float(change.sum())
            stalled = stalled + 1 if off > 0.7 * least else 0
            least = min(off, least)
            calm = calm + 1 if off <= max(agree, 0.3 * noise) * tail else 0
            ends = calm > 1 or len(lows) > MOST_CUT or (stalled > PATIENCE and off < max(noise, STALLED) * tail)
            tiny = high - low <= ROUNDING[self.dim] * size
            done = aside | tiny | ends
            if self.dim > 1 and off < 0.1 * tail:  # a tail is a measure once it is known
                seen = (families > 0.0).all(axis=0)  # 0: the edge has not shown yet
                done |= np.repeat(seen & (change <= 0.25 * agree * tail / len(change)), 2**self.dim)
            below, above = below + float(parts[0, done].sum()), above + float(parts[1, done].sum())
            lows, widths, guess = lows[~done], widths[~done], parts[:, ~done]
        return below + float(guess[0].sum() * len(lows[:1])), above + float(guess[1].sum() * len(lows[:1]))

    def quantiles(self, probabilities: Array) -> Array:
        """Energies u with P(U ≤ u) = p, of any shape."""
        highest = float(self._panels[3][1].max())  # above which there is no mass but for rounding
        return quantiles_by(self.tails, probabilities, self.lowest, highest, agree=ROUGH)

    def tails_at(self, levels: Array) -> tuple[Array, Array]:
        """P(U ≤ u) and P(U > u) for each u of ``levels``, of its shape."""
        return tails_at(self.tails, levels)

    @cached_property
    def lowest(self) -> float:
        """The lowest energy: panels that may hold a lower one than is known are split until none does."""
        lows, widths, _, (low, _), _ = self._panels
        found = float(self._lattice(lows, widths).min())
        for _ in range(STEPS):
            best = np.flatnonzero(low < found - ROUNDING[1] * max(1.0, abs(found)))
            if not best.size:
                break
            best = best[np.argsort(low[best], kind="stable")[:MOST_SPLIT]]
            lows, widths = quartered(lows[best], widths[best], self._scale)
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


def tails_at(tails: Tails, levels: Array) -> tuple[Array, Array]:
    """P(U ≤ u) and P(U > u) for each u of ``levels``, of its shape."""
    found = np.array([tails(float(level)) for level in levels.ravel()]).reshape(-1, 2)
    return found[:, 0].reshape(levels.shape), found[:, 1].reshape(levels.shape)


def quantiles_by(
    tails: Tails, probabilities: Array, low: float, high: float, nearest: float | None = None, **rough: float
) -> Array:
    """Energies u with P(U ≤ u) = p, each found by the smaller of the two ``tails``, from ``low`` for 0 to inf for 1.

    tails: level → P(U ≤ level), P(U > level), where both are right relative to themselves. high: an energy above
    which there is nothing but rounding. nearest: to ``low``, where a quantile is looked for; None: what float64 tells
    from it. rough: what ``tails`` takes to be fast and right to a percent. Of more than
    200 probabilities, 200 are solved for, and the others are between them by a monotone cubic in log p / (1 − p), to
    1e-3 of the tail.
    """
    wanted = np.unique(probabilities)
    inner = wanted[(wanted > 0.0) & (wanted < 1.0)]
    knots = inner
    if inner.size > MOST_SOLVED:
        odds = np.linspace(scipy.special.logit(inner[0]), scipy.special.logit(inner[-1]), MOST_SOLVED)
        knots = scipy.special.expit(odds)
    solved = np.array([quantile_by(tails, float(p), low, high, nearest, **rough) for p in knots])
    if knots is not inner:
        solved = scipy.interpolate.PchipInterpolator(scipy.special.logit(knots), solved)(
            np.clip(scipy.special.logit(inner), *scipy.special.logit(knots[[0, -1]]))
        )
    levels = np.concatenate([np.full((wanted <= 0.0).sum(), low), solved, np.full((wanted >= 1.0).sum(), np.inf)])
    return np.asarray(levels[np.searchsorted(wanted, probabilities)])


def quantile_by(
    tails: Tails, probability: float, low: float, high: float, nearest: float | None, **rough: float
) -> float:
    """One of ``quantiles_by``: the root of the log of the tail over what is wanted, first in rough.

    The lower tail falls to 0 as a power of u − low, and is solved for in its logarithm, the upper one in u.
    """
    side = 1 if probability > 0.5 else 0
    wanted = 1.0 - probability if side else probability
    nearest = ROUNDING[1] * max(1.0, abs(low)) if nearest is None else nearest
    left, right = (low, high) if side else (float(np.log(nearest)), float(np.log(max(high - low, 2.0 * nearest))))

    def level_of(place: float) -> float:
        return place if side else low + float(np.exp(place))

    def excess(place: float, **how: float) -> float:
        return float(np.log(max(tails(level_of(place), **how)[side], SMALLEST) / wanted))

    if (excess(right, **rough) > 0.0) == (excess(left, **rough) > 0.0):
        return high if side else low  # the tail wanted is all beyond, or less than rounding
    begin = scipy.optimize.brentq(partial(excess, **rough), left, right, xtol=1e-4 * (right - left), rtol=1e-4)
    here, step = excess(begin), 1e-3 * (right - left)
    up = (here > 0.0) == bool(side)  # where the tail is too large: an upper one falls with the level
    while abs(here) > SOLVED and step < 4.0 * (right - left):
        other = min(begin + step, right) if up else max(begin - step, left)
        there = excess(other)
        if (there > 0.0) != (here > 0.0):
            return level_of(between(excess, (begin, here), (other, there)))
        begin, here, step = other, there, 4.0 * step
    return level_of(begin)


def between(excess: Callable[[float], float], one: tuple[float, float], other: tuple[float, float]) -> float:
    """The root of ``excess`` between two places with values of two signs, by the Illinois method, to ``SOLVED``."""
    (a, at_a), (b, at_b) = one, other
    for _ in range(STEPS):
        middle = b - at_b * (b - a) / (at_b - at_a)
        at_middle = excess(middle)
        if abs(at_middle) < SOLVED or middle in (a, b):
            return middle
        if (at_middle > 0.0) == (at_b > 0.0):
            at_a *= 0.5
        else:
            a, at_a = b, at_b
        b, at_b = middle, at_middle
    return b


def quartered(lows: Array, widths: Array, scale: Array) -> tuple[Array, Array]:
    """Every panel cut into 2^dim parts, which follow one another: in the middles, or a long one along its length.

    Long is more than twice as long as wide, in units of ``scale`` (dim,).
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


def bounds(lattice: Array) -> tuple[Array, Array]:
    """Bounds (panels,) of the energies in panels with values (panels, 3, 3) or (panels, 3), each twice as wide as seen.

    A function that a parabola resembles leaves the range of its three values by a quarter of their second difference
    at most in each coordinate.
    """
    flat = lattice.reshape(len(lattice), -1)
    low, high = flat.min(axis=1), flat.max(axis=1)
    slack = 0.5 * bends(lattice)
    with np.errstate(invalid="ignore"):
        return low - np.nan_to_num(slack, nan=np.inf), high + np.nan_to_num(slack, nan=np.inf)


def bends(lattice: Array) -> Array:
    """Sum over the coordinates of the largest second difference of each panel's values, (panels,)."""
    total = np.zeros(len(lattice))
    for axis in range(1, lattice.ndim):
        total += np.abs(np.diff(lattice, 2, axis=axis)).reshape(len(lattice), -1).max(axis=1)
    return total


def cut_parts(lattice: Array, level: float) -> Array:
    """Mean of exp(−U) over the parts U ≤ level and U > level of panels with values ``lattice``, (2, panels).

    For U linear in a panel, of mean m and rises a_d across it, in closed form: with s_k = Σ ± a_d / 2 the part up to
    ``level`` is e^−m / Π a_d · Σ_k ± e^−s_k P(dim, level − m − s_k), P the regularised incomplete gamma function. What
    U bends moves the edge, by the integral of its second-order part along the straight edge, to first order.
    """
    dim = lattice.ndim - 1
    mean = averaged(lattice, None)
    rises = [averaged(np.diff(lattice[(slice(None), *ends(d, dim))], axis=d + 1), d) for d in range(dim)]
    signs = [np.where(rise < 0.0, -1.0, 1.0) for rise in rises]
    rises = [np.abs(rise) for rise in rises]
    largest = np.maximum(np.max(rises, axis=0), SMALLEST_SLOPE)
    rises = [np.maximum(rise, 1e-5 * largest) for rise in rises]
    reach = level - mean
    below, whole = np.zeros(len(lattice)), np.ones(len(lattice))
    for corner in np.ndindex(*[2] * dim):
        start = sum((which - 0.5) * rise for which, rise in zip(corner, rises, strict=True))
        below += (-1.0) ** sum(corner) * np.exp(-start) * scipy.special.gammainc(dim, np.maximum(reach - start, 0.0))
    for rise in rises:
        below /= rise
        whole *= np.sinh(0.5 * rise) / (0.5 * rise)
    curves = [4.0 * averaged(np.diff(lattice, 2, axis=d + 1), d) for d in range(dim)]
    if dim == 1:
        place = reach / rises[0]
        moved = np.where(np.abs(place) < 0.5, 0.5 * curves[0] * (place**2 - 1.0 / 12.0) / rises[0], 0.0)
    else:
        twist = lattice[:, 2, 2] - lattice[:, 2, 0] - lattice[:, 0, 2] + lattice[:, 0, 0]
        twist = twist * signs[0] * signs[1]
        moved = along_edge(reach, rises[0], rises[1], curves[0], curves[1], twist)
    below = np.clip(below - np.exp(-np.clip(reach, -SPAN, SPAN)) * moved, 0.0, whole)
    below = np.where(reach >= 0.5 * sum(rises), whole, below)
    return np.exp(-mean) * np.stack([below, whole - below])


def ends(d: int, dim: int) -> tuple[slice, ...]:
    """What takes the two ends of a lattice in coordinate ``d``."""
    return tuple(slice(None, None, 2) if other == d else slice(None) for other in range(dim))


def averaged(lattice: Array, without: int | None) -> Array:
    """Means (panels,) by Simpson's rule, but in the coordinate ``without``, which has one value."""
    for d in reversed(range(lattice.ndim - 1)):
        lattice = lattice[..., 0] if d == without else lattice @ SIMPSON
    return lattice


def along_edge(reach: Array, a: Array, b: Array, bend_a: Array, bend_b: Array, twist: Array) -> Array:
    """∫ q δ(reach − a ξ − b η) over the unit square about 0.

    q = ½ bend_a (ξ² − 1/12) + ½ bend_b (η² − 1/12) + twist ξη. All (panels,), a and b > 0. Along the edge, by the
    coordinate in which U rises less, two nodes of Gauss are exact.
    """
    swaps = a > b
    a, b = np.where(swaps, b, a), np.where(swaps, a, b)
    bend_a, bend_b = np.where(swaps, bend_b, bend_a), np.where(swaps, bend_a, bend_b)
    low, high = np.clip((reach - 0.5 * b) / a, -0.5, 0.5), np.clip((reach + 0.5 * b) / a, -0.5, 0.5)
    total = np.zeros(len(a))
    for node in (-1.0, 1.0):
        x = 0.5 * (low + high) + node / np.sqrt(12.0) * (high - low)
        y = (reach - a * x) / b
        total += 0.5 * bend_a * (x**2 - 1.0 / 12.0) + 0.5 * bend_b * (y**2 - 1.0 / 12.0) + twist * x * y
    return np.where(high > low, 0.5 * (high - low) * total / b, 0.0)
