"""What ``identify`` looks at once it has searched: residuals, frequencies, symmetries, tails, and a lack of modes."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..arrays import Array, Bools
from ..priors import Prior
from .images.periods import Kinds, period_words, periods_of, without_repeats
from .images.symmetries import new_symmetries, sentence, symmetries_of
from .images.twins import SHARE, with_twins
from .laplace import MIN_CURVATURE, Contains, Curvature, Evaluate, descend
from .local_noise import DOUBTFUL_RATIO, LARGE_RATIO, Fitted, excess_words, excesses_of
from .propriety import Centre, centre_of, improper_words, open_tails
from .scans import Record, frequencies_of, scanned_starts
from .search import FEW_DAMPINGS, N_ITERATIONS, Mode, is_another, mode_from, weighed

N_ROUNDS = 3  # of scans: one for each unknown frequency
LEAST_GAIN = 1.0  # nats by which a round must lower the energy for another one
MOST_SERIES = 3  # whose periodograms are taken
SMALL_PART = 0.3  # of a direction of length 1: a parameter with less is not named
MOST_NAMES = 4


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

    @property
    def kinds(self) -> Kinds:
        """What the entries of a position are."""
        flat = np.array([law.is_flat for law in self.priors])
        scales = np.array([name.startswith(("sd(", "dispersion(")) for name in self.names])
        return Kinds(self.log, self.movable, flat, scales)

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
            new = new_modes(posterior, found, starts)
            lowest = min((mode.energy for mode in found), default=np.inf)
            if not any(mode.energy < lowest - LEAST_GAIN for mode in new):
                break
            found = weighed([*found, *new])
    except TimeoutError:
        pass
    return found


def new_modes(posterior: Posterior, found: tuple[Mode, ...], starts: Array) -> list[Mode]:
    """Modes to which searches from ``starts`` (n, q) lead that are not in ``found``, until the time is up."""
    new: list[Mode] = []
    try:
        for start in starts:
            mode = mode_from(posterior.evaluate, start, posterior.contains)
            if mode is not None and all(is_another(mode, known) for known in (*found, *new)):
                new.append(mode)
    except TimeoutError:
        pass
    return new


def with_images(posterior: Posterior, found: tuple[Mode, ...], n_evaluations: int) -> tuple[Mode, ...]:
    """``found`` with modes on the other side of symmetries that priors break; for a search of so many evaluations."""
    return with_twins(
        posterior.evaluate, found, posterior.kinds, most=int(SHARE * n_evaluations), contains=posterior.contains,
        count=posterior.told,
    )  # fmt: skip


def records_of(fits: tuple[Fitted, ...]) -> list[Record]:
    """The measured quantities of the first series."""
    return [
        Record(fit.times[fit.quantities == d], fit.data[fit.quantities == d])
        for fit in fits[:MOST_SERIES]
        for d in np.unique(fit.quantities)
    ]


ONE_SIDE = "Where one side is meant, say so by a constraint, such as 'c > 0' or 'k1 < k2', or by a prior"


def symmetries_in_words(posterior: Posterior, found: tuple[Mode, ...]) -> str:
    """Changes of the parameters that leave the energy as it is, where modes lack their mirror images; or ""."""
    if not found:
        return ""
    best = max(found, key=lambda mode: mode.weight)
    every = symmetries_of(posterior.evaluate, best, posterior.log, contains=posterior.contains, count=posterior.told)
    lacking = new_symmetries(every, found)
    return sentence(lacking, posterior.names) if lacking else ""


def without_periods(posterior: Posterior, found: tuple[Mode, ...]) -> tuple[tuple[Mode, ...], str]:
    """``found`` without repeats after a period of a parameter, and these periods in words; or ""."""
    if not found:
        return found, ""
    periods = periods_of(
        posterior.evaluate, found, posterior.kinds, contains=posterior.contains, count=posterior.told
    )  # fmt: skip
    kept = without_repeats(found, periods)
    return kept, period_words(periods, max(kept, key=lambda mode: mode.weight), posterior.names)


def doubts_of_residuals(posterior: Posterior, found: tuple[Mode, ...]) -> list[str]:
    """In words, that residuals are no noise."""
    excesses = excesses_of(posterior.fits_at(posterior.best(found)), above=LARGE_RATIO)
    return [excess_words(excesses)] if excesses else []


def doubts_of_tails(posterior: Posterior, found: tuple[Mode, ...]) -> list[str]:
    """In words, that tails are not closed."""
    flat = posterior.kinds.flat
    centre = centre_at(posterior, found) if flat.any() else None
    if centre is None:
        return []
    tails = open_tails(
        posterior.evaluate, centre, flat, posterior.log, contains=posterior.contains, count=posterior.told
    )
    return [improper_words(tails, posterior.names, posterior.log)] if tails else []


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


def along(curvature: Curvature, names: Sequence[str]) -> str:
    """The parameters along the direction of lowest curvature, by their part in it."""
    parts = np.abs(curvature.vectors[:, 0])
    order = [int(k) for k in np.argsort(-parts, kind="stable") if parts[k] >= SMALL_PART]
    return ", ".join(names[k] for k in order[:MOST_NAMES]) + (", …" if len(order) > MOST_NAMES else "")


def values_in_words(names: Sequence[str], values: Array) -> str:
    """Parameters with their values, the first eight."""
    shown = ", ".join(f"{name} = {value:.4g}" for name, value in zip(names[:8], values, strict=False))
    return shown + (", …" if len(names) > 8 else "")


def no_mode_in_words(
    evaluate: Evaluate, start: Array, names: Sequence[str], *, contains: Contains | None, n_searches: int
) -> str:
    """Why the search from ``start`` (q,) ends at no mode, with the energy that it reaches, and what to do.

    n_searches: how many others there were.
    """
    others = f" and {n_searches} from other places" if n_searches else ""
    (energy,), _ = evaluate(start[None])
    if not math.isfinite(energy):
        return (
            f"no mode was found: the energy is infinite at the start, and searches from other places ({n_searches}) "
            "ended at none. Give a System with usual parameters and a start nearer to the data's, priors, or a shorter "
            "step"
        )
    if mode_from(evaluate, start, contains) is not None:
        return "no mode was found within time_limit, though there is one near the start: give a larger time_limit"
    _, energy, curvature = descend(evaluate, start, contains=contains, n_iterations=N_ITERATIONS, dampings=FEW_DAMPINGS)
    found = f"no mode was found: the search from the start{others} ended at none, the first at energy {energy:.6g}"
    if curvature is None or not np.isfinite(curvature.values).all():
        return f"{found}, beside which it is infinite. Give a shorter step, or usual parameters nearer to the data's"
    if curvature.values[0] < MIN_CURVATURE:
        return (
            f"{found}, where it does not rise along {along(curvature, names)}: data and priors leave these open there. "
            "Give priors for them, fix one, or give usual parameters nearer to the data's"
        )
    return (
        f"{found}, from which it still falls, along {along(curvature, names)} least steeply. Give usual parameters "
        "nearer to the data's, or priors"
    )
