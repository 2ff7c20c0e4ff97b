"""Targets that several rooms test with: a flat line, wells far apart, a quartic that diverges, normals."""

from targets import mixtures
from toolkit import Target


def flat_block(position, energy, gradient, parameters, scratch):
    """Energy 0 everywhere."""
    for d in range(position.shape[0]):
        for lane in range(position.shape[1]):
            energy[lane] = 0.0
            gradient[d, lane] = 0.0


def two_wells_block(position, energy, gradient, parameters, scratch):
    """Two unit normals 24 apart, as near as a step can tell."""
    for lane in range(position.shape[1]):
        x = position[0, lane]
        centre = 12.0 if x > 0.0 else -12.0
        energy[lane] = 0.5 * (x - centre) ** 2
        gradient[0, lane] = x - centre


def quartic_block(position, energy, gradient, parameters, scratch):
    """x⁴, on which large steps diverge."""
    for lane in range(position.shape[1]):
        energy[lane] = position[0, lane] ** 4
        gradient[0, lane] = 4.0 * position[0, lane] ** 3


def standard_normal(dim):
    """N(0, I)."""
    return mixtures.gaussian_mixture([[0.0] * dim], 1.0)


FLAT = Target("flat", 1, flat_block)
WELLS = Target("wells", 1, two_wells_block)
QUARTIC = Target("quartic", 1, quartic_block)
