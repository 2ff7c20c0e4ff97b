"""``plane_truth``: the truth of a target of two dimensions, by quadrature."""

from collections.abc import Sequence
from typing import Any

from toolkit.problem import Target

from .panels import Label
from .window import Draw, WindowTruth, window_truth


def plane_truth(
    target: Target,
    window: Sequence[float],
    centres: Any,
    *,
    label: Label | None = None,
    draw: Draw | None = None,
    walled: bool = False,
) -> WindowTruth:
    """Truth of a target of two dimensions whose mass lies in ``window`` = (x_low, x_high, y_low, y_high).

    centres: of its modes, (modes, 2). label: points (n, 2) → mode (n,), −1 for points outside, where the density is
    taken as 0; None: the nearest centre. draw: (n, seed) → exact draws (n, 2); None: rejection. walled: the target
    ends at the window, and its density need not vanish there.
    Accuracy 1e-6; of energy quantiles 1e-6 of the smaller tail, or where the target is walled or has an outside 1e-4 in
    probability (``energy_accuracy``); exp(−U) may have any scale. Raises ValueError or TypeError naming the
    argument; and when the truth is asked for, where the density at the window's rim is above 1e-9 of the highest.
    """
    return window_truth(target, 2, window, centres, label=label, draw=draw, walled=walled)
