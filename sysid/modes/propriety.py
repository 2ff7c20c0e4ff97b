"""Parameters without a proper prior: whether the posterior falls fast enough far out to be a density.

The profile of a parameter is the least energy over all others; with the width of the others by Laplace's approximation
it is −log of the parameter's marginal density. It must rise faster than log |distance|, or the integral of the density
is infinite and quantiles of draws grow with the run's length. Source: Raue et al. (2009), Bioinformatics 25, 1923, who
call such a parameter practically non-identifiable.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..arrays import Array, Bools
from .laplace import Contains, Curvature, Evaluate, allowed_energies, descend
from .search import FEW_DAMPINGS

FAR = 10.0  # standard deviations: where a Gaussian profile has risen by FAR²/2 = 50 nats
DOUBTFUL = 25.0  # nats: a profile that has risen by less there is followed farther out
REACHABLE = 12.0  # nats: exp(−12) = 6e-6; a profile that levels off higher changes no interval of 10⁵ draws
# Of −log density by log distance; the integral is infinite where it is 1 or less, as with ridges a b = c.
LEAST_SLOPE = 1.25
N_DOUBLINGS = 10  # of the distance, from 2 standard deviations to 1,000
LEAST_DOUBLINGS = 3  # over which a profile is judged
LEVEL = 0.5  # nats within which energies count as level
LARGEST_LOG = 23.0  # of a parameter that is sampled as its logarithm, from the mode: a factor of 10¹⁰
STILL_LEVEL = 1.0  # nats that a profile may rise to where solutions end: a Gaussian one has risen by 2 at 2 sds
POORLY_KNOWN = 0.3  # standard deviation over the value, or of a logarithm: beyond it ridges may be curved
SDS_BEYOND = 10.0  # of a mode, of which so many lie beyond the end of solutions
POOR_CURVATURE = 1e-6  # relative to the diagonal: below it a standard deviation is no unit of distance
N_SCREENING_STEPS = 3
SCREENING_FACTORS = np.array([1.0, 0.3, 0.05])
N_ITERATIONS = 12  # of a minimisation over the other parameters
MOST_EVALUATIONS = 8_000


class Centre(NamedTuple):
    """The lowest point known: its position (q,), energy, covariance (q, q), and whether its sds are units of length."""

    position: Array
    energy: float
    covariance: Array
    has_scale: bool


class OpenTail(NamedTuple):
    """A profile that levels off: of which parameter; positions between which; by how many nats it has risen."""

    number: int
    begin: float
    end: float
    height: float


class EnoughError(Exception):
    """The budget of evaluations is spent."""


def centre_of(position: Array, energy: float, curvature: Curvature) -> Centre:
    """The centre at a point that a search has reached."""
    root = curvature.root
    return Centre(position, energy, root @ root.T, bool(curvature.values[0] > POOR_CURVATURE))


def open_tails(
    evaluate: Evaluate,
    centre: Centre,
    flat: Bools,
    log: Bools,
    *,
    contains: Contains | None = None,
    count: Callable[[Array], None] | None = None,
) -> list[OpenTail]:
    """Profiles that level off within REACHABLE of the minimum, of parameters without a proper prior.

    Parameters
    ----------
    evaluate
        Energy and gradient in positions, with the Jacobian where these are logarithms.
    centre
        The posterior's mode, or the lowest point found where it has none.
    flat
        Which parameters (q,) have no proper prior.
    log
        Which are sampled as logarithms.
    contains
        Which points the constraints allow; a profile ends at a constraint.
    count
        Told of all energies that were evaluated; where it raises TimeoutError the check ends with what it has.

    Returns
    -------
    list of OpenTail
        At most one for each side of each parameter.
    """
    left, allowed = MOST_EVALUATIONS, allowed_energies(evaluate, contains, count)

    def counted(points: Array) -> tuple[Array, Array]:
        nonlocal left
        left -= len(points)
        if left < 0:
            raise EnoughError
        return allowed(points)

    sides = [(int(k), side) for k in np.flatnonzero(flat) for side in (1.0, -1.0)]
    found: list[OpenTail] = []
    try:
        doubtful = [True] * len(sides)
        if centre.has_scale:
            poor = poorly_known(centre, log)
            rises = np.array(screened(counted, centre, sides)) - centre.energy
            is_bent = np.abs(rises - 0.5 * FAR**2) > 0.25 * FAR**2  # from what a Gaussian profile rises by
            doubtful = [
                bool(rise < DOUBTFUL or (poor[k] and bent))
                for (k, _), rise, bent in zip(sides, rises, is_bent, strict=True)
            ]
        for (k, side), is_doubtful in zip(sides, doubtful, strict=True):
            tail = followed(counted, centre, k, side, bool(log[k]), contains) if is_doubtful else None
            if tail is not None:
                found.append(tail)
    except (TimeoutError, EnoughError):
        pass
    return found


def poorly_known(centre: Centre, log: Bools) -> Bools:
    """Parameters (q,) whose ridges may be curved: their standard deviations are large beside their values."""
    sds = np.sqrt(np.diag(centre.covariance))
    return np.asarray(sds > POORLY_KNOWN * np.where(log, 1.0, np.abs(centre.position)))


def screened(evaluate: Evaluate, centre: Centre, sides: list[tuple[int, float]]) -> list[float]:
    """Energies FAR standard deviations out on each side, lowered by few steps of the other parameters, all at once."""
    covariance = centre.covariance
    sds = np.sqrt(np.diag(covariance))
    points = np.array([centre.position + side * FAR * covariance[:, k] / sds[k] for k, side in sides])
    others = np.array([covariance - np.outer(covariance[:, k], covariance[:, k]) / covariance[k, k] for k, _ in sides])
    energies, slopes = evaluate(points)
    for _ in range(N_SCREENING_STEPS):
        steps = -np.einsum("nij,nj->ni", others, np.where(np.isfinite(slopes), slopes, 0.0))
        trials = points + SCREENING_FACTORS[:, None, None] * steps
        tried, tried_slopes = evaluate(trials.reshape(-1, points.shape[1]))
        tried, tried_slopes = tried.reshape(len(SCREENING_FACTORS), -1), tried_slopes.reshape(trials.shape)
        best = np.argmin(tried, axis=0)
        at = np.arange(len(points))
        is_lower = tried[best, at] < energies
        points = np.where(is_lower[:, None], trials[best, at], points)
        slopes = np.where(is_lower[:, None], tried_slopes[best, at], slopes)
        energies = np.where(is_lower, tried[best, at], energies)
    return list(energies.tolist())


def followed(
    evaluate: Evaluate, centre: Centre, k: int, side: float, is_log: bool, contains: Contains | None
) -> OpenTail | None:
    """The tail of parameter ``k`` on one side where its profile levels off, found at doubled distances.

    A profile that is still level where solutions end counts, too, on the side where the parameter grows: steps of a
    solver are too long for fast rates.
    """
    own = centre.position[k]
    size = 1.0 if is_log and centre.has_scale else max(abs(own), 0.1)
    sd = math.sqrt(centre.covariance[k, k])
    unit = 2.0 * sd if centre.has_scale and sd < size else size
    rest = np.delete(centre.position, k)
    marginals: list[float] = []
    distances: list[float] = []
    energies: list[float] = []
    previous = rest
    for doubling in range(N_DOUBLINGS + 1):
        distance = unit * 2.0**doubling
        if is_log and distance > LARGEST_LOG:
            break
        low = lowest_of_others(evaluate, k, own + side * distance, rest, previous)
        if low is None:
            is_allowed = contains is None or contains(np.insert(rest, k, own + side * distance)[None])[0]
            grows = distance > 2.0 and bool(energies) if is_log else side * own > 0.0  # a logarithm by a factor e
            if grows and is_allowed and is_level_at_end(centre, k, energies, distance):
                end = own + side * (distances[-1] if distances else 0.0)
                return OpenTail(k, float(own), float(end), max(energies, default=centre.energy) - centre.energy)
            break
        previous, rest = rest, low.position
        if low.energy - centre.energy > REACHABLE:
            return None
        marginals.append(low.marginal)
        energies.append(low.energy)
        distances.append(distance)
    if len(distances) < LEAST_DOUBLINGS or distances[-1] < 0.5 * FAR * unit * centre.has_scale:
        return None
    slope = (marginals[-1] - marginals[-3]) / math.log(distances[-1] / distances[-3])
    if slope >= LEAST_SLOPE:
        return None
    level = next(i for i in range(len(energies)) if max(abs(e - energies[-1]) for e in energies[i:]) < LEVEL)
    begin, end = own + side * distances[level], own + side * distances[-1]
    return OpenTail(k, float(begin), float(end), float(energies[-1] - centre.energy))


def is_level_at_end(centre: Centre, k: int, energies: list[float], end: float) -> bool:
    """Whether a profile is level where solutions end, at the distance ``end``: by its energies, or by its curvature."""
    if not energies:
        return centre.has_scale and math.sqrt(centre.covariance[k, k]) > SDS_BEYOND * end
    return energies[-1] - centre.energy < STILL_LEVEL


class LowestOthers(NamedTuple):
    """The other parameters (q − 1,) at the least energy, that energy, and −log of the marginal density by Laplace."""

    position: Array
    energy: float
    marginal: float


def lowest_of_others(evaluate: Evaluate, k: int, value: float, rest: Array, previous: Array) -> LowestOthers | None:
    """The least energy where parameter ``k`` has ``value``; None where no energy is finite.

    rest, previous: the other parameters at the two distances before, which are continued in a line and by powers.
    """

    def of_others(points: Array) -> tuple[Array, Array]:
        energies, slopes = evaluate(np.insert(points, k, value, axis=1))
        return energies, np.delete(slopes, k, axis=1)

    if not rest.size:
        (energy,), _ = of_others(rest[None])
        return LowestOthers(rest, float(energy), float(energy)) if np.isfinite(energy) else None
    with np.errstate(all="ignore"):
        ratio = rest / previous
    powers = rest * np.where(np.isfinite(ratio) & (ratio > 0.0), ratio, 1.0)
    guesses = np.array([rest, 2.0 * rest - previous, powers])
    energies = of_others(guesses)[0]
    if not np.isfinite(energies).any():
        return None
    start = guesses[int(np.argmin(energies))]
    position, energy, curvature = descend(of_others, start, n_iterations=N_ITERATIONS, dampings=FEW_DAMPINGS)
    if curvature is None:
        return None
    width = 0.5 * float(np.log(curvature.sizes).sum()) - float(np.log(curvature.scale).sum())
    return LowestOthers(position, energy, energy + width)


def improper_words(tails: list[OpenTail], names: tuple[str, ...], log: Bools) -> str:
    """What levels off where, and what to do, in words."""

    def value(tail: OpenTail, position: float) -> float:
        return math.exp(position) if log[tail.number] else position

    parts = [
        f"{names[tail.number]} from {value(tail, tail.begin):.3g} to {value(tail, tail.end):.3g} and beyond, "
        f"{max(tail.height, 0.0):.2g} nats above the minimum"
        for tail in tails
    ]
    name = names[tails[0].number]
    return (
        f"the posterior is improper, or nearly so, because its energy levels off with {'; '.join(parts)}. Draws go "
        f"there and drift, so that intervals grow with the run's length. Give a proper prior, such as "
        f"prior={{{name!r}: sysid.priors.lognormal(mu, sigma)}}, or gaussian(mean, sd) for either sign"
    )
