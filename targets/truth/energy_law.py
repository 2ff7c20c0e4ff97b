"""The law of the energy under a mixture of components that are round in some coordinates, by quasi-random points."""

from collections.abc import Callable, Sequence

import numpy as np
import scipy

from toolkit.problem import EnergyAccuracy, Target

from ..arrays import Array
from .energy_levels import EnergyTable
from .rejection import generator

N_SHIFTS = 8
LOG2_POINTS, LOG2_ALL_POINTS = 15, 21  # points of one component, and of all
ACCURACY = EnergyAccuracy(0.0, 1e-3)  # 1e-4 where components lie apart


def energy_law(
    target: Target, weights: Array, radius: Callable[[Array], Array], placements: Sequence[Callable[[Array], Array]]
) -> EnergyTable:
    """The law of the energy at x = placement(offset), with probability ``weights`` for each of ``placements``.

    Offsets (n, dim) have a random direction, and the length ``radius``(u), u (n,) uniform on (0, 1). By eight shifts of
    a Sobol' sequence of 32,768 points for each component, fewer where there are more than eight. In probability to
    1e-4 where components do not overlap, as the length alone then gives the energy; to 1e-3 where they overlap in many
    dimensions.
    """
    from scipy.stats import qmc  # imported here, as it takes half a second

    log_points = min(LOG2_POINTS, max(8, LOG2_ALL_POINTS - 3 - int(np.ceil(np.log2(len(weights))))))
    found = []
    for shift in range(N_SHIFTS):
        points = qmc.Sobol(target.dim + 1, scramble=False).random_base2(log_points)
        shares = np.clip((points + generator(shift).random(target.dim + 1)) % 1.0, 1e-15, 1.0 - 1e-15)
        normals = scipy.special.ndtri(shares[:, 1:])
        offsets = normals * (radius(shares[:, 0]) / np.linalg.norm(normals, axis=1))[:, None]
        found.append([target.evaluate(placement(offsets))[0] for placement in placements])
    energies = np.concatenate(found, axis=1)
    masses = np.repeat(weights / energies.shape[1], energies.shape[1])
    order = np.argsort(energies, axis=None)
    return EnergyTable(energies.ravel()[order], np.cumsum(masses[order]) - 0.5 * masses[order], ACCURACY)
