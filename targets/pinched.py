"""Two bulbs of unequal width joined by a thin neck, with its truth."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.checks import check_scale
from toolkit.maths import exp, fma
from toolkit.problem import Spread, Target

from .rejection import accepted
from .ridges import RidgeTruth

Array = NDArray[np.float64]


def pinched_block(position: Any, energy: Any, gradient: Any, parameters: Any, scratch: Any) -> None:
    """Energy and gradient of ``pinched``; parameters: barrier, left, right, neck, 1 / reach²."""
    barrier, left, right, neck, tightness = parameters[0], parameters[1], parameters[2], parameters[3], parameters[4]
    row_x, row_y, slope_x, slope_y = position[0], position[1], gradient[0], gradient[1]
    for lane in range(energy.size):
        x, y = row_x[lane], row_y[lane]
        before, after = x + 1.0, x - 1.0
        bulb_left = left * exp(-0.5 * tightness * before * before)
        bulb_right = right * exp(-0.5 * tightness * after * after)
        inverse = 1.0 / (neck + (bulb_left + bulb_right))
        share = y * inverse
        well = before * after
        widening = -tightness * fma(before, bulb_left, after * bulb_right)
        energy[lane] = fma(0.5 * share, share, barrier * well * well)
        slope_x[lane] = fma(4.0 * barrier * x, well, -share * share * inverse * widening)
        slope_y[lane] = share * inverse


def pinched(
    *, left: float = 0.5, right: float = 0.1, neck: float = 0.02, reach: float = 0.3, barrier: float = 2.0
) -> Target:
    """U(x) = b (x₁² − 1)² + x₂² / (2 s(x₁)²), s(x) = neck + left e^(−(x + 1)²/2r²) + right e^(−(x − 1)²/2r²).

    Modes at (±1, 0), both of energy 0, of widths ``left`` and ``right`` and so of unequal weight, almost disconnected:
    between them the law is but ``neck`` wide, which holds a chain back by log(left / neck) besides the barrier b.
    All five > 0; raises TypeError or ValueError otherwise. reach: r, the bulbs' standard length.
    Law: x₂ given x₁ is N(0, s²); x₁ has density ∝ s e^(−b (x₁² − 1)²). Source: made for this zoo.
    """
    widths = [("left", left), ("right", right), ("neck", neck), ("reach", reach), ("barrier", barrier)]
    left, right, neck, reach, barrier = (check_scale(name, value) for name, value in widths)
    end = float(np.sqrt(1.0 + np.sqrt(60.0 / barrier)))

    def width(x: Array) -> Array:
        bulbs = left * np.exp(-0.5 * ((x + 1.0) / reach) ** 2) + right * np.exp(-0.5 * ((x - 1.0) / reach) ** 2)
        return np.asarray(neck + bulbs)

    def draw_first(n: int, rng: np.random.Generator) -> Array:
        """By rejection: b (x² − 1)² ≥ b (|x| − 1)², and s ≤ neck + left + right."""

        def propose(batch: int) -> Array:
            size = 1.0 + rng.standard_normal(batch) / np.sqrt(2.0 * barrier)
            size = size[size >= 0.0]
            x = size * rng.choice([-1.0, 1.0], size.size)
            log_keep = barrier * ((size - 1.0) ** 2 - (size**2 - 1.0) ** 2)
            keep = np.exp(log_keep) * width(x) / (neck + left + right)
            return np.asarray(x[rng.random(x.size) < keep, None])

        return accepted(n, 1, propose, name="pinched")[:, 0]

    truth = RidgeTruth(
        2,
        level=lambda x: barrier * (x**2 - 1.0) ** 2,
        centre=np.zeros_like,
        width=width,
        window=(-end, end),
        draw_first=draw_first,
        centres=np.array([[-1.0, 0.0], [1.0, 0.0]]),
        borders=(0.0,),
        breaks=tuple(centre + far * reach for centre in (-1.0, 1.0) for far in (-6.0, -2.0, 0.0, 2.0, 6.0)),
    )
    numbers = np.array([barrier, left, right, neck, reach**-2])
    return Target(
        f"pinched({left:g}, {right:g}, {neck:g})", 2, pinched_block, numbers, truth=truth, spread=Spread([1.5, neck])
    )
