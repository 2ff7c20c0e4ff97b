"""A double well in every coordinate, with its truth."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.checks import check_count, check_number, check_scale
from toolkit.maths import fma
from toolkit.philox import MAX_DIM
from toolkit.problem import Spread, Target

from .line import line_truth
from .products import ProductTruth

Array = NDArray[np.float64]

DEEP = 50.0  # nats above the barrier at which a window ends
MOST_TILT = 8.0 / np.sqrt(27.0)  # of the barrier; beyond, one well is left


def double_well_block(position: Any, energy: Any, gradient: Any, parameters: Any, scratch: Any) -> None:
    """Energy and gradient of ``double_well``; parameters: barrier, tilt."""
    barrier, tilt = parameters[0], parameters[1]
    for lane in range(energy.size):
        energy[lane] = 0.0
    for d in range(position.shape[0]):
        row, slope = position[d], gradient[d]
        for lane in range(energy.size):
            x = row[lane]
            well = fma(x, x, -1.0)
            energy[lane] += fma(barrier * well, well, tilt * x)
            slope[lane] = fma(4.0 * barrier * x, well, tilt)


def double_well(*, dim: int = 1, barrier: float = 4.0, tilt: float = 0.5) -> Target:
    """U(x) = Σ_i b (x_i² − 1)² + t x_i: 2^dim wells about the corners of a cube.

    dim: ≥ 1. barrier: b > 0, nats between the wells of a coordinate, for t = 0. tilt: t, by which the right well lies
    some 2 t higher; |t| < 8 b / √27 = 1.54 b, beyond which one well is left. Raises TypeError or ValueError otherwise.
    Law: coordinates are independent. Truth: quadrature in one, products and convolution for all; above dim = 12 the
    wells are too many to list. Source: Landau's quartic, as in Chandler (1987), "Introduction to Modern Statistical
    Mechanics", chapter 8.
    """
    dim, barrier = check_count("dim", dim, at_least=1, below=MAX_DIM), check_scale("barrier", barrier)
    most = MOST_TILT * barrier
    tilt = check_number("tilt", tilt, above=-most, below=most)
    numbers = np.array([barrier, tilt])
    line = Target(f"double_well({barrier:g}, {tilt:g})", 1, double_well_block, numbers)
    left, middle, right = np.sort(np.roots([4.0 * barrier, 0.0, -4.0 * barrier, tilt]).real)
    end = float(np.sqrt(1.0 + np.sqrt((DEEP + 4.0 * abs(tilt)) / barrier) + abs(tilt) / barrier))
    one = line_truth(
        line,
        -end,
        end,
        [left, right],
        label=lambda points: (points[:, 0] > middle).astype(np.int64),
    )
    spread = Spread(1.5)  # wells lie at ±1, about
    if dim == 1:
        return replace(line, truth=one, spread=spread)
    return replace(line, name=f"{line.name} in {dim}-D", dim=dim, truth=ProductTruth(one, dim), spread=spread)
