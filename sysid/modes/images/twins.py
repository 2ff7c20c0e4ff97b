"""Twins of modes: places where a symmetry of the likelihood leads, although priors tell the two sides apart.

Swapping two rates, the sign of a parameter or a period of an angle may change the likelihood little or not at all. If
priors differ, the energy is no longer the same on both sides, and a search that begins on one side may never see the
other. So the image of every mode under such changes is tried. Some images need other parameters to follow: two rates in
a chain of reactions can be swapped if the initial amount is scaled. Where a plain image has a high energy, a short
descent re-fits the rest, with the changed parameters and the standard deviations held.
"""

import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from ...arrays import Array, Bools
from ..laplace import Contains, Evaluate, allowed_energies, descend
from ..search import FEW_DAMPINGS, SAME, Mode, is_another, mode_from, weighed
from .periods import Kinds, Shift, candidate_periods, half_periods
from .symmetries import MOST_CANDIDATES, Symmetry, candidate_symmetries, is_same

SHARE = 0.05  # of the evaluations of the search so far, which the trial of images may cost
# exp(−10) = 5e-5 is a twentieth of the least weight of a mode that is kept; the descent may lower an image by 3 nats.
NEAR = 10.0  # nats above the lowest mode, within which an image begins a descent
PERIODIC = 100.0  # nats, by which a prior alone may raise the energy over a period, as 14 standard deviations do
N_ITERATIONS = 8  # of the re-fit of the rest: Newton steps find an amplitude that is 20 times too large in six
MOST_MODES = 32  # as an angle whose prior is wide has a mode in each period


Count = Callable[[Array], None]


class SpentError(Exception):
    """The evaluations that images may cost are spent."""


class Allowance:
    """An energy in positions that may be evaluated ``left`` times; infinite where it has no value or is not allowed."""

    def __init__(self, evaluate: Evaluate, contains: Contains | None, told: Count | None, left: int) -> None:
        self.counted = allowed_energies(evaluate, contains, told)  # beside the allowance
        self.left = left

    def limited(self, points: Array) -> tuple[Array, Array]:
        """Energies and gradients. Raises SpentError where the allowance is spent."""
        self.left -= len(points)
        if self.left < 0:
            raise SpentError
        return self.counted(points)


class Mirrors(NamedTuple):
    """Positions (q,) that are images of modes under exact symmetries, as far as one energy tells."""

    positions: list[Array]

    def have(self, mode: Mode) -> bool:
        """Whether ``mode`` is one of them."""
        return bool(self.positions) and bool((mode.distances(np.array(self.positions)) <= SAME).any())


def with_twins(
    evaluate: Evaluate,
    found: tuple[Mode, ...],
    kinds: Kinds,
    *,
    most: int,
    contains: Contains | None = None,
    count: Count | None = None,
) -> tuple[Mode, ...]:
    """``found`` with the modes that are reached from images of modes under flips, swaps and periods.

    Exact symmetries of the energy make no new modes here: ``symmetries`` says them.

    Parameters
    ----------
    evaluate
        Energy and gradient in positions.
    found
        The modes that a search found.
    kinds
        What the entries of a position are. Flips and swaps of parameters of the system are tried with the rest
        re-fitted, but for standard deviations of errors. Those with a proper prior that are no logarithms may be
        angles, whose shifts by a period are tried.
    most
        Evaluations that the trial of images may cost. Descents from images of low energy come on top of it.
    contains
        Which points the constraints allow.
    count
        Told of all energies that were evaluated. Where it raises TimeoutError the modes found so far are returned.

    Returns
    -------
    tuple of Mode
        The modes with their weights; ``found`` itself where there is no other.
    """
    allowance, known = Allowance(evaluate, contains, count, most), list(found)
    queue, mirrors = sorted(found, key=lambda mode: -mode.weight), Mirrors([])
    try:
        for mode in queue:  # which grows
            for start in images_of(allowance, mode, known, kinds, mirrors):
                twin = mode_from(allowance.counted, start, None)
                if twin is None or not is_near(twin.energy, known) or mirrors.have(twin):
                    continue
                if all(is_another(twin, one) for one in known):
                    known.append(twin)
                    queue.append(twin)
            if len(known) >= MOST_MODES:
                break
    except (TimeoutError, SpentError):
        pass
    return weighed(known) if len(known) > len(found) else found


def images_of(allowance: Allowance, mode: Mode, known: list[Mode], kinds: Kinds, mirrors: Mirrors) -> Iterator[Array]:
    """Positions (q,) of low energy that are images of ``mode``, where no mode is ``known``.

    ``mirrors`` learns the images of the same energy.
    """
    candidates: list[Symmetry | Shift] = [*shifts_from(allowance, mode, kinds)]
    candidates += itertools.islice(candidate_symmetries(kinds.log), MOST_CANDIDATES)
    if not candidates:
        return
    images = np.array([one(mode.position) for one in candidates])
    rows = np.flatnonzero(is_new(images, known))[: max(allowance.left, 0)]
    energies = np.full(len(images), np.inf)
    energies[rows] = allowance.limited(images[rows])[0] if rows.size else np.inf
    is_exact = is_same(energies, np.full(len(images), mode.energy))
    mirrors.positions.extend(images[rows[is_exact[rows]]])
    for row in rows[np.argsort(energies[rows], kind="stable")]:
        if is_near(energies[row], known) and not is_exact[row] and is_new(images[row][None], known)[0]:
            yield images[row]
    for row in rows:
        one = candidates[row]
        is_tried = is_near(energies[row], known) or isinstance(one, Shift) or not one.is_simple
        if is_tried or not kinds.system[one.moved].all():
            continue
        start = with_rest_fitted(allowance.limited, images[row], ~(kinds.scales | one.moved))
        if start is not None and is_near(start[1], known) and is_new(start[0][None], known)[0]:
            yield start[0]


def shifts_from(allowance: Allowance, mode: Mode, kinds: Kinds) -> list[Shift]:
    """Shifts of angles with a proper prior that may be periods, and by half of these with changes of sign."""
    angles = ~(kinds.flat | kinds.log | kinds.scales)
    shifts = candidate_periods(mode.position, kinds, angles)[: min(MOST_CANDIDATES, allowance.left) // 2]
    if not shifts:
        return []
    energies = allowance.limited(np.array([one(mode.position) for one in shifts]))[0]
    found = [one for one, energy in zip(shifts, energies, strict=True) if energy < mode.energy + PERIODIC]
    return [*found, *(half for one in found for half in half_periods(one, kinds))]


def is_near(energy: float, known: list[Mode]) -> bool:
    """Whether an energy is so low that a mode there may have a weight."""
    return bool(energy < min(mode.energy for mode in known) + NEAR)


def is_new(points: Array, known: list[Mode]) -> Bools:
    """Whether points (n, q) are away from all known modes."""
    return np.asarray(np.all([mode.distances(points) > SAME for mode in known], axis=0))


def with_rest_fitted(evaluate: Evaluate, image: Array, rest: Bools) -> tuple[Array, float] | None:
    """The position (q,) of low energy near ``image`` in which only the entries ``rest`` (q,) moved, and its energy."""
    if not rest.any():
        return None

    def of_rest(points: Array) -> tuple[Array, Array]:
        every = np.tile(image, (len(points), 1))
        every[:, rest] = points
        energies, slopes = evaluate(every)
        return energies, slopes[:, rest]

    if not np.isfinite(of_rest(image[rest][None])[0][0]):
        return None
    position, energy, _ = descend(of_rest, image[rest], n_iterations=N_ITERATIONS, dampings=FEW_DAMPINGS)
    moved = np.array(image)
    moved[rest] = position
    return moved, energy
