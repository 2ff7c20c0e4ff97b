"""``line_truth``: the truth of a target of one dimension, by quadrature."""

from typing import Any

from toolkit.checks import check_array
from toolkit.problem import Target

from .panels import Label
from .window import Draw, WindowTruth, window_truth


def line_truth(
    target: Target,
    low: float,
    high: float,
    centres: Any,
    *,
    label: Label | None = None,
    draw: Draw | None = None,
    walled: bool = False,
) -> WindowTruth:
    """Truth of a target of one dimension whose mass lies in [low, high].

    centres: of its modes, (modes,) or (modes, 1). label: points (n, 1) → mode (n,); None: the nearest centre. draw:
    (n, seed) → exact draws (n, 1); None: rejection. walled: the target ends at low and high, and its density need not
    vanish there.
    Accuracy 1e-6, of energy quantiles 1e-6 of the smaller tail; exp(−U) may have any scale. Raises ValueError or
    TypeError naming the argument; and when the truth is asked for, where the density at the ends is above 1e-9 of the
    highest.
    """
    places = check_array("centres", centres).reshape(-1, 1)
    return window_truth(target, 1, (low, high), places, label=label, draw=draw, walled=walled)
