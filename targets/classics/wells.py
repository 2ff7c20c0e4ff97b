"""Targets with several wells: egg box, Müller–Brown, Himmelblau and double well, with their truths by quadrature."""

from dataclasses import replace
from typing import Any

import numpy as np

from toolkit.errors import check_count, check_number, check_scale
from toolkit.maths.elementary import exp, fma, select, sincos_turns
from toolkit.maths.philox import MAX_DIM
from toolkit.problem import Spread, Target, recorded

from ..arrays import Array
from ..truth.products import ProductTruth
from ..truth.window import line_truth, plane_truth

WINDOW_DEPTH = 50.0  # nats above the lowest energy at which a window ends
START_DISTANCE = 0.1  # how far beyond the wells chains start
MAX_EXPONENT = 30.0  # exponent beyond which a growing term of ``muller_brown`` goes on along its tangent


def egg_box_block(position: Any, energy: Any, gradient: Any, parameters: Any, scratch: Any) -> None:
    """Energy and gradient of ``egg_box``; parameters: barrier / 211, 1 / spread²."""
    height, precision = parameters[0], parameters[1]
    row_x, row_y, slope_x, slope_y = position[0], position[1], gradient[0], gradient[1]
    for lane in range(energy.size):
        x, y = row_x[lane], row_y[lane]
        sin_x, cos_x = sincos_turns(0.5 * x)
        sin_y, cos_y = sincos_turns(0.5 * y)
        base = fma(cos_x, cos_y, 2.0)
        fourth = (base * base) * (base * base)
        energy[lane] = fma(0.5 * precision, fma(x, x, y * y), height * fma(-fourth, base, 243.0))
        steepness = 15.707963267948966 * height * fourth  # 5 π
        slope_x[lane] = fma(precision, x, steepness * sin_x * cos_y)
        slope_y[lane] = fma(precision, y, steepness * cos_x * sin_y)


@recorded("classics")
def egg_box(*, barrier: float = 4.0, spread: float = 1.0) -> Target:
    """U(x) = b (243 − (2 + cos πx₁ cos πx₂)⁵) / 211 + ‖x‖² / (2 s²): wells wherever x₁ + x₂ is even, in a normal bowl.

    barrier: b > 0, nats from a well to the saddle between two, but for the bowl's part. spread: s > 0 of the bowl,
    without which the law would be improper; at most 2, for there are 25 s² modes to tell apart. Raises TypeError
    or ValueError otherwise. Modes: the wells within max(2, 4 s), where the bowl is not too steep for one; what lies
    about others belongs to the nearest.
    Source: Feroz, Hobson & Bridges (2009), there with b = 211 and a square window in place of the bowl.
    """
    barrier, spread = (
        check_scale("barrier", barrier),
        check_scale("spread", check_number("spread", spread, above=0.0, at_most=2.0)),
    )
    far = max(2, int(4.0 * spread))
    steps = np.arange(-far, far + 1)
    grid = np.stack(np.meshgrid(steps, steps, indexing="ij"), axis=-1).reshape(-1, 2)
    wells = grid[(grid.sum(axis=1) % 2 == 0) & ((grid**2).sum(axis=1) <= far**2)].astype(np.float64)
    target = Target(f"egg_box({barrier:g}, {spread:g})", 2, egg_box_block, np.array([barrier / 211.0, spread**-2]))
    return with_truth(target, minima_near(target, wells))


def muller_brown_block(position: Any, energy: Any, gradient: Any, parameters: Any, scratch: Any) -> None:
    """Energy and gradient of ``muller_brown``; parameters: rows height, −a, −b / 2, −c, x₀, y₀, heights scaled."""
    row_x, row_y, slope_x, slope_y = position[0], position[1], gradient[0], gradient[1]
    for lane in range(energy.size):
        energy[lane], slope_x[lane], slope_y[lane] = 0.0, 0.0, 0.0
    for start in range(0, parameters.size, 6):
        height, a, b = parameters[start], parameters[start + 1], parameters[start + 2]
        c, x_centre, y_centre = parameters[start + 3], parameters[start + 4], parameters[start + 5]
        for lane in range(energy.size):
            x, y = row_x[lane] - x_centre, row_y[lane] - y_centre
            half_x, half_y = fma(a, x, b * y), fma(b, x, c * y)
            exponent = fma(x, half_x, y * half_y)
            beyond = select(exponent > MAX_EXPONENT, exponent - MAX_EXPONENT, 0.0)
            term = height * exp(exponent - beyond)
            energy[lane] = fma(term, 1.0 + beyond, energy[lane])
            slope_x[lane] = fma(2.0 * term, half_x, slope_x[lane])
            slope_y[lane] = fma(2.0 * term, half_y, slope_y[lane])


@recorded("classics")
def muller_brown(*, scale: float = 0.05) -> Target:
    """U(x) = s Σ_k A_k exp(a_k dx² + b_k dx dy + c_k dy²), four terms: three wells along a bent path.

    scale: s > 0, nats per unit; raises TypeError or ValueError otherwise. At 0.05 the two main wells differ by 1.9 nats
    and the way over is 5.3 from the deeper one. Where the fourth term's exponent is above 30 it goes on along its
    tangent: energies there, above 10¹⁴ s, are finite everywhere, and the law is the same to rounding.
    Source: Müller & Brown (1979); the energies are −146.70, −108.17 and −80.77 in the wells.
    """
    scale = check_scale("scale", scale)
    terms = np.array([
        [-200.0, -1.0, 0.0, -10.0, 1.0, 0.0],
        [-100.0, -1.0, 0.0, -10.0, 0.0, 0.5],
        [-170.0, -6.5, 5.5, -6.5, -0.5, 1.5],
        [15.0, 0.7, 0.3, 0.7, -1.0, 1.0],
    ])  # fmt: skip
    terms[:, 0] *= scale
    target = Target(f"muller_brown({scale:g})", 2, muller_brown_block, terms)
    return with_truth(target, minima_near(target, np.array([[-0.558, 1.442], [0.623, 0.028], [-0.050, 0.467]])))


def himmelblau_block(position: Any, energy: Any, gradient: Any, parameters: Any, scratch: Any) -> None:
    """Energy and gradient of ``himmelblau``; parameters: scale."""
    scale = parameters[0]
    row_x, row_y, slope_x, slope_y = position[0], position[1], gradient[0], gradient[1]
    for lane in range(energy.size):
        x, y = row_x[lane], row_y[lane]
        first, second = fma(x, x, y - 11.0), fma(y, y, x - 7.0)
        energy[lane] = scale * fma(first, first, second * second)
        slope_x[lane] = 2.0 * scale * fma(2.0 * x, first, second)
        slope_y[lane] = 2.0 * scale * fma(2.0 * y, second, first)


@recorded("classics")
def himmelblau(*, scale: float = 0.1) -> Target:
    """U(x) = s ((x₁² + x₂ − 11)² + (x₁ + x₂² − 7)²): four wells of energy 0 and of unequal curvature.

    scale: s > 0; raises TypeError or ValueError otherwise. At 0.1 the barriers are 1.3, 6.8, 10.4 and 17.8 nats.
    Source: Himmelblau (1972), "Applied Nonlinear Programming".
    """
    scale = check_scale("scale", scale)
    wells = np.array([[3.0, 2.0], [-2.805, 3.131], [-3.779, -3.283], [3.584, -1.848]])
    target = Target(f"himmelblau({scale:g})", 2, himmelblau_block, np.array([scale]))
    return with_truth(target, minima_near(target, wells))


def minima_near(target: Target, starts: Array) -> Array:
    """The minima within 0.5 of ``starts`` (n, 2) that are there, by Newton's method."""
    places = starts.copy()
    for _ in range(8):
        steps = np.linalg.solve(hessians(target, places), target.evaluate(places)[1][..., None])[..., 0]
        places = places - steps
    places = places[((np.abs(places - starts) < 0.5) & (np.abs(steps) < 1e-6)).all(axis=1)]
    return np.asarray(places[(np.linalg.eigvalsh(hessians(target, places)) > 0.0).all(axis=1)])


def hessians(target: Target, points: Array) -> Array:
    """Hessians (n, 2, 2) at ``points`` (n, 2), by differences of the gradient."""
    step = 1e-5
    columns = [target.evaluate(points + s)[1] - target.evaluate(points - s)[1] for s in step * np.eye(2)]
    return np.stack(columns, axis=-1) / (2.0 * step)


def with_truth(target: Target, centres: Array) -> Target:
    """``target`` with its truth in a window that ends where the energy is 50 nats above its lowest."""
    sides = np.array([[centres[:, 0].min(), centres[:, 0].max()], [centres[:, 1].min(), centres[:, 1].max()]])
    ceiling = target.evaluate(centres)[0].min() + WINDOW_DEPTH
    ticks = np.linspace(0.0, 1.0, 201)
    extended = True
    while extended:
        extended = False
        step = 0.05 * max(1.0, float(np.diff(sides).max()))
        for axis in (0, 1):
            for end, sign in ((0, -1.0), (1, 1.0)):
                rim = np.empty((ticks.size, 2))
                rim[:, axis] = sides[axis, end]
                rim[:, 1 - axis] = sides[1 - axis, 0] + ticks * np.diff(sides[1 - axis])
                if target.evaluate(rim)[0].min() < ceiling:
                    sides[axis, end] += sign * step
                    extended = True
    return replace(
        target,
        truth=plane_truth(target, sides.ravel().tolist(), centres),
        spread=Spread.around(centres, START_DISTANCE),
    )


MAX_RELATIVE_TILT = 8.0 / np.sqrt(27.0)  # of the barrier; beyond, one well is left


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


@recorded("classics")
def double_well(*, dim: int = 1, barrier: float = 4.0, tilt: float = 0.5) -> Target:
    """U(x) = Σ_i b (x_i² − 1)² + t x_i: 2^dim wells about the corners of a cube.

    dim: ≥ 1. barrier: b > 0, nats between the wells of a coordinate, for t = 0. tilt: t, by which the right well lies
    some 2 t higher; |t| < 8 b / √27 = 1.54 b, beyond which one well is left. Raises TypeError or ValueError otherwise.
    Law: coordinates are independent. Truth: quadrature in one, products and convolution for all; above dim = 12 the
    wells are too many to list. Source: Landau's quartic, as in Chandler (1987), "Introduction to Modern Statistical
    Mechanics", chapter 8.
    """
    dim, barrier = check_count("dim", dim, at_least=1, below=MAX_DIM), check_scale("barrier", barrier)
    most = MAX_RELATIVE_TILT * barrier
    tilt = check_number("tilt", tilt, above=-most, below=most)
    numbers = np.array([barrier, tilt])
    line = Target(f"double_well({barrier:g}, {tilt:g})", 1, double_well_block, numbers)
    left, middle, right = np.sort(np.roots([4.0 * barrier, 0.0, -4.0 * barrier, tilt]).real)
    end = float(np.sqrt(1.0 + np.sqrt((WINDOW_DEPTH + 4.0 * abs(tilt)) / barrier) + abs(tilt) / barrier))
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
