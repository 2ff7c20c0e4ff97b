"""Symmetries of a posterior: changes of sign and swaps of parameters that leave the energy as it is, found by trial.

A search stays on one side of such a symmetry, so that the mirrored modes have no draws and no weight. Candidates are
flips of one or two parameters, and one or two swaps of two parameters; a swap of two compartments is a swap of their
rates with one of their initial states. Each is tried at points near a mode.
"""

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ...arrays import Array, Bools, Integers
from ..laplace import Contains, Evaluate, allowed_energies
from ..search import SAME, Mode

MOST_CANDIDATES = 448  # of flips and swaps, evaluated once each; a search has some 256 places
N_CONFIRMATIONS = 4  # further points at which a candidate must leave the energy as it is
TOLERANCE = 1e-7  # of equal energies, relative to their size; different ones differ by tenths of a nat
SPREAD = 0.5  # standard deviations of the points about the mode


class Symmetry(NamedTuple):
    """A change of positions that leaves the energy as it is: entry k of the new one is sign_k × entry order_k."""

    order: Integers
    sign: Array

    def __call__(self, points: Array) -> Array:
        """The changed ``points`` (…, q)."""
        return np.asarray(self.sign * points[..., self.order])

    @property
    def moved(self) -> Bools:
        """Which entries (q,) it changes."""
        return np.asarray((self.order != np.arange(self.order.size)) | (self.sign < 0.0))

    @property
    def is_simple(self) -> bool:
        """Whether it is one flip, or one swap without changes of sign."""
        flips, swapped = int((self.sign < 0.0).sum()), int((self.order != np.arange(self.order.size)).sum())
        return (flips, swapped) in ((1, 0), (0, 2))

    def words(self, names: tuple[str, ...]) -> str:
        """The change in words."""
        flips = [f"{names[k]} → −{names[k]}" for k in np.flatnonzero(self.sign < 0.0)]
        swaps = [f"{names[k]} ↔ {names[j]}" for k, j in enumerate(self.order) if k < j]
        return ", ".join(flips + swaps)


def symmetries_of(
    evaluate: Evaluate,
    mode: Mode,
    log: Bools,
    *,
    contains: Contains | None = None,
    count: Callable[[Array], None] | None = None,
) -> tuple[Symmetry, ...]:
    """Flips and swaps that leave the energy as it is and lead from ``mode`` to another one.

    Parameters
    ----------
    evaluate
        Energy and gradient in positions.
    mode
        The mode about which the changes are tried.
    log
        Which entries (q,) of a position are logarithms. Their parameters are > 0: they keep their sign, and are swapped
        with each other only.
    contains
        Which points the constraints allow. A change that leads outside is none.
    count
        Told of all energies that were evaluated.

    Returns
    -------
    tuple of Symmetry
        The changes that were found, simple ones first. A change that two others make together is left out.
    """
    q = mode.position.size
    points = mode.position + SPREAD * np.random.default_rng(0).standard_normal((N_CONFIRMATIONS + 1, q)) @ mode.root.T
    candidates = list(itertools.islice(candidate_symmetries(log), MOST_CANDIDATES))
    if not candidates:
        return ()
    apart = mode.distances(np.array([one(mode.position) for one in candidates])) > SAME
    candidates = [one for one, is_apart in zip(candidates, apart, strict=True) if is_apart]
    if not candidates:
        return ()
    allowed = allowed_energies(evaluate, contains, count)

    def energies(at: Array) -> Array:
        return allowed(at)[0]

    own = energies(points)
    if not np.isfinite(own).all():
        return ()
    first = energies(np.array([one(points[0]) for one in candidates]))
    likely = [one for one, energy in zip(candidates, first, strict=True) if is_same(energy, own[0])]
    kept: list[Symmetry] = []
    for one in likely:
        if not is_made_of(one, kept) and is_same(energies(one(points[1:])), own[1:]).all():
            kept.append(one)
    return tuple(kept)


def is_same(energies: Array, own: Array) -> Bools:
    """Whether energies are equal up to rounding."""
    return np.asarray(np.abs(energies - own) <= TOLERANCE * np.maximum(1.0, np.abs(own)))


def candidate_symmetries(log: Bools) -> Iterator[Symmetry]:
    """Flips of one parameter, swaps of two, with or without their signs, flips of two, then two swaps at once."""
    q = len(log)
    order, sign = np.arange(q), np.ones(q)
    signed = np.flatnonzero(~log)
    pairs = [pair for pair in itertools.combinations(range(q), 2) if log[pair[0]] == log[pair[1]]]

    def flip(flipped: tuple[Any, ...]) -> Symmetry:
        change = np.array(sign)
        change[list(flipped)] = -1.0
        return Symmetry(order, change)

    def swap(swapped: tuple[tuple[int, int], ...], factor: float = 1.0) -> Symmetry:
        change, signs = np.array(order), np.array(sign)
        for j, k in swapped:
            change[[j, k]] = k, j
            signs[[j, k]] = factor
        return Symmetry(change, signs)

    yield from map(flip, itertools.combinations(signed, 1))
    yield from (swap((pair,)) for pair in pairs)
    yield from (swap((pair,), -1.0) for pair in pairs if not log[pair[0]])
    yield from map(flip, itertools.combinations(signed, 2))
    yield from (swap(two) for two in itertools.combinations(pairs, 2) if not set(two[0]) & set(two[1]))


def is_made_of(one: Symmetry, known: list[Symmetry]) -> bool:
    """Whether two known symmetries, one after the other, make this one."""
    probe = np.arange(1.0, one.sign.size + 1.0)
    return any(np.array_equal(one(probe), first(second(probe))) for first, second in itertools.product(known, known))


def new_symmetries(found: tuple[Symmetry, ...], modes: tuple[Mode, ...]) -> tuple[Symmetry, ...]:
    """The symmetries that lead from the weightiest mode to a place where no mode is known."""
    best = max(modes, key=lambda mode: mode.weight)
    return tuple(
        one for one in found if all(mode.distances(one(best.position)[None])[0] > SAME for mode in modes)
    )  # fmt: skip


def sentence(found: tuple[Symmetry, ...], names: tuple[str, ...]) -> str:
    """What the symmetries mean for the modes, in words."""
    return (
        f"the energy is unchanged by {'; by '.join(one.words(names) for one in found)}: modes come in "
        f"{'pairs' if len(found) == 1 else 'groups'}, of which the table has one. Draws near it describe that one alone"
    )
