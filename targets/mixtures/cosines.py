"""The papers' energies of cosines in a bowl: 25 modes, and nine."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from toolkit.maths.elementary import fma, select, sincos_turns
from toolkit.problem import Spread, Target, recorded

from ..arrays import Array
from ..truth.rejection import accepted, generator
from ..truth.window import plane_truth


def cosine25_block(position: Any, energy: Any, gradient: Any, parameters: Any, scratch: Any) -> None:
    """Energy and gradient of ``cosine25``."""
    for lane in range(position.shape[1]):
        x, y = position[0, lane], position[1, lane]
        sin_x, cos_x = sincos_turns(x)
        sin_y, cos_y = sincos_turns(y)
        squared = fma(x, x, y * y)
        beyond = squared > 20.0
        energy[lane] = fma(0.2, squared, fma(-2.0, cos_x + cos_y, select(beyond, squared - 20.0, 0.0)))
        factor = select(beyond, 2.4, 0.4)
        gradient[0, lane] = fma(factor, x, 12.566370614359172 * sin_x)  # 4π sin 2πx
        gradient[1, lane] = fma(factor, y, 12.566370614359172 * sin_y)


def cosine9_block(position: Any, energy: Any, gradient: Any, parameters: Any, scratch: Any) -> None:
    """Energy and gradient of ``cosine9``."""
    for lane in range(position.shape[1]):
        x, y = position[0, lane], position[1, lane]
        sin_x, cos_x = sincos_turns(0.6 * x)
        sin_y, cos_y = sincos_turns(0.6 * y)
        squared = fma(x, x, y * y)
        beyond = squared > 7.0
        ripple = 3.3333333333333335 * (cos_x + cos_y)
        energy[lane] = fma(0.3333333333333333, squared, select(beyond, squared - 7.0, 0.0) - ripple)
        factor = select(beyond, 2.6666666666666665, 0.6666666666666666)
        gradient[0, lane] = fma(factor, x, 12.566370614359172 * sin_x)  # 1.2π / 0.3 = 4π
        gradient[1, lane] = fma(factor, y, 12.566370614359172 * sin_y)


@recorded("mixtures")
def cosine25() -> Target:
    """U(x) = 0.2 ‖x‖² − 2 (cos 2πx₁ + cos 2πx₂), plus ‖x‖² − 20 where ‖x‖² > 20.

    Modes near all integer points, one apart, with barriers of 4.05 nats; 25 of them matter most. No mixture of
    Gaussians, though the papers call it one: those 25 differ in weight by up to 4.9. Its truth has a mode for each of
    the 69 integer points with ‖n‖² ≤ 20, whose region is where that mode's minimum is the nearest.
    Source: ICSGLD (2022), D.2; r2SGLD (2024), A.3. Truth: quadrature (``window.plane_truth``), exact rejection draws.

    >>> from targets import mixtures
    >>> energies, gradients = mixtures.cosine25().evaluate([[0.0, 0.0]])
    >>> float(energies[0])  # the lowest
    -4.0
    """
    return cosine_target("cosine25", cosine25_block, reach=12.0, bowl=0.2, height=2.0, turns=1.0, radius_squared=20.0)


@recorded("mixtures")
def cosine9() -> Target:
    """U(x) = (‖x‖²/10 − cos 1.2πx₁ − cos 1.2πx₂) / 0.3, plus ‖x‖² − 7 where ‖x‖² > 7.

    Nine modes at multiples of 1.648 that matter, of heights 785.8 : 315.3 : 126.5; the authors keep to the box
    [−2.5, 2.5]², outside which lies 0.15 % of the mass.
    Source: CSGLD (2020), the demonstration in its released code. Truth: as of ``cosine25``.
    """
    return cosine_target("cosine9", cosine9_block, reach=8.0, bowl=1 / 3, height=1 / 0.3, turns=0.6, radius_squared=7.0)


def cosine_target(
    name: str,
    block: Callable[..., None],
    *,
    reach: float,
    bowl: float,
    height: float,
    turns: float,
    radius_squared: float,
) -> Target:
    """The target a ‖x‖² − h Σ cos 2πτx_i, plus ‖x‖² − R² beyond R, with its truth on [−reach, reach]²."""
    n_turns = int(np.sqrt(radius_squared) * turns)
    ticks = np.arange(-n_turns, n_turns + 1) / turns
    grid = np.stack(np.meshgrid(ticks, ticks, indexing="ij"), axis=-1).reshape(-1, 2)
    centres = grid[(grid**2).sum(axis=1) <= radius_squared * (1.0 + 1e-12)]
    frequency = 2.0 * np.pi * turns
    for _ in range(20):  # Newton's steps to the minima close by
        slope = 2.0 * bowl * centres + height * frequency * np.sin(frequency * centres)
        centres = centres - slope / (2.0 * bowl + height * frequency**2 * np.cos(frequency * centres))
    target = Target(name, 2, block)
    draw = partial(draw_cosine_target, name, bowl, height, frequency, radius_squared)
    return replace(
        target,
        truth=plane_truth(target, (-reach, reach, -reach, reach), centres, draw=draw),
        spread=Spread.around(centres, 0.0),
    )


def draw_cosine_target(
    name: str, bowl: float, height: float, frequency: float, radius_squared: float, n: int, seed: int
) -> Array:
    """Exact draws (n, 2): the Gaussian exp(−bowl ‖x‖²), kept with probability exp of the rest of −U minus 2 height."""
    rng = generator(seed)

    def propose(batch: int) -> Array:
        x = rng.standard_normal((batch, 2)) * np.sqrt(0.5 / bowl)
        beyond = np.maximum((x**2).sum(axis=1) - radius_squared, 0.0)
        log_acceptance = height * np.cos(frequency * x).sum(axis=1) - 2.0 * height - beyond
        return np.asarray(x[np.log(rng.random(batch)) < log_acceptance])

    return accepted(n, 2, propose, name=name)
