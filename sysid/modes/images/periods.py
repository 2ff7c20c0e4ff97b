"""Periods of a posterior: shifts of an angle, or of a time in a drive, that leave the energy as it is.

In sin(ωt + φ) the phase φ may grow by 2π, and in sin(ω(t − τ)) the delay τ by 2π/ω. Under a flat prior the modes then
repeat without end, and the posterior is no density. Half a period may change the sign alone, which an amplitude can
undo.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ...arrays import Array, Bools
from ..laplace import Contains, Evaluate, allowed_energies
from ..search import SAME, Mode, weighed
from .symmetries import N_CONFIRMATIONS, SPREAD, is_same

CONSTANTS = (2.0 * math.pi, 1.0, 360.0)  # periods of an angle in radians, in turns and in degrees
# Modes are known to 1e-4 standard deviations, by which their distance moves an energy by less than 1e-3 nats.
DISTANCE_TOLERANCE = 1e-3  # nats
MOST_REPEATS = 1_000  # periods between two modes


class Kinds(NamedTuple):
    """What the entries of a position are, each (q,).

    log: logarithms. system: parameters of the system. flat: parameters with a flat prior. scales: standard deviations
    or dispersions of errors.
    """

    log: Bools
    system: Bools
    flat: Bools
    scales: Bools


class Period(NamedTuple):
    """A shift of entry ``number``, by ``size`` × (the parameter of entry ``of``) to the power ``power``.

    of: −1 where the shift is a constant. by_log: whether entry ``of`` is a logarithm.
    """

    number: int
    size: float
    of: int = -1
    power: int = 0
    by_log: bool = False

    def length(self, points: Array) -> Array:
        """The shifts (…) of ``points`` (…, q)."""
        if self.of < 0:
            return np.full(points.shape[:-1], self.size)
        with np.errstate(all="ignore"):
            other = np.exp(points[..., self.of]) if self.by_log else points[..., self.of]
            return np.asarray(self.size * other**self.power)

    def words(self, names: Sequence[str]) -> str:
        """A shift that is not constant, in words."""
        size = "" if self.size == 1.0 and self.power > 0 else f"{abs(self.size):.4g}"
        return f"{size}{' ' * bool(size)}{names[self.of]}" if self.power > 0 else f"{size}/{names[self.of]}"


class Shift(NamedTuple):
    """A change of positions that adds ``period`` to one entry, after changes of sign (q,)."""

    sign: Array
    period: Period

    def __call__(self, points: Array) -> Array:
        """The changed ``points`` (…, q)."""
        changed = np.asarray(self.sign * points)
        changed[..., self.period.number] += self.period.length(points)
        return changed


def plain(period: Period, q: int, flips: Sequence[int] = ()) -> Shift:
    """A shift by ``period`` of a position (q,), with the signs of ``flips`` changed."""
    sign = np.ones(q)
    sign[list(flips)] = -1.0
    return Shift(sign, period)


def candidate_periods(position: Array, kinds: Kinds, shifted: Bools) -> list[Shift]:
    """Shifts of each entry ``shifted`` (q,) up and down: by constants, and by 2π/ω, 1/f or T.

    ω, f and T may be other parameters of the system.
    """
    rates = [int(j) for j in np.flatnonzero(kinds.system & (kinds.log | (position != 0.0)))]
    angles = [int(k) for k in np.flatnonzero(shifted)]
    periods = [Period(k, size) for k in angles for size in CONSTANTS]
    periods += [
        Period(k, size, j, power, bool(kinds.log[j]))
        for k, j in itertools.product(angles, rates)
        if j != k
        for size, power in ((1.0, 1), (1.0, -1), (2.0 * math.pi, -1))
    ]
    return [plain(one._replace(size=side * one.size), position.size) for one in periods for side in (1.0, -1.0)]


def periods_of(
    evaluate: Evaluate,
    modes: tuple[Mode, ...],
    kinds: Kinds,
    *,
    contains: Contains | None = None,
    count: Callable[[Array], None] | None = None,
) -> tuple[Shift, ...]:
    """Shifts that leave the energy as it is, tried near the weightiest mode.

    Parameters
    ----------
    evaluate
        Energy and gradient in positions.
    modes
        The modes. Distances between them along one parameter are tried as periods, too.
    kinds
        What the entries of a position are. Those with a flat prior that are no logarithms may be angles.
    contains
        Which points the constraints allow.
    count
        Told of all energies that were evaluated.

    Returns
    -------
    tuple of Shift
        Of each parameter the shortest shift, then shifts by half of it with changes of sign.
    """
    best = max(modes, key=lambda mode: mode.weight)
    q, shifted = best.position.size, kinds.flat & ~kinds.log & ~kinds.scales
    if not shifted.any():
        return ()
    points = best.position + SPREAD * np.random.default_rng(0).standard_normal((N_CONFIRMATIONS + 1, q)) @ best.root.T
    counted = allowed_energies(evaluate, None, count)

    def energies(at: Array) -> Array:
        return counted(at)[0]

    own = energies(points)

    def kept(candidates: Sequence[Shift], tolerance: float = 0.0) -> list[Shift]:
        """The candidates that leave the energy as it is."""
        away = [one for one in candidates if best.distances(one(best.position)[None])[0] > SAME]
        if not away or not np.isfinite(own).all():
            return []
        first = energies(np.array([one(points[0]) for one in away]))
        likely = [one for one, energy in zip(away, first, strict=True) if is_as_low(energy, own[0], tolerance)]
        return [one for one in likely if is_as_low(energies(one(points[1:])), own[1:], tolerance).all()]

    whole = kept([one for one in candidate_periods(best.position, kinds, shifted) if one.period.size > 0.0])
    known = {one.period.number for one in whole}
    apart = [one for one in distances_of(modes, shifted) if one.period.number not in known]
    whole += kept(apart, DISTANCE_TOLERANCE)
    found: list[Shift] = []
    for k in dict.fromkeys(one.period.number for one in whole):
        first = next(one for one in whole if one.period.number == k)
        halves = kept(half_periods(first, kinds), 0.0 if k in known else DISTANCE_TOLERANCE)
        alone = [one for one in halves if (one.sign > 0.0).all()]
        found += allowed(alone[:1] or [first, *halves], best.position, contains)
    return tuple(found)


def allowed(shifts: Sequence[Shift], position: Array, contains: Contains | None) -> list[Shift]:
    """The shifts, up or else down, that lead from ``position`` (q,) to where the constraints allow it."""
    if contains is None:
        return list(shifts)
    both = [(one, one._replace(period=one.period._replace(size=-one.period.size))) for one in shifts]
    inside = [[one for one in pair if contains(one(position)[None])[0]] for pair in both]
    return [pair[0] for pair in inside if pair]


def is_as_low(energies: Array, own: Array, tolerance: float) -> Bools:
    """Whether energies are equal up to rounding, or to a tolerance in nats."""
    return np.asarray(is_same(energies, own) | (np.abs(energies - own) <= tolerance))


def distances_of(modes: tuple[Mode, ...], shifted: Bools) -> list[Shift]:
    """Shifts by which modes are apart along one parameter alone."""
    found = []
    for one, other in itertools.combinations(modes, 2):
        for k in np.flatnonzero(shifted):
            size = other.position[k] - one.position[k]
            moved = one.position + size * (np.arange(shifted.size) == k)
            if abs(size) > 0.0 and other.distances(moved[None])[0] <= SAME:
                found.append(plain(Period(int(k), abs(float(size))), shifted.size))
    return sorted(found, key=lambda shift: shift.period.size)


def half_periods(whole: Shift, kinds: Kinds) -> list[Shift]:
    """Half the shift ``whole``, alone and with a change of the sign of one parameter, or of the shifted and another."""
    half, q, k = whole.period._replace(size=0.5 * whole.period.size), len(kinds.log), whole.period.number
    signed = [int(j) for j in np.flatnonzero(kinds.system & ~kinds.log) if j != k]
    flips = [(), *((j,) for j in signed), *((j, k) for j in signed)]
    return [plain(half, q, which) for which in flips if half.of not in which]


def without_repeats(modes: tuple[Mode, ...], periods: Sequence[Shift]) -> tuple[Mode, ...]:
    """``modes`` without those that are an earlier one shifted by whole periods, with their weights.

    The mode to which the search from the start led stays, as it is the first.
    """
    kept: list[Mode] = []
    for mode in modes:
        if not any(is_repeat(mode, one, period) for one in kept for period in periods):
            kept.append(mode)
    return modes if len(kept) == len(modes) else weighed(kept)


def is_repeat(mode: Mode, known: Mode, period: Shift) -> bool:
    """Whether ``mode`` is ``known`` shifted by some periods up or down, changes of sign included."""
    k = period.period.number
    for base in (known.position, period(known.position)) if (period.sign < 0.0).any() else (known.position,):
        length = period.period.length(base) * (2.0 if (period.sign < 0.0).any() else 1.0)
        n = round((mode.position[k] - base[k]) / length)
        moved = np.array(base)
        moved[k] += n * length
        if abs(n) <= MOST_REPEATS and mode.distances(moved[None])[0] <= SAME:
            return True
    return False


def period_words(found: Sequence[Shift], best: Mode, names: Sequence[str]) -> str:
    """That modes repeat, and what to do, in words; "" where nothing is periodic."""
    if not found:
        return ""
    alone = [one for one in found if (one.sign > 0.0).all()]
    same = [
        shift_words(one, best.position, names) for one in sorted(found, key=lambda one: bool((one.sign < 0.0).any()))
    ]
    what = f"the energy is the same at {'; '.join(same)}"
    if not alone:
        return f"{what}. The table has one of these modes. Give constraints, or a proper prior, that exclude the others"
    k, length = alone[0].period.number, abs(float(alone[0].period.length(best.position)))
    # From a quarter below the mode on, so that the mode and its mirror image half a period above are off the walls.
    low = best.position[k] - 0.25 * length
    return (
        f"{what}: under a flat prior the modes repeat without end, and the posterior is no density. The table has one "
        f"of them. Give constraints of one period, such as ['{names[k]} > {low:.4g}', '{names[k]} < "
        f"{low + length:.4g}'], or a proper prior"
    )


def shift_words(shift: Shift, position: Array, names: Sequence[str]) -> str:
    """One shift at a position (q,) in words."""
    k, length = shift.period.number, float(shift.period.length(position))
    name, by = names[k], f"{'+' if length > 0.0 else '−'} {abs(length):.4g}"
    how = f", which is {shift.period.words(names)}" if shift.period.of >= 0 else ""
    flips = [int(j) for j in np.flatnonzero(shift.sign < 0.0)]
    if not flips:
        return f"{name} and {name} {by}{how}"
    own = f"−{name} {by}" if k in flips else f"{name} {by}"
    return ", ".join([f"{name} → {own}", *(f"{names[j]} → −{names[j]}" for j in flips if j != k)])
