"""Targets of the scalar loops, as one would write them first: (x, y) → energy and slopes, math.exp and math.cos."""

import math

import numpy as np
from numba import njit

CENTRES = np.array([(a, b) for a in (-4.0, -2.0, 0.0, 2.0, 4.0) for b in (-4.0, -2.0, 0.0, 2.0, 4.0)])


@njit
def cosine25(x, y):
    """Energy and gradient of the 25-mode cosine target."""
    squared = x * x + y * y
    energy = 0.2 * squared - 2.0 * (math.cos(2 * math.pi * x) + math.cos(2 * math.pi * y))
    slope_x = 0.4 * x + 4 * math.pi * math.sin(2 * math.pi * x)
    slope_y = 0.4 * y + 4 * math.pi * math.sin(2 * math.pi * y)
    if squared > 20.0:
        energy += squared - 20.0
        slope_x += 2.0 * x
        slope_y += 2.0 * y
    return energy, slope_x, slope_y


@njit
def comb(x):
    """Energy and slope of the 5-component mixture along one axis."""
    total, pull = 0.0, 0.0
    for k in range(5):
        away = x - (2.0 * k - 4.0)
        share = math.exp(-away * away / 0.06)
        total += share
        pull += share * away
    return -math.log(total), pull / total / 0.03


@njit
def gaussian_grid25(x, y):
    """Energy, up to a constant, and gradient of the 25 Gaussians as a product, 10 exponentials."""
    energy_x, slope_x = comb(x)
    energy_y, slope_y = comb(y)
    return energy_x + energy_y, slope_x, slope_y


@njit
def gaussian_mixture25(x, y):
    """The same 25 Gaussians as a mixture, 25 exponentials, without log-sum-exp."""
    total, pull_x, pull_y = 0.0, 0.0, 0.0
    for k in range(25):
        away_x, away_y = x - CENTRES[k, 0], y - CENTRES[k, 1]
        share = math.exp(-(away_x * away_x + away_y * away_y) / 0.06)
        total += share
        pull_x += share * away_x
        pull_y += share * away_y
    return -math.log(total), pull_x / total / 0.03, pull_y / total / 0.03


TARGETS = {"cosine25": cosine25, "gaussian_grid25": gaussian_grid25, "gaussian_mixture25": gaussian_mixture25}
