"""The law of the energy under a mixture of components that are round in some coordinates, by quasi-random points."""

from collections.abc import Callable, Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from toolkit.problem import EnergyAccuracy, Target

from .energy_levels import EnergyTable
from .rejection import generator

Array = NDArray[np.float64]

SHIFTS = 8
LOG_POINTS, LOG_ALL = 15, 21  # of one component's points, and of all together
ROUGHLY = EnergyAccuracy(0.0, 1e-3)  # 1e-4 where components lie apart


def energy_law(
    target: Target, weights: Array, radius: Callable[[Array], Array], places: Sequence[Callable[[Array], Array]]
) -> EnergyTable:
    """Energies in order, and the probability up to the middle of each, of Σ w_k (the law of places_k(away)).

    away: (n, dim), of a direction at random and a length ``radius`` of a share (n,) in (0, 1). By eight shifts of a
    Sobol' sequence of 32,768 points for each component, fewer where there are more than eight. In probability to 1e-4
    where components lie apart, for then the length alone tells the energy; to 1e-3 where they overlap in many
    dimensions.
    """
    from scipy.stats import qmc  # half a second, for those who ask for energies

    log_points = min(LOG_POINTS, max(8, LOG_ALL - 3 - int(np.ceil(np.log2(len(weights))))))
    found = []
    for shift in range(SHIFTS):
        points = qmc.Sobol(target.dim + 1, scramble=False).random_base2(log_points)
        shares = np.clip((points + generator(shift).random(target.dim + 1)) % 1.0, 1e-15, 1.0 - 1e-15)
        normals = scipy.special.ndtri(shares[:, 1:])
        away = normals * (radius(shares[:, 0]) / np.linalg.norm(normals, axis=1))[:, None]
        found.append([target.evaluate(place(away))[0] for place in places])
    energies = np.concatenate(found, axis=1)
    masses = np.repeat(weights / energies.shape[1], energies.shape[1])
    order = np.argsort(energies, axis=None)
    return EnergyTable(energies.ravel()[order], np.cumsum(masses[order]) - 0.5 * masses[order], ROUGHLY)
