"""Further modes of a posterior: searches from the lowest of many places, and the modes' weights by Laplace.

Places are screened at once; one that is lower than its neighbours begins a search (multi-level single linkage of
Rinnooy Kan & Timmer 1987, without its stopping rule).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy

from ..arrays import Array
from .laplace import MIN_CURVATURE, Contains, Curvature, Evaluate, descend, in_batches

N_PLACES = 256
N_NEIGHBOURS = 6  # a place lower than so many around it begins a search
N_ITERATIONS = 30  # of a search
FEW_DAMPINGS = np.array([0.0, 1e-4, 1e-2, 0.1, 1.0, 10.0, 1e3])
SAME = 3.0  # standard deviations: modes nearer than that are one
MAX_DECREMENT = 0.05  # nats that another Newton step would gain of what counts as a mode
CONVERGED, NEAR = 1e-6, 1.0  # such nats: of a search that has ended, and of one that is worth being continued
N_MORE = 100  # iterations of a search that is continued, as along a curved ridge
LEAST_WEIGHT = 1e-3  # of a mode that is kept


class Mode(NamedTuple):
    """A mode: its position (q,), energy, the root (q, q) of its Laplace covariance, and its probability.

    is_of_start: whether the search from the start ended at it.
    """

    position: Array
    energy: float
    root: Array
    weight: float
    is_of_start: bool = False

    @property
    def sd(self) -> Array:
        """Standard deviations (q,) by Laplace's approximation."""
        return np.asarray(np.linalg.norm(self.root, axis=1))

    @property
    def log_mass(self) -> float:
        """log ∫ exp(−U) about it by Laplace's approximation, less q/2 log 2π."""
        return float(np.log(np.abs(np.diag(self.root))).sum() - self.energy)

    def moved(self, shift: Array, inverse: Array) -> "Mode":
        """The same mode in other positions, ``inverse`` (q, q) (position − ``shift``)."""
        root = np.asarray(np.linalg.qr((inverse @ self.root).T, mode="r")).T
        return self._replace(position=inverse @ (self.position - shift), root=root)

    def distances(self, points: Array) -> Array:
        """Distances (n,) of ``points`` (n, q) from it, in its standard deviations."""
        offsets = scipy.linalg.solve_triangular(self.root, (points - self.position).T, lower=True)
        return np.asarray(np.linalg.norm(offsets, axis=0))


def search_modes(
    evaluate: Evaluate,
    first: Array,
    places: Array,
    *,
    n_searches: int,
    contains: Contains | None = None,
    count: Callable[[Array], None] | None = None,
) -> tuple[Mode, ...]:
    """Modes found from ``first`` (q,) and from the ``n_searches`` best of ``places`` (n, q), that of ``first`` first.

    Weights are those of Laplace's approximation, among the modes that were found; modes of less than a thousandth are
    left out, but for the start's, unless its weight is 0 in floats. Searches that end where the energy is flat,
    infinite or at the edge of what ``contains`` allows find none. count: told of all energies that were evaluated;
    where it raises TimeoutError no search begins any more.
    """

    def counted(points: Array) -> tuple[Array, Array]:
        energies, slopes = evaluate(points)
        if count is not None:
            count(energies)
        return energies, slopes

    found: list[Mode] = []
    try:
        mode = mode_from(counted, first, contains)
        if mode is not None:
            found.append(mode._replace(is_of_start=True))
        starts: Array = places[:0]
        if n_searches:
            energies = in_batches(counted)(places)[0]
            inside = np.isfinite(energies) & (True if contains is None else contains(places))
            starts = local_minima(places[inside], energies[inside])[:n_searches]
        for start in starts:
            mode = mode_from(counted, start, contains)
            if mode is not None and all(is_another(mode, known) for known in found):
                found.append(mode)
    except TimeoutError:
        pass
    return weighed(found)


def local_minima(places: Array, energies: Array) -> Array:
    """The places that are lower than their neighbours, from the lowest."""
    if len(places) <= N_NEIGHBOURS:
        return places[np.argsort(energies)]
    spread = places.std(axis=0)
    scaled = places / np.where(spread > 0.0, spread, 1.0)
    _, neighbours = scipy.spatial.cKDTree(scaled).query(scaled, N_NEIGHBOURS + 1)
    lowest = np.flatnonzero((energies[:, None] <= energies[neighbours]).all(axis=1))
    return places[lowest[np.argsort(energies[lowest], kind="stable")]]


def mode_from(evaluate: Evaluate, start: Array, contains: Contains | None) -> Mode | None:
    """The mode to which a search from ``start`` leads, of weight 1; None where it ends at none."""
    if not np.isfinite(evaluate(start[None])[0][0]):
        return None
    position, energy, curvature = descend(
        evaluate, start, contains=contains, n_iterations=N_ITERATIONS, dampings=FEW_DAMPINGS
    )
    gain = decrement(evaluate, position, curvature)
    if CONVERGED < gain <= NEAR:  # ends along a ridge would each be a mode
        position, energy, curvature = descend(evaluate, position, contains=contains, n_iterations=N_MORE)
        gain = decrement(evaluate, position, curvature)
    if curvature is None or not gain <= MAX_DECREMENT:
        return None
    if contains is not None and not contains(position[None])[0]:  # of a start outside, at which the search stayed
        return None
    return Mode(position, energy, curvature.root, 1.0)


def decrement(evaluate: Evaluate, position: Array, curvature: Curvature | None) -> float:
    """Nats that another Newton step would gain; infinite where curvatures are not positive."""
    if curvature is None or curvature.values[0] < MIN_CURVATURE or not np.isfinite(curvature.values).all():
        return np.inf
    return 0.5 * float(np.sum((curvature.root.T @ evaluate(position[None])[1][0]) ** 2))


def is_another(mode: Mode, known: Mode) -> bool:
    """Whether two modes are apart, by the standard deviations of either."""
    apart = known.distances(mode.position[None])[0], mode.distances(known.position[None])[0]
    return bool(min(apart) > SAME)


def weighed(found: list[Mode]) -> tuple[Mode, ...]:
    """The modes with their weights; modes of weight 0, and of hardly any weight but the start's, are left out."""
    if not found:
        return ()
    evidence = np.array([mode.log_mass for mode in found])
    shares = np.exp(evidence - scipy.special.logsumexp(evidence))
    kept = [k for k, share in enumerate(shares) if share >= LEAST_WEIGHT or (found[k].is_of_start and share > 0.0)]
    total = sum(float(shares[k]) for k in kept)
    return tuple(found[k]._replace(weight=float(shares[k]) / total) for k in kept)
