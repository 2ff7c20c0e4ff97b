"""What ``identify`` looks at once it has found modes: residuals, frequencies, symmetries, and tails."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..arrays import Array, Bools
from ..priors import Prior
from .laplace import Contains, Evaluate, descend
from .local_noise import DOUBTFUL_RATIO, LARGE_RATIO, Fitted, excess_words, excesses_of
from .propriety import Centre, centre_of, improper_words, open_tails
from .scans import Record, frequencies_of, scanned_starts
from .search import FEW_DAMPINGS, N_ITERATIONS, Mode, is_another, mode_from, weighed
from .symmetries import new_symmetries, sentence, symmetries_of

N_ROUNDS = 3  # of scans: one for each unknown frequency
LEAST_GAIN = 1.0  # nats by which a round must lower the energy for another one
MOST_SERIES = 3  # whose periodograms are taken


class Posterior(NamedTuple):
    """What the checks need of a posterior.

    evaluate: energy and gradient in positions. fitted: data beside the solutions of parameters (q,). parameters: from
    positions to parameters. first: where the search began (q,). usual: the same with usual parameters of the system
    (q,). movable: which entries are parameters of the system. told: of all energies that are evaluated; may raise
    TimeoutError.
    """

    evaluate: Evaluate
    fitted: Callable[[Array], tuple[Fitted, ...]]
    parameters: Callable[[Array], Array]
    names: tuple[str, ...]
    priors: tuple[Prior, ...]
    log: Bools
    movable: Bools
    first: Array
    usual: Array
    contains: Contains | None
    told: Callable[[Array], None] | None

    def best(self, found: tuple[Mode, ...]) -> Array:
        """The position (q,) of the weightiest mode, or the first where there is none."""
        return max(found, key=lambda mode: mode.weight).position if found else self.first

    def fits_at(self, position: Array) -> tuple[Fitted, ...]:
        """Data beside the solutions at a position (q,)."""
        return self.fitted(self.parameters(position))


def with_frequencies(posterior: Posterior, found: tuple[Mode, ...]) -> tuple[Mode, ...]:
    """``found`` with modes at frequencies of the data, which are searched where residuals are no noise."""
    try:
        for _ in range(N_ROUNDS):
            best = posterior.best(found)
            if not excesses_of(posterior.fits_at(best), above=DOUBTFUL_RATIO):
                break
            starts = scanned_starts(
                posterior.evaluate, np.array([posterior.usual, best]), posterior.movable, posterior.log,
                frequencies_of(records_of(posterior.fits_at(best))),
                contains=posterior.contains, count=posterior.told,
            )  # fmt: skip
            new: list[Mode] = []
            for start in starts:
                mode = mode_from(posterior.evaluate, start, posterior.contains)
                if mode is not None and all(is_another(mode, known) for known in (*found, *new)):
                    new.append(mode)
            lowest = min((mode.energy for mode in found), default=np.inf)
            if not any(mode.energy < lowest - LEAST_GAIN for mode in new):
                break
            found = weighed([*found, *new])
    except TimeoutError:
        pass
    return found


def records_of(fits: tuple[Fitted, ...]) -> list[Record]:
    """The measured quantities of the first series."""
    return [
        Record(fit.times[fit.quantities == d], fit.data[fit.quantities == d])
        for fit in fits[:MOST_SERIES]
        for d in np.unique(fit.quantities)
    ]


def symmetries_in_words(posterior: Posterior, found: tuple[Mode, ...]) -> str:
    """Changes of the parameters that leave the energy as it is, where modes lack their mirror images; or ""."""
    if not found:
        return ""
    try:
        best = max(found, key=lambda mode: mode.weight)
        every = symmetries_of(
            posterior.evaluate, best, posterior.log, contains=posterior.contains, count=posterior.told
        )
    except TimeoutError:
        return ""
    lacking = new_symmetries(every, found)
    return sentence(lacking, posterior.names) if lacking else ""


def doubts_of_fit(posterior: Posterior, found: tuple[Mode, ...]) -> list[str]:
    """What looks wrong with the modes, in words: residuals that are no noise, and tails that are not closed."""
    best = posterior.best(found)
    excesses = excesses_of(posterior.fits_at(best), above=LARGE_RATIO)
    doubts = [excess_words(excesses)] if excesses else []
    flat = np.array([law.is_flat for law in posterior.priors])
    centre = centre_at(posterior, found) if flat.any() else None
    if centre is not None:
        tails = open_tails(
            posterior.evaluate, centre, flat, posterior.log, contains=posterior.contains, count=posterior.told
        )
        doubts += [improper_words(tails, posterior.names, posterior.log)] if tails else []
    return doubts


def centre_at(posterior: Posterior, found: tuple[Mode, ...]) -> Centre | None:
    """The weightiest mode, or the lowest point that a search reaches; None where energies are infinite."""
    if found:
        best = max(found, key=lambda mode: mode.weight)
        return Centre(best.position, best.energy, best.root @ best.root.T, True)
    if not np.isfinite(posterior.evaluate(posterior.first[None])[0][0]):
        return None
    position, energy, curvature = descend(
        posterior.evaluate, posterior.first, contains=posterior.contains, n_iterations=N_ITERATIONS,
        dampings=FEW_DAMPINGS,
    )  # fmt: skip
    return None if curvature is None else centre_of(position, energy, curvature)
